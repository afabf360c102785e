"""Tasks of an environment, and ready ones: the acrobot of Gymnasium, and a pendulum swung up by its motor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import entries, flag, function, option, positive, takes, whole_number
from cstormpy.arrays import Array, own_arrays, real_array
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown, unknown_name
from cstormpy.mechanism import library

_CALLED: Mapping[str, tuple[str, ...]] = {
    "reward": ("before", "u", "after"),
    "terminated": ("after",),
    "start": ("rng", "count"),
    "sampled": ("rng", "count"),
}
"""How the functions of a task are called."""


@dataclass(frozen=True, eq=False)
class Task:
    """A task to be learnt in a diagram.

    `reward` and `terminated` are given arrays whose last axis counts outputs or inputs, of one environment or with a
    row for each of many: written as ``after[..., 0]`` they serve for both. They cannot write into those of outputs.

    Parameters
    ----------
    build : function
        Makes the diagram, as ``build(sim)``, of blocks that `Simulation.stepper` takes; each copy of many has clocks of
        its own, which begin with the episode.
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
    sampled : function, optional
        States of sampled blocks at the start of episodes, ``sampled(rng, count)``, a dict of arrays (count, k) by the
        names of blocks. Those of a NOISE are drawn unless given, so that each episode, and each copy, has other noise.
    events : bool
        Whether steps are runs, which locate and handle events, as `Simulation.stepper` says; a STOP ends an episode.
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
    sampled: Callable[[np.random.Generator, int], Mapping[str, ArrayLike]] | None = None
    events: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be a task."""
        function(self.build, "Task: build", "a Simulation, which returns a diagram")
        function(self.reward, "Task: reward", "the outputs before, the inputs, and the outputs after a step")
        if self.terminated is not None:
            function(self.terminated, "Task: terminated", "the outputs after a step")
        for name in ("start", "sampled"):
            if getattr(self, name) is not None:
                function(getattr(self, name), f"Task: {name}", "a random generator and a count")
        for name, arguments in _CALLED.items():
            given = getattr(self, name)
            if given is not None and not takes(given, arguments):
                raise InvalidType(f"Task: {name}: is called as {name}({', '.join(arguments)}); let it take these")
        for name in ("inputs", "outputs"):
            if not entries(getattr(self, name), f"Task: {name}", "signals"):
                raise InvalidValue(f"Task: {name}: name one signal at least, as 'plant.q'")
        flag(self.events, "Task: events")
        positive(self.dt, "Task: dt")
        whole_number(self.substeps, "Task: substeps", 1, 10_000)
        if self.max_steps is not None:
            whole_number(self.max_steps, "Task: max_steps", 1, 10**9)
        limits = [limit is not None for limit in (self.low, self.high)]
        if not all(limits) if self.choices is None else any(limits):
            raise InvalidValue("Task: give choices=[[-1.0], [1.0]] for actions that choose, or low= and high=")
        for name in ("choices", "low", "high", "observation_low", "observation_high"):
            object.__setattr__(self, name, own_arrays(getattr(self, name)))

    def action_values(self, size: int) -> Array:
        """Return the values that actions choose among, (k, m)."""
        found = real_array(self.choices, "Task: choices", ("k",), ("k", size))
        if not len(found):
            raise InvalidValue("Task: choices: expected one at least, as [[-1.0], [1.0]]")
        values = real_array(found.reshape(len(found), -1), "Task: choices", ("k", size)).copy()
        values.flags.writeable = False  # a reward is given rows of it
        return values

    def limits(self, size: int) -> tuple[Array, Array]:
        """Return the least and the greatest inputs."""
        low, high = (_spread(getattr(self, name), size, f"Task: {name}") for name in ("low", "high"))
        if not (low < high).all():
            k = int(np.argmin(low < high))
            at = f" at [{k}]; what stays the same is no input" if size > 1 else ""
            raise InvalidValue(f"Task: low: expected less than high, got {low[k]:g} and {high[k]:g}{at}")
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

    def paid(self, before: Array, u: Array, after: Array) -> Any:
        """Return the reward of a step, or of as many as there are rows."""
        return _of_each(self.reward(before, u, after), after.shape[:-1], "reward")

    def ends(self, after: Array) -> Any:
        """Return whether an episode ends, or as many as there are rows."""
        ended = False if self.terminated is None else self.terminated(after)
        return _of_each(ended, after.shape[:-1], "terminated") != 0.0

    def prove(self, before: Array, u: Array, after: Array) -> None:
        """Refuse functions that give other numbers of some rows than of each: as many outputs as rows hide that."""
        for name, rows in (("reward", (before, u, after)), ("terminated", (after,))):
            given = getattr(self, name)
            if given is None:
                continue
            asked = self.paid if name == "reward" else self.ends
            found, again = asked(*rows), asked(*rows)
            alone = np.array([asked(*(row[k] for row in rows)) for k in range(len(after))])
            if np.array_equal(found, again, equal_nan=True) and not np.allclose(
                found, alone, rtol=1e-6, equal_nan=True
            ):
                k = int(np.argmin(np.isclose(found, alone, rtol=1e-6, equal_nan=True)))
                raise InvalidValue(
                    f"Task: {name}: gives {found[k]:g} for environment {k} among others, and {alone[k]:g} for it "
                    f"alone; {_AXES}"
                )

    def samples(self, rng: np.random.Generator, count: int, blocks: Sequence[Any]) -> dict[str, ArrayLike]:
        """Return states of sampled blocks at the start of episodes, those that some blocks draw among them."""
        given = {} if self.sampled is None else self.sampled(rng, count)
        if not isinstance(given, Mapping):
            raise InvalidType(f"Task: sampled: expected a dict, as {{'filter': states}}, got {shown(given)}")
        return {**{str(b.name): b.drawn(rng, count) for b in blocks if b.name not in given}, **given}

    def given(self, options: Mapping[str, Any] | None, count: int, size: int) -> Array | Mapping[str, Any] | None:
        """Return the states that `reset` is told to start at, by ``options={"x": ...}``: all, or by their names."""
        if options is not None and not isinstance(options, Mapping):
            raise InvalidType(f"reset: options: expected a dict, as {{'x': state}}, got {shown(options)}")
        for name in options or {}:
            if name != "x":
                raise unknown_name("reset: option", name, ["x"])
        x = (options or {}).get("x")
        if x is None or isinstance(x, Mapping):
            return x
        return np.broadcast_to(real_array(x, "reset: options['x']", (size,), (count, size)), (count, size))


def _spread(value: Any, size: int, what: str) -> Array:
    array = real_array(value, what, (), (size,), finite=False)
    return np.broadcast_to(array, (size,)).astype(float)


_AXES = (
    "outputs are along the last axis, of each environment in a row of its own: "
    "write after[..., 0] or (after**2).sum(axis=-1)"
)


def _of_each(value: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return what a function of a task gives, a number for each row; a plain number is that of all."""
    if type(value) in (bool, int, float):
        return np.full(shape, float(value))
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise InvalidType(f"Task: {name}: expected a number of each environment, got {shown(value)}")
    if (found.shape != shape and found.size != math.prod(shape)) or found.ndim > 1:
        raise ShapeError(
            f"Task: {name}: expected {f'{shape[0]} numbers, one of each environment' if shape else 'one number'}, got "
            f"{found.size or 'none'}{f' of the shape {found.shape}' * (found.ndim > 1)}; {_AXES}"
        )
    return found.astype(float).reshape(shape)


