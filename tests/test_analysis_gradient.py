"""Gradients of a run's cost: against differences of the same stepper."""

import importlib
import math

import numba
import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, UnknownName
from cstormpy.simulation.analysis.gradients import Problem
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.wiring import compile_diagram


@pytest.fixture
def sim():
    return cs.Simulation(live=False, engine="interpreted")


def by_differences(sim, bd, cost, names, h=1e-5, **options):
    """Return cost and gradient by runs of the ordinary stepper, at parameters moved by h."""
    problem = Problem(sim, bd, cost, names, dict(options), "test")
    values, slopes = problem.parameters.get(), []
    for k in range(values.size):
        sides = []
        for side in (h, -h):
            moved = values.copy()
            moved[k] += side
            problem.parameters.set(moved)
            sides.append(problem.cost_of(problem.free_run()))
        slopes.append((sides[0] - sides[1]) / (2 * h))
    problem.parameters.set(values)
    return problem.cost_of(problem.free_run()), np.stack(slopes, axis=-1)


def servo(sim, sampled=False):
    """Return a loop around a lag of second order, with a limit, a step in what is wanted, and the squared error."""
    bd = sim.blockdiagram()
    wanted, error = bd.STEP(T=0.3, name="wanted"), bd.SUM("+-", name="error")
    gain, limit = bd.GAIN(3.0, name="gain"), bd.CLIP(min=-2.0, max=2.0, name="limit")
    plant = bd.LTI_SISO([1.0], [1.0, 0.7, 2.0], name="plant")
    square, cost = bd.PROD("**", name="square"), bd.INTEGRATOR(x0=0.5, name="cost")
    bd.connect(wanted, error[0])
    bd.connect(plant, error[1])
    bd.connect(error, gain, square[0], square[1])
    bd.connect(gain, limit)
    bd.connect(square, cost)
    if sampled:
        hold = bd.ZOH(bd.clock(10, "Hz"), x0=0.0, name="hold")
        bd.connect(limit, hold)
        bd.connect(hold, plant)
    else:
        bd.connect(limit, plant)
    return bd


SERVO = ["gain.K", "limit.max", "cost.x0"]


@pytest.mark.parametrize(
    ("sampled", "solver"),
    [pytest.param(False, "RK4", marks=pytest.mark.slow), (False, "Euler"), (True, "RK4"), (True, "Euler")],
)
def test_the_gradient_is_that_of_the_same_stepper(sim, solver, sampled):
    bd = servo(sim, sampled)
    names = SERVO if sampled else ["gain.K", "wanted.on", "cost.x0"]
    if not sampled:  # a kink that rates follow is located, which the run with the moved parameters does not do
        bd.blocknames["limit"].max = 20.0
    options = {"T": 2.0, "dt": 0.01, "solver": solver}
    found = sim.gradient(bd, "cost[0]", names, **options)
    cost, slopes = by_differences(sim, bd, "cost[0]", names, **options)
    assert found.cost == pytest.approx(cost, rel=0, abs=1e-13)
    np.testing.assert_allclose(found.gradient, slopes, rtol=0, atol=1e-8)
    assert found.parameters == (*names[:2], "cost.x0[0]") and found.events == []
    assert found.differenced == []


@pytest.mark.slow
def test_with_an_adaptive_solver_it_goes_along_the_accepted_steps(sim):
    bd = servo(sim)
    names = ["gain.K", "limit.max", "cost.x0"]
    found = sim.gradient(bd, "cost[0]", names, T=2.0, rtol=1e-9, atol=1e-12)
    fine = sim.gradient(bd, "cost[0]", names, T=2.0, dt=0.001, solver="RK4")
    assert abs(fine.gradient[0]) > 1e-3
    np.testing.assert_allclose(found.gradient, fine.gradient, rtol=0, atol=1e-8)


