"""Poses, Jacobians and points of a mechanism, forward and inverse, as its methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.mechanism.methods import Methods

if TYPE_CHECKING:
    from cstormpy.dynamics.inverse_kinematics import InverseKinematics
    from cstormpy.dynamics.points import PointMotion


class KinematicsMethods(Methods):
    """The methods of `Mechanism` about where its links are; of a mechanism with loops they are those of its tree."""

    def forward_kinematics(self, q: ArrayLike, threads: int | None = 1) -> Array:
        """Return the poses of all links in the base's frame, (n_links, 4, 4) or (N, n_links, 4, 4)."""
        from cstormpy.dynamics.kinematics import forward_kinematics

        return forward_kinematics(self._self.tree, q, threads)

    def jacobian(self, q: ArrayLike, link: str | int, threads: int | None = 1) -> Array:
        """Return the body Jacobian of a link, (6, n) or (N, 6, n): its twist (ω, v) in its own frame is J q̇.

        With T and R, the pose and the rotation of the link, ``lie.Ad(T) @ J`` is the space Jacobian, and that of the
        link's origin in the base's axes, the geometric one, is ``lie.Ad(lie.make_pose(R, [0, 0, 0])) @ J``.

        Examples
        --------
        The velocity of the forearm's frame, half a metre from the shoulder, is that across the upper arm:

        >>> from cstormpy import lie
        >>> from cstormpy.mechanism import library
        >>> mech, q = library.planar_2r(), [np.pi / 2, 0.0]
        >>> R = mech.forward_kinematics(q)[1, :3, :3]
        >>> J = lie.Ad(lie.make_pose(R, [0, 0, 0])) @ mech.jacobian(q, "forearm")
        >>> J[3:5].round(12) + 0
        array([[-0.5,  0. ],
               [ 0. ,  0. ]])
        """
        from cstormpy.dynamics.kinematics import jacobian

        return jacobian(self._self.tree, q, link, None, threads)[0]

    def jacobian_rate(self, q: ArrayLike, qd: ArrayLike, link: str | int, threads: int | None = 1) -> Array:
        """Return the rate dJ/dt of the body Jacobian of a link, (6, n) or (N, 6, n)."""
        from cstormpy.dynamics.kinematics import jacobian

        return jacobian(self._self.tree, q, link, qd, threads)[1]

    def jacobian_derivative(self, q: ArrayLike, link: str | int, threads: int | None = 1) -> Array:
        """Return ∂J/∂q of the body Jacobian of a link, (6, n, n) or (N, 6, n, n): the last index is that of q."""
        from cstormpy.dynamics.kinematics import jacobian_derivative

        return jacobian_derivative(self._self.tree, q, link, threads)

    def point_velocity(self, q: ArrayLike, qd: ArrayLike, link: str | int, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
        """Return the velocity of a point of a link, (3,) or (N, 3), in the axes of the base at rest [m/s].

        The point is given in the link's frame [m].
        """
        from cstormpy.dynamics.points import point_velocity

        return point_velocity(self._self.tree, q, qd, link, point)

    def point_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        link: str | int,
        point: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Array:
        """Return the acceleration of a point of a link, (3,) or (N, 3), in the axes of the base at rest [m/s²].

        The point is given in the link's frame [m]; gravity is no part of it.
        """
        from cstormpy.dynamics.points import point_acceleration

        return point_acceleration(self._self.tree, q, qd, qdd, link, point)

    def point_motion(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        link: str | int,
        point: ArrayLike = (0.0, 0.0, 0.0),
    ) -> PointMotion:
        """Return position, velocity and acceleration of a point of a link, and their derivatives, in the base's axes.

        Parameters
        ----------
        q, qd, qdd : array_like, (n,) or (N, n)
            Position, rate and acceleration of every joint.
        link : str or int
            Name or position of the link.
        point : array_like, (3,)
            The point in the link's frame [m].

        Returns
        -------
        PointMotion
            With `position`, `velocity` and `acceleration`, each (3,) or (N, 3), and `dp_dq`, `dv_dq`, `dv_dqd`,
            `da_dq`, `da_dqd` and `da_dqdd`, each (3, n) or (N, 3, n).

        Examples
        --------
        The tip of a pendulum of 1 m that swings at 2 rad/s falls inwards at 4 m/s²:

        >>> from cstormpy.mechanism import library
        >>> m = library.pendulum().point_motion([0.0], [2.0], [0.0], "link1", [1.0, 0.0, 0.0])
        >>> m.velocity + 0, m.acceleration + 0, m.da_dqd.ravel() + 0
        (array([0., 2., 0.]), array([-4.,  0.,  0.]), array([-4.,  0.,  0.]))
        """
        from cstormpy.dynamics.points import point_motion

        return point_motion(self._self.tree, q, qd, qdd, link, point)

    def inverse_kinematics(
        self,
        link: str | int,
        pose: ArrayLike,
        q0: ArrayLike | None = None,
        *,
        tool: ArrayLike | None = None,
        mask: str | Sequence[bool] = "pose",
        limits: bool = True,
        path: bool = False,
        starts: int = 64,
        rng: np.random.Generator | int | None = None,
        tolerance: float | tuple[float, float] = 1e-10,
        length: float | None = None,
        iterations: int = 100,
    ) -> InverseKinematics:
        """Return coordinates near q0 that bring a link, or a tool on it, to a pose.

        Damped least squares on the exact body Jacobian, from q0 and, where that fails, from random starts, all of them
        at once. Only the joints between the base and the link move; of a mechanism with loops those also that they tie
        to these, and the postures close all loops.

        Parameters
        ----------
        link : str or int
            Name or position of the link.
        pose : array_like, (4, 4) or (N, 4, 4)
            The target, or N of them, in the base's frame.
        q0 : array_like, (n,) or (N, n), optional
            Where the search begins, for all targets or for each; zeros unless given. Joints that move the link are
            first brought inside of their limits; the others keep it. A path has one q0.
        tool : array_like, (3,) or (4, 4), optional
            What is to be at the target instead of the link's frame: a point, or the pose of a frame, in the link's.
        mask : {"pose", "position", "orientation", "planar"} or six bool
            Which directions count: rotation about and translation along x, y, z of the *target's* axes. "planar" is
            rotation about z and translation in x and y.
        limits : bool
            Whether the position limits of the joints and the largest angles of balls bind; if so, `q` never leaves
            them.
        path : bool
            Whether each target starts from the answer of the one before it; otherwise each is found for itself. With
            `starts=1` a path cannot jump to another branch.
        starts : int
            The most starts that are tried for a target, q0 included. Of several that are successful at the same time
            the one nearest to q0 is returned.
        rng : numpy.random.Generator or int, optional
            Draws the random starts: a generator or its seed; seed 0 unless given.
        tolerance : float or (float, float)
            For rotation [rad] and translation [m].
        length : float, optional
            How many metres count as much as a radian. Unless given, the way along the links' origins from the base to
            the frame, or the mechanism's length where that has none.
        iterations : int
            The most steps of a start, and again of the way to the nearest pose of a target out of reach.

        Returns
        -------
        InverseKinematics
            With `q`, `reached`, `error`, `iterations`, `starts`, `at_limit` and `message`. A target that is not
            reached raises no error: `reached` is False, `q` is the nearest pose that was found, in the sense of
            rotation² + (translation / length)², and `message` says how near that is and what stopped it.

        Raises
        ------
        UnknownName, InvalidValue, ShapeError, NonFinite, InvalidType
            Naming the argument, and the row.

        Notes
        -----
        Of 500 poses of `library.arm7` at random coordinates within its limits, and of as many of `library.puma560`,
        at least 99.5 % are reached, from q0 = 0 and from random ones:
        ``pytest tests/test_inverse_kinematics.py -k success``.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.planar_2r()
        >>> target = mech.forward_kinematics([0.3, 1.2])[1]
        >>> found = mech.inverse_kinematics("forearm", target, q0=[0.0, 0.5])
        >>> found.reached, found.q.round(6)
        (True, array([0.3, 1.2]))

        The tip of the forearm at a point, elbow up:

        >>> target = np.eye(4)
        >>> target[:3, 3] = 0.6, 0.5, 0.0
        >>> found = mech.inverse_kinematics("forearm", target, [0.0, -1.0], tool=[0.5, 0.0, 0.0], mask="position")
        >>> found.q.round(4)
        array([ 1.3692, -1.349 ])
        """
        from cstormpy.dynamics.inverse_kinematics import inverse_kinematics, tip_of
        from cstormpy.loops.inverse_kinematics import closed_tip

        return inverse_kinematics(
            self._self,
            link,
            pose,
            q0,
            tool=tool,
            mask=mask,
            limits=limits,
            path=path,
            starts=starts,
            rng=rng,
            tolerance=tolerance,
            length=length,
            iterations=iterations,
            prepare=closed_tip if self._self.loops else tip_of,
        )
