"""Models of loops with sampled blocks from one period to the next: exact, against SciPy and against runs."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_are
from scipy.signal import cont2discrete, tf2ss

import cstormpy as cs
from cstormpy.errors import DiagramError, InvalidValue, NonFinite
from cstormpy.simulation.analysis.linear import LinearModel

H = 0.1
A, B = np.array([[0.0, 1.0], [-2.0, -0.6]]), np.array([[0.0], [1.0]])
FILTER = [0.4, 0.0], [1.0, -0.6]  # 0.4 z / (z - 0.6)


def over(h):
    """The plant over a time, with its input held."""
    block = np.zeros((3, 3))
    block[:2, :2], block[:2, 2:] = A, B
    found = expm(block * h)
    return found[:2, :2], found[:2, 2:]


def loop(offset=0.0):
    """A plant, a sampled filter with feedthrough, and a delay of one sample of the same clock before the plant."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    clock = bd.clock(H, offset=offset)
    plant = bd.STATESPACE(A, B, [[1.0, 0.0]], name="plant")
    error, law = bd.SUM("+-", name="error"), bd.DISCRETETF(clock, *FILTER, name="law")
    bd.connect(bd.CONSTANT(0.0, name="wanted"), error[0])
    bd.connect(plant, error[1])
    bd.connect(error, law)
    bd.connect(law, hold := bd.ZOH(clock, name="hold"))
    bd.connect(hold, plant)
    return sim, bd


def test_a_loop_is_that_of_its_parts():
    """Written out: at the tick the law sees the plant, the hold takes the law's output, the plant moves on."""
    sim, bd = loop()
    model = sim.linearize(bd, inputs=["wanted"], outputs=["plant", "law"], dt=H)
    F, G = over(H)
    # law: ξ⁺ = 0.6 ξ + e, y = 0.24 ξ + 0.4 e with e = r - x₁
    first = np.array([[1.0, 0.0]])
    control = np.hstack([-0.4 * first, [[0.24]]])  # of (x, ξ)
    expected = np.vstack([np.hstack([F, np.zeros((2, 1))]) + G @ control, np.hstack([-first, [[0.6]]])])
    states = list(model.states)
    assert [name.partition(":")[0] for name in states[2:]] == ["law", "hold"]
    np.testing.assert_allclose(model.A[:3, :3], expected, atol=1e-12)
    np.testing.assert_allclose(model.A[:, 3], 0.0, atol=1e-14)  # what the hold had before
    np.testing.assert_allclose(model.B[:3, 0], [*(0.4 * G[:, 0]), 1.0], atol=1e-12)
    np.testing.assert_allclose(model.C[:, :3], [[1.0, 0.0, 0.0], [-0.4, 0.0, 0.24]], atol=1e-12)
    np.testing.assert_allclose(model.D[:, 0], [0.0, 0.4], atol=1e-12)
    assert model.held == () and model.dt == H and model.stable


@pytest.mark.parametrize("offset", [0.0, 0.03])
def test_a_run_moves_as_the_model_says(offset):
    sim, bd = loop(offset)
    model = sim.linearize(bd, dt=H)
    found = sim.run(bd, T=10 * H, start=[0.5, -0.2], log_dt=H, rtol=1e-10, atol=1e-12)
    x = np.zeros(len(model.states))
    x[:2] = 0.5, -0.2
    for k in range(11):
        np.testing.assert_allclose(found.x[k], x[:2], atol=1e-8)
        x = model.A @ x


