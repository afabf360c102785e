"""Which of its inputs a graph's numbers depend on: the structure of its derivatives."""

from __future__ import annotations

from collections.abc import Iterable

from cstormpy.graph.nodes import INPUT, TABLE, Node


def inputs_read(nodes: Iterable[Node], name: str) -> dict[int, frozenset[int]]:
    """Return which places of an input array each node depends on, by the indices of nodes.

    Parameters
    ----------
    nodes : iterable of Node
        In the order in which they can be computed, with all that they need, as `alive` returns them.
    name : str
        Of the input array.

    Examples
    --------
    >>> from cstormpy.graph.nodes import Graph, alive
    >>> graph = Graph()
    >>> x = graph.inputs("x", 3)
    >>> products = [x[0] * x[2], x[1] + 1.0]
    >>> read = inputs_read(alive(products), "x")
    >>> [sorted(read[product.index]) for product in products]
    [[0, 2], [1]]
    """
    read: dict[int, frozenset[int]] = {}
    for node in nodes:
        if node.primitive is INPUT and node.data[0] == name:
            read[node.index] = frozenset({node.data[1]})
        elif node.primitive is TABLE and node.data[0] == name:
            read[node.index] = frozenset(range(node.data[1], node.data[1] + node.data[2]))
        else:
            parts = {read[a.index] for a in node.args if isinstance(a, Node)}
            read[node.index] = parts.pop() if len(parts) == 1 else frozenset().union(*parts)
    return read
