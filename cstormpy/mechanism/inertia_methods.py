"""Mass matrix, momentum and energy of a mechanism, as its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.graph.arrays import as_numbers, zeros
from cstormpy.linkage.tables import STILL
from cstormpy.mechanism.methods import Methods

if TYPE_CHECKING:
    from cstormpy.dynamics import Inertial
    from cstormpy.dynamics.checked_arguments import BaseLike


class InertiaMethods(Methods):
    """The methods of `Mechanism` about what its masses do; of a mechanism with loops they are those of its tree."""

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
