"""Zeros of linear models, and the root locus: how the poles of a loop go with its gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.simulation.analysis.linear import LinearModel

Complex = NDArray[np.complex128]

#: Gains about the one at which the loop has its middle size 1: decades either way, and how many.
_DECADES, _GAINS = 4.0, 401
#: Between two gains no pole in sight goes farther than this part of what is shown, if so many rounds of halving do.
_STEP, _ROUNDS = 0.01, 16
#: In sight is what is no farther from 0 than so many times what is shown.
_SIGHT = 3.0
#: Of matrices of norm 1 what is smaller counts as zero.
_SINGULAR = 1e-11


def zeros_of(model: LinearModel) -> Complex:
    """Return the zeros of a model with as many outputs as inputs, where [A − s, B; C, D] is singular; of others none.

    What has none at infinity remains of the model by the reductions of Emami-Naeini and Van Dooren (1982, algorithm 1),
    of the outputs, and of the inputs as the outputs of the transposed model; its zeros are eigenvalues.

    >>> zeros_of(LinearModel.of([[0.0, 1.0], [-2.0, -3.0]], [[0.0], [1.0]], [[4.0, 1.0]])).round(9)
    array([-4.+0.j])
    """
    if model.B.shape[1] != len(model.C) or not (model.B.size and model.C.size):
        return np.zeros(0, dtype=complex)
    from scipy.linalg import matrix_balance

    A, (units, _) = matrix_balance(model.A, permute=False, separate=True)
    B, C = model.B / units[:, None], model.C * units
    size, into, out = (float(np.linalg.norm(M, 2)) or 1.0 for M in (A, B, C))
    A, B, C = A / size, B / into, C / out
    A, B, C, D = _reduced(A, B, C, model.D * (size / (into * out)))
    A, C, B, D = (M.T for M in _reduced(A.T, C.T, B.T, D.T))
    if not (len(A) and len(C) == B.shape[1]):  # where outputs do not follow from inputs, all s are singular, or none
        return np.zeros(0, dtype=complex)
    return np.asarray(size * np.linalg.eigvals(A - B @ np.linalg.solve(D, C)), dtype=complex)


def _reduced(A: Array, B: Array, C: Array, D: Array) -> tuple[Array, Array, Array, Array]:
    """Return a model of the same finite zeros whose D has independent rows: states that outputs alone tell of go."""
    while len(C):
        turn, sizes, _ = np.linalg.svd(D)
        fed = int((sizes > _SINGULAR).sum())
        if fed == len(C):
            break
        C, D = turn.T @ C, turn.T @ D
        _, sizes, V = np.linalg.svd(C[fed:])
        told = int((sizes > _SINGULAR).sum())
        kept = len(A) - told
        V = np.roll(V, -told, axis=0).T  # the states that those outputs tell of come last
        A, B, C = V.T @ A @ V, V.T @ B, C @ V
        C, D = np.vstack([C[:fed, :kept], A[kept:, :kept]]), np.vstack([D[:fed], B[kept:]])
        A, B = A[:kept, :kept], B[:kept]
    return A, B, C, D


def closed_poles(model: LinearModel, gain: float) -> Complex:
    """Return the poles of a loop that is cut at one number, when it is closed by u = gain · y; NaN where none are."""
    around = 1.0 - gain * model.D[0, 0]
    if around == 0.0:
        return np.full(len(model.A), np.nan, dtype=complex)
    return np.asarray(np.linalg.eigvals(model.A + model.B @ model.C * (gain / around)), dtype=complex)


def root_locus(model: LinearModel, sizes: NDArray[np.float64], feedback: float, span: float) -> tuple[Complex, Complex]:
    """Return gains (K,) from 0 on, and the poles (K, n) of the closed loop, in columns of which each is one on its way.

    One that has gone through infinity is NaN where it comes back.

    Parameters
    ----------
    model : LinearModel
        Of a loop that is cut at one number.
    sizes : ndarray
        Of its response at frequencies that show it.
    feedback : {1, -1}
        The sign with which it closes.
    span : float
        How much is shown, which says how small steps are.
    """
    middle = float(np.median(sizes[sizes > 0.0])) if (sizes > 0.0).any() else 1.0
    gains = [0.0, *np.sort(np.append(np.logspace(-_DECADES, _DECADES, _GAINS) / middle, 1.0)).tolist()]
    rows = [closed_poles(model, feedback * k) for k in gains]
    for _ in range(_ROUNDS):
        far = _follow(rows, span)
        if not far:
            break
        for k in reversed(far):
            gains.insert(k, 0.5 * (gains[k - 1] + gains[k]))
            rows.insert(k, closed_poles(model, feedback * gains[k]))
    _follow(rows, span)
    ways = np.array(rows)
    beyond = np.abs(ways) > _SIGHT * span
    ways[1:][beyond[1:] & beyond[:-1] & ((ways[1:] * ways[:-1].conj()).real < 0.0)] = np.nan
    return np.array(gains), ways


def _follow(rows: list[Complex], span: float) -> list[int]:
    """Put the poles of each gain in the order of those before, and return the gains before which one has gone far."""
    from scipy.optimize import linear_sum_assignment

    far = []
    for k in range(1, len(rows)):
        way = np.abs(rows[k - 1][:, None] - rows[k][None, :])
        rows[k] = rows[k][linear_sum_assignment(np.where(np.isfinite(way), way, 0.0))[1]]
        seen = np.abs(rows[k - 1]) < _SIGHT * span
        if (np.abs(rows[k] - rows[k - 1])[seen] > _STEP * span).any():
            far.append(k)
    return far
