"""The state of a run at one time: saved to a file, read back, and gone on from."""

from __future__ import annotations

import copy
import functools
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from bdsim.blocks.functions import Function

from cstormpy.arguments import flag
from cstormpy.arrays import Array, describe, real_array
from cstormpy.errors import DiagramError, FileFormatError, InvalidType, ShapeError
from cstormpy.file_writer import file_path, read_bytes, write_text
from cstormpy.reporting import notice_once
from cstormpy.simulation.bdsim_blocks import real_numbers
from cstormpy.simulation.named_states import closed_state, state_vector
from cstormpy.simulation.result_files import READERS
from cstormpy.simulation.run_data import Recorded

_FORMAT = "cstormpy state 1"


@dataclass
class SavedState:
    """State of a run.

    Attributes
    ----------
    t
        Time.
    continuous
        State of each continuous block by its name.
    sampled
        State of each sampled block by its name.
    held
        What sampled blocks with feedthrough hold at each of their outputs, by the name of the block.
    memory
        What blocks remember besides their states, by the name of the block.
    step
        Length of the next step of the solver.
    due
        Whether clocks that tick at this time have not done so yet, as where a stepper stands.
    """

    t: float
    continuous: dict[str, list[float]] = field(default_factory=dict)
    sampled: dict[str, list[float]] = field(default_factory=dict)
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)
    step: float = 0.0
    held: dict[str, list[Any]] = field(default_factory=dict)
    due: bool = False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON: the file is replaced whole, or stays as it is."""
        path = file_path(path)
        for name, memory in self.memory.items():
            try:
                json.dumps(memory, default=_plain)
            except (TypeError, ValueError) as error:
                raise FileFormatError(
                    f"{path}: what block {name!r} remembers cannot be written: {error}; keep numbers, texts, lists"
                ) from error
        for name, values in self.held.items():
            if any(real_numbers(value) is None for value in values):
                raise FileFormatError(f"{path}: what block {name!r} holds is no number, and cannot be written")
        write_text(path, json.dumps({"format": _FORMAT, **asdict(self)}, indent=1, default=_plain))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedState:
        """Read what `save` wrote."""
        try:
            content = json.loads(read_bytes(Path(path)))
            if content.pop("format") != _FORMAT:
                raise FileFormatError(f"{path}: is not a saved state of this version")
            state = cls(**content)
            state._check()
        except FileFormatError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileFormatError(f"{path}: is not a saved state: {error}") from error
        return state

    def _check(self) -> None:
        """Make sure of the types, and that all numbers are finite."""
        self.t, self.step, self.due = float(self.t), float(self.step), flag(self.due, "due")
        for states in (self.continuous, self.sampled):
            for name, values in states.items():
                states[name] = [float(value) for value in values]
        self.memory.items()
        held = [np.asarray(value, dtype=float).ravel() for values in self.held.values() for value in values]
        numbers = [
            self.t,
            self.step,
            *(v for part in (self.continuous, self.sampled) for vs in part.values() for v in vs),
            *(v for values in held for v in values),
        ]
        if not np.isfinite(numbers).all() or self.t < 0.0:
            raise ValueError("holds numbers that are not finite, or a time before zero")

    @classmethod
    def of(cls, diagram: Any, t: float, x: Array, step: float) -> SavedState:
        """Return the state of a diagram at a time."""
        return cls(
            t=float(t),
            continuous={str(b.name): x[part].tolist() for b, part in diagram.continuous},
            sampled={str(b.name): cell[0].tolist() for b, cell in diagram.cells.items()},
            memory={str(b.name): m for b in diagram.bd.blocklist if _remembers(b.__class__) and (m := _memory(b))},
            step=float(step),
            held={str(b.name): hold.saved() for b, hold in diagram.holds.items()},
        )

    def restore(self, diagram: Any, simstate: Any, what: str = "start") -> Array:
        """Put sampled states and memories of a diagram back, and return its continuous state."""
        x = self.vector(diagram.continuous, what)
        self.restore_samples(diagram, simstate, what)
        for b in diagram.bd.blocklist:
            if str(b.name) in self.memory:
                try:
                    _recall(b, self.memory[str(b.name)])
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    raise DiagramError(f"{what}: the saved state does not fit block {b.name!r}: {error}") from error
        return x

    def restore_samples(self, diagram: Any, simstate: Any, what: str = "start") -> None:
        """Put sampled states of a diagram back, and what its blocks hold."""
        for clock in diagram.bd.clocklist:
            parts = [self._of(self.sampled, b, b.ndstates, what) for b in clock.blocklist]
            simstate.clock_states[clock].state = np.concatenate([*parts, np.zeros(0)])
        for b, hold in diagram.holds.items():
            if str(b.name) in self.held:  # not in states that were saved before they were kept
                hold.restore(self.held[str(b.name)], what)

    def vector(self, parts: list[tuple[Any, Any]], what: str = "start") -> Array:
        """Return the continuous state of blocks, each given with where its own stands."""
        x = np.empty(sum(b.nstates for b, _ in parts))
        for b, part in parts:
            x[part] = self._of(self.continuous, b, b.nstates, what)
        return x

    @staticmethod
    def _of(states: dict[str, list[float]], b: Any, width: int, what: str) -> list[float]:
        value = states.get(str(b.name))
        if value is None or len(value) != width:
            raise ShapeError(
                f"{what}: block {b.name!r} has {width} states, the saved state "
                f"{'has none of that name' if value is None else len(value)}; was it saved from another diagram?"
            )
        return value


@functools.cache
def _tells(kind: type) -> bool:
    """Tell whether a class says itself what its blocks remember, and takes it back."""
    return all(callable(getattr(kind, name, None)) for name in ("memory", "recall"))


@functools.cache
def _remembers(kind: type) -> bool:
    """Tell whether blocks of a class may remember something besides their states."""
    return _tells(kind) or issubclass(kind, Function)


def _memory(b: Any) -> dict[str, Any]:
    """Return what a block remembers besides its states."""
    if _tells(b.__class__):
        return b.memory()
    if not isinstance(b, Function) or b.userdata is None:  # without persistent=True
        return {}
    try:
        return copy.deepcopy(dict(b.userdata))
    except Exception as error:
        notice_once(f"block {b.name!r} remembers what cannot be copied; a run that goes on begins without: {error}")
        return {}


def _recall(b: Any, memory: dict[str, Any]) -> None:
    if _tells(b.__class__):
        b.recall(memory)
    elif isinstance(b, Function) and b.userdata is not None:
        b.userdata.clear()
        b.userdata.update(copy.deepcopy(memory))


def _plain(value: Any) -> Any:
    """Return numbers and arrays of NumPy as what JSON knows."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is neither number nor text")


