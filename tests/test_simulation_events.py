"""Zero crossings: located to 1e-9 where the times are known, handled with resets of states, never lost or doubled."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from bdsim.components import SinkBlock
from bdsim_examples import ball
from scipy.special import ellipk

import cstormpy as cs

NEAR = 1e-9
BOTH = (("^", "up"), ("v", "down"))


@pytest.fixture
def sim():
    return cs.Simulation()


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_events_say_what_has_happened(engine):
    """They told the time and the block alone."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.05 - math.pi / 2, 0], drives={"free": {}, "held": {"locked": ["elbow"]}})
    law = bd.CONTROLLER("acrobot", ["energy", "pd"], name="law")
    total = bd.INTEGRATOR(max=0.75, name="total")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    bd.connect(bd.CONSTANT(0.5), total)
    out = sim.run(bd, T=4.0, at={2.5: lambda: law.select("pd"), 3.0: lambda: plant.select("held")})
    told = [(round(event[0], 2), event.what) for event in out.events if event[1] != "law" or event[0] > 2.0]
    assert told == [(1.5, "reaches a limit"), (2.55, "the blend ends"), (3.0, "drive held")]
    assert [event.what for event in out.events if event[1] == "law"][:1] == ["phase balance"]
    assert copy.deepcopy(out.events)[0].what == pickle.loads(pickle.dumps(out.events))[0].what == out.events[0].what
    assert str(out).splitlines()[0].endswith("events, the last of 'hybriddynamics.0' (drive held))")


def of_time(bd, f):
    """Return a FUNCTION block of the time."""
    block = bd.FUNCTION(lambda t: f(t))
    bd.connect(bd.TIME(), block)
    return block


def crossings(out, name=None):
    return [t for t, block in out.events if name is None or block == name]


def moving(bd):
    """Give the diagram a state, so that there are steps to look within."""
    x = bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(1.0), x)
    return x


def nothing(block, states):
    """Handle an event by nothing."""


def bounces(height, e, until):
    """Return when a ball meets the floor."""
    fall = math.sqrt(2 * height / 9.81)
    times, gap = [fall], 2 * e * fall
    while times[-1] + gap <= until:
        times.append(times[-1] + gap)
        gap *= e
    return times


@pytest.mark.parametrize("solver", ["RK45", "DOP853", "RK23", "Radau", "BDF", "LSODA"])
def test_bouncing_ball(sim, solver):
    bd = sim.blockdiagram()
    ball(bd, 10.0, 0.8)
    out = sim.run(bd, 8.0, solver=solver, rtol=1e-10, atol=1e-12)
    assert crossings(out) == pytest.approx(bounces(10.0, 0.8, 8.0), abs=NEAR)
    assert out.x[:, 1].min() > -1e-9
    # before and after each bounce there is a sample, with the speed turned round
    for t in crossings(out):
        first, second = out.x[out.t == t]
        assert second[0] == pytest.approx(-0.8 * first[0], rel=1e-12)


def test_fixed_steps_find_events_too(sim):
    bd = sim.blockdiagram()
    ball(bd, 10.0, 0.8)
    out = sim.run(bd, 8.0, solver="RK4", dt=0.05)
    assert crossings(out) == pytest.approx(bounces(10.0, 0.8, 8.0), abs=NEAR)


def test_pendulum_passes_zero_at_quarters_of_its_period(sim):
    """Its period is 4 K(sin(a/2)) for an amplitude a: the complete elliptic integral, of the square of the modulus."""
    bd = sim.blockdiagram()
    rate, angle = bd.INTEGRATOR(x0=0.0, name="rate"), bd.INTEGRATOR(x0=2.0, name="angle")
    pull = bd.FUNCTION(lambda a: -math.sin(a))
    bd.connect(angle, pull)
    bd.connect(pull, rate)
    bd.connect(rate, angle)
    for direction, name in BOTH:
        bd.connect(angle, bd.EVENT(direction, nothing, name=name))
    out = sim.run(bd, 20.0, rtol=1e-11, atol=1e-13)
    quarter = ellipk(math.sin(1.0) ** 2)
    assert crossings(out, "down") == pytest.approx(quarter * np.arange(1, 20.0 / quarter, 4), abs=NEAR)
    assert crossings(out, "up") == pytest.approx(quarter * np.arange(3, 20.0 / quarter, 4), abs=NEAR)
    assert len(crossings(out)) == 5


