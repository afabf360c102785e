"""A run that goes on from where another stood is the run in one: what blocks remember, ticks at the start, the grid."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import FileFormatError, NonFinite, ShapeError, UnknownName
from cstormpy.simulation.saved_state import SavedState


@pytest.fixture(params=["interpreted", "compiled"])
def sim(request):
    return cs.Simulation(engine=request.param)


def test_a_push_by_hand_goes_on(sim, tmp_path):
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.0, 0.2], actuated=[], name="plant")
    fine = {"rtol": 1e-9, "atol": 1e-11}

    def push():
        plant.push("forearm", [5.0, 0.0, 0.0], [0.1, 0.0, 0.0])

    whole = sim.run(bd, T=1.5, at={0.3: push, 0.8: plant.release}, **fine)
    first = sim.run(bd, T=0.5, at={0.3: push}, **fine)
    first.state.save(tmp_path / "state.json")
    second = sim.run(bd, T=1.0, start=tmp_path / "state.json", at={0.8: plant.release}, **fine)
    np.testing.assert_allclose(second.x[-1], whole.x[-1], rtol=0, atol=1e-7)
    assert sim.run(bd, T=0.1).state.memory == {"plant": {"push": []}}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_law_that_is_selected_before_a_run_goes_on_is_that_of_the_rest(sim, elsewhere):
    """Also in a diagram that has not run yet, as in another process; nothing selected, the law of before goes on."""

    def made():
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.0, 0.2], name="plant")
        laws = {"push": lambda t, q, qd: [2.0], "brake": lambda t, q, qd: -3.0 * qd[1:]}
        controller = bd.CONTROLLER("acrobot", laws, name="controller")
        bd.connect(plant.q, controller.q)
        bd.connect(plant.qd, controller.qd)
        bd.connect(controller.tau, plant.tau)
        return bd, controller

    fine = {"rtol": 1e-9, "atol": 1e-11, "watch": ["controller.law"]}
    bd, controller = made()
    whole = sim.run(bd, T=1.0, at={0.5: lambda: controller.select("brake")}, **fine)
    first = sim.run(bd, T=0.5, **fine)
    if elsewhere:
        bd, controller = made()
    controller.select("brake")
    second = sim.run(bd, T=0.5, start=first.state, **fine)
    np.testing.assert_allclose(second.x[-1], whole.x[-1], rtol=0, atol=1e-8)
    third = sim.run(made()[0], T=0.1, start=second.state, **fine)
    assert second.signal("controller.law")[-1] == third.signal("controller.law")[-1] == 1.0


def counted(sim, stops):
    bd = sim.blockdiagram()
    one, count = bd.CONSTANT(1.0), bd.INTEGRATOR_S(bd.clock(0.1, "s"), name="count")
    bd.connect(one, count, clock := bd.INTEGRATOR(name="clock"))
    bd.connect(count, bd.NULL())
    bd.connect(clock, bd.NULL())
    if stops:
        bd.connect(one, bd.STOP(lambda v: v > 0.0))
    return bd


def test_clocks_that_have_ticked_at_zero_do_not_tick_again(sim):
    stopped = sim.run(counted(sim, True), T=1.0)
    assert stopped.t[-1] == 0.0
    whole = sim.run(counted(sim, False), T=0.25, watch=["count"])
    second = sim.run(counted(sim, False), T=0.25, watch=["count"], start=stopped.state)
    assert second.signal("count")[-1] == whole.signal("count")[-1] == pytest.approx(0.3)


def peak(u, memory):
    memory["most"] = max(memory.get("most", np.float64(-9.0)), u)
    return memory["most"]


def remembering(sim, function):
    bd = sim.blockdiagram()
    wave, most = bd.WAVEFORM("sine", freq=1.0), bd.FUNCTION(function, persistent=True, name="peak")
    bd.connect(wave, most)
    bd.connect(most, sums := bd.INTEGRATOR(name="sums"))
    bd.connect(sums, bd.NULL())
    return bd


def test_what_a_function_remembers_goes_on(tmp_path):
    sim = cs.Simulation(engine="interpreted")
    whole = sim.run(remembering(sim, peak), T=1.0, solver="RK4", dt=0.01)
    first = sim.run(remembering(sim, peak), T=0.5, solver="RK4", dt=0.01)
    first.state.save(tmp_path / "state.json")
    for start in (first, first.state, tmp_path / "state.json"):
        second = sim.run(remembering(sim, peak), T=0.5, solver="RK4", dt=0.01, start=start)
        np.testing.assert_allclose(second.x[-1], whole.x[-1], rtol=1e-12)
    assert whole.x[-1, 0] > 0.8


class Stay(cs.control.Law):
    def start(self, t, q, qd):
        self.home = q.copy()

    def torque(self, t, q, qd, reference=None):
        return 40.0 * (self.home - q) - 2.0 * qd


def staying(sim, make):
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("planar_2r", q0=[0.5, 0.3], name="plant")
    controller = bd.CONTROLLER("planar_2r", {"stay": make()})
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return bd


@pytest.mark.parametrize(
    "make",
    [lambda: Stay("planar_2r"), lambda: cs.control.Then(Stay("planar_2r"), Stay("planar_2r"), 0.3)],
    ids=["law", "law within another"],
)
def test_what_a_law_notes_where_it_begins_goes_on(sim, make, tmp_path):
    bd = staying(sim, make)
    fine = {"rtol": 1e-9, "atol": 1e-11}
    first, whole = sim.run(bd, T=0.5, **fine), sim.run(bd, T=1.0, **fine)
    first.state.save(tmp_path / "state.json")
    sim.run(bd, T=0.4, start=np.ones(4), **fine)  # where the law notes another state
    for where, start in ((bd, first), (staying(sim, make), first), (staying(sim, make), tmp_path / "state.json")):
        second = sim.run(where, T=0.5, start=start, **fine)
        np.testing.assert_allclose(second.x[-1], whole.x[-1], rtol=0, atol=1e-7)


def test_what_can_not_be_copied_or_written_is_said(tmp_path, caplog):
    sim = cs.Simulation(engine="interpreted")

    def locked(u, memory):
        memory["lock"] = threading.Lock()
        return u

    out = sim.run(remembering(sim, locked), T=0.1)
    assert out.status == "finished" and out.state.memory == {}
    assert "block 'peak' remembers what cannot be copied" in caplog.text

    def odd(u, memory):
        memory["key"] = {1, 2}
        return u

    with pytest.raises(FileFormatError, match=r"what block 'peak' remembers cannot be written: a set"):
        sim.run(remembering(sim, odd), T=0.1).state.save(tmp_path / "state.json")
    assert not (tmp_path / "state.json").exists()


@pytest.mark.parametrize("options", [{"log_dt": 0.05}, {"dt": 0.05}], ids=str)
def test_points_of_the_grid_are_the_same(sim, options):
    whole = sim.run(counted(sim, False), T=0.6, **options)
    first = sim.run(counted(sim, False), T=0.31, **options)
    second = sim.run(counted(sim, False), T=0.29, start=first.state, **options)
    np.testing.assert_allclose(first.t, [*whole.t[:7], 0.31])
    np.testing.assert_allclose(second.t, [0.31, *whole.t[7:]])
    np.testing.assert_allclose(second.x[1:], whole.x[7:], rtol=1e-9)
    on_grid = SavedState(t=0.3, continuous={"clock": [0.3]}, sampled={"count": [0.4]})
    np.testing.assert_allclose(sim.run(counted(sim, False), T=0.3, start=on_grid, **options).t, whole.t[6:])


SOURCES = {
    "pulse": lambda bd: bd.PULSE(1.0, period=0.2, width=0.5, offset=0.25),
    "late pulse": lambda bd: bd.PULSE(1.0, period=0.4, width=0.8, offset=0.25),
    "square": lambda bd: bd.WAVEFORM("square", freq=6.2, phase=0.96, duty=0.9),
    "late square": lambda bd: bd.WAVEFORM("square", freq=1.52, phase=0.63, duty=0.1),
    "data": lambda bd: bd.FROMDATA(t=[0, 0.62, 0.62, 0.8], y=[0.0, 0.2, 1.0, 0.7], ends="repeat"),
}


@pytest.mark.parametrize(
    ("source", "pieces"),
    [
        ("pulse", [0.3, 0.3]),
        ("late pulse", [1.1199999999999999]),
        ("square", [0.7838709677419351]),
        ("late square", [(1 + 0.1 + 0.63) / 1.52]),
        ("data", [0.6199999999999999]),
    ],
)
def test_a_source_that_jumps_where_a_run_goes_on(sim, source, pieces):
    """What is declared beside the end of a run, by a rounding, was done by neither run: its event was lost."""

    def build():
        bd = sim.blockdiagram()
        wave, above = SOURCES[source](bd), bd.COMPARE(">", 0.5, name="above")
        held = bd.ZOH(bd.clock(0.1, "s"), name="held")
        bd.connect(wave, above, held, bd.INTEGRATOR(name="of wave"))
        bd.connect(above, bd.INTEGRATOR(name="of above"))
        bd.connect(held, bd.INTEGRATOR(name="of held"))
        return bd

    whole, out, events = sim.run(build(), T=1.35, solver="RK4", dt=0.02), None, []
    for T in [*pieces, 1.35 - sum(pieces)]:
        out = sim.run(build(), T=T, solver="RK4", dt=0.02, start=out)
        events += out.events
    np.testing.assert_allclose(out.x[-1], whole.x[-1], atol=1e-12)
    np.testing.assert_allclose([t for t, _ in events], [t for t, _ in whole.events], atol=1e-12)
    assert len(events) > 1


def test_a_run_begins_where_some_states_are_named(sim):
    """By the names of states and of blocks, as `linearize` takes a point; the others are as they begin."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.2], name="plant")
    bd.connect(bd.CONSTANT([0.0]), plant.tau)
    whole = sim.run(bd, T=0.1, start=[0.1, 0.3, 0.0, -1.0])
    named = sim.run(bd, T=0.1, start={"plant.elbow.q": 0.3, "plant.elbow.qd": -1.0})
    np.testing.assert_array_equal(named.x, whole.x)
    np.testing.assert_array_equal(sim.run(bd, T=0.1, start={"plant": [0.1, 0.3, 0.0, -1.0]}).x, whole.x)
    with pytest.raises(UnknownName, match=r"start: state 'plant.elbo.q' does not exist; did you mean 'plant.elbow.q'"):
        sim.run(bd, T=0.1, start={"plant.elbo.q": 0.3})
    bd.connect(plant.q, bd.ZOH(bd.clock(0.1), x0=[0, 0], name="sampled"))  # "does not exist" was said of its states
    for name in ("sampled", "sampled:X_0"):
        with pytest.raises(UnknownName, match=r"start: block 'sampled' is sampled; its states .* as its x0, or those"):
            sim.run(bd, T=0.1, start={name: 0.3})
    with pytest.raises(ShapeError, match=r"start\['plant'\]: expected shape \(4,\), got \(2,\)"):
        sim.run(bd, T=0.1, start={"plant": [0.1, 0.2]})
    with pytest.raises(NonFinite, match=r"start\['plant.elbow.q'\]: expected finite numbers"):
        sim.run(bd, T=0.1, start={"plant.elbow.q": np.nan})


@pytest.mark.parametrize("suffix", ["npz", "csv", "mat"])
def test_a_saved_run_is_no_state_to_go_on_from(suffix, tmp_path):
    """Its bytes were taken for JSON that cannot be decoded, and what `cs.load` made of it for an array."""
    sim = cs.Simulation(engine="interpreted")
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS("acrobot", actuated=[], name="plant")
    sim.run(bd, T=0.1, watch=["plant"]).save(path := tmp_path / f"run.{suffix}")
    for start in (path, str(path), cs.load(path)):
        with pytest.raises(cs.CstormError, match=r"start: .*a saved run holds signals, .* out\.state\.save"):
            sim.run(bd, T=0.1, start=start)
