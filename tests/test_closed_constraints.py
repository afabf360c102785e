"""Constraints of a user's own: the same as a loop, as a gear's and a skate's closed forms, traced and differenced."""

from __future__ import annotations

import math

import numpy as np
import pytest
from closed_states import skate
from closeness import assert_close, central_difference

import cstormpy as cs

A, B, C, G = 0.3, 0.8, 0.5, 0.9
STATE = [1.0, 0.0, 1.5], [1.0, 2.0, 3.0]
U = np.array([1.0, 0.2, -0.3])


def pin(q, of=np):
    """Return by how much the tips of coupler and rocker miss each other."""
    x = A * of.cos(q[0]) + B * of.cos(q[0] + q[1]) - G - C * of.cos(q[2])
    return [x, A * of.sin(q[0]) + B * of.sin(q[0] + q[1]) - C * of.sin(q[2])]


def four_bars():
    """Return the four-bar of the library, one whose pin is a function, and one that can only be differenced."""
    mech = cs.library.four_bar()
    traced = mech.replace(loops=[cs.Constraint(pin, name="pin")])
    return mech, traced, mech.replace(loops=[cs.Constraint(lambda q: pin(q, math), name="pin")])


def test_a_function_closes_what_a_loop_closes():
    mech, traced, differenced = four_bars()
    q, qd = mech.project(*STATE)
    want, model = mech.hybrid_sensitivity(q, qd, U), mech.linearize(q, qd, [1.0])
    for other, near in ((traced, 1e-11), (differenced, 1e-6)):
        assert_close(other.project(*STATE)[0], q, 1e-9)
        found = other.hybrid_sensitivity(q, qd, U)
        assert_close(found.y, want.y, 1e3 * near if other is differenced else near)
        assert_close(other.linearize(q, qd, [1.0]).A, model.A, near)
        assert_close(other.trim(q, tau=0).q, mech.trim(q, tau=0).q, 1e-9)
        assert_close(other.closure(q), np.zeros(2), 1e-11)
        assert other.mobility(q).freedoms == 1 and found.loop_wrenches.shape == (0, 6)
        motors, plain = (m.with_drive(actuated=m.names) for m in (other, mech))
        for least in ("torque", "force"):
            tau = [np.asarray(m.inverse_dynamics(q, qd, want.qdd, redundancy=least)) for m in (motors, plain)]
            assert_close(tau[0], tau[1] if least == "torque" else tau[0], max(near, 1e-7))


def test_what_cannot_be_traced_is_said(caplog):
    mech = cs.library.planar_2r().replace(loops=[cs.Constraint(lambda q: math.sin(q[1]) - q[0], name="odd")])
    with caplog.at_level("INFO", "cstormpy"):
        mech.closure([0.0, 0.0])
    assert "constraint 'odd': differenced, as it cannot be traced" in caplog.text


def test_a_skate_goes_round_in_a_circle_in_both_engines():
    """Free of forces its speeds along and about stay."""
    mech = skate()
    q, qd = mech.project([0.3, 0.4, 0.5], [2.0, 0.0, 1.5])
    assert_close(q, [0.3, 0.4, 0.5], 1e-12)  # the places are free, the rates are not
    v, om = float(np.hypot(*qd[:2])), float(qd[2])
    c, s = np.cos(0.5), np.sin(0.5)
    assert_close(qd, [v * c, v * s, 1.5], 1e-12)
    assert_close(np.asarray(mech.forward_dynamics(q, qd, np.zeros(3))), [-v * om * s, v * om * c, 0.0], 1e-11)
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, graphics=False, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=q, qd0=qd, name="plant")
        bd.connect(bd.CONSTANT(np.zeros(3)), plant.tau)
        end = sim.run(bd, T=0.5, rtol=1e-9, atol=1e-11).x[-1]
        th = 0.5 + om * 0.5
        want = [0.3 + v / om * (np.sin(th) - s), 0.4 - v / om * (np.cos(th) - c), th]
        np.testing.assert_allclose(end[:3], want, atol=1e-8)


def test_the_linear_model_of_a_skate_has_all_its_places():
    """Its heading steers it sideways where it moves, which a model lacked whose places were tied as its rates are."""
    mech, names = skate(), ("x", "y", "skate")
    assert mech.linearize([0.3, 0.4, 0.5]).A.shape == (4, 4)  # at rest what is tied stays so
    q, qd = mech.project([0.3, 0.4, 0.5], [2.0, 0.0, 1.5])
    model = mech.linearize(q, qd)
    z = [names.index(name.removesuffix(" rate")) for name in model.states[3:]]
    (tied,) = {0, 1, 2} - {*z}

    def field(state):
        rates, edge = np.zeros(3), mech.closure_jacobian(state[:3])[0]
        rates[z] = state[3:]
        rates[tied] = -edge @ rates / edge[tied]
        return np.concatenate([rates, np.asarray(mech.forward_dynamics(state[:3], rates, np.zeros(3)))[z]])

    assert model.states[:3] == names
    assert_close(model.A, central_difference(field, np.concatenate([q, qd[z]]), 1e-3), 1e-9)
    assert_close(model.rate, field(np.concatenate([q, qd[z]])), 1e-11)
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=q, qd0=qd, name="plant")
    bd.connect(bd.CONSTANT(np.zeros(3)), plant.tau)
    whole = sim.linearize(bd, inputs=["plant.tau"], outputs=["plant.q", "plant.qd"])
    assert_close(whole.A, model.A, 1e-12)
    assert_close(whole.C, model.joints, 1e-12)


