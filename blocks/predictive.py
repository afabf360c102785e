"""Model predictive control as a block."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from bdsim.components import SampledBlock
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.control.predictive import PredictiveController
from cstormpy.errors import BlockError, InvalidType, InvalidValue, shown
from cstormpy.mechanism import Mechanism, as_mechanism

#: How far the period of a model and that of the clock may differ, as a part of it: rounding.
_ROUNDING = 1e-9
#: Rate [1/s], relative to the largest state, that counts as none.
_STILL = 1e-6


class MPC(bases.Ported, SampledBlock):
    r"""Model predictive control: the best inputs over a horizon, within limits, at each tick of a clock.

    :states: inputs of the model

    - input x (ndarray(n)): the states; of a mechanism position and rate of every joint
    - input reference (ndarray(n)): with ``reference=True``, what the states are to come to
    - output u (ndarray(m)): the inputs, of a mechanism the torques of its motors

    .. math::

        \min_{v, s} \quad & \tfrac{1}{2} \sum_{k=1}^{N-1} (e_k - r)^T Q (e_k - r) + \tfrac{1}{2} (e_N - r)^T P (e_N - r)
        + \tfrac{1}{2} \sum_{k=0}^{N-1} v_k^T R v_k + \tfrac{1}{2} \rho\, s^T s \\
        \text{with} \quad & e_{k+1} = A e_k + B v_k, \quad e_0 = x - x^*, \quad v_k = u_k - u^*, \\
        & u_\mathrm{low} \le u_k \le u_\mathrm{high}, \quad x_\mathrm{low} \le x_k \le x_\mathrm{high}, \quad
        y_\mathrm{low} - s \le C e_k \le y_\mathrm{high} + s,

    of which u_0 is held until the next tick. The model is that of a mechanism about an equilibrium, its torques held
    over a period of the clock; or a sampled one, as ``sim.linearize(bd, dt=...)`` returns it; or two matrices. Where a
    mechanism is closed, weights and limits are of the joints that loops leave free, and x is of all joints. Of a
    sampled model u^* is ``model.u``: what arrives there of an input that is ``opened``, which is what the block is to
    give in its place; but 0 of an input that is added to a signal: the block's output is to be added there too, by a
    SUM, and its limits are those of what is added. Unless P is given, it is what the regulator without limits has still
    to pay, so that without limits the block is that regulator. Where no inputs keep the limits of the states, the run
    stops, and says which limit; those of C e may be exceeded.

    Needs the solver DAQP: ``pip install 'cstormpy[mpc]'``.

    Examples::

        state = bd.MUX(2)
        bd.connect(plant[0:2], state[0:2])
        mpc = bd.MPC(bd.clock(50, "Hz"), "acrobot", Q=[10, 10, 1, 1], low=-25, high=25)
        bd.connect(state, mpc)
        bd.connect(mpc, plant.tau)

    :seealso: :class:`cstormpy.control.PredictiveController`
    """

    nin = 1
    nout = 1
    inlabels = ("x",)
    outlabels = ("u",)
    _blockclass = "sampled"

    def __init__(
        self,
        clock: Any,
        model: Any,
        horizon: int = 20,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 1.0,
        P: ArrayLike | None = None,
        goal: ArrayLike | None = None,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        x_low: ArrayLike | None = None,
        x_high: ArrayLike | None = None,
        C: ArrayLike | None = None,
        y_low: ArrayLike | None = None,
        y_high: ArrayLike | None = None,
        penalty: float = 1e4,
        reference: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param clock: when it plans anew
        :type clock: Clock
        :param model: a mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF); a sampled
            linear model with the period of the clock; or the matrices (A, B) of one
        :type model: Mechanism, str, LinearModel or tuple of array_like
        :param horizon: how many periods are planned, defaults to 20
        :type horizon: int
        :param Q: weight of the states: a number, a diagonal, or a matrix, defaults to 1.0
        :type Q: float or array_like
        :param R: weight of the inputs, likewise, positive definite, defaults to 1.0
        :type R: float or array_like
        :param P: weight of the last states; from the Riccati equation unless given
        :type P: float or array_like, optional
        :param goal: an equilibrium of the mechanism, upright unless given; of another model, where its states are 0
        :type goal: array_like, optional
        :param low: the least inputs; no limit unless given
        :type low: float or array_like, optional
        :param high: the greatest inputs
        :type high: float or array_like, optional
        :param x_low: the least states, -inf where there is no limit
        :type x_low: float or array_like, optional
        :param x_high: the greatest states, inf where there is no limit
        :type x_high: float or array_like, optional
        :param C: soft outputs, (r, n), of the states less the goal
        :type C: array_like, optional
        :param y_low: their least values
        :type y_low: float or array_like, optional
        :param y_high: their greatest values
        :type y_high: float or array_like, optional
        :param penalty: what the square of their excess costs, defaults to 10000.0
        :type penalty: float
        :param reference: whether there is a port for what the states are to come to, defaults to False
        :type reference: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        ticks = ports.clock(clock)
        limits = {"low": low, "high": high, "x_low": x_low, "x_high": x_high, "y_low": y_low, "y_high": y_high}
        asked = {"horizon": horizon, "Q": Q, "R": R, "P": P, "C": C, "penalty": penalty, **limits}
        plan = _controller(model, ticks.T, goal, asked)
        inlabels = (*self.inlabels, *(["reference"] if ports.flag(reference, "reference") else []))
        made = ports.options(type(self), blockargs, inlabels, states=plan.m)
        super().__init__(ticks, x0=plan.u.copy(), feedthrough=True, **made)
        self._plan = plan
        self._widths = (plan.given,) * len(inlabels), (plan.m,)

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the inputs of the plan's first period."""
        return [self._now(t, u)]

    def next(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the same: the state of the block is what it asked for last."""
        return self._now(t, u)

    def _now(self, t: float, u: list[Any]) -> Array:
        n, names = self._plan.given, self._plan.states if self._plan.given == self._plan.n else ()
        given = [ports.vector(self, k, value, n, names) for k, value in enumerate(u)]
        try:
            return self._plan(*given)
        except InvalidValue as error:
            raise BlockError(f"{ports.label(self)} at t = {t:.6g} s: {error}") from None


def _controller(model: Any, T: float, goal: ArrayLike | None, asked: dict[str, Any]) -> PredictiveController:
    if isinstance(model, (str, os.PathLike, Mechanism)):
        return PredictiveController.of_mechanism(as_mechanism(model), T, goal, **asked)
    if hasattr(model, "A") and hasattr(model, "dt"):
        if model.dt is None or abs(model.dt - T) > _ROUNDING * T:
            period = "in continuous time" if model.dt is None else f"sampled every {model.dt:g} s"
            raise InvalidValue(f"model: is {period}, the clock ticks every {T:g} s; linearize with dt={T:g}")
        _refuse_drift(model)
        point = model.x if goal is None else goal
        names = {"states": model.states, "inputs": model.inputs}
        return PredictiveController(model.A, model.B, x=point, u=model.u, **names, **asked)
    if not isinstance(model, (tuple, list)) or len(model) != 2:
        raise InvalidType(f"model: expected a mechanism, a sampled LinearModel, or (A, B), got {shown(model)}")
    return PredictiveController(model[0], model[1], x=goal, **asked)


def _refuse_drift(model: Any) -> None:
    """Refuse a model about a point that is no equilibrium: what moves there by itself is not in its matrices."""
    rate = np.abs(model.rate)
    worst = int(rate.argmax()) if rate.size else 0
    if rate.size and rate[worst] > _STILL * max(1.0, float(np.abs(model.x).max())):
        raise InvalidValue(
            f"model: is that of no equilibrium, state {model.states[worst]!r} changes by {rate[worst]:.3g} a second "
            "there; sim.trim(bd, inputs=[...]) finds one, whose x and u linearize takes"
        )
