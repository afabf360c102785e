"""A diagram that is stepped from outside: inputs in, outputs out, at each step of a loop of somebody else's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import positive
from cstormpy.arrays import real_array
from cstormpy.errors import BlockError, DiagramError
from cstormpy.simulation.analysis.model import (
    AssemblyWithInputs,
    inputs_of,
    labels,
    named_once,
    places_of,
)
from cstormpy.simulation.analysis.ports import find_ports
from cstormpy.simulation.analysis.starting import started, state_vector
from cstormpy.simulation.compiled.slices import Compiled, Slices
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.recording import find_signals
from cstormpy.simulation.tableaus import EXPLICIT, Tableau
from cstormpy.trajectory.checks import whole_number

__all__ = ["DiagramStepper", "fixed_method", "refuse_more_than_states"]

Array = NDArray[np.float64]


class DiagramStepper:
    """Steps a diagram as its user says; see `Simulation.stepper`.

    Attributes
    ----------
    t : float
        The time.
    x : ndarray, (n,)
        The states.
    inputs, outputs, states : tuple of str
        What the entries of u, y and x are.
    """

    def __init__(self, sim: Any, bd: Any, inputs: Any, outputs: Any, x: Any, solver: str, substeps: int) -> None:
        self._substeps = whole_number(substeps, "stepper: substeps", 1, 10_000)
        method = fixed_method(solver, "stepper")
        with started(sim, bd, x, 0.0, "stepper") as (diagram, simstate, t, state):
            refuse_more_than_states(diagram, simstate, "stepper")
            moved = inputs_of(named_once(find_ports(bd, inputs, "stepper: inputs"), "stepper: inputs"), True, "stepper")
            watched = find_signals(bd, outputs, "stepper: outputs")
            try:
                assembly = AssemblyWithInputs(diagram, moved)
                program = assembly.program()
            except NotTranslated as why:
                raise DiagramError(f"stepper: {why}") from why
            self._bd, self._first = bd, (t, state.copy())
            self.inputs = tuple(name for i in moved for name in labels(i.signal))
            self.outputs = tuple(name for s in watched for name in labels(s))
            self.states = tuple(bd.statenames)
            self._u0 = np.concatenate([*(i.value for i in moved), np.zeros(0)])
            self._places = np.array([k for i in moved for k in assembly.places_of[i.signal.key]], dtype=np.intp)
            self._seen = places_of(program, watched)
        self._program, self._compiled = program, Compiled(program, state.size)
        self._slices = Slices(self._compiled, method, [], False)
        self._rate, self._at = np.zeros(state.size), np.zeros(state.size)
        self._ones, c = np.ones(state.size), self._compiled
        self._evaluate = program.function().bound(self._at, c.z, program.p, program.n, c.w, c.out, self._rate)
        self.reset()

    def reset(self, x: Any = None, t: float | None = None) -> Array:
        """Go back to the start, or to another state and time, with the inputs as they are wired; return the outputs.

        Parameters
        ----------
        x : array (n,) or dict, optional
            States, all or by name.
        t : float, optional
        """
        self.x = state_vector(self._bd, x, self._first[1], "reset").copy()
        self.t = float(self._first[0] if t is None else t)
        self._program.p[self._places] = self._u0
        return self._look()

    def step(self, u: ArrayLike, dt: float) -> Array:
        """Hold the inputs for a time, and return the outputs after it.

        Parameters
        ----------
        u : array_like, (m,)
        dt : float
            How long [s].

        Raises
        ------
        BlockError
            A block that fails, or a state that is not finite; time and state stay as they were.
        """
        p = self._program.p
        if u.__class__ is not np.ndarray or u.shape != self._u0.shape or u.dtype != np.float64:
            u = real_array(u, "step: u", self._u0.shape, *([()] if self._u0.size == 1 else []), finite=False)
        p[self._places] = u
        h = (dt if dt.__class__ is float and dt > 0.0 else positive(dt, "step: dt")) / self._substeps
        t, x = self.t, self.x
        for k in range(self._substeps):
            found, self._at[:] = None, x
            if not self._evaluate(t + k * h):
                found = self._slices.trial(t + k * h, x, self._rate, h, -np.inf, np.inf)
            if found is None:
                raise BlockError(f"step: a block of the diagram fails at t = {t + k * h:.9g}; sim.run says which")
            x = found
        if not math.isfinite(x @ self._ones):
            wrong = [name for name, value in zip(self.states, x.tolist(), strict=True) if not math.isfinite(value)]
            what = f"state {wrong[0]!r} is not finite" if wrong else "the states are too large"
            raise BlockError(f"step: {what} at t = {t + dt:.9g}; take shorter steps, substeps=")
        self.t, self.x = t + dt, x
        return self._look()

    def _look(self) -> Array:
        self._at[:] = self.x
        if self._evaluate(self.t):
            raise BlockError(f"step: a block of the diagram fails at t = {self.t:.9g}; sim.run says which")
        found: Array = self._compiled.out[self._seen]
        return found


def fixed_method(solver: Any, what: str) -> Tableau:
    """Return the method of fixed steps of a name."""
    method = EXPLICIT.get(solver) if isinstance(solver, str) else None
    if method is None or method.adaptive:
        fixed = ", ".join(repr(name) for name, each in EXPLICIT.items() if not each.adaptive)
        raise DiagramError(f"{what}: solver: expected one of fixed steps, {fixed}, got {solver!r:.40}")
    return method


def refuse_more_than_states(diagram: Any, simstate: Any, who: str) -> None:
    """Refuse what happens between two steps: ticks, located events, declared jumps."""
    for what, names in (
        ("sampled", [b.name for b in diagram.cells]),
        ("locates events (locate=False where it has that)", [b.name for _, b in simstate.crossing_detectors]),
        ("has limits of its states", [bound.block.name for bound in diagram.bounds]),
    ):
        if names:
            raise DiagramError(
                f"{who}: block {names[0]!r} {'is ' * (what == 'sampled')}{what}, which belongs to a run: this takes "
                "a diagram of continuous blocks; have yours outside of it"
            )
    if len(simstate.eventq):
        raise DiagramError(
            f"{who}: a source declares when it jumps, which belongs to a run; give it as an input instead"
        )
