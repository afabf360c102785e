"""Logs that a mechanism is identified from: what is said of units that cannot be."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.mechanism import library
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
        (("deg", "rad/s", "Nm"), "data, q: column 'shoulder.q' is in 'deg', and joint 'shoulder' has 'rad'; give it conv"),
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
