"""Where a law is to bring a mechanism, if it is not told: upright."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism, Revolute, checks

Array = NDArray[np.float64]

__all__ = ["goal_posture", "periods", "upright"]

STARTS = 12
"""Postures from which the highest one is sought."""

FAR = 1e3
"""A coordinate [rad or m] that no highest posture has."""

BALANCED = 1e-6
"""Largest torque left over in a joint without motor, as part of the largest load, at what counts as an equilibrium."""


def upright(mech: Mechanism) -> Array:
    """Return the posture of the greatest potential energy, (n,), angles from −π to π.

    It is an equilibrium that needs no torque.

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
    from scipy.optimize import minimize

    def height(q: Array) -> tuple[float, Array]:
        found = mech.inertial(q)
        return -float(found.potential), -found.potential_by_q

    rng = np.random.default_rng(0)
    starts = [np.zeros(mech.n), *rng.uniform(-math.pi, math.pi, (STARTS - 1, mech.n))]
    bounds = [(-FAR, FAR)] * mech.n  # what runs into them has no highest place
    lowest, highest, best = math.inf, -math.inf, None
    for start in starts:
        found = minimize(
            height, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-8, "ftol": 1e-15}
        )
        lowest = min(lowest, -height(start)[0])
        if np.abs(found.x).max() < FAR and np.abs(found.jac).max() < 1e-3 and -found.fun > highest + 1e-9:
            highest, best = -float(found.fun), found.x
    if best is None or highest - lowest <= 1e-9:
        raise InvalidValue("goal: the mechanism has no posture that is the highest; say which one is meant")
    turn, per_turn = periods(mech)
    exact = mech.trim(best - turn * np.rint(best * per_turn), tau=0, tolerance=1e-6).q
    return np.where(np.abs(exact) < 1e-12, 0.0, exact)


def periods(mech: Mechanism) -> tuple[Array, Array]:
    """Return what one turn adds to each coordinate, 2π or 0, and its inverse, or 0.

    A hinge comes to the same after a turn, unless it has a spring.
    """
    joints = [mech.links[k].joint for k in mech.joint_links]
    turns = np.array([isinstance(joint, Revolute) and joint.stiffness == 0.0 for joint in joints], dtype=float)
    return 2.0 * math.pi * turns, turns / (2.0 * math.pi)


def goal_posture(mech: Mechanism, goal: ArrayLike | None, who: str) -> tuple[Array, Array]:
    """Return an equilibrium, (n,), and the motor torques that hold it, (n_a,); upright unless one is given.

    Raises
    ------
    InvalidValue
        If a joint without motor does not stay there, with the nearest posture in which all do.
    """
    q = upright(mech) if goal is None else checks.array(goal, (mech.n,), "goal").copy()
    load = mech.inverse_dynamics(q, np.zeros(mech.n), np.zeros(mech.n))
    left = np.where(mech.actuated_mask, 0.0, np.abs(load))
    worst = int(np.argmax(left))
    if left[worst] > BALANCED * max(1.0, float(np.abs(load).max())):
        raise InvalidValue(
            f"{who}: goal ({', '.join(f'{v:.4g}' for v in q)}) is no equilibrium, joint {mech.names[worst]!r} has no "
            f"motor and {left[worst]:.3g} N m (or N) act in it; mech.trim(goal) finds an equilibrium nearby"
        )
    return q, load[mech.actuated_mask]
