"""The comparison of the formulations: counts and what they bear out, growth, crossings, files, the command."""

from __future__ import annotations

import collections
import csv
import math

import numpy as np
import pytest
from command_lines import posix

from cstormpy import cli
from cstormpy.comparison import formulation_table
from cstormpy.comparison.formulations import (
    KERNELS,
    FormulationComparison,
    Polynomial,
    Row,
    arguments,
    arm,
    compare_formulations,
)
from cstormpy.errors import InvalidValue
from cstormpy.formulations import luh_walker_paul, orin, silver
from cstormpy.formulations.counting import Count, Tally, counted
from cstormpy.formulations.registry import METHODS, PROBLEMS, Method

STEEP = 4
LUH = "Luh, Walker, Paul"


@pytest.fixture(scope="module")
def recursions():
    """Return the comparison of all that grow slowly, with few joints."""
    return compare_formulations((1, 7), [method for method in METHODS if method.order < STEEP])


@pytest.fixture(scope="module")
def steep_methods():
    """Return the comparison of those that grow fast, and of those that the papers compare them with."""
    named = {name for _, *pair, _ in formulation_table.PRINTED for name in pair}
    return compare_formulations((3, 9), [m for m in METHODS if m.order >= STEEP or m.name in named])


# ---------------------------------------------------------------- agreement, growth
@pytest.mark.slow
def test_all_agree_with_the_kernels(recursions):
    errors = [row.error for row in recursions.rows if row.method != KERNELS]
    assert max(errors) < 1e-10
    assert {row.problem for row in recursions.rows} == set(PROBLEMS)


def growth_of_counts(found, method):
    """Return the power that the counts themselves say: of the polynomial on which all of them lie."""
    return {found.polynomial(method.problem, method.name, fold).degree for fold in (False, True)}


@pytest.mark.slow
def test_recursions_grow_as_their_loops_say(recursions):
    slow = [method for method in METHODS if method.order < STEEP]
    grown = {(method.problem, method.name): growth_of_counts(recursions, method) for method in slow}
    assert grown == {(method.problem, method.name): {method.order} for method in slow}


@pytest.mark.slow
def test_closed_forms_grow_as_their_loops_say(steep_methods):
    steep = [method for method in METHODS if method.order >= STEEP]
    assert sorted(method.order for method in steep) == [4, 4, 5]
    for method in steep:
        assert growth_of_counts(steep_methods, method) == {method.order}, method.name
        # and seen from far away, the counts themselves follow that power
        far = [steep_methods.operations(method.problem, method.name, n)[0] for n in (100, 200)]
        assert math.log2(far[1] / far[0]) == pytest.approx(method.order, abs=0.3)


@pytest.mark.slow
def test_counts_bear_out_what_the_papers_print(steep_methods):
    """Silver (1981), 1.2 and 1.4: ratios with six joints, the joints' matrices given, structural zeros counted.

    What (1.2) is over the 4x4 recursion, and that over Luh's, depends on which products the recursion keeps: the print
    lies between the two.
    """
    direct, _ = formulation_table.less_matrices(steep_methods, "Uicker, Kahn (1.2)")
    assert direct > 100_000
    found = {}
    for what, dear, cheap, ratio in formulation_table.PRINTED:
        over, under = (formulation_table.less_matrices(steep_methods, name)[0] for name in (dear, cheap))
        assert over / under == pytest.approx(ratio, rel=0.15), what
        found[what] = over / under
    for ratio in (15, 5):
        two = [found[what] for what, *_, printed in formulation_table.PRINTED if printed == ratio]
        assert min(two) < ratio < max(two)
    text = str(steep_methods)
    assert "well over 100000" in text and "(1.2) over the 4x4 recursion (Silver, 1.4)" in text


@pytest.mark.slow
def test_articulated_body_wins_from_about_where_the_slides_say():
    forward = [method for method in METHODS if method.problem == "forward dynamics"]
    found = compare_formulations((3, 20), forward)
    n = found.crossing("forward dynamics", "Johnson, Su: articulated body", "Johnson, Su: composite body")
    assert n - 1 == 11
    # the slides' own figure: entries of a symmetric matrix below its diagonal need not be formed, 2 x 15 a joint
    symmetric = [
        k for k in range(3, 21) if operations(found, "articulated", k) - 30 * k < operations(found, "composite", k)
    ]
    assert symmetric == list(range(10, 21))


