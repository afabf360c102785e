"""The arrays by which a mechanism reaches the kernels: what is merged, how it is numbered, what each number means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import KINDS, random_mechanism, random_pose

from cstormpy import lie
from cstormpy.kernels import layout as at
from cstormpy.linkage.tables import _axis_frame, tables_of
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, Screw, library

pytestmark = pytest.mark.nojit

seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=30)


def node_rows(mech, drive="own"):
    """Return the numbers (n, 30) and the structure (n, 8) of all nodes, and the node of each link."""
    tables = tables_of(mech, drive)
    n = mech.n
    T = tables.T[at.T_NODES : at.T_NODES + at.T_NODE * n].reshape(n, at.T_NODE)
    N = tables.N[at.N_NODES : at.N_NODES + at.N_NODE * n].reshape(n, at.N_NODE)
    return T, N, tables.N[at.N_NODES + at.N_NODE * n :][: len(mech.links)]


@some
@given(seeds)
def test_each_coordinate_knows_its_node(seed):
    mech = random_mechanism(np.random.default_rng(seed), links=8)
    _, structure, _ = node_rows(mech)
    nodes = tables_of(mech).N[len(tables_of(mech).N) - mech.n :]
    np.testing.assert_array_equal(structure[nodes - 1, at.N_COORDINATE], np.arange(mech.n))


def link_poses_in_nodes(mech):
    rows = tables_of(mech).T[at.T_NODES + at.T_NODE * mech.n :].reshape(len(mech.links), at.T_LINK)
    return [lie.make_pose(lie.nearest_rotation(row[:9].reshape(3, 3)), row[9:]) for row in rows]


def symmetric(six):
    S = np.zeros((3, 3))
    S[np.triu_indices(3)] = six
    return S + np.triu(S, 1).T


def node_spatial_inertia(row):
    """Return the 6x6 inertia at the node's frame from its mass, mass centre and central inertia."""
    return lie.spatial_inertia(
        row[at.T_MASS], row[at.T_COM : at.T_COM + 3], symmetric(row[at.T_INERTIA : at.T_INERTIA + 6])
    )


# Links on fixed joints --------------------------------------------------------------------------------


@some
@given(seeds)
def test_merging_conserves_mass_mass_centre_and_inertia(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links=8, kinds=("revolute", "fixed", "screw", "fixed"))
    rows, _, node_of_link = node_rows(mech)
    poses = link_poses_in_nodes(mech)
    for k, row in enumerate(rows):
        carried = [i for i in range(len(mech.links)) if node_of_link[i] == k + 1]
        whole = sum(lie.transform_inertia(poses[i], mech.links[i].spatial_inertia) for i in carried)
        np.testing.assert_allclose(node_spatial_inertia(row), whole, rtol=0, atol=1e-12)
    welded = [i for i in range(len(mech.links)) if node_of_link[i] == 0]
    on_base = sum((lie.transform_inertia(poses[i], mech.links[i].spatial_inertia) for i in welded), np.zeros((6, 6)))
    np.testing.assert_allclose(tables_of(mech).base_inertia, on_base, rtol=0, atol=1e-12)
    total = rows[:, at.T_MASS].sum() + tables_of(mech).base_inertia[5, 5]
    assert abs(total - sum(link.mass for link in mech.links)) < 1e-12


def test_two_point_masses_welded_into_a_dumbbell():
    end = np.eye(4)
    end[:3, 3] = [0, 2.0, 0]
    mech = Mechanism([
        Link("one", None, Revolute((0, 0, 1)), mass=3.0),
        Link("other", "one", Fixed(), pose=end, mass=1.0),
    ])  # fmt: skip
    (row,), _, node_of_link = node_rows(mech)
    assert row[at.T_MASS] == 4.0
    np.testing.assert_allclose(row[at.T_COM : at.T_COM + 3], [0, 0.5, 0], atol=1e-16)
    # reduced mass 3/4 at distance 2
    np.testing.assert_allclose(row[at.T_INERTIA : at.T_INERTIA + 6], [3.0, 0, 0, 0, 0, 3.0], atol=1e-15)
    assert node_of_link.tolist() == [1, 1]


