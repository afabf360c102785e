"""Drives that change during a run: joints locked, released and driven, and what the others feel of it."""

import numpy as np
import pytest
from closeness import assert_close, central_difference
from random_mechanisms import random_mechanism, random_state
from scipy.integrate import solve_ivp

import cstormpy as cs
from cstormpy.errors import DiagramError
from cstormpy.linkage.components import find
from cstormpy.loops.locking import locked_tangents
from cstormpy.mechanism.component_values import component_value, with_components

ENGINES = ("interpreted", "compiled")
ACROBOT = cs.library.acrobot(parameters="rods")
THREE = {"free": {}, "held": {"locked": ["elbow"]}, "led": {"active": ["elbow"]}}
TIGHT = {"solver": "DOP853", "rtol": 1e-9, "atol": 1e-11}


def quiet(engine="compiled"):
    return cs.Simulation(engine=engine, live=False, graphics=False, progress=False)


def stitched(x, *parts):
    """Return the state behind several runs, each (mechanism, u, duration), without any of our runners."""
    for mech, u, T in parts:
        n = mech.n

        def rate(t, x, mech=mech, u=u, n=n):
            return np.concatenate([x[n:], mech.hybrid_dynamics(x[:n], x[n:], u).qdd])

        x = solve_ivp(rate, (0, T), x, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return x


def stopped(x):
    """Return the state of the acrobot with its elbow stopped: the angular momentum about the shoulder stays."""
    M = ACROBOT.mass_matrix(x[:2])
    return np.array([x[0], x[1], (M[0] @ x[2:]) / M[0, 0], 0.0])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_through_three_drives_is_three_runs_stitched_by_hand(engine):
    """Free, then locked by a brake, then led by an acceleration; the effort's torques are those of motor and brake."""
    sim = quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.5], drives=THREE, name="plant")
    effort = bd.JOINTEFFORT(ACROBOT, drives=THREE, name="effort")
    assert plant._inport_names == ["tau", "acc"] and effort._inport_names == ["q", "qd", "tau", "acc", "select"]
    bd.connect(bd.CONSTANT(0.5), plant.tau, effort.tau)
    bd.connect(bd.CONSTANT(2.0), plant.acc, effort.acc)
    bd.connect(plant[0:2], effort[0:2])
    bd.connect(plant.drive, effort.select)
    when = {0.7: lambda: plant.select("held"), 1.2: lambda: plant.select("led")}
    out = sim.run(bd, T=2.0, at=when, watch=["plant", "effort"], **TIGHT)
    before = stitched(np.array([0.3, 0.5, 0, 0]), (ACROBOT, [0, 0.5], 0.7))
    led = ACROBOT.with_drive(active=["elbow"])
    held = stitched(stopped(before), (led, [0, 0], 0.5))
    np.testing.assert_allclose(out.x[-1], stitched(held, (led, [0, 2.0], 0.8)), atol=1e-8)
    at = np.flatnonzero(out.t == 0.7)
    np.testing.assert_allclose(out.x[at[0]], before, atol=1e-9)
    np.testing.assert_allclose(out.x[at[-1]], stopped(before), atol=1e-9)
    lost = (
        ACROBOT.energy(out.x[at[0], :2], out.x[at[0], 2:])[0] - ACROBOT.energy(out.x[at[-1], :2], out.x[at[-1], 2:])[0]
    )
    change = out.x[at[-1], 2:] - out.x[at[0], 2:]
    assert lost > 1e-3
    np.testing.assert_allclose(lost, 0.5 * change @ ACROBOT.mass_matrix(before[:2]) @ change, rtol=1e-9)
    for k in np.flatnonzero((out.t > 0.7) & (out.t < 1.2)):
        assert out.x[k, 3] == 0.0 and out.x[k, 1] == out.x[at[-1], 1]
        brake = led.hybrid_dynamics(out.x[k, :2], out.x[k, 2:], [0, 0]).tau
        np.testing.assert_allclose(out.signal("effort.torque")[k], brake, atol=1e-9)
    np.testing.assert_array_equal(np.unique(out.signal("plant.drive")), [0, 1, 2])


