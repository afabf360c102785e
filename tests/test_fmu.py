"""Functional mock-up units of diagrams: valid by fmpy's checks, and simulated by fmpy as we run the diagram."""

from __future__ import annotations

import shutil
import sys
import zipfile

import numpy as np
import pytest
from bdsim.blocks.sources import Step
from bdsim.components import FunctionBlock

import cstormpy as cs
from cstormpy.errors import CstormError

fmpy = pytest.importorskip("fmpy")
from fmpy.validation import validate_fmu  # noqa: E402

has_compiler = any(map(shutil.which, ("cc", "gcc", "clang")))
needs_compiler = pytest.mark.skipif(not has_compiler or sys.platform == "win32", reason="there is no C compiler")
STEP = 0.01


def simulation():
    return cs.Simulation(engine="compiled", live=False, progress=False)


def build(sim, gain=1.5, push=0.3):
    """An acrobot under a law whose gain is a parameter, and a torque that is an input."""
    bd = sim.blockdiagram(name="acrobot & law")
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.2, 0.3], name="plant")
    law = bd.FUNCTION(lambda q, qd: -5.0 * q[1] - 1.4 * qd[1] if abs(q[1]) < 3.0 else -qd[1], nin=2, name="law")
    scaled, given, torque = bd.GAIN(gain, name="gain"), bd.CONSTANT(push, name="push"), bd.SUM("++", name="sum")
    bd.connect(plant.q, law[0])
    bd.connect(plant.qd, law[1])
    bd.connect(law, scaled)
    bd.connect(scaled, torque[0])
    bd.connect(given, torque[1])
    as_vector = bd.FUNCTION(lambda u: np.array([u]), name="vector")
    bd.connect(torque, as_vector)
    bd.connect(as_vector, plant.tau)
    return bd


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """Units of both versions, one with equal steps, the other with steps by their tolerances."""
    folder, made = tmp_path_factory.mktemp("units"), {}
    for version, solver in ((2, "RK4"), (3, "RK45")):
        sim = simulation()
        given = {"inputs": ["push"], "outputs": ["plant.q", "gain"], "parameters": ["gain.K"]}
        options = {"version": version, "solver": solver, "step": STEP, "rtol": 1e-9, "atol": 1e-12}
        made[version] = sim.to_fmu(build(sim), folder / f"acrobot{version}.fmu", **given, **options)
    return made


@pytest.mark.parametrize("version", [2, 3])
def test_fmpy_finds_it_valid(units, version):
    assert validate_fmu(str(units[version])) == []
    described = fmpy.read_model_description(str(units[version]))
    assert described.modelName == "acrobot & law" and described.fmiVersion == f"{version}.0"
    kinds = {v.name: v.causality for v in described.modelVariables}
    assert [name for name, kind in kinds.items() if kind == "input"] == ["push[0]"]
    assert [name for name, kind in kinds.items() if kind == "output"] == ["plant.q[0]", "plant.q[1]", "gain[0]"]
    assert kinds["gain.K"] == "parameter" and kinds["state plant.shoulder.q"] == "local"
    assert {v.name: v.unit for v in described.modelVariables}["plant.q[0]"] == "rad"


@needs_compiler
@pytest.mark.parametrize("version", [2, 3])
def test_fmpy_simulates_it_as_we_run_the_diagram(units, version):
    """The start, a gain and a torque are others than those that the unit was written with."""
    sim = simulation()
    start = {"gain.K": 2.5, "state plant.elbow.q": 0.1, "push[0]": -0.2}
    found = fmpy.simulate_fmu(str(units[version]), stop_time=1.0, output_interval=STEP, start_values=start)
    solver = {2: {"solver": "RK4", "dt": STEP}, 3: {"solver": "RK45", "rtol": 1e-9, "atol": 1e-12, "dt": STEP}}[version]
    out = sim.run(build(sim, 2.5, -0.2), T=1.0, start=[-1.2, 0.1, 0.0, 0.0], watch=["plant.q", "gain"], **solver)
    at = np.searchsorted(out.t, found["time"] - 1e-6)
    assert len(found) == 101
    # the same steps of RK4; RK45's are others, and each within its tolerance
    for column, wanted in (("plant.q[1]", out.signal("plant.q")[at, 1]), ("gain[0]", np.ravel(out.signal("gain"))[at])):
        np.testing.assert_allclose(found[column], wanted, atol=1e-12 if version == 2 else 1e-7)
    assert np.ptp(found["plant.q[1]"]) > 0.1


