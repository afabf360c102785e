"""Records a run: times, states and watched signals, at its steps or on a grid, and serves the sinks meanwhile."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from bdsim.block import Block, SubsystemBlock
from bdsim.connect import Plug
from bdsim.graphics_block import GraphicsBlock
from bdsim.run_sim import BDSimState

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import some_of
from cstormpy.errors import BlockError, DiagramError, InvalidType, UnknownName, shown, unknown_name
from cstormpy.simulation.bdsim_blocks import is_of
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.step_control import SAME_TIME
from cstormpy.simulation.steppers import Stepper
from cstormpy.simulation.wiring import sliced

_NAME = re.compile(r"(?P<block>[^\[\]]+?)(\[(?P<port>\d+)\]|\.(?P<name>[^.\[\]]+))?$")


def signal_name(block: Any, port: int) -> str:
    """Return how an output is called in a result."""
    path, names = _outside(block)
    return path + port_suffix(names, port)


def port_suffix(names: Sequence[str] | None, port: int) -> str:
    """Return what stands behind a block's name for one of its outputs."""
    return f".{names[port]}" if names else f"[{port}]"


def _outside(block: Any) -> tuple[str, Any]:
    """Return the name and the output names of a block, or of the subsystem whose outputs an OUTPORT has."""
    path, names, _ = block.__dict__.get("_outside") or (str(block.name), block._outport_names, None)
    return path, names


def named_blocks(bd: Any) -> dict[str, Any]:
    """Return the blocks of a diagram by name, those within subsystems after the name of these.

    Of a compiled diagram a subsystem's name is that of the block that has its outputs.
    """
    found: dict[str, Any] = {_outside(block)[0]: block for block in bd.blocklist if "_outside" in block.__dict__}
    for block in bd.blocklist:
        if isinstance(block, SubsystemBlock):
            found |= {f"{block.name}/{name}": inner for name, inner in named_blocks(block.subsystem).items()}
    return found | bd.blocknames


def paths(blocks: Iterable[Any]) -> dict[str, list[str]]:
    """Return how the blocks of a compiled diagram are called, by what tells them and their copies from others."""
    found: dict[str, list[str]] = {}
    for block in blocks:
        path = _outside(block)[0]
        found.setdefault(block.__dict__.get("_identity") or "", []).append(path)
        if "_outside" in block.__dict__:
            found.setdefault(block.__dict__["_outside"][2] or "", []).append(path)
    found.pop("", None)
    return found


class Signal:
    """An output port that is recorded."""

    def __init__(self, block: Any, port: int) -> None:
        self.block, self.port = block, port
        self.name = signal_name(block, port)
        self.slot = block._outport_slots[port]
        self.key = (id(block), port)

    @property
    def port_name(self) -> str:
        """The name of the port, empty where it has none."""
        names = self.block._outport_names or []
        return str(names[self.port]) if self.port < len(names) else ""

    @property
    def held(self) -> bool:
        """True of the output of a sampled block that stays what it is until the next tick."""
        return self.block.blockclass == "sampled" and not self.block.__dict__.get("between_ticks", False)


def find_signals(bd: Any, watch: Any, what: str = "watch", *, beside_states: bool = False) -> list[Signal]:
    """Return the signals that a user asks for.

    Parameters
    ----------
    watch : "all", or a list of blocks, plugs and names
        A block, or its name, stands for all its outputs; a plug, or a name as ``"plant[1]"`` or ``"plant.qd"``, for
        one. A subsystem is named as it was made, and so are the blocks in it, after its name and a slash.
    what : str
        The argument that they were given as, for messages.
    beside_states : bool
        Whether states are recorded as well, so that their names stand for nothing more.
    """
    if watch.__class__ in (tuple, list) and not watch:
        return []
    if isinstance(watch, str):
        watch = [b for b in bd.blocklist if b.nout] if watch == "all" else [watch]
        watch = [b[i] for b in watch for i in range(b.nout)] if watch and isinstance(watch[0], Block) else watch
    if isinstance(watch, (Block, Plug)) or not isinstance(watch, Iterable) or getattr(watch, "ndim", 1) == 0:
        watch = [watch]
    if beside_states:
        watch = [item for item in watch if not (isinstance(item, str) and item in bd.statenames)]
    return [signal for item in watch for signal in _find(bd, item, what)]


