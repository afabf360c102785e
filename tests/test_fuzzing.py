"""Whatever is given to the package, only errors of its own come out, in words for a user."""

import contextlib
import io
import json
import math

import fuzzing
import numpy as np
import pytest

import cstormpy as cs
from cstormpy import library
from cstormpy.arguments import entries, flag, function, mapping, one_of, option, positive
from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue, NonFinite, UnknownName, shown

HUGE = 10**400


@pytest.fixture(scope="module")
def sim():
    return cs.Simulation(live=False, progress=False, graphics=False, engine="interpreted")


@pytest.fixture
def bd(sim):
    diagram = sim.blockdiagram()
    plant = diagram.HYBRIDDYNAMICS("pendulum", name="plant")
    diagram.connect(diagram.CONSTANT([0.0], name="torque"), plant.tau)
    return diagram


@pytest.mark.parametrize("group", ["mechanism", "mech", "spline", "block"])
def test_some_of_many_trials_bring_out_only_our_own_errors(group):
    """The whole is tests/fuzzing.py, run by hand with 100 000 trials."""
    findings, counts = fuzzing.fuzz(250, seed=3, only=group)
    assert findings == [] and sum(counts.values()) == 250


@pytest.mark.slow
def test_many_trials_bring_out_only_our_own_errors():
    findings, counts = fuzzing.fuzz(4000, seed=5)
    assert findings == [] and set(counts) == set(fuzzing.SHARES) == set(fuzzing.TARGETS)


def test_the_harness_finds_what_it_is_to_find():
    """A fuzzer that reports nothing may be one that sees nothing."""

    class _Private(InvalidValue):
        pass

    def fails(kind):
        raise {"foreign": KeyError("x"), "private": _Private("x"), "jargon": InvalidValue("got <U3")}.get(
            kind, InvalidValue("x is too large")
        )

    target = fuzzing.Target("test", "fails", fails)
    whats = [found and found.what for found in (fuzzing.judged(target, {"kind": k}) for k in ("foreign", "private"))]
    assert whats == ["KeyError: 'x'", "private class _Private"]
    assert fuzzing.judged(target, {"kind": "jargon"}).what == "jargon '<U3'"
    assert fuzzing.judged(target, {"kind": "ours"}) is None
    assert fuzzing.judged(target, {"sort": "ours"}) is None  # Python's own word on names of arguments


