"""Control laws: plain functions and small classes, usable without a diagram."""

from cstormpy.control.energy_pumps import EnergyPFL, EnergyPump, NonCollocated, PendulumPump
from cstormpy.control.goal import upright
from cstormpy.control.law import Law, Off
from cstormpy.control.lqr import LQR
from cstormpy.control.named import law, names
from cstormpy.control.predictive import PredictiveController
from cstormpy.control.sequence import OpenLoop, SwingUp, Then
from cstormpy.control.spline import SplineSwingUp
from cstormpy.control.tracking import PD, ComputedTorque, GravityCompensation, HybridTracking
from cstormpy.control.tvlqr import TVLQR
from cstormpy.control.user_laws import OwnLaw

__all__ = [
    "LQR",
    "PD",
    "TVLQR",
    "ComputedTorque",
    "EnergyPFL",
    "EnergyPump",
    "GravityCompensation",
    "HybridTracking",
    "Law",
    "NonCollocated",
    "Off",
    "OpenLoop",
    "OwnLaw",
    "PendulumPump",
    "PredictiveController",
    "SplineSwingUp",
    "SwingUp",
    "Then",
    "law",
    "names",
    "upright",
]
