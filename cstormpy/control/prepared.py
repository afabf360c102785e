"""Prepared dynamics of a mechanism, which laws call at every evaluation: a call costs little more than its kernel.

Called with symbols of an expression graph, each calls the mechanism's method, which then writes the graph down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array, as_slice
from cstormpy.dynamics.tracing import LARGEST
from cstormpy.graph import Graph, Node
from cstormpy.graph.arrays import Symbols, is_symbolic, symbols
from cstormpy.graph.calls import caller
from cstormpy.graph.code_cache import machine_for
from cstormpy.graph.module import text_for_one
from cstormpy.graph.routine import Routine
from cstormpy.kernels import layout
from cstormpy.linkage.tables import folded, tables_of
from cstormpy.mechanism.symbolic import SymbolicMechanism

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

#: Positions in q: a slice where they follow one another, which is quicker.
Places = slice | NDArray[np.int64]


def places(mask: NDArray[np.bool_]) -> Places:
    """Return where a mask is true, as a slice if the positions follow one another.

    >>> places(np.array([False, True, True]))
    slice(1, 3, None)
    """
    return as_slice(np.flatnonzero(mask))


def placed(count: int, *parts: tuple[Places, Array]) -> Array:
    """Return an array of zeros with some values at their places.

    >>> placed(3, (slice(1, 3), np.array([5.0, 6.0]))).tolist()
    [0.0, 5.0, 6.0]
    """
    array: Any = symbols([0.0] * count) if any(is_symbolic(values) for _, values in parts) else np.zeros(count)
    for at, values in parts:
        array[at] = values
    return array


class HybridDynamics:
    """y = f(q, q̇, u) with some joints active; see `Mechanism.hybrid_dynamics`.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> ask = HybridDynamics(library.acrobot(), ("elbow",))
    >>> ask(np.array([-1.5, 0.0]), np.zeros(2), np.array([0.0, 50.0])).round(3).tolist()
    [-25.356, 8.115]
    """

    def __init__(self, mech: Mechanism, active: tuple[str, ...]) -> None:
        self.mech, self.active = mech, active
        self._evaluate: Callable[..., Array] = mech.with_drive(active=active).hybrid_evaluator()

    def __call__(self, q: Array, qd: Array, u: Array) -> Array:
        """Return y, (n,)."""
        if isinstance(q, Symbols):
            return self.mech.with_drive(active=self.active).hybrid_dynamics(q, qd, u).y
        return self._evaluate(q, qd, u)


class InverseDynamics:
    """Torques of all joints, whatever the drive of the mechanism; see `Mechanism.inverse_dynamics`."""

    def __init__(self, mech: Mechanism) -> None:
        self.mech = mech
        self._evaluate: Callable[..., Array] = (
            mech.inverse_dynamics
            if mech.loops
            else mech.with_drive(actuated=mech.names, active=mech.names).hybrid_evaluator()
        )

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Return the torques, (n,)."""
        if isinstance(q, Symbols):
            return self.mech.inverse_dynamics(q, qd, qdd)
        return self._evaluate(q, qd, qdd)


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
        self.mech = mech
        line = inertia_line(mech)
        if line is not None:
            self._energy, self._mass_matrix = _evaluators_by(line, mech.n)
        else:
            self._energy, self._mass_matrix = _energy_evaluator(mech), _mass_evaluator(mech)

    def energy(self, q: Array, qd: Array) -> float:
        """Return T + V [J], as `Mechanism.energy` does."""
        if isinstance(q, Symbols):
            kinetic, potential = self.mech.energy(q, qd)
            return kinetic + potential  # type: ignore[return-value]  # symbols
        return self._energy(q, qd)

    def mass_matrix(self, q: Array, qd: Array) -> Array:
        """Return M, (n, n); it is overwritten by the next question."""
        return self.mech.mass_matrix(q) if isinstance(q, Symbols) else self._mass_matrix(q, qd)


def _evaluators_by(line: Callable[..., int], n: int) -> tuple[Callable[..., float], Callable[..., Array]]:
    """Return what gives energy and mass matrix by straight-line code."""
    total, mass, rest = np.zeros(1), np.zeros((n, n)), np.zeros(n)

    def ask(q: Array, qd: Array) -> None:
        if line(q, qd, total, mass) != 0:  # lists, and arrays that are parts of others
            line(*(np.array(np.broadcast_to(v, (n,)), dtype=float) for v in (q, qd)), total, mass)

    def energy(q: Array, qd: Array) -> float:
        ask(q, qd)
        return float(total[0])

    def mass_matrix(q: Array, qd: Array) -> Array:
        ask(q, rest)
        return mass

    return energy, mass_matrix


