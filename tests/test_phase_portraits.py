"""Phase portraits: points of rest against closed forms, runs against those of `sim.run`, and what is told."""

import math

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, ShapeError, UnknownName


def simulation():
    return cs.Simulation(engine="interpreted", live=False, progress=False)


def pendulum(sim, **options):
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(cs.library.pendulum(1, **options).with_drive(actuated=[]), q0=[-1.5], name="plant")
    return bd


def plane(sim, force):
    """Return ẍ = f(x, ẋ)."""
    bd = sim.blockdiagram()
    x, v, rate = bd.INTEGRATOR(1.0, name="x"), bd.INTEGRATOR(0.0, name="v"), bd.FUNCTION(force, nin=2, name="force")
    bd.connect(x, rate[0])
    bd.connect(v, rate[1], x)
    bd.connect(rate, v)
    return bd


def rests(figure):
    """Return the points of rest in a figure by their kind."""
    lines = [line for line in figure.axes[0].lines if str(line.get_label()).startswith("rests, ")]
    return {line.get_label().removeprefix("rests, "): sorted(map(tuple, line.get_xydata())) for line in lines}


@pytest.mark.parametrize(("damping", "kind"), [(0.3, "stable"), (0.0, "centre")])
def test_a_pendulum_rests_where_it_hangs_and_where_it_stands(damping, kind):
    sim = simulation()
    figure = sim.phase_portrait(pendulum(sim, damping=damping), xlim=(-7.0, 5.0), ylim=(-10.0, 11.0))
    found = rests(figure)
    assert set(found) == {kind, "saddle"}
    np.testing.assert_allclose(found[kind], [(-0.5 * math.pi, 0.0), (1.5 * math.pi, 0.0)], atol=1e-9)
    np.testing.assert_allclose(found["saddle"], [(-1.5 * math.pi, 0.0), (0.5 * math.pi, 0.0)], atol=1e-9)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("plant.joint1.q [rad]", "plant.joint1.qd [rad/s]")
    assert axes.get_xlim() == (-7.0, 5.0) and axes.get_ylim() == (-10.0, 11.0)


def test_runs_are_drawn_from_their_starts():
    sim = simulation()
    bd = plane(sim, lambda x, v: (1.0 - x**2) * v - x)
    figure = sim.phase_portrait(bd, xlim=(-3, 3), ylim=(-4, 4), starts=[(0.1, 0.0), (2.0, 3.0)], T=3.0, max_step=0.05)
    assert set(rests(figure)) == {"unstable"}
    drawn = [line.get_xydata() for line in figure.axes[0].lines if len(line.get_xydata()) > 1]
    for line, start in zip(drawn, [(0.1, 0.0), (2.0, 3.0)], strict=True):
        np.testing.assert_array_equal(line, sim.run(bd, T=3.0, start=start, max_step=0.05).x)


def test_other_states_stand_still_in_the_field():
    """A forced slice of a plane: ẏ = -y + z with z held at 2 rests at y = 2 only where all states do."""
    sim = simulation()
    bd = sim.blockdiagram()
    x, y, z = (bd.INTEGRATOR(0.0, name=name) for name in "xyz")
    for state, target in ((x, None), (y, z)):
        error = bd.SUM("+-")
        bd.connect(target if target is not None else bd.CONSTANT(1.0), error[0])
        bd.connect(state, error[1])
        bd.connect(error, state)
    bd.connect(bd.CONSTANT(0.0), z)
    figure = sim.phase_portrait(bd, "x:x_0", "y:x_0", xlim=(0, 3), ylim=(0, 3), start={"z": 2.0})
    np.testing.assert_allclose(rests(figure)["neutral"], [(1.0, 2.0)])  # z stays wherever it is


def test_blocks_with_modes_are_in_those_in_which_a_run_begins():
    """ẍ = −x + sign x, by a RELAY, rests at ±1, on either side in the mode of that side."""
    sim = simulation()
    bd = sim.blockdiagram()
    x, v, relay, force = bd.INTEGRATOR(0.5, name="x"), bd.INTEGRATOR(name="v"), bd.RELAY(0, 0, 1, -1), bd.SUM("+-")
    bd.connect(x, relay, force[1])
    bd.connect(relay, force[0])
    bd.connect(force, v)
    bd.connect(v, x)
    found = rests(sim.phase_portrait(bd, xlim=(-2.1, 2.2), ylim=(-1.1, 1.2)))
    assert set(found) == {"centre"}
    np.testing.assert_allclose(found["centre"], [(-1.0, 0.0), (1.0, 0.0)], atol=1e-8)


@pytest.mark.parametrize("force", [lambda x, v: -(x**3) - v, lambda x, v: x**2 - v])
def test_a_point_where_slopes_vanish_is_one_of_which_they_do_not_tell(force):
    found = rests(simulation().phase_portrait(plane(simulation(), force), xlim=(-3, 3), ylim=(-3, 3)))
    assert list(found) == ["neutral"]
    np.testing.assert_allclose(found["neutral"], [(0.0, 0.0)], atol=1e-5)


def test_the_field_ends_at_limits_of_states(caplog):
    sim = simulation()
    bd = sim.blockdiagram()
    x, v = bd.INTEGRATOR(0.0, min=-1.0, max=1.5, name="x"), bd.INTEGRATOR(0.0, name="v")
    force = bd.FUNCTION(lambda x, v: 2.0 - x - v, nin=2)
    bd.connect(x, force[0])
    bd.connect(v, force[1], x)
    bd.connect(force, v)
    assert not rests(sim.phase_portrait(bd, xlim=(-3, 3), ylim=(-3, 3)))  # beyond the limit (2, 0) would be one
    assert "parts of the plane are left empty: state 'x:x_0' goes to its limit, 1.5, not beyond it" in caplog.text


