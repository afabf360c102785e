"""The cache of a compiled diagram from one run to the next: its program, its function, room for its steps.

It stands with the diagram, and holds as long as that is wired in the same way, of blocks of the same classes with as
many states, and its zero crossings are declared by the same blocks. Numbers are read anew at the start of each run; a
number or a condition that cannot be read anew has the diagram translated again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.graph.python_calls import way_back
from cstormpy.kernels.entries import EntryOfC
from cstormpy.reporting import notice
from cstormpy.simulation.compiled.equations import is_silent
from cstormpy.simulation.compiled.numba_functions import UserFunction
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.slices import Compiled, Slices
from cstormpy.simulation.compiled.translation import Detectors, fits, program_of, wiring
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.repeatability import unrepeatable
from cstormpy.simulation.step_control import JUMP_WIDTH
from cstormpy.simulation.tableaus import Tableau

#: Of each signal its slot, where it begins and ends in `out`, and what makes the one of the other.
WaysBack = list[tuple[Any, int, int, Callable[[Any], Any]]] | None
_NUMBERS = float, int, np.number, np.bool_
#: Compiled and interpreted signals agree to this at the start, else the diagram is not run compiled.
_SAME = 1e-9
#: Where a diagram keeps it.
_NAME = "_compiled_form"
#: For so many ways to run it, room for steps is kept.
_WAYS = 4


def prepared(diagram: Diagram, detectors: Detectors) -> Prepared:
    """Return what is kept of a diagram, with the numbers of now, or translate it.

    Its signals have just been evaluated, which tells their shapes.

    Raises
    ------
    NotTranslated
        With every block that stands in the way.
    """
    kept = diagram.bd.__dict__.get(_NAME)
    if isinstance(kept, Prepared) and kept.serves(diagram, detectors) and kept.refresh():
        kept.program.stepped_sinks = [str(b.name) for b in diagram.sinks if not is_silent(b)]
        return kept
    made = Prepared(diagram, detectors)
    diagram.bd.__dict__[_NAME] = made
    return made


class Prepared:
    """A translated diagram.

    Attributes
    ----------
    program : Program
    compiled : Compiled or None
        Its function, once that is ready.
    """

    compiled: Compiled | None = None

    def __init__(self, diagram: Diagram, detectors: Detectors) -> None:
        self.translate(diagram, detectors)

    def __deepcopy__(self, memo: object) -> None:
        """Have a copy of the diagram translated by itself: machine code has no copy."""

    def translate(self, diagram: Diagram, detectors: Detectors) -> None:
        """Translate the diagram as it is now."""
        self._name = str(diagram.bd.name)
        self.program: Program = program_of(diagram, detectors)
        self._wiring = wiring(diagram, detectors)
        self._same = False
        self._slices: dict[Any, Slices] = {}
        #: Of which types and shapes the signals were when the ways back were made; None: to be looked at each time.
        self._kinds: list[Any] | None = None
        self._ways: WaysBack = None

    def serves(self, diagram: Diagram, detectors: Detectors) -> bool:
        """Tell whether a diagram, whose signals have just been evaluated, is wired as the one that was translated."""
        if self._wiring != wiring(diagram, detectors):
            return False
        if diagram.kinds() == self._kinds:
            return True
        return fits(self.program, diagram)

    def ways_back(self, diagram: Diagram) -> WaysBack:
        """Return how each signal gets from `out` into its slot, as what stands there now; None where one cannot.

        That is so of a diagram whose blocks count their evaluations, and of signals that are no numbers.
        """
        kinds = diagram.kinds()
        if kinds != self._kinds:
            self._ways = _ways_back(diagram, self.program)
            self._kinds = kinds if all(isinstance(k, tuple) or issubclass(k, _NUMBERS) for k in kinds) else None
        return self._ways

    def refresh(self) -> bool:
        """Read all numbers anew; return False where the diagram is to be translated anew instead."""
        return self.program.refresh()

    def ready(self) -> Compiled:
        """Return the function, compiled or read from disk where that has not been done yet."""
        program = self.program
        called = [function for function in program.called if not function.is_ready()]
        if called:
            from cstormpy.kernels.compile_processes import compile_beside

            compile_beside(tuple(function.kept_as for function in called if isinstance(function, EntryOfC)))
            if any(isinstance(function, UserFunction) for function in called):
                notice(f"compiling the diagram {self._name!r} (some seconds; other numbers need no other code)")
        if self.compiled is None:
            self.compiled = Compiled(program, program.nstates)
        elif self.compiled.program is not program:
            self.compiled.update(program)
        return self.compiled

    def at_hand(self) -> bool:
        """Tell whether the function is there without compiling: in this process, or on disk."""
        if self.compiled is not None and self.compiled.program is self.program:
            return True
        from cstormpy.kernels.stepping_code import steps_are_kept

        return self.program.is_kept() and steps_are_kept()

    def slices(self, method: Tableau, keys: list[tuple[int, int]], finite: bool) -> Slices:
        """Return room for the steps of a method that records some signals."""
        way = (method, tuple(keys), finite)
        found = self._slices.get(way)
        if found is None:
            while len(self._slices) >= _WAYS:
                self._slices.pop(next(iter(self._slices)))
            found = self._slices[way] = Slices(self.ready(), method, keys, finite)
        return found

    def compare(self, diagram: Diagram, t: float, x: Array) -> None:
        """Refuse a program that does not compute what the blocks do, once after each translation.

        They are asked a little later, as a source may jump at this very time, which each of both rounds in its way.
        """
        if self._same:
            return
        t += JUMP_WIDTH * float(np.spacing(t))
        c = self.ready()
        c.sample(diagram)
        interpreted = diagram.derivative(t, x)
        failed, compiled = c.rate(t, x), c.xd
        if failed and self.program.ask_in_python(self.named(failed)):
            failed = c.rate(t, x)
        if failed:
            raise NotTranslated([(self.named(failed), "its compiled form fails at the start")])
        for b, _, _, outs, _, _ in diagram.order:
            for port, slot in enumerate(outs):
                if (id(b), port) in c.program.columns and not _agree(c.signal((id(b), port)), slot.value):
                    told = f"output {port} is {slot.value} at the start, but {c.signal((id(b), port))} compiled"
                    if unrepeatable(diagram, t, x, remembering=True) is b:
                        told = "gives different values for the same time, as a random number does"
                    raise NotTranslated([(str(b.name), told)])
        for b, part in diagram.continuous:
            if not _agree(compiled[part], interpreted[part]):
                told = f"its rate is {interpreted[part]} at the start, but {compiled[part]} compiled"
                raise NotTranslated([(str(b.name), told)])
        self._same = True

    def named(self, failed: int) -> str:
        """Return the name of the block by whose number the function says that it failed."""
        return self.program.blocks[failed - 1]


def _ways_back(diagram: Diagram, program: Program) -> WaysBack:
    found = []
    for b, _, _, outs, _, _ in diagram.order:
        for port, slot in enumerate(outs):
            way = way_back(slot.value)
            if way is None or (id(b), port) not in program.columns:
                return None
            first, shape = program.columns[id(b), port]
            found.append((slot, first, first + math.prod(shape), way))
    return None if diagram.resets else found


def _agree(compiled: Array, interpreted: Any) -> bool:
    value = np.asarray(interpreted, dtype=float)
    with np.errstate(invalid="ignore"):
        same = (compiled == value) | (np.isnan(compiled) & np.isnan(value))
        return bool(np.all(same | (np.abs(compiled - value) <= _SAME * (1.0 + np.abs(value)))))
