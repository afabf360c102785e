"""Diagrams stepped from outside: as runs with the same steps, and refused where a run would do more between steps."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from bdsim.blocks.sources import Step

import cstormpy as cs
from cstormpy.errors import BlockError, CstormError, DiagramError, InvalidValue


def acrobot():
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.2, 0.3], name="plant")
    bd.connect(bd.CONSTANT(0.8, name="torque"), plant.tau)
    return sim, bd


@pytest.fixture(scope="module")
def stepper():
    sim, bd = acrobot()
    return sim.stepper(bd, inputs=["plant.tau"], outputs=["plant.q", "plant.qd"])


def test_steps_are_those_of_a_run(stepper):
    sim, bd = acrobot()
    out = sim.run(bd, T=1.0, solver="RK4", dt=0.01)
    y = stepper.reset()
    np.testing.assert_array_equal(y, [-1.2, 0.3, 0.0, 0.0])
    for k in range(100):
        y = stepper.step([0.8], 0.01)
        np.testing.assert_allclose(stepper.x, out.x[k + 1], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(y, stepper.x)
    assert stepper.t == pytest.approx(1.0)
    assert stepper.inputs == ("plant.tau[0]",) or stepper.inputs == ("plant.tau",)
    assert len(stepper.outputs) == 4 == len(stepper.states)


def test_inputs_are_held_over_a_step(stepper):
    """Another torque for each step: as the mechanism's own dynamics, by the same method written out."""
    mech = cs.library.acrobot()

    def rate(x, tau):
        return np.concatenate([x[2:], mech.forward_dynamics(x[:2], x[2:], np.array([0.0, tau]))])

    x, h = stepper.reset([0.4, -0.2, 0.1, 0.0]), 0.02
    for tau in np.linspace(-2.0, 2.0, 9):
        k1 = rate(x, tau)
        k2 = rate(x + 0.5 * h * k1, tau)
        k3 = rate(x + 0.5 * h * k2, tau)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + rate(x + h * k3, tau))
        np.testing.assert_allclose(stepper.step(tau, h), x, atol=1e-12)


@pytest.mark.parametrize("kind", ["stepper", "events", "batch"])
def test_rates_are_those_of_the_mechanism_and_change_no_step(kind):
    """With other inputs than those of the steps, as a value iteration or a vector field asks."""
    sim, bd = acrobot()
    asked = {"inputs": ["plant.tau"], "outputs": ["plant.q"]}
    count = 11 if kind == "batch" else 1
    made = sim.batch_stepper(bd, **asked, count=count) if kind == "batch" else sim.stepper(bd, **asked)
    if kind == "events":
        made = sim.stepper(bd, **asked, events=True)
    x = np.random.default_rng(3).uniform(-2.0, 2.0, (count, 4))
    tau = np.linspace(-3.0, 4.0, count)[:, None]
    qdd = cs.library.acrobot().forward_dynamics(x[:, :2], x[:, 2:], np.hstack([0.0 * tau, tau]))
    want = np.hstack([x[:, 2:], qdd])

    def by(given):
        return given if kind == "batch" else given[0]

    made.reset(by(x))
    np.testing.assert_allclose(made.rates(by(tau)), by(want), rtol=1e-12, atol=1e-12)
    first = made.step(by(0.0 * tau), 0.01)
    made.reset(by(x))
    np.testing.assert_array_equal(made.step(by(0.0 * tau), 0.01), first)
    with pytest.raises(CstormError, match=r"rates: u"):
        made.rates(by(tau * np.nan))


def test_a_clock_that_no_block_has_is_no_matter():
    """It was refused as a block that declares jumps, to be put in by inputs=['clock.0']."""
    sim, bd = acrobot()
    bd.clock(10, "Hz")
    np.testing.assert_array_equal(sim.stepper(bd, outputs=["plant.q"]).reset(), [-1.2, 0.3])


