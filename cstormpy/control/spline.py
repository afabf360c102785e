"""Swing up along an optimised motion by time-varying LQR, then balance by LQR; far from its start brake first."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.control.checked import Checked
from cstormpy.control.law import Law, Target
from cstormpy.control.lqr import LQR
from cstormpy.control.sequence import BALANCE, SWING, SwingUp
from cstormpy.control.tvlqr import TVLQR
from cstormpy.trajectory import BSpline

BRAKE = 2

SHARE = 0.8
"""Part of the largest torque that the motion may use; the rest is left to the feedback."""

SOURCE = "cstormpy.optimal.spline_law", "swing_up"
"""Function that finds a motion: what optimises stands above the laws, and is asked when a motion is first needed."""

RELEASE = 33.0
"""Release over threshold unless it is given: 1650, from where the regulator of the "teaching" acrobot still holds."""

NEAR = 0.4
"""Time [s] that, times the square of the torque which the motion leaves to the feedback, is a cost it can pay."""

HARDER = 0.1
"""Weight of the torque while braking, as part of that while swinging: the mechanism is far away, the torque bounded."""


class _Along(Law):
    """Time-varying LQR along a motion that begins at time zero; made at its first use."""

    _prepared = ("_made",)

    def __init__(self, balance: LQR, settings: Mapping[str, Any], limit: ArrayLike | None) -> None:
        super().__init__(balance.mech, limit)
        self.settings, self.balance = dict(settings), balance
        self._prepare()

    def _prepare(self) -> None:
        self._made: tuple[BSpline, TVLQR, LQR] | None = None

    @property
    def ready(self) -> bool:
        return self._made is not None

    def forget(self) -> None:
        """Make the regulators anew, with the weights as they are now."""
        self._prepare()

    def _parts(self) -> tuple[BSpline, TVLQR, LQR]:
        if self._made is None:
            module, name = SOURCE
            balance, mech = self.balance, self.mech
            motion: BSpline = getattr(import_module(module), name)(mech, goal=balance.goal, **self.settings).motion
            follow = TVLQR(mech, motion, Q=balance.Q, R=balance.R, final=balance, limit=self.limit)
            brake = LQR(mech, motion(motion.t0), balance.Q, HARDER * balance.R, self.limit)
            self._made = motion, follow, brake
        return self._made

    @property
    def motion(self) -> BSpline:
        return self._parts()[0]

    @property
    def brake(self) -> LQR:
        """The law that brings the mechanism to rest where the motion starts."""
        return self._parts()[2]

    def away(self, q: Array, qd: Array) -> float:
        """Return V = eᵀ S e of the start of the motion: what it would cost to join it now."""
        follow = self._parts()[1]
        return follow.value(follow.t0, q, qd)

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,), at a time since the motion began; after its end as at it."""
        follow = self._parts()[1]
        return follow.torque(np.minimum(follow.t0 + t, follow.t1), q, qd)


