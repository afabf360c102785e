"""Inertial regressor of closed mechanisms: that of the open chain, shared as the loops share its torques.

The torques of the motors are linear in those of the open chain, τ = T τ_r, where T follows from the posture by
`loops.dynamics`, so that with τ_r = Y_r π they are T Y_r π.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import BaseLike
from cstormpy.dynamics.regressor import regressor
from cstormpy.loops.dynamics import closed_shares
from cstormpy.loops.redundancy import Redundancy

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


def closed_regressor(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    base: BaseLike = None,
    threads: int | None = 1,
    redundancy: Redundancy = None,
) -> Array:
    """Return Y (n, 10 n_links) or (N, n, 10 n_links); see `Mechanism.regressor`."""
    shares = closed_shares(mech, q, qd, qdd, base, redundancy)
    return shares @ regressor(mech.tree, q, qd, qdd, base, threads)
