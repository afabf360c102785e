"""The border between users' arrays and the kernels: shapes, finiteness, names, and what went wrong.

Inside, a sample is a row: q, qd, u are (N, n), loads (0 | 1 | N, 6 n_links or 21 n_links), the motion of the base
(0 | 1 | N, 12); 0 rows where there is none, 1 row where all samples share it. Of the 21 numbers of a link the first six
are its wrench, which turns with it; the others are its dead load, which keeps its direction in space: moment and force
in the base's axes, and Σ p fᵀ, p being the point of the link at which the force f acts (`cstormpy.kernels.loads`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import entries
from cstormpy.arrays import Array, Shape, as_floats, real_array, refuse_non_finite
from cstormpy.dynamics.loads import Wrenches
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, SingularInertia, UnknownName, shown
from cstormpy.graph.arrays import Symbols, as_numbers, is_symbolic, symbols
from cstormpy.kernels import layout
from cstormpy.linkage.loads import Load

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Owner = Callable[[tuple[int, ...]], str]
"""Says whose an entry of an array is, from its index."""
#: A wrench for every link, or loads, each a `Load` or (link, pose of its frame in the link's, wrench).
WrenchLike = ArrayLike | Load | Sequence[Load | tuple[str | int, ArrayLike | None, ArrayLike]] | None
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

    @property
    def given(self) -> list[Array]:
        """All arrays that are given, a row of each for each sample."""
        loads = [np.broadcast_to(a, (self.count, a.shape[1])) for a in (self.wrench, self.base) if len(a)]
        return [*self.rows.values(), *loads]

    @property
    def one_at_rest(self) -> bool:
        """True of one sample, without wrenches, of a base at rest."""
        return self.count == 1 and not len(self.wrench) and not len(self.base)

    @property
    def symbolic(self) -> bool:
        """True of one sample whose numbers are symbols of an expression graph."""
        return any(row.dtype == object for row in self.rows.values())

    def room(self, *shape: int) -> Array:
        """Return an array for results that are all written, a row of this shape for each sample."""
        return self.zeros(*shape) if self.symbolic else np.empty((self.count, *shape))

    def zeros(self, *shape: int) -> Array:
        """Return an array of zeros for results; `room` costs less for many samples, as its memory is used again."""
        if self.symbolic:
            zeros = np.zeros((self.count, *shape), dtype=object)
            zeros[...] = 0.0
            return zeros.view(Symbols)
        return np.zeros((self.count, *shape))

    def shaped(self, out: Array) -> Array:
        """Return a result with a row for each sample as the user gave the samples: one, or a batch."""
        return out[0] if self.single else out


def read_samples(
    mech: Linkage, given: Mapping[str, Any], wrench: WrenchLike = None, base: BaseLike = None, finite: bool = True
) -> Samples:
    """Check coordinates, wrenches and the motion of the base, and return them as rows.

    Without `finite`, coordinates may hold NaN and infinities, see `refuse_non_finite_samples`.
    """
    if mech.symbolic or any(is_symbolic(value) for value in given.values()):
        return _symbols(mech, given, wrench, base)
    arrays = {name: as_floats(value, name) for name, value in given.items()}
    first_name, first = next(iter(arrays.items()))
    if first.ndim not in (1, 2) or first.shape[-1] != mech.n:
        raise ShapeError(
            f"{first_name}: expected shape ({mech.n},) or (N, {mech.n}), got {first.shape}; "
            f"the coordinates are {some_of(mech.names)}"
        )
    for name, array in arrays.items():
        if array.shape != first.shape:
            raise ShapeError(
                f"{name}: expected shape {first.shape} like {first_name}, got {array.shape}; "
                f"{_hint_of_shape(mech, name, array.shape, first.shape)}"
            )
    if finite:
        _refuse_non_finite_coordinates(mech, arrays)
    single = first.ndim == 1
    count = 1 if single else len(first)
    rows = {name: array.reshape(count, mech.n) for name, array in arrays.items()}
    return Samples(rows, _wrench_rows(mech, wrench, count, single), _base_rows(base, count, single), single)


def _hint_of_shape(mech: Linkage, name: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    motors = int(mech.actuated_mask.sum())
    if name in ("tau", "u") and motors and given == (*wanted[:-1], motors):
        return f"of joints without motor it has a 0: {name} = np.zeros({wanted}), {name}[..., mech.actuated_mask] = ..."
    return "give one sample of each or a batch of each"


def refuse_non_finite_samples(mech: Linkage, samples: Samples) -> None:
    """Refuse coordinates that are not finite, where `read_samples` did not and no kernel noticed."""
    if not samples.symbolic:
        shaped = {name: samples.shaped(rows) for name, rows in samples.rows.items()}
        _refuse_non_finite_coordinates(mech, shaped)


def _refuse_non_finite_coordinates(mech: Linkage, arrays: Mapping[str, Array]) -> None:
    for name, array in arrays.items():
        refuse_non_finite(array, name, lambda index: f"joint {mech.names[index[-1]]!r}")
    for first in mech.ball_starts if "q" in arrays else ():
        _refuse_whole_turn(mech, arrays["q"], first)


def _refuse_whole_turn(mech: Linkage, q: Array, first: int) -> None:
    """Refuse rotation vectors as long as a whole turn, where their coordinates are singular."""
    angles = np.atleast_1d(np.sqrt((q[..., first : first + 3] ** 2).sum(axis=-1)))
    if (angles >= 2.0 * np.pi).any():
        row = int(np.argmax(angles >= 2.0 * np.pi))
        where = "" if q.ndim == 1 else f" in row {row}"
        joint = mech.links[mech.joint_links[first]].joint_name
        raise InvalidValue(
            f"q: joint {joint!r}: its rotation vector is {angles[row]:.6g} rad long{where}; a whole turn or more "
            f"has no rates: give the same rotation by a shorter vector, as mech.joint({joint!r}).recentred does"
        )


def _symbols(mech: Linkage, given: Mapping[str, Any], wrench: WrenchLike, base: BaseLike) -> Samples:
    """Return one sample of symbols; what acts on the mechanism from outside may be of them too."""
    rows: dict[str, Array] = {}
    for name, value in given.items():
        array = np.asarray(symbols(value))
        if array.shape != (mech.n,):
            row_by_row = "; a batch of symbols is asked row by row" if array.ndim == 2 else ""
            raise ShapeError(f"{name}: expected one sample, shape ({mech.n},), got {array.shape} symbols{row_by_row}")
        rows[name] = array[None, :].view(Symbols)
    return Samples(rows, _wrench_rows(mech, wrench, 1, True), _base_rows(base, 1, True), True)


def some_of(names: Sequence[str]) -> str:
    """Return the first names of a list, for messages."""
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "none"


def _rows_of(
    value: Any, shape: tuple[int, ...], count: int, single: bool, name: str, part: str, owner: Owner | None = None
) -> Array:
    """Return (1 | N, numbers) of a value given once for all samples or for each; `part` is what a shape's row is."""
    shapes: list[Shape] = [shape] if single else [shape, (count, *shape)]
    if is_symbolic(value) and np.shape(value) == shape:
        return symbols(value).reshape(1, math.prod(shape))
    array = real_array(value, name, *shapes, hint=part, finite=False)
    refuse_non_finite(array, name, owner)
    return array.reshape(1 if array.shape == shape else count, math.prod(shape))


