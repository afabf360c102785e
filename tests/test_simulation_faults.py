"""What goes wrong while a diagram runs: one message that names block and port, and the data until then."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from bdsim.components import ContinuousBlock, FunctionBlock, SampledBlock, SinkBlock

import cstormpy as cs
from cstormpy.errors import CstormError


@pytest.fixture
def sim():
    return cs.Simulation()


def ramp(bd, rate=1.0):
    x = bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(rate), x)
    return x


# ------------------------------------------------------------------ what a block does wrong


class Faulty(FunctionBlock):
    """Fails in one of its methods at one time."""

    nin, nout = 1, 1

    def __init__(self, where, when=0.5, **blockargs):
        super().__init__(**blockargs)
        self.where, self.when = where, when

    def fail(self, where, t):
        if self.where == where and t >= self.when:
            raise ZeroDivisionError("by nothing")

    def output(self, t, u, x):
        self.fail("output", t)
        return [u[0]]

    def start(self, simstate):
        self.fail("start", self.when)

    def reset(self):
        super().reset()
        self.fail("reset", self.when)


class FaultyState(ContinuousBlock):
    nin, nout = 1, 1

    def __init__(self, **blockargs):
        super().__init__(x0=[0.0], **blockargs)

    def output(self, t, u, x):
        return [x[0]]

    def deriv(self, t, u, x):
        if t >= 0.5:
            raise ZeroDivisionError("by nothing")
        return np.ones(1)


class FaultySample(SampledBlock):
    nin, nout = 1, 1

    def __init__(self, clock, **blockargs):
        super().__init__(clock, x0=[0.0], **blockargs)

    def output(self, t, u, x):
        return [x[0]]

    def next(self, t, u, x):
        if t >= 0.5:
            raise ZeroDivisionError("by nothing")
        return np.ones(1)


class FaultySink(SinkBlock):
    nin = 1

    def step(self, t, u):
        if t >= 0.5:
            raise ZeroDivisionError("by nothing")


MAKERS = {
    "output": lambda bd: Faulty("output", bd=bd, name="bad"),
    "rate of the state": lambda bd: FaultyState(bd=bd, name="bad"),
    "next state": lambda bd: FaultySample(bd.clock(0.1), bd=bd, name="bad"),
    "step": lambda bd: FaultySink(bd=bd, name="bad"),
}


@pytest.mark.parametrize("operation", MAKERS)
def test_an_exception_inside_a_block(sim, operation, capsys, caplog):
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), MAKERS[operation](bd))
    out = sim.run(bd, 1.0, watch=["x"])
    assert out.status == "failed"
    for part in ("block 'bad'", operation, "ZeroDivisionError: by nothing", "output port 0 of block 'x'", "at t = 0.5"):
        assert part in out.message
    assert 0.4 < out.t[-1] <= 0.51
    assert len(out.x) == len(out.y) == len(out.t)
    assert capsys.readouterr().out == ""
    assert [record.getMessage() for record in caplog.records] == [
        f"{out.message}; {len(out.t)} samples until then are returned"
    ]
    with pytest.raises(cs.BlockError, match="bad") as caught:
        sim.run(bd, 1.0, on_error="raise")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert len(caught.value.result.t) == len(out.t)


class Forgetful(ContinuousBlock):
    """Its output needs its input, and it does not say so."""

    nin, nout, nstates = 1, 1, 1

    def __init__(self, **blockargs):
        super().__init__(x0=[0.0], **blockargs)

    def output(self, t, u, x):
        return [x[0] + 2.0 * u[0]]

    def deriv(self, t, u, x):
        return np.array([u[0]])


def test_an_input_that_is_not_there_yet(sim):
    """The message said that None cannot be multiplied, and not what to do."""

    def wired(**options):
        bd = sim.blockdiagram()
        block, gain = Forgetful(bd=bd, name="own", **options), bd.GAIN(2.0)
        bd.connect(bd.CONSTANT(1.0), gain)
        bd.connect(gain, block)
        return bd

    with pytest.raises(cs.BlockError, match=r"block 'own' .*, output at t = 0: .* is made with feedthrough=True"):
        sim.run(wired(), T=1)
    assert sim.run(wired(feedthrough=True), T=1, watch=["own"]).signal("own")[-1] == pytest.approx(6.0)


@pytest.mark.parametrize("engine", ["interpreted", "auto"])
@pytest.mark.parametrize("value", [None, [1.0, [2.0]], np.array([None])])
def test_an_output_that_is_no_signal_is_named(engine, value):
    """None within the list went into scopes in silence; rows of unequal length ended in NumPy's words."""

    class Own(FunctionBlock):
        nin, nout = 1, 1

        def output(self, t, u, x):
            return [value]

    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), Own(bd=bd, name="own"))
    with pytest.raises(cs.BlockError, match=r"^output port 0 of block 'own' is .* at t = 0; the run ends there"):
        sim.run(bd, 1.0)