class SplineSwingUp(SwingUp):
    """Swing up along an optimised spline, τ = τ_r(t) − K(t) e, then balance by LQR.

    The motion goes from rest, hanging, to rest in the goal. It is found when the law is first asked for a torque or
    begins, takes seconds to find, and is kept; see `cstormpy.optimal.spline_law.swing_up`.

    - In the phase "swing up" a time-varying LQR follows the motion, until V = eᵀ S e of the regulator in the goal falls
      below `threshold`, as it does along the end of the motion.
    - In the phase "balance" that regulator acts, until V rises above `release`.
    - In the phase "brake" a regulator brings the mechanism to the start of the motion. It is the first phase where
      joining the motion would cost more than `near`, and the one after a miss or a slip; the swing begins where the
      cost falls to `near`.

    Parameters
    ----------
    mech : Mechanism or str
    goal : array_like, (n,), optional
        The equilibrium to come to; the highest posture unless given.
    duration : float
        Of the motion [s].
    points : int
        Control points of each motor's spline.
    threshold : float
        V below which the motion is left to balance.
    release : float, optional
        V above which balancing is given up; 33 times the threshold unless given.
    near : float, optional
        Cost of joining the motion above which the law brakes first. Unless given, 0.4 s times the square of the part of
        the limit that the motion leaves to the feedback, 10 for 25 N m; no bound without a limit.
    limit : float or array_like, (n_a,)
        Largest torques; the motion uses 80 % of them.
    Q, R
        Weights of all regulators, as for `LQR`; the one that brakes weighs the torque a tenth of it.

    Attributes
    ----------
    motion : BSpline
        The motion of all joints.
    """

    tunable = ("threshold", "release", "near")
    modes = ("swing up", "balance", "brake")

    def __init__(
        self,
        mech: Any,
        goal: ArrayLike | None = None,
        duration: float = 3.0,
        points: int = 16,
        threshold: float = 50.0,
        release: float | None = None,
        near: float | None = None,
        limit: ArrayLike | None = 25.0,
        Q: ArrayLike | None = None,
        R: ArrayLike = 1.0,
    ) -> None:
        balance = LQR(mech, goal, Q, R, limit)
        settings = {"duration": checks.positive(duration, "duration"), "points": checks.count(points, "points")}
        most = None if balance.limit is None else balance.limit.tolist()
        let_go = RELEASE * checks.positive(threshold, "threshold") if release is None else release
        super().__init__(_Along(balance, {**settings, "limit": most}, limit), balance, threshold, let_go)
        self.near = near

    def _joined(self, name: str, value: Any) -> float:
        return _near(self.balance.limit) if value is None else checks.positive(value, name)

    near: Any = Checked(_joined)

    @property
    def ready(self) -> bool:
        """True once the motion is there; it is found when the law is first asked for a torque or begins."""
        return self._along.ready

    @property
    def _along(self) -> _Along:
        assert isinstance(self.pump, _Along), "made so"
        return self.pump

    @property
    def motion(self) -> BSpline:
        """The motion of all joints that is followed; its time begins with the phase."""
        return self._along.motion

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,), of the present phase, within its limit."""
        if self.mode == SWING:
            return self.pump(t - self.begun, q, qd)
        return (self._along.brake if self.mode == BRAKE else self.balance)(t, q, qd)

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Balance if V is below the release, swing if the start of the motion is near, else brake."""
        if self.value(t, q, qd) < self.release:
            self.mode = BALANCE
        else:
            self._swing_or_brake(t, q, qd)

    def _swing_or_brake(self, t: float, q: Array, qd: Array) -> None:
        self.mode, self.begun = (SWING if self._along.away(q, qd) <= self.near else BRAKE), t

    def margin(self, t: float, q: Array, qd: Array) -> float:
        """Return how far it is to the end of the phase: in V, in the cost to join the motion, or in time."""
        if self.mode == BRAKE:
            return self._along.away(q, qd) - self.near
        v = self.value(t, q, qd)
        if self.mode == BALANCE:
            return self.release - v
        left = self.begun + self.motion.duration - t
        return np.minimum(v - self.threshold, self.threshold * left)

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Change the phase: a motion that ended within reach of the regulator is balanced, a miss is braked."""
        if self.mode == BRAKE:
            self.mode, self.begun = SWING, t
        elif self.mode == SWING and self.value(t, q, qd) < self.release:
            self.mode = BALANCE
        else:
            self._swing_or_brake(t, q, qd)

    def set_gain(self, name: str, value: float) -> None:
        """Change a tunable number; the regulators are made anew where a weight changes."""
        super().set_gain(name, value)
        if name in self.balance.gains:
            self._along.forget()


def _near(limit: Array | None) -> float:
    if limit is None:
        return float("inf")
    return NEAR * float((((1.0 - SHARE) * limit) ** 2).sum())
