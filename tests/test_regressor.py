"""The inertial regressor: what the inverse dynamics is linear in, against that and Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close
from random_mechanisms import COMPOUND, KINDS, any_tree, random_loads, random_mechanism, random_state

import cstormpy as cs
from cstormpy.mechanism import Fixed, Link, Mechanism, Revolute, library

#: Order of Pinocchio's inertia, xx xy yy xz yz zz, among ours.
TO_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


@any_tree(examples=15, links=20)
def test_the_inverse_dynamics_is_the_regressor_times_the_inertial_numbers(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, KINDS + COMPOUND, terms=False)
    for samples in (None, 3):
        q, qd, qdd = random_state(rng, mech, samples)
        base = random_loads(rng, mech, samples, wrench=False)
        want = mech.inverse_dynamics(q, qd, qdd, **base)
        got = mech.regressor(q, qd, qdd, **base) @ mech.inertial_numbers
        assert_close(got, want, 1e-12)


def test_pinocchio_has_the_same():
    oracle = pytest.importorskip("pinocchio_model", exc_type=ImportError)
    rng = np.random.default_rng(5)
    mech = random_mechanism(rng, 12, ("revolute", "prismatic", "screw"))
    # with the links' frames on the axes, where Pinocchio has its bodies
    links = [
        Link(link.name, link.parent, link.joint.replace(point=(0, 0, 0)), link.pose, link.mass, link.com, link.inertia)
        for link in mech.links
    ]
    mech = Mechanism(links, gravity=mech.gravity)
    q, qd, qdd = random_state(rng, mech)
    theirs = oracle.Oracle(mech)
    args = (theirs.to(x) for x in (q, qd, qdd))
    raw = oracle.pin.computeJointTorqueRegressor(theirs.model, theirs.data, *args).reshape(12, 12, 10)
    want = theirs.back(raw, 0, 1)
    got = mech.regressor(q, qd, qdd).reshape(12, 12, 10)[:, :, TO_PINOCCHIO]
    assert_close(got, want, 1e-10)


def test_the_inertial_numbers_stand_at_the_links_origin_in_its_axes():
    inertia = np.array([[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]])
    mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(1.0, 2.0, 3.0), inertia=inertia)])
    c = np.array([1.0, 2.0, 3.0])
    about_origin = inertia + 2.0 * (c @ c * np.eye(3) - np.outer(c, c))
    want = [2.0, 2.0, 4.0, 6.0, *about_origin[np.triu_indices(3)]]
    assert_close(mech.inertial_numbers, np.array(want), 1e-12)


def test_what_is_welded_to_the_base_has_columns_of_zeros():
    mech = Mechanism([Link("foot", None, Fixed(), mass=3.0), Link("arm", "foot", Revolute((0, 0, 1)), mass=1.0)])
    Y = mech.regressor([0.3], [1.0], [2.0])
    assert not Y[:, :10].any()
    assert Y[:, 10:].any()


def test_bad_input_is_named():
    mech = library.planar_2r()
    with pytest.raises(cs.ShapeError, match=r"qdd: expected shape \(2,\) like q"):
        mech.regressor([0, 0], [0, 0], [0])
    with pytest.raises(cs.NonFinite, match="elbow"):
        mech.regressor([0, 0], [0, np.nan], [0, 0])


@pytest.mark.parametrize("motors", ["its own", "all", "one less"])
@pytest.mark.parametrize("redundancy", [None, "force"])
def test_of_a_closed_mechanism_it_makes_the_torques_of_the_motors(motors, redundancy):
    """It was refused. Of mechanisms with other masses too, as no torque of one motion says whose column it is."""
    mech, rng = library.five_bar(), np.random.default_rng(0)
    mech = {"its own": mech, "all": mech.with_drive(actuated=mech.names)}.get(
        motors, mech.with_drive(actuated=["left_shoulder", "left_elbow", "right_shoulder"])
    )
    q, qd = mech.project([2.0, -1.0, 1.1, 1.0] + 0.3 * rng.normal(size=(6, 4)), rng.normal(size=(6, 4)))
    qdd = np.array(mech.forward_dynamics(q, qd, rng.normal(size=(6, 4))))
    Y = mech.regressor(q, qd, qdd, redundancy=redundancy)
    assert_close(mech.regressor(q[0], qd[0], qdd[0], redundancy=redundancy), Y[0], 1e-12)
    for link in mech.links:
        other = mech.with_parameters({f"{link.name}.mass": 3.0, f"{link.name}.com": [0.1, 0.2, 0.0]})
        want = np.asarray(other.inverse_dynamics(q, qd, qdd, redundancy=redundancy))
        assert_close(Y @ other.inertial_numbers, want, 1e-12)


def test_of_a_closed_mechanism_with_too_few_motors_there_is_none():
    mech = library.five_bar().with_drive(actuated=["left_shoulder"])
    q, qd = mech.project([[2.0, -1.0, 1.1, 1.0]])
    with pytest.raises(
        cs.InvalidValue, match=r"1 freedom\(s\) of the mechanism have no actuator in row 0, .*without_loops"
    ):
        mech.regressor(q, qd, 0 * q)
    with pytest.raises(cs.InvalidValue, match="loop pin: y: misses closure by"):
        library.five_bar().regressor([2.0, -1.0, 1.1, 2.0], np.zeros(4), np.zeros(4))
