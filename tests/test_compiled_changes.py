"""A compiled diagram follows its blocks: what a user changes between runs is seen, and looking for it is cheap."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
from bdsim.components import FunctionBlock
from closeness import assert_close
from test_compiled import simulation

import cstormpy as cs
from cstormpy.diagrams import acrobot
from cstormpy.simulation.analysis import kept_programs
from cstormpy.simulation.compiled import assembly, structures


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


def test_a_gradient_like_the_one_before_translates_nothing(monkeypatch):
    """It, and each run of a search, wrote the diagram down anew, and looked at each of its choices."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd, made, real = acrobot.build(sim, controller="lqr"), [], kept_programs.program_of
    monkeypatch.setattr(kept_programs, "program_of", lambda *given: made.append(given) or real(*given))
    for names, count in ((["plant.shoulder.q"], 1), (["plant.shoulder.q"], 1), (["plant.elbow.q"], 2)):
        found = sim.gradient(bd, "plant.shoulder.q", names, T=0.5)
        assert len(made) == count and found.gradient.any()
    copied = copy.deepcopy(bd)  # which has blocks of its own
    sim.gradient(copied, "plant.shoulder.q", ["plant.shoulder.q"], T=0.5)
    assert len(made) == 3


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

    def slope(sim, bd):
        return sim.gradient(bd, "plant.joint1.qd", ["plant.joint1.q"], T=1.0).gradient

    bd = wired(sim)
    before = [sim.run(bd, T=1.0).x[-1] for _ in range(2)]
    slopes = [slope(sim, bd) for _ in range(2)]
    change(law)
    after = sim.run(bd, T=1.0).x[-1]
    plain = cs.Simulation(engine="interpreted", live=False, progress=False)
    np.testing.assert_allclose(after, plain.run(wired(plain), T=1.0).x[-1], rtol=1e-9)
    assert np.array_equal(*before) and not np.allclose(before[0], after)
    # and so the next derivative, whose program is kept too
    np.testing.assert_allclose(slope(sim, bd), slope(sim, wired(sim)), rtol=1e-9)
    assert np.array_equal(*slopes) and not np.array_equal(slopes[0], slope(sim, bd))


class Reading:
    """An object of the user's that reads a block."""

    def __init__(self, block):
        self.block = block

    def __call__(self, u):
        return self.block.K * u

    def method(self, u):
        return self.block.K * u


def _by_global(u):
    return READING.block.K * u  # noqa: F821


@pytest.mark.parametrize(
    "make",
    [
        lambda bd, held: lambda u: held.block.K * u,
        lambda bd, held: lambda u, parts={"a": [held]}: parts["a"][0].block.K * u,
        lambda bd, held: held,
        lambda bd, held: held.method,
        lambda bd, held: functools.partial(lambda a, u: a.block.K * u, held),
        lambda bd, held: _by_global,
        lambda bd, held: lambda u: bd["slope"].K * u,
    ],
    ids=["around", "default", "callable", "method", "partial", "global", "diagram"],
)
@pytest.mark.parametrize("set_in_a_run", [False, True])
def test_numbers_of_blocks_that_a_function_reaches_are_read_anew(make, set_in_a_run, monkeypatch):
    """Those of a block in an object were read once: a compiled run went on with what they had been before."""
    sim = cs.Simulation(engine="compiled", graphics=False, progress=False, live=False)
    bd = sim.blockdiagram()
    x, slope = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-1.0, name="slope")
    held = Reading(slope)
    monkeypatch.setitem(globals(), "READING", held)
    bd.connect(x, slope, function := bd.FUNCTION(make(bd, held), name="function"))
    bd.connect(slope, bd.NULL())
    bd.connect(function, x)
    if set_in_a_run:
        out = sim.run(bd, T=1.0, at={0.5: lambda: setattr(slope, "K", -3.0)}, rtol=1e-9)
        np.testing.assert_allclose(out.x[-1, 0], np.exp(-2.0), rtol=1e-7)
        return
    for rate in (-1.0, -3.0, 0.5):
        slope.K = rate
        np.testing.assert_allclose(sim.run(bd, T=1.0, rtol=1e-9).x[-1, 0], np.exp(rate), rtol=1e-7)


def test_a_function_that_reads_a_mechanism_is_told_to_name_it():
    """By its block it is asked in Python at each evaluation, by itself it is traced."""
    sim, mech = cs.Simulation(engine="compiled", graphics=False, progress=False, live=False), cs.library.pendulum(1)
    ends = []
    for named in (False, True):
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3], name="plant")
        by_block = lambda q, plant=plant: plant.mech.gravity[1] * q  # noqa: E731
        function = bd.FUNCTION((lambda q: mech.gravity[1] * q) if named else by_block, name="function")
        bd.connect(plant.q, function)
        bd.connect(function, plant.tau)
        bd.connect(plant.qd, bd.NULL())
        ends.append(sim.run(bd, T=0.5).x[-1])
        told = next(line for line in sim.explain(bd).splitlines() if line.startswith("function"))
        assert ("as mech = plant.mech before" in told, "output: traced" in told) == (not named, named)
    np.testing.assert_allclose(*ends, rtol=1e-12)


