"""Jacobians of few columns in each row as small dense blocks: rows that share their columns stand together.

Samples between two knots touch the same control points, so that a product of such a Jacobian with its transpose is one
of a small dense matrix for each segment of the splines.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cstormpy.optimal.samples import Array
from cstormpy.optimal.transcription import Indices


class RowBlocks:
    """The rows of a Jacobian, (R, n), of which `rows` and `columns` say where its entries stand; no place twice."""

    def __init__(self, rows: Indices, columns: Indices, shape: tuple[int, int]) -> None:
        self.shape = shape
        order = np.lexsort((columns, rows))
        begin = np.searchsorted(rows[order], np.arange(shape[0] + 1))
        alike: dict[bytes, list[int]] = {}
        for r in range(shape[0]):
            alike.setdefault(columns[order[begin[r] : begin[r + 1]]].tobytes(), []).append(r)
        self._blocks: list[tuple[Indices, Indices, Indices]] = []
        for members in alike.values():
            own = np.array(members, dtype=np.intp)
            entries = np.array([order[begin[r] : begin[r + 1]] for r in members], dtype=np.intp)
            if entries.size:
                self._blocks.append((own, columns[entries[0]], entries))

    def of(self, entries: Array) -> Rows:
        """Return the Jacobian with these entries."""
        return Rows(self.shape, [(rows, columns, entries[at]) for rows, columns, at in self._blocks])


class Rows:
    """A Jacobian J, (R, n), as blocks: rows, columns and a dense matrix each."""

    def __init__(self, shape: tuple[int, int], blocks: list[tuple[Indices, Indices, Array]]) -> None:
        self.shape, self.blocks = shape, blocks

    def __iter__(self) -> Iterator[tuple[Indices, Indices, Array]]:
        return iter(self.blocks)

    def times(self, x: Array) -> Array:
        """Return J x, (R,)."""
        found = np.zeros(self.shape[0])
        for rows, columns, block in self.blocks:
            found[rows] = block @ x[columns]
        return found

    def transposed(self, y: Array) -> Array:
        """Return Jᵀ y, (n,)."""
        found = np.zeros(self.shape[1])
        for rows, columns, block in self.blocks:
            found[columns] += y[rows] @ block
        return found

    def add_gram(self, weights: Array, into: Array) -> None:
        """Add Jᵀ W J, with weights (R,) that are not negative, to a matrix (n, n)."""
        for rows, columns, block in self.blocks:
            some = weights[rows]
            kept = some > 0.0
            scaled = np.sqrt(some[kept])[:, None] * block[kept]
            into[np.ix_(columns, columns)] += scaled.T @ scaled

    def dense(self, rows: Indices) -> Array:
        """Return some of the rows as a dense matrix."""
        place = np.full(self.shape[0], -1)
        place[rows] = np.arange(len(rows))
        found = np.zeros((len(rows), self.shape[1]))
        for own, columns, block in self.blocks:
            kept = place[own] >= 0
            found[np.ix_(place[own[kept]], columns)] = block[kept]
        return found
