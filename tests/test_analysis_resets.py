"""Derivatives of runs through events at which handlers of the user write states and set numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bdsim.blocks.continuous import Integrator
from bdsim.blocks.sinks import Event, Stop
from test_analysis_gradient import by_differences

import cstormpy as cs
from cstormpy.errors import DiagramError

FINE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.fixture(params=["interpreted", "compiled"])
def sim(request):
    return cs.Simulation(engine=request.param)


def ball(sim, impact=None, restitution=0.7):
    """Return a ball that falls on the ground, and how often it did; by a handler, or by one that turns it round."""
    bd, bounces = sim.blockdiagram(), []
    height, speed = bd.INTEGRATOR(x0=1.0, name="height"), bd.INTEGRATOR(x0=0.0, name="speed")
    left = bd.CONSTANT(restitution, name="left")
    bd.connect(bd.CONSTANT(-9.81, name="gravity"), speed)
    bd.connect(speed, height)
    bd.connect(left, bd.NULL())

    def bounce(block, states):
        bounces.append(block.bd)
        block.count = getattr(block, "count", 0) + 1
        states[speed][:] *= -left.value

    handler = bounce if impact is None else lambda block, states: impact(height, speed, states)
    bd.connect(height, bd.EVENT("v", handler, name="ground"))
    return bd, bounces


def height_of_ball(T, gravity, restitution, height, speed):
    """Return how high a ball is, from one bounce to the next."""
    while True:
        falls = (speed + math.sqrt(speed**2 - 2.0 * gravity * height)) / -gravity
        if falls >= T:
            return height + speed * T + 0.5 * gravity * T**2
        T, height, speed = T - falls, 0.0, -restitution * (speed + gravity * falls)


def slopes_of(function, *values, h=1e-6):
    """Return the central differences of a function to each of its numbers."""
    values = np.array(values)
    return [(function(*values + d) - function(*values - d)) / (2.0 * h) for d in h * np.eye(len(values))]


@pytest.mark.parametrize("T", [0.4, 0.6, 1.2])
def test_a_ball_follows_what_it_begins_with_and_bounces_by(sim, T):
    bd, bounces = ball(sim)
    found = sim.gradient(bd, "height[0]", ["gravity.value", "left.value", "height", "speed"], T=T, **FINE)
    wanted = slopes_of(lambda *values: height_of_ball(T, *values), -9.81, 0.7, 1.0, 0.0)
    assert found.gradient == pytest.approx(wanted, abs=1e-8)
    assert found.cost == pytest.approx(height_of_ball(T, -9.81, 0.7, 1.0, 0.0), abs=1e-9)
    assert found.notes == [] and [name for _, name in found.events] == ["ground"] * (0, 1, 2)[int(T / 0.5)]
    assert bounces == [] and not hasattr(bd["ground"], "count"), "handlers are tried, and nothing of it remains"


def test_handlers_that_write_no_states_are_passed(sim):
    bd, _ = ball(sim, lambda height, speed, states: None)
    found = sim.gradient(bd, "height[0]", ["gravity.value"], T=0.6, dt=0.01, solver="RK4")
    assert found.events[0] == (pytest.approx(math.sqrt(2 / 9.81), abs=1e-12), "ground")
    assert found.gradient[0] == pytest.approx(0.18, abs=1e-12)


def test_states_that_are_set_where_they_are_already_follow_the_parameters_no_more(sim):
    bd, _ = ball(sim, lambda height, speed, states: states[extra].__setitem__(0, 0.5))
    extra = bd.INTEGRATOR(0.5, name="extra")
    bd.connect(bd.CONSTANT(0.0, name="flow"), extra)
    found = sim.gradient(bd, "extra", ["extra", "flow.value"], T=0.6, **FINE)
    assert found.cost == 0.5 and found.gradient == pytest.approx([0.0, 0.6 - math.sqrt(2 / 9.81)], abs=1e-9)


def test_signals_that_a_handler_looks_at_follow_the_parameters_too(sim):
    """They were taken to stay where they are, in silence."""
    bd, _ = ball(sim, lambda height, speed, states: states[speed].__setitem__(0, shown.inport_values[0]))
    thrown, shown = bd.SUM("+-"), bd.NULL()
    share = bd.GAIN(0.7, name="share")
    bd.connect(bd["speed"], share)
    bd.connect(share, thrown[1])
    bd.connect(bd.TIME(), thrown[0])
    bd.connect(thrown, shown)

    def height(gravity, share, above):
        falls = math.sqrt(-2.0 * above / gravity)
        rest = 0.7 - falls
        return (falls - share * gravity * falls) * rest + 0.5 * gravity * rest**2

    def by_time(t, x, states, simstate):
        states[bd["speed"]][0] = t - share.inport_values[0] * share.K

    for handler in (None, by_time):
        bd["ground"].event_handler = handler or bd["ground"].event_handler
        found = sim.gradient(bd, "height[0]", ["gravity.value", "share.K", "height"], T=0.7, **FINE)
        assert found.gradient == pytest.approx(slopes_of(height, -9.81, 0.7, 1.0), abs=1e-8) and found.notes == []


def test_states_that_are_written_beyond_their_bounds_follow_these(sim):
    """They were refused: how they follow the states before was said not to be known."""
    bd, _ = ball(sim, lambda height, speed, states: states[bounded].__iadd__(2.0))
    bounded, total = bd.INTEGRATOR(0.0, max=1.0, name="bounded"), bd.INTEGRATOR(0.0, name="total")
    bd.connect(bd.CONSTANT(0.2, name="rate"), bounded)
    bd.connect(bounded, total)

    def area(gravity, rate, most):
        falls = math.sqrt(-2.0 / gravity)
        return 0.5 * rate * falls**2 + most * (0.6 - falls)

    found = sim.gradient(bd, "total", ["gravity.value", "rate.value", "bounded.max"], T=0.6, **FINE)
    assert found.gradient == pytest.approx(slopes_of(area, -9.81, 0.2, 1.0), abs=1e-8) and found.notes == []


def test_handlers_that_fail_beside_the_event_are_refused_by_name(sim):
    def only_there(height, speed, states):
        if abs(states[speed][0] + math.sqrt(2 * 9.81)) > 1e-8:
            raise ValueError("nobody falls so fast")
        states[speed][0] *= -1.0

    with pytest.raises(DiagramError, match=r"states that the event of ground at t = 0\.4515.*not known: .* no value"):
        sim.gradient(ball(sim, only_there)[0], "height[0]", ["gravity.value"], T=0.6, **FINE)


def catapult(sim, kind):
    """Return a ball that the ground throws up the faster the higher it was.

    How high is kept in a list, an attribute of the event, or a state; or how often it was there, which is the same.
    """
    bd, seen = sim.blockdiagram(), [3.0]
    height, speed, peak = (
        bd.INTEGRATOR(1.0, name="height"),
        bd.INTEGRATOR(2.0, name="speed"),
        bd.INTEGRATOR(3.0, name="peak"),
    )

    def top(block, states):
        if kind == "list":
            seen.append(float(states[height][0]))
        elif kind == "attribute":
            ground.peak = float(states[height][0])
        elif kind == "nested":
            seen.append((block.bd.name, [float(states[height][0])]))
            seen[0] = np.array([float(states[height][0])])
        elif kind == "count":
            seen.append([float(states[height][0])] * len(seen))
        else:
            states[peak][:] = states[height]

    def throw(block, states):
        top = {"list": lambda: seen[-1], "attribute": lambda: ground.peak, "nested": lambda: seen[0][0]}
        states[speed][:] *= -0.5 * top.get(kind, lambda: len(seen) if kind == "count" else states[peak][0])()

    bd.connect(bd.CONSTANT(-9.81, name="gravity"), speed)
    bd.connect(bd.CONSTANT(0.0), peak)
    bd.connect(speed, height, bd.EVENT("v", top, name="top"))
    ground = bd.EVENT("v", throw, name="ground")
    ground.peak = 3.0
    bd.connect(height, ground)
    bd.connect(peak, bd.NULL())
    return bd


@pytest.mark.parametrize("kind", ["list", "attribute", "nested", "count", "state"])
def test_what_handlers_remember_outside_of_states_is_noted_to_be_missing(sim, kind):
    """It was taken to stay as it is, in silence."""

    def high(gravity, speed):
        peak = 1.0 - speed**2 / (2.0 * gravity)
        thrown = 0.5 * (2.0 if kind == "count" else peak) * math.sqrt(-2.0 * gravity * peak)
        rest = 1.0 + (speed + math.sqrt(-2.0 * gravity * peak)) / gravity
        return thrown * rest + 0.5 * gravity * rest**2

    bd = catapult(sim, kind)
    found = sim.gradient(bd, "height[0]", ["gravity.value", "speed"], T=1.0, **FINE)
    assert found.cost == pytest.approx(high(-9.81, 2.0), abs=1e-8)
    if kind in ("state", "count"):
        assert found.notes == [] and found.gradient == pytest.approx(slopes_of(high, -9.81, 2.0), abs=1e-7)
    else:
        assert len(found.notes) == 1 and "ground: its function goes by numbers that were remembered" in found.notes[0]
    assert sim.run(bd, T=1.0, **FINE).x[-1, 0] == pytest.approx(found.cost, abs=1e-8), "nothing of it remains"


def speeds_of_ball(gravity, restitution, height, T=1.2):
    """Return the integral of the square of a ball's speed, and when it bounces first and second."""
    fall = math.sqrt(-2.0 * height / gravity)
    up = -restitution * gravity * fall
    second = fall - 2.0 * up / gravity
    last = restitution * up
    flights = (0.0, gravity * fall), (up, -up), (last, last + gravity * (T - second))
    assert second < T < second - 2.0 * last / gravity
    return np.array([sum(v**3 - u**3 for u, v in flights) / (3.0 * gravity), fall, second])


