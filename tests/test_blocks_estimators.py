"""KALMAN and EKF: the recursions of the textbook, in both engines, and what they are for."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_are

import cstormpy as cs
from cstormpy.errors import InvalidValue, ShapeError
from cstormpy.mechanism import library
from cstormpy.signals.estimation import motion_step
from cstormpy.signals.noise import normal, uniform

H = 0.05
A = np.array([[1.0, H], [-2.0 * H, 1.0 - 0.3 * H]])
B, C = np.array([[0.0], [H]]), np.array([[1.0, 0.0]])
Q, R, P0 = np.diag([1e-5, 4e-4]), np.array([[0.01]]), np.diag([0.5, 2.0])
ACROBOT = library.acrobot().with_parameters({"elbow.damping": 0.1, "shoulder.damping": 0.05})
START = np.array([-1.2, 0.4, 0.0, 0.0])


def diagram(engine):
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    clock = bd.clock(H)
    push = bd.WAVEFORM("sine", freq=0.4, amplitude=2.0, name="push")
    system = bd.DISCRETESS(clock, A, B, np.eye(2), x0=[1.0, 0.0], name="system")
    measured = bd.SUM("++", name="measured")
    bd.connect(push, held := bd.ZOH(clock, name="held"))
    bd.connect(held, system)
    bd.connect(system, first := bd.INDEX([0], name="first"))
    bd.connect(first, measured[0])
    bd.connect(bd.NOISE(clock, std=0.1, seed=1, name="noise"), measured[1])
    for name, spread in (("filter", P0), ("steady", None)):
        made = bd.KALMAN(clock, A, B, C, Q, R, P0=spread, name=name)
        bd.connect(held, made.u)
        bd.connect(measured, made.measured)
        bd.connect(made, bd.NULL())
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=START[:2], name="plant")
    bd.connect(held, plant.tau)
    wrong = START + np.array([0.3, -0.2, 0.4, 0.1])
    ekf = bd.EKF(clock, ACROBOT, Q=1e-8, R=1e-4, x0=wrong, P0=0.1, substeps=2, name="ekf")
    noisy = bd.SUM("++", name="noisy")
    bd.connect(plant.q, noisy[0])
    bd.connect(bd.NOISE(clock, std=0.01, n=2, seed=2, name="encoders"), noisy[1])
    bd.connect(push, ekf.tau)  # which the hold, and so the plant, takes at the same tick
    bd.connect(noisy, ekf.measured)
    bd.connect(ekf, bd.NULL())
    return sim, bd


WATCHED = ["filter", "steady", "system", "held", "measured", "ekf", "plant.q", "plant.qd"]


@pytest.fixture(scope="module")
def runs():
    found = []
    for engine in ("interpreted", "compiled"):
        sim, bd = diagram(engine)
        found.append(sim.run(bd, T=3.02, watch=WATCHED, rtol=1e-9, atol=1e-10))
        assert engine == "interpreted" or sim.explain(bd).count("output: traced; next: traced") >= 5
    return found


def at_ticks(out, name):
    """Return a signal as it stands a little after each tick."""
    return out.signal(name)[np.searchsorted(out.t, H * np.arange(61) + 1e-3) - 1]


def test_both_engines_estimate_the_same(runs):
    for name in ("filter", "steady", "ekf"):
        np.testing.assert_allclose(at_ticks(runs[1], name), at_ticks(runs[0], name), atol=1e-7)


def test_the_filter_follows_the_textbook(runs):
    """Gain, estimate and covariance as written in any textbook, with the plain form of the correction."""
    u = np.concatenate([[0.0], 2.0 * np.sin(0.8 * np.pi * H * np.arange(60))])  # as held before each tick
    k = np.arange(61.0)
    # at tick k the blocks of the clock see each other as they were before it
    x, seen, noise = np.array([1.0, 0.0]), [], 0.1 * normal(uniform(1.0, k))
    for j in range(61):
        seen.append(x[0] + noise[j])
        x = A @ x + B[:, 0] * u[j]
    steady = solve_discrete_are(A.T, C.T, Q, R)
    for name, P in (("filter", P0), ("steady", steady)):
        x, found = np.zeros(2), at_ticks(runs[1], name)
        for j in range(61):
            K = P @ C.T @ np.linalg.inv(C @ P @ C.T + R)
            x = x + K[:, 0] * (seen[j] - x[0])
            np.testing.assert_allclose(found[j], x, atol=1e-10)
            x, P = A @ x + B[:, 0] * u[j], A @ (np.eye(2) - K @ C) @ P @ A.T + Q


def test_the_extended_filter_finds_the_motion(runs):
    """From a wrong start, with positions that are measured only: the rates, which are not measured, are found."""
    out = runs[1]
    truth = np.hstack([at_ticks(out, "plant.q"), at_ticks(out, "plant.qd")])
    error = np.abs(at_ticks(out, "ekf") - truth)
    assert error[0].max() > 0.3
    assert error[30:, :2].max() < 0.01 and error[30:, 2:].max() < 0.1, error[30:].max(axis=0)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("block", ["kalman", "ekf"])
def test_what_follows_from_the_estimate_is_held_and_fed_back(engine, block):
    """From the true start, without noise, the estimate is the truth: with what was held before it was a period late."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    clock = bd.clock(H)
    hold = bd.ZOH(clock, name="hold")
    options = {"Q": 1e-6, "R": 1e-4, "x0": [-1.2, 0.5], "P0": 1e-3, "held": True, "name": "filter"}
    if block == "kalman":
        plant = bd.STATESPACE([[0, 1], [0, 0]], [[0], [1]], np.eye(2), x0=[-1.2, 0.5])
        made = bd.KALMAN(clock, [[1, H], [0, 1]], [[H * H / 2], [H]], [1.0, 0.0], **options)
        bd.connect(plant, first := bd.INDEX([0]))
        bd.connect(first, made.measured)
    else:
        plant = bd.HYBRIDDYNAMICS("pendulum", q0=[-1.2], qd0=[0.5])
        made = bd.EKF(clock, "pendulum", substeps=10, **options)
        bd.connect(plant.q, made.measured)
    bd.connect(made, law := bd.FUNCTION(lambda x: np.array([-8.0 * x[0] - 3.0 * x[1]]), name="law"))
    bd.connect(law, hold)
    bd.connect(hold, plant[0], made[0])
    out = sim.run(bd, T=3.02, watch=["filter"], rtol=1e-9, atol=1e-11)
    truth = out.x[np.searchsorted(out.t, H * np.arange(61) + 1e-3) - 1]
    assert np.ptp(truth[:, 0]) > 0.3
    np.testing.assert_allclose(at_ticks(out, "filter"), truth, atol=1e-12 if block == "kalman" else 1e-7)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_the_extended_filter_follows_rotation_vectors_that_a_run_recentres(engine):
    """At each of the three it took a turn of 2π for an innovation, and was three radians off."""
    links = [cs.Link("body", joint=cs.Spherical(), mass=1.0, com=(0, -0.5, 0), inertia=(0.1, 0.2, 0.15))]
    body, sim = cs.Mechanism(links, actuated=[]), cs.Simulation(engine=engine, live=False, progress=False)
    bd, start = sim.blockdiagram(), [0.3, 0.2, 0.1, 0.0, 6.0, 0.0]
    plant = bd.HYBRIDDYNAMICS(body, q0=start[:3], qd0=start[3:], name="plant")
    ekf = bd.EKF(bd.clock(H), body, x0=start, substeps=5, name="ekf")
    bd.connect(plant.q, ekf)  # without motors there is no port for their torques
    bd.connect(ekf, bd.NULL())
    out = sim.run(bd, T=3.02, watch=["plant", "ekf"], rtol=1e-9, atol=1e-10)
    assert len(out.events) == 3
    truth = np.hstack([at_ticks(out, "plant.q"), at_ticks(out, "plant.qd")])
    np.testing.assert_allclose(at_ticks(out, "ekf"), truth, atol=1e-3)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("steady", [False, True])