class Catch(cs.control.Law):
    """Pushes, until the elbow bends inwards; from then on it asks for the brake by its phase."""

    modes = ("push", "hold")

    def start(self, t, q, qd):
        """Begin by pushing."""
        self.mode = 0

    def torque(self, t, q, qd, reference=None):
        """Return the torque of the elbow."""
        return np.array([0.4 if self.mode == 0 else 0.0])

    def margin(self, t, q, qd):
        """Return how far the elbow is from 0.2 rad."""
        return q[1] - 0.2 if self.mode == 0 else None

    def switch(self, t, q, qd):
        """Hold."""
        self.mode = 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_law_locks_a_joint_by_its_phase(engine):
    """Its phase passes into the port `select`, so that the lock comes with the law's own event."""
    sim = quiet(engine)
    bd = sim.blockdiagram()
    drives = {"free": {}, "held": {"locked": ["elbow"]}}
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.5], drives=drives, select=True, name="plant")
    law = bd.CONTROLLER(ACROBOT, Catch(ACROBOT), name="law")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    bd.connect(law.phase, plant.select)
    out = sim.run(bd, T=2.0, watch=["plant"], **TIGHT)
    when = [t for t, name in out.events if name == "plant"]
    assert len(when) == 1 and 0.1 < when[0] < 1.5
    np.testing.assert_allclose(out.x[-1, 1], 0.2, atol=1e-9)
    before = stitched(np.array([0.3, 0.5, 0, 0]), (ACROBOT, [0, 0.4], when[0]))
    led = ACROBOT.with_drive(active=["elbow"])
    np.testing.assert_allclose(out.x[-1], stitched(stopped(before), (led, [0, 0], 2.0 - when[0])), atol=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_signal_that_chooses_another_drive_from_the_start_has_it_at_once(engine):
    sim = quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(ACROBOT, qd0=[0.0, 1.0], drives=THREE, select=True, name="plant")
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    bd.connect(bd.CONSTANT(0.0), plant.acc)
    bd.connect(bd.CONSTANT(1.0), plant.select)
    out = sim.run(bd, T=0.5, watch=["plant"])
    assert out.events == [(0.0, "plant")]
    np.testing.assert_allclose(out.x[1], stopped(np.array([0, 0, 0, 1.0])), atol=1e-12)
    np.testing.assert_array_equal(out.x[1:, 1], 0.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_of_a_free_body_that_lock_keep_its_momentum(engine):
    """Two bodies on a ball in space: what the brake does to the one it does to the other; energy falls."""
    links = [
        cs.Link("hull", None, cs.Free(name="hull"), mass=2.0, com=(0.1, 0.2, 0), inertia=np.diag([1.0, 2.0, 2.5])),
        cs.Link("arm", "hull", cs.Spherical(name="hip"), mass=1.0, com=(0.5, 0, 0.1), inertia=np.diag([0.1, 0.2, 0.2])),
    ]
    mech, sim = cs.Mechanism(links, gravity=(0, 0, 0), actuated=[]), quiet(engine)
    bd = sim.blockdiagram()
    rates = [0.1, 0.2, 0, 0.3, -1, 0.4, 0.5, 2.0, -1.0]
    plant = bd.HYBRIDDYNAMICS(mech, qd0=rates, drives={"open": {}, "shut": {"locked": ["hip"]}}, name="plant")
    assert plant.nin == 0
    out = sim.run(bd, T=3.0, at={0.6: lambda: plant.select("shut"), 2.5: lambda: plant.select("open")}, **TIGHT)
    found = mech.inertial(out.x[:, :9], out.x[:, 9:])
    np.testing.assert_allclose(found.momentum, np.tile(found.momentum[0], (len(out.t), 1)), atol=1e-8)
    shut = (out.t > 0.6) & (out.t < 2.5)
    np.testing.assert_array_equal(out.x[shut][:, 15:], 0.0)
    assert np.ptp(out.x[shut][:, 6:9], axis=0).max() == 0.0
    kinetic = found.kinetic
    np.testing.assert_allclose(kinetic[out.t > 0.6], kinetic[-1], rtol=1e-8)
    np.testing.assert_allclose(kinetic[out.t < 0.6], kinetic[0], rtol=1e-8)
    assert kinetic[0] - kinetic[-1] > 0.1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_goes_on_remembers_its_drive(engine):
    """Two halves are the whole, where the second begins with the elbow locked."""
    sim = quiet(engine)

    def diagram():
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.5], drives=THREE, name="plant")
        bd.connect(bd.CONSTANT(0.5), plant.tau)
        bd.connect(bd.CONSTANT(2.0), plant.acc)
        return bd, {0.3: lambda: plant.select("held"), 0.9: lambda: plant.select(2)}

    bd, when = diagram()
    whole = sim.run(bd, T=1.2, at=when, **TIGHT)
    bd, when = diagram()
    first = sim.run(bd, T=0.6, at={0.3: when[0.3]}, **TIGHT)
    second = sim.run(bd, T=0.6, start=first.state, at={0.9: when[0.9]}, **TIGHT)
    np.testing.assert_allclose(second.x[-1], whole.x[-1], atol=1e-9)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_drive_that_is_selected_before_a_run_goes_on_is_that_of_the_rest(engine, elsewhere):
    """The state that was gone on from brought the old one back; the elbow, which moves, stops by an impulse."""
    sim = quiet(engine)

    def made():
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.5], drives=THREE, name="plant")
        bd.connect(bd.CONSTANT(0.5), plant.tau)
        bd.connect(bd.CONSTANT(2.0), plant.acc)
        return bd, plant

    bd, plant = made()
    whole = sim.run(bd, T=1.2, at={0.6: lambda: plant.select("held")}, **TIGHT)
    first = sim.run(bd, T=0.6, **TIGHT)
    if elsewhere:  # as in another process, whose diagram has not run yet
        bd, plant = made()
    plant.select("held")
    second = sim.run(bd, T=0.6, start=first.state, watch=["plant.drive"], **TIGHT)
    np.testing.assert_allclose(second.x[-1], whole.x[-1], atol=1e-9)
    assert second.signal("plant.drive")[-1] == 1.0 and np.abs(first.x[-1, 3]) > 0.1 and second.x[-1, 3] == 0.0


