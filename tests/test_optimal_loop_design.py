"""Design and motion of closed mechanisms together: the length of a link beside its motion, against an outer search."""

import numpy as np
import pytest
from closeness import central_difference
from scipy.optimize import minimize_scalar
from test_optimal_design import error

import cstormpy as cs
from cstormpy.linkage.components import components
from cstormpy.loops.closure import closure_of
from cstormpy.loops.residual_slopes import residual_rates
from cstormpy.mechanism.component_values import with_components
from cstormpy.optimal import Effort, Problem, Tied

FOUR_BAR = cs.library.four_bar()
MASS, LENGTH = 0.8, 0.8


def coupler(length):
    """Return the numbers of a coupler of another length, a uniform rod of the same mass."""
    spread = MASS * length**2 / 12
    return {
        "pin.pose_b.x": length - LENGTH,
        "coupler_rod.com[0]": length / 2,
        "coupler_rod.inertia.yy": spread,
        "coupler_rod.inertia.zz": spread,
    }


def turned(mech=FOUR_BAR, points=8, **options):
    """Return the problem to turn the crank by a quarter of a turn or so, with least effort."""
    ends = {"start": {"crank": 0.5}, "end": {"crank": 2.0}}
    return Problem(mech, duration=1.0, **{**ends, "objective": Effort(), "samples": 15, "points": points, **options})


@pytest.mark.parametrize("cuts", [(), pytest.param("pin", marks=pytest.mark.slow)])
def test_closure_and_loads_of_a_closed_mechanism_follow_the_design(cuts):
    """The design of a mechanism with loops was refused: what closes them is another posture for each length."""
    design = {
        "rod": Tied((0.7, 0.8, 0.95), coupler),
        "rocker.damping": (0.0, 1.0),
        "pin.pose_a.y": (-0.1, 0.1),
        "coupler_rod.pose.x": (-0.02, 0.02),
    }
    assert error(turned(points=7, samples=9, cuts=cuts, design=design)) < 1e-8


@pytest.mark.parametrize("directions", ["pose", "hinge", "pin"])
def test_the_residual_of_a_loop_follows_its_frames_also_where_it_is_open(directions):
    """What is open of a loop is searched along with the design, so that its slope is wanted there."""
    (pin,) = FOUR_BAR.loops
    mech = cs.Mechanism(FOUR_BAR.links, loops=[pin.replace(directions=directions)])
    names = [f"pin.pose_{end}.{along}" for end in "ab" for along in ("rz", "x", "y")] + ["coupler_rod.pose.x"]
    q = np.array([0.4, 0.3, 0.9])
    parts = [part for name in names for part in components(mech)[name]]
    got = residual_rates(mech, closure_of(mech, q[None]), parts, q[None])[0]

    def residual(values):
        return with_components(mech, dict(zip(names, values, strict=True))).closure(q)

    want = central_difference(residual, np.zeros(len(names)), 1e-3)
    np.testing.assert_allclose(got, want, atol=1e-9)


def outer(length):
    """Return the least effort with a coupler of a length."""
    return turned(with_components(FOUR_BAR, coupler(length))).solve(progress=False).cost


@pytest.mark.slow
def test_the_best_length_of_a_link_is_found_beside_its_motion():
    solution = turned(design={"rod": Tied((0.7, 0.8, 0.95), coupler)}).solve(progress=False)
    assert solution.converged and solution.feasible and solution.kkt < 1e-5
    length = solution.parameters["rod"]
    at = solution.at(np.linspace(0.0, 1.0, 20))
    assert np.abs(solution.mechanism.closure(at.q)).max() < 1e-3  # closed with the new length, not the old one
    assert np.abs(FOUR_BAR.closure(at.q)).max() > 0.01
    nodes = solution.samples  # between them the forces were those of the old length
    for channel in ("tau", "multipliers"):
        want = getattr(nodes, channel)
        np.testing.assert_allclose(getattr(solution.at(nodes.t), channel), want, rtol=0, atol=1e-9 * np.abs(want).max())
    assert solution.cost == pytest.approx(outer(length), rel=1e-6)


@pytest.mark.slow
def test_the_best_length_is_that_of_an_outer_search():
    solution = turned(design={"rod": Tied((0.7, 0.8, 0.95), coupler)}).solve(progress=False)
    found = minimize_scalar(outer, bounds=(0.75, 0.95), method="bounded", options={"xatol": 1e-4})
    assert abs(found.x - solution.parameters["rod"]) < 1e-3
    assert found.fun == pytest.approx(solution.cost, rel=1e-5)


def test_an_end_that_closes_for_one_length_alone_is_refused():
    q0 = FOUR_BAR.project([0.5, 0.0, 1.5], hold=["crank"])[0]
    design = {"rod": Tied((0.7, 0.8, 0.95), coupler)}
    with pytest.raises(cs.InvalidValue, match="start: gives all joints, which closes the loops for one design alone"):
        turned(design=design, start=q0)
    heavier = turned(design={"coupler_rod.mass": (0.5, 0.8, 1.0)}, start=q0)  # a mass leaves the loops alone
    assert heavier.design.names == ("coupler_rod.mass",)
    with pytest.raises(cs.UnknownName, match=r"did you mean 'pin\.pose_b\.x'"):
        turned(design={"pin.pose_b.xx": (-0.1, 0.1)})
