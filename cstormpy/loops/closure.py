r"""Closure of loops: residual φ(q), constraint Jacobian A(q) with A q̇ = 0, its rate, and their derivatives.

Each loop is a serial chain from its frame A to its frame B, all said in the axes of A (`loops.chains`).
The rows of A are those of the chain's columns (w; v) that the loop closes. The residual is p, and of the rotation: its
vector where all three are closed; where two are, the vector that swings the free axis of A into that of B; the angle
where one is. Where the loop is closed ∂φ/∂q = A.

Rows of constraints that a user's function says are traced or differenced. With b = Ȧ q̇ what A q̈ + Ȧ q̇ = 0 needs, the
trace holds φ, A = ∂φ/∂q, ∂A/∂q, Ȧ and ∂b/∂q as expressions of q and q̇, which are evaluated with numbers or written into
another graph. Of a function that cannot be traced they are central differences of fourth order, of numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array, as_floats
from cstormpy.dynamics.checked_arguments import Samples, read_samples
from cstormpy.dynamics.tracing import with_its_tree
from cstormpy.errors import CstormError, InvalidValue, ShapeError
from cstormpy.graph import Graph
from cstormpy.graph.arrays import Symbols, symbols, zeros
from cstormpy.graph.derivatives import jacobian, tangents
from cstormpy.graph.nodes import INPUT, Node, alive
from cstormpy.graph.primitives import apply
from cstormpy.linkage.constraints import Constraint
from cstormpy.linkage.loops import Loop
from cstormpy.loops.chains import ROTATES, Chain, ChainAt, chain_of, chains_at
from cstormpy.loops.loop_lines import chains_in
from cstormpy.reporting import notice_once

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

LEAST = 1e-9
"""A singular value of A below this part of the greatest counts as zero."""


@dataclass(frozen=True)
class Closure:
    """All loops and constraints in some samples.

    `span` (N, m, m), if given, projects the constraints on those that count; see `loops.opening.without_opening`.
    """

    n: int
    chains: tuple[ChainAt, ...]
    others: tuple[RowsAt, ...] = ()
    span: Array | None = None

    @property
    def m(self) -> int:
        """Number of constraints."""
        return sum(len(at.chain.rows) for at in self.chains) + sum(rows.A.shape[1] for rows in self.others)

    @property
    def holonomic(self) -> NDArray[np.bool_]:
        """The rows that close positions, (m,): not those of a constraint of rates."""
        loops = np.ones(sum(len(at.chain.rows) for at in self.chains), dtype=bool)
        return np.concatenate([loops, *(np.full(x.A.shape[1], x.holonomic) for x in self.others)])

    @cached_property
    def A(self) -> Any:
        """The constraint Jacobian, (N, m, n)."""
        return self._counted(self._stacked([at.A for at in self.chains], [rows.A for rows in self.others]))

    @property
    def by_value(self) -> NDArray[np.bool_]:
        """Which coordinates stand in constraints of coordinates, (n,): a whole turn of one brings it elsewhere."""
        return np.asarray((self.A[:, self.first(len(self.chains)) :] != 0.0).any(axis=(0, 1)))

    def rate(self, qd: Any) -> Any:
        """Return its rate Ȧ, (N, m, n), from rates (N, n)."""
        of_chains, of_others = [at.rate(qd) for at in self.chains], [rows.rate(qd) for rows in self.others]
        return self._counted(self._stacked(of_chains, of_others))

    def residual(self) -> Array:
        """Return φ, (N, m); not of symbols."""
        return np.concatenate([*(at.residual() for at in self.chains), *(rows.phi for rows in self.others)], axis=-1)

    def sines(self) -> tuple[Any, Any]:
        """Return φ with the sines of its angles instead of these, and the truth that an angle is a right one or more.

        That says as much near to closure, and is said without a choice: of symbols too, of one sample.
        """
        found, over = [], False
        for sine, wide in (at.sines() for at in self.chains):
            found.append(sine)
            over = wide | over
        return np.concatenate([*found, *(rows.phi[0] for rows in self.others)])[None], over

    def slopes(self) -> Any:
        """Return ∂A/∂q, (N, m, n, n), the last index being that of q."""
        of_chains, of_others = [at.slopes() for at in self.chains], [rows.slopes() for rows in self.others]
        out = zeros((len([*of_chains, *of_others][0]), self.m, self.n, self.n), *of_chains, *of_others)
        first = 0
        for at, H in zip(self.chains, of_chains, strict=True):
            rows, path = slice(first, first := first + len(at.chain.rows)), at.chain.path
            out[:, rows, path[:, None], path[None, :]] = H[:, at.chain.rows]
        for H in of_others:
            out[:, first : (first := first + H.shape[1])] = H
        return self._counted(out)

    def bias_slopes(self, qd: Any) -> tuple[Any, Any]:
        """Return the derivatives of Ȧ q̇ to q and to q̇, each (N, m, n)."""
        pairs = [at.bias_slopes(qd) for at in self.chains], [rows.bias_slopes(qd) for rows in self.others]
        to_q, to_qd = (self._stacked(*([pair[k] for pair in part] for part in pairs)) for k in range(2))
        return self._counted(to_q), self._counted(to_qd)

    def _counted(self, rows: Any) -> Any:
        """Return what belongs to the constraints, (N, m, ...), of those that count."""
        return rows if self.span is None else np.einsum("sij,sj...->si...", self.span, rows)

    def first(self, loop: int) -> int:
        """Return the first row of a loop."""
        return sum(len(at.chain.rows) for at in self.chains[:loop])

    def _stacked(self, of_chains: list[Any], of_others: list[Any]) -> Any:
        """Return matrices (N, 6, k) of the chains and (N, c, n) of other constraints as one (N, m, n)."""
        every = [*of_chains, *of_others]
        like = next((x for x in every if x.dtype == object), every[0])
        out = np.zeros((len(like), self.m, self.n), dtype=like.dtype)
        if out.dtype == object:
            out[...] = 0.0
        at = 0
        for chain, block in zip((each.chain for each in self.chains), of_chains, strict=True):
            rows = slice(at, at := at + len(chain.rows))
            out[:, rows, chain.path] = np.asarray(block)[:, chain.rows]
        for block in of_others:
            out[:, at : (at := at + block.shape[1])] = np.asarray(block)
        return out.view(type(like))


def chains_of(mech: Linkage) -> tuple[Chain, ...]:
    """Return the chains of a mechanism's loops, kept."""
    if "chains" not in mech.memo:
        mech.memo["chains"] = tuple(chain_of(mech, loop) for loop in mech.loops if isinstance(loop, Loop))
        if not mech.symbolic:
            _refuse_free_rotations(mech)
    return mech.memo["chains"]


