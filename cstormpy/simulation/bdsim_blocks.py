"""Corrections of bdsim's own blocks, where these cannot run as their documentation says.

LTI_SS and LTI_SS_S have a port for each input and output, but give all outputs as one array, so that none with several
could run; they ask numbers for their shape, as in the ``LTI_SS(A=-2, B=1, C=-1)`` of their documentation. PID and PID_S
leave out a limit that is a whole number or a list. FUNCTION takes no function of NumPy, nor one with defaults: it
counts what these could take too as inputs. It takes whatever a function returns for a signal, None too, and hides what
was wrong within one. EVENT calls a function that raises a TypeError once more, without the states, and tells of that;
it drops states that a function returns.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np
from bdsim.blocks.continuous import LTI_SS
from bdsim.blocks.functions import Function
from bdsim.blocks.sampled import LTI_SS_S
from bdsim.blocks.sinks import Event
from bdsim.blocks.sources import Constant, Piecewise, Step

from cstormpy.arrays import Array, own_arrays, real_array
from cstormpy.errors import BlockError, InvalidType, InvalidValue, ShapeError, shown

NOTES = {
    "EVENT": """In a run of cstormpy the function is called as

``func(block, states, *fargs, **fkwargs)``

or without the states if it does not take them. It may write into the states of blocks, ``states[block][:] = ...``, and
set numbers of blocks; what it returns does not count. Of a mechanism's block states are its positions and, behind them,
its rates."""
}
"""What the documentation of bdsim's blocks leaves out, by the names of the blocks."""


#: Signals of these are made arrays: sums of lists are longer lists, and a gain of 2 gives one twice.
_LISTS = (list, tuple)


def class_name(kind: type) -> str:
    """Return the name of a class with that of its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


@functools.cache
def is_of(kind: type, base: type) -> bool:
    """Tell whether a class is one of another's; bdsim's have an instance check of their own, which takes long."""
    return issubclass(kind, base)


def output_of(block: Any) -> Callable[..., Any]:
    """Return what computes the outputs of a block."""
    if type(block).output in (LTI_SS.output, LTI_SS_S.output):
        return functools.partial(linear_outputs, block)
    if type(block).output is Function.output:
        return _FunctionOutputs(block)
    method, kind = method_of(block, "output"), block.__class__
    if is_users_class(kind):
        method = functools.partial(_outputs_as_arrays, method)
    if sees_states_alone(block):
        return functools.partial(_outputs_of_states, method)
    return method


def sees_states_alone(block: Any) -> bool:
    """Tell whether inputs are kept back from the output of a block: one of the user's that does not say it reads them.

    Where it is computed, they may be of another time.
    """
    kind: Any = type(block)
    return bool(is_users_class(kind) and block.hasstate and not block._feedthrough)


def _outputs_of_states(method: Callable[..., Any], t: float, u: list[Any], x: Any) -> Any:
    """Return what a block shows of its states, each of its inputs being None; refuse what it returns of these."""
    values = method(t, [None] * len(u), x)
    if isinstance(values, (list, tuple)) and any(map(_holds_none, values)):
        raise InvalidType("output() returned None")
    return values


def _outputs_as_arrays(method: Callable[..., Any], t: float, u: list[Any], x: Any) -> Any:
    """Return the outputs of a block of the user's, lists of numbers as arrays."""
    values = method(t, u, x)
    if isinstance(values, _LISTS):
        for value in values:
            if value.__class__ in _LISTS:
                return [_as_array(each) if each.__class__ in _LISTS else each for each in values]
    return values


def _as_array(value: Any) -> Any:
    """Return a list of numbers as an array of floats, and anything else as it is."""
    numbers = real_numbers(value)
    return value if numbers is None else numbers


def real_numbers(value: Any) -> Array | None:
    """Return a signal as new floats; None for one that is no real numbers, as a text, or poses in a list."""
    if not _is_of_numbers(value):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        return None
    return array.astype(float) if array.dtype.kind in "biuf" else None


def _is_of_numbers(value: Any) -> bool:
    """Tell whether a signal is a number, an array, or a list of these: NumPy would make one of a list of poses, too."""
    if isinstance(value, _LISTS):
        return all(map(_is_of_numbers, value))
    return isinstance(value, (int, float, np.generic, np.ndarray))


