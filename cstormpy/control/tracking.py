"""Laws that follow a motion: PD, computed torque, and the motion of some joints by the hybrid dynamics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of
from cstormpy.arrays import Array
from cstormpy.control.checked import Checked
from cstormpy.control.law import Law, ReferenceLike, Target, gain
from cstormpy.control.posture_law import PostureLaw
from cstormpy.control.prepared import HybridDynamics, InverseDynamics, placed, places
from cstormpy.errors import InvalidValue, ShapeError
from cstormpy.mechanism import Mechanism


class _Tracking(PostureLaw):
    """A law with gains kp and kd by which some joints follow a reference, given for these or for all joints."""

    tunable = ("kp", "kd")
    followed: tuple[str, ...]
    kp: Any = gain()
    kd: Any = gain()
    reference: Any = Checked(lambda law, _, given: law._as_reference(given))

    def __init__(
        self,
        mech: Mechanism,
        followed: tuple[str, ...] | None,
        kp: float | ArrayLike,
        kd: float | ArrayLike,
        reference: ReferenceLike,
        limit: ArrayLike | None,
    ) -> None:
        super().__init__(mech, limit)
        self.followed = self.motors if followed is None else followed
        self._at = places(np.array([name in self.followed for name in self.mech.names], dtype=bool))
        self.reference, self.kp, self.kd = reference, kp, kd
        self._prepare()

    def _balls(self) -> Sequence[int]:
        return [first for first in self.mech.ball_starts if self.mech.names[first] in self.followed]

    def _posture(self, t: float, reference: Target | None) -> Array:
        q_r = self._target(t, reference)[0]
        whole = self._check_width(len(q_r), f"{type(self).__name__}, reference") == self.mech.n
        return q_r if whole else placed(self.mech.n, (self._at, q_r))

    def _gain_joints(self, name: str) -> tuple[str, ...]:
        return self.followed

    def _check_width(self, width: int, what: str) -> int:
        if width not in (self.mech.n, len(self.followed)):
            one = f" or {len(self.followed)} ({', '.join(self.followed)})" * (len(self.followed) < self.mech.n)
            raise ShapeError(f"{what}: expected {self.mech.n} numbers ({', '.join(self.mech.names)}){one}, got {width}")
        return width

    def _feedback(self, t: float, q: Array, qd: Array, reference: Target | None) -> tuple[Array, Array]:
        """Return kp (q_r − q) + kd (q̇_r − q̇) and q̈_r of the joints that follow."""
        at = self._at
        q_r, qd_r, qdd_r = self._target(t, reference)
        if len(q_r) != len(self.followed):
            self._check_width(len(q_r), f"{type(self).__name__}, reference")
            q_r, qd_r, qdd_r = (np.asanyarray(part)[at] for part in (q_r, qd_r, qdd_r))
        return self.kp * (q_r - q[at]) + self.kd * (qd_r - qd[at]), qdd_r


class PD(_Tracking):
    """Proportional and derivative feedback: τ = kp (q_r − q_a) + kd (q̇_r − q̇_a) [+ what holds the posture].

    Parameters
    ----------
    mech : Mechanism or str
    kp, kd : float or array_like, (n_a,)
        Stiffness [N m/rad or N/m] and damping [N m s/rad or N s/m] of each motor.
    reference : optional
        Of all joints or of those with a motor, see `Law`; rest at zero unless given.
    compensate : bool
        Whether the torque that holds the present posture at rest, against gravity and springs, is added.
    limit : float or array_like, (n_a,), optional
        Largest torques.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> PD(library.planar_2r(), kp=100.0, kd=[20.0, 5.0])(0.0, [0.1, 0.0], [0.0, 1.0])
    array([-10.,  -5.])
    """

    _prepared = ("_inverse",)
    compensate: Any = Checked(lambda _, name, given: bool(one_of(given, name, (True, False))))

    def __init__(
        self,
        mech: Mechanism,
        kp: float | ArrayLike,
        kd: float | ArrayLike,
        reference: ReferenceLike = None,
        *,
        compensate: bool = False,
        limit: ArrayLike | None = None,
    ) -> None:
        self.compensate = compensate
        super().__init__(mech, None, kp, kd, reference, limit)

    def _as_reference(self, given: Any) -> Target | Callable[[float], Target] | None:
        rest = np.zeros(len(self.motors))
        return (rest, rest, rest) if given is None else super()._as_reference(given)

    def _prepare(self) -> None:
        self._inverse = InverseDynamics(self.mech)

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        tau, _ = self._feedback(t, q, qd, reference)
        if not self.compensate:
            return tau
        still = np.zeros(self._shape)
        return tau + self._inverse(q, still, still)[self._motors]


class GravityCompensation(Law):
    """The torque that holds the present posture at rest, against gravity and springs: τ = ID_a(q, 0, 0).

    Joints without motor are not held.

    Parameters
    ----------
    mech : Mechanism or str
    limit : float or array_like, (n_a,), optional
        Largest torques.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> GravityCompensation(library.pendulum())(0.0, [0.0], [3.0])
    array([4.905])
    """

    _prepared = ("_inverse",)

    def __init__(self, mech: Mechanism, limit: ArrayLike | None = None) -> None:
        super().__init__(mech, limit)
        self._prepare()

    def _prepare(self) -> None:
        self._inverse = InverseDynamics(self.mech)

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,); see `Law.torque`."""
        still = np.zeros(self._shape)
        return self._inverse(q, still, still)[self._motors]