def test_rates_behind_a_lock_keep_the_momenta_of_the_others():
    """Of random trees with balls: the impulses act in the locked joints alone, and these stand still."""
    rng = np.random.default_rng(5)
    for kinds in (("revolute", "prismatic"), ("spherical", "revolute"), ("free", "spherical", "revolute")):
        mech = random_mechanism(rng, 4, kinds)
        q, qd, _ = random_state(rng, mech, 3)
        joints = [link.joint_name for link in mech.links if link.joint.dof][::2]
        after, impulse = mech.lock(q, qd, joints)
        held = np.zeros(mech.n, dtype=bool)
        held[[k for name in joints for k in mech.joint_indices(name)]] = True
        np.testing.assert_array_equal(after[:, held], 0.0)
        change = np.einsum("sij,sj->si", mech.mass_matrix(q), after - qd)
        assert_close(change, impulse, 1e-11)
        np.testing.assert_array_equal(impulse[:, ~held], 0.0)
        assert_close(mech.lock(q[1], qd[1], joints)[0], after[1], 1e-13)


def test_a_lock_in_a_loop_keeps_it_closed():
    """A five-bar of which one joint is stopped: the loop stays closed, and energy falls by that of the lost rates."""
    mech = cs.library.five_bar()
    q, qd = mech.project(np.full(mech.n, 0.4), np.linspace(1.0, -0.5, mech.n))
    name = mech.names[0]
    after, _ = mech.lock(q, qd, [name])
    assert after[0] == 0.0 and np.abs(after).max() > 1e-3
    np.testing.assert_allclose(mech.closure_jacobian(q) @ after, 0.0, atol=1e-10)
    M, change = mech.mass_matrix(q), after - qd
    np.testing.assert_allclose(qd @ M @ qd - after @ M @ after, change @ M @ change, rtol=1e-9)


