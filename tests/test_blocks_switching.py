"""Blocks that switch: limits, hysteresis, comparisons, logic, triggers; known solutions in both engines."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite

TIGHT = {"rtol": 1e-9, "atol": 1e-11}
#: When sin(πt) is one half.
UP, DOWN = 1.0 / 6.0, 5.0 / 6.0


def simulation(engine):
    return cs.Simulation(engine=engine, live=False, progress=False)


def summed(bd, name, block):
    """Wire the integral of a block's output."""
    bd.connect(block, bd.INTEGRATOR(name=name))


def limits(bd):
    """What the wave 2 sin πt becomes, integrated; and a ramp."""
    wave, ramp = bd.WAVEFORM("sine", freq=0.5, amplitude=2.0, name="wave"), bd.INTEGRATOR(x0=0.3, name="ramp")
    bd.connect(bd.CONSTANT(1.7), ramp)
    made = {
        "saturation": bd.SATURATION(-1.0, 1.0),
        "deadzone": bd.DEADZONE(-1.0, 1.0),
        "relay": bd.RELAY(1.0, -1.0, on=3.0, off=-2.0, name="relay"),
        "closed": bd.RELAY(1.0, -1.0, closed=True),
        "cmp": bd.COMPARE(">=", 1.0, name="cmp"),
    }
    for name, block in made.items():
        bd.connect(wave, block)
        summed(bd, f"of {name}", block)
    bd.connect(ramp, levels := bd.QUANTIZER(0.5, name="levels"))
    summed(bd, "of quantizer", levels)
    # a comparison works a switch, a counter and a sample: events that follow from an event
    switch = bd.SWITCH(0.5, name="switch")
    for source, port in ((bd.CONSTANT(5.0), switch.on), (made["cmp"], switch.control), (ramp, switch.off)):
        bd.connect(source, port)
    summed(bd, "of switch", switch)
    hold, count = bd.SAMPLEHOLD(0.5, x0=-1.0, name="hold"), bd.COUNTER(0.5, direction="both", modulo=3, name="count")
    bd.connect(ramp, hold.u)
    bd.connect(made["cmp"], hold.trigger, count)
    summed(bd, "of hold", hold)
    summed(bd, "of count", count)
    bd.TIME(name="time")
    select = bd.MULTISWITCH(3, name="several")
    bd.connect(bd.blocknames["time"], select[0])
    for k in range(3):
        bd.connect(bd.CONSTANT(10.0**k), select[k + 1])
    summed(bd, "of several", select)
    late = bd.COMPARE("<", None, name="late")
    bd.connect(bd.blocknames["time"], late.u)
    bd.connect(bd.CONSTANT(1.5), late.v)
    logic = bd.LOGIC("xor", name="xor")
    bd.connect(made["cmp"], logic.a)
    bd.connect(late, logic.b)
    summed(bd, "of logic", logic)
    bd.connect(made["cmp"], edge := bd.EDGE(bd.clock(0.1), name="edge"))
    summed(bd, "of edge", edge)
    return bd


@pytest.fixture(scope="module", params=["interpreted", "compiled"])
def run(request):
    sim = simulation(request.param)
    return sim.run(limits(sim.blockdiagram()), T=3.0, watch=["relay", "count", "edge", "levels"], **TIGHT)


def final(out, name):
    return out.state.continuous[name][0]


def clipped(a, b):
    """The integral of 2 sin πt from a to b."""
    return 2.0 / math.pi * (math.cos(math.pi * a) - math.cos(math.pi * b))


