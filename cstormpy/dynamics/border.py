"""The border between users' arrays and the kernels: shapes, finiteness, names, and what went wrong.

Inside, a sample is a row: q, qd, u are (N, n), wrenches (0 | 1 | N, 6 n_links), the motion of the base
(0 | 1 | N, 12); 0 rows where there is none, 1 row where all samples share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import lie
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, SingularInertia

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Array = NDArray[np.float64]
#: A wrench for every link, or some wrenches, each (link, pose of its frame in the link's, wrench).
WrenchLike = ArrayLike | Sequence[tuple[str | int, ArrayLike | None, ArrayLike]] | None
#: Velocity and acceleration of the base, each (6,) or (N, 6), in its own frame.
BaseLike = tuple[ArrayLike, ArrayLike] | None

_NONE = np.zeros((0, 0))


@dataclass(frozen=True)
class Samples:
    """Samples ready for the kernels."""

    rows: dict[str, Array]
    wrench: Array
    base: Array
    single: bool

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(next(iter(self.rows.values())))

    def shaped(self, out: Array) -> Array:
        """Return a result with a row for each sample as the user gave the samples: one, or a batch."""
        return out[0] if self.single else out


def as_floats(value: Any, name: str) -> Array:
    """Return an array of float64, or refuse what is not numbers."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"{name}: expected an array of numbers, got rows of different lengths") from error
    if array.dtype.kind not in "fiub":
        raise InvalidType(f"{name}: expected real numbers, got {array.dtype} ({type(value).__name__})")
    return np.ascontiguousarray(array, dtype=np.float64)


def read_samples(
    mech: Mechanism, given: Mapping[str, Any], wrench: WrenchLike = None, base: BaseLike = None
) -> Samples:
    """Check coordinates, wrenches and the motion of the base, and return them as rows."""
    arrays = {name: as_floats(value, name) for name, value in given.items()}
    first_name, first = next(iter(arrays.items()))
    if first.ndim not in (1, 2) or first.shape[-1] != mech.n:
        raise ShapeError(
            f"{first_name}: expected shape ({mech.n},) or (N, {mech.n}), got {first.shape}; "
            f"the coordinates are {_some(mech.names)}"
        )
    for name, array in arrays.items():
        if array.shape != first.shape:
            raise ShapeError(
                f"{name}: expected shape {first.shape} like {first_name}, got {array.shape}; "
                "give one sample of each or a batch of each"
            )
    single = first.ndim == 1
    rows = {name: array.reshape(-1, mech.n) for name, array in arrays.items()}
    for name, array in rows.items():
        _refuse_non_finite(array, name, [f"joint {joint!r}" for joint in mech.names], single)
    count = len(next(iter(rows.values())))
    return Samples(rows, _wrench_rows(mech, wrench, count, single), _base_rows(base, count, single), single)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "none"


def _refuse_non_finite(rows: Array, name: str, columns: Sequence[str], single: bool) -> None:
    if np.isfinite(rows).all():
        return
    row, column = np.argwhere(~np.isfinite(rows))[0]
    where = "" if single else f" in row {row}"
    raise NonFinite(f"{columns[column]}: {name} is {rows[row, column]}{where}; all numbers must be finite")


def _rows_of(value: Array, shape: tuple[int, ...], count: int, single: bool, name: str) -> Array:
    """Return (1 | N, numbers) of a value given once for all samples or for each."""
    if value.shape == shape:
        return value.reshape(1, -1)
    if not single and value.shape == (count, *shape):
        return value.reshape(count, -1)
    batch = "" if single else f" or {(count, *shape)}"
    raise ShapeError(f"{name}: expected shape {shape}{batch}, got {value.shape}")


def _wrench_rows(mech: Mechanism, wrench: WrenchLike, count: int, single: bool) -> Array:
    if wrench is None:
        return _NONE
    if _is_list_of_loads(wrench):
        rows = _loads_on_links(mech, wrench, count, single)
    else:
        rows = _rows_of(as_floats(wrench, "wrench"), (len(mech.links), 6), count, single, "wrench")
    _refuse_non_finite(rows, "wrench", [f"link {link.name!r}" for link in mech.links for _ in range(6)], single)
    return rows


def _is_list_of_loads(wrench: Any) -> bool:
    return isinstance(wrench, (list, tuple)) and all(
        isinstance(entry, (list, tuple)) and len(entry) == 3 and isinstance(entry[0], (str, int)) for entry in wrench
    )


def _loads_on_links(mech: Mechanism, loads: Any, count: int, single: bool) -> Array:
    """Sum up loads (link, pose, wrench), each in a frame of its own, by links."""
    total = np.zeros((1, len(mech.links), 6))
    for k, (link, pose, wrench) in enumerate(loads):
        index = link_index(mech, link)
        name = f"wrench[{k}] on link {mech.links[index].name!r}"
        rows = _rows_of(as_floats(wrench, name), (6,), count, single, name)
        if pose is not None:
            rows = lie.transform_wrench(lie.inverse(as_floats(pose, f"{name}, pose")), rows)
        if len(rows) > len(total):
            total = np.repeat(total, len(rows), axis=0)
        total[:, index] += rows
    return np.ascontiguousarray(total.reshape(len(total), -1))


def _base_rows(base: BaseLike, count: int, single: bool) -> Array:
    if base is None:
        return _NONE
    if not isinstance(base, (tuple, list, np.ndarray)) or len(base) != 2:
        raise InvalidValue("base: expected the pair (V0, dV0), velocity and acceleration of the base, (6,) each")
    parts = [
        _rows_of(as_floats(part, f"base, {name}"), (6,), count, single, f"base, {name}")
        for part, name in zip(base, ("V0", "dV0"), strict=True)
    ]
    length = max(len(part) for part in parts)
    rows = np.hstack([np.broadcast_to(part, (length, 6)) for part in parts])
    _refuse_non_finite(rows, "its motion", ["base"] * 12, single)
    return np.ascontiguousarray(rows)


def link_index(mech: Mechanism, link: str | int) -> int:
    """Return the position of a link given by name or by position."""
    if isinstance(link, (int, np.integer)) and not isinstance(link, bool):
        if not 0 <= link < len(mech.links):
            raise InvalidValue(f"link {link}: there are {len(mech.links)} links, counted from 0")
        return int(link)
    return mech.link_index(link)


def failure(mech: Mechanism, structure: NDArray[np.int64], status: int, row: int | None) -> Exception:
    """Return the error for a kernel's status: a vanished pivot at a node, or a result that is not finite."""
    from cstormpy.kernels import layout

    where = "" if row is None else f" in row {row}"
    if status < 0:
        return NonFinite(f"the result{where} is not finite although all given numbers are: some are too large")
    joint = mech.names[structure[layout.N_NODES + layout.N_NODE * (status - 1) + layout.N_COORDINATE]]
    return SingularInertia(
        f"joint {joint!r}: moves no inertia{where}, so its acceleration is undefined; give the links that it moves "
        "mass or inertia, give the joint armature, or make it active"
    )
