"""Directional forms of the sensitivities of closed mechanisms: from their matrices, which loops fill anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike, read_samples
from cstormpy.loops.sensitivity import ClosedSensitivity, closed_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


def closed_jvp(
    mech: Linkage,
    given: dict[str, ArrayLike],
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> tuple[Array, Array]:
    """Return y and its derivative along dq, dqd and du, each (n,) or (N, n); `given` has them beside q, qd and u."""
    d, directions = _asked(mech, given, wrench, base, threads)
    matrices = (d.dy_dq, d.dy_dqd, d.dy_du)
    return d.y, sum((D @ x[..., None])[..., 0] for D, x in zip(matrices, directions, strict=True))


def closed_vjp(
    mech: Linkage,
    given: dict[str, ArrayLike],
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> tuple[Array, Array, Array, Array]:
    """Return y and the gradients to q, qd and u of gy · y, each (n,) or (N, n); `given` has gy beside q, qd and u."""
    d, (g,) = _asked(mech, given, wrench, base, threads)
    to_q, to_qd, to_u = ((g[..., None, :] @ D)[..., 0, :] for D in (d.dy_dq, d.dy_dqd, d.dy_du))
    return d.y, to_q, to_qd, to_u


def _asked(
    mech: Linkage, given: dict[str, ArrayLike], wrench: WrenchLike, base: BaseLike, threads: int | None
) -> tuple[ClosedSensitivity, list[Any]]:
    """Return the sensitivities, and what is given beside q, qd and u."""
    samples = read_samples(mech.tree, given, wrench, base)
    q, qd, u, *others = (samples.shaped(rows) for rows in samples.rows.values())
    return closed_sensitivity(mech, q, qd, u, wrench, base, threads), others
