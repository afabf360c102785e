"""Panes of a diagram: its scopes, XY plots and mechanisms, gathered from the sink blocks.

bdsim's SCOPE, SCOPEXY and SCOPEXY1 serve as they are; our live blocks describe themselves. Every run records what its
panes show, whether or not anything is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph.identity import ABSENT, Entries
from cstormpy.reporting import notice_once
from cstormpy.simulation.recording import Signal
from cstormpy.simulation.units import coordinate_labels, mechanisms_of, units_of_signal

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
    held
        For each column: whether each value is held until the next one.
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
    t: Array = field(repr=False)
    y: Array = field(repr=False)
    mechanism: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    names: list[tuple[str, ...] | None] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)


class Pane:
    """A sink block that shows signals."""

    def __init__(self, block: Any, kind: str) -> None:
        self.block, self.kind, self._seen = block, kind, _seen(block)
        self.signals = [_source(wire.start.block, wire.start.port or 0) for wire in block._input_wires]
        self.name = str(block.name)
        self.title = str(_own(block, "title") or self._subject() or block.name)
        #: The unit that the block was told, empty if none.
        self.told_unit = str(_own(block, "unit") or "")
        self.mechanism = _own(block, "mechanism")
        chosen = _own(block, "vector") if kind == "scope" else _own(block, "indices")
        #: Which of the columns are shown, None for all.
        self.chosen = list(chosen) if isinstance(chosen, (list, tuple)) else None
        #: Inputs whose values have names at some outputs of the block that gives them.
        self.named = [s for s in self.signals if getattr(type(s.block), "value_names", None)]

    @property
    def options(self) -> dict[str, Any]:
        """Other options that the block was given."""
        own = self.block.__dict__.get("options")
        return dict(own if own is not None else _own(self.block, "options") or _options_of(self.block))

    def _subject(self) -> str:
        """Return what a view shows that bdsim gave a name: the mechanism, or the plant, by its name; empty if none."""
        if self.kind != "mechanism" or not _is_numbered(self.block):
            return ""
        shown = [signal.block for signal in self.signals if not _is_numbered(signal.block)]
        return str(_own(self.block, "subject") or (shown[0].name if shown else ""))

    def serves(self) -> bool:
        """Tell whether its block is wired, named and told to show things as when this was made."""
        return [*map(id, _seen(self.block))] == [*map(id, self._seen)]

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

    def labels(self, widths: Sequence[int]) -> list[str]:
        """Return a label for each column that is shown, of inputs of so many numbers each."""
        return self._labelled(_own(self.block, "labels"), self._mechanisms(), widths)

    def _mechanisms(self) -> dict[Any, Any]:
        """Return the mechanisms of the blocks whose signals are shown."""
        return mechanisms_of(s.block for s in self.signals)

    def _labelled(self, given: Sequence[str] | None, mechanisms: Mapping[Any, Any], widths: Sequence[int]) -> list[str]:
        width = sum(widths) if self.chosen is None else len(self.chosen)
        if given is not None and len(given) == width:
            return [str(label) for label in given]
        if given is not None and len(given) != len(self.signals):
            notice_once(
                f"block {self.block.name!r}: labels: {len(given)} given, one for each trace is expected, {width} in all"
            )
        labels = []
        differ = self.kind != "mechanism" and not (self.told_unit or self._common_unit(mechanisms, widths))
        for k, (signal, size) in enumerate(zip(self.signals, widths, strict=True)):
            named = given is not None and len(given) == len(self.signals)
            stem = str(given[k]) if given is not None and named else signal.name
            known = [] if named or size == 1 else coordinate_labels(signal, mechanisms[signal.block], size)
            found = known or ([stem] if size == 1 else [f"{stem}[{j}]" for j in range(size)])
            units = units_of_signal(signal, mechanisms[signal.block], size) if differ and not named else []
            labels += [f"{label} [{unit}]" for label, unit in zip(found, units, strict=True)] if units else found
        return labels if self.chosen is None else [labels[k] for k in self.chosen]

    def unit(self, widths: Sequence[int]) -> str:
        """Return the unit of all that is shown, empty if it is not told and not known of each."""
        return self.told_unit or self._common_unit(self._mechanisms(), widths)

    def _common_unit(self, mechanisms: Mapping[Any, Any], widths: Sequence[int]) -> str:
        units: list[str] = []
        for signal, size in zip(self.signals, widths, strict=True):
            units += units_of_signal(signal, mechanisms[signal.block], size) or [""] * size
        shown = set(units if self.chosen is None else [units[k] for k in self.chosen])
        return shown.pop() if len(shown) == 1 and self.kind != "mechanism" else ""

    def names(self, widths: Sequence[int]) -> list[tuple[str, ...] | None]:
        """Return for each column what its values 0, 1, … are called, None where they are those of a quantity."""
        return self._spread({s.key: s.block.value_names[s.port] for s in self.named}, widths)

    def _spread(self, known: dict[Any, Any], widths: Sequence[int]) -> list[Any]:
        """Return for each column what is known of its signal, None where that is nothing."""
        names: list[Any] = []
        for signal, size in zip(self.signals, widths, strict=True):
            names += [known.get(signal.key) or None] * size
        return names if self.chosen is None else [names[k] for k in self.chosen]

    def told(self) -> tuple[list[str] | None, dict[str, Any]]:
        """Return the labels that the block is given now, None for those of its signals, and its other options."""
        own = self.block.__dict__
        labels = own["labels"] if "labels" in own else _own(self.block, "labels")
        return None if labels is None else [*labels], self.options

    def recorded(
        self,
        t: Array,
        values: list[Array],
        mechanisms: Mapping[Any, Any],
        names: Mapping[Any, Any],
        labels: list[str] | None,
        options: dict[str, Any],
    ) -> RecordedPane:
        """Return the record of a run.

        Parameters
        ----------
        t : ndarray (N,)
        values : list of ndarray (N, ...)
            What has been recorded of each input.
        mechanisms : mapping
            The mechanism of each block whose signals are shown, or None.
        names : mapping
            What the values 0, 1, … at the outputs of a block are called, of each block of `named`.
        labels, options
            What the block was `told`.
        """
        held = {s.key: s.held for s in self.signals}
        y, widths = self.pick(values), [int(np.prod(np.shape(v)[1:])) for v in values]
        return RecordedPane(
            self.name,
            self.kind,
            self.title,
            self._labelled(labels, mechanisms, widths),
            self.told_unit or self._common_unit(mechanisms, widths),
            t,
            y,
            self.mechanism,
            options,
            self._spread({s.key: names[s.block][s.port] for s in self.named}, widths),
            [bool(options.get("stairs") or each) for each in self._spread(held, widths)],
        )


#: Where a diagram keeps its panes from one run to the next.
_KEPT = "_panes"
#: What a block is told to show, as its attributes.
_ATTRIBUTES = ("name", "_name", "title", "unit", "mechanism", "vector", "indices", "_input_wires", "_inport_slots")


def _seen(block: Any) -> list[Any]:
    """Return on what the pane of a block depends."""
    seen = [*map(block.__dict__.get, _ATTRIBUTES), *block._inport_slots]
    vector, indices = seen[5:7]
    for each in (vector, indices):
        if each.__class__ is list or each.__class__ is tuple:
            seen += each
    return seen


class _Found:
    """The panes of a diagram, and what they were made of."""

    def __init__(self, bd: Any, panes: list[Pane]) -> None:
        self.blocks, self.panes = [*bd.blocklist], panes
        self._entries: Entries | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Have a copy of the diagram find its own."""
        return type(None), ()

    def look_closely(self, bd: Any) -> None:
        """Be ready to `hold`: they were found to serve."""
        lists, entries = [bd.blocklist], [(bd.__dict__, "blocklist", bd.blocklist)]
        for pane in self.panes:
            own = pane.block.__dict__
            entries += [(own, name, own.get(name, ABSENT)) for name in _ATTRIBUTES]
            lists += [
                each
                for each in (pane.block._inport_slots, own.get("vector"), own.get("indices"))
                if each.__class__ is list
            ]
        self._entries = Entries(entries, [pane.block for pane in self.panes], lists)

    def hold(self) -> bool:
        """Tell at a glance whether all is as it was."""
        return self._entries is not None and self._entries.hold()