class ComputedTorque(_Tracking):
    """Computed torque: τ = ID(q, q̇, q̈_r + kd (q̇_r − q̇) + kp (q_r − q)), so that ë + kd ė + kp e = 0 for e = q − q_r.

    Parameters
    ----------
    mech : Mechanism or str
        With a motor in every joint.
    kp, kd : float or array_like, (n,)
        [1/s²] and [1/s]: kd = 2 √kp damps critically.
    reference : optional
        See `Law`.
    limit : float or array_like, (n,), optional
        Largest torques.

    Raises
    ------
    InvalidValue
        If a joint has no motor.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> law = ComputedTorque(library.pendulum(), kp=100.0, kd=20.0, reference=[0.0])
    >>> law(0.0, [0.0], [0.0])
    array([4.905])
    """

    _prepared = ("_inverse",)

    def __init__(
        self,
        mech: Mechanism,
        kp: float | ArrayLike = 100.0,
        kd: float | ArrayLike = 20.0,
        reference: ReferenceLike = None,
        limit: ArrayLike | None = None,
    ) -> None:
        super().__init__(mech, None, kp, kd, reference, limit)
        without = [name for name in self.mech.names if name not in self.motors]
        if without:
            raise InvalidValue(
                f"ComputedTorque: needs a motor in every joint, {', '.join(map(repr, without))} "
                f"{'has' if len(without) == 1 else 'have'} none; HybridTracking makes those with a motor follow"
            )

    def _prepare(self) -> None:
        self._inverse = InverseDynamics(self.mech)

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        correction, qdd_r = self._feedback(t, q, qd, reference)
        return self._inverse(q, qd, qdd_r + correction)


class HybridTracking(_Tracking):
    """Make some joints follow a motion whatever the others do: the torque of the hybrid dynamics.

    The joints that follow are active: τ is what y = f(q, q̇, u) finds for them where u is their acceleration q̈_r +
    kd (q̇_r − q̇) + kp (q_r − q) and zero for all others. This is collocated partial feedback linearisation, and with
    all joints `ComputedTorque`.

    Parameters
    ----------
    mech : Mechanism or str
    kp, kd : float or array_like
        [1/s²] and [1/s], one for all joints that follow or one for each.
    reference : optional
        Of all joints or of those that follow, see `Law`.
    joints : iterable of str, optional
        The joints that follow; those that are active in the mechanism, or else all that have a motor. Other motors
        give no torque.
    limit : float or array_like, (n_a,), optional
        Largest torques.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> law = HybridTracking(library.acrobot(), kp=100.0, kd=20.0, reference=[0.5])
    >>> law.followed, law(0.0, [-1.5, 0.0], [0.0, 0.0]).round(3)
    (('elbow',), array([8.115]))
    """

    _prepared = ("_hybrid",)

    def __init__(
        self,
        mech: Mechanism,
        kp: float | ArrayLike = 100.0,
        kd: float | ArrayLike = 20.0,
        reference: ReferenceLike = None,
        *,
        joints: Iterable[str] | None = None,
        limit: ArrayLike | None = None,
    ) -> None:
        from cstormpy.control.law import mechanism_of

        mech = mechanism_of(mech, "HybridTracking")
        if joints is None:
            joints = mech.active or mech.actuated
        super().__init__(mech, mech.with_drive(active=joints).active, kp, kd, reference, limit)

    def _prepare(self) -> None:
        self._hybrid = HybridDynamics(self.mech, self.followed)
        # the torques that are found, among those of all motors: the others are given, as zero
        self._found = places(np.array([name in self.followed for name in self.motors], dtype=bool))

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        correction, qdd_r = self._feedback(t, q, qd, reference)
        u = placed(self.mech.n, (self._at, qdd_r + correction))
        return placed(len(self.motors), (self._found, self._hybrid(q, qd, u)[self._at]))
