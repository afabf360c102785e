"""Waiting times of a user: the first result of a fresh process, and the first compile of all kernels on a machine.

The peer is a numba program as small as they come: one function with ``cache=True``, compiled by an earlier run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from interleaved import interleave

import cstormpy

ROOT = Path(cstormpy.__file__).resolve().parent.parent
START = "fresh process with a warm cache, to the first result [s] (goal: 1.3 times bare numba)"
COMPILE = "first compile of all kernels, once on a machine [s]"
COMPILED = (
    "from run() to the first sample of the shipped acrobot, in a fresh process [s] (goals: 3, and 0.05 from the cache)"
)

BARE = """
import numba
import numpy as np

@numba.njit(cache=True)
def total(x, y):
    return x.sum() + y.sum()

total(np.zeros(2), np.zeros(2))
"""
OURS = """
import numpy as np
from cstormpy.mechanism import library

f = library.acrobot().hybrid_evaluator()
f(np.zeros(2), np.zeros(2), np.zeros(2))
"""
#: Up to where the first sample of a run stands there: what is not the diagram's own kernel was compiled before.
DIAGRAM = """
import sys, time
import cstormpy as cs
from cstormpy.diagrams import acrobot

def begun(engine):
    sim = cs.Simulation(engine=engine, progress=False, live=False)
    bd = acrobot.build(sim)
    begin = time.perf_counter()
    sim.run(bd, T=1e-3)
    return time.perf_counter() - begin

begun("interpreted")
print(begun(sys.argv[1]))
"""
WARMUP = "from cstormpy.kernels.compiling import warmup; print(warmup())"


def runner(script: Path, folder: Path, *arguments: str):
    """Return a function that runs a script in a process of its own, whose kernels are kept in a folder.

    So is the bytecode of what it imports, as it is for any user, whatever this process is told of that.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CSTORMPY_CACHE_DIR": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(folder.with_name("bytecode"))

    def run() -> str:
        done = subprocess.run(
            [sys.executable, str(script), *arguments], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    return run


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_time_to_the_first_result(benchmark, record_row, tmp_path):
    ours = runner(write(tmp_path / "ours.py", OURS), tmp_path / "cache")
    contestants = {
        "ours": ours,
        "numba": runner(write(tmp_path / "bare.py", BARE), tmp_path / "cache"),
        "import numba": runner(write(tmp_path / "nothing.py", "import numba"), tmp_path / "cache"),
        "import cstormpy": runner(write(tmp_path / "package.py", "import cstormpy"), tmp_path / "cache"),
    }
    times = interleave(contestants, rounds=21, seconds=0.0)
    for name, seconds in times.items():
        record_row(START, what=name, time=seconds, ratio=seconds / times["numba"])
    benchmark.pedantic(ours, rounds=3)


def test_first_compile(benchmark, record_row, tmp_path):
    run = runner(write(tmp_path / "warmup.py", WARMUP), tmp_path / "cache")
    seconds = float(benchmark.pedantic(run, rounds=1))
    record_row(COMPILE, what="compile", time=seconds)
    record_row(COMPILE, what="read from disk", time=float(run()))


def test_first_compile_of_a_diagram(benchmark, record_row, tmp_path):
    script, folder = write(tmp_path / "diagram.py", DIAGRAM), tmp_path / "cache"
    interpreted, compiled = runner(script, folder, "interpreted"), runner(script, folder, "compiled")
    interpreted()  # the kernels that both engines use
    record_row(COMPILED, what="compiled for the first time", time=float(compiled()))
    for what, run in (("compiled, from the cache", compiled), ("interpreted", interpreted)):
        record_row(COMPILED, what=what, time=min(float(run()) for _ in range(5)))
    benchmark.pedantic(compiled, rounds=1)
