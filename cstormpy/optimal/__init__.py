"""Optimal control: motions of least cost, by exact gradients (Sohl and Bobrow 2001; Xiang et al. 2008)."""

from cstormpy.optimal.constraints import PathConstraint, PointAcceleration, PointVelocity, Pose, Position
from cstormpy.optimal.cuts import Cut
from cstormpy.optimal.design import Tied
from cstormpy.optimal.information import Excitation, ExcitingMotion, excitation, exciting_motion
from cstormpy.optimal.loads import Load
from cstormpy.optimal.problem import Problem
from cstormpy.optimal.samples import Samples
from cstormpy.optimal.solution import Solution
from cstormpy.optimal.stages import Stage
from cstormpy.optimal.starts import Progressed
from cstormpy.optimal.terms import Acceleration, Effort, EnergySpent, Jerk, Mixed, Objective, Term, Terminal, Time
from cstormpy.optimal.user_terms import AtEnd, Constraint, Running

__all__ = [
    "Acceleration",
    "AtEnd",
    "Constraint",
    "Cut",
    "Effort",
    "EnergySpent",
    "Excitation",
    "ExcitingMotion",
    "Jerk",
    "Load",
    "Mixed",
    "Objective",
    "PathConstraint",
    "PointAcceleration",
    "PointVelocity",
    "Pose",
    "Position",
    "Problem",
    "Progressed",
    "Running",
    "Samples",
    "Solution",
    "Stage",
    "Term",
    "Terminal",
    "Tied",
    "Time",
    "excitation",
    "exciting_motion",
]
