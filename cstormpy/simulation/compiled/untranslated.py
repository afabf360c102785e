"""Which blocks the compiled engine does not translate, and why; a diagram that has one runs interpreted.

All other blocks of bdsim and of cstormpy are translated, IKINE so that compiled code asks it in Python, and blocks and
laws of one's own in one of the three ways of `traced`. Subsystems, DERIV, PID and PID_S among them, are translated by
their parts; sinks compute nothing, and those that print or draw are called at each point of a run.

Of blocks that are translated, these forms are not:

- a signal of more than 64 numbers, or of text, lists or other objects; a DICT serves only where ITEM takes it apart;
- FUNCTION with ``persistent=True``, with a method or an object that can be called, with arguments by keyword only, or
  where numba does not compile the function (the message names the line);
- POW of a matrix with an exponent that is no whole number; NORM over several axes;
- INTEGRATOR_S with ``enable=``, but for that of PID_S;
- PUSH with more than 64 pulses.

What a function of the user, PROD or POW computes is computed with the numbers of the machine. Where Python raises, as
at ``math.sqrt(-1.0)`` or ``math.exp(1000.0)``, these give nan or inf, which shorten a trial step and end a run where
they stay; and ``int(nan)`` is some number. Division by zero in a function is an error in both.
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
