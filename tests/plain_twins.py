"""The function of a diagram as plain Python, which costs milliseconds to make where machine code costs seconds."""

from __future__ import annotations

import numpy as np

from cstormpy.kernels import compiling
from cstormpy.kernels.compiling import Entry
from cstormpy.kernels.diagram_calls import CALLS
from cstormpy.simulation.compiled.assembly import GraphProgram
from cstormpy.simulation.compiled.slices import Compiled
from cstormpy.simulation.steppers import ExplicitStepper

__all__ = ["use_plain_python"]


def plain(program):
    """Return the function of a program: the same source, with what it calls as plain Python but for the entries.

    That of one graph is made in milliseconds as it is.
    """
    if isinstance(program, GraphProgram):
        return program.function()
    space = {name: CALLS[name] for name in program.calls}
    for name, called in space.items():
        space[name] = called.load() if isinstance(called, Entry) else getattr(called, "py_func", called)
    space |= {name: function for name, (function, _) in program.functions.items()}
    exec(compile(program.source, "<diagram>", "exec"), space)
    rate = space["rate"]

    def quiet(*arguments):
        with np.errstate(all="ignore"):
            return rate(*arguments)

    return quiet


def use_plain_python(monkeypatch):
    """Have diagrams run by plain Python; a run needs an observer, since compiled steps take machine code only."""
    monkeypatch.setattr(Compiled, "_ready", classmethod(lambda cls, program: plain(program)))
    monkeypatch.setattr(Compiled, "is_ready", classmethod(lambda cls, program: True))
    monkeypatch.setattr(compiling, "address_of", lambda function, signature: 0)
    compute_by = ExplicitStepper.compute_by
    monkeypatch.setattr(ExplicitStepper, "compute_by", lambda self, f, trial=None, K=None: compute_by(self, f))