def _find(bd: Any, item: Any, what: str) -> list[Signal]:
    if isinstance(item, str):
        return _by_name(bd, item, what)
    if not isinstance(item, (Block, Plug)):
        raise InvalidType(f"{what}: expected blocks, their ports or names such as 'plant[0]', got {shown(item)}")
    refuse_input(item, what)
    block = _there(bd, item.block if isinstance(item, Plug) else item, what)
    ports: Iterable[int] = range(block.nout)
    if isinstance(item, Plug):
        given = sliced(item.port, block.nout) if isinstance(item.port, slice) else [item.port or 0]
        ports = [p + block.nout if -block.nout <= p < 0 else p for p in given]
    for p in ports:
        if not 0 <= p < block.nout:
            raise UnknownName(f"{what}: block {_outside(block)[0]!r} has {block.nout} outputs, there is no output {p}")
    return [Signal(block, p) for p in ports]


def refuse_input(item: Any, what: str) -> None:
    """Refuse an input port where an output is meant; say what is wired to it."""
    if getattr(item, "side", "") == "input":
        ends = [(wire.end.block, wire.end.port, wire.start) for wire in getattr(item.block._bd, "wirelist", ())]
        sources = [start for block, port, start in ends if block is item.block and port == item.port]
        wired = "".join(f", {signal_name(start.block, start.port or 0)!r}" for start in sources)
        raise UnknownName(
            f"{what}: {item.block.name}.{item.name} is an input; name the output that is wired to it{wired}"
        )


def _there(bd: Any, block: Any, what: str) -> Any:
    """Return the block of a compiled diagram that has the outputs of one that a user made."""
    if block.blockclass == "subsystem" and hasattr(block, "outport"):
        block = block.outport
    if any(block is each for each in bd.blocklist):
        return block
    found = paths(bd.blocklist).get(block.__dict__.get("_identity"), [])
    if len(found) > 1:
        raise UnknownName(f"{what}: block {block.name!r} is there more than once; name one of {', '.join(found)}")
    if not found:
        raise unknown_name(f"{what}: block", block.name, named_blocks(bd))
    return named_blocks(bd)[found[0]]


def _by_name(bd: Any, text: str, what: str) -> list[Signal]:
    known = named_blocks(bd)
    block = known.get(text)
    if block is not None:
        return [Signal(block, p) for p in range(block.nout)]
    match = _NAME.match(text)
    block = known.get(match["block"]) if match else None
    if match is None or block is None:
        _refuse_coordinate(bd, text, what)
        raise unknown_name(f"{what}: block", match["block"] if match else text, known)
    names = list(_outside(block)[1] or [])
    if match["name"] is not None:
        if match["name"] not in names:
            raise unknown_port(f"{what}: output of block {match['block']!r}", match["name"], names, match["block"])
        return [Signal(block, names.index(match["name"]))]
    port = int(match["port"])
    if port >= block.nout:
        raise UnknownName(f"{what}: block {match['block']!r} has {block.nout} outputs, there is no output {port}")
    return [Signal(block, port)]


def _refuse_coordinate(bd: Any, text: str, what: str) -> None:
    """Refuse one number of an output, as "plant.elbow.q" is of the output q, or what is meant for one."""
    whole, bracket, _ = text.partition("[")
    before, _, port = whole.rpartition(".")
    block = named_blocks(bd).get(before)
    if bracket and block is not None and port in (_outside(block)[1] or []):
        raise UnknownName(f"{what}: {text!r} is one number of an output, which goes as a whole: {whole!r}")
    before, _, port = text.rpartition(".")
    for name, block in named_blocks(bd).items():
        if before.startswith(f"{name}.") and port in (_outside(block)[1] or []):
            states = [s for s in bd.statenames if s.startswith(f"{name}.") and s.endswith(f".{port}")]
            single = f", whose numbers are the states {some_of(states)}" if states and text not in states else ""
            raise UnknownName(f"{what}: {text!r} is no output; there is {name}.{port}{single}")


def unknown_port(kind: str, name: str, known: Sequence[str], block: str) -> UnknownName:
    """Return the error for a port that a block does not have, which may have been made without names of its ports."""
    if known:
        return unknown_name(kind, name, known)
    return UnknownName(
        f"{kind} {name!r} does not exist; its ports have no names: say {block}[0] of an output, or make it with "
        f"inames= and onames="
    )


@functools.cache
def memory() -> int:
    """Return how many bytes of memory the machine has, or the container."""
    known = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(ValueError, OSError), open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
        known.append(int(file.read()))
    return min(known, default=16 * 2**30)