def test_what_a_class_of_blocks_lacks_is_said(sim):
    """Python counted arguments of lambdas and methods; bdsim said 'incorrect length', of no block."""

    def wired(start, output, **ports):
        kind = type("Own", (ContinuousBlock,), {"output": output, "deriv": lambda self, t, u, x: u[0], **ports})
        bd = sim.blockdiagram()
        block = kind(nstates=1, bd=bd, name="own")
        block._x0 = start
        if ports:
            bd.connect(ramp(bd), block)
        return bd

    def output(self, t, u, x):
        return [x[0]]

    both = {"nin": 1, "nout": 1}
    for bd, said in (
        (wired(np.zeros(1), lambda self, t, x: [x[0]], **both), "define output(self, t, u, x)"),
        (
            wired(np.zeros(2), output, **both),
            "block 'own': has nstates=1, but its initial state _x0 has the shape (2,)",
        ),
        (wired(0.0, output, **both), "block 'own': has nstates=1, but its initial state _x0 has the shape ()"),
        (wired(np.zeros(1), output), "block 'own': has neither inputs nor outputs"),
    ):
        with pytest.raises(cs.CstormError) as caught:
            sim.run(bd, 1.0)
        assert said in str(caught.value)


NO_SIGNALS = {
    "returned None; end it with 'return'": lambda u: None,
    "returned [1.0, [2.0]], which is no number": lambda u: [[1.0, [2.0]]],
    "returned an ufunc, which is no number": lambda u: np.sin,
    "a list of 2 for 1 output; return one array, as np.array([...]), or make the block with nout=2": lambda u: [u, u],
    "TypeError: unsupported operand type(s) for +: 'float' and 'str'": lambda u: u + "m",
}


