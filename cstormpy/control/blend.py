"""Several laws of which one is active, swapped without a jump in torque.

At the swap, at time t_s, the torque steps from what was commanded to what the new law asks, by
d = τ_old − τ_new(t_s). The step is given back over the blend's duration b:

    τ(t) = τ_new(t) + (1 − s) d,    1 − s = (t_s + b − t)/b kept within [0, 1],

so that beyond the new law's own motion the torque moves at most |d|/b.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.control.checked import Checked
from cstormpy.control.law import Law, Target, clipped, largest_torques
from cstormpy.control.named import law as law_by_name
from cstormpy.control.notes import Notes
from cstormpy.control.phases import refuse_margin, refuse_mode, refuse_phases
from cstormpy.control.user_laws import OwnLaw, check_arguments, is_own_law
from cstormpy.errors import BlockError, CstormError, InvalidType, InvalidValue, NonFinite, shown, unknown_name
from cstormpy.graph.choices import choose, pick
from cstormpy.graph.nodes import Node
from cstormpy.mechanism import Mechanism
from cstormpy.reporting import notice_once

#: How far below zero a margin may be where it crosses, besides ten times what it is there before the phase changes.
_CROSSED = 1e-9


def remaining(elapsed: float, duration: float) -> float:
    """Return 1 − s: the share of the step that is left some time after the swap.

    >>> [float(remaining(elapsed, 0.5)) for elapsed in (-1.0, 0.0, 0.125, 0.5, 2.0)]
    [1.0, 1.0, 0.75, 0.0, 0.0]
    >>> float(remaining(0.0, 0.0))
    0.0
    """
    divisor = duration + (duration == 0.0)  # with no duration nothing is left from the swap on
    return np.minimum(np.maximum((duration - elapsed) / divisor, 0.0), 1.0)


def blended(tau: Array, step: Array, elapsed: float, duration: float) -> Array:
    """Return τ_new + (1 − s) d.

    Parameters
    ----------
    tau : ndarray, (n_a,)
        What the new law asks now.
    step : ndarray, (n_a,)
        d, by how much the torque before the swap exceeded that after it.
    elapsed : float
        Time since the swap [s].
    duration : float
        How long the blend lasts [s]; 0 swaps at once.

    Examples
    --------
    >>> blended(np.array([1.0]), np.array([4.0]), 0.01, 0.04).tolist()
    [4.0]
    """
    return tau + remaining(elapsed, duration) * step


class LawSet:
    """Named laws for one mechanism, one of them active.

    Parameters
    ----------
    laws : mapping of str to Law
        In the order in which numbers choose them.
    first : str, optional
        The law that begins; the first one unless given.
    blend : float
        Duration over which a swap gives back its step in torque [s].
    limit : float or array_like, (n_a,), optional
        Largest torque of each motor, after the blend; none beside the laws' own unless given.

    Attributes
    ----------
    names : tuple of str
    active : int
        Number of the active law.
    phase_names : tuple of str
        Names of the phases of all laws, each once; "" is the phase of a law that has but one.
    since, until : float
        When the last swap was, and when its blend ends [s].
    step : ndarray, (n_a,)
        What the last swap gives back.

    Examples
    --------
    >>> from cstormpy.control.law import Off
    >>> from cstormpy.mechanism import library
    >>> laws = LawSet({"off": Off(library.acrobot()), "rest": Off(library.acrobot())})
    >>> q, qd = np.zeros(2), np.zeros(2)
    >>> laws.begin(0.0, q, qd)
    >>> laws.swap("rest", 1.0, q, qd)
    >>> laws(1.0, q, qd).tolist(), laws.names[laws.active]
    ([0.0], 'rest')
    """

    #: Whole numbers that change in a run and choose what is computed, see `cstormpy.graph.choices`.
    choices: ClassVar[tuple[str, ...]] = ("active",)

    def __init__(
        self, laws: Mapping[str, Law], first: str | None = None, blend: float = 0.05, limit: ArrayLike | None = None
    ) -> None:
        self.laws = _checked(laws)
        self.names = tuple(self.laws)
        self._each = tuple(self.laws.values())
        self._notes = tuple(map(Notes, self._each))
        for law in self._each:  # kept by the law, which may have been in a run of other laws since
            law.__dict__.setdefault("_first_phase", (law.mode, law.begun))
        self.phase_names = tuple(dict.fromkeys(phase for law in self._each for phase in law.modes))
        self._phases = [[self.phase_names.index(phase) for phase in law.modes] for law in self._each]
        motors = self._each[0].motors
        self.blend, self.limit = blend, limit
        self.active: Any = 0 if first is None else self.number(first)
        self._looked_at: frozenset[int] = frozenset()  # laws whose margin was seen to be a number
        self.since = self.until = 0.0
        self.step: Array = np.zeros(len(motors))

    #: What the constructor takes, and later too.
    limit: Any = Checked(lambda laws, name, value: largest_torques(value, next(iter(laws.laws.values())).motors, name))

    @property
    def blend(self) -> float:
        """Duration of a blend [s]; a change holds from the next swap on."""
        return self._blend

    @blend.setter
    def blend(self, duration: float) -> None:
        self._blend = checks.nonnegative(duration, "blend")

    def number(self, law: str | int) -> int:
        """Return the number of a law, given by name or number; UnknownName or InvalidValue if there is none."""
        if isinstance(law, str):
            if law not in self.laws:
                raise unknown_name("law", law, self.names)
            return self.names.index(law)
        if isinstance(law, (bool, np.bool_)) or not isinstance(law, (int, np.integer)):
            raise InvalidType(f"law: expected a name or a number, got {shown(law)}")
        if not 0 <= law < len(self.names):
            numbered = ", ".join(f"{k} ({name})" for k, name in enumerate(self.names[:12]))
            raise InvalidValue(f"law: there is none of number {int(law)}; there are {numbered}")
        return int(law)

    def nearest(self, signal: float) -> int:
        """Return the number of the law that a signal stands for: the nearest whole number."""
        if not np.isfinite(signal):
            raise NonFinite(f"law: the signal that chooses it is {signal}")
        return self.number(int(np.rint(signal)) if abs(signal) < 1e9 else -1)

    # ---------------------------------------------------------------- torque

    def __call__(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques of the motors, (n_a,), within the limit."""
        try:
            tau: Array = choose(self.active, self._each, t, q, qd, reference)
        except CstormError:
            raise
        except Exception as error:
            if isinstance(self.active, Node):
                raise
            raise BlockError(f"law {self.names[self.active]!r}: {type(error).__name__}: {error}") from error
        tau = blended(tau, self.step, t - self.since, self.until - self.since)
        return tau if self.limit is None else clipped(tau, self.limit)

    def begin(self, t: float, q: Array, qd: Array, law: str | int | None = None) -> None:
        """Begin a run, with the active law or another one: no blend, and the phase that fits the state.

        Laws that do not say which one that is begin in the phase they were made in, whatever a run before left; so do
        the numbers that they change as they begin or switch.
        """
        active = self.active if law is None else self.number(law)
        for each, notes in zip(self._each, self._notes, strict=True):
            each.mode, each.begun = each.__dict__["_first_phase"]
            notes.reset()
        self._start(active, t, q, qd)
        self.active, self.since, self.until = active, t, t
        self.step.fill(0.0)

    def swap(self, law: str | int, t: float, q: Array, qd: Array, reference: Target | None = None) -> None:
        """Make another law active at a time and state; nothing happens if it is so already."""
        k = self.number(law)
        if k == self.active:
            return
        before = self(t, q, qd, reference).copy()
        self._start(k, t, q, qd)
        step = before - self._each[k](t, q, qd, reference)
        self.active, self.since, self.until, self.step = k, t, t + self._blend, step

    # ---------------------------------------------------------------- phases

    def left(self, t: float, q: Array, qd: Array) -> float:
        """Return the margin of the active law: positive until it wants to change its phase, 1 if it never does."""
        return choose(self.active, [law.left for law in self._each], t, q, qd)

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Change the phase of the active law; its torque may jump there."""
        k = self.active
        own = vars(self._each[k])
        before = dict(own)
        self._switch(k, t, q, qd)
        if self._each[k].left(t, q, qd) < 0.0:
            after = dict(own)
            own.update(before)
            crossed = abs(self._each[k].left(t, q, qd))  # not zero, as a crossing is located to rounding
            own.update(after)
            self._leave(k, t, q, qd, 10.0 * crossed + _CROSSED)

    def _start(self, k: int, t: float, q: Array, qd: Array) -> None:
        before = self._each[k].mode
        self._notes[k].start(t, q, qd)
        if len(self._phases[k]) > 1:
            refuse_mode(self.names[k], self._each[k], before)
            if k not in self._looked_at:
                refuse_margin(self.names[k], self._each[k], t, q, qd)
                self._looked_at = self._looked_at | {k}
            self._leave(k, t, q, qd)

    def _leave(self, k: int, t: float, q: Array, qd: Array, beyond: float = 0.0) -> None:
        """Change phases whose margin is below zero as they begin: it would never fall below zero in them."""
        law, been = self._each[k], dict[str, None]()
        for _ in self._phases[k]:
            if not law.left(t, q, qd) < -beyond:
                return
            before = law.mode
            been[law.modes[before]] = None
            self._switch(k, t, q, qd)
        if law.mode != before and law.left(t, q, qd) < -beyond:  # a last phase is one that goes on
            names = " and ".join(map(repr, been))
            notice_once(
                f"law {self.names[k]!r}: its phases {names} all begin below their margin, so that it stays in "
                f"{law.modes[law.mode]!r}; let margin be positive where a phase begins"
            )

    def _switch(self, k: int, t: float, q: Array, qd: Array) -> None:
        before = self._each[k].mode
        self._notes[k].switch(t, q, qd)
        refuse_mode(self.names[k], self._each[k], before)

    @property
    def phase(self) -> int:
        """Number of the present phase of the active law among `phase_names`."""
        each = zip(self._each, self._phases, strict=True)
        return choose(self.active, [functools.partial(pick, law.mode, numbers) for law, numbers in each])

    # ---------------------------------------------------------------- memory

    @property
    def remembering(self) -> dict[int, str]:
        """The name of each law that remembers something, or has such a law within it, by the identity of that."""
        pairs = zip(self.names, self._notes, strict=True)
        return {id(law): name for name, notes in pairs for law in notes.laws}

    def noted(self, again: bool = True) -> dict[str, Any]:
        """Return the real numbers that laws, and the blend, have from where they began, by what they are.

        Those of the active law alone, without when it began, unless one began `again` within a run.
        """
        found: dict[str, Any] = {}
        for k, (name, law, notes) in enumerate(zip(self.names, self._each, self._notes, strict=True)):
            held = notes.memory() if again or k == self.active else {}
            real = {key: value for key, value in held.items() if np.asarray(value).dtype.kind == "f"}
            found |= {f"{key} of law {name!r}": value for key, value in real.items()}
            found |= {f"when law {name!r} began": law.begun} if again else {}
        return found | ({"the blend": [self.since, self.until, *self.step]} if self.until > self.since else {})

    def memory(self) -> dict[str, Any]:
        """Return what a later run needs to go on from here: law, phases, what laws have noted, and blend."""
        return {
            "law": self.names[self.active],
            "phases": [float(law.mode) for law in self._each],
            "begun": [float(law.begun) for law in self._each],
            "notes": [notes.memory() for notes in self._notes],
            "since": self.since,
            "until": self.until,
            "step": self.step.tolist(),
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what `memory` returned."""
        active = self.number(memory["law"])
        phases, begun, noted = memory["phases"], memory["begun"], memory.get("notes") or [{}] * len(self._each)
        step = np.array(memory["step"], dtype=np.float64)
        if not len(phases) == len(begun) == len(noted) == len(self._each) or step.shape != self.step.shape:
            raise InvalidValue("memory: it is that of other laws")
        for law, phase, when, notes, content in zip(self._each, phases, begun, self._notes, noted, strict=True):
            law.mode, law.begun = int(phase), float(when)
            notes.recall(content)
        self.active, self.since, self.until, self.step = active, float(memory["since"]), float(memory["until"]), step


