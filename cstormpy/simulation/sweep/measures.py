"""Measures of a run that a sweep keeps: what a function of the user says, or the final values of signals and states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from cstormpy.arrays import RAGGED, Array
from cstormpy.errors import BlockError, InvalidType, ShapeError, UnknownName, reason_of, shown
from cstormpy.simulation.compiled.fingerprints import fingerprint
from cstormpy.simulation.recording import find_signals
from cstormpy.simulation.units import coordinate_labels, mechanisms_of, units_of
from cstormpy.simulation.wiring import declared_width

#: What is kept of a run, by name.
Measured = dict[str, Array]

#: The name of what a measure returns that is no dict.
VALUE = "value"


class Final:
    """A measure: the final values of signals and states, by their names."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)

    def resolved(self, bd: Any) -> tuple[Final, list[str]]:
        """Return the same with a name for each port of a diagram, and which of them are signals to be watched.

        Raises
        ------
        UnknownName
            With the nearest spelling.
        """
        names, watch = [], []
        for name in self.names:
            if name in bd.statenames:
                names.append(name)
                continue
            try:
                ports = [signal.name for signal in find_signals(bd, [name])]
            except UnknownName as error:
                raise UnknownName(f"measure: {str(error).removeprefix('watch: ')}") from None
            names += ports
            watch += ports
        return Final(dict.fromkeys(names)), list(dict.fromkeys(watch))

    def labels(self, bd: Any) -> dict[str, list[str]]:
        """Return what figures call the numbers of each, "plant.elbow.q [rad]"; of those that a mechanism names."""
        signals = find_signals(bd, [name for name in self.names if name not in bd.statenames])
        widths = [(declared_width(signal.block, "outwidths", signal.port) or (0,))[0] for signal in signals]
        mechanisms = mechanisms_of(bd.blocklist)
        units = units_of(mechanisms, signals, [], widths)
        found = {name: [f"{name} [{units[name]}]"] for name in self.names if name in units}
        for signal, width in zip(signals, widths, strict=True):
            names = coordinate_labels(signal, mechanisms[signal.block], width)
            if names:
                found[signal.name] = [f"{name} [{units[f'{signal.name}[{k}]']}]" for k, name in enumerate(names)]
        return found

    def __call__(self, out: Any) -> dict[str, Any]:
        """Return the final value of each."""
        return {name: out.signal(name)[-1] for name in self.names}


def check_measure(measure: Any) -> Callable[[Any], Any]:
    """Return a function of a result, from what a user gave."""
    if callable(measure):
        return measure
    names = [measure] if isinstance(measure, str) else measure
    if isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names):
        return Final(names)
    raise InvalidType(
        "measure: expected a function of a run's result, as lambda out: out.x[-1, 0], or names of signals and states, "
        f"as ['plant.q'], got {shown(measure)}"
    )


def described(measure: Callable[[Any], Any]) -> str:
    """Return what tells a measure from another."""
    if isinstance(measure, Final):
        return f"final values of {', '.join(measure.names)}"
    kind = measure if hasattr(measure, "__qualname__") else type(measure)
    return f"{kind.__module__}.{kind.__qualname__} {digest(measure)}".strip()


def digest(function: Callable[..., Any]) -> str:
    """Return what tells a function's text and numbers from another's, as far as another process finds the same."""
    text, lasting = fingerprint([function])
    return text[:16] if lasting else ""


def measured(measure: Callable[[Any], Any], out: Any) -> Measured:
    """Return what a measure says of a run, as arrays by name.

    Raises
    ------
    CstormError
        Where the measure fails, or returns what is neither numbers nor a dict of such.
    """
    try:
        found = measure(out)
    except Exception as error:
        raise BlockError(f"measure: {reason_of(error)}") from error
    if not isinstance(found, Mapping):
        found = {VALUE: found}
    kept = {}
    for name, value in found.items():
        try:
            array = np.asarray(value)
        except ValueError:
            raise ShapeError(f"measure: {name!r}: {RAGGED}") from None
        if not isinstance(name, str) or array.dtype.kind not in "biuf":
            what = "nothing" if value is None else f"a {type(value).__name__}"
            raise InvalidType(f"measure: expected numbers, or a dict from names to numbers, got {what} as {name!r}")
        kept[name] = array.astype(float)
    if not kept:
        raise InvalidType("measure: returned an empty dict")
    return kept