def test_two_clocks_and_a_plant_that_is_not_linear():
    """A pendulum about the bottom, a filter at 10 Hz and a PID at 20 Hz beside its ticks: small motions of a run."""
    scale, dt = 1e-4, 0.1
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    mech = cs.library.pendulum(1)
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-0.5 * math.pi], actuated=list(mech.names), name="plant")
    mean = bd.DISCRETETF(bd.clock(0.1), [0.5, 0.0], [1.0, -0.5], name="mean")
    law = bd.DISCRETEPID(bd.clock(0.05, offset=0.02), P=2.0, D=0.2, N=20.0, name="law")
    angle = bd.SUM("++", name="angle")
    bd.connect(plant.q, angle[0])
    bd.connect(bd.CONSTANT(0.5 * math.pi), angle[1])
    bd.connect(angle, mean)
    bd.connect(mean, law.measured)
    bd.connect(bd.CONSTANT(0.0), law.reference)
    bd.connect(law, plant.tau)
    model = sim.linearize(bd, dt=dt)
    start = np.array([-0.5 * math.pi + scale, 0.0])
    found = sim.run(bd, T=8 * dt, start=start, log_dt=dt, watch=["law"], rtol=1e-11, atol=1e-14)
    x = np.zeros(len(model.states))
    x[0] = scale
    x[model.states.index("law held[0]")] = found.signal("law")[0]  # before its first tick it is as at the start
    for k in range(9):
        np.testing.assert_allclose(found.x[k] - [-0.5 * math.pi, 0.0], x[:2], atol=1e-6 * scale)
        x = model.A @ x


def test_about_what_a_zoh_has_taken_at_the_tick():
    """The arm was taken for one that nothing holds, as the ZOH is 0 before its first tick, and that for its output.

    A loop that was opened there had one more delay than it has.
    """
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    arm, rest, gain = (
        cs.library.planar_2r(),
        np.array([0.4, 0.7]),
        np.array([[30.0, 0.0, 6.0, 0.0], [0.0, 10.0, 0.0, 2.0]]),
    )
    weight = arm.inverse_dynamics(rest, np.zeros(2), np.zeros(2))
    plant = bd.HYBRIDDYNAMICS(arm, q0=rest, name="plant")
    law = bd.FUNCTION(lambda q, qd: weight - gain @ np.concatenate([q - rest, qd]), nin=2, nout=1, name="law")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law, hold := bd.ZOH(bd.clock(0.02), x0=[0.0, 0.0], name="hold"))
    bd.connect(hold, plant.tau)
    model = sim.linearize(bd, outputs=["hold"], dt=0.02)
    np.testing.assert_allclose(model.y, weight, atol=1e-12)
    np.testing.assert_allclose(model.C, np.hstack([-gain, np.zeros((2, 2))]), atol=1e-12)
    np.testing.assert_allclose(model.rate, 0.0, atol=1e-12)
    for k, h in enumerate(1e-4 * np.eye(4)):
        ends = [sim.run(bd, T=0.02, start=[*rest, 0.0, 0.0] + s * h, rtol=1e-11, atol=1e-13).x[-1] for s in (1, -1)]
        np.testing.assert_allclose(model.A[:4, k], (ends[0] - ends[1]) / 2e-4, atol=1e-6)
    around = sim.linearize(bd, u=weight, inputs=["hold"], outputs=["hold"], dt=0.02)
    closed = around.A + around.B @ around.C
    np.testing.assert_allclose(
        np.sort(np.abs(np.linalg.eigvals(closed[:4, :4]))), np.sort(np.abs(model.poles))[2:], atol=1e-9
    )


