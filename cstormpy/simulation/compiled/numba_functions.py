"""Functions of the user that cannot be traced, compiled by numba, which machine code calls as functions of C."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from cstormpy.graph import Graph
from cstormpy.graph.external import external
from cstormpy.graph.python_calls import Differences, PythonCall
from cstormpy.reporting import notice_once
from cstormpy.simulation.compiled.call_table import CallTable
from cstormpy.simulation.compiled.fingerprints import fingerprint, reachable
from cstormpy.simulation.compiled.numbers import HeldNumbers
from cstormpy.simulation.compiled.side_effects import Reached
from cstormpy.simulation.compiled.signals import Signal, numbers, shaped_as
from cstormpy.simulation.compiled.symbolic_math import is_installed, why_refused
from cstormpy.simulation.compiled.untranslated import NotTranslated, Refused, computes_otherwise, draws_numbers, told

#: Gives the symbols of a number or an array that a function without arguments reads anew.
Read = Callable[[Callable[[], Any]], Signal]
#: So many functions are kept ready.
_KEPT = 64


class UserFunction:
    """A function of the user, compiled by numba when it is asked for its address; where that refuses it, in Python.

    Parameters
    ----------
    function : function
    source : str
        Of what calls it as a function of C, see `cstormpy.kernels.user_functions.compiled`.
    kinds : str
        The types of its arguments.
    owner : str
        The name of its block.
    role : str
        What it is to the block, as that says in which way it is computed.
    python : PythonCall
        The same, asked in Python.

    Attributes
    ----------
    refused : str
        Why numba does not compile it; "" as long as that is not known.
    """

    refused = ""
    _compiled: ClassVar[dict[tuple[str, str], tuple[Any, int]]] = {}
    _refused: ClassVar[dict[tuple[str, str], str]] = {}

    def __init__(self, function: Any, source: str, kinds: str, owner: str, role: str, python: PythonCall) -> None:
        self._function, self._source, self._kinds = function, source, kinds
        self.owner, self.role, self.python = owner, role, python
        self.seen, self._lasting = fingerprint([function])
        self._ready: tuple[Any, int] | None = None

    def is_ready(self) -> bool:
        """Tell whether it has been compiled: it is here, or on disk."""
        key = self._source, self.seen
        if self._ready is not None or key in self._compiled or key in self._refused:
            return True
        from cstormpy.kernels.compiling import is_kept
        from cstormpy.kernels.user_functions import kept_as

        return self._lasting and is_kept(kept_as(self._source, self.seen))

    def address(self) -> int:
        """Return where it begins.

        Raises
        ------
        NotTranslated
            If it reads a random generator.
        """
        from cstormpy.kernels.user_functions import Refused as RefusedByNumba
        from cstormpy.kernels.user_functions import compiled

        key = self._source, self.seen
        self._ready = self._ready or self._compiled.get(key)
        self.refused = self._refused.get(key, "")
        if self._ready is None and not self.refused:
            try:
                made = compiled(self._source, self._function, self._kinds, self.seen if self._lasting else None)
            except RefusedByNumba as error:
                written = getattr(self._function, "written", self._function)
                why = told(written, str(error))
                if draws_numbers(written):
                    raise NotTranslated([(self.owner, f"numba does not compile its function: {why}")]) from error
                self.refused = _kept(self._refused, key, why)
                notice_once(f"block {self.owner!r}: asked in Python, as numba does not compile {self._said()}")
            else:
                self._ready = _kept(self._compiled, key, made)
        return self._ready[1] if self._ready is not None and not self.refused else self.python.address()

    def give_up(self) -> bool:
        """Have Python asked from now on, where it finds what the compiled function fails at; return whether it was not.

        NumPy's numbers give inf and nan where numbers of the machine raise, as in a division by zero.
        """
        if self.refused:
            return False
        self.refused = _kept(self._refused, (self._source, self.seen), "compiled, it fails where it does not in Python")
        notice_once(f"block {self.owner!r}: asked in Python, as numba's code does not do for {self._said()}")
        return True

    def _said(self) -> str:
        return f"its function: {self.refused}" if self.role == "output" else f"its {self.role}: {self.refused}"

    def told(self, way: str) -> str:
        """Return the way in which its block says to be computed, corrected where numba has refused the function."""
        first = f"{self.role}: compiled by numba"
        if not self.refused or not way.startswith(first):
            return way
        return f"{self.role}: asked in Python{way.removeprefix(first)}; numba: {self.refused}"


def _kept(store: dict[tuple[str, str], Any], key: tuple[str, str], value: Any) -> Any:
    """Keep what has become of a function, and no more than some of them."""
    while len(store) >= _KEPT:
        store.pop(next(iter(store)))
    store[key] = value
    return value


class ByNumba:
    """Writes calls of functions of the user down.

    Parameters
    ----------
    graph : Graph
    call_table : CallTable
    read : function
        Gives the symbols of what a function without arguments reads anew.
    depends : function of (reader, value)
        Notes that what is written down holds as long as a reader gives the same.
    """

    def __init__(self, graph: Graph, call_table: CallTable, read: Read, depends: Callable[..., Any]) -> None:
        self._graph, self._call_table, self._read, self._depends = graph, call_table, read, depends
        self._made: dict[tuple[str, str, int], UserFunction] = {}

    def outputs(self, block: Any, u: list[Signal]) -> list[Signal]:
        """Return the outputs of FUNCTION."""
        signals, func = [slot.value for slot in block._inport_slots], block.func
        self._depends(lambda: block.func, func)
        if not callable(func):
            return [part for each in func for part in self._called(block, each, u, signals, whole=True)]
        parts = self._called(block, func, u, signals)
        if len(parts) != block.nout:
            raise Refused(f"returns {len(parts)} values for {block.nout} outputs")
        return parts

    def _called(self, block: Any, func: Any, u: list[Signal], signals: list[Any], whole: bool = False) -> list[Signal]:
        """Return what a function of FUNCTION gives for the inputs and the further arguments that the block holds."""

        def further() -> list[Any]:
            return _extra(func, len(u), block.args, block.kwargs)

        given = further()
        more = [self._read(lambda k=k: further()[k]) for k in range(len(given))]  # type: ignore[misc]
        moved: dict[Any, Any] = {}

        def write(k: Any, value: Any) -> None:
            moved.pop(k, None)
            if value is not further()[k]:
                moved[k] = value

        def own(*values: Any) -> Any:
            return func(*values, *[moved.get(k, value) for k, value in enumerate(further())])

        held = HeldNumbers(range(len(given)), lambda k: further()[k], write)
        return self.call(func, [*u, *more], [*signals, *given], whole, method=(own, held) if given else None)

    def call(
        self,
        func: Callable[..., Any],
        arguments: list[Signal],
        samples: list[Any],
        whole: bool = False,
        role: str = "output",
        method: tuple[Callable[..., Any], HeldNumbers] | None = None,
    ) -> list[Signal]:
        """Return what a function returns, a list or tuple as its parts.

        What it raises makes the run look at the block by its own methods. `samples` are values of the arguments, from
        which it is seen what it returns; `role` says what the function is to the block. Where the function stands for a
        `method` of an object, its last arguments are what that holds, into which nothing may be written, and where
        numba refuses the function that is asked without them, of whose results any shape will do.
        """
        func, arguments, samples = self._plain(func, arguments, samples)
        own, held = method or (func, HeldNumbers.none())
        behind = len(samples) - len(held.names)
        sample = _sampled(func, samples, behind)
        several = isinstance(sample, (list, tuple)) and not whole
        parts = list(sample) if several else [sample]
        shapes = [np.shape(v) for v in arguments]
        source, kinds, count = _source(shapes, parts, sample if several else None, behind)
        given = [self._call_table.time, *(x for value in arguments for x in numbers(value))]
        failure, call_table, graph = self._call_table.failure, self._call_table, self._graph

        def ask(t: float, values: list[Any]) -> list[Any]:
            if made.refused and method is not None:
                return _like(parts, own(*values[:behind]))
            found = func(*values)
            return list(found) if several else [found]

        def beside(t: float, values: list[Any]) -> list[Any]:
            with held.moved(values[behind:]) if made.refused else contextlib.nullcontext():
                return ask(t, values)

        made = UserFunction(func, source, kinds, self._call_table.owner, role, PythonCall(ask, samples, parts))
        # by the function itself: two that read the same may remember things of their own, which Python's do
        made = self._made.setdefault((source, made.seen, id(func)), made)
        self._depends(lambda: fingerprint([func])[0], made.seen)
        differences = Differences(call_table, beside, samples, parts)

        def along(values: Any, rates: Any) -> Any:
            return differences.nodes(graph, failure, values, rates)

        found = external(graph, call_table.function(made), failure, given, count, along)
        if not found:
            return []
        call_table.differenced(found[0].args[0], f"function {func.__name__}")
        return shaped_as(found, parts)

    def _plain(self, func: Any, arguments: list[Signal], samples: list[Any]) -> tuple[Any, list[Signal], list[Any]]:
        """Return a function that a compiler takes, with the bound arguments among the others."""
        while isinstance(func, functools.partial):
            arguments, samples = self._bound(func, arguments, samples)
            func = func.func
        func = getattr(func, "py_func", func)  # what numba has compiled is compiled anew, so that errors are seen
        if isinstance(func, (types.BuiltinFunctionType, np.ufunc)):
            func = _as_function(func, len(arguments))
        if not isinstance(func, types.FunctionType):
            raise Refused(f"its function is a {type(func).__name__}, not a plain function")
        if func.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
            raise Refused("its function is a generator")
        for each in reachable([func]):
            if isinstance(each, types.FunctionType) and not is_installed(each):
                if why := why_refused(each) or computes_otherwise(each):
                    raise Refused(why)
        return func, arguments, samples

    def _bound(
        self, func: functools.partial[Any], arguments: list[Signal], samples: list[Any]
    ) -> tuple[list[Signal], list[Any]]:
        """Return the arguments of a partial function's own function."""
        first = [self._number(v) for v in func.args]
        values = iter([*zip(first, func.args, strict=True), *zip(arguments, samples, strict=True)])
        if not func.keywords:
            found = list(values)
        else:
            found, keywords = [], dict(func.keywords)
            for name, parameter in inspect.signature(func.func).parameters.items():
                if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
                    raise Refused("takes arguments by keyword only")
                if name in keywords:
                    held = keywords.pop(name)
                    found.append((self._number(held), held))
                elif (value := next(values, None)) is not None:
                    found.append(value)
                elif keywords:  # those behind it are given
                    found.append((self._number(parameter.default), parameter.default))
        return [value for value, _ in found], [sample for _, sample in found]

    def _number(self, value: Any) -> Signal:
        """Return the symbols of a number or an array, which may be written into later."""
        return self._read(lambda: value)


