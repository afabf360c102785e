"""A diagram as a function of its states and of signals that are moved or held, with its exact derivatives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import BlockError, InvalidValue, NonFinite
from cstormpy.graph.arrays import symbols
from cstormpy.simulation.analysis.ports import EnteringSlot, InputPort, arriving
from cstormpy.simulation.compiled.assembly import Assembly
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.signals import numbers
from cstormpy.simulation.compiled.slices import fill_samples
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.diagram import Diagram, _short
from cstormpy.simulation.recording import Signal
from cstormpy.simulation.wiring import output_name

#: The method of a block that says what it counts as in linear models.
_LINEAR = "linear_output"
#: Part of a number by which it is moved for a difference of fourth order: the fifth root of the rounding.
_MOVED = 2.0**-10


@dataclass
class Input:
    """A signal that is moved (a disturbance is added to it) or held (the loop through it is open).

    Attributes
    ----------
    signal : Signal
    held : bool
    shape : tuple of int
    value : ndarray
        The signal at the point, flattened; of a signal that is moved the disturbance, zeros.
    told : bool
        Whether a user has given its value.
    """

    signal: Signal
    held: bool
    shape: tuple[int, ...]
    value: Array
    told: bool = False


@dataclass
class Jacobians:
    """Rates and outputs at a point, and their derivatives to states and inputs."""

    rate: Array
    y: Array
    A: Array
    B: Array
    C: Array
    D: Array

    @property
    def finite(self) -> bool:
        """True where all of it is."""
        return all(_finite(part) for part in vars(self).values())


def labels(signal: Signal) -> list[str]:
    """Return the names of the numbers of a signal."""
    shape = np.shape(signal.slot.value)
    return [signal.name + (f"[{', '.join(map(str, index))}]" if shape else "") for index in np.ndindex(shape)]


def numbers_of(signals: list[Signal], what: str) -> list[Signal]:
    """Return signals after a look at whether all carry real numbers; who asks is named where one does not."""
    for signal in signals:
        if np.asarray(signal.slot.value).dtype.kind not in "biuf":
            raise BlockError(f"{what}: {signal.name} carries a {type(signal.slot.value).__name__}, no real numbers")
    return signals


def inputs_of(signals: list[Signal], held: bool, what: str) -> list[Input]:
    """Return the inputs that signals become, moved or held."""
    found: list[Input] = []
    for signal in numbers_of(signals, what):
        value = np.asarray(signal.slot.value)
        start = value.astype(float).ravel() if held else np.zeros(value.size)
        found.append(Input(signal, held, value.shape, start))
    return found


def named_once(signals: list[Signal], what: str) -> list[Signal]:
    """Return signals after a look at whether one of them was named twice, which is refused."""
    seen = set()
    for signal in signals:
        if signal.key in seen:
            raise InvalidValue(f"{what}: {signal.name} is named twice; a block's name stands for all of its outputs")
        seen.add(signal.key)
    return signals


class AssemblyWithInputs(Assembly):
    """A walk through a diagram, with some signals moved by numbers, or replaced by them, on the way to other blocks.

    An output is, for all blocks behind it; or what arrives at one input port, for this block alone. A `linear` walk
    takes blocks with a method `linear_output`, as QUANTIZER, for what this says.
    """

    def __init__(self, diagram: Diagram, inputs: list[Input], linear: bool = False) -> None:
        super().__init__(diagram, [])
        self._linear = linear
        self.inputs = {i.signal.key: i for i in inputs}
        #: Where in p the numbers of each input stand, once the program is made.
        self.places_of: dict[tuple[int, int], list[int]] = {}
        self._entering = _entries(inputs)
        self._numbered: dict[tuple[int, int], list[int]] = {}

    def program(self) -> Program:
        """Return the program of all blocks; from now on `places_of` says where the inputs stand."""
        self._stand_in()
        made = super().program()
        begins = self.numbers.begins
        self.places_of = {key: [begins[k] for k in mine] for key, mine in self._numbered.items()}
        return made

    def _stand_in(self) -> None:
        """Put inputs out as signals themselves where the blocks that give them are none of the diagram's."""
        there = {id(slot) for _, _, slot in self.diagram.outputs}
        for given in self.inputs.values():
            if id(given.signal.slot) in there:
                if given.signal.key in self._entering and given.signal.block not in self.diagram.blocks:
                    self._moved(given, given.signal.slot.value)  # it has its place among the others all the same
                continue
            number = self._moved(given, given.signal.slot.value)
            self.signals[id(self._entering.get(given.signal.key, given.signal.slot))] = number
            self.columns[arriving(self.diagram.bd, given.signal).key] = (len(self.out), given.shape)
            self.out.extend(numbers(number))

    @contextlib.contextmanager
    def _entered(self, b: Any) -> Iterator[None]:
        """Have a block see what enters its ports; signals that are not computed yet are left as they are."""
        wired = b._inport_slots
        for key, entry in self._entering.items():
            if key[0] == id(b) and id(entry) not in self.signals and id(entry.slot) in self.signals:
                self.signals[id(entry)] = self._moved(self.inputs[key], self.signals[id(entry.slot)])
        b._inport_slots = _entering(b, wired, self._entering)
        try:
            yield
        finally:
            b._inport_slots = wired

    def _outputs(self, b: Any) -> None:
        with self._entered(b):
            super()._outputs(b)

    def _asked(self, b: Any, name: str, *given: Any, **options: Any) -> list[Any]:
        return super()._asked(
            b, _LINEAR if self._linear and name == "output" and _is_smoothed(b) else name, *given, **options
        )

    def _rates(self, b: Any, part: slice) -> None:
        with self._entered(b):
            super()._rates(b, part)

    def _output(self, b: Any, port: int, slot: Any, value: Any) -> None:
        given = self.inputs.get((id(b), port))
        if given is not None and not given.held:
            value = self._moved(given, value)
        super()._output(b, port, slot, value)
        if given is not None and given.held:
            self.signals[id(slot)] = self._moved(given, value)

    def _moved(self, given: Input, value: Any) -> Any:
        found = [self.numbers.number_of(given, ("value",), k) for k in range(given.value.size)]
        self._numbered[given.signal.key] = [place for _, place in found]
        nodes = [node for node, _ in found]
        number = symbols(nodes).reshape(given.shape) if given.shape else nodes[0]
        return number if given.held else value + number