@pytest.mark.parametrize(("true", "false"), [(True, False), (1.0, 0.0), (1.0, -1.0), (0.0, -1.0)])
def test_edges_of_boolean_signals(sim, true, false):
    """A signal that is true between 0.7123 and 1.3: both edges, wherever in a step they are."""
    bd = sim.blockdiagram()
    moving(bd)
    signal = of_time(bd, lambda t: true if 0.7123 <= t < 1.3 else false)
    for direction, name in BOTH:
        bd.connect(signal, bd.EVENT(direction, nothing, name=name))
    out = sim.run(bd, 2.0, max_step=0.1)
    assert crossings(out, "up") == pytest.approx([0.7123], abs=NEAR)
    assert crossings(out, "down") == pytest.approx([1.3], abs=NEAR)


def test_a_signal_that_is_true_in_many_intervals(sim):
    """Between edges the signal stands at exactly zero: no edge may be lost after one has fired."""
    bd = sim.blockdiagram()
    moving(bd)
    signal = of_time(bd, lambda t: float(math.sin(2 * math.pi * t) > 0.5))
    for direction, name in BOTH:
        bd.connect(signal, bd.EVENT(direction, nothing, name=name))
    out = sim.run(bd, 5.0, max_step=0.05)
    k = np.arange(5)
    assert crossings(out, "up") == pytest.approx(k + 1 / 12, abs=NEAR)
    assert crossings(out, "down") == pytest.approx(k + 5 / 12, abs=NEAR)


def test_two_events_at_once_are_handled_together(sim):
    bd = sim.blockdiagram()
    moving(bd)
    handled = []
    for name in ("one", "two"):
        signal = of_time(bd, lambda t: (t - 0.777) * (1 + t))
        bd.connect(signal, bd.EVENT("^", lambda block, states: handled.append(block.name), name=name))
    out = sim.run(bd, 2.0)
    assert handled == ["one", "two"]
    assert out.events[0][0] == out.events[1][0] == pytest.approx(0.777, abs=NEAR)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("back", [False, True])
