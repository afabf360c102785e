"""State estimators: the Kalman filter, and the extended one of a mechanism."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from bdsim.components import SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import whole_number
from cstormpy.arrays import Array, real_array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.control.lqr import weights
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.signals.estimation import corrected, motion_step, predicted_covariance
from cstormpy.signals.systems import linear_rate, state_space
from cstormpy.trajectory.checks import finite_array


class _Estimator(bases.Ported):
    """Base of both filters: estimate and covariance as states, and a measurement that corrects them."""

    nin = 2
    nout = 1
    outlabels = ("estimate",)
    _size: int
    C: Array
    R: Array

    def _parts(self, x: Array) -> tuple[Array, Array]:
        n = self._size
        return x[:n], x[n:].reshape(n, n)

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the estimate."""
        return [self._now(u, x)[0]]

    def _now(self, u: Sequence[Any], x: Array) -> tuple[Array, Array]:
        """Return the estimate of this tick, and its covariance."""
        return self._corrected(u, x, self.C @ self._parts(x)[0])

    def _corrected(self, u: Sequence[Any], x: Array, expected: Array) -> tuple[Array, Array]:
        measured = ports.vector(self, 1, u[1], len(self.C))  # type: ignore[arg-type]
        estimate, P = self._parts(x)
        return corrected(estimate, P, measured - expected, self.C, self.R)

    def _first(self, x0: Array, P0: Array) -> Array:
        return np.concatenate([x0, P0.ravel()])


class Kalman(_Estimator, SampledBlock):
    r"""The states of a sampled linear system, from what goes into it and what is measured: a Kalman filter.

    :states: n + n²

    - input u (float, ndarray): what goes into the system in the period that begins, as B has columns
    - input measured (float, ndarray): what is measured, as C has rows
    - output estimate (ndarray(n)): the states after the measurement of this tick

    .. math::

        K &= P C^T (C P C^T + R)^{-1}, \qquad \hat{x}_k = \bar{x}_k + K (y_k - C \bar{x}_k - D u_k), \\
        \bar{x}_{k+1} &= A \hat{x}_k + B u_k, \qquad
        P \leftarrow A \left((1 - K C) P (1 - K C)^T + K R K^T\right) A^T + Q

    at the ticks of its clock. Without ``P0`` the covariance begins, and stays, at its steady state, so that the gain is
    constant. A law that follows the estimate is wired as beside :class:`EKF`.

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
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks, (a, b, c, d) = ports.clock(clock), state_space(A, B, C, D)
        n = len(a)
        noise, error = weights(Q, n, "Q", definite=False), weights(R, len(c), "R", definite=True)
        first = np.zeros(n) if x0 is None else finite_array(x0 if np.iterable(x0) else [x0], "x0", (n,))
        spread = _steady(a, c, noise, error) if P0 is None else weights(P0, n, "P0", definite=False)
        made = ports.options(type(self), blockargs, states=n + n * n)
        super().__init__(ticks, x0=self._first(first, spread), feedthrough=True, **made)
        self.A, self.B, self.C, self.D, self.Q, self.R, self._size = a, b, c, d, noise, error, n
        self._widths = (b.shape[1], len(c)), (n,)

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the prediction for the next tick, and its covariance."""
        estimate, P = self._now(u, x)
        ahead = linear_rate(self.A, self.B, estimate, ports.vector(self, 0, u[0], self.B.shape[1]))
        return np.concatenate([ahead, np.ravel(predicted_covariance(P, self.A, self.Q))])

    def _now(self, u: Sequence[Any], x: Array) -> tuple[Array, Array]:
        given = ports.vector(self, 0, u[0], self.B.shape[1])
        return self._corrected(u, x, self.C @ self._parts(x)[0] + self.D @ given)


