"""Waiting times of a user: the first result of a fresh process, and the first compile of all kernels on a machine.

The peer is a numba program as small as they come: one function with ``cache=True``, compiled by an earlier run.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from interleaved import interleave

import cstormpy

ROOT = Path(cstormpy.__file__).resolve().parent.parent
START = "fresh process with a warm cache, to the first result [s] (goal: 1.3 times bare numba)"
COMPILE = "first compile of all kernels, once on a machine [s]"
COMPILED = (
    "from run() to the first sample of the shipped acrobot, in a fresh process [s] (goals: 3, and 0.05 from the cache; "
    "2 for its plant alone)"
)
SCRIPT = "a script from its start to the end of its first run of 10 s, with warm caches [s] (goal: 0.6 of bdsim)"
FILE = "the file of a humanoid, read [ms] (goal 50)"

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

def begun(engine, what):
    sim = cs.Simulation(engine=engine, progress=False, live=False)
    bd = acrobot.build(sim) if what == "shipped" else sim.blockdiagram()
    if what == "plant":
        bd.connect(bd.CONSTANT(0.0), bd.HYBRIDDYNAMICS("acrobot", name="plant"))
    if what == "ring":
        stores = [bd.INTEGRATOR(x0=float(k == 0)) for k in range(300)]
        for store, ahead, behind in zip(stores, stores[1:] + stores[:1], stores[-1:] + stores[:-1]):
            gain, flow = bd.GAIN(2.0), bd.SUM("++-")
            bd.connect(ahead, flow[0])
            bd.connect(behind, flow[1])
            bd.connect(store, gain)
            bd.connect(gain, flow[2])
            bd.connect(flow, store)
    begin = time.perf_counter()
    sim.run(bd, T=1e-3)
    return time.perf_counter() - begin

begun("interpreted", *sys.argv[2:])
print(begun(*sys.argv[1:]))
"""
#: The same wiring for our runner and for bdsim's; our blocks are imported for both where the plant is ours.
SCRIPTS = {
    "van der pol": """
    x, y = bd.INTEGRATOR(x0=1.0), bd.INTEGRATOR(x0=0.0)
    rate = bd.FUNCTION(lambda x, y: (1 - x * x) * y - x, nin=2)
    bd.connect(y, x, rate[1])
    bd.connect(x, rate[0])
    bd.connect(rate, y)
    bd.connect(x, bd.SCOPE())
""",
    "acrobot swing-up": """
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.5, 0.1])
    law = bd.CONTROLLER("acrobot", "energy")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law[0], plant[0])
""",
}
BY_US = """
import cstormpy as cs

sim = cs.Simulation(progress=False, live=False)
bd = sim.blockdiagram()
wire(bd)
sim.run(bd, 10.0)
"""
BY_BDSIM = """
import bdsim

sim = bdsim.BDSim(progress=False, graphics=False, banner=False, sysargs=False)
if OURS:
    import cstormpy as cs
    sim._blocklibrary = dict(cs.Simulation()._blocklibrary)
bd = sim.blockdiagram()
wire(bd)
bd.compile()
sim.run(bd, 10.0)
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
    script = write(tmp_path / "diagram.py", DIAGRAM)

    def both(what):
        interpreted, compiled = (runner(script, tmp_path / what, how, what) for how in ("interpreted", "compiled"))
        interpreted()  # the kernels that both engines use
        return interpreted, compiled

    record_row(COMPILED, what="its plant alone, compiled for the first time", time=float(both("plant")[1]()))
    ring = both("ring")[1]
    for how in ("compiled for the first time", "compiled, from the cache"):
        record_row(COMPILED, what=f"a ring of 900 blocks, {how}", time=float(ring()))
    interpreted, compiled = both("shipped")
    record_row(COMPILED, what="compiled for the first time", time=float(compiled()))
    for what, run in (("compiled, from the cache", compiled), ("interpreted", interpreted)):
        record_row(COMPILED, what=what, time=min(float(run()) for _ in range(5)))
    benchmark.pedantic(compiled, rounds=1)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_beside_bdsim(benchmark, record_row, tmp_path, name):
    wiring = "def wire(bd):" + SCRIPTS[name]
    scripts = {
        "ours": wiring + BY_US,
        "bdsim": wiring + BY_BDSIM.replace("OURS", str("HYBRIDDYNAMICS" in wiring)),
    }
    contestants = {
        who: runner(write(tmp_path / f"by_{who}.py", script), tmp_path / "cache") for who, script in scripts.items()
    }
    for run in contestants.values():
        run()
    times = interleave(contestants, rounds=7, seconds=0.0)
    record_row(SCRIPT, script=name, **times, ratio=times["ours"] / times["bdsim"])
    benchmark.pedantic(contestants["ours"], rounds=1)


def test_the_file_of_a_humanoid(benchmark, record_row):
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed: pip install 'cstormpy[robots]'")
    path = next(file.locate() for file in files if file.name == "talos_reduced.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mech = cstormpy.Mechanism.from_urdf(path, floating=True)
        benchmark(lambda: cstormpy.Mechanism.from_urdf(path, floating=True))
    record_row(FILE, file=path.name, freedoms=mech.n, time=benchmark.stats.stats.median * 1e3)
