"""Start of a run: begins the blocks of a diagram, and stands in for bdsim's own where their start is wrong."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.blocks.sinks import Event, Stop, Watch
from bdsim.blocks.sources import WaveForm
from bdsim.exceptions import BlockRuntimeError

from cstormpy.arguments import positive
from cstormpy.arrays import real_number
from cstormpy.errors import CstormError, InvalidType, InvalidValue, shown
from cstormpy.reporting import notice, notice_once
from cstormpy.simulation.given_arguments import check_numbers
from cstormpy.simulation.palette import quiet
from cstormpy.simulation.step_control import SAME_TIME
from cstormpy.simulation.wiring import describe, raise_block_failed

#: In which parts of a period a wave jumps or has a kink, besides its own duty cycle.
_CORNERS = {"square": (0.0,), "triangle": (0.25, 0.75), "sine": ()}

#: A time so close to a tick, in periods of its clock, is that of the tick, as is one that is the same up to rounding.
_ROUNDING = 1e-9

#: A clock of a longer period [s] that does not tick again in a run was meant in Hz.
_LONG_PERIOD = 10.0

MOST_JUMPS = 1_000_000
"""Most jumps of one source that a run is told of."""


def start_blocks(bd: Any, simstate: Any) -> None:
    """Start all blocks, in the order of the diagram."""
    check_numbers(bd.blocklist)
    for b in bd.blocklist:
        kind = b.__class__
        if kind.start is Block.start and kind.validate_start is Block.validate_start:
            continue  # it does nothing where a run starts
        if type(b) is Watch:  # its own start() fails in bdsim 1.4
            simstate.watchlist += [wire.start for wire in b._input_wires]
        elif type(b) is WaveForm:
            _declare_corners(b, simstate)
        elif type(b).__module__.startswith("bdsim."):
            with quiet():  # FUNCTION(persistent=True) prints
                b.start_safe(simstate)
        else:
            b.start_safe(simstate)
        if kind.start in (Event.start, Stop.start) and simstate.crossing_detectors[-1:]:
            detector, block = simstate.crossing_detectors[-1]
            if block is b:  # not of a STOP that looks at no signal
                simstate.crossing_detectors[-1] = (_Condition(b, simstate, detector), b)
        b.validate_start_safe()
    simstate.diagram.bounds.declare(simstate)


class _Condition:
    """What a STOP or an EVENT looks at; what its function raises is told as of other blocks."""

    def __init__(self, block: Any, simstate: Any, detector: Any) -> None:
        self._block, self._simstate, self._detector = block, simstate, detector
        self.terminal, self.direction = detector.terminal, detector.direction
        self.leaps = not isinstance(block, Stop)  # where a run ends nothing jumps

    def __call__(self, t: float, x: Any) -> float:
        try:
            return float(self._detector(t, x))
        except CstormError:
            raise
        except Exception as error:
            raise self._simstate.diagram.failure(self._block, "condition", t, error) from error


def refuse_many(source: Any, count: float) -> None:
    """Refuse a source that jumps too often for a run to be told of each time."""
    if count > MOST_JUMPS:
        raise InvalidValue(
            f"{source.name}: jumps more than {MOST_JUMPS} times in this run; let it do so more slowly, or run less long"
        )


def corners_of(wave: Any) -> list[Callable[[], float]]:
    """Return what reads in which parts of its period a wave jumps or has a kink."""
    fixed: list[Callable[[], float]] = [lambda part=part: part for part in _CORNERS[wave.wave]]  # type: ignore[misc]
    return [*fixed, *([lambda: wave.duty] if wave.wave == "square" else [])]


def _declare_corners(wave: Any, simstate: Any) -> None:
    """Declare where a wave jumps or has a kink.

    bdsim's own leaves out those of the cycle that a phase has cut off at the beginning, and adds up the period, so that
    after many cycles the declared times are not those at which the output changes.
    """
    begin, end = simstate.t * wave.freq, simstate.tf * wave.freq
    refuse_many(wave, (end - begin) * len(corners_of(wave)))
    for part in corners_of(wave):
        corner = part() + wave.phase
        for cycle in range(math.floor(begin - corner), math.ceil(end - corner) + 1):
            t = (cycle + corner) / wave.freq
            if is_ahead(simstate, t):
                simstate.declare_event(wave, t)


def is_ahead(simstate: Any, t: float) -> bool:
    """Tell whether a source that jumps at a time has not done so before a run, whose beginning is included.

    Times are rounded: that of a jump may lie beside the end of the run that does it, and so beside the beginning of one
    that goes on from there, which is to see what stands behind the jump. A source declares the first of its jumps
    behind the end too, as a STEP does: a rounding may bring it there, and who asks whether it jumps at all is told.
    """
    begin = getattr(simstate, "t", None) or 0.0
    return t >= begin - SAME_TIME * max(1.0, begin)


def same_tick(clock: Any, t: float) -> float:
    """Return how far from a tick of a clock a time can be and is still that of the tick."""
    return max(_ROUNDING * clock.T, SAME_TIME * max(1.0, abs(t)))


def start_clocks(bd: Any, simstate: Any, first_tick: int | str, begin: float, due: bool) -> None:
    """Declare the ticks of all clocks from a time on, with those at it where they are still `due`."""
    for clock in bd.clocklist:
        _check_clock(clock)
        if clock.T > max(simstate.T - begin, _LONG_PERIOD) and clock.blocklist:
            notice_once(
                f"clock {clock.name!r} has a period of {clock.T:g} s, more than the run is long; a rate in Hz is "
                f"written bd.clock({clock.T:g}, 'Hz')"
            )
        clock._ensure_runtime(simstate)
        state = simstate.clock_states[clock]
        state.tick = 0 if first_tick == 0 else 1
        periods = (begin - clock.offset) / clock.T
        close = same_tick(clock, begin) / clock.T
        if not due:
            state.tick = max(state.tick, int(np.floor(periods + close)) + 1)
        elif begin > 0.0:
            state.tick = max(state.tick, int(np.ceil(periods - close)))
        clock.start(simstate)


def _check_clock(clock: Any) -> None:
    """Refuse a period or an offset that has been set to what is none, and a period that the blocks are not made for."""
    what = f"clock {clock.name!r}"
    positive(clock.T, f"{what}: T")
    real_number(clock.offset, f"{what}: offset")
    for b in clock.blocklist:
        if b.T != clock.T and type(b).__module__.partition(".")[0] in ("bdsim", "cstormpy"):
            raise InvalidValue(
                f"{what}: its period is {clock.T:g} s, but {describe(b)} was made for {b.T:g} s; "
                "make a clock of that period, and the block with it"
            )


@contextlib.contextmanager
def failures_named() -> Iterator[None]:
    """Turn what a block raises when it is started into our error."""
    try:
        yield
    except BlockRuntimeError as error:
        raise_block_failed(error)


def _commanded(call: Callable[[], object], blocks: list[Block]) -> Callable[[float, Any], None]:
    """Return an event that calls a function, and checks the numbers that this sets as the start of a run does."""

    def act(_t: float, _simstate: Any) -> None:
        call()
        check_numbers(blocks)

    return act


def schedule(at: Mapping[float, Any] | None, simstate: Any) -> None:
    """Declare the functions that a user wants called at given times."""
    if at is None:
        return
    if not isinstance(at, Mapping):
        raise InvalidType(f"at: expected a dict from times to functions, got {shown(at)}")
    for when, command in at.items():
        if not callable(command):
            raise InvalidType(f"at: expected a function to call at {when}, got {shown(command)}")
        try:
            t = float(when)
        except (TypeError, ValueError):
            raise InvalidType(f"at: expected times in seconds, got {shown(when)}") from None
        if not simstate.t <= t < math.inf:
            raise InvalidValue(f"at: {t:g} is no time after the beginning of this run, {simstate.t:g}")
        if t > simstate.tf:
            notice(f"at: nothing is done at {t:g} s, which lies after the end of this run, {simstate.tf:g} s")
        simstate.declare_event(_commanded(command, simstate.diagram.bd.blocklist), t)
