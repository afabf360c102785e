"""Copies of diagrams: for sweeps, as subsystems, and by copy.deepcopy; what their functions name is theirs."""

from __future__ import annotations

import copy
import functools
import threading

import numpy as np
import pytest
from bdsim.components import FunctionBlock
from closeness import assert_close
from random_diagrams import build
from test_compiled import simulation
from test_compiled_random import some_steps

from cstormpy.errors import DiagramError


def decay(bd, kind):
    """Wire ẋ = -k x with x = 1 again at each time that it has come to 1/2, by a handler that names blocks."""
    x, rate, apart = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-1.0, name="rate"), bd.SUM("+-", name="apart")
    again, faster = [x], {"rate": rate}

    def by_closure(block, states):
        states[x][:] = 1.0
        faster["rate"].K = 2.0 * rate.K / abs(rate.K)

    def by_default(block, states, x=x, rates=(rate,)):
        states[x][:] = 1.0
        rates[0].K = 2.0 * rate.K / abs(rate.K)

    def put(states):
        for state in again:
            states[state][:] = 1.0

    def through_another(block, states):
        put(states)
        by_default(block, states)

    holder = Holder(x, rate)
    handlers = {"closure": by_closure, "default": by_default, "another": through_another, "global": by_globals}
    handlers["object"] = lambda block, states: holder.handle(block, states)
    handlers |= {"method": holder.handle, "object of the module": lambda *given: THE_HOLDER.handle(*given)}  # noqa: F821
    handler = handlers[kind]
    globals().update(THE_X=x, THE_RATE=rate, THE_HOLDER=holder)
    bd.connect(x, rate, apart[0])
    bd.connect(rate, x)
    bd.connect(bd.CONSTANT(0.5, name="half"), apart[1])
    bd.connect(apart, bd.EVENT("v", handler, name="event"))
    return x


class Holder:
    """An object of the user's that holds blocks."""

    def __init__(self, x, rate):
        self.again, self.rates = [x], {"rate": rate}

    def handle(self, block, states):
        states[self.again[0]][:] = 1.0
        self.rates["rate"].K = -FAST


def by_globals(block, states):
    states[THE_X][:] = 1.0  # noqa: F821
    THE_RATE.K = -FAST  # noqa: F821


FAST = 2.0


def after(T, k=1.0):
    """Return x at a time: it comes to 1/2 after ln 2 / k, and after ln 2 / 2 from there on."""
    while np.log(2.0) / k < T:
        T, k = T - np.log(2.0) / k, 2.0
    return np.exp(-k * T)


KINDS = ("closure", "default", "another", "global", "object", "method", "object of the module")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_the_handlers_of_a_copy_work_on_its_blocks(engine, kind):
    sim = simulation(engine)
    bd = sim.blockdiagram()
    decay(bd, kind)
    other = copy.deepcopy(bd)
    assert_close(sim.run(other, T=1.5).x[-1], [after(1.5)], 1e-6)
    assert (bd["rate"].K, other["rate"].K) == (-1.0, -2.0)
    assert_close(sim.run(bd, T=1.5).x[-1], [after(1.5)], 1e-6)
    assert bd["rate"].K == other["rate"].K


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_of_a_diagram_with_handlers(kind, caplog):
    """Those of globals, and of objects, ended each run in a KeyError; they set rates in the diagram that was given."""
    sim = simulation("compiled")
    bd = sim.blockdiagram()
    decay(bd, kind)
    found = sim.sweep(bd, {"x.x0": [0.8, 0.6]}, "x", T=0.1, workers=2)  # neither comes to 1/2
    assert_close(found.value, np.exp(-0.1) * np.array([0.8, 0.6]), 1e-6)
    found = sim.sweep(bd, {"half.value": [0.5, 0.7]}, "x", T=1.5, workers=2)
    assert found.done.all() and np.isfinite(found.value).all() and not caplog.text
    assert bd["rate"].K == -1.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_handlers_of_subsystems_work_on_their_blocks(kind):
    sim = simulation("compiled")
    inner, bd = sim.blockdiagram(), sim.blockdiagram()
    x, way_in, way_out = decay(inner, kind), inner.INPORT(1), inner.OUTPORT(1)
    inner.connect(x, way_out)
    inner.connect(way_in, inner.NULL())
    for name in ("left", "right"):
        made = bd.SUBSYSTEM(inner, name=name)
        bd.connect(bd.CONSTANT(0.0), made)
        bd.connect(made, bd.NULL())
    bd.compile()
    bd["right/rate"].K = -1.5
    assert_close(sim.run(bd, T=1.5).x[-1], [after(1.5), after(1.5, 1.5)], 1e-6)
    assert inner["rate"].K == -1.0


