"""Checkers of single arguments: words that can stand somewhere, switches, counts, numbers greater than zero.

Each returns the clean value, or raises an error that names the argument. Arrays are read by `cstormpy.arrays`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import numbers
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from cstormpy.arrays import real_number
from cstormpy.errors import (
    CstormError,
    InvalidType,
    InvalidValue,
    NonFinite,
    UnknownArgument,
    shown,
    unknown_name,
)

F = TypeVar("F", bound=Callable[..., Any])

MOST = 100_000
"""Most control points, links and the like that are accepted."""


def one_of(value: Any, what: str, choices: Sequence[Any]) -> Any:
    """Return the word, number or truth value of the choices that a value is.

    >>> one_of("hold", "outside", ("hold", "extrapolate")), one_of(1, "live", (True, False, "auto"))
    ('hold', True)
    """
    for choice in choices:
        if value is choice:
            return choice
    if isinstance(value, (str, numbers.Real)) or type(value).__name__ == "bool":  # NumPy has a bool of its own
        for choice in choices:
            if isinstance(value, str) == isinstance(choice, str) and value == choice:
                return choice
    wanted = [repr(choice) for choice in choices]
    listed = " or ".join([", ".join(wanted[:-1]), wanted[-1]] if len(wanted) > 1 else wanted)
    raise InvalidValue(f"{what}: expected {listed}, got {shown(value)}")


def option(value: Any, what: str, choices: Collection[str]) -> str:
    """Return the word of the choices that a value is; for another one the nearest of them is in the message."""
    if not isinstance(value, str) or value not in choices:
        raise unknown_name(what, value, choices)
    return value


def entries(value: Any, what: str, of: str = "names") -> list[Any]:
    """Return the entries of a list, a tuple or whatever else can be gone through, but for text.

    >>> entries(("shoulder", "elbow"), "joints")
    ['shoulder', 'elbow']
    """
    with contextlib.suppress(TypeError):  # of an array that holds one number, which says that it can be gone through
        if not isinstance(value, (str, bytes)):
            return list(value)
    raise InvalidType(f"{what}: expected a list of {of}, got {shown(value)}")


def function(value: Any, what: str, of: str) -> Any:
    """Return what can be called with the arguments that `of` tells of."""
    if not callable(value):
        raise InvalidType(f"{what}: expected a function of {of}, got {shown(value)}")
    return value


def takes(method: Callable[..., Any], arguments: tuple[str, ...]) -> bool:
    """Tell whether a function can be called with these arguments."""
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # of C
        return True
    return True


def flag(value: Any, what: str) -> bool:
    """Return True or False; numbers, texts and arrays are neither.

    >>> flag(False, "hold")
    False
    """
    if not isinstance(value, bool) and type(value).__name__ != "bool":
        raise InvalidType(f"{what}: expected True or False, got {shown(value)}")
    return bool(value)


def six_flags(value: Any) -> tuple[bool, ...] | None:
    """Return which of the six directions of a twist are meant, said by True and False or by 1 and 0; None if neither.

    >>> six_flags([1, 1, 1, 0, 0, 0])
    (True, True, True, False, False, False)
    """
    said = list(value) if isinstance(value, Iterable) else []
    clear = all((isinstance(one, numbers.Real) or type(one).__name__ == "bool") and one in (0, 1) for one in said)
    return tuple(bool(one) for one in said) if len(said) == 6 and clear else None


def positive(value: Any, what: str) -> float:
    """Return one finite float greater than zero.

    >>> positive(2, "duration")
    2.0
    """
    if value.__class__ is float and 0.0 < value < math.inf:
        return value
    wanted = f"{what}: expected a positive number, got {shown(value)}"
    try:
        number = real_number(value, what)
    except InvalidType:
        raise InvalidType(wanted) from None
    except NonFinite:
        raise NonFinite(wanted) from None
    if number <= 0.0:
        raise InvalidValue(wanted)
    return number


def whole_number(value: Any, what: str, least: int, most: int = MOST) -> int:
    """Return an integer from `least` to `most`.

    >>> whole_number(3, "order", 0)
    3
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidType(f"{what}: expected a whole number, got {shown(value)}")
    number = int(value)
    if number < least:
        raise InvalidValue(f"{what}: expected at least {least}, got {shown(number)}")
    if number > most:
        raise InvalidValue(f"{what}: expected at most {most}, got {shown(number)}")
    return number


def mapping(value: Any, what: str) -> dict[Any, Any]:
    """Return a dict, an empty one for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidType(f"{what}: expected a dict, got {shown(value)}")
    return dict(value)


def argument_slip(
    who: str, made: Any, args: Sequence[Any], kwargs: Mapping[str, Any], more: Iterable[str] = ()
) -> CstormError | None:
    """Return what is wrong with the names or the number of the arguments of a method, those behind `self`.

    `more` are the names that it passes on, if it does.
    """
    code = getattr(made, "__code__", None)
    if code is None:
        return None
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    by_place = known[: code.co_argcount - 1]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        known = tuple(dict.fromkeys([*known, *more]))
    for name in kwargs:
        if name not in known:
            return unknown_name(f"{who}: argument", name, known, UnknownArgument)
    if len(args) > len(by_place) and not code.co_flags & inspect.CO_VARARGS:
        taken = ", ".join(by_place) or "nothing"
        return InvalidType(f"{who}: takes {taken} by place, got {len(args)}; give the others by name")
    needed = [p.name for p in inspect.signature(made).parameters.values() if p.default is p.empty and p.name in known]
    for name in needed:
        if name not in by_place[: len(args)] and name not in kwargs:
            written = ", ".join(each if each in by_place else f"{each}=..." for each in needed)
            return InvalidType(f"{who}: needs {name!r}, as in {who}({written})")
    return None


def tells_arguments(**elsewhere: str) -> Callable[[F], F]:
    """Return a decorator of methods that say which argument they lack or do not take, and the nearest that they do.

    `elsewhere` tells of names that somebody may try here where what is meant is said.
    """

    def decorated(method: F) -> F:
        @functools.wraps(method)
        def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return method(self, *args, **kwargs)
            except TypeError:
                slip = argument_slip(method.__name__, method, args, kwargs, kwargs)
                if slip is None:
                    raise
                for name, where in elsewhere.items():
                    if isinstance(slip, UnknownArgument) and name in kwargs:
                        slip = UnknownArgument(f"{method.__name__}: argument {name!r} does not exist; {where}")
                raise slip from None

        return cast("F", asked)

    return decorated
