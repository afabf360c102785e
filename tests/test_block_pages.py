"""The pages of the blocks, which are written from their docstrings."""

from __future__ import annotations

import re

import pytest
from block_pages import FOLDER, families, name_of, pages

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the documentation is in the repository")


def test_the_pages_are_what_the_docstrings_say():
    """A docstring has changed? ``python tests/block_pages.py``."""
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == pages()


def test_each_block_has_a_picture_ports_an_equation_or_a_sentence_and_its_arguments():
    found = pages()
    for module, blocks in families().items():
        parts = re.split(r"^## ", found[f"{module}.md"], flags=re.MULTILINE)[1:]
        for block, text in zip(blocks, parts, strict=True):
            said = [text.startswith(f"{name_of(block)}\n"), "<img" in text, "| port |" in text, "| argument |" in text]
            assert all(said) and not re.search(r":`|^\.\. ", text, flags=re.MULTILINE), name_of(block)


def test_aligned_equations_stand_in_an_environment():
    """GitHub renders "&" nowhere else, where Sphinx puts the environment around them."""
    for name, text in pages().items():
        for equation in re.findall(r"```math\n(.*?)```", text, flags=re.DOTALL):
            assert "&" not in equation or r"\begin{" in equation, name
