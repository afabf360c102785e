"""Gradients of runs to numbers of mechanisms: against the closed-form sensitivities, carried along the same steps."""

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import InvalidValue, UnknownName
from cstormpy.linkage.components import components

T, H = 0.2, 0.02


def spatial():
    """Return an arm of a hinge off its link's origin, a screw and a slide, none along an axis of a frame."""
    body = {"mass": 1.2, "com": (0.3, 0.1, -0.05), "inertia": np.diag([0.1, 0.2, 0.25])}
    pose = np.eye(4)
    pose[:3, 3] = 0.4, 0.1, 0.2
    links = [
        cs.Link("base_link", None, cs.Revolute((0, 0, 1), point=(0.1, 0.2, 0.0), damping=0.1, name="waist"), **body),
        cs.Link("arm", "base_link", cs.Screw((0, 1, 1), 0.1, friction=0.2, name="screw"), pose=pose, **body),
        cs.Link("tool", "arm", cs.Fixed(name="weld"), pose=pose, **body),
        cs.Link("slide", "tool", cs.Prismatic((1, 2, 0), stiffness=3.0, rest=0.1), pose=pose, **body),
    ]
    return cs.Mechanism(links)


def wired(engine, mech, q0, qd0=None):
    sim = cs.Simulation(live=False, engine=engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="plant")
    motors = bd.CONSTANT(np.full(len(mech.actuated), 0.4), name="motors")
    bd.connect(motors, plant.tau)
    return sim, bd


def carried(mech, q0, qd0, names, tau):
    """Return q at the end and its derivatives, by the method of Runge and Kutta on state and variation."""
    n, k = mech.n, sum(len(components(mech)[name]) for name in names)

    def rate(x, S):
        q, qd = x[:n], x[n:]
        d, p = mech.hybrid_sensitivity(q, qd, tau), mech.parameter_sensitivity(q, qd, tau, names)
        return np.concatenate([qd, d.y]), np.concatenate([S[n:], d.dy_dq @ S[:n] + d.dy_dqd @ S[n:] + p.dy_dp])

    x, S = np.concatenate([q0, qd0]), np.zeros((2 * n, k))
    for _ in range(round(T / H)):
        slopes = [rate(x, S)]
        for part in (0.5, 0.5, 1.0):
            slopes.append(rate(x + part * H * slopes[-1][0], S + part * H * slopes[-1][1]))
        x, S = (
            a + H / 6 * (s[0] + 2 * s[1] + 2 * s[2] + s[3])
            for a, s in zip((x, S), zip(*slopes, strict=True), strict=True)
        )
    return x, S


def names_of(mech):
    known = components(mech)
    inner = {part.name for name, parts in known.items() for part in parts if part.name != name}
    return [name for name in known if name not in inner and not name.endswith(".wrench")]


