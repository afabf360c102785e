"""Optimal control in other units: the same problem in millimetres, tonnes or days has the same answer."""

import functools

import numpy as np
import pytest

from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute
from cstormpy.optimal import (
    AtEnd,
    Constraint,
    Effort,
    EnergySpent,
    Mixed,
    Position,
    Problem,
    Running,
    Terminal,
    Time,
)
from cstormpy.optimal.ipopt import has_ipopt

#: How long one metre, how heavy one kilogram and how long one second are in units of the problem.
UNITS = [
    (1e-3, 1e-6, 0.001**0.5),  # the two-link arm of a millimetre and a milligram, as gravity moves it
    (10.0, 1e4, 10.0**0.5),
    (1e6, 1e-6, 1.0),
    (1e-6, 1e6, 1e3),
    (1e-6, 1e-12, 1e-6),
]


def arm(length, mass, time, **drive):
    """Two uniform rods of half a metre and 1.25 kg."""
    rod = {"mass": 1.25 * mass, "com": [0.25 * length, 0, 0]}
    inertia = np.diag([0.0, 1.0, 1.0]) * (1.25 * 0.5**2 / 12.0) * mass * length**2
    pose = np.eye(4)
    pose[0, 3] = 0.5 * length
    links = [
        Link("upper_arm", None, Revolute((0, 0, 1), name="shoulder"), inertia=inertia, **rod),
        Link("forearm", "upper_arm", Revolute((0, 0, 1), name="elbow"), pose=pose, inertia=inertia, **rod),
    ]
    return Mechanism(links, gravity=[0, -9.81 * length / time**2, 0], **drive)


def cart(length, mass, time, **drive):
    """A cart of 1 kg with a pole of 0.3 kg and 0.5 m."""
    links = [
        Link("cart", None, Prismatic((1, 0, 0), name="slide"), mass=mass),
        Link("pole", "cart", Revolute((0, 0, 1), name="pivot"), mass=0.3 * mass, com=[0.5 * length, 0, 0]),
    ]
    return Mechanism(links, gravity=[0, -9.81 * length / time**2, 0], actuated=["slide"], **drive)


def effort(length, mass, time):
    """The unit of ½ ∫ τ² dt."""
    return (mass * length**2 / time**2) ** 2 * time


def swing(length, mass, time, **options):
    given = {"duration": 1.308 * time, "start": [0, 0], "end": [np.pi / 2, 0], "objective": Effort(), "samples": 41}
    problem = Problem(arm(length, mass, time), points=14, **{**given, **options})
    return problem, effort(length, mass, time)


def limited(length, mass, time):
    """Torque limits, a floor, a rate that is to be zero at a phase, and the duration free."""
    torque = mass * length**2 / time**2
    constraints = [
        Position("forearm", lower=[None, -0.7 * length, None], tool=[0.5 * length, 0, 0], at="all", name="floor"),
        Constraint(lambda at: at.qd[:, 0], lower=0.0, upper=0.0, at=[0.5], name="a stop halfway"),
    ]
    return swing(
        length,
        mass,
        time,
        objective=EnergySpent() / (torque) + Time() / time + Running(lambda at: (at.tau / torque) ** 2 @ [1, 1] / time),
        duration=(0.5 * time, 3.0 * time),
        limits={"torque": 30.0 * torque, "velocity": 20.0 / time},
        constraints=constraints,
    )[0], 1.0


def shot(length, mass, time):
    """Shooting with the force of the cart on a spline, and its way in metres."""
    objective = Effort() / (mass * length / time**2) ** 2 / time
    objective = objective + 100 * Terminal(q={"pivot": 0.5})
    return Problem(
        cart(length, mass, time),
        duration=1.2 * time,
        start=[0.1 * length, -np.pi / 2],
        objective=objective + AtEnd(lambda at: (at.q[:, 0] / length) ** 2),
        points=10,
        steps=140,
    ), 1.0


def driven(length, mass, time):
    """Shooting with the cart's motion on a spline, from random starts that are as long as the mechanism."""
    mech = cart(length, mass, time, active=["slide"])
    objective = Effort() / effort(length, mass, time) * length**2 + 100 * Terminal(q={"pivot": np.pi / 2})
    return Problem(mech, duration=2 * time, start=[0, -np.pi / 2], objective=objective, points=10, steps=140), 1.0


@functools.cache
def solved(problem):
    """Return the solution in metres, kilograms and seconds, and the unit of its cost."""
    made, one = problem(1.0, 1.0, 1.0)
    return made.solve(starts=2, seed=3), one


@pytest.mark.slow
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("problem", [swing, limited, shot, driven])
def test_the_answer_does_not_depend_on_units(problem, units):
    """In millimetres SLSQP "converged" at its guess, at 3.06 times the cost; with tonnes it stayed at all guesses.

    Rounding grows along a search; that it took the same way is seen from its first iterations.
    """
    here, one = solved(problem)
    found, unit = problem(*units)
    there = found.solve(starts=2, seed=3)
    for before, after in zip(here.outcomes, there.outcomes, strict=True):
        first = np.array(before.history[:2])[:, 0] / one
        np.testing.assert_allclose(np.array(after.history[:2])[:, 0] / unit, first, rtol=1e-3)
    assert here.converged and there.converged
    assert there.feasible == here.feasible
    assert there.cost / unit == pytest.approx(here.cost / one, rel=1e-5)
    assert there.duration / units[2] == pytest.approx(here.duration, rel=1e-4)


@pytest.mark.skipif(not has_ipopt(), reason="cyipopt is not installed")
@pytest.mark.parametrize("units", UNITS[:3])
def test_nor_that_of_ipopt(units):
    wanted, one = swing(1.0, 1.0, 1.0)
    found, unit = swing(*units)
    here, there = wanted.solve(solver="ipopt"), found.solve(solver="ipopt")
    assert here.converged and there.converged
    assert there.cost / unit == pytest.approx(here.cost / one, rel=1e-6)


@pytest.mark.parametrize("units", UNITS)
def test_a_mixed_cost_with_a_tiny_part_of_effort_is_not_flat(units):
    problem, _ = swing(*units, objective=Mixed(0.5), duration=(0.5 * units[2], 3 * units[2]))
    guess = problem.programme().cost(problem.first_guess())
    solution = problem.solve()
    assert solution.kkt < 1e-4
    assert solution.cost < guess


def test_a_guess_at_rest_in_an_equilibrium_has_a_scale():
    """The cost and its gradient are zero there; so is the torque that another constraint then asks for."""
    problem = Problem(
        arm(1.0, 1.0, 1.0),
        duration=1.0,
        start=[-np.pi / 2, 0.0],
        end=[-np.pi / 2, 0.0],
        objective=Effort(),
        constraints=Constraint(lambda at: at.q[:, 1], lower=0.3, at=[0.5], name="bent halfway"),
        points=12,
        samples=41,
    )
    solution = problem.solve()
    assert solution.converged and solution.kkt < 1e-4
    assert solution.at([0.5]).q[0, 1] == pytest.approx(0.3, abs=1e-6)
