"""Times that mean something on a noisy machine: contestants take turns, medians are compared, ratios reported."""

from __future__ import annotations

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


def _loops(run: Callable[[], object], seconds: float) -> int:
    run()
    begin = time.perf_counter()
    run()
    once = max(time.perf_counter() - begin, 1e-7)
    return max(1, int(seconds / once))
