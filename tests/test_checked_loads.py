"""Wrenches, loads and motions of the base at the border: what is taken, what is refused, and in which words."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_calls import ACROBOT, SIX, Z, careful, hybrid, samples
from random_mechanisms import random_mechanism, random_pose, random_state

from cstormpy.dynamics.checked_arguments import read_samples
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName, shown
from cstormpy.kernels.layout import LANES


@pytest.mark.nojit
@pytest.mark.parametrize("ask", careful)
def test_wrenches_of_another_shape_are_refused(ask):
    batch = [np.zeros((3, 2))] * 3
    for wrench in (SIX, np.zeros((3, 6)), np.zeros((2, 5)), np.zeros((3, 2, 6)), np.zeros((1, 2, 6)), 0.0, [[1.0] * 6]):
        with pytest.raises(ShapeError, match=r"^wrench: expected shape \(2, 6\), got .*for each of 2 links"):
            ask(ACROBOT, Z, Z, Z, wrench=wrench)
    for wrench in (SIX, np.zeros((3, 6)), np.zeros((2, 2, 6)), np.zeros((1, 2, 6))):
        with pytest.raises(ShapeError, match=r"^wrench: expected shape \(2, 6\) or \(3, 2, 6\), got"):
            ask(ACROBOT, *batch, wrench=wrench)
    with pytest.raises(
        InvalidType, match=r"^wrench: expected real numbers, got a dict; write \[\(link, None, wrench\)"
    ):
        ask(ACROBOT, Z, Z, Z, wrench={"forearm": SIX})


@pytest.mark.nojit
def test_wrenches_that_are_not_finite_are_named_by_link():
    wrench = np.zeros((9, 2, 6))
    wrench[7, 1, 4] = np.inf
    batch = [np.zeros((9, 2))] * 3
    with pytest.raises(NonFinite, match=r"^wrench: .* got inf at index \(7, 1, 4\) \(link 'forearm'\)"):
        hybrid(ACROBOT, *batch, wrench=wrench)
    with pytest.raises(
        NonFinite, match=r"^wrench: .* got inf at index \(1, 4\) \(link 'forearm'\)"
    ):  # one for all samples has no row
        hybrid(ACROBOT, *batch, wrench=wrench[7])
    with pytest.raises(NonFinite, match=r"^wrench\[0\] on link .*: expected finite numbers, got nan at index 0"):
        hybrid(ACROBOT, Z, Z, Z, wrench=[(0, np.eye(4), [np.nan, 0, 0, 0, 0, 0])])


@pytest.mark.nojit
@pytest.mark.parametrize("ask", careful)
def test_a_load_that_is_no_load_is_refused(ask):
    put = partial(ask, ACROBOT, Z, Z, Z)
    with pytest.raises(UnknownName, match=r"^link 'forarm' does not exist; did you mean 'forearm'"):
        put(wrench=[("forarm", None, SIX)])
    for link in (2, -1, 2**70):
        with pytest.raises(
            InvalidValue, match=rf"^wrench\[1\]: expected a position from 0 to 1 in the links, got {shown(link)}$"
        ):
            put(wrench=[(0, None, SIX), (link, None, SIX)])
    for link in (True, None, 1.0, [0]):
        with pytest.raises(InvalidType, match=r"^wrench\[1\]: expected"):
            put(wrench=[("forearm", None, SIX), (link, None, SIX)])
    for entry in (("forearm", SIX), ("forearm", None, SIX, SIX), ("forearm",), SIX, None):
        with pytest.raises(InvalidType, match=r"^wrench\[1\]: expected \(link, pose or None, wrench\), got "):
            put(wrench=[(0, None, SIX), entry])
    with pytest.raises(InvalidType, match=r"^wrench: expected a list of .*put it in a list"):
        put(wrench=("forearm", None, SIX))
    for bad in (np.zeros(3), np.zeros((1, 6)), 0.0, np.zeros((2, 6))):
        with pytest.raises(
            ShapeError, match=r"^wrench\[0\] on link 'forearm': expected shape \(6,\), got .*moment, force"
        ):
            put(wrench=[("forearm", None, bad)])
    with pytest.raises(InvalidType, match=r"^wrench\[0\] on link 'forearm': expected real numbers"):
        put(wrench=[("forearm", None, "north")])


@pytest.mark.nojit
def test_the_pose_of_a_load_is_checked():
    put = partial(hybrid, ACROBOT, np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)))
    begin = r"^wrench\[0\] on link 'forearm', its pose: expected"
    for pose in (np.eye(3), SIX, 1.0, np.stack([np.eye(4)] * 3), np.stack([np.eye(4)] * 5)):
        with pytest.raises((ShapeError, InvalidType), match=begin):
            put(wrench=[("forearm", pose, SIX)])
    for pose in (2 * np.eye(4), np.diag([1.0, 1, -1, 1]), np.full((4, 4), np.nan)):
        with pytest.raises(InvalidValue, match=begin):
            put(wrench=[("forearm", pose, SIX)])
    far = np.eye(4)
    far[0, 3] = 1e300
    with pytest.raises(NonFinite, match=r"^wrench\[0\] on link 'forearm': its moment in the link's frame overflows"):
        put(wrench=[("forearm", far, [0, 0, 0, 0, 1e300, 0])])
    with pytest.raises(
        NonFinite, match=r"^wrench\[1\] on link 'forearm', the sum of loads: expected finite numbers, got inf"
    ):
        put(wrench=[("forearm", None, np.full(6, 1.7e308))] * 2)


@pytest.mark.nojit
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_loads_are_carried_over_to_their_links(seed):
    """A wrench in a frame whose pose in the link's is T = (R, p): force R f, moment R m + p x R f."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links=4)
    q, qd, u = random_state(rng, mech, 5)
    total, loads = np.zeros((5, 4, 6)), []
    for _ in range(rng.integers(0, 6)):
        link = int(rng.integers(4))
        pose = random_pose(rng) if rng.random() < 0.7 else None
        wrench = rng.normal(size=(5, 6) if rng.random() < 0.5 else 6)
        loads.append((mech.links[link].name if rng.random() < 0.5 else np.int64(link), pose, wrench))
        R, p = (np.eye(3), np.zeros(3)) if pose is None else (pose[:3, :3], pose[:3, 3])
        moment, force = wrench[..., :3] @ R.T, wrench[..., 3:] @ R.T
        total[:, link] += np.concatenate([moment + np.cross(p, force), force], axis=-1)
    rows = read_samples(mech, {"q": q}, wrench=loads).wrench
    np.testing.assert_allclose(np.broadcast_to(rows, (5, 24)), total.reshape(5, 24), rtol=0, atol=1e-12)
    found = mech.inverse_dynamics(q, qd, u, wrench=loads)
    np.testing.assert_allclose(found, mech.inverse_dynamics(q, qd, u, wrench=total), rtol=0, atol=1e-9)


