"""Blocks of sensitivities: the Jacobians of the hybrid dynamics, and the variation of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from bdsim.components import ContinuousBlock, FunctionBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import option
from cstormpy.arrays import Array, as_floats, real_array
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._crossings import Crossing
from cstormpy.blocks._drives import Changing, Following
from cstormpy.dynamics.charts import RECENTRED, carried, half_turn_left
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.graph.arrays import zeros
from cstormpy.graph.choices import choose
from cstormpy.linkage.components import LoopFrame, Shift, find
from cstormpy.loops.parameters import closed_sensitivity_with_parameters
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.sensitivity import HybridSensitivity, variation_rate
from cstormpy.sensitivity.parameters import Asked, sensitivity_with_parameters


class _Derivatives(Following):
    """Base of blocks that ask for derivatives to the state and to numbers of the mechanism.

    Attributes
    ----------
    components : tuple of str
        The numbers of the mechanism, one for each column, as "forearm.com[0]".
    """

    components: tuple[str, ...] = ()
    _numbers: tuple[str, ...] = ()

    def _prepare(self, mech: Mechanism) -> None:
        columns = _columns(self._numbers, mech)[1]
        if columns != self.components:
            raise InvalidValue(
                f"{ports.label(self)}: follows {', '.join(self.components)}, of which another mechanism has "
                f"{', '.join(columns)}; make a block for it"
            )
        super()._prepare(mech)
        self._asked = Asked.of(mech, self._numbers)

    def _derivatives(
        self, k: int, u: Any, q: Array, qd: Array, wrench: Any, base: Any = None
    ) -> tuple[HybridSensitivity, Array | None]:
        """Return the derivatives to the state in a drive, and to the numbers of the mechanism if there are some."""
        mech, given, to_base = self._drives.of(self._mech, k), self._drive.u(self, u, k), base is not None
        if not self._numbers:
            return mech.hybrid_sensitivity(q, qd, given, wrench=wrench, base=base, to_base=to_base), None
        if mech.loops and not to_base:
            return closed_sensitivity_with_parameters(mech, q, qd, given, self._asked, wrench, base)
        return sensitivity_with_parameters(mech, q, qd, given, self._asked, wrench, base, to_base)


class Sensitivity(_Derivatives, FunctionBlock):
    r"""Exact derivatives of the hybrid dynamics of a mechanism.

    - input q (ndarray(n)): position of every joint [rad, m]
    - input qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - input tau, acc, wrench, base (float, ndarray): what drives the mechanism, as at :class:`HybridDynamics`
    - input select (float): number of the drive, from the output ``drive`` of the plant; with ``drives``
    - output dy_dq (ndarray(n, n)): derivative to the positions
    - output dy_dqd (ndarray(n, n)): derivative to the rates
    - output dy_du (ndarray(n, n)): derivative to what is given
    - output dy_dbase (ndarray(n, 12)): derivative to the motion of the base, twist before its rate; with ``base=True``
    - output dy_dp (ndarray(n, p)): derivative to p numbers of the mechanism; with ``parameters``

    .. math::

        y = f(q, \dot{q}, u, p): \qquad
        \frac{\partial y}{\partial q}, \quad \frac{\partial y}{\partial \dot{q}}, \quad
        \frac{\partial y}{\partial u}, \quad \frac{\partial y}{\partial p}

    where :math:`u_i` is the acceleration of an active joint and the motor torque of a passive one, and :math:`y_i` the
    other of the two. Row i belongs to :math:`y_i`, column j to joint j, all n of them: the column of a joint without
    motor says what a torque there would do. A load that a :class:`Wrench` or a :class:`Push` gives in the axes of the
    base keeps its direction in space while its link turns, also behind SUM, GAIN and FLATTEN, and its part is in the
    derivative to the positions; any other wrench turns with its link. Tunable are ``gravity`` and ``mech``.

    ``parameters`` are names of numbers of the mechanism, as "forearm.mass", "elbow.damping" and "forearm.com[0]", those
    of :meth:`Mechanism.parameter_sensitivity`; ``components`` of the block names the columns of dy_dp. With the inverse
    dynamics :math:`\tau = \mathrm{ID}(q, \dot{q}, \ddot{q}, p)`, its rows and columns of the passive joints v and the
    active joints a, and :math:`r = \partial \mathrm{ID} / \partial p`,

    .. math::

        \frac{\partial \ddot{q}_v}{\partial p} = -M_{vv}^{-1} r_v, \qquad
        \frac{\partial \tau_a}{\partial p} = r_a + M_{av} \frac{\partial \ddot{q}_v}{\partial p}.

    :seealso: :class:`Variation` :class:`HybridDynamics`
    """

    nin = 3
    nout = 3
    inlabels = ("q", "qd", "tau")
    outlabels = ("dy_dq", "dy_dqd", "dy_du")

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        wrench: bool = False,
        active: Iterable[str] | None = None,
        actuated: Iterable[str] | None = None,
        base: bool = False,
        parameters: Sequence[str] | str = (),
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
        :param base: whether there is a port for the motion of the base, defaults to False
        :type base: bool
        :param parameters: names of numbers of the mechanism to which there are derivatives, defaults to ()
        :type parameters: list of str, optional
        :param drives: those of the plant, as HYBRIDDYNAMICS takes them; one alone unless given
        :type drives: dict, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech).with_drive(active=active, actuated=actuated)
        among, drive = self._take(mechanism, drives, ports.flag(wrench, "wrench"), ports.flag(base, "base"))
        names, columns = _columns(parameters, mechanism)
        outputs = (*self.outlabels, *["dy_dbase"] * drive.base, *["dy_dp"] * bool(columns))
        super().__init__(**ports.options(type(self), blockargs, ("q", "qd", *drive.names), outputs))
        n = self._n = mechanism.n
        self._drive, self._numbers, self.components = drive, names, columns
        self._drives, self._locate = among, drives is not None
        of_numbers = [(n, len(columns))] * bool(columns)
        self._widths = (n, n, *drive.widths), (*[(n, n)] * 3, *[(n, 12)] * drive.base, *of_numbers)
        self._parts, self.open_zeros = (mechanism.names, mechanism.names, *drive.owners), drive.zeros
        self._begin(mechanism, "gravity", "mech")

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return the matrices."""
        q, qd = self._motion(u)
        wrench, base = self._drive.loads(self, u), self._drive.motion(self, u)
        options = [lambda *given, k=k: self._matrices(k, *given) for k in range(len(self._drives))]
        found = self._ask(u, choose, self._number(u), options, u, q, qd, wrench, base)
        ends = np.cumsum([columns for _, columns in self._widths[1]]).tolist()
        return [found[:, first:end] for first, end in pairwise([0, *ends])]

    def _matrices(self, k: int, u: Any, q: Any, qd: Any, wrench: Any, base: Any) -> Any:
        """Return the matrices in a drive, side by side."""
        found, of_numbers = self._derivatives(k, u, q, qd, wrench, base)
        more = ([] if base is None else [found.dy_dbase]) + [of_numbers] * bool(self.components)
        return np.hstack([found.dy_dq, found.dy_dqd, found.dy_du, *more])


