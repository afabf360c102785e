"""Optimal control through loops: against closed forms, the closed mechanism's inverse dynamics, and free unknowns."""

import numpy as np
import pytest
from closed_states import spatial as closed_tree
from closeness import assert_close, central_difference
from scipy.optimize import minimize

import cstormpy as cs
from cstormpy.formulations import xiang
from cstormpy.loops.closure import closure_of
from cstormpy.loops.residual_slopes import residual_slopes
from cstormpy.optimal import Constraint, Cut, Effort, Load, Problem, Running
from cstormpy.trajectory import BSpline, clamped_knots, uniform_knots

GROUND, LENGTHS, MASSES = 0.9, np.array([0.3, 0.8, 0.5]), np.array([0.3, 0.8, 0.5])
"""The four-bar of the library."""

STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


def four_bar(points=12, **options):
    """Return the problem to turn the crank from 0.5 to 2 rad in a second, from rest to rest, with least effort."""
    mech = cs.library.four_bar()
    start, end = (mech.project([crank, 0.0, 1.5], hold=["crank"])[0] for crank in (0.5, 2.0))
    options = {"objective": Effort(), "samples": 21, "points": points, **options}
    return Problem(mech, duration=1.0, start=start, end=end, **options)


def reduced(theta):
    """Return I(θ) and V(θ) of the four-bar in its crank's angle, by the triangle of the coupler and the rocker."""
    a, b, c = LENGTHS
    tip = a * np.exp(1j * theta)
    across = GROUND - tip
    r = abs(across)
    x = (r * r + b * b - c * c) / (2 * r)
    pin = tip + across / r * (x + 1j * np.sqrt(b * b - x * x))
    alpha, beta = np.angle(pin - tip), np.angle(pin - GROUND)
    # rates for θ̇ = 1, from a e^{iθ} + b e^{iα} α' = c e^{iβ} β'
    d_alpha = a * np.sin(beta - theta) / (b * np.sin(alpha - beta))
    d_beta = a * np.sin(theta - alpha) / (c * np.sin(beta - alpha))
    middle = abs(1j * a * np.exp(1j * theta) + 0.5j * b * np.exp(1j * alpha) * d_alpha)
    m = MASSES
    inertia = m[0] * a * a / 3 + m[1] * (middle**2 + (b * d_alpha) ** 2 / 12) + m[2] * (c * d_beta) ** 2 / 3
    heights = m[0] * a / 2 * np.sin(theta) + m[1] * (a * np.sin(theta) + b / 2 * np.sin(alpha))
    return np.array([inertia, 9.81 * (heights + m[2] * c / 2 * np.sin(beta))])


def crank_torque(theta, rate, acceleration):
    """Return I θ̈ + ½ I' θ̇² + V'."""
    slopes = sum(weight / 1e-3 * reduced(theta + 1e-3 * k) for k, weight in STENCIL)
    return reduced(theta)[0] * acceleration + 0.5 * slopes[0] * rate**2 + slopes[1]