@pytest.mark.parametrize("value", [np.zeros(2), np.array([]), np.zeros((2, 2))])
def test_options_of_a_simulation_that_are_arrays_are_refused(value):
    """NumPy said that the truth value of an array is ambiguous."""
    with pytest.raises(UnknownName, match=r"^engine an array of shape .* does not exist; there are 'auto'"):
        cs.Simulation(engine=value)
    with pytest.raises(InvalidValue, match=r"^live: expected True, False or 'auto', got an array of shape"):
        cs.Simulation(live=value)
    with pytest.raises(InvalidType, match=r"^Simulation: progress: expected True or False, got an array of shape"):
        cs.Simulation(progress=value)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda sim, bd: sim.run(bd, engine="compiled"), r"run: argument 'engine' .*: Simulation\(engine=\.\.\.\)"),
        (lambda sim, bd: sim.run(bd, x0=[0.0]), "run: argument 'x0' does not exist; .*start=x"),
        (lambda sim, bd: sim.run(bd, t_end=3.0), "run: argument 't_end' does not exist; the time to run is T"),
        (lambda sim, bd: sim.run(bd, rtoll=1e-3), "run: argument 'rtoll' does not exist; did you mean 'rtol'"),
        (lambda sim, bd: sim.run(), r"run: needs 'bd', as in run\(bd\)"),
        (lambda sim, bd: sim.run(bd, *range(1, 15)), "run: takes bd, T, .* by place, got 15"),
        (
            lambda sim, bd: sim.linearize(bd, input="a"),
            "linearize: argument 'input' does not exist; did you mean 'inputs'",
        ),
        (lambda sim, bd: sim.stepper(bd, ["a"], ["b"], substep=2), "stepper: argument 'substep' .* 'substeps'"),
        (lambda sim, bd: sim.report(bd, "run.html"), "report: takes path by place, got 2"),
        (
            lambda sim, bd: sim.gradient(bd, "x"),
            r"gradient: needs 'parameters', as in gradient\(bd, cost, parameters\)",
        ),
        (lambda sim, bd: sim.tune(bd, "x", ["k"], 1.0, {}), "tune: takes bd, cost, parameters, T by place, got 5"),
        (lambda sim, bd: sim.sweep(bd, {}, ["x"], 1.0, 2), "sweep: takes diagram, grid, measure, T by place, got 5"),
        (lambda sim, bd: sim.periodic_orbit(), "periodic_orbit: needs 'bd'"),
        (lambda sim, bd: sim.phase_portrait(bd), r"needs 'xlim', as in phase_portrait\(bd, xlim=\.\.\., ylim=\.\.\.\)"),
        (lambda sim, bd: sim.to_fmu(bd, "a.fmu", input=["a"]), "to_fmu: argument 'input' .* did you mean 'inputs'"),
        (lambda sim, bd: sim.explain(bd, 1), "explain: takes bd by place, got 2"),
        (lambda sim, bd: sim.blockdiagram(nam="a"), "blockdiagram: argument 'nam' .* did you mean 'name'"),
    ],
)
def test_arguments_that_a_simulation_does_not_take_are_named_with_what_it_takes(ask, says):
    """They got Python's own words."""
    sim = cs.Simulation(live=False, progress=False)
    with pytest.raises((UnknownName, InvalidType), match=says) as caught:
        ask(sim, sim.blockdiagram())
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"live": np.zeros(2)}, "live: expected True, False or 'auto', got an array of shape"),
        ({"solver_args": np.zeros(2)}, "solver_args: expected a dict, got an array"),
        ({"pace": np.zeros(2)}, "pace: expected a number .* or None, got an array"),
        ({"on_error": np.zeros(2)}, "on_error: expected 'return' or 'raise', got an array"),
        ({"first_tick": np.zeros(2)}, "first_tick: expected 0 or 'bdsim', got an array"),
        ({"checkfinite": np.zeros(2)}, "checkfinite: expected True or False, got an array"),
        ({"threaded": np.zeros(2)}, "threaded: expected True or False, got an array"),
        ({"T": HUGE}, "T: expected a positive number, got a whole number of more than 20"),
        ({"dt": HUGE}, "dt: expected a positive number, got a whole number of more than 20"),
        ({"rtol": HUGE}, "rtol: expected a positive number, got a whole number of more than 20"),
        ({"pace": HUGE}, "pace: expected a positive number .*, got a whole number of more than 20 digits"),
        ({"watch": np.array(5.0)}, "watch: expected blocks, their ports or names"),
        ({"dt": 1e-320}, "dt: steps of 1e-320 s are too short to be told apart in 0.01 s"),
    ],
)
def test_options_of_a_run_are_checked_by_one_rule(sim, bd, options, says):
    with pytest.raises(CstormError, match=says):
        sim.run(bd, **{"T": 0.01, **options})


@pytest.mark.parametrize("key", ["format", "version"])
@pytest.mark.parametrize("made", [library.acrobot(), cs.BSpline.clamped([[0.0]] * 4, 1.0)])
def test_documents_whose_format_is_an_array_are_refused(made, key):
    with pytest.raises(FileFormatError):
        type(made).from_dict({**made.to_dict(), key: np.zeros(2)})