def _holds_none(value: Any) -> bool:
    """Tell whether a signal is None, or some of its numbers are."""
    if value.__class__ is np.ndarray:
        return value.dtype.kind == "O" and any(entry is None for entry in value.flat)
    return value is None


def handler_of(block: Any) -> Callable[..., None] | None:
    """Return what a block, or a crossing of one of ours, does at its events, if anything."""
    handler: Callable[..., None] | None = getattr(block, "event_handler", None) or getattr(block, "on_event", None)
    if getattr(handler, "__func__", None) is Event.event_handler:
        return functools.partial(_call_handler, block)
    return handler


def _call_handler(block: Any, t: float, x: Any, states: Any, simstate: Any = None) -> None:
    """Call the function of an EVENT, with the states if it takes them; refuse others than these that it returns."""
    given = [block, states, *block.args]
    try:
        inspect.signature(block.func).bind(*given, **block.kwargs)
    except TypeError as wrong:
        del given[1]
        try:
            inspect.signature(block.func).bind(*given, **block.kwargs)
        except TypeError:
            more = ", ".join(["block, states", *["..."] * bool(block.args), *block.kwargs])
            raise BlockError(f"{_place(block.func)} cannot be called as f({more}): {wrong}") from None
    except ValueError:  # one written in C may show no signature
        pass
    found = block.func(*given, **block.kwargs)
    if isinstance(found, np.ndarray) and not any(np.may_share_memory(found, x) for x in states.values()):
        raise BlockError(
            f"{_place(block.func)} returned {shown(found)}, which changes nothing; write into the states, as in "
            "states[block][:] = ..."
        )


def method_of(block: Any, name: str) -> Callable[..., Any]:
    """Return a method of (t, u, x) of a block; one of the user's may write into what it is given.

    Signals and states belong to the run: it is given copies.
    """
    method: Callable[..., Any] = getattr(block, name)
    kind: Any = type(block)
    if not (is_of(kind, Function) or is_users_class(kind)):
        return method
    return lambda t, u, x: method(t, [_as_copy(v) for v in u], _as_copy(x))


@functools.lru_cache(maxsize=512)
def is_users_class(kind: Any) -> bool:
    """Tell whether a class of blocks is one of the user's."""
    return kind.__module__.partition(".")[0] not in ("bdsim", "cstormpy")


def _as_copy(value: Any) -> Any:
    return np.array(value) if value.__class__ is np.ndarray else value


class _FunctionOutputs:
    """What the functions of a FUNCTION return, as its outputs; refused where it is no signal, or changes its width."""

    def __init__(self, block: Any) -> None:
        self._block = block
        self._sizes: list[int | None] = [None] * block.nout

    def __call__(self, t: float, u: list[Any], x: Any) -> list[Any]:
        b, given = self._block, [_as_copy(value) for value in u]
        if not callable(b.func):
            found = [f(*given, *b.args, **b.kwargs) for f in b.func]
            if len(found) != b.nout:
                raise BlockError(f"it has {len(found)} functions for {b.nout} outputs; make it with nout={len(found)}")
            return [self._signal(k, value, b.func[k]) for k, value in enumerate(found)]
        value = b.func(*given, *b.args, **b.kwargs)
        found = list(value) if isinstance(value, (list, tuple)) else [value]
        if value is not None and len(found) != b.nout:
            raise BlockError(f"{_place(b.func)} {_miscounted(value, b.nout)}")
        return [self._signal(k, value, b.func) for k, value in enumerate(found)]

    def _signal(self, port: int, value: Any, function: Any) -> Any:
        if value is None:
            raise BlockError(
                f"{_place(function)} returned None; end it with 'return' and the value, on all of its ways"
            )
        if value.__class__ is float:
            size = 1
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            size = value.size
        else:
            size = _size(value)
        if size < 0:
            raise BlockError(f"{_place(function)} returned {shown(value)}, which is no number and no array of numbers")
        before = self._sizes[port]
        if size == 0 and before and isinstance(value, str):
            raise BlockError(f"{_place(function)} returned {shown(value)} where it returned numbers before")
        if before is None:
            self._sizes[port] = size
        elif size != before:
            raise BlockError(f"{_place(function)} returned {size} number{'s' * (size != 1)}, {before} before this")
        return _as_array(value) if value.__class__ in _LISTS else value


