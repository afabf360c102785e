"""Diagrams started for analysis: compiled, their blocks begun at a point, and nothing shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.named_states import (
    closed_state,
    continuous_parts,
    held_names,
    numbers,
    sampled_names,
    state_vector,
)
from cstormpy.simulation.run_start import failures_named, start_blocks, start_clocks
from cstormpy.simulation.runner import RunState
from cstormpy.simulation.saved_state import SavedState, initial_state, opened, ticks_are_due
from cstormpy.simulation.wiring import compile_diagram, refuse_no_diagram


def first_state(bd: Any, start: Any, what: str) -> Array:
    """Return the state at which a run begins, from what `run` and `state_vector` take, files being opened."""
    x = np.array(bd.getstate0(), dtype=float)
    if start is None or isinstance(start, Mapping):
        return state_vector(bd, start, x, f"{what}: start")
    if isinstance(start, SavedState):
        return start.vector(continuous_parts(bd), f"{what}: start")
    return closed_state(bd, numbers(start, x.size, f"{what}: start"), f"{what}: start")


def saved_with(bd: Any, start: SavedState, x: Array, samples: Mapping[str, float] | None = None) -> SavedState:
    """Return a saved state with other continuous states, and other numbers among its samples by name."""
    found = replace(start, continuous={str(b.name): x[at].tolist() for b, at in continuous_parts(bd)})
    if samples:
        names, now = iter(samples_of(bd, start)), {**samples_of(bd, start), **samples}
        found.sampled = {name: [now[next(names)] for _ in values] for name, values in _sampled(bd, start)}
        found.held = {
            name: [_reshaped([now[next(names)] for _ in range(np.size(value))], value) for value in values]
            for name, values in _held(bd, start)
        }
    return found


def samples_of(bd: Any, start: SavedState) -> dict[str, float]:
    """Return the states of sampled blocks in a saved state, and what others hold at their outputs, by name."""
    names = {str(b.name): b for b in bd.blocklist}
    found = dict[str, float]()
    for name, values in _sampled(bd, start):
        found |= zip(sampled_names(names[name]), values, strict=True)
    for name, values in _held(bd, start):
        flat = [float(v) for value in values for v in np.ravel(value)]
        found |= zip(held_names(names[name], len(flat)), flat, strict=True)
    return found


def _sampled(bd: Any, start: SavedState) -> list[tuple[str, list[float]]]:
    return [(name, values) for name, values in start.sampled.items() if name in bd.blocknames and values]


def _held(bd: Any, start: SavedState) -> list[tuple[str, list[Any]]]:
    return [(name, values) for name, values in start.held.items() if name in bd.blocknames]


def _reshaped(flat: list[float], as_this: Any) -> Any:
    return np.reshape(flat, np.shape(as_this)).tolist()


@contextlib.contextmanager
def started(
    sim: Any, bd: Any, x: Any, t: float, what: str, T: float = 1.0, first_tick: int | str = 0
) -> Iterator[tuple[Diagram, RunState, float, Array]]:
    """Start the blocks of a diagram at a point; within, the diagram's signals stand there.

    Parameters
    ----------
    sim : Simulation
    bd : BlockDiagram
    x : None, array, dict, SavedState, result or path
        States; the initial ones unless given.
    t : float
    what : str
        Who asks, for messages.
    T : float
        For how long a run would go on, for sources that declare when they jump.
    first_tick : {0, "bdsim"}
        When clocks tick first, as in `Simulation.run`.
    """
    refuse_no_diagram(bd, what)
    compile_diagram(bd)
    diagram = Diagram(bd)
    simstate = RunState(diagram)
    simstate.options = options = sim._make_run_options(threaded=True)
    x = opened(x, f"{what}: x")
    saved = x if not isinstance(x, (Mapping, np.ndarray, list, tuple)) else None
    t = float(getattr(saved, "t", t))
    simstate.t, simstate.T, simstate.tf, simstate.max_step = t, t + T, t + T, T / 100.0
    with sim.in_context(bd, simstate, options, True):
        with failures_named():
            sim.update_parameters(bd)
            start_clocks(bd, simstate, first_tick, t, ticks_are_due(saved, t))
            start_blocks(bd, simstate)
        if saved is not None:
            _, state, _ = initial_state(saved, diagram, simstate, f"{what}: x")
        else:
            state = state_vector(bd, x, np.array(bd.getstate0(), dtype=float), f"{what}: x")
        diagram.bind_samples(simstate)
        diagram.decide(t, state)
        yield diagram, simstate, t, state
