"""Blocks of kinematics: where a link is, how it moves, and the joints that bring it somewhere."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from bdsim.components import FunctionBlock
from numpy.typing import ArrayLike

from cstormpy import checks, lie
from cstormpy.arguments import option
from cstormpy.arrays import Array, as_floats
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.dynamics.inverse_kinematics import tool_pose
from cstormpy.errors import InvalidType, ShapeError
from cstormpy.mechanism import Mechanism, as_mechanism

FRAMES = ("body", "base", "aligned")
"""In which frame a twist may be asked for."""
REMEMBERED = 256
"""Number of answers that IKINE keeps for a solver that goes back in time."""


class Kinematics(bases.Mechanical, FunctionBlock):
    r"""Pose, velocity, Jacobian and position of a link, or of a tool on it.

    - input q (ndarray(n)): position of every joint [rad, m]
    - input qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - input qdd (ndarray(n)): acceleration of every joint [rad/s², m/s²]; with ``acceleration=True``
    - output pose (ndarray(4, 4)): pose of the frame in the base's
    - output velocity (ndarray(6)): its twist, angular before linear [rad/s, m/s]
    - output jacobian (ndarray(6, n)): its Jacobian
    - output position (ndarray(3)): position of its origin in the base's frame, the last column of the pose [m]
    - output acceleration (ndarray(3)): acceleration of its origin in the base's axes [m/s²]; with ``acceleration=True``

    .. math::

        T = T_{0,\mathrm{link}}(q) \, C, \qquad V = (\omega, v) = J(q) \dot{q}

    where C is the pose of the tool in the link's frame, 1 without a tool. The twist is that of the frame T, and
    ``frame`` says as seen from where:

    - ``"body"``: in its own axes, about its own origin, as everywhere in cstormpy;
    - ``"base"``: in the base's axes, of the body's point at the base's origin: :math:`\mathrm{Ad}_T V`;
    - ``"aligned"``: in the base's axes, about its own origin: v is the rate of ``position``.

    Tunable is ``mech``.

    :seealso: :class:`IKine`
    """

    nin = 2
    nout = 4
    inlabels = ("q", "qd")
    outlabels = ("pose", "velocity", "jacobian", "position")

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        link: str | int = -1,
        frame: str = "body",
        tool: ArrayLike | None = None,
        acceleration: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param link: name or index of the link; the last one unless given, defaults to -1
        :type link: str or int
        :param frame: where the velocity is seen from, one of: 'body' [default], 'base', 'aligned'
        :type frame: str
        :param tool: a point, or the pose of a frame, in the link's frame; the link's own unless given
        :type tool: array_like, optional
        :param acceleration: whether there are a port for accelerations and the output of one, defaults to False
        :type acceleration: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        self._link = ports.link(link, mechanism)
        self._frame = option(frame, "frame", FRAMES)
        self._tool = _tool(tool)
        more = self._accelerates = ports.flag(acceleration, "acceleration")
        names = (*self.inlabels, *["qdd"] * more), (*self.outlabels, *["acceleration"] * more)
        super().__init__(**ports.options(type(self), blockargs, *names))
        n = self._n = mechanism.n
        self._widths, self._parts = (
            ((n,) * (2 + more), ((4, 4), 6, (6, n), *[3] * (1 + more))),
            (mechanism.names,) * (2 + more),
        )
        self._begin(mechanism, "mech")

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return pose, velocity, Jacobian and position, and the acceleration where it is wanted."""
        q, qd = self._motion(u)
        pose = self._ask(u, self._mech.forward_kinematics, q)[self._link]
        J = self._ask(u, self._mech.jacobian, q, self._link)
        if self._tool is not None:
            carried, into_tool = self._tool
            pose, J = pose @ carried, into_tool @ J
        if self._frame != "body":
            R, p = pose[:3, :3], pose[:3, 3]
            turn, slide = R @ J[:3], R @ J[3:]
            if self._frame == "base":  # the velocity of the point of the body that is at the base's origin
                slide = slide + np.cross(p, turn.T).T
            J = np.concatenate([turn, slide])
        found = [pose, J @ qd, J, pose[:3, 3].copy()]
        if self._accelerates:
            qdd = ports.vector(self, 2, u[2], self._n, self._parts[2])
            point = np.zeros(3) if self._tool is None else self._tool[0][:3, 3]
            found.append(self._mech.point_acceleration(q, qd, qdd, self._link, point))
        return found


