"""Derivatives of closed mechanisms to their numbers: against differences of Kim's constrained dynamics, and laws."""

import numpy as np
import pytest
from closed_states import ALL, state
from closeness import assert_close

import cstormpy as cs
from cstormpy.formulations import kim_constrained
from cstormpy.linkage.components import components
from cstormpy.linkage.tables import Form
from cstormpy.loops.dynamics import closed_hybrid
from cstormpy.mechanism.component_values import component_value, with_components

NAMES = {
    "four_bar": [
        "coupler_rod.mass", "coupler_rod.com[1]", "rocker_rod.inertia.zz", "crank.damping", "gravity[1]",
        "coupler_rod.pose.x", "rocker.point[1]", "rocker_rod.pose.rz", "pin.pose_a.y", "pin.pose_a.rz", "pin.pose_b.x",
    ],
    "slider_crank": ["slider_block.mass", "connecting_rod.com[0]", "connecting_rod.pose.x", "slider.axis[1]"],
}  # fmt: skip


def numbers_of(mech):
    """Return the names of all parameters but the wrenches, which are none of the mechanism's."""
    known = components(mech)
    inner = {part.name for name, parts in known.items() for part in parts if part.name != name}
    return [name for name in known if name not in inner and not name.endswith(".wrench")]


def differences(f, mech, component):
    """Return the derivative of f of a mechanism to one of its numbers, to O(h⁶); of one that is 0 and stays, O(h⁴)."""
    value = component_value(mech, component)
    h = 1e-4 if ".inertia." in component or component.endswith(".armature") else 2e-3

    def at(k):
        return f(with_components(mech, {component: value + k * h}, allow_impossible=True))

    if component.rpartition(".")[2].split("[")[0] in ("damping", "friction", "armature", "stiffness") and value < 3 * h:
        return (-25 * at(0) + 48 * at(1) - 36 * at(2) + 16 * at(3) - 3 * at(4)) / (12 * h)
    near, middle, far = (at(k) - at(-k) for k in (1, 2, 3))
    return (45 * near - 9 * middle + far) / (60 * h)


def by_kim(q, qd, u, wrench):
    """Return what gives answer and multipliers of a mechanism by Kim's constrained dynamics, in one array."""

    def ask(mech):
        A, rate = mech.closure_jacobian(q), mech.closure_jacobian_rate(q, qd)
        found = kim_constrained.constrained_hybrid_dynamics(mech.without_loops(), q, qd, u, A, rate, wrench)
        return np.concatenate([found.y, found.lam])

    return ask


def compare(mech, q, qd, names, tol):
    rng = np.random.default_rng(5)
    u, wrench = rng.normal(size=mech.n), rng.normal(size=(len(mech.links), 6))
    d = mech.parameter_sensitivity(q, qd, u, names, wrench)
    got = np.concatenate([d.dy_dp, d.dmultipliers_dp])
    ask = by_kim(q, qd, u, wrench)
    assert_close(np.concatenate([d.y, d.multipliers]), ask(mech), 1e-9)
    for k, component in enumerate(d.components):
        assert_close(got[:, k], differences(ask, mech, component), tol)
    return d


@pytest.mark.parametrize(
    ("is_active", "name"),
    [
        pytest.param(False, "four_bar", marks=pytest.mark.slow),
        (False, "slider_crank"),
        (True, "four_bar"),
        (True, "slider_crank"),
    ],
)
def test_a_closed_mechanism_knows_its_derivatives_to_masses_lengths_and_the_frames_of_its_loops(name, is_active):
    """The question was refused, as if the tree alone had masses and lengths."""
    mech, q, qd = state(name, 1)
    mech = mech.with_drive(active=mech.actuated[:1] if is_active else [])
    d = compare(mech, q, qd, [name for name in NAMES[name] if name in components(mech)], 1e-8)
    assert d.rank == 2 and d.loop_wrenches.shape == (1, 6) and np.abs(d.dmultipliers_dp).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_number_of_planar_mechanisms_and_some_of_a_spatial_one(name):
    mech, q, qd = state(name, 1)
    rng = np.random.default_rng(len(name))
    names = [str(name) for name in rng.choice(numbers_of(mech), 12, replace=False)]
    loop = mech.loops[0].name
    compare(mech, q, qd, names + ([] if f"{loop}.pose_b" in names else [f"{loop}.pose_b"]), 1e-7)


