"""Energy and mass matrix of a mechanism for one sample as straight-line code, which is there without numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cstormpy.dynamics.tracing import LARGEST
from cstormpy.graph import Graph, Node
from cstormpy.graph.arrays import symbols
from cstormpy.graph.calls import caller
from cstormpy.graph.code_cache import machine_for
from cstormpy.graph.module import text_for_one
from cstormpy.graph.routine import Routine
from cstormpy.kernels import layout
from cstormpy.linkage.tables import folded, tables_of
from cstormpy.mechanism.symbolic import SymbolicMechanism

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

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
