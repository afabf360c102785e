"""What a live window asks of a run: gains, laws, pushes that are set and released, and what is refused."""

import math

import numpy as np
import pytest
from live_runs import T1, FakeFeed, T, at, decay, messages, swing

import cstormpy as cs
from cstormpy.simulation import simulation


def same_end(out, other, tolerance=1e-5):
    assert out.t[-1] == other.t[-1] == T
    np.testing.assert_allclose(out.x[-1], other.x[-1], atol=tolerance)


def test_a_gain_is_set(shown):
    out, feed = shown(decay(), [(T1, {"do": "set", "block": "factor", "name": "K", "value": 3.0})])
    when = feed.asked_at[0]
    assert T1 <= when < T1 + T / 50
    bd = decay()
    same_end(out, at(bd, when, lambda: bd.blocknames["factor"].set_param("K", 3.0)), 1e-9)
    np.testing.assert_allclose(out.x[-1], math.exp(-when - 3.0 * (T - when)), atol=1e-5)
    assert messages(feed) == []


def test_one_number_of_a_parameter_is_set(shown):
    out, feed = shown(swing(), [(T1, {"do": "set", "block": "plant", "name": "gravity", "index": 1, "value": -1.62})])
    bd = swing()
    same_end(out, at(bd, feed.asked_at[0], lambda: bd.blocknames["plant"].set_param("gravity", [0, -1.62, 0])), 1e-9)
    assert np.abs(out.x[-1] - at(swing(), 0.1, lambda: None).x[-1]).max() > 0.1


def test_a_gain_of_a_law_is_set(shown):
    out, feed = shown(
        swing(law="energy"), [(T1, {"do": "set", "block": "controller", "name": "energy.ke", "value": 0.1})]
    )
    bd = swing(law="energy")
    same_end(out, at(bd, feed.asked_at[0], lambda: bd.blocknames["controller"].set_param("energy.ke", 0.1)), 1e-9)
    assert messages(feed) == []


def test_a_law_is_chosen(shown):
    out, feed = shown(swing(), [(T1, {"do": "law", "block": "controller", "name": "pd"})])
    bd = swing()
    same_end(out, at(bd, feed.asked_at[0], lambda: bd.blocknames["controller"].select("pd")), 1e-6)
    assert ("law", "controller", "pd") in feed.said


def test_the_window_hears_of_a_law_that_was_chosen_by_other_means(shown):
    bd = swing()
    _, feed = shown(bd, at={T1: lambda: bd.blocknames["controller"].select("energy")})
    assert [said for said in feed.said if said[0] == "law"] == [("law", "controller", "energy")]


@pytest.mark.slow
def test_a_link_is_pushed_and_released(shown):
    push = {"do": "push", "block": "plant", "link": "forearm", "force": [3.0, 1.0, 0.0], "point": [0.5, 0.0, 0.0]}
    out, feed = shown(swing(), [(T1, push), (1.5, {"do": "release"})])
    on, off = feed.asked_at
    bd = swing()
    plant = bd.blocknames["plant"]
    sim = cs.Simulation(graphics=False, progress=False)
    acts = {on: lambda: plant.push("forearm", [3.0, 1.0, 0.0], [0.5, 0.0, 0.0]), off: plant.release}
    same_end(out, sim.run(bd, T=T, at=acts), 1e-9)
    assert np.abs(out.x[-1] - sim.run(swing(), T=T).x[-1]).max() > 0.05
    assert messages(feed) == []


