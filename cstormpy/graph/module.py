"""Modules of machine code: routines, with what they need beside them."""

from __future__ import annotations

from collections.abc import Mapping

from cstormpy.graph.calls import batch_text, call_text
from cstormpy.graph.emission import Emitter, declarations, supplements
from cstormpy.graph.routine import Routine


def _whole(parts: list[str], e: Emitter) -> str:
    return "".join([*parts, supplements(e)]) + declarations(e)


def text_for_rows(routine: Routine, shapes: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """Return the text of a module with ``NAME_rows`` and, given the shapes of rows of its arguments, ``NAME_batch``."""
    e = Emitter(1)
    parts = [routine.many(e)]
    if shapes is not None:
        parts.append(batch_text(routine, shapes, e))
    return _whole(parts, e)


def text_for_one(routine: Routine, shapes: Mapping[str, tuple[int, ...]] | None = None, *more: Routine) -> str:
    """Return the text of a module with ``NAME_one`` and, given the shapes of its arguments, ``NAME_call``.

    Of `more` routines there is ``NAME_one`` too.
    """
    e = Emitter(1)
    parts = [routine.one(e), *(other.one(e) for other in more)]
    if shapes is not None:
        parts.append(call_text(routine, shapes, e))
    return _whole(parts, e)
