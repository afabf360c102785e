"""The file of a sweep: it goes on from there after Ctrl-C and after a kill, and belongs to one sweep only."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import cstormpy as cs

GRID = {"rate:K": [-1.0, -2.0, -3.0, -4.0], "state:x_0": [1.0, 2.0]}


def decay(sim, start=1.0):
    bd = sim.blockdiagram("decay")
    state = bd.INTEGRATOR(x0=start, name="state")
    gain = bd.GAIN(-1.0, name="rate")
    bd.connect(state, gain)
    bd.connect(gain, state)
    return bd


def final(out):
    return {"x": out.x[-1, 0], "first and last": out.x[[0, -1], 0]}


def final_or_failure(out):
    if out.x[0, 0] == 2.0 and out.x[-1, 0] < 0.3:
        raise ValueError("too small")
    return {"x": out.x[-1, 0], "inverse": np.log(out.x[-1, 0] - out.x[-1, 0]), "first and last": out.x[[0, -1], 0]}


@pytest.fixture
def sim():
    return cs.Simulation(engine="interpreted", live=False)


@pytest.fixture
def counted(monkeypatch):
    """Count the runs."""
    runs = []
    run = cs.Simulation.run
    monkeypatch.setattr(cs.Simulation, "run", lambda self, *a, **k: (runs.append(0), run(self, *a, **k))[1])
    return runs


def same(a, b):
    assert a.shape == b.shape and a.grid == b.grid and list(a) == list(b) and a.reasons == b.reasons
    assert {n: v.tolist() for n, v in a.axes.items()} == {n: v.tolist() for n, v in b.axes.items()}
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])
    np.testing.assert_array_equal(a.failed, b.failed)
    np.testing.assert_array_equal(a.done, b.done)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_saved_sweep_is_read_again(sim, tmp_path):
    found = sim.sweep(decay, GRID, final_or_failure, T=1.0)
    assert found.failed.sum() == 3 and np.isneginf(found["inverse"][~found.failed]).all()
    found.save(tmp_path / "sweep.jsonl")
    again = cs.Sweep.read(tmp_path / "sweep.jsonl")
    same(found, again)
    assert again.status == "finished" and "too small" in again.reasons[1, 1]


def test_samples_and_texts_are_read_again(sim, tmp_path):
    laws = cs.diagrams.load("acrobot")
    samples = {"controller": ["none", "pd"], "plant:q0": [[0.1, 0.2], [0.3, 0.4]]}
    found = sim.sweep(laws, samples=samples, measure=["plant.q"], T=0.1)
    found.save(tmp_path / "sweep")
    same(found, cs.Sweep.read(tmp_path / "sweep"))


def test_a_finished_sweep_is_not_run_again(sim, tmp_path, counted):
    path = tmp_path / "sweep.jsonl"
    found = sim.sweep(decay, GRID, final, T=1.0, resume=path)
    assert len(counted) == 8
    same(found, sim.sweep(decay, GRID, final, T=1.0, resume=path))
    same(found, cs.Sweep.read(path))
    assert len(counted) == 8


@pytest.mark.parametrize("torn", [b"", b'{"run": 4, "val', b"\xff\x00\xc3"])
def test_it_goes_on_from_its_file(sim, tmp_path, counted, torn):
    path = tmp_path / "sweep.jsonl"
    whole = sim.sweep(decay, GRID, final, T=1.0, resume=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + torn)
    part = cs.Sweep.read(path)
    assert part.status == "interrupted" and part.done.sum() == 3
    counted.clear()
    found = sim.sweep(decay, GRID, final, T=1.0, resume=path, workers=2)
    assert len(counted) == 5
    same(found, whole)
    same(cs.Sweep.read(path), whole)


def test_it_goes_on_from_a_saved_sweep(sim, tmp_path, counted):
    found = sim.sweep(decay, GRID, final, T=1.0)
    found.save(tmp_path / "sweep")
    counted.clear()
    same(sim.sweep(decay, GRID, final, T=1.0, resume=tmp_path / "sweep"), found)
    assert not counted


def test_a_first_line_that_was_torn_is_written_anew(sim, tmp_path):
    path = tmp_path / "sweep.jsonl"
    found = sim.sweep(decay, GRID, final, T=1.0, resume=path)
    for size in (0, 40):
        path.write_bytes(path.read_bytes()[:size])
        same(sim.sweep(decay, GRID, final, T=1.0, resume=path), found)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("'rate:K' has other values", {"grid": {**GRID, "rate:K": [-1.0]}}),
        ("it varies rate:K, state:x_0, not rate:K", {"grid": {"rate:K": GRID["rate:K"]}}),
        ("it varies rate:K, state:x_0, not state:x_0, rate:K", {"grid": dict(reversed(GRID.items()))}),
        ('kind "grid" is not "samples"', {"grid": None, "samples": {"rate:K": [-1.0], "state:x_0": [1.0]}}),
        ("measure", {"measure": final_or_failure}),
        ("its settings differ: T was 1.0 and is 2.0;", {"T": 2.0}),
        ("its settings differ: dt was null and is 0.1, rtol was null and is 0.001", {"rtol": 1e-3, "dt": 0.1}),
        ("its options differ: start was not there and is 3.0;", {"start": 3.0}),
    ],
)
def test_the_file_of_another_sweep_is_refused(sim, tmp_path, text, changed):
    path = tmp_path / "sweep.jsonl"
    sim.sweep(decay, GRID, final, T=1.0, resume=path)
    before = path.read_bytes()
    with pytest.raises(cs.FileFormatError, match=f"sweep.jsonl: belongs to another sweep: .*{text}"):
        sim.sweep(decay, **{"grid": GRID, "measure": final, "T": 1.0, "resume": path, **changed})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("is not the file of a sweep", b"t,x\n0,1\n"),
        ("is not the file of a sweep", b'{"format": "cstormpy state 1"}\n'),
        ("is not the file of a sweep", b'{"format": "cstormpy sweep 1", "axes": 3}\n'),
        ("line 2 is no result", b'{"format": "cstormpy sweep 1", "kind": "grid", "axes": {"a": [1]}}\nnonsense\n'),
        (
            "none of its axes",
            b'{"format": "cstormpy sweep 1", "kind": "grid", "axes": {"a": [1]}}\n{"run": 7, "failed": ""}\n',
        ),
        ("cannot be read", None),
    ],
)
def test_what_is_no_sweep_is_refused(tmp_path, text, content):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(cs.FileFormatError, match=text):
        cs.Sweep.read(path)


@pytest.mark.parametrize("path", [None, 3, ["sweep"]])
def test_what_is_no_path_is_refused(sim, path):
    found = sim.sweep(decay, {"rate:K": [-1.0]}, final, T=0.1)
    for called in (cs.Sweep.read, found.save):
        with pytest.raises(cs.InvalidType, match="expected the path of a file, got"):
            called(path)


def test_other_files_are_not_overwritten(sim, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(cs.FileFormatError, match=r"notes\.txt: is not the file of a sweep; give another name"):
        sim.sweep(decay, GRID, final, T=1.0, resume=path)
    assert path.read_text() == "mine\n"
    with pytest.raises(cs.FileFormatError, match="cannot be written"):
        sim.sweep(decay, GRID, final, T=1.0, resume=tmp_path / "missing" / "sweep")
    with pytest.raises(cs.InvalidType, match="'mech': a Mechanism cannot be written"):
        sim.sweep(lambda sim, mech: decay(sim), {"mech": [cs.library.acrobot()]}, final, T=1.0, resume=tmp_path / "new")


SCRIPT = """
import sys, time
sys.path.insert(0, {tests!r})
import cstormpy as cs
from test_sweep_files import decay

