"""Subsystems: their clocks tick, their laws and bodies are located, and what they lack is said."""

from __future__ import annotations

import numpy as np
import pytest
from bdsim.components import FunctionBlock
from closeness import assert_close

import cstormpy as cs


@pytest.fixture
def sim():
    return cs.Simulation()


def sampled_loop(bd, wanted, clock):
    pid, sampled = bd.DISCRETEPID(clock, P=3.0, I=2.0, name="pid"), bd.ZOH(clock, name="sampled")
    plant = bd.LTI_SISO([1.0], [0.5, 1.0], name="plant")
    bd.connect(plant, sampled)
    bd.connect(wanted, pid.reference)
    bd.connect(sampled, pid.measured)
    bd.connect(pid, plant)
    return plant


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
@pytest.mark.parametrize("whose", ["inner", "outer", "another"])
def test_sampled_blocks_of_subsystems_tick(engine, whose):
    """Also with a clock of the diagram around them, or of one that runs by itself, which it goes on doing."""
    sim = cs.Simulation(graphics=False, engine=engine)
    bd, inner, other, core, flat = (sim.blockdiagram(name=name) for name in ("bd", "inner", "other", "core", "flat"))
    made = {"inner": core, "outer": bd, "another": other}[whose].clock(0.05, offset=0.01, name="beat")
    way_in, way_out = core.INPORT(1), core.OUTPORT(1)
    core.connect(sampled_loop(core, way_in, made), way_out)
    way_in, way_out, nested = inner.INPORT(1), inner.OUTPORT(1), inner.SUBSYSTEM(core, name="core")
    inner.connect(way_in, nested)
    inner.connect(nested, way_out)
    source = bd.WAVEFORM("square", freq=1.0)
    for name in ("left", "right"):
        loop = bd.SUBSYSTEM(inner, name=name)
        bd.connect(source, loop)
        bd.connect(loop, bd.NULL())
    assert bd["left/core/pid"].P == 3.0 and bd["left/core/pid"] is not bd["right/core/pid"]
    other_clock = made if whose == "another" else other.clock(0.05, offset=0.01)
    for alone, clock in ((flat, flat.clock(0.05, offset=0.01)), (other, other_clock)):
        sampled_loop(alone, alone.WAVEFORM("square", freq=1.0), clock)
    expected = sim.run(flat, T=2)
    for _ in range(2):
        found = sim.run(bd, T=2)
        assert_close(found.x, np.hstack([expected.x] * 2), 1e-12)
        assert_close(sim.run(other, T=2).x, expected.x, 1e-12)
    (name,) = [clock.name for clock in bd.clocklist if clock.blocklist]
    assert name == "beat" and len(found.beat.Xnames) == found.beat.X.shape[1] == 8
    assert found.beat.Xnames[0] == "left/core/pid:integral"
    poles = [np.sort(np.abs(sim.linearize(each, t=2.0, dt=0.05).poles)) for each in (flat, bd)]
    assert_close(poles[1], np.sort(np.tile(poles[0], 2)), 1e-9)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_ports_of_a_subsystem_have_names(engine):
    """bdsim compared their number with -1: no subsystem could be given any."""
    sim = cs.Simulation(engine=engine, graphics=False, progress=False, live=False)
    part, bd = sim.blockdiagram(), sim.blockdiagram()
    way_in, way_out, total = part.INPORT(2), part.OUTPORT(2), part.SUM("+-", name="total")
    part.connect(way_in[0:2], total[0:2])
    part.connect(total, way_out[0], half := part.GAIN(0.5))
    part.connect(half, way_out[1])
    law = bd.SUBSYSTEM(part, name="law", inames=["wanted", "measured"], onames=["error", "half"])
    x = bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(1.0), law.wanted)
    bd.connect(x, law.measured)
    bd.connect(law.error, x)
    bd.connect(law.half, bd.NULL())
    out = sim.run(bd, T=1.0, rtol=1e-9, watch=["law.half"])
    np.testing.assert_allclose(out.signal("law.half")[-1], 0.5 * np.exp(-1.0), rtol=1e-7)
    for names, says in (
        ({"inames": ["one"]}, "SUBSYSTEM: inames: expected 2 names, got 1"),
        ({"onames": ["a", "nin"]}, "SUBSYSTEM: onames: 'nin' is an attribute of the block; give another name"),
        ({"onames": ["a", "a"]}, "SUBSYSTEM: onames: a name is empty or occurs twice"),
    ):
        with pytest.raises(cs.CstormError, match=says):
            bd.SUBSYSTEM(part, **names)


