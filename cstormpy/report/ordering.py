"""Layers of a diagram: the wires that run backwards, and the column of each block."""

from __future__ import annotations

from collections.abc import Iterable

from cstormpy.report.graph import Graph, subgraph

_FORWARD, _FROM_STATE, _INTO_SUM = 3.0, 1.0, 0.5
"""The cost of a wire that is drawn backwards; one that leaves a block with states is what closes most loops, and best
where it comes back to a sum."""

_PASSES = 20

Weights = dict[tuple[int, int], float]


def _weights(graph: Graph) -> Weights:
    weights: Weights = {}
    for edge in graph.edges:
        if edge.source == edge.target:
            continue
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        weight = _FORWARD
        if source.role == "state" and target.role != "sink":
            weight = _INTO_SUM if target.kind in ("sum", "prod") else _FROM_STATE
            if target.role == "state":
                weight = 2.0 * _FROM_STATE
        elif target.kind == "sum" and target.inputs and edge.input > 0:
            weight = 0.9 * _FORWARD
        pair = (edge.source, edge.target)
        weights[pair] = max(weight, weights.get(pair, 0.0))
    return weights


def linear_order(graph: Graph) -> list[int]:
    """Return the nodes from left to right such that few wires, and those that close loops, run backwards."""
    weights = _weights(graph)
    order = _first_order(len(graph.nodes), weights)
    for _ in range(_PASSES):
        if not any([_move(order, node, weights) for node in list(order)]):
            break
    return order


def _first_order(count: int, weights: Weights) -> list[int]:
    """Place what waits for nothing; in a loop, what waits for the cheapest wires."""
    waiting = {node: 0.0 for node in range(count)}
    outgoing: dict[int, list[tuple[int, float]]] = {node: [] for node in range(count)}
    for (a, b), w in weights.items():
        waiting[b] += w
        outgoing[a].append((b, w))
    order = []
    while waiting:
        node = min(waiting, key=lambda k: (round(waiting[k], 9), k))
        del waiting[node]
        order.append(node)
        for b, w in outgoing[node]:
            if b in waiting:
                waiting[b] -= w
    return order


def _move(order: list[int], node: int, weights: Weights) -> bool:
    """Move a node to where the wires that run backwards cost least; say whether that helped."""
    here = order.index(node)
    best, cost = here, 0.0
    for step in (-1, 1):
        total, place = 0.0, here + step
        while 0 <= place < len(order):
            other = order[place]
            before, after = weights.get((other, node), 0.0), weights.get((node, other), 0.0)
            total += (before - after) * (1.0 if step < 0 else -1.0)
            if total < cost - 1e-9:
                best, cost = place, total
            place += step
    if best == here:
        return False
    order.insert(best, order.pop(here))
    return True


def assign_layers(graph: Graph) -> list[int]:
    """Return the column of each node: after what it waits for, sources beside what they feed, sinks right.

    What stands at the edges of a picture, entries and exits, has a column of its own there.
    """
    edges = [k for k, node in enumerate(graph.nodes) if node.role in ("entry", "exit")]
    if not edges:
        return _inner_layers(graph)
    inner = [k for k, node in enumerate(graph.nodes) if node.role not in ("entry", "exit")]
    first = int(any(graph.nodes[k].role == "entry" for k in edges))
    layers = dict.fromkeys(edges, 0)
    layers.update(zip(inner, (first + layer for layer in _inner_layers(subgraph(graph, inner))), strict=True))
    last = max((layers[k] for k in inner), default=0) + 1
    layers.update({k: last for k in edges if graph.nodes[k].role == "exit"})
    return [layers[k] for k in range(len(graph.nodes))]


def _inner_layers(graph: Graph) -> list[int]:
    place = {node: k for k, node in enumerate(linear_order(graph))}
    before: dict[int, set[int]] = {node: set() for node in place}
    after: dict[int, set[int]] = {node: set() for node in place}
    for edge in graph.edges:
        if place[edge.source] < place[edge.target]:
            before[edge.target].add(edge.source)
            after[edge.source].add(edge.target)
    layers = [0] * len(graph.nodes)
    for node in sorted(place, key=place.__getitem__):
        layers[node] = _after(layers, before[node])
    for node in sorted(place, key=place.__getitem__, reverse=True):
        if not before[node] and after[node]:  # a source, or a block that only a loop feeds
            layers[node] = min(layers[k] for k in after[node]) - 1
    last = max(layers, default=0)
    for k, block in enumerate(graph.nodes):
        if block.role == "sink" and before[k]:
            layers[k] = last
    return layers


def _after(layers: list[int], nodes: Iterable[int]) -> int:
    return max((layers[k] + 1 for k in nodes), default=0)
