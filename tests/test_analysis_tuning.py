"""Tuning by the exact gradient of a run's cost: known optima, bounds, interruptions, runs that fail."""

import math

import numpy as np
import pytest
from bdsim.components import FunctionBlock

import cstormpy as cs
from cstormpy.errors import InvalidType, InvalidValue, UnknownName
from cstormpy.reporting import Progress


@pytest.fixture
def sim():
    return cs.Simulation(live=False, engine="interpreted")


def lag(sim):
    """Return a state that goes to a set point, ẋ = k (1 − x): at t it has gone 1 − exp(−k t) of the way."""
    bd = sim.blockdiagram()
    error, gain, x = bd.SUM("+-", name="error"), bd.GAIN(0.5, name="gain"), bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(1.0, name="wanted"), error[0])
    bd.connect(x, error[1])
    bd.connect(error, gain)
    bd.connect(gain, x)
    return bd


RUN = {"T": 1.0, "dt": 0.02, "solver": "RK4"}
BEST = math.log(4.0)  # 1 − exp(−k) = 3/4


@pytest.mark.parametrize("several", [False, True])
def test_tuning_finds_the_known_optimum_and_sets_it(sim, several):
    bd = lag(sim)

    def miss(out):
        away = out.x[-1, 0] - 0.75
        return np.array([away, 0.0]) if several else away**2

    tuned = sim.tune(bd, miss, ["gain.K"], tol=1e-14, **RUN)
    assert tuned.success and tuned.applied and tuned.cost < 1e-12 < tuned.cost_before
    assert tuned.after[0] == pytest.approx(BEST, abs=1e-5)
    assert bd.blocknames["gain"].K == tuned.after[0]
    assert tuned.history == sorted(tuned.history, reverse=True) and "gain.K: 0.5 ->" in str(tuned)
    assert len(tuned.plot().axes) == 2 == len(tuned.plot(bd.statenames[0]).axes)  # it was taken letter by letter


@pytest.mark.parametrize("unit", [1e-6, 1e3])
def test_costs_at_samples_may_be_of_any_size_and_number(sim, unit):
    """A gradient of small costs was said to have vanished; within bounds a run without an event ended in an error."""
    bd = lag(sim)
    bd.blocknames["gain"].K = 0.9
    bd.connect(
        bd.blocknames["error"], bd.DEADZONE(-1.0, 0.5, name="far")
    )  # whose corner is a sample where it is reached

    def misses(out):
        lengths.add(len(out.t))
        return unit * (out.signal("x") - 0.5 * out.t)

    lengths: set[int] = set()
    tuned = sim.tune(bd, misses, ["gain.K"], bounds=(0.3, 2.0), watch=["x"], **RUN)
    assert tuned.success and len(lengths) > 1
    t, k = tuned.out.t, np.linspace(0.3, 2.0, 3401)[:, None]
    assert tuned.after[0] == pytest.approx(
        k[np.argmin(np.sum((1.0 - np.exp(-k * t) - 0.5 * t) ** 2, axis=1)), 0], abs=1e-3
    )


def still(sim, *values):
    """Return states that stay where they are, so that a cost is a function of what is tuned."""
    bd = sim.blockdiagram()
    for k, value in enumerate(values):
        bd.connect(bd.CONSTANT(0.0), bd.INTEGRATOR(x0=value, name="xy"[k]))
    return bd


def test_a_single_short_step_in_a_flat_valley_is_no_end(sim):
    """The search ended 1.3 % above the least cost, at the first step that gained next to nothing."""

    def valley(out):
        x, y = out.x[-1]
        return 100.0 * (y - x**2) ** 2 + (1.0 - x) ** 2 + 1e-3

    tuned = sim.tune(still(sim, 5.0, -5.0), valley, ["x", "y"], **RUN | {"dt": 0.5})
    assert tuned.success and tuned.cost < 1.001e-3 and tuned.runs < 60


@pytest.mark.parametrize("several", [False, True])
def test_a_gradient_that_vanishes_at_the_start_is_told_as_that(sim, several):
    """On a maximum, where each way is as good as its mirror image, it was said in the words of a minimum."""

    def hill(out):
        return np.array([math.cos(out.x[-1, 0]), 0.0]) if several else math.cos(out.x[-1, 0])

    tuned = sim.tune(still(sim, 0.0), hill, ["x"], **RUN | {"dt": 0.5})
    assert tuned.message.startswith("the gradient has vanished at the start, as it does") and "saddle" in tuned.message
    assert not tuned.applied and tuned.cost == tuned.cost_before


