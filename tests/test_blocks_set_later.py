"""Numbers of blocks that are set after these were made: refused and taken as where they are made."""

import copy
import math
import re

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import CstormError, UnknownName

KALMAN = {"clock": 10, "A": [[0.9]], "B": [[1.0]], "C": [[1.0]], "Q": 1.0, "R": 0.1}
#: Numbers that a block was given, and others that were set later in their place, without a word.
SET_LATER = [
    ("PULSE", {}, {"width": 2.0}, "width: expected a part of the period, between 0 and 1, got 2"),
    ("SATURATION", {"low": -1.0, "high": 1.0}, {"low": 2.0}, "high: must not be below low"),
    ("SATURATION", {}, {"low": "much"}, "low: expected real numbers, got the text 'much'"),
    ("PIDCONTROLLER", {"D": 1.0}, {"N": -1.0}, "N: must be positive, got -1"),
    ("RATELIMITER", {"clock": 10}, {"falling": 1.0}, "falling: expected a negative rate, got 1.0"),
    ("LOOKUP1D", {"points": [0, 1, 2], "values": [0, 1, 5]}, {"values": [1.0, 2.0]}, "expected shape (3,), got (2,)"),
    ("COMPARE", {}, {"threshold": math.nan}, "threshold: expected a finite number, got nan"),
    ("CLIP", {"min": -1.0, "max": 1.0}, {"min": 2.0}, "min: 2.0 is above max, 1"),
    ("WAVEFORM", {}, {"wave": "saw"}, "wave 'saw' does not exist"),
    ("KALMAN", KALMAN, {"R": -1.0}, "R: must be positive definite"),
]


@pytest.mark.parametrize(("kind", "given", "later", "says"), SET_LATER)
def test_what_is_set_later_is_refused_as_where_the_block_is_made(kind, given, later, says):
    sim = cs.Simulation(graphics=False, progress=False)

    def make(bd, **arguments):
        if "clock" in arguments:
            arguments["clock"] = bd.clock(arguments["clock"], "Hz")
        return getattr(bd, kind)(name="it", **arguments)

    with pytest.raises(CstormError) as at_once:
        make(sim.blockdiagram(), **(given | later))
    bd = sim.blockdiagram()
    block = make(bd, **given)
    source = bd.WAVEFORM("sine", name="source")
    for port in range(block.nin):
        bd.connect(source, block[port])
    bd.connect(block, bd.INTEGRATOR(name="sum"))
    (name, value), before = next(iter(later.items())), dict(vars(block))
    setattr(block, name, value)
    for ask in (sim.run, sim.linearize):
        with pytest.raises(type(at_once.value), match=re.escape(says)) as refused:
            ask(bd)
        assert str(refused.value) == re.sub(f"^{kind}( 'it')?", f"{kind} 'it'", str(at_once.value))
    block.set_param(name, before[name]) if name in block._parameters else setattr(block, name, before[name])
    assert sim.run(bd, T=0.1).status == "finished"
    set_anew = lambda: setattr(block, name, value)  # noqa: E731
    asked = [("scheduled", {"at": {0.5: set_anew}}), ("posted", {"observer": lambda t, x: sim.post(set_anew)})]
    for how, options in asked if isinstance(value, float) else []:
        setattr(block, name, before[name])
        out = sim.run(bd, T=1.0, **options)
        assert out.status == "failed" and f"a {how} function failed at t = " in out.message
        assert f"{kind} 'it': " in out.message and says in out.message


@pytest.mark.parametrize(
    ("kind", "given", "later", "says"),
    [
        (
            "STATESPACE",
            (-1.0, 1.0, 1.0),
            {"D": [[3.0]]},
            "'D' set later makes an output that depends at once on the input",
        ),
        ("LTI_SS", (-1.0, 1.0, 1.0), {"D": [[3.0]]}, "'D' set later makes an output that depends at once on the input"),
        (
            "STATESPACE",
            (-1.0, 1.0, 1.0),
            {"A": -np.eye(2), "B": np.ones((2, 1)), "C": np.ones((1, 2))},
            "'A', 'B', 'C' set later makes another number of ports or states; make another block, bd.STATESPACE(A=…, ",
        ),
        ("SUM", ("++",), {"signs": "+-+"}, "'signs' set later makes another number of ports or states"),
    ],
)
def test_what_would_make_a_block_of_another_form_is_refused(kind, given, later, says):
    """NumPy told of its operands, or that an input that is wired has no value."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    block = getattr(bd, kind)(*given, name="it")
    bd.connect(bd.CONSTANT(2.0), *(block[port] for port in range(block.nin)))
    bd.connect(block, bd.NULL())
    for name, value in later.items():
        setattr(block, name, value)
    with pytest.raises(CstormError, match=re.escape(f"block 'it' ({kind}): {says}")):
        sim.run(bd, T=0.1)


def test_a_feedthrough_may_be_set_to_nothing():
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    it = bd.STATESPACE(-1.0, 1.0, 1.0, 3.0, name="it")
    bd.connect(bd.CONSTANT(2.0), it)
    bd.connect(it, bd.NULL())
    it.D = [[0.0]]
    out = sim.run(bd, T=0.5, watch=["it"], rtol=1e-9)
    assert out.signal("it")[-1] == pytest.approx(2.0 * (1.0 - math.exp(-0.5)), rel=1e-6)


def test_what_is_set_later_is_taken_as_where_the_block_is_made():
    """Limits may pass one another on their way, lists are arrays, and a deviation takes the place of a power."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    limit, noise = bd.SATURATION(name="limit"), bd.NOISE(bd.clock(10, "Hz"), power=0.1, name="noise")
    bd.connect(bd.CONSTANT([0.0, 5.0]), limit)
    limit.low, limit.high, noise.std = [2.0, 3.0], [2.0, 4.0], 0.0
    out = sim.run(bd, T=0.3, watch=[limit, noise], dt=0.1)
    assert np.all(out.signal("limit") == [2.0, 4.0]) and np.all(out.signal("noise") == 0.0)
    assert isinstance(limit.low, np.ndarray) and len(bd.clocklist[0].blocklist) == 1


