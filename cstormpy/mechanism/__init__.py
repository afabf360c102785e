"""Mechanisms with the methods that compute, read and write, and a library of ready ones; their data is a `linkage`."""

from cstormpy.linkage import (
    Composite,
    Constraint,
    Coupling,
    Fixed,
    Free,
    Joint,
    Limits,
    Link,
    Load,
    Loop,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Shape,
    Skeleton,
    Spherical,
    Translational,
    Universal,
    skeleton,
)
from cstormpy.mechanism import library
from cstormpy.mechanism.lookup import as_mechanism
from cstormpy.mechanism.mechanism import Mechanism

__all__ = [
    "Composite",
    "Constraint",
    "Coupling",
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
    "Shape",
    "Skeleton",
    "Spherical",
    "Translational",
    "Universal",
    "as_mechanism",
    "library",
    "skeleton",
]
