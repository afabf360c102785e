"""Result of an identification: what was found, how well it is known, and what the data do not tell."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.identification.base_parameters import BaseParameters
from cstormpy.identification.consistency import is_possible
from cstormpy.identification.log import Log
from cstormpy.identification.output_error import Fit
from cstormpy.identification.unknowns import Unknowns
from cstormpy.linkage.components import Inertia, Term
from cstormpy.linkage.scales import length_of
from cstormpy.reporting import aligned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.mechanism import Mechanism


#: Where more than this part of a motor's torque is left over, a model that does not fit is the likely reason.
_MUCH = 0.5
#: And where more than this part of a joint's motion is, and is no noise.
_MUCH_MOTION = 0.1
_HINT = "signs, units and order of the logged columns, and what the mechanism does not model"
#: With fewer equations to find the noise by, errors are by a fifth and more beside what they are said to be.
_FEW = 12


class Identification:
    """The result of `identify`.

    Attributes
    ----------
    mechanism : Mechanism
        The given one with what was found in it.
    names : tuple of str
        Of the unknowns: "forearm.m", "forearm.mx", …, "forearm.Izz" of a link as a whole (mass, first moments and
        inertia about the origin of its frame), or parameters.
    values : ndarray, (P,)
        Of the unknowns. Where only combinations can be found, these are the ones nearest to the given mechanism.
    base : BaseParameters
        What any motion can show of them; ``base.alone``, ``base.combined`` and ``base.without_effect`` name what can be
        found alone, in combinations only, and not at all.
    base_values, standard_errors : ndarray, (B,)
        Of the base parameters; the error is infinite where these data do not determine one.
    undetermined : tuple of str
        Base parameters that a motion could show, but these data do not.
    plain : bool
        Whether these are the plain least squares; otherwise these were impossible, and bodies are held to what can be.
    t, torques, fitted : ndarray, (N,), (N, n), (N, n)
        Times of the rows, or their numbers where a log has none, logged torques, and those of the mechanism that was
        found.
    timed : bool
        Whether the log has times.
    offsets : ndarray, (N, n)
        What the logged torques have beside those of the mechanism, constant or linear in time; zeros unless asked for.
    residuals : ndarray, (N, n)
        Their difference; of a closed mechanism the least, measured by the noise, with which the motors make the motion.
    noise : ndarray, (n,)
        Standard deviation of the residuals of each joint.
    spare : int
        Equations beyond those that determine the base parameters, from which the noise is found: of few it, and so the
        standard errors, are rough.
    """

    def __init__(
        self,
        given: Mechanism,
        unknowns: Unknowns,
        values: Array,
        base: BaseParameters,
        determined: NDArray[np.bool_],
        covariance: Array,
        log: Log,
        residuals: Array,
        noise: Array,
        plain: bool,
        equations: int,
        offsets: Array,
    ) -> None:
        self.offsets = offsets
        self._given, self._unknowns, self._determined = given, unknowns, determined
        self.names, self.values, self.base, self.plain = unknowns.names, values, base, plain
        self.base_values = base.matrix @ values
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        self.standard_errors = np.where(determined, errors, np.inf)
        self.covariance = covariance
        self._differentiated = log.differentiated
        self.t, self.timed, self.torques, self.residuals = log.t, log.timed, log.tau, residuals
        self.fitted = log.tau - residuals
        self.noise = noise
        self.spare = equations - self.rank

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Base parameters that these data do not determine."""
        pairs = zip(self.base.parameters, self._determined, strict=True)
        return tuple(str(parameter) for parameter, told in pairs if not told)

    @property
    def rank(self) -> int:
        """Number of base parameters that the data determine."""
        return int(self._determined.sum())

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism that was found.

        Raises
        ------
        InvalidValue
            For a plain solution that no mechanism can have, as a negative mass.
        """
        return with_values(self._given, self._unknowns, self.values, self.plain)

    @property
    def misfit(self) -> Array:
        """Part of each joint's torque that is left over, by roots of mean squares, (n,); NaN where there is none."""
        left, whole = (np.sqrt(np.mean(part**2, axis=0)) for part in (self.residuals, self.torques))
        return np.asarray(np.where(whole > 0.0, left, np.nan) / np.where(whole > 0.0, whole, 1.0))

    def table(self) -> list[tuple[str, float, float]]:
        """Return base parameters with value and standard error."""
        return [
            (str(p), float(v), float(e))
            for p, v, e in zip(self.base.parameters, self.base_values, self.standard_errors, strict=True)
        ]

    def plot(self) -> Figure:
        """Return a figure: torques as logged and as fitted, what is left over, and the base parameters' errors."""
        from cstormpy.identification.figure import draw

        return draw(self)

    def __str__(self) -> str:
        lines = rows_text("base parameter", self.table())
        lines.append(f"{self.rank} of {len(self.base)} base parameters of {len(self.names)} unknowns are determined")
        if self.base.without_effect:
            lines.append(f"without effect on any torque: {', '.join(self.base.without_effect)}")
        if self.undetermined:
            lines.append(f"not excited by these data: {'; '.join(self.undetermined)}")
        if self.spare < _FEW:
            told = f"{self.spare} equations more than base parameters tell the noise"
            lines.append(f"the standard errors are rough: {told}; log more")
        lines += self._left_over()
        if not self.plain:
            lines.append("the plain least squares are impossible; links are held to what bodies can have")
        return "\n".join(lines)

    def _left_over(self) -> list[str]:
        """Return what is left of the torques of motors, and what to look for where that is much."""
        motors = [k for k in np.flatnonzero(self._given.actuated_mask) if np.isfinite(self.misfit[k])]
        if not motors:
            return []
        parts = [f"{self._given.names[k]} {100.0 * self.misfit[k]:.2g} %" for k in motors]
        lines = [f"left of the torques: {', '.join(parts)}"]
        if self.offsets.any():
            ends = ((self._given.names[k], *self.offsets[:, k][[0, -1]]) for k in motors)
            said = (f"{name} {a:.4g}" + f" to {b:.4g}" * bool(a != b) for name, a, b in ends)
            lines.append(f"offsets of the torques: {', '.join(said)}")
        if self.misfit[motors].max() > _MUCH:
            fast = "; a motion too fast for the spline that was fitted to it wants more control_points="
            lines.append(f"that is much: look at {_HINT}{fast * self._differentiated}")
        return lines

    def __repr__(self) -> str:
        told = f"{self.rank} of {len(self.base)} base parameters determined"
        return f"<Identification of {len(self.names)} unknowns, {told}>"


