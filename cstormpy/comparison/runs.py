"""Runs one diagram under each of several options, and measures what came of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.comparison.disturbances import named_plants
from cstormpy.comparison.entries import Comparison, Entry
from cstormpy.comparison.robustness import Robustness, score
from cstormpy.control.goal import periods
from cstormpy.control.posture_law import errors_from
from cstormpy.diagrams import Goal
from cstormpy.diagrams import load as load_diagram
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, UnknownName, shown, unknown_name
from cstormpy.linkage.degrees import say_degrees
from cstormpy.mechanism import Mechanism
from cstormpy.simulation import Simulation
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.steppers import check_solver
from cstormpy.simulation.sweep.axes import accepted
from cstormpy.simulation.units import units_of_coordinates
from cstormpy.simulation.wiring import port_numbers

Build = Callable[..., Any]


def compare(
    build: Build | ModuleType | str,
    options: Mapping[str, Iterable[Any]],
    T: float = 10.0,
    *,
    solver: Any = "RK45",
    rtol: float | None = None,
    atol: float | None = None,
    max_step: float | None = None,
    dt: float | None = None,
    goal: Goal | ArrayLike | None = None,
    sim: Simulation | None = None,
    robustness: bool | Robustness = False,
    **fixed: Any,
) -> Comparison:
    """Run a diagram under each combination of options, with the same solver and tolerances.

    Parameters
    ----------
    build : callable, module or str
        ``build(sim, **options)`` that returns a wired diagram, a module that has one, or the name of a ready diagram.
        The diagram has one HYBRIDDYNAMICS block, or one that is called "plant".
    options : dict of str to list
        What varies, as in ``{"controller": ["energy", "pfl"]}``; of several options each combination is run.
    T : float
        How long each run is [s].
    solver, rtol, atol, max_step, dt
        As for `Simulation.run`.
    goal : Goal or array_like, (n,), optional
        The equilibrium to reach; unless given, the diagram's attribute ``goal``, if it has one.
    sim : Simulation, optional
        What runs the diagrams; unless given, one without graphics and live windows.
    robustness : bool or Robustness
        Whether each combination is run some hundred times more, on all cores: with errors of the model, noise, delay,
        slow motors and pushes, as the double pendulum competitions of DFKI score controllers; or with what of these,
        and how much. See `cstormpy.comparison.Robustness` and `Comparison.plot_robustness`.
    **fixed
        Options of `build` that are the same in every run.

    Returns
    -------
    Comparison
        A run that fails is recorded with its message, and the others go on; after Ctrl-C it holds what was run.

    Raises
    ------
    UnknownName
        If an option, a choice or the solver does not exist, before anything runs.
    CstormError
        If the diagram can be built under none of the options; a builder's own exception is the cause of a
        `DiagramError`.

    Examples
    --------
    >>> found = compare("pendulum", {"damping": [0.5, 2.0]}, T=4)
    >>> [row["settled"] for row in found.rows]
    [False, True]
    """
    check_solver(Settings.checked(T, dt, max_step, solver, rtol=rtol, atol=atol))
    make = _maker(build)
    combinations = _combinations(options, fixed)
    _check_options(make, [*options, *fixed])
    if sim is not None and not isinstance(sim, Simulation):
        raise InvalidType(f"sim: expected a cstormpy.Simulation, got {shown(sim)}")
    simulation = Simulation(graphics=False, live=False) if sim is None else sim
    settings = {"solver": solver, "rtol": rtol, "atol": atol, "max_step": max_step, "dt": dt}
    wanted = _asked(robustness)
    # all are wired before the first runs, so that a name that is wrong costs nobody a run
    probes = [_wire(make, simulation, {**fixed, **varied}, varied, goal) for varied in combinations]
    errors = [probe for _, probe in probes if isinstance(probe, CstormError)]
    if len(errors) == len(probes):
        raise errors[0]
    entries = []
    with Interrupts() as interrupts:
        interrupts.hold()
        for entry, probe in probes:
            if isinstance(probe, _Probe):
                _run(simulation, probe, entry, T, settings)
                if wanted is not None and not interrupts.pressed:
                    built = {**fixed, **entry.options}
                    entry.robustness = score(make, simulation, built, entry, wanted, T, settings)
            entries.append(entry)
            if entry.status == "interrupted" or interrupts.pressed:
                break
    return Comparison(entries)


# ---------------------------------------------------------------- before the run


def _asked(robustness: Any) -> Robustness | None:
    if isinstance(robustness, Robustness):
        return robustness
    if not isinstance(robustness, bool):
        raise InvalidType(f"robustness: expected True, False or a Robustness, got {shown(robustness)}")
    return Robustness() if robustness else None


@dataclass
class _Probe:
    """A wired diagram, and where its signals are: position, rate, torque and effort."""

    bd: Any
    mech: Mechanism
    signals: list[Any]


def _maker(build: Any) -> Build:
    if isinstance(build, str):
        build = load_diagram(build)
    make: Any = getattr(build, "build", build)
    if not callable(make):
        raise InvalidType(
            "compare: expected a function build(sim, **options), a module that has one, or the name of a ready "
            f"diagram, got {shown(build)}"
        )
    return make


def _combinations(options: Any, fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(options, Mapping):
        raise InvalidType(f"options: expected a dict as {{'controller': ['energy', 'pd']}}, got {shown(options)}")
    for name, values in options.items():
        if name in fixed:
            raise InvalidValue(f"option {name!r}: is to vary, and given as a fixed one too; leave out one of them")
        if isinstance(values, Mapping):
            each = ", ".join(f"{{{key!r}: ...}}" for key in [*values][:3]) + ", ..." * (len(values) > 3)
            raise InvalidType(f"option {name!r}: expected a list of values, got a dict; write [{each}]")
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InvalidType(
                f"option {name!r}: expected a list of values, got {shown(values)}; write [{shown(values)}]"
            )
    found = [dict(zip(options, one, strict=True)) for one in itertools.product(*options.values())]
    if not found:
        raise InvalidValue("options: one of them has an empty list of values, so that there is nothing to run")
    return found


def _check_options(make: Build, names: list[str]) -> None:
    """Refuse options that a builder does not take."""
    known, others = accepted(make)
    for name in names:
        if name not in known and not others:
            raise unknown_name("option", name, known)


def _wire(
    make: Build, sim: Simulation, options: dict[str, Any], varied: dict[str, Any], goal: Any
) -> tuple[Entry, _Probe | CstormError]:
    """Build a diagram and add what measures it; the error of one that cannot be stands in its place."""
    try:
        bd = _built(make, sim, options)
        probe = _probe(bd)
    except UnknownName:
        raise
    except CstormError as error:
        return Entry(varied, message=str(error)), error
    aim = getattr(bd, "goal", None) if goal is None else goal
    if aim is not None and not isinstance(aim, Goal):
        aim = Goal(aim)
    if aim is not None and len(aim.q) != probe.mech.n:
        raise InvalidValue(f"goal: expected {probe.mech.n} numbers ({', '.join(probe.mech.names)})")
    if aim is not None:
        say_degrees(probe.mech.freedoms, probe.mech.names, aim.q.tolist(), "goal")
    mech = probe.mech
    entry = Entry(
        varied,
        joints=mech.names,
        motors=mech.actuated,
        units=tuple(units_of_coordinates(mech, "q", mech.names)),
        motor_units=tuple(units_of_coordinates(mech, "tau", mech.actuated)),
        goal=aim,
        turn=np.zeros(mech.n),
    )
    if aim is not None and aim.wrap:
        entry.turn, entry.balls = periods(mech.tree, aim.q)[0], mech.ball_starts
    return entry, probe


def _built(make: Build, sim: Simulation, options: dict[str, Any]) -> Any:
    try:
        return make(sim, **options)
    except CstormError:
        raise
    except Exception as error:
        raise DiagramError(f"compare: the builder failed: {type(error).__name__}: {error}") from error


def _probe(bd: Any) -> _Probe:
    """Find the plant of a diagram, and add blocks for the effort of its motors."""
    if not hasattr(bd, "blocklist"):
        raise InvalidType(f"compare: build returned {shown(bd)}, not a diagram; end it with 'return bd'")
    named, count = named_plants(bd)
    if len(named) != 1:
        raise DiagramError(
            f"compare: the diagram has {count} HYBRIDDYNAMICS blocks, of which one must be called 'plant'"
        )
    if bd.compiled:
        raise DiagramError("compare: the diagram is compiled already; leave that to the run, which does it")
    plant = named[0]
    mech = plant.mech
    signals = [plant[0], plant[1]]
    torque = _torque(bd, plant)
    if torque is not None:
        effort = bd.EFFORT(name="comparison_effort")
        bd.connect(torque, effort[0])
        signals += [torque, effort[0]]
    return _Probe(bd, mech, signals)


def _torque(bd: Any, plant: Any) -> Any:
    """Return the output that carries the torques of the motors, or None without motors.

    Where some joints are active it is that of a block that finds their torques.
    """
    mech = plant.mech
    if not mech.actuated:
        return None
    drivers = {}
    for wire in bd.wirelist:
        if wire.end.block is plant:
            for source, target in zip(port_numbers(wire.start), port_numbers(wire.end), strict=False):
                drivers[target] = wire.start.block[source]
    missing = [port for port in range(plant.nin) if port not in drivers]
    if missing:
        raise DiagramError(f"compare: {plant.name} input {missing[0]} is not connected")
    if not mech.active:
        return drivers[0]
    wrench = plant.nin > bool(mech.active) + (len(mech.active) < len(mech.actuated))
    found = bd.JOINTEFFORT(mech, wrench=wrench, name="comparison_torque")
    for port, source in enumerate([plant[0], plant[1], *(drivers[k] for k in range(plant.nin))]):
        bd.connect(source, found[port])
    return found[1]


# ---------------------------------------------------------------- the run, and what is measured


def _run(sim: Simulation, probe: _Probe, entry: Entry, T: float, settings: dict[str, Any]) -> None:
    """Run a diagram, and put into its entry what came of it."""
    try:
        out = sim.run(probe.bd, T=T, watch=probe.signals, **settings)
    except CstormError as error:
        entry.message = str(error)
        return
    entry.result, entry.status, entry.message = out, out.status, out.message
    signals = [np.asarray(out.signal(name), dtype=float) for name in out.ynames[: len(probe.signals)]]
    t = entry.t = out.t
    entry.q, entry.qd = signals[0], signals[1]
    entry.tau = np.zeros((len(t), 0))
    if len(signals) > 2:
        tau = signals[2].reshape(len(t), -1)
        # of all joints, where a block finds them
        entry.tau = tau[:, probe.mech.actuated_mask] if probe.mech.active else tau
        entry.peak_torque = float(np.abs(entry.tau).max())
        entry.effort = float(signals[3].ravel()[-1])
    if entry.goal is not None:
        _measure(entry, entry.goal)


def _measure(entry: Entry, goal: Goal) -> None:
    """Measure how the goal was reached."""
    off = errors_from(goal.q, entry.q, entry.qd, entry.turn, entry.balls)
    entry.error = np.linalg.norm(np.hstack(off), axis=1)
    entry.final_error = float(entry.error[-1])
    entry.settled = entry.status in ("finished", "stopped") and entry.final_error < goal.tolerance
    if entry.settled:
        entry.time_to_balance = time_below(entry.t, entry.error, goal.tolerance)


def time_below(t: Array, error: Array, tolerance: float) -> float:
    """Return the time from which on an error, which ends below a tolerance, stays there; linear between samples.

    >>> time_below(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 3.0, 1.0, 0.5]), 2.0)
    1.5
    """
    above = np.flatnonzero(error >= tolerance)
    if not len(above):
        return float(t[0])
    last = int(above[-1])
    part = (error[last] - tolerance) / (error[last] - error[last + 1])
    return float(t[last] + part * (t[last + 1] - t[last]))
