"""Files of bdedit on the command line: run, trusted or refused, and what is missing in them."""

import json
from pathlib import Path

import bd_files
import pytest
from command_lines import script

from cstormpy import cli
from cstormpy.simulation import simulation

pytestmark = pytest.mark.usefixtures("somewhere_else")


def test_a_file_of_another_kind_is_refused(cstorm):
    Path("notes.txt").touch()
    assert "expected a Python script (.py) or a diagram of bdedit (.bd)" in cstorm("run", "notes.txt")[2][0]


def test_a_bd_file_is_run(cstorm):
    status, said, errors = cstorm("run", bd_files.path("pendulum"), "-T", 0.5)
    assert (status, said, errors) == (0, ["pendulum: reached the end; the report is pendulum.html"], [])
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
