"""Loads on the links from outside: wrenches given by signals, and pushes by schedule or by hand."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bdsim.components import FunctionBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of
from cstormpy.arrays import Array, real_number
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.dynamics.loads import Wrenches, dead_load, link_wrench, pulse
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.graph.arrays import zeros
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.trajectory.checks import finite_array

FRAMES = ("link", "base")
LOADS = ("wrench", "force", "force and moment")
SHAPES = ("rectangular", "smooth")


class _OnLink(bases.Mechanical):
    """Base of both loads: a point of a link, and the axes in which what acts there is given."""

    _link: int
    _point: Array
    #: The port of the positions, where the load is given in the axes of the base.
    _q_port: int | None

    def _axes(self, u: Sequence[Any]) -> Array:
        """Return the axes in which the load is given, seen in those of the link, (3, 3)."""
        if self._q_port is None:
            return np.eye(3)
        q = ports.vector(self, self._q_port, u[self._q_port], self._mech.n, self._mech.names)  # type: ignore[arg-type]
        return self._mech.forward_kinematics(q)[self._link, :3, :3].T.copy()

    def _wrenches(self, u: Sequence[Any], load: Array) -> Array:
        """Return the wrenches on all links; a load in the base's axes is known to keep its direction in space."""
        rotation, links = self._ask(u, self._axes, u), len(self._mech.links)
        rows = zeros((links, 6), rotation, load)
        rows[self._link] = link_wrench(rotation, self._point, load)
        if self._q_port is None:
            return rows
        known = zeros((links, 21), rotation, load)
        known[self._link, 6:] = dead_load(self._point, load)
        return Wrenches(rows, known)


