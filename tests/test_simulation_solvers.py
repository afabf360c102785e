"""The integration methods: their order, their steps beside scipy's, the control of the step."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import scipy.integrate
from bdsim.components import ContinuousBlock
from bdsim_examples import EXAMPLES, van_der_pol, van_der_pol_rate
from scipy.integrate import DOP853, RK23, RK45, solve_ivp

import cstormpy as cs
from cstormpy.simulation.saved_state import SavedState
from cstormpy.simulation.step_control import first_step
from cstormpy.simulation.steppers import SOLVERS
from cstormpy.simulation.tableaus import EXPLICIT, order_defect

ORDERS = {"Euler": 1, "RK23": 3, "RK4": 4, "RK45": 5, "DOP853": 8, "Radau": 5}
STEPS = {"Euler": (512, 1024), "RK23": (64, 128), "DOP853": (5, 10)}


def swell(sim):
    """x' = x cos t, so that x = exp(sin t): the rate depends on the time and on the state."""
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(x0=1.0, name="x"), bd.FUNCTION(lambda t, x: x * math.cos(t), nin=2)
    bd.connect(bd.TIME(), rate[0])
    bd.connect(x, rate[1])
    bd.connect(rate, x)
    return bd


def fixed_steps(solver, n, T=2.0):
    """Return the error at the end of n steps of one length, forced upon the adaptive methods by wide tolerances."""
    sim = cs.Simulation()
    h = T / n
    if solver in ("RK4", "Euler"):
        out = sim.run(swell(sim), T, solver=solver, dt=h)
    else:
        start = SavedState(t=0.0, continuous={"x": [1.0]}, step=h)
        wide = {"rtol": 1e-3, "atol": 1e6} if solver == "Radau" else {"rtol": 1e6, "atol": 1e6}
        out = sim.run(swell(sim), T, solver=solver, max_step=h, start=start, **wide)
    np.testing.assert_allclose(out.t[: n + 1], h * np.arange(n + 1), atol=1e-12)
    return abs(out.x[-1, 0] - math.exp(math.sin(T)))


@pytest.mark.parametrize("solver", ORDERS)
def test_order(solver):
    coarse, fine = STEPS.get(solver, (16, 32))
    order = math.log2(fixed_steps(solver, coarse) / fixed_steps(solver, fine))
    assert order == pytest.approx(ORDERS[solver], abs=0.2)


PAIRS = [  # of low order, a tight tolerance takes thousands of steps
    pytest.param(solver, tolerance, marks=[pytest.mark.slow] * (solver is RK23 and tolerance == 1e-9))
    for solver in (RK45, RK23, DOP853)
    for tolerance in (1e-3, 1e-6, 1e-9)
]


@pytest.mark.parametrize(("solver", "tolerance"), PAIRS)
def test_steps_are_those_of_scipy(solver, tolerance):
    """The same first step, lengths and rejections; and from the same state over the same length the same result.

    Scipy adds in another order, and at tight tolerances the estimate of the error, and so the length, is near rounding:
    each step is compared with scipy's from where ours began.
    """
    sim = cs.Simulation(engine="interpreted")
    bd = sim.blockdiagram()
    van_der_pol(bd)
    T, tolerances = 12.0, {"rtol": tolerance, "atol": 1e-3 * tolerance, "max_step": 100.0}
    out = sim.run(bd, T, solver=solver.__name__, **tolerances)
    chooses, follows = (solver(van_der_pol_rate, 0.0, np.ones(2), T, **tolerances) for _ in range(2))
    for before, t, x in zip(out.t, out.t[1:], out.x[1:], strict=False):
        follows.t_bound, follows.h_abs = t, 100.0
        chooses.step()
        follows.step()
        assert chooses.t - before == pytest.approx(t - before, rel=2e-6)
        np.testing.assert_allclose(follows.y, x, rtol=1e-14, atol=1e-14)
        for ref in (chooses, follows):
            ref.t, ref.y, ref.f, ref.status = t, x, van_der_pol_rate(t, x), "running"
    assert t == T and out.stats.steps > 10
    ref = solve_ivp(van_der_pol_rate, (0, T), [1.0, 1.0], method=solver, **tolerances)
    assert out.stats.steps == len(ref.t) - 1


