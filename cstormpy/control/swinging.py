"""Laws that swing an underactuated mechanism towards an equilibrium: they add the energy that is missing.

References: M. W. Spong, "The swing up control problem for the acrobot", IEEE Control Systems 15(1), 1995;
X. Xin and M. Kaneda, "Analysis of the energy-based swing-up control of the acrobot", 2007. With the mass matrix M and
the rest b of M q̈ + b = τ split into joints with a motor (a) and without (p), as in `cstormpy.control.formulas`; E is
the energy, E* that at rest in the goal.

Errors of angles are taken by the shorter way round, so that an elbow that has gone round once is not wound back.
At exact rest the pump has nothing to push against and is silent: something else has to move the mechanism first.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.control.formulas import noncollocated_acceleration, pump, towards
from cstormpy.control.goal import goal_posture, periods
from cstormpy.control.law import Law, Target
from cstormpy.control.prepared import Inertia, Places, inverse_evaluator, places
from cstormpy.errors import InvalidValue, SingularInertia
from cstormpy.mechanism import Mechanism

Array = NDArray[np.float64]

__all__ = ["EnergyPFL", "EnergyPump", "NonCollocated"]


class _TowardsGoal(Law):
    """A law with a posture to come to."""

    def __init__(self, mech: Mechanism, goal: ArrayLike | None, limit: ArrayLike | None) -> None:
        super().__init__(mech, limit)
        self.goal, self.hold = goal_posture(self.mech, goal, type(self).__name__)
        self._turn, self._per_turn = periods(self.mech)

    def _towards(self, at: Places, q: Array, qd: Array, kp: float | Array, kd: float | Array) -> Array:
        """Return kp (q* − q) − kd q̇ of some joints, by the shorter way round."""
        return towards(q[at], qd[at], self.goal[at], self._turn[at], self._per_turn[at], kp, kd)


class EnergyPump(_TowardsGoal):
    """Pump energy, and hold the motors' joints at the goal by PD: τ = ke (E* − E) q̇_a + kp (q*_a − q_a) − kd q̇_a.

    Parameters
    ----------
    mech : Mechanism or str
    kp, kd, ke : float or array_like, (n_a,)
        Stiffness [N m/rad], damping [N m s/rad] and pump [s/rad] of the joints with a motor.
    goal : array_like, (n,), optional
        The equilibrium to come to; the highest posture unless given.
    limit : float or array_like, (n_a,), optional
        Largest torques.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> law = EnergyPump(library.acrobot(), kp=5.0, kd=1.4, ke=2.7)
    >>> law(0.0, [-1.5, 0.0], [0.0, 0.1]).round(3)
    array([13.085])
    """

    _tunable = ("kp", "kd", "ke")
    _prepared: ClassVar[tuple[str, ...]] = ("_inertia",)

    def __init__(
        self,
        mech: Mechanism,
        kp: float | ArrayLike = 5.0,
        kd: float | ArrayLike = 1.4,
        ke: float | ArrayLike = 2.7,
        goal: ArrayLike | None = None,
        limit: ArrayLike | None = None,
    ) -> None:
        super().__init__(mech, goal, limit)
        self.kp, self.kd, self.ke = self._gain("kp", kp), self._gain("kd", kd), self._gain("ke", ke)
        self._prepare()
        self.goal_energy = self.energy(self.goal, np.zeros(self._shape))

    def _prepare(self) -> None:
        self._inertia = Inertia(self.mech)

    def energy(self, q: Array, qd: Array) -> float:
        """Return the energy E = T + V [J]."""
        return self._inertia.energy(q, qd)

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,); see `Law.torque`."""
        a = self._motors
        push = pump(self._inertia.energy(q, qd), self.goal_energy, qd[a], self.ke)
        return push + self._towards(a, q, qd, self.kp, self.kd)