def test_a_cost_may_be_any_function_of_the_run_and_several(sim):
    bd = servo(sim, sampled=True)

    def costs(out):
        error = out.signal("error")
        return np.array([np.trapezoid(error**2, out.t), out.x[-1, 0], np.abs(error).max()])

    options = {"T": 1.5, "dt": 0.01, "solver": "RK4", "watch": ["error"]}
    found = sim.gradient(bd, costs, ["gain.K", "limit.max"], **options)
    values, slopes = by_differences(sim, bd, costs, ["gain.K", "limit.max"], **options)
    assert found.gradient.shape == (3, 2)
    np.testing.assert_allclose(found.cost, values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.gradient, slopes, rtol=0, atol=1e-8)


@pytest.fixture(scope="module")
def swing():
    """The acrobot as it comes near upright, with its swing-up that hands over to the balancing law."""
    sim = cs.Simulation(live=False, engine="interpreted")
    build = importlib.import_module("cstormpy.diagrams.acrobot").build
    return sim, build(sim, controller="energy", q0=[-3.449, 7.124], qd0=[4.22, -1.572], kick=False)


GAINS = ["controller.energy.ke", "controller.energy.kp", "plant.elbow.qd"]


@pytest.mark.slow
@pytest.mark.parametrize(("T", "events"), [(0.4, 0), (0.65, 1)])
def test_a_change_of_the_laws_phase_comes_earlier_or_later(swing, T, events):
    # angles that wrap and torques at their limits on the way are located too: of steps over them it is off by 4e-3
    sim, bd = swing
    options = {"T": T, "solver": "DOP853", "atol": 1e-13}
    found = sim.gradient(bd, "plant.shoulder.q", GAINS, rtol=1e-10, **options)
    free = cs.Simulation(live=False, engine="compiled")
    _, slopes = by_differences(free, bd, "plant.shoulder.q", GAINS, h=1e-4, rtol=1e-12, **options)
    assert [name for _, name in found.events] == ["controller"] * events
    np.testing.assert_allclose(found.gradient, slopes, rtol=0, atol=1e-6 if events else 2e-8)


@pytest.mark.slow
def test_weights_of_a_regulator_are_tunable_as_its_gains_are_solved_for_anew(sim):
    build = importlib.import_module("cstormpy.diagrams.acrobot").build
    bd = build(sim, controller="lqr", q0=[math.pi / 2 + 0.05, 0.0], kick=False)
    names = ["controller.lqr.R.elbow", "controller.lqr.Q.shoulder rate"]
    options = {"T": 0.5, "dt": 0.001, "solver": "RK4"}
    found = sim.gradient(bd, "effort.effort", names, **options)
    wide, narrow = (by_differences(sim, bd, "effort.effort", names, h=h, **options)[1] for h in (2e-2, 1e-2))
    np.testing.assert_allclose(found.gradient, (4.0 * narrow - wide) / 3.0, rtol=2e-7)


def test_gravity_is_a_parameter_like_others(sim):
    bd = importlib.import_module("cstormpy.diagrams.pendulum").build(sim)
    options = {"T": 0.7, "dt": 0.01, "solver": "RK4"}
    compile_diagram(bd)
    state = bd.statenames[0]
    found = sim.gradient(bd, state, ["plant.gravity"], **options)
    _, slopes = by_differences(sim, bd, state, ["plant.gravity"], **options)
    assert np.abs(slopes).max() > 1e-3
    np.testing.assert_allclose(found.gradient, slopes, rtol=0, atol=1e-8)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled where the JIT is off")
def test_compiled_it_is_the_same(sim):
    options = {"T": 1.0, "dt": 0.01, "solver": "RK4"}
    bd = servo(sim, sampled=True)
    plain = sim.gradient(bd, "cost[0]", SERVO, **options)
    sim.engine = "compiled"
    fast = sim.gradient(bd, "cost[0]", SERVO, **options)
    assert fast.cost == pytest.approx(plain.cost, rel=0, abs=1e-13)
    np.testing.assert_allclose(fast.gradient, plain.gradient, rtol=0, atol=1e-12)


