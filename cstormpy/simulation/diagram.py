"""A compiled diagram made ready for running: evaluates all blocks in their order, and finds who failed.

bdsim's own evaluation looks every value up anew; here each block's method, its slots and where its state stands are
gathered once. The blocks cannot tell the difference: they get the same inputs, a view of the state, and the time.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

import numpy as np
from bdsim.block import Block, ContinuousBlock, SampledBlock, SinkBlock
from bdsim.blocks.connections import DeMux, Index
from bdsim.blocks.displays import Scope
from bdsim.blocks.functions import Gain, Prod
from bdsim.blocks.sinks import Event, Stop
from bdsim.exceptions import BlockRuntimeError

from cstormpy.arguments import takes
from cstormpy.arrays import Array
from cstormpy.errors import BlockError, CstormError, DiagramError, reason_of, shown
from cstormpy.simulation.bdsim_blocks import is_of, method_of, output_of, sees_states_alone
from cstormpy.simulation.bounds import Bounds, bounds_of, is_bounded, rate_of_integrator, side_of
from cstormpy.simulation.holds import Hold, holds_of
from cstormpy.simulation.step_control import shortest_step
from cstormpy.simulation.steppers import StepFailed
from cstormpy.simulation.surroundings import line_of_user
from cstormpy.simulation.wiring import describe, input_name, output_name

_FLOAT = np.dtype(float)
#: Times nearer to 0 than this are those behind a jump at 0.
_BESIDE_ZERO = 1e-300
_IDLE_RESETS = {Block.reset, ContinuousBlock.reset, SampledBlock.reset}

#: So many steps ahead a signal is looked at that may jump to and fro, and that stretch is halved so often.
_AHEAD, _HALVES, _AROUND = 4.0, 20, 40
#: The least part of a state whose halves are still more than its rounding, after so many.
_RESOLVED = 8.0 * np.finfo(float).eps * 2.0**_HALVES
#: Of more states than this no matrix of derivatives is made to see whether a diagram is stiff.
_STIFF_STATES = 200


def idle_step(block: Any, t: float, u: list[Any]) -> None:
    """Do nothing: what is to be seen is read at the input ports. It is the `step` of sinks that are not called."""


class Diagram:
    """The blocks of a compiled diagram in the order of evaluation.

    Attributes
    ----------
    blocks : set of Block
        All of them.
    continuous
        Pairs of block and slice of the state vector, in the order of that vector.
    bounds : Bounds
        The states that have bounds.
    holds : dict of Block to Hold
        What holds the outputs of sampled blocks with feedthrough between their ticks.
    outputs
        The outputs of all blocks: block, number of the port, and slot.
    sinks
        The sink blocks that want to be called, which those with `idle_step` do not.
    t, x
        Where the signals in the slots were evaluated last, None if they were not.
    earliest, latest
        Times given to the blocks are kept between these: a source that jumps at the end of a segment must not be seen
        to jump within it.
    shortcut
        What else may fill the slots, where it returns True.
    """

    def __init__(self, bd: Any) -> None:
        self.bd, self.blocks = bd, set(bd.blocklist)
        self.continuous: list[tuple[Any, slice]] = []
        begin = 0
        self.cells: dict[Any, list[Any]] = {}
        for b in bd.blocklist:
            kind = b.blockclass
            if kind == "continuous":
                self.continuous.append((b, slice(begin, begin + b.nstates)))
                begin += b.nstates
            elif kind == "sampled":
                self.cells[b] = [None]
        self.nstates = begin
        self.bounds = Bounds(self.continuous)
        #: Those that keep loops closed, by projection after each step.
        self.closed = [(b, part) for b, part in self.continuous if hasattr(type(b), "closed") and b.closed]
        views: dict[Any, list[Any]] = {b: [None] for b, _ in self.continuous}
        self.holds: dict[Any, Hold] = holds_of(bd)
        cells, nothing = {**self.cells, **views}, [None]
        self.order = [
            (
                b,
                self.holds[b].output if b in self.holds else output_of(b),
                b._inport_slots,
                b._outport_slots,
                b.nout,
                cells.get(b, nothing),
            )
            for group in bd.plan
            for b in group
        ]
        self.outputs = [(b, port, slot) for b, _, _, outs, _, _ in self.order for port, slot in enumerate(outs)]
        self.views = [(views[b], part) for b, part in self.continuous]
        self.sinks = [b for b in bd.blocklist if is_of(b.__class__, SinkBlock) and b.__class__.step is not idle_step]
        self.resets = [b.reset for b in bd.blocklist if type(b).reset not in _IDLE_RESETS]
        self.earliest, self.latest = -math.inf, math.inf
        self.count = 0
        self.shortcut: Callable[[float, Array], bool] | None = None
        self.forget()

    def part(self, blocks: Collection[Any]) -> Diagram:
        """Return some of its blocks as a diagram by themselves, with the states of these alone; the rest is shared."""
        found = copy.copy(self)
        for name in ("rates", "settling"):
            found.__dict__.pop(name, None)
        found.blocks = {b for b in self.blocks if b in blocks}
        found.order = [each for each in self.order if each[0] in blocks]
        found.outputs = [each for each in self.outputs if each[0] in blocks]
        found.cells = {b: cell for b, cell in self.cells.items() if b in blocks}
        found.holds = {b: hold for b, hold in self.holds.items() if b in blocks}
        found.sinks = [b for b in self.sinks if b in blocks]
        kept = [(b, cell) for (b, _), (cell, _) in zip(self.continuous, self.views, strict=True) if b in blocks]
        ends = np.cumsum([b.nstates for b, _ in kept], dtype=int).tolist()
        parts = [slice(end - b.nstates, end) for (b, _), end in zip(kept, ends, strict=True)]
        found.continuous = [(b, part) for (b, _), part in zip(kept, parts, strict=True)]
        found.views = [(cell, part) for (_, cell), part in zip(kept, parts, strict=True)]
        found.nstates = ends[-1] if ends else 0
        found.bounds = Bounds(found.continuous)
        found.closed = [(b, part) for b, part in found.continuous if any(b is closed for closed, _ in self.closed)]
        return found

    @cached_property
    def settling(self) -> list[tuple[Any, slice]]:
        """Those whose states are settled after a step that no run looks at, and where these stand."""
        return [(b, part) for b, part in self.continuous if is_bounded(b) or _settles(b)]

    @cached_property
    def rates(self) -> list[tuple[Any, ...]]:
        """Of each block with states what gives their rate, its inputs, and where they stand."""
        return [
            (b, _rate_of(b), b._inport_slots, view, part, (b.nstates,))
            for (b, part), (view, _) in zip(self.continuous, self.views, strict=True)
        ]

    def start_state(self) -> Array:
        """Return the state (nstates,) from which a run begins unless told otherwise."""
        with contextlib.suppress(BlockRuntimeError):  # which bdsim says
            parts = [np.asarray(b.getstate0_safe(), dtype=float) for b, _ in self.continuous]
            if all(part.ndim == 1 for part in parts):
                return np.concatenate([np.zeros(0), *parts])
        return np.array(self.bd.getstate0(), dtype=float)

    def kinds(self) -> list[Any]:
        """Return of each signal, as it stands in its slot, its type and shape: of what is no array the class alone."""
        return [
            (value.dtype, value.shape) if value.__class__ is np.ndarray else value.__class__
            for value in [slot.value for _, _, slot in self.outputs]
        ]

    def forget(self) -> None:
        """Let the next look at the signals evaluate them anew."""
        self.t: float = math.nan
        self.x: Array | None = None

    def bind_samples(self, simstate: Any) -> None:
        """Point the sampled blocks at the states of their clocks."""
        for clock in self.bd.clocklist:
            begin, state = 0, simstate.clock_states[clock].state
            for b in clock.blocklist:
                self.cells[b][0] = state[begin : begin + b.ndstates]
                begin += b.ndstates
        self.forget()

    def sampled_by(self, clock: Any) -> list[Any]:
        """Return the blocks that a clock samples."""
        return [b for b in clock.blocklist if b in self.cells]

    def sample(self, clocks: list[Any], t: float, x: Array) -> None:
        """Compute all signals where clocks tick: those that their blocks hold between ticks anew."""
        for hold in self.holds.values():
            if hold.block._clock in clocks:
                hold.live = True
                self.forget()
        self.at(t, x)

    def freeze(self) -> None:
        """Hold from now on what was computed at the ticks."""
        for hold in self.holds.values():
            hold.live = False

    def evaluate(self, t: float, x: Array) -> None:
        """Compute all signals at a time and a state."""
        self.t, self.x = math.nan, None
        self.count += 1
        at = min(max(t, self.earliest), self.latest)
        b = ins = None
        try:
            for reset in self.resets:
                reset()
            for cell, part in self.views:
                cell[0] = x[part]
            for b, output, ins, outs, nout, cell in self.order:
                values = output(at, [s.value for s in ins], cell[0])
                if not isinstance(values, (list, tuple)) or len(values) != nout:
                    raise _refused(b, values)
                if nout == 1:
                    outs[0].value = values[0]
                else:
                    for slot, value in zip(outs, values, strict=True):
                        slot.value = value
        except Exception as error:
            raise self.failure(b, "output", at, error) from error
        self.t, self.x = t, x

    def at(self, t: float, x: Array) -> None:
        """Compute all signals unless they stand there already."""
        if self.t != t or self.x is None or not (self.x is x or np.array_equal(self.x, x)):
            if self.shortcut is not None and self.shortcut(t, x):
                self.t, self.x = t, x
            else:
                self.evaluate(t, x)

    def decide(self, t: float, x: Array) -> None:
        """Compute all signals where a run begins; blocks decide there how they begin, some when rates are asked for."""
        self.at(t, x)
        # of the class: where a block has none, it would look for a port of that name, which takes long
        if any(getattr(type(b), "decides_in_rates", False) for b, _ in self.continuous):
            self.derivative(t, x)

    def derivative(self, t: float, x: Array) -> Array:
        """Return the rate of the continuous states (nstates,) at a time and a state."""
        self.evaluate(t, x)
        rate = np.empty(self.nstates)
        at = min(max(t, self.earliest), self.latest)
        b = None
        try:
            for b, deriv, ins, cell, part, shape in self.rates:
                value = deriv(at, [s.value for s in ins], cell[0])
                if value.__class__ is not np.ndarray or value.shape != shape or value.dtype is not _FLOAT:
                    value = self._as_rate(b, value, shape)
                rate[part] = value
        except Exception as error:
            raise self.failure(b, "rate of the state", at, error) from error
        return rate

    @staticmethod
    def _as_rate(b: Any, value: Any, shape: tuple[int, ...]) -> Array:
        """Return the rate of a block's states that is given as a list, or a number for a single one."""
        if value is None:
            raise DiagramError(f"{describe(b)}: deriv() returned None; end it with 'return' and the rate of each state")
        plain = isinstance(value, (list, tuple, float, int)) and not isinstance(value, bool)
        rate: Array = np.asarray(value, dtype=float) if plain else np.asarray(value)
        if rate.shape == shape or (rate.dtype.kind == "f" and rate.ndim == 0 and shape == (1,)):
            return _real(b, rate).reshape(shape)
        widths = ", ".join(f"{input_name(b, i)} carries {_shape(s.value)}" for i, s in enumerate(b._inport_slots))
        raise DiagramError(
            f"{describe(b)}: has {b.nstates} state{'s' * (b.nstates != 1)}, but their rate has the shape {rate.shape}; "
            f"{widths or 'no inputs'}: make the initial state as wide as the signal, or the signal as wide as the state"
        )

    def shut(self, x: Array) -> Array:
        """Return a copy of a state, with what the last step has let the loops of mechanisms drift apart taken away."""
        found = x.copy()
        for block, part in self.closed:
            found[part] = block.projected(found[part])
        return found

    def settled(self, x: Array) -> Array:
        """Return a copy of a state that others have stepped to: within limits, loops closed, rotation vectors short."""
        found = x.copy()
        for block, part in self.settling:
            own = _settles(block)
            found[part] = block.settled(found[part]) if own else np.clip(found[part], *bounds_of(block))
        return found

    def states_by_block(self, x: Array) -> dict[Any, Array]:
        """Return the states that event handlers may write into, of each block: parts of x, and sampled ones."""
        return {b: x[part] for b, part in self.continuous} | {b: cell[0] for b, cell in self.cells.items()}

    def next_state(self, clock: Any, t: float) -> Array:
        """Return the state of a clock's blocks after its tick, from the signals that stand there."""
        parts = []
        for b in clock.blocklist:
            try:
                found = method_of(b, "next")(t, [s.value for s in b._inport_slots], self.cells[b][0])
                value = _real(b, np.asarray(found)).ravel()
            except Exception as error:
                raise self.failure(b, "next state", t, error) from error
            if found is None:
                raise DiagramError(f"{describe(b)}: next() returned None; end it with 'return' and the next state")
            if value.size != b.ndstates:
                shape = np.shape(found)
                gives, remedy = str(value.size), "make x0 as wide as the signal"
                if len(shape) > 1:
                    gives, remedy = f"an array of shape {shape}", "return one number for each of them"
                raise DiagramError(
                    f"{describe(b)}: has {b.ndstates} sampled states, but next() gives {gives}; {remedy}"
                )
            parts.append(value)
        return np.concatenate(parts) if parts else np.zeros(0)

    def publish(self) -> None:
        """Let bdsim's own ways to look at an output see the values of the last evaluation."""
        for b, _, _, outs, _, _ in self.order:
            b.__dict__["_output_values"] = [slot.value for slot in outs]

    def failure(self, b: Any, what: str, t: float, error: Exception) -> CstormError:
        """Return the error that names the block that failed, and what it was given."""
        t = t if abs(t) > _BESIDE_ZERO else 0.0
        if b is None:
            return BlockError(f"the diagram failed at t = {t:.9g}: {reason_of(error)}")
        if isinstance(error, DiagramError):
            return error
        reason = f"{reason_of(error)}{line_of_user(error)}{_hint(b, what, error)}"
        given = ", ".join(
            f"{input_name_short(b, i)} = {_short(s.value)} from {self.source_of(b, i)}"
            for i, s in enumerate(b._inport_slots if what != "output" or not sees_states_alone(b) else ())
        )
        return BlockError(
            f"{describe(b)}, {what} at t = {t:.9g}: {reason}" + (f"; it was given {given}" if given else "")
        )

    def why_no_step(self, t: float, x: Array, failure: StepFailed, atol: float) -> CstormError:
        """Return what stopped the solver: a signal that is not finite, or a problem too stiff."""
        where = f"at t = {t:.9g}"
        try:
            self.forget()
            rate = self.derivative(t, x)
        except CstormError as error:
            return error
        bad = self.not_finite()
        if bad is not None:
            return BlockError(f"{bad} {where}; the run ends there")
        for b, part in self.continuous:
            if not np.isfinite(rate[part]).all():
                return BlockError(f"{describe(b)}: the rate of its state is {rate[part]} {where}; the run ends there")
        for ahead in np.geomspace(1.0, 1e8, 9) * shortest_step(t):
            try:
                self.evaluate(t + ahead, x + ahead * rate)
            except CstormError as error:
                return error
            bad = self.not_finite()
            if bad is not None:
                return BlockError(f"{bad} just after t = {t:.9g}; the run ends there")
        return BlockError(
            f"the solver cannot go on {where}: {failure}; state {self._fastest(x, rate, atol)!r} changes fastest. "
            "A stiff diagram wants solver='Radau' or 'BDF'; a state that grows without bound, another law or parameters"
        )

    def _fastest(self, x: Array, rate: Array, atol: float) -> str:
        names = self.bd.statenames
        return str(names[int(np.argmax(np.abs(rate) / (atol + np.abs(x))))]) if names else "none"

    def why_short_steps(self, t: float, x: Array, jumping: str, atol: float) -> str:
        """Return why steps are short, and what helps: an output that jumps to and fro, or else a stiff diagram."""
        if jumping:
            return (
                f"{jumping} jumps to and fro, as a switch does; give it a hysteresis or a slope, sample it by a clock "
                "(bd.ZOH(bd.clock(1000, 'Hz')) behind it), or run with steps of fixed length (solver='RK4', dt=0.001)"
            )
        fastest = self._fastest(x, self.derivative(t, x), atol)
        return f"state {fastest!r} changes fastest; a stiff diagram wants solver='Radau' or 'BDF'"

    def jumping(self, t: float, x: Array, h: float, atol: float) -> str:
        """Return the output that jumps to and fro within some steps of length h, empty if none does."""
        coming, resolved = _AHEAD * h * self.derivative(t, x), _RESOLVED * np.abs(x)
        coming = np.where(np.abs(coming) > resolved, coming, 0.0)  # rounding of a state of size jumps too
        # a run may stay so near to a switch that it is not seen ahead
        around = np.diag(np.maximum(atol, resolved))[:_AROUND]
        for start, ahead, change in ((x, _AHEAD * h, coming), *((x - e, 0.0, 2.0 * e) for e in around)):
            if most := self._jumping(t, start, ahead, change):
                return most
        return ""

    def is_stiff(self, t: float, x: Array, h: float) -> bool:
        """Tell whether what dies away within a step of length h keeps an explicit solver from longer ones."""
        if x.size > _STIFF_STATES:
            return False
        rate, J = self.derivative(t, x), np.zeros((x.size, x.size))
        for k, size in enumerate(1e-7 * np.maximum(np.abs(x), 1e-3)):
            moved = x.copy()
            moved[k] += size
            J[:, k] = (self.derivative(t, moved) - rate) / size
        if not np.isfinite(J).all():
            return False
        values = np.linalg.eigvals(J)
        fastest = values[np.argmax(np.abs(values))]
        return bool(-h * fastest.real > 1.0 and -fastest.real > abs(fastest.imag))

    def _jumping(self, t: float, x: Array, ahead: float, change: Array) -> str:
        """Return the output that jumps between a state and another one, empty if none does."""
        before, after = self._values(t, x), self._values(t + ahead, x + change)
        most = max(before, key=lambda name: abs(after[name] - before[name]), default="")
        # what jumps does so in one of the halves of any stretch, however short
        left, part, first, last = 0.0, 1.0, before, after
        for _ in range(_HALVES if most else 0):
            part /= 2.0
            middle = self._values(t + (left + part) * ahead, x + (left + part) * change)
            if abs(middle[most] - first[most]) > abs(last[most] - middle[most]):
                last = middle
            else:
                left, first = left + part, middle
        return most if most and abs(last[most] - first[most]) > 0.5 * abs(after[most] - before[most]) else ""

    def _values(self, t: float, x: Array) -> dict[str, float]:
        """Return a number for each output that carries one or more, in the order of evaluation."""
        self.evaluate(t, x)
        found = {}
        for b, port, slot in self.outputs:
            value = np.asarray(slot.value)
            if value.dtype.kind in "biuf" and value.size:
                found[output_name(b, port)] = float(value.ravel()[0])
        return found

    def source_of(self, b: Any, port: int) -> str:
        """Return the output that drives an input."""
        wire = b._input_wires[port]
        return "nothing" if wire is None else output_name(wire.start.block, wire.start.port or 0)

    def not_finite(self) -> str | None:
        """Return the first output, in the order of evaluation, that is not finite, or None."""
        for b, port, slot in self.outputs:
            value = slot.value
            if value.__class__ is float:
                finite = value - value == 0.0
            elif value.__class__ is np.ndarray and value.dtype.kind == "f":
                finite = bool(np.isfinite(value).all())
            else:
                finite = value is not None and _finite(value)
            if not finite:
                return f"{output_name(b, port)} is {_short(value)}"
        return None