class EnergyPFL(EnergyPump):
    """Pump energy beside collocated partial feedback linearisation.

    τ = τ_a(q̈_a = kp (q*_a − q_a) − kd q̇_a) + ke (E* − E) q̇_a

    with τ_a(q̈_a) the torque that gives the motors' joints this acceleration: (M_aa − M_ap M_pp⁻¹ M_pa) q̈_a + b_a −
    M_ap M_pp⁻¹ b_p, the hybrid dynamics with these joints active.

    Parameters
    ----------
    mech : Mechanism or str
    kp, kd : float or array_like, (n_a,)
        Stiffness [1/s²] and damping [1/s] of the linearised joints.
    ke : float or array_like, (n_a,)
        The pump [s/rad].
    goal, limit
        As for `EnergyPump`.
    """

    _prepared = ("_inertia", "_hybrid")

    def __init__(
        self,
        mech: Mechanism,
        kp: float | ArrayLike = 100.0,
        kd: float | ArrayLike = 24.0,
        ke: float | ArrayLike = 15.0,
        goal: ArrayLike | None = None,
        limit: ArrayLike | None = None,
    ) -> None:
        super().__init__(mech, kp, kd, ke, goal, limit)

    def _prepare(self) -> None:
        super()._prepare()
        self._hybrid = self.mech.with_drive(active=self.motors).hybrid_evaluator()

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,); see `Law.torque`."""
        a = self._motors
        u = np.zeros(self._shape)
        u[a] = self._towards(a, q, qd, self.kp, self.kd)
        push = pump(self._inertia.energy(q, qd), self.goal_energy, qd[a], self.ke)
        return self._hybrid(q, qd, u)[a] + push


class NonCollocated(_TowardsGoal):
    """Non-collocated partial feedback linearisation: the motors' accelerations that steer the joints without motor.

    ẍ_p = kp (q*_p − q_p) − kd q̇_p,  q̈_a = −M_pa⁻¹ (M_pp ẍ_p + b_p),  τ = M_ap ẍ_p + M_aa q̈_a + b_a

    Parameters
    ----------
    mech : Mechanism or str
        With as many motors as joints without.
    kp, kd : float or array_like, (n_p,)
        Stiffness [1/s²] and damping [1/s] of the joints without motor.
    goal, limit
        As for `EnergyPump`.

    Raises
    ------
    InvalidValue
        If there are not as many motors as joints without.
    SingularInertia
        In a posture in which the motors do not move the joints without motor (M_pa is singular).
    """

    _tunable = ("kp", "kd")
    _prepared = ("_inertia", "_inverse")

    def __init__(
        self,
        mech: Mechanism,
        kp: float | ArrayLike = 78.0,
        kd: float | ArrayLike = 2.2,
        goal: ArrayLike | None = None,
        limit: ArrayLike | None = None,
    ) -> None:
        super().__init__(mech, goal, limit)
        steered = self._gain_joints("kp")
        if len(steered) != len(self.motors):
            raise InvalidValue(
                f"NonCollocated: needs as many motors as joints without, got {len(self.motors)} and {len(steered)}"
            )
        self.kp, self.kd = self._gain("kp", kp), self._gain("kd", kd)
        self._steered = places(~self.mech.actuated_mask)
        rows, columns = np.flatnonzero(~self.mech.actuated_mask), np.flatnonzero(self.mech.actuated_mask)
        both = isinstance(self._steered, slice) and isinstance(self._motors, slice)
        self._coupling: Any = (self._steered, self._motors) if both else np.ix_(rows, columns)
        self._prepare()

    def _prepare(self) -> None:
        self._inertia, self._inverse = Inertia(self.mech), inverse_evaluator(self.mech)

    def _gain_joints(self, name: str) -> tuple[str, ...]:
        return tuple(joint for joint in self.mech.names if joint not in self.motors)

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,); see `Law.torque`."""
        a, p = self._motors, self._steered
        qdd = np.zeros(self._shape)
        qdd[p] = self._towards(p, q, qd, self.kp, self.kd)
        coupling = self._inertia.mass_matrix(q, qd)[self._coupling]
        try:
            qdd[a] = noncollocated_acceleration(coupling, self._inverse(q, qd, qdd)[p])
        except np.linalg.LinAlgError as error:
            raise SingularInertia(
                f"NonCollocated: at q = {q.tolist()} the motors ({', '.join(self.motors)}) do not move the joints "
                "without motor: their inertial coupling is singular"
            ) from error
        return self._inverse(q, qd, qdd)[a]