def test_inertia_without_mass_stays():
    mech = Mechanism([Link("rotor", None, Revolute((0, 0, 1)), inertia=np.diag([1.0, 2.0, 3.0]))])
    (row,), _, _ = node_rows(mech)
    assert row[at.T_COM : at.T_COM + 3].tolist() == [0, 0, 0]
    np.testing.assert_allclose(symmetric(row[at.T_INERTIA : at.T_INERTIA + 6]), np.diag([1.0, 2.0, 3.0]), atol=1e-15)


def test_a_chain_of_fixed_links_on_the_base_belongs_to_the_base():
    mech = Mechanism([
        Link("top", "middle", Fixed(), mass=1.0),
        Link("arm", "top", Revolute((0, 0, 1)), mass=5.0),
        Link("middle", None, Fixed(), mass=2.0),
    ])  # fmt: skip
    rows, structure, node_of_link = node_rows(mech)
    assert node_of_link.tolist() == [0, 1, 0]
    assert structure[0, at.N_PARENT] == 0
    assert rows[0, at.T_MASS] == 5.0
    assert tables_of(mech).base_inertia[3, 3] == 3.0


# Numbering --------------------------------------------------------------------------------------------


@some
@given(seeds, st.floats(0, 1))
def test_nodes_are_numbered_depth_first(seed, branching):
    mech = random_mechanism(np.random.default_rng(seed), links=12, branching=branching)
    _, structure, node_of_link = node_rows(mech)
    parents = structure[:, at.N_PARENT]
    ends = structure[:, at.N_END]
    assert sorted(structure[:, at.N_COORDINATE]) == list(range(mech.n))
    below = {k + 1: {k + 1} for k in range(mech.n)}
    for k in range(mech.n, 0, -1):
        parent = parents[k - 1]
        assert 0 <= parent < k
        if parent:
            below[parent] |= below[k]
    for k, members in below.items():  # a subtree is the range from a node to its END
        assert members == set(range(k, ends[k - 1]))
    for link, carrier in enumerate(node_of_link):
        moved = np.flatnonzero(mech.joint_links == link)
        if moved.size:
            assert structure[carrier - 1, at.N_COORDINATE] == moved[0]
        else:
            parent = mech.parents[link]
            assert carrier == (node_of_link[parent] if parent >= 0 else 0)


def test_children_are_numbered_in_the_order_of_the_links():
    hinge = Revolute((0, 0, 1))
    mech = Mechanism([
        Link("leaf", "left", hinge, mass=1),
        Link("right", "root", hinge, mass=1),
        Link("left", "root", hinge, mass=1),
        Link("root", None, hinge, mass=1),
    ])  # fmt: skip
    _, structure, node_of_link = node_rows(mech)
    assert node_of_link.tolist() == [4, 2, 3, 1]
    assert structure[:, at.N_PARENT].tolist() == [0, 1, 1, 3]
    assert structure[:, at.N_END].tolist() == [5, 3, 5, 5]
    assert structure[:, at.N_COORDINATE].tolist() == [3, 1, 2, 0]


@pytest.mark.slow
def test_a_chain_as_deep_as_it_may_be_needs_no_recursion():
    mech = library.chain(1500)
    _, structure, _ = node_rows(mech)
    assert structure[:, at.N_PARENT].tolist() == list(range(1500))
    assert set(structure[:, at.N_END].tolist()) == {1501}


# Frames -----------------------------------------------------------------------------------------------


def check_axis_frame(axis):
    frame = _axis_frame(axis, np.array([1.0, 2.0, 3.0]))
    R = frame[:3, :3]
    np.testing.assert_array_equal(R[:, 2], axis)
    # a column whose length is off by two roundings has a square that is off by four, and is summed up with one more
    np.testing.assert_allclose(R.T @ R, np.eye(3), rtol=0, atol=5 * np.finfo(float).eps)
    assert np.linalg.det(R) > 0
    np.testing.assert_array_equal(frame[:3, 3], [1, 2, 3])
    np.testing.assert_array_equal(frame[3], [0, 0, 0, 1])


@given(st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: max(map(abs, v)) > 0))
def test_a_joints_axis_is_the_z_of_its_frame(direction):
    check_axis_frame(Revolute(direction).axis)