def test_parameters_have_names(sim):
    bd = servo(sim)
    compile_diagram(bd)
    parameters = Parameters(bd, ["plant.A", "gain:K", "cost[0]" if "cost[0]" in bd.statenames else bd.statenames[-1]])
    assert parameters.names[:2] == ("plant.A[0, 0]", "plant.A[0, 1]") and parameters.names[4] == "gain.K"
    before = parameters.get()
    parameters.set(before + 0.5)
    np.testing.assert_allclose(parameters.get(), before + 0.5)
    with pytest.raises(UnknownName, match="gian"):
        Parameters(bd, ["gian.K"])
    with pytest.raises(UnknownName, match="stiffness"):
        Parameters(bd, ["gain.stiffness"])
    with pytest.raises(UnknownName, match="no entry"):
        Parameters(bd, ["plant.A[2, 0]"])
    with pytest.raises(InvalidValue, match="twice"):
        Parameters(bd, ["gain.K", "gain:K"])
    with pytest.raises(InvalidValue, match="one or more"):
        Parameters(bd, [])


def test_bad_input_is_named(sim):
    bd = servo(sim)
    with pytest.raises(DiagramError, match="Radau"):
        sim.gradient(bd, "cost[0]", SERVO, solver="Radau")
    with pytest.raises(InvalidValue, match="the cost failed: ZeroDivisionError"):
        sim.gradient(bd, lambda out: 1 / 0, SERVO, T=0.1, dt=0.01, solver="RK4")
    with pytest.raises(CstormError, match="the cost is"):
        sim.gradient(bd, lambda out: math.nan, SERVO, T=0.1, dt=0.01, solver="RK4")
    with pytest.raises(CstormError, match="cst"):
        sim.gradient(bd, "cst", SERVO)
    bd.blocknames["gain"].spare = 1.0
    with pytest.raises(InvalidValue, match=r"nothing in the compiled diagram reads gain\.spare"):
        sim.gradient(bd, "cost[0]", ["gain.spare"], T=0.1, dt=0.01, solver="RK4")


@pytest.mark.parametrize(
    ("option", "error", "said"),
    [
        ({"rtoll": 1e-12}, UnknownName, "gradient: option 'rtoll' does not exist; did you mean 'rtol'"),
        ({"log_dt": 0.1}, InvalidValue, "option 'log_dt' of `run` is not heeded"),
        ({"solver_args": {}}, InvalidValue, "option 'solver_args' of `run` is not heeded"),
        ({"checkfinite": False}, InvalidValue, "option 'checkfinite' of `run` is not heeded"),
        ({"first_tick": 3}, InvalidValue, "first_tick: expected 0 or 'bdsim'"),
    ],
)
def test_an_option_that_is_not_heeded_is_refused(sim, option, error, said):
    with pytest.raises(error, match=said):
        sim.gradient(servo(sim), "cost[0]", ["gain.K"], T=0.1, dt=0.01, solver="RK4", **option)


@pytest.mark.parametrize("first_tick", [0, "bdsim"])
def test_clocks_tick_first_as_in_a_run(sim, first_tick):
    bd = sim.blockdiagram()
    x, hold, gain = bd.INTEGRATOR(x0=1.0, name="x"), bd.ZOH(bd.clock(0.1), x0=0.3, name="hold"), bd.GAIN(-1.0, name="g")
    bd.connect(x, hold)
    bd.connect(hold, gain)
    bd.connect(gain, x)
    options = {"T": 1.0, "dt": 0.01, "solver": "RK4", "first_tick": first_tick}
    found = sim.gradient(bd, "x", ["g.K"], **options)
    assert found.cost == pytest.approx(sim.run(bd, **options).x[-1, 0], rel=0, abs=1e-13)
    _, slopes = by_differences(sim, bd, "x", ["g.K"], **options)
    np.testing.assert_allclose(found.gradient, slopes, rtol=0, atol=1e-8)


def test_a_blocks_own_name_stands_for_its_states_or_asks_for_a_parameter(sim):
    bd = servo(sim)
    compile_diagram(bd)
    assert Parameters(bd, ["plant"]).names == tuple(n for n in bd.statenames if n.startswith("plant"))
    with pytest.raises(UnknownName, match=r"'gain' is a block .*name a parameter of it: gain\.K$"):
        Parameters(bd, ["gain"])
    with pytest.raises(UnknownName, match=r"'nin' does not exist; there are 'K'$"):
        Parameters(bd, ["gain.nin"])
    with pytest.raises(UnknownName, match=r"there are 'gain', 'x0'$"):
        Parameters(bd, ["cost.y"])