def _is_smoothed(b: Any) -> bool:
    """Tell whether a block counts as something smoother in linear models."""
    return hasattr(type(b), _LINEAR)


def _entries(inputs: list[Input]) -> dict[tuple[int, int], EnteringSlot]:
    """Return what stands before the input ports that are among the inputs."""
    return {i.signal.key: EnteringSlot(i.signal.slot, i.held) for i in inputs if isinstance(i.signal, InputPort)}


def _entering(b: Any, slots: list[Any], entries: dict[tuple[int, int], EnteringSlot]) -> list[Any]:
    """Return the slots at the inputs of a block, with what stands before some of them."""
    return [entries.get((id(b), ~port), slot) for port, slot in enumerate(slots)]


class Model:
    """A translated diagram: its derivatives are exact, but for what `differenced` names."""

    def __init__(self, diagram: Diagram, inputs: list[Input], outputs: list[Signal], linear: bool = False) -> None:
        self.diagram = diagram
        assembly = AssemblyWithInputs(diagram, inputs, linear)
        self.program, places = assembly.program(), assembly.places_of
        self._function = self.program.change(in_python=True)
        self.differenced = self.program.differenced
        self.exact = True
        self._held = {i.signal.key for i in inputs if i.held}
        self.places = [k for i in inputs for k in places[i.signal.key]]
        self.columns = places_of(self.program, outputs)
        self.z = np.zeros(self.program.sampled_size)
        fill_samples(self.z, self.program, diagram)
        self.w = np.zeros(self.program.scratch)

    def jacobians(self, t: float, x: Array, u: Array) -> Jacobians:
        """Return rates and outputs at a point, with their derivatives."""
        out, rate, dout, drate = self._evaluated(t, x, u)
        dy, n, last = dout[self.columns], x.size, x.size + u.size
        return Jacobians(rate, out[self.columns], drate[:, :n], drate[:, n:last], dy[:, :n], dy[:, n:last])

    def _evaluated(self, t: float, x: Array, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return the signals and the rates, and their derivatives to states and inputs."""
        failed, *found = self.slopes(t, x, self.z, u, np.zeros((0, self.z.size)))
        if failed:
            self.diagram.derivative(t, x)  # which says what is wrong
            name = self.program.blocks[failed - 1]
            raise BlockError(
                f"block {name!r}: has no derivative at t = {t:.9g} that differences find: beside the point it fails or "
                "its slope grows without bound; take a point further from the edge of its domain"
            )
        out, rate, dout, drate = found
        return out, rate, dout, drate

    def slopes(self, t: float, x: Array, z: Array, u: Array, dz: Array) -> tuple[int, Array, Array, Array, Array]:
        """Return 0 or which block has failed, the signals and the rates, and their derivatives.

        Their columns are those to the states, along changes of the sampled states, the rows of dz, and to the inputs.
        """
        p, n, first = self.program, x.size, x.size + len(dz)
        count = max(1, first + u.size)  # without directions there are signals and rates too
        dx, along, dp = np.zeros((count, n)), np.zeros((count, z.size)), np.zeros((count, p.p.size))
        dx[:n], along[n:first] = np.eye(n), dz
        dp[np.arange(first, first + u.size), self.places] = 1.0
        numbers, out, rate = p.p.copy(), np.zeros(p.width), np.zeros(n)
        numbers[self.places] = u
        dout, drate, failed = np.zeros((count, p.width)), np.zeros((count, n)), 0
        point = t, np.ascontiguousarray(x, dtype=float), z, numbers, p.n, self.w, out, rate
        for k in range(count):
            failed = failed or self._function(*point, 0.0, dx[k], along[k], dp[k], self.w, dout[k], drate[k])
        return failed, out, rate, dout.T, drate.T

    def not_finite(self, t: float, x: Array, u: Array) -> str | None:
        """Return the first output, in the order of evaluation, that is not finite at a point, or None."""
        out = self._evaluated(t, x, u)[0]
        for b, port, _ in self.diagram.outputs:
            first, shape = self.program.columns.get((id(b), port), (0, (0,)))
            value = out[first : first + int(np.prod(shape))].reshape(shape)
            if (id(b), port) not in self._held and not np.isfinite(value).all():
                return f"{output_name(b, port)} is {_short(value if shape else float(value))}"
        return None


class DifferencedModel:
    """A diagram that cannot be translated: its derivatives are differences of fourth order."""

    exact = False

    def __init__(
        self, diagram: Diagram, inputs: list[Input], outputs: list[Signal], why: NotTranslated, linear: bool = False
    ) -> None:
        self._linear = linear
        self.diagram, self.inputs, self.outputs = diagram, inputs, outputs
        self.differenced = [(name, reason) for name, reason in why.reasons]
        self._u: dict[tuple[int, int], Array] = {}
        self._seen: dict[tuple[int, int], Any] = {}
        self._entries = _entries(inputs)
        self._instrument({i.signal.key: i for i in inputs})

    def _instrument(self, inputs: dict[tuple[int, int], Input]) -> None:
        order, rates = self.diagram.order, self.diagram.rates
        for k, (b, deriv, ins, *rest) in enumerate(rates):
            rates[k] = (b, deriv, _entering(b, ins, self._entries), *rest)
        for k, (b, output, ins, outs, nout, cell) in enumerate(order):
            mine = {port: inputs[id(b), port] for port in range(nout) if (id(b), port) in inputs}
            if self._linear and _is_smoothed(b):
                output = b.linear_output
            output = self._moving(output, mine) if mine else output
            order[k] = (b, output, _entering(b, ins, self._entries), outs, nout, cell)

    def _moving(self, output: Any, mine: dict[int, Input]) -> Any:
        def moved(*arguments: Any) -> list[Any]:
            values = list(output(*arguments))
            for port, given in mine.items():
                key = given.signal.key
                number = self._u[key].reshape(given.shape) if given.shape else float(self._u[key][0])
                self._seen[key] = values[port] if given.held else values[port] + number
                values[port] = number if given.held else self._seen[key]
            return values

        return moved

    def values(self, t: float, x: Array, u: Array) -> tuple[Array, Array]:
        """Return rates and outputs at a point."""
        first = 0
        for given in self.inputs:
            number = self._u[given.signal.key] = u[first : first + given.value.size]
            if given.signal.key in self._entries:
                shaped = number.reshape(given.shape) if given.shape else float(number[0])
                self._entries[given.signal.key].number = shaped
            first += given.value.size
        rate = self.diagram.derivative(t, x)
        parts = [np.ravel(self._seen.get(s.key, s.slot.value)).astype(float) for s in self.outputs]
        return rate, np.concatenate([*parts, np.zeros(0)])

    def jacobians(self, t: float, x: Array, u: Array) -> Jacobians:
        """Return rates and outputs at a point, with their derivatives."""
        n, v = x.size, np.concatenate([x, u])
        rate, y = self.values(t, x, u)
        slopes = np.zeros((rate.size + y.size, v.size))
        for k in range(v.size):
            h = _MOVED * max(1.0, abs(v[k]))
            for share, weight in ((1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0)):
                for side in (share * h, -share * h):
                    moved = v.copy()
                    moved[k] += side
                    slopes[:, k] += np.concatenate(self.values(t, moved[:n], moved[n:])) * weight * share / side
        top, bottom = slopes[:n], slopes[n:]
        return Jacobians(rate, y, top[:, :n], top[:, n:], bottom[:, :n], bottom[:, n:])

    def not_finite(self, t: float, x: Array, u: Array) -> str | None:
        """Return the first output, in the order of evaluation, that is not finite at a point, or None."""
        self.values(t, x, u)
        return self.diagram.not_finite()


@contextlib.contextmanager
def standing_in(diagram: Diagram, inputs: list[Input], t: float, x: Array) -> Iterator[None]:
    """Have the blocks of a diagram see, within, the values of inputs that are held in the place of signals."""
    order, rates = list(diagram.order), list(diagram.rates)
    ports = {i.signal.block: i.signal.block._inport_slots for i in inputs if isinstance(i.signal, InputPort)}
    model = DifferencedModel(diagram, inputs, [], NotTranslated([]))
    for b, wired in ports.items():
        b._inport_slots = _entering(b, wired, model._entries)
    try:
        model.values(t, x, np.concatenate([i.value for i in inputs]))
        yield
    finally:
        diagram.order[:], diagram.rates[:] = order, rates
        for b, wired in ports.items():
            b._inport_slots = wired
        diagram.forget()


def columns_of(program: Program, signal: Signal) -> tuple[int, tuple[int, ...]]:
    """Return where the numbers of a signal begin, and its shape."""
    if signal.key not in program.columns:
        raise InvalidValue(f"{signal.name} carries several signals side by side; name what comes out of them")
    return program.columns[signal.key]


def places_of(program: Program, outputs: list[Signal]) -> Any:
    """Return where the numbers of signals stand in out, one behind the other."""
    spans = [columns_of(program, s) for s in outputs]
    parts = [np.arange(first, first + int(np.prod(shape))) for first, shape in spans]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)


def make_model(
    diagram: Diagram, inputs: list[Input], outputs: list[Signal], linear: bool = False
) -> Model | DifferencedModel:
    """Return a diagram with exact derivatives, or with differences where it cannot be translated.

    Of a `linear` model blocks that round count as what they round.
    """
    try:
        return Model(diagram, inputs, outputs, linear)
    except NotTranslated as why:
        return DifferencedModel(diagram, inputs, outputs, why, linear)


def checked(model: Model | DifferencedModel, found: Jacobians, t: float, x: Array, u: Array, what: str) -> Jacobians:
    """Return what was found at a point; refuse it, with the block to blame, where it is not finite."""
    if found.finite:
        return found
    names = list(model.diagram.bd.statenames)
    rates = [name for name, value in zip(names, found.rate, strict=True) if not np.isfinite(value)]
    blamed = model.not_finite(t, x, u) if rates or not _finite(found.y) else None
    bad = [f"the rate of {_listed(rates)} is not finite"] if rates else []
    if not bad and not blamed:
        sloped = [name for name, row in zip(names, np.hstack([found.A, found.B]), strict=True) if not _finite(row)]
        bad = [f"the slope of {f'the rate of {_listed(sloped)}' if sloped else 'an output'} is not finite"]
    reason = ", so that ".join([blamed, *bad] if blamed else bad)
    point = ", ".join([f"t = {t:.9g}", *(f"{name} = {value:.6g}" for name, value in zip(names, x, strict=True))][:6])
    raise NonFinite(f"{what}: {reason}, at {point}; give x= where all of it is finite")


def _finite(values: Array) -> bool:
    return bool(np.isfinite(values).all())


def _listed(names: list[str]) -> str:
    """Return names side by side, the first of many."""
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