def test_more_joints_may_be_locked_than_a_loop_leaves_free():
    """Brakes on two joints of a four-bar of one freedom: compiled runs ended there, "in its compiled form only"."""
    mech, sim = cs.library.four_bar(), quiet()
    q, qd = mech.project([1.0, 0.0, 1.5], [2.0, 0.0, 0.0])
    bd = sim.blockdiagram()
    drives = {"free": {}, "held": {"locked": ["crank", "rocker"]}}
    plant = bd.HYBRIDDYNAMICS(mech, q0=q, qd0=qd, drives=drives, select=True, name="plant")
    bd.connect(bd.CONSTANT(1.0), plant.tau)
    bd.connect(bd.PIECEWISE((0, 0), (0.1, 1), (0.2, 0)), plant.select)
    out, u = sim.run(bd, T=0.3, solver="RK4", dt=0.01), [1.0, 0.0, 0.0]
    held = stitched(np.concatenate([q, qd]), (mech, u, 0.1))[: mech.n]
    assert out.t[-1] == 0.3
    with pytest.raises(DiagramError, match=r"on at t = 0\.1: .* differences .* loop pin: .*contradict it"):
        sim.gradient(bd, "plant.q", ["coupler_rod.mass"], T=0.3, solver="RK4", dt=0.01)  # which gave no reason
    assert_close(out.x[-1], stitched(np.concatenate([held, np.zeros(mech.n)]), (mech, u, 0.1)), 1e-6)


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_derivatives_go_through_the_events_that_lock_a_joint(engine):
    """A comparison of the state locks the elbow: when, and how hard, follows every number of the run."""
    sim = quiet(engine)
    bd = sim.blockdiagram()
    drives = {"free": {}, "held": {"locked": ["elbow"]}}
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.5], qd0=[0.1, 0.2], drives=drives, select=True, name="plant")
    tau = bd.CONSTANT(0.5, name="tau")
    shoulder = bd.FUNCTION(lambda q: -0.3 - q[0], name="shoulder")
    below = bd.COMPARE(">", name="below")
    bd.connect(tau, plant.tau)
    bd.connect(plant.q, shoulder)
    bd.connect(shoulder, below)
    bd.connect(below, plant.select)
    names = ["plant.q0", "plant.qd0", "tau.value"]
    found = sim.gradient(bd, "plant.shoulder.q", names, T=1.0, **TIGHT)
    assert {name for _, name in found.events} == {"plant", "below"}

    def end(z):
        plant.q0, plant.qd0, tau.value = z[:2], z[2:4], float(z[4])
        return quiet().run(bd, T=1.0, solver="DOP853", rtol=1e-11, atol=1e-12).x[-1, 0]

    expected = central_difference(lambda z: np.array([end(z)]), found.values, 1e-3)[0]
    np.testing.assert_allclose(found.gradient, expected, atol=2e-7)
    assert abs(expected[0]) > 0.1


