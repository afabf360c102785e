"""Identification of closed mechanisms: torques of motors tell what the loops let through, whatever these carry."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from closed_states import STARTS
from closeness import assert_close
from scipy.optimize import brentq

import cstormpy as cs
from cstormpy.identification import base_parameters

NUMBERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
START = STARTS | {"three_rrr": [-0.8, 1.6, -0.8, 1.3, 1.6, 3.4, 1.6]}


def made(name, damping=0.05):
    return getattr(cs.library, name)(damping=damping)


def a_log(mech, start, rows=150, seed=1, spread=0.5):
    """Return a log of closed states, whose accelerations are those under random torques of the motors."""
    rng = np.random.default_rng(seed)
    q, qd = mech.project(start + spread * rng.normal(size=(rows, mech.n)), 3.0 * rng.normal(size=(rows, mech.n)))
    tau = np.where(mech.actuated_mask, 5.0 * rng.normal(size=(rows, mech.n)), 0.0)
    return {"q": q, "qd": qd, "qdd": np.array(mech.forward_dynamics(q, qd, tau)), "tau": tau}


def true_values(found, mech):
    numbers = {
        f"{link.name}.{n}": x
        for link, ten in zip(mech.links, mech.inertial_numbers.reshape(-1, 10), strict=True)
        for n, x in zip(NUMBERS, ten, strict=True)
    }
    numbers |= {f"{name}.damping": joint.damping for name, joint in zip(mech.names, mech.freedoms, strict=True)}
    return found.base.matrix @ np.array([numbers[name] for name in found.names])


def wrong(mech):
    """Return a poor guess of the masses, with the same geometry."""
    return mech.with_parameters({f"{link.name}.mass": 1.4 * link.mass for link in mech.links})


# ---------------------------------------------------------------- base parameters
def crank_and_others(mech, theta):
    """Return the joints of the four-bar at an angle of its crank: the point where two circles meet."""
    (a, b, c), ground = (0.3, 0.8, 0.5), 0.9
    x, y = a * np.cos(theta), a * np.sin(theta)

    def gap(rocker):
        return np.hypot(ground + c * np.cos(rocker) - x, c * np.sin(rocker) - y) - b

    rocker = brentq(gap, 0.4, 3.1, xtol=1e-15, rtol=1e-14)
    rod = np.arctan2(c * np.sin(rocker) - y, ground + c * np.cos(rocker) - x)
    return np.array([theta, rod - theta, rocker])


def test_the_four_bar_has_as_many_base_parameters_as_its_power_shows():
    """The power of all forces along the one freedom, from the geometry of the four-bar, has that rank."""
    mech = cs.library.four_bar()
    rng, h, rows = np.random.default_rng(0), 2e-3, []
    for theta, rate, acceleration in zip(*rng.uniform(-3.0, 3.0, (3, 60)), strict=True):
        f = [crank_and_others(mech, theta + k * h) for k in range(-3, 4)]
        assert np.abs(mech.closure(f[3])).max() < 1e-12
        slope = sum(w * (f[3 + k] - f[3 - k]) for k, w in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))) / h
        bend = sum(w * (f[3 + k] - 2 * f[3] + f[3 - k]) for k, w in ((1, 3 / 2), (2, -3 / 20), (3, 1 / 90))) / h**2
        Y = mech.without_loops().regressor(f[3], slope * rate, slope * acceleration + bend * rate**2)
        rows.append(slope @ Y)
    values = np.linalg.svd(np.array(rows), compute_uv=False)
    rank = int((values > 1e-7 * values[0]).sum())
    assert values[rank - 1] > 1e-5 * values[0]  # told apart from the error of the differences
    assert len(base_parameters(mech)) == rank == 8


def test_a_gear_adds_what_turns_faster_with_the_square_of_its_rate():
    """By hand: behind a gear of 2 the forearm turns three times as fast as the upper arm."""
    gear = cs.Constraint(lambda q: q[1] - 2.0 * q[0], name="gear")
    found = base_parameters(cs.library.planar_2r().replace(loops=[gear]))
    assert [str(parameter) for parameter in found.parameters] == [
        "upper_arm.mx + 0.5 forearm.m",
        "upper_arm.my",
        "upper_arm.Izz + 0.25 forearm.m + 9 forearm.Izz",
        "forearm.mx",
        "forearm.my",
    ]


def test_all_ten_numbers_of_a_free_platform_can_be_found():
    mech = cs.library.stewart_platform()
    assert len(base_parameters(mech, "platform").alone) == 10


def test_random_motions_of_a_closed_mechanism_are_searched_for_once(monkeypatch):
    """They took most of each call, 0.2 s: of one mechanism they are the same each time."""
    searched, module = [], sys.modules["cstormpy.identification.base_parameters"]
    search = module.random_motions
    monkeypatch.setattr(module, "random_motions", lambda mech, *given: searched.append(mech) or search(mech, *given))
    mech = made("four_bar")
    first, again = base_parameters(mech), base_parameters(mech)
    assert searched == [mech] and np.array_equal(again.matrix, first.matrix)
    longer = mech.with_parameters({"rocker_rod.com": [0.1, 0.05, 0.0]})
    assert len(base_parameters(longer)) == len(first) and searched == [mech, longer]


each = pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "three_rrr"])


def torques_asked_by_the_silent(mech, log):
    """Return what motors see of the numbers that are regrouped away, and the size of all torques."""
    found = base_parameters(mech)
    _, _, rows = np.linalg.svd(found.matrix)
    silent = rows[len(found) :].T
    Y = mech.without_loops().regressor(log["q"], log["qd"], log["qdd"])
    A = mech.closure_jacobian(log["q"])
    left = []
    for y, a in zip(Y @ silent, A, strict=True):  # what it asks for, some forces in the loops give
        forces = np.linalg.lstsq(a.T, y, rcond=None)[0]
        left.append(np.abs(a.T @ forces - y).max())
    return max(left), np.abs(Y).max()


@pytest.mark.slow
@each
def test_what_is_regrouped_changes_no_torque_of_a_motor(name):
    mech = made(name, 0.0)
    left, size = torques_asked_by_the_silent(mech, a_log(mech, START[name]))
    assert left < 1e-8 * size


@pytest.mark.slow
def test_a_free_platform_is_regrouped_from_any_posture():
    """Of all links it ended where a posture on the way had a rotation vector of more than a turn."""
    mech = cs.library.stewart_platform()
    left, size = torques_asked_by_the_silent(mech, a_log(mech, np.zeros(mech.n), 30, spread=0.2))
    assert left < 1e-8 * size


# ---------------------------------------------------------------- what is found
@pytest.mark.slow
@each
def test_clean_data_give_back_what_can_be_found(name):
    truth = made(name)
    log, links = a_log(truth, START[name]), [link.name for link in truth.links]
    found = cs.identify(wrong(truth), log, [*links, "*.damping"], physical=False)
    assert found.rank == len(found.base)
    assert_close(found.base_values, true_values(found, truth), 1e-6)
    assert found.mechanism.loops == truth.loops
    check = a_log(truth, START[name], 30, seed=9)
    made_torques = found.mechanism.inverse_dynamics(check["q"], check["qd"], check["qdd"])
    assert_close(made_torques, truth.inverse_dynamics(check["q"], check["qd"], check["qdd"]), 1e-6)
    assert np.abs(found.residuals).max() < 1e-8 and not found.residuals[:, ~truth.actuated_mask].any()


@pytest.mark.slow
def test_bodies_stay_such_as_can_be():
    truth = made("four_bar")
    log, rng = a_log(truth, START["four_bar"], 60), np.random.default_rng(3)
    log["tau"] = log["tau"] + 2.0 * rng.normal(size=(60, 1)) * truth.actuated_mask
    found = cs.identify(truth, log)
    assert not found.plain
    assert all(not link.allow_impossible for link in found.mechanism.links)
    titles = [axes.get_title(loc="left") for axes in found.plot().axes]
    assert [title.partition(":")[0] for title in titles if "residual" in title] == ["crank"]  # which has the motor


@pytest.mark.slow
def test_noisy_torques_lie_within_three_standard_errors():
    truth = made("five_bar", 0.0)
    log, rng = a_log(truth, START["five_bar"], 60), np.random.default_rng(4)
    noise = np.where(truth.actuated_mask, [0.2, 0.0, 0.05, 0.0], 0.0)
    inside, seen = [], []
    for _ in range(200):
        noisy = {**log, "tau": log["tau"] + noise * rng.normal(size=log["tau"].shape)}
        found = cs.identify(truth, noisy, physical=False)
        off = np.abs(found.base_values - true_values(found, truth))
        inside.append(off < 3 * found.standard_errors)
        seen.append(off / found.standard_errors)
    assert np.mean(inside, axis=0).min() > 0.95
    assert np.abs(np.sqrt(np.mean(np.square(seen), axis=0)) - 1.0).max() < 0.25  # and they are no larger than that
    assert_close(found.noise[[0, 2]] / noise[[0, 2]], np.ones(2), 0.4)


@pytest.mark.slow
def test_motors_that_work_against_each_other_do_not_mislead():
    """Loads that redundant motors lay on the loops are in no equation, and the noise of each motor is told apart."""
    mech = made("five_bar")
    truth = mech.with_drive(actuated=mech.names)
    log, rng = a_log(truth, START["five_bar"], 200), np.random.default_rng(2)
    inner = np.einsum("smn,sm->sn", truth.closure_jacobian(log["q"]), 20.0 * rng.normal(size=(200, 2)))
    log["tau"] = log["tau"] + inner
    names = [*(link.name for link in truth.links), "*.damping"]
    found = cs.identify(wrong(truth), log, names, physical=False)
    assert found.rank == len(found.base)
    assert_close(found.base_values, true_values(found, truth), 1e-6)
    noise = np.array([0.4, 0.02, 0.1, 0.1])
    log["tau"] = log["tau"] + noise * rng.normal(size=(200, 4))
    noisy = cs.identify(wrong(truth), log, names, physical=False)
    assert (np.abs(noisy.base_values - true_values(noisy, truth)) < 4 * noisy.standard_errors).all()
    assert abs(noisy.noise[0] / noise[0] - 1.0) < 0.4 and noisy.noise[1] < 0.2


@pytest.mark.slow
def test_a_freedom_without_motor_tells_too():
    """One motor, two freedoms: what moves by itself obeys equations of its own."""
    truth = made("five_bar").with_drive(actuated=["left_shoulder"])
    found = cs.identify(wrong(truth), a_log(truth, START["five_bar"]), physical=False)
    assert found.rank == len(found.base)
    assert_close(found.base_values, true_values(found, truth), 1e-6)


def a_run(truth, end):
    """Return a run of the four-bar under a torque in its crank."""
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(truth, q0=truth.project(START["four_bar"], hold=["crank"])[0], name="plant")
    torque = bd.FUNCTION(lambda t: 3 * np.sin(3 * t) + 2 * np.sin(7.3 * t), nin=1, nout=1, name="torque")
    bd.connect(bd.TIME(), torque)
    bd.connect(torque, plant.tau)
    return sim.run(bd, T=end, dt=0.005, rtol=1e-9, watch=["plant.q", "plant.qd", "torque"])


SIGNALS = {"q": "plant.q", "qd": "plant.qd", "tau": "torque"}


@pytest.mark.slow
def test_a_run_of_a_closed_mechanism_is_a_log():
    truth = made("four_bar", 0.1)
    poor = truth.with_parameters({"coupler_rod.mass": 2.0, "crank.damping": 0.0})
    found = cs.identify(
        poor, a_run(truth, 5.0), ["coupler_rod.mass", "crank.damping"], signals=SIGNALS, control_points=600
    )
    assert abs(found.mechanism.link("coupler_rod").mass - 0.8) < 1e-4
    assert abs(found.mechanism.joint("crank").damping - 0.1) < 1e-4


@pytest.mark.slow
def test_a_simulated_motion_fits_that_of_a_closed_mechanism():
    """Output error: states at which the simulation begins anew are closed, and noise of the positions is no bias."""
    truth, names = made("four_bar", 0.1), ["coupler_rod.mass", "crank.damping"]
    poor = truth.with_parameters({"coupler_rod.mass": 1.2, "crank.damping": 0.05})
    out = a_run(truth, 2.0)
    found = cs.identify(poor, out, names, signals=SIGNALS, form="output")
    assert np.abs(found.values / [0.8, 0.1] - 1.0).max() < 1e-3  # torques count as linear between the rows
    assert found.mechanism.loops == truth.loops
    q, rng = out.signal("plant.q"), np.random.default_rng(0)
    log = {"t": out.t, "q": q + 1e-3 * rng.normal(size=q.shape), "tau": out.signal("torque").reshape(-1, 1)}
    noisy = cs.identify(poor, log, names, form="output", control_points=80)
    assert (np.abs(noisy.values - [0.8, 0.1]) < 3 * noisy.standard_errors).all()
    assert (noisy.standard_errors < [2e-3, 5e-4]).all()
    assert_close(noisy.noise, np.full(3, 1e-3), 2e-4)
    with pytest.raises(
        cs.InvalidValue, match=r"by an acceleration of .* It was differentiated: .* fewer control_points="
    ):
        cs.identify(poor, log, names, control_points=300)
    with pytest.raises(cs.InvalidValue, match=r"parameter 'coupler_rod.pose.x': moves the loops"):
        cs.identify(truth, log, ["coupler_rod.pose.x"], form="output", control_points=80)
    with pytest.raises(cs.InvalidValue, match=r"parameter 'pin.pose_a.x': moves the loops"):
        cs.identify(truth, log, ["pin.pose_a.x"], form="output", control_points=80)


@pytest.mark.slow
def test_what_a_motion_will_tell_is_what_its_log_tells():
    """The standard errors that are foretold of a motion of the four-bar are those of a noisy log of it."""
    mech = cs.library.four_bar()
    t, rate = np.linspace(0.0, 4.0, 801), 200.0
    q = np.array([crank_and_others(mech, 1.0 + 1.4 * np.sin(2.1 * s) + 0.6 * np.sin(5.3 * s)) for s in t])
    motion = cs.BSpline.fit(t, q, 120, degree=5)
    foretold = cs.optimal.excitation(mech, motion, noise=0.02)
    q, qd, qdd = motion.evaluate(t, 2)
    q, qd = mech.project(q, qd)
    A, rates = mech.closure_jacobian(q), mech.closure_jacobian_rate(q, qd)
    bias = (A @ qdd[..., None] + rates @ qd[..., None])[..., 0]
    qdd = qdd - np.array([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(A, bias, strict=True)])
    tau = np.array(mech.inverse_dynamics(q, qd, qdd))
    tau[:, 0] += 0.02 * np.random.default_rng(0).normal(size=len(t))
    found = cs.identify(mech, {"q": q, "qd": qd, "qdd": qdd, "tau": tau}, physical=False)
    assert str(foretold.base) == str(found.base)
    assert_close(foretold.standard_errors(rate) / found.standard_errors, np.ones(8), 0.1)


# ---------------------------------------------------------------- motions that do not quite close
@pytest.mark.slow
def test_a_motion_that_nearly_closes_is_closed():
    """The found numbers are wrong by as much as the noise of the positions, and the forces of the loops stay out."""
    truth = made("three_rrr")
    log, rng = a_log(truth, START["three_rrr"], 80, spread=0.2), np.random.default_rng(0)
    noisy = {**log, "q": log["q"] + 1e-5 * rng.normal(size=log["q"].shape)}
    assert np.abs(truth.closure(noisy["q"])).max() > 1e-6
    found = cs.identify(wrong(truth), noisy, physical=False)
    clean = cs.identify(wrong(truth), log, physical=False)
    assert np.abs(found.base_values - clean.base_values).max() < 1e-2
    assert 0.0 < np.abs(found.base_values - clean.base_values).max()


@pytest.mark.slow
def test_a_motion_that_is_open_is_refused_with_its_gap():
    mech = made("four_bar")
    log = a_log(mech, START["four_bar"], 40)
    torn = {**log, "q": log["q"] + np.where(np.arange(40)[:, None] == 17, [0.0, 0.4, 0.0], 0.0)}
    with pytest.raises(cs.InvalidValue, match=r"data: loop pin: x: is open by -?0\.\d+ between .* in row 17; is the"):
        cs.identify(mech, torn)
    torn = {**log, "qd": log["qd"] + np.where(np.arange(40)[:, None] == 5, [0.0, 9.0, 0.0], 0.0)}
    with pytest.raises(cs.InvalidValue, match=r"data: loop pin: .: opens at the rate .* in row 5"):
        cs.identify(mech, torn)
    with pytest.raises(cs.InvalidValue, match=r"is opened by an acceleration of"):
        cs.identify(mech, {**log, "qdd": log["qdd"] + [0.0, 1e4, 0.0]})


@pytest.mark.slow
def test_too_few_rows_are_counted_by_freedoms():
    mech = made("four_bar")
    log = {name: a[:7] for name, a in a_log(mech, START["four_bar"], 40).items()}
    with pytest.raises(cs.InvalidValue, match=r"7 rows of 1 freedom.* are 7 equations, too few for 8 base parameters"):
        cs.identify(mech, log)
