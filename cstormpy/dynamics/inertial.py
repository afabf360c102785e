"""Mass matrix, momentum, centre of mass and energy, with what they change by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import run_batch, scratch_size
from cstormpy.dynamics.checked_arguments import BaseLike, read_samples, refuse_overflow

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


@dataclass(frozen=True)
class Inertial:
    """Mass matrix, momentum, centre of mass and energies, of one sample or of a batch (leading dimension N)."""

    mass_matrix: Array  #: (n, n), armature included
    momentum_matrix: Array  #: (6, n), momentum (angular about the base's origin, linear) per joint rate
    momentum: Array  #: (6,), in the base's frame
    mass: Array  #: (), of all links
    center_of_mass: Array  #: (3,), in the base's frame; NaN where no link has mass, as its Jacobian
    center_of_mass_jacobian: Array  #: (3, n)
    kinetic: Array  #: ()
    potential: Array  #: (), gravity and springs
    kinetic_by_q: Array  #: (n,)
    kinetic_by_qd: Array  #: (n,)
    potential_by_q: Array  #: (n,)


def inertial(
    mech: Linkage, q: ArrayLike, qd: ArrayLike | None = None, base: BaseLike = None, threads: int | None = 1
) -> Inertial:
    """Return all inertial quantities of one sample or of a batch; without qd nothing moves."""
    from cstormpy.kernels import entries_kinematics as entries
    from cstormpy.linkage.tables import tables_of

    samples = read_samples(mech, {"q": q} if qd is None else {"q": q, "qd": qd}, None, base)
    count, n = samples.count, mech.n
    rows = samples.rows
    mass, momenta = samples.zeros(n, n), samples.zeros(6, n)
    bulk, energy, gradient = samples.zeros(10), samples.zeros(2), samples.zeros(3, n)
    arguments = (
        rows["q"], rows.get("qd", np.zeros((count, n))), samples.base, mass, momenta, bulk, energy, gradient
    )  # fmt: skip
    kernel = entries.inertial_one if count == 1 else entries.inertial_lanes
    run_batch(kernel, tables_of(mech), arguments, count, scratch_size(mech, False), threads)
    with np.errstate(over="ignore", invalid="ignore"):  # refused next
        _add_welded(mech, samples.base, bulk, energy)
    refuse_overflow(samples, mass, momenta, bulk, energy, gradient)
    total = bulk[:, 6:7]
    with np.errstate(invalid="ignore", divide="ignore"):
        center, jacobian = bulk[:, 7:] / total, momenta[:, 3:] / total[:, :, None]
    parts = (
        mass, momenta, bulk[:, :6], bulk[:, 6], center, jacobian,
        energy[:, 0], energy[:, 1], gradient[:, 0], gradient[:, 1], gradient[:, 2],
    )  # fmt: skip
    return Inertial(*(samples.shaped(part) for part in parts))


def _add_welded(mech: Linkage, base: Array, bulk: Array, energy: Array) -> None:
    """Add the links that are fixed to the base, which the kernels do not see."""
    from cstormpy.linkage.tables import first_moment, tables_of

    J = tables_of(mech).base_inertia
    bulk[:, 6] += J[5, 5]
    bulk[:, 7:] += first_moment(J)
    energy[:, 1] -= mech.gravity @ first_moment(J)
    if len(base):
        V = base[:, :6]
        bulk[:, :6] += V @ J
        energy[:, 0] += 0.5 * np.einsum("si,ij,sj->s", V, J, V)
