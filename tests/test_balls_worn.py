"""The torque that a ball takes itself: damping, friction, rotors and springs."""

from functools import partial

import numpy as np
import pytest
from ball_towers import ENGINES, LONG, quiet, tower, turned
from closeness import assert_close, central_difference, complex_step
from random_mechanisms import random_inertia, random_pose, random_state

import cstormpy as cs
from cstormpy import lie
from cstormpy.formulations import kim_joints
from cstormpy.mechanism.component_values import component_value, with_components


def worn_joint(rng, kind=cs.Spherical, **options):
    """Return a ball, or a free joint, with damping, friction, rotors and springs along and about each axis."""
    size = 3 if kind is cs.Spherical else 6
    return kind(
        point=rng.normal(size=3) * 0.2,
        damping=rng.uniform(0.1, 0.5, size),
        friction=rng.uniform(0.1, 0.5, size),
        friction_velocity=rng.uniform(0.2, 1.0, size),
        armature=rng.uniform(0.1, 0.3, size),
        stiffness=rng.uniform(0.5, 2.0, size),
        rest=rng.normal(size=size) * 0.7,
        **options,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_damped_ball_slows_down_by_its_angular_velocity(engine):
    """The rate of a rotation vector is no angular velocity: damping of it would bend the axis of a turning sphere.

    ω falls off as exp(-d t / (I + a)), and the sphere turns about it as it was.
    """
    joint = cs.Spherical(damping=0.3, armature=0.2, name="ball")
    mech = cs.Mechanism([cs.Link("sphere", None, joint, mass=1.0, inertia=0.4 * np.eye(3))], actuated=[])
    phi, omega = np.array([0.5, -1.0, 0.4]), np.array([1.0, 2.0, -0.5])
    sim = quiet(engine)
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(mech, q0=phi, qd0=np.linalg.solve(joint.subspace(phi)[:3], omega), name="plant")
    out = sim.run(bd, T=2.0, solver="DOP853", rtol=1e-10, atol=1e-10)
    rate = joint.subspace(out.x[-1, :3])[:3] @ out.x[-1, 3:]
    np.testing.assert_allclose(rate, omega * np.exp(-2.0 * 0.3 / 0.6), atol=1e-8)
    turned = lie.exp_so3(phi) @ lie.exp_so3(omega * (0.6 / 0.3) * (1.0 - np.exp(-2.0 * 0.3 / 0.6)))
    np.testing.assert_allclose(joint.motion(out.x[-1, :3])[:3, :3], turned, atol=1e-8)


def test_a_rotor_on_a_ball_is_a_body_that_turns_with_the_link():
    """Where the parent rests, three rotors about the axes of the link are as much more inertia about the centre."""
    rng = np.random.default_rng(4)
    rotors, com = np.array([0.1, 0.3, 0.2]), rng.normal(size=3)
    bare = cs.Link("top", None, cs.Spherical(), random_pose(rng), 2.0, com, random_inertia(rng))
    worn = cs.Mechanism([bare.replace(joint=cs.Spherical(armature=rotors))])
    heavy = cs.Mechanism([bare.replace(inertia=bare.inertia + np.diag(rotors))])
    q, qd, tau = random_state(rng, worn, 9)
    assert_close(worn.forward_dynamics(q, qd, tau), heavy.forward_dynamics(q, qd, tau), 1e-12)
    one, other = worn.inertial(q, qd), heavy.inertial(q, qd)
    for name in ("mass_matrix", "kinetic", "kinetic_by_q", "kinetic_by_qd"):
        assert_close(getattr(one, name), getattr(other, name), 1e-12)
    assert_close(worn.energy(q[0], qd[0]), heavy.energy(q[0], qd[0]), 1e-12)
    d, e = worn.hybrid_sensitivity(q, qd, tau), heavy.hybrid_sensitivity(q, qd, tau)
    for name in ("dy_dq", "dy_dqd", "dy_du"):
        assert_close(getattr(d, name), getattr(e, name), 1e-11)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_energy_that_worn_balls_lose_is_the_integral_of_their_power(engine):
    """Kinetic and potential energy, rotors included, fall by the work ∫ ω · (d ω + f tanh(ω / v)) dt."""
    rng = np.random.default_rng(8)
    body = {"mass": 1.0, "com": (0.1, -0.4, 0.2), "inertia": np.diag([0.1, 0.15, 0.12])}
    links = [
        cs.Link("ship", None, worn_joint(rng, cs.Free), **body),
        cs.Link("mast", "ship", worn_joint(rng), random_pose(rng), **body),
    ]
    mech, sim = cs.Mechanism(links, actuated=[]), quiet(engine)
    bd = sim.blockdiagram()
    q0, qd0 = 0.3 * rng.normal(size=(2, 9))
    bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="plant")
    out = sim.run(bd, T=0.5, dt=0.005, solver="DOP853", rtol=1e-10, atol=1e-12)
    q, qd = out.x[:, :9], out.x[:, 9:]
    power = np.zeros(len(q))
    for link in mech.links:
        at = mech.coordinates(link.joint_name)
        rates = qd[:, at].copy()
        rates[:, -3:] = np.einsum("sij,sj->si", link.joint.subspace(q[:, at])[:, :3], qd[:, at])
        friction = link.joint.friction * np.tanh(rates / link.joint.friction_velocity)
        power += (rates * (link.joint.damping * rates + friction)).sum(axis=1)
    lost = -np.diff(np.sum(mech.energy(q, qd), axis=0)[[0, -1]])[0]
    weights = np.tile([2.0, 4.0], len(q) // 2)  # Simpson's rule
    work = (0.005 / 3.0) * (weights @ power[:-1] - power[0] + power[-1])
    assert lost > 0.1
    np.testing.assert_allclose(lost, work, rtol=1e-6)


@pytest.mark.slow
def test_numbers_of_a_ball_are_parameters_by_name():
    rng = np.random.default_rng(6)
    mech = tower(rng, ("link2",), [worn_joint(rng, cs.Free), cs.Revolute((1, 2, 3)), worn_joint(rng), worn_joint(rng)])
    q, qd, u = random_state(rng, mech)
    fields = ("armature", "damping", "friction", "friction_velocity", "stiffness", "rest", "point")
    d = mech.parameter_sensitivity(q, qd, u, [f"{joint}.{field}" for joint in ("link0", "link2") for field in fields])
    assert d["link2.damping"].shape == (13, 3)
    for k, name in enumerate(d.components):
        value = component_value(mech, name)
        changed = lambda x, name=name: with_components(mech, {name: x[0]}).hybrid_dynamics(q, qd, u).y  # noqa: E731
        difference = central_difference(changed, np.array([value]), 1e-3)[:, 0]
        np.testing.assert_allclose(d.dy_dp[:, k], difference, atol=1e-8 * max(1.0, np.abs(difference).max()))
    same = mech.with_parameters({"link2.damping": 0.7, "link3.armature": (0.1, 0.2, 0.3)})
    assert [freedom.damping for freedom in same.freedoms[7:10]] == [0.7] * 3
    np.testing.assert_array_equal(same.joint("link2").rest, mech.joint("link2").rest)
    assert cs.Mechanism.from_dict(same.to_dict()) == same


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cs.Spherical(damping=-1.0, name="hip"), r"joint 'hip\[0\]': damping: must not be negative"),
        (lambda: cs.Free(armature=(1, 2, 3), name="trunk"), r"joint 'trunk': armature: expected shape \(6,\)"),
        (lambda: cs.Spherical(rest=(0, 5, 5), name="hip"), r"joint 'hip': rest: its rotation vector is 7.071 rad long"),
        (lambda: cs.Spherical(max_angle=3.2, name="hip"), r"joint 'hip': max_angle: must be at most half a turn"),
        (lambda: cs.Spherical(max_angle=0.0, name="hip"), r"joint 'hip': max_angle: expected a positive number, got 0"),
    ],
)
def test_numbers_that_no_ball_has_are_refused_by_name(make, words):
    with pytest.raises(cs.CstormError, match=words):
        make()


