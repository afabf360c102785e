"""The searching side of a window that shows how a motion gets better: motion, torques and cost of each start."""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import CstormError
from cstormpy.live.feed import LiveFeed
from cstormpy.mechanism import files
from cstormpy.optimal.plotting import units

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.samples import Samples
    from cstormpy.optimal.solution import Solution
    from cstormpy.optimal.starts import Progressed

EVERY = 0.12
"""Seconds between two pictures at least."""

SHARE = 50.0
"""A picture is followed by this many times as long as it took without one: it costs a fiftieth of the time at most."""

MOST = 160
"""Samples of a motion that are sent at most."""

FEASIBLE = 1e-6
"""Largest violation of a scaled constraint that counts as none."""


def packed(array: ArrayLike) -> str:
    """Return numbers as text that JSON holds.

    >>> len(packed(np.zeros((100, 3))))
    1600
    """
    return base64.b64encode(np.ascontiguousarray(array, dtype=np.float32).tobytes()).decode()


class _Feed(LiveFeed):
    """The process of the window, told what a search has to say."""

    def tell(self, say: str, **message: Any) -> None:
        self._tell(say=say, **message)


class SearchWindow:
    """A window that shows a search; what `Problem.solve` makes for ``live=True``.

    It shows the motion and the torques of the start that leads, and the cost of all starts by iteration. Where it can
    not be shown one line says why, and the search goes on; so it does if the window is closed. Its button "Stop" ends
    the search with the best so far.

    Parameters
    ----------
    title : str
        Of the window.
    position : (int, int, int, int), optional
        Left, top, width and height.
    hold : bool
        Whether to wait at the end, on a terminal and with a screen, until the window is closed.

    Examples
    --------
    >>> problem.solve(live=SearchWindow("swing-up", hold=False))      # doctest: +SKIP
    """

    def __init__(self, title: str = "optimal motion", position: Sequence[int] | None = None, hold: bool = True) -> None:
        self.feed = _Feed(title, position, kind="search")
        self._position, self._hold = None if position is None else list(position), hold
        self._lock = threading.Lock()
        self._stopped = False
        self._forget()

    def _forget(self) -> None:
        self._costs: list[tuple[int, int, float, float]] = []
        self._leader, self._best = 0, (True, np.inf)
        self._next = 0.0

    @property
    def reason(self) -> str | None:
        """The reason why there is no window, if it could not be shown."""
        return self.feed.reason

    # what the search says

    def begin(self, problem: Problem, starts: int, stage: str) -> None:
        """Lay out the window for a problem; a later stage takes the place of the one before."""
        with self._lock:
            self._forget()
            mech = problem.mech
            limits = [limit for limit in problem.limits if limit.kind == "torque"]
            bounds = {float(b) for limit in limits for b in (*limit.lower, *limit.upper) if np.isfinite(b)}
            self.feed.tell(
                "search",
                title=self.feed.title,
                position=self._position,
                stage=stage,
                starts=starts,
                mechanism=files.to_dict(mech),
                joints=list(mech.names),
                units=units(mech),
                motors=[mech.joint_index(name) for name in mech.actuated],
                bounds=sorted(bounds),
            )

    def update(self, now: Progressed) -> bool:
        """Take an iteration; now and then a picture is made of it. Return whether "Stop" was pressed."""
        if not self.feed.alive:
            return self._stopped
        with self._lock:
            self._costs.append((now.start, now.iteration, now.cost, now.violation))
            rank = (now.violation > FEASIBLE, now.violation if now.violation > FEASIBLE else now.cost)
            if rank <= self._best:
                self._best, self._leader = rank, now.start
            begin = time.perf_counter()
            if begin >= self._next:
                self._show(now)
                end = time.perf_counter()
                self._next = end + max(EVERY, SHARE * (end - begin))
        self._stopped = self._stopped or any(command["do"] == "stop" for command in self.feed.commands())
        return self._stopped

    def finish(self, solution: Solution | None) -> None:
        """Show what was found, and leave the window to the user; close it where the search failed."""
        if solution is None:
            self.close()
            return
        with self._lock:
            self._send_costs()
            self._send_motion(solution.at(np.linspace(0.0, solution.duration, MOST)))
            word = "converged" if solution.converged else f"ended: {solution.reason}"
            self.feed.tell(
                "found",
                text=f"{word}  \u2014  cost {solution.cost:.6g}, T = {solution.duration:.5g} s, "
                f"{solution.seconds:.3g} s of search",
            )
            self.feed.finish()
        if self._hold and self.feed.reason is None:
            self.feed.hold()

    def close(self) -> None:
        """Close the window, and wait until its process is gone."""
        self.feed.close()

    # what is sent

    def _show(self, now: Progressed) -> None:
        """Send the costs that are new, and the motion if it is that of the start that leads."""
        self._send_costs()
        best = f", best {self._best[1]:.6g}" if not self._best[0] else ""
        self.feed.tell(
            "progress",
            text=f"start {now.start + 1}, iteration {now.iteration}  \u2014  cost {now.cost:.6g}{best}, "
            f"violation {now.violation:.1e}, {now.seconds:.1f} s",
        )
        if now.start == self._leader:
            with contextlib.suppress(CstormError):  # a trial whose motion is not finite; the next one comes
                self._send_motion(now.problem.motion(now.x))

    def _send_costs(self) -> None:
        self.feed.tell("costs", leader=self._leader, rows=packed(self._costs), count=len(self._costs))
        self._costs = []

    def _send_motion(self, at: Samples) -> None:
        kept = np.unique(np.linspace(0, len(at) - 1, MOST).round().astype(int))
        self.feed.tell("motion", count=len(kept), t=packed(at.t[kept]), q=packed(at.q[kept]), tau=packed(at.tau[kept]))
