"""Blocks of a user's own: equal results in both engines, traced where that can be, and derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bdsim.components import ContinuousBlock, FunctionBlock, SampledBlock, SourceBlock
from own_laws import ACROBOT, placed, ways
from spatialmath import SE3
from test_compiled import simulation

import cstormpy as cs
from cstormpy.errors import CstormError, UnknownName
from cstormpy.graph.choices import choose
from cstormpy.mechanism import library


def test_a_block_of_ones_own_chooses_by_a_whole_number_that_it_shows():
    """What its class names in ``choices`` is a number of the code: another gear needs no other."""

    class Gearbox(FunctionBlock):
        nin, nout = 1, 1
        choices = ("gear",)

        def __init__(self, **options):
            super().__init__(**options)
            self.gear, self.low = 0, 0.5

        def output(self, t, u, x):
            return [choose(self.gear, [lambda v: self.low * v, lambda v: 2.0 * v, np.sin], u[0])]

    sim = simulation("compiled")
    bd = sim.blockdiagram("geared")
    gears, lag = Gearbox(name="gears", bd=bd), Lagging(name="lag", bd=bd)
    bd.connect(bd.CONSTANT(0.8), gears)
    bd.connect(gears, lag)
    ends = []
    for gear, gain in ((0, 0.4), (1, 1.6), (2, math.sin(0.8))):
        gears.gear = gear
        out = sim.run(bd, T=0.6)
        ends.append(bd.__dict__["_compiled_form"].program)
        assert out.x[-1, 0] == pytest.approx(gain * (1.0 - math.exp(-0.6 / 0.3)), rel=1e-5)
    assert ends[0] is ends[1] is ends[2]


class Compensating(FunctionBlock):
    """The torque against gravity that a mechanism needs, of which the second link's mass is guessed."""

    nin, nout = 2, 1

    def __init__(self, mech, **options):
        super().__init__(**options)
        self.mech = mech

    @property
    def guess(self):
        return self.mech.link("forearm").mass

    @guess.setter
    def guess(self, mass):
        self.mech = self.mech.with_parameters({"forearm.mass": float(mass)})

    def output(self, t, u, x):
        load = self.mech.gravity_load(u[0])[1] + 0.1 * self.mech.links[1].mass
        mass = self.mech.hybrid_dynamics(u[0], u[1], np.zeros(2)).qdd
        return [load - 2.0 * u[1][1] + 0.01 * mass[0]]


def compensated(sim):
    bd = sim.blockdiagram("own")
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.1], name="plant")
    law = placed(bd, Compensating(ACROBOT, name="law"))
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law, plant.tau)
    return bd


@pytest.mark.parametrize("mass", [1.0, 1.3])
def test_gradients_go_through_the_mechanism_that_a_block_asks(mass):
    """The mass was a constant in the trace: its derivative was zero, and another mass needed another trace.

    A mass of 1 folds where nobody asks for its derivative.
    """
    sim, found = simulation("compiled"), []
    bd = compensated(sim)
    law = bd.blocknames["law"]
    law.guess = mass
    gradient = sim.gradient(bd, lambda out: float(out.x[-1, 0]), ["law.guess"], T=0.5)
    assert law.guess == mass
    for law.guess in (mass - 1e-4, mass + 1e-4):
        found.append(sim.run(bd, T=0.5, rtol=1e-11, atol=1e-12).x[-1, 0])
    slope = float(np.ravel(gradient.gradient)[0])
    assert abs(slope) > 1e-2 and slope == pytest.approx((found[1] - found[0]) / 2e-4, rel=1e-4)


def test_another_mass_of_a_mechanism_needs_no_other_trace():
    sim = simulation("compiled")
    bd = compensated(sim)
    bd.blocknames["law"].guess = 1.3
    first = sim.run(bd, T=0.5)
    program = bd.__dict__["_compiled_form"].program
    bd.blocknames["law"].guess = 1.5
    second = sim.run(bd, T=0.5)
    assert bd.__dict__["_compiled_form"].program is program
    assert any(way.startswith("output: traced") for way in ways(bd))
    assert abs(second.x[-1] - first.x[-1]).max() > 1e-3


