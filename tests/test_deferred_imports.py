"""What bdsim imports for plots and filters is loaded when somebody touches it, and then as it always was."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading

import pytest

from cstormpy.simulation.deferred_imports import DEFERRED, deferred

#: Parts of what is deferred, by which it is known to have been executed.
PARTS = ("matplotlib.axes._axes", "matplotlib.backend_bases", "scipy.integrate._ivp", "scipy.interpolate._bsplines")
PARTS += ("matplotlib.cm", "matplotlib.rcsetup", "scipy.optimize", "scipy.signal._signaltools", "scipy.stats")

RUN = """
import sys
import cstormpy as cs
finders = list(sys.meta_path)
sim = cs.Simulation(live=False, engine="interpreted")
bd = sim.blockdiagram()
plant, still = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.2, 0.4]), bd.CONSTANT(0.0)
bd.connect(still, plant.tau)
bd.connect(plant.q, bd.NULL())
sim.run(bd, T=0.1)
"""


def said(script):
    """Return what a script prints in a process of its own."""
    env = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_run_without_plots_loads_neither_pyplot_nor_most_of_scipy():
    """They took longer to load than the run: a script needed five seconds to its first result."""
    assert said(RUN + f"print(*[name for name in {PARTS} if name in sys.modules])") == []


def test_numbers_are_read_without_loading_masked_arrays():
    """NumPy loads them when it is asked what a masked number is: two thirds of the first loading of a robot's file."""
    script = "import sys, cstormpy as cs; cs.Link('rod', None, cs.Revolute((0, 0, 1)), com=[1, 2, 3])"
    assert said(f"{script}\nprint('numpy.ma' in sys.modules)") == ["False"]


def test_a_script_that_has_loaded_pyside_before_can_load_bdsim():
    """PySide6 looks into each module imported after it; that loaded half of one that was deferred, and failed."""
    pytest.importorskip("PySide6.QtCore")
    loaded = f"[name for name in {PARTS} if name in sys.modules]"
    assert said(f"import sys, PySide6.QtCore\nimport cstormpy.simulation\nprint('loaded', *{loaded})") == ["loaded"]


TOUCHED = (
    RUN
    + """
import matplotlib.pyplot as plt, scipy.signal, scipy.signal.windows, scipy.interpolate, spatialmath.spline, inspect
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
plt.figure().add_subplot(projection="3d")
checks = [
    plt.get_fignums() == [1],
    len(scipy.signal.windows.hann(5)) == 5 and scipy.signal.lfilter([1.0], [1.0], [2.0])[0] == 2.0,
    solve_ivp(lambda t, x: -x, (0.0, 1.0), [1.0]).success,
    spatialmath.spline.BSpline is scipy.interpolate.BSpline and spatialmath.spline.Rotation is Rotation,
    inspect.isclass(spatialmath.geom2d.Path),
    all(type(sys.modules[name]) is type(sys) for name in ("matplotlib.pyplot", "scipy.signal", "scipy.integrate")),
    not any("deferred" in type(finder).__module__ for finder in sys.meta_path),
]
print(*map(bool, checks))
"""
)


@pytest.mark.slow
def test_what_is_touched_is_what_it_always_was():
    assert said(TOUCHED) == ["True"] * 7


@pytest.mark.slow
def test_classes_that_stand_in_serve_before_they_are_loaded():
    """spatialmath makes objects of scipy's classes, asks whether something is one, and may be derived from."""
    script = (
        RUN
        + """
import numpy as np, spatialmath.spline as s
stood_in = type(s.BSpline).__module__.startswith("cstormpy")
curve = s.BSpline(np.arange(8.0), np.ones(4), 3)
class Mine(s.CubicSpline):
    pass
import scipy.interpolate as real
print(stood_in, type(curve) is real.BSpline, isinstance(curve, s.BSpline), Mine.__mro__[1] is real.CubicSpline)
"""
    )
    assert said(script) == ["True"] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "INTERPOLATE(x=[0, 1], y=[2, 3], time=True)",
        "LTI_SISO([1, 2], [1, 3, 5])",
    ],
)
def test_blocks_that_need_what_is_deferred_find_it(name):
    script = (
        RUN
        + f"""
bd = sim.blockdiagram()
block, state = bd.{name}, bd.INTEGRATOR()
bd.connect(block, state)
for port in range(block.nin):
    bd.connect(state, block[port])
print(sim.run(bd, T=0.1).x.shape[1])
"""
    )
    assert int(said(script)[-1]) >= 1


@pytest.mark.slow
def test_a_script_that_has_loaded_them_before_keeps_them():
    script = "import scipy.signal, matplotlib.pyplot as plt; before = scipy.signal, plt\n" + RUN
    assert said(script + "print(before == (sys.modules['scipy.signal'], sys.modules['matplotlib.pyplot']))") == ["True"]


# The mechanism, on modules made for it ------------------------------------------------------------------

SOURCE = """
import time
time.sleep(0.2)
count = globals().get("count", 0) + 1
last = "complete"
class Thing:
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of a new name, deferred, and the path of its source."""
    name = f"deferred_{tmp_path.name.replace('-', '_')}"
    path = tmp_path / f"{name}.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with deferred({name: frozenset({"Thing"})}):
        made = importlib.import_module(name)
    yield made, path
    sys.modules.pop(name, None)


def test_threads_that_touch_it_together_find_it_complete(module):
    made, _ = module
    found = []
    threads = [threading.Thread(target=lambda: found.append((made.last, made.count))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [("complete", 1)] * 8


def test_one_that_fails_says_so_and_can_be_mended(module):
    made, path = module
    path.write_text("raise ValueError('broken')")
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            made.last  # noqa: B018
    path.write_text(SOURCE + "mended = True")
    assert made.mended and made.last == "complete"


def test_what_is_set_before_it_is_loaded_stays(module):
    made, _ = module
    made.last = "mine"
    assert made.last == "mine" and made.count == 1


def test_looking_at_where_it_stands_does_not_load_it(module):
    """Those who go through all modules, as `inspect` does, ask for the file of each."""
    made, path = module
    assert made.__file__ == str(path) and made.__name__ == path.stem
    assert type(made).__name__ == "_DeferredModule"
    assert "count" in dir(made) and vars(made)["count"] == 1


def test_every_module_that_is_deferred_has_the_classes_that_are_stood_in_for():
    for name, classes in DEFERRED.items():
        for known in classes:
            assert hasattr(importlib.import_module(name), known), (name, known)


def test_a_compiled_run_loads_no_numba():
    """The shipped acrobot with all its laws is wired, built and run without numba: LLVM alone makes its code."""
    script = """
import sys
import cstormpy as cs
from cstormpy.diagrams import acrobot
sim = cs.Simulation(live=False, engine="compiled", progress=False)
out = sim.run(acrobot.build(sim), T=1.0)
assert out.status == "finished" and out[".stats"].evaluations > 100
print(*sys.modules)
"""
    loaded = said(script)
    assert "scipy.linalg._solvers" in loaded  # by the regulator
    assert not {"numba", "numpy.f2py.crackfortran", "numpy.testing._private.utils"} & {*loaded}