def test_an_object_that_cannot_be_copied_with_its_blocks_is_told():
    """Its blocks were those of the original in the copy."""
    bd = simulation("interpreted").blockdiagram()
    holder = Holder(bd.INTEGRATOR(name="x"), None)
    holder.lock = threading.Lock()
    bd.connect(bd["x"], bd.FUNCTION(lambda u: -u * holder.again[0].x0), bd["x"])
    with pytest.raises(DiagramError, match=r"a Holder that its functions read holds blocks, .*lock"):
        copy.deepcopy(bd)


def weighted(weights):
    return lambda u: weights[0] * u


helper = weighted(np.array([-2.0]))


class Plant:
    """Something of the user's, with a function that all copies share."""

    def __init__(self):
        self.inner = helper

    def rate(self, u):
        return -2.0 * u


def by_a_helper(u):
    return helper(u)


@pytest.mark.parametrize(
    "function", [by_a_helper, Plant().rate, functools.partial(helper)], ids=["function", "method", "partial"]
)
def test_functions_that_others_read_do_not_keep_a_diagram_from_several_workers(function):
    """Such sweeps were refused for what the helper has around it, though it is a global of the user's."""
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    x, rate, gain = bd.INTEGRATOR(x0=1.0, name="x"), bd.FUNCTION(function), bd.GAIN(1.0, name="gain")
    bd.connect(x, rate)
    bd.connect(rate, gain)
    bd.connect(gain, x)
    found = sim.sweep(bd, {"gain.K": [0.5, 1.0]}, "x", T=0.1, workers=2)
    assert_close(found.value, np.exp([-0.1, -0.2]), 1e-6)


EVENTS = 0


@pytest.mark.parametrize("scope", ["nonlocal", "global"])
def test_handlers_that_count_are_refused_to_several_workers(scope):
    """All workers counted on one number, and what the runs found was another each time."""
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    x, count = decay(bd, "closure"), 0

    def by_nonlocal(block, states):
        nonlocal count
        count += 1
        states[x][:] = 1.0 / count

    def by_global(block, states):
        global EVENTS
        EVENTS += 1
        states[x][:] = 1.0 / EVENTS

    bd["event"].func = {"nonlocal": by_nonlocal, "global": by_global}[scope]
    with pytest.raises(DiagramError, match=r"holds the function .*'(count|EVENTS)' all of them would use"):
        sim.sweep(bd, {"half.value": [0.5, 0.7]}, "x", T=1.5, workers=2)


def put_and_count(block, states):
    global EVENTS
    EVENTS += 1
    states[THE_X][:] = 1.0  # noqa: F821


def test_a_copied_function_does_not_set_globals_in_silence():
    """What the handler of a copy set of its module was seen by nobody else."""
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    decay(bd, "global")
    bd["event"].func = put_and_count
    with pytest.raises(DiagramError, match="'put_and_count' names blocks by a global, 'THE_X', and sets one, 'EVENTS'"):
        copy.deepcopy(bd)


def test_a_copied_function_sets_the_globals_of_its_module(monkeypatch):
    monkeypatch.setitem(globals(), "EVENTS", 0)
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    x = decay(bd, "closure")

    def handler(block, states):
        global EVENTS
        EVENTS += 1
        states[x][:] = 1.0

    bd["event"].func = handler
    assert_close(sim.run(copy.deepcopy(bd), T=1.5).x[-1], [4.0 * np.exp(-1.5)], 1e-6)
    assert EVENTS == 2


def test_what_a_function_reads_may_be_nested_deeply():
    """It ended in a RecursionError."""
    sim = simulation("interpreted")
    bd, deep = sim.blockdiagram(), ()
    for _ in range(3000):
        deep = (deep,)
    x, rate = bd.INTEGRATOR(x0=1.0), bd.FUNCTION(lambda u: -u if deep else u)
    bd.connect(x, rate)
    bd.connect(rate, x)
    assert_close(sim.run(copy.deepcopy(bd), T=1.0).x[-1], [np.exp(-1.0)], 1e-6)


def test_a_partial_names_blocks_too():
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    x = decay(bd, "closure")
    put = functools.partial(lambda x, states: states[x].fill(1.0), x)
    bd["event"].func = lambda block, states: put(states)
    assert_close(sim.run(copy.deepcopy(bd), T=1.5).x[-1], [4.0 * np.exp(-1.5)], 1e-6)


