"""Laws of a user's own: equal results in both engines, traced where that can be, and derivatives."""

from __future__ import annotations

import random

import numpy as np
import pytest
from bdsim.components import ContinuousBlock
from own_laws import ACROBOT, LAWS, Counting, Gains, OnlyPythonWithGains, Switching, damped, placed, ways
from test_compiled import simulation

import cstormpy as cs
from cstormpy.control import Law
from cstormpy.control.user_laws import OwnLaw
from cstormpy.errors import DiagramError, UnknownName
from cstormpy.mechanism import arms


def controlled(sim, law):
    bd = sim.blockdiagram("own")
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.1], name="plant")
    controller = bd.CONTROLLER(ACROBOT, {"mine": law}, name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return bd


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", LAWS)
def test_a_law_of_ones_own_runs_in_both_engines(name):
    make, way = LAWS[name]
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = controlled(sim, make())
        found.append(sim.run(bd, T=1.0, solver="RK45"))
    np.testing.assert_allclose(found[1].t, found[0].t, atol=1e-9)
    np.testing.assert_allclose(found[1].x, found[0].x, atol=1e-8)
    assert way in sim.explain(bd)


def test_a_law_that_branches_follows_what_is_wired_to_it():
    """Compiled, it was asked without: its torque was that of no reference."""

    class Following(Law):
        def torque(self, t, q, qd, reference=None):
            goal = 0.0 if reference is None else reference[0][1]
            return 3.0 * (goal - q[1]) if q[0] != 0.0 else 0.0

    ends = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram("own")
        plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.1], name="plant")
        controller = bd.CONTROLLER(ACROBOT, Following(ACROBOT), reference=True, name="controller")
        bd.connect(plant[0:2], controller[0:2])
        for port, value in ((2, [0.0, 0.8]), (3, [0.0, 0.0]), (4, [0.0, 0.0])):
            bd.connect(bd.CONSTANT(np.array(value)), controller[port])
        bd.connect(controller.tau, plant.tau)
        ends.append(sim.run(bd, T=0.5).x[-1])
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-8)


class Rounding(ContinuousBlock):
    """A lag that only Python can compute."""

    def __init__(self, lag, **blockargs):
        super().__init__(nin=1, nout=1, nstates=1, **blockargs)
        self.lag, self._x0 = lag, np.zeros(1)

    def output(self, t, u, x):
        return [x.copy()]

    def deriv(self, t, u, x):
        return np.array([(float(f"{u[0][0]:.16e}") - x[0]) / self.lag])


@pytest.mark.parametrize(
    "law", [Counting, pytest.param(OnlyPythonWithGains, marks=pytest.mark.slow)], ids=["by numba", "in Python"]
)
def test_a_gradient_reaches_what_cannot_be_traced(law):
    """Numbers that such a law or block holds were said to be read by nothing; differences of runs are the witness."""

    def lagging(kd=2.0, lag=0.1):
        sim, mine = simulation("compiled"), law()
        mine.kd = kd
        bd = sim.blockdiagram("own")
        plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.1], name="plant")
        controller = bd.CONTROLLER(ACROBOT, {"mine": mine}, name="controller")
        block = placed(bd, Rounding(lag, name="lag"))
        bd.connect(plant[0:2], controller[0:2])
        bd.connect(controller.tau, block)
        bd.connect(block, plant.tau)
        return sim, bd

    def end(**changed):
        sim, bd = lagging(**changed)
        return sim.run(bd, T=0.2, rtol=1e-10, atol=1e-11).x[-1][:2]

    sim, bd = lagging()
    found = sim.gradient(bd, "plant.q", ["controller.mine.kd", "lag.lag"], T=0.2, rtol=1e-9, atol=1e-10)
    for k, (name, value) in enumerate({"kd": 2.0, "lag": 0.1}.items()):
        slope = (end(**{name: value + 1e-4}) - end(**{name: value - 1e-4})) / 2e-4
        np.testing.assert_allclose(np.asarray(found.gradient)[..., k], slope, rtol=1e-5, atol=1e-7)
    assert {block for block, _ in found.differenced} == {"controller", "lag"}


