"""Phase portraits: where the states of a diagram go in the plane of two of them, and where they rest."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cstormpy.arguments import option, positive
from cstormpy.arrays import Array, real_array
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, shown
from cstormpy.reporting import notice, plain
from cstormpy.simulation.analysis.analysis_start import first_state, started
from cstormpy.simulation.analysis.model import make_model
from cstormpy.simulation.handlers import handling, kept
from cstormpy.simulation.named_states import numbers, phase_planes, state_places
from cstormpy.simulation.saved_state import opened
from cstormpy.simulation.units import mechanisms_of, units_of
from cstormpy.simulation.wiring import compile_diagram, refuse_no_diagram

_WHO = "phase_portrait"
#: Rates are computed at so many places along each axis, and lines drawn so close to each other.
_POINTS, _DENSITY = 40, 1.2
#: So many samples of a run are a smooth line.
_SAMPLES = 1000
#: Newton's steps to a point of rest at most, rates that are none, as a part of the largest in the picture, and steps
#: that move nothing, as a part of the picture.
_STEPS, _NONE, _STILL = 50, 1e-10, 1e-9
#: The part of the picture by which a point is moved for a difference.
_MOVED = 1e-6
#: Points of rest are one within this part of the picture: some are found no closer, where slopes vanish too.
_TOGETHER = 1e-3
#: An eigenvalue neither decays nor grows by less than this part of its size.
_NEUTRAL = 1e-8
#: Width and height of figures [inches].
_SIZE = 6.4, 5.0
#: How points of rest are drawn, by their kind.
_MARKS: dict[str, dict[str, Any]] = {
    "stable": {"marker": "o", "color": "k"},
    "unstable": {"marker": "o", "color": "k", "markerfacecolor": "white"},
    "saddle": {"marker": "X", "color": "k", "markerfacecolor": "white"},
    "centre": {"marker": "o", "color": "k", "fillstyle": "left"},
    "neutral": {"marker": "o", "color": "0.5"},
}


def phase_portrait(
    sim: Any, bd: Any, x: Any, y: Any, *, xlim: Any, ylim: Any, starts: Any, T: Any, start: Any, t: Any, **options: Any
) -> Any:
    """Return the figure of a phase portrait; see `Simulation.phase_portrait`."""
    ends = [_axis(limits, name) for name, limits in (("xlim", xlim), ("ylim", ylim))]
    for name in options:
        option(name, f"{_WHO}: option", inspect.signature(sim.run).parameters)
    begins, lasting, base = _starts(starts), positive(T, f"{_WHO}: T"), opened(start)
    refuse_no_diagram(bd, _WHO)
    compile_diagram(bd)
    state = first_state(bd, base, _WHO)
    places = _plane(bd, x, y)
    with _Rates(sim, bd, state, float(numbers(t, 1, f"{_WHO}: t")[0]), places) as rates:
        field = _field(rates, ends)
        resting = _points_of_rest(rates, ends, field)
    ways, smooth = [], {} if {"dt", "max_step"} & set(options) else {"max_step": lasting / _SAMPLES}
    for begin in begins:
        there = rates.placed(begin)
        with kept(handling(bd.blocklist)):  # each begins with the numbers of the diagram, whatever events set
            out = sim.run(bd, T=lasting, start=there, **{"live": False, "threaded": True, **smooth, **options})
        ways.append(out.x[:, places])
    units = units_of(mechanisms_of(bd.blocklist), [], [], [])
    labels = [f"{name} [{units[name]}]" if name in units else name for name in (bd.statenames[k] for k in places)]
    return _drawn(ends, field, resting, ways, labels)


def _axis(limits: Any, name: str) -> Array:
    """Return the places along an axis."""
    span = real_array(limits, f"{_WHO}: {name}", (2,))
    if not span[0] < span[1]:
        raise InvalidValue(f"{_WHO}: {name}: expected the lesser number first, got {span[0]:g} and {span[1]:g}")
    return np.linspace(span[0], span[1], _POINTS)


def _starts(starts: Any) -> Array:
    """Return where runs begin in the plane, (k, 2)."""
    if not isinstance(starts, Iterable):
        raise InvalidType(f"{_WHO}: starts: expected pairs of numbers, as [(1, 0)], got {shown(starts)}")
    pairs = list(starts)
    return real_array(pairs, f"{_WHO}: starts", (len(pairs), 2)) if pairs else np.zeros((0, 2))


def _plane(bd: Any, x: Any, y: Any) -> list[int]:
    """Return where the two states of the plane stand."""
    names = list(bd.statenames)
    if len(names) < 2:
        raise InvalidValue(f"{_WHO}: a plane is of two states; the diagram has {len(names)}")
    places = []
    for name, otherwise, axis in zip((x, y), phase_planes(names)[0], "xy", strict=True):
        at = state_places(bd, otherwise if name is None else name, f"{_WHO}: {axis}")
        if len(at) > 1:
            called = [names[k] for k in at]
            raise InvalidValue(f"{_WHO}: {axis}: name one state of {', '.join(called)}")
        places += at
    if places[0] == places[1]:
        raise InvalidValue(f"{_WHO}: x and y are both {names[places[0]]}; name two states")
    return places


class _Rates:
    """The rates of a diagram where runs begin in a plane: with its blocks in the modes in which they begin there.

    Within ``with``.
    """

    def __init__(self, sim: Any, bd: Any, state: Array, t: float, places: list[int]) -> None:
        self.sim, self.bd, self.state, self.t, self.places = sim, bd, state, t, places
        self._stack = contextlib.ExitStack()
        #: The diagram as it begins anywhere, None where it has modes.
        self._same: Any = None

    def __enter__(self) -> _Rates:
        """Begin in the given state, and see whether there are modes."""
        diagram, simstate, _, _ = self._stack.enter_context(started(self.sim, self.bd, self.state, self.t, _WHO))
        for block in (b for clock in self.bd.clocklist for b in clock.blocklist):
            self._stack.close()
            raise DiagramError(
                f"{_WHO}: block {block.name!r} is sampled; portraits are drawn of diagrams without clocks"
            )
        for block, _ in diagram.closed:
            self._stack.close()
            raise InvalidValue(f"{_WHO}: block {block.name!r} is a mechanism with loops, which other states would open")
        if simstate.crossing_detectors:
            self._stack.close()
        else:
            diagram.freeze()
            self._same = diagram
        return self

    def __exit__(self, *failure: object) -> None:
        """End what was begun."""
        self._stack.close()

    @contextlib.contextmanager
    def begun(self, point: Array) -> Iterator[Any]:
        """Yield the diagram as it begins in a point of the plane."""
        if self._same is not None:
            yield self._same
            return
        with started(self.sim, self.bd, self.placed(point), self.t, _WHO) as (diagram, _, _, _):
            diagram.freeze()
            yield diagram

    def placed(self, point: Array) -> Array:
        """Return the whole state of a point."""
        whole = self.state.copy()
        whole[self.places] = point
        return whole

    def there(self, point: Array) -> Array:
        """Return all rates where a run begins in a point."""
        whole = self.placed(point)
        with self.begun(point) as diagram:
            inside = diagram.bounds.within(whole)
            for k in np.flatnonzero(inside != whole):
                raise InvalidValue(
                    f"state {self.bd.statenames[k]!r} goes to its limit, {inside[k]:g}, not beyond it to {whole[k]:g}"
                )
            return np.array(diagram.derivative(self.t, whole))


def _field(rates: _Rates, ends: list[Array]) -> Array:
    """Return the rates of both states in the plane, (ny, nx, 2), the others standing still; NaN where there is none."""
    field, failure = np.full((_POINTS, _POINTS, 2), np.nan), None
    for j, i in np.ndindex(field.shape[:2]):
        try:
            field[j, i] = rates.there(np.array([ends[0][i], ends[1][j]]))[rates.places]
        except CstormError as error:  # as beyond what a block has a value for
            failure = error
    if failure is not None:
        if np.isnan(field).all():
            raise failure
        notice(f"{_WHO}: parts of the plane are left empty: {failure}")
    if not np.nan_to_num(field).any():
        raise InvalidValue(
            f"{_WHO}: neither of the two states moves anywhere in the plane while the others stand still; name a "
            "position and its rate"
        )
    return field


def _points_of_rest(rates: _Rates, ends: list[Array], field: Array) -> dict[str, list[Array]]:
    """Return the points of the plane where all states rest, by their kind, found from where both rates change sign."""
    spans, most = np.array([np.ptp(end) for end in ends]), np.nanmax(np.abs(field), axis=(0, 1))
    found: dict[str, list[Array]] = {}
    for j, i in np.ndindex(_POINTS - 1, _POINTS - 1):
        corners = field[j : j + 2, i : i + 2].reshape(4, 2)
        if not ((corners.min(axis=0) <= 0.0) & (corners.max(axis=0) >= 0.0)).all():
            continue
        begin = np.array([ends[0][i : i + 2].mean(), ends[1][j : j + 2].mean()])
        with contextlib.suppress(CstormError):
            point = _newton(rates, begin, spans, most)
            if point is None or any((np.abs(p - point) < _TOGETHER * spans).all() for ps in found.values() for p in ps):
                continue
            if all(end[0] <= p <= end[-1] for end, p in zip(ends, point, strict=True)):
                with rates.begun(point) as diagram:
                    A = make_model(diagram, [], []).jacobians(rates.t, rates.placed(point), np.zeros(0)).A
                found.setdefault(_kind(A), []).append(point)
    return found


def _newton(rates: _Rates, begin: Array, spans: Array, most: Array) -> Array | None:
    """Return where Newton's method ends from a point of the plane, None where nothing rests."""
    point, places = begin.copy(), rates.places
    with rates.begun(begin) as diagram:
        for _ in range(_STEPS):
            rate = diagram.derivative(rates.t, rates.placed(point))[places].copy()
            moved = (point + side * _MOVED * step for step in np.diag(spans) for side in (1.0, -1.0))
            sides = [diagram.derivative(rates.t, rates.placed(m))[places].copy() for m in moved]
            slopes = np.stack([(sides[0] - sides[1]) / spans[0], (sides[2] - sides[3]) / spans[1]], axis=1)
            step = np.linalg.lstsq(slopes / (2.0 * _MOVED), rate, rcond=None)[0]
            point -= step
            if not (np.abs(point - begin) <= spans).all():
                return None
            if (np.abs(step) <= _STILL * spans).all():
                break
    return point if (np.abs(rates.there(point)) <= _NONE * max(1.0, float(most.max()))).all() else None


