"""The engine that is chosen by itself: compiled where the function is at hand, or where a run turns out long."""

import os

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.simulation.compiled import Program, automatic

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="compiles")


def oscillator(sim, gain=-2.0):
    """Return a damped oscillator of bdsim's blocks, with an unusual wiring of its own."""
    bd = sim.blockdiagram("oscillator")
    rate, place = bd.INTEGRATOR(x0=0.0, name="rate"), bd.INTEGRATOR(x0=1.0, name="place")
    spring, damper, total = bd.GAIN(gain, name="spring"), bd.GAIN(-0.1, name="damper"), bd.SUM("++", name="total")
    bd.connect(rate, place, damper)
    bd.connect(place, spring)
    bd.connect(spring, total[0])
    bd.connect(damper, total[1])
    bd.connect(total, rate)
    return bd


def simulation(engine):
    return cs.Simulation(engine=engine, graphics=False, progress=False, live=False)


def test_a_long_run_is_compiled_on_its_way(monkeypatch):
    sim = simulation("auto")
    bd = oscillator(sim)
    monkeypatch.setattr(automatic.AutomaticRun, "begin", automatic.Run.begin)  # nothing is at hand
    monkeypatch.setattr(automatic, "_LONG", 0.0)
    monkeypatch.setattr(automatic, "_WORTH", 0.0)
    seen = []
    compile_ = automatic.AutomaticRun._compile

    def watched(self, only_at_hand):
        seen.append((self.t, only_at_hand))
        compile_(self, only_at_hand)

    monkeypatch.setattr(automatic.AutomaticRun, "_compile", watched)
    out = sim.run(bd, T=20.0, max_step=0.05)
    ((when, only_at_hand),) = seen
    assert 0.0 < when < 1.0 and not only_at_hand
    expected = simulation("interpreted").run(bd, T=20.0, max_step=0.05)
    np.testing.assert_array_equal(out.t, expected.t)
    np.testing.assert_allclose(out.x, expected.x, rtol=0, atol=1e-12)


def test_a_diagram_that_has_run_for_long_is_compiled_from_the_start(monkeypatch):
    sim = simulation("auto")
    bd = oscillator(sim)
    bd.connect(bd.blocknames["rate"], bd.GAIN(3.0), bd.GAIN(4.0))  # of another wiring than any other
    starts, compile_ = [], automatic.AutomaticRun._compile

    def watched(self, only_at_hand):
        compile_(self, only_at_hand)
        starts.append((only_at_hand, self.program is not None))

    monkeypatch.setattr(automatic.AutomaticRun, "_compile", watched)
    monkeypatch.setattr(Program, "is_kept", lambda self: False)  # as another Python may have kept it
    first = sim.run(bd, T=1.0)
    monkeypatch.setattr(automatic, "_LONG", 1e-6)
    second, third = sim.run(bd, T=1.0), sim.run(bd, T=1.0)
    assert starts == [(True, False), (False, True), (False, True)]
    for out in (second, third):
        np.testing.assert_allclose(out.x, first.x, rtol=0, atol=1e-12)
    assert automatic._computed[bd] > 0.0


def test_a_short_run_compiles_nothing(monkeypatch):
    sim = simulation("auto")
    bd = oscillator(sim)
    bd.connect(bd.blocknames["place"], bd.GAIN(3.0), bd.GAIN(4.0), bd.GAIN(5.0))  # of another wiring than any other
    monkeypatch.setattr(Program, "function", lambda self: pytest.fail("a function is made ready"))
    assert sim.run(bd, T=5.0).status == "finished"


def test_what_is_at_hand_is_used_from_the_start():
    bd = oscillator(simulation("compiled"))
    compiled = simulation("compiled").run(bd, T=5.0)
    sim, starts = simulation("auto"), []
    begin = automatic.AutomaticRun.begin

    def watched(self, *arguments):
        begin(self, *arguments)
        starts.append(self.program is not None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(automatic.AutomaticRun, "begin", watched)
        out = sim.run(bd, T=5.0)
    assert starts == [True]
    np.testing.assert_array_equal(out.x, compiled.x)


def test_what_can_not_be_translated_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(automatic, "_LONG", 0.0)
    monkeypatch.setattr(automatic, "_WORTH", 0.0)
    sim = simulation("auto")
    bd = oscillator(sim)
    odd = bd.FUNCTION(lambda x: float(f"{x:.3f}"), name="looks at digits")
    bd.connect(bd.blocknames["place"], odd)
    out = sim.run(bd, T=2.0)
    sim.run(bd, T=2.0)
    assert out.status == "finished"
    assert [("looks at digits" in text) for text in caplog.messages].count(True) == 1


def test_a_further_run_looks_at_its_numbers_once_and_at_no_file(monkeypatch):
    """It was prepared twice, and looked on disk for the code that it had: as long as all else of a short run."""
    sim = simulation("auto")
    bd = oscillator(sim)
    compiled = simulation("compiled").run(bd, T=1.0)
    read, refresh = [], Program.refresh
    monkeypatch.setattr(Program, "refresh", lambda self: (read.append(self), refresh(self))[1])
    monkeypatch.setattr(Program, "is_kept", lambda self: pytest.fail("the code is looked for"))
    out = sim.run(bd, T=1.0)
    assert len(read) == 1
    np.testing.assert_array_equal(out.x, compiled.x)
