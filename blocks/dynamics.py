"""Blocks of the dynamics: the mechanism as a plant, and the torques and accelerations along its motion."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from bdsim.components import ContinuousBlock, FunctionBlock
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._crossings import Crossing, can_locate
from cstormpy.blocks._drives import Changing, DriveSet, Following
from cstormpy.blocks._stops import stops_of
from cstormpy.dynamics.charts import RECENTRED, carried, half_turn_left, recentre, recentred
from cstormpy.dynamics.checked_arguments import link_index
from cstormpy.dynamics.loads import link_wrench
from cstormpy.errors import InvalidValue
from cstormpy.graph.arrays import zeros
from cstormpy.linkage.degrees import say_degrees
from cstormpy.loops.assembly import independent_rows, refuse_of_vectors, shut
from cstormpy.loops.linearisation import independent_joints, tangent
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.trajectory.checks import finite_array


class HybridDynamics(Changing, ContinuousBlock):
    r"""A mechanism whose joints are driven by torque or by prescribed motion.

    :states: 2n

    - input tau (float, ndarray): motor torques of the joints that are actuated and not active [N m, N]; no such port
      without such joints
    - input acc (float, ndarray): accelerations of the active joints [rad/s², m/s²]; no such port without active joints
    - input wrench (ndarray(n_links, 6)): moment and force on each link from outside, in the link's frame [N m, N]; with
      ``wrench=True``
    - input base (ndarray(2, 6)): twist (ω, v) of the base in its own frame, and its rate; with ``base=True``
    - input select (float): number of the drive, counted from 0 in the order given, rounded; with ``drives`` and
      ``select=True``
    - output q (ndarray(n)): position of every joint [rad, m]
    - output qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - output drive (float): number of the drive that the plant is in; with ``drives``

    The block integrates the hybrid dynamics

    .. math::

        \frac{d}{dt} (q, \dot{q}) = (\dot{q}, \ddot{q}), \qquad y = f(q, \dot{q}, u)

    where :math:`u_i` is the acceleration of an active joint and the motor torque of a passive one (zero if it has no
    motor), and :math:`y_i` is the other of the two; :math:`\ddot{q}_i` is :math:`u_i` of an active and :math:`y_i` of
    a passive joint.

    The ports follow from the mechanism: the acrobot has the one input ``tau``, the torque of its elbow, and with
    ``active=["elbow"]`` the one input ``acc``. A port's numbers are in the order of q. There is no feedthrough, so
    that any controller can close the loop; accelerations and torques come from :class:`JointEffort`.

    With ``drives`` the drive changes during a run, and the state goes on: each name stands for the joints that are
    ``active``, driven by the signal ``acc``, and those that are ``locked``; all others go by torque. ``{}`` is the
    drive of the mechanism. The plant begins in the first one, or in ``drive``. Another one is chosen

    - by ``plant.select("held")``, before a run, or during one from whatever the runner calls between two steps, as in
      ``sim.run(bd, at={3.0: lambda: plant.select("held")})``;
    - by a signal at the port ``select``, as a law's phase or a comparison; where it passes the middle between two
      numbers is located as an event.

    A joint that is locked stops at once: the impulse in it changes the rates of the other joints so that their momenta
    :math:`(M \dot{q})_i` stay as they are (:meth:`Mechanism.lock <cstormpy.Mechanism.lock>`). With ``locking="rest"``
    one that moves is refused. A brake needs no motor; its torque is in the output of :class:`JointEffort`.

    Limits of joints are data: a run goes beyond them, and says so once. ``stops=True`` makes spring-damper stops at
    the position limits of all joints that are not active, with or without motor, by the law of :class:`JointLimit`;
    ``stops={"stiffness": 5e3, "damping": 50, "joints": ["cart"]}`` gives what that block is given.

    Rotation vectors of balls and free bodies are re-centred during a run: where one becomes longer than π, an event,
    which is logged, takes the shorter one of the same rotation, and its rate, as the new state.

    A mechanism with loops begins in a closed state: ``q0`` and ``qd0`` as :meth:`Mechanism.project
    <cstormpy.Mechanism.project>` finds them, without ``q0`` the closed posture nearest to zeros;
    ``sim.run(bd, start={"plant.crank.q": 1.3})`` keeps the joints that it names, and the others follow. What the
    integration lets the loops drift apart is taken away after each step by projection, where our own ``Simulation``
    runs the diagram; on a plain ``bdsim.BDSim()`` it remains, and grows with the square of the time: at ``rtol=1e-6``
    the pin of a four-bar that turns once a second is open by 0.04 mm after 1 s and by 6 mm after 10 s, at bdsim's own
    1e-3 by 2 cm after 1 s (``python tests/benchmarks/loop_drift.py``).

    The states are named ``<block>.<joint>.q`` and ``<block>.<joint>.qd``. Tunable are ``q0`` and ``qd0``, which take
    effect when a run starts, and ``gravity`` and ``mech``, which take effect at once: another mechanism of the same
    links, joints and drive, or one number of it, as a load that is picked up:
    ``at={3.0: lambda: plant.set_param("forearm.mass", 2.0)}``.

    Examples::

        plant = bd.HYBRIDDYNAMICS("acrobot", drives={"free": {}, "held": {"locked": ["elbow"]}}, select=True)
        bd.connect(controller.phase, plant.select)

    :seealso: :class:`JointEffort`
    """

    nin = 1
    nout = 2
    inlabels = ("tau",)
    outlabels = ("q", "qd")

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        q0: ArrayLike | None = None,
        qd0: ArrayLike | None = None,
        wrench: bool = False,
        active: Iterable[str] | None = None,
        actuated: Iterable[str] | None = None,
        stops: bool | Mapping[str, Any] = False,
        base: bool = False,
        drives: Mapping[str, Mapping[str, Any]] | None = None,
        drive: str | None = None,
        select: bool = False,
        locking: str = "impulse",
        **blockargs: Any,
    ) -> None:
        """Create the plant.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param q0: initial position of every joint; zeros unless given
        :type q0: array_like, optional
        :param qd0: initial rate of every joint; zeros unless given
        :type qd0: array_like, optional
        :param wrench: whether there is a port for wrenches on the links, defaults to False
        :type wrench: bool, optional
        :param active: names of the joints whose motion is prescribed; those of the mechanism unless given
        :type active: list, optional
        :param actuated: names of the joints that have a motor; those of the mechanism unless given
        :type actuated: list, optional
        :param stops: whether the limited joints have stops, or how: stiffness, damping, joints, depth of JOINTLIMIT;
            defaults to False
        :type stops: bool or dict
        :param base: whether there is a port for the motion of the base, defaults to False
        :type base: bool
        :param drives: drives by name, each a dict of the joints that are "active" and "locked"; one alone unless given
        :type drives: dict, optional
        :param drive: name of the drive that a run begins in; the first one unless given
        :type drive: str, optional
        :param select: whether a signal chooses the drive, defaults to False
        :type select: bool
        :param locking: how a joint that moves is locked, one of: 'impulse' [default], 'rest'
        :type locking: str
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech).with_drive(active=active, actuated=actuated)
        among = DriveSet(mechanism, drives)
        self._take_drives(among, drive, ports.flag(select, "select"), locking)
        ways = ports.flag(wrench, "wrench"), 0, ports.flag(base, "base"), self._by_signal
        ported = ports.Drive(mechanism, *ways, among.torque, among.active)
        stopped = stops_of(among.loosest(mechanism), stops)
        if q0 is None and mechanism.loops:
            q0, _ = mechanism.project(np.zeros(mechanism.n))
        start = [ports.coordinates(q0, mechanism, "q0"), ports.coordinates(qd0, mechanism, "qd0")]
        say_degrees(mechanism.freedoms, mechanism.names, start[0].tolist())
        n, outputs = mechanism.n, self.outlabels if drives is None else (*self.outlabels, "drive")
        super().__init__(nstates=2 * n, **ports.options(type(self), blockargs, ported.names, outputs, states=2 * n))
        self._x0 = np.concatenate(start)
        self._drive, self._n, self._stops = ported, n, stopped
        self._pushed: tuple[int, Array, Array] | None = None
        self._widths, self._parts = (ported.widths, (n, n, 1)[: len(outputs)]), ported.owners
        self.open_zeros = ported.zeros
        self._begin(mechanism, "q0", "qd0", "gravity", "mech")
        self._begin_names()

    @property
    def q0(self) -> Array:
        """Initial position of every joint, (n,)."""
        return self._x0[: self._n].copy()

    @q0.setter
    def q0(self, value: ArrayLike | None) -> None:
        self._x0 = np.concatenate([ports.coordinates(value, self._mech, "q0"), self.qd0])

    @property
    def qd0(self) -> Array:
        """Initial rate of every joint, (n,)."""
        return self._x0[self._n :].copy()

    @qd0.setter
    def qd0(self, value: ArrayLike | None) -> None:
        self._x0 = np.concatenate([self.q0, ports.coordinates(value, self._mech, "qd0")])

    def push(self, link: str | int, force: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """Push a link from now on, as by hand, until `release` or another push.

        :param link: name or index of the link
        :type link: str or int
        :param force: the force in the base's axes, (3,) [N]
        :type force: array_like
        :param point: where it acts, in the link's frame, (3,) [m]
        :type point: array_like
        """
        index = link_index(self._mech, link)
        self._pushed = (index, finite_array(point, "point", (3,)), finite_array(force, "force", (3,)))

    def release(self) -> None:
        """Push no more."""
        self._pushed = None

    def start(self, simstate: Any) -> None:
        """Begin a run without a push; let it re-centre rotation vectors."""
        super().start(simstate)
        self._pushed = None
        self._begin_drives(simstate)
        if self._mech.ball_starts and can_locate(self, simstate):
            Crossing(
                self, simstate, self._half_turn_left, signals=False, of_states=True, reset=self._recentre,
                tangents=self._recentred_tangents, told=RECENTRED, settles=True,
            )  # fmt: skip

    def _half_turn_left(self, t: float, u: Any, x: Array) -> Any:
        return half_turn_left(self._mech, x)

    def _recentre(self, t: float, x: Array) -> None:
        self._shorten(x)

    def _shorten(self, x: Array, **longest: float) -> None:
        """Write a state by shorter rotation vectors where that is due."""
        recentre(self._mech, x[: self._n], x[self._n :], **longest)
        if self._mech.loops:
            refuse_of_vectors(self._mech, x[: self._n])

    def _recentred_tangents(self, t: float, x: Array, tangents: Array) -> Array:
        return carried(self._mech, x[: self._n], x[self._n :], tangents)

    def getstate0(self) -> Array:
        """Return the state at the start, with rotation vectors of at most π."""
        x: Array = np.array(super().getstate0(), dtype=float)
        if self._mech.ball_starts:
            self._shorten(x, longest=np.pi)
        return self.projected(x) if self._mech.loops else x

    @property
    def closed(self) -> bool:
        """True where loops are to be kept closed."""
        return bool(self._mech.loops)

    def projected(self, x: Array, steps: int = 1) -> Array:
        """Return the nearest state that closes all loops; one that is far from it is refused; symbols take steps."""
        n = self._n
        return np.concatenate(shut(self._mech, x[:n], x[n:], steps))

    @property
    def settles(self) -> bool:
        """True where a state is to be settled after each step that no run looks at."""
        return bool(self._mech.loops or self._mech.ball_starts)

    def settled(self, x: Array, steps: int = 1) -> Array:
        """Return a state by rotation vectors of at most about half a turn, with all loops closed; symbols will do."""
        x = recentred(self._mech, x) if self._mech.ball_starts else x
        return self.projected(x, steps) if self._mech.loops else x

    def following(self, x: Array, given: NDArray[np.bool_]) -> Array:
        """Return a state that closes all loops, in which the joints keep theirs of which something is given.

        Where these are more than the loops leave free, and contradict them by little, it is the nearest one.
        """
        n = self._n
        held = np.flatnonzero(given[:n] | given[n:])
        try:
            return np.concatenate(self._mech.project(x[:n], x[n:], hold=[self._mech.names[k] for k in held]))
        except InvalidValue:
            if len(held) <= n - len(independent_rows(self._mech)):
                raise
            return self.projected(x)

    def tangent(self, x: Array) -> tuple[NDArray[np.int64], Array]:
        """Return which states are independent where loops are closed, and the matrix by which all follow them."""
        n = self._n
        found = tangent(self._mech, x[:n], x[n:], independent_joints(self._mech, x[:n]))
        return found.states, found.joints

    def memory(self) -> dict[str, list[float]]:
        """Return what a continued run needs: the drive, if there are several; the push as link, point and force."""
        found = {} if len(self._drives) == 1 else {"drive": [self._mode, self._waiting, float(self._wanted)]}
        if self._pushed is None:
            return {**found, "push": []}
        link, point, force = self._pushed
        return {**found, "push": [float(link), *point.tolist(), *force.tolist()]}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what ``memory`` returned, where that was anything, or with the drive chosen since the last run."""
        if "drive" in memory:
            self._mode, self._waiting, wanted = memory["drive"]
            self._wanted = int(wanted)
            if self._between is not None:
                self._wanted, self._waiting = self._between, 1.0
        self._pushed = None
        if memory.get("push"):
            link, *numbers = memory["push"]
            self.push(int(link), numbers[3:], numbers[:3])

    def _wrenches(self, u: list[Any], q: Array) -> Array:
        """Return the wrenches of the port and of the push, (n_links, 6)."""
        wired = self._drive.wrenches(self, u) if self._drive.wrench else np.zeros((len(self._mech.links), 6))
        if self._pushed is None:
            return wired
        link, point, force = self._pushed
        rotation = self._mech.forward_kinematics(q)[link, :3, :3].T
        load = link_wrench(rotation, point, np.concatenate([np.zeros(3), force]))
        pushed = zeros(wired.shape, load)
        pushed[link] = load
        return np.asarray(wired) + pushed

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return position and rate; copies, because x is a view into the solver's vector."""
        n = self._n
        number = [] if self.nout == 2 else [1.0 * self._mode]
        return [x[:n].copy(), x[n:].copy(), *number]

    def deriv(self, t: float, u: list[Any], x: Array) -> Array:
        """Return rate and acceleration."""
        n, drive = self._n, self._drive
        q, qd = x[:n], x[n:]
        wrench = self._wrenches(u, q) if drive.wrench or self._pushed is not None else None
        qdd = self._ask(u, self._answer, self._mode, u, q, qd, wrench, drive.motion(self, u))[0]
        return np.concatenate([qd, qdd])


class JointEffort(Following, FunctionBlock):
    r"""Accelerations and motor torques of all joints of a mechanism, whichever of the two is given.

    - input q (ndarray(n)): position of every joint [rad, m]
    - input qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - input tau, acc, wrench, base (float, ndarray): what drives the mechanism, as at :class:`HybridDynamics`
    - input select (float): number of the drive, from the output ``drive`` of the plant; with ``drives``
    - output qdd (ndarray(n)): acceleration of every joint [rad/s², m/s²]
    - output torque (ndarray(n)): motor torque of every joint [N m, N]; zero of a joint without motor

    The block evaluates the hybrid dynamics :math:`y = f(q, \dot{q}, u)` and puts what was given and what was found
    where they belong:

    .. math::

        \ddot{q}_i = \begin{cases} u_i & \text{active} \\ y_i & \text{passive} \end{cases} \qquad
        \tau_i = \begin{cases} y_i & \text{active} \\ u_i & \text{passive} \end{cases}

    It is wired beside :class:`HybridDynamics`, to the plant's outputs and to the signals that drive the plant: as a
    block with feedthrough of its own, since bdsim decides about feedthrough by blocks. The output is called
    ``torque``, because bdsim looks up ``block.tau`` among the outputs first: an output ``tau`` would take the place
    of the input ``tau`` in ``bd.connect(controller, effort.tau)``, silently.

    Beside a plant with stops it takes the same ``stops``, whose torques move the joints and are none of the motors',
    and beside one with ``drives`` the same of these. The torque of a joint that is locked is that of its brake.

    Tunable are ``gravity`` and ``mech``.

    :seealso: :class:`HybridDynamics`
    """

    nin = 3
    nout = 2
    inlabels = ("q", "qd", "tau")
    outlabels = ("qdd", "torque")

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        wrench: bool = False,
        active: Iterable[str] | None = None,
        actuated: Iterable[str] | None = None,
        stops: bool | Mapping[str, Any] = False,
        base: bool = False,
        drives: Mapping[str, Mapping[str, Any]] | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param wrench: whether there is a port for wrenches on the links, defaults to False
        :type wrench: bool, optional
        :param active: names of the joints whose motion is prescribed; those of the mechanism unless given
        :type active: list, optional
        :param actuated: names of the joints that have a motor; those of the mechanism unless given
        :type actuated: list, optional
        :param stops: those of the plant, as HYBRIDDYNAMICS takes them, defaults to False
        :type stops: bool or dict
        :param base: whether there is a port for the motion of the base, defaults to False
        :type base: bool
        :param drives: those of the plant, as HYBRIDDYNAMICS takes them; one alone unless given
        :type drives: dict, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech).with_drive(active=active, actuated=actuated)
        among, drive = self._take(mechanism, drives, ports.flag(wrench, "wrench"), ports.flag(base, "base"))
        stopped = stops_of(among.loosest(mechanism), stops)
        super().__init__(**ports.options(type(self), blockargs, ("q", "qd", *drive.names), self.outlabels))
        self._drive, self._n, self._stops = drive, mechanism.n, stopped
        self._drives, self._locate = among, drives is not None
        self._widths = (self._n, self._n, *drive.widths), (self._n, self._n)
        self._parts, self.open_zeros = (mechanism.names, mechanism.names, *drive.owners), drive.zeros
        self._begin(mechanism, "gravity", "mech")

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return accelerations and torques."""
        q, qd = self._motion(u)
        wrench, base = self._drive.wrenches(self, u), self._drive.motion(self, u)
        return list(self._ask(u, self._answer, self._number(u), u, q, qd, wrench, base))


class InverseDynamics(bases.Mechanical, FunctionBlock):
    r"""Motor torques that a motion of all joints needs, whatever the drive of the mechanism.

    - input q (ndarray(n)): position of every joint [rad, m]
    - input qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - input qdd (ndarray(n)): acceleration of every joint [rad/s², m/s²]
    - input wrench (ndarray(n_links, 6)): moment and force on each link from outside, in the link's frame [N m, N]; with
      ``wrench=True``
    - input base (ndarray(2, 6)): twist (ω, v) of the base in its own frame, and its rate; with ``base=True``
    - output tau (ndarray(n)): motor torque of every joint [N m, N]

    .. math::

        \tau = M(q) \ddot{q} + c(q, \dot{q}) + g(q) + d \dot{q} + f \tanh(\dot{q} / v_s) + k (q - q_\mathrm{rest})

    with the armature in M, less what the wrenches do. Tunable are ``gravity`` and ``mech``.

    :seealso: :class:`JointEffort`
    """

    nin = 3
    nout = 1
    inlabels = ("q", "qd", "qdd")
    outlabels = ("tau",)

    def __init__(
        self, mech: Mechanism | str | os.PathLike[str], wrench: bool = False, base: bool = False, **blockargs: Any
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param wrench: whether there is a port for wrenches on the links, defaults to False
        :type wrench: bool, optional
        :param base: whether there is a port for the motion of the base, defaults to False
        :type base: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        ways = ports.flag(wrench, "wrench"), 3, ports.flag(base, "base")
        loads = ports.Drive(mechanism.with_drive(actuated=(), active=()), *ways)
        super().__init__(**ports.options(type(self), blockargs, (*self.inlabels, *loads.names)))
        n = self._n = mechanism.n
        self._loads = loads
        self._widths, self._parts = ((n, n, n, *loads.widths), (n,)), (*[mechanism.names] * 3, *loads.owners)
        self.open_zeros = loads.zeros
        self._begin(mechanism, "gravity", "mech")

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return the torques."""
        q, qd, qdd = (ports.vector(self, port, u[port], self._n, self._parts[port]) for port in (0, 1, 2))
        wrench, base = self._loads.wrenches(self, u), self._loads.motion(self, u)
        return [self._ask(u, self._mech.inverse_dynamics, q, qd, qdd, wrench=wrench, base=base)]