ABOVE = DOWN - UP
LIMITED = 2.0 * clipped(0.0, UP) + ABOVE
RAMP = [(0.3 + 1.7 * UP, UP), (0.3 + 1.7 * (2.0 + UP), 2.0 + UP)]
EXPECTED = {
    "of saturation": LIMITED,  # of three half waves two cancel
    "of deadzone": clipped(0.0, 1.0) - LIMITED,
    # on from UP until the wave falls to -1, and on again in the third half wave
    "of relay": -2.0 * UP + 3.0 * (1.0 + UP - UP) - 2.0 * (1.0 + UP - UP) + 3.0 * (3.0 - 2.0 - UP),
    "of closed": (1.0 + UP) + (1.0 - UP),
    "of cmp": 2.0 * ABOVE,
    "of switch": 5.0 * 2.0 * ABOVE
    + sum(0.3 * (b - a) + 0.85 * (b**2 - a**2) for a, b in ((0.0, UP), (DOWN, 2.0 + UP), (2.0 + DOWN, 3.0))),
    "of hold": -UP + RAMP[0][0] * 2.0 + RAMP[1][0] * (1.0 - UP),
    "of count": 1.0 * ABOVE + 2.0 * (2.0 + UP - DOWN) + 0.0 * ABOVE + 1.0 * UP,
    "of several": 0.5 + 10.0 + 150.0,
    # before 1.5 "late" holds, and the comparison but for ABOVE; after it only the comparison
    "of logic": (1.5 - ABOVE) + ABOVE,
    "of edge": 0.2,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_block_makes_of_a_wave(run, name):
    """Also the jumps are exact, as no step of an integration reaches over one."""
    assert final(run, name) == pytest.approx(EXPECTED[name], abs=2e-8)


def test_a_quantised_ramp(run):
    """Level k is passed while the ramp is within half an interval of it."""
    border = [0.3, *(0.25 + 0.5 * k for k in range(1, 11)), 5.4]
    levels = 0.5 * np.arange(1, 12)
    assert final(run, "of quantizer") == pytest.approx(float(levels @ np.diff(border)) / 1.7, abs=1e-9)
    assert set(np.round(run.signal("levels"), 9)) == set(levels)


def test_the_edge_is_seen_for_one_tick(run):
    seen = run.t[run.signal("edge") == 1.0]
    assert all(0.2 - 1e-9 <= t <= 0.3 + 1e-9 or 2.2 - 1e-9 <= t <= 2.3 + 1e-9 for t in seen) and len(seen) > 3


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_each_border_is_met_once(engine):
    """Also where the signal is exactly on it at the time that is found, and has not left its mode there."""
    bd = (sim := simulation(engine)).blockdiagram()
    bd.connect(bd.CONSTANT(1.7), ramp := bd.INTEGRATOR(x0=0.0))
    blocks = {f"q{k}": bd.QUANTIZER(interval, name=f"q{k}") for k, interval in enumerate((0.1, 0.3, 0.17, 1 / 3))}
    for k in range(1, 20):
        blocks[f"c{k}"] = bd.COMPARE((">", ">=")[k % 2], 0.1 * k, name=f"c{k}")
    for block in blocks.values():
        bd.connect(ramp, block)
        bd.connect(block, bd.NULL())
    out = sim.run(bd, T=2.0)
    met = Counter(name for _, name in out.events)
    assert met == {**{name: 1 for name in blocks}, "q0": 34, "q1": 11, "q2": 20, "q3": 10}


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_trigger_that_begins_above_its_threshold_first_falls(engine):
    bd = (sim := simulation(engine)).blockdiagram()
    wave = bd.SUM("+-", name="wave")
    for source, port in ((bd.WAVEFORM("sine", freq=0.5), wave[0]), (bd.CONSTANT(-0.5), wave[1])):
        bd.connect(source, port)  # sin πt + 1/2
    hold = bd.SAMPLEHOLD(x0=-1.0, name="hold")
    bd.connect(bd.TIME(), hold.u)
    bd.connect(wave, hold.trigger)
    out = sim.run(bd, T=2.5, watch=["hold"], **TIGHT)
    assert [name for _, name in out.events] == ["hold", "hold"]
    assert [t for t, _ in out.events] == pytest.approx([7 / 6, 11 / 6], abs=1e-9)
    assert out.signal("hold")[[0, -1]] == pytest.approx([-1.0, 11 / 6], abs=1e-9)


def test_a_relay_holds_a_temperature():
    """ẋ = -x + u with a relay between 0 and 2: a limit cycle between the thresholds, of period ln 9."""
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        x, relay = bd.INTEGRATOR(name="x"), bd.RELAY(1.5, 0.5, on=0.0, off=2.0, name="relay")
        bd.connect(x, relay)
        rate = bd.SUM("+-")
        bd.connect(relay, rate[0])
        bd.connect(x, rate[1])
        bd.connect(rate, x)
        out = sim.run(bd, T=12.0, watch=["relay"], **TIGHT)
        assert out.x[:, 0].max() <= 1.5 + 1e-9
        off = out.t[1:][(np.diff(out.signal("relay")) < 0)]
        np.testing.assert_allclose(np.diff(off), 2.0 * math.log(3.0), atol=1e-7)
        assert off[0] == pytest.approx(math.log(4.0), abs=1e-8)


@pytest.mark.parametrize("name", ["relay.switch_on", "relay.on", "source.value"])
def test_the_derivative_of_a_run_holds_when_a_relay_switches(name):
    sim = simulation("compiled")
    bd = sim.blockdiagram()
    x, y, relay = bd.INTEGRATOR(name="x"), bd.INTEGRATOR(name="y"), bd.RELAY(0.7, 0.2, on=2.5, off=-1.0, name="relay")
    bd.connect(bd.CONSTANT(0.9, name="source"), x)
    bd.connect(x, relay)
    bd.connect(relay, y)
    found = sim.gradient(bd, "y[0]", [name], T=2.0)
    # y = -t₁ + 2.5 (2 - t₁) with t₁ = 0.7 / 0.9
    truth = {"relay.switch_on": -3.5 / 0.9, "relay.on": 2.0 - 0.7 / 0.9, "source.value": 3.5 * 0.7 / 0.81}[name]
    assert found.gradient == pytest.approx([truth], abs=1e-6)


def test_elements_of_a_vector_switch_by_themselves():
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        ramp = bd.INTEGRATOR(x0=[0.0, 0.4, -1.0], name="ramp")
        bd.connect(bd.CONSTANT(np.ones(3)), ramp)
        for k, made in enumerate((bd.RELAY(0.5, -0.5), bd.QUANTIZER(0.5), bd.SATURATION(-0.5, [0.5, 0.6, 0.7]),
                                  bd.DEADZONE(), bd.COMPARE(">", 0.25))):  # fmt: skip
            bd.connect(ramp, made)
            bd.connect(made, bd.INTEGRATOR(x0=np.zeros(3), name=f"i{k}"))
        found.append(sim.run(bd, T=1.0, **TIGHT).x[-1, 3:].reshape(5, 3))
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)
    np.testing.assert_allclose(found[0][0], [0.5, 0.9, 0.0], atol=1e-9)
    np.testing.assert_allclose(found[0][4], [0.75, 1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(found[0][3], [0.125, 0.405, -0.125], atol=1e-9)


def test_a_sampled_loop_without_states_switches():
    """Nothing is integrated: a relay follows what a hold samples."""
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        hold = bd.ZOH(bd.clock(0.1), name="hold")
        bd.connect(bd.WAVEFORM("sine", freq=0.5, name="wave"), hold)
        bd.connect(hold, relay := bd.RELAY(0.8, -0.8, name="relay"))
        bd.connect(relay, bd.NULL())
        out = sim.run(bd, T=2.05, watch=["relay", "hold"])
        on = out.signal("relay") > 0.5
        expected = np.floor(out.t / 0.1 + 1e-9) * 0.1
        np.testing.assert_array_equal(on, (expected >= 0.3 - 1e-9) & (expected < 1.3 - 1e-9))


def test_a_run_goes_on_where_it_stood():
    """The side of a relay and the count are part of a saved state."""
    ends = []
    for parts in ((3.0,), (1.3, 1.7)):
        sim = simulation("compiled")
        bd = limits(sim.blockdiagram())
        state = None
        for T in parts:
            out = sim.run(bd, T=T, start=state, **TIGHT)
            state = out.state
        ends.append(out.x[-1])
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-8)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda bd: bd.SATURATION(1.0, -1.0), InvalidValue, "high: must not be below low"),
        (lambda bd: bd.DEADZONE(low=[0.0, 1.0], high=[1.0, 1.0, 2.0]), InvalidValue, "high: expected 2 numbers"),
        (lambda bd: bd.QUANTIZER(-0.5), InvalidValue, "interval: must be positive"),
        (lambda bd: bd.QUANTIZER(math.nan), CstormError, "interval"),
        (lambda bd: bd.RELAY(0.0, 1.0), InvalidValue, "switch_off: must not be above switch_on"),
        (lambda bd: bd.COMPARE("=>"), InvalidValue, "op: expected '>', '>='"),
        (lambda bd: bd.LOGIC("not", 2), InvalidValue, "n: expected at most 1"),
        (lambda bd: bd.MULTISWITCH(1), InvalidValue, "n: expected at least 2"),
        (lambda bd: bd.EDGE(0.1), InvalidType, r"clock: expected a clock, as bd.clock\(100, 'Hz'\)"),
        (lambda bd: bd.COUNTER(modulo=1), InvalidValue, "modulo: expected at least 2"),
        (lambda bd: bd.COUNTER(first=4, modulo=4), InvalidValue, "first: expected at most 3, got 4"),
        (lambda bd: bd.SAMPLEHOLD(x0=[math.inf]), NonFinite, "x0"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make(simulation("compiled").blockdiagram())


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_signal_that_rests_at_a_limit_ends_no_run(engine):
    """It passes the limit to and fro by rounding, where nothing jumps: that was refused as chattering."""
    bd = (sim := simulation(engine)).blockdiagram()
    one = bd.FUNCTION(lambda a, b: a * a + b * b, nin=2)
    for port, phase in enumerate((0.0, 0.25)):
        bd.connect(bd.WAVEFORM("sine", freq=1.0, phase=phase), one[port])
    limit, gain, total = bd.SATURATION(-1.0, 1.0), bd.GAIN(2.0, name="gain"), bd.INTEGRATOR(name="total")
    for begin, end in ((one, limit), (limit, gain), (gain, total)):
        bd.connect(begin, end)
    out = sim.run(bd, T=2.0)
    assert out.status == "finished" and out.x[-1, 0] == pytest.approx(4.0, abs=1e-9)
    assert sim.gradient(bd, "total:x_0", ["gain.K"], T=2.0).gradient[0] == pytest.approx(2.0, abs=1e-9)


def rests_at(block_of, engine, freq, port=0, border=0.0, leaves=0.0, T=1.0):
    """Return a run of a switch whose signal is at its border but for rounding, until it rises from 0.7 s on."""
    bd = (sim := simulation(engine)).blockdiagram()
    noise = bd.FUNCTION(lambda a, b, t: a * a + b * b - 1.0 + border + leaves * np.maximum(t - 0.7, 0.0), nin=3)
    for k, phase in enumerate((0.0, 0.25)):
        bd.connect(bd.WAVEFORM("sine", freq=freq, phase=phase), noise[k])
    bd.connect(bd.TIME(), noise[2])
    block = block_of(bd)
    for k in range(block.nin):
        bd.connect(noise if k == port else bd.CONSTANT(1.0), block[k])
    bd.connect(block, bd.INTEGRATOR(name="total"))
    return sim.run(bd, T=T)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize(
    ("made", "arguments", "port", "border", "freq"),
    [
        ("COMPARE", (">", 0.0), 0, 0.0, 0.3),
        ("RELAY", (2.0, 2.0), 0, 2.0, 5.0),
        ("SWITCH", (-1.0,), 1, -1.0, 2.0),
        ("MULTISWITCH", (2,), 0, 0.5, 0.3),
        ("QUANTIZER", (0.25,), 0, 0.625, 0.3),
        ("COUNTER", (), 0, 0.0, 1.0),
    ],
)
def test_a_signal_that_rests_at_a_border_ends_no_run(made, arguments, port, border, freq, engine):
    """It passed the border to and fro by rounding; that was refused as chattering, of most of these in both engines."""
    out = rests_at(lambda bd: getattr(bd, made)(*arguments), engine, freq, port, border)
    assert out.status == "finished", out.message
    if made in ("SWITCH", "MULTISWITCH"):  # of equal signals
        assert out.x[-1, 0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_has_rested_at_a_border_switches_where_it_leaves_it(engine):
    out = rests_at(lambda bd: bd.COMPARE(">", 0.0), engine, 1.0, leaves=1.0)
    assert out.status == "finished"
    late = np.searchsorted(out.t, 0.7 + 1e-9)
    assert max(t for t, _ in out.events) < 0.7 + 1e-9
    assert out.x[-1, 0] - out.x[late, 0] == pytest.approx(1.0 - out.t[late], abs=1e-12)


def chained(bd, first, kinds):
    """Wire blocks that say 0 or 1, each of the one before, behind a signal; return the last."""
    for k, kind in enumerate(kinds):
        if kind == "SWITCH":
            block = bd.SWITCH(0.5, name=f"switch{k}")
            bd.connect(bd.CONSTANT(1.0), block[0])
            bd.connect(bd.CONSTANT(0.0), block[2])
        else:
            block = bd.COMPARE(">", 0.5, name=f"above{k}") if kind == "COMPARE" else bd.RELAY(0.5, 0.5, on=1.0, off=0.0)
        bd.connect(first, block[1] if kind == "SWITCH" else block[0])
        first = block
    return first


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("kinds", [("SWITCH",), ("COMPARE",), ("RELAY",), ("SWITCH", "COMPARE", "SWITCH")])
def test_what_a_signal_that_rests_at_a_border_drives_ends_no_run(kinds, engine):
    """The second block was refused as chattering, by what is no rounding of the first, which had just left off."""

    def block_of(bd):
        first = bd.COMPARE(">", 0.0, name="first")
        summed(bd, "same", chained(bd, first, kinds))
        return first

    out = rests_at(block_of, engine, 0.3, leaves=1.0)
    assert out.status == "finished", out.message
    assert out.x[-1, 0] == pytest.approx(out.x[-1, 1], abs=1e-12) and max(t for t, _ in out.events) < 0.7 + 1e-9


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_two_signals_that_rest_at_borders_may_drive_one_block(engine):
    """By turns: the block that both drive had four events before either had, and was refused."""

    def block_of(bd):
        first, both = bd.COMPARE(">", 0.0, name="first"), bd.SUM("++")
        bd.connect(first, both[0])
        noise, second = bd.FUNCTION(lambda a, b: a * a + b * b - 1.0, nin=2), bd.COMPARE(">", 0.0, name="second")
        for k, phase in enumerate((0.1, 0.35)):
            bd.connect(bd.WAVEFORM("sine", freq=0.4, phase=phase), noise[k])
        bd.connect(noise, second)
        bd.connect(second, both[1])
        summed(bd, "either", chained(bd, both, ("COMPARE",)))
        return first

    out = rests_at(block_of, engine, 0.3, T=0.15)
    assert out.status == "finished", out.message


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("speed", [1e3, 1.0, 1e-6])
@pytest.mark.parametrize("kinds", [("SWITCH",), ("COMPARE", "SWITCH")])
def test_a_sliding_mode_through_a_chain_is_refused_by_the_name_of_what_slides(kinds, speed, engine):
    bd = (sim := simulation(engine)).blockdiagram()
    x, first, rate = bd.INTEGRATOR(0.3 * speed, name="x"), bd.COMPARE(">", 0.0, name="first"), bd.GAIN(-2.0 * speed)
    total = bd.SUM("++")
    bd.connect(x, first)
    bd.connect(chained(bd, first, kinds), rate)
    bd.connect(bd.CONSTANT(speed), total[0])
    bd.connect(rate, total[1])
    bd.connect(total, x)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and out.message.startswith("first: 4 events within") and len(out.events) < 30
    assert out.t[-1] == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("speed", [1e3, 1.0, 1e-3, 1e-6])
def test_a_sliding_mode_is_refused_at_any_speed(speed, engine):
    bd = (sim := simulation(engine)).blockdiagram()
    x, relay = bd.INTEGRATOR(0.3 * speed, name="x"), bd.RELAY(0.0, 0.0, on=-speed, off=speed, name="relay")
    bd.connect(x, relay)
    bd.connect(relay, x)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and out.message.startswith("relay: 4 events within") and len(out.events) < 10
    assert out.t[-1] == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_noise_that_is_no_rounding_is_refused(engine):
    """Of a millionth: what a switch makes of it is not for the run to say."""
    bd = (sim := simulation(engine)).blockdiagram()
    noise, above = bd.FUNCTION(lambda t: 1e-6 * np.sin(1e14 * t)), bd.COMPARE(">", 0.0, name="above")
    bd.connect(bd.TIME(), noise)
    bd.connect(noise, above)
    bd.connect(above, bd.INTEGRATOR(name="total"))
    out = sim.run(bd, T=2.0)
    assert out.status == "failed" and out.message.startswith("above: ") and "chatters" in out.message


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_the_first_tick_brings_switches(engine):
    """Blocks that switch stayed where they were before the first tick, whatever it sampled, for the whole run."""
    bd = (sim := simulation(engine)).blockdiagram()
    one, zero, held = bd.CONSTANT(1.0), bd.CONSTANT(0.0), bd.ZOH(bd.clock(0.1, "s"), x0=0.0)
    bd.connect(one, held)
    blocks = [bd.COMPARE(">", 0.5), bd.RELAY(0.5, -0.5), bd.QUANTIZER(1.0), bd.COUNTER(0.5)]
    blocks += [bd.SWITCH(0.5), bd.MULTISWITCH(2), bd.SAMPLEHOLD(0.5)]
    for block in blocks[:4]:
        bd.connect(held, block)
    for block, signals in zip(blocks[4:], [(one, held, zero), (held, zero, one), (one, held)], strict=True):
        for port, signal in enumerate(signals):
            bd.connect(signal, block[port])
    for block in blocks:
        bd.connect(block, bd.INTEGRATOR(name=f"of {block.name}"))
    out = sim.run(bd, T=0.35)
    assert out.x[-1, blocks[-1].nstates :] == pytest.approx([0.35] * len(blocks), abs=1e-9)
    assert sorted(out.events) == sorted((0.0, block.name) for block in blocks)


@pytest.mark.parametrize("made", ["SATURATION", "DEADZONE", "QUANTIZER"])
def test_numbers_for_each_element_want_as_many(made):
    """One number was made three, and two ended in NumPy's words."""
    for signal in (1.0, [1.0, 2.0]):
        bd = (sim := simulation("interpreted")).blockdiagram()
        bd.connect(bd.CONSTANT(signal), block := getattr(bd, made)([0.1, 0.2, 0.3]))
        bd.connect(block, bd.NULL())
        with pytest.raises(CstormError, match="input port 0 'u': expected 3 numbers, got"):
            sim.run(bd, T=1.0)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_tick_just_behind_an_event_takes_the_switch_back(engine):
    """The signals meet a rounding before the tick at 0.1 s, which parts them again: that was not seen."""
    bd = (sim := simulation(engine)).blockdiagram()
    late, less = bd.DELAY(bd.clock(0.05, "s"), samples=2, x0=0.1), bd.COMPARE("<", None)
    bd.connect(bd.WAVEFORM("sine", freq=1.0, phase=0.03), late)
    bd.connect(bd.WAVEFORM("sine", freq=1.0, phase=0.13), less[0])
    bd.connect(late, less[1])
    bd.connect(less, bd.INTEGRATOR())
    out = sim.run(bd, T=0.14, rtol=1e-9)
    assert out.x[-1, 0] == pytest.approx(0.14, abs=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"solver": "DOP853"}, {"solver": "RK4", "dt": 0.13}, {"dt": 0.25}, {"solver": "LSODA"}], ids=str
)
@pytest.mark.parametrize("gap", [0.05, 0.004])
def test_a_signal_that_passes_a_threshold_and_comes_back_within_a_step(gap, options):
    """Only the ends of steps were looked at, and pulses shorter than a step passed unseen."""
    found = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        bd = sim.blockdiagram()
        wave = bd.WAVEFORM("sine", freq=0.5 / math.pi, name="wave")
        above = bd.COMPARE(">", threshold=math.cos(0.5 * gap), name="above")
        bd.connect(wave, above)
        bd.connect(above, bd.INTEGRATOR(name="time"))
        out = sim.run(bd, T=10.0, max_step=0.2, **options)
        found.append([t for t, _ in out.events])
        assert out.x[-1, 0] == pytest.approx(2.0 * gap, abs=1e-9)
    tops = [0.5 * math.pi, 2.5 * math.pi]
    np.testing.assert_allclose(found[0], [top + side for top in tops for side in (-0.5 * gap, 0.5 * gap)], atol=1e-9)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("locate", "sampled", "told"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_gradients_note_a_quantizer_that_hides_what_goes_through_it(locate, sampled, told):
    """Through the encoder of a sampled servo the slope to its gain had the wrong sign, and nothing was said."""
    sim = cs.Simulation(live=False, engine="interpreted")
    bd = sim.blockdiagram()
    x, encoder, gain = bd.INTEGRATOR(1.0, name="x"), bd.QUANTIZER(0.05, locate=locate), bd.GAIN(-2.0, name="gain")
    bd.connect(x, encoder)
    bd.connect(gain, x)
    if sampled:
        hold = bd.ZOH(bd.clock(100, "Hz"), x0=1.0)
        bd.connect(encoder, hold)
        bd.connect(hold, gain)
    else:
        bd.connect(encoder, gain)
    elsewhere = bd.ZOH(bd.clock(100, "Hz"), x0=1.0)  # which samples what is behind a state, or beside
    bd.connect(x, elsewhere)
    bd.connect(elsewhere, bd.NULL())
    notes = sim.gradient(bd, "x", ["gain.K"], T=0.52).notes
    assert any("quantizer" in note and "flat between its levels" in note for note in notes) == told
