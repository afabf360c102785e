"""Joints that move no inertia and numbers that overflow: refused, with the joint and the row."""

import numpy as np
import pytest
from mechanism_calls import Z, hybrid, prepared, prepared_sensitivity, sensitivity
from random_mechanisms import random_pose

from cstormpy.errors import InvalidValue, NonFinite, SingularInertia
from cstormpy.formulations import armstrong, johnson_su, kim, kim_joints, sohl_bobrow
from cstormpy.kernels.layout import LANES
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, Screw, library

POINT = {"mass": 1.0, "com": (1.0, 0.0, 0.0)}
#: Mechanisms of two joints, the joint whose pivot vanishes, and a state in which it does.
SINGULAR = {
    "a leaf without mass": ([Link("a", None, Revolute((0, 0, 1)), **POINT), Link("b", "a", Revolute((0, 0, 1)))], "b"),
    "nothing has mass": ([Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Revolute((0, 0, 1)))], "b"),
    "one axis twice": ([Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Revolute((0, 0, 1)), **POINT)], "a"),
    "a slide without mass": (
        [Link("a", None, Prismatic((0, 0, 1)), **POINT), Link("b", "a", Prismatic((0, 1, 1)), inertia=np.eye(3))],
        "b",
    ),
    "one slide twice": ([Link("a", None, Prismatic((1, 1, 0))), Link("b", "a", Prismatic((1, 1, 0)), mass=2.0)], "a"),
    "a screw twice": ([Link("a", None, Screw((0, 1, 0), 0.2)), Link("b", "a", Screw((0, 1, 0), 0.2), **POINT)], "a"),
    "a mass on its axis": (
        [Link("a", None, Revolute((0, 0, 1)), **POINT), Link("b", "a", Revolute((0, 0, 1)), mass=1)],
        "b",
    ),
}


FORMULATIONS = (
    armstrong.forward_dynamics,
    johnson_su.articulated_body,
    johnson_su.forward_dynamics,
    kim.hybrid_dynamics,
    kim_joints.hybrid_dynamics,
    sohl_bobrow.hybrid_dynamics,
    sohl_bobrow.hybrid_dynamics_serial,
)


@pytest.mark.parametrize("seed", range(5))
def test_a_mass_on_an_axis_that_is_not_through_its_links_origin(seed):
    """Rounding of where it is became an arm of its own, by which the joint began to turn with 1e17 rad/s²."""
    pose = random_pose(np.random.default_rng(seed))
    arm, joint = Link("a", None, Revolute((0, 0, 1)), **POINT), Revolute((0, 0, 1), armature=0.2).from_parent(pose)
    wheel = Link("b", "a", joint, pose, mass=1.0, com=joint.point)
    with pytest.raises(SingularInertia, match="joint 'b': moves no inertia"):
        Mechanism([arm, wheel]).with_parameters({"b.armature": 0.0}).forward_dynamics(Z, Z, Z)
    M = Mechanism([arm, wheel]).mass_matrix(Z)
    np.testing.assert_allclose(M, [[1.0, 0.0], [0.0, 0.2]], atol=1e-14)
    rotor = wheel.replace(inertia=1e-13 * np.eye(3))  # which is no rounding
    tau = Mechanism([arm, rotor]).with_parameters({"b.armature": 0.0}).inverse_dynamics(Z, Z, [0.0, 1.0])
    np.testing.assert_allclose(tau[1], 1e-13, rtol=1e-12)


CASES = [
    (f, case) for f in FORMULATIONS for case in SINGULAR if f is not armstrong.forward_dynamics or "screw" not in case
]


@pytest.mark.parametrize(("function", "case"), CASES, ids=lambda x: x if isinstance(x, str) else x.__module__[22:])
def test_the_formulations_refuse_what_the_kernels_do(function, case):
    """They divided by an inertia that is rounding: a mass on the axis of its joint began to turn with 1e16 rad/s²."""
    links, _ = SINGULAR[case]
    rng = np.random.default_rng(4)
    mech = Mechanism([link.replace(pose=random_pose(rng)) for link in links[:1]] + links[1:])
    turned = random_pose(rng)
    joints = [link.joint.from_parent(turned) for link in links]
    body = {"com": turned[:3, :3].T @ (links[1].com - turned[:3, 3]), "mass": links[1].mass}
    body["inertia"] = turned[:3, :3].T @ links[1].inertia @ turned[:3, :3]
    anywhere = Mechanism([mech.links[0], Link("b", "a", joints[1], turned, **body)])
    for each in (mech, anywhere):
        with pytest.raises(SingularInertia, match="moves no inertia"):
            each.forward_dynamics([0.3, 0.7], [0.1, -0.2], [1.0, 1.0])
        with pytest.raises(SingularInertia, match="moves no inertia"):
            function(each, [0.3, 0.7], [0.1, -0.2], [1.0, 1.0])


