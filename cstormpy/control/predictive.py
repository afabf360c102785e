"""Linear model predictive control: the best inputs over a horizon, within limits, as a quadratic programme.

Reference: J. B. Rawlings, D. Q. Mayne and M. M. Diehl, "Model predictive control", 2nd edition, 2017, chapters 1 and 2.

============  ====================================================================================
e, v          deviations of states and inputs from the point that the model is about
r             what the states are to come to, as a deviation
V             the inputs v_0 … v_{N−1} of the horizon, one behind the other
X             the states e_1 … e_N that follow
K_k           the gains of the regulator over the horizon, by the Riccati recursion from e_N on
w             what V adds to it, in units of its cost: v_k = −K_k e_k + T_k w_k, T_kᵀ (R + Bᵀ P_{k+1} B) T_k = 1
s             by how much each soft output leaves its limits, at most, over the horizon, in units of √ρ⁻¹
============  ====================================================================================

The programme is to

    minimise   ½ Σ (e_k − r)ᵀ Q (e_k − r) + v_{k−1}ᵀ R v_{k−1}  +  ½ (e_N − r)ᵀ (P − Q) (e_N − r)  +  ½ sᵀ s
    subject to  v within its limits,  e_1 … e_N within theirs,  C e_k within its limits widened by s ≥ 0.

States are eliminated, so that it has the variables (w, s) only: X = Φ e_0 + Γ w, V = Φ_v e_0 + Γ_v w. Its cost is then
½ wᵀ w + ½ sᵀ s, and a part that is linear in w where r is not 0. Without the gains Γ grows by the powers of A: that of
a pendulum that is to stand up has nothing left of its digits over a horizon of some seconds.

With P the solution of the Riccati equation, and no limit reached, v_0 = −K (e_0 − r) of the linear-quadratic regulator
where r is an equilibrium of the model. The programme is solved by the dual active-set method of DAQP (Arnström,
Bemporad and Axehill 2022), which starts from the limits that were reached the last time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array, is_single, real_array
from cstormpy.control.goal import goal_posture, periods, wrapped
from cstormpy.control.lqr import weights
from cstormpy.control.posture_law import brought_near, turned_back
from cstormpy.errors import BlockError, InvalidValue
from cstormpy.values import FrozenError

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

SETTINGS = {"primal_tol": 1e-10, "dual_tol": 1e-12, "eps_prox": 0.0}
"""Of DAQP: limits are kept to the first, relative to the length of their rows; the costs are strictly convex."""

SOLVED = (1, 2)
"""DAQP's flags of a solution, without and with a soft limit exceeded."""

BROKEN = 1e-8
"""How far a limit has to be exceeded, at best, to be the one that cannot be kept."""

MISSING = (
    "model predictive control needs the solver DAQP, which is not installed; get it by pip install 'cstormpy[mpc]'"
)


def sampled_model(A: ArrayLike, B: ArrayLike, dt: float) -> tuple[Array, Array]:
    """Return the model e[k+1] = A_d e[k] + B_d v[k] of one in continuous time, its inputs held over a period.

    Examples
    --------
    >>> A, B = sampled_model([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], 0.5)
    >>> A.tolist(), B.tolist()
    ([[1.0, 0.5], [0.0, 1.0]], [[0.125], [0.5]])
    """
    from scipy.linalg import expm

    a, b = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    n, m = b.shape
    both = expm(dt * np.block([[a, b], [np.zeros((m, n + m))]]))
    return both[:n, :n], both[:n, n:]


class Plan:
    """Inputs and states over the horizon.

    Attributes
    ----------
    inputs : ndarray, (N, m)
        The first is to be applied now; torques of balls by the rotation vectors that the state has now.
    states : ndarray, (N, n)
        After each input, as the model predicts them, balls by the rotation vectors nearest to the point of the model.
    exceeded : ndarray, (soft outputs,)
        By how much each soft output leaves its limits at most.
    iterations : int
        Of the active-set method.
    """

    def __init__(self, inputs: Array, states: Array, exceeded: Array, iterations: int) -> None:
        self.inputs, self.states, self.exceeded, self.iterations = inputs, states, exceeded, iterations


