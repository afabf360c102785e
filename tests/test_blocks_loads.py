"""WRENCH and PUSH: loads on a link, moved into its frame, and runs that land on their edges."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from bdsim.run_sim import BDSimState
from simulations import ours, plain

import cstormpy as cs
from cstormpy import lie
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.blocks.loads import Push, Wrench
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.mechanism import library

MECH = library.acrobot()
ARM = library.puma560()
LOAD = np.array([0.3, -0.2, 0.5, 4.0, -1.0, 2.0])
POINT = np.array([0.2, -0.1, 0.4])


def run(sim, bd, T):
    with contextlib.redirect_stdout(io.StringIO()):
        bd.compile()
        if isinstance(sim, cs.Simulation):
            return sim.run(bd, T=T, rtol=1e-9, on_error="raise")
        return sim.run(bd, T=T, solver_args={"rtol": 1e-9, "atol": 1e-11})


def test_a_wrench_in_the_axes_of_the_link_is_that_of_lie():
    (rows,) = Wrench(ARM, 3, point=POINT).test_output(LOAD)
    assert rows[3] == pytest.approx(lie.transform_wrench(lie.make_pose(np.eye(3), POINT), LOAD), abs=1e-14)
    assert rows.shape == (len(ARM.links), 6) and not np.delete(rows, 3, axis=0).any()


def test_a_wrench_in_the_axes_of_the_base_is_that_of_lie():
    q = np.linspace(-1.0, 1.5, ARM.n)
    (rows,) = Wrench(ARM, "link4" if "link4" in [k.name for k in ARM.links] else 3, "base", POINT).test_output(LOAD, q)
    k = int(np.flatnonzero(rows.any(axis=1))[0])
    rotation = ARM.forward_kinematics(q)[k, :3, :3].T
    assert rows[k] == pytest.approx(lie.transform_wrench(lie.make_pose(rotation, POINT), LOAD), abs=1e-13)


def test_its_power_is_that_of_the_force_on_the_moving_point():
    """Virtual work: the load's power on the link equals force times velocity of the point, seen in the base."""
    rng = np.random.default_rng(7)
    q, qd, force = rng.normal(size=6), rng.normal(size=6), rng.normal(size=3)
    (rows,) = Wrench(ARM, -1, "base", POINT, load="force").test_output(force, q)
    power = rows[-1] @ ARM.jacobian(q, len(ARM.links) - 1) @ qd

    def point(s):
        return (ARM.forward_kinematics(q + s * qd)[-1] @ np.append(POINT, 1.0))[:3]

    h = 1e-6
    assert power == pytest.approx(force @ (point(h) - point(-h)) / (2 * h), abs=1e-7)


def test_ports_follow_from_the_form():
    ports = {
        ("wrench", "link"): (["load"], (6,)),
        ("force", "link"): (["force"], (3,)),
        ("force and moment", "base"): (["force", "moment", "q"], (3, 3, 2)),
    }
    for (load, frame), (names, widths) in ports.items():
        block = Wrench(MECH, load=load, frame=frame)
        assert (block._inport_names, block.inwidths, block.outwidths) == (names, widths, ((2, 6),))
    assert Push(MECH).nin == 0 and Push(MECH, frame="base").inwidths == (2,)
    force, moment = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
    (rows,) = Wrench(MECH, "forearm", load="force and moment").test_output(force, moment)
    assert rows[1].tolist() == [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]


def test_wrong_signals_of_a_wrench():
    with pytest.raises(ShapeError, match=r"wrench input port 0 'force': expected 3 numbers, got 6"):
        Wrench(MECH, load="force").test_output(LOAD)
    with pytest.raises(NonFinite, match=r"wrench input port 1 'q': the signal of 'elbow' is not finite"):
        Wrench(MECH, frame="base").test_output(LOAD, [0.0, np.inf])