def laws_by_name(laws: Mapping[str, Any] | Sequence[str] | Law | str | object, mech: Mechanism) -> dict[str, Law]:
    """Return laws for a mechanism by name.

    Parameters
    ----------
    laws : mapping, sequence of str, Law, str, callable or object
        Laws by name, where a name that `cstormpy.control.law` knows stands for the law that it makes; a list of such
        names, or one; or a single law, which is then called by its class. A function of (t, q, qd), and an object with
        a method ``torque`` of these, are laws too (`OwnLaw`).
    mech : Mechanism

    Raises
    ------
    UnknownName, InvalidType, InvalidValue
        Naming the law: unknown, named twice, or made for other joints or motors.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> list(laws_by_name(["energy", "pd"], library.acrobot()))
    ['energy', 'pd']
    """
    if isinstance(laws, Law):
        laws = {type(laws).__name__.lower(): laws}
    elif isinstance(laws, str):
        laws = {laws: laws}
    elif isinstance(laws, Sequence):
        if not all(isinstance(name, str) for name in laws):
            raise InvalidType("laws: a list holds names; give Law objects as a dict from names to laws")
        if len(set(laws)) < len(laws):
            raise InvalidValue("laws: a law is named twice; give a dict from different names to laws")
        laws = {name: name for name in laws}
    elif not isinstance(laws, Mapping):
        if not is_own_law(laws):
            raise InvalidType(f"laws: expected laws by name, a list of names, or a law, {_instead(laws)}")
        laws = {_name_of(laws): laws}
    found = {name: _made(each, mech) for name, each in laws.items()}
    for name, law in found.items():
        if isinstance(law, Law) and "mech" not in law.__dict__:
            raise InvalidType(f"law {name!r}: __init__ of {type(law).__name__} must call super().__init__(mech)")
        if isinstance(law, Law):
            check_arguments(law.torque, "reference")
            for method in (law.start, law.margin, law.switch):
                check_arguments(method)
        if isinstance(law, Law) and (law.mech.names != mech.names or law.mech.actuated != mech.actuated):
            raise InvalidValue(
                f"law {name!r}: was made for a mechanism of other joints or motors "
                f"({', '.join(law.mech.actuated)}) than this one ({', '.join(mech.actuated)})"
            )
    return found


