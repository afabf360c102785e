"""A diagram that is stepped from outside: inputs in, outputs out, at each step of a loop of somebody else's."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, real_array
from cstormpy.errors import BlockError, DiagramError, InvalidType, reason_of
from cstormpy.kernels.held_steps import NOT_FINITE, OPENED
from cstormpy.kernels.rungekutta import CLOSED, EARLIEST, LATEST, LENGTH, TIME
from cstormpy.kernels.stepping_code import Steps
from cstormpy.simulation.analysis.clocked_steps import ClockedSteps
from cstormpy.simulation.analysis.stepped_by_others import settled_within, stepped_by_others
from cstormpy.simulation.compiled.slices import Compiled, Slices
from cstormpy.simulation.named_states import numbers
from cstormpy.simulation.saved_state import SavedState
from cstormpy.simulation.steppers import StepFailed
from cstormpy.simulation.tableaus import EXPLICIT, Tableau

_FLOAT64 = np.dtype(np.float64)
REMEDY = "; shorter steps help where one goes too far, substeps=; else sim.run says why"
"""What a message adds that does not know why a block fails."""

_SHOWN = 8
"""Number of names that a message lists at most."""


class DiagramStepper:
    """Steps a diagram as its user says; see `Simulation.stepper`.

    Attributes
    ----------
    t : float
        The time.
    x : ndarray, (n,)
        The continuous states.
    state : SavedState
        Where it stands, with all that is sampled; of blocks that are left out where they began.
    inputs, outputs, states : tuple of str
        What the entries of u, y and x are.
    sampled : tuple of str
        The names of the sampled blocks.
    stopped : str
        Empty, as only an `EventStepper` takes diagrams with a STOP.
    """

    stopped = ""

    def __init__(self, sim: Any, bd: Any, inputs: Any, outputs: Any, x: Any, solver: str, substeps: int) -> None:
        self._substeps = whole_number(substeps, "stepper: substeps", 1, 10_000)
        method = fixed_method(solver, "stepper")
        found = stepped_by_others(sim, bd, inputs, outputs, x, "stepper")
        self._bd, self._diagram, self._program, self._found = bd, found.diagram, found.program, found
        self.inputs, self.outputs, self.states, self.sampled = found.inputs, found.outputs, found.states, found.sampled
        self._u0, self._places, self._seen = found.u0, found.places, found.seen
        self._compiled = Compiled(found.program, len(self.states))
        slices = Slices(self._compiled, method, [], False)
        self._clocked = ClockedSteps(found, self._compiled, slices) if found.stops else None
        self._prepare(slices)
        self.reset()

    def __repr__(self) -> str:
        """Return where it stands, and what u and y are."""
        return f"<stepper of {str(self._bd.name)!r} at t = {self.t:g}: {ports_of(self)}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        refuse_copies("stepper")

    def _prepare(self, slices: Slices) -> None:
        """Make room for the steps, which all go through the same arrays."""
        c, program = self._compiled, self._program
        #: What a step takes and leaves: inputs, state, outputs.
        self._u, self._end, self._y = self._u0.copy(), np.zeros(c.nstates), np.zeros(self._seen.size)
        self._at, self._start = slices.at, slices.x
        self._at[EARLIEST], self._at[LATEST] = -np.inf, np.inf
        self._how = slices.how
        # states are settled after each substep: by Python, where machine code has none of that or does not manage it
        self._settles = bool(self._diagram.settling) and not program.closes
        self._steps = Steps("held_steps"), Steps("held_steps")  # of which each has one set of arguments
        self._go, self._go_once = [
            steps.bound(
                c.address, c.closing, slices.table, slices.how, self._at, self._start, c.z, program.p, program.n, c.w,
                c.out, slices.K, count, self._u, self._places, self._end, self._seen, self._y,
            )
            for steps, count in zip(self._steps, (self._substeps, 1), strict=True)
        ]  # fmt: skip

    def reset(self, x: Any = None, t: float | None = None, sampled: Any = None) -> Array:
        """Go back to the start, or to another state and time; return the outputs there, with the inputs as wired there.

        Numbers of blocks that have been set since are taken up here, and not between steps: to go on with them say
        ``stepper.reset(stepper.state)``.

        Parameters
        ----------
        x : array (n,), dict, SavedState, result or path, optional
            Continuous states, all or by name, where sampled blocks begin anew; or as `Simulation.run` takes its
            ``start``, with time, sampled states and what blocks remember.
        t : float, optional
            The time, instead of that of the start or of the saved state.
        sampled : dict, optional
            States of sampled blocks, by their names, instead of those.
        """
        samples = self._found.samples_of(sampled, 1)
        with self._found.begun(x, t, "stepper", self._checked) as start, self._kept():
            state = self._diagram.settled(start.x)
            if self._clocked is not None:
                self._clocked.begin(start)
            for part, values in samples:
                self._compiled.z[part] = values
            y = self._look_as_wired(start.t, state)
        self.x, self.t, self._late, self._due = state, start.t, 0.0, start.due
        return y

    def _kept(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext() if self._clocked is None else self._clocked.kept()

    @property
    def state(self) -> SavedState:
        """Where it stands, to go back to by `reset`, or to go on from by `Simulation.run`."""
        return self._found.state(self.t, self.x, self._compiled.z, self._due)

    def _checked(self, x: Any) -> Array:
        return numbers(x, len(self.states), "reset: x")

    def step(self, u: ArrayLike, dt: float) -> Array:
        """Hold the inputs for a time, and return the outputs after it, before the ticks that are due there.

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
        given: Any = u
        if given.__class__ is np.ndarray and given.shape == self._u.shape and given.dtype is _FLOAT64:
            self._u[:] = given
        elif given.__class__ is float and self._u.size == 1:
            self._u[0] = given
        elif given.__class__ is list and len(given) == self._u.size and all([x.__class__ is float for x in given]):
            self._u[:] = given
        else:
            self._u[:] = read_inputs(u, self.inputs)
        if dt.__class__ is not float or not 0.0 < dt < math.inf:
            dt = positive(dt, "step: dt")
        # what is rounded off is added later: steps of a tenth of a clock's period end at its ticks for ever
        ahead = dt + self._late
        end = self.t + ahead
        if self._clocked is not None:
            y, x = self._clocked_step(dt, end)
        elif self._settles:
            y, x = self._settled_step(dt, end)
        else:
            self._start[:], self._at[TIME], self._at[LENGTH] = self.x, self.t, dt
            status = self._go()
            if status and status != OPENED:
                raise self._failure(status, end)
            y, x = (self._y.copy(), self._end.copy()) if not status else self._settled_step(dt, end)
        self.t, self.x, self._late = end, x, ahead - (end - self.t)
        return y

    def rates(self, u: ArrayLike) -> Array:
        """Return the rates (n,) of the states where it stands, with some inputs (m,); no step goes on from these."""
        given = read_inputs(u, self.inputs)
        if not np.isfinite(given).all():
            raise input_not_finite(given, self.inputs, what="rates")
        self._look(self.t, self.x, given)
        return self._compiled.xd.copy()

    def _settled_step(self, dt: float, end: float) -> tuple[Array, Array]:
        """Return outputs and state with what Python settles after each substep."""
        h, x = dt / self._substeps, self.x
        compiled, self._how[CLOSED] = self._how[CLOSED], 0
        try:
            for k in range(self._substeps):
                self._start[:], self._at[TIME], self._at[LENGTH] = x, self.t + k * h, h
                if status := self._go_once():
                    raise self._failure(status, end)
                x = settled_within(self._diagram, self._end, end)
        finally:
            self._how[CLOSED] = compiled
        return self._look(end, x, self._u), x

    def _clocked_step(self, dt: float, end: float) -> tuple[Array, Array]:
        """Return outputs and state with what is due on the way done as a run does it."""
        clocked = self._clocked
        assert clocked is not None
        self._program.p[self._places] = self._u
        with clocked.kept() as put_back:
            try:
                x = clocked.go(self.t, self.x, end, dt / self._substeps, put_back)
            except StepFailed:
                self._end[:] = clocked.tried
                finite = np.isfinite(self._end).all()
                raise self._failure(clocked.failing() if finite else NOT_FINITE, end) from None
        self._due = True
        return self._compiled.out[self._seen], x

    def _failure(self, status: int, end: float) -> BlockError:
        if not np.isfinite(self._u).all():
            return input_not_finite(self._u, self.inputs)
        if status == NOT_FINITE:
            wrong = [name for name, value in zip(self.states, self._end, strict=True) if not math.isfinite(value)]
            return BlockError(f"step: state {wrong[0]!r} is not finite at t = {end:.9g}; take shorter steps, substeps=")
        return self._fails_at(float(self._at[TIME]), status)

    def _look(self, t: float, x: Array, u: Array) -> Array:
        """Return the outputs at a time, with a state and inputs."""
        self._program.p[self._places] = u
        if failed := self._compiled.rate(t, x):
            raise self._fails_at(t, failed)
        return self._compiled.out[self._seen]

    def _look_as_wired(self, t: float, x: Array) -> Array:
        """Return the outputs with the inputs as they are wired, which may follow from one another."""
        out, p, u = self._compiled.out, self._program.p, self._u0
        for _ in range(u.size + 1):
            p[self._places] = u
            failed = self._compiled.rate(t, x)
            wired = out[self._found.wired]
            if wired.tolist() == u.tolist():
                break
            u = wired
        if failed:
            self._diagram.derivative(t, x)  # which says what is wrong
            raise self._fails_at(t, failed)
        self._u0 = u
        return out[self._seen]

    def _fails_at(self, t: float, number: int) -> BlockError:
        """Return that a block fails, by its number in the program, 0 where that is not known."""
        self._program.raise_interrupt()
        which = f"block {self._program.blocks[number - 1]!r}" if number else "a block of the diagram"
        why = self._program.error
        return BlockError(f"stepper: {which} fails at t = {t:.9g}" + (f": {reason_of(why)}" if why else REMEDY))


