"""Derivatives to numbers of a mechanism as signals and along runs: against gradients, and differences of two runs."""

import numpy as np
import pytest
from closeness import assert_close, tolerance
from random_mechanisms import COMPOUND, KINDS, random_loads, random_mechanism, random_state

import cstormpy as cs
from cstormpy import library
from cstormpy.blocks.loads import Wrench
from cstormpy.blocks.sensitivities import Sensitivity, Variation
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, UnknownName
from cstormpy.mechanism.component_values import component_value, with_components

ENGINES = ("interpreted", "compiled")
T, H = 0.2, 0.02
NAMES = ["forearm.mass", "elbow.damping", "forearm.com", "upper_arm.inertia.zz", "gravity[1]", "elbow.point[0]"]


def wired(engine, mech, names=None):
    """Return a plant under a constant drive, with its variation and its derivatives beside it."""
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3, 0.5], qd0=[0.2, -0.1], name="plant")
    drive = bd.CONSTANT(0.4)
    bd.connect(drive, plant[0])
    if names is not None:
        variation = bd.VARIATION(mech, directions=["elbow.q"], parameters=names, name="variation")
        slopes = bd.SENSITIVITY(mech, parameters=names, name="slopes")
        for block in (variation, slopes):
            bd.connect(plant[0:2], block[0:2])
            bd.connect(drive, block[2])
    return sim, bd


def assert_in_machine_code(sim, bd):
    """Hold that the compiled engine asks no block in Python."""
    said = str(sim.explain(bd))
    assert "traced" in said and "Python" not in said, said


def differences(run, mech, component, h=2e-3):
    """Return the derivative of what a run gives to a number of its mechanism, to O(h⁶)."""
    value = component_value(mech, component)
    near, middle, far = (
        run(with_components(mech, {component: value + k * h}, allow_impossible=True))
        - run(with_components(mech, {component: value - k * h}, allow_impossible=True))
        for k in (1, 2, 3)
    )
    return (45 * near - 9 * middle + far) / (60 * h)


@pytest.mark.slow
@pytest.mark.parametrize(
    "active", [(), pytest.param(("elbow",), marks=pytest.mark.slow)], ids=["torques", "an acceleration"]
)
def test_a_variation_carries_the_derivatives_to_masses_and_lengths_along_a_run(active):
    """A design's sensitivity took a run for each number and each side of it, or the gradient of one cost."""
    mech = library.acrobot().with_drive(active=active).with_parameters({"elbow.damping": 0.1, "shoulder.damping": 0.1})
    options = {"T": T, "dt": H, "solver": "RK4"}
    found = {}
    for engine in ENGINES:
        sim, bd = wired(engine, mech, NAMES)
        out = sim.run(bd, **options, watch=["variation.dx_dp", "slopes.dy_dp"])
        found[engine] = out.signal("variation.dx_dp")
        last = mech.parameter_sensitivity(out.x[-1, :2], out.x[-1, 2:4], [0.0, 0.4], NAMES)
        assert_close(out.signal("slopes.dy_dp")[-1], last.dy_dp, 1e-10)
        assert bd.blocknames["variation"].components == bd.blocknames["slopes"].components == last.components
        assert bd.statenames[-1] == "variation.elbow.qd/elbow.point[0]"
    assert_in_machine_code(sim, bd)
    assert found["compiled"].shape == (round(T / H) + 1, 4, 8)
    assert_close(found["interpreted"], found["compiled"], 1e-12)
    sim, bd = wired("compiled", mech)
    gradient = sim.gradient(bd, lambda out: out.x[-1], NAMES, **options)
    assert gradient.parameters == last.components
    assert_close(found["compiled"][-1], gradient.gradient, 1e-9)

    def end(changed):
        bd.blocknames["plant"].set_param("mech", changed)
        return sim.run(bd, **options).x[-1]

    for k, component in enumerate(last.components):
        assert_close(found["compiled"][-1][:, k], differences(end, mech, component), 1e-8)
    assert (np.abs(found["compiled"][-1]).max(axis=0) > 1e-4).sum() >= 4


CLOSED = {
    "four_bar": ["coupler_rod.mass", "crank.damping", "gravity", "coupler_rod.pose.x", "pin.pose_a.y"],
    "three_rrr": ["platform.mass", "fore2.pose.x", "pin3.pose_b.x"],
}