def test_an_event_that_works_another_fires_once_unless_it_is_driven_back(engine, back):
    """A detector exactly zero where it had fired fired again, as soon as another event came at the same time."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=1.0, name="x")
    bd.connect(bd.CONSTANT(0.0), x)

    def halve(block, at):
        at[x][:] *= 0.5

    apart, small = bd.SUM("+--"), bd.COMPARE("<", 0.75, name="small")
    bd.connect(bd.TIME(), apart[0])
    bd.connect(bd.CONSTANT(0.253), apart[1])
    bd.connect(small * (0.125 * back), apart[2])  # the comparison may drive the first one back, for 0.125 s
    bd.connect(apart, bd.EVENT("^", halve, name="halving"))
    bd.connect(x, small)
    out = sim.run(bd, T=1.0, solver="RK4", dt=0.01)
    wanted = [(0.253, "halving"), (0.253, "small"), *[(0.378, "halving")] * back]
    assert [(round(t, 9), name) for t, name in out.events] == wanted


def _decides(bd, kind):
    if kind == "switch":
        block = bd.SWITCH(0.5, name="decides")
        bd.connect(bd.CONSTANT(1.0), block[0])
        bd.connect(bd.CONSTANT(0.0), block[2])
        return block, block[1]
    made = {"compare": bd.COMPARE, "relay": bd.RELAY, "counter": bd.COUNTER}[kind]
    given = {"compare": (">", 0.5), "relay": (0.5, 0.3, 1.0, 0.0), "counter": (0.5,)}[kind]
    block = made(*given, name="decides")
    return block, block


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("kind", ["compare", "relay", "switch", "counter"])
def test_a_block_that_decides_where_an_event_throws_its_signal_back(engine, kind):
    """Both fire at once: COMPARE went on saying true, at 0.25, and COUNTER counted no further rise."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x, above = bd.INTEGRATOR(x0=0.0, name="x"), bd.SUM("+-")
    bd.connect(bd.CONSTANT(1.0), x)
    bd.connect(x, above[0])
    bd.connect(bd.CONSTANT(0.5), above[1])

    def halve(block, at):
        at[x][:] *= 0.5

    block, port = _decides(bd, kind)
    bd.connect(x, port)
    bd.connect(above, bd.EVENT("^", halve, name="halving"))
    out = sim.run(bd, T=1.1, solver="RK4", dt=0.01, watch=[block])
    wanted = [(t, name) for t in (0.5, 0.75, 1.0) for name in ("decides", "halving", "decides")]
    assert [(round(t, 9), name) for t, name in out.events] == wanted
    said = out["decides"][np.searchsorted(out.t, [0.4, 0.6, 0.9, 1.05])]
    assert np.ravel(said).tolist() == ([0.0, 1.0, 2.0, 3.0] if kind == "counter" else [0.0] * 4)


def _falling(bd, x0, events):
    """Make a signal that falls by 1 per second, and events that put it somewhere: (name, when, to)."""
    x, time = bd.INTEGRATOR(x0=x0, name="x"), bd.TIME()
    bd.connect(bd.CONSTANT(-1.0), x)
    for name, when, to in events:

        def put(block, at, to=to):
            at[x][:] = to

        if isinstance(when, str):
            bd.connect(x, bd.EVENT(when, put, name=name))
        else:
            late = bd.SUM("+-")
            bd.connect(time, late[0])
            bd.connect(bd.CONSTANT(when), late[1])
            bd.connect(late, bd.EVENT("^", put, name=name))
    return x


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize(
    "settings", [{"solver": "RK4", "dt": 0.001}, {"solver": "RK4", "dt": 0.02}, {"solver": "RK45"}]
)
@pytest.mark.parametrize(
    ("x0", "events", "wanted"),
    [
        # what has just been thrown up is thrown across zero again, within the next step
        (0.5, [("A", "v", 1.0), ("B", 0.503, -1.0)], [(0.5, "A"), (0.503, "B"), (0.503, "A")]),
        # what has fallen through zero within the same step is thrown up
        (0.01, [("A", "^", 1.5), ("B", 0.015, 1.0)], [(0.015, "B"), (0.015, "A")]),
        # what has been thrown up is thrown down by an event that this has caused
        (0.5, [("A", "v", 1.0), ("B", "^", -1.0)], [(0.5, "A"), (0.5, "B"), (0.5, "A"), (0.5, "B")]),
    ],
)
def test_an_event_takes_a_signal_across_zero_soon_after_it_was_there(engine, settings, x0, events, wanted):
    """The last event of each was lost where the steps were long, and the signal went on from where B had left it."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    _falling(bd, x0, events)
    out = sim.run(bd, T=1.0, **settings)
    assert [(round(t, 9), name) for t, name in out.events][: len(wanted)] == wanted


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("by", ["relay", "handler"])
def test_a_state_that_stands_still_at_its_limit(engine, by):
    """It reached its limit again at each step, and the run was refused as one that chatters."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=0.0, max=1.0, name="x")
    if by == "relay":
        fills = bd.RELAY(1.0, 0.2, on=0.0, off=2.0, name="first")
        bd.connect(x, fills)
        bd.connect(fills, x)
    else:

        def fill(block, at):
            at[x][:] = 1.0

        late = bd.SUM("+-")
        bd.connect(bd.TIME(), late[0])
        bd.connect(bd.CONSTANT(0.5), late[1])
        bd.connect(late, bd.EVENT("^", fill, name="first"))
        bd.connect(bd.CONSTANT(0.0), x)
    out = sim.run(bd, T=2.0)
    assert out.status == "finished"
    assert [(round(t, 9), name) for t, name in out.events] == [(0.5, "first"), (0.5, "x")]
    assert out.x[-1, 0] == 1.0


