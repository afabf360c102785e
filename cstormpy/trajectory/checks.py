"""Arguments of trajectories, checked: real, finite arrays of the shape named, refused in one voice."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import ArrayLike

from cstormpy.arguments import entries
from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown

OUTSIDE = ("hold", "refuse")
"""The choices at a time outside of a curve's interval."""


def finite_array(value: ArrayLike, what: str, shape: tuple[int | None, ...], hint: str = "") -> Array:
    """Return `value` as a new contiguous float64 array of that shape; ``None`` stands for any length.

    >>> finite_array([[1, 2]], "control points", (None, 2)).tolist()
    [[1.0, 2.0]]
    """
    lengths = tuple("any" if length is None else length for length in shape)
    return real_array(value, what, lengths, hint=hint) + 0.0  # which turns -0.0 into 0.0


def control_point_array(control_points: ArrayLike) -> Array:
    """Return control points (m, n) as an array of at least one row and one column."""
    points = finite_array(control_points, "control points", (None, None), "one row per point, one column per joint")
    if not points.size:
        raise ShapeError(f"control points: expected at least one row and one column, got {points.shape}")
    return points


def end_points(q0: ArrayLike, q1: ArrayLike) -> tuple[Array, Array]:
    """Return start and end of a motion, (n,) each."""
    start, stop = finite_array(q0, "q0", (None,)), finite_array(q1, "q1", (None,))
    if start.shape != stop.shape or not start.size:
        raise ShapeError(f"q1: expected the shape {start.shape} of q0, at least one joint, got {stop.shape}")
    return start, stop


def joint_names(names: Iterable[str] | None, n: int) -> tuple[str, ...] | None:
    """Return the names of `n` joints as a tuple, or None where the joints have no names."""
    if names is None:
        return None
    found = tuple(entries(names, "names", f"{n} joint names"))
    for name in found:
        if not isinstance(name, str) or not name:
            raise InvalidType(f"names: expected joint names that are non-empty strings, got {shown(name)}")
    if len(found) != n:
        raise ShapeError(f"names: expected {n} joint names, one per column of the control points, got {len(found)}")
    twice = next((a for a in found if found.count(a) > 1), None)
    if twice is not None:
        raise InvalidValue(f"names: joint {twice!r} is named twice")
    return found
