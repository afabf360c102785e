"""The state of a run at one time: saved to a file, read back, and gone on from."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import DiagramError, FileFormatError, InvalidType, ShapeError

__all__ = ["SavedState", "initial_state"]

_FORMAT = "cstormpy state 1"


@dataclass
class SavedState:
    """Where a run stands.

    Attributes
    ----------
    t
        Time.
    continuous
        State of each continuous block by its name.
    sampled
        State of each clock by its name.
    memory
        What blocks remember besides their states, by the name of the block.
    step
        Length of the next step of the solver.
    """

    t: float
    continuous: dict[str, list[float]] = field(default_factory=dict)
    sampled: dict[str, list[float]] = field(default_factory=dict)
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)
    step: float = 0.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        Path(path).write_text(json.dumps({"format": _FORMAT, **asdict(self)}, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedState:
        """Read what `save` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("format") != _FORMAT:
                raise FileFormatError(f"{path}: is not a saved state of this version")
            return cls(**content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(f"{path}: is not a saved state: {error}") from error

    @classmethod
    def of(cls, diagram: Any, simstate: Any, t: float, x: NDArray[np.float64], step: float) -> SavedState:
        """Return the state of a diagram at a time."""
        return cls(
            t=float(t),
            continuous={str(b.name): x[part].tolist() for b, part in diagram.continuous},
            sampled={clock.name: simstate.clock_states[clock].state.tolist() for clock in diagram.bd.clocklist},
            memory={str(b.name): b.memory() for b in diagram.bd.blocklist if hasattr(b, "memory")},
            step=float(step),
        )

    def restore(self, diagram: Any, simstate: Any) -> NDArray[np.float64]:
        """Put clocks and memories of a diagram back, and return its continuous state."""
        x = np.empty(diagram.nstates)
        for b, part in diagram.continuous:
            value = self.continuous.get(str(b.name))
            if value is None or len(value) != b.nstates:
                raise ShapeError(
                    f"start: block {b.name!r} has {b.nstates} states, the saved state "
                    f"{'has none of that name' if value is None else f'{len(value)}'}; was it saved from another diagram?"
                )
            x[part] = value
        for clock in diagram.bd.clocklist:
            saved = self.sampled.get(clock.name)
            state = simstate.clock_states[clock]
            if saved is None or len(saved) != state.state.size:
                raise DiagramError(f"start: the saved state does not fit clock {clock.name!r} of this diagram")
            state.state = np.array(saved, dtype=float)
        for b in diagram.bd.blocklist:
            if hasattr(b, "recall") and str(b.name) in self.memory:
                b.recall(self.memory[str(b.name)])
        return x


def initial_state(start: Any, diagram: Any, simstate: Any) -> tuple[float, NDArray[np.float64], float]:
    """Return time, continuous state and step from which a run begins."""
    if isinstance(start, SavedState):
        return start.t, start.restore(diagram, simstate), start.step
    if start is None:
        return 0.0, np.array(diagram.bd.getstate0(), dtype=float), 0.0
    try:
        x = np.array(start, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType(
            f"start: expected a SavedState or the state as an array, got {type(start).__name__}"
        ) from None
    if x.shape != (diagram.nstates,):
        raise ShapeError(f"start: expected shape ({diagram.nstates},) as in {diagram.bd.statenames}, got {x.shape}")
    return 0.0, x, 0.0
