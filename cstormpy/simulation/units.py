"""Coordinates and units of signals and states, of the mechanism of their block or as a scope was told; their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cstormpy.simulation.recording import Signal, signal_name

_RATES = {"q": "", "qd": "/s", "qdd": "/s²"}
"""The suffix of the unit of a coordinate."""
_EFFORTS = ("tau", "torque", "g")
_ENERGIES = ("kinetic", "potential", "total")
_MOTION = "estimate"
"""The port of all positions and rates, as an estimator gives them."""


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
    told = {s.key: pane.told_unit for pane in panes if pane.told_unit and pane.chosen is None for s in pane.signals}
    units: dict[str, str] = {}
    for signal, width in zip(signals, widths, strict=True):
        known = units_of_signal(signal, mechanisms[signal.block], width) or [told.get(signal.key, "")] * max(width, 1)
        if width == 0:
            units[signal.name] = known[0]
        elif len(known) == width:
            units.update((f"{signal.name}[{k}]", unit) for k, unit in enumerate(known))
    for block, mech in mechanisms.items():
        for kind in ("q", "qd") if mech is not None and block.nstates == 2 * mech.n else ():
            stem = signal_name(block, 0).rpartition(".")[0]
            known = units_of_coordinates(mech, kind, mech.names)
            units.update((f"{stem}.{name}.{kind}", unit) for name, unit in zip(mech.names, known, strict=True))
    return {name: unit for name, unit in units.items() if unit}


def units_of_signal(signal: Signal, mech: Any, width: int) -> list[str]:
    """Return the units of what a block around a mechanism gives; none where nothing is known."""
    port = signal.port_name
    if mech is not None and port in _ENERGIES:
        return ["J"]
    if _is_motion(port, mech, width):
        return [unit for quantity in ("q", "qd") for unit in units_of_coordinates(mech, quantity, mech.names)]
    names = _coordinates(port, mech, width)
    return units_of_coordinates(mech, port, names) if names else []


def coordinate_labels(signal: Signal, mech: Any, width: int) -> list[str]:
    """Return what the numbers of a signal are called, as states are, "plant.elbow.q"; none where nothing is known."""
    stem, port = signal.name.rpartition(".")[0], signal.port_name
    suffix = "" if _is_motion(port, mech, width) else f".{port}"
    return [f"{stem}.{name}{suffix}" for name in _coordinates(port, mech, width)]


def coordinates_of(mechanisms: Mapping[Any, Any], signals: Sequence[Signal], widths: Sequence[int]) -> dict[str, str]:
    """Return the coordinates of mechanisms whose values, rates or efforts columns of signals are, by their names."""
    found: dict[str, str] = {}
    for signal, width in zip(signals, widths, strict=True):
        names = _coordinates(signal.port_name, mechanisms[signal.block], width)
        found.update((f"{signal.name}[{k}]", name) for k, name in enumerate(names))
    return found


def named_values(signals: Iterable[Signal]) -> dict[str, tuple[str, ...]]:
    """Return what the values 0, 1, … of signals mean, by the names of those that stand for something."""
    found = {}
    for signal in signals:
        names = getattr(type(signal.block), "value_names", None) and signal.block.value_names[signal.port]
        if names:
            found[signal.name] = tuple(names)
    return found


def _coordinates(port: str, mech: Any, width: int) -> Sequence[str]:
    """Return the names of the coordinates whose values, rates or efforts so many numbers of a port are."""
    if _is_motion(port, mech, width):
        return [f"{name}.{quantity}" for quantity in ("q", "qd") for name in mech.names]
    if mech is None or not (port in _RATES or port in _EFFORTS):
        return ()
    free = tuple(name for name in mech.actuated if name not in mech.active)  # whose torque a law gives
    return next((names for names in (mech.names, free, mech.active) if len(names) == width), ())


def _is_motion(port: str, mech: Any, width: int) -> bool:
    return mech is not None and port == _MOTION and width == 2 * mech.n


def units_of_coordinates(mech: Any, quantity: str, names: Sequence[str]) -> list[str]:
    """Return the units of coordinates, or of their rates or efforts."""
    freedoms = [mech.freedoms[mech.joint_index(name)] for name in names]
    if quantity in _EFFORTS:
        return ["N m" if freedom.turns else "N" for freedom in freedoms]
    return [f"{freedom.unit}{_RATES[quantity]}" for freedom in freedoms]
