"""Impulsive locking: joints that are brought to rest at once, and what that does to the other joints.

Impulses p in the locked joints, and λ in the loops, act while nothing moves on. With B the rows of the locked
coordinates in the unit matrix, above those of the loops' Jacobian A,

    M (q̇⁺ - q̇) = Bᵀ (p, λ),    B q̇⁺ = 0,    (p, λ) = -(B M⁻¹ Bᵀ)⁺ B q̇

so that the momenta M q̇ of all other joints stay as they are, and the kinetic energy falls by that of the rates that are
lost, ½ (q̇⁺ - q̇)ᵀ M (q̇⁺ - q̇) (Carnot). Of the mass matrix only the part of the joints that stay free is inverted,
with the inertia σ AᵀA that loops carry (`loops.carried`), which leaves the rates as they are and takes σ A (q̇⁺ - q̇)
from λ.

Derivatives of the rates behind an impulsive locking of joints, loops included.

The momenta M q̇ of the joints f that are not locked change by the loops' impulses alone, q̇⁺ of the others is zero, and
the loops stay closed (`loops.locking`). So, along a change δ of position, rates and numbers of the mechanism, with
v = q̇⁺ - q̇,

    M_ff δq̇⁺_f - A_fᵀ δλ = (M δq̇ - ∂(M v) + ∂(Aᵀ λ))_f,    A_f δq̇⁺_f = -(∂A) q̇⁺

where ∂ is of M and A at a constant v, λ and q̇⁺, and M v is the inverse dynamics of the accelerations v without rates,
less that of none. Where constraints are dependent, they stay so along the motion, and δq̇⁺ is the same whatever λ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import entries
from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import read_samples
from cstormpy.dynamics.inertial import inertial
from cstormpy.errors import SingularInertia
from cstormpy.linkage.components import Component
from cstormpy.linkage.scales import coordinate_scales
from cstormpy.linkage.tables import STILL
from cstormpy.loops.closure import LEAST, closure_of
from cstormpy.loops.opening import without_opening
from cstormpy.loops.parameters import constraint_rates
from cstormpy.loops.projection import row_scales
from cstormpy.sensitivity.hybrid import hybrid_sensitivity
from cstormpy.sensitivity.torque_rates import torque_rates

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


def lock(mech: Linkage, q: ArrayLike, qd: ArrayLike, joints: Iterable[str]) -> tuple[Array, Array]:
    """Return the rates behind the locking, and the impulses of all joints, each (n,) or (N, n)."""
    names = entries(joints, "joints")
    where = np.zeros(mech.n, dtype=bool)
    where[[k for name in names for k in mech.joint_indices(name)]] = True
    samples = read_samples(mech.tree, {"q": q, "qd": qd})
    rows = samples.rows
    A = np.zeros((samples.count, 0, mech.n))
    if mech.loops:
        A = without_opening(mech, closure_of(mech, rows["q"])).A / row_scales(mech)[:, None]
    after, impulse = samples.room(mech.n), samples.room(mech.n)
    masses = np.reshape(inertial(mech.tree, rows["q"]).mass_matrix, (samples.count, mech.n, mech.n))
    for k, (M, rates) in enumerate(zip(masses, rows["qd"], strict=True)):
        after[k], impulse[k] = _locked(M, rates, where, A[k], coordinate_scales(mech))
        if not np.isfinite(after[k]).all():
            raise SingularInertia(
                f"lock: a joint beside {', '.join(names)} moves no inertia, so that its rate behind the locking is "
                "undefined; give the links that it moves mass or inertia, or the joint armature"
            )
    return samples.shaped(after), samples.shaped(impulse)


def _locked(M: Array, qd: Array, where: NDArray[np.bool_], A: Array, units: Array) -> tuple[Array, Array]:
    """Return q̇⁺ and p of one sample."""
    free, change = ~where, np.where(where, -qd, 0.0)
    inner, sigma = _with_loops(M, A, free, units)
    try:
        responses = np.linalg.solve(inner, np.column_stack([M[free] @ change, A[:, free].T]))
    except np.linalg.LinAlgError:
        return np.full(len(qd), np.nan), qd
    change[free], W = -responses[:, 0], responses[:, 1:]
    loads = np.zeros(len(qd))
    if len(A):
        opened = A @ (qd + change)
        multipliers = -np.linalg.pinv(A[:, free] @ W, rcond=LEAST, hermitian=True) @ opened
        change[free] += W @ multipliers
        loads = A.T @ (multipliers - sigma * (A[:, free] @ change[free]))
    return np.where(where, 0.0, qd + change), np.where(where, M @ change - loads, 0.0)


def _with_loops(M: Array, A: Array, free: NDArray[np.bool_], units: Array) -> tuple[Array, float]:
    """Return M_ff + σ A_fᵀ A_f and σ, of constraints in parts of their sizes: the two are of one size in any units."""
    sigma = float(np.diag(M) @ units**2) / max(1, len(M))
    return M[np.ix_(free, free)] + sigma * (A[:, free].T @ A[:, free]), sigma


def locked_tangents(
    mech: Linkage,
    q: Array,
    before: Array,
    after: Array,
    where: NDArray[np.bool_],
    tangents: Array,
    parts: Sequence[Component] = (),
) -> Array:
    """Return derivatives (2n, k) of the state behind the locking from those before.

    Parameters
    ----------
    mech : Linkage
    q, before, after : ndarray, (n,)
        Position, and rates before and behind the locking.
    where : ndarray of bool, (n,)
        The coordinates that are locked.
    tangents : ndarray, (2n, k)
        Derivatives of position and rates before.
    parts : sequence of Component
        The numbers of the mechanism to which the last of these are derivatives.
    """
    n, free = mech.n, ~where
    rows = np.stack([q, q]), np.zeros((2, n)), np.stack([before - after, np.zeros(n)])
    d = hybrid_sensitivity(mech.tree, *rows, drive=STILL, name="qdd")
    M = d.dy_du[0]
    momenta = M @ tangents[n:] + (d.dy_dq[0] - d.dy_dq[1]) @ tangents[:n]
    if parts:
        r = torque_rates(mech.tree, parts, *rows)
        momenta[:, -len(parts) :] += r[0] - r[1]
    found = np.array(tangents, dtype=float)
    found[n:][where] = 0.0
    A, dA = _constraints(mech, q, tangents, parts) if mech.loops else (np.zeros((0, n)), np.zeros(0))
    inner, _ = _with_loops(M, A, free, coordinate_scales(mech))
    found[n:][free] = np.linalg.solve(inner, momenta[free])
    if mech.loops:
        impulse = (M @ (after - before))[free]
        lam = np.linalg.pinv(A[:, free].T, rcond=LEAST) @ impulse
        W = np.linalg.solve(inner, A[:, free].T)
        pull = np.linalg.solve(inner, np.einsum("mnk,m->nk", dA, lam)[free])
        rates = found[n:][free] + pull
        left = A[:, free] @ rates + np.einsum("mnk,n->mk", dA, after)
        found[n:][free] = rates - W @ (np.linalg.pinv(A[:, free] @ W, rcond=LEAST, hermitian=True) @ left)
    return found


def _constraints(mech: Linkage, q: Array, tangents: Array, parts: Sequence[Component]) -> tuple[Array, Array]:
    """Return A (m, n), and its derivatives (m, n, k) along the tangents, the last of them to these numbers, too.

    Both are of constraints in parts of their sizes.
    """
    closed = closure_of(mech, q[None])
    dA = closed.slopes()[0] @ tangents[: mech.n]
    if parts:
        dA[..., -len(parts) :] += constraint_rates(mech, closed, parts, q[None], np.zeros((1, mech.n)))[0][0]
    rows = row_scales(mech)[:, None]
    return closed.A[0] / rows, dA / rows[..., None]