# Its spring -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 2e-5, 1.0, 3.0, 5.0])
def test_a_spring_pulls_along_the_shortest_turn_from_rest(angle):
    """With one constant its moment is k ψ in the axes of the link: R = R_rest exp(ψ), at ψ = 0 too."""
    rng = np.random.default_rng(2)
    rest, axis = np.array([0.3, -1.2, 0.8]), rng.normal(size=3)
    psi = axis * (angle if angle < np.pi else angle - 2 * np.pi) / np.linalg.norm(axis)
    joint = cs.Spherical(stiffness=3.0, rest=rest, name="hip")
    mech = cs.Mechanism([cs.Link("leg", None, joint, mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))], gravity=(0, 0, 0))
    phi = lie.log_so3(lie.exp_so3(rest) @ lie.exp_so3(psi))
    np.testing.assert_allclose(joint.stretch(phi), psi, atol=1e-14)
    back = phi - 2 * np.pi * phi / np.linalg.norm(phi)  # the same rotation
    for q in (phi, back):
        tau = np.linalg.solve(joint.subspace(q)[:3].T, mech.inverse_dynamics(q, np.zeros(3), np.zeros(3)))
        np.testing.assert_allclose(tau, 3.0 * psi, atol=1e-13)
        np.testing.assert_allclose(mech.energy(q, np.zeros(3)), [0.0, 1.5 * psi @ psi], atol=1e-14)