def test_derivatives_through_a_filter_do_not_depend_on_how_small_its_covariances_are(steady, engine):
    """Differences moved those of 1e-8 by a hundred times their size. All by one factor, the gain is the same.

    So does that of the steady state at which it begins: to a Q of 1e-6 the gradient was 60 % off.
    """
    sim, found = cs.Simulation(engine=engine, live=False, progress=False), []
    for size in (1.0, 1e-6):
        bd = sim.blockdiagram()
        clock, spread = bd.clock(H), None if steady else size * P0
        made = bd.KALMAN(clock, A, B, C, size * Q, size * R, P0=spread, x0=[0.2, 0.0], name="filter")
        bd.connect(bd.CONSTANT(0.3), made.u)
        bd.connect(bd.NOISE(clock, std=0.1, seed=1), made.measured)
        bd.connect(made, bd.NULL())
        names, last = ["filter.R[0,0]", "filter.Q[0,0]"], lambda out: out.signal("filter")[-1, 0]
        slopes = sim.gradient(bd, last, names, T=0.51, watch=["filter"])
        found.append(size * slopes.gradient)
        assert slopes.differenced == []
    np.testing.assert_allclose(found[1], found[0], rtol=1e-8)


def test_a_run_that_goes_on_has_no_derivative_by_the_steady_state_of_a_filter():
    """The saved covariance began as the steady state of the numbers does: the gradient was a fifth off."""
    sim, found = cs.Simulation(engine="interpreted", live=False), []
    for spread in (None, solve_discrete_are(A.T, C.T, Q, R)):
        bd = sim.blockdiagram()
        clock = bd.clock(H)
        made = bd.KALMAN(clock, A, B, C, Q, R, P0=spread, x0=[0.2, 0.0], name="filter")
        bd.connect(bd.CONSTANT(0.3), made.u)
        bd.connect(bd.NOISE(clock, std=0.1, seed=1), made.measured)
        bd.connect(made, bd.NULL())
        names, last = ["filter.R[0,0]", "filter.Q[0,0]"], lambda out: out.signal("filter")[-1, 0]
        found.append(sim.gradient(bd, last, names, T=0.2, watch=["filter"], start=sim.run(bd, T=0.31)).gradient)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_the_extended_filter_estimates_closed_mechanisms(engine):
    """Interpreted runs failed where a correction, or noise, opens the loops a little."""
    mech, H = library.four_bar(damping=0.05), 0.01
    start, wrong = (mech.project(np.array([1.0, -1.8, -2.0]) + off)[0] for off in (0.0, 0.1))
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    clock = bd.clock(H)
    plant = bd.HYBRIDDYNAMICS(mech, q0=start, name="plant")
    motor = bd.ZOH(clock, name="motor")
    ekf = bd.EKF(clock, mech, Q=1e-9, R=1e-6, x0=[*wrong, 0.1, 0, 0], P0=1e-4, held=True, name="ekf")
    bd.connect(bd.WAVEFORM("sine", freq=0.5, amplitude=2.0), motor)
    bd.connect(motor, plant.tau, ekf.tau)
    bd.connect(plant.q, ekf.measured)
    bd.connect(ekf, bd.NULL())
    out = sim.run(bd, T=0.505, watch=["ekf"], rtol=1e-8, atol=1e-10)
    at = np.searchsorted(out.t, H * np.arange(51) + 1e-3) - 1
    error = np.abs(out.signal("ekf")[at] - out.x[at])
    assert error[0].max() > 0.05 and error[-1].max() < 2e-3, error.max(axis=1)