def test_numbers_that_a_filter_was_given_in_short_are_taken_so_later():
    """One number went to all entries of a covariance, and the first gain stayed that of the old ones."""
    sim, C, found = cs.Simulation(graphics=False, progress=False), np.eye(2), []
    for later in (False, True):
        bd = sim.blockdiagram()
        R = {"R": 1.0 if later else 0.1}
        it = bd.KALMAN(bd.clock(10, "Hz"), [[1.0, 0.1], [-0.2, 1.0]], [[0.0], [0.1]], C, Q=1e-3, **R, name="it")
        bd.connect(bd.CONSTANT(1.0), it.u)
        bd.connect(bd.CONSTANT([1.0, 0.5]), it.measured)
        bd.connect(it, bd.NULL())
        if later:
            it.R = 0.1
        estimates = sim.run(bd, T=0.35, watch=["it"]).signal("it")
        slopes = sim.gradient(bd, lambda out: out.signal("it")[-1, 0], ["it.R[0,0]"], T=0.35, watch=["it"])
        found.append([*estimates.ravel(), *slopes.gradient])
        assert slopes.notes == []  # the inverse of a covariance chose its pivots, which was said to switch something
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)


@pytest.mark.parametrize("copied", [False, True])
def test_a_parameter_that_a_block_of_bdsim_does_not_have_is_named(copied):
    """bdsim's own lookup ended in KeyError: 'k'; our blocks have said this all along."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    bd.GAIN(2.0, name="slope"), bd.WAVEFORM("sine", name="wave")
    bd = copy.deepcopy(bd) if copied else bd
    slope, wave = bd["slope"], bd["wave"]
    slope.name = "gradient"
    with pytest.raises(UnknownName, match=r"^block 'gradient' \(GAIN\): parameter 'k' does not exist; .*'K'"):
        slope.set_param("k", 3.0)
    with pytest.raises(UnknownName, match=r"^block 'wave' \(WAVEFORM\): 'freq' is no tunable one; .* wave.freq = …$"):
        wave.set_param("freq", 3.0)
    slope.set_param("K", 3.0)
    assert slope.K == 3.0


def test_what_a_block_has_not_is_not_set_in_vain():
    bd = cs.Simulation(graphics=False, progress=False).blockdiagram()
    pid = bd.PIDCONTROLLER(P=1.0, name="pid")
    for name, says in (("Kp", "there are 'P', 'I', 'D'"), ("lows", "did you mean 'low'")):
        with pytest.raises(AttributeError, match=f"block 'pid': attribute '{name}' does not exist; {says}"):
            setattr(pid, name, 2.0)


@pytest.mark.parametrize(
    ("kind", "given", "name", "at_once"),
    [
        ("INTEGRATOR", {"x0": 1.0}, "x0", False),  # bdsim's, which is asked as the run starts
        ("CONTROLLER", {"mech": "acrobot", "laws": ["lqr"]}, "limit", True),
        ("CONTROLLER", {"mech": "acrobot", "laws": ["lqr"]}, "laws", True),
        ("TRANSFERFN", {"num": [1.0], "den": [1.0, 1.0]}, "num", True),
        ("EFFORT", {}, "start", True),
        ("KALMAN", KALMAN, "x0", True),
        ("DELAY", {"clock": 10}, "samples", True),
    ],
)
def test_what_a_block_keeps_nothing_of_is_not_set_in_vain(kind, given, name, at_once):
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    clock = {"clock": bd.clock(10, "Hz")} if "clock" in given else {}
    block = getattr(bd, kind)(**{**given, **clock}, name="it")
    bd.connect(bd.CONSTANT([1.0, 1.0] if kind == "CONTROLLER" else 1.0), *(block[k] for k in range(block.nin)))
    before = sim.run(bd, T=0.1).x
    says = rf"block 'it' \({kind}\): '{name}' is read only where the block is made.*another block, bd.{kind}\({name}="
    with pytest.raises(cs.InvalidValue, match=says):
        setattr(block, name, 5.0)
        assert not at_once
        sim.run(bd, T=0.1)
    assert np.array_equal(sim.run(bd, T=0.1).x, before)


def test_a_name_that_a_block_of_bdsim_does_not_have_is_refused_as_a_run_starts():
    """A gain that was set as k, or K2, went on without a word as it was; what is no slip may be kept there."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    gain, lag = bd.GAIN(-1.0, name="gain"), bd.INTEGRATOR(x0=1.0)
    bd.connect(lag, gain)
    bd.connect(gain, lag)
    before = sim.run(bd, T=0.1).x
    gain.note = "measured in May"
    for name, says in (("k", "did you mean 'K'"), ("K2", "did you mean 'K'"), ("pre_mul", "did you mean 'premul'")):
        setattr(gain, name, 3.0)
        with pytest.raises(AttributeError, match=rf"block 'gain' \(GAIN\): attribute '{name}' does not exist; {says}"):
            sim.linearize(bd) if name == "k" else sim.run(bd, T=0.1)
        assert np.array_equal(sim.run(bd, T=0.1).x, before)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("T", 0.2, "its period is 0.2 s, but block 'it' (RATELIMITER) was made for 0.1 s"),
        ("T", -0.1, "T: expected a positive number, got -0.1"),
        ("offset", math.nan, "offset: expected a finite number, got nan"),
    ],
)
def test_a_clock_of_another_period_than_its_blocks_is_refused(name, value, says):
    """With a longer period the limits of rate were those of the old one; a run with a negative one had no end."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    ticks = bd.clock(10, "Hz", name="ticks")
    bd.connect(bd.STEP(), bd.RATELIMITER(ticks, name="it"))
    setattr(ticks, name, value)
    with pytest.raises(CstormError, match=re.escape(f"clock 'ticks': {says}")):
        sim.run(bd, T=1)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_number_of_the_mechanism_is_set_in_a_run(engine):
    """`set_param` knew the mechanism alone, where `sim.tune` and sweeps know its numbers."""
    sim, arm = cs.Simulation(engine=engine, live=False, progress=False), cs.library.acrobot()
    fine = {"rtol": 1e-10, "atol": 1e-12}

    def falling(mech, x):
        bd = sim.blockdiagram()
        return bd, bd.HYBRIDDYNAMICS(mech, q0=x[:2], qd0=x[2:], actuated=[], name="plant")

    bd, plant = falling(arm, [0.3, 0.2, 0.0, 0.0])
    out = sim.run(bd, T=1.0, at={0.5: lambda: plant.set_param("forearm.mass", 2.0)}, **fine)
    first = sim.run(falling(arm, [0.3, 0.2, 0.0, 0.0])[0], T=0.5, **fine)
    second = sim.run(falling(arm.with_parameters({"forearm.mass": 2.0}), first.x[-1])[0], T=0.5, **fine)
    np.testing.assert_allclose(out.x[-1], second.x[-1], rtol=0, atol=1e-8)
    for name, says in (
        ("forearm.mas", "did you mean 'forearm.mass'"),
        ("q1", "there are 'q0', 'qd0', 'gravity', 'mech'"),
    ):
        with pytest.raises(CstormError, match=f"block 'plant': parameter '{name}' does not exist; {says}"):
            plant.set_param(name, 1.0)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        ("CONSTANT", lambda a: (a,), [1.0, 2.0]),
        ("GAIN", lambda a: (a,), [1.0, 2.0]),
        ("CLIP", lambda a: (a, 2 * a), [1.0, 2.0]),
        ("PIECEWISE", lambda a: ((0.0, a), (5.0, 2 * a)), [1.0, 2.0]),
    ],
)
def test_an_array_that_changes_later_is_another(engine, kind, arguments, expected):
    """bdsim's blocks kept the array of who made them: two of one array, scaled in between, were both of the second."""
    sim, given = cs.Simulation(engine=engine, graphics=False, progress=False), np.array([1.0, 2.0])
    bd = sim.blockdiagram()
    block = getattr(bd, kind)(*arguments(given), name="it")
    given *= -3.0
    for port in range(block.nin):
        bd.connect(bd.CONSTANT([1.0, 1.0] if kind == "CLIP" else 1.0), block[port])
    bd.connect(block, bd.INTEGRATOR(x0=[0.0, 0.0]))
    np.testing.assert_allclose(sim.run(bd, T=1.0).x[-1], expected, atol=1e-9)
    given *= 7.0
    np.testing.assert_allclose(sim.run(bd, T=1.0).x[-1], expected, atol=1e-9)
