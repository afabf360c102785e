"""The Gauss-Newton method: the optima of SLSQP, closed forms, and its matrix and its steps by naive twins."""

from dataclasses import replace

import numpy as np
import pytest
from test_optimal_loops import five_bar, four_bar
from test_optimal_problems import lifting, swing

from cstormpy.mechanism import Link, Mechanism, Revolute, library
from cstormpy.optimal import Acceleration, Effort, Jerk, Mixed, Position, Problem, Running, Terminal
from cstormpy.optimal.gauss_newton_step import Preconditioner, newton_step
from cstormpy.optimal.inverse import rows_through
from cstormpy.optimal.row_blocks import RowBlocks


def reach(**options):
    """Return the problem to swing up the two-link arm of rods in 1.3 s, its torques limited."""
    given = {"points": 12, "samples": 41, "limits": {"torque": (-30.0, 14.0), "velocity": 4.0}, **options}
    return swing(**given)


def posed(**options):
    tip = Position("forearm", target=[None, 0.4, None], tool=[0.5, 0, 0], at=0.5)
    return swing(points=10, constraints=[tip], **options)


PROBLEMS = {
    "free": lambda: swing(points=12),
    "limits of torque and velocity": reach,
    "a point of a link": posed,
    "free duration": lambda: lifting(points=12, samples=41),
    "closed loop": lambda: four_bar(12),
    "cut loop": lambda: five_bar(3, play=0.0),
    "no motor": lambda: Problem(
        library.acrobot("rods"), duration=2.0, start=[-1.5, 0.0], end=[-1.2, 0.3], objective=Effort(), points=14,
        transcription="inverse", samples=21,
    ),
    "design": lambda: swing(points=10, design={"forearm.mass": (1.1, 1.6), "forearm.com[0]": (0.2, 0.3)}),
    "terminal": lambda: swing(points=10, end=None, objective=Effort() + 50 * Terminal(q=[0.6, 0.2], qd=0.0)),
    "not all squares": lambda: swing(
        points=10, objective=Effort() + 5 * Running(lambda at: np.cosh(at.q[:, 1]), lambda at: {
            "q": np.sinh(at.q) * [0.0, 1.0]
        }),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("design", "cut loop"))) for name in PROBLEMS]
)
def test_it_finds_the_optimum_that_slsqp_finds(name):
    problem = PROBLEMS[name]()
    other = problem.solve(solver="slsqp", progress=False, refine=False)
    found = problem.solve(solver="gauss-newton", progress=False, refine=False)
    assert found.solver == "gauss-newton" and found.outcomes[0].reason.endswith("converged")
    assert found.outcomes[0].sampled <= 1e-8
    assert found.cost == pytest.approx(other.cost, rel=1e-6)
    assert found.kkt <= max(1e-6, other.kkt)
    assert found.iterations < 60


def test_a_quadratic_problem_takes_one_step():
    """The least ½ ∫ q̈² dt from rest to rest is 6 d² / T³, of a cubic, which the splines hold."""
    end = np.array([0.3, -0.8, 0.5, 0.2, 1.0, -0.4, 0.7])
    problem = Problem(
        library.arm7(), duration=2.0, start=[0.0] * 7, end=end, objective=Acceleration(), points=14, limits=None,
        guess=0.3 * np.random.default_rng(0).normal(size=(14, 7)),
    )  # fmt: skip
    found = problem.solve(solver="gauss-newton", progress=False)
    least = 6.0 * float(end @ end) / 2.0**3
    assert found.converged and found.iterations <= 2
    assert found.history[0][0] == pytest.approx(least, rel=1e-9) and found.cost == pytest.approx(least, rel=1e-12)
    s = np.linspace(0.0, 1.0, 9)[:, None]
    np.testing.assert_allclose(found.at(2.0 * s[:, 0]).q, end * (3 * s**2 - 2 * s**3), atol=1e-7)


def test_limits_that_hold_the_optimum_are_met_exactly_and_the_others_not_at_all():
    """Complementarity: torques lie on their limits where the free motion would exceed them, and cost more."""
    problem = reach()
    found = problem.solve(solver="gauss-newton", progress=False, refine=False)
    tau, free = found.samples.tau, swing(points=12).solve(progress=False).samples.tau
    assert free.max() > 18.0
    assert tau.max() == pytest.approx(14.0, abs=1e-5) and tau.max() <= 14.0 + 1e-7
    assert (np.abs(tau[:, 0] - 14.0) < 1e-4).sum() >= 2
    assert tau.min() > -29.0 and found.kkt < 1e-6


def test_what_contradicts_itself_is_said_to_be_infeasible():
    """Against gravity, with a tenth of the torque that holds the arm."""
    found = swing(points=10, limits={"torque": 1.0}).solve(solver="gauss-newton", progress=False)
    assert not found.converged and not found.feasible
    assert found.reason.startswith("infeasible: torque is missed by")


# ---------------------------------------------------------------- chosen by itself


