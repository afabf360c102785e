"""Files of bdedit on the command line: run, trusted or refused, and what is missing in them."""

import json
import shutil
from pathlib import Path

import bd_files
import numpy as np
import pytest
from command_lines import BUILD, script

import cstormpy as cs
from cstormpy import cli
from cstormpy.mechanism import library
from cstormpy.simulation import simulation

pytestmark = pytest.mark.usefixtures("somewhere_else")


def test_a_file_of_another_kind_is_refused(cstorm):
    Path("notes.txt").touch()
    assert "expected a Python script (.py) or a diagram of bdedit (.bd)" in cstorm("run", "notes.txt")[2][0]


def test_a_bd_file_is_run(cstorm):
    status, said, errors = cstorm("run", bd_files.path("pendulum"), "-T", 0.5)
    assert (status, said, errors) == (0, ["pendulum: reached the end; the report is pendulum.html"], [])
    shutil.copy(bd_files.path("pendulum"), "SWING.BD")  # as some systems write it
    assert cstorm("run", "SWING.BD", "-T", 0.1)[0] == cstorm("run", script(BUILD, "MINE.PY"), "-T", 0.1)[0] == 0
    status, _, errors = cstorm("run", bd_files.path("pendulum"), "--set", "rods=2")
    assert status == 1 and "a .bd file has no options" in errors[0]


def test_a_bd_file_says_how_long_it_runs(cstorm, monkeypatch):
    model = json.loads(Path(bd_files.path("pendulum")).read_text(encoding="utf-8"))
    ends = []
    report = simulation.Simulation.report
    monkeypatch.setattr(
        simulation.Simulation, "report", lambda self, path: ends.append(self._last[1].t[-1]) or report(self, path)
    )
    for simulation_time, want in ((0.25, 0.25), (None, cli.DURATION)):
        Path("it.bd").write_text(json.dumps({**model, "simulation_time": simulation_time}), encoding="utf-8")
        assert cstorm("run", "it.bd")[0] == 0
        assert ends.pop() == want


def test_expressions_in_a_bd_file_are_refused_unless_trusted(cstorm):
    text = Path(bd_files.path("pendulum")).read_text(encoding="utf-8")
    Path("it.bd").write_text(text.replace('"pendulum"', "\"='pendu' + 'lum'\"", 1), encoding="utf-8")
    status, _, errors = cstorm("run", "it.bd", "-T", 0.1)
    assert status == 1 and len(errors) == 1 and "is an expression, which could run any code; give --trust" in errors[0]
    assert cstorm("run", "it.bd", "-T", 0.1, "--trust")[0] == 0


def test_a_bd_file_that_is_none(cstorm):
    Path("it.bd").write_text("{", encoding="utf-8")
    status, _, errors = cstorm("run", "it.bd")
    assert status == 1 and len(errors) == 1 and "is not a diagram of bdedit" in errors[0]


SOCKET = {"id": 1, "index": 0}
BLOCK = {"block_type": "CONSTANT", "title": "one", "inputs": [], "outputs": [SOCKET], "parameters": {}}
CONNECTOR = {"block_type": "CONNECTOR", "inputs": [{"id": 2}], "outputs": [{"id": 3}]}


def _without(part, name):
    return {key: value for key, value in part.items() if key != name}


FOREIGN = [
    ([], "the file, which is to hold 'blocks' and 'wires': expected an object in braces, got []"),
    ({"wires": []}, "the file has no 'blocks'"),
    ({"blocks": []}, "the file has no 'wires'"),
    ({"blocks": {}, "wires": []}, "the file: 'blocks': expected a list, got {}"),
    ([{}], "block 1 of 1 has no 'block_type'"),
    ([BLOCK, 3], "block 2 of 2: expected an object in braces, got 3"),
    ([{**BLOCK, "block_type": None}], "block 1 of 1: 'block_type': expected a text, got None"),
    ([_without(BLOCK, "title")], "block 1 of 1 has no 'title'"),
    ([_without(BLOCK, "inputs")], "block 'one' has no 'inputs'"),
    ([{**BLOCK, "outputs": [{"id": 1}]}], "block 'one', outputs has no 'index'"),
    ([{**BLOCK, "inputs": [{"index": 0}]}], "block 'one', inputs has no 'id'"),
    ([{**BLOCK, "inputs": [{"index": 0, "id": []}]}], "block 'one', inputs: 'id': expected a whole number or a text"),
    (
        [{**BLOCK, "parameters": "value"}],
        "block 'one': 'parameters': expected pairs of a name and a value, got 'value'",
    ),
    ([{**BLOCK, "parameters": [["value"]]}], "block 'one': 'parameters': expected pairs of a name and a value"),
    ([{**BLOCK, "parameters": {"blockargs": "pos"}}], "block 'one': 'blockargs': expected pairs of a name and a value"),
    ([{**CONNECTOR, "inputs": []}], "block 1 of 1: 'inputs' holds no socket; a connector has one"),
    ({"blocks": [BLOCK], "wires": [{"start_socket": 1}]}, "wire 1 of 1 has no 'end_socket'"),
    (
        {
            "blocks": [CONNECTOR, {**BLOCK, "block_type": "NULL", "inputs": [{"id": 4, "index": 0}], "outputs": []}],
            "wires": [{"start_socket": 3, "end_socket": 2}, {"start_socket": 3, "end_socket": 4}],
        },
        "the connectors with socket 3 feed each other",
    ),
]


