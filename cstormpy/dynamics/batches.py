"""Runs batch kernels: scratch memory for each thread, samples side by side, threads where asked for."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.dynamics.checked_arguments import Samples, failure
from cstormpy.errors import InvalidValue, shown
from cstormpy.graph.arrays import is_symbolic
from cstormpy.kernels import layout

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from cstormpy.kernels.compiling import Entry
    from cstormpy.linkage import Linkage
    from cstormpy.linkage.tables import Tables

#: Above this many coordinates the matrices of samples side by side no longer fit the processor's caches (measured).
MANY_COORDINATES = 80

#: Calling another thread to help costs about a third of this [s]; each is called for at least so much work (measured).
HAND_OVER = 3e-4
#: From here on [s] a part takes much longer than its call from Python.
LONG_ENOUGH = 3e-5
#: A part is at most this share of what each thread still has before it: one that wakes late, or is held up, does not
#: hold up the others, and the last parts are short.
SHARE = 0.5

_GOOD = (-1, 0)
#: A prepared function's answer where its arguments are not arrays of the right kind.
WRONG = -2

_local = threading.local()
#: Seconds per sample of a kernel for mechanisms of a size, as seen last; a wrong one costs a hand-over and no more.
_rates: dict[tuple[str, int, int], float] = {}
_RATES_KEPT = 256


def workspace(numbers: int) -> Array:
    """Return scratch memory of this thread, kept for the next call."""
    held: Array | None = getattr(_local, "workspace", None)
    if held is None or held.size < numbers:
        held = _local.workspace = _scratch(numbers)
    return held


def _scratch(numbers: int) -> Array:
    """Return scratch memory that begins where a line of the cache does."""
    room = np.zeros(numbers + layout.LANES)
    return room[-(room.ctypes.data // room.itemsize) % layout.LANES :]


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: as many as given, or one for each core if None."""
    if threads is None:
        return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1))
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise InvalidValue(f"threads: expected a positive number or None for one per core, got {shown(threads)}")
    return int(threads)


#: Fills the rows from one to another; returns the first row of a group that holds a bad one, or -1, and its status.
Part = Callable[[int, int], tuple[int, int]]


def part_of(call: Callable[..., int], arrays: Sequence[Array]) -> Part:
    """Return what fills rows of arrays by the built-in function of a straight line."""

    def part(start: int, stop: int) -> tuple[int, int]:
        bad = call(*arrays, start, stop)
        return bad, int(bad != -1)

    return part


def run_batch(
    entry: Entry,
    tables: Tables,
    arguments: tuple[Any, ...],
    count: int,
    numbers: int,
    threads: int | None,
) -> tuple[int, int]:
    """Run a batch kernel, or its straight line, over all samples.

    Returns the first bad row of a group (or -1) and its status.
    """
    if any(is_symbolic(a) for a in arguments):
        from cstormpy.dynamics.tracing import run_on_symbols

        run_on_symbols(entry, tables, arguments)
        return _GOOD
    from cstormpy.dynamics.kernel_lines import part_by_line

    key = (entry.name, tables.T.size, tables.N.size)
    by_line = part_by_line(entry, tables, arguments, count)
    if by_line is not None and run_parts(by_line, key, count, threads)[1] == 0:
        return _GOOD
    kernel = entry.load()

    def part(start: int, stop: int) -> tuple[int, int]:
        return kernel(tables.T, tables.N, workspace(numbers), *arguments, start, stop) or _GOOD

    return run_parts(part, key, count, threads)


