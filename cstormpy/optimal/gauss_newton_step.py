"""The step of a Newton method whose matrix is known by products, found by conjugate gradients.

The step p solves

    (a)  [H  Aᵀ; A  0] (p, y) = (-g, -c)

with H known by its products H v, and A by its rows. Conjugate gradients in the null space of A, preconditioned by the
system with the Gauss-Newton matrix K in the place of H (Gould, Hribar, Nocedal 2001), need few products, as K is most
of H. They end early where H has negative curvature (Steihaug 1983); the first direction is the Gauss-Newton step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cstormpy.optimal.samples import Array

DEPENDENT = 1e-11
"""Equations with less than this part of the largest eigenvalue depend on others, or on nothing."""

LEAST_CURVATURE = 1e-10
"""Curvature along a direction that counts as positive, relative to its square."""

NEGLIGIBLE = 1e-8
"""A part of the energy of the Gauss-Newton step by which it need not be corrected."""

LIFT = 1e-9
"""Least addition to the diagonal of the Gauss-Newton matrix, as a part of its largest entry."""


class Preconditioner:
    """The system (a) with a matrix K that is positive definite in the null space of A, factorised.

    Raises
    ------
    numpy.linalg.LinAlgError
        If it is not.
    """

    def __init__(self, K: Array, A: Array) -> None:
        from scipy.linalg import cho_factor

        self.A = A
        K = K.copy()
        if len(A):  # Aᵀ A changes nothing in the null space, and may make K definite beside it
            sizes = np.linalg.norm(A, axis=1)
            rows = A / np.where(sizes > 0.0, sizes, 1.0)[:, None]
            K += float(np.diag(K).mean()) * (rows.T @ rows)
        diagonal = np.einsum("ii->i", K)
        diagonal += LIFT * max(float(diagonal.max(initial=0.0)), 1e-12)
        self._factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        if len(A):
            self._eliminate()

    def _eliminate(self) -> None:
        """Decompose A K⁻¹ Aᵀ, of which equations that depend on others are left out."""
        from scipy.linalg import solve_triangular

        half = solve_triangular(self._factor[0], self.A.T, lower=True, check_finite=False)
        schur = half.T @ half
        sizes = np.sqrt(np.diag(schur))
        self._sizes = np.where(sizes > 0.0, sizes, 1.0)
        values, vectors = np.linalg.eigh(schur / np.outer(self._sizes, self._sizes))
        independent = values > DEPENDENT * values.max()
        self._inverse, self._vectors = 1.0 / values[independent], vectors[:, independent]

    def solve(self, r: Array, b: Array | None = None) -> tuple[Array, Array]:
        """Return p and y of K p + Aᵀ y = r, A p = b, zero unless given."""
        from scipy.linalg import cho_solve

        p = cho_solve(self._factor, r, check_finite=False)
        if not len(self.A):
            return p, np.zeros(0)
        miss = self.A @ p if b is None else self.A @ p - b
        y = (self._vectors @ (self._inverse * (self._vectors.T @ (miss / self._sizes)))) / self._sizes
        return p - cho_solve(self._factor, self.A.T @ y, check_finite=False), y

    def projected(self, r: Array) -> tuple[Array, Array, Array]:
        """Return r - Aᵀ y, p of K p = r - Aᵀ y with A p = 0, and y.

        What r has of the rows of A is taken out of it, for near to a minimum it is almost all of it.
        """
        p, y = self.solve(r)
        if not len(self.A):
            return r, p, y
        r = r - self.A.T @ y
        p, more = self.solve(r)
        return r - self.A.T @ more, p, y + more


def newton_step(
    product: Callable[[Array], Array], near: Preconditioner, g: Array, c: Array, part: float, most: int
) -> tuple[Array, Array]:
    """Return p and y of (a), to a part of its first residual, after at most so many products."""
    p, y = near.solve(-g, -c)
    Hp = product(p)
    if not float(p @ Hp) > 0.0:  # NaN too
        return p, y
    r, z, more = near.projected(-g - near.A.T @ y - Hp)
    y, size = y + more, float(r @ z)
    enough, d = max(part * part * size, NEGLIGIBLE * float(p @ Hp)), z.copy()
    for _ in range(most):
        if size <= enough:
            break
        Hd = product(d)
        curvature = float(d @ Hd)
        if not curvature > LEAST_CURVATURE * float(d @ d):  # NaN too
            break
        length = size / curvature
        p = p + length * d
        r, z, more = near.projected(r - length * Hd)
        y = y + more
        before, size = size, float(r @ z)
        d = z + (size / before) * d
    return p, y
