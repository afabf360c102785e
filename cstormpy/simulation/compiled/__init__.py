"""The compiled engine: a whole diagram as one function, integrated in slices of many steps.

`program_of` writes the diagram down, `CompiledRun` runs it. Nobody has to say for it what a block computes: a block's
own methods are traced, or called.
"""

from __future__ import annotations

from cstormpy.simulation.compiled.automatic import AutomaticRun
from cstormpy.simulation.compiled.compiled_run import CompiledRun
from cstormpy.simulation.compiled.equations import silent_sink
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.slices import Compiled
from cstormpy.simulation.compiled.translation import explanation_of, program_of, source_of
from cstormpy.simulation.compiled.untranslated import NotTranslated

__all__ = [
    "AutomaticRun",
    "Compiled",
    "CompiledRun",
    "NotTranslated",
    "Program",
    "explanation_of",
    "program_of",
    "silent_sink",
    "source_of",
]