def run_parts(part: Part, key: tuple[str, int, int], count: int, threads: int | None) -> tuple[int, int]:
    """Fill all rows, a part of them at a time, on as many threads as pay.

    Of several threads the caller is one. Where it is not known yet how long a sample takes (`key` tells what is alike),
    it begins alone, in growing parts, until one of them has shown it: others are woken only for work that is worth it.
    """
    workers = min(thread_count(threads), -(-count // layout.LANES))
    if count == 0:
        return _GOOD
    if workers <= 1:
        return part(0, count)
    rate = _rates.get(key)
    done, samples, seconds = 0, layout.LANES, 0.0
    while rate is None or (done and done < count and seconds < LONG_ENOUGH):
        stop = min(count, done + samples)
        begin = time.perf_counter()
        outcome = part(done, stop)
        seconds = time.perf_counter() - begin
        if outcome[1] != 0 or stop == count:
            return outcome
        rate = seconds / (stop - done)
        done, samples = stop, 4 * samples
    if done:
        while len(_rates) >= _RATES_KEPT:
            _rates.pop(next(iter(_rates)))
        _rates[key] = rate
    workers = min(workers, 1 + int(rate * (count - done) / HAND_OVER))
    return _share(part, deque(_cut(done, count, workers, rate)), workers)


def _cut(start: int, stop: int, workers: int, rate: float) -> list[tuple[int, int]]:
    """Return bounds of parts, the longest first; whole groups of lanes, the last of which may be short."""
    if workers <= 1:
        return [(start, stop)]
    least = max(1, int(LONG_ENOUGH / (rate * layout.LANES)))
    cuts = [start]
    while cuts[-1] < stop:
        groups = int(SHARE * (stop - cuts[-1]) / (workers * layout.LANES))
        cuts.append(min(stop, cuts[-1] + layout.LANES * max(least, groups)))
    return list(pairwise(cuts))


def _share(part: Part, parts: deque[tuple[int, int]], workers: int) -> tuple[int, int]:
    """Run parts in their order, each on the next thread that is free; return the first outcome that is not good."""

    def take() -> tuple[int, int]:
        outcome = _GOOD
        while outcome[1] == 0:
            try:
                bounds = parts.popleft()
            except IndexError:
                return _GOOD
            outcome = part(*bounds)
        parts.clear()  # what stands before this part has been taken already, and will be finished
        return outcome

    helpers = [_pool(workers - 1).submit(take) for _ in range(workers - 1)]
    try:
        outcomes = [take()]
    finally:
        parts.clear()
        # one that has not begun by now is not waited for; the others write to the arrays until they have ended
        begun = [helper for helper in helpers if not helper.cancel()]
        for helper in begun:
            helper.exception()
    outcomes += [helper.result() for helper in begun]
    return min((o for o in outcomes if o[1] != 0), default=_GOOD)


_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork


def _pool(workers: int) -> ThreadPoolExecutor:
    """Return threads for so many parts; sizes are powers of two, lest each size leave threads of its own behind."""
    size = 1 << (workers - 1).bit_length()
    pool = _pools.get(size)
    if pool is None:
        from concurrent.futures import ThreadPoolExecutor

        pool = _pools.setdefault(size, ThreadPoolExecutor(size, thread_name_prefix="cstormpy"))
    return pool


def scratch_size(mech: Linkage, matrices: bool) -> int:
    """Return how many float64 of scratch memory any batch kernel needs for a mechanism."""
    one = layout.forms_numbers(mech.n, len(mech.links))
    # matrices stand side by side, or those of one sample behind what stands side by side
    return layout.LANES * (one + layout.matrix_numbers(mech.n)) + one if matrices else layout.LANES * one


class Handle:
    """T, N and scratch memory of a mechanism behind one array argument, kept alive as long as this object.

    `y_only` is that argument for kernels that fill y; with `all_three` they also fill q̈ and τ.
    """

    def __init__(self, mech: Linkage, tables: Tables, matrices: bool) -> None:
        numbers = layout.forms_numbers(mech.n, len(mech.links)) + (layout.matrix_numbers(mech.n) if matrices else 0)
        self.arrays = (tables.T, tables.N, _scratch(numbers))
        addresses = [value for a in self.arrays for value in (a.ctypes.data, a.size)]
        self.y_only = np.array([*addresses, 1], dtype=np.int64)
        self.all_three = np.array([*addresses, 3], dtype=np.int64)


def handle_of(mech: Linkage, drive: str = "own", matrices: bool = False) -> Handle:
    """Return the handle of a mechanism with a drive (see `linkage.tables.tables_of`), made at its first use."""
    made: Handle | None = mech.memo.get(("handle", drive, matrices))
    if made is None:
        from cstormpy.linkage.tables import tables_of

        made = mech.memo["handle", drive, matrices] = Handle(mech, tables_of(mech, drive), matrices)
    return made


def with_loads(entry: Entry, loads: Array) -> Callable[..., int]:
    """Return a kernel of one sample that takes loads behind the handle, with its loads."""
    kernel = entry.load()
    return lambda handle, *arguments: kernel(handle, loads, *arguments)


def run_checked(
    mech: Linkage,
    entry: Entry,
    tables: Tables,
    arguments: tuple[Any, ...],
    samples: Samples,
    numbers: int,
    threads: int | None,
) -> None:
    """Run a batch kernel that reports (row, status), and raise the error of the first bad row."""
    first, status = run_batch(entry, tables, arguments, samples.count, numbers, threads)
    if status == 0:
        return
    kernel = entry.load()
    for row in range(first, min(first + layout.LANES, samples.count)):
        _, of_row = kernel(tables.T, tables.N, workspace(numbers), *arguments, row, row + 1)
        if of_row != 0:
            raise failure(mech, tables.N, of_row, None if samples.single else row)
    raise failure(mech, tables.N, status, None if samples.single else first)
