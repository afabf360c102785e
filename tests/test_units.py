"""What is said of a mechanism does not depend on the units of length, mass and time in which it is told."""

import numpy as np
import pytest
from closed_states import STARTS
from closeness import assert_close
from unit_systems import in_units

import cstormpy as cs
from cstormpy.control.goal import upright

MICRO_AND_HUGE = [(1e-4, 1e4, 1e4), (1e4, 1e-4, 1e-4), (1e3, 1e3, 1.0), (1e-3, 1e-3, 1.0)]
"""Units of length, mass and time as parts of these: loads of 1e-12 to 1e12, and millimetres and grams."""


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
@pytest.mark.parametrize("name", ["acrobot", "cart_pole"])
def test_the_highest_posture_and_equilibria_are_found(name, units):
    """Small loads were taken for nothing, and rounding of large ones for what is left of a load."""
    mech = cs.library.get(name)
    there, scales = in_units(mech, *units)
    assert upright(there) / scales == pytest.approx(upright(mech), abs=1e-9)
    load = units[1] * units[0] ** 2 / units[2] ** 2 / max(1.0, units[0])
    start = np.array([0.3, 1.2])
    found = there.trim(start * scales, tau=0, tolerance=1e-9 * load).q / scales
    assert found == pytest.approx(mech.trim(start, tau=0).q, abs=1e-6)


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
def test_equilibria_of_closed_mechanisms_are_found(units):
    """Lengths, angles, torques and multipliers were compared as numbers: the search ended in open postures."""
    mech = cs.library.four_bar()
    there, _ = in_units(mech, *units)
    load = units[1] * units[0] ** 2 / units[2] ** 2
    start = mech.project([0.3, 0.5, 1.0])[0]
    assert there.trim(start, tau=0, tolerance=1e-9 * load).q == pytest.approx(mech.trim(start, tau=0).q, abs=1e-6)


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
def test_sliding_joints_are_closed_alike(units):
    """Steps of a slide were a metre at most, and random starts a few metres beside: millimetres were never reached."""
    mech = cs.library.slider_crank()
    there, scales = in_units(mech, *units)
    start = np.full(3, 0.3)
    q = mech.project(start)[0]
    assert there.project(start * scales)[0] / scales == pytest.approx(q, abs=1e-6)
    assert there.mobility(there.project(q * scales)[0]) == mech.mobility(q)
    assert there.assemblies(q * scales, hold=["crank"]) / scales == pytest.approx(
        mech.assemblies(q, hold=["crank"]), abs=1e-6
    )


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
@pytest.mark.parametrize("name", ["acrobot", "cart_pole"])
def test_regulators_are_alike(name, units):
    """Numbers of a model, in 1/s² and 1/(kg m²), were compared with one another: its modes were "not reached"."""
    L, M, T = units
    mech = cs.library.get(name)
    there, scales = in_units(mech, *units)
    states, motor = np.concatenate([scales, scales / T]), (M * L**2 / T**2 / scales)[mech.actuated_mask]
    own = cs.control.LQR(mech, Q=np.ones(4), R=np.ones(len(motor)))
    law = cs.control.LQR(there, Q=1.0 / states**2, R=1.0 / motor**2)
    assert law.K * states / motor[:, None] == pytest.approx(own.K, rel=1e-6)


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
@pytest.mark.parametrize("shape", [(4,), (2, 4)])
def test_a_freedom_without_an_actuator_is_refused(units, shape):
    """A load of less than 1e-9 N m passed for nothing, whatever the others were."""
    mech = cs.library.five_bar().with_drive(actuated=["left_shoulder"])
    there, _ = in_units(mech, *units)
    q = np.broadcast_to(mech.project(np.full(4, 0.4))[0], shape)
    with pytest.raises(cs.CstormError, match=r"freedom.* have no actuator"):
        there.inverse_dynamics(q, np.zeros(shape), np.zeros(shape))


@pytest.mark.parametrize("T", [1.0, 1e4])
def test_accelerations_that_open_loops_are_refused(T):
    """What they missed was compared with 1 rad/s²: in slow time all accelerations passed."""
    there, _ = in_units(cs.library.four_bar(), 1.0, 1.0, T)
    q, still = there.project(np.full(3, 0.3))[0], np.zeros(3)
    with pytest.raises(cs.CstormError, match=r"the accelerations open it .*; an optimal motion keeps it closed"):
        there.inverse_dynamics(q, still, np.ones(3) / T**2)
    driven = there.with_drive(actuated=["crank", "rocker"], active=["crank", "rocker"])
    with pytest.raises(cs.CstormError, match="contradict it"):
        driven.hybrid_dynamics(q, still, np.array([1.0, 0.0, 5.0]) / T**2)