def test_two_events_closely_one_after_the_other(sim):
    bd = sim.blockdiagram()
    moving(bd)
    for name, at in (("late", 0.777 + 1e-7), ("early", 0.777)):
        bd.connect(of_time(bd, lambda t, at=at: t - at), bd.EVENT("^", nothing, name=name))
    out = sim.run(bd, 2.0)
    assert [name for _, name in out.events] == ["early", "late"]
    assert crossings(out) == pytest.approx([0.777, 0.777 + 1e-7], abs=1e-12)


@pytest.mark.parametrize(("slope", "direction", "fires"), [(1, "^", True), (1, "v", False), (-1, "v", True)])
def test_a_signal_that_leaves_zero_at_the_beginning(sim, slope, direction, fires):
    """As in scipy: it crosses in the direction in which it leaves."""
    bd = sim.blockdiagram()
    moving(bd)
    bd.connect(of_time(bd, lambda t: slope * t), bd.EVENT(direction, nothing))
    out = sim.run(bd, 1.0)
    assert crossings(out) == pytest.approx([0.0] if fires else [], abs=NEAR)


def test_a_signal_that_stays_at_zero_does_not_fire(sim):
    bd = sim.blockdiagram()
    moving(bd)
    for direction in "^v":
        bd.connect(bd.CONSTANT(0.0), bd.EVENT(direction, nothing))
    assert crossings(sim.run(bd, 1.0)) == []


@pytest.mark.parametrize("end", [0.5, 1.0, 2.0, 0.3])
def test_an_event_exactly_at_the_end(sim, end):
    bd = sim.blockdiagram()
    x = moving(bd)
    bd.connect(of_time(bd, lambda t: t - end), bd.EVENT("^", lambda block, states: states[x].fill(7.0)))
    out = sim.run(bd, end)
    assert crossings(out) == [end]
    assert out.t[-1] == end
    assert out.x[-1, 0] == 7.0


def test_a_run_that_ends_at_an_event_does_not_handle_it_again_when_continued(sim):
    bd = sim.blockdiagram()
    moving(bd)
    bd.connect(of_time(bd, lambda t: t - 1.0), bd.EVENT("^", nothing))
    first = sim.run(bd, 1.0)
    second = sim.run(bd, 1.0, start=first.state)
    assert crossings(first) == [1.0]
    assert crossings(second) == []


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_clock_ticks_at_the_end_where_an_event_is_there_too(engine):
    """It did not where steps were taken many at once, and a continued run lacked that tick."""
    sim = cs.Simulation(engine=engine)

    def build():
        bd = sim.blockdiagram()
        x = moving(bd)
        bd.connect(of_time(bd, lambda t: t - 0.5), bd.COMPARE(">=", 0.0))
        bd.connect(x, hold := bd.ZOH(bd.clock(0.25), name="hold"))
        bd.connect(hold, bd.INTEGRATOR(name="sum"))
        return bd

    options = {"solver": "RK4", "dt": 0.125, "watch": ["hold"]}
    first = sim.run(build(), 0.5, **options)
    assert len(first.events) == 1 and first.signal("hold")[-1] == pytest.approx(0.5)
    second = sim.run(build(), 0.125, start=first.state, **options)
    assert second.signal("hold")[-1] == pytest.approx(0.5)
    assert second.x[-1, 1] == pytest.approx(0.25 * 0.25 + 0.5 * 0.125)


