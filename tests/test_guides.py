"""The code on the pages of docs/ runs from top to bottom and prints what they say; their links lead somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import cstormpy as cs
from cstormpy.cli import main

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
#: A block of Python, and the block of text behind it that says what is printed, if there is one.
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```$)?", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)")


def name_of(page):
    return page.relative_to(DOCS).as_posix()


pytestmark = pytest.mark.skipif(not PAGES, reason="looks at the documents of a checkout")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page.name in ("identification.md", "optimal.md")))
        for page in PAGES
        if CODE.search(page.read_text(encoding="utf-8"))
    ],
    ids=name_of,
)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "__main__"}
    for code, says in CODE.findall(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), space)
        assert printed.getvalue() == says


@pytest.mark.parametrize("page", [*PAGES, *sorted(DOCS.glob("*/*.md"))], ids=name_of)
def test_links_lead_somewhere(page):
    for target, part in LINK.findall(page.read_text(encoding="utf-8")):
        there = page.parent / target if target else page
        assert there.exists(), target
        if part:
            titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert part in [re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles], part


def test_the_list_of_pages_names_each():
    listed = LINK.findall((DOCS / "README.md").read_text(encoding="utf-8"))
    assert {page.name for page in PAGES} - {"README.md"} <= {target for target, _ in listed}


def test_the_page_on_the_command_line_names_each_command_and_variable(capsys):
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    main([])
    commands = re.findall(r"^    ([a-z-]+)\b", capsys.readouterr().out, flags=re.MULTILINE)
    assert "demo" in commands and [name for name in commands if f"cstorm {name}" not in page] == []
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(cs.__file__).parent.rglob("*.py"))
    variables = {name for name in re.findall(r"\bCSTORMPY_[A-Z_]+", sources) if not name.endswith("_TEST")}
    assert variables and [name for name in variables if f"`{name}=" not in page] == []
