"""Sensitivities times a direction, and a gradient times sensitivities, without the matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import run_checked, scratch_size
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples, refuse_overflow
from cstormpy.sensitivity.hybrid import HybridSensitivity, hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.kernels.compiling import Entry
    from cstormpy.linkage import Linkage


def hybrid_jvp(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    dq: ArrayLike,
    dqd: ArrayLike,
    du: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> tuple[Array, Array]:
    """Return y and ∂y/∂q dq + ∂y/∂qd dqd + ∂y/∂u du, each (n,) or (N, n)."""
    from cstormpy.kernels import entries_directional as entries

    given = {"q": q, "qd": qd, "u": u, "dq": dq, "dqd": dqd, "du": du}
    samples = read_samples(mech, given, wrench, base)
    rows = samples.rows
    if samples.symbolic:
        found = _matrices(mech, samples, wrench, base)
        dy = found.dy_dq @ rows["dq"][0] + found.dy_dqd @ rows["dqd"][0] + found.dy_du @ rows["du"][0]
        return found.y, dy
    y, dy = np.empty_like(rows["q"]), np.empty_like(rows["q"])
    _run(mech, samples, entries.direction_lanes, (rows["dq"], rows["dqd"], rows["du"], y, dy), threads)
    refuse_overflow(samples, dy)
    return samples.shaped(y), samples.shaped(dy)


def hybrid_vjp(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    gy: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> tuple[Array, Array, Array, Array]:
    """Return y and gyᵀ ∂y/∂q, gyᵀ ∂y/∂qd, gyᵀ ∂y/∂u, each (n,) or (N, n)."""
    from cstormpy.kernels import entries_directional as entries

    samples = read_samples(mech, {"q": q, "qd": qd, "u": u, "gy": gy}, wrench, base)
    rows = samples.rows
    if samples.symbolic:
        found, g = _matrices(mech, samples, wrench, base), rows["gy"][0]
        return found.y, g @ found.dy_dq, g @ found.dy_dqd, g @ found.dy_du
    results = tuple(np.empty_like(rows["q"]) for _ in range(4))
    _run(mech, samples, entries.gradient_lanes, (rows["gy"], *results), threads)
    refuse_overflow(samples, *results)
    y, gq, gqd, gu = (samples.shaped(result) for result in results)
    return y, gq, gqd, gu


def _matrices(mech: Linkage, samples: Samples, wrench: WrenchLike, base: BaseLike) -> HybridSensitivity:
    """Return the sensitivities of one sample of symbols."""
    q, qd, u = (samples.rows[name][0] for name in ("q", "qd", "u"))
    return hybrid_sensitivity(mech, q, qd, u, wrench, base)


def _run(mech: Linkage, samples: Samples, kernel: Entry, rest: tuple[Array, ...], threads: int | None) -> None:
    from cstormpy.linkage.tables import tables_of

    rows = samples.rows
    arguments = (rows["q"], rows["qd"], rows["u"], samples.wrench, samples.base, *rest)
    run_checked(mech, kernel, tables_of(mech), arguments, samples, scratch_size(mech, False), threads)