@needs_compiler
def test_inputs_are_held_over_a_step_of_the_other_tool(units):
    """As the stepper of the same diagram does, with another torque for each step."""
    sim = simulation()
    stepper = sim.stepper(build(sim), ["push"], ["plant.q"], substeps=5)
    t = np.arange(20) * 0.05
    torque = np.sin(7.0 * t)
    given = np.array(list(zip(t, torque, strict=True)), dtype=[("time", "f8"), ("push[0]", "f8")])
    found = fmpy.simulate_fmu(str(units[2]), stop_time=0.95, output_interval=0.05, input=given)
    for k, push in enumerate(torque[:-1]):
        y = stepper.step([push], 0.05)
        np.testing.assert_allclose([found["plant.q[0]"][k + 1], found["plant.q[1]"][k + 1]], y, atol=1e-12)


@needs_compiler
def test_a_unit_goes_back_to_where_it_stood(units, tmp_path):
    """State kept, gone on, put back: the same again; and a torque that is no number leaves all as it was."""
    from fmpy.fmi2 import FMU2Slave

    described = fmpy.read_model_description(str(units[2]))
    vr = {v.name: v.valueReference for v in described.modelVariables}
    folder = fmpy.extract(str(units[2]), str(tmp_path))
    unit = FMU2Slave(
        guid=described.guid, unzipDirectory=folder, modelIdentifier=described.coSimulation.modelIdentifier,
        instanceName="one",
    )  # fmt: skip
    unit.instantiate()
    unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    unit.doStep(0.0, 0.1)
    state = unit.getFMUstate()
    unit.doStep(0.1, 0.1)
    first = unit.getReal([vr["plant.q[1]"]])
    unit.setFMUstate(state)
    kept = unit.serializeFMUstate(state)
    unit.doStep(0.1, 0.1)
    assert unit.getReal([vr["plant.q[1]"]]) == first
    unit.setFMUstate(unit.deSerializeFMUstate(kept))
    unit.setReal([vr["push[0]"]], [np.nan])
    with pytest.raises(fmpy.fmi1.FMICallException):
        unit.doStep(0.1, 0.1)
    unit.setReal([vr["push[0]"]], [0.3])
    unit.doStep(0.1, 0.1)
    assert unit.getReal([vr["plant.q[1]"]]) == first
    unit.terminate()
    unit.freeInstance()


def test_the_same_diagram_gives_the_same_sources(tmp_path):
    """And a unit without a binary holds all that its compilation needs."""
    texts = []
    for name in ("one", "two"):
        sim = simulation()
        path = sim.to_fmu(build(sim), tmp_path / f"{name}.fmu", ["push"], ["plant.q"], binary=False)
        with zipfile.ZipFile(path) as archive:
            assert sorted(archive.namelist()) == [
                "modelDescription.xml", "sources/core.h", "sources/fmi2.c", "sources/model.h"
            ]  # fmt: skip
            texts.append(archive.read("sources/model.h"))
    assert texts[0] == texts[1]


def tabled(sim):
    """A mass on a spring that is a table, with friction by a table of speed and place, and a motion to follow."""
    bd = sim.blockdiagram(name="tabled")
    x, v, force = bd.INTEGRATOR(x0=1.3, name="x"), bd.INTEGRATOR(x0=0.0, name="v"), bd.SUM("---+", name="force")
    spring = bd.LOOKUP1D([-2.0, -0.5, 0.5, 2.0], [-6.0, -0.5, 0.5, 6.0], name="spring", locate=False)
    speeds = np.linspace(-3.0, 3.0, 13)
    losses = np.outer(np.tanh(4.0 * speeds), [0.3, 0.1, 0.4])
    friction = bd.LOOKUP2D(speeds, [-1.0, 0.2, 1.0], losses, name="friction", locate=False)
    curve = bd.LOOKUP1D([0.0, 0.4, 1.0, 2.0], [0.0, 1.0, -1.0, 0.5], name="curve", locate=False)
    push = bd.CONSTANT(0.2, name="push")
    bd.connect(v, x, friction[0])
    bd.connect(x, spring, friction[1])
    bd.connect(bd.TIME(), curve)
    for k, source in enumerate((spring, friction, curve, push)):
        bd.connect(source, force[k])
    bd.connect(force, v)
    return bd


