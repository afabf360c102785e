"""Base of the control laws: torques of the motors, their limits, phases, gains and a reference."""

from __future__ import annotations

import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array, is_single
from cstormpy.control.checked import Checked, once
from cstormpy.control.prepared import places
from cstormpy.errors import InvalidType, InvalidValue, shown, unknown_name
from cstormpy.graph.arrays import is_symbolic, symbols
from cstormpy.graph.choices import choose
from cstormpy.graph.nodes import Node
from cstormpy.linkage.degrees import say_degrees
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.trajectory.curve import Curve
from cstormpy.values import ArgumentNames

#: Position, rate and acceleration to follow.
Target = tuple[Array, Array, Array]
#: What a law takes for a reference: a posture, a motion at one time, or a function of time.
ReferenceLike = ArrayLike | tuple[ArrayLike, ArrayLike, ArrayLike] | Callable[[float], Target] | Curve | None


def clipped(tau: Array, limit: Array) -> Array:
    """Return the torques within ±limit.

    >>> clipped(np.array([3.0, -5.0]), np.array([4.0, 4.0])).tolist()
    [3.0, -4.0]
    """
    return np.minimum(np.maximum(tau, -limit), limit)


def largest_torques(value: Any, motors: tuple[str, ...], name: str = "limit") -> Array | None:
    """Return the largest torques, (n_a,), from one for all or one for each; None if there are none.

    >>> largest_torques(2.0, ("shoulder", "elbow")).tolist()
    [2.0, 2.0]
    """
    if value is None:
        return None
    if is_single(value):
        return np.full(len(motors), checks.nonnegative(value, name))
    given = checks.array(value, (len(motors),), f"{name} (for {', '.join(motors)})")
    each = zip(given.tolist(), motors, strict=True)
    return np.array([checks.nonnegative(v, f"{name}, motor {m!r}") for v, m in each])


class _LawClass(ArgumentNames, ABCMeta):
    """The class of classes of laws, which may be abstract as well."""


