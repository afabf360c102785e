"""Cuts: loops whose forces are unknowns of the search (Xiang et al. 2008, section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import is_single, own_arrays
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.loops.assembly import independent_rows, regular_posture, singular
from cstormpy.loops.closure import closure_of, owners
from cstormpy.loops.projection import project
from cstormpy.optimal.loop_forces import LoopForces
from cstormpy.optimal.samples import Array

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Cut:
    """A loop that is cut: its force and moment are unknowns of the search, on splines with the knots of the joints.

    The torques of the open chain then bear them, and a joint without motor must be free of torque, as an equation.

    Parameters
    ----------
    loop : str
        Name of the loop, or of a constraint of the mechanism.
    play : float, or sequence of floats, (low, high) or None
        How far apart its ends may be, for all closed directions or for each [rad, m]: 0, as unless given, closes it,
        Xiang et al. 2008, (38a); a number v lets it stay within (-v, v), (38b); None leaves a direction open, or one
        side of a pair. What else g(r_n) <= 0 is to say stands in the constraints of the problem.

    Examples
    --------
    A pin with a clearance of 1 mm along x and y, and a tip that may lift off but not go below:

    >>> Cut("pin", play=1e-3), Cut("contact", play=[None, (0, None)])
    (Cut(loop='pin', play=0.001), Cut(loop='contact', play=[None, (0, None)]))
    """

    loop: str
    play: Any = 0.0

    def __post_init__(self) -> None:
        """Keep bounds of its own."""
        object.__setattr__(self, "play", own_arrays(self.play))

    def bounds(self, count: int) -> tuple[Array, Array]:
        """Return the bounds of φ in each of its closed directions, (count,) each."""
        given = [self.play] * count if self.play is None or is_single(self.play) else list(self.play)
        if len(given) != count:
            raise ShapeError(f"cut {self.loop!r}: play: expected {count} entries, one per direction, got {len(given)}")
        pairs = [self._pair(entry) for entry in given]
        return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])

    def _pair(self, entry: Any) -> Bounds:
        what = f"cut {self.loop!r}: play"
        if entry is None:
            return -np.inf, np.inf
        if is_single(entry):
            wide = checks.nonnegative(entry, what)
            return -wide, wide
        if len(entry) != 2:
            raise InvalidValue(f"{what}: expected a number, a pair (low, high) or None for a direction, got {entry!r}")
        low, high = (
            open_end if e is None else checks.real(e, what)
            for e, open_end in zip(entry, (-np.inf, np.inf), strict=True)
        )
        if low > high:
            raise InvalidValue(f"{what}: the lower bound {low:g} is above the upper one {high:g}")
        return low, high


def read_cuts(mech: Mechanism, given: Any) -> dict[str, Cut]:
    """Return the cuts by the names of their loops, from names, "all", or `Cut`."""
    known = [loop.name for loop in mech.loops]
    if isinstance(given, str) and given == "all" and "all" not in known:
        given = known
    if isinstance(given, (str, Cut)):
        given = [given]
    if not isinstance(given, Sequence):
        raise InvalidType(f"cuts: expected names of loops or a list of Cut, got {shown(given)}")
    found: dict[str, Cut] = {}
    for entry in given:
        if not isinstance(entry, (str, Cut)):
            raise InvalidType(f"cuts: expected names of loops or Cut, got {shown(entry)}")
        cut = Cut(entry) if isinstance(entry, str) else entry
        option(cut.loop, "cuts: loop", known)
        if cut.loop in found:
            raise InvalidValue(f"cuts: loop {cut.loop!r} is named twice")
        found[cut.loop] = cut
    return found


#: What helps where the motion does not determine the forces of the loops.
UNKNOWN_FORCES = "make them unknowns of the search: cuts='all'"


def loop_forces(mech: Mechanism, cuts: dict[str, Cut], start: Array, advice: str = UNKNOWN_FORCES) -> LoopForces | None:
    """Return how the loops share loads, None where there are none; `start` (n,) is a posture, NaN where not known.

    Constraints that depend on others carry nothing. `advice` is given where the motion does not determine forces.
    """
    if not mech.loops:
        return None
    of, rows = owners(mech), independent_rows(mech)
    cut = np.array([k for k in rows if of[k] in cuts], dtype=np.intp)
    rest = np.array([k for k in rows if of[k] not in cuts], dtype=np.intp)
    if len(rest):
        _refuse_free(mech, rest, start, advice)
    return LoopForces(mech, cut, rest)


def _refuse_free(mech: Mechanism, rest: NDArray[np.intp], start: Array, advice: str) -> None:
    """Refuse loops that do not carry what joints without motor need, anywhere or where the motion begins."""
    idle = ~mech.actuated_mask

    def not_carried(q: Array) -> int:
        A = closure_of(mech, q[None]).A[0][np.ix_(rest, idle)]
        return int(idle.sum()) - int(np.linalg.matrix_rank(A, tol=1e-9)) if idle.any() else 0

    if free := not_carried(regular_posture(mech)):
        raise InvalidValue(
            f"problem: {free} freedom(s) of the mechanism have no actuator, so that its motion does not determine the "
            f"forces of its loops; {advice}"
        )
    known = np.isfinite(start)
    if not known.any():
        return
    try:
        q, _ = project(mech, np.nan_to_num(start), hold=[mech.names[k] for k in np.flatnonzero(known)])
    except InvalidValue:  # which whoever looks at the ends says better
        return
    if not_carried(q):
        text = singular(mech, closure_of(mech, q[None]).A[0], None) or "the motors do not hold the mechanism there"
        raise InvalidValue(
            f"problem: start: {text}; the motion does not determine the forces of the loops there: begin beside it, or "
            f"{advice}"
        )