@pytest.mark.parametrize("sink", [True, False])
@pytest.mark.parametrize("said", NO_SIGNALS)
def test_a_function_that_returns_no_signal(said, sink):
    """None went into scopes, or nowhere, in silence; what was wrong within a function was hidden."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), law := bd.FUNCTION(NO_SIGNALS[said], name="law"))
    if sink:
        bd.connect(law, bd.SCOPE())
    with pytest.raises(cs.BlockError, match=r"^block 'law' \(FUNCTION\), output at t = 0: ") as caught:
        sim.run(bd, 1.0)
    assert said in str(caught.value)
    assert "TypeError" in said or "its function (line " in str(caught.value)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize(
    "end, said", [(None, "returned None"), (np.ones(3), "returned 3 numbers, 2 before this"), ("s", "returned 's'")]
)
def test_a_function_that_returns_no_signal_from_some_time_on(engine, end, said):
    """A way without `return` gave None; compiled, the run ended at a nan, or "in its compiled form only"."""

    def law(u):
        if u < 0.5:
            return np.array([u, u])
        return end

    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), bd.FUNCTION(law, name="law"))
    out = sim.run(bd, 1.0, watch=["law"])
    assert out.status == "failed" and said in out.message and "block 'law'" in out.message
    assert out.t[-1] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("stops", [lambda: True, lambda x: None, lambda x: x.foo, lambda x: np.array([x, x]) > 0.5])
def test_a_stop_whose_function_fails_is_named(engine, stops):
    """Python's or bdsim's own error left the run, without the block."""
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), bd.STOP(stops, name="halt"))
    with pytest.raises(cs.BlockError, match=r"^block 'halt' \(STOP\), condition at t = 0: .*; STOP looks at one"):
        sim.run(bd, 1.0)


def test_a_gain_of_a_list_is_one_of_an_array(sim):
    """Python cannot multiply a list by a number."""
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), bd.GAIN([1.0, 2.0], name="gain"))
    np.testing.assert_allclose(sim.run(bd, 1.0, watch=["gain"]).signal("gain")[-1], [1.0, 2.0])


@pytest.mark.parametrize("where", ["start", "reset"])
def test_an_exception_before_the_first_sample_is_raised(sim, where):
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), Faulty(where, when=-1.0, bd=bd, name="bad"))
    with pytest.raises(cs.CstormError, match="by nothing"):
        sim.run(bd, 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, [1.0, math.nan], np.nan, complex(0, math.nan)])
def test_a_value_that_is_not_finite(sim, bad):
    bd = sim.blockdiagram()
    time_ = bd.TIME()
    f = bd.FUNCTION(lambda t: np.asarray(bad) if t > 0.5 else np.zeros(np.shape(bad)), name="user")
    bd.connect(time_, f)
    ramp(bd)
    out = sim.run(bd, 1.0)
    assert out.status == "failed"
    assert "output port 0 of block 'user'" in out.message and ("nan" in out.message or "inf" in out.message)
    assert 0.48 < out.t[-1] < 0.52 and "at t = 0.50" in out.message
    assert sim.run(bd, 1.0, checkfinite=False).status == "finished"


def test_nan_into_a_state_ends_the_run_with_the_last_good_state(sim):
    bd = sim.blockdiagram()
    x, root = bd.INTEGRATOR(x0=1.0, name="x"), bd.FUNCTION(lambda x: np.sqrt(x) - 2.0, name="root")
    bd.connect(x, root)
    bd.connect(root, x)
    with np.errstate(invalid="ignore"):
        out = sim.run(bd, 5.0)
    assert out.status == "failed"
    assert "output port 0 of block 'root' (FUNCTION) is nan" in out.message
    assert np.isfinite(out.x).all() and len(out.t) > 10
    assert np.isfinite(out.state.continuous["x"]).all()


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_steps_that_are_too_long_are_named(engine):
    """A diagram that is stable but for the length of its steps ended with the names of what overflowed."""
    sim = cs.Simulation(graphics=False, engine=engine)
    bd = sim.blockdiagram()
    bd.connect(x := bd.INTEGRATOR(x0=1.0, name="x"), cube := bd.FUNCTION(lambda u: -(u**3)))
    bd.connect(cube, x)
    assert sim.run(bd, T=10.0, solver="RK4", dt=0.01).status == "finished"
    out = sim.run(bd, T=100.0, solver="RK4", dt=5.0)
    assert out.status == "failed" and out.message.endswith("perhaps as dt = 5 s is too long a step")


def test_a_state_that_blows_up(sim):
    """x' = x², from 1: infinite at t = 1."""
    bd = sim.blockdiagram()
    x, square = bd.INTEGRATOR(x0=1.0, name="x"), bd.FUNCTION(lambda x: x * x)
    bd.connect(x, square)
    bd.connect(square, x)
    for solver in ("RK45", "DOP853", "Radau", "LSODA"):
        with np.errstate(all="ignore"):
            out = sim.run(bd, 2.0, solver=solver)
        assert out.status == "failed", solver
        assert out.t[-1] == pytest.approx(1.0, abs=1e-2)
        assert ("x" in out.message and "at t = 1" in out.message) or "0.99" in out.message
        assert np.isfinite(out.x).all()
    with np.errstate(all="ignore"):
        out = sim.run(bd, 2.0, solver="RK4", dt=0.01)
    assert out.status == "failed" and 1.0 < out.t[-1] < 1.2


