"""Coriolis matrix of a mechanism, consistent with the symbols of Christoffel.

The Coriolis and centrifugal torques are quadratic in the rates, c_i = Σ_jk Γ_ijk q̇_j q̇_k, with the symbols of
Christoffel of the mass matrix, which are symmetric in j and k; so ∂c_i/∂q̇_j = 2 Σ_k Γ_ijk q̇_k = 2 C_ij. The derivative
of the inverse dynamics to the rates, without damping and friction, is exact and recursive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.graph.arrays import as_numbers, zeros
from cstormpy.linkage.tables import STILL
from cstormpy.sensitivity.hybrid import hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

__all__ = ["coriolis_matrix"]


def coriolis_matrix(mech: Linkage, q: ArrayLike, qd: ArrayLike, threads: int | None = 1) -> Array:
    """Return C of one sample or of a batch; see `Mechanism.coriolis_matrix`."""
    rates = as_numbers(qd, "qd")
    rest = zeros(rates.shape, rates)
    return 0.5 * hybrid_sensitivity(mech, q, rates, rest, threads=threads, drive=STILL, name="qdd").dy_dqd
