"""Routes of the wires: at right angles, in the channels between the columns; backwards below the blocks.

Each net has at most one vertical track in the channel behind its source, and one in each channel where it comes back.
Tracks are ordered so that few wires cross and none lie upon each other; what runs backwards gets a lane below the
columns that it passes, short loops above long ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from cstormpy.report.graph import Edge
from cstormpy.report.layout import Box, Layout, Net
from cstormpy.report.svg import Point

_TRACK = 9.0
"""Distance between vertical tracks."""
_LANE = 11.0
"""Distance between lanes below the blocks, and of the first from them."""
_MARGIN = 15.0
"""Free way between a column and the nearest track."""
_NARROWEST = 34.0
"""Least width of a channel."""
_NEAR = 6.0
"""Wires closer than this would look like one."""
_STRAIGHT = 0.75
"""A step in height below this is not seen."""


@dataclass
class Wire:
    """One wire: the corners of its way, and the net that it belongs to."""

    edge: Edge
    net: int
    points: list[Point]


@dataclass
class Routes:
    """Places of columns, wires and branches.

    Attributes
    ----------
    x
        Left end of each column.
    widths
        Of the columns.
    wires, dots
        The wires, and where they branch: net and point.
    width, height
        Of the whole.
    """

    x: list[float]
    widths: list[float]
    wires: list[Wire]
    dots: list[tuple[int, Point]]
    width: float
    height: float


@dataclass(eq=False)
class _Track:
    """A vertical piece of a net in a channel.

    Attributes
    ----------
    enters
        Height at which it comes from the left; None where it comes up from a lane.
    leaves
        Heights at which it goes on to the right.
    lane
        Whether it goes down to the net's lane.
    """

    net: int
    channel: int
    enters: float | None
    leaves: list[float] = field(default_factory=list)
    lane: bool = False
    x: float = 0.0

    def heights(self) -> list[float]:
        return [*([] if self.enters is None else [self.enters]), *self.leaves]

    @property
    def low(self) -> float:
        return min(self.heights())

    @property
    def high(self) -> float:
        return math.inf if self.lane else max(self.heights())

    @property
    def straight(self) -> bool:
        return self.high - self.low < _STRAIGHT


def route(layout: Layout) -> Routes:
    """Return the ways of all wires of a layout."""
    tracks = _tracks(layout)
    widths = [max((box.width for box in column), default=0.0) for column in layout.columns]
    channels: dict[int, list[_Track]] = defaultdict(list)
    for track in tracks:
        if not track.straight:
            channels[track.channel].append(track)
    x, ends = _columns(widths, channels)
    lanes = _lanes(layout, tracks)
    by_place = {(t.net, t.channel, t.enters is None): t for t in tracks}
    wires = []
    for number, net in enumerate(layout.nets):
        for edge in (*net.forward, *net.backward):
            wires.append(Wire(edge, number, _way(layout, net, number, edge, by_place, lanes, x, widths)))
    bottom = max([box.y + box.height for box in layout.boxes] + [*lanes.values(), 0.0])
    dots = [dot for track in tracks for dot in _branches(track, lanes)]
    dots += _lane_branches(tracks, lanes)
    return Routes(x, widths, wires, dots, ends, bottom)


def _tracks(layout: Layout) -> list[_Track]:
    """Return the vertical pieces of all nets, channel k between columns k and k + 1 (-1 left of all)."""
    tracks = []
    for number, net in enumerate(layout.nets):
        source = layout.boxes[net.source]
        mine = {source.layer: _Track(number, source.layer, source.y + source.output_y(net.output))}
        for k, box in net.passes.items():
            mine[k - 1].leaves.append(box.y)
            mine[k] = _Track(number, k, box.y)
        for edge in net.forward:
            target = layout.boxes[edge.target]
            mine[target.layer - 1].leaves.append(target.y + target.input_y(edge.input))
        mine[source.layer].lane = bool(net.backward)
        back: dict[int, _Track] = {}
        for edge in net.backward:
            target = layout.boxes[edge.target]
            track = back.setdefault(target.layer - 1, _Track(number, target.layer - 1, None, lane=True))
            track.leaves.append(target.y + target.input_y(edge.input))
        tracks += [*mine.values(), *back.values()]
    return tracks


def _columns(widths: list[float], channels: dict[int, list[_Track]]) -> tuple[list[float], float]:
    """Give the tracks their places; return where the columns begin and where all ends."""
    at, x = 0.0, []
    for k in range(-1, len(widths)):
        if k >= 0:
            x.append(at)
            at += widths[k]
        tracks = _ordered(channels.get(k, []))
        levels: list[int] = []
        for i, track in enumerate(tracks):
            levels.append(max((levels[j] + 1 for j in range(i) if _touch(tracks[j], track)), default=0))
        outside = k in (-1, len(widths) - 1)
        needed = 2 * _MARGIN + _TRACK * max(levels, default=0)
        width = (needed if tracks else 0.0) if outside else max(needed, _NARROWEST)
        start = at + (width - _TRACK * max(levels, default=0)) / 2
        for track, level in zip(tracks, levels, strict=True):
            track.x = start + _TRACK * level
        at += width
    return x, at


def _touch(a: _Track, b: _Track) -> bool:
    """Return whether two tracks need places of their own."""
    overlap = a.low < b.high + _NEAR and b.low < a.high + _NEAR
    return overlap or _conflict(a, b) or _conflict(b, a)


def _conflict(left: _Track, right: _Track) -> bool:
    """Return whether wires would lie upon each other with the tracks in this order."""
    enters = right.enters
    return enters is not None and any(abs(y - enters) < _NEAR for y in left.leaves)


def _crossings(left: _Track, right: _Track) -> float:
    """Return the cost of two neighbouring tracks in this order: their crossings, and what must not be."""
    cost = sum(right.low < y < right.high for y in left.leaves)
    if right.enters is not None:
        cost += left.low < right.enters < left.high
    return cost + (100.0 if _conflict(left, right) else 0.0)


def _ordered(tracks: list[_Track]) -> list[_Track]:
    """Return the tracks of a channel from left to right, by swapping neighbours while that saves crossings."""
    tracks = sorted(tracks, key=lambda t: (t.enters is None, t.low if t.enters is None else -t.enters))
    for _ in range(len(tracks)):
        better = False
        for k in range(len(tracks) - 1):
            a, b = tracks[k], tracks[k + 1]
            if _crossings(b, a) < _crossings(a, b):
                tracks[k], tracks[k + 1] = b, a
                better = True
        if not better:
            break
    return tracks


def _lanes(layout: Layout, tracks: list[_Track]) -> dict[int, float]:
    """Return the height of the lane of each net that runs backwards."""
    span: dict[int, list[_Track]] = defaultdict(list)
    for track in tracks:
        if track.lane:
            span[track.net].append(track)
    placed: list[tuple[float, float, float]] = []
    lanes: dict[int, float] = {}
    for net in sorted(span, key=lambda k: max(t.x for t in span[k]) - min(t.x for t in span[k])):
        left, right = (f(span[net], key=lambda t: t.x) for f in (min, max))
        below = [box.y + box.height for c in layout.columns[left.channel + 1 : right.channel + 1] for box in c] + [
            h for t in span[net] for h in t.heights()
        ]
        y = max(below) + _LANE
        while any(abs(y - v) < _LANE - 0.5 and a < right.x + _NEAR and left.x < b + _NEAR for a, b, v in placed):
            y += _LANE / 4
        placed.append((left.x, right.x, y))
        lanes[net] = y
    return lanes


def _way(
    layout: Layout,
    net: Net,
    number: int,
    edge: Edge,
    tracks: dict[tuple[int, int, bool], _Track],
    lanes: dict[int, float],
    x: list[float],
    widths: list[float],
) -> list[Point]:
    """Return the corners of a wire from port to port."""
    source, target = layout.boxes[edge.source], layout.boxes[edge.target]
    begin = _port(source, source.shape.outputs[edge.output] if source.shape else (0.0, 0.0), x, widths)
    end = _port(target, target.shape.inputs[edge.input] if target.shape else (0.0, 0.0), x, widths)
    points = [begin]
    y = begin[1]
    if target.layer > source.layer:
        for k in range(source.layer, target.layer):
            following = end[1] if k + 1 == target.layer else net.passes[k + 1].y
            if abs(following - y) >= _STRAIGHT:
                track = tracks[number, k, False]
                points += [(track.x, y), (track.x, following)]
            y = following
    else:
        away, back = tracks[number, source.layer, False], tracks[number, target.layer - 1, True]
        lane = lanes[number]
        points += [(away.x, y), (away.x, lane), (back.x, lane), (back.x, end[1])]
    if len(points) == 1:
        begin = (begin[0], end[1])  # a step too small to be seen
        points = [begin]
    return [*points, end]


def _port(box: Box, port: Point, x: list[float], widths: list[float]) -> Point:
    assert box.shape is not None
    return x[box.layer] + (widths[box.layer] - box.shape.width) / 2 + port[0], box.y + port[1]


def _branches(track: _Track, lanes: dict[int, float]) -> list[tuple[int, Point]]:
    """Return where a track branches: where more than two pieces of wire meet."""
    if track.straight:
        return []
    bottom = lanes[track.net] if track.lane else max(track.heights())
    meet: dict[float, int] = defaultdict(int)
    for y in {*track.leaves}:
        meet[y] += 1
    if track.enters is not None:
        same = [y for y in meet if abs(y - track.enters) < _STRAIGHT]
        meet[same[0] if same else track.enters] += 1
    low, high = track.low + _STRAIGHT, bottom - _STRAIGHT
    return [(track.net, (track.x, y)) for y, pieces in meet.items() if pieces + (y > low) + (y < high) > 2]


def _lane_branches(tracks: list[_Track], lanes: dict[int, float]) -> list[tuple[int, Point]]:
    """Return where lanes branch: at the tracks between their ends."""
    ends: dict[int, list[float]] = defaultdict(list)
    for track in tracks:
        if track.lane:
            ends[track.net].append(track.x)
    return [(net, (at, lanes[net])) for net, xs in ends.items() for at in sorted(xs)[1:-1]]
