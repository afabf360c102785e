"""Collects the source of a diagram's function while its blocks are gone through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.simulation.compiled.numbers import Numbers, Table
from cstormpy.simulation.compiled.python_calls import PythonCall
from cstormpy.simulation.compiled.registry import Value

__all__ = ["Emitter", "Untranslatable", "named"]

#: Signals with more numbers are left to NumPy: each number is an expression of its own.
WIDEST = 64
#: A number or an array, or a function without arguments that reads it.
Source = ArrayLike | Callable[[], ArrayLike]
_IDENTIFIER = re.compile(r"[a-z]+[0-9]*")


class Untranslatable(Exception):
    """What an emitter raises where its block cannot be translated; the text says why."""


def named(value: Any) -> Value:
    """Return expressions as an array of them."""
    array = np.empty(np.shape(value), dtype=object)
    array[...] = value
    return array


class Emitter:
    """What emitters write to: numbers, tables, scratch memory, local variables and statements.

    Attributes
    ----------
    time : Value
        The expression for the time.
    lines : list of str
        The statements until now.
    written_by : list of int
        The number of the block, `block` as it stood, that each of them is of.
    calls : set of str
        What is called of `cstormpy.kernels.steppers_generated`.
    functions : dict of str to (function, str)
        Functions of the user and the types of their arguments.
    owners : dict of str to str
        The name of the block that each of them belongs to.
    pending : list of functions
        Each tells whether somebody has asked a block for something that its guards do not show.
    numbers_of : Numbers
        The numbers that the source reads, and how they are read anew.
    foreign : bool
        Whether the emitter that writes is not one of cstormpy's own.
    python_calls : list of PythonCall
        Blocks that are called back.
    shared : dict
        What emitters keep for others of the same diagram, as the tables of a mechanism.
    ways : dict of int to list of str
        Of blocks without emitter, by their numbers, in which way they are computed, and why not in a faster one.
    """

    def __init__(self) -> None:
        self.time = named("t")
        self.lines: list[str] = []
        self.written_by: list[int] = []
        self.calls: set[str] = set()
        self.functions: dict[str, tuple[Callable[..., Any], str]] = {}
        self.owners: dict[str, str] = {}
        self.numbers_of = Numbers()
        self.foreign = False
        self.scratch_size = 0
        self._locals = 0
        self._indent = ""
        self.block = 0
        self.pending: list[Callable[[], bool]] = []
        self.python_calls: list[PythonCall] = []
        self.shared: dict[Any, Any] = {}
        self.ways: dict[int, list[str]] = {}

    # numbers, which the source reads and never contains

    def number(self, value: Source) -> Value:
        """Return a parameter of a block, a number or an array, as expressions that read it.

        Parameters
        ----------
        value : array_like, or function without arguments
            What can change while the block lives, as a tunable parameter, is given by a function that reads it anew,
            as in ``e.number(lambda: block.K)``: the program then takes other values as they are. By value stands what
            never changes; from an emitter of your own it may change as well, but the diagram is then translated anew.
        """
        array, first = self._keep(self.numbers_of.floats, value, _floats)
        out = np.empty(array.size, dtype=object)
        out[:] = [f"p[{k}]" for k in range(first, first + array.size)]
        return out.reshape(array.shape)

    def numbers(self, values: Source) -> str:
        """Return a table of numbers as a slice; given as for `number`."""
        array, first = self._keep(self.numbers_of.floats, values, _floats)
        return f"p[{first}:{first + array.size}]"

    def integers(self, values: Source) -> str:
        """Return a table of integers as a slice; given as for `number`."""
        array, first = self._keep(self.numbers_of.whole, values, _whole)
        return f"n[{first}:{first + array.size}]"

    def depends(self, reader: Callable[[], Any]) -> Any:
        """Return what a function without arguments gives, on which the form of the source depends.

        Where it gives something else later (not ``==``, or an array that is not the same), the diagram is translated
        anew: ``if e.depends(lambda: block.premul): ...``.
        """
        value = reader()
        self.numbers_of.conditions.append((reader, value))
        return value

    def scratch(self, count: int) -> int:
        """Return where so many numbers of scratch memory begin."""
        first = self.scratch_size
        self.scratch_size += count
        return first

    def _keep(self, table: Table, value: Source, convert: Callable[[Any], NDArray[Any]]) -> tuple[NDArray[Any], int]:
        reader = value if callable(value) else None
        self.numbers_of.baked = self.numbers_of.baked or (self.foreign and reader is None)
        return table.keep(value if reader is None else reader(), reader, convert)

    # statements

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append(self._indent + text)
        self.written_by.append(self.block)

    @contextmanager
    def under(self, head: str) -> Iterator[None]:
        """Have the statements within the ``with`` block stand under another, as under "if s3 > 0.0:"."""
        self.line(head)
        before, self._indent = self._indent, self._indent + "    "
        try:
            self.line("pass")
            yield
        finally:
            self._indent = before

    def variables(self, count: int) -> Value:
        """Return new local variables, which are zero, to be assigned by `assign`."""
        out = np.array([f"s{self._locals + k}" for k in range(count)], dtype=object)
        self._locals += count
        for name in out:
            self.line(f"{name} = 0.0")
        return out

    def assign(self, variables: Value, values: Value) -> None:
        """Assign values to variables."""
        for name, value in zip(variables, values, strict=True):
            self.line(f"{name} = {value}")

    def let(self, value: Any) -> Value:
        """Give each expression a local variable, and return those."""
        array = value if isinstance(value, np.ndarray) else named(value)
        if array.size > WIDEST:
            raise Untranslatable(f"has a signal of {array.size} numbers; more than {WIDEST} are not translated")
        out = np.empty(array.size, dtype=object)
        out[:] = [self._local(str(text)) for text in array.ravel().tolist()]
        return out.reshape(array.shape)

    def _local(self, text: str) -> str:
        if _IDENTIFIER.fullmatch(text):
            return text
        name = f"s{self._locals}"
        self._locals += 1
        self.line(f"{name} = {text}")
        return name

    def store(self, values: Sequence[Value], first: int) -> str:
        """Write the elements of values into the scratch memory, one behind the other; return them as a slice."""
        k = first
        for value in values:
            for item in value.ravel():
                self.line(f"w[{k}] = {item}")
                k += 1
        return f"w[{first}:{k}]"

    def fail_if(self, condition: str) -> None:
        """Have the run look at this block, by its own methods, where a condition holds."""
        self.line(f"if {condition}:")
        self.line(f"    return {self.block + 1}")

    # expressions

    def each(self, form: str, *values: Any) -> Value:
        """Return a form such as "{0} * {1}" for each element of values that broadcast together."""
        arrays = [v if isinstance(v, np.ndarray) else named(v) for v in values]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        columns = [(a if a.shape == shape else np.broadcast_to(a, shape)).ravel().tolist() for a in arrays]
        out = np.empty(len(columns[0]), dtype=object)
        out[:] = [f"({form.format(*items)})" for items in zip(*columns, strict=True)]
        return out.reshape(shape)

    def product(self, a: Value, b: Value) -> Value:
        """Return the matrix product of two arrays, as NumPy's ``@``."""
        left, right = (a[None, :] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise Untranslatable(f"multiplies shapes {a.shape} and {b.shape}")
        out = np.empty((left.shape[0], right.shape[1]), dtype=object)
        for i, k in np.ndindex(out.shape):
            out[i, k] = self.sum([f"{left[i, j]} * {right[j, k]}" for j in range(left.shape[1])])
        out = out[0] if a.ndim == 1 else out
        return named(out[..., 0] if b.ndim == 1 else out)

    @staticmethod
    def sum(terms: Sequence[str]) -> str:
        """Return a sum of expressions."""
        return "(" + (" + ".join(terms) or "0.0") + ")"

    def by_python(self, block: Any, inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of a block without states, which is asked for them by its own method, in Python.

        That takes as long as it does in any engine. In derivatives it is differenced.
        """
        if block.blockclass in ("continuous", "sampled"):
            raise Untranslatable("has states, and cannot be asked in Python")
        given, found = ([slot.value for slot in slots] for slots in (block._inport_slots, block._outport_slots))
        return self.ask_python(lambda t, u: block.output(t, u, None), inputs, given, found)

    def ask_python(
        self, ask: Callable[[float, list[Any]], Any], inputs: Sequence[Value], given: list[Any], found: list[Any]
    ) -> list[Value]:
        """Return what a function of Python finds, which is called with the time and the inputs each time.

        `given` and `found` are samples of what it takes and of what it returns, a list.
        """
        if any(np.asarray(v).dtype.kind not in "biuf" or isinstance(v, (list, tuple)) for v in (*given, *found)):
            raise Untranslatable("takes or gives a signal that is no number")
        call = PythonCall(ask, given, found)
        self.python_calls.append(call)
        first = self.scratch(sum(call.sizes))
        stored = self.store([self.time, *inputs], first)
        last = first + sum(call.sizes)
        where = self.integers(lambda: [call.address]).partition(":")[0]
        self.fail_if(f"{self.call('python_block')}({where}], {stored}, w[{last - call.sizes[1]}:{last}]) != 0")
        outputs, k = [], last - call.sizes[1]
        for sample in found:
            behind = k + np.size(sample)
            outputs.append(named([f"w[{i}]" for i in range(k, behind)]).reshape(np.shape(sample)))
            k = behind
        return outputs

    def told(self, way: str) -> None:
        """Note in which way the block that is emitted now is computed."""
        self.ways.setdefault(self.block, []).append(way)

    def call(self, name: str) -> str:
        """Return the name of a kernel that the source calls."""
        self.calls.add(name)
        return name


def _whole(value: Any) -> NDArray[np.int64]:
    return np.asarray(value, dtype=np.int64).ravel()


def _floats(value: Any) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise Untranslatable(f"has a parameter that is no real number: a {type(value).__name__}")
    return array.astype(np.float64)
