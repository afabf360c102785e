"""Answers of the open chain of a closed mechanism, also where the chain alone has none: of a massless coupler.

A joint that moves no inertia of its own has no acceleration in the open chain, though the loops may determine it. With
closed motions, A q̈ + Ȧ q̇ = 0, the equations stay true when A's rows carry an inertia σ,

    (a)  M̂ = M + Aᵀ σ A,    ĥ = h + Aᵀ σ Ȧ q̇

(an augmented Lagrangian: Bayo, García de Jalón and Serna 1988, with the exact multipliers), and M̂ is definite wherever
the closed mechanism is sound. y of this chain, and its derivatives, with v the passive and u the active joints:

    (b)  q̈_v = M̂_vv⁻¹ (τ_v - ĥ_v - M̂_vu q̈_u),    τ_u = ĥ_u + M̂_uu q̈_u + M̂_uv q̈_v
    (c)  dq̈_v = -M̂_vv⁻¹ dr_v,    dτ_u = dr_u + M̂_uv dq̈_v,    r the inverse dynamics

What σ adds to dr is Aᵀ σ times what the constraints change by; the derivatives of closed motions are the same without
it, and their multipliers differ by σ times that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import Samples
from cstormpy.errors import SingularInertia
from cstormpy.graph import require_zero
from cstormpy.graph.arrays import symbols, zeros
from cstormpy.graph.linear_algebra import solve_definite
from cstormpy.loops.closure import Closure, closure_of
from cstormpy.loops.projection import coarse_scales
from cstormpy.sensitivity.hybrid import HybridSensitivity, hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

DEFINITE = 1e-11
"""Symbols take constraints for dependent that share all of their motion but such a part; numbers are asked then."""


class OpenChain:
    """Answers y (N, n) of the open chain and their derivatives D (N, n, k) to q, q̇, u, and to the base, side by side.

    Parameters
    ----------
    mech : Linkage
    found : Closure
        The constraints where the samples are.
    samples : Samples
        q, q̇ and u, with what acts from outside.
    drive, name, wrench, base, threads, to_base
        As for `hybrid_sensitivity`.
    by_loops : bool
        Whether the loops are known to carry joints that move no inertia; of numbers that is found out.

    Attributes
    ----------
    sigma : ndarray (N, m) or None
        σ of each constraint, where the loops carry joints.
    """

    def __init__(
        self,
        mech: Linkage,
        found: Closure,
        samples: Samples,
        drive: str,
        name: str,
        wrench: Any = None,
        base: Any = None,
        threads: int | None = 1,
        to_base: bool = False,
        by_loops: bool = False,
    ) -> None:
        self._mech, self._found, self._samples = mech, found, samples
        self._active = mech.active_mask if drive == "own" else np.full(mech.n, drive == "inverse")
        self._drive, self._name = drive, name
        self._outside = (wrench, base, threads, to_base)
        self.sigma: Any = None
        if by_loops:
            self._carry()

    def ask(self, u: Array) -> tuple[Array, Array]:
        """Return y and D under u (N, n)."""
        if self.sigma is None:
            try:
                d = self._hybrid(u, self._drive, self._name)
            except SingularInertia as alone:
                self._carry(alone)
            else:
                return d.y.reshape(u.shape), side_by_side(d, self._outside[3])
        return self._carried(u)

    def _hybrid(self, u: Array, drive: str, name: str) -> HybridSensitivity:
        q, qd, u = (self._samples.shaped(x) for x in (*list(self._samples.rows.values())[:2], u))
        return hybrid_sensitivity(self._mech.tree, q, qd, u, *self._outside, drive, name)

    def _carry(self, alone: SingularInertia | None = None) -> None:
        """Find M̂, its inverse in the passive joints, and ĥ; raise what the open chain alone says where it has none."""
        rates = list(self._samples.rows.values())[1]
        d = self._hybrid(np.zeros(rates.shape), "inverse", "qdd")
        n, A = self._mech.n, self._found.A
        mass = d.columns.reshape(-1, 3, n, n)[:, 2]
        self.sigma = inertia_of_loops(self._mech, mass)
        transposed = np.swapaxes(A, -1, -2)
        self._mass = mass + transposed @ (self.sigma[..., None] * A)
        bias = (self._found.rate(rates) @ rates[..., None])[..., 0]
        load = (transposed @ (self.sigma * bias)[..., None])[..., 0]
        self._rest = d.y.reshape(rates.shape) + load
        self._inverse = inverse_within(self._mech, self._mass, ~self._active, alone)

    def _carried(self, u: Array) -> tuple[Array, Array]:
        """Return y and D by (b) and (c)."""
        n, on = self._mech.n, self._active
        given = self._rest + (self._mass @ np.where(on, u, 0.0)[..., None])[..., 0] - np.where(on, 0.0, u)
        found = -(self._inverse @ given[..., None])[..., 0]
        y = np.where(on, given + (self._mass @ found[..., None])[..., 0], found)
        d = self._hybrid(np.where(on, u, y), "inverse", "qdd")
        P = side_by_side(d, self._outside[3])
        P[:, :, 2 * n : 3 * n] = np.where(on, self._mass, -np.eye(n))
        rates = -self._inverse @ P
        return y, np.where(on[:, None], P + self._mass @ rates, rates)


def side_by_side(d: HybridSensitivity, to_base: bool) -> Array:
    """Return the derivatives of an open chain to q, q̇, u, and to the base if they were asked for, (N, n, k)."""
    n = d.columns.shape[-1]
    D = np.moveaxis(d.columns.reshape(-1, 3, n, n), 1, 2).reshape(-1, n, 3 * n)
    return np.concatenate([D, d.dy_dbase.reshape(-1, n, 12)], axis=2) if to_base else D.copy()


def carried_inverse_mass(mech: Linkage, q: Array) -> Array:
    """Return M̂⁻¹ at a posture (n,), in which a state is closed by the same change as in M⁻¹."""
    still = np.zeros(mech.n)
    mass = hybrid_sensitivity(mech.tree, q, still, still, drive="inverse", name="qdd").dy_du
    A = closure_of(mech, q[None]).A[0]
    whole = mass + A.T @ (inertia_of_loops(mech, mass[None])[0][:, None] * A)
    return np.asarray(inverse_within(mech, whole[None], np.ones(mech.n, dtype=bool))[0])


def inertia_of_loops(mech: Linkage, mass: Array) -> Array:
    """Return σ of each constraint (N, m): of the size of the joints' inertia (N, n, n), each in its own units."""
    rows, units = coarse_scales(mech)
    return np.trace(mass * units**2, axis1=1, axis2=2)[:, None] / mech.n / rows**2


def inverse_within(mech: Linkage, mass: Array, where: NDArray[np.bool_], alone: SingularInertia | None = None) -> Array:
    """Return the inverse of a part of matrices (N, n, n), zeros around it; raise an error where there is none."""
    k = np.flatnonzero(where)
    out = zeros(mass.shape, mass)
    at = np.ix_(np.arange(len(mass)), k, k)
    units = coarse_scales(mech)[1][k]
    unit = np.outer(units, units)
    part = mass[at] * unit
    if mass.dtype == object:
        found, indefinite = solve_definite(part[0], np.eye(len(k)), DEFINITE)
        require_zero(indefinite)
        out[at] = (symbols(found) * unit)[None]
        return out
    values = np.linalg.eigvalsh(part) if len(k) else np.ones((len(mass), 1))
    if not (values[:, 0] > DEFINITE * values[:, -1]).all():
        raise alone or SingularInertia("the loops leave a joint that moves no inertia free, so that it has no motion")
    out[at] = np.linalg.inv(part) * unit
    return out
