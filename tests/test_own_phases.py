"""Phases of laws of a user's own: named, checked, and changed where they say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from own_laws import ACROBOT
from test_compiled import simulation
from test_own_laws import controlled

import cstormpy as cs
from cstormpy.control import Law
from cstormpy.reporting import notice_once


class Phases(Law):
    """Of two phases, the second from 0.05 s on."""

    modes = ("first", "then")

    def __init__(self, after, margin=None):
        super().__init__(ACROBOT)
        self.after, self.told = (after,), margin

    def torque(self, t, q, qd, reference=None):
        return 0.0 * qd[1:]

    def margin(self, t, q, qd):
        return (0.05 - t if self.mode == 0 else 1.0) if self.told is None else self.told

    def switch(self, t, q, qd):
        self.mode = self.after[0]


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_phases_that_are_none_are_told_with_the_law(engine):
    """They ended in errors of int(), float() and of lists, in a phase from the end, or in no phase at all."""
    sim = simulation(engine)
    for after in (2, "then", -1, 0.5, None, np.nan):
        found = sim.run(controlled(sim, Phases(after)), T=0.1)
        assert found.status == "failed" and 0.04 < found.t[-1] <= 0.05
        said = f"law 'mine': mode: expected the number of its phase, 0 (first) or 1 (then), got {after!r}"
        assert f"event handler at t = 0.05: {said}" in found.message and found.state.memory["controller"]["phases"] == [
            0.0
        ]
    # a bool of NumPy, as qd[1] > 0 is, was refused once
    for after in (1, 1.0, True, np.int64(1), np.bool_(True), np.float32(1.0), np.array(1.0)):
        found = sim.run(controlled(sim, Phases(after)), T=0.1, watch=["controller.phase"])
        assert found.status == "finished" and found.signal("controller.phase")[-1] == 1.0
    for margin, said in (
        (np.ones(2), "margin: expected one number, got an array of shape (2,)"),
        ("late", "margin: expected a number, got 'late'"),
        (np.nan, "margin: is not a number at t = 0"),
    ):
        with pytest.raises(cs.CstormError, match="law 'mine': " + re.escape(said)):
            sim.run(controlled(sim, Phases(1, margin)), T=0.1)


class Timed(Law):
    """Of phases that end at given times, one after the other, or all where one margin falls below zero."""

    modes = ("first", "second", "third", "last")

    def __init__(self, ends, same=None):
        super().__init__(ACROBOT)
        self.ends, self.same = (*ends, 9.0), same

    def torque(self, t, q, qd, reference=None):
        return 0.0 * qd[1:]

    def margin(self, t, q, qd):
        return self.ends[self.mode] - t if self.same is None else self.same(t)

    def switch(self, t, q, qd):
        self.mode = min(self.mode + 1, 3)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_phase_that_begins_below_its_margin_is_left_at_once(engine):
    """It never fell below zero there, and the law stayed in that phase for ever."""
    sim = simulation(engine)
    found = sim.run(controlled(sim, Timed([-1.0, 0.05, 0.02])), T=0.1, watch=["controller.phase"])
    assert [event[0] for event in found.events] == [pytest.approx(0.05, abs=1e-9)]
    phases = found.signal("controller.phase").ravel()
    assert set(phases[found.t < 0.049]) == {1.0} and set(phases[found.t > 0.051]) == {3.0}
    # a margin that all phases share crosses zero once where it does
    bd = controlled(sim, Timed([9.0] * 3, lambda t: np.sin(10 * np.pi * t)))
    found = sim.run(bd, T=0.45, watch=["controller.phase"])
    np.testing.assert_allclose([event[0] for event in found.events], [0.1, 0.3], atol=1e-6)
    assert found.signal("controller.phase")[-1] == 2.0


def test_phases_that_all_begin_below_their_margin_are_told(caplog):
    """The law went round once and stayed where it began, without a word; a last phase is stayed in."""

    class Round(Timed):
        modes = ("pull", "push")

        def switch(self, t, q, qd):
            self.mode = 1 - self.mode

    sim, said = simulation("interpreted"), "law 'mine': its phases 'pull' and 'push' all begin below their margin"
    laws = Timed([-1.0] * 3, lambda t: -1.0), Round([-1.0], lambda t: -1.0), Round([-1.0])
    for law, told in zip(laws, (False, True, False), strict=True):
        caplog.clear()
        notice_once.cache_clear()
        sim.run(controlled(sim, law), T=0.05)
        assert any(said in message for message in caplog.messages) == told, law.modes


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_phase_is_changed_by_switch_alone(engine):
    """Set in torque, it changed within steps that were taken back, and compiled code did not show it."""

    class Hasty(Timed):
        def torque(self, t, q, qd, reference=None):
            self.mode = 1 if t > 0.02 else self.mode
            return 0.0 * qd[1:]

    sim = simulation(engine)
    found = sim.run(controlled(sim, Hasty([9.0] * 3)), T=0.1)
    assert (
        found.status == "failed" and "Hasty.torque(): changes its phase, mode, from 0 to 1; let margin" in found.message
    )
    short = type("Short", (Timed,), {"margin": lambda self, t, q: 1.0})
    with pytest.raises(cs.InvalidType, match=r"must take \(self, t, q, qd\), the time"):
        controlled(sim, short([9.0] * 3))


def test_phases_without_names_are_refused_when_the_law_is_wired():
    sim, law = simulation("interpreted"), Phases(1)
    for modes, said in (
        ("first", r"modes: expected names of phases, as modes = \('push', 'let go'\), got 'first'"),
        (("a", "a"), "modes: expected different names of phases"),
        (("one",), "Phases has margin and switch, which are of a law with phases; name those"),
    ):
        law.modes = modes
        with pytest.raises(cs.CstormError, match=f"law 'mine': {said}"):
            controlled(sim, law)
    for missing, said in (("switch", "Half has margin alone"), ("margin", "Half has switch alone")):
        half = type("Half", (Phases,), {missing: getattr(Law, missing)})  # it stayed in its first phase in silence
        with pytest.raises(cs.InvalidValue, match=rf"law 'mine': {said}, .* switch\(self, t, q, qd\) sets self\.mode"):
            controlled(sim, half(1))
    for name in ("start", "margin", "switch"):  # Python counted arguments as the run began
        other = type("Other", (Phases,), {name: lambda self, q, qd: 1.0})
        with pytest.raises(cs.InvalidType, match=r"must take \(self, t, q, qd\), the time, positions and velocities"):
            controlled(sim, other(1))
    law.modes, law.mode = ("first", "then"), "then"
    with pytest.raises(
        cs.InvalidValue, match=r"mode: expected the number of its phase, 0 \(first\) or 1 \(then\), got"
    ):
        controlled(sim, law)

    class Plain:
        modes = ("first", "then")

        def torque(self, t, q, qd):
            return 0.0

        def switch(self, t, q, qd):
            self.mode = 1

    with pytest.raises(
        cs.InvalidType, match=r"law Plain: phases are of laws derived from .*; write class Plain\(Law\)"
    ):
        controlled(sim, Plain())