class PredictiveController:
    """Linear model predictive control of x[k+1] − x* = A (x[k] − x*) + B (u[k] − u*).

    Parameters
    ----------
    A, B : array_like, (n, n), (n, m)
        The sampled model.
    horizon : int
        N, the number of periods that are planned.
    Q, R : float or array_like
        Weights of the states and of the inputs: one number, a diagonal, or a matrix; R is positive definite.
    P : float or array_like, optional
        Weight of the last states; unless given, what the regulator without limits still has to pay (Riccati).
    low, high : float or array_like, (m,), optional
        Limits of the inputs.
    x_low, x_high : float or array_like, (n,), optional
        Limits of the states, ±inf where there is none.
    C : array_like, (r, n), optional
        Soft outputs C (x − x*); their limits `y_low` and `y_high` may be exceeded, for `penalty` times the square.
    y_low, y_high : float or array_like, (r,), optional
    penalty : float
        ρ.
    x, u : array_like, (n,), (m,), optional
        The point x*, u* that the model is about; zeros unless given.
    turn : array_like, (n,), optional
        What brings a state to the same place again, 2π or 0; deviations are taken by the shorter way round, those of
        states without limits from what they are to come to.
    balls : mapping of int to int, optional
        Where the rotation vector of a ball joint begins in x = (q, q̇), and where its torques do in u, −1 without motor.
    free : sequence of int, optional
        Which of the states of a closed mechanism are those of the model, as the others follow. `turn` and `balls`, the
        states that are asked about and those that they are to come to are then of all, and `x` is too.
    states, inputs : sequence of str, optional
        Names, for messages.

    Raises
    ------
    InvalidValue
        Naming what is wrong: shapes, weights that are not definite, limits that leave nothing between them.
    BlockError
        If the solver is not installed.

    Examples
    --------
    >>> A, B = sampled_model([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], 0.1)
    >>> mpc = PredictiveController(A, B, horizon=20, low=-1.0, high=1.0)
    >>> mpc([1.0, 0.0]).round(6), mpc([0.1, 0.0]).round(4)
    (array([-0.917075]), array([-0.0917]))
    """

    def __init__(
        self,
        A: ArrayLike,
        B: ArrayLike,
        horizon: int = 20,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 1.0,
        P: ArrayLike | None = None,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        x_low: ArrayLike | None = None,
        x_high: ArrayLike | None = None,
        C: ArrayLike | None = None,
        y_low: ArrayLike | None = None,
        y_high: ArrayLike | None = None,
        penalty: float = 1e4,
        x: ArrayLike | None = None,
        u: ArrayLike | None = None,
        turn: ArrayLike | None = None,
        balls: Mapping[int, int] | None = None,
        free: Sequence[int] | None = None,
        states: Any = None,
        inputs: Any = None,
    ) -> None:
        if find_spec("daqp") is None:
            raise BlockError(MISSING)
        self.A = real_array(A, "A", ("n", "n")) + 0.0
        n = len(self.A)
        self.B = real_array(B, "B", (n, "m")) + 0.0
        m = self.B.shape[1]
        self.n, self.m, self.N = n, m, checks.count(horizon, "horizon", 500)
        self.Q, self.R = weights(Q, n, "Q", definite=False), weights(R, m, "R", definite=True)
        self.P = _riccati(self.A, self.B, self.Q, self.R) if P is None else weights(P, n, "P", definite=False)
        self._at = np.arange(n) if free is None else np.array(free)
        #: How many states are given, of which those of the model are some.
        self.given = n if free is None else len(np.atleast_1d(x))  # type: ignore[arg-type]
        self._point, self.u = _vector(x, self.given, "x"), _vector(u, m, "u")
        self.x = self._point[self._at]
        self.turn = _vector(turn, self.given, "turn")
        self._per_turn = np.divide(1.0, self.turn, out=np.zeros(self.given), where=self.turn > 0.0)
        self.balls = dict(balls or {})
        self.states = tuple(states or (f"state {k}" for k in range(n)))
        self.inputs = tuple(inputs or (f"input {k}" for k in range(m)))
        self.C = np.zeros((0, n)) if C is None else np.atleast_2d(real_array(C, "C", ("any", n), (n,)) + 0.0)
        self.penalty = checks.positive(penalty, "penalty")
        self._slack = 1.0 / np.sqrt(self.penalty)
        self._limits = (
            _limits(low, high, m, "low", "high", self.inputs),
            _limits(x_low, x_high, n, "x_low", "x_high", self.states),
            _limits(y_low, y_high, len(self.C), "y_low", "y_high", self._outputs()),
        )
        (_, (x_low, x_high), _), weighed = self._limits, (self.C != 0.0).any(axis=0)
        self._limited = np.isfinite(x_low) | np.isfinite(x_high) | weighed  # these are elsewhere after a turn
        self._condense()
        self._model: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse other numbers once the programme is written down."""
        if "_model" in vars(self) and not name.startswith("_"):
            raise FrozenError(f"PredictiveController: {name!r} cannot be set later, make another controller with it")
        super().__setattr__(name, value)

    @classmethod
    def of_mechanism(
        cls, mech: Mechanism, dt: float, goal: ArrayLike | None = None, **options: Any
    ) -> PredictiveController:
        """Return a controller about an equilibrium of a mechanism, upright unless one is given.

        Parameters
        ----------
        mech : Mechanism
            Its motors are the inputs, the states are (q, q̇); of a closed mechanism weights and limits are of those of
            the joints that loops leave free, whose names the states of `Mechanism.linearize` have.
        dt : float
            Period of the controller [s].
        goal : array_like, (n,), optional
        **options
            Others of `PredictiveController`; limits are those of positions, rates and torques themselves, not of
            deviations.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mpc = PredictiveController.of_mechanism(library.acrobot(), 0.02, Q=[10, 10, 1, 1], low=-25, high=25)
        >>> mpc([1.5708, 0.0, 0.1, 0.0]).round(2)
        array([10.24])
        """
        posture, hold = goal_posture(mech, goal, "MPC")
        model = mech.with_drive(active=()).linearize(posture, tau=hold)
        A, B = sampled_model(model.A, model.B, checks.positive(dt, "dt"))
        point = np.concatenate([posture, np.zeros(mech.n)])
        turn = np.concatenate([periods(mech, posture)[0], np.zeros(mech.n)])
        motors = np.flatnonzero(mech.actuated_mask).tolist()
        balls = {k: motors.index(k) if k in motors else -1 for k in mech.ball_starts}
        f = len(model.states) // 2
        at = np.flatnonzero(np.isin(mech.names, model.states[:f]))  # those that loops leave free
        own = {"free": [*at, *(mech.n + at)], "states": model.states, "inputs": model.inputs}
        return cls(A, B, **{"x": point, "u": hold, "turn": turn, "balls": balls, **own, **options})

    # ---------------------------------------------------------------- the programme

    def _condense(self) -> None:
        """Write the programme down in (w, s): what f is of r, what V and X are of e_0 and w, and the rows."""
        n, m, N = self.n, self.m, self.N
        gains, units = self._regulator()
        phi, gamma = np.zeros((N, n, n)), np.zeros((N, n, N * m))
        phi_v, gamma_v = np.zeros((N, m, n)), np.zeros((N, m, N * m))
        at, by = np.eye(n), np.zeros((n, N * m))  # e_k = at e_0 + by w
        for k in range(N):
            phi_v[k], gamma_v[k] = -gains[k] @ at, -gains[k] @ by
            gamma_v[k, :, k * m : (k + 1) * m] = units[k]
            at, by = self.A @ at + self.B @ phi_v[k], self.A @ by + self.B @ gamma_v[k]
            phi[k], gamma[k] = at, by
        self._pull = np.zeros((N * m + len(self.C), n))  # f = _pull r
        for weight, by in zip([self.Q] * (N - 1) + [self.P], gamma, strict=True):
            self._pull[: N * m] -= by.T @ weight
        self._phi, self._gamma = phi.reshape(N * n, n), gamma.reshape(N * n, N * m)
        self._phi_v, self._gamma_v = phi_v.reshape(N * m, n), gamma_v.reshape(N * m, N * m)
        self._rows_of_limits()

    def _regulator(self) -> tuple[Array, Array]:
        """Return K_k and T_k by the Riccati recursion: from behind, with what e_{k+1} has still to pay."""
        gains, units = np.zeros((self.N, self.m, self.n)), np.zeros((self.N, self.m, self.m))
        cost = self.P
        for k in reversed(range(self.N)):
            hill = self.R + self.B.T @ cost @ self.B
            try:
                units[k] = np.linalg.inv(np.linalg.cholesky(0.5 * (hill + hill.T))).T
            except np.linalg.LinAlgError:
                raise InvalidValue("Q, R, P: the weights are of too different size") from None
            gains[k] = units[k] @ units[k].T @ self.B.T @ cost @ self.A
            left = self.A - self.B @ gains[k]
            cost = self.Q + gains[k].T @ self.R @ gains[k] + left.T @ cost @ left
        return gains, units

    def _rows_of_limits(self) -> None:
        N, r = self.N, len(self.C)
        (low, high), (x_low, x_high), (y_low, y_high) = self._limits
        rows, free, lower, upper, what = [], [], [], [], []
        for kind, by, at, least, most in (
            ("input", self._gamma_v, self._phi_v, low - self.u, high - self.u),
            ("state", self._gamma, self._phi, x_low - self.x, x_high - self.x),
        ):
            kept = np.tile(np.isfinite(least) | np.isfinite(most), N)
            rows.append(np.hstack([by[kept], np.zeros((int(kept.sum()), r))]))
            free.append(at[kept])
            lower.append(np.tile(least, N)[kept])
            upper.append(np.tile(most, N)[kept])
            what += [(kind, *divmod(int(row), len(least))) for row in np.flatnonzero(kept)]
        outputs = np.kron(np.eye(N), self.C)
        for sign, limit, name in ((1.0, y_high, "above"), (-1.0, -y_low, "below")):
            kept = np.tile(np.isfinite(limit), N)
            rows.append(np.hstack([sign * outputs @ self._gamma, -np.tile(self._slack * np.eye(r), (N, 1))])[kept])
            free.append((sign * outputs @ self._phi)[kept])
            upper.append(np.tile(limit, N)[kept])
            lower.append(np.full(int(kept.sum()), -np.inf))
            what += [(name, *divmod(int(row), r)) for row in np.flatnonzero(kept)]
        self._what, self._rows, self._free = what, np.vstack(rows), np.vstack(free)
        count = N * self.m + r
        self._bounds = np.concatenate([np.full(N * self.m, -np.inf), np.zeros(r)]), np.full(count, np.inf)
        self._lower, self._upper = np.concatenate(lower), np.concatenate(upper)
        self._sense = np.zeros(count + len(self._rows), dtype=np.int32)

    def _outputs(self) -> tuple[str, ...]:
        return tuple(f"output {k}" for k in range(len(self.C)))

    def __repr__(self) -> str:
        """Return its size."""
        counts = ((self.n, "state"), (self.m, "input"), (self.N, "period"))
        sizes = ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)
        return f"<PredictiveController: {sizes}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: the solver's workspace is made anew."""
        return {**self.__dict__, "_model": None}

    def reset(self) -> None:
        """Forget which limits were reached."""
        self._model = None

    # ---------------------------------------------------------------- its solution

    def __call__(self, x: ArrayLike, reference: ArrayLike | None = None) -> Array:
        """Return the inputs to apply now, (m,); the arguments are those of `plan`."""
        return self.plan(x, reference).inputs[0]

    def plan(self, x: ArrayLike, reference: ArrayLike | None = None) -> Plan:
        """Return the best inputs over the horizon.

        Parameters
        ----------
        x : array_like, (n,)
            The states now, of a closed mechanism of all joints.
        reference : array_like, (n,), optional
            What they are to come to; the point of the model unless given.

        Raises
        ------
        InvalidValue
            If no inputs keep the states within their limits, naming the limit that is exceeded most at best.
        """
        n, m, N = self.n, self.m, self.N
        now = checks.array(x, (self.given,), "x")
        wanted = self._point if reference is None else checks.array(reference, (self.given,), "reference")
        r = self._deviation(wanted)[0]
        e, turns = self._deviation(now, np.where(self._limited, 0.0, r))
        found, flag, info = self._solve(e, r)
        if flag not in SOLVED:
            raise InvalidValue(self._why_not(e, flag))
        w, (low, high) = found[: N * m], self._limits[0]
        states = self.x + (self._phi @ e + self._gamma @ w).reshape(N, n)
        best = np.clip(self.u + (self._phi_v @ e + self._gamma_v @ w).reshape(N, m), low, high)
        inputs = np.array([turned_back([*self.balls.values()], row, turns) for row in best])
        return Plan(inputs, states, self._slack * found[N * m :], int(info["iterations"]))

    def _deviation(self, x: Array, about: Array | float = 0.0) -> tuple[Array, list[Array]]:
        """Return x − x* by the shorter way round from a deviation, and how the rates of balls are turned for that."""
        q, qd = np.split(x, [self.given // 2])
        q, qd, turns = brought_near([*self.balls], q, qd, self._point)
        at, off = self._at, (np.concatenate([q, qd]) - self._point)[self._at]
        return about + wrapped(off - about, self.turn[at], self._per_turn[at]), turns

    def _solve(self, e: Array, r: Array) -> tuple[Array, int, dict[str, Any]]:
        f = self._pull @ r
        moved = self._free @ e
        lower = np.concatenate([self._bounds[0], self._lower - moved])
        upper = np.concatenate([self._bounds[1], self._upper - moved])
        if self._model is None:
            self._model = import_module("daqp").Model()
            self._model.settings = SETTINGS
            flag, _ = self._model.setup(np.eye(len(f)), f, self._rows, upper, lower, self._sense)
            if flag < 0:  # as where no input reaches what is beyond a limit
                self._model = None
                return f, int(flag), {}
        else:
            self._model.update(f=f, bupper=upper, blower=lower)
        found, _, flag, info = self._model.solve()
        if flag not in SOLVED:
            self._model = None  # what was reached in a programme without a solution helps no other one
        return np.asarray(found), int(flag), info

    def _why_not(self, e: Array, flag: int) -> str:
        """Say which limit cannot be kept: that which is exceeded most where the sum of squares is least."""
        count, soft = len(self._bounds[0]), np.array([kind != "input" for kind, _, _ in self._what])
        moved, rows = self._free @ e, int(soft.sum())
        H = np.diag(np.concatenate([np.full(count, 1e-9), np.ones(rows)]))
        wide = np.hstack([self._rows, np.eye(len(soft))[:, soft]])
        bounds = [np.concatenate([b, np.full(rows, s), limit - moved]) for b, s, limit in (
            (self._bounds[0], -np.inf, self._lower), (self._bounds[1], np.inf, self._upper))]  # fmt: skip
        found, _, _, _ = import_module("daqp").solve(
            H, np.zeros(len(H)), wide, bounds[1], bounds[0], np.zeros(len(bounds[0]), dtype=np.int32)
        )
        left = np.asarray(found)[count:]
        if np.abs(left).max(initial=0.0) < BROKEN:
            return f"the quadratic programme was not solved (DAQP says {flag}); are the weights of very different size?"
        worst = int(np.argmax(np.abs(left)))
        _, k, j = self._what[np.flatnonzero(soft)[worst]]
        side, limit = ("below", self._limits[1][0][j]) if left[worst] > 0.0 else ("above", self._limits[1][1][j])
        return (
            f"no inputs within their limits keep {self.states[j]!r} from going {side} {limit:g} after {k + 1} of "
            f"{self.N} periods, at best by {abs(left[worst]):.3g}; widen that limit, or make it soft by C= and y_low=, "
            "y_high="
        )


def _vector(value: ArrayLike | None, n: int, what: str) -> Array:
    return np.zeros(n) if value is None else checks.array(value, (n,), what).copy()


def _limits(
    low: ArrayLike | None, high: ArrayLike | None, n: int, lower: str, upper: str, names: tuple[str, ...]
) -> tuple[Array, Array]:
    """Return lower and upper limits, infinite where there is none; refuse those with nothing between them."""
    found = []
    for value, what, none in ((low, lower, -np.inf), (high, upper, np.inf)):
        given = none if value is None else value
        if is_single(given):
            given = np.full(n, real_array(given, what, (), finite=False))
        array = real_array(given, what, (n,), finite=False, hint="one for each, inf where there is none") + 0.0
        if np.isnan(array).any():
            raise InvalidValue(f"{what}: expected numbers, got nan; write inf where there is no limit")
        found.append(array)
    for name, a, b in zip(names, *found, strict=True):
        if not a <= b or a == np.inf or b == -np.inf:
            raise InvalidValue(f"{lower}, {upper}: there is nothing between {a:g} and {b:g} for {name!r}")
    return found[0], found[1]


def _riccati(A: Array, B: Array, Q: Array, R: Array) -> Array:
    from scipy.linalg import solve_discrete_are

    try:
        found = solve_discrete_are(A, B, Q, R)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise InvalidValue(
            "P: the Riccati equation has no solution, as the inputs do not reach a state that does not decay, or Q "
            f"does not weigh it; give P ({error})"
        ) from None
    return np.asarray(0.5 * (found + found.T))