def _like(parts: list[Any], value: Any) -> list[Any]:
    """Return a result in parts of these shapes."""
    several = isinstance(value, (list, tuple))
    flat = np.concatenate([np.ravel(each) for each in value]) if several else np.ravel(value)
    ends = np.cumsum([np.size(part) for part in parts])
    if flat.size != ends[-1]:
        raise Refused(f"returns {flat.size} numbers for {ends[-1]}")
    return [each.reshape(np.shape(part)) for part, each in zip(parts, np.split(flat, ends[:-1]), strict=True)]


def _sampled(func: Callable[..., Any], samples: list[Any], first: int) -> Any:
    """Return what a function gives for copies of its arguments, into which it cannot write from the first on."""
    given = [np.array(v) if isinstance(v, np.ndarray) else v for v in samples]
    for value in given[first:]:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    reached = Reached([func])
    try:
        with np.errstate(all="ignore"):
            found = func(*given)
    except Exception as error:
        reached.restore()
        raise Refused(f"it fails when it is tried: {type(error).__name__}: {error}") from error
    changed = reached.restore()
    written: Any = getattr(func, "written", func)
    if changed and not draws_numbers(written):  # of which is told what it reads
        raise Refused(f"it changes {changed}")
    return found


def _extra(func: Callable[..., Any], count: int, args: Any, kwargs: Any) -> list[Any]:
    """Return the further arguments of a function, in their order."""
    if not kwargs:
        return list(args)
    try:
        signature = inspect.signature(func)
        bound = signature.bind(*[0.0] * count, *args, **kwargs)
    except (TypeError, ValueError) as error:
        raise Refused(f"its arguments do not fit: {error}") from error
    if not bound.kwargs:
        return list(bound.args[count:])
    bound.apply_defaults()  # one stands behind another that is not given
    if bound.kwargs:
        raise Refused("takes arguments by keyword only")
    return list(bound.args[count : 1 + max(list(signature.parameters).index(name) for name in kwargs)])


