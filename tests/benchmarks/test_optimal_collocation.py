"""Feasible costs beside casadi's: Hermite-Simpson collocation of Lagrange's equations, solved by Ipopt from our motion.

The table is printed at the end: pytest tests/benchmarks/test_optimal_collocation.py
"""

import numpy as np
import pytest

from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute
from cstormpy.optimal import Constraint, Effort, Problem

G = 9.81
STEPS = 40
"""Of the coarse collocation; the fine one has twice as many. Their difference is what discretisation explains."""

EXPLAINED, ALLOWED = 3.0, 2e-3
"""How many such differences, and which part of the cost for our tolerance of feasibility, ours may be below theirs."""

CENTRE, RADIUS = np.array([0.62, 0.45]), 0.25


def at_x(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


def rod(name, parent, mass, length, at=0.0):
    inertia = np.diag([0.0, 1.0, 1.0]) * mass * length**2 / 12.0
    return Link(name, parent, Revolute((0, 0, 1)), pose=at_x(at), mass=mass, com=[length / 2, 0, 0], inertia=inertia)


class CartPole:
    """A cart of 1 kg, a pole of 0.3 kg and 0.5 m: swung up in 2 s with at most 20 N."""

    start, end, duration, limit = [0.0, -np.pi / 2], [0.0, np.pi / 2], 2.0, 20.0
    motors, steps = (0,), 520

    def mechanism(self):
        cart = Link("cart", None, Prismatic((1, 0, 0)), mass=1.0)
        return Mechanism([cart, rod("pole", "cart", 0.3, 0.5)], actuated=["cart"])

    def energies(self, ca, q, v):
        x, y = q[0] + 0.25 * ca.cos(q[1]), 0.25 * ca.sin(q[1])
        return planar(ca, q, v, [(1.0, q[0], 0.0, 0.0, 0.0), (0.3, x, y, 0.3 * 0.25 / 12.0, q[1])])


class Furuta:
    """A pendulum of 0.1 kg and 0.3 m on an arm of 0.25 m that turns about the vertical: swung up in 1.5 s."""

    start, end, duration, limit = [0.0, 0.0], [0.0, np.pi], 1.5, None
    motors, steps = (0,), 520
    mass, half, arm, inertia = 0.1, 0.15, 0.25, 0.1 * 0.3**2 / 12.0

    def mechanism(self):
        arm = Link("arm", None, Revolute((0, 1, 0)), mass=0.2, com=[0.125, 0, 0], inertia=np.diag([0.0, 1, 1]) * 1e-3)
        swinging = {"mass": self.mass, "com": [0, -self.half, 0], "inertia": np.diag([1.0, 0, 1]) * self.inertia}
        pendulum = Link("pendulum", "arm", Revolute((1, 0, 0)), pose=at_x(self.arm), **swinging)
        return Mechanism([arm, pendulum], actuated=["arm"])

    def energies(self, ca, q, v):
        c, s, (arm, half) = ca.cos, ca.sin, (self.arm, self.half)
        # in the arm's axes the bob is at (arm, −half cos, −half sin); these turn by q0 about y
        z = -half * s(q[1])
        place = ca.vertcat(arm * c(q[0]) + z * s(q[0]), -half * c(q[1]), -arm * s(q[0]) + z * c(q[0]))
        speed = ca.jtimes(place, q, v)
        turning = 0.5 * self.inertia * (v[1] ** 2 + (v[0] * s(q[1])) ** 2)
        own = 0.5 * (1e-3 + 0.2 * 0.125**2) * v[0] ** 2
        return own + turning + 0.5 * self.mass * ca.dot(speed, speed), self.mass * G * place[1]


class Chain:
    """Five rods of 0.5 kg and 0.3 m whose first joint has no motor: swung by 0.5 rad in 1.5 s."""

    start, end = [-np.pi / 2, 0, 0, 0, 0], [-np.pi / 2 + 0.5, 0, 0, 0, 0]
    duration, limit, motors, steps = 1.5, None, (1, 2, 3, 4), 520

    def mechanism(self):
        links = [rod(f"rod{k}", f"rod{k - 1}" if k else None, 0.5, 0.3, 0.3 if k else 0.0) for k in range(5)]
        return Mechanism(links, actuated=[f"rod{k}" for k in range(1, 5)])

    def energies(self, ca, q, v):
        bodies, x, y, angle = [], 0.0, 0.0, 0.0
        for k in range(5):
            angle = angle + q[k]
            bodies.append((0.5, x + 0.15 * ca.cos(angle), y + 0.15 * ca.sin(angle), 0.5 * 0.09 / 12.0, angle))
            x, y = x + 0.3 * ca.cos(angle), y + 0.3 * ca.sin(angle)
        return planar(ca, q, v, bodies)


class Disc:
    """The two-link arm of 0.5 m and 1.25 kg, both motors, past a disc."""

    start, end, duration, limit, motors, steps = [-0.2, 0.3], [1.4, 0.3], 1.0, None, (0, 1), None

    def mechanism(self):
        return Mechanism([rod("upper", None, 1.25, 0.5), rod("fore", "upper", 1.25, 0.5, 0.5)])

    def energies(self, ca, q, v):
        whole = q[0] + q[1]
        x, y = 0.5 * ca.cos(q[0]), 0.5 * ca.sin(q[0])
        inertia = 1.25 * 0.25 / 12.0
        first = (1.25, x / 2, y / 2, inertia, q[0])
        return planar(ca, q, v, [first, (1.25, x + 0.25 * ca.cos(whole), y + 0.25 * ca.sin(whole), inertia, whole)])

    @staticmethod
    def away(q, sin=np.sin, cos=np.cos):
        x = 0.5 * cos(q[0]) + 0.5 * cos(q[0] + q[1]) - CENTRE[0]
        y = 0.5 * sin(q[0]) + 0.5 * sin(q[0] + q[1]) - CENTRE[1]
        return x**2 + y**2


def planar(ca, q, v, bodies):
    """Return kinetic and potential energy of bodies (mass, x, y, inertia, angle)."""
    kinetic, potential = 0.0, 0.0
    for mass, x, y, inertia, angle in bodies:
        speeds = [ca.jtimes(ca.SX(value), q, v) for value in (x, y, angle)]
        kinetic += 0.5 * mass * (speeds[0] ** 2 + speeds[1] ** 2) + 0.5 * inertia * speeds[2] ** 2
        potential += mass * G * y
    return kinetic, potential


def collocated(ca, model, solution, steps):
    """Return the least cost by Hermite-Simpson collocation with so many steps, from a motion of ours."""
    n, h = len(model.start), model.duration / steps
    q, v, a = (ca.SX.sym(name, n) for name in "qva")
    kinetic, potential = model.energies(ca, q, v)
    momentum = ca.gradient(kinetic, v)
    torque = ca.jtimes(momentum, q, v) + ca.jtimes(momentum, v, a) - ca.gradient(kinetic - potential, q)
    inverse = ca.Function("inverse", [q, v, a], [torque])
    times = np.linspace(0.0, model.duration, 2 * steps + 1)
    at = solution.at(times)
    X = ca.SX.sym("X", 3 * n, 2 * steps + 1)
    state, rate = X[: 2 * n, :], X[n:, :]
    tau = inverse.map(2 * steps + 1)(X[:n, :], X[n : 2 * n, :], X[2 * n :, :])
    x0, xm, x1 = state[:, 0:-1:2], state[:, 1::2], state[:, 2::2]
    f0, fm, f1 = rate[:, 0:-1:2], rate[:, 1::2], rate[:, 2::2]
    middle, step = xm - (x0 + x1) / 2 - h / 8 * (f0 - f1), x1 - x0 - h / 6 * (f0 + 4 * fm + f1)
    weights = np.tile([2.0, 4.0], steps + 1)[: 2 * steps + 1] * h / 6
    weights[[0, -1]] = h / 6
    driven = tau[list(model.motors), :]
    cost = 0.5 * ca.dot(ca.DM(weights), ca.sum1(driven**2).T)
    passive = [j for j in range(n) if j not in model.motors]
    ends = ca.vertcat(state[:, 0] - ca.DM([*model.start, *[0.0] * n]), state[:, -1] - ca.DM([*model.end, *[0.0] * n]))
    equations = ca.vertcat(ca.vec(middle), ca.vec(step), ends, ca.vec(tau[passive, :]))
    limits = [ca.vec(driven)] if model.limit else []
    low, high = [0.0] * equations.numel(), [0.0] * equations.numel()
    low, high = low + [-model.limit] * driven.numel() * bool(limits) if limits else low, high
    high = high + [model.limit] * driven.numel() if limits else high
    if isinstance(model, Disc):
        limits.append(model.away([X[0, :], X[1, :]], ca.sin, ca.cos).T)
        low, high = low + [RADIUS**2] * (2 * steps + 1), high + [np.inf] * (2 * steps + 1)
    nlp = {"x": ca.vec(X), "f": cost, "g": ca.vertcat(equations, *limits)}
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "mu_init": 1e-4, "max_iter": 1000}}
    solver = ca.nlpsol("collocation", "ipopt", nlp, quiet)
    found = solver(x0=np.vstack([at.q.T, at.qd.T, at.qdd.T]).T.ravel(), lbg=low, ubg=high)
    assert solver.stats()["success"], solver.stats()["return_status"]
    return float(found["f"])