def hinged_four_bar():
    """Return a planar four-bar whose pin closes what its plane closes already: five constraints, two independent."""
    mech = cs.library.four_bar()
    (pin,) = mech.loops
    return cs.Mechanism(mech.links, mech.gravity, mech.actuated, loops=[pin.replace(directions="hinge")])


@pytest.mark.parametrize("is_active", [False, True])
def test_the_least_multipliers_of_dependent_constraints_turn_with_the_geometry(is_active):
    mech, q, qd = hinged_four_bar(), *state("four_bar", 1)[1:]
    mech = mech.with_drive(active=["crank"] if is_active else [])
    d = mech.parameter_sensitivity(q, qd, q, ["coupler_rod.pose.x"])
    assert len(d.multipliers) == 5 and d.rank == 2
    names = ["coupler_rod.mass", "crank.damping", "coupler_rod.pose.x", "rocker_rod.pose.rz", "pin.pose_b.y"]
    compare(mech, q, qd, names, 1e-8)


@pytest.mark.parametrize("redundancy", ["torque", "force"])
def test_motors_that_share_a_load_know_how_their_shares_change(redundancy):
    """Four motors on two freedoms: to masses, and as all lengths grow together, which leaves the motion possible."""
    mech, q, qd = state("five_bar", 1)
    qdd = np.asarray(mech.forward_dynamics(q, qd, [1.0, 0.0, -2.0, 0.0]))
    driven = mech.with_drive(actuated=mech.names, active=mech.names)

    def ask(changed):
        A, tree = changed.closure_jacobian(q), changed.without_loops()
        return np.concatenate(kim_constrained.constrained_inverse_dynamics(tree, q, qd, qdd, A, least=redundancy))

    names = ["left_fore.mass", "right_upper.com[1]", "left_elbow.damping", "gravity[0]"]
    lengths = ["left_fore.pose.x", "right_upper.pose.x", "right_fore.pose.x", "pin.pose_a.x", "pin.pose_b.x"]
    d = driven.parameter_sensitivity(q, qd, qdd, [*names, *lengths], redundancy=redundancy)
    got = np.concatenate([d.dy_dp, d.dmultipliers_dp])
    assert_close(np.concatenate([d.tau, d.multipliers]), ask(driven), 1e-10)
    for k, name in enumerate(names):
        assert_close(got[:, k], differences(ask, driven, name), 1e-8)
    loop = mech.loops[0]
    sizes = [*(mech.link(name.partition(".")[0]).pose[0, 3] for name in lengths[:3])]
    sizes += [loop.pose_a[0, 3], loop.pose_b[0, 3]]

    def grown(t):  # a pose's shift is along its own axes, which are those of its parent here
        return ask(with_components(driven, {name: t * size for name, size in zip(lengths, sizes, strict=True)}))

    h = 2e-3
    near, middle, far = (grown(k * h) - grown(-k * h) for k in (1, 2, 3))
    assert_close(got[:, len(names) :] @ sizes, (45 * near - 9 * middle + far) / (60 * h), 1e-8)


def test_a_batch_a_direction_and_a_gradient_are_of_the_same_columns():
    mech, q, qd = state("four_bar", 2)
    more = [mech.project(q + 0.2, qd), mech.project(q - 0.1, 2.0 * qd)]
    q, qd = np.stack([q, *(a for a, _ in more)]), np.stack([qd, *(b for _, b in more)])
    u = np.random.default_rng(0).normal(size=q.shape)
    names = ["coupler_rod.com", "pin.pose_a.x"]
    d = mech.parameter_sensitivity(q, qd, u, names)
    assert d.dy_dp.shape == (3, 3, 4) and d.dmultipliers_dp.shape == (3, 2, 4) and d["pin.pose_a.x"].shape == (3, 3)
    one = mech.parameter_sensitivity(q[1], qd[1], u[1], names)
    assert_close(d.dy_dp[1], one.dy_dp, 1e-12)
    direction = {"coupler_rod.com": [1.0, 2.0, 3.0], "pin.pose_a.x": 0.5}
    assert_close(mech.parameter_jvp(q, qd, u, direction)[1], d.dy_dp @ [1.0, 2.0, 3.0, 0.5], 1e-12)
    y, gradient = mech.parameter_vjp(q, qd, u, u, names)
    assert_close(gradient, np.einsum("si,sik->sk", u, d.dy_dp), 1e-12)
    assert_close(y, mech.hybrid_dynamics(q, qd, u).y, 1e-11)


