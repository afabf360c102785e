"""Joint blocks: angles within one turn, and stops at the limits."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from bdsim.components import FunctionBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import whole_number
from cstormpy.arrays import Array, is_single, real_number
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._crossings import Crossing, can_locate
from cstormpy.blocks._stops import Stops, each_joint
from cstormpy.dynamics.loads import wrap
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.signals.limits import SHARES, beside
from cstormpy.trajectory.checks import finite_array


class AngleWrap(bases.Ported, FunctionBlock):
    r"""Angles brought within one turn, as to (-π, π].

    - input q (float, ndarray(n)): positions [rad, m]
    - output wrapped (float, ndarray(n)): the same, with the chosen ones within half a turn of their centre

    .. math::

        y_i = q_i - 2\pi \left\lceil \frac{q_i - c_i}{2\pi} - \frac12 \right\rceil \in (c_i - \pi, c_i + \pi].

    With a mechanism its revolute joints are wrapped, and others stay; without one, all numbers are, or those of the
    indices given as ``joints``. A number already within its turn stays as it is, bit by bit.

    The output jumps by a turn where an angle passes the far side. With ``locate=True`` a run locates these places as
    events, at which steps of an integration end; that matters where the output drives a plant, and costs an evaluation
    of the diagram per step. The last stage of a step that ends there sees the angle behind the jump: what integrates
    the output is off by a part of the jump times the length of that step.

    Examples::

        wrapped = bd.ANGLEWRAP("acrobot", centre=math.pi / 2)
    """

    nin = 1
    nout = 1
    inlabels = ("q",)
    outlabels = ("wrapped",)

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str] | None = None,
        joints: Sequence[str | int] | None = None,
        centre: ArrayLike = 0.0,
        locate: bool = True,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism whose positions these are, the name of a ready one, or the path of its file (JSON,
            URDF or MJCF)
        :type mech: str, path or Mechanism, optional
        :param joints: names or indices of what to wrap; all angles unless given
        :type joints: list, optional
        :param centre: middle of the turn [rad]; one for all, or one for each number of the signal, defaults to 0
        :type centre: float or array_like
        :param locate: whether a run locates where the output jumps, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = None if mech is None else as_mechanism(mech)
        chosen = _wrapped(mechanism, joints)
        middle = (
            np.array(real_number(centre, "centre")) if is_single(centre) else finite_array(centre, "centre", (None,))
        )
        width = None if mechanism is None else mechanism.n
        if middle.ndim:
            if width is not None and middle.size != width:
                raise InvalidValue(f"centre: expected one number or {width}, one per coordinate, got {middle.size}")
            width = int(middle.size)
        if width is not None and chosen is not None and max(chosen) >= width:
            raise InvalidValue(f"joints: expected indices below {width}, got {max(chosen)}")
        look = ports.flag(locate, "locate")
        super().__init__(**ports.options(type(self), blockargs))
        self._mech, self._chosen, self._centre, self._width, self._look = mechanism, chosen, middle, width, look
        self._names = () if mechanism is None else mechanism.names
        self._widths = (width,), (width,)

    def start(self, simstate: Any) -> None:
        """Begin a run: let it look for the places where the output jumps."""
        super().start(simstate)
        if self._look and can_locate(self, simstate):
            for which in range(SHARES):
                Crossing(self, simstate, self._far_side, direction=0.0, which=which)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the angles within their turn."""
        q, turn = self._angles(u)
        wrapped = wrap(q, np.broadcast_to(self._centre, q.shape), turn)
        return [wrapped if np.ndim(u[0]) else wrapped[0]]

    def _angles(self, u: Sequence[Any]) -> tuple[Array, Array]:
        """Return the positions, and the turn of each: infinite for what is not wrapped."""
        width = self._width
        if width is None:
            width = np.size(ports.signal(self, 0, u[0]))
        q = ports.vector(self, 0, u[0], width, self._names)
        if self._chosen is None:
            return q, np.full(width, 2.0 * math.pi)
        if max(self._chosen) >= width:
            raise InvalidValue(
                f"{ports.port_label(self, 0)}: carries {width} numbers, so that there is no joint {max(self._chosen)}"
            )
        turn = np.full(width, math.inf)
        turn[self._chosen] = 2.0 * math.pi
        return q, turn

    def _far_side(self, t: float, u: Sequence[Any], which: int) -> Any:
        """Return a number that changes its sign where an angle of a share is half a turn from its centre."""
        q, turn = self._angles(u)
        return beside(np.cos(0.5 * (q - self._centre)[np.isfinite(turn)]), 0.0, which)


