"""The table of drift on the page on loops is what the command measures."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "loops.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="looks at the documents of a checkout")


@pytest.mark.slow
def test_the_drift_of_a_plain_diagram_is_what_the_page_says(capsys):
    """Of the row of 1e-6; the others are the command's."""
    measure = runpy.run_path(str(ROOT / "tests" / "benchmarks" / "loop_drift.py"))["main"]
    found = measure(tolerances=(1e-6,))[1e-6]
    row = re.search(r"^\| 1e-06 \| (.*) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    told = [float(gap) for gap in row[1].split("|")]
    assert found[:2] == pytest.approx(told[:2], rel=0.3)
    assert max(*found[2:], *told[2:]) < 1e-9
    assert "| 1e-06 |" in capsys.readouterr().out
