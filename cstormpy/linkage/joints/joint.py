"""Joints: what a link may do relative to its parent, said once for every algorithm, file, table and drawing.

A joint adds a range of `dof` coordinates to q. Its motion is that of its `freedoms`, joints of one coordinate that
follow each other from the parent to the link, all given in the link's own frame at q = 0: the link's pose in its
parent's frame is M exp(S_1 q_1) exp(S_2 q_2) …, with M the link's `pose`. Nothing outside of this package asks a joint
for its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import checks
from cstormpy.errors import InvalidValue
from cstormpy.values import Value, frozen

if TYPE_CHECKING:
    from cstormpy.linkage.joints.one_dof import OneDofJoint

Array = NDArray[Any]
J = TypeVar("J", bound="Joint")


class Symbol(NamedTuple):
    """The drawing of a joint.

    Attributes
    ----------
    mark : {"", "pin", "slider", "ball"}
        Its sign: none, a disc (in space a drum along the axis), a carriage, or a disc seen from all sides.
    rail : bool
        Whether the way along the axis is drawn.
    support : bool
        Whether the sign of a fixed support is drawn where the base carries it.
    """

    mark: str = ""
    rail: bool = False
    support: bool = True

    @property
    def stands(self) -> bool:
        """True where the base is drawn to lead to it: it does not carry what moves freely."""
        return self.support or self.rail


class _Origin:
    """The origin (3,) of the link's frame, for joints that have no point of their own.

    As an array `help` would show NumPy's pages on arrays, twice as long as those of the joint.
    """

    _zeros = frozen(np.zeros(3))

    def __get__(self, joint: Joint | None, kind: type[Joint]) -> Any:
        return self if joint is None else self._zeros


class Joint(Value):
    """Base of all joints: a name, and what the joint knows of itself.

    Attributes
    ----------
    name : str or None
        A joint without a name is called by the name of the link that it moves.
    kind : str
        Its type in print and in files, as "revolute".
    required : tuple of str
        Fields without a default.
    shapes : mapping
        Shapes of the fields that are arrays.
    perpendicular : tuple of str
        Fields of directions that stay perpendicular to one another: no number of them changes alone.
    each : tuple of str
        Fields with an entry for each coordinate; one number stands for all.
    symbol : Symbol
        How it is drawn.
    max_angle : float or None
        The largest angle of its rotation vector [rad], if it has one and that is limited.
    point : ndarray, (3,)
        Where it is, in the link's own frame; zeros unless it says so.
    """

    kind: ClassVar[str]
    required: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    perpendicular: ClassVar[tuple[str, ...]] = ()
    each: ClassVar[tuple[str, ...]] = ()
    symbol: ClassVar[Symbol] = Symbol()
    name: str | None
    max_angle: float | None = None
    point: NDArray[np.float64] = _Origin()  # type: ignore[assignment]

    @property
    def freedoms(self) -> tuple[OneDofJoint, ...]:
        """The joints of one coordinate that make the motion, from the parent to the link; S in the link's frame."""
        raise NotImplementedError

    @property
    def dof(self) -> int:
        """Number of coordinates that the joint adds to q."""
        return len(self.freedoms)

    @property
    def balls(self) -> tuple[int, ...]:
        """Of each freedom its place 1, 2, 3 in a rotation vector that turns the link as a whole, or 0."""
        return (0,) * self.dof

    @property
    def parts(self) -> tuple[OneDofJoint, ...]:
        """The joints whose fields are this joint's parameters, one for each coordinate; none unless it holds some."""
        return ()

    @property
    def direction(self) -> NDArray[np.float64]:
        """The axis to draw (3,), in the link's frame; zeros if there is none."""
        return np.zeros(3)

    @property
    def start(self) -> NDArray[np.float64]:
        """The point (3,) of the joint that stays with the parent, in the link's frame at q = 0."""
        return self.point

    @property
    def end(self) -> NDArray[np.float64]:
        """The point (3,) of the joint that stays with the link, in the link's frame."""
        return self.point

    @property
    def in_urdf(self) -> tuple[str, Array | None, Array] | None:
        """Its type in a URDF, the axis (3,) that is told there, and the axes (3, 3) of its frame; None if none fits."""
        return self.freedoms[0].in_urdf if self.dof == 1 else None

    @property
    def in_mjcf(self) -> tuple[str, ...] | None:
        """Types of the joints that make it in a model of MuJoCo, one after the other; None if none fit."""
        kinds = [freedom.in_mjcf for freedom in self.freedoms]
        return None if None in kinds else tuple(kind for each in kinds if each is not None for kind in each)

    def turned(self, field: str, index: tuple[int, ...]) -> list[tuple[int, int, Array]]:
        """Return what a change of an entry of `shapes` does: (first, past the last freedom, the twist they follow).

        Screws S that follow a twist ξ, (6,) in the link's own frame, change by ad_ξ S per unit of the entry.
        """
        raise NotImplementedError

    def from_parent(self: J, pose: ArrayLike) -> J:
        """Return the same joint as a link has it, of one whose axes and point are given in the parent's axes.

        Its screws are Ad_{M⁻¹} S: of the two forms e^{Sq} M = M e^{S′q} in which Sohl and Bobrow (2001, 2.6) give a
        joint, a `Link` has the second.

        Parameters
        ----------
        pose : array_like, (4, 4)
            M, the link's pose in the parent's frame at q = 0.

        Raises
        ------
        InvalidValue
            Of a joint with a rotation vector, whose components are those in the link's own axes, if the pose turns.

        Examples
        --------
        A link whose frame stands 1 m along x, on a hinge about the parent's own z axis:

        >>> from cstormpy.mechanism import Revolute, Universal
        >>> pose = np.eye(4)
        >>> pose[0, 3] = 1.0
        >>> Revolute((0, 0, 1)).from_parent(pose)
        Revolute((0, 0, 1), point=(-1, 0, 0))
        >>> Universal(damping=0.1).from_parent(pose)
        Universal(point=(-1, 0, 0), damping=(0.1, 0.1))
        """
        return self._carried(checks.rigid_pose(pose, "pose"))

    def _carried(self: J, pose: Array) -> J:
        """Return the joint seen from a frame of this pose in the frame in which it is given."""
        raise InvalidValue(f"a {self.kind} joint is given in the link's own axes alone")

    def labels(self, name: str) -> tuple[str, ...]:
        """Return the names of the coordinates of a joint of this name: the name, or "name[0]", "name[1]".

        >>> from cstormpy.mechanism import Revolute, Universal
        >>> Revolute((0, 0, 1)).labels("elbow"), Universal().labels("wrist")
        (('elbow',), ('wrist[0]', 'wrist[1]'))
        """
        return (name,) if self.dof == 1 else tuple(f"{name}[{k}]" for k in range(self.dof))

    def motion(self, q: ArrayLike) -> Array:
        """Return exp(S_1 q_1) exp(S_2 q_2) …, (..., 4, 4), for q (..., dof); complex numbers are taken too."""
        q = np.asarray(q)
        X: Array = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
        for k, freedom in enumerate(self.freedoms):
            X = X @ freedom.displacement(q[..., k])
        return X

    def subspace(self, q: ArrayLike) -> Array:
        """Return S(q), (..., 6, dof): the twist of the link in its own frame, the parent at rest, is S q̇.

        Kim 2012, after (41): S_k = (T⁻¹ ∂T/∂q_k) as a vector.
        """
        q = np.asarray(q)
        columns: list[Array] = []
        X: Array = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
        for k in reversed(range(self.dof)):
            columns.insert(0, _seen_from(X, self.freedoms[k].screw))
            X = self.freedoms[k].displacement(q[..., k]) @ X
        return np.stack(columns, axis=-1) if columns else np.zeros((*q.shape[:-1], 6, 0))

    def subspace_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return Ṡ(q, q̇), (..., 6, dof), the derivative of `subspace` along q̇: Ṡ_k = S_k × Σ_{j > k} S_j q̇_j."""
        S, qd = self.subspace(q), np.asarray(qd)
        rates = np.zeros(np.broadcast_shapes(S.shape, (*qd.shape[:-1], 1, 1)), np.result_type(S, qd))
        for k in range(self.dof - 1):
            rates[..., k] = _bracket(S[..., k], np.einsum("...ij,...j->...i", S[..., k + 1 :], qd[..., k + 1 :]))
        return rates

    def details(self) -> list[str]:
        """Return what the table of a mechanism shows beside type and axis: what differs from the defaults."""
        return []

    def content(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, as they are written to files; limits as they are."""
        return {key: value for key, value in self._as_dict().items() if value is not None}

    def __repr__(self) -> str:
        shown = [f"name={self.name!r}"] if self.name is not None else []
        return f"{type(self).__name__}({', '.join(shown)})"


