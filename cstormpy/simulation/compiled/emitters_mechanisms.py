"""Emitters of the blocks of cstormpy that ask a mechanism how it moves, and of the effort.

The blocks are known by name only: simulation does not import them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.dynamics.tracing import LARGEST
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.load_signals import loads_at
from cstormpy.simulation.compiled.registry import Value, emits, emits_rate

__all__ = ["NO_WRENCH", "Asked", "driven", "energies", "held", "loads", "motion", "stop_torques", "vector", "wrenches"]

Values = list[Value]
#: Blocks with fewer joints are traced.
_MOST = LARGEST["one", False]
#: A slice of no numbers.
NO_WRENCH = "w[0:0]"


class Asked:
    """A mechanism that kernels are asked about: how its tables are passed to them.

    Parameters
    ----------
    e : Emitter
    read : function without arguments
        Gives the mechanism, which may be another one of the same links and joints later.
    owner : object
        Whose mechanism that is: the tables stand once for all questions of one owner.
    """

    def __init__(self, e: Emitter, read: Callable[[], Any], owner: Any) -> None:
        self.e, self.read, self.owner = e, read, owner
        self.mech = read()
        if self.mech.loops:
            raise Untranslatable("has a mechanism with loops, which is written down by its own method alone")
        self.n, self.links = self.mech.n, len(self.mech.links)

    @classmethod
    def of_block(cls, e: Emitter, block: Any) -> Asked:
        """Return the mechanism of a block, which may be exchanged."""
        return cls(e, lambda: block._mech, block)

    @classmethod
    def fixed(cls, e: Emitter, mech: Any) -> Asked:
        """Return a mechanism that stays."""
        return cls(e, lambda: mech, mech)

    def tables(self, room: int, drive: str = "own") -> str:
        """Return what kernels take first: numbers, structure, and scratch memory for so many numbers."""
        from cstormpy.mechanism.tables import tables_of

        e, key = self.e, ("tables", id(self.owner), drive)
        known = e.shared.get(key)
        if known is None:
            numbers = e.numbers(lambda: tables_of(self.read(), drive).T)
            known = e.shared[key] = f"{numbers}, {e.integers(lambda: tables_of(self.read(), drive).N)}"
        return f"{known}, {self._scratch(room)}"

    def line(self, drive: str, loads: int) -> str | None:
        """Return where the address of the mechanism's straight line stands; None if it is too large for one."""
        from cstormpy.dynamics.lines import address_of
        from cstormpy.dynamics.tracing import Question

        question = Question(loads=loads, answers="motion")
        if address_of(self.mech, drive, question) == 0:
            return None
        key = ("line", id(self.owner), drive, question)
        known = self.e.shared.get(key)
        if known is None:
            known = self.e.shared[key] = self.e.integers(lambda: [address_of(self.read(), drive, question)])
        return str(known)

    def _scratch(self, room: int) -> str:
        place = self.e.shared.get(("room", room))
        if place is None:
            place = self.e.shared["room", room] = self.e.scratch(room)
        return f"w[{place}:{place + room}]"

    @property
    def room(self) -> int:
        """Scratch memory of the dynamics."""
        from cstormpy.kernels import layout

        return layout.dynamics_numbers(self.n, self.links)

    @property
    def wide_room(self) -> int:
        """Scratch memory of the dynamics and the closed forms."""
        from cstormpy.kernels import layout

        return layout.forms_numbers(self.n, self.links)

    @property
    def matrix_room(self) -> int:
        """Scratch memory of all that and the matrices of the sensitivities."""
        from cstormpy.kernels import layout

        return self.wide_room + layout.matrix_numbers(self.n)


def held(first: int, count: int) -> Value:
    """Return numbers of the scratch memory as expressions."""
    return named([f"w[{k}]" for k in range(first, first + count)])


def vector(value: Value, n: int) -> Value:
    """Return a signal of n numbers as a vector, as the blocks take it."""
    if value.shape not in ((n,), () if n == 1 else (n,)):
        raise Untranslatable(f"is given a signal of the shape {value.shape} where it takes {n} numbers")
    return value.reshape(n)


def driven(block: Any, u: Values) -> Value:
    """Return u of the hybrid dynamics from the signals at the ports."""
    out = np.full(block._n, "0.0", dtype=object)
    for port, where, names in block._drive.parts:
        out[where] = vector(u[port], len(names))
    return out


def wrenches(e: Emitter, drive: Any, links: int, u: Values) -> str:
    """Return the wrenches on the links as a slice of the scratch memory, an empty one without a port for them."""
    if not drive.wrench:
        return NO_WRENCH
    value = u[drive.first + len(drive.parts)]
    if value.size != 6 * links or value.ndim > 2:
        raise Untranslatable(f"is given wrenches of the shape {value.shape} where it takes ({links}, 6)")
    return e.store([value], e.scratch(value.size))


def loads(e: Emitter, block: Any, links: int, u: Values) -> str:
    """Return what `wrenches` does, with what of them keeps its direction in space where that is known."""
    drive = block._drive
    wrench = wrenches(e, drive, links, u)
    known = loads_at(e, block, drive.first + len(drive.parts)) if drive.wrench else None
    return wrench if known is None else e.store([known], e.scratch(known.size))