def test_a_table_of_a_block_that_is_asked_in_python_is_no_number_of_the_program():
    """Its numbers were arguments of the call: a table of 20000 took minutes to compile."""
    sim = simulation("compiled")
    bd = sim.blockdiagram("table")
    block = placed(bd, Rounding(0.3, name="lag"))
    block.table = np.linspace(0.0, 1.0, 20000)
    bd.connect(bd.CONSTANT([1.0]), block)
    sim.run(bd, T=0.1)
    assert bd.__dict__["_compiled_form"].program.p.size < 100


def test_a_whole_number_is_no_gain_and_is_told_so():
    class Whole:
        def __init__(self):
            self.kd = 2

        def torque(self, t, q, qd):
            return -self.kd * qd[1]

    sim = simulation("compiled")
    with pytest.raises(cs.InvalidType, match=r"'controller.mine.kd' is a whole number, .*write 2.0 instead of 2"):
        sim.gradient(controlled(sim, Whole()), "plant.q", ["controller.mine.kd"], T=0.1)


def test_a_controller_with_one_law_is_stepped_from_outside():
    """It was refused for the events of a choice between laws, of which there is no other."""
    stepper = simulation("compiled").stepper(controlled(simulation("compiled"), damped), outputs=["plant.q"])
    assert np.isfinite(stepper.step(np.zeros(0), 0.01)).all()


def test_a_switching_law_of_ones_own_is_located_by_the_engine():
    """Its margin is a guard of the program, its phase one of the numbers: one program serves the whole run."""
    outs = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = controlled(sim, Switching(ACROBOT))
        outs.append(sim.run(bd, T=3.0, rtol=1e-10, atol=1e-12))
    interpreted, compiled = outs
    program = bd.__dict__["_compiled_form"].program
    assert program.guards is not None and any(whole for *_, whole in program.guards)
    assert any("output: traced" in way for _, way in program.ways)
    assert len(interpreted[".events"]) >= 3
    times = [[t for t, _ in out[".events"]] for out in outs]
    np.testing.assert_allclose(*times, rtol=0, atol=1e-9)
    np.testing.assert_allclose(compiled.x[-1], interpreted.x[-1], rtol=0, atol=1e-8)
    bd.blocknames["controller"].set_param("mine.push", 2.0)
    sim.run(bd, T=3.0)
    assert bd.__dict__["_compiled_form"].program is program


def test_gains_of_a_class_are_tuned_without_another_trace():
    """A number that changes is read anew; the run is that of the interpreted engine."""
    law = Gains()
    sim = simulation("compiled")
    bd = controlled(sim, law)
    first = sim.run(bd, T=0.5)
    program = bd.__dict__["_compiled_form"].program
    bd.blocknames["controller"].set_param("mine.kp", 9.0)
    second = sim.run(bd, T=0.5)
    assert bd.__dict__["_compiled_form"].program is program
    assert law.kp == 9.0 and abs(first.x[-1] - second.x[-1]).max() > 1e-3
    other = simulation("interpreted")
    np.testing.assert_allclose(second.x[-1], other.run(controlled(other, Gains(9.0)), T=0.5).x[-1], atol=1e-8)