def test_pulses_of_a_push():
    push = Push(MECH, "forearm", [(1.0, 2.0, [0, 3, 0]), (1.5, 2.5, [0, 0, 7, 0, 1, 0])], point=[2.0, 0, 0])
    for t, moment, force in ((0.9, 0, 0), (1.0, 6, 3), (1.5, 15, 4), (2.0, 9, 1), (2.5, 0, 0)):
        assert push.test_output(t=t)[0].tolist() == [[0] * 6, [0, 0, moment, 0, force, 0]]


def test_a_smooth_pulse_has_half_the_area_and_no_corner():
    push = Push(MECH, -1, [(1.0, 3.0, [0, 4, 0])], shape="smooth")
    t = np.linspace(0.0, 4.0, 4001)
    force = np.array([push.test_output(t=float(s))[0][1, 4] for s in t])
    assert force.max() == pytest.approx(4.0)
    assert np.trapezoid(force, t) == pytest.approx(4.0)
    assert np.abs(np.diff(force, 2)).max() <= 4.0 * (np.pi / 2.0) ** 2 * 2 * 1e-6 * 1.01  # the largest curvature


def test_push_in_the_base_is_the_wrench_in_the_base():
    q = np.array([0.4, -0.8])
    (pushed,) = Push(MECH, "forearm", [(0.0, 1.0, LOAD)], frame="base", point=POINT).test_output(q, t=0.5)
    assert pushed.tolist() == Wrench(MECH, "forearm", "base", POINT).test_output(LOAD, q)[0].tolist()


def test_held_by_hand_until_released_or_the_next_run():
    push = Push(MECH, -1, [(0.0, 1.0, [0, 1, 0])])
    push.push([0, 5, 0])
    assert push.test_output(t=0.5)[0][1, 4] == 6.0 and push.test_output(t=2.0)[0][1, 4] == 5.0
    other = Push(MECH, -1)
    other.recall(push.memory())
    assert other.test_output(t=2.0)[0][1, 4] == 5.0
    push.release()
    assert push.test_output(t=2.0)[0][1, 4] == 0.0
    push.push([0, 5, 0])
    push.start(BDSimState())
    assert push.test_output(t=2.0)[0][1, 4] == 0.0
    with pytest.raises(ShapeError, match="force"):
        push.push([1, 2])


def test_edges_are_declared():
    simstate = BDSimState()
    Push(MECH, -1, [(1.0, 2.0, [0, 1, 0]), (2.0, 3.5, [0, 2, 0])]).start(simstate)
    assert sorted(when for when, _, _ in simstate.eventq._heap) == [1.0, 2.0, 3.5]


@pytest.mark.slow
@pytest.mark.parametrize("make", [plain, ours])
def test_pushes_add_up_in_a_diagram(make):
    """A force and its reaction cancel, so that the run is that without any; the third push is what remains."""
    ends = []
    for others in (0.0, 5.0):
        sim, bd = make()
        plant = HybridDynamics(MECH, q0=[-1.0, 0.3], wrench=True, bd=bd)
        bd.connect(bd.CONSTANT(0.0), plant[0])
        one = Push(MECH, -1, [(0.2, 0.6, [0, 4, 0])], frame="base", bd=bd)
        two = Push(MECH, -1, [(0.2, 0.6, [0, others, 0])], bd=bd)
        three = Wrench(MECH, -1, load="force", bd=bd)
        bd.connect(plant[0], one[0])
        scale = bd.FUNCTION(lambda s: np.array([0.0, s, 0.0]))
        bd.connect(bd.PIECEWISE((0, 0), (0.2, -others), (0.6, 0)), scale)
        bd.connect(scale, three)
        total = bd.SUM("+++")
        for port, source in enumerate((one, two, three)):
            bd.connect(source, total[port])
        bd.connect(total, plant[1])
        out = run(sim, bd, T=1.0)
        assert np.abs(out.t - 0.6).min() <= 1e-9
        ends.append(out.x[-1])
    assert ends[0] == pytest.approx(ends[1], abs=1e-6)


