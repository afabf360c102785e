"""Gradients through differences, of signals as small and as large as may be."""

import math

import numpy as np
import pytest

import cstormpy as cs


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
