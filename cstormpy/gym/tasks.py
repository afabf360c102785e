"""Ready tasks: the acrobot of Gymnasium with its observations, and a pendulum that is swung up by its motor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.arguments import option, positive
from cstormpy.arrays import Array
from cstormpy.gym.task import Task
from cstormpy.mechanism import library

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
