"""Equilibria of a mechanism, and its linear model about a state, from the exact sensitivities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import Array, Shape, as_floats, is_single, real_array
from cstormpy.dynamics.charts import LONGEST, shortened
from cstormpy.dynamics.checked_arguments import Samples, WrenchLike, coordinates_of, read_samples
from cstormpy.errors import InvalidValue
from cstormpy.linkage.degrees import say_degrees
from cstormpy.linkage.scales import coordinate_scales
from cstormpy.sensitivity.hybrid import HybridSensitivity, hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Search = Callable[..., tuple[Array, Array, Array]]

ITERATIONS = 500
"""Most steps of the search for an equilibrium; from a good guess it takes five, along a bent valley two hundred."""

LEAST_DAMPING = 1e-12
"""Part of a Jacobian's squares that is always added to them: equations may say the same of the joints that move."""

ROUNDING = 1e-13
"""Part of the mechanism's load below which what remains of it is taken for rounding."""


@dataclass(frozen=True)
class Linearization:
    """The linear model dx/dt = rate + A (x − x0) + B (v − v0), of one sample or of a batch (leading dimension N).

    Attributes
    ----------
    A : ndarray, (2n, 2n) or (N, 2n, 2n)
        The derivative of dx/dt to the state x = (q, q̇).
    B : ndarray, (2n, m) or (N, 2n, m)
        The derivative to the drive signals v: torques of the joints that are actuated and not active, then
        accelerations of the active ones, each in the order of q.
    rate : ndarray, (2n,) or (N, 2n)
        dx/dt there; zeros at an equilibrium.
    states, inputs : tuple of str
        What the entries of x and v are, as "elbow", "elbow rate", "elbow torque", "elbow acceleration".
    """

    A: Array
    B: Array
    rate: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]


class _Pair(NamedTuple):
    q: Array
    tau: Array


class Equilibrium(_Pair):
    """A posture that stays, and the motor torques that hold it: ``q, tau = equilibrium``.

    Attributes
    ----------
    q : ndarray, (n,)
    tau : ndarray, (n_a,)
        Of the actuated joints, in the order of q.
    residual : float
        The largest torque that is left over in any joint.
    """

    residual: float

    def __new__(cls, q: Array, tau: Array, residual: float = 0.0) -> Equilibrium:
        """Make the pair."""
        made = super().__new__(cls, q, tau)
        made.residual = residual
        return made


def linearize(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    acc: ArrayLike | None = None,
    wrench: WrenchLike = None,
    ask: Callable[..., HybridSensitivity] = hybrid_sensitivity,
) -> Linearization:
    """Return the linear model about a state; `Mechanism.linearize` says what is what.

    `ask` gives the dynamics and its derivatives.
    """
    n = mech.n
    given = as_floats(q, "q")
    rates = np.zeros(given.shape) if qd is None else qd
    samples = read_samples(mech.tree, {"q": given, "qd": rates}, wrench)
    driven = np.flatnonzero(mech.actuated_mask & ~mech.active_mask)
    active = np.flatnonzero(mech.active_mask)
    u = np.zeros((samples.count, n))
    u[:, driven] = _signals(tau, "tau", [mech.names[k] for k in driven], samples.count, samples.single)
    u[:, active] = _signals(acc, "acc", [mech.names[k] for k in active], samples.count, samples.single)
    d = ask(mech, samples.rows["q"], samples.rows["qd"], u, _loads_of(mech, samples))
    passive = ~mech.active_mask[:, None]
    inputs = np.concatenate([driven, active])
    A = np.zeros((samples.count, 2 * n, 2 * n))
    A[:, :n, n:] = np.eye(n)
    A[:, n:, :n] = np.where(passive, d.dy_dq, 0.0)  # what is prescribed does not depend on the state
    A[:, n:, n:] = np.where(passive, d.dy_dqd, 0.0)
    B = np.zeros((samples.count, 2 * n, len(inputs)))
    B[:, n:] = np.where(passive, d.dy_du, np.eye(n))[:, :, inputs]
    rate = np.hstack([samples.rows["qd"], d.qdd])
    names = [f"{mech.names[k]} torque" for k in driven] + [f"{mech.names[k]} acceleration" for k in active]
    states = _names_of_states(mech.names)
    return Linearization(samples.shaped(A), samples.shaped(B), samples.shaped(rate), states, tuple(names))


