"""User's functions compiled by numba, where they cannot be traced, and what tells two of them apart."""

from __future__ import annotations

import builtins
import enum
import functools
import hashlib
import inspect
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value, emits_guard

__all__ = ["fingerprint", "function_by_numba", "user_call"]

Values = list[Value]


def function_by_numba(e: Emitter, block: Any, u: Values) -> Values:
    """Return the outputs of FUNCTION by its function, compiled by numba."""
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


@emits_guard("bdsim.blocks.sinks.Stop")
def _stop(e: Emitter, block: Any, u: Values, detector: Any) -> Value:
    given = block._inport_slots[0].value
    stops = e.depends(lambda: block.stopfunc)
    found = u[0] if stops is None else user_call(e, stops, u[:1], [given])[0]
    sample = given if stops is None else stops(given)
    if np.asarray(sample).dtype.kind == "b":
        return e.each("1.0 if {0} != 0.0 else -1.0", found)
    return found


def _extra(func: Callable[..., Any], count: int, args: Any, kwargs: Any) -> list[Any]:
    """Return the further arguments of a function, in their order."""
    if not kwargs:
        return list(args)
    try:
        signature = inspect.signature(func)
        bound = signature.bind(*[0.0] * count, *args, **kwargs)
    except (TypeError, ValueError) as error:
        raise Untranslatable(f"its arguments do not fit: {error}") from error
    if not bound.kwargs:
        return list(bound.args[count:])
    bound.apply_defaults()  # one stands behind another that is not given
    if bound.kwargs:
        raise Untranslatable("takes arguments by keyword only")
    return list(bound.args[count : 1 + max(list(signature.parameters).index(name) for name in kwargs)])


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
        if isinstance(sample, list):
            e.fail_if(f"len({result}) != {len(sample)}")
        return [_part(e, f"{result}[{k}]", part) for k, part in enumerate(sample)]
    return [_part(e, result, sample)]


def _part(e: Emitter, text: str, sample: Any) -> Value:
    """Return a part of a result in variables; an array is to have the shape that it had at the start."""
    value = _parts(text, sample)
    if value.shape:
        e.fail_if(f"{text}.shape != {value.shape}")
    return e.let(value)


def _parts(text: str, sample: Any) -> Value:
    shape = np.shape(sample)
    if np.asarray(sample).dtype.kind not in "biuf":
        raise Untranslatable(f"returns a {type(sample).__name__}")
    if isinstance(sample, (list, tuple)):
        raise Untranslatable("returns a list within a list")
    # a truth value counts as 1 or 0, and is made a number by a product: numba knows no float(True)
    form = "float(1.0 * {0})" if np.asarray(sample).dtype.kind == "b" else "float({0})" if shape == () else "{0}"
    text += "[()]" if isinstance(sample, np.ndarray) and shape == () else ""
    if shape == ():
        return named(form.format(text))
    out = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        out[index] = form.format(f"{text}[{', '.join(map(str, index))}]")
    return out


def _plain(
    func: Callable[..., Any], arguments: Values, samples: list[Any], e: Emitter
) -> tuple[Callable[..., Any], Values, list[Any]]:
    """Return a function that a compiler takes, with the bound arguments among the others."""
    while isinstance(func, functools.partial):
        arguments, samples = _bound(func, [_number(e, v) for v in func.args], arguments, samples, e)
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
        found, keywords = [], dict(func.keywords)
        for name, parameter in inspect.signature(func.func).parameters.items():
            if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
                raise Untranslatable("takes arguments by keyword only")
            if name in keywords:
                held = keywords.pop(name)
                found.append((_number(e, held), held))
            elif (value := next(values, None)) is not None:
                found.append(value)
            elif keywords:  # those behind it are given
                found.append((_number(e, parameter.default), parameter.default))
    return [value for value, _ in found], [sample for _, sample in found]


def _number(e: Emitter, value: Any) -> Value:
    """Return a number or an array, which may be written into later."""
    return e.number(lambda: value)


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
    """Return what tells functions apart, and whether another process would find the same.

    Told apart are their code and the values that it reads: what stands in their module, in a module that they name, in
    what surrounds them and in their defaults.
    """
    seen: dict[Any, int] = {}
    parts: list[str] = []
    lasting = all([_describe(f, parts, seen) for f in functions])
    return hashlib.sha256("\n".join(parts).encode()).hexdigest(), lasting


_PLAIN = (bool, int, float, complex, str, bytes, type(None), types.EllipsisType, np.generic)
#: Of these what stands in a module does not change while a version is installed.
_INSTALLED = frozenset({"numpy", "scipy", "numba", "cstormpy"})


