"""Finds the switching functions of expressions: numbers at whose zeros what is made of them jumps or has a kink.

A selection chooses anew where the two numbers that its condition compares are equal; an absolute value, the greater
and the lesser of two numbers have a kink where what they choose by is zero, a cube root a slope without bound.
Roundings and remainders jump at many places, an angle where it has gone half round, a tangent at its poles, a count of
the entries of a list at each of them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from cstormpy.graph import primitives as p
from cstormpy.graph.look_ups import entry, is_count
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive, where

#: What has a kink and does not jump.
_BENDING = frozenset({p.ABS, p.MAXIMUM, p.MINIMUM, p.CBRT})
#: Beyond this they stay what they are: nobody takes a limit that is infinite for a signal that is not finite.
_MOST = 1e300
#: Numbers that are compared may be off by this part of them, as operations are fused; and what is added to others, so
#: that they are never zero, but change their sign with what switches.
_ROUNDED, _TINY = 1e-15, 1e-290
#: So many binary digits of a rounded number are looked at, which tell several jumps within a step from none.
_DIGITS = 4


def _of_comparison(node: Node, a: Any, b: Any) -> Any:
    """Return a − b, with the sign that says how the comparison has come out, whatever is rounded."""
    least = _ROUNDED * (abs(a) + abs(b)) + _TINY
    return a - b + where(node, least, -least)


def _of_parts(node: Node, a: Any, b: Any = 1.0) -> list[Any]:
    """Return how far a / b is from a whole number, with signs that change with the number below."""
    ratio = a / b
    whole = node if node.primitive in (p.FLOOR, p.CEIL, p.TRUNC) else p.apply(p.ROUND, (a - node) / b)
    return _with_signs_of(whole, _apart(ratio, p.apply(p.ROUND, ratio)) + _TINY)


def _apart(a: Any, b: Any) -> Any:
    """Return the distance of two numbers, with a slope where they are equal too."""
    return where(a >= b, a - b, b - a)


def _of_nearest(node: Node, a: Any) -> list[Any]:
    """Return how far a number is from the middle between two whole ones, with signs that change with the nearest."""
    return _with_signs_of(node, 0.5 - abs(a - node) + _ROUNDED)


def _with_signs_of(whole: Any, distance: Any) -> list[Any]:
    """Return a distance with the signs of a whole number's last digits, so that several jumps at once are seen."""
    return [_sign_of(p.apply(p.FLOOR, 0.5**k * whole)) * distance for k in range(_DIGITS)]


def _sign_of(whole: Any) -> Any:
    """Return 1 for an even number, −1 for an odd one."""
    return 1.0 - 2.0 * (whole - 2.0 * p.apply(p.FLOOR, 0.5 * whole))


def _of_count(node: Node, a: Any, *table: Any) -> list[Any]:
    """Return how far a number is from the nearest entry, with signs of which one changes at each, as in Gray's code."""
    last = float(len(table) - 1)
    beside = [entry(p.apply(p.MINIMUM, p.apply(p.MAXIMUM, node - k, 0.0), last), table) for k in (1.0, 0.0)]
    apart = p.apply(p.MINIMUM, *(_apart(a, x) for x in beside)) + _TINY
    return [_sign_of(p.apply(p.FLOOR, 0.5**k * (0.5 * node) + 0.5)) * apart for k in range(len(table).bit_length())]


def _numbers_of(node: Node) -> list[Any]:
    """Return the numbers at whose zeros a node switches, none if it does not."""
    if is_count(node.primitive):
        return _of_count(node, *node.args)
    number_of = _NUMBER_OF.get(node.primitive)
    found = [] if number_of is None else number_of(node, *node.args)
    numbers = found if isinstance(found, list) else [found]
    if node.primitive is p.SIGN:  # which is 0 between
        numbers.append(node.args[0] + where(node.args[0] >= 0.0, _TINY, -_TINY))
    return numbers


