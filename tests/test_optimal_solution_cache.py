"""Answers that are kept: found by what was asked, verified by the problem itself, and else searched anew."""

import json
import math

import numpy as np
import pytest

from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, solution_cache
from cstormpy.optimal.solution_cache import asked, file_name, solved


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(solution_cache, "_cache", lambda: tmp_path / "motions")
    return tmp_path / "motions"


def problem(duration=1.0):
    return Problem(library.planar_2r(), duration=duration, start=[0, 0], end=[0.4, 0], objective=Effort(), points=8)


class Question:
    """A problem, what was asked, and how often it was searched."""

    def __init__(self, **options):
        self.problem, self.made_by, self.searches = problem(), asked("test", **{"duration": 1.0, **options}), 0

    def __call__(self, **options):
        return solved(self.problem, self.made_by, self._search, **options)

    def _search(self):
        self.searches += 1
        return [self.problem.solve(iterations=4 if self.searches > 9 else 500)]


def test_it_is_searched_once_and_kept_with_what_made_it(folder):
    ask = Question(mechanism=library.planar_2r().to_dict())
    (first,), known = ask()
    assert not known and ask.searches == 1
    (path,) = folder.iterdir()
    content = json.loads(path.read_text())
    assert path.name == file_name(ask.made_by)
    assert content["made_by"] == json.loads(json.dumps(ask.made_by))
    assert set(content["made_with"]) == {"cstormpy", "numpy", "scipy"}
    assert content["solutions"][0]["result"]["converged"] is True
    (again,), known = ask()
    assert known and ask.searches == 1
    np.testing.assert_array_equal(again.x, first.x)
    assert again.cost == first.cost and again.reason == first.reason and again.converged
    assert again.kkt == pytest.approx(first.kkt)
    assert str(again).splitlines()[0] == str(first).splitlines()[0]
    again.plot().canvas.draw()


def test_anew_and_without_keeping(folder):
    ask = Question()
    ask(keep=False)
    assert not folder.exists()
    ask()
    ask(anew=True)
    ask(keep=False)
    assert ask.searches == 4


def test_who_asks_for_something_else_gets_something_else(folder):
    Question()()
    other = Question(points=9)
    other()
    assert other.searches == 1
    assert len(list(folder.iterdir())) == 2


def test_numbers_that_differ_by_rounding_are_the_same_question():
    third, half_turn = 0.1 + 0.2, math.pi * (1.0 + 1e-15)
    assert asked("a", goal=np.array([third, -0.0, half_turn])) == asked("a", goal=[0.3, 0.0, math.pi])
    assert asked("a", goal=1.0) != asked("a", goal=1.0 + 1e-10)


def change(content, place, value):
    *way, last = place
    for key in way:
        content = content[key]
    content[last] = value


RESULT = "solutions", 0, "result"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("made_by", "name"), "other"),
        (("made_by", "version"), 0),
        (("made_by",), None),
        (("solutions",), []),
        (("solutions",), "none"),
        (("solutions", 0), 7),
        ((*RESULT, "cost"), 0.01),
        ((*RESULT, "cost"), "low"),
        ((*RESULT, "reason"), None),
        (("solutions", 0, "x"), [0.0]),
        (("solutions", 0, "x"), [[0.0] * 8]),
        (("solutions", 0, "x"), ["a"] * 8),
        (("solutions", 0, "x"), [1e300] * 8),
        (("solutions", 0, "x"), [0.0] * 8),
        ((*RESULT,), {}),
    ],
)
def test_a_file_that_is_not_the_answer_is_as_if_it_were_not_there(folder, place, value):
    ask = Question()
    (wanted,), _ = ask()
    (path,) = folder.iterdir()
    content = json.loads(path.read_text())
    change(content, place, value)
    path.write_text(json.dumps(content))
    (found,), known = ask()
    if place == (*RESULT, "reason"):  # says nothing about the motion
        assert known
        return
    assert not known and ask.searches == 2
    assert found.cost == wanted.cost
    assert ask()[1], "it was kept anew"


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"made_by": NaN}', "null", "\x00\xff", '{"solutions": [{}]}'])
def test_a_file_that_is_damaged_is_as_if_it_were_not_there(folder, text):
    ask = Question()
    ask()
    (path,) = folder.iterdir()
    path.write_bytes(text.encode("latin-1"))
    assert not ask()[1]
    assert ask()[1]


def test_what_was_stopped_is_not_kept(folder):
    asks = Question()
    stopped = asks.problem.solve(callback=lambda now: True)
    found, known = solved(asks.problem, asks.made_by, lambda: [stopped])
    assert found == (stopped,) and not known
    assert not folder.exists()


def test_what_is_infeasible_is_not_kept(folder):
    hard = Problem(
        library.xiang_two_link(), duration=0.2, start=[0, 0], end=[2, 0], objective=Effort(), points=8, samples=21
    )
    found, _ = solved(hard, asked("hard"), lambda: [hard.solve()])
    assert not found[0].feasible
    assert not folder.exists()


def test_a_place_where_nothing_can_be_kept_is_told_and_does_no_harm(folder, monkeypatch, capsys, caplog):
    folder.write_text("a file where the folder is to be")
    ask = Question()
    with caplog.at_level("INFO", "cstormpy"):
        assert not ask()[1]
    assert "the answer cannot be kept" in capsys.readouterr().err + caplog.text

    def nowhere():
        raise OSError("no home")

    monkeypatch.setattr(solution_cache, "_cache", nowhere)
    assert not ask()[1]
