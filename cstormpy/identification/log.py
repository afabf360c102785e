"""Logs of motions and torques: from our runs, frames of pandas or arrays to rows q, q̇, q̈, τ.

What a log lacks of rates and accelerations comes from a spline fitted to the positions (or, where rates are there, the
accelerations from one fitted to these), which filters noise by having fewer control points than there are samples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import mapping, option
from cstormpy.arrays import Array, as_floats
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName, shown, unknown_name
from cstormpy.reporting import notice_once
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

QUANTITIES = ("q", "qd", "qdd", "tau")
_PER_TIME = {"q": "", "qd": "/s", "qdd": "/s²"}
#: Most control points per sample of the spline that filters, unless said.
SHARE = 0.2
#: Fewer are no longer tried where the score is worse than the best by this [nats].
_WORSE = 2.0
#: So many of its segments at either end are left out where there are more than so many.
_OFF, _SEGMENTS = 2, 20
#: Its degree: the acceleration is then cubic.
DEGREE = 5
#: The least rows of a log whose motion is simulated.
LEAST_ROWS = 3
#: Cosine between steps of the positions and those that the rates say, from which on their ratio is taken for that of
#: their units, and how far from that of degrees to radians it may be.
_ALIKE, _FACTOR = 0.9, 0.05
#: An angle that jumps by a turn to so much, and makes no other step as large, is kept within a turn [rad].
_NEAR_TURN = 1.0
#: A log is cut where rows are so many times as far apart as they mostly are, if there are no more such gaps than one in
#: so many rows.
_GAP, _FEW_GAPS = 20.0, 50
#: Two positions at one time differ by more than this part of them.
_SAME_PLACE = 1e-9


@dataclass(frozen=True)
class Log:
    """Rows (N, n) of a motion and its torques, and the times (N,), which are the rows' numbers where there are none.

    `measured` are positions as they were logged, (N, n), with the rates behind them if these were too, (N, 2n), and NaN
    where a motion that is simulated was not measured; `run`
    says of each row which of several logs it is of, or which part of one that is cut where it jumps, and `names` what
    messages call the log of each of these; `timed` whether there were times; `differentiated` whether rates, or
    accelerations that are asked for, come from splines; `kept` of each row that was given whether it is here.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    measured: Array
    run: NDArray[np.int64]
    names: tuple[str, ...]
    timed: bool
    differentiated: bool
    kept: NDArray[np.bool_]


def read_logs(
    mech: Mechanism,
    data: Any,
    signals: Mapping[str, str] | None,
    control_points: int | None,
    missing: str,
    simulated: bool = False,
) -> Log:
    """Return one log of all that was given, a log or a list of logs, whose motions are to be simulated or not.

    Raises
    ------
    CstormError
        Naming the quantity, the joint and the row.
    """
    option(missing, "missing", ("refuse", "drop"))
    several = isinstance(data, (list, tuple))
    if several and not data:
        raise InvalidValue("data: there are no logs")
    given = list(data) if several else [data]
    logs = [
        _read(
            mech,
            one,
            mapping(signals, "signals"),
            control_points,
            missing,
            f"data[{k}]" if several else "data",
            simulated,
        )
        for k, one in enumerate(given)
    ]
    widths = {log.measured.shape[1] for log in logs}
    firsts = np.cumsum([0, *(int(log.run[-1]) + 1 if len(log.run) else 1 for log in logs[:-1])])
    joined: dict[str, Any] = {name: np.concatenate([getattr(log, name) for log in logs]) for name in ("t", *QUANTITIES)}
    return Log(
        **joined,
        measured=np.concatenate([log.measured[:, : min(widths)] for log in logs]),
        run=np.concatenate([log.run + first for log, first in zip(logs, firsts, strict=True)]),
        names=tuple(name for log in logs for name in log.names),
        timed=all(log.timed for log in logs),
        differentiated=any(log.differentiated for log in logs),
        kept=np.concatenate([log.kept for log in logs]),
    )


