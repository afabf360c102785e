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
