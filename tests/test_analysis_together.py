"""Derivatives through events that come at the same time, and each earlier or later with numbers of its own.

They were taken to move as the first of them did: of two machines of a kind the second followed those of the first.
"""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs

FINE = {"rtol": 1e-10, "atol": 1e-12}


def bouncing(bd, at):
    height, speed = bd.INTEGRATOR(1.0, name=f"height {at}"), bd.INTEGRATOR(0.0, name=f"speed {at}")
    left = bd.CONSTANT(0.7, name=f"left {at}")
    bd.connect(bd.CONSTANT(-9.81), speed)
    bd.connect(speed, height)
    bd.connect(left, bd.NULL())
    bd.connect(height, bd.EVENT("v", lambda block, states: states[speed].__imul__(-left.value), name=f"ground {at}"))
    return height, f"left {at}.value"


def warming(bd, at):
    warm, heater = bd.INTEGRATOR(0.0, name=f"warm {at}"), bd.RELAY(0.3, -0.2, -1.0, 1.5, name=f"heater {at}")
    bd.connect(warm, heater)
    bd.connect(heater, warm)
    return warm, f"heater {at}.switch_on"


def filled(bd, at, switch):
    level, flow = bd.INTEGRATOR(0.0, name=f"level {at}"), bd.CONSTANT(1.0, name=f"flow {at}")
    total = bd.INTEGRATOR(0.0, name=f"total {at}")
    bd.connect(flow, level)
    bd.connect(switch(bd, level), total)
    bd.connect(total, bd.NULL())
    return total, f"flow {at}.value"


def switched(bd, level):
    switch = bd.SWITCH(0.3)
    bd.connect(bd.CONSTANT(-0.5), switch[0])
    bd.connect(level, switch[1])
    bd.connect(bd.CONSTANT(1.0), switch[2])
    return switch


def compared(bd, level):
    compare = bd.COMPARE(">", 0.3)
    bd.connect(level, compare)
    return compare


def written(bd, level):
    rule = bd.FUNCTION(lambda u: 1.0 if u < 0.3 else -0.5)
    bd.connect(level, rule)
    return rule


def sampled(bd, level):
    held = bd.SAMPLEHOLD(0.3)
    bd.connect(bd.TIME(), held.u)
    bd.connect(level, held.trigger)
    return held


def swinging(bd, at):
    """An acrobot whose law's torque jumps with the speed of its elbow."""
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.0, 0.3], name=f"plant {at}")
    push, torque = bd.CONSTANT(0.8, name=f"push {at}"), bd.FUNCTION(pushed, nin=2)
    bd.connect(push, torque[0])
    bd.connect(plant.qd, torque[1])
    bd.connect(torque, plant.tau)
    angle = bd.INDEX([0], name=f"angle {at}")
    bd.connect(plant.q, angle)
    bd.connect(angle, bd.NULL())
    return angle, f"push {at}.value"


def pushed(push, qd):
    return push if qd[1] > 0.0 else -push


def caught(bd, at):
    """An acrobot that is taken for caught as its shoulder passes below, where its law's margin jumps."""
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.0, 0.3], name=f"plant {at}")
    law = bd.CONTROLLER("acrobot", "energy", name=f"law {at}")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    angle = bd.INDEX([0], name=f"angle {at}")
    bd.connect(plant.q, angle)
    bd.connect(angle, bd.NULL())
    return angle, f"law {at}.energy.ke"


