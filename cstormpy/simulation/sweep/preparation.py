"""Prepares a sweep: what is asked for is understood and checked, each worker gets a diagram, the first run is made."""

from __future__ import annotations

import functools
import os
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

from cstormpy.errors import DiagramError, InvalidType, shown
from cstormpy.file_writer import file_path
from cstormpy.reporting import notice
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.recording import find_signals
from cstormpy.simulation.sweep.axes import Axes, check_size
from cstormpy.simulation.sweep.axis_names import accepted, check_twice, meant
from cstormpy.simulation.sweep.copying import copied
from cstormpy.simulation.sweep.files import Log, header
from cstormpy.simulation.sweep.identity import diagram_identity, option_identity
from cstormpy.simulation.sweep.measures import Final, check_measure, described
from cstormpy.simulation.sweep.result import Sweep
from cstormpy.simulation.sweep.scheduler import SweepRuns, check_executor, check_pickling, how_many
from cstormpy.simulation.sweep.workers import Job, Record, Worker


class SweepSettings(NamedTuple):
    """Settings of a sweep; see `cstormpy.simulation.Simulation.sweep`."""

    workers: int | None
    executor: Executor | None
    resume: str | os.PathLike[str] | None
    progress: bool


def carry_out(
    sim: Any,
    diagram: Any,
    axes: Axes,
    measure: Any,
    settings: dict[str, Any],
    how: SweepSettings,
    options: dict[str, Any],
) -> Sweep:
    """Run a diagram under many parameters; see `cstormpy.simulation.Simulation.sweep`."""
    build = _builder(diagram)
    check_executor(how.executor)
    check_size(axes)
    if how.resume is not None:
        file_path(how.resume, "resume")
    if build is None and options:
        raise InvalidType(f"sweep: a diagram takes no options ({', '.join(options)}); give the function that builds it")
    make = functools.partial(_simulation, type(sim), tuple(sim.options.setparam))
    job = Job(make, build, None, options, settings, check_measure(measure), sim.engine)
    count = how_many(how.workers, how.executor)
    with _diagrams(job, diagram, count, how) as number:
        return _sweep(job, axes, number, how)


def _builder(diagram: Any) -> Callable[..., Any] | None:
    """Return the function that builds the diagram, None where that is given itself."""
    if hasattr(diagram, "blocklist"):
        return None
    build: Any = getattr(diagram, "build", diagram)
    if not callable(build):
        raise InvalidType(
            "sweep: expected a function build(sim, **options), a module that has one, as "
            f'cstormpy.diagrams.load("acrobot"), or a diagram, got {shown(diagram)}'
        )
    return build


def _simulation(kind: type[Any], setparam: tuple[str, ...]) -> Any:
    """Return the simulation of a worker: nothing is shown."""
    return kind(engine="interpreted", live=False, progress=False, graphics=False, setparam=list(setparam))


@contextmanager
def _diagrams(job: Job, diagram: Any, count: int, how: SweepSettings) -> Iterator[int]:
    """Provide each worker with a diagram; yield how many workers there can be.

    A diagram that cannot be copied is run by one worker, unless more were asked for; it is left as it was.
    """
    if job.build is not None:
        yield count
        return
    if how.executor is not None and not type(how.executor).__module__.startswith("concurrent.futures.thread"):
        raise DiagramError(
            "sweep: a diagram cannot be sent to other processes; give the function build(sim, **options) that makes it"
        )
    job.given = queue.SimpleQueue()
    try:
        copies = [copied(diagram, job.make) for _ in range(count)]
    except DiagramError as error:
        if count > 1 and (how.workers is not None or how.executor is not None):
            raise
        notice(f"{error}; until then one worker does it all")
        before = [(b, p, getattr(b, p)) for b in diagram.blocklist for p in b._parameters if hasattr(b, p)]
        job.given.put(diagram)
        try:
            yield 1
        finally:
            for block, parameter, value in before:
                block._parameters[parameter](block, parameter, value)
        return
    for one in copies:
        job.given.put(one)
    yield count


def _sweep(job: Job, axes: Axes, count: int, how: SweepSettings) -> Sweep:
    """Understand the names, and run what is not in the file yet: the first run here, then the others by the workers."""
    first = Worker(job)
    options = accepted(job.build)[0]
    values = dict(zip(axes.names, axes.run(0), strict=True))
    bd = first.diagram({name: values[name] for name in axes.names if name in options and name not in job.fixed})
    job.varied = tuple(meant(name, bd, job.build, job.fixed) for name in axes.names)
    check_twice(job.varied)
    about = _about(job, bd)
    _watch(job, bd)
    check_pickling(job, axes, how.executor)
    log = None if how.resume is None else Log(how.resume, header(axes, about))
    records: dict[int, Record] = {} if log is None else log.records
    with Interrupts() as interrupts:
        going = SweepRuns(job, axes, records, (lambda found: None) if log is None else log.append, interrupts)
        try:
            order = axes.order([v.name for v in job.varied if v.kind == "option"])
            todo = (k for k in order if k not in records)
            number = next(todo, None)
            if number is not None and going.alone(first, number):
                if job.given is not None and how.executor is not None:
                    job.given.put(bd)
                going.go(todo, how.executor, count, first, how.progress)
        finally:
            if log is not None:
                log.close()
        found = Sweep(axes, records, about, going.message)
    if going.message:
        notice(f"sweep: {found.message}")
    elif found.failed.all():
        notice(f"sweep: all runs failed, the first one so: {next(iter(found.reasons.values()))}")
    return found


def _about(job: Job, bd: Any) -> dict[str, Any]:
    """Return what tells this sweep from others, beside its axes."""
    return {
        "settings": {name: option_identity(v) for name, v in job.settings.items() if name != "watch"},
        "options": {name: option_identity(v) for name, v in job.fixed.items()},
        "measure": described(job.measure),
        "diagram": diagram_identity(bd),
    }


def _watch(job: Job, bd: Any) -> None:
    """Find the signals that are to be recorded, which each worker finds again in its own diagram."""
    watch = job.settings["watch"]
    if not isinstance(watch, Iterable):
        raise InvalidType(f"watch: expected names of signals, as ['plant.q'], or 'all', got {shown(watch)}")
    names = [watch] if isinstance(watch, str) and watch != "all" else watch
    if watch != "all" and not all(isinstance(name, str) for name in names):
        raise InvalidType("watch: a sweep runs diagrams of its own; give signals by their names, as ['plant.q']")
    find_signals(bd, names)
    if isinstance(job.measure, Final):
        job.measure, more = job.measure.resolved(bd)
        names = names if names == "all" else list(dict.fromkeys([*names, *more]))
    job.settings["watch"] = names