def loop_with(sim, function, start=0.0):
    """Return ẋ = K function(x)."""
    bd = sim.blockdiagram()
    x, law, gain = bd.INTEGRATOR(x0=start, name="x"), bd.FUNCTION(function, name="law"), bd.GAIN(1.0, name="gain")
    bd.connect(x, law)
    bd.connect(law, gain)
    bd.connect(gain, x)
    return bd


def of_digits(function):
    """Return the same function such that only numbers can be asked."""
    return lambda x: function(float(f"{x:.17g}"))


JUMPING = {
    "relay": of_digits(lambda x: 1.0 if x < 0.77 else 2.0),
    "that holds the state": of_digits(lambda x: 1.0 if x < 0.77 else -1.0),
    "stairs": of_digits(lambda x: 1.0 + math.floor(x / 0.001) * 0.001),
}
SMOOTH = {
    "constant, then a slope": lambda x: 1.0 if x < 0.76 else 1.0 + 0.2 * (x - 0.76),
    "steep": lambda x: 1.5 + math.tanh(1000.0 * (0.77 - x)),
    "kink": lambda x: 1.0 + abs(x - 0.77),
    "constant": lambda x: 1.0,
}


FIXED = {"solver": "RK4", "dt": 0.01}


@pytest.mark.parametrize(("function", "solver"), [*((name, FIXED) for name in JUMPING), ("relay", {})])
def test_a_function_that_jumps_is_noted_with_its_block_and_time(sim, function, solver):
    found = sim.gradient(loop_with(sim, JUMPING[function]), "x", ["gain.K"], T=2.0, **solver)
    assert len(found.notes) == 1 and found.notes[0].startswith("the function of law jumps at t = ")
    if function == "relay":
        assert float(found.notes[0].split()[8].rstrip(";")) == pytest.approx(0.77, abs=0.01)


@pytest.mark.parametrize("size", [1e-6, 1e-9])
def test_a_jump_that_small_signals_never_reach_is_not_noted(sim, size):
    """Signals were moved aside by a part of 1, whatever their size, to look for a jump: beyond one that is far away."""
    law = of_digits(lambda x: math.tanh(x / size) + (3.0 if x > 5.0 * size else 0.0))
    bd = sim.blockdiagram()
    gain, state = bd.GAIN(1.0, name="gain"), bd.INTEGRATOR(0.0, name="x")
    bd.connect(bd.CONSTANT(0.5 * size), gain)
    bd.connect(gain, block := bd.FUNCTION(law, name="law"))
    bd.connect(block, state)
    bd.connect(state, bd.NULL())
    found = sim.gradient(bd, "x", ["gain.K"], T=1.0)
    assert not found.notes
    assert found.gradient == pytest.approx([0.5 / math.cosh(0.5) ** 2], rel=1e-6)


@pytest.mark.parametrize("solver", [FIXED, {}])
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_the_jump_of_a_traced_function_is_in_the_derivative(engine, solver):
    # at the edge of its domain a root has an infinite slope: the gradient was 0, without a word
    sim = cs.Simulation(live=False, engine=engine, progress=False)

    def law(x):
        return 1.0 + math.sqrt(x) + (x > 0.77)

    found = sim.gradient(loop_with(sim, law), "x", ["gain.K"], T=2.0, **solver)
    assert found.notes == [] and found.events == []  # as the run does, which locates nothing
    within = 1e-4 if solver else 1e-6  # at the root a fixed step is of low order
    assert found.gradient[0] == pytest.approx(2.0 * law(found.cost), rel=within)  # x is a function of K T