POWERS_OF_TWO = [(2.0**10, 2.0**10, 1.0), (2.0**-12, 2.0**12, 2.0**-9)]
"""Units that round nothing: what is found in them is the same to the last digit."""


def a_log(mech, scales, units):
    """Return random closed motions with the torques that make them and some noise, told in units, and the noise."""
    (L, M, T), rng = units, np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 60, mech.n))
    if mech.loops:
        q, qd = mech.project(STARTS["slider_crank"] + 0.5 * q, 3.0 * qd)
        tau = np.where(mech.actuated_mask, 5.0 * qdd, 0.0)
        qdd = np.array(mech.forward_dynamics(q, qd, tau))
    else:
        tau = mech.inverse_dynamics(q, qd, qdd)
    tau = tau + 0.3 * mech.actuated_mask * rng.normal(size=tau.shape)
    return {"q": q * scales, "qd": qd * scales / T, "qdd": qdd * scales / T**2, "tau": tau * M * L**2 / T**2 / scales}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cart_pole", "slider_crank"])
def test_what_is_identified_is_the_same_model(name):
    """Masses were compared with moments and inertias, and torques with forces: of 6 base parameters 2 were found.

    Bodies were held to what can be by eigenvalues in kg and kg m², and no random posture of a small slider could be
    closed.
    """
    mech = cs.library.get(name)
    mech = mech.with_parameters({f"{joint}.damping": 0.05 for joint in mech.names})
    wrong = mech.with_parameters({f"{link.name}.mass": 1.4 * link.mass for link in mech.links})
    unknown = [*(link.name for link in mech.links), "*.damping"]
    own = cs.identify(wrong, a_log(mech, 1.0, (1.0, 1.0, 1.0)), unknown)
    assert not own.plain
    for L, M, T in POWERS_OF_TWO:
        there, scales = in_units(wrong, L, M, T)
        found = cs.identify(there, a_log(mech, scales, (L, M, T)), unknown)
        assert (len(found.base), found.rank, found.plain) == (len(own.base), own.rank, own.plain)
        numbers = M * L ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        assert found.mechanism.inertial_numbers.reshape(-1, 10) / numbers == pytest.approx(
            own.mechanism.inertial_numbers.reshape(-1, 10), rel=1e-9, abs=1e-9
        )
        damping, before = ([joint.damping for joint in m.freedoms] for m in (found.mechanism, own.mechanism))
        assert np.array(damping) * scales**2 * T / (M * L**2) == pytest.approx(before, rel=1e-9, abs=1e-9)
        assert found.noise * scales * T**2 / (M * L**2) == pytest.approx(own.noise, rel=1e-9)


