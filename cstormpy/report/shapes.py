"""The shape of each kind of block: its outline, what stands in it, and where its ports are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.report.graph import Node
from cstormpy.report.svg import Point, number, polygon, shortened, tag, text, text_width

_NAME_SIZE, _PORT_SIZE, _TEXT_SIZE = 10.5, 9.5, 12.0
_NAME_WIDTH = 112.0
_NAME_HEIGHT = 15.0
_PITCH = 17.0
"""Distance between the ports of a block."""
_LONGEST_POLYNOMIAL = 22
"""Letters of a polynomial in a block; a transfer function with a longer one is not written out."""
_NOTE_PITCH, _NOTE_WIDTH = 13.0, 170.0
"""Distance between the lines below its ports, and how wide one may be."""


@dataclass(frozen=True)
class Shape:
    """The drawing of a block, with its upper left corner at the origin.

    Attributes
    ----------
    width, height
        Of the shape.
    inputs, outputs
        Where the wires end, relative to the corner.
    body
        The SVG.
    name
        What stands below, shortened if need be.
    """

    width: float
    height: float
    inputs: list[Point]
    outputs: list[Point]
    body: str
    name: str

    @property
    def full_width(self) -> float:
        """Width with the name."""
        return max(self.width, text_width(self.name, _NAME_SIZE))

    @property
    def full_height(self) -> float:
        """Height with the name."""
        return self.height + (_NAME_HEIGHT if self.name else 0.0)


def shape_of(node: Node) -> Shape:
    """Return the shape of a block."""
    maker = _MAKERS.get(node.kind)
    if maker is not None:
        shape = maker(node)
        if len(shape.inputs) == len(node.inputs) and len(shape.outputs) == len(node.outputs):
            return shape  # a block of that name with other ports is somebody else's
    if node.ours or any(node.inputs) or any(node.outputs):
        return _titled(node)
    symbol = _SYMBOLS.get(node.kind)
    return _box(node, _spoken(type(node.block).__name__) if symbol is None else symbol)


def _spoken(kind: str) -> str:
    """Return the words of a class name.

    >>> _spoken("HybridDynamics"), _spoken("IKine")
    ('hybrid dynamics', 'i kine')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", kind).lower()


def _name(node: Node) -> str:
    return shortened(node.name, _NAME_SIZE, _NAME_WIDTH)


def _spread(count: int, height: float, pitch: float = _PITCH) -> list[float]:
    """Return heights of ports, evenly about the middle."""
    return [height / 2 + pitch * (k - (count - 1) / 2) for k in range(count)]


def _ports(node: Node, width: float, height: float, pitch: float = _PITCH) -> tuple[list[Point], list[Point]]:
    left, right = (_spread(len(names), height, pitch) for names in (node.inputs, node.outputs))
    return [(0.0, y) for y in left], [(width, y) for y in right]


def _widest(names: list[str]) -> float:
    return max((text_width(name, _PORT_SIZE) for name in names), default=0.0)


def _names_inside(node: Node, inputs: list[Point], outputs: list[Point], width: float) -> str:
    """Return the names of the ports, beside them."""
    left = "".join(text(7.0, y, n, "p", "start") for (_, y), n in zip(inputs, node.inputs, strict=True) if n)
    right = (text(width - 7.0, y, n, "p", "end") for (_, y), n in zip(outputs, node.outputs, strict=True) if n)
    return left + "".join(right)


def _rectangle(node: Node, width: float, height: float, radius: float = 4.0) -> str:
    return tag("rect", x=0.0, y=0.0, width=width, height=height, rx=radius, class_=f"b {_colour(node)}")


def _colour(node: Node) -> str:
    """Return the class that gives the colour."""
    if node.ours and node.role != "sink":
        return "plant" if node.role == "state" or node.block.nstates else "ours"
    return node.role


def _sized(node: Node, width: float, height: float) -> tuple[float, float]:
    return width, max(height, _PITCH * max(len(node.inputs), len(node.outputs)) + 8.0)