def _names_of_states(joints: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of positions and rates, by which those of a closed mechanism are told apart, too."""
    rates = tuple(f"{name} rate" for name in joints)
    for joint, rate in zip(joints, rates, strict=True):
        if rate in joints:
            raise InvalidValue(
                f"joint {rate!r}: is what the rate of joint {joint!r} is called in a linear model; give it another name"
            )
    return (*joints, *rates)


def _loads_of(mech: Linkage, samples: Samples) -> Array | None:
    """Return the loads of samples as `hybrid_sensitivity` takes them again."""
    if not len(samples.wrench):
        return None
    rows = samples.wrench.reshape(len(samples.wrench), len(mech.links), -1)
    return rows if len(rows) == samples.count else rows[0]


def _signals(value: ArrayLike | None, name: str, joints: list[str], count: int, single: bool) -> Array:
    """Return drive signals as rows, zeros if there are none."""
    if value is None:
        return np.zeros((count, len(joints)))
    shapes: list[Shape] = [(len(joints),)] if single else [(len(joints),), (count, len(joints))]
    rows = real_array(value, name, *shapes, hint=f"it is for {', '.join(joints) or 'no joint'}")
    return np.broadcast_to(rows, (count, len(joints)))


# ---------------------------------------------------------------- equilibria


def trim(
    mech: Linkage,
    guess: ArrayLike | None = None,
    tau: ArrayLike | Mapping[str, float] | None = None,
    hold: Iterable[str] = (),
    tolerance: float = 1e-9,
    wrench: WrenchLike = None,
    search: Search | None = None,
) -> Equilibrium:
    """Return an equilibrium near a posture; `Mechanism.trim` says what is what.

    `search` finds a posture, the loads of its joints, and what of these is rounding.
    """
    q = np.zeros(mech.n) if guess is None else checks.array(guess, (mech.n,), "guess").copy()
    say_degrees(mech.freedoms, mech.names, q.tolist(), "guess")
    small = checks.positive(tolerance, "tolerance")
    given = _given_torques(mech, tau)
    free = ~np.isin(np.arange(mech.n), coordinates_of(mech, hold, "hold"))
    # a motor whose torque is not given holds whatever comes, and is no equation
    rows = np.array([name in given for name in mech.names], dtype=bool) | ~mech.actuated_mask
    wanted = np.array([given.get(name, 0.0) for name in mech.names])
    q, load, rounding = (search or _search)(mech, q, free, rows, wanted, wrench)
    left = np.where(rows, load - wanted, 0.0)
    over = ~(np.abs(left) <= np.maximum(small, rounding))
    if over.any():
        raise InvalidValue(_not_found(mech, q, left, over))
    return Equilibrium(q, load[mech.actuated_mask], float(np.abs(left).max(initial=0.0)))


def _given_torques(mech: Linkage, tau: Any) -> dict[str, float]:
    if tau is None:
        return {}
    if isinstance(tau, Mapping):
        for name in tau:
            option(name, "tau: actuated joint", mech.actuated)
        return {name: checks.real(value, f"tau, joint {name!r}") for name, value in tau.items()}
    if is_single(tau):
        return dict.fromkeys(mech.actuated, checks.real(tau, "tau"))
    count = len(mech.actuated)
    numbers = checks.array(tau, (count,), f"tau (for {', '.join(mech.actuated) or 'no joint'})")
    return dict(zip(mech.actuated, numbers.tolist(), strict=True))


def _search(
    mech: Linkage, q: Array, free: NDArray[np.bool_], rows: NDArray[np.bool_], wanted: Array, wrench: WrenchLike
) -> tuple[Array, Array, Array]:
    """Return a posture whose loads in `rows` are as wanted, moving `free` joints only, the loads, their rounding."""
    still = np.zeros(mech.n)

    def ask(q: Array) -> tuple[Array, Array, Array]:
        d = hybrid_sensitivity(mech, q, still, still, wrench, drive="inverse", name="qdd")
        return d.y, (d.y - wanted)[rows], d.dy_dq[np.ix_(rows, free)]

    return search_for(mech, ask, q, free, rows)


def search_for(
    mech: Linkage,
    ask: Callable[[Array], tuple[Array, Array, Array]],
    x: Array,
    free: NDArray[np.bool_],
    rows: NDArray[np.bool_],
    closing: Array | None = None,
    closed: NDArray[np.bool_] | None = None,
) -> tuple[Array, Array, Array]:
    """Return where what is left over vanishes, moving `free` entries only, the loads there, and their rounding.

    `ask` gives loads, what is left over of them in `rows` and of the constraints that are `closed`, and its derivative.
    The steps are Levenberg and Marquardt's, which are Newton's near the answer and go the shortest way where there are
    more unknowns than equations, all in the mechanism's own sizes, `closing` being those of the constraints. The first
    entries of `x` are the joints', which go no further than a radian, or the mechanism's length, at once; the others
    are multipliers. Rotation vectors stay off a whole turn, where no moment has a share in their torques.
    """
    n = mech.n
    scales = coordinate_scales(mech)

    def kept(x: Array) -> Array:
        return np.concatenate([shortened(mech, x[:n], free[:n], LONGEST), x[n:]])

    x = kept(x)
    load, r, J = ask(x)
    joints = np.flatnonzero(free) < n
    slopes = J[: rows.sum(), joints] * scales[free[:n]] * scales[rows, None]
    work = max(float(np.abs(load * scales).max(initial=0.0)), float(np.abs(slopes).max(initial=0.0))) or 1.0
    units, sizes = scales, work / scales[rows]
    if closing is not None:
        units = np.concatenate([scales, work / closing])
        sizes = np.concatenate([sizes, closing[closed]])
    units = units[free]
    r, J = r / sizes, J * units / sizes[:, None]
    damping = 1e-3
    for _ in range(ITERATIONS):
        if np.abs(r).max(initial=0.0) <= ROUNDING:
            break
        left = float(np.abs(r).max())
        scale = max(damping * left / (1.0 + left), LEAST_DAMPING) * max(float(np.sum(J * J)), np.finfo(float).tiny)
        step = J.T @ np.linalg.solve(J @ J.T + scale * np.eye(len(r)), -r) if J.any() else np.zeros(free.sum())
        moved = x.copy()
        moved[free] += units * step * min(1.0, 1.0 / max(np.abs(step[joints]).max(initial=0.0), 1e-300))
        load_there, r_there, J_there = ask(moved)
        r_there, J_there = r_there / sizes, J_there * units / sizes[:, None]
        if r_there @ r_there < r @ r:
            x, load, r, J, damping = kept(moved), load_there, r_there, J_there, damping * 0.1
            if not np.array_equal(x, moved):
                load, r, J = ask(x)
                r, J = r / sizes, J * units / sizes[:, None]
        elif damping > 1e12 or not step.any():
            break
        else:
            damping *= 10.0
    return x, load, ROUNDING * work / scales


def _not_found(mech: Linkage, q: Array, left: Array, over: NDArray[np.bool_]) -> str:
    loads = ", ".join(f"{mech.names[k]!r} {left[k]:.3g}" for k in np.flatnonzero(over))
    at = ", ".join(f"{value:.4g}" for value in q)
    return (
        f"trim: found no equilibrium near the guess; at q = ({at}), the nearest to one, torque [N m or N] is left "
        f"over in {loads}; start nearer to one, hold fewer joints or leave more motor torques open"
    )
