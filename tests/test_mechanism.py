"""Links, joints and mechanisms: what is refused and how, equality, immutability, derivation, print."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from two_links import NAN, Z, pose_of, rotation, two_links

import cstormpy as cs
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.linkage.parameters import parameter_names
from cstormpy.linkage.printing import MAX_ROWS
from cstormpy.mechanism import Fixed, Limits, Link, Mechanism, Prismatic, Revolute, Screw, library


class TestMechanism:
    def test_names_and_order(self):
        # The child first, a weld in the middle, and a joint that is called by its link.
        links = [
            Link("hand", "wrist", Prismatic((1, 0, 0))),
            Link("wrist", "arm", Fixed(name="weld")),
            Link("arm", None, Revolute(Z, name="shoulder")),
            Link("leg", None, Screw(Z, 0.1)),
        ]
        mech = Mechanism(iter(links), actuated=["leg", "hand"], active=["leg"])
        assert mech.n == 3
        assert mech.names == ("hand", "shoulder", "leg")
        assert mech.links == tuple(links)
        assert mech.parents.tolist() == [1, 2, -1, -1]
        assert mech.joint_links.tolist() == [0, 2, 3]
        assert mech.actuated == ("hand", "leg")  # in the order of q
        assert mech.active == ("leg",)
        assert mech.passive == ("hand", "shoulder")
        assert mech.actuated_mask.tolist() == [True, False, True]
        assert mech.active_mask.tolist() == [False, False, True]
        assert mech.link_index("arm") == 2
        assert mech.joint_index("shoulder") == 1
        assert mech.link("leg") is links[3]
        assert mech.joint("weld") is links[1].joint
        for array in (mech.parents, mech.joint_links, mech.active_mask, mech.actuated_mask, mech.gravity):
            assert not array.flags.writeable

    def test_defaults(self):
        mech = two_links()
        assert mech.gravity.tolist() == [0.0, -9.81, 0.0]
        assert mech.actuated == ("shoulder", "elbow")
        assert mech.active == ()
        assert mech.passive == mech.names

    def test_only_welds(self):
        mech = Mechanism([Link("plate")])
        assert mech.n == 0
        assert mech.active_mask.shape == mech.joint_links.shape == (0,)
        assert "plate" in str(mech)

    @pytest.mark.parametrize(
        ("links", "error", "message"),
        [
            ([], InvalidValue, "links: there are none"),
            (
                [Link("a", parent="world")],
                UnknownName,
                r"link 'a': parent 'world' does not exist; there are none \(None is the",
            ),
            (Link("a"), InvalidType, "links: expected a list of links, got a Link"),
            ("ab", InvalidType, "links: expected a list of links, got 'ab'"),
            (7, InvalidType, "links: expected a list of links, got 7"),
            # It has __iter__, and raises a TypeError of its own when iterated.
            (np.array(1), InvalidType, "links: expected a list of links, got 1"),
            ([Link("a"), "b"], InvalidType, r"links\[1\]: expected a Link, got 'b'"),
            ([Link("a"), Link("b"), Link("a")], InvalidValue, r"link 'a': the name occurs twice \(entries 0 and 2\)"),
            (
                [Link("a", joint=Revolute(Z, name="j")), Link("b", joint=Revolute(Z, name="j"))],
                InvalidValue,
                "joint 'j': the name occurs twice",
            ),
            (
                [Link("a", joint=Revolute(Z, name="b")), Link("b", joint=Revolute(Z))],
                InvalidValue,
                "joint 'b': the name occurs twice",
            ),
            ([Link("a", "a")], InvalidValue, "links form a cycle, .*: a -> a$"),
            (
                [Link("root"), Link("a", "c"), Link("b", "a"), Link("c", "b"), Link("d", "c")],
                InvalidValue,
                "links form a cycle, .*: a -> c -> b -> a$",
            ),
            (
                [Link("forearm"), Link("hand", "forarm")],
                UnknownName,
                "link 'hand': parent 'forarm' does not exist; did you mean 'forearm'?",
            ),
        ],
    )
    def test_refused_links(self, links, error, message):
        with pytest.raises(error, match=f"^{message}"):
            Mechanism(links)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"gravity": (0, 1)}, ShapeError, r"gravity: expected shape \(3,\), got \(2,\)"),
            ({"gravity": (0, NAN, 0)}, NonFinite, "gravity: "),
            ({"gravity": None}, InvalidType, "gravity: "),
            ({"actuated": ["elbo"]}, UnknownName, "actuated: joint 'elbo' does not exist; did you mean 'elbow'?"),
            ({"actuated": ["elbow", "elbow"]}, InvalidValue, "actuated: joint 'elbow' occurs twice"),
            ({"actuated": "elbow"}, InvalidType, r"actuated: .*write \['elbow'\]"),
            ({"active": ["sholder"]}, UnknownName, "active: joint 'sholder' .*'shoulder'"),
            ({"active": ["elbow", "elbow"]}, InvalidValue, "active: joint 'elbow' occurs twice"),
            ({"active": 1}, InvalidType, "active: expected a list of joint names, got 1"),
            ({"active": np.array(1)}, InvalidType, "active: expected a list of joint names, got 1"),
            ({"active": {"elbow": True}}, InvalidType, "active: expected a list of joint names, got {'elbow': True}"),
            ({"active": [1]}, InvalidType, "active: expected joint names, got 1"),
            ({"actuated": ["elbow"], "active": ["shoulder"]}, InvalidValue, "joint 'shoulder': is active but not act"),
        ],
    )
    def test_refused_options(self, options, error, message):
        with pytest.raises(error, match=f"^{message}"):
            two_links(**options)

    def test_fixed_joints_are_not_driven(self):
        links = [Link("a", joint=Revolute(Z)), Link("b", "a", Fixed(name="weld"))]
        with pytest.raises(InvalidValue, match=r"^active: joint 'weld' is fixed"):
            Mechanism(links, active=["weld"])
        with pytest.raises(InvalidValue, match=r"^joint 'weld': is fixed"):
            Mechanism(links).joint_index("weld")

    def test_unknown_names_are_offered_their_nearest(self):
        mech = two_links()
        for look_up in (mech.joint, mech.joint_index):
            with pytest.raises(UnknownName, match="joint 'elbo' does not exist; did you mean 'elbow'"):
                look_up("elbo")
            with pytest.raises(InvalidType):
                look_up(["elbow"])
        with pytest.raises(UnknownName, match="link 'uper' does not exist; did you mean 'upper'"):
            mech.link("uper")

    @pytest.mark.parametrize(
        ("made", "argument"),
        [
            (lambda: Revolute(Z, dampng=1.0), "Revolute: argument 'dampng' .* 'damping'"),
            (lambda: Revolute("hip", Z), "Revolute: takes axis by place, got 2; give the others by name"),
            (lambda: Link("thigh", mas=2.0), "Link: argument 'mas' .* 'mass'"),
            (lambda: Mechanism([Link("thigh", None, Revolute(Z))], gravty=0.0), "Mechanism: .* 'gravity'"),
            (lambda: Link(), "Link: needs 'name'"),
        ],
    )
    def test_arguments_that_are_not_taken_are_named(self, made, argument):
        with pytest.raises(TypeError, match=argument):
            made()

    def test_a_long_chain_from_its_tip(self):
        # The first link's way to the base is as long as the chain: no recursion, and no second walk.
        n = 5000
        links = [Link(f"l{k}", f"l{k - 1}" if k else None, Revolute(Z)) for k in range(n)]
        assert Mechanism(links[::-1]).parents[-1] == -1
        with pytest.raises(InvalidValue, match=r"form a cycle, .*: l0 -> l4999 -> .* -> … -> l0$"):
            Mechanism([Link("l0", f"l{n - 1}"), *links[1:]])

    @pytest.mark.parametrize("name", library.names())
    def test_equality_hash_pickle_and_copies(self, name):
        mech, again = library.get(name), library.get(name)
        assert mech == again
        assert hash(mech) == hash(again)
        mech.memo["table"] = object()  # neither compared nor pickled
        restored = pickle.loads(pickle.dumps(mech))
        assert restored == mech == again
        assert hash(restored) == hash(mech)
        assert restored.memo == {}
        assert not restored.links[0].com.flags.writeable
        assert copy.copy(mech) is mech
        assert copy.deepcopy(mech) is mech
        assert len({mech, again, restored}) == 1

    def test_inequality(self):
        mech = two_links()
        others = [
            mech.with_gravity((0, 0, 0)),
            mech.with_drive(active=["elbow"]),
            mech.with_drive(actuated=["elbow"]),
            mech.with_parameters({"fore.mass": 2}),
            mech.with_parameters({"elbow.damping": 0.2}),
            Mechanism(mech.links[::-1]),
        ]
        assert len({mech, *others}) == 7
        assert mech != "mechanism"
        assert Revolute(Z) != Prismatic(Z)
        assert Revolute(Z) != Screw(Z, 0.0)

    def test_minus_zero_is_zero(self):
        assert Revolute((0, -0.0, 1), rest=-0.0) == Revolute(Z)
        assert hash(Revolute((0, -0.0, 1), rest=-0.0)) == hash(Revolute(Z))

    def test_immutability(self):
        mech = two_links()
        for thing, name in ((mech, "gravity"), (mech, "new"), (mech.links[0], "mass"), (Revolute(Z), "damping")):
            with pytest.raises(CstormError, match="immutable") as caught:
                setattr(thing, name, 1.0)
            assert isinstance(caught.value, AttributeError)
        with pytest.raises(AttributeError, match="immutable"):
            del mech.links
        with pytest.raises(TypeError):
            mech._link_index["new"] = 1


class TestDerivation:
    def test_drive(self):
        mech = two_links()
        held = mech.with_drive(active=["elbow"])
        assert (held.active, held.actuated) == (("elbow",), ("shoulder", "elbow"))
        assert held.with_drive(actuated=["elbow"]).active == ("elbow",)
        assert held.with_drive(active=()) == mech
        assert held.active_mask.tolist() == [False, True]
        assert mech.active_mask.tolist() == [False, False]
        with pytest.raises(InvalidValue, match="joint 'elbow': is active but not actuated"):
            held.with_drive(actuated=["shoulder"])

    def test_gravity(self):
        assert two_links().with_gravity((1, 2, 3)) == two_links(gravity=(1, 2, 3))
        with pytest.raises(ShapeError, match=r"^gravity"):
            two_links().with_gravity(9.81)

    def test_caches_are_not_shared(self):
        mech = two_links()
        mech.memo["tables"] = 1
        for derived in (mech.with_gravity((0, 0, 0)), mech.with_drive(active=["elbow"]), mech.with_parameters({})):
            assert derived.memo == {}
            assert derived.memo is not mech.memo

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("a.mass", 2.0),
            ("a.com", [1.0, 2.0, 3.0]),
            ("a.inertia", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
            ("a.pose", pose_of(rotation()).tolist()),
            ("j.point", [1.0, 2.0, 3.0]),
            ("j.axis", [0.0, 1.0, 0.0]),
            ("j.pitch", 0.3),
            ("j.damping", 1.0),
            ("j.friction", 1.0),
            ("j.friction_velocity", 1.0),
            ("j.armature", 1.0),
            ("j.stiffness", -1.0),
            ("j.rest", -1.0),
            ("j.limits", Limits(torque=3)),
            ("gravity", [1.0, 2.0, 3.0]),
        ],
    )
    def test_every_parameter(self, name, value):
        mech = Mechanism([Link("a", joint=Screw(Z, 0.1, name="j")), Link("b.c", "a", Fixed())])
        assert name in parameter_names(mech.links)
        changed = mech.with_parameters({name: value})
        owner, _, field = name.rpartition(".")
        thing = {"a": changed.link("a"), "j": changed.joint("j"), "": changed}[owner]
        got = getattr(thing, field)
        assert (got.tolist() if isinstance(got, np.ndarray) else got) == value
        assert changed != mech
        assert changed.link("b.c") is mech.link("b.c")
        assert changed.names == mech.names

    def test_single_numbers_of_arrays_leave_the_others_as_they_are(self):
        """Derivatives, sliders and sweeps knew these names, and here they did not exist."""
        mech = library.puma560()
        link, joint = mech.links[2], mech.joint(mech.names[1])
        mixed = {
            f"{link.name}.com[1]": 0.3,
            f"{link.name}.inertia.xy": 1e-4,
            "gravity[0]": 1.5,
            f"{link.name}.mass": 9.0,
        }
        made = mech.with_parameters(mixed | {f"{mech.names[1]}.axis[0]": 0.75})
        assert made.link(link.name).com.tolist() == [link.com[0], 0.3, link.com[2]]
        inertia = link.inertia.copy()
        inertia[0, 1] = inertia[1, 0] = 1e-4
        np.testing.assert_array_equal(made.link(link.name).inertia, inertia)
        assert made.gravity.tolist() == [1.5, *mech.gravity[1:]] and made.link(link.name).mass == 9.0
        axis = np.array([0.75, *joint.axis[1:]])
        np.testing.assert_allclose(made.joint(mech.names[1]).axis, axis / np.linalg.norm(axis), rtol=1e-15)
        worn = cs.Mechanism(
            [Link("a", None, cs.Universal(((1, 0, 0), (0, 1, 0)), damping=(0.1, 0.2), name="j"), mass=1.0)]
        )
        assert worn.with_parameters({"j.damping[1]": 0.7}).joint("j").damping.tolist() == [0.1, 0.7]

    def test_several_at_once_and_names_with_dots(self):
        mech = Mechanism([Link("a.b", joint=Revolute(Z))])
        changed = mech.with_parameters({"a.b.mass": 2.0, "a.b.damping": 3.0, "a.b.rest": 1.0, "gravity": (0, 0, 0)})
        assert changed.links == (Link("a.b", joint=Revolute(Z, damping=3.0, rest=1.0), mass=2.0),)
        assert changed.joint("a.b").name is None

    @pytest.mark.parametrize(
        ("values", "error", "message"),
        [
            ({"fore.mas": 1}, UnknownName, "parameter 'fore.mas' does not exist; did you mean 'fore.mass'?"),
            ({"elbow.dampin": 1}, UnknownName, "parameter 'elbow.dampin' .* 'elbow.damping'"),
            ({"elbow.pitch": 1}, UnknownName, "parameter 'elbow.pitch' does not exist"),
            ({"elbow.name": "x"}, UnknownName, "parameter 'elbow.name' does not exist"),
            ({"gravty": 1}, UnknownName, "parameter 'gravty' does not exist; did you mean 'gravity'?"),
            ({3: 1}, InvalidType, "parameters: expected names"),
            ([("fore.mass", 1)], InvalidType, "parameters: expected a mapping"),
            ({"fore.mass": -1}, InvalidValue, "link 'fore': mass: must not be negative"),
            ({"elbow.damping": -1}, InvalidValue, "joint 'elbow': damping: must not be negative"),
            ({"elbow.axis": (0, 0, 0)}, InvalidValue, "joint 'elbow': axis: is zero"),
            ({"gravity": (0, 0)}, ShapeError, "gravity: expected shape"),
            ({"fore.com[3]": 1.0}, UnknownName, r"parameter 'fore.com\[3\]' does not exist; did you mean 'fore.com'"),
            ({"fore.com[0]": "x"}, InvalidType, r"parameter 'fore.com\[0\]': expected a number"),
            ({"fore.com[0]": 1.0, "fore.com": (0, 0, 0)}, InvalidValue, r"parameter 'fore.com\[0\]': is given twice"),
            ({"fore.pose.x": 1.0}, InvalidValue, "parameter 'fore.pose.x': is by how much the frame is moved"),
        ],
    )
    def test_refusals(self, values, error, message):
        with pytest.raises(error, match=f"^{message}"):
            two_links().with_parameters(values)

    def test_unnamed_joints_are_named_by_their_link_in_messages(self):
        with pytest.raises(InvalidValue, match=r"^joint 'a': damping"):
            Mechanism([Link("a", joint=Revolute(Z))]).with_parameters({"a.damping": -1})

    def test_replace(self):
        link = Link("a", mass=1.0)
        assert link.replace(mass=2.0) == Link("a", mass=2.0)
        with pytest.raises(UnknownName, match=r"Link parameter 'mas' .* 'mass'"):
            link.replace(mas=2.0)


class TestPrint:
    def test_table(self):
        links = [
            Link("arm", None, Revolute(Z, name="shoulder", damping=0.1), mass=12.5, com=(0.5, 0, 0)),
            Link("plate", "arm", Fixed(name="weld"), mass=1.0),
            Link("tool", "plate", Screw((1, 0, 0), 0.2, limits=Limits(torque=3), point=(0, 1, 0)), mass=0.25),
        ]
        text = str(Mechanism(links, gravity=(0, 0, -9.80665), actuated=["tool"], active=["tool"]))
        expected = """
