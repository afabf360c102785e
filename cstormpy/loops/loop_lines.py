"""Straight lines that take the numbers of loops as well, and that of the loops' chains: their poses and columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.dynamics.lines import BUILDING, Line, key_of, shared
from cstormpy.dynamics.tracing import Signature, of_any_size, operations_of
from cstormpy.graph import Graph
from cstormpy.graph.arrays import symbols
from cstormpy.graph.code_cache import is_kept
from cstormpy.graph.emission import LANES
from cstormpy.graph.nodes import Node, where
from cstormpy.graph.primitives import OR, UNEQUAL, apply
from cstormpy.graph.routine import Routine
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.tables import folded, loop_numbers, tables_of
from cstormpy.loops.chains import Chain, ChainAt, chain_of, chains_at, charts_of

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

#: Building that takes no longer [s] does not wait until it pays, for whoever prepares a function.
_SHORT = 1.0


class LoopLine(Line):
    """A straight line of a mechanism with loops, whose numbers stand behind those of its tree.

    Lines are built where they pay or are on disk already, as those of trees; what they stand beside here is arithmetic
    with arrays, which takes up to a thousand times as long as they do.
    """

    given: tuple[str, ...]
    """Names of what is given of a sample, (n,) each."""

    def __init__(self, mech: Linkage, drive: str, signature: Signature, name: str) -> None:
        super().__init__(tables_of(mech.tree, drive), signature)
        self.name, self._mech, self._T = name, mech, numbers_of(mech)

    def _is_large(self, kind: str) -> bool:
        return False

    def _pays(self, kind: str, eager: bool) -> bool:
        cost = BUILDING * self._operations
        if (eager and cost <= _SHORT) or self._asked[kind] * self._seconds(kind) >= cost:
            return True
        if self._asked[kind] < 2 * self._looked[kind]:
            return False
        self._looked[kind] = self._asked[kind]
        return is_kept(self._file(kind), self._key)

    def _seconds(self, kind: str) -> float:
        """Return about how long a sample takes by numbers, one by one and in rows."""
        raise NotImplementedError

    def _traced(self, kind: str) -> Routine:
        if self._routine is None:
            graph, of = Graph(), self._mech
            size = tables_of(of.tree).T.size

            def number(name: str, k: int) -> Node:
                behind = name == "loops"
                return graph.input("T" if behind else name, k + size * behind, ordinary=True)

            mech = of.of_symbols(number, lambda: of.links)
            given = [symbols(graph.inputs(name, self._n)) for name in self.given]
            with of_any_size():
                found = self._outputs(mech, given)
            bad: Any = False
            for item in graph.required:
                bad = apply(OR, bad, item if getattr(item.primitive, "truth", False) else apply(UNEQUAL, item, 0.0))
            sizes = dict.fromkeys(self.given, self._n)
            status = where(bad, 1.0, 0.0)
            outputs = {name: list(np.ravel(np.asarray(x, dtype=object))) for name, x in found.items()}
            self._routine = Routine(self.name, {"T": len(self._T)}, sizes, outputs, status, watchful=True)
        return self._routine

    def _outputs(self, mech: Any, given: list[Any]) -> dict[str, Any]:
        """Return what is written down of a mechanism of symbols, by the names of the arrays."""
        raise NotImplementedError


def numbers_of(mech: Linkage) -> Array:
    """Return the numbers that a line takes: those of the tree, and behind them those of the loops; kept."""
    made: Array | None = mech.memo.get("numbers of closed lines")
    if made is None:
        made = mech.memo["numbers of closed lines"] = np.concatenate([tables_of(mech.tree).T, loop_numbers(mech)])
    return made


class ChainLine(LoopLine):
    """The straight line of the chains of all loops: R, p, w and v of each."""

    given = ("q",)

    def __init__(self, mech: Linkage, chains: tuple[Chain, ...], key: bytes) -> None:
        super().__init__(mech, "own", Signature(), "chains")
        self._key = key
        self._sizes = [12 + 6 * len(chain.path) for chain in chains]
        ends = {end for chain in chains for end in (chain.a, chain.b) if end >= 0}
        self._parts = len(ends) + len({first for chain in chains for first, _ in chain.balls})
        # measured: a fifth of these operations, each of which takes about five times as long to build
        self._operations = operations_of(tables_of(mech.tree).N, False)

    def _pays(self, kind: str, eager: bool) -> bool:
        return super()._pays(kind, eager=False)  # even many rows take but milliseconds by numbers

    def _seconds(self, kind: str) -> float:
        # measured: 0.2 to 2.4 ms one by one, and 2 to 26 us in rows, of 3 to 24 joints, one loop to six
        return (2e-4 if kind == "one" else 2e-6) * self._parts

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of one sample, those given and those filled."""
        return {"q": (self._n,), **{f"chain{k}": (size,) for k, size in enumerate(self._sizes)}}

    def _outputs(self, mech: Any, given: list[Any]) -> dict[str, Any]:
        chains = tuple(chain_of(mech, loop) for loop in mech.loops if isinstance(loop, Loop))
        found = chains_at(mech.tree, chains, given[0][None])
        parts = [np.concatenate([np.ravel(np.asarray(x)) for x in (at.R, at.p, at.w, at.v)]) for at in found]
        return {f"chain{k}": part for k, part in enumerate(parts)}


_lines: dict[bytes, ChainLine] = {}


def _line(mech: Linkage, chains: tuple[Chain, ...]) -> ChainLine:
    """Return the straight line, shared by all mechanisms that have it."""
    made: ChainLine | None = mech.memo.get("chain line")
    if made is None:
        said = repr([(*chain.loop.directions, chain.a, chain.b) for chain in chains]).encode()
        key = key_of(tables_of(mech.tree), b"chains" + said + folded(loop_numbers(mech)).tobytes())
        made = mech.memo["chain line"] = shared(_lines, key, lambda: ChainLine(mech, chains, key))
    return made


def chains_in(mech: Linkage, chains: tuple[Chain, ...], q: Array) -> tuple[ChainAt, ...]:
    """Return all chains of a mechanism in rows q (N, n), by their line where it is the way."""
    count = len(q)
    kind = "one" if count < LANES else "rows"
    fill: Callable[..., int] | None = mech.memo.get(("chains", kind))
    if fill is None and count:
        line, T = _line(mech, chains), numbers_of(mech)
        fill = line.caller(T, False, count) if kind == "one" else line.batch_caller(T, count)
        if fill is not None:
            mech.memo["chains", kind] = fill
    if fill is not None:
        q = np.ascontiguousarray(q)
        found = [np.empty((count, 12 + 6 * len(chain.path))) for chain in chains]
        if kind == "rows":
            good = fill(q, *found, 0, count) == -1
        else:
            good = all(fill(q[k], *(rows[k] for rows in found)) == 0 for k in range(count))
        if good:
            charts = charts_of(chains, q)
            return tuple(_read(chain, rows, charts) for chain, rows in zip(chains, found, strict=True))
    return chains_at(mech.tree, chains, q)


def _read(chain: Chain, rows: Array, charts: dict[int, Any]) -> ChainAt:
    count, k = len(rows), len(chain.path)
    R, p = rows[:, :9].reshape(count, 3, 3), rows[:, 9:12]
    w, v = (rows[:, 12 + 3 * k * j : 12 + 3 * k * (j + 1)].reshape(count, 3, k) for j in (0, 1))
    return ChainAt(chain, R, p, w, v, tuple(charts[first] for first, _ in chain.balls))
