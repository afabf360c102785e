"""A task for learning: a diagram, its inputs and outputs, what is rewarded, and when an episode ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import entries, function, positive, whole_number
from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidType, InvalidValue, shown, unknown_name


@dataclass(frozen=True, eq=False)
class Task:
    """A task to be learnt in a diagram.

    `reward` and `terminated` are given arrays whose last axis counts outputs or inputs, of one environment or with a
    row for each of many: written as ``after[..., 0]`` they serve for both.

    Parameters
    ----------
    build : function
        Makes the diagram, as ``build(sim)``. Continuous blocks only, as `Simulation.stepper` takes them.
    inputs, outputs : list of str
        Signals that actions replace, as ``["plant.tau"]``, and those that are observed.
    reward : function
        Of the outputs before a step, the inputs held over it, and the outputs after it.
    terminated : function, optional
        Whether an episode ends, of the outputs after a step; never unless given.
    start : function, optional
        States at the start of episodes, ``start(rng, count)`` of shape (count, n); those of the blocks unless given.
    choices : array_like (k, m), optional
        Values of the inputs among which an action, a whole number, chooses.
    low, high : float or array_like (m,), optional
        Limits of the inputs where actions are their values; these, or `choices`, are needed.
    dt : float
        Length of a step [s].
    substeps : int
        Steps of the integration method within one.
    solver : str
        A method of fixed steps.
    max_steps : int, optional
        Episodes are cut off after so many steps.
    observation_low, observation_high : float or array_like
        Limits of the outputs, which are told and not enforced.
    """

    build: Callable[[Any], Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    reward: Callable[[Array, Array, Array], Any]
    terminated: Callable[[Array], Any] | None = None
    start: Callable[[np.random.Generator, int], Array] | None = None
    choices: ArrayLike | None = None
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    dt: float = 0.05
    substeps: int = 1
    solver: str = "RK4"
    max_steps: int | None = None
    observation_low: ArrayLike = -np.inf
    observation_high: ArrayLike = np.inf

    def __post_init__(self) -> None:
        """Refuse what cannot be a task."""
        function(self.build, "Task: build", "a Simulation, which returns a diagram")
        function(self.reward, "Task: reward", "the outputs before, the inputs, and the outputs after a step")
        if self.terminated is not None:
            function(self.terminated, "Task: terminated", "the outputs after a step")
        if self.start is not None:
            function(self.start, "Task: start", "a random generator and a count")
        for name in ("inputs", "outputs"):
            if not entries(getattr(self, name), f"Task: {name}", "signals"):
                raise InvalidValue(f"Task: {name}: name one signal at least, as 'plant.q'")
        positive(self.dt, "Task: dt")
        whole_number(self.substeps, "Task: substeps", 1, 10_000)
        if self.max_steps is not None:
            whole_number(self.max_steps, "Task: max_steps", 1, 10**9)
        if (self.choices is None) == (self.low is None or self.high is None):
            raise InvalidValue("Task: give choices=[[-1.0], [1.0]] for actions that choose, or low= and high=")

    def action_values(self, size: int) -> Array:
        """Return the values that actions choose among, (k, m)."""
        found = np.asarray(self.choices, dtype=float)
        return real_array(found.reshape(-1, 1) if found.ndim == 1 else found, "Task: choices", ("k", size))

    def limits(self, size: int) -> tuple[Array, Array]:
        """Return the least and the greatest inputs."""
        low, high = (_spread(getattr(self, name), size, f"Task: {name}") for name in ("low", "high"))
        if not (low < high).all():
            raise InvalidValue("Task: low: expected less than high")
        return low, high

    def observation_limits(self, size: int) -> tuple[Array, Array]:
        """Return the least and the greatest outputs."""
        names = "observation_low", "observation_high"
        low, high = (_spread(getattr(self, name), size, f"Task: {name}") for name in names)
        return low, high

    def starts(self, rng: np.random.Generator, count: int, otherwise: Array) -> Array:
        """Return states at the start of episodes, a row for each."""
        if self.start is None:
            return np.tile(otherwise, (count, 1))
        return real_array(self.start(rng, count), "Task: start", (count, otherwise.size))

    def given(self, options: Mapping[str, Any] | None, count: int, size: int) -> Array | None:
        """Return the states that `reset` is told to start at, by ``options={"x": ...}``."""
        if options is not None and not isinstance(options, Mapping):
            raise InvalidType(f"reset: options: expected a dict, as {{'x': state}}, got {shown(options)}")
        for name in options or {}:
            if name != "x":
                raise unknown_name("reset: option", name, ["x"])
        x = (options or {}).get("x")
        if x is None:
            return None
        return np.broadcast_to(real_array(x, "reset: options['x']", (size,), (count, size)), (count, size))


def _spread(value: Any, size: int, what: str) -> Array:
    array = real_array(value, what, (), (size,), finite=False)
    return np.broadcast_to(array, (size,)).astype(float)
