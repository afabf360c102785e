"""Steppers of diagrams whose sources jump: as runs, which end steps there, and as what is known in closed form."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from bdsim.components import SourceBlock

import cstormpy as cs
from cstormpy.simulation.edges import Edges


class Alarm(SourceBlock):
    """A source of a user: 1 from `at` on, for as long as it `lasts`, and again after each round of 1 s."""

    nin, nout = 0, 1

    def __init__(self, at=0.3, lasts=0.11, **blockargs):
        super().__init__(**blockargs)
        self.at, self.lasts = at, lasts

    def output(self, t, u, x):
        return [np.where(np.mod(t - self.at, 1.0) < self.lasts, 1.0, 0.0)]

    def edges(self):
        return [self.at, self.at + self.lasts], 1.0


def wave(shape):
    return lambda bd: bd.WAVEFORM(shape, freq=1.7, phase=0.2, duty=0.3, name="source")


def spline(bd, **options):
    source = bd.SPLINETRAJECTORY([0.0, 0.3, 1.0, 1.0], duration=0.7, degree=1, name="source", **options)
    bd.connect(source[0], bd.NULL())
    bd.connect(source[2], bd.NULL())
    return source[1]


SOURCES = {
    "step": lambda bd: bd.STEP(T=0.83, on=2.0, name="source"),
    "ramp": lambda bd: bd.RAMP(T=0.41, slope=-1.5, name="source"),
    "piecewise": lambda bd: bd.PIECEWISE((0, 1.0), (0.37, -2.0), (1.21, 0.5), name="source"),
    "pulse": lambda bd: bd.PULSE(amplitude=3.0, period=0.43, width=0.3, delay=0.19, name="source"),
    "square": wave("square"),
    "triangle": wave("triangle"),
    "data": lambda bd: bd.FROMDATA(t=[0, 0.3, 0.3, 0.9], y=[0, 1, -1, 0], name="source"),
    "held data": lambda bd: bd.FROMDATA(
        t=[0, 0.3, 0.9], y=[1, 2, -3], interpolation="previous", ends="repeat", name="source"
    ),
    "rate of a spline": spline,
    "rate of one repeated": functools.partial(spline, start=0.1, ends="repeat"),
    "own": lambda bd: Alarm(name="source", bd=bd),
}


def lag(sim, source, sampled=False):
    """Return ẋ = u - 2 x with u from a source, and perhaps sampled at 7 Hz."""
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(0.4, name="x"), bd.SUM("+-", name="rate")
    u = SOURCES[source](bd)
    if sampled:
        bd.connect(u, held := bd.ZOH(bd.clock(7, "Hz"), name="held"), bd.INTEGRATOR(0.0, name="beside"))
        u = held
    bd.connect(u, rate[0])
    bd.connect(x, twice := bd.GAIN(2.0, name="twice"))
    bd.connect(twice, rate[1])
    bd.connect(rate, x)
    return bd


def simulation():
    return cs.Simulation(engine="compiled", progress=False, live=False)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_steps_end_where_a_source_jumps(source, sampled):
    """They were refused: what a source gives was to be put in from outside."""
    sim = simulation()
    bd = lag(sim, source, sampled)
    one = sim.stepper(bd, outputs=["x"], substeps=6)
    many = sim.batch_stepper(bd, outputs=["x"], count=3, substeps=6)
    many.reset(t=0.35, where=[False, True, False])
    for _ in range(23):
        y = one.step([], 0.09)
        rows = many.step(np.zeros((3, 0)), 0.09)
        assert np.abs(rows[[0, 2], 0] - y[0]).max() < 1e-12
    out = sim.run(bd, T=23 * 0.09, rtol=1e-11, atol=1e-13)
    assert abs(y[0] - out.x[-1, 0]) < 3e-8  # a stage that is beyond a jump has 1e-2 of it
    later = sim.run(bd, T=23 * 0.09, rtol=1e-11, atol=1e-13, start=at_time(one, 0.35))
    assert abs(rows[1, 0] - later.x[-1, 0]) < 3e-8


def at_time(stepper, t):
    """Return where a stepper begins that is reset to a time."""
    stepper.reset(t=t)
    return stepper.state


@pytest.mark.parametrize("dt", [0.1, 0.05, 0.3])
def test_jumps_come_where_steps_end_by_rounding(dt):
    """Sums of 0.1 lie beside 0.7 and 0.8: what jumps there belongs to the next step, all of it."""
    sim = simulation()
    bd = sim.blockdiagram()
    bd.connect(bd.PULSE(amplitude=1.0, period=0.2, width=0.5, delay=0.1, name="source"), bd.INTEGRATOR(name="x"))
    stepper = sim.stepper(bd, outputs=["x"])
    batch = sim.batch_stepper(bd, outputs=["x"], count=2)
    for k in range(1, 120):
        y, rows = stepper.step([], dt), batch.step(np.zeros((2, 0)), dt)
        full, rest = divmod(round(k * dt, 9), 0.2)
        assert abs(y[0] - (0.1 * full + max(0.0, rest - 0.1))) < 1e-12
        assert abs(rows[1, 0] - y[0]) < 1e-12


@pytest.mark.parametrize("beside", [1e-13, -1e-13, 9e-13, -9e-13, 2e-12, -2e-12])
def test_jumps_a_little_beside_the_ends_of_steps_are_seen_on_their_side(beside):
    """What was as good as the end of a step was seen behind it from within, and before it from the next."""
    sim = simulation()
    bd = sim.blockdiagram()
    bd.connect(bd.PULSE(amplitude=1.0, period=0.2, width=0.5, delay=0.1), bd.INTEGRATOR(name="x"))
    stepper, batch = sim.stepper(bd, outputs=["x"]), sim.batch_stepper(bd, outputs=["x"], count=2)
    stepper.reset(t=beside), batch.reset(t=beside)
    for _ in range(100):
        y, rows = stepper.step([], 0.1), batch.step(np.zeros((2, 0)), 0.1)
    assert [y[0], rows[1, 0]] == pytest.approx([5.0, 5.0], abs=1e-11)
    for engine in ("interpreted", "compiled"):
        own = cs.Simulation(engine=engine, live=False, progress=False)
        out = own.run(bd, T=0.1 + max(beside, -beside / 4.0), solver="RK4", dt=0.05)
        assert out.x[-1, 0] == pytest.approx(0.0, abs=1e-11)


def test_a_push_is_met_by_steppers_and_environments():
    sim = simulation()
    bd = sim.blockdiagram()
    arm = bd.HYBRIDDYNAMICS("planar_2r", q0=[-1.2, 0.3], wrench=True, name="arm")
    push = bd.PUSH("planar_2r", schedule=[(0.21, 0.27, [0, 0, 0, 0, 9.0, 0])], name="push")
    bd.connect(push, arm.wrench)
    bd.connect(bd.CONSTANT([0.0, 0.0], name="torque"), arm.tau)
    stepper = sim.stepper(bd, inputs=["torque"], outputs=["arm.q"], substeps=20)
    for _ in range(20):
        q = stepper.step([0.0, 0.0], 0.05)
    out = sim.run(bd, T=1.0, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(q, out.x[-1, :2], rtol=0, atol=1e-7)


def test_numbers_that_say_when_are_taken_up_by_reset():
    sim = simulation()
    bd = sim.blockdiagram()
    bd.connect(late := bd.STEP(T=0.83, name="late"), bd.INTEGRATOR(name="x"))
    stepper = sim.stepper(bd, outputs=["x"])
    late.T = 0.53
    stepper.reset()
    assert abs(stepper.step([], 1.0)[0] - 0.47) < 1e-13


@pytest.mark.parametrize(
    ("source", "later"),
    [("square", 3 / 1.7), ("triangle", 3 / 1.7), ("held data", 1.8), ("rate of one repeated", 2.1), ("step", 2.0)],
)
def test_jumps_before_the_time_of_0_are_met_as_later_ones(source, later):
    """Those of what repeats were stepped over there, and batches saw each a little before its time."""
    sim, found = simulation(), []
    for shift in (0.0, later):
        bd = lag(sim, source)
        if source == "step":
            bd["source"].T = -0.83 + shift
        one = sim.stepper(bd, outputs=["x"])
        many = sim.batch_stepper(bd, outputs=["x"], count=2)
        for stepper in (one, many):
            stepper.reset(t=-1.37 + shift)
        for _ in range(15):
            y, rows = one.step([], 0.09), many.step(np.zeros((2, 0)), 0.09)
            assert abs(rows[1, 0] - y[0]) < 1e-12
        found.append(y[0])
    assert abs(found[0] - found[1]) < 1e-12


@pytest.mark.parametrize(
    "told", [[0.3], [0.3, 0.7], (0.3, 0.0), None, ([np.nan], 0.0), ([0.3], -1.0), ([0.3], np.inf), ([0.3], 0.0, 1)]
)
def test_edges_that_an_own_source_tells_wrongly_are_refused_with_its_name(told):
    sim = simulation()
    bd = lag(sim, "own")
    bd["source"].edges = lambda: told
    with pytest.raises(
        cs.BlockError, match=r"block 'source' \(ALARM\): edges\(\) returned .*'return \[0.2, 0.5\], 0.0'"
    ):
        sim.stepper(bd, outputs=["x"])


def test_edges_over_and_over_are_found_anywhere():
    edges = Edges(np.array([0.5, 0.2, 0.3]), np.array([np.inf, 1.0, 0.25]))
    given = np.arange(0.0, 3.0, 0.01) + 0.004
    listed = np.unique(np.round(np.r_[0.5, 0.2 + np.arange(5.0), 0.3 + 0.25 * np.arange(20)], 12))
    after = edges.after(given[:, None]).ravel()
    np.testing.assert_allclose(after, listed[np.searchsorted(listed, given)], rtol=0, atol=1e-12)
    for begin, end in ((0.0, 3.0), (0.2, 0.2), (1.3, 1.31), (0.6, 0.7)):
        within = listed[(listed >= begin) & (listed <= end)]
        np.testing.assert_allclose(np.unique(np.round(edges.between(begin, end), 12)), within, rtol=0, atol=1e-12)
