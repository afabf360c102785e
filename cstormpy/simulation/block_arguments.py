"""Arguments of blocks of bdsim, looked at before the block is made: bdsim's own errors speak of its insides."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from bdsim import BlockDiagram
from bdsim.components import Clock

from cstormpy.arguments import entries, flag, option, whole_number
from cstormpy.arrays import real_array, real_number, refuse_masked
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, NonFinite, shown, unknown_name
from cstormpy.simulation.block_maker import signature_of

#: Ports of a block.
_PORTS = 10_000
#: Classes of blocks whose arguments are kept.
_KINDS = 512


def check_arguments(kind: str, made: Any, given: Sequence[Any], named: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return the arguments by name, with those that are not given; refuse what a kind of block cannot be made with.

    Parameters
    ----------
    kind : str
        As "SUM".
    made : class
        Of the block.
    given, named
        The arguments, without the diagram.
    """
    signature = _signature(made)
    parameters = [p for name, p in signature.parameters.items() if name != "bd"]
    try:
        bound = signature.bind_partial(*given, **named)
    except TypeError:
        raise _misfit(kind, made, parameters, given, named) from None
    for p in parameters:
        needed = p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if needed and p.name not in bound.arguments:
            raise InvalidType(f"{kind}: needs {p.name!r}, as in bd.{kind}({p.name}=…)")
    clock = bound.arguments.get("clock")
    if clock is not None and not isinstance(clock, Clock):
        raise InvalidType(f"{kind}: clock: expected a clock, as bd.clock(100, 'Hz'), got {shown(clock)}")
    if made.__module__.partition(".")[0] == "bdsim":
        _check_bdsim(kind, made, parameters, bound.arguments, named)
    bound.apply_defaults()
    if kind in _CHECKS:
        _CHECKS[kind](kind, bound.arguments)
    return bound


def _check_bdsim(
    kind: str, made: Any, parameters: list[inspect.Parameter], bound: Mapping[str, Any], named: Mapping[str, Any]
) -> None:
    """Refuse unknown names, and texts for numbers: some of bdsim's blocks take them, and fail when they run."""
    if any(p.name == "blockargs" for p in parameters):
        for name in named:
            if name not in _names(made):
                raise unknown_name(f"{kind}: argument", name, signature_of(made).parameters)
    for p in parameters:
        refuse_masked(bound.get(p.name), f"{kind}: {p.name}")
        if p.name == "x0" and isinstance(bound.get("x0"), (list, tuple, np.ndarray)):
            real_array(bound["x0"], f"{kind}: x0", (), ("any",))
        is_number = type(p.default) in (int, float) or p.annotation == "float"
        is_number = is_number and kind != "CONSTANT"  # which may be anything
        given = bound.get(p.name, 0.0)
        if is_number and (given is None or isinstance(given, (str, bytes))):
            raise InvalidType(f"{kind}: {p.name}: expected a number, got {shown(given)}")
        if is_number and isinstance(given, (float, np.floating)) and math.isnan(given):
            raise NonFinite(f"{kind}: {p.name}: expected a number, got nan")
        if p.name in ("nin", "nout") and is_number and p.name in bound:
            whole_number(given, f"{kind}: {p.name}", least=0 if kind == "FUNCTION" else 1, most=_PORTS)


@functools.lru_cache(_KINDS)
def _signature(made: Any) -> inspect.Signature:
    """Return the arguments of a class of blocks, which it takes longer to read than to make a block."""
    return inspect.signature(made)


@functools.lru_cache(_KINDS)
def _names(made: Any) -> frozenset[str]:
    """Return the names of arguments that a class of blocks takes, of its own and of what it inherits."""
    inherited = (name for base in made.__mro__[1:-1] for name in inspect.signature(base.__init__).parameters)
    return frozenset([*signature_of(made).parameters, *inherited])


def _misfit(
    kind: str, made: Any, parameters: list[inspect.Parameter], given: Sequence[Any], named: Mapping[str, Any]
) -> CstormError:
    """Return the error for arguments that have no place."""
    known = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for name in named:
        if name in known[: len(given)]:
            return InvalidType(f"{kind}: {name!r} is given twice, by its place and by its name")
        if name not in known and name not in _names(made):
            return unknown_name(f"{kind}: argument", name, known)
    return InvalidType(f"{kind}: takes {len(known)} arguments ({', '.join(known) or 'none'}), got {len(given)}")