def test_bad_drives_are_refused_by_name():
    bd = quiet().blockdiagram()
    for drives, error, message in (
        ({"held": {"lokced": ["elbow"]}}, cs.UnknownName, "drive 'held': key 'lokced'.*locked"),
        ({"held": {"locked": ["elbw"]}}, cs.UnknownName, "elbw.*elbow"),
        ({"held": {"locked": "elbow"}}, cs.InvalidType, "drive 'held': locked"),
        ({"x": {"locked": ["elbow"], "active": ["elbow"]}}, cs.InvalidValue, "drive 'x': joint 'elbow' is both"),
        ({"x": {"active": ["shoulder"]}}, cs.InvalidValue, "joint 'shoulder': is active but not actuated"),
        ([], cs.InvalidType, "drives: expected a dict"),
        ({}, cs.InvalidValue, "drives: there are none"),
    ):
        with pytest.raises(error, match=message):
            bd.HYBRIDDYNAMICS("acrobot", drives=drives)
    with pytest.raises(cs.UnknownName, match=r"drive 'hold'.*held"):
        bd.HYBRIDDYNAMICS("acrobot", drives=THREE, drive="hold")
    with pytest.raises(cs.InvalidValue, match="locking: expected 'impulse' or 'rest'"):
        bd.HYBRIDDYNAMICS("acrobot", drives=THREE, locking="soft")
    with pytest.raises(cs.InvalidValue, match="select: there is one drive"):
        bd.HYBRIDDYNAMICS("acrobot", select=True)
    plant = bd.HYBRIDDYNAMICS("acrobot", drives=THREE)
    with pytest.raises(cs.UnknownName, match=r"drive 'led2'.*led"):
        plant.select("led2")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_joint_that_moves_is_not_locked_where_that_is_refused(engine):
    """With locking='rest', and where a run begins with it: the run says which joint, how fast, and what helps."""
    sim = quiet(engine)
    bd = sim.blockdiagram()
    drives = {"free": {}, "held": {"locked": ["elbow"]}}
    plant = bd.HYBRIDDYNAMICS(ACROBOT, qd0=[0, 1.0], drives=drives, locking="rest", name="plant")
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    out = sim.run(bd, T=1.0, at={0.5: lambda: plant.select("held")}, on_error="return")
    assert out.status == "failed" and "joint 'elbow': is locked by drive 'held' while it moves" in out.message
    plant.select("held")
    with pytest.raises(cs.BlockError, match="t = 0: joint 'elbow': is locked by drive 'held' while it moves at 1;"):
        sim.run(bd, T=1.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_sensitivities_are_those_of_the_present_drive(engine):
    """Free, then locked, then led: the block beside the plant was of one drive for ever."""
    sim = quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[0.3, 0.5], drives=THREE, name="plant")
    slopes = bd.SENSITIVITY(ACROBOT, drives=THREE, parameters=["elbow.damping"], name="slopes")
    bd.connect(bd.CONSTANT(0.5), plant.tau, slopes.tau)
    bd.connect(bd.CONSTANT(2.0), plant.acc, slopes.acc)
    bd.connect(plant[0:2], slopes[0:2])
    bd.connect(plant.drive, slopes.select)
    when = {0.3: lambda: plant.select("held"), 0.5: lambda: plant.select("led")}
    out = sim.run(bd, T=0.7, dt=0.1, at=when, watch=[slopes[0], slopes[2], slopes[3], plant[2]], **TIGHT)
    led = ACROBOT.with_drive(active=["elbow"])
    seen = set()
    for x, dy_dq, dy_du, dy_dp, drive in zip(out.x, *out.data[".ywatch"], strict=True):
        mech, u = ((ACROBOT, [0, 0.5]), (led, [0, 0.0]), (led, [0, 2.0]))[int(np.ravel(drive)[0])]
        d = mech.parameter_sensitivity(x[:2], x[2:], u, ["elbow.damping"])
        D = mech.hybrid_sensitivity(x[:2], x[2:], u)
        for found, expected in ((dy_dq, D.dy_dq), (dy_du, D.dy_du), (dy_dp, d.dy_dp)):
            np.testing.assert_allclose(np.ravel(found), expected.ravel(), atol=1e-9)
        seen.add(int(np.ravel(drive)[0]))
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_a_variation_goes_through_the_drives(engine):
    """Free, then locked while it moves, then led: Φ and the derivative to a parameter are those of the end itself."""
    when = {0.3: lambda: plant.select("held"), 0.5: lambda: plant.select("led")}
    start, names = np.array([0.3, 0.5, 0.4, -0.8]), ["forearm.mass"]

    def run(mech, x, with_variation, tight=TIGHT):
        nonlocal plant
        sim = quiet(engine if with_variation else "compiled")
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=x[:2], qd0=x[2:], drives=THREE, name="plant")
        tau, acc = bd.CONSTANT(0.5), bd.CONSTANT(2.0)
        bd.connect(tau, plant.tau)
        bd.connect(acc, plant.acc)
        if not with_variation:  # the witness
            return sim.run(bd, T=0.7, at=when, **tight).x[-1]
        variation = bd.VARIATION(mech, parameters=names, drives=THREE, name="variation")
        bd.connect(plant[0:2], variation[0:2])
        bd.connect(tau, variation.tau)
        bd.connect(acc, variation.acc)
        bd.connect(plant.drive, variation.select)
        out = sim.run(bd, T=0.7, at=when, watch=[variation[0], variation[1]], **tight)
        return [np.asarray(found)[-1] for found in out.data[".ywatch"]]

    plant = None
    phi, by_mass = run(ACROBOT, start, True)
    finer = {**TIGHT, "rtol": 1e-11, "atol": 1e-13}
    expected = central_difference(lambda x: run(ACROBOT, x, False, finer), start, 1e-3)
    np.testing.assert_allclose(np.reshape(phi, (4, 4)), expected, atol=1e-7)
    mass = ACROBOT.link("forearm").mass
    ends = [run(ACROBOT.with_parameters({"forearm.mass": mass + h}), start, False, finer) for h in (-1e-4, 1e-4)]
    np.testing.assert_allclose(np.ravel(by_mass), (ends[1] - ends[0]) / 2e-4, atol=1e-6)