@needs_compiler
@pytest.mark.parametrize("version", [2, 3])
def test_tables_are_looked_up_in_a_unit_as_in_a_run(tmp_path, version):
    """They were refused: friction and springs that were measured could not go to another tool."""
    sim = simulation()
    options = {"version": version, "solver": "RK4", "step": STEP}
    unit = sim.to_fmu(tabled(sim), tmp_path / "tabled.fmu", ["push"], ["spring", "friction", "x"], **options)
    assert validate_fmu(str(unit)) == []
    found = fmpy.simulate_fmu(str(unit), stop_time=2.0, output_interval=STEP, start_values={"push[0]": -0.4})
    bd = tabled(sim)
    bd["push"].value = -0.4
    out = sim.run(bd, T=2.0, solver="RK4", dt=STEP, watch=["spring", "friction", "x"])
    at = np.searchsorted(out.t, found["time"] - 1e-6)
    for name, column in (("spring", "spring.y"), ("friction", "friction.y"), ("x", "x[0]")):
        np.testing.assert_allclose(found[column], np.ravel(out.signal(name))[at], rtol=1e-12, atol=1e-12)
        assert np.ptp(found[column]) > 0.2


def cart(sim, *more):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=1.0, name="x")
    rate = bd.GAIN(-1.0, name="rate")
    bd.connect(x, rate)
    bd.connect(rate, x)
    for block in [make(bd) for make in more]:
        bd.connect(x, block)
        bd.connect(block, bd.NULL())
    return bd


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda bd: bd.RELAY(name="relay"), {}, "block 'relay' locates events"),
        (lambda bd: bd.FUNCTION(lambda x: float(hash(str(x)) % 7), name="odd"), {}, "block 'odd' cannot be written"),
        (lambda bd: bd.GAIN(2.0, name="two"), {"solver": "RK44"}, "did you mean 'RK4'"),
        (lambda bd: bd.GAIN(2.0, name="two"), {"solver": "DOP853"}, "two estimates"),
        (lambda bd: bd.GAIN(2.0, name="two"), {"parameters": ["x.x0"]}, "has no say"),
        (lambda bd: bd.GAIN(2.0, name="two"), {"parameters": ["tow.K"]}, "did you mean 'two'"),
        (lambda bd: bd.GAIN(2.0, name="two"), {"inputs": ["tow"]}, "did you mean 'two"),
        (lambda bd: bd.GAIN(2.0, name="two"), {"version": 1}, "expected 2 or 3"),
        (lambda bd: bd.GAIN(2.0, name="two"), {"step": 0.0}, "positive"),
    ],
)
def test_what_cannot_be_exported_is_refused_by_name(tmp_path, make, options, message):
    sim = simulation()
    with pytest.raises(CstormError, match=message):
        sim.to_fmu(cart(sim, make), tmp_path / "it.fmu", outputs="all", binary=False, **options)
    assert not (tmp_path / "it.fmu").exists()


def test_an_output_that_is_an_input_is_refused(tmp_path):
    """The description of the unit had a name twice, which no tool takes."""
    sim = simulation()
    with pytest.raises(CstormError, match=r"to_fmu: outputs: rate\[0\] is an input of the unit; leave it out"):
        sim.to_fmu(cart(sim), tmp_path / "it.fmu", ["rate"], ["x", "rate"], binary=False)


def test_all_outputs_are_all_that_are_no_inputs(tmp_path):
    sim = simulation()
    path = sim.to_fmu(cart(sim), tmp_path / "it.fmu", inputs=["rate"], outputs="all", binary=False)
    names = [v.name for v in fmpy.read_model_description(str(path)).modelVariables]
    assert names[:3] == ["time", "rate[0]", "x[0]"] and len({*names}) == len(names)


