"""The programs of runs with derivatives, kept with a diagram from one to the next."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cstormpy.simulation.analysis.jumps import deciding
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.translation import Detectors, fits, program_of, wiring
from cstormpy.simulation.diagram import Diagram

#: Where a diagram keeps them, and how many.
_NAME, _MOST = "_programs_with_derivatives", 4


class KeptProgram:
    """A diagram's program, for runs with derivatives to the same parameters.

    It is translated anew where the diagram is wired in another way, or what was taken for granted of its numbers no
    longer holds. These are read anew in any case.
    """

    def __init__(self) -> None:
        self._program: Program | None = None
        self._wiring: tuple[Any, ...] = ()
        self._deciding: dict[frozenset[str], frozenset[int]] = {}

    def of(self, diagram: Diagram, detectors: Detectors, telling: Collection[Any]) -> Program:
        """Return the program of a diagram whose signals have just been evaluated; see `program_of`."""
        wired = (*wiring(diagram, detectors), tuple(map(id, telling)))
        kept = self._program
        if kept is None or wired != self._wiring or not fits(kept, diagram) or not kept.refresh():
            kept = program_of(diagram, detectors, telling)
            self._program, self._wiring, self._deciding = kept, wired, {}
        return kept

    def deciding(self, known: frozenset[str]) -> frozenset[int]:
        """Return which numbers of the program decide when something jumps, at jumps that are not `known`."""
        assert self._program is not None, "a run has its program first"
        if known not in self._deciding:
            self._deciding[known] = deciding(self._program, known)
        return self._deciding[known]


class _KeptPrograms(dict[tuple[str, ...], KeptProgram]):
    """Programs by the names of the parameters."""

    def __deepcopy__(self, memo: object) -> _KeptPrograms:
        """Have a copy of the diagram translated by itself."""
        return _KeptPrograms()


def kept_program(bd: Any, parameters: tuple[str, ...]) -> KeptProgram:
    """Return what a diagram keeps for derivatives to parameters of these names."""
    programs = bd.__dict__.setdefault(_NAME, _KeptPrograms())
    found: KeptProgram = programs.pop(parameters, None) or KeptProgram()
    while len(programs) >= _MOST:
        programs.pop(next(iter(programs)))
    programs[parameters] = found
    return found
