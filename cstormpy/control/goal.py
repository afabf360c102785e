"""The default goal of a law: upright."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.dynamics.charts import recentre
from cstormpy.errors import InvalidValue
from cstormpy.linkage.degrees import say_degrees
from cstormpy.linkage.scales import coordinate_scales, length_of, work_of
from cstormpy.loops.closure import closure_of
from cstormpy.mechanism import Mechanism

STARTS = 12
"""Postures from which the highest one is sought."""

ITERATIONS = 200
"""Most steps from each of them; most arrive within 20."""

BALANCED = 1e-6
"""Largest work left over in a joint without motor, as part of the largest one, at what counts as an equilibrium."""

EASING = 0.05
"""How near to half a turn from its goal a regulator lets a hinge go [rad]."""


def upright(mech: Mechanism) -> Array:
    """Return the posture of the greatest potential energy, (n,), angles from −π to π.

    It is an equilibrium that needs no torque. Coordinates that no energy depends on, as of a cart, are zero.

    Raises
    ------
    InvalidValue
        If there is none, because the energy is the same everywhere or has no bound.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> (upright(library.acrobot()) / np.pi).round(9) + 0
    array([0.5, 0. ])
    """
    rng = np.random.default_rng(0)
    units, length = coordinate_scales(mech), length_of(mech)
    work = work_of(mech)
    q = np.vstack([np.zeros(mech.n), rng.uniform(-math.pi, math.pi, (STARTS - 1, mech.n))]) * units
    still = mech.inverse_dynamics(q, np.zeros(q.shape), np.zeros(q.shape)) * units
    idle = np.abs(still).max(axis=0) <= 1e-12 * max(work, float(np.abs(still).max()))
    lowest = float(np.min(mech.inertial(q).potential))
    q, energy, load = _climb(mech, q, units)
    there = np.abs(load * units).max(axis=1) <= 1e-6 * max(work, float(np.abs(energy).max()))
    best = int(np.argmax(np.where(there, energy, -math.inf)))
    if not there[best] or energy[best] - lowest <= 1e-9 * work:
        raise InvalidValue("goal: the mechanism has no posture that is the highest; say which one is meant")
    turn = 2.0 * math.pi
    near = q[best] - _turning(mech) * turn * np.rint(q[best] / turn)
    exact = mech.trim(near, tau=0, tolerance=1e-6 * work / max(1.0, length)).q
    return np.where(idle | (np.abs(exact) < 1e-12 * units), 0.0, exact)


def _climb(mech: Mechanism, q: Array, units: Array) -> tuple[Array, Array, Array]:
    """Return postures (N, n) from which no step raises the potential energy, the energies, and their gradients.

    Newton's steps with the Hessian's eigenvalues taken without sign, so that all of them go up, and as long as the
    last ones have shown to be good; all in the units of the coordinates.
    """
    still, reach = np.zeros(q.shape), np.ones(len(q))
    energy = mech.inertial(q).potential
    for _ in range(ITERATIONS):
        # at rest the torques that hold a posture are the gradient of its energy
        d = mech.inverse_sensitivity(q, still, still)
        values, vectors = np.linalg.eigh(0.5 * (d.dy_dq + d.dy_dq.transpose(0, 2, 1)) * units * units[:, None])
        curvature = np.abs(values)
        least = 1e-6 * curvature.max(axis=1, keepdims=True)
        curvature = np.maximum(curvature, np.where(least > 0.0, least, 1.0))
        along = np.einsum("sji,sj->si", vectors, d.y * units) / curvature
        length = np.linalg.norm(along, axis=1)
        along *= np.minimum(1.0, reach / np.maximum(length, 1e-300))[:, None]
        trial = q + units * np.einsum("sij,sj->si", vectors, along)
        for posture in trial:  # of rotation vectors the shorter ones
            recentre(mech, posture, still[0].copy())
        there = mech.inertial(trial).potential
        up = there > energy
        q, energy = np.where(up[:, None], trial, q), np.where(up, there, energy)
        reach = np.where(up, np.minimum(2.0 * reach, 1.0), 0.25 * reach)
        if np.all((length < 1e-9) | (reach < 1e-9)):
            break
    return q, energy, mech.inverse_sensitivity(q, still, still).y


def periods(mech: Mechanism, q: Array) -> tuple[Array, Array]:
    """Return what one turn adds to each coordinate, 2π or 0, and its inverse, or 0, at postures q (..., n).

    A hinge comes to the same after a turn, unless it has a spring or limits, or stands in a constraint of coordinates.
    """
    turns = _turning(mech) & np.array([not (f.limits and f.limits.position) for f in mech.freedoms])
    if mech.loops:
        turns &= ~closure_of(mech, np.reshape(q, (-1, mech.n))).by_value
    return 2.0 * math.pi * turns, turns / (2.0 * math.pi)


def _turning(mech: Mechanism) -> NDArray[np.bool_]:
    """Return which coordinates are of hinges without a spring, (n,)."""
    return np.array([freedom.winds and freedom.stiffness == 0.0 for freedom in mech.freedoms], dtype=bool)


def wrapped(e: Array, turn: Array, per_turn: Array) -> Array:
    """Return errors with the angles within half a turn; the other two arguments are what `periods` gives.

    >>> wrapped(np.array([6.0, 6.0]), np.array([2 * np.pi, 0.0]), np.array([0.5 / np.pi, 0.0])).round(4).tolist()
    [-0.2832, 6.0]
    """
    return e - turn * np.rint(e * per_turn)


def eased(e: Array, turn: Array) -> Array:
    """Return errors of `wrapped` that pass through 0 where the shorter way round becomes the other one.

    There they jump from half a turn to minus that. A regulator whose torques drive a joint without motor towards that
    jump would switch to and fro without end; within `EASING` of it, it lets go.

    >>> turn = np.array([2 * np.pi])
    >>> [eased(e, turn).round(4).tolist() for e in (np.array([3.0]), np.array([3.12]), np.array([-np.pi]))]
    [[3.0], [1.3473], [-0.0]]
    """
    return np.where(turn > 0.0, e * np.fmin(1.0, (0.5 * turn - abs(e)) / EASING), e)


def goal_posture(mech: Mechanism, goal: ArrayLike | None, who: str) -> tuple[Array, Array]:
    """Return an equilibrium, (n,), and the motor torques that hold it, (n_a,); upright unless one is given.

    Raises
    ------
    InvalidValue
        If a joint without motor does not stay there, or loops are open.
    """
    if goal is None and mech.loops:
        raise InvalidValue(
            f"{who}: loop {mech.loops[0].name!r}: the highest closed posture is not known; give a goal, "
            "mech.trim(guess) finds an equilibrium"
        )
    q = upright(mech) if goal is None else checks.array(goal, (mech.n,), "goal").copy()
    if goal is not None:
        say_degrees(mech.freedoms, mech.names, q.tolist(), "goal")
    try:
        load = mech.inverse_dynamics(q, np.zeros(mech.n), np.zeros(mech.n))
    except InvalidValue as why:  # an open posture, or one that the motors do not hold
        if not mech.loops:
            raise
        raise InvalidValue(f"{who}: goal: {why}; mech.trim(goal) finds an equilibrium nearby") from None
    work = np.abs(load) * coordinate_scales(mech)
    left = np.where(mech.actuated_mask, 0.0, work)
    worst = int(np.argmax(left))
    if left[worst] > BALANCED * max(work_of(mech), float(work.max())):
        raise InvalidValue(
            f"{who}: goal ({', '.join(f'{v:.4g}' for v in q)}) is no equilibrium, joint {mech.names[worst]!r} has no "
            f"motor and {abs(load[worst]):.3g} N m (or N) act in it; mech.trim(goal) finds an equilibrium nearby"
        )
    return q, load[mech.actuated_mask]