def operations(found, body, n):
    return found.operations("forward dynamics", f"Johnson, Su: {body} body", n)[0]


class Trace(Tally):
    """A tally that keeps the operands of each operation, whatever their order and signs."""

    def __init__(self, fold):
        super().__init__(fold)
        self.kept = collections.Counter()


def traced(monkeypatch, function, *given):
    """Return the operations of a function on counting numbers: how often each was done on which numbers."""
    trace = Trace(fold=True)

    def watched(original, name):
        def operation(self, other):
            before = (trace.multiplications, trace.additions)
            result = original(self, other)
            if (trace.multiplications, trace.additions) != before:
                kind = "×" if name == "mul" else "+"
                operands = sorted(f"{abs(float(x)):.9e}" for x in (self, other))
                trace.kept[(kind, *operands)] += 1
            return result

        return operation

    with monkeypatch.context() as patch:
        for name in ("mul", "add", "sub"):
            for side in ("", "r"):
                method = f"__{side}{name}__"
                patch.setattr(Count, method, watched(getattr(Count, method), name))
        function(*(trace.numbers(x) if isinstance(x, np.ndarray) else x for x in given))
    return trace


@pytest.mark.parametrize("n", [1, 2, 6])
def test_silver_is_exactly_the_computation_of_luh(monkeypatch, n):
    """Silver (1981), 3.2: operation for operation, on the same numbers, whichever equations they were written from."""
    mech, state = arm(n), arguments("inverse dynamics", n)
    luh, silvers, others = (
        traced(monkeypatch, module.inverse_dynamics, mech, *state) for module in (luh_walker_paul, silver, orin)
    )
    assert sum(luh.kept.values()) == luh.multiplications + luh.additions > 30
    assert silvers.kept == luh.kept
    assert n == 1 or others.kept != luh.kept


@pytest.mark.parametrize("fold", [False, True])
def test_silver_takes_as_many_operations_as_luh(fold):
    for n in (1, 6, 15):
        tallies = [
            counted(module.inverse_dynamics, arm(n), *arguments("inverse dynamics", n), fold=fold)[1]
            for module in (luh_walker_paul, silver)
        ]
        assert vars(tallies[0]) == vars(tallies[1])


# ---------------------------------------------------------------- continuing
def test_polynomial_is_exact_and_says_when_there_is_none():
    cube = Polynomial.through({n: 2 * n**3 - n + 7 for n in range(3, 9)})
    assert cube.degree == 3 and cube(60) == 2 * 60**3 - 60 + 7
    late = Polynomial.through({n: 2 * n**3 - n + 7 for n in range(6, 12)})  # `--n 6:12` ended in math.comb's ValueError
    assert [late(n) for n in (3, 5, 6, 20)] == [58, 252, 433, 15987]
    assert Polynomial.through({n: 2 * n**3 for n in range(3, 7)}) is None  # four points: not one to spare
    assert Polynomial.through({n: 5 * n for n in (3, 4, 5, 20)})(60) == 300
    assert Polynomial.through({3: 15, 4: 20, 5: 25, 20: 101}) is None  # the last one lies elsewhere
    assert Polynomial.through({}) is None


@pytest.mark.slow
def test_counts_with_more_joints_lie_where_they_are_continued(recursions):
    for name in (LUH, "Stepanenko, Vukobratović"):
        method = next(m for m in METHODS if m.name == name)
        _, tally = counted(method.run, arm(30), *arguments(method.problem, 30), fold=False)
        found, continued = recursions.operations(method.problem, name, 30)
        assert continued and found == tally.multiplications + tally.additions
        assert recursions.operations(method.problem, name, 6)[1] is False


def made(counts, seconds):
    """Return a comparison of two formulations of these counts and times by number of joints."""
    method = Method("?", "inverse dynamics", None, 1, 9, 9)
    rows = [
        Row("inverse dynamics", name, n, multiplications=count, additions=0, seconds=seconds.get((name, n)))
        for (name, n), count in counts.items()
    ]
    return FormulationComparison(rows, (method,), 10)


def test_crossing_is_the_first_number_of_joints_from_which_on_it_is_cheaper():
    counts = {("steep", n): n * n for n in range(1, 11)} | {("flat", n): 4 * n + 6 for n in range(1, 11)}
    found = made(counts, {})
    assert found.crossing("inverse dynamics", "flat", "steep") == 6  # 30 < 36
    assert found.crossing("inverse dynamics", "steep", "flat") is None
    assert "flat  " in str(found) and "from n = 6 on" in str(found)


