"""What functions of a user are given, the same in both engines: defaults, keywords, partials, arrays to write into."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
from test_compiled import simulation


def scaled(x, a=1.0, b=2.0, kind="any"):
    return -x * a - b


def rowed(gains, x):
    return -gains[0] * x


def pulled(function, **options):
    """Return how to wire a state whose rate a function gives."""

    def wire(sim, x0=1.0):
        bd = sim.blockdiagram()
        state, rate = bd.INTEGRATOR(x0=x0, name="state"), bd.FUNCTION(function, name="rate", **options)
        bd.connect(state, rate)
        bd.connect(rate, state)
        return bd

    return wire


def ends(wire, *arguments):
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        found.append(sim.run(wire(sim, *arguments), T=0.5).x[-1])
    return found


FUNCTIONS = {
    "one by keyword": pulled(scaled, fkwargs={"a": 3.0}),
    "one behind it by keyword": pulled(scaled, fkwargs={"b": 5.0}),
    "of several functions": pulled([lambda x, k=3.0: -k * x]),
    "partial by keyword": pulled([functools.partial(scaled, b=5.0)]),
    "partial by place": pulled(functools.partial(rowed, np.array([4.0]))),
    "an array of no dimension": pulled(lambda v: np.where(v > 0.7, -1.0, -0.5)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_are_those_of_the_interpreted_engine(name):
    interpreted, compiled = ends(FUNCTIONS[name])
    np.testing.assert_allclose(compiled, interpreted, rtol=1e-12)
    assert abs(interpreted - 1.0).max() > 0.1


def test_a_function_to_stop_by_may_have_defaults():
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        clock = bd.INTEGRATOR(x0=0.0)
        bd.connect(bd.CONSTANT(1.0), clock)
        stop = bd.STOP(lambda v, limit=0.3: v > limit)
        bd.connect(clock, stop)
        assert sim.run(bd, T=1.0).t[-1] == pytest.approx(0.3, abs=1e-9)
        stop.stopfunc = lambda v: v > 0.7
        assert sim.run(bd, T=1.0).t[-1] == pytest.approx(0.7, abs=1e-9)


def test_what_a_partial_holds_may_be_written_into():
    gains = np.array([1.0])
    sim = simulation()
    bd = pulled(functools.partial(rowed, gains))(sim)
    slow = sim.run(bd, T=1.0).x[-1, 0]
    gains[0] = 3.0
    assert sim.run(bd, T=1.0).x[-1, 0] == pytest.approx(slow**3, rel=1e-6)


def saturating(v):
    v[v > 1.0] = 1.0
    return -v


def test_a_function_may_write_into_what_it_is_given():
    """Neither the state nor what other blocks see of the signal changes."""
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        state, function = bd.INTEGRATOR(x0=[0.0, 0.5], name="state"), bd.FUNCTION(saturating, name="function")
        bd.connect(bd.CONSTANT([2.0, 1.0]), state)
        bd.connect(state, function, double := bd.GAIN(2.0, name="double"))
        bd.connect(function, bd.NULL())
        bd.connect(double, bd.NULL())
        out = sim.run(bd, T=1.0, watch=["double", "function"])
        np.testing.assert_allclose(out.x[-1], [2.0, 1.5], rtol=1e-9)
        np.testing.assert_allclose(out.signal("double")[-1], [4.0, 3.0], rtol=1e-9)
        np.testing.assert_allclose(out.signal("function")[-1], [-1.0, -1.0])
        found.append(out.x)
    np.testing.assert_array_equal(*found)


def test_a_diagram_that_has_run_compiled_can_be_copied():
    sim = simulation()
    bd = pulled(lambda x: -x)(sim)
    before = sim.run(bd, T=0.5).x[-1]
    bd.runtime = None  # which has windows and queues
    again = copy.deepcopy(bd)
    again.runtime = bd.runtime = sim
    again.blocknames["state"]._x0 = np.array([2.0])
    assert sim.run(again, T=0.5).x[-1] > before + 0.3  # from 2
    np.testing.assert_array_equal(sim.run(bd, T=0.5).x[-1], before)
