"""Margins of loops: of closed forms, and against the poles of loops that are changed by as much."""

import numpy as np
import pytest
from scipy.linalg import expm, solve_continuous_are, solve_discrete_are

import cstormpy as cs
from cstormpy import diagrams
from cstormpy.errors import DiagramError, InvalidType, InvalidValue, ShapeError, UnknownName
from cstormpy.simulation.analysis.linear import LinearModel


@pytest.fixture
def sim():
    return cs.Simulation(live=False, progress=False)


def lags(count, gain, dt=None):
    """Return gain / (s + 1)^count."""
    A = np.diag(np.ones(count - 1), 1) - np.eye(count)
    return LinearModel.of(A, np.eye(count)[:, -1:] * gain, np.eye(count)[:1], dt=dt)


def test_margins_of_a_loop_in_closed_form():
    """Of 4/(s+1)³ the phase is half a turn at √3, where the size is 1/2, and the size 1 at √(4^(2/3) − 1)."""
    found = lags(3, 4.0).margins(feedback=-1)
    at = np.sqrt(4.0 ** (2 / 3) - 1.0)
    turn = np.pi - 3.0 * np.arctan(at)
    assert found.stable and found.gain[0] == pytest.approx([0.0, 2.0], rel=1e-9)
    assert found.gain_at[0, 1] == pytest.approx(np.sqrt(3.0), rel=1e-9) and np.isnan(found.gain_at[0, 0])
    assert (found.phase[0], found.phase_at[0]) == pytest.approx((turn, at), rel=1e-9)
    assert found.delay[0] == pytest.approx(turn / at, rel=1e-9)
    w = np.linspace(0.5, 3.0, 200_001)
    assert found.distance[0] == pytest.approx(np.abs(1.0 + 4.0 / (1.0 + 1j * w) ** 3).min(), rel=1e-8)
    assert found.together == pytest.approx(found.distance[0], rel=1e-9)


def test_a_loop_with_a_pole_that_swings_for_ever_has_margins():
    """−(s + 1)/(s² + 4): any gain; its size is 1 where w⁴ − 9 w² + 15 = 0."""
    model = LinearModel.of([[0.0, 1.0], [-4.0, 0.0]], [[0.0], [1.0]], [[1.0, 1.0]])
    found = model.margins(feedback=-1)
    assert found.stable and found.gain[0].tolist() == [0.0, np.inf]
    ones = np.sqrt((9.0 + np.array([-1.0, 1.0]) * np.sqrt(21.0)) / 2.0)
    turns = np.angle(-(1j * ones + 1.0) / (4.0 - ones**2))
    assert found.phase[0] == pytest.approx(np.abs(turns).min(), rel=1e-9)
    assert found.delay[0] == pytest.approx((np.mod(turns, 2.0 * np.pi) / ones).min(), rel=1e-9)


def loop_of_random_numbers(rng, sampled):
    """Return a loop under feedback that is stable, its matrices and its period."""
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    A, B = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-1, 1), rng.normal(size=(n, m))
    if rng.random() < 0.3:
        A[:, :1] = 0.0  # an integrator
    K = B.T @ solve_continuous_are(A, B, np.eye(n), np.eye(m)) * rng.uniform(0.7, 2.0)
    if not sampled:
        return A, B, -K, rng.normal(size=(m, m)) * 0.2 * (rng.random() < 0.5), None
    dt = 0.1 / max(1.0, np.abs(np.linalg.eigvals(A - B @ K)).max())
    both = expm(np.block([[A, B], [np.zeros((m, n + m))]]) * dt)
    return both[:n, :n], both[:n, n:], -K, np.zeros((m, m)), dt


def is_stable(model, factors):
    """Return whether a model is stable with its loops closed through factors, which may be complex."""
    around = np.linalg.inv(np.diag(1.0 / np.asarray(factors)) - model.D)
    values = np.linalg.eigvals(model.A + model.B @ around @ model.C)
    return bool((values.real < 0).all() if model.dt is None else (np.abs(values) < 1).all())