def test_times_are_continued_by_their_own_power():
    counts = {("steep", n): n for n in range(1, 11)}
    found = made(counts, {("steep", n): 1e-6 * n**3 for n in range(1, 6)})
    assert found.time_growth("inverse dynamics", "steep") == pytest.approx(3.0)
    assert found.seconds("inverse dynamics", "steep", 4) == (pytest.approx(6.4e-5), False)
    assert found.seconds("inverse dynamics", "steep", 10) == (pytest.approx(1e-3), True)
    assert "~1 ms" in str(found)


# ---------------------------------------------------------------- table, files, command
@pytest.mark.slow
def test_each_formulation_has_a_row_and_the_kernels_another(recursions):
    text = str(recursions)
    for method in METHODS:
        if method.order < STEEP:
            assert f"\n{method.name}  " in text
    assert text.count(KERNELS) == len(PROBLEMS)
    line = next(line for line in text.splitlines() if line.startswith(LUH))
    assert line.split()[3:7] == ["1056", "879", "612", "470"] and " 1 / 1 / " in line


def test_a_range_is_kept_and_an_empty_one_refused():
    few = [method for method in METHODS if method.name == LUH]
    found = compare_formulations((2, 4), few)
    assert {row.n for row in found.rows} == {2, 3, 4}
    assert "n = 4: loops" in str(found)
    with pytest.raises(InvalidValue, match="expected 1 <= first <= last, got 5:2"):
        compare_formulations((5, 2))


def test_csv_holds_all_rows(recursions, tmp_path):
    path = tmp_path / "all.csv"
    recursions.save(path)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(recursions.rows)
    six = next(row for row in rows if row["method"] == LUH and row["n"] == "6")
    assert (six["multiplications"], six["additions"], six["folded_additions"]) == ("1056", "879", "470")
    line = next(row for row in rows if row["method"] == KERNELS and row["n"] == "6")
    assert line["multiplications"] == "" and int(line["folded_multiplications"]) > 500


def test_figure_has_a_line_for_each_formulation(recursions):
    import matplotlib.pyplot as plt

    figure = recursions.plot()
    counts, times = figure.axes[0], figure.axes[1]
    labels = {line.get_label() for line in counts.lines if not line.get_label().startswith("_")}
    assert labels == {m.name for m in METHODS if m.problem == "inverse dynamics" and m.order < STEEP}
    assert KERNELS in {line.get_label() for line in times.lines}
    assert len(figure.axes) == 2 * len(PROBLEMS)
    plt.close(figure)


@pytest.mark.slow
def test_command_writes_table_csv_and_figure(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["compare-formulations", "--n", "1:3", "--plot", "lines.png"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("inverse dynamics") and "n = 3: loops" in said
    assert said.rstrip().endswith("all numbers are in formulations.csv, the figure is lines.png")
    assert (tmp_path / "formulations.csv").read_text(encoding="utf-8").startswith("problem,method,n,")
    assert (tmp_path / "lines.png").read_bytes().startswith(b"\x89PNG")


@posix
def test_a_figure_that_cannot_be_written_is_named(monkeypatch, capsys, tmp_path, recursions):
    """It was "OSError: [Errno 27] File too large", without the file, a part of which stayed."""
    import resource

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cstormpy.comparison.formulations.compare_formulations", lambda n: recursions)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(
        type(recursions), "save", lambda *_: resource.setrlimit(resource.RLIMIT_FSIZE, (999, before[1]))
    )
    try:
        assert cli.main(["compare-formulations", "--plot", "lines.png"]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cstorm: lines.png: cannot be written: File too large" in capsys.readouterr().err
    assert not (tmp_path / "lines.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "9:3"], "expected FIRST:LAST with 1 <= FIRST <= LAST, got '9:3'"),
        (["--n", "many"], "expected FIRST:LAST"),
        (["--csv", "nowhere/a.csv"], "the csv cannot be written: there is no folder 'nowhere'"),
        (["--plot", "."], "--plot: expected the name of a file"),
    ],
)
def test_command_refuses_before_it_runs(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cstormpy.comparison.formulations.measured", None)
    try:
        status = cli.main(["compare-formulations", *arguments])
    except SystemExit as leave:
        status = leave.code
    assert status in (1, 2)
    assert message in capsys.readouterr().err