class Law(metaclass=_LawClass):
    """Base of the control laws: torques of the motors as a function of time and state.

    A law is used by one simulation at a time: it remembers its phase and owns scratch memory. Copies and pickles have
    their own.

    A law of your own says its equations once, in `torque`, in plain Python and NumPy: a compiled diagram, and its
    derivatives, are made of that very method, called with symbols in place of the floats of its attributes and
    arguments. What is to be chosen by a number is chosen by ``np.where``, or by the law's phase: `modes` names them,
    `torque` and `margin` may ask ``self.mode`` with an ``if``, and `switch` changes it where `margin` crosses zero.
    Its gains are the arguments of its constructor that it keeps as attributes of the same name, floats and arrays of
    floats, or those that its `tunable` names.

    Parameters
    ----------
    mech : Mechanism or str
        What is controlled: a mechanism, a library name or the path of its file. Every actuated joint has a motor
        here; which joints are active does not matter.
    limit : float or array_like, (n_a,), optional
        Largest torque of each motor [N m or N]; none unless given.
    reference : optional
        What laws that track follow if they are not told: a posture (n,), a tuple (q, qd, qdd), a
        `cstormpy.trajectory.BSpline`, or a function of time that returns such a tuple.

    Attributes
    ----------
    mech : Mechanism
    motors : tuple of str
        The joints with a motor, in the order of q; n_a is their number.
    limit : ndarray, (n_a,), or None
    modes : tuple of str
        Names of the phases; `mode` is the index of the present one.
    begun : float
        When what the law does by the clock began [s]; a run that goes on has it from the one before, as the phase.
    """

    #: Whole numbers that change in a run and choose what is computed, see `cstormpy.graph.choices`.
    choices: ClassVar[tuple[str, ...]] = ("mode",)
    #: Names of the tunable numbers, which are attributes: a float, or an array of one for each of some joints. None:
    #: the arguments of the constructor that are attributes of the same name, floats and arrays of any shape.
    tunable: ClassVar[tuple[str, ...] | None] = None
    #: Attributes that `_prepare` makes.
    _prepared: ClassVar[tuple[str, ...]] = ()
    modes: tuple[str, ...] = ("",)
    mode: Any  # a whole number, or the symbol of one where the law is written down
    reference: Any

    def __init__(self, mech: Mechanism, limit: ArrayLike | None = None, reference: ReferenceLike = None) -> None:
        vars(self)["mech"] = mechanism_of(mech, type(self).__name__)
        self.motors = self.mech.actuated
        self.mode, self.begun = 0, 0.0
        self._shape, self._torques = (self.mech.n,), (len(self.motors),)
        self._motors = places(self.mech.actuated_mask)
        self.limit = limit
        vars(self)["reference"] = self._as_reference(reference)  # what a law of one's own sets later is its own affair

    def _same_mechanism(self, name: str, value: Any) -> Any:
        """Return the mechanism that the law is made for, and refuse another one."""
        if "_torques" not in vars(self):  # a law of one's own that keeps it before it calls this constructor
            return value
        if as_mechanism(value) != self.mech:
            once(self, name, value)
        return self.mech

    mech: Any = Checked(_same_mechanism)

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques of the motors, (n_a,), before their limit; free of side effects.

        Parameters
        ----------
        t : float
            Time [s].
        q, qd : ndarray, (n,)
            Position and rate of every joint.
        reference : tuple of three arrays, optional
            (q, qd, qdd) to follow instead of the law's own.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no method torque(self, t, q, qd, reference=None) yet")

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike, reference: Target | None = None) -> Array:
        """Return the torques of the motors, (n_a,), within their limit; the arguments are those of `torque`."""
        if isinstance(self.mode, Node):
            return choose(self.mode, self._in_each_phase("__call__"), t, q, qd, reference)
        if type(q) is not np.ndarray or type(qd) is not np.ndarray or q.shape != self._shape or qd.shape != self._shape:
            q, qd = self._as_coordinates(q, "q"), self._as_coordinates(qd, "qd")
        mode = self.mode
        tau = self.torque(t, q, qd, reference)
        if self.mode != mode:
            self._refuse_change(mode)
        if type(tau) is not np.ndarray or tau.shape != self._torques:
            tau = self._as_torques(tau)
        return tau if self.limit is None else clipped(tau, self.limit)

    def _as_coordinates(self, value: Any, name: str) -> Array:
        return symbols(value) if is_symbolic(value) else checks.array(value, self._shape, name).copy()

    def _asked(self) -> str:
        """Return the name of the function that gives the torques, for messages."""
        return f"{type(self).__name__}.torque"

    def _as_torques(self, value: object) -> Array:
        """Return what `torque` of a user's law returned, one number for each motor; a number will do for one motor."""
        if is_symbolic(value):
            return symbols(value).reshape(self._torques)
        what = f"{self._asked()}() (for {', '.join(self.motors)})"
        if value is None:
            raise InvalidType(f"{what}: returned None; end it with 'return' and the torques")
        if is_single(value):
            value = [value]
        hint = 'one torque for each joint with a motor, mech.with_drive(actuated=["..."]) says which have one'
        if self.mech.active:
            hint += f"; those of the active, {', '.join(self.mech.active)}, are not used"
        return checks.array(value, self._torques, what, hint)  # type: ignore[arg-type]

    def _refuse_change(self, before: int) -> None:
        """Refuse a phase that `torque` has changed, which is asked within steps too, also those that are taken back."""
        after, self.mode = self.mode, before
        raise InvalidValue(
            f"{self._asked()}(): changes its phase, mode, from {before} to {after}; let margin(t, q, qd) fall below "
            "zero where that is to be, and change it in switch(t, q, qd)"
        )

    # ---------------------------------------------------------------- phases

    @property
    def ready(self) -> bool:
        """True where all is there that `torque` needs; a law that must find something first does so when first used."""
        return True

    def _in_each_phase(self, method: str) -> list[Callable[..., Any]]:
        """Return a method of the law in each of its phases, for one evaluation."""

        def asked(k: int, *given: Any) -> Any:
            law = object.__new__(type(self))
            law.__dict__.update(self.__dict__)
            law.mode = k
            found = getattr(law, method)(*given)
            held, mine = vars(law), vars(self)
            # what it sets of itself meanwhile stands in the law too: who writes it down sees that it remembers
            mine.update({name: v for name, v in held.items() if v is not (k if name == "mode" else mine.get(name))})
            return found

        return [functools.partial(asked, k) for k in range(len(self.modes))]

    def left(self, t: float, q: Array, qd: Array) -> float:
        """Return `margin`, or 1 where that is None."""
        if isinstance(self.mode, Node):
            return choose(self.mode, self._in_each_phase("left"), t, q, qd)
        margin = self.margin(t, q, qd)
        return 1.0 if margin is None else margin

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Choose the phase that fits a state, as the law takes over, or a run begins: in the phase it was made in."""

    def margin(self, t: float, q: Array, qd: Array) -> float | None:
        """Return a number that is positive until the law wants to change its phase; None: it never does.

        Where a phase begins with one below zero the law leaves it at once.
        """
        return None

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Change the phase: to be called where `margin` crosses zero, between integration steps."""

    # ---------------------------------------------------------------- gains

    @property
    def gains(self) -> dict[str, Any]:
        """The tunable numbers by name; of those in `tunable` one of several joints is called as in "kp.elbow"."""
        if self.tunable is None:
            kept = vars(self)
            return {name: kept[name] for name in _arguments(type(self)) if is_gain(name, kept.get(name))}
        found: dict[str, Any] = {}
        for name in self.tunable:
            value = self._declared(name)
            if isinstance(value, np.ndarray):
                found |= {f"{name}.{joint}": float(v) for joint, v in zip(self._gain_joints(name), value, strict=True)}
            else:
                found[name] = value
        return found

    def set_gain(self, name: str, value: Any) -> None:
        """Change a tunable number, or an array; of those in `tunable` "kp" is of all joints, "kp.elbow" of one.

        Raises
        ------
        UnknownName, InvalidType, NonFinite
        """
        if self.tunable is None:
            setattr(self, name, replaced(self.gains, name, value))
            return
        whole, _, joint = name.partition(".") if isinstance(name, str) else (name, "", "")
        number = checks.real(value, f"gain {name!r}")
        held = getattr(self, whole) if whole in self.tunable else None
        if held is None or (joint and name not in self.gains):
            raise unknown_name("gain", name, self.gains)
        if not isinstance(held, np.ndarray):
            setattr(self, whole, number)
            return
        changed = held.copy()
        changed[self._gain_joints(whole).index(joint) if joint else ...] = number
        setattr(self, whole, changed)

    def _declared(self, name: str) -> Any:
        """Return a number, or an array of one for each joint, that `tunable` names; refuse what is neither."""
        where = f"{type(self).__name__}: tunable names {name!r}"
        if not hasattr(self, name):
            raise InvalidValue(f'{where}, which is no attribute; write names of attributes, as tunable = ("kp",)')
        value, joints = getattr(self, name), self._gain_joints(name)
        if isinstance(value, np.ndarray):
            fits = value.shape == (len(joints),)
        else:
            fits = value is not None and is_single(value) and not isinstance(value, (str, bytes))
        if not fits:
            raise InvalidType(
                f"{where}: expected a float, or an array of one for each of {', '.join(joints)}, got {shown(value)}; "
                "a class without `tunable` has all its floats, and arrays of floats of any shape, as gains"
            )
        return value

    def _gain_joints(self, name: str) -> tuple[str, ...]:
        """Return the joints that a gain of several numbers belongs to."""
        return self.motors

    def _gain(self, name: str, value: object) -> float | Array:
        """Return a gain: one number for all joints, or one for each."""
        if is_single(value):
            return checks.real(value, name)
        joints = self._gain_joints(name)
        return checks.array(value, (len(joints),), f"{name} (for {', '.join(joints)})")  # type: ignore[arg-type]

    limit: Any = Checked(lambda law, name, value: largest_torques(value, law.motors, name))

    # ---------------------------------------------------------------- reference

    def _as_reference(self, given: Any) -> Target | Callable[[float], Target] | None:
        if given is None:
            return None
        if isinstance(given, Curve):
            self._check_width(given.n, "reference")
            return _Following(given)
        if callable(given):
            return given
        if isinstance(given, tuple) and len(given) == 3 and not is_single(given[0]):
            width = self._check_width(len(given[0]), "reference")
            parts = zip(given, ("q", "qd", "qdd"), strict=True)
            q, qd, qdd = (checks.array(part, (width,), f"reference, {name}") for part, name in parts)
            return q, qd, qdd
        if is_single(given) or isinstance(given, Mapping):
            raise InvalidType(
                "reference: expected a posture, a tuple (q, qd, qdd), a B-spline or a function of time that returns "
                f"such a tuple, got {shown(given)}"
            )
        width = self._check_width(len(given), "reference")
        posture = checks.array(given, (width,), "reference")
        if width == self.mech.n:
            say_degrees(self.mech.freedoms, self.mech.names, posture.tolist(), "reference")
        return posture, np.zeros(width), np.zeros(width)

    def _check_width(self, width: int, what: str) -> int:
        """Return the width of a reference if it is one that this law can follow."""
        if width != self.mech.n:
            raise InvalidValue(f"{what}: expected {self.mech.n} joints ({', '.join(self.mech.names)}), got {width}")
        return width

    def _target(self, t: float, reference: Target | None) -> Target:
        """Return what to follow now: as told, or else the law's own reference."""
        if reference is not None:
            return reference
        own = self.reference
        if own is None:
            raise InvalidValue(f"{type(self).__name__}: has nothing to follow; give it a reference")
        if not callable(own):
            return own
        return own(t) if isinstance(own, _Following) else self._of_function(own(t))

    def _of_function(self, found: Any, what: str = "reference") -> Target:
        """Return what a function of one's own said to follow; refuse what is no position, rate and acceleration."""
        parts = tuple(found) if isinstance(found, (tuple, list, np.ndarray)) else ()
        width = len(parts[0]) if parts and not is_single(parts[0]) else 0
        parts = tuple(np.zeros(width) + part if is_single(part) else part for part in parts)
        if len(parts) != 3 or not width or any(len(part) != width for part in parts):
            raise InvalidType(
                f"{type(self).__name__}, {what}: expected that the function returns position, rate and "
                f"acceleration, as (q, qd, qdd), each with a number for each joint, got {shown(found)}"
            )
        return parts

    # ---------------------------------------------------------------- copies

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: prepared functions and scratch memory are made anew."""
        return {name: value for name, value in self.__dict__.items() if name not in self._prepared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a copy, and make what it left out."""
        self.__dict__.update(state)
        self._prepare()

    def _prepare(self) -> None:
        """Make what is asked at every evaluation and cannot be copied."""

    def __repr__(self) -> str:
        gains = self.gains.items()
        shown = [f"{name}={v.tolist() if isinstance(v, np.ndarray) else format(v, 'g')}" for name, v in gains]
        if self.limit is not None:
            values = set(self.limit.tolist())
            shown.append(f"limit={values.pop():g}" if len(values) == 1 else f"limit={self.limit.tolist()}")
        return f"{type(self).__name__}({', '.join(shown)})"


