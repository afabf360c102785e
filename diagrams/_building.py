"""What the ready diagrams share: options checked by name, and scopes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from cstormpy.errors import InvalidType, ShapeError, unknown_name

__all__ = ["motion_of", "ready", "scope", "switch"]


def ready(build: Callable[..., Any]) -> Callable[..., Any]:
    """Let a `build` refuse options that it does not have, with the nearest spelling."""
    diagram = build.__module__.rpartition(".")[2]
    known = list(inspect.signature(build).parameters)[1:]

    @functools.wraps(build)
    def checked(sim: Any, **options: Any) -> Any:
        if not callable(getattr(sim, "blockdiagram", None)):
            raise InvalidType(f"diagram {diagram!r}: expected a cstormpy.Simulation, got a {type(sim).__name__}")
        for name in options:
            if name not in known:
                raise unknown_name(f"diagram {diagram!r}: option", name, known)
        return build(sim, **options)

    return checked


def scope(bd: Any, name: str, signal: Any, labels: Sequence[str], *, pick: Sequence[int] | None = None) -> Any:
    """Put a scope into a diagram: the one place that says which kind of scope the ready diagrams have.

    Parameters
    ----------
    signal : Plug or list of Plug
        A signal of several numbers, or several signals of one number each.
    labels : sequence of str
        For each number, with its unit.
    pick : sequence of int, optional
        Which numbers of the signal are shown; all unless given.
    """
    if isinstance(signal, list):
        block = bd.SCOPE(labels=list(labels), name=name)
        for port, one in enumerate(signal):
            bd.connect(one, block[port])
        return block
    block = bd.SCOPE(vector=len(labels) if pick is None else list(pick), labels=list(labels), name=name)
    bd.connect(signal, block)
    return block


def motion_of(bd: Any, motion: Any, duration: float, joints: Sequence[str]) -> Any:
    """Put the source of a motion of some joints into a diagram, given as a curve or by control points."""
    source = bd.SPLINETRAJECTORY(motion, duration=duration, name="motion")
    if source.curve.n != len(joints):
        raise ShapeError(f"motion: expected {len(joints)} joints ({', '.join(joints)}), got {source.curve.n}")
    return source


def switch(value: Any, name: str) -> bool:
    """Return an option that is True or False."""
    if not isinstance(value, bool):
        raise InvalidType(f"{name}: expected True or False, got a {type(value).__name__}")
    return value
