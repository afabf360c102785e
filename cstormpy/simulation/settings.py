"""The settings of a run, checked."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cstormpy.arguments import mapping, one_of, positive
from cstormpy.errors import InvalidValue, shown
from cstormpy.simulation.step_control import ATOL, RTOL
from cstormpy.simulation.tableaus import explicit_method

#: Without another bound no step is longer than this part of the run: short pulses are seen, and plots are smooth.
_STEPS_AT_LEAST = 100
#: Steps shorter than this part of the run do not move its time on.
_RESOLUTION = 2.0**-50
#: The first tick of the clocks: at their offset, or one period later.
FIRST_TICKS = (0, "bdsim")

#: Options of bdsim that hold where a run says nothing.
OF_ALL_RUNS = ("dt", "max_step", "rtol", "atol")


@dataclass
class Settings:
    """Settings of a run; see `Simulation.run`."""

    T: float = 5.0
    solver: Any = "RK45"
    rtol: float = RTOL
    atol: float = ATOL
    max_step: float = math.inf
    step: float | None = None
    grid: float | None = None
    sinks_on_grid: bool = False
    first_tick: int | str = 0
    #: Whether clocks tick that do so at the end, or leave it to the run that goes on from there.
    ticks_at_end: bool = True
    check_finite: bool = True
    solver_args: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        T: Any = 5.0,
        dt: Any = None,
        max_step: Any = None,
        solver: Any = "RK45",
        solver_args: Any = None,
        rtol: Any = None,
        atol: Any = None,
        log_dt: Any = None,
        first_tick: Any = 0,
        checkfinite: Any = True,
    ) -> Settings:
        """Return settings from what a user gave."""
        arguments = mapping(solver_args, "solver_args")
        for name in ("integrator", "method"):
            named = arguments.pop(name, None)
            solver = solver if named is None else named
        if isinstance(solver, str) and solver.lower() in ("solve_ivp", "solver_ivp"):
            solver = "RK45"
        T = positive(T, "T")
        method = explicit_method(solver)
        fixed = method is not None and not method.adaptive
        if fixed and dt is None and max_step is None:
            raise InvalidValue(f"solver {str(solver)!r}: takes steps of one length; give it, as in run(..., dt=0.001)")
        rtol = positive(arguments.pop("rtol", RTOL) if rtol is None else rtol, "rtol")
        atol = positive(arguments.pop("atol", ATOL) if atol is None else atol, "atol")
        max_step = arguments.pop("max_step", None) if max_step is None else max_step
        dt = None if dt is None else positive(dt, "dt")
        grid = positive(log_dt, "log_dt") if log_dt is not None else None if fixed else dt
        longest = positive(max_step, "max_step") if max_step is not None else T / _STEPS_AT_LEAST
        for name, step in (("dt", dt), ("max_step", max_step), ("log_dt", log_dt)):
            if step is not None and float(step) < T * _RESOLUTION:
                raise InvalidValue(f"{name}: steps of {shown(step)} s are too short to be told apart in {T:g} s")
        first_tick = one_of(first_tick, "first_tick", FIRST_TICKS)
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
            check_finite=one_of(checkfinite, "checkfinite", (True, False)),
            solver_args=arguments,
        )


def told_with_options(options: Mapping[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Return what a run is told, with what the options of a `Simulation` say of all its runs, as bdsim does.

    Steps and tolerances hold where the run says nothing; the method, and ``simtime``, take the place of what it says.

    >>> told_with_options({"rtol": 1e-9, "dt": 0.1, "simtime": "3"}, {"T": 5.0, "dt": 0.2})
    {'T': 3, 'dt': 0.2, 'rtol': 1e-09}
    """
    found = dict(told)
    for name in OF_ALL_RUNS:
        said = options.get(name)
        if said is not None and found.get(name) is None and name not in (found.get("solver_args") or {}):
            found[name] = said
    if options.get("method") is not None:
        found["solver"] = options["method"]
    if options.get("simtime") is not None:
        found |= dict(zip(("T", "dt"), _times(options["simtime"]), strict=False))
    return found


def _times(simtime: Any) -> tuple[Any, ...]:
    """Return the time to run, and dt where it is there too, of bdsim's option, as "5" or "5,0.1"."""
    try:
        times = ast.literal_eval(simtime) if isinstance(simtime, str) else simtime
    except (SyntaxError, ValueError):
        times = ()
    times = times if isinstance(times, tuple) else (times,)
    if not 1 <= len(times) <= 2:
        raise InvalidValue(f'simtime: expected a time, or a time and dt, as "5" or "5,0.1", got {shown(simtime)}')
    return times
