"""What the compiled engine does not translate, and why: blocks, and functions that numba refuses.

A diagram that has such a block runs interpreted.

All other blocks are translated by their equations (`equations`), in one of three ways: traced; compiled by numba, where
a FUNCTION or a law cannot be written down (a loop that a number ends) that is a function of numbers, or a method that
reads numbers of its object;
asked in Python from inside of the compiled function, as what numba does not compile either (a message names the line),
IKINE, POW of a matrix with an exponent that is no whole number, NORM over several axes, singular values of
a matrix of more than four columns. Subsystems, DERIV, PID and PID_S among them, are translated by their parts; sinks
compute nothing, and those that print or draw are called at each point of a run.

Of blocks that are translated, these forms are not:

- a signal of more than 1500 numbers, or of text, lists or other objects; a DICT serves only where ITEM takes it apart;
- FUNCTION with ``persistent=True``, or one that cannot be traced and draws random numbers.

What a function of the user, PROD or POW computes is computed with the numbers of the machine. Where Python raises, as
at ``math.sqrt(-1.0)``, ``math.exp(1000.0)`` or ``1.0 / 0.0``, these give nan or inf, which shorten a trial step and end
a run where they stay; and ``int(nan)`` is some number. In a function that numba compiles division by zero is an error
in both engines.
"""

from __future__ import annotations

import dis
import itertools
import random
import re
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from cstormpy.errors import DiagramError
from cstormpy.simulation.bdsim_blocks import class_name
from cstormpy.simulation.surroundings import codes_within, surrounding

#: Signals with more numbers are left to NumPy: each number is an expression of its own.
WIDEST = 1500
#: The class of a block that calls a function of the user.
FUNCTION = "bdsim.blocks.functions.Function"
_POSE = "its signals are poses of spatialmath, which are objects and not arrays; KINEMATICS gives poses as matrices"
_POSES = (
    "Pose_postmul", "Pose_premul", "Transform_vector", "Pose_inverse",
    "PoseIntegrator", "PoseIntegrator_S", "DPoseIntegrator",
)  # fmt: skip
#: Why the blocks of a class are not translated.
REASONS = {f"bdsim.blocks.spatial.{name}": _POSE for name in _POSES}


class NotTranslated(DiagramError):
    """A diagram that cannot be compiled: which blocks are the cause, and why.

    Attributes
    ----------
    reasons
        Pairs of the block's name and what is said about it.

    Parameters
    ----------
    reasons
    remedy : str
        What a user may do about it.
    """

    def __init__(self, reasons: list[tuple[str, str]], remedy: str = "run it with engine='interpreted'") -> None:
        self.reasons = reasons
        super().__init__(self.told(remedy))

    def told(self, remedy: str) -> str:
        """Return what is wrong, and what is done about it."""
        reasons = "; ".join(f"{name}: {why}" for name, why in self.reasons)
        return f"the diagram cannot be compiled: {reasons}; {remedy}"


class Untraceable(Exception):
    """The refusal of a method that cannot be written down; the text says why, and where."""


class Refused(Exception):
    """The reason why one block is not translated in any way."""


def refusal_of(block: Any) -> str | None:
    """Return why a block is not translated, or None."""
    name = class_name(type(block))
    if name in REASONS:
        return f"its class {name} is not translated: {REASONS[name]}"
    if name == FUNCTION and block.userdata is not None:
        return "keeps data between its calls (persistent=True)"
    return None


def is_function(block: Any) -> bool:
    """Tell whether a block calls a function of the user."""
    return class_name(type(block)) == FUNCTION


