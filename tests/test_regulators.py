"""Regulators beside their Riccati equations solved in many digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from closeness import assert_close

from cstormpy import control
from cstormpy.mechanism import library


@pytest.mark.parametrize(("Q", "R"), [([50.0, 7.0, 20.0, 4.0], 7.0), ([0.9, 3.0, 50.0, 60.0], 0.5)])
def test_gains_are_those_of_many_digits(Q, R):
    """Those of the solver alone were off by 1e-11, and their derivatives, which are differences, by 2e-7."""
    law = control.LQR(library.acrobot(), Q=Q, R=R)
    with mpmath.workdps(40):
        A, B, Q, S = (mpmath.matrix(each.tolist()) for each in (law.A, law.B, law.Q, law.S))
        n = A.rows
        for _ in range(4):  # Newton's method, whose steps are linear equations for all entries of S
            K = B.T * S / mpmath.mpf(law.R[0, 0])
            closed, wanted = (A - B * K).T, -(Q + K.T * K * mpmath.mpf(law.R[0, 0]))
            system = mpmath.matrix(n * n)
            for i, j, k in np.ndindex(n, n, n):
                system[n * i + j, n * k + j] += closed[i, k]
                system[n * i + j, n * i + k] += closed[j, k]
            found = mpmath.lu_solve(system, mpmath.matrix([wanted[i, j] for i, j in np.ndindex(n, n)]))
            S = mpmath.matrix(n, n)
            for i, j in np.ndindex(n, n):
                S[i, j] = found[n * i + j]
        K = np.array((B.T * S / mpmath.mpf(law.R[0, 0])).tolist(), dtype=float)
    assert_close(law.K, K, 1e-12)