def not_made(kind: str, error: Exception) -> DiagramError:
    """Return the error for a block that its own class could not make, in its words where they are for users."""
    words = str(error).strip()
    if counts := _ARGUMENTS.match(words):
        words = f"the function takes {counts[1]} arguments, nin={counts[2]}; it has an input, or one of fargs, for each"
    if isinstance(error, (ValueError, AssertionError)) and words:
        return DiagramError(f"{kind}: cannot be made: {words}")
    if "dtype" in words:  # NumPy's names of types are no words for a user
        words = "one of them is of a type that cannot be computed with"
    return DiagramError(f"{kind}: cannot be made of these arguments: {words}")


_ARGUMENTS = re.compile(r"argument count mismatch: function has (\d+) args.*\bnin=(\d+)")
"""bdsim's words for a FUNCTION that has not an input for each argument."""


def _signs(name: str, allowed: str, example: str) -> Callable[[str, Mapping[str, Any]], None]:
    """Return a check that an argument is a text of some signs, one for each input."""

    def check(kind: str, arguments: Mapping[str, Any]) -> None:
        value = arguments[name]
        if not isinstance(value, str) or not value or set(value) - set(allowed):
            wanted = f"{allowed[0]} and {allowed[1]}, one for each input, as {example!r}"
            raise InvalidValue(f"{kind}: {name}: expected a text of {wanted}, got {shown(value)}")

    return check