class Classy:
    """A law that has part of itself from its class, and from what that inherits from."""

    slope, factors, more = 2.0, [[1.0], 1.0], np.ones(1)

    def __init__(self):
        self.gain = 1.0

    @property
    def doubled(self):
        return 2.0 * self.gain

    @staticmethod
    def bent(angle):
        return np.sin(angle)

    def __call__(self, t, q, qd):
        return [-self.doubled * self.bent(q[0]) - self.slope * self.factors[0][0] * self.more[0] * qd[0]]


def _method(kind):
    kind.bent = staticmethod(np.cos)


def _property(kind):
    kind.doubled = property(lambda self: 3.0 * self.gain)


def _number_of_class(kind):
    kind.slope = 5.0


def _list_of_class(kind):
    kind.factors[0][0] = 2.5


def _array_of_class(kind):
    kind.more[:] = 2.5


@pytest.mark.parametrize("change", [_method, _property, _number_of_class, _list_of_class, _array_of_class])
def test_a_change_of_a_class_between_runs_is_seen(change):
    """What stands in the class is compared where it stands: in the class itself, or in one that it inherits from."""
    base = type("Classy", (Classy,), {"factors": [[1.0], 1.0], "more": np.ones(1), "__module__": __name__})
    law = type("Inheriting", (base,), {"__module__": __name__})()
    ends = []
    for engine in ("compiled", "interpreted"):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS("pendulum", q0=[0.4], name="plant")
        controller = bd.CONTROLLER("pendulum", law, name="controller")
        bd.connect(plant[0:2], controller[0:2])
        bd.connect(controller.tau, plant.tau)
        for _ in range(2):
            sim.run(bd, T=0.3)
        state = bd.statenames[0]
        if engine == "compiled":
            before = sim.run(bd, T=0.3).x[-1], sim.gradient(bd, state, [state], T=0.3).gradient
            change(base)
        ends.append((sim.run(bd, T=0.3).x[-1], sim.gradient(bd, state, [state], T=0.3).gradient))
    assert np.abs(before[0] - ends[1][0]).max() > 1e-3 and np.abs(before[1] - ends[1][1]).max() > 1e-3
    for kept, fresh in zip(*ends, strict=True):
        np.testing.assert_allclose(kept, fresh, atol=1e-8)


class Unsteady(cs.control.Law):
    """A law of a user's, which may look at anything, and so is asked again."""

    def torque(self, t, q, qd, reference=None):
        return -qd[1:]


@pytest.mark.parametrize(("make", "times"), [(lambda mech: cs.control.PD(mech, 3.0, 1.0), 1), (Unsteady, 2)])
def test_only_what_others_wrote_is_asked_twice_while_it_is_written_down(monkeypatch, make, times):
    """Half of the time from disk to the first step went into asking our own laws again, which give the same."""
    counts, asked_twice = [], assembly.asked_twice

    def counted(graph, twins, ask, ours=False):
        asked = []
        result = asked_twice(graph, twins, lambda: asked.append(0) or ask(), ours)
        counts.append(len(asked))
        return result

    monkeypatch.setattr(assembly, "asked_twice", counted)
    mech = cs.library.acrobot()
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    plant, controller = bd.HYBRIDDYNAMICS(mech, name="plant"), bd.CONTROLLER(mech, make(mech), name="law")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller[0], plant.tau)
    sim.run(bd, T=0.01)
    assert max(counts) == times


class Follower(FunctionBlock):
    nin, nout = 1, 1

    def __init__(self, other, **options):
        super().__init__(**options)
        self.other = other

    def output(self, t, u, x):
        return [self.other.K * u[0]]


THE_GAIN = None


def by_global(u):
    return THE_GAIN.K * np.cos(0.0) * u


def decay_by_a_gain(sim, kind):
    """Wire ẋ = k x by a function that names the GAIN of which k is."""
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-2.0, name="gain")
    if kind == "block":
        rate = Follower(gain, name="rate", bd=bd)
    else:
        functions = {"default": lambda u, gain=gain: gain.K * u, "closure": lambda u: gain.K * u, "global": by_global}
        globals().update(THE_GAIN=gain)
        rate = bd.FUNCTION(functions[kind], name="rate")
    bd.connect(x, gain, rate)
    bd.connect(rate, x)
    bd.connect(gain, bd.NULL())
    return bd, gain