def test_a_start_by_name_and_shorter_steps_inside():
    sim, bd = acrobot()
    fine = sim.stepper(bd, ["plant.tau"], ["plant.q"], substeps=10)
    coarse = sim.stepper(bd, ["plant.tau"], ["plant.q"])
    y = fine.step([0.5], 0.1)
    for _ in range(10):
        z = coarse.step([0.5], 0.01)
    np.testing.assert_allclose(y, z, atol=1e-14)
    np.testing.assert_allclose(fine.reset({"plant": [0.1, 0.2, 0.3, 0.4]}, t=3.0), [0.1, 0.2])
    assert fine.t == 3.0


@pytest.mark.parametrize("u", [0.7, [0.7], (0.7,), np.float64(0.7), np.array(0.7), np.array([0.7], dtype=np.float32)])
def test_inputs_are_taken_in_any_form(stepper, u):
    """Arrays of float64, floats and lists of floats are taken as they are, all else is looked at first."""
    stepper.reset()
    expected = stepper.step(np.array([0.7]), 0.01)
    given = stepper.reset()
    np.testing.assert_allclose(stepper.step(u, 0.01), expected, atol=1e-8)
    np.testing.assert_array_equal(given, stepper.reset())  # what was returned before stays as it was


@pytest.mark.parametrize("u", [[0.7, 0.1], "0.7", [None], [[0.7]], np.zeros(0)])
def test_inputs_of_another_form_are_refused(stepper, u):
    stepper.reset()
    with pytest.raises(CstormError, match="step: u"):
        stepper.step(u, 0.01)
    assert stepper.t == 0.0


def test_what_fails_leaves_it_where_it_stood(stepper):
    x = stepper.reset().copy()
    for u, dt, kind in (([1.0, 2.0], 0.1, CstormError), ([1.0], -0.1, InvalidValue), ([np.nan], 0.1, BlockError)):
        with pytest.raises(kind):
            stepper.step(u, dt)
        assert stepper.t == 0.0 and np.array_equal(stepper.x, x)


def test_what_is_wrong_with_inputs_and_times_is_said(stepper):
    """A NaN was called a block that fails, which `sim.run` would name; times were taken as they came."""
    sim, bd = acrobot()
    batch = sim.batch_stepper(bd, ["torque"], ["plant.q"], count=2)
    for wrong, said in (
        (lambda: stepper.step(np.zeros(3), 0.1), f"; the inputs are {stepper.inputs[0]}"),
        (lambda: stepper.step([np.nan], 0.1), f"step: u: input {stepper.inputs[0]!r} is nan"),
        (lambda: batch.step([0.0, 0.0], 0.1), f"; the inputs are {batch.inputs[0]}"),
        (lambda: batch.step([[0.0], [np.inf]], 0.1), f"step: u: input {batch.inputs[0]!r} of row 1 is inf"),
        *[
            (lambda s=s, t=t: s.reset(t=t), "reset: t: expected")
            for s in (stepper, batch)
            for t in (np.nan, "a", [1.0])
        ],
    ):
        with pytest.raises(CstormError) as caught:
            wrong()
        assert said in str(caught.value)


class OwnStep(Step):
    """A source of a user that declares when it jumps, as bdsim's own does."""


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (
            lambda bd, x: bd.connect(x, bd.RELAY(name="relay")),  # which has no locate=
            "block 'relay' locates events; only a run handles located events: give events=True, .*, or leave the block",
        ),
        (lambda bd, x: bd.connect(x, bd.COMPARE(">", name="relay")), ", make it with locate=False, or leave"),
        (  # which gives nothing that inputs= could
            lambda bd, x: bd.connect(x, bd.EVENT("^", lambda block: None, name="event")),
            "give events=True, with which each step is a run, or leave the block out of this diagram$",
        ),
        (
            lambda bd, x: bd.connect(OwnStep(name="late", bd=bd), bd.NULL()),
            "block 'late' declares when it jumps.* by a method edges\\(\\).*inputs=\\['late'\\]",
        ),
    ],
)
def test_what_belongs_to_a_run_is_refused(add, message):
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(name="x")
    bd.connect(bd.CONSTANT(1.0), x)
    add(bd, x)
    for block in list(bd.blocklist):
        if block.name == "relay":
            bd.connect(block, bd.NULL())
        for port in range(1, block.nout):
            bd.connect(block[port], bd.NULL())
    with pytest.raises(DiagramError, match=message):
        sim.stepper(bd)


