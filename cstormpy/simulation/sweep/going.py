"""Hands the runs of a sweep out to workers and takes in what came of them."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.reporting import Progress
from cstormpy.simulation.sweep.axes import Axes
from cstormpy.simulation.sweep.workers import Crew, Job, Record, Worker, work

__all__ = ["Going", "check_executor", "check_pickling", "how_many"]

#: Runs in a task, at most, and tasks for each worker, at least.
_LARGEST, _TASKS = 50, 8
#: Tasks of each worker that are handed out at once, so that none waits for the next.
_AHEAD = 2
#: Seconds between two looks whether Ctrl-C was pressed, where the system does not tell sooner.
_LOOK = 0.1


def how_many(workers: Any, executor: Executor | None) -> int:
    """Return how many workers there are to be."""
    if workers is None:
        known = getattr(executor, "_max_workers", None)
        return int(known) if isinstance(known, int) else os.cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InvalidValue(f"workers: expected a number of threads from 1 on, got {workers!r}")
    if executor is not None:
        raise InvalidValue("sweep: an executor has its own number of workers; give either workers or executor")
    return workers


def check_executor(executor: Any) -> None:
    """Refuse what is no executor."""
    if executor is not None and not isinstance(executor, Executor):
        hint = "; give client.get_executor()" if hasattr(executor, "get_executor") else ""
        raise InvalidType(f"executor: expected a concurrent.futures.Executor, got a {type(executor).__name__}{hint}")


def check_pickling(job: Job, axes: Axes, executor: Executor | None) -> None:
    """Refuse what can not be sent to other processes, where it is known that the executor pickles it."""
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


class Going:
    """The runs of a sweep on their way.

    Parameters
    ----------
    job : Job
    axes : Axes
    records : dict of int to Record
        What is there already; it is added to.
    keep : callable
        Called with the numbers and records of each finished task.
    """

    def __init__(
        self,
        job: Job,
        axes: Axes,
        records: dict[int, Record],
        keep: Callable[[Sequence[tuple[int, Record]]], None],
    ) -> None:
        self.job, self.axes, self.records, self._keep = job, axes, records, keep
        self.message = ""
        self._backlog: deque[int] = deque()
        self._pending: dict[Future[list[tuple[int, Record]]], list[int]] = {}

    def take(self, found: Sequence[tuple[int, Record]]) -> None:
        """Take in what came of some runs."""
        self.records.update(found)
        self._keep(found)

    def alone(self, worker: Worker, number: int) -> bool:
        """Carry out one run in this thread, which compiles what is to be compiled; return whether it was."""
        try:
            self.take([(number, worker.run(self.axes.run(number)))])
        except KeyboardInterrupt:
            self.message = "interrupted"
        return not self.message

    def go(self, todo: Sequence[int], executor: Executor | None, count: int, first: Worker, progress: bool) -> bool:
        """Carry out runs; return whether all were, and else say in `message` why not.

        `first` is a worker that is there already, for one of the threads.
        """
        self._backlog.extend(todo)
        crew = Crew(first) if executor is None else None
        size = max(1, min(_LARGEST, -(-len(todo) // (count * _TASKS))))
        begin = len(self.records)
        with Progress("sweep", begin, begin + len(todo), "runs", enabled=progress) as line:
            pool = ThreadPoolExecutor(count, "cstormpy-sweep") if executor is None else executor
            try:
                while self._backlog or self._pending:
                    self._hand_out(pool, size, count, crew)
                    self._collect(wait(self._pending, _LOOK, FIRST_COMPLETED).done)
                    line.update(len(self.records))
            except KeyboardInterrupt:
                self.message = "interrupted"
            except BrokenExecutor as error:
                self.message = f"the executor broke: {error}"
            finally:
                self._end(pool, crew)
        return not self.message

    def _hand_out(self, pool: Executor, size: int, count: int, crew: Crew | None) -> None:
        while self._backlog and len(self._pending) < _AHEAD * count:
            numbers = [self._backlog.popleft() for _ in range(min(size, len(self._backlog)))]
            tasks = [(k, self.axes.run(k)) for k in numbers]
            arguments = (self.job, tasks) if crew is None else (self.job, tasks, crew)
            self._pending[pool.submit(work, *arguments)] = numbers

    def _collect(self, done: Sequence[Future[list[tuple[int, Record]]]] | Any) -> None:
        for future in done:
            numbers = self._pending.pop(future)
            found = future.result()
            self.take(found)
            if not found:  # Ctrl-C went to the worker
                raise KeyboardInterrupt
            self._backlog.extendleft(reversed(numbers[len(found) :]))

    def _end(self, pool: Executor, crew: Crew | None) -> None:
        """Let nothing more begin, and take in what is done; threads of our own are waited for."""
        for future in self._pending:
            future.cancel()
        if crew is not None:
            if self._pending:
                crew.stop()
            pool.shutdown(wait=True)
        for future in self._pending:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.take(future.result())
        self._pending.clear()
