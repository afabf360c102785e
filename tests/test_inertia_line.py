"""Energy and mass matrix that laws ask for at each evaluation: by straight-line code, as by the mechanism itself."""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.control.prepared import Inertia, inertia_line
from cstormpy.mechanism import library


def on_a_ball():
    """Return a thick body on a ball, and a slider on it."""
    body = {"mass": 1.3, "com": (0.1, -0.2, 0.3), "inertia": np.diag([0.3, 0.4, 0.5])}
    links = [cs.Link("body", None, cs.Spherical(), **body), cs.Link("slider", "body", cs.Prismatic((1, 0, 0)), **body)]
    return cs.Mechanism(links)


@pytest.mark.parametrize("mech", [library.acrobot(), library.branched_acrobot(), on_a_ball()], ids=lambda m: str(m.n))
def test_energy_and_mass_matrix_are_those_of_the_mechanism(mech):
    rng, inertia = np.random.default_rng(3), Inertia(mech)
    assert inertia_line(mech) is not None
    for size in (0.0, 1e-9, 0.3, 1.0):
        q, qd = size * rng.normal(size=mech.n), rng.normal(size=mech.n)
        np.testing.assert_allclose(inertia.energy(q, qd), sum(mech.energy(q, qd)), rtol=1e-12)
        np.testing.assert_allclose(inertia.mass_matrix(q, qd), mech.mass_matrix(q), rtol=1e-12, atol=1e-14)
        assert inertia.energy(q.tolist(), qd.tolist()) == inertia.energy(q, qd)


def test_a_large_mechanism_has_no_line():
    mech = library.chain(40)
    assert inertia_line(mech) is None
    q = np.linspace(-1.0, 1.0, 40)
    np.testing.assert_allclose(Inertia(mech).energy(q, q), sum(mech.energy(q, q)), rtol=1e-12)
