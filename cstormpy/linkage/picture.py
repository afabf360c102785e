"""The picture of a mechanism in one posture, as SVG, for a notebook: no more than NumPy is needed."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.linkage.linkage import Linkage
from cstormpy.linkage.skeleton import Drawing, Skeleton, skeleton

_WIDTH, _HEIGHT, _MARGIN = 380.0, 280.0, 34.0
"""Size of a picture at most, and the free space in it around the mechanism [px]."""
_TURN, _TILT = 0.6, 0.35
"""By how much what moves in space is seen from its side, and from above [rad]."""
_APART = 0.4
"""How far the joints on one link are turned to both sides [rad]."""
_MOST_NAMES = 8
"""Joints of a larger mechanism are not named."""
_LETTER = 7.5
"""About how wide a letter of a name is [px]."""
_LINK, _INK, _BASE = "#3467c2", "#1b2330", "#98a3b5"


def spread(mech: Linkage) -> Array:
    """Return the posture q = 0, (n,), but for joints on one link, which are turned apart so that each is seen.

    >>> from cstormpy.mechanism import library
    >>> spread(library.branched_acrobot()).tolist()
    [0.0, -0.4, 0.4]
    """
    beside: dict[int, list[int]] = {}
    for k, link in enumerate(mech.joint_links.tolist()):
        if mech.freedoms[k].unit == "rad" and (k == 0 or mech.joint_links[k - 1] != link):
            beside.setdefault(int(mech.parents[link]), []).append(k)
    q = np.zeros(mech.n)
    for places in beside.values():
        if len(places) > 1:
            q[places] = np.linspace(-_APART, _APART, len(places))
    return q


def svg(mech: Linkage, q: ArrayLike) -> str:
    """Return the picture of a mechanism in a posture, (n,): motors are filled, joints without one are rings.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> svg(library.acrobot(), [0.3, 0.5]).count("<circle")
    2
    """
    bones = skeleton(mech)
    drawing = bones.place(bones.poses(q))
    look = _directions(bones)
    flat = drawing.points() @ look[:2].T
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = np.array([_WIDTH, _HEIGHT]) - 2.0 * _MARGIN
    scale = float((room / np.maximum(high - low, 1e-9 * bones.reach)).min())
    width, height = (scale * (high - low) + 2.0 * _MARGIN).tolist()

    def seen(points: Array) -> Array:
        """Return where points (k, 3) are in the picture, (k, 2)."""
        flat = (np.atleast_2d(points) @ look[:2].T - low) * scale + _MARGIN
        return np.column_stack([flat[:, 0], height - flat[:, 1]])

    motors = {int(link) for link in mech.joint_links[mech.actuated_mask]}
    names = _names(bones, seen(drawing.joints)) if len(bones.joints) <= _MOST_NAMES else {}
    parts = [*_bodies(drawing, look[2], seen), *_joints(bones, drawing, motors, seen)]
    parts += [f'<text x="{x}" y="{y}" fill="{_INK}">{html.escape(name)}</text>' for (x, y), name in names.items()]
    width = max(width, *(x + _LETTER * len(name) for (x, _), name in names.items())) if names else width
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="11" fill="none" stroke-linecap="round" stroke-linejoin="round">'
        f'<rect width="100%" height="100%" rx="8" fill="#fff"/>{"".join(parts)}</svg>'
    )


def _names(bones: Skeleton, places: Array) -> dict[tuple[int, int], str]:
    """Return the names of joints by where they stand in the picture, those of one place together."""
    found: dict[tuple[int, int], str] = {}
    for joint, name, (x, y) in zip(bones.joints, bones.joint_names, places, strict=True):
        at = round(x) + 7, round(y) - 7
        if joint.symbol.mark:
            found[at] = f"{found[at]}, {name}" if at in found else name
    return found


def image(drawn: str, about: str) -> str:
    """Return an element of HTML that shows an SVG, apart from the style of the page around it."""
    content = base64.b64encode(drawn.encode()).decode()
    return f'<img alt="{html.escape(about)}" src="data:image/svg+xml;base64,{content}" style="max-width:100%">'


def _directions(bones: Skeleton) -> Array:
    """Return the directions (3, 3) to the right, upwards and towards the viewer."""
    right, up = bones.right, bones.up
    towards = np.cross(right, up)
    if not bones.planar:
        right, towards = (
            np.cos(_TURN) * right - np.sin(_TURN) * towards,
            np.cos(_TURN) * towards + np.sin(_TURN) * right,
        )
        up, towards = np.cos(_TILT) * up - np.sin(_TILT) * towards, np.cos(_TILT) * towards + np.sin(_TILT) * up
    return np.stack([right, up, towards])


def _bodies(drawing: Drawing, towards: Array, seen: Callable[[Array], Array]) -> Iterator[str]:
    """Yield base and links; of those that have shapes the faces that are turned to the viewer, the far ones first."""
    yield from (_line(seen(line), _BASE, 6.0) for line in drawing.base)
    solids = [solid for link in drawing.solids for solid in link]
    for solid in sorted(solids, key=lambda solid: float(solid.middle @ towards)):
        colour = _LINK if solid.colour is None else "#" + "".join(f"{round(255 * c):02x}" for c in solid.colour)
        for face, normal in zip(solid.faces, solid.normals, strict=True):
            if normal @ towards > 0.0:
                edge = colour if solid.smooth else "#fff"
                more = f'fill="{colour}" fill-opacity=".85" stroke="{edge}" stroke-width=".6"'
                yield f'<polygon points="{_text(seen(solid.corners[list(face)]))}" {more}/>'
    plain = [lines for lines, solids in zip(drawing.lines, drawing.solids, strict=True) if not solids]
    yield from (_line(seen(line), _LINK, 5.0) for lines in plain for line in lines)


def _joints(bones: Skeleton, drawing: Drawing, motors: set[int], seen: Callable[[Array], Array]) -> Iterator[str]:
    """Yield rails and joints."""
    for i, joint in enumerate(bones.joints):
        (x, y), start = seen(drawing.joints[i])[0], seen(drawing.anchors[i])
        if joint.symbol.rail:
            yield _line(np.vstack([start, [(x, y)]]), _BASE, 2.0)
        if not joint.symbol.mark:
            continue
        more = f'fill="{_INK if i in motors else "#fff"}" stroke="{_INK}" stroke-width="1.6"'
        if joint.symbol.mark == "slider":
            yield f'<rect x="{x - 6:.1f}" y="{y - 4:.1f}" width="12" height="8" rx="1.5" {more}/>'
        else:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2" {more}/>'


def _line(points: Array, colour: str, width: float) -> str:
    return f'<polyline points="{_text(points)}" stroke="{colour}" stroke-width="{width:g}"/>'


def _text(points: Array) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