def summed_estimate(engine, mech="acrobot"):
    """Return a diagram that integrates the estimate of a filter beside a plant."""
    bd = (sim := cs.Simulation(engine=engine, live=False, progress=False)).blockdiagram()
    plant, torque = bd.HYBRIDDYNAMICS("acrobot", q0=[0.4, -0.2], name="plant"), bd.CONSTANT(0.7, name="torque")
    ekf = bd.EKF(bd.clock(H), mech, Q=1e-4, R=1e-3, x0=[0.3, -0.1, 0, 0], P0=0.1, name="ekf")
    bd.connect(torque, plant.tau, ekf.tau)
    bd.connect(plant.q, ekf.measured)
    bd.connect(ekf, bd.INTEGRATOR(np.zeros(4), name="sum"))
    return sim, bd


def heavy(factor):
    mech = library.acrobot()
    return mech.with_parameters({"forearm.mass": factor * mech.links[1].mass})


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_the_mechanism_of_a_filter_is_tuned_as_that_of_a_plant(engine):
    """Its numbers had no names: "ekf.forearm.mass" was refused, and "forearm.mass" was the plant's alone."""
    at, options = heavy(1.0).links[1].mass, {"T": 0.2, "rtol": 1e-10, "atol": 1e-12}
    sim, bd = summed_estimate(engine)
    exact = [
        sim.gradient(bd, "sum:x_1", [name], **options).gradient[0] for name in ("ekf.forearm.mass", "forearm.mass")
    ]
    both, alone = [], []
    for factor in (1.001, 0.999):
        bd["ekf"].mech, bd["plant"].mech = heavy(factor), heavy(1.0)
        alone.append(sim.run(bd, **options).x[-1])
        other_sim, other = summed_estimate(engine, heavy(factor))
        np.testing.assert_allclose(other_sim.run(other, **options).x[-1], alone[-1], rtol=1e-13)
        bd["plant"].mech = heavy(factor)
        both.append(sim.run(bd, **options).x[-1])
    for found, (more, less) in zip(exact, (alone, both), strict=True):
        assert found == pytest.approx((more[5] - less[5]) / (0.002 * at), rel=1e-5)
    with pytest.raises(InvalidValue, match="the ports are those of joints shoulder, elbow"):
        bd["ekf"].mech = "pendulum"