@pytest.mark.parametrize("sampled", [False, True])
def test_a_loop_becomes_unstable_where_its_margins_are(sampled):
    """Just within a margin its poles decay, and just beyond they do not; on the way there they always do."""
    rng, seen = np.random.default_rng(7), 0
    for _ in range(30):
        *matrices, dt = loop_of_random_numbers(rng, sampled)
        model = LinearModel.of(*matrices, dt=dt)
        ones = np.ones(len(model.inputs), dtype=complex)
        found = model.margins()
        assert found.stable == is_stable(model, ones)
        if not found.stable:
            continue
        for k in range(len(ones)):

            def with_factor(factor, k=k, model=model, ones=ones):
                return is_stable(model, np.where(np.arange(len(ones)) == k, factor, ones))

            for border in found.gain[k]:
                end = min(max(border, 1e-6), 1e6)
                assert all(with_factor(end**share) for share in (0.1, 0.5, 0.9, 0.999))
                assert border in (0.0, np.inf) or not with_factor(border**1.001)
            end = min(found.phase[k], np.pi)
            assert all(with_factor(np.exp(-1j * end * share)) for share in (-0.99, -0.5, 0.5, 0.9, 0.999))
            if end < 0.99 * np.pi:
                assert not with_factor(np.exp(-1j * end * 1.001)) or not with_factor(np.exp(1j * end * 1.001))
            if np.isfinite(found.delay[k]):
                others = np.delete(np.arange(len(ones)), k)
                L = model.frequency_response([found.delay_at[k]])[0]
                around = np.linalg.inv(np.eye(len(others)) - L[np.ix_(others, others)])
                alone = L[k, k] + L[k, others] @ around @ L[others, k]
                assert alone * np.exp(-1j * found.delay_at[k] * found.delay[k]) == pytest.approx(1.0, abs=1e-6)
            seen += 1
    assert seen > 25


@pytest.mark.parametrize("at", ["controller.tau", "plant.tau"])
def test_an_optimal_regulator_has_the_margins_that_kalman_proved(sim, at):
    """|1 − L| ≥ 1 at all frequencies, so half to any times the gain and 60 degrees; a meter beside does not count."""
    bd = diagrams.load("acrobot").build(sim, controller="lqr")
    found = sim.margins(bd, {"plant": [np.pi / 2, 0.0, 0.0, 0.0]}, at=[at])
    assert found.stable and found.loops == (f"{at}[0]",) and not found.idle
    assert found.distance[0] == pytest.approx(1.0, abs=1e-9)
    assert 0.0 < found.gain[0, 0] <= 0.5 and found.gain[0, 1] == np.inf and found.phase[0] > np.pi / 3
    assert f"{found.delay[0]:.4g}" in repr(found) and "not stable" not in repr(found)
    at_limit = sim.margins(bd, {"plant": [np.pi / 2 + 1.0, 0.0, 0.0, 0.0]}, at=[at])
    assert at_limit.idle == at_limit.loops and "nothing comes back here, as where a limit" in repr(at_limit)


def sampled_loop(sim, more=()):
    """Return an integrator under a gain, −5, of what a clock samples ten times a second."""
    bd = sim.blockdiagram()
    held = bd.ZOH(bd.clock(0.1, "s"), x0=0.0, name="held")
    gain, plant = bd.GAIN(-5.0, name="gain"), bd.INTEGRATOR(x0=1.0, name="plant")
    total = bd.SUM("+" * (1 + len(more)), name="total")
    for wire in ((plant, held), (held, gain), (gain, total[0]), (total, plant)):
        bd.connect(*wire)
    for port, (factor, offset) in enumerate(more, 1):
        other = bd.ZOH(bd.clock(0.05, "s", offset=offset), x0=0.0, name=f"other{port}")
        side = bd.GAIN(factor, name=f"side{port}")
        for wire in ((plant, other), (other, side), (side, total[port])):
            bd.connect(*wire)
    return bd


@pytest.mark.parametrize("at", ["plant", "held", "gain", "total"])
def test_a_sampled_loop_is_judged_with_its_clock(sim, at):
    """z = 1 − K dt is stable up to K = 2/dt, wherever the loop is cut."""
    bd = sampled_loop(sim)
    found = sim.margins(bd, at=[at])
    assert found.stable and found.gain[0] == pytest.approx([0.0, 4.0], rel=1e-9)
    assert found.gain_at[0, 1] == pytest.approx(np.pi / 0.1)
    assert sim.margins(bd, at=[at], dt=0.1).delay == found.delay


def test_a_cut_loop_is_held_at_what_the_ticks_give(sim):
    """Not at what a ZOH holds before its first tick: without its torque an arm has another linear model."""
    mech, rest = cs.library.planar_2r(damping=0.1), np.array([0.4, 0.7])
    load = mech.gravity_load(rest)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=rest, name="plant")
    law = bd.FUNCTION(lambda q, qd: load - 15.0 * (q - rest) - 2.0 * qd, nin=2, name="law")
    held = bd.ZOH(bd.clock(0.02, "s"), x0=[0.0, 0.0], name="held")
    for wire in ((plant.q, law[0]), (plant.qd, law[1]), (law, held), (held, plant.tau)):
        bd.connect(*wire)
    model = sim.linearize(bd, inputs=["held"], outputs=["held"], opened=["held"], dt=0.02)
    np.testing.assert_allclose([model.u, model.y], [load, load], rtol=1e-12)
    first, *others = [sim.margins(bd, at=[at]) for at in ("law", "held", "plant.tau")]
    assert first.stable
    for found in others:
        np.testing.assert_allclose(found.gain, first.gain, rtol=1e-9)
        np.testing.assert_allclose([found.phase, found.delay], [first.phase, first.delay], rtol=1e-9)