def test_where_there_is_no_rate_the_field_is_empty(caplog):
    def force(x, v):
        if x < 0.0:
            raise ValueError("left of zero")
        return -x - v

    sim = simulation()
    figure = sim.phase_portrait(plane(sim, force), xlim=(-1, 1), ylim=(-1, 1))
    assert "parts of the plane are left empty" in caplog.text and "left of zero" in caplog.text
    assert len(figure.axes) == 1
    with pytest.raises(CstormError, match="left of zero"):
        sim.phase_portrait(plane(sim, force), xlim=(-2, -1), ylim=(-1, 1))


@pytest.mark.parametrize(
    ("kind", "told", "options"),
    [
        (InvalidValue, "xlim: expected the lesser number first", {"xlim": (1, -1)}),
        (ShapeError, "ylim: expected shape", {"ylim": 3.0}),
        (UnknownName, "phase_portrait: x: state 'w'", {"x": "w"}),
        (InvalidValue, "x and y are both x:x_0", {"x": "x", "y": "x:x_0"}),
        (InvalidType, "starts: expected pairs", {"starts": 3}),
        (ShapeError, "starts: expected shape", {"starts": [(1, 2, 3)]}),
        (InvalidValue, "T: expected a positive number", {"T": 0.0}),
        (UnknownName, "option 'start_at' does not exist", {"start_at": 3.0}),
    ],
)
def test_slips_are_told(kind, told, options):
    sim = simulation()
    with pytest.raises(kind, match=told):
        sim.phase_portrait(plane(sim, lambda x, v: -x), **{"xlim": (-1, 1), "ylim": (-1, 1), **options})


def test_planes_that_cannot_be_drawn_are_named():
    sim = simulation()
    lag = sim.blockdiagram()
    lag.connect(x := lag.INTEGRATOR(1.0), gain := lag.GAIN(-1.0))
    lag.connect(gain, x)
    with pytest.raises(InvalidValue, match="the diagram has 1"):
        sim.phase_portrait(lag, xlim=(-1, 1), ylim=(-1, 1))
    two = sim.blockdiagram()
    two.HYBRIDDYNAMICS(cs.library.planar_2r().with_drive(actuated=[]), name="arm")
    two.compile(report=False)
    names = list(two.statenames)
    with pytest.raises(InvalidValue, match="name a position and its rate"):
        sim.phase_portrait(two, names[0], names[1], xlim=(-1, 1), ylim=(-1, 1))
    with pytest.raises(InvalidValue, match="x: name one state of arm"):
        sim.phase_portrait(two, "arm", xlim=(-1, 1), ylim=(-1, 1))
    closed = sim.blockdiagram()
    closed.HYBRIDDYNAMICS(cs.library.four_bar().with_drive(actuated=[]), name="bars")
    with pytest.raises(InvalidValue, match="'bars' is a mechanism with loops"):
        sim.phase_portrait(closed, xlim=(-1, 1), ylim=(-1, 1))
    held = sim.blockdiagram()
    x, v, hold = held.INTEGRATOR(1.0), held.INTEGRATOR(0.0), held.ZOH(held.clock(10, "Hz"), name="hold")
    held.connect(v, x)
    held.connect(x, hold)
    held.connect(hold, v)
    with pytest.raises(DiagramError, match="'hold' is sampled"):
        sim.phase_portrait(held, xlim=(-1, 1), ylim=(-1, 1))


def test_each_run_begins_with_the_numbers_of_the_diagram():
    """The second one began with what an event of the first had set, and the diagram was left with that."""
    sim = simulation()
    bd = sim.blockdiagram()
    x, v, push = bd.INTEGRATOR(0.0, name="x"), bd.INTEGRATOR(0.0, name="v"), bd.CONSTANT(-1.0, name="push")
    bd.connect(push, v)
    bd.connect(v, x)
    bd.connect(x, bd.EVENT("v", lambda block, states: setattr(push, "value", 2.0), name="ground"))
    plane = {"xlim": (-2, 2), "ylim": (-2, 2), "T": 2.5}
    starts = [(1.0, 0.0), (0.5, 0.5), (1.0, 0.0)]
    ways = [sim.phase_portrait(bd, starts=some, **plane).axes[0].lines for some in (starts, starts[1:2])]
    np.testing.assert_array_equal(ways[0][0].get_xydata(), ways[0][4].get_xydata())
    np.testing.assert_array_equal(ways[0][2].get_xydata(), ways[1][0].get_xydata())
    assert push.value == -1.0


def test_names_with_dollars_are_no_mathematics():
    """A pair of dollars in the name of a joint ended each picture with an error of matplotlib's parser."""
    sim = simulation()
    bd = sim.blockdiagram()
    link = cs.Link("rod", None, cs.Revolute((0, 0, 1), name=r"$\a{$"), mass=1.0, com=(1.0, 0, 0), inertia=np.eye(3))
    plant = bd.HYBRIDDYNAMICS(cs.Mechanism([link]), q0=[0.3], name="plant")
    bd.connect(bd.CONSTANT(0.0, name="push"), plant.tau)
    figure = sim.phase_portrait(bd, xlim=(-1.0, 1.0), ylim=(-1.0, 1.0))
    figure.canvas.draw()
    assert figure.axes[0].get_xlabel() == r"plant.\$\a{\$.q [rad]"
    model = sim.linearize(bd, inputs=["push"], outputs=["plant.q"])
    for drawn in (model.step().plot(), model.plot("bode"), model.plot("nyquist")):
        drawn.canvas.draw()