def test_an_input_starts_as_it_is_wired_also_where_that_follows_a_parameter(tmp_path):
    """It started at 3.00078, the parameter being moved a little while the equations were translated."""
    sim = simulation()
    bd = sim.blockdiagram()
    plant, gain = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.GAIN(2.0, name="gain")
    bd.connect(bd.CONSTANT(1.5, name="wanted"), gain)
    bd.connect(gain, plant.tau)
    bd.connect(gain, bd.INTEGRATOR(name="x"))
    path = sim.to_fmu(bd, tmp_path / "it.fmu", ["plant.tau"], ["x", "plant.q"], ["wanted.value"], binary=False)
    starts = {v.name: v.start for v in fmpy.read_model_description(str(path)).modelVariables}
    assert float(starts["plant.tau"]) == 3.0 and float(starts["wanted.value"]) == 1.5


@needs_compiler
@pytest.mark.parametrize(("solver", "within"), [("RK4", 1e-5), ("RK45", 1e-7)])
def test_blocks_with_kinks_are_exported_as_they_are(tmp_path, solver, within):
    """Where only a step of a run would end they were refused, PIDCONTROLLER without any remedy."""
    sim = simulation()

    def controlled():
        bd = sim.blockdiagram()
        x, wanted = bd.INTEGRATOR(1.0, name="x"), bd.CONSTANT(0.0, name="wanted")
        pid, limit = bd.PIDCONTROLLER(P=4.0, I=3.0, low=-0.5, high=0.3), bd.SATURATION(low=-0.4, high=0.2)
        for begin, end in ((wanted, pid.reference), (x, pid.measured), (pid, limit), (limit, x)):
            bd.connect(begin, end)
        return bd

    unit = sim.to_fmu(controlled(), tmp_path / "kinks.fmu", [], ["x"], solver=solver, step=STEP, rtol=1e-9, atol=1e-11)
    found = fmpy.simulate_fmu(str(unit), stop_time=4.0, output_interval=STEP)
    out = sim.run(controlled(), T=4.0, rtol=1e-10, atol=1e-12, dt=STEP, watch=["x"])
    at = np.searchsorted(out.t, found["time"] - 1e-6)
    assert len(out.events) >= 2
    np.testing.assert_allclose(found["x[0]"], np.ravel(out.signal("x"))[at], rtol=0, atol=within)


def test_a_source_that_jumps_may_be_given_from_outside(tmp_path):
    """The message said to make it an input, where it was refused again."""
    sim = simulation()

    class Push(Step):
        """A source of a user."""

    def pushed():
        bd = sim.blockdiagram()
        bd.connect(Push(T=0.5, name="push", bd=bd), bd.INTEGRATOR(name="x"))
        return bd

    with pytest.raises(cs.DiagramError, match=r"block 'push' declares when it jumps.*inputs=\['push'\]"):
        sim.to_fmu(pushed(), tmp_path / "it.fmu", [], ["x"], binary=False)
    assert sim.to_fmu(pushed(), tmp_path / "it.fmu", ["push"], ["x"], binary=False).exists()


@pytest.mark.parametrize("solver", ["RK4", "RK45"])
@pytest.mark.parametrize("sampled", [False, True])
def test_steps_end_where_sources_jump(tmp_path, solver, sampled):
    """Once, and over and over; such a diagram was refused."""
    sim = simulation()
    bd = sim.blockdiagram()
    step, pulse = bd.STEP(T=0.53, name="step"), bd.PULSE(period=0.41, width=0.3, delay=0.17, name="pulse")
    total, x, twice = bd.SUM("++-"), bd.INTEGRATOR(name="x"), bd.GAIN(2.0)
    bd.connect(step, total[0])
    if sampled:
        bd.connect(pulse, held := bd.ZOH(bd.clock(7, "Hz"), name="held"))
        bd.connect(held, total[1])
    else:
        bd.connect(pulse, total[1])
    bd.connect(x, twice)
    bd.connect(twice, total[2])
    bd.connect(total, x)
    options = {"solver": solver, "step": 0.01, "rtol": 1e-9, "atol": 1e-11}
    unit = sim.to_fmu(bd, tmp_path / "edges.fmu", [], ["x"], ["step.on"], **options)
    assert validate_fmu(str(unit)) == []
    found = fmpy.simulate_fmu(str(unit), stop_time=2.0, output_interval=0.08)
    out = sim.run(bd, T=2.0, rtol=1e-11, atol=1e-13)
    assert abs(found["x[0]"][-1] - out.x[-1, 0]) < 1e-9  # 1e-3 where stages are beyond an edge
    with pytest.raises(cs.InvalidValue, match="one says when a source jumps, which is fixed"):
        sim.to_fmu(bd, tmp_path / "edges.fmu", [], ["x"], ["step.T"], **options)