Mechanism of 3 links, n = 2, gravity (0, 0, -9.80665)
q  joint     type      drive   axis       link   parent  mass  com          more
0  shoulder  revolute  free    (0, 0, 1)  arm    (base)  12.5  (0.5, 0, 0)  damping 0.1
-  weld      fixed     -       -          plate  arm        1  (0, 0, 0)
1  tool      screw     active  (1, 0, 0)  tool   plate   0.25  (0, 0, 0)    pitch 0.2, point (0, 1, 0), torque (-3, 3)
"""
        assert text == expected.strip()

    @pytest.mark.parametrize(("n", "rows"), [(100, 100), (MAX_ROWS, MAX_ROWS), (1000, MAX_ROWS + 1)])
    def test_large_mechanisms(self, n, rows):
        lines = str(library.chain(n)).splitlines()
        assert len(lines) == 2 + rows
        column = lines[1].index("link")
        assert all(line[column:].startswith("link") for line in lines[1:] if not line.startswith("…"))
        assert lines[-1].split()[:2] == [str(n - 1), f"joint{n}"]
        assert (n > MAX_ROWS) == any(line == f"… {n - MAX_ROWS} more links …" for line in lines)

    def test_repr_is_short(self):
        assert repr(two_links()) == "<Mechanism of 2 links, n = 2: shoulder, elbow>"
        assert len(repr(library.chain(100))) < 100

    def test_values_read_like_their_constructors(self):
        link = Link("b", "a", Screw((0, 0, 2), 0.1, limits=(-1, 2), rest=0.5, name="s", point=(1, 0, 0)), mass=1)
        assert eval(repr(link)) == link
        assert eval(repr(Fixed(name="w"))) == Fixed(name="w")


numbers = st.one_of(
    st.floats(), st.integers(), st.booleans(), st.none(), st.text(max_size=3), st.complex_numbers(), st.fractions()
)
things = st.recursive(
    st.one_of(numbers, st.binary(max_size=3), st.sampled_from([np.eye(4), np.eye(3), np.array(1), object()])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(st.text(), inner)),
    max_leaves=12,
)
vectors = st.one_of(things, st.tuples(st.floats(), st.floats(), st.floats()))
joint_options = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("damping", "friction", "friction_velocity", "armature", "stiffness", "rest", "name"), numbers),
        "point": vectors,
        "limits": st.one_of(things, st.tuples(numbers, numbers)),
    },
)
link_options = st.fixed_dictionaries(
    {},
    optional={
        "parent": numbers,
        "joint": things,
        "pose": things,
        "mass": numbers,
        "com": vectors,
        "inertia": st.one_of(things, st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=3, max_size=3)),
        "allow_impossible": things,
    },
)


class TestFuzz:
    @given(vectors, joint_options, numbers)
    def test_joints_raise_only_our_errors(self, axis, options, pitch):
        for make in (Revolute, Prismatic, lambda *a, **o: Screw(*a, pitch, **o)):
            try:
                joint = make(axis, **options)
            except CstormError:
                continue
            assert np.isfinite(joint.screw).all()
            assert pickle.loads(pickle.dumps(joint)) == joint

    @example("0", {"pose": ({}, [])})  # numpy's own error of ragged rows came through
    @given(numbers, link_options)
    def test_links_raise_only_our_errors(self, name, options):
        try:
            link = Link(name, **options)
        except CstormError:
            return
        assert np.isfinite(link.spatial_inertia).all()
        assert pickle.loads(pickle.dumps(link)) == link

    @given(
        st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), st.sampled_from("abcde"))), max_size=5),
        things,
        things,
        vectors,
    )
    def test_mechanisms_raise_only_our_errors(self, tree, actuated, active, gravity):
        links = [Link(name, parent, Revolute(Z)) for name, parent in tree]
        for options in ({}, {"actuated": actuated}, {"active": active}, {"gravity": gravity}):
            try:
                mech = Mechanism(links, **options)
            except CstormError:
                continue
            assert mech.n == len(links)
            assert re.match("<Mechanism", repr(mech))
            assert str(mech)

    @given(things)
    def test_what_is_no_list_of_links_is_refused(self, links):
        with pytest.raises(CstormError):
            Mechanism(links)
        with pytest.raises(CstormError):
            two_links().with_parameters({"fore.mass": links, "fore.com": links})