def springy(rng, active=()):
    """Return a worn free body that carries a hinge and two worn balls, the last without wear."""
    last = cs.Spherical(stiffness=4.0, name="link3")
    joints = [worn_joint(rng, cs.Free), cs.Revolute((1, 2, 3), stiffness=0.4), worn_joint(rng), last]
    return tower(rng, active, joints)


@pytest.mark.parametrize("active", [("link2",), pytest.param((), marks=pytest.mark.slow)], ids=["link2", "none"])
@pytest.mark.parametrize("angle", [0.0, 1e-4, 3.0, 5.0])
def test_springs_have_their_share_in_all_derivatives(angle, active):
    rng = np.random.default_rng(7)
    mech = springy(rng, active)
    q, qd, u = random_state(rng, mech)
    q = turned(q, mech, angle, rng)
    assert_close(mech.hybrid_dynamics(q, qd, u).y, kim_joints.hybrid_dynamics(mech, q, qd, u), 1e-10)
    d = mech.hybrid_sensitivity(q, qd, u)
    difference = central_difference(lambda x: mech.hybrid_dynamics(x, qd, u).y, q, 1e-3)
    np.testing.assert_allclose(d.dy_dq, difference, rtol=0, atol=1e-7 * np.abs(d.dy_dq).max())
    if angle > 1e-3:
        assert_close(d.dy_dq, complex_step(lambda x: kim_joints.hybrid_dynamics(mech, x, qd, u), q), 1e-9)
    gradient, direction = rng.normal(size=(2, mech.n))
    assert_close(mech.hybrid_vjp(q, qd, u, gradient)[1], gradient @ d.dy_dq, 1e-10)
    assert_close(mech.hybrid_jvp(q, qd, u, direction, 0 * qd, 0 * u)[1], d.dy_dq @ direction, 1e-10)
    samples = [np.tile(x, (9, 1)) for x in (q, qd, u)]
    assert_close(mech.hybrid_dynamics(*samples).y[4], mech.hybrid_dynamics(q, qd, u).y, 1e-11)
    assert_close(mech.hybrid_sensitivity(*samples).dy_dq[4], d.dy_dq, 1e-10)
    potential = central_difference(lambda x: mech.energy(x, qd)[1], q, 1e-3)
    assert_close(mech.inertial(q).potential_by_q, potential, 1e-8)
    assert_close(mech.inertial(samples[0]).potential_by_q[4], mech.inertial(q).potential_by_q, 1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_body_that_swings_on_springs_keeps_its_energy(engine):
    """Kinetic and potential energy together, through turns beyond π of φ, where the spring is half a turn from rest."""
    joint = cs.Spherical(stiffness=(1.0, 1.5, 2.0), rest=(0.0, 0.0, 2.5), name="ball")
    body = cs.Link("body", None, joint, mass=1.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.2, 0.4]))
    mech, sim = cs.Mechanism([body], actuated=[]), quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1, 0.2, 2.0], qd0=[0.2, 0.1, 3.0], name="plant")
    energy = bd.ENERGY(mech, name="energy")
    bd.connect(plant[0:2], energy[0:2])
    out = sim.run(bd, T=5.0, watch=["energy"], solver="DOP853", rtol=1e-10, atol=1e-11)
    total = out.signal("energy.total").ravel()
    assert out.events
    assert np.ptp(out.signal("energy.potential")) > 1.0
    np.testing.assert_allclose(total, total[0], atol=1e-7)
    np.testing.assert_allclose(np.sum(mech.energy(out.x[:, :3], out.x[:, 3:]), axis=0), total, atol=1e-10)