@pytest.mark.nojit
def test_a_wrench_for_all_samples_is_the_same_for_each():
    rng = np.random.default_rng(3)
    q, qd, u = samples(ACROBOT, 2 * LANES + 1)
    wrench, base = rng.normal(size=(2, 6)), tuple(rng.normal(size=(2, 6)))
    shared = hybrid(ACROBOT, q, qd, u, wrench=wrench, base=base)
    each = hybrid(
        ACROBOT, q, qd, u, wrench=np.tile(wrench, (len(q), 1, 1)), base=[np.tile(b, (len(q), 1)) for b in base]
    )
    np.testing.assert_array_equal(shared, each)
    half = hybrid(ACROBOT, q, qd, u, wrench=wrench, base=(base[0], np.tile(base[1], (len(q), 1))))
    np.testing.assert_array_equal(shared, half)


def test_no_loads_are_no_wrench():
    np.testing.assert_array_equal(hybrid(ACROBOT, Z, Z, Z, wrench=[]), hybrid(ACROBOT, Z, Z, Z))


@pytest.mark.nojit
@pytest.mark.parametrize("ask", careful)
def test_a_motion_of_the_base_of_another_form_is_refused(ask):
    for base in (SIX, (SIX,), (SIX,) * 3, 0.0, np.array(1.0), "ab" * 2, {0: SIX, 1: SIX}, np.zeros((3, 6))):
        with pytest.raises(InvalidValue, match=r"^base: expected the pair \(V0, dV0\)"):
            ask(ACROBOT, Z, Z, Z, base=base)
    for bad in (np.zeros(5), np.zeros((1, 6)), 0.0):
        with pytest.raises(ShapeError, match=r"^base, dV0: expected shape \(6,\), got .*angular, linear"):
            ask(ACROBOT, Z, Z, Z, base=(SIX, bad))
    batch = [np.zeros((3, 2))] * 3
    with pytest.raises(ShapeError, match=r"^base, V0: expected shape \(6,\) or \(3, 6\), got \(2, 6\)"):
        ask(ACROBOT, *batch, base=(np.zeros((2, 6)), SIX))
    with pytest.raises(InvalidType, match=r"^base, V0: expected real numbers"):
        ask(ACROBOT, Z, Z, Z, base=("fast", SIX))


@pytest.mark.nojit
def test_a_motion_of_the_base_that_is_not_finite_is_refused():
    fast = np.zeros((3, 6))
    fast[2, 3] = np.nan
    batch = [np.zeros((3, 2))] * 3
    with pytest.raises(NonFinite, match=r"^base, V0: expected finite numbers, got nan at index \(2, 3\)"):
        hybrid(ACROBOT, *batch, base=(fast, SIX))
    with pytest.raises(NonFinite, match=r"^base, dV0: expected finite numbers, got nan at index 3"):
        hybrid(ACROBOT, *batch, base=(np.zeros((3, 6)), fast[2]))
