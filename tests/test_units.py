"""What is said of a mechanism does not depend on the units of length, mass and time in which it is told."""

import numpy as np
import pytest
from closed_states import STARTS
from unit_systems import in_units

import cstormpy as cs
from cstormpy.control.goal import upright

MICRO_AND_HUGE = [(1e-4, 1e4, 1e4), (1e4, 1e-4, 1e-4), (1e3, 1e3, 1.0), (1e-3, 1e-3, 1.0)]
"""Units of length, mass and time as parts of these: loads of 1e-12 to 1e12, and millimetres and grams."""


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


POWERS_OF_TWO = [(2.0**10, 2.0**10, 1.0), (2.0**-12, 2.0**12, 2.0**-9)]
"""Units that round nothing: what is found in them is the same to the last digit."""


def a_log(mech, scales, units):
    """Return random closed motions with the torques that make them and some noise, told in units, and the noise."""
    (L, M, T), rng = units, np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 60, mech.n))
    if mech.loops:
        q, qd = mech.project(STARTS["slider_crank"] + 0.5 * q, 3.0 * qd)
        tau = np.where(mech.actuated_mask, 5.0 * qdd, 0.0)
        qdd = np.array(mech.forward_dynamics(q, qd, tau))
    else:
        tau = mech.inverse_dynamics(q, qd, qdd)
    tau = tau + 0.3 * mech.actuated_mask * rng.normal(size=tau.shape)
    return {"q": q * scales, "qd": qd * scales / T, "qdd": qdd * scales / T**2, "tau": tau * M * L**2 / T**2 / scales}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cart_pole", "slider_crank"])
def test_what_is_identified_is_the_same_model(name):
    """Masses were compared with moments and inertias, and torques with forces: of 6 base parameters 2 were found.

    Bodies were held to what can be by eigenvalues in kg and kg m², and no random posture of a small slider could be
    closed.
    """
    mech = cs.library.get(name)
    mech = mech.with_parameters({f"{joint}.damping": 0.05 for joint in mech.names})
    wrong = mech.with_parameters({f"{link.name}.mass": 1.4 * link.mass for link in mech.links})
    unknown = [*(link.name for link in mech.links), "*.damping"]
    own = cs.identify(wrong, a_log(mech, 1.0, (1.0, 1.0, 1.0)), unknown)
    assert not own.plain
    for L, M, T in POWERS_OF_TWO:
        there, scales = in_units(wrong, L, M, T)
        found = cs.identify(there, a_log(mech, scales, (L, M, T)), unknown)
        assert (len(found.base), found.rank, found.plain) == (len(own.base), own.rank, own.plain)
        numbers = M * L ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        assert found.mechanism.inertial_numbers.reshape(-1, 10) / numbers == pytest.approx(
            own.mechanism.inertial_numbers.reshape(-1, 10), rel=1e-9, abs=1e-12
        )
        damping, before = ([joint.damping for joint in m.freedoms] for m in (found.mechanism, own.mechanism))
        assert np.array(damping) * scales**2 * T / (M * L**2) == pytest.approx(before, rel=1e-9, abs=1e-12)
        assert found.noise * scales * T**2 / (M * L**2) == pytest.approx(own.noise, rel=1e-9)