_MOMENT_AND_FORCE = "a wrench is (moment, force)"
_ONE_OR_EACH = "a load is the same for all samples, or has a row for each of a batch"
_WIDE = layout.WRENCH + layout.DEAD


def read_loads(mech: Linkage, wrench: WrenchLike) -> Array:
    """Return loads that are the same for all samples as one row, (6 n_links,) or (21 n_links,), or (0,) for none."""
    rows = _wrench_rows(mech, wrench, 1, True)
    return rows[0] if len(rows) else np.zeros(0)


def _wrench_rows(mech: Linkage, wrench: WrenchLike, count: int, single: bool) -> Array:
    if wrench is None:
        return _NONE
    if isinstance(wrench, Load):
        wrench = [wrench]
    if isinstance(wrench, (list, tuple)) and (not wrench or any(map(_is_load, wrench))):
        return _loads_on_links(mech, wrench, count, single)
    if isinstance(wrench, (list, tuple)) and isinstance(wrench[0], str):
        raise InvalidType("wrench: expected a list of (link, pose or None, wrench), got one of them; put it in a list")
    if isinstance(wrench, Mapping):
        raise InvalidType("wrench: expected real numbers, got a dict; write [(link, None, wrench), ...] of some links")
    array = as_numbers(wrench.rows if isinstance(wrench, Wrenches) and wrench.rows is not None else wrench, "wrench")
    width = _WIDE if array.ndim in (2, 3) and array.shape[-1] == _WIDE else layout.WRENCH
    shape, part = (len(mech.links), width), f"a row (moment, force) for each of {len(mech.links)} links"
    return _rows_of(array, shape, count, single, "wrench", part, lambda index: f"link {mech.links[index[-2]].name!r}")


