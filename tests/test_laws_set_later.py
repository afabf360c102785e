"""What is set in a law after it was made: it is taken, or refused, by the words of its constructor."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import cstormpy as cs
from cstormpy import control
from cstormpy.control.blend import LawSet
from cstormpy.errors import CstormError, InvalidValue
from cstormpy.mechanism import library

ACROBOT = library.acrobot()
ARM = library.planar_2r()
STATE = 0.2, np.array([1.4, 0.1]), np.array([0.3, -0.2])

#: A law, by the arguments that it is given, and those that are set later.
LAWS = {
    "PD": (control.PD, ARM, {"kp": 20.0, "kd": [2.0, 1.0], "reference": [0.5, 0.0], "compensate": True}),
    "computed torque": (control.ComputedTorque, ARM, {"kp": [9.0, 4.0], "kd": 3.0, "reference": (STATE[1],) * 3}),
    "hybrid": (control.HybridTracking, ACROBOT, {"kp": 9.0, "reference": [0.5]}),
    "pump": (control.EnergyPump, ACROBOT, {"kp": 2.0, "kd": 0.5, "ke": 3.0, "limit": 1.5}),
    "LQR": (control.LQR, ACROBOT, {"Q": [1.0, 2.0, 3.0, 4.0], "R": 0.5, "limit": [40.0]}),
    "open loop": (control.OpenLoop, ARM, {"tau": [3.0, 1.0], "limit": [2.0, 0.5]}),
}
NEEDED = {"PD": {"kp": 1.0, "kd": 1.0}, "open loop": {"tau": [0.0, 0.0]}, "hybrid": {"reference": [0.0]}}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_then_as_if_it_had_been_made_so(name):
    kind, mech, arguments = LAWS[name]
    law = kind(mech, **{"reference": [0.0, 0.0]} if name == "computed torque" else NEEDED.get(name, {}))
    for argument, value in arguments.items():
        setattr(law, argument, value)
    made = kind(mech, **(NEEDED.get(name, {}) | arguments))
    assert law(*STATE).tolist() == made(*STATE).tolist() != [0.0] * len(law.motors)
    assert repr(law) == repr(made)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("value", [-5.0, np.nan, np.inf, "x", None, True, [3.0, 2.0, 1.0], [[1.0, 2.0]], 1j])
def test_what_a_law_is_not_made_with_is_refused_by_the_same_words(name, value):
    kind, mech, arguments = LAWS[name]
    for argument in {**arguments, "limit": None}:
        law = kind(mech, **arguments)
        try:
            kind(mech, **(arguments | {argument: value}))
        except CstormError as error:
            before = law(*STATE)
            with pytest.raises(type(error)) as told:
                setattr(law, argument, value)
            assert str(told.value) == str(error)
            assert law(*STATE).tolist() == before.tolist()
        else:
            setattr(law, argument, value)


def test_what_more_follows_from_than_can_be_changed_stays():
    posture = [np.pi / 2, 0.0]
    along = control.TVLQR(ACROBOT, lambda t: (np.array(posture), np.zeros(2), np.zeros(2)), t0=0.0, t1=0.1)
    for law in (control.LQR(ACROBOT), control.EnergyPump(ACROBOT), along):
        for name in ("t0", "t1", "Q", "R", "final") if law is along else ("goal",):
            with pytest.raises(cs.InvalidValue, match=f"{name}' is part of what the law is made of; make another law"):
                setattr(law, name, getattr(law, name))


def test_a_law_stays_with_its_mechanism():
    """Another one changed a part of what the law computes, so that a pump of an acrobot took a pendulum."""
    for law in (control.EnergyPump(ACROBOT), control.PD(ACROBOT, 1.0, 1.0), control.law("energy", ACROBOT)):
        for other in ("pendulum", ACROBOT.with_parameters({"forearm.mass": 2.0})):
            with pytest.raises(
                InvalidValue, match="'mech' is part of what the law is made of; make another law for it"
            ):
                law.mech = other
        law.mech = "acrobot"  # which it is
        assert law.mech is ACROBOT

    class Keeping(control.Law):
        def __init__(self, mech):
            self.mech = mech
            super().__init__(mech)
            self.mech = mech

    assert Keeping("acrobot").mech == ACROBOT


def test_the_limit_of_laws_together_is_checked_when_it_is_set():
    laws = LawSet({"push": control.OpenLoop(ARM, [5.0, -5.0])})
    laws.limit = [2.0, 3.0]
    assert laws(*STATE).tolist() == [2.0, -3.0]
    with pytest.raises(InvalidValue, match="limit: must not be negative"):
        laws.limit = -1.0
    laws.limit = None
    assert laws(*STATE).tolist() == [5.0, -5.0]


@pytest.mark.parametrize("copied", [lambda law: law, copy.deepcopy, lambda law: pickle.loads(pickle.dumps(law))])
def test_entries_of_a_weight_are_not_set_in_vain(copied):
    law = copied(control.LQR(ACROBOT))
    with pytest.raises(ValueError, match="read-only"):
        law.Q[0, 0] = 1000.0
    law.set_gain("Q.shoulder", 1000.0)
    np.testing.assert_allclose(law.K, control.LQR(ACROBOT, Q=[1000.0, 10.0, 1.0, 1.0]).K, rtol=1e-12)


def test_phases_end_where_their_numbers_say():
    law = control.law("energy", ACROBOT)
    law.threshold = 2.0 * law.threshold
    assert (law.threshold, law.release) == (3300.0, pytest.approx(1.01 * 3300.0))
    with pytest.raises(cs.InvalidValue, match="release: must not be below the threshold 3300, got 100"):
        law.release = 100.0
    law.release = None
    assert law.release == pytest.approx(1.01 * 3300.0)
    then = control.Then(control.Off(ARM), control.Off(ARM), 2.0)
    then.duration = 3
    assert then.margin(0.5, *STATE[1:]) == 2.5
    with pytest.raises(cs.InvalidValue, match="duration: expected a positive number, got -1"):
        then.duration = -1.0


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_a_diagram_runs_with_what_its_law_holds_now(engine):
    sim = cs.Simulation(engine=engine)
    near = np.array([np.pi / 2 + 0.05, 0.0])

    def end(law):
        bd = sim.blockdiagram()
        plant, controller = bd.HYBRIDDYNAMICS(ACROBOT, q0=near), bd.CONTROLLER(ACROBOT, law)
        bd.connect(plant[0:2], controller[0:2])
        bd.connect(controller.tau, plant.tau)
        return lambda: sim.run(bd, 0.5).x[-1]

    law = control.LQR(ACROBOT)
    run = end(law)
    first = run()
    law.Q, law.limit = np.diag([1.0, 2.0, 3.0, 4.0]), 30.0
    made = end(control.LQR(ACROBOT, Q=[1.0, 2.0, 3.0, 4.0], limit=30.0))
    np.testing.assert_allclose(run(), made(), rtol=0, atol=1e-12)
    assert np.abs(run() - first).max() > 1e-3


class Stepping(control.Law):
    """Push harder by `push` from each change of the phase on, at 0.5 s."""

    modes = ("a", "b")

    def __init__(self, mech, push=1.0):
        super().__init__(mech)
        self.push, self.home = push, np.zeros(2)

    def start(self, t, q, qd):
        self.home = q.copy()

    def torque(self, t, q, qd, reference=None):
        return np.array([self.push])

    def margin(self, t, q, qd):
        return 0.5 - t if self.mode == 0 else 1.0

    def switch(self, t, q, qd):
        self.mode, self.push = 1, 2.0 * self.push


def ran(*laws, engine="compiled"):
    """Return the diagram of an acrobot for each law, and how it is run: the torques every 0.25 s."""
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd, mech = sim.blockdiagram(), cs.library.acrobot()
    for k, law in enumerate(laws):
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3, 0.1 * k], name=f"plant{k}")
        controller = bd.CONTROLLER(mech, {"mine": law}, name=f"controller{k}")
        bd.connect(plant[0:2], controller[0:2])
        bd.connect(controller.tau, plant.tau)
    return lambda: sim.run(bd, T=1.0, dt=0.25, watch=["controller0"]).signal("controller0.tau").ravel().tolist()


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_number_that_a_law_changes_as_it_switches_begins_anew(engine):
    """The second run of the same diagram began with what the first had left: 2 N m in place of 1 N m."""
    law = Stepping("acrobot")
    run = ran(law, engine=engine)
    assert run() == run() == [1.0, 1.0, 2.0, 2.0, 2.0]
    for same in (law, copy.deepcopy(law), pickle.loads(pickle.dumps(law))):  # in another diagram too
        assert ran(same, engine=engine)() == [1.0, 1.0, 2.0, 2.0, 2.0]
    law.push = 3.0  # what somebody sets between runs holds
    assert run() == run() == [3.0, 3.0, 6.0, 6.0, 6.0]


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_law_with_phases_belongs_to_one_controller(engine):
    """Two controllers that shared a law shared its phase: each swung or balanced as the other did."""
    law = Stepping("acrobot")
    with pytest.raises(InvalidValue, match=r"controller0.*: law 'mine' is the same object as a law of .*controller1"):
        ran(law, law, engine=engine)()
    assert ran(law, copy.deepcopy(law), engine=engine)() == [1.0, 1.0, 2.0, 2.0, 2.0]
    regulator = control.PD("acrobot", 1.0, 1.0)  # that remembers nothing
    ran(regulator, regulator, engine=engine)()