@needs_compiler
@pytest.mark.parametrize("solver", ["RK4", "RK45"])
@pytest.mark.parametrize(("begin", "on"), [(1000.0, 0.37), (-2e-4, 0.37 * 0.8)])
def test_edges_are_met_far_out_and_before_the_time_of_0(tmp_path, solver, begin, on):
    """A time was at an edge within a part of the period, which far out is less than rounding: 0.55 for 0.37."""
    sim, period = simulation(), 2e-5
    bd = sim.blockdiagram()
    bd.connect(bd.PULSE(amplitude=1.0, period=period, width=0.37), bd.INTEGRATOR(name="x"))
    unit = sim.to_fmu(bd, tmp_path / "pwm.fmu", [], ["x"], solver=solver, step=period)
    end = begin + 50 * period
    found = fmpy.simulate_fmu(str(unit), start_time=begin, stop_time=end, output_interval=2.5 * period)
    assert found["x[0]"][-1] / (50 * period) == pytest.approx(on, abs=1e-6)


class Cubic(FunctionBlock):
    """A block that keeps the cube of its parameter, as one does that computes its coefficients when it is set."""

    nin, nout = 1, 1

    def __init__(self, k=2.0, **blockargs):
        super().__init__(**blockargs)
        self.k = k

    @property
    def k(self):
        return self.given

    @k.setter
    def k(self, value):
        self.given, self.cube = value, value**3

    def output(self, t, u, x):
        return [self.cube * u[0]]


def test_a_parameter_of_which_the_equations_hold_the_cube_is_refused(tmp_path):
    """A unit moves the numbers of its equations in proportion, which would be wrong of this one."""
    sim = simulation()
    bd = cart(sim, lambda bd: Cubic(bd=bd, name="cubic"))
    with pytest.raises(cs.InvalidValue, match=r"cubic\.k: .* do not follow in proportion"):
        sim.to_fmu(bd, tmp_path / "it.fmu", ["rate"], ["x", "cubic"], ["cubic.k"], binary=False)


@needs_compiler
@pytest.mark.parametrize("given", ["plant.tau", "controller.tau"])
def test_what_no_output_needs_is_left_out(tmp_path, given):
    """The README's line was refused for a law with phases whose torque comes from outside; so was what only looks."""
    sim = simulation()

    def plant(bd):
        return bd.HYBRIDDYNAMICS("acrobot", q0=[-1.2, 0.3], name="plant")

    bd = sim.blockdiagram()
    acrobot, law = plant(bd), bd.CONTROLLER("acrobot", "energy", name="controller")
    bd.connect(acrobot[0:2], law[0:2])
    bd.connect(law.tau, acrobot.tau)
    first = bd.INDEX([0])
    bd.connect(acrobot.q, first)
    held, bounded = bd.ZOH(bd.clock(0.1), name="held"), bd.INTEGRATOR(max=1.0, name="bounded")
    bd.connect(first, held, bounded, bd.RELAY(name="relay"))
    unit = sim.to_fmu(bd, tmp_path / "plant.fmu", [given], ["plant.q"], solver="RK4", step=STEP)
    described = fmpy.read_model_description(str(unit))
    states = [v.name for v in described.modelVariables if v.causality == "local"]
    assert states == [f"state plant.{joint}.{x}" for x in ("q", "qd") for joint in ("shoulder", "elbow")]
    found = fmpy.simulate_fmu(str(unit), stop_time=1.0, output_interval=STEP, start_values={f"{given}[0]": 0.7})
    alone = sim.blockdiagram()
    alone.connect(alone.CONSTANT([0.7]), plant(alone).tau)
    out = sim.run(alone, T=1.0, solver="RK4", dt=STEP, watch=["plant.q"])
    at = np.searchsorted(out.t, found["time"] - 1e-6)
    np.testing.assert_allclose(found["plant.q[1]"], out.signal("plant.q")[at, 1], rtol=0, atol=1e-12)
    with pytest.raises(cs.DiagramError, match="'relay' locates events"):
        sim.to_fmu(bd, tmp_path / "it.fmu", [given], ["plant.q", "relay"], binary=False)


