"""Sources of motion: B-splines, and signals saved by a run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bdsim.components import SourceBlock
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of, positive
from cstormpy.arrays import Array, real_number
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.errors import (
    CstormError,
    FileFormatError,
    InvalidType,
    InvalidValue,
    ShapeError,
    UnknownName,
    shown,
)
from cstormpy.graph.choices import choose
from cstormpy.graph.nodes import where
from cstormpy.simulation import results
from cstormpy.simulation.run_start import is_ahead, refuse_many
from cstormpy.trajectory import BSpline, playback
from cstormpy.trajectory.checks import control_point_array, finite_array

INTERPOLATIONS = ("linear", "previous", "cubic")


class SplineTrajectory(bases.Ported, SourceBlock):
    r"""Position, rate and acceleration along a B-spline motion.

    - output q (ndarray(n)): position of each joint of the curve [rad, m]
    - output qd (ndarray(n)): rate of each joint [rad/s, m/s]
    - output qdd (ndarray(n)): acceleration of each joint [rad/s², m/s²]

    The curve :math:`c(s)`, on :math:`[s_0, s_1]`, is played from ``start`` on, at a speed :math:`v`:

    .. math::

        q(t) = c(s), \qquad \dot{q}(t) = v\, c'(s), \qquad \ddot{q}(t) = v^2 c''(s), \qquad
        s = s_0 + v\, (t - t_\mathrm{start}).

    Before it begins and once it has ended, with ``ends="hold"`` the nearest end is held at rest; ``"repeat"`` plays it
    over and over; ``"error"`` ends the run. The times at which a motion jumps are declared, so that no step of an
    integration reaches over them: its ends, and the knots where the rate or the acceleration jumps.

    ``speed`` is tunable; a change takes effect when a run starts.

    Examples::

        motion = bd.SPLINETRAJECTORY([[0, 0], [0, 0], [1, 2], [1, 2]], duration=2)
        motion = bd.SPLINETRAJECTORY("swing_up.json", joints=["elbow"])

    :seealso: :class:`cstormpy.trajectory.BSpline`
    """

    nout = 3
    outlabels = ("q", "qd", "qdd")

    def __init__(
        self,
        curve: BSpline | ArrayLike | str | os.PathLike[str],
        duration: float | None = None,
        degree: int = 3,
        joints: Sequence[str | int] | None = None,
        start: float | None = None,
        speed: float = 1.0,
        ends: str = "hold",
        **blockargs: Any,
    ) -> None:
        """Create the source.

        :param curve: a curve; control points (m, n), for a curve from the first to the last; or the path of a JSON file
        :type curve: BSpline, array_like or path
        :param duration: how long the motion takes [s]; needed with control points, else that of the curve unless given
        :type duration: float, optional
        :param degree: degree of a curve given by control points, defaults to 3
        :type degree: int
        :param joints: names or indices of the joints to play; all unless given
        :type joints: list, optional
        :param start: when it begins [s]; when the curve does unless given
        :type start: float, optional
        :param speed: how many times as fast it is played, defaults to 1
        :type speed: float
        :param ends: what holds outside, one of: 'hold' [default], 'repeat', 'error'
        :type ends: str
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        made = _curve(curve, duration, degree)
        made = made if joints is None else made.select(ports.listed_joints(joints))
        begin = made.t0 if start is None else real_number(start, "start")
        pace, outside = positive(speed, "speed"), one_of(ends, "ends", playback.ENDS)
        _check_span(begin, made.duration / pace)
        super().__init__(**ports.options(type(self), blockargs))
        self._curve, self._from, self._ends = made.replace(outside="hold"), begin, outside
        self._speed = self._pace = pace
        self.add_param("speed")
        self._widths = (), (made.n,) * 3

    @property
    def curve(self) -> BSpline:
        """The curve that is played."""
        return self._curve

    @property
    def speed(self) -> float:
        """Factor by which the curve is played faster."""
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        pace = positive(value, "speed")
        _check_span(self._from, self._curve.duration / pace)
        self._speed = pace

    def take_up(self) -> None:
        """Take up what has been set since the last run."""
        self._pace = self._speed

    def start(self, simstate: Any) -> None:
        """Begin a run: tell it when this source jumps."""
        super().start(simstate)
        self.take_up()
        _declare(self, simstate)

    def edges(self) -> tuple[list[float], float]:
        """Return when it begins, jumps and ends, and after which time it does so again, 0 if it does not."""
        curve, begin, length = self._curve, self._from, self._curve.duration / self._pace
        kinks = [begin + (knot - curve.t0) / self._pace for knot in _kinks(curve)]
        return _repeated([begin, *kinks, begin + length], self._ends)

    def edge_time(self, t: float) -> Callable[[], float]:
        """Return what reads, from the speed of then, when the jump comes that now comes at a time."""
        curve, begin = self._curve, self._from
        length = curve.duration if self._ends == "repeat" else math.inf
        ways = np.array([curve.t0, *_kinks(curve), curve.t1]) - curve.t0
        rounds = np.round((self._pace * (t - begin) - ways) / length)
        ways += rounds * curve.duration
        way = float(ways[np.argmin(np.abs(begin + ways / self._pace - t))])
        return lambda: float(begin + way / self._pace)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return position, rate and acceleration."""
        curve, pace, begin = self._curve, self._pace, self._from
        within, held = _place(self, t, begin, begin + curve.duration / pace, self._ends)
        q, qd, qdd = curve.evaluate(np.clip(curve.t0 + pace * (within - begin), curve.t0, curve.t1))
        moves = where(held, 0.0, pace)
        return [q, moves * qd, moves * moves * qdd]


class FromData(bases.Ported, SourceBlock):
    r"""A signal played back from samples: of a run that was saved, or from arrays.

    - output y (float, ndarray): the signal; a number where the samples are

    Between two samples, at :math:`t_i \le t < t_{i+1}`, it is

    .. math::

        y(t) = y_i + \frac{t - t_i}{t_{i+1} - t_i} (y_{i+1} - y_i)

    with ``interpolation="linear"``, :math:`y_i` with ``"previous"``, and on the cubic spline through the samples with
    ``"cubic"``. Two samples of one time are a jump, at which the later one holds. Before the first and after the last
    sample, ``ends="hold"`` keeps the nearest one, ``"repeat"`` plays the record over and over, ``"error"`` ends the
    run. Jumps are declared, so that no step of an integration reaches over them; bends are not: as the carrier of a
    PWM take a sawtooth, ``t=[0, T], y=[0, 1], ends="repeat"``, or ``WAVEFORM("triangle")``, whose corners are declared.

    Examples::

        again = bd.FROMDATA("run.npz", signal="plant.q")
        torque = bd.FROMDATA(t=[0, 1, 2], y=[0, 5, 0])

    :seealso: :meth:`cstormpy.simulation.results.Result.save`
    """

    nout = 1
    outlabels = ("y",)

    def __init__(
        self,
        data: Any = None,
        signal: str | None = None,
        t: ArrayLike | None = None,
        y: ArrayLike | None = None,
        interpolation: str = "linear",
        ends: str = "hold",
        **blockargs: Any,
    ) -> None:
        """Create the source.

        :param data: file saved by a run (npz, csv or mat), what ``cs.load`` made of it, or what a run returned; not
            given where t and y are; a matrix is played as the row of its numbers
        :type data: path, Recorded or Result, optional
        :param signal: name of the signal in the data, as in "plant.q"; needed where there are several
        :type signal: str, optional
        :param t: times of the samples, which do not decrease [s]
        :type t: array_like, optional
        :param y: the samples, (N,) or (N, width)
        :type y: array_like, optional
        :param interpolation: what holds between samples, one of: 'linear' [default], 'previous', 'cubic'
        :type interpolation: str
        :param ends: what holds outside of the samples, one of: 'hold' [default], 'repeat', 'error'
        :type ends: str
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        times, values = _samples(data, signal, t, y)
        between, outside = one_of(interpolation, "interpolation", INTERPOLATIONS), one_of(ends, "ends", playback.ENDS)
        if outside == "repeat":
            length = float(times[-1] - times[0])
            _check_span(float(times[0]), length)
            times = times - times[0] + _first_round(float(times[0]), length)  # as late times are coarse
        pieces = playback.cubics(times, values) if between == "cubic" else []
        super().__init__(**ports.options(type(self), blockargs))
        self._times, self._values, self._pieces = times, values, pieces
        self._between, self._ends = between, outside
        self._begins = np.array([piece.t0 for piece in pieces])
        self._widths = (), (1 if values.ndim == 1 else int(values.shape[1]),)

    def start(self, simstate: Any) -> None:
        """Begin a run: tell it when this source jumps."""
        super().start(simstate)
        _declare(self, simstate)

    def edges(self) -> tuple[list[float], float]:
        """Return when it begins, jumps and ends, and after which time it does so again, 0 if it does not."""
        times, values = self._times, self._values
        changes = np.any(np.diff(values.reshape(len(values), -1), axis=0) != 0.0, axis=1)
        jumps = changes if self._between == "previous" else changes & (np.diff(times) == 0.0)
        found = [float(times[0]), *times[1:][jumps].tolist(), float(times[-1])]
        return _repeated(found, self._ends)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the signal."""
        times = self._times
        within, _ = _place(self, t, times[0], times[-1], self._ends)
        if self._between == "cubic":
            y = choose(playback.at_sample(within, self._begins), self._pieces, within).reshape(self._values.shape[1:])
        else:
            y = (playback.linear if self._between == "linear" else playback.previous)(within, times, self._values)
        return [y.copy() if np.ndim(y) else np.ravel(y)[0]]


# ---------------------------------------------------------------- what both share


def _place(block: Any, t: Any, begin: Any, end: Any, ends: str) -> tuple[Any, Any]:
    try:
        return playback.place(t, begin, end, ends)
    except InvalidValue as error:
        raise InvalidValue(f"{ports.label(block)}: {error}") from None


def _check_span(begin: float, length: float) -> None:
    """Refuse what takes no time at all, or ends beyond all floats."""
    if not math.isfinite(begin + length) or begin + length <= begin:
        raise InvalidValue(f"it begins at {begin:g} s and takes {length:g} s: expected an end that is later and finite")


def _first_round(begin: float, length: float) -> float:
    """Return when a round begins that is the first from 0 on; at 0 itself if what is left is the rounding of times."""
    first = begin % length
    rounding = float(np.spacing(abs(begin) + length)) * (1.0 + abs(begin) / length)
    return 0.0 if min(first, length - first) <= rounding else first


def _repeated(edges: list[float], ends: str) -> tuple[list[float], float]:
    """Return edges, from the beginning to the end, and 0; or those of the first repetition behind 0, and its length."""
    length = edges[-1] - edges[0]
    return (sorted({t % length for t in edges[:-1]}), length) if ends == "repeat" else (edges, 0.0)


def _declare(block: Any, simstate: Any) -> None:
    """Tell a run when a source jumps: at its ends, at times between them, and so in each repetition."""
    now, until = getattr(simstate, "t", None) or 0.0, getattr(simstate, "tf", None)
    if until is None:
        return
    (jumps, period), first, last = block.edges(), 0, 0
    if period:
        first, last = math.floor(now / period), math.ceil(until / period)
    refuse_many(block, (last - first + 1) * len(jumps))
    for k in range(first, last + 1):
        for when in (jump + k * period for jump in jumps):
            if when > 0.0 and is_ahead(simstate, when):
                simstate.declare_event(block, when)


# ---------------------------------------------------------------- arguments of SPLINETRAJECTORY


def _curve(given: Any, duration: float | None, degree: int) -> BSpline:
    if isinstance(given, BSpline):
        made = given
    elif isinstance(given, (str, os.PathLike)):
        made = _load(given)
    else:
        if not (np.iterable(given) or _shape(given)):
            raise InvalidType(
                f"curve: expected a BSpline, as solution.motion, control points or a file's path, got {shown(given)}"
            )
        if duration is None:
            raise InvalidValue("duration: control points need one; give the time that the motion takes")
        points = [[p] for p in given] if _shape(given)[1:] == () and np.iterable(given) else given
        return BSpline.clamped(control_point_array(points), positive(duration, "duration"), degree=degree)
    return made if duration is None else made.with_duration(duration)


def _load(path: str | os.PathLike[str]) -> BSpline:
    try:
        return BSpline.load(path)
    except FileFormatError as error:
        if os.fsdecode(path).lower().endswith(".json"):
            raise
        hint = "cs.BSpline.interpolate(t, q) makes a curve of samples, and FROMDATA plays them"
        raise FileFormatError(f"{error}; {hint}") from error
    except CstormError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InvalidValue(f"curve: the file {os.fsdecode(path)!r} cannot be read: {reason}") from error


def _kinks(curve: BSpline) -> list[float]:
    """Return the knots inside of the interval at which the rate or the acceleration may jump."""
    inner = curve.knots[(curve.knots > curve.t0) & (curve.knots < curve.t1)]
    knots, often = np.unique(inner, return_counts=True)
    return [float(knot) for knot, times in zip(knots, often, strict=True) if curve.degree - times < 2]


# ---------------------------------------------------------------- arguments of FROMDATA


def _samples(data: Any, signal: Any, t: Any, y: Any) -> tuple[Array, Array]:
    """Return times (N,) and samples (N,) or (N, width)."""
    if signal is not None and not isinstance(signal, str):
        raise InvalidType(f"signal: expected a name, got {shown(signal)}")
    if data is None:
        if t is None or y is None or signal is not None:
            raise InvalidValue("data: expected a file or what a run returned, or else arrays t and y and no signal")
    elif t is not None or y is not None:
        raise InvalidValue("t, y: the samples come from the data; give either of them")
    else:
        signal, t, y = _recorded(data, signal)
    what = "y" if signal is None else f"signal {signal!r}"
    times = finite_array(t, "t", (None,))
    values = finite_array(y, what, (None,) if len(_shape(y)) == 1 else (None, None), "one row per time")
    if not values.size or len(values) != len(times):
        raise ShapeError(
            f"{what}: expected one sample for each of {len(times)} times, at least one, got {values.shape}"
        )
    if (np.diff(times) < 0.0).any():
        k = int(np.argmax(np.diff(times) < 0.0))
        raise InvalidValue(f"t: must not decrease, but {times[k + 1]:g} follows {times[k]:g} at index {k + 1}")
    return times, values


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:
        return ()


def _recorded(data: Any, signal: str | None) -> tuple[str, Array, Array]:
    """Return name, times and samples of a signal from a file, or from what a run returned: both are read alike."""
    if isinstance(data, (str, os.PathLike)):
        data = results.read(data)
    if isinstance(data, results.Recorded):
        record, names = data, sorted(data.signals)
    elif isinstance(data, results.Result):
        record, names = data.recorded(), list(data.data.get("ynames", []))
    else:
        raise InvalidType(f"data: expected the path of a file or what a run returned, got {shown(data)}")
    if signal is None:
        if len(names) != 1:
            raise InvalidValue(f"signal: the data hold several; name one of {', '.join(names[:12]) or 'none'}")
        signal = names[0]
    try:
        return signal, record.t, record.signal(signal)
    except UnknownName:
        if isinstance(data, results.Result) and data.signal(signal) is not None:  # or it says what was not watched
            raise InvalidType(f"signal {signal!r}: expected numbers of one shape; name another") from None
        raise
