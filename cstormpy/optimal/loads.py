"""External loads: forces and moments on links that keep their direction in the link, or in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.dynamics.border import link_index
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.mechanism import Mechanism, checks
from cstormpy.optimal.samples import Array

__all__ = ["Load", "add_turning", "read_loads", "turning", "wrenches"]


class Load:
    """A constant force and moment at a point of a link.

    Parameters
    ----------
    link : str or int
    force, moment : array_like, (3,)
        [N, N m].
    point : array_like, (3,)
        Where the force acts, in the link's frame [m].
    frame : {"world", "link"}
        In whose axes force and moment stay the same: a weight that is carried, or a thruster.

    Examples
    --------
    >>> Load("forearm", force=[0, -10, 0], point=[0.4, 0, 0])
    Load('forearm', force=[0.0, -10.0, 0.0], moment=[0.0, 0.0, 0.0], point=[0.4, 0.0, 0.0], frame='world')
    """

    def __init__(
        self,
        link: str | int,
        force: ArrayLike = (0.0, 0.0, 0.0),
        moment: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike = (0.0, 0.0, 0.0),
        frame: str = "world",
    ) -> None:
        if frame not in ("world", "link"):
            raise InvalidValue(f"frame: expected 'world' or 'link', got {frame!r}")
        self.link, self.frame = link, frame
        self.force = checks.array(force, (3,), f"force on link {link!r}")
        self.moment = checks.array(moment, (3,), f"moment on link {link!r}")
        self.point = checks.array(point, (3,), f"point of link {link!r}")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name).tolist()}" for name in ("force", "moment", "point"))
        return f"Load({self.link!r}, {shown}, frame={self.frame!r})"


def read_loads(mech: Mechanism, loads: Any) -> tuple[tuple[int, Load], ...]:
    """Return loads with the positions of their links."""
    if isinstance(loads, Load):
        loads = [loads]
    if not isinstance(loads, Sequence):
        raise InvalidType(f"loads: expected a list of Load, got a {type(loads).__name__}")
    found = []
    for k, load in enumerate(loads):
        if not isinstance(load, Load):
            raise InvalidType(f"loads[{k}]: expected a Load, got a {type(load).__name__}")
        found.append((link_index(mech, load.link, f"loads[{k}]"), load))
    return tuple(found)


def wrenches(mech: Mechanism, loads: Sequence[tuple[int, Load]], q: Array) -> Array:
    """Return the wrenches in the frames of all links, (N, 6 n_links), or one row where they do not depend on q."""
    in_space = any(load.frame == "world" for _, load in loads)
    poses = mech.forward_kinematics(q) if in_space else None
    rows = np.zeros((len(q) if in_space else 1, len(mech.links), 6))
    for link, load in loads:
        force, moment = _in_link(load, None if poses is None else poses[:, link, :3, :3])
        rows[:, link, :3] += moment + np.cross(load.point, force)
        rows[:, link, 3:] += force
    return rows.reshape(len(rows), -1)


def _in_link(load: Load, rotation: Array | None) -> tuple[Array, Array]:
    if load.frame == "link" or rotation is None:
        return load.force, load.moment
    return load.force @ rotation, load.moment @ rotation  # rows: Rᵀ f


def turning(loads: Sequence[tuple[int, Load]]) -> tuple[NDArray[np.int64], Array]:
    """Return the links (L,) of loads that keep their direction in space; their points, forces and moments, (L, 9)."""
    kept = [(link, load) for link, load in loads if load.frame == "world"]
    rows = [np.concatenate([load.point, load.force, load.moment]) for _, load in kept]
    return np.array([link for link, _ in kept], dtype=np.int64), np.array(rows).reshape(-1, 9)


def add_turning(mech: Mechanism, loads: Sequence[tuple[int, Load]], q: Array, to_q: Array) -> None:
    """Add to ∂τ/∂q, (N, n, n), what comes of loads that keep their direction in space while their link turns.

    In the link's frame f = Rᵀ f₀ changes by f × (J_ω δq); the kernels, for which a wrench is fixed to its link, have
    the rest. The motors carry −Jᵀ of the wrench.
    """
    in_space = [(link, load) for link, load in loads if load.frame == "world"]
    if not in_space:
        return
    poses = mech.forward_kinematics(q)
    for link, load in in_space:
        J = mech.jacobian(q, link)
        force, moment = _in_link(load, poses[:, link, :3, :3])
        d_force = np.cross(force[:, :, None], J[:, :3], axis=1)
        d_moment = np.cross(moment[:, :, None], J[:, :3], axis=1)
        d_moment += np.cross(load.point[None, :, None], d_force, axis=1)
        to_q -= J[:, :3].transpose(0, 2, 1) @ d_moment + J[:, 3:].transpose(0, 2, 1) @ d_force