def _made(law: Any, mech: Mechanism) -> Any:
    """Return the law that a name or somebody's function stands for."""
    if isinstance(law, str):
        return law_by_name(law, mech)
    return OwnLaw(mech, law) if is_own_law(law) else law


def _name_of(law: Any) -> str:
    name = str(getattr(law, "__name__", type(law).__name__)).lower()
    return name if name.isidentifier() else "law"


def _instead(value: Any) -> str:
    """Say what was given for a law, and how to make one of it."""
    if isinstance(value, type):
        return f"got {shown(value)}; make one of it, as in {value.__name__}(mech)"
    return f"got {shown(value)}; write a class with the method torque, derived from cstormpy.control.Law"


def _checked(laws: Mapping[str, Law]) -> dict[str, Law]:
    """Return the laws, all of them for the same motors."""
    if not isinstance(laws, Mapping) or not laws:
        raise InvalidType("laws: expected a mapping from names to laws, at least one")
    found = dict(laws)
    for name, law in found.items():
        checks.name(name, "name of a law")
        if not isinstance(law, Law):
            raise InvalidType(f"law {name!r}: expected a Law, {_instead(law)}")
        refuse_phases(name, law)
    first = next(iter(found.values()))
    for name, law in found.items():
        if law.mech.names != first.mech.names or law.motors != first.motors:
            raise InvalidValue(
                f"law {name!r}: is for the motors {', '.join(law.motors)} of the joints {', '.join(law.mech.names)}, "
                f"but law {next(iter(found))!r} for {', '.join(first.motors)} of {', '.join(first.mech.names)}"
            )
    return found