def _energy_evaluator(mech: Mechanism) -> Callable[[Array, Array], float]:
    from cstormpy.dynamics.batches import scratch_size
    from cstormpy.kernels.entries_mechanisms import energies
    from cstormpy.linkage.tables import first_moment, tables_of

    n, tables = mech.n, tables_of(mech)
    kernel, given, scratch = energies.load(), np.zeros(2 * n), np.zeros(scratch_size(mech, False))
    # links that are fixed to the base, which the kernel does not see
    welded = -float(mech.gravity @ first_moment(tables.base_inertia))

    def energy(q: Array, qd: Array) -> float:
        given[:n], given[n:] = q, qd
        kinetic, potential = kernel(tables.T, tables.N, scratch, given)
        return kinetic + (potential + welded)

    return energy


def _mass_evaluator(mech: Mechanism) -> Callable[[Array, Array], Array]:
    from cstormpy.dynamics.batches import scratch_size
    from cstormpy.kernels import entries_kinematics as entries
    from cstormpy.linkage.tables import tables_of

    n, tables = mech.n, tables_of(mech)
    kernel, rows, rates = entries.inertial_one.load(), np.zeros((1, n)), np.zeros((1, n))
    mass, bulk = np.zeros((1, n, n)), np.zeros((1, 10))
    arguments = (
        tables.T, tables.N, np.zeros(scratch_size(mech, False)), rows, rates, np.zeros((0, 0)),
        mass, np.zeros((1, 6, n)), bulk, np.zeros((1, 2)), np.zeros((1, 3, n)), 0, 1,
    )  # fmt: skip

    def mass_matrix(q: Array, qd: Array) -> Array:
        rows[0], rates[0] = q, qd
        bulk[0] = 0.0  # the kernel adds to it; it writes the others
        kernel(*arguments)
        return mass[0]

    return mass_matrix


_NAME = "inertia"
_GIVEN = ("q", "qd")


def inertia_line(mech: Mechanism) -> Callable[..., int] | None:
    """Return the function of (q, q̇, energy (1,), mass matrix (n, n)) that fills the last two; None of a large one.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> mech, energy, mass = library.acrobot(), np.zeros(1), np.zeros((2, 2))
    >>> inertia_line(mech)(np.array([0.3, 0.2]), np.array([1.0, -2.0]), energy, mass)
    0
    >>> np.allclose(mass, mech.mass_matrix([0.3, 0.2]))
    True
    """
    tables, key = tables_of(mech), (_NAME, "line")
    if not 0 < int(tables.N[layout.N_COUNT]) <= LARGEST["diagram", False]:
        return None
    found: Callable[..., int] | None = mech.memo.get(key)
    if found is None:
        structure = [tables.N.tobytes(), folded(tables.T).tobytes(), folded(tables.base_inertia).tobytes()]
        shapes = {"q": (mech.n,), "qd": (mech.n,), "energy": (1,), "mass": (mech.n, mech.n)}
        machine = machine_for(_NAME, b"".join(structure), lambda: text_for_one(_routine(mech), shapes))
        numbers = [tables.T, np.ascontiguousarray(tables.base_inertia).ravel()]
        found = mech.memo[key] = caller(machine, _NAME, numbers, list(shapes.values()))
    return found


def _routine(mech: Mechanism) -> Routine:
    """Return the routine, whose further inputs are the numbers of the mechanism."""
    graph, tables = Graph(), tables_of(mech)

    def number(table: str, index: int) -> Node:
        return graph.input(table, index, ordinary=True)

    symbolic = SymbolicMechanism(mech, number, lambda: mech.links)
    q, qd = (symbols(graph.inputs(name, mech.n)) for name in _GIVEN)
    kinetic, potential = symbolic.energy(q, qd)
    mass = symbols(symbolic.mass_matrix(q)).ravel().tolist()
    sizes = {"T": tables.T.size, "base_inertia": tables.base_inertia.size}
    given = dict.fromkeys(_GIVEN, mech.n)
    return Routine(_NAME, sizes, given, {"energy": [kinetic + potential], "mass": mass}, 0.0)
