"""Robustness of controllers as the double pendulum competitions of DFKI score it: a share of runs that still succeed.

Reference: F. Wiebe et al., "Open source dual-purpose acrobot and pendubot platform: benchmarking control algorithms for
underactuated robotics", IEEE Robotics and Automation Magazine, 2023, and the robustness leaderboards of RealAIGym. One
thing at a time is made worse, in 21 steps, and each run counts that ends at the goal:

model           mass, centre of mass, inertia and length of each link, damping and friction of each joint, one by one,
                in the plant alone
noise           of the measured rates
torque noise    of the motors
response        the motors give τ_k = τ_{k−1} + r (wanted − τ_{k−1}), r from 0.1 to 2
delay           between measurement and controller
pushes          50 runs with random pushes of the motors

and the score is the mean of the six shares. Where this departs: a centre of mass moves by itself, so that the mechanism
stays possible; torques are those of the competition as parts of the greatest torque of its motors, 6 N m, and here of
that which the undisturbed run needs; damping and friction are added only, as a mechanism's cannot be negative; what has
no motor is not pushed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import entries, positive, whole_number
from cstormpy.arrays import Array
from cstormpy.checks import nonnegative
from cstormpy.comparison.disturbances import MEASUREMENT, MOTORS, PUSHES, SEED, disturb
from cstormpy.comparison.table import CRITERIA
from cstormpy.control.posture_law import errors_from
from cstormpy.errors import InvalidValue
from cstormpy.signals.noise import uniform
from cstormpy.values import ArgumentNames

if TYPE_CHECKING:
    from cstormpy.comparison.entries import Entry
    from cstormpy.mechanism import Mechanism
    from cstormpy.simulation import Simulation

MOTOR = 6.0
"""The greatest torque of the competition's motors, of which the torques below are parts [N m]."""
_PAIRS = ("response", "push", "width")
"""Quantities of which there are a least and a greatest value."""
#: Channels of the random numbers that choose the pushes.
_HEIGHT, _CENTRE, _WIDTH, _SIGN = 0.0, 64.0, 128.0, 192.0


@dataclass(frozen=True)
class Robustness(metaclass=ArgumentNames):
    """A quantity that is made worse, and by how much.

    Attributes
    ----------
    steps : int
        Values of each quantity, from none of it on.
    profiles : int
        How many runs have random pushes.
    model : float
        Largest change of masses, centres of mass, inertias and lengths, relative.
    damping, friction : float
        Largest that is added to a joint, as a part of the peak torque [s/rad, 1].
    noise : float
        Largest standard deviation of the measured rates [rad/s].
    torque_noise : float
        Largest standard deviation of the torques, as a part of the peak torque.
    response : (float, float)
        Of the motors; 1 is a perfect one.
    delay : float
        Longest delay of the measurement [s].
    push : (float, float)
        Height of the pushes, as a part of the peak torque.
    width : (float, float)
        Their width, as the deviation of a bell [s].
    dt : float
        Period at which is measured and the motors are told [s].
    position, rate : float
        Largest errors at the end of a run that counts [rad or m, rad/s or m/s].
    """

    steps: int = 21
    profiles: int = 50
    model: float = 0.25
    damping: float = 0.1 / MOTOR
    friction: float = 0.2 / MOTOR
    noise: float = 0.5
    torque_noise: float = 1.1 / MOTOR
    response: tuple[float, float] = (0.1, 2.0)
    delay: float = 0.04
    push: tuple[float, float] = (1.0 / MOTOR, 3.0 / MOTOR)
    width: tuple[float, float] = (0.5, 1.0)
    dt: float = 0.002
    position: float = 0.1
    rate: float = 0.5

    def __post_init__(self) -> None:
        for each in fields(self):
            value, what = getattr(self, each.name), f"robustness: {each.name}"
            if each.name in _PAIRS:
                value = entries(value, what, "two numbers, the least and the greatest")
                if len(value) != 2:
                    raise InvalidValue(f"{what}: expected two numbers, the least and the greatest, got {len(value)}")
                object.__setattr__(self, each.name, tuple(nonnegative(v, what) for v in value))
            elif each.name in ("steps", "profiles"):
                object.__setattr__(self, each.name, whole_number(value, what, 2 if each.name == "steps" else 1))
            else:
                object.__setattr__(self, each.name, nonnegative(value, what))
        positive(self.dt, "robustness: dt")
        if self.model >= 1.0:
            raise InvalidValue(f"robustness: model: a mass cannot change by {self.model:g} of itself")

    @property
    def longest(self) -> int:
        """The longest delay in periods."""
        return math.ceil(self.delay / self.dt - 1e-9)


