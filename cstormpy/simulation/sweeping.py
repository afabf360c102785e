"""`Simulation.sweep`: one diagram run under many parameters, starts and options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from cstormpy.arguments import tells_arguments
from cstormpy.simulation.settings import Settings, told_with_options
from cstormpy.simulation.steppers import check_solver

if TYPE_CHECKING:
    from cstormpy.simulation.sweep import Sweep


class Sweeping:
    """The methods of a simulation for many runs of one diagram."""

    engine: str
    options: Any

    @tells_arguments()
    def sweep(
        self,
        diagram: Any,
        grid: Mapping[str, Any] | None = None,
        measure: Any = None,
        T: float = 5.0,
        *,
        samples: Any = None,
        names: Sequence[str] | None = None,
        workers: int | None = None,
        executor: Executor | None = None,
        resume: str | os.PathLike[str] | None = None,
        progress: bool = True,
        watch: Any = (),
        solver: Any = "RK45",
        solver_args: Mapping[str, Any] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        dt: float | None = None,
        max_step: float | None = None,
        log_dt: float | None = None,
        first_tick: int | str = 0,
        checkfinite: bool = True,
        **options: Any,
    ) -> Sweep:
        """Run a diagram under many parameters, starts and options, and measure each run.

        Parameters
        ----------
        diagram : callable, module or BlockDiagram
            ``build(sim, **options)`` that returns a wired diagram; a module that has one, as a ready diagram,
            ``cs.diagrams.load("acrobot")``; or a diagram, which is copied for each worker.
        grid : dict of str to list, optional
            What varies; every combination is run. A name is an option of the builder, a state of the diagram
            (``"plant.elbow.q"``: its initial value; the name of a block stands for its states), a parameter of a block
            (``"gain.K"``; ``"gain:K"`` says the same), or numbers by the names that `tune` has for them:
            ``"gain.K[0, 1]"``, ``"forearm.mass"`` in all blocks that have that mechanism, ``"plant.forearm.mass"`` in
            one.
        measure : callable, or list of str
            ``measure(out)`` returns of a run's result a number, an array, or a dict of such, always of the same names
            and shapes; or names of signals and states, whose final values are kept.
        T : float
            How long each run is [s].
        samples : dict of str to array (N,), frame of pandas, structured array, or array (N, k), optional
            Instead of a grid: the k-th values of all names make the k-th run.
        names : list of str, optional
            Of the columns of `samples`, where that is an array.
        workers : int, optional
            How many threads share the runs; as many as there are cores unless given.
        executor : concurrent.futures.Executor, optional
            What carries the runs out instead of threads: a ProcessPoolExecutor, or ``client.get_executor()`` of Dask.
            Builder and measure must be such as it can send to its workers: for processes, functions of a module.
        resume : path, optional
            A file to which the results are appended as they come, and from which an interrupted sweep goes on.
        progress : bool
            Show a line of progress on a terminal. Default True.
        watch : list of str, or "all"
            Signals to record in each run, for `measure`.
        solver, solver_args, rtol, atol, dt, max_step, log_dt, first_tick, checkfinite
            As for `Simulation.run`.
        **options
            Options of the builder that do not vary.

        Returns
        -------
        Sweep
            Results as arrays over the axes. A run that fails is recorded with the reason, and the others go on; after
            Ctrl-C, or where the executor breaks or was shut down, it holds what was run. Neither the number of workers
            nor their kind changes a result.

        Raises
        ------
        UnknownName
            Where a name does not exist, that of the solver among them, before anything runs.
        InvalidValue
            Where an axis of the grid has a value twice, or no memory would hold the results of so many runs.
        DiagramError
            Where a diagram cannot be copied for several workers; a builder can make one for each.
        FileFormatError
            Where the file of `resume` belongs to another sweep: of other axes, options or settings, another measure, or
            a diagram of other numbers.

        Notes
        -----
        Diagrams are run compiled where they can be translated, unless the simulation is interpreted. Threads share the
        cores as far as the runs are compiled: of two cores they make 1.2 to 1.5 in runs of the acrobot, half of whose
        milliseconds are Python. Processes make all of them, after seconds for their start
        (``pytest tests/benchmarks/test_sweep_speed.py``): thousands of runs, diagrams that are run by their blocks, and
        measures that take long want these. Functions of the diagram and the measure are called by several threads at
        once.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation(engine="interpreted")
        >>> bd = sim.blockdiagram()
        >>> decay = bd.INTEGRATOR(x0=1.0, name="decay")
        >>> rate = bd.GAIN(-1.0, name="rate")
        >>> bd.connect(decay, rate)
        >>> bd.connect(rate, decay)
        >>> found = sim.sweep(bd, {"rate.K": [-1.0, -2.0, -3.0]}, lambda out: out.x[-1, 0], T=1)
        >>> found.value.round(4).tolist()
        [0.3679, 0.1353, 0.0498]
        """
        from cstormpy.simulation.sweep.axes import Axes
        from cstormpy.simulation.sweep.preparation import SweepSettings, carry_out

        told: dict[str, Any] = {
            "T": T, "dt": dt, "max_step": max_step, "solver": solver, "solver_args": solver_args, "rtol": rtol,
            "atol": atol, "log_dt": log_dt, "first_tick": first_tick, "checkfinite": checkfinite,
        }  # fmt: skip
        settings = told_with_options(self.options.data, told)
        check_solver(Settings.checked(**settings))
        settings["watch"] = watch
        how = SweepSettings(workers, executor, resume, progress)
        return carry_out(self, diagram, Axes.checked(grid, samples, names), measure, settings, how, options)