def test_a_signal_that_is_an_array_of_one_number_is_one_cost(sim):
    """Half its square was made least, as of several costs: that of a negative one is greatest at its minimum."""
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(x0=[1.0], name="x"), bd.GAIN(-0.5, name="rate")
    bd.connect(x, rate)
    bd.connect(rate, x)
    found = sim.gradient(bd, "rate", ["rate.K"], **RUN)
    assert np.ndim(found.cost) == 0 and found.gradient.shape == (1,)
    tuned = sim.tune(bd, "rate", ["rate.K"], bounds=(-3.0, -0.1), tol=1e-14, **RUN)  # K exp(K), the least at -1
    assert tuned.cost == pytest.approx(-math.exp(-1.0), rel=1e-7)
    assert tuned.after[0] == pytest.approx(-1.0, abs=1e-3)


def test_tuning_keeps_within_bounds_and_sets_nothing_unless_wanted(sim):
    bd = lag(sim)
    tuned = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.75) ** 2, ["gain.K"], bounds=(0.1, 1.0), apply=False, **RUN)
    assert tuned.after[0] == pytest.approx(1.0, abs=1e-12) and not tuned.applied
    assert bd.blocknames["gain"].K == 0.5
    with pytest.raises(InvalidValue, match=r"gain.K = 0.5 is not within"):
        sim.tune(bd, lambda out: 0.0, ["gain.K"], bounds={"gain.K": (1.0, 2.0)}, **RUN)
    with pytest.raises(InvalidValue, match=r"bounds of gain.K: expected the lesser number first, got 3 and 0.1"):
        sim.tune(bd, lambda out: 0.0, ["gain.K"], bounds=(3.0, 0.1), **RUN)
    with pytest.raises(UnknownName, match="gian"):
        sim.tune(bd, lambda out: 0.0, ["gain.K"], bounds={"gian.K": (1.0, 2.0)}, **RUN)
    pairs = [(0.1, 1.0), (None, 5.0)]  # scipy's form was refused
    tuned = sim.tune(bd, lambda out: -out.x[-1, 0], ["gain.K", "x"], bounds=pairs, apply=False, **RUN)
    assert tuned.after == pytest.approx([0.1, 5.0])
    with pytest.raises(InvalidValue, match=r"one pair for each of the 1 parameters, got 2; .*gain\.K"):
        sim.tune(bd, lambda out: 0.0, ["gain.K"], bounds=pairs, **RUN)
    with pytest.raises(InvalidType, match=r"bounds of gain\.K: expected two numbers, got .*a list of one for each"):
        sim.tune(bd, lambda out: 0.0, ["gain.K"], bounds=3.0, **RUN)


def test_a_search_says_how_it_goes_without_a_terminal_too(sim, monkeypatch, caplog):
    """Its line of progress was written to terminals only: in a log file nothing was said for minutes."""
    caplog.set_level("INFO", "cstormpy")
    monkeypatch.setattr(Progress, "LINE_EVERY", 0.0)
    monkeypatch.setattr(Progress, "LINE_PART", 0.0)
    sim.tune(lag(sim), lambda out: (out.x[-1, 0] - 0.75) ** 2, ["gain.K"], **RUN)
    said = [line for line in caplog.messages if line.startswith("tune: run ")]
    assert said[0].startswith("tune: run 1 of at most 100, cost 0.")
    sim.options.progress = False
    caplog.clear()
    sim.tune(lag(sim), lambda out: (out.x[-1, 0] - 0.75) ** 2, ["gain.K"], **RUN)
    assert not caplog.messages


def test_an_interrupted_search_returns_the_best_and_leaves_the_blocks_alone(sim):
    bd, calls = lag(sim), []

    def miss(out):
        calls.append(1)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return (out.x[-1, 0] - 0.75) ** 2

    tuned = sim.tune(bd, miss, ["gain.K"], **RUN)
    assert not tuned.success and not tuned.applied and tuned.message == "interrupted"
    assert tuned.cost <= tuned.cost_before and bd.blocknames["gain"].K == 0.5