@dataclass(frozen=True, eq=False)
class Curve:
    """Runs in which one quantity was made worse.

    Attributes
    ----------
    criterion, name : str
        To which part of the score it counts, and what was changed.
    values : ndarray, (N,)
    success : ndarray of bool, (N,)
    """

    criterion: str
    name: str
    values: Array
    success: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Score:
    """Robustness of a controller.

    Attributes
    ----------
    curves : tuple of Curve
    reason : str
        Why there are none, where the undisturbed run failed.
    """

    curves: tuple[Curve, ...] = ()
    reason: str = ""

    def share(self, criterion: str) -> float:
        """Return the share of runs of a criterion that succeed; nan without runs."""
        success = [curve.success for curve in self.curves if curve.criterion == criterion]
        return float(np.mean(np.concatenate(success))) if success else math.nan

    @property
    def total(self) -> float:
        """The mean of the six shares."""
        return float(np.mean([self.share(criterion) for criterion in CRITERIA])) if self.curves else math.nan

    @property
    def row(self) -> dict[str, float]:
        """The shares by criterion, and the total."""
        return {**{name: self.share(name) for name in CRITERIA}, "total": self.total}

    def __str__(self) -> str:
        """Return the shares in a line, or why there are none."""
        if not self.curves:
            return f"robustness not known: {self.reason}"
        parts = ", ".join(f"{name} {100.0 * self.share(name):.1f}" for name in CRITERIA)
        return f"robustness {100.0 * self.total:.1f} % ({parts})"


def score(
    make: Callable[..., Any],
    sim: Simulation,
    options: dict[str, Any],
    entry: Entry,
    wanted: Robustness,
    T: float,
    settings: dict[str, Any],
) -> Score:
    """Run a diagram with all that is made worse, on all cores.

    Parameters
    ----------
    make : function of (sim, **options)
        Builds the diagram.
    entry : Entry
        Of the undisturbed run: the goal, and its greatest torque.
    """
    if entry.goal is None:
        return Score(reason="the diagram has no goal; give goal=")
    if entry.peak_torque is None or not len(entry.t):
        return Score(reason="there is no undisturbed run with a torque to compare with")

    def build(simulation: Any) -> Any:
        bd = make(simulation, **options)  # whose names may be those of settings of a sweep
        disturb(bd, wanted.dt, wanted.longest)
        return bd

    plant = disturb(make(sim, **options), wanted.dt, wanted.longest)
    plan = _plan(plant.mech, plant.name, wanted, entry.peak_torque, T)
    names = list(dict.fromkeys(name for _, _, _, runs in plan for run in runs for name in run))
    usual = _usual(plant.mech, plant.name)
    runs = [run for *_, each in plan for run in each]
    samples = {name: [run.get(name, usual[name]) for run in runs] for name in names}
    goal, turn, balls = entry.goal.q, entry.turn, entry.balls

    def succeeds(out: Any) -> float:
        x = out.x[-1]
        states = [
            out.xnames.index(f"{plant.name}.{joint}.{kind}") for kind in ("q", "qd") for joint in plant.mech.names
        ]
        q, qd = np.split(x[states][None], 2, axis=1)
        off = [np.abs(e).max() for e in errors_from(goal, q, qd, turn, balls)]
        return float(out.t[-1] >= T and off[0] < wanted.position and off[1] < wanted.rate)

    found = sim.sweep(build, samples=samples, measure=succeeds, T=T, progress=True, **settings)
    success = np.nan_to_num(found.value if len(found) else np.zeros(len(runs))) > 0.5
    curves, at = [], 0
    for criterion, name, values, each in plan:
        curves.append(Curve(criterion, name, values, success[at : at + len(each)]))
        at += len(each)
    return Score(tuple(curves))


#: Of each quantity: its criterion and name, its values, and what each run is given.
_Plan = list[tuple[str, str, Array, list[dict[str, Any]]]]


def _usual(mech: Mechanism, plant: str) -> dict[str, Any]:
    """Return what the numbers are where nothing is made worse."""
    still = np.zeros(PUSHES * len(mech.actuated))
    return {
        f"{plant}:mech": mech,
        f"{MEASUREMENT}:noise": 0.0,
        f"{MEASUREMENT}:delay": 0.0,
        f"{MOTORS}:noise": 0.0,
        f"{MOTORS}:response": 1.0,
        f"{MOTORS}:height": still,
        f"{MOTORS}:centre": still,
        f"{MOTORS}:width": still + 1.0,
    }


