"""Times that mean something on a noisy machine: contestants take turns, medians are compared, ratios reported."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from statistics import median

ROUNDS = 15
SECONDS = 0.02


def interleave(
    contestants: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, seconds: float = SECONDS
) -> dict[str, float]:
    """Return the median time of one call of each contestant [s], measured turn by turn."""
    loops = {name: _loops(run, seconds) for name, run in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            begin = time.perf_counter()
            for _ in range(loops[name]):
                run()
            times[name].append((time.perf_counter() - begin) / loops[name])
    return {name: median(values) for name, values in times.items()}


def gain(
    before: Callable[[], object],
    after: Callable[[], object],
    rounds: int = 40,
    seconds: float = 0.06,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return how many times as fast the second is: the median of the ratios of times taken one after the other."""
    contestants = [(run, _loops(run, seconds)) for run in (before, after)]
    ratios = []
    for _ in range(rounds):
        times = []
        for run, loops in contestants:
            begin = clock()
            for _ in range(loops):
                run()
            times.append((clock() - begin) / loops)
        ratios.append(times[0] / times[1])
    return median(ratios)


def _loops(run: Callable[[], object], seconds: float) -> int:
    run()
    begin = time.perf_counter()
    run()
    once = max(time.perf_counter() - begin, 1e-7)
    return max(1, int(seconds / once))


def gain_of_two_processes(run: Callable[[], object], rounds: int = 5, seconds: float = 0.1) -> float:
    """Return how many times as much two processes at once get done as one alone: the cores' share of each other."""
    gains = []
    for _ in range(rounds):
        alone, together = (sum(_counts(run, processes, seconds)) for processes in (1, 2))
        gains.append(together / alone)
    return median(gains)


def _counts(run: Callable[[], object], processes: int, seconds: float) -> list[float]:
    """Return how often per second each of some processes, all at once, gets something done."""
    context = multiprocessing.get_context("fork")
    gate, rates = context.Barrier(processes), context.SimpleQueue()

    def repeat() -> None:
        run()
        gate.wait()
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            run()
            count += 1
        rates.put(count / (time.perf_counter() - begin))

    workers = [context.Process(target=repeat) for _ in range(processes)]
    for worker in workers:
        worker.start()
    found = [rates.get() for _ in workers]
    for worker in workers:
        worker.join()
    return found