def test_a_run_that_fails_is_stepped_back_from(sim, caplog):
    bd = lag(sim)

    def miss(out):
        if out.x[-1, 0] > 0.76:
            raise ValueError("too far")
        return (out.x[-1, 0] - 0.75) ** 2

    with caplog.at_level("INFO", logger="cstormpy"):
        tuned = sim.tune(bd, miss, ["gain.K"], **RUN)
    assert tuned.cost < tuned.cost_before and tuned.after[0] == pytest.approx(BEST, abs=0.02)


def test_as_many_runs_are_made_as_were_allowed(sim):
    bd = lag(sim)
    tuned = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.75) ** 2, ["gain.K"], max_runs=2, tol=1e-15, **RUN)
    assert tuned.runs <= 2


@pytest.mark.parametrize(
    ("option", "error", "said"),
    [
        ({"bound": (-5.0, -3.0)}, UnknownName, "tune: option 'bound' does not exist; did you mean 'bounds'"),
        ({"max_runs": "many"}, InvalidType, "max_runs: expected a whole number, got 'many'"),
        ({"max_runs": 0}, InvalidValue, "max_runs: expected at least 1"),
        ({"apply": "no"}, InvalidType, "apply: expected True or False, got 'no'"),
        ({"tol": -1.0}, InvalidValue, "tol: expected a positive number"),
        ({"tol": "fine"}, InvalidType, "tol: expected a positive number"),
    ],
)
def test_what_a_search_can_not_take_is_refused_before_a_run(sim, option, error, said):
    bd = lag(sim)

    def never(out):
        raise AssertionError("a run was made")

    with pytest.raises(error, match=said):
        sim.tune(bd, never, ["gain.K"], **RUN, **option)


def near(out):
    return (out.x[-1, 0] - 0.75) ** 2


def unstable(sim):
    """Return ẋ = k x from 1, which is exp(k) at 1: its negative square has no minimum."""
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(1.0, name="gain")
    bd.connect(x, gain)
    bd.connect(gain, x)
    return bd


@pytest.mark.parametrize("cost", [lambda out: -(out.x[-1, 0] ** 2), lambda out: -1.0 - out.x[-1, 0]])
def test_a_cost_without_a_minimum_is_no_success_and_sets_nothing(sim, cost):
    bd = unstable(sim)
    with np.errstate(over="ignore"):
        tuned = sim.tune(bd, cost, ["gain.K"], **RUN)
    assert not tuned.success and not tuned.applied and bd.blocknames["gain"].K == 1.0
    assert "no minimum within reach" in tuned.message and "gain.K" in tuned.message and "bounds={" in tuned.message
    bounded = sim.tune(bd, cost, ["gain.K"], bounds=(0.0, 2.0), **RUN)
    assert bounded.success and bounded.after[0] == 2.0


@pytest.mark.slow
@pytest.mark.parametrize(("several", "offset"), [(False, 0.0), (False, -5.0), (True, 0.0)])
def test_a_run_that_fails_is_no_optimum(sim, several, offset):
    def miss(out):
        if out.x[-1, 0] > 0.7:
            raise ValueError("too far")
        away = out.x[-1, 0] - 0.75
        return np.array([away, 0.0]) if several else away**2 + offset

    bd = lag(sim)
    tuned = sim.tune(bd, miss, ["gain.K"], max_runs=300, **RUN)
    assert not tuned.success and not tuned.applied and bd.blocknames["gain"].K == 0.5
    assert "fail" in tuned.message and "too far" in tuned.message
    assert tuned.out.x[-1, 0] == pytest.approx(0.7, abs=0.01) and tuned.out.x[-1, 0] <= 0.7


def test_a_run_that_fails_at_once_is_no_optimum(sim):
    calls = []

    def once(out):
        calls.append(1)
        if len(calls) > 5:
            raise KeyError("x")
        return near(out)

    tuned = sim.tune(lag(sim), once, ["gain.K"], **RUN)
    assert not tuned.success and tuned.cost == tuned.cost_before and "KeyError" in tuned.message