def test_a_subsystem_has_both_ends(sim):
    bd, inner = sim.blockdiagram(), sim.blockdiagram(name="inner")
    with pytest.raises(cs.DiagramError, match=r"diagram 'inner' has no INPORT; .* goes to a NULL"):
        bd.SUBSYSTEM(inner)
    inner.connect(inner.INPORT(1), inner.NULL())
    with pytest.raises(cs.DiagramError, match=r"diagram 'inner' has no OUTPORT; .* has a CONSTANT"):
        bd.SUBSYSTEM(inner)
    inner.connect(inner.CONSTANT(1.0), inner.OUTPORT(1), inner.OUTPORT(1))
    with pytest.raises(cs.DiagramError, match=r"diagram 'inner' has 2 OUTPORTs; .* as many ports as it has signals$"):
        bd.SUBSYSTEM(inner)
    assert not bd.blocklist


def test_clocks_of_subsystems_that_share_a_name(sim):
    bd = sim.blockdiagram()
    for name, period in (("slow", 0.5), ("fast", 0.1)):
        inner = sim.blockdiagram()
        way_in, way_out, kept = inner.INPORT(1), inner.OUTPORT(1), inner.ZOH(inner.clock(period, name="own"))
        inner.connect(way_in, kept)
        inner.connect(kept, way_out)
        loop = bd.SUBSYSTEM(inner, name=name)
        bd.connect(bd.TIME(), loop)
        bd.connect(loop, bd.INTEGRATOR(name=f"of {name}"))
    out = sim.run(bd, T=1.0)
    assert [(clock.name, clock.T) for clock in bd.clocklist] == [("own", 0.5), ("fast/own", 0.1)]
    assert_close(out.x[-1], [0.25, 0.45], 1e-12)  # ∫ of ⌊t / T⌋ T over a second


def test_clocks_without_names_are_counted_through_all_subsystems(sim):
    """That of a subsystem was called "slow/clock.0", whose ticks in the result no attribute can name."""
    bd = sim.blockdiagram()
    outer = bd.ZOH(bd.clock(0.2), name="outer")
    bd.connect(bd.TIME(), outer)
    for name, period in (("slow", 0.5), ("fast", 0.1)):
        inner = sim.blockdiagram()
        way_in, way_out, kept = inner.INPORT(1), inner.OUTPORT(1), inner.ZOH(inner.clock(period), name="kept")
        inner.connect(way_in, kept)
        inner.connect(kept, way_out)
        loop = bd.SUBSYSTEM(inner, name=name)
        bd.connect(outer, loop)
        bd.connect(loop, bd.NULL())
    out = sim.run(bd, T=1.0)
    logs = [out.clock0, out.clock1, out.clock2]
    assert [log.Xnames for log in logs] == [["outer:X_0"], ["slow/kept:X_0"], ["fast/kept:X_0"]]
    assert [len(log.t) for log in logs] == [6, 3, 11]


