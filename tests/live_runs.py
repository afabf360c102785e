"""Runs that are shown in a window that is played by a list, for the tests of live windows."""

import time

import numpy as np

import cstormpy as cs

ACROBOT = cs.library.acrobot()
T1, T = 0.7, 2.0


class FakeFeed:
    """A window that asks for what its script says, each command once the run has come to a time."""

    def __init__(self, script=(), alive=True):
        self.script, self.alive, self.reason = list(script), alive, None
        self.shown, self.ended, self.closed = None, None, False
        self.t, self.rows, self.said, self.asked_at = [], [], [], []

    def show(self, panes, controls=(), **about):
        self.shown = {"panes": panes, "controls": controls, **about}

    def wait_until_ready(self, seconds):
        return True

    def sample(self, t, row):
        self.t.append(t)
        self.rows.append(np.array(row))

    def commands(self):
        """Give what is due, up to one that pauses: what follows is asked for in the pause."""
        given = []
        while self.script and self.t and self.script[0][0] <= self.t[-1]:
            given.append(self.script.pop(0)[1])
            self.asked_at.append(self.t[-1])
            if given[-1].get("do") in ("pause", "step"):
                break
        return given

    def wait(self, seconds):
        if self.script and self.t and self.script[0][0] <= self.t[-1]:
            return True
        time.sleep(min(seconds, 0.01))
        return False

    def state(self, state, pace=None, message=""):
        self.said.append(("state", state, pace))

    def value(self, block, name, value, index=None):
        self.said.append(("value", block, name, value, index))

    def law(self, block, name):
        self.said.append(("law", block, name))

    def gravity(self, pane, gravity):
        self.said.append(("gravity", pane, list(gravity)))

    def message(self, text):
        self.said.append(("message", text))

    def finish(self, message=""):
        self.ended = message

    def hold(self, only_on_terminal=True):
        raise AssertionError("a run that is not to hold its window holds it")

    def close(self):
        self.closed = True


def decay(gain=1.0):
    """Return x' = -K x, x(0) = 1, on a scope."""
    bd = cs.Simulation(graphics=False, hold=False, progress=False).blockdiagram("decay")
    state, factor, sign = bd.INTEGRATOR(x0=1.0, name="state"), bd.GAIN(gain, name="factor"), bd.GAIN(-1, name="sign")
    bd.connect(state, factor, bd.LIVESCOPE(labels=["x"], units="m", name="scope"))
    bd.connect(factor, sign)
    bd.connect(sign, state)
    return bd


def swing(**options):
    """Return an acrobot under a choice of laws, with its view."""
    bd = cs.Simulation(graphics=False, hold=False, progress=False).blockdiagram("swing")
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[-1.2, 0.3], name="plant")
    controller = bd.CONTROLLER(ACROBOT, ["none", "energy", "pd"], name="controller", **options)
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller[0], plant[0])
    bd.connect(plant[0], bd.MECHANISMVIEW(ACROBOT, name="view"))
    bd.connect(controller[0], bd.LIVESCOPE(labels=["elbow"], units="N m", name="scope"))
    return bd


def messages(feed):
    return [said[1] for said in feed.said if said[0] == "message"]


def at(bd, when, act, **options):
    """Return the same run, in which something is done at a time."""
    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    return sim.run(bd, at={when: act}, live=False, **{"T": T, **options})


def wait_for(what, seconds=20.0):
    """Wait until something is so, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.03)
    raise AssertionError("waited in vain")
