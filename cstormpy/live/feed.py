"""The simulating side of a live window: starts it, feeds it samples, and takes its commands.

The window is a process in a session of its own. Samples go through a ring in shared memory, all else as lines of JSON
through its standard input and output. The end of either is how each side knows that the other one is gone. Whatever
becomes of the window, the simulation goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidValue
from cstormpy.live.availability import available, is_on_screen, missing_library
from cstormpy.live.ring import RingWriter, SharedMemory, ring_bytes, ring_slots
from cstormpy.reporting import notice, notice_once

if TYPE_CHECKING:
    from cstormpy.live.description import Knob, LawChoice, LivePane

_START = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "runpy.run_module('cstormpy.live.window', run_name='__main__')"
)
_PATIENCE = 2.0
"""Seconds that a window has to close before it is ended."""
_KEPT_LINES = 20
"""So many lines of what the window's process complains about are kept."""

_HARMLESS = ("This plugin does not support", "QStandardPaths:", "qt.qpa.gl:", "libEGL warning")

Command = dict[str, Any]


class LiveFeed:
    """A live window, as the simulation sees it.

    Make it before anything slow: its process starts meanwhile, and says on the screen that it does. Nothing that it
    does raises because of the window: one that cannot be shown, or that is gone, takes samples like any other, and
    `alive` is False.

    Parameters
    ----------
    title : str
        Of the window.
    position : (int, int, int, int), optional
        Left, top, width and height of the window.
    kind : {"run", "search"}
        What it shows: a run, or the search for an optimal motion (`cstormpy.live.search`).

    Attributes
    ----------
    title : str
        May be changed until `show` is called.
    reason : str or None
        Why there is no window, if it could not be shown or ended otherwise than by its user.

    Examples
    --------
    >>> with LiveFeed("acrobot") as feed:                          # doctest: +SKIP
    ...     feed.show([LivePane("scope", "scope", ["q1", "q2"])], [Knob("law", "gain", 20.0)], end=10.0)
    ...     while t < 10.0:
    ...         feed.sample(t, row)
    ...         for command in feed.commands():
    ...             obey(command)
    ...     feed.finish("reached the end")
    ...     feed.hold()
    """

    def __init__(self, title: str = "cstormpy", position: Sequence[int] | None = None, kind: str = "run") -> None:
        self.title, self._kind = title, kind
        self._position = None if position is None else [int(p) for p in position]
        self._inbox: deque[Command] = deque()
        self._news = threading.Event()
        self._gone = threading.Event()
        #: Set once something is on the screen.
        self.seen = threading.Event()
        self._ready, self._shown = threading.Event(), threading.Event()
        self._replies: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._outbox: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._complaints: deque[str] = deque(maxlen=_KEPT_LINES)
        self._threads: list[threading.Thread] = []
        self._ended = self._closing = self._closed_by_user = False
        self._memory: SharedMemory | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: RingWriter | None = None
        self.sample: Callable[[float, ArrayLike], None] = _nowhere
        self.reason = available()
        if self.reason is None:
            self._start()
        else:
            self._gone.set()
            notice_once(f"no live window: {self.reason}")

    # the process

    def _start(self) -> None:
        self._memory = SharedMemory()
        # the same modules as here, wherever they were found: the same cstormpy above all
        command = [sys.executable, "-c", _START, self._kind, json.dumps([os.path.abspath(p) for p in sys.path])]
        options: dict[str, Any] = {"start_new_session": True, "pass_fds": self._memory.inherited}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
                **options,
            )
        except OSError as error:
            self._memory.close()
            self.reason = f"its process cannot be started: {error.strerror or error}"
            self._gone.set()
            notice_once(f"no live window: {self.reason}")
            return
        for work in (self._listen, self._collect_complaints, self._talk):
            self._threads.append(threading.Thread(target=work, name=f"live {work.__name__}", daemon=True))
            self._threads[-1].start()

    def _talk(self) -> None:
        """Write what is said to the window, so that nobody waits for it."""
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            while (message := self._outbox.get()) is not None:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()

    def _listen(self) -> None:
        """Take what the window says, until it is gone."""
        assert self._process is not None and self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                with contextlib.suppress(json.JSONDecodeError):
                    self._take(json.loads(line))
        self._find_out_why(self._process)
        self._gone.set()
        self._news.set()
        self._outbox.put(None)

    def _take(self, message: dict[str, Any]) -> None:
        if "do" in message:
            self._inbox.append(message)
            self._news.set()
        elif message.get("say") == "ready":
            self._ready.set()
        elif message.get("say") == "starting":
            self.seen.set()
        elif message.get("say") == "shown":
            self._shown.set()
        elif message.get("say") == "closed":
            self._closed_by_user = True
        elif message.get("say") == "failed":
            self.reason = str(message.get("reason"))
        else:
            self._replies.put(message)

    def _collect_complaints(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stderr:
                self._complaints.append(line.decode(errors="replace").strip())

    def _find_out_why(self, process: subprocess.Popen[bytes]) -> None:
        """Say in one line that the window is gone, and why, unless that was to be."""
        try:
            code = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if self._closing or (self._closed_by_user and self._ended):
            return
        if self._closed_by_user:
            notice(f"the live window was closed; the {self._kind} goes on")
            return
        self._threads[1].join(_PATIENCE)  # the last complaints
        self.reason = self.reason or _reason(code, list(self._complaints))
        after = "" if self._ended else f"; the {self._kind} goes on"
        if self._ready.is_set():
            notice(f"the live window is gone: {self.reason}{after}")
        else:
            notice_once(f"no live window: {self.reason}")

    # what is said to it

    def show(
        self,
        panes: Sequence[LivePane],
        controls: Sequence[Knob | LawChoice] = (),
        *,
        end: float,
        begin: float = 0.0,
        pace: float | None = 1.0,
        state: str = "running",
    ) -> None:
        """Say what to show: panes, in the order of their numbers in a row of samples, controls, and the time to run.

        Parameters
        ----------
        panes, controls
            Tiles of the window, sliders and choices.
        begin, end : float
            Time at the start and at the end [s], the two ends of the axes.
        pace : float or None
            Times real time, None for as fast as possible; what the panel shows at first.
        state : {"running", "paused"}
            What the panel shows at first.
        """
        if self._writer is not None:
            raise InvalidValue("live window: it shows a run already; make another LiveFeed for another one")
        if self._memory is None or not self.alive:
            return
        from cstormpy.live.description import described  # which knows mechanisms: too slow for the start

        content = described(panes, controls)
        width = content["width"]
        slots = ring_slots(width)
        size = ring_bytes(slots, width)
        self._writer = RingWriter(self._memory.map(size), slots, width)
        self.sample = self._writer.write
        self._tell(
            say="show",
            title=self.title,
            position=self._position,
            begin=float(begin),
            end=float(end),
            pace=pace,
            state=state,
            memory={**self._memory.name(), "size": size, "slots": slots},
            **content,
        )
        self._memory.close()

    def samples(self, t: ArrayLike, rows: ArrayLike) -> None:
        """Show many samples at once, (N,) and (N, width), as a compiled run has them."""
        if self._writer is not None:
            times = np.asarray(t, dtype=float)
            self._writer.write_many(times, np.asarray(rows, dtype=float).reshape(len(times), self._writer.width))

    def state(self, state: str, pace: float | None = None, message: str = "") -> None:
        """Say that the run is "running" or "paused", its pace, and what the status line is to say."""
        self._tell(say="state", state=state, pace=pace, message=message)

    def value(self, block: str, name: str, value: float, index: int | None = None) -> None:
        """Say where a parameter stands: after it was changed by other means, or refused."""
        self._tell(say="value", block=block, name=name, value=float(value), index=index)

    def law(self, block: str, name: str) -> None:
        """Say which law is active, after it was changed by other means."""
        self._tell(say="law", block=block, name=name)

    def gravity(self, pane: str, gravity: ArrayLike) -> None:
        """Say which gravity, (3,), acts on the mechanism of a pane: after it was changed."""
        self._tell(say="gravity", pane=pane, value=[float(g) for g in np.asarray(gravity, dtype=float)])

    def message(self, text: str) -> None:
        """Show a line in the window: why a command was refused, or what happened."""
        self._tell(say="message", text=text)

    def finish(self, message: str = "") -> None:
        """Say that the run has ended; the window stays, to look at what was."""
        self._ended = True
        self._tell(say="state", state="ended", pace=None, message=message)

    def _tell(self, **message: Any) -> None:
        if not self._gone.is_set():
            self._outbox.put(message)

    # what it says

    @property
    def alive(self) -> bool:
        """True where there is a window, or one that is just being made."""
        return not self._gone.is_set()

    def commands(self) -> Sequence[Command]:
        """Return what was asked for since the last call, oldest first; costs next to nothing if there is nothing.

        Each is a dictionary with "do", one of: "run", "pause", "step", "stop"; "pace" with "value", a number or None;
        "set" with "block", "name", "index" (None unless the parameter has several numbers), "value"; "law" with
        "block", "name"; "push" with "block", "link", "force" (in the base frame) and "point" (in the link's frame);
        "release".
        """
        inbox = self._inbox
        return [inbox.popleft() for _ in range(len(inbox))] if inbox else ()

    def wait(self, seconds: float) -> bool:
        """Wait until there is a command, the window is gone, or so many seconds have passed; True for a command.

        It is how a run that is paused, or ahead of its pace, is to sleep. Without a window it only sleeps.
        """
        if self._inbox:
            return True
        if self._gone.is_set():
            time.sleep(max(0.0, seconds))
            return False
        self._news.clear()
        if not self._inbox:  # one may have come in between
            self._news.wait(max(0.0, seconds))
        return bool(self._inbox)

    def wait_until_ready(self, seconds: float) -> bool:
        """Wait until the window is on the screen, with its panes once `show` was called; at most so long."""
        begin = time.monotonic()
        event = self._ready if self._writer is None else self._shown
        while not event.wait(0.02):
            if self._gone.is_set() or time.monotonic() - begin > seconds:
                return False
        return True

    # the end

    def hold(self, only_on_terminal: bool = True) -> None:
        """Wait until the user closes the window; return at once where nobody could: without a terminal or a screen.

        Ctrl-C ends the wait.
        """
        terminal = sys.stdout is not None and sys.stdout.isatty()
        if only_on_terminal and not (terminal and is_on_screen()):
            return
        if self.alive:
            notice("close the live window to go on (or press Ctrl-C)")
        with contextlib.suppress(KeyboardInterrupt):
            while not self._gone.wait(0.2):  # in short waits, which Ctrl-C can end on every system
                self._inbox.clear()

    def close(self) -> None:
        """Close the window, and wait until its process is gone."""
        self._closing = True
        self._outbox.put(None)
        if self._process is not None:
            _end_process(self._process, self._threads[2])
            for thread in self._threads:
                thread.join(_PATIENCE)
        if self._memory is not None:
            self._memory.close()

    def __enter__(self) -> LiveFeed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _environment() -> dict[str, str]:
    """Return the environment of the window: without the Qt plugins that OpenCV sets once it is imported."""
    return {name: value for name, value in os.environ.items() if not (name.startswith("QT_QPA_") and "cv2" in value)}


def _nowhere(t: float, row: ArrayLike) -> None:
    """Take a sample where nothing is shown."""


def _end_process(process: subprocess.Popen[bytes], talker: threading.Thread | None = None) -> None:
    """End a window's process: by the end of its input, or else less kindly."""
    if talker is not None:
        talker.join(_PATIENCE)
    for end in (None, process.terminate, process.kill):
        if end is not None:
            with contextlib.suppress(OSError):
                end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
            return


def _reason(code: int, complaints: list[str]) -> str:
    """Return why a window's process ended, from what it left."""
    text = "\n".join(complaints)
    if "could not connect to display" in text:  # first: Qt then suspects a library too
        return f"Qt finds no display (DISPLAY={os.environ.get('DISPLAY', '')!r}); try xvfb-run"
    mend = missing_library(text)
    if mend is not None:
        return mend
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    lines = [line for line in complaints if line and not line.startswith(_HARMLESS)]
    ended = code in (-signal.SIGTERM, -getattr(signal, "SIGKILL", 9))  # by somebody else: no fault of its own
    return f"its process ended ({how})" + (f": {lines[-1][:200]}" if lines and not ended else "")