def _read(
    mech: Mechanism,
    data: Any,
    signals: dict[str, str],
    control_points: int | None,
    missing: str,
    what: str,
    simulated: bool,
) -> Log:
    rows = _rows(mech, data, signals, what)
    t = _times(data, signals.get("t", "t"), len(rows["q"]), what)
    keep = _complete(mech, rows, t, missing, what, simulated)
    parts = _parts(mech, rows["q"], t, np.flatnonzero(keep), what)
    _say_turns(mech, rows["q"], parts, what)
    if t is not None and "qd" in rows:
        _say_degrees(mech, t, rows["q"], rows["qd"], parts, what)
    whole, found_parts = sum(map(len, parts)), []
    splined = not ("qd" in rows and "qdd" in rows)
    shortest = DEGREE + 2 if splined else LEAST_ROWS
    for at in parts:
        if len(parts) > 1 and len(at) < shortest:
            keep[at] = False
            continue
        if t is not None and (simulated or splined):
            _refuse_two_places(t, rows["q"], at, mech.names, what)
        part = {name: array[at] for name, array in rows.items()}
        part["t"] = at.astype(float) if t is None else t[at]
        part["measured"] = np.hstack([part[name] for name in ("q", "qd") if name in rows])
        points = control_points
        if points is not None and len(parts) > 1:
            points = max(DEGREE + 1, round(points * len(at) / whole))
        _fill(mech, part, what)
        splines = _differentiate(part, None if t is None else part["t"], points, what)
        if splines and not simulated:
            inner = np.logical_and.reduce([_inside(spline, part["t"]) for spline in splines])
            keep[at[~inner]] = False
            part = {name: array[inner] for name, array in part.items()}
        found_parts.append(part)
    if not found_parts:
        raise InvalidValue(
            f"{what}: its rotation vectors jump by more than half a turn every few rows; log more of them"
        )
    joined = {name: np.concatenate([part[name] for part in found_parts]) for name in ("t", *QUANTITIES, "measured")}
    run = np.repeat(np.arange(len(found_parts)), [len(part["t"]) for part in found_parts])
    names, differentiated = (what,) * len(found_parts), "qd" not in rows if simulated else splined
    return Log(**joined, run=run, names=names, timed=t is not None, differentiated=differentiated, kept=keep)


def _rows(mech: Mechanism, data: Any, signals: dict[str, str], what: str) -> dict[str, Array]:
    """Return the quantities that a log has, by name, of as many rows each."""
    for name in signals:
        option(name, "signals", ("t", *QUANTITIES))
    if isinstance(data, Mapping) and not _is_run(data):
        _look_at_keys(data, signals, what)
    found = {name: _quantity(mech, data, name, signals.get(name), what) for name in QUANTITIES}
    for name in ("q", "tau"):
        if found[name] is None:
            raise UnknownName(f"{what}: has no {name}; {_ways(mech, name)}")
    rows = {name: array for name, array in found.items() if array is not None}
    count = len(rows["q"])
    for name, array in rows.items():
        if len(array) != count:
            raise ShapeError(f"{what}, {name}: expected {count} rows like q, got {len(array)}")
    return rows


def _complete(
    mech: Mechanism, rows: dict[str, Array], t: Array | None, missing: str, what: str, simulated: bool
) -> NDArray[np.bool_]:
    """Return which rows are finite as far as they are needed; others are refused unless they are to be left out."""
    count = len(rows["q"])
    keep = np.ones(count, dtype=bool) if t is None else _timed(t, missing, what)
    for name, array in rows.items():
        bad = ~np.isfinite(array)
        if bad.any() and missing == "refuse":
            row, j = np.argwhere(bad)[0]
            raise NonFinite(
                f"{what}, {name}: joint {mech.names[j]!r} is {array[row, j]} in row {row}, and "
                f"{int(bad.any(axis=1).sum())} of {count} rows are not finite; missing='drop' leaves them out"
            )
        if name == "tau" or not simulated:  # a torque acts whether the motion was measured or not
            keep &= ~bad.any(axis=1)
    if not keep.any():
        raise InvalidValue(f"{what}: has no rows{' that are finite' * (count > 0)}; log more of the motion")
    if t is not None:
        _refuse_falls(t, keep, what)
    return keep


def _is_run(data: Any) -> bool:
    """Tell a run from a frame, which has its columns as attributes, perhaps one that is called "signal"."""
    return callable(getattr(data, "signal", None)) and hasattr(data, "t")


def _look_at_keys(data: Mapping[Any, Any], signals: dict[str, str], what: str) -> None:
    """Refuse signals that a dict has not, and tell of what is not read of it."""
    keys = [str(key) for key in data]
    for name, signal in signals.items():
        if signal not in data:
            raise unknown_name(f"signals: {name}: entry of {what}", signal, keys)
    read = {signals.get(name, name) for name in ("t", *QUANTITIES)}
    others = [key for key in keys if key not in read]
    if others:
        notice_once(
            f"{what}: {', '.join(map(repr, others))} is not read; of a dict these are: q, qd, qdd, tau and t, or what "
            "signals= names, as in signals={'qd': 'velocity'}"
        )


