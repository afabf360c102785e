"""Steps with derivatives up to events: zero crossings that blocks declare, and switches found in their equations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError
from cstormpy.simulation.analysis.bends import BendWatch
from cstormpy.simulation.analysis.jumps import JumpWatch
from cstormpy.simulation.analysis.steps import Steps
from cstormpy.simulation.analysis.switches import Switch
from cstormpy.simulation.bounds import Bound
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.events import Event, at_bounds
from cstormpy.simulation.runner import Run
from cstormpy.simulation.step_control import SAME_TIME

#: So close to a jump, for its time, a step ends at it; after so many that end before it, wherever it is.
_CLOSE, _MOST_ASIDE = 1e-13, 12
#: A guard that changes by more than this part of what it was, and so many times as much as by its slope, has been taken
#: across zero by a jump.
_ROUNDED, _ABRUPT = 1e-6, 1e3
#: A guard that changes more slowly than this part of its scale grazes zero rather than crosses it.
_GRAZES = 1e-9
#: So far before a switch, for the step, slopes are compared, and if they grow by so much they have no bound.
_BEFORE, _STEEP = (1e-3, 1e-9), 20.0

#: A guard is at zero where the parameters need change by no more than this to bring it there.
_AT_ZERO = 1e-12
#: So far beside such a guard, for the states, on both sides of it, rates are compared; what stays of their difference
#: in the lesser distance, by more than this part, is a jump.
_BESIDE_IT, _STAYS = (1e-6, 1e-9), 0.1
#: What a note says of an event at the end.
_AT_THE_END = "comes where the run ends"
#: Events move alike with the parameters where they do so within this part.
_ALIKE = 1e-7
#: Where one switch has switched and another not, they are so many times as far beyond and before as two points side by
#: side in time.
_BESIDE = 8.0

#: Numbers on both sides of an event that are the same within this part do not jump there.
_DOUBLE = 1e-9

#: Samples beside a kink stay where they are if they would go so many times as far with it as states change else.
_FAR = 1e3

#: Time and state.
_Point = tuple[float, Array]


class LocatingRun(Run):
    """A run whose states carry tangents, as far as it locates events.

    Attributes
    ----------
    steps_of : Steps
    program : Program
        Their graph.
    dx : ndarray, (k, n)
        Tangents of the states.
    columns : ndarray
        Places of the signals that are recorded or looked at.
    kept : list
        The samples, in parts: times, states and their tangents, signals and theirs, and how the times move.
    notes : list of str
        What the derivatives leave out.
    meetings : list of Event
        Those that have come together and move apart with the parameters, by the names of their blocks.
    last_first : bool
        Whether these are dealt with the other way round.
    """

    steps_of: Steps
    program: Program
    dx: Array
    columns: NDArray[np.int64]
    kept: list[list[Array]]
    notes: list[str]
    meetings: list[Event]
    last_first: bool
    _jumps: JumpWatch
    _bends_seen: BendWatch
    #: How many of the columns are recorded.
    _seen: int
    #: By how much the parameters delay an event and what it causes, and the rates before.
    _delay: tuple[Array, Array] | None = None
    #: How the samples on both sides go with it.
    _going: Array | None = None
    #: How many steps in a row have ended before a jump.
    _aside = 0
    #: The rates from which steps to an event begin, with their tangents.
    _first: tuple[Array, Array] | None = None

    def _look_for_jumps(self, times: Array, signals: Array, dsignals: Array) -> None:
        """Note what jumps within steps, which begin where the last point was recorded."""
        if self._jumps.columns:
            before = [part[-1:] for part in self.kept[-1][3:5]]
            both = [np.concatenate(pair)[..., self._seen :] for pair in zip(before, (signals, dsignals), strict=True)]
            self.notes += self._jumps.look(times, *both)

    def _look_for_bends(self, times: Array, states: Array, tangents: Array) -> None:
        """Note what stays exactly where it bends, behind steps that have ended at some times."""
        at_border = any([value is not None and abs(value) <= _AT_ZERO for value in self.crossings.before])
        self.notes += self._bends_seen.look(times, states, tangents, at_border or self.end in times[-1:])

    def _cross(self, end: float, bound: float, sides: Array) -> None:
        """Go to the first zero crossing within a step that was not taken, or say why it cannot be taken."""
        t, x, dx, s = self.t, self.x.copy(), self.dx.copy(), self.steps_of
        s.begin(np.array([t, end]), x, dx, np.full(sides.shape, math.nan))
        self._first = s.K[0].copy(), s.dK[:, 0].copy()
        reached = self._partial(end, x, dx)
        crossed = reached and s.crossed(sides).any()
        early = s.crossed_at_stages(t, end, self.x, sides) if reached else []
        if not crossed and not early:
            self.diagram.derivative(end, x)
            self.diagram.at(t, self.x)
            self.observation.check_finite(self.t)
            raise self._ended()
        fresh = [*np.flatnonzero(s.crossed(sides)).tolist(), *early] if crossed else early
        clear = functools.cache(lambda: self._halved(end, sides, stages=True)[0])
        if self._is_steep(fresh, end, clear) or (early and self._steps_aside(clear)):
            return
        if not crossed:  # the way there leads beyond a jump and back, however short it is
            if not self._gives_up(early, t, sides[0], end - t):
                self._aside = 0
                self._go_to(end)
                self.crossings.before = s.out[s.guards].tolist()
                if end < bound:
                    self._observe()
            return
        low, high = self._halved(end, sides)
        near = self.x.copy()
        if low > t:
            self._partial(low, near, self.dx.copy())
        x, dx = self.x.copy(), self.dx.copy()
        self._partial(high, x, dx)
        signals, dsignals = s.out[self.columns], s.dout[:, self.columns]
        fired = np.flatnonzero(s.crossed(sides)).tolist()
        leads, place = fired, (high, x)
        if any(isinstance(self.simstate.crossing_detectors[i][0], Switch) for i in fired):
            beside = s.crossed_at_stages(t, high, self.x, sides)
            if beside and self._steps_aside(lambda: self._halved(high, sides, stages=True)[0]):
                return
            leads, place = self._leads(fired, (low, near), (high, x), sides[0]), (low, near)
            if self._gives_up(fired, high, sides[0], end - t):
                return
        self._look_for_jumps(np.array([t, high]), signals[None], dsignals[None])
        dx = s.tangents_to_event(t, high, self.x, self.dx, sides, [i for i in fired if i not in leads])
        if self._is_infinite(fired, dx, high):
            return
        self.dx = dx
        x = at_bounds(self.simstate, x, fired)
        paces = np.abs(sides[0]) / self.settings.T
        self._aside = 0
        turns, count = self._turns(fired, leads, (low, near), (high, x), paces), len(self.kept)
        for k, (group, point) in enumerate(turns):
            self.crossings.waiting = [i for others, _ in turns[k + 1 :] for i in others]
            lead = min([i for i in group if i in leads], key=self._bends, default=0)
            self._delay = self._shift(*place, lead, paces[lead]) if leads else None
            self._going = self._moving(lead)
            if self._delay is not None and self._delay[0].any():
                self._tell_ticks(high, str(self.simstate.crossing_detectors[lead][1].name))
            if any(isinstance(self.simstate.crossing_detectors[i][0], Switch) for i in group):
                self._observe_before(*place)
            # and those that it causes, which come so much earlier or later too
            self._event(*((self.t, self.x) if point is None else point), group)
            place = self.t, self.x
        self._delay = None
        self._drop_doubles(count)

    def _goes(self) -> Array | None:
        """Return how the samples at an event go with it, unless they are of a grid, or at the end."""
        return None if self._delay is None or self.t >= self.end or self.settings.grid else self._going

    def _moving(self, lead: int) -> Array | None:
        """Return how samples at an event of a guard, at which its tangents have been evaluated, go with each parameter.

        They stay where nothing jumps and they would go far for how the states and it change: it has hardly come about.
        """
        if self._delay is None or not self._bends(lead):
            return None if self._delay is None else self._delay[0]
        (moves, rate), own = self._delay, self.steps_of.dout[:, self.steps_of.guards[lead]]
        changes = np.maximum(np.abs(self.dx).max(axis=1, initial=0.0), np.abs(own))
        return np.where(np.abs(moves) * np.abs(rate).max(initial=0.0) > _FAR * changes, 0.0, moves)

    def _observe_before(self, t: float, x: Array) -> None:
        """Record a point before an event at which an equation changes, and goes along with it."""
        here = self.t, self.x
        self.t, self.x = t, x
        if self._goes() is not None:
            self._observe()
        self.t, self.x = here

    def _drop_doubles(self, first: int) -> None:
        """Drop points of events at which nothing jumps: those that are, and move, as the next one."""
        for k in range(len(self.kept) - 2, first - 1, -1):
            here, behind = self.kept[k], self.kept[k + 1]
            if all(np.allclose(here[i], behind[i], _DOUBLE, 0.0) for i in (1, 3)) and _alike(here[5], behind[5]):
                del self.kept[k]

    def _turns(
        self, fired: list[int], leads: list[int], near: _Point, far: _Point, paces: Array
    ) -> list[tuple[list[int], _Point | None]]:
        """Return what has fired at one time in groups that move alike with the parameters, to be dealt with in turn.

        As events of two machines of the same kind, each by its own numbers. Beside each group is where the run stands
        when it is dealt with, nothing where that is where the one before has left it.
        """
        acting = [i for i in leads if not self._bends(i)]
        if len(acting) < 2:
            return [(fired, far)]
        detectors, groups = self.simstate.crossing_detectors, list[tuple[Array, list[int]]]()
        switches = [i for i in acting if isinstance(detectors[i][0], Switch)]
        for i in acting:
            shift = self._shift(*(near if switches else far), i, paces[i])
            if shift is None:
                continue
            alike = [group for moves, group in groups if _alike(moves, shift[0])]
            if alike:
                alike[0].append(i)
            else:
                groups.append((shift[0], [i]))
        groups = groups[::-1] if self.last_first else groups
        names = " and ".join(dict.fromkeys(str(detectors[group[0]][1].name) for _, group in groups))
        if len(groups) > 1:
            self.meetings.append(Event(far[0], names))
        apart = [group for _, group in groups[:-1]]
        rest = [i for i in fired if not any(i in group for group in apart)]
        if not apart or not switches:
            return [(group, None if k else far) for k, group in enumerate([*apart, rest])]
        points = self._between([*apart, groups[-1][1]], near, far) if len(switches) == len(acting) else None
        if points is None:
            self.notes.append(
                f"{names} switch together at t = {far[0]:.6g}, and apart where the parameters move: the derivative is "
                "as if they moved together; let their numbers differ a little"
            )
            return [(fired, far)]
        # what their jumps have taken across zero is seen behind each of them
        return [*zip(apart, points, strict=True), ([i for i in rest if i in leads], far)]

    def _between(self, groups: list[list[int]], near: _Point, far: _Point) -> list[_Point] | None:
        """Return where groups of switches have switched and those behind them not, of each but the last, if anywhere.

        It is a few roundings beside where all of them do.
        """
        s, (t, x) = self.steps_of, near
        rows = s.guards[[i for group in groups for i in group]]

        def guards(t: float, x: Array) -> Array:
            s.rate_at(t, x)
            return s.out[rows].copy()

        before, gaps, slopes = guards(*near), guards(*far) - guards(*near), self._slopes(t, x, rows)
        points, switched = [], 0
        for group in groups[:-1]:
            switched += len(group)
            sides = np.where(np.arange(rows.size) < switched, _BESIDE, 1.0 - _BESIDE)
            there = x + np.linalg.lstsq(slopes, sides * gaps, rcond=None)[0]
            if not (np.sign(guards(t, there)) == np.sign(before + sides * gaps)).all():
                return None
            points.append((t, there))
        return points

    def _slopes(self, t: float, x: Array, rows: NDArray[np.int64]) -> Array:
        """Return how some of the signals follow the states at a point (len(rows), n)."""
        along = self.steps_of.evaluate_along
        still = along(t, x, np.zeros(x.size))[0][rows]
        found = [along(t, x, direction)[0][rows] - still for direction in np.eye(x.size)]
        return np.reshape(found, (x.size, rows.size)).T

    def _jumps_at(self, guard: int) -> bool:
        """Tell whether something jumps where a guard crosses zero, and no state stands at its bound for it."""
        detector = self.simstate.crossing_detectors[guard][0]
        return not (isinstance(detector, Bound) and detector.side) and not self._bends(guard)

    def _tell_beginning(self) -> None:
        """Note what begins exactly where it switches, if the parameters take it to one side or the other."""
        s, found, traced = self.steps_of, list[str](), list[str]()
        s.evaluate(self.t, self.x, self.dx)
        for i, (detector, block) in enumerate(self.simstate.crossing_detectors):
            value, moves = float(s.out[s.guards[i]]), float(np.abs(s.dout[:, s.guards[i]]).max(initial=0.0))
            if moves > 0.0 and abs(value) <= _AT_ZERO * moves and self._jumps_at(i):
                if not isinstance(detector, Switch):
                    found.append(str(block.name))
                elif self._leads_apart(i):
                    traced.append(str(block.name))
        names = dict.fromkeys(found or traced)
        if names:
            self.notes.append(
                f"{' and '.join(names)} begin{'s' * (len(names) == 1)} at t = {self.t:.6g} exactly at a switch, and "
                "parameters lead to either side of it: what is told is at most the derivative of one; begin beside it"
            )

    def _leads_apart(self, guard: int) -> bool:
        """Tell whether anything jumps between states on both sides of a guard, zero where the run stands.

        Rates, guards, or the modes in which blocks begin; of blocks that do not say which those are it is taken to.
        """
        t, x = self.t, self.x
        slope = self._slopes(t, x, self.steps_of.guards[[guard]])[0]
        blocks = [getattr(d, "block", b) for d, b in self.simstate.crossing_detectors if getattr(d, "acts", True)]
        if not slope.any() or not all(hasattr(type(b), "first_mode") for b in blocks):
            return True
        aside, gaps = slope / np.linalg.norm(slope) * (1.0 + np.abs(x)), []
        for part in _BESIDE_IT:
            before, beyond = (self._decided(x + side * part * aside, blocks) for side in (-1.0, 1.0))
            gaps.append(np.abs(beyond - before))
        self.diagram.at(t, x)
        least = _AT_ZERO * (np.abs(before) + np.abs(beyond))
        return bool(((gaps[1] > _STAYS * gaps[0]) & (gaps[1] > least)).any())

    def _decided(self, x: Array, blocks: list[Any]) -> Array:
        """Return rates and guards at a state, and the modes in which blocks would begin there."""
        rates, guards = self.steps_of.rate_at(self.t, x).copy(), self.steps_of.out[self.steps_of.guards]
        self.diagram.at(self.t, x)
        modes = [np.ravel(b.first_mode([slot.value for slot in b._inport_slots])) for b in blocks]
        return np.concatenate([rates, guards, *modes])

    def _tell_end(self, t: float, x: Array, fired: Iterable[int]) -> None:
        """Note events that come where the run ends, or just behind it, and move with the parameters."""
        s, close, names = self.steps_of, SAME_TIME * max(1.0, t), list[str]()
        if abs(t - self.end) > close or any(_AT_THE_END in note for note in self.notes):
            return
        along = s.evaluate_along(t, x, s.rate_at(t, x))[0][s.guards]
        s.evaluate(t, x, self.dx)
        near = (np.abs(s.out[s.guards]) <= close * np.abs(along)) & (along != 0.0)
        for i in np.flatnonzero(near & s.dout[:, s.guards].any(axis=0)).tolist():
            detector, block = self.simstate.crossing_detectors[i]
            if i in fired and not isinstance(detector, Switch) and self._jumps_at(i):
                names.append(str(block.name))
        if names:
            self.notes.append(
                f"the event of {' and '.join(dict.fromkeys(names))} at t = {t:.6g} {_AT_THE_END}, or just behind: what "
                "is told is at most the derivative of one of both; end the run beside it"
            )

    def _tell_ticks(self, t: float, name: str) -> None:
        """Note an event that moves with the parameters and comes where a clock ticks, which does not."""
        told = f"the event of {name} at t = "
        for clock in self.diagram.bd.clocklist:
            index = max(0, round((t - clock.offset) / clock.T))
            meets = bool(clock.blocklist) and abs(clock.offset + index * clock.T - t) <= SAME_TIME * max(1.0, t)
            if meets and not any(note.startswith(told) for note in self.notes):
                self.notes.append(
                    f"{told}{t:.6g} comes where {clock.name} ticks, which samples one side of it: on the other the "
                    "derivative can be far off; move one of them a little"
                )

    def _halved(self, end: float, sides: Array, stages: bool = False) -> tuple[float, float]:
        """Return two times side by side, so that a step to the second is beyond a guard, and one to the first not.

        If `stages` are asked for, it is so too where a stage of it is, or is not finite.
        """
        low, high = self.t, end
        least = 4.0 * float(np.spacing(max(abs(end), abs(self.t))))
        steps, looked_at = self.steps_of.without_tangents(), sides if stages else np.full(sides.shape, math.nan)
        still = np.zeros((1, self.x.size))
        first = None if self._first is None else (self._first[0], still)
        while high - low > least:
            middle = 0.5 * (low + high)
            times, x, dx = np.array([self.t, middle]), self.x.copy(), still.copy()
            taken, _ = steps.advance(times, x, dx, looked_at.copy(), self.columns, first)
            beyond = not taken if stages else steps.crossed(sides).any()
            low, high = (low, middle) if beyond else (middle, high)
        return low, high

    def _steps_aside(self, clear: Callable[[], float]) -> bool:
        """Step to where no stage of the step is beyond a jump yet; return whether that is any way.

        What is left to the jump is soon so short that it does not matter what its stages see.
        """
        if self._aside == _MOST_ASIDE:  # it goes along the jump
            return False
        low = clear()
        if low - self.t <= _CLOSE * max(1.0, abs(low)):
            return False
        self._aside += 1
        self._go_to(low)
        return True

    def _go_to(self, end: float) -> None:
        """Step to a time, whatever is crossed."""
        x, dx = self.x.copy(), self.dx.copy()
        self._partial(end, x, dx)
        self.t, self.x, self.dx = end, x, dx
        self.steps += 1

    def _gives_up(self, fired: list[int], t: float, before: Array, step: float) -> bool:
        """Look no more at switches that chatter; return whether there is any among those that have fired.

        Parameters
        ----------
        fired : list of int
        t : float
            When they have.
        before : ndarray
            Where the guards were before the step.
        step : float
        """
        detectors = self.simstate.crossing_detectors
        found = [i for i in fired if isinstance(d := detectors[i][0], Switch) and d.chatters(t, before[i], step)]
        self._give_up(found, t)
        return bool(found)

    def _is_steep(self, fired: list[int], end: float, clear: Callable[[], float]) -> bool:
        """Look no more at switches at which a slope has no bound, as that of a root of zero; tell whether it does so.

        A step that ended there would carry that slope. Of each switch it is found out the first time that it fires: the
        slopes of stages grow, the closer these come.
        """
        detectors, s = self.simstate.crossing_detectors, self.steps_of
        fresh = sorted({i for i in fired if isinstance(d := detectors[i][0], Switch) and not d.known})
        low = clear() if fresh else self.t
        before = [low - part * (end - self.t) for part in _BEFORE]
        if not fresh or before[0] <= self.t:
            return False
        for i in fresh:
            detectors[i][0].known = True
        slopes = []
        for time in before:
            self._partial(time, self.x.copy(), self.dx.copy())
            slopes.append(float(np.abs(s.dK).max(initial=0.0)))
        if not slopes[1] > _STEEP * slopes[0]:
            return False
        self._note_steep(fresh, low)
        return True

    def _is_infinite(self, fired: list[int], dx: Array, t: float) -> bool:
        """Look no more at switches that fire where a slope is infinite, as at the start; tell whether it is."""
        found = [i for i in fired if isinstance(self.simstate.crossing_detectors[i][0], Switch)]
        if not found or np.isfinite(dx).all() or not np.isfinite(self.dx).all():
            return False
        self._note_steep(found, t)
        return True

    def _note_steep(self, switches: list[int], t: float) -> None:
        names = ", ".join(dict.fromkeys(each.name for each in reversed(self._forget(switches))))
        self.notes.append(
            f"the slope of {names} grows without bound at t = {t:.6g}, so that the derivative is as exact there as "
            "steps are short: give a lesser rtol, or make it smooth there"
        )

    def _give_up(self, switches: list[int], t: float) -> None:
        for switch in self._forget(switches):
            told = f"{switch.name} jumps to and fro at t = "
            if switch.jumps and switch.moves and not any(note.startswith(told) for note in self.notes):
                self.notes.append(
                    f"{told}{t:.6g}; that it does so earlier or later is not in the derivative, which can be far off: "
                    "make it smooth there"
                )

    def _forget(self, switches: list[int]) -> list[Switch]:
        """Look no more at some switches, and return them."""
        found = []
        for i in reversed(switches):
            found.append(self.simstate.crossing_detectors.pop(i)[0])
            self.steps_of.forget(i)
            self.crossings.forget(i)
        return found

    def _leads(self, fired: list[int], near: _Point, far: _Point, before: Array) -> list[int]:
        """Return which of the guards that have fired say when: none that a jump elsewhere has taken across zero."""
        s, detectors = self.steps_of, self.simstate.crossing_detectors
        s.rate_at(*far)
        beyond = s.out[s.guards]
        rate = s.rate_at(*near)
        gaps = np.abs(beyond - s.out[s.guards])
        along = np.abs(s.evaluate_along(*near, rate)[0][s.guards])
        least = _ROUNDED * np.nan_to_num(np.abs(before)).clip(_ROUNDED)
        passed = gaps <= least + _ABRUPT * along * (far[0] - near[0])
        acting = [i for i in fired if not isinstance(detectors[i][0], Switch)]
        smooth = [i for i in fired if passed[i]]
        return [i for i in smooth if i in acting] or smooth or acting

    def _ended(self) -> DiagramError:
        """Return why the run does not go on, where neither its blocks nor its signals say so themselves."""
        self.program.raise_interrupt()
        where, error = f"gradient: the run cannot go on at t = {self.t:.9g}", self.program.error
        if error is None:
            return DiagramError(f"{where}: a signal is not finite; take shorter steps")
        return DiagramError(f"{where}: beside it, where differences are taken of what is asked in Python, {error}")

    def _partial(self, end: float, x: Array, dx: Array) -> bool:
        """Take one step to a time, whatever is crossed; x and dx stand there then."""
        nowhere = np.full((3, self.steps_of.guards.size), math.nan)
        taken, _ = self.steps_of.advance(np.array([self.t, end]), x, dx, nowhere, self.columns, self._first)
        return taken == 1

    def _bends(self, guard: int) -> bool:
        """Tell whether outputs only bend where a guard crosses zero: rates are the same before and after."""
        detector = self.simstate.crossing_detectors[guard][0]
        if isinstance(detector, Switch):
            return not detector.jumps
        return getattr(type(getattr(detector, "block", None)), "declares_kinks", False)

    def _shift(self, t: float, x: Array, guard: int, pace: float) -> tuple[Array, Array] | None:
        """Return by how much the parameters delay an event, and the rates before it.

        None where a held state is free again: the rates are the same before and after. Grazing is told by the pace at
        which the guard comes here in a whole run from where it was last, where that is known.
        """
        s = self.steps_of
        detector, block = self.simstate.crossing_detectors[guard]
        name = str(block.name)
        if isinstance(detector, Bound) and detector.side:
            return None
        _, rate, _ = s.evaluate(t, x, self.dx)
        place = int(s.guards[guard])
        moves = s.dout[:, place].copy()
        along = float(s.evaluate_along(t, x, rate)[0][place])
        if not 0.0 < pace < math.inf:
            pace = 1.0 + abs(float(s.out[place])) + float(np.abs(moves).max(initial=0.0))
        if abs(along) <= _GRAZES * pace:
            if isinstance(detector, Switch) or self._bends(guard):
                return None
            raise DiagramError(f"gradient: {name} grazes zero at t = {t:.9g}; there is no derivative there")
        return -moves / along, rate


def _alike(a: Array, b: Array) -> bool:
    """Tell whether two events move alike with the parameters."""
    return bool(np.abs(a - b).max(initial=0.0) <= _ALIKE * np.maximum(np.abs(a), np.abs(b)).max(initial=0.0))
