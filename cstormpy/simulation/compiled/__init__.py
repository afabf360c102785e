"""The compiled engine: a whole diagram as one function, integrated in slices of many steps.

`translate` makes the source from the diagram, `CompiledRun` runs it. Which blocks can be translated, and how a block
of your own joins them, is said in `cstormpy.simulation.compiled.registry`.
"""

from __future__ import annotations

from cstormpy.simulation.compiled.automatic import AutomaticRun
from cstormpy.simulation.compiled.program import Program, translate
from cstormpy.simulation.compiled.registry import (
    NotTranslated,
    emits,
    emits_guard,
    emits_next,
    emits_rate,
    silent_sink,
)
from cstormpy.simulation.compiled.running import CompiledRun
from cstormpy.simulation.compiled.slices import Compiled
from cstormpy.simulation.compiled.translation import explanation_of, source_of

__all__ = [
    "AutomaticRun",
    "Compiled",
    "CompiledRun",
    "NotTranslated",
    "Program",
    "emits",
    "emits_guard",
    "emits_next",
    "emits_rate",
    "explanation_of",
    "silent_sink",
    "source_of",
    "translate",
]
