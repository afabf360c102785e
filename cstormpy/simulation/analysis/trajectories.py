"""Trajectory of a run with derivatives."""

from __future__ import annotations

from dataclasses import dataclass

from cstormpy.arrays import Array
from cstormpy.simulation.events import Event
from cstormpy.simulation.recording import Signal


@dataclass
class Trajectory:
    """A run with its derivatives to k parameters.

    Attributes
    ----------
    t : ndarray, (N,)
    dt : ndarray, (N, k)
        How the times of the samples follow the parameters: those on both sides of a source's jump go with it.
    x, dx : ndarray, (N, n), (N, k, n)
    signals : list of Signal
        Those that were watched.
    y, dy : list of ndarray, each (N, ...), (N, k, ...)
    events : list of Event
        Zero crossings that were met, whose share in the derivatives is in them.
    differenced : list of (str, str)
        Blocks whose derivatives are differences, and what in them.
    notes : list of str
        What the derivatives leave out.
    """

    t: Array
    dt: Array
    x: Array
    dx: Array
    signals: list[Signal]
    y: list[Array]
    dy: list[Array]
    events: list[Event]
    differenced: list[tuple[str, str]]
    notes: list[str]