def _real(b: Any, values: Array) -> Array:
    """Return the rates or the next values of states, which NumPy would take the real parts of without a word."""
    if values.dtype.kind == "c":
        raise DiagramError(
            f"{describe(b)}: states are real numbers, and would become complex; wire it to the real part, by "
            "bd.FUNCTION(numpy.real), or to the absolute value"
        )
    return np.asarray(values, dtype=float)


def _rate_of(b: Any) -> Callable[..., Any]:
    """Return what computes the rate of a block's states, those that are held standing still."""
    if not is_bounded(b):
        return method_of(b, "deriv")

    def rate(t: float, u: list[Any], x: Array) -> Array:
        free, sides = rate_of_integrator(b, u), side_of(b)
        if free.size == sides.size:
            free[sides != 0.0] *= 0.0  # which leaves what is not a number as it is
        return free

    return rate


_CALLED = {
    "output": ("output", ("t", "u", "x")),
    "rate of the state": ("deriv", ("t", "u", "x")),
    "next state": ("next", ("t", "u", "x")),
    "step": ("step", ("t", "u")),
}
"""Which method of a block gives what, and its arguments."""


def _hint(b: Any, what: str, error: Exception) -> str:
    """Return what helps where a block fails at what it is given, empty where nothing is known.

    An input may not be there yet, or of a width that it was not made for; a handler may ask for states by a name.
    """
    if what == "event handler" and isinstance(error, KeyError):
        for name in error.args:
            if isinstance(name, str) and name in b.bd.blocknames:
                return f"; states are those of blocks, not of names: states[bd[{name!r}]]"
            if isinstance(name, int):
                return "; states are those of blocks, not by numbers: states[block]"
            if isinstance(name, Block) and not (getattr(name, "nstates", 0) or getattr(name, "ndstates", 0)):
                return f"; {describe(name)} has no states"
    method, arguments = _CALLED.get(what, ("", ()))
    if method and not takes(getattr(b, method), arguments):
        return f"; it is called as {method}({', '.join(arguments)}): define {method}({', '.join(('self', *arguments))})"
    of_none = "None" in reason_of(error) and not isinstance(error, BlockError)  # which tells of what it returns
    if what == "output" and of_none and b.nin and sees_states_alone(b):
        return "; a block whose output() reads its inputs is made with feedthrough=True, as super().__init__() takes it"
    if isinstance(b, Gain) and np.ndim(b.K) == 2 and b.premul:
        return f"; GAIN with premul=True takes as many numbers as K has columns, and K has the shape {np.shape(b.K)}"
    if isinstance(b, Gain) and np.ndim(b.K) == 2:
        return "; GAIN multiplies by a matrix from the right, and from the left with premul=True"
    if isinstance(b, Prod):
        return (
            "; PROD multiplies arrays as matrices: element by element do bd.FUNCTION(numpy.multiply, nin=2) and "
            "numpy.divide so"
        )
    if isinstance(b, Event):
        several = any(np.size(slot.value) > 1 for slot in b._inport_slots)
        return "; bd.INDEX([0]) takes one number out of a signal" if several else ""
    if isinstance(b, Stop):
        return "; STOP looks at one number or truth: its input, or what its function returns of that"
    if isinstance(b, Index):
        return "; INDEX takes numbers out of a signal of several by a list of places counted from 0, as bd.INDEX([0])"
    if isinstance(b, DeMux):
        return f"; DEMUX of {b.nout} outputs takes a signal of {b.nout} numbers"
    if isinstance(b, Scope):
        return "; SCOPE shows numbers, and signals of two numbers with vector=2"
    if any(getattr(getattr(slot.value, "dtype", None), "kind", "") == "b" for slot in b._inport_slots):
        return "; a signal that is true or false is made a number by float(...), an array of them by .astype(float)"
    return ""


def _settles(b: Any) -> bool:
    """Tell whether a block has a way of its own to settle its state; of one without its ports are not asked."""
    return hasattr(type(b), "settles") and bool(b.settles)


def _refused(b: Any, values: Any) -> BlockError:
    if not isinstance(values, (list, tuple)):
        counted = f"{b.nout} value{'s' * (b.nout != 1)}"
        return BlockError(f"output() must return a list of {counted}, as in 'return [y]', got {shown(values)}")
    return BlockError(f"output() must return {b.nout} values, got {len(values)}")


def input_name_short(b: Any, port: int) -> str:
    """Return the name of an input within its block."""
    names = b._inport_names
    return f"input {port} ({names[port]})" if names else f"input {port}"


def _shape(value: Any) -> str:
    shape = np.shape(value)
    return "a number" if shape == () else f"the shape {shape}"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, threshold=8, separator=", ").replace("\n", "")
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(value).all())
    except TypeError:  # not a number at all: a pose, a text
        each = value.flat if isinstance(value, np.ndarray) else value  # an array of one object cannot be gone through
        return not (isinstance(value, (list, tuple, np.ndarray)) and any(entry is None for entry in each))
    except ValueError:  # rows of unequal length
        return False
