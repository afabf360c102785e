"""Elimination of unknowns by a few linear equations, so that those left carry small coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue

DEPENDENT = 1e-10
"""A scaled equation that is smaller than this after elimination of the others follows from them."""

SWAP_GAIN = 1.01
"""A solved unknown is changed for a free one only where the coefficient exceeds this; more than 1 ends the search."""


def eliminate(rows: Array, names: Sequence[str]) -> tuple[NDArray[np.intp], Array, Array]:
    """Solve k equations ``rows @ P = values`` for k of the m unknowns, chosen so that no coefficient is large.

    Parameters
    ----------
    rows : (k, m) array
        the equations' coefficients
    names : sequence of k strings
        what the equations are called in errors

    Returns
    -------
    fixed : (k,) array of int
        the unknowns solved for, in rising order
    inverse : (k, k) array
    coupling : (k, m) array
        P[fixed] = inverse @ values − Σ over the others of coupling[:, i] P[i]; its entries are at most 1.01 in size
    """
    if not len(rows):
        return np.zeros(0, dtype=np.intp), np.zeros((0, 0)), np.zeros((0, rows.shape[1]))
    scale = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / scale
    fixed = _independent_columns(scaled, names)
    coupling = np.linalg.solve(scaled[:, fixed], scaled)
    while np.abs(coupling).max() > SWAP_GAIN:  # each swap multiplies the determinant by that coefficient
        at, enter = np.unravel_index(int(np.abs(coupling).argmax()), coupling.shape)
        fixed[at] = enter
        coupling = np.linalg.solve(scaled[:, fixed], scaled)
    fixed = np.sort(fixed)
    return fixed, np.linalg.inv(scaled[:, fixed]) / scale.T, np.linalg.solve(scaled[:, fixed], scaled)


def _independent_columns(scaled: Array, names: Sequence[str]) -> NDArray[np.intp]:
    """Return as many independent columns as there are rows: Gaussian elimination with the largest pivot of each row."""
    left = scaled.copy()
    columns = []
    for k in range(len(left)):
        column = int(np.abs(left[k]).argmax())
        if abs(left[k, column]) < DEPENDENT:
            raise InvalidValue(
                f"end conditions: the {names[k]} cannot be chosen freely beside {', '.join(names[:k])}; "
                "there are too few control points between the ends"
            )
        columns.append(column)
        left[k + 1 :] -= np.outer(left[k + 1 :, column] / left[k, column], left[k])
        left[k + 1 :, column] = 0.0
    return np.array(columns, dtype=np.intp)