def delayed(sim):
    """A mass whose forces come late: by a transport delay, by samples, and by a hold on a clock of its own."""
    bd = sim.blockdiagram(name="late")
    place, speed = bd.INTEGRATOR(x0=1.0, name="place"), bd.INTEGRATOR(x0=0.0, name="speed")
    push, force = bd.CONSTANT(0.2, name="push"), bd.SUM("+---", name="force")
    late = bd.DELAY(bd.clock(0.05), time=0.12, x0=0.3, name="late")
    before = bd.DELAY(bd.clock(0.03), samples=2, name="before")
    held = bd.ZOH(bd.clock(0.05, offset=0.01), name="held")
    bd.connect(speed, place, before)
    bd.connect(place, late, held)
    bd.connect(push, force[0])
    for port, (block, gain) in enumerate(((late, 4.0), (before, 0.5), (held, 0.3)), 1):
        scaled = bd.GAIN(gain)
        bd.connect(block, scaled)
        bd.connect(scaled, force[port])
    bd.connect(force, speed)
    return bd


LATE = ["place", "speed", "late", "before", "held"]


@needs_compiler
@pytest.mark.parametrize(("version", "solver"), [(2, "RK4"), (3, "RK45")])
def test_delays_and_sampled_blocks_are_exported(tmp_path, version, solver):
    """Their samples are part of the unit's state; they were refused. Between ticks it is where our own run is."""
    sim, names = simulation(), LATE
    options = {"step": 0.005} if solver == "RK4" else {"rtol": 1e-9, "atol": 1e-11}
    unit = sim.to_fmu(delayed(sim), tmp_path / "late.fmu", ["push"], names, version=version, solver=solver, **options)
    assert validate_fmu(str(unit)) == []
    given = {"output_interval": 0.025, "start_values": {"push[0]": -0.1}}
    found = fmpy.simulate_fmu(str(unit), stop_time=1.0, **given)
    # clocks made up for all ticks since 0, and the steps went back to them
    later = fmpy.simulate_fmu(str(unit), start_time=3.0, stop_time=4.0, **given)
    bd = delayed(sim)
    bd["push"].value = -0.1
    out = sim.run(bd, T=1.0, dt=0.0025, watch=names, solver="DOP853", rtol=1e-11, atol=1e-12)
    between = [k for k, t in enumerate(found["time"]) if k % 2 and abs(t / 0.03 - round(t / 0.03)) > 0.01]
    at = np.searchsorted(out.t, found["time"][between] - 1e-6)
    assert len(between) > 10
    for name, column in zip(names, found.dtype.names[1:], strict=True):
        assert column.startswith(name)
        np.testing.assert_allclose(found[column][between], np.ravel(out.signal(name))[at], atol=1e-7)
        np.testing.assert_allclose(later[column][between], found[column][between], atol=1e-9)
        assert np.ptp(found[column]) > 0.3


@needs_compiler
@pytest.mark.parametrize("offset", [-1e-6, -0.25])
def test_a_clock_that_begins_before_0_ticks_at_0_as_in_a_run(tmp_path, offset):
    """It ticked first at its first tick behind 0: the unit was 0.02 beside the run."""
    sim = simulation()

    def chased():
        bd = sim.blockdiagram(name="chased")
        x, back = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-1.0)
        held = bd.DISCRETETF(bd.clock(0.1, offset=offset), [1.0], [1.0, -0.5], name="held")
        bd.connect(x, held)
        bd.connect(held, back)
        bd.connect(back, x)
        return bd

    unit = sim.to_fmu(chased(), tmp_path / "chased.fmu", outputs=["x"], solver="RK4", step=0.01)
    found = fmpy.simulate_fmu(str(unit), stop_time=0.5, output_interval=0.1)
    out = sim.run(chased(), T=0.5, solver="RK4", dt=0.01)
    assert found["x[0]"][-1] == pytest.approx(out.x[-1, 0], abs=1e-13)


