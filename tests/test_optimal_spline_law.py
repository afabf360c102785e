"""The spline law: an optimised swing-up, time-varying LQR along it, LQR at its end."""

import json
import math

import numpy as np
import pytest

from cstormpy.errors import InvalidValue
from cstormpy.mechanism import library
from cstormpy.optimal import spline_law
from cstormpy.optimal.spline_law import SplineSwingUp, swing_up_motion


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A cache of its own, which the motions of these tests share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache(folder, monkeypatch):
    monkeypatch.setattr(spline_law, "_folder", lambda: folder)


def simulated(law, q, seconds, h=2e-3):
    """Return the state after some seconds from rest at q, when the law began to balance, and its largest torque."""
    mech = law.mech
    evaluate, u = mech.hybrid_evaluator(), np.zeros(mech.n)
    motors = mech.actuated_mask

    def rate(t, x):
        u[motors] = law(t, x[: mech.n], x[mech.n :])
        return np.concatenate([x[mech.n :], evaluate(np.ascontiguousarray(x[: mech.n]), x[mech.n :].copy(), u)])

    x = np.concatenate([q, np.zeros(mech.n)])
    law.start(0.0, x[: mech.n], x[mech.n :])
    caught, most = None, 0.0
    for k in range(round(seconds / h)):
        t = k * h
        if law.margin(t, x[: mech.n], x[mech.n :]) < 0.0:
            law.switch(t, x[: mech.n], x[mech.n :])
            caught = t if caught is None else caught
        k1 = rate(t, x)
        k2 = rate(t + h / 2, x + h / 2 * k1)
        k3 = rate(t + h / 2, x + h / 2 * k2)
        k4 = rate(t + h, x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        most = max(most, float(np.abs(u).max()))
    return x, caught, most


@pytest.mark.parametrize("away", [(0.0, 0.0), (0.05, -0.05)])
def test_it_swings_the_acrobot_up_and_balances_it(away):
    law = SplineSwingUp(library.acrobot())
    x, caught, most = simulated(law, np.array([-math.pi / 2, 0.0]) + away, 6.0)
    np.testing.assert_allclose(x, [math.pi / 2, 0.0, 0.0, 0.0], atol=5e-3)
    assert 1.5 < caught < 3.2
    assert 10.0 < most <= 25.0
    assert law.modes[law.mode] == "balance"


def test_the_motion_starts_when_the_law_does():
    law = SplineSwingUp(library.acrobot())
    rest = np.array([-math.pi / 2, 0.0]), np.zeros(2)
    law.start(0.0, *rest)
    at_zero = law(0.3, *rest)
    law.start(7.0, *rest)
    np.testing.assert_allclose(law(7.3, *rest), at_zero, rtol=1e-9)
    assert law.motion.t1 == 3.0


def test_the_motion_is_kept_with_what_made_it_and_computed_once(folder, monkeypatch):
    mech = library.acrobot()
    motion = swing_up_motion(mech)
    (path,) = [p for p in folder.glob("*.json") if json.loads(p.read_text())["made_by"]["points"] == 16]
    content = json.loads(path.read_text())
    assert content["made_by"]["mechanism"] == json.loads(json.dumps(mech.to_dict()))
    assert content["made_by"]["duration"] == 3.0
    assert content["result"]["violation"] < 1e-6
    np.testing.assert_allclose(motion(motion.t1), [math.pi / 2, 0.0], atol=1e-6)
    np.testing.assert_allclose(motion.rate(motion.t1), [0.0, 0.0], atol=1e-5)

    def never(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr(spline_law, "_compute", never)
    assert swing_up_motion(mech) == motion
    with pytest.raises(AssertionError, match="computed again"):
        swing_up_motion(mech, duration=3.1)
    path.write_text("{}")
    with pytest.raises(AssertionError, match="computed again"):
        swing_up_motion(mech)
    path.write_text(json.dumps(content))
    assert swing_up_motion(mech) == motion


def test_a_motion_that_there_is_not_is_told(monkeypatch):
    monkeypatch.setattr(spline_law, "STARTS", 1)
    with pytest.raises(InvalidValue, match=r"spline: no motion of 0.2 s reaches the goal within the limits"):
        swing_up_motion(library.acrobot(), duration=0.2, limit=0.5, points=5, keep=False)
