"""Mechanisms: links, joints, the tree that they form, and a library of ready ones."""

from __future__ import annotations

from cstormpy.mechanism import library
from cstormpy.mechanism.constraints import Constraint
from cstormpy.mechanism.joints import (
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
from cstormpy.mechanism.links import Link
from cstormpy.mechanism.loads import Load
from cstormpy.mechanism.lookup import as_mechanism
from cstormpy.mechanism.loops import Loop
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.skeleton import Skeleton, skeleton

__all__ = [
    "Composite",
    "Constraint",
    "Fixed",
    "Free",
    "Joint",
    "Limits",
    "Link",
    "Load",
    "Loop",
    "Mechanism",
    "Planar",
    "Prismatic",
    "Revolute",
    "Screw",
    "Skeleton",
    "Spherical",
    "Translational",
    "Universal",
    "as_mechanism",
    "library",
    "skeleton",
]