class Fixed(Joint):
    """A weld: the link does not move in its parent's frame, and adds nothing to q.

    Parameters
    ----------
    name : str, optional
        Name of the joint.

    Examples
    --------
    >>> Fixed().dof
    0
    """

    kind = "fixed"
    _fields = ("name",)

    def __init__(self, *, name: str | None = None) -> None:
        self._set(name=None if name is None else checks.name(name, "joint name"))

    @property
    def freedoms(self) -> tuple[OneDofJoint, ...]:
        """None."""
        return ()

    @property
    def in_urdf(self) -> tuple[str, Array | None, Array]:
        """A weld."""
        return "fixed", None, np.eye(3)

    def _carried(self: J, pose: Array) -> J:
        return self


def _seen_from(X: Array, screw: Array) -> Array:
    """Return Ad(X⁻¹) of a screw (ω, v), (..., 6), for poses X (..., 4, 4)."""
    Rt, p, w, v = np.swapaxes(X[..., :3, :3], -1, -2), X[..., :3, 3], screw[:3], screw[3:]
    omega = np.einsum("...ij,j->...i", Rt, w)
    return np.concatenate([omega, np.einsum("...ij,...j->...i", Rt, v + np.cross(w, p))], axis=-1)


def point_from(pose: Array, point: Array) -> Array:
    """Return a point as seen from a frame of this pose; zeros without a sign."""
    return pose[:3, :3].T @ (point - pose[:3, 3]) + 0.0


def turn_of_axis(axis: Array, rate: Array, point: Array) -> Array:
    """Return the twist, about a point, that a unit axis follows whose vector before it was normalised has a rate."""
    omega = np.cross(axis, rate)
    return np.concatenate([omega, np.cross(point, omega)])


def shift_of_point(k: int) -> Array:
    """Return the twist that an axis follows whose point moves along direction k."""
    return np.eye(6)[3 + k]


def _bracket(a: Array, b: Array) -> Array:
    """Return the Lie bracket ad_a b of twists (..., 6)."""
    w, v = a[..., :3], a[..., 3:]
    return np.concatenate([np.cross(w, b[..., :3]), np.cross(v, b[..., :3]) + np.cross(w, b[..., 3:])], axis=-1)