def motion(
    asked: Asked, q: Value, qd: Value, u: Value, drive: str = "own", wrench: str = NO_WRENCH
) -> tuple[Value, Value]:
    """Return accelerations and torques of all joints."""
    e, n = asked.e, asked.n
    first = e.scratch(5 * n)
    e.store([q, qd, u], first)
    _move(asked, f"w[{first}:{first + 5 * n}]", drive, wrench)
    return held(first + 3 * n, n), held(first + 4 * n, n)


def _move(asked: Asked, g: str, drive: str, wrench: str) -> None:
    e, loaded = asked.e, wrench != NO_WRENCH
    numbers = int(wrench.partition(":")[2].rstrip("]")) - int(wrench[2:].partition(":")[0])
    given, line = f"{asked.tables(asked.room, drive)}, {g}", asked.line(drive, numbers // max(asked.links, 1))
    if loaded:
        given += f", {wrench}"
    name = "loaded_motion" if loaded else "motion"
    if line is None:
        e.fail_if(f"{e.call(name)}({given}) != 0")
    else:
        e.fail_if(f"{e.call(f'line_{name}')}({given}, {line}) != 0")


def stop_torques(e: Emitter, block: Any, q: Value, qd: Value) -> Value:
    """Return the torques of a block's stops on all joints."""
    return e.each(
        f"{e.call('stop_torque')}({{0}}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}}, {{6}})",
        q,
        qd,
        e.number(lambda: block._stops.low),
        e.number(lambda: block._stops.high),
        e.number(lambda: block._stops.stiffness),
        e.number(lambda: block._stops.damping),
        e.number(lambda: block._stops.depth),
    )


def _stopped(e: Emitter, block: Any, torques: Value, q: Value, qd: Value, sign: str) -> Value:
    """Return torques of all joints with those of the block's own stops, if it has any, added or taken away."""
    if e.depends(lambda: block._stops is None):
        return torques
    both, where = e.each(f"{{0}} {sign} {{1}}", torques, stop_torques(e, block, q, qd)), block._stops.where
    out = torques.copy()
    out[where] = both[where]
    return out


@emits("cstormpy.blocks.dynamics.HybridDynamics", above=_MOST)
def _plant(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    return [x[: block._n], x[block._n :]]


@emits_rate("cstormpy.blocks.dynamics.HybridDynamics", above=_MOST)
def _plant_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    asked, n = Asked.of_block(e, block), block._n
    q, qd = x[:n], x[n:]
    first = e.scratch(5 * n)
    e.store([q, qd, _stopped(e, block, driven(block, u), q, qd, "+")], first)
    g, wrench = f"w[{first}:{first + 5 * n}]", wrenches(e, block._drive, asked.links, u)
    pushed, push = e.number(lambda: float(block._pushed is not None)), e.numbers(lambda: _push(block))
    with e.under(f"if {pushed} == 0.0:"):
        _move(asked, g, "own", wrench)
    with e.under(f"if {pushed} != 0.0:"):
        e.fail_if(f"{e.call('pushed_motion')}({asked.tables(asked.wide_room)}, {g}, {wrench}, {push}) != 0")
    return np.concatenate([qd, held(first + 3 * n, n)])


def _push(block: Any) -> Any:
    """Return the push by hand: the link, the point of it and the force."""
    if block._pushed is None:
        return np.zeros(7)
    link, point, force = block._pushed
    return np.concatenate([[float(link)], point, force])


@emits("cstormpy.blocks.dynamics.JointEffort", above=_MOST)
def _joint_effort(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    asked = Asked.of_block(e, block)
    q, qd = (vector(value, block._n) for value in u[:2])
    wrench = wrenches(e, block._drive, asked.links, u)
    qdd, tau = motion(asked, q, qd, _stopped(e, block, driven(block, u), q, qd, "+"), wrench=wrench)
    return [qdd, _stopped(e, block, tau, q, qd, "-")]


@emits("cstormpy.blocks.dynamics.InverseDynamics", above=_MOST)
def _inverse(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    asked = Asked.of_block(e, block)
    q, qd, qdd = (vector(value, block._n) for value in u[:3])
    return [motion(asked, q, qd, qdd, "inverse", wrenches(e, block._loads, asked.links, u))[1]]


@emits("cstormpy.blocks.inertia.GravityLoad", above=_MOST)
def _gravity_load(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    still = np.full(block._n, "0.0", dtype=object)
    return [motion(Asked.of_block(e, block), vector(u[0], block._n), still, still, "still")[1]]


def energies(asked: Asked, q: Value, qd: Value) -> Value:
    """Return kinetic and potential energy of a mechanism, (2,)."""
    e = asked.e
    given = e.store([q, qd], e.scratch(2 * asked.n))
    welded = e.number(lambda: _welded(asked.read()))
    pair = f"e{e.scratch(1)}"
    e.line(f"{pair} = {e.call('energies')}({asked.tables(asked.room)}, {given})")
    return e.let([f"{pair}[0]", f"{pair}[1] + {welded}"])


def _welded(mech: Any) -> float:
    """Return the potential energy of the links that are fixed to the base; the kernel sees what moves."""
    found: float | None = mech._cache.get("welded energy")
    if found is None:
        from cstormpy.mechanism.tables import first_moment, tables_of

        found = mech._cache["welded energy"] = -float(mech.gravity @ first_moment(tables_of(mech).base_inertia))
    return found


@emits("cstormpy.blocks.inertia.Energy", above=_MOST)
def _energy(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    kinetic, potential = energies(Asked.of_block(e, block), *(vector(value, block._n) for value in u))
    return [named(kinetic), named(potential), e.each("{0} + {1}", kinetic, potential)]