def test_the_jump_of_a_source_across_zero(sim):
    bd = sim.blockdiagram()
    x = moving(bd)
    bd.connect(bd.STEP(T=0.6, off=-1, on=1), bd.EVENT("^", lambda block, states: states[x].fill(0.0), name="step"))
    bd.connect(bd.WAVEFORM("square", freq=1, phase=0.1), bd.EVENT("v", nothing, name="square"))
    bd.connect(bd.PIECEWISE((0, 0), (0.25, 1)), bd.EVENT("^", nothing, name="from zero"))
    bd.connect(bd.PIECEWISE((0, 1), (0.45, 0)), bd.EVENT("v", nothing, name="to zero"))
    out = sim.run(bd, 2.0)
    assert crossings(out, "step") == [0.6]
    assert crossings(out, "square") == pytest.approx([0.6, 1.6], abs=1e-15)
    assert crossings(out, "from zero") == [0.25]
    assert crossings(out, "to zero") == [0.45]
    assert out.x[-1, 0] == pytest.approx(1.4, abs=1e-12)


def test_an_event_just_before_a_tick_does_not_stop_the_clock(sim):
    bd = sim.blockdiagram()
    x = moving(bd)
    hold = bd.ZOH(bd.clock(0.25), name="hold")
    bd.connect(x, hold)
    for shift in (0.0, 1e-13, 1e-11, -1e-13):
        bd.connect(of_time(bd, lambda t, shift=shift: t - 0.5 + shift), bd.EVENT("^", nothing))
    out = sim.run(bd, 1.5, watch=["hold"])
    clock = next(out[key] for key in out if key.startswith("clock"))
    assert clock.t.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
    assert len(out.events) == 4


NEARLY = (0.0, 1e-16, -1e-16, 1e-15, -1e-15, 1e-13, -1e-13, 1e-12, -1e-12, 3e-12, 1e-10, -1e-10, 1e-6, 0.013)
SHAPES = (lambda s: s, lambda s: s**3 + s, lambda s: 1.0 if s >= 0 else -1.0)


@pytest.mark.parametrize("seed", range(40))
def test_no_event_and_no_tick_is_lost_or_doubled(sim, seed):
    """Signals of all shapes that cross zero at ticks and at jumps, or within rounding of them."""
    rng = np.random.default_rng(seed)
    bd = sim.blockdiagram()
    T, offset = rng.choice([0.1, 0.25, 1 / 3, 0.07]), rng.choice([0, 0.01])
    bd.connect(moving(bd), bd.ZOH(bd.clock(T, offset=offset)))
    times = [rng.integers(1, int(1.4 / T)) * T + offset + rng.choice(NEARLY) for _ in range(rng.integers(1, 5))]
    for at in times:
        shape, sign = SHAPES[rng.integers(3)], rng.choice([-1, 1])
        signal = of_time(bd, lambda t, shape=shape, sign=sign, at=at: sign * shape(t - at))
        bd.connect(signal, bd.EVENT("^" if sign > 0 else "v", nothing))
    bd.connect(bd.STEP(T=times[0]), bd.NULL())
    solver = rng.choice(["RK45", "DOP853", "RK4", "Radau"])
    out = sim.run(bd, 1.5, solver=str(solver), **({"dt": 0.013} if solver == "RK4" else {"max_step": 0.1}))
    assert crossings(out) == pytest.approx(sorted(times), abs=NEAR)
    clock = next(out[key] for key in out if key.startswith("clock"))
    np.testing.assert_allclose(clock.t, np.arange(offset, 1.5 + 1e-12, T), rtol=0, atol=1e-11)
    assert (np.diff(out.t) >= 0).all()


