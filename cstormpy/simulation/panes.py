"""Panes of a diagram: its scopes, XY plots and mechanisms, gathered from the sink blocks.

bdsim's SCOPE, SCOPEXY and SCOPEXY1 serve as they are; our live blocks describe themselves. Every run records what its
panes show, whether or not anything is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.recording import Signal
from cstormpy.simulation.units import coordinates_of, unit_of_signal

__all__ = ["Pane", "RecordedPane", "find_panes"]

Array = NDArray[np.float64]
_KINDS = {"Scope": "scope", "ScopeXY": "xy", "ScopeXY1": "xy"}


@dataclass
class RecordedPane:
    """The content of a pane: plain data.

    Attributes
    ----------
    name
        Of the block.
    kind
        "scope", "xy" or "mechanism".
    labels
        One for each column of y.
    names
        For each column: what its values 0, 1, … are called, None for those of a quantity.
    unit
        Of the traces, empty if not given.
    t, y
        Times (N,) and numbers (N, columns): the traces of a scope, x and y, or the coordinates of a mechanism.
    mechanism
        What is drawn, of a pane of that kind.
    options
        What else the block was given.
    """

    name: str
    kind: str
    title: str
    labels: list[str]
    unit: str
    t: Array
    y: Array
    mechanism: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    names: list[tuple[str, ...] | None] = field(default_factory=list)


class Pane:
    """A sink block that shows signals."""

    def __init__(self, block: Any, kind: str) -> None:
        self.block, self.kind = block, kind
        self.signals = [Signal(wire.start.block, wire.start.port or 0) for wire in block._input_wires]
        self.name = str(block.name)
        self.title = str(_own(block, "title") or block.name)
        #: The unit that the block was told, empty if none.
        self.told_unit = str(_own(block, "unit") or "")
        self.mechanism = _own(block, "mechanism")
        chosen = _own(block, "vector") if kind == "scope" else _own(block, "indices")
        #: Which of the columns are shown, None for all.
        self.chosen = list(chosen) if isinstance(chosen, (list, tuple)) else None
        self.options = dict(_own(block, "options") or _options_of(block))

    def columns(self) -> list[NDArray[Any]]:
        """Return what the block shows now, input by input, as flat arrays."""
        return [np.asarray(s.slot.value, dtype=float).reshape(-1) for s in self.signals]

    def row(self) -> Array:
        """Return the numbers that are shown now, side by side."""
        columns = self.columns()
        flat = columns[0] if len(columns) == 1 else np.concatenate(columns)
        return flat if self.chosen is None else flat[self.chosen]

    def pick(self, values: list[Array]) -> Array:
        """Return the columns (N, k) that are shown, of the recorded inputs (N, ...)."""
        flat = [np.asarray(v, dtype=float).reshape(len(v), -1) for v in values]
        wide = np.hstack(flat) if flat else np.zeros((0, 0))
        return wide if self.chosen is None else wide[:, self.chosen]

    def labels(self, width: int) -> list[str]:
        """Return a label for each of so many columns."""
        given = _own(self.block, "labels")
        if given is not None and len(given) == width:
            return [str(label) for label in given]
        labels = []
        for k, (signal, value) in enumerate(zip(self.signals, self.columns(), strict=True)):
            if given is not None and len(given) == len(self.signals):
                labels += _counted(str(given[k]), value.size)
            else:
                labels += _by_coordinates(signal, value.size)
        if self.chosen is not None:
            labels = [labels[k] for k in self.chosen]
        return labels if len(labels) == width else [f"{k}" for k in range(width)]

    @property
    def unit(self) -> str:
        """The unit of all that is shown, empty if it is not told and not known of each."""
        if self.told_unit or self.kind == "mechanism":
            return self.told_unit
        units: list[str] = []
        for signal, value in zip(self.signals, self.columns(), strict=True):
            units += unit_of_signal(signal, value.size) or [""] * value.size
        shown = set(units if self.chosen is None else [units[k] for k in self.chosen])
        return shown.pop() if len(shown) == 1 else ""

    def names(self) -> list[tuple[str, ...] | None]:
        """Return for each column what its values 0, 1, … are called, None where they are those of a quantity."""
        names: list[tuple[str, ...] | None] = []
        for signal, value in zip(self.signals, self.columns(), strict=True):
            known = getattr(type(signal.block), "value_names", None) and signal.block.value_names[signal.port]
            names += [known or None] * value.size
        return names if self.chosen is None else [names[k] for k in self.chosen]

    def recorded(self, t: Array, values: list[Array]) -> RecordedPane:
        """Return what was shown in a run."""
        y = self.pick(values)
        names = self.names()
        return RecordedPane(
            self.name,
            self.kind,
            self.title,
            self.labels(y.shape[1]),
            self.unit,
            t,
            y,
            self.mechanism,
            self.options,
            names if len(names) == y.shape[1] else [None] * y.shape[1],
        )


def find_panes(bd: Any) -> list[Pane]:
    """Return the panes of a compiled diagram in the order of its blocks."""
    panes = []
    for block in bd.blocklist:
        kind = getattr(type(block), "pane_kind", None) or _KINDS.get(type(block).__name__)
        if kind is not None:
            panes.append(Pane(block, kind))
    return panes


def _counted(stem: str, width: int) -> list[str]:
    return [stem] if width == 1 else [f"{stem}[{k}]" for k in range(width)]


def _by_coordinates(signal: Signal, width: int) -> list[str]:
    """Return labels of a signal's numbers: by their coordinates as states are called, "plant.elbow.q", or counted."""
    coordinates = coordinates_of(signal, width) if width > 1 else ()
    owner, _, port = signal.name.rpartition(".")
    return [f"{owner}.{name}.{port}" for name in coordinates] or _counted(signal.name, width)


def _own(block: Any, name: str) -> Any:
    """Return an attribute of a block, None if it has none: not a port, which takes long to look for."""
    try:
        return object.__getattribute__(block, name)
    except AttributeError:
        return None


def _options_of(block: Any) -> dict[str, Any]:
    """Return the options of bdsim's own scopes."""
    options: dict[str, Any] = {}
    scale = _own(block, "scale")
    if scale is not None and not isinstance(scale, str):
        options["scale"] = [float(v) for v in np.asarray(scale).reshape(-1)]
    if _own(block, "stairs"):
        options["stairs"] = True
    if _own(block, "aspect") == "equal":
        options["equal"] = True
    return options
