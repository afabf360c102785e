"""Gradients of optimal control: the complex step of the cost that is computed, through the papers' own formulation."""

import copy
import itertools
import math

import numpy as np
import pytest
from closeness import STEP

from cstormpy.errors import InvalidValue
from cstormpy.formulations import sohl_bobrow as sb
from cstormpy.mechanism import library
from cstormpy.optimal import (
    Acceleration,
    AtEnd,
    Constraint,
    Effort,
    EnergySpent,
    Jerk,
    Load,
    Mixed,
    Pose,
    Position,
    Problem,
    Running,
    Terminal,
    Time,
)
from cstormpy.optimal.differences import STENCIL
from cstormpy.optimal.differences import differenced as by_channel
from cstormpy.optimal.ipopt import _Asked, colours_of

STEPS = 4
TOLERANCE = 1e-9  # relative to the largest entry; the complex step has no error of its own


class Motion:
    """What the transcriptions compute, written down again for complex x: splines by matrices, dynamics as printed."""

    def __init__(self, problem, x):
        self.mech, t, setup = problem.mech, problem.transcription, problem.setup
        self.T = x[-1] if t.free_duration else setup.duration
        P = self._offset(t.map) + (t.map.matrix.toarray() @ x[: t.map.size]).reshape(t.map.shape)
        self.phases = t.phases if problem.inverse else np.linspace(0.0, 1.0, 2 * STEPS + 1)
        splines = [setup.curve.basis_matrix(self.phases, r).toarray() @ P / self.T**r for r in range(4)]
        self.loads, self.driven = problem.loads, problem.driven
        if problem.inverse:
            self.q, self.qd, self.qdd, self.qddd = splines
            rows = zip(self.q, self.qd, self.qdd, strict=True)
            self.tau = np.array([sb.inverse_dynamics(self.mech, *row, self._wrench(row[0])) for row in rows])
        else:
            self._shoot(splines, setup.start)
        self.t = self.T * t.phases
        self.weights, self.quadrature, self.grid = t.weights, t.quadrature, t.grid

    def _offset(self, ends):
        """P0 is a polynomial of third degree in T: Lagrange's through four real durations."""
        nodes = np.array([0.5, 1.0, 2.0, 3.0])
        values = [ends.with_duration(node).offset for node in nodes]
        weights = [np.prod([(self.T - m) / (n - m) for m in nodes if m != n]) for n in nodes]
        return sum(w * v for w, v in zip(weights, values, strict=True))

    def _wrench(self, q):
        rows = np.zeros((len(self.mech.links), 6), dtype=complex)
        poses = sb.forward_kinematics(self.mech, q)
        for link, load in self.loads:
            R = poses[link, :3, :3] if load.frame == "world" else np.eye(3)
            force = R.T @ load.force
            rows[link, :3] += R.T @ load.moment + np.cross(load.point, force)
            rows[link, 3:] += force
        return rows

    def _shoot(self, splines, start):
        active, n = self.mech.active_mask, self.mech.n
        given = np.zeros((3, 2 * STEPS + 1, n), dtype=complex)
        for c, j in enumerate(self.driven):
            for r in range(3):
                given[r][:, j] = splines[r][:, c] if active[j] else (splines[0][:, c] if r == 2 else 0.0)
        self.qddd = np.zeros((STEPS + 1, n), dtype=complex)
        for c, j in enumerate(self.driven):
            self.qddd[:, j] = splines[3][::2, c] if active[j] else 0.0

        def answer(half, z):
            q, qd = (np.where(active, given[r][half], z[r]) for r in range(2))
            return q, qd, sb.hybrid_dynamics(self.mech, q, qd, given[2][half], self._wrench(q))

        def rate(half, z):
            _, qd, y = answer(half, z)
            return np.array([np.where(active, 0.0, qd), np.where(active, 0.0, y)])

        h, z, nodes = self.T / STEPS, np.array(np.nan_to_num(start), dtype=complex), []
        for k in range(STEPS):
            nodes.append(answer(2 * k, z))
            k1 = rate(2 * k, z)
            k2 = rate(2 * k + 1, z + h / 2 * k1)
            k3 = rate(2 * k + 1, z + h / 2 * k2)
            k4 = rate(2 * k + 2, z + h * k3)
            z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        nodes.append(answer(2 * STEPS, z))
        self.q, self.qd, y = (np.array(part) for part in zip(*nodes, strict=True))
        u = given[2][::2]
        self.qdd, self.tau = np.where(active, u, y), np.where(active, y, u)

    def integral(self, f):
        return self.T * (self.weights @ f)[()] if f.ndim == 1 else self.T * np.sum(self.weights @ f)


