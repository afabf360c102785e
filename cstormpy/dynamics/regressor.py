"""Inertial regressor: the inverse dynamics as a matrix times the inertial numbers of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import run_batch, run_checked, scratch_size
from cstormpy.dynamics.charts import Chart
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, read_samples, refuse_overflow
from cstormpy.dynamics.inertial_lines import filled_by_line
from cstormpy.graph.arrays import symbols
from cstormpy.kernels import layout
from cstormpy.kernels.inertial_numbers import sample_length
from cstormpy.linkage.loops import refuse_loops

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage
    from cstormpy.linkage.links import Link

Integers = NDArray[np.int64]

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

    refuse_loops(mech.loops, "the regressor")
    samples = read_samples(mech, {"q": q, "qd": qd, "qdd": qdd}, None, base)
    out = samples.room(mech.n, len(INERTIAL) * len(mech.links))
    arguments = (*samples.rows.values(), samples.base, out.reshape(-1))
    tables = tables_of(mech, INVERSE)
    if run_batch(entries.regressor_lanes, tables, arguments, samples.count, scratch_size(mech, False), threads)[1]:
        refuse_overflow(samples, out)
    _pull_back(mech, samples.rows["q"], out)
    return samples.shaped(out)


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns for inertial numbers of links, as the kernels take them; see `kernels.inertial_numbers.put_columns`."""

    count: int
    runs: Integers  #: (runs, 4)
    starts: Integers  #: (count + 1,)
    entries: Integers
    values: Array

    @classmethod
    def of(cls, links: Sequence[int], weights: Array) -> Columns:
        """Return those of numbers of links that change their inertial numbers by weights (count, 10)."""
        owners = np.asarray(links, dtype=np.int64)
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        ends = np.append(begins[1:], len(owners))
        forces = (weights[:, : INERTIAL.index("Ixx")] != 0.0).any(axis=1)
        after = np.where(forces, 1 + np.arange(len(owners)), 0)
        moments = np.maximum(begins, np.maximum.reduceat(after, begins))
        runs = np.stack([owners[begins], begins, ends, moments], axis=-1)
        rows, entries = np.nonzero(weights)
        starts = np.searchsorted(rows, np.arange(len(owners) + 1))
        runs, starts, entries = (np.ascontiguousarray(a, dtype=np.int64) for a in (runs, starts, entries))
        return cls(len(owners), runs, starts, entries, weights[rows, entries])

    def arguments(self, mech: Linkage) -> tuple[Any, ...]:
        """Return what kernels take of it: the plan, and where their scratch memory of single samples begins."""
        return self.runs, self.starts, self.entries, self.values, self.count, layout.LANES * self._side_by_side(mech)

    def scratch(self, mech: Linkage) -> int:
        """Return how many float64 of scratch memory these kernels need."""
        responses = layout.LANES * (mech.n + 1) * mech.n
        return layout.LANES * (self._side_by_side(mech) + sample_length(mech.n, self.count)) + responses

    def _side_by_side(self, mech: Linkage) -> int:
        longest = int(np.max(self.runs[:, 2] - self.runs[:, 1], initial=0))
        return scratch_size(mech, True) // layout.LANES + 6 * (len(INERTIAL) + longest) + 1


def inertial_rates(
    mech: Linkage, samples: Samples, columns: Columns, response: Array | None, threads: int | None
) -> Array:
    """Return what torques, or answers to them, change by per inertial number, (N, n, k).

    Parameters
    ----------
    mech : Linkage
        Without ball joints if there is a response.
    samples : Samples
        Of q, qd and qdd.
    columns : Columns
    response : ndarray, (N, n, n), optional
        What answers change by per torque that the joints ask for.
    threads : int, optional
    """
    from cstormpy.kernels import entries_regressor as entries
    from cstormpy.linkage.tables import INVERSE, tables_of

    n, count = mech.n, samples.count
    out = np.zeros((count, n, columns.count)) if response is None else np.empty((count, n, columns.count))
    given = np.zeros((0, n * n)) if response is None else np.ascontiguousarray(response).reshape(count, n * n)
    arguments = (*samples.rows.values(), samples.base, given, *columns.arguments(mech), out.reshape(-1))
    tables = tables_of(mech, INVERSE)
    if run_batch(entries.inertial_rates_lanes, tables, arguments, count, columns.scratch(mech), threads)[1]:
        refuse_overflow(samples, out)
    return out


def inertial_line(mech: Linkage, samples: Samples, columns: Columns, threads: int | None) -> tuple[Array, Array] | None:
    """Return what `inertial_sensitivity` does by the straight line; None where that is not the way."""
    y, out = samples.room(mech.n), samples.room(mech.n, columns.count)
    return (y, out) if samples.count and filled_by_line(mech, samples, columns, (y, out), threads) else None


def inertial_sensitivity(mech: Linkage, samples: Samples, columns: Columns, threads: int | None) -> tuple[Array, Array]:
    """Return the answers of the hybrid dynamics, (N, n), and what they change by per inertial number, (N, n, k).

    For mechanisms without ball joints whose matrices of several samples the processor's caches can hold.
    """
    from cstormpy.kernels import entries_regressor as entries
    from cstormpy.linkage.tables import tables_of

    found = inertial_line(mech, samples, columns, threads)
    if found is not None:
        return found
    y, out = samples.room(mech.n), samples.room(mech.n, columns.count)
    arguments = (*samples.rows.values(), samples.wrench, samples.base, y, *columns.arguments(mech), out.reshape(-1))
    kernel = entries.inertial_sensitivity_lanes
    run_checked(mech, kernel, tables_of(mech), arguments, samples, columns.scratch(mech), threads)
    return y, out


def _pull_back(mech: Linkage, q: Array, out: Array) -> None:
    """Turn the rows of each ball joint from moments about its link's axes into those of its rotation vector."""
    if not mech.ball_starts:
        return
    for link in mech.links:
        if any(link.joint.balls):
            at = mech.coordinates(link.joint_name)
            rows = slice(at.stop - 3, at.stop)
            out[:, rows] = np.swapaxes(Chart(q[:, rows]).J, -1, -2) @ out[:, rows]


def inertial_numbers(mech: Linkage) -> Array:
    """Return the inertial numbers of all links, (10 n_links,), in the order of `INERTIAL`."""
    numbers = [number for link in mech.links for number in _of_link(link)]
    return symbols(numbers) if mech.symbolic else np.array(numbers)


def _of_link(link: Link) -> tuple[Any, ...]:
    """Return the ten numbers of a link, which may be symbols."""
    m, c, central = link.mass, link.com, link.inertia
    h = m * c
    xx, yy, zz = h * c
    return (
        m, *h,
        central[0, 0] + yy + zz, central[0, 1] - h[0] * c[1], central[0, 2] - h[0] * c[2],
        central[1, 1] + xx + zz, central[1, 2] - h[1] * c[2], central[2, 2] + xx + yy,
    )  # fmt: skip
