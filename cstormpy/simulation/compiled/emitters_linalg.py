"""Emitters of bdsim's linear algebra: inverse, determinant, condition, norms, and parts of arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.load_signals import pass_loads
from cstormpy.simulation.compiled.registry import Value, emits

__all__ = ["inverse", "power", "solved"]

Values = list[Value]
#: Singular values below this part of the largest are none to NumPy's pinv.
_LEAST = 1e-15


def solved(e: Emitter, A: Value, B: Value) -> Value:
    """Return X of A X = B, of the shape of B; a singular A is looked at by the block itself."""
    n = A.shape[0]
    if A.shape != (n, n) or B.shape[0] != n:
        raise Untranslatable(f"solves with matrices of the shapes {A.shape} and {B.shape}")
    place = e.scratch(n * n + B.size)
    factors = e.store([A], place)
    found = e.store([B], place + n * n)
    e.fail_if(f"{e.call('solve')}({factors}, {found}, {n}, {B.size // n}) != 0")
    return named([f"w[{place + n * n + k}]" for k in range(B.size)]).reshape(B.shape)


def inverse(e: Emitter, A: Value) -> Value:
    """Return the inverse of a matrix."""
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise Untranslatable(f"divides by an array of the shape {A.shape}")
    unit = np.where(np.eye(len(A)) == 1.0, "1.0", "0.0").astype(object)
    return e.let(solved(e, A, unit))


def power(e: Emitter, A: Value, p: int | None) -> Value:
    """Return a whole power of a matrix."""
    if p is None:
        raise Untranslatable("takes a power of a matrix that is no whole number")
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise Untranslatable(f"takes the power of an array of the shape {A.shape}")
    base = e.let(inverse(e, A) if p < 0 else A)
    out: Value | None = None
    for bit in f"{abs(p):b}"[::-1]:
        if bit == "1":
            out = base if out is None else e.let(e.product(out, base))
        base = e.let(e.product(base, base)) if abs(p) > 1 else base
    return np.where(np.eye(len(A)) == 1.0, "1.0", "0.0").astype(object) if out is None else out


def _singular(e: Emitter, A: Value) -> list[str]:
    """Return the singular values of a matrix, the largest first."""
    tall = A if A.shape[0] >= A.shape[1] else A.T
    rows, columns = tall.shape
    place = e.scratch(tall.size + columns * columns + columns)
    work, given = place + tall.size, e.store([tall], place)
    values = work + columns * columns
    e.line(
        f"{e.call('singular_values')}({given}, w[{work}:{values}], {rows}, {columns}, w[{values}:{values + columns}])"
    )
    return [f"w[{values + k}]" for k in range(columns)]


def _condition(e: Emitter, A: Value) -> Value:
    values = _singular(e, A)
    return e.let(f"{values[0]} / {values[-1]}")


def _pseudoinverse(e: Emitter, A: Value) -> Value:
    wide = A.shape[0] < A.shape[1]
    tall = A.T if wide else A
    rows, columns = tall.shape
    place = e.scratch(2 * tall.size + columns * columns + columns)
    work, given = place + tall.size, e.store([tall], place)
    values = work + columns * columns
    found = values + columns
    e.line(
        f"{e.call('pseudoinverse')}({given}, w[{work}:{values}], {rows}, {columns}, w[{values}:{found}], "
        f"{e.number(_LEAST)}, w[{found}:{found + tall.size}])"
    )
    out = named([f"w[{found + k}]" for k in range(tall.size)]).reshape(columns, rows)
    return e.let(out.T if wide else out)


def _matrix(u: Values) -> Value:
    if u[0].ndim != 2:
        raise Untranslatable(f"is given an array of the shape {u[0].shape} where it takes a matrix")
    return u[0]


@emits("bdsim.blocks.linalg.Inverse")
def _inverse(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    A = _matrix(u)
    pseudo = e.depends(lambda: bool(block.pinv)) or A.shape[0] != A.shape[1]
    return [_pseudoinverse(e, A) if pseudo else inverse(e, A), _condition(e, A)]


@emits("bdsim.blocks.linalg.Det")
def _determinant(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    A = _matrix(u)
    if A.shape[0] != A.shape[1]:
        raise Untranslatable(f"is given a matrix of the shape {A.shape}, which has no determinant")
    return [named(f"{e.call('determinant')}({e.store([A], e.scratch(A.size))}, {len(A)})")]


@emits("bdsim.blocks.linalg.Cond")
def _cond(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [_condition(e, _matrix(u))]


@emits("bdsim.blocks.linalg.Slice1")
def _slice1(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [named(u[0][e.depends(lambda: block.index)])]


@emits("bdsim.blocks.linalg.Slice2")
def _slice2(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    rows, columns = e.depends(lambda: (block.rows, block.cols))
    return [named(u[0][rows, columns])]


@emits("bdsim.blocks.linalg.Transpose")
def _transpose(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [u[0].reshape(-1, 1) if u[0].ndim == 1 else u[0].T]


@emits("bdsim.blocks.linalg.Flatten")
def _flatten(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    order = e.depends(lambda: block.order)
    if order == "C":
        pass_loads(e, block)
    return [u[0].flatten(order)]


# norms, as numpy.linalg.norm ----------------------------------------------------------------------------------


@emits("bdsim.blocks.linalg.Norm")
def _norm(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    order, axis = e.depends(lambda: (block.args["ord"], block.args["axis"]))
    value = u[0]
    if axis is None and order is None:
        return [_vector_norm(e, value.ravel(), None)]
    if axis is None:
        return [_vector_norm(e, value, order) if value.ndim == 1 else _matrix_norm(e, value, order)]
    if not isinstance(axis, int):
        raise Untranslatable("takes norms over several axes")
    lines = np.moveaxis(value, axis, -1)
    out = np.empty(lines.shape[:-1], dtype=object)
    for place in np.ndindex(out.shape):
        out[place] = _vector_norm(e, lines[place], order)[()]
    return [out]


def _chain(function: str, items: list[str]) -> str:
    text = items[0]
    for item in items[1:]:
        text = f"{function}({text}, {item})"
    return text


def _vector_norm(e: Emitter, vector: Value, order: Any) -> Value:
    items = [str(item) for item in vector]
    sizes = [f"abs({item})" for item in items]
    if order is None or order == 2:
        e.call("math")
        return named(f"math.sqrt({e.sum([f'{item} * {item}' for item in items])})")
    if order in (math.inf, -math.inf):
        return named(_chain("max" if order > 0 else "min", sizes))
    if order == 1:
        return named(e.sum(sizes))
    if order == 0:
        return named(e.sum([f"(0.0 if {item} == 0.0 else 1.0)" for item in items]))
    if not isinstance(order, (int, float)):
        raise Untranslatable(f"takes the norm {order!r} of a vector, which there is none of")
    p = e.number(float(order))
    return named(f"{e.sum([f'{size} ** {p}' for size in sizes])} ** (1.0 / {p})")


def _matrix_norm(e: Emitter, A: Value, order: Any) -> Value:
    if order == "fro":
        return _vector_norm(e, A.ravel(), None)
    if order == "nuc":
        return named(e.sum(_singular(e, A)))
    if order in (2, -2):
        return named(_singular(e, A)[0 if order == 2 else -1])
    if order in (1, -1, math.inf, -math.inf):
        lines = A.T if abs(order) == 1 else A
        sums = [e.sum([f"abs({item})" for item in line]) for line in lines]
        return named(_chain("max" if order > 0 else "min", sums))
    raise Untranslatable(f"takes the norm {order!r} of a matrix, which there is none of")
