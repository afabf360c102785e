"""Inertial regressor: the inverse dynamics as a matrix times the inertial numbers of the links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.dynamics.batches import run_batch, scratch_size
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, read_samples, refuse_overflow
from cstormpy.dynamics.kinematics import coordinates_to
from cstormpy.kernels import layout

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Array = NDArray[np.float64]

__all__ = ["INERTIAL", "inertial_numbers", "inertial_rates", "regressor"]

#: The inertial numbers of a link, in their order: mass, first moments, inertia about the origin of the link's frame.
INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def regressor(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    base: BaseLike = None,
    threads: int | None = 1,
) -> Array:
    """Return Y (n, 10 n_links) or (N, n, 10 n_links); see `Mechanism.regressor`."""
    from cstormpy.kernels import entries_regressor as entries
    from cstormpy.linkage.tables import INVERSE, tables_of

    samples = read_samples(mech, {"q": q, "qd": qd, "qdd": qdd}, None, base)
    out = samples.zeros(mech.n, len(INERTIAL) * len(mech.links))
    arguments = (*samples.rows.values(), samples.base, out)
    tables = tables_of(mech, INVERSE)
    run_batch(entries.regressor_lanes, tables, arguments, samples.count, scratch_size(mech, False), threads)
    _pull_back(mech, samples.rows["q"], out)
    refuse_overflow(samples, out)
    return samples.shaped(out)


def inertial_rates(
    mech: Linkage,
    samples: Samples,
    links: Sequence[int],
    weights: Array,
    response: Array | None,
    threads: int | None,
) -> Array:
    """Return what torques, or answers to them, change by per number of some links, (N, n, k).

    Parameters
    ----------
    mech : Linkage
    samples : Samples
        Of q, qd and qdd.
    links : sequence of int
        The link that each number is of.
    weights : ndarray, (k, 10)
        What each number does to the inertial numbers of its link.
    response : ndarray, (N, n, n), optional
        By what the torques that the numbers ask for are multiplied; of a mechanism without ball joints.
    threads : int, optional
    """
    from cstormpy.kernels import entries_regressor as entries
    from cstormpy.linkage.tables import INVERSE, tables_of

    n, (asks, ways) = mech.n, _ways(mech)
    out = np.zeros((samples.count, n, len(links)))
    moving = np.flatnonzero(np.diff(asks)[np.asarray(links)])  # those of links on the base ask for nothing
    chosen = moving[np.argsort(np.asarray(links)[moving], kind="stable")]
    begins = np.searchsorted(np.asarray(links)[chosen], np.arange(len(mech.links) + 1)).astype(np.int64)
    rows, columns = np.nonzero(weights[chosen])
    starts = np.searchsorted(rows, np.arange(len(chosen) + 1)).astype(np.int64)
    room, size = layout.forms_numbers(n, len(mech.links)), int(np.diff(asks) @ np.diff(begins))
    in_turn = len(chosen) == len(links) and bool((np.diff(chosen) > 0).all())
    filled = out if in_turn else np.zeros((samples.count, n, len(chosen)))
    given = np.zeros((0, n, n)) if response is None else np.ascontiguousarray(response)
    arguments = (
        *samples.rows.values(), samples.base, given, begins, asks, ways, starts,
        columns.astype(np.int64), weights[chosen][rows, columns], room, size,
        filled.reshape(-1),
    )  # fmt: skip
    numbers = layout.LANES * (room + len(INERTIAL) + size + 3) + size
    run_batch(entries.inertial_rates_lanes, tables_of(mech, INVERSE), arguments, samples.count, numbers, threads)
    if not in_turn:
        out[..., chosen] = filled
    return out


def _ways(mech: Linkage) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the coordinates on the way to each link begin, and these, from the link inwards, kept."""
    if "ways" not in mech.memo:
        each = [coordinates_to(mech, i)[::-1] for i in range(len(mech.links))]
        asks = np.concatenate([[0], np.cumsum([len(way) for way in each])])
        mech.memo["ways"] = asks.astype(np.int64), np.array([k for way in each for k in way], dtype=np.int64)
    made: tuple[NDArray[np.int64], NDArray[np.int64]] = mech.memo["ways"]
    return made


def _pull_back(mech: Linkage, q: Array, out: Array) -> None:
    """Turn the rows of each ball joint from moments about its link's axes into those of its rotation vector."""
    for link in mech.links:
        if any(link.joint.balls):
            at = mech.coordinates(link.joint_name)
            rows = slice(at.stop - 3, at.stop)
            turn = link.joint.subspace(q[:, at])[:, :3, -3:]
            out[:, rows] = np.swapaxes(turn, -1, -2) @ out[:, rows]


def inertial_numbers(mech: Linkage) -> Array:
    """Return the inertial numbers of all links, (10 n_links,), in the order of `INERTIAL`."""
    return np.concatenate([_of_inertia(link.spatial_inertia) for link in mech.links])


def _of_inertia(J: Array) -> Array:
    """Return the ten numbers of a spatial inertia at the origin of its frame."""
    return np.array([J[5, 5], J[2, 4], J[0, 5], J[1, 3], *J[:3, :3][np.triu_indices(3)]])
