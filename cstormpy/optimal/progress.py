"""The line that tells how a search goes."""

from __future__ import annotations

import threading
import time

from cstormpy.reporting import Progress


class SearchLine(Progress):
    """The line of `Progress` for a search: stage, start, iteration, cost, violation and time."""

    def __init__(self, name: str, starts: int, enabled: bool = True) -> None:
        super().__init__(name or "search", 0.0, float(starts), enabled=enabled)
        self._starts = starts
        self._writing = threading.Lock()
        self._least = float("inf")

    def show(self, start: int, iteration: int, cost: float, violation: float) -> None:
        """Say where one of the starts stands; cheap enough to be called at each iteration, by any thread."""
        with self._writing:
            if violation <= 1e-6:
                self._least = min(self._least, cost)
            if not self.due:
                return
            best = [f"best {self._least:.6g}"] if self._starts > 1 and self._least < float("inf") else []
            stands = f"{self.name}: start {start + 1} of {self._starts}, iteration {iteration}"
            spent = f"{time.perf_counter() - self._started:.1f} s"
            self.say(stands, f"cost {cost:.6g}", f"violation {violation:.1e}", *best, spent)
