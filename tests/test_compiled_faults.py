"""What the compiled engine says where it cannot go on: the block, the time, and what to do."""

from __future__ import annotations

import gc
import math
import re

import numpy as np
import pytest
from bdsim.components import ContinuousBlock
from spatialmath import SE3
from test_compiled import behind_a_state, loop, remember, simulation

import cstormpy as cs
from cstormpy.control import Law
from cstormpy.errors import BlockError, CstormError, DiagramError
from cstormpy.simulation.compiled import CompiledRun, NotTranslated

HOSTILE = [
    "x'); import os; os.abort() #",
    'a"\nraise SystemExit',
    "{0} * {1}",
    "__import__('os').abort()",
    "\\",
    "p[0]\r\n    return 7",
]


# what cannot be translated ---------------------------------------------------------------------------


def law_that_opens_a_file(v):
    scale = 2.0
    file = open("gains.txt")
    return scale * float(file.read()) * float(v)


def law_with_a_context(v):
    with open("gains.txt") as file:
        return float(file.read()) * float(v)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (law_that_opens_a_file, r'file = open\("gains.txt"\)'),
        (law_with_a_context, r"not supported.?, in the function at line \d+ of test_compiled"),
    ],
)
def test_a_function_that_numba_refuses_is_asked_in_python(function, line, tmp_path, monkeypatch, caplog):
    """It had the whole diagram refused; now its block alone is slow, and its line is said once, and by explain."""
    (tmp_path / "gains.txt").write_text("1.0")
    monkeypatch.chdir(tmp_path)
    ends = []
    for engine in ("compiled", "interpreted"):
        sim = simulation(engine)
        bd = behind_a_state(sim, lambda bd: bd.FUNCTION(function, name="gains"))
        ends.append(sim.run(bd, T=0.1).x[-1])
    np.testing.assert_allclose(*ends, rtol=1e-10)
    told = next(x for x in caplog.messages if "gains" in x)
    assert re.search(rf"block 'gains': asked in Python, as numba does not compile its function: .*{line}", told)
    way = next(x for x in simulation().explain(bd).splitlines() if x.startswith("gains"))
    assert re.search(rf"output: asked in Python, as it cannot be traced: .*; numba: .*{line}", way)


def remembering():
    largest = [0.0]

    def law(v):
        largest[0] = max(largest[0], float(v))
        return largest[0]

    return law


def test_functions_that_are_alike_and_remember_do_so_apart():
    """Two of one factory, asked in Python, were one and the same in a compiled run."""
    sim = simulation("compiled")
    bd = sim.blockdiagram("apart")
    for k, size in enumerate((1.0, 3.0)):
        kept = bd.FUNCTION(remembering(), name=f"kept{k}")
        bd.connect(bd.CONSTANT(size), kept)
        bd.connect(kept, bd.INTEGRATOR(name=f"sum{k}"))
    np.testing.assert_allclose(sim.run(bd, T=1.0).x[-1], [1.0, 3.0])
    told = sim.explain(bd)
    assert told.count("numba: it reads 'largest', a list") == 2
    assert repr(told) == told and repr(sim.source(bd)).startswith("# out[0]")  # as consoles and notebooks show them


def test_a_function_that_writes_into_its_further_arguments_is_asked_in_python():
    """Compiled code wrote into a copy, and remembered nothing."""

    def largest(v, memory):
        if v > memory[0]:
            memory[0] = v
        return memory[0]

    ends = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram("kept")
        wave, kept = bd.WAVEFORM("sine", freq=1.0), bd.FUNCTION(largest, fargs=[np.zeros(1)], name="kept")
        bd.connect(wave, kept)
        bd.connect(kept, bd.INTEGRATOR())
        ends.append(sim.run(bd, T=1.0, dt=0.01, solver="RK4").x[-1])
    np.testing.assert_allclose(*ends, rtol=1e-8)
    assert "numba: it writes into an array" in sim.explain(bd)


class Mine(Law):
    """A law of a user."""

    def torque(self, t, q, qd, reference=None):
        return -2.0 * qd[self._motors]


def controlled(sim, law):
    bd = sim.blockdiagram()
    plant, controller = bd.HYBRIDDYNAMICS("acrobot", q0=[0.3, 0.2]), bd.CONTROLLER("acrobot", law, name="hand")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return bd


def test_a_law_of_ones_own_is_traced():
    sim, mech = simulation(), cs.library.acrobot()
    found = sim.run(controlled(sim, Mine(mech)), T=0.5).x[-1]
    expected = simulation("interpreted").run(controlled(sim, Mine(mech)), T=0.5).x[-1]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_what_is_in_the_list_says_why():
    sim = simulation()
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=0.1)
    bd.connect(state, bd.GAIN(-1.0))
    bd.connect(bd.blocklist[-1], state)
    turned = bd.POSE_INVERSE(name="turned")
    bd.connect(bd.CONSTANT(SE3()), turned)
    bd.connect(turned, bd.NULL())
    with pytest.raises(NotTranslated, match=r"turned: .*Pose_inverse is not translated: its signals are poses"):
        sim.run(bd, T=0.1)


def test_a_signal_that_is_too_wide_is_named():
    sim = simulation()
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=np.zeros(1600), name="wide")
    bd.connect(bd.CONSTANT(np.ones(1600)), state)
    with pytest.raises(NotTranslated, match=r"wide: has a signal of 1600 numbers; more than 1500"):
        sim.run(bd, T=0.1)
    assert gc.isenabled()  # which it is not while the diagram is written down


# bad input --------------------------------------------------------------------------------------------


