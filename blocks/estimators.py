"""State estimators: the Kalman filter, and the extended one of a mechanism."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from bdsim.components import SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import whole_number
from cstormpy.arrays import Array, real_array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.control.lqr import weights
from cstormpy.errors import CstormError, InvalidValue
from cstormpy.linkage.degrees import say_degrees
from cstormpy.linkage.joints.ball import other_vector
from cstormpy.loops.sensitivity import closed_sensitivity
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.signals.estimation import corrected, motion_step, predicted_covariance
from cstormpy.signals.systems import linear_rate, state_space
from cstormpy.trajectory.checks import finite_array

#: By which share of itself an error has to shrink in a period, so that it is no rounding of one that stays.
_DECAYS = 1e-12


#: Outputs that are there with ``diagnostics=True``.
_DIAGNOSTICS = ("covariance", "innovation", "innovation_covariance")


class _Estimator(bases.NamedStates):
    """Base of both filters: estimate and covariance as states, and a measurement that corrects them."""

    nin = 2
    nout = 1
    outlabels = ("estimate",)
    _size: int
    _held: bool
    _diagnosed: bool
    C: Array
    R: Array

    @property
    def aside(self) -> slice:
        """Which states are none of a linear model: the covariance, which counts as what it is at the point."""
        return slice(self._size, None)

    def names_of_states(self) -> list[str]:
        """Return the names of the states: those of the estimate, of its covariance, and whether it has begun."""
        n, count = self._size, self.ndstates  # type: ignore[attr-defined]
        covariance = [f":P[{i},{j}]" for i in range(n) for j in range(n)]
        return [*self._names_of_estimate(), *covariance, ":begun"][:count]

    def _names_of_estimate(self) -> list[str]:
        return [f":x[{k}]" for k in range(self._size)]

    def _outputs(self) -> tuple[str, ...]:
        return (*self.outlabels, *_DIAGNOSTICS[: 3 * self._diagnosed])

    def _widths_of_outputs(self) -> tuple[ports.Width, ...]:
        n, outputs = self._size, len(self.C)
        return n, *((n, n), outputs, (outputs, outputs))[: 3 * self._diagnosed]

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the estimate, and what tells whether it is as good as the filter takes it to be."""
        estimate, P = self._before(u, x)
        innovation = self._innovation(u, estimate)
        found = [*corrected(estimate, P, innovation, self.C, self.R)]
        return [*found, innovation, self.C @ P @ self.C.T + self.R] if self._diagnosed else found[:1]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the prediction for the next tick, or what it will be made of, and its covariance."""
        found = self._now(u, x)
        return self._states(*(found if self._held else self._ahead(u, *found)), 1.0)

    def going_on(self, x: Array) -> Array:
        """Return states as those of a run that goes on, of which a linear model is: the first tick predicts nothing."""
        if not self._held or x[-1] > 0.5:
            return x
        n = self._size
        found = corrected(x[:n], x[n : n + n * n].reshape(n, n), np.zeros(len(self.C)), self.C, self.R)
        return self._states(*found, 1.0)

    def _states(self, estimate: Array, P: Array, begun: float) -> Array:
        return np.concatenate([estimate, np.ravel(P), *([np.array([begun])] if self._held else [])])

    def _before(self, u: Sequence[Any], x: Array) -> tuple[Array, Array]:
        """Return the prediction for this tick, and its covariance."""
        n = self._size
        estimate, P = x[:n], x[n : n + n * n].reshape(n, n)
        if not self._held:
            return estimate, P
        begun, (ahead, spread) = x[-1] > 0.5, self._ahead(u, estimate, P)
        return np.where(begun, ahead, estimate), np.where(begun, spread, P)

    def _now(self, u: Sequence[Any], x: Array) -> tuple[Array, Array]:
        """Return the estimate of this tick, and its covariance."""
        estimate, P = self._before(u, x)
        return corrected(estimate, P, self._innovation(u, estimate), self.C, self.R)

    def _innovation(self, u: Sequence[Any], estimate: Array) -> Array:
        return self._measured(u) - self._expected(u, estimate)

    def _measured(self, u: Sequence[Any]) -> Array:
        return ports.vector(self, len(u) - 1, u[-1], len(self.C))  # type: ignore[arg-type]

    def _expected(self, u: Sequence[Any], estimate: Array) -> Array:
        return self.C @ estimate

    def _ahead(self, u: Sequence[Any], estimate: Array, P: Array) -> tuple[Array, Array]:
        """Return the prediction for a period later, and its covariance."""
        raise NotImplementedError


class Kalman(_Estimator, SampledBlock):
    r"""The states of a sampled linear system, from what goes into it and what is measured: a Kalman filter.

    :states: n + n², and one more with ``held=True``

    - input u (float, ndarray): what goes into the system as B has columns, in the period that begins
    - input measured (float, ndarray): what is measured, as C has rows
    - output estimate (ndarray(n)): the states after the measurement of this tick
    - output covariance (ndarray(n, n)): of the error of the estimate, P after the measurement; with
      ``diagnostics=True``, as those that follow
    - output innovation (ndarray): the measurement less what was expected, :math:`\nu_k`
    - output innovation_covariance (ndarray): what that of the innovation is taken to be, :math:`S = C P C^T + R`

    .. math::

        K &= P C^T (C P C^T + R)^{-1}, \qquad \hat{x}_k = \bar{x}_k + K (y_k - C \bar{x}_k - D u_k), \\
        \bar{x}_{k+1} &= A \hat{x}_k + B u_k, \qquad
        P \leftarrow A \left((1 - K C) P (1 - K C)^T + K R K^T\right) A^T + Q

    at the ticks of its clock. Without ``P0`` the covariance begins, and stays, at its steady state, so that the gain is
    constant.

    The input at a tick counts for the period that begins there. Behind a ZOH of the same clock it is still that of the
    period that ends: with ``held=True`` it counts for that one, and a control that follows from the estimate closes no
    algebraic loop: estimate, law, ZOH, and from there to the plant and to ``u``, as beside :class:`EKF`.

    Where Q and R are right, :math:`\nu^T S^{-1} \nu` is on average the number of measurements, and likewise the error
    of the estimate by its covariance the number of states: what is far above says that the filter trusts its model, or
    the sensor, too much.

    Examples::

        filter = bd.KALMAN(clock, A, B, C, Q=1e-4 * np.eye(2), R=0.01)
        bd.connect(torque, filter.u)
        bd.connect(sensor, filter.measured)
    """

    inlabels = ("u", "measured")

    def __init__(
        self,
        clock: Any,
        A: ArrayLike,
        B: ArrayLike,
        C: ArrayLike,
        Q: ArrayLike,
        R: ArrayLike,
        D: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        P0: ArrayLike | None = None,
        held: bool = False,
        diagnostics: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it estimates
        :type clock: Clock
        :param A: (n, n), of the sampled system
        :type A: array_like
        :param B: (n, inputs)
        :type B: array_like
        :param C: (outputs, n)
        :type C: array_like
        :param Q: covariance of what disturbs the states in a period, (n, n), or its diagonal, or one number for all
        :type Q: float or array_like
        :param R: covariance of the measurement, likewise
        :type R: float or array_like
        :param D: (outputs, inputs); zeros unless given
        :type D: array_like, optional
        :param x0: the estimate before the first measurement; zeros unless given
        :type x0: array_like, optional
        :param P0: its covariance, as Q; that of the steady state unless given
        :type P0: float or array_like, optional
        :param held: whether the input is held by a ZOH of this clock, before a continuous plant: otherwise what such a
            ZOH holds would count for the period after; defaults to False
        :type held: bool
        :param diagnostics: whether there are the outputs of covariances and innovation, defaults to False
        :type diagnostics: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks, (a, b, c, d) = ports.clock(clock), state_space(A, B, C, D)
        n = len(a)
        noise, error = weights(Q, n, "Q", definite=False), weights(R, len(c), "R", definite=True)
        first = np.zeros(n) if x0 is None else finite_array(x0 if np.iterable(x0) else [x0], "x0", (n,))
        spread = _steady(a, c, noise, error) if P0 is None else weights(P0, n, "P0", definite=False)
        self._held, self._diagnosed = ports.flag(held, "held"), ports.flag(diagnostics, "diagnostics")
        begin = self._states(first, spread, 0.0)
        made = ports.options(type(self), blockargs, None, self._outputs(), states=begin.size)
        super().__init__(ticks, x0=begin, feedthrough=True, **made)
        self.A, self.B, self.C, self.D, self.Q, self.R, self._size = a, b, c, d, noise, error, n
        self._widths = (b.shape[1], len(c)), self._widths_of_outputs()
        self._steady_of = None if P0 is not None else tuple(v.copy() for v in (a, c, noise, error))

    def getstate0(self) -> Array:
        """Return the states at the start: with the steady state of the numbers that are set now, unless P0 is given."""
        begin, n, now = self._x0.copy(), self._size, (self.A, self.C, self.Q, self.R)
        if self._steady_of is not None and not all(map(np.array_equal, now, self._steady_of)):
            with contextlib.suppress(CstormError):  # the start of a run refuses them by the name of the block
                a, _, c, _ = state_space(self.A, self.B, self.C, self.D)
                noise, error = weights(self.Q, n, "Q", definite=False), weights(self.R, len(c), "R", definite=True)
                begin[n : n + n * n] = _steady(a, c, noise, error).ravel()
        return begin

    def _ahead(self, u: Sequence[Any], estimate: Array, P: Array) -> tuple[Array, Array]:
        ahead: Array = linear_rate(self.A, self.B, estimate, ports.vector(self, 0, u[0], self.B.shape[1]))
        return ahead, predicted_covariance(P, self.A, self.Q)

    def _expected(self, u: Sequence[Any], estimate: Array) -> Array:
        return self.C @ estimate + self.D @ ports.vector(self, 0, u[0], self.B.shape[1])


class EKF(bases.Mechanical, _Estimator, SampledBlock):
    r"""Positions and rates of a mechanism, from its torques and what is measured: an extended Kalman filter.

    :states: 2n + 4n², and one more with ``held=True``

    - input tau (float, ndarray): torques of the actuated joints in the period that begins [N m, N]; no such
      port without actuated joints
    - input measured (float, ndarray): what is measured, as C has rows
    - output estimate (ndarray(2n)): positions of all joints, then their rates, after the measurement of this tick
    - output covariance (ndarray(2n, 2n)): of the error of the estimate; with ``diagnostics=True``, as those that follow
    - output innovation (ndarray): the measurement less what was expected
    - output innovation_covariance (ndarray): what that of the innovation is taken to be

    .. math::

        \bar{x}_{k+1} = \Phi(\hat{x}_k, \tau_k), \qquad
        P \leftarrow F P F^T + Q, \quad F = \frac{\partial \Phi}{\partial x}(\hat{x}_k, \tau_k)

    where Φ is a step, or several, of the classical Runge-Kutta method with the mechanism's forward dynamics, and F its
    exact derivative, by the mechanism's sensitivities; the measurement, y = C (q, q̇), corrects as in
    :class:`Kalman`. Torques are taken to be held over a period of the clock. Where a run re-centres the rotation vector
    of a ball joint or of a free body, the estimate follows; of a closed mechanism it misses closure by as much as the
    measurement. Torques that follow from the estimate go through a ZOH of this clock to the plant and to the filter,
    with ``held=True``, as in :class:`Kalman`. Tunable is ``mech``.

    Examples::

        clock = bd.clock(200, "Hz")
        filter = bd.EKF(clock, "acrobot", R=1e-6, x0=[1.6, 0, 0, 0], held=True, name="filter")
        law, motor = bd.CONTROLLER("acrobot", "lqr"), bd.ZOH(clock)
        bd.connect(plant.q, filter.measured)  # C=None: what is measured are the positions
        bd.connect(filter, positions := bd.INDEX([0, 1]), rates := bd.INDEX([2, 3]))
        bd.connect(positions, law.q)
        bd.connect(rates, law.qd)
        bd.connect(law.tau, motor)
        bd.connect(motor, plant.tau, filter.tau)
    """

    inlabels = ("tau", "measured")

    def __init__(
        self,
        clock: Any,
        mech: Mechanism | str | os.PathLike[str],
        C: ArrayLike | None = None,
        Q: ArrayLike = 1e-6,
        R: ArrayLike = 1e-4,
        x0: ArrayLike | None = None,
        P0: ArrayLike = 1e-2,
        substeps: int = 1,
        held: bool = False,
        diagnostics: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it estimates
        :type clock: Clock
        :param mech: the mechanism, without active joints, the name of a ready one, or the path of its file (JSON, URDF
            or MJCF)
        :type mech: str, path or Mechanism
        :param C: what is measured of (q, q̇), (outputs, 2n); the positions unless given
        :type C: array_like, optional
        :param Q: covariance of what disturbs the states in a period, (2n, 2n), or its diagonal, or one number for all,
            defaults to 1e-06
        :type Q: float or array_like
        :param R: covariance of the measurement, likewise, defaults to 1e-4
        :type R: float or array_like
        :param x0: the estimate (q, q̇) before the first measurement; zeros unless given
        :type x0: array_like, optional
        :param P0: its covariance, as Q, defaults to 1e-2
        :type P0: float or array_like
        :param substeps: steps of the prediction in a period, defaults to 1
        :type substeps: int
        :param held: whether the torques are held by a ZOH of this clock, before the plant: otherwise what such a ZOH
            holds would count for the period after; defaults to False
        :type held: bool
        :param diagnostics: whether there are the outputs of covariances and innovation, defaults to False
        :type diagnostics: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks, mechanism = ports.clock(clock), as_mechanism(mech)
        if mechanism.active:
            raise InvalidValue(
                f"mechanism: joint {mechanism.active[0]!r} is active; an EKF wants torques, so none may be"
            )
        n = mechanism.n
        c = np.eye(n, 2 * n) if C is None else np.atleast_2d(real_array(C, "C", ("any", 2 * n), (2 * n,)) + 0.0)
        noise, error = weights(Q, 2 * n, "Q", definite=False), weights(R, len(c), "R", definite=True)
        first = np.zeros(2 * n) if x0 is None else finite_array(x0, "x0", (2 * n,), "positions, then rates")
        say_degrees(mechanism.freedoms, mechanism.names, first[:n].tolist(), "x0")
        spread, count = weights(P0, 2 * n, "P0", definite=False), whole_number(substeps, "substeps", 1, 100)
        self._held, self._diagnosed = ports.flag(held, "held"), ports.flag(diagnostics, "diagnostics")
        begin = self._states(first, spread, 0.0)
        driven = bool(mechanism.actuated)
        inputs = self.inlabels if driven else self.inlabels[1:]
        made = ports.options(type(self), blockargs, inputs, self._outputs(), states=begin.size)
        super().__init__(ticks, x0=begin, feedthrough=True, **made)
        self._size, self._substeps = 2 * n, count
        self._driven = np.flatnonzero(mechanism.actuated_mask)
        self.C, self.Q, self.R = c, noise, error
        self._widths = (len(self._driven), len(c)) if driven else (len(c),), self._widths_of_outputs()
        self._begin(mechanism, "mech")

    def _names_of_estimate(self) -> list[str]:
        return [f":{name}" for name in ports.names_of_motion(self._mech)]

    def _ahead(self, u: Sequence[Any], estimate: Array, P: Array) -> tuple[Array, Array]:
        mech, h, ahead = self._mech, self.T / self._substeps, estimate
        n = mech.n
        tau = np.zeros(n)
        if len(self._driven):
            tau = np.eye(n)[:, self._driven] @ ports.vector(self, 0, u[0], len(self._driven), mech.actuated)
        # a correction opens loops a little
        sensitivity = partial(closed_sensitivity, mech, check=False) if mech.loops else mech.hybrid_sensitivity

        def accelerate(q: Array, qd: Array) -> tuple[Array, Array, Array]:
            found = sensitivity(q, qd, tau)
            return found.qdd, found.dy_dq, found.dy_dqd

        F = np.eye(2 * n)
        for _ in range(self._substeps):
            ahead, part = motion_step(accelerate, ahead[:n], ahead[n:], h)
            F = part @ F
        return ahead, predicted_covariance(P, F, self.Q)

    def _before(self, u: Sequence[Any], x: Array) -> tuple[Array, Array]:
        estimate, P = super()._before(u, x)
        for first in self._mech.ball_starts:
            estimate, P = self._by_vectors_of(self._measured(u), estimate, P, first)
        return estimate, P

    def _by_vectors_of(self, measured: Array, estimate: Array, P: Array, first: int) -> tuple[Array, Array]:
        """Return both by the rotation vector of a ball by which the estimate is nearer to what is measured."""
        n, unit = self._mech.n, np.eye(self._size)
        phi, rate = estimate[first : first + 3], estimate[n + first : n + first + 3]
        own = np.concatenate([unit[first : first + 3], unit[n + first : n + first + 3]])
        phi_there, rate_there, slopes, near = other_vector(phi, rate)
        moved = np.concatenate([phi_there - phi, rate_there - rate])
        other, G = estimate + own.T @ moved, unit + own.T @ (slopes - np.eye(6)) @ own
        here, there = (measured - self.C @ at for at in (estimate, other))
        off, better = here @ here, there @ there
        moves = near & ((better < off) | ((better == off) & (phi @ phi > np.pi**2)))
        return np.where(moves, other, estimate), np.where(moves, G @ P @ G.T, P)


def _steady(A: Array, C: Array, Q: Array, R: Array) -> Array:
    from scipy.linalg import solve_discrete_are

    size = 2.0 ** np.round(np.log2(np.abs(R).max()))  # it solves by numbers about 1
    try:
        found: Array = size * solve_discrete_are(A.T, C.T, Q / size, R / size)
        kept = A @ (np.eye(len(A)) - found @ C.T @ np.linalg.inv(C @ found @ C.T + R) @ C)
        slowest = float(np.abs(np.linalg.eigvals(kept)).max())
    except (ValueError, np.linalg.LinAlgError):
        slowest = 1.0
    if slowest > 1.0 - _DECAYS:
        raise InvalidValue(
            "P0: there is no steady state, as what is measured does not show all states, or one that does not decay, "
            "as a bias, is not disturbed; give P0, or that state a variance in Q"
        )
    return found