SOME = [
    "base_link.inertia.xy", "waist.point[0]", "waist.damping", "arm.pose.ry", "screw.axis[0]", "screw.pitch",
    "screw.friction_velocity", "tool.mass", "slide.com[2]", "slide.rest", "gravity[1]",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("names", [SOME, None], ids=["some", "all"])
def test_a_run_knows_its_derivative_to_every_number_of_its_mechanism(names):
    mech, q0, qd0 = spatial(), [0.3, 0.5, 0.2], [0.5, -0.4, 0.3]
    names, found = names or names_of(mech), {}
    for engine in ("interpreted", "compiled"):
        sim, bd = wired(engine, mech, q0, qd0)
        found[engine] = sim.gradient(bd, lambda out: out.x[-1], names, T=T, dt=H, solver="RK4")
    x, S = carried(mech, np.array(q0), np.array(qd0), names, np.full(3, 0.4))
    assert found["compiled"].parameters == tuple(part.name for name in names for part in components(mech)[name])
    np.testing.assert_allclose(found["compiled"].cost, x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["interpreted"].gradient, found["compiled"].gradient, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["compiled"].gradient, S, rtol=0, atol=1e-10)
    assert (np.abs(S).max(axis=0) > 1e-6).mean() > 0.6
    assert bd.blocknames["plant"].mech == mech


@pytest.fixture(scope="module")
def acrobot():
    mech = cs.library.acrobot("rods")
    sim, bd = wired("compiled", mech, [0.3, 0.5])
    watch = bd.ENERGY(mech, name="energy")
    bd.connect(bd.blocknames["plant"][0:2], watch[0:2])
    return sim, bd


def test_a_name_alone_stands_for_the_number_in_all_blocks_that_have_it(acrobot):
    sim, bd = acrobot
    options = {"T": 0.1, "dt": 0.02, "solver": "RK4", "watch": ["energy"]}

    def cost(out):
        return out.signal("energy.kinetic")[-1]

    everywhere = sim.gradient(bd, cost, "forearm.mass", **options).gradient
    single = [sim.gradient(bd, cost, f"{block}.forearm.mass", **options).gradient for block in ("plant", "energy")]
    assert all(abs(part[0]) > 1e-4 for part in single)
    np.testing.assert_allclose(everywhere, sum(single), rtol=1e-9)


def test_a_thin_rods_inertia_and_a_bearing_without_damping_have_derivatives_too(acrobot):
    """The inertia stands at the border of what a body can have, the damping at that of what a joint can."""
    sim, bd = acrobot
    mech = bd.blocknames["plant"].mech
    names = ["plant.forearm.inertia.zz", "plant.elbow.damping"]
    found = sim.gradient(bd, lambda out: out.x[-1], names, T=T, dt=H, solver="RK4")
    _, S = carried(mech, np.array([0.3, 0.5]), np.zeros(2), [name.partition(".")[2] for name in names], [0.0, 0.4])
    np.testing.assert_allclose(found.gradient, S, rtol=0, atol=1e-10)
    assert np.abs(S).max(axis=0).min() > 1e-4 and bd.blocknames["plant"].mech is mech


def test_tune_finds_the_mass_and_the_length_with_which_a_run_ends_as_another_did():
    truth = cs.library.acrobot("teaching")
    sim, bd = wired("compiled", truth, [0.3, 0.5])
    options = {"T": 0.4, "dt": 0.02, "solver": "RK4"}
    wanted = sim.run(bd, **options).x
    wrong = truth.with_parameters({"forearm.mass": 1.1 * truth.link("forearm").mass})
    bd.blocknames["plant"].set_param("mech", wrong)
    tuned = sim.tune(bd, lambda out: (out.x - wanted).ravel(), ["forearm.mass", "forearm.com[0]"], **options)
    assert tuned.applied and tuned.cost < 1e-16
    np.testing.assert_allclose(tuned.after, [truth.link("forearm").mass, truth.link("forearm").com[0]], rtol=1e-6)
    assert bd.blocknames["plant"].mech.link("forearm").mass == tuned.after[0]


def test_directions_that_stay_perpendicular_do_not_change_one_by_one():
    """Differences were taken to directions that are not, which the joint refused by their cosine, or not, by chance."""
    body = {"mass": 1.2, "com": (0.3, 0.1, -0.05), "inertia": np.diag([0.1, 0.2, 0.25])}
    sim, bd = wired("compiled", cs.Mechanism([cs.Link("puck", None, cs.Planar(), **body)]), [0.1, 0.2, 0.3])
    for name in ("puck.axes", "plant.puck.axes[0,1]", "puck.axes[1,2]"):
        with pytest.raises(InvalidValue, match=r"puck\.axes\[.*cannot change alone.*puck\.pose\.rx"):
            sim.gradient(bd, "plant.puck[2].q", name, T=T)


def test_slips_are_told_by_name(acrobot):
    sim, bd = acrobot
    for name, kind, text in [
        ("forearm.mas", UnknownName, "'forearm.mass'"),
        ("plant.forearm.comm", UnknownName, "'forearm.com'"),
        ("plant.forarm.com", UnknownName, "'forearm.com'"),
        ("plant.forearm.wrench", InvalidValue, "port"),
        ("nothing.mass", UnknownName, "nothing"),
    ]:
        with pytest.raises(kind, match=text):
            sim.gradient(bd, "plant.shoulder.q", name)
    with pytest.raises(InvalidValue, match="before all of them, or before none"):
        sim.gradient(bd, "plant.shoulder.q", ["forearm.mass", "plant.forearm.com"])
    massless = wired("compiled", cs.library.acrobot().with_parameters({"forearm.mass": 0.0}), [0.3, 0.5])
    with pytest.raises(InvalidValue, match=r"forearm\.mass is 0"):
        massless[0].gradient(massless[1], "plant.shoulder.q", "forearm.mass")
