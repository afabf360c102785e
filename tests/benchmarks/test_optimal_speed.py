"""Optimal control beside casadi with Ipopt, on the same problems in one run, and where the time goes.

The rows are printed at the end: pytest tests/benchmarks/test_optimal_speed.py
"""

import time
from statistics import median

import numpy as np
import pytest

from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Stage, Terminal, Time
from cstormpy.optimal.blas import one_thread
from cstormpy.optimal.ipopt import has_ipopt
from cstormpy.optimal.slsqp import solve_slsqp

PAPER = 1.07
"""Seconds of CPU that Xiang et al. 2008 needed for its first example, on 1.4 GHz."""


def time_optimal(points, samples):
    arm = library.xiang_two_link().with_gravity([0, 0, 0])
    return Problem(
        arm, duration=(0.2, 1.0), start=[0, -2], end=[1, -1], objective=Time(), points=points, samples=samples
    )


def acrobot(**options):
    mech = library.acrobot("rods").with_drive(active=["elbow"])
    objective = 100 * Terminal(q={"shoulder": np.pi / 2}) + 10 * Terminal(qd={"shoulder": 0.0}) + Effort()
    return Problem(mech, duration=3.0, start=[-1.0, 0.0], end={"elbow": 0.0}, objective=objective, points=16, **options)


def seconds(run, rounds=9):
    """Return the least time of a call: what others do on the machine only adds to it."""
    run()
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        spent.append(time.perf_counter() - begin)
    return min(spent)


class Watched:
    """A programme that counts the processor time that it takes itself."""

    def __init__(self, programme):
        self.programme, self.spent = programme, 0.0

    def __getattr__(self, name):
        found = getattr(self.programme, name)
        if not callable(found):
            return found

        def timed(*arguments):
            begin = time.thread_time()
            answer = found(*arguments)
            self.spent += time.thread_time() - begin
            return answer

        return timed


def test_slsqp_has_most_of_the_time_of_the_papers_example(record_row):
    """Limits at the paper's 21 samples: at most 1/20 of its time, of which the solver has at least 60 %."""
    problem = time_optimal(22, 21)
    x0 = problem.first_guess()

    def run():
        watched = Watched(problem.scaled(problem.programme()))
        begin, used = time.perf_counter(), time.thread_time()
        with one_thread():
            solve_slsqp(watched, x0 / watched.sizes, 500, 1e-8, lambda z: None)
        return time.perf_counter() - begin, 1.0 - watched.spent / (time.thread_time() - used)

    run()
    found = [run() for _ in range(40)]
    total, own = min(t for t, _ in found), median(share for _, share in found)
    record_row("optimal control", problem="two-link arm, 22 points, 21 samples", ours=f"{1e3 * total:.1f} ms", own=own)
    assert total <= PAPER / 20
    assert own >= 0.6


def test_a_gradient_of_the_acrobot(record_row):
    """200 Runge-Kutta steps, 12 variables: the cost with its gradient in at most 2 ms."""
    problem = acrobot(steps=200)
    programme = problem.programme()
    x = problem.first_guess()
    assert programme.n == 12

    def run():
        x[0] += 1e-9
        programme.cost(x)
        return programme.gradient(x)

    with one_thread():
        spent = seconds(run, rounds=200)
    record_row("optimal control", problem="acrobot, one gradient, 200 steps", ours=f"{1e3 * spent:.2f} ms")
    assert spent <= 2e-3


def test_a_swing_up_from_the_poor_guess(record_row):
    """Eight starts with coarse steps, the best of them with the steps that replay to 1e-5."""
    problem = acrobot()
    begin = time.perf_counter()
    solution = problem.solve(starts=8, stages=[Stage(options={"steps": 104}), Stage()], progress=False)
    spent = time.perf_counter() - begin
    record_row("optimal control", problem="acrobot, swing-up from 8 starts", ours=f"{spent:.2f} s", cost=solution.cost)
    assert solution.cost <= 16.0
    assert spent <= 5.0


def test_a_tree_of_55_freedoms(record_row):
    """880 variables, which SLSQP takes minutes for: at most 5 s. Torques count as multiples of their sizes."""
    mech = library.tree(6, links=55)
    end = np.random.default_rng(0).uniform(-1.0, 1.0, mech.n)
    problem = Problem(mech, duration=1.0, start=[0.0] * mech.n, end=end, objective=Effort(), points=20, samples=21)
    weights = dict(zip(mech.names, problem.setup.sizes.tau**-2, strict=True))
    problem = problem.replace(objective=Effort(weights))
    problem.solve(progress=False, iterations=1)
    begin, used = time.perf_counter(), time.process_time()
    solution = problem.solve(progress=False)
    spent, used = time.perf_counter() - begin, time.process_time() - used
    row = {"ours": f"{spent:.2f} s", "of the processor": f"{used:.2f} s", "iterations": solution.iterations}
    record_row("optimal control", problem="tree of 55, 880 variables", goal="5 s", cost=solution.cost, **row)
    assert solution.converged and solution.kkt < 1e-6
    assert spent <= 5.0