CONTROLS = ("discrete", "continuous")


def _observed(bd: Any, plant: Any, observe: Any) -> Any:
    """Add what is observed of a plant, and leave its torque to the actions."""
    seen = bd.FUNCTION(observe, nin=2, name="observation")
    bd.connect(plant.q, seen[0])
    bd.connect(plant.qd, seen[1])
    bd.connect(seen, bd.NULL())
    bd.connect(bd.CONSTANT(0.0, name="torque"), plant.tau)
    return bd


def acrobot(
    parameters: str = "gym", control: str = "discrete", limit: float = 1.0, height: float = 1.0, **options: Any
) -> Task:
    r"""Return the task of Gymnasium's Acrobot-v1: bring the tip above a height as soon as possible.

    Observed are cos θ₁, sin θ₁, cos θ₂, sin θ₂ and the rates of both, θ₁ = q₁ + π/2 being zero where it hangs; each
    step of 0.2 s is one step of RK4 and costs 1 until the tip is high enough. Rates are not limited, as those of
    Acrobot-v1 are.

    Parameters
    ----------
    parameters : str
        A parameter set of `library.acrobot`.
    control : {"discrete", "continuous"}
        Whether an action chooses the elbow's torque among -limit, 0 and limit, or is it.
    limit : float
        The greatest torque [N m].
    height : float
        Of the tip over the shoulder [m].
    **options
        Other fields of `Task`.
    """
    mech = library.acrobot(parameters)
    option(control, "acrobot: control", CONTROLS)
    limit = positive(limit, "acrobot: limit")
    forearm = mech.links[1]
    l1, l2 = float(forearm.pose[0, 3]), 2.0 * float(forearm.com[0])  # its centre of mass is in its middle

    def build(sim: Any) -> Any:
        bd = sim.blockdiagram(name="acrobot")
        plant = bd.HYBRIDDYNAMICS(mech, q0=[-np.pi / 2, 0.0], name="plant")

        def observe(q: Any, qd: Any) -> Any:
            return np.array([-np.sin(q[0]), np.cos(q[0]), np.cos(q[1]), np.sin(q[1]), qd[0], qd[1]])

        return _observed(bd, plant, observe)

    def is_high(after: Array) -> Any:
        c1, s1, c2, s2 = (after[..., k] for k in range(4))
        return -l1 * c1 - l2 * (c1 * c2 - s1 * s2) > height

    def start(rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(-0.1, 0.1, size=(count, 4)) + np.array([-np.pi / 2, 0.0, 0.0, 0.0])

    fields: dict[str, Any] = {
        "build": build,
        "inputs": ["plant.tau"],
        "outputs": ["observation"],
        "reward": lambda before, u, after: np.where(is_high(after), 0.0, -1.0),
        "terminated": is_high,
        "start": start,
        "dt": 0.2,
        "max_steps": 500,
        "observation_low": [-1.0, -1.0, -1.0, -1.0, -np.inf, -np.inf],
        "observation_high": [1.0, 1.0, 1.0, 1.0, np.inf, np.inf],
    }
    return Task(**{**fields, **_actions(control, limit), **options})


def pendulum(control: str = "continuous", limit: float = 2.0, **options: Any) -> Task:
    r"""Return the task to swing a pendulum up and hold it, with a motor that is too weak to lift it at once.

    Observed are cos θ, sin θ and the rate, θ being zero where it stands upright. A step costs
    θ² + 0.1 θ̇² + 0.001 u², as of Gymnasium's Pendulum-v1, with its torques, steps of 0.05 s and starts; the pendulum is
    the library's uniform rod of 1 m and 1 kg.

    Parameters
    ----------
    control : {"discrete", "continuous"}
    limit : float
        The greatest torque [N m].
    **options
        Other fields of `Task`.
    """
    mech = library.pendulum(1)
    option(control, "pendulum: control", CONTROLS)
    limit = positive(limit, "pendulum: limit")

    def build(sim: Any) -> Any:
        bd = sim.blockdiagram(name="pendulum")
        plant = bd.HYBRIDDYNAMICS(mech, q0=[-np.pi / 2], name="plant")
        return _observed(bd, plant, lambda q, qd: np.array([np.sin(q[0]), -np.cos(q[0]), qd[0]]))

    def reward(before: Array, u: Array, after: Array) -> Any:
        angle = np.arctan2(before[..., 1], before[..., 0])
        return -(angle**2 + 0.1 * before[..., 2] ** 2 + 0.001 * u[..., 0] ** 2)

    def start(rng: np.random.Generator, count: int) -> Array:
        return rng.uniform([-np.pi, -1.0], [np.pi, 1.0], size=(count, 2))

    fields: dict[str, Any] = {
        "build": build,
        "inputs": ["plant.tau"],
        "outputs": ["observation"],
        "reward": reward,
        "start": start,
        "dt": 0.05,
        "max_steps": 200,
        "observation_low": [-1.0, -1.0, -np.inf],
        "observation_high": [1.0, 1.0, np.inf],
    }
    return Task(**{**fields, **_actions(control, limit), **options})


def _actions(control: str, limit: float) -> dict[str, Any]:
    if control == "discrete":
        return {"choices": [[-limit], [0.0], [limit]]}
    return {"low": -limit, "high": limit}


#: The ready tasks, by name.
TASKS: dict[str, Callable[..., Task]] = {"acrobot": acrobot, "pendulum": pendulum}
