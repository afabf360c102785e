"""Closed mechanisms in diagrams: both engines, loops that stay closed, starts that are refused."""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs
from cstormpy import diagrams

STARTS = {"four_bar": [1.0, 0.0, 1.5], "five_bar": [2.0, -1.0, 1.1, 1.0], "slider_crank": [0.7, -1.0, 1.0]}


def simulate(mech, q0, T, engine, solver=None, effort=False, rtol=None, **more):
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant", **more)
    torque = bd.CONSTANT(np.zeros(len(mech.actuated)))
    bd.connect(torque, plant.tau)
    watch = ["plant"]
    if effort:
        block = bd.JOINTEFFORT(mech, name="effort")
        bd.connect(plant[0:2], block[0:2])
        bd.connect(torque, block.tau)
        watch.append("effort")
    options = {"solver": solver, "rtol": rtol}
    return sim.run(bd, T=T, watch=watch, **{name: value for name, value in options.items() if value is not None})


@pytest.mark.parametrize(
    "name", ["four_bar", *(pytest.param(name, marks=pytest.mark.slow) for name in STARTS if name != "four_bar")]
)
def test_both_engines_keep_loops_closed_and_energy(name):
    mech = cs.library.get(name)
    q0, _ = mech.project(STARTS[name])
    runs = [simulate(mech, q0, 0.3, engine, effort=True) for engine in ("interpreted", "compiled")]
    n = mech.n
    for out in runs:
        assert out.status == "finished", out.message
        q, qd = out.x[:, :n], out.x[:, n:]
        assert np.abs(mech.closure(q)).max() < 1e-8
        assert np.abs(mech.closure_jacobian(q) @ qd[..., None]).max() < 1e-7
        assert np.ptp(np.sum(mech.energy(q, qd), axis=0)) < 1e-4
        found = mech.hybrid_dynamics(q, qd, np.zeros(q.shape))
        np.testing.assert_allclose(out.signal("effort.qdd"), found.qdd, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(runs[1].x[-1], runs[0].x[-1], rtol=0, atol=1e-7)


def test_the_compiled_engine_writes_the_loop_down():
    """The plant is machine code as any other: it is not asked in Python from inside of the compiled function."""
    sim = cs.Simulation(engine="compiled", graphics=False, progress=False)
    bd = diagrams.load("four_bar").build(sim)
    source = sim.source(bd)
    assert "xd[5] = s" in source
    assert "python" not in source.lower()


def test_a_loop_that_is_open_at_the_start_is_refused_by_its_name():
    mech = cs.library.four_bar()
    for engine in ("interpreted", "compiled"):
        with pytest.raises(cs.CstormError, match=r"loop pin: x: misses closure by .*mech\.project"):
            simulate(mech, [1.0, 0.0, 1.5], 0.1, engine)
        with pytest.raises(cs.CstormError, match=r"loop pin: .: is left at the rate"):
            simulate(mech, mech.project([1.0, 0.0, 1.5])[0], 0.1, engine, qd0=[1.0, 5.0, 0.0])


def test_without_a_start_it_begins_in_the_closed_posture_nearest_to_zeros():
    mech = cs.library.four_bar()
    plant = cs.Simulation(graphics=False, progress=False).blockdiagram().HYBRIDDYNAMICS(mech)
    assert np.abs(mech.closure(plant.q0)).max() < 1e-11
    np.testing.assert_allclose(plant.q0, mech.project(np.zeros(3))[0], atol=1e-12)


@pytest.mark.slow
def test_loose_tolerances_open_a_loop_by_more_than_a_start_may_and_are_taken_back():
    """At rtol = 1e-3 the run ended in its first second, as a step left the loop at 0.01 m/s."""
    mech = cs.library.four_bar()
    q0, qd0 = mech.project(mech.project([1.0, 0.0, 1.5], hold=["crank"])[0], [6.0, 0.0, 0.0], hold=["crank"])
    for engine in ("interpreted", "compiled"):
        out = simulate(mech, q0, 3.0, engine, qd0=qd0, rtol=1e-3)
        assert out.status == "finished" and np.abs(mech.closure(out.x[:, :3])).max() < 1e-8


@pytest.mark.slow
def test_a_loop_stays_closed_for_a_hundred_seconds():
    mech = cs.library.four_bar()
    out = simulate(mech, mech.project(STARTS["four_bar"])[0], 100.0, "compiled")
    assert out.t[-1] == 100.0
    assert np.abs(mech.closure(out.x[:, :3])).max() < 1e-8


@pytest.mark.slow
def test_the_ready_diagram_turns_at_the_speed_that_it_is_told():
    sim = cs.Simulation(graphics=False, progress=False)
    out = sim.run(diagrams.load("four_bar").build(sim, speed=4.0, gain=5.0), T=1.5, watch=["plant"])
    assert abs(out.signal("plant.qd")[-1, 0] - 4.0) < 1.0
    assert np.abs(cs.library.four_bar().closure(out.signal("plant.q"))).max() < 1e-8


def driven_four_bar():
    mech = cs.library.four_bar(damping=0.05)
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project(STARTS["four_bar"])[0], name="plant")
    gain = bd.GAIN(0.3, name="gain")
    bd.connect(bd.CONSTANT(1.0), gain)
    bd.connect(gain, plant.tau)
    return mech, sim, bd, plant


