"""Branches in machine code: what only one side of a choice needs is computed where that side is taken.

A straight line computes both sides of each choice and selects. Where a side is long, as the law that is not active, the
code of one sample jumps past it instead. A node's *literals* are the conditions, each with its side, under which alone
it is needed: all paths from the node to what is wanted pass through these sides of choices.

What several branches need, but not all ways through them, is computed in each of those, as the energy that two of
five laws ask for. Its *needs* are several sets of literals then, of which any one suffices.

The nodes of a region, those with some literals more than where they stand, are emitted side by side:

1. all that need no further condition and whose arguments are there;
2. then one branch, of the condition with the most to skip among those that are known, in which the same is done again;
3. behind it φ, which joins what the two sides have found; and so on until nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cstormpy.graph.emission import LANES, Emitter
from cstormpy.graph.nodes import CONSTANTS, INPUT, TABLE, Node
from cstormpy.graph.primitives import EQUAL, SELECT

#: A condition, by its index, and whether it holds.
Literal = tuple[int, bool]
Literals = frozenset[Literal]
#: Sets of literals of which any one suffices.
Needs = frozenset[Literals]
Values = dict[int, str]

#: A branch is worth it from so much work on; an addition is 1.
WORTH = 40
_COSTS = {"div": 5, "reciprocal": 5, "sqrt": 5, "sin": 15, "cos": 15, "search": 15}
_COSTS |= dict.fromkeys("tan asin acos atan atan2 exp exp2 expm1 log log2 log10 log1p".split(), 20)
_COSTS |= dict.fromkeys("sinh cosh tanh asinh acosh atanh cbrt pow hypot".split(), 20)
_CALL = 200
_NONE: Literals = frozenset()
_ALWAYS: Needs = frozenset((_NONE,))
#: What more sets of literals than these need is computed where all of them meet.
_MOST = 4


def _cost(node: Node) -> int:
    if node.primitive is INPUT:
        return 0
    return _CALL if _is_call(node) else _COSTS.get(node.primitive.name, 1)


def _is_call(node: Node) -> bool:
    """Tell whether what a node gives is the place of numbers that a function has found (`external`, `products`)."""
    return node.primitive.name.startswith(("call ", "product "))


def literals(nodes: Sequence[Node], wanted: Iterable[Any]) -> dict[int, Literals]:
    """Return the literals of nodes, which stand in the order in which they can be computed.

    Those of conditions under which there is little to do are left out.
    """
    found: dict[int, Literals] = {x.index: _NONE for x in wanted if isinstance(x, Node)}
    follows = _consequences(nodes)
    for node in reversed(nodes):
        mine = found[node.index]
        for k, a in enumerate(node.args):
            if not isinstance(a, Node):
                continue
            here = mine
            if k and node.primitive is SELECT and (node.args[0].index, k != 1) not in mine:
                here = mine | follows[node.args[0].index, k == 1]
            found[a.index] = found[a.index] & here if a.index in found else here
    saved: dict[int, int] = {}
    for node in nodes:
        if node.primitive in (TABLE, CONSTANTS):
            found[node.index] = _NONE
        for condition, _ in found[node.index]:
            saved[condition] = saved.get(condition, 0) + _cost(node)
    worth = {condition for condition, cost in saved.items() if cost >= WORTH}
    return {k: frozenset(x for x in mine if x[0] in worth) for k, mine in found.items()}


def _consequences(nodes: Iterable[Node]) -> dict[Literal, Literals]:
    """Return of each side of a condition of choices what holds then: of several numbers one is equal to one at most."""
    conditions = {node.args[0].index: node.args[0] for node in nodes if node.primitive is SELECT}
    equal: dict[int, dict[int, float]] = {}
    for condition in conditions.values():
        if condition.primitive is EQUAL:
            known = [a for a in condition.args if not isinstance(a, Node)]
            for a in condition.args:
                if known and isinstance(a, Node):
                    equal.setdefault(a.index, {})[condition.index] = known[0]
    found = {(index, side): frozenset(((index, side),)) for index in conditions for side in (True, False)}
    for same in equal.values():
        for index, number in same.items():
            found[index, True] |= {(other, False) for other, x in same.items() if x != number}
    return found


def needs(nodes: Sequence[Node], wanted: Iterable[Any]) -> dict[int, Needs]:
    """Return the needs of nodes, which stand in the order in which they can be computed.

    Of what takes long to compute, and is therefore not written down twice, they are its `literals`.
    """
    wanted = list(wanted)
    mine, follows = literals(nodes, wanted), _consequences(nodes)
    worth = {condition for each in mine.values() for condition, _ in each}
    follows = {literal: frozenset(x for x in each if x[0] in worth) for literal, each in follows.items()}
    found = {node.index: frozenset[Literals]() for node in nodes}
    joined: dict[tuple[Needs, Needs], Needs] = {}
    found.update((x.index, _ALWAYS) for x in wanted if isinstance(x, Node))
    for node in reversed(nodes):
        here = found[node.index]
        if len(here) > 1 and (_cost(node) > 1 or not _decidable(here)):
            here = found[node.index] = frozenset((frozenset.intersection(*here),))
        for k, a in enumerate(node.args):
            if not isinstance(a, Node):
                continue
            there = here
            if k and node.primitive is SELECT and node.args[0].index in worth:
                literal, other = (node.args[0].index, k == 1), (node.args[0].index, k != 1)
                there = frozenset(each if other in each else each | follows[literal] for each in here)
            pair = found[a.index], there
            if pair not in joined:
                joined[pair] = _either(*pair, follows)
            found[a.index] = joined[pair]
        if node.primitive in (TABLE, CONSTANTS):
            found[node.index] = _ALWAYS
    return found


def _either(one: Needs, other: Needs, follows: Mapping[Literal, Literals]) -> Needs:
    """Return the needs of what either of two asks for, in as few sets as can be seen at once."""
    if one == other or not other:
        return one
    found = set(one | other)
    again = True
    while again:
        again = False
        for a in tuple(found):
            for literal in a:  # needed with it and without it
                others = a - {literal}
                rest = frozenset[Literal]().union(*(follows[other] for other in others))
                opposite = others | follows[literal[0], not literal[1]]
                if rest not in found and any(b <= opposite for b in found):
                    found.add(rest)
                    again = True
        found -= {b for b in found if any(a < b for a in found)}
    return frozenset(found) if len(found) <= _MOST else frozenset((frozenset.intersection(*found),))


def _decidable(here: Needs) -> bool:
    """Tell whether branches, each of a condition that decides for all sets, lead to each of them."""
    if len(here) <= 1:
        return True
    common = frozenset.intersection(*here)
    left = [each - common for each in here]
    for condition in frozenset.intersection(*(frozenset(c for c, _ in each) for each in left)):
        sides = [frozenset(each for each in left if (condition, side) in each) for side in (True, False)]
        if all(map(_decidable, sides)):
            return True
    return False


def emit_nodes(e: Emitter, nodes: Sequence[Node], wanted: Iterable[Any], load: Callable[[Node], str]) -> Values:
    """Append the instructions of nodes, of which `load` appends those of inputs; return where all is that is wanted."""
    values: Values = {}
    mine = needs(nodes, wanted)
    if any(each != _ALWAYS for each in mine.values()):
        _Region(e, mine, {node.index: node for node in nodes}, load).emit(list(nodes), _NONE, values)
    else:
        values.update((node.index, load(node)) for node in nodes if node.primitive is INPUT)
        e.nodes(nodes, values)
    return values


class _Region:
    def __init__(
        self, e: Emitter, mine: Mapping[int, Needs], nodes: Mapping[int, Node], load: Callable[[Node], str]
    ) -> None:
        self.e, self.mine, self.nodes, self.load = e, mine, nodes, load
        self.follows = _consequences(nodes.values())
        self.deciding: dict[Needs, frozenset[int]] = {}
        self.left = dict(nodes)
        self.labels = 0

    def emit(self, items: list[Node], known: Literals, values: Values) -> None:
        """Append nodes that are needed where some literals hold."""
        pending = [node for node in items if node.index not in values]
        self.left.update((node.index, node) for node in pending)
        beyond = {here: _beyond(here, known) for here in {self.mine[node.index] for node in pending}}
        further = {node.index: beyond[self.mine[node.index]] for node in pending}
        while pending:
            pending = self._direct(pending, further, values)
            if not pending:
                return
            chosen = self._chosen(pending, further, values)
            if chosen is None:  # what is left waits for itself: the first of it can be computed, needed or not
                self._emit(pending[0], values)
            else:
                self._branch(*chosen, pending, known, values)
            pending = [node for node in pending if node.index not in values]

    def _direct(self, pending: list[Node], further: Mapping[int, Needs], values: Values) -> list[Node]:
        left = []
        for node in pending:
            if _NONE in further[node.index] and _computable(node, values):
                self._emit(node, values)
            else:
                left.append(node)
        return left

    def _emit(self, node: Node, values: Values) -> None:
        if node.primitive is INPUT:
            values[node.index] = self.load(node)
        else:
            self.e.nodes((node,), values)
        self.left.pop(node.index, None)

    def _chosen(
        self, pending: list[Node], further: Mapping[int, Needs], values: Values
    ) -> tuple[Node, tuple[list[Node], list[Node]]] | None:
        """Return the condition to branch by next, and what can be computed on its two sides."""
        extra: dict[int, int] = {}
        for node in pending:
            for condition in self._deciding(further[node.index]):
                if values.get(condition):  # and not within another branch only
                    extra[condition] = extra.get(condition, 0) + _cost(node)
        for condition in sorted(extra, key=lambda c: (-extra[c], c)):
            sides = self._ready(pending, condition, further, values)
            if any(sides):
                return self.nodes[condition], sides
        return None

    def _ready(
        self, pending: list[Node], condition: int, further: Mapping[int, Needs], values: Values
    ) -> tuple[list[Node], list[Node]]:
        """Return the nodes of either side, of some both, whose arguments are there, or among them."""
        ready: tuple[dict[int, Node], dict[int, Node]] = {}, {}
        for node in pending:
            here = further[node.index]
            if condition not in self._deciding(here):
                continue
            mine = [
                found
                for found, side in zip(ready, (True, False), strict=True)
                if any((condition, side) in each for each in here)
            ]
            args = [a.index for a in node.args if isinstance(a, Node) and a.index not in values]
            if all(index in found for found in mine for index in args):
                for found in mine:
                    found[node.index] = node
        return list(ready[0].values()), list(ready[1].values())

    def _deciding(self, here: Needs) -> frozenset[int]:
        """Return the conditions of which one side or the other is asked for in any case."""
        found = self.deciding.get(here)
        if found is None:
            found = frozenset.intersection(*(frozenset(c for c, _ in each) for each in here))
            self.deciding[here] = found
        return found

    def _branch(
        self,
        condition: Node,
        sides: tuple[list[Node], list[Node]],
        pending: list[Node],
        known: Literals,
        values: Values,
    ) -> None:
        e, k = self.e, self.labels
        self.labels += 1
        e.lines.append(f"  br i1 {values[condition.index]}, label %if{k}, label %else{k}")
        found, ends = [], []
        for word, side, items in zip(("if", "else"), (True, False), sides, strict=True):
            e.lines.append(f"{word}{k}:")
            inner = dict(values)
            with e.apart():
                self.emit(items, known | self.follows[condition.index, side], inner)
            # the block that ends here may be another one by now
            ends.append(next(line[:-1] for line in reversed(e.lines) if line.endswith(":")))
            e.lines.append(f"  br label %end{k}")
            found.append(inner)
        e.lines.append(f"end{k}:")
        self._join(condition, found, ends, pending, values)

    def _join(self, condition: Node, found: list[Values], ends: list[str], pending: list[Node], values: Values) -> None:
        """Append what joins two sides: the choices between them, and what else is needed of either later."""
        done = {index for inner in found for index in inner}
        for node in pending:
            if node.primitive is SELECT and node.args[0] is condition and node.index not in done:
                parts = [self._within(a, inner) for a, inner in zip(node.args[1:], found, strict=True)]
                if None not in parts:
                    values[node.index] = self._phi("double", parts, ends)
                    self.left.pop(node.index, None)
        later = {a.index: a for node in self.left.values() for a in node.args if isinstance(a, Node)}
        for a in later.values():
            if a.index not in values and a.index in done:
                kind, nothing = ("i1", "false") if a.primitive.truth else ("double", "0.0")
                if a.index in self.e.wide:
                    kind, nothing = f"<{LANES} x double>", "zeroinitializer"
                if _is_call(a):
                    kind, nothing = "ptr", "null"
                values[a.index] = self._phi(kind, [inner.get(a.index, nothing) for inner in found], ends)
        for index in done:  # what only one side needs is known to be there
            values.setdefault(index, "")

    def _within(self, x: Any, inner: Values) -> str | None:
        return inner.get(x.index) if isinstance(x, Node) else self.e.value(x, inner)

    def _phi(self, kind: str, parts: Sequence[str | None], ends: Sequence[str]) -> str:
        given = ", ".join(f"[ {x}, %{end} ]" for x, end in zip(parts, ends, strict=True))
        return self.e.new(f"phi {kind} {given}")


def _computable(node: Node, values: Values) -> bool:
    return all(a.index in values for a in node.args if isinstance(a, Node))


def _beyond(here: Needs, known: Literals) -> Needs:
    """Return what needs ask for beside some literals that hold."""
    if here == _ALWAYS:
        return here
    left = frozenset(each - known for each in here if not any((c, not side) in known for c, side in each))
    return left or _ALWAYS
