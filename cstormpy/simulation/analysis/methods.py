"""Methods of `Simulation` for analysis: operating points, linear models, gradients and tuning, imported where used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from cstormpy.arguments import flag, tells_arguments
from cstormpy.simulation.occupation import by_one_thread

if TYPE_CHECKING:
    from cstormpy.simulation.analysis.batch_stepper import BatchStepper
    from cstormpy.simulation.analysis.event_stepper import EventStepper
    from cstormpy.simulation.analysis.external import DiagramStepper
    from cstormpy.simulation.analysis.gradients import Gradient
    from cstormpy.simulation.analysis.linear import LinearModel
    from cstormpy.simulation.analysis.margins import Margins
    from cstormpy.simulation.analysis.orbits import PeriodicOrbit
    from cstormpy.simulation.analysis.trimming import OperatingPoint
    from cstormpy.simulation.analysis.tuning import Tuning


class Analysis:
    """Derivatives of diagrams; the base of `Simulation` that holds these methods.

    A diagram is differentiated by its translation (`Simulation.source`), exactly: to states, signals, times and
    parameters, on the side that a branch takes. Functions of the user, and what a sampled block does at a tick, are
    differenced; each result names them in `differenced`.
    """

    @by_one_thread
    @tells_arguments()
    def linearize(
        self,
        bd: Any,
        x: Any = None,
        u: Any = None,
        *,
        t: float = 0.0,
        inputs: Any = (),
        outputs: Any = (),
        opened: Any = (),
        dt: float | None = None,
    ) -> LinearModel:
        """Return the linear model of a diagram about a point.

        A is that of the diagram as it is wired, with its loops closed. An input is a disturbance that is added to the
        signal of an output port, or to what arrives at an input port as ``"plant.tau"`` (there alone, wherever else the
        signal goes), loops staying closed. Where a value u is given for it, or it is among `opened`, it
        takes the place of the signal instead, and the loop is open there: ``inputs=["controller.tau"],
        opened=["controller.tau"]`` gives the plant alone. An output of a port that is opened is what arrives there,
        one that is disturbed is with the disturbance. Sampled states are held: `held` names them. A QUANTIZER counts as
        its input, a KALMAN or EKF as one of the covariance that it has, a NOISE without the count of its samples. What
        switches, as a COMPARE of pulse width modulation, stays as it is, with a slope of zero.

        Parameters
        ----------
        bd : BlockDiagram
        x : array (n,), dict, SavedState, result, path or OperatingPoint, optional
            States; by the names of states or blocks those that are not as at the start of a run. An operating point
            has its time and the values of its signals too, which are held, and are the inputs unless others are named.
        u : array or dict, optional
            Values of inputs, one behind the other or by name. What switches, as a RELAY, and what is held at a bound
            goes by them; a CONTROLLER stays in the phase in which the diagram has it.
        t : float
            The time, but for a point that has its own.
        inputs, outputs, opened : list
            Ports as in `run`'s ``watch``: blocks, ports, or names as ``"plant.q"``; of inputs, none twice. They may be
            input ports too, by name, of outputs those to which something is wired: what the wire brings. An input that
            is a port to which nothing is wired, in a diagram that is not compiled yet, gets a CONSTANT of zeros,
            ``plant_tau_open``, which stays in the diagram.
        dt : float, optional
            Period [s] of a sampled model, a whole number of the periods of all clocks, but for clocks of blocks without
            inputs, as NOISE, which else hold what they show: exact, with the states of the sampled blocks among its
            own, and inputs that are held over a period. Outputs and rates are those after the ticks at its beginning,
            as in a run.

        Returns
        -------
        LinearModel
            A, B, C, D, names, poles, damping, `step`, `to_control`.

        Raises
        ------
        NonFinite
            Where a rate, an output or a slope is not finite at the point; the block is named.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation()
        >>> bd = sim.blockdiagram()
        >>> lag = bd.INTEGRATOR(x0=0.0, name="lag")
        >>> error = bd.SUM("+-", name="error")
        >>> gain = bd.GAIN(4.0, name="gain")
        >>> bd.connect(bd.CONSTANT(1.0, name="wanted"), error[0])
        >>> bd.connect(lag, error[1])
        >>> bd.connect(error, gain)
        >>> bd.connect(gain, lag)
        >>> model = sim.linearize(bd, inputs=["wanted"], outputs=["lag"])
        >>> model.A, model.B, model.C
        (array([[-4.]]), array([[4.]]), array([[1.]]))
        """
        from cstormpy.simulation.analysis.linear import linearize
        from cstormpy.simulation.analysis.trimming import at_point

        x, t, inputs, known = at_point(x, t, inputs)
        return linearize(self, bd, x, u, t=t, inputs=inputs, outputs=outputs, opened=opened, dt=dt, known=known)

    @by_one_thread
    @tells_arguments()
    def margins(self, bd: Any, x: Any = None, *, at: Any, t: float = 0.0, dt: float | None = None) -> Margins:
        """Return the margins of a diagram's loops, cut at signals one number at a time, about a point.

        Parameters
        ----------
        bd, x, t
            As in `linearize`.
        at : list
            Ports whose signals are cut, as `inputs` of `linearize`: ``["controller.tau"]``.
        dt : float, optional
            Period [s] of loops with sampled blocks, the longest of their clocks' unless given; a clock of noise alone
            is none of these. They are cut at what is held from tick to tick, or is sampled there.

        Returns
        -------
        Margins
            `gain`, `phase`, `delay`, `distance`, each with the frequency at which the loop then swings.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation()
        >>> bd = sim.blockdiagram()
        >>> mass = bd.LTI_SISO([1.0], [1.0, 0.0, 0.0], name="mass")
        >>> pd = bd.LTI_SISO([3.0, 2.0], [0.01, 1.0], name="pd")
        >>> error = bd.SUM("+-", name="error")
        >>> bd.connect(bd.CONSTANT(1.0), error[0])
        >>> bd.connect(mass, error[1])
        >>> bd.connect(error, pd)
        >>> bd.connect(pd, mass)
        >>> found = sim.margins(bd, at=["pd"])
        >>> found.stable, found.phase.round(3), found.delay.round(3)
        (True, array([1.326]), array([0.432]))
        """
        from cstormpy.simulation.analysis.margins import margins

        return margins(self, bd, x, at, t, dt)

    @overload
    def stepper(
        self, bd: Any, inputs: Any = (), outputs: Any = (), *, x: Any = None, solver: str = "RK4", substeps: int = 1,
        events: Literal[False] = False,
    ) -> DiagramStepper: ...  # fmt: skip

    @overload
    def stepper(
        self, bd: Any, inputs: Any = (), outputs: Any = (), *, x: Any = None, solver: str = "RK4", substeps: int = 1,
        events: Literal[True],
    ) -> EventStepper: ...  # fmt: skip

    @overload
    def stepper(
        self, bd: Any, inputs: Any = (), outputs: Any = (), *, x: Any = None, solver: str = "RK4", substeps: int = 1,
        events: bool,
    ) -> DiagramStepper | EventStepper: ...  # fmt: skip

    @by_one_thread
    @tells_arguments()
    def stepper(
        self,
        bd: Any,
        inputs: Any = (),
        outputs: Any = (),
        *,
        x: Any = None,
        solver: str = "RK4",
        substeps: int = 1,
        events: bool = False,
    ) -> DiagramStepper | EventStepper:
        """Return what steps a diagram from outside, as a loop of your own, or of another tool, asks for it.

        Parameters
        ----------
        bd : BlockDiagram
            Of continuous and sampled blocks, without events that change something, which are those of a run, but for
            blocks whose outputs are all among the inputs. After each substep states are put within their limits, loops
            are closed and rotation vectors shortened. Substeps are cut where a source jumps; a class of your own tells
            when by ``edges()``, which returns a list of times, and after which time they come again, 0 if never. Where
            an output only bends no step ends. A diagram with more than continuous blocks is stepped in part, where the
            outputs do not need all: the states are of this part.
        inputs : list
            Ports as in `linearize`, whose signals are replaced: outputs, or input ports by name, as ``"plant.tau"``;
            one that nothing is wired to gets a CONSTANT of zeros, which stays in the diagram, as there.
        outputs : list
            Signals as in `run`'s ``watch``.
        x : array (n,), dict, SavedState, result or path, optional
            States at the start, as in `linearize`.
        solver : str
            A method of fixed steps.
        substeps : int
            How many steps of it there are in one of yours; they are cut where a clock ticks.
        events : bool
            Whether each step is a run, which locates and handles events, and asks Python for what is not translated. It
            takes some hundred times as long, and inputs are the values of CONSTANTs. What functions of events have set
            in blocks `reset` puts back, where it goes to a saved state too, which does not hold it.

        Returns
        -------
        DiagramStepper or, with `events`, EventStepper
            ``step(u, dt)`` and ``reset(x, t)`` return the outputs; ``t`` and ``x`` tell where it stands, and ``state``
            with all that is sampled. `reset` takes what `run` takes as ``start``, and up numbers of blocks that have
            been set since; its outputs are those with the inputs as they are wired there. Ticks that are due where a
            step ends are left to the next step and its inputs, so that outputs are those before these ticks. With
            `events`, ``events`` tells what came about in the last step, and ``stopped`` of a STOP, behind which there
            is no other.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation()
        >>> bd = sim.blockdiagram()
        >>> lag = bd.INTEGRATOR(x0=1.0, name="lag")
        >>> bd.connect(bd.CONSTANT(0.0, name="push"), lag)
        >>> stepper = sim.stepper(bd, inputs=["push"], outputs=["lag"])
        >>> stepper.step([2.0], 0.5), stepper.step([-1.0], 0.5), stepper.t
        (array([2.]), array([1.5]), 1.0)
        """
        if flag(events, "stepper: events"):
            from cstormpy.simulation.analysis.event_stepper import EventStepper

            return EventStepper(self, bd, inputs, outputs, x, solver, substeps)
        from cstormpy.simulation.analysis.external import DiagramStepper

        return DiagramStepper(self, bd, inputs, outputs, x, solver, substeps)

    @by_one_thread
    @tells_arguments()
    def batch_stepper(
        self,
        bd: Any,
        inputs: Any = (),
        outputs: Any = (),
        *,
        count: int,
        x: Any = None,
        solver: str = "RK4",
        substeps: int = 1,
    ) -> BatchStepper:
        """Return what steps many copies of a diagram at once, each with times, states and inputs of its own.

        The copies are computed side by side in the lanes of the machine's vectors; their parameters are the same.

        Parameters
        ----------
        bd : BlockDiagram
            As in `stepper`; each block must be one that is traced, as `explain` tells.
        inputs, outputs, x, solver, substeps
            As in `stepper`.
        count : int
            How many copies there are.

        Returns
        -------
        BatchStepper
            ``step(u, dt)`` and ``reset(x, t, where)`` return the outputs, a row for each copy; ``t`` and ``x`` tell
            where they stand, and ``state_of(row)`` with all that is sampled.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation()
        >>> bd = sim.blockdiagram()
        >>> lag = bd.INTEGRATOR(x0=1.0, name="lag")
        >>> bd.connect(bd.CONSTANT(0.0, name="push"), lag)
        >>> three = sim.batch_stepper(bd, inputs=["push"], outputs=["lag"], count=3)
        >>> three.step([[2.0], [0.0], [-1.0]], 0.5).ravel()
        array([2. , 1. , 0.5])
        """
        from cstormpy.simulation.analysis.batch_stepper import BatchStepper

        return BatchStepper(self, bd, inputs, outputs, count, x, solver, substeps)

    @by_one_thread
    @tells_arguments()
    def trim(
        self,
        bd: Any,
        x: Any = None,
        *,
        t: float = 0.0,
        inputs: Any = (),
        u: Any = None,
        hold: Any = (),
        rates: Mapping[Any, Any] | None = None,
        outputs: Mapping[Any, Any] | None = None,
    ) -> OperatingPoint:
        """Return an operating point: where the states stay as they are, or change and give what is asked for.

        A state with limits, as that of an INTEGRATOR, may stay at one that its rate points out of.
        Sampled states are held at what they are, and whether a tick would change them is not looked at; the message and
        `held` name them.

        Parameters
        ----------
        bd : BlockDiagram
        x : array (n,), dict, SavedState, result, path or OperatingPoint, optional
            Where the search begins; at an operating point it begins with its inputs too, at its time; they
            are the inputs unless more are named.
        t : float
            The time, but for a point that has its own.
        inputs : list
            Ports whose signals are found too, in place of what the diagram gives there: outputs, as ``"torque"``, or
            inputs, as ``"plant.tau"``; one that nothing is wired to gets a CONSTANT of zeros, which stays in the
            diagram, as in `linearize`.
        u : array or dict, optional
            Where the search begins with them; what the diagram gives there unless said.
        hold : list of str
            States, or blocks, whose values in x are kept.
        rates : dict, optional
            Rates of states, or of blocks, that are not to be zero, None where any will do. Of blocks whose output no
            other block takes, as an EFFORT's, any will do unless asked for; `left_out` has them, and the message those
            that are not zero.
        outputs : dict, optional
            Values that ports are to have, or one number of a port, as ``"kin.position[2]"``. In lists, here and for
            rates, None stands for what may be anything.

        Returns
        -------
        OperatingPoint
            x, u, and what remains of each condition; `success` tells whether that is nothing.

        Raises
        ------
        NonFinite
            Where a rate, an output or a slope is not finite where the search begins; the block is named.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation()
        >>> bd = sim.blockdiagram()
        >>> arm = cs.library.planar_2r().with_gravity((0.0, -9.81, 0.0))
        >>> plant = bd.HYBRIDDYNAMICS(arm, name="plant")
        >>> hold = bd.CONSTANT([0.0, 0.0], name="hold")
        >>> bd.connect(hold, plant)
        >>> point = sim.trim(bd, inputs=["hold"], hold=["plant"])
        >>> point.success, point.u.round(3)
        (True, array([12.263,  3.066]))
        """
        from cstormpy.simulation.analysis.trimming import trim

        return trim(self, bd, x, t=t, inputs=inputs, u=u, hold=hold, rates=rates, outputs=outputs)

    @by_one_thread
    @tells_arguments()
    def periodic_orbit(
        self,
        bd: Any,
        period: float | None = None,
        *,
        start: Any = None,
        settle: float | None = None,
        advance: Mapping[Any, Any] | None = None,
        forced: bool | None = None,
        tol: float | None = None,
        max_runs: int = 100,
        **options: Any,
    ) -> PeriodicOrbit:
        """Return a periodic orbit, as a limit cycle, and its Floquet multipliers; also one that is not stable.

        Found by Newton's method on the run of one period, with the exact derivatives that `gradient` has, through
        events on the way. Where the diagram does not depend on time the period is found too, and a round may begin
        anywhere on the orbit; where it does, it must repeat itself after the period that is given.

        Parameters
        ----------
        bd : BlockDiagram
        period : float, optional
            The period [s] of a diagram that depends on time; of others a first guess. With sampled blocks it is a whole
            number of the periods of their clocks, and what they keep is among the states that come back.
        start : optional
            Where the search begins, or the run before it: as in `run`.
        settle : float, optional
            How long a run lasts that comes near to the orbit before the search begins; the first guess at the period is
            then the time since it last was where it ends.
        advance : dict, optional
            By the names of states or blocks what they gain in a round, as ``{"plant.crank.q": 2 * math.pi}`` of a joint
            that turns, zero unless said; None of a state that may go where it will, as a cart on a track without end.
            States that only add up, as an EFFORT's, may.
        forced : bool, optional
            Whether the diagram is taken to depend on time; unless given, rates at some times tell.
        tol : float, optional
            What may be missing to a return, as a part of how far a state moves; 100 times rtol unless given. 100 times
            atol may be missing in any case.
        max_runs : int
            How many runs of one period the search takes at most.
        **options
            dt, max_step, solver, rtol, atol, watch of the runs; DOP853, 1e-10, 1e-12 unless given.

        Returns
        -------
        PeriodicOrbit
            `x`, `period`, `multipliers`, `stable`, the run `out` of one round, and `plot`.

        Examples
        --------
        The limit cycle of van der Pol's oscillator:

        >>> import cstormpy as cs
        >>> sim = cs.Simulation(progress=False)
        >>> bd = sim.blockdiagram()
        >>> x, v = bd.INTEGRATOR(1.0, name="x"), bd.INTEGRATOR(0.0, name="v")
        >>> rate = bd.FUNCTION(lambda x, v: (1 - x**2) * v - x, nin=2)
        >>> bd.connect(x, rate[0])
        >>> bd.connect(v, rate[1], x)
        >>> bd.connect(rate, v)
        >>> orbit = sim.periodic_orbit(bd, settle=20.0)
        >>> orbit.period.__round__(6), orbit.multipliers.real.round(6), orbit.stable
        (6.663287, array([0.00086]), True)
        """
        from cstormpy.simulation.analysis.orbits import periodic_orbit

        return periodic_orbit(
            self, bd, period, start=start, settle=settle, advance=advance, forced=forced, tol=tol, max_runs=max_runs,
            **options,
        )  # fmt: skip

    @by_one_thread
    @tells_arguments()
    def phase_portrait(
        self,
        bd: Any,
        x: Any = None,
        y: Any = None,
        *,
        xlim: Any,
        ylim: Any,
        starts: Any = (),
        T: float = 10.0,
        start: Any = None,
        t: float = 0.0,
        **options: Any,
    ) -> Any:
        """Draw where the states of a diagram go in the plane of two of them, and where they rest; return the figure.

        At each place blocks with modes, as a RELAY or a law with phases, are in those in which a run begins there.
        Points of rest, but those at limits of states, are stable, unstable, saddles or centres by the linear model
        there, or neutral, where that does not tell.

        Parameters
        ----------
        bd : BlockDiagram
            Without sampled blocks and mechanisms with loops.
        x, y : str, optional
            Names of two states; unless given those of a joint's position and rate, or the first two.
        xlim, ylim : pair
            The least and the greatest value of each.
        starts : list of pairs
            From where runs are drawn.
        T : float
            How long these are [s].
        start : optional
            The other states, which stand still in the field but not in the runs, as in `run`; of one that was saved the
            continuous ones.
        t : float
            The time of the field.
        **options
            Of the runs, as in `run`.

        Examples
        --------
        ``sim.phase_portrait(bd, xlim=(-4, 4), ylim=(-3, 3), starts=[(0.1, 0.0), (3.0, 0.0)]).savefig("plane.png")``
        """
        from cstormpy.simulation.analysis.portraits import phase_portrait

        return phase_portrait(self, bd, x, y, xlim=xlim, ylim=ylim, starts=starts, T=T, start=start, t=t, **options)

    @by_one_thread
    @tells_arguments()
    def gradient(self, bd: Any, cost: Any, parameters: Any, T: float = 5.0, **options: Any) -> Gradient:
        """Return the cost of a run, and its derivative to parameters through the steps that the run takes.

        Steps of an adaptive solver count as fixed; where the cost is a function, some end where states and watched
        signals are largest and least, so that a peak is that between samples too, and with `dt` it sees the samples of
        that grid alone. A zero crossing on the way, as a law's change of phase, comes earlier or later with the
        parameters; what that does is in the derivative, as are the samples of a SAMPLEHOLD. What the function of an
        EVENT writes into states and numbers of blocks is differenced, by calling it some more times, of which nothing
        remains. How that of a later EVENT follows numbers which were set from others, or remembered elsewhere, as in a
        list or an attribute, is not in it, nor how a jump moves whose time was set, which `notes` tells. They tell too
        where events come together and what follows depends on which is first, and where a signal stays exactly at a
        bend, as at a limit that is the same as one before it: there is a derivative on each side. A run that a STOP
        ends has derivatives of when it does too. What a jump of a STEP, PIECEWISE, WAVEFORM or PULSE does by coming
        earlier or later is in it too; it is refused where a clock ticks at the same time and samples what it changes,
        or an event comes then as well, as of a COMPARE or SAMPLEHOLD. That of a FUNCTION, or of a source of your own,
        is not in it; `notes` tells of those.

        Parameters
        ----------
        bd : BlockDiagram
        cost : str, port, or function of a Result
            The final value of a state, of a signal, or of one number of it, as "tip.position[0]" (the integral of a
            signal is the state of an INTEGRATOR); or a function that returns a number, or an array of several, of a
            run's times, states, watched signals and events: ``lambda out: np.trapezoid(out.signal("error") ** 2,
            out.t)``.
        parameters : str or list of str
            ``"block.parameter"`` for a number or all numbers of an array, ``"gain.K[0, 1]"`` for one of them, the name
            of a state for its value at the start, which at first is what `start` says; where that is a saved one, a
            sampled state too, as ``"pid:integral"``. What a clock says, as the period of a ZOH, is no parameter.
        T : float
            How long the run is [s].
        **options
            dt, max_step, solver, rtol, atol, first_tick, watch, start as in `run`; solvers RK45, DOP853, RK23, RK4,
            Euler.

        Examples
        --------
        >>> import cstormpy as cs
        >>> sim = cs.Simulation(engine="interpreted")
        >>> bd = sim.blockdiagram()
        >>> decay = bd.INTEGRATOR(x0=1.0, name="decay")
        >>> bd.connect(decay, rate := bd.GAIN(-2.0, name="rate"))
        >>> bd.connect(rate, decay)
        >>> found = sim.gradient(bd, "decay[0]", ["rate.K"], T=1.0, solver="RK4", dt=0.01)
        >>> found.gradient.round(6)
        array([0.135335])
        """
        from cstormpy.simulation.analysis.gradients import gradient

        return gradient(self, bd, cost, parameters, T=T, **options)

    @by_one_thread
    @tells_arguments()
    def tune(
        self,
        bd: Any,
        cost: Any,
        parameters: Any,
        T: float = 5.0,
        *,
        bounds: Any = None,
        apply: bool | None = None,
        max_runs: int = 100,
        tol: float = 1e-8,
        **options: Any,
    ) -> Tuning:
        """Lower the cost of a run by other values of parameters, found by its exact gradient.

        A cost of one number is lowered by L-BFGS-B, one that is an array, whose squares are summed, by least squares.
        With an adaptive solver all runs take the steps of the first one, so that their costs can be compared, and the
        message tells where the last one costs something else by steps of its own. A run that fails is a step too far;
        Ctrl-C ends the search with the best values until then.

        Parameters
        ----------
        bd, cost, parameters, T, **options
            As in `gradient`.
        bounds : dict, pair or list of pairs, optional
            Least and greatest value by the name of a parameter, of all of them, or of each; None for none.
        apply : bool, optional
            Whether the blocks keep the better values; unless given, where the search came to an end by itself. That of
            a state becomes the x0 of its block; where `start` is given the message says how to pass it on.
        max_runs : int
            How many runs are made at most.
        tol : float
            The search ends where its last steps together gain less than this part of the cost, or of that at the start
            if that is greater, or where the gradient falls below it.

        Returns
        -------
        Tuning
            Prints as what was changed: the values `before` and `after`, both costs, why it ended; `out` is the run.

        Examples
        --------
        How fast a decay is that has halved after a second:

        >>> import cstormpy as cs
        >>> sim = cs.Simulation(engine="interpreted", progress=False)
        >>> bd = sim.blockdiagram()
        >>> decay = bd.INTEGRATOR(x0=1.0, name="decay")
        >>> bd.connect(decay, rate := bd.GAIN(-2.0, name="rate"))
        >>> bd.connect(rate, decay)
        >>> tuned = sim.tune(bd, lambda out: out.x[-1] - 0.5, ["rate.K"], T=1.0)
        >>> tuned.after.round(4)
        array([-0.6931])
        """
        from cstormpy.simulation.analysis.tuning import tune

        return tune(self, bd, cost, parameters, T=T, bounds=bounds, apply=apply, max_runs=max_runs, tol=tol, **options)
