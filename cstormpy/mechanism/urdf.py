"""URDF, the robot description of ROS, read into mechanisms.

The root link is the base: one named "world" that has no body is the base's frame itself, any other is a link welded to
it. A joint's frame is its child's at q = 0, the axis passes through its origin. Coordinates follow the joints as they
stand in the file. What the dynamics do not need is skipped, and what other readers refuse but can be kept is kept; both
are said, each thing once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from numpy.typing import ArrayLike

from cstormpy.arguments import flag, one_of
from cstormpy.errors import CstormError, FileFormatError, InvalidValue, shown
from cstormpy.file_writer import file_path
from cstormpy.mechanism import xml_elements
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.reader_notes import is_text
from cstormpy.mechanism.urdf_robot import Robot


def from_urdf(
    source: str | os.PathLike[str],
    floating: bool = False,
    *,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    actuated: Iterable[str] | None = None,
    active: Iterable[str] = (),
    mimic: str = "free",
) -> Mechanism:
    """Return the mechanism of a URDF; `Mechanism.from_urdf` tells of the arguments."""
    floating, hold = flag(floating, "floating"), one_of(mimic, "mimic", ("free", "hold")) == "hold"
    path = None if is_text(source, "URDF") else file_path(source, "URDF")
    if path is not None:
        _refuse_by_name(os.fsdecode(source))
    content: str | bytes = str(source) if path is None else xml_elements.read(path)
    try:
        robot = Robot(xml_elements.parse(content), hold)
        links, couplings = robot.links(floating), robot.couplings()
    except CstormError as error:
        raise FileFormatError(f"{'' if path is None else f'{path}: '}{error}") from None
    mech = Mechanism(links, gravity, actuated, active, couplings)
    if couplings and actuated is None:
        followers = {coupling.joint for coupling in couplings}
        mech = mech.with_drive(actuated=[name for name in mech.actuated if name not in followers])
    robot.notes.say("URDF" if path is None else path.name)
    return mech


def _refuse_by_name(name: str) -> None:
    """Refuse what is no file of a robot, by what it is."""
    if name.startswith("package://"):
        raise InvalidValue(f"{shown(name)}: is an address inside of a ROS package; give the path of the file")
    if name.lower().endswith(".xacro"):
        raise InvalidValue(
            f"{shown(name)}: is a source of macros; write its robot with 'xacro {os.path.basename(name)} > robot.urdf'"
        )
