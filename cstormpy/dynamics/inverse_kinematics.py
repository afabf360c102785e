"""Inverse kinematics: the coordinates that bring a frame on a link to a pose; `pose_search` does the search."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks, lie
from cstormpy.arguments import flag, option, six_flags
from cstormpy.arrays import Array, real_array
from cstormpy.dynamics.checked_arguments import link_index, read_samples
from cstormpy.dynamics.largest_angles import LargestAngles
from cstormpy.dynamics.pose_search import Found, PoseSearch, Tip
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, shown
from cstormpy.linkage.scales import length_of

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage
    from cstormpy.linkage.joints import OneDofJoint

MASKS = {
    "pose": (1, 1, 1, 1, 1, 1),
    "position": (0, 0, 0, 1, 1, 1),
    "orientation": (1, 1, 1, 0, 0, 0),
    "planar": (0, 0, 1, 1, 1, 0),
}
"""Directions that have a name: rotation about the target's x, y, z, then translation along them."""


@dataclass(frozen=True)
class InverseKinematics:
    """The answer: for one target, or for N, then with a leading dimension N, or a tuple of N.

    Attributes
    ----------
    q : ndarray, (n,) or (N, n)
        The coordinates; where the target is not reached, those of the nearest pose found.
    reached : bool, or ndarray (N,)
        Whether both errors are within the tolerance.
    error : ndarray, (2,) or (N, 2)
        How far the frame is from the target in the directions asked for: rotation [rad], translation [m].
    iterations : int, or ndarray (N,)
        Steps from the start to `q`.
    starts : int, or ndarray (N,)
        How many starts were tried.
    at_limit : tuple of str, or a tuple of N such
        The joints that stand at a limit of theirs, of those that move the link; a ball by its name if it stands at its
        largest angle.
    message : str, or a tuple of N
        Why it ended there.
    """

    q: Array
    reached: Any
    error: Array
    iterations: Any
    starts: Any
    at_limit: tuple[Any, ...]
    message: Any


def inverse_kinematics(
    mech: Linkage,
    link: str | int,
    pose: ArrayLike,
    q0: ArrayLike | None = None,
    *,
    tool: ArrayLike | None = None,
    mask: str | Sequence[bool] = "pose",
    limits: bool = True,
    path: bool = False,
    starts: int = 64,
    rng: np.random.Generator | int | None = None,
    tolerance: float | tuple[float, float] = 1e-10,
    length: float | None = None,
    iterations: int = 100,
    prepare: Callable[..., Tip],
) -> InverseKinematics:
    """Return coordinates that bring a link to a pose; `Mechanism.inverse_kinematics` says what is what.

    `prepare` makes the frame that is to be brought there: `tip_of`, or what knows of loops.
    """
    tip = prepare(mech, link, tool, mask, flag(limits, "limits"), length, tolerance)
    hint = "a point is that of a pose: np.eye(4) with it in the last column, and mask='position'"
    targets = real_array(pose, "pose", (4, 4), ("N", 4, 4), hint=hint)
    single = targets.ndim == 2
    rows = lie.check_pose(targets, name="pose").reshape(-1, 4, 4)
    first = _first(mech, q0, len(rows), single, flag(path, "path"))
    search = PoseSearch(tip, checks.count(starts, "starts"), _generator(rng), checks.count(iterations, "iterations"))
    return _answer(tip, search.along(rows, first) if path else search.each(rows, first), single)


def tip_of(
    mech: Linkage,
    link: str | int,
    tool: object,
    mask: object,
    limits: bool,
    length: object,
    tolerance: object,
    others: Iterable[int] = (),
) -> Tip:
    """Return the frame on a link, with the joints that move it and others that are to move too."""
    index = link_index(mech, link)
    way = _way(mech, index)
    own = (k for k in range(mech.n) if mech.joint_links[k] in way)
    moving = np.array(sorted({*own, *others}), dtype=np.int64)
    joints = [mech.freedoms[k] for k in moving]
    frame = None if tool is None else tool_pose(tool)
    size = _reach(mech, way, frame) if length is None else checks.positive(length, "length")
    ranges = [_range(joint) if limits else (-np.inf, np.inf) for joint in joints]
    low, high = np.array(ranges, dtype=np.float64).reshape(-1, 2).T
    winds = np.array([joint.winds for joint in joints], dtype=bool)
    scale = np.array([1.0 if joint.turns else size for joint in joints])
    carried = None if frame is None else (frame, lie.Ad(lie.inverse(frame)))
    places = {int(k): place for place, k in enumerate(moving)}
    angles = LargestAngles(tuple((places[k], angle) for k, angle in mech.largest_angles if limits and k in places))
    within = _tolerance(tolerance)
    return Tip(mech, index, carried, moving, low, high, winds, scale, masked(mask), size, within, angles)


def _range(joint: OneDofJoint) -> tuple[float, float]:
    limits = joint.limits
    return (-np.inf, np.inf) if limits is None or limits.position is None else limits.position