def test_evaluations_are_those_of_scipy():
    sim = cs.Simulation(engine="interpreted")
    bd = sim.blockdiagram()
    van_der_pol(bd)
    out = sim.run(bd, 10.0, max_step=100.0)
    ref = solve_ivp(van_der_pol_rate, (0, 10), [1.0, 1.0], rtol=1e-6, atol=1e-9, max_step=100.0)
    assert out.stats.evaluations <= ref.nfev + 2
    assert out.stats.steps == len(ref.t) - 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_by_name_in_any_case(solver):
    sim = cs.Simulation()
    for name in (solver, solver.lower(), solver.upper()):
        out = sim.run(swell(sim), 0.5, solver=name, dt=0.01)
        assert out.x[-1, 0] == pytest.approx(math.exp(math.sin(0.5)), rel=1e-2 if solver == "Euler" else 1e-4)


def test_a_solver_may_be_a_class_of_scipy():
    sim = cs.Simulation()
    by_class, by_name = (sim.run(swell(sim), 2.0, solver=solver) for solver in (RK45, "RK45"))
    np.testing.assert_allclose(by_class.x[-1], by_name.x[-1], rtol=1e-6)
    assert by_class.status == "finished"


def test_tolerances_may_stand_where_bdsim_wants_them():
    sim = cs.Simulation()
    arguments = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12, "max_step": 0.5}
    one = sim.run(swell(sim), 2.0, solver_args=arguments)
    two = sim.run(swell(sim), 2.0, solver="DOP853", rtol=1e-10, atol=1e-12, max_step=0.5)
    np.testing.assert_array_equal(one.t, two.t)
    np.testing.assert_array_equal(one.x, two.x)
    assert arguments == {"method": "DOP853", "rtol": 1e-10, "atol": 1e-12, "max_step": 0.5}


def test_options_of_a_solver_reach_scipy_or_are_refused():
    sim = cs.Simulation()
    assert sim.run(swell(sim), 1.0, solver="LSODA", solver_args={"min_step": 1e-8}).status == "finished"
    with pytest.raises(cs.InvalidValue, match="no further options, got 'min_step'"):
        sim.run(swell(sim), 1.0, solver_args={"min_step": 1e-8})
    with pytest.raises(cs.UnknownName, match="'Radau': option 'jak' does not exist; did you mean 'jac'"):
        sim.run(swell(sim), 1.0, solver="Radau", solver_args={"jak": 1})
    with pytest.raises(cs.InvalidValue, match=r"'Radau': .*jac"):
        sim.run(swell(sim), 1.0, solver="Radau", solver_args={"jac": np.zeros((3, 3))}, on_error="raise")


def test_no_step_is_longer_than_asked():
    sim = cs.Simulation()
    assert np.diff(sim.run(swell(sim), 1.0).t).max() <= 0.01 + 1e-12
    assert np.diff(sim.run(swell(sim), 1.0, max_step=0.003).t).max() <= 0.003 + 1e-12


@pytest.mark.parametrize("solver", ["RK4", "Euler"])
def test_a_fixed_step_needs_a_length(solver):
    sim = cs.Simulation()
    with pytest.raises(cs.InvalidValue, match=r"give it, as in run\(\.\.\., dt=0\.001\)"):
        sim.run(swell(sim), 1.0, solver=solver)
    out = sim.run(swell(sim), 1.0, solver=solver, dt=0.1)
    np.testing.assert_allclose(out.t, np.linspace(0, 1, 11), atol=1e-12)


@pytest.mark.slow
def test_a_stiff_diagram():
    """Van der Pol with mu = 1000 turns over once: Radau and BDF take few steps, and agree."""
    mu = 1000.0
    ends = {}
    for solver in ("Radau", "BDF", "LSODA"):
        sim = cs.Simulation()
        bd = sim.blockdiagram()
        x, y = bd.INTEGRATOR(x0=2.0, name="x"), bd.INTEGRATOR(x0=0.0, name="y")
        rate = bd.FUNCTION(lambda x, y: mu * (1 - x * x) * y - x, nin=2)
        bd.connect(x, rate[0])
        bd.connect(y, rate[1], x)
        bd.connect(rate, y)
        out = sim.run(bd, 1000.0, solver=solver, max_step=1000.0)
        assert out.status == "finished" and out.stats.steps < 3000
        ends[solver] = out.x[-1, 0]
    exact = solve_ivp(
        lambda t, x: [x[1], mu * (1 - x[0] ** 2) * x[1] - x[0]], (0, 1000), [2.0, 0.0], "Radau", rtol=1e-10, atol=1e-12
    ).y[0, -1]
    assert list(ends.values()) == pytest.approx([exact] * 3, abs=1e-3)