@pytest.mark.parametrize("value", [5.0, None, {1: 2}, "text", (1, 2), []])
def test_an_output_that_is_no_list_of_its_length(sim, value):
    class Wrong(FunctionBlock):
        nin, nout = 1, 1

        def output(self, t, u, x):
            return value

    bd = sim.blockdiagram()
    bd.connect(ramp(bd), Wrong(bd=bd, name="wrong"))
    with pytest.raises(cs.BlockError, match=r"block 'wrong'.* must return (a list of 1 value|1 value)"):
        sim.run(bd, 1.0)


@pytest.mark.parametrize("value", [[1.0, 2.0], np.ones(3), None, "text", np.ones((1, 2))])
def test_a_rate_of_another_width(sim, value):
    class Wrong(FaultyState):
        def deriv(self, t, u, x):
            return value

    bd = sim.blockdiagram()
    bd.connect(ramp(bd), Wrong(bd=bd, name="wrong"))
    with pytest.raises(cs.CstormError, match="block 'wrong'"):
        sim.run(bd, 1.0)


def test_an_integrator_narrower_than_its_signal(sim):
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT([1.0, 2.0]), bd.INTEGRATOR(x0=0.0, name="narrow"))
    with pytest.raises(
        cs.DiagramError, match=r"block 'narrow' \(INTEGRATOR\): has 1 state, .*shape \(2,\).*initial state"
    ):
        sim.run(bd, 1.0)


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (lambda block, states: {}["missing"], "KeyError: 'missing'"),
        (lambda block, states: [None][0][0], "TypeError: 'NoneType' object is not subscriptable"),
        (lambda block: [None][0][0], "TypeError: 'NoneType' object is not subscriptable"),
        (lambda block, states=None: states[0][0] + "", "KeyError: 0"),
    ],
)
def test_an_exception_in_a_handler_of_events(sim, handler, said):
    """bdsim calls one that raises a TypeError once more, without the states, and tells of that."""
    bd = sim.blockdiagram()
    x = ramp(bd)
    late = bd.FUNCTION(lambda x: x - 0.5)
    bd.connect(x, late)
    bd.connect(late, bd.EVENT("^", handler, name="event"))
    out = sim.run(bd, 1.0)
    where = f"(line {handler.__code__.co_firstlineno} of test_simulation_faults.py, in <lambda>)"
    assert out.status == "failed" and "block 'event', event handler at t = 0.5" in out.message
    assert f": {said} {where}" in out.message
    assert out.t[-1] == pytest.approx(0.5, abs=0.02)


def test_what_fails_within_a_law_is_told_with_its_line(sim):
    class Mistaken:
        def torque(self, t, q, qd):
            return q[7] if t > 0.1 else 0.0

    bd = sim.blockdiagram()
    plant, law = bd.HYBRIDDYNAMICS("acrobot"), bd.CONTROLLER("acrobot", Mistaken(), name="law")
    bd.connect(plant.q, law[0])
    bd.connect(plant.qd, law[1])
    bd.connect(law.tau, plant.tau)
    line = Mistaken.torque.__code__.co_firstlineno + 1
    assert f"(line {line} of test_simulation_faults.py, in torque)" in sim.run(bd, 0.3).message


@pytest.mark.parametrize("way", ["at", "observer", "post"])
def test_an_exception_in_a_function_of_the_user(sim, way):
    bd = sim.blockdiagram()
    ramp(bd)

    def fail(t=0.5, x=None):
        if t >= 0.5:
            raise KeyError("missing")

    options = {"at": {0.5: fail}} if way == "at" else {"observer": fail} if way == "observer" else {}
    if way == "post":
        options = {"at": {0.5: lambda: sim.post(fail)}}
    out = sim.run(bd, 1.0, **options)
    assert out.status == "failed" and "KeyError: 'missing'" in out.message and "t = 0.5" in out.message
    assert len(out.t) > 40


# ------------------------------------------------------------------ wrong arguments of run