@pytest.mark.slow
@pytest.mark.parametrize("several", [pytest.param(False, marks=pytest.mark.slow), True])
def test_costs_of_an_adaptive_solver_are_all_by_the_same_steps(sim, several):
    """A sum over samples costs what the steps make of it: the last run once had steps of its own."""
    bd = lag(sim)

    def effort(out):
        error = out.signal("error").ravel()
        return error if several else float(np.sum(error**2))

    tuned = sim.tune(bd, effort, ["gain.K"], T=5.0, watch=["error"], bounds=(0.1, 20.0))
    assert tuned.cost == tuned.history[-1] < tuned.history[0] == tuned.cost_before
    np.testing.assert_array_equal(tuned.out.t, tuned.out_before.t)
    assert "by steps of its own the run costs" in tuned.message
    assert tuned.cost == pytest.approx(np.sum(tuned.out.signal("error") ** 2) * (0.5 if several else 1.0), rel=1e-12)


@pytest.mark.parametrize("several", [False, True])
def test_running_out_of_runs_is_no_success(sim, several):
    bd = lag(sim)

    def cost(out):
        return np.array([out.x[-1, 0] - 0.75, 0.0]) if several else near(out)

    tuned = sim.tune(bd, cost, ["gain.K"], max_runs=3, tol=1e-15, **RUN)
    assert tuned.cost < tuned.cost_before and tuned.runs == 3
    assert not tuned.success and not tuned.applied and "max_runs = 3" in tuned.message
    assert bd.blocknames["gain"].K == 0.5
    tuned = sim.tune(bd, cost, ["gain.K"], max_runs=3, tol=1e-15, apply=True, **RUN)
    assert tuned.applied and bd.blocknames["gain"].K == tuned.after[0] != 0.5


def test_a_cost_that_does_not_follow_its_gradient_is_told_in_our_words(sim):
    """A cost whose steps are finer than what moves along the gradient: it has a slope, but no way down."""

    def rounded(out):
        x = out.x[-1, 0]
        return 1.0 - x if x <= 1.0 - math.exp(-0.5) + 1e-9 else 2.0 + x

    tuned = sim.tune(lag(sim), rounded, ["gain.K"], **RUN)
    assert not tuned.success and "abnormal" not in tuned.message.lower()
    assert (
        tuned.message == "the cost cannot be lowered along its gradient: it is not smooth there, or rounding hides it"
    )


@pytest.mark.slow
def test_a_negative_cost_is_drawn_on_a_linear_axis(sim, recwarn):
    import matplotlib.pyplot as plt

    tuned = sim.tune(lag(sim), lambda out: near(out) - 5.0, ["gain.K"], **RUN)
    figure = tuned.plot()
    panel = figure.axes[0]
    figure.canvas.draw()
    assert panel.get_yscale() == "linear" and panel.get_ylim()[0] < -4.9 and not recwarn.list
    assert sim.tune(lag(sim), near, ["gain.K"], **RUN).plot().axes[0].get_yscale() == "log"
    plt.close("all")


def test_a_state_that_is_tuned_becomes_where_its_block_starts(sim):
    bd = lag(sim)
    tuned = sim.tune(bd, near, ["x"], **RUN)
    assert tuned.applied and tuned.after[0] == pytest.approx(1.0 - 0.25 * math.exp(0.5), abs=1e-5)
    assert sim.run(bd, **RUN).x[0, 0] == tuned.after[0]


def test_blocks_begin_in_the_mode_of_where_a_tuned_state_starts(sim):
    """They began in that of where it had started before the search, here with the other of two gains."""
    bd = sim.blockdiagram()
    x, switch = bd.INTEGRATOR(-0.4, name="x"), bd.SWITCH(0.0, name="switch")
    slow, fast = bd.GAIN(-1.0), bd.GAIN(-2.0)
    bd.connect(x, slow, fast, switch.control)
    bd.connect(slow, switch[0])
    bd.connect(fast, switch[2])
    bd.connect(switch, x)
    tuned = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.2) ** 2, ["x:x_0"], T=1.0, tol=1e-12)
    assert tuned.after[0] == pytest.approx(0.2 * math.e, rel=1e-4)
    assert sim.run(bd, T=1.0).x[-1, 0] == pytest.approx(0.2, rel=1e-4)