@pytest.mark.parametrize("restitution", [0.9, 0.8, 0.5, 0.2, 0.05])
def test_a_zeno_ball_is_named_and_does_not_fall_through(sim, restitution):
    """The bounces accumulate; there the run ends, with all data until then."""
    bd = sim.blockdiagram()
    ball(bd, 10.0, restitution)
    out = sim.run(bd, 40.0)
    accumulation = math.sqrt(20 / 9.81) * (1 + 2 * restitution / (1 - restitution))
    assert out.status == "failed"
    assert "ground" in out.message and "chatters" in out.message
    assert out.t[-1] == pytest.approx(accumulation, abs=1e-5)
    assert out.x[:, 1].min() > -1e-7
    with pytest.raises(cs.DiagramError, match=r"ground.*chatters.*bounces to rest"):
        sim.run(bd, 40.0, on_error="raise")


def test_a_relay_without_hysteresis_chatters(sim):
    bd = sim.blockdiagram()
    x, state = bd.INTEGRATOR(x0=1.0, name="x"), {"relay": -1.0}
    relay = bd.FUNCTION(lambda x: state["relay"])
    bd.connect(relay, x)
    bd.connect(x, relay)
    bd.connect(x, bd.EVENT("^", lambda block, states: state.update(relay=-1.0)))
    bd.connect(x, bd.EVENT("v", lambda block, states: state.update(relay=1.0)))
    out = sim.run(bd, 3.0)
    assert out.status == "failed" and "hysteresis" in out.message
    assert out.t[-1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_several_that_chatter_together_are_named(engine):
    """Three blocks that switch at the same time hid from one another that each of them chatters: the run had no end."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(x0=0.5, name="x"), bd.SUM("+---")
    bd.connect(bd.CONSTANT(1.5), rate[0])
    for k in (1, 2, 3):
        above = bd.COMPARE(">", 0.0, name=f"above{k}")
        bd.connect(x, above)
        bd.connect(above, rate[k])
    bd.connect(rate, x)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and "above" in out.message and "chatters" in out.message
    assert out.t[-1] == pytest.approx(1 / 3, abs=1e-6) and len(out.events) == 15  # each once more, having left off


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_events_that_cause_one_another_without_end_are_named(engine):
    """Python's own recursion ended the run."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x = _falling(bd, 0.5, [("A", "v", 1.0)])
    y = bd.INTEGRATOR(x0=-1.0, name="y")
    bd.connect(bd.CONSTANT(0.0), y)

    def lift(block, at):
        at[y][:] = 1.0

    def lower(block, at):
        at[x][:] = at[y][:] = -1.0

    for signal, handler, name in ((x, lift, "B"), (y, lower, "C")):
        over = bd.SUM("+-")
        bd.connect(signal, over[0])
        bd.connect(bd.CONSTANT(0.5), over[1])
        bd.connect(over, bd.EVENT("^", handler, name=name))
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and "without end at t = 0.5: " in out.message
    assert {"A", "B", "C"} <= set(out.message.replace(",", "").replace(";", "").split())


def test_stop_at_a_crossing(sim):
    bd = sim.blockdiagram()
    x = moving(bd)
    over = bd.FUNCTION(lambda x: x - 0.4321)
    bd.connect(x, over)
    bd.connect(over, bd.STOP(name="enough"))
    out = sim.run(bd, 2.0)
    assert out.status == "stopped"
    assert "enough" in out.message
    assert out.t[-1] == pytest.approx(0.4321, abs=NEAR)
    assert out.x[-1, 0] == pytest.approx(0.4321, abs=NEAR)


@pytest.mark.parametrize("func", [lambda x: x > 0.4321, lambda x: np.array([x - 0.4321])])
def test_stop_by_a_function(sim, func):
    bd = sim.blockdiagram()
    bd.connect(moving(bd), bd.STOP(func))
    assert sim.run(bd, 2.0).t[-1] == pytest.approx(0.4321, abs=NEAR)


def test_stop_at_once_and_never(sim):
    for limit, end in ((-1.0, 0.0), (100.0, 1.0)):
        bd = sim.blockdiagram()
        bd.connect(moving(bd), bd.STOP(lambda x, limit=limit: x - limit))
        out = sim.run(bd, 1.0)
        assert out.t[-1] == end
        assert out.status == ("stopped" if end == 0.0 else "finished")


def test_stop_without_continuous_states(sim):
    bd = sim.blockdiagram()
    ramp = bd.WAVEFORM("sine", freq=0.25)
    bd.connect(ramp, bd.STOP(lambda y: y - 0.5), bd.ZOH(bd.clock(1.0)))
    out = sim.run(bd, 3.0)
    assert out.t[-1] == pytest.approx(1 / 3, abs=NEAR)


def test_states_may_be_put_in_place_or_anew(sim):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=[0.0, 10.0], name="x")
    bd.connect(bd.CONSTANT([1.0, 2.0]), x)
    signals = [of_time(bd, lambda t, at=at: t - at) for at in (0.25, 0.5, 0.75)]

    def put(block, states):
        states[x] = np.array([5.0, 6.0])

    def set_one(block, states):
        states[x][1] = -1.0

    def by_bdsim(block, states):
        block.bd.set_block_state(states, x, [0.0, 0.0])

    for signal, handler in zip(signals, (put, set_one, by_bdsim), strict=True):
        bd.connect(signal, bd.EVENT("^", handler))
    out = sim.run(bd, 1.0, max_step=0.1)
    after = [out.x[np.flatnonzero(out.t == t)[-1]] for t in crossings(out)]
    np.testing.assert_allclose(after, [[5, 6], [5.25, -1], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(out.x[-1], [0.25, 0.5], atol=1e-12)


def test_a_handler_that_leaves_a_state_of_another_width(sim):
    bd = sim.blockdiagram()
    x = moving(bd)

    def wrong(block, states):
        states[x] = np.zeros(3)

    bd.connect(of_time(bd, lambda t: t - 0.5), bd.EVENT("^", wrong))
    out = sim.run(bd, 1.0)
    assert out.status == "failed"
    assert "block 'x'" in out.message and "1 states" in out.message and "left 3" in out.message
    assert out.t[-1] == pytest.approx(0.5, abs=1e-2)


def test_a_sampled_state_may_be_reset(sim):
    bd = sim.blockdiagram()
    moving(bd)
    count = bd.INTEGRATOR_S(bd.clock(0.1), name="count")
    bd.connect(bd.CONSTANT(10.0), count)

    def zero(block, states):
        states[count][:] = 0.0

    bd.connect(of_time(bd, lambda t: t - 0.55), bd.EVENT("^", zero))
    out = sim.run(bd, 1.0, watch=["count"])
    assert out.y[-1, 0] == pytest.approx(5.0)  # ticks at 0.6 ... 1.0


def test_detectors_of_direction_zero_fire_both_ways(sim):
    class Both(SinkBlock):
        nin = 1

        def start(self, simstate):
            def detector(t, y):
                simstate.ensure_event_probe_evaluated(self.bd, t, y)
                return self.inport_values[0]

            simstate.declare_crossing_event(detector, self)

        def step(self, t, inputs):
            pass

    bd = sim.blockdiagram()
    moving(bd)
    both = Both(bd=bd, name="both")
    bd.connect(of_time(bd, lambda t: math.cos(t)), both)
    out = sim.run(bd, 8.0)
    assert crossings(out) == pytest.approx([math.pi / 2 * k for k in (1, 3, 5)], abs=NEAR)


def test_a_handler_that_is_put_into_an_event_takes_the_place_of_its_function(sim):
    """The function was called all the same."""
    bd, seen = sim.blockdiagram(), []
    x = bd.INTEGRATOR(-0.5, name="x")
    bd.connect(bd.CONSTANT(1.0), x)
    event = bd.EVENT("^", lambda block: seen.append("function"))
    event.event_handler = lambda t, x, states, simstate: seen.append(round(t, 9))
    bd.connect(x, event)
    sim.run(bd, 1.0)
    assert seen == [0.5]