class EKF(_Estimator, SampledBlock):
    r"""Positions and rates of a mechanism, from its torques and what is measured: an extended Kalman filter.

    :states: 2n + 4n²

    - input tau (float, ndarray): torques of the actuated joints in the period that begins [N m, N]
    - input measured (float, ndarray): what is measured, as C has rows
    - output estimate (ndarray(2n)): positions of all joints, then their rates, after the measurement of this tick

    .. math::

        \bar{x}_{k+1} = \Phi(\hat{x}_k, \tau_k), \qquad
        P \leftarrow F P F^T + Q, \quad F = \frac{\partial \Phi}{\partial x}(\hat{x}_k, \tau_k)

    where Φ is a step, or several, of the classical Runge-Kutta method with the mechanism's forward dynamics, and F its
    exact derivative, by the mechanism's sensitivities; the measurement, y = C (q, q̇), corrects as in
    :class:`Kalman`. Torques are taken to be held over a period of the clock: ``tau`` is, at a tick, that of the period
    which begins there.

    A law that follows the estimate makes a loop with ``tau``, which a hold opens. Its torque reaches the plant one
    period later, through a second hold, as that of a computer does; with one hold for both, the filter would take the
    torque of the period before, and its rates would be wrong by what the torque changes in a period.

    Examples::

        clock = bd.clock(200, "Hz")
        filter = bd.EKF(clock, "acrobot", R=1e-6, x0=[1.6, 0, 0, 0], name="filter")
        law, sent, motor = bd.CONTROLLER("acrobot", "lqr"), bd.ZOH(clock), bd.ZOH(clock)
        bd.connect(plant.q, filter.measured)  # C=None: what is measured are the positions
        bd.connect(filter, positions := bd.INDEX([0, 1]), rates := bd.INDEX([2, 3]))
        bd.connect(positions, law.q)
        bd.connect(rates, law.qd)
        bd.connect(law.tau, sent)
        bd.connect(sent, filter.tau, motor)
        bd.connect(motor, plant.tau)
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
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it estimates
        :type clock: Clock
        :param mech: the mechanism, without active joints, the name of a ready one, or the path of a JSON file
        :type mech: str, path or Mechanism
        :param C: what is measured of (q, q̇), (outputs, 2n); the positions unless given
        :type C: array_like, optional
        :param Q: covariance of what disturbs the states in a period, (2n, 2n), or its diagonal, or one number for all,
            defaults to 1e-06
        :type Q: float or array_like
        :param R: covariance of the measurement, likewise, defaults to 0.0001
        :type R: float or array_like
        :param x0: the estimate (q, q̇) before the first measurement; zeros unless given
        :type x0: array_like, optional
        :param P0: its covariance, as Q, defaults to 0.01
        :type P0: float or array_like
        :param substeps: steps of the prediction in a period, defaults to 1
        :type substeps: int
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
        spread, count = weights(P0, 2 * n, "P0", definite=False), whole_number(substeps, "substeps", 1, 100)
        size = 2 * n + 4 * n * n
        made = ports.options(type(self), blockargs, states=size)
        super().__init__(ticks, x0=self._first(first, spread), feedthrough=True, **made)
        self._mech, self._size, self._substeps = mechanism, 2 * n, count
        self._driven = np.flatnonzero(mechanism.actuated_mask)
        self.C, self.Q, self.R = c, noise, error
        self._widths = (len(self._driven), len(c)), (2 * n,)

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the prediction for the next tick, and its covariance."""
        n, h = self._mech.n, self.T / self._substeps
        tau = np.eye(n)[:, self._driven] @ ports.vector(self, 0, u[0], len(self._driven), self._mech.actuated)
        ahead, P = self._now(u, x)

        def accelerate(q: Array, qd: Array) -> tuple[Array, Array, Array]:
            found = self._mech.hybrid_sensitivity(q, qd, tau)
            return found.qdd, found.dy_dq, found.dy_dqd

        F = np.eye(2 * n)
        for _ in range(self._substeps):
            ahead, part = motion_step(accelerate, ahead[:n], ahead[n:], h)
            F = part @ F
        return np.concatenate([ahead, np.ravel(predicted_covariance(P, F, self.Q))])


def _steady(A: Array, C: Array, Q: Array, R: Array) -> Array:
    from scipy.linalg import solve_discrete_are

    try:
        found: Array = solve_discrete_are(A.T, C.T, Q, R)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise InvalidValue(
            "P0: there is no steady state, as what is measured does not show all states, or nothing disturbs one that "
            f"does not decay; give P0 ({error})"
        ) from None
    return found