def test_a_step_cut_short_by_a_boundary_is_not_forgotten():
    """A clock of 1 kHz must not make the solver begin with tiny steps at each tick."""
    sim = cs.Simulation()
    bd = swell(sim)
    hold = bd.ZOH(bd.clock(1000, "Hz"))
    bd.connect(bd.TIME(name="time"), hold)
    out = sim.run(bd, 1.0)
    assert out.stats.steps == 1000
    assert out.stats.evaluations < 9 * 1000


@pytest.mark.parametrize("name", ["RK45", "RK23", "DOP853"])
def test_the_adaptive_methods_are_those_of_scipy(name):
    method, scipys = EXPLICIT[name], getattr(scipy.integrate, name)
    s = scipys.n_stages
    scipys_A = scipys.A[:s, :s]
    np.testing.assert_array_equal(method.A[:, : scipys_A.shape[1]], scipys_A)
    np.testing.assert_array_equal(method.b, scipys.B)
    np.testing.assert_array_equal(method.c, scipys.C[:s])
    assert method.error_order == scipys.error_estimator_order
    if name != "DOP853":
        np.testing.assert_array_equal(method.E, scipys.E)
        np.testing.assert_array_equal(method.P, scipys.P)
        assert method.order == scipys.order


@pytest.mark.parametrize("name", EXPLICIT)
def test_a_tableau_is_of_the_order_that_it_says_and_of_no_higher(name):
    method = EXPLICIT[name]
    assert order_defect(method.A, method.b, method.order) < 1e-13
    assert order_defect(method.A, method.b, method.order + 1) > 1e-6
    if method.adaptive:
        embedded = method.b - method.E[:-1] if method.E[-1] == 0 else None
        if embedded is not None and name != "DOP853":
            assert order_defect(method.A, embedded, method.error_order) < 1e-13


def kutta(**changed):
    """Return Kutta's method of order 3, with Heun's of order 2 inside for an estimate."""
    given = {
        "A": [[0, 0, 0], [0.5, 0, 0], [-1, 2, 0]],
        "b": [1 / 6, 2 / 3, 1 / 6],
        "order": 3,
        "E": [1 / 6, -1 / 3, 1 / 6],
        **changed,
    }
    return cs.Tableau("Kutta", **given)


def pendulum_run(solver, engine, **options):
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.library.acrobot(), q0=[1.0, 0.5], name="plant")
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    return sim.run(bd, 1.0, solver=solver, **options)


def test_a_method_keeps_coefficients_of_its_own():
    """One that was checked became another, with the array of weights that it had been given."""
    given = np.array([1 / 6, 2 / 3, 1 / 6])
    method = kutta(b=given)
    given *= 2.0
    np.testing.assert_array_equal(method.b, [1 / 6, 2 / 3, 1 / 6])