def _size(value: Any) -> int:
    """Return how many numbers a signal has, 0 for a text, -1 for what is no signal; a pose or a dict counts as one."""
    if isinstance(value, str):
        return 0
    if isinstance(value, (set, type)) or callable(value):
        return -1
    if isinstance(value, (list, tuple, np.ndarray)):
        try:
            array = np.asarray(value)
        except ValueError:  # rows of unequal length
            return -1
        return array.size if array.dtype.kind in "biufc" else -1
    return 1


def _miscounted(value: Any, outputs: int) -> str:
    """Return what a function returned that has not a value for each output, and what to do."""
    if not isinstance(value, (list, tuple)):
        return f"returned {shown(value)} for {outputs} outputs; return a list of {outputs}"
    returned = f"returned a {type(value).__name__} of {len(value)} for {outputs} output{'s' * (outputs != 1)}"
    more = "return one array, as np.array([...]), or " if outputs == 1 and value else ""
    return f"{returned}; {more}make the block with nout={len(value)}" if value else returned


def _place(function: Any) -> str:
    """Return how messages call a function of a block: with its line, where it has one."""
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    where = f" (line {code.co_firstlineno} of {os.path.basename(code.co_filename)})" if code is not None else ""
    return f"its function{where}"


def linear_outputs(block: Any, t: Any, u: list[Any], x: Any) -> list[Any]:
    """Return the outputs of a linear system, which has a port for each number."""
    y = block.C @ x if block.D is None else block.C @ x + block.D @ side_by_side(u)
    return y.tolist()


def side_by_side(u: list[Any]) -> Any:
    """Return signals as one vector."""
    return np.concatenate([np.ravel(value) for value in u])


def with_own_arrays(made: Any, value: Any) -> Any:
    """Return what a block of bdsim is given with arrays of its own: it would keep the user's, which change later.

    What functions are given besides their inputs stays theirs; they may keep a memory there.
    """
    of_bdsim = getattr(made, "__module__", "").partition(".")[0] == "bdsim"
    return own_arrays(value) if of_bdsim and made not in (Function, Event) else value


def more_arguments(kind: str, given: dict[str, Any]) -> list[Any]:
    """Return what a FUNCTION gets besides its inputs, and put as many others in its place.

    bdsim asks whether the first is equal to {}, which arrays cannot tell, and adds to the user's list.
    """
    more = given.get("fargs") if kind == "FUNCTION" else None
    if not isinstance(more, (list, tuple)):
        return []
    given["fargs"] = [None] * len(more)
    return list(more)


def hold_arrays(block: Any) -> None:
    """Let a source of bdsim that was made with lists or whole numbers hold arrays of floats."""
    kind = block.__class__
    if is_of(kind, Constant):
        block.value = _as_floats(block.value)
    elif is_of(kind, Step):
        block.off, block.on = _as_floats(block.off), _as_floats(block.on)
    elif is_of(kind, Piecewise):
        block.y = [_as_floats(value) for value in block.y]


def _as_floats(value: Any) -> Any:
    """Return a list of numbers, or an array of whole ones, which would cut off what is written into copies of it."""
    if value.__class__ is np.ndarray and value.dtype.kind in "iu":
        return value.astype(float)
    return _as_array(value) if value.__class__ in _LISTS else value