class JointLimit(bases.Mechanical, FunctionBlock):
    r"""Torques of spring-damper stops at the position limits of a mechanism's joints.

    - input q (ndarray(n)): position of every joint [rad, m]
    - input qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - output tau (ndarray): torques of the stops [N m, N], of the joints that are actuated and not active; of all with
      ``all=True``

    With the depth e by which a joint is beyond its limit (negative below the lower one),

    .. math::

        \tau = -\left(k e + d \min\left(\tfrac{|e|}{h}, 1\right) \dot{q}\right) \quad
        \text{where that pushes back, else } 0.

    The largest angle of a ball has a stop too: e is that of its rotation vector's length, and the torque is along the
    vector, with stiffness, damping and depth of its first coordinate.

    A stop pushes and never pulls, and its damper sets in over the depth h, so that nothing jumps at the touch: no event
    is needed. With a stiff stop the steps of an integration are short while it is touched.

    Shorter is ``HYBRIDDYNAMICS(..., stops=True)``: a plant with these stops inside, also at joints without motor. Here
    a stop acts through the motor's port: add this output to the controller's with a SUM block. A joint without motor,
    or one whose motion is prescribed, can have no such stop: a limited one among them is refused unless ``joints``
    leaves it out. With ``all=True`` the output has the torques of all n joints, for what takes those, as
    INVERSEDYNAMICS gives them; then nothing is refused.

    Tunable are ``stiffness``, ``damping`` and ``mech``.

    Examples::

        stops = bd.JOINTLIMIT("puma560", stiffness=5e3, damping=50)
        bd.connect(plant[0:2], stops[0:2])
        bd.connect(controller.tau + stops, plant.tau)

    :seealso: :class:`HybridDynamics`
    """

    nin = 2
    nout = 1
    inlabels = ("q", "qd")
    outlabels = ("tau",)

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        stiffness: ArrayLike = 1e4,
        damping: ArrayLike = 100.0,
        joints: Sequence[str] | None = None,
        depth: ArrayLike = 0.01,
        all: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param stiffness: of each stop [N m/rad, N/m]; one for all, or one for each joint of q, defaults to 1e4
        :type stiffness: float or array_like
        :param damping: of each stop [N m s/rad, N s/m]; one for all, or one for each joint of q, defaults to 100
        :type damping: float or array_like
        :param joints: names of the joints that have stops; all with position limits unless given
        :type joints: list, optional
        :param depth: how far into each stop its damper acts in full [rad, m]; one for all, or one for each joint of q,
            defaults to 1e-2
        :type depth: float or array_like
        :param all: whether the output has the torques of all joints, defaults to False
        :type all: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        every = ports.flag(all, "all")
        driven = np.flatnonzero(mechanism.actuated_mask & ~mechanism.active_mask)
        stops = Stops(mechanism, stiffness, damping, joints, depth, None if every else driven)
        super().__init__(**ports.options(type(self), blockargs))
        self._stops, self._rows = stops, np.arange(mechanism.n) if every else driven
        n = mechanism.n
        self._widths, self._parts = ((n, n), (len(self._rows),)), (mechanism.names, mechanism.names)
        self._begin(mechanism, "stiffness", "damping", "mech")

    @property
    def stiffness(self) -> Array:
        """Stiffness of the stop of each joint, (n,) [N m/rad, N/m]."""
        return self._stops.stiffness.copy()

    @stiffness.setter
    def stiffness(self, value: ArrayLike) -> None:
        self._stops.stiffness = each_joint(value, self._mech, "stiffness")

    @property
    def damping(self) -> Array:
        """Damping of the stop of each joint, (n,) [N m s/rad, N s/m]."""
        return self._stops.damping.copy()

    @damping.setter
    def damping(self, value: ArrayLike) -> None:
        self._stops.damping = each_joint(value, self._mech, "damping")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the torques of the stops."""
        q, qd = (ports.vector(self, port, u[port], self._mech.n, self._mech.names) for port in (0, 1))
        return [self._stops.torque(q, qd)[self._rows]]


def _wrapped(mech: Mechanism | None, joints: Any) -> list[int] | None:
    """Return the indices of what is to be wrapped, None for all."""
    if joints is None:
        if mech is None:
            return None
        turning = [k for k, freedom in enumerate(mech.freedoms) if freedom.winds]
        if not turning:
            raise InvalidValue("mechanism: no joint is revolute, so that there is nothing to wrap")
        return turning
    chosen: list[int] = []
    for joint in ports.listed_joints(joints):
        if isinstance(joint, str):
            if mech is None:
                raise InvalidValue(f"joints: {joint!r} is a name, which needs the mechanism; give it, or an index")
            own = mech.joint_indices(joint)
            chosen += [k for k in own if mech.freedoms[k].winds] or own
        else:
            chosen.append(whole_number(joint, "joints", 0))
        if mech is not None and chosen[-1] < mech.n and not mech.freedoms[chosen[-1]].winds:
            raise InvalidValue(f"joint {mech.names[chosen[-1]]!r}: is not revolute, so that its position is no angle")
    return chosen
