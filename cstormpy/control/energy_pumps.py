"""Laws that swing an underactuated mechanism towards an equilibrium: they add the energy that is missing.

References: M. W. Spong, "The swing up control problem for the acrobot", IEEE Control Systems 15(1), 1995;
X. Xin and M. Kaneda, "Analysis of the energy-based swing-up control of the acrobot", 2007; K. J. Åström and K. Furuta,
"Swinging up a pendulum by energy control", Automatica 36(2), 2000. With the mass matrix M and
the rest b of M q̈ + b = τ split into joints with a motor (a) and without (p); E is the energy, E* that at rest in the
goal.

Errors of angles are taken by the shorter way round, so that an elbow that has gone round once is not wound back.
At exact rest the pump has nothing to push against and is silent: something else has to move the mechanism first.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.control.checked import Checked, once
from cstormpy.control.goal import goal_posture, periods, wrapped
from cstormpy.control.law import Target, gain
from cstormpy.control.posture_law import PostureLaw
from cstormpy.control.prepared import HybridDynamics, Inertia, InverseDynamics, Places, placed, places
from cstormpy.errors import InvalidValue, SingularInertia
from cstormpy.mechanism import Mechanism


class _TowardsGoal(PostureLaw):
    """A law with a posture to come to."""

    goal: Any = Checked(once)

    def __init__(self, mech: Mechanism, goal: ArrayLike | None, limit: ArrayLike | None) -> None:
        super().__init__(mech, limit)
        self.goal, self.hold = goal_posture(self.mech, goal, type(self).__name__)
        self._turn, self._per_turn = periods(self.mech, self.goal)

    def _posture(self, t: float, reference: Target | None) -> Array:
        return self.goal

    def _towards(self, at: Places, q: Array, qd: Array, kp: float | Array, kd: float | Array) -> Array:
        """Return kp (q* − q) − kd q̇ of some joints, by the shorter way round."""
        return -kp * wrapped(q[at] - self.goal[at], self._turn[at], self._per_turn[at]) - kd * qd[at]


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

    tunable = ("kp", "kd", "ke")
    kp: Any = gain()
    kd: Any = gain()
    ke: Any = gain()
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
        self.kp, self.kd, self.ke = kp, kd, ke
        self._prepare()
        self.goal_energy = self.energy(self.goal, np.zeros(self._shape))

    def _prepare(self) -> None:
        self._inertia = Inertia(self.mech)

    def energy(self, q: Array, qd: Array) -> float:
        """Return the energy E = T + V [J]."""
        return self._inertia.energy(q, qd)

    def _pumped(self, q: Array, qd: Array) -> Array:
        """Return ke (E* − E) q̇_a, which does work ke (E* − E) q̇_a² of the sign of what is missing."""
        return self.ke * (self.goal_energy - self.energy(q, qd)) * qd[self._motors]

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        return self._pumped(q, qd) + self._towards(self._motors, q, qd, self.kp, self.kd)


class _Accelerating(EnergyPump):
    """A pump that says how the motors' joints are to accelerate."""

    _prepared = ("_inertia", "_hybrid")

    def _prepare(self) -> None:
        super()._prepare()
        self._hybrid = HybridDynamics(self.mech, self.motors)

    def _giving(self, q: Array, qd: Array, wanted: Array) -> Array:
        """Return the torques, (n_a,), that give the motors' joints accelerations, by the hybrid dynamics."""
        a = self._motors
        return self._hybrid(q, qd, placed(self.mech.n, (a, wanted)))[a]


class EnergyPFL(_Accelerating):
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

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        wanted = self._towards(self._motors, q, qd, self.kp, self.kd)
        return self._giving(q, qd, wanted) + self._pumped(q, qd)


class PendulumPump(_Accelerating):
    """Accelerate the motors' joints so that they do work on a pendulum that they carry: on a cart, or on an arm.

    q̈_a = kp (q*_a − q_a) − kd q̇_a − ke (E* − E_p) M_ap q̇_p

    where E_p is the energy that the mechanism would have with the motors' joints at rest at their goal. It changes by
    −q̇_pᵀ M_pa q̈_a, so that the last term brings it to E*. The torque is that of the hybrid dynamics.

    Parameters
    ----------
    mech : Mechanism or str
    kp, kd : float or array_like, (n_a,)
        Stiffness [1/s²] and damping [1/s] of the motors' joints, weak beside the pump.
    ke : float or array_like, (n_a,)
        The pump: acceleration for energy and momentum.
    goal, limit
        As for `EnergyPump`.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> law = PendulumPump(library.cart_pole(), kp=1.0, kd=1.0, ke=50.0)
    >>> law(0.0, [0.0, -1.5708], [0.0, 1.0]).round(3)
    array([-2.471])
    """

    def __init__(
        self,
        mech: Mechanism,
        kp: float | ArrayLike = 1.0,
        kd: float | ArrayLike = 1.0,
        ke: float | ArrayLike = 50.0,
        goal: ArrayLike | None = None,
        limit: ArrayLike | None = None,
    ) -> None:
        super().__init__(mech, kp, kd, ke, goal, limit)
        self._carried = places(~self.mech.actuated_mask)

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        a, p, n = self._motors, self._carried, self.mech.n
        swinging = placed(n, (p, qd[p]))
        missing = self.goal_energy - self.energy(placed(n, (p, q[p]), (a, self.goal[a])), swinging)
        momentum = np.cumsum(self._inertia.mass_matrix(q, qd) * swinging, axis=1)[:, -1][a]  # M_ap q̇_p
        wanted = self._towards(a, q, qd, self.kp, self.kd) - self.ke * missing * momentum
        return self._giving(q, qd, wanted)


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

    tunable = ("kp", "kd")
    kp: Any = gain()
    kd: Any = gain()
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
        self.kp, self.kd = kp, kd
        self._steered = places(~self.mech.actuated_mask)
        rows, columns = np.flatnonzero(~self.mech.actuated_mask), np.flatnonzero(self.mech.actuated_mask)
        both = isinstance(self._steered, slice) and isinstance(self._motors, slice)
        self._coupling: Any = (self._steered, self._motors) if both else np.ix_(rows, columns)
        self._prepare()

    def _prepare(self) -> None:
        self._inertia, self._inverse = Inertia(self.mech), InverseDynamics(self.mech)

    def _gain_joints(self, name: str) -> tuple[str, ...]:
        return tuple(joint for joint in self.mech.names if joint not in self.motors)

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        a, p = self._motors, self._steered
        steered = self._towards(p, q, qd, self.kp, self.kd)
        lacking = self._inverse(q, qd, placed(self.mech.n, (p, steered)))[p]  # M_pp ẍ_p + b_p
        try:
            found = np.linalg.solve(self._inertia.mass_matrix(q, qd)[self._coupling], -lacking)
        except np.linalg.LinAlgError as error:
            raise SingularInertia(
                f"NonCollocated: at q = {q.tolist()} the motors ({', '.join(self.motors)}) do not move the joints "
                "without motor: their inertial coupling is singular"
            ) from error
        return self._inverse(q, qd, placed(self.mech.n, (p, steered), (a, found)))[a]