@pytest.mark.parametrize("load", [False, True])
def test_integrals_over_samples_go_with_the_events_that_states_jump_at(sim, load):
    """What stood on both sides of an event stayed where it was: the step between them was missing, in silence."""
    bd, _ = ball(sim)
    if load:  # whose number the handler sets

        def bounce(block, states):
            states[bd["speed"]][:] *= -bd["left"].value
            bd["spare"].K = 3.0

        bd.connect(bd["left"], bd.GAIN(2.0, name="spare"))
        bd.connect(bd["spare"], bd.NULL())
        bd["ground"].func = bounce

    def cost(out):
        return np.array([np.trapezoid(out.x[:, 1] ** 2, out.t), *(t for t, _ in out.events)])

    found = sim.gradient(bd, cost, ["gravity.value", "left.value", "height"], T=1.2, max_step=1e-3, **FINE)
    # trapezoids err by h² g² T / 6
    assert found.cost == pytest.approx(speeds_of_ball(-9.81, 0.7, 1.0), abs=1.1 * 1e-6 * 9.81**2 * 1.2 / 6.0)
    wanted = np.array(slopes_of(speeds_of_ball, -9.81, 0.7, 1.0)).T
    np.testing.assert_allclose(found.gradient[1:], wanted[1:], atol=1e-8)
    np.testing.assert_allclose(found.gradient[0], wanted[0], atol=2e-5)
    speed = sim.gradient(bd, lambda out: np.trapezoid(out.x[:, 1], out.t), ["left.value", "height"], T=1.2, **FINE)
    ends = sim.gradient(bd, "height[0]", ["left.value", "height"], T=1.2, **FINE)
    np.testing.assert_allclose(speed.gradient, ends.gradient - [0.0, 1.0], atol=1e-8)


