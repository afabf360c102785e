"""Each block that is translated computes what it does by itself; each that is not stands in a list, with why."""

from __future__ import annotations

import numpy as np
import pytest
from bdsim.components import ContinuousBlock, SampledBlock, SinkBlock, SubsystemBlock
from block_diagrams import DIAGRAMS
from test_blocks_estimators import diagram as estimators
from test_blocks_signals import diagram as signals
from test_blocks_signals import linear, noises
from test_blocks_switching import limits
from test_compiled import assert_same_derivatives, simulation

from cstormpy.simulation.compiled import CompiledRun, equations, untranslated


@pytest.fixture
def runs(monkeypatch):
    """Collects the runs that are begun."""
    begun, begin = [], CompiledRun.begin

    def collect(self, *arguments):
        begin(self, *arguments)
        begun.append(self)

    monkeypatch.setattr(CompiledRun, "begin", collect)
    return begun


#: Diagrams of bdsim's own blocks, none of which is asked in Python.
TRACED = ("sources", "interpolations", "matrices", "connections", "filters", "sampled blocks")
LONG = ("interpolations", "inverse kinematics", "spline law")


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x in LONG)) for x in DIAGRAMS])
def test_every_block(runs, name):
    """Its numbers, read anew, are those that were read; it computes what the blocks do, traced where it can be."""
    sim = simulation()
    bd = sim.blockdiagram()
    DIAGRAMS[name](bd)
    sim.run(bd, T=0.02, observer=lambda t, x: None)
    program = runs[-1].program
    if name in TRACED:
        assert program.ways and not [way for way in program.ways if not way[1].endswith(": traced")]
    p, n = program.p.copy(), program.n.copy()
    assert program.refresh()
    np.testing.assert_array_equal(program.p, p)
    np.testing.assert_array_equal(program.n, n)
    assert_same_derivatives(runs[-1], np.linspace(0.01, 3.1, 25), spread=0.5)


# What changes while a diagram is there ----------------------------------------------------------------


def swinging(bd):
    """A plant with its controller and what measures it, under the names that the changes use."""
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.2, 0.4], name="plant")
    hand = bd.CONTROLLER("acrobot", ["energy", "lqr", "pd", "noncollocated"], name="hand")
    energy, effort, gain = bd.ENERGY("acrobot", name="energy"), bd.EFFORT(name="effort"), bd.GAIN(2.0, name="gain")
    push = bd.PUSH("acrobot", "forearm", frame="base", name="push")
    bd.connect(plant[0:2], hand[0:2], energy[0:2])
    bd.connect(hand.tau, plant.tau, effort, gain)
    bd.connect(plant.q, push)
    for output in (gain, push, effort, hand.law, hand.phase, *(energy[k] for k in range(3))):
        bd.connect(output, bd.NULL())


def mechanism(bd):
    return bd.blocknames["plant"].mech.with_gravity((0.0, -3.0, 0.0))