def arguments_of(
    kind: str, made: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a block by name, as its class can take them."""
    change = _CHANGES.get(kind)
    if change is None or getattr(made, "__module__", "").partition(".")[0] != "bdsim":
        return kwargs
    known = [*signature.parameters]
    if len(args) > len(known) or set(known[: len(args)]) & kwargs.keys():
        return kwargs  # which Python refuses
    return change({**dict(zip(known, args, strict=False)), **kwargs})


def _matrices(given: dict[str, Any]) -> dict[str, Any]:
    """Return the matrices of a linear system as arrays; numbers are those of one state, input or output."""
    for name, least in (("A", 2), ("B", 1), ("C", 1), ("D", 1)):
        if given.get(name) is not None:
            value = real_array(given[name], name).copy()
            given[name] = value.reshape((1,) * (least - value.ndim) + value.shape)
    x0, A = given.get("x0"), given.get("A")
    if x0 is not None and A is not None and np.size(x0) != len(A):
        raise ShapeError(f"x0: expected {len(A)} numbers, as A has rows, got {np.size(x0)}")
    return given


def _gain(given: dict[str, Any]) -> dict[str, Any]:
    """Return a gain that is a list as an array: Python repeats a list."""
    if isinstance(given.get("K"), (list, tuple)):
        given["K"] = real_array(given["K"], "K").copy()
    return given


def _limit(given: dict[str, Any]) -> dict[str, Any]:
    """Return the limit of an integrator as the number or the pair that bdsim heeds."""
    limit = given.get("I_limit")
    if limit is not None:
        hint = "give a number, or the least and the greatest value"
        value = real_array(limit, "I_limit", (), (1,), (2,), hint=hint, finite=False)
        given["I_limit"] = float(value.ravel()[0]) if value.size == 1 else (float(value[0]), float(value[1]))
    return given


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    """Return the limits of an integrator as one number for each state, from one for all or one for each."""
    n = np.size(given.get("x0", 0.0))
    for name in ("min", "max"):
        if given.get(name) is not None:
            hint = "give one number for all states, or one for each, as x0 has them"
            value = real_array(given[name], name, (), (1,), (n,), hint=hint, finite=False)
            given[name] = np.broadcast_to(value, (n,)).copy()
    return given


def _with_inputs(given: dict[str, Any]) -> dict[str, Any]:
    """Return functions that take as many arguments as there are inputs, fargs and the dict of a persistent one.

    Those of Python and NumPy name all that they could take; what others have by default is handed to them by name.
    """
    functions, nin, extra = given.get("func"), given.get("nin", 1), given.get("fargs") or ()
    if not isinstance(nin, int) or given.get("fkwargs"):
        return given
    count = nin + len(extra) + bool(given.get("persistent"))
    if isinstance(functions, (list, tuple)):
        return {**given, "func": [_with_arguments(f, count) for f in functions]}
    return {**given, "func": _with_arguments(functions, count), "fkwargs": _defaults(functions, count)}


def _with_arguments(function: Any, count: int) -> Any:
    """Return a function of Python or NumPy as one that shows so many arguments; others as they are."""
    if not _of_library(function):
        return function
    if isinstance(function, np.ufunc) and function.nin != count:
        raise InvalidValue(f"func: numpy.{function.__name__} takes {function.nin} arguments, nin={count}")
    with contextlib.suppress(ValueError):  # of some nobody knows which they take
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if len(parameters) == count or len(needed) > count:
            return function

    def call(*u: Any) -> Any:
        return function(*u)

    each = [inspect.Parameter(f"u{k}", inspect.Parameter.POSITIONAL_ONLY) for k in range(count)]
    call.__signature__ = inspect.Signature(each)  # type: ignore[attr-defined]
    return call


def _of_library(function: Any) -> bool:
    """Tell whether a function is one of Python or NumPy."""
    numpys = str(getattr(function, "__module__", "")).partition(".")[0] == "numpy"
    return numpys or isinstance(function, (BuiltinFunctionType, np.ufunc))


def _defaults(function: Any, count: int) -> dict[str, Any] | None:
    """Return by name what a function has by default besides so many arguments, of which bdsim counts all."""
    if _of_library(function):
        return None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of some of C nobody knows
        return None
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    more = [*by_place[count:], *(p for p in parameters if p.kind is p.KEYWORD_ONLY)]
    if any(p.default is p.empty or p.kind is p.POSITIONAL_ONLY for p in more):
        return None  # which bdsim refuses
    return {p.name: p.default for p in more} or None


_CHANGES = {
    "FUNCTION": _with_inputs,
    "GAIN": _gain,
    "INTEGRATOR": _limits,
    "INTEGRATOR_S": _limits,
    "LTI_SS": _matrices,
    "LTI_SS_S": _matrices,
    "PID": _limit,
    "PID_S": _limit,
}