def _kind(A: Array) -> str:
    """Return what a point of rest is, by the eigenvalues of the rates' derivative."""
    values = np.linalg.eigvals(A)
    growth = np.where(np.abs(values.real) <= _NEUTRAL * np.abs(values).max(), 0.0, values.real)
    if (growth < 0.0).all():
        return "stable"
    if growth.max() > 0.0:
        return "saddle" if growth.min() < 0.0 else "unstable"
    return "centre" if np.abs(values).min() > _NEUTRAL * np.abs(values).max() else "neutral"


def _drawn(
    ends: list[Array], field: Array, resting: dict[str, list[Array]], ways: list[Array], labels: list[str]
) -> Any:
    import matplotlib.pyplot as plt

    axes: Any
    figure, axes = plt.subplots(layout="constrained", figsize=_SIZE)
    rates = np.ma.masked_invalid(field)
    lines = {"density": _DENSITY, "color": "0.7", "linewidth": 0.8, "arrowsize": 0.8}
    axes.streamplot(ends[0], ends[1], rates[..., 0], rates[..., 1], **lines)
    for way in ways:
        (line,) = axes.plot(way[:, 0], way[:, 1], linewidth=1.6)
        axes.plot(way[:1, 0], way[:1, 1], "o", color=line.get_color(), markersize=4)
    for kind, points in resting.items():
        across, upward = np.transpose(points)
        axes.plot(across, upward, linestyle="", markersize=8, label=f"rests, {kind}", zorder=4, **_MARKS[kind])
    axes.set(xlim=tuple(ends[0][[0, -1]]), ylim=tuple(ends[1][[0, -1]]))
    axes.set(xlabel=plain(labels[0]), ylabel=plain(labels[1]), title="Phase portrait")
    if resting:
        axes.legend(loc="upper right")
    return figure