def asked(model, transcription):
    mech = model.mechanism()
    options = {"duration": model.duration, "start": model.start, "end": model.end, "objective": Effort()}
    options["limits"] = {"torque": model.limit} if model.limit else None
    if isinstance(model, Disc):
        away = Constraint(lambda at: model.away(at.q.T), lower=RADIUS**2, name="disc")
        return Problem(mech, points=16, samples=41, constraints=[away], **options)
    if transcription == "inverse":
        return Problem(mech, points=24, samples=61, transcription="inverse", **options)
    return Problem(mech.with_drive(active=mech.actuated), points=24, steps=model.steps, **options)


CASES = [(model, how) for model in (CartPole, Furuta, Chain) for how in ("inverse", "shooting")] + [(Disc, "inverse")]


@pytest.mark.parametrize("model, transcription", CASES)
def test_no_feasible_cost_is_below_that_of_collocation(model, transcription, record_row):
    """A spline has fewer freedoms than the collocation: it costs more, except for what discretisation explains."""
    ca = pytest.importorskip("casadi")
    solution = asked(model(), transcription).solve(starts=1, progress=False)
    ours, title = solution.dense_cost, "optimal control beside casadi's collocation"
    row = {"problem": model.__name__, "transcription": transcription, "ours": f"{ours:.5g}"}
    row["residual"] = f"{solution.violation:.1e}"
    if not solution.feasible:  # nothing is claimed of its cost
        assert not solution.converged and "INFEASIBLE" in repr(solution)
        record_row(title, **row, above="infeasible", seconds=f"{solution.seconds:.1f}")
        return
    coarse, fine = (collocated(ca, model(), solution, steps) for steps in (STEPS, 2 * STEPS))
    row |= {"collocation": f"{fine:.5g}", "explained": f"{abs(coarse - fine):.1e}"}
    record_row(title, **row, above=f"{100 * (ours / fine - 1):+.2f} %", seconds=f"{solution.seconds:.1f}")
    assert ours >= fine - EXPLAINED * abs(coarse - fine) - ALLOWED * fine