def varied(engine, mech, x, drives, when=(), directions=None, names=(), first=None, tight=TIGHT, T=0.3):
    """Return the end of a run and, if there are directions, its derivatives to these and to numbers by a variation."""
    sim, n = quiet(engine), mech.n
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=x[:n], qd0=x[n:], drives=drives, drive=first, name="plant")
    tau = bd.CONSTANT(np.full(len(mech.actuated), 0.3) if len(mech.actuated) > 1 else 0.3)
    bd.connect(tau, plant.tau)
    watch = []
    if directions is not None:
        variation = bd.VARIATION(mech, directions=directions, parameters=names, drives=drives, name="variation")
        bd.connect(plant[0:2], variation[0:2])
        bd.connect(tau, variation.tau)
        bd.connect(plant.drive, variation.select)
        watch = [variation[k] for k in range(1 + bool(names))]
    at = {t: lambda name=name: plant.select(name) for t, name in when}
    out = sim.run(bd, T=T, at=at, watch=watch, **tight)
    parts = [np.asarray(found)[-1].reshape(2 * n, -1) for found in out.data.get(".ywatch", ())]
    return out.x[-1], np.hstack(parts) if parts else None


FINER = {**TIGHT, "rtol": 1e-11, "atol": 1e-13}


@pytest.mark.parametrize("name", ["five_bar", pytest.param("three_rrr", marks=pytest.mark.slow)])
def test_rates_behind_a_lock_in_a_loop_follow_state_and_numbers(name):
    """Along states that close the loops, to a mass and to a length: differences of the locking itself."""
    mech, rng = cs.library.get(name), np.random.default_rng(3)
    n = mech.n
    q, qd = mech.project(np.full(n, 0.4), rng.normal(size=n))
    where = np.arange(n) == 0
    parameters = [f"{mech.links[1].name}.mass", f"{mech.links[1].name}.pose.x"]
    held, along = [mech.names[0]], quiet().blockdiagram().HYBRIDDYNAMICS(mech).tangent(np.append(q, qd))[1]
    tangents = np.hstack([along, np.zeros((2 * n, 2))])
    parts = [part for _, own in find(mech, parameters) for part in own]
    found = locked_tangents(mech, q, qd, mech.lock(q, qd, held)[0], where, tangents, parts)

    def behind(z):
        x = np.append(q, qd) + along @ z[:-2]
        x = np.concatenate(mech.project(x[:n], x[n:]))
        values = {parameters[0]: component_value(mech, parameters[0]) + z[-2]}
        changed = with_components(with_components(mech, values), {parameters[1]: z[-1]})
        return np.append(x[:n], changed.lock(x[:n], x[n:], held)[0])

    expected = central_difference(behind, np.zeros(tangents.shape[1]), 3e-4)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["compiled"])
