"""The wrench that each joint transmits, from the motion: the F_i of Sohl and Bobrow (2001), (27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import run_batch, scratch_size
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples, refuse_overflow
from cstormpy.dynamics.regressor import inertial_numbers
from cstormpy.linkage.bodies import outwards

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


def joint_wrenches(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> Array:
    """Return F, (n_links, 6) or (N, n_links, 6); see `Mechanism.joint_wrenches`."""
    samples = read_samples(mech, {"q": q, "qd": qd, "qdd": qdd}, wrench, base)
    poses, needs = link_wrenches(mech, samples, threads)
    found: Array = transmitted(mech, samples, poses, needs)
    return samples.shaped(found)


def link_wrenches(mech: Linkage, samples: Samples, threads: int | None) -> tuple[Array, Array]:
    """Return the poses of all links, (N, n_links, 4, 4), and what joints must do to each of them, (N, n_links, 6).

    Loads from outside are taken off; moment and force are in the base's axes, at the link's origin.
    """
    from cstormpy.kernels import entries_wrenches as entries
    from cstormpy.linkage.tables import INVERSE, tables_of

    links = len(mech.links)
    poses, needs = samples.room(links, 16), samples.room(links, 6)
    numbers = inertial_numbers(mech)[None]
    arguments = (*samples.rows.values(), samples.wrench, samples.base, numbers, poses, needs)
    tables = tables_of(mech, INVERSE)
    run_batch(entries.link_wrench_lanes, tables, arguments, samples.count, scratch_size(mech, False), threads)
    refuse_overflow(samples, poses, needs)
    return poses.reshape(-1, links, 4, 4), needs


def transmitted(mech: Linkage, samples: Samples, poses: Any, needs: Any) -> Any:
    """Return what each joint transmits to its link, (N, n_links, 6), in the link's frame: what its subtree needs."""
    origins, R = poses[..., :3, 3], poses[..., :3, :3]
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        whole = needs.copy()
        for link in reversed(outwards(mech)):
            parent = int(mech.parents[link])
            if parent >= 0:
                arm = origins[:, link] - origins[:, parent]
                whole[:, parent] += moved_by(whole[:, link], arm)
        halves = whole.reshape(*whole.shape[:2], 2, 3)
        found = (halves @ R).reshape(whole.shape)
    refuse_overflow(samples, found)
    return found


def moved_by(wrench: Any, arm: Any) -> Any:
    """Return wrenches (..., 6) about points from which those where they act are `arm` away; numbers or symbols."""
    x, y, z = arm[..., 0], arm[..., 1], arm[..., 2]
    fx, fy, fz = wrench[..., 3], wrench[..., 4], wrench[..., 5]
    moment = np.stack([y * fz - z * fy, z * fx - x * fz, x * fy - y * fx], axis=-1)
    return np.concatenate([wrench[..., :3] + moment, wrench[..., 3:]], axis=-1)