_NO_STATE = (
    "a saved run holds signals, not all of where it stood; save that beside it, by out.state.save('state.json'), or "
    "begin at states by name, as {'plant.elbow.q': 0.3}"
)


def opened(start: Any, what: str = "start") -> Any:
    """Return the start of a run: of a run that was before its end, of a path what is in its file.

    `what` it was given as, for messages.
    """
    of_run = getattr(start, "state", None)
    if isinstance(of_run, SavedState):
        return of_run
    if isinstance(start, Recorded):
        raise InvalidType(f"{what}: {_NO_STATE}")
    if not isinstance(start, (str, os.PathLike)):
        return start
    if Path(start).suffix.lower() in READERS:
        raise FileFormatError(f"{what}: {os.fspath(start)}: {_NO_STATE}")
    try:
        return SavedState.load(start)
    except FileFormatError as error:
        raise FileFormatError(f"{what}: {error}") from error


def ticks_are_due(start: Any, t: float) -> bool:
    """Tell whether clocks that tick at the time of a start are still to do so, as at the beginning of a run."""
    return start.due if isinstance(start, SavedState) else t == 0.0


def initial_state(start: Any, diagram: Any, simstate: Any, what: str = "start") -> tuple[float, Array, float]:
    """Return time, continuous state and step from which a run begins."""
    if isinstance(start, SavedState):
        return start.t, start.restore(diagram, simstate, what), start.step
    if start is None:
        return 0.0, diagram.start_state(), 0.0
    if isinstance(start, Mapping):
        return 0.0, state_vector(diagram.bd, start, diagram.start_state(), what), 0.0
    if not (np.iterable(start) or isinstance(start, Real)):
        got = describe(start) + "; its states are its x, and its inputs those of blocks to set" * hasattr(start, "x")
        raise InvalidType(f"{what}: expected a SavedState, its file, or the state as an array or by names, got {got}")
    names = ", ".join(map(str, diagram.bd.statenames))
    x = real_array(start, what, (diagram.nstates,), hint=f"the states are {names or 'none'}")
    return 0.0, closed_state(diagram.bd, x, what), 0.0
