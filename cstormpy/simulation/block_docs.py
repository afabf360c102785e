"""Documentation of blocks as text: bdsim's docstrings are written for Sphinx, with tables, roles and fields."""

from __future__ import annotations

import inspect
import re

_ROLE = re.compile(r":[a-z:]+:`(?P<text>[^`<]*[^`<\s])(?:\s*<[^`>]*>)?`")
_MATHS = re.compile(r":math:`(?P<text>[^`]*)`")
_FIELD = re.compile(r":(?P<kind>param|type)\s+\*{0,2}(?P<name>\w+):\s*(?P<text>.*)")
_OTHER_FIELD = re.compile(r":(?P<kind>[a-z]+):(?!`)\s*(?P<text>.*)")
_PORTS = re.compile(r"^(?:- (?:in|out)put .*\n(?:  .*\n)*)+", re.MULTILINE)
_TITLES = {"seealso": "See also", "note": "Note", "inputs": "Inputs", "outputs": "Outputs", "states": "States"}
_DROPPED = ("blockname", "rtype", "returns")


def as_text(doc: str | None) -> str:
    r"""Return a docstring as one reads it: ports and arguments in lines, mathematics and code as they stand.

    >>> print(as_text("Gain.\n\n:param K: the gain :math:`K`, as ``2.5``\n:type K: float"))
    Gain.
    <BLANKLINE>
    Arguments:
        K (float): the gain K, as 2.5
    >>> print(as_text(":class:`Gain` at the beginning of a line."))
    Gain at the beginning of a line.
    """
    lines = _PORTS.sub(_port_lines, inspect.cleandoc(doc or "")).splitlines()
    text, arguments = _without_fields(lines)
    shown = _plain("\n".join(_without_directives(text)))
    shown = re.sub(r"\n{3,}", "\n\n", shown).strip()
    if arguments:
        shown += "\n\nArguments:\n" + "\n".join(arguments)
    return shown.strip()


def _port_lines(found: re.Match[str]) -> str:
    """Return the list of ports of our own blocks as bdsim's tables of ports are shown."""
    ports = re.sub(r"\n  ", " ", found[0]).splitlines()
    return "\n".join(["Ports:", *(f"    {port.removeprefix('- ')}" for port in ports), ""])


def _plain(text: str) -> str:
    text = _MATHS.sub(lambda match: match["text"], text)
    text = _ROLE.sub(lambda match: match["text"].lstrip("~!"), text)
    return text.replace("``", "").replace("::\n", ":\n")


def _without_fields(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines without the fields of arguments, and a line for each argument."""
    rest: list[str] = []
    said: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    kind = ""
    for line in lines:
        match = _FIELD.match(line)
        if match:
            current, kind = said.setdefault(match["name"], {}), match["kind"]
            current[kind] = match["text"].strip()
        elif current is not None and line.startswith(" ") and line.strip():
            current[kind] += " " + line.strip()
        else:
            current = None
            rest.append(line)
    arguments = []
    for name, about in said.items():
        if name in ("blockargs", "kwargs"):
            continue
        of = f" ({about['type']})" if about.get("type") else ""
        arguments.append(f"    {name}{of}: {_plain(about.get('param', ''))}".rstrip(": "))
    return rest, arguments


def _without_directives(lines: list[str]) -> list[str]:
    """Return the lines with tables of ports as lines, and what other directives hold as it stands."""
    out: list[str] = []
    k = 0
    while k < len(lines):
        line = lines[k]
        words = line.strip()
        if words.startswith(".. list-table::"):
            k, rows = _table(lines, k + 1)
            out += ["Ports:", *rows, ""]
            continue
        if words.startswith(".. "):
            held = words.split("::", 1)[1].strip() if "::" in words else ""
            out += [f"    {held}"] if held and not words.startswith((".. image", ".. figure")) else []
        elif match := _OTHER_FIELD.match(line):
            if match["kind"] not in _DROPPED:
                out.append(f"{_TITLES.get(match['kind'], match['kind'])}: {match['text']}")
        elif not re.match(r"\s+:[a-z-]+:(\s|$)", line):  # options of directives
            out.append(line)
        k += 1
    return out


def _table(lines: list[str], k: int) -> tuple[int, list[str]]:
    """Return the line behind a table, and its rows but for the header: side, name, what it takes, what it is."""
    rows: list[list[str]] = []
    while k < len(lines) and (not lines[k].strip() or lines[k].startswith(" ")):
        line = lines[k].strip()
        if line.startswith("*"):
            rows.append([line.lstrip("* ").removeprefix("- ").strip()])
        elif line.startswith("-") and rows:
            rows[-1].append(line.removeprefix("-").strip())
        elif line and rows and not line.startswith(":"):
            rows[-1][-1] += f" {line}"
        k += 1
    cells = [[*row, "", "", "", ""][:4] for row in rows[1:]]
    return k, [f"    {side.lower()} {name} ({kind}): {what}" for side, name, kind, what in cells]
