"""The order conditions of Runge-Kutta methods, by rooted trees (Butcher 1963; Hairer, Norsett and Wanner 1993, II.2).

A method is of order p if, for each rooted tree of at most p nodes, its elementary weight is one over the tree's
density.
"""

from __future__ import annotations

import functools
from itertools import combinations_with_replacement

import numpy as np

from cstormpy.arrays import Array

#: The subtrees at the root, ordered.
Tree = tuple["Tree", ...]


@functools.cache
def rooted_trees(nodes: int) -> tuple[Tree, ...]:
    """Return all rooted trees of so many nodes.

    >>> [len(rooted_trees(nodes)) for nodes in range(1, 9)]
    [1, 1, 2, 4, 9, 20, 48, 115]
    """
    return _forests(nodes - 1, nodes - 1)


@functools.cache
def _forests(nodes: int, largest: int) -> tuple[Tree, ...]:
    """Return the multisets of rooted trees with so many nodes in all, none of more than `largest`."""
    if nodes == 0:
        return ((),)
    found: list[Tree] = []
    for size in range(min(largest, nodes), 0, -1):
        for count in range(1, nodes // size + 1):
            rest = _forests(nodes - count * size, size - 1)
            for chosen in combinations_with_replacement(rooted_trees(size), count):
                found.extend(chosen + more for more in rest)
    return tuple(found)


def order_defect(A: Array, b: Array, order: int) -> float:
    """Return by how much the weights b of the stages A miss the conditions of an order at most.

    >>> heun = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([0.5, 0.5])
    >>> order_defect(*heun, 2), round(order_defect(*heun, 3), 4)
    (0.0, 0.1667)
    """
    known: dict[Tree, tuple[Array, int, int]] = {}

    def stages_of(tree: Tree) -> tuple[Array, int, int]:
        """Return the product of the stages' weights at the root, the tree's density and its number of nodes."""
        if tree not in known:
            product, density, nodes = np.ones(len(b)), 1, 1
            for branch in tree:
                weights, branch_density, branch_nodes = stages_of(branch)
                product = product * (A @ weights)
                density, nodes = density * branch_density, nodes + branch_nodes
            known[tree] = product, density * nodes, nodes
        return known[tree]

    worst = 0.0
    for nodes in range(1, order + 1):
        for tree in rooted_trees(nodes):
            product, density, _ = stages_of(tree)
            worst = max(worst, abs(float(b @ product) - 1.0 / density))
    return worst