class Variation(_Derivatives, ContinuousBlock):
    r"""Derivatives of a mechanism's state to its start and to parameters, carried along a run.

    :states: 2n (m + p)

    - input q (ndarray(n)): position of every joint, from the plant [rad, m]
    - input qd (ndarray(n)): rate of every joint, from the plant [rad/s, m/s]
    - input tau, acc, wrench (float, ndarray): the signals that drive the plant, as at :class:`HybridDynamics`
    - input select (float): number of the drive, from the output ``drive`` of the plant; with ``drives``
    - input du_dx (ndarray(k, 2n)): derivative of the k drive signals to the state, where a controller makes them from
      it; with ``feedback=True``
    - input du_dp (ndarray(k, p)): derivative of the k drive signals to p parameters, at a fixed state; with a number
      ``parameters=p``
    - output dx_dx0 (ndarray(2n, m)): derivative of the state :math:`x = (q, \dot{q})` to the start of the run
    - output dx_dp (ndarray(2n, p)): derivative of the state to the parameters; with ``parameters``

    The block stands beside a :class:`HybridDynamics` of the same mechanism and drive, wired to the plant's outputs and
    to the signals that drive it, and integrates the variational system

    .. math::

        \dot{\Phi} = (A + B K) \, \Phi, \qquad
        \dot{S} = (A + B K) \, S + B \frac{\partial u}{\partial p} +
            \begin{pmatrix} 0 \\ \partial \ddot{q} / \partial p \end{pmatrix}

        A = \begin{pmatrix} 0 & 1 \\
            \partial \ddot{q} / \partial q & \partial \ddot{q} / \partial \dot{q} \end{pmatrix}, \qquad
        B = \begin{pmatrix} 0 \\ \partial \ddot{q} / \partial u \end{pmatrix}, \qquad
        K = \frac{\partial u}{\partial x}

    with the exact derivatives of the hybrid dynamics. The acceleration of an active joint is given: its row is zero in
    A and picks its own signal in B. u are the k drive signals in the order of the ports, torques before accelerations;
    for the law :math:`u = -K_\mathrm{lqr} (x - x_r)` the port ``du_dx`` is the constant :math:`-K_\mathrm{lqr}`.
    Matrices may also come flat, row after row.

    The parameters p are either those of the drive, ``parameters`` being how many, and :math:`\partial u / \partial p`
    comes through the port ``du_dp``; or numbers of the mechanism, ``parameters`` being their names, as
    ``["forearm.mass", "elbow.damping", "forearm.com[0]"]``, and :math:`\partial \ddot{q} / \partial p` is that of
    :meth:`Mechanism.parameter_sensitivity`, zero in the rows of active joints. ``components`` of the block names the
    columns of dx_dp then, which are those of each parameter in turn. The start is the same for all p unless ``dx0_dp``
    says otherwise; it must where another length of a mechanism with loops makes another start.

    Integrated by the steps that carry the plant, :math:`\Phi` is the derivative of those very steps while their sizes
    are fixed. Loads that a :class:`Wrench` or a :class:`Push` gives in the axes of the base keep their direction in
    space, as at :class:`Sensitivity`. Not covered: a controller with states of its own, wrenches that depend on the
    state in another way, and what a jump adds whose time depends on the state (a law that switches, a stop at a limit).

    Where the plant re-centres a rotation vector, the derivatives are carried into the new chart at the same event: they
    are those of the vector of then, to the start by the one that the run begins with, which is at most π long. That
    takes a run of our own ``Simulation``. Torques of the ball that have the same numbers in both charts, as constant
    ones, turn it another way there: that adds what such a jump does, which ``sim.gradient`` has.

    Beside a plant with ``drives`` it takes the same of these, with positions and rates from the plant itself. Where a
    drive locks joints that move, the derivatives jump with the rates: the momenta of the others stay, and loops stay
    closed. So they do where a run begins in such a drive, whose plant stops at once what moves at the start. That takes
    a run of our own ``Simulation``; when it happens is taken as given, as a time at which ``plant.select`` is called.
    Where it follows the state, ``sim.gradient`` has the whole derivative.

    Tunable are ``gravity`` and ``mech``; give them the plant's values.

    :seealso: :class:`Sensitivity` :class:`HybridDynamics`
    """

    nin = 3
    nout = 1
    inlabels = ("q", "qd", "tau")
    outlabels = ("dx_dx0",)

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        directions: ArrayLike | Sequence[str] | None = None,
        parameters: int | Sequence[str] | str = 0,
        dx0_dp: ArrayLike | None = None,
        feedback: bool = False,
        wrench: bool = False,
        active: Iterable[str] | None = None,
        actuated: Iterable[str] | None = None,
        drives: Mapping[str, Mapping[str, Any]] | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param directions: the changes of the start that are followed: m columns of 2n numbers, or names of states as
            shoulder.q and elbow.qd; each state unless given
        :type directions: array_like, optional
        :param parameters: names of numbers of the mechanism, or how many parameters p the drive has, defaults to 0
        :type parameters: int or list of str, optional
        :param dx0_dp: derivative of the start to the parameters, 2n rows of p numbers; zeros unless given
        :type dx0_dp: array_like, optional
        :param feedback: whether there is a port for the derivative of the drive to the state, defaults to False
        :type feedback: bool, optional
        :param wrench: whether there is a port for wrenches on the links, defaults to False
        :type wrench: bool, optional
        :param active: names of the joints whose motion is prescribed; those of the mechanism unless given
        :type active: list, optional
        :param actuated: names of the joints that have a motor; those of the mechanism unless given
        :type actuated: list, optional
        :param drives: those of the plant, as HYBRIDDYNAMICS takes them; one alone unless given
        :type drives: dict, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech).with_drive(active=active, actuated=actuated)
        among, drive = self._take(mechanism, drives, ports.flag(wrench, "wrench"))
        n, k = mechanism.n, len(drive.signals)
        own, columns = ((), ()) if _is_number(parameters) else _columns(parameters, mechanism)
        closed, p = ports.flag(feedback, "feedback"), len(columns) if own else _count(parameters)
        if (closed or (p and not own)) and not k:
            raise InvalidValue("feedback, parameters: no joint is driven, so that nothing can depend on them")
        if dx0_dp is None and mechanism.loops:
            _refuse_moved_loops(own, mechanism)
        start = np.hstack([_start(directions, mechanism), _matrix(dx0_dp, (2 * n, p), "dx0_dp")])
        if not start.size:
            raise InvalidValue("directions: there are none, and no parameters; nothing would be followed")
        extra = ["du_dx"] * closed + ["du_dp"] * bool(p and not own)
        made = ports.options(
            type(self),
            blockargs,
            ("q", "qd", *drive.names, *extra),
            ("dx_dx0", "dx_dp") if p else ("dx_dx0",),
            states=start.size,
        )
        super().__init__(nstates=start.size, **made)
        self._x0 = start.ravel()
        self._numbers, self.components = own, columns
        self._drive, self._n, self._followed, self._p = drive, n, start.shape[1] - p, p
        self._drives, self._locate = among, drives is not None
        self._shapes = {name: (k, width) for name, width in (("du_dx", 2 * n), ("du_dp", p)) if name in extra}
        self._widths = (
            (n, n, *drive.widths, *[None] * len(extra)),
            ((2 * n, self._followed), (2 * n, p)) if p else ((2 * n, self._followed),),
        )
        driven = [mechanism.names[j] for j in drive.signals]
        self._parts = (mechanism.names, mechanism.names, *drive.owners, *[driven] * len(extra))
        self.open_zeros = drive.zeros
        self._begin(mechanism, "gravity", "mech")
        self._begin_names()

    #: Which drive a run begins in is seen when rates are asked for, not outputs.
    decides_in_rates = True
    #: 1 until the derivatives have followed the plant into the drive that locks joints as the run begins.
    _entering = 0.0

    def names_of_states(self) -> list[str]:
        """Return the names of the states: of each of the plant's, by each number."""
        of_numbers = self.components or [f"dp[{j}]" for j in range(self._p)]
        columns = [*(f"dx0[{j}]" for j in range(self._followed)), *of_numbers]
        return [f"{row}/{column}" for row in super().names_of_states() for column in columns]

    def start(self, simstate: Any) -> None:
        """Begin a run; let it carry the derivatives along where the plant exchanges a rotation vector."""
        super().start(simstate)
        if any(locked.any() for locked in self._drives.locked):
            self._follow_locks(simstate)
        if self._mech.ball_starts:
            if not hasattr(simstate, "diagram"):
                joint = self._mech.links[self._mech.joint_links[self._mech.ball_starts[0]]].joint_name
                raise InvalidValue(
                    f"joint {joint!r}: its rotation vector is re-centred during a run, which a variation follows in a "
                    "run of cstormpy.Simulation only"
                )
            Crossing(self, simstate, self._half_turn_left, reset=self._carry, told=RECENTRED)

    def _half_turn_left(self, t: float, u: Sequence[Any]) -> Any:
        return half_turn_left(self._mech, ports.vector(self, 0, u[0], self._n, self._parts[0]))

    def _carry(self, t: float, x: Array) -> None:
        q, qd = self._motion(self.inport_values)
        x[:] = carried(self._mech, q, qd, x.reshape(2 * self._n, -1)).ravel()

    def output(self, t: float, u: list[Any], x: Array) -> list[Any]:
        """Return the derivatives to the start and to the parameters; copies, as x is a view into the solver's."""
        X = x.reshape(2 * self._n, -1)
        m = self._followed
        return [X[:, :m].copy(), X[:, m:].copy()] if self._p else [X.copy()]

    def deriv(self, t: float, u: list[Any], x: Array) -> Array:
        """Return the rates of the derivatives."""
        q, qd = self._motion(u)
        wrench = self._drive.loads(self, u)
        X = x.reshape(2 * self._n, -1)
        change = self._drive_change(u, X)
        options = [lambda *given, k=k: self._rate(k, *given) for k in range(len(self._drives))]
        return self._ask(u, choose, self._number(u), options, u, q, qd, wrench, X, change)

    def _rate(self, k: int, u: Any, q: Any, qd: Any, wrench: Any, X: Any, change: Any) -> Any:
        """Return the rates in a drive."""
        found, of_numbers = self._derivatives(k, u, q, qd, wrench)
        D = np.stack([found.dy_dq, found.dy_dqd, found.dy_du])
        if of_numbers is not None:
            of_numbers = np.hstack([np.zeros((self._n, self._followed)), of_numbers])
        if change is not None and not self._drive.counts[k].all():
            change = self._drive.counts[k][:, None] * change
        active = self._drives.of(self._mech, k).active_mask
        return variation_rate(D, active, self._drive.signals, X, change, of_numbers).ravel()

    def _reset(self, t: float, x: Array) -> None:
        """Carry the derivatives into the drive that the plant has entered."""
        k = int(self._mode)
        if not self._drives.locked[k].any():
            return
        when, state = self._plant().last_entered
        if state is None or when != t:  # the plant has not entered it yet
            state = np.concatenate(self._motion(self.inport_values))
        X = x.reshape(2 * self._n, -1)
        X[:] = self._drives.entered_tangents(self._mech, k, state, X, self._numbers)

    def _follow_locks(self, simstate: Any) -> None:
        """Let the derivatives jump where a run begins in a drive that locks joints; refuse what knows of no rates."""
        if not self._located:
            raise InvalidValue(
                f"{ports.label(self)}: its drives lock joints, which a variation follows in a run of "
                "cstormpy.Simulation only"
            )
        plant = self._plant()
        if not isinstance(plant, Changing):
            raise InvalidValue(
                f"{ports.port_label(self, 0)}: the drives lock joints, so that the plant itself has to be wired here, "
                f"which knows the rates before; got block {plant.name!r}"
            )
        self._entering = 1.0 if self._drives.locked[plant.next_first_drive].any() else 0.0
        if self._entering:
            Crossing(
                self, simstate, self._beginning, self._begun, signals=False, decided=True, reset=self._reset, first=True
            )

    def _beginning(self, t: float, u: Sequence[Any]) -> Any:
        """Stand below zero until the run has begun."""
        return 1.0 - 2.0 * self._entering

    def _begun(self, t: float) -> None:
        self._entering = 0.0

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what ``memory`` returned: the drive has been entered."""
        super().recall(memory)
        self._entering = 0.0

    def _plant(self) -> Any:
        """Return the block that the position comes from."""
        return next(wire.start.block for wire in self._bd.wirelist if wire.end.block is self and wire.end.port == 0)

    def _drive_change(self, u: list[Any], X: Array) -> Array | None:
        """Return how the drive signals change with each column, or None where they do not."""
        if not self._shapes:
            return None
        port, change = 2 + len(self._drive.names), zeros((len(self._drive.signals), X.shape[1]), X)
        rows = ", ".join(self._parts[-1])
        if "du_dx" in self._shapes:
            change += ports.matrix(self, port, u[port], self._shapes["du_dx"], f"the drive of {rows}", flat=True) @ X
            port += 1
        if "du_dp" in self._shapes:
            change[:, self._followed :] += ports.matrix(
                self, port, u[port], self._shapes["du_dp"], f"the drive of {rows}", flat=True
            )
        return change


def _columns(parameters: Any, mech: Mechanism) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names of numbers of a mechanism, and those of their components."""
    found = find(mech, parameters)
    return tuple(name for name, _ in found), tuple(part.name for _, parts in found for part in parts)