class Wrench(_OnLink, FunctionBlock):
    r"""A force or a wrench on one link, as the wrenches on all links that a plant takes.

    - input load (ndarray(6)): moment and force [N m, N]; with ``load="wrench"``
    - input force (ndarray(3)): force [N]; with ``load="force"`` or ``"force and moment"``
    - input moment (ndarray(3)): moment [N m]; with ``load="force and moment"``
    - input q (ndarray(n)): position of every joint [rad, m]; with ``frame="base"``
    - output wrenches (ndarray(n_links, 6)): moment and force on each link, in its frame and about its origin; zeros but
      for the one link

    With the load (m', f') in the axes of the link or of the base, R these axes seen in the link's, and p the point of
    the link at which the force acts,

    .. math::

        f = R f', \qquad m = R m' + p \times f.

    The point moves with the link also where the load is given in the base's axes: such a load keeps its direction in
    space, and :class:`Sensitivity` and :class:`Variation` know that it does. Loads on several links, or several on one,
    are added with a SUM block. The output fits the port ``wrench`` of :class:`HybridDynamics` and its like;
    it is called ``wrenches``, since it is one for each link.

    Examples::

        push = bd.WRENCH("acrobot", "forearm", load="force", frame="base", point=[1, 0, 0])
        bd.connect(push, plant.wrench)

    :seealso: :class:`Push`, :class:`HybridDynamics`
    """

    nin = 1
    nout = 1
    inlabels = ("load",)
    outlabels = ("wrenches",)

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        link: str | int = -1,
        frame: str = "link",
        point: ArrayLike = (0.0, 0.0, 0.0),
        load: str = "wrench",
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param link: name or index of the link; the last one unless given, defaults to -1
        :type link: str or int
        :param frame: whose axes the load is given in, one of: 'link' [default], 'base'
        :type frame: str
        :param point: where the force acts, in the link's frame [m]; defaults to (0.0, 0.0, 0.0)
        :type point: array_like
        :param load: what the inputs are, one of: 'wrench' [default], 'force', 'force and moment'
        :type load: str
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        index = ports.link(link, mechanism)
        in_base = one_of(frame, "frame", FRAMES) == "base"
        where = finite_array(point, "point", (3,))
        kind = one_of(load, "load", LOADS)
        names = {"wrench": ["load"], "force": ["force"], "force and moment": ["force", "moment"]}[kind]
        loads = len(names)
        names = [*names, *["q"] * in_base]
        super().__init__(**ports.options(type(self), blockargs, names))
        self._link, self._point, self._kind = index, where, kind
        self._q_port = loads if in_base else None
        width, n = (6 if kind == "wrench" else 3), mechanism.n
        self._widths = (*[width] * loads, *[n] * in_base), ((len(mechanism.links), 6),)
        self._parts = (*[()] * loads, *[mechanism.names] * in_base)
        self._begin(mechanism, "mech")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the wrenches on all links."""
        if self._kind == "wrench":
            given = ports.vector(self, 0, u[0], 6)
        else:
            moment = ports.vector(self, 1, u[1], 3) if self._kind == "force and moment" else np.zeros(3)
            given = np.concatenate([moment, ports.vector(self, 0, u[0], 3)])
        return [self._wrenches(u, given)]


class Push(_OnLink, FunctionBlock):
    r"""Pushes on one link at given times, and one that somebody holds while the run goes on.

    - input q (ndarray(n)): position of every joint [rad, m]; with ``frame="base"``
    - output wrenches (ndarray(n_links, 6)): moment and force on each link, in its frame and about its origin; zeros but
      for the one link

    The load is the sum of the pulses of the schedule and of what is held by hand,

    .. math::

        w(t) = w_\mathrm{held} + \sum_i h_i(t)\, w_i, \qquad
        h_i = \begin{cases} 1 & \text{rectangular} \\ \sin^2 \pi \frac{t - a_i}{b_i - a_i} & \text{smooth} \end{cases}
        \quad \text{for } a_i \le t < b_i, \text{ else } 0,

    moved into the link's frame as by :class:`Wrench`. The edges of the pulses are declared, so that no step of an
    integration reaches over them. ``push.push([0, 0, 0, 5, 0, 0])`` holds a load until ``push.release()``: from
    whatever the runner calls between steps, as a panel does. Each run begins with nothing held.

    Examples::

        push = bd.PUSH("acrobot", "forearm", [(1.0, 1.2, [0, 0, 0, 3, 0, 0])], frame="base")
        bd.connect(plant.q, push.q)
        bd.connect(push, plant.wrench)

    :seealso: :class:`Wrench`, :class:`HybridDynamics`
    """

    nout = 1
    outlabels = ("wrenches",)

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        link: str | int = -1,
        schedule: Sequence[tuple[float, float, ArrayLike]] = (),
        frame: str = "link",
        point: ArrayLike = (0.0, 0.0, 0.0),
        shape: str = "rectangular",
        **blockargs: Any,
    ) -> None:
        """Create the source.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param link: name or index of the link; the last one unless given, defaults to -1
        :type link: str or int
        :param schedule: the pulses: begin, end [s], and the force (3) or the moment and force (6) [N m, N],
            defaults to ()
        :type schedule: list
        :param frame: whose axes the loads are given in, one of: 'link' [default], 'base'
        :type frame: str
        :param point: where the forces act, in the link's frame [m]; defaults to (0.0, 0.0, 0.0)
        :type point: array_like
        :param shape: how the pulses rise and fall, one of: 'rectangular' [default], 'smooth'
        :type shape: str
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        index = ports.link(link, mechanism)
        pulses = _schedule(schedule)
        in_base = one_of(frame, "frame", FRAMES) == "base"
        where = finite_array(point, "point", (3,))
        smooth = one_of(shape, "shape", SHAPES) == "smooth"
        super().__init__(**ports.options(type(self), blockargs, ["q"] * in_base))
        self._link, self._point, self._pulses, self._smooth = index, where, pulses, smooth
        self._q_port = 0 if in_base else None
        self._held = np.zeros(6)
        self._widths = (mechanism.n,) * in_base, ((len(mechanism.links), 6),)
        self._parts = (mechanism.names,) * in_base
        self._begin(mechanism, "mech")

    def push(self, wrench: ArrayLike) -> None:
        """Hold a load from now on.

        :param wrench: the force (3), or the moment and force (6) [N m, N]
        :type wrench: array_like
        """
        self._held = _load(wrench, "wrench")

    def release(self) -> None:
        """Let go of what is held."""
        self._held = np.zeros(6)

    def start(self, simstate: Any) -> None:
        """Begin a run with nothing held, and tell it when this source jumps."""
        super().start(simstate)
        self.release()
        now = getattr(simstate, "t", None) or 0.0
        for when in self.edges()[0]:
            if when > now:
                simstate.declare_event(self, when)

    def edges(self) -> tuple[list[float], float]:
        """Return when its pulses begin and end, which does not come again."""
        return sorted({edge for begin, end, _ in self._pulses for edge in (begin, end)}), 0.0

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the wrenches on all links."""
        load = self._held
        for begin, end, wrench in self._pulses:
            load = load + pulse(t, begin, end, self._smooth) * wrench
        return [self._wrenches(u, load)]

    def memory(self) -> dict[str, list[float]]:
        """Return what a continued run needs: what is held."""
        return {"held": self._held.tolist()}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what ``memory`` returned."""
        self._held = _load(memory["held"], "held")


def _load(value: Any, what: str) -> Array:
    """Return a wrench (6,) from a force (3,) or a wrench."""
    array = finite_array(value, what, (None,), "three numbers for a force, six for a moment and a force")
    if array.size not in (3, 6):
        raise ShapeError(f"{what}: expected a force (3) or a moment and force (6), got {array.size} numbers")
    return array if array.size == 6 else np.concatenate([np.zeros(3), array])


def _schedule(schedule: Any) -> list[tuple[float, float, Array]]:
    if not isinstance(schedule, (list, tuple)):
        raise InvalidType(f"schedule: expected a list of (begin, end, wrench), got {shown(schedule)}")
    pulses = []
    for k, entry in enumerate(schedule):
        if not isinstance(entry, (list, tuple)) or len(entry) != 3:
            raise InvalidType(f"schedule[{k}]: expected (begin, end, wrench), got {shown(entry)}")
        begin, end = real_number(entry[0], f"schedule[{k}], begin"), real_number(entry[1], f"schedule[{k}], end")
        if not begin < end or not math.isfinite(end - begin):
            raise InvalidValue(f"schedule[{k}]: must end after it begins, got {begin:g} to {end:g} s")
        pulses.append((begin, end, _load(entry[2], f"schedule[{k}], wrench")))
    return pulses
