"""Gradients through differences, of signals as small and as large as may be."""

import math

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.graph.differences import differenced_function


@pytest.fixture(scope="module")
def sim():
    return cs.Simulation(live=False, engine="interpreted")


@pytest.mark.parametrize("size", [1e-9, 1e-4, 1.0, 1e9])
def test_a_cost_is_differenced_by_steps_that_fit_the_signals(sim, size):
    """They moved by 6e-6 however small they were: of a norm of 1e-9 the gradient was 0, of one of 1e-4 off by 0.3 %."""
    bd = sim.blockdiagram()
    decay = bd.INTEGRATOR(x0=[0.6 * size, -0.8 * size], name="decay")
    bd.connect(decay, rate := bd.GAIN(-1.0, name="rate"))
    bd.connect(rate, decay)

    def costs(out):
        x, y = out.x[-1]
        return np.array([np.hypot(x, y) / size, np.log(x), y / x])

    found = sim.gradient(bd, costs, ["rate.K", "decay.x0[0]"], T=1.0, solver="RK4", dt=0.05)
    norm = math.exp(-1.0)
    expected = [[norm, 0.6 * norm / size], [1.0, 1.0 / (0.6 * size)], [0.0, 0.8 / (0.36 * size)]]
    np.testing.assert_allclose(found.gradient * [1.0, size], np.array(expected) * [1.0, size], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1e-9, 1.0])
def test_what_is_asked_in_python_is_differenced_by_steps_that_fit_its_numbers(sim, size):
    """By steps of 6e-6 the derivative was 0 where the numbers were smaller."""
    bd, function = sim.blockdiagram(), {"norm": np.hypot}
    start = bd.INTEGRATOR(x0=[0.6 * size, -0.8 * size], name="start")
    norm = bd.FUNCTION(lambda v: float(eval("norm(v[0], v[1])", function, {"v": v})), name="norm")
    bd.connect(bd.CONSTANT([0.0, 0.0]), start)
    bd.connect(start, norm)
    bd.connect(norm, bd.INTEGRATOR(x0=0.0, name="end"))
    found = sim.gradient(bd, "end[0]", "start", T=1.0, solver="RK4", dt=0.1)
    assert found.differenced
    np.testing.assert_allclose(found.gradient, [0.6, -0.8], rtol=0, atol=1e-8)


def test_signals_that_are_but_rounding_do_not_make_the_steps_of_a_cost_too_short(sim):
    """A rate of 1e-17 beside an angle of 1 made them so short that nothing moved, and the gradient was 0."""
    bd = sim.blockdiagram()
    push = bd.CONSTANT(0.0, name="push")
    bd.connect(push, bd.INTEGRATOR(x0=1.0, name="place"), bd.INTEGRATOR(x0=1e-17, name="rounding"))

    def costs(out):
        place, rounding = out.x[-1]
        return np.array([place, place - 1.0, place**2, np.exp(3.0 * place), rounding])

    found = sim.gradient(bd, costs, ["push.value"], T=2.0)
    np.testing.assert_allclose(found.gradient[:, 0], [2.0, 2.0, 4.0, 6.0 * math.exp(3.0), 2.0], rtol=1e-7)
    np.testing.assert_allclose(sim.gradient(bd, "place", ["push.value"], T=2.0).gradient, 2.0, rtol=1e-7)


def test_a_signal_that_moves_far_does_not_make_the_steps_of_others_too_short(sim):
    """By steps that fit the level, of a gain of 1e9, the large store did not move at all, and its gradient was 0."""
    bd = sim.blockdiagram()
    push, up, aside = bd.CONSTANT(0.0, name="push"), bd.GAIN(1e9), bd.GAIN(1e-4)
    bd.connect(push, up, aside)
    bd.connect(up, bd.INTEGRATOR(1.0, name="level"))
    bd.connect(aside, bd.INTEGRATOR(1e3, name="store"))

    def costs(out):
        level, store = out.x[-1]
        return np.array([store, store**2, level + store, np.trapezoid(out.x[:, 1], out.t)])

    found = sim.gradient(bd, costs, ["push.value"], T=1.0)
    np.testing.assert_allclose(found.gradient[:, 0], [1e-4, 0.2, 1e9 + 1e-4, 5e-5], rtol=1e-7)
    assert sim.gradient(bd, "store", ["push.value"], T=1.0).gradient == pytest.approx([1e-4], rel=1e-7)