def _box(node: Node, symbol: str) -> Shape:
    """Return a box with one line of text in it."""
    label = shortened(symbol, _TEXT_SIZE, 118.0)
    width, height = _sized(node, max(42.0, text_width(label, _TEXT_SIZE) + 18.0), 34.0)
    inputs, outputs = _ports(node, width, height)
    body = _rectangle(node, width, height) + text(width / 2, height / 2, label)
    return Shape(width, height, inputs, outputs, body, _name(node))


def _titled(node: Node) -> Shape:
    """Return a box with its kind on top and the names of its ports inside."""
    title = _TITLES.get(node.kind) or _spoken(type(node.block).__name__)
    left, right = _widest(node.inputs), _widest(node.outputs)
    width = max(text_width(title, 11.0) + 20.0, left + right + 34.0, 64.0)
    rows = max(len(node.inputs), len(node.outputs), 1)
    notes = _named_values(node)
    width = max([width, *(text_width(note, _PORT_SIZE) + 14.0 for note in notes)])
    below = 26.0 + _PITCH * rows
    height = below + (_NOTE_PITCH * len(notes) + 4.0 if notes else 0.0)
    inputs, outputs = _ports(node, width, 40.0 + _PITCH * rows)  # about the middle of what is below the title
    body = _rectangle(node, width, height, 6.0) + text(width / 2, 11.0, title, "t title")
    body += tag("path", d=f"M0 20H{number(width)}", class_="rule")
    body += _names_inside(node, inputs, outputs, width)
    if notes:
        body += tag("path", d=f"M0 {number(below - 3.0)}H{number(width)}", class_="rule")
    body += "".join(text(7.0, below + _NOTE_PITCH * (k + 0.5), note, "p", "start") for k, note in enumerate(notes))
    return Shape(width, height, inputs, outputs, body, _name(node))


def _named_values(node: Node) -> list[str]:
    """Return a line for each output whose values stand for names: a law's phases, the laws of a controller.

    >>> from types import SimpleNamespace
    >>> block = SimpleNamespace(value_names=(None, ("lqr",), ("swing up", "balance")))
    >>> _named_values(Node(block, "controller", "", "controller", [], ["tau", "law", "phase"], "function"))
    ['phase: swing up, balance']
    """
    named = zip(node.outputs, getattr(node.block, "value_names", None) or (), strict=False)
    lines = [(port and f"{port}: ") + ", ".join(map(str, names)) for port, names in named if names and len(names) > 1]
    return [shortened(line, _PORT_SIZE, _NOTE_WIDTH) for line in lines]


def _subsystem(node: Node) -> Shape:
    """Return the box of a closed subsystem, with its name inside."""
    label = shortened(node.name, _TEXT_SIZE, 150.0)
    left, right = _widest(node.inputs), _widest(node.outputs)
    width, height = _sized(node, max(64.0, text_width(label, _TEXT_SIZE) + 30.0 + left + right), 44.0)
    inputs, outputs = _ports(node, width, height)
    body = tag("rect", x=0.0, y=0.0, width=width, height=height, rx=8.0, class_="group closed")
    body += text(left + (width - left - right) / 2, height / 2, label)
    body += _names_inside(node, inputs, outputs, width)
    return Shape(width, height, inputs, outputs, body, "")


def _brief(value: Any) -> str:
    """Return a value as few characters: a number, or what kind of array it is."""
    array = np.asarray(value)
    if array.dtype.kind in "biuf" and array.size == 1:
        return f"{float(array.reshape(-1)[0]):.4g}".replace("-", "−")
    if array.dtype.kind in "biuf" and array.ndim == 1 and array.size <= 3:
        return "[" + ", ".join(f"{v:.3g}" for v in array.tolist()).replace("-", "−") + "]"
    if array.dtype.kind in "biuf" and array.ndim:
        return "×".join(map(str, array.shape)) + (" vector" if array.ndim == 1 else " matrix")
    return type(value).__name__ if not isinstance(value, str) else value


