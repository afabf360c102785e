"""Samples on their way to the screen: through the ring, and into what is kept and drawn of them."""

import mmap
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cstormpy.live.ring import RingReader, RingWriter, SharedMemory, attach, ring_bytes, ring_slots
from cstormpy.live.window.history import Drawn, Extremes, Thinned, extreme_rows


def make_ring(slots, width):
    memory = mmap.mmap(-1, ring_bytes(slots, width))
    return RingWriter(memory, slots, width), RingReader(memory, slots, width)


# --- the ring


def test_what_is_written_is_read_in_order_once():
    writer, reader = make_ring(8, 2)
    rows = np.arange(14.0).reshape(7, 2)
    for k in range(3):
        writer.write(0.1 * k, rows[k])
    t, seen = reader.read()
    assert t.tolist() == [0.0, 0.1, 0.2] and np.array_equal(seen, rows[:3])
    assert len(reader.read()[0]) == 0
    for k in range(3, 7):
        writer.write(k, rows[k].tolist())
    t, seen = reader.read()
    assert t.tolist() == [3, 4, 5, 6] and np.array_equal(seen, rows[3:])


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=12))
def test_a_slow_reader_loses_the_oldest_only_and_knows_how_many(turns):
    writer, reader = make_ring(8, 1)
    written, seen, lost = 0, [], 0
    for many, count in turns:
        if many:
            rows = np.arange(written, written + count, dtype=float)
            writer.write_many(rows, rows[:, None])
        else:
            for k in range(written, written + count):
                writer.write(k, [k])
        written += count
        t, rows = reader.read()
        assert np.array_equal(t, rows[:, 0])
        lost = reader.lost
        seen += t.tolist()
        assert seen == sorted(set(seen)) and len(seen) + lost == written
        assert not count or seen[-1] == written - 1
        assert count <= 7 or len(t) >= 7  # all but the slot that is written next


def test_no_width_and_a_wide_row():
    for width in (0, 300):
        writer, reader = make_ring(16, width)
        writer.write(1.5, np.ones(width))
        t, rows = reader.read()
        assert t.tolist() == [1.5] and rows.shape == (1, width) and (rows == 1).all()


@pytest.mark.parametrize("width", [0, 1, 7, 100, 5000])
def test_memory_of_the_ring_is_bounded(width):
    slots = ring_slots(width)
    assert slots & (slots - 1) == 0
    assert slots >= 1024
    assert ring_bytes(slots, width) <= max(16 * 2**20 + 64, 1024 * 8 * (width + 1) + 64)