def read_inputs(u: Any, inputs: Sequence[str]) -> Array:
    """Return the numbers that a user gives for the inputs of a step, (m,); whether they are finite is asked later."""
    shapes = (len(inputs),), *([()] if len(inputs) == 1 else [])
    return np.atleast_1d(real_array(u, "step: u", *shapes, hint=those_of(inputs), finite=False))


def those_of(inputs: Sequence[str]) -> str:
    """Return what a message adds that refuses u for its shape."""
    return (
        f"the inputs are {', '.join(inputs[:_SHOWN])}{', …' * (len(inputs) > _SHOWN)}" if inputs else "there are none"
    )


def ports_of(stepper: Any) -> str:
    """Return what u and y of a stepper are."""
    return f"u = {', '.join(stepper.inputs) or 'nothing'}; y = {', '.join(stepper.outputs) or 'nothing'}"


def refuse_copies(what: str) -> NoReturn:
    """Refuse to copy or pickle what holds machine code and the arrays that it works in."""
    raise InvalidType(f"a {what} cannot be copied or sent to another process: make another by sim.{what}(...) there")


def input_not_finite(u: Array, inputs: Sequence[str], where: str = "", what: str = "step") -> BlockError:
    """Return the error that names the first input (m,) that is not finite."""
    k = int(np.flatnonzero(~np.isfinite(u))[0])
    return BlockError(f"{what}: u: input {inputs[k]!r}{where} is {u[k]}")


def fixed_method(solver: Any, what: str) -> Tableau:
    """Return the method of fixed steps of a name."""
    method = EXPLICIT.get(solver) if isinstance(solver, str) else None
    if method is None or method.adaptive:
        fixed = ", ".join(repr(name) for name, each in EXPLICIT.items() if not each.adaptive)
        raise DiagramError(f"{what}: solver: expected one of fixed steps, {fixed}, got {solver!r:.40}")
    return method
