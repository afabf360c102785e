"""ANGLEWRAP, JOINTLIMIT and EFFORT."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import pathlib

import bdsim
import bdsim.block
import numpy as np
import pytest
from simulations import ours, plain
from unit_systems import in_units

import cstormpy as cs
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.blocks.joints import AngleWrap, JointLimit
from cstormpy.blocks.measures import Effort
from cstormpy.dynamics.loads import stop_torque, wrap
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.mechanism import Limits, Link, Mechanism, Prismatic, Revolute, library
from cstormpy.report import facts

ACROBOT = library.acrobot()


def crane(**drive):
    """Return a trolley with limits and a motor, and a pendulum on it with limits."""
    cart = Link("cart", None, Prismatic((1, 0, 0), name="track", limits=Limits(position=(-1.0, 2.0))), mass=2.0)
    hook = Revolute((0, 0, 1), name="hinge", limits=Limits(position=(None, 0.5)))
    load = Link("load", "cart", hook, mass=1.0, com=(0, -1, 0))
    return Mechanism([cart, load], **drive)


def run(sim, bd, T, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        bd.compile()
        if isinstance(sim, cs.Simulation):
            return sim.run(bd, T=T, rtol=1e-9, on_error="raise", **options)
        return sim.run(bd, T=T, solver_args={"rtol": 1e-9, "atol": 1e-11, "max_step": 0.05}, **options)


# ---------------------------------------------------------------- limits of a plant


ENGINES = pytest.mark.parametrize("engine", ["interpreted", "compiled"])


def rolling(engine, stops=False, name="plant", **drive):
    """Return a crane whose trolley rolls towards its limit, which it reaches after 0.2 s, and what runs it."""
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    bd = sim.blockdiagram()
    mech = crane(actuated=[], **drive).with_gravity((0, 0, 0))
    plant = bd.HYBRIDDYNAMICS(mech, q0=[1.0, 0.0], qd0=[5.0, 0.0], stops=stops, name=name)
    return sim, bd, plant


@ENGINES
def test_a_joint_that_leaves_its_limits_is_told(caplog, engine):
    """A cart with limits (-3, 3) went to 379 km, in silence, with the status "finished"."""
    sim, bd, _ = rolling(engine, name=f"plant_{engine}")
    out = sim.run(bd, T=4.0)
    assert out.status == "finished"
    (left,) = out.left_limits
    assert (left.plant, left.joint, left.limits) == (f"plant_{engine}", "track", (-1.0, 2.0))
    assert 0.2 < left.t < 0.3 and left.farthest == out.x[:, 0].max() > 20.0
    (said,) = [record.getMessage() for record in caplog.records if "limits" in record.getMessage()]
    assert f"block 'plant_{engine}': joint 'track' leaves its limits, -1 to 2" in said
    assert "HYBRIDDYNAMICS(..., stops=True)" in said
    assert "beyond its limits -1 to 2" in " ".join(value for _, value in facts.numbers(out))
    sim.run(bd, T=4.0)
    assert caplog.text.count("leaves its limits") == 1, "it is said once"


def test_within_its_limits_or_at_a_stop_nothing_is_said(caplog):
    sim, bd, _ = rolling("interpreted")
    assert sim.run(bd, T=0.15).left_limits == []
    sim, bd, _ = rolling("interpreted", stops={"stiffness": 100.0})
    out = sim.run(bd, T=1.0)
    assert out.x[:, 0].max() > 2.1 and out.left_limits == []
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(crane(), q0=[1.9, 0.0], qd0=[3.0, 0.0])
    stops = bd.JOINTLIMIT(crane())
    bd.connect(plant[0:2], stops[0:2])
    bd.connect(stops, plant[0])
    assert sim.run(bd, T=0.2).left_limits == []
    assert "limits" not in caplog.text


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_a_plant_with_stops_is_one_with_jointlimit(engine):
    """The same law at the same joints; and the energy is that of before, where no damper takes any."""
    for options in (True, {"stiffness": [800.0, 60.0], "damping": 0.0, "depth": 0.02}):
        sim, bd, plant = rolling(engine, options)
        effort = bd.JOINTEFFORT(plant.mech, stops=options, name="effort")
        bd.connect(plant[0:2], effort[0:2])
        out = sim.run(bd, T=0.8, rtol=1e-10, atol=1e-12, watch=["effort"])
        assert out.x[:, 0].max() > 2.0 and out.x[:, 2].min() < 0.0, "it came back"
        bd = sim.blockdiagram()
        mech = crane().with_gravity((0, 0, 0))
        driven = bd.HYBRIDDYNAMICS(mech, q0=[1.0, 0.0], qd0=[5.0, 0.0], name="plant")
        stops = bd.JOINTLIMIT(mech, **({} if options is True else options))
        effort = bd.JOINTEFFORT(mech, name="effort")
        bd.connect(driven[0:2], stops[0:2], effort[0:2])
        bd.connect(stops, driven[0], effort[2])
        wired = sim.run(bd, T=0.8, rtol=1e-10, atol=1e-12, watch=["effort"])
        np.testing.assert_allclose(out.x[-1], wired.x[-1], rtol=1e-7)
        np.testing.assert_allclose(out.signal("effort.qdd")[-1], wired.signal("effort.qdd")[-1], rtol=1e-6, atol=1e-9)
        assert np.abs(wired.signal("effort.torque")).max() > 30.0
        np.testing.assert_allclose(out.signal("effort.torque"), 0.0, atol=1e-10)
    kinetic, _ = mech.energy(out.x[:, :2], out.x[:, 2:])
    beyond = np.stack([np.maximum(out.x[:, 0] - 2.0, 0.0), np.maximum(out.x[:, 1] - 0.5, 0.0)])
    energy = kinetic + 0.5 * np.array([800.0, 60.0]) @ beyond**2
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)  # the torque has a kink at the touch


def test_stops_of_a_plant_leave_out_what_is_prescribed():
    plant = HybridDynamics(crane(active=["track"]), stops={"stiffness": 7.0})
    assert plant.deriv(0.0, [[0.0], [0.0]], np.array([5.0, 0.0, 0.0, 0.0]))[2] == 0.0
    with pytest.raises(InvalidValue, match="joint 'track': its motion is prescribed"):
        HybridDynamics(crane(active=["track"]), stops={"joints": ["track"]})


def test_linear_models_know_the_stops():
    sim, bd, _ = rolling("auto", {"stiffness": 800.0, "damping": 0.0})
    found = sim.linearize(bd, x=[2.1, 0.0, 0.0, 0.0]).A[2:, :2]
    mass = crane().mass_matrix([2.1, 0.0])
    np.testing.assert_allclose(found, -np.linalg.solve(mass, np.diag([800.0, 0.0])), atol=1e-6)


@pytest.mark.parametrize(
    ("stops", "error", "says"),
    [
        (
            1.0,
            InvalidType,
            "stops: expected True or False, or a dict of stiffness, damping, joints, depth, got 1.0",
        ),
        ({"stifness": 1.0}, UnknownName, "stops: option 'stifness' does not exist; did you mean 'stiffness'"),
        ({"stiffness": -1.0}, InvalidValue, "stiffness"),
        ({"joints": ["hing"]}, UnknownName, "did you mean 'hinge'"),
    ],
)
def test_wrong_stops_of_a_plant(stops, error, says):
    with pytest.raises(error, match=says):
        HybridDynamics(crane(), stops=stops)
    with pytest.raises(InvalidValue, match="no joint has position limits"):
        HybridDynamics("acrobot", stops=True)


# ---------------------------------------------------------------- ANGLEWRAP


def test_wrap_is_the_angle_within_its_turn():
    rng = np.random.default_rng(3)
    q, centre, turn = rng.uniform(-40, 40, 500), rng.uniform(-5, 5, 500), np.full(500, 2 * np.pi)
    y = wrap(q, centre, turn)
    assert np.exp(1j * y) == pytest.approx(np.exp(1j * q), abs=1e-12)
    assert (y > centre - np.pi - 1e-12).all() and (y <= centre + np.pi + 1e-12).all()
    assert wrap(y, centre, turn).tolist() == y.tolist()


def test_borders_of_a_turn():
    assert AngleWrap().test_output([np.pi, -np.pi, 3 * np.pi, 0.1])[0].tolist() == [np.pi, np.pi, np.pi, 0.1]
    assert AngleWrap(centre=np.pi).test_output([0.0, 2 * np.pi])[0].tolist() == [2 * np.pi, 2 * np.pi]


def test_only_revolute_joints_of_a_mechanism_are_wrapped():
    assert AngleWrap(crane()).test_output([7.0, 7.0])[0].tolist() == [7.0, 7.0 - 2 * np.pi]
    assert AngleWrap(crane()).inwidths == AngleWrap(crane()).outwidths == (2,)
    assert AngleWrap(ACROBOT, joints=["elbow"]).test_output([7.0, 7.0])[0].tolist() == [7.0, 7.0 - 2 * np.pi]
    assert AngleWrap(joints=[0, 2]).test_output([7.0, 7.0, 7.0])[0].tolist() == [7 - 2 * np.pi, 7.0, 7 - 2 * np.pi]
    about = AngleWrap(ACROBOT, centre=[np.pi / 2, 0.0]).test_output([-np.pi / 2 - 0.1, 0.0])[0]
    assert about == pytest.approx([1.5 * np.pi - 0.1, 0.0])


def test_a_number_stays_a_number():
    assert AngleWrap().test_output(4.0) == [4.0 - 2 * np.pi]
    q = np.array([0.5])
    (y,) = AngleWrap().test_output(q)
    assert y.shape == (1,) and y is not q


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_truth_is_wrapped_as_the_number_that_it_is_to_all_blocks(engine):
    sim = cs.Simulation(engine=engine, graphics=False)
    bd = sim.blockdiagram()
    wrapped = bd.ANGLEWRAP(name="wrapped")
    bd.connect(bd.CONSTANT(True), wrapped)
    bd.connect(wrapped, bd.INTEGRATOR())
    assert np.all(sim.run(bd, T=0.1, watch=["wrapped"]).signal("wrapped") == 1.0)


@pytest.mark.parametrize("make", [plain, ours])
def test_a_run_lands_on_the_jump_of_a_wrapped_angle(make):
    """The integral of a wrapped ramp is exact only if no step reaches over a jump: at pi/3 and pi, of slope 3."""
    sim, bd = make()
    wrapped, integral = AngleWrap(bd=bd), bd.INTEGRATOR(x0=0.0)
    ramp = bd.INTEGRATOR(x0=0.0)
    bd.connect(bd.CONSTANT(3.0), ramp)
    bd.connect(ramp, wrapped)
    bd.connect(wrapped, integral)
    out = run(sim, bd, T=4.0)
    turns = np.round(12.0 / (2 * np.pi))
    expected = 24.0 - 2 * np.pi * sum(4.0 - (2 * k + 1) * np.pi / 3 for k in range(int(turns)))
    integrals = out.x[-1][[name.startswith(integral.name) for name in out.xnames]]
    assert integrals == pytest.approx(expected, abs=1e-6)
    for jump in (np.pi / 3, np.pi):
        assert np.abs(out.t - jump).min() <= 2e-9


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"mech": 3}, InvalidType, "mechanism"),
        ({"joints": ["elbow"]}, InvalidValue, "'elbow' is a name"),
        ({"mech": "acrobot", "joints": ["elbo"]}, UnknownName, "did you mean 'elbow'"),
        ({"mech": "acrobot", "joints": [2]}, InvalidValue, "joints"),
        ({"mech": crane(), "joints": ["track"]}, InvalidValue, "'track': is not revolute"),
        ({"mech": crane(), "joints": [0]}, InvalidValue, "'track': is not revolute"),
        ({"joints": [-1]}, InvalidValue, "joints"),
        ({"joints": []}, InvalidType, "joints"),
        ({"joints": [0.5]}, InvalidType, "joints"),
        ({"centre": "top"}, InvalidType, "centre"),
        ({"centre": [0.0], "mech": "acrobot"}, InvalidValue, "centre"),
        ({"centre": [0.0], "joints": [1]}, InvalidValue, "joints"),
        ({"locate": 1}, InvalidType, "locate"),
        ({"center": 1.0}, UnknownName, "did you mean 'centre'"),
    ],
)
def test_wrong_arguments_of_anglewrap(arguments, error, says):
    with pytest.raises(error, match=says):
        AngleWrap(**arguments)


def test_wrong_signals_of_anglewrap():
    with pytest.raises(InvalidValue, match=r"anglewrap input port 0 'q': carries 2 numbers, so that there is no"):
        AngleWrap(joints=[3]).test_output([0.0, 1.0])
    with pytest.raises(ShapeError, match="shoulder, elbow"):
        AngleWrap(ACROBOT).test_output([0.0])


# ---------------------------------------------------------------- JOINTLIMIT


def test_stops_are_the_formula():
    stops = JointLimit(crane(), stiffness=[100.0, 10.0], damping=[5.0, 1.0], depth=0.1)
    assert stops.inwidths == (2, 2) and stops.outwidths == (2,)
    assert stops.test_output([0.0, 0.0], [9.0, 9.0])[0].tolist() == [0.0, 0.0]
    assert stops.test_output([2.5, -50.0], [2.0, 0.0])[0] == pytest.approx([-60.0, 0.0])
    assert stops.test_output([-1.05, 0.6], [-2.0, 0.0])[0] == pytest.approx([5.0 + 0.5 * 5.0 * 2.0, -1.0])


@ENGINES
def test_each_stop_has_a_depth_of_its_own(engine):
    """One number was rad for the hinge and mm for the track: a plant told in mm could not move as the one in m."""
    units = np.array([1e3, 1.0])  # with masses as they are, forces are in mN and torques in mN mm
    stiffness, damping, depth = np.array([800.0, 60.0]), np.array([20.0, 3.0]), np.array([0.05, 0.2])
    in_m, in_mm = crane(actuated=[]).with_gravity((0, 0, 0)), in_units(crane(actuated=[]), 1e3, 1.0, 1.0)[0]
    runs = []
    for mech, length in ((in_m, np.ones(2)), (in_mm.with_gravity((0, 0, 0)), units)):
        sim = cs.Simulation(engine=engine, graphics=False, progress=False)
        bd = sim.blockdiagram()
        work = length.max() ** 2
        stops = {
            "stiffness": stiffness * work / length**2,
            "damping": damping * work / length**2,
            "depth": depth * length,
        }
        bd.HYBRIDDYNAMICS(mech, q0=np.array([1.0, 0.0]) * length, qd0=np.array([5.0, 0.0]) * length, stops=stops)
        out = sim.run(bd, T=0.8, rtol=1e-9, atol=1e-11)
        runs.append(out.x[-1] / np.tile(length, 2))
        assert out.x[:, 0].max() > 2.05 * length[0] and out.x[:, 1].max() > 0.6
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-5)
    every = JointLimit(crane(), stiffness=0.0, damping=[5.0, 1.0], depth=[0.1, 2.0])
    assert every.test_output([2.05, 1.5], [2.0, 3.0])[0] == pytest.approx([-0.5 * 5.0 * 2.0, -0.5 * 1.0 * 3.0])


def test_a_stop_never_pulls_and_never_jumps():
    rng = np.random.default_rng(5)
    q, qd = rng.uniform(-1.2, 1.2, 4000), rng.uniform(-30, 30, 4000)
    ends = (np.full(4000, -1.0), np.full(4000, 1.0), np.full(4000, 50.0), np.full(4000, 8.0), 0.01)
    tau = stop_torque(q, qd, *ends)
    assert ((tau <= 0) | (q < -1)).all() and ((tau >= 0) | (q > 1)).all() and (tau != 0).any()
    assert stop_torque(np.array([1.0 + 1e-9]), np.array([100.0]), *(e[:1] for e in ends[:4]), 0.01)[0] > -1e-3


def test_only_motors_can_stop_a_joint():
    with pytest.raises(InvalidValue, match=r"joint 'hinge': has no motor.*joints=\['track'\].*all=True"):
        JointLimit(crane(actuated=["track"]))
    with pytest.raises(InvalidValue, match="joint 'track': its motion is prescribed"):
        JointLimit(crane(active=["track"]))
    left_out = JointLimit(crane(actuated=["track"]), stiffness=100.0, joints=["track"])
    assert left_out.test_output([3.0, 3.0], [0.0, 0.0])[0].tolist() == [-100.0]
    every = JointLimit(crane(actuated=["track"]), stiffness=100.0, all=True)
    assert every.test_output([3.0, 1.5], [0.0, 0.0])[0].tolist() == [-100.0, -100.0]


def test_stiffness_and_damping_are_tunable():
    stops = JointLimit(crane())
    with contextlib.redirect_stdout(io.StringIO()):
        stops.set_param("stiffness", 7.0)
        stops.set_param("damping", [0.0, 1.0])
    assert stops.stiffness.tolist() == [7.0, 7.0] and stops.damping.tolist() == [0.0, 1.0]
    assert stops.test_output([3.0, 0.0], [5.0, 0.0])[0].tolist() == [-7.0, 0.0]
    with pytest.raises(InvalidValue, match="stiffness"):
        stops.stiffness = -1.0


@pytest.mark.parametrize("make", [plain, ours])
def test_a_trolley_bounces_and_loses_what_the_damper_takes(make):
    """Without damper the energy stays; the deepest point is where the spring holds all of it."""
    mech = Mechanism([crane().links[0]], gravity=(0, 0, 0))
    for damping in (0.0, 20.0):
        sim, bd = make()
        plant = HybridDynamics(mech, q0=[1.9], qd0=[3.0], bd=bd)
        stops = JointLimit(mech, stiffness=800.0, damping=damping, bd=bd)
        bd.connect(plant[0:2], stops[0:2])
        bd.connect(stops, plant[0])
        out = run(sim, bd, T=0.6)
        if damping:
            assert -3.0 < out.x[-1, 1] < -1.0
            assert out.x[:, 0].max() < 2.0 + 0.15
        else:
            assert out.x[-1, 1] == pytest.approx(-3.0, abs=1e-6)
            assert out.x[:, 0].max() == pytest.approx(2.0 + 3.0 * np.sqrt(2.0 / 800.0), abs=2e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"mech": "acrobot"}, InvalidValue, "no joint has position limits"),
        ({"mech": library.acrobot(), "joints": ["elbow"]}, InvalidValue, "'elbow': has no position limits"),
        ({"joints": ["hing"]}, UnknownName, "did you mean 'hinge'"),
        ({"joints": 3}, InvalidType, "joints"),
        ({"joints": [3]}, InvalidType, "joint"),
        ({"stiffness": -1.0}, InvalidValue, "stiffness"),
        ({"stiffness": [1.0]}, ShapeError, "stiffness"),
        ({"damping": [1.0, -1.0]}, InvalidValue, "'hinge': damping"),
        ({"depth": 0.0}, InvalidValue, "depth"),
        ({"depth": [0.1, 0.0]}, InvalidValue, "joint 'hinge': depth: expected a positive number"),
        ({"depth": [0.1]}, ShapeError, "depth"),
        ({"all": "yes"}, InvalidType, "all"),
    ],
)
def test_wrong_arguments_of_jointlimit(arguments, error, says):
    with pytest.raises(error, match=says):
        JointLimit(**{"mech": crane(), **arguments})


def test_no_attribute_of_a_block_is_one_that_bdsim_writes():
    """JOINTLIMIT once kept its depth as `_depth`, which bdsim overwrites with zero when it compiles."""

    def assigned(source):
        targets = (
            n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
        )
        return {n.attr for n in targets if isinstance(n.value, ast.Name) and n.value.id == "self"}

    theirs = assigned(inspect.getsource(bdsim.block)) - {"_x0"}  # which is there to be written
    assert "_depth" in theirs
    for path in pathlib.Path(inspect.getfile(JointLimit)).parent.glob("[a-z]*.py"):
        assert not assigned(path.read_text(encoding="utf-8")) & theirs, path.name


# ---------------------------------------------------------------- EFFORT


def test_rate_of_the_effort():
    x = np.array([7.0])
    assert Effort().test_deriv([3.0, 4.0], x=x).tolist() == [12.5]
    assert Effort().test_deriv(3, x=x).tolist() == [4.5]
    assert Effort(weight=[1.0, 0.0]).test_deriv([3.0, 4.0], x=x).tolist() == [4.5]
    assert Effort().test_output(None, x=x) == [7.0]
    assert Effort().inwidths == (None,) and Effort(weight=[1, 2]).inwidths == (2,)
    with pytest.raises(ShapeError, match=r"effort input port 0 'tau': expected 2 numbers, got 3"):
        Effort(weight=[1, 2]).test_deriv([1, 2, 3], x=x)
    with pytest.raises(ShapeError, match="a number or a vector"):
        Effort().test_deriv(np.eye(2), x=x)
    with pytest.raises(DiagramError, match="wire a signal"):
        Effort().test_deriv(None, x=x)
    with pytest.raises(InvalidType):
        Effort().test_deriv("much", x=x)


@pytest.mark.parametrize("make", [plain, ours])
def test_effort_of_a_known_torque(make):
    """Of (sin t, 2): (t - sin t cos t)/4 + 2 t, on top of what it begins with."""
    sim, bd = make()
    effort = Effort(start=1.0, bd=bd, name="effort")
    clock = bd.TIME()
    torque = bd.FUNCTION(lambda t: np.array([np.sin(t), 2.0]))
    bd.connect(clock, torque)
    bd.connect(torque, effort)
    out = run(sim, bd, T=3.0)
    assert out.x[-1] == pytest.approx([1.0 + (3.0 - np.sin(3.0) * np.cos(3.0)) / 4 + 6.0], abs=1e-8)
    assert out.xnames == ["effort.effort"]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"weight": -1.0}, InvalidValue, "weight"),
        ({"weight": [[1.0]]}, ShapeError, "weight"),
        ({"weight": []}, InvalidValue, "weight"),
        ({"weight": "big"}, CstormError, "weight"),
        ({"start": np.inf}, NonFinite, "start"),
        ({"gain": 1}, UnknownName, "gain"),
    ],
)
def test_wrong_arguments_of_effort(arguments, error, says):
    with pytest.raises(error, match=says):
        Effort(**arguments)