def find_panes(bd: Any) -> list[Pane]:
    """Return the panes of a compiled diagram in the order of its blocks, those of before where they serve."""
    found = bd.__dict__.get(_KEPT)
    if found is not None and found.hold():
        return [*found.panes]
    if found is not None and len(found.blocks) == len(bd.blocklist) and all(map(is_, found.blocks, bd.blocklist)):
        serve = [pane.serves() for pane in found.panes]
        if all(serve):
            found.look_closely(bd)
            return [*found.panes]
        panes = [pane if ok else Pane(pane.block, pane.kind) for pane, ok in zip(found.panes, serve, strict=True)]
    else:
        kinds = [
            (block, getattr(type(block), "pane_kind", None) or _KINDS.get(type(block).__name__))
            for block in bd.blocklist
        ]
        panes = [Pane(block, kind) for block, kind in kinds if kind is not None]
    bd.__dict__[_KEPT] = _Found(bd, panes)
    return [*panes]


def _own(block: Any, name: str) -> Any:
    """Return an attribute of a block, None if it has none: not a port, which takes long to look for."""
    own = block.__dict__.get(name, block)
    if own is not block:
        return own
    found: Any = getattr(type(block), name, None)
    return found.__get__(block) if hasattr(found, "__get__") else found


def _source(block: Any, port: int) -> Signal:
    """Return an output as a signal; of a subsystem that within which it is, where that is of a mechanism."""
    within, number = block, port
    while within.type in ("outport", "inport"):
        start = within._input_wires[number].start
        within, number = start.block, start.port or 0
    return Signal(within, number) if mechanisms_of([within])[within] is not None else Signal(block, port)


def _is_numbered(block: Any) -> bool:
    """Tell whether the name of a block is one that bdsim gave it."""
    return re.fullmatch(rf"(.*/)?{block.type}\.\d+", str(block.name)) is not None


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
