"""A Stewart platform that six motors in its legs carry round a cardioid, level: a free body held by loops alone.

::

    time --> wanted --lengths--> error -----> stiffness --+
               |                   ^                      v
               +-----rates---> rate_error ---> damper --> force --tau--> plant --q,qd--+--> place --> scope_q
                                   ^                      ^                            |
                                   |           weight ----+                            +--> view
                                   +---- legs, rates <---------------------------------+

    scope_error on error, scope_force on force

`wanted` is the inverse kinematics in closed form: how long each leg has to be for the place of the platform, and how
fast that changes. `weight` is what holds the platform where it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy import checks
from cstormpy.diagrams._building import ready, scope, view
from cstormpy.linkage.loops import Loop
from cstormpy.mechanism import Mechanism, library

if TYPE_CHECKING:
    from cstormpy.simulation import Simulation


@ready
def build(
    sim: Simulation,
    size: float = 0.05,
    period: float = 3.0,
    stiffness: float = 5e3,
    damping: float = 1.5e2,
) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    size : float
        Of the cardioid: half its width [m].
    period : float
        Of going round [s].
    stiffness, damping : float
        Of each leg about what is wanted of it [N/m, N s/m].
    """
    mech = library.stewart_platform()
    start, still = np.zeros(mech.n), np.zeros(mech.n)
    motors = [mech.joint_index(name) for name in mech.actuated]
    path = _lengths(mech, checks.real(size, "size"), 2.0 * np.pi / checks.positive(period, "period"))
    bd = sim.blockdiagram(name="stewart_platform")
    plant = bd.HYBRIDDYNAMICS(mech, q0=start, name="plant")
    time, wanted = bd.TIME(name="time"), bd.FUNCTION(path, nin=1, nout=2, name="wanted")
    legs, rates = bd.INDEX(motors, name="legs"), bd.INDEX(motors, name="rates")
    error, rate_error = bd.SUM("+-", name="error"), bd.SUM("+-", name="rate_error")
    spring = bd.GAIN(checks.real(stiffness, "stiffness"), name="stiffness")
    damper = bd.GAIN(checks.real(damping, "damping"), name="damper")
    weight = bd.CONSTANT(np.asarray(mech.inverse_dynamics(start, still, still))[motors], name="weight")
    force = bd.SUM("+++", name="force")
    bd.connect(time, wanted)
    bd.connect(plant.q, legs)
    bd.connect(plant.qd, rates)
    for signal, measured, difference, gain in (
        (wanted[0], legs, error, spring),
        (wanted[1], rates, rate_error, damper),
    ):
        bd.connect(signal, difference[0])
        bd.connect(measured, difference[1])
        bd.connect(difference, gain)
    for port, part in enumerate((spring, damper, weight)):
        bd.connect(part, force[port])
    bd.connect(force, plant.tau)
    place = bd.INDEX([0, 1, 2], name="place")
    bd.connect(plant.q, place)
    scope(bd, "scope_q", place[0], ["x", "y", "z"], "Place of the platform", "m")
    scope(bd, "scope_error", error, mech.actuated, "Legs, wanted less measured", "m")
    scope(bd, "scope_force", force, mech.actuated, "Forces of the legs", "N")
    view(bd, mech, plant, "Stewart platform")
    return bd


def _lengths(mech: Mechanism, size: float, rate: float) -> Callable[..., Any]:
    """Return a function of time that gives how much longer than at q = 0 each leg is to be, and the rates of that."""
    loops = [loop for loop in mech.loops if isinstance(loop, Loop)]
    X = mech.forward_kinematics(np.zeros(mech.n))
    balls = np.array([(X[mech.link_index("platform")] @ loop.pose_a)[:3, 3] for loop in loops])
    feet = np.array([mech.link(f"barrel{k}").pose[:3, 3] for k in range(1, 7)])
    home = balls - feet

    def wanted(t: Any) -> list[Any]:
        c, s = np.cos(rate * t), np.sin(rate * t)
        place = size * (1.0 - c) * np.array([c, s, 0.0])
        speed = size * rate * np.array([s * (2.0 * c - 1.0), c - c * c + s * s, 0.0])
        along = home + place
        lengths = np.sqrt((along * along).sum(axis=1))
        return [lengths - np.sqrt((home * home).sum(axis=1)), (along @ speed) / lengths]

    return wanted
