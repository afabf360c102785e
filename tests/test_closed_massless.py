"""Closed mechanisms with links that have no mass: the loops give them a motion, which the open chain alone has not."""

from __future__ import annotations

import numpy as np
import pytest
from closed_states import STARTS
from closeness import assert_close, central_difference

import cstormpy as cs
from cstormpy.loops import lines as closed_lines
from cstormpy.mechanism.component_values import with_components

MADE = {
    "slider_crank": lambda: cs.library.slider_crank(masses=(0.3, 0.0, 1.0), damping=0.05),
    "four_bar": lambda: cs.library.four_bar(masses=(0.3, 0.0, 0.5), damping=0.05),
    "five_bar": lambda: cs.library.five_bar(masses=(0.4, 0.0, 0.4, 0.0), damping=0.05),
}


#: The others ask the same of the same code.
each = pytest.mark.parametrize(
    "name", [name if name == "four_bar" else pytest.param(name, marks=pytest.mark.slow) for name in MADE]
)


def state(name):
    mech, rng = MADE[name](), np.random.default_rng(3)
    return mech, *mech.project(np.array(STARTS[name]) + 0.1 * rng.normal(size=mech.n), rng.normal(size=mech.n))


def solved(mech, q, qd, tau):
    """Return accelerations and multipliers by the equations of both at once, which need no inverse of the mass."""
    A, m = mech.closure_jacobian(q), len(mech.closure(q))
    rate = central_difference(lambda s: mech.closure_jacobian(q + s[0] * qd) @ qd, [0.0], 1e-3)[:, 0]
    K = np.block([[mech.mass_matrix(q), -A.T], [A, np.zeros((m, m))]])
    found = np.linalg.solve(K, np.concatenate([tau - mech.bias(q, qd), -rate]))
    return found[: mech.n], found[mech.n :]


@each
def test_accelerations_and_forces_are_those_of_all_equations_at_once(name):
    """They were refused as undefined."""
    mech, q, qd = state(name)
    with pytest.raises(cs.SingularInertia, match="moves no inertia"):
        mech.without_loops().forward_dynamics(q, qd, 0 * q)
    tau = np.random.default_rng(4).normal(size=mech.n)
    qdd, lam = solved(mech, q, qd, tau)
    found = mech.forward_dynamics(q, qd, tau)
    assert_close(np.asarray(found), qdd, 1e-9)
    assert_close(found.multipliers, lam, 1e-9)
    rows = mech.forward_dynamics(*(np.stack([x, x]) for x in (q, qd, tau)))
    assert_close(rows[1], qdd, 1e-9)
    driven = mech.with_drive(active=mech.actuated)
    u = np.where(driven.active_mask, qdd, np.where(mech.actuated_mask, 0.0, tau))
    answer = driven.hybrid_dynamics(q, qd, u)
    assert_close(answer.qdd, qdd, 1e-9)
    assert_close(answer.tau, tau, 1e-9)
    assert_close(np.asarray(mech.inverse_dynamics(q, qd, np.asarray(mech.forward_dynamics(q, qd, 0 * q)))), 0 * q, 1e-9)


@pytest.mark.parametrize("what", ["dynamics", "sensitivity"])
@each
def test_straight_lines_answer_as_the_numbers_do(name, what, monkeypatch):
    mech, q, qd = state(name)
    mech = mech.with_drive(active=mech.actuated[:1])
    u = np.linspace(-1.0, 1.0, mech.n)
    filled = [np.empty(mech.n), np.empty(len(mech.closure(q))), np.empty((3, mech.n, mech.n))]
    filled = filled if what == "sensitivity" else filled[:2]
    assert closed_lines.prepared(mech, "own", what)(q, qd, u, *filled) == 0
    to_q, to_qd = np.empty(mech.n), np.empty(mech.n)
    assert closed_lines.prepared(mech, "forward", "shut")(q + 1e-6, qd, to_q, to_qd) == 0
    assert np.abs(mech.closure(to_q)).max() < 1e-10
    monkeypatch.setattr(closed_lines, "_found_line", lambda *_: None)
    fresh = mech.with_drive(active=mech.active)
    found = (fresh.hybrid_sensitivity if what == "sensitivity" else fresh.hybrid_dynamics)(q, qd, u)
    wanted = (found.y, found.multipliers, *([found.columns] if what == "sensitivity" else []))
    for got, want in zip(filled, wanted, strict=True):
        assert_close(got, want, 1e-10)