@pytest.mark.parametrize("tilt", [0.0, 1e-300, 1e-160, 1e-17, 1e-16, 1e-12, 1e-8, 1e-7, 1e-3])
@pytest.mark.parametrize("z", [1.0, -1.0])
@pytest.mark.parametrize("toward", [(1, 0), (0, 1), (1, 1), (-1, 1)])
def test_axes_near_z_are_no_exception(tilt, z, toward):
    check_axis_frame(Revolute((tilt * toward[0], tilt * toward[1], z)).axis)


@pytest.mark.parametrize("axis", [np.eye(3)[0], -np.eye(3)[0], np.eye(3)[1], -np.eye(3)[1], [1, 1, 1], [1, -1, 0]])
def test_axes_along_the_edges_of_a_cube(axis):
    check_axis_frame(Revolute(axis).axis)


def test_a_joint_about_z_keeps_the_links_own_axes():
    np.testing.assert_array_equal(_axis_frame(np.array([0, 0, 1.0]), np.zeros(3)), np.eye(4))


@some
@given(seeds)
def test_poses_at_rest_lead_from_the_base_to_every_link(seed):
    """At q = 0 the nodes' frames and the links' poses in them multiply to the poses of the links."""
    mech = random_mechanism(np.random.default_rng(seed), links=8)
    rows, structure, node_of_link = node_rows(mech)
    frames = [np.eye(4)]
    for row, node in zip(rows, structure, strict=True):
        step = np.eye(4)
        step[:3, :3] = row[at.T_E : at.T_E + 9].reshape(3, 3)
        step[:3, 3] = row[at.T_P : at.T_P + 3]
        frames.append(frames[node[at.N_PARENT]] @ step)
    for i, pose in enumerate(link_poses_in_nodes(mech)):
        expected, link = np.eye(4), i
        while link >= 0:
            expected = mech.links[link].pose @ expected
            link = mech.parents[link]
        np.testing.assert_allclose(frames[node_of_link[i]] @ pose, expected, rtol=0, atol=1e-13)


# What each number means -------------------------------------------------------------------------------


def test_numbers_of_a_joint_stand_in_their_places():
    options = {
        "damping": 0.1,
        "friction": 0.2,
        "friction_velocity": 0.25,
        "armature": 0.3,
        "stiffness": 0.4,
        "rest": 0.5,
    }
    mech = Mechanism(
        [
            Link("a", None, Screw((0, 0, 1), 0.7, **options), mass=1),
            Link("b", "a", Prismatic((0, 0, 1)), mass=1),
            Link("c", "b", Revolute((0, 0, 1)), mass=1),
            Link("d", "c", Screw((0, 0, 1), 0.0), mass=1),
        ],
        gravity=(1, 2, 3),
        active=["b"],
    )
    rows, structure, _ = node_rows(mech)
    assert tables_of(mech).T[:3].tolist() == [1, 2, 3]
    numbers = [at.T_ARMATURE, at.T_DAMPING, at.T_FRICTION, at.T_SMOOTH, at.T_STIFFNESS, at.T_REST]
    assert rows[0, numbers].tolist() == [0.3, 0.1, 0.2, 4.0, 0.4, 0.5]
    assert rows[:, at.T_PITCH].tolist() == [0.7, 1.0, 0.0, 0.0]
    assert structure[:, at.N_TURNS].tolist() == [1, 0, 1, 1]
    assert structure[:, at.N_SLIDES].tolist() == [1, 1, 0, 0]  # a screw without pitch does not slide
    assert structure[:, at.N_ACTIVE].tolist() == [0, 1, 0, 0]
    assert structure[:, at.N_LOSSES].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("loss", ["damping", "friction", "stiffness"])
def test_each_loss_is_noticed(loss):
    mech = Mechanism([Link("a", None, Revolute((0, 0, 1), **{loss: 0.1}), mass=1)])
    assert node_rows(mech)[1][0, at.N_LOSSES] == 1


