"""The maker of environments, which loads Gymnasium when it is called."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from cstormpy.arguments import option, whole_number
from cstormpy.errors import DiagramError, InvalidType, InvalidValue, shown
from cstormpy.gym.tasks import Task

if TYPE_CHECKING:
    from cstormpy.gym.environment import Environment, VectorEnvironment


def names() -> tuple[str, ...]:
    """Return the names of the ready tasks."""
    from cstormpy.gym.tasks import TASKS

    return tuple(TASKS)


@overload
def make(
    what: str | Task | Callable[[Any], Any], *, num_envs: None = None, render_mode: str | None = None, **options: Any
) -> Environment: ...


@overload
def make(what: str | Task | Callable[[Any], Any], *, num_envs: int, **options: Any) -> VectorEnvironment: ...


def make(
    what: str | Task | Callable[[Any], Any],
    *,
    num_envs: int | None = None,
    render_mode: str | None = None,
    **options: Any,
) -> Environment | VectorEnvironment:
    """Return an environment of Gymnasium that steps a diagram.

    Parameters
    ----------
    what : str, Task or function
        A ready task by its name; a task; or a function that makes a diagram, ``build(sim)``, with the fields of `Task`
        as options.
    num_envs : int, optional
        Of a vector: so many copies, which are computed side by side; one environment unless given.
    render_mode : {"rgb_array", "human"}, optional
        Of one environment: whether its method `render` returns a picture of the diagram's mechanisms, or each step is
        drawn in a window, at its pace.
    **options
        Of a ready task, as ``parameters="spong"``; or fields of `Task`.

    Raises
    ------
    DiagramError
        Gymnasium is not installed, or the diagram cannot be stepped.

    Examples
    --------
    >>> import numpy as np
    >>> import cstormpy as cs
    >>> def build(sim):
    ...     bd = sim.blockdiagram()
    ...     plant = bd.HYBRIDDYNAMICS("acrobot", name="plant")
    ...     bd.connect(bd.CONSTANT(0.0, name="torque"), plant.tau)
    ...     return bd
    >>> def reward(before, u, after):
    ...     return -np.square(after[..., 1])
    >>> env = cs.gym.make(build, inputs=["torque"], outputs=["plant.q"], reward=reward, low=-5.0, high=5.0)
    >>> observation, info = env.reset(seed=1)
    """
    task = _task(what, options)
    try:
        from cstormpy.gym.environment import Environment, VectorEnvironment
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        raise DiagramError("cs.gym needs Gymnasium: pip install 'cstormpy[gym]'") from None
    if num_envs is None:
        return Environment(task, render_mode)
    if render_mode is not None:
        raise InvalidValue("make: render_mode: is of one environment; leave num_envs out")
    return VectorEnvironment(task, whole_number(num_envs, "make: num_envs", 1, 10_000_000))


def _task(what: Any, options: dict[str, Any]) -> Task:
    from cstormpy.gym.tasks import TASKS

    fields = [field.name for field in dataclasses.fields(Task)]
    if isinstance(what, str):
        maker = TASKS[option(what, "gym: task", TASKS)]
        known = [name for name in inspect.signature(maker).parameters if name != "options"]
        _refuse_unknown(options, [*known, *fields], f"gym: {what}")
        return maker(**options)
    _refuse_unknown(options, fields, "gym")
    if isinstance(what, Task):
        return dataclasses.replace(what, **options)
    if callable(what):
        missing = [name for name in ("inputs", "outputs", "reward") if name not in options]
        if missing:
            raise InvalidType(f"make: {missing[0]}= is missing: a diagram's task has inputs, outputs and a reward")
        return Task(what, **options)
    raise InvalidType(f"make: expected a name, a Task or a function that makes a diagram, got {shown(what)}")


def _refuse_unknown(options: dict[str, Any], known: list[str], what: str) -> None:
    for name in options:
        option(name, f"{what}: option", known)
