"""Laws that cannot be written down, within a controller that can: compiled by numba, or asked in Python.

A controller's output is traced with all its laws. One of them that asks a number, or does what only Python can do, is
left out: a call stands in the trace for it, made while it is the active one. So is a law that has to find something
first, as its motion: where it becomes active, the run asks the controller itself, and the law is there from then on.
"""

from __future__ import annotations

import dis
import inspect
import types
from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from cstormpy.control.blend import LawSet
from cstormpy.control.user_laws import OwnLaw
from cstormpy.graph.arrays import symbols
from cstormpy.simulation.compiled.numbers import HeldNumbers, held_by, is_real
from cstormpy.simulation.compiled.traced import untraceable
from cstormpy.simulation.compiled.untranslated import WIDEST, Refused
from cstormpy.simulation.copies import blocks_read
from cstormpy.simulation.repeatability import say_memory


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


#: What stands for the method of a law in its twin, by its name.
Methods = dict[str, Callable[..., Any]]


def laws_of(block: Any) -> LawSet | None:
    """Return the laws of a controller; None of any other block."""
    laws = getattr(block, "laws", None)
    return laws if isinstance(laws, LawSet) else None


def unready(laws: LawSet, depends: Callable[..., Any]) -> dict[int, Methods]:
    """Return what stands for the laws that have to find something before they can be asked, by their `id`."""
    needed = partial(_needed, laws)
    depends(needed, needed())
    return {
        id(law): {"__call__": _fails_with_torques, "left": _fails}
        for law, is_needed in zip(laws.laws.values(), needed(), strict=True)
        if not is_needed
    }


def stand_ins(assembly: Any, block: Any, known: Mapping[int, Any]) -> dict[int, Methods]:
    """Return what stands for the laws of a controller that cannot be traced by themselves, by their `id`.

    Parameters
    ----------
    assembly : Assembly
        Which calls functions by numba (`by_numba`) and in Python (`in_python`), and is told the way of each.
    block : Block
    known : mapping
        What stands for some of the laws already.
    """
    laws, found = laws_of(block), dict[int, Methods]()
    for law in laws.laws.values() if laws is not None else ():
        n = (law.mech.n,)
        shapes = [(), n, n, *([n] * (3 if block.nin > 3 else 0))]
        own = law.own if isinstance(law, OwnLaw) else law
        why = None if id(law) in known else untraceable(law, _asked, shapes)
        if why is None:
            continue
        name = str(getattr(own, "__name__", type(own).__name__))
        found[id(law)], way = {"__call__": _in_python(assembly, law, name)}, "asked in Python"
        try:
            if blocks_read(law):
                raise Refused("it names a block")
            if law is own and len(shapes) > 3:
                raise Refused("it is given what to follow")
            torque = _by_numba(assembly, law, own, f"law {name}")
            torque(None, *[np.zeros(shape) if shape else 0.0 for shape in shapes[:3]])
        except Refused as error:
            why = f"{why}; numba: {error}"
        else:
            found[id(law)], way = {"__call__" if own is not law else "torque": torque}, "compiled by numba"
        assembly.ways.append((str(block.name), f"law {name}: {way}, as it cannot be traced: {why}"))
        say_memory(block, f"law {name} ", why)
    return found


def _asked(twin: Any, t: Any, q: Any, qd: Any, *target: Any) -> list[Any]:
    return [twin(t, q, qd, target or None)]


def _by_numba(assembly: Any, law: Any, own: Any, role: str) -> Callable[..., Any]:
    """Return what stands for the call of a law: a call of a function, or of a method of its numbers, compiled."""
    function, held = own, HeldNumbers.none()
    if not isinstance(own, types.FunctionType):
        if len(law.modes) > 1:
            raise Refused("it has phases")
        made = MethodAsFunction(own, getattr(law, "method", "torque"), ("t", "q", "qd"))
        function, held = made.function, HeldNumbers(made.names, partial(getattr, own), partial(setattr, own))
        for name, value in made.whole.items():
            assembly.numbers.depends(partial(getattr, own, name), value)
    more, read = [reader() for reader in held.readers()], [assembly.numbers.read(r) for r in held.readers()]

    def torque(twin: Any, t: Any, q: Any, qd: Any, *_: Any) -> Any:
        samples = [0.0, np.zeros(np.shape(q)), np.zeros(np.shape(qd)), *more]
        parts = assembly.by_numba.call(function, [t, q, qd, *read], samples, role=role, method=(law.torque, held))
        return symbols(np.concatenate([np.atleast_1d(part) for part in parts]))

    return torque


def _in_python(assembly: Any, law: Any, name: str) -> Callable[..., Any]:
    """Return what stands for the call of a law in the trace: a call of the law itself while the diagram runs."""
    count, what = len(law.motors), f"law {name}"
    gains = HeldNumbers(tuple(law.gains), lambda name: law.gains[name], law.set_gain)
    held = gains.beside(held_by(*blocks_read(law, type(law).torque)))

    def ask(t: float, values: list[Any]) -> list[Any]:
        return [law(t, values[0], values[1], tuple(values[2:]) or None)]

    def torque(twin: Any, t: Any, q: Any, qd: Any, reference: Any = None, *_: Any) -> Any:
        given = [q, qd, *(reference or ())]
        samples = [np.zeros(np.shape(v)) for v in given]
        return assembly.in_python(ask, given, samples, [np.zeros(count)], what, held)[0]

    return torque


def _needed(laws: LawSet) -> list[bool]:
    """Tell of each law whether it is to be written down: it has found what it needs, or is the active one."""
    return [bool(law.ready) or laws.active == k for k, law in enumerate(laws.laws.values())]


def _fails(twin: Any, t: Any, *_: Any, **__: Any) -> float:
    t.graph.require(1.0)
    return 1.0


def _fails_with_torques(twin: Any, t: Any, *_: Any, **__: Any) -> Any:
    _fails(twin, t)
    return symbols([0.0] * len(twin.motors))