def test_where_a_start_is_given_the_message_says_how_to_pass_the_tuned_one(sim):
    bd = lag(sim)
    for start in ([0.2], {"x": 0.2}):
        tuned = sim.tune(bd, near, ["x"], start=start, **RUN)
        assert tuned.success and not tuned.applied and tuned.before[0] == tuned.out_before.x[0, 0] == 0.2
        assert "start=tuned.out.x[0]" in tuned.message
        assert sim.run(bd, **RUN).x[0, 0] == 0.0
        assert sim.run(bd, start=tuned.out.x[0], **RUN).x[-1, 0] == pytest.approx(0.75, abs=1e-4)
    saved = sim.run(bd, T=0.5, dt=0.02, solver="RK4").state
    tuned = sim.tune(bd, near, ["x"], start=saved, **RUN)
    assert not tuned.applied and f"start.continuous['x'] = [{tuned.after[0]}]" in tuned.message
    assert tuned.before == pytest.approx(saved.continuous["x"])


def test_a_block_without_a_number_for_its_start_is_told_of(sim):
    bd = lag(sim)
    bd.blocknames["x"].getstate0 = lambda: np.array([0.1])
    tuned = sim.tune(bd, near, ["x", "gain.K"], **RUN)
    assert tuned.success and tuned.applied and bd.blocknames["gain"].K == tuned.after[1]
    assert "in no block is set x" in tuned.message and bd.blocknames["x"]._x0[0] == 0.0


def test_all_signals_may_be_watched(sim):
    bd = lag(sim)
    tuned = sim.tune(bd, lambda out: (out.signal("x[0]")[-1] - 0.75) ** 2, ["gain.K"], watch="all", **RUN)
    assert tuned.success and tuned.out.ynames == sim.run(bd, watch="all", **RUN).ynames


def test_a_bound_that_ends_the_search_is_named():
    sim = cs.Simulation(engine="interpreted", progress=False)
    bd = sim.blockdiagram()
    state, gain, sign = bd.INTEGRATOR(x0=1.0, name="state"), bd.GAIN(1.0, name="gain"), bd.GAIN(-1.0)
    bd.connect(state, gain)
    bd.connect(gain, sign)
    bd.connect(sign, state)
    found = sim.tune(bd, "state:x_0", ["gain.K"], T=1.0, bounds={"gain.K": (0.1, 5.0)}, solver="RK4", dt=0.01)
    assert found.success and found.after[0] == 5.0
    assert found.message == "the gradient has vanished, but for gain.K at a bound"