class Pulling(Law):
    """A subclass of `Law` that names no gains: the arguments that it keeps are its gains."""

    def __init__(self, mech, kp=4.0, kd=(1.0, 2.0), steps=3, limit=None):
        super().__init__(mech, limit=limit)
        self.kp, self.kd, self.steps = kp, np.array(kd), steps
        self.found = 2.0

    def torque(self, t, q, qd, reference=None):
        return -self.kp * np.sin(q[1]) - self.kd @ qd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_the_arguments_that_a_law_keeps_are_its_gains(engine):
    """The law of CONTRIBUTING's recipe had none, whatever the recipe said."""
    sim, law = simulation(engine), Pulling(ACROBOT, limit=50.0)
    bd = controlled(sim, law)
    assert list(law.gains) == ["kp", "kd"] and repr(law) == "Pulling(kp=4, kd=[1.0, 2.0], limit=50)"
    names = ["controller.mine.kp", "controller.mine.kd[1]"]
    run = {"T": 0.5, "solver": "RK4", "dt": 0.01}
    exact = sim.gradient(bd, "plant.elbow.q", names, **run).gradient

    def end(kp, kd):
        other = simulation("interpreted")
        return other.run(controlled(other, Pulling(ACROBOT, kp, (1.0, kd), limit=50.0)), **run).x[-1, 1]

    h = 1e-5
    slopes = [(end(4.0 + h, 2.0) - end(4.0 - h, 2.0)) / (2 * h), (end(4.0, 2.0 + h) - end(4.0, 2.0 - h)) / (2 * h)]
    np.testing.assert_allclose(exact, slopes, rtol=1e-6)
    bd.blocknames["controller"].set_param("mine.kp", 9.0)
    bd.blocknames["controller"].set_param("mine.kd", [1.0, 3.0])
    assert sim.run(bd, **run).x[-1, 1] == pytest.approx(end(9.0, 3.0), abs=1e-9)
    with pytest.raises(UnknownName, match=r"gain 'kpp' does not exist; did you mean 'kp'"):
        law.set_gain("kpp", 1.0)


def test_a_law_that_changes_otherwise_is_traced_anew():
    """A flag that shapes what is written down."""

    class Flagged:
        sign = 1

        def __init__(self):
            self.turned = False

        def torque(self, t, q, qd):
            return (2.0 if self.turned else -2.0) * qd[1]

    law = Flagged()
    sim = simulation("compiled")
    bd = controlled(sim, law)
    first = sim.run(bd, T=0.3)
    law.turned = True
    assert abs(sim.run(bd, T=0.3).x[-1] - first.x[-1]).max() > 1e-3


def test_gradients_go_through_a_traced_law_exactly():
    sim = simulation("compiled")
    bd = controlled(sim, Gains())
    gradient = sim.gradient(bd, lambda out: float(out.x[-1, 0]), ["controller.mine.kp"], T=0.5)
    values = []
    for kp in (4.0 - 1e-4, 4.0 + 1e-4):
        bd = controlled(sim, Gains(kp))
        values.append(sim.run(bd, T=0.5, rtol=1e-11, atol=1e-12).x[-1, 0])
    found = float(np.ravel(getattr(gradient, "gradient", gradient))[0])
    assert found == pytest.approx((values[1] - values[0]) / 2e-4, rel=1e-4)


def test_a_list_that_a_law_fills_is_not_frozen():
    """A law that remembers in a list had symbols put into it, and was frozen without a word."""

    class Remembering:
        def __init__(self):
            self.seen = [0.0]

        def torque(self, t, q, qd):
            self.seen.append(qd[1])
            return -1.0 * qd[1] + 1e-3 * len(self.seen)

    law = Remembering()
    sim = cs.Simulation(live=False, progress=False)
    bd = controlled(sim, law)
    sim.run(bd, T=0.02, solver="RK4", dt=0.01)
    assert all(isinstance(x, float) for x in law.seen) and len(law.seen) > 3


def test_gains_in_a_list_are_tuned_without_another_trace():
    """They were constants, and what was written into the list later was not seen."""

    class Listed:
        def __init__(self):
            self.gains = [2.0, 1.0]

        def torque(self, t, q, qd):
            return -self.gains[0] * qd[1] - self.gains[1] * q[1]

    law = Listed()
    sim = simulation("compiled")
    bd = controlled(sim, law)
    first = sim.run(bd, T=0.5)
    program = bd.__dict__["_compiled_form"].program
    law.gains[1] = 8.0
    second = sim.run(bd, T=0.5)
    assert bd.__dict__["_compiled_form"].program is program
    assert abs(first.x[-1] - second.x[-1]).max() > 1e-3


