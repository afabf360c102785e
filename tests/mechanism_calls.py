"""Ways to call the dynamics of a mechanism, and arrays in unusual clothes, for the tests of the border."""

import numpy as np
from random_mechanisms import random_state

from cstormpy.mechanism import Mechanism, library

ACROBOT = library.acrobot(parameters="rods").with_drive(active=["elbow"])
Z = np.zeros(2)
SIX = np.zeros(6)


def hybrid(mech, *args, **options):
    return mech.hybrid_dynamics(*args, **options).y


def sensitivity(mech, *args, **options):
    return mech.hybrid_sensitivity(*args, **options).dy_dq


def prepared(mech, *args):
    return mech.hybrid_evaluator()(*args)


def prepared_sensitivity(mech, *args):
    return mech.hybrid_sensitivity_evaluator()(*args)[1]


#: What takes q, qd, u, and what these are called in messages.
THREE = {
    hybrid: "u",
    sensitivity: "u",
    prepared: "u",
    prepared_sensitivity: "u",
    Mechanism.inverse_dynamics: "qdd",
    Mechanism.forward_dynamics: "tau",
    Mechanism.joint_wrenches: "qdd",
}
careful = [f for f in THREE if f not in (prepared, prepared_sensitivity)]


def samples(mech, count, seed=0):
    return random_state(np.random.default_rng(seed), mech, count)


def as_read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def misaligned(a):
    raw = np.zeros(a.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(np.float64).reshape(a.shape)
    view[...] = a
    return view


class Heir(np.ndarray):
    pass