def with_values(mech: Mechanism, unknowns: Unknowns, values: Array, plain: bool) -> Mechanism:
    """Return a mechanism with values of unknowns; whether these are `plain`, so that no body need have them."""
    changes: dict[str, Any] = {}
    inertias: dict[int, Array] = {}
    for part, value in zip(unknowns.parts, values, strict=True):
        if isinstance(part, Term):
            _set_term(mech, changes, part, float(value))
        elif isinstance(part, Inertia) and part.link not in unknowns.whole:
            link = mech.links[part.link]
            if part.name == f"{link.name}.mass":
                changes[part.name] = float(value)
            else:
                now = inertias.setdefault(part.link, link.inertia.copy())
                i, j = np.argwhere(_symmetric(part.weights[4:]))[0]
                now[i, j] = now[j, i] = value
    changes |= {f"{mech.links[i].name}.inertia": inertia for i, inertia in inertias.items()}
    if plain:
        parts = values / unknowns.sizes
        odd = {body.link for body in unknowns.bodies if not is_possible(body.numbers(parts))}
        mech = mech.with_links(link.replace(allow_impossible=True) if link.name in odd else link for link in mech.links)
    made = mech.with_parameters(changes)
    links = [
        _with_numbers(link, values[unknowns.whole[i]], plain, length_of(mech)) if i in unknowns.whole else link
        for i, link in enumerate(made.links)
    ]
    return made.with_links(links)


def _set_term(mech: Mechanism, changes: dict[str, Any], part: Term, value: float) -> None:
    name, bracket, index = part.name.rpartition("[")
    if not bracket or not index.endswith("]") or name.rpartition(".")[2] != part.field:
        changes[part.name] = value
        return
    joint = mech.joint(name.rpartition(".")[0])
    changes.setdefault(name, np.array(getattr(joint, part.field)))[int(index[:-1])] = value


def rows_text(what: str, table: list[tuple[str, float, float]]) -> list[str]:
    """Return the lines of a table of names, values and standard errors."""
    head = (what, "value", "std. error")
    return aligned([head, *((name, f"{v:.6g}", f"{e:.2g}" if np.isfinite(e) else "?") for name, v, e in table)])


