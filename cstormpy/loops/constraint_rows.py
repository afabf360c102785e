"""Rows of constraints that a user's function says: φ, A, Ȧ and their derivatives, traced or differenced.

With b = Ȧ q̇ what A q̈ + Ȧ q̇ = 0 needs, the trace holds φ, A = ∂φ/∂q, ∂A/∂q, Ȧ and ∂b/∂q as expressions of q and q̇,
which are evaluated with numbers or written into another graph. Of a function that cannot be traced they are central
differences of fourth order, of numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidValue, ShapeError
from cstormpy.graph import Graph
from cstormpy.graph.arrays import Symbols, symbols
from cstormpy.graph.derivatives import jacobian, tangents
from cstormpy.graph.nodes import INPUT, Node, alive
from cstormpy.graph.primitives import apply
from cstormpy.linkage.constraints import Constraint
from cstormpy.reporting import notice_once

_STEP = 1e-3
_WEIGHTS = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


class ConstraintRows:
    """The rows of one constraint on a mechanism of n joints.

    Attributes
    ----------
    count : int
    traced : bool
        Whether derivatives are exact.
    """

    def __init__(self, constraint: Constraint, n: int) -> None:
        self.constraint, self.n = constraint, n
        first = self._called(np.full(n, 0.1))
        self.count = len(first)
        try:
            self._trace()
            self.traced = True
        except Exception as error:  # whatever the user's function does with a symbol
            self.traced = False
            notice_once(f"constraint {constraint.name!r}: differenced, as it cannot be traced: {error}")

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the rows behind that of the constraint."""
        return tuple(f"row {k}" for k in range(self.count))

    @property
    def text(self) -> str:
        """The expressions, by which machine code is known; None of these that are differenced."""
        nodes = alive([x for part in self._nodes.values() for x in part])
        wanted = {name: [x.index if isinstance(x, Node) else x for x in part] for name, part in self._nodes.items()}
        lines = [
            (n.index, n.primitive.name, n.data, [a.index if isinstance(a, Node) else ("", a) for a in n.args])
            for n in nodes
        ]
        return repr((self.constraint.kind, self.count, wanted, lines))

    def _called(self, q: Any) -> Any:
        """Return φ as (m,), or of a constraint of rates A as (m, n)."""
        name = self.constraint.name
        found = self.constraint.function(q)
        value = np.asarray(symbols(found) if isinstance(q, Symbols) else found)
        if self.constraint.kind == "rate":
            value = np.atleast_2d(value)
            if value.ndim != 2 or value.shape[1] != self.n:
                raise ShapeError(
                    f"constraint {name!r}: expected rates' matrix ({self.n},) or (m, {self.n}), got {value.shape}"
                )
        else:
            value = np.atleast_1d(value)
            if value.ndim != 1 or not len(value):
                raise ShapeError(f"constraint {name!r}: expected a number or (m,), got shape {value.shape}")
        if value.dtype != object and not np.isfinite(value.astype(float)).all():
            raise InvalidValue(f"constraint {name!r}: is not finite at q = {q}")
        return value

    def _trace(self) -> None:
        graph, n = Graph(), self.n
        q, qd = graph.inputs("q", n), graph.inputs("qd", n)
        found = self._called(symbols(q))
        if self.constraint.kind == "rate":
            phi, A = [0.0] * self.count, [list(row) for row in found]
        else:
            phi = list(found)
            A = jacobian(phi, q)
        flat = [x for row in A for x in row]
        rate = tangents(flat, dict(zip(q, qd, strict=True)))
        bias = [sum((rate[c * n + j] * qd[j] for j in range(n)), 0.0) for c in range(self.count)]
        self._nodes = {
            "phi": phi,
            "A": flat,
            "slopes": [x for row in jacobian(flat, q) for x in row],
            "rate": rate,
            "bias_q": [x for row in jacobian(bias, q) for x in row],
        }
        for node in alive([x for part in self._nodes.values() for x in part]):
            if node.primitive is not INPUT and node.data:
                raise InvalidValue(f"it holds a {node.primitive.name}")

    def at(self, q: Any) -> RowsAt:
        """Return the rows at samples (N, n), or at one of symbols."""
        if q.dtype == object and not self.traced:
            raise CstormError(f"constraint {self.constraint.name!r}: is differenced and cannot be written down")
        return RowsAt(self, q)

    def values(self, name: str, q: Any, qd: Any, *shape: int) -> Any:
        """Return a part of the trace at samples, (N, *shape)."""
        rows = [substituted(self._nodes[name], a, b) for a, b in zip(np.asarray(q), np.asarray(qd), strict=True)]
        if q.dtype == object or qd.dtype == object:
            return symbols(rows).reshape(len(q), *shape)
        return np.array(rows, dtype=float).reshape(len(q), *shape)