@pytest.mark.parametrize("units", [(1e-4, 1.0, 1.0), (1e4, 1.0, 1.0)])
def test_open_states_are_told_alike(units):
    """A millimetre was the border of an open loop: a mechanism of 30 µm was never open, one of 9 km hardly closed."""
    mech = cs.library.slider_crank()
    there, scales = in_units(mech, *units)
    q, qd = mech.project(np.full(3, 0.3), np.ones(3))
    near, apart, tau = q + 1e-5 * np.eye(3)[0], q + 0.01 * np.eye(3)[0], np.zeros(3)
    qdd = mech.forward_dynamics(near, qd, tau)
    assert there.forward_dynamics(near * scales, qd * scales, tau) / scales == pytest.approx(qdd, rel=1e-9)
    tau, unit = mech.inverse_dynamics(near, qd, qdd), units[0] ** 2 / scales
    assert there.inverse_dynamics(near * scales, qd * scales, qdd * scales) / unit == pytest.approx(tau, abs=1e-6)
    for state in (apart, qd), (q, qd + 0.05 * np.eye(3)[0]):
        for one, s in (mech, 1.0), (there, scales):
            with pytest.raises(cs.CstormError, match="project"):
                one.forward_dynamics(state[0] * s, state[1] * s, tau)
            with pytest.raises(cs.CstormError, match="project"):
                one.inverse_dynamics(state[0] * s, state[1] * s, qdd * s)
    opens = qdd + 0.1 * np.eye(3)[2]
    for one, s in (mech, 1.0), (there, scales):
        with pytest.raises(cs.CstormError, match="accelerations open it"):
            one.inverse_dynamics(q * s, qd * s, opens * s)


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_loops_drift_alike(engine):
    """A run took a drift of 1e-10 m away, of a mechanism of 0.2 mm too: its end was off by 8e-6 at a tolerance of 1e-7.

    The tolerance of states is as nothing, so that steps go by the relative one.
    """
    mech, ends = cs.library.four_bar(), []
    q, qd = mech.project(STARTS["four_bar"], np.array([1.0, 0.0, 0.0]))
    for L in (1.0, 2.0**-12):
        there, _ = in_units(mech.with_drive(actuated=[]), L, 1.0, 1.0)
        sim = cs.Simulation(engine=engine, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(there, q0=q, qd0=qd)
        bd.connect(plant.q, bd.NULL())
        ends.append(sim.run(bd, T=1.0, rtol=1e-7, atol=1e-30).x[-1])
    assert ends[1] == pytest.approx(ends[0], abs=2e-7)


@pytest.mark.parametrize("T", [2.0**9, 2.0**13])
def test_equilibria_of_diagrams_are_found_in_slow_time(T):
    """Accelerations of 1e-7 rad/s² passed for nothing from the beginning: the pole stood 5e-4 rad aside, and was right.

    The upright pole is the closed form.
    """
    there, _ = in_units(cs.library.cart_pole(), 1.0, 1.0, T)
    sim = cs.Simulation(progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(there, q0=[0.1, 1.5], name="plant")
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    found = sim.trim(bd)
    assert found.success
    assert found.x == pytest.approx([0.1, np.pi / 2, 0.0, 0.0], abs=1e-8)


@pytest.mark.parametrize("L", [2.0**-10, 2.0**13])
def test_loops_carry_massless_links_alike(L):
    """What loops carry was a mass for each m² of a constraint: of millimetres accelerations were off by 5e-4, and more.

    The witness is the equations of motion with multipliers, solved at once.
    """
    mech = cs.library.four_bar(masses=(0.3, 0.0, 0.5))
    there, _ = in_units(mech, L, 1.0, 1.0)
    q, qd = mech.project(STARTS["four_bar"], np.ones(3))
    A, tau = mech.closure_jacobian(q), np.array([1.0, 2.0, 3.0])
    K = np.block([[mech.mass_matrix(q), -A.T], [A, np.zeros((2, 2))]])
    right = np.concatenate([tau - mech.bias(q, qd), -mech.closure_jacobian_rate(q, qd) @ qd])
    wanted = np.linalg.solve(K, right)[:3]
    assert there.forward_dynamics(q, qd, tau * L**2) == pytest.approx(wanted, rel=1e-9)
    rows = (np.stack([x, x, x]) for x in (q, qd, tau * L**2))
    assert there.forward_dynamics(*rows)[2] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("L", [2.0**-13, 2.0**13])
def test_joints_are_locked_alike(L):
    """Of large closed mechanisms the mass drowned in what the loops carry: rates were off by 1e-8."""
    mech = cs.library.five_bar()
    there, _ = in_units(mech, L, 1.0, 1.0)
    q, qd = mech.project(STARTS["five_bar"], np.linspace(1.0, 2.0, 4))
    after, impulse = mech.lock(q, qd, ["left_shoulder"])
    found, pushed = there.lock(q, qd, ["left_shoulder"])
    assert found == pytest.approx(after, abs=1e-12)
    assert pushed / L**2 == pytest.approx(impulse, abs=1e-12)


def test_small_slides_leave_their_limits():
    """A micrometre beside a limit was the error of an integration, of a slide of ten micrometres too."""
    cart = cs.Link("cart", None, cs.Prismatic([1.0, 0.0, 0.0], limits=cs.Limits(position=(-1.0, 1.0))), mass=1.0)
    bob = cs.Link("bob", "cart", cs.Fixed(), pose=[0.0, 1.0, 0.0], mass=1.0)
    there, scales = in_units(cs.Mechanism([cart, bob], actuated=[]), 1e-5, 1.0, 1.0)
    sim = cs.Simulation(progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.HYBRIDDYNAMICS(there, qd0=1.05 * scales).q, bd.NULL())
    assert len(sim.run(bd, T=1.0, atol=1e-15).left_limits) == 1


@pytest.mark.parametrize("L", [1e-4, 1e3, 1e4])
def test_poses_are_reached_by_slides_alike(L):
    """Where the way to a frame has no length a metre counted as much as a radian: a cart in mm never came."""
    there, scales = in_units(cs.library.cart_pole(), L, 1.0, 1.0)
    q = np.array([0.3, 0.7]) * scales
    found = there.inverse_kinematics("pole", there.forward_kinematics(q)[-1], 2.0 * q, tolerance=(1e-10, 1e-10 * L))
    assert found.reached and found.starts == 1
    assert found.q / scales == pytest.approx([0.3, 0.7], abs=1e-9)


@pytest.mark.slow
def test_what_explains_a_motion_is_the_same_model():
    """Columns of numbers that a motion does not tell were rounding or not by their units: values were off by 0.007."""
    truth = cs.library.planar_2r().with_drive(actuated=[])
    wrong = truth.with_parameters({"forearm.mass": 1.8})
    sim = cs.Simulation(progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.HYBRIDDYNAMICS(truth, q0=[0.3, 0.5], qd0=[1.0, -2.0], name="plant").q, bd.NULL())
    out = sim.run(bd, T=0.3, log_dt=0.02, watch=["plant.q"])
    q = out.signal("plant.q") + 1e-3 * np.random.default_rng(0).normal(size=(len(out.t), 2))
    t, tau = out.t, np.zeros(q.shape)
    unknown = ["forearm", "*.damping"]
    own = cs.identify(wrong, {"t": t, "q": q, "tau": tau}, unknown, form="output", max_step=0.05)
    for L, M, _ in POWERS_OF_TWO:
        log = {"t": t, "q": q, "tau": tau * M * L**2}
        found = cs.identify(in_units(wrong, L, M, 1.0)[0], log, unknown, form="output", max_step=0.05)
        assert found.undetermined == own.undetermined
        sizes = np.array([M, L, L, L, *8 * [M * L**2]])
        assert found.values / sizes == pytest.approx(own.values, rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cart_pole", "slider_crank"])
def test_what_explains_turns_and_slides_is_the_same_model(name):
    """The first fit weighed radians, metres and rates as numbers: values were off by 6e-4, noise by a half."""
    truth = cs.library.get(name).with_drive(actuated=[])
    truth = truth.with_parameters({f"{joint}.damping": 0.05 for joint in truth.names})
    heavy = truth.links[1]
    wrong = truth.with_parameters({f"{heavy.name}.mass": 1.4 * heavy.mass})
    q0, qd0 = [0.5, -0.3, 0.0][: truth.n], [4.0, 0.0, 0.0][: truth.n]
    q0, qd0 = truth.project(q0, qd0) if truth.loops else (q0, qd0)
    sim = cs.Simulation(progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.HYBRIDDYNAMICS(truth, q0=q0, qd0=qd0, name="plant").q, bd.NULL())
    out = sim.run(bd, T=0.3, log_dt=0.02, watch=["plant.q", "plant.qd"])
    noise, tau = np.random.default_rng(0).normal(size=(2, len(out.t), truth.n)), np.zeros((len(out.t), truth.n))
    q, qd = out.signal("plant.q") + 1e-3 * noise[0], out.signal("plant.qd") + 5e-3 * noise[1]
    unknown, own = [f"{heavy.name}.mass", "*.damping"], None
    for L, M, T in [(1.0, 1.0, 1.0), *POWERS_OF_TWO]:
        there, scales = in_units(wrong, L, M, T)
        log = {"t": out.t * T, "q": q * scales, "qd": qd * scales / T, "tau": tau}
        found = cs.identify(there, log, unknown, form="output", max_step=0.05 * T)
        values = found.values / np.array([M, *M * L**2 / T / scales**2])
        noises = found.noise / np.array([*scales, *scales / T])
        own = own or (values, noises)
        assert values == pytest.approx(own[0], rel=1e-8) and noises == pytest.approx(own[1], rel=1e-8)


@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("L", [1e-9, 1e-4, 1e4])
def test_arms_are_told_by_tables_alike(L, convention):
    """Offsets below 1e-10 m were none: an arm of a micrometre came back as another one, its torques off by 3e-6."""
    turned = np.array([[0.6, 0.0, 0.8, 0.3], [0.48, 0.8, -0.36, -0.2], [-0.64, 0.6, 0.48, 0.1], [0.0, 0.0, 0.0, 1.0]])
    poses = [turned, (0.0, 1e-5, 0.0), turned, turned]
    joints = [cs.Revolute((0, 0.6, 0.8), point=(0.1, 0.0, 0.2)), cs.Revolute((0, 0.6, 0.8), point=(0.1, 0.0, 0.2))]
    joints += [cs.Prismatic((0.6, 0.0, 0.8)), cs.Revolute((1, 0, 0), point=(0.0, 0.1, 0.0))]
    links = [
        cs.Link(f"link{k}", f"link{k - 1}" if k else None, joint, pose, 1.0 + k, (0.1, 0.2, 0.0), (0.01, 0.02, 0.02))
        for k, (joint, pose) in enumerate(zip(joints, poses, strict=True))
    ]
    arm = cs.Mechanism(links, gravity=(0, 0, -9.81))
    there, scales = in_units(arm, L, 1.0, 1.0)
    table = there.to_dh(convention)
    back = cs.Mechanism.from_dh(table.rows, convention, base=table.base, gravity=there.gravity)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 4))
    torques = back.inverse_dynamics(q * scales, qd * scales, qdd * scales) / L**2 * scales
    assert_close(torques, arm.inverse_dynamics(q, qd, qdd), 1e-9)


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
def test_bodies_of_mjcf_are_read_alike(units):
    """Inertias of geoms by density, a slide, springs and a loop, in a file that is written in such units."""
    mech, (there, scales) = mjcf(1.0, 1.0, 1.0), (mjcf(*units), np.array([1.0, 1.0, units[0], 1.0]))
    L, M, T = units
    start, rates, torques = np.array([[0.2, 0.3, 0.05, 0.4], [1.0, -1.0, 0.3, 0.2], [1.0, 0.0, 2.0, 0.0]])
    q, qd = mech.project(start, rates)
    found, found_rates = there.project(start * scales, rates * scales / T)
    assert_close(found / scales, q, 1e-12)
    assert_close(found_rates / scales * T, qd, 1e-12)
    qdd = there.forward_dynamics(found, found_rates, torques * M * L**2 / T**2 / scales)
    assert_close(qdd / scales * T**2, mech.forward_dynamics(q, qd, torques), 1e-9)


def mjcf(L, M, T):
    """An arm with a slide that is pinned to a rod, in units of which metre, kilogram and second are so many."""

    def of(unit, *values):
        return " ".join(repr(unit * value) for value in values)

    return cs.Mechanism.from_mjcf(f"""<mujoco><compiler angle="radian"/>
    <option gravity="0 {of(L / T**2, -9.81)} 0"/><default><geom density="{of(M / L**3, 1000.0)}"/></default><worldbody>
    <body name="a" pos="{of(L, 0, 0.2, 0)}">
      <joint axis="0 0 1" damping="{of(M * L**2 / T, 0.1)}" armature="{of(M * L**2, 0.02)}"/>
      <geom type="capsule" fromto="{of(L, 0, 0, 0, 0.5, 0, 0)}" size="{of(L, 0.03)}"/>
      <body name="b" pos="{of(L, 0.5, 0, 0)}">
        <joint axis="0 0 1" stiffness="{of(M * L**2 / T**2, 3.0)}" springref="0.3"/>
        <geom type="box" size="{of(L, 0.2, 0.02, 0.03)}" pos="{of(L, 0.2, 0, 0)}"/>
        <body name="c" pos="{of(L, 0.4, 0, 0)}">
          <joint type="slide" axis="1 0 0" damping="{of(M / T, 2.0)}" stiffness="{of(M / T**2, 20.0)}"/>
          <geom type="sphere" size="{of(L, 0.05)}" mass="{of(M, 0.3)}"/>
    </body></body></body>
    <body name="rod" pos="{of(L, 0.6, 0.2, 0)}"><joint axis="0 0 1"/>
      <geom type="cylinder" size="{of(L, 0.02, 0.3)}" euler="0 1.5707963267948966 0" pos="{of(L, 0.3, 0, 0)}"/></body>
    </worldbody><equality><connect body1="c" body2="rod" anchor="0 0 0"/></equality></mujoco>""")
