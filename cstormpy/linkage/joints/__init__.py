"""Joints: each knows its motion, its numbers, its limits, its file, and how it is printed and drawn."""

from __future__ import annotations

from cstormpy.linkage.joints.ball import Free, Spherical
from cstormpy.linkage.joints.compound import Composite, Planar, Translational, Universal
from cstormpy.linkage.joints.joint import Fixed, Joint, Symbol
from cstormpy.linkage.joints.limits import Limits
from cstormpy.linkage.joints.one_dof import OneDofJoint, Prismatic, Revolute, Screw

__all__ = [
    "JOINT_TYPES",
    "Composite",
    "Fixed",
    "Free",
    "Joint",
    "Limits",
    "OneDofJoint",
    "Planar",
    "Prismatic",
    "Revolute",
    "Screw",
    "Spherical",
    "Symbol",
    "Translational",
    "Universal",
]

JOINT_TYPES: dict[str, type[Joint]] = {
    joint.kind: joint
    for joint in (Revolute, Prismatic, Screw, Fixed, Universal, Spherical, Planar, Translational, Free, Composite)
}
"""Every joint by its name in files; a new one is entered here."""
