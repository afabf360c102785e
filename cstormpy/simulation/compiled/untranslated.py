"""Which blocks the compiled engine does not translate, and why; a diagram that has one runs interpreted.

All other blocks are translated by their equations (`equations`), in one of the three ways of `traced`: what cannot be
written down is compiled by numba, if it is a FUNCTION, or asked in Python from inside of the compiled function, as
IKINE, POW of a matrix with an exponent that is no whole number, NORM over several axes, singular values of a matrix of
more than four columns. Subsystems, DERIV, PID and PID_S among them, are
translated by their parts; sinks compute nothing, and those that print or draw are called at each point of a run.

Of blocks that are translated, these forms are not:

- a signal of more than 64 numbers, or of text, lists or other objects; a DICT serves only where ITEM takes it apart;
- FUNCTION with ``persistent=True``;
- FUNCTION that cannot be traced and that numba does not compile (the message names the line);
- PUSH with more than 64 pulses.

What a function of the user, PROD or POW computes is computed with the numbers of the machine. Where Python raises, as
at ``math.sqrt(-1.0)``, ``math.exp(1000.0)`` or ``1.0 / 0.0``, these give nan or inf, which shorten a trial step and end
a run where they stay; and ``int(nan)`` is some number. In a function that numba compiles division by zero is an error
in both engines.
"""

from __future__ import annotations

__all__ = ["REASONS", "name_of", "why"]

_POSE = "its signals are poses of spatialmath, which are objects and not arrays; KINEMATICS gives poses as matrices"

#: Why the blocks of a class are not translated.
REASONS = {
    "bdsim.blocks.spatial.Pose_postmul": _POSE,
    "bdsim.blocks.spatial.Pose_premul": _POSE,
    "bdsim.blocks.spatial.Transform_vector": _POSE,
    "bdsim.blocks.spatial.Pose_inverse": _POSE,
    "bdsim.blocks.spatial.PoseIntegrator": _POSE,
    "bdsim.blocks.spatial.PoseIntegrator_S": _POSE,
    "bdsim.blocks.spatial.DPoseIntegrator": _POSE,
}


def name_of(kind: type) -> str:
    """Return the name of a class, as `REASONS` has it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def why(kind: type) -> str:
    """Return what is said of a block of a class of `REASONS`."""
    return f"there is no emitter for {name_of(kind)}: {REASONS[name_of(kind)]}"
