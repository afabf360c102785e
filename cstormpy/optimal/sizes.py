"""Characteristic sizes of a problem's numbers: what makes results the same whatever the units.

A solver compares numbers with one another and with tolerances. It is therefore told all of them as multiples of sizes
that follow from the problem itself: time from the duration, length from the mechanism, torque from its mass matrix

    τ_j = M_jj q_j / T² + g (m_j M_jj)^½ + what springs, dampers and loads add,

with m_j the mass that joint j carries and q_j one radian, or one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cstormpy.linkage.scales import coordinate_scales, length_of
from cstormpy.loops.closure import angular_rows
from cstormpy.optimal.joints import turning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.loads import Load

    Array = NDArray[np.float64]

RATES = {"q": 0, "qd": 1, "qdd": 2, "qddd": 3}


@dataclass(frozen=True, eq=False)
class Sizes:
    """Characteristic sizes.

    Attributes
    ----------
    time : float
        [s].
    length : float
        [m].
    q : ndarray, (n,)
        One radian, or the length.
    tau : ndarray, (n,)
        [N m or N].
    multipliers : ndarray, (m,)
        Of the loops: the greatest torque, or the force that has it at the length.
    """

    time: float
    length: float
    q: Array
    tau: Array
    multipliers: Array = field(default_factory=lambda: np.zeros(0))

    def of(self, channel: str) -> Array:
        """Return the sizes of a channel of `Samples`, one for each of its columns."""
        if channel in ("tau", "multipliers"):
            return self.tau if channel == "tau" else self.multipliers
        return self.q / self.time ** RATES[channel]

    @property
    def power(self) -> Array:
        """Sizes of the powers of the joints [W], (n,)."""
        return self.tau * self.q / self.time


def sizes_of(mech: Mechanism, duration: float, q: Array, loads: Sequence[tuple[int, Load]] = ()) -> Sizes:
    """Return the sizes of a mechanism's motions of a typical duration about some postures (N, n).

    >>> from cstormpy.mechanism import library
    >>> sizes_of(library.pendulum(), 2.0, np.zeros((1, 1))).time
    2.0
    """
    length, unit, turns = length_of(mech), coordinate_scales(mech), turning(mech)
    inertia = np.max([np.diag(mech.mass_matrix(row)) for row in q], axis=0)
    gravity = float(np.linalg.norm(mech.gravity))
    tau = inertia * unit / duration**2 + gravity * np.sqrt(inertia * _carried(mech)) + _of_joints(mech, unit, duration)
    for _, load in loads:
        force, moment = float(np.linalg.norm(load.force)), float(np.linalg.norm(load.moment))
        tau = tau + np.where(turns, force * length + moment, force)
    most = float(tau.max(initial=0.0))
    tau = np.where(tau > 1e-9 * most, tau, most or 1.0)
    return Sizes(duration, length, unit, tau, _of_loops(mech, float((tau * unit).max(initial=0.0)), length))


def _of_loops(mech: Mechanism, moment: float, length: float) -> Array:
    """Return the sizes of the multipliers: a moment for a rotation, else a force."""
    if not mech.loops:
        return np.zeros(0)
    return np.where(angular_rows(mech), moment, moment / length)


def _carried(mech: Mechanism) -> Array:
    """Return the mass that each coordinate moves, (n,)."""
    total = np.array([link.mass for link in mech.links])
    for i, link in enumerate(mech.links):
        above = mech.parents[i]
        while above >= 0:
            total[above] += link.mass
            above = mech.parents[above]
    return np.asarray(total[mech.joint_links])


def _of_joints(mech: Mechanism, unit: Array, duration: float) -> Array:
    """Return the torques of springs, dampers and friction, (n,)."""
    names = ("stiffness", "damping", "friction")
    found = {name: np.array([abs(getattr(freedom, name)) for freedom in mech.freedoms]) for name in names}
    return np.asarray(found["stiffness"] * unit + found["damping"] * unit / duration + found["friction"])
