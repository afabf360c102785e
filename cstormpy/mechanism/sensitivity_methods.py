"""Exact derivatives of the dynamics of a mechanism, its linear models and equilibria, as its methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import flag, mapping
from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidValue
from cstormpy.mechanism.methods import ONE_THREAD, Methods, is_sample

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike
    from cstormpy.sensitivity import HybridSensitivity
    from cstormpy.sensitivity.linearisation import Equilibrium, Linearization
    from cstormpy.sensitivity.parameters import ParameterSensitivity


class SensitivityMethods(Methods):
    """The methods of `Mechanism` that differentiate its dynamics, and find where it stays at rest."""

    def hybrid_sensitivity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        to_base: bool = False,
        redundancy: str | ArrayLike | None = None,
    ) -> HybridSensitivity:
        """Return what `hybrid_dynamics` returns, and its exact derivatives to q, q̇ and u.

        Parameters
        ----------
        q, qd, u, wrench, base, threads, redundancy
            As for `hybrid_dynamics`.
        to_base : bool
            Also return `dy_dbase`, the derivative to the motion of the base.

        Returns
        -------
        HybridSensitivity
            With `dy_dq`, `dy_dqd`, `dy_du`, each (n, n) or (N, n, n), beside `y`, `qdd` and `tau`.

        Examples
        --------
        >>> import numpy as np
        >>> from cstormpy.mechanism import library
        >>> d = library.acrobot(parameters="rods").hybrid_sensitivity([np.pi / 2, 0.0], [0.0, 0.0], [0.0, 0.0])
        >>> d.dy_dq.round(3)
        array([[ 12.613, -12.613],
               [-16.817,  46.247]])
        """
        if wrench is None and base is None and to_base is False and threads is ONE_THREAD and redundancy is None:
            try:
                answer = self.memo["sensitivity"]
            except KeyError:
                answer = self._prepared_sensitivity(is_sample(u))
            return answer(q, qd, u)
        if self._self.loops:
            from cstormpy.loops.sensitivity import closed_sensitivity

            return closed_sensitivity(self._self, q, qd, u, wrench, base, threads, redundancy, flag(to_base, "to_base"))
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        self._refuse_redundancy(redundancy)
        return hybrid_sensitivity(self._self, q, qd, u, wrench, base, threads, to_base)

    def hybrid_sensitivity_evaluator(
        self, wrench: WrenchLike = None, base: bool = False
    ) -> Callable[..., tuple[Array, Array]]:
        """Return the prepared function f(q, qd, u) -> (y, D), D of shape (3, n, n): to q, to q̇, to u.

        `wrench`, see `Mechanism`, is the same at all calls; with ``base=True`` it is f(q, qd, u, base), as of
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
        if self._self.loops:
            from cstormpy.loops.sensitivity import closed_sensitivity, closed_sensitivity_evaluator

            return self._prepared("sensitivity", closed_sensitivity, closed_sensitivity_evaluator, for_sample)
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity, hybrid_sensitivity_evaluator

        return self._prepared("sensitivity", hybrid_sensitivity, hybrid_sensitivity_evaluator, for_sample)

    def inverse_sensitivity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        to_base: bool = False,
        redundancy: str | ArrayLike | None = None,
    ) -> HybridSensitivity:
        """Return `inverse_dynamics` (as y) and its derivatives to q, q̇ and q̈ (as dy_dq, dy_dqd, dy_du).

        Of a mechanism with loops these are of the torques as they continue beside the motions that keep it closed.
        """
        if self._self.loops:
            from cstormpy.loops.sensitivity import closed_inverse_sensitivity

            to_base = flag(to_base, "to_base")
            return closed_inverse_sensitivity(self._self, q, qd, qdd, wrench, base, threads, redundancy, to_base)
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        self._refuse_redundancy(redundancy)
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
        if self._self.loops:
            from cstormpy.loops.sensitivity import closed_sensitivity

            return closed_sensitivity(
                self._self, q, qd, tau, wrench, base, threads, to_base=flag(to_base, "to_base"), drive="forward",
                name="tau",
            )  # fmt: skip
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        return hybrid_sensitivity(self._self, q, qd, tau, wrench, base, threads, to_base, drive="forward", name="tau")

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
        """Return y and its derivative along (dq, dqd, du), without forming matrices; all (n,) or all (N, n).

        Of a mechanism with loops by its matrices.
        """
        if self._self.loops:
            from cstormpy.loops.directional import closed_jvp

            given = {"q": q, "qd": qd, "u": u, "dq": dq, "dqd": dqd, "du": du}
            return closed_jvp(self._self, given, wrench, base, threads)
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
        """Return y and the gradients to q, q̇ and u of gy · y, without forming matrices; all (n,) or all (N, n).

        Of a mechanism with loops by its matrices.
        """
        if self._self.loops:
            from cstormpy.loops.directional import closed_vjp

            return closed_vjp(self._self, {"q": q, "qd": qd, "u": u, "gy": gy}, wrench, base, threads)
        from cstormpy.sensitivity.directional import hybrid_vjp

        return hybrid_vjp(self._self, q, qd, u, gy, wrench, base, threads)

    def parameter_sensitivity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        u: ArrayLike,
        parameters: Sequence[str] | str,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        redundancy: str | ArrayLike | None = None,
    ) -> ParameterSensitivity:
        """Return what `hybrid_dynamics` returns, and its exact derivatives to numbers of the mechanism.

        Parameters
        ----------
        q, qd, u, wrench, base, threads, redundancy
            As for `hybrid_dynamics`.
        parameters : list of str
            Names as `with_parameters` has them, "gravity", and "<link>.wrench"; or components of these:
            "<link>.com[0]"; "<link>.inertia.xx", ".xy", ".xz", ".yy", ".yz", ".zz" (about the centre of mass; xy stands
            for both of its entries); "<link>.pose.rx", ".ry", ".rz", ".x", ".y", ".z", rotations about and shifts along
            the link's own axes; "<joint>.axis[2]", "<joint>.point[0]", "gravity[1]"; "<joint>.damping[1]" and
            "<joint>.axes[0,2]" of a joint of several coordinates. The derivative to an axis is that to the vector
            before it is normalised. A "wrench" acts beside whatever acts on the link, in its frame. Of a loop
            "<loop>.pose_a" and "<loop>.pose_b", components as of a link's pose.

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
        from cstormpy.linkage.components import find

        given = mapping(direction, "direction")
        found = find(self._self, given)
        rates = [real_array(given[name], name, () if len(own) == 1 else (len(own),)).ravel() for name, own in found]
        d = self.parameter_sensitivity(q, qd, u, list(given), wrench, base, threads)
        return d.y, d.dy_dp @ np.concatenate([np.zeros(0), *rates])

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
        from cstormpy.dynamics.checked_arguments import read_samples

        d = self.parameter_sensitivity(q, qd, u, parameters, wrench, base, threads)
        weights = read_samples(self._self.tree, {"q": q, "gy": gy}).rows["gy"].reshape(d.y.shape)
        return d.y, np.einsum("...i,...ik->...k", weights, d.dy_dp)

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
            The largest torque that may be left over in a joint [N m or N]; of a heavy mechanism more, as much as
            rounding leaves of its loads.
        wrench
            What acts on the links from outside, the same in each posture; see `Mechanism`.

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
        >>> import numpy as np
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
        there are freedoms, and `joints` says how all joints follow. Where constraints of rates leave more positions
        free than rates, as those of a wheel that rolls, x holds these positions.

        Parameters
        ----------
        q, qd : array_like, (n,) or (N, n)
            Position and rate; at rest unless a rate is given.
        tau : array_like, (k,) or (N, k), optional
            Torques of the joints that are actuated and not active, in the order of q; zeros unless given.
        acc : array_like, (n_active,) or (N, n_active), optional
            Accelerations of the active joints; zeros unless given.
        wrench
            What acts on the links from outside; see `Mechanism`.
        independent : iterable of str, optional
            The joints whose coordinates x holds, of a mechanism with loops; unless given, those that determine the
            others best, motors before others.

        Returns
        -------
        Linearization
            With `A`, `B`, `rate`, and the names `states` and `inputs`; v is tau and then acc.

        Examples
        --------
        >>> import numpy as np
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