def test_a_step_of_a_motion_has_its_exact_derivative():
    """That of a linear oscillator is the exponential, to the order of the method; of an acrobot, as differences say."""
    K = np.array([[3.0, 1.0], [0.5, 2.0]])
    x, F = motion_step(lambda q, qd: (-K @ q - 0.2 * qd, -K, -0.2 * np.eye(2)), np.ones(2), np.zeros(2), 0.01)
    exact = expm(0.01 * np.block([[np.zeros((2, 2)), np.eye(2)], [-K, -0.2 * np.eye(2)]]))
    np.testing.assert_allclose(F, exact, atol=1e-10)
    np.testing.assert_allclose(x, exact @ [1.0, 1.0, 0.0, 0.0], atol=1e-10)

    def accelerate(q, qd):
        found = ACROBOT.hybrid_sensitivity(q, qd, np.array([0.0, 0.7]))
        return found.qdd, found.dy_dq, found.dy_dqd

    at = np.array([0.3, -0.4, 1.0, 0.5])
    F, slopes = motion_step(accelerate, at[:2], at[2:], 0.05)[1], []
    for k in range(4):
        sides = [motion_step(accelerate, *np.split(at + s * np.eye(4)[k], 2), 0.05)[0] for s in (1e-5, -1e-5)]
        slopes.append((sides[0] - sides[1]) / 2e-5)
    np.testing.assert_allclose(F, np.transpose(slopes), atol=1e-7)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda bd, c: bd.KALMAN(c, A, B, C, -1.0, 1.0), InvalidValue, "Q: must be positive semi-definite"),
        (lambda bd, c: bd.KALMAN(c, A, B, C, Q, 0.0), InvalidValue, "R: must be positive definite"),
        (lambda bd, c: bd.KALMAN(c, A, B, C, np.eye(3), 1.0), ShapeError, r"Q: expected shape \(2,\) or \(2, 2\)"),
        (lambda bd, c: bd.KALMAN(c, 2 * np.eye(2), B, C, Q, R), InvalidValue, "P0: there is no steady state"),
        (
            lambda bd, c: bd.KALMAN(c, [[0.8, 0.1], [0, 1]], B, C, [1e-3, 0], R),
            InvalidValue,
            "or that state a variance",
        ),
        (lambda bd, c: bd.KALMAN(c, [[1, 0.1], [0, 1]], B, C, 0.0, R), InvalidValue, "or that state a variance"),
        (lambda bd, c: bd.EKF(c, ACROBOT.with_drive(active=["elbow"])), InvalidValue, "'elbow' is active"),
        (lambda bd, c: bd.EKF(c, "acrobot", C=[[1.0, 0.0]]), ShapeError, "C: "),
    ],
)
def test_what_cannot_be_made_is_refused(make, kind, message):
    bd = cs.Simulation(live=False).blockdiagram()
    with pytest.raises(kind, match=message):
        make(bd, bd.clock(0.1))