@pytest.mark.parametrize("offset", [0.0, 0.03])
def test_switches_stand_as_what_is_sampled_has_them(offset):
    """They stood as before the first tick, where the hold has 0: the model was that of the strong gain."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    plant, clock = bd.STATESPACE(A, B, [[1.0, 0.0]], x0=[1.0, 0.5], name="plant"), bd.clock(H, offset=offset)
    held, strong = bd.ZOH(clock, name="held"), bd.GAIN(-5.0, name="strong")
    bd.connect(plant, held)
    switch = bd.SWITCH(threshold=0.5, name="switch")
    bd.connect(held, strong, above := bd.COMPARE(">", threshold=0.8), switch.on)
    bd.connect(above, switch.control)
    bd.connect(strong, switch.off)
    bd.connect(switch, plant)
    model = sim.linearize(bd, outputs=["plant"], dt=H)
    runs = [sim.run(bd, T=3 * H, start=[1.0 + step, 0.5], log_dt=H, rtol=1e-11, atol=1e-13).x for step in (1e-6, -1e-6)]
    moved = np.eye(len(model.states))[0]
    for found in (runs[0] - runs[1]) / 2e-6:
        np.testing.assert_allclose(moved[:2], found, atol=1e-6)
        moved = model.A @ moved
    np.testing.assert_allclose(model.x[2:], 0.0)  # what the hold has before it ticks


def test_the_period_has_to_be_one_of_all_clocks():
    sim, bd = loop()
    with pytest.raises(InvalidValue, match=r"dt: expected a whole number of the periods .* each 0.1 s; got 0.15 s"):
        sim.linearize(bd, dt=0.15)
    with pytest.raises(InvalidValue, match="dt"):
        sim.linearize(bd, dt=-1.0)


@pytest.mark.parametrize("bandwidth", [None, 2.0])
def test_noise_on_a_clock_of_its_own_is_held_where_the_period_is_none_of_its(bandwidth):
    """Gusts of 20 Hz on a plane whose autopilot has 50 Hz: the model had to be of 0.1 s, and no loop had margins."""
    sim = cs.Simulation(live=False, progress=False)

    def build(gusty):
        bd = sim.blockdiagram()
        plant, push = bd.STATESPACE([[0, 1], [-1, -0.4]], [[0], [1]], [[1.0, 0.0]], name="plant"), bd.SUM("++")
        pid = bd.DISCRETEPID(bd.clock(50, "Hz"), P=4.0, I=1.0, D=1.0, name="pid")
        gust = bd.NOISE(bd.clock(20, "Hz"), std=0.3, bandwidth=bandwidth) if gusty else bd.CONSTANT(0.0)
        for wire in ((bd.CONSTANT(1.0), pid.reference), (plant, pid.measured), (pid, push[0]), (gust, push[1])):
            bd.connect(*wire)
        bd.connect(push, plant)
        return bd

    still, gusty = (sim.linearize(build(with_it), outputs=["plant"], dt=0.02) for with_it in (False, True))
    np.testing.assert_allclose(gusty.A, still.A, atol=1e-15)
    assert gusty.states == still.states
    calm, windy = (sim.margins(build(with_it), at=["pid"]) for with_it in (False, True))
    assert calm.stable and windy.stable and windy.delay == pytest.approx(calm.delay, rel=1e-12)
    assert len(sim.linearize(build(True), dt=0.1).states) == len(still.states) + 1
    # of several periods of the loop too: it had the noise among its states, with a pole at 1
    twice = [sim.linearize(build(with_it), outputs=["plant"], dt=0.04) for with_it in (False, True)]
    assert twice[0].states == twice[1].states
    np.testing.assert_allclose(twice[1].A, twice[0].A, atol=1e-15)


def test_a_delay_that_moves_between_ticks_is_refused():
    """The model had no feedback through it: before the first sample nothing of the input is seen."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    late, lag = bd.DELAY(bd.clock(0.1), time=0.25, name="late"), bd.TRANSFERFN([-1.0], [1.0, 1.0], name="lag")
    bd.connect(lag, late)
    bd.connect(late, lag)
    with pytest.raises(DiagramError, match="block 'late' moves between its ticks"):
        sim.linearize(bd, dt=0.1)