CHANGES = {
    "gain": lambda bd: bd.blocknames["gain"].set_param("K", -7.0),
    "gravity": lambda bd: bd.blocknames["plant"].set_param("gravity", (0.0, -3.7, 0.0)),
    "mechanism": lambda bd: [bd.blocknames[b].set_param("mech", mechanism(bd)) for b in ("plant", "energy", "push")],
    "gain of a law": lambda bd: bd.blocknames["hand"].set_param("energy.ke", 0.7),
    "weight of a law": lambda bd: bd.blocknames["hand"].set_param("energy.R.elbow", 3.0),
    "weight": lambda bd: bd.blocknames["effort"].set_param("weight", 3.0),
    "law": lambda bd: bd.blocknames["hand"].laws.swap("pd", 0.02, np.array([0.3, 0.1]), np.zeros(2)),
    "phase": lambda bd: setattr(bd.blocknames["hand"].laws.laws["energy"], "mode", 1),
    "load held": lambda bd: bd.blocknames["push"].push([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_the_same_function_reads_other_numbers(runs, change):
    sim = simulation()
    bd = sim.blockdiagram()
    swinging(bd)
    sim.run(bd, T=0.02, observer=lambda t, x: None)
    before = runs[-1].program.p.copy()
    CHANGES[change](bd)
    assert runs[-1].program.refresh() and not np.array_equal(runs[-1].program.p, before)
    assert_same_derivatives(runs[-1], (0.03, 0.05, 0.2))


def test_another_form_is_translated_anew(runs):
    sim = simulation()
    bd = sim.blockdiagram()
    swinging(bd)
    sim.run(bd, T=0.02, observer=lambda t, x: None)
    bd.blocknames["gain"].set_param("K", np.array([1.0, 2.0]))
    assert not runs[-1].program.refresh()


def test_a_push_by_hand_is_another_form(runs):
    """Without one nothing is computed for it."""
    sim = simulation()
    bd = sim.blockdiagram()
    swinging(bd)
    sim.run(bd, T=0.02, observer=lambda t, x: None)
    bd.blocknames["plant"].push("forearm", [3.0, 1.0, 0.0], [0.2, 0.0, 0.0])
    assert not runs[-1].program.refresh()
    bd.blocknames["plant"].release()
    assert runs[-1].program.refresh()


SIGNALS = {
    "ramp": lambda bd: bd.RAMP(0.2, slope=1.0),
    "jump": lambda bd: bd.STEP(0.5),
    "sine": lambda bd: bd.WAVEFORM("sine", freq=0.5, offset=1),
}


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_law_chosen_by_a_signal_is_swapped_at_the_same_times(runs, signal):
    found = []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.0, 0.3])
        hand = bd.CONTROLLER("acrobot", ["energy", "pd", "lqr"], select=True, name="hand")
        bd.connect(plant[0:2], hand[0:2])
        bd.connect(hand.tau, plant.tau)
        bd.connect(SIGNALS[signal](bd), hand[2])
        bd.connect(hand.law, bd.NULL())
        bd.connect(hand.phase, bd.NULL())
        found.append(sim.run(bd, T=1.0, solver="RK4", dt=0.01, observer=lambda t, x: None))
    assert found[0][".events"] and found[1][".events"] == found[0][".events"]
    np.testing.assert_allclose(found[1].x, found[0].x, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", DIAGRAMS)
def test_every_block_in_machine_code(name, monkeypatch):
    begun, begin = [], CompiledRun.begin
    monkeypatch.setattr(CompiledRun, "begin", lambda self, *a: (begun.append(self), begin(self, *a))[1])
    sim = simulation()
    bd = sim.blockdiagram()
    DIAGRAMS[name](bd)
    sim.run(bd, T=0.02)
    assert_same_derivatives(begun[-1], np.linspace(0.01, 3.1, 25), spread=0.5)


# The list of what is not translated -------------------------------------------------------------------


def library():
    """Return the class of every block that a simulation knows, by bdsim's own name."""
    from importlib import import_module

    known = simulation("interpreted")._blocklibrary
    return {name: getattr(import_module(entry["module"]), entry["classname"]) for name, entry in known.items()}


def is_translated(kind):
    """Tell whether outputs and states of a class are said; subsystems are translated by their parts."""
    if issubclass(kind, (SinkBlock, SubsystemBlock)) or kind.__module__.startswith("cstormpy."):
        return True
    block = object.__new__(kind)
    known = equations.equations_of(block)
    found = [known.output]
    if issubclass(kind, ContinuousBlock):
        found.append(known.deriv)
    if issubclass(kind, SampledBlock):
        found.append(known.next)
    return None not in found and f"{kind.__module__}.{kind.__qualname__}" not in untranslated.REASONS


def test_every_block_is_translated_or_stands_in_the_list():
    """All classes of bdsim and of cstormpy, found by program: a new one needs equations, or a reason."""
    classes = library()
    assert len(classes) > 60 and {"GAIN", "HYBRIDDYNAMICS"} <= set(classes)
    missing = {f"{k.__module__}.{k.__qualname__}" for k in classes.values() if not is_translated(k)}
    assert missing == set(untranslated.REASONS)


def test_every_block_that_is_translated_is_wired_in_some_diagram():
    """The diagrams here, and those whose runs are compared with known solutions, leave no equation untried."""
    sim, wired = simulation("interpreted"), {type(b) for b in estimators("interpreted")[1].blocklist}
    for build in (*DIAGRAMS.values(), signals, linear, noises, limits):
        bd = sim.blockdiagram()
        build(bd)
        inside = [b for s in bd.blocklist if isinstance(s, SubsystemBlock) for b in s.subsystem.blocklist]
        wired |= {type(b) for b in (*bd.blocklist, *inside)}
    elsewhere = {"MPC"}  # whose programme is solved in Python: test_mpc.py runs it in both engines
    for kind in library().values():
        if is_translated(kind) and not issubclass(kind, (SinkBlock, SubsystemBlock)) and kind.__name__ not in elsewhere:
            assert kind in wired, kind
