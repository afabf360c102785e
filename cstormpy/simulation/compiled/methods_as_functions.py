"""Methods that read numbers of their object, as functions of these numbers, which numba compiles."""

from __future__ import annotations

import keyword
import types
from collections import namedtuple
from typing import Any

from cstormpy.simulation.compiled.held_numbers import is_real
from cstormpy.simulation.compiled.untranslated import Refused

__all__ = ["MethodAsFunction"]


class MethodAsFunction:
    """A method as a function of its arguments, and then of the numbers that it reads of its object.

    The object is replaced by a named tuple of what it reads, of which nothing but numbers and arrays is known.

    Parameters
    ----------
    owner : object
    method : str
        The name of a method that is written in Python.
    arguments : sequence of str
        The names of the arguments that it is given.

    Attributes
    ----------
    function : function
    names : tuple of str
        Of the numbers and arrays that are arguments.
    whole : dict of str to int
        Whole numbers and truths, which count and choose: they are part of the function.

    Raises
    ------
    Refused
        Where the method is none of Python's.
    """

    def __init__(self, owner: Any, method: str, arguments: tuple[str, ...]) -> None:
        rule = getattr(type(owner), method, None)
        if not isinstance(rule, types.FunctionType):
            raise Refused(f"its method {method} is a {type(rule).__name__}")
        values = {name: getattr(owner, name, None) for name in _names_in(rule.__code__) if _may_be_field(name)}
        self.names = tuple(name for name, value in values.items() if is_real(value))
        self.whole = {name: value for name, value in values.items() if isinstance(value, (bool, int))}
        fields = [*self.names, *self.whole]
        given = [*self.names, *(repr(value) for value in self.whole.values())]
        from cstormpy.kernels.user_functions import callable_by_numba

        head, held = ", ".join([*arguments, *self.names]), f"Held({', '.join(given)})"
        code = rule.__code__
        # on the line of the method, which is what messages name
        text = "\n" * (code.co_firstlineno - 1) + f"def f({head}): return method({held}, {', '.join(arguments)})\n"
        space: dict[str, Any] = {"__name__": rule.__module__, "method": callable_by_numba(rule), "Held": _held(fields)}
        exec(compile(text, code.co_filename, "exec"), space)
        self.function: Any = space["f"]
        self.function.__name__ = rule.__qualname__.rpartition(".<locals>.")[2]
        self.function.written = rule


def _held(fields: list[str]) -> type:
    """Return a named tuple that stands for an object of which some numbers are known."""
    base: Any = namedtuple("Held", fields)  # type: ignore[misc]

    class Held(base):
        def __getattr__(self, name: str) -> Any:
            raise Refused(f"it reads self.{name}, which is no number")

        def __setattr__(self, name: str, value: Any) -> None:
            raise Refused(f"it changes self.{name}")

    return Held


def _names_in(code: types.CodeType) -> list[str]:
    """Return the names of attributes and globals that a function reads, and those within it."""
    inner = [
        name for constant in code.co_consts if isinstance(constant, types.CodeType) for name in _names_in(constant)
    ]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _may_be_field(name: str) -> bool:
    return not name.startswith("_") and not keyword.iskeyword(name)