@pytest.mark.slow
def test_numbers_far_from_the_start_are_found_though_its_steps_would_be_unstable_there():
    """With the steps of the first run a damper three times as strong was unstable: the search ended at such a wall."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.library.planar_2r(damping=0.1).with_gravity((0, 0, 0)), q0=[0.2, 0.0], name="plant")
    spring, damper, torque = bd.GAIN(-20.0, name="spring"), bd.GAIN(-2.0, name="damper"), bd.SUM("++", name="torque")
    bd.connect(plant.q, spring)
    bd.connect(plant.qd, damper)
    bd.connect(spring, torque[0])
    bd.connect(damper, torque[1])
    bd.connect(torque, plant.tau)

    def cost(out):
        errors, torques = ((out.signal(name) ** 2).sum(1) for name in ("plant.q", "torque"))
        return np.trapezoid(errors + 1e-3 * torques, out.t)

    run = {"T": 2.0, "watch": ["plant", "torque"]}
    tuned = sim.tune(bd, cost, ["spring.K", "damper.K"], **run)
    assert tuned.success and tuned.after[1] < -6.0
    angles = tuned.plot().axes[1]  # they were "[0], before", without a unit
    assert angles.get_ylabel() == "[rad]" and angles.lines[1].get_label() == "elbow, before"
    there = sim.gradient(bd, cost, ["spring.K", "damper.K"], rtol=1e-9, **run)  # by steps of its own
    assert np.abs(there.gradient * tuned.after).max() < 1e-4 * there.cost
    assert tuned.cost == pytest.approx(there.cost, rel=1e-4)


def follower(sim):
    """Return a state z that follows another one fast, ẏ = −y, ż = 1000 (y − z), and begins where it is led along."""
    bd = sim.blockdiagram()
    slow, fast = bd.INTEGRATOR(x0=1.0, name="slow"), bd.INTEGRATOR(x0=1000 / 999, name="fast")
    bd.connect(slow, rate := bd.GAIN(-1.0, name="rate"))
    bd.connect(rate, slow)
    behind = bd.SUM("+-", name="behind")
    bd.connect(slow, behind[0])
    bd.connect(fast, behind[1])
    bd.connect(behind, gain := bd.GAIN(1000.0, name="gain"))
    bd.connect(gain, fast)
    return bd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("solver", ["RK23", "RK45", "DOP853"])
def test_what_dies_away_fast_does_not_grow_in_the_gradient(engine, solver):
    """The solver lets it grow from nothing to its tolerance; derivatives grew as much, and came out as 1e6 and 1e3."""
    sim = cs.Simulation(live=False, engine=engine)
    found = sim.gradient(follower(sim), "fast", ["rate.K", "gain.K"], T=1.0, solver=solver)
    expected = [(1000 / 999 - 1000 / 999**2) * math.exp(-1.0), -1.0 / 999**2 * math.exp(-1.0)]
    np.testing.assert_allclose(found.gradient, expected, rtol=2e-4)
    model = sim.linearize(follower(sim), dt=1.0)
    np.testing.assert_allclose(model.A, [[math.exp(-1.0), 0.0], [1000 / 999 * math.exp(-1.0), 0.0]], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("solver", "fast"), [("RK23", 2000.0), ("RK45", 5000.0), ("DOP853", 5000.0)])
def test_a_first_step_that_is_far_too_long_is_cut_more_often(solver, fast):
    """Solvers begin with steps of many times what is stable, where the fast states rest; derivatives were 0 or 1e10."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    rates = -np.array([fast, fast, 0.3, 0.6, 0.9, 1.4, 2.0, 2.5])
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    x, turned = bd.INTEGRATOR(axes[:, 2:].sum(axis=1), name="x"), bd.GAIN(axes * rates @ axes.T, premul=True)
    bd.connect(x, turned)
    bd.connect(turned, x)
    weights = rng.normal(size=8)
    found = sim.gradient(bd, lambda out: float(weights @ out.x[-1]), ["x"], T=3.0, solver=solver)
    expected = axes * np.exp(3.0 * rates) @ axes.T @ weights
    np.testing.assert_allclose(found.gradient, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_tuning_bears_what_dies_away_fast(sim):
    found = sim.tune(follower(sim), lambda out: (out.x[-1, 1] - 0.2) ** 2, ["rate.K"], T=1.0)
    assert found.success and abs(1000 / (1000 + found.after[0]) * math.exp(found.after[0]) - 0.2) < 1e-5


def test_steps_are_seen_to_be_too_long_where_the_method_is_no_longer_stable():
    """The reaches are those of the methods' stability functions, as in Hairer and Wanner 1996, IV.2."""
    from cstormpy.simulation.tableaus import explicit_method

    known = {"Euler": 2.0, "RK4": 2.7853, "RK23": 2.5127, "RK45": 3.3066}
    for name, reach in known.items():
        assert abs(explicit_method(name).reach - reach) < 0.01


class Stages(FunctionBlock):
    """As many gains in a row as fit in its number, and one more: equations of another form from each to each."""

    nin = nout = 1

    def __init__(self, k=0.4, **options):
        super().__init__(**options)
        self.k = k

    @property
    def k(self):
        return self.gains[0]

    @k.setter
    def k(self, value):
        self.gains = [value] * (1 + int(value))

    def output(self, t, u, x):
        for gain in self.gains:
            u = [gain * u[0]]
        return u


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_equations_that_take_another_form_on_the_way_are_written_down_anew(engine):
    """The rate is k below 1 and k² beyond, where what is kept from run to run of a search no longer holds."""
    sim = cs.Simulation(live=False, engine=engine)
    bd = sim.blockdiagram()
    error, stages, x = bd.SUM("+-", name="error"), Stages(name="stages", bd=bd), bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(1.0, name="wanted"), error[0])
    bd.connect(x, error[1])
    bd.connect(error, stages)
    bd.connect(stages, x)
    tuned = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.75) ** 2, ["stages.k"], bounds=(0.1, 1.9), **RUN)
    np.testing.assert_allclose([tuned.after[0], stages.k], math.sqrt(BEST), rtol=1e-5)
