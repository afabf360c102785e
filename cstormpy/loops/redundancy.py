"""Redundant actuation: how joints that the loops tie to each other share a load.

Multipliers λ + N z, with N the null space of what the other joints feel of the loops, make the same motion; the torques
of those that share are then τ - B z, B = A_aᵀ N. Of these are taken

    (a)  the least torque, Kim (63), (64), (66):    min |τ - B z|²,         Bᵀ τ = 0
    (b)  the least weighted torque:                 min τᵀ W τ = |L τ|²,    Bᵀ W τ = 0,    W = Lᵀ L
    (c)  the least multipliers, after Kim (61)

As A changes by dA, and the torques by dτ_u before the share of λ that the others do not feel is looked at, that share
changes, with σ = W τ_u, by

    (d)  (Bᵀ W B) z = Nᵀ (dA_u σ - dA_v A_v⁺ A_u σ + A_u W dτ_u),    dλ += N z
    (e)  dλ += (1 - A A⁺) dA A⁺ λ

of the least λ alone (e) with A_v in place of A. They hold while the ranks stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidValue
from cstormpy.loops.closure import LEAST

Redundancy = str | ArrayLike | None

_SYMMETRIC = 1e-12
"""Weights that differ from their transpose by no more than this part of the greatest are symmetric."""


def weights_of(redundancy: Redundancy, joints: Sequence[str]) -> Array | None:
    """Return the factor L of the weights of joints that share a load; None for the least multipliers.

    Raises
    ------
    InvalidValue, ShapeError, NonFinite, InvalidType
        For a word that is none, or weights that are no positive vector or positive definite matrix of these joints.
    """
    k = len(joints)
    if redundancy is None or isinstance(redundancy, str):
        if redundancy not in (None, "torque", "force"):
            raise InvalidValue(f"redundancy: expected 'torque', 'force' or weights, got {redundancy!r:.60}")
        return None if redundancy == "force" else np.eye(k)
    which = ", ".join(joints) or "there are none, as none is active"
    W = real_array(
        redundancy, "redundancy", (k,), (k, k), hint=f"weights, one for each of the joints that share a load: {which}"
    )
    if W.ndim == 1:
        if (W <= 0.0).any():
            bad = int(np.argmin(W))
            raise InvalidValue(f"redundancy: the weight of joint {joints[bad]!r} must be positive, got {W[bad]:g}")
        return np.diag(np.sqrt(W))
    if np.abs(W - W.T).max(initial=0.0) > _SYMMETRIC * np.abs(W).max(initial=0.0):
        i, j = divmod(int(np.argmax(np.abs(W - W.T))), k)
        raise InvalidValue(
            f"redundancy: weights must be symmetric, but that of {joints[i]!r} with {joints[j]!r} is {W[i, j]:g}, and "
            f"the other way {W[j, i]:g}"
        )
    values = np.linalg.eigvalsh(W)
    if k and values[0] <= np.finfo(float).eps * k * max(values[-1], 0.0):
        raise InvalidValue(f"redundancy: weights must be positive definite; their least eigenvalue is {values[0]:g}")
    return np.asarray(np.linalg.cholesky(W).T)


def least_torque(A: Array, lam: Array, torque: Array, sharing: NDArray[np.bool_], L: Array) -> Array:
    """Return multipliers that act in the same way on the other joints, of the least weighted torque: (a) and (b).

    `torque` is that of the joints that share the load, under the multipliers that are given.
    """
    N = null_space(np.where(sharing, 0.0, A).T)
    B = L @ (A[:, sharing].T @ N)
    scale = float(np.abs(A).max(initial=0.0)) * float(np.abs(L).max(initial=0.0))
    return lam + N @ (pseudoinverse(B, scale) @ (L @ torque))


def unfelt_change(
    A: Array, dA: Array, lam: Array, tau: Array, d_tau: Array, sharing: NDArray[np.bool_], L: Array | None
) -> Array:
    """Return what of dλ (m, k) the joints that do not share the load do not feel, by (d) and (e); L of `weights_of`."""
    scale = float(np.abs(A).max(initial=0.0))
    A_v, A_u = A[:, ~sharing], A[:, sharing]
    if L is None:
        dA_v = dA[:, ~sharing]
        inverse = pseudoinverse(A_v, scale)
        change = np.einsum("mnk,n->mk", dA_v, inverse @ lam)
        return np.asarray(change - A_v @ (inverse @ change))
    N, inverse = null_space(A_v.T), pseudoinverse(A_v, scale)
    B, weights = L @ A_u.T @ N, L.T @ L
    load = weights @ tau
    turned = np.einsum("mnk,n->mk", dA[:, sharing], load)
    turned -= np.einsum("mnk,n->mk", dA[:, ~sharing], inverse @ (A_u @ load))
    z = pseudoinverse(B.T @ B, (scale * np.abs(L).max()) ** 2) @ (N.T @ (turned + A_u @ (weights @ d_tau)))
    whole = pseudoinverse(A, scale)
    change = np.einsum("mnk,n->mk", dA, whole @ lam)
    return np.asarray(N @ z + change - A @ (whole @ change))


def pseudoinverse(X: Array, scale: float) -> Array:
    """Return X⁺, singular values below a part of the scale counting as zero."""
    if not X.size:
        return np.zeros(X.shape[::-1])
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    inverse = np.where(s > LEAST * scale, 1.0 / np.where(s > LEAST * scale, s, 1.0), 0.0)
    return np.asarray((Vt.T * inverse) @ U.T)


def matrix_rank(X: Array, scale: float) -> int:
    """Return the rank of X, singular values below a part of the scale counting as zero."""
    return int(np.linalg.matrix_rank(X, tol=LEAST * scale)) if X.size else 0


def null_space(X: Array) -> Array:
    """Return orthonormal columns that span what X takes to zero."""
    if not X.size:
        return np.eye(X.shape[1])
    _, s, Vt = np.linalg.svd(X)
    return np.asarray(Vt[int((s > LEAST * s[0]).sum()) :].T)
