"""Dependent constraints in states that are a little open: what their opening adds is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cstormpy.errors import InvalidValue
from cstormpy.loops.assembly import independent_rows
from cstormpy.loops.closure import Closure

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

OF_OPENING = 100.0
"""A singular value of dependent constraints that is no greater than this times their opening is its doing."""


def without_opening(mech: Linkage, found: Closure) -> Closure:
    """Return the constraints without what their opening adds where they are dependent.

    Dependent ones, as those of a spherical linkage, are so in closed states alone. In one that is a little open A has
    more singular values than in these, as small as the opening, of which a pseudoinverse makes forces that nothing
    asks for. What they stand for is left out.
    """
    try:
        rank = len(independent_rows(mech))
    except InvalidValue:  # no other posture is known
        return found
    if rank == found.m:
        return found
    U, sizes, _ = np.linalg.svd(found.A, full_matrices=False)
    opening = OF_OPENING * np.abs(found.residual()).max(axis=1, initial=0.0, keepdims=True)
    counts = sizes > opening * sizes[:, :1]
    counts[:, :rank] = True
    if counts.all() and counts.shape[1] == found.m:
        return found
    return replace(found, span=(U * counts[:, None]) @ np.swapaxes(U, -1, -2))
