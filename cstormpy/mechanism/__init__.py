"""Mechanisms with the methods that compute, read and write, and a library of ready ones; their data is a `linkage`."""

from cstormpy import linkage
from cstormpy.linkage import *  # noqa: F403  # what mechanisms are made of
from cstormpy.mechanism import library
from cstormpy.mechanism.lookup import as_mechanism
from cstormpy.mechanism.mechanism import Mechanism

__all__ = ["Mechanism", "as_mechanism", "library"]
__all__ += linkage.__all__
