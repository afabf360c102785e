"""Linear models of diagrams about a point: matrices, poles, responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import positive
from cstormpy.arrays import Array, real_array
from cstormpy.errors import DiagramError, InvalidValue, unknown_name
from cstormpy.reporting import notice
from cstormpy.simulation.analysis.analysis_start import started
from cstormpy.simulation.analysis.model import (
    Input,
    checked,
    inputs_of,
    labels,
    make_model,
    named_once,
    numbers_of,
    standing_in,
)
from cstormpy.simulation.analysis.ports import arriving, feed_open_inputs, find_outputs, find_ports
from cstormpy.simulation.analysis.sampled import switch_as_sampled, switch_where_given, whole_period
from cstormpy.simulation.named_states import numbers
from cstormpy.simulation.recording import Signal
from cstormpy.simulation.units import coordinate_labels, mechanisms_of

if TYPE_CHECKING:
    from cstormpy.simulation.analysis.margins import Margins
    from cstormpy.simulation.analysis.responses import Response


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The linear model of a diagram: dδx/dt = A δx + B δu, δy = C δx + D δu, about a point.

    Of a sampled one, with dt, it is δx[k+1] = A δx[k] + B δu[k], and its poles are those in the plane of z.

    Attributes
    ----------
    A, B, C, D : ndarray, (n, n), (n, m), (r, n), (r, m)
    states, inputs, outputs : tuple of str
        What the entries of x, u and y are.
    x, u, y : ndarray, (n,), (m,), (r,)
        The point; u of an input that is added to a signal is 0.
    rate : ndarray, (n,)
        dx/dt there; zeros at an equilibrium.
    t : float
        The time at which it was taken.
    held : tuple of str
        Sampled blocks, whose states are held at what they are.
    dt : float or None
        Period of a sampled model [s].
    differenced : tuple of (str, str)
        Blocks whose derivatives are not exact, and why: a function of the user, a kernel without a rule of its own.
    captions : mapping of str to str
        What figures call inputs and outputs: "plant.elbow.q" in place of "plant.q[1]", and "kick[0]", an output that is
        one number, in place of "kick[0][0]".

    Examples
    --------
    >>> oscillator = LinearModel.of([[0.0, 1.0], [-4.0, -0.4]], [[0.0], [1.0]], [[1.0, 0.0]])
    >>> oscillator.poles.round(3)
    array([-0.2-1.99j, -0.2+1.99j])
    >>> oscillator.damping.round(3), oscillator.frequency.round(3)
    (array([0.1, 0.1]), array([2., 2.]))
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    x: Array
    u: Array
    y: Array
    rate: Array
    t: float = 0.0
    held: tuple[str, ...] = ()
    differenced: tuple[tuple[str, str], ...] = field(default=())
    dt: float | None = None
    captions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None, dt: float | None = None
    ) -> LinearModel:
        """Return a model of matrices that are known, about zero."""
        dt = None if dt is None else positive(dt, "dt")
        a, b, c = _matrix(A, "A"), _matrix(B, "B"), _matrix(C, "C")
        d = np.zeros((len(c), b.shape[1])) if D is None else _matrix(D, "D")
        if a.shape != (len(b), len(b)) or c.shape[1] != len(b) or d.shape != (len(c), b.shape[1]):
            raise InvalidValue(f"A, B, C, D: the shapes {a.shape}, {b.shape}, {c.shape}, {d.shape} do not fit")
        names = [
            tuple(f"{letter}[{k}]" for k in range(n)) for letter, n in zip("xuy", (len(a), *d.shape[::-1]), strict=True)
        ]
        zeros = [np.zeros(n) for n in (len(a), d.shape[1], len(c), len(a))]
        return cls(a, b, c, d, names[0], names[1], names[2], zeros[0], zeros[1], zeros[2], zeros[3], dt=dt)

    @property
    def poles(self) -> NDArray[np.complex128]:
        """Eigenvalues of A [1/s], the slowest first; of a sampled model those in the plane of z."""
        rest = 0.0 if self.dt is None else 1.0
        values = _eigenvalues(self.A, rest)
        order = np.lexsort((values.imag, np.round(np.abs(values), 12)))
        found: NDArray[np.complex128] = rest + values[order]
        found[np.abs(found) <= _ALL_ROUNDINGS * np.finfo(float).eps * rest] = 0.0
        return found

    @property
    def zeros(self) -> NDArray[np.complex128]:
        """Zeros of a model with as many outputs as inputs, in the plane of its poles; of others none."""
        from cstormpy.simulation.analysis.root_locus import zeros_of

        return zeros_of(self)

    @property
    def rates_of_decay(self) -> NDArray[np.complex128]:
        """The poles as those of a continuous model that has the same at its samples."""
        if self.dt is None:
            return self.poles
        with np.errstate(divide="ignore", invalid="ignore"):
            found: NDArray[np.complex128] = np.asarray(np.log(self.poles) / self.dt, dtype=complex)
        return found

    @property
    def frequency(self) -> Array:
        """Natural frequency |λ| of each pole [rad/s]; of a sampled model that of λ = ln(z) / dt."""
        return np.abs(self.rates_of_decay)

    @property
    def damping(self) -> Array:
        """Damping ratio −Re λ / |λ| of each pole; 1 for one that decays without swinging, 0 at the origin."""
        rates = self.rates_of_decay
        size = np.abs(rates)
        usual = (size > 0.0) & np.isfinite(size)
        return np.where(usual, -rates.real / np.where(usual, size, 1.0), np.where(size > 0.0, 1.0, 0.0))

    @property
    def stable(self) -> bool:
        """True where every pole decays."""
        return bool((self.poles.real < 0.0).all() if self.dt is None else (np.abs(self.poles) < 1.0).all())

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Return C (jω − A)⁻¹ B + D at frequencies [rad/s], (k, r, m); of a sampled model at z = exp(jω dt)."""
        from cstormpy.simulation.analysis.responses import frequency_response

        return frequency_response(self, np.atleast_1d(real_array(omega, "frequency_response: omega", (), ("k",))))[0]

    def step(self, T: float | None = None, samples: int = 500) -> Response:
        """Return the response of each output to a unit step of each input.

        Parameters
        ----------
        T : float, optional
            How long [s]; unless given, eight times the slowest time constant, or the fastest one that grows.
        samples : int
            How many there are; of a sampled model at most, every period or each second, third and so on.
        """
        from cstormpy.simulation.analysis.responses import step_response

        return step_response(self, T, samples)

    def margins(self, feedback: int = 1) -> Margins:
        """Return how far gain, phase and delay of loops may move before these are no longer stable.

        The model is that of loops that are cut, each output being what comes back of the input of the same place, as
        `Simulation.margins` has it.

        Parameters
        ----------
        feedback : {1, -1}
            −1 where the loops close with a minus that is not in the model, as in textbooks.

        Examples
        --------
        >>> loop = LinearModel.of([[-1, 1, 0], [0, -1, 1], [0, 0, -1]], [[0], [0], [4]], [[1, 0, 0]])
        >>> found = loop.margins(feedback=-1)
        >>> found.gain.round(6), np.degrees(found.phase).round(2)
        (array([[0., 2.]]), array([27.14]))
        """
        from cstormpy.simulation.analysis.margins import margins_of

        return margins_of(self, feedback)

    def plot(self, kind: str = "bode", omega: ArrayLike | None = None, feedback: int | None = None) -> Any:
        """Draw the model, and return the figure.

        Parameters
        ----------
        kind : {"bode", "step", "nyquist", "poles", "locus"}
            Frequency response; response to unit steps; frequency response in the complex plane; poles and zeros; root
            locus of a loop that is cut at one number: its poles, closed, for all gains from 0 to inf.
        omega : array_like, optional
            Frequencies of "bode" and "nyquist" [rad/s]; some decades about the poles unless given.
        feedback : {1, -1}, optional
            Of "nyquist" and "locus": −1 where the loop closes with a minus that is not in the model, as in textbooks; 1
            unless given, as of a diagram that is cut.

        Examples
        --------
        A loop of a diagram, cut where the torque goes in: ``sim.linearize(bd, x, inputs=["plant.tau"],
        outputs=["plant.tau"], opened=["plant.tau"]).plot("locus")``
        """
        from cstormpy.simulation.analysis.model_plots import plotted

        return plotted(self, kind, omega, feedback)

    def to_control(self) -> Any:
        """Return the model as a `control.StateSpace` of python-control, which has to be installed.

        Raises
        ------
        DiagramError
            Where it is not installed, or the model has no inputs or no outputs.
        """
        for kind, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            if not names:
                raise DiagramError(
                    f"to_control: the model has no {kind}, which python-control wants; name some, as in "
                    "sim.linearize(bd, inputs=['plant.tau'], outputs=['plant.q'])"
                )
        try:
            control = import_module("control")
        except ImportError:
            raise DiagramError("to_control: python-control is not installed; pip install control") from None
        signals = {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}
        named = {key: [_plain(name) for name in names] for key, names in signals.items()}
        period = {} if self.dt is None else {"dt": self.dt}
        return control.StateSpace(self.A, self.B, self.C, self.D, **period, **named)

    def __repr__(self) -> str:
        """Return poles, damping and frequency as a table, with what to know about them."""
        size = f"{len(self.states)} states, {len(self.inputs)} inputs, {len(self.outputs)} outputs"
        kind, plane = ("linear model", "[1/s]") if self.dt is None else (f"sampled model, dt = {self.dt:g} s,", "in z ")
        lines = [f"{kind} at t = {self.t:g}: {size}", f"        pole {plane}           damping   frequency [rad/s]"]
        for pole, zeta, omega in zip(self.poles, self.damping, self.frequency, strict=True):
            lines.append(f"{pole.real:12.5g} {pole.imag:+12.5g}j {zeta:10.4f} {omega:12.5g}")
        if (delays := int((self.poles == 0.0).sum())) > MOST_EQUAL and self.dt is not None:
            first = len(lines) - len(self.poles) + int(np.argmax(self.poles == 0.0))
            lines[first + 1 : first + delays] = [f"{'':12} ... and {delays - 1} more, which are delays"]
        if self.held:
            lines.append(f"held, because they are sampled (with dt= they go along): {', '.join(self.held)}")
        if self.differenced:
            lines.append("differenced: " + "; ".join(f"{name} ({what})" for name, what in self.differenced))
        return "\n".join(lines)