def test_an_impulse_moves_what_it_should():
    """A short push on a body that is free to turn: its momentum is the impulse's moment about the axis."""
    mech = library.pendulum(1).with_gravity((0, 0, 0))
    sim, bd = ours()
    plant = HybridDynamics(mech, wrench=True, bd=bd)
    bd.connect(bd.CONSTANT(0.0), plant[0])
    push = Push(mech, 0, [(0.1, 0.1 + 1e-3, [0.0, 50.0, 0.0])], point=[0.5, 0, 0], bd=bd)
    bd.connect(push, plant[1])
    out = run(sim, bd, T=0.102)
    inertia = mech.mass_matrix([0.0])[0, 0]
    damping = mech.joint(mech.names[0]).damping
    assert out.x[-1, 1] == pytest.approx(50.0 * 1e-3 * 0.5 / inertia, rel=1e-5 + 0.002 * damping / inertia)


@pytest.mark.parametrize(
    ("cls", "arguments", "error", "says"),
    [
        (Wrench, {"mech": "acrobat"}, UnknownName, "acrobot"),
        (Wrench, {"link": "hand"}, UnknownName, "hand"),
        (Wrench, {"link": 2}, InvalidValue, "link"),
        (Wrench, {"link": 0.5}, InvalidType, "link"),
        (Wrench, {"frame": "world"}, InvalidValue, "frame"),
        (Wrench, {"point": [0, 0]}, ShapeError, "point"),
        (Wrench, {"load": "moment"}, InvalidValue, "load"),
        (Wrench, {"links": 1}, UnknownName, "did you mean 'link'"),
        (Push, {"schedule": 3}, InvalidType, "schedule"),
        (Push, {"schedule": [(1.0, 2.0)]}, InvalidType, r"schedule\[0\]"),
        (Push, {"schedule": [(2.0, 1.0, [0, 0, 1])]}, InvalidValue, "must end after"),
        (Push, {"schedule": [("a", 1.0, [0, 0, 1])]}, InvalidType, "begin"),
        (Push, {"schedule": [(0.0, 1.0, [0, 1])]}, ShapeError, "wrench"),
        (Push, {"schedule": [(0.0, 1.0, [0, np.nan, 0])]}, NonFinite, "wrench"),
        (Push, {"shape": "round"}, InvalidValue, "shape"),
        (Push, {"frame": None}, InvalidValue, "frame"),
    ],
)
def test_wrong_arguments(cls, arguments, error, says):
    with pytest.raises(error, match=says) as caught:
        cls(**{"mech": MECH, **arguments})
    assert isinstance(caught.value, CstormError)


@pytest.mark.parametrize("port", ["wrench", "base"])
def test_a_port_of_a_plant_that_nothing_is_wired_to_serves_as_an_input(port):
    """It got one zero, which the plant refused: "expected shape (1, 6) or 6 numbers, got (); change the signal"."""
    body = cs.Mechanism([cs.Link("body", joint=cs.Free(name="trunk"), mass=2.0, inertia=(0.1, 0.2, 0.3))], actuated=[])
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(body.with_gravity((0, 0, -9.81)), name="plant", **{port: True})
    model = sim.linearize(bd, inputs=[f"plant.{port}"], outputs=["plant.q"])
    assert model.B.shape == (12, {"wrench": 6, "base": 12}[port])
    if port == "wrench":
        np.testing.assert_allclose(
            model.B[6:], np.diag(1 / np.array([2.0, 2.0, 2.0, 0.1, 0.2, 0.3]))[:, [3, 4, 5, 0, 1, 2]]
        )
        stepper = sim.stepper(bd, [f"plant.{port}"], ["plant.qd"])
        np.testing.assert_allclose(stepper.step([0, 0, 0, 0, 0, 2 * 9.81], 0.1), 0.0, atol=1e-12)
        np.testing.assert_allclose(stepper.step(np.zeros(6), 0.1)[2], -0.981, rtol=1e-12)


def test_a_port_that_was_not_asked_for_is_told_how_it_is_had():
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(MECH, name="plant")
    with pytest.raises(
        UnknownName, match=r"inputs: port .*'wrench' does not exist; .*; HYBRIDDYNAMICS\(..., wrench=True\)"
    ):
        sim.linearize(bd, inputs=["plant.wrench"])