def test_widths_that_do_not_fit_are_named_before_anything_is_compiled():
    sim = simulation()
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=[1.0, 2.0], name="state")
    bd.connect(bd.CONSTANT([1.0, 2.0, 3.0], name="three"), state)
    with pytest.raises(CstormError, match="state"):
        sim.run(bd, T=0.1)


def test_a_parameter_that_is_not_tunable_is_named():
    sim = simulation()
    bd = controlled(sim, "energy")
    with pytest.raises(CstormError, match=r"parameter.*'gravy'.*gravity"):
        bd.blocklist[0].set_param("gravy", 1.0)


# faults in a run --------------------------------------------------------------------------------------


class Steep(ContinuousBlock):
    """x' = k x³, of which no step is short enough."""

    nin, nout = 0, 1

    def __init__(self, k, **blockargs):
        super().__init__(nstates=1, **blockargs)
        self._x0, self.k = np.array([2.0]), k

    def output(self, t, u, x):
        return [float(x[0])]

    def deriv(self, t, u, x):
        return np.array([self.k * x[0] ** 3])


@pytest.mark.parametrize("k", [1e60, 1e150])
def test_a_problem_that_exhausts_the_step_is_named_with_its_state_and_time(k):
    sim = simulation()
    bd = sim.blockdiagram()
    block = Steep(k, bd=bd, name="steep")
    bd.connect(block, bd.NULL())
    with pytest.raises(BlockError, match=r"at t = .*steep|steep.*at t = "):
        sim.run(bd, T=1.0, on_error="raise")


def bouncing(sim):
    """A ball that loses half its speed at each bounce: infinitely many in finite time."""
    bd = sim.blockdiagram()
    speed, height = bd.INTEGRATOR(x0=0.0, name="speed"), bd.INTEGRATOR(x0=1.0, name="height")
    bd.connect(bd.CONSTANT(-9.81), speed)
    bd.connect(speed, height)

    def bounce(block, states):
        states[speed][:] = -0.5 * states[speed]

    bd.connect(height, bd.EVENT("v", bounce, name="ground"))
    return bd


def test_an_event_that_chatters_is_named_with_its_time_and_what_to_do():
    messages = []
    for engine in ("compiled", "interpreted"):
        sim = simulation(engine)
        with pytest.raises(DiagramError, match=r"ground: .* at t = 1\.35.*chatters.*hysteresis") as caught:
            sim.run(bouncing(sim), T=3.0, on_error="raise")
        messages.append(caught.value.result.t[-1])
    assert messages[0] == pytest.approx(messages[1], abs=1e-7)


def test_a_singular_matrix_is_named_by_its_block():
    sim = simulation()
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=-0.55, name="state")
    bd.connect(bd.CONSTANT(1.0), state)
    step, matrix, inverse = bd.FUNCTION(lambda v: 1.0 if v < 0.0 else 0.0), bd.PROD("**"), bd.INVERSE(name="inverse")
    bd.connect(state, step)
    bd.connect(bd.CONSTANT(np.eye(2)), matrix[0])
    bd.connect(step, matrix[1])
    bd.connect(matrix, inverse)
    for port in (0, 1):
        bd.connect(inverse[port], bd.NULL())
    with pytest.raises(BlockError, match=r"inverse.*at t = .*singular"):
        sim.run(bd, T=1.0, on_error="raise")


class _Mute(Exception):
    """An error of the user's that fails to tell what was wrong."""

    def __str__(self):
        raise AttributeError("it has no reason")


def raise_mute(*_):
    raise _Mute


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("where", ["function", "observer", "at"])
def test_an_error_that_fails_to_tell_itself_is_told_by_its_class(engine, where):
    """The AttributeError of its text ended the run, and the samples until then were lost."""
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(1.0), x)
    bd.connect(x, f := bd.FUNCTION(lambda u: raise_mute() if where == "function" and u > 0.5 else u, name="f"))
    bd.connect(f, bd.NULL())
    asked = {"observer": lambda t, x: raise_mute() if t > 0.5 else None} if where == "observer" else {}
    asked |= {"at": {0.5: raise_mute}} if where == "at" else {}
    out = sim.run(bd, T=1.0, **asked)
    assert out.status == "failed" and "_Mute" in out.message and len(out.t) > 1


# names and strings are never pasted into source -------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_strings_stay_out_of_the_source(name):
    sim = simulation()
    bd = loop(sim, name=name + "0")
    both, item = bd.DICT([name, "other"], name=name + "1"), bd.ITEM(name, name=name + "2")
    bd.connect(bd.blocklist[0], both[0], both[1])
    bd.connect(both, item)
    bd.connect(item, bd.NULL(name=name + "3"))
    plain = loop(sim)
    both, item = plain.DICT(["a", "b"]), plain.ITEM("a")
    plain.connect(plain.blocklist[0], both[0], both[1])
    plain.connect(both, item)
    plain.connect(item, plain.NULL())
    sources = [[line for line in sim.source(d).splitlines() if not line.startswith("#")] for d in (bd, plain)]
    assert sources[0] == sources[1]
    assert sim.run(bd, T=0.1).x[-1, 0] == pytest.approx(math.exp(-0.2), rel=1e-5)


def test_falling_back_is_said_once(monkeypatch, capsys, caplog):
    monkeypatch.setattr(CompiledRun, "strict", False)
    for _ in range(2):
        sim = simulation()
        sim.run(behind_a_state(sim, lambda bd: bd.FUNCTION(remember, persistent=True, name="said once")), T=0.1)
    told = capsys.readouterr().err + caplog.text
    assert told.count("said once: keeps data between its calls") == 1