class IKine(bases.Mechanical, FunctionBlock):
    r"""Joint positions that bring a link, or a tool on it, to a pose.

    - input pose (ndarray(4, 4)): where the frame is to be, in the base's frame
    - output q (ndarray(n)): position of every joint [rad, m]; of the nearest pose found where the target is out of
      reach
    - output reached (float): 1 where the target is reached, 0 where not

    .. math::

        T_{0,\mathrm{link}}(q) \, C = T

    in the directions that ``mask`` names, within the limits of the joints; C is the pose of the tool in the link's
    frame.

    With ``follow`` the search begins at the answer that was found last *before* the present time; from ``q0`` if there
    is none; answers of later times, of a step that the solver took back, are forgotten. So an answer depends on the
    times that a solver visited, and not on how often, and on a moving target the joints never jump to another branch:
    what is found at one time is the same at each call, to the tolerance. Only a mechanism with more joints than
    directions asked for has a choice there, which it then makes along the path, by the times visited. Without
    ``follow`` every search begins at ``q0``: a function of the pose alone, which may jump.

    The first search of a run tries up to ``starts`` starts, the ones that follow an answer only that one.

    :seealso: :class:`Kinematics`
    """

    nin = 1
    nout = 2
    inlabels = ("pose",)
    outlabels = ("q", "reached")

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        link: str | int = -1,
        q0: ArrayLike | None = None,
        mask: str | list[bool] = "pose",
        tool: ArrayLike | None = None,
        limits: bool = True,
        follow: bool = True,
        starts: int = 64,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param link: name or index of the link; the last one unless given, defaults to -1
        :type link: str or int
        :param q0: where the first search begins; zeros unless given
        :type q0: array_like, optional
        :param mask: which directions count: pose, position, orientation, planar, or six times true or false for
            rotation about and translation along the target's axes, defaults to 'pose'
        :type mask: str or list
        :param tool: a point, or the pose of a frame, in the link's frame; the link's own unless given
        :type tool: array_like, optional
        :param limits: whether the position limits of the joints and the largest angles of balls bind, defaults to True
        :type limits: bool
        :param follow: whether a search begins at the answer before it, defaults to True
        :type follow: bool
        :param starts: how many starts the first search tries at most, defaults to 64
        :type starts: int
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        self._link = ports.link(link, mechanism)
        self._q0 = ports.coordinates(q0, mechanism, "q0")
        self._follow = ports.flag(follow, "follow")
        held = _tool(tool)
        self._search: dict[str, Any] = {
            "tool": None if held is None else held[0],
            "mask": mask,
            "limits": ports.flag(limits, "limits"),
        }
        self._starts = checks.count(starts, "starts")
        mechanism.inverse_kinematics(self._link, np.eye(4), self._q0, starts=1, iterations=1, **self._search)  # refuses
        super().__init__(**ports.options(type(self), blockargs))
        self._n = mechanism.n
        self._widths, self._parts = (((4, 4),), (self._n, 1)), ((),)
        self._found: deque[tuple[float, Array]] = deque(maxlen=REMEMBERED)
        self._begin(mechanism, "mech")

    def start(self, simstate: Any) -> None:
        """Forget the answers of the run before."""
        super().start(simstate)
        self._found.clear()

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return the joints' positions and whether the pose is reached."""
        pose = ports.matrix(self, 0, u[0], (4, 4), "a pose")
        found = self._found
        while found and found[-1][0] >= t:
            found.pop()
        first = not (found and self._follow)
        seed, starts = (self._q0, self._starts) if first else (found[-1][1], 1)
        search = self._mech.inverse_kinematics
        answer = self._ask(u, search, self._link, pose, seed, starts=starts, **self._search)
        if self._follow:
            found.append((float(t), answer.q))
        return [answer.q.copy(), float(answer.reached)]

    def memory(self) -> dict[str, float | list[float] | str]:
        """Return the times and the answers that later searches begin at."""
        return {
            "times": [time for time, _ in self._found],
            "answers": [float(number) for _, q in self._found for number in q],
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take the times and the answers back.

        Raises
        ------
        InvalidType, ShapeError
            If it is not what `memory` returned for as many joints.
        """
        try:
            times, answers = as_floats(memory["times"], "times"), as_floats(memory["answers"], "answers")
        except (KeyError, TypeError):
            raise InvalidType(f"{ports.label(self)}: expected what memory() returned, times and answers") from None
        if times.ndim != 1 or answers.shape != (times.size * self._n,):
            raise ShapeError(f"{ports.label(self)}: expected {self._n} numbers for each time, got {answers.shape}")
        rows = answers.reshape(times.size, self._n)
        self._found = deque(zip(times.tolist(), rows, strict=True), maxlen=REMEMBERED)


def _tool(tool: ArrayLike | None) -> tuple[Array, Array] | None:
    """Return the pose of a tool's frame in the link's, and what brings twists of the link there."""
    if tool is None:
        return None
    pose = tool_pose(tool)
    return pose, lie.Ad(lie.inverse(pose))