def _gain(node: Node) -> Shape:
    label = _brief(getattr(node.block, "K", "K"))
    label = "K" if "matrix" in label or "vector" in label else shortened(label, 11.0, 60.0)
    width = max(42.0, 1.75 * text_width(label, 11.0) + 16.0)
    height = max(38.0, 0.72 * width)
    body = polygon([(0, 0), (width, height / 2), (0, height)], f"b {node.role}")
    body += text(0.36 * width, height / 2, label, "t small")
    return Shape(width, height, [(0.0, height / 2)], [(width, height / 2)], body, _name(node))


def _round(node: Node, symbols: list[str], centre: str = "") -> Shape:
    """Return a circle with a sign beside each input."""
    count = len(node.inputs)
    r = max(15.0, 0.5 * 13.0 * count + 3.0)
    inputs, body = [], tag("circle", cx=r, cy=r, r=r, class_=f"b {node.role}")
    for y, symbol in zip(_spread(count, 2 * r, 13.0), symbols, strict=False):
        x = r - (r * r - (y - r) ** 2) ** 0.5
        inputs.append((x, y))
        body += text(x + 7.0, y, symbol, "t sign")
    if centre:
        body += text(1.25 * r, r, centre)
    return Shape(2 * r, 2 * r, inputs, [(2 * r, r)], body, _name(node))


def _sum(node: Node) -> Shape:
    return _round(node, [{"-": "−"}.get(sign, sign) for sign in str(getattr(node.block, "signs", ""))], "Σ")


def _prod(node: Node) -> Shape:
    return _round(node, [{"*": "×", "/": "÷"}.get(op, op) for op in str(getattr(node.block, "ops", ""))], "Π")


def _fraction(node: Node, above: str, below: str) -> Shape:
    wide = max(text_width(above, _TEXT_SIZE), text_width(below, _TEXT_SIZE))
    width, height = _sized(node, max(44.0, wide + 20.0), 44.0)
    inputs, outputs = _ports(node, width, height)
    body = _rectangle(node, width, height)
    body += text(width / 2, height / 2 - 9.0, above) + text(width / 2, height / 2 + 10.5, below)
    body += tag("path", d=f"M{number((width - wide) / 2 - 3)} {number(height / 2)}h{number(wide + 6)}", class_="line")
    return Shape(width, height, inputs, outputs, body, _name(node))


def _integrator(node: Node) -> Shape:
    return _fraction(node, "1", "s")


def _discrete_integrator(node: Node) -> Shape:
    return _fraction(node, "T", "z − 1")


def transfer_function(node: Node) -> tuple[str, str] | None:
    """Return numerator and denominator of a linear block of one input and one output, or None."""
    from scipy.signal import ss2tf

    block, variable = node.block, "z" if _is_sampled(node) else "s"
    try:
        feedthrough = np.zeros((1, 1)) if block.D is None else np.reshape(block.D, (1, 1))
        above, below = ss2tf(block.A, np.reshape(block.B, (-1, 1)), np.reshape(block.C, (1, -1)), feedthrough)
        return _polynomial(above[0], variable), _polynomial(below, variable)
    except (ValueError, TypeError, AttributeError, np.linalg.LinAlgError):
        return None


def _is_sampled(node: Node) -> bool:
    return node.kind.endswith("_s") or node.kind.startswith("discrete")


def _transfer(node: Node) -> Shape:
    """Return the transfer function itself where it is short."""
    shown = transfer_function(node)
    if shown is not None and max(map(len, shown)) <= _LONGEST_POLYNOMIAL:
        return _fraction(node, *shown)
    return _titled(node) if node.ours else _box(node, f"H({'z' if _is_sampled(node) else 's'})")