def test_a_copied_function_sees_globals_as_they_are(monkeypatch):
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    decay(bd, "global")
    other = copy.deepcopy(bd)
    monkeypatch.setitem(globals(), "FAST", 3.0)
    sim.run(other, T=1.5)
    assert other["rate"].K == -3.0


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_diagrams_as_subsystems_and_as_copies(seed):
    """Each alone, within a subsystem within two, and within a copy of these."""
    sim = simulation("compiled" if seed == 100 else "interpreted")
    options = {"T": 0.3, "solver": "RK4", "dt": 0.01}
    alone = sim.run(build(sim.blockdiagram(), some_steps(seed)), **options)
    inner, middle, bd = (sim.blockdiagram() for _ in range(3))
    build(inner, some_steps(seed))
    inner.connect(inner.INPORT(1), inner.OUTPORT(1))
    within = middle.SUBSYSTEM(inner, name="within")
    middle.connect(middle.INPORT(1), within)
    middle.connect(within, middle.OUTPORT(1))
    for name in ("left", "right"):
        each = bd.SUBSYSTEM(middle, name=name)
        bd.connect(bd.CONSTANT(0.0), each)
        bd.connect(each, bd.NULL())
    for found in (sim.run(bd, **options), sim.run(copy.deepcopy(bd), **options)):
        assert found.status == alone.status == "finished"
        assert_close(found.x[-1], np.tile(alone.x[-1], 2), 1e-7)


def test_a_long_chain_of_blocks_is_copied_and_swept_by_several():
    """Each block names the one before, and a copy that followed them was too deep for Python: one worker did it all."""
    sim = simulation("compiled")
    bd = sim.blockdiagram()
    last = bd.CONSTANT(1.0, name="one")
    for k in range(400):
        gain = bd.GAIN(1.01, name=f"g{k}")
        bd.connect(last, gain)
        last = gain
    bd.connect(last, bd.INTEGRATOR(name="x"))
    copied = copy.deepcopy(bd)
    outs = [sim.run(each, T=1.0) for each in (bd, copied)]
    np.testing.assert_array_equal(outs[0].x, outs[1].x)
    assert not {id(b) for b in bd.blocklist} & {id(b) for b in copied.blocklist}
    found = sim.sweep(bd, {"g7.K": [1.0, 2.0]}, measure=["x"], T=1.0, workers=2)
    np.testing.assert_allclose(found["x"], 1.01**399 * np.array([1.0, 2.0]), rtol=1e-6)


class Careful(FunctionBlock):
    """A block that says how it is copied, and that it is not to be pickled."""

    nin = nout = 1

    def output(self, t, u, x):
        return [-u[0]]

    def __deepcopy__(self, memo):
        made = memo[id(self)] = object.__new__(type(self))
        vars(made).update(copy.deepcopy(vars(self), memo), is_copy=True)
        return made

    def __reduce_ex__(self, protocol):
        raise TypeError("not to be pickled")


def test_a_block_that_says_how_it_is_copied_is_not_asked_how_it_is_pickled():
    """A diagram with one that refuses that was not copied."""
    sim = simulation("compiled")
    bd = sim.blockdiagram()
    x, careful = bd.INTEGRATOR(x0=1.0, name="x"), Careful(name="careful", bd=bd)
    bd.connect(x, careful)
    bd.connect(careful, x)
    copied = copy.deepcopy(bd)
    assert copied.blocknames["careful"].is_copy and copied.blocknames["careful"] is not careful
    np.testing.assert_array_equal(sim.run(copied, T=1.0).x, sim.run(bd, T=1.0).x)


def test_a_copy_of_a_diagram_makes_blocks_of_its_own():
    """bd.GAIN of the copy made one in the diagram that had been copied, which then had an open input."""
    sim = simulation("interpreted")
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0, name="one"), bd.INTEGRATOR(name="sum"))
    other = copy.deepcopy(bd)
    other.connect(other["one"], gain := other.GAIN(2.0, name="gain"))
    other.connect(gain, other.INTEGRATOR(name="twice"))
    assert sim.run(other, T=1.0).x[-1] == pytest.approx([1.0, 2.0])
    assert sim.run(bd, T=1.0).x[-1] == pytest.approx([1.0]) and sorted(bd.blocknames) == ["one", "sum"]
