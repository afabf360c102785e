"""The window's end of the two pipes to the simulation: lines of JSON, and how to know that nobody is there."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO

_GRACE = 3.0
"""Seconds after which a window that hangs is ended, once the simulation is gone."""
_MOST_WAITING = 1 << 20
"""Bytes that wait to be written at most; a simulation that is stopped takes none."""


class Channel:
    """Messages from and to the simulation; it never waits.

    Parameters
    ----------
    incoming : file
        Lines come from here.
    outgoing : int
        Descriptor that lines go to.
    """

    def __init__(self, incoming: BinaryIO, outgoing: int) -> None:
        #: Whether the simulation is gone.
        self.lost = False
        #: Whether it has nothing more to say, which `messages` tells in its turn.
        self.over = False
        self._incoming, self._outgoing = incoming, outgoing
        self._messages: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._waiting = bytearray()
        self._parent = os.getppid()
        if sys.platform != "win32":
            os.set_blocking(outgoing, False)
        threading.Thread(target=self._listen, name="listen", daemon=True).start()

    @classmethod
    def of_process(cls) -> Channel:
        """Return the channel over standard input and output; what else is printed goes to standard error."""
        outgoing = os.dup(1)
        os.dup2(2, 1)
        return cls(sys.stdin.buffer, outgoing)

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._incoming:
                with contextlib.suppress(json.JSONDecodeError):
                    self._messages.put(json.loads(line))
        self.over = True
        self._messages.put(None)
        time.sleep(_GRACE)
        os._exit(0)  # Qt hangs: nobody would ever end this process

    def messages(self) -> Iterator[dict[str, Any]]:
        """Return what came since the last call."""
        if os.getppid() != self._parent:  # a fork of the simulation may still hold the other end of the pipe
            self.lost = True
        with contextlib.suppress(Empty):
            while True:
                message = self._messages.get_nowait()
                if message is None:
                    self.lost = True
                    return
                yield message

    def send(self, **message: Any) -> None:
        """Say something; it goes out at the next `flush`."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting += json.dumps(message).encode() + b"\n"

    def flush(self) -> None:
        """Write what waits, as much as the pipe takes."""
        try:
            while self._waiting:
                del self._waiting[: os.write(self._outgoing, self._waiting)]
        except BlockingIOError:
            pass
        except OSError:
            self.lost = True
            self._waiting.clear()