def test_a_solver_of_its_own_steps_is_refused():
    sim, bd = acrobot()
    with pytest.raises(DiagramError, match="solver: expected one of fixed steps"):
        sim.stepper(bd, solver="RK45")


def pushed_four_bar(bd):
    mech = cs.library.four_bar()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project([1.0, -1.8, -2.0])[0], name="plant")
    bd.connect(bd.CONSTANT([0.5], name="push"), plant.tau)
    return bd


def test_loops_stay_closed_as_in_a_run():
    """After 7 s they were open by more than a metre: nothing took away what a step let them drift."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    out = sim.run(pushed_four_bar(sim.blockdiagram()), T=7.0, solver="RK4", dt=0.01)
    one = sim.stepper(pushed_four_bar(sim.blockdiagram()), ["push"], ["plant.q"], substeps=5)
    bd = pushed_four_bar(sim.blockdiagram())
    many = sim.batch_stepper(bd, ["push"], ["plant.q"], count=3, substeps=5)
    for _ in range(140):
        y, rows = one.step([0.5], 0.05), many.step(np.full((3, 1), 0.5), 0.05)
    for found in (one.x, *many.x):
        np.testing.assert_allclose(found, out.x[-1], atol=1e-11)
    np.testing.assert_allclose(rows, np.tile(y, (3, 1)), atol=1e-11)
    for stepper in (one, many):
        t, x = np.copy(stepper.t), stepper.x.copy()
        with pytest.raises(InvalidValue, match=r"loop pin: .* misses closure"):
            stepper.reset([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0)
        np.testing.assert_array_equal(stepper.t, t)
        np.testing.assert_array_equal(stepper.x, x)
    hard = np.full(many.count, 60.0)
    with pytest.raises(BlockError, match=r"step: at t = .*: loop pin: .*; take shorter steps, substeps="):
        one.step([60.0], 2.0)
    with pytest.raises(BlockError, match=r"step: at t = .*: loop pin: .*; take shorter steps, substeps="):
        many.step(hard[:, None], 2.0)


def test_a_start_where_a_block_fails_is_not_gone_to():
    """They stood there afterwards, and said that a step had failed; a length in fractions failed as row -2."""
    stretched = np.eye(4)
    stretched[0, 3] = 1.0
    upper = cs.Link("upper", None, cs.Revolute((0, 0, 1)))
    lower = cs.Link("lower", "upper", cs.Revolute((0, 0, 1)), stretched, mass=1.0, com=(1.0, 0.0, 0.0))
    mech = cs.Mechanism([upper, lower])  # whose mass matrix is singular when stretched
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    for make in (sim.stepper, lambda *given, **options: sim.batch_stepper(*given, count=2, **options)):
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0.0, 1.0], name="plant")
        bd.connect(bd.CONSTANT([0.0, 0.0], name="push"), plant.tau)
        stepper = make(bd, ["push"], ["plant.qd"], solver="RK4")
        one = stepper.x.ndim == 1
        u = np.full((2,) if one else (2, 2), 0.5)
        stepper.step(u, Fraction(1, 10))
        t, x = np.copy(stepper.t), stepper.x.copy()
        assert np.all(t == 0.1)
        with pytest.raises(BlockError, match="joint 'upper': moves no inertia" if one else "a block fails .*at t = 7"):
            stepper.reset([0.0] * 4, 7.0)
        np.testing.assert_array_equal(stepper.t, t)
        np.testing.assert_array_equal(stepper.x, x)
        np.testing.assert_allclose(
            stepper.step(u, 0.01), make(bd, ["push"], ["plant.qd"], x=x if one else x[0]).step(u, 0.01), atol=1e-12
        )
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(CstormError, match=r"make another by sim\.\w*stepper"):
                copied(stepper)


@pytest.mark.parametrize("make", [lambda bd: bd.STEP(T=0.5, name="push"), lambda bd: bd.RELAY(name="push")])
def test_what_only_a_run_handles_may_be_given_from_outside(make):
    """Messages said to make it an input, where it was refused again."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    for ask in (steps := sim.stepper, lambda *given: sim.batch_stepper(*given, count=1)):
        bd = sim.blockdiagram()
        x = bd.INTEGRATOR(1.0, name="x")
        push = make(bd)
        if push.nin:
            bd.connect(x, push)
        bd.connect(push, x)
        stepper = ask(bd, ["push"], ["x"])
        given = [2.0] if ask is steps else [[2.0]]
        assert np.ravel(stepper.step(given, 0.25)) == 1.5