def test_a_mass_that_no_longer_folds_is_traced_anew():
    """Zeros and ones of a mechanism are not inputs of the code."""
    found = []
    for engine in ("compiled", "interpreted"):
        sim = simulation(engine)
        bd = compensated(sim)
        bd.blocknames["law"].guess = 1.0
        sim.run(bd, T=0.1)
        bd.blocknames["law"].guess = 1.25
        found.append(sim.run(bd, T=0.5).x[-1])
    np.testing.assert_allclose(found[0], found[1], atol=1e-8)


def test_a_block_that_asks_a_large_mechanism_calls_its_kernels():
    """Nothing is unrolled for seconds, and nothing is asked in Python: a call stands in what is written down."""
    mech = library.chain(20)

    class Heavy(FunctionBlock):
        nin, nout = 1, 1

        def output(self, t, u, x):
            return [mech.inverse_dynamics(u[0] * np.ones(20), np.zeros(20), np.zeros(20))[0]]

    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram("own")
        bd.connect(bd.WAVEFORM("sine", freq=0.5, name="wave"), placed(bd, Heavy(name="heavy")))
        bd.connect(bd.blocknames["heavy"], bd.INTEGRATOR(name="total"))
        found.append(sim.run(bd, T=0.02, solver="RK4", dt=0.01).x)
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert "output: traced; kernels with loops are called for its large mechanism" in ways(bd)


class Shaped(FunctionBlock):
    nin, nout = 2, 2

    def __init__(self, scale=2.0, **options):
        super().__init__(**options)
        self.scale, self.weights = scale, np.array([0.5, -1.0])

    def output(self, t, u, x):
        return [self.scale * np.tanh(u[0]) + math.cos(t), np.clip(self.weights * u[1], -0.2, 0.2)]


class Lagging(ContinuousBlock):
    nin, nout, nstates = 1, 1, 1

    def __init__(self, tau=0.3, **options):
        super().__init__(feedthrough=False, **options)
        self.tau = tau
        self._x0 = np.zeros(1)

    def output(self, t, u, x):
        return [x[0]]

    def deriv(self, t, u, x):
        return np.array([(u[0] - x[0]) / self.tau])


class Branching(Lagging):
    def deriv(self, t, u, x):
        return np.array([1.0 if u[0] > x[0] else -1.0]) / self.tau


class Looping(Lagging):
    def deriv(self, t, u, x):
        while t < -1.0:  # which symbols never end
            t += 1.0
        return super().deriv(t, u, x)


class Summing(SampledBlock):
    nin, nout, ndstates = 1, 1, 1

    def __init__(self, clock, leak=0.5, **options):
        super().__init__(clock=clock, x0=np.zeros(1), **options)
        self.leak = leak

    def output(self, t, u, x):
        return [x[0]]

    def next(self, t, u, x):
        return np.array([self.leak * x[0] + u[0]])


def with_blocks(sim, state):
    bd = sim.blockdiagram("own")
    wave, pair = bd.WAVEFORM("sine", freq=0.5, name="wave"), bd.CONSTANT(np.array([0.1, 0.4]), name="pair")
    shaped, lag = placed(bd, Shaped(name="shaped")), placed(bd, state(name="lag"))
    summing = placed(bd, Summing(bd.clock(0.1, "s"), name="summing"))
    bd.connect(wave, shaped[0])
    bd.connect(pair, shaped[1])
    bd.connect(shaped[0], lag, summing)
    bd.connect(lag, bd.INTEGRATOR(name="total"))
    return bd