def wave(at):
    return np.cos(at.q).sum(axis=1) * at.tau[:, -1] + at.t * at.qd[:, 0] * at.qdd[:, 0]


def wave_gradient(at):
    n = at.q.shape[1]
    last, first = np.eye(n)[-1], np.eye(n)[0]
    return {
        "q": -np.sin(at.q) * at.tau[:, -1:],
        "tau": np.cos(at.q).sum(axis=1)[:, None] * last,
        "qd": (at.t * at.qdd[:, 0])[:, None] * first,
        "qdd": (at.t * at.qd[:, 0])[:, None] * first,
        "t": at.qd[:, 0] * at.qdd[:, 0],
    }


def spent(m, motors):
    power = (m.tau * m.qd)[:, motors]
    return m.integral((np.sqrt(power**2 + 0.1**2) - 0.1).sum(axis=1))


OBJECTIVES = {
    "effort": (Effort(), lambda m, a: 0.5 * m.integral((m.tau[:, a] ** 2).sum(axis=1))),
    "mixed": (Mixed(0.3), lambda m, a: 0.7 * m.T + 0.3 * m.integral((m.tau[:, a] ** 2).sum(axis=1))),
    "time": (2.0 * Time(), lambda m, a: 2.0 * m.T),
    "acceleration": (Acceleration(), lambda m, a: 0.5 * m.integral((m.qdd**2).sum(axis=1))),
    "jerk": (Jerk(), lambda m, a: 0.5 * m.integral((m.qddd**2).sum(axis=1))),
    "energy": (EnergySpent(smooth=0.1), spent),
    "terminal": (
        3.0 * Terminal(q=1.2) + Terminal(qd=0.3),
        lambda m, a: 3.0 * ((m.q[m.grid.stop - 1] - 1.2) ** 2).sum() + ((m.qd[m.grid.stop - 1] - 0.3) ** 2).sum(),
    ),
    "own": (Running(wave, wave_gradient), lambda m, a: m.integral(wave(m))),
    "own, differenced": (Running(wave), lambda m, a: m.integral(wave(m))),
    "own, at the end": (
        AtEnd(lambda at: at.tau[:, 0] * at.q[:, 0]),
        lambda m, a: m.tau[m.grid.stop - 1, 0] * m.q[m.grid.stop - 1, 0],
    ),
}

PROBLEMS = {
    "inverse": lambda **o: Problem(
        library.planar_2r(damping=0.1), start=[0.3, -1.0], end=[1.0, 0.5], points=7, samples=9, **o
    ),
    "inverse, loads and rates": lambda **o: Problem(
        library.xiang_two_link(),
        start=([0.3, -1.0], [1.0, 0.5], [2.0, 0.0]),
        end=([1.0, None], [0.2, -0.3]),
        points=8,
        samples=9,
        loads=[
            Load("forearm", force=[3, -10, 0], moment=[0, 0, 1.5], point=[0.4, 0.1, 0]),
            Load("upper_arm", force=[1, 2, 0], point=[0.2, 0, 0], frame="link"),
        ],
        **o,
    ),
    "inverse, no motor": lambda **o: Problem(
        library.acrobot(), transcription="inverse", start=[-1.0, 0.0], end=[1.5, 0.0], points=8, samples=9, **o
    ),
    "shooting": lambda **o: Problem(
        library.acrobot().with_drive(active=["elbow"]),
        start=[-1.0, 0.0],
        end={"elbow": 0.4},
        points=7,
        steps=STEPS,
        **o,
    ),
    "shooting, rates": lambda **o: Problem(
        library.branched_acrobot().with_drive(active=["left_hip"]),
        start=([-1.0, 0.0, 0.1], [0.2, 0.5, -0.1]),
        end={"qd": {"left_hip": 0.3}},
        points=6,
        steps=STEPS,
        loads=Load("left_leg", force=[1, -2, 0], point=[1, 0, 0], frame="link"),
        **o,
    ),
    "shooting, loads in space": lambda **o: Problem(
        library.pendulum(3).with_drive(actuated=["joint2", "joint3"], active=["joint2"]),
        start=[-1.0, 0.4, -0.3],
        points=6,
        steps=STEPS,
        loads=[
            Load(2, force=[3, -2, 0], moment=[0, 0, 1.5], point=[0.4, 0.1, 0]),
            Load(1, force=[-1, 4, 0.5], point=[0.2, -0.3, 0.1]),
            Load(1, force=[0.5, 0.3, 0], moment=[0, 0, 0.7], point=[0.2, 0, 0], frame="link"),
        ],
        **o,
    ),
    "shooting, torque": lambda **o: Problem(library.acrobot("rods"), start=[-1.0, 0.2], points=6, steps=STEPS, **o),
}
DURATIONS = {"fixed": 0.9, "free": (0.5, 2.0)}


