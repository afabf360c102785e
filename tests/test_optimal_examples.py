"""The examples of the papers run headless and end where they say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples" / "papers").glob("*.py"))
COSTS = {
    "acrobot_swing_up": 22.9,
    "branched_acrobot_swing_up": 40.0,
    "two_link_lifting": 0.84492,
    "two_link_swing": 9.95,
    "two_link_time_optimal": 0.3922,
}


def test_there_is_an_example_for_each_problem():
    assert {path.stem for path in EXAMPLES} == set(COSTS)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, capsys):
    solution = runpy.run_path(str(path))["main"](tmp_path)
    assert solution.feasible
    assert solution.cost <= COSTS[path.stem]
    assert len(capsys.readouterr().out.splitlines()) >= 3
    drawn = list(tmp_path.glob("*.png"))
    assert drawn
    assert all(picture.stat().st_size > 10_000 for picture in drawn)
