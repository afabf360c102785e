"""Writes the pages of docs/blocks from the docstrings of the blocks: an index with icons, and a page for each family.

python tests/block_pages.py
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from bdsim.components import Block

import cstormpy.blocks
from cstormpy.simulation.block_maker import signature_of

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "blocks"
ICONS = "../../blocks/Icons"
BDSIM = "https://petercorke.github.io/bdsim"
MADE = "<!-- written by tests/block_pages.py from the docstrings -->"
#: What each block takes besides its own arguments.
COMMON = ("name", "inputs", "inames", "onames", "snames", "pos")


def families() -> dict[str, list[type]]:
    """Return the blocks by the module that they are in, both in the order of their names."""
    found: dict[str, list[type]] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(cstormpy.blocks.__path__) if m.name[0] != "_"):
        held = vars(importlib.import_module(f"cstormpy.blocks.{module}"))
        own = [c for c in held.values() if inspect.isclass(c) and c.__module__ == f"cstormpy.blocks.{module}"]
        found[module] = sorted((c for c in own if issubclass(c, Block) and c.__name__[0] != "_"), key=name_of)
    return found


def name_of(block: type) -> str:
    """Return how a block is asked for, as in ``bd.GAIN``."""
    return block.__name__.upper()


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    index = [MADE, "", "# Blocks", ""]
    index += [
        "Made by `bd.NAME(...)`; `help(bd.NAME)` says the same. Each also takes `name=`, `inputs=`, "
        "what is wired to it, and `onames=`, `inames=`, `snames=`, its ports' and states' names. Those of bdsim are in "
        f"[its documentation]({BDSIM}); [Simulink's names](../simulink.md) tell what is here what."
    ]
    found = {}
    for module, blocks in families().items():
        family = inspect.getdoc(importlib.import_module(f"cstormpy.blocks.{module}")).splitlines()[0].rstrip(".")
        index += ["", f"## [{family}]({module}.md)", "", "| | block | what it is |", "|---|---|---|"]
        index += [
            f"| {icon(b, 40)} | [{name_of(b)}]({module}.md#{name_of(b).lower()}) | {first_line(b)} |" for b in blocks
        ]
        found[f"{module}.md"] = "\n\n".join([MADE, f"# {family}", *map(section, blocks)]) + "\n"
    return {"README.md": "\n".join(index) + "\n", **found}


def first_line(block: type) -> str:
    """Return what a block is, in one sentence."""
    return inline(" ".join(inspect.getdoc(block).split("\n\n")[0].split()))


def icon(block: type, width: int) -> str:
    """Return the picture of a block, nothing where it has none."""
    path = Path(cstormpy.blocks.__path__[0]) / "Icons" / f"{name_of(block).lower()}.png"
    return f'<img src="{ICONS}/{path.name}" width="{width}" alt="">' if path.is_file() else ""


def section(block: type) -> str:
    """Return the section of one block."""
    doc = inspect.getdoc(block).splitlines()
    parts = [f"## {name_of(block)}", icon(block, 64), f"```python\nbd.{name_of(block)}{call(block)}\n```"]
    return "\n\n".join(part for part in [*parts, "\n".join(body(doc)).strip(), arguments(block)] if part)


def call(block: type) -> str:
    """Return the arguments of a block as they are written, without types, over more lines where they are many."""
    shown = [p.replace(annotation=p.empty) for p in signature_of(block).parameters.values()]
    shown = [p for p in shown if p.kind != p.VAR_KEYWORD and p.name not in COMMON]
    text = str(inspect.Signature(shown)).replace("'", '"')
    if len(text) <= 100:
        return text
    return "(\n" + "".join(f"    {part},\n" for part in text[1:-1].split(", ")) + ")"


def body(lines: list[str]) -> list[str]:
    """Return a docstring in Markdown: ports as a table, mathematics between dollars, examples as code."""
    out: list[str] = []
    k = 0
    while k < len(lines):
        line = lines[k].rstrip()
        k += 1
        if line.startswith(("- input ", "- output ")):
            k, rows = ports(lines, k - 1)
            out += ["| port | name | types | what it is |", "|---|---|---|---|", *rows, ""]
        elif line.startswith(".. math::"):
            k, held = indented(lines, k)
            first = line.removeprefix(".. math::").strip()
            out += ["```math", *equation([first, *held] if first else held), "```", ""]
        elif line.endswith("::"):
            k, held = indented(lines, k)
            out += [line[:-1], "", "```python", *held, "```", ""]
        elif not re.match(r":[a-z]+: ", line):
            k, held = run_of_text(lines, k - 1)
            out += inline("\n".join(held)).split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).splitlines()


def equation(lines: list[str]) -> list[str]:
    """Return what renders: several aligned rows stand in an environment, which Sphinx puts around them by itself."""
    text = "\n".join(lines)
    if "\\begin{" in text or not ("&" in text or "\\\\" in text):
        return lines
    return [r"\begin{aligned}", *lines, r"\end{aligned}"]


def run_of_text(lines: list[str], k: int) -> tuple[int, list[str]]:
    """Return the line behind a paragraph, and this: a role may go over two lines."""
    held = [lines[k].rstrip()]
    while held[-1] and k + 1 < len(lines) and not lines[k + 1].rstrip().endswith("::"):
        k += 1
        held.append(lines[k].rstrip())
    return k + 1, held


def indented(lines: list[str], k: int) -> tuple[int, list[str]]:
    """Return the line behind what is indented, and this without the indentation and the empty lines around it."""
    held = []
    while k < len(lines) and (not lines[k].strip() or lines[k].startswith(" ")):
        held.append(lines[k].rstrip())
        k += 1
    return k, inspect.cleandoc("\n" + "\n".join(held)).splitlines()


def ports(lines: list[str], k: int) -> tuple[int, list[str]]:
    """Return the line behind the list of ports, and a row of each."""
    k, held = run_of_text(lines, k)
    found = re.findall(r"^- (\w+) (.+?) \((.+?)\): (.*)$", re.sub(r"\n  ", " ", "\n".join(held)), re.MULTILINE)
    return k, ["| " + " | ".join(map(cell, [side.capitalize(), *rest])) + " |" for side, *rest in found]


def arguments(block: type) -> str:
    """Return what a block is made with, a line for each argument."""
    said: dict[str, dict[str, str]] = {}
    here: dict[str, str] | None = None
    for line in (inspect.getdoc(block.__init__) or "").splitlines():
        match = re.match(r":(param|type) \*{0,2}(\w+): (.*)", line)
        if match:
            here, kind = said.setdefault(match[2], {}), match[1]
            here[kind] = match[3]
        elif here is not None and line.startswith(" "):
            here[kind] += f" {line.strip()}"
        else:
            here = None
    said.pop("blockargs", None)
    rows = [
        f"| `{name}` | {cell(about.get('type', ''))} | {cell(plain(about.get('param', '')))} |"
        for name, about in said.items()
    ]
    return "\n".join(["| argument | type | what it is |", "|---|---|---|", *rows]) if rows else ""


def plain(text: str) -> str:
    """Return a text whose default is written as usual: of 0.5 in a docstring bdedit reads what is before the dot."""
    return re.sub(r"(?<=defaults to )-?\de-\d\b", lambda number: repr(float(number[0])), text)


@functools.cache
def _names() -> dict[str, str]:
    """Return how blocks are asked for, by the names of their classes."""
    return {block.__name__: name_of(block) for blocks in families().values() for block in blocks}


def cell(text: str) -> str:
    """Return a text for a table."""
    return inline(text).replace("|", "\\|")


def inline(text: str) -> str:
    """Return a line with its roles and code in Markdown."""
    text = re.sub(r":math:`([^`]*)`", r"$`\1`$", text)
    text = re.sub(r":class:`~?!?(\w+)`", lambda match: f"`{_names().get(match[1], match[1])}`", text)
    text = re.sub(r":[a-z:]+:`~?!?([^`<]*[^`<\s])(?:\s*<[^`>]*>)?`", r"`\1`", text)
    return re.sub(r"``([^`]*)``", r"`\1`", text)


if __name__ == "__main__":
    made = pages()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
