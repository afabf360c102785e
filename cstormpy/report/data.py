"""Recorded data, compressed: extremes kept, times and values as 32-bit floats.

A trace of N samples is cut into equal spans of time, and of each the least and the greatest value stay, at their own
times: however a plot is drawn, its outline is that of all samples. Each array is stored as the difference from its
first value, so that 32 bits (a ten-millionth of its range) are enough; one whose range a 32-bit float cannot hold is
divided by a power of two.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.lie.exponential import quaternion_so3
from cstormpy.linkage.shapes import Solid
from cstormpy.linkage.skeleton import FAR, Drawing, Skeleton, skeleton
from cstormpy.report.resampling import resampled

POINTS = 2000
"""Points of a trace, while there are few."""
ALL_POINTS = 260_000
"""Points of all traces together; 8 bytes each before they are written as text."""
FRAMES_PER_SECOND = 30.0
_FRAMES_AT_LEAST = 50
ALL_NUMBERS = 250_000
"""Numbers of all frames of all mechanisms together."""
_LARGEST_POWER, _LEAST_POWER = 126, -100
"""Ranges up to and from these powers of two are stored as they are: 32-bit floats go from 2^-126 to 2^128."""
_COLUMNS = 4
"""Columns that change with a coordinate: those of a quaternion."""
TRAIL = 1.5
"""Seconds for which the ways of a mechanism's ends are seen, unless its block says others."""
_SPARE = 0.12
"""The way that a slide without limits is drawn beyond its motion, in sizes of the mechanism."""


def panes_of(out: Any) -> list[Any]:
    """Return what the panes of a run recorded."""
    return list(getattr(out, "data", {}).get(".panes") or getattr(out, "panes", None) or [])


def plants_of(bd: Any) -> list[tuple[Any, slice]]:
    """Return the blocks that simulate a mechanism, and where its positions are among the states of the diagram."""
    found, first = [], 0
    for block in bd.blocklist:
        mech = getattr(block, "mech", None)
        if block.nstates and type(block).__name__ == "HybridDynamics" and mech is not None:
            found.append((block, slice(first, first + mech.n)))
        first += block.nstates
    return found


def moving_plants(bd: Any, out: Any) -> list[Any]:
    """Return a pane for each mechanism that was simulated, from its states: for diagrams that show none."""
    known = getattr(out, "data", {})
    t, x = (np.asarray(known.get(name, []), dtype=float) for name in ("t", "x"))
    if x.ndim != 2 or x.shape[1] != sum(block.nstates for block in bd.blocklist):
        return []
    found = []
    for block, columns in plants_of(bd):
        plain = {"labels": list(block.mech.names), "unit": "", "options": {}, "mechanism": block.mech}
        pane = SimpleNamespace(name=block.name, kind="mechanism", title=block.name, t=t, y=x[:, columns], **plain)
        found.append(pane)
    return found


def shown_panes(bd: Any, out: Any) -> list[Any]:
    """Return the panes of a run that have samples, and the mechanisms that it simulates if none of them shows one."""
    panes = panes_of(out)
    if bd is not None and not any(pane.kind == "mechanism" for pane in panes):
        panes += moving_plants(bd, out)
    return [pane for pane in panes if len(pane.t) and np.size(pane.y)]


def trail_of(options: Mapping[str, Any] | None) -> float:
    """Return for how many seconds the ways of a mechanism's ends are seen, by the options of its pane."""
    trail = (options or {}).get("trail", True)
    return TRAIL if trail is True or not isinstance(trail, (bool, int, float)) else float(trail)


class Budget:
    """Numbers of points and frames that each pane of a run may keep.

    Parameters
    ----------
    panes : list
        The recorded panes.
    share : float
        Part of the usual amounts.
    """

    def __init__(self, panes: list[Any], share: float = 1.0) -> None:
        traces = sum(_width(pane) for pane in panes if pane.kind != "mechanism")
        moving = sum(_COLUMNS * _width(pane) for pane in panes if pane.kind == "mechanism")
        self.points = int(max(64, min(share * POINTS, share * ALL_POINTS / max(traces, 1))))
        self.frames = int(max(_FRAMES_AT_LEAST, share * ALL_NUMBERS / max(moving, 1)))
        self.rate = FRAMES_PER_SECOND * min(1.0, 2.0 * share)


