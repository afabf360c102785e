"""Derivatives of the rates behind an impulsive locking of joints.

The momenta M q̇ of the joints f that are not locked stay as they are, and q̇⁺ of the others is zero. So, along a change
of position and rates,

    M_ff δq̇⁺_f = (M δq̇ + ∂(M (q̇ - q̇⁺))/∂q δq + ∂(M (q̇ - q̇⁺))/∂p δp)_f

where M v is the inverse dynamics of the accelerations v without rates, less that of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cstormpy.linkage.components import Component
from cstormpy.linkage.tables import STILL
from cstormpy.sensitivity.hybrid import hybrid_sensitivity
from cstormpy.sensitivity.parameters import torque_rates

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Array = NDArray[np.float64]

__all__ = ["locked_tangents"]


def locked_tangents(
    mech: Linkage,
    q: Array,
    before: Array,
    after: Array,
    where: NDArray[np.bool_],
    tangents: Array,
    parts: Sequence[Component] = (),
) -> Array:
    """Return derivatives (2n, k) of the state behind the locking from those before; loops are taken as open.

    Parameters
    ----------
    mech : Linkage
    q, before, after : ndarray, (n,)
        Position, and rates before and behind the locking.
    where : ndarray of bool, (n,)
        The coordinates that are locked.
    tangents : ndarray, (2n, k)
        Derivatives of position and rates before.
    parts : sequence of Component
        The numbers of the mechanism to which the last of these are derivatives.
    """
    n, free = mech.n, ~where
    rows = np.stack([q, q]), np.zeros((2, n)), np.stack([before - after, np.zeros(n)])
    d = hybrid_sensitivity(mech, *rows, drive=STILL, name="qdd")
    M = d.dy_du[0]
    momenta = M @ tangents[n:] + (d.dy_dq[0] - d.dy_dq[1]) @ tangents[:n]
    if parts:
        r = torque_rates(mech, parts, *rows)
        momenta[:, -len(parts) :] += r[0] - r[1]
    found = np.array(tangents, dtype=float)
    found[n:][where] = 0.0
    found[n:][free] = np.linalg.solve(M[np.ix_(free, free)], momenta[free])
    return found