def chain(**options):
    given = {"objective": Effort(), "points": 16, "samples": 3, **options}
    return Problem(library.chain(12), duration=1.0, start=[0.0] * 12, end=[0.2] * 12, **given)


def test_it_is_taken_for_many_variables_and_squares():
    large = chain()
    assert large.transcription.size > 120
    found = large.solve(progress=False, iterations=3)
    assert found.solver == "gauss-newton"
    assert "solver           gauss-newton: 144 variables, and the cost is a sum of squares" in str(found)
    own = chain(objective=Effort() + Running(lambda at: at.q[:, 0] ** 2, name="own"))
    assert own.solve(progress=False, iterations=1).solver != "gauss-newton"
    arm = library.planar_2r()
    for each in (arm, arm.with_drive(active=["shoulder", "elbow"])):  # motors that are given torques, or motions
        driven = Problem(each, duration=1.0, start=[0.0, 0.0], end=[0.2, 0.3], objective=Effort(), points=26)
        assert 40 < driven.transcription.size <= 120
        assert driven.solve(progress=False, iterations=3).solver == "gauss-newton"
    small = swing().solve(progress=False, iterations=3)
    assert small.solver == "slsqp" and "sum of squares" not in str(small)


def test_it_can_be_watched_and_stopped():
    seen = []

    def watch(now):
        seen.append((now.iteration, now.cost))
        return len(seen) == 3

    found = swing().solve(solver="gauss-newton", progress=False, callback=watch)
    assert found.reason == "stopped by the user" and [k for k, _ in seen] == [1, 2, 3]
    assert found.cost == min(cost for _, cost in seen)

    def press(now):
        raise KeyboardInterrupt

    assert swing().solve(solver="gauss-newton", progress=False, callback=press).reason == "interrupted"


@pytest.mark.slow
def test_a_tree_of_55_freedoms_is_optimised():
    """Xiang et al. 2008 conclude with a model of a human of 55; torques count as multiples of their sizes."""
    mech = library.tree(6, links=55)
    end = np.random.default_rng(0).uniform(-0.5, 0.5, 55)
    problem = Problem(mech, duration=1.0, start=[0.0] * 55, end=end, objective=Effort(), points=20, samples=21)
    weights = dict(zip(mech.names, problem.setup.sizes.tau**-2, strict=True))
    problem = problem.replace(objective=Effort(weights))
    found = problem.solve(progress=False)
    assert found.solver == "gauss-newton" and found.converged and found.iterations < 60
    assert found.kkt < 1e-6
    first = problem.programme().cost(problem.first_guess())
    assert found.cost < 0.5 * first


# ---------------------------------------------------------------- its parts


@pytest.mark.parametrize(
    "objective", [Effort(["shoulder"]), Mixed(0.3) + Jerk() + 2 * Terminal(q=[0.1, None], qd={"elbow": 1.0})]
)
@pytest.mark.parametrize("design", [None, {"forearm.mass": (0.5, 2.0)}])
def test_the_matrix_is_the_product_of_jacobians_by_differences(objective, design):
    """H = Σ w (∂r/∂x)ᵀ (∂r/∂x) over the samples of the integrals, the root of the duration in r."""
    problem = swing(points=7, duration=(0.5, 2.0), end=None, design=design).replace(objective=objective)
    programme, t = problem.programme(), problem.transcription
    x = problem.first_guess() + 0.1 * np.random.default_rng(0).normal(size=t.size) * t.variable_sizes

    def residuals(x):
        at = t.evaluate(x).samples
        inside, last = at.at(t.quadrature), at.at(slice(t.grid.stop - 1, t.grid.stop))
        roots = np.sqrt(inside.duration * inside.weights)[:, None]
        if isinstance(objective, Effort):
            return (inside.tau[:, :1] * roots).ravel()
        off = np.array([last.q[0, 0] - 0.1, last.qd[0, 1] - 1.0])
        return np.concatenate([0.6**0.5 * (inside.tau * roots).ravel(), (inside.qddd * roots).ravel(), 2.0 * off])

    steps = 1e-5 * t.variable_sizes
    J = np.array([(residuals(x + e) - residuals(x - e)) / (2 * e.max()) for e in np.diag(steps)]).T
    H = programme.gauss_newton(x)
    np.testing.assert_allclose(H, J.T @ J, atol=1e-6 * np.abs(H).max())


def test_a_state_that_is_not_finite_at_the_end_is_not_reached():
    """It cost nothing where it was NaN, as a joint without a target does."""
    problem = swing(points=7)
    at = problem.transcription.evaluate(problem.first_guess()).samples.at(slice(0, 1))
    for lost in ("q", "qd"):
        wanted = Terminal(q=[0.1, None], qd={"elbow": 1.0})
        for j, counts in enumerate([lost == "q", lost == "qd"]):
            values = getattr(at, lost).copy()
            values[0, j] = np.nan
            there = replace(at, **{lost: values})
            assert np.isnan(wanted.values(there)).all() == counts
            assert np.isnan(wanted.derivatives(there)[lost]).any() == counts
            assert np.isnan(wanted.residuals(there)[0]).any() == counts


