"""The formulations that can be compared, one line each: what they solve, and how they grow by their own loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from cstormpy.formulations import (
    armstrong,
    hollerbach,
    hollerbach_3x3,
    johnson_su,
    kim,
    kim_derivative,
    lagrange,
    luh_walker_paul,
    orin,
    silver,
    sohl_bobrow,
    stepanenko,
    uicker_kahn,
    xiang,
    xiang_regular,
    xiang_sensitivity,
)
from cstormpy.formulations.arguments import bodies, by_link, read_tree, turned
from cstormpy.formulations.homogeneous import frames

PROBLEMS = ("inverse dynamics", "forward dynamics", "mass matrix", "inverse sensitivity")
"""The tasks: τ of (q, q̇, q̈); q̈ of (q, q̇, τ); M of q; the derivatives of τ to q, q̇ and q̈."""


@dataclass(frozen=True)
class Method:
    """One formulation of one problem.

    Attributes
    ----------
    name : str
        As it stands in tables.
    problem : str
        One of `PROBLEMS`.
    run : callable
        Takes a mechanism and the problem's arrays.
    order : int
        Power of n that its innermost loop runs to.
    counted, timed : int
        Most joints with which it is run on counting numbers, and on floats.
    matrices : callable, optional
        The building of its joints' matrices alone, of (mechanism, q).
    """

    name: str
    problem: str
    run: Callable[..., Any]
    order: int
    counted: int
    timed: int
    matrices: Callable[..., Any] | None = None


def rotations(mech: Any, q: ArrayLike) -> None:
    """Build the 3 x 3 matrices of all joints, as the formulations in vectors do."""
    tree = read_tree(mech)
    angles, body = by_link(tree, "q", q), bodies(tree)
    for i in tree.outward:
        turned(tree, body, i, angles[i])


def displacements(mech: Any, q: ArrayLike) -> None:
    """Build the 4 x 4 matrices of all joints and their two derivatives, as the Lagrangian formulations do."""
    tree = read_tree(mech)
    angles, body = by_link(tree, "q", q), frames(tree)
    for i in tree.outward:
        for order in (0, 1, 2):
            body.T(i, angles[i], order)


def adjoints(mech: Any, q: ArrayLike) -> None:
    """Build the 6 x 6 matrices of all joints, as the formulations in spatial vectors do."""
    system = kim.read_system(mech)
    for i, angle in enumerate(by_link(system.tree, "q", q)):
        kim.Ad_inverse(kim.pose(system.M[i], system.S[i], angle))


def sohl_bobrow_forward(mech: Any, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Any:
    """Return the accelerations by Algorithms 3.4 to 3.6, with all joints passive."""
    return sohl_bobrow.hybrid_dynamics(mech.with_drive(active=[]), q, qd, tau)


_INVERSE, _FORWARD, _MATRIX, _SENSITIVITY = PROBLEMS

METHODS: tuple[Method, ...] = (
    Method("Luh, Walker, Paul", _INVERSE, luh_walker_paul.inverse_dynamics, 1, 60, 60, rotations),
    Method("Silver", _INVERSE, silver.inverse_dynamics, 1, 60, 60, rotations),
    Method("Orin and others", _INVERSE, orin.inverse_dynamics, 1, 60, 60, rotations),
    Method("Stepanenko, Vukobratović", _INVERSE, stepanenko.inverse_dynamics, 2, 60, 60, rotations),
    Method("Johnson, Su: RNEA", _INVERSE, johnson_su.inverse_dynamics, 1, 60, 60),
    Method("Kim: Table 2", _INVERSE, kim.inverse_dynamics, 1, 60, 60, adjoints),
    Method("Sohl, Bobrow: 3.1", _INVERSE, sohl_bobrow.inverse_dynamics, 1, 60, 60),
    Method("Hollerbach 3x3", _INVERSE, hollerbach_3x3.inverse_dynamics, 1, 60, 60, displacements),
    Method("Hollerbach 4x4", _INVERSE, hollerbach.inverse_dynamics, 1, 60, 60, displacements),
    Method("Xiang: recursive", _INVERSE, xiang.inverse_dynamics, 1, 60, 60, displacements),
    Method("Uicker, Kahn (1.2)", _INVERSE, uicker_kahn.inverse_dynamics, 4, 12, 20, displacements),
    Method("Xiang: regular (6)-(8)", _INVERSE, xiang_regular.inverse_dynamics, 4, 12, 20),
    Method("Lagrange on K - P (1.1)", _INVERSE, lagrange.inverse_dynamics, 2, 9, 20),
    Method("Johnson, Su: composite body", _FORWARD, johnson_su.forward_dynamics, 3, 60, 60),
    Method("Johnson, Su: articulated body", _FORWARD, johnson_su.articulated_body, 1, 60, 60),
    Method("Armstrong", _FORWARD, armstrong.forward_dynamics, 1, 60, 60, rotations),
    Method("Kim: Table 3", _FORWARD, kim.forward_dynamics, 1, 60, 60, adjoints),
    Method("Sohl, Bobrow: 3.4-3.6", _FORWARD, sohl_bobrow_forward, 1, 60, 60),
    Method("Johnson, Su: composite body", _MATRIX, johnson_su.mass_matrix, 2, 60, 60),
    Method("Sohl, Bobrow: columns", _MATRIX, sohl_bobrow.mass_matrix, 2, 12, 40),
    Method("Kim: columns of Table 2", _MATRIX, kim.mass_matrix, 2, 12, 40),
    Method("Xiang: recursive (21)-(35)", _SENSITIVITY, xiang_sensitivity.inverse_sensitivity, 2, 12, 40),
    Method("Kim: derivative sweeps", _SENSITIVITY, kim_derivative.inverse_sensitivity, 2, 9, 20),
    Method("Xiang: regular (9)-(11)", _SENSITIVITY, xiang_regular.inverse_sensitivity, 5, 9, 12),
)