def _refuse_free_rotations(mech: Linkage) -> None:
    """Refuse a loop that closes one rotation alone where the links rotate otherwise too: that can be no closure."""
    chains = mech.memo["chains"]
    alone = [k for k, chain in enumerate(chains) if sum(chain.loop.directions[:3]) == 1]
    if not alone:
        return
    found = closure_of(mech, np.random.default_rng(0).uniform(-2.0, 2.0, (3, mech.n)))
    for k in alone:
        loop, R, w = chains[k].loop, found.chains[k].R, found.chains[k].w
        about = loop.directions.index(True)
        others = [axis for axis in range(3) if axis != about]
        if np.abs(w[:, others]).max(initial=0.0) > ROTATES or np.abs(R[:, others, about]).max() > ROTATES:
            del mech.memo["chains"]
            raise InvalidValue(
                f"loop {loop.name!r}: closes rotation about {'xyz'[about]} alone, but its links also rotate about "
                "other axes; close two rotations ('hinge') or all three ('pose', 'orientation')"
            )


@with_its_tree
def closure_of(mech: Linkage, q: Any) -> Closure:
    """Return the closure of rows q (N, n), or of one row of symbols."""
    if not mech.loops:
        raise InvalidValue("closure: the mechanism has no loops; give it some as Mechanism(links, loops=[Loop(...)])")
    chains, others = chains_of(mech), tuple(rows.at(q) for rows in rows_of_constraints(mech))
    by_numbers = mech.symbolic or q.dtype == object or not chains
    at = chains_at(mech.tree, chains, q) if by_numbers else chains_in(mech, chains, q)
    return Closure(mech.n, at, others)


