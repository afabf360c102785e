"""The gains of a law of one's own: whatever numbers its object, or its class, has as attributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from own_laws import ACROBOT, Phased, controlled

import cstormpy as cs
from cstormpy.control import OwnLaw
from cstormpy.simulation.live_session import controls_of


class OfItsClass:
    kp = 3.0
    K = np.array([1.0, 0.5])

    def torque(self, t, q, qd):
        return -self.kp * q[1] - self.K @ qd


class OfItsObject:
    def __init__(self):
        self.kp, self.K = 3.0, np.array([[1.0, 0.5]])

    def torque(self, t, q, qd):
        return -self.kp * q[1] - self.K @ qd


class InSlots:
    __slots__ = ("K", "kp")

    def __init__(self):
        self.kp, self.K = 3.0, np.array([1.0, 0.5])

    def torque(self, t, q, qd):
        return -self.kp * q[1] - self.K @ qd


@dataclass
class Declared:
    kp: float = 3.0

    def __post_init__(self):
        self.K = np.array([1.0, 0.5])

    def torque(self, t, q, qd):
        return -self.kp * q[1] - self.K @ qd


class Branching(OfItsObject):
    def torque(self, t, q, qd):
        if q[1] > 10.0:
            return 0.0 * q[:1]
        return -self.kp * q[1] - self.K @ qd


class Robot:
    def __init__(self):
        self.kp, self.K = 3.0, np.array([1.0, 0.5])

    def control(self, t, q, qd):
        return -self.kp * q[1] - self.K @ qd


LAWS = [OfItsClass, OfItsObject, Declared, Branching, lambda: Robot().control]
IDS = ["class", "object", "dataclass", "branching", "method"]


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("make", LAWS, ids=IDS)
def test_gradients_reach_numbers_and_arrays(make, engine):
    sim, bd = controlled(make(), engine)
    options = {"T": 0.3, "rtol": 1e-10, "atol": 1e-11}
    names = ["ctl.mine.kp", "ctl.mine.K"]
    found = sim.gradient(bd, lambda out: float(out.x[-1, 1]), names, **options)
    slopes = []
    block, entries = bd.blocknames["ctl"], np.concatenate([[3.0], [1.0, 0.5]])
    shape = getattr(block, "mine.K").shape
    for k in range(3):
        ends = []
        for step in (1e-4, -1e-4):
            moved = entries.copy()
            moved[k] += step
            block.set_param("mine.kp", moved[0])
            block.set_param("mine.K", moved[1:].reshape(shape))
            ends.append(sim.run(bd, **options).x[-1, 1])
        slopes.append((ends[0] - ends[1]) / 2e-4)
    np.testing.assert_allclose(np.ravel(found.gradient), slopes, rtol=2e-5)
    assert np.abs(slopes).min() > 1e-4


def test_gains_in_slots_are_read_anew_in_each_run():
    ends = []
    for engine in ("interpreted", "compiled"):
        law = InSlots()
        sim, bd = controlled(law, engine)
        for name, value in (("kp", 3.0), ("kp", 5.0), ("K", np.array([4.0, 0.5]))):
            bd.blocknames["ctl"].set_param(f"mine.{name}", value)
            ends.append(sim.run(bd, T=0.5).x[-1])
    np.testing.assert_allclose(ends[:3], ends[3:], rtol=0, atol=1e-9)
    assert np.abs(np.diff(ends[:3], axis=0)).max(1).min() > 1e-2


def test_one_entry_of_an_array_is_tuned_by_its_place_and_swept():
    sim, bd = controlled(OfItsObject())
    result = sim.tune(bd, lambda out: float((out.x[:, 1] ** 2).sum()), ["ctl.mine.K[0, 1]"], T=0.5, max_runs=4)
    assert bd.blocknames["ctl"].laws.laws["mine"].gains["K"].shape == (1, 2)
    assert list(result.parameters) == ["ctl.mine.K[0, 1]"]


def test_sliders_turn_each_number_of_an_array():
    _, bd = controlled(OfItsClass())
    knobs = [(c.name, c.index, c.value) for c in controls_of(bd) if getattr(c, "name", "").startswith("mine")]
    assert knobs == [("mine.kp", None, 3.0), ("mine.K", 0, 1.0), ("mine.K", 1, 0.5)]


def test_a_gain_that_is_changed_belongs_to_the_object_alone():
    law = OwnLaw("acrobot", OfItsClass())
    law.set_gain("kp", 9.0)
    law.set_gain("K", [4.0, 5.0])
    law.own.K[0] += 1.0
    assert (law.gains["kp"], law.gains["K"].tolist()) == (9.0, [5.0, 5.0])
    assert (OfItsClass.kp, OfItsClass.K.tolist()) == (3.0, [1.0, 0.5])


def test_what_is_no_gain_is_told():
    @dataclass(frozen=True)
    class Frozen:
        kp: float = 3.0

        def torque(self, t, q, qd):
            return -self.kp * q[1]

    with pytest.raises(cs.InvalidType, match=r"gain 'kp': Frozen lets nobody change it"):
        OwnLaw("acrobot", Frozen()).set_gain("kp", 1.0)
    with pytest.raises(cs.CstormError, match=r"gain 'K'.*\(2,\)"):
        OwnLaw("acrobot", OfItsClass()).set_gain("K", [1.0])
    sim, bd = controlled(OfItsClass())
    with pytest.raises(cs.UnknownName, match=r"of block 'ctl' the tunable number 'K' .*; did you mean 'mine.K'\?"):
        sim.gradient(bd, "plant.q", ["ctl.K"], T=0.1)
    for value in ([1.0, 2.0], np.array([1, 2])):
        law = OfItsClass()
        law.K = value
        sim, bd = controlled(law)
        with pytest.raises(cs.InvalidType, match=r"'ctl.mine.K' is .*write an array of floats"):
            sim.gradient(bd, "plant.q", ["ctl.mine.K"], T=0.1)


@pytest.mark.parametrize(
    ("names", "value", "told"),
    [
        (
            ("k",),
            np.ones(4),
            r"tunable names 'k': expected a float, or an array of one for each of elbow, .*shape \(4,\)",
        ),
        (("k",), np.array(1.0), "tunable names 'k': expected a float, or an array"),
        (("k",), [1.0, 2.0], "tunable names 'k': .*; a class without `tunable` has all its floats"),
        (("k",), None, "tunable names 'k': .*, got None"),
        (("kp",), 1.0, "tunable names 'kp', which is no attribute"),
    ],
)
def test_a_law_that_declares_what_is_no_gain_is_told(names, value, told):
    """A row of K for an acrobot ended in "zip() argument 2 is longer than argument 1"; None was then not found."""

    class Declaring(cs.control.Law):
        tunable = names

        def __init__(self, mech, k):
            super().__init__(mech)
            self.k = k

        def torque(self, t, q, qd, reference=None):
            return -self.k * qd[1:]

    law = Declaring("acrobot", value)
    with pytest.raises((cs.InvalidType, cs.InvalidValue), match=told):
        str(law.gains)
    with pytest.raises((cs.InvalidType, cs.InvalidValue), match=f"CONTROLLER 'ctl': .*{told}"):
        controlled(law)


class Stay(cs.control.Law):
    """Returns to where it began, and half-way begins anew."""

    modes = ("first", "second")

    def __init__(self, mech, k=6.0):
        super().__init__(mech)
        self.k = k

    def start(self, t, q, qd):
        self.mode, self.home = 0, q.copy()

    def torque(self, t, q, qd, reference=None):
        return self.k * (self.home - q) - qd

    def margin(self, t, q, qd):
        return 1.0 if self.mode else 0.15 - t

    def switch(self, t, q, qd):
        self.mode, self.home = 1, q.copy()


@pytest.mark.parametrize(
    ("law", "name", "T", "told"),
    [
        ("stay", "plant", 0.1, "controller: home of law 'stay' is noted from the run at t = 0;"),
        ("stay", "controller.stay.k", 0.1, None),
        ("stay", "controller.stay.k", 0.2, "controller: home of law 'stay' is noted from the run at t = 0.15;"),
        ("pd", "slope.K", 0.2, "controller: the blend is noted from the run at t = 0.1;"),
    ],
    ids=["at the start", "a gain alone", "at an event", "blend"],
)
def test_a_gradient_tells_what_laws_note_of_the_run(law, name, T, told):
    """It took what a law keeps of where it began, and the step that a blend gives back, for fixed without a word."""
    sim = cs.Simulation(engine="interpreted")
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("pendulum", q0=[0.4], actuated=["joint1"], name="plant")
    own = Stay(plant.mech)
    controller = bd.CONTROLLER(
        plant.mech, {"stay": own, "pd": "pd", "none": "none"}, law, select=True, name="controller"
    )
    slope, first = bd.GAIN(5.0 if law == "pd" else 0.0, name="slope"), bd.SUM("++")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(bd.TIME(), slope)
    bd.connect(slope, first[0])
    bd.connect(bd.CONSTANT(float(controller.law_names.index(law))), first[1])
    bd.connect(first, controller[2])
    bd.connect(controller.tau, plant.tau)
    notes = sim.gradient(bd, lambda out: out.x[-1, 0], [name], T=T, solver="RK4", dt=0.01).notes
    assert [note.partition(" how")[0] for note in notes] == [told] * bool(told)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_each_run_begins_in_the_phase_that_a_law_was_made_in(engine):
    """Where the law has no `start`: else a second run began in the phase of the first one's end, as gradients did."""
    law = Phased(ACROBOT)
    sim, bd = controlled(law, engine)
    once = sim.run(bd, T=1.5)
    assert len(once.events) == 1 and law.mode == 1
    assert np.array_equal(sim.run(bd, T=1.5).x, once.x)
    assert np.array_equal(sim.run(controlled(law, engine)[1], T=1.5).x, once.x)
    assert not sim.run(bd, T=0.1, start=once).events and law.mode == 1  # which goes on
    found = sim.gradient(bd, "plant.elbow.q", ["plant.elbow.q"], T=1.5)
    ends = [sim.run(bd, T=1.5, start=[0.3, 0.2 + h, 0.0, 0.0], rtol=1e-9, atol=1e-11).x[-1, 1] for h in (1e-4, -1e-4)]
    assert found.cost == pytest.approx(once.x[-1, 1], rel=1e-9)
    assert found.gradient[0] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-3)