#: So many poles at z = 0 are printed one by one.
MOST_EQUAL = 4
#: A pole slower than this part of the fastest one is what roundings make of two integrators.
SLOW = 1e-7
#: So many roundings may stand in one entry of a matrix that comes of a diagram, and in all of it.
_ROUNDINGS, _ALL_ROUNDINGS = 4.0, 100.0


def _eigenvalues(A: Array, about: float) -> NDArray[np.complex128]:
    """Return the eigenvalues of A less a number where rounding tells them from it, else 0.

    Those of states that are coupled only one way are those of each group by itself, however large its gains are.
    """
    found = [np.zeros(0, dtype=complex)]
    for group in _loops_of(A):
        inside = A[np.ix_(group, group)] - about * np.eye(len(group))
        sizes = np.abs(inside)
        least = _ROUNDINGS * np.finfo(float).eps * np.maximum(sizes.max(axis=1, keepdims=True), about)
        # the rounding of a 0 couples states too, and balanced it would look like any entry
        inside = np.where(sizes > least, inside, 0.0)
        found += [_of_loop(inside[np.ix_(part, part)], about) for part in _loops_of(inside)]
    return np.concatenate(found)


def _loops_of(A: Array) -> list[NDArray[np.intp]]:
    """Return the states of A in groups, within each of which all act on all, at last."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, group = connected_components(csr_array(A != 0.0), connection="strong")
    return [np.flatnonzero(group == k) for k in range(count)]


def _of_loop(A: Array, about: float) -> NDArray[np.complex128]:
    """Return the eigenvalues of a matrix, those that rounding does not tell from 0 as 0.

    Integrators in a row, as coordinate and speed of a body that nothing holds, have one eigenvalue twice or more
    without as many eigenvectors; of k of them an algorithm makes the k-th root of a rounding: 1e-8 of two, 1e-4 of
    four. What the matrix sends to 0 is therefore taken out first, and of what is left the same again.
    """
    from scipy.linalg import matrix_balance

    left = matrix_balance(A, permute=False)[0]
    rounded = _ALL_ROUNDINGS * np.finfo(float).eps * max(float(np.linalg.norm(left)), about)
    while len(left):
        _, singular, rows = np.linalg.svd(left)
        rank = int(np.count_nonzero(singular > rounded))
        if rank == len(left):
            break
        left = rows[:rank] @ left @ rows[:rank].T
    values = np.zeros(len(A), dtype=complex)
    values[len(A) - len(left) :] = np.linalg.eigvals(left)
    return values


def _plain(name: str) -> str:
    """Return a name without the characters that python-control keeps for itself."""
    return name.replace(".", "_")


def linearize(
    sim: Any,
    bd: Any,
    x: Any,
    u: Any,
    *,
    t: float,
    inputs: Any,
    outputs: Any,
    opened: Any,
    dt: float | None,
    cut: bool = False,
    known: Mapping[str, Array] = MappingProxyType({}),
) -> LinearModel:
    """Return the linear model of a diagram; see `Simulation.linearize`.

    Where it is `cut` for its margins, inputs, outputs and what is opened are one. Signals that are `known`, by their
    ports, are held.
    """
    who, named = ("margins", "at") if cut else ("linearize", "inputs")
    period = None if dt is None else positive(dt, f"{who}: dt")
    t = float(numbers(t, 1, f"{who}: t")[0])
    feed_open_inputs(bd, inputs, f"{who}: {named}")
    with started(sim, bd, x, t, who) as (diagram, simstate, t, state):
        diagram.bounds.hold(state)
        diagram.freeze()
        state[:] = diagram.shut(state)
        if period is not None:
            switch_as_sampled(diagram, simstate, t, state, period)
        moved, shut = chosen_inputs(bd, inputs, u, opened, who, named, known)
        given = moved + shut
        if told := [i for i in given if i.told]:
            with standing_in(diagram, told, t, state):
                switch_where_given(diagram, simstate, t, state, period)
        if period is not None and bd.clocklist:
            _hold_what_ticks(diagram, given, t, state, period)
        watched = numbers_of(find_outputs(bd, outputs, f"{who}: {'at' if cut else 'outputs'}"), who)
        model = make_model(diagram, given, watched, linear=True)
        if not model.exact:
            reasons = "; ".join(f"{name}: {why}" for name, why in model.differenced)
            notice(f"{who}: by differences of fourth order, as the diagram cannot be translated: {reasons}")
        values = np.concatenate([*(i.value for i in given), np.zeros(0)])
        j = checked(model, model.jacobians(t, state, values), t, state, values, who)
        columns, sampled = slice(sum(i.value.size for i in moved)), tuple[str, ...]()
        point = state.copy()
        if period is not None:
            over = whole_period(model, t, state, values, period)
            j = replace(j, A=over.A, B=over.B, C=over.C, D=over.D, y=over.y, rate=over.rate)
            sampled, point = over.sampled, np.concatenate([state, over.z])
        states = (*bd.statenames, *sampled)
        kept, follow = on_the_manifold(diagram.closed, state, len(states))
        return LinearModel(
            A=(j.A @ follow)[kept],
            B=j.B[kept, columns],
            C=j.C @ follow,
            D=j.D[:, columns],
            states=tuple(states[k] for k in kept),
            inputs=tuple(name for i in moved for name in labels(i.signal)),
            outputs=tuple(name for s in watched for name in labels(s)),
            x=point[kept],
            u=values[columns],
            y=j.y,
            rate=j.rate[kept[kept < len(j.rate)]],
            t=t,
            held=() if period is not None else tuple(str(b.name) for b in diagram.cells),
            dt=period,
            differenced=tuple(model.differenced),
            captions=captions_of(bd, [*(i.signal for i in moved), *watched]),
        )


def _hold_what_ticks(diagram: Any, inputs: list[Input], t: float, x: Array, dt: float) -> None:
    """Have inputs that are held without a value told hold what arrives after the ticks at the beginning of a period."""
    waiting = [i for i in inputs if i.held and not i.told]
    if waiting:
        arrives = make_model(diagram, [], [arriving(diagram.bd, i.signal) for i in waiting])
        ends = np.cumsum([i.value.size for i in waiting])[:-1]
        found = whole_period(arrives, t, x, np.zeros(0), dt).y
        for given, value in zip(waiting, np.split(found, ends), strict=True):
            given.value = value


def captions_of(bd: Any, signals: Iterable[Signal]) -> dict[str, str]:
    """Return what the numbers of signals are called, by their names: as the joint, or as the signal that is but one."""
    mechanisms, found = mechanisms_of(bd.blocklist), dict[str, str]()
    for signal in signals:
        names = labels(signal)
        called = coordinate_labels(signal, mechanisms.get(signal.block), len(names))
        called = called or [signal.name] * (len(names) == 1)
        found.update(zip(names, called, strict=False))
    return found


def on_the_manifold(closed: Iterable[tuple[Any, slice]], state: Array, count: int) -> tuple[NDArray[np.intp], Array]:
    """Return which states are independent where mechanisms are closed, and the matrix by which all follow these."""
    kept, follow = np.ones(count, dtype=bool), np.eye(count)
    for block, part in closed:
        chosen, joints = block.tangent(state[part])
        places = part.start + chosen
        kept[part] = False
        kept[places] = True
        follow[part] = 0.0
        follow[part.start : part.stop, places] = joints
    return np.flatnonzero(kept), follow[:, kept]


def chosen_inputs(
    bd: Any,
    inputs: Any,
    u: Any,
    opened: Any,
    what: str,
    named: str = "inputs",
    known: Mapping[str, Array] = MappingProxyType({}),
) -> tuple[list[Input], list[Input]]:
    """Return the inputs, of which those with a value of their own are held, and what else is opened: held too.

    All inputs are held where `opened` is True, and signals where they are `known`, unless `u` says otherwise.
    """
    ports = named_once(find_ports(bd, inputs, f"{what}: {named}"), f"{what}: {named}")
    found = inputs_of(ports, False, what)
    cut = [i.signal for i in found] if opened is True else find_ports(bd, opened, f"{what}: opened")
    of_point = {
        s.key: (s, numbers(value, np.size(s.slot.value), f"{what}: {name!r} of the operating point"))
        for name, value in known.items()
        for s in find_ports(bd, [name], what)
    }
    held = {s.key: s for s in [*cut, *(s for s, _ in of_point.values())]}
    values = {**{key: value for key, (_, value) in of_point.items()}, **_values(bd, found, u, what)}
    taken = {given.signal.key for given in found}
    others = inputs_of([s for key, s in held.items() if key not in taken], True, what)
    for given in [*found, *others]:
        if given.signal.key in held or given.signal.key in values:
            given.held = True
            given.value = np.ravel(np.asarray(given.signal.slot.value, dtype=float)).copy()
        if given.signal.key in values:
            given.value, given.told = values[given.signal.key], True
    return found, others


def _values(bd: Any, inputs: list[Input], u: Any, what: str) -> dict[tuple[int, int], Array]:
    """Return the values of inputs that a user gives, by name or one behind the other."""
    if u is None:
        return {}
    if isinstance(u, Mapping):
        out = {}
        for name, value in u.items():
            signals = find_ports(bd, [name], f"{what}: u")
            for s in signals:
                if s.key in out:
                    raise InvalidValue(f"{what}: u gives {s.name} twice")
                match = [i for i in inputs if i.signal.key == s.key]
                if not match:
                    raise unknown_name(f"{what}: u: input", s.name, [i.signal.name for i in inputs])
                out[s.key] = numbers(value, match[0].value.size, f"{what}: u[{name!r}]")
        return out
    values, first = numbers(u, sum(i.value.size for i in inputs), f"{what}: u"), 0
    out = {}
    for i in inputs:
        out[i.signal.key] = values[first : first + i.value.size]
        first += i.value.size
    return out


def _matrix(value: ArrayLike, name: str) -> Array:
    return np.atleast_2d(real_array(value, name, ("n", "m"), ("m",), ()))