GAUSS_NEWTON = {
    "Puma 560, effort, 16 points": lambda: Problem(
        library.puma560(), duration=1.0, start=[0.0] * 6, end=[0.5] * 6, objective=Effort(), points=16, samples=41
    ),
    "arm of 7, effort, 16 points": lambda: Problem(
        library.arm7(), duration=1.0, start=[0.0] * 7, end=[0.5] * 7, objective=Effort(), points=16, samples=41
    ),
    "two-link arm, swing, 20 points": lambda: Problem(
        library.planar_2r(), duration=1.308, start=[0, 0], end=[np.pi / 2, 0], objective=Effort(), points=20, samples=41
    ),
}


@pytest.mark.parametrize("name", GAUSS_NEWTON)
def test_gauss_newton_beside_slsqp(name, record_row):
    """The same optimum; both are asked by name."""
    problem, row, cost = GAUSS_NEWTON[name](), {}, {}
    for solver in ("slsqp", "gauss-newton"):
        begin = time.process_time()
        solution = problem.solve(solver=solver, progress=False, refine=False)
        row[f"ours, {solver}"], cost[solver] = f"{1e3 * (time.process_time() - begin):.0f} ms", solution.cost
    record_row("optimal control", problem=name, **row)
    assert cost["gauss-newton"] == pytest.approx(cost["slsqp"], rel=1e-6)


def test_a_window_costs_little(record_row, monkeypatch):
    """Processor time of the searching process with a window that shows the search, and without."""
    from cstormpy import live
    from cstormpy.live.search import SearchWindow

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    if live.available() is not None:
        pytest.skip(live.available())
    problem = acrobot()
    problem.solve(iterations=2, progress=False)
    plain, shown = [], []
    for _ in range(5):
        plain.append(spent_on(lambda: problem.solve(starts=6, progress=False)))
        window = SearchWindow(hold=False)
        assert window.feed.wait_until_ready(30.0), window.reason
        shown.append(spent_on(lambda window=window: problem.solve(starts=6, progress=False, live=window)))
        window.close()
    share = min(shown) / min(plain) - 1.0
    record_row("optimal control", problem="acrobot, 6 starts, cost of a window", ours=f"{100 * share:.1f} %")
    assert share <= 0.1


