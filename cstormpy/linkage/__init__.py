"""Mechanisms as data: links, joints, loops and loads, the tree that they form, and what is read off them.

Dynamics, sensitivities and drawings take a `Linkage`; `cstormpy.mechanism` has the class with methods.
"""

from cstormpy.linkage.constraints import Constraint, Coupling
from cstormpy.linkage.joints import (
    Composite,
    Fixed,
    Free,
    Joint,
    Limits,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Translational,
    Universal,
)
from cstormpy.linkage.linkage import Linkage
from cstormpy.linkage.links import Link
from cstormpy.linkage.loads import Load
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.shapes import Shape
from cstormpy.linkage.skeleton import Skeleton, skeleton

__all__ = [
    "Composite",
    "Constraint",
    "Coupling",
    "Fixed",
    "Free",
    "Joint",
    "Limits",
    "Link",
    "Linkage",
    "Load",
    "Loop",
    "Planar",
    "Prismatic",
    "Revolute",
    "Screw",
    "Shape",
    "Skeleton",
    "Spherical",
    "Translational",
    "Universal",
    "skeleton",
]