def _as_function(known: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a function of the language, of so many arguments, that calls one of NumPy or of the math module."""
    forms: dict[int, Callable[..., Any]] = {
        1: lambda a: known(a),
        2: lambda a, b: known(a, b),
        3: lambda a, b, c: known(a, b, c),
    }
    if count not in forms:
        raise Refused(f"its function is one of {count} arguments that is built in")
    return forms[count]


def _source(shapes: list[tuple[int, ...]], parts: list[Any], several: Any, fixed: int) -> tuple[str, str, int]:
    """Return the source of what calls a function, the types of its arguments, and how many numbers come out.

    Into the arguments from number `fixed` on nothing may be written.
    """
    given, kinds, first = [], [], 1  # the time comes before them, as for what is asked in Python
    for k, shape in enumerate(shapes):
        behind = first + int(np.prod(shape))
        if len(shape) > 2:
            raise Refused(f"is given an array of {len(shape)} dimensions")
        kinds.append(f"Array(f8, {len(shape)}, 'C', readonly={k >= fixed})" if shape else "f8")
        text = f"g[{first}:{behind}]" + (f".reshape({shape})" if len(shape) == 2 else "")
        given.append(text if shape else f"g[{first}]")
        first = behind
    checks, fills, count = [], [], 0
    if isinstance(several, list):
        checks.append(f"len(r) != {len(several)}")
    for k, part in enumerate(parts):
        text = "r" if several is None else f"r[{k}]"
        if np.shape(part):
            checks.append(f"{text}.shape != {np.shape(part)}")
        for line in _parts(text, part):
            fills.append(f"    y[{count}] = {line}")
            count += 1
    lines = [
        "def call(given, found):",
        f"    g, y = carray(given, {first}), carray(found, {max(count, 1)})",
        "    try:",
        f"        r = f({', '.join(given)})",
        "    except Exception:",
        "        return 1",
        *(f"    if {check}:\n        return 1" for check in checks),
        *fills,
        "    return 0",
    ]
    return "\n".join(lines) + "\n", ", ".join(kinds), count


def _parts(text: str, sample: Any) -> list[str]:
    """Return the numbers of a part of a result, as expressions."""
    shape = np.shape(sample)
    if np.asarray(sample).dtype.kind not in "biuf":
        raise Refused(f"returns a {type(sample).__name__}")
    if isinstance(sample, (list, tuple)):
        raise Refused("returns a list within a list")
    # a truth value counts as 1 or 0, and is made a number by a product: numba knows no float(True)
    form = "float(1.0 * {0})" if np.asarray(sample).dtype.kind == "b" else "float({0})" if shape == () else "{0}"
    text += "[()]" if isinstance(sample, np.ndarray) and shape == () else ""
    if shape == ():
        return [form.format(text)]
    return [form.format(f"{text}[{', '.join(map(str, index))}]") for index in np.ndindex(shape)]