def test_samples_of_a_grid_stay_where_an_event_is_at_one(sim):
    bd = sim.blockdiagram()
    x, seen = bd.INTEGRATOR(-0.5, name="x"), bd.INTEGRATOR(0.0, name="seen")
    bd.connect(bd.CONSTANT(1.0, name="rate"), x)
    bd.connect(bd.CONSTANT(0.0), seen)
    bd.connect(seen, bd.NULL())
    bd.connect(x, bd.EVENT("^", lambda block, states: states[seen].fill(1.0)))
    found = sim.gradient(bd, lambda out: out.x[:, 0].sum(), ["x"], T=1.0, dt=0.25, **FINE)
    assert found.gradient == pytest.approx([5.0], abs=1e-9)


@pytest.mark.parametrize(
    ("engine", "switch"),
    [
        ("interpreted", lambda bd: bd.COMPARE(">", 0.5, name="switch")),
        ("compiled", lambda bd: bd.COMPARE(">", 0.5, name="switch")),
        ("compiled", lambda bd: bd.RELAY(0.5, 0.2, name="switch")),
        ("compiled", lambda bd: bd.FUNCTION(lambda x: np.where(x > 0.5, 1.0, 0.0), name="switch")),
    ],
)
def test_integrals_over_samples_of_signals_that_jump_go_with_the_jump(engine, switch):
    """The slope was zero, in silence."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    x, on = bd.INTEGRATOR(0.0, name="x"), switch(bd)
    bd.connect(bd.CONSTANT(1.0, name="rate"), x)
    bd.connect(x, on)
    bd.connect(on, bd.INTEGRATOR(0.0))

    def cost(out):
        return np.trapezoid(out.signal("switch").ravel(), out.t)

    found = sim.gradient(bd, cost, ["x", "rate.value"], T=1.0, watch=["switch"])
    assert found.cost == pytest.approx(0.5, abs=1e-9) and found.notes == []
    assert found.gradient == pytest.approx([1.0, 0.5], abs=1e-9)


class Ground(Event):
    """An EVENT of one's own, with a number of its own."""

    def __init__(self, falls, restitution=0.7, **blockargs):
        super().__init__("v", self.bounce, **blockargs)
        self.falls, self.restitution = falls, restitution

    def bounce(self, block, states):
        states[self.falls][:] *= -self.restitution


