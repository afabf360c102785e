"""Tolerances of results, and exact derivatives to compare with."""

from __future__ import annotations

import numpy as np

EPS = np.finfo(float).eps
STEP = 1e-30  # of the complex step: small enough that its square vanishes beside any number here


def tolerance(mech, q, least=1e-10, drive="own"):
    """Return the accuracy to expect: rounding, magnified by the passive block of the mass matrix (of all samples)."""
    passive = ~mech.active_mask if drive == "own" else np.full(mech.n, drive == "forward")
    if not passive.any() or np.size(q) == 0:
        return least
    blocks = mech.mass_matrix(np.reshape(q, (-1, mech.n)))[:, passive][:, :, passive]
    return max(least, 100 * EPS * float(np.max(np.linalg.cond(blocks))))


def assert_close(got, want, tol):
    """Compare in max norm, relative to the greatest number that is wanted if that is above 1."""
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * max(1.0, np.max(np.abs(want), initial=0.0)))


def complex_step(f, x):
    """Return df/dx, exact: the derivative to each entry of the vector x along a new last axis."""
    columns = []
    for k in range(len(x)):
        z = np.array(x, dtype=complex)
        z[k] += 1j * STEP
        columns.append(np.imag(f(z)) / STEP)
    return np.stack(columns, axis=-1)


def central_difference(f, x, h):
    """Return df/dx to O(h⁴): the derivative to each entry of the vector x along a new last axis."""
    columns = []
    for e in np.eye(len(x)) * h:
        columns.append((8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * h))
    return np.stack(columns, axis=-1)