@pytest.mark.parametrize(("model", "message"), FOREIGN)
def test_what_a_foreign_bd_file_lacks_is_named(cstorm, model, message):
    """It was said as "KeyError: 'block_type'"."""
    model = {"blocks": model, "wires": []} if model and isinstance(model, list) else model
    Path("it.bd").write_text(json.dumps(model), encoding="utf-8")
    status, said, errors = cstorm("run", "it.bd", "-T", 0.1)
    assert (status, said, len(errors)) == (1, [], 1)
    assert errors[0].startswith("cstorm: it.bd: ") and message in errors[0]
    assert "Error" not in errors[0] and "--debug" not in errors[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("nan", "nan"), ("inf", "inf"), ("-inf", "-inf"), ("+Inf", "inf"), ("'nan'", "'nan'"), ("info", "'info'")],
)
def test_numbers_without_a_literal_reach_the_diagram_as_numbers(cstorm, text, value):
    """They came as texts, of which some block complained later."""
    name = script("def build(sim, k):\n    raise ValueError(f'k is {k!r}')")
    assert f"ValueError: k is {value} " in cstorm("run", name, "--set", f"k={text}")[2][0]


# ------------------------------------------------------------------------------- files as bdedit writes them


def drawn(path, blocks, wires):
    """Write a file: of blocks (kind, title, inputs, outputs, parameters) and wires (title, port, title, port)."""
    made, place = [], {}
    for number, (kind, title, inputs, outputs, parameters) in enumerate(blocks, start=1):
        place[title] = 1000 * number
        sides = [
            [{"id": 1000 * number + 100 * side + k, "index": k} for k in range(n)]
            for side, n in enumerate((inputs, outputs))
        ]
        told = [[name, value] for name, value in {**parameters, "blockargs": None}.items()]
        made.append({"block_type": kind, "title": title, "parameters": told, "inputs": sides[0], "outputs": sides[1]})
    ends = [{"start_socket": place[a] + 100 + p, "end_socket": place[b] + q} for a, p, b, q in wires]
    Path(path).write_text(json.dumps({"blocks": made, "wires": ends}), encoding="utf-8")


def decaying(path, kind, parameters):
    """Write ẋ = f(x), x(0) = 1, whose f is that of a block."""
    state = ("INTEGRATOR", "x", 1, 1, {"x0": 1.0})
    drawn(path, [(kind, "f", 1, 1, parameters), state], [("x", 0, "f", 0), ("f", 0, "x", 0)])


def part(path, gain, kind="GAIN", name="K"):
    """Write a subsystem of one block."""
    ends = [("INPORT", "in", 0, 1, {"nout": 1, "outport labels": ["u"]}), ("OUTPORT", "out", 1, 0, {"nin": 1})]
    drawn(path, [*ends, (kind, "part", 1, 1, {name: gain})], [("in", 0, "part", 0), ("part", 0, "out", 0)])


@pytest.fixture
def last():
    """Return a function that runs a file for a second, and returns the end of its state x."""
    sim = simulation.Simulation(graphics=False, progress=False, live=False)
    return lambda path, **options: sim.run(sim.load(path, **options), T=1.0, rtol=1e-9).x[-1, 0]


def test_a_subsystem_is_the_file_beside_it(cstorm, last):
    """bdsim's own block cannot take a file at all, and looked for one where the command was given."""
    Path("models").mkdir()
    part("models/inner.bd", "-4 / 2")
    part("models/middle.bd", "inner.bd", "SUBSYSTEM", "subsys")
    decaying("models/outer.bd", "SUBSYSTEM", {"subsys": "middle.bd", "nin": 1, "nout": 1, "inport labels": None})
    assert last("models/outer.bd") == pytest.approx(np.exp(-2.0), rel=1e-7)
    assert cstorm("run", "models/outer.bd", "-T", 0.5)[0] == 0
    sim = simulation.Simulation(graphics=False, progress=False)
    with pytest.raises(cs.InvalidType, match=r"write bd.SUBSYSTEM\(sim.load\('models/inner.bd'\)\)"):
        sim.blockdiagram().SUBSYSTEM("models/inner.bd")
    inner = sim.blockdiagram().SUBSYSTEM(sim.load("models/inner.bd"), name="inner")
    assert inner.subsystem["in"].nout == 1


SUBSYSTEMS = [
    ("gone.bd", "block 'f': gone.bd: cannot be read: No such file"),
    ("evil.bd", "block 'f': evil.bd: block 'part', K: \"print('run')\" is an expression, which could run any code"),
    ("this", "subsys: 'this' is the name of a Python module, which could run any code; give that of a .bd file"),
    ("outer.bd", "outer.bd: is a subsystem of itself"),
]


