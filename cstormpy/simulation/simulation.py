"""`Simulation`: a bdsim whose diagrams have our blocks in every install mode, with a runner of its own."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import queue
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cstormpy import report
from cstormpy.arguments import flag, one_of, option, positive, tells_arguments
from cstormpy.errors import CstormError, DiagramError, InvalidType, shown, unknown_name
from cstormpy.file_writer import file_path
from cstormpy.live import LiveFeed, is_off
from cstormpy.live.availability import is_on_screen
from cstormpy.report import page_path
from cstormpy.reporting import Progress, notice, notice_once
from cstormpy.simulation.analysis.methods import Analysis
from cstormpy.simulation.bdfile import load_bd
from cstormpy.simulation.blockdiagram import WiredDiagram
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.led_starts import say_starts_beside
from cstormpy.simulation.limits import say_limits_left
from cstormpy.simulation.live_session import LiveSession, check_pace, wants_window
from cstormpy.simulation.occupation import occupied
from cstormpy.simulation.outcome import UnreadResult, result_of, write_figures
from cstormpy.simulation.palette import kept_table, our_blocks, quiet
from cstormpy.simulation.panes import find_panes
from cstormpy.simulation.recording import Recording, find_signals
from cstormpy.simulation.results import Result
from cstormpy.simulation.run_start import failures_named, schedule, start_blocks, start_clocks
from cstormpy.simulation.runner import Run, RunState
from cstormpy.simulation.saved_state import SavedState, initial_state, opened, ticks_are_due
from cstormpy.simulation.settings import OF_ALL_RUNS, Settings, told_with_options
from cstormpy.simulation.sweeping import Sweeping
from cstormpy.simulation.translations import Translations
from cstormpy.simulation.wiring import compile_diagram

if TYPE_CHECKING:
    from cstormpy.simulation.bdsim_bases import BDSim
    from cstormpy.simulation.diagram_kinds import BlockDiagram
else:
    from bdsim import BDSim

__all__ = ["Simulation"]

ENGINES = ("auto", "interpreted", "compiled")
LIVE = (True, False, "auto")
_BDSIM_OPTIONS = (
    "animation, animation_rate, altscreen, atol, backend, blocks, debug, dt, graphics, hold, jsonfile, max_step, "
    "method, movies, outfile, progress, quiet, rtol, setglob, setparam, shape, simtime, tiles, verbose"
).split(", ")
#: What a simulation holds for itself, of which a copy has its own.
_HELD = frozenset({"_blocklibrary", "_commands", "_context_local", "_last", "_unread", "_window_ahead"})
_SWITCHES = ("altscreen", "animation", "banner", "blocks", "graphics", "hold", "progress", "quiet", "verbose")
"""Options of bdsim that are True or False."""


class Simulation(Analysis, Sweeping, Translations, BDSim):
    """Makes block diagrams and runs them.

    It is a `bdsim.BDSim`: everything that bdsim offers works on it. Its diagrams have the blocks of cstormpy besides,
    it leaves the command line alone, and it runs with its own runner: sinks are served as time advances, clocks tick
    at 0, T, 2T, jumps of sources are hit exactly, zero crossings are located to the accuracy of the integration. An
    INTEGRATOR with limits, as that of PID(I_limit=), stays at a limit as long as its rate points outwards: when it gets
    there and when it leaves is located, and among the events of the result. A plain bdsim never lets it leave.

    Parameters
    ----------
    engine : {"auto", "interpreted", "compiled"}
        How the diagram is evaluated: block by block, or as one compiled function, for which the first run of a diagram
        of new wiring waits some seconds; other numbers need no other code, and it is kept on disk. "auto" takes the
        function where it is at hand, and else compiles a run that turns out long on its way; a diagram that cannot be
        compiled it runs block by block, and says so once.
    live : {"auto", True, False}
        Whether to show runs in a live window: "auto" for diagrams with live blocks (LIVESCOPE, LIVEXY, MECHANISMVIEW).
        With True the first window opens at once and says that it is starting; with "auto", when the run begins.
        Where none can be shown, one line says why. With True the figures are then written to files, in a folder
        beside; with "auto" only those of a last run whose result nobody has looked at by the end of the script, nor
        written a report on. The environment variable CSTORMPY_LIVE=off makes False of "auto".
    progress : bool
        Show a line of progress on a terminal, or say one every some seconds elsewhere. Default True.
    graphics : bool
        Let bdsim's own scopes draw. Default: only where there is a display to draw on.
    hold : bool
        Wait at the end of a run until the windows of bdsim's scopes are closed. Default True.
    **options
        Any other option of `bdsim.BDSim`; rtol, atol, max_step and dt hold for runs that are not told others.

    Examples
    --------
    >>> import cstormpy as cs
    >>> sim = cs.Simulation()
    >>> bd = sim.blockdiagram()
    >>> decay = bd.INTEGRATOR(x0=1.0)
    >>> bd.connect(decay, gain := bd.GAIN(-2.0))
    >>> bd.connect(gain, decay)
    >>> out = sim.run(bd, T=1)
    >>> round(float(out.x[-1, 0]), 5)
    0.13534
    """

    def __init__(self, engine: str = "auto", live: bool | str = "auto", **options: Any) -> None:
        self.engine, self.live = engine, live
        known = [*_BDSIM_OPTIONS, "banner", "packages", "load", "toolboxes"]
        for name in options:
            if name not in known:
                raise unknown_name("option", name, ["engine", "live", *known])
            if name in _SWITCHES:
                flag(options[name], f"Simulation: {name}")
            elif name in OF_ALL_RUNS and options[name] is not None:
                positive(options[name], f"Simulation: {name}")
        self._window_ahead: LiveFeed | None = None
        if self.live is True:  # before bdsim looks for its blocks
            self.open_window(LiveFeed("cstormpy"))
        options.setdefault("graphics", _can_draw())
        options.setdefault("banner", False)
        with quiet():
            super().__init__(sysargs=False, **options)
        self._blocklibrary = {**(BDSim._blocklibrary or {}), **our_blocks()}
        self._last: tuple[Any, Result] | None = None
        self._unread = UnreadResult()
        weakref.finalize(self, self._unread.write)
        self._commands: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; what is told to each run, or stands among the options of bdsim, is refused."""
        if name == "engine":
            value = option(value, name, ENGINES)
        elif name == "live":
            value = one_of(value, name, LIVE)
        elif name in _RUN_OPTIONS:
            raise InvalidType(f"Simulation: {name!r} is told to each run, as in sim.run(bd, {name}=…)")
        elif name in _BDSIM_OPTIONS:
            raise InvalidType(f"Simulation: {name!r} is one of its options, sim.options.{name} = …")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        """Return how diagrams are run."""
        told = ", ".join(f"{name}={getattr(self.options, name)!r}" for name in ("graphics", "hold", "progress"))
        return f"Simulation(engine={self.engine!r}, live={self.live!r}, {told})"

    __str__ = __repr__

    def __getstate__(self) -> dict[str, Any]:
        """Return how diagrams are run; windows, threads and the last run are not copied."""
        told = {name: value for name, value in vars(self).items() if name not in _HELD}
        return {**told, "options": {name: getattr(self.options, name) for name in _BDSIM_OPTIONS}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin as one that has run nothing yet, and shows no window before it runs something."""
        Simulation.__init__(self, state["engine"], False, **state["options"])
        vars(self).update({name: value for name, value in state.items() if name != "options"})

    def load_blocks(self, verbose: bool = True, toolboxes: bool = True) -> dict[str, dict[str, Any]]:
        """Return what bdsim knows of all blocks that it finds; read from disk where no source of them has changed."""
        return kept_table(self, super().load_blocks, verbose, toolboxes)

    @tells_arguments()
    def blockdiagram(self, name: str = "main") -> BlockDiagram:
        """Return a new, empty diagram, with one method for each kind of block, as in ``bd.GAIN(2)``."""
        made = WiredDiagram(name, self, self._blocklibrary or {}, self._resolve_block_class)
        return cast("BlockDiagram", made)  # whose kinds of blocks are attributes of the instance, told by a stub

    @tells_arguments()
    def load(self, path: str | os.PathLike[str], trust: bool = False) -> Any:
        """Return a diagram from a .bd file of bdedit.

        Its values are read as literals; ``trust=True`` evaluates the expressions in it, which can run any code.
        """
        source = file_path(path)
        return load_bd(self.blockdiagram(source.stem), source, flag(trust, "trust"))

    @tells_arguments(
        engine="it is of all runs: Simulation(engine=...)",
        x0="begin at a state by start=x, or give the blocks their states, as q0= of a plant",
        q0="give it to the plant, as in bd.HYBRIDDYNAMICS(mech, q0=...)",
        t_end="the time to run is T",
        tf="the time to run is T",
    )
    def run(
        self,
        bd: Any,
        T: float | Settings = 5.0,
        dt: float | None = None,
        max_step: float | None = None,
        solver: Any = "RK45",
        solver_args: Mapping[str, Any] | None = None,
        debug: str = "",
        block: bool | None = None,
        checkfinite: bool = True,
        minstepsize: float = 1e-12,
        watch: Any = (),
        threaded: bool = False,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        log_dt: float | None = None,
        first_tick: int | str = 0,
        start: Any = None,
        at: Mapping[float, Callable[[], object]] | None = None,
        observer: Callable[[float, Any], None] | None = None,
        on_error: str = "return",
        live: bool | str | None = None,
        pace: float | str | None = "auto",
        report: str | os.PathLike[str] | None = None,
    ) -> Result:
        """Run a diagram, which is compiled where it is not yet.

        Parameters
        ----------
        bd : BlockDiagram
            From `blockdiagram`.
        T : float
            How long to run [s]; or settings that are checked, which then hold alone.
        dt : float, optional
            With an adaptive solver: samples are recorded, and sinks served, at multiples of dt, instead of at each
            accepted step. With one of fixed steps (RK4, Euler): the length of the step.
        max_step : float, optional
            No step is longer; T/100 unless said.
        solver : str, Tableau or class
            RK45, DOP853, RK23; Radau, BDF, LSODA for stiff diagrams; RK4, Euler with steps of length dt; an explicit
            method of your own as `cstormpy.Tableau`; or a subclass of `scipy.integrate.OdeSolver`.
        solver_args : dict, optional
            More for the solver; rtol, atol, max_step and method may stand here too, as in bdsim.
        debug, minstepsize, threaded
            As in bdsim: debug flags; the second has no effect, as there; a threaded run draws nothing.
        block : bool, optional
            Whether to wait at the end until the windows are closed. Unless given, as `hold` of the `Simulation`, and
            for a live window only with a terminal; True waits for it also in a pipe, a log or an editor.
        checkfinite : bool
            End the run where an output is not finite. Default True.
        watch : list, or "all"
            Signals to record: blocks, of which all outputs are meant, ports, or names as ``"plant"``, ``"plant.q"``,
            ``"plant[0]"``.
        rtol, atol : float, optional
            Tolerances of the adaptive solvers, 1e-6 and 1e-9 unless said.
        log_dt : float, optional
            Record only at multiples of log_dt, for long runs; sinks still see each step.
        first_tick : {0, "bdsim"}
            Clocks tick first at their offset, or one period later and with the samples taken before the tick, as
            bdsim does.
        start : result, SavedState, path, array (nstates,) or dict, optional
            Go on from where another run stood, as in ``start=out``, ``start=out.state`` or the file that it was saved
            to, for T more seconds, or begin at another state: all of it, or some by the names of states or of blocks,
            as in ``start={"plant.elbow.q": 0.3}``.
        at : dict of float to callable, optional
            Functions to call at given times, as in ``at={3.0: lambda: controller.select("pd")}``.
        observer : callable, optional
            Called as observer(t, x) at each accepted step.
        on_error : {"return", "raise"}
            What to do where a block or the solver fails: say it in one line and return what was simulated until then
            with status "failed", or raise the error, whose attribute `result` holds the same. What fails before the
            first sample is raised in any case.
        live : {"auto", True, False}, optional
            Whether to show this run in a live window; as said for the `Simulation` unless given.
        pace : float or None
            Times real time, None for as fast as possible. Unless given, 1 while a live window is shown, else None.
        report : path, optional
            Where to write the report as soon as the run has ended, as `report` does; also on a run that failed.

        Returns
        -------
        Result
            Times, states, watched signals, and how the run ended.

        Raises
        ------
        DiagramError
            The diagram cannot run as it is wired.
        BlockError
            A block failed before the first sample.

        Examples
        --------
        A pendulum without motor, let go where it is level:

        >>> import cstormpy as cs
        >>> sim = cs.Simulation(progress=False)
        >>> bd = sim.blockdiagram()
        >>> plant = bd.HYBRIDDYNAMICS(cs.library.pendulum().with_drive(actuated=[]), q0=[0.0], name="plant")
        >>> bd.connect(plant.q, bd.NULL())
        >>> out = sim.run(bd, T=0.5, rtol=1e-9, watch=["plant"])
        >>> out.status, float(out.t[-1]), out.signal("plant.q")[-1].round(4)
        ('finished', 0.5, array([-1.6611]))
        """
        if not hasattr(bd, "blocklist"):
            raise InvalidType(f"run: expected a diagram from sim.blockdiagram(), got {shown(bd)}")
        told = {
            "T": T, "dt": dt, "max_step": max_step, "solver": solver, "solver_args": solver_args, "rtol": rtol,
            "atol": atol, "log_dt": log_dt, "first_tick": first_tick, "checkfinite": checkfinite,
        }  # fmt: skip
        settings = T if isinstance(T, Settings) else Settings.checked(**told_with_options(self.options.data, told))
        _check_options(on_error, pace, observer, debug)
        page = None if report is None else page_path(report)
        threaded = one_of(threaded, "threaded", (True, False))
        del minstepsize
        wanted = self.live if live is None else live
        options = self._make_run_options(threaded=threaded)
        if debug:
            options.debug += debug
        progress = bool(options.progress and not options.quiet and not threaded)
        if progress is not options.progress:
            options.progress = progress
        began = time.perf_counter()
        out: Result | None = None
        try:
            with Interrupts() as interrupts, occupied(bd, "run"), self._feed(bd, wanted, threaded) as feed:
                compile_diagram(bd)
                diagram = Diagram(bd)
                simstate = RunState(diagram)
                simstate.options = options
                with self.in_context(bd, simstate, options, threaded):
                    run = self._prepare(bd, diagram, simstate, settings, watch, start, at, observer)
                    run.interrupts = interrupts
                    _go(bd, run, feed, pace, options.progress)
                    out = result_of(bd, run)
                    out[".settings"], out[".wall_time"] = settings, time.perf_counter() - began
                    self._last = (bd, out)
                    self._finish(bd, run, options, block, interrupts)
                    run.release()
                if page is not None and len(out.t):
                    _write(out, lambda: self.report(page))
                if options.outfile is not None:
                    _write(out, lambda: out.dump(options.outfile))
                if options.jsonfile is not None:
                    _write(out, lambda: out.dump_json(options.jsonfile))
                if feed is not None and feed.reason is not None and out.panes:
                    if page is None:
                        self._keep_scopes(bd, out, asked=wanted != "auto")
                elif feed is not None and (options.hold if block is None else block):
                    self._hold(feed, block is True, interrupts)
                self._tell(run, out, on_error)
            out.unread()
            return out
        except KeyboardInterrupt:
            if out is None:
                raise
            return out  # Ctrl-C came after the last step

    @tells_arguments()
    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write a report on the last run: one file of HTML that holds everything and needs no server.

        It shows the diagram, the scopes (drag to zoom), the mechanism in motion on the scopes' clock, the controller's
        settings, the numbers and the versions.

        Raises
        ------
        DiagramError
            Nothing has been run yet.
        FileFormatError
            The file cannot be written.
        """
        return report.write(path, *self._last_run("report"), title=title)

    @tells_arguments()
    def animate(
        self,
        path: str | os.PathLike[str],
        panes: Sequence[Any] | None = None,
        *,
        pace: float | str = "auto",
        fps: float = 25.0,
        size: Sequence[int] = (960, 540),
    ) -> Path:
        """Write an animation of the last run to a file: the mechanism in motion beside the scopes, whose traces grow.

        Parameters
        ----------
        path : path
            A name that ends in .gif, .webp or .mp4; the last is written by the program ffmpeg, if that is there.
        panes : list, optional
            Which of LIVESCOPE, LIVEXY and MECHANISMVIEW to draw, blocks or names; unless given all views of mechanisms
            and the first four others. Where there is no view, the mechanisms that the diagram simulates are shown.
        pace : float or "auto"
            Times real time; "auto" is 1, or as fast as it takes to last no longer than 20 s.
        fps : float
            Frames a second, 0.1 to 100. Those of a GIF last whole hundredths of a second, two at least.
        size : (int, int)
            Width and height in pixels.

        Returns
        -------
        Path
            Of the file.

        Raises
        ------
        DiagramError
            Nothing has been run yet, or the diagram has nothing to draw.
        FileFormatError
            The file cannot be written.
        """
        from cstormpy.report.animation import animate_run

        return animate_run(path, *self._last_run("animate"), panes=panes, pace=pace, fps=fps, size=size)

    def _last_run(self, what: str) -> tuple[Any, Result]:
        if self._last is None:
            raise DiagramError(f"{what}: nothing has been run yet; call sim.run(bd, T=10) first")
        return self._last

    def post(self, command: Callable[[], object]) -> None:
        """Have a function called between two steps of the run that goes on, from any thread."""
        self._commands.put(command)

    def open_window(self, feed: LiveFeed) -> None:
        """Show the next run in a window that is already there; it is closed if that run is to have none."""
        self._window_ahead = feed
        self._close_window_ahead = weakref.finalize(self, feed.close)

    def _window(self, bd: Any, live: bool | str, threaded: bool) -> LiveFeed | None:
        """Return the live window, where one is wanted, started before anything slow."""
        live = one_of(live, "live", LIVE)
        if live == "auto":
            live = wants_window(bd) and not is_off()
        feed, self._window_ahead = self._window_ahead, None
        if feed is not None:
            self._close_window_ahead.detach()
            if not live or threaded:
                feed.close()
            feed.title = str(bd.name)
        return (feed or LiveFeed(str(bd.name))) if live and not threaded else None

    @contextlib.contextmanager
    def _feed(self, bd: Any, live: bool | str, threaded: bool) -> Iterator[LiveFeed | None]:
        feed = self._window(bd, live, threaded)
        try:
            yield feed
        finally:
            if feed is not None:
                feed.close()

    @staticmethod
    def _tell(run: Run, out: Result, on_error: str) -> None:
        """Raise or say why a run did not end as it was to."""
        if run.error is not None and (on_error == "raise" or not len(out.t)):
            run.error.result = out  # type: ignore[attr-defined]
            raise run.error
        say_limits_left(out.data[".left_limits"])
        if run.error is not None or run.status == "interrupted":
            until = "1 sample until then is" if len(out.t) == 1 else f"{len(out.t)} samples until then are"
            notice(f"{run.message}; {until} returned")
        elif run.interrupts.pressed:
            notice(f"Ctrl-C came after the last step: the run is {run.status}, and its result is returned")

    @staticmethod
    def _hold(feed: LiveFeed, asked: bool, interrupts: Interrupts) -> None:
        """Leave the window to the user until it is closed, or Ctrl-C is pressed.

        Where nobody asked for it, it is not waited for without a terminal: it may be a batch that nobody watches.
        """
        interrupts.end_wait(lambda: feed.hold(only_on_terminal=not (asked and is_on_screen())))

    def _keep_scopes(self, bd: Any, out: Result, asked: bool) -> None:
        """Write the figures of a run that no window showed, where that was asked for; else say where they are."""
        if asked:
            write_figures(str(bd.name), out)
            return
        self._unread.keep(str(bd.name), out)
        notice_once("what the scopes showed is in the result of the run; sim.report('run.html') writes it to a file")

    def _make_run_options(self, *, threaded: bool = False, **overrides: Any) -> Any:
        """Return the options of one run, a copy of those of all."""
        if threaded or overrides or self.options.data.get("movies") is not None:
            return super()._make_run_options(threaded=threaded, **overrides)
        return copy.copy(self.options)  # as bdsim does entry by entry

    @contextlib.contextmanager
    def in_context(self, bd: Any, simstate: RunState, options: Any, threaded: bool) -> Iterator[None]:
        """Let bdsim's blocks find a run and its options, as they do while bdsim itself runs them."""
        before = self._get_context()
        self._set_context(self._make_context(bd, simstate, options, threaded=threaded))
        try:
            yield
        finally:
            self._set_context(before)

    def _kind_of_run(self) -> type[Run]:
        """Return the class of the runs of this engine."""
        if self.engine == "interpreted":
            return Run
        from cstormpy.simulation.compiled import AutomaticRun, CompiledRun

        return CompiledRun if self.engine == "compiled" else AutomaticRun

    def _prepare(
        self,
        bd: Any,
        diagram: Diagram,
        simstate: RunState,
        settings: Settings,
        watch: Any,
        start: Any,
        at: Mapping[float, Callable[[], object]] | None,
        observer: Callable[[float, Any], None] | None,
    ) -> Run:
        """Start the blocks and stand at the beginning."""
        start = opened(start)
        begin = float(getattr(start, "t", 0.0))
        simstate.t = begin
        simstate.T = simstate.tf = begin + settings.T
        simstate.max_step = settings.max_step
        if not settings.ticks_at_end:
            simstate.ticks_until = simstate.tf
        with failures_named():
            self.update_parameters(bd)
            start_clocks(bd, simstate, settings.first_tick, begin, ticks_are_due(start, begin))
            start_blocks(bd, simstate)
        watched = {s.key: s for s in find_signals(bd, watch, beside_states=True) + find_signals(bd, simstate.watchlist)}
        panes = find_panes(bd)
        shown = {s.key: s for pane in panes for s in pane.signals if s.key not in watched}
        watchers = [] if observer is None else [observer]
        run = self._kind_of_run()(
            diagram,
            simstate,
            Recording([*watched.values(), *shown.values()], len(watched), panes),
            settings,
            self._commands,
            watchers,
        )
        schedule(at, simstate)
        t, x, step = initial_state(start, diagram, simstate)
        run.resumed = isinstance(start, SavedState)
        if not run.resumed:
            say_starts_beside(bd, diagram.continuous, t, x)
        run.begin(t, x, step)
        return run

    def _finish(self, bd: Any, run: Run, options: Any, block: bool | None, interrupts: Interrupts) -> None:
        """Leave the blocks as bdsim would: outputs to look at, plots drawn."""
        run.publish()
        if options.graphics and any(getattr(b, "isgraphics", False) for b in bd.blocklist):
            options.hold = options.hold if block is None else block
            interrupts.end_wait(lambda: self.done(bd, block=options.hold))


def _check_options(on_error: Any, pace: Any, observer: Any, debug: Any) -> None:
    """Refuse options of a run that are none."""
    one_of(on_error, "on_error", ("return", "raise"))
    check_pace(None if isinstance(pace, str) and pace == "auto" else pace)
    if observer is not None and not callable(observer):
        raise InvalidType(f"observer: expected a function of time and state, got {shown(observer)}")
    if not isinstance(debug, str):
        raise InvalidType(f"debug: expected a string of flags, got {shown(debug)}")


def _go(bd: Any, run: Run, feed: LiveFeed | None, pace: float | str | None, progress: bool) -> None:
    """Run to the end, shown in the live window, at a pace, beside a line that tells how far it is."""
    show = LiveSession(feed, bd, run, run.recording.panes, pace)
    if feed is not None or show.pace is not None:
        run.watchers.append(show.sample)
    with Progress("t", run.t, run.end, "s", progress, lambda: show.idle) as line:
        getattr(run, "glances", run.watchers).append(lambda t, _x: line.update(t))
        run.go()
    show.finish()


def _can_draw() -> bool:
    """Tell whether bdsim's own scopes have a display to draw on."""
    if os.environ.get("BDSIM_NO_GRAPHICS"):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _write(out: Result, write: Callable[[], object]) -> None:
    """Write a file about a run whose data is not lost if that cannot be done."""
    try:
        write()
    except CstormError as error:
        error.result = out  # type: ignore[attr-defined]
        raise


#: What stands between the diagram and the arguments that `Simulation` has too.
_RUN_OPTIONS = frozenset(inspect.signature(Simulation.run).parameters) - {"self", "bd", "live", "report"}
