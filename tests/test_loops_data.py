"""Loops as data: refused where they cannot be, kept by whatever derives a mechanism, saved and loaded."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cstormpy as cs
from cstormpy import formulations
from cstormpy.formulations import kim, kim_joints, xiang


def shifted(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


def links():
    def rod(name, parent, at, length):
        joint = cs.Revolute((0, 0, 1), name=f"{name}_joint")
        return cs.Link(name, parent, joint, shifted(at), 1.0, (length / 2, 0, 0), np.diag([0, 0.01, 0.01]))

    return [rod("crank", None, 0.0, 0.3), rod("coupler", "crank", 0.3, 0.8), rod("rocker", None, 0.9, 0.5)]


def pin(directions="planar", **more):
    return cs.Loop("coupler", "rocker", (0.8, 0, 0), (0.5, 0, 0), directions, **more)


def test_what_derives_a_mechanism_keeps_its_loops():
    mech = cs.Mechanism(links(), loops=[pin("position")])
    for derived in (
        mech.with_drive(active=["crank_joint"]),
        mech.with_gravity((0, 0, -9.81)),
        mech.with_parameters({"crank.mass": 2.0}),
        mech.replace(active=["crank_joint"]),
        mech.without_fixed(),
        pickle.loads(pickle.dumps(mech)),
        cs.Mechanism.from_dict(mech.to_dict()),
    ):
        assert derived.loops == mech.loops
    assert mech != mech.without_loops() and not mech.without_loops().loops


def test_a_loop_is_saved_to_json_and_comes_back(tmp_path):
    turned = np.array([[0, -1, 0, 0.1], [1, 0, 0, 0], [0, 0, 1, 0.2], [0, 0, 0, 1.0]])
    loops = [pin(name="pin"), cs.Loop(None, "rocker", turned, None, (True, False, True, True, True, False))]
    mech = cs.Mechanism(links(), loops=loops)
    mech.save(tmp_path / "closed.json")
    assert cs.Mechanism.load(tmp_path / "closed.json") == mech
    with pytest.raises(cs.FileFormatError, match=r"loops\[0\]: link_a: .* does not exist|key 'links_a' does not exist"):
        cs.Mechanism.from_dict({**mech.to_dict(), "loops": [{"links_a": "crank", "link_b": None}]})


def test_the_table_and_the_short_form_show_loops():
    mech = cs.Mechanism(links(), loops=[pin()])
    assert repr(mech).startswith("<Mechanism of 3 links, 1 loop, n = 3: ")
    last = "loop 'coupler - rocker': coupler at (0.8, 0, 0) with rocker at (0.5, 0, 0), closed in rotation z, x, y"
    assert str(mech).splitlines()[-1] == last


def test_a_loop_moves_with_a_weld_that_is_taken_away():
    tip = cs.Link("tip", "coupler", cs.Fixed(), shifted(0.8), 0.1)
    mech = cs.Mechanism([*links(), tip], loops=[cs.Loop("tip", "rocker", None, (0.5, 0, 0), "planar")])
    (loop,) = mech.without_fixed().loops
    assert loop.link_a == "coupler" and loop.pose_a[0, 3] == 0.8


@pytest.mark.parametrize("write", [lambda m: m.to_urdf(), lambda m: m.to_dh()])
def test_a_format_without_loops_says_so(write):
    with pytest.raises(cs.InvalidValue, match=r"loop 'coupler - rocker': a .* has no loops"):
        write(cs.Mechanism(links(), loops=[pin()]))


def test_directions_are_said_by_truth_or_by_0_and_1():
    assert pin([0, 0, 0, 1, 1, 1]) == pin("position") == pin(np.array([0.0, 0, 0, 1, 1, 1]))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: cs.Loop("rocker", "rocker"), cs.InvalidValue, "both ends are on the same link"),
        (lambda: pin("plane"), cs.UnknownName, "did you mean 'planar'"),
        (lambda: pin((True,) * 5), cs.InvalidValue, "six True or False"),
        (lambda: pin((0, 0, 2, 1, 1, 0)), cs.InvalidValue, "six True or False"),
        (lambda: pin([False] * 6), cs.InvalidValue, "none is closed"),
        (lambda: pin(7), cs.InvalidType, "six True or False"),
        (lambda: cs.Loop("a", "b", np.ones((4, 4))), cs.InvalidValue, "loop 'a - b': pose_a: is not a rigid"),
        (lambda: cs.Mechanism(links(), loops=[pin(), pin()]), cs.InvalidValue, "occurs twice"),
        (lambda: cs.Mechanism(links(), loops=pin()), cs.InvalidType, "expected a list of Loop"),
        (lambda: cs.Mechanism(links(), loops=["pin"]), cs.InvalidType, r"loops\[0\]: expected a Loop"),
        (lambda: cs.Mechanism(links(), loops=[cs.Loop("crnk", "rocker")]), cs.UnknownName, "did you mean 'crank'"),
    ],
)
def test_what_no_loop_can_be_is_refused(make, error, said):
    with pytest.raises(error, match=said) as caught:
        make()
    assert isinstance(caught.value, cs.CstormError)


@pytest.mark.parametrize(
    "function",
    [formulations.hybrid_dynamics, kim.hybrid_dynamics, kim_joints.hybrid_dynamics, xiang.inverse_dynamics],
    ids=["Sohl and Bobrow", "Kim, Table 3", "Kim, Table 4", "Xiang"],
)
def test_recursions_of_open_chains_refuse_loops(function):
    mech = cs.library.four_bar()
    with pytest.raises(cs.InvalidValue, match="without_loops"):
        function(mech, np.zeros(3), np.zeros(3), np.zeros(3))