def test_an_estimate_that_begins_in_degrees_is_noted(caplog):
    """As a plant's start is; the filter began hundreds of turns away, and nothing said so."""
    bd = cs.Simulation(live=False).blockdiagram()
    bd.EKF(bd.clock(0.1), ACROBOT, x0=[-68.5, 11, 90, 0])
    (told,) = caplog.messages
    assert told.startswith("joint 'shoulder': x0 -68.5 rad is more than two turns")


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_law_that_follows_the_estimate_is_wired_as_the_docstring_says(engine):
    """One hold before plant and filter, which is told of it."""
    sim = cs.Simulation(graphics=False, engine=engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[1.6, 0], name="plant")
    code = textwrap.dedent(bd.EKF.__doc__.partition("Examples:\n\n")[2].partition("\n\nCreate")[0])
    exec(code.replace("R=1e-6", "R=1e-10, Q=1e-12, P0=1e-9"), {"bd": bd, "plant": plant})
    out = sim.run(bd, T=1.0, watch=["plant", "filter"], live=False)
    at = np.searchsorted(out.t, np.arange(200) / 200 + 1e-6) - 1
    truth = np.hstack([out.signal("plant.q"), out.signal("plant.qd")])[at]
    np.testing.assert_allclose(out.signal("filter")[at], truth, atol=1e-6)
    assert np.ptp(truth[:, 3]) > 0.2


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_diagnostics_are_those_of_the_textbook(engine):
    """Covariances by their recursion, the innovation by what it has moved; on average as large as they say."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    clock, count = bd.clock(H), 4000
    system = bd.DISCRETESS(clock, A, np.eye(2), np.eye(2), name="system")
    bd.connect(bd.NOISE(clock, std=np.sqrt(np.diag(Q)), seed=3, name="push"), system)
    bd.connect(system, first := bd.INDEX([0], name="first"))
    measured = bd.SUM("++", name="measured")
    bd.connect(first, measured[0])
    bd.connect(bd.NOISE(clock, std=np.sqrt(R[0, 0]), seed=4, name="sensor"), measured[1])
    made = bd.KALMAN(clock, A, B, C, Q, R, P0=P0, diagnostics=True, name="filter")
    bd.connect(bd.CONSTANT(0.0), made.u)
    bd.connect(measured, made.measured)
    for port in (made.estimate, made.covariance, made.innovation, made.innovation_covariance):
        bd.connect(port, bd.NULL())
    out = sim.run(bd, T=H * count - 0.01, watch=["filter", "system"])
    at = np.searchsorted(out.t, H * np.arange(count) + 1e-3) - 1
    names = ("filter.estimate", "filter.covariance", "filter.innovation", "filter.innovation_covariance", "system")
    x, P, nu, S, truth = (out.signal(name)[at] for name in names)
    ahead, spread = np.zeros(2), P0
    for k in range(count):
        np.testing.assert_allclose(S[k], C @ spread @ C.T + R, rtol=1e-12)
        K = spread @ C.T @ np.linalg.inv(S[k])
        np.testing.assert_allclose(x[k] - ahead, K @ nu[k], atol=1e-12)
        np.testing.assert_allclose(P[k], (np.eye(2) - K @ C) @ spread, atol=1e-13)
        ahead, spread = A @ x[k], A @ P[k] @ A.T + Q
    of_innovation = nu[:, 0] ** 2 / S[:, 0, 0]
    error = x[1:] - truth[:-1]  # at a tick the blocks of a clock see one another as they were before it
    of_error = np.einsum("ki,kij,kj->k", error, np.linalg.inv(P[1:]), error)
    assert of_innovation[100:].mean() == pytest.approx(1.0, abs=0.1)
    assert of_error[100:].mean() == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_the_extended_filter_tells_its_diagnostics_too(engine):
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=START[:2], name="plant")
    ekf = bd.EKF(bd.clock(H), ACROBOT, x0=START + 0.1, P0=0.1, diagnostics=True, name="ekf")
    bd.connect(bd.CONSTANT(0.3), plant.tau, ekf.tau)
    bd.connect(plant.q, ekf.measured)
    out = sim.run(bd, T=1.02, watch=["ekf", "plant.q"])
    at = np.searchsorted(out.t, H * np.arange(21) + 1e-3) - 1
    nu, S, P = (out.signal(f"ekf.{name}")[at] for name in ("innovation", "innovation_covariance", "covariance"))
    assert nu.shape == (21, 2) and S.shape == (21, 2, 2) and P.shape == (21, 4, 4)
    np.testing.assert_allclose(nu[0], -0.1, atol=1e-12)
    np.testing.assert_allclose(S[0], (0.1 + 1e-4) * np.eye(2), rtol=1e-12)
    # the gain is P Cᵀ R⁻¹ too, of the covariance behind the measurement
    gain = P[:, :, :2] / 1e-4
    np.testing.assert_allclose(np.einsum("kij,kjl->kil", gain, S)[:, :2], S - 1e-4 * np.eye(2), rtol=1e-8, atol=1e-12)
