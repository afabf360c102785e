"""Units of signals and states: by the joints of the mechanism that a block is around, or as a scope was told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cstormpy.simulation.recording import Signal, signal_name

__all__ = ["mechanisms_of", "units_of"]

_RATES = {"q": "", "qd": "/s", "qdd": "/s²"}
"""The suffix of the unit of a coordinate."""
_EFFORTS = ("tau", "torque", "g")
_ENERGIES = ("kinetic", "potential", "total")


def mechanisms_of(blocks: Iterable[Any]) -> dict[Any, Any]:
    """Return the mechanisms that blocks are around; None of most of them."""
    # not as attributes: where a block has none, bdsim looks for a port of that name, which takes long
    return {b: b.__dict__.get("_mech") or b.__dict__.get("mechanism") for b in blocks}


def units_of(
    mechanisms: Mapping[Any, Any], signals: list[Signal], panes: list[Any], widths: list[int]
) -> dict[str, str]:
    """Return the units of the columns of signals, and of the states, by name; of those that are known.

    Parameters
    ----------
    mechanisms : mapping
        The blocks of the diagram in their order, and what mechanisms these are around, as of `mechanisms_of`.
    signals : list of Signal
    panes : list of Pane
        Scopes whose unit is that of all that they show.
    widths : list of int
        Numbers of each signal; one that is a number alone has width 0.
    """
    told = {s.key: pane.unit for pane in panes if pane.unit and pane.chosen is None for s in pane.signals}
    units: dict[str, str] = {}
    for signal, width in zip(signals, widths, strict=True):
        names = signal.block._outport_names or []
        port = names[signal.port] if signal.port < len(names) else ""
        known = _of_port(mechanisms[signal.block], port, width) or [told.get(signal.key, "")] * max(width, 1)
        if width == 0:
            units[signal.name] = known[0]
        elif len(known) == width:
            units.update((f"{signal.name}[{k}]", unit) for k, unit in enumerate(known))
    for block, mech in mechanisms.items():
        for kind in ("q", "qd") if mech is not None and block.nstates == 2 * mech.n else ():
            stem = signal_name(block, 0).rpartition(".")[0]
            known = _of_coordinates(mech, kind, mech.names)
            units.update((f"{stem}.{name}.{kind}", unit) for name, unit in zip(mech.names, known, strict=True))
    return {name: unit for name, unit in units.items() if unit}


def _of_port(mech: Any, port: str, width: int) -> list[str]:
    """Return the units of what a port of a block around a mechanism gives; none where nothing is known."""
    if mech is None:
        return []
    if port in _ENERGIES:
        return ["J"]
    free = tuple(name for name in mech.actuated if name not in mech.active)  # whose torque a law gives
    for names in (mech.names, free, mech.active) if port in _RATES or port in _EFFORTS else ():
        if len(names) == width:
            return _of_coordinates(mech, port, names)
    return []


def _of_coordinates(mech: Any, quantity: str, names: Sequence[str]) -> list[str]:
    """Return the units of coordinates, or of their rates or efforts."""
    freedoms = [mech.freedoms[mech.joint_index(name)] for name in names]
    if quantity in _EFFORTS:
        return ["N m" if freedom.turns else "N" for freedom in freedoms]
    return [f"{freedom.unit}{_RATES[quantity]}" for freedom in freedoms]
