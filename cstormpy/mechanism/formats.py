"""Formats in which mechanisms come and go: JSON, tables of Denavit and Hartenberg, URDF, MJCF."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import ArrayLike

from cstormpy.reporting import Text

if TYPE_CHECKING:
    from cstormpy.mechanism.dh import DHTable
    from cstormpy.mechanism.mechanism import Mechanism


class Formats:
    """Mixin of the methods by which a mechanism is read and written."""

    @classmethod
    def from_dh(
        cls,
        table: Iterable[Any],
        convention: str = "standard",
        *,
        base: ArrayLike | None = None,
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        actuated: Iterable[str] | None = None,
        active: Iterable[str] = (),
    ) -> Mechanism:
        """Return the serial arm of a table of Denavit's and Hartenberg's parameters.

        Parameters
        ----------
        table : iterable
            A row for each link, from the base outwards: (theta, d, a, alpha), followed by "prismatic" where the joint
            is; or a dict with these four as keys (what is missing is 0), "type", "name" and "joint" (names of the link
            and its joint; "link1", "joint1" unless given), the link's "mass", "com" and "inertia" in the frame of the
            row, and the joint's "damping", "limits" and whatever else `Revolute` takes. Angles in rad, lengths in m.
            The coordinate is added to theta of a revolute joint and to d of a prismatic one.
        convention : {"standard", "modified"}
            Pose of a row's frame in the one before: Rz(theta) Tz(d) Tx(a) Rx(alpha), where the joint moves about z of
            the frame before (Paul, Corke, Xiang), or Rx(alpha) Tx(a) Rz(theta) Tz(d), where it moves about its own
            (Craig).
        base : array_like, (4, 4), optional
            Pose of frame 0 in the base's frame.
        gravity, actuated, active
            As of the constructor.

        Raises
        ------
        ShapeError, InvalidValue, NonFinite, InvalidType, UnknownName
            Naming the row, counted from 1.

        Examples
        --------
        The two-link manipulator of Xiang, Arora and Abdel-Malek (2008), Table 2:

        >>> from cstormpy.mechanism import Mechanism
        >>> rod = {"a": 0.4, "mass": 0.5, "com": (-0.2, 0, 0), "inertia": [[0, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]}
        >>> arm = Mechanism.from_dh([rod, rod], gravity=(0, -9.8062, 0))
        >>> arm.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
        array([3.92248, 0.98062])
        """
        from cstormpy.mechanism import dh

        return dh.from_dh(table, convention, base=base, gravity=gravity, actuated=actuated, active=active)

    def to_dh(self, convention: str = "standard") -> DHTable:
        """Return a serial arm as a table of Denavit's and Hartenberg's parameters.

        Link frames that are frames of the convention stay; others are laid on the common normals of the joints' axes,
        with centres of mass and inertias carried over. Either way ``Mechanism.from_dh(rows, convention, base=base)``,
        under the same gravity and with the same drive, has the same dynamics in the same coordinates.

        Returns
        -------
        DHTable
            `rows`, as `from_dh` takes them, and `base`, the pose of frame 0 in the base's frame.

        Raises
        ------
        InvalidValue
            Naming the joint or link that no table tells of: a fixed joint or a screw, a branch, axes so nearly parallel
            that their common normal is too far away.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> rows, base = library.puma560().to_dh()
        >>> [rows[2][key] for key in ("theta", "d", "a")]
        [0.0, 0.15005, 0.0203]
        """
        from cstormpy.mechanism.dh import to_dh

        return to_dh(cast("Mechanism", self), convention)

    @classmethod
    def from_urdf(
        cls,
        path_or_text: str | os.PathLike[str],
        floating: bool = False,
        *,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        actuated: Iterable[str] | None = None,
        active: Iterable[str] = (),
        mimic: str = "free",
    ) -> Mechanism:
        """Return the mechanism of a URDF, the robot description of ROS.

        Links, bodies in turned frames, revolute, continuous, prismatic, planar, floating and fixed joints are read,
        with damping and friction, and limits where a joint has one coordinate. A floating joint is a `Free` one, whose
        coordinates are the position of the link and a rotation vector; damping acts on its velocity and on its angular
        velocity. The root link is welded to the base; one named
        "world" without a body is the base itself. Coordinates follow the joints as they stand in the file. Joints that
        mimic others move on their own unless told, meshes, transmissions and whatever else the dynamics do not need are
        skipped, and inertias that no body has are kept: each is said in one line.

        Parameters
        ----------
        path_or_text : str or path
            The file, or its text.
        floating : bool
            The root link moves freely (`Free`, named as the link), in place of being welded to the base.
        gravity : array_like, (3,)
            In the base's frame, whose z points up by the custom of ROS [m/s^2].
        actuated, active
            As of the constructor, but that a floating joint, and a root that moves freely, has no motor unless said.
        mimic : {"free", "hold"}
            Whether joints that mimic others move on their own, or follow these by a `Coupling`, without motors of their
            own unless `actuated` says so. Those that follow a fixed joint, or another by a ratio of 0, are fixed
            where it holds them.

        Raises
        ------
        FileFormatError
            Naming the file, the line, and the link or joint: no XML, a document type, a cycle, two roots, a name that
            occurs twice or nowhere, what is no number; `FileReadError` where the file cannot be read.

        Examples
        --------
        >>> from cstormpy.mechanism import Mechanism
        >>> text = '''<robot name="pendulum">
        ...   <link name="world"/>
        ...   <link name="rod"> <inertial>
        ...     <origin xyz="0.5 0 0"/> <mass value="2"/> <inertia ixx="0" iyy="0.1" izz="0.1"/>
        ...   </inertial> </link>
        ...   <joint name="hinge" type="continuous">
        ...     <parent link="world"/> <child link="rod"/> <axis xyz="0 -1 0"/>
        ...   </joint>
        ... </robot>'''
        >>> Mechanism.from_urdf(text).gravity_load([0.0])
        array([9.81])
        """
        from cstormpy.mechanism import urdf

        return urdf.from_urdf(path_or_text, floating, gravity=gravity, actuated=actuated, active=active, mimic=mimic)

    def to_urdf(self, name: str = "robot") -> str:
        """Return the text of a URDF that tells of the mechanism; `from_urdf` brings back the same motion.

        A URDF has no gravity and no drive, which is said where `from_urdf` would take another one.

        Parameters
        ----------
        name : str
            Of the robot.

        Raises
        ------
        InvalidValue
            Naming the joint that a URDF cannot tell of: a screw or a ball, a spring, a rotor, limits that are not
            symmetric; of a `Free` or `Planar` joint limits of any kind, and a damping or friction that is not the same
            for all its coordinates.

        Examples
        --------
        >>> from cstormpy.mechanism import Mechanism, library
        >>> Mechanism.from_urdf(library.arm7().to_urdf()) == library.arm7()
        True
        """
        from cstormpy.mechanism import urdf_writer

        return Text(urdf_writer.to_urdf(cast("Mechanism", self), name))

    @classmethod
    def from_mjcf(
        cls,
        path_or_text: str | os.PathLike[str],
        *,
        gravity: ArrayLike | None = None,
        actuated: Iterable[str] | None = None,
        active: Iterable[str] = (),
    ) -> Mechanism:
        """Return the mechanism of a model of MuJoCo (MJCF).

        Read are the settings of the compiler, classes of defaults, bodies within one another and frames, inertias and
        those that follow from geoms (spheres, capsules, cylinders, boxes, ellipsoids), hinges, slides, ball and free
        joints with armature, damping, friction, springs and ranges, motors and their ranges, and of the constraints
        connect and weld, as `Loop`, and straight couplings of two joints, as `Coupling`. Geoms are what links are drawn
        with. Contacts, tendons, sensors, meshes and all else is skipped, which is said in one line each.

        Coordinates follow each other as in MuJoCo's qvel, whose names are those of the joints. A hinge or a slide has
        the coordinate of MuJoCo; a ball joint has a rotation vector for the quaternion, and a free one the way and the
        turn from where its body stands in the file, along and about the axes that the body has there, where MuJoCo has
        the place in the world. Of a body with several joints each but the last moves a link without a mass, which is
        called "<body>_<joint>".

        Parameters
        ----------
        path_or_text : str or path
            The file, or its text. What it includes is looked for beside it.
        gravity : array_like, (3,), optional
            That of the file unless given.
        actuated : iterable of str, optional
            The joints that actuators of the file drive, unless given.
        active
            As of the constructor.

        Raises
        ------
        FileFormatError
            Naming the file, the line, and the body or joint: no XML, a document type, a name that occurs twice or
            nowhere, a class that there is not, what is no number, a free joint inside of a body; `FileReadError` where
            a file cannot be read.

        Examples
        --------
        >>> from cstormpy.mechanism import Mechanism
        >>> text = '''<mujoco>
        ...   <worldbody>
        ...     <body name="rod">
        ...       <joint name="hinge" axis="0 -1 0"/> <geom type="box" pos="0.5 0 0" size=".5 .1 .1" mass="2"/>
        ...     </body>
        ...   </worldbody>
        ...   <actuator> <motor joint="hinge"/> </actuator>
        ... </mujoco>'''
        >>> Mechanism.from_mjcf(text).gravity_load([0.0])
        array([9.81])
        """
        from cstormpy.mechanism import mjcf

        return mjcf.from_mjcf(path_or_text, gravity=gravity, actuated=actuated, active=active)

    def to_mjcf(self, name: str = "robot") -> str:
        """Return the text of a model of MuJoCo (MJCF) with the same motion; `from_mjcf` reads it back.

        Written are gravity, links as bodies with their masses and shapes, joints of several axes as hinges and slides
        one after the other, balls and free joints, their damping, friction, armature, springs and limits, a motor for
        each actuated joint, and loops of positions and poses and couplings as equalities. MuJoCo's coordinates are
        told of at `from_mjcf`. It holds loops and friction by soft constraints, and the shapes touch nothing until
        `contype` and `conaffinity` are taken out of the line of defaults.

        Parameters
        ----------
        name : str
            Of the model.

        Raises
        ------
        InvalidValue
            Naming the link, joint or loop that MuJoCo cannot tell of: a screw, a constraint by a function, a loop of
            other directions, a free joint on another link, coordinates of a ball with different numbers, a link that
            moves without a mass, an inertia that no body has.

        Examples
        --------
        >>> from cstormpy.mechanism import Mechanism, library
        >>> Mechanism.from_mjcf(library.acrobot().to_mjcf()).gravity_load([0.0, 0.0])
        array([24.525,  9.81 ])
        """
        from cstormpy.mechanism import mjcf_writer

        return Text(mjcf_writer.to_mjcf(cast("Mechanism", self), name))

    def to_dict(self) -> dict[str, Any]:
        """Return the content as plain dictionaries, lists, numbers and text, as it is saved to JSON."""
        from cstormpy.mechanism import files

        return files.to_dict(cast("Mechanism", self))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism of what `to_dict` returned; FileFormatError names the place of what is wrong."""
        from cstormpy.mechanism import files

        return files.from_dict(content)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as readable JSON; an existing file is replaced at once or not at all.

        Raises
        ------
        InvalidValue
            Where the name ends as that of a URDF or a model of MuJoCo; `to_urdf` and `to_mjcf` return their texts.
        """
        from cstormpy.mechanism import files

        files.save(cast("Mechanism", self), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Mechanism:
        """Load from JSON, URDF or MJCF, whichever the file holds.

        Raises
        ------
        FileFormatError
            Naming the file and the place in it; `FileReadError` where it cannot be read.
        """
        from cstormpy.mechanism import lookup

        return lookup.load(path)
