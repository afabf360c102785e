"""What the tests of mechanisms and of their parts share: a mechanism of two links, and poses."""

from __future__ import annotations

import math

import numpy as np

from cstormpy.mechanism import Link, Mechanism, Revolute

Z = (0.0, 0.0, 1.0)
NAN, INF = math.nan, math.inf


def two_links(**options):
    upper = Link("upper", None, Revolute(Z, name="shoulder"), mass=1.0, com=(0.5, 0, 0))
    fore = Link("fore", "upper", Revolute(Z, name="elbow", damping=0.1), mass=1.0, com=(0.5, 0, 0))
    return Mechanism([upper, fore], **options)


def rotation(angle=0.3, axis=(1.0, 2.0, 3.0)):
    a = np.asarray(axis) / np.linalg.norm(axis)
    K = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    return np.eye(3) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K


def pose_of(R, p=(0.1, 0.2, 0.3)):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R, p
    return pose