def _timed(t: Array, missing: str, what: str) -> NDArray[np.bool_]:
    """Return which rows have a time; refuse those that have none unless they are to be left out."""
    finite: NDArray[np.bool_] = np.isfinite(t)
    if missing == "refuse" and not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise NonFinite(f"{what}, t: is {t[row]} in row {row}; missing='drop' leaves it out")
    return finite


def _refuse_falls(t: Array, keep: NDArray[np.bool_], what: str) -> None:
    at = np.flatnonzero(keep)
    falls = np.flatnonzero(np.diff(t[at]) < 0.0)
    if len(falls):
        before, row = at[falls[0] : falls[0] + 2]
        raise InvalidValue(f"{what}, t: falls from {t[before]:g} to {t[row]:g} in row {row}; sort the rows by time")


def _refuse_two_places(t: Array, q: Array, at: NDArray[np.int64], names: Sequence[str], what: str) -> None:
    """Refuse rows `at` of two positions at one time, as of a clock that stood: no motion goes through both."""
    if len(at) > 1 and t[at[-1]] == t[at[0]]:
        raise InvalidValue(f"{what}, t: all rows have the time {t[at[0]]:g}")
    moved = np.abs(np.diff(q[at], axis=0)) > _SAME_PLACE * (1.0 + np.abs(q[at][1:]))
    twice = np.argwhere(moved & (np.diff(t[at]) == 0.0)[:, None])
    if len(twice):
        k, j = twice[0]
        raise InvalidValue(
            f"{what}, t: is {t[at[k]]:g} in rows {at[k]} and {at[k + 1]}, where joint {names[j]!r} is at "
            f"{q[at[k], j]:.6g} and {q[at[k + 1], j]:.6g}; correct the times, or leave one of the rows out"
        )


def _parts(mech: Mechanism, q: Array, t: Array | None, at: NDArray[np.int64], what: str) -> list[NDArray[np.int64]]:
    """Return the rows `at` in parts without gaps, within which no rotation vector jumps, as where one is re-centred."""
    cuts: set[int] = set()
    for first in mech.ball_starts:
        ball = q[:, first : first + 3]
        seen = at[np.isfinite(ball[at]).all(axis=1)]
        jumps = np.linalg.norm(np.diff(ball[seen], axis=0), axis=1) > np.pi
        cuts |= set(np.searchsorted(at, seen[1:][jumps]).tolist())
    if t is not None and len(at) > 1:
        apart = np.diff(t[at])
        gaps = 1 + np.flatnonzero(apart > _GAP * np.median(apart))
        if len(gaps) * _FEW_GAPS < len(at):  # else rows are logged now and then
            cuts |= set(gaps.tolist())
            for k in gaps:
                notice_once(f"{what}: has no rows from t = {t[at[k - 1]]:g} to {t[at[k]]:g} s; it is cut there")
    return np.split(at, sorted(cuts))


def _say_turns(mech: Mechanism, q: Array, parts: list[NDArray[np.int64]], what: str) -> None:
    """Say where the angle of a hinge jumps by a turn and else goes on in small steps, as one kept within a turn."""
    for j in [j for j, freedom in enumerate(mech.freedoms) if freedom.winds]:
        steps = np.concatenate([np.diff(q[at, j], prepend=q[at[:1], j]) for at in parts])
        jumps = np.flatnonzero(np.abs(steps) > np.pi)
        turned = np.abs(np.abs(steps[jumps]) - 2.0 * np.pi) < _NEAR_TURN
        if len(jumps) and turned.all() and np.abs(np.delete(steps, jumps)).max(initial=0.0) < _NEAR_TURN:
            row = np.concatenate(parts)[jumps[0]]
            notice_once(
                f"{what}, q: joint {mech.names[j]!r} jumps by a turn in row {row}; give angles that go on, by "
                "np.unwrap(q, axis=0)"
            )


