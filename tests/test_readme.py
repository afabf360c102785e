"""The README's examples run, print what it says they print, and its test command is one line."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

#: Each Python block that is no file, with the text block that follows it, if one does.
EXAMPLES = re.findall(
    r"(?<!\.py -->\n)^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```$)?", README, flags=re.MULTILINE | re.DOTALL
)
#: Each file that the README shows, and what it shows of it.
FILES = re.findall(r"^<!-- file: (\S+) -->\n```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_readme_shows_an_example_and_its_output():
    assert EXAMPLES
    assert all(output for _, output in EXAMPLES)
    assert len(EXAMPLES) + len(FILES) == README.count("```python")
    assert FILES


@pytest.mark.parametrize(("path", "shown"), FILES)
def test_readme_shows_the_file_as_it_is(path, shown):
    assert (ROOT / path).read_text(encoding="utf-8") == shown


def test_pictures_and_links_are_there():
    for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.nojit
@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_prints_what_the_readme_says(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue().split("\n") == output.split("\n")


@pytest.mark.parametrize(("mark", "does"), [("main", ".venv/bin/cstorm demo"), ("tests", ".venv/bin/pytest")])
def test_commands_are_one_line(mark, does):
    marked = re.findall(rf"^<!-- {mark}:[^\n]*-->\n```sh\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    assert len(marked) == 1
    assert marked[0].count("\n") == 1
    assert does in marked[0]