def test_an_infinite_slope_is_refused_with_its_state_and_time(sim):
    # what is no number was taken for zero
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(0.0, name="given"), root := bd.FUNCTION(lambda u: np.sqrt(u), name="root"))
    bd.connect(root, bd.INTEGRATOR(x0=0.0, name="x"))
    with pytest.raises(
        DiagramError, match=r"how x:x_0 follows given\.value is not finite at t = 0\.01; a slope is infinite"
    ):
        sim.gradient(bd, "x", ["given.value"], T=1.0, **FIXED)


@pytest.mark.parametrize("function", SMOOTH)
def test_a_function_that_does_not_jump_is_not_noted(sim, function):
    found = sim.gradient(loop_with(sim, SMOOTH[function]), "x", ["gain.K"], T=1.5, solver="RK4", dt=0.01)
    assert found.notes == []


def test_a_jump_at_a_time_of_its_own_is_not_noted_and_right(sim):
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=0.0, name="x"), bd.GAIN(1.0, name="gain")
    law = bd.FUNCTION(lambda t: 1.0 if t < 0.5 else 2.0, name="law")
    bd.connect(bd.TIME(), law)
    bd.connect(law, gain)
    bd.connect(gain, x)
    found = sim.gradient(bd, "x", ["gain.K"], T=1.0, solver="RK4", dt=0.01)
    assert found.notes == [] and found.gradient[0] == pytest.approx(1.5, abs=0.01)


@pytest.mark.parametrize("wave", ["square", "triangle", "sine"])
def test_numbers_that_decide_when_a_wave_jumps_need_no_note(sim, wave):
    bd = sim.blockdiagram()
    source, x = bd.WAVEFORM(wave, freq=0.77, duty=0.4, phase=0.1, name="w"), bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(source, x)
    names = ["freq", "phase", "amplitude", *(["duty"] if wave == "square" else [])]
    found = sim.gradient(bd, "x", [f"w.{name}" for name in names], T=2.0, solver="RK4", dt=0.01)
    assert found.notes == []


@pytest.mark.slow
def test_numbers_are_read_anew_as_a_translation_reads_them(swing, monkeypatch):
    sim, bd = swing
    options = {"T": 0.65, "dt": 0.005, "solver": "RK4"}
    calls, fresh = [], Program.refresh
    monkeypatch.setattr(Program, "refresh", lambda program: calls.append(fresh(program)) or calls[-1])
    quick = sim.gradient(bd, "plant.shoulder.q", GAINS, **options)
    assert len(calls) >= 4 * len(GAINS) and all(calls)
    monkeypatch.setattr(Program, "refresh", lambda program: False)
    slow = sim.gradient(bd, "plant.shoulder.q", GAINS, **options)
    np.testing.assert_array_equal(quick.gradient, slow.gradient)
    np.testing.assert_array_equal(quick.dx, slow.dx)


def test_a_sample_that_is_taken_is_an_event_with_derivatives_too(sim):
    """Whether its trigger begins to be true is seen when rates are asked for, which nobody did: no sample was taken."""
    bd = sim.blockdiagram()
    held, total = bd.SAMPLEHOLD(0.3, x0=0.1, name="held"), bd.INTEGRATOR(name="total")
    bd.connect(bd.CONSTANT(2.0, name="given"), held.u)
    bd.connect(bd.TIME(), held.trigger)
    bd.connect(held, total)
    found = sim.gradient(bd, "total", ["held.x0"], T=0.2)
    assert found.gradient[0] == pytest.approx(0.2)
    found = sim.gradient(bd, "total", ["held.x0", "given.value", "held.threshold"], T=1.0)
    assert found.gradient == pytest.approx([0.3, 0.7, 0.1 - 2.0])


# limits of an integrator --------------------------------------------------------------------------------------


