"""Calls of the kernels with loops from an expression graph: what stands there for a mechanism too large to be traced.

A call finds all numbers of an answer; whoever writes the routine down gives it room (`graph.external.CallTable`). The
derivatives of the hybrid dynamics and of energies are exact but for those to numbers of the mechanism; these, and those
of sensitivities, of the mass matrix and of poses, are differences.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph import Graph, Node
from cstormpy.graph.external import Along, CallTable, external
from cstormpy.graph.nodes import CONSTANTS, INPUT, TABLE
from cstormpy.graph.python_calls import Differences
from cstormpy.kernels import layout as at

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import Samples
    from cstormpy.dynamics.tracing import Signature
    from cstormpy.linkage.tables import Tables

Number = Any  # a node or a float
#: Inertial numbers of a link.
_TEN = 10


def answer(tables: Tables, signature: Signature, samples: Samples, outputs: tuple[Any, ...]) -> bool:
    """Fill outputs with what one sample of symbols gives; False where no kernel can be called for that."""
    given = [x for row in samples.rows.values() for x in row[0]]
    given += list(samples.wrench[0]) if len(samples.wrench) else []
    call = _Call.of(tables, given)
    if call is None or signature.moving_base or signature.to_base or signature.answers != "found":
        return False
    n = int(tables.N[at.N_COUNT])
    call.loads = signature.loads
    if signature.sensitivities:
        found = call.differenced("sensitivity_called", given, n + 3 * n * n, "the sensitivities of a large mechanism")
        outputs[1][0] = np.array(found[n:], dtype=object).reshape(3, n, n)
    else:
        found = call.motion(given, n)
    outputs[0][0] = np.array(found[:n], dtype=object)
    return True


def run(kernel: str, tables: Tables, arguments: tuple[Any, ...]) -> bool:
    """Fill the arrays among the arguments of a kernel of rows, see `tracing.run_on_symbols`; False where it cannot."""
    n, links = int(tables.N[at.N_COUNT]), int(tables.N[at.N_LINKS])
    rows = [a[0] for a in arguments if isinstance(a, np.ndarray) and len(a)]
    brought = {"pose_lanes": 1, "regressor_lanes": 3}.get(kernel, 2)
    given = [x for row in rows[:brought] for x in row]
    call = _Call.of(tables, given)
    if call is None:
        return False
    if kernel == "pose_lanes":
        found = call.differenced("poses_called", given, 16 * links, "the poses of a large mechanism")
        filled = rows[1:]
    elif kernel == "jacobian_lanes":
        call.link = int(arguments[2])
        found = call.differenced("jacobian_called", given, 12 * n, "the Jacobian of a large mechanism")
        filled = rows[2:]
    elif kernel == "regressor_lanes" and not len(arguments[3]):
        by_link = [call.regressor(given, n, link) for link in range(links)]
        found, filled = [x for row in zip(*by_link, strict=True) for ten in row for x in ten], [arguments[4]]
    elif kernel in ("inertial_one", "inertial_lanes") and not len(arguments[2]):
        found, filled = call.inertial(given, n), rows[2:]
    else:
        return False
    first = 0
    for out in filled:
        out[...] = np.array(found[first : first + out.size], dtype=object).reshape(out.shape)
        first += out.size
    return True


class _Call:
    """A call of a kernel that is written down.

    Attributes
    ----------
    loads : int
        How many numbers of loads it is given for each link.
    link : int
        The link that it is asked for.
    """

    loads = link = 0

    def __init__(self, tables: Tables, graph: Graph, call_table: CallTable, table: Node) -> None:
        self._tables, self._graph, self._call_table, self._table = tables, graph, call_table, table
        self._failure = call_table.failure

    @classmethod
    def of(cls, tables: Tables, given: Sequence[Number]) -> _Call | None:
        """Return one for a mechanism, or None where it cannot be called."""
        graph = next((x.graph for x in (*given, *tables.T.tolist()) if isinstance(x, Node)), None)
        table = None if graph is None or graph.call_table is None else _table(graph, tables.T.tolist())
        return None if graph is None or table is None else cls(tables, graph, graph.call_table, table)

    def motion(self, given: Sequence[Number], n: int) -> list[Node]:
        """Return y, whose derivatives are exact but for those to numbers of the mechanism."""
        links = int(self._tables.N[at.N_LINKS])
        room = at.forms_numbers(n, links) + self._tables.T.size
        place, before = self._function("motion_along_called", True), self._before(room)

        def along(args: Sequence[Number], rates: Sequence[Number]) -> list[Node]:
            still = (0.0,) * self._tables.T.size
            rate = rates[0] if isinstance(rates[0], Node) else self._graph.make(CONSTANTS, (), still)
            places = [*before, args[0], rate]
            return external(self._graph, place, self._failure, [*args[1:], *rates[1:]], n, before=places)

        return self._made("motion_called", given, n, at.dynamics_numbers(n, links), along)

    def inertial(self, given: Sequence[Number], n: int) -> list[Node]:
        """Return mass matrix, momenta, bulk, energies and their gradients; the derivatives of energies are exact."""
        first = n * n + 6 * n + 10
        found: list[Node] = []

        def along(differences: Along, args: Sequence[Number], rates: Sequence[Number]) -> list[Number]:
            changes = list(differences(args, rates))
            energy, dq, dqd = external_parts(args), rates[1 : n + 1], rates[n + 1 :]
            to_q, to_qd, potential = (energy[first + 2 + k * n : first + 2 + (k + 1) * n] for k in range(3))
            # of numbers of the mechanism they are differences: 0 where these stay
            moved: Sequence[Number] = [0.0] * len(changes)
            if isinstance(rates[0], Node):
                moved = differences(args, [rates[0], *[0.0] * (2 * n)])
            changes[first] = moved[first] + _dot(to_q, dq) + _dot(to_qd, dqd)
            changes[first + 1] = moved[first + 1] + _dot(potential, dq)
            return changes

        def external_parts(args: Sequence[Number]) -> list[Node]:
            return self._made("inertial_called", args[1:], first + 2 + 3 * n, room, lambda *_: [], args[0])

        links = int(self._tables.N[at.N_LINKS])
        room = at.forms_numbers(n, links)
        found = self.differenced(
            "inertial_called", given, first + 2 + 3 * n, "the mass matrix of a large mechanism",
            range(first, first + 2), along,
        )  # fmt: skip
        return found

    def regressor(self, given: Sequence[Number], n: int, link: int) -> list[list[Node]]:
        """Return the ten columns of a link in the inertial regressor, row by row."""
        self.link = link
        found = self.differenced("regressor_called", given, _TEN * n, "the regressor of a large mechanism")
        return [found[_TEN * k : _TEN * (k + 1)] for k in range(n)]

    def differenced(
        self,
        kernel: str,
        given: Sequence[Number],
        count: int,
        what: str,
        exact: range = range(0),
        along: Callable[..., Sequence[Number]] | None = None,
    ) -> list[Node]:
        """Return what a kernel finds, whose derivatives are differences, but for some of the numbers."""
        n, links = int(self._tables.N[at.N_COUNT]), int(self._tables.N[at.N_LINKS])
        room = at.forms_numbers(n, links) + (at.matrix_numbers(n) if kernel == "sensitivity_called" else 0)
        function = _function(kernel)
        head = self._head(room)

        def ask(t: float, values: list[Any]) -> list[Any]:
            return [_evaluated(function, head, room, values[0], values[1], count)]

        samples = [np.zeros(self._tables.T.size), np.zeros(len(given))]
        differences = Differences(self._call_table, ask, samples, [np.zeros(count)])

        def change(args: Sequence[Number], rates: Sequence[Number]) -> Sequence[Number]:
            size = self._tables.T.size
            values = [*_numbers(args[0]), *args[1:]]
            moves = [*(_numbers(rates[0]) if isinstance(rates[0], Node) else [0.0] * size), *rates[1:]]
            return differences.nodes(self._graph, self._failure, [0.0, *values], [0.0, *moves])

        made = self._made(kernel, given, count, room, change if along is None else partial(along, change))
        self._call_table.differenced(made[0].args[0], what, exact)
        return made

    def _made(
        self, kernel: str, given: Sequence[Number], count: int, room: int, along: Along, table: Node | None = None
    ) -> list[Node]:
        places = [*self._before(room), self._table if table is None else table]
        return external(self._graph, self._function(kernel), self._failure, given, count, along, places)

    def _function(self, kernel: str, changes: bool = False) -> int:
        return self._call_table.function(_function(kernel), changes)

    def _before(self, room: int) -> list[Any]:
        return [("n", self._call_table.integers(self._head(room))), ("w", self._call_table.scratch(room))]

    def _head(self, room: int) -> NDArray[np.int64]:
        tables = self._tables
        return np.array([tables.N.size, tables.T.size, room, self.loads, self.link, *tables.N], dtype=np.int64)


def _function(kernel: str) -> Any:
    from cstormpy.kernels import entries_called

    return getattr(entries_called, kernel)


def _table(graph: Graph, T: Sequence[Number]) -> Node | None:
    """Return the table that holds the numbers of a mechanism; None where they do not stand side by side.

    Numbers that are folded stand there as well.
    """
    first = next((k for k, x in enumerate(T) if isinstance(x, Node)), None)
    if first is None:
        return graph.make(CONSTANTS, (), tuple(map(float, T)))
    begin = T[first]
    if begin.primitive is not INPUT or first != at.T_GRAVITY:  # gravity never folds, but may be given
        return None
    name, place, _ = begin.data
    for k, x in enumerate(T):
        if (isinstance(x, Node) or k < at.T_GRAVITY + 3) and not _is_input(x, name, place + k):
            return None
    return graph.make(TABLE, (), (name, place, len(T)))


def _is_input(x: Number, name: str, place: int) -> bool:
    return isinstance(x, Node) and x.primitive is INPUT and x.data[:2] == (name, place)


def _numbers(table: Node) -> list[Number]:
    """Return the numbers of a table."""
    if table.primitive is CONSTANTS:
        return list(table.data)
    name, first, count = table.data
    return [table.graph.input(name, first + k) for k in range(count)]


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def _evaluated(function: Any, head: NDArray[np.int64], room: int, T: Any, given: Any, count: int) -> Array:
    """Return what a kernel finds, called from Python."""
    W, found = np.zeros(room), np.zeros(count)
    T, given = (np.ascontiguousarray(a, dtype=float) for a in (T, given))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5)(function.address())
    if call(*(a.ctypes.data for a in (head, W, T, given, found))):
        raise ArithmeticError("the kernel has no answer there")
    return found