def cases(*slow):
    """Return the decorator for all problems with both durations, of which some take long."""
    return pytest.mark.parametrize(
        ("kind", "duration"),
        [
            pytest.param(*case, marks=[pytest.mark.slow] * (case in slow))
            for case in itertools.product(PROBLEMS, DURATIONS)
        ],
    )


def made(kind, duration, **options):
    problem = PROBLEMS[kind](duration=DURATIONS[duration], **{"objective": Effort(), "limits": None, **options})
    x = problem.first_guess() + np.random.default_rng(3).normal(size=problem.transcription.size) * 0.3
    if duration == "free":
        x[-1] = 0.93
    return problem, x


def moved(problem, x):
    """Return the motion at x, and those a complex step along each variable."""
    motions = [Motion(problem, x.astype(complex))]
    for j in range(len(x)):
        z = x.astype(complex)
        z[j] += 1j * STEP
        motions.append(Motion(problem, z))
    return motions


def complex_gradient(motions, function):
    return np.stack([np.asarray(function(m)).imag / STEP for m in motions[1:]], axis=-1)


def assert_same(found, wanted, tolerance=TOLERANCE):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tolerance * max(1e-3, np.abs(wanted).max())


@cases(
    ("inverse", "fixed"),
    ("inverse", "free"),
    ("inverse, loads and rates", "fixed"),
    ("shooting, loads in space", "free"),
    ("shooting, rates", "free"),
)
def test_every_objective_has_the_gradient_of_the_computed_cost(kind, duration):
    problem, x = made(kind, duration)
    motors = problem.mech.actuated_mask
    integrals = Effort()  # so that the samples of integrals are there
    problem = problem.replace(objective=integrals)
    motions = moved(problem, x)
    for name, (objective, function) in OBJECTIVES.items():
        programme = problem.replace(objective=objective + 0.0 * integrals).programme(x)
        cost = function(motions[0], motors).real
        assert abs(programme.cost(x) - cost) <= 1e-10 * max(1.0, abs(cost)), name
        wanted = complex_gradient(motions, lambda m, function=function: function(m, motors))
        assert_same(programme.gradient(x), wanted, 1e-8 if "differenced" in name or "end" in name else TOLERANCE)


def limited(problem):
    """All kinds of limits and constraints, and their values from a `Motion`."""
    first, last = problem.mech.names[0], problem.mech.names[-1]
    tip = problem.mech.links[-1].name
    target = np.eye(4)
    target[:2, 3] = 0.4, 0.7
    constraints = [
        Position(tip, lower=[-5, -5, None], upper=[5, 5, None], tool=[0.4, 0.1, 0.0], at="all"),
        Position(tip, target=[0.3, None, None], at="end"),
        Constraint(lambda at: np.sin(at.q) * at.tau, lower=-90.0, upper=100.0, at="end", name="differenced"),
        Constraint(
            lambda at: at.q[:, 0] * at.qd[:, 0] + at.t,
            upper=50.0,
            gradient=lambda at: {"q": at.qd * _one(at), "qd": at.q * _one(at), "t": np.ones(len(at))},
            name="own",
        ),
    ]
    limits = {
        "position": {last: (-9, 9)},
        "velocity": 20.0,
        "acceleration": {first: 300.0},
        "torque": 90.0,
        "power": 500.0,
    }
    if problem.on_splines.any():  # the jerk of others is not known
        limits["jerk"] = 1e4
    return limits, constraints


def _one(at):
    return np.eye(at.q.shape[1])[0]


