"""One worker of a sweep: a simulation and diagrams of its own, in which it carries out one run after the other."""

from __future__ import annotations

import copy
import pickle
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cstormpy.arguments import option
from cstormpy.arrays import Array, as_floats
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, ShapeError, shown, unknown_name
from cstormpy.reporting import notice_once
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.handlers import Held, handling
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.sweep.measures import Measured, measured
from cstormpy.simulation.wiring import compile_diagram

#: Diagrams of other options that a worker keeps.
_KEPT = 8


class AxisTarget(NamedTuple):
    """The target of an axis.

    It is an option of the builder, a state, a parameter of a block or one number of it, or what `tune` has by the name.
    """

    name: str
    kind: str
    block: str = ""
    parameter: str = ""
    number: int | None = None


class Record(NamedTuple):
    """The outcome of a run: the measure, or why it failed."""

    values: Measured
    failed: str | None = None


class RunAbandoned(BaseException):
    """Raised within a run that nobody waits for any more."""


@dataclass
class Job:
    """The job that all workers of a sweep share; all of it can be pickled where the builder and the measure can.

    Attributes
    ----------
    make : callable
        Makes a simulation.
    build : callable or None
        Makes a diagram, called as build(sim, **options).
    given : SimpleQueue or None
        Without a builder: diagrams, of which each worker takes one.
    fixed : dict
        Options of the builder that do not vary.
    settings : dict
        Keywords of `Simulation.run`.
    varied : tuple of AxisTarget
    measure : callable
    engine : str
    """

    make: Callable[[], Any]
    build: Callable[..., Any] | None
    given: queue.SimpleQueue[Any] | None
    fixed: dict[str, Any]
    settings: dict[str, Any]
    measure: Callable[[Any], Any]
    engine: str
    varied: tuple[AxisTarget, ...] = ()
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class Worker:
    """Carries out runs, one after the other, in diagrams that nobody else touches.

    Parameters
    ----------
    job : Job
    apart : bool
        Whether others carry out runs at the same time, so that nothing may be shared which a builder did not make
        itself, as a law that was there before.
    """

    def __init__(self, job: Job, apart: bool = True) -> None:
        self.job, self._apart = job, apart
        self.sim = job.make()
        #: Diagrams by their options, which are kept, lest another object come to stand at the address of one.
        self._diagrams: dict[tuple[Any, ...], tuple[Any, Mapping[str, Any]]] = {}
        #: What handlers of events may change in them, by the diagram's address.
        self._held: dict[int, Held] = {}
        self._interpreted: set[int] = set()

    def diagram(self, options: Mapping[str, Any]) -> Any:
        """Return the diagram of some options, compiled for running."""
        key = tuple((name, _mark(value)) for name, value in sorted(options.items()))
        bd, _ = self._diagrams.pop(key, (None, None))
        if bd is None:
            bd = self._built(options)
            compile_diagram(bd)
            while len(self._diagrams) >= _KEPT:
                oldest = id(self._diagrams.pop(next(iter(self._diagrams)))[0])
                self._interpreted.discard(oldest)
                del self._held[oldest]
            self._held[id(bd)] = Held(handling(bd.blocklist), remembered=False)
        self._diagrams[key] = bd, options
        return bd

    def _built(self, options: Mapping[str, Any]) -> Any:
        if self.job.build is None:
            assert self.job.given is not None
            return self.job.given.get_nowait()
        try:
            bd = self.job.build(self.sim, **self.job.fixed, **options)
        except CstormError:
            raise
        except Exception as error:
            raise DiagramError(f"sweep: the builder failed: {type(error).__name__}: {error}") from error
        if not hasattr(bd, "blocklist"):
            raise InvalidType(f"sweep: build returned {shown(bd)}, not a diagram; end it with 'return bd'")
        return _apart(bd) if self._apart else bd

    def run(self, values: Sequence[Any]) -> Record:
        """Carry out one run, with a value for each axis."""
        pairs, bd = list(zip(self.job.varied, values, strict=True)), None
        try:
            bd = self.diagram({v.name: value for v, value in pairs if v.kind == "option"})
            for varied, value in pairs:
                if varied.kind == "parameter":
                    set_parameter(bd, varied, value)
            with numbers_set(bd, {v.name: value for v, value in pairs if v.kind == "number"}):
                out = self._simulate(bd, {v.name: value for v, value in pairs if v.kind == "state"})
                if out.status == "interrupted":
                    raise KeyboardInterrupt
                return Record(measured(self.job.measure, out))
        except NotTranslated:
            raise
        except CstormError as error:
            return Record({}, str(error))
        finally:
            if bd is not None:
                self._held[id(bd)].restore()

    def _simulate(self, bd: Any, states: Mapping[str, Any]) -> Any:
        """Run a diagram; what cannot be translated is run by its blocks, unless it must not."""
        by_blocks = self.job.engine == "interpreted" or id(bd) in self._interpreted
        self.sim.engine = "interpreted" if by_blocks else "compiled"
        try:
            return self.sim.run(bd, start=states or None, on_error="raise", **self.job.settings)
        except NotTranslated as error:
            if self.job.engine == "compiled":
                raise
            notice_once(error.told("it runs interpreted"))
            self._interpreted.add(id(bd))
            return self._simulate(bd, states)


