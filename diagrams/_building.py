"""Common parts of the ready diagrams: options checked by name, scopes, and the view of the mechanism."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from cstormpy.arguments import option
from cstormpy.errors import InvalidType, ShapeError, shown
from cstormpy.mechanism import Mechanism

__all__ = ["motion_of", "ready", "scope", "view"]


def ready(build: Callable[..., Any]) -> Callable[..., Any]:
    """Let a `build` refuse options that it does not have, with the nearest spelling."""
    diagram = build.__module__.rpartition(".")[2]
    known = list(inspect.signature(build).parameters)[1:]

    @functools.wraps(build)
    def checked(sim: Any, **options: Any) -> Any:
        if not callable(getattr(sim, "blockdiagram", None)):
            raise InvalidType(f"diagram {diagram!r}: expected a cstormpy.Simulation, got {shown(sim)}")
        for name in options:
            option(name, f"diagram {diagram!r}: option", known)
        return build(sim, **options)

    return checked


def scope(bd: Any, name: str, signal: Any, labels: Sequence[str], title: str, unit: str = "", **options: Any) -> Any:
    """Put a scope into a diagram.

    Parameters
    ----------
    signal : Plug or list of Plug
        A signal of several numbers, or several signals of one number each.
    labels : sequence of str
        For each number.
    title, unit : str
        What stands above the plot and beside it.
    **options
        Others of LIVESCOPE.
    """
    signals = signal if isinstance(signal, list) else [signal]
    block = bd.LIVESCOPE(len(signals), labels=list(labels), units=unit, title=title, name=name, **options)
    for port, one in enumerate(signals):
        bd.connect(one, block[port])
    return block


def view(bd: Any, mech: Mechanism, plant: Any, title: str) -> Any:
    """Put a view of the mechanism into a diagram, which moves as the plant does."""
    block = bd.MECHANISMVIEW(mech, title=title, name="view")
    bd.connect(plant[0], block)
    return block


def motion_of(bd: Any, motion: Any, duration: float, joints: Sequence[str]) -> Any:
    """Put the source of a motion of some joints into a diagram, given as a curve or by control points."""
    source = bd.SPLINETRAJECTORY(motion, duration=duration, name="motion")
    if source.curve.n != len(joints):
        raise ShapeError(f"motion: expected {len(joints)} joints ({', '.join(joints)}), got {source.curve.n}")
    return source
