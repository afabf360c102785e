"""Collects the source of a diagram's function while its blocks are gone through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.simulation.compiled.registry import Value

__all__ = ["Emitter", "Untranslatable", "named"]

#: Signals with more numbers are left to NumPy: each number is an expression of its own.
WIDEST = 64
_IDENTIFIER = re.compile(r"[a-z]+[0-9]*")


class Untranslatable(Exception):
    """What an emitter raises where its block can not be translated; the text says why."""


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
    calls : set of str
        What is called of `cstormpy.kernels.steppers_generated`.
    functions : dict of str to (function, str)
        Functions of the user and the types of their arguments.
    owners : dict of str to str
        The name of the block that each of them belongs to.
    pending : list of functions
        Each tells whether somebody has asked a block for something that its guards do not show.
    shared : dict
        What emitters keep for others of the same diagram, as the tables of a mechanism.
    """

    def __init__(self) -> None:
        self.time = named("t")
        self.lines: list[str] = []
        self.calls: set[str] = set()
        self.functions: dict[str, tuple[Callable[..., Any], str]] = {}
        self.owners: dict[str, str] = {}
        self._numbers: list[float] = []
        self._integers: list[int] = []
        self.scratch_size = 0
        self._locals = 0
        self._indent = ""
        self.block = 0
        self.pending: list[Callable[[], bool]] = []
        self.shared: dict[Any, Any] = {}

    @property
    def p(self) -> NDArray[np.float64]:
        """All numbers."""
        return np.array(self._numbers, dtype=np.float64)

    @property
    def n(self) -> NDArray[np.int64]:
        """All integers."""
        return np.array(self._integers, dtype=np.int64)

    # numbers, which the source reads and never contains

    def number(self, value: ArrayLike) -> Value:
        """Return a parameter of a block, a number or an array, as expressions that read it."""
        array = _floats(value)
        first = self._keep(array)
        out = np.empty(array.size, dtype=object)
        out[:] = [f"p[{k}]" for k in range(first, first + array.size)]
        return out.reshape(array.shape)

    def numbers(self, values: ArrayLike) -> str:
        """Return a table of numbers as a slice."""
        array = _floats(values)
        first = self._keep(array)
        return f"p[{first}:{first + array.size}]"

    def integers(self, values: ArrayLike) -> str:
        """Return a table of integers as a slice."""
        first = len(self._integers)
        self._integers += [int(v) for v in np.ravel(values)]
        return f"n[{first}:{len(self._integers)}]"

    def scratch(self, count: int) -> int:
        """Return where so many numbers of scratch memory begin."""
        first = self.scratch_size
        self.scratch_size += count
        return first

    def _keep(self, array: NDArray[np.float64]) -> int:
        first = len(self._numbers)
        self._numbers += array.ravel().tolist()
        return first

    # statements

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append(self._indent + text)

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

    def call(self, name: str) -> str:
        """Return the name of a kernel that the source calls."""
        self.calls.add(name)
        return name


def _floats(value: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise Untranslatable(f"has a parameter that is no real number: a {type(value).__name__}")
    return array.astype(np.float64)