def test_a_cost_may_be_one_number_of_a_signal(sim):
    """It was refused, as a signal goes as a whole where it is watched."""
    bd = sim.blockdiagram()
    arm = bd.HYBRIDDYNAMICS("planar_2r", q0=[0.3, 0.4], name="arm")
    bd.connect(bd.CONSTANT([1.0, 2.0], name="push"), arm.tau)
    tip = bd.KINEMATICS("planar_2r", name="tip")
    bd.connect(arm[0:2], tip[0:2])
    whole = sim.gradient(bd, "tip.position", ["push.value"], T=0.2)
    one = sim.gradient(bd, "tip.position[1]", ["push.value"], T=0.2)
    assert one.cost == whole.cost[1] and one.gradient.shape == (2,)
    np.testing.assert_allclose(one.gradient, whole.gradient[1], rtol=1e-9)
    with pytest.raises(cs.errors.CstormError, match=r"tip.position\[3\]"):
        sim.gradient(bd, "tip.position[3]", ["push.value"], T=0.2)
    with pytest.raises(cs.UnknownName, match="positon"):
        sim.gradient(bd, "tip.positon[1]", ["push.value"], T=0.2)


def test_a_closed_mechanism_at_rest_gives_way_to_a_mass(sim):
    """It stays where it is but for rounding; the difference of two runs with other masses is the witness."""
    mech = cs.library.four_bar()
    q0 = mech.project([1.0, -0.7, 1.5], hold=["crank"])[0]
    tau = mech.trim(q0, hold=["crank"]).tau

    def build(mass):
        bd = sim.blockdiagram()
        bd.HYBRIDDYNAMICS(mech.with_parameters({"coupler_rod.mass": mass}), q0=q0, name="plant")
        bd.connect(bd.CONSTANT(tau), bd["plant"].tau)
        return bd

    found = sim.gradient(build(0.8), "plant.crank.q", ["plant.coupler_rod.mass"], T=0.3)
    above, below = (sim.run(build(0.8 + h), T=0.3, rtol=1e-10, atol=1e-12).x[-1, 0] for h in (1e-4, -1e-4))
    np.testing.assert_allclose(found.gradient, (above - below) / 2e-4, rtol=1e-5)


@pytest.mark.parametrize("add", ["DEADZONE", "FUNCTION"])
def test_an_event_that_has_hardly_come_about_leaves_other_samples_their_derivatives(add):
    """Slowly past a kink: its time follows the start by 3e7 s, and a step of that was lost in all that came later."""
    sim = cs.Simulation(engine="compiled", progress=False, live=False)
    bd = sim.blockdiagram()
    q, v, a = bd.INTEGRATOR(-0.2, name="q"), bd.INTEGRATOR(0.0, name="v"), bd.CONSTANT(-30.0, name="a")
    bent = bd.DEADZONE(low=-0.2, high=0.3) if add == "DEADZONE" else bd.FUNCTION(lambda q: np.minimum(q + 0.2, 0.0))
    total, y = bd.SUM("++"), bd.INTEGRATOR(0.0, name="y")
    bd.connect(a, total[0])
    bd.connect(bent, total[1], y)
    bd.connect(total, v)
    bd.connect(v, q)
    bd.connect(q, bent)
    found = sim.gradient(bd, lambda out: out.x[-1], ["q", "v"], T=0.1, rtol=1e-10, atol=1e-12)
    c, s = np.cosh(0.1), np.sinh(0.1)  # behind the kink q̈ = q + 0.2 - 30
    np.testing.assert_allclose(found.gradient, [[c, s], [s, c], [s, c - 1.0]], rtol=0, atol=1e-7)


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_computes_in_single_precision_is_asked_further_away(engine, size):
    """By steps for float64 its derivative was off by 0.2 to 7 percent, and 0 where the numbers were small."""
    sim = cs.Simulation(live=False, engine=engine)
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=0.7 * size, name="x")
    law = bd.FUNCTION(lambda u: np.sin(np.float32(u) * np.float32(3.0 / size)), name="law")
    bd.connect(x, law)
    bd.connect(law, x)
    assert sim.linearize(bd).A[0, 0] == pytest.approx(3.0 / size * math.cos(2.1), rel=2e-4)


@pytest.mark.parametrize(
    "whole", [np.floor, np.sign, lambda x: np.round(8.0 * x) / 8.0], ids=["floor", "sign", "eighths"]
)
def test_a_jump_is_not_taken_for_single_precision(whole):
    """Its values are whole numbers, which are those of float32 too."""
    values = np.array([0.3, 0.995, -0.007])
    _, slope = differenced_function(whole, (values,), (np.eye(3),))
    np.testing.assert_array_equal(slope, np.zeros((3, 3)))