_READ = """
import sys
from cstormpy.live.ring import RingReader, attach
print(RingReader(attach({"fd": int(sys.argv[1]), "tag": None}, int(sys.argv[2])), 64, 1).read()[1][:, 0].tolist())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are not inherited there")
def test_another_process_reads_it_and_it_has_no_name():
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    memory = SharedMemory()
    size = ring_bytes(64, 1)
    writer = RingWriter(memory.map(size), 64, 1)
    for value in (2.0, 3.0):
        writer.write(0.0, [value])
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(memory.fd), str(size)],
        pass_fds=memory.inherited,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[2.0, 3.0]", done.stderr
    assert (set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()) == before
    memory.close()
    with pytest.raises(OSError):
        attach({"fd": 10**6, "tag": None}, size)


# --- what is kept


def naive_extremes(cells, y):
    """Return the rows that are the first lowest or first highest of their cell in some column."""
    keep = set()
    for cell in np.unique(cells):
        rows = np.flatnonzero(cells == cell)
        for column in y.T:
            keep |= {int(rows[np.argmin(column[rows])]), int(rows[np.argmax(column[rows])])}
    return sorted(keep)


@settings(max_examples=80)
@given(st.integers(0, 60), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_extreme_rows_are_those_of_the_naive_twin(n, columns, seed):
    rng = np.random.default_rng(seed)
    cells = np.sort(rng.integers(0, 9, n))
    y = rng.integers(-3, 4, (n, columns)).astype(float)
    assert extreme_rows(cells, y).tolist() == naive_extremes(cells, y)


def test_a_short_run_is_kept_sample_by_sample():
    rng = np.random.default_rng(0)
    t, y = np.sort(rng.uniform(0.0, 10.0, 60_000)), rng.normal(size=(60_000, 1))
    history = Extremes(1, 0.0, 10.0)
    for part in np.array_split(np.arange(len(t)), 37):
        history.add(t[part], y[part])
    assert np.array_equal(history.t, t) and np.array_equal(history.y, y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Extremes, Thinned])
def test_ten_million_samples_stay_bounded_and_no_peak_is_lost(kind):
    rng = np.random.default_rng(1)
    history = kind(1, 0.0, 1e4)
    sizes = []
    total, peaks = 0, {3_333_333: 9.0, 7_777_777: -9.0}
    while total < 10**7:
        count = 40_000
        y = rng.uniform(-1.0, 1.0, count)
        for at, value in peaks.items():
            if total <= at < total + count:
                y[at - total] = value
        history.add((total + np.arange(count)) * 1e-3, y[:, None])
        total += count
        sizes.append(len(history))
    assert max(sizes) <= 2 * history.limit
    assert history._t.nbytes + history._y.nbytes <= 4 * 2**20
    assert (np.diff(history.t) > 0.0).all()
    assert history.t[0] < 1.0 and history.t[-1] == (total - 1) * 1e-3
    if kind is Extremes:
        for at, value in peaks.items():
            k = history.nearest(at * 1e-3)
            assert (history.t[k], history.y[k, 0]) == (at * 1e-3, value)


def test_sparse_samples_survive_beside_dense_ones():
    history = Extremes(1, 0.0, 100.0)
    sparse = np.linspace(0.0, 50.0, 200)
    history.add(sparse, np.sin(sparse)[:, None])
    dense = np.linspace(50.1, 50.2, 400_000)
    history.add(dense, np.zeros((400_000, 1)))
    assert np.array_equal(history.t[:200], sparse)


def test_what_is_not_finite_leaves_a_gap():
    history = Extremes(2, 0.0, 1.0)
    history.add(np.array([0.0, 0.1, 0.2, 0.3]), np.array([[1, 1], [np.nan, 1], [1, np.inf], [2, 2.0]]))
    assert history.t.tolist() == [0.0, 0.3]


# --- what is drawn


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(20, 200), st.integers(0, 2**32 - 1))
def test_drawing_in_parts_is_drawing_at_once(parts, pixels, seed):
    rng = np.random.default_rng(seed)
    t, y = np.sort(rng.uniform(0.0, 10.0, 3000)), rng.normal(size=(3000, 1))
    history = Extremes(1, 0.0, 10.0)
    drawn = Drawn(history)
    for part in np.array_split(np.arange(len(t)), parts):
        history.add(t[part], y[part])
        seen_t, seen_y = drawn.points(0.0, 10.0, pixels)
    once_t, once_y = Drawn(history).points(0.0, 10.0, pixels)
    assert np.array_equal(seen_t, once_t) and np.array_equal(seen_y, once_y)
    cells = np.floor(t / (10.0 / pixels)).astype(int)
    expected = sorted({*naive_extremes(cells, y), len(t) - 1})
    assert np.array_equal(seen_t, t[expected]) and np.array_equal(seen_y, y[expected])
    assert len(seen_t) <= 2 * pixels + 1


def test_a_part_is_drawn_with_its_neighbours():
    history = Extremes(1, 0.0, 10.0)
    t = np.linspace(0.0, 10.0, 1001)
    history.add(t, t[:, None] ** 2)
    seen, values = Drawn(history).points(4.0, 5.0, 500)
    assert np.array_equal(seen, t[(t > 3.985) & (t < 5.015)])
    assert np.array_equal(values[:, 0], seen**2)
    assert len(Drawn(history).points(20.0, 30.0, 500)[0]) == 1


def test_drawing_goes_on_after_the_history_was_condensed():
    history = Extremes(1, 0.0, 400.0)
    drawn = Drawn(history)
    rng = np.random.default_rng(2)
    for k in range(40):
        t = 10.0 * k + np.linspace(0.0, 10.0, 10_000, endpoint=False)
        history.add(t, rng.normal(size=(10_000, 1)))
        seen_t, seen_y = drawn.points(0.0, 400.0, 300)
    assert history.generation > 0
    fresh_t, fresh_y = Drawn(history).points(0.0, 400.0, 300)
    assert np.array_equal(seen_t, fresh_t) and np.array_equal(seen_y, fresh_y)
