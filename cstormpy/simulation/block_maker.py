"""The maker of one kind of block, as ``bd.GAIN``: it makes blocks, and says of itself what their class says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

OPTIONS = ("name", "inputs", "inames", "onames", "snames", "pos")
"""The arguments that every block takes by name beside its own."""


class _Documentation:
    """The documentation of a maker: of its block; of the class of makers, its own."""

    def __init__(self, own: str | None) -> None:
        self._own = own

    def __get__(self, maker: BlockMaker | None, owner: Any = None) -> str | None:
        if maker is None:
            return self._own
        from cstormpy.simulation.bdsim_blocks import NOTES  # which imports bdsim

        made = maker.made
        note = NOTES.get(maker.__name__)
        return as_text("\n\n".join(filter(None, [inspect.getdoc(made), note, inspect.getdoc(made.__init__)])))


class BlockMaker:
    """A function that makes blocks of one kind.

    Its signature and its documentation are those of the block's class, which is imported when one of them is asked for:
    a diagram has a hundred kinds and uses five.

    Parameters
    ----------
    kind : str
        As "GAIN".
    make : callable
        Makes a block.
    resolve : callable
        Returns the class of the block.
    """

    __doc__ = _Documentation(__doc__)

    def __init__(self, kind: str, make: Callable[..., Any], resolve: Callable[[str], Any]) -> None:
        self.__name__ = self.__qualname__ = kind
        self._make, self.resolve = make, resolve

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make a block."""
        return self._make(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> BlockMaker:
        """Be a method of what it is an attribute of: `help` then shows it as a function."""
        return self

    def __deepcopy__(self, memo: Any) -> BlockMaker:
        """Stay what it is, as functions do, where a diagram is copied to be a subsystem."""
        return self

    @property
    def made(self) -> Any:
        """The class of the blocks."""
        return self.resolve(self.__name__)

    @property
    def __signature__(self) -> inspect.Signature:
        return signature_of(self.made)

    def __repr__(self) -> str:
        return f"<maker of {self.__name__} blocks>"


def signature_of(made: Any) -> inspect.Signature:
    """Return the arguments that a kind of block is made with, those that all blocks take written out.

    Parameters
    ----------
    made : class
        Of the block.
    """
    parameters = [p for name, p in inspect.signature(made).parameters.items() if name != "bd"]
    own = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    names = {p.name for p in own}
    if len(own) < len(parameters):
        own += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in OPTIONS
            if name not in names
        ]
    return inspect.Signature(own)


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