def _describe(value: Any, parts: list[str], seen: dict[Any, int], names: tuple[str, ...] = ()) -> bool:
    """Add what a value is; return whether that holds in another process too.

    Of a module that counts which goes by one of `names`, those in the code that reaches it.
    """
    if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
        parts.append(f"{type(value).__name__} {value!r}")
        return True
    key = (id(value), names) if isinstance(value, types.ModuleType) else id(value)
    if key in seen:
        parts.append(f"the {seen[key]}th")
        return True
    seen[key] = len(seen)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        parts.append(f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}")
        return True
    if isinstance(value, types.ModuleType):
        parts.append(f"module {value.__name__}")
        read = () if _is_installed(value) else [name for name in names if hasattr(value, name)]
        return all([_describe_named(name, getattr(value, name), parts, seen, names) for name in read])
    if isinstance(value, (types.BuiltinFunctionType, np.ufunc)):
        parts.append(f"{getattr(value, '__module__', '')}.{value.__name__}")
        return True
    if isinstance(value, type):
        return _describe_class(value, parts, seen)
    if hasattr(value, "py_func"):
        return _describe_compiled(value, parts, seen)
    if isinstance(value, types.FunctionType):
        if str(value.__module__).split(".")[0] in ("numpy", "scipy", "math"):
            parts.append(f"{value.__module__}.{value.__qualname__}")
            return True
        parts.append("function")
        return _describe_function(value, parts, seen)
    return _describe_whole(value, parts, seen)


#: Functions that users have compiled by numba, as they were when they were met first.
_met: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
#: Stands among what has been seen where that is within such a function.
_WITHIN = "within a compiled function"


def _describe_compiled(value: Any, parts: list[str], seen: dict[Any, int]) -> bool:
    """Add a function that a user has compiled: what it reads has become part of it, and stays when that changes."""
    parts.append("compiled")
    if _WITHIN in seen:
        return _describe(value.py_func, parts, seen)
    own: list[str] = []
    lasting = _describe(value.py_func, own, {_WITHIN: 0, id(value): 1})
    parts += own
    return lasting and _met.setdefault(value, "\n".join(own)) == "\n".join(own)


def _describe_whole(value: Any, parts: list[str], seen: dict[Any, int]) -> bool:
    """Add what a value is that is made of others."""
    if isinstance(value, enum.Enum):
        parts.append(f"{type(value).__qualname__}.{value.name}")
        return _describe(value.value, parts, seen)
    if isinstance(value, (frozenset, set)):
        value = sorted(value, key=repr)
    if isinstance(value, (tuple, list)):
        parts.append(f"{type(value).__name__} of {len(value)} {getattr(value, '_fields', '')}")
        return all([_describe(item, parts, seen) for item in value])
    if isinstance(value, dict):
        parts.append(f"dict of {len(value)}")
        return all([_describe(item, parts, seen) for pair in value.items() for item in pair])
    if isinstance(value, (staticmethod, classmethod)):
        return _describe(value.__func__, parts, seen)
    if isinstance(value, property):
        return _describe(value.fget, parts, seen)
    parts.append(f"object {id(value)}")
    return False


def _is_installed(module: types.ModuleType) -> bool:
    """Tell whether a module belongs to the language or a library on which this one stands: not to the user."""
    top = module.__name__.split(".")[0]
    path = getattr(module, "__file__", None)
    own = path is None or path.startswith(os.path.dirname(os.__file__))  # a user's may be called as one of those
    return top in _INSTALLED or (top in sys.stdlib_module_names and own)


def _describe_named(name: str, value: Any, parts: list[str], seen: dict[Any, int], names: tuple[str, ...]) -> bool:
    parts.append(name)
    return _describe(value, parts, seen, names)


def _describe_class(kind: type, parts: list[str], seen: dict[Any, int]) -> bool:
    """Add a class by its values and functions, or by its name if it is not one of the user's."""
    parts.append(f"{kind.__module__}.{kind.__qualname__} of {[base.__qualname__ for base in kind.__mro__]}")
    if issubclass(kind, enum.Enum):
        members = [(name, member.value) for name, member in kind.__members__.items()]
        return all([_describe_named(name, value, parts, seen, ()) for name, value in members])
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _describe(tuple(kind._fields), parts, seen)
    held = [
        (name, value)
        for base in kind.__mro__
        if not _is_installed(sys.modules.get(base.__module__, builtins))
        for name, value in vars(base).items()
        if isinstance(value, types.FunctionType) or not name.startswith("__")
    ]
    return all([_describe_named(name, value, parts, seen, ()) for name, value in held])


def _describe_function(func: types.FunctionType, parts: list[str], seen: dict[Any, int]) -> bool:
    names = _names(func.__code__)
    lasting = _describe_code(func.__code__, func.__globals__, parts, seen, names)
    cells = [cell.cell_contents for cell in func.__closure__ or ()]
    held = (func.__defaults__, func.__kwdefaults__, *cells)
    return all([lasting, *(_describe(value, parts, seen, names) for value in held)])


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in a function and in those within it."""
    inner = [name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names(constant)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _describe_code(
    code: types.CodeType, space: dict[str, Any], parts: list[str], seen: dict[Any, int], names: tuple[str, ...]
) -> bool:
    parts.append(f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}")
    lasting = True
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            lasting &= _describe_code(constant, space, parts, seen, names)
        else:
            lasting &= _describe(constant, parts, seen)
    for name in code.co_names:
        if name in space:
            lasting &= _describe(space[name], parts, seen, names)
    return lasting