class RowsAt:
    """The rows of a constraint at samples."""

    def __init__(self, rows: ConstraintRows, q: Any) -> None:
        self._rows, self._q = rows, q
        self.holonomic = rows.constraint.kind == "position"
        m, n = rows.count, rows.n
        if rows.traced:
            still = np.zeros(q.shape)
            self.phi, self.A = rows.values("phi", q, still, m), rows.values("A", q, still, m, n)
        else:
            self.phi = np.zeros((len(q), m)) if rows.constraint.kind == "rate" else _each(rows._called, q)
            self.A = _each(self._differenced, q)

    def _differenced(self, q: Array) -> Array:
        rows = self._rows
        return np.asarray(rows._called(q) if rows.constraint.kind == "rate" else _difference(rows._called, q))

    def rate(self, qd: Any) -> Any:
        """Return Ȧ, (N, m, n)."""
        rows = self._rows
        if rows.traced:
            return rows.values("rate", self._q, qd, rows.count, rows.n)
        return (self.slopes() @ qd[:, None, :, None])[..., 0]

    def slopes(self) -> Any:
        """Return ∂A/∂q, (N, m, n, n)."""
        rows = self._rows
        if rows.traced:
            return rows.values("slopes", self._q, np.zeros(self._q.shape), rows.count, rows.n, rows.n)
        return _each(lambda q: _difference(self._differenced, q), self._q)

    def bias_slopes(self, qd: Any) -> tuple[Any, Any]:
        """Return the derivatives of Ȧ q̇ to q and q̇, (N, m, n) each."""
        rows, H = self._rows, self.slopes()
        to_qd = (H * qd[:, None, :, None]).sum(axis=2) + (H * qd[:, None, None]).sum(axis=3)
        if rows.traced:
            return rows.values("bias_q", self._q, qd, rows.count, rows.n), to_qd

        def bias(v: Array, q: Array) -> Array:
            return np.asarray((_difference(self._differenced, q) @ v) @ v)

        pairs = zip(self._q, qd, strict=True)
        return np.array([_difference(partial(bias, v), q) for q, v in pairs]), to_qd


def substituted(outputs: Sequence[Any], q: Any, qd: Any) -> list[Any]:
    """Return expressions of q and qd with numbers, or symbols of another graph, in their place."""
    given, values = {"q": q, "qd": qd}, dict[int, Any]()
    for node in alive(outputs):
        if node.primitive is INPUT:
            x = given[node.data[0]][node.data[1]]
            values[node.index] = x if isinstance(x, Node) else float(x)
        else:
            values[node.index] = apply(
                node.primitive, *(values[a.index] if isinstance(a, Node) else a for a in node.args)
            )
    return [values[x.index] if isinstance(x, Node) else x for x in outputs]


def _each(function: Callable[[Array], Any], q: Array) -> Array:
    return np.array([function(row) for row in q], dtype=float)


def _difference(function: Callable[[Array], Any], q: Array) -> Array:
    """Return the derivative by central differences of fourth order, the last index being that of q."""
    columns = []
    for k in range(len(q)):
        unit = np.eye(len(q))[k] * _STEP
        columns.append(sum(w * np.asarray(function(q + s * unit), dtype=float) for s, w in _WEIGHTS) / _STEP)
    return np.stack(columns, axis=-1)