def memory_for_records() -> int:
    """Return how many bytes the samples of one run may take."""
    return memory() // 4


class Recording:
    """Times, states and signals, sample by sample or many at once.

    The first `watched` signals are those that the user asked for, the others those that panes show. More than
    `memory_for_records` ends the run, before the machine has no memory left for its result.
    """

    def __init__(self, signals: list[Signal], watched: int, panes: list[Any]) -> None:
        self.signals, self.watched, self.panes = signals, watched, panes
        self.last = -math.inf
        self._room = memory_for_records()
        #: Samples taken since the last that came many at once.
        self._t: list[float] = []
        self._x: list[Array] = []
        self._y: list[list[Any]] = [[] for _ in signals]
        #: Those before: times and states; each signal, or samples (N, columns) of all and what makes of these each.
        self._points: list[tuple[Array, Array]] = []
        self._kept: list[tuple[Any, Callable[[Array], list[Any]] | None]] = []

    def add(self, t: float, x: Array) -> None:
        """Keep the present values; copies, because a block may reuse its arrays."""
        for signal, values in zip(self.signals, self._y, strict=True):
            value = signal.slot.value
            values.append(value.copy() if value.__class__ is np.ndarray else value)
        self._x.append(x)
        self._t.append(t)
        self.last = t
        # a float, and an array with its head, for the time, the state and each signal
        self._take(32 + 128 * (1 + len(self.signals)) + x.nbytes)

    def replace(self, t: float, x: Array) -> None:
        """Keep the present values in the place of the last sample, unless that came with many."""
        if self._t:
            lists: list[list[Any]] = [self._t, self._x, *self._y]
            for values in lists:
                values.pop()
            self.add(t, x)

    def extend(self, t: Array, x: Array, columns: Array, split: Callable[[Array], list[Any]]) -> None:
        """Keep many samples: times (N,), states (N, nstates), and the numbers of all signals side by side (N, columns).

        `split` makes of these the signals, each (N, ...).
        """
        if not len(t):
            return
        self._close()
        self._points.append((t, x))
        self._kept.append((columns, split))
        self.last = float(t[-1])
        self._take(t.nbytes + x.nbytes + columns.nbytes)

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise DiagramError(
                f"{len(self)} samples until t = {self.last:.6g} fill the memory that one run may take, "
                f"{memory_for_records() / 2**30:.3g} GiB; where a run diverges steps get ever shorter, and its last "
                "second shows what does; where it is right, log_dt=... records on a grid, and watch=[...] less"
            )

    def _close(self) -> None:
        n = len(self._t)  # after an interruption the other lists may be one longer
        if not n:
            return
        x = np.array(self._x[:n], dtype=float).reshape(n, self._x[0].size)
        self._points.append((np.array(self._t), x))
        self._kept.append(([_stack(values[:n]) for values in self._y], None))
        self._t, self._x, self._y = [], [], [[] for _ in self.signals]

    def __len__(self) -> int:
        return sum(len(t) for t, _ in self._points) + len(self._t)

    def points(self) -> tuple[Array, Array]:
        """Return times (N,) and states (N, nstates)."""
        self._close()
        if not self._points:
            return np.zeros(0), np.zeros((0, 0))
        if len(self._points) > 1:
            t, x = zip(*self._points, strict=True)
            self._points = [(np.concatenate(t), np.concatenate(x))]
        return self._points[0]

    @functools.cached_property
    def values(self) -> list[Any]:
        """The signals, each (N, ...), once all samples are taken."""
        self._close()
        kept, self._kept = self._kept, []
        if not kept:
            return [np.zeros(0) for _ in self.signals]
        split = kept[0][1]
        if split is not None and all(each is split for _, each in kept):
            return split(np.concatenate([columns for columns, _ in kept]))
        listed = [part if split is None else split(part) for part, split in kept]
        return [_joined(pieces) for pieces in zip(*listed, strict=True)]


def _stack(values: list[Any]) -> Any:
    try:
        array = np.array(values)
    except ValueError:  # of changing shape
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def _joined(parts: Sequence[Any]) -> Any:
    """Return samples in pieces as one array."""
    if len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    return _stack([value for part in parts for value in part])


#: bdsim's own plots are redrawn from all their data at each point, so they get at most so many in a run.
_GRAPHICS_POINTS = 200


