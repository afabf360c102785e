"""Emitter of bdsim's FUNCTION and of the functions that STOP takes, and what tells two user's functions apart."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value, emits, emits_guard

__all__ = ["fingerprint", "user_call"]

Values = list[Value]


@emits("bdsim.blocks.functions.Function")
def _function(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if block.userdata is not None:
        raise Untranslatable("keeps data between its calls (persistent=True)")
    signals = [slot.value for slot in block._inport_slots]
    if any(isinstance(value, dict) for value in u):
        raise Untranslatable("is given a dict, which numba does not take")
    func = e.depends(lambda: block.func)
    if callable(func):
        parts = _called(e, block, func, u, signals)
        if len(parts) != block.nout:
            raise Untranslatable(f"returns {len(parts)} values for {block.nout} outputs")
        return parts
    return [part for each in func for part in _called(e, block, each, u, signals, whole=True)]


def _called(e: Emitter, block: Any, func: Any, u: Values, signals: list[Any], whole: bool = False) -> Values:
    """Emit the call of a function of FUNCTION with the inputs and the further arguments that the block holds."""

    def further() -> list[Any]:
        return _extra(func, len(u), block.args, block.kwargs)

    def number(k: int) -> Value:
        return e.number(lambda: further()[k])

    given = further()
    numbers = [number(k) for k in range(len(given))]
    return user_call(e, func, [*u, *numbers], [*signals, *given], whole)


@emits_guard("bdsim.blocks.sinks.Event")
def _event(e: Emitter, block: Any, u: Values, detector: Any) -> Value:
    return u[0]


@emits_guard("bdsim.blocks.sinks.Stop")
def _stop(e: Emitter, block: Any, u: Values, detector: Any) -> Value:
    if block.stopfunc is None:
        return u[0]
    given = block._inport_slots[0].value
    found = user_call(e, block.stopfunc, u[:1], [given])[0]
    if isinstance(block.stopfunc(given), (bool, np.bool_)):
        return e.each("1.0 if {0} != 0.0 else -1.0", found)
    return found


def _extra(func: Callable[..., Any], count: int, args: Any, kwargs: Any) -> list[Any]:
    """Return the further arguments of a function, in their order."""
    if not kwargs:
        return list(args)
    try:
        bound = inspect.signature(func).bind(*[0.0] * count, *args, **kwargs)
    except (TypeError, ValueError) as error:
        raise Untranslatable(f"its arguments do not fit: {error}") from error
    if bound.kwargs:
        raise Untranslatable("takes arguments by keyword only")
    return list(bound.args[count:])


def user_call(
    e: Emitter, func: Callable[..., Any], arguments: Values, samples: list[Any], whole: bool = False
) -> Values:
    """Emit the call of a function of the user and return what it returns, a list or tuple as its parts.

    What it raises makes the run look at the block by its own methods. `samples` are values of the arguments, from
    which it is seen what it returns.
    """
    func, arguments, samples = _plain(func, arguments, samples, e)
    sample = func(*samples)
    name = f"f{len(e.functions)}"
    given, kinds = [], []
    for value in arguments:
        if value.ndim == 0:
            given.append(str(value))
            kinds.append("f8")
        elif value.ndim == 1:
            given.append(e.store([value], e.scratch(value.size)))
            kinds.append("f8[::1]")
        else:
            rows, columns = value.shape
            given.append(f"{e.store([value], e.scratch(value.size))}.reshape({rows}, {columns})")
            kinds.append("f8[:,::1]")
    e.functions[name] = (func, ", ".join(kinds))
    result = f"r{name[1:]}"
    e.line("try:")
    e.line(f"    {result} = {name}({', '.join(given)})")
    e.line("except Exception:")
    e.line(f"    return {e.block + 1}")
    if isinstance(sample, (list, tuple)) and not whole:
        return [e.let(_parts(f"{result}[{k}]", part)) for k, part in enumerate(sample)]
    return [e.let(_parts(result, sample))]


def _parts(text: str, sample: Any) -> Value:
    shape = np.shape(sample)
    if np.asarray(sample).dtype.kind not in "biuf":
        raise Untranslatable(f"returns a {type(sample).__name__}")
    if isinstance(sample, (list, tuple)):
        raise Untranslatable("returns a list within a list")
    if shape == ():
        return named(f"float({text})")
    out = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        out[index] = f"{text}[{', '.join(map(str, index))}]"
    return out


def _plain(
    func: Callable[..., Any], arguments: Values, samples: list[Any], e: Emitter
) -> tuple[Callable[..., Any], Values, list[Any]]:
    """Return a function that a compiler takes, with the bound arguments among the others."""
    while isinstance(func, functools.partial):
        arguments, samples = _bound(func, [e.number(v) for v in func.args], arguments, samples, e)
        func = func.func
    func = getattr(func, "py_func", func)  # what numba has compiled is compiled anew, so that errors are seen
    if isinstance(func, (types.BuiltinFunctionType, np.ufunc)):
        func = _as_function(func, len(arguments))
    if not isinstance(func, types.FunctionType):
        raise Untranslatable(f"its function is a {type(func).__name__}, not a plain function")
    if func.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        raise Untranslatable("its function is a generator")
    return func, arguments, samples


def _bound(
    func: functools.partial[Any], first: Values, arguments: Values, samples: list[Any], e: Emitter
) -> tuple[Values, list[Any]]:
    """Return the arguments of a partial function's own function."""
    values = iter([*zip(first, func.args, strict=True), *zip(arguments, samples, strict=True)])
    if not func.keywords:
        found = list(values)
    else:
        found = []
        for name, parameter in inspect.signature(func.func).parameters.items():
            if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
                raise Untranslatable("takes arguments by keyword only")
            if name in func.keywords:
                found.append((e.number(func.keywords[name]), func.keywords[name]))
            elif (value := next(values, None)) is not None:
                found.append(value)
    return [value for value, _ in found], [sample for _, sample in found]