def test_a_regulator_steers_a_skate_back_to_its_line():
    """What the run pays for a start beside the line is what the linear model along the motion says."""
    mech, ahead = skate(), np.array([np.cos(0.5), np.sin(0.5), 0.0])
    law = cs.control.TVLQR(mech, lambda t: ([*(t * ahead[:2]), 0.5], ahead, 0.0 * ahead), t0=0.0, t1=1.0, steps=100)
    assert law.states[:3] == ("x", "y", "skate") and law.K.shape == (101, 3, 5)
    sim = cs.Simulation(graphics=False, progress=False)
    bd, beside = sim.blockdiagram(), np.array([-1e-3, 2e-3, 0.5])
    plant, controller = (
        bd.HYBRIDDYNAMICS(mech, q0=beside, qd0=ahead, name="plant"),
        bd.CONTROLLER(mech, law, name="law"),
    )
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    out = sim.run(bd, T=1.0, dt=0.01, solver="RK4", watch=["law.tau"])
    e = np.array([law.error(t, x[:3], x[3:]) for t, x in zip(out.t, out.x, strict=True)])
    tau = out.signal("law.tau")
    paid = (
        np.trapezoid(((e @ law.Q) * e).sum(axis=1) + ((tau @ law.R) * tau).sum(axis=1), out.t)
        + e[-1] @ law.final @ e[-1]
    )
    assert abs(paid / law.value(0.0, beside, ahead) - 1.0) < 1e-3


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda q: None, "what its function returns: expected real numbers, got None"),  # was NaN without a word
        (lambda q: 1j * q[0], "what its function returns: expected real numbers, got complex"),  # lost a part
        (lambda q: q[0] > 1.0, "what its function returns: expected real numbers, got"),  # was 0 and 1
        (lambda q: "a", "what its function returns: expected real numbers, got the text"),
        (lambda q: [q[0], [q[1]]], "what its function returns: "),
        (lambda q, t: q[0], r"its function fails at q = .*TypeError: .*missing 1 required positional argument: 't'"),
        (lambda q: q[7], "its function fails at q = .*IndexError"),
    ],
)
def test_functions_that_say_no_constraint_are_refused_by_their_name(function, said):
    for kind in ("position", "rate"):
        mech = cs.library.planar_2r().replace(loops=[cs.Constraint(function, kind, name="own")])
        with pytest.raises(cs.CstormError, match="constraint 'own': " + said):
            mech.closure([0.0, 0.0])


def test_bad_constraints_are_refused_by_their_name():
    mech = cs.library.planar_2r()
    for make, match in (
        (lambda: cs.Constraint(3.0), "constraint: expected a function"),
        (lambda: cs.Constraint(pin, kind="speed"), "constraint: kind"),
        (lambda: mech.replace(loops=[3]), r"loops\[0\]: expected a Loop or a Constraint"),
        (lambda: mech.replace(loops=[cs.Constraint(lambda q: [[q[0]]], name="c")]).closure([0, 0]), "constraint 'c'"),
        (
            lambda: mech.replace(loops=[cs.Constraint(lambda q: [1.0], kind="rate", name="c")]).closure([0, 0]),
            r"constraint 'c': expected rates' matrix",
        ),
        (lambda: mech.replace(loops=[cs.Constraint(lambda q: np.nan, name="c")]).closure([0, 0]), "'c': is not finite"),
        (lambda: mech.replace(loops=[cs.Constraint(lambda q: q[0], name="c")]).save("x.json"), "'c': is said by"),
        (
            lambda: mech.replace(loops=[cs.Constraint(lambda q: q[0] ** 2 + 1.0, name="c")]).project([0.1, 0.0]),
            r"loop c: cannot be closed from there",
        ),
    ):
        with pytest.raises(cs.CstormError, match=match):
            make()


def test_a_function_need_not_be_defined_everywhere():
    """Dynamics, `mobility`, `project` and LQR ended in an error of linear algebra, from postures that they try."""
    rack = cs.Link("rack", None, cs.Prismatic((1, 0, 0)), mass=2.0, inertia=(0.01,) * 3)
    cam = cs.Link("cam", "rack", cs.Revolute((0, 0, 1)), mass=0.5, inertia=(0.01,) * 3)
    groove = cs.Constraint(lambda q: q[0] - 0.1 * np.sqrt(q[1] + 0.64) + 0.08, name="groove")
    mech = cs.Mechanism([rack, cam], loops=[groove], actuated=["cam"])
    found = mech.forward_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 1.0])
    assert_close(found[1], 1.0 / (0.01 + 2.5 * (0.05 / 0.8) ** 2), 1e-9)
    assert cs.control.LQR(mech, [0.0, 0.0]).states[0] == "cam" and mech.mobility([0.0, 0.0]).freedoms == 1
    with pytest.raises(cs.CstormError, match=r"loop groove: is not defined at q = \(0, -1\)"):
        mech.project([0.0, -1.0], hold=["cam"])
