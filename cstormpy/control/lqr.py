"""Linear-quadratic regulation about an equilibrium."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import Array, is_single, real_array
from cstormpy.control.checked import Checked, once
from cstormpy.control.goal import eased, goal_posture, periods, wrapped
from cstormpy.control.law import Target
from cstormpy.control.posture_law import PostureLaw, brought_near
from cstormpy.control.prepared import places
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism

OUT_OF_REACH = 1e-9
"""Singular value of [λ − A, B], relative to the largest, below which a mode is not reached by the motors."""

STEADY = 1e-10
"""Rate of decay, relative to the linear model, that counts as one."""

ROUNDING = 1e-9
"""By how much, as a part of its largest entry, a weight may miss symmetry, or an eigenvalue of it fall below zero."""


class LQR(PostureLaw):
    """Linear-quadratic regulator about an equilibrium: τ = τ* − K e, e = (q − q*, q̇) by the shorter way round.

    A joint with limits or a spring, and one that is coupled to another one, has one way only. Within 0.05 rad of half a
    turn, where both ways are as long, the error of a hinge passes through 0.

    K = R⁻¹ Bᵀ S and S solves the Riccati equation Aᵀ S + S A − S B R⁻¹ Bᵀ S + Q = 0 of the exact linear model there;
    V = eᵀ S e falls along the motions of that model.

    Of a closed mechanism, e is that of joints which loops leave free, as many as there are freedoms: those whose names
    the states of `Mechanism.linearize` have. f is their number, and n for a mechanism without loops.

    Parameters
    ----------
    mech : Mechanism or str
        Any set of actuated joints that reaches what is unstable.
    goal : array_like, (n,), optional
        The equilibrium; unless given the highest posture, which is not known where loops are closed. What holds it, τ*,
        is found.
    Q : float or array_like, (2f,) or (2f, 2f), optional
        Weight of e: positive semi-definite, or its diagonal; 10 on positions and 1 on rates unless given.
    R : float or array_like, (n_a,) or (n_a, n_a)
        Weight of the torques: positive definite, or its diagonal.
    limit : float or array_like, (n_a,), optional
        Largest torques.

    Attributes
    ----------
    goal, hold : ndarray
        q* (n,) and τ* (n_a,).
    Q, R : ndarray, (2f, 2f) and (n_a, n_a)
        K and S follow where one of them is set.
    K : ndarray, (n_a, 2f)
    S : ndarray, (2f, 2f)
    A, B : ndarray
        The linear model.
    states : tuple of str
        Names of the entries of e.

    Raises
    ------
    InvalidValue
        Naming what is wrong: a goal that is no equilibrium, weights that are not definite, a mode that the motors do
        not reach.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> LQR(library.acrobot()).K.round(1)
    array([[-278.4, -112.3, -119.7,  -56.8]])
    """

    def __init__(
        self,
        mech: Mechanism,
        goal: ArrayLike | None = None,
        Q: ArrayLike | None = None,
        R: ArrayLike = 1.0,
        limit: ArrayLike | None = None,
    ) -> None:
        super().__init__(mech, limit)
        self.goal, self.hold = goal_posture(self.mech, goal, "LQR")
        model = self.mech.with_drive(active=()).linearize(self.goal, tau=self.hold)
        self.A, self.B = model.A, model.B
        self.states = model.states
        f = len(model.states) // 2
        self._at = places(np.isin(self.mech.names, model.states[:f]))  # those that loops leave free
        self._rest, self._goal_at = np.zeros(f), self.goal[self._at]
        self._turn, self._per_turn = (each[self._at] for each in periods(self.mech, self.goal))
        self.Q, self.R = Q, R

    def _weight(self, name: str, given: Any) -> Array:
        """Return a weight as the law keeps it; K and S are found anew, once both weights are there."""
        size = len(self.states)
        if name == "R":
            weight = weights(given, len(self.motors), name, definite=True)
        else:
            weight = weights(np.repeat([10.0, 1.0], size // 2) if given is None else given, size, name, definite=False)
        weight.setflags(write=False)  # K and S would not follow
        both = vars(self) | {name: weight}
        if "Q" in both and "R" in both:
            self.S, self.K = regulator(self.A, self.B, both["Q"], both["R"], self.states)
        return weight

    def _prepare(self) -> None:
        for weight in (self.Q, self.R):  # copies of arrays can be written into
            weight.setflags(write=False)

    goal: Any = Checked(once)
    Q: Any = Checked(_weight)
    R: Any = Checked(_weight)

    def error(self, q: Array, qd: Array) -> Array:
        """Return e = (q − q*, q̇), (2f,), with angles within half a turn, and balls by the shorter way."""
        q, qd, _ = brought_near(self.mech.ball_starts, q, qd, self.goal)
        return self._error(q, qd)

    def _error(self, q: Array, qd: Array) -> Array:
        at = self._at
        return state_error(q[at], qd[at], self._goal_at, self._rest, self._turn, self._per_turn)

    def value(self, t: float, q: Array, qd: Array) -> float:
        """Return V = eᵀ S e, what the linear model still has to pay."""
        e = self.error(q, qd)
        # one term after the other, as in `state_feedback`: the moment at which a swing-up changes its law is that of V
        return np.cumsum(e * np.cumsum(self.S * e, axis=1)[:, -1])[-1]

    def _posture(self, t: float, reference: Target | None) -> Array:
        return self.goal

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        return state_feedback(self.hold, self.K, self._error(q, qd), self._turn)

    @property
    def gains(self) -> dict[str, float]:
        """The diagonals of the weights, as "Q.elbow", "Q.elbow rate" and "R.elbow"."""
        found = {f"Q.{name}": float(v) for name, v in zip(self.states, np.diag(self.Q), strict=True)}
        return found | {f"R.{name}": float(v) for name, v in zip(self.motors, np.diag(self.R), strict=True)}

    def set_gain(self, name: str, value: float) -> None:
        """Change an entry on the diagonal of a weight; the Riccati equation is solved anew."""
        option(name, "gain", self.gains)
        number = checks.real(value, f"gain {name!r}")
        which, _, entry = name.partition(".")
        changed, names = (self.Q, self.states) if which == "Q" else (self.R, self.motors)
        changed, k = changed.copy(), names.index(entry)
        changed[k, k] = number
        setattr(self, which, changed)


def state_error(q: Array, qd: Array, q_r: Array, qd_r: Array, turn: Array, per_turn: Array) -> Array:
    """Return e = (q − q_r, q̇ − q̇_r), (2n,), with the angles within half a turn, as in `goal.wrapped`.

    >>> turn, per_turn = np.array([2 * np.pi]), np.array([1 / (2 * np.pi)])
    >>> state_error(np.array([6.0]), np.array([1.0]), np.zeros(1), np.zeros(1), turn, per_turn).round(4).tolist()
    [-0.2832, 1.0]
    """
    return np.concatenate((wrapped(q - q_r, turn, per_turn), qd - qd_r))


def state_feedback(tau: Array, gain: Array, e: Array, turn: Array) -> Array:
    """Return τ − K e, (n_a,), with the angles in e eased where they are half a turn; `turn` is as in `goal.periods`.

    >>> state_feedback(np.zeros(1), np.array([[2.0, 1.0]]), np.array([1.0, 3.0]), np.zeros(1)).tolist()
    [-5.0]
    """
    e = np.concatenate((eased(e[: len(turn)], turn), e[len(turn) :]))
    # one term after the other: the order in which a library of linear algebra adds depends on the processor
    return tau - np.cumsum(gain * e, axis=-1)[..., -1]


def weights(value: Any, size: int, name: str, *, definite: bool) -> Array:
    """Return a symmetric weight or covariance (size, size) from a number, a diagonal or a matrix, if it is definite."""
    if is_single(value):
        matrix = np.eye(size) * checks.real(value, name)
    else:
        given = real_array(value, name, (size,), (size, size), hint="give its diagonal or all of it")
        matrix = np.diag(given) if given.ndim == 1 else given.copy()
    scale = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > ROUNDING * scale:
        raise InvalidValue(f"{name}: must be symmetric")
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    if lowest <= 0.0 if definite else lowest < -ROUNDING * scale:
        kind = "positive definite" if definite else "positive semi-definite"
        raise InvalidValue(f"{name}: must be {kind}, its lowest eigenvalue is {lowest:.3g}")
    return 0.5 * (matrix + matrix.T)


def regulator(A: Array, B: Array, Q: Array, R: Array, states: tuple[str, ...]) -> tuple[Array, Array]:
    """Return S (2n, 2n) and K (n_a, 2n) of a linear model.

    Examples
    --------
    >>> A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    >>> S, K = regulator(A, B, np.eye(2), np.eye(1), ("q", "qd"))
    >>> K.round(4)
    array([[1.    , 1.7321]])
    """
    from scipy.linalg import solve_continuous_are, solve_continuous_lyapunov

    # in units of states, inputs and time in which what is weighed is weighed by 1, and the model moves at rates of 1
    x, u = _state_units(A, Q), 1.0 / np.sqrt(np.diag(R))
    A, B, Q, R = A / x[:, None] * x, B / x[:, None] * u, Q * x * x[:, None], R * u * u[:, None]
    rate = float(np.abs(A).max()) or float(np.abs(B).max(initial=0.0)) or 1.0
    A, B = A / rate, B / rate
    _refuse_unreachable(A, B, states, rate)
    try:
        S = solve_continuous_are(A, B, Q, R)
        S = 0.5 * (S + S.T)
        K = np.linalg.solve(R, B.T @ S)
        slowest = float(np.linalg.eigvals(A - B @ K).real.max())
    except (np.linalg.LinAlgError, ValueError):
        slowest = 0.0
    if slowest > -STEADY:
        raise InvalidValue(
            "LQR: the Riccati equation has no solution that brings the mechanism to rest; Q must weigh every motion "
            f"that does not come to rest by itself{_unweighed(A, Q, states)}"
        )
    # one step by Newton's method (Kleinman 1968), of what remains: gradients to weights are differences of K
    remains = A.T @ S + S @ A - K.T @ R @ K + Q
    S = S + solve_continuous_lyapunov((A - B @ K).T, -remains)
    S = 0.5 * (S + S.T)
    K = np.linalg.solve(R, B.T @ S)
    return S / rate / x / x[:, None], K * u[:, None] / x


def _state_units(A: Array, Q: Array) -> Array:
    """Return units of the states in which Q weighs them by 1; of one that it does not weigh, what moves such a one."""
    weight = np.diag(Q)
    units = 1.0 / np.sqrt(np.where(weight > 0.0, weight, np.inf))
    fast = float(np.abs(np.linalg.eigvals(A)).max()) or 1.0
    for i in np.flatnonzero(units == 0.0):
        moves = (units > 0.0) & (A[:, i] != 0.0)
        units[i] = (fast * units[moves] / np.abs(A[moves, i])).min(initial=np.inf)
    return np.where(np.isfinite(units) & (units > 0.0), units, 1.0)


def _unweighed(A: Array, Q: Array, states: tuple[str, ...]) -> str:
    """Return which state moves most in a mode that does not decay and that Q does not see; nothing if none does."""
    values, modes = np.linalg.eig(A)
    weights = np.einsum("ik,ij,jk->k", modes.conj(), Q, modes).real
    unseen = np.flatnonzero((values.real > -STEADY) & (weights <= OUT_OF_REACH * max(float(np.abs(Q).max()), 1e-300)))
    return f", as {states[int(np.argmax(np.abs(modes[:, unseen[0]])))]!r} does" if unseen.size else ""


def _refuse_unreachable(A: Array, B: Array, states: tuple[str, ...], rate: float) -> None:
    """Refuse a model with a mode that does not decay and that the inputs do not reach (Popov, Belevitch, Hautus).

    Its time is in units of 1 / rate.
    """
    size = len(A)
    pushed = np.abs(B).max(axis=0, initial=0.0)
    inputs = B / np.where(pushed > 0.0, pushed, 1.0)
    values, left = np.linalg.eig(A.T)
    for k in np.argsort(-values.real):
        if values[k].real < -STEADY:
            return
        singular = np.linalg.svd(np.hstack([values[k] * np.eye(size) - A, inputs]), compute_uv=False)
        if singular[-1] <= OUT_OF_REACH * singular[0]:
            most = states[int(np.argmax(np.abs(left[:, k])))]
            raise InvalidValue(
                f"LQR: the motors do not reach the mode of eigenvalue {values[k] * rate:.4g} 1/s (mostly {most!r}): "
                "there the linear model is not controllable; choose another equilibrium or another set of actuated "
                "joints"
            )
