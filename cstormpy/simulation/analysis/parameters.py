"""Tunable numbers of a diagram by name, and how its function's numbers and initial states follow them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, UnknownName, shown, unknown_name
from cstormpy.graph.differences import agreeing_slope, shorter
from cstormpy.linkage.components import components
from cstormpy.simulation.analysis.mechanism_numbers import MechanismNumbers, is_mechanical, knows
from cstormpy.simulation.named_states import block_of_state, continuous_parts, state_places
from cstormpy.simulation.palette import quiet
from cstormpy.simulation.surroundings import codes_within

_INDEXED = re.compile(r"(?P<name>.*)\[(?P<index>\d+(\s*,\s*\d+)*)\]$")
#: A number is moved by this part of it for a difference, and by half of that; extrapolated, rounding is what is left.
_MOVED = 2.0**-9
#: One of a mechanism is moved by so much more, and one of which rounding is large, as weights of a regulator are.
_WIDER, _ROUNDED = 4.0, 16.0
#: Numbers of a block that say how it is wired, and those that the diagram keeps in it under names like _id.
_BOOKKEEPING = ("nin", "nout")
_HIDDEN = ("nstates", "ndstates", "id", "pos", "depth", "sequence", "x_view", "output_values")
#: What a clock says to its blocks.
_OF_CLOCKS = ("T", "offset")
#: Methods that a run does not call at its steps: what only they read is a copy of something else.
_BEFOREHAND = ("__init__", "start", "check", "reset", "done")


@dataclass
class _Entry:
    """One number: an attribute of a block, an entry of it, one of its mechanism, or an initial state."""

    name: str
    block: Any
    attribute: str
    index: tuple[int, ...] | None
    #: Where among the continuous states; of a sampled one, or what is held, its name.
    state: int | str | None = None
    #: The mechanism that has a component of the attribute's name.
    mechanism: MechanismNumbers | None = None
    least: float = -np.inf


class Parameters:
    """Numbers of a diagram that can be tuned, one behind the other.

    Parameters
    ----------
    bd : BlockDiagram
        Compiled.
    names : str or list of str
        "block.parameter" (or "block:parameter") of a number, of a whole array, or of an entry of it, as in
        ``"controller.pd.kp"``, ``"gain.K[0, 1]"``; the name of a state stands for its value at the start, and the name
        of a number of a mechanism, as ``"forearm.mass"``, for that in all blocks that have it, ``"plant.forearm.mass"``
        in one of them.
    x0 : ndarray, optional
        The state at the start; that of the blocks unless given.
    samples : dict of str to float, optional
        Sampled states at the start, where it is a saved one, and what is held there, by their names.
    open_loops : bool
        Whether states of mechanisms with loops may be among them, as who asks moves the others with them.
    """

    def __init__(
        self,
        bd: Any,
        names: Any,
        x0: Array | None = None,
        open_loops: bool = False,
        samples: Mapping[str, float] | None = None,
    ) -> None:
        self.bd, self._begun = bd, samples or {}
        self._mechanisms: dict[str, MechanismNumbers] = {}
        if not isinstance(names, Iterable) or (isinstance(names, np.ndarray) and names.ndim == 0):
            raise InvalidType(f"parameters: expected a list of names, as in ['gain.K'], got {shown(names)}")
        names = [names] if isinstance(names, str) else list(names)
        if not names:
            raise InvalidValue("parameters: name one or more, as in ['gain.K', 'controller.pd.kp']")
        found = [self._find(name) for name in names]
        self.entries = [entry for part in found for entry in part]
        #: How many numbers each name stands for.
        self.sizes = [len(part) for part in found]
        if not open_loops:
            self._refuse_closed()
        repeated = {e.name for e in self.entries if [f.name for f in self.entries].count(e.name) > 1}
        if repeated:
            raise InvalidValue(f"parameters: {', '.join(sorted(repeated))} is named twice")
        self._refuse_the_same_number()
        first = np.asarray(bd.getstate0(), dtype=float) if x0 is None else x0
        #: The continuous states that are among them, by their places, and the sampled ones.
        self._states = {e.state: float(first[e.state]) for e in self.entries if isinstance(e.state, int)}
        self._samples = {e.name: self._begun[e.name] for e in self.entries if isinstance(e.state, str)}
        self._refuse_the_same_start()

    def _refuse_the_same_number(self) -> None:
        """Refuse a number under two names: of a mechanism with its block and without, an entry as [0,1] and [0, 1]."""
        known: dict[tuple[Any, ...], str] = {}
        for e in self.entries:
            if e.state is None and (first := known.setdefault(self._place(e), e.name)) != e.name:
                raise InvalidValue(f"parameters: {first} and {e.name} are the same number; name one of them")

    def _place(self, e: _Entry) -> tuple[Any, ...]:
        """Return where a number that is no state is kept."""
        if e.mechanism is not None:
            return id(e.mechanism), e.attribute
        return id(e.block), self._attribute(e.block, e.attribute), e.index

    def _refuse_closed(self) -> None:
        """Refuse a state of a mechanism with loops: alone it cannot begin elsewhere."""
        for b, part in continuous_parts(self.bd):
            if not getattr(b, "closed", False):
                continue
            for e in self.entries:
                if e.state is not None and e.state in part:
                    raise InvalidValue(
                        f"parameters: {self.bd.statenames[e.state]} is a state of a mechanism with loops, which it "
                        "would open; move the closed start by mech.project and difference"
                    )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return tuple(e.name for e in self.entries)

    # finding them

    def _find(self, name: Any) -> list[_Entry]:
        if not isinstance(name, str):
            raise InvalidType(f"parameters: expected names such as 'gain.K', got {shown(name)}")
        states = list(self.bd.statenames)
        if name in states:
            return [_Entry(name, None, name, None, states.index(name))]
        if name in self._begun:
            return [_Entry(name, None, name, None, name)]
        if name in self.bd.blocknames:
            return self._states_of(self.bd.blocknames[name])
        if re.split("[.:]", name)[0] not in {re.split("[.:]", b)[0] for b in self.bd.blocknames}:
            blocks = [b for b in self.bd.blocklist if knows(b, name)]
            exact = [b for b in blocks if name in components(b.mech)]
            if blocks:
                return self._of_mechanism(exact or blocks, "", name)
        block, attribute = self._block(name)
        if knows(block, attribute):
            return self._of_mechanism([block], f"{block.name}.", attribute)
        index = None
        match = _INDEXED.match(attribute)
        if match and attribute not in getattr(block, "_parameters", {}):
            attribute, index = match["name"], tuple(int(k) for k in match["index"].split(","))
        _refuse_clocks(block, attribute, name)
        value = self._read(block, attribute, name)
        label = f"{block.name}.{attribute}"
        if value.ndim == 0 and index is None:
            return [_Entry(label, block, attribute, None)]
        if index is not None:
            if len(index) != value.ndim or any(k >= size for k, size in zip(index, value.shape, strict=True)):
                raise UnknownName(f"parameters: {label} has the shape {value.shape}, there is no entry {list(index)}")
            return [_Entry(name, block, attribute, index)]
        form = label + "[{}]"
        return [_Entry(form.format(", ".join(map(str, i))), block, attribute, i) for i in np.ndindex(value.shape)]

    def _of_mechanism(self, blocks: list[Any], prefix: str, name: str) -> list[_Entry]:
        """Return the components of a number of the mechanism of some blocks."""
        numbers = self._mechanisms.get(prefix + name.partition("[")[0]) or next(
            (m for m in self._mechanisms.values() if m.blocks == blocks), None
        )
        if numbers is None:
            for other in self._mechanisms.values():
                shared = [str(b.name) for b in blocks if b in other.blocks]
                if shared:
                    raise InvalidValue(
                        f"parameters: {prefix}{name} is one of block {shared[0]!r} and others are of several blocks; "
                        "put the block's name before all of them, or before none"
                    )
            numbers = self._mechanisms[prefix + name.partition("[")[0]] = MechanismNumbers(blocks, prefix)
        return [
            _Entry(prefix + part.name, blocks[0], part.name, None, None, numbers, numbers.least(part))
            for part in numbers.find(name)
        ]

    def _states_of(self, block: Any) -> list[_Entry]:
        """Return the states of the block that a name alone stands for."""
        if block.blockclass == "continuous":
            states = self.bd.statenames
            return [_Entry(states[k], None, states[k], None, k) for k in state_places(self.bd, block, "parameters")]
        known = [f"{block.name}.{attribute}" for attribute in _tunables(block)]
        hint = f"name a parameter of it: {', '.join(known)}" if known else "it has no number to be tuned"
        raise UnknownName(f"parameters: {block.name!r} is a block without continuous states; {hint}")

    def _block(self, name: str) -> tuple[Any, str]:
        """Return the block whose name begins a name, the longest of them, and the rest."""
        found = [b for b in self.bd.blocknames if name.startswith(b) and name[len(b) : len(b) + 1] in (".", ":")]
        if not found:
            for clock in self.bd.clocklist:
                if re.match(rf"{re.escape(clock.name)}[.:]", name):
                    raise _owned_by(clock, name)
            first = re.split("[.:]", name)[0]
            raise unknown_name("parameters: block or state", first, [*self.bd.blocknames, *self.bd.statenames])
        longest = max(found, key=len)
        return self.bd.blocknames[longest], name[len(longest) + 1 :]

    def _read(self, block: Any, attribute: str, name: str) -> Array:
        value = None
        with contextlib.suppress(AttributeError, ValueError, LookupError):
            value = getattr(block, self._attribute(block, attribute))
        kept = attribute in _BOOKKEEPING or (attribute in _HIDDEN and attribute not in vars(block))
        own = attribute in getattr(block, "_parameters", {}) or not (kept or attribute.startswith("_"))
        if not own or value is None or callable(value) or np.asarray(value).dtype.kind not in "iuf":
            known = [*_tunables(block), *(components(block.mech) if is_mechanical(block) else ())]
            _refuse_whole(block, attribute, name)
            known += [state for state in self._begun if state.startswith((f"{block.name}:", f"{block.name} "))]
            raise unknown_name(f"parameters: of block {block.name!r} the tunable number", attribute, known)
        return np.array(value, dtype=float)

    @staticmethod
    def _attribute(block: Any, name: str) -> str:
        """Return where a block keeps what it was given by a name: bdsim has x0 as _x0."""
        kept = vars(block)
        return (
            f"_{name}" if name not in kept and f"_{name}" in kept and name not in kept.get("_parameters", {}) else name
        )

    # reading and setting

    def get(self) -> Array:
        """Return the present values."""
        out = []
        for e in self.entries:
            if e.state is not None:
                out.append(self._samples[e.name] if isinstance(e.state, str) else self._states[e.state])
                continue
            if e.mechanism is not None:
                out.append(e.mechanism.value_now(e.attribute))
                continue
            value = self._read(e.block, e.attribute, e.name)
            out.append(float(value if e.index is None else value[e.index]))
        return np.array(out)

    def set(self, values: Array, lenient: bool = False) -> None:
        """Set the numbers of the blocks; a block refuses what it cannot take.

        With `lenient` a mechanism may have inertias that no body has, as beside a thin rod. What a number of a block is
        already is not set again: a regulator would solve for its gains anew.
        """
        values = np.asarray(values, dtype=float)
        if not np.isfinite(values).all():
            bad = [name for name, value in zip(self.names, values, strict=True) if not np.isfinite(value)]
            raise NonFinite(f"parameters: {', '.join(bad)} must be finite")
        arrays: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        of_mechanisms: dict[int, tuple[MechanismNumbers, dict[str, float]]] = {}
        for e, value in zip(self.entries, values.tolist(), strict=True):
            if isinstance(e.state, str):
                self._samples[e.name] = value
            elif e.state is not None:
                self._states[e.state] = value
            elif e.mechanism is not None:
                of_mechanisms.setdefault(id(e.mechanism), (e.mechanism, {}))[1][e.attribute] = value
            elif e.index is None:
                if self._read(e.block, e.attribute, e.name) != value:
                    self._write(e.block, e.attribute, value)
            else:
                key = id(e.block), e.attribute
                array = arrays[key][2] if key in arrays else self._read(e.block, e.attribute, e.name)
                if array[e.index] != value:
                    array[e.index] = value
                    arrays[key] = (e.block, e.attribute, array)
        for block, attribute, array in arrays.values():
            self._write(block, attribute, array)
        for mechanism, numbers in of_mechanisms.values():
            mechanism.set(numbers, lenient)

    def _write(self, block: Any, attribute: str, value: Any) -> None:
        try:
            with quiet():  # bdsim's blocks print what is set
                if attribute in getattr(block, "_parameters", {}):
                    block.set_param(attribute, value)
                else:
                    setattr(block, self._attribute(block, attribute), value)
                take_up(block)
        except CstormError:
            raise
        except Exception as error:
            text = f"parameters: block {block.name!r} refuses {attribute} = {value}: {type(error).__name__}: {error}"
            raise InvalidValue(text) from error

    # where states start

    def _begins(self, e: _Entry) -> int | str | None:
        """Return which state begins at a number: a continuous one's place, or of a sampled block its name and index."""
        if e.state is not None:
            return e.state
        if e.mechanism is not None or e.block.blockclass not in ("continuous", "sampled"):
            return None
        value = self._read(e.block, e.attribute, e.name)
        at = () if e.index is None else e.index
        moved = value.copy()
        moved[at] += _MOVED * max(1.0, abs(value[at]))
        before = np.array(e.block.getstate0(), dtype=float)
        try:
            self._write(e.block, e.attribute, moved if moved.ndim else float(moved))
            after = np.array(e.block.getstate0(), dtype=float)
        except CstormError:
            return None
        finally:
            self._write(e.block, e.attribute, value if value.ndim else float(value))
        changed = np.flatnonzero(before != after).tolist() if before.shape == after.shape else []
        if len(changed) != 1 or before[changed[0]] != value[at] or after[changed[0]] != moved[at]:
            return None
        if e.block.blockclass == "sampled":
            return f"{e.block.name}[{changed[0]}]"
        return state_places(self.bd, e.block, "parameters")[changed[0]]

    def _refuse_the_same_start(self) -> None:
        """Refuse two names of the number that a state begins at."""
        known: dict[int | str, str] = {}
        for e in self.entries if len(self.entries) > 1 else []:
            begins = self._begins(e)
            if begins is not None and known.setdefault(begins, e.name) != e.name:
                raise InvalidValue(
                    f"parameters: {known[begins]} and {e.name} are the same number, where "
                    f"{self._state_name(begins)} starts; name one of them"
                )

    def refuse_ignored(self, saved: bool) -> None:
        """Refuse numbers at which states would begin, but for a start that is given; a saved one has sampled states."""
        for e in self.entries:
            begins = self._begins(e) if e.state is None else None
            if isinstance(begins, str) and saved:
                raise InvalidValue(
                    f"parameters: {e.name} has no say: the saved state in start= is where {begins} starts"
                )
            if isinstance(begins, int):
                raise InvalidValue(
                    f"parameters: {e.name} has no say where start= is given; name the state itself, "
                    f"{self._state_name(begins)!r}, or leave start= out"
                )

    def _state_name(self, begins: int | str) -> str:
        return begins if isinstance(begins, str) else str(self.bd.statenames[begins])

    def states(self) -> dict[str, float]:
        """Return the states among the parameters, and where they start."""
        return {str(self.bd.statenames[k]): value for k, value in self._states.items()}

    def put_state(self, name: str) -> bool:
        """Have a block begin at the value of a state among the parameters; return whether it has a number for that."""
        block, at, k = block_of_state(self.bd, name)
        with contextlib.suppress(CstormError):
            before = self._read(block, "x0", name)
            if before.shape == (len(at),):
                after = before.copy()
                after[k] = self._states[at[k]]
                self._write(block, "x0", after)
                if np.array_equal(block.getstate0(), after):
                    return True
                self._write(block, "x0", before)
        return False

    @contextlib.contextmanager
    def kept(self) -> Iterator[Array]:
        """Give the present values, and set them again at the end."""
        with contextlib.ExitStack() as mechanisms:
            for numbers in {id(m): m for m in self._mechanisms.values()}.values():
                mechanisms.enter_context(numbers.present())
            before = self.get()
            try:
                yield before
            finally:
                self.set(before)

    @contextlib.contextmanager
    def moved(self) -> Iterator[None]:
        """Let all numbers be others, by a little, to the end of the ``with`` block.

        What a diagram takes for granted of its numbers when it is translated, as that a mass is 1 and folds, is then
        not true of these, so that it has derivatives to them. Each is moved by another part of its step: moved alike,
        numbers that are 0 can cancel in what is computed of them, as a point's along an axis.
        """
        with self.kept() as values:
            parts = 0.2 + 0.3 * (np.arange(len(values)) * 0.5 * (5.0**0.5 - 1.0) % 1.0)
            self.set(values + parts * self._steps(values), lenient=True)
            yield

    @staticmethod
    def _steps(values: Array) -> Array:
        """Return by how much numbers are moved for differences."""
        return _MOVED * 2.0 ** np.ceil(np.log2(np.maximum(np.abs(values), 1e-3)))

    def start(self, x: Array) -> Array:
        """Return a state with the initial states among the parameters put in."""
        out = x.copy()
        for k, value in self._states.items():
            out[k] = value
        return out

    def samples(self) -> dict[str, float]:
        """Return the sampled states among the parameters, and where they start."""
        return dict(self._samples)

    def slopes(self, read: Callable[[], Array]) -> Array:
        """Return the derivatives (k, size) of what is read to the parameters, which are as before afterwards.

        Differences of the second order, extrapolated to the fourth: exact but for rounding where a number goes into the
        function as it is, or linearly, and with shorter steps as long as that helps where not. Those of a mechanism go
        through smooth functions into its tables, with steps for which only rounding is left.
        """
        with self.kept() as values:
            rows = []
            for k, step in enumerate(self._steps(values)):
                if self.entries[k].mechanism is not None:
                    rows.append(self._smooth_slope(read, values, k, _WIDER * step))
                    continue
                rows.append(self._extrapolated_slope(read, values, k, step))
        most = max((row.size for row in rows), default=0)
        for row, name in zip(rows, self.names, strict=True):
            if row.size < most:
                raise self._changes(name)
        return np.array(rows)

    @staticmethod
    def _changes(name: str) -> InvalidValue:
        return InvalidValue(f"parameters: {name} changes the form of the diagram and has no derivative")

    def _extrapolated_slope(self, read: Callable[[], Array], values: Array, k: int, h: float) -> Array:
        """Return the derivative to a number, of each entry by the step for which differences agree best.

        Most agree for the first one. Gains of a regulator have more rounding than others and ask for a wider one; the
        steady state that begins a filter bends within its small covariances and asks for shorter ones.
        """
        own = min(h, float(_MOVED * abs(values[k])) or h)
        steps = [own, _ROUNDED * own, h, *shorter(own)]
        found = agreeing_slope(lambda step: self._slope(read, values, k, step), steps)
        assert found is not None
        return found

    def _smooth_slope(self, read: Callable[[], Array], values: Array, k: int, h: float) -> Array:
        """Return the derivative to a number of a mechanism, of the sixth order."""
        room = values[k] - self.entries[k].least
        if room == 0.0:  # as a damping of 0, which goes into the tables as it is
            return self._slope(read, values, k, h, 0.0)
        wide, middle, narrow = (self._slope(read, values, k, part * min(h, 0.5 * room)) for part in (1.0, 0.5, 0.25))
        return np.where(wide == narrow, wide, (64.0 * narrow - 20.0 * middle + wide) / 45.0)

    def _slope(self, read: Callable[[], Array], values: Array, k: int, h: float, back: float | None = None) -> Array:
        """Return the difference of what is read between h above and below, or as far back as is said."""
        back, sides = h if back is None else back, []
        for side in (h, -back):
            moved = values.copy()
            moved[k] += side
            self.set(moved, lenient=True)
            sides.append(read())
        if sides[0].shape != sides[1].shape:
            raise self._changes(self.names[k])
        same = sides[0] == sides[1]  # as a bound that is nowhere, of which the infinities have no difference
        with np.errstate(invalid="ignore"):
            return np.where(same, 0.0, (sides[0] - sides[1]) / (h + back))


