"""The README's examples run, print what it says they print, and its test command is one line."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")

#: Each Python block, with the text block that follows it, if one does.
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```$)?", README, flags=re.MULTILINE | re.DOTALL)


def test_readme_shows_an_example_and_its_output():
    assert EXAMPLES
    assert all(output for _, output in EXAMPLES)
    assert len(EXAMPLES) == README.count("```python")


@pytest.mark.nojit
@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_prints_what_the_readme_says(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue().split("\n") == output.split("\n")


def test_test_command_is_one_line():
    marked = re.findall(r"^<!-- tests:.*-->\n```sh\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    assert len(marked) == 1
    assert marked[0].count("\n") == 1
    assert ".venv/bin/pytest" in marked[0]