@pytest.mark.parametrize("kind", [cs.Mechanism, cs.BSpline])
def test_files_that_cannot_be_read_are_named_by_an_error_of_ours(kind, tmp_path):
    """OSError and "embedded null byte" came out of the depths; a missing file is a FileNotFoundError still."""
    with pytest.raises(cs.FileReadError, match=r"none\.json: cannot be read: No such file") as missing:
        kind.load(tmp_path / "none.json")
    assert isinstance(missing.value, FileNotFoundError)
    with pytest.raises(cs.FileReadError, match=r"cannot be read") as folder:
        kind.load(tmp_path)
    assert isinstance(folder.value, OSError) and folder.value.errno
    for name in ("a\0b", "\ud800", ""):
        with pytest.raises(InvalidValue, match="is not the name of a file"):
            kind.load(name)


def test_single_slips_of_the_fuzz_are_named():
    mech = library.acrobot()
    knots = cs.clamped_knots(6, 3)
    with pytest.raises(UnknownName, match=r"mechanism an array of shape \(2,\) does not exist"):
        library.get(np.zeros(2))
    for make in (library.branched_acrobot, library.pendulum):
        with pytest.raises(NonFinite, match=r"length: a rod of 1e\+308 m and 1 kg has an inertia that is too large"):
            make(length=1e308)
    with pytest.raises(InvalidType, match="conditions: expected EndConditions, got 'x'"):
        cs.ControlPointMap(knots, 3, 2, 1.0, conditions="x")
    with pytest.raises(CstormError, match="tau"):
        mech.trim(tau=[[1, 2], [3]])
    with pytest.raises(InvalidType, match=r"to_base: expected True or False, got an array of shape \(2,\)"):
        mech.hybrid_sensitivity([0.1, 0.2], [0.0, 0.0], [0.0, 0.0], to_base=np.zeros(2))
    with pytest.raises(CstormError, match="limit"):
        cs.control.Off(mech, limit=[[1, 2], [3]])