def test_what_only_a_run_handles_is_left_out_where_no_output_needs_it():
    """It was refused, where all that it gives comes from outside or goes nowhere; states are those of the plant."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    for ask in (steps := sim.stepper, lambda *given: sim.batch_stepper(*given, count=1)):
        bd = sim.blockdiagram()
        bounded = bd.INTEGRATOR(max=1.0, name="bounded")
        plant, law = bd.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.2], name="plant"), bd.CONTROLLER("acrobot", "energy")
        bd.connect(plant[0:2], law[0:2])
        bd.connect(law.tau, plant.tau, bd.ZOH(bd.clock(0.1), name="held"))
        elbow, relay = bd.INDEX([1]), bd.RELAY(name="relay")
        bd.connect(plant.q, elbow)
        bd.connect(elbow, relay)
        bd.connect(relay, bounded)
        alone = sim.blockdiagram()
        torque = alone.CONSTANT([0.0], name="torque")
        wired = alone.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.2], name="plant")
        alone.connect(torque, wired.tau)
        part, whole = ask(bd, ["plant.tau"], ["plant.q"]), ask(alone, ["torque"], ["plant.q"])
        assert part.states == whole.states
        for x in (None, {"plant.elbow.q": 0.4}, [0.3, 0.1, 0.0, 0.2]):
            np.testing.assert_array_equal(part.reset(x), whole.reset(x))
            for torque in (0.5, -2.0):
                u = [torque] if ask is steps else [[torque]]
                np.testing.assert_allclose(part.step(u, 0.1), whole.step(u, 0.1), rtol=1e-13)
        with pytest.raises(DiagramError, match="'relay' locates events"):
            ask(bd, ["plant.tau"], ["plant.q", "bounded"])


def test_an_input_of_a_block_that_no_output_needs_changes_nothing(tmp_path):
    """NumPy could not put two inputs in the place of one; a unit was a KeyError."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    x, rate, twice = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-1.0, name="rate"), bd.GAIN(2.0, name="twice")
    plant = bd.HYBRIDDYNAMICS("pendulum", name="plant")
    bd.connect(x, rate, twice)
    bd.connect(rate, x)
    bd.connect(twice, plant.tau)
    bd.connect(plant.q, bd.ZOH(bd.clock(0.1), name="held"))
    for inputs, u in ((["plant.tau", "rate"], [7.0, 0.5]), (["rate", "plant.tau"], [0.5, 7.0])):
        stepper = sim.stepper(bd, inputs, ["x", "twice"])
        stepper.reset()
        np.testing.assert_allclose(stepper.step(u, 0.1), [1.05, 2.1], rtol=1e-12)
        path = sim.to_fmu(bd, tmp_path / "it.fmu", inputs, ["x", "twice"], binary=False)
        assert path.exists()


def test_a_block_with_kinks_is_stepped_as_it_is():
    """Its kinks are where a run ends a step, which is all; it was refused, PIDCONTROLLER without any remedy."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    x, push = bd.INTEGRATOR(1.0, name="x"), bd.CONSTANT(0.0, name="push")
    pid, limit = bd.PIDCONTROLLER(P=4.0, I=3.0, low=-0.5, high=0.3), bd.SATURATION(low=-0.4, high=0.2)
    bd.connect(push, pid.reference)
    bd.connect(x, pid.measured)
    bd.connect(pid, limit)
    bd.connect(limit, x)
    stepper = sim.stepper(bd, ["push"], ["x"], substeps=10)
    for _ in range(40):
        (found,) = stepper.step([0.0], 0.1)
    out = sim.run(bd, T=4.0, rtol=1e-10, atol=1e-12, watch=["x"])
    assert len(out.events) >= 2 and found == pytest.approx(np.ravel(out.signal("x"))[-1], abs=1e-5)


def led():
    """Return a diagram of a law, a plant, a motion and a gain."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    plant, law = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.2, 0.3], name="plant"), bd.CONTROLLER("acrobot", "pd", name="law")
    motion, gain = bd.SPLINETRAJECTORY([0.0, 0.0, 1.0, 1.0], duration=9.0, name="motion"), bd.GAIN(1.0, name="gain")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    bd.connect(motion[0], gain)
    return sim, bd


