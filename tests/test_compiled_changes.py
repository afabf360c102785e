"""A compiled diagram follows its blocks: what a user changes between runs is seen, and looking for it is cheap."""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.diagrams import acrobot
from cstormpy.simulation.compiled import structures


def test_a_run_like_the_one_before_describes_nothing(monkeypatch):
    """What blocks are made of is compared object by object; it is described only where something is another."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = acrobot.build(sim)
    for _ in range(2):
        sim.run(bd, T=5)
    described, looks = [], []
    real, look = structures.described, structures._Glance.__init__
    monkeypatch.setattr(structures, "described", lambda value: described.append(value) or real(value))
    monkeypatch.setattr(structures._Glance, "__init__", lambda self, *a: looks.append(self) or look(self, *a))
    out = sim.run(bd, T=5)
    assert out.events and not looks
    assert len(described) < 30  # what readers give, such as the times of a Piecewise


class Weighted:
    """A law of nested parts: arrays in lists and mappings, a number in each."""

    def __init__(self):
        self.gains = {"near": [np.array([1.0]), 2.0], "far": [np.array([3.0]), 4.0]}
        self.shift, self.bias = np.array([0.5]), 0.25

    def __call__(self, t, q, qd):
        (near, a), (far, b) = self.gains["near"], self.gains["far"]
        return [-(near[0] * a + far[0] * b) * q[0] - self.shift[0] * qd[0] + self.bias]


def _replaced(law):
    law.shift = np.array([2.5])


def _written(law):
    law.shift[0] = 2.5


def _entry(law):
    law.gains["far"][0] = np.array([7.0])


def _number(law):
    law.gains["near"][1] = -1.0


def _longer(law):
    law.shift = np.array([2.5, 0.0])


def _dict(law):
    law.__dict__ = {**law.__dict__, "bias": -3.0}


def _shadowed(law):
    law.gains = {"near": law.gains["far"], "far": law.gains["near"][:]}
    law.gains["far"][1] = 0.125


@pytest.mark.parametrize("change", [_replaced, _written, _entry, _number, _longer, _dict, _shadowed])
def test_each_way_to_change_a_law_between_runs_is_seen(change):
    """Whatever is put in place of what, in the object or in its parts: the next run is that of the law as it is."""
    law = Weighted()
    sim = cs.Simulation(engine="compiled", live=False, progress=False)

    def wired(sim):
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS("pendulum", q0=[0.3], name="plant")
        held = bd.CONTROLLER("pendulum", law, name="law")
        bd.connect(plant.q, held.q)
        bd.connect(plant.qd, held.qd)
        bd.connect(held[0], plant[0])
        return bd

    bd = wired(sim)
    before = [sim.run(bd, T=1.0).x[-1] for _ in range(2)]
    change(law)
    after = sim.run(bd, T=1.0).x[-1]
    plain = cs.Simulation(engine="interpreted", live=False, progress=False)
    np.testing.assert_allclose(after, plain.run(wired(plain), T=1.0).x[-1], rtol=1e-9)
    assert np.array_equal(*before) and not np.allclose(before[0], after)
