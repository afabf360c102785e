"""Linear-quadratic regulation along a motion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arguments import function
from cstormpy.arrays import Array
from cstormpy.control.checked import Checked, once
from cstormpy.control.goal import periods
from cstormpy.control.law import Target
from cstormpy.control.lqr import LQR, regulator, state_error, state_feedback, weights
from cstormpy.control.posture_law import PostureLaw, brought_near
from cstormpy.control.prepared import places
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.loops.closed_motions import closed_motion
from cstormpy.mechanism import Mechanism
from cstormpy.trajectory import BSpline

ROUNDING = 1e-9
"""Torque [N m or N] that a motion may always ask of a joint without motor."""

STEP = 0.002
"""Longest step [s] of the Riccati equation and of the table of gains, unless it is said how many there are."""


class TVLQR(PostureLaw):
    """Linear-quadratic regulator along a motion: τ = τ_r(t) − K(t) e with e = (q − q_r, q̇ − q̇_r).

    Angles in e are within half a turn, near which they are eased as those of `LQR`, and balls go the shorter way.

    K = R⁻¹ Bᵀ S, and S is integrated backwards from S(t1) = `final`:

        −dS/dt = Aᵀ S + S A − S B R⁻¹ Bᵀ S + Q

    with the exact linear models of the mechanism along the motion, to fourth order in the step. What the law does at a
    time stands in a table, between whose rows it is interpolated. Before and after the motion it holds the posture of
    that end, at rest, by the torque that gravity and springs ask of the motors there.

    Of a closed mechanism, e is that of joints which loops leave free all along the motion, as many as there are
    freedoms, f of them; f is n for a mechanism without loops. Where constraints of rates leave more positions free, as
    of a wheel that rolls, e has these, too; `states` names what it has.

    Parameters
    ----------
    mech : Mechanism or str
    motion : BSpline or callable
        A spline of all joints, or a function of time that returns (q, qd, qdd), each (n,).
    tau : callable, optional
        A function of time that returns the motor torques (n_a,) along the motion. Unless given they are those of the
        inverse dynamics.
    Q, R : optional
        Weights as for `LQR`.
    final : array_like, (2f, 2f), or LQR, optional
        S at the end: a weight as Q, or the regulator that takes over. Unless given that of
        the posture at the end, with these weights; Q where no feedback holds it.
    t0, t1 : float, optional
        Beginning and end [s]; a spline has its own.
    steps : int, optional
        How many steps; unless given such that none is longer than 2 ms.
    misfit : float
        How large the torque that the motion asks of joints without motor may be, as a part of the largest load in the
        mechanism along it; it is absent from the feed-forward.
    limit : float or array_like, (n_a,), optional
        Largest torques.

    Attributes
    ----------
    t0, t1 : float
    times : ndarray, (steps + 1,)
    states : tuple of str
        Names of the entries of e.
    K : ndarray, (steps + 1, n_a, 2f)
    S : ndarray, (steps + 1, 2f, 2f)
    residual : float
        The largest torque that the motion asks of a joint without motor.

    Raises
    ------
    InvalidValue
        If the mechanism cannot do the motion, or the steps are so few that the gains overflow.

    Examples
    --------
    Along a motion that is rest in an equilibrium the gains are those of `LQR`:

    >>> from cstormpy.mechanism import library
    >>> mech = library.acrobot()
    >>> balance = LQR(mech)
    >>> rest = (balance.goal, np.zeros(2), np.zeros(2))
    >>> law = TVLQR(mech, lambda t: rest, t0=0.0, t1=0.5, final=balance)
    >>> law.K[0].round(1)
    array([[-278.4, -112.3, -119.7,  -56.8]])
    """

    tunable = ()
    t0: Any = Checked(once)
    t1: Any = Checked(once)
    Q: Any = Checked(once)
    R: Any = Checked(once)
    final: Any = Checked(once)

    def __init__(
        self,
        mech: Mechanism,
        motion: BSpline | Callable[[float], Target],
        tau: Callable[[float], Array] | None = None,
        *,
        Q: ArrayLike | None = None,
        R: ArrayLike = 1.0,
        final: ArrayLike | LQR | None = None,
        t0: float | None = None,
        t1: float | None = None,
        steps: int | None = None,
        misfit: float = 0.1,
        limit: ArrayLike | None = None,
    ) -> None:
        super().__init__(mech, limit)
        self.t0, self.t1 = _interval(motion, t0, t1)
        count = math.ceil((self.t1 - self.t0) / STEP) if steps is None else checks.count(steps, "steps")
        halves = np.linspace(self.t0, self.t1, 2 * count + 1)
        self.times = halves[::2]
        q, qd, ahead = self._along(motion, tau, halves, checks.nonnegative(misfit, "misfit"))
        # S of the regulator that takes over is of its joints
        joints = final.states[: len(final.states) // 2] if isinstance(final, LQR) and self.mech.loops else None
        model = self.mech.with_drive(active=()).linearize(q, qd, ahead, independent=joints)
        n, size, names = self.mech.n, len(model.states), self.mech.names
        # those that loops leave free; of wheels that roll more positions than rates
        rates = np.isin([f"{name} rate" for name in names], model.states)
        k = size - int(rates.sum())
        self._at, self._rates_at = places(np.isin(names, model.states[:k])), places(rates)
        self._turn, self._per_turn = (each[self._at] for each in periods(self.mech, q))
        self.Q = weights(np.repeat([10.0, 1.0], [k, size - k]) if Q is None else Q, size, "Q", definite=False)
        self.R = weights(R, len(self.motors), "R", definite=True)
        along = model.states[:k] if self.mech.loops else None
        end = self._taken_over(q[-1], along) if final is None else final.S if isinstance(final, LQR) else final
        self.final = weights(end, size, "final", definite=False)
        self.states = model.states
        self.S, self.K = self._gains(model.A, model.B)
        self._per_second = count / (self.t1 - self.t0)
        self._table = np.hstack([q[::2], qd[::2], ahead[::2], self.K.reshape(count + 1, -1)])
        self._before, self._after = (self._held(row) for row in self._table[[0, -1]])
        self._cuts = (n, 2 * n, 2 * n + len(self.motors))

    def _along(self, motion: Any, tau: Any, times: Array, misfit: float) -> tuple[Array, Array, Array]:
        """Return q, q̇ and the motor torques at N times, with shapes (N, n), (N, n), (N, n_a)."""
        n, motors = self.mech.n, self.mech.actuated_mask
        if isinstance(motion, BSpline):
            self._check_width(motion.n, "motion")
            q, qd, qdd = motion.evaluate(times)
        else:
            # copies: the function may write each answer into the same arrays
            rows = [tuple(map(np.array, self._of_function(motion(float(t)), "motion"))) for t in times]
            parts = zip(*rows, strict=True)
            names = ("q", "qd", "qdd")
            q, qd, qdd = (checks.array(p, (len(times), n), f"motion, {k}") for p, k in zip(parts, names, strict=True))
        if self.mech.loops:
            q, qd, qdd = closed_motion(self.mech, q, qd, qdd, "TVLQR: motion")
        load = self.mech.inverse_dynamics(q, qd, qdd)
        self.residual = float(np.abs(load[:, ~motors]).max(initial=0.0))
        if self.residual > ROUNDING + misfit * float(np.abs(load).max(initial=0.0)):
            k, j = np.unravel_index(np.argmax(np.abs(load * ~motors)), load.shape)
            raise InvalidValue(
                f"TVLQR: the mechanism cannot do this motion: at {times[k]:.4g} s it asks {load[k, j]:.3g} N m (or N) "
                f"of joint {self.mech.names[j]!r}, which has no motor; misfit= says how much is to be allowed"
            )
        if tau is None:
            return q, qd, load[:, motors]
        at = function(tau, "tau", "time")
        takes_times = getattr(at, "takes_times", False)
        given: Any = at(times) if takes_times else [np.array(at(float(t)), ndmin=1) for t in times]
        return q, qd, checks.array(given, (len(times), len(self.motors)), "tau")

    def _hold(self, q: Array) -> Array:
        """Return the motor torques, (n_a,), that gravity and springs ask of a posture at rest."""
        return self.mech.inverse_dynamics(q, 0.0 * q, 0.0 * q)[self.mech.actuated_mask]

    def _held(self, row: Array) -> Array:
        """Return the row of an end at rest in its posture."""
        q, hold = row[: self.mech.n], self._hold(row[: self.mech.n])
        return np.concatenate([q, 0.0 * q, hold, row[2 * len(q) + len(hold) :]])

    def _taken_over(self, q: Array, joints: Any) -> Array:
        """Return S of the regulator in the posture at the end; Q where no feedback holds it.

        As where constraints of rates leave less free at rest than along the motion.
        """
        still = self.mech.with_drive(active=())
        try:
            model = still.linearize(q, 0.0 * q, self._hold(q), independent=joints)
            return regulator(model.A, model.B, self.Q, self.R, model.states)[0]
        except InvalidValue:
            return self.Q

    def _gains(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Return S and K at every other of the samples of the linear model, which stand half a step apart."""
        S = np.empty((len(self.times), *self.Q.shape))
        S[-1] = self.final
        size = len(self.Q)
        steps = _transitions(A, B, self.Q, self.R, float(self.times[1] - self.times[0]))
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            for i in range(len(S) - 1, 0, -1):
                E, here = steps[i - 1], S[i]
                X, Y = E[:size, :size] + E[:size, size:] @ here, E[size:, :size] + E[size:, size:] @ here
                before = np.linalg.solve(X.T, Y.T)
                S[i - 1] = 0.5 * (before + before.T)
        if not np.isfinite(S).all():
            raise InvalidValue(f"TVLQR: {len(S) - 1} steps are too few for the Riccati equation; give more steps=")
        K = np.linalg.solve(self.R, B[::2].transpose(0, 2, 1) @ S)
        return S, cast("Array", K)

    def _place(self, t: float) -> tuple[Any, Any]:
        """Return the row of the tables before a time, and how far it is to the next, from 0 to 1."""
        s = np.clip((t - self.t0) * self._per_second, 0.0, float(len(self.times) - 1))
        row = np.fmin(np.fmax(np.floor(s), 0.0), float(len(self.times) - 2))  # a row of the table, also where t is NaN
        return row.astype(int), s - row

    def _row(self, t: float) -> Array:
        k, s = self._place(t)
        first, second = self._table[k], self._table[k + 1]
        row = first + s * (second - first)
        return np.where(t < self.t0, self._before, np.where(t > self.t1, self._after, row))

    def error(self, t: float, q: Array, qd: Array) -> Array:
        """Return e = (q − q_r(t), q̇ − q̇_r(t)), (2f,), with angles within half a turn, and balls by the shorter way."""
        row = self._row(t)
        q, qd, _ = brought_near(self.mech.ball_starts, q, qd, row[: self.mech.n])
        return self._error(row, q, qd)

    def _error(self, row: Array, q: Array, qd: Array) -> Array:
        at, rates, (a, b, _) = self._at, self._rates_at, self._cuts
        return state_error(q[at], qd[rates], row[:a][at], row[a:b][rates], self._turn, self._per_turn)

    def value(self, t: float, q: Array, qd: Array) -> float:
        """Return V = eᵀ S(t) e, what the linear model still has to pay."""
        k, s = self._place(t)
        e = self.error(t, q, qd)
        return e @ (self.S[k] + s * (self.S[k + 1] - self.S[k])) @ e

    def _posture(self, t: float, reference: Target | None) -> Array:
        return self._row(t)[: self.mech.n]

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        row, (_, b, c) = self._row(t), self._cuts
        return state_feedback(row[b:c], row[c:].reshape(c - b, -1), self._error(row, q, qd), self._turn)