def beside(engine, mech, names, q0, dx0_dp=None):
    """Return a simulation of a plant under constant torques, with both blocks beside it."""
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant")
    blocks = [
        bd.VARIATION(mech, directions=[], parameters=names, dx0_dp=dx0_dp, name="variation"),
        bd.SENSITIVITY(mech, parameters=names, name="slopes"),
    ]
    drive = bd.CONSTANT(np.full(len(mech.actuated), 0.1))
    bd.connect(drive, plant[0])
    for block in blocks:
        bd.connect(plant[0:2], block[0:2])
        bd.connect(drive, block[2])
    return sim, bd


def assert_both_engines_agree(mech, names, q0, dx0_dp=None):
    found = {}
    for engine in ENGINES:
        sim, bd = beside(engine, mech, names, q0, dx0_dp)
        out = sim.run(bd, T=0.04, dt=0.02, solver="RK4", watch=["variation.dx_dp", "slopes.dy_dp"])
        found[engine] = out.signal("variation.dx_dp"), out.signal("slopes.dy_dp")
    for plain, compiled in zip(*found.values(), strict=True):
        assert_close(plain, compiled, 1e-12 * max(1.0, np.abs(plain).max()))
    assert_in_machine_code(sim, bd)


@pytest.mark.slow
def test_what_balls_take_and_carry_is_written_down():
    """Losses and rotors of balls, and masses of mechanisms that have some, were asked in Python at each stage."""
    rotors = {"damping": (0.3, 0.2, 0.1), "friction": (0.05, 0.1, 0.02), "armature": (0.1, 0.2, 0.3)}
    trunk = cs.Free(friction_velocity=0.3, name="trunk", **{name: (0.2, 0.1, 0.3, *x) for name, x in rotors.items()})
    hip = cs.Spherical(point=(0.1, 0.2, 0.0), friction_velocity=0.4, name="hip", **rotors)
    links = [
        cs.Link("body", None, trunk, mass=2.0, com=(0.1, 0.2, -0.3), inertia=np.diag([0.3, 0.4, 0.5])),
        cs.Link("leg", "body", hip, mass=1.0, com=(0.0, 0.1, -0.3), inertia=np.diag([0.1, 0.1, 0.05])),
    ]
    mech = cs.Mechanism(links)
    fields = ("damping", "friction", "friction_velocity", "armature")
    names = [*(f"{joint}.{field}" for joint in ("trunk", "hip") for field in fields), "leg.mass", "body.com"]
    q = 0.5 * np.random.default_rng(0).normal(size=mech.n)
    assert_both_engines_agree(mech, names, q)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "three_rrr"])
def test_derivatives_of_a_closed_mechanism_are_written_down_as_those_of_a_tree(name):
    """They were asked in Python at each stage of a step: a second of simulation took a minute."""
    mech = library.get(name)
    q0 = mech.project(np.full(mech.n, 0.3))[0]
    count = len(mech.parameter_sensitivity(q0, 0 * q0, 0 * q0, CLOSED[name]).components)
    assert_both_engines_agree(mech, CLOSED[name], q0, np.zeros((2 * mech.n, count)))


@pytest.mark.slow
def test_dependent_constraints_are_shared_as_by_numbers():
    """A flat four-bar closed by a weld: of the six rows three say what holds anyway, but not when a length changes."""
    flat = library.get("four_bar")
    (pin,) = flat.loops
    loop = pin.replace(directions="hinge")
    mech = cs.Mechanism(flat.links, gravity=flat.gravity, actuated=flat.actuated, loops=[loop])
    q0 = mech.project([1.0, 0.0, 1.5])[0]
    names = ["coupler_rod.mass", "coupler_rod.pose.x", "pin.pose_a.rx"]
    assert_both_engines_agree(mech, names, q0, np.zeros((2 * mech.n, 3)))


@pytest.mark.slow
def test_kernels_are_called_for_the_parameters_of_a_large_mechanism():
    mech = library.chain(16)
    first, second = mech.links[3].name, mech.links[9].name
    names = [f"{first}.mass", f"{second}.com", f"{mech.names[2]}.damping", "gravity", f"{first}.pose.x"]
    assert_both_engines_agree(mech, names, np.full(16, 0.1))