def _plan(mech: Mechanism, plant: str, wanted: Robustness, peak: float, T: float) -> _Plan:
    steps = wanted.steps
    part = np.linspace(0.0, 1.0, steps)
    plan: _Plan = []
    for name, values, changed in _changes(mech, wanted, peak):
        plan.append(("model", name, values, [{f"{plant}:mech": mech.with_parameters(each)} for each in changed]))
    for criterion, key, values in (
        ("noise", f"{MEASUREMENT}:noise", part * wanted.noise),
        ("torque noise", f"{MOTORS}:noise", part * wanted.torque_noise * peak),
        ("response", f"{MOTORS}:response", np.linspace(*wanted.response, steps)),
    ):
        plan.append((criterion, criterion, values, [{key: float(v)} for v in values]))
    delays = part * wanted.delay
    plan.append(("delay", "delay", delays, [{f"{MEASUREMENT}:delay": float(v / wanted.dt)} for v in delays]))
    pushes = [_pushed(k, len(mech.actuated), wanted, peak, T) for k in range(wanted.profiles)]
    plan.append(("pushes", "pushes", np.arange(float(wanted.profiles)), pushes))
    return plan


def _changes(mech: Mechanism, wanted: Robustness, peak: float) -> list[tuple[str, Array, list[dict[str, Any]]]]:
    """Return what is changed of a mechanism: its name, the values, and the parameters of each."""
    found: list[tuple[str, Array, list[dict[str, Any]]]] = []
    factors = np.linspace(1.0 - wanted.model, 1.0 + wanted.model, wanted.steps)

    def scale(name: str, numbers: dict[str, Any]) -> None:
        found.append((name, factors, [{key: v * value for key, value in numbers.items()} for v in factors]))

    for link in mech.links:
        if link.mass > 0.0:
            scale(f"{link.name} mass", {f"{link.name}.mass": link.mass})
        if link.mass > 0.0 and np.any(link.com):
            scale(f"{link.name} centre of mass", {f"{link.name}.com": link.com})
        if np.any(link.inertia):
            scale(f"{link.name} inertia", {f"{link.name}.inertia": link.inertia})
        behind = [other for other in mech.links if other.parent == link.name and np.any(other.pose[:3, 3])]
        if behind:
            poses = [{f"{other.name}.pose": _longer(other.pose, v) for other in behind} for v in factors]
            found.append((f"{link.name} length", factors, poses))
    part = np.linspace(0.0, 1.0, wanted.steps)
    for joint in (link.joint_name for link in mech.links if link.joint.dof):
        for what, most in (("damping", wanted.damping * peak), ("friction", wanted.friction * peak)):
            there = _numbers(mech, joint, what)
            added = most * part
            values = float(np.max([np.max(v) for v in there.values()])) + added
            found.append((f"{joint} {what}", values, [{key: v + more for key, v in there.items()} for more in added]))
    return found


def _numbers(mech: Mechanism, joint: str, what: str) -> dict[str, Any]:
    """Return a number of a joint, or those of its coordinates, by the names that a mechanism has for them."""
    own = mech.joint(joint)
    if hasattr(own, what):
        return {f"{joint}.{what}": getattr(own, what)}
    at = mech.coordinates(joint)  # of joints one behind the other
    return {f"{n}.{what}": getattr(one, what) for n, one in zip(mech.names[at], mech.freedoms[at], strict=True)}


def _longer(pose: Array, factor: float) -> Array:
    longer = pose.copy()
    longer[:3, 3] *= factor
    return longer


def _pushed(k: int, motors: int, wanted: Robustness, peak: float, T: float) -> dict[str, Any]:
    """Return the pushes of a run: apart in time, up or down, their numbers those of a counter."""
    place = np.arange(float(motors * PUSHES))

    def between(channel: float, low: float, high: float) -> Array:
        return np.asarray(low + (high - low) * uniform(float(SEED), float(k), channel + place))

    sign = np.where(between(_SIGN, -1.0, 1.0) < 0.0, -1.0, 1.0)
    slot = T / PUSHES
    return {
        f"{MOTORS}:height": sign * between(_HEIGHT, wanted.push[0] * peak, wanted.push[1] * peak),
        f"{MOTORS}:centre": slot * (place % PUSHES + between(_CENTRE, 0.0, 1.0)),
        f"{MOTORS}:width": between(_WIDTH, *wanted.width),
    }
