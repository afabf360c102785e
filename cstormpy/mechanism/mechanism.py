"""The mechanism as users have it: its data, and the methods that compute, read and write."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cstormpy.linkage import Linkage
from cstormpy.mechanism.component_values import is_entry, whole_values
from cstormpy.mechanism.dynamics_methods import DynamicsMethods
from cstormpy.mechanism.formats import Formats
from cstormpy.mechanism.kinematics_methods import KinematicsMethods
from cstormpy.mechanism.loop_methods import LoopMethods
from cstormpy.mechanism.sensitivity_methods import SensitivityMethods

if TYPE_CHECKING:
    from cstormpy.linkage.links import Link

M = TypeVar("M", bound="Mechanism")


class Mechanism(
    DynamicsMethods,
    SensitivityMethods,
    KinematicsMethods,
    LoopMethods,
    Formats,
    Linkage,
):
    """A branched mechanism: immutable, validated when made, compared by content.

    The coordinates q follow `links` as given, whatever their place in the tree; fixed joints add nothing. A joint is
    called by its own name, or else by the name of the link that it moves; the coordinate of a joint that has one is
    called like it, those of a joint that has several "wrist[0]", "wrist[1]" and so on.

    Its methods take one sample, arrays of shape (n,), or a batch, (N, n), and answer in kind. Common arguments:
    `wrench` acts on the links from outside: (n_links, 6) rows (moment, force) in each link's frame, one set for all
    samples or (N, n_links, 6); or a list of loads, each a `Load` or (link, pose of its frame in the link's or None,
    wrench). Rows and tuples turn with their link, a `Load` keeps its direction in space unless it says otherwise, and
    the derivatives to q are those of that. `base` is the motion (V0, dV0) of the base, each (6,) or (N, 6), in its own
    frame; `threads` is the most threads that share a batch, None for one per core. What is done before another thread
    wakes (about 0.3 ms) stays on one. Answers above some 30 MB come in fresh memory each time, which may cost half as
    much again: ask for less at once.

    Parameters
    ----------
    links : iterable of Link
        In the order of q. A parent may come later than its child.
    gravity : array_like, (3,)
        Acceleration of gravity in the base frame [m/s^2].
    actuated : iterable of str, optional
        Names of the joints that have a motor; all that move unless said. A joint is driven as a whole.
    active : iterable of str
        Names of the joints whose motion is prescribed (acceleration given, torque found); they must be actuated.
        All others are passive: torque given, acceleration found.
    loops : iterable of Loop, Coupling or Constraint
        What closes loops of the tree, and what a user's functions say of its coordinates. These, and what is said of
        them alone (kinematics, mass matrix, energy, `bias`, `gravity_load`), remain those of the tree; hybrid, inverse
        and forward dynamics are of the closed mechanism.

    Attributes
    ----------
    links : tuple of Link
    loops : tuple of Loop, Coupling and Constraint
    n : int
        Number of coordinates.
    names : tuple of str
        Names of the coordinates.
    freedoms : tuple of joints of one coordinate
        What moves along each coordinate: its unit, limits, damping and so on.
    ball_starts : tuple of int
        Where the rotation vectors of ball joints begin in q.
    gravity : ndarray, (3,)
    actuated, active, passive : tuple of str
        Names of coordinates in the order of q.
    actuated_mask, active_mask : ndarray of bool, (n,)
    parents : ndarray of int, (n_links,)
        Index of each link's parent, -1 for the base.
    joint_links : ndarray of int, (n,)
        Index of the link that coordinate k moves.
    memo : dict
        What others have computed from the mechanism and keep with it, as tables of kernels; no part of its content.

    Raises
    ------
    InvalidValue, ShapeError, NonFinite, InvalidType, UnknownName
        Naming the link or joint: a cycle, a name used twice, an unknown parent or joint, an active joint that is not
        actuated, no links, bad gravity.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Revolute
    >>> upper = Link("upper", None, Revolute((0, 0, 1), name="shoulder"), mass=1.0, com=(0.5, 0, 0))
    >>> fore = Link("fore", "upper", Revolute((0, 0, 1), name="elbow"), pose=(1, 0, 0), mass=0.5, com=(0.3, 0, 0))
    >>> mech = Mechanism([upper, fore], active=["elbow"])
    >>> mech, mech.gravity_load([0.0, 0.0])
    (<Mechanism of 2 links, n = 2: shoulder, elbow>, array([11.2815,  1.4715]))
    """

    def with_parameters(self: M, values: Mapping[str, Any]) -> M:
        """Return the mechanism with some of its numbers changed.

        Parameters
        ----------
        values : mapping
            New values by name: "<link>.mass", "<link>.com", "<link>.inertia", "<link>.pose", "<joint>.axis",
            "<joint>.point", "<joint>.pitch", "<joint>.damping", "<joint>.friction", "<joint>.friction_velocity",
            "<joint>.armature", "<joint>.stiffness", "<joint>.rest", "<joint>.limits", and "gravity". A joint of
            several coordinates has "<joint>.axes" and an array of each of the others, a composite one has those of its
            joints, as "<joint>[0].damping". Of a loop "<loop>.pose_a" and "<loop>.pose_b", of a coupling
            "<coupling>.ratio" and "<coupling>.offset". Single numbers of arrays are "<link>.com[0]",
            "<link>.inertia.xy", "<joint>.axis[2]", "gravity[1]" and the like.

        Raises
        ------
        UnknownName
            With the nearest spelling.
        InvalidValue, ShapeError, NonFinite, InvalidType
            As the constructors do.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> heavy = library.acrobot().with_parameters({"forearm.mass": 2.0, "elbow.damping": 0.0})
        >>> heavy.link("forearm").mass, heavy.joint("elbow").damping
        (2.0, 0.0)
        >>> heavy.with_parameters({"forearm.com[0]": 0.8}).link("forearm").com.tolist()
        [0.8, 0.0, 0.0]
        """
        if isinstance(values, Mapping) and any(map(is_entry, values)):
            values = whole_values(self, values)
        return super().with_parameters(values)

    def of_symbols(self, number: Callable[[str, int], Any], links: Callable[[], tuple[Link, ...]]) -> Mechanism:
        """Return it with symbols for its ordinary numbers, as `mechanism.symbolic.SymbolicMechanism` says."""
        from cstormpy.mechanism.symbolic import SymbolicMechanism

        return SymbolicMechanism(self, number, links)

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: a picture near q = 0, closed or with its branches apart, and a table."""
        from cstormpy.linkage.picture import image, spread, svg

        q = np.zeros(self.n) if self.loops else spread(self)
        with contextlib.suppress(Exception):  # what cannot be closed, perhaps by a user's function, is drawn open
            q = self.project(q)[0] if self.loops else q
        return f"<div>{image(svg(self, q), repr(self))}</div><pre>{html.escape(str(self))}</pre>"
