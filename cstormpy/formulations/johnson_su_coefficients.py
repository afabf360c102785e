"""The coefficients C_ijk of Johnson and Su's "Efficiency (1)", and their first example of what recursion gains.

T. Johnson and M. Su, "Articulated Body Dynamics" (slides): the equation that is not recursive,

    Q_i = Σ_j H_ij q̈_j + Σ_jk C_ijk q̇_j q̇_k + g_i,

whose coefficients number n³, and the derivative of a product of matrices. Notation as in `johnson_su`, which has H_ij.

Derivation of C_ijk, which the slides only name. With a = Σ_k v_k × s_k q̇_k and v = Σ_j s_j q̇_j, link m takes the force
Σ_jk (I_m (s_j × s_k [j before k]) + s_j ×* I_m s_k) q̇_j q̇_k. The links m that i, j and k all carry are those that the
outermost of the three carries, and together they are one rigid body of its composite inertia I_c:

    (b)  C_ijk = s_i · (I_c (s_j × s_k [j before k]) + s_j ×* I_c s_k)    and the mean of it with j and k exchanged.

If i, j and k are not on one way outward from the base, C_ijk is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array, Tree, by_link, read_tree
from cstormpy.formulations.johnson_su import composite_inertias, place, times, times_dual

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism


def coriolis_coefficients(mech: Mechanism, q: ArrayLike) -> Array:
    """Return C_ijk, (n, n, n), symmetric in j and k: Q_i = Σ H_ij q̈_j + Σ C_ijk q̇_j q̇_k + g_i.

    Examples
    --------
    >>> from cstormpy.mechanism.library import planar_2r
    >>> C = coriolis_coefficients(planar_2r(), [0.3, 0.5])
    >>> bool(C[0, 0, 1] == C[0, 1, 0] == -C[1, 0, 0])
    True
    """
    tree = read_tree(mech)
    space = place(tree, by_link(tree, "q", q))
    I_c, s, n = composite_inertias(tree, space.I), space.s, len(tree.joint_links)
    before = [ancestors(tree, i) for i in range(len(tree.P))]
    C = np.zeros((n, n, n), s.dtype)
    links = [int(i) for i in tree.joint_links]
    for x, j in enumerate(links):
        for y, k in enumerate(links):
            if j != k and j not in before[k] and k not in before[j]:
                continue  # on different branches: nothing carries both
            for w, i in enumerate(links):
                outermost = max(i, j, k, key=lambda m: len(before[m]))
                if {i, j, k} <= {outermost, *before[outermost]}:
                    f = times_dual(s[j], I_c[outermost] @ s[k])  # (b)
                    if j in before[k]:
                        f = f + I_c[outermost] @ times(s[j], s[k])  # (b)
                    C[w, x, y] = s[i] @ f  # (b)
    return (C + C.swapaxes(1, 2)) / 2


def ancestors(tree: Tree, i: int) -> list[int]:
    """Return the links between the base and link i, without i."""
    way = []
    while (i := tree.P[i]) >= 0:
        way.append(i)
    return way


# ---------------------------------------------------------------- "Example: Recurrence Relation"
def product_derivative(A: Sequence[Any], dA: Sequence[Any], recursive: bool = True) -> Any:
    """Return the derivative of B = A_1 A_2 ... A_n, matrices or numbers whose derivatives are dA.

    By brute force this takes n² - n products and n - 1 sums; by recursion 3n - 4 products and as many sums.

    Examples
    --------
    >>> product_derivative([2.0, 3.0, 5.0], [1.0, 0.0, 1.0])
    21.0
    >>> product_derivative([2.0, 3.0, 5.0], [1.0, 0.0, 1.0], recursive=False)
    21.0
    """
    n = len(A)
    if not recursive:
        total: Any = None
        for k in range(n):
            factors = [*A[:k], dA[k], *A[k + 1 :]]
            term = factors[0]
            for factor in factors[1:]:
                term = times_of(term, factor)  # "Example: Brute Force"
            total = term if total is None else total + term
        return total
    B, dB = A[0], dA[0]
    for k in range(1, n):
        dB = times_of(dB, A[k]) + times_of(B, dA[k])  # "Example: Recursion"
        if k < n - 1:
            B = times_of(B, A[k])  # "Example: Recursion": B_2 to B_{n-1}
    return dB


def times_of(a: Any, b: Any) -> Any:
    """Return the product of two matrices or numbers."""
    return a @ b if np.ndim(a) else a * b
