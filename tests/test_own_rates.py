"""What `deriv` of a block of one's own may return, an array, a list, a number; and what `next` may not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bdsim.components import ContinuousBlock, SampledBlock

import cstormpy as cs


class Decaying(ContinuousBlock):
    nin, nout = 1, 1

    def __init__(self, form, **options):
        super().__init__(**options)
        self.form, self.nstates, self._x0 = form, 1, np.array([1.0])

    def getstate0(self):
        return self._x0

    def output(self, t, u, x):
        return [x[0]]

    def deriv(self, t, u, x):
        return self.form(-2.0 * u[0])


FORMS = {
    "array": lambda rate: np.array([rate]),
    "array of no axes": lambda rate: np.array(rate),
    "list": lambda rate: [rate],
    "tuple": lambda rate: (rate,),
    "number": lambda rate: rate,
}


def decaying(form, engine):
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    block, gain = Decaying(form, name="own"), bd.GAIN(1.0)
    bd.add_block(block)
    bd.connect(block, gain)
    bd.connect(gain, block)
    return sim, bd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("form", FORMS)
def test_rates_are_taken_in_every_form(form, engine):
    sim, bd = decaying(FORMS[form], engine)
    assert sim.run(bd, T=0.3, rtol=1e-9, atol=1e-12).x[-1, 0] == pytest.approx(math.exp(-0.6), rel=1e-8)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize(
    ("form", "said"),
    [
        (lambda rate: None, r"'own'.*deriv\(\) returned None; end it with 'return' and the rate of each state"),
        (lambda rate: [rate, rate], r"'own'.*has 1 state, but their rate has the shape \(2,\)"),
        (lambda rate: "fast", r"'own'.*their rate has the shape \(\)"),
    ],
)
def test_what_is_no_rate_is_told(form, said, engine):
    sim, bd = decaying(form, engine)
    with pytest.raises(cs.CstormError, match=said):
        sim.run(bd, T=0.3)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_next_state_that_is_not_returned_is_told(engine):
    """None of a single state became nan, and the run was said to end at its output."""

    class Counting(SampledBlock):
        nin, nout = 0, 1

        def output(self, t, u, x):
            return [x[0]]

        def next(self, t, u, x):
            x + 1.0

    sim = cs.Simulation(engine=engine, live=False)
    bd = sim.blockdiagram()
    bd.connect(Counting(bd.clock(10, "Hz"), x0=[0.0], nin=0, nout=1, name="own", bd=bd), bd.INTEGRATOR())
    with pytest.raises(cs.CstormError, match=r"'own'.*next\(\) returned None; end it with 'return' and the next state"):
        sim.run(bd, T=0.3)


@pytest.mark.parametrize("inside", [False, True], ids=["diagram", "subsystem"])
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_block_without_its_next_state_is_told_so(engine, inside):
    """Python said "type object 'Holding' has no attribute 'next'", and which block it was nobody did."""

    class Holding(SampledBlock):
        nin, nout = 1, 1

        def output(self, t, u, x):
            return [x[0]]

    sim = cs.Simulation(engine=engine, live=False)
    bd = top = sim.blockdiagram()
    if inside:
        bd = sim.blockdiagram()
    own = Holding(bd.clock(10, "Hz"), x0=[0.0], nin=1, nout=1, name="own", bd=bd)
    if inside:
        bd.connect(bd.INPORT(1), own)
        bd.connect(own, bd.OUTPORT(1))
        own = top.SUBSYSTEM(bd, name="part")
    top.connect(top.CONSTANT(1.0), own)
    top.connect(own, top.NULL())
    said = r"block 'own' \(HOLDING\): its class has no method next\(self, t, u, x\)"
    with pytest.raises(cs.DiagramError, match=f"in subsystem 'part': {said}" if inside else said):
        sim.run(top, T=0.3)


def test_an_initial_state_that_does_not_fit_is_told_within_a_subsystem():
    """There the diagram was said to have an "incorrect length for initial state", whose it was nobody said."""

    class Lag(ContinuousBlock):
        nin, nout = 1, 1

        def output(self, t, u, x):
            return [x[0]]

        def deriv(self, t, u, x):
            return u[0] - x

    sim = cs.Simulation(live=False)
    part, bd = sim.blockdiagram(), sim.blockdiagram()
    own = Lag(nin=1, nout=1, nstates=1, name="own", bd=part)
    own._x0 = np.zeros(2)
    part.connect(part.INPORT(1), own)
    part.connect(own, part.OUTPORT(1))
    bd.connect(bd.CONSTANT(1.0), inner := bd.SUBSYSTEM(part, name="part"))
    bd.connect(inner, bd.NULL())
    with pytest.raises(cs.DiagramError, match=r"in subsystem 'part': block 'own' .*nstates=1, .* the shape \(2,\)"):
        sim.run(bd, T=0.3)


class Chosen(ContinuousBlock):
    """At rest both of its rates are 1, and one of them stays so."""

    nin, nout = 0, 1

    def __init__(self, other=False, **options):
        super().__init__(nstates=1, **options)
        self._x0 = np.zeros(1)
        if other:
            self.deriv = self.growing

    def output(self, t, u, x):
        return [x[0]]

    def deriv(self, t, u, x):
        return np.ones(1)

    def growing(self, t, u, x):
        return 1.0 + x


class ChosenBySample(SampledBlock):
    nin, nout = 0, 1

    def __init__(self, clock, **options):
        super().__init__(clock, x0=[0.0], **options)
        self.next = lambda t, u, x: x + 1.0
        self.output = lambda t, u, x: [2.0 * x[0]]

    def output(self, t, u, x):
        return [x[0]]

    def next(self, t, u, x):
        return x


def placed(engine, block, *args, **options):
    sim = cs.Simulation(engine=engine, live=False)
    bd = sim.blockdiagram()
    clock = [bd.clock(10, "Hz")] if issubclass(block, SampledBlock) else []
    bd.connect(block(*clock, *args, nin=0, nout=1, name="own", bd=bd, **options), bd.NULL())
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR())
    return sim, bd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_method_that_is_set_on_the_block_itself_counts(engine):
    """The compiled engine took that of the class: 1 for e − 1, where both were the same at the start."""
    sim, bd = placed(engine, Chosen, other=True)
    assert sim.run(bd, T=1.0, rtol=1e-9).signal("own:x_0")[-1] == pytest.approx(math.e - 1.0, rel=1e-7)
    del bd["own"].deriv
    assert sim.run(bd, T=1.0).signal("own:x_0")[-1] == pytest.approx(1.0)
    sim, bd = placed(engine, ChosenBySample)
    assert sim.run(bd, T=0.95, watch=["own"]).signal("own")[-1] == 20.0


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_method_of_the_class_that_is_another_one_in_the_next_run_counts(engine, monkeypatch):
    """The compiled engine kept the one that the class had in the first run of the diagram."""
    sim, bd = placed(engine, Chosen)
    assert sim.run(bd, T=1.0).signal("own:x_0")[-1] == pytest.approx(1.0)
    monkeypatch.setattr(Chosen, "deriv", Chosen.growing)
    assert sim.run(bd, T=1.0, rtol=1e-9).signal("own:x_0")[-1] == pytest.approx(math.e - 1.0, rel=1e-7)
    monkeypatch.setattr(Chosen, "output", lambda self, t, u, x: [3.0 * x[0]])
    out = sim.run(bd, T=1.0, rtol=1e-9, watch=["own"])
    assert out.signal("own")[-1] == pytest.approx(3.0 * (math.e - 1.0), rel=1e-7)