def tool_pose(tool: Any) -> Array:
    """Return the pose of a tool's frame in the link's, from such a pose or from a point."""
    frame = real_array(tool, "tool", (3,), (4, 4), hint="give a point or a pose in the link's frame")
    return lie.check_pose(frame, name="tool") if frame.ndim == 2 else lie.make_pose(np.eye(3), frame)


def _way(mech: Linkage, link: int) -> list[int]:
    """Return the links from the base to a link."""
    way = []
    while link >= 0:
        way.append(link)
        link = int(mech.parents[link])
    return way[::-1]


def _reach(mech: Linkage, way: list[int], tool: Array | None) -> float:
    """Return the length of the way along the origins from the base to the frame; the mechanism's if they coincide."""
    origins = [mech.links[k].pose[:3, 3] for k in way] + ([] if tool is None else [tool[:3, 3]])
    total = sum(float(np.linalg.norm(origin)) for origin in origins)
    return total if total > 0 else length_of(mech)


def masked(mask: Any) -> NDArray[np.int64]:
    """Return the directions that count, of the six of a twist."""
    if isinstance(mask, str):
        chosen = np.array(MASKS[option(mask, "mask", MASKS)])
    else:
        said = six_flags(mask)
        if said is None:
            raise (InvalidValue if isinstance(mask, Iterable) else InvalidType)(
                "mask: expected six true or false (rotation about x, y, z and translation along x, y, z of the "
                f"target) or one of {', '.join(map(repr, MASKS))}, got {mask!r:.80}"
            )
        chosen = np.array(said)
        if not chosen.any():
            raise InvalidValue("mask: no direction is asked for; at least one must be true")
    return np.flatnonzero(chosen)


def _tolerance(tolerance: object) -> tuple[float, float]:
    if isinstance(tolerance, (tuple, list)):
        if len(tolerance) != 2:
            raise ShapeError(f"tolerance: expected one number or (rotation, translation), got {len(tolerance)} entries")
        return checks.positive(tolerance[0], "tolerance[0]"), checks.positive(tolerance[1], "tolerance[1]")
    both = checks.positive(tolerance, "tolerance")
    return both, both


def _generator(rng: Any) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    try:
        seed = 0 if rng is None else operator.index(rng)
    except TypeError:
        raise InvalidType(f"rng: expected a numpy Generator, a seed or None, got {shown(rng)}") from None
    if seed < 0:
        raise InvalidValue(f"rng: a seed must not be negative, got {seed}")
    return np.random.default_rng(seed)


def _first(mech: Linkage, q0: ArrayLike | None, count: int, single: bool, path: bool) -> Array:
    """Return where the search begins, (N, n); of a path the first row counts."""
    if q0 is None:
        return np.zeros((count, mech.n))
    samples = read_samples(mech, {"q0": q0})
    if not samples.single and (single or path or samples.count != count):
        wanted = f"({mech.n},)" if single or path else f"({mech.n},) or ({count}, {mech.n})"
        why = "; a path has one beginning" if path else ""
        raise ShapeError(f"q0: expected shape {wanted}, got {samples.rows['q0'].shape}{why}")
    return np.array(np.broadcast_to(samples.rows["q0"], (count, mech.n)))


def _answer(tip: Tip, found: Found, single: bool) -> InverseKinematics:
    error = tip.distance(found.e)
    if not np.isfinite(error).all():
        row = int(np.argwhere(~np.isfinite(error))[0, 0])
        where = "" if single else f" in row {row}"
        raise NonFinite(f"link {tip.mech.links[tip.link].name!r}: its pose{where} overflows; the numbers are too large")
    q = found.q[:, tip.moving]
    held = (q <= tip.low) | (q >= tip.high)
    names = [tip.mech.names[k] for k in tip.moving]
    held = np.concatenate([held, tip.angles.at_limit(q)], axis=1)
    names += [tip.mech.links[tip.mech.joint_links[tip.moving[k]]].joint_name for k, _ in tip.angles.places]
    at_limit = tuple(tuple(name for name, stands in zip(names, row, strict=True) if stands) for row in held)
    message = tuple(_message(found, k, error[k], at_limit[k]) for k in range(len(error)))
    whole = InverseKinematics(found.q, found.reached, error, found.steps, found.starts, at_limit, message)
    if not single:
        return whole
    rows = (getattr(whole, field.name)[0] for field in fields(whole))
    return InverseKinematics(*(row.item() if isinstance(row, np.generic) else row for row in rows))


def _message(found: Found, row: int, error: Array, at_limit: tuple[str, ...]) -> str:
    start, starts, steps = int(found.start[row]), int(found.starts[row]), int(found.steps[row])
    came = f"from {f'start {start + 1} of {starts}' if start else 'q0'} in {steps} iteration{'s'[: steps != 1]}"
    if found.reached[row]:
        return f"reached {came}"
    tried = f"none of {starts} starts came nearer" if starts > 1 else "try more starts"
    why = tried if found.settled[row] else f"still moving when the iterations ran out ({tried})"
    limits = f"; at a limit: {', '.join(at_limit)}" if at_limit else ""
    return f"not reached: {error[0]:.3g} rad and {error[1]:.3g} m away, {came}; {why}{limits}"
