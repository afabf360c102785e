"""Exact derivatives of the dynamics of a mechanism, as its methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import flag, mapping
from cstormpy.arrays import Array, real_array
from cstormpy.mechanism.methods import ONE_THREAD, Methods, is_sample

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike
    from cstormpy.sensitivity import HybridSensitivity
    from cstormpy.sensitivity.parameters import ParameterSensitivity


class SensitivityMethods(Methods):
    """The methods of `Mechanism` that differentiate its dynamics."""

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
        >>> import numpy as np
        >>> from cstormpy.mechanism import library
        >>> d = library.acrobot(parameters="rods").hybrid_sensitivity([np.pi / 2, 0.0], [0.0, 0.0], [0.0, 0.0])
        >>> d.dy_dq.round(3)
        array([[ 12.613, -12.613],
               [-16.817,  46.247]])
        """
        if wrench is None and base is None and to_base is False and threads is ONE_THREAD:
            try:
                answer = self.memo["sensitivity"]
            except KeyError:
                answer = self._prepared_sensitivity(is_sample(u))
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