def spent_on(run):
    """Return the processor time of a call, of all its threads."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


# ---------------------------------------------------------------- casadi on the same problems


def casadi_time_optimal(casadi, points, samples):
    """The arm of Xiang et al. 2008 in closed form, (69), (70), on the same splines with the same limits, by Ipopt."""
    from cstormpy.trajectory import BSpline, EndConditions

    curve = BSpline.clamped(np.zeros((points, 2)), 1.0)
    s = np.linspace(0.0, 1.0, samples)
    bases = [casadi.DM(curve.basis_matrix(s, r).toarray()) for r in range(3)]
    ends = curve.fix_ends(EndConditions.at_rest([0, -2], [1, -1]))
    Z, P0 = casadi.DM(ends.matrix.toarray()), casadi.DM(ends.offset.ravel())
    x, T = casadi.SX.sym("x", ends.size), casadi.SX.sym("T")
    P = casadi.reshape(P0 + Z @ x, 2, points).T
    q, qd, qdd = (bases[r] @ P / T**r for r in range(3))
    length, half, mass, inertia = 0.4, 0.2, 0.5, 0.1
    c2, s2 = casadi.cos(q[:, 1]), casadi.sin(q[:, 1])
    h = mass * length * half
    m22 = inertia + mass * half**2
    m12 = m22 + h * c2
    m11 = m22 + inertia + mass * half**2 + mass * length**2 + 2 * h * c2
    tau1 = m11 * qdd[:, 0] + m12 * qdd[:, 1] - h * s2 * (2 * qd[:, 0] * qd[:, 1] + qd[:, 1] ** 2)
    tau2 = m12 * qdd[:, 0] + m22 * qdd[:, 1] + h * s2 * qd[:, 0] ** 2
    nlp = {"x": casadi.vertcat(x, T), "f": T, "g": casadi.vertcat(tau1, tau2)}
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}
    solver = casadi.nlpsol("arm", "ipopt", nlp, quiet)
    guess = time_optimal(points, samples).first_guess()
    return lambda: solver(
        x0=guess, lbx=[-np.inf] * ends.size + [0.2], ubx=[np.inf] * ends.size + [1.0], lbg=-10, ubg=10
    )


@pytest.mark.parametrize("points, samples", [(22, 21), (22, 201), (120, 601)])
def test_beside_casadi(points, samples, record_row):
    casadi = pytest.importorskip("casadi")
    theirs = casadi_time_optimal(casadi, points, samples)
    problem = time_optimal(points, samples)
    row = {"problem": f"two-link arm, {points} points, {samples} samples"}
    for solver in ("slsqp", "ipopt") if has_ipopt() else ("slsqp",):
        if solver == "slsqp" and points > 60:
            continue
        solution = problem.solve(solver=solver, progress=False, refine=False)  # at their samples
        spent = seconds(lambda solver=solver: problem.solve(solver=solver, progress=False, refine=False), rounds=3)
        row[f"ours, {solver}"] = f"{1e3 * spent:.0f} ms"
        assert solution.duration == pytest.approx(float(theirs()["f"]), abs=2e-6)
    row["casadi, ipopt"] = f"{1e3 * seconds(theirs, rounds=3):.0f} ms"
    record_row("optimal control beside casadi", T=round(float(theirs()["f"]), 6), **row)


def casadi_acrobot(casadi, steps):
    """The acrobot of uniform rods in closed form, its elbow on the same spline, by the same steps and sums."""
    from cstormpy.trajectory import BSpline, EndConditions

    curve = BSpline.clamped(np.zeros((16, 1)), 1.0)
    ends = curve.fix_ends(EndConditions.at_rest([0.0], [0.0]))
    halves, T = np.linspace(0.0, 1.0, 2 * steps + 1), 3.0
    x = casadi.MX.sym("x", ends.size)
    P = casadi.DM(ends.offset.ravel()) + casadi.DM(ends.matrix.toarray()) @ x
    elbow = casadi.horzcat(*(casadi.DM(curve.basis_matrix(halves, r).toarray()) @ P / T**r for r in range(3))).T

    z, e = casadi.SX.sym("z", 2), casadi.SX.sym("e", 3)
    s, c = casadi.sin(e[0]), casadi.cos(e[0])
    m12, g = 1.0 / 3.0 + 0.5 * c, 9.81
    force = (
        m12 * e[2]
        - 0.5 * s * (2 * z[1] * e[1] + e[1] ** 2)
        + g * (1.5 * casadi.cos(z[0]) + 0.5 * casadi.cos(z[0] + e[0]))
    )
    acceleration = -force / (5.0 / 3.0 + c)
    tau = m12 * acceleration + e[2] / 3.0 + 0.5 * s * z[1] ** 2 + 0.5 * g * casadi.cos(z[0] + e[0])
    rate = casadi.Function("rate", [z, e], [casadi.vertcat(z[1], acceleration)])
    square = casadi.Function("square", [z, e], [tau**2])

    three, h = casadi.SX.sym("three", 9), T / steps
    a, b, d = three[:3], three[3:6], three[6:]
    k1 = rate(z, a)
    k2 = rate(z + h / 2 * k1, b)
    k3 = rate(z + h / 2 * k2, b)
    k4 = rate(z + h * k3, d)
    step = casadi.Function("step", [z, three], [z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    driven = casadi.vertcat(elbow[:, 0:-1:2], elbow[:, 1::2], elbow[:, 2::2])
    start = casadi.DM([-1.0, 0.0])
    nodes = casadi.horzcat(start, step.mapaccum(steps)(start, driven))
    weights = np.tile([2.0, 4.0], steps // 2 + 1)[: steps + 1] * T / (3.0 * steps)
    weights[[0, -1]] = T / (3.0 * steps)
    effort = 0.5 * square.map(steps + 1)(nodes, elbow[:, ::2]) @ casadi.DM(weights)
    cost = effort + 100 * (nodes[0, -1] - np.pi / 2) ** 2 + 10 * nodes[1, -1] ** 2
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "max_iter": 500}}
    solver = casadi.nlpsol("acrobot", "ipopt", {"x": x, "f": cost}, quiet)
    value = casadi.Function("cost", [x], [cost])
    return lambda: solver(x0=np.zeros(ends.size)), value


def test_acrobot_beside_casadi(record_row):
    """From the elbow locked, whose cost is the same for both; they may end in different local minima."""
    casadi = pytest.importorskip("casadi")
    theirs, value = casadi_acrobot(casadi, 208)
    problem = acrobot(steps=208)
    x = problem.first_guess()
    assert problem.programme().cost(x) == pytest.approx(float(value(x)), rel=1e-9)
    row = {"ours, slsqp": f"{1e3 * seconds(lambda: problem.solve(progress=False), rounds=3):.0f} ms"}
    row["our cost"] = problem.solve(progress=False).cost
    row["casadi, ipopt"] = f"{1e3 * seconds(theirs, rounds=3):.0f} ms"
    row["their cost"] = float(theirs()["f"])
    record_row("acrobot beside casadi", **row)
