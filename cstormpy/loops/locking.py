"""Impulsive locking: joints that are brought to rest at once, and what that does to the other joints.

Impulses p in the locked joints, and λ in the loops, act while nothing moves on. With B the rows of the locked
coordinates in the unit matrix, above those of the loops' Jacobian A,

    M (q̇⁺ - q̇) = Bᵀ (p, λ),    B q̇⁺ = 0,    (p, λ) = -(B M⁻¹ Bᵀ)⁺ B q̇

so that the momenta M q̇ of all other joints stay as they are, and the kinetic energy falls by that of the rates that are
lost, ½ (q̇⁺ - q̇)ᵀ M (q̇⁺ - q̇) (Carnot). Of the mass matrix only the part of the joints that stay free is inverted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import entries
from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import read_samples
from cstormpy.dynamics.inertial import inertial
from cstormpy.errors import SingularInertia
from cstormpy.loops.assembly import LEAST
from cstormpy.loops.closure import closure_of

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


def lock(mech: Linkage, q: ArrayLike, qd: ArrayLike, joints: Iterable[str]) -> tuple[Array, Array]:
    """Return the rates behind the locking, and the impulses of all joints, each (n,) or (N, n)."""
    names = entries(joints, "joints")
    where = np.zeros(mech.n, dtype=bool)
    where[[k for name in names for k in mech.joint_indices(name)]] = True
    samples = read_samples(mech.tree, {"q": q, "qd": qd})
    rows = samples.rows
    A = closure_of(mech, rows["q"]).A if mech.loops else np.zeros((samples.count, 0, mech.n))
    after, impulse = samples.room(mech.n), samples.room(mech.n)
    masses = np.reshape(inertial(mech.tree, rows["q"]).mass_matrix, (samples.count, mech.n, mech.n))
    for k, (M, rates) in enumerate(zip(masses, rows["qd"], strict=True)):
        after[k], impulse[k] = _locked(M, rates, where, A[k])
        if not np.isfinite(after[k]).all():
            raise SingularInertia(
                f"lock: a joint beside {', '.join(names)} moves no inertia, so that its rate behind the locking is "
                "undefined; give the links that it moves mass or inertia, or the joint armature"
            )
    return samples.shaped(after), samples.shaped(impulse)


def _locked(M: Array, qd: Array, where: NDArray[np.bool_], A: Array) -> tuple[Array, Array]:
    """Return q̇⁺ and p of one sample."""
    free, change = ~where, np.where(where, -qd, 0.0)
    try:
        responses = np.linalg.solve(M[np.ix_(free, free)], np.column_stack([M[free] @ change, A[:, free].T]))
    except np.linalg.LinAlgError:
        return np.full(len(qd), np.nan), qd
    change[free], W = -responses[:, 0], responses[:, 1:]
    loads = np.zeros(len(qd))
    if len(A):
        opened = A @ (qd + change)
        multipliers = -np.linalg.pinv(A[:, free] @ W, rcond=LEAST, hermitian=True) @ opened
        change[free] += W @ multipliers
        loads = A.T @ multipliers
    return np.where(where, 0.0, qd + change), np.where(where, M @ change - loads, 0.0)
