"""Offsets of logged torques are found beside the parameters, as by a least squares with a column for each of them."""

import numpy as np
import pytest
from closeness import assert_close

import cstormpy as cs
from cstormpy.mechanism import library


def a_log(mech, seed, offset, noise=0.0, rows=200):
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 5.0, rows)
    q, qd, qdd = cs.BSpline.uniform(rng.uniform(-1.5, 1.5, (9, 2)), duration=5.0, degree=5).evaluate(t)
    tau = mech.inverse_dynamics(q, qd, qdd) + offset(t) + noise * rng.normal(size=q.shape)
    return {"t": t, "q": q, "qd": qd, "qdd": qdd, "tau": tau}


def test_two_logs_have_offsets_of_their_own():
    """A constant torque came out as friction and as a first moment that is none."""
    truth = library.planar_2r(damping=0.2).with_parameters({"shoulder.friction": 0.1, "elbow.friction": 0.1})
    poor = truth.with_parameters({"forearm.mass": 3.0, "shoulder.damping": 0.0, "elbow.friction": 0.0})
    rates, starts = np.array([[0.4, 0.0], [0.0, -0.1]]), np.array([[-1.0, -0.5], [2.0, 0.0]])
    drifts = [lambda t: starts[0] + np.outer(t, rates[0]), lambda t: starts[1] + np.outer(t, rates[1])]
    logs = [a_log(truth, seed, drift) for seed, drift in enumerate(drifts)]
    asked = ["forearm.mass", "*.damping", "*.friction"]
    found = cs.identify(poor, logs, asked, offsets="linear")
    assert_close(found.values, [truth.link("forearm").mass, 0.2, 0.2, 0.1, 0.1], 1e-9)
    np.testing.assert_allclose(found.offsets, np.concatenate([drift(logs[0]["t"]) for drift in drifts]), atol=1e-9)
    np.testing.assert_allclose(found.residuals, 0.0, atol=1e-9)
    assert "offsets of the torques: shoulder -1 to 2, elbow -0.5 to -0.5" in str(
        found
    )  # of the first row and of the last
    without = cs.identify(poor, logs, asked, physical=False)
    assert abs(without.values[0] - truth.link("forearm").mass) > 0.01 and not without.offsets.any()


def test_they_are_columns_of_the_least_squares():
    """Values and standard errors, with noise of each joint's own."""
    truth = library.planar_2r(damping=0.2)
    log = a_log(truth, 3, lambda t: np.full((len(t), 2), [1.0, -0.5]), noise=np.array([0.3, 0.05]))
    found = cs.identify(truth, log, ["*.damping", "forearm.mass"], offsets="constant")
    names = list(found.names)
    rates = {name: truth.inverse_dynamics(log["q"], log["qd"], log["qdd"]) for name in names}
    for name in names:
        more = truth.with_parameters({name: 1.0 + (truth.link("forearm").mass if "mass" in name else 0.2)})
        rates[name] = more.inverse_dynamics(log["q"], log["qd"], log["qdd"]) - rates[name]  # linear in each
    columns = [rates[name] for name in names] + [np.ones((200, 2)) * unit for unit in np.eye(2)]
    J = np.stack([(column / found.noise).ravel() for column in columns], axis=1)
    known = truth.inverse_dynamics(log["q"], log["qd"], log["qdd"])
    change = np.linalg.lstsq(J, ((log["tau"] - known) / found.noise).ravel(), rcond=None)[0]
    given = [truth.link("forearm").mass if "mass" in name else 0.2 for name in names]
    np.testing.assert_allclose(found.values, given + change[:3], rtol=2e-4)  # weights settle to a hundredth
    np.testing.assert_allclose(found.offsets[0], change[3:], rtol=2e-3)
    covariance = np.linalg.inv(J.T @ J)[:3, :3]
    errors = np.sqrt(np.diag(found.base.matrix @ covariance @ found.base.matrix.T))
    np.testing.assert_allclose(found.standard_errors, errors, rtol=5e-3)


def test_of_a_closed_mechanism_they_are_those_of_the_motors():
    mech = library.four_bar(damping=0.05).with_drive(actuated=["crank"])
    rng = np.random.default_rng(0)
    q, qd = mech.project([1.0, -0.7, 1.5] + 0.3 * rng.normal(size=(80, 3)), rng.normal(size=(80, 3)))
    tau = rng.normal(size=(80, 3)) * mech.actuated_mask
    log = {"q": q, "qd": qd, "qdd": mech.forward_dynamics(q, qd, tau), "tau": tau + 3.0 * mech.actuated_mask}
    poor = mech.with_parameters({"coupler_rod.mass": 2.0, "crank.damping": 0.0})
    found = cs.identify(poor, log, ["coupler_rod.mass", "crank.damping"], offsets="constant")
    assert_close(found.values, [0.8, 0.05], 1e-8)
    np.testing.assert_allclose(found.offsets, np.tile(3.0 * mech.actuated_mask, (80, 1)), atol=1e-7)


def test_what_cannot_be_asked_is_refused():
    mech = library.planar_2r()
    log = a_log(mech, 0, lambda t: 0.0, rows=12)
    for given, message in (
        ({"offsets": "const"}, "did you mean 'constant'"),
        ({"offsets": "constant", "form": "output"}, "offsets: are found with form='inverse'"),
    ):
        with pytest.raises(cs.CstormError, match=message):
            cs.identify(mech, log, **given)
    few = {name: rows[:5] for name, rows in log.items()}
    with pytest.raises(cs.InvalidValue, match="10 equations, too few for 6 base parameters and 4 offsets"):
        cs.identify(mech, few, offsets="linear")