def _width(pane: Any) -> int:
    return int(np.asarray(pane.y).reshape(len(pane.t), -1).shape[1]) if len(pane.t) else 0


def kept_samples(t: Array, columns: Array, points: int) -> NDArray[np.intp]:
    """Return the indices of the samples to keep: the first, the last, and each span's extremes of each column.

    Of a column's samples that are NaN, each span's first is kept too, so that a gap remains one.

    Parameters
    ----------
    t : ndarray (N,)
        Times, which do not decrease.
    columns : ndarray (N, m)
        Values.
    points : int
        About how many.
    """
    count = len(t)
    if count <= points or points < 2:
        return np.arange(count)
    spans = max(1, points // (2 * columns.shape[1]))
    width = (t[-1] - t[0]) / spans or 1.0
    span = np.minimum(((t - t[0]) / width).astype(np.intp), spans - 1)
    starts = np.flatnonzero(np.diff(span, prepend=-1))
    number = np.cumsum(np.diff(span, prepend=-1) > 0) - 1
    kept = [np.array([0, count - 1])]
    for column in columns.T:
        for least in (np.fmin, np.fmax):
            extreme = least.reduceat(column, starts)
            hits = np.flatnonzero(column == extreme[number])
            kept.append(hits[np.unique(number[hits], return_index=True)[1]])
        gaps = np.flatnonzero(np.isnan(column))
        kept.append(gaps[np.unique(number[gaps], return_index=True)[1]])
    return np.unique(np.concatenate(kept))


def pack(values: Array) -> dict[str, Any]:
    """Return an array as text: its first finite value, and the 32-bit floats to be added to it.

    If there is a "scale", the sum is to be multiplied by it.
    """
    values = np.asarray(values, dtype=float).reshape(-1)
    power = _scale_power(values[np.isfinite(values)])
    values = np.ldexp(np.where(np.isfinite(values), values, np.nan), -power)
    finite = values[np.isfinite(values)]
    offset = float(finite[0]) if len(finite) else 0.0
    text = base64.b64encode((values - offset).astype("<f4").tobytes()).decode("ascii")
    packed = {"n": len(values), "offset": offset, "base64": text}
    return {**packed, "scale": 2.0**power} if power else packed


def _scale_power(finite: Array) -> int:
    """Return the power of two by which to divide, 0 for what 32-bit floats hold."""
    half = float(finite.max() / 2 - finite.min() / 2) if len(finite) else 0.0  # the whole may be too large for 64 bits
    power = int(np.frexp(half)[1]) + 1
    if half == 0.0 or _LEAST_POWER <= power <= _LARGEST_POWER:
        return 0
    return max(power - _LARGEST_POWER, -1022)  # so that the factor itself is a normal number


def samples_of(pane: Any) -> tuple[Array, Array]:
    """Return times (N,) and values (N, k) of a pane, NaN where they are not finite."""
    t, y = np.asarray(pane.t, dtype=float).reshape(-1), np.asarray(pane.y, dtype=float)
    return t, np.where(np.isfinite(y), y, np.nan).reshape(len(t), -1)


def pane_data(pane: Any, budget: Budget) -> dict[str, Any]:
    """Return a scope or an XY plot as the page needs it."""
    t, y = samples_of(pane)
    data = {
        "kind": pane.kind,
        "name": str(pane.name),
        "title": str(pane.title or pane.name),
        "unit": str(pane.unit or ""),
        "labels": [str(label) for label in pane.labels],
        "options": _options(pane.options or {}),
        "names": getattr(pane, "names", None) or [None] * len(pane.labels),
        "ticks": shared_names(pane),
        "held": held_traces(pane),
    }
    if pane.kind == "xy":
        kept = kept_samples(t, y[:, :2], budget.points)
        return {**data, "t": pack(t[kept]), "x": pack(y[kept, 0]), "y": pack(y[kept, 1])}
    if len(t) <= budget.points:
        traces = [{"t": 0 if k else pack(t), "y": pack(values)} for k, values in enumerate(y.T)]
    else:
        each = ((values, kept_samples(t, values[:, None], budget.points)) for values in y.T)
        traces = [{"t": pack(t[kept]), "y": pack(values[kept])} for values, kept in each]
    return {**data, "samples": len(t), "traces": traces}


def held_traces(pane: Any) -> list[bool]:
    """Return of each trace of a pane whether each value is held until the next one."""
    told = getattr(pane, "held", None) or [False] * len(pane.labels)
    return [bool(each or (pane.options or {}).get("stairs")) for each in told]


def shared_names(pane: Any) -> list[str] | None:
    """Return what the values 0, 1, … of all traces of a pane are called, None where they differ or are quantities."""
    names = getattr(pane, "names", None) or [None]
    return list(names[0]) if names[0] and all(each == names[0] for each in names) else None


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """Return what the page knows of a pane's options."""
    known: dict[str, Any] = {k: bool(options[k]) for k in ("equal", "frames") if options.get(k) is not None}
    for name in ("scale", "xlim", "ylim"):
        try:
            limits = [float(v) for v in np.asarray(options.get(name), dtype=float).reshape(-1)]
        except (TypeError, ValueError):
            continue
        if len(limits) in (2, 4) and np.isfinite(limits).all():
            known[name] = limits
    return known


def mechanism_data(pane: Any, budget: Budget) -> dict[str, Any]:
    """Return a moving mechanism: its skeleton, and what its joints do at even times.

    "motions" has of each link the pose M⁻¹ T that its joint gives it, T in the parent's frame and M that at q = 0: a
    quaternion and the place of the joint's point, in columns that are one number where it does not change.
    """
    bones = bones_of(pane)
    t, q = motion_of(pane, bones)
    duration = float(t[-1] - t[0])
    frames = int(np.clip(duration * budget.rate + 1, 1 if duration == 0.0 else _FRAMES_AT_LEAST, budget.frames))
    at = np.linspace(t[0], t[-1], frames)
    moved = resampled(t, q, at)
    seen = Sight.of(bones.place(bones.poses(moved)))
    return {
        "kind": "mechanism",
        "name": str(pane.name),
        "title": str(pane.title or pane.name),
        "options": {**_options(pane.options or {}), "trail": trail_of(pane.options)},
        "skeleton": skeleton_data(bones),
        "low": seen.low.tolist(),
        "high": seen.high.tolist(),
        "follow": _follow(seen) if seen.follows else None,
        "t0": float(at[0]),
        "t1": float(at[-1]),
        "frames": frames,
        "motions": _motions(bones, moved),
        "rails": _rails(bones, moved),
        "motors": np.unique(pane.mechanism.joint_links[pane.mechanism.actuated_mask]).tolist(),
    }


def motion_of(pane: Any, bones: Skeleton) -> tuple[Array, Array]:
    """Return times (N,) and positions (N, n) of a pane's mechanism, those that are finite; at q = 0 if none are."""
    t, q = samples_of(pane)
    whole = np.isfinite(q).all(axis=1)
    return (t[whole], q[whole]) if whole.any() else (np.zeros(1), np.zeros((1, bones.n)))


class Sight(NamedTuple):
    """What of a mechanism is to be seen during its motion, in the base frame.

    Attributes
    ----------
    low, high : ndarray (3,)
        The least and the greatest coordinates of all that is drawn.
    boxes : ndarray (2, N, 3)
        Those of the mechanism itself in each posture.
    """

    low: Array
    high: Array
    boxes: Array

    @classmethod
    def of(cls, drawing: Drawing) -> Sight:
        """Return it for a mechanism that is drawn in a batch of postures."""
        points, moving = drawing.points(), drawing.moving()
        return cls(points.min(axis=0), points.max(axis=0), np.stack([moving.min(axis=-2), moving.max(axis=-2)]))

    @property
    def middles(self) -> Array:
        """Of the mechanism in each posture, (N, 3)."""
        return np.asarray(self.boxes.mean(axis=0))

    @property
    def side(self) -> float:
        """The longest side of a box that holds the mechanism in any posture [m]."""
        return float((self.boxes[1] - self.boxes[0]).max())

    @property
    def follows(self) -> bool:
        """True of one that goes so far that little of it would be seen at once, so that it is to be followed."""
        return float((self.high - self.low).max()) > FAR * self.side > 0.0


def _follow(seen: Sight) -> dict[str, Any]:
    """Return where the middle of a mechanism is, and the radius of a ball about it that holds it."""
    radius = 0.5 * float(np.linalg.norm(seen.boxes[1] - seen.boxes[0], axis=1).max())
    return {"middles": [pack(column) for column in seen.middles.T], "radius": radius}


def _motions(bones: Skeleton, q: Array) -> list[list[Any]]:
    found = []
    for joint, at in zip(bones.joints, bones.ranges, strict=True):
        X = joint.motion(q[:, at])
        columns = np.column_stack([_quaternions(X[:, :3, :3]), X[:, :3, :3] @ joint.end + X[:, :3, 3]])
        still = np.ptp(columns, axis=0) <= 1e-12 * np.abs(columns).max(initial=1.0)
        found.append([float(c[0]) if same else pack(c) for c, same in zip(columns.T, still, strict=True)])
    return found


def _quaternions(R: Array) -> Array:
    """Return unit quaternions (w, x, y, z) of rotations (N, 3, 3), each on the side of the one before it."""
    q = quaternion_so3(R)
    q /= np.linalg.norm(q, axis=1)[:, None]
    flips = np.einsum("ij,ij->i", q[1:], q[:-1]) < 0.0
    q[1:] *= np.where(np.cumsum(flips) % 2, -1.0, 1.0)[:, None]
    return np.asarray(q)


def _rails(bones: Skeleton, q: Array) -> list[dict[str, Any]]:
    """Return the way of each slide that was used, or may be, in the frame of its link's parent."""
    slid, spare = bones.slides(q), _SPARE * bones.reach
    rails = []
    for i, (joint, stroke) in enumerate(zip(bones.joints, bones.strokes, strict=True)):
        if joint.symbol.rail:
            low, high = stroke or (slid[:, i].min() - spare, slid[:, i].max() + spare)
            if stroke or bones.parents[i] >= 0:  # from the link that carries it, as a cable from its drum
                low, high = min(low, 0.0), max(high, 0.0)
            along = (bones.home[i, :3, :3] @ bones.axes[i]).tolist()
            rails.append({"link": i, "along": along, "low": float(low), "high": float(high)})
    return rails


def bones_of(pane: Any) -> Skeleton:
    """Return the skeleton of a pane's mechanism, seen as the pane was told."""
    bones = skeleton(pane.mechanism)
    planar = {"planar": True, "3d": False}.get(str((pane.options or {}).get("view")), bones.planar)
    return replace(bones, planar=planar)


def skeleton_data(bones: Skeleton) -> dict[str, Any]:
    """Return a skeleton as the page's script reads it; poses and points in metres, matrices row by row."""
    return {
        "names": list(bones.names),
        "parents": bones.parents.tolist(),
        "order": list(bones.order),
        "symbols": [joint.symbol._asdict() for joint in bones.joints],
        "home": [pose[:3].reshape(-1).tolist() for pose in bones.home],
        "axes": bones.axes.tolist(),
        "points": bones.points.tolist(),
        "starts": bones.starts.tolist(),
        "lines": [[line.tolist() for line in polylines] for polylines in bones.lines],
        "solids": [[_solid_data(solid) for solid in solids] for solids in bones.solids],
        "base": [line.tolist() for line in bones.base],
        "coms": bones.coms.tolist(),
        "masses": bones.masses.tolist(),
        "tips": [[i, tip.tolist()] for i, tip in bones.tips],
        "planar": bones.planar,
        "right": bones.right.tolist(),
        "up": bones.up.tolist(),
        "reach": bones.reach,
    }


def _solid_data(solid: Solid) -> dict[str, Any]:
    """Return a shape: its middle, corners and normals with as many digits as a picture shows."""
    rounded = [np.array([float(f"{v:.5g}") for v in a.reshape(-1)]).reshape(a.shape).tolist()
               for a in (solid.middle, solid.corners, solid.normals)]  # fmt: skip
    colour = None if solid.colour is None else [round(255 * part) for part in solid.colour.tolist()]
    return {
        "middle": rounded[0],
        "corners": rounded[1],
        "normals": rounded[2],
        "faces": [list(face) for face in solid.faces],
        "colour": colour,
        "smooth": solid.smooth,
    }
