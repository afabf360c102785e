"""Blocks that the compiled engine does not translate, and why; a diagram that has one runs interpreted.

All other blocks are translated by their equations (`equations`), in one of three ways: traced; compiled by numba, where
a FUNCTION or a law cannot be written down that is a function of numbers, or a method that reads numbers of its object;
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

from typing import Any

from cstormpy.errors import DiagramError
from cstormpy.simulation.bdsim_blocks import class_name

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