def _apart(bd: Any) -> Any:
    """Return a copy of a diagram that has just been built, the diagram itself where that cannot be copied."""
    try:
        return copy.deepcopy(bd, {id(bd.runtime): bd.runtime})
    except Exception:  # a file, a lock: each refuses in its own way, and is hardly there before the diagram
        return bd


def _mark(value: Any) -> bytes | int:
    """Return what tells a value of an option from others: by content, or where that is unknown the object itself."""
    try:
        return pickle.dumps(value)
    except Exception:  # a function within a function, a lock: each class refuses in its own way
        return id(value)


def set_parameter(bd: Any, varied: AxisTarget, value: Any) -> None:
    """Set a parameter of a block, or one number of it, as ``set_param`` does."""
    block = bd.blocknames.get(varied.block)
    if block is None:
        raise unknown_name("block", varied.block, bd.blocknames)
    option(varied.parameter, f"block {varied.block!r}: parameter", block._parameters)
    try:
        if varied.number is not None:
            numbers = np.array(getattr(block, varied.parameter), dtype=float)
            if not 0 <= varied.number < numbers.size:
                raise InvalidValue(f"{varied.name}: {varied.parameter} has {numbers.size} numbers, counted from 0")
            numbers.flat[varied.number] = value
            value = numbers
        block._parameters[varied.parameter](block, varied.parameter, value)  # set_param of bdsim's blocks prints it
    except CstormError:
        raise
    except Exception as error:
        raise InvalidValue(f"{varied.name}: cannot be set to {value!r}: {type(error).__name__}: {error}") from error


@contextmanager
def numbers_set(bd: Any, given: Mapping[str, Any]) -> Iterator[None]:
    """Let numbers that `tune` has by names be others, to the end of the ``with`` block.

    They are as before then: what moves the pose of a link goes from where that is.
    """
    if not given:
        yield
        return
    found, parts = Parameters(bd, list(given)), list[Array]()
    for (name, value), size in zip(given.items(), found.sizes, strict=True):
        parts.append(np.ravel(as_floats(value, name)))
        if parts[-1].size != size:
            raise ShapeError(f"{name}: expected {size} numbers, got {shown(value)}")
    with found.kept():
        found.set(np.concatenate(parts))
        yield


# ---------------------------------------------------------------- what an executor calls

#: The worker of each thread, kept from one task of a sweep to the next.
_here = threading.local()
#: Seconds after which a task is handed back, though not all of its runs are done, so that these are kept.
_PATIENCE = 0.5


class ThreadWorkers:
    """The workers of the threads of this process: their runs can be ended, also one that goes on.

    Parameters
    ----------
    first : Worker
        One that is there already, for one of the threads.
    """

    def __init__(self, first: Worker) -> None:
        self.stopped = False
        self._spare = [first]
        self._workers = [first]

    def hire(self, job: Job) -> Worker:
        """Return a worker for a thread."""
        try:
            return self._spare.pop()
        except IndexError:
            worker = Worker(job)
            self._workers.append(worker)
            return worker

    def stop(self) -> None:
        """End what runs, and let nothing more begin."""
        self.stopped = True
        for worker in self._workers:
            worker.sim.post(_abandon)


def _abandon() -> None:
    raise RunAbandoned


def work(
    job: Job, tasks: Sequence[tuple[int, tuple[Any, ...]]], crew: ThreadWorkers | None = None
) -> list[tuple[int, Record]]:
    """Carry out runs, given by number and values, with the worker of this thread; return their records by number.

    It returns early, after at least one run, when that has taken a while, and with what is done where it is stopped.
    """
    done: list[tuple[int, Record]] = []
    interrupts = _interrupts() if crew is None else None
    until = time.monotonic() + _PATIENCE
    try:
        if interrupts is not None:
            interrupts.release()
            if interrupts.just_pressed():
                return done
        worker = getattr(_here, "worker", None)
        if worker is None or worker.job.id != job.id:
            worker = _here.worker = Worker(job) if crew is None else crew.hire(job)
        for number, values in tasks:
            if (crew is not None and crew.stopped) or (done and time.monotonic() > until):
                break
            done.append((number, worker.run(values)))
    except (KeyboardInterrupt, RunAbandoned):
        _here.worker = None
    finally:
        if interrupts is not None:
            interrupts.linger()
    return done


def _interrupts() -> Interrupts:
    """Return what Ctrl-C does in this thread of an executor's process, from its first task of a sweep on."""
    interrupts: Interrupts | None = getattr(_here, "interrupts", None)
    if interrupts is None:
        interrupts = _here.interrupts = Interrupts()
    interrupts.install()
    return interrupts
