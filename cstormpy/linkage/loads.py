"""Loads on links from outside: forces and moments that keep their direction in space, or in their link."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cstormpy import checks
from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.values import ArgumentNames, frozen


class Load(metaclass=ArgumentNames):
    """A force and a moment at a point of a link, which do not turn with it.

    It stands wherever wrenches do: alone or in a list, beside entries (link, pose, wrench), as ``wrench=`` of the
    questions to a `Mechanism`, and in the loads of `optimal.Problem`. What it adds to the derivatives to q, since it
    keeps its direction in space while its link turns (a dead load), is in all of them.

    Parameters
    ----------
    link : str or int
        Name of the link, or its position in the links.
    force, moment : array_like, (3,) or (N, 3)
        [N, N m]; one for each sample of a batch where it is asked about with a batch.
    point : array_like, (3,)
        Where the force acts, in the link's frame [m]; it moves with the link.
    frame : {"world", "link"}
        In whose axes force and moment stay the same: a weight that is carried, or a thruster. The world's axes are
        those of the base, and "base" means the same.

    Examples
    --------
    >>> Load("forearm", force=[0, -10, 0], point=[0.4, 0, 0])
    Load('forearm', force=[0.0, -10.0, 0.0], moment=[0.0, 0.0, 0.0], point=[0.4, 0.0, 0.0], frame='world')

    The torque that carries it at the end of a level arm of two links, and how that changes with the shoulder's angle
    and with the elbow's:

    >>> from cstormpy.mechanism import library
    >>> mech, weight = library.xiang_two_link().with_gravity([0, 0, 0]), Load("forearm", [0, -10, 0], point=[0.4, 0, 0])
    >>> d = mech.inverse_sensitivity([np.pi / 6, 0], [0, 0], [0, 0], wrench=weight)
    >>> d.y.round(3), d.dy_dq.round(3)
    (array([6.928, 3.464]), array([[-4., -2.],
           [-2., -2.]]))
    """

    __slots__ = ("force", "frame", "link", "moment", "point")

    link: str | int
    force: Array
    moment: Array
    point: Array
    frame: str

    def __init__(
        self,
        link: str | int,
        force: ArrayLike = (0.0, 0.0, 0.0),
        moment: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike = (0.0, 0.0, 0.0),
        frame: str = "world",
    ) -> None:
        if not isinstance(frame, str) or frame not in ("world", "base", "link"):
            raise InvalidValue(f"frame: expected 'world' (or 'base', the same) or 'link', got {shown(frame)}")
        if not isinstance(link, str) and (isinstance(link, bool) or not isinstance(link, (int, np.integer))):
            raise InvalidType(f"link: expected the name of a link or its position, got {shown(link)}")
        self.link, self.frame = link, "link" if frame == "link" else "world"
        self.force = frozen(real_array(force, f"force on link {shown(link)}", (3,), ("N", 3)))
        self.moment = frozen(real_array(moment, f"moment on link {shown(link)}", (3,), ("N", 3)))
        self.point = checks.array(point, (3,), f"point of link {shown(link)}")

    @property
    def turns(self) -> bool:
        """True where it turns with its link."""
        return self.frame == "link"

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={_shown(getattr(self, name))}" for name in ("force", "moment", "point"))
        return f"Load({self.link!r}, {given}, frame={self.frame!r})"


def _shown(array: Array) -> str:
    return str(array.tolist()) if array.ndim == 1 else f"<{len(array)} vectors>"