class Observation:
    """Records the points of a run, and serves its sinks.

    Attributes
    ----------
    point : int
        Number of the next point of the grid, where there is one.
    """

    def __init__(self, diagram: Diagram, simstate: BDSimState, recording: Recording, settings: Settings) -> None:
        self.diagram, self.simstate, self.recording, self.settings = diagram, simstate, recording, settings
        self.point = self._first = 0
        self._start = self._end = 0.0
        self._graphics_at = -math.inf
        #: The sinks, where their inputs stand, and whether they are bdsim's own plots.
        self._sinks = [(b, b._inport_slots, is_of(b.__class__, GraphicsBlock)) for b in diagram.sinks]

    def begin(self, t: float) -> None:
        """Take the start of the run for the first point; all others of a grid are multiples of its width."""
        self._start, self._end = t, t + self.settings.T
        self.point = self._first = int(t / self.settings.grid + 1e-9) if self.settings.grid else 0

    def add(self, t: float, x: Array, at_boundary: bool) -> None:
        """Record the point where the run stands, and show it to the sinks."""
        self.diagram.at(t, x)
        self.check_finite(t)
        if not self.settings.grid:
            self.recording.add(t, x)
        elif at_boundary and abs(t - self.recording.last) <= SAME_TIME * max(1.0, abs(t)):
            self.recording.replace(t, x)  # as a tick at the time of an event, of which the last has its say
        elif at_boundary and self._on_grid(t):
            self._record(t, x)
        if not self.settings.sinks_on_grid:
            self._serve_sinks(t)

    def add_within(self, stepper: Stepper, x: Array, until: float, bound: float) -> None:
        """Record the points of the grid within the last step, up to a time; the end of the segment is seen later."""
        if not self.settings.grid:
            return
        dense = None
        tolerance = SAME_TIME * max(1.0, abs(until))
        while self._time_of(self.point) < until - tolerance:
            t = self._time_of(self.point)
            dense = dense or stepper.dense()
            between = dense(t) if self.diagram.nstates else x
            self.diagram.evaluate(t, between)
            self._record(t, between)
        if until < bound - tolerance and abs(self._time_of(self.point) - until) <= tolerance and until == stepper.t:
            self.diagram.at(until, stepper.x)
            self._record(until, stepper.x)

    def add_kept(self, t: float, x: Array, out: Array, columns: Array, split: Callable[[Array], list[Array]]) -> bool:
        """Record a point as `add` does, where no sink wants to see it: signals stand side by side in `out`.

        Those that are recorded are `columns` (1, size), of which `split` makes the signals.

        Returns False, and records nothing, where that is to be done by `add`.
        """
        if self._sinks or self.settings.grid or (self.settings.check_finite and not math.isfinite(np.add.reduce(out))):
            return False
        self.simstate.t = t
        self.recording.extend(np.array([t]), x[None].copy(), columns, split)
        return True

    def check_finite(self, t: float) -> None:
        """Refuse outputs that are not finite, unless the settings allow them."""
        if not self.settings.check_finite:
            return
        bad = self.diagram.not_finite()
        if bad is not None:
            if self.diagram.shortcut is not None and self.diagram.x is not None:
                self.diagram.evaluate(t, self.diagram.x)  # which says more of a function that fails, or returns None
            raise BlockError(
                f"{bad} at t = {t:.9g}; the run ends there. Look at what this block computes from its inputs"
            )

    def _on_grid(self, t: float) -> bool:
        """Tell whether the next point of the grid, or the last of the run, is at this time."""
        last = t >= self._end or self.simstate.stop is not None
        return last or abs(self._time_of(self.point) - t) <= SAME_TIME * max(1.0, abs(t))

    def _time_of(self, point: int) -> float:
        return point * (self.settings.grid or math.inf) if point > self._first else self._start

    def _record(self, t: float, x: Array) -> None:
        if self.point and t <= self.recording.last:
            return
        self.recording.add(t, x)
        self.point += 1
        if self.settings.sinks_on_grid:
            self._serve_sinks(t)

    def _serve_sinks(self, t: float) -> None:
        self.simstate.t = t
        for b, slots, drawn in self._sinks:
            if drawn and t < self._graphics_at and t < self._end:
                continue
            try:
                b.step(t, [s.value for s in slots])
            except Exception as error:
                raise self.diagram.failure(b, "step", t, error) from error
        if t >= self._graphics_at:
            self._graphics_at = t + self.settings.T / _GRAPHICS_POINTS
