"""The settings of a run, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.simulation.step_control import ATOL, RTOL
from cstormpy.simulation.tableaus import EXPLICIT

__all__ = ["Settings"]

#: Without another bound no step is longer than this part of the run: short pulses are seen, and plots are smooth.
_STEPS_AT_LEAST = 100
#: The first tick of the clocks: at their offset, or one period later.
FIRST_TICKS = (0, "bdsim")


@dataclass
class Settings:
    """How a run goes; see `Simulation.run`."""

    T: float = 5.0
    solver: Any = "RK45"
    rtol: float = RTOL
    atol: float = ATOL
    max_step: float = math.inf
    step: float | None = None
    grid: float | None = None
    sinks_on_grid: bool = False
    first_tick: int | str = 0
    check_finite: bool = True
    solver_args: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        T: Any,
        dt: Any,
        max_step: Any,
        solver: Any,
        solver_args: Any,
        rtol: Any,
        atol: Any,
        log_dt: Any,
        first_tick: Any,
        check_finite: bool,
    ) -> Settings:
        """Return settings from what a user gave."""
        if not isinstance(solver_args or {}, Mapping):
            raise InvalidType(f"solver_args: expected a dict, got {type(solver_args).__name__}")
        arguments = dict(solver_args or {})
        solver = arguments.pop("method", None) or arguments.pop("integrator", None) or solver
        if isinstance(solver, str) and solver.lower() in ("solve_ivp", "solver_ivp"):
            solver = "RK45"
        T = _positive("T", T)
        fixed = isinstance(solver, str) and not next(
            (m.adaptive for name, m in EXPLICIT.items() if name.lower() == solver.lower()), True
        )
        if fixed and dt is None and max_step is None:
            raise InvalidValue(f"solver {solver!r}: takes steps of one length; give it, as in run(..., dt=0.001)")
        rtol = _positive("rtol", arguments.pop("rtol", RTOL) if rtol is None else rtol)
        atol = _positive("atol", arguments.pop("atol", ATOL) if atol is None else atol)
        max_step = arguments.pop("max_step", None) if max_step is None else max_step
        dt = None if dt is None else _positive("dt", dt)
        grid = _positive("log_dt", log_dt) if log_dt is not None else None if fixed else dt
        longest = _positive("max_step", max_step) if max_step is not None else T / _STEPS_AT_LEAST
        if not isinstance(first_tick, (int, str)) or first_tick not in FIRST_TICKS:
            raise InvalidValue(f"first_tick: expected 0 or 'bdsim', got {first_tick!r}")
        return cls(
            T=T,
            solver=solver,
            rtol=rtol,
            atol=atol,
            max_step=longest,
            step=(dt or longest) if fixed else None,
            grid=grid,
            sinks_on_grid=dt is not None and log_dt is None and not fixed,
            first_tick=first_tick,
            check_finite=bool(check_finite),
            solver_args=arguments,
        )


def _positive(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidType(f"{name}: expected a positive number, got {value!r}") from None
    if not number > 0.0 or math.isinf(number):
        raise InvalidValue(f"{name}: expected a positive number, got {value!r}")
    return number