def test_the_poles_of_delays_are_counted():
    """Each of 150 poles at z = 0 had a line of its own."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    late, lag = bd.DELAY(bd.clock(0.1), samples=150, name="late"), bd.TRANSFERFN([-1.0], [1.0, 1.0], name="lag")
    bd.connect(lag, late)
    bd.connect(bd.CONSTANT(0.0, name="push"), lag)
    lines = str(sim.linearize(bd, inputs=["push"], outputs=["late"], dt=0.1)).split("\n")
    assert len(lines) == 5 and lines[-1].strip() == "... and 149 more, which are delays"
    assert float(lines[2].split()[0]) == pytest.approx(math.exp(-0.1), abs=1e-5)


def test_several_periods_are_a_power_of_one():
    """Also of inputs, which are held over all of them."""
    sim, bd = loop()
    one, three = (sim.linearize(bd, inputs=["wanted"], outputs=["plant"], dt=h) for h in (H, 3 * H))
    np.testing.assert_allclose(three.A, one.A @ one.A @ one.A, atol=1e-12)
    np.testing.assert_allclose(three.B, (np.eye(4) + one.A + one.A @ one.A) @ one.B, atol=1e-12)


def test_a_continuous_diagram_is_sampled_by_the_exponential():
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(0.0, name="push"), bd.STATESPACE(A, B, [[1.0, 0.0]], name="plant"))
    model = sim.linearize(bd, inputs=["push"], outputs=["plant"], dt=0.3)
    F, G = over(0.3)
    np.testing.assert_allclose(model.A, F, atol=1e-13)
    np.testing.assert_allclose(model.B, G, atol=1e-13)
    free = sim.linearize(bd, inputs=["push"], outputs=["plant"])
    np.testing.assert_allclose(np.sort(model.frequency), np.sort(free.frequency), atol=1e-10)
    np.testing.assert_allclose(model.damping, free.damping, atol=1e-10)
    response, exact = model.step(T=3.0), free.step(T=3.0, samples=11)
    np.testing.assert_allclose(response.y[:, 0, 0], exact.y[:, 0, 0], atol=1e-10)
    w = np.array([0.1, 1.0, 5.0])
    z = np.exp(1j * w * 0.3)
    expected = [(np.array([[1.0, 0.0]]) @ np.linalg.solve(at * np.eye(2) - F, G))[0, 0] for at in z]
    np.testing.assert_allclose(model.frequency_response(w)[:, 0, 0], expected, atol=1e-13)


@pytest.mark.parametrize("samples", [500, 1001, 2000])
def test_a_sampled_response_lasts_as_long_as_is_asked_for(samples):
    """It ended after as many periods as there were to be samples, here at 4.99 s of 10 s, before it had settled."""
    decay = math.exp(-0.01 / 2.0)
    model = LinearModel.of([[decay]], [[1.0 - decay]], [[1.0]], dt=0.01)
    for response, end in ((model.step(T=10.0, samples=samples), 10.0), (model.step(samples=samples), 16.0)):
        assert len(response.t) <= samples
        assert end <= response.t[-1] + 1e-9 < end + 0.04
        np.testing.assert_allclose(response.y[:, 0, 0], 1.0 - np.exp(-response.t / 2.0), atol=1e-12)


@pytest.mark.parametrize("dt", [None, H])
def test_bode_and_step_are_drawn_without_another_package(dt, monkeypatch):
    matplotlib.use("Agg")
    scale, scaled = matplotlib.axes.Axes.set_xscale, []  # of all panels, that of 60 for each of 1800 lines took 30 s
    monkeypatch.setattr(matplotlib.axes.Axes, "set_xscale", lambda *a, **k: scaled.append(a[0]) or scale(*a, **k))
    sim, bd = loop()
    model = sim.linearize(bd, inputs=["wanted" if dt else "hold"], outputs=["plant", "error"], dt=dt)
    figure = model.plot()
    assert len(scaled) == 1 and {axis.get_xscale() for axis in figure.axes} == {"log"}
    assert len(figure.axes) == 4 and figure.axes[0].get_title() == "Frequency response"
    w, size = figure.axes[0].lines[0].get_data()
    np.testing.assert_allclose(size, 20.0 * np.log10(np.abs(model.frequency_response(w)[:, 0, 0])), atol=1e-9)
    if dt:
        assert 0.9 < w[-1] * H / math.pi < 1.0
    assert len(model.plot("step").axes) == 2
    with pytest.raises(InvalidValue, match="kind: expected 'bode', 'step'"):
        model.plot("nichols")
    matplotlib.pyplot.close("all")


def test_a_bode_plot_of_a_held_double_integrator_can_be_read():
    """Its zero at half the rate, of -320 dB by rounding, left no room for the rest, and its phase began at +180°."""
    model = LinearModel.of([[1.0, H], [0.0, 1.0]], [[H * H / 2.0], [H]], [[1.0, 0.0]], dt=H)
    size, phase = (axis.lines[0].get_data() for axis in model.plot().axes)
    assert size[1].min() > -100.0
    np.testing.assert_allclose(phase[1], -180.0 - np.degrees(phase[0] * H / 2.0), atol=1e-6)
    matplotlib.pyplot.close("all")


def test_a_bode_plot_ends_where_rounding_begins():
    """The response of one axle's wheel to the road at the other was noise at -250 dB, with a phase to and fro."""
    model = LinearModel.of(*tf2ss([1.0] + 8 * [0.0], np.poly(8 * [-1.0])))
    (w, size), (at, phase) = (axis.lines[0].get_data() for axis in model.plot().axes)
    told = np.isfinite(size)
    assert w[0] < 0.01 < at[0] and at[-1] == w[-1] and told.sum() == len(at)
    np.testing.assert_allclose(size[told], 160.0 * np.log10(at / np.hypot(at, 1.0)), atol=3.0)
    wanted = 720.0 - 8.0 * np.degrees(np.arctan(at))
    assert np.abs((phase - wanted + 180.0) % 360.0 - 180.0).max() < 20.0
    matplotlib.pyplot.close("all")


