"""The compiled diagram computes what the blocks compute, and says what it cannot translate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bdsim.components import FunctionBlock
from bdsim_examples import EXAMPLES

import cstormpy as cs
from cstormpy.diagrams import acrobot, acrobot_elbow, branched_acrobot, pendulum, two_link_arm
from cstormpy.simulation.compiled import CompiledRun, NotTranslated
from cstormpy.simulation.compiled.fingerprints import fingerprint

EPS = np.finfo(float).eps


def simulation(engine="compiled"):
    return cs.Simulation(engine=engine, progress=False, live=False, hold=False, graphics=False)


@pytest.fixture
def runs(monkeypatch):
    """Collects the runs that are begun."""
    begun, begin = [], CompiledRun.begin

    def collect(self, *arguments):
        begin(self, *arguments)
        begun.append(self)

    monkeypatch.setattr(CompiledRun, "begin", collect)
    return begun


def assert_same_derivatives(run, times, spread=1.0):
    """Compare rates and all signals at random states about where the run stands, to 1e-12 of their size.

    Where blocks enlarge the rounding of those before them, that is to what rounding the state does to the signal.
    """
    rng, d, c = np.random.default_rng(5), run.diagram, run._compiled
    d.earliest, d.latest = -math.inf, math.inf
    for t in times:
        x = run.x + spread * rng.standard_normal(d.nstates)
        near_rate = d.derivative(t, x + 4.0 * EPS * (1.0 + np.abs(x)))
        near = {key: np.array(value) for key, value in signals_of(d)}
        assert c.rate(t, x) == 0
        rate = c.xd.copy()
        expected = d.derivative(t, x)
        scale = 1.0 + np.abs(expected).max()
        assert_close(rate, expected, near_rate, scale)
        for key, value in signals_of(d):
            found = c.signal(key)
            assert found.shape == np.shape(value)
            assert_close(found, value, near[key], scale)


def signals_of(diagram):
    """Return block and port of each signal of numbers, and its value."""
    outputs = [((id(b), port), slot.value) for b, _, _, outs, _, _ in diagram.order for port, slot in enumerate(outs)]
    return [(key, value) for key, value in outputs if not isinstance(value, dict)]


def assert_close(found, expected, near, scale):
    """Compare numbers to 1e-12, or to the difference that rounding makes."""
    expected, slack = np.asarray(expected, dtype=float), np.abs(np.asarray(near, dtype=float) - expected)
    allowed = 1e-12 * (scale + np.abs(expected)) + slack
    with np.errstate(invalid="ignore"):
        same = (np.abs(found - expected) <= allowed) | (found == expected) | (np.isnan(found) & np.isnan(expected))
    assert same.all(), (found, expected, allowed)


# The same derivatives ---------------------------------------------------------------------------------

WITH_STATES = [name for name, example in EXAMPLES.items() if "no states" not in example.tags and name != "to a pose"]


@pytest.mark.parametrize("name", WITH_STATES)
def test_derivatives_of_examples(runs, name):
    sim = simulation()
    bd, _ = EXAMPLES[name].wire(sim)
    sim.run(bd, T=0.05)
    assert_same_derivatives(runs[-1], (0.0, 0.3, 1.1, 2.7))


@pytest.mark.parametrize(
    ("module", "options"),
    [
        (pendulum, {}),
        (pendulum, {"rods": 3, "damping": 0.1}),
        (acrobot, {}),
        (acrobot, {"controller": "none", "q0": [0.3, 0.2]}),
        (acrobot, {"controller": "pfl"}),
        (acrobot, {"controller": "lqr", "q0": [1.5, 0.1]}),
        (acrobot, {"controller": "pd"}),
        (acrobot_elbow, {}),
        (branched_acrobot, {}),
        (two_link_arm, {}),
    ],
)
def test_derivatives_of_shipped_diagrams(runs, module, options):
    sim = simulation()
    bd = module.build(sim, **options)
    sim.run(bd, T=0.05)
    assert_same_derivatives(runs[-1], (0.1, 0.7, 1.9, 3.3, 6.0))


def everything(bd):
    """A diagram with many kinds of blocks and signals."""
    x = bd.INTEGRATOR(x0=[0.3, -0.2], min=[-5, -5], max=[5, 0.5], gain=0.7, name="x")
    y = bd.LTI_SS(A=np.array([[0.0, 1.0], [-2.0, -0.3]]), B=np.eye(2), C=np.eye(2)[:1], x0=[0.1, 0.2], name="y")
    mixed = bd.GAIN(np.array([[0.2, 1.0], [-1.0, 0.1]]), premul=True, name="matrix")
    vector = bd.SUM("+-+", name="vector")
    parts, again = bd.DEMUX(2, name="parts"), bd.MUX(2, name="again")
    total, ratio = bd.SUM("-+", mode="c", name="angle"), bd.PROD("*/", name="ratio")
    power, clip = bd.POW(3, name="power"), bd.CLIP(min=-0.4, max=[0.4, 0.3], name="clip")
    table = bd.INTERPOLATE(x=[-9, -1, 0, 2, 9], y=[1, 0, 3, -1, 2], name="table")
    clock, ramp, wave = bd.TIME(), bd.RAMP(T=0.5, slope=2, off=1), bd.WAVEFORM("square", freq=0.7, duty=0.3)
    bd.connect(x, mixed, clip, vector[1], parts)
    bd.connect(mixed, vector[0])
    bd.connect(clip, vector[2])
    bd.connect(vector, x)
    bd.connect(parts[0], again[1], total[0], table)
    bd.connect(parts[1], again[0], power)
    bd.connect(clock, total[1])
    bd.connect(total, ratio[0])
    bd.connect(ramp, ratio[1])
    bd.connect(ratio, y[0])
    bd.connect(wave, y[1])
    bd.connect(again, bd.INDEX([1]), bd.SLICE1([1, 0]), bd.NORM(), bd.NULL())
    for b in (power, table, y):
        bd.connect(b, bd.NULL())
    for b in bd.blocklist[-7:-4]:
        bd.connect(b, bd.NULL())


def test_derivatives_of_many_blocks(runs):
    sim = simulation()
    bd = sim.blockdiagram()
    everything(bd)
    sim.run(bd, T=0.2)
    assert_same_derivatives(runs[-1], np.linspace(0.01, 3.0, 20), spread=0.7)


# The source -------------------------------------------------------------------------------------------


def loop(sim, gain=2.0, name="gain", x0=1.0):
    bd = sim.blockdiagram()
    state, factor = bd.INTEGRATOR(x0=x0, name="state"), bd.GAIN(-gain, name=name)
    bd.connect(state, factor)
    bd.connect(factor, state)
    return bd


def test_numbers_and_names_are_not_in_the_source():
    sim = simulation()
    sources = [sim.source(loop(sim, gain, name)) for gain, name in ((2.0, "gain"), (77.25, "x'); import os"))]
    compiled = [[line for line in source.splitlines() if not line.startswith("#")] for source in sources]
    assert compiled[0] == compiled[1]
    assert compiled[0][0] == "def rate(t, x, z, p, n, w, out, xd):"
    assert "77.25" not in "".join(compiled[1])
    assert "\n".join(compiled[1]).count("import") == 0


def test_a_name_of_two_lines_stays_in_the_legend(runs):
    sim = simulation()
    bd = loop(sim, name="a\nraise SystemExit")
    assert all(line.startswith(("#", "def", " ")) for line in sim.source(bd).splitlines())


def test_other_numbers_need_no_other_code(runs):
    sim = simulation()
    for gain in (1.0, 3.0):
        out = sim.run(loop(sim, gain), T=1)
        assert out.x[-1, 0] == pytest.approx(math.exp(-gain), rel=1e-5)
    assert runs[0]._compiled.address == runs[1]._compiled.address


def test_code_is_kept_on_disk(monkeypatch, tmp_path):
    """What one process has compiled, another reads: here the memory of this one is emptied."""
    from cstormpy.kernels import compiling
    from cstormpy.simulation.compiled.numba_functions import UserFunction

    saved = []
    save = compiling._Kept.save_overload
    monkeypatch.setattr(compiling._Kept, "save_overload", lambda self, *a: (saved.append(self._name), save(self, *a)))
    k = float(np.random.default_rng().uniform(1.0, 2.0))  # a function that no run before has kept

    def decaying(v):
        while v < -9.0:  # it has no end for symbols: compiled by numba
            v += 1.0
        return -k * v

    def wired(sim):
        bd = sim.blockdiagram()
        state, law = bd.INTEGRATOR(x0=1.0), bd.FUNCTION(decaying)
        bd.connect(state, law)
        bd.connect(law, state)
        return bd

    ends = []
    for _ in range(2):
        monkeypatch.setattr(UserFunction, "_compiled", {})
        sim = simulation()
        ends.append(sim.run(wired(sim), T=1).x[-1, 0])
    assert ends[0] == ends[1] == pytest.approx(math.exp(-k), rel=1e-5)
    assert len([name for name in saved if name.startswith("function.")]) == 1


def test_functions_are_told_apart_by_what_they_hold():
    def make(k):
        return lambda x: k * x

    table = np.zeros(3)
    first, lasting = fingerprint([make(2.0)])
    assert lasting
    assert fingerprint([make(2.0)])[0] == first != fingerprint([make(3.0)])[0]
    assert not fingerprint([make(object())])[1]
    before = fingerprint([make(table)])[0]
    table[1] = 1.0
    assert fingerprint([make(table)])[0] != before


# What cannot be translated ---------------------------------------------------------------------------


class Odd(FunctionBlock):
    """A block of a user."""

    nin = nout = 1

    def output(self, t, u, x):
        return [2.0 * u[0]]


class Wrong(Odd):
    """A block that computes something else with symbols than with numbers."""

    def output(self, t, u, x):
        return [(3.0 if hasattr(u[0], "graph") else 2.0) * u[0]]


class Changed(Odd):
    """A block whose class computes something else than the class that it derives from."""

    def output(self, t, u, x):
        return [5.0 * u[0]]


def behind_a_state(sim, make):
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=0.5, name="state")
    block = make(bd)
    bd.connect(state, block)
    bd.connect(block, state)
    return bd


class Scale:
    """An object with a function."""

    def __init__(self, factor):
        self.factor = factor

    def of(self, v):
        return self.factor * v


def remember(v, data):
    data["last"] = v
    return v


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda bd: Wrong(bd=bd, name="wrong"), r"wrong: output 0 is 1\.0 at the start, but 1\.5 compiled"),
        (lambda bd: bd.FUNCTION(remember, persistent=True, name="memory"), "memory: keeps data between its calls"),
    ],
)
def test_what_can_not_be_translated_is_named(make, says):
    sim = simulation()
    with pytest.raises(NotTranslated, match=says):
        sim.run(behind_a_state(sim, make), T=0.1)


@pytest.mark.parametrize("function", [lambda v: eval("v"), Scale(2.0).of])
def test_functions_that_numba_does_not_take_are_traced(function):
    found = []
    for engine in ("compiled", "interpreted"):
        sim = simulation(engine)
        found.append(sim.run(behind_a_state(sim, lambda bd: bd.FUNCTION(function)), T=0.1).x[-1])
    np.testing.assert_allclose(*found, rtol=0, atol=1e-12)


def test_all_reasons_are_given():
    sim = simulation()
    bd = behind_a_state(sim, lambda bd: bd.FUNCTION(remember, persistent=True, name="first"))
    other = bd.FUNCTION(remember, persistent=True, name="second")
    bd.connect(bd.CONSTANT(1.0), other)
    bd.connect(other, bd.NULL())
    with pytest.raises(NotTranslated) as caught:
        sim.run(bd, T=0.1)
    assert {name for name, _ in caught.value.reasons} == {"first", "second"}


@pytest.mark.parametrize(("kind", "factor"), [(Odd, 2.0), (Changed, 5.0)])
def test_a_block_of_ones_own_is_traced(kind, factor):
    """Also one whose class computes something else than the class that it derives from."""
    sim = simulation()
    out = sim.run(behind_a_state(sim, lambda bd: kind(bd=bd)), T=1)
    assert out.x[-1, 0] == pytest.approx(0.5 * math.exp(factor), rel=1e-5)


def test_falling_back_is_said(monkeypatch, caplog, capsys):
    monkeypatch.setattr(CompiledRun, "strict", False)
    sim = simulation()
    out = sim.run(behind_a_state(sim, lambda bd: bd.FUNCTION(remember, persistent=True, name="odd one")), T=1)
    assert out.x[-1, 0] == pytest.approx(0.5 * math.exp(1.0), rel=1e-5)
    assert "odd one: keeps data between its calls" in capsys.readouterr().err + caplog.text