@cases(("shooting, loads in space", "fixed"), ("shooting, rates", "fixed"), ("inverse, no motor", "free"))
def test_every_constraint_has_the_jacobian_of_the_computed_values(kind, duration):
    problem, x = made(kind, duration)
    limits, constraints = limited(problem)
    problem = problem.replace(limits=limits, constraints=constraints)
    programme = problem.programme(x)
    motors = np.flatnonzero(problem.mech.actuated_mask)
    tip = problem.mech.links[-1].name
    link = problem.mech.link_index(tip)

    def places(m, tool):
        poses = np.array([sb.forward_kinematics(m.mech, q)[link] for q in m.q])
        return poses[:, :3, :3] @ tool + poses[:, :3, 3]

    wanted = {
        "position": lambda m: m.q[m.grid][:, -1:],
        "velocity": lambda m: m.qd[m.grid],
        "acceleration": lambda m: m.qdd[m.grid][:, :1],
        "jerk": lambda m: m.qddd[m.grid][:, problem.on_splines],
        "torque": lambda m: m.tau[m.grid][:, motors],
        "power": lambda m: (m.tau * m.qd)[m.grid][:, motors],
        "own": lambda m: (m.q * m.qd)[m.grid][:, 0] + m.t[m.grid],
        "differenced": lambda m: (np.sin(m.q) * m.tau)[m.grid.stop - 1],
        "no motor": lambda m: m.tau[problem.transcription.places("collocation")][:, [0]],
    }
    J, motions = programme.jacobian(x), moved(problem, x)
    seen = 0
    for block in programme.blocks:
        name = block.constraint.name
        if isinstance(block.constraint, Position):
            at = slice(None) if block.constraint.at == "all" else slice(problem.transcription.grid.stop - 1, None)
            axes, tool, grid = block.constraint.axes, block.constraint.tool, problem.transcription.grid

            def function(m, at=at, axes=axes, tool=tool, grid=grid):
                return places(m, tool)[grid][at][:, axes]
        elif name == "end":  # the state of integrated joints
            continue
        else:
            function = wanted[name]
        found = J[block.rows] * block.scale[:, None]
        exact = complex_gradient(motions, function).reshape(found.shape)
        assert_same(found, exact, 1e-8 if name == "differenced" else TOLERANCE)
        values = programme.constraints(x)[block.rows] * block.scale
        assert_same(values, np.real(function(motions[0])).ravel(), 1e-10)
        seen += 1
    assert seen >= 8 + problem.on_splines.any()


def differenced(function, x, steps):
    return np.stack(
        [
            sum(w / h * function(x + k * h * np.eye(len(x))[j]) for k, w in STENCIL)
            for j, h in enumerate(np.broadcast_to(steps, x.shape))
        ],
        axis=-1,
    )


@pytest.mark.parametrize("mask", ["pose", "position", "orientation"])
def test_a_pose_has_the_jacobian_of_its_logarithm(mask):
    arm = library.puma560()
    rng = np.random.default_rng(5)
    target = arm.forward_kinematics(rng.uniform(-1, 1, arm.n))[-1]
    tool = np.eye(4)
    tool[:3, 3] = 0.1, 0.0, 0.2
    constraint = Pose(arm.links[-1].name, target, tool=tool, mask=mask, at=[0.0, 0.3, 1.0])
    problem = Problem(
        arm,
        duration=1.0,
        start=rng.uniform(-1, 1, 6),
        objective=Effort(),
        limits=None,
        points=6,
        constraints=[constraint],
    )
    x = problem.first_guess() + 0.1 * rng.normal(size=problem.transcription.size)
    programme = problem.programme(x)
    assert_same(programme.jacobian(x), differenced(programme.constraints, x, 1e-3), 1e-8)


def test_exact_and_integrated_ends_are_equations_with_their_jacobian():
    acrobot = library.acrobot().with_drive(active=["elbow"])
    objective = Effort() + 10 * Terminal(q={"shoulder": 1.5}) + Terminal(qd={"shoulder": 0.0})
    problem = Problem(
        acrobot,
        duration=(0.5, 2.0),
        start=[-1.0, 0.0],
        end=[1.5, 0.2],
        objective=objective,
        points=7,
        exact=True,
        steps=8,
    )
    x = problem.first_guess()
    programme = problem.programme(x)
    assert [len(programme.lower[block.rows]) for block in programme.blocks] == [2, 1, 1]
    assert (programme.lower == programme.upper).all()
    assert_same(programme.jacobian(x), differenced(programme.constraints, x, 1e-4), 1e-7)
    assert repr(problem.objective) == "Effort()"


# ---------------------------------------------------------------- the check that users are offered


def test_the_check_finds_a_wrong_gradient_and_passes_right_ones():
    right = PROBLEMS["shooting"](
        duration=1.0,
        objective=Effort() + Running(wave, wave_gradient, name="wave") + Terminal(q=1.0),
        limits={"torque": 9},
    )
    assert right.check_gradients().ok
    assert "ok" in str(right.check_gradients())
    right.check_gradients().raise_if_wrong()
    # the power of which passes zero within a step of the differences
    assert Problem("planar_2r", duration=0.8, start=[0, 0], end=[1, 1], objective=EnergySpent()).check_gradients().ok

    def slightly_wrong(at):
        parts = wave_gradient(at)
        return {**parts, "q": 1.001 * parts["q"]}

    wrong = right.replace(objective=Effort() + Running(wave, slightly_wrong, name="wave"))
    found = wrong.check_gradients()
    assert not found.ok
    assert found.worst[0] == "Running('wave')"
    with pytest.raises(InvalidValue, match=r"Running\('wave'\): its gradient is off"):
        found.raise_if_wrong()
    assert found.errors["Effort()"] < 1e-9
    forgotten = Constraint(
        lambda at: at.q[:, 0] * at.qd[:, 0], upper=1.0, gradient=lambda at: {"q": at.qd * _one(at)}, name="half"
    )
    assert right.replace(constraints=[forgotten]).check_gradients().worst[0] == "constraint 'half'"