@needs_compiler
@pytest.mark.parametrize("step", [0.01, 0.02, 0.05])
def test_delayed_signals_arrive_on_time_for_any_steps_of_the_other_tool(tmp_path, step):
    """Its steps add up to times that are a rounding beside the ticks and the arrivals."""
    sim = simulation()

    def chain():
        bd = sim.blockdiagram(name="chain")
        clock, time, total = bd.clock(0.05, offset=0.05), bd.INTEGRATOR(name="time"), bd.INTEGRATOR(name="total")
        bd.connect(bd.CONSTANT(1.0), time)
        for periods in (2, 3):
            bd.connect(time, late := bd.DELAY(clock, time=periods * 0.05, order=1, x0=9.0, name=f"late{periods}"))
            bd.connect(late, seen := bd.ZOH(clock, name=f"seen{periods}"))
            bd.connect(seen, bd.NULL())
        both = bd.SUM("++")
        bd.connect(bd["late2"], both[0])
        bd.connect(bd["late3"], both[1])
        bd.connect(both, total)
        return bd

    names = ["total", "seen2", "seen3"]
    unit = sim.to_fmu(chain(), tmp_path / "chain.fmu", outputs=names, solver="RK4", step=0.005)
    found = fmpy.simulate_fmu(str(unit), stop_time=0.98, output_interval=step)
    out = sim.run(chain(), T=1.0, solver="RK4", dt=0.005, watch=names)
    between = np.abs(found["time"] / 0.05 - np.round(found["time"] / 0.05)) > 0.01
    at = np.searchsorted(out.t, found["time"] - 1e-6)
    np.testing.assert_allclose(found["total[0]"], out.x[at, 1], atol=1e-12)
    for name in names[1:]:
        np.testing.assert_allclose(found[f"{name}[0]"][between], np.ravel(out.signal(name))[at][between], atol=1e-12)


@pytest.fixture
def late_unit(tmp_path):
    """Return a unit with delays as another tool has it, begun, and what its inputs and outputs are called by."""
    from fmpy.fmi2 import FMU2Slave

    unit = simulation().to_fmu(delayed(simulation()), tmp_path / "late.fmu", ["push"], LATE, solver="RK4", step=0.005)
    told = fmpy.read_model_description(str(unit))
    slave = FMU2Slave(
        guid=told.guid, unzipDirectory=fmpy.extract(str(unit), str(tmp_path / "out")),
        modelIdentifier=told.coSimulation.modelIdentifier, instanceName="one",
    )  # fmt: skip
    slave.instantiate()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    yield slave, *([v.valueReference for v in told.modelVariables if v.causality == of] for of in ("input", "output"))
    slave.terminate()
    slave.freeInstance()


@needs_compiler
def test_a_unit_with_delays_goes_back_to_where_it_stood(late_unit):
    """What is on its way through the delays goes along with the state."""
    slave, _, asked = late_unit
    slave.doStep(0.0, 0.33)
    kept = slave.getFMUstate()
    slave.doStep(0.33, 0.4)
    first = slave.getReal(asked)
    slave.setFMUstate(kept)
    slave.doStep(0.33, 0.4)
    assert slave.getReal(asked) == first
    slave.freeFMUstate(kept)