def test_a_loop_of_two_rates_is_cut_where_one_clock_samples(sim):
    """Cut at the slow gain, z = 1 − (K + 3) dt + …; what moves between the ticks can not be cut by holding it."""
    bd = sampled_loop(sim, more=[(-3.0, 0.0)])
    found = sim.margins(bd, at=["gain"])
    for factor, stable in ((found.gain[0, 1] * 0.999, True), (found.gain[0, 1] * 1.001, False)):
        changed = sampled_loop(sim, more=[(-3.0, 0.0)])
        next(b for b in changed.blocklist if b.name == "gain").K = -5.0 * factor
        assert sim.linearize(changed, dt=0.1).stable == stable
    for at in ("total", "side1", "plant"):
        with pytest.raises(DiagramError, match=r"margins: at: what is cut moves or ticks between the ticks at 0, 0.1"):
            sim.margins(bd, at=[at])


def test_a_loop_with_a_filter_is_cut_before_the_hold_that_both_read(sim):
    """At a tick the filter reads what was held before; cut behind the hold, it was told to cut where a clock holds."""
    T, K = 0.1, np.array([[2.0, 1.5]])
    A, B, C = np.array([[1.0, T], [0.0, 1.0]]), np.array([[T * T / 2], [T]]), np.array([[1.0, 0.0]])
    bd = sim.blockdiagram()
    clock = bd.clock(T)
    P = solve_discrete_are(A.T, C.T, Q := np.diag([1e-3, 1e-2]), R := np.eye(1) * 1e-2)
    L = P @ C.T / (P[0, 0] + R)
    made, hold = bd.KALMAN(clock, A, B, C, Q, R, held=True, name="filter"), bd.ZOH(clock, name="hold")
    plant, law = bd.STATESPACE([[0, 1], [0, 0]], [[0], [1]], C), bd.GAIN(-K, premul=True, name="law")
    for wire in ((plant, made.measured), (made, law), (law, hold), (hold, plant, made.u)):
        bd.connect(*wire)
    with pytest.raises(DiagramError, match="of a ZOH that other blocks of its clock read too at what goes into it"):
        sim.margins(bd, at=["hold"])
    found, left = sim.margins(bd, at=["law"]), np.eye(2) - L @ C
    for factor, stable in ((0.999, True), (1.001, False)):
        gain = found.gain[0, 1] * factor * K  # x and the prediction, from tick to tick
        loop = np.block(
            [[A - B @ gain @ L @ C, -B @ gain @ left], [A @ L @ C - B @ gain @ L @ C, (A - B @ gain) @ left]]
        )
        assert (np.abs(np.linalg.eigvals(loop)).max() < 1.0) == stable


def test_loops_are_stable_but_for_what_they_do_not_move():
    """An integrator beside a loop does not count, nor does the rounding that couples it; one in the loop does."""
    A = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1e-15, 0.0, 0.0]])
    loop = LinearModel.of(A, [[1.0], [0.0], [0.0]], [[-1.0, 1e-16, 0.0]])
    assert loop.margins().stable
    held = LinearModel.of(A[:1, :1], [[1.0]], [[1.0]]).margins()  # 1/(s + 1), closed to 1/s
    assert not held.stable and held.distance[0] < 1e-9 and "not stable" in repr(held)


def test_what_is_not_a_loop_is_refused(sim):
    bd = diagrams.load("acrobot").build(sim, controller="lqr")
    with pytest.raises(InvalidType, match="margins: needs 'at'"):
        sim.margins(bd)
    with pytest.raises(UnknownName, match=r"margins: at: block 'plnt' does not exist; .*did you mean 'plant'"):
        sim.margins(bd, at=["plnt.tau"])
    with pytest.raises(ShapeError, match="an output for each input, got 0 inputs"):
        sim.margins(bd, at=[])
    with pytest.raises(ShapeError, match=r"got 1 inputs and 2 outputs; sim.margins\(bd, x, at="):
        sim.linearize(bd, inputs=["controller.tau"], outputs=["plant.q"]).margins()
    with pytest.raises(InvalidValue, match="feedback: expected 1 or -1, got 0"):
        lags(2, 1.0).margins(feedback=0)
    with pytest.raises(InvalidValue, match="act at once has no solution"):
        LinearModel.of([[-1.0]], [[1.0, 0.0]], [[1.0], [0.0]], np.eye(2)).margins()
