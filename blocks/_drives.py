"""Drives of a mechanism that a run changes: which joints are prescribed, which locked, and which go by torque."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import entries, one_of, option
from cstormpy.arrays import Array
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._bases import Mechanical, NamedStates
from cstormpy.blocks._crossings import Crossing, can_locate
from cstormpy.blocks._switching import Switching
from cstormpy.errors import InvalidType, InvalidValue, UnknownAttribute, shown
from cstormpy.graph.choices import choose
from cstormpy.linkage.components import find
from cstormpy.loops.locking import locked_tangents
from cstormpy.mechanism import Mechanism
from cstormpy.signals.limits import nearest_level, room_in_level

Mask = NDArray[np.bool_]

LOCKINGS = ("impulse", "rest")
"""Ways to lock a moving joint: by an impulse, or not at all."""
AT_REST = 1e-9
"""A joint that is slower than this is at rest [rad/s, m/s]."""
BORDER = 1e-6
"""A signal that is located at the border between two drives stands there up to this."""
_KEYS = ("active", "locked")


class DriveSet:
    """The drives that a plant may be in, by name; one without a name where it is in one for ever.

    Parameters
    ----------
    mech : Mechanism
        Its own drive is what a drive that says nothing is.
    given : mapping, optional
        By name a mapping with "active", the joints whose motion is prescribed by a signal, and "locked", those that
        stand still.

    Attributes
    ----------
    names : tuple of str
    active, locked, torque : list of masks
        Of each drive: the coordinates whose accelerations are given, those that are locked, and those whose motors
        give torque.
    """

    def __init__(self, mech: Mechanism, given: Mapping[str, Any] | None) -> None:
        self.names, self.locked, drives = ("",), [np.zeros(mech.n, dtype=bool)], [mech]
        if given is not None:
            found = {name: _read(mech, name, content) for name, content in _checked(given).items()}
            self.names, (drives, self.locked) = tuple(found), map(list, zip(*found.values(), strict=True))
        #: The joints that are active and those that have a motor, of the mechanism in each drive.
        self._drives = [(drive.active, drive.actuated) for drive in drives]
        self._prescribed = [drive.active_mask for drive in drives]
        self.active: list[Mask] = [d.active_mask & ~held for d, held in zip(drives, self.locked, strict=True)]
        self.torque: list[Mask] = [mech.actuated_mask & ~drive.active_mask for drive in drives]

    def __len__(self) -> int:
        return len(self.names)

    def of(self, mech: Mechanism, k: int) -> Mechanism:
        """Return a mechanism in the drive of a number, in which locked joints are prescribed to stand still; kept."""
        active, actuated = self._drives[k]
        if active == mech.active and actuated == mech.actuated:
            return mech
        key = ("in drive", active, actuated)
        if key not in mech.memo:
            mech.memo[key] = mech.with_drive(active=active, actuated=actuated)
        return mech.memo[key]

    def loosest(self, mech: Mechanism) -> Mechanism:
        """Return a mechanism in which only those joints are active that no drive leaves to torques."""
        always = np.all(self._prescribed, axis=0)
        return mech.with_drive(active=[mech.names[k] for k in np.flatnonzero(always & mech.actuated_mask)])

    def number(self, name: Any) -> int:
        """Return the number of a drive, given by its name or number."""
        if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and 0 <= name < len(self):
            return int(name)
        return self.names.index(option(name, "drive", self.names))

    def nearest(self, signal: float, now: float) -> int:
        """Return the number of the drive that a signal means which has just left that of now."""
        if not -BORDER <= signal + 0.5 <= len(self) + BORDER:
            raise InvalidValue(f"select: expected the number of a drive, 0 to {len(self) - 1}, got {signal:g}")
        away = abs(signal - now)
        found = now + np.sign(signal - now) if 0.5 - BORDER < away <= 0.5 + BORDER else np.rint(signal)
        return int(np.clip(found, 0, len(self) - 1))

    def locked_joints(self, mech: Mechanism, k: int) -> list[str]:
        """Return the coordinates that a drive locks, by name."""
        return [mech.names[j] for j in np.flatnonzero(self.locked[k])]

    def entered(self, mech: Mechanism, k: int, q: Array, qd: Array, locking: str) -> Array:
        """Return the rates with which a drive is entered, (n,).

        Raises
        ------
        InvalidValue
            A joint that it locks moves, and may not be stopped.
        """
        moving = self.locked[k] & (qd != 0.0)
        if not moving.any():
            return qd
        if locking == "rest":
            self.refuse_moving(mech, k, qd)
        return mech.lock(q, qd, self.locked_joints(mech, k))[0]

    def entered_tangents(
        self, mech: Mechanism, k: int, x: Array, tangents: Array, numbers: Sequence[str] = ()
    ) -> Array:
        """Return derivatives (2n, m) of the state with which a drive is entered from those before, where it was x.

        The last of them are those to these numbers of the mechanism.
        """
        if not self.locked[k].any():
            return tangents
        q, qd = x[: mech.n], x[mech.n :]
        after = mech.lock(q, qd, self.locked_joints(mech, k))[0]
        parts = [part for _, own in find(mech, numbers) for part in own]
        return locked_tangents(mech, q, qd, after, self.locked[k], tangents, parts)

    def refuse_moving(self, mech: Mechanism, k: int, qd: Array) -> None:
        """Refuse rates with which a locked joint moves."""
        fastest = int(np.argmax(np.where(self.locked[k], np.abs(qd), 0.0)))
        if self.locked[k][fastest] and abs(qd[fastest]) > AT_REST:
            raise InvalidValue(
                f"joint {mech.names[fastest]!r}: is locked by drive {self.names[k]!r} while it moves at "
                f"{qd[fastest]:.4g}; bring it to rest before, or let locking='impulse' stop it"
            )


class Driven(NamedStates, Mechanical):
    """A block of the hybrid dynamics of a mechanism that is in one of several drives."""

    _drives: DriveSet
    _drive: ports.Drive

    def names_of_states(self) -> list[str]:
        """Return the names of the states, joint by joint."""
        return [f".{name}" for name in ports.names_of_motion(self._mech)]

    def _chosen(self, u: Sequence[Any]) -> Any:
        """Return what the signal that chooses a drive says."""
        port = self._drive.port("select")
        return ports.vector(self, port, u[port], 1)[0]  # type: ignore[arg-type]

    def _answer(self, number: Any, u: Any, q: Any, qd: Any, wrench: Any, base: Any) -> Any:
        """Return accelerations and motor torques in the drive of a number, (2, n)."""
        if len(self._drives) == 1:
            return self._in_drive(0, u, q, qd, wrench, base)
        options = [lambda *given, k=k: self._in_drive(k, *given) for k in range(len(self._drives))]
        return choose(number, options, u, q, qd, wrench, base)

    def _in_drive(self, k: int, u: Any, q: Any, qd: Any, wrench: Any, base: Any) -> Any:
        given, stops = self._drive.u(self, u, k), 0.0
        if self._stops is not None:
            free = np.where(self._drives.of(self._mech, k).active_mask, 0.0, 1.0)
            stops = self._stops.torque(q, qd) * free
        found = self._hybrid(q, qd, given + stops, wrench, base, self._drives.of(self._mech, k))
        return np.stack([found.qdd, found.tau - stops])


class Following(Driven, Switching):
    """A block beside a plant whose drive changes, which a signal at its port `select` tells of.

    With one drive it has no such port, and stands beside any other plant.
    """

    def _take(
        self, mech: Mechanism, drives: Mapping[str, Any] | None, wrench: bool, base: bool = False
    ) -> tuple[DriveSet, ports.Drive]:
        """Return the drives and the ports that they need, the first of them the third of the block."""
        among = DriveSet(mech, drives)
        return among, ports.Drive(mech, wrench, 2, base, drives is not None, among.torque, among.active)

    def _decided(self, u: Sequence[Any]) -> Any:
        return np.clip(nearest_level(self._chosen(u), 1.0), 0.0, len(self._drives) - 1.0)

    def _margin(self, t: float, u: Sequence[Any]) -> Any:
        return room_in_level(self._chosen(u), 1.0, self._mode)

    def _number(self, u: Sequence[Any]) -> Any:
        """Return the number of the present drive."""
        return self.mode(u) if self._locate else 0


class Changing(Driven):
    """A plant whose drive a signal changes, or a command between two steps."""

    _mode = _waiting = 0.0
    _wanted = 0
    #: When a drive was entered last, and the state before.
    last_entered: tuple[float, Array | None] = (-np.inf, None)
    _changes = False
    #: What was chosen since the last run, or since the block was made.
    _between: int | None = None
    _chosen_before = False

    def _take_drives(self, among: DriveSet, drive: Any, select: bool, locking: Any) -> None:
        """Keep the drives, that which a run begins in, and how another one is chosen and joints are locked."""
        for what, given in (("select", select), ("drive", drive is not None and among.names == ("",))):
            if given and len(among) == 1:
                raise InvalidValue(f"{what}: there is one drive only; give several as drives={{name: {{...}}, ...}}")
        self._drives, self._by_signal = among, select
        self._locking = str(one_of(locking, "locking", LOCKINGS))
        self._first = 0 if drive is None else among.number(drive)
        self._mode, self._wanted = float(self._first), self._first

    def __getattr__(self, name: str) -> Any:
        """Return the port or the method `select`, or what bdsim knows."""
        if name == "select" and len(self.__dict__.get("_drives", ())) > 1 and not self._by_signal:
            return self._select
        if name == "select" and len(self.__dict__.get("_drives", ())) == 1:
            raise UnknownAttribute(
                f"block {ports.label(self)!r}: has one drive, so that there is none to select; give several as "
                "drives={name: {...}, ...}"
            )
        return super().__getattr__(name)

    if TYPE_CHECKING:

        def select(self, drive: str | int) -> None:
            """Choose another drive: at once during a run, or for the runs that follow."""

    def _select(self, drive: str | int) -> None:
        """Do what `select` says, which is the method of this name or, with ``select=True``, the port."""
        self._wanted = self._drives.number(drive)
        if self._changes:
            self._waiting = 1.0
        else:
            self._first, self._chosen_before = self._wanted, True

    def compile(self) -> None:
        """Prepare for wiring; what is chosen from now on is for the next run."""
        super().compile()  # type: ignore[misc]
        self._changes = False

    @property
    def next_first_drive(self) -> int:
        """The drive that the next run begins in: what was chosen too late for the last one is for this."""
        return self._wanted if self._waiting else self._first

    def _begin_drives(self, simstate: Any) -> None:
        """Begin a run in the first drive; let it look for where another one is chosen."""
        first = self.next_first_drive
        chosen = self._chosen_before or (self._changes and self._waiting)
        self._between, self._chosen_before = self._wanted if chosen else None, False
        self._first = self._wanted = first
        self._mode = float(first)
        self._waiting = 1.0 if self._drives.locked[first].any() else 0.0  # what moves stops at the start
        self.last_entered = (-np.inf, None)
        self._changes = len(self._drives) > 1 and can_locate(self, simstate)  # type: ignore[arg-type]
        if self._changes:
            Crossing(
                self, simstate, self._drive_margin, self._change, signals=self._by_signal, decided=True,
                reset=self._enter, first=True, tangents=self._entered_tangents, told=self._present_drive,
            )  # type: ignore[arg-type]  # fmt: skip

    def _drive_margin(self, t: float, u: Any) -> Any:
        """Fall below zero where the signal means another drive than that of now, or one is to be entered."""
        room = room_in_level(self._chosen(u), 1.0, self._mode) if self._by_signal else 1.0
        return room - 2.0 * self._waiting

    def _change(self, t: float) -> None:
        if self._by_signal:
            self._wanted = self._drives.nearest(float(self._chosen(self.inport_values)), self._mode)  # type: ignore[attr-defined]
        self._mode, self._waiting = float(self._wanted), 0.0

    def _present_drive(self) -> str:
        return f"drive {self._drives.names[self._wanted]}"

    def _enter(self, t: float, x: Array) -> None:
        """Write the rates with which the present drive is entered; keep those before."""
        n, before = self._mech.n, np.array(x)
        x[n:] = self._drives.entered(self._mech, self._wanted, x[:n], x[n:], self._locking)
        self.last_entered = t, before

    def _entered_tangents(self, t: float, x: Array, tangents: Array) -> Array:
        """Return derivatives of the state with which the present drive is entered."""
        return self._drives.entered_tangents(self._mech, self._wanted, x, tangents)


def _checked(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidType(
            f"drives: expected a dict of drives by name, as {{'free': {{}}, 'held': {{'locked': ['elbow']}}}}, "
            f"got {shown(given)}"
        )
    if not given:
        raise InvalidValue("drives: there are none; leave it out for the mechanism's own drive alone")
    for name, content in given.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidType(f"drives: expected names of drives, got {shown(name)}")
        if not isinstance(content, Mapping):
            raise InvalidType(f"drive {name!r}: expected a dict of {' and '.join(_KEYS)}, got {shown(content)}")
        for key in content:
            option(key, f"drive {name!r}: key", _KEYS)
    return given


def _read(mech: Mechanism, name: str, content: Mapping[str, Any]) -> tuple[Mechanism, Mask]:
    """Return the mechanism in a drive, in which locked joints are active, and the coordinates that are locked."""
    held = np.zeros(mech.n, dtype=bool)
    for joint in entries(content.get("locked", ()), f"drive {name!r}: locked"):
        held[mech.joint_indices(joint)] = True
    if "active" in content:
        own = mech.with_drive(active=entries(content["active"], f"drive {name!r}: active"))
        both = [mech.names[k] for k in np.flatnonzero(held & own.active_mask)]
        if both:
            raise InvalidValue(f"drive {name!r}: joint {both[0]!r} is both active and locked; choose one")
    else:
        own = mech.with_drive(active=[mech.names[k] for k in np.flatnonzero(mech.active_mask & ~held)])
    still = [mech.names[k] for k in np.flatnonzero(held)]
    motors = [joint for joint in mech.names if joint in own.actuated or joint in still]
    active = [joint for joint in mech.names if joint in own.active or joint in still]
    return own.with_drive(active=active, actuated=motors), held
