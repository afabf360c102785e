"""Environments of Gymnasium made of diagrams: ready ones by name, and of any diagram with a reward.

>>> from cstormpy import gym
>>> gym.names()
('acrobot', 'pendulum')
"""

from cstormpy.gym.factory import make, names
from cstormpy.gym.tasks import Task

__all__ = ["Task", "make", "names"]