def test_an_input_at_a_block_that_holds_its_output_counts_once():
    """What it held had the input in it, which was added again; where the loop was cut it held the input itself."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    plant, clock = bd.STATESPACE(-1.0, 1.0, 1.0, name="plant"), bd.clock(0.1, "s")
    law, gain = bd.DISCRETESS(clock, 0.5, 1.0, 1.0, D=0.3, name="law"), bd.GAIN(-0.4, name="gain")
    for begin, end in ((plant, law), (law, gain), (gain, plant)):
        bd.connect(begin, end)
    shut, cut = (sim.linearize(bd, inputs=["law"], outputs=["law", "gain"], opened=at, dt=0.1) for at in ([], ["law"]))
    np.testing.assert_allclose([*shut.C, *shut.D.T], [[0.3, 1.0], [-0.12, -0.4], [1.0, -0.4]], atol=1e-12)
    np.testing.assert_allclose([*cut.C, *cut.D.T], [[0.3, 1.0], [0.0, 0.0], [0.0, -0.4]], atol=1e-12)
    ways = [sim.margins(bd, at=[name]) for name in ("law", "gain", "plant.u")]
    for way in ways:
        np.testing.assert_allclose([way.gain[0, 1], way.delay[0]], [ways[1].gain[0, 1], ways[1].delay[0]], rtol=1e-6)


def test_a_filter_whose_input_is_held_is_about_a_run_that_goes_on():
    """Its first tick predicts nothing, and the loop was found unstable, whose poles are those of law and filter."""
    T, A, C = 0.05, np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[1.0, 0.0]])
    a, b, *_ = cont2discrete((A, np.eye(2)[:, 1:], C, np.zeros((1, 1))), T)
    P, S = (
        solve_discrete_are(a, b, np.eye(2), np.eye(1)),
        solve_discrete_are(a.T, C.T, np.eye(2), np.eye(1)),
    )
    K = np.linalg.solve(np.eye(1) + b.T @ P @ b, b.T @ P @ a)
    L = S @ C.T / (S[0, 0] + 1.0)
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    clock, plant, row = bd.clock(T, "s"), bd.STATESPACE(A, [0.0, 1.0], C, name="plant"), bd.MUX(1)
    found, law = bd.KALMAN(clock, a, b, C, 1.0, 1.0, held=True), bd.GAIN(-K, premul=True, name="law")
    motor = bd.ZOH(clock, x0=[0.0])
    noise, seen = bd.NOISE(clock, std=0.1, n=1), bd.SUM("++")
    for begin, *ends in ((plant, row), (found, law), (law, motor), (motor, plant, found.u), (seen, found.measured)):
        bd.connect(begin, *ends)
    bd.connect(row, seen[0])
    bd.connect(noise, seen[1])
    model = sim.linearize(bd, dt=T)
    # the covariance had poles too, products of these, and the number of a sample of noise one at 1
    poles, rest = [*np.linalg.eigvals(a - b @ K), *np.linalg.eigvals(a - L @ C @ a)], model.poles
    for pole in poles:
        rest = np.delete(rest, np.abs(rest - pole).argmin()) if np.abs(rest - pole).min() < 1e-9 else rest
    assert model.stable and len(model.poles) == len(poles) + len(rest)
    np.testing.assert_allclose(rest, 0.0, atol=1e-12)
    assert sim.margins(bd, at=["law"]).stable


def test_a_model_over_a_period_that_nothing_holds_is_refused():
    """Where a rate was too steep for numbers all poles were told to be at 1, beside warnings of SciPy."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(0.0, name="x")
    bd.connect(x, bd.ZOH(bd.clock(0.1)), steep := bd.GAIN(1e6, name="steep"))
    bd.connect(steep, x)
    with pytest.raises(NonFinite, match=r"within a period, at t = 0, a disturbance grows beyond all numbers"):
        sim.linearize(bd, dt=0.1)
    assert sim.linearize(bd).poles == pytest.approx([1e6])


