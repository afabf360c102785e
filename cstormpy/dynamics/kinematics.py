"""Poses of links, their body Jacobians, and how the Jacobians change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import run_batch, scratch_size
from cstormpy.dynamics.checked_arguments import link_index, read_samples, refuse_overflow

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


def forward_kinematics(mech: Linkage, q: ArrayLike, threads: int | None = 1) -> Array:
    """Return the poses of all links in the base's frame, (n_links, 4, 4) or (N, n_links, 4, 4)."""
    from cstormpy.kernels import entries_kinematics as entries
    from cstormpy.linkage.tables import tables_of

    samples = read_samples(mech, {"q": q})
    out = samples.room(len(mech.links), 16)
    arguments = (samples.rows["q"], out)
    run_batch(entries.pose_lanes, tables_of(mech), arguments, samples.count, scratch_size(mech, False), threads)
    refuse_overflow(samples, out)
    return samples.shaped(out.reshape(*out.shape[:2], 4, 4))


def jacobian(
    mech: Linkage, q: ArrayLike, link: str | int, qd: ArrayLike | None = None, threads: int | None = 1
) -> tuple[Array, Array]:
    """Return the body Jacobian of a link and its rate, each (6, n) or (N, 6, n)."""
    from cstormpy.kernels import entries_kinematics as entries
    from cstormpy.linkage.tables import tables_of

    samples = read_samples(mech, {"q": q} if qd is None else {"q": q, "qd": qd})
    index = link_index(mech, link)
    out, rate = samples.zeros(6, mech.n), samples.zeros(6, mech.n)
    rows = samples.rows
    arguments = (rows["q"], rows.get("qd", np.zeros(rows["q"].shape)), index, out, rate)
    run_batch(entries.jacobian_lanes, tables_of(mech), arguments, samples.count, scratch_size(mech, False), threads)
    refuse_overflow(samples, out, rate)
    return samples.shaped(out), samples.shaped(rate)


def jacobian_derivative(mech: Linkage, q: ArrayLike, link: str | int, threads: int | None = 1) -> Array:
    """Return H with H[..., :, j, k] = ∂J_j/∂q_k, (6, n, n) or (N, 6, n, n).

    In the link's own frame a joint k turns the column of a joint j that carries it: ∂J_j/∂q_k = ad_{J_j} J_k. A
    rotation vector also changes its own columns: what it changes is the rate of J at a unit rate of one component.
    """
    J, _ = jacobian(mech, q, link, None, threads)
    order = places_on_path(mech, link_index(mech, link))
    omega, v = J[..., :3, :, None], J[..., 3:, :, None]
    omega_k, v_k = J[..., :3, None, :], J[..., 3:, None, :]
    turned = np.cross(omega, omega_k, axis=-3)
    shifted = np.cross(omega, v_k, axis=-3) + np.cross(v, omega_k, axis=-3)
    inner = (order[:, None] >= 0) & (order[:, None] < order[None, :])
    H: Array = np.where(inner, np.concatenate([turned, shifted], axis=-3), 0.0)
    for k in (first + j for first in mech.ball_starts if order[first] >= 0 for j in range(3)):
        unit = np.zeros(J[..., 0, :].shape)
        unit[..., k] = 1.0
        H[..., k] = jacobian(mech, q, link, unit, threads)[1]
    return H


def coordinates_to(mech: Linkage, link: int) -> list[int]:
    """Return the coordinates on the way from the base to a link, in that order; none for -1, the base."""
    path: list[int] = []
    while link >= 0:
        path += np.flatnonzero(mech.joint_links == link)[::-1].tolist()
        link = int(mech.parents[link])
    return path[::-1]


def places_on_path(mech: Linkage, link: int) -> NDArray[np.int64]:
    """Return, for each coordinate, its place on the way from the base to a link, or -1."""
    path = coordinates_to(mech, link)
    places = np.full(mech.n, -1)
    places[path] = np.arange(len(path))
    return places