# ---------------------------------------------------------------- differences of a user's functions


def tipped(at):
    return np.sin(at.q).sum(axis=1) + 0.1 * at.qd[:, 0] ** 3


COPIES = {"itself": lambda at: at, "copied": copy.copy, "in part": lambda at: at.at(np.arange(len(at)))}


@pytest.mark.parametrize("read", COPIES)
def test_differences_are_to_what_a_function_asks_for(read):
    """They were to all channels, of which the others got the rounding of their differences."""
    problem = Problem(library.planar_2r(), duration=1.0, start=[0.3, 0.2], end=[1, 0.5], objective=Effort(), points=8)
    at, calls = problem.motion(), []

    def function(samples):
        calls.append(len(samples))
        return tipped(COPIES[read](samples))

    found = by_channel(function, at)
    assert set(found) == {"q", "qd"}
    np.testing.assert_allclose(found["q"], np.cos(at.q), atol=1e-11)
    np.testing.assert_allclose(found["qd"], 0.3 * at.qd**2 * [1, 0], atol=1e-11)
    assert len(calls) == 1 + 4 * 2 * 2 or read != "itself"


# ---------------------------------------------------------------- second derivatives for Ipopt


class _Refused(Exception):
    pass


@pytest.mark.parametrize("duration", DURATIONS)
@pytest.mark.parametrize("kind", ["inverse, loads and rates", "shooting"])
def test_the_hessian_by_colours_is_that_of_the_lagrangian(kind, duration):
    problem, x = made(kind, duration, limits={"torque": 50.0, "power": 100.0})
    programme = problem.programme(x)
    asked = _Asked(programme, lambda x: None, _Refused)
    y = np.random.default_rng(1).normal(size=len(programme.lower))
    full = differenced(lambda z: programme.lagrangian_gradient(z, 0.7, y), x, 1e-3)
    assert_same(
        programme.lagrangian_gradient(x, 0.7, y), 0.7 * programme.gradient(x) + y @ programme.jacobian(x), 1e-11
    )
    found = np.zeros_like(full)
    found[asked.hessianstructure()] = asked.hessian(x, y, 0.7)
    found = np.tril(found) + np.tril(found, -1).T
    assert_same(found, full, 1e-5)


def test_colours_are_few_where_a_pattern_is_a_band():
    n, width = 200, 4
    i = np.arange(n)
    pattern = np.abs(i[:, None] - i) < width
    groups = colours_of(pattern)
    assert sorted(np.concatenate(groups).tolist()) == i.tolist()
    assert len(groups) <= 2 * width
    for group in groups:
        assert pattern[:, group].sum(axis=1).max() == 1


def test_steps_and_their_sums_are_of_fourth_order():
    """The error of a cost falls as h⁴: that of the Runge-Kutta steps, and that of Simpson's rule."""
    acrobot = library.acrobot("rods").with_drive(active=["elbow"])
    costs = []
    for steps in (40, 80, 160, 1280):
        problem = Problem(
            acrobot,
            duration=(0.9, 1.0, 1.5),
            start=[-1.0, 0.0],
            end={"elbow": 1.0},
            objective=Effort(),
            points=4,
            steps=steps,
        )
        programme = problem.programme()
        costs.append(programme.cost(problem.first_guess()))
    errors = np.abs(np.array(costs[:3]) - costs[3])
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.2)
    assert math.log2(errors[1] / errors[2]) == pytest.approx(4.0, abs=0.2)


def test_the_duration_of_a_motion_that_takes_a_given_time_has_no_gradient():
    """Rounding in the differences of a constant was taken for a derivative: `Time()` was called wrong."""
    problem = Problem(
        library.planar_2r(), duration=1.1, start=[0, 0], end=[1, 0], objective=Time() + Effort(), points=7, samples=3
    )
    checked = problem.check_gradients()
    assert checked.errors["Time()"] == 0.0 and checked.ok, str(checked)