def other_numbers(bd):
    mech = cs.library.acrobot().with_gravity((0.0, -3.0, 0.0))
    for name, number, value in (
        ("gain", "K", 2.0), ("law", "pd.kp", 7.0), ("plant", "mech", mech), ("plant", "q0", [0.4, -0.2]),
        ("motion", "speed", 3.0),
    ):  # fmt: skip
        block = bd.blocknames[name]
        block.set_param(number, value) if "." in number else setattr(block, number, value)


def test_numbers_that_are_set_later_are_taken_up_where_it_is_reset():
    """They changed nothing, whatever was set, and went unchecked."""
    sim, bd = led()
    one, many = (
        sim.stepper(bd, outputs=["plant.q", "gain"]),
        sim.batch_stepper(bd, outputs=["plant.q", "gain"], count=3),
    )
    one.step([], 0.1)
    before, at = one.x, one.t
    other_numbers(bd)
    one.reset(before, at)
    assert one.t == at and np.array_equal(one.x, before)
    out = sim.run(bd, T=0.5, dt=0.1, solver="RK4", watch=["plant.q", "gain"])
    expected = np.column_stack([out.signal("plant.q"), out.signal("gain")])
    np.testing.assert_allclose(one.reset(), expected[0], atol=1e-15)
    np.testing.assert_allclose(many.reset(), np.tile(expected[0], (3, 1)), atol=1e-15)
    for row in expected[1:]:
        np.testing.assert_allclose(one.step([], 0.1), row, atol=1e-13)
        np.testing.assert_allclose(many.step(np.zeros((3, 0)), 0.1), np.tile(row, (3, 1)), atol=1e-13)


@pytest.mark.parametrize(
    "value, says", [(np.nan, "GAIN 'gain': K: expected a number"), ([1.0, 2.0], "of another form")]
)
def test_a_number_that_is_refused_leaves_a_stepper_as_it_was(value, says):
    sim, bd = led()
    one, many = sim.stepper(bd, outputs=["gain"]), sim.batch_stepper(bd, outputs=["gain"], count=1)
    for stepper, u in ((one, []), (many, np.zeros((1, 0)))):
        bd.blocknames["gain"].K = value
        bd.blocknames["law"].set_param("pd.kp", 70.0)
        expected = stepper.step(u, 0.1)
        x, t = stepper.x.copy(), stepper.t
        with pytest.raises(CstormError, match=says):
            stepper.reset()
        np.testing.assert_array_equal(stepper.x, x)
        assert stepper.t == t
        bd.blocknames["gain"].K = 1.0
        bd.blocknames["law"].set_param("pd.kp", 20.0)
        stepper.reset()
        np.testing.assert_array_equal(stepper.step(u, 0.1), expected)


def both_steppers(sim, bd, inputs, outputs, **options):
    """Return a stepper and one of copies side by side."""
    return sim.stepper(bd, inputs, outputs, **options), sim.batch_stepper(bd, inputs, outputs, count=3, **options)


