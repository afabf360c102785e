"""What laws ask a mechanism at every evaluation, prepared so that an answer costs little more than its kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Array = NDArray[np.float64]
#: Positions in q: a slice where they follow one another, which is quicker.
Places = slice | NDArray[np.int64]

__all__ = ["Inertia", "Places", "inverse_evaluator", "places"]


def places(mask: NDArray[np.bool_]) -> Places:
    """Return where a mask is true, as a slice if the positions follow one another.

    >>> places(np.array([False, True, True]))
    slice(1, 3, None)
    """
    at = np.flatnonzero(mask)
    if len(at) and at[-1] - at[0] == len(at) - 1:
        return slice(int(at[0]), int(at[-1]) + 1)
    return at


def inverse_evaluator(mech: Mechanism) -> Callable[..., Array]:
    """Return f(q, qd, qdd) -> torques of all joints, whatever the drive of the mechanism."""
    return mech.with_drive(actuated=mech.names, active=mech.names).hybrid_evaluator()


class Inertia:
    """Mass matrix and energy of one sample, written over at the next question: for one thread.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> mech = library.acrobot()
    >>> inertia, q, qd = Inertia(mech), np.array([0.3, 0.2]), np.array([1.0, -2.0])
    >>> np.allclose(inertia.energy(q, qd), sum(mech.energy(q, qd)))
    True
    """

    def __init__(self, mech: Mechanism) -> None:
        from cstormpy.dynamics.running import scratch_size
        from cstormpy.kernels import entries_kinematics as entries
        from cstormpy.kernels.entries_mechanisms import energies
        from cstormpy.mechanism.tables import first_moment, tables_of

        n, tables = mech.n, tables_of(mech)
        self._kernel = entries.inertial_one.load()
        self._q, self._qd = np.zeros((1, n)), np.zeros((1, n))
        self._mass, self._bulk, self._energy = np.zeros((1, n, n)), np.zeros((1, 10)), np.zeros((1, 2))
        self._arguments = (
            tables.T, tables.N, np.zeros(scratch_size(mech, False)), self._q, self._qd, np.zeros((0, 0)),
            self._mass, np.zeros((1, 6, n)), self._bulk, self._energy, np.zeros((1, 3, n)), 0, 1,
        )  # fmt: skip
        self._energies, self._given = energies.load(), np.zeros(2 * n)
        self._asked = tables.T, tables.N, np.zeros(scratch_size(mech, False)), self._given
        # links that are fixed to the base, which the kernel does not see
        self._welded = -float(mech.gravity @ first_moment(tables.base_inertia))

    def energy(self, q: Array, qd: Array) -> float:
        """Return T + V [J], as `Mechanism.energy` does, by the very kernel that compiled diagrams call."""
        n = len(q)
        self._given[:n], self._given[n:] = q, qd
        kinetic, potential = self._energies(*self._asked)
        total: float = kinetic + (potential + self._welded)
        return total

    def mass_matrix(self, q: Array, qd: Array) -> Array:
        """Return M, (n, n); it is overwritten by the next question."""
        self._ask(q, qd)
        return self._mass[0]

    def _ask(self, q: Array, qd: Array) -> None:
        self._q[0] = q
        self._qd[0] = qd
        self._bulk[0] = 0.0  # the kernel adds to it; it writes the others
        self._kernel(*self._arguments)