@pytest.mark.parametrize(
    ("state", "way"), [(Lagging, "deriv: traced"), (Branching, "deriv: traced"), (Looping, "deriv: asked in Python")]
)
def test_blocks_of_ones_own_run_in_both_engines(state, way):
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = with_blocks(sim, state)
        found.append(sim.run(bd, T=1.0, solver="RK4", dt=0.01, watch="all"))
    np.testing.assert_allclose(found[1].x, found[0].x, atol=1e-12)
    for ours, theirs in zip(found[1][".ywatch"], found[0][".ywatch"], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert any(said.startswith(way) for said in ways(bd)), ways(bd)


def test_a_number_of_a_block_is_read_anew():
    sim = simulation("compiled")
    bd = with_blocks(sim, Lagging)
    first = sim.run(bd, T=0.5)
    program = bd.__dict__["_compiled_form"].program
    bd.blocknames["shaped"].scale = 5.0
    second = sim.run(bd, T=0.5)
    assert bd.__dict__["_compiled_form"].program is program
    assert abs(second.x[-1] - first.x[-1]).max() > 1e-2


def test_the_way_of_each_block_is_explained():
    sim = simulation("compiled")
    told = sim.explain(with_blocks(sim, Looping)).splitlines()
    lines = {line.split()[0]: line for line in told}
    assert lines["wave"].endswith("output: traced") and "output: traced" in lines["shaped"]
    assert "deriv: asked in Python, as it cannot be traced: it asks for more than 64 truths" in lines["lag"]
    assert "test_own_blocks.py" in lines["lag"]


def test_who_sets_a_number_of_an_own_block_as_a_parameter_is_told_to_set_the_attribute():
    class Leak(FunctionBlock):
        nin, nout = 1, 1

        def __init__(self, factor, **blockargs):
            super().__init__(**blockargs)
            self.factor = factor

        def output(self, t, u, x):
            return [self.factor * u[0]]

    bd = simulation("interpreted").blockdiagram()
    leak = Leak(2.0, name="leak", bd=bd)
    with pytest.raises(UnknownName, match=r"'factor' is no tunable one; set it by .*\.factor = "):
        leak.set_param("factor", 3.0)
    with pytest.raises(UnknownName, match=r"parameter 'facto' does not exist"):
        leak.set_param("facto", 3.0)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_an_output_that_reads_inputs_unannounced_gets_none(engine):
    """It got them behind a source, and else those of another time: a sampled block held nothing, engines differed."""

    class Passing(SampledBlock):
        def __init__(self, clock, **blockargs):
            super().__init__(clock, x0=[0.0], nin=1, nout=1, **blockargs)

        def output(self, t, u, x):
            return [u[0]]

        def next(self, t, u, x):
            return x

    def wired(**options):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        bd = sim.blockdiagram()
        passing = Passing(bd.clock(1, "s"), name="passing", bd=bd, **options)
        bd.connect(bd.TIME(), passing)
        bd.connect(passing, bd.INTEGRATOR(name="total"))
        return sim, bd

    sim, bd = wired()
    with pytest.raises(
        CstormError, match=r"'passing', output at t = 0: output\(\) returned None; .* made with feedthrough=True"
    ):
        sim.run(bd, T=3.0)
    sim, bd = wired(feedthrough=True)
    assert sim.run(bd, T=3.0).x[-1] == pytest.approx(0.0 + 1.0 + 2.0)


class Shown(ContinuousBlock):
    """A lag whose output is what a function makes of (u, x)."""

    def __init__(self, shown, **blockargs):
        super().__init__(nin=1, nout=1, nstates=1, **blockargs)
        self._x0, self.shown = np.zeros(1), shown

    def output(self, t, u, x):
        return [self.shown(u, x)]

    def deriv(self, t, u, x):
        return np.array([u[0] - x[0]])


def test_a_sampled_block_whose_output_grows_is_named():
    """A compiled run left with NumPy's words on broadcasting."""

    class Growing(Listing):
        def output(self, t, u, x):
            return [np.ones(1 if t < 0.55 else 2)]

    sim = simulation("compiled")
    bd = sim.blockdiagram()
    bd.connect(Growing(bd.clock(10, "Hz"), feedthrough=True, name="growing", bd=bd), bd.NULL())
    out = sim.run(bd, T=1.0)
    assert out.status == "failed"
    assert out.message.startswith("block 'growing': output() returned 2 numbers, 1 before this")


class Listing(SampledBlock):
    """Both states as a list."""

    def __init__(self, clock, **options):
        super().__init__(clock, x0=[1.0, 2.0], onames=["y"], **options)

    def output(self, t, u, x):
        return [[x[0], x[1]]]

    def next(self, t, u, x):
        return x


def test_a_sampled_block_without_states_is_named():
    """It was an AssertionError of bdsim, without the block."""

    class Rounding(SampledBlock):
        def __init__(self, clock, **options):
            super().__init__(clock, ndstates=0, inames=["u"], onames=["y"], feedthrough=True, **options)

        def output(self, t, u, x):
            return [round(u[0])]

        def next(self, t, u, x):
            return x

    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    bd.connect(bd.TIME(), Rounding(bd.clock(10, "Hz"), name="encoder", bd=bd))
    with pytest.raises(CstormError, match=r"block 'encoder' \(ROUNDING\): has no states.* x0=\[0\.0\]"):
        sim.run(bd, T=1.0)


LISTS = {
    "own": lambda bd: Listing(bd.clock(10, "Hz"), bd=bd),
    "step": lambda bd: bd.STEP(T=0.5, off=[0, 0], on=[1, 2]),
    "pieces": lambda bd: bd.PIECEWISE((0, [0.0, 0.0]), (0.5, (1.0, 2.0))),
    "function": lambda bd: bd.FUNCTION(lambda t: [[1.0, 2.0]], inputs=bd.TIME()),
}


@pytest.mark.parametrize("engine", ["interpreted", "compiled", "auto"])
@pytest.mark.parametrize("name", LISTS)
def test_lists_of_numbers_are_signals_as_arrays_are(name, engine):
    """Python joins lists that are summed, and repeats one that is doubled: eight numbers, in the default engine."""
    sim = simulation(engine)
    bd = sim.blockdiagram()
    both, twice = bd.SUM("++", name="both"), bd.GAIN(2, name="twice")
    bd.connect(LISTS[name](bd), both[0])
    bd.connect(LISTS[name](bd), both[1])
    bd.connect(both, twice)
    bd.connect(twice, bd.NULL())
    out = sim.run(bd, T=1.0, watch=["twice"])
    np.testing.assert_array_equal(out.signal("twice")[-1], [4.0, 8.0])


@pytest.mark.parametrize("signal", [[SE3(1.0, 2.0, 3.0), SE3()], ("low", 1.0)], ids=["poses", "text"])
def test_lists_of_what_is_no_number_are_signals_as_they_are(signal):
    """NumPy makes an array of poses, too, in which they are none any more."""
    seen = []

    class Gives(SourceBlock):
        nin, nout = 0, 1

        def output(self, t, u, x):
            return [signal]

    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    bd.connect(Gives(bd=bd, name="gives"), look := bd.FUNCTION(lambda u: (seen.append(u), 0.0)[1]))
    bd.connect(look, bd.NULL())
    assert sim.run(bd, T=0.1).status == "finished"
    assert seen and all(type(each) is type(signal) and list(each) == list(signal) for each in seen)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("value", [[1, 2], np.array([1, 2])], ids=["list", "array"])
def test_what_is_written_into_a_copy_of_a_constant_of_whole_numbers_is_not_cut_off(value, engine):
    """0.6 was 0 in both engines, or refused by the compiled one, as NumPy's arrays of whole numbers have it."""

    class Filter(SampledBlock):
        def __init__(self, clock, **options):
            super().__init__(clock, x0=[0.0, 0.0], inames=["u"], onames=["y"], **options)

        def output(self, t, u, x):
            return [x.copy()]

        def next(self, t, u, x):
            after = np.zeros_like(u[0])
            after[0] = 0.6 * u[0][0]
            return after

    sim = simulation(engine)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(value), Filter(bd.clock(10, "Hz"), name="filter", bd=bd))
    np.testing.assert_allclose(sim.run(bd, T=0.5, watch=["filter"]).signal("filter")[-1], [0.6, 0.0])


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_row_plus_a_column_as_the_next_state_is_told_by_its_shape(engine):
    """``A @ x + B * u`` with x (2,) and B (2, 1) is a matrix; the advice was a wider x0."""

    class Filter(SampledBlock):
        def __init__(self, clock, **options):
            super().__init__(clock, x0=[0.0, 0.0], inames=["u"], onames=["y"], **options)

        def output(self, t, u, x):
            return [x.copy()]

        def next(self, t, u, x):
            return x + np.array([[0.0], [0.1]]) * u[0]

    sim = simulation(engine)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0), Filter(bd.clock(10, "Hz"), name="filter", bd=bd))
    with pytest.raises(CstormError, match=r"next\(\) gives an array of shape \(2, 2\); return one number for each"):
        sim.run(bd, T=1.0)