def least_effort_of_the_crank(points):
    """Return the least ½ ∫ τ² dt and the crank's control points, found on the reduced equation with no loop in it."""
    knots = clamped_knots(points, 5)
    curve = BSpline(knots, np.zeros((points, 1)), degree=5)
    breaks, (x, w) = np.unique(knots), np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(breaks)[:, None]
    sites, weights = (breaks[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    bases = [curve.basis_matrix(sites, r).toarray() for r in range(3)]

    def cost(p):
        P = np.concatenate([[0.5, 0.5], p, [2.0, 2.0]])
        return 0.5 * weights @ crank_torque(*(basis @ P for basis in bases)) ** 2

    found = minimize(cost, np.linspace(0.5, 2.0, points)[2:-2], method="BFGS", options={"gtol": 1e-7})
    return found.fun, found.x


def test_a_four_bar_moves_with_the_effort_that_its_reduced_equation_needs():
    """One spline has the crank, the loop is eliminated by hand; three splines are closed by equations."""
    solution = four_bar(points=16).solve(progress=False)
    effort, crank = least_effort_of_the_crank(16)
    assert solution.feasible and solution.converged
    assert solution.cost == pytest.approx(effort, rel=2e-5)
    assert solution.dense_cost == pytest.approx(effort, rel=2e-5)
    np.testing.assert_allclose(solution.motion.control_points[2:-2, 0], crank, atol=1e-3)
    at = solution.at(np.linspace(0.0, 1.0, 50))
    theta, rate, acceleration = (values[:, 0] for values in (at.q, at.qd, at.qdd))
    np.testing.assert_allclose(at.tau[:, 0], crank_torque(theta, rate, acceleration), atol=2e-2)
    assert (at.tau[:, 1:] == 0.0).all()


# ---------------------------------------------------------------- forces: unknowns, or shared out


def five_bar(motors, play=None, **options):
    """Return the problem to move a five-bar from rest to rest in 0.8 s; with `play` its pin is cut."""
    mech = cs.library.five_bar()
    mech = mech.with_drive(actuated=mech.names[:motors])
    start, end = (mech.project(q)[0] for q in ([2.0, -1.0, 1.1, 1.0], [1.6, -1.2, 0.7, 1.2]))
    cuts = () if play is None else Cut("pin", play=play)
    options = {"objective": Effort(), "samples": 21, "points": 8, "cuts": cuts, **options}
    return Problem(mech, duration=0.8, start=start, end=end, **options)


@pytest.mark.slow
@pytest.mark.parametrize("motors", [3, 4])
def test_a_search_for_the_forces_finds_those_of_least_torque(motors):
    """More motors than freedoms: Kim's (59)-(66) share the load; the search over the forces (38a) finds them itself."""
    shared = five_bar(motors, points=10).solve(progress=False)
    searched = five_bar(motors, play=0.0, points=10).solve(progress=False)
    assert shared.feasible and searched.feasible
    assert searched.cost == pytest.approx(shared.cost, rel=1e-4)
    times = np.linspace(0.0, 0.8, 30)
    one, other = shared.at(times), searched.at(times)
    np.testing.assert_allclose(other.q, one.q, atol=2e-3)
    np.testing.assert_allclose(other.tau, one.tau, atol=0.02 * np.abs(one.tau).max())
    np.testing.assert_allclose(other.multipliers, one.multipliers, atol=0.02 * np.abs(one.multipliers).max())
    assert searched.spline.names[-2:] == ("pin: x", "pin: y") and searched.motion.n == 4


@pytest.mark.slow
def test_a_four_bar_whose_pin_is_cut_moves_as_one_that_is_closed():
    """The loads of coupler and rocker, which have no motor, are equations that determine the force in the pin."""
    cut, closed = (four_bar(points=16, cuts=cuts).solve(progress=False) for cuts in ("pin", ()))
    assert cut.feasible and cut.cost == pytest.approx(closed.cost, rel=2e-4)
    times = np.linspace(0.0, 1.0, 30)
    np.testing.assert_allclose(cut.at(times).multipliers, closed.at(times).multipliers, rtol=0.02, atol=0.2)


def test_what_a_cut_carries_is_what_xiangs_equations_make_of_a_force_at_its_ends():
    """The recursive Lagrangian equations of the open chain, with the force on either side of the pin, (16)-(20)."""
    problem = five_bar(4, play=0.05)
    x = problem.first_guess() + 0.1 * np.random.default_rng(0).normal(size=problem.transcription.size)
    at, mech = problem.motion(x), problem.mech
    assert np.abs(mech.closure(at.q)).max() > 1e-3 and np.abs(at.multipliers).min() > 0.0
    pin = mech.loops[0]
    for k in (0, 7, 20):
        R = mech.forward_kinematics(at.q[k])[mech.link_index(pin.link_a), :3, :3]
        force = R @ [*at.multipliers[k], 0.0]
        # on both links where B is, open as the loop may be
        tree, gap = mech.without_loops(), R @ [*mech.closure(at.q[k]), 0.0]
        first = pin.pose_a[:3, 3] + R.T @ gap
        loads = xiang.cut_joint((pin.link_b, pin.pose_b[:3, 3]), (pin.link_a, first), force)
        tau = xiang.inverse_dynamics(tree, at.q[k], at.qd[k], at.qdd[k], loads=loads)
        np.testing.assert_allclose(at.tau[k], tau, atol=1e-9 * np.abs(tau).max())


@pytest.mark.slow
def test_closure_may_be_an_inequality():
    """(38b): with some play in the pin the motors need less, and use all of the play."""
    tight, loose = (five_bar(4, play=play).solve(progress=False) for play in (0.0, 0.01))
    assert tight.feasible and loose.feasible
    assert loose.cost < 0.997 * tight.cost
    gap = np.abs(loose.problem.mech.closure(loose.at(np.linspace(0.0, 0.8, 100)).q)).max()
    assert 0.0099 < gap < 0.011
    assert {e.kind for e in loose.excess} == {"closure of pin"}


# ---------------------------------------------------------------- derivatives and feasibility
GAP = Constraint(lambda at: at.multipliers[:, 0] * at.q[:, 1], upper=3.0, name="force times angle")
CARRIED = Running(
    lambda at: 0.5 * (at.multipliers**2).sum(axis=1), gradient=lambda at: {"multipliers": at.multipliers}, name="force"
)


def spatial():
    """Return a problem of a tree with a hinge between two of its branches, and a ball at the base."""
    mech, q = closed_tree()
    start, _ = mech.project(q)
    end, _ = mech.project(q + 0.1)
    return Problem(mech, duration=1.0, start=start, end=end, objective=Effort(), points=7, samples=3)


@pytest.mark.parametrize("size", [0.0, 1e-6, 0.4])
@pytest.mark.parametrize("directions", ["pose", "hinge"])
def test_the_slopes_of_the_closure_hold_where_a_loop_is_open_too(directions, size):
    mech, q = closed_tree()
    a, b = mech.loops[0].link_a, mech.loops[0].link_b
    mech = cs.Mechanism(mech.links, loops=[cs.Loop(a, b, mech.loops[0].pose_a, mech.loops[0].pose_b, directions)])
    q = mech.project(q)[0] + size * np.random.default_rng(2).normal(size=mech.n)
    slopes = residual_slopes(closure_of(mech, q[None]))[0]
    assert_close(slopes, central_difference(mech.closure, q, 1e-3), 1e-10)
    assert (np.abs(slopes - mech.closure_jacobian(q)).max() > 0.1) == (size > 0.1)


@pytest.mark.parametrize(
    "problem",
    [
        lambda: four_bar(7, samples=5, limits={"torque": 5.0}, objective=Effort()),
        lambda: five_bar(3, samples=5, points=7, objective=CARRIED, constraints=[GAP]),
        pytest.param(
            lambda: five_bar(3, play=[0.01, 0.0], samples=5, points=7, objective=Effort() + CARRIED, constraints=[GAP]),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: five_bar(2, play=0.0, samples=5, points=7).replace(
                duration=(0.5, 0.8, 1.0), loads=Load("left_fore", force=(0, -5, 0), point=(0.3, 0, 0))
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(spatial, marks=pytest.mark.slow),
    ],
    ids=["eliminated", "redundant", "play", "free duration and a load", "spatial"],
)
def test_gradients_are_exact(problem):
    problem = problem()
    x = problem.first_guess()
    sizes = problem.transcription.variable_sizes
    x = x + 0.05 * sizes * np.random.default_rng(1).normal(size=x.shape) * (sizes < 1e3)
    checked = problem.check_gradients(np.clip(x, *problem.bounds), tolerance=1e-7)
    assert checked.ok, str(checked)


def test_an_open_loop_between_the_samples_is_infeasible():
    """Seven control points cannot follow a crank that turns far: closure is met where it is asked, missed between."""
    mech = cs.library.four_bar()
    start, end = (mech.project([crank, 0.0, 1.5], hold=["crank"])[0] for crank in (0.5, 3.0))
    problem = Problem(mech, duration=1.0, start=start, end=end, objective=Effort(), points=7, samples=11)
    coarse = problem.solve(progress=False, refine=False)
    worst = coarse.excess[0]
    assert not coarse.feasible and not coarse.converged and worst.kind == "closure of pin" and worst.unit == "m"
    gap = np.abs(mech.closure(coarse.at([worst.time]).q)).max()
    assert worst.amount == pytest.approx(gap, rel=1e-6)
    assert "closure of pin is missed by" in coarse.reason
    fine = problem.solve(progress=False)
    assert fine.feasible and fine.violation < 1e-3 and len(fine.problem.knots) > len(problem.knots)


def test_a_constraint_of_rates_is_kept_all_the_time():
    """A skate: it cannot glide sideways, which no posture can say."""
    skate = cs.Mechanism(
        [cs.Link("skate", None, cs.Planar(), mass=1.0, inertia=np.eye(3) * 0.1)],
        gravity=(0, 0, 0),
        loops=[cs.Constraint(lambda q: [[-np.sin(q[2]), np.cos(q[2]), 0.0 * q[0]]], "rate", "blade")],
    )
    solution = Problem(
        skate, duration=1.0, start=[0.0, 0.0, 0.0], end=[1.0, 0.5, 0.0], objective=Effort(), points=12, samples=21
    ).solve(progress=False)
    assert solution.feasible
    at = solution.at(np.linspace(0.0, 1.0, 100))
    sideways = np.cos(at.q[:, 2]) * at.qd[:, 1] - np.sin(at.q[:, 2]) * at.qd[:, 0]
    assert np.abs(sideways).max() < 2e-3 and np.abs(at.q[:, 2]).max() > 0.3


# ---------------------------------------------------------------- refused


def test_what_does_not_close_is_refused_by_its_name():
    mech = cs.library.four_bar()
    closed, _ = mech.project([0.5, 0.0, 1.5])
    ask = {"duration": 1.0, "objective": Effort(), "start": closed}
    with pytest.raises(cs.InvalidValue, match=r"end: loop pin: .: misses closure by .*mech\.project"):
        Problem(mech, end=[1.0, 0.0, 1.5], **ask)
    with pytest.raises(cs.InvalidValue, match=r"end: loop pin: .: is left at the rate"):
        Problem(mech, end=(closed, [1.0, 0.0, 0.0]), **ask)
    with pytest.raises(cs.InvalidValue, match=r"end: the joints that it leaves free \('rocker'\) are too few"):
        Problem(mech, end={"crank": 1.0, "coupler": 0.2}, **ask)


@pytest.mark.slow
def test_control_points_as_a_guess_are_followed_where_the_search_is_refined():
    """More knots met an array of so many control points: a ShapeError from the depths."""
    plain = four_bar(points=8)
    options = {"iterations": 60, "feasibility": 1e-6, "progress": False}
    wanted, found = (
        plain.solve(**options),
        plain.replace(guess=plain.transcription.spline(plain.first_guess()).control_points).solve(**options),
    )
    assert found.problem.options.points > 8
    assert_close(found.cost, wanted.cost, 1e-9)


@pytest.mark.slow
def test_knots_beyond_the_ends_have_the_splines_of_those_at_them():
    """The first guess was to close the loops at control points before the start: "Singular matrix"."""
    even, clamped = (four_bar(8, knots=knots(8, 5)).solve() for knots in (uniform_knots, clamped_knots))
    assert even.feasible and even.cost == pytest.approx(clamped.cost, rel=1e-9)


def test_a_guess_that_cannot_be_closed_is_asked_for():
    """Stretched over a longer ground the crank cannot turn that far."""
    problem = Problem(cs.library.four_bar(ground=1.5), duration=1.0, start=None, end={"crank": 2.0}, objective=Effort())
    with pytest.raises(cs.InvalidValue, match=r"guess: .*cannot be closed.*give a guess="):
        problem.first_guess()


def test_what_cannot_be_solved_through_a_loop_is_said():
    mech = cs.library.five_bar()
    start, _ = mech.project([2.0, -1.0, 1.1, 1.0])
    ask = {"duration": 1.0, "objective": Effort(), "start": start}
    with pytest.raises(cs.InvalidValue, match=r"1 freedom\(s\) of the mechanism have no actuator.*cuts='all'"):
        Problem(mech.with_drive(actuated=["left_shoulder"]), **ask)
    flat = cs.library.four_bar(ground=0.8, lengths=(0.5, 0.8, 0.5))  # a parallelogram, whose motor is enough elsewhere
    for begin in (np.zeros(3), {"crank": 0.0}):
        with pytest.raises(cs.InvalidValue, match=r"start: loop pin: x: the posture is singular .*begin beside it"):
            Problem(flat, duration=1.0, objective=Effort(), start=begin)
    assert Problem(flat, duration=1.0, objective=Effort(), start={"crank": 0.3})
    with pytest.raises(cs.UnknownName, match="cuts: loop 'pim'"):
        Problem(mech, cuts="pim", **ask)
    with pytest.raises(cs.InvalidValue, match="cuts: loop 'pin' is named twice"):
        Problem(mech, cuts=["pin", Cut("pin")], **ask)
    with pytest.raises(cs.ShapeError, match="cut 'pin': play: expected 2 entries"):
        Problem(mech, cuts=Cut("pin", play=[0.0, 0.0, 0.0]), **ask)
    with pytest.raises(cs.InvalidType, match="cuts: expected names of loops or"):
        Problem(mech, cuts=3, **ask)


@pytest.mark.slow
def test_a_millimetre_of_play_is_used_up():
    """SLSQP did not converge there: with a tenth of the play its steps shrank."""
    tight, loose = (five_bar(4, play=play).solve(solver="gauss-newton", progress=False) for play in (0.0, 0.001))
    assert loose.converged and loose.kkt < 1e-6
    assert loose.cost < 0.9999 * tight.cost
    gap = np.abs(loose.problem.mech.closure(loose.at(np.linspace(0.0, 0.8, 100)).q)).max()
    assert 0.0009 < gap < 0.0021