def _say_degrees(mech: Mechanism, t: Array, q: Array, qd: Array, parts: list[NDArray[np.int64]], what: str) -> None:
    """Say which joints' angles are in degrees and their rates in radians, or the other way round."""
    moved = np.concatenate([np.diff(q[at], axis=0) for at in parts])
    meant = np.concatenate([0.5 * np.diff(t[at])[:, None] * (qd[at][1:] + qd[at][:-1]) for at in parts])
    squares = [np.sum(a * b, axis=0) for a, b in ((moved, moved), (moved, meant), (meant, meant))]
    found: dict[str, list[str]] = {"q of joint {} turns 57.3 times as far as its qd says": []}
    found["qd of joint {} is 57.3 times as fast as its q turns"] = []
    for name, freedom, far, both, fast in zip(mech.names, mech.freedoms, *squares, strict=True):
        if freedom.unit == "rad" and both > _ALIKE * np.sqrt(far * fast):
            for names, ratio in zip(found.values(), (both / fast, fast / both), strict=True):
                if abs(np.deg2rad(ratio) - 1.0) < _FACTOR:
                    names.append(name)
    for text, names in found.items():
        if names:
            told = text.format(", ".join(names))
            notice_once(f"{what}: {told}; angles are in radians, and degrees are converted by np.deg2rad(...)")


def _quantity(mech: Mechanism, data: Any, name: str, signal: str | None, what: str) -> Array | None:
    """Return (N, n) of a quantity, or None where a log has none."""
    if _is_run(data):
        found = data.signal(signal) if signal else _from_columns(mech, data.columns(), name)
    elif hasattr(data, "columns") and hasattr(data, "to_numpy"):
        found = _from_columns(mech, {str(column): data[column] for column in data.columns}, name, signal)
    elif isinstance(data, Mapping):
        found = data.get(signal or name)
    else:
        raise InvalidType(
            f"{what}: expected a run, a frame of pandas or a dict of arrays, got {shown(data)}; as "
            "{'t': t, 'q': q, 'tau': tau}, or cs.load(path) of a file"
        )
    if found is None:
        return None
    array = as_floats(found, f"{what}, {name}")
    array = array[:, None] if array.ndim == 1 else array
    motors = np.flatnonzero(mech.actuated_mask)
    of_motors = name == "tau" and array.ndim == 2 and array.shape[1] == len(motors) != mech.n
    joints = motors.tolist() if of_motors else list(range(mech.n))
    _refuse_units(mech, getattr(data, "units", None), name, signal, joints, what)
    if of_motors:
        wide = np.zeros((len(array), mech.n))  # a joint without motor has no torque
        wide[:, motors] = array
        return wide
    if array.ndim != 2 or array.shape[1] != mech.n:
        also = f" or (N, {len(motors)}), one for each motor" if name == "tau" and len(motors) != mech.n else ""
        raise ShapeError(
            f"{what}, {name}: expected shape (N, {mech.n}){also}, got {array.shape}; the coordinates are "
            f"{', '.join(mech.names)}"
        )
    return array


def _refuse_units(mech: Mechanism, units: Any, name: str, signal: str | None, joints: Sequence[int], what: str) -> None:
    """Refuse columns of a file, of some joints, whose header says another unit than that of their quantity."""
    for k, (joint, freedom) in enumerate((mech.names[j], mech.freedoms[j]) for j in joints):
        meant = ("N m" if freedom.turns else "N") if name == "tau" else freedom.unit + _PER_TIME[name]
        for column in (f"{joint}.{name}", f"{signal or name}[{k}]", signal or name):
            unit = units.get(column, "") if isinstance(units, Mapping) else ""
            if unit and _plain(unit) != _plain(meant):
                raise InvalidValue(
                    f"{what}, {name}: column {column!r} is in {unit!r}, and joint {joint!r} has {meant!r}; give it "
                    "converted, in a frame of pandas or a dict of arrays"
                )


def _plain(unit: str) -> str:
    """Return a unit without what people write in several ways: rad/s², rad s^-2 is rad/s^2, and N·m is Nm."""
    for written, meant in (("⁻¹", "-1"), ("⁻²", "-2"), ("²", "2"), ("radians", "rad"), ("sec", "s")):
        unit = unit.replace(written, meant)
    unit = re.sub(r"[\s·⋅*^.]", "", unit)
    return unit.replace("s-1", "/s").replace("s-2", "/s2").replace("/s/s", "/s2")


def _from_columns(mech: Mechanism, columns: Mapping[str, Any], name: str, signal: str | None = None) -> Array | None:
    """Return what columns tell: "<joint>.q" for each joint, or "q[0]", "q[1]", …, as a run's have a signal."""
    found = {joint: f"{joint}.{name}" for joint in mech.names}
    if signal is None and any(label in columns for label in found.values()):
        there = {joint: np.asarray(columns[label], dtype=float) for joint, label in found.items() if label in columns}
        for joint, label in found.items():  # where there is no motor there may be no column of its torque
            if joint not in there and (name != "tau" or mech.actuated_mask[mech.names.index(joint)]):
                raise unknown_name("column", label, columns)
        nothing = np.zeros_like(next(iter(there.values())))
        return np.column_stack([there.get(joint, nothing) for joint in mech.names])
    label = signal or name
    several = [columns[key] for key in (f"{label}[{k}]" for k in range(mech.n)) if key in columns]
    if several:
        return np.column_stack([np.asarray(column, dtype=float) for column in several])
    if label in columns:
        return np.asarray(columns[label], dtype=float)
    if signal is not None:
        raise unknown_name("column", signal, columns)
    return None