def _symmetric(six: Array) -> Array:
    made = np.zeros((3, 3))
    made[np.triu_indices(3)] = six
    return made


def _with_numbers(link: Any, numbers: Array, plain: bool, length: float) -> Any:
    """Return a link of a mechanism of some length with ten inertial numbers."""
    mass, moment = float(numbers[0]), numbers[1:4]
    far = float(np.abs(moment).max()) / length
    size = max(abs(mass), far, 1e-300)
    if mass <= 0.0 and (mass < -1e-12 * size or far > 1e-12 * size):
        raise InvalidValue(
            f"link {link.name!r}: the plain solution has mass {mass:.4g} and first moments "
            f"({', '.join(f'{m:.4g}' for m in moment)}); physical=True finds a possible one"
        )
    com = moment / mass if mass > 0.0 else np.zeros(3)
    about = _symmetric(numbers[4:])
    inertia = about + about.T - np.diag(np.diag(about))
    inertia = inertia - mass * (com @ com * np.eye(3) - np.outer(com, com))
    return link.replace(mass=max(mass, 0.0), com=com, inertia=inertia, allow_impossible=link.allow_impossible or plain)


class OutputIdentification:
    """Result of `identify` with ``form="output"``.

    Attributes
    ----------
    mechanism : Mechanism
        The given one with what was found in it.
    names : tuple of str
        Of the numbers, as "forearm.mass", "forearm.com[0]".
    values : ndarray, (P,)
        Of a pose how far it was moved.
    standard_errors : ndarray, (P,)
        Infinite where the log does not determine a number, alone or together with others.
    covariance : ndarray, (P, P)
    undetermined : tuple of str
        The names of those.
    t, measured, fitted, residuals : ndarray, (N,), (N, m)
        Times of the rows, logged positions, with the rates behind them if these were logged, what the mechanism that
        was found does, and the difference.
    noise : ndarray, (m,)
        Standard deviation of the residuals.
    misfit : ndarray, (n,)
        Part of each joint's motion that is left over, by roots of mean squares: of what positions have beside a
        straight line in each stretch. NaN where that is nothing.
    success : bool
    message : str
        Why the search ended.
    plain : bool
        As in `Identification`: False where links are held to what bodies can have.
    """

    def __init__(self, fit: Fit, log: Log) -> None:
        self.mechanism, self.names, self.values = fit.mechanism, fit.names, fit.values
        self.covariance, self.noise = fit.covariance, fit.noise
        self.standard_errors = np.where(fit.determined, np.sqrt(np.maximum(np.diag(fit.covariance), 0.0)), np.inf)
        self.undetermined = tuple(name for name, told in zip(fit.names, fit.determined, strict=True) if not told)
        self.t, self.measured, self.fitted, self.residuals = log.t, log.measured, fit.fitted, log.measured - fit.fitted
        self.misfit, self._systematic = fit.misfit, fit.systematic
        self.success, self.message, self.plain = fit.success, fit.message, fit.plain

    def table(self) -> list[tuple[str, float, float]]:
        """Return the numbers with value and standard error."""
        return [
            (name, float(v), float(e)) for name, v, e in zip(self.names, self.values, self.standard_errors, strict=True)
        ]

    def plot(self) -> Figure:
        """Return a figure: positions as logged and as simulated, what is left over, and the numbers' errors."""
        from cstormpy.identification.figure import draw_output

        return draw_output(self)

    def __str__(self) -> str:
        lines = rows_text("parameter", self.table())
        if self.undetermined:
            lines.append(f"not determined by these data: {', '.join(self.undetermined)}")
        if not self.plain:
            lines.append("the plain fit is impossible; links are held to what bodies can have")
        told = [k for k, part in enumerate(self.misfit) if np.isfinite(part)]
        if told:
            parts = ", ".join(f"{self.mechanism.names[k]} {100.0 * self.misfit[k]:.2g} %" for k in told)
            lines.append(f"left of the motion: {parts}")
        if any(self._systematic[k] and self.misfit[k] > _MUCH_MOTION for k in told):
            lines.append(f"that is much: look at {_HINT}")
        return "\n".join([*lines, self.message])

    def __repr__(self) -> str:
        return f"<OutputIdentification of {len(self.names)} numbers, {self.message}>"