def _transitions(A: Array, B: Array, Q: Array, R: Array, h: float) -> Array:
    """Return the matrices that take (X, Y), with S = Y X⁻¹, one step back, from samples half a step apart.

    d(X, Y)/dt = H (X, Y) with the Hamiltonian matrix H = [A, −B R⁻¹ Bᵀ; −Q, −Aᵀ]; a step is the exponential of Magnus'
    fourth-order series with Simpson's rule. S stays symmetric and positive however stiff its equation is.
    """
    from scipy.linalg import expm

    size = len(Q)
    H = np.empty((len(A), 2 * size, 2 * size))
    H[:, :size, :size], H[:, size:, size:] = A, -A.transpose(0, 2, 1)
    H[:, :size, size:], H[:, size:, :size] = -B @ np.linalg.solve(R, B.transpose(0, 2, 1)), -Q
    late, middle, early = -H[2::2], -H[1::2], -H[:-1:2]
    mean = (late + 4.0 * middle + early) / 6.0
    with np.errstate(over="ignore", invalid="ignore"):  # refused by the caller
        return cast("Array", expm(h * mean - (h * h / 12.0) * (late @ early - early @ late)))


def _interval(motion: Any, t0: float | None, t1: float | None) -> tuple[float, float]:
    if isinstance(motion, BSpline):
        t0, t1 = (motion.t0 if t0 is None else t0), (motion.t1 if t1 is None else t1)
    elif not callable(motion):
        raise InvalidType(f"motion: expected a BSpline or a function of time, got {shown(motion)}")
    elif t0 is None or t1 is None:
        raise InvalidValue("motion: a function does not say when it begins and ends; give t0 and t1")
    begin, end = checks.real(t0, "t0"), checks.real(t1, "t1")
    if end <= begin:
        raise InvalidValue(f"motion: must end after it begins, got t0 = {begin:g} and t1 = {end:g}")
    return begin, end