def test_a_step_solves_the_system_that_it_says():
    """Against the dense matrix; one equation stands twice, and the Hessian is not the preconditioner's."""
    rng = np.random.default_rng(3)
    n = 30
    root = rng.normal(size=(n, n))
    K, A = root @ root.T + 0.1 * np.eye(n), rng.normal(size=(5, n))
    A[4] = A[0]
    H = K + 0.3 * np.diag(rng.uniform(0.0, 1.0, n))
    g, c = rng.normal(size=n), A @ rng.normal(size=n)
    p, y = newton_step(lambda v: H @ v, Preconditioner(K, A), g, c, 1e-10, 100)
    np.testing.assert_allclose(A @ p, -c, atol=1e-8)
    np.testing.assert_allclose(H @ p + A.T @ y, -g, atol=1e-3)
    exact = np.linalg.lstsq(np.block([[H, A.T], [A, np.zeros((5, 5))]]), -np.concatenate([g, c]))[0]
    np.testing.assert_allclose(p, exact[:n], atol=1e-4)


def lifter(**options):
    """A weightlifter of four rods, 40 kg in his hands, who stands up."""

    def rod(name, parent, reach, length, mass):
        pose = np.eye(4)
        pose[0, 3] = reach
        axis, inertia = mass * 1e-4, mass * length**2 / 12
        joint = Revolute([0, 0, 1], damping=0.5)
        return Link(name, parent, joint, pose, mass, [length / 2, 0, 0], np.diag([axis, inertia, inertia]))

    shank, thigh = rod("shank", None, 0.0, 0.45, 7), rod("thigh", "shank", 0.45, 0.45, 15)
    trunk, arm = rod("trunk", "thigh", 0.45, 0.5, 35), rod("arm", "trunk", 0.5, 0.6, 6)
    arm = arm.replace(mass=46, com=[0.56, 0, 0], inertia=np.diag([0.001, 0.65, 0.65]))
    mech = Mechanism([shank, thigh, trunk, arm], gravity=(0, -9.81, 0))
    torques = {"shank": 500, "thigh": 600, "trunk": 800, "arm": 400}
    limits = {"torque": torques, "velocity": 8, "position": {"thigh": (0, 2.4)}}
    ends = {"start": np.deg2rad([60, 100, -120, -100]), "end": [np.pi / 2, 0, 0, 0]}
    return Problem(mech, objective=Effort(), limits=limits, **{"duration": (0.5, 3), "points": 10, **ends, **options})


def test_slsqp_goes_on_where_it_is_stuck():
    """Slacks jam at their bounds: resumed with more control points it ended with more effort than it began with."""
    coarse = lifter(duration=(0.5, 1.2, 3)).solve(progress=False)
    assert coarse.converged and coarse.solver == "slsqp"
    problem = lifter(points=20, guess=coarse.motion)
    assert problem.first_guess()[-1] == pytest.approx(coarse.duration, abs=1e-9)  # it was the mean of the bounds
    assert lifter(duration=(0.5, 1.2, 3), guess=coarse.motion).first_guess()[-1] == 1.2
    solution = problem.solve(progress=False)
    assert solution.converged and solution.cost < 0.9 * coarse.cost, str(solution)
    if solution.solver == "slsqp":
        assert "solver           slsqp: gauss-newton ended with: " in str(solution)


def test_rows_in_blocks_are_the_rows():
    rng = np.random.default_rng(1)
    pattern = np.repeat(rng.uniform(size=(4, 9)) < 0.5, 3, axis=0)
    pattern[5] = False
    rows, columns = np.nonzero(pattern)
    shuffled = rng.permutation(len(rows))
    rows, columns = rows[shuffled], columns[shuffled]
    entries = rng.normal(size=len(rows))
    J = np.zeros(pattern.shape)
    J[rows, columns] = entries
    found = RowBlocks(rows, columns, J.shape).of(entries)
    v, w = rng.normal(size=9), rng.normal(size=12)
    np.testing.assert_allclose(found.times(v), J @ v)
    np.testing.assert_allclose(found.transposed(w), w @ J)
    np.testing.assert_array_equal(found.dense(np.array([7, 2, 5])), J[[7, 2, 5]])
    weights = np.where(w > 0.0, w, 0.0)
    total = np.ones((9, 9))
    found.add_gram(weights, total)
    np.testing.assert_allclose(total, 1.0 + J.T @ np.diag(weights) @ J)


def test_rows_of_a_sample_are_multiplied_at_once():
    rng = np.random.default_rng(2)
    columns, given = rng.normal(size=(5, 3, 4, 4)), rng.normal(size=(8, 4))
    places = np.array([0, 0, 3, 3, 3, 3, 1, 1])
    naive = np.array([[given[r] @ columns[p, k] for r, p in enumerate(places)] for k in range(3)])
    np.testing.assert_allclose(rows_through(given, columns, places), naive)
