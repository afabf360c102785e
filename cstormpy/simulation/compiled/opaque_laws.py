"""Laws that cannot be written down, within a controller that can: compiled by numba, or asked in Python.

A controller's output is traced with all its laws. One of them that asks a number, or does what only Python can do, is
left out: a call stands in the trace for it, made while it is the active one. So is a law that has to find something
first, as its motion: where it becomes active, the run asks the controller itself, and the law is there from then on.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from cstormpy.control.blend import LawSet
from cstormpy.control.user_laws import OwnLaw
from cstormpy.graph.arrays import symbols
from cstormpy.simulation.compiled.held_numbers import HeldNumbers
from cstormpy.simulation.compiled.methods_as_functions import MethodAsFunction
from cstormpy.simulation.compiled.traced import untraceable
from cstormpy.simulation.compiled.untranslated import Refused

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
            if law is own and len(shapes) > 3:
                raise Refused("it is given what to follow")
            torque = _by_numba(assembly, law, own, f"law {name}")
            torque(None, *[np.zeros(shape) if shape else 0.0 for shape in shapes[:3]])
        except Refused as error:
            why = f"{why}; numba: {error}"
        else:
            found[id(law)], way = {"__call__" if own is not law else "torque": torque}, "compiled by numba"
        assembly.ways.append((str(block.name), f"law {name}: {way}, as it cannot be traced: {why}"))
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
    held = HeldNumbers(tuple(law.gains), lambda name: law.gains[name], law.set_gain)

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