def filled(sim, K=1.0, low=-1.0, high=0.3, first=0.1):
    """Two tanks that are filled and emptied until they are full and empty, and the integral of what is in them."""
    bd = sim.blockdiagram()
    flow, level = bd.GAIN(K, name="flow"), bd.INTEGRATOR([0.0, first], min=[low, low], max=[high, 0.5], name="level")
    total = bd.INTEGRATOR([0.0, 0.0], name="total")
    bd.connect(bd.CONSTANT([1.0, -2.0]), flow)
    bd.connect(flow, level)
    bd.connect(level, total)
    return bd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_when_an_integrator_gets_to_its_limit_is_in_the_derivative(engine):
    sim = cs.Simulation(engine=engine)
    names = ["flow.K", "level.max", "level.min", "level.x0"]
    found = sim.gradient(filled(sim), lambda out: out.x[-1, 2:], names, T=1.0, rtol=1e-10, atol=1e-12, watch=[])
    # full at 0.3, empty at 1.1 / 2
    full = [0.3**2 / 2, 0.7, 0.0, 0.0, 0.0, 0.3, 0.0]
    empty = [-(1.1**2) / 4, 0.0, 0.0, 0.0, 0.45, 0.0, 0.55]
    np.testing.assert_allclose(found.gradient, [full, empty], rtol=0, atol=1e-6)
    assert [name for _, name in found.events] == ["level", "level"] and found.notes == []
    assert [t for t, _ in found.events] == pytest.approx([0.3, 0.55], abs=1e-6)


def decay(sim):
    """Return ẋ = −x² from 1, which is x₀ / (1 + x₀ t)."""
    bd = sim.blockdiagram()
    x, law = bd.INTEGRATOR(x0=1.0, name="x"), bd.FUNCTION(lambda x: -(x**2), name="law")
    bd.connect(x, law)
    bd.connect(law, x)
    return bd


@pytest.mark.parametrize("start", [[3.0], {"x": 3.0}, "saved"])
@pytest.mark.parametrize("solver", [{"solver": "RK4", "dt": 0.01}, {"rtol": 1e-9, "atol": 1e-12}])
def test_a_state_among_the_parameters_begins_where_the_start_says(sim, start, solver):
    bd, value = decay(sim), 3.0
    if start == "saved":
        start = sim.run(bd, T=1.0).state
        value = start.continuous["x"][0]
    found = sim.gradient(bd, "x", ["x"], T=1.0, start=start, **solver)
    assert found.values[0] == found.out.x[0, 0] == value
    assert found.cost == pytest.approx(value / (1.0 + value), abs=1e-7)
    assert found.gradient[0] == pytest.approx(1.0 / (1.0 + value) ** 2, abs=1e-7)


def test_from_a_saved_state_the_free_run_begins_at_a_states_parameter(sim):
    """Its steps are those that an adaptive solver's gradient goes along."""
    bd = decay(sim)
    problem = Problem(sim, bd, "x", ["x"], {"T": 1.0, "start": sim.run(bd, T=1.0).state}, "test")
    problem.parameters.set(np.array([2.0]))
    out = problem.free_run()
    assert out.x[0, 0] == 2.0 and out.t[0] == 1.0


@pytest.mark.parametrize("name", ["hold.T", "hold.offset", "sum.T", "{clock}.T"])
def test_what_a_clock_says_is_no_parameter(sim, name):
    bd = servo(sim, sampled=True)
    clock = bd.clocklist[0]
    total = bd.INTEGRATOR_S(clock, x0=0.0, name="sum")
    bd.connect(bd.blocknames["limit"], total)
    bd.connect(total, bd.NULL(name="away"))
    with pytest.raises(InvalidValue, match=r"period and offset are the clock's"):
        sim.gradient(bd, "cost[0]", [name.format(clock=clock.name)], T=1.0, dt=0.01, solver="RK4")
    with pytest.raises(UnknownName, match=r"there are 'gain', 'x0'$"):
        sim.gradient(bd, "cost[0]", ["sum.rate"], T=1.0, dt=0.01, solver="RK4")
    sim.gradient(bd, "cost[0]", ["sum.gain", "wanted.T"], T=0.1, dt=0.01, solver="RK4")


@pytest.mark.parametrize("name", ["hold.ndstates", "hold._id", "hold.id", "plant.nstates"])
def test_what_the_diagram_keeps_in_a_block_is_no_parameter(sim, name):
    bd = servo(sim, sampled=True)
    with pytest.raises(UnknownName, match="tunable number"):
        sim.gradient(bd, "cost[0]", [name], T=0.1, dt=0.01, solver="RK4")
    compile_diagram(bd)
    bd.blocknames["gain"].depth = 0.3  # a number of the user's own
    assert Parameters(bd, ["gain.depth"]).get() == [0.3]


