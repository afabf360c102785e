"""Modules of machine code: routines, with what they need beside them."""

from __future__ import annotations

from collections.abc import Mapping

from cstormpy.graph.calls import batch_text, call_text
from cstormpy.graph.emission import LANES, Emitter, declarations, supplements
from cstormpy.graph.machine import AS_IT_IS, has_vectors_of_eight
from cstormpy.graph.routine import Routine

#: Operations beyond which fewer lanes are faster where `LANES` numbers take two registers: half as much waits in memory
#: then. What is short gains by two instructions that do not wait for one another (measured).
CROWDED = 1000


def _whole(parts: list[str], e: Emitter) -> str:
    return "".join([*parts, supplements(e)]) + declarations(e)


def lanes_for(routine: Routine) -> int:
    """Return how many rows of a routine this processor computes side by side."""
    return LANES // 2 if routine.operations > CROWDED and not has_vectors_of_eight() else LANES


def text_for_rows(routine: Routine, shapes: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """Return the text of a module with ``NAME_rows`` and, given the shapes of rows of its arguments, ``NAME_batch``."""
    e = Emitter(1)
    parts = [routine.many(e, lanes_for(routine))]
    if shapes is not None:
        parts.append(batch_text(routine, shapes, e))
    return AS_IT_IS * routine.is_long + _whole(parts, e)


def text_for_one(routine: Routine, shapes: Mapping[str, tuple[int, ...]] | None = None, *more: Routine) -> str:
    """Return the text of a module with ``NAME_one`` and, given the shapes of its arguments, ``NAME_call``.

    Of `more` routines there is ``NAME_one`` too.
    """
    e = Emitter(1)
    parts = [routine.one(e), *(other.one(e) for other in more)]
    if shapes is not None:
        parts.append(call_text(routine, shapes, e))
    return AS_IT_IS * routine.is_long + _whole(parts, e)