def test_a_diagram_is_linear_in_the_freedoms_of_its_mechanism():
    mech, sim, bd, plant = driven_four_bar()
    model = sim.linearize(bd, inputs=["plant.tau"], outputs=["plant.q"])
    want = mech.linearize(plant.q0, tau=[0.3])
    assert model.states == tuple(f"plant.{s}" for s in ("crank.q", "crank.qd")) and len(model.poles) == 2
    np.testing.assert_allclose(model.A, want.A, atol=1e-9)
    np.testing.assert_allclose(model.B, want.B, atol=1e-9)
    np.testing.assert_allclose(model.C, want.joints[:3], atol=1e-9)
    with pytest.raises(cs.InvalidValue, match=r"'plant' is a mechanism with loops.*mech\.trim"):
        sim.trim(bd)


def test_a_gradient_goes_through_a_closed_plant():
    _, sim, bd, _ = driven_four_bar()
    options = {"T": 0.4, "rtol": 1e-10, "atol": 1e-12}
    found = sim.gradient(bd, "plant.crank.q", ["gain.K"], **options)
    gain, ends = bd.blocknames["gain"], []
    for K in (0.3 - 1e-4, 0.3 + 1e-4):
        gain.K = K
        ends.append(sim.run(bd, **options).x[-1, 0])
    np.testing.assert_allclose(found.gradient, (ends[1] - ends[0]) / 2e-4, rtol=1e-6)
    with pytest.raises(cs.InvalidValue, match=r"plant\.crank\.q is a state of a mechanism with loops"):
        sim.gradient(bd, "plant.crank.q", ["plant.crank.q"], T=0.1)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_run_that_begins_elsewhere_begins_closed_with_the_joints_that_are_named(engine):
    """It began open, by as much as the joint was moved, and jumped at its first step to the nearest posture."""
    mech = cs.library.five_bar()
    names = ["plant." + name + kind for kind in (".q", ".qd") for name in mech.names]
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project(STARTS["five_bar"])[0], name="plant")
    bd.connect(bd.CONSTANT(np.zeros(len(mech.actuated))), plant.tau)
    moved = {names[0]: plant.q0[0] - 0.3, names[4]: 0.5}
    out = sim.run(bd, T=0.02, start=moved)
    assert np.abs(mech.closure(out.x[:, :4])).max() < 1e-9
    assert out.x[0, 0] == moved[names[0]] and abs(out.x[0, 4] - 0.5) < 1e-9
    rate = mech.closure_jacobian(out.x[0, :4]) @ out.x[0, 4:]
    assert np.abs(rate).max() < 1e-9 and abs(out.x[0, 5:]).max() > 0.05
    np.testing.assert_array_equal(sim.run(bd, T=0.01, start=out.x[0]).x[0], out.x[0])  # what is closed stays

    open_by_little = out.x[0] + np.array([0.0, 0.01, *np.zeros(6)])
    for start in (open_by_little, dict(zip(names, open_by_little, strict=True)), {"plant": open_by_little}):
        begun = sim.run(bd, T=0.01, start=start).x[0]
        np.testing.assert_allclose(begun, np.concatenate(mech.project(*np.split(open_by_little, 2))), atol=1e-9)
    with pytest.raises(cs.InvalidValue, match=r"start: block 'plant': loop .* cannot be closed"):
        sim.run(bd, T=0.01, start={names[0]: 3.1, names[2]: 0.0})
    assert abs(sim.linearize(bd, moved).x[0] - moved[names[0]]) < 1e-12
    found = sim.sweep(bd, {names[0]: [1.8, 1.9]}, lambda out: out.x[0, 0], T=0.01, progress=False)
    np.testing.assert_allclose(found.value, [1.8, 1.9], atol=1e-12)


def test_joints_that_are_named_keep_theirs_where_they_agree_though_fewer_determine_the_rest():
    """They were moved by half of what the ones that were not named had to go, as if they were wrong too."""
    mech = cs.library.four_bar()
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project(STARTS["four_bar"])[0], name="plant")
    bd.connect(bd.CONSTANT([0.0]), plant.tau)
    q, qd = mech.project([plant.q0[0] - 0.3, *plant.q0[1:]], [0.5, 0.0, 0.0], hold=["crank"])
    ends = {
        f"plant.{joint}.{kind}": x[k]
        for k, joint in ((0, "crank"), (2, "rocker"))
        for kind, x in (("q", q), ("qd", qd))
    }
    np.testing.assert_allclose(sim.run(bd, T=0.01, start=ends).x[0], [*q, *qd], atol=1e-9)

    far = sim.run(bd, T=0.01).x[0] + 0.3
    for start in ({"plant": far}, far):
        with pytest.raises(cs.InvalidValue, match=r"start: block 'plant': loop pin: .* misses closure"):
            sim.run(bd, T=0.01, start=start)
        with pytest.raises(cs.InvalidValue, match=r"start: block 'plant': loop pin: .* misses closure"):
            sim.gradient(bd, "plant.crank.q", ["plant.crank.damping"], T=0.01, start=start)


def test_a_stepper_is_reset_to_a_closed_state_with_the_joints_that_are_named():
    mech = cs.library.four_bar()
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project(STARTS["four_bar"])[0], name="plant")
    bd.connect(bd.CONSTANT([0.0], name="torque"), plant.tau)
    stepper = sim.stepper(bd, inputs=["torque"], outputs=["plant.q"])
    stepper.reset({"plant.crank.q": 1.3})
    np.testing.assert_allclose(stepper.x[:3], mech.project([1.3, 0.0, 1.5], hold=["crank"])[0], atol=1e-9)
