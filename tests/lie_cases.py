"""Angles and floats at which the functions of the Lie groups are hard."""

import numpy as np

EPS = np.finfo(float).eps
AXES = [
    np.array(axis) / np.linalg.norm(axis)
    for axis in ([1, 0, 0], [0, -1, 0], [0, 0, 1], [1, 1, 0], [-1, 1, -1], [0.3, -0.5, 0.8], [1e-9, 1, -1e-5])
]
VELOCITY = np.array([0.7, -1.1, 0.4])