def held_closure_of(held: Linkage, loops: Sequence[Loop], q: Any) -> Closure:
    """Return the closure of loops on a mechanism with held joints: also of one that closes a rotation alone."""
    return Closure(held.n, chains_at(held, tuple(chain_of(held, loop) for loop in loops), q))


def rows_of_constraints(mech: Linkage) -> tuple[ConstraintRows, ...]:
    """Return the rows of a mechanism's own constraints, kept."""
    of = mech.numeric
    if "constraint rows" not in of.memo:
        of.memo["constraint rows"] = tuple(
            ConstraintRows(loop.on(of.names), of.n) for loop in of.loops if isinstance(loop, Constraint)
        )
    return of.memo["constraint rows"]


def constraint_names(mech: Linkage) -> tuple[str, ...]:
    """Return what the rows of the constraints are, as "coupler - rocker: x"."""
    loops = [f"{loop.name}: {label}" for loop in mech.loops if isinstance(loop, Loop) for label in loop.labels]
    return (*loops, *(name for rows in rows_of_constraints(mech) for name in rows.names))


def owners(mech: Linkage) -> list[str]:
    """Return the loop or constraint of the mechanism to which each row of its constraints belongs, (m,)."""
    loops = [loop.name for loop in mech.loops if isinstance(loop, Loop) for _ in range(loop.count)]
    return [*loops, *(rows.constraint.name for rows in rows_of_constraints(mech) for _ in rows.names)]


def ends_of(mech: Linkage, row: int) -> str:
    """Return what a row of the constraints holds together, as " between 'coupler' and 'rocker'"; nothing of others."""
    for loop in mech.loops:
        if not isinstance(loop, Loop):
            break
        if row < loop.count:
            a, b = ("the base" if end is None else repr(end) for end in (loop.link_a, loop.link_b))
            return f" between {a} and {b}"
        row -= loop.count
    return ""


def angular_rows(mech: Linkage) -> NDArray[np.bool_]:
    """Return which rows of the constraints close rotations, (m,)."""
    loops = [closed for c in chains_of(mech) for closed in (c.rows < 3).tolist()]
    return np.array([*loops, *(False for rows in rows_of_constraints(mech) for _ in rows.names)], dtype=bool)


def closure_at(mech: Linkage, **given: ArrayLike) -> tuple[Samples, Closure]:
    """Return samples of q, and of what else is given, read and checked, and the closure of the loops there."""
    samples = read_samples(mech.tree, given)
    return samples, closure_of(mech, samples.rows["q"])


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
        self.count = len(self._called(np.full(n, 0.1)))
        try:
            self._trace()
            self.traced = True
        except Exception as error:  # whatever the user's function does with a symbol
            self.traced = False
            notice_once(f"constraint {constraint.name!r}: differenced, as it cannot be traced: {error}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows: that of the constraint, of several with their places."""
        name = self.constraint.name
        return (name,) if self.count == 1 else tuple(f"{name}: row {k}" for k in range(self.count))

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
        value = np.asarray(symbols(self.constraint.function(q))) if isinstance(q, Symbols) else self._numbers(q)
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
        if value.dtype != object and not np.isfinite(value).all():
            raise InvalidValue(f"constraint {name!r}: is not finite at q = {q}")
        return value

    def _numbers(self, q: Array) -> Array:
        """Return what the function says of numbers; its own failures and what are no numbers are refused."""
        what = f"constraint {self.constraint.name!r}"
        try:
            found = self.constraint.function(q)
        except CstormError:
            raise
        except Exception as error:  # whatever the user's function does
            raise InvalidValue(f"{what}: its function fails at q = {q}: {type(error).__name__}: {error}") from error
        return as_floats(found, f"{what}: what its function returns")

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
        self._constant = {
            name: None if any(isinstance(x, Node) for x in part) else np.array(part, dtype=float)
            for name, part in self._nodes.items()
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
        constant = self._constant[name]
        if constant is not None and q.dtype != object and qd.dtype != object:  # as all but φ of a coupling
            return np.tile(constant.reshape(shape), (len(q), *(1 for _ in shape)))
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
