"""The diagram as a drawing sees it: blocks with ports, and the wires between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PASSAGES = ("inport", "outport")
"""Kinds of the blocks that are the ports of a subsystem, and of a flattened one only pass on what they get."""


@dataclass
class Node:
    """A block.

    Attributes
    ----------
    block
        The block itself, of which the shape asks its parameters; None for a subsystem and for a port at its edge.
    name, group
        Its own name, and the path of the subsystem that it stood in, empty at the top.
    kind
        The name of its class in small letters: "gain", "hybriddynamics".
    inputs, outputs
        Names of the ports, empty where a port has none.
    role
        "source", "sink", "state" or "function"; "entry" and "exit" of what stands at the edges of a picture.
    ours
        Whether it is a block of cstormpy.
    """

    block: Any
    name: str
    group: str
    kind: str
    inputs: list[str]
    outputs: list[str]
    role: str
    ours: bool = False

    @property
    def path(self) -> str:
        """The full name."""
        return f"{self.group}/{self.name}" if self.group else self.name


@dataclass(frozen=True)
class Edge:
    """A wire from an output of one node to an input of another, all by index."""

    source: int
    output: int
    target: int
    input: int


@dataclass
class Graph:
    """Nodes and the wires between them."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def read_graph(bd: Any) -> Graph:
    """Return the graph of a bdsim diagram; of a compiled one its subsystems are flattened, and their ports left out."""
    return without_passages(flattened_graph(bd))


def flattened_graph(bd: Any) -> Graph:
    """Return the graph of a bdsim diagram as it is, with the ports of flattened subsystems."""
    graph = Graph([_node(block) for block in bd.blocklist])
    index = {id(node.block): k for k, node in enumerate(graph.nodes)}
    for wire in bd.wirelist:
        source, target = index.get(id(wire.start.block)), index.get(id(wire.end.block))
        if source is None or target is None:
            continue
        for output, port in zip(_ports(wire.start, "nout"), _ports(wire.end, "nin"), strict=False):
            graph.edges.append(Edge(source, output, target, port))
    return graph


def parts(graph: Graph) -> list[Graph]:
    """Return the parts of a graph that no wire connects, in the order of their first blocks."""
    root = list(range(len(graph.nodes)))

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    for edge in graph.edges:
        a, b = sorted((find(edge.source), find(edge.target)))
        root[b] = a
    groups: dict[int, list[int]] = {}
    for k in range(len(root)):
        groups.setdefault(find(k), []).append(k)
    return [subgraph(graph, kept) for kept in groups.values()]


def subgraph(graph: Graph, kept: list[int], edges: list[Edge] | None = None) -> Graph:
    """Return the graph of some of the nodes."""
    number = {old: new for new, old in enumerate(kept)}
    return Graph(
        [graph.nodes[k] for k in kept],
        [
            Edge(number[e.source], e.output, number[e.target], e.input)
            for e in (graph.edges if edges is None else edges)
            if e.source in number and e.target in number
        ],
    )


def without_passages(graph: Graph) -> Graph:
    """Return the graph without the ports of flattened subsystems, which only pass on what they get."""
    passing = {k for k, n in enumerate(graph.nodes) if n.kind in PASSAGES and len(n.inputs) == len(n.outputs)}
    feeds = {(e.target, e.input): (e.source, e.output) for e in graph.edges}
    edges = []
    for edge in graph.edges:
        source, seen = (edge.source, edge.output), set()
        while source[0] in passing and source in feeds and source not in seen:
            seen.add(source)
            source = feeds[source]
        if source[0] not in passing and edge.target not in passing:
            edges.append(Edge(*source, edge.target, edge.input))
    return subgraph(graph, [k for k in range(len(graph.nodes)) if k not in passing], edges)


def _node(block: Any) -> Node:
    group, name = _standing(block)
    role = {"source": "source", "sink": "sink", "graphics": "sink"}.get(str(block.blockclass), "function")
    if block.nin and not block.nout:
        role = "sink"
    elif block.nout and not block.nin:
        role = "source"
    elif block.nstates or block.ndstates or str(block.blockclass) in ("continuous", "sampled"):
        role = "state"
    return Node(
        block=block,
        name=name,
        group=group,
        kind=type(block).__name__.lower(),
        inputs=_names(block, "_inport_names", block.nin),
        outputs=_names(block, "_outport_names", block.nout),
        role=role,
        ours=type(block).__module__.startswith("cstormpy."),
    )


def _standing(block: Any) -> tuple[str, str]:
    """Return the path of the subsystem in which a block stood, and the name that it has there.

    bdsim puts the path before the name, and a name may have a "/" itself. But the diagram in which the block was made
    still knows it by its own name.
    """
    words = str(block.name).split("/")
    known = getattr(getattr(block, "bd", None), "blocknames", {})
    for k in range(len(words)):
        name = "/".join(words[k:])
        if known.get(name) is block:
            return "/".join(words[:k]), name
    return "", str(block.name)


def _names(block: Any, attribute: str, count: int) -> list[str]:
    names = [str(name) for name in getattr(block, attribute, None) or ()]
    return (names + [""] * count)[:count]


def _ports(plug: Any, count: str) -> list[int]:
    """Return the ports that an end of a wire means: one, a slice of them, or all."""
    port = getattr(plug, "port", 0)
    if isinstance(port, slice):
        return list(range(*port.indices(getattr(plug.block, count))))
    return [int(port or 0)]
