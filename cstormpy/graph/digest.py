"""Digest of routines: what tells their machine code apart, without writing it down.

Code that is kept on disk is found by it in a fraction of the time that its text takes. Operations count by their names,
where these say all about them but for the sources, of which `kept` knows.
"""

from __future__ import annotations

import hashlib

from cstormpy.graph.nodes import Node
from cstormpy.graph.routine import Routine


def digest_of(*routines: Routine) -> str | None:
    """Return what differs between routines whose code differs; None where an operation is no ordinary one.

    A call is such a one: what it does is not said by its name.

    Examples
    --------
    >>> from cstormpy.graph import Graph
    >>> x = Graph().input("x")
    >>> one, other = (Routine("f", {"x": 1}, {}, {"y": [y]}) for y in (2.0 * x, x + 2.0))
    >>> digest_of(one) == digest_of(one), digest_of(one) == digest_of(other)
    (True, False)
    """
    parts: list[str] = []
    for routine in routines:
        sizes = [*routine.shared.items()], [*routine.rows.items()]
        parts.append(
            repr((routine.name, sizes, *routine.scalars, None, *routine.order, routine.watchful, routine.late))
        )
        places: dict[int, str] = {}
        for node in routine.nodes:
            primitive = node.primitive
            if not primitive.named:
                return None
            given = [places[a.index] if isinstance(a, Node) else repr(a) for a in node.args]
            places[node.index] = f"#{len(places)}"
            parts.append(f"{primitive.name} {' '.join(given)} {'' if node.data is None else repr(node.data)}")
        for name, out in (*routine.outputs.items(), ("", [routine.status])):
            parts.append(name + ":" + " ".join([places[x.index] if isinstance(x, Node) else repr(x) for x in out]))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