@pytest.mark.parametrize(
    ("shown", "of_inputs"),
    [
        (lambda u, x: 2.0 * u[0], True),
        (lambda u, x: np.array([x[0], u[0]]), True),
        (lambda u, x: x[1], False),
        (lambda u, x: [1.0, 2.0] @ x, False),
    ],
)
def test_what_is_wrong_in_an_output_is_told_with_its_inputs_where_these_are_seen(shown, of_inputs):
    """It was told that it got 1.0, of which it had seen None, and of any mistake that feedthrough=True helps."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0, name="u"), block := Shown(shown, bd=bd, name="block"))
    bd.connect(block, bd.NULL())
    with pytest.raises(CstormError) as caught:
        sim.linearize(bd, inputs=["u"], outputs=["block"])
    said = str(caught.value)
    assert "(SHOWN), output at t = 0" in said and "was given" not in said
    assert ("made with feedthrough=True" in said) == of_inputs


@pytest.mark.parametrize(("first", "ops"), [([1.0, 2.0], "*/"), (2.0, "**")])
def test_a_product_of_vectors_says_what_multiplies_them_number_by_number(first, ops):
    """It ended in NumPy's words about matrices; two vectors alike are their inner product, as bdsim has it."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    product = bd.PROD(ops, name="product")
    bd.connect(bd.CONSTANT(first), product[0])
    bd.connect(bd.CONSTANT([3.0, 4.0]), product[1])
    bd.connect(product, bd.NULL())
    with pytest.raises(CstormError, match=r"element by element do bd.FUNCTION\(numpy.multiply, nin=2\)"):
        sim.run(bd, T=0.1)


