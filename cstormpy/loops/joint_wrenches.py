"""The wrench that each joint of a closed mechanism transmits: that of its tree, which the loops' wrenches act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array, real_array
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples
from cstormpy.dynamics.joint_wrenches import link_wrenches, moved_by, transmitted
from cstormpy.errors import InvalidValue
from cstormpy.graph.arrays import symbols, zeros
from cstormpy.linkage.loops import Loop
from cstormpy.loops.assembly import refuse_open
from cstormpy.loops.closure import closure_of, constraint_names
from cstormpy.loops.dynamics import closed_inverse, wrenches_of
from cstormpy.loops.redundancy import Redundancy

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


def closed_joint_wrenches(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    redundancy: Redundancy = None,
    multipliers: ArrayLike | None = None,
) -> Array:
    """Return F, (n_links, 6) or (N, n_links, 6); see `Mechanism.joint_wrenches`."""
    samples = read_samples(mech.tree, {"q": q, "qd": qd, "qdd": qdd}, wrench, base)
    if multipliers is None:
        multipliers = closed_inverse(mech, q, qd, qdd, wrench, base, threads, redundancy).multipliers
    elif redundancy is not None:
        raise InvalidValue("redundancy: chooses multipliers, which are given; leave one of both out")
    elif not samples.symbolic:
        refuse_open(mech, closure_of(mech, samples.rows["q"]), samples.rows["qd"], samples.single)
    poses, needs = link_wrenches(mech.tree, samples, threads)
    needs = needs - on_links(mech, poses, wrenches_of(mech, _rows(mech, samples, multipliers)))
    return samples.shaped(transmitted(mech.tree, samples, poses, needs))


def _rows(mech: Linkage, samples: Samples, multipliers: Any) -> Any:
    """Return multipliers as rows, (N, m)."""
    m = len(constraint_names(mech))
    shape = (m,) if samples.single else (samples.count, m)
    if samples.symbolic:
        return symbols(multipliers).reshape(1, m)
    given = real_array(multipliers, "multipliers", shape, hint="one for each row of mech.closure(q)")
    return given.reshape(samples.count, m)


def on_links(mech: Linkage, poses: Any, loop_wrenches: Any) -> Any:
    """Return what loops do to the links, (N, n_links, 6), in the base's axes at each link's origin.

    Poses (N, n_links, 4, 4) are those of the links; wrenches (N, loops, 6) act on link_b at the origin of frame B, in
    the axes of frame A, and the opposite ones on link_a.
    """
    out = zeros((*poses.shape[:2], 6), poses, loop_wrenches)
    for k, loop in enumerate(loop for loop in mech.loops if isinstance(loop, Loop)):
        frame_a, frame_b = _frame(mech, poses, loop.link_a, loop.pose_a), _frame(mech, poses, loop.link_b, loop.pose_b)
        halves = loop_wrenches[:, k].reshape(-1, 2, 3) @ np.swapaxes(frame_a[:, :3, :3], 1, 2)
        for name, acting in ((loop.link_a, -1.0), (loop.link_b, 1.0)):
            if name is not None:
                link = mech.link_index(name)
                arm = frame_b[:, :3, 3] - poses[:, link, :3, 3]
                out[:, link] += moved_by(acting * halves.reshape(-1, 6), arm)
    return out


def _frame(mech: Linkage, poses: Any, link: str | None, pose: Any) -> Any:
    """Return the poses (N, 4, 4) of a frame on a link in the base's frame."""
    return np.eye(4)[None] @ pose if link is None else poses[:, mech.link_index(link)] @ pose