def _as_function(known: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a function of the language, of so many arguments, that calls one of NumPy or of the math module."""
    forms: dict[int, Callable[..., Any]] = {
        1: lambda a: known(a),
        2: lambda a, b: known(a, b),
        3: lambda a, b, c: known(a, b, c),
    }
    if count not in forms:
        raise Untranslatable(f"its function is one of {count} arguments that is built in")
    return forms[count]


def fingerprint(functions: list[Callable[..., Any]]) -> tuple[str, bool]:
    """Return what tells functions apart, and whether another process would find the same."""
    seen: dict[int, int] = {}
    parts: list[str] = []
    lasting = all([_describe(f, parts, seen) for f in functions])
    return hashlib.sha256("\n".join(parts).encode()).hexdigest(), lasting


def _describe(value: Any, parts: list[str], seen: dict[int, int]) -> bool:
    """Add what a value is; return whether that holds in another process too."""
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.generic)):
        parts.append(f"{type(value).__name__} {value!r}")
        return True
    if id(value) in seen:
        parts.append(f"the {seen[id(value)]}th")
        return True
    seen[id(value)] = len(seen)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        parts.append(f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}")
        return True
    if isinstance(value, (tuple, list)):
        parts.append(f"{type(value).__name__} of {len(value)}")
        return all([_describe(item, parts, seen) for item in value])
    if isinstance(value, types.ModuleType):
        parts.append(f"module {value.__name__}")
        return True
    if isinstance(value, (types.BuiltinFunctionType, np.ufunc, type)):
        parts.append(f"{getattr(value, '__module__', '')}.{value.__name__}")
        return True
    func = getattr(value, "py_func", value)
    if isinstance(func, types.FunctionType):
        if func.__module__.split(".")[0] in ("numpy", "scipy", "math"):
            parts.append(f"{func.__module__}.{func.__qualname__}")
            return True
        parts.append("function")
        return _describe_function(func, parts, seen)
    parts.append(f"object {id(value)}")
    return False


def _describe_function(func: types.FunctionType, parts: list[str], seen: dict[int, int]) -> bool:
    lasting = _describe_code(func.__code__, func.__globals__, parts, seen)
    cells = [cell.cell_contents for cell in func.__closure__ or ()]
    return all([lasting, *(_describe(v, parts, seen) for v in (func.__defaults__, *cells))])


def _describe_code(code: types.CodeType, space: dict[str, Any], parts: list[str], seen: dict[int, int]) -> bool:
    parts.append(f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}")
    lasting = True
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            lasting &= _describe_code(constant, space, parts, seen)
        else:
            lasting &= _describe(constant, parts, seen)
    for name in code.co_names:
        if name in space:
            lasting &= _describe(space[name], parts, seen)
    return lasting