MACHINES = {
    "EVENT": bouncing,
    "RELAY": warming,
    "SWITCH": lambda bd, at: filled(bd, at, switched),
    "COMPARE": lambda bd, at: filled(bd, at, compared),
    "FUNCTION": lambda bd, at: filled(bd, at, written),
    "SAMPLEHOLD": lambda bd, at: filled(bd, at, sampled),
    "acrobot": swinging,
    "phases": caught,
}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_of_three_machines_of_a_kind_each_follows_its_own_numbers(machine):
    sim = cs.Simulation()
    options = {"T": 1.25, **FINE}
    alone = sim.blockdiagram()
    cost, name = machine(alone, "alone")
    wanted = sim.gradient(alone, cost, [name], **options)
    assert wanted.notes == [] and wanted.gradient.any()
    bd = sim.blockdiagram()
    costs, names = zip(*[machine(bd, at) for at in "abc"], strict=True)
    ends = [str(cost.name) for cost in costs]

    def last(out):
        return np.array([float(np.ravel(out.signal(end)[-1])[0]) for end in ends])

    found = sim.gradient(bd, last, names, watch=ends, **options)
    scale = np.abs(wanted.gradient).max()
    np.testing.assert_allclose(found.gradient, np.eye(3) * wanted.gradient, rtol=0, atol=1e-7 * scale)
    assert found.notes == [] and len(found.events) == 3 * len(wanted.events)


def test_what_cannot_be_told_apart_is_noted():
    """Two functions of one signal, whose thresholds are the same number: which of them is first is open."""
    sim = cs.Simulation()
    bd = sim.blockdiagram()
    level, total = bd.INTEGRATOR(0.0, name="level"), bd.INTEGRATOR(0.0, name="total")
    both = bd.PROD("**")
    bd.connect(bd.CONSTANT(1.0), level)
    for k, at in enumerate("ab"):
        rule = bd.FUNCTION(lambda u, limit: 1.0 if u < limit else -0.5, nin=2, name=at)
        bd.connect(level, rule[0])
        bd.connect(bd.CONSTANT(0.3, name=f"limit {at}"), rule[1])
        bd.connect(rule, both[k])
    bd.connect(both, total)
    bd.connect(total, bd.NULL())
    found = sim.gradient(bd, "total", ["limit a.value", "limit b.value"], T=0.5, **FINE)
    (note,) = found.notes
    assert "a and b switch together at t = 0.3, and apart where the parameters move" in note
    bd["limit b"].value = 0.3 + 1e-6
    assert sim.gradient(bd, "total", ["limit a.value", "limit b.value"], T=0.5, **FINE).notes == []


def multiplied(bd):
    """Two switches whose outputs are multiplied."""
    total, both = bd.INTEGRATOR(0.0, name="total"), bd.PROD("**")
    for k, at in enumerate("ab"):
        level = bd.INTEGRATOR(0.0, name=f"level {at}")
        bd.connect(bd.CONSTANT(1.0, name=f"flow {at}"), level)
        bd.connect(switched(bd, level), both[k])
    bd.connect(both, total)
    bd.connect(total, bd.NULL())
    return total, ["flow a.value", "flow b.value"]


def handing_on(bd):
    """Two balls, each of which hands on some of its speed to the other where it bounces."""
    (total, _), _ = bouncing(bd, "a"), bouncing(bd, "b")
    speeds = [bd["speed a"], bd["speed b"]]
    for at, own, other in zip("ab", speeds, speeds[::-1], strict=True):

        def bounce(block, states, own=own, other=other):
            states[own][:] *= -0.7
            states[other][:] += 0.2 * states[own]

        bd[f"ground {at}"].func = bounce
    return total, ["height a", "height b"]


@pytest.mark.parametrize("machine", [multiplied, handing_on])
def test_what_depends_on_the_order_is_noted(machine):
    """The derivative of one side came, and nothing told that there is another on the other side."""
    sim, options = cs.Simulation(), {"T": 0.5, **FINE}
    bd = sim.blockdiagram()
    cost, names = machine(bd)
    found = sim.gradient(bd, cost, names, **options)
    (note,) = found.notes
    assert "come together at t = " in note and "depends on which of them is first" in note
    if machine is multiplied:  # that of the side on which the first is first
        assert found.gradient == pytest.approx([-0.45, 0.225], abs=1e-8)
        bd["flow a"].value = 1.001
        assert sim.gradient(bd, cost, names, **options).notes == []