def test_an_event_of_a_class_of_ones_own_is_followed(sim):
    """It was refused, as were a STOP and an INTEGRATOR with limits of such classes."""
    bd = sim.blockdiagram()
    height, speed = bd.INTEGRATOR(x0=1.0, name="height"), bd.INTEGRATOR(x0=0.0, name="speed")
    bd.connect(bd.CONSTANT(-9.81, name="gravity"), speed)
    bd.connect(speed, height)
    bd.connect(height, Ground(speed, bd=bd, name="ground"))
    found = sim.gradient(bd, "height[0]", ["gravity.value", "ground.restitution", "height", "speed"], T=1.2, **FINE)
    wanted = slopes_of(lambda *values: height_of_ball(1.2, *values), -9.81, 0.7, 1.0, 0.0)
    assert found.gradient == pytest.approx(wanted, abs=1e-8) and found.notes == []


@pytest.mark.parametrize("own", [False, True])
def test_limits_and_stops_of_classes_of_ones_own_are_followed(sim, own):
    kinds = [type(kind.__name__, (kind,), {}) if own else kind for kind in (Integrator, Stop)]
    bd = sim.blockdiagram()
    given, after = bd.CONSTANT(1.0, name="given"), bd.INTEGRATOR(0.0, name="after")
    limited = kinds[0](0.0, max=0.5, bd=bd, name="limited")
    bd.connect(given, limited)
    bd.connect(limited, after)
    bd.connect(after, kinds[1](lambda y: y > 0.2, bd=bd, name="stop"))
    found = sim.gradient(bd, lambda out: out.t[-1], ["given.value"], T=1.0, **FINE)
    assert found.cost == pytest.approx(0.65, abs=1e-9) and found.gradient[0] == pytest.approx(-0.25, abs=1e-8)


def filled(sim, changed):
    """Return a tank that is filled, and does something where it is full."""
    bd = sim.blockdiagram()
    level, flow, room = bd.INTEGRATOR(0.0, name="level"), bd.GAIN(2.0, name="flow"), bd.SUM("+-")
    bd.connect(bd.CONSTANT(1.0, name="given"), flow)
    bd.connect(flow, level)
    bd.connect(level, room[0])
    bd.connect(bd.CONSTANT(1.0, name="full"), room[1])
    bd.connect(room, bd.EVENT("^", lambda block, states: changed(flow, states[level]), name="event"))
    return bd


def half(flow, level):
    flow.K *= 0.5


def half_and_less(flow, level):
    flow.K *= 0.5
    level *= 0.25


@pytest.mark.parametrize(("changed", "wanted"), [(half, 1.7), (half_and_less, 0.95)])
def test_numbers_that_a_handler_sets_are_those_of_its_run_alone(sim, changed, wanted):
    """They remained: the derivative was that of another run, which began with what the one before had left."""
    bd = filled(sim, changed)
    found = sim.gradient(bd, "level", ["given.value", "full.value"], T=1.2, **FINE)
    assert found.cost == pytest.approx(wanted, abs=1e-9) and found.notes == [] and bd["flow"].K == 2.0
    left = 1.0 if changed is half else 0.25  # of the level, as which the rest of the time counts half
    assert found.gradient == pytest.approx([1.2, left - 0.5], abs=1e-8)
    found = sim.gradient(bd, "level", ["flow.K"], T=1.2, **FINE)
    assert found.notes == [] and found.gradient == pytest.approx([0.6], abs=1e-8)