def _refuse_moved_loops(names: tuple[str, ...], mech: Mechanism) -> None:
    """Refuse lengths of a mechanism with loops where the start is to be the same: it would be open."""
    for name, parts in find(mech, names):
        if any(isinstance(part, (Shift, LoopFrame)) for part in parts):
            raise InvalidValue(
                f"parameters: {name!r} moves what the loops close, so that a run starts elsewhere for another value; "
                "give dx0_dp, the derivative of the closed start"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_, int, np.integer, float, np.floating)) or value is None


def _count(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidType(f"parameters: expected names of numbers, or how many there are, got {shown(value)}")
    if not 0 <= value <= 1000:
        raise InvalidValue(f"parameters: expected a number from 0 to 1000, got {value}")
    return int(value)


def _start(directions: Any, mech: Mechanism) -> Array:
    """Return the columns that the derivative to the start begins with, (2n, m)."""
    if directions is None:
        return np.eye(2 * mech.n)
    if isinstance(directions, (list, tuple)) and directions and all(isinstance(one, str) for one in directions):
        states = [f"{joint}.{kind}" for kind in ("q", "qd") for joint in mech.names]
        for name in directions:
            option(name, "direction", states)
        return np.eye(2 * mech.n)[:, [states.index(name) for name in directions]]
    array = as_floats(directions, "directions")
    if array.ndim == 1 and array.size == 0:
        return np.zeros((2 * mech.n, 0))
    columns = array.reshape(-1, 1) if array.ndim == 1 else array
    return _matrix(columns, (2 * mech.n, columns.shape[-1] if columns.ndim else 0), "directions")


def _matrix(value: Any, shape: tuple[int, int], name: str) -> Array:
    """Return finite numbers of a shape, zeros for None."""
    if value is None:
        return np.zeros(shape)
    return real_array(value, name, shape, hint="positions stand before rates")
