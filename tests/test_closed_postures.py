"""Postures of closed mechanisms: Jacobians of the closure, projection, assemblies, what cannot be closed."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest
from closed_states import ALL, STARTS, assert_rates_of_closure, state
from closeness import assert_close
from scipy.optimize import least_squares

import cstormpy as cs
from cstormpy.errors import InvalidValue
from cstormpy.formulations import kim
from cstormpy.loops import projection
from cstormpy.loops.assembly import independent_rows
from cstormpy.loops.closure import closure_of
from cstormpy.mechanism.planar import uniform_rod


# ---------------------------------------------------------------- closure
@pytest.mark.parametrize("name", ALL)
def test_the_jacobian_is_the_derivative_of_the_closure_and_its_rate_that_of_the_jacobian(name):
    assert_rates_of_closure(*state(name))


def test_a_batch_is_answered_as_its_samples_are():
    mech = cs.library.five_bar()
    rng = np.random.default_rng(3)
    beside = np.array(STARTS["five_bar"]) + np.repeat([0.2, 2.0], [6, 3])[:, None] * rng.normal(size=(9, 4))
    rates = rng.normal(size=(9, 4))
    q, qd = mech.project(beside, rates)
    for k in range(9):
        assert_close(np.array([q[k], qd[k]]), np.array(mech.project(beside[k], rates[k])), 1e-10)
    assert [x.shape for x in mech.project(beside[:0], rates[:0])] == [(0, 4)] * 2
    u = rng.normal(size=(9, 4))
    r, d = mech.hybrid_dynamics(q, qd, u), mech.hybrid_sensitivity(q, qd, u)
    t = mech.inverse_dynamics(q, qd, r.qdd)
    for k in range(9):
        one = mech.hybrid_dynamics(q[k], qd[k], u[k])
        assert_close(r.y[k], one.y, 1e-13)
        assert_close(r.multipliers[k], one.multipliers, 1e-13)
        assert_close(d.dy_dq[k], mech.hybrid_sensitivity(q[k], qd[k], u[k]).dy_dq, 1e-12)
        assert_close(np.asarray(t[k]), np.asarray(mech.inverse_dynamics(q[k], qd[k], r.qdd[k])), 1e-12)
    assert mech.closure(q).shape == (9, 2) and r.loop_wrenches.shape == (9, 1, 6) and r.rank.tolist() == [2] * 9


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "three_rrr")) for name in STARTS]
)
def test_projection_is_nearest_in_the_mass_metric(name):
    """From nearby and from afar: no direction that keeps the loops closed leads nearer."""
    mech, rng = cs.library.get(name), np.random.default_rng(1)
    for q0 in (np.array(STARTS[name]), *rng.normal(size=(8, mech.n))):
        rate = rng.normal(size=mech.n)
        q, qd = mech.project(q0, rate)
        A, M0, M = mech.closure_jacobian(q), mech.mass_matrix(q0), mech.mass_matrix(q)
        free = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :]
        assert np.abs(free @ M0 @ (q - q0)).max() < 1e-7 and np.abs(free @ M @ (qd - rate)).max() < 1e-12
        assert np.abs(mech.closure(q)).max() < 1e-11 and np.abs(A @ qd).max() < 1e-11


def test_projection_from_afar_is_to_the_nearer_of_two_assemblies_and_makes_no_whole_turns():
    """A rod two turns and more away was called the nearest, or the other assembly, of half of the guesses."""
    ground, crank, rod, rocker = 1.0, 0.35, 0.9, 0.6
    mech, rng = cs.library.four_bar(ground=ground, lengths=(crank, rod, rocker)), np.random.default_rng(1)
    for guess in ([2.4, 0.0, 1.5], [2.6, 0.0, 1.5], *rng.uniform(-2.0, 2.0, (8, 3))):
        pin = crank * np.exp(1j * guess[0])
        reach, to = abs(ground - pin), np.angle(ground - pin)
        bent = np.arccos((rod**2 + reach**2 - rocker**2) / (2 * rod * reach))
        both = [(pin + rod * np.exp(1j * angle), angle) for angle in (to + bent, to - bent)]
        closed = np.array([[angle - guess[0], np.angle(end - ground)] for end, angle in both])
        closed -= 2 * np.pi * np.rint((closed - guess[1:]) / (2 * np.pi))
        away, M = closed - guess[1:], mech.mass_matrix(guess)[1:, 1:]
        nearest = closed[np.argmin(np.einsum("ki,ij,kj->k", away, M, away))]
        assert_close(mech.project(guess, hold=["crank"])[0][1:], nearest, 1e-8)


@pytest.mark.parametrize(
    ("name", "link", "mask"),
    [("four_bar", "coupler_rod", "planar"), ("five_bar", "left_fore", "position"), ("stewart_platform", None, "pose")],
)
def test_inverse_kinematics_closes_the_loops(name, link, mask):
    """It refused mechanisms with loops."""
    mech, rng = cs.library.get(name), np.random.default_rng(5)
    k = mech.link_index(link) if link else next(k for k, end in enumerate(mech.links) if "platform" in end.name)
    start = mech.project(np.array(STARTS.get(name, np.zeros(mech.n))))[0]
    q, _ = mech.project(start + 0.2 * rng.normal(size=(5, mech.n)))
    found = mech.inverse_kinematics(k, mech.forward_kinematics(q)[:, k], start, mask=mask, limits=False)
    assert found.reached.all()
    assert_close(mech.closure(found.q), 0.0 * mech.closure(q), 1e-9)
    at, wanted = (mech.forward_kinematics(x)[:, k, :3, 3] for x in (found.q, q))
    assert_close(at, wanted, 1e-9)


def test_inverse_kinematics_of_a_geared_arm_out_of_reach_and_beside_its_couplings():
    """The nearest posture of those that keep the gear, by looking at all of them; a coupling that the arm does not feel
    is closed with the arm as it is, whatever the fingers did before."""
    arm = cs.library.planar_2r()
    finger = cs.Link("finger", "forearm", cs.Prismatic((0, 1, 0)), mass=0.1)
    links = [*arm.links, finger, finger.replace(name="thumb")]
    gear, grip = cs.Coupling("elbow", "shoulder", 2.0), cs.Coupling("thumb", "finger", -1.0)
    target = np.eye(4)
    target[:3, 3] = 0.3, 1.2, 0.0
    geared = cs.Mechanism(links, loops=[gear, grip])
    found = geared.inverse_kinematics("forearm", target, [0, 0, 0.2, 0.1], tool=[0.7, 0, 0], mask="position")
    angles = np.linspace(-np.pi, np.pi, 20001)
    X = arm.forward_kinematics(np.stack([angles, 2.0 * angles], axis=1))[:, 1]
    apart = np.linalg.norm(X[:, :3, 3] + 0.7 * X[:, :3, 0] - target[:3, 3], axis=1)
    assert not found.reached and np.abs(geared.closure(found.q)).max() < 1e-12
    assert_close(found.error[1], apart.min(), 1e-6)
    gripping = cs.Mechanism(links, loops=[grip])
    target[:3, 3] = 0.6, 0.5, 0.0
    found = gripping.inverse_kinematics("forearm", target, [0, -1, 0.2, 0.1], tool=[0.5, 0, 0], mask="position")
    free = arm.inverse_kinematics("forearm", target, [0, -1], tool=[0.5, 0, 0], mask="position")
    assert found.reached and found.q[:2].tolist() == free.q.tolist()
    assert_close(found.q[3], -found.q[2], 1e-12)


def test_a_posture_in_degrees_is_noted(caplog):
    """The crank was held at 61.5 rad, which is another angle than 61.5 degrees."""
    caplog.set_level("INFO", "cstormpy")
    cs.library.four_bar().project([61.5, 0.0, 1.5], hold=["crank"])
    assert [said.partition(";")[0] for said in caplog.messages] == ["joint 'crank': q 61.5 rad is more than two turns"]


def test_all_assemblies_of_a_four_bar_can_be_had():
    """Coupler above or below: the circles about the crank's tip and the rocker's pivot meet in two points."""
    mech = cs.library.four_bar()
    found = mech.assemblies([0.8, 0.0, 1.5], hold=["crank"])
    tips = [0.9 + 0.5 * np.exp(1j * q[2]) for q in found]
    tip, pivot = 0.3 * np.exp(0.8j), 0.9
    along = (pivot - tip) / abs(pivot - tip)
    x = (abs(pivot - tip) ** 2 + 0.8**2 - 0.5**2) / (2 * abs(pivot - tip))
    wanted = [tip + along * (x + s * 1j * np.sqrt(0.8**2 - x * x)) for s in (1, -1)]
    assert_close(sorted(tips, key=np.imag), sorted(wanted, key=np.imag), 1e-9)
    with pytest.raises(cs.InvalidValue, match=r"assemblies: .* leaves 1 freedom"):
        mech.assemblies([0.8, 0.0, 1.5])
    with pytest.raises(cs.InvalidValue, match="cannot be closed from there"):
        cs.library.four_bar(ground=3.0).assemblies([0.8, 0.0, 1.5], hold=["crank"], tries=3)


def test_assemblies_are_without_the_whole_turns_that_the_search_made():
    """Of an arm held at its tip, elbow up and down by the law of cosines: the shoulder of one was a turn away."""
    tip = np.array([0.6, 0.5])
    arm = cs.library.planar_2r().replace(loops=[cs.Loop("forearm", None, (0.5, 0, 0), (*tip, 0), "pin")])
    elbow = np.arccos(tip @ tip / 0.5 - 1.0)  # both links are half a metre long
    wanted = [[np.arctan2(*tip[::-1]) - side * elbow / 2, side * elbow] for side in (1, -1)]
    for near in (wanted, wanted[::-1]):
        for turns in (0.0, 2.0 * np.pi):
            assert_close(arm.assemblies(np.add(near[0], [0.2, -0.1]) + turns), np.array(near) + turns, 1e-9)


def test_what_is_no_posture_and_no_joint_is_said_by_its_argument():
    mech, q, qd = state("four_bar")
    for ask in (mech.mobility, mech.assemblies):
        with pytest.raises(
            cs.ShapeError, match=r"^q: .* got \(2, 3\); one posture; the coordinates are crank, coupler"
        ):
            ask(np.array([q, q]))
    for ask in (mech.project, mech.assemblies):
        with pytest.raises(cs.InvalidType, match=r"^hold: joint: expected a name, got 0"):
            ask(q, hold=[0])
    with pytest.raises(cs.ShapeError, match=r"^redundancy: .* load: there are none, as none is active"):
        mech.hybrid_dynamics(q, qd, 0.0 * q, redundancy=[1.0])


def test_what_cannot_be_closed_is_said():
    far = cs.library.four_bar(ground=3.0)
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: cannot be closed .* of 2 constraints are independent"):
        far.project([1.0, 0.0, 1.5])
    mech, q, qd = state("four_bar")
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: the rates of the joints that are held contradict"):
        mech.project(q, [1.0, 5.0, -3.0], hold=["crank", "coupler"])
    with pytest.raises(cs.InvalidValue, match=r"^row 1: loop pin: .: cannot be closed"):
        mech.project([q, q + 1.0], hold=mech.names)
    with pytest.raises(
        cs.InvalidValue, match=r"loop pin: .: misses closure by .* between 'rocker_rod' and 'coupler_rod'; mech"
    ):
        mech.hybrid_dynamics(q + np.array([0.1, 0, 0]), qd, np.zeros(3))
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: is left at the rate"):
        mech.forward_dynamics(q, [1.0, 5.0, 3.0], np.zeros(3))
    with pytest.raises(cs.InvalidValue, match="no loops"):
        mech.without_loops().closure(q)
    with pytest.raises(cs.InvalidValue, match="redundancy: is of mechanisms with loops"):
        mech.without_loops().inverse_dynamics(q, qd, q, redundancy="force")


def test_a_start_that_cannot_be_closed_is_given_up_where_what_is_left_is_least(monkeypatch):
    """Three RRR legs with the first held went on for 416 evaluations, most of them beside the end."""
    asked = []
    monkeypatch.setattr(projection, "closure_of", lambda mech, q: asked.append(q) or closure_of(mech, q))
    mech, q0 = cs.library.three_rrr(), np.random.default_rng(0).uniform(-3, 3, (2, 7))[1]
    held = ["shoulder1", "elbow1", "wrist"]
    with pytest.raises(cs.InvalidValue, match="cannot be closed") as said:
        mech.project(q0, hold=held)
    assert len(asked) < 100
    left, q = re.search(r", (\S+) is left .* at q = \((.*)\), where", str(said.value)).groups()
    q = np.array(q.split(", "), dtype=float)
    least = least_squares(lambda free: mech.closure([*q0[:3], *free]), q[3:] + 0.01, xtol=1e-12, ftol=1e-12)
    assert_close(q[3:], least.x, 2e-3)
    assert_close(float(left), np.abs(least.fun).max(), 1e-3)


def test_what_does_not_know_of_loops_is_refused_by_their_name_and_never_open_in_silence():
    mech, q, qd = state("four_bar")
    u = np.zeros(3)
    with pytest.raises(cs.CstormError, match=r"loop 'pin': .*without_loops\(\)"):
        kim.inverse_dynamics(mech, q, qd, u)


def test_one_closed_rotation_is_refused_where_the_links_rotate_otherwise():
    arm = cs.library.puma560()
    mech = cs.Mechanism(arm.links, loops=[cs.Loop(None, arm.links[-1].name, directions="planar")])
    with pytest.raises(cs.InvalidValue, match="closes rotation about z alone, but its links also rotate"):
        mech.closure(np.zeros(6))


def test_dependent_constraints_are_named_and_harmless():
    """A planar four-bar welded by a hinge in space: three constraints of five say nothing new."""
    plain, q, qd = state("four_bar")
    (pin_,) = plain.loops
    mech = plain.replace(loops=[pin_.replace(directions="hinge")])
    m = mech.mobility(q)
    assert (m.freedoms, m.rank, m.constraints) == (1, 2, 5)
    assert m.dependent == ("pin: rotation x", "pin: rotation y", "pin: z")
    assert len(independent_rows(mech)) == 2
    u = np.array([1.0, 0.2, -0.3])
    a, b = plain.hybrid_dynamics(q, qd, u), mech.hybrid_dynamics(q, qd, u)
    assert_close(b.y, a.y, 1e-11)
    assert_close(b.loop_wrenches, a.loop_wrenches, 1e-11)
    assert b.rank == 2


def spherical_four_bar(**drive):
    """Return a four-bar whose axes meet at the origin, closed at zeros: three of its five constraints say nothing."""
    axes = np.array([[0.0, 0.0, 1.0], [0.6, 0.0, 0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])
    bar = {"mass": 1.0, "inertia": (0.02, 0.03, 0.04)}
    links = [
        cs.Link("crank", None, cs.Revolute(axes[0]), com=(0.2, 0.1, 0.3), **bar),
        cs.Link("coupler", "crank", cs.Revolute(axes[1]), com=(0.3, 0.2, 0.3), **bar),
        cs.Link("rocker", None, cs.Revolute(axes[2]), com=(-0.1, 0.4, 0.2), **bar),
    ]
    frame = np.eye(4)
    frame[:3, :3] = np.linalg.qr(np.column_stack([axes[3], axes[0], axes[1]]))[0][:, ::-1]
    frame[:3, 0] *= np.sign(np.linalg.det(frame[:3, :3]))
    frame[:3, 3] = 0.5 * axes[3]
    return cs.Mechanism(links, loops=[cs.Loop("coupler", "rocker", frame, frame, "hinge")], **drive)


def test_a_spherical_linkage_feels_no_more_constraints_where_it_is_a_little_open():
    """Its constraints are dependent in closed states alone: rounded to four digits it was accelerated another way."""
    mech = spherical_four_bar()
    led = mech.with_drive(active=["crank"])
    q, qd = mech.project(np.zeros(3), [1.0, 0.0, 0.0])
    push, still = np.array([[1.0, 0.2, -0.5, 0.3, 0.0, 0.1]] * 3), np.zeros(3)  # which is answered by numbers

    def answers(at):
        torques = np.array([mech.inverse_dynamics(at, qd, qdd, push, redundancy=way) for way in ("torque", "force")])
        return [
            np.asarray(mech.forward_dynamics(at, qd, still, push)),
            led.hybrid_dynamics(at, qd, still, push).y,
            torques,
            mech.lock(at, [1.0, 0.5, 0.2], [])[0],
            mech.forward_sensitivity(at, qd, still, push).dy_dqd @ qd,
        ]

    qdd = np.asarray(mech.forward_dynamics(q, qd, still, push))
    closed = answers(q)
    for off in (1e-8, 1e-6, 1e-4):
        for found, expected in zip(answers(q + off * np.array([0.5, -1.0, 0.8])), closed, strict=True):
            assert_close(found, expected, 30.0 * off)
    sim = cs.Simulation(engine="interpreted", graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=q, qd0=qd, name="plant")
    bd.connect(bd.CONSTANT(still), plant.tau)
    out = sim.run(bd, T=0.2, dt=0.1)  # ended within its first step, as singular
    assert out.t[-1] == 0.2
    first, last = (sum(mech.energy(x[:3], x[3:])) for x in (out.x[0], out.x[-1]))
    assert abs(last - first) < 1e-5


def test_a_loop_that_is_over_constrained_is_said_with_its_links_and_rank(caplog):
    """A planar loop that is closed as if in space: its multipliers are not determined, and nobody is left to guess."""
    plain, q, qd = state("four_bar")
    spare = cs.Loop("rocker_rod", "coupler_rod", (0.5, 0, 0), (0.8, 0, 0), "hinge", name="spare")
    mech = plain.replace(loops=[spare])
    mech.hybrid_sensitivity(np.array([q] * 3), np.array([qd] * 3), np.zeros((3, 3)))
    assert len(independent_rows(mech)) == 2
    (said,) = [text for text in caplog.messages if "over-constrained" in text]
    assert said.startswith("loop spare: rotation x: over-constrained between 'rocker_rod' and 'coupler_rod'")
    assert "rotation x, spare: rotation y, spare: z follow from" in said and "rank 2 of 5" in said


def test_one_constraint_too_many_is_said_as_one(caplog):
    plain = state("four_bar")[0]
    twice = cs.Loop("rocker_rod", "coupler_rod", (0.5, 0, 0), (0.8, 0, 0), (0, 0, 0, 1, 1, 1), name="twice")
    assert len(independent_rows(plain.replace(loops=[twice]))) == 2
    (said,) = [text for text in caplog.messages if "over-constrained" in text]
    assert ": it follows from the other constraints (rank 2 of 3)" in said


@pytest.mark.slow
@pytest.mark.parametrize("length", [0.3, 0.4, 0.7])
def test_a_bar_on_three_parallel_cranks_is_singular_where_it_lies_flat_alone(length, caplog):
    """Postures that bifurcate close to the root of rounding: their rank there passed for that of all others."""
    links = [uniform_rod(f"rod {k}", None, f"crank {k}", 0.5 * k, length, 1.0, 0.0) for k in range(3)]
    links.append(uniform_rod("bar", "rod 0", "knee", length, 1.0, 1.0, 0.0))
    loops = [
        cs.Loop(f"rod {k}", "bar", (length, 0, 0), (0.5 * k, 0, 0), "pin", name=f"pin {k} of {length}") for k in (1, 2)
    ]
    mech = cs.Mechanism(links, actuated=["crank 0"], loops=loops)
    q = np.array([1.0, 1.0, 1.0, -1.0])
    assert len(independent_rows(mech)) == 3 and mech.mobility(q)[:2] == (1, 3)
    qdd = np.asarray(mech.forward_dynamics(q, 0.0 * q, 0.0 * q))
    assert_close(qdd, qdd[0] * q, 1e-9)
    assert not any("singular" in text for text in caplog.messages)
    rng = np.random.default_rng(1)
    for spread in np.repeat([0.0, 1e-15, 1e-12, 1e-3], [1, 15, 15, 15]):
        flat, _ = mech.project([3.0, 3.0, -3.0, -3.0] + spread * rng.normal(size=4))
        assert np.abs(mech.closure(flat)).max() < 1e-9  # some were open by millimetres, by a step behind the last look
    assert mech.mobility(flat).freedoms >= 1  # none, by what is left of closing there


def test_a_singular_posture_is_said_with_loop_links_and_rank(caplog):
    """A parallelogram that lies flat may go on as one or crossed: at rest there the dynamics say so."""
    pinned = cs.library.four_bar(ground=0.8, lengths=(0.5, 0.8, 0.5))
    mech = pinned.replace(loops=[pinned.loops[0].replace(name="flat")]).with_gravity((0, 0, 0))
    q = np.zeros(3)
    assert mech.mobility(q) == (2, 1, 2, ("flat: x",))
    said = "loop flat: x: the posture is singular between 'rocker_rod' and 'coupler_rod'"
    assert mech.forward_dynamics(q, q, [1.0, 0.0, 0.0]).rank == 1
    assert any(text.startswith(said) and "rank 1 of the constraints, 2 in others" in text for text in caplog.messages)
    with pytest.raises(cs.InvalidValue, match=said + ".*rank 1.*no derivatives"):
        mech.hybrid_sensitivity(q, q, [1.0, 0.0, 0.0])


@pytest.mark.parametrize("tau", [5.0, 50.0])
def test_where_no_equilibrium_is_found_a_closed_posture_is_told(tau):
    """The search ends anywhere: the pin was open by 2 cm, and what was left over was that of such a posture."""
    mech = cs.library.four_bar()
    with pytest.raises(cs.errors.InvalidValue, match="no equilibrium") as told:
        mech.trim([0.0, 0.0, 0.0], tau=tau)
    q = [float(x) for x in re.search(r"q = \(([^)]*)\)", str(told.value))[1].split(",")]
    assert np.abs(mech.closure(q)).max() < 1e-3  # of four digits
    left = [float(x) for x in re.findall(r"'\w+' ([-\d.]+)", str(told.value))]
    # nothing of what loops could carry is left over: what is, moves the mechanism
    q, _ = mech.project(q)
    _, _, rest = np.linalg.svd(mech.closure_jacobian(q))
    load = mech.tree.gravity_load(q) - [tau, 0.0, 0.0]
    np.testing.assert_allclose(left, rest[-1] * (rest[-1] @ load), rtol=0, atol=0.02 * np.abs(left).max())


def test_the_nearest_posture_does_not_follow_roundings():
    """Near the least distance rounding said whether a step had led nearer, and a search ended up to 3e-8 beside it."""
    mech, rng, found = cs.library.four_bar(), np.random.default_rng(0), []
    for _ in range(60):
        q0 = rng.uniform(-2.0, 2.0, 3)
        with contextlib.suppress(InvalidValue):
            nearest = mech.project(q0)[0]
            rounded = [mech.project(q0 * (1.0 + 1e-15 * rng.normal(size=3)))[0] for _ in range(20)]
            found.append(np.abs(np.array(rounded) - nearest).max())
    assert len(found) > 40 and max(found) < 1e-12