_NUMBER_OF: dict[p.Primitive, Callable[..., Any]] = {
    **dict.fromkeys((p.GREATER, p.AT_LEAST), _of_comparison),
    **dict.fromkeys((p.MAXIMUM, p.MINIMUM), lambda node, a, b: a - b),
    **dict.fromkeys((p.ABS, p.CBRT), lambda node, a: a),
    p.TAN: lambda node, a: p.apply(p.COS, a),
    p.COPYSIGN: lambda node, a, b: b + where(p.apply(p.COPYSIGN, 1.0, b) > 0.0, _TINY, -_TINY),
    p.SIGN: lambda node, a: a + where(a > 0.0, _TINY, -_TINY),
    p.ATAN2: lambda node, y, x: where(x > 0.0, abs(y) + _TINY, y + where(y >= 0.0, _TINY, -_TINY)),
    **dict.fromkeys((p.FLOOR, p.CEIL, p.TRUNC, p.MOD, p.FMOD), _of_parts),
    p.ROUND: _of_nearest,
}


def may_jump(primitive: p.Primitive) -> bool:
    """Tell whether what a primitive gives may jump, at places that `switching_functions` finds."""
    return is_count(primitive) or (primitive in _NUMBER_OF and primitive not in _BENDING)


def switching_functions(outputs: Iterable[object], moving: Collection[str]) -> list[tuple[list[Node], Node, bool]]:
    """Return the nodes that switch together, the number at whose zeros they do, and whether something jumps there.

    As long as a choice by what does not change leaves all of them out, the number is 1.

    Parameters
    ----------
    outputs : iterable of symbols and floats
    moving : collection of str
        Names of the inputs that change; numbers that do not change with them are left out.

    Examples
    --------
    >>> from cstormpy.graph import Graph
    >>> x, y = Graph().inputs("x", 2)
    >>> [(nodes, jumps) for nodes, _, jumps in switching_functions([abs(x), where(x > y, x, 0.0)], {"x"})]
    [([abs(x[0])], False), ([x[0] > x[1]], True)]
    """
    outputs = list(outputs)
    nodes, changes = alive(outputs), set[int]()
    found: dict[int, tuple[list[Node], Node]] = {}
    for node in nodes:
        if node.primitive is INPUT:
            if node.data[0] in moving:
                changes.add(node.index)
            continue
        if not any(isinstance(a, Node) and a.index in changes for a in node.args):
            continue
        changes.add(node.index)
        for number in _numbers_of(node):
            if isinstance(number, Node):
                found.setdefault(number.index, ([], _finite(number)))[0].append(node)
    jumping = _jumping(nodes, {node.index for together, _ in found.values() for node in together})
    needs = _needs(outputs, nodes, changes) if found else {}
    return [
        (together, _where_needed(number, [needs[n.index] for n in together]), any(n.index in jumping for n in together))
        for together, number in found.values()
    ]


#: Numbers, by their index, of which one is above 0 where something is needed; none where it always is.
_Needs = dict[int, Node]


def _needs(outputs: Iterable[object], nodes: Sequence[Node], changes: Collection[int]) -> dict[int, _Needs | None]:
    """Return of each node where it is needed, None where always: not on the other side of a choice that stays."""
    found: dict[int, _Needs | None] = {x.index: None for x in outputs if isinstance(x, Node)}
    for node in reversed(nodes):
        above, chosen = found[node.index], {}
        if node.primitive is p.SELECT and isinstance(node.args[0], Node) and node.args[0].index not in changes:
            condition, *sides = node.args
            need = 1.0 if above is None else _greatest(above)
            chosen = {1: where(condition, need, 0.0), 2: where(condition, 0.0, need)}
            chosen = chosen if sides[0] is not sides[1] else {}
        for k, a in enumerate(node.args):
            if not isinstance(a, Node):
                continue
            needed = {chosen[k].index: chosen[k]} if k in chosen else above
            before = found.setdefault(a.index, {})
            found[a.index] = None if before is None or needed is None else {**before, **needed}
    return found


