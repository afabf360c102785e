"""Hands the runs of a sweep out to workers and takes in what came of them."""

from __future__ import annotations

import itertools
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.reporting import Progress
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.sweep.axes import Axes
from cstormpy.simulation.sweep.workers import Job, Record, ThreadWorkers, Worker, work

#: Runs in a task, at most, and tasks for each worker, at least.
_LARGEST, _TASKS = 50, 8
#: Tasks of each worker that are handed out at once, so that none waits for the next.
_AHEAD = 2
#: Seconds between two looks whether Ctrl-C was pressed.
_LOOK = 0.1
#: Seconds in which an executor's tasks are waited for after Ctrl-C, so that what they have done is kept.
_GRACE = 1.0


def how_many(workers: Any, executor: Executor | None) -> int:
    """Return how many workers there are to be."""
    if workers is None:
        known = getattr(executor, "_max_workers", None)
        return int(known) if isinstance(known, int) else os.cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidValue(f"workers: expected a number of threads from 1 on, got {shown(workers)}")
    if executor is not None:
        raise InvalidValue("sweep: an executor has its own number of workers; give either workers or executor")
    return workers


def check_executor(executor: Any) -> None:
    """Refuse what is no executor."""
    if executor is not None and not isinstance(executor, Executor):
        hint = "; give client.get_executor()" if hasattr(executor, "get_executor") else ""
        raise InvalidType(f"executor: expected a concurrent.futures.Executor, got {shown(executor)}{hint}")


def check_pickling(job: Job, axes: Axes, executor: Executor | None) -> None:
    """Refuse what cannot be sent to other processes, where it is known that the executor pickles it."""
    if executor is None or not type(executor).__module__.startswith("concurrent.futures.process"):
        return
    for what, value in (
        ("builder", job.build),
        ("measure", job.measure),
        ("fixed options", job.fixed),
        *((f"axis {name!r}", values) for name, values in zip(axes.names, axes.values, strict=True)),
    ):
        try:
            pickle.dumps(value)
        except Exception as error:
            raise InvalidType(
                f"sweep: the {what} cannot be sent to another process ({error}); make it a function at the top level "
                "of a module"
            ) from error


class SweepRuns:
    """The runs of a sweep on their way.

    Parameters
    ----------
    job : Job
    axes : Axes
    records : dict of int to Record
        What is there already; it is added to.
    keep : callable
        Called with the numbers and records of each finished task.
    interrupts : Interrupts
        What tells of Ctrl-C.
    """

    def __init__(
        self,
        job: Job,
        axes: Axes,
        records: dict[int, Record],
        keep: Callable[[Sequence[tuple[int, Record]]], None],
        interrupts: Interrupts,
    ) -> None:
        self.job, self.axes, self.records, self._keep = job, axes, records, keep
        self.message = ""
        self._interrupts = interrupts
        self._todo: Iterator[int] = iter(())
        self._backlog: deque[int] = deque()
        self._pending: dict[Future[list[tuple[int, Record]]], list[int]] = {}

    def take(self, found: Sequence[tuple[int, Record]]) -> None:
        """Take in what came of some runs."""
        self.records.update(found)
        self._keep(found)

    def alone(self, worker: Worker, number: int) -> bool:
        """Carry out one run in this thread, which compiles what is to be compiled; return whether it was."""
        try:
            self._interrupts.release()
            self.take([(number, worker.run(self.axes.run(number)))])
        except KeyboardInterrupt:
            self.message = "interrupted"
        return not self.message

    def go(self, todo: Iterable[int], executor: Executor | None, count: int, first: Worker, progress: bool) -> None:
        """Carry out runs; where not all were, `message` says why.

        `first` is a worker that is there already, for one of the threads.
        """
        self._todo = iter(todo)
        crew = ThreadWorkers(first) if executor is None else None
        begin, end = len(self.records), len(self.axes)
        size = max(1, min(_LARGEST, -(-(end - begin) // (count * _TASKS))))
        self._interrupts.hold()
        with Progress("sweep", 0, end, "runs", enabled=progress) as line:
            pool = ThreadPoolExecutor(count, "cstormpy-sweep") if executor is None else executor
            try:
                while not self._interrupts.pressed:
                    self._hand_out(pool, size, count, crew)
                    if not self._pending:
                        break
                    self._collect(wait(self._pending, _LOOK, FIRST_COMPLETED).done)
                    line.update(len(self.records))
            except KeyboardInterrupt:
                self.message = "interrupted"
            except BrokenExecutor as error:
                self.message = f"the executor broke: {error}"
            finally:
                self._end(pool, crew)
        if self._interrupts.pressed:
            self.message = "interrupted"

    def _hand_out(self, pool: Executor, size: int, count: int, crew: ThreadWorkers | None) -> None:
        while len(self._pending) < _AHEAD * count:
            numbers = [self._backlog.popleft() for _ in range(min(size, len(self._backlog)))]
            numbers = numbers or list(itertools.islice(self._todo, size))
            if not numbers:
                return
            tasks = [(k, self.axes.run(k)) for k in numbers]
            arguments = (self.job, tasks) if crew is None else (self.job, tasks, crew)
            self._pending[self._submitted(pool, arguments)] = numbers

    def _submitted(self, pool: Executor, arguments: tuple[Any, ...]) -> Future[list[tuple[int, Record]]]:
        try:
            return pool.submit(work, *arguments)
        except Exception as error:
            if self._interrupts.pressed:  # by which a process that was to begin has ended
                raise KeyboardInterrupt from error
            if isinstance(error, RuntimeError) and "shutdown" in str(error):
                raise BrokenExecutor(str(error)) from error
            raise

    def _collect(self, done: Sequence[Future[list[tuple[int, Record]]]] | Any) -> None:
        for future in done:
            numbers = self._pending.pop(future)
            if future.cancelled():
                raise BrokenExecutor("its tasks were cancelled")
            found = future.result()
            self.take(found)
            if not found:  # Ctrl-C went to the worker
                raise KeyboardInterrupt
            self._backlog.extendleft(reversed(numbers[len(found) :]))

    def _end(self, pool: Executor, crew: ThreadWorkers | None) -> None:
        """Let nothing more begin, and take in what is done; threads of our own are waited for, others for a while."""
        running = [future for future in self._pending if not future.cancel()]
        if crew is not None:
            if self._pending:
                crew.stop()
            pool.shutdown(wait=True)
        else:
            self._interrupts.hold()
            wait(running, _GRACE)
        for future in self._pending:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.take(future.result())
        self._pending.clear()
