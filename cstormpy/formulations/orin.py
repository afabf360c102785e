"""Inverse dynamics by Orin and others: motion in the base's axes, forces and moments in those of the links.

D. E. Orin, R. B. McGhee, M. Vukobratović and G. Hartoch, "Kinematic and Kinetic Analysis of Open-Chain Linkages
Utilizing Newton-Euler Methods", Math. Biosciences 43 (1979). Silver (1981, 1.3) tells what is its own: it refers the
forces and moments of Stepanenko and Vukobratović to coordinates of the links, and sweeps from the tips to the base to
sum them. None of its equations is in our copies: **they are derived here**.

The motion is that of `stepanenko`, (a) to (c). Then, with A = R_iᵀ from the base's axes to the link's:

    (a)  ω' = A ω, ω̇' = A ω̇, v̇' = A v̇ of the centre of mass
    (b)  F = m v̇',  N = I' · ω̇' + ω' × (I' · ω'), (1.3) of Silver: I' is a constant there, and need not be turned

and the inward sweep of `luh_walker_paul`, (f) to (h), in link coordinates. What is gained on Stepanenko's is the sweep,
n instead of n², and that no inertia is turned; what it leaves for Luh, Walker and Paul to gain is the product R_P R,
and that the axis and the constant vectors of a link are turned into the base's axes.

Departures from the print: those of `luh_walker_paul`, of whose step (1.3) and inward sweep this module makes use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations import luh_walker_paul
from cstormpy.formulations.arguments import (
    Array,
    bodies,
    by_link,
    cross,
    joint_torque,
    loads_at_reference,
    read_tree,
    zeros,
)
from cstormpy.formulations.stepanenko import KINDS, base_motion

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism


def inverse_dynamics(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> Array:
    """Return the motor torques of a given motion.

    Parameters, result, errors and example are those of `luh_walker_paul.inverse_dynamics`.
    """
    tree = read_tree(mech, "the algorithm of Orin and others", KINDS)
    body = bodies(tree)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    base = base_motion(tree, body, q, qd, qdd)
    n, kind = len(tree.P), base.a.dtype
    local = luh_walker_paul.Motion(base.R_P.swapaxes(1, 2), base.l, *zeros(kind, *[(n, 3)] * 5))
    for i in tree.outward:
        A, I = base.R[i].T, tree.inertia[i]
        omega, alpha = A @ base.omega[i], A @ base.alpha[i]  # (a)
        local.F[i] = tree.mass[i] * (A @ base.a_c[i])  # (a), (b)
        local.N[i] = I @ alpha + cross(omega, I @ omega)  # (b), (1.3)
    f, n_ = luh_walker_paul.inward_sweep(tree, body, local, *loads_at_reference(tree, body, wrench))
    tau = [
        luh_walker_paul.projected(tree, i, f[i], n_[i]) + joint_torque(tree, i, q[i], qd[i], qdd[i])
        for i in tree.joint_links
    ]
    return np.array(tau)
