"""Samples in memory that two processes share: one writes and never waits, the other reads what is not yet overwritten.

The memory has no name where that can be had, so that nothing is left of it when both processes are gone, in whatever
way they went. It holds the number of samples written so far, then the times, then the rows; sample k stands in slot
k modulo the number of slots, which is a power of two.
"""

from __future__ import annotations

import mmap
import os
import secrets
import sys
import tempfile
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array

_HEAD = 64
"""Bytes before the times: the count, with a cache line of its own."""
_MOST_BYTES, _MOST_SLOTS, _FEWEST_SLOTS = 16 * 2**20, 2**18, 2**10


def ring_slots(width: int) -> int:
    """Return how many samples of so many numbers the ring holds: a power of two, within some megabytes.

    >>> ring_slots(7), ring_slots(10_000)
    (262144, 1024)
    """
    slots = _MOST_SLOTS
    while slots > _FEWEST_SLOTS and slots * 8 * (width + 1) > _MOST_BYTES:
        slots //= 2
    return slots


def ring_bytes(slots: int, width: int) -> int:
    """Return the size of the memory for so many samples of so many numbers."""
    return _HEAD + 8 * slots * (width + 1)


class SharedMemory:
    """Memory to be shared with a process started next: made empty, sized later."""

    def __init__(self) -> None:
        self.fd: int | None = None
        self.tag: str | None = None
        if sys.platform == "win32":
            self.tag = f"cstormpy-{os.getpid()}-{secrets.token_hex(8)}"  # ends with its last handle
        elif hasattr(os, "memfd_create"):
            self.fd = os.memfd_create("cstormpy-live")
        else:
            self.fd, path = tempfile.mkstemp(prefix="cstormpy-live-")
            os.unlink(path)

    @property
    def inherited(self) -> tuple[int, ...]:
        """The descriptors that the other process must inherit."""
        return () if self.fd is None else (self.fd,)

    def name(self) -> dict[str, Any]:
        """Return by what the other process finds it."""
        return {"fd": self.fd, "tag": self.tag}

    def map(self, size: int) -> mmap.mmap:
        """Give it its size, and map it."""
        if self.fd is not None:
            os.ftruncate(self.fd, size)
        return attach(self.name(), size)

    def close(self) -> None:
        """Let go of the descriptor; what is mapped stays."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def attach(name: dict[str, Any], size: int) -> mmap.mmap:
    """Map memory that the other process made."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size, tagname=name["tag"])
    return mmap.mmap(name["fd"], size)


class RingWriter:
    """Writes samples, a row of numbers each."""

    __slots__ = ("_count", "_head", "_mask", "_rows", "_times", "width")

    def __init__(self, memory: mmap.mmap, slots: int, width: int) -> None:
        # a memoryview takes single numbers in a third of the time that an array does
        self._head, self._times, self._rows = _parts(memory, slots, width)
        self._mask = slots - 1
        self._count = 0
        self.width = width

    def write(self, t: float, row: ArrayLike) -> None:
        """Add one sample; the oldest one is overwritten. An array is quicker than a list."""
        k = self._count
        slot = k & self._mask
        self._times[slot] = t
        self._rows[slot] = row
        # the count last: who reads it finds the sample in its place
        self._count = k = k + 1
        self._head[0] = k

    def write_many(self, t: Array, rows: Array) -> None:
        """Add samples (N,), (N, width) at once."""
        slots = self._mask + 1
        for first in range(0, len(t), slots // 4):  # in parts, so that a reader keeps up
            part = slice(first, first + slots // 4)
            where = (self._count + np.arange(len(t[part]))) & self._mask
            np.asarray(self._times)[where] = t[part]
            self._rows[where] = rows[part]
            self._count += len(where)
            self._head[0] = self._count


class RingReader:
    """Reads the samples that were written since it was asked last."""

    def __init__(self, memory: mmap.mmap, slots: int, width: int) -> None:
        self._head, times, self._rows = _parts(memory, slots, width)
        self._times = np.asarray(times)
        self._slots = slots
        self.count = 0
        #: How many samples were overwritten before they were read.
        self.lost = 0

    def read(self) -> tuple[Array, Array]:
        """Return copies of the new samples, (N,) and (N, width)."""
        end = self._head[0]
        first = max(self.count, end - self._slots)
        t, rows = self._copy(first, end)
        # what was overwritten while it was copied, the slot that is being written now included
        whole = max(first, self._head[0] + 1 - self._slots)
        cut = min(whole, end) - first
        self.lost += first + cut - self.count
        self.count = end
        return t[cut:], rows[cut:]

    def _copy(self, first: int, end: int) -> tuple[Array, Array]:
        a, b = first % self._slots, end % self._slots
        if a < b or first == end:
            return self._times[a:b].copy(), self._rows[a:b].copy()
        return (
            np.concatenate([self._times[a:], self._times[:b]]),
            np.concatenate([self._rows[a:], self._rows[:b]]),
        )


def _parts(memory: mmap.mmap, slots: int, width: int) -> tuple[memoryview[int], memoryview[float], Array]:
    """Return the count, the times and the rows that lie in the memory."""
    whole = memoryview(memory)
    times = whole[_HEAD : _HEAD + 8 * slots].cast("d")
    rows = np.frombuffer(memory, dtype=np.float64, offset=_HEAD + 8 * slots, count=slots * width)
    return whole[:8].cast("q"), times, rows.reshape(slots, width)
