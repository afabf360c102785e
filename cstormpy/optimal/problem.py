"""Optimal control problems: a mechanism, its drive, a duration, the ends, an objective, limits and constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy import checks
from cstormpy.arguments import flag, option
from cstormpy.arrays import own_arrays, real_array
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, shown
from cstormpy.linkage.degrees import say_degrees
from cstormpy.mechanism import Mechanism
from cstormpy.optimal.closed_shooting import shooting_of
from cstormpy.optimal.conditions import EndState, end_conditions, read_state
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.cuts import UNKNOWN_FORCES, loop_forces, read_cuts
from cstormpy.optimal.design import read_design
from cstormpy.optimal.freedoms import Clearance, read_freedoms
from cstormpy.optimal.inverse import inverse_of
from cstormpy.optimal.joints import mask_of
from cstormpy.optimal.loads import read_base, read_loads
from cstormpy.optimal.loop_problems import loop_constraints, refuse_closed_shooting
from cstormpy.optimal.problem_arguments import (
    fitting_steps,
    read_collocation,
    read_duration,
    read_knots,
    read_limits,
    read_samples,
    refuse_outside,
    refuse_unknown_jerk,
    variable_bounds,
    without_motor,
)
from cstormpy.optimal.programme import Programme
from cstormpy.optimal.residuals import FEASIBILITY
from cstormpy.optimal.samples import Array, Samples
from cstormpy.optimal.scaling import Scaled, cost_size
from cstormpy.optimal.stages import guessed_points, random_points, read_guess
from cstormpy.optimal.terms import Jerk, Objective, Terminal
from cstormpy.optimal.transcription import Indices, Setup, Transcription, phase_curve
from cstormpy.optimal.turn_limits import TurnLimit, refuse_whole_turns
from cstormpy.trajectory import BSpline
from cstormpy.values import ArgumentNames, FrozenError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cstormpy.optimal.checking import GradientCheck
    from cstormpy.optimal.shooting import Shooting
    from cstormpy.optimal.solution import Solution
    from cstormpy.optimal.solving import Viewer
    from cstormpy.optimal.stages import Stage
    from cstormpy.optimal.starts import Progressed

TRANSCRIPTIONS = ("auto", "inverse", "freedoms", "shooting")

STEPS = 500
"""Fewest integration steps unless they are given."""

DENSER = 10
"""Pieces of each segment for `Problem.dense_cost`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Options:
    """The arguments of a problem beside its mechanism."""

    duration: Any
    start: Any
    objective: Objective
    end: Any = None
    limits: Any = "mechanism"
    constraints: Sequence[PathConstraint] = ()
    loads: Any = ()
    base: Any = None
    cuts: Any = ()
    points: int = 16
    degree: int | None = None
    knots: Any = None
    transcription: str = "auto"
    samples: Any = 201
    steps: int | None = None
    collocation: Any = None
    guess: Any = None
    spread: float | None = None
    box: float | None = None
    exact: bool = False
    design: Any = None


