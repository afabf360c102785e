"""Description of a live window: what is shown and what can be set, plain data that goes to it as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.mechanism import Mechanism, files

KINDS = ("scope", "xy", "mechanism")


@dataclass(frozen=True)
class LivePane:
    """One tile of the window.

    Attributes
    ----------
    name
        Of the block.
    kind
        "scope", "xy" or "mechanism".
    labels
        One for each of its numbers in a row of samples: the traces of a scope, x and y, or the coordinates q.
    title, unit
        Shown above the tile, and behind the values.
    mechanism
        What is drawn, in a pane of that kind.
    options
        "scale" (low, high of y; or of x and y), "stairs", "equal", "trail" (seconds; True for some, False for none),
        "view" ("auto", "planar", "3d"), "frames".
    names
        For each of the numbers in a row of samples: what its values 0, 1, … are called, None for a quantity.
    push
        Name of the block whose links the mouse may push; None where that is not possible.
    """

    name: str
    kind: str
    labels: Sequence[str]
    title: str = ""
    unit: str = ""
    mechanism: Mechanism | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    push: str | None = None
    names: Sequence[Sequence[str] | None] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValue(f"pane {self.name!r}: kind is one of {', '.join(KINDS)}, got {self.kind!r}")
        if (self.mechanism is not None) != (self.kind == "mechanism"):
            raise InvalidType(f"pane {self.name!r}: a mechanism belongs to panes of that kind, and to no other")


@dataclass(frozen=True)
class Knob:
    """A number that can be changed while the simulation runs.

    Attributes
    ----------
    block, name, value
        Whose, what, and where it stands.
    low, high
        Range of its slider; left out it is made from the value.
    log
        Whether the slider moves by factors; left out, where the whole range is positive and spans a factor of ten.
    index
        Which number, of a parameter that has several.
    unit
        Shown behind the value.
    """

    block: str
    name: str
    value: float
    low: float | None = None
    high: float | None = None
    log: bool | None = None
    index: int | None = None
    unit: str = ""

    def range(self) -> tuple[float, float, bool]:
        """Return the slider's ends, and whether it moves by factors.

        Examples
        --------
        >>> Knob("law", "gain", 20.0).range()
        (0.2, 2000.0, True)
        >>> Knob("law", "offset", 0.0).range()
        (-1.0, 1.0, False)
        >>> Knob("law", "limit", 5.0, low=0.0, high=10.0).range()
        (0.0, 10.0, False)
        """
        size = abs(self.value) if self.value and math.isfinite(self.value) else 1.0
        positive = self.value > 0.0 and (self.low is None or self.low > 0.0)
        by_factors = positive and self.log is not False and not (self.low is None and self.high is not None)
        low = self.low if self.low is not None else (self.value / 100.0 if by_factors else -2.0 * size)
        if self.low is None and not self.value:
            low = -1.0
        high = self.high if self.high is not None else (self.value * 100.0 if by_factors else 2.0 * size)
        if self.high is None and not self.value:
            high = max(1.0, 2.0 * low)
        low, high = min(low, self.value), max(high, self.value)
        log = self.log if self.log is not None else low > 0.0 and high >= 10.0 * low
        return float(low), float(high), bool(log and low > 0.0)


@dataclass(frozen=True)
class LawChoice:
    """A block that has several laws, of which one is active."""

    block: str
    laws: Sequence[str]
    active: str


def described(panes: Sequence[LivePane], controls: Sequence[Knob | LawChoice]) -> dict[str, Any]:
    """Return panes and controls as JSON holds them; numbers of NumPy become Python's."""
    first = 0
    shown = []
    for pane in panes:
        last = first + len(pane.labels)
        shown.append(
            {
                "name": pane.name,
                "kind": pane.kind,
                "title": pane.title or pane.name,
                "labels": [str(label) for label in pane.labels],
                "unit": pane.unit,
                "columns": [first, last],
                "mechanism": None if pane.mechanism is None else files.to_dict(pane.mechanism),
                "options": {key: _plain(value) for key, value in pane.options.items()},
                "push": pane.push,
                "names": _plain(pane.names),
            }
        )
        first = last
    return {"panes": shown, "knobs": _knobs(controls), "laws": _laws(controls), "width": first}


def _knobs(controls: Sequence[Knob | LawChoice]) -> list[dict[str, Any]]:
    entries = []
    for knob in controls:
        if not isinstance(knob, Knob):
            continue
        if not math.isfinite(knob.value):
            continue  # a limit that is infinite has no place on a slider
        low, high, log = knob.range()
        entries.append({**asdict(knob), "value": float(knob.value), "low": low, "high": high, "log": log})
    return entries


def _laws(controls: Sequence[Knob | LawChoice]) -> list[dict[str, Any]]:
    return [
        {"block": choice.block, "laws": [str(law) for law in choice.laws], "active": str(choice.active)}
        for choice in controls
        if isinstance(choice, LawChoice)
    ]


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it; what it does not know becomes text."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)
