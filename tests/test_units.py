"""What is said of a mechanism does not depend on the units of length, mass and time in which it is told."""

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.control.goal import upright

MICRO_AND_HUGE = [(1e-4, 1e4, 1e4), (1e4, 1e-4, 1e-4), (1e3, 1e3, 1.0), (1e-3, 1e-3, 1.0)]
"""Units of length, mass and time as parts of these: loads of 1e-12 to 1e12, and millimetres and grams."""


def in_units(mech, L, M, T):
    """Return the mechanism told in such units, of joints without springs and limits, and its scales of q."""
    content = mech.to_dict()
    content["gravity"] = [x * L / T**2 for x in content["gravity"]]
    content.setdefault("actuated", list(mech.actuated))
    poses = [(link, "pose") for link in content["links"]]
    poses += [(loop, end) for loop in content.get("loops", ()) for end in ("pose_a", "pose_b")]
    for owner, key in poses:
        if key in owner:
            owner[key] = [[*row[:3], row[3] * (L if k < 3 else 1.0)] for k, row in enumerate(owner[key])]
    for link in content["links"]:
        link["mass"] = M * link.get("mass", 0.0)
        link["com"] = [L * x for x in link.get("com", (0.0, 0.0, 0.0))]
        if "damping" in link["joint"]:
            link["joint"]["damping"] *= M / T * (1.0 if link["joint"]["type"] == "prismatic" else L**2)
        link["inertia"] = (M * L**2 * np.array(link.get("inertia", np.zeros((3, 3))))).tolist()
    return cs.Mechanism.from_dict(content), np.array([1.0 if joint.turns else L for joint in mech.freedoms])


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
@pytest.mark.parametrize("name", ["acrobot", "cart_pole"])
def test_the_highest_posture_and_equilibria_are_found(name, units):
    """Small loads were taken for nothing, and rounding of large ones for what is left of a load."""
    mech = cs.library.get(name)
    there, scales = in_units(mech, *units)
    assert upright(there) / scales == pytest.approx(upright(mech), abs=1e-9)
    load = units[1] * units[0] ** 2 / units[2] ** 2 / max(1.0, units[0])
    start = np.array([0.3, 1.2])
    found = there.trim(start * scales, tau=0, tolerance=1e-9 * load).q / scales
    assert found == pytest.approx(mech.trim(start, tau=0).q, abs=1e-6)


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
def test_equilibria_of_closed_mechanisms_are_found(units):
    """Lengths, angles, torques and multipliers were compared as numbers: the search ended in open postures."""
    mech = cs.library.four_bar()
    there, _ = in_units(mech, *units)
    load = units[1] * units[0] ** 2 / units[2] ** 2
    start = mech.project([0.3, 0.5, 1.0])[0]
    assert there.trim(start, tau=0, tolerance=1e-9 * load).q == pytest.approx(mech.trim(start, tau=0).q, abs=1e-6)


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
def test_sliding_joints_are_closed_alike(units):
    """Steps of a slide were a metre at most, and random starts a few metres beside: millimetres were never reached."""
    mech = cs.library.slider_crank()
    there, scales = in_units(mech, *units)
    start = np.full(3, 0.3)
    q = mech.project(start)[0]
    assert there.project(start * scales)[0] / scales == pytest.approx(q, abs=1e-6)
    assert there.mobility(there.project(q * scales)[0]) == mech.mobility(q)
    assert there.assemblies(q * scales, hold=["crank"]) / scales == pytest.approx(
        mech.assemblies(q, hold=["crank"]), abs=1e-6
    )


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
@pytest.mark.parametrize("name", ["acrobot", "cart_pole"])
def test_regulators_are_alike(name, units):
    """Numbers of a model, in 1/s² and 1/(kg m²), were compared with one another: its modes were "not reached"."""
    L, M, T = units
    mech = cs.library.get(name)
    there, scales = in_units(mech, *units)
    states, motor = np.concatenate([scales, scales / T]), (M * L**2 / T**2 / scales)[mech.actuated_mask]
    own = cs.control.LQR(mech, Q=np.ones(4), R=np.ones(len(motor)))
    law = cs.control.LQR(there, Q=1.0 / states**2, R=1.0 / motor**2)
    assert law.K * states / motor[:, None] == pytest.approx(own.K, rel=1e-6)


@pytest.mark.parametrize("units", MICRO_AND_HUGE)
@pytest.mark.parametrize("shape", [(4,), (2, 4)])
def test_a_freedom_without_an_actuator_is_refused(units, shape):
    """A load of less than 1e-9 N m passed for nothing, whatever the others were."""
    mech = cs.library.five_bar().with_drive(actuated=["left_shoulder"])
    there, _ = in_units(mech, *units)
    q = np.broadcast_to(mech.project(np.full(4, 0.4))[0], shape)
    with pytest.raises(cs.CstormError, match=r"freedom.* have no actuator"):
        there.inverse_dynamics(q, np.zeros(shape), np.zeros(shape))


@pytest.mark.parametrize("T", [1.0, 1e4])
def test_accelerations_that_open_loops_are_refused(T):
    """What they missed was compared with 1 rad/s²: in slow time all accelerations passed."""
    there, _ = in_units(cs.library.four_bar(), 1.0, 1.0, T)
    q, still = there.project(np.full(3, 0.3))[0], np.zeros(3)
    with pytest.raises(cs.CstormError, match="the accelerations open it"):
        there.inverse_dynamics(q, still, np.ones(3) / T**2)
    driven = there.with_drive(actuated=["crank", "rocker"], active=["crank", "rocker"])
    with pytest.raises(cs.CstormError, match="contradict it"):
        driven.hybrid_dynamics(q, still, np.array([1.0, 0.0, 5.0]) / T**2)
