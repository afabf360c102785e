"""Emitters of the blocks of cstormpy: mechanisms, efforts, splines.

The blocks are known by name only: simulation does not import them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value, emits, emits_rate

__all__ = ["energies", "motion", "vector"]

Values = list[Value]


def _tables(e: Emitter, mech: Any, drive: str = "own") -> tuple[str, Any]:
    """Return what a mechanism's kernels take first, numbers, structure and scratch memory, and the tables."""
    from cstormpy.kernels import layout
    from cstormpy.mechanism.tables import tables_of

    tables = tables_of(mech, drive)
    known = e.shared.get((id(tables.T), id(tables.N)))
    if known is None:
        size = (mech.n + 1) * layout.ROW + 6 * len(mech.links)
        place = e.shared.setdefault(("mechanism", size), e.scratch_size)
        if place == e.scratch_size:
            e.scratch(size)
        known = f"{e.numbers(tables.T)}, {e.integers(tables.N)}, w[{place}:{place + size}]"
        e.shared[id(tables.T), id(tables.N)] = known
    return known, tables


def vector(value: Value, n: int) -> Value:
    """Return a signal of n numbers as a vector, as the blocks take it."""
    if value.shape not in ((n,), () if n == 1 else (n,)):
        raise Untranslatable(f"is given a signal of the shape {value.shape} where it takes {n} numbers")
    return value.reshape(n)


def _driven(e: Emitter, block: Any, u: Values) -> Value:
    """Return u of the hybrid dynamics from the signals at the ports."""
    drive, out = block._drive, np.full(block._n, "0.0", dtype=object)
    if drive.wrench:
        raise Untranslatable("has a port for wrenches")
    for port, where, names in drive.parts:
        out[where] = vector(u[port], len(names))
    return out


def motion(e: Emitter, mech: Any, q: Value, qd: Value, u: Value, drive: str = "own") -> tuple[Value, Value]:
    """Return accelerations and torques of all joints."""
    n = mech.n
    tables, _ = _tables(e, mech, drive)
    first = e.scratch(5 * n)
    e.store([q, qd, u], first)
    e.fail_if(f"{e.call('motion')}({tables}, w[{first}:{first + 5 * n}]) != 0")
    found = named([f"w[{k}]" for k in range(first + 3 * n, first + 5 * n)])
    return found[:n], found[n:]


@emits("cstormpy.blocks.dynamics.HybridDynamics")
def _plant(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    return [x[: block._n], x[block._n :]]


@emits_rate("cstormpy.blocks.dynamics.HybridDynamics")
def _plant_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    if block._pushed is not None:
        raise Untranslatable("is being pushed")
    q, qd = x[: block._n], x[block._n :]
    qdd, _ = motion(e, block._mech, q, qd, _driven(e, block, u))
    return np.concatenate([qd, qdd])


@emits("cstormpy.blocks.dynamics.JointEffort")
def _joint_effort(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    q, qd = (vector(value, block._n) for value in u[:2])
    return list(motion(e, block._mech, q, qd, _driven(e, block, u)))


@emits("cstormpy.blocks.dynamics.InverseDynamics")
def _inverse(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if block._loads.wrench:
        raise Untranslatable("has a port for wrenches")
    q, qd, qdd = (vector(value, block._n) for value in u)
    return [motion(e, block._mech, q, qd, qdd, "inverse")[1]]


def energies(e: Emitter, mech: Any, q: Value, qd: Value) -> Value:
    """Return kinetic and potential energy of a mechanism, (2,)."""
    from cstormpy.mechanism.tables import first_moment

    arguments, tables = _tables(e, mech)
    given = e.store([q, qd], e.scratch(2 * mech.n))
    welded = e.number(-float(mech.gravity @ first_moment(tables.base_inertia)))  # the kernel sees what moves
    pair = f"e{e.scratch(1)}"
    e.line(f"{pair} = {e.call('energies')}({arguments}, {given})")
    return e.let([f"{pair}[0]", f"{pair}[1] + {welded}"])


@emits("cstormpy.blocks.inertia.Energy")
def _energy(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    kinetic, potential = energies(e, block._mech, *(vector(value, block._n) for value in u))
    return [named(kinetic), named(potential), e.each("{0} + {1}", kinetic, potential)]


@emits("cstormpy.blocks.measures.Effort")
def _effort(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    return [named(x[0])]


@emits_rate("cstormpy.blocks.measures.Effort")
def _effort_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    tau, weight = np.atleast_1d(u[0]), e.number(block.weight)
    if tau.ndim > 1 or (weight.ndim and weight.shape != tau.shape):
        raise Untranslatable("its weights do not fit its signal")
    squares = e.each("{0} * {1} * {1}", weight, tau)
    return named([f"0.5 * {e.sum(list(squares))}"])


@emits("cstormpy.blocks.trajectories.SplineTrajectory")
def _spline(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    curve, pace, begin = block.curve, block._pace, block._from
    if block._ends != "hold":
        raise Untranslatable(f"its ends are {block._ends!r}, not 'hold'")
    first, last, rate = e.number(begin), e.number(begin + curve.duration / pace), e.number(pace)
    t0, t1 = e.number(curve.t0), e.number(curve.t1)
    e.call("clipped")
    s = e.let(e.each("clipped({0} + {1} * (clipped(t, {2}, {3}) - {2}), {0}, {4})", t0, rate, first, last, t1))
    held = e.let(e.each("{2} if {0} <= t < {1} else 0.0", first, last, rate))
    place, row = e.scratch(3 * curve.n), e.scratch(curve.degree + 1)
    e.line(
        f"{e.call('spline')}({s}, {e.numbers(_levels(curve))}, {e.integers(_sizes(curve))}, "
        f"w[{row}:{row + curve.degree + 1}], w[{place}:{place + 3 * curve.n}])"
    )
    found = named([f"w[{k}]" for k in range(place, place + 3 * curve.n)]).reshape(3, curve.n)
    return [
        found[0],
        e.each("{0} * {1}", held, found[1]),
        e.each("{0} * {0} * {1}", held, found[2]),
    ]


def _levels(curve: Any) -> Any:
    """Return knots and control points, and those of the derivatives, as `spline` takes them."""
    from cstormpy.trajectory.basis import difference

    points = [curve.control_points]
    for order in range(1, min(curve.degree, 2) + 1):
        points.append(difference(curve.knots, curve.degree, points[-1], order))
    return np.concatenate([curve.knots, *(level.ravel() for level in points)])


def _sizes(curve: Any) -> list[int]:
    knots = curve.knots
    lowest = int(np.searchsorted(knots, curve.t0, "right")) - 1
    highest = int(np.searchsorted(knots, curve.t1, "left")) - 1
    return [curve.degree, len(curve.control_points), curve.n, min(curve.degree, 2), lowest, highest]
