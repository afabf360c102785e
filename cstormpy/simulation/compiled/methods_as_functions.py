"""Methods that read numbers of their object, as functions of these numbers, which numba compiles."""

from __future__ import annotations

import dis
import inspect
import types
from collections import namedtuple
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.held_numbers import is_real
from cstormpy.simulation.compiled.untranslated import WIDEST, Refused


class MethodAsFunction:
    """A method as a function of its arguments, and then of the numbers that it reads of its object.

    The object is replaced by a named tuple of what it reads, which are numbers and arrays.

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
        Where the method is none of Python's, or needs more of its object than numbers.
    """

    def __init__(self, owner: Any, method: str, arguments: tuple[str, ...]) -> None:
        rule = inspect.getattr_static(type(owner), method, None)
        if method in getattr(owner, "__dict__", ()):
            raise Refused(f"its {method} is no method of its class")
        if not isinstance(rule, types.FunctionType):
            raise Refused(f"its method {method} is a {type(rule).__name__}")
        values: dict[str, Any] = {name: getattr(owner, name, None) for name in _read_by(rule)}
        self.names = tuple(name for name, value in values.items() if is_real(value))
        self.whole = {name: value for name, value in values.items() if type(value) in (bool, int)}
        for name in values:
            if name not in self.names and name not in self.whole:
                raise Refused(f"it reads self.{name}, which is no number")
            if name.startswith("_"):
                raise Refused(f"it reads self.{name}, which is private")
        size = sum([np.size(values[name]) for name in self.names])
        if size > WIDEST:
            raise Refused(f"it reads {size} numbers of self")
        from cstormpy.kernels.user_functions import callable_by_numba

        # names that are none of the object's, which may call its numbers as the arguments are called
        held = [f"_{k}" for k in range(len(self.names))]
        given = ", ".join([*held, *map(repr, self.whole.values())])
        code, kind = rule.__code__, namedtuple("Held", [*self.names, *self.whole])
        head, passed = ", ".join([*arguments, *held]), ", ".join(arguments)
        # on the line of the method, which is what messages name
        text = "\n" * (code.co_firstlineno - 1) + f"def f({head}): return method(Held({given}), {passed})\n"
        space: dict[str, Any] = {"__name__": rule.__module__, "method": callable_by_numba(rule), "Held": kind}
        exec(compile(text, code.co_filename, "exec"), space)
        self.function: Any = space["f"]
        self.function.__name__ = rule.__qualname__.rpartition(".<locals>.")[2]
        self.function.written = rule
        self.function.held = kind, len(self.names), list(self.whole.values())


def _read_by(rule: types.FunctionType) -> list[str]:
    """Return the names of what a method reads of its object; refuse one that does anything else with it."""
    code = rule.__code__
    if not code.co_argcount:
        raise Refused("it takes no self by its name")
    me, read = code.co_varnames[0], dict[str, None]()
    if me in code.co_cellvars:
        raise Refused(f"a function within it uses {me}")
    if "__class__" in code.co_freevars:
        raise Refused("it uses super()")
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    for step, behind in zip(steps, [*steps[1:], None], strict=True):
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)  # newer Pythons load two at once
        if "_FAST" not in step.opname or me not in names:
            continue
        last = behind is not None and names.index(me) == len(names) - 1 and "LOAD_FAST" in step.opname
        if behind is None or not last or behind.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            raise Refused(f"it does more with {me} than to read numbers")
        read[behind.argval] = None
    return list(read)