MASKED = np.ma.masked_array([1.0, 2.0], [True, False])


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        ("SUM", ("+-x",), r"SUM: signs: expected a text of \+ and -, one for each input, as '\+-', got '\+-x'"),
        ("PROD", ("*x",), r"PROD: ops: expected a text of \* and /, one for each input, as '\*/', got '\*x'"),
        ("PID", (), "PID: needs a gain I or D, as in "),
        ("ZOH", (), "ZOH: needs 'clock', as in "),
        ("GAIN", (1, 2, 3), r"GAIN: takes 2 arguments \(K, premul\), got 3"),
        ("WAVEFORM", ("sin",), "WAVEFORM: wave 'sin' does not exist; did you mean 'sine'"),
        ("WAVEFORM", ("sine", 1.0, "hz"), "WAVEFORM: unit 'hz' does not exist; did you mean 'Hz'"),
        ("WAVEFORM", ("sine", 0.0), "WAVEFORM: freq: expected a positive number, got 0"),
        ("WAVEFORM", ("square", math.nan), "WAVEFORM: freq: expected a number, got nan"),
        ("WAVEFORM", ("sine", 1.0, "Hz", 90.0), "WAVEFORM: phase: expected a part of a period, from 0 to 1, got 90"),
        ("WAVEFORM", ("sine", 1.0, "Hz", 0.0, None), "WAVEFORM: amplitude: expected a number, got None"),
        ("WAVEFORM", ("sine", 1.0, "Hz", 0.0, 1.0, 0.0, 2.0), "WAVEFORM: needs both min and max, or amplitude and"),
        ("ZOH", (0.1,), r"ZOH: clock: expected a clock, as bd\.clock\(100, 'Hz'\), got 0\.1"),
        ("STEP", ("1",), "STEP: T: expected a number, got '1'"),
        ("FUNCTION", ("sin",), "FUNCTION: func: expected a function, as numpy.sin, or a list of them, got 'sin'"),
        ("FUNCTION", (lambda a, b: a,), "FUNCTION: cannot be made: the function takes 2 arguments, nin=1"),
        ("STEP", (math.nan,), "STEP: T: expected a number, got nan"),
        ("RAMP", (None,), "RAMP: T: expected a number, got None"),
        ("INTEGRATOR", (None,), "INTEGRATOR: x0: expected a number, got None"),
        ("GAIN", ([1.0, "a"],), "GAIN: K: expected real numbers, got text"),
        ("LTI_SISO", (1, [0, 1]), r"LTI_SISO: D: must not begin with 0, got \[0, 1\]"),
        ("LTI_SISO", ([math.nan], [1, 1]), "LTI_SISO: N: expected finite numbers, got nan"),
        ("LTI_SISO", ([1], [[1, 1], [1, "a"]]), "LTI_SISO: D: expected real numbers, got text"),
        ("LTI_SISO_S", (None, [1, None], [1, 1, 1]), "LTI_SISO_S: N: expected real numbers, got None"),
        ("DERIV", (0.0,), "DERIV: alpha: expected a positive number, got 0"),  # which never differentiated
        ("DERIV2", (10.0, "rad/s", -1.0), "DERIV2: zeta: expected a positive number, got -1"),
        ("INTERPOLATE", (), r"INTERPOLATE: needs 'x' and 'y', as in bd\.INTERPOLATE"),
        ("DEMUX", ([1, 1],), r"DEMUX: nout: expected a whole number, got \[1, 1\]"),
        ("MUX", (0,), "MUX: nin: expected at least 1, got 0"),
        ("CLIP", (1.0, -1.0), r"CLIP: min: 1\.0 is above max, -1\.0"),
        ("CONSTANT", (MASKED,), "CONSTANT: value: expected numbers, got an array in which some are masked"),
        ("GAIN", (np.ma.masked,), "GAIN: K: expected numbers, got an array in which some are masked"),
        ("LTI_SISO", ([1], [1, 1], [[1, 2]]), r"LTI_SISO: x0: expected shape \(\) or \(N,\), got \(1, 2\)"),
        ("STEP", ("soon",), "STEP: T: expected a number, got 'soon'"),
        ("STEP", ([1.0],), "STEP: T: expected one number, got an array of shape"),
        ("RAMP", (1j,), "RAMP: T: expected a number, got 1j"),
        ("SCOPE", (1, None, None, [True]), "SCOPE: stairs: expected True or False"),
        ("SCOPE", (1, None, None, False, {"a": 1}), "SCOPE: scale: expected real numbers, got"),
        ("SCOPE", (1, None, None, False, "auto", ["x", 1]), "SCOPE: labels: expected a text for each signal, got 1 am"),
        ("SCOPE", (1, None, None, False, "auto", None, True, [1.0]), r"SCOPE: title: expected a text, got \[1.0\]"),
        ("SCOPEXY", (None, "auto", "equal", 0.5), "SCOPEXY: labels: expected"),
        ("SCOPEXY", (None, "auto", [1.0]), "SCOPEXY: aspect: expected a text, got"),
        ("PIECEWISE", ([(0, 1), (1, 2)],), r"PIECEWISE: expected pairs of a time and a value, as bd\.PIECEWISE\(\(0, "),
        ("PIECEWISE", ([0, 1], [1, "a"]), r"PIECEWISE: expected pairs of a time and a value"),
        ("PIECEWISE", (0.0, 1.0), r"PIECEWISE: expected pairs of a time and a value"),
        ("PIECEWISE", (), r"PIECEWISE: expected pairs of a time and a value, as .* got None"),
        ("PIECEWISE", ((1.0, 1.0), (2.0, 5.0)), r"PIECEWISE: has no value before t = 1; begin with a pair of time 0"),
        ("PIECEWISE", ((0.0, 1.0), (0.0, 5.0)), r"PIECEWISE: times must increase, but 0 stands behind 0"),
    ],
)
def test_blocks_of_bdsim_are_refused_in_one_sentence(sim, kind, given, says):
    """bdsim said "invalid sign", and "cannot access local variable 'out_sum'"."""
    bd = sim.blockdiagram()
    given = (bd.clock(10, "Hz"), *given[1:]) if kind == "LTI_SISO_S" else given
    with pytest.raises(CstormError, match=f"^{says}") as caught:
        getattr(bd, kind)(*given)
    assert "Error" not in str(caught.value)
    with pytest.raises(CstormError, match="^" + says.replace(kind, f"{kind} 'own'", 1)):  # which of many it is
        getattr(bd, kind)(*given, name="own")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((0,), "clock: expected a positive number, got 0"),  # a run stood still
        (("10", "Hz"), "clock: expected a positive number, got '10'"),
        ((10, "hz"), "clock: unit 'hz' does not exist; did you mean 'Hz'"),
    ],
)
def test_a_clock_that_cannot_tick_is_refused(sim, given, says):
    with pytest.raises(CstormError, match=f"^{says}"):
        sim.blockdiagram().clock(*given)