@pytest.mark.nojit
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", SINGULAR)
@pytest.mark.parametrize("pose", ["plain", "anywhere"])
def test_a_joint_that_moves_no_inertia_is_named(case, pose):
    links, joint = SINGULAR[case]
    if pose == "anywhere":
        first = random_pose(np.random.default_rng(2))
        links = [
            Link("stand", None, Fixed(), pose=first, mass=1.0),
            Link("a", "stand", links[0].joint, mass=links[0].mass, com=links[0].com, inertia=links[0].inertia),
            links[1],
        ]
    mech = Mechanism(links, active=())
    begin = rf"^joint '{joint}': moves no inertia, so its acceleration is undefined"
    q, qd, u = np.array([0.3, 0.7]), np.array([0.1, -0.2]), np.ones(2)
    for ask in (hybrid, prepared, sensitivity, prepared_sensitivity, Mechanism.forward_dynamics):
        with pytest.raises(SingularInertia, match=begin):
            ask(mech, q, qd, u)
    batch = [np.tile(a, (LANES + 3, 1)) for a in (q, qd, u)]
    in_row = begin.replace("inertia,", "inertia in row 0,")
    for ask in (hybrid, sensitivity, Mechanism.forward_dynamics):
        with pytest.raises(SingularInertia, match=in_row):
            ask(mech, *batch)
    with pytest.raises(SingularInertia, match=in_row):
        mech.hybrid_jvp(*batch, *batch)
    with pytest.raises(SingularInertia, match=in_row):
        mech.hybrid_vjp(*batch, batch[0])
    # prescribed, or with armature, there is no such question
    assert np.isfinite(mech.inverse_dynamics(q, qd, u)).all()
    assert np.isfinite(hybrid(mech.with_drive(active=["a", "b"]), q, qd, u)).all()
    armed = mech.with_parameters({"a.armature": 0.1, "b.armature": 0.1})
    assert np.isfinite(hybrid(armed, q, qd, u)).all()


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.nojit
@pytest.mark.parametrize("row", [0, 5, LANES, 3 * LANES - 1, 3 * LANES + 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_joint_that_moves_no_inertia_in_one_row_is_named_with_the_row(row, threads):
    """A point mass on the second axis turns about the first only where it is off that axis."""
    mech = Mechanism([Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Revolute((0, 1, 0)), **POINT)], active=())
    q = np.zeros((3 * LANES + 2, 2))
    q[row:, 1] = np.pi / 2  # straight up from here on
    nothing = np.zeros_like(q)
    message = rf"^joint 'a': moves no inertia in row {row}, so"
    for ask in (hybrid, sensitivity):
        with pytest.raises(SingularInertia, match=message):
            ask(mech, q, nothing, nothing, threads=threads)
    with pytest.raises(SingularInertia, match=message):
        mech.hybrid_jvp(q, *[nothing] * 5, threads=threads)
    with pytest.raises(SingularInertia, match=message):
        mech.hybrid_vjp(q, *[nothing] * 3, threads=threads)


@pytest.mark.nojit
@pytest.mark.filterwarnings("error")
def test_a_result_that_overflows_is_refused():
    """All numbers given are finite, what comes out is not: an error, and neither infinity nor NaN."""
    mech = library.acrobot(parameters="rods")
    fast = np.array([1e200, 0.0])
    message = r"^the result is not finite although all given numbers are: some are too large$"
    for ask in (hybrid, prepared, sensitivity, prepared_sensitivity, Mechanism.inverse_dynamics):
        with pytest.raises(NonFinite, match=message):
            ask(mech, Z, fast, Z)
    batch = [np.zeros((2 * LANES, 2)) for _ in range(3)]
    batch[1][LANES + 2, 0] = 1e200
    for ask in (hybrid, sensitivity):
        with pytest.raises(NonFinite, match=rf"^the result in row {LANES + 2} is not finite"):
            ask(mech, *batch)


@pytest.mark.nojit
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "ask",
    [
        lambda mech, far, fast: mech.energy(far, fast),
        lambda mech, far, fast: mech.momentum(far, fast),
        lambda mech, far, fast: mech.center_of_mass(far),
        lambda mech, far, fast: mech.forward_kinematics(far),
        lambda mech, far, fast: mech.jacobian(far, "c"),
        lambda mech, far, fast: mech.jacobian_rate(far, fast, "c"),
        lambda mech, far, fast: mech.mass_matrix(far),
    ],
    ids=["energy", "momentum", "center_of_mass", "forward_kinematics", "jacobian", "jacobian_rate", "mass_matrix"],
)
def test_kinematics_and_energy_that_overflow_are_refused(ask):
    slide = Prismatic((1, 0, 0))
    mech = Mechanism([
        Link("a", None, Revolute((0, 0, 1)), mass=1.0),
        Link("b", "a", slide, mass=100.0),
        Link("c", "b", slide, mass=100.0),
    ])  # fmt: skip
    far = fast = np.array([0.5, 1.7e308, 1.7e308])
    with pytest.raises(NonFinite, match=r"is not finite although all given numbers are: some are too large$"):
        ask(mech, far, fast)
    with pytest.raises(NonFinite, match=r"^the result in row 2 is not finite"):
        ask(mech, np.array([0 * far, 0 * far, far]), np.array([0 * fast, 0 * fast, fast]))


def test_what_weighs_nothing_has_no_centre():
    mech = Mechanism([Link("a", None, Revolute((0, 0, 1)), inertia=np.eye(3))])
    with pytest.raises(InvalidValue, match=r"^center_of_mass: "):
        mech.center_of_mass([0.0])