def test_a_law_that_gives_another_value_each_time_is_not_frozen():
    """A trace would keep the number that the generator gave while it was written down."""
    rng = random.Random(3)

    class Noisy:
        def torque(self, t, q, qd):
            return rng.random()

    sim = simulation("compiled")
    with pytest.raises(DiagramError, match=r"reads .rng., a random generator"):
        sim.run(controlled(sim, Noisy()), T=0.02, solver="RK4", dt=0.01)
    first, last = sim.explain(controlled(sim, Noisy())).splitlines()
    assert first.startswith("controller  interpreted: ")
    assert "random generator" in first
    assert "all blocks are interpreted" in last
    sim = cs.Simulation(live=False, progress=False)
    assert len(sim.run(controlled(sim, Noisy()), T=0.02, solver="RK4", dt=0.01).t) == 3


def test_a_law_that_counts_is_not_frozen():
    class Counting:
        def __init__(self):
            self.calls = 0

        def torque(self, t, q, qd):
            self.calls += 1
            return -1.0 * qd[1]

    law = Counting()
    sim = simulation("compiled")
    bd = controlled(sim, law)
    sim.run(bd, T=0.02, solver="RK4", dt=0.01)
    assert any("changes 'calls' of its Counting" in way for way in ways(bd)) and law.calls > 3


def test_a_law_that_is_no_law_is_refused_by_name():
    from cstormpy.errors import InvalidType

    sim = cs.Simulation(live=False)
    with pytest.raises(InvalidType, match="laws: expected laws by name"):
        sim.blockdiagram().CONTROLLER(ACROBOT, 3.0)


def test_an_object_without_torque_is_told_what_a_law_has():
    class Own:
        def control(self, t, q, qd):
            return 0.0

    bd = cs.Simulation(live=False).blockdiagram()
    for laws in (Own(), {"own": Own()}):
        with pytest.raises(cs.InvalidType, match=r"got an Own; write a class with the method torque, derived from"):
            bd.CONTROLLER("acrobot", laws)


def test_a_law_that_takes_something_else_is_refused_when_it_is_wired():
    class Holding:
        def torque(self, q, qd):
            return -q[0] - qd[0]

    bd = cs.Simulation().blockdiagram()
    for law in (lambda q: -q[0], Holding()):
        with pytest.raises(cs.InvalidType, match=r"law (<lambda>\(q\)|Holding.torque\(self, q, qd\)): must take"):
            bd.CONTROLLER("acrobot", law)
    with pytest.raises(cs.InvalidType, match=r"must take \(t, q, qd\), .*; in this order"):
        bd.CONTROLLER("acrobot", lambda q, qd, t: -q[0])


@pytest.mark.parametrize(
    "torque",
    [
        lambda self, q, qd: -q[1],
        lambda t, q, qd: -q[1],
        lambda t, q, qd, reference=None: -q[1],
        lambda self, t, q, qd: -q[1],
        lambda self, t, q, qd, reference, gain: -q[1],
        lambda self, q, qd, t, reference=None: -q[1],
    ],
)
def test_a_class_of_laws_whose_torque_takes_something_else_is_refused_when_it_is_wired(torque):
    """Python counted arguments when the run began; those in another order were taken for each other in silence."""
    bd = cs.Simulation().blockdiagram()
    law = type("Own", (Law,), {"torque": torque})("acrobot")
    with pytest.raises(cs.InvalidType, match=r"must take \(self, t, q, qd, reference=None\), the time, positions"):
        bd.CONTROLLER("acrobot", law)