def _polynomial(coefficients: Any, variable: str) -> str:
    """Return a polynomial with the highest power first.

    >>> _polynomial([1, -2, 0.5], "s")
    's² − 2s + 0.5'
    """
    values = np.asarray(coefficients, dtype=float)
    values = np.where(np.abs(values) < 1e-9 * np.abs(values).max(), 0.0, values)
    terms = ""
    for power, c in zip(range(len(values) - 1, -1, -1), values.tolist(), strict=True):
        if c == 0.0:
            continue
        factor = "" if power and abs(abs(c) - 1) < 1e-9 else f"{abs(c):.3g}"
        raised = "" if power < 2 else str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        sign = ("−" if c < 0 else "") if not terms else (" − " if c < 0 else " + ")
        terms += sign + factor + (variable + raised if power else "")
    return terms or "0"


def _state_space(node: Node) -> Shape:
    width, height = _sized(node, 88.0, 44.0)
    inputs, outputs = _ports(node, width, height)
    rows = ("x⁺ = Ax + Bu", "y = Cx + Du") if _is_sampled(node) else ("ẋ = Ax + Bu", "y = Cx + Du")
    body = _rectangle(node, width, height) + text(width / 2, height / 2 - 8.0, rows[0], "t small")
    return Shape(
        width, height, inputs, outputs, body + text(width / 2, height / 2 + 9.0, rows[1], "t small"), _name(node)
    )


def _constant(node: Node) -> Shape:
    return _box(node, _brief(getattr(node.block, "value", "?")))


def _icon(path: str, axes: bool = False) -> Callable[[Node], Shape]:
    """Return the maker of a box with a little picture of 30 by 20 in it."""

    def make(node: Node) -> Shape:
        wide, high = _sized(node, 46.0, 36.0)
        inputs, outputs = _ports(node, wide, high)
        move = f"translate({number(wide / 2 - 15)} {number(high / 2 - 10)})"
        picture = tag("path", d="M0 10H30M15 0V20", class_="faint") if axes else ""
        body = _rectangle(node, wide, high) + tag("g", picture + tag("path", d=path, class_="line"), transform=move)
        return Shape(wide, high, inputs, outputs, body, _name(node))

    return make


def _screen(path: str) -> Callable[[Node], Shape]:
    """Return the maker of a box with a screen, as scopes have."""

    def make(node: Node) -> Shape:
        names = ["" if re.fullmatch(r"u\d*", n) else n for n in node.inputs]  # those say nothing
        named = _widest(names)
        indent = named + 6.0 if named else 0.0
        width, height = _sized(node, 52.0 + indent, 42.0)
        inputs, outputs = _ports(node, width, height)
        x, y = indent + 8.0, height / 2 - 13.0
        body = _rectangle(node, width, height) + tag("rect", x=x, y=y, width=36.0, height=26.0, rx=2, class_="screen")
        body += "".join(text(6.0, py, n, "p", "start") for (_, py), n in zip(inputs, names, strict=True) if n)
        body += tag("path", d=path, class_="trace", transform=f"translate({number(x)} {number(y)})")
        return Shape(width, height, inputs, outputs, body, _name(node))

    return make


def _bar(node: Node) -> Shape:
    """Return the bar that joins or splits signals."""
    height = max(34.0, 15.0 * max(len(node.inputs), len(node.outputs)) + 6.0)
    inputs, outputs = _ports(node, 8.0, height, 15.0)
    return Shape(8.0, height, inputs, outputs, tag("rect", width=8.0, height=height, rx=1, class_="bar"), _name(node))


def _stop(node: Node) -> Shape:
    c = 11.0
    corners = [(c, 0), (38 - c, 0), (38, c), (38, 38 - c), (38 - c, 38), (c, 38), (0, 38 - c), (0, c)]
    body = polygon([(float(x), float(y)) for x, y in corners], "b stop") + text(19, 19, "stop", "t small")
    return Shape(38.0, 38.0, [(0.0, y) for y in _spread(len(node.inputs), 38.0)], [], body, _name(node))


