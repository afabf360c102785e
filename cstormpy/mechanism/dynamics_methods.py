"""Hybrid, inverse and forward dynamics, mass matrix, momentum and energy of a mechanism, as its methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import flag
from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.graph.arrays import as_numbers, zeros
from cstormpy.linkage.tables import STILL
from cstormpy.mechanism.methods import ONE_THREAD, Methods, is_sample

if TYPE_CHECKING:
    from cstormpy.dynamics import HybridDynamics, Inertial
    from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike


class DynamicsMethods(Methods):
    """The methods of `Mechanism` that answer for motions and forces; inertia and energy are those of the open chain."""

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
            See `Mechanism`.
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
        if wrench is None and base is None and threads is ONE_THREAD and redundancy is None:
            try:
                answer = self.memo["dynamics"]
            except KeyError:
                answer = self._prepared_hybrid(is_sample(u))
            return answer(q, qd, u)
        if self._self.loops:
            from cstormpy.loops.dynamics import closed_hybrid

            return closed_hybrid(self._self, q, qd, u, wrench, base, threads, redundancy)
        from cstormpy.dynamics.hybrid import hybrid_answer

        self._refuse_redundancy(redundancy)
        return hybrid_answer(self._self, q, qd, u, wrench, base, threads)

    def hybrid_evaluator(self, wrench: WrenchLike = None, base: bool = False) -> Callable[..., Array]:
        """Return the prepared function f(q, qd, u, out=None) -> y, for calling often with one sample.

        Contiguous float64 arrays (n,) are the fast way in; everything else is accepted as by `hybrid_dynamics`, but
        that the mask of a masked sample is not looked at. The answer is a fresh array, or `out`. `wrench` (see
        `Mechanism`) is the same at all calls. With ``base=True`` the function is f(q, qd, u, base, out=None), where
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
        if "dynamics evaluator" not in self.memo:
            self._prepared_hybrid()
        return cast("Callable[..., Array]", self.memo["dynamics evaluator"])

    def _prepared_hybrid(self, for_sample: bool = True) -> Callable[..., HybridDynamics]:
        if self._self.loops:
            from cstormpy.loops.dynamics import closed_evaluator, closed_hybrid

            return self._prepared("dynamics", closed_hybrid, closed_evaluator, for_sample)
        from cstormpy.dynamics.hybrid import hybrid_answer, hybrid_evaluator

        return self._prepared("dynamics", hybrid_answer, hybrid_evaluator, for_sample)

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

    def joint_wrenches(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        wrench: WrenchLike = None,
        base: BaseLike = None,
        threads: int | None = 1,
        redundancy: str | ArrayLike | None = None,
        multipliers: ArrayLike | None = None,
    ) -> Array:
        """Return the wrench that each link feels from its parent through its joint, (n_links, 6) or (N, n_links, 6).

        Rows are (moment, force) in the frame of the link, at its origin, in the order of `links`: reactions of bearings
        and guides, what a weld holds, and along the joint what moves it. With S = `joint.subspace(q)` of the link's
        joint, Sᵀ F is the torque of the motor less those of damping, friction, spring and armature. On the parent acts
        the opposite. A free body feels nothing but these.

        Of a mechanism with loops these are the joints of its tree; what the connections that close the loops carry is
        in `loop_wrenches`. Both follow from the multipliers: those that `inverse_dynamics` finds, or the given ones.
        What a `Coupling` or `Constraint` does is done in the joints, so that Sᵀ F has its part too. Where loops are
        over-constrained (see `mobility`) rigid bodies leave open how the joints share the load: the multipliers that
        are found are the least ones.

        Parameters
        ----------
        q, qd, qdd : array_like, (n,) or (N, n)
            Position, rate and acceleration of every joint, whatever the drive: of passive joints those that
            `hybrid_dynamics` or `forward_dynamics` finds.
        wrench, base, threads
            See `Mechanism`.
        redundancy
            See `inverse_dynamics`.
        multipliers : array_like, (m,) or (N, m), optional
            Of a mechanism with loops, where its torques are given: those that `hybrid_dynamics` or `forward_dynamics`
            found for them, beside the accelerations.

        Raises
        ------
        ShapeError, NonFinite, InvalidType
            Naming the argument, the joint and the row.
        InvalidValue
            For a motion that opens loops or that the motors cannot make.

        Examples
        --------
        The pin of a pendulum that passes its lowest point at 3 rad/s carries its weight and m l ω², along the rod:

        >>> from cstormpy.mechanism import library
        >>> mech = library.pendulum()
        >>> q, qd = [-np.pi / 2], [3.0]
        >>> mech.joint_wrenches(q, qd, mech.forward_dynamics(q, qd, [0.0])).round(3) + 0
        array([[  0.  ,   0.  ,   0.  , -14.31,   0.  ,   0.  ]])
        """
        if self._self.loops:
            from cstormpy.loops.joint_wrenches import closed_joint_wrenches

            return closed_joint_wrenches(self._self, q, qd, qdd, wrench, base, threads, redundancy, multipliers)
        from cstormpy.dynamics.joint_wrenches import joint_wrenches

        self._refuse_redundancy(redundancy)
        if multipliers is not None:
            raise InvalidValue("multipliers: are of mechanisms with loops; this one has none")
        return joint_wrenches(self._self, q, qd, qdd, wrench, base, threads)

    def bias(
        self, q: ArrayLike, qd: ArrayLike, wrench: WrenchLike = None, base: BaseLike = None, threads: int | None = 1
    ) -> Array:
        """Return the torques, (n,) or (N, n), that keep all accelerations zero: everything but M q̈."""
        return self._self.tree.inverse_dynamics(q, qd, np.zeros(as_numbers(q, "q").shape), wrench, base, threads)

    def gravity_load(self, q: ArrayLike, threads: int | None = 1) -> Array:
        """Return the torques, (n,) or (N, n), that gravity alone asks of the joints at rest (no springs)."""
        from cstormpy.dynamics.hybrid import hybrid_dynamics

        rest = np.zeros(as_numbers(q, "q").shape)
        return hybrid_dynamics(self._self.tree, q, rest, rest, threads=threads, drive="still")

    def regressor(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        base: BaseLike = None,
        threads: int | None = 1,
        redundancy: str | ArrayLike | None = None,
    ) -> Array:
        """Return the inertial regressor Y, (n, 10 n_links) or (N, n, 10 n_links), of a motion of all joints.

        The inverse dynamics is linear in the inertial numbers π of the links: without armature, damping, friction,
        springs and wrenches it is Y π, with π = `inertial_numbers`. The ten columns of a link, in the order of
        `links`, belong to its mass m; its first moments m c (x, y, z); and its inertia I about the *origin of the
        link's frame* (xx, xy, xz, yy, yz, zz), all in the axes of that frame, where I = `inertia` + m (c·c 1 − c cᵀ).

        Of a closed mechanism Y π are the torques of the motors that `inverse_dynamics` returns, with its `redundancy`;
        other joints have rows of zeros. That of its open chain, ``mech.without_loops().regressor``, has the forces of
        the loops in it: Y π = τ + Aᵀ λ with A = `closure_jacobian`, and Nᵀ Y π = Nᵀ τ where A N = 0.

        Parameters
        ----------
        q, qd, qdd : array_like, (n,) or (N, n)
            Position, rate and acceleration of every joint, whatever the drive.
        base, threads
            See `Mechanism`.
        redundancy
            See `inverse_dynamics`.

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
        if self._self.loops:
            from cstormpy.loops.regressor import closed_regressor

            return closed_regressor(self._self, q, qd, qdd, base, threads, redundancy)
        from cstormpy.dynamics.regressor import regressor

        self._refuse_redundancy(redundancy)
        return regressor(self._self, q, qd, qdd, base, threads)

    @property
    def inertial_numbers(self) -> Array:
        """The inertial numbers π of all links, (10 n_links,), in the order of the columns of `regressor`."""
        from cstormpy.dynamics.regressor import inertial_numbers

        return inertial_numbers(self._self)

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

        The torques are quadratic in the rates with symbols that are symmetric in j and k: so C is half of their
        derivative to the rates, which the inverse dynamics without damping and friction has.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> (library.planar_2r().coriolis_matrix([0.3, np.pi / 2], [1.0, 2.0]).round(3) + 0).tolist()
        [[-0.312, -0.469], [0.156, 0.0]]
        """
        from cstormpy.sensitivity.hybrid import hybrid_sensitivity

        rates = as_numbers(qd, "qd")
        rest = zeros(rates.shape, rates)
        found = hybrid_sensitivity(self._self.tree, q, rates, rest, threads=threads, drive=STILL, name="qdd")
        return 0.5 * found.dy_dqd

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
