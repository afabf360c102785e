"""Laws that read, or change, what only Python knows the inside of: containers, slots, what surrounds them."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import math
import types

import numpy as np
import pytest
from bdsim.components import ContinuousBlock, FunctionBlock, SampledBlock
from own_laws import controlled

import cstormpy as cs
from cstormpy.reporting import notice_once


class Slots:
    __slots__ = ("kp",)

    def __init__(self):
        self.kp = 3.0


class Own:
    def __init__(self):
        self.kp = 3.0


class MadeByNew(Own):
    def __new__(cls):
        return object.__new__(cls)


class Mapping(dict):
    def __getattr__(self, name):  # of what is not there, another error than Python asks for
        return self[name]

    __setattr__ = dict.__setitem__


BY_ATTRIBUTE = lambda h: h.kp, lambda h, value: setattr(h, "kp", value)
BY_KEY = lambda h: h["kp"], lambda h, value: h.__setitem__("kp", value)
BY_INDEX = lambda h: h[0], lambda h, value: h.__setitem__(0, value)
BY_LAW = lambda h: h.kp, lambda h, value: h.set_gain("kp", value)
BY_GREATEST = max, lambda h, value: h.add(value)
BY_POLYNOMIAL = lambda h: h(1.0), lambda h, value: h.__setitem__(1, value)

HELD = {
    "namespace": (lambda: types.SimpleNamespace(kp=3.0), BY_ATTRIBUTE),
    "slots": (Slots, BY_ATTRIBUTE),
    "object": (Own, BY_ATTRIBUTE),
    "new": (MadeByNew, BY_ATTRIBUTE),
    "mapping": (lambda: Mapping(kp=3.0), BY_ATTRIBUTE),
    "userdict": (lambda: collections.UserDict(kp=3.0), BY_KEY),
    "deque": (lambda: collections.deque([3.0]), BY_INDEX),
    "array of objects": (lambda: np.array([3.0], dtype=object), BY_INDEX),
    "view": (lambda: memoryview(np.array([3.0])), BY_INDEX),
    "set": (lambda: {3.0}, BY_GREATEST),
    "polynomial": (lambda: np.poly1d([3.0, 0.0]), BY_POLYNOMIAL),
    "law": (lambda: cs.control.law("pd", cs.library.acrobot(), kp=3.0, kd=1.0), BY_LAW),
}


def by_attribute(held, read):
    class Law:
        def __init__(self):
            self.held = held

        def torque(self, t, q, qd):
            return -read(self.held) * q[1] - qd[1]

    return Law()


def surrounded(held, read):
    return lambda t, q, qd: -read(held) * q[1] - qd[1]


def partial(held, read):
    def law(held, t, q, qd):
        return -read(held) * q[1] - qd[1]

    return functools.partial(law, held)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [pytest.param(by_attribute, marks=pytest.mark.slow), pytest.param(surrounded, marks=pytest.mark.slow), partial],
)
def test_what_is_held_is_read_anew_in_each_run(how):
    for name, (make, (read, write)) in HELD.items():
        ends = {}
        for engine in ("interpreted", "compiled"):
            held = make()
            sim, bd = controlled(how(held, read), engine)
            ends[engine] = [sim.run(bd, T=0.3).x[-1]]
            write(held, 5.0)
            ends[engine].append(sim.run(bd, T=0.3).x[-1])
        np.testing.assert_allclose(ends["compiled"], ends["interpreted"], rtol=0, atol=1e-9, err_msg=name)
        assert abs(ends["compiled"][0] - ends["compiled"][1]).max() > 0.1, name


def remembering(memory, read, write):
    """Return a law that gives a torque by what it was asked last."""

    def law(t, q, qd):
        last = read(memory)
        write(memory, q[1])
        return -3.0 * q[1] - qd[1] - (q[1] - last)

    return law


def remembering_by_name():
    last = 3.0

    def law(t, q, qd):
        nonlocal last
        before, last = last, q[1]
        return -3.0 * q[1] - qd[1] - (q[1] - before)

    return law, lambda: last


class Peak(cs.control.Law):
    """A law of two phases that damps by the greatest rate that it was asked about."""

    modes = ("only", "never")

    def __init__(self):
        super().__init__(cs.library.acrobot())
        self.most = 0.0

    def torque(self, t, q, qd, reference=None):
        self.most = max(self.most, abs(qd[1]))
        return -3.0 * q[1:] - self.most * qd[1:]

    def margin(self, t, q, qd):
        return 1.0

    def switch(self, t, q, qd):
        self.mode = 1


@pytest.mark.parametrize("engine", ["compiled", "auto"])
def test_what_a_law_remembers_is_told_to_be_no_state(engine, caplog):
    """Integrals that laws added up in themselves were eight times as large as meant, and went on into the next run."""
    notice_once.cache_clear()
    sim, bd = controlled(Peak(), engine)
    sim.run(bd, T=0.3, dt=0.01, solver="RK4")
    says = "law Peak changes 'most' of its Peak while it computes: that is several times in a step"
    assert sum(says in told for told in caplog.messages) == 1 and "as of bd.INTEGRATOR" in caplog.text
    notice_once.cache_clear()
    caplog.clear()
    sim, bd = controlled(lambda t, q, qd: -3.0 * q[1:], engine)
    sim.run(bd, T=0.3, dt=0.01, solver="RK4")
    assert not caplog.messages


class Counting(SampledBlock):
    """Ticks counted in an attribute, or in a list."""

    def __init__(self, clock, counted, **options):
        super().__init__(clock, x0=[0.0], inames=["u"], onames=["y"], **options)
        self.count, self.counted = counted, []

    def output(self, t, u, x):
        return [x.copy()]

    def next(self, t, u, x):
        if self.count is None:
            self.counted.append(t)
        else:
            self.count += 1
        return np.array([len(self.counted) + (self.count or 0.0)])


@pytest.mark.parametrize(("counted", "says"), [(0, "changes 'count' of its Counting"), (None, "changes what it holds")])
def test_what_a_sampled_block_remembers_beside_its_states_is_told(counted, says, caplog):
    """A covariance kept in an attribute began the second run where the first one had ended, and nothing said so."""
    notice_once.cache_clear()
    sim = cs.Simulation(live=False, progress=False, engine="compiled")
    bd = sim.blockdiagram()
    block = Counting(bd.clock(10, "Hz"), counted, name="block", bd=bd)
    bd.connect(bd.TIME(), block)
    ends = [sim.run(bd, T=1.0, watch=["block"]).signal("block")[-1] for _ in range(3)]
    assert np.ravel(ends).tolist() == [11, 22, 33]
    (told,) = caplog.messages
    assert f"next() {says} while it computes: that goes on into the next run" in told and "begin at x0" in told


def test_random_numbers_of_a_sampled_block_go_on_without_a_word(caplog):
    class Drawing(Counting):
        def next(self, t, u, x):
            return self.counted.normal(size=1)

    sim = cs.Simulation(live=False, progress=False, engine="compiled")
    bd = sim.blockdiagram()
    block = Drawing(bd.clock(10, "Hz"), 0, name="drawing", bd=bd)
    block.counted = np.random.default_rng(1)
    bd.connect(bd.TIME(), block)
    drawn = sim.run(bd, T=1.0, watch=["drawing"]).signal("drawing")
    np.testing.assert_array_equal(np.ravel(drawn), np.random.default_rng(1).normal(size=11))
    assert not caplog.messages


def test_what_a_law_of_phases_remembers_is_not_lost():
    """Written down once for each phase, it was taken for a law that remembers nothing."""
    ends = []
    for engine in ("interpreted", "compiled"):
        sim, bd = controlled(Peak(), engine)
        ends.append(sim.run(bd, T=0.3, dt=0.01, solver="RK4").x[-1])
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-9)
    assert "it changes 'most' of its Peak while it computes" in str(sim.explain(bd))


@pytest.mark.parametrize("name", ["namespace", "slots", "object", "mapping", "userdict", "deque", "nonlocal"])
def test_what_a_law_remembers_is_kept_out_of_what_is_written_down(name):
    if name == "nonlocal":
        law, remembered = remembering_by_name()
    else:
        make, (read, write) = HELD[name]
        memory = make()
        law, remembered = remembering(memory, read, write), lambda: read(memory)
    sim, bd = controlled(law, "compiled")
    out = sim.run(bd, T=0.3, dt=0.01, solver="RK4")
    assert isinstance(remembered(), float)
    assert remembered() == pytest.approx(out.x[-1, 1], abs=0.1)
    assert "law law: asked in Python" in str(sim.explain(bd))
    law, _ = remembering_by_name() if name == "nonlocal" else (remembering(make(), read, write), None)
    other, again = controlled(law, "interpreted")
    # engines do not ask equally often
    np.testing.assert_allclose(out.x[-1], other.run(again, T=0.3, dt=0.01, solver="RK4").x[-1], rtol=0, atol=1e-2)


# What symbols and numbers answer differently ---------------------------------------------------------


def catching(t, q, qd):
    try:
        angle = math.acos(2.0 * q[1])
    except ValueError:
        angle = 5.0
    return -angle - qd[1]


def catching_all(t, q, qd):
    try:
        root = math.sqrt(q[1])
    except:  # noqa: E722
        root = -1.0
    return -root - qd[1] if q[0] < 1000.0 else 0.0


def suppressing(t, q, qd):
    angle = 5.0
    with contextlib.suppress(ValueError):
        angle = math.acos(2.0 * q[1])
    return -angle - qd[1]


def held(value, kinds):
    return max(-0.5, min(0.5, value)) if isinstance(value, kinds) else value


def of_one_class(value):
    return max(-0.5, min(0.5, value)) if type(value) is np.float64 else value


def scalar(value):
    return max(-0.5, min(0.5, value)) if np.isscalar(value) else value


def halved(t, q, qd):
    count = 1
    while count < 3.0 * abs(q[1]):
        count += 1
    return -4.0 * 2**-count * q[1] - qd[1] if count > 0 else 0.0


ROUNDED = {-2.0: 4.0, -1.0: 3.0, 0.0: 1.0, 1.0: 2.0}
LOOKING = {
    "except": (catching, "it catches errors (line"),
    "bare except": (catching_all, "it catches errors (line"),
    "suppress": (suppressing, "it catches errors (line"),
    "isinstance": (lambda t, q, qd: held(-q[1] - qd[1], (float, int)), "ctl    output: traced"),
    "isinstance of NumPy's": (
        lambda t, q, qd: held(-q[1] - qd[1], np.floating),
        "a number is one of Python's or of NumPy",
    ),
    "type": (lambda t, q, qd: of_one_class(-q[1] - qd[1]), "it asks for the type of a number"),
    "isscalar": (lambda t, q, qd: scalar(-q[1] - qd[1]), "ctl    output: traced"),
    "set": (lambda t, q, qd: (-3.0 if np.floor(3.0 * q[1]) in {-1.0, 1.0} else -1.0) * qd[1] - q[1], "by numba"),
    "dict": (lambda t, q, qd: -ROUNDED.get(np.floor(3.0 * q[1]), 0.5) * qd[1] - q[1], "asked in Python"),
    "whole quotients": (lambda t, q, qd: 1.0 * ((t // 0.1) % 2) - qd[1], "ctl    output: traced"),
    "quotients": (lambda t, q, qd: 1.0 * (np.floor(t / 0.1) % 2) - qd[1], "ctl    output: traced"),
    "nan_to_num": (lambda t, q, qd: np.nan_to_num(np.sqrt(q[1] - 0.1)) - qd[1], "ctl    output: traced"),
    "fmax": (lambda t, q, qd: -np.fmax(np.sqrt(q[1]), 0.2) - qd[1], "ctl    output: traced"),
    "fmin": (lambda t, q, qd: -np.fmin(0.2, np.sqrt(q[1])) - qd[1], "ctl    output: traced"),
    "whole powers": (halved, "numba: its ** may be one of whole numbers with a negative exponent"),
    "whole powers of a symbol": (
        lambda t, q, qd: -(2 ** -int(3.0 * abs(q[1]))) * q[1] - qd[1],
        "ctl    output: traced",
    ),
    "sum of truths": (lambda t, q, qd: 0.3 * ((q > 0.0) + (qd > -1.0))[1] - qd[1], "it adds truths"),
    "count of truths": (lambda t, q, qd: 0.3 * np.sum(q > 0.0) - qd[1], "ctl    output: traced"),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", LOOKING)
def test_what_symbols_and_numbers_answer_differently_is_asked_of_numbers(name):
    """Such laws were written down as symbols answered: another torque, or a run that failed, without a word."""
    law, way = LOOKING[name]
    ends = {}
    for engine in ("interpreted", "compiled"):
        sim, bd = controlled(law, engine)
        ends[engine] = sim.run(bd, T=1.2, solver="RK4", dt=0.01, on_error="raise").x[-1]
    np.testing.assert_allclose(ends["compiled"], ends["interpreted"], rtol=0, atol=1e-9)
    assert way in sim.explain(bd)


def counting_by_name():
    count = 0

    def law(t, q, qd):
        nonlocal count
        count += 1
        return -q[1] - qd[1] if count < 200 else -5.0 * q[1] - qd[1]

    return law


calls = 0


def counting_in_its_module():
    def law(t, q, qd):
        global calls
        calls += 1
        return -q[1] - qd[1] if calls < 200 else -5.0 * q[1] - qd[1]

    return law


def counting_in_its_class():
    class Law:
        calls = 0

        def torque(self, t, q, qd):
            type(self).calls += 1
            return -q[1] - qd[1] if self.calls < 200 else -5.0 * q[1] - qd[1]

    return Law()


def counting_by_an_iterator():
    numbers = itertools.count()
    return lambda t, q, qd: -q[1] - qd[1] if next(numbers) < 200 else -5.0 * q[1] - qd[1]


def drawing_of_all():
    return lambda t, q, qd: -q[1] - qd[1] if np.random.uniform() < 0.9 else -5.0 * q[1] - qd[1]  # noqa: NPY002


@pytest.mark.parametrize(
    "make",
    [
        counting_by_name,
        counting_in_its_module,
        counting_in_its_class,
        counting_by_an_iterator,
        drawing_of_all,
    ],
)
def test_a_law_that_counts_or_draws_is_not_frozen(make):
    """It gave the same both times that it was asked with symbols, and was written down as the one branch."""
    sim, bd = controlled(make(), "compiled")
    np.random.seed(5)  # noqa: NPY002 (the engines are compared at the start, where a law must not happen to draw otherwise)
    sim.run(bd, T=0.05, dt=0.01, solver="RK4")
    assert "asked in Python, as it cannot be traced: it changes" in sim.explain(bd)


@pytest.mark.parametrize("where", ["a mapping", "a list"])
def test_what_a_law_notes_in_a_list_within_another_container_is_not_lost(where):
    """It was written down: a compiled run noted nothing."""

    class Law:
        def __init__(self):
            self.notes = {"gains": [3.0], "asked": []} if where == "a mapping" else [[3.0], []]

        def torque(self, t, q, qd):
            gains, asked = self.notes.values() if where == "a mapping" else self.notes
            asked.append("again")
            return -gains[0] * q[1] - qd[1]

    law = Law()
    sim, bd = controlled(law, "compiled")
    sim.run(bd, T=0.05, dt=0.01, solver="RK4")
    assert len(law.notes["asked"] if where == "a mapping" else law.notes[1]) > 5 * 4
    assert "it changes a list" in sim.explain(bd)


def test_a_law_that_draws_seldom_is_not_frozen():
    """Both draws with symbols fell on one side."""
    generator = np.random.default_rng(3)
    sim, bd = controlled(lambda t, q, qd: -q[1] if generator.random() < 0.9 else -5.0 * q[1], "auto")
    assert "it reads 'generator', a random generator" in sim.explain(bd)


# What is written into -----------------------------------------------------------------------------------


class Doubling(FunctionBlock):
    nin, nout = 1, 1

    def output(self, t, u, x):
        u[0] *= 2.0
        return [u[0]]


class Pulled(ContinuousBlock):
    nin, nout, nstates = 1, 1, 2

    def __init__(self, **options):
        super().__init__(**options)
        self._x0 = np.array([0.1, 0.2])

    def output(self, t, u, x):
        x *= 2.0
        return [x]

    def deriv(self, t, u, x):
        u[0] *= 3.0
        x -= u[0]
        return x


class Added(SampledBlock):
    nin, nout, ndstates = 1, 1, 2

    def __init__(self, **options):
        super().__init__(clock=options["bd"].clock(10, "Hz"), x0=np.array([0.1, 0.2]), **options)

    def output(self, t, u, x):
        x[0] += 1.0
        return [x]

    def next(self, t, u, x):
        u[0] += 1.0
        x += u[0]
        return x


EXPECTED = {
    Doubling: [1.0, -0.5],
    Pulled: [2.0 * (1.5 - 1.4 * math.e), 2.0 * (-0.75 + 0.95 * math.e)],  # of dx/dt = x - 3 u
    Added: [0.1 + 11 * 1.5 + 1.0, 0.2 + 11 * 0.75],
}


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("kind", [Doubling, Pulled, Added])
def test_a_block_that_writes_into_what_it_is_given_changes_no_signal_of_others(kind, engine):
    """It wrote into the output of the block before it, and into the states of the run; compiled, it was refused."""
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    source, block = bd.CONSTANT(np.array([0.5, -0.25])), kind(bd=bd, name="block")
    beside = bd.INTEGRATOR(x0=[0.0, 0.0], name="beside")
    bd.connect(source, block, beside)
    bd.connect(block, bd.INTEGRATOR(x0=[0.0, 0.0], name="behind"))
    out = sim.run(bd, T=1.0, dt=0.25, watch=["block", "beside"], rtol=1e-9)
    np.testing.assert_allclose(out.signal("block")[-1], EXPECTED[kind], rtol=1e-7)
    np.testing.assert_allclose(out.signal("beside")[-1], [0.5, -0.25])
