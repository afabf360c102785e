"""Mechanisms in homogeneous 4 x 4 matrices, as Uicker, Kahn, Hollerbach and Xiang, Arora, Abdel-Malek write them.

================  ==================================================================
here              meaning
================  ==================================================================
T(i, q, m)        mth derivative to q of the pose of link i in its parent's frame
W[i]              pose of link i in the base's frame; that of the base is row -1
J                 inertia matrix ∫ r r' dm of a link, r = (x, y, z, 1) from its origin
Psi               load matrix of a wrench (moment n, force f) on a link
e                 (0, 0, 0, 1): the origin of a frame
g                 (gravity, 0)
================  ==================================================================

A joint of one coordinate with the screw S = (ω, v), ω of length 1 or 0, moves its link by

    T = M exp(Ŝ q) = M + M Ŝ_r sin q + M Ŝ_r² (1 - cos q) + M Ŝ_t q,

where Ŝ_t is the translation along the axis (by the pitch; all of a slide) and Ŝ_r the rotation that is left. This
holds because Ŝ_r³ = -Ŝ_r and Ŝ_r Ŝ_t = 0. Four constant matrices so give T and all of its derivatives, for
hinge, slide and screw alike: Denavit's and Hartenberg's matrix (Xiang, Arora and Abdel-Malek 2008, (1)) is the case
of an axis z, seen from a frame at the far end of the link.

The work of a wrench on the link: with the columns of ∂W/∂q = W V̂, V = (ω, v) the link's velocity for q̇ = 1,

    tr(∂W/∂q Ψ W') = n · ω + f · v    where    Ψ = [½ [n]', 0; f', 0],

so that a load enters these equations as the inertial force J Ẅ' does.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array, Tree, bracket, wrenches


class Frames(NamedTuple):
    """The links of a tree in matrices, each with its link first."""

    M: Array  # (n_links, 4, 4), pose in the parent's frame at q = 0
    turn: Array  # M Ŝ_r
    bend: Array  # M Ŝ_r²
    slide: Array  # M Ŝ_t
    J: Array  # (n_links, 4, 4), inertia matrix
    g: Array  # (4,), gravity

    def T(self, i: int, q: Any, order: int = 0) -> Array:
        """Return the derivative of this order to q of the pose of link i in its parent's frame, 4 x 4."""
        parts = [self.M[i]] if order == 0 else []
        if self.turn[i].any():
            s, c = np.sin(q), np.cos(q)
            factors = ((s, 1 - c), (c, s), (-s, c), (-c, -s))[order]
            parts += [self.turn[i] * factors[0], self.bend[i] * factors[1]]
        if self.slide[i].any() and order < 2:
            parts.append(self.slide[i] * q if order == 0 else self.slide[i])
        return reduce(add, parts) if parts else np.zeros((4, 4))


def frames(tree: Tree) -> Frames:
    """Return the links of a tree in matrices."""
    turn, slide = np.zeros_like(tree.pose), np.zeros_like(tree.pose)
    for i in range(len(tree.P)):
        w, v = tree.screw[i, :3], tree.screw[i, 3:]
        along = v if tree.slides[i] else w * (w @ v) if tree.screws[i] else 0 * v
        turn[i, :3, :3], turn[i, :3, 3], slide[i, :3, 3] = bracket(w), v - along, along
    J = np.array([inertia_matrix(*body) for body in zip(tree.mass, tree.com, tree.inertia, strict=True)])
    return Frames(
        tree.pose, tree.pose @ turn, tree.pose @ turn @ turn, tree.pose @ slide, J, np.append(tree.gravity, 0)
    )


def inertia_matrix(m: Any, c: Array, inertia: Array) -> Array:
    """Return J, 4 x 4, at the link's origin; c is the centre of mass, the inertia is about it."""
    centre = np.append(c, 1.0)
    J = m * np.outer(centre, centre)
    J[:3, :3] += np.trace(inertia) / 2 * np.eye(3) - inertia  # Silver 1981, (2.11)
    return J


def load_matrices(tree: Tree, wrench: ArrayLike | None) -> Array | None:
    """Return Ψ of the wrench (moment, force) on each link from outside, (n_links, 4, 4), or None without one."""
    if wrench is None:
        return None
    rows = wrenches(tree, wrench)
    Psi = np.zeros((len(rows), 4, 4), rows.dtype)
    for i, row in enumerate(rows):
        Psi[i, :3, :3], Psi[i, 3, :3] = -bracket(row[:3]) / 2, row[3:]
    return Psi


def trace(X: Array, Y: Array) -> Any:
    """Return tr(X Y), from those products alone that the diagonal needs."""
    return np.sum(X * Y.T)


class Legs:
    """Products of the joints' matrices between any two links of a path, from which every partial derivative is made.

    legs(a, k, l) is the product of all T after link k and before link l, times the derivative of order a of T_l; k = -1
    is the base. So W_j = legs(0, -1, j), which is Xiang's (5), and, say, ∂²W_j/∂q_k∂q_l = legs(1, -1, k) legs(1, k, l)
    legs(0, l, j) for k before l. Each leg is formed once.
    """

    def __init__(self, tree: Tree, frames: Frames, q: Array, orders: int) -> None:
        self.path = [path(tree, j) for j in range(len(tree.P))]
        self.depth = [len(p) for p in self.path]
        self._legs: dict[tuple[int, int, int], Array] = {}
        T = [[frames.T(i, q[i], order) for order in range(orders + 1)] for i in range(len(q))]
        for j in tree.outward:
            for k in (-1, *self.path[j][:-1]):
                for order in range(orders + 1):
                    inner = k != tree.P[j]
                    self._legs[order, k, j] = self._legs[0, k, tree.P[j]] @ T[j][order] if inner else T[j][order]

    def partial(self, j: int, *variables: int) -> Array:
        """Return ∂^m W_j / ∂q_k ∂q_l ... for m links k, l, ... on the path from the base to link j, in any order."""
        ordered = sorted(variables, key=self.depth.__getitem__)
        here, product = -1, None
        for k in dict.fromkeys(ordered):
            leg = self._legs[ordered.count(k), here, k]
            here, product = k, leg if product is None else product @ leg
        if here == j and product is not None:
            return product
        leg = self._legs[0, here, j]
        return leg if product is None else product @ leg


def path(tree: Tree, j: int) -> list[int]:
    """Return the links from the base to link j, which is the last."""
    links = [j]
    while (p := tree.P[links[-1]]) >= 0:
        links.append(p)
    return links[::-1]


def carried(tree: Tree, i: int) -> list[int]:
    """Return link i and all links that it carries: the paper's i, ..., n in a serial chain."""
    return [j for j in range(len(tree.P)) if i in path(tree, j)]