def take_up(block: Any) -> None:
    """Have a block take up what it otherwise does where a run starts, as the speed of a motion."""
    if hasattr(type(block), "take_up"):
        block.take_up()


def _refuse_whole(block: Any, attribute: str, name: str) -> None:
    """Refuse whole numbers of a law of a controller, which may count or choose, and lists: they are no gains."""
    law, _, gain = attribute.partition(".")
    held = getattr(getattr(block, "laws", None), "laws", {}).get(law)
    value = getattr(getattr(held, "own", held), gain, None) if held is not None else None
    if isinstance(value, int) and not isinstance(value, bool):
        raise InvalidType(
            f"parameters: {name!r} is a whole number, which may count or choose; write {float(value)} instead of "
            f"{value} for a gain"
        )
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype != np.float64):
        raise InvalidType(
            f"parameters: {name!r} is {shown(value)}; for gains write an array of floats, as np.array([1.0, 2.0])"
        )


def _tunables(block: Any) -> list[str]:
    """Return what can be tuned of a block, by the names under which it was given."""
    kept, read = vars(block), _read_in_a_run(type(block))
    found = {key for key, value in kept.items() if key in read and _tunable(key, value)}
    if getattr(block, "_clock", None) is not None:
        found -= set(_OF_CLOCKS)
    return sorted(found | {*getattr(block, "_parameters", {})} | ({"x0"} if np.size(kept.get("_x0", ())) else set()))


def _tunable(key: str, value: Any) -> bool:
    if key.startswith("_") or key in _BOOKKEEPING:
        return False
    return not isinstance(value, bool) and isinstance(value, (int, float, np.ndarray))


def _read_in_a_run(kind: type) -> set[str]:
    """Return the names that methods of a class read, but those that are called before a run only."""
    codes = [
        f.__code__
        for c in kind.__mro__
        for name, f in vars(c).items()
        if hasattr(f, "__code__") and name not in _BEFOREHAND
    ]
    return {name for code in codes for part in codes_within(code) for name in part.co_names}


def _refuse_clocks(block: Any, attribute: str, name: str) -> None:
    """Refuse what the clock of a block says."""
    clock = getattr(block, "_clock", None)
    if clock is not None and (attribute == "T" or (attribute in _OF_CLOCKS and not hasattr(block, attribute))):
        raise _owned_by(clock, name)


def _owned_by(clock: Any, name: str) -> InvalidValue:
    return InvalidValue(
        f"parameters: {name!r}: period and offset are the clock's ({clock.name}) and cannot be tuned, as with others "
        "other steps are taken; sweep over an option of a function that builds the diagram"
    )