def _times(data: Any, name: str, count: int, what: str) -> Array | None:
    if _is_run(data):
        found = data.t
    elif hasattr(data, "columns"):
        found = data[name] if name in data.columns else data.index if data.index.name == name else None
    else:
        found = data.get(name)
    if found is None:
        return None
    t = as_floats(found, f"{what}, t")
    if t.shape != (count,):
        raise ShapeError(f"{what}, t: expected shape ({count},), a time for each row of q, got {t.shape}")
    return t


def _ways(mech: Mechanism, name: str) -> str:
    return (
        f"give {{'{name}': array}}, columns '{mech.names[0]}.{name}', …, or the name of a signal, as "
        f"signals={{'{name}': 'plant.{name}'}}"
    )


def _fill(mech: Mechanism, rows: dict[str, Array], what: str) -> None:
    """Fill in positions and rates that were not measured, from the rows around them."""
    for name in ("q", "qd"):
        for j, column in enumerate(rows[name].T if name in rows else ()):
            seen = np.isfinite(column)
            if not seen.any():
                raise InvalidValue(f"{what}, {name}: has no rows that are finite of joint {mech.names[j]!r}; log more")
            if not seen.all():
                rows[name] = rows[name].copy()
                rows[name][:, j] = np.interp(rows["t"], rows["t"][seen], column[seen])


def _differentiate(rows: dict[str, Array], t: Array | None, control_points: int | None, what: str) -> list[BSpline]:
    """Fill in rates and accelerations that were not logged, and return the splines of the joints that give them."""
    if "qd" in rows and "qdd" in rows:
        return []
    lacking = "qd" if "qd" not in rows else "qdd"
    if t is None:
        raise UnknownName(f"{what}: has no {lacking} and no t to differentiate by; give the times 't'")
    count = len(t)
    points = max(DEGREE + 1, round(SHARE * count)) if control_points is None else control_points
    if count <= points:
        raise InvalidValue(f"{what}: {count} rows are too few for a spline of {points} control points")
    values = rows["q"] if lacking == "qd" else rows["qd"]
    if control_points:
        whole = BSpline.fit(t, values, points, degree=DEGREE)
        splines = [whole.select([j]) for j in range(whole.n)]
    else:
        splines = _validated(t, values, points)
    found = np.concatenate([spline.evaluate(t, 2) for spline in splines], axis=2)
    if lacking == "qd":
        rows["q"], rows["qd"], rows["qdd"] = found
    else:
        rows["qdd"] = found[1]
    return splines


def _inside(spline: BSpline, t: Array) -> NDArray[np.bool_]:
    """Return which times are off the ends of a spline, where data on one side alone leave its derivatives uncertain."""
    breaks = np.unique(spline.knots)
    if len(breaks) <= _SEGMENTS:
        return np.ones(len(t), dtype=bool)
    return (t >= breaks[_OFF]) & (t <= breaks[-1 - _OFF])


def _validated(t: Array, values: Array, most: int) -> list[BSpline]:
    """Return of each joint the spline of `most` control points, or of a half, a fourth, … of them, that filters best.

    By N RSS / (N − m)², the generalised cross-validation of Craven and Wahba 1979: of noisy positions it takes
    fewer than of others beside them.
    """
    count, joints = len(t), values.shape[1]
    least = count * (np.finfo(float).eps * np.abs(values).max(axis=0)) ** 2 + np.finfo(float).tiny
    best, found = np.full(joints, np.inf), dict[int, BSpline]()
    while most > DEGREE:
        spline = BSpline.fit(t, values, most, degree=DEGREE)
        left = ((spline(t) - values) ** 2).sum(axis=0)
        score = np.log(np.maximum(left, least) * count / (count - most) ** 2)
        if len(found) == joints and (score > best + _WORSE).all():
            break
        for j in np.flatnonzero(score < best).tolist():
            best[j], found[j] = score[j], spline.select([j])
        most //= 2
    return [found[j] for j in range(joints)]