def timed(sim, acts):
    """Return an integrator of what two gains make of a number, and what is done at some times."""
    bd = sim.blockdiagram()
    level, flow, other, time = bd.INTEGRATOR(0.5, name="level"), bd.GAIN(2.0, name="flow"), bd.GAIN(1.0), bd.TIME()
    for one, next_one in ((bd.CONSTANT(1.0, name="given"), flow), (flow, other), (other, level)):
        bd.connect(one, next_one)
    for k, act in enumerate(acts):
        left = bd.SUM("+-")
        bd.connect(time, left[0])
        bd.connect(bd.CONSTANT(0.2 + 0.3 * k, name=f"at {k}"), left[1])
        event = bd.EVENT("^", lambda block, states, act=act: act(flow, other, states[level]), name=f"event {k}")
        bd.connect(left, event)
    return bd


def less_by_level(flow, other, level):
    flow.K *= 0.5 + 0.1 * level[0]


def other_by_level(flow, other, level):
    other.K = level[0] + 0.1 * flow.K


def level_by_other(flow, other, level):
    level *= other.K


def constant(flow, other, level):
    flow.K = 1.5


@pytest.mark.parametrize(
    "acts", [[less_by_level], [less_by_level, less_by_level], [other_by_level], [constant, less_by_level]]
)
def test_numbers_that_handlers_set_follow_what_they_are_made_of(sim, acts):
    """They were said to be missing: of a load that was dropped the derivative had another sign."""
    bd, names = timed(sim, acts), ["flow.K", "given.value", "level", *(f"at {k}.value" for k in range(len(acts)))]
    found = sim.gradient(bd, "level", names, T=1.0, **FINE)
    assert found.notes == []
    assert found.gradient == pytest.approx(by_differences(sim, bd, "level", names, T=1.0, **FINE)[1], abs=1e-6)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_number_that_a_handler_reads_from_another_one_is_noted_to_be_missing(sim, at_once):
    """It was not where both events come at the same time."""
    bd = timed(sim, [other_by_level, level_by_other])
    if at_once:
        bd["at 1"].value = 0.2
    found = sim.gradient(bd, "level", ["given.value"], T=1.0, **FINE)
    (note,) = found.notes
    assert (
        note.startswith("event 0" + " and event 1" * at_once + ": numbers of blocks are set at t = 0.2; ")
        and "not in the derivative" in note
    )


@pytest.mark.parametrize("source, own", [("STEP", "T"), ("WAVEFORM", "freq"), ("PULSE", "width")])
def test_jumps_that_a_handler_moves_are_noted_to_be_missing(sim, source, own):
    """They were followed where they had been before, and nothing was said."""
    bd = sim.blockdiagram()
    level, total, time, left = bd.INTEGRATOR(0.5, name="level"), bd.INTEGRATOR(0.0), bd.TIME(), bd.SUM("+-")
    given = {"STEP": {"T": 0.6}, "WAVEFORM": {"wave": "square", "freq": 1.2}, "PULSE": {"period": 1.0}}[source]
    jumping = getattr(bd, source)(**given)

    def move(block, states):
        setattr(jumping, own, 0.3 + 0.5 * states[level][0])

    bd.connect(bd.CONSTANT(0.7, name="rate"), level)
    bd.connect(jumping, total)
    bd.connect(time, left[0])
    bd.connect(bd.CONSTANT(0.3), left[1])
    bd.connect(left, bd.EVENT("^", move, name="event"))
    (note,) = sim.gradient(bd, total, ["rate.value"], T=1.0, **FINE).notes
    assert note.startswith("event: numbers of blocks are set at t = 0.3; ") and "not in the derivative" in note


