"""Zeros of linear models, and the root locus: how the poles of a loop go with its gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.analysis.linear import LinearModel

Complex = NDArray[np.complex128]

#: Gains about the one at which the loop has its middle size 1: decades either way, and how many.
_DECADES, _GAINS = 4.0, 401
#: Between two gains no pole in sight goes farther than this part of what is shown, if so many rounds of halving do.
_STEP, _ROUNDS = 0.01, 16
#: In sight is what is no farther from 0 than so many times what is shown.
_SIGHT = 3.0
#: What is farther from 0 than so many times the largest number of A is a zero at infinity, and roundings.
_INFINITE = 1e8


def zeros_of(model: LinearModel) -> Complex:
    """Return the zeros of a model with as many outputs as inputs: where [A − s, B; C, D] is singular; of others none.

    >>> zeros_of(LinearModel.of([[0.0, 1.0], [-2.0, -3.0]], [[0.0], [1.0]], [[4.0, 1.0]])).round(9)
    array([-4.+0.j])
    """
    from scipy.linalg import eigvals

    n, m = model.B.shape
    if m != len(model.C):
        return np.zeros(0, dtype=complex)
    left, right = np.block([[model.A, model.B], [model.C, model.D]]), np.zeros((n + m, n + m))
    right[:n, :n] = np.eye(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = eigvals(left, right)
    largest = max(float(np.abs(model.A).max(initial=0.0)), 1.0)
    return np.asarray(found[np.abs(found) < _INFINITE * largest], dtype=complex)


def closed_poles(model: LinearModel, gain: float) -> Complex:
    """Return the poles of a loop that is cut at one number, when it is closed by u = gain · y; NaN where none are."""
    around = 1.0 - gain * model.D[0, 0]
    if around == 0.0:
        return np.full(len(model.A), np.nan, dtype=complex)
    return np.asarray(np.linalg.eigvals(model.A + model.B @ model.C * (gain / around)), dtype=complex)


def root_locus(model: LinearModel, sizes: NDArray[np.float64], feedback: float, span: float) -> tuple[Complex, Complex]:
    """Return gains (K,) from 0 on, and the poles (K, n) of the closed loop, in columns of which each is one on its way.

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
    return np.array(gains), np.array(rows)


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