def test_a_variation_goes_through_a_lock_in_a_loop(engine):
    """A five-bar whose crank is stopped while all moves, and let go: it was refused. The witness runs anew."""
    mech = cs.library.five_bar()
    drives = {"free": {}, "held": {"locked": ["left_shoulder"]}}
    names, when = ["left_upper.mass"], [(0.1, "held"), (0.2, "free")]
    x = np.concatenate(mech.project(np.full(mech.n, 0.4), np.linspace(1.0, -0.5, mech.n)))
    directions = quiet().blockdiagram().HYBRIDDYNAMICS(mech).tangent(x)[1]
    _, found = varied(engine, mech, x, drives, when, directions, names)

    def end(z):
        mass = mech.link("left_upper").mass + z[-1]
        changed = mech.with_parameters({names[0]: mass})
        return varied("compiled", changed, x + directions @ z[:-1], drives, when, tight=FINER)[0]

    along = np.array([0.5, -0.3, 0.4, 0.7, 0.6])
    expected = central_difference(lambda s: end(s[0] * along), np.zeros(1), 1e-3)[:, 0]
    np.testing.assert_allclose(found @ along, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_a_variation_begins_with_a_lock(engine):
    """The elbow moves at the start, and is stopped there: the shoulder's rate follows that of the elbow before."""
    x, drives = np.array([0.3, 0.5, 0.4, -0.8]), {"free": {}, "held": {"locked": ["elbow"]}}
    when = [(0.15, "free")]
    _, found = varied(engine, ACROBOT, x, drives, when, np.eye(4), ["forearm.mass"], "held")

    def end(z):
        mech = ACROBOT.with_parameters({"forearm.mass": z[4]})
        return varied("compiled", mech, z[:4], drives, when, first="held", tight=FINER)[0]

    begin, along = np.append(x, ACROBOT.link("forearm").mass), np.array([0.5, -0.3, 0.4, 0.7, 0.6])
    expected = central_difference(lambda s: end(begin + s[0] * along), np.zeros(1), 1e-3)[:, 0]
    np.testing.assert_allclose(found @ along, expected, atol=1e-7 * np.abs(expected).max())
    assert np.abs(found[:, 3]).max() > 0.1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_variation_that_goes_on_does_not_lock_anew(engine):
    """Two halves are the whole, where both are in the drive that the first began with."""
    x, drives = np.array([0.3, 0.5, 0.4, -0.8]), {"free": {}, "held": {"locked": ["elbow"]}}
    sim = quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=x[:2], qd0=x[2:], drives=drives, drive="held", name="plant")
    variation = bd.VARIATION(ACROBOT, drives=drives, name="variation")
    tau = bd.CONSTANT(0.3)
    bd.connect(tau, plant.tau, variation.tau)
    bd.connect(plant[0:2], variation[0:2])
    bd.connect(plant.drive, variation.select)
    whole = sim.run(bd, T=0.2, **TIGHT)
    first = sim.run(bd, T=0.1, **TIGHT)
    second = sim.run(bd, T=0.1, start=first.state, **TIGHT)
    np.testing.assert_allclose(second.x[-1], whole.x[-1], atol=1e-9)
    again = sim.run(bd, T=0.2, **TIGHT)  # nothing is left of the runs before
    np.testing.assert_array_equal(again.x[-1], whole.x[-1])


def test_a_variation_needs_the_plant_that_knows_the_rates_before_a_lock():
    bd = quiet().blockdiagram()
    plant = bd.HYBRIDDYNAMICS(ACROBOT, drives=THREE, drive="held", name="plant")
    variation = bd.VARIATION(ACROBOT, drives=THREE, name="variation")
    copied = bd.GAIN(1.0, name="copied")
    bd.connect(bd.CONSTANT(0.5), plant.tau, variation.tau)
    bd.connect(bd.CONSTANT(2.0), plant.acc, variation.acc)
    bd.connect(plant.q, copied)
    bd.connect(copied, variation.q)
    bd.connect(plant.qd, variation.qd)
    bd.connect(plant.drive, variation.select)
    with pytest.raises(cs.InvalidValue, match=r"the plant itself has to be wired here.*got block 'copied'"):
        quiet().run(bd, T=0.1)


def test_a_plant_of_one_drive_says_what_select_needs():
    """It said that there is no such port."""
    plant = quiet().blockdiagram().HYBRIDDYNAMICS(ACROBOT, name="plant")
    with pytest.raises(cs.CstormError, match=r"'plant': has one drive, .*; give several as drives=\{name: \{\.\.\.\}"):
        plant.select("held")
    assert not hasattr(plant, "select")
    with pytest.raises(cs.InvalidValue, match="drive: there is one drive only; give several as drives="):
        quiet().blockdiagram().HYBRIDDYNAMICS(ACROBOT, drive="held")
