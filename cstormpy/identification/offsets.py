"""Offsets of logged torques, constant or linear in time, as further unknowns of the least squares.

With O their columns, the equations O c + W π = y are solved for π by what is left of W and y beside O (R. Frisch and
F. V. Waugh, Partial time regressions as compared with individual trends, Econometrica 1(4), 1933, 387-401).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cstormpy.arrays import Array
from cstormpy.identification.equations import told

if TYPE_CHECKING:
    from cstormpy.identification.log import Log
    from cstormpy.mechanism import Mechanism

#: How many columns each motor has in each log.
KINDS = {"none": 0, "constant": 1, "linear": 2}
#: A singular value of the columns below this part of the greatest is zero.
_RANK = 1e-9


def offset_columns(mech: Mechanism, log: Log, kind: str) -> Array:
    """Return the torques (N, n, m) of unit offsets, of each log for itself, each motor and each power of time."""
    logs = np.unique([log.names[run] for run in log.run], return_inverse=True)[1]
    motors = np.flatnonzero(mech.actuated_mask)
    columns = np.zeros((len(log.t), mech.n, (logs.max() + 1) * len(motors) * KINDS[kind]))
    k = 0
    for number in range(logs.max() + 1):
        rows = np.flatnonzero(logs == number)
        for power in range(KINDS[kind]):
            t = log.t[rows]
            unit = ((t - t.mean()) / max(float(np.ptp(t)), 1e-300)) ** power
            for j in motors:
                columns[rows, j, k] = unit
                k += 1
    return columns


@dataclass(frozen=True)
class Eliminated:
    """Weighed equations, (N, f, P + 1), of the regressor and of what it is to be, with those of offsets taken out.

    Attributes
    ----------
    equations : ndarray, (N, f, P + 1)
    basis : ndarray, (N, f, k)
        Orthonormal, of what offsets do.
    by_parts : ndarray, (m, P + 1)
        The offsets that meet each column best.
    """

    equations: Array
    basis: Array
    by_parts: Array

    @classmethod
    def of(cls, weighed: Array, count: int) -> Eliminated:
        """Return those of equations (N, f, m + P + 1), of which the first `count`, m, are of offsets."""
        rows = weighed.reshape(-1, weighed.shape[2])
        left, values, ways = told(rows[:, :count], _RANK)
        seen = left.T @ rows[:, count:]
        rest = rows[:, count:] - left @ seen
        shape = weighed.shape[:2]
        return cls(rest.reshape(*shape, -1), left.reshape(*shape, -1), ways.T @ (seen / values[:, None]))

    def amounts(self, parts: Array) -> Array:
        """Return the offsets (m,) beside unknowns (P,)."""
        return np.asarray(self.by_parts[:, -1] - self.by_parts[:, :-1] @ parts)