#: A fault of numba's own, which tells of its objects and not of the function: all but the line.
_FAULT = re.compile(r"^<[^>]* object at 0x[0-9a-f]+>.*?(?=, in the function at line|$)")
#: What numba says of a function that writes into an array of its module, of what surrounds it, or of its object.
_WRITING = "setitem(readonly array"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_WHERE = re.compile(r"in (the function at )?line \d+ of .*")
_NO_REASON = "it fails without telling why, as where one branch returns whole numbers and another floats"
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def told(function: types.FunctionType, said: str) -> str:
    """Return why numba refuses a function, from what the function reads and from what numba says on one line.

    Examples
    --------
    >>> gains = [1.0, 2.0]
    >>> told(lambda x: gains[0] * x, "<numba.core.base.OverloadSelector object at 0x7fee>, (List(float64, True),)")
    "it reads 'gains', a list; make it a tuple or an array"
    """
    unfit = {name: what for name, value in _read(function) if (what := _unfit(value))}
    reasons = [f"it reads {name!r}, {what}" for name, what in unfit.items()]
    if _WRITING in said:
        where = _WHERE.search(said)
        said, reasons = where[0] if where else "", [*reasons, "it writes into an array that it does not make itself"]
    rest = _ADDRESS.sub("", _FAULT.sub("", said)).removeprefix(", ")
    if not reasons and _FAULT.match(said):
        reasons = ["it reads what compiled code cannot hold"]
    if any(f"{name!r}" in _WHERE.sub("", rest) for name in unfit):  # said already, and with the remedy
        where = _WHERE.search(rest)
        rest = where[0] if where else ""
    if not reasons and _WHERE.fullmatch(rest):
        reasons = [_NO_REASON]
    return "; ".join([*reasons, rest] if rest else reasons)


def draws_numbers(function: types.FunctionType) -> bool:
    """Tell whether a function reads a random generator: it gives something else each time that it is asked."""
    return any(isinstance(value, _GENERATORS) for _, value in _read(function))


def computes_otherwise(function: types.FunctionType) -> str:
    """Return what a function computes otherwise as machine code than in Python, "" if nothing is known.

    The power of two whole numbers is a whole number there: 2 ** -k is 0.
    """
    for part in codes_within(function.__code__):
        steps = [step for step in dis.get_instructions(part) if step.opname not in ("CACHE", "EXTENDED_ARG")]
        for k, step in enumerate(steps):
            power = step.opname in ("BINARY_POWER", "INPLACE_POWER") or step.argrepr in ("**", "**=")
            if power and not (_is_constant(steps[k - 1], True) or _is_constant(steps[k - 2], False)):
                return "its ** may be one of whole numbers with a negative exponent, for which math.pow(x, n) does"
    return ""


def _is_constant(step: dis.Instruction, whole: bool) -> bool:
    """Tell whether a step reads a float, or a whole number that is not negative, from the code."""
    value = step.argval if step.opname in ("LOAD_CONST", "LOAD_SMALL_INT") else None
    return type(value) is float or (whole and type(value) is int and value >= 0)


def _read(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Return what a function reads of its defaults, its module, what surrounds it and modules that it names."""
    code, defaults = function.__code__, function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    around = {code.co_freevars[k]: value for k, value in surrounding(function).items()}
    spaces = {"LOAD_GLOBAL": function.__globals__, "LOAD_DEREF": around}
    for part in codes_within(code):
        for here, after in itertools.pairwise(dis.get_instructions(part)):
            name, space = here.argval, spaces.get(here.opname, {})
            if name in space:
                value = space[name]
                if isinstance(value, types.ModuleType) and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                    name, value = f"{name}.{after.argval}", getattr(value, after.argval, None)
                yield name, value


def _unfit(value: Any) -> str | None:
    """Return what a value is that compiled code cannot read, with the remedy; None where it may."""
    if isinstance(value, list):
        return "a list; make it a tuple or an array"
    if isinstance(value, (dict, set)):
        return f"a {type(value).__name__}; take out what is needed, as numbers, tuples or arrays of their own names"
    if isinstance(value, _GENERATORS):
        return "a random generator, of which each call changes the state; draw the numbers beforehand into an array"
    if isinstance(value, types.FunctionType) and not value.__module__.startswith("numpy"):
        return "a function that is not compiled; put @numba.njit before it"
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return "an array of objects; make it one of numbers"
    return None