def test_one_number_under_two_names_is_refused(sim):
    run = {"T": 0.1, "dt": 0.01, "solver": "RK4"}
    with pytest.raises(InvalidValue, match=r"x\.x0\[0\] and x:x_0 are the same number, where x:x_0 starts"):
        sim.gradient(decay(sim), "x", ["x.x0", "x"], **run)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.library.planar_2r(), name="plant")
    bd.connect(bd.CONSTANT([0.0, 0.0], name="hold"), plant)
    with pytest.raises(InvalidValue, match=r"plant\.q0\[0\] and plant\.shoulder\.q are the same number"):
        sim.gradient(bd, "plant.elbow.q", ["plant.q0[0]", "plant.shoulder.q"], **run)
    both = ["plant.forearm.mass", "forearm.mass"]  # of which the first had a gradient of 0, and no say in a sweep
    with pytest.raises(InvalidValue, match=r"plant\.forearm\.mass and forearm\.mass are the same number"):
        sim.gradient(bd, "plant.elbow.q", both, **run)
    with pytest.raises(InvalidValue, match=r"plant\.forearm\.mass and forearm\.mass are the same number"):
        sim.sweep(bd, {name: [1.0, 2.0] for name in both}, ["plant.q"], T=0.1, progress=False)
    for same in (["hold.value[0]", "hold:value[0]"], ["hold.value", "hold:value[1]"]):
        with pytest.raises(InvalidValue, match=r"hold\.value\[\d\] and hold:value\[\d\] are the same number; name one"):
            sim.gradient(bd, "plant.elbow.q", same, **run)
    assert sim.gradient(bd, "plant.elbow.q", ["plant.q0[0]", "plant.elbow.q"], **run).gradient.shape == (2,)


def test_where_a_start_is_given_the_blocks_own_has_no_say(sim):
    run = {"T": 0.1, "dt": 0.01, "solver": "RK4"}
    with pytest.raises(InvalidValue, match=r"x\.x0\[0\] has no say where start= is given; name the state itself"):
        sim.gradient(decay(sim), "x", ["x.x0"], start=[3.0], **run)
    bd = servo(sim, sampled=True)
    assert sim.gradient(bd, "cost[0]", ["hold.x0"], start={"cost": 0.1}, **run).parameters == ("hold.x0[0]",)
    with pytest.raises(InvalidValue, match=r"hold\.x0\[0\] has no say: the saved state"):
        sim.gradient(bd, "cost[0]", ["hold.x0"], start=sim.run(bd, **run).state, **run)


def test_a_name_that_is_refused_is_not_suggested(sim):
    bd = sim.blockdiagram()
    table, x = bd.INTERPOLATE(x=[-5.0, 0.0, 5.0], y=[-3.0, 0.0, 3.0], name="table"), bd.INTEGRATOR(x0=1.0, name="x")
    bd.connect(x, table)
    bd.connect(table, x)
    for name in ("table.y", "table"):
        with pytest.raises(UnknownName) as refused:
            sim.gradient(bd, "x", [name], T=0.1, dt=0.01, solver="RK4")
        assert "xpts" not in str(refused.value)


@pytest.mark.parametrize(
    ("cost", "error", "said"),
    [
        (lambda out: None, InvalidType, "the cost returned None; end its function with 'return'"),
        (lambda out: [], InvalidValue, "the cost is an empty array"),
        (None, InvalidType, "gradient: cost: expected blocks"),
    ],
)
def test_a_cost_without_a_number_is_named(sim, cost, error, said):
    with pytest.raises(error, match=said):
        sim.gradient(decay(sim), cost, ["x"], T=0.1, dt=0.01, solver="RK4")


@pytest.mark.parametrize("names", [None, 3])
def test_parameters_that_are_no_names_are_refused(sim, names):
    with pytest.raises(InvalidType, match="parameters: expected a list of names"):
        sim.gradient(decay(sim), "x", names, T=0.1)