def test_the_frames_of_a_loop_are_parameters_of_the_mechanism():
    mech = cs.library.four_bar()
    longer = mech.with_parameters({"pin.pose_a": (0.6, 0, 0), "crank.damping": 0.1})
    assert longer.loops[0].pose_a[0, 3] == 0.6 and longer.joint("crank").damping == 0.1
    assert longer.loops == (mech.loops[0].replace(pose_a=(0.6, 0, 0)),) and longer.tree.loops == ()
    with pytest.raises(cs.UnknownName, match=r"did you mean 'pin\.pose_[ab]'"):
        mech.with_parameters({"pin.pose_c": np.eye(4)})
    with pytest.raises(cs.UnknownName, match=r"did you mean 'pin\.pose_b'"):
        mech.parameter_sensitivity(np.zeros(3), np.zeros(3), np.zeros(3), ["pin.pos_b"])


def run_beside(engine, mech, q, qd, names=(), **more):
    """Return a simulation of a plant under a constant torque, with a variation beside it if there are names."""
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    plant, drive = bd.HYBRIDDYNAMICS(mech, q0=q, qd0=qd, name="plant"), bd.CONSTANT(0.4)
    bd.connect(drive, plant.tau)
    if names:
        variation = bd.VARIATION(mech, directions=[], parameters=names, name="variation", **more)
        bd.connect(plant[0:2], variation[0:2])
        bd.connect(drive, variation.tau)
    return sim, bd


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
def test_runs_of_closed_mechanisms_know_their_derivatives(engine):
    """Of a length the start is another one too: that which `project` finds; a block is told of it."""
    mech, q, qd = state("four_bar", 1)
    names, options = (
        ["coupler_rod.mass", "crank.damping", "coupler_rod.pose.x"],
        {"T": 0.04, "dt": 0.005, "solver": "RK4"},
    )

    def start(component):
        return differences(lambda m: np.concatenate(m.project(q, qd)), mech, component)

    slope = np.stack([np.zeros(6), np.zeros(6), start(names[2])], axis=1)
    sim, bd = run_beside(engine, mech, q, qd, names, dx0_dp=slope)
    carried = sim.run(bd, watch=["variation.dx_dp"], **options).signal("variation.dx_dp")[-1]
    plain, wired = run_beside(engine, mech, q, qd)
    assert_close(carried, plain.gradient(wired, lambda out: out.x[-1], names, **options).gradient, 1e-7)

    def end(changed):
        plain, wired = run_beside(engine, changed, *changed.project(q, qd))
        return plain.run(wired, **options).x[-1]

    for k in (0, 2) if engine == "interpreted" else ():
        assert_close(carried[:, k], differences(end, mech, names[k]), 1e-7)


def test_lengths_of_loops_want_a_start_that_goes_along():
    mech, q, qd = state("four_bar", 1)
    for name in ("coupler_rod.pose.x", "pin.pose_a"):
        with pytest.raises(cs.InvalidValue, match="give dx0_dp, the derivative of the closed start"):
            run_beside("interpreted", mech, q, qd, [name])


OPTIONS = {"T": 0.04, "dt": 0.005, "solver": "RK4"}


@pytest.mark.slow
def test_gradients_reach_the_frames_of_loops():
    """They were constants of what a diagram was translated into, and refused by name."""
    mech, q, qd = state("four_bar", 1)
    names = ["pin.pose_a.x", "pin.pose_b.y", "crank.damping"]
    sim, bd = run_beside("compiled", mech, q, qd)
    found = sim.gradient(bd, lambda out: out.x[-1], names, **OPTIONS)

    def end(changed):
        bd.blocknames["plant"].set_param("mech", changed)
        return sim.run(bd, **OPTIONS).x[-1]

    for k, name in enumerate(names):
        assert_close(found.gradient[:, k], differences(end, mech, name), 1e-7)
    assert np.abs(found.gradient[:, :2]).max(axis=0).min() > 0.1