def slowly(out):
    time.sleep(0.05)
    return out.x[-1, 0]

if __name__ == "__main__":
    sim = cs.Simulation(engine="interpreted", live=False)
    grid = {{"state:x_0": [float(k) for k in range(1, 61)]}}
    found = sim.sweep(decay, grid, slowly, T=0.1, workers=2, resume={path!r})
    print(found.status, found.done.sum())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
def test_a_killed_sweep_goes_on(tmp_path):
    path, script = tmp_path / "sweep.jsonl", tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), path=str(path)))
    environment = {**os.environ, "PYTHONPATH": str(Path(cs.__file__).parent.parent)}
    process = subprocess.Popen([sys.executable, str(script)], env=environment)
    until = time.monotonic() + 60.0
    while time.monotonic() < until and (not path.exists() or path.read_bytes().count(b"\n") < 15):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(10.0)
    kept = cs.Sweep.read(path)
    assert kept.status == "interrupted" and 14 <= kept.done.sum() < 60
    said = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60)
    assert said.stdout.split() == ["finished", "60"]
    numbers = [json.loads(line)["run"] for line in path.read_text().splitlines()[1:]]
    assert sorted(numbers) == list(range(60))
    np.testing.assert_allclose(cs.Sweep.read(path).value, np.exp(-0.1) * np.arange(1, 61), rtol=1e-5)