REFUSED = [
    ({"do": "set", "block": "factr", "name": "K", "value": 1.0}, "block 'factr' does not exist; did you mean 'factor'"),
    ({"do": "set", "block": "factor", "name": "k", "value": 1.0}, "factor: parameter 'k' does not exist"),
    ({"do": "set", "block": "factor", "name": "K", "value": math.nan}, "K: expected a finite number, got nan"),
    ({"do": "set", "block": "factor", "name": "K", "value": "big"}, "K: expected a finite number, got 'big'"),
    ({"do": "set", "block": "factor", "name": "K", "value": None}, "K: expected a finite number, got None"),
    ({"do": "set", "block": "factor", "name": "K", "index": 3, "value": 1.0}, "factor: K has 1 numbers"),
    ({"do": "set", "block": "factor", "name": "K"}, "KeyError: 'value'"),
    ({"do": "set", "block": "limit", "name": "low", "value": 6.0}, "SATURATION 'limit': high: must not be below low"),
    ({"do": "law", "block": "factor", "name": "pd"}, "select"),
    ({"do": "push", "block": "factor", "link": "a", "force": [0, 0, 0], "point": [0, 0, 0]}, "push"),
    ({"do": "push", "block": "factor"}, "KeyError: 'link'"),
    ({"do": "dance"}, "command 'dance' does not exist"),
    ({"do": "pace"}, "KeyError: 'value'"),
    ({}, "KeyError: 'do'"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_what_makes_no_sense_is_refused_and_the_run_goes_on(shown, command, message):
    bd = decay()
    bd.connect(bd["factor"], bd.SATURATION(-5.0, 5.0, name="limit"))
    out, feed = shown(bd, [(T1, command)])
    assert out.status == "finished"
    assert len(messages(feed)) == 1 and message in messages(feed)[0]
    np.testing.assert_allclose(out.x[-1], math.exp(-T), atol=1e-5)


REFUSED_BY_BLOCKS = [
    ({"do": "law", "block": "controller", "name": "pid"}, "'pid' does not exist; did you mean 'pd'"),
    ({"do": "set", "block": "controller", "name": "blend", "value": -1.0}, "blend"),
    ({"do": "push", "block": "plant", "link": "foot", "force": [1, 0, 0], "point": [0, 0, 0]}, "link 'foot'"),
    ({"do": "push", "block": "plant", "link": 7, "force": [1, 0, 0], "point": [0, 0, 0]}, "link: expected a position"),
    ({"do": "push", "block": "plant", "link": 0, "force": [1, 0], "point": [0, 0, 0]}, "force: expected"),
    ({"do": "push", "block": "plant", "link": 0, "force": [1, 0, 0], "point": [0, math.inf, 0]}, "point"),
]


def test_the_window_is_told_of_gravity(shown):
    """Its arrow stood still when the slider was moved, and a plant on the moon had the earth's."""
    bd = swing()
    bd.blocknames["plant"].gravity = [0.0, -1.6, 0.0]
    out, feed = shown(bd, [(T1, {"do": "set", "block": "plant", "name": "gravity", "index": 0, "value": 5.0})])
    assert out.status == "finished", out.message
    (view,) = (pane for pane in feed.shown["panes"] if pane.kind == "mechanism")
    assert view.mechanism.gravity.tolist() == [0.0, -1.6, 0.0]
    assert [said for said in feed.said if said[0] == "gravity"] == [("gravity", "view", [5.0, -1.6, 0.0])]


@pytest.mark.parametrize(("command", "message"), REFUSED_BY_BLOCKS)
def test_what_a_block_refuses_does_not_end_the_run(shown, command, message):
    bd = swing()
    before = {name: getattr(bd.blocknames["controller"], name) for name in ("active_law", "blend", "energy.ke")}
    out, feed = shown(bd, [(T1, command)])
    assert out.status == "finished", out.message
    assert len(messages(feed)) == 1 and message in messages(feed)[0]
    same_end(out, at(swing(), T1, lambda: None))
    if command["do"] == "set":  # the slider goes back
        assert ("value", "controller", command["name"], before[command["name"]], None) in feed.said
    if command["do"] == "law":
        assert ("law", "controller", "none") in feed.said


def test_what_is_asked_for_too_late_is_not_done_in_the_next_run(monkeypatch):
    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    bd = decay()
    set_gain = {"do": "set", "block": "factor", "name": "K", "value": 9.0}

    class Interrupted(FakeFeed):
        def wait(self, seconds):
            if not self.script:
                raise KeyboardInterrupt
            return super().wait(seconds)

    feed = Interrupted([(T1, {"do": "pause"}), (T1, set_gain)])
    monkeypatch.setattr(simulation, "LiveFeed", lambda title: feed)
    assert sim.run(bd, T=T, live=True, pace=None).status == "interrupted" and not feed.script
    assert sim.run(bd, T=T).x[-1] == pytest.approx(math.exp(-T), abs=1e-5)