@some
@given(seeds)
def test_deviates_where_a_joint_between_here_and_the_base_is_passive(seed):
    mech = random_mechanism(np.random.default_rng(seed), links=10)
    _, structure, _ = node_rows(mech)
    for k in range(mech.n):
        node, passive = k + 1, False
        while node:
            passive |= not structure[node - 1, at.N_ACTIVE]
            node = structure[node - 1, at.N_PARENT]
        assert structure[k, at.N_DEVIATES] == passive
        assert structure[k, at.N_ACTIVE] == mech.active_mask[structure[k, at.N_COORDINATE]]


@some
@given(seeds)
def test_the_nearest_passive_node_above_is_found(seed):
    mech = random_mechanism(np.random.default_rng(seed), links=10)
    for drive in ("own", "inverse", "forward"):
        _, structure, _ = node_rows(mech, drive)
        for k in range(mech.n):
            above = structure[k, at.N_PARENT]
            while above and structure[above - 1, at.N_ACTIVE]:
                above = structure[above - 1, at.N_PARENT]
            assert structure[k, at.N_ABOVE] == above


def test_a_node_is_tilted_unless_its_axes_are_its_parents():
    turned = np.diag([-1.0, -1.0, 1.0, 1.0])
    mech = Mechanism([
        Link("a", None, Revolute((0, 0, 1)), mass=1),
        Link("b", "a", Revolute((0, 0, 1)), pose=turned, mass=1),
        Link("c", "b", Revolute((1, 0, 0)), mass=1),
        Link("d", "c", Revolute((1, 0, 0)), mass=1),
    ])  # fmt: skip
    assert node_rows(mech)[1][:, at.N_TILTED].tolist() == [0, 1, 1, 0]


# Drives -----------------------------------------------------------------------------------------------


@some
@given(seeds)
def test_drives_share_the_numbers_and_differ_in_what_is_active(seed):
    mech = random_mechanism(np.random.default_rng(seed), links=6, kinds=KINDS)
    own = tables_of(mech)
    kept = own.N.copy()
    free = [c for c in range(at.N_NODE) if c not in (at.N_ACTIVE, at.N_DEVIATES, at.N_LOSSES, at.N_ABOVE)]
    for drive, active, deviates in (("inverse", 1, 0), ("forward", 0, 1), ("still", 1, 0)):
        other = tables_of(mech, drive)
        assert other.T is own.T
        _, structure, node_of_link = node_rows(mech, drive)
        assert (structure[:, at.N_ACTIVE] == active).all()
        assert (structure[:, at.N_DEVIATES] == deviates).all()
        losses = 0 if drive == "still" else node_rows(mech)[1][:, at.N_LOSSES]
        assert (structure[:, at.N_LOSSES] == losses).all()
        np.testing.assert_array_equal(structure[:, free], node_rows(mech)[1][:, free])
        np.testing.assert_array_equal(node_of_link, node_rows(mech)[2])
    np.testing.assert_array_equal(own.N, kept)


def test_tables_are_made_once_and_anew_for_what_is_derived():
    mech = library.acrobot()
    assert tables_of(mech) is tables_of(mech)
    assert tables_of(mech, "inverse") is tables_of(mech, "inverse")
    driven = mech.with_drive(active=["elbow"])
    assert node_rows(driven)[1][:, at.N_ACTIVE].tolist() == [0, 1]
    assert node_rows(mech)[1][:, at.N_ACTIVE].tolist() == [0, 0]
    heavy = mech.with_parameters({"forearm.mass": 9.0})
    assert node_rows(heavy)[0][1, at.T_MASS] == 9.0
    assert tables_of(mech.with_gravity((0, 0, -1))).T[:3].tolist() == [0, 0, -1]


def test_tables_do_not_depend_on_where_the_poses_come_from():
    """A welded link may be drawn anywhere along its chain of fixed joints."""
    rng = np.random.default_rng(4)
    first, second = random_pose(rng), random_pose(rng)
    hinge = Revolute((1, 2, 2))
    split = Mechanism([
        Link("bracket", None, Fixed(), pose=first),
        Link("arm", "bracket", hinge, pose=second, mass=1.0, com=(0.1, 0.2, 0.3)),
    ])  # fmt: skip
    whole = Mechanism([Link("arm", None, hinge, pose=first @ second, mass=1.0, com=(0.1, 0.2, 0.3))])
    np.testing.assert_allclose(node_rows(split)[0], node_rows(whole)[0], rtol=0, atol=1e-15)