def test_a_reset_takes_what_a_run_starts_at(tmp_path):
    """It refused a state that a run had saved, its file and the run itself, which `sim.stepper` took."""
    sim, bd = led()
    out = sim.run(bd, T=0.7)
    on = sim.run(bd, T=0.3, start=out, solver="RK4", dt=0.1, watch=["plant.q", "motion.q"])
    expected = np.column_stack([on.signal("plant.q"), on.signal("motion.q")])
    out.state.save(tmp_path / "here.json")
    for start in (out, out.state, tmp_path / "here.json", str(tmp_path / "here.json")):
        one, many = both_steppers(sim, bd, (), ["plant.q", "motion.q"])
        np.testing.assert_array_equal(one.reset(start), expected[0])
        assert one.t == 0.7 and np.array_equal(one.x, out.x[-1])
        np.testing.assert_array_equal(
            many.reset(start, where=[True, False, True]), [expected[0], many.look()[1], expected[0]]
        )
        np.testing.assert_array_equal(many.t, [0.7, 0.0, 0.7])
        for row in expected[1:]:
            np.testing.assert_allclose(one.step([], 0.1), row, atol=1e-13)
            np.testing.assert_allclose(many.step(np.zeros((3, 0)), 0.1)[::2], [row, row], atol=1e-13)
        one.reset(start, 0.2)
        assert one.t == 0.2
        assert one.reset()[0] == -1.2 and one.t == 0.0
    np.testing.assert_allclose(many.reset({"plant": [0.1, 0.2, 0.3, 0.4]})[:, :2], [[0.1, 0.2]] * 3)


def test_a_saved_state_that_is_refused_leaves_a_stepper_as_it_was():
    """Of a push, for which a stepper has no place, nothing stays in the block."""
    sim, bd = led()
    plant = bd.blocknames["plant"]
    pushed = sim.run(bd, T=0.2, at={0.1: lambda: plant.push("forearm", [1.0, 2.0, 0.0])}).state
    other = sim.run(pushed_four_bar(sim.blockdiagram()), T=0.1).state
    for stepper in both_steppers(sim, bd, (), ["plant.q"]):
        y, x, t = stepper.reset(), stepper.x, np.copy(stepper.t)
        for state, says in ((pushed, "of another form"), (other, "has 4 states, the saved state 6")):
            with pytest.raises(CstormError, match=says):
                stepper.reset(state)
            np.testing.assert_array_equal(stepper.x, x)
            np.testing.assert_array_equal(stepper.t, t)
        np.testing.assert_array_equal(stepper.reset(), y)


def test_a_reset_sees_the_inputs_as_they_are_wired_there():
    """Its outputs were those of the torque that the law gave where the stepper was made."""
    sim, bd = led()
    gain = bd.GAIN(3.0, name="thrice")
    bd.connect(bd.blocknames["law"].tau, gain)
    start = [-0.7, 0.9, 0.2, -0.4]
    for stepper in both_steppers(sim, bd, ["plant.tau", "thrice"], ["thrice", "law.tau"]):
        for x in (start, {"plant": start}, None):
            run = sim.run(bd, T=0.01, start=x, watch=["thrice", "law.tau"])
            expected = [run.signal("thrice")[0, 0], run.signal("law.tau")[0, 0]]
            np.testing.assert_allclose(
                np.atleast_2d(stepper.reset(x)), [expected] * len(np.atleast_1d(stepper.t)), rtol=1e-14
            )


def test_inputs_that_follow_from_one_another_are_all_as_wired():
    """A constant that had been set since, and what follows from it, were as when the stepper was made."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    a, b, late = bd.CONSTANT(2.0, name="a"), bd.GAIN(3.0, name="b"), bd.STEP(T=0.5, name="late")
    c, y, x = bd.SUM("+++", name="c"), bd.GAIN(10.0, name="y"), bd.INTEGRATOR(1.0, name="x")
    bd.connect(a, b)
    for k, block in enumerate((b, late, x)):
        bd.connect(block, c[k])
    bd.connect(c, y, x)
    for inputs in (["a", "b", "c", "late"], ["c", "b", "late", "a"], ["late", "b", "a"]):
        a.value = 2.0
        for stepper in both_steppers(sim, bd, inputs, ["y"]):
            for value in (2.0, -1.5):
                a.value = value
                for t, jumped in ((0.0, 0.0), (0.75, 1.0)):
                    expected = 10.0 * (3.0 * value + jumped + 4.0)
                    np.testing.assert_allclose(np.ravel(stepper.reset([4.0], t)), expected, rtol=1e-15)
