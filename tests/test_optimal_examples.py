"""The examples of the papers run headless, save every figure and print what they and the papers have."""

import re
import runpy
from pathlib import Path

import pytest
import scipy

FOLDER = Path(__file__).parent.parent / "examples" / "papers"
FIGURES = {
    "two_link_swing": ["sohl_bobrow_fig_1", "sohl_bobrow_fig_2"],
    "acrobot_swing_up": [f"sohl_bobrow_fig_{k}" for k in (3, 4, 5, 6)],
    "branched_acrobot_swing_up": [f"sohl_bobrow_fig_{k}" for k in (7, 8, 9, 10)],
    "two_link_time_optimal": [f"xiang_fig_{k}" for k in (7, 8, 9, 10)],
    "two_link_lifting": [f"xiang_fig_{k}" for k in (11, 12, 13, 14)],
}
COSTS = {
    "two_link_swing": 9.95,
    "acrobot_swing_up": 22.9,
    "branched_acrobot_swing_up": 40.0,
    "two_link_time_optimal": 0.3922,
    "two_link_lifting": 0.84500,
}
#: What a line of the output begins with, the column, and the range of its number: the goals of the papers' values.
PRINTED = {
    "two_link_swing": [
        ("Fig. 1, J of the guess", 0, 73.57, 73.57),
        ("Fig. 1, J of the guess", 1, 73.56, 73.58),
        ("Fig. 2, J of the motion", 0, 9.9, 9.9),
        ("Fig. 2, J of the motion", 1, 9.85, 9.95),
    ],
    "acrobot_swing_up": [
        ("Fig. 5", 0, -1.0, -1.0),
        ("Fig. 5", 1, 1050.0, 1060.0),
        ("Fig. 5", 2, 10.0, 16.0),
        ("Fig. 6", 0, -1.3, -1.3),
        ("Fig. 6", 2, 10.0, 22.9),
    ],
    "branched_acrobot_swing_up": [
        ("Fig. 8", 0, 900.0, 1000.0),
        ("Fig. 9", 0, 20.0, 32.0),
        ("Fig. 10", 0, 30.0, 40.0),
    ],
    "two_link_time_optimal": [
        ("paper, 22 points, 21 samples", 0, 0.3934, 0.3934),
        ("here, 22 points, 21 samples", 0, 0.39201, 0.39205),
        ("here, 22 points, 21 samples", 1, 2.5, 3.2),
        ("here, 22 points, 201 samples", 0, 0.3918, 0.3927),
        ("here, 22 points, 201 samples", 1, 0.0, 0.02),
        ("here, 40 points, 201 samples", 0, 0.3918, 0.3922),
    ],
    "two_link_lifting": [
        ("paper, 22 points", 0, 0.520, 0.520),
        ("here, 22 points, 201 samples", 0, 0.5175, 0.5205),
        ("here, 22 points, 201 samples", 1, 0.8448, 0.84500),
        ("here, 40 points, 201 samples", 1, 0.8448, 0.84492),
        ("integrated from the torques alone, the arm ends", 0, 0.0, 1e-6),
        ("Fig. 14: closed form and recursive derivatives differ by", 0, 0.0, 1e-12),
    ],
}
SLOW = ("acrobot_swing_up", "branched_acrobot_swing_up", "two_link_lifting", "two_link_swing")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def numbers_after(begin, text):
    """Return the numbers that stand behind the beginning of a line."""
    (line,) = [line for line in text.splitlines() if re.match(re.escape(begin) + r"(?!\w)", line)]
    return [float(number) for number in NUMBER.findall(line[len(begin) :])]


def test_there_is_an_example_for_each_problem_and_a_figure_for_each_of_the_papers():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(FIGURES) == set(COSTS) == set(PRINTED)
    wanted = {f"sohl_bobrow_fig_{k}" for k in range(1, 11)} | {f"xiang_fig_{k}" for k in range(7, 15)}
    assert sorted(name for names in FIGURES.values() for name in names) == sorted(wanted)
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    for script, names in FIGURES.items():
        assert all(re.search(rf"`{script}\.py` \| `{name}\.png`", table) for name in names)


def marks(name):
    """Return which are slow; the last is only where SLSQP is in Fortran."""
    if name == "two_link_time_optimal":
        fortran = tuple(int(part) for part in scipy.__version__.split(".")[:2]) < (1, 16)
        return [pytest.mark.skipif(fortran, reason="SLSQP in Fortran, before SciPy 1.16, takes minutes there")]
    return [pytest.mark.slow] if name in SLOW else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in FIGURES])
def test_example(name, tmp_path, capsys):
    folder = tmp_path / "figures"  # which the examples make, as their README says
    solution = runpy.run_path(str(FOLDER / f"{name}.py"))["main"](str(folder))
    assert solution.feasible
    assert solution.cost <= COSTS[name]
    printed = capsys.readouterr().out
    for begin, column, low, high in PRINTED[name]:
        assert low <= numbers_after(begin, printed)[column] <= high, f"{begin}, number {column}"
    drawn = {path.stem for path in folder.glob("*.png")}
    assert drawn >= set(FIGURES[name])
    assert all((folder / f"{figure}.png").stat().st_size > 15_000 for figure in drawn)