def test_a_method_of_ones_own_runs_in_both_engines():
    adaptive, fixed = kutta(), kutta(E=None)
    for solver, options in ((adaptive, {"rtol": 1e-7}), (fixed, {"dt": 1e-3})):
        plain, compiled = (pendulum_run(solver, engine, **options) for engine in ("interpreted", "compiled"))
        np.testing.assert_allclose(plain.t, compiled.t, atol=1e-9)
        np.testing.assert_allclose(plain.x, compiled.x, atol=1e-8)
    exact = pendulum_run("DOP853", "compiled", rtol=1e-11, atol=1e-12).x[-1]
    errors = [np.abs(pendulum_run(fixed, "compiled", dt=1.0 / n).x[-1] - exact).max() for n in (200, 400)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(3, abs=0.2)


def test_two_methods_of_one_name_are_two():
    heun = {"A": [[0, 0], [1, 0]], "b": [0.5, 0.5], "order": 2}
    midpoint = {"A": [[0, 0], [0.5, 0]], "b": [0, 1], "order": 2}
    ends = [pendulum_run(cs.Tableau("mine", **given), "compiled", dt=0.05).x[-1] for given in (heun, midpoint)]
    assert np.abs(ends[0] - ends[1]).max() > 1e-6


def test_a_gradient_goes_through_a_method_of_ones_own():
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-0.5, name="rate")
    bd.connect(x, gain)
    bd.connect(gain, x)
    found = sim.gradient(bd, "x[0]", ["rate.K"], T=1.0, solver=kutta(E=None), dt=0.01)
    assert float(np.squeeze(found.gradient)) == pytest.approx(math.exp(-0.5), rel=1e-6)


@pytest.mark.parametrize(
    "changed, error, message",
    [
        ({"b": [1 / 6, 2 / 3]}, cs.ShapeError, "A"),
        ({"b": [0.2, 0.6, 0.2]}, cs.InvalidValue, "misses a condition of order 3"),
        ({"order": 4}, cs.InvalidValue, "misses a condition of order 4"),
        ({"order": 2.0}, cs.InvalidValue, "order: expected 1 to 10"),
        ({"A": np.eye(3)}, cs.InvalidValue, "zeros on and above the diagonal"),
        ({"c": [0, 0.5, 0.9]}, cs.InvalidValue, "sums of the rows"),
        ({"E": [1, 0, 0]}, cs.InvalidValue, "sum to zero"),
        ({"E": [np.nan, 0, 0]}, cs.NonFinite, "E"),
    ],
)
def test_coefficients_that_are_no_method_are_refused(changed, error, message):
    with pytest.raises(error, match=message):
        kutta(**changed)


def test_an_unknown_method_is_named():
    with pytest.raises(cs.UnknownName, match="did you mean 'RK45'"):
        pendulum_run("RK_45", "compiled")
    with pytest.raises(cs.InvalidValue, match="solver 'Kutta': takes steps of one length"):
        pendulum_run(kutta(E=None), "compiled")


def test_first_step_is_that_of_scipy():
    def f(t, x):
        return np.array(van_der_pol_rate(t, x))

    x = np.array([1.0, 1.0])
    for tolerance in (1e-3, 1e-9):
        scipy_step = RK45(f, 0.0, x, 10.0, rtol=tolerance, atol=tolerance).h_abs
        assert first_step(f, 0.0, x, f(0.0, x), 10.0, -1 / 5, tolerance, tolerance) == pytest.approx(
            scipy_step, rel=1e-14
        )


def test_examples_take_the_same_steps_again():
    example = EXAMPLES["quadrotor"]
    sim = cs.Simulation()
    bd, watch = example.wire(sim)
    one, two = sim.run(bd, 2.0, watch=watch), sim.run(bd, 2.0, watch=watch)
    for key in ("t", "x", "y"):
        np.testing.assert_array_equal(one[key], two[key])


def test_options_of_a_simulation_hold_for_its_runs_as_in_bdsim():
    def decays(**options):
        sim = cs.Simulation(graphics=False, progress=False, **options)
        bd = sim.blockdiagram()
        decay, rate = bd.INTEGRATOR(1.0, name="decay"), bd.GAIN(-1.0, name="rate")
        bd.connect(decay, rate)
        bd.connect(rate, decay)
        return sim, bd

    sim, bd = decays(rtol=1e-12, atol=1e-14, dt=0.5)
    out = sim.run(bd, T=5)
    assert out.t.tolist() == np.arange(0.0, 5.1, 0.5).tolist() and abs(out.x[-1, 0] - np.exp(-5)) < 1e-13
    assert len(sim.run(bd, T=5, dt=1.0).t) == 6
    assert abs(sim.run(bd, T=5, max_step=1.0, solver_args={"rtol": 1e-3, "atol": 1e-3}).x[-1, 0] - np.exp(-5)) > 1e-9
    assert sim.sweep(bd, {"rate.K": [-1.0]}, lambda out: len(out.t), T=5, progress=False).value == [11]
    assert abs(sim.gradient(bd, "decay[0]", ["rate.K"], T=5).cost - np.exp(-5)) < 1e-13
    sim.options.max_step, sim.options.simtime = 0.01, "2,0.25"
    assert sim.run(bd, T=5).t.tolist() == np.arange(0.0, 2.1, 0.25).tolist()
    sim, bd = decays(method="RK4", dt=0.1)
    assert sim.run(bd, T=1).x[-1, 0] == pytest.approx((1 - 0.1 + 0.005 - 1e-3 / 6 + 1e-4 / 24) ** 10, rel=1e-13)