@needs_compiler
def test_a_unit_steps_as_a_stepper_does(late_unit):
    """What is due where a step ends is done by the inputs of the next one; outputs are those before, behind a jump."""
    slave, given, asked = late_unit
    stepper = simulation().stepper(delayed(simulation()), ["push"], LATE, substeps=2)
    for k, push in enumerate(np.random.default_rng(5).normal(size=40)):
        slave.setReal(given, [push])
        slave.doStep(k * 0.01, 0.01)
        np.testing.assert_allclose(slave.getReal(asked), stepper.step([push], 0.01), rtol=0, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize(("version", "solver"), [pytest.param(2, "RK4", marks=pytest.mark.slow), (3, "RK45")])
def test_a_unit_keeps_loops_closed(tmp_path, version, solver):
    """They drifted open; a state that another tool sets, and that is open, is told."""
    mech, sim = cs.library.four_bar(), simulation()
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project([1.0, -1.8, -2.0])[0], name="plant")
    bd.connect(bd.CONSTANT([0.5], name="push"), plant.tau)
    options = {"solver": solver, "rtol": 1e-5, "atol": 1e-7}
    unit = sim.to_fmu(bd, tmp_path / "bar.fmu", ["push"], ["plant.q"], version=version, step=0.01, **options)
    found = fmpy.simulate_fmu(str(unit), stop_time=5.0, output_interval=0.05)
    q = np.transpose([found[f"plant.q[{k}]"] for k in range(3)])
    assert np.abs(mech.closure(q)).max() < 1e-8
    if solver == "RK4":
        np.testing.assert_allclose(q[-1], sim.run(bd, T=5.0, solver="RK4", dt=0.01).x[-1, :3], atol=1e-11)
        coarse = sim.to_fmu(bd, tmp_path / "coarse.fmu", ["push"], ["plant.q"], version=version, step=0.05, **options)
        found = fmpy.simulate_fmu(str(coarse), stop_time=5.0, output_interval=0.05)  # one step does not close it again
        q = [found[f"plant.q[{k}]"][-1] for k in range(3)]
        np.testing.assert_allclose(q, sim.run(bd, T=5.0, solver="RK4", dt=0.05).x[-1, :3], atol=1e-9)
    with pytest.raises(fmpy.fmi1.FMICallException, match="DoStep"):
        fmpy.simulate_fmu(str(unit), stop_time=1.0, start_values={"state plant.crank.q": 1.3})


@needs_compiler
@pytest.mark.parametrize("low", [-0.3, None])
def test_a_unit_of_a_state_with_limits(tmp_path, low):
    """It was refused; an infinite limit is written in C too."""
    sim = simulation()
    bd = sim.blockdiagram()
    push = bd.CONSTANT(0.0, name="push")
    full, total = bd.INTEGRATOR(x0=0.0, min=low, max=0.4, gain=1.5, name="full"), bd.INTEGRATOR(name="total")
    bd.connect(push, full)
    bd.connect(full, total)
    stepper = sim.stepper(bd, ["push"], ["full", "total"], substeps=10)
    unit = sim.to_fmu(bd, tmp_path / "full.fmu", ["push"], ["full", "total"], solver="RK4", step=0.01)
    found = fmpy.simulate_fmu(str(unit), start_values={"push[0]": 2.0}, stop_time=1.0, output_interval=0.1)
    y = [stepper.reset(), *(stepper.step([2.0], 0.1) for _ in range(10))]
    np.testing.assert_allclose(np.transpose([found["full[0]"], found["total[0]"]]), y, rtol=0, atol=1e-12)
    assert found["full[0]"][-1] == 0.4


@needs_compiler
def test_a_unit_of_a_body_that_tumbles(tmp_path):
    """It was refused, as the plant "locates events"; rotation vectors stay short, as those of a stepper."""
    sim = simulation()
    bd = sim.blockdiagram()
    mech = cs.Mechanism([cs.Link("body", None, cs.Free(), None, 1.0, (0, 0, 0), (0.1, 0.2, 0.3))])
    plant = bd.HYBRIDDYNAMICS(mech, qd0=[1.0, 0, 0, 0.1, 6.0, 0.1], name="plant")
    bd.connect(bd.CONSTANT(np.zeros(6), name="push"), plant.tau)
    stepper = sim.stepper(bd, ["push"], ["plant.q"], substeps=5)
    unit = sim.to_fmu(bd, tmp_path / "body.fmu", ["push"], ["plant.q"], solver="RK4", step=0.01)
    found = fmpy.simulate_fmu(str(unit), stop_time=3.0, output_interval=0.05)
    q = np.transpose([found[f"plant.q[{k}]"] for k in range(6)])
    want = [stepper.reset(), *(stepper.step(np.zeros(6), 0.05) for _ in range(60))]
    assert np.linalg.norm(np.diff(q[:, 3:], axis=0), axis=1).max() > 5.0  # it gave way to the shorter one
    np.testing.assert_allclose(q, want, rtol=0, atol=1e-9)


def test_a_name_that_is_no_unit_is_refused(tmp_path):
    sim = simulation()
    with pytest.raises(cs.InvalidValue, match=r"ends in \.fmu"):
        sim.to_fmu(cart(sim), tmp_path / "it.zip")
