"""Links: rigid bodies with a frame, an inertia, and the joint that connects them to their parent."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, shown
from cstormpy.linkage.joints import Fixed, Joint
from cstormpy.linkage.shapes import Shape, check_shapes
from cstormpy.values import Value, frozen

INERTIA_TOLERANCE = 1e-9
"""By how much of its trace an inertia may be unsymmetric, indefinite or against the triangle inequality."""


class Link(Value):
    """A rigid body, its frame, and the joint that carries it.

    Parameters
    ----------
    name : str
        Name of the link, unique in a mechanism.
    parent : str, optional
        Name of the link that carries this one; None is the base.
    joint : Joint, optional
        What the link does relative to its parent; `Fixed()` unless said.
    pose : array_like, (4, 4) or (3,), optional
        Pose M of the link's frame in the parent's frame at q = 0; a point is that of a frame with the parent's axes, as
        `cstormpy.lie.make_pose` makes others. The identity unless said.
    mass : float
        Mass [kg], >= 0.
    com : array_like, (3,)
        Centre of mass in the link's frame [m].
    inertia : array_like, (3, 3) or (3,)
        Inertia about the centre of mass, in the axes of the link's frame [kg m^2]; three numbers are its diagonal. An
        inertia without a mass is an idealised rotor, a mass without an inertia a point mass.
    allow_impossible : bool
        Keep an inertia that no body can have, as measured ones often are: it need only be finite and symmetric.
    shapes : iterable of Shape
        What it is drawn with, in place of lines between its joints; the dynamics do not know of them.

    Raises
    ------
    InvalidValue, ShapeError, NonFinite, InvalidType
        Naming the link: a negative mass; an inertia that is not symmetric, not positive semi-definite or that breaks
        the triangle inequality by more than 1e-9 of its trace; a pose that is not a rigid transform; NaN.

    Examples
    --------
    >>> from cstormpy.mechanism import Revolute
    >>> Link("rod", joint=Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0), inertia=np.diag([0, 1 / 12, 1 / 12]))
    Link('rod', joint=Revolute((0, 0, 1)), mass=1, com=(0.5, 0, 0))
    >>> Link("rod", mass=-1.0)
    Traceback (most recent call last):
    ...
    cstormpy.errors.InvalidValue: link 'rod': mass: must not be negative, got -1
    """

    _fields = ("name", "parent", "joint", "pose", "mass", "com", "inertia", "allow_impossible", "shapes")
    name: str
    parent: str | None
    joint: Joint
    pose: Array
    mass: float
    com: Array
    inertia: Array
    allow_impossible: bool
    shapes: tuple[Shape, ...]

    def __init__(
        self,
        name: str,
        parent: str | None = None,
        joint: Joint | None = None,
        pose: ArrayLike | None = None,
        mass: float = 0.0,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike | None = None,
        *,
        allow_impossible: bool = False,
        shapes: Iterable[Shape] = (),
    ) -> None:
        named = checks.name(name, "link name")
        where = f"link {named!r}"
        if joint is not None and not isinstance(joint, Joint):
            raise InvalidType(f"{where}: joint: expected a joint, as Revolute((0, 0, 1)), got {shown(joint)}")
        if not isinstance(allow_impossible, bool):
            raise InvalidType(f"{where}: allow_impossible: expected True or False")
        self._set(
            name=named,
            parent=None if parent is None else checks.name(parent, f"{where}: parent"),
            joint=Fixed() if joint is None else joint,
            pose=checks.frame_pose(pose, f"{where}: pose"),
            mass=checks.nonnegative(mass, f"{where}: mass"),
            com=checks.array(com, (3,), f"{where}: com"),
            inertia=_inertia(np.zeros((3, 3)) if inertia is None else inertia, f"{where}: inertia", allow_impossible),
            allow_impossible=allow_impossible,
            shapes=check_shapes(shapes, f"{where}: shapes"),
        )
        x, y, z = self.com.tolist()
        if not math.isfinite(self.mass * (1.0 + x * x + y * y + z * z) + float(np.abs(self.inertia).max())):
            raise NonFinite(f"{where}: com: is so far away that the inertia about the link's frame overflows")

    @property
    def spatial_inertia(self) -> Array:
        """Inertia J (6, 6) of (ω, v) at the origin of the link's frame, (19) of Sohl and Bobrow; read-only."""
        m, (x, y, z) = self.mass, self.com
        r = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        J = np.empty((6, 6))
        with np.errstate(over="ignore", invalid="ignore"):  # the constructor refuses what overflows
            J[:3, :3] = self.inertia - m * (r @ r)
            J[:3, 3:] = m * r
            J[3:, :3] = -m * r
            J[3:, 3:] = m * np.eye(3)
        return frozen(J)

    @property
    def joint_name(self) -> str:
        """Name by which the mechanism calls the joint: its own, or else the link's."""
        return self.name if self.joint.name is None else self.joint.name

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        if self.parent is not None:
            shown.append(f"parent={self.parent!r}")
        shown.append(f"joint={self.joint!r}")
        if self.mass:
            shown.append(f"mass={self.mass:g}")
        if self.com.any():
            shown.append("com=(" + ", ".join(f"{c:.6g}" for c in self.com) + ")")
        return f"Link({', '.join(shown)})"


def _inertia(value: ArrayLike, what: str, allow_impossible: bool) -> Array:
    """Return a symmetric inertia that a body can have."""
    given = real_array(value, what, (3, 3), (3,))
    inertia = frozen(np.diag(given) if given.ndim == 1 else given)
    scale = float(np.abs(inertia).max())
    if scale == 0.0:
        return inertia
    unit = inertia / scale  # so that no square overflows
    if np.abs(unit - unit.T).max() > INERTIA_TOLERANCE:
        raise InvalidValue(f"{what}: is not symmetric")
    if not np.array_equal(inertia, inertia.T):
        inertia = frozen(0.5 * inertia + 0.5 * inertia.T)
    if allow_impossible:
        return inertia
    small, middle, large = np.linalg.eigvalsh(0.5 * (unit + unit.T)).tolist()
    slack = INERTIA_TOLERANCE * (small + middle + large)
    moments = ", ".join(f"{scale * m:.6g}" for m in (small, middle, large))
    if small < -slack:
        raise InvalidValue(f"{what}: is not positive semi-definite, its principal moments are {moments}")
    if large > small + middle + slack:
        raise InvalidValue(
            f"{what}: breaks the triangle inequality, its principal moments are {moments} and no body has one "
            "above the sum of the two others; allow_impossible=True keeps it"
        )
    return inertia