@each
def test_derivatives_against_differences(name):
    mech, q, qd = state(name)
    u = np.random.default_rng(11).normal(size=mech.n)
    names = [f"{mech.links[1].name}.mass", f"{mech.links[0].name}.com[0]", f"{mech.names[0]}.damping", "gravity[1]"]
    names += [f"{mech.loops[0].name}.pose_b.x"]
    for active in ([], mech.actuated[:1]):
        driven = mech.with_drive(active=active)

        def ask(a, b, c, driven=driven):
            return driven.hybrid_dynamics(a, b, c).y

        d = driven.hybrid_sensitivity(q, qd, u)
        assert_close(d.y, ask(q, qd, u), 1e-11)
        assert_close(d.dy_dq, central_difference(lambda x, ask=ask: ask(x, qd, u), q, 2e-4), 1e-7)
        assert_close(d.dy_dqd, central_difference(lambda x, ask=ask: ask(q, x, u), qd, 2e-4), 1e-8)
        assert_close(d.dy_du, central_difference(lambda x, ask=ask: ask(q, qd, x), u, 1e-3), 1e-9)
        to = driven.parameter_sensitivity(q, qd, u, names)
        for k, parameter in enumerate(names[1:], 1):

            def changed(h, parameter=parameter, driven=driven):
                moves = parameter.endswith("pose_b.x")
                value = 0.0 if moves else _value(driven, parameter)
                found = with_components(driven, {parameter: value + h[0]}, allow_impossible=True)
                answer = found.hybrid_dynamics(q, qd, u)
                return np.concatenate([answer.y, answer.multipliers])

            both = np.concatenate([to.dy_dp[:, k], to.dmultipliers_dp[:, k]])
            assert_close(both, central_difference(changed, [0.0], 2e-4)[:, 0], 1e-6)


def _value(mech, parameter):
    owner, _, field = parameter.rpartition(".")
    if parameter == "gravity[1]":
        return mech.gravity[1]
    return mech.joint(owner).damping if field == "damping" else mech.link(owner).com[0]


@pytest.mark.slow
@each
def test_both_engines_run_it_and_lose_no_power(name):
    mech, q, qd = state(name)
    ends = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=q, qd0=qd, name="plant")
        bd.connect(bd.CONSTANT(np.linspace(0.3, 0.4, len(mech.actuated)), name="push"), plant.tau)
        out = sim.run(bd, T=0.6, rtol=1e-10, atol=1e-12)
        assert out.status == "finished"
        ends.append(out.x[-1])
    assert_close(*ends, 1e-8)
    n, worn = mech.n, np.array([mech.joint(joint).damping for joint in mech.names])
    assert np.abs(mech.closure(out.x[-1, :n])).max() < 1e-9
    push = np.zeros(n)
    push[mech.actuated_mask] = np.linspace(0.3, 0.4, len(mech.actuated))
    power = out.x[:, n:] @ push - (out.x[:, n:] ** 2) @ worn
    energy = np.array([sum(mech.energy(row[:n], row[n:])) for row in out.x])
    assert abs(np.trapezoid(power, out.t) - (energy[-1] - energy[0])) < 1e-3 * np.ptp(energy)


@pytest.mark.parametrize("name", ["five_bar"])
def test_a_joint_is_locked_as_with_links_that_weigh_next_to_nothing(name):
    mech, q, qd = state(name)
    after, impulse = mech.lock(q, qd, mech.names[:1])
    near = cs.library.five_bar(masses=(0.4, 1e-9, 0.4, 1e-9), damping=0.05)
    for found, want in zip((after, impulse), near.lock(q, qd, mech.names[:1]), strict=True):
        assert_close(found, want, 1e-7)
    assert after[0] == 0.0 and np.abs(after).max() > 0.1
    assert_close(mech.closure_jacobian(q) @ after, np.zeros(2), 1e-12)


@pytest.mark.slow
def test_what_the_loops_leave_free_is_refused_still():
    mech = MADE["four_bar"]()
    flag = cs.Link("flag", mech.links[1].name, cs.Revolute((0, 0, 1), name="flag"))
    loose = cs.Mechanism([*mech.links, flag], mech.gravity, mech.actuated, loops=mech.loops)
    q, _ = loose.project([*STARTS["four_bar"], 0.0])
    for ask in (loose.forward_dynamics, loose.hybrid_sensitivity, loose.hybrid_evaluator()):
        with pytest.raises(cs.SingularInertia, match="joint 'flag': moves no inertia"):
            ask(q, 0 * q, 0 * q)
