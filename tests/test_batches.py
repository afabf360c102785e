"""How batches are shared among threads: each sample once, in order, and only where there is enough to do."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from cstormpy.dynamics import batches
from cstormpy.dynamics.batches import run_batch
from cstormpy.kernels.layout import LANES

TABLES = SimpleNamespace(T=np.zeros(3), N=np.zeros(2, dtype=np.int64))


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    """Begin without knowing how long a sample takes."""
    monkeypatch.setattr(batches, "_rates", {})


def run(part, count, threads):
    """Run part(start, stop) as if it were a kernel."""
    entry = SimpleNamespace(name="part", given=0, load=lambda: lambda T, N, W, start, stop: part(start, stop))
    return run_batch(entry, TABLES, (), count, 1, threads)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, LANES, LANES + 1, 9 * LANES - 1, 500])
def test_every_sample_is_done_once_and_no_group_is_cut(count, threads):
    taken = []
    assert run(lambda start, stop: taken.append((start, stop)), count, threads) == (-1, 0)
    taken.sort()
    assert [start for start, _ in taken] == [0, *(stop for _, stop in taken[:-1])]
    assert taken[-1][1] == count
    assert all(start % LANES == 0 and stop > start for start, stop in taken)


@pytest.mark.usefixtures("eager_threads")
def test_threads_work_at_the_same_time():
    meeting, present = threading.Barrier(3, timeout=20), []

    def part(start, stop):
        if start > 0 and threading.get_ident() not in present:
            present.append(threading.get_ident())
            meeting.wait()

    run(part, 100 * LANES, 3)
    assert len(present) == 3
    assert threading.get_ident() in present


def test_no_thread_is_woken_for_what_is_done_before_it_wakes(monkeypatch):
    """On a busy machine even nothing can take longer than waking does; here waking takes ten seconds."""
    monkeypatch.setattr(batches, "HAND_OVER", 10.0)
    names = []
    run(lambda start, stop: names.append(threading.get_ident()), 40 * LANES, 4)
    assert set(names) == {threading.get_ident()}


def test_threads_are_woken_for_what_takes_long():
    names = []

    def part(start, stop):
        names.append(threading.get_ident())
        time.sleep(1e-4 * (stop - start))

    run(part, 40 * LANES, 2)
    assert len(set(names)) == 2


def test_what_is_known_to_take_long_is_shared_from_the_first_sample_on():
    """The parts are the longer the more is left, so that the threads end together."""
    taken = []

    def part(start, stop):
        taken.append((start, stop))
        time.sleep(1e-4 * (stop - start))

    run(part, 40 * LANES, 2)
    assert sorted(taken)[0] == (0, LANES)  # alone, to see how long it takes
    taken.clear()
    run(part, 40 * LANES, 2)
    sizes = [stop - start for start, stop in sorted(taken)]
    assert sum(sizes) == 40 * LANES and sizes[0] == 10 * LANES
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == LANES


def test_few_sizes_are_remembered(monkeypatch):
    monkeypatch.setattr(batches, "_rates", {("another", k, k): 1.0 for k in range(batches._RATES_KEPT)})
    run(lambda start, stop: time.sleep(1e-4 * (stop - start)), 4 * LANES, 2)
    assert len(batches._rates) == batches._RATES_KEPT and ("part", 3, 2) in batches._rates


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("row", [0, 3 * LANES, 50 * LANES])
def test_the_first_of_several_bad_rows_is_told(row):
    """Also where the thread that meets it is the slower one."""

    def part(start, stop):
        bad = next((k for k in range(start, stop) if k in (row, 60 * LANES, 90 * LANES)), None)
        if bad == row:
            time.sleep(0.02)
        return None if bad is None else (bad, 7)

    for threads in (1, 2, 4):
        assert run(part, 100 * LANES, threads) == (row, 7)


@pytest.mark.usefixtures("eager_threads")
def test_what_is_raised_in_another_thread_reaches_the_caller():
    me, begun = threading.get_ident(), threading.Event()

    def part(start, stop):
        if threading.get_ident() != me:
            begun.set()
            raise MemoryError("of the helper")
        if start > 0:
            assert begun.wait(20)

    with pytest.raises(MemoryError, match="of the helper"):
        run(part, 100 * LANES, 2)


@pytest.mark.usefixtures("eager_threads")
def test_a_caller_does_not_wait_for_threads_that_others_keep_busy():
    free, pool = threading.Event(), batches._pool(1)
    busy = [pool.submit(free.wait, 20) for _ in range(pool._max_workers)]
    taken = []
    run(lambda start, stop: taken.append(stop - start), 100 * LANES, 2)
    assert not any(task.done() for task in busy)
    free.set()
    assert sum(taken) == 100 * LANES
