"""The highest posture, which laws take for their goal."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close

import cstormpy as cs
from cstormpy import control
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute, library


def test_the_highest_posture_is_found():
    rng = np.random.default_rng(5)
    for name in ("pendulum", "acrobot", "branched_acrobot", "puma560", "arm7"):
        mech = library.get(name)
        q = control.upright(mech)
        highest = float(mech.energy(q, np.zeros(mech.n))[1])
        others = mech.energy(rng.uniform(-4, 4, (500, mech.n)), np.zeros((500, mech.n)))[1]
        assert highest >= others.max()
        assert_close(mech.gravity_load(q), np.zeros(mech.n), 1e-9)
    with pytest.raises(InvalidValue, match="goal"):
        control.upright(library.acrobot().with_gravity([0, 0, 0]))
    with pytest.raises(InvalidValue, match="goal"):
        control.upright(Mechanism([Link("lift", joint=Prismatic((0, 1, 0)), mass=1.0)]))


def test_the_highest_posture_has_zeros_where_the_height_is_the_same():
    """The arm of a Furuta pendulum that hangs at zero was to go to 0.86 rad, as the search happened to begin.

    Where it stands askew in its frame rounding led the search away from zero.
    """
    for up in ((0, 0, 1), (0, 0.6, 0.8)):
        arm = Link("arm", joint=Revolute(up), mass=0.2, com=(0.1, 0, 0), inertia=(0, 1e-3, 1e-3))
        rod = {"mass": 0.1, "com": -0.1 * np.array(up), "inertia": (1e-3, 1e-3, 1e-3)}
        links = [arm, Link("rod", "arm", Revolute((1, 0, 0)), (0.2, 0, 0), **rod)]
        q = control.upright(Mechanism(links, gravity=-9.81 * np.array(up)))
        assert q[0] == 0.0
        assert_close(np.abs(q[1]), np.pi, 1e-12)


def test_the_highest_posture_of_a_ball_is_found():
    """The search went beyond a whole turn of a rotation vector, which it refused as if it had been given so."""
    ball = Link("ball", joint=cs.Spherical(), mass=1.0, com=(0.3, 0.4, 0.0), inertia=(0.1, 0.1, 0.1))
    rod = Link("rod", "ball", Revolute((0, 0, 1)), (0.3, 0.4, 0), mass=0.5, com=(0, 0.2, 0), inertia=(0.1, 0.1, 0.1))
    for links, height in (([ball], 0.5), ([ball, rod], 0.5 + 0.5 * (0.5 + 0.2))):
        mech = Mechanism(links)
        q = control.upright(mech)
        assert_close(mech.energy(q, np.zeros(mech.n))[1], 9.81 * height, 1e-9)
        assert_close(mech.gravity_load(q), np.zeros(mech.n), 1e-9)


def test_the_highest_posture_of_springs_that_push_away_is_found():
    """The size of their energy was negative, and so was a tolerance: "expected a positive number, got -5e-05"."""
    for gravity, stiffness in (((0, 0, 0), -50.0), ((0, -9.81, 0), -50.0)):
        rod = Link("rod", joint=Revolute((0, 0, 1), stiffness=stiffness, rest=0.3), mass=1.0, com=(0.5, 0, 0))
        mech = Mechanism([rod], gravity=gravity)
        q = control.upright(mech)
        assert_close(mech.inverse_dynamics(q, [0.0], [0.0]), np.zeros(1), 1e-9)
        at = np.linspace(q[0] - 0.5, q[0] + 0.5, 11)[:, None]
        assert np.argmax(mech.inertial(at).potential) == 5
