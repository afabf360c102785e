"""Coordinates and units of signals and states: by the mechanism that a block is around, or as a scope was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cstormpy.simulation.recording import Signal, signal_name

__all__ = ["coordinates_of", "unit_of_signal", "units_of"]

_RATES = {"q": "", "qd": "/s", "qdd": "/s²"}
"""The suffix of the unit of a coordinate."""
_EFFORTS = ("tau", "torque", "g")
_ENERGIES = ("kinetic", "potential", "total")


def units_of(bd: Any, signals: list[Signal], panes: list[Any], widths: list[int]) -> dict[str, str]:
    """Return the units of the columns of signals, and of the states, by name; of those that are known.

    Parameters
    ----------
    bd : BlockDiagram
    signals : list of Signal
    panes : list of Pane
        Scopes whose unit is that of all that they show.
    widths : list of int
        Numbers of each signal; one that is a number alone has width 0.
    """
    told = {s.key: pane.told_unit for pane in panes if pane.told_unit and pane.chosen is None for s in pane.signals}
    units: dict[str, str] = {}
    for signal, width in zip(signals, widths, strict=True):
        known = unit_of_signal(signal, width) or [told.get(signal.key, "")] * max(width, 1)
        if width == 0:
            units[signal.name] = known[0]
        elif len(known) == width:
            units.update((f"{signal.name}[{k}]", unit) for k, unit in enumerate(known))
    for block in bd.blocklist:
        mech = _mechanism(block)
        for kind in ("q", "qd") if mech is not None and block.nstates == 2 * mech.n else ():
            stem = signal_name(block, 0).rpartition(".")[0]
            known = _of_coordinates(mech, kind, mech.names)
            units.update((f"{stem}.{name}.{kind}", unit) for name, unit in zip(mech.names, known, strict=True))
    return {name: unit for name, unit in units.items() if unit}


def coordinates_of(signal: Signal, width: int) -> tuple[str, ...]:
    """Return the names of the coordinates whose values, rates or efforts a signal holds; none where that is unknown."""
    mech, port = _mechanism(signal.block), _port_name(signal)
    if mech is None or not (port in _RATES or port in _EFFORTS):
        return ()
    free = tuple(name for name in mech.actuated if name not in mech.active)  # whose torque a law gives
    for names in (mech.names, free, mech.active):
        if len(names) == width:
            return tuple(names)
    return ()


def unit_of_signal(signal: Signal, width: int) -> list[str]:
    """Return the units of a signal's numbers; none where nothing is known."""
    mech, port = _mechanism(signal.block), _port_name(signal)
    if mech is not None and port in _ENERGIES:
        return ["J"]
    names = coordinates_of(signal, width)
    return _of_coordinates(mech, port, names) if names else []


def _port_name(signal: Signal) -> str:
    names = signal.block._outport_names or []
    return names[signal.port] if signal.port < len(names) else ""


def _of_coordinates(mech: Any, quantity: str, names: Sequence[str]) -> list[str]:
    """Return the units of coordinates, or of their rates or efforts."""
    freedoms = [mech.freedoms[mech.joint_index(name)] for name in names]
    if quantity in _EFFORTS:
        return ["N m" if freedom.turns else "N" for freedom in freedoms]
    return [f"{freedom.unit}{_RATES[quantity]}" for freedom in freedoms]


def _mechanism(block: Any) -> Any:
    """Return the mechanism that a block is around, None of most blocks; not a port, which takes long to look for."""
    return block.__dict__.get("_mech") or block.__dict__.get("mechanism")