@pytest.mark.parametrize("kind", ["default", "closure", "global", "block"])
def test_functions_that_name_a_block_see_its_numbers_as_they_are(kind):
    """They were written down with the number that the block had first: runs, sweeps and gradients were of that."""
    sim, precise = simulation("compiled"), {"T": 0.5, "rtol": 1e-9, "atol": 1e-12}
    bd, gain = decay_by_a_gain(sim, kind)
    assert_close(sim.run(bd, **precise).x[-1], [np.exp(-1.0)], 1e-8)
    found = sim.gradient(bd, "x", ["gain.K"], **precise)
    assert_close(found.gradient, [0.5 * np.exp(-1.0)], 1e-6)
    gain.K = -4.0
    assert_close(sim.run(bd, **precise).x[-1], [np.exp(-2.0)], 1e-8)
    out = sim.run(bd, at={0.25: lambda: setattr(gain, "K", -2.0)}, **precise)
    assert_close(out.x[-1], [np.exp(-1.5)], 1e-8)
    found = sim.sweep(bd, {"gain.K": [-2.0, -1.0]}, "x", workers=2, **precise)
    assert_close(found.value, np.exp([-1.0, -0.5]), 1e-8)
    assert_close(sim.run(copy.deepcopy(bd), **precise).x[-1], [np.exp(-1.0)], 1e-8)


def test_an_attribute_of_the_name_of_a_block_names_none(monkeypatch):
    """In a script blocks are globals, and their names stand for other things as well."""
    sim = simulation("compiled")
    bd = sim.blockdiagram()
    monkeypatch.setitem(globals(), "sin", bd.GAIN(2.0, name="gain"))
    wave = bd.FUNCTION(lambda u: np.sin(u), name="wave")
    bd.connect(bd.TIME(), wave, globals()["sin"])
    bd.connect(wave, bd.INTEGRATOR(x0=0.0))
    assert_close(sim.run(bd, T=1.0).x[-1], [1.0 - np.cos(1.0)], 1e-6)
    (told,) = [line.split() for line in str(sim.explain(bd)).splitlines() if line.startswith("wave")]
    assert told[1:] == ["output:", "traced"]


class Damping(cs.control.Law):
    def __init__(self, gain):
        super().__init__(cs.library.pendulum())
        self.gain = gain

    def torque(self, t, q, qd, reference=None):
        return -self.gain.K * qd


@pytest.mark.parametrize("kind", ["function", "law"])
def test_laws_that_name_a_block_see_its_numbers_as_they_are(kind):
    ends, slopes = [], []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        plant, gain = bd.HYBRIDDYNAMICS("pendulum", q0=[0.3], name="plant"), bd.GAIN(2.0, name="gain")
        law = Damping(gain) if kind == "law" else lambda t, q, qd, gain=gain: -gain.K * qd
        controller = bd.CONTROLLER("pendulum", law, name="law")
        bd.connect(plant.q, controller.q)
        bd.connect(plant.qd, controller.qd)
        bd.connect(controller.tau, plant.tau)
        bd.connect(bd.CONSTANT(1.0), gain)
        bd.connect(gain, bd.NULL())
        options, of = {"T": 0.1, "solver": "RK4", "dt": 0.01}, []
        slopes.append(sim.gradient(bd, "plant.joint1.q", ["gain.K"], **options).gradient)
        for k in (1.99, 2.01, 4.0):
            gain.K = k
            of.append(sim.run(bd, **options).x[-1])
        ends.append(of)
        slopes.append((of[1] - of[0])[:1] / 0.02)
    assert_close(ends[1], ends[0], 1e-8)
    assert_close(slopes, [slopes[1]] * 4, 1e-5)


def test_a_stop_whose_condition_is_changed_within_a_run_to_one_that_python_must_be_asked():
    """Its detector looked at where the one before had stood among the compiled signals."""
    limits = {"far": 0.8}

    def beyond(x):
        try:
            return x - limits["far"]
        except KeyError:
            return 1.0

    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()
        ramp, stop = bd.INTEGRATOR(name="ramp"), bd.STOP(lambda x: x - 5.0, name="stop")
        relay = bd.RELAY(name="relay", switch_on=0.3)
        bd.connect(bd.CONSTANT(1.0), ramp)
        bd.connect(ramp, stop, relay)
        bd.connect(relay, bd.NULL())
        out = sim.run(bd, T=2.0, at={0.5: functools.partial(setattr, stop, "stopfunc", beyond)})
        assert (out.status, [name for _, name in out.events]) == ("stopped", ["relay", "stop"])
        assert out.t[-1] == pytest.approx(0.8, abs=1e-9)