WRONG = {
    "T": [0, -1.0, math.nan, math.inf, None, "long", [1.0], object()],
    "dt": [0, -1.0, math.nan, math.inf, "fine", [], object()],
    "max_step": [0, -1.0, math.nan, "small", object()],
    "solver": ["RK99", "", None, 5, object(), int, []],
    "solver_args": [5, "x", [1], {"rtol": -1}, {"rtol": "x"}, {"max_step": "x"}],
    "rtol": [-1.0, 0, math.nan, "x", [], object()],
    "atol": [-1.0, math.nan, "x", object()],
    "log_dt": [0, -1.0, math.nan, "x", object()],
    "first_tick": [1, "ours", None, [], np.zeros(2)],
    "start": [5, "x", [1.0, 2.0], [math.nan], object(), {"t": 0}, [[1.0]]],
    "at": [5, [1], {"x": print}, {0.1: 5}, {-1.0: print}, {math.nan: print}, {None: print}, lambda: None],
    "observer": [5, "x", [print]],
    "on_error": ["ignore", None, 5, []],
    "watch": [5, 5.0, object(), ["nowhere"], "nowhere", ["x[7]"], ["x.nothing"], [None], [[]], {"x": 1, 5: 6}],
    "debug": [5, [], object()],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_arguments_are_refused_by_name(sim, name, value):
    bd = sim.blockdiagram()
    ramp(bd)
    with pytest.raises(cs.CstormError) as caught:
        sim.run(bd, **{"T": 0.2, name: value})
    assert name in str(caught.value) or (name == "solver_args" and "expected a positive" in str(caught.value))
    # and nothing is left behind
    assert sim.run(bd, 0.2).status == "finished"


@pytest.mark.parametrize("thing", [None, 5, "diagram", object(), [], np.zeros(3)])
def test_run_of_what_is_no_diagram(sim, thing):
    with pytest.raises(cs.InvalidType, match="expected a diagram"):
        sim.run(thing)


def test_run_of_an_empty_diagram(sim):
    with pytest.raises(cs.DiagramError, match=r"diagram 'main': has no blocks; make some"):
        sim.run(sim.blockdiagram())


@pytest.mark.parametrize("options", [{"engine": "warp"}, {"grafics": True}, {"engine": None}])
def test_wrong_options_of_a_simulation(options):
    with pytest.raises(cs.UnknownName):
        cs.Simulation(**options)


@pytest.mark.parametrize(
    ("make", "signal", "says"),
    [
        (lambda bd: bd.LTI_SISO([1.0], [1.0, 1.0], name="it"), 1 + 2j, "states are real numbers"),
        (lambda bd: bd.INTEGRATOR_S(bd.clock(10, "Hz"), x0=0.0, name="it"), 1 + 2j, "states are real numbers"),
        (lambda bd: bd.INTEGRATOR(name="it"), np.True_, r"made a number by float\(\.\.\.\)"),
    ],
)
def test_signals_that_are_no_real_numbers_reach_no_states(sim, make, signal, says):
    """Of a complex rate the real part was taken, without a word."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(signal), block := make(bd))
    bd.connect(block, bd.INTEGRATOR(name="y"))
    with pytest.raises(CstormError, match=f"block 'it' .*{says}"):
        sim.run(bd, T=1.0, on_error="raise")


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("kind", ["QUANTIZER", "RELAY", "COMPARE"])
def test_a_signal_without_elements_is_switched(kind, engine):
    """NumPy has no least of none: its ValueError came from the depths of a run."""
    bd = (sim := cs.Simulation(engine=engine)).blockdiagram()
    bd.connect(bd.CONSTANT(np.zeros(0)), block := getattr(bd, kind)(name="it"))
    bd.connect(block, bd.NULL())
    ramp(bd)
    assert sim.run(bd, T=0.1, watch=["it"]).signal("it").shape[1:] == (0,)


@pytest.mark.parametrize(("key", "said"), [("level", "states[bd['level']]"), ("other", "")])
def test_a_handler_that_looks_for_states_by_a_name_is_told_how(key, said):
    sim = cs.Simulation(progress=False, live=False)
    bd = sim.blockdiagram()
    level = bd.INTEGRATOR(-0.1, name="level")
    bd.connect(bd.CONSTANT(1.0), level)
    bd.connect(level, bd.EVENT("^", lambda block, states: states[key].fill(0.0), name="event"))
    out = sim.run(bd, T=0.2)
    assert out.status == "failed" and f"KeyError: '{key}'" in out.message
    assert ("not of names" in out.message) == bool(said) and said in out.message


def test_a_handler_that_fails_with_a_key_error_of_nothing_is_told():
    """What looked for a name in it failed itself, and that was what the run said."""
    sim = cs.Simulation(progress=False, live=False)
    bd = sim.blockdiagram()
    level = bd.INTEGRATOR(-0.1, name="level")

    def fail(block, states):
        raise KeyError

    bd.connect(bd.CONSTANT(1.0), level)
    bd.connect(level, bd.EVENT("^", fail, name="event"))
    out = sim.run(bd, T=0.2)
    assert out.status == "failed" and "event handler" in out.message and "KeyError" in out.message


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_the_function_of_an_event_gets_wrong_is_told(engine):
    """A misspelt number or state was set in silence, so that a protection did nothing."""

    def misspelt(block):
        level.vlaue = 0.0

    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    x, level = bd.INTEGRATOR(-1.0, name="x"), bd.CONSTANT(2.0, name="level")
    bd.connect(level, x)
    bd.connect(x, bd.EVENT("^", misspelt, name="trip"))
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and "block 'trip' (EVENT), event handler at t = 0.5: " in out.message
    assert "attribute 'vlaue' does not exist; did you mean 'value'?" in out.message


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (
            lambda t, block, states: None,
            r"\(line \d+ of .*\) cannot be called as f\(block, states\): missing a required",
        ),
        (lambda: None, r"cannot be called as f\(block, states\): too many"),
        (lambda block, states: -0.5 * states[block.bd["level"]], r"returned .*, which changes nothing; write into the"),
        (lambda block, states: states[1], "not by numbers"),
        (lambda block, states: states[block], r"block 'event' has no states"),
        (
            lambda block, states: states.update(level=np.zeros(1)),
            r"set states\['level'\], but .* the name of one: states\[bd\['level'\]\]",
        ),
        (
            lambda block, states: states.update({1: 0.0}),
            r"set states\[1\], but states are those of blocks; states\[block\]",
        ),
        (lambda block, states: states.clear(), "took away the states of block 'level'"),
        (lambda block, states: states.update({block.bd["level"]: np.array([1j])}), "which are real numbers"),
        (
            lambda block, states: states[block.bd["level"]].fill(math.nan),
            r"it left \[nan\] in the states of block 'level'",
        ),
    ],
)
def test_slips_of_handlers_are_told(sim, handler, said):
    """States that a handler returned were dropped in silence, and an argument too many was counted as two."""
    bd = sim.blockdiagram()
    level = bd.INTEGRATOR(-0.1, name="level")
    bd.connect(bd.CONSTANT(1.0), level)
    bd.connect(level, bd.EVENT("^", handler, name="event"))
    out = sim.run(bd, T=0.2)
    assert out.status == "failed" and re.search(rf"block 'event', event handler .*{said}", out.message)


def test_a_handler_may_return_what_it_wrote_into(sim):
    bd = sim.blockdiagram()
    level = bd.INTEGRATOR(-0.1, name="level")
    bd.connect(bd.CONSTANT(1.0), level)
    bd.connect(level, bd.EVENT("^", lambda block, states: states[level].__isub__(0.05), name="event"))
    assert sim.run(bd, T=0.17).x[-1, 0] == pytest.approx(-0.03, abs=1e-9)


def test_an_event_of_several_numbers_is_named(sim):
    bd = sim.blockdiagram()
    bd.connect(bd.INTEGRATOR([0.0, 1.0], name="both"), bd.EVENT("^", lambda block: None, name="event"))
    bd.connect(bd.CONSTANT([1.0, 1.0]), bd["both"])
    with pytest.raises(cs.BlockError, match=r"block 'event', condition .* scalar.*bd\.INDEX\(\[0\]\) takes one"):
        sim.run(bd, T=0.2)