def _is_load(entry: Any) -> bool:
    """Tell whether an entry of a list is meant as a load or as (link, pose, wrench), and not as a row of numbers."""
    if isinstance(entry, Load):
        return True
    if not isinstance(entry, (list, tuple)) or not entry:
        return False
    link = isinstance(entry[0], (int, np.integer)) and len(entry) == 3 and not isinstance(entry[1], Real)
    return isinstance(entry[0], str) or link


def _loads_on_links(mech: Linkage, loads: Sequence[Any], count: int, single: bool) -> Array:
    """Sum up loads, each a `Load` or (link, pose, wrench) in a frame of its own, by links."""
    placed: list[tuple[int, str, Array]] = []
    for k, load in enumerate(loads):
        if isinstance(load, Load):
            index = link_index(mech, load.link, f"wrench[{k}]")
            name = f"wrench[{k}] on link {mech.links[index].name!r}"
            placed.append((index, name, _numbers_of(load, count, single, name)))
            continue
        if not isinstance(load, (list, tuple)) or len(load) != 3:
            size = f" of length {len(load)}" if isinstance(load, (list, tuple)) else ""
            got = f"{shown(load)}{size}"
            raise InvalidType(f"wrench[{k}]: expected (link, pose or None, wrench), got {got}; a Load will do too")
        index = link_index(mech, load[0], f"wrench[{k}]")
        name = f"wrench[{k}] on link {mech.links[index].name!r}"
        placed.append((index, name, _load_rows(load[1], load[2], count, single, name)))
    length = next((len(rows) for _, _, rows in placed if len(rows) != 1), 1)
    width = max((rows.shape[1] for _, _, rows in placed), default=layout.WRENCH)
    total = np.zeros((length, len(mech.links), width))
    for index, name, rows in placed:
        with np.errstate(over="ignore"):  # refused below
            total[:, index, : rows.shape[1]] += rows
        refuse_non_finite(total[:, index], f"{name}, the sum of loads")
    return total.reshape(length, width * len(mech.links))


def _numbers_of(load: Load, count: int, single: bool, name: str) -> Array:
    """Return a load as a wrench (1 | N, 6) in its link's frame or, if it does not turn with that, (1 | N, 21)."""
    force = _rows_of(load.force, (3,), count, single, f"{name}, its force", _ONE_OR_EACH)
    moment = _rows_of(load.moment, (3,), count, single, f"{name}, its moment", _ONE_OR_EACH)
    rows = np.zeros((*np.broadcast_shapes(force.shape[:1], moment.shape[:1]), _WIDE))
    with np.errstate(over="ignore", invalid="ignore"):  # refused where they are summed up
        if load.turns:
            rows[:, :3] = moment + np.cross(load.point, force)
            rows[:, 3:6] = force
            return rows[:, : layout.WRENCH]
        rows[:, 6:9], rows[:, 9:12] = moment, force
        rows[:, 12:] = (load.point[:, None] * force[:, None, :]).reshape(-1, 9)
    return rows