def test_a_magnet_under_a_sampled_pid_begins_at_rest():
    """Poles of a ball that hangs at 0.01 m, its PID written out; margins at the start, and where a run has ended."""
    k, current, h, gains = 44.29446918, 28.014282, 0.002, {"P": -500.0, "I": -2000.0, "D": -12.0, "N": 800.0}
    A, B = np.array([[0.0, 1.0, 0.0], [k * k, 0.0, -current], [0.0, 0.0, -100.0]]), np.array([[0.0], [0.0], [50.0]])
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    ball = bd.STATESPACE(A, B, [[1.0, 0.0, 0.0]], name="ball")
    height = bd.SUM("++", name="height")
    pid = bd.DISCRETEPID(bd.clock(h), **gains, low=-1.4, high=4.6, x0=[0.0, 0.0, -0.01], name="pid")
    bd.connect(bd.CONSTANT(0.01), pid.reference, height[0])
    bd.connect(ball, height[1])
    bd.connect(height, pid.measured)
    bd.connect(pid, ball)
    found = sim.linearize(bd, dt=h)
    P, I, D, N = gains.values()  # noqa: E741
    F, G, *_ = cont2discrete((A, B, np.eye(3), np.zeros((3, 1))), h)
    lag, y = 1.0 / (1.0 + N * h), np.eye(1, 6)
    slope = lag * (np.eye(1, 6, 4) - D * N * y - D * N * np.eye(1, 6, 5))
    loop = np.vstack([np.eye(3, 6), np.eye(1, 6, 3) - h * I * y, slope, -y])
    loop[:3] = F @ loop[:3] + G @ (np.eye(1, 6, 3) + slope - P * y)
    expected = np.linalg.eigvals(loop)
    np.testing.assert_allclose(np.sort_complex(found.poles), np.sort_complex(expected), atol=1e-9)
    assert np.count_nonzero(found.poles == 0.0) == 1  # was told as one of 17543 rad/s
    # a run that has come to rest is a point to ask about, too
    settled = sim.run(bd, T=1.0, start={"ball": [0.0001, 0.0, 0.0]})
    for point in (settled, settled.state):
        margins = sim.margins(bd, point, at=["pid"])
        assert margins.stable and margins.gain[0, 1] == pytest.approx(sim.margins(bd, at=["pid"]).gain[0, 1], rel=1e-6)