def _null(node: Node) -> Shape:
    height = max(30.0, _PITCH * len(node.inputs))
    body = tag("path", d=f"M0 0V{number(height)}M5 5V{number(height - 5)}M10 10V{number(height - 10)}", class_="line")
    return Shape(12.0, height, [(0.0, y) for y in _spread(len(node.inputs), height)], [], body, _name(node))


def _waveform(node: Node) -> Shape:
    waves = {"square": "M0 18H5V2H15V18H25V2H30", "triangle": "M0 10L7 2L22 18L30 10"}
    wave = str(getattr(node.block, "wave", "sine"))
    return _icon(waves.get(wave, "M0 10C5 -4 10 -4 15 10S25 24 30 10"))(node)


_MAKERS: dict[str, Callable[[Node], Shape]] = {
    "subsystem": _subsystem,
    "gain": _gain,
    "sum": _sum,
    "prod": _prod,
    "integrator": _integrator,
    "integrator_s": _discrete_integrator,
    "dintegrator": _discrete_integrator,
    "lti_siso": _transfer,
    "lti_siso_s": _transfer,
    "deriv2": _transfer,
    "transferfn": _transfer,
    "discretetf": _transfer,
    "statespace": _state_space,
    "discretess": _state_space,
    "lti_ss": _state_space,
    "lti_ss_s": _state_space,
    "constant": _constant,
    "step": _icon("M0 18H13V3H30"),
    "ramp": _icon("M0 18H9L30 2"),
    "piecewise": _icon("M0 18H8V8H16V13H23V3H30"),
    "waveform": _waveform,
    "time": _icon("M15 1A9 9 0 1 0 15.1 1M15 4V10L20 13"),
    "clip": _icon("M3 17H9L21 3H27", axes=True),
    "saturation": _icon("M3 17H9L21 3H27", axes=True),
    "deadzone": _icon("M3 18L11 10H19L27 2", axes=True),
    "quantizer": _icon("M3 18H9V12H15V7H21V2H27", axes=True),
    "relay": _icon("M3 17H21V3M9 17V3H27", axes=True),
    "backlash": _icon("M3 17H13L21 3H27M7 17L15 3H21", axes=True),
    "pulse": _icon("M0 18H5V3H10V18H20V3H25V18H30"),
    "noise": _icon("M0 10L3 4L6 15L9 8L12 17L15 2L18 12L21 6L24 16L27 9L30 13"),
    "lookup1d": _icon("M2 18L9 9L18 12L28 2"),
    "interpolate": _icon("M2 18L9 9L18 12L28 2"),
    "zoh": _icon("M0 17H6V12H12V6H18V3H24V8H30"),
    "mux": _bar,
    "demux": _bar,
    "scope": _screen("M4 19C9 1 13 1 18 13S28 25 32 7"),
    "livescope": _screen("M4 19C9 1 13 1 18 13S28 25 32 7"),
    "scopexy": _screen("M18 5C32 5 32 21 18 21S4 5 18 5"),
    "scopexy1": _screen("M18 5C32 5 32 21 18 21S4 5 18 5"),
    "livexy": _screen("M18 5C32 5 32 21 18 21S4 5 18 5"),
    "mechanismview": _screen("M6 21L15 8L28 15M4 23H9"),
    "animation": _screen("M14 7L24 13L14 19Z"),
    "stop": _stop,
    "null": _null,
}

_SYMBOLS = {
    "function": "f(u)",
    "pow": "uⁿ",
    "inverse": "u⁻¹",
    "transpose": "uᵀ",
    "norm": "‖u‖",
    "det": "det u",
    "cond": "κ(u)",
    "flatten": "vec u",
    "slice1": "u[i:j]",
    "slice2": "u[i:j]",
    "index": "u[i]",
    "item": "u[key]",
    "deriv_s": "Δu/T",
    "dict": "{…}",
    "print": ">_",
    "watch": "watch",
    "event": "u = 0",
}

_TITLES = {"ikine": "inverse kinematics", "rnea": "inverse dynamics"}