def emptied(sim, then=None, **numbers):
    """Return an arm whose forearm loses its load at a time, and to which something is done later."""
    bd, mech = sim.blockdiagram(), cs.library.planar_2r().with_parameters({"forearm.mass": 2.0, **numbers})
    plant, time = bd.HYBRIDDYNAMICS(mech, q0=[-1.2, 0.3], name="plant"), bd.TIME()
    bd.connect(bd.CONSTANT([3.0, 0.5], name="tau"), plant.tau)
    acts = {"drop": (0.2, lambda x: plant.set_param("forearm.mass", 0.3)), "then": (0.5, then)}
    for name, (when, act) in acts.items():
        if act is not None:
            left = bd.SUM("+-")
            bd.connect(time, left[0])
            bd.connect(bd.CONSTANT(when, name=f"{name} at"), left[1])
            bd.connect(left, bd.EVENT("^", lambda block, states, act=act: act(states[plant]), name=name))
    return bd


@pytest.mark.parametrize("name", ["plant.forearm.mass", "plant.forearm.com[0]", "plant.forearm.pose.x"])
def test_a_load_that_a_handler_drops_stays_dropped_at_the_next_event(sim, name):
    """It was put back there, by who asked how that event follows the numbers of the mechanism."""

    def brake(x):
        x[2] *= 0.9

    bd = emptied(sim, brake)
    whole, options = sim.run(emptied(sim, brake), T=1.0, **FINE), {"T": 1.0, **FINE}
    for _ in range(2):
        found = sim.gradient(bd, "plant.shoulder.q", [name, "tau.value[0]"], **options)
        assert found.cost == pytest.approx(whole.x[-1, 0], abs=1e-9)
        assert bd["plant"].mech.link("forearm").mass == 2.0
    differences = by_differences(sim, bd, "plant.shoulder.q", [name, "tau.value[0]"], **options)[1]
    assert found.gradient == pytest.approx(differences, abs=1e-6) and found.notes == []


def test_a_stroke_on_a_mechanism_follows_its_numbers(sim):
    """A stop at the elbow, which turns round how fast the forearm is by an impulse between the links."""
    bd, mech = sim.blockdiagram(), cs.library.acrobot()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-1.0, 0.6], actuated=[], name="plant")
    elbow, stop = bd.INDEX([1]), bd.CONSTANT(0.5, name="stop")
    bd.connect(plant.q, elbow)
    beyond = bd.SUM("+-")
    bd.connect(elbow, beyond[0])
    bd.connect(stop, beyond[1])

    def stroke(block, states):
        q, qd = np.split(states[plant], 2)
        push = np.linalg.solve(plant.mech.mass_matrix(q), [0.0, 1.0])
        qd -= 1.6 * qd[1] / push[1] * push

    bd.connect(beyond, bd.EVENT("v", stroke, name="stop hit"))
    names = ["stop.value", "plant.forearm.mass", "plant.shoulder.q", "plant.elbow.qd"]
    options = {"T": 0.35, **FINE}
    found = sim.gradient(bd, "plant.shoulder.q", names, **options)
    assert {name for _, name in found.events} == {"stop hit"}
    assert found.gradient == pytest.approx(by_differences(sim, bd, "plant.shoulder.q", names, **options)[1], abs=1e-6)


def test_a_restitution_is_found_by_tuning():
    sim = cs.Simulation(live=False)
    bd, _ = ball(sim, restitution=0.6)
    found = sim.tune(bd, lambda out: (out.x[-1, 0] - 0.3) ** 2, ["left.value"], bounds=[(0.5, 0.9)], T=0.8, **FINE)
    assert height_of_ball(0.8, -9.81, float(found.after[0]), 1.0, 0.0) == pytest.approx(0.3, abs=1e-4)


def test_a_number_that_its_block_takes_to_one_side_only_is_told_at_an_event(sim):
    """It ended in a bare ValueError: differences to a greatest value that is the least one go beyond this."""
    bd = sim.blockdiagram()
    x, y, gap = bd.INTEGRATOR(name="x"), bd.INTEGRATOR(name="y"), bd.SUM("+-")
    clip = bd.CLIP(0.4, 0.4, name="clip")

    def put(block, states):
        states[y][:] = 0.5 * states[y] + clip.max

    bd.connect(bd.CONSTANT(1.0), x)
    bd.connect(x, clip, gap[0])
    bd.connect(clip, y)
    bd.connect(bd.CONSTANT(0.3), gap[1])
    bd.connect(gap, bd.EVENT("^", put, name="put"))
    with pytest.raises(DiagramError, match=r"event of put at t = 0.3 .* CLIP 'clip': min: 0.4 is above max, 0.39"):
        sim.gradient(bd, "y", ["clip.max"], T=1.0)