@pytest.mark.parametrize("parameters", [{"subsys": None}, {"subsys": 3}, {"outlabels": "x"}, {"bd": 1}, {"name": "x"}])
@pytest.mark.parametrize("kind", ["SUBSYSTEM", "INPORT", "OUTPORT"])
def test_a_bd_file_with_odd_parameters_is_refused_by_name(sim, tmp_path, kind, parameters):
    block = {"id": 1, "block_type": kind, "title": "it", "inputs": [], "outputs": [], "parameters": parameters}
    path = tmp_path / "odd.bd"
    path.write_text(json.dumps({"blocks": [block], "wires": []}))
    with contextlib.suppress(CstormError), contextlib.redirect_stdout(io.StringIO()):
        sim.load(path)


def test_what_was_given_is_shown_in_words():
    """Messages showed NumPy's names of types (<U3), addresses of objects, and digits without end."""
    assert shown(np.array(["abc"])) == "an array of shape (1,)"
    assert shown(np.array("x")) == "'x'" and shown(np.float64(0.5)) == "0.5"
    assert shown(HUGE) == "a whole number of more than 20 digits"
    assert shown(iter([1])) == "a list_iterator" and shown(["x" * 200]) == "a list"
    assert "object at 0x" not in shown([object()])

    assert shown(np.longdouble(0.5)) == "0.5" and shown(np.clongdouble(1j)) == "1j"  # went on without end
    within = []
    within += [within, within]
    assert shown(within) == "a list"

    class _Hidden:
        pass

    assert shown(_Hidden()) == "a Hidden" and shown(_Hidden) == "the class Hidden"
    plant = cs.Simulation(live=False).blockdiagram().HYBRIDDYNAMICS("pendulum", name="plant")
    with pytest.raises(UnknownName) as caught:
        plant.tua  # noqa: B018
    assert not type(caught.value).__name__.startswith("_")


def test_the_checkers_of_arguments():
    assert one_of(np.bool_(True), "live", (True, False, "auto")) is True
    assert option("auto", "engine", ("auto",)) == "auto" and flag(np.bool_(False), "hold") is False
    assert positive(np.float32(0.5), "dt") == 0.5 and mapping(None, "at") == {} and entries((1, 2), "names") == [1, 2]
    assert function(abs, "curve", "times") is abs
    for check, value in (
        (lambda v: one_of(v, "x", (0, "bdsim")), "0"), (lambda v: option(v, "x", ("auto",)), "atuo"),
        (lambda v: flag(v, "x"), 1), (lambda v: positive(v, "x"), -1.0), (lambda v: positive(v, "x"), "1"),
        (lambda v: mapping(v, "x"), [1]), (lambda v: entries(v, "x"), np.array(1.0)), (lambda v: entries(v, "x"), "ab"),
        (lambda v: function(v, "x", "times"), 3),
    ):  # fmt: skip
        with pytest.raises(CstormError, match=r"^x"):
            check(value)


@pytest.mark.parametrize("value", [np.array(0.5, dtype=object), np.array(None)])
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_signal_that_is_an_array_of_one_object_is_a_number_or_refused(engine, value):
    """A TypeError came, "iteration over a 0-d array"."""
    sim = cs.Simulation(live=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(value), bd.INTEGRATOR(name="x"))
    with contextlib.suppress(CstormError):
        assert sim.run(bd, T=1.0).x[-1, 0] == pytest.approx(0.5)
