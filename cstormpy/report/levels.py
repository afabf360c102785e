"""Levels of a diagram: its top and each subsystem, as graphs of their own with ports at their edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cstormpy.report.graph import PASSAGES, Edge, Graph, Node, flattened_graph, without_passages


@dataclass
class Level:
    """The blocks of the top or of one subsystem; subsystems in it are one node each.

    Attributes
    ----------
    name, path
        Of the subsystem, empty at the top.
    graph
        With a node of kind "entry" or "exit" for each of the subsystem's own ports.
    inside
        The levels of the subsystems in it, by their nodes.
    entries, exits
        The nodes of its own ports, in their order.
    """

    name: str
    path: str
    graph: Graph = field(default_factory=Graph)
    inside: dict[int, Level] = field(default_factory=dict)
    entries: list[int] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)

    def subsystems(self) -> Iterator[Level]:
        """All levels below this one, each before those in it."""
        for level in self.inside.values():
            yield level
            yield from level.subsystems()


def read_levels(bd: Any) -> Level:
    """Return the levels of a bdsim diagram, whose subsystems are found by the paths in its blocks' names."""
    flat = flattened_graph(bd)
    levels = _levels(flat)
    at_source: dict[tuple[int, int], tuple[Level, int, int]] = {}
    at_target: dict[tuple[int, int], tuple[Level, int, int]] = {}
    for k, node in enumerate(flat.nodes):
        level, box = levels[node.group], _box_of(levels, node.group)
        if node.kind in PASSAGES and box is not None and len(node.inputs) == len(node.outputs):
            _add_ports(level, *box, k, node, at_source, at_target)
            continue
        at_source.update({(k, port): (level, len(level.graph.nodes), port) for port in range(len(node.outputs))})
        at_target.update({(k, port): (level, len(level.graph.nodes), port) for port in range(len(node.inputs))})
        level.graph.nodes.append(node)
    for edge in flat.edges:
        level, source, output = at_source[edge.source, edge.output]
        other, target, port = at_target[edge.target, edge.input]
        if level is not other:  # a wire through the edge of a subsystem, past its ports
            return Level("", "", without_passages(flat))
        level.graph.edges.append(Edge(source, output, target, port))
    top = levels[""]
    for level in reversed(list(top.subsystems())):
        parent, k = _box_of(levels, level.path) or (top, 0)
        parent.graph.nodes[k].role = "function" if _feeds_through(level) else "state"
    return top


def _levels(flat: Graph) -> dict[str, Level]:
    """Return an empty level for each path, and in its parent the node that stands for it."""
    levels = {"": Level("", "")}
    for path in sorted({node.group for node in flat.nodes if node.group}, key=lambda path: (path.count("/"), path)):
        parent = max((known for known in levels if not known or path.startswith(known + "/")), key=len)
        name = path[len(parent) + 1 :] if parent else path
        levels[path] = Level(name, path)
        outer = levels[parent]
        outer.inside[len(outer.graph.nodes)] = levels[path]
        outer.graph.nodes.append(Node(None, name, parent, "subsystem", [], [], "function"))
    return levels


def _box_of(levels: dict[str, Level], path: str) -> tuple[Level, int] | None:
    """Return the level in which a subsystem stands and its node there."""
    for level in levels.values():
        for k, inner in level.inside.items():
            if inner.path == path:
                return level, k
    return None


def _add_ports(
    level: Level,
    outer: Level,
    box: int,
    number: int,
    passage: Node,
    at_source: dict[tuple[int, int], tuple[Level, int, int]],
    at_target: dict[tuple[int, int], tuple[Level, int, int]],
) -> None:
    """Make the ports of a subsystem out of the block that passes them on."""
    entry = passage.kind == "inport"
    names = passage.outputs if entry else passage.inputs
    ports, own = (
        (outer.graph.nodes[box].inputs, level.entries) if entry else (outer.graph.nodes[box].outputs, level.exits)
    )
    for port, name in enumerate(names):
        (at_target if entry else at_source)[number, port] = outer, box, len(ports)
        (at_source if entry else at_target)[number, port] = level, len(level.graph.nodes), 0
        own.append(len(level.graph.nodes))
        kind, inputs, outputs = ("entry", [], [""]) if entry else ("exit", [""], [])
        level.graph.nodes.append(Node(None, name, level.path, kind, inputs, outputs, kind))
        ports.append(name)


def _feeds_through(level: Level) -> bool:
    """Return whether an output of a subsystem depends on an input at once, past all states."""
    reached, waiting = set(level.entries), list(level.entries)
    while waiting:
        k = waiting.pop()
        for edge in level.graph.edges:
            if edge.source == k and edge.target not in reached and level.graph.nodes[edge.target].role != "state":
                reached.add(edge.target)
                waiting.append(edge.target)
    return bool(reached & set(level.exits)) or not level.exits
