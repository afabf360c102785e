"""Prepares a sweep: what is asked for is understood and checked, each worker gets a diagram, the first run is made."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import queue
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from cstormpy.errors import DiagramError, InvalidType, UnknownName, shown, unknown_name
from cstormpy.file_writer import file_path
from cstormpy.mechanism import Mechanism
from cstormpy.reporting import notice
from cstormpy.simulation.copies import Own, held_functions
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.recording import find_signals
from cstormpy.simulation.surroundings import stored_names, surrounding
from cstormpy.simulation.sweep.axes import Axes, accepted, check_size, check_twice, meant
from cstormpy.simulation.sweep.files import Log, header
from cstormpy.simulation.sweep.identity import diagram_identity, option_identity
from cstormpy.simulation.sweep.measures import Final, check_measure, described
from cstormpy.simulation.sweep.result import Sweep
from cstormpy.simulation.sweep.scheduler import SweepRuns, check_executor, check_pickling, how_many
from cstormpy.simulation.sweep.workers import Job, Record, Worker

#: Packages whose functions may be shared by threads: what they close over does not change, or is guarded.
_SHAREABLE = ("bdsim", "cstormpy", "numba", "numpy", "scipy")


def copied(bd: Any, make: Callable[[], Any]) -> Any:
    """Return a copy of a diagram that shares nothing with it that could change.

    Raises
    ------
    DiagramError
        Where a function that a block holds would be shared, with what it remembers.
    """
    advice = "give the function build(sim, **options) that makes it, so that each worker has its own"
    own = Own(bd)
    for b in bd.blocklist:
        shared = _remembered(b, own)
        if shared is not None:
            raise DiagramError(
                f"sweep: the diagram cannot be copied for several workers: block {b.name!r} {shared}; {advice}"
            )
    # the copy has a simulation of its own
    memo: dict[int, Any] = {id(bd.runtime): make()} if hasattr(bd, "runtime") else {}
    try:
        return copy.deepcopy(bd, memo)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise DiagramError(f"sweep: the diagram cannot be copied for workers: {told}; {advice}") from error


def _remembered(block: Any, own: Own) -> str | None:
    """Say what a block would share with its copy: functions are not copied, nor what they close over."""
    its = {id(function) for function in held_functions(block, whole=False)}
    for function in held_functions(block):
        # what others read beside it is shared, but for those that name blocks, which are copied
        name = _changing(function, own) if id(function) in its or own.is_named_by(function) else None
        if name is not None:
            return f"holds the function {function.__qualname__!r}, whose {name!r} all of them would use"
    return None


def _changing(function: types.FunctionType, own: Own) -> str | None:
    """Return the name of what a function remembers from one call to the next, or could, beside blocks."""
    if function.__module__.split(".")[0] in _SHAREABLE:
        return None
    code = function.__code__
    names = code.co_freevars
    stored = stored_names(code, "GLOBAL") | stored_names(code, "DEREF") & {*names}
    if stored:
        return min(stored)
    held = [(names[k], value) for k, value in surrounding(function).items()]
    held += [(name, v) for name, v in (function.__kwdefaults__ or {}).items()]
    given = code.co_varnames[: code.co_argcount]
    held += list(zip(reversed(given), reversed(function.__defaults__ or ()), strict=False))
    return next((name for name, value in held if not (own.is_named_by(value) or _constant(value, own))), None)


def _constant(value: Any, own: Own) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(_constant(item, own) for item in value)
    if isinstance(value, types.FunctionType):
        return _changing(value, own) is None
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    plain = (bool, int, float, complex, str, bytes, type(None), np.generic, type, types.ModuleType, Mechanism)
    return isinstance(value, (*plain, types.BuiltinFunctionType))


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
        known = [name for name in inspect.signature(sim.sweep).parameters if name != "options"]
        unknown = unknown_name("sweep: option", next(iter(options)), known)
        raise UnknownName(f"{unknown}; options of a diagram are those of a function that builds it")
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
    first = Worker(job, apart=False)
    options = accepted(job.build)[0]
    values = dict(zip(axes.names, axes.run(0), strict=True))
    bd = first.diagram({name: values[name] for name in axes.names if name in options and name not in job.fixed})
    job.varied = tuple(meant(name, bd, job.build, job.fixed) for name in axes.names)
    check_twice(job.varied, bd)
    about = _about(job, bd)
    _watch(job, bd)
    about["labels"] = job.measure.labels(bd) if isinstance(job.measure, Final) else {}
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
    find_signals(bd, names, beside_states=True)
    if isinstance(job.measure, Final):
        job.measure, more = job.measure.resolved(bd)
        names = names if names == "all" else list(dict.fromkeys([*names, *more]))
    job.settings["watch"] = names
