"""Equations of a log: torques of joints, of closed mechanisms with the unknown forces of the loops eliminated.

In an open mechanism each row of a log is an equation Y π + r = τ for each joint. In a closed one there are the forces
of the loops as well, Y π + r = τ + Aᵀ λ, with A q̇ = 0 the constraints. With N an orthonormal basis of what they leave
free, A N = 0, the multipliers drop out,

    (a)  Nᵀ (Y π + r) = Nᵀ τ

(after Nakamura and Ghodoussi, Dynamics computation of closed-link robot mechanisms with nonredundant and redundant
actuators, IEEE Trans. Robotics and Automation 5(3), 1989, 294-302): one equation for each freedom. The noise of the
motors' torques, of variances Σ, is that of these equations weighed by

    (b)  C⁻¹ᐟ² Nᵀ,    C = Nᵀ Σ N

and of what they miss, d, the motors have most probably missed ê = Σ N C⁻¹ d. The variances follow from ê by repeating

    (c)  σ_j² = Σ ê_j² / Σ h_j,    h = diag(Σ N C⁻¹ᐟ² (1 − U Uᵀ) C⁻¹ᐟ² Nᵀ)

with U an orthonormal basis of what the unknowns do to the weighed equations, of which each row has its part, and where
h_j tells which part of the noise of a motor shows (W. Förstner, Ein Verfahren zur Schätzung von Varianz- und
Kovarianzkomponenten, Allgemeine Vermessungs-Nachrichten 86, 1979, 446-453): all of it, h_j = 1, but for what goes into
the unknowns, unless there are more motors than freedoms. Where motors drive not all freedoms, any joint may have noise.

As the posture changes N does by dN = −A⁺ dA N and columns of N, so that P = N C⁻¹ Nᵀ does by

    (d)  dP = dN C⁻¹ Nᵀ + N C⁻¹ dNᵀ + N V [Γ ∘ Vᵀ dC V] Vᵀ Nᵀ,    dC = dNᵀ Σ N + Nᵀ Σ dN
    (e)  Γᵢⱼ = −(mᵢ − mⱼ) / (mᵢ mⱼ (cᵢ − cⱼ))

with V the eigenvectors of C, c its eigenvalues, and m these where the motors push, else what is put for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.linkage.scales import coordinate_scales, torque_scales
from cstormpy.loops.closed_motions import free_directions, least_of
from cstormpy.loops.closure import closure_of

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

#: A direction in which motors push by less than this part of the most has the noise of that.
LEVERAGE = 1e-3
#: Most repetitions of (c), and the relative change of a variance that ends them.
ROUNDS, SETTLED = 100, 1e-6
#: At least this part of the noise of a joint or signal shows in what is left of it.
LEAST_SHOWN = 1e-6
#: Eigenvalues that differ by less than this part of the greatest are equal.
ROUNDING = 1e-7


@dataclass(frozen=True)
class OpenEquations:
    """Torques of all joints of an open mechanism in so many rows.

    Attributes
    ----------
    rows : int
    torques : ndarray, (n,)
        Ordinary sizes of them.
    """

    rows: int
    torques: Array

    @property
    def count(self) -> int:
        """Number of equations."""
        return self.rows * len(self.torques)

    @property
    def text(self) -> str:
        """What the equations are, for messages."""
        return f"{self.rows} rows of {len(self.torques)} joints"

    @property
    def noisy(self) -> NDArray[np.bool_]:
        """The joints whose torques have noise, (n,)."""
        return np.ones(len(self.torques), dtype=bool)

    def reduced(self, x: Array) -> Array:
        """Return the left side of the equations, (N, n, ...), of torques (N, n, ...), in parts of their sizes."""
        return x / self.torques.reshape(-1, *(1,) * (x.ndim - 2))

    def weighed(self, x: Array, sigma: Array) -> Array:
        """Return that side, of torques (N, n, ...), with noise of standard deviation 1."""
        return x / sigma.reshape(-1, *(1,) * (x.ndim - 2))

    def missed(self, x: Array, sigma: Array) -> Array:
        """Return what torques the joints have most probably missed, (N, n), from torques up to forces of loops."""
        return x

    def spread(self, y: Array, sigma: Array) -> Array:
        """Return the transpose of `weighed` of equations (N, n, ...), (N, n, ...)."""
        return self.weighed(y, sigma)

    def turned(self, G: Array, sigma: Array) -> Array:
        """Return the derivatives of Σ Gᵢⱼ Pᵢⱼ to q, (N, n): none, as P is the same in all postures."""
        return np.zeros(G.shape[:2])

    def noise(self, x: Array, sigma: Array, U: Array) -> Array:
        """Return the standard deviations (n,) from what is missed, with U (N, n, k) of what the unknowns do: (c)."""
        return np.sqrt((x**2).mean(axis=0) / np.maximum(1.0 - (U**2).sum(axis=2).mean(axis=0), LEAST_SHOWN))


@dataclass(frozen=True)
class ClosedEquations:
    """Equations of the freedoms of a closed mechanism in some rows.

    Attributes
    ----------
    basis : ndarray, (N, n, f)
        N of (a), of torques in parts of their sizes; zero columns where a row has fewer freedoms.
    torques : ndarray, (n,)
        Ordinary sizes of the torques of the joints.
    noisy : ndarray of bool, (n,)
        The joints whose torques have noise.
    turning : callable
        Of X (N, n, n) the derivatives of tr(X A⁺ A) to the q of A, with A⁺ held, (N, n).
    """

    basis: Array
    torques: Array
    noisy: NDArray[np.bool_]
    turning: Callable[[Array], Array]

    @classmethod
    def of(cls, mech: Mechanism, q: Array, rows: Any = slice(None)) -> ClosedEquations:
        """Return those of closed postures (N, n), or where `rows` of the constraints are all that count of any ones."""
        units, torques, found = coordinate_scales(mech), torque_scales(mech), closure_of(mech, q)
        basis = free_directions(mech, found.A[:, rows], rows) / units[:, None]
        motors = mech.actuated_mask
        drives = np.linalg.matrix_rank(basis[:, motors], tol=LEVERAGE)
        driven = (drives >= (basis != 0.0).any(axis=1).sum(axis=1)).mean() > 0.5
        noisy = motors.copy() if driven else np.ones(mech.n, dtype=bool)

        def turning(X: Array) -> Array:
            return np.einsum("sjm,smjk->sk", X @ least_of(mech, found.A[:, rows], rows), found.slopes()[:, rows])

        return cls(basis / torques[:, None], torques, noisy, turning)

    @property
    def count(self) -> int:
        """Number of equations."""
        return int((self.basis != 0.0).any(axis=1).sum())

    @property
    def text(self) -> str:
        """What the equations are, for messages."""
        return f"{len(self.basis)} rows of {self.basis.shape[2]} freedoms"

    def reduced(self, x: Array) -> Array:
        """Return the left side of the equations, (N, f, ...), of torques (N, n, ...): (a)."""
        return np.asarray(np.einsum("snf,sn...->sf...", self.basis, x))

    def weighed(self, x: Array, sigma: Array) -> Array:
        """Return that side, of torques (N, n, ...), with noise of standard deviation 1: (b)."""
        return np.asarray(np.einsum("sfg,sf...->sg...", self._root(sigma), self.reduced(x)))

    def spread(self, y: Array, sigma: Array) -> Array:
        """Return the transpose of `weighed` of equations (N, f, ...), (N, n, ...)."""
        return np.asarray(np.einsum("snf,sf...->sn...", self.basis @ self._root(sigma), y))

    def turned(self, G: Array, sigma: Array) -> Array:
        """Return the derivatives of Σ Gᵢⱼ Pᵢⱼ, G (N, n, n) symmetric, to q, (N, n): (d) and (e)."""
        N = self.basis
        values, held, V = self._spectrum(sigma)
        between = values[:, :, None] - values[:, None, :]
        equal = np.abs(between) <= ROUNDING * held[:, -1:, None]
        ratio = (held[:, :, None] - held[:, None, :]) / np.where(equal, 1.0, between)
        same = (values == held)[:, :, None] & (values == held)[:, None, :]
        ratio = np.where(equal, same, ratio)
        left = np.swapaxes(N @ V, 1, 2)
        seen = left @ G @ np.swapaxes(left, 1, 2)
        D = -ratio / (held[:, :, None] * held[:, None, :]) * seen
        back = left @ G / held[:, :, None] + D @ (left * sigma**2)
        return -2.0 * self.turning(np.swapaxes(left, 1, 2) @ back)

    def missed(self, x: Array, sigma: Array) -> Array:
        """Return what torques the joints have most probably missed, (N, n), from torques up to forces of loops."""
        return self._estimated(self.reduced(x), sigma)[0]

    def noise(self, x: Array, sigma: Array, U: Array) -> Array:
        """Return the standard deviations (n,) from what is missed, with U (N, f, k) of what the unknowns do: (c)."""
        d, variances, on = self.reduced(x), sigma**2, self.noisy
        for _ in range(ROUNDS):
            e, ways = self._estimated(d, np.sqrt(variances))
            squares, whole = (e**2).sum(axis=0), variances * (ways**2).sum(axis=(0, 2))
            seen = np.maximum(whole - variances * ((ways @ U) ** 2).sum(axis=(0, 2)), LEAST_SHOWN * whole)
            before, variances = variances, np.where(on, squares / np.where(seen > 0.0, seen, np.inf), 0.0)
            change, parts = (v / self.torques**2 for v in (variances - before, variances))
            if not variances.any() or (np.abs(change) <= SETTLED * parts.max()).all():
                break
        return np.sqrt(variances)

    def _root(self, sigma: Array) -> Array:
        """Return C⁻¹ᐟ² (N, f, f)."""
        _, values, vectors = self._spectrum(sigma)
        return np.asarray(vectors / np.sqrt(values)[:, None] @ np.swapaxes(vectors, 1, 2))

    def _spectrum(self, sigma: Array) -> tuple[Array, Array, Array]:
        """Return the eigenvalues of C, what they count as, (N, f) each, and its eigenvectors."""
        half = sigma[:, None] * self.basis
        values, vectors = np.linalg.eigh(np.swapaxes(half, 1, 2) @ half)
        least = (LEVERAGE * max(float((sigma / self.torques).max()), 1e-150)) ** 2
        return values, np.maximum(values, least), vectors

    def _estimated(self, d: Array, sigma: Array) -> tuple[Array, Array]:
        """Return ê (N, n) of equations that are missed by d (N, f), and N C⁻¹ᐟ² (N, n, f)."""
        root = self._root(sigma)
        ways = self.basis @ root
        return sigma**2 * np.einsum("snf,sfg,sg->sn", ways, root, d), ways


def told(J: Array, rank: float) -> tuple[Array, Array, Array]:
    """Return the singular values of J above this part of the greatest, between the vectors to them."""
    left, values, rows = np.linalg.svd(J, full_matrices=False)
    kept = values > rank * values.max(initial=0.0)
    return left[:, kept], values[kept], rows[kept]


def equations_of(mech: Mechanism, q: Array, rows: Any = slice(None)) -> OpenEquations | ClosedEquations:
    """Return the equations of rows of a log at positions (N, n), which close the loops if there are some.

    Nearly closed ones will do with independent `rows` of the constraints.
    """
    return ClosedEquations.of(mech, q, rows) if mech.loops else OpenEquations(len(q), torque_scales(mech))
