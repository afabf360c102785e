"""Diagrams with clocks that are stepped from outside: they tick as in a run, by the inputs of the step behind that."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from bdsim.components import SampledBlock
from scipy.linalg import expm

import cstormpy as cs
from cstormpy.errors import BlockError, CstormError, DiagramError
from cstormpy.simulation.analysis.clocked_rows import ClockedRows


@pytest.fixture
def sim():
    return cs.Simulation(engine="compiled", live=False, progress=False)


def led(sim, T=0.1, offset=0.0):
    """Return a mass on a spring, pushed by what a ZOH holds of an error."""
    bd = sim.blockdiagram()
    wanted, error, force = bd.CONSTANT(0.5, name="wanted"), bd.SUM("+-", name="error"), bd.SUM("+--", name="force")
    place, speed = bd.INTEGRATOR(0.3, name="place"), bd.INTEGRATOR(-0.2, name="speed")
    damper, spring = bd.GAIN(0.5, name="damper"), bd.GAIN(2.0, name="spring")
    held = bd.ZOH(bd.clock(T, offset=offset), x0=0.7, name="held")
    bd.connect(speed, place, damper)
    bd.connect(place, error[1], spring)
    bd.connect(wanted, error[0])
    bd.connect(error, held)
    for port, block in enumerate((held, damper, spring)):
        bd.connect(block, force[port])
    bd.connect(force, speed)
    return bd


#: Rates of (place, speed, held).
SPRING = np.array([[0.0, 1.0, 0.0], [-2.0, -0.5, 1.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("T", "offset", "dt"), [(0.1, 0.0, 0.1), (0.1, 0.0, 0.025), (0.1, 0.03, 0.07), (0.1, 0.0, 0.25), (0.07, 0.02, 0.1)]
)
def test_a_loop_with_a_hold_is_its_discrete_loop_by_hand(sim, T, offset, dt):
    """It was refused. By matrix exponentials between the ticks, and inputs that change with each step."""
    stepper = sim.stepper(led(sim, T, offset), ["wanted"], ["place", "held"], substeps=50)
    now, tick = np.array([0.3, -0.2, 0.7]), 0
    np.testing.assert_array_equal(stepper.reset(), now[[0, 2]])
    for k, wanted in enumerate(np.random.default_rng(1).normal(size=24)):
        t, end = k * dt, (k + 1) * dt
        while offset + tick * T < end - 1e-9:
            due = max(offset + tick * T, t)
            now = expm(SPRING * (due - t)) @ now
            now[2], t, tick = wanted - now[0], due, tick + 1
        now = expm(SPRING * (end - t)) @ now
        np.testing.assert_allclose(stepper.step([wanted], dt), now[[0, 2]], rtol=0, atol=1e-10)
        np.testing.assert_allclose(stepper.x, now[:2], rtol=0, atol=1e-10)


def test_ticks_are_met_by_any_number_of_steps_of_a_part_of_the_period(sim):
    """Times that are added up are rounded: those of 10 000 steps lay beside the ticks."""
    bd = sim.blockdiagram()
    u, held = bd.CONSTANT(0.0, name="u"), bd.ZOH(bd.clock(0.1), name="held")
    bd.connect(u, held)
    bd.connect(held, bd.NULL())
    stepper = sim.stepper(bd, ["u"], ["held"])
    for k in range(10_000):
        (y,) = stepper.step([float(k)], 0.01)
        assert y == k // 10 * 10
    assert stepper.t == pytest.approx(100.0, abs=1e-12)


@pytest.mark.parametrize(("T", "begin"), [(1e-3, 1e4), (0.1, 1e6)])
def test_states_late_in_time_know_which_ticks_are_due(sim, T, begin):
    """Of times a rounding behind a tick it was lost: 15 and 4 of 150 were done."""
    bd = sim.blockdiagram()
    u, count = bd.CONSTANT(1.0, name="u"), bd.INTEGRATOR_S(bd.clock(T), gain=1.0, name="count")
    bd.connect(u, count)
    stepper = sim.stepper(bd, ["u"], ["count"])
    stepper.reset(t=begin)
    for _ in range(300):
        (y,) = stepper.step([1.0], T / 2)
        stepper.reset(stepper.state)
    assert y == pytest.approx(150 * T, rel=1e-9)


def late(sim):
    """Return a mass whose forces come late: by delays, a hold and a difference, each by a clock of its own."""
    bd = sim.blockdiagram()
    place, speed = bd.INTEGRATOR(1.0, name="place"), bd.INTEGRATOR(0.0, name="speed")
    push, force = bd.CONSTANT(0.2, name="push"), bd.SUM("+----", name="force")
    blocks = (
        bd.DELAY(bd.clock(0.05), time=0.12, x0=0.3, name="late"),
        bd.DELAY(bd.clock(0.03), samples=2, name="before"),
        bd.ZOH(bd.clock(0.05, offset=0.01), name="held"),
        bd.DERIV_S(bd.clock(0.07, offset=0.02), x0=0.4, name="rate"),
    )
    bd.connect(speed, place)
    bd.connect(place, *blocks)
    bd.connect(push, force[0])
    for port, (block, factor) in enumerate(zip(blocks, (4.0, 0.5, 0.3, 0.2), strict=True), 1):
        gain = bd.GAIN(factor)
        bd.connect(block, gain)
        bd.connect(gain, force[port])
    bd.connect(force, speed)
    return bd


LATE = ["place", "late", "before", "held", "rate"]


@pytest.mark.parametrize("dt", [0.01, 0.013, 0.05, 0.3])
def test_several_clocks_tick_as_in_a_run(sim, dt):
    stepper = sim.stepper(late(sim), ["push"], LATE, substeps=round(dt / 0.001))
    out = sim.run(late(sim), T=1.2, solver="RK4", dt=0.001, watch=LATE)
    ticks = np.concatenate(
        [np.arange(60) * T + offset for T, offset in ((0.05, 0), (0.03, 0), (0.05, 0.01), (0.07, 0.02))]
    )
    seen = 0
    while stepper.t < 1.2 - dt:
        y = stepper.step([0.2], dt)
        k = np.flatnonzero(np.abs(out.t - stepper.t) < 1e-9)
        if k.size:
            np.testing.assert_allclose(stepper.x, out.x[k[0]], rtol=0, atol=1e-9)
            if np.abs(ticks - stepper.t).min() > 1e-6 and abs(stepper.t - 0.12) > 1e-6:
                seen += 1
                np.testing.assert_allclose(y, [out.signal(name)[k[0]] for name in LATE], rtol=0, atol=1e-8)
    assert seen or dt >= 0.05


def steps_of(stepper, count=60):
    return np.array([stepper.step([0.2], 0.01) for _ in range(count)])


def test_a_state_with_what_is_sampled_is_gone_back_to(sim, tmp_path):
    """By a stepper, by another one, from a file, and by a run; and a stepper goes on from that of a run."""
    stepper = sim.stepper(late(sim), ["push"], LATE, substeps=10)
    steps_of(stepper, 47)
    state = stepper.state
    assert state.due and state.t == pytest.approx(0.47)
    state.save(tmp_path / "here.json")
    text = (tmp_path / "here.json").read_text()
    (tmp_path / "wrong.json").write_text(text.replace('"due": true', '"due": "false"'))
    with pytest.raises(CstormError, match="due: expected True or False, got 'false'"):
        stepper.reset(tmp_path / "wrong.json")
    many = sim.batch_stepper(late(sim), ["push"], LATE, substeps=10, count=2)
    first = many.reset(state, where=[False, True])[1]
    expected, other = steps_of(stepper), sim.stepper(late(sim), ["push"], LATE, substeps=10, x=state)
    x = stepper.x
    for start in (state, tmp_path / "here.json"):
        stepper.reset(start)
        np.testing.assert_allclose(steps_of(stepper), expected, rtol=0, atol=1e-12)
    for _ in range(2):
        np.testing.assert_allclose(steps_of(other), expected, rtol=0, atol=1e-12)
        other.reset()
    out = sim.run(late(sim), T=0.6, start=state, solver="RK4", dt=0.001)
    np.testing.assert_allclose(out.x[-1], x, rtol=0, atol=1e-12)
    for row in expected:
        np.testing.assert_allclose(many.step([[0.7], [0.2]], 0.01)[1], row, rtol=0, atol=1e-12)
    for row, time in ((0, 0.6), (1, 1.07)):  # the other one has begun anew
        assert many.state_of(row).t == pytest.approx(time) and many.state_of(row).due
    for kind in ("continuous", "sampled", "held"):
        found, wanted = (getattr(each, kind) for each in (many.state_of(1), stepper.state))
        assert found.keys() == wanted.keys()
        for name, values in wanted.items():
            np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(many.reset(state)[0], first)
    before = sim.run(late(sim), T=0.45, solver="RK4", dt=0.001)  # where two clocks tick, which it has had done
    other.reset(before)
    np.testing.assert_allclose(steps_of(other, 62)[2:], expected, rtol=0, atol=1e-12)


def test_a_state_before_a_delayed_signal_arrives_is_gone_back_to(sim):
    """The arrival was taken for later by the ticks that had been, and steps went over it; or was not known."""
    stepper, states = sim.stepper(late(sim), ["push"], LATE, substeps=3), []
    for _ in range(6):
        states.append(stepper.state)
        expected = stepper.step([0.2], 0.05)
    for each in (stepper, sim.stepper(late(sim), ["push"], LATE, substeps=3, x=states[5])):
        for begin in (1, 4):
            each.reset(states[begin])
            for _ in range(begin, 6):
                found = each.step([0.2], 0.05)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_a_state_says_whether_ticks_of_its_time_are_still_to_be_done(sim):
    """At a tick a stepper waits for the inputs of the next step, a run has seen its own."""
    stepper = sim.stepper(led(sim), ["wanted"], ["place", "held"])
    stepper.step([0.5], 0.1)
    state, out = stepper.state, sim.run(led(sim), T=0.1, solver="RK4", dt=0.1)
    assert state.due and not out.state.due
    x = out.x[-1]
    np.testing.assert_allclose(stepper.x, x, rtol=0, atol=1e-14)
    assert state.sampled["held"] == [pytest.approx(0.2)] and out.state.sampled["held"] == [pytest.approx(0.5 - x[0])]
    ends = [sim.run(led(sim), T=0.05, start=start, solver="RK4", dt=0.05).x[-1] for start in (state, out)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-14)
    stepper.reset(out)
    np.testing.assert_allclose(stepper.step([9.0], 0.05)[1], 0.5 - x[0])  # its input came too late for this tick
    stepper.reset(state)
    np.testing.assert_allclose(stepper.step([9.0], 0.05)[1], 9.0 - x[0])


def test_what_fails_leaves_samples_and_clocks_where_they_stood(sim):
    stepper = sim.stepper(late(sim), ["push"], LATE, substeps=10)
    expected = steps_of(stepper)
    stepper.reset()
    steps_of(stepper, 47)
    before = stepper.state
    for u, dt in (([np.nan], 0.1), ([0.2], -1.0), ([1e308], 40.0)):
        with pytest.raises(CstormError):
            stepper.step(u, dt)
        assert stepper.state == before
    other = sim.run(led(sim), T=0.1).state
    with pytest.raises(CstormError, match="has none of that name"):
        stepper.reset(other)
    assert stepper.state == before
    np.testing.assert_array_equal(steps_of(stepper, 13), expected[47:])


def test_a_start_at_another_time_has_clocks_that_have_not_ticked_before(sim):
    """At 3 s, where both clocks tick as at 0, all is as from 0."""
    bd = late(sim)
    stepper = sim.stepper(bd, ["push", "rate"], LATE[:4], substeps=10)

    def steps():
        return np.array([stepper.step([0.2, 0.0], 0.01) for _ in range(60)])

    expected = steps()
    stepper.reset(t=3.0)
    np.testing.assert_allclose(steps(), expected, rtol=0, atol=1e-11)
    assert stepper.t == pytest.approx(3.6)


@pytest.mark.parametrize(("make", "given", "seen"), [(led, "wanted", ["place", "held"]), (late, "push", LATE)])
@pytest.mark.parametrize(("dt", "substeps"), [(0.01, 2), (0.07, 7), (0.3, 30)])
def test_many_copies_tick_as_one_does(sim, make, given, seen, dt, substeps):
    """Each at times of its own: some are reset on the way, to other times."""
    one = [sim.stepper(make(sim), [given], seen, substeps=substeps) for _ in range(3)]
    many = sim.batch_stepper(make(sim), [given], seen, substeps=substeps, count=3)
    starts, rng = np.array([[0.2, 0.1], [0.3, 0.2]]), np.random.default_rng(0)
    for k in range(20):
        if k in (4, 13):
            t = 0.0 if k == 4 else 1.03
            y = many.reset(starts, t, where=[True, False, True])
            for row, x in zip((0, 2), starts, strict=True):
                np.testing.assert_allclose(y[row], one[row].reset(x, t), rtol=0, atol=1e-13)
        u = rng.normal(size=(3, 1))
        y = many.step(u, dt)
        for row, each in enumerate(one):
            np.testing.assert_allclose(y[row], each.step(u[row], dt), rtol=0, atol=1e-12)
            np.testing.assert_allclose(many.x[row], each.x, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(many.t, [each.t for each in one])


@pytest.mark.parametrize("offset", [-1e-6, -0.25])
def test_ticks_before_the_start_are_done_there_as_in_a_run(sim, offset):
    """Many copies went back in time to those that had been missed."""
    out = sim.run(led(sim, 0.1, offset), T=0.5, solver="RK4", dt=0.01)
    for make, u in ((sim.stepper, [0.5]), (functools.partial(sim.batch_stepper, count=1), [[0.5]])):
        stepper = make(led(sim, 0.1, offset), ["wanted"], ["place"], substeps=10)
        for _ in range(5):
            stepper.step(u, 0.1)
        np.testing.assert_allclose(np.ravel(stepper.x), out.x[-1], rtol=0, atol=1e-13)


def test_many_copies_stay_where_they_stood_where_one_fails(sim):
    many = sim.batch_stepper(late(sim), ["push"], LATE, count=2)
    first = [many.step(np.full((2, 1), 0.2), 0.01) for _ in range(20)]
    many.reset()
    for k in range(20):
        if k == 12:
            for u, dt in (([[0.2], [np.nan]], 0.1), ([[1e308], [0.2]], 40.0)):
                with pytest.raises(CstormError, match="row"):
                    many.step(u, dt)
        np.testing.assert_array_equal(many.step(np.full((2, 1), 0.2), 0.01), first[k])


def pushed_four_bar(bd):
    mech = cs.library.four_bar()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project([1.0, -1.8, -2.0])[0], name="plant")
    push, held = bd.CONSTANT([0.5], name="push"), bd.ZOH(bd.clock(0.07), x0=[0.0], name="held")
    bd.connect(push, held)
    bd.connect(held, plant.tau)
    return bd


def test_loops_stay_closed_between_ticks_as_in_a_run(sim, monkeypatch):
    out = sim.run(pushed_four_bar(sim.blockdiagram()), T=2.0, solver="RK4", dt=0.01)
    many = sim.batch_stepper(pushed_four_bar(sim.blockdiagram()), ["push"], ["plant.q"], count=2, substeps=5)
    steppers = [sim.stepper(pushed_four_bar(sim.blockdiagram()), ["push"], ["plant.q"], substeps=5), many]
    monkeypatch.setattr("cstormpy.simulation.compiled.program.Program.closes", False)  # as of larger mechanisms
    steppers.append(sim.stepper(pushed_four_bar(sim.blockdiagram()), ["push"], ["plant.q"], substeps=5))
    for stepper in steppers:
        for _ in range(40):
            stepper.step(np.full((2, 1), 0.5) if stepper is many else [0.5], 0.05)
        for x in np.atleast_2d(stepper.x):
            np.testing.assert_allclose(x, out.x[-1], rtol=0, atol=1e-10)


def test_a_loop_that_a_long_step_opens_is_closed_by_python_or_named(sim):
    """Machine code takes one Newton step: of a few more, as batches take, "a block of the diagram" failed."""
    one = sim.stepper(pushed_four_bar(sim.blockdiagram()), ["push"], ["plant.q"])
    many = sim.batch_stepper(pushed_four_bar(sim.blockdiagram()), ["push"], ["plant.q"], count=2)
    for _ in range(3):
        y, rows = one.step([1.0], 0.1), many.step([[1.0], [1.0]], 0.1)
        np.testing.assert_allclose(rows, [y, y], rtol=0, atol=1e-9)
    x, z = one.x, one.state.sampled
    with pytest.raises(cs.BlockError, match=r"step: at t = .*: loop pin: .* misses closure .* substeps="):
        one.step([300.0], 0.1)
    np.testing.assert_array_equal(one.x, x)
    assert one.state.sampled == z
    np.testing.assert_allclose(one.step([1.0], 0.02), many.step([[1.0], [1.0]], 0.02)[0], rtol=0, atol=1e-9)


def test_a_source_that_jumps_does_so_where_python_closes_a_loop(sim):
    """There the jump was stepped over."""
    bd = pushed_four_bar(sim.blockdiagram())
    bd.connect(bd.PULSE(period=0.1, width=0.4, delay=0.013), bd.INTEGRATOR(name="on"))
    stepper = sim.stepper(bd, ["push"], ["on", "plant.q"])
    for _ in range(3):
        stepper.step([1.0], 0.1)
    stepper.reset(stepper.state)
    assert stepper.step([1.0], 0.1)[0] == pytest.approx(0.16, rel=1e-12), "one Newton step does not close it here"


def test_what_is_held_from_the_start_follows_the_inputs_of_the_first_step(sim):
    """A difference whose clock ticks later holds what it is of the inputs at the start, as in a run."""
    bd = sim.blockdiagram()
    u, total = bd.CONSTANT(0.0, name="u"), bd.INTEGRATOR(0.0, name="total")
    rate = bd.DERIV_S(bd.clock(0.1, offset=0.05), x0=0.25, name="rate")
    bd.connect(u, rate)
    bd.connect(rate, total)
    names = ["rate", "total"]
    stepper, many = sim.stepper(bd, ["u"], names), sim.batch_stepper(bd, ["u"], names, count=2)
    for start in (None, stepper.state):  # which holds nothing yet either
        np.testing.assert_allclose([stepper.reset(start), *many.reset(start)], [[-2.5, 0.0]] * 3, rtol=1e-14)
        np.testing.assert_allclose(stepper.step([1.0], 0.04), [7.5, 0.3], rtol=1e-13)
        np.testing.assert_allclose(many.step([[1.0], [2.0]], 0.04), [[7.5, 0.3], [17.5, 0.7]], rtol=1e-13)
    u.value = 1.0
    assert sim.run(bd, T=0.04, start=sim.stepper(bd).state).x[-1, 0] == pytest.approx(0.3, rel=1e-12)


class Law(SampledBlock):
    """A law in Python that fails at what it does not like."""

    def __init__(self, clock, **options):
        super().__init__(clock, x0=[0.0], nin=1, nout=1, **options)
        self.calls = 0

    def output(self, t, u, x):
        return [x[0]]

    def next(self, t, u, x):
        self.calls += 1
        if float(u[0]) > 2.0:
            raise ValueError("more than I like")
        return 0.5 * x + float(u[0])


def test_a_law_in_python_ticks_once_and_says_why_it_fails(sim):
    """It was a block of the diagram that fails, which a run would name; not for inputs that come from outside."""
    bd = sim.blockdiagram()
    u, law, total = bd.CONSTANT(0.0, name="u"), Law(bd.clock(0.1), name="law", bd=bd), bd.INTEGRATOR(name="total")
    bd.connect(u, law)
    bd.connect(law, total)
    stepper = sim.stepper(bd, ["u"], ["law"])
    stepper.step([1.0], 0.25)
    state, calls = stepper.state, law.calls
    with pytest.raises(BlockError, match=r"stepper: block 'law' fails at t = 0\.3: ValueError: more than I like"):
        stepper.step([3.0], 0.1)
    assert stepper.state == state and state.sampled["law"] == [1.75]
    law.calls = 0
    (found,) = stepper.step([2.0], 0.5)
    assert (found, calls, law.calls) == (1.75 / 32 + 2.0 * (2.0 - 1.0 / 16), 3, 5)
    with pytest.raises(DiagramError, match=r"block 'law' has no code for many rows, .*; sim.stepper steps one copy"):
        sim.batch_stepper(bd, ["u"], ["law"], count=2)


def test_a_start_that_is_refused_leaves_many_copies_where_they_stood(sim):
    """Of a clock whose period has been set to what its blocks are not made for."""
    bd = led(sim)
    many = sim.batch_stepper(bd, ["wanted"], ["place"], count=2)
    many.step([[1.0], [2.0]], 0.25)
    before = [many.state_of(row) for row in (0, 1)]
    clock, bd.blocknames["held"]._clock.T = bd.blocknames["held"]._clock, 0.3
    with pytest.raises(CstormError, match=r"was made for 0\.1 s"):
        many.reset([3.0, 4.0], 0.0)
    clock.T = 0.1
    assert [many.state_of(row) for row in (0, 1)] == before


@pytest.mark.parametrize("where", ["stop", "begin"])
def test_ctrl_c_leaves_copies_where_they_stood(sim, monkeypatch, where):
    """Their clocks had ticked, or begun anew, while times and states were those before."""
    whole, ended = (sim.batch_stepper(led(sim, T=0.1), ["wanted"], ["place"], count=3) for _ in range(2))
    for stepper in (whole, ended):
        stepper.step(np.ones((3, 1)), 0.2)
    real = getattr(ClockedRows, where)

    def interrupted(*given):
        real(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ClockedRows, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            ended.step(np.zeros((3, 1)), 0.2) if where == "stop" else ended.reset(t=7.0)
    assert ended.state_of(0) == whole.state_of(0)
    for _ in range(3):
        np.testing.assert_array_equal(ended.step(np.ones((3, 1)), 0.12), whole.step(np.ones((3, 1)), 0.12))