def test_an_output_of_another_kind_is_told_without_another_remedy():
    """That its inputs are not there yet was told too, though it reads none."""

    class Plain(ContinuousBlock):
        def __init__(self, **blockargs):
            super().__init__(nin=1, nout=1, nstates=1, **blockargs)
            self._x0 = np.zeros(1)

        def output(self, t, u, x):
            return x

        def deriv(self, t, u, x):
            return -x

    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0), plain := Plain(bd=bd, name="plain"))
    bd.connect(plain, bd.NULL())
    with pytest.raises(CstormError, match="must return a list of 1 value") as caught:
        sim.run(bd, T=0.1)
    assert "feedthrough" not in str(caught.value)


@pytest.mark.parametrize("memory", [5, lambda self, k: k], ids=["number", "method of another kind"])
def test_a_block_of_ones_own_may_call_something_memory(memory):
    """It was called at the end of the run, whose result was lost."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()

    class Average(FunctionBlock):
        nin, nout = 1, 1

        def output(self, t, u, x):
            return [0.5 * u[0]]

    Average.memory = memory
    average = Average(bd=bd, name="average")
    bd.connect(bd.CONSTANT(2.0), average)
    bd.connect(average, bd.INTEGRATOR(name="sum"))
    out = sim.run(bd, T=1.0)
    assert out.x[-1, 0] == pytest.approx(1.0) and sim.run(bd, T=1.0, start=out).x[-1, 0] == pytest.approx(2.0)
