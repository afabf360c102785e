"""Least squares of inertial and joint parameters from logged motions and torques, by the inverse dynamics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import one_of, option, positive, whole_number
from cstormpy.arrays import Array, as_floats
from cstormpy.errors import InvalidValue, UnknownName
from cstormpy.identification.base_parameters import regrouped
from cstormpy.identification.consistency import is_possible, nearest_fit
from cstormpy.identification.equations import equations_of, told
from cstormpy.identification.log import Log, read_logs
from cstormpy.identification.offsets import KINDS, Eliminated, offset_columns
from cstormpy.identification.output_error import MOST_PARTS, fit_output
from cstormpy.identification.result import Identification, OutputIdentification
from cstormpy.identification.unknowns import NONNEGATIVE, Unknowns, parameter_list, unknowns_of
from cstormpy.linkage.components import Term
from cstormpy.loops.closed_motions import closed_motion
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.sensitivity.torque_rates import torque_rates

#: A singular value of the stacked regressor, its columns of length 1, below this part of the greatest is zero.
RANK = 1e-9
#: A column of the stacked regressor below this part of the greatest is zero.
ROUNDING = 1e-12
#: Noise of a joint below this part of the greatest is rounding.
QUIET = 1e-6
#: A base parameter is determined if no more than this part of its direction is left out by the data.
UNTOLD = 1e-6
#: A stretch of fewer rows says little but where it begins.
_LEAST_HORIZON = 3
#: Rows after which a simulation begins anew, and its longest step [s], unless said.
_HORIZON, _MAX_STEP = 50, 0.01
#: A joint's noise is found from what a fit leaves, and the next weighs by it, until it changes by less than this part,
#: but not more often than so many times.
SETTLED, FITS = 0.01, 10


def identify(
    mech: Mechanism | str | os.PathLike[str],
    data: Any,
    parameters: Iterable[str] | str | None = None,
    *,
    signals: Mapping[str, str] | None = None,
    wrench: Any = None,
    physical: bool | str = "auto",
    control_points: int | None = None,
    missing: str = "refuse",
    form: str = "inverse",
    horizon: int | None = None,
    max_step: float | None = None,
    held: bool = False,
    offsets: str = "none",
) -> Identification | OutputIdentification:
    """Return the parameters of a mechanism that explain a log best, and how well they are known.

    With ``form="inverse"`` they explain the torques: the inverse dynamics is linear in them, and its least squares need
    no first guess. With ``form="output"`` they explain the positions, as the output of a simulation under the logged
    torques: that may be any numbers of the mechanism, lengths and axes too, needs no accelerations and is not biased by
    noise of the positions, but begins at the given mechanism and may take it for a poor guess.

    What the log does not tell stays as near to the given mechanism as it can. Of each joint the noise is found from
    what a fit leaves, and weighs its torques in the next, until it settles.

    Of a closed mechanism the forces of the loops need not be known: the equations are those of its freedoms. A log that
    nearly closes the loops is closed. With ``form="output"`` numbers that move the loops are refused.

    Parameters
    ----------
    mech : Mechanism, str or path
        A mechanism, the name of a ready one or a file. Its geometry is taken as known, and so are the numbers that are
        not asked for.
    data : dict of arrays, DataFrame, run, or list of these
        The log. A dict or frame has q, tau, t, and, if they were logged, qd and qdd; a frame has them in columns
        "<joint>.q" or "q[0]", "q[1]", and so on, the times in a column or the index "t". Of a run say by `signals`
        what is what. tau may be of all joints or of those that are actuated; the others have none. What a log lacks of
        qd and qdd comes from a spline fitted to the positions.
    parameters : list of str, optional
        Names of links, for mass, com and inertia of each; "<link>.mass", "<link>.inertia" or a component of that;
        "<joint>.armature", ".damping", ".friction", ".stiffness"; or "*.damping" and the like, for all joints. All
        links that move unless said.
    signals : dict, optional
        Names in the log, as {"q": "plant.q", "qd": "plant.qd", "tau": "controller.tau"}.
    wrench : array_like, optional
        What acted on the links from outside, the same at all times or for each row of the log, of several logs one
        behind another; see `Mechanism`.
    physical : {"auto", True, False}
        Whether links must be such as can be (a positive definite pseudo-inertia) and damping, friction and armature not
        negative. "auto" is True where the plain solution is impossible, and else changes nothing. With "output" masses
        are positive and damping and the like not negative in any case.
    control_points : int, optional
        Of the spline that is fitted to each log; unless said a fifth of its rows, or a half, a fourth, … of these:
        what filters best by generalised cross-validation, for each joint. Fewer filter more. Rows within two of its
        segments from an end, where its derivatives are uncertain, are left out.
    missing : {"refuse", "drop"}
        What is done about rows that are not finite. With "output" the torques of rows stay whose motion, or that of
        some joints, is not.
    form : {"inverse", "output"}
        What is fitted: the torques, or the motion.
    horizon : int, optional
        With "output" after how many rows the simulation begins anew, at a state that is found too; 50 unless said.
        Shorter where motions are unstable, longer where they are noisy.
    max_step : float, optional
        With "output" the longest step of the integration, 0.01 unless said [s]; steps are shorter where damping, or
        friction next to rest, asks for that.
    held : bool, optional
        Whether the torques of each row were held until the next, as those of a sampled controller are, rather than
        linear between rows.
    offsets : {"none", "constant", "linear"}
        Whether the logged torque of each motor, in each log, has an offset that is found too, or one that drifts. With
        "inverse" alone; a constant one is like the Coulomb friction of a joint that always moves one way.

    Returns
    -------
    Identification or OutputIdentification
        With `mechanism`, `values`, `base`, `standard_errors` and so on; it prints as a table.

    Raises
    ------
    UnknownName
        With the nearest spelling, of a parameter, a column, a signal.
    NonFinite
        Naming joint and row.
    InvalidValue
        For too little data, with how much is needed; for a motion that opens a loop, with the row and by how much.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> truth = library.planar_2r()
    >>> rng = np.random.default_rng(0)
    >>> q, qd, qdd = rng.normal(size=(3, 100, 2))
    >>> log = {"q": q, "qd": qd, "qdd": qdd, "tau": truth.inverse_dynamics(q, qd, qdd)}
    >>> wrong = truth.with_parameters({"forearm.mass": 3.0})
    >>> found = identify(wrong, log, "forearm.mass")
    >>> round(found.mechanism.link("forearm").mass, 6)
    1.25
    """
    mech = as_mechanism(mech)
    physical = one_of(physical, "physical", ("auto", True, False))
    held = one_of(held, "held", (False, True))
    option(offsets, "offsets", tuple(KINDS))
    if control_points is not None:
        control_points = whole_number(control_points, "control_points", 1, 10**9)
    if option(form, "form", ("inverse", "output")) == "output":
        if offsets != "none":
            raise InvalidValue("offsets: are found with form='inverse'; this form takes the torques as they are")
        how = horizon, max_step, physical, held
        return _by_output(mech, data, parameters, signals, wrench, control_points, missing, *how)
    for name, given in (("horizon", horizon), ("max_step", max_step)):
        if given is not None:
            raise InvalidValue(f"{name}: is of form='output', which simulates the motion; this form does not")
    unknowns = unknowns_of(mech, parameters)
    log = read_logs(mech, data, signals, control_points, missing)
    log = replace(log, tau=_between_steps(log)) if held else log
    motion = log.q, log.qd, log.qdd
    if mech.loops:
        motion = closed_motion(mech, *motion, advice=_advice(log))
    structure = regrouped(mech, unknowns)
    equations = equations_of(mech, motion[0])
    shifts = offset_columns(mech, log, offsets)
    count = shifts.shape[2]
    if equations.count < len(structure) + count + 1:
        asked = f"{len(structure)} base parameters{f' and {count} offsets' if count else ''}"
        raise InvalidValue(f"data: {equations.text} are {equations.count} equations, too few for {asked}")
    known = unknowns.values / unknowns.sizes
    W = torque_rates(mech.tree, unknowns.parts, *motion) * unknowns.sizes
    left = log.tau - mech.tree.inverse_dynamics(*motion, _loads(wrench, log)) + W @ known
    sigma = equations.torques * equations.noisy
    quiet = QUIET * sigma * max(float(np.abs(equations.reduced(left)).max()), 1e-300)
    parts, plain = known, True
    for fit in range(FITS):
        weighed = equations.weighed(np.concatenate([shifts, W, left[..., None]], axis=-1), sigma)
        rest = Eliminated.of(weighed, count)
        parts, plain, R = _solved(rest.equations, unknowns, known, physical)
        shift = shifts @ rest.amounts(parts)
        residual = left - W @ parts - shift
        acts = np.concatenate([rest.equations[..., :-1] @ _independent(R)[0], rest.basis], axis=-1)
        sigma_found = equations.noise(residual, sigma, acts)
        before, sigma = sigma, np.maximum(sigma_found, quiet)
        # of so few rows one joint's could be met exactly, and would count for ever more
        if fit and (len(log.q) <= len(structure) or np.all(np.abs(sigma - before) <= SETTLED * before)):
            break
    base, covariance = _accuracy(R, structure.matrix * unknowns.sizes)
    missed = equations.missed(residual, sigma)
    # what is left as it was given, to the last digit
    values = np.where(parts == known, unknowns.values, parts * unknowns.sizes)
    spare = equations.count - count
    return Identification(
        mech, unknowns, values, structure, base, covariance, log, missed, sigma_found, plain, spare, shift
    )


def _by_output(
    mech: Mechanism,
    data: Any,
    parameters: Any,
    signals: Mapping[str, str] | None,
    wrench: Any,
    control_points: int | None,
    missing: str,
    horizon: int | None,
    max_step: float | None,
    physical: bool | str,
    held: bool,
) -> OutputIdentification:
    if wrench is not None:
        raise InvalidValue("wrench: is not followed with form='output'")
    rows = _HORIZON if horizon is None else whole_number(horizon, "horizon", _LEAST_HORIZON, 10**9)
    step = _MAX_STEP if max_step is None else positive(max_step, "max_step")
    names = parameter_list(mech, parameters)
    log = read_logs(mech, data, signals, control_points, missing, simulated=True)
    if mech.loops:
        q, qd, _ = closed_motion(mech, log.q, log.qd, advice=_advice(log))
        log = replace(log, q=q, qd=qd)
    if not log.timed:
        raise UnknownName("data: has no times; form='output' simulates the motion, so give the times 't'")
    steps = np.diff(log.t)[np.diff(log.run) == 0]
    apart = float(np.median(steps)) if len(steps) else 0.0  # of so few rows the search says what is wanted
    if max_step is None and apart > MOST_PARTS * step:
        raise InvalidValue(
            f"data, t: the rows are {apart:g} s apart, {apart / step:.0f} steps of {step:g} s each; give the times in "
            "seconds, or max_step= where they are"
        )
    return OutputIdentification(fit_output(mech, log, names, rows, step, physical is not False, held), log)


def _between_steps(log: Log) -> Array:
    """Return torques that were held as they were at the rows on the whole: half of what was held before, where known.

    The acceleration jumps there, and a spline goes through the middle.
    """
    found = log.tau.copy()
    after = 1 + np.flatnonzero((np.diff(np.flatnonzero(log.kept)) == 1) & (np.diff(log.run) == 0))
    found[after] = 0.5 * (log.tau[after] + log.tau[after - 1])
    return found


def _advice(log: Log) -> str:
    """Return what to do about rates that open a loop where they come from positions that may be noisy."""
    if not log.differentiated:
        return ""
    return (
        " It was differentiated: of noisy positions a spline of fewer control_points= leaves less noise, of a fast "
        "motion one of more misses less"
    )


def _loads(wrench: Any, log: Log) -> Any:
    if wrench is None or isinstance(wrench, (list, tuple)):
        return wrench
    rows = as_floats(wrench, "wrench")
    return rows[log.kept] if rows.ndim == 3 and len(rows) == len(log.kept) else rows


def _solved(weighed: Array, unknowns: Unknowns, given: Array, physical: bool | str) -> tuple[Array, bool, Array]:
    """Return the unknowns, whether they are those of the plain least squares, and R of the weighted regressor.

    `weighed` are the equations, (N, f, P + 1): the regressor, and what it is to be times the unknowns. These are, as
    those `given`, in parts of their sizes.
    """
    count = len(unknowns.parts)
    triangle: Array = np.asarray(np.linalg.qr(weighed.reshape(-1, count + 1), mode="r"))
    R, scale = _scaled(triangle[:count, :count])
    target = triangle[:count, count]
    change = np.linalg.lstsq(R * scale, target - R @ given, rcond=RANK)[0] * scale
    values = given + change
    nonnegative = [k for k, p in enumerate(unknowns.parts) if _is_nonnegative(p)]
    bodies = unknowns.bodies
    possible = all(is_possible(body.numbers(values)) for body in bodies) and all(values[k] >= 0.0 for k in nonnegative)
    if possible or physical is False:
        return values, True, R
    return nearest_fit(R, target, given, scale, bodies, nonnegative), False, R


def _scaled(R: Array) -> tuple[Array, Array]:
    """Return R with zeros for columns that are rounding, and by what its columns become of length 1."""
    lengths = np.linalg.norm(R, axis=0)
    rounding = lengths <= ROUNDING * lengths.max(initial=0.0)
    return np.where(rounding, 0.0, R), 1.0 / np.where(rounding, 1.0, lengths)


def _is_nonnegative(part: Any) -> bool:
    return part.field in NONNEGATIVE if isinstance(part, Term) else part.name.endswith(".mass")


def _accuracy(R: Array, matrix: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return which base parameters, `matrix` π, the data determine, as a mask, and the covariance of all of them."""
    half, scale, rows = _independent(R)
    of_base = matrix @ half
    directions = matrix * scale
    directions = directions / np.maximum(np.linalg.norm(directions, axis=1), 1e-300)[:, None]
    untold = directions - directions @ rows.T @ rows
    return np.linalg.norm(untold, axis=1) < UNTOLD, of_base @ of_base.T


def _independent(R: Array) -> tuple[Array, Array, Array]:
    """Return combinations (P, k) of the unknowns that the data tell independently, each with an error of 1.

    Behind them are the scale of the unknowns, and these combinations in units of it, (k, P).
    """
    R, scale = _scaled(R)
    _, values, rows = told(R * scale, RANK)
    return scale[:, None] * rows.T / values, scale, rows