class Problem(metaclass=ArgumentNames):
    """Find the motion of least cost.

    Parameters
    ----------
    mech : Mechanism or str
        The mechanism, a library name or a file. Its drive says what shooting integrates: active joints move along
        splines, joints with a motor that are not active get a spline of torque, all others follow. One with loops is
        transcribed by inverse dynamics unless asked otherwise: closure is an equation all along the motion, and
        torques are the least that make it. By shooting the forces of the loops keep it closed.
    duration : float, (low, high) or (low, guess, high)
        T [s], or the bounds of a free one. The search begins at the guess of it; without one at the duration of the
        motion that is `guess`, or between the bounds.
    start, end : posture, tuple or mapping
        What holds at the ends: a posture (n,) in which None leaves a joint free, at rest where it is given; a tuple
        (q, qd) or (q, qd, qdd); a mapping from "q", "qd", "qdd", or from names of joints, which are at rest; None: the
        end is free. Shooting needs the whole state of the joints that it integrates at the start.
    objective : Objective
        A sum of terms, as ``Effort() + 100 * Terminal(q={"shoulder": np.pi / 2})``.
    limits : "mechanism", None or mapping, optional
        Limits of "position", "velocity", "acceleration", "jerk", "torque", "power": each a number for all joints, a
        pair (low, high), or a mapping from joints to such. "mechanism": those of its joints, and the largest angles
        of its balls; what a mapping does not mention is not limited. The jerk is that of joints on splines.
    constraints : sequence of PathConstraint
        `Position`, `PointVelocity`, `PointAcceleration`, `Pose`, `Constraint`.
    loads : Load or sequence of Load
        What acts on the links from outside.
    base : (V0, dV0) or function, optional
        The prescribed motion of the base, its twist and the rate of that, (6,) each in its own frame, all
        along the motion; or where the duration is fixed a function of time that returns the pair.
    cuts : "all", or sequence of str or Cut, optional
        Loops whose forces are unknowns of the search, each multiplier on a spline of its own, instead of those that
        follow from the motion; see `Cut`.
    points : int
        Control points of each spline.
    degree : int, optional
        Degree of the splines; 3, and 5 where joints without motor are on them, or there are loops, unless given.
    knots : array_like, (points + degree + 1,), optional
        Knots of the splines as phases from 0 to 1; evenly spaced, with the ends degree + 1 times, unless given. Those
        beyond are moved to the ends, which leaves the splines as they are.
    transcription : {"auto", "inverse", "freedoms", "shooting"}
        *inverse*: every joint on a spline, and the torque of a joint without motor is zero.
        *freedoms*: of a mechanism with loops as many joints on splines as it has freedoms, those that determine the
        others best at the start, motors before others that do as well; the others follow from the posture there, and
        the motion keeps away from singular postures. The ends say what holds of the joints on splines alone, and all
        freedoms have motors.
        *shooting*: see `mech`. "auto" shoots where a joint has no motor, and there are no loops.
    samples : int or sequence of floats
        Inverse: how many phases, both ends included, or which, at which limits are asked first; where they are
        exceeded between them, `solve` adds more.
    steps : int, optional
        Shooting: even number of integration steps to begin with; limits are asked at each. Unless given, from 500 on
        the first that has a step at each knot, and at each phase where a constraint is asked.
    collocation : int or sequence of floats, optional
        Inverse: at how many phases, or at which, joints without motor are asked first to be free of torque, as they
        are to be all the time; as many as the accelerations have control points unless given.
    guess : BSpline, array_like or None, optional
        Where the search begins: a motion of the joints on splines or of all joints, or control points; a cubic from
        the start to the end, and torques that hold these, unless given. Joints on splines of torque take the torques
        that make a motion of all.
    spread : float, optional
        Size [rad or m] of what random starts add to the guess; 3 rad, three lengths of the mechanism, or
        the characteristic torque, unless given.
    box : float, optional
        How far [rad or m] control points may be from the joint's start; 4π rad, or so many lengths of the mechanism,
        where anything is integrated, no bound else.
    exact : bool
        Make equations of `Terminal` terms instead of penalties.
    design : mapping, optional
        Numbers of the mechanism that are chosen together with the motion, by the names of `with_parameters` or
        of their components, with (low, high) or (low, guess, high): ``{"forearm.com[0]": (0.4, 0.6)}``; those of a pose
        are a twist by which the frame moves from where it is. Or any name, with a `Tied` that says which numbers
        follow one value. The search begins at the mechanism as it is, unless a guess is given.

    Raises
    ------
    CstormError
        Naming what is wrong, before anything is solved.

    Examples
    --------
    The arm of Xiang et al. 2008 from rest to rest as fast as its motors can:

    >>> from cstormpy.mechanism import library
    >>> from cstormpy.optimal import Problem, Time
    >>> arm = library.xiang_two_link().with_gravity([0, 0, 0])
    >>> problem = Problem(arm, duration=(0.2, 1.0), start=[0, -2], end=[1, -1], objective=Time(), points=12, samples=41)
    >>> solution = problem.solve()
    >>> round(solution.duration, 3), solution.feasible
    (0.396, True)
    """

    def __init__(self, mech: Mechanism | str, **options: Any) -> None:
        from cstormpy.mechanism import as_mechanism

        self.mech = as_mechanism(mech)
        known = list(_Options.__dataclass_fields__)
        for name in options:
            option(name, "option of a problem", known)
        missing = [name for name in ("duration", "start", "objective") if name not in options]
        if missing:
            raise InvalidType(f"problem: {missing[0]}= is missing")
        self.options = _Options(**own_arrays(options))
        self._read()
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse another option of a problem that is made: much has been read of them."""
        if "_is_made" in vars(self) and (name == "mech" or name in _Options.__dataclass_fields__):
            raise FrozenError(f"Problem: {name!r} cannot be set; problem.replace({name}=…) is another problem with it")
        super().__setattr__(name, value)

    def replace(self, **options: Any) -> Problem:
        """Return the problem with some of its options, or `mech`, changed; new control points follow the same guess."""
        mech = options.pop("mech", self.mech)
        given = self.options.guess
        if given is not None and not isinstance(given, BSpline) and options.keys() & {"points", "knots", "degree"}:
            options = {"guess": phase_curve(self.knots, self.degree, self.setup.width, self.guess), **options}
        return Problem(mech, **{**self.options.__dict__, **options})

    def __reduce__(self) -> Any:
        """Copy and pickle by what it was made of; a copy makes its own tables."""
        return _made, (self.mech, dict(self.options.__dict__))

    def __repr__(self) -> str:
        how = "shooting" if not self.inverse else "inverse" if self.freedoms is None else "freedoms"
        T = f"{self.low_duration:g} to {self.high_duration:g} s" if self.free_duration else f"{self.low_duration:g} s"
        return (
            f"<Problem of {self.mech!r}, {how}, {self.options.points} control points of {len(self.driven)} "
            f"joint{'s' if len(self.driven) > 1 else ''}, {T}: least {self.objective!r}>"
        )

    # ---------------------------------------------------------------- reading and checking

    def _read(self) -> None:
        o, mech = self.options, self.mech
        if not isinstance(o.objective, Objective):
            raise InvalidType(
                f"objective: expected a sum of terms, as Effort() + 0.1 * Time(), got {shown(o.objective)}"
            )
        option(o.transcription, "transcription", TRANSCRIPTIONS)
        self.objective = o.objective
        for _, term in self.objective.parts:
            term.check(mech)
        self.design = read_design(mech, o.design)
        unforced = bool(mech.actuated_mask.all()) or bool(mech.loops)
        self.inverse = o.transcription in ("inverse", "freedoms") or (o.transcription == "auto" and unforced)
        self.low_duration, self.duration_guess, self.high_duration, self.free_duration = read_duration(
            o.duration, o.guess
        )
        self.start, self.end = read_state(mech, o.start, "start"), read_state(mech, o.end, "end")
        for name, state in (("start", self.start), ("end", self.end)):
            say_degrees(mech.freedoms, mech.names, state.rows[0].tolist(), name)
        self.cuts = read_cuts(mech, o.cuts)
        self.freedoms = read_freedoms(self) if o.transcription == "freedoms" else None
        free = np.ones(mech.n, dtype=bool) if self.freedoms is None else self.freedoms.mask
        self.driven: Indices = np.flatnonzero(free if self.inverse else mech.actuated_mask)
        if not len(self.driven):
            raise InvalidValue("problem: no joint of the mechanism has a motor, so that there is nothing to choose")
        self.loads = read_loads(mech, o.loads)
        self.base = read_base(o.base, self.free_duration)
        if self.base is not None and self.design is not None and not self.inverse:
            raise InvalidValue(
                "base: shooting follows a design on a base at rest alone; take transcription='inverse' for both"
            )
        if mech.loops and not self.inverse:
            refuse_closed_shooting(self)
        refuse_whole_turns(mech, {"start": self.start, "end": self.end})
        self.limits = read_limits(mech, o.limits, self.on_splines)
        for _, term in self.objective.parts:
            if isinstance(term, Jerk) and term.joints is not None:
                refuse_unknown_jerk(mech, mask_of(mech, term.joints, term.label()) > 0.0, self.on_splines, term.label())
        refuse_outside(mech, self.limits, {"start": self.start, "end": self.end})
        self.turns = [TurnLimit(mech)] if mech.largest_angles and isinstance(o.limits, str) else []
        for turn in self.turns:
            turn.refuse_outside({"start": self.start, "end": self.end})
        idle = self.inverse and not (mech.actuated_mask.all() and not mech.loops)
        self.degree = (5 if idle else 3) if o.degree is None else o.degree
        self.knots = read_knots(o.knots, o.points, self.degree)
        # those of the other transcription too, and steps below: what is wrong is not passed over
        self.phases = read_samples(o.samples)
        self.collocation = read_collocation(o.collocation)
        self.setup = self._setup()
        if self.setup.map().size == 0 and not self.free_duration:  # the map refuses more conditions than control points
            raise InvalidValue(
                f"points: the conditions at the ends fix all {o.points} control points; give more of them"
            )
        self.constraints = self._read_constraints(o.constraints)
        self.steps = self._steps()
        self._refuse_rough()
        if o.spread is not None:
            checks.positive(o.spread, "spread")
        if o.box is not None:
            checks.positive(o.box, "box")
        self.guess = read_guess(o.guess, self)
        if o.knots is not None:  # moved, and control points with them
            points = o.guess if isinstance(o.guess, BSpline) else self.guess
            self.options = replace(o, knots=self.knots, guess=points)

    @property
    def on_splines(self) -> NDArray[np.bool_]:
        """Which coordinates move along splines, (n,); others are integrated."""
        if self.freedoms is not None:
            return self.freedoms.mask
        return np.ones(self.mech.n, dtype=bool) if self.inverse else self.mech.active_mask

    def _setup(self) -> Setup:
        mech, active = self.mech, self.on_splines
        if not self.inverse:
            free = np.flatnonzero(np.isnan(self.start.rows[:2]).any(axis=0) & ~active)
            if len(free):
                raise InvalidValue(
                    f"start: joint {mech.names[free[0]]!r} is integrated from its start, so that its position and rate "
                    "there must be given"
                )
        advice = UNKNOWN_FORCES if self.freedoms is None else "give it more motors"
        loops = loop_forces(self.guessed_mech, self.cuts, self.start.q, advice) if self.inverse else None
        return Setup(
            mech=mech,
            driven=self.driven,
            knots=self.knots,
            degree=self.degree,
            ends=end_conditions(self.start, self.end, self.driven, active, 0 if loops is None else len(loops.cut)),
            start=self.start.rows[:2],
            duration=None if self.free_duration else self.low_duration,
            loads=self.loads,
            base=self.base,
            typical_duration=self.duration_guess,
            moved=active[self.driven],
            loops=loops,
            design=self.design,
            freedoms=self.freedoms,
        )

    @cached_property
    def guessed_mech(self) -> Mechanism:
        """The mechanism with the design that the search begins with."""
        return self.mech if self.design is None else self.design.at(self.design.guess).mech

    def _refuse_rough(self) -> None:
        """Refuse what is known to have impulses; for functions of the user's own it shows at the guess."""
        for _, term in self.objective.parts:
            self.setup.refuse_rough(term.channels, term.label())
        for constraint in self.constraints:
            self.setup.refuse_rough(constraint.channels, f"constraint {constraint.name!r}")
        if not self.inverse and not self.mech.active_mask.all():
            self.setup.refuse_rough(("qdd",), "joints that are integrated")

    def _read_constraints(self, given: Any) -> list[PathConstraint]:
        if isinstance(given, PathConstraint):
            given = [given]
        if not isinstance(given, Sequence):
            raise InvalidType(f"constraints: expected a list of constraints, got {shown(given)}")
        for k, constraint in enumerate(given):
            if not isinstance(constraint, PathConstraint):
                raise InvalidType(f"constraints[{k}]: expected a constraint, got {shown(constraint)}")
            constraint.check(self.mech)
        found = [*self.limits, *self.turns, *given]
        if self.freedoms is not None:
            found.append(Clearance(self.freedoms))
        elif self.inverse and self.mech.loops:
            found += loop_constraints(self)
        elif self.inverse:
            found += without_motor(self.mech, self.collocation)
        else:
            passive = ~self.mech.active_mask
            wanted = {c: np.where(passive, row, np.nan) for c, row in zip(("q", "qd"), self.end.rows[:2], strict=True)}
            wanted = {c: row for c, row in wanted.items() if not np.isnan(row).all()}
            if wanted:
                found.append(EndState(wanted))
        if flag(self.options.exact, "exact"):
            found += self._exact_ends()
        return found

    def _exact_ends(self) -> list[PathConstraint]:
        terms = [term for _, term in self.objective.parts if isinstance(term, Terminal)]
        kept = [(weight, term) for weight, term in self.objective.parts if not isinstance(term, Terminal)]
        self.objective = Objective(kept)
        return [EndState(term.targets(self.mech), f"terminal {k + 1}") for k, term in enumerate(terms)]

    # ---------------------------------------------------------------- the programme

    @cached_property
    def transcription(self) -> Transcription:
        """The problem as samples of variables."""
        if not self.inverse:
            return shooting_of(self.setup, self.steps)
        integrals = any(term.kind in ("integral", "motion") for _, term in self.objective.parts)
        asked = [c.imposed for c in self.constraints]
        further = [self.setup.phases_of(at) for at in asked if at not in ("all", "everywhere", "start", "end")]
        phases = np.unique(np.concatenate(further)) if further else None
        return inverse_of(self.setup, self.phases, integrals, phases)

    @cached_property
    def finer(self) -> Shooting:
        """The problem by shooting with half the steps' length."""
        return shooting_of(self.setup, 2 * (len(self.transcription.phases) - 1))

    def dense_cost(self, x: Array) -> float:
        """Return the cost of variables with integrals from ten times as many samples, or from twice as many steps.

        It is NaN where a term is not finite at one of them.
        """
        try:
            return Programme(self._denser, self.objective, (), *self.bounds, x).cost(x)
        except NonFinite:
            return float("nan")

    @cached_property
    def _denser(self) -> Transcription:
        return inverse_of(self.setup, np.array([0.0, 1.0]), True, None, DENSER) if self.inverse else self.finer

    def _steps(self) -> int:
        if self.options.steps is not None:
            return checks.count(self.options.steps, "steps")
        return fitting_steps(self.knots, STEPS, self.asked_phases)

    @property
    def asked_phases(self) -> list[float]:
        """Phases at which some constraint is asked."""
        return sorted({phase for c in self.constraints if not isinstance(c.at, str) for phase in c.at})

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Low and high bounds of the variables, (size,) each."""
        return variable_bounds(self)

    def programme(self, x0: Array | None = None) -> Programme:
        """Return the nonlinear programme; it remembers where it was asked last: one for each thread."""
        low, high = self.bounds
        scales = None if x0 is None else self.scales
        return Programme(self.transcription, self.objective, self.constraints, low, high, self._variables(x0), scales)

    @cached_property
    def _scales(self) -> tuple[list[Array], float]:
        """The scales of the constraints and of the cost, by the guess."""
        programme = self.programme()
        return programme.scales, cost_size(programme, np.clip(self.first_guess(), *self.bounds))

    @property
    def scales(self) -> list[Array]:
        """Of each constraint, (k,): what its numbers, and by how much they are exceeded, are divided by."""
        return self._scales[0]

    def scaled(self, programme: Programme) -> Scaled:
        """Return the programme as solvers see it."""
        return Scaled(programme, self._scales[1])

    def _variables(self, x: Array | None) -> Array:
        if x is None:
            return self.first_guess()
        return real_array(x, "x", (self.transcription.size,), finite=False)

    @property
    def has_own_gradients(self) -> bool:
        """True where a term or a constraint brings its gradient along."""
        parts = [*(term for _, term in self.objective.parts), *self.constraints]
        return any(getattr(part, "gradient", None) is not None for part in parts)

    def first_guess(self) -> Array:
        """Return the variables where the search begins, (size,)."""
        points = guessed_points(self) if self.guess is None else self.guess
        return self.transcription.variables(points, self.duration_guess)

    def motion(self, x: Array | None = None) -> Samples:
        """Return the motion that some variables, or the guess, make, at the samples at which limits hold."""
        found = self.transcription.evaluate(self._variables(x))
        if found is None:
            raise NonFinite("motion: is not finite")
        return found.samples.at(self.transcription.grid)

    def random_guess(self, rng: np.random.Generator) -> Array:
        """Return variables near to the guess, (size,): some waves of random size are added to it."""
        points = guessed_points(self) if self.guess is None else self.guess
        T = self.duration_guess
        if self.free_duration:
            T = float(np.exp(rng.uniform(np.log(self.low_duration), np.log(self.high_duration))))
        moved = points + random_points(self, rng)
        design = None if self.design is None else rng.uniform(self.design.low, self.design.high)
        return self.transcription.variables(moved, T, design)

    # ---------------------------------------------------------------- solved

    def solve(
        self,
        *,
        starts: int = 1,
        seed: int | np.random.Generator = 0,
        solver: str = "auto",
        iterations: int = 500,
        tolerance: float = 1e-8,
        feasibility: float = FEASIBILITY,
        refine: bool = True,
        stages: Sequence[Stage] = (),
        keep: int = 1,
        executor: Executor | None = None,
        callback: Callable[[Progressed], Any] | None = None,
        progress: bool = True,
        live: bool | Viewer = False,
    ) -> Solution:
        """Return the best motion that was found.

        Parameters
        ----------
        starts : int
            How many starts: the guess and random ones near to it. The best feasible one wins.
        seed : int or numpy.random.Generator
            Draws the random starts.
        solver : {"auto", "slsqp", "gauss-newton", "ipopt"}
            "auto" takes SLSQP up to 120 variables, or 40 where all joints are driven. For more it takes "gauss-newton",
            an interior-point method, by the inverse form where the objective is a sum of `Effort`, `Acceleration`,
            `Jerk`, `Terminal` and `Time`, else above 120 Ipopt where it is installed. Where "gauss-newton" was taken
            for up to 120 and finds no descent, SLSQP goes on, and it where equations of SLSQP depend on one another,
            or SLSQP gets no further from a feasible motion.
            "gauss-newton" can be asked for any problem; it needs few iterations, each of a few motions.
        iterations : int
            The most iterations of each start, and after each refinement of it.
        tolerance : float
            Of the solver, for cost and scaled constraints.
        feasibility : float
            How much of its bound, or of the characteristic size of its numbers where that is zero, a constraint may be
            exceeded by, at the samples and between them, by a motion that is called feasible.
        refine : bool
            Whether samples, knots or steps are added where a motion exceeds more than that between them, and the search
            goes on from there. Without it such a motion is called infeasible.
        stages : sequence of Stage
            From coarse to fine: each stage goes on from what the one before found, with more control points, other
            weights of the `Terminal` terms, or those as equations.
        keep : int
            How many of the starts of the first stage go on to the next.
        executor : concurrent.futures.Executor, optional
            Runs the starts; as many threads as there are cores unless given.
        callback : callable, optional
            Called after each iteration with a `Progressed`: start, iteration, cost, violation, x, seconds, problem.
            If it returns True, the search ends with the best so far. Not with an executor.
        progress : bool
            Whether a line on the terminal tells how it goes.
        live : bool or Viewer
            Whether a window shows motion, torques and cost while the search goes on; or what is to show them. Without
            a display one line says so, and the search goes on; closing the window does not end it. What an executor
            runs is shown when it has ended.

        Notes
        -----
        Ctrl-C ends the search; the best so far is returned, and its `reason` says so.
        """
        from cstormpy.optimal.solving import SolutionSearch
        from cstormpy.optimal.starts import Accuracy

        try:
            rng = np.random.default_rng(seed)
        except (TypeError, ValueError) as error:
            raise InvalidType(f"seed: expected a whole number or a generator of NumPy, got {shown(seed)}") from error
        accuracy = Accuracy(tolerance, feasibility, refine)
        if not isinstance(stages, Sequence):
            raise InvalidType(f"stages: expected a list of Stage, got {shown(stages)}")
        search = SolutionSearch(self, solver, iterations, accuracy, executor, callback, progress, live)
        return search.run(starts, rng, tuple(stages), keep)

    def check_gradients(self, x: Array | None = None, tolerance: float = 1e-6) -> GradientCheck:
        """Compare the derivatives of each term and constraint with differences of fourth order.

        Parameters
        ----------
        x : ndarray, (size,), optional
            Where; near to the guess unless given.
        tolerance : float
            Largest difference, relative to the largest derivative, that counts as right.

        Returns
        -------
        GradientCheck
            It prints as a table; `ok` tells whether all are right, and `raise_if_wrong()` names the worst.
        """
        from cstormpy.optimal.checking import check_gradients

        return check_gradients(self, x, tolerance)

    def scaled_penalties(self, factor: float) -> Problem:
        """Return the problem with the weights of its `Terminal` terms multiplied."""
        parts = self.options.objective.parts
        return self.replace(
            objective=Objective((w * factor if isinstance(term, Terminal) else w, term) for w, term in parts)
        )


def _made(mech: Mechanism, options: dict[str, Any]) -> Problem:
    return Problem(mech, **options)
