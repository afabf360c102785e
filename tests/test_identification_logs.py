"""Logs that a mechanism is identified from: what is said of units that cannot be."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.mechanism import Link, Mechanism, Revolute, library
from cstormpy.reporting import notice_once

ARM = library.planar_2r().with_gravity((0.0, -9.81, 0.0))
SLIDES = cs.Mechanism([cs.Link(name, None, cs.Prismatic((1, 0, 0)), mass=1.0) for name in ("left", "right")])


def a_motion(noise=1e-3):
    """Return a log of two joints that swing, whose positions have some noise."""
    t, w, generator = np.linspace(0.0, 6.0, 600), np.array([2.1, 3.3]), np.random.default_rng(4)
    q, qd, qdd = np.sin(w * t[:, None]), w * np.cos(w * t[:, None]), -w * w * np.sin(w * t[:, None])
    tau = ARM.inverse_dynamics(q, qd, qdd)
    return {"t": t, "q": q + noise * generator.normal(size=q.shape), "qd": qd, "tau": tau}


ONE = np.array([1.0, np.rad2deg(1.0)])


@pytest.mark.parametrize(
    ("mech", "change", "says"),
    [
        (ARM, {}, None),
        (ARM, {"q": 2.0}, None),
        (ARM, {"q": 0.0}, None),
        (ARM, {"q": np.rad2deg(1.0), "qd": np.rad2deg(1.0)}, None),
        (SLIDES, {"q": np.rad2deg(1.0)}, None),
        (ARM, {"q": np.rad2deg(1.0)}, "data: q of joint shoulder, elbow turns 57.3 times as far as its qd says"),
        (ARM, {"q": ONE}, "data: q of joint elbow turns 57.3 times as far as its qd says; .* by np.deg2rad"),
        (ARM, {"qd": -ONE}, None),
        (ARM, {"qd": ONE}, "data: qd of joint elbow is 57.3 times as fast as its q turns; .* by np.deg2rad"),
    ],
)
def test_degrees_beside_radians_are_told(mech, change, says, caplog):
    """All that was said was that much is left of the torques, and to look at signs and units."""
    notice_once.cache_clear()
    cs.identify(mech, {name: column * change.get(name, 1.0) for name, column in a_motion().items()}, missing="drop")
    told = [message for message in caplog.messages if "57.3" in message]
    assert [bool(re.search(says, message)) for message in told] == [True] if says else told == []


HEADS = "t [s],shoulder.q [{}],elbow.q [rad],shoulder.qd [rad/s],elbow.qd [{}],shoulder.tau [N m],elbow.tau [{}]"


def in_a_file(path, *units):
    """Return a log as it is read from a file whose header has units."""
    log = a_motion()
    rows = np.column_stack([log["t"], log["q"], log["qd"], log["tau"]])
    np.savetxt(path, rows, delimiter=",", header=HEADS.format(*units), comments="", encoding="utf-8")
    return cs.load(path)


@pytest.mark.parametrize(
    ("units", "says"),
    [
        (("rad", "rad/s", "N m"), None),
        (("rad", "rad/sec", "N·m"), None),
        (("radians", "rad s^-1", "N m"), None),
        (("rad", "rad·s⁻¹", "N*m"), None),
        (
            ("deg", "rad/s", "Nm"),
            "data, q: column 'shoulder.q' is in 'deg', and joint 'shoulder' has 'rad'; give it conv",
        ),
        (("rad", "rpm", "Nm"), "data, qd: column 'elbow.qd' is in 'rpm', and joint 'elbow' has 'rad/s'"),
        (("rad", "rad/s", "mNm"), "data, tau: column 'elbow.tau' is in 'mNm', and joint 'elbow' has 'N m'"),
    ],
)
def test_units_that_a_header_tells_are_those_of_the_joints(units, says, tmp_path):
    """Degrees under "shoulder.q [deg]" were read as radians, and numbers came out of them."""
    log = in_a_file(tmp_path / "log.csv", *units)
    if says is None:
        assert cs.identify(ARM, log, ["forearm.mass"]).misfit.max() < 0.2
    else:
        with pytest.raises(cs.InvalidValue, match=re.escape(says)):
            cs.identify(ARM, log, ["forearm.mass"])


@pytest.mark.parametrize(
    ("column", "says"),
    [("tau[0] [N m]", None), ("tau [N m]", None), ("tau[0] [N]", "'tau[0]' is in 'N', and joint 'pole' has 'N m'")],
)
def test_units_of_torques_are_those_of_the_motors(column, says, tmp_path):
    """The torque of a pole was to be in N, as if it were of the cart, which has no motor."""
    links = [
        cs.Link("cart", joint=cs.Prismatic((1, 0, 0)), mass=1.0),
        cs.Link("pole", "cart", cs.Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.01, 0.01)),
    ]
    mech, t, w = cs.Mechanism(links, actuated=["pole"]), np.linspace(0.0, 3.0, 301), np.array([2.0, 3.0])
    q, qdd = np.sin(w * t[:, None]), -w * w * np.sin(w * t[:, None])
    tau = mech.inverse_dynamics(q, w * np.cos(w * t[:, None]), qdd)[:, 1:]
    path, head = tmp_path / "log.csv", f"t,q[0] [m],q[1] [rad],{column}"
    np.savetxt(path, np.column_stack([t, q, tau]), delimiter=",", header=head, comments="")
    if says is None:
        assert cs.identify(mech, cs.load(path), ["pole.mass"]).table()[0][1] == pytest.approx(1.0, abs=1e-4)
    else:
        with pytest.raises(cs.InvalidValue, match=re.escape(says)):
            cs.identify(mech, cs.load(path), ["pole.mass"])


def a_swing(noise=2e-4):
    """Return a pendulum with a motor, and a log of its motion at 100 Hz."""
    mech = library.pendulum(1, damping=0.1)
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-1.0], name="plant")
    bd.connect(bd.WAVEFORM("sine", freq=0.7, amplitude=3.0, name="motor"), plant.tau)
    out = sim.run(bd, T=8.0, dt=0.01, watch=["plant", "motor"])
    q = out.signal("plant.q") + noise * np.random.default_rng(2).normal(size=(len(out.t), 1))
    return mech, {"t": out.t, "q": q, "tau": out.signal("motor").reshape(-1, 1)}


@pytest.mark.parametrize(
    ("change", "noise", "much"), [({}, 2e-4, False), ({}, 0.05, False), ({"tau": -1.0}, 2e-4, True)]
)
def test_what_is_left_of_a_motion_is_told(change, noise, much):
    """Of torques with the wrong sign a friction of 0 was told, with a small error, and no word of it."""
    mech, log = a_swing(noise)
    log = {name: column * change.get(name, 1.0) for name, column in log.items()}
    found = cs.identify(mech, log, ["link1.mass", "joint1.damping"], form="output")
    lines = np.array_split(log["q"][:, 0], 16), np.array_split(log["t"], 16)
    motion = np.concatenate([q - np.polyval(np.polyfit(t, q, 1), t) for q, t in zip(*lines, strict=True)])
    left = float(np.sqrt(np.mean(found.residuals**2) / np.mean(motion**2)))
    np.testing.assert_allclose(found.misfit, [left], rtol=1e-6)
    assert f"left of the motion: joint1 {100 * left:.2g} %" in str(found)
    assert ("that is much: look at signs, units" in str(found)) == much and (left > 0.1) == (much or noise > 0.01)


@pytest.mark.parametrize("form", ["inverse", "output"])
def test_a_log_with_a_gap_is_cut_there(form, caplog):
    """A second without rows ended in an error about control points that nobody had asked for."""
    notice_once.cache_clear()
    mech, log = a_swing()
    there = (log["t"] < 3.0) | (log["t"] > 4.0)
    poor, rows = mech.with_parameters({"link1.mass": 2.0}), {name: column[there] for name, column in log.items()}
    found = cs.identify(poor, rows, ["link1.mass", "joint1.damping"], form=form)
    np.testing.assert_allclose(found.values, [1.0, 0.1], rtol=0.01)
    assert any("data: has no rows from t = 2.99 to 4.01 s; it is cut there" in told for told in caplog.messages)


def test_times_that_are_no_seconds_are_told_where_motions_are_simulated():
    """Of milliseconds each row took a thousand steps of 0.01 s, and the search went on for hours."""
    mech, log = a_swing()
    log["t"] = 1e3 * log["t"]
    says = "data, t: the rows are 10 s apart, 1000 steps of 0.01 s each; give the times in seconds, or max_step= where"
    with pytest.raises(cs.InvalidValue, match=re.escape(says)):
        cs.identify(mech, log, ["link1.mass"], form="output")


@pytest.mark.parametrize(("wraps", "steps"), [(True, 1), (False, 1), (False, 80)])
def test_angles_that_jump_by_a_turn_are_told(wraps, steps, caplog):
    """All that was said was that much is left of the torques."""
    notice_once.cache_clear()
    mech, log = a_swing()
    log["q"] = log["q"] + 3.0 * log["t"][:, None]
    if wraps:
        log["q"] = (log["q"] + np.pi) % (2.0 * np.pi) - np.pi
    cs.identify(mech, {name: column[::steps] for name, column in log.items()}, ["link1.mass"], control_points=8)
    row = 1 + int(np.argmax(np.abs(np.diff(log["q"][:, 0])) > np.pi))
    says = f"data, q: joint 'joint1' jumps by a turn in row {row}; give angles that go on, by np.unwrap(q, axis=0)"
    assert any(says in told for told in caplog.messages) == wraps


@pytest.mark.parametrize("angle", [0.0, 0.3])
@pytest.mark.filterwarnings("error")
def test_a_joint_at_rest_says_nothing_of_the_noise_of_the_others(angle):
    """Each spline leaves nothing of it, so that the most control points were taken: 0 and 1.16 kg were found."""
    arm, t = cs.library.planar_2r(), np.linspace(0.0, 4.0, 1601)
    swing = [1.2 * np.sin(1.3 * t) + 0.5 * np.sin(3.1 * t)]
    swing.append(1.56 * np.cos(1.3 * t) + 1.55 * np.cos(3.1 * t))
    swing.append(-2.028 * np.sin(1.3 * t) - 4.805 * np.sin(3.1 * t))
    q, qd, qdd = (np.column_stack([each, np.zeros(len(t))]) for each in swing)
    q[:, 1] = angle
    tau = arm.inverse_dynamics(q, qd, qdd)
    q[:, 0] += 1e-3 * np.random.default_rng(0).normal(size=len(t))
    found = cs.identify(arm.with_parameters({"upper_arm.mass": 2.0}), {"t": t, "q": q, "tau": tau}, ["upper_arm.mass"])
    assert found.mechanism.link("upper_arm").mass == pytest.approx(1.25, rel=5e-3)


def test_a_joint_without_noise_leaves_the_noise_of_another_to_be_smoothed():
    """The most control points were taken for both, as the clean one leaves less with them: 0 kg came out for 1.25."""
    arm, t = cs.library.planar_2r(), np.linspace(0.0, 4.0, 1601)
    q = np.column_stack([1.2 * np.sin(1.3 * t) + 0.5 * np.sin(3.1 * t), 0.3 * np.sin(2.0 * t)])
    qd = np.column_stack([1.56 * np.cos(1.3 * t) + 1.55 * np.cos(3.1 * t), 0.6 * np.cos(2.0 * t)])
    qdd = np.column_stack([-2.028 * np.sin(1.3 * t) - 4.805 * np.sin(3.1 * t), -1.2 * np.sin(2.0 * t)])
    tau = arm.inverse_dynamics(q, qd, qdd)
    q[:, 0] += 1e-3 * np.random.default_rng(0).normal(size=len(t))
    found = cs.identify(arm.with_parameters({"upper_arm.mass": 2.0}), {"t": t, "q": q, "tau": tau}, ["upper_arm.mass"])
    assert found.mechanism.link("upper_arm").mass == pytest.approx(1.25, rel=5e-3)


def test_a_link_may_be_called_by_a_number_in_brackets():
    """Its centre of mass alone, in which torques are not linear, was found as numbers of its inertia in silence."""
    legs = [
        Link("leg[0]", None, Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1)),
        Link("leg[1]", "leg[0]", Revolute((0, 0, 1)), (1, 0, 0), 1.0, (0.4, 0.1, 0), (0.1, 0.1, 0.1)),
    ]
    mech = Mechanism(legs)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 60, 2))
    log = {"q": q, "qd": qd, "qdd": qdd, "tau": mech.inverse_dynamics(q, qd, qdd)}
    for name in ("leg[1].com", "leg[1].com[0]"):
        with pytest.raises(
            cs.InvalidValue, match=r"com.*: is found together with mass and inertia; name the link, 'leg"
        ):
            cs.identify(mech, log, name)
    heavy = mech.with_parameters({"leg[1].mass": 3.0})
    assert np.abs(cs.identify(heavy, log, "leg[1]").residuals).max() < 1e-10
    with pytest.raises(cs.InvalidValue, match=r"'leg\[1\].limits': the dynamics do not depend on limits"):
        mech.parameter_sensitivity(q[0], qd[0], qdd[0], ["leg[1].limits"])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_log_of_one_row_is_refused_by_what_is_wanted():
    """NumPy warned of the mean of an empty slice before."""
    log = {name: values[:1] for name, values in a_motion().items()}
    log["qdd"] = 0.0 * log["qd"]
    with pytest.raises(cs.InvalidValue, match="a log of 1 rows is too short; 3 are the least"):
        cs.identify(ARM, log, "forearm.mass", form="output")


def test_a_frame_may_have_a_column_that_is_called_signal():
    """It was taken for a run: "'Index' object is not callable"."""
    pandas = pytest.importorskip("pandas")
    log = a_motion(0.0)
    columns = {f"{name}[{k}]": log[name][:, k] for name in ("q", "qd", "tau") for k in range(2)}
    frame = pandas.DataFrame({"t": log["t"], **columns})
    want = cs.identify(ARM, frame, "forearm.mass").values
    np.testing.assert_array_equal(cs.identify(ARM, frame.assign(signal=1.0), "forearm.mass").values, want)