def acrobot_and_law(sim, inside):
    """Return a diagram whose plant and controller stand in it, or each in a subsystem."""
    bd = sim.blockdiagram()
    body, head = (sim.blockdiagram(), sim.blockdiagram()) if inside else (bd, bd)
    plant = body.HYBRIDDYNAMICS("acrobot", q0=[-1.4, 0.1], name="plant")
    law = head.CONTROLLER("acrobot", ["energy", "pd"], name="law")
    if not inside:
        bd.connect(plant[0:2], law[0:2])
        bd.connect(law.tau, plant.tau)
        return bd
    body.connect(body.INPORT(1), plant.tau)
    body.connect(plant, body.OUTPORT(2))
    head.connect(head.INPORT(2), law[0:2])
    head.connect(law.tau, head.OUTPORT(1))
    outer, inner = bd.SUBSYSTEM(body, name="body"), bd.SUBSYSTEM(head, name="head")
    bd.connect(outer, inner)
    bd.connect(inner, outer)
    return bd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_law_in_a_subsystem_is_selected_at_its_time(engine):
    """The block looked for states in the subsystem, found none and located nothing: the compiled run went on with the
    law that it had, the next one began with the one that was selected."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    runs = []
    for inside, name in ((False, "law"), (True, "head/law")):
        bd = acrobot_and_law(sim, inside)
        for _ in range(2):
            runs.append(sim.run(bd, T=2.0, at={1.0: lambda bd=bd, name=name: bd[name].select("pd")}))
    for out in runs:
        assert [round(event[0], 9) for event in out.events] == [1.05]  # where the blend ends
        np.testing.assert_allclose(out.x[-1], runs[0].x[-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_free_body_in_a_subsystem_turns_on_beyond_a_turn(engine):
    """Its rotation vector was not re-centred there, and its rate had no end at a whole turn."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    mech = cs.Mechanism([cs.Link("body", joint=cs.Free(), mass=1.0, inertia=(1.0, 1.0, 1.0))], gravity=(0, 0, 0))
    part, bd = sim.blockdiagram(), sim.blockdiagram()
    plant = part.HYBRIDDYNAMICS(mech.with_drive(actuated=[]), qd0=[0, 0, 0, 0, 0, 3.0], name="plant")
    part.connect(part.INPORT(1), part.NULL())
    part.connect(plant.q, part.OUTPORT(1))
    bd.connect(bd.CONSTANT(0.0), inner := bd.SUBSYSTEM(part, name="part"))
    bd.connect(inner, bd.NULL())
    out = sim.run(bd, T=5.0)
    assert out.status == "finished" and len(out.events) == 2  # 15 rad are more than two turns
    assert out.x[-1, 5] == pytest.approx(15.0 - 4 * np.pi, abs=1e-6)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_scope_of_a_subsystem_calls_coordinates_by_their_joints(engine):
    """It said "robot[0][0]" without a unit; what a view shows could not be pushed."""
    sim = cs.Simulation(engine=engine, graphics=False, progress=False, live=False)
    part, bd = sim.blockdiagram(), sim.blockdiagram()
    plant, way_out, way_in = part.HYBRIDDYNAMICS("acrobot", name="plant"), part.OUTPORT(3), part.INPORT(1)
    doubled = part.GAIN(2.0, name="doubled")
    part.connect(way_in, plant.tau)
    part.connect(plant.q, doubled, way_out[0])
    part.connect(plant.qd, way_out[1])
    part.connect(doubled, way_out[2])
    robot = bd.SUBSYSTEM(part, name="robot")
    bd.connect(bd.CONSTANT(0.3), robot)
    angles, rates, others, view = (*(bd.LIVESCOPE(name=name) for name in "qdo"), bd.MECHANISMVIEW("acrobot"))
    bd.connect(robot[0], angles, view)
    bd.connect(robot[1], rates)
    bd.connect(robot[2], others)
    out = sim.run(bd, T=0.5, watch=["robot/plant"])
    q, qd, doubled, seen = out.panes
    assert (q.labels, q.unit) == (["robot/plant.shoulder.q", "robot/plant.elbow.q"], "rad")
    assert (qd.labels[1], qd.unit) == ("robot/plant.elbow.qd", "rad/s")
    assert doubled.labels == ["robot[2][0]", "robot[2][1]"] and doubled.unit == ""
    for pane, name in ((q, "robot/plant.q"), (qd, "robot/plant.qd"), (seen, "robot/plant.q")):
        np.testing.assert_array_equal(pane.y, out.signal(name))


def test_a_diagram_that_did_not_compile_at_first_has_its_names(sim):
    """bdsim had put the blocks of the subsystem in its place, whose name was gone, and forgotten those of all."""

    class Strict(FunctionBlock):
        nin, nout = 1, 1
        limit = -1.0

        def check(self):
            super().check()
            assert self.limit > 0.0, "limit must be positive"

        def output(self, t, u, x):
            return [min(u[0], self.limit)]

    inner, bd = sim.blockdiagram("inner"), sim.blockdiagram()
    enters, double, leaves = inner.INPORT(1), inner.GAIN(2.0, name="double"), inner.OUTPORT(1)
    inner.connect(enters, double)
    inner.connect(double, leaves)
    strict, part = Strict(bd=bd, name="strict"), bd.SUBSYSTEM(inner, name="part")
    bd.connect(bd.TIME(), strict)
    bd.connect(strict, part)
    bd.connect(part, bd.NULL())
    with pytest.raises(cs.BlockError, match=r"block 'strict'.*limit must be positive"):
        sim.run(bd, T=1.0)
    bd["strict"].limit = 0.5
    out = sim.run(bd, T=1.0, watch=["part", "part/double"])
    assert out.ynames == ["part[0]", "part/double[0]"] and out.y[-1].tolist() == [1.0, 1.0]