def test_signals_are_watched_as_in_a_run(sim):
    bd, run = servo(sim, sampled=True), {"T": 0.5, "dt": 0.01, "solver": "RK4", "watch": "all"}
    found, out = sim.gradient(bd, "error", ["gain.K"], **run), sim.run(bd, **run)
    assert found.out.ynames == out.ynames
    np.testing.assert_allclose(found.out.y[-1], out.y[-1], rtol=0, atol=1e-12)
    with pytest.raises(InvalidType, match="watch: expected blocks"):
        sim.gradient(bd, "cost[0]", ["gain.K"], **{**run, "watch": None})


class Damper(cs.control.Law):
    """A law of one's own, without a compiled form."""

    def __init__(self, mech, damping):
        super().__init__(mech)
        self.damping = damping

    def torque(self, t, q, qd, reference=None):
        return -self.damping * qd


def damped(sim, law):
    bd = sim.blockdiagram()
    mech = cs.library.pendulum()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.4], name="plant")
    controller = bd.CONTROLLER(mech, law(mech, 0.3), name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return bd


def remembering(v, data):
    data["last"] = v
    return -v


@pytest.mark.parametrize("ask", ["gradient", "tune"])
def test_what_helps_a_block_without_a_compiled_form_is_said(sim, ask):
    """An interpreted simulation was advised to "run it with engine='interpreted'"."""
    bd = sim.blockdiagram()
    state, memory = bd.INTEGRATOR(x0=1.0, name="state"), bd.FUNCTION(remembering, persistent=True, name="memory")
    bd.connect(state, memory)
    bd.connect(memory, state)
    with pytest.raises(DiagramError) as caught:
        getattr(sim, ask)(bd, lambda out: out.x[-1, 0], ["state"], T=0.2, solver="RK4", dt=0.02)
    told = str(caught.value)
    assert "engine='interpreted'" not in told and "memory: keeps data between its calls" in told
    assert f"{ask}: derivatives of a run come from the compiled form, with any engine" in told
    assert "differences of sim.run" in told


def test_a_law_of_ones_own_has_a_gradient(sim):
    bd, options = damped(sim, Damper), {"T": 0.2, "solver": "RK4", "dt": 0.02}
    found = sim.gradient(bd, lambda out: out.x[-1, 0], ["plant"], **options)
    _, slopes = by_differences(sim, bd, lambda out: out.x[-1, 0], ["plant"], **options)
    np.testing.assert_allclose(found.gradient, slopes, rtol=0, atol=1e-7)


@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_the_derivative_of_a_peak_is_that_of_the_signal_and_not_of_its_samples(sim, rtol):
    """That of the largest sample was off by a fifth, as of a force of which some samples were next to its peak."""
    bd = sim.blockdiagram()
    force, speed, place = bd.SUM("+--", name="force"), bd.INTEGRATOR(0.0, name="speed"), bd.INTEGRATOR(0.0, name="x")
    damper, spring = bd.GAIN(0.4, name="damper"), bd.GAIN(9.0, name="spring")
    bd.connect(bd.CONSTANT(9.0), force[0])
    bd.connect(force, speed)
    bd.connect(speed, place, damper)
    bd.connect(place, spring)
    bd.connect(damper, force[1])
    bd.connect(spring, force[2])
    found = sim.gradient(bd, lambda out: out.signal("x").max(), ["damper.K", "spring.K"], T=2, rtol=rtol, watch=["x"])

    def peak(d, k):  # of x'' = 9 - d x' - k x
        damping = d / 2 / math.sqrt(k)
        return 9 / k * (1 + math.exp(-math.pi * damping / math.sqrt(1 - damping**2)))

    h = 1e-5
    exact = [(peak(0.4 + h, 9) - peak(0.4 - h, 9)) / 2 / h, (peak(0.4, 9 + h) - peak(0.4, 9 - h)) / 2 / h]
    assert found.cost == pytest.approx(peak(0.4, 9), rel=10 * rtol)
    assert found.gradient == pytest.approx(exact, rel=1e-3 if rtol == 1e-4 else 1e-6)
