"""Identification by output error: numbers back from motions, how well they are known, and what no motion tells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cstormpy as cs
from cstormpy.errors import InvalidValue, NonFinite, UnknownName
from cstormpy.identification.consistency import Bodies, is_possible

NAMES = ["forearm.mass", "forearm.com[0]", "forearm.inertia.zz", "shoulder.damping", "elbow.damping"]


def motion(mech, rows=120, dt=0.02, seed=0):
    """Return the log of a motion under torques that are linear between rows, from a fine integration of its own."""
    rng = np.random.default_rng(seed)
    t = dt * np.arange(rows)
    tau = np.zeros((rows, mech.n))
    motors = np.flatnonzero(mech.actuated_mask)
    tau[:, motors] = np.cumsum(rng.normal(size=(rows, len(motors))), axis=0) * 0.7
    f, x, found = mech.hybrid_evaluator(), np.concatenate([rng.uniform(-0.5, 0.5, mech.n), np.zeros(mech.n)]), []
    n, parts = mech.n, 8

    def rate(x, load):
        return np.concatenate([x[n:], f(x[:n].copy(), x[n:].copy(), load)])

    for k in range(rows):
        found.append(x)
        for j in range(parts if k < rows - 1 else 0):
            u = [tau[k] + (j + w) / parts * (tau[k + 1] - tau[k]) for w in (0.0, 0.5, 1.0)]
            h = dt / parts
            k1 = rate(x, u[0])
            k2 = rate(x + h / 2 * k1, u[1])
            k3 = rate(x + h / 2 * k2, u[1])
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3, u[2]))
    return {"t": t, "q": np.array(found)[:, :n], "tau": tau[:, motors]}


def values(mech, names=NAMES):
    from cstormpy.mechanism.component_values import component_value

    return np.array([component_value(mech, name) for name in names])


@pytest.fixture(scope="module")
def acrobot():
    body = {"inertia": np.diag([0.1, 0.2, 0.25])}
    mech = cs.library.acrobot("teaching")
    truth = mech.with_parameters({f"{link.name}.inertia": body["inertia"] for link in mech.links})
    wrong = truth.with_parameters(
        {"forearm.mass": 1.4, "forearm.com": (0.8, 0.0, 0.0), "shoulder.damping": 0.0, "elbow.damping": 0.3}
    )
    return truth, wrong, motion(truth)


def test_clean_motions_give_back_every_number(acrobot):
    """A passive shoulder's torque is nobody's measurement: it is zero, and the motion tells."""
    truth, wrong, log = acrobot
    found = cs.identify(wrong, log, NAMES, form="output", max_step=0.005, horizon=20)
    assert found.success, found.message
    np.testing.assert_allclose(found.values, values(truth), rtol=1e-6)
    np.testing.assert_allclose(values(found.mechanism), found.values, rtol=1e-12)
    assert np.abs(found.residuals).max() < 1e-7
    assert not found.mechanism.link("forearm").allow_impossible


@pytest.mark.slow
def test_lengths_are_found_too_which_torques_are_not_linear_in(acrobot):
    truth, _, log = acrobot
    pose = truth.link("forearm").pose.copy()
    pose[0, 3] += 0.15
    found = cs.identify(
        truth.with_parameters({"forearm.pose": pose}), log, "forearm.pose.x", form="output", horizon=20, max_step=0.005
    )
    assert found.success
    assert found.values[0] == pytest.approx(-0.15, rel=1e-5)
    assert found.mechanism.link("forearm").pose[0, 3] == pytest.approx(truth.link("forearm").pose[0, 3], rel=1e-5)
    with pytest.raises(InvalidValue, match="form='output'"):
        cs.identify(truth, log, "forearm.pose.x")


@pytest.mark.slow
def test_noisy_motions_lie_within_three_standard_errors(acrobot):
    truth, _, log = acrobot
    assert inside(truth, log, 4) > 0.95


def test_torques_of_rows_act_whose_motion_was_not_measured(acrobot):
    """They were left out with the rows, as if torques were linear across the gap: damping was ten errors off."""
    truth, _, log = acrobot
    log = {name: value[:70] for name, value in log.items()}
    wrong, names = truth.with_parameters({"shoulder.damping": 0.0}), ["shoulder.damping", "elbow.damping"]
    gaps = np.random.default_rng(0).random(log["q"].shape) < 0.2
    gaps[:2] = gaps[40:50] = gaps[-1] = True
    holed = {**log, "q": np.where(gaps, np.nan, log["q"])}
    found = cs.identify(wrong, holed, names, form="output", max_step=0.02, horizon=15, missing="drop")
    np.testing.assert_allclose(found.values, values(truth, names), atol=1e-3)
    np.testing.assert_array_equal(np.isnan(found.residuals), gaps)
    assert np.isfinite(found.fitted[10]).all() and np.isfinite(found.noise).all()
    holed["q"][:, 1] = np.nan
    with pytest.raises(InvalidValue, match="q: has no rows that are finite of joint 'elbow'"):
        cs.identify(wrong, holed, names, form="output", missing="drop")


@pytest.mark.slow
def test_a_spring_that_pushes_away_is_found():
    """As gravity does at the top; a spring constant may have any sign, unlike a damping."""
    truth = cs.library.pendulum(1).with_parameters({"joint1.stiffness": -2.0})
    start = truth.with_parameters({"joint1.stiffness": -1.0})
    found = cs.identify(start, motion(truth), "joint1.stiffness", form="output")
    assert found.values[0] == pytest.approx(-2.0, rel=1e-5)


@pytest.mark.slow
def test_noisy_motions_lie_within_three_standard_errors_in_many_trials(acrobot):
    truth, _, log = acrobot
    assert inside(truth, log, 60) > 0.95


def inside(truth, log, trials):
    rng, hits, noise = np.random.default_rng(4), [], np.array([2e-3, 5e-4])
    for _ in range(trials):
        noisy = {**log, "q": log["q"] + noise * rng.normal(size=log["q"].shape)}
        found = cs.identify(truth, noisy, NAMES, form="output", max_step=0.02, horizon=20)
        assert found.success
        hits.append(np.abs(found.values - values(truth)) < 3 * found.standard_errors)
        np.testing.assert_allclose(found.noise, noise, rtol=0.4)
        far = np.abs(found.values - values(truth)) / found.standard_errors
        assert 0.02 < far.max() < 6
    return np.mean(hits)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [20, 80])
def test_noise_of_torques_is_in_the_standard_errors(horizon):
    """It moves all rows that follow; taken for noise of each row, errors were 4 times as large as they were told.

    Of 5 stretches, of which the scatter was not looked at, 8 times.
    """
    truth = cs.library.pendulum(1, damping=0.3)
    names, rng, log, far = ["link1.mass", "joint1.damping"], np.random.default_rng(5), motion(truth, 400), []
    for _ in range(8):
        noisy = {name: log[name] + size * rng.normal(size=(400, 1)) for name, size in (("q", 1e-5), ("tau", 0.5))}
        found = cs.identify(truth, {**log, **noisy}, names, form="output", horizon=horizon)
        far.append((found.values - values(truth, names)) / found.standard_errors)
    assert 0.4 < np.sqrt(np.mean(np.square(far))) < 1.6


def test_what_no_motion_tells_is_named(acrobot):
    """A planar arm does not show what its links are out of the plane."""
    truth, _, log = acrobot
    found = cs.identify(
        truth, log, ["forearm.mass", "forearm.inertia", "forearm.com"], form="output", max_step=0.02, horizon=20
    )
    assert {"forearm.com[2]", "forearm.inertia.xx", "forearm.inertia.xz"} <= set(found.undetermined)
    assert "forearm.com[1]" not in found.undetermined
    assert "not determined by these data: " in str(found) and np.isinf(found.standard_errors).sum() >= 6
    figure = found.plot()
    assert [axes.get_ylabel() for axes in figure.axes[:4:2]] == ["angle [rad]", "angle [rad]"]


def test_bad_input_is_told(acrobot):
    truth, _, log = acrobot
    for change, names, options, kind, text in [
        ({"t": None}, NAMES, {}, UnknownName, "no times"),
        ({}, ["forearm.mas"], {}, UnknownName, "forearm.mass"),
        ({}, NAMES, {"form": "outputs"}, Exception, "output"),
        ({}, NAMES, {"horizon": 1}, InvalidValue, "horizon"),
        ({}, NAMES, {"wrench": np.zeros((2, 6))}, InvalidValue, "wrench"),
        ({"t": log["t"][::-1]}, NAMES, {}, InvalidValue, "falls from .* in row 1"),
    ]:
        data = {name: value for name, value in {**log, **change}.items() if value is not None}
        if "t" not in data:
            data |= {"qd": np.zeros_like(log["q"]), "qdd": np.zeros_like(log["q"])}
        with pytest.raises(kind, match=text):
            cs.identify(truth, data, names, **{"form": "output", **options})
    short = {name: value[:6] for name, value in log.items()}
    with pytest.raises(InvalidValue, match="too few"):
        cs.identify(truth, {**short, "qd": np.zeros((6, 2)), "q": short["q"]}, ["forearm", "upper_arm"], form="output")


def test_log_cholesky_coordinates_reach_possible_bodies_only():
    """Rates are those of the map, and the longest changes lead to bodies whose pseudo-inertia is positive definite."""
    rng = np.random.default_rng(0)
    names = ["a.mass", "elbow.damping", *(f"a.com[{k}]" for k in range(3))]
    names += [f"a.inertia.{pair}" for pair in ("xx", "xy", "xz", "yy", "yz", "zz")]
    bodies = Bodies(names)
    values = np.array([1.0, 0.5, 0.1, 0.2, 0.3, 1.0, 0.05, 0.04, 1.1, 0.03, 1.2])
    assert bodies.possible(values)
    rates = bodies.rates(values)
    for k, e in enumerate(np.eye(len(values))):
        difference = (bodies.moved(values, 1e-5 * e) - bodies.moved(values, -1e-5 * e)) / 2e-5
        np.testing.assert_allclose(rates[:, k], difference, atol=1e-9)
    assert np.linalg.matrix_rank(rates) == len(values)
    for _ in range(50):
        there = bodies.moved(values, 3.0 * rng.normal(size=len(values)))
        assert bodies.possible(there)
        assert there[1] != values[1]
    np.testing.assert_allclose(bodies.moved(values, np.zeros(len(values))), values, atol=1e-12)
    assert not bodies.possible(np.where(np.arange(len(values)) == 5, 9.0, values))


@pytest.mark.slow
def test_a_link_that_no_body_can_be_is_held_to_what_one_can():
    """The forearm as a whole from noisy positions of a short run: the plain fit has an inertia that no body has."""
    truth = cs.library.acrobot("teaching")
    log = motion(truth, rows=50)
    log["q"] = log["q"] + 2e-3 * np.random.default_rng(2).normal(size=log["q"].shape)
    guess = truth.with_parameters({"forearm.mass": 1.3 * truth.link("forearm").mass})
    how = {"form": "output", "horizon": 25, "max_step": 0.02}
    plain = cs.identify(guess, log, "forearm", physical=False, **how)
    held = cs.identify(guess, log, "forearm", **how)
    assert plain.plain and plain.mechanism.link("forearm").allow_impossible
    assert not held.plain and held.success and "held to what bodies can have" in str(held)
    link = held.mechanism.link("forearm")
    assert not link.allow_impossible and link.mass > 0.0
    numbers = held.mechanism.inertial_numbers[10:]
    assert is_possible(numbers)
    # what the log asks for is kept: the fit is as good but for a part of the noise
    assert (held.noise < 1.05 * plain.noise).all()
    told = np.isfinite(held.standard_errors)
    assert told.sum() == 4  # mass, centre in the plane, inertia about the axis
    off = held.values - values(truth, held.names)
    assert (np.abs(off[told]) < 4.0 * held.standard_errors[told]).all()


@pytest.mark.slow
def test_a_number_at_its_bound_holds_no_other_back():
    """Steps were cut off there, and what was left of one promised nothing, which was taken for convergence."""
    mech = cs.library.pendulum(1).with_parameters({"joint1.stiffness": 1.5, "joint1.damping": 0.0})
    t = np.linspace(0.0, 4.0, 400)
    q, qd, qdd = (
        (a * np.sin(2 * t + turn) + b * np.sin(5 * t + turn))[:, None]
        for a, b, turn in ((1.0, 0.3, 0.0), (2.0, 1.5, np.pi / 2), (-4.0, -7.5, 0.0))
    )
    log = {"t": t, "q": q, "qd": qd, "tau": mech.inverse_dynamics(q, qd, qdd)}
    given = mech.with_parameters({"joint1.damping": 0.5, "joint1.armature": 0.3, "link1.mass": 2.0})
    names = ["link1.mass", "*.stiffness", "*.damping", "*.armature", "*.friction"]
    found = cs.identify(given, log, names, form="output")
    np.testing.assert_allclose(found.values[:2], [1.0, 1.5], rtol=3e-5)  # 2e-4 before


def test_each_signal_has_the_noise_that_its_rows_show():
    """Starts of short stretches take up noise of precise positions, none of rough rates: both counted the same."""
    mech = cs.library.pendulum(1).with_parameters({"joint1.damping": 0.3})
    t, rng, ratios = 0.01 * np.arange(240), np.random.default_rng(0), []
    q, qd, qdd = (a * np.sin(3.0 * t + turn)[:, None] for a, turn in ((1.0, 0.0), (3.0, np.pi / 2), (-9.0, 0.0)))
    for _ in range(2):
        log = {"t": t, "q": q + 1e-3 * rng.normal(size=q.shape), "qd": qd + 0.1 * rng.normal(size=q.shape)}
        log["tau"] = mech.inverse_dynamics(q, qd, qdd)
        found = cs.identify(mech, log, "joint1.damping", form="output", horizon=3)
        ratios.append(found.noise / [1e-3, 0.1])
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.12)  # 0.7 and 1.25 before


def test_a_guess_whose_simulation_grows_beyond_all_numbers_is_told(recwarn):
    """NumPy warned of an overflow from within, and the error spoke of a result in row 0."""
    rng = np.random.default_rng(0)
    guess = cs.library.acrobot().with_parameters({"elbow.stiffness": 1e6})
    log = {"t": np.arange(0, 1, 0.02), "q": np.cumsum(0.05 * rng.normal(size=(50, 2)), axis=0)}
    log["tau"] = rng.normal(size=(50, 1))
    with pytest.raises(NonFinite, match="the mechanism that is given grows beyond all numbers"):
        cs.identify(guess, log, ["elbow.damping"], form="output", horizon=49)
    assert not recwarn.list


def test_torques_may_be_held_between_rows():
    """As linear ones they came half a row early: 1.951 kg instead of 2, and 2.027 by the inverse dynamics."""
    t = np.linspace(0.0, 0.6, 61)
    tau = 5.0 * np.sin(9.0 * t) + 2.0 * np.cos(14.0 * t)
    m, d, h = 2.0, 1.5, t[1]
    x, q = np.zeros(2), []
    for k in range(len(t)):  # m v̇ = τ − d v, exactly from row to row
        q.append(x[0])
        end, fade = tau[k] / d, np.exp(-d * h / m)
        x = np.array([x[0] + end * h + (x[1] - end) * (1.0 - fade) * m / d, end + (x[1] - end) * fade])
    slide = cs.Mechanism([cs.Link("slide", joint=cs.Prismatic((1, 0, 0), damping=d), mass=1.8)], gravity=(0, 0, 0))
    noise = 1e-6 * np.random.default_rng(0).normal(size=len(t))
    log = {"t": t, "q": (q + noise)[:, None], "tau": tau[:, None]}
    found = cs.identify(slide, log, ["slide.mass"], form="output", held=True)
    assert found.mechanism.link("slide").mass == pytest.approx(2.0, abs=4.0 * found.standard_errors[0])
    assert found.standard_errors[0] < 1e-3
    plain, held = (cs.identify(slide, log, ["slide.mass"], held=held) for held in (False, True))
    assert abs(held.mechanism.link("slide").mass - 2.0) < 0.3 * abs(plain.mechanism.link("slide").mass - 2.0)
    with pytest.raises(InvalidValue, match="held: expected"):
        cs.identify(slide, log, ["slide.mass"], held="yes")


def rested(speed, T, mass):
    """Return a slide of another mass than 2 kg, and the log of a motion that ends at rest in its friction."""
    t = np.linspace(0.0, T, round(50 * T) + 1)
    tau = np.where(t < 0.5, 8.0 * np.sin(2.0 * np.pi * t), 0.0)

    def rate(s, x):
        return [x[1], (np.interp(s, t, tau) - 8.0 * x[1] - 3.0 * np.tanh(x[1] / speed)) / 2.0]

    truth = solve_ivp(rate, (0.0, T), [0.0, 0.0], "LSODA", t, rtol=1e-10, atol=1e-13, max_step=0.01)
    joint = cs.Prismatic((1, 0, 0), damping=8.0, friction=3.0, friction_velocity=speed)
    slide = cs.Mechanism([cs.Link("slide", joint=joint, mass=mass)], gravity=(0, 0, 0))
    return slide, {"t": t, "q": truth.y[:1].T, "tau": tau[:, None]}


@pytest.mark.slow
def test_a_slide_that_rests_in_its_friction_is_identified():
    """Its starts there seem to move nothing, so that their steps had no bound, and the search stopped at 1.13 kg."""
    found = cs.identify(*rested(1e-3, 1.0, 0.5), ["slide.mass"], form="output", horizon=10, max_step=2e-3)
    assert found.success and found.mechanism.link("slide").mass == pytest.approx(2.0, abs=1e-4)


def test_steps_are_short_enough_for_friction_at_rest(caplog, monkeypatch):
    """With 0.01 s they were unstable where it slows the slide down within 1.9 ms, which nothing said."""
    slide, log = rested(3e-3, 0.6, 1.9)
    found = cs.identify(slide, log, ["slide.mass"], form="output", horizon=10)
    assert found.success and found.mechanism.link("slide").mass == pytest.approx(2.0, abs=1e-6)
    assert not caplog.messages
    monkeypatch.setattr("cstormpy.identification.output_error.MOST_PARTS", 2)
    cs.identify(slide, {name: part[:8] for name, part in log.items()}, ["slide.mass"], form="output")
    assert any("joint 'slide' slow it down within 0.0019 s" in told for told in caplog.messages)


def test_a_run_whose_torques_jump_at_events_is_identified():
    """Rows of one time, before and behind a jump, were refused, or left out where a run had one: forearm 1.244 kg."""
    sim = cs.Simulation(live=False, progress=False)
    bd, mech = sim.blockdiagram(), cs.library.planar_2r()
    plant, angles, torques = bd.HYBRIDDYNAMICS(mech, q0=[0.3, -0.2], name="plant"), bd.DEMUX(2), bd.MUX(2, name="u")
    bd.connect(plant.q, angles)
    for k, (border, torque) in enumerate([(0.1, 6.0), (0.15, 2.0)]):
        bd.connect(angles[k], relay := bd.RELAY(border, -border, on=-torque, off=torque))
        bd.connect(relay, torques[k])
    bd.connect(torques, plant.tau)
    bd.connect(plant.qd, bd.NULL())
    out = sim.run(bd, T=2.0, watch=["plant.q", "plant.qd", "u"], max_step=0.01, rtol=1e-9)
    assert (np.diff(out.t) == 0.0).sum() == len(out.events) > 5
    wrong = mech.with_parameters({"upper_arm.mass": 1.0, "forearm.mass": 1.5})
    signals = {"q": "plant.q", "qd": "plant.qd", "tau": "u"}
    found = cs.identify(wrong, out, ["upper_arm.mass", "forearm.mass"], form="output", signals=signals)
    assert found.success and values(found.mechanism, found.names) == pytest.approx(1.25, rel=1e-6)
