"""Rotation by ω and by Ẇ side by side: section 2 of Silver, (2.1)-(2.11) and the table that closes it.

W. M. Silver, "On the Representation of Angular Velocity and its Effect on the Efficiency of Manipulator Dynamics
Computation", MIT AI Memo 622, 1981. The dynamics that he builds on it is in `silver` and `silver_energy`.

A rotating body has two descriptions of its motion: the angular velocity ω, three numbers, and the rate Ẇ of its
rotation matrix, nine numbers of which three are independent. The functions of this page go from the one to the other,
and say kinetic energy, inertia and generalised force in both. The summation convention is NumPy's einsum: indices that
occur twice are summed over.

================  ==================  ==================================================================
here              Silver              meaning
================  ==================  ==================================================================
W                 W_ij                components of a body-fixed vector to those in fixed axes, (2.1)
P                 P_ijk               1 for even, -1 for odd permutations of 123, and 0
w, wd             ω, ω̇                angular velocity and acceleration, in fixed axes
J                 J'_jk               second moments of the mass, in the body's axes
I                 I_ij                inertia, in the axes in which it is asked for
w_qd, W_q         ∂ω/∂q̇, ∂W/∂q        what the coordinate q turns
================  ==================  ==================================================================

Each of (2.3), (2.4) is an identity, which the tests state. Misprint: (2.2) has W' where the inverse, W⁻¹, is meant.
In (2.7) and (2.9) the integrals over the body become sums over points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.formulations.arguments import Array

P = np.zeros((3, 3, 3))
P[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
P[[0, 2, 1], [2, 1, 0], [1, 0, 2]] = -1.0
P.flags.writeable = False


# ---------------------------------------------------------------- 2.2: the cross product as a tensor
def cross(a: Array, b: Array) -> Array:
    """Return a × b.

    >>> cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    array([0., 0., 1.])
    """
    return np.einsum("ijk,j,k->i", P, a, b)


def triple(a: Array, b: Array, c: Array) -> Any:
    """Return a · b × c."""
    return np.einsum("ijk,i,j,k->", P, a, b, c)


# ---------------------------------------------------------------- 2.3: from ω to Ẇ and back
def matrix_rate(w: Array, W: Array) -> Array:
    """Return Ẇ = ω × W."""
    return np.einsum("ikl,k,lj->ij", P, w, W)  # (2.5)


def matrix_acceleration(w: Array, wd: Array, W: Array) -> Array:
    """Return Ẅ: the derivative of (2.5)."""
    return matrix_rate(wd, W) + matrix_rate(w, matrix_rate(w, W))


def angular_velocity(W: Array, Wd: Array) -> Array:
    """Return ω."""
    return np.einsum("ijk,jl,kl->i", P, W, Wd) / 2  # (2.6)


# ---------------------------------------------------------------- 2.4: inertia and kinetic energy
def second_moment(dm: Array, r: Array) -> Array:
    """Return J of points of the masses dm (n,) at r (n, 3) from the centre of mass, in the axes of r."""
    return np.einsum("nj,nk,n->jk", r, r, dm)  # (2.7)


def kinetic_energy_from_matrix(Wd: Array, J: Array) -> Any:
    """Return the kinetic energy of the rotation, ½ tr(Ẇ J Ẇ')."""
    return np.einsum("ij,jk,ik->", Wd, J, Wd) / 2  # (2.8)


def inertia(dm: Array, r: Array) -> Array:
    """Return I of points of the masses dm (n,) at r (n, 3) from the centre of mass, in the axes of r."""
    square = np.einsum("ni,ni->n", r, r)
    return np.einsum("n,n,ij->ij", dm, square, np.eye(3)) - np.einsum("n,ni,nj->ij", dm, r, r)  # (2.9)


def kinetic_energy_from_vector(w: Array, I: Array) -> Any:
    """Return the kinetic energy of the rotation, ½ ω·I·ω."""
    return np.einsum("i,j,ij->", w, w, I) / 2  # (2.10)


def inertia_from_second_moment(J: Array) -> Array:
    """Return I = tr(J) δ - J, in the axes of J."""
    return np.einsum("ii->", J) * np.eye(3) - J  # (2.11)


def second_moment_from_inertia(I: Array) -> Array:
    """Return J = ½ tr(I) δ - I, in the axes of I."""
    return np.einsum("ii->", I) / 2 * np.eye(3) - I  # (2.11)


# ---------------------------------------------------------------- the table at the end of 2.4
def force_from_vector(w: Array, wd: Array, I: Array, w_qd: Array) -> Any:
    """Return the generalised force of the rotation, [ω̇·I + ω × (I·ω)] · ∂ω/∂q̇; all in fixed axes.

    About an axis of inertia it is the inertia times the acceleration:

    >>> import numpy as np
    >>> z = np.array([0.0, 0.0, 1.0])
    >>> float(force_from_vector(2.0 * z, 3.0 * z, np.diag([1.0, 2.0, 0.5]), z))
    1.5
    """
    moment = np.einsum("i,ij->j", wd, I) + cross(w, np.einsum("ij,j->i", I, w))
    return np.einsum("i,i->", moment, w_qd)


def force_from_matrix(Wdd: Array, J: Array, W_q: Array) -> Any:
    """Return the same from Ẅ: tr(∂W/∂q J Ẅ'), with J in the body's axes, and ∂W/∂q = ∂Ẇ/∂q̇.

    >>> import numpy as np
    >>> z, W = np.array([0.0, 0.0, 1.0]), np.eye(3)
    >>> J = second_moment_from_inertia(np.diag([1.0, 2.0, 0.5]))
    >>> float(force_from_matrix(matrix_acceleration(2.0 * z, 3.0 * z, W), J, matrix_rate(z, W)))
    1.5
    """
    return np.einsum("ij,jk,ik->", W_q, J, Wdd)