def _gains(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a controller without an integral or a derivative part, which bdsim has no diagram for."""
    gains = [arguments.get(name) for name in ("P", "I", "D")]
    if all(isinstance(gain, (int, float)) for gain in gains) and not gains[1] and not gains[2]:
        raise InvalidValue(f"{kind}: needs a gain I or D, as in bd.{kind}(P=2.0, I=1.0); P alone is a SUM and a GAIN")


def _functions(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what cannot be called."""
    value = arguments["func"]
    if not all(map(callable, value if isinstance(value, (list, tuple)) else [value])):
        raise InvalidType(f"{kind}: func: expected a function, as numpy.sin, or a list of them, got {shown(value)}")


def _fraction(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse polynomials that are not of numbers, and a denominator, or a factor of one, that begins with 0."""
    for name in ("N", "D"):
        given = arguments[name]
        factors = given if isinstance(given, (list, tuple, np.ndarray)) else [given]
        for factor in factors:
            real_array(factor, f"{kind}: {name}")
        for part in [given, *factors] if name == "D" else ():
            first = next(iter(part), 0.0) if isinstance(part, (list, tuple, np.ndarray)) else 1.0
            if isinstance(first, (int, float, np.number)) and first == 0.0:
                raise InvalidValue(f"{kind}: D: must not begin with 0, got {shown(part)}")


def _pole(*names: str) -> Callable[[str, Mapping[str, Any]], None]:
    """Return a check that the poles of a derivative's filter are in the left half plane."""

    def check(kind: str, arguments: Mapping[str, Any]) -> None:
        for name in names:
            value = arguments[name]
            if isinstance(value, (int, float, np.number)) and not value > 0.0:
                raise InvalidValue(f"{kind}: {name}: expected a positive number, got {value:g}")

    return check


def _table(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a function between points of which one part is missing."""
    if arguments["xy"] is None:
        if arguments["x"] is None or arguments["y"] is None:
            raise InvalidType(f"{kind}: needs 'x' and 'y', as in bd.{kind}(x=[0, 1], y=[0, 2])")
        real_array(arguments["x"], f"{kind}: x", ("any",))
        real_array(arguments["y"], f"{kind}: y")


def _bounds(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse limits of which the lower is above the upper."""
    low, high = arguments["min"], arguments["max"]
    if low is not None and high is not None and np.any(np.greater(low, high)):
        raise InvalidValue(f"{kind}: min: {shown(low)} is above max, {shown(high)}")


def _pieces(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse what are no pairs of time and value; before the first bdsim gives the last value."""
    pairs, example = arguments.get("args") or arguments.get("seq"), f"bd.{kind}((0, 1.0), (0.5, 2.0))"
    try:
        times = [float(t) for t, value in pairs if np.isfinite(value).all()]  # type: ignore[union-attr]
    except (TypeError, ValueError):
        times = []
    if not times or len(times) < len(pairs):  # type: ignore[arg-type]
        raise InvalidValue(
            f"{kind}: expected pairs of a time and a value, as {example} or seq=[...], got {shown(pairs)}"
        )
    if times[0] > 0.0:
        raise InvalidValue(f"{kind}: has no value before t = {times[0]:g}; begin with a pair of time 0, as {example}")
    for before, t in itertools.pairwise(times):
        if not t > before:
            raise InvalidValue(f"{kind}: times must increase, but {t:g} stands behind {before:g}")


def _wave(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a wave that bdsim does not know, or would leave out a part of, and numbers that are none of a wave."""
    wave = option(arguments["wave"], f"{kind}: wave", ("sine", "square", "triangle"))
    option(arguments["unit"], f"{kind}: unit", ("Hz", "rad/s"))
    freq = real_number(arguments["freq"], f"{kind}: freq")
    if freq == 0.0 or (freq < 0.0 and wave != "sine"):
        raise InvalidValue(f"{kind}: freq: expected a positive number, got {freq:g}")
    for name, wanted in (("phase", "a part of a period, from 0 to 1"), ("duty", "a part of a period, between 0 and 1")):
        part = real_number(arguments[name], f"{kind}: {name}")
        if not 0.0 <= part <= 1.0 or (name == "duty" and part in (0.0, 1.0)):
            raise InvalidValue(f"{kind}: {name}: expected {wanted}, got {part:g}")
    if (arguments["min"] is None) != (arguments["max"] is None):
        raise InvalidValue(f"{kind}: needs both min and max, or amplitude and offset instead of them")
    for name in ("amplitude", "offset", "min", "max"):
        value = arguments[name]
        if isinstance(value, np.ndarray):
            real_array(value, f"{kind}: {name}")
        elif value is not None or name in ("amplitude", "offset"):
            real_number(value, f"{kind}: {name}")
    _bounds(kind, arguments)


def _time(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a time at which a source begins that is none; one that never begins is."""
    T = arguments["T"]
    if not (isinstance(T, float) and math.isinf(T)):
        real_number(T, f"{kind}: T")


def _drawn(kind: str, arguments: Mapping[str, Any]) -> None:
    """Refuse titles, labels and scales that a figure cannot have, before what it shows has been simulated."""
    if arguments.get("stairs") is not None:
        flag(arguments["stairs"], f"{kind}: stairs")
    for name in ("title", "aspect"):
        value = arguments.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidType(f"{kind}: {name}: expected a text, got {shown(value)}")
    labels = arguments["labels"]
    for label in () if labels is None else entries(labels, f"{kind}: labels", "texts"):
        if not isinstance(label, str):
            raise InvalidType(f"{kind}: labels: expected a text for each signal, got {shown(label)} among them")
    scale = arguments.get("scale")
    if scale is not None and not isinstance(scale, str):
        real_array(scale, f"{kind}: scale")


def _subsystem(kind: str, given: Mapping[str, Any]) -> None:
    """Refuse a diagram that lacks one of both ends, or has it twice; bdsim knows no subsystem of one end."""
    bd = given["subsys"]
    if isinstance(bd, (str, os.PathLike)) and os.fspath(bd).endswith(".bd"):
        raise InvalidType(
            f"{kind}: subsys: expected a diagram; of a file write bd.SUBSYSTEM(sim.load({os.fspath(bd)!r}))"
        )
    for end in ("INPORT", "OUTPORT") if isinstance(bd, BlockDiagram) else ():
        count = sum(block.type == end.lower() for block in bd.blocklist)
        if count != 1:
            told = (
                f"has {count or 'no'} {end}{'s'[: count > 1]}; a subsystem has one INPORT and one OUTPORT, with as many"
            )
            unused = "; an INPORT that nothing needs goes to a NULL, an OUTPORT has a CONSTANT" * (not count)
            raise DiagramError(f"{kind}: diagram {bd.name!r} {told} ports as it has signals{unused}")


_CHECKS: Mapping[str, Callable[[str, Mapping[str, Any]], None]] = {
    "CLIP": _bounds,
    "DERIV": _pole("alpha"),
    "DERIV2": _pole("wn", "zeta"),
    "FUNCTION": _functions,
    "INTEGRATOR": _bounds,
    "INTEGRATOR_S": _bounds,
    "INTERPOLATE": _table,
    "LTI_SISO": _fraction,
    "LTI_SISO_S": _fraction,
    "PIECEWISE": _pieces,
    "RAMP": _time,
    "SCOPE": _drawn,
    "SCOPEXY": _drawn,
    "SCOPEXY1": _drawn,
    "STEP": _time,
    "SUBSYSTEM": _subsystem,
    "SUM": _signs("signs", "+-", "+-"),
    "PROD": _signs("ops", "*/", "*/"),
    "PID": _gains,
    "PID_S": _gains,
    "WAVEFORM": _wave,
}