def test_a_load_that_does_not_turn_does_not_where_a_frame_is_moved_either():
    """A load of WRENCH in the axes of the base was taken for one that turns with its link beside held joints."""
    mech = library.acrobot()
    q, qd, force, point = np.array([0.3, 0.5]), np.array([0.2, -0.1]), np.array([1.0, -3.0, 0.0]), (0.5, 0.0, 0.0)
    wrenches = Wrench(mech, "forearm", frame="base", point=point, load="force").test_output(force, q)[0]
    block = Sensitivity(mech, wrench=True, parameters=["forearm.pose.rz"])
    got = block.test_output(q, qd, 0.0, wrenches)[-1][:, 0]
    load = cs.Load("forearm", force, point=point)
    want = differences(lambda m: m.hybrid_dynamics(q, qd, np.zeros(2), wrench=load).y, mech, "forearm.pose.rz")
    assert_close(got, want, 1e-9)


def test_the_columns_of_parameters_are_the_mechanism_s_for_all_joint_types_and_ports():
    mech = random_mechanism(np.random.default_rng(7), 6, KINDS + COMPOUND)
    joint = mech.names[1].partition("[")[0]  # driven as a whole
    mech = mech.with_drive(active=[name for name in mech.names if name.partition("[")[0] == joint])
    rng = np.random.default_rng(8)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    names = ["link1.com", "link2.pose", "link0.mass", "gravity", "link3.inertia.xy", "link4.wrench"]
    block = Sensitivity(mech, wrench=True, base=True, parameters=names)
    assert block._outport_names[-2:] == ["dy_dbase", "dy_dp"] and block.outwidths[-1] == (mech.n, 20)
    tau = u[mech.actuated_mask & ~mech.active_mask]
    u = np.where(mech.actuated_mask | mech.active_mask, u, 0.0)
    got = block.test_output(q, qd, tau, u[mech.active_mask], loads["wrench"], np.stack(loads["base"]))
    want = mech.parameter_sensitivity(q, qd, u, names, **loads)
    assert_close(got[-1], want.dy_dp, tolerance(mech, q))
    assert_close(got[0], mech.hybrid_sensitivity(q, qd, u, **loads).dy_dq, tolerance(mech, q))


def test_a_start_that_depends_on_a_number_of_the_mechanism_and_its_own_torque():
    """As where the start hangs at a length; the columns of the drive's parameters need signals, these need none."""
    slope = np.array([[0.0], [1.0], [0.0], [0.0]])
    block = Variation("acrobot", directions=[], parameters="forearm.mass", dx0_dp=slope)
    assert list(block._inport_names) == ["q", "qd", "tau"]
    signals = (np.array([0.3, 0.4]), np.array([0.1, 0.2]), 0.5)
    rate = block.deriv(0.0, signals, block.getstate0()).reshape(4, 1)
    mech = library.acrobot()
    d = mech.hybrid_sensitivity(*signals[:2], [0.0, 0.5])
    mass = mech.parameter_sensitivity(*signals[:2], [0.0, 0.5], ["forearm.mass"])
    assert_close(rate, np.vstack([np.zeros((2, 1)), d.dy_dq[:, 1:] + mass.dy_dp]), 1e-12)


def test_slips_are_told_by_name():
    for block in (Sensitivity, Variation):
        with pytest.raises(UnknownName, match=r"'forearm\.mas' does not exist; did you mean 'forearm\.mass'"):
            block("acrobot", parameters=["forearm.mas"])
        with pytest.raises(InvalidValue, match=r"'forearm\.com\[0\]' is among them twice"):
            block("acrobot", parameters=["forearm.com", "forearm.com[0]"])
        with pytest.raises(InvalidType, match="expected names, got 3"):
            block("acrobot", parameters=["forearm.mass", 3])
    with pytest.raises(ShapeError, match=r"dx0_dp: expected shape \(4, 3\)"):
        Variation("acrobot", parameters=["forearm.com"], dx0_dp=np.zeros((4, 1)))
    screw = cs.Mechanism([cs.Link("nut", None, cs.Screw((0, 0, 1), 0.1, name="thread"), mass=1.0)])
    hinge = cs.Mechanism([cs.Link("nut", None, cs.Revolute((0, 0, 1), name="thread"), mass=1.0)])
    block = Sensitivity(screw, parameters=["thread.pitch"])
    with pytest.raises(UnknownName, match=r"thread\.pitch"):
        block.set_param("mech", hinge)
    assert block.mech == screw