def _load_rows(pose: Any, wrench: Any, count: int, single: bool, name: str) -> Array:
    """Return the wrench of one load, (1 | N, 6), in the frame of its link."""
    rows = _rows_of(wrench, (6,), count, single, name, _MOMENT_AND_FORCE)
    if pose is None:
        return rows
    from cstormpy import lie

    frame = lie.check_pose(real_array(pose, f"{name}, its pose", (4, 4)), name=f"{name}, its pose")
    try:
        return lie.transform_wrench(frame, rows)
    except NonFinite as error:
        raise NonFinite(f"{name}: its moment in the link's frame overflows; the numbers are too large") from error


def _base_rows(base: Any, count: int, single: bool) -> Array:
    if base is None:
        return _NONE
    pair = isinstance(base, (tuple, list)) or (isinstance(base, np.ndarray) and base.ndim > 0)
    if not pair or len(base) != 2:
        raise InvalidValue("base: expected the pair (V0, dV0), velocity and acceleration of the base, (6,) each")
    parts = []
    for part, name in zip(base, ("V0", "dV0"), strict=True):
        parts.append(_rows_of(part, (6,), count, single, f"base, {name}", "a twist is (angular, linear)"))
    length = max(map(len, parts)) if min(map(len, parts)) else 0
    return np.hstack([np.broadcast_to(part, (length, 6)) for part in parts])


def link_index(mech: Linkage, link: str | int, what: str = "link") -> int:
    """Return the position of a link given by name or by position; `what` begins the message if it is neither."""
    if isinstance(link, str):
        return mech.link_index(link)
    if isinstance(link, bool) or not isinstance(link, (int, np.integer)):
        raise InvalidType(f"{what}: expected the name of a link or its position, got {shown(link)}")
    if not 0 <= link < len(mech.links):
        raise InvalidValue(
            f"{what}: expected a position from 0 to {len(mech.links) - 1} in the links, got {shown(link)}"
        )
    return int(link)


def coordinates_of(mech: Linkage, joints: Any, what: str) -> list[int]:
    """Return the positions in q of joints given by their names, or of one; `what` begins the message if one is none."""
    found: list[int] = []
    for name in [joints] if isinstance(joints, str) else entries(joints, what, "names of joints"):
        try:
            found += mech.joint_indices(name)
        except (UnknownName, InvalidType) as error:
            raise type(error)(f"{what}: {error}") from None
    return found


def refuse_overflow(samples: Samples, *results: Array) -> None:
    """Refuse results, a row for each sample, that are not finite where a kernel does not look itself."""
    for result in results if not samples.symbolic else ():
        with np.errstate(over="ignore", invalid="ignore"):
            sound = np.isfinite(result.sum())  # a sum of finite numbers may overflow, so look closer where it is not
        if not sound and not np.isfinite(result).all():
            raise _overflow(None if samples.single else int(np.argwhere(~np.isfinite(result))[0, 0]))


def _overflow(row: int | None) -> NonFinite:
    where = "" if row is None else f" in row {row}"
    return NonFinite(f"the result{where} is not finite although all given numbers are: some are too large")


def failure(mech: Linkage, structure: NDArray[np.int64], status: int, row: int | None) -> Exception:
    """Return the error for a kernel's status: a vanished pivot at a node, or a result that is not finite."""
    if status < 0:
        return _overflow(row)
    where = "" if row is None else f" in row {row}"
    joint = mech.names[structure[layout.N_NODES + layout.N_NODE * (status - 1) + layout.N_COORDINATE]]
    return SingularInertia(
        f"joint {joint!r}: moves no inertia{where}, so its acceleration is undefined; give the links that it moves "
        "mass or inertia, give the joint armature, or make it active"
    )
