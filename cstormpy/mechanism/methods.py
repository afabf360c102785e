"""Dynamics, sensitivities and kinematics of a mechanism, as its methods.

Each method takes one sample, arrays of shape (n,), or a batch, (N, n), and answers in kind. The functions
behind them, in `cstormpy.dynamics` and `cstormpy.sensitivity`, are imported at the first question, so that
describing a mechanism costs no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import flag
from cstormpy.errors import InvalidValue

if TYPE_CHECKING:
    from cstormpy.dynamics import HybridDynamics, Inertial
    from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike
    from cstormpy.dynamics.inverse_kinematics import InverseKinematics
    from cstormpy.dynamics.points import PointMotion
    from cstormpy.mechanism.mechanism import Mechanism
    from cstormpy.sensitivity import HybridSensitivity
    from cstormpy.sensitivity.linearisation import Equilibrium, Linearization
    from cstormpy.sensitivity.parameters import ParameterSensitivity

Array = NDArray[np.float64]

__all__ = ["Questions"]

#: The prepared functions neither count threads nor look for masks: what they are given is checked before.
_ONE = 1


def _is_sample(u: Any) -> bool:
    return type(u) is np.ndarray and u.ndim == 1


def _for_rows(ask: Callable[..., Any], mech: Mechanism, prepare: Callable[[], Any]) -> Callable[..., Any]:
    """Return what asks in the careful way, until there is one sample and what is prepared for those takes its place."""

    def answer(q: Any, qd: Any, u: Any) -> Any:
        return prepare()(q, qd, u) if _is_sample(u) else ask(mech, q, qd, u)

    return answer


class Questions:
    """The methods of `Mechanism` that compute.

    Common parameters: `wrench` acts on the links from outside: (n_links, 6) rows (moment, force) in each link's frame,
    one set for all samples or (N, n_links, 6); or a list of loads, each a `Load` or (link, pose of its frame in the
    link's or None, wrench). Rows and tuples turn with their link, a `Load` keeps its direction in space unless it says
    otherwise, and the derivatives to q are those of that. `base` is the motion (V0, dV0) of the base, each (6,) or
    (N, 6), in its own frame; `threads` is the most threads that share a batch, None for one per core. What is done
    before another thread wakes (about 0.3 ms) stays on one. Answers above some 30 MB come in fresh memory each time,
    which may cost half as much again: ask for less at once.
    """

    memo: dict[Any, Any]

    @property
    def _self(self) -> Mechanism:
        return cast("Mechanism", self)

    def hybrid_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        redundancy: str | ArrayLike | None = None,
    ) -> HybridDynamics:
        """Return the torques of the active and the accelerations of the passive joints: y = f(q, q̇, u).

        Of a mechanism with loops it is that of the closed one, in a state that closes them, and has `multipliers` and
        `loop_wrenches` too; see `loops.dynamics.ClosedDynamics`.

        Parameters
        ----------
        q, qd : array_like, (n,) or (N, n)
            Position and rate of every joint.
        u : array_like, (n,) or (N, n)
            The acceleration of each active joint, the motor torque of each passive one.
        wrench, base, threads
            See `Questions`.
        redundancy : {"torque", "force"} or array_like, (k,) or (k, k), optional
            Where loops tie more active joints than there are freedoms: the least torque of the active joints, unless
            said, or the least multipliers; or weights W of the k active joints, positive or positive definite, for the
            least τᵀ W τ of these.

        Returns
        -------
        HybridDynamics
            With `y`, `qdd` and `tau`.

        Raises
        ------
        ShapeError, NonFinite, InvalidType
            Naming the argument, the joint and the row.
        SingularInertia
            Where a passive joint moves no inertia.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.acrobot(parameters="rods").with_drive(active=["elbow"])
        >>> r = mech.hybrid_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
        >>> r.qdd.round(4)
        array([-7.3575,  0.    ])
        """
        if wrench is None and base is None and threads is _ONE and redundancy is None:
            try:
                answer = self.memo["hybrid"]
            except KeyError:
                answer = self._prepared_hybrid(_is_sample(u))
            return answer(q, qd, u)
        if self._self.loops:
            from cstormpy.loops.dynamics import closed_hybrid

            return closed_hybrid(self._self, q, qd, u, wrench, base, threads, redundancy)
        from cstormpy.dynamics.hybrid import hybrid_answer

        self._refuse_redundancy(redundancy)
        return hybrid_answer(self._self, q, qd, u, wrench, base, threads)

    def _refuse_redundancy(self, redundancy: str | ArrayLike | None) -> None:
        if redundancy is not None:
            raise InvalidValue("redundancy: is of mechanisms with loops; this one has none")

    def hybrid_evaluator(self, wrench: WrenchLike = None, base: bool = False) -> Callable[..., Array]:
        """Return the prepared function f(q, qd, u, out=None) -> y, for calling often with one sample.

        Contiguous float64 arrays (n,) are the fast way in; everything else is accepted as by `hybrid_dynamics`, but
        that the mask of a masked sample is not looked at. The answer is a fresh array, or `out`. `wrench` (see
        `Questions`) is the same at all calls. With ``base=True`` the function is f(q, qd, u, base, out=None), where
        `base` is the motion of the base: (V0, dV0) behind one another as an array (12,), or the pair.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> f = library.acrobot(parameters="rods").hybrid_evaluator()
        >>> f(np.zeros(2), np.zeros(2), np.zeros(2)).round(4)
        array([-12.6129,  16.8171])
        """
        if flag(base, "base"):
            from cstormpy.dynamics.hybrid import moving_evaluator

            return moving_evaluator(self._self, wrench, self.hybrid_dynamics)
        if self._self.loops:
            from cstormpy.loops.dynamics import closed_evaluator

            return closed_evaluator(self._self, wrench)[0]
        if wrench is not None:
            from cstormpy.dynamics.hybrid import hybrid_evaluator

            return hybrid_evaluator(self._self, wrench)[0]
        if "hybrid evaluator" not in self.memo:
            self._prepared_hybrid()
        return cast("Callable[..., Array]", self.memo["hybrid evaluator"])

    def _prepared_hybrid(self, for_sample: bool = True) -> Callable[..., HybridDynamics]:
        """Make the functions of `dynamics.hybrid.hybrid_evaluator`; return that with all, or for now one for rows."""
        if self._self.loops:
            from cstormpy.loops.dynamics import closed_evaluator, closed_hybrid
            from cstormpy.loops.lines import is_built

            if not (for_sample and is_built(self._self, "own", "dynamics")):
                return partial(closed_hybrid, self._self)
            self.memo["hybrid"] = closed_evaluator(self._self)[1]
            return cast("Callable[..., HybridDynamics]", self.memo["hybrid"])
        from cstormpy.dynamics.hybrid import hybrid_answer, hybrid_evaluator

        if for_sample:
            self.memo["hybrid evaluator"], self.memo["hybrid"] = hybrid_evaluator(self._self)
        else:
            self.memo["hybrid"] = _for_rows(hybrid_answer, self._self, self._prepared_hybrid)
        return cast("Callable[..., HybridDynamics]", self.memo["hybrid"])

    def hybrid_sensitivity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        to_base: bool = False,
    ) -> HybridSensitivity:
        """Return what `hybrid_dynamics` returns, and its exact derivatives to q, q̇ and u.

        Parameters
        ----------
        q, qd, u, wrench, base, threads
            As for `hybrid_dynamics`.
        to_base : bool
            Also return `dy_dbase`, the derivative to the motion of the base.

        Returns
        -------
        HybridSensitivity
            With `dy_dq`, `dy_dqd`, `dy_du`, each (n, n) or (N, n, n), beside `y`, `qdd` and `tau`.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> d = library.acrobot(parameters="rods").hybrid_sensitivity([np.pi / 2, 0.0], [0.0, 0.0], [0.0, 0.0])
        >>> d.dy_dq.round(3)
        array([[ 12.613, -12.613],
               [-16.817,  46.247]])
        """
        if wrench is None and base is None and to_base is False and threads is _ONE:
            try:
                answer = self.memo["sensitivity"]
            except KeyError:
                answer = self._prepared_sensitivity(_is_sample(u))
            return answer(q, qd, u)
        if self._self.loops and not to_base:
            from cstormpy.loops.sensitivity import closed_sensitivity

            return closed_sensitivity(self._self, q, qd, u, wrench, base, threads)
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        return hybrid_sensitivity(self._self, q, qd, u, wrench, base, threads, to_base)

    def hybrid_sensitivity_evaluator(
        self, wrench: WrenchLike = None, base: bool = False
    ) -> Callable[..., tuple[Array, Array]]:
        """Return the prepared function f(q, qd, u) -> (y, D), D of shape (3, n, n): to q, to q̇, to u.

        `wrench`, see `Questions`, is the same at all calls; with ``base=True`` it is f(q, qd, u, base), as of
        `hybrid_evaluator`.
        """
        if flag(base, "base"):
            from cstormpy.dynamics.hybrid import moving_evaluator

            return moving_evaluator(self._self, wrench, self.hybrid_sensitivity, sensitivities=True)
        if self._self.loops:
            from cstormpy.loops.sensitivity import closed_sensitivity_evaluator

            return closed_sensitivity_evaluator(self._self, wrench)[0]
        if wrench is not None:
            from cstormpy.sensitivity.hybrid import hybrid_sensitivity_evaluator

            return hybrid_sensitivity_evaluator(self._self, wrench)[0]
        if "sensitivity evaluator" not in self.memo:
            self._prepared_sensitivity()
        return cast("Callable[..., tuple[Array, Array]]", self.memo["sensitivity evaluator"])

    def _prepared_sensitivity(self, for_sample: bool = True) -> Callable[..., HybridSensitivity]:
        """Do the same with those of `sensitivity.hybrid.hybrid_sensitivity_evaluator`."""
        if self._self.loops:
            from cstormpy.loops.lines import is_built
            from cstormpy.loops.sensitivity import closed_sensitivity, closed_sensitivity_evaluator

            if not (for_sample and is_built(self._self, "own", "sensitivity")):
                return partial(closed_sensitivity, self._self)
            self.memo["sensitivity"] = closed_sensitivity_evaluator(self._self)[1]
            return cast("Callable[..., HybridSensitivity]", self.memo["sensitivity"])
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity, hybrid_sensitivity_evaluator

        if for_sample:
            made = hybrid_sensitivity_evaluator(self._self)
            self.memo["sensitivity evaluator"], self.memo["sensitivity"] = made
        else:
            self.memo["sensitivity"] = _for_rows(hybrid_sensitivity, self._self, self._prepared_sensitivity)
        return cast("Callable[..., HybridSensitivity]", self.memo["sensitivity"])

    def parameter_sensitivity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        parameters: Sequence[str] | str,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        redundancy: str | None = None,
    ) -> ParameterSensitivity:
        """Return what `hybrid_dynamics` returns, and its exact derivatives to numbers of the mechanism.

        Parameters
        ----------
        q, qd, u, wrench, base, threads
            As for `hybrid_dynamics`.
        parameters : list of str
            Names as `with_parameters` has them, "gravity", and "<link>.wrench"; or components of these:
            "<link>.com[0]"; "<link>.inertia.xx", ".xy", ".xz", ".yy", ".yz", ".zz" (about the centre of mass; xy stands
            for both of its entries); "<link>.pose.rx", ".ry", ".rz", ".x", ".y", ".z", rotations about and shifts along
            the link's own axes; "<joint>.axis[2]", "<joint>.point[0]", "gravity[1]"; "<joint>.damping[1]" and
            "<joint>.axes[0,2]" of a joint of several coordinates. The derivative to an axis is that to the vector
            before it is normalised. A "wrench" acts beside whatever acts on the link, in its frame. Of a loop
            "<loop>.pose_a" and "<loop>.pose_b", components as of a link's pose.
        redundancy : {"torque", "force"}, optional
            Of a mechanism with loops, as for `hybrid_dynamics`.

        Returns
        -------
        ParameterSensitivity
            With `dy_dp`, (n, k) or (N, n, k), and `components`, the names of its columns, beside `y`, `qdd` and `tau`;
            ``d["forearm.com"]`` are the columns of one parameter. Of a mechanism with loops also `multipliers`,
            `dmultipliers_dp`, `loop_wrenches` and `rank`; q and q̇ stay as they are, also where another geometry opens
            the loops there.

        Raises
        ------
        UnknownName
            With the nearest spelling.
        InvalidValue
            For what the dynamics does not depend on, and for a name that is given twice.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.acrobot(parameters="rods").with_drive(active=["elbow"])
        >>> d = mech.parameter_sensitivity([0.0, 0.0], [0.0, 0.0], [0.0, 0.0], ["forearm.mass", "elbow.damping"])
        >>> d.components, d.dy_dp.shape, d["forearm.mass"].round(3)
        (('forearm.mass', 'elbow.damping'), (2, 2), array([ 0.69 , -0.038]))
        """
        if self._self.loops:
            from cstormpy.loops.parameters import closed_parameter_sensitivity

            return closed_parameter_sensitivity(self._self, q, qd, u, parameters, wrench, base, threads, redundancy)
        from cstormpy.sensitivity.parameters import parameter_sensitivity

        self._refuse_redundancy(redundancy)
        return parameter_sensitivity(self._self, q, qd, u, parameters, wrench, base, threads)

    def _parameter_answer(self) -> Callable[..., ParameterSensitivity]:
        if self._self.loops:
            from cstormpy.loops.parameters import closed_parameter_sensitivity

            return closed_parameter_sensitivity
        from cstormpy.sensitivity.parameters import parameter_sensitivity

        return parameter_sensitivity

    def parameter_jvp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        direction: Mapping[str, ArrayLike],
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
    ) -> tuple[Array, Array]:
        """Return y and its derivative along a change of parameters, given by the names of `parameter_sensitivity`."""
        from cstormpy.sensitivity.parameters import parameter_jvp

        return parameter_jvp(self._self, q, qd, u, direction, wrench, base, threads, self._parameter_answer())

    def parameter_vjp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        gy: ArrayLike,
        parameters: Sequence[str] | str,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
    ) -> tuple[Array, Array]:
        """Return y and the gradient to parameters of gy · y, (k,) or (N, k): see `parameter_sensitivity`."""
        from cstormpy.sensitivity.parameters import parameter_vjp

        return parameter_vjp(self._self, q, qd, u, gy, parameters, wrench, base, threads, self._parameter_answer())

    def trim(
        self,
        guess: ArrayLike | None = None,
        tau: ArrayLike | Mapping[str, float] | None = None,
        hold: Iterable[str] = (),
        tolerance: float = 1e-9,
        wrench: WrenchLike = None,
    ) -> Equilibrium:
        """Return a posture near a guess in which the mechanism can stay at rest, and the motor torques that hold it.

        Joints without motor are in balance there. Which joints are active does not matter. Loops are closed, and carry
        loads; of more motors than freedoms, none of whose torques is given, the torques are the least.

        Parameters
        ----------
        guess : array_like, (n,), optional
            Where the search begins; zeros unless given. Of many equilibria one near to it is found.
        tau : float, array_like (n_a,), or mapping from joint names, optional
            Motor torques [N m or N] that are given; 0 for an equilibrium without any. Motors that are not mentioned,
            by default all, hold whatever comes.
        hold : iterable of str
            Joints that keep the position of the guess.
        tolerance : float
            The largest torque that may be left over in a joint [N m or N].
        wrench
            What acts on the links from outside, the same in each posture; see `Questions`.

        Returns
        -------
        Equilibrium
            The pair (q, tau), with `residual`, the torque that is left over.

        Raises
        ------
        InvalidValue
            If there is none near the guess, with what is left over in which joint.
        UnknownName, ShapeError, NonFinite, InvalidType
            Naming the argument.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> q, tau = library.acrobot().trim([1.5, 0.1], tau=0)
        >>> (q / np.pi).round(12) + 0, tau.round(12) + 0
        (array([0.5, 0. ]), array([0.]))

        With the elbow bent by a right angle:

        >>> q, tau = library.acrobot().trim([1.5, np.pi / 2], hold=["elbow"])
        >>> q.round(4), tau.round(4)
        (array([0.9828, 1.5708]), array([-8.1624]))
        """
        from cstormpy.sensitivity.linearisation import trim

        if self._self.loops:
            from cstormpy.loops.linearisation import closed_trim

            return closed_trim(self._self, guess, tau, hold, tolerance, wrench)
        return trim(self._self, guess, tau, hold, tolerance, wrench)

    def linearize(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        acc: ArrayLike | None = None,
        wrench: WrenchLike = None,
        independent: Iterable[str] | None = None,
    ) -> Linearization:
        """Return the exact linear model dx/dt = rate + A (x − x0) + B (v − v0) about a state x0 = (q, qd).

        Of a mechanism with loops, in a state that closes them, x holds independent joints and their rates, as many as
        there are freedoms, and `joints` says how all joints follow.

        Parameters
        ----------
        q, qd : array_like, (n,) or (N, n)
            Position and rate; at rest unless a rate is given.
        tau : array_like, (k,) or (N, k), optional
            Torques of the joints that are actuated and not active, in the order of q; zeros unless given.
        acc : array_like, (n_active,) or (N, n_active), optional
            Accelerations of the active joints; zeros unless given.
        wrench
            What acts on the links from outside; see `Questions`.
        independent : iterable of str, optional
            The joints whose coordinates x holds, of a mechanism with loops; unless given, those that determine the
            others best, motors before others.

        Returns
        -------
        Linearization
            With `A`, `B`, `rate`, and the names `states` and `inputs`; v is tau and then acc.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> model = library.pendulum().linearize([-np.pi / 2])
        >>> model.A.round(3) + 0, model.B.ravel().round(3), model.inputs
        (array([[  0.   ,   1.   ], [-14.715,   0.   ]]), array([0., 3.]), ('joint1 torque',))
        """
        from cstormpy.sensitivity.linearisation import linearize

        if self._self.loops:
            from cstormpy.loops.linearisation import closed_linearize

            return closed_linearize(self._self, q, qd, tau, acc, wrench, independent)
        if independent is not None:
            raise InvalidValue("independent: is of mechanisms with loops; this one has none, and all its joints are")
        return linearize(self._self, q, qd, tau, acc, wrench)

    def hybrid_jvp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        dq: ArrayLike,
        dqd: ArrayLike,
        du: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
    ) -> tuple[Array, Array]:
        """Return y and its derivative along (dq, dqd, du), without forming matrices; all (n,) or all (N, n)."""
        from cstormpy.sensitivity.directional import hybrid_jvp

        return hybrid_jvp(self._self, q, qd, u, dq, dqd, du, wrench, base, threads)

    def hybrid_vjp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        gy: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
    ) -> tuple[Array, Array, Array, Array]:
        """Return y and the gradients to q, q̇ and u of gy · y, without forming matrices; all (n,) or all (N, n)."""
        from cstormpy.sensitivity.directional import hybrid_vjp

        return hybrid_vjp(self._self, q, qd, u, gy, wrench, base, threads)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        redundancy: str | ArrayLike | None = None,
    ) -> Array:
        """Return the motor torques, (n,) or (N, n), of a motion of all joints, whatever the drive.

        Of a mechanism with loops: the torques of the actuated joints; where there are more of them than needed, the
        least ones, or with ``redundancy="force"`` those of the least multipliers. The array has `multipliers`,
        `loop_wrenches` and `rank`. A motion that the motors cannot make is refused.

        Examples
        --------
        Weights of the k actuated joints, (k,) or (k, k), take those of the least τᵀ W τ, as where a motor is weak:

        >>> from cstormpy.mechanism import library
        >>> mech = library.five_bar().with_drive(actuated=["left_shoulder", "left_elbow", "right_shoulder"])
        >>> q, qd = mech.project([2.0, -1.0, 1.1, 1.0])
        >>> mech.inverse_dynamics(q, qd, 0 * q).round(2) + 0
        array([-0.37,  1.41,  1.49,  0.  ])
        >>> mech.inverse_dynamics(q, qd, 0 * q, redundancy=[1.0, 100.0, 1.0]).round(2) + 0
        array([-2.16,  0.04,  2.34,  0.  ])
        """
        if self._self.loops:
            from cstormpy.loops.dynamics import closed_inverse

            return cast("Array", closed_inverse(self._self, q, qd, qdd, wrench, base, threads, redundancy))
        from cstormpy.dynamics.hybrid import hybrid_dynamics

        self._refuse_redundancy(redundancy)

        return hybrid_dynamics(self._self, q, qd, qdd, wrench, base, threads, drive="inverse", name="qdd")

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
    ) -> Array:
        """Return the accelerations, (n,) or (N, n), under motor torques in all joints, whatever the drive.

        Of a mechanism with loops the array has `multipliers`, `loop_wrenches` and `rank`.
        """
        if self._self.loops:
            from cstormpy.loops.dynamics import closed_forward

            return cast("Array", closed_forward(self._self, q, qd, tau, wrench, base, threads))
        from cstormpy.dynamics.hybrid import hybrid_dynamics

        return hybrid_dynamics(self._self, q, qd, tau, wrench, base, threads, drive="forward", name="tau")

    def inverse_sensitivity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        to_base: bool = False,
    ) -> HybridSensitivity:
        """Return `inverse_dynamics` (as y) and its derivatives to q, q̇ and q̈ (as dy_dq, dy_dqd, dy_du)."""
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        return hybrid_sensitivity(self._self, q, qd, qdd, wrench, base, threads, to_base, drive="inverse", name="qdd")

    def forward_sensitivity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        to_base: bool = False,
    ) -> HybridSensitivity:
        """Return `forward_dynamics` (as y) and its derivatives to q, q̇ and τ (as dy_dq, dy_dqd, dy_du)."""
        if self._self.loops and not to_base:
            from cstormpy.loops.sensitivity import closed_sensitivity

            return closed_sensitivity(self._self, q, qd, tau, wrench, base, threads, drive="forward", name="tau")
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        return hybrid_sensitivity(self._self, q, qd, tau, wrench, base, threads, to_base, drive="forward", name="tau")

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, base: BaseLike = None, threads: int | None = 1
    ) -> Array:
        """Return the inertial regressor Y, (n, 10 n_links) or (N, n, 10 n_links), of a motion of all joints.

        The inverse dynamics is linear in the inertial numbers π of the links: without armature, damping, friction,
        springs and wrenches it is Y π, with π = `inertial_numbers`. The ten columns of a link, in the order of
        `links`, belong to its mass m; its first moments m c (x, y, z); and its inertia I about the *origin of the
        link's frame* (xx, xy, xz, yy, yz, zz), all in the axes of that frame, where I = `inertia` + m (c·c 1 − c cᵀ).

        Parameters
        ----------
        q, qd, qdd : array_like, (n,) or (N, n)
            Position, rate and acceleration of every joint, whatever the drive.
        base, threads
            See `Questions`.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.planar_2r()
        >>> Y = mech.regressor([0.3, 1.2], [0.5, -1.0], [2.0, 0.1])
        >>> Y.shape
        (2, 20)
        >>> np.allclose(Y @ mech.inertial_numbers, mech.inverse_dynamics([0.3, 1.2], [0.5, -1.0], [2.0, 0.1]))
        True
        """
        from cstormpy.dynamics.regressor import regressor

        return regressor(self._self, q, qd, qdd, base, threads)

    @property
    def inertial_numbers(self) -> Array:
        """The inertial numbers π of all links, (10 n_links,), in the order of the columns of `regressor`."""
        from cstormpy.dynamics.regressor import inertial_numbers

        return inertial_numbers(self._self)

    def bias(
        self, q: ArrayLike, qd: ArrayLike, wrench: WrenchLike = None, base: BaseLike = None, threads: int | None = 1
    ) -> Array:
        """Return the torques, (n,) or (N, n), that keep all accelerations zero: everything but M q̈."""
        from cstormpy.graph.arrays import as_numbers

        return self._self.tree.inverse_dynamics(q, qd, np.zeros(as_numbers(q, "q").shape), wrench, base, threads)

    def gravity_load(self, q: ArrayLike, threads: int | None = 1) -> Array:
        """Return the torques, (n,) or (N, n), that gravity alone asks of the joints at rest (no springs)."""
        from cstormpy.dynamics.hybrid import gravity_load

        return gravity_load(self._self, q, threads)

    def inertial(
        self, q: ArrayLike, qd: ArrayLike | None = None, base: BaseLike = None, threads: int | None = 1
    ) -> Inertial:
        """Return mass matrix, momenta, centre of mass and energies, with their derivatives, in one go."""
        from cstormpy.dynamics.inertial import inertial

        return inertial(self._self.tree, q, qd, base, threads)

    def mass_matrix(self, q: ArrayLike, threads: int | None = 1) -> Array:
        """Return the mass matrix M, (n, n) or (N, n, n), armature included."""
        return self.inertial(q, threads=threads).mass_matrix

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, threads: int | None = 1) -> Array:
        """Return C, (n, n) or (N, n, n), with the Coriolis and centrifugal torques C q̇, and Ṁ - 2 C skew-symmetric.

        It is that of Christoffel's symbols of the mass matrix, C_ij = Σ_k Γ_ijk q̇_k with
        Γ_ijk = ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j - ∂M_jk/∂q_i): of all matrices with these torques the one by which passivity
        is shown. Of a mechanism with loops it is that of the open chain, as the mass matrix.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> (library.planar_2r().coriolis_matrix([0.3, np.pi / 2], [1.0, 2.0]).round(3) + 0).tolist()
        [[-0.312, -0.469], [0.156, 0.0]]
        """
        from cstormpy.sensitivity.coriolis import coriolis_matrix

        return coriolis_matrix(self._self.tree, q, qd, threads)

    def energy(
        self, q: ArrayLike, qd: ArrayLike, base: BaseLike = None, threads: int | None = 1
    ) -> tuple[Array, Array]:
        """Return kinetic and potential energy, () or (N,) each: gravity, springs and armature included.

        The potential of gravity is zero where the mass centre is at the origin of the base.
        """
        found = self.inertial(q, qd, base, threads)
        return found.kinetic, found.potential

    def momentum(self, q: ArrayLike, qd: ArrayLike, base: BaseLike = None, threads: int | None = 1) -> Array:
        """Return the momentum of all links, (6,) or (N, 6): (angular, linear), at and in the base's frame."""
        return self.inertial(q, qd, base, threads).momentum

    def center_of_mass(self, q: ArrayLike, threads: int | None = 1) -> Array:
        """Return the centre of mass of all links in the base's frame, (3,) or (N, 3)."""
        found = self.inertial(q, threads=threads)
        if not self._self.symbolic and not np.all(found.mass > 0.0):
            raise InvalidValue("center_of_mass: no link has mass, so that there is none")
        return found.center_of_mass

    def lock(self, q: ArrayLike, qd: ArrayLike, joints: Iterable[str]) -> tuple[Array, Array]:
        """Return the rates of all joints just after some were brought to rest at once, and the impulses that did it.

        The momenta (M q̇)ᵢ of the other joints stay as they are, loops stay closed, and energy is lost.

        Parameters
        ----------
        q, qd : array_like, (n,) or (N, n)
            Position and rate of every joint.
        joints : list of str
            Names of the joints that are locked.

        Returns
        -------
        qd, impulse : ndarray, (n,) or (N, n)
            Zero and not zero of the locked joints, in this order; the reverse of the others.

        Raises
        ------
        SingularInertia
            Where another joint moves no inertia.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> qd, impulse = library.acrobot(parameters="rods").lock([0.0, 0.0], [0.0, 1.0], ["elbow"])
        >>> qd.round(4) + 0, impulse.round(4)
        (array([0.3125, 0.    ]), array([ 0.    , -0.0729]))
        """
        from cstormpy.loops.locking import lock

        return lock(self._self, q, qd, joints)

    def forward_kinematics(self, q: ArrayLike, threads: int | None = 1) -> Array:
        """Return the poses of all links in the base's frame, (n_links, 4, 4) or (N, n_links, 4, 4)."""
        from cstormpy.dynamics.kinematics import forward_kinematics

        return forward_kinematics(self._self.tree, q, threads)

    def jacobian(self, q: ArrayLike, link: str | int, threads: int | None = 1) -> Array:
        """Return the body Jacobian of a link, (6, n) or (N, 6, n): its twist in its own frame is J q̇."""
        from cstormpy.dynamics.kinematics import jacobian

        return jacobian(self._self.tree, q, link, None, threads)[0]

    def jacobian_rate(self, q: ArrayLike, qd: ArrayLike, link: str | int, threads: int | None = 1) -> Array:
        """Return the rate dJ/dt of the body Jacobian of a link, (6, n) or (N, 6, n)."""
        from cstormpy.dynamics.kinematics import jacobian

        return jacobian(self._self.tree, q, link, qd, threads)[1]

    def jacobian_derivative(self, q: ArrayLike, link: str | int, threads: int | None = 1) -> Array:
        """Return ∂J/∂q of the body Jacobian of a link, (6, n, n) or (N, 6, n, n): the last index is that of q."""
        from cstormpy.dynamics.kinematics import jacobian_derivative

        return jacobian_derivative(self._self.tree, q, link, threads)

    def point_velocity(self, q: ArrayLike, qd: ArrayLike, link: str | int, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
        """Return the velocity of a point of a link, (3,) or (N, 3), in the axes of the base at rest [m/s].

        The point is given in the link's frame [m].
        """
        from cstormpy.dynamics.points import point_velocity

        return point_velocity(self._self.tree, q, qd, link, point)

    def point_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        link: str | int,
        point: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Array:
        """Return the acceleration of a point of a link, (3,) or (N, 3), in the axes of the base at rest [m/s²].

        The point is given in the link's frame [m]; gravity is no part of it.
        """
        from cstormpy.dynamics.points import point_acceleration

        return point_acceleration(self._self.tree, q, qd, qdd, link, point)

    def point_motion(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        link: str | int,
        point: ArrayLike = (0.0, 0.0, 0.0),
    ) -> PointMotion:
        """Return position, velocity and acceleration of a point of a link, and their derivatives, in the base's axes.

        Parameters
        ----------
        q, qd, qdd : array_like, (n,) or (N, n)
            Position, rate and acceleration of every joint.
        link : str or int
            Name or position of the link.
        point : array_like, (3,)
            The point in the link's frame [m].

        Returns
        -------
        PointMotion
            With `position`, `velocity` and `acceleration`, each (3,) or (N, 3), and `dp_dq`, `dv_dq`, `dv_dqd`,
            `da_dq`, `da_dqd` and `da_dqdd`, each (3, n) or (N, 3, n).

        Examples
        --------
        The tip of a pendulum of 1 m that swings at 2 rad/s falls inwards at 4 m/s²:

        >>> from cstormpy.mechanism import library
        >>> m = library.pendulum().point_motion([0.0], [2.0], [0.0], "link1", [1.0, 0.0, 0.0])
        >>> m.velocity + 0, m.acceleration + 0, m.da_dqd.ravel() + 0
        (array([0., 2., 0.]), array([-4.,  0.,  0.]), array([-4.,  0.,  0.]))
        """
        from cstormpy.dynamics.points import point_motion

        return point_motion(self._self.tree, q, qd, qdd, link, point)

    def inverse_kinematics(
        self,
        link: str | int,
        pose: ArrayLike,
        q0: ArrayLike | None = None,
        *,
        tool: ArrayLike | None = None,
        mask: str | Sequence[bool] = "pose",
        limits: bool = True,
        path: bool = False,
        starts: int = 64,
        rng: np.random.Generator | int | None = None,
        tolerance: float | tuple[float, float] = 1e-10,
        length: float | None = None,
        iterations: int = 100,
    ) -> InverseKinematics:
        """Return coordinates near q0 that bring a link, or a tool on it, to a pose.

        Damped least squares on the exact body Jacobian, from q0 and, where that fails, from random starts, all of them
        at once. Only the joints between the base and the link move.

        Parameters
        ----------
        link : str or int
            Name or position of the link.
        pose : array_like, (4, 4) or (N, 4, 4)
            The target, or N of them, in the base's frame.
        q0 : array_like, (n,) or (N, n), optional
            Where the search begins, for all targets or for each; zeros unless given. Joints that move the link are
            first brought inside of their limits; the others keep it. A path has one q0.
        tool : array_like, (3,) or (4, 4), optional
            What is to be at the target instead of the link's frame: a point, or the pose of a frame, in the link's.
        mask : {"pose", "position", "orientation", "planar"} or six bool
            Which directions count: rotation about and translation along x, y, z of the *target's* axes. "planar" is
            rotation about z and translation in x and y.
        limits : bool
            Whether the position limits of the joints and the largest angles of balls bind; if so, `q` never leaves
            them.
        path : bool
            Whether each target starts from the answer of the one before it; otherwise each is found for itself. With
            `starts=1` a path cannot jump to another branch.
        starts : int
            The most starts that are tried for a target, q0 included. Of several that are successful at the same time
            the one nearest to q0 is returned.
        rng : numpy.random.Generator or int, optional
            Draws the random starts: a generator or its seed; seed 0 unless given.
        tolerance : float or (float, float)
            For rotation [rad] and translation [m].
        length : float, optional
            How many metres count as much as a radian. Unless given, the way along the links' origins from the base to
            the frame.
        iterations : int
            The most steps of a start, and again of the way to the nearest pose of a target out of reach.

        Returns
        -------
        InverseKinematics
            With `q`, `reached`, `error`, `iterations`, `starts`, `at_limit` and `message`. A target that is not
            reached raises no error: `reached` is False, `q` is the nearest pose that was found, in the sense of
            rotation² + (translation / length)², and `message` says how near that is and what stopped it.

        Raises
        ------
        UnknownName, InvalidValue, ShapeError, NonFinite, InvalidType
            Naming the argument, and the row.

        Notes
        -----
        Of 500 poses of `library.arm7` at random coordinates within its limits, and of as many of `library.puma560`,
        at least 99.5 % are reached, from q0 = 0 and from random ones:
        ``pytest tests/test_inverse_kinematics.py -k success``.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.planar_2r()
        >>> target = mech.forward_kinematics([0.3, 1.2])[1]
        >>> found = mech.inverse_kinematics("forearm", target, q0=[0.0, 0.5])
        >>> found.reached, found.q.round(6)
        (True, array([0.3, 1.2]))

        The tip of the forearm at a point, elbow up:

        >>> target = np.eye(4)
        >>> target[:3, 3] = 0.6, 0.5, 0.0
        >>> found = mech.inverse_kinematics("forearm", target, [0.0, -1.0], tool=[0.5, 0.0, 0.0], mask="position")
        >>> found.q.round(4)
        array([ 1.3692, -1.349 ])
        """
        from cstormpy.dynamics.inverse_kinematics import inverse_kinematics

        return inverse_kinematics(
            self._self,
            link,
            pose,
            q0,
            tool=tool,
            mask=mask,
            limits=limits,
            path=path,
            starts=starts,
            rng=rng,
            tolerance=tolerance,
            length=length,
            iterations=iterations,
        )
