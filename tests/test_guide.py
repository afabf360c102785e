"""The guide to the papers: each function that a page names for an equation is there."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from cstormpy import formulations
from cstormpy.comparison.formulations import arguments, arm
from cstormpy.formulations.counting import counted
from cstormpy.formulations.registry import METHODS

PAGES = Path(__file__).resolve().parent.parent / "docs" / "papers"
PAPERS = ("johnson_su", "kim", "silver", "sohl_bobrow", "xiang")

pytestmark = pytest.mark.skipif(not PAGES.is_dir(), reason="looks at the documents of a checkout")


def modules():
    found = {}
    for module in pkgutil.iter_modules(formulations.__path__):
        found[module.name] = importlib.import_module(f"cstormpy.formulations.{module.name}")
    return found


def named(page):
    """Return what stands in backticks in the last column of the tables of equations."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| .* \| ([^|]*`[^|]*) \|$", text, flags=re.MULTILINE)
    names = [name for cell in rows for name in re.findall(r"`([A-Za-z_][\w.]*)[`(]", cell)]
    return [name for name in names if not name.endswith(".py")]


@pytest.mark.parametrize("page", PAPERS)
def test_what_a_page_names_exists(page):
    known = modules()
    names = named(page)
    assert len(names) > 8
    for name in names:
        first, _, rest = name.partition(".")
        holders = [known[first]] if first in known else list(known.values())
        wanted = rest if first in known else name
        if first in ("cstormpy", "Mechanism", "tree", "tests") or (first in known and not rest):
            continue
        found = [holder for holder in holders if resolves(holder, wanted)]
        assert found, f"{page}.md names `{name}`, which no module of the formulations has"


@pytest.mark.parametrize(("page", "last"), [("sohl_bobrow", 83), ("kim", 66), ("xiang", 82)])
def test_a_page_has_each_numbered_equation(page, last):
    """The page on Xiang's paper passed over (3)-(5), so that a search for them led nowhere."""
    equations, _, _ = (PAGES / f"{page}.md").read_text(encoding="utf-8").partition("## Misprints")
    rows = re.findall(r"^\| ([^|]*\(\d+\)[^|]*) \|", equations, flags=re.MULTILINE)
    found = {int(number) for row in rows for number in re.findall(r"\((\d+)\)", row)}
    for row in rows:
        for first, end in re.findall(r"\((\d+)\)-\((\d+)\)", row):
            found |= set(range(int(first), int(end)))
    assert set(range(1, last + 1)) - found == set()


def resolves(holder, path):
    for part in path.split("."):
        if not hasattr(holder, part):
            return False
        holder = getattr(holder, part)
    return True


def test_notations_of_all_papers_stand_side_by_side():
    lines = (PAGES / "notation.md").read_text(encoding="utf-8").splitlines()
    head = next(line for line in lines if line.startswith("| meaning"))
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    for paper in ("Sohl & Bobrow", "Silver", "Luh", "Hollerbach", "Kim", "Xiang", "Featherstone"):
        assert any(column.startswith(paper) for column in columns), paper
    table = [line for line in lines if line.startswith("| ")]
    assert {line.count(" | ") + 1 for line in table} == {len(columns)}
    assert len(table) > 25


def test_counts_in_the_guide_are_those_of_today():
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([^|]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| \$n(?:\^(\d))?\$ \|$", text, flags=re.MULTILINE
    )
    methods = {method.name: method for method in METHODS if method.problem == "inverse dynamics"}
    assert len(rows) >= 9
    for name, *told, order in rows:
        state = arguments("inverse dynamics", 6)
        loops, folded = (counted(methods[name].run, arm(6), *state, fold=fold)[1] for fold in (False, True))
        found = [loops.multiplications, loops.additions, folded.multiplications, folded.additions]
        assert [int(number) for number in told] == found, name
        assert int(order or 1) == methods[name].order, name
