"""Elements of XML files with the lines where they begin, read with care: in bounded time and memory.

Of all that XML allows, files of robots need elements and attributes. Document types are refused, and with them every
entity of a file's own: bombs, and what would read other files or the net.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any
from xml.parsers import expat

from cstormpy.errors import FileFormatError, shown, unknown_name
from cstormpy.file_writer import file_path, read_bytes

MAX_BYTES = 16 * 2**20
"""Largest file that is read."""

MAX_DEPTH, MAX_ELEMENTS = 500, 200_000
"""Elements within one another, and all elements of a file."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ENDLESS = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


def numbers_of(values: Iterable[float]) -> str:
    """Return numbers as an attribute lists them, each so that it reads back as it was.

    >>> numbers_of([1, -0.25])
    '1.0 -0.25'
    """
    return " ".join(repr(float(value)) for value in values)


class Element:
    """An element: its tag, attributes and children, and the line where it begins, of another file with its name."""

    __slots__ = ("attributes", "children", "line", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], line: int | str) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.children: list[Element] = []

    def all(self, tag: str) -> list[Element]:
        """Return the children of a tag."""
        return [child for child in self.children if child.tag == tag]

    def within(self) -> Iterator[Element]:
        """Go through the element and all below it, in the order of the file."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def text(self, key: str, whose: str) -> str:
        """Return an attribute, refused with the line and `whose` it is where there is none."""
        if key not in self.attributes:
            raise FileFormatError(f"{self._where(whose)}: has no {key!r}")
        return self.attributes[key]

    def number(self, key: str, whose: str, default: float | None = None, *, endless: bool = False) -> float:
        """Return an attribute that is one finite number, or endless where that may be."""
        if key not in self.attributes and default is not None:
            return default
        return self._number(key, whose, self.text(key, whose).strip(), endless)

    def vector(self, key: str, whose: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return an attribute of as many finite numbers as the default has."""
        return default if key not in self.attributes else self.numbers(key, whose, len(default))

    def numbers(self, key: str, whose: str, least: int, most: int | None = None) -> tuple[float, ...]:
        """Return an attribute of some finite numbers: so many, or from `least` to `most`."""
        words = self.text(key, whose).split()
        most = least if most is None else most
        if not least <= len(words) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            got = shown(self.attributes[key])
            raise FileFormatError(f"{self._where(whose)}: {key}: expected {count} numbers, got {got}")
        return tuple([self._number(key, whose, word) for word in words])

    def choice(self, key: str, whose: str, choices: Iterable[str], default: str) -> str:
        """Return an attribute that is one of some words."""
        word = self.attributes.get(key, default)
        if word not in choices:
            raise FileFormatError(f"{self._where(whose)}: {unknown_name(key, word, choices)}")
        return word

    def _number(self, key: str, whose: str, word: str, endless: bool = False) -> float:
        number = float(word) if _NUMBER.fullmatch(word) or (endless and _ENDLESS.fullmatch(word)) else math.nan
        if math.isfinite(number) or (endless and math.isinf(number)):
            return number
        hint = "; a source of macros becomes a robot by 'xacro FILE > robot.urdf'" if "$" in word else ""
        raise FileFormatError(f"{self._where(whose)}: {key}: expected a finite number, got {shown(word)}{hint}")

    def _where(self, whose: str) -> str:
        return f"line {self.line}: {whose}: <{self.tag[:40]}>"


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, which is not too large.

    Raises
    ------
    FileFormatError, FileReadError
        Naming the file.
    """
    name = file_path(path)
    raw = read_bytes(name, MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise FileFormatError(f"{name}: has more than {MAX_BYTES} bytes")
    return raw


def parse(text: str | bytes) -> Element:
    """Return the root of an XML text.

    Raises
    ------
    FileFormatError
        With the line: no XML, a document type, too deep or too many elements.
    """
    if isinstance(text, str):
        if len(text) > MAX_BYTES:
            raise FileFormatError(f"has more than {MAX_BYTES} characters")
        text = text.encode("utf-8", "replace")
        parser = expat.ParserCreate("utf-8")  # whatever the text says of the file that it came from
    else:
        parser = expat.ParserCreate()
    text, skipped = _without_lead(text)
    builder = _Builder(parser, skipped)
    try:
        parser.Parse(text, True)
    except FileFormatError:
        raise
    except expat.ExpatError as error:
        raise FileFormatError(f"line {skipped + error.lineno}: is not XML: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError):  # Python's own, of an encoding that expat asked it for
        raise FileFormatError("line 1: is not XML: unknown encoding") from None
    assert builder.root is not None  # expat has found one
    return builder.root


def _without_lead(text: bytes) -> tuple[bytes, int]:
    """Return a text without blanks before its declaration, which expat refuses, and how many lines these were."""
    bare = text.lstrip(b" \t\r\n")
    if not bare.startswith(b"<?xml"):
        return text, 0
    lead = text[: len(text) - len(bare)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return bare, lead.count(b"\n")


class _Builder:
    """Makes elements of what expat finds, behind lines that it is not shown."""

    def __init__(self, parser: expat.XMLParserType, skipped: int = 0) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0
        self._parser, self._skipped = parser, skipped
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self._skipped + self._parser.CurrentLineNumber)
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise FileFormatError(f"line {element.line}: has more than {MAX_ELEMENTS} elements")
        if len(self._open) >= MAX_DEPTH:
            raise FileFormatError(f"line {element.line}: has elements nested more than {MAX_DEPTH} deep")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, tag: str) -> None:
        del tag
        self._open.pop()

    def _refuse(self, name: str, *_: Any) -> None:
        line = self._skipped + self._parser.CurrentLineNumber
        raise FileFormatError(f"line {line}: has a document type, {shown(name)}; entities are not read")


def named(element: Element) -> str:
    """Return what an element is called in remarks on the file."""
    name = element.attributes.get("name", "")
    return f"<{element.tag[:40]}>{f' {name[:80]!r}' if name else ''} (line {element.line})"