@pytest.mark.parametrize("engine", LONG)
def test_the_end_of_a_run_follows_the_numbers_of_a_spring(engine):
    joint = cs.Spherical(stiffness=3.0, rest=(0.3, 0.0, -0.4), name="ball")
    body = cs.Link("body", None, joint, mass=1.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.2, 0.4]))
    mech, sim = cs.Mechanism([body], actuated=[]), quiet(engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1, 0.2, 0.3], name="plant")
    names = ["plant.ball.stiffness", "plant.ball.rest"]
    found = sim.gradient(bd, lambda out: out.x[-1], names, T=1.0, solver="DOP853", rtol=1e-10, atol=1e-10)

    def end(numbers):
        plant.mech = mech.with_parameters({"ball.stiffness": numbers[:3], "ball.rest": numbers[3:]})
        return quiet().run(bd, T=1.0, solver="DOP853", rtol=1e-12, atol=1e-12).x[-1]

    expected = central_difference(end, np.array([3.0, 3.0, 3.0, 0.3, 0.0, -0.4]), 1e-3)
    np.testing.assert_allclose(found.gradient, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("short", [1.0, 1e-3, 1e-6, 1e-9, 1e-12])
def test_a_formulation_has_the_spring_at_half_a_turn_from_rest(short):
    """It took the moment of a spring that is half a turn from rest, but for 1e-9, for none, of the oracle of all."""
    rng = np.random.default_rng(11)
    for axis in (*np.eye(3), *rng.normal(size=(5, 3))):
        psi, rest = (np.pi - short) * axis / np.linalg.norm(axis), rng.normal(size=3)
        ball = cs.Spherical(stiffness=rng.uniform(0.5, 2.0, 3), rest=rest)
        mech = cs.Mechanism([cs.Link("leg", None, ball, mass=1.0, inertia=np.eye(3))], gravity=(0, 0, 0))
        q, still = lie.log_so3(lie.exp_so3(rest) @ lie.exp_so3(psi)), np.zeros(3)
        table = partial(kim_joints.inverse_dynamics, mech, qd=still, qdd=still)
        assert_close(table(q), mech.inverse_dynamics(q, still, still), 1e-12)
        assert_close(complex_step(table, q), mech.inverse_sensitivity(q, still, still).dy_dq, 1e-10)


@pytest.mark.filterwarnings("error")
def test_a_spring_that_is_relaxed_but_for_rounding_has_no_nan_in_between():
    """A cosine of 1 + 2e-16 went through arccos, with a warning, though the sine was taken."""
    rng = np.random.default_rng(3)
    for rest in rng.normal(size=(50, 3)):
        joint = cs.Spherical(stiffness=1.0, rest=rest)
        assert_close(joint.stretch(rest), np.zeros(3), 1e-15)
        half = rest + np.pi * rest / np.linalg.norm(rest)
        assert_close(np.linalg.norm(joint.stretch(half)), np.pi, 1e-14)