def test_another_frame_of_a_loop_needs_no_other_code():
    mech, q, qd = state("four_bar", 1)
    longer = with_components(mech, {"pin.pose_a.x": component_value(mech, "pin.pose_a.x") + 0.01})
    assert Form.of(mech).fits(longer)
    turned = mech.with_parameters({"pin.pose_a": cs.lie.exp_se3([0, 0, 0.1, 0.5, 0, 0])})
    assert not Form.of(mech).fits(turned)  # a zero folds
    ends = []
    for engine in ("interpreted", "compiled"):
        sim, bd = run_beside(engine, mech, q, qd)
        sim.run(bd, **OPTIONS)
        bd.blocknames["plant"].set_param("mech", longer)
        ends.append(sim.run(bd, **OPTIONS).x[-1])
    assert_close(*ends, 1e-10)
    u = np.array([0.4, 0.0, 0.0])
    closed = [m.project(q, qd) for m in (mech, longer)]
    for m, at in zip((mech, longer), closed, strict=True):  # one line serves both
        assert_close(m.hybrid_evaluator()(*at, u), closed_hybrid(m, *at, u).y, 1e-12)


@pytest.mark.slow
def test_a_frame_of_a_loop_is_tuned():
    """Of two four-bars the frame of one is found again by how its crank turns."""
    mech, q, qd = state("four_bar", 1)
    value = component_value(mech, "pin.pose_a.x")
    wanted = with_components(mech, {"pin.pose_a.x": value + 0.01})
    sim, bd = run_beside("compiled", mech, q, qd)
    bd.blocknames["plant"].set_param("mech", wanted)
    there = sim.run(bd, **OPTIONS).x[-1]
    bd.blocknames["plant"].set_param("mech", mech)
    off = lambda out: 1e3 * float(((out.x[-1] - there) ** 2).sum())  # noqa: E731
    found = sim.tune(bd, off, ["pin.pose_a.x"], bounds=(-0.05, 0.05), **OPTIONS)
    assert abs(found.after[0] - 0.01) < 1e-5


@pytest.mark.parametrize("name", ["balls", pytest.param("free", marks=pytest.mark.slow)])
def test_loops_through_balls_know_their_derivatives_too(name):
    from test_closed_joints import closed

    mech, q, qd = closed(name)
    names = ["b0.mass", "a0.com[1]", "a0.pose.x", "b0.pose.rz", "loop.pose_a.rx", "loop.pose_b.y"]
    d = mech.parameter_sensitivity(q, qd, 0.3 * q, names)

    def ask(changed):  # of geometry the answer as it continues beside the states that are closed
        found = closed_hybrid(changed, q, qd, 0.3 * q, check=False)
        return np.concatenate([found.y, found.multipliers])

    got = np.concatenate([d.dy_dp, d.dmultipliers_dp])
    for k, component in enumerate(d.components):
        assert_close(got[:, k], differences(ask, mech, component), 1e-7)


def test_weighted_shares_of_a_load_change_as_differences_of_them_do():
    mech, q, qd = state("five_bar", 1)
    qdd = np.asarray(mech.forward_dynamics(q, qd, [1.0, 0.0, -2.0, 0.0]))
    driven = mech.with_drive(actuated=mech.names, active=mech.names)
    names, weights = ["left_fore.mass", "right_upper.com[1]", "left_elbow.damping"], [1.0, 4.0, 0.5, 2.0]

    def ask(changed):
        found = changed.hybrid_dynamics(q, qd, qdd, redundancy=weights)
        return np.concatenate([found.tau, found.multipliers])

    d = driven.parameter_sensitivity(q, qd, qdd, names, redundancy=weights)
    plain = driven.parameter_sensitivity(q, qd, qdd, names, redundancy="torque")
    assert np.abs(d.dy_dp - plain.dy_dp).max() > 1e-3
    got = np.concatenate([d.dy_dp, d.dmultipliers_dp])
    for k, name in enumerate(d.components):
        assert_close(got[:, k], differences(ask, driven, name), 1e-8)
