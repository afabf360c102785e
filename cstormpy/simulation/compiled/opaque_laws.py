"""Laws that cannot be written down, within a controller that can: compiled by numba, or asked in Python.

A controller's output is traced with all its laws. One of them that asks a number, or does what only Python can do, is
left out: what it gives is one more signal that the trace is given, found by the law itself while it is the active one.
So is a law that has to find something first, as its motion: where it becomes active, the run asks the controller
itself, and the law is there from then on.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cstormpy.control.blend import LawSet
from cstormpy.control.own import OwnLaw
from cstormpy.graph.arrays import symbols
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable
from cstormpy.simulation.compiled.emitters_functions import user_call
from cstormpy.simulation.compiled.registry import Value
from cstormpy.simulation.compiled.traced import untraceable

__all__ = ["OpaqueLaws", "is_needed", "laws_of", "unready", "untraced"]

Values = list[Value]


def laws_of(block: Any) -> LawSet | None:
    """Return the laws of a controller; None of any other block."""
    laws = getattr(block, "laws", None)
    return laws if isinstance(laws, LawSet) else None


class OpaqueLaws:
    """The laws that a trace leaves out.

    Attributes
    ----------
    torques : list of Value
        What they give, one after the other.
    methods : dict of int to dict
        The methods that stand in a twin for theirs, by the `id` of the law.
    found : sequence of symbols
        What they give in the trace.
    """

    def __init__(self) -> None:
        self.torques: Values = []
        self.methods: dict[int, dict[str, Callable[..., Any]]] = {}
        self.found: Any = ()

    def leave_out(self, law: Any, torque: Value) -> None:
        """Leave a law out; what it gives is said by expressions."""
        k = len(self.torques)
        self.torques.append(torque)
        self.methods[id(law)] = {"__call__": lambda twin, *_, **__: self.found[k]}


def unready(e: Emitter, block: Any) -> OpaqueLaws:
    """Return the laws of a block that have to find something before they can be asked."""
    made, laws = OpaqueLaws(), laws_of(block)
    if laws is None:
        return made
    for k, law in enumerate(laws.laws.values()):
        if not e.depends(partial(is_needed, laws, k)):
            made.methods[id(law)] = {"__call__": _fails_with_torques, "left": _fails}
    return made


def is_needed(laws: Any, k: int) -> bool:
    """Tell whether a law is to be written down: it has found what it needs, or is the active one, and finds it now."""
    return bool(list(laws.laws.values())[k].ready or laws.active == k)


def _fails(twin: Any, t: Any, *_: Any, **__: Any) -> float:
    t.graph.require(1.0)
    return 1.0


def _fails_with_torques(twin: Any, t: Any, *_: Any, **__: Any) -> Any:
    _fails(twin, t)
    return symbols([0.0] * len(twin.motors))


def untraced(e: Emitter, block: Any, given: Values, made: OpaqueLaws) -> bool:
    """Leave out those laws that cannot be traced by themselves as well; return whether there are any.

    `given` are the time, q, q̇ and, maybe, the reference, which laws take.
    """
    laws, found = laws_of(block), False
    if laws is None:
        return False
    for k, law in enumerate(laws.laws.values()):
        if id(law) in made.methods:
            continue
        why = untraceable(law, _asked, [v.shape for v in given])
        if why is None:
            continue
        found = True
        out, active = e.variables(len(law.motors)), e.number(lambda: float(laws.active))
        with e.under(f"if {active} == {k}.0:"):
            e.assign(out, _torque(e, law, given, why))
        made.leave_out(law, out)
    return found


def _asked(twin: Any, t: Any, q: Any, qd: Any, *target: Any) -> list[Any]:
    return [twin(t, q, qd, target or None)]


def _torque(e: Emitter, law: Any, given: Values, why: str) -> Value:
    """Return the torques of a law by numba, or by the law itself."""
    samples = [0.0, *(np.zeros(v.shape) for v in given[1:])]
    count = len(law.motors)
    own = law.own if isinstance(law, OwnLaw) else law
    name = str(getattr(own, "__name__", type(own).__name__))
    if isinstance(own, types.FunctionType):
        try:
            parts = user_call(e, own, given[:3], samples[:3])
        except Untranslatable as error:
            why += f"; numba: {error}"
        else:
            e.told(f"law {name}: compiled by numba, as it cannot be traced: {why}")
            return np.concatenate([np.atleast_1d(part) for part in parts]).reshape(count)
    e.told(f"law {name}: asked in Python, as it cannot be traced: {why}")

    def ask(t: float, values: list[Any]) -> list[Any]:
        return [law(t, values[0], values[1], tuple(values[2:]) or None)]

    return e.ask_python(ask, given[1:], samples[1:], [np.zeros(count)])[0]