def test_what_is_told_to_each_run_is_no_attribute_of_a_simulation():
    sim = cs.Simulation(graphics=False, progress=False)
    with pytest.raises(cs.InvalidType, match=r"'rtol' is told to each run, as in sim.run\(bd, rtol=…\)"):
        sim.rtol = 1e-9
    with pytest.raises(cs.InvalidType, match=r"'progress' is one of its options, sim.options.progress = …"):
        sim.progress = False
    with pytest.raises(cs.UnknownName, match="engine 'compile' does not exist; did you mean 'compiled'"):
        sim.engine = "compile"
    with pytest.raises(cs.InvalidValue, match="Simulation: dt: expected a positive number, got -1"):
        cs.Simulation(dt=-1)
    sim.options.simtime = "1,2,3"
    with pytest.raises(cs.InvalidValue, match="simtime: expected a time, or a time and dt"):
        sim.run(sim.blockdiagram())


class Bar(ContinuousBlock):
    """A bar of n parts that conducts heat to its neighbours and, if `mixed`, to the mean of all, cold at both ends."""

    def __init__(self, n, mixed=False, **blockargs):
        super().__init__(nin=0, onames=["T"], nstates=n, **blockargs)
        self.mixed, self._x0 = mixed, np.sin(np.pi * np.arange(1, n + 1) / (n + 1))

    def output(self, t, u, x):
        return [x.copy()]

    def deriv(self, t, u, x):
        ends = np.zeros(1)
        curved = np.concatenate([x[1:], ends]) - 2.0 * x + np.concatenate([ends, x[:-1]])
        return (x.size + 1.0) ** 2 * curved + (np.sum(x) - x if self.mixed else 0.0)


@pytest.mark.parametrize("name", ["Radau", "BDF", "LSODA"])
def test_implicit_methods_know_which_rates_of_many_depend_on_which_states(name, monkeypatch):
    """Full matrices took Radau 39 times as long for a bar of 800 parts; of few, or coupled, states nothing is told."""
    given, made = [], getattr(scipy.integrate, name).__init__

    @functools.wraps(made)
    def make(self, *arguments, **options):
        given.append({key: value for key, value in options.items() if key in ("jac_sparsity", "lband", "uband")})
        made(self, *arguments, **options)

    monkeypatch.setattr(getattr(scipy.integrate, name), "__init__", make)

    def told(n, mixed=False, engine="compiled", **options):
        sim = cs.Simulation(engine=engine)
        bd = sim.blockdiagram()
        bar = Bar(n, mixed, bd=bd, name="bar")
        bd.connect(bar, bd.NULL())
        given.clear()
        out = sim.run(bd, T=0.01, solver=name, rtol=1e-8, atol=1e-10, **options)
        slowest = 2.0 * (n + 1) ** 2 * (1.0 - math.cos(math.pi / (n + 1)))  # an eigenvalue of the second differences
        if not mixed:
            np.testing.assert_allclose(out.x[-1], bar._x0 * math.exp(-0.01 * slowest), rtol=0, atol=2e-7)
        return given[-1]

    own = {"lband": 2, "uband": 2} if name == "LSODA" else {"jac_sparsity": np.tri(120, k=2) - np.tri(120, k=-3)}
    if name == "LSODA":
        assert told(120) == {"lband": 1, "uband": 1}
    else:
        np.testing.assert_array_equal(told(120)["jac_sparsity"].toarray(), np.tri(120, k=1) - np.tri(120, k=-2))
    assert told(120, engine="interpreted") == told(20) == told(120, mixed=True) == {}
    assert told(120, solver_args=own) == own