def gain() -> Checked:
    """Return an attribute of a law that is a gain: one number for all of some joints, or one for each."""
    return Checked(lambda law, name, value: law._gain(name, value))


def refuse_phases(laws: Iterable[Law], who: str) -> None:
    """Refuse laws with phases as parts of another law, which would never change them."""
    for law in laws:
        if len(law.modes) > 1:
            raise InvalidValue(
                f"{who}: {type(law).__name__} has phases of its own ({', '.join(law.modes)}), which a law within "
                "another one does not change; give a CONTROLLER both laws by name, and swap them by select"
            )


#: Arrays with more numbers are tables, which nobody tunes one by one.
_MOST = 64


def is_gain(name: str, value: object) -> bool:
    """Tell whether an attribute is a number that somebody may want to change, or an array of not too many."""
    if name.startswith("_"):
        return False
    if isinstance(value, np.ndarray):
        return value.dtype == np.float64 and 0 < value.size <= _MOST
    return isinstance(value, (float, np.floating))


def replaced(gains: Mapping[str, Any], name: str, value: Any) -> Any:
    """Return the checked value that takes the place of a number among gains, or of all numbers of an array."""
    held = gains.get(name)
    if held is None:
        raise unknown_name("gain", name, gains)
    if isinstance(held, np.ndarray):
        return checks.array(value, held.shape, f"gain {name!r}").copy()
    return checks.real(value, f"gain {name!r}")


def _arguments(law: type[Law]) -> list[str]:
    """Return what the constructors of a class of laws take, beside the arguments of all laws."""
    common = inspect.signature(Law.__init__).parameters
    written = [kind.__init__ for kind in law.__mro__[: law.__mro__.index(Law)] if "__init__" in vars(kind)]  # type: ignore[misc]
    return list(dict.fromkeys(p for init in written for p in inspect.signature(init).parameters if p not in common))


class Off(Law):
    """No torque at all.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> Off(library.acrobot())(0.0, [0.1, 0.2], [0.0, 0.0])
    array([0.])
    """

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return zeros, (n_a,)."""
        return np.zeros(len(self.motors))


class _Following:
    """A B-spline as a function of time that returns (q, qd, qdd)."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve

    def __call__(self, t: float) -> Target:
        q, qd, qdd = self.curve.evaluate(t)
        return q, qd, qdd


def mechanism_of(value: Any, who: str) -> Mechanism:
    """Return a mechanism that has a motor, given as such, by its library name or by its file, or refuse."""
    mech = as_mechanism(value)
    if not mech.actuated:
        raise InvalidValue(f"{who}: no joint of the mechanism is actuated, so that there is nothing to control with")
    return mech
