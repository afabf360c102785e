"""The recipes of CONTRIBUTING.md are followed to the letter, and its map names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cstormpy.linkage.joints import JOINT_TYPES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="looks at the documents of a checkout")


def recipes():
    """Return the code of each recipe by its title."""
    if not PAGE.is_file():
        return {}
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = {s.partition("\n")[0]: re.findall(r"^```python\n(.*?)^```$", s, flags=re.M | re.S) for s in sections}
    return {title: code for title, code in blocks.items() if code}


RECIPES = recipes()


def test_there_is_a_recipe_for_each():
    assert list(RECIPES) == ["Add a law", "Add a block", "Add a joint", "Add an integration method"]


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_works_as_written(title, monkeypatch):
    for key in JOINT_TYPES:
        monkeypatch.setitem(JOINT_TYPES, key, JOINT_TYPES[key])
    monkeypatch.setitem(JOINT_TYPES, "cylindrical", None)
    space = {"__name__": "recipe"}
    exec("import numpy as np\nimport cstormpy as cs", space)
    for code in RECIPES[title]:
        exec(compile(code, f"CONTRIBUTING.md, {title}", "exec"), space)


@pytest.mark.skipif(not (ROOT / "cstormpy").is_dir(), reason="looks at a checkout")
@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md"])
def test_the_map_names_every_folder(page):
    """A package that is added stands in both maps; `comparison` stood in neither."""
    rows = [row for row in (ROOT / page).read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
    named = set(re.findall(r"`(?:cstormpy/)?([a-z]+)/?`", " ".join(row.split("|")[1] for row in rows)))
    packages = {init.parent.name for base in ("cstormpy", ".") for init in (ROOT / base).glob("*/__init__.py")}
    assert packages - {"cstormpy"} <= named


@pytest.mark.skipif(not (ROOT / "cstormpy").is_dir(), reason="looks at a checkout")
def test_the_map_names_files_that_exist():
    text = PAGE.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text):
        assert any((ROOT / base / path).exists() for base in ("", "cstormpy", "cstormpy/simulation")), path