def _greatest(numbers: _Needs) -> Node:
    first, *rest = numbers.values()
    for number in rest:
        first = p.apply(p.MAXIMUM, first, number)
    return first


def _where_needed(number: Node, needs: Sequence[_Needs | None]) -> Node:
    """Return a number, or 1 where nothing needs it."""
    if any(each is None for each in needs):
        return number
    found: Node = where(_greatest({k: x for each in needs if each for k, x in each.items()}) > 0.0, number, 1.0)
    return found


def _jumping(nodes: Iterable[Node], switching: Collection[int]) -> set[int]:
    """Return which of the nodes that switch make something jump, and not only bend."""
    found, sides = set(), SidesOfChoices()
    for node in nodes:
        if node.index in switching and not node.primitive.truth and node.primitive not in _BENDING:
            found.add(node.index)
        truths = [a for a in node.args if isinstance(a, Node) and a.primitive.truth and a.index in switching]
        if truths and not (node.primitive is p.SELECT and sides.only_bend(node)):
            found.update(a.index for a in truths)
    return found


def _finite(number: Node) -> Node:
    """Return a number within bounds; the lesser of them where it is not a number."""
    finite: Node = where(number > _MOST, _MOST, where(number > -_MOST, number, -_MOST))
    return finite


#: So many times both sides of a choice are computed, with other numbers each time.
_TRIALS = 3


class SidesOfChoices:
    """Both sides of choices, computed where they change, with numbers for the inputs that are the same for all."""

    def __init__(self) -> None:
        #: The values of nodes in each trial.
        self._known: list[dict[int, Any]] = [{} for _ in range(_TRIALS)]

    def only_bend(self, choice: Node) -> bool:
        """Tell whether both sides of a choice agree where it changes: with one side of the comparison at the other."""
        condition, *sides = choice.args
        if (
            len(condition.args) != 2
            or condition.primitive in (p.EQUAL, p.UNEQUAL)
            or condition.args[0] is condition.args[1]
        ):
            return False
        a, b = condition.args
        return any(
            all(self._agree(sides, changed, border, trial) for trial in range(_TRIALS))
            for changed, border in ((a, b), (b, a))
            if isinstance(changed, Node) and not changed.primitive.truth
        )

    def _agree(self, sides: Sequence[Any], changed: Node, border: Any, trial: int) -> bool:
        (value,) = self._computed([border], trial, {}, math.inf)
        first, second = self._computed(sides, trial, {changed.index: value}, changed.index)
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9)

    def _computed(self, outputs: Sequence[Any], trial: int, moved: dict[int, Any], place: float) -> list[Any]:
        """Return the values of outputs where one node is moved; those before its place do not depend on it."""
        known = self._known[trial]

        def value(x: Any) -> Any:
            return (known if x.index < place else moved)[x.index] if isinstance(x, Node) else x

        met, missing = [x for x in outputs if isinstance(x, Node)], dict[int, Node]()
        for node in met:  # which grows meanwhile
            if node.index not in missing and node.index not in (known if node.index < place else moved):
                missing[node.index] = node
                met += [a for a in node.args if isinstance(a, Node)]
        for index in sorted(missing):
            node = missing[index]
            (known if index < place else moved)[index] = _value(node, [value(a) for a in node.args], trial)
        return [value(x) for x in outputs]


def _value(node: Node, args: Sequence[Any], trial: int) -> Any:
    if node.primitive is INPUT:
        return _some(node.data[0], node.data[1], trial)
    if node.primitive is TABLE:
        return [_some(node.data[0], node.data[1] + k, trial) for k in range(node.data[2])]
    try:
        return node.primitive.value(*args)
    except (NotImplementedError, ArithmeticError, ValueError):
        return math.nan


def _some(name: str, place: int, trial: int) -> float:
    """Return a number for an input, the same in all processes, in which hash() gives others."""
    return 0.1 + float(np.random.default_rng(zlib.crc32(f"{name} {place} {trial}".encode())).random())
