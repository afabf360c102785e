"""Methods of `Simulation` that write a diagram down: as source, line by line, as a unit for other tools."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cstormpy.arguments import one_of, tells_arguments
from cstormpy.reporting import Text
from cstormpy.simulation.occupation import by_one_thread
from cstormpy.simulation.wiring import compile_diagram, refuse_no_diagram


class Translations:
    """Translations of diagrams; the base of `Simulation` that holds these methods."""

    @by_one_thread
    @tells_arguments()
    def source(self, bd: Any, language: str = "python") -> str:
        """Return the source of the one function that the compiled engine makes of a diagram, to be read.

        Parameters
        ----------
        bd : BlockDiagram
        language : {"python", "c"}
            C may be compiled elsewhere: ``int rate(double t, const double *x, …, double *out, double *xd)`` fills
            signals and rates. The numbers of the blocks are in ``p``; calls are not written in C.

        Raises
        ------
        NotTranslated
            Naming the blocks that it cannot translate, and why.
        InvalidValue
            In C, where something is called.
        """
        from cstormpy.simulation.compiled import source_of

        language = one_of(language, "language", ("python", "c"))
        return self._told("source", bd, functools.partial(source_of, language=language))

    @by_one_thread
    @tells_arguments()
    def to_fmu(
        self,
        bd: Any,
        path: str | os.PathLike[str],
        inputs: Any = (),
        outputs: Any = (),
        parameters: Any = (),
        *,
        version: int = 2,
        solver: Any = "RK4",
        step: float = 0.001,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        binary: bool | None = None,
    ) -> Path:
        """Write a diagram to a functional mock-up unit, which Simulink, Modelica's tools and others simulate with.

        It is for co-simulation: it holds the equations in C, with an integration method of its own, and inputs are held
        over a step of the other tool. Sampled blocks tick within its steps, and what they hold, as the samples of a
        DELAY, is part of the state that can be kept and put back. What is due where a step ends is done as the next one
        begins, by the inputs of then.

        Parameters
        ----------
        bd : BlockDiagram
            As `stepper` takes it; each block must be one that is written in C, as most that are traced are. Blocks that
            no output needs, with the inputs replaced, are left out, and so are their states: ``inputs=["plant.tau"],
            outputs=["plant.q"]`` write the plant, whatever law it has. Without outputs all is written.
        path : path
            A name that ends in ``.fmu``.
        inputs, outputs : list
            Signals as in `stepper`: an input port that nothing is wired to gets a CONSTANT of zeros, which stays in the
            diagram.
        parameters : list of str
            Numbers that can be set in the unit, as in `gradient`, which follow in proportion. States can be set where
            they start, as ``"state plant.elbow.q"``.
        version : {2, 3}
            Of FMI.
        solver : str or Tableau
            RK4 or Euler with equal steps, RK45 or RK23 with steps by their tolerances.
        step : float
            The longest step of a method of equal steps [s].
        rtol, atol : float
            Tolerances of the others.
        binary : bool, optional
            Whether to compile it for this machine; unless given, where there is a compiler. The sources are there in
            any case.

        Raises
        ------
        DiagramError
            Naming the block that is not written in C, or that belongs to a run: events that change something; what
            all comes from the inputs instead may be such. Where an output only bends, as that of a SATURATION, no step
            ends; where a source jumps one does, by the numbers that it has here.
        """
        from cstormpy.simulation.fmi import write_fmu

        given = {"version": version, "solver": solver, "step": step, "rtol": rtol, "atol": atol, "binary": binary}
        return write_fmu(self, bd, path, inputs, outputs, parameters, **given)

    @by_one_thread
    @tells_arguments()
    def explain(self, bd: Any) -> str:
        """Return how the compiled engine computes each block of a diagram, a line for each.

        From fast to slow: traced (a part of the diagram's own code, with exact derivatives), compiled by numba, or
        asked in Python; and why it is not faster. Of a diagram that cannot be translated, the blocks that are the
        cause, and why.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation()
        >>> bd = sim.blockdiagram()
        >>> bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(name="ramp"))
        >>> print(sim.explain(bd))
        constant.0  output: traced
        ramp        output: traced; deriv: traced
        """
        from cstormpy.simulation.compiled import NotTranslated, explanation_of

        try:
            return self._told("explain", bd, explanation_of)
        except NotTranslated as why:
            width = max(len(name) for name, _ in why.reasons)
            lines = [f"{name:{width}}  interpreted: {reason}" for name, reason in why.reasons]
            return Text("\n".join([*lines, "all blocks are interpreted, as the compiled engine takes whole diagrams"]))

    @staticmethod
    def _told(name: str, bd: Any, tell: Callable[[Any], str]) -> str:
        from cstormpy.simulation.compiled import NotTranslated

        refuse_no_diagram(bd, name)
        compile_diagram(bd)
        try:
            return Text(tell(bd))
        except NotTranslated as why:
            raise NotTranslated(why.reasons, "it has no source; engine='interpreted' runs it by its blocks") from None
