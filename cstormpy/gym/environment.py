"""Environments of Gymnasium that step a diagram: one, or many side by side. Only this module imports Gymnasium."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from cstormpy.arguments import option
from cstormpy.arrays import Array
from cstormpy.errors import DiagramError, InvalidType, InvalidValue, ShapeError
from cstormpy.gym.tasks import Task
from cstormpy.report.data import plants_of
from cstormpy.report.poses import PoseDrawing
from cstormpy.simulation import Simulation


class Environment(gymnasium.Env[Any, Any]):
    """One diagram as an environment; `reset` takes ``options={"x": state}``, or some of it by names of states.

    Parameters
    ----------
    task : Task
    render_mode : {"rgb_array", "human"}, optional
        Whether `render` returns a picture of the diagram's mechanisms, or each step is drawn in a window, at its pace.

    Attributes
    ----------
    stepper : DiagramStepper or EventStepper
        What it steps; its `t` and `x` tell where it stands.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, task: Task, render_mode: str | None = None) -> None:
        self.task = task
        if render_mode is not None:
            option(render_mode, "make: render_mode", self.metadata["render_modes"])
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": max(1, round(1.0 / task.dt))}
        sim = _simulation()
        bd = task.build(sim)
        self.stepper = sim.stepper(
            bd, task.inputs, task.outputs, solver=task.solver, substeps=task.substeps, events=task.events
        )
        self._drawing = _that_draw(bd, self.stepper.sampled)
        self._view = None if render_mode is None else _View(bd, self.stepper.states, task.dt, render_mode == "human")
        self._actions = _Actions(task, len(self.stepper.inputs))
        self.action_space = self._actions.space
        self.observation_space = _observations(task, len(self.stepper.outputs))
        self._y = self.stepper.reset()
        self._first = self.stepper.x.copy()
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return the observation."""
        super().reset(seed=seed)
        given = self.task.given(options, 1, self._first.size)
        x = self.task.starts(self.np_random, 1, self._first) if given is None else given
        samples = self.task.samples(self.np_random, 1, self._drawing)
        self._y, self._steps = self.stepper.reset(x if isinstance(x, Mapping) else x[0], 0.0, samples), 0
        self._y.flags.writeable = False
        self._show()
        return self._y.astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; return the observation, the reward, and whether the episode ends, or is cut off."""
        u, before, task = self._actions.inputs(action), self._y, self.task
        after = self._y = self.stepper.step(u, task.dt)
        after.flags.writeable = False  # it is what is before the next step
        self._steps += 1
        self._show()
        ended = bool(task.ends(after)) or bool(self.stepper.stopped)
        cut = task.max_steps is not None and self._steps >= task.max_steps
        return after.astype(np.float32), float(task.paid(before, u, after)), ended, cut, {}

    def render(self) -> Any:
        """Return a picture of where the mechanisms are, (height, width, 3); None where they are shown in a window."""
        if self._view is None:
            raise InvalidType("render: make the environment with render_mode='rgb_array', or 'human' for a window")
        return self._view.picture(self.stepper.x) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the window."""
        if self._view is not None:
            self._view.drawing.close()

    def _show(self) -> None:
        if self.render_mode == "human" and self._view is not None:
            self._view.show(self.stepper.x)


class _View:
    """The mechanisms of a diagram, drawn where the stepper stands."""

    def __init__(self, bd: Any, states: Sequence[str], dt: float, in_window: bool) -> None:
        #: The blocks, and where their positions are among the states that are stepped, which may be a part of all.
        self._plants = [
            (block, [states.index(name) for name in bd.statenames[columns]])
            for block, columns in plants_of(bd)
            if set(bd.statenames[columns]) <= set(states)
        ]
        self._dt, self._next = dt, 0.0
        if not self._plants:
            raise DiagramError(
                "make: render_mode: no HYBRIDDYNAMICS is needed for the outputs, whose mechanism could be drawn"
                if plants_of(bd)
                else "make: render_mode: the diagram has no HYBRIDDYNAMICS, whose mechanism could be drawn"
            )
        self.drawing = PoseDrawing([block.mech for block, _ in self._plants], str(bd.name), in_window)

    def _postures(self, x: Array) -> list[Array]:
        return [x[columns] for _, columns in self._plants]

    def picture(self, x: Array) -> NDArray[np.uint8]:
        """Return the picture at a state."""
        return self.drawing.picture(self._postures(x))

    def show(self, x: Array) -> None:
        """Show a state in the window until the time of a step is over."""
        self.drawing.draw(self._postures(x))
        self._next = max(self._next + self._dt, time.perf_counter())
        self.drawing.wait(self._next - time.perf_counter())


class VectorEnvironment(VectorEnv[Any, Any, Any]):
    """Many copies of a diagram as one environment, which are computed side by side.

    A copy whose episode has ended begins anew with the step after, whose action it does not heed, as Gymnasium's own
    vectors do.

    Parameters
    ----------
    task : Task
    num_envs : int

    Attributes
    ----------
    stepper : BatchStepper
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, task: Task, num_envs: int) -> None:
        if task.events:
            raise DiagramError(
                "make: num_envs: a task with events=True is stepped by runs, one by one; make several environments, as "
                "gymnasium.vector.SyncVectorEnv does of functions that make one each"
            )
        self.task, self.num_envs = task, num_envs
        sim = _simulation()
        bd = task.build(sim)
        self.stepper = sim.batch_stepper(
            bd, task.inputs, task.outputs, count=num_envs, solver=task.solver, substeps=task.substeps
        )
        self._actions = _Actions(task, len(self.stepper.inputs))
        self.single_action_space = self._actions.space
        self.single_observation_space = _observations(task, len(self.stepper.outputs))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._drawing = _that_draw(bd, self.stepper.sampled)
        self._first = self.stepper.x[0].copy()
        self._y = self.stepper.look()
        #: Whether the first axis of what the task's functions are given may be taken for the last one.
        self._unproven = num_envs in (len(self.stepper.outputs), len(self.stepper.inputs))
        self._steps, self._over = np.zeros(num_envs, dtype=np.int64), np.zeros(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes; return the observations."""
        if isinstance(seed, list):
            raise InvalidValue("reset: seed: expected one number, from which all starts follow, got a list")
        super().reset(seed=seed)
        given = self.task.given(options, self.num_envs, self._first.size)
        x = self.task.starts(self.np_random, self.num_envs, self._first) if given is None else given
        self._y = self.stepper.reset(x, 0.0, None, self.task.samples(self.np_random, self.num_envs, self._drawing))
        self._y.flags.writeable = False
        self._steps[:], self._over[:] = 0, False
        return self._y.astype(np.float32), {}

    def step(self, actions: Any) -> tuple[Any, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take a step with all; return observations, rewards, and which episodes end, or are cut off."""
        task, before, over = self.task, self._y, self._over
        u = self._actions.inputs_of_many(actions, self.num_envs)
        anew, count = None, int(over.sum())
        if count:  # a step from where an episode has ended may fail, for all
            x = task.starts(self.np_random, count, self._first)
            anew = x, 0.0, over, task.samples(self.np_random, count, self._drawing)
            self.stepper.reset(*anew)
        after = self.stepper.step(u, task.dt)
        self._steps += 1
        if anew is not None:
            after = self.stepper.reset(*anew)
            self._steps[over] = 0
        after.flags.writeable = False  # it is what is before the next step
        self._y = after
        if self._unproven and (after != after[0]).any():
            task.prove(before, u, after)
            self._unproven = False
        rewards, ended = task.paid(before, u, after), task.ends(after)
        cut = np.zeros(self.num_envs, dtype=bool) if task.max_steps is None else self._steps >= task.max_steps
        rewards[over] = 0.0
        ended[over] = cut[over] = False
        self._over = ended | cut
        return after.astype(np.float32), rewards, ended, cut, {}


class _Actions:
    """The space of actions, and the inputs that they mean."""

    def __init__(self, task: Task, size: int) -> None:
        self._size = size
        self._values: Array | None = None
        self.space: Any
        if task.choices is not None:
            self._values = task.action_values(size)
            self.space = spaces.Discrete(len(self._values))
        else:
            self._low, self._high = task.limits(size)
            self.space = spaces.Box(self._low.astype(np.float32), self._high.astype(np.float32), dtype=np.float32)

    def inputs(self, action: Any) -> Array:
        """Return the inputs of one action."""
        if self._values is not None:
            if not self.space.contains(action):
                raise InvalidValue(f"step: action: expected 0 to {len(self._values) - 1}, got {action!r:.40}")
            return self._values[int(action)]
        return self._limited(action, (self._size,))

    def inputs_of_many(self, actions: Any, count: int) -> Array:
        """Return the inputs of as many actions."""
        if self._values is None:
            return self._limited(actions, (count, self._size))
        chosen = np.asarray(actions)
        if chosen.shape != (count,) or chosen.dtype.kind not in "iu":
            raise ShapeError(f"step: actions: expected {count} whole numbers, got {chosen.dtype} of {chosen.shape}")
        if chosen.min() < 0 or chosen.max() >= len(self._values):
            raise InvalidValue(f"step: actions: expected 0 to {len(self._values) - 1}")
        return self._values[chosen]

    def _limited(self, action: Any, shape: tuple[int, ...]) -> Array:
        given = np.asarray(action, dtype=float)
        if given.shape != shape:
            raise ShapeError(f"step: action: expected shape {shape}, got {given.shape}")
        limited: Array = np.clip(given, self._low, self._high)
        if np.isnan(limited).any():
            raise InvalidValue("step: action: expected numbers, got NaN")
        return limited


def _that_draw(bd: Any, names: Sequence[str]) -> list[Any]:
    """Return the sampled blocks that draw the states with which an episode begins, as noise does."""
    return [bd.blocknames[name] for name in names if hasattr(type(bd.blocknames[name]), "drawn")]


def _simulation() -> Simulation:
    return Simulation(engine="compiled", live=False, progress=False, graphics=False)


def _observations(task: Task, size: int) -> spaces.Box:
    low, high = task.observation_limits(size)
    return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