@pytest.mark.parametrize(("name", "message"), SUBSYSTEMS)
def test_a_subsystem_runs_no_code_and_is_not_its_own(cstorm, name, message):
    part("evil.bd", "=print('run')")
    decaying("outer.bd", "SUBSYSTEM", {"subsys": name})
    status, said, errors = cstorm("run", "outer.bd", "-T", 0.1)
    assert (status, said, len(errors)) == (1, [], 1) and message in errors[0]


def test_a_mechanism_is_the_file_beside_it():
    """It was looked for where the command was given."""
    Path("models").mkdir()
    library.pendulum(1).with_parameters({"link1.mass": 3.0}).save("models/heavy.json")
    drawn("models/swing.bd", [("HYBRIDDYNAMICS", "plant", 0, 2, {"mech": "heavy.json", "actuated": []})], [])
    bd = simulation.Simulation(graphics=False).load("models/swing.bd")
    assert bd["plant"].mech.links[0].mass == 3.0


@pytest.mark.parametrize(
    "clock",
    ["10 Hz", "100ms", 0.1, "0.1", [10, "Hz"], "[0.1, 's', 0]", "bd.clock(10, 'Hz')", "=bd.clock(0.1)", "=1 / 10"],
)
def test_a_sampled_block_has_its_clock(clock, last):
    """No file could say what a clock is: each with a sampled block was refused."""
    decaying("held.bd", "ZOH", {"clock": clock, "x0": 0})
    held = last("held.bd")
    assert held == pytest.approx(1.1**10, rel=1e-9)  # ẋ is x as it was at the tick before


def test_blocks_of_one_clock_share_it():
    blocks = [("ZOH", name, 1, 1, {"clock": text}) for name, text in (("a", "10 Hz"), ("b", "10 Hz"), ("c", "20 Hz"))]
    drawn("three.bd", blocks, [])
    bd = simulation.Simulation(graphics=False).load("three.bd")
    assert bd["a"]._clock is bd["b"]._clock is not bd["c"]._clock
    assert [clock.T for clock in bd.clocklist] == [0.1, 0.05]


@pytest.mark.parametrize("clock", [None, "fast", "10 kHz", True, [], "bd.clock()", "0 Hz", "-1"])
def test_a_clock_that_is_none_is_told(cstorm, clock):
    decaying("held.bd", "ZOH", {"clock": clock})
    status, _, errors = cstorm("run", "held.bd", "-T", 0.1)
    assert (status, len(errors)) == (1, 1) and errors[0].startswith("cstorm: held.bd: block 'f': clock: expected ")


@pytest.mark.parametrize(
    ("text", "slope"),
    [("-pi / 4", -np.pi / 4), ("np.deg2rad(-30)", -np.pi / 6), ("=-(1 + 2) * 0.5", -1.5), ("-math.pi", -np.pi)],
)
def test_arithmetic_is_read_without_trust(text, slope, last):
    """A text was refused as a gain, and an expression wanted to be trusted."""
    decaying("slope.bd", "GAIN", {"K": text})
    assert last("slope.bd") == pytest.approx(np.exp(slope), rel=1e-7)


@pytest.mark.parametrize("text", ["9**9**9", "(1).__class__", "[0] * 10**9", "abs(-1)", "np.ones(3)", "1 / 0", "pi()"])
def test_more_than_arithmetic_is_not(cstorm, text):
    decaying("slope.bd", "GAIN", {"K": f"={text}"})
    status, _, errors = cstorm("run", "slope.bd", "-T", 0.1)
    assert (status, len(errors)) == (1, 1) and f"K: {text!r} is an expression, which could run any code" in errors[0]


def test_a_text_that_is_an_expression_is_told_of_trust(cstorm):
    decaying("slope.bd", "FUNCTION", {"func": "lambda u: -u"})
    assert cstorm("run", "slope.bd", "-T", 0.1)[2][0].endswith("; func is evaluated with --trust (trust=True) only")
    assert cstorm("run", "slope.bd", "-T", 0.1, "--trust")[0] == 0


def test_what_bdedit_writes_by_itself_is_left_out(last):
    """It misreads what bdsim says of its blocks: each SUM and each WAVEFORM that nobody had edited was refused."""
    parts = [("WAVEFORM", "wave", 0, 1, {"wave": "square", "duty": 0}), ("SUM", "sum", 2, 1, {"signs": "``++``"})]
    parts += [("INTEGRATOR", "x", 1, 1, {"x0": 0}), ("CLIP", "clip", 1, 1, {"min": "-math.inf", "max": "math"})]
    drawn("it.bd", parts, [("wave", 0, "sum", 0), ("clip", 0, "sum", 1), ("x", 0, "clip", 0), ("sum", 0, "x", 0)])
    e = np.exp(0.5)  # ẋ = x + 1 for half a period, and x - 1 for the other
    assert last("it.bd") == pytest.approx((e - 1.0) * e - (e - 1.0), rel=1e-6)