def test_torques_of_active_joints_are_asked_for_by_name():
    """The law was told to give two torques, of which its block passes on one."""
    led = ACROBOT.with_drive(actuated=["shoulder", "elbow"], active=["elbow"])
    law = OwnLaw(led, lambda t, q, qd: [1.0])
    with pytest.raises(cs.ShapeError, match=r"\(for shoulder, elbow\): expected shape \(2,\), .*; those of the active"):
        law(0.0, np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_reference_that_is_a_function_returns_three_of_one_width(engine):
    """One of the posture alone ended in "not enough values to unpack (expected 3, got 2)"."""
    arm, sim = cs.library.planar_2r(), simulation(engine)

    def following(reference):
        return cs.control.ComputedTorque(arm, kp=40.0, kd=10.0, reference=reference)

    def ran(reference):
        bd = sim.blockdiagram()
        plant, law = bd.HYBRIDDYNAMICS(arm, name="plant"), bd.CONTROLLER(arm, following(reference))
        bd.connect(plant[0:2], law[0:2])
        bd.connect(law.tau, plant.tau)
        return sim.run(bd, T=0.2).x[-1]

    for wrong in (
        lambda t: np.array([t, t]),
        lambda t: None,
        lambda t: (t, 1.0, 0.0),
        lambda t: ([t, t], [1.0], [0.0]),
    ):
        with pytest.raises(
            cs.CstormError, match=r"ComputedTorque, reference: expected that the function returns .*\(q, qd"
        ):
            ran(wrong)
        with pytest.raises(cs.InvalidType, match="ComputedTorque, reference"):
            following(wrong).torque(0.0, np.zeros(2), np.zeros(2))
    arrays = ran(lambda t: (np.array([t, t]), np.ones(2), np.zeros(2)))
    for same in (lambda t: ([t, t], [1.0, 1.0], [0.0, 0.0]), lambda t: (np.array([t, t]), 1.0, 0.0)):
        np.testing.assert_array_equal(ran(same), arrays)
    with pytest.raises(cs.ShapeError, match=r"expected 2 numbers \(shoulder, elbow\), got 3$"):  # it said so twice
        following([1.0, 2.0, 3.0])


def test_a_law_without_a_return_is_told_so():
    def forgetful(t, q, qd):
        -2.0 * qd[1]

    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    plant, law = bd.HYBRIDDYNAMICS("acrobot"), bd.CONTROLLER("acrobot", forgetful)
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    with pytest.raises(cs.CstormError, match=r"forgetful\(\) \(for elbow\): returned None; end it with 'return'"):
        sim.run(bd, T=0.1)


@pytest.mark.slow
def test_a_plant_too_large_to_be_written_down_calls_its_kernels_and_keeps_exact_derivatives():
    """Its dynamics and energies were calls in generated source; their derivatives stay exact, as calls of a graph."""
    mech, n = arms.chain(16), 16
    start, found = np.linspace(-0.3, 0.4, n), []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram("large")
        plant, energy = bd.HYBRIDDYNAMICS(mech, q0=start, name="plant"), bd.ENERGY(mech, name="energy")
        bd.connect(bd.CONSTANT(np.linspace(1.0, 2.0, n), name="torque"), plant.tau)
        bd.connect(plant[0:2], energy[0:2])
        for port in range(3):
            bd.connect(energy[port], bd.NULL())
        out = sim.run(bd, T=0.02, solver="RK4", dt=0.002, watch=["energy.total"])
        found.append(np.column_stack([out.x, out.signal("energy.total")]))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)
    assert "deriv: traced; kernels with loops are called for its large mechanism" in ways(bd)
    model = sim.linearize(bd, inputs=["torque"], outputs=["energy[0]", "energy[1]"])
    exact = mech.hybrid_sensitivity(start, np.zeros(n), np.linspace(1.0, 2.0, n))
    assert model.differenced == ()
    np.testing.assert_allclose(model.A[n:, :n], exact.dy_dq, rtol=0, atol=1e-12 * abs(exact.dy_dq).max())
    np.testing.assert_allclose(model.B[n:], exact.dy_du, rtol=0, atol=1e-12 * abs(exact.dy_du).max())
    slopes = mech.inertial(start, np.zeros(n))
    np.testing.assert_allclose(model.C[1, :n], slopes.potential_by_q, rtol=0, atol=1e-12 * abs(model.C).max())
