"""Saving and loading mechanisms: exact round trips, and refusals that name the place."""

from __future__ import annotations

import json
import math
import os
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cstormpy import json_files
from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue
from cstormpy.mechanism import Fixed, Limits, Link, Mechanism, Prismatic, Revolute, Screw, files, library

HEAD = {"format": files.FORMAT, "version": files.VERSION}


def everything():
    """A mechanism in which every field differs from its default."""
    a = np.array([1.0, 2.0, 3.0]) / math.sqrt(14.0)
    K = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    pose = np.eye(4)
    pose[:3, :3] = np.eye(3) + math.sin(0.3) * K + (1 - math.cos(0.3)) * K @ K
    pose[:3, 3] = 0.1, 1 / 3, 5e-324
    options = {
        "point": (0.1, 0.2, 1e-300),
        "damping": 0.1,
        "friction": 0.2,
        "friction_velocity": 0.3,
        "armature": 1e300,
        "stiffness": -0.5,
        "rest": 0.6,
        "limits": Limits(position=(-1.0, None), velocity=2.0, torque=(None, 1 / 3)),
    }
    links = [
        Link("ünï \"quoted\" \\ 'x'", "b", Revolute((1, 2, 3), **options, name="关节"), pose, 1 / 3, (0.1, 0.2, 0.3)),
        Link("b", None, Prismatic((3, 2, 1), **options), pose, 0.1, (1, 2, 3), np.eye(3) + 0.1),
        Link("c", "b", Screw((1, 1, 1), 1 / 7, **options), inertia=np.diag([0, 1, 0]), allow_impossible=True),
        Link("d", "c", Fixed(name="weld")),
    ]
    return Mechanism(links, (0.1, 0.2, 0.3), actuated=["关节", "b"], active=["b"])


def edited(mech, edit):
    content = mech.to_dict()
    edit(content)
    return content


class TestRoundTrip:
    @pytest.mark.parametrize("mech", [everything(), *map(library.get, library.names())], ids=lambda m: f"n{m.n}")
    def test_exact(self, mech, tmp_path):
        path = tmp_path / "mechanism.json"
        mech.save(path)
        loaded = Mechanism.load(path)
        assert loaded == mech
        assert str(loaded) == str(mech)
        assert Mechanism.from_dict(mech.to_dict()) == mech
        loaded.save(str(path))
        assert Mechanism.load(os.fsencode(path)) == mech

    @given(
        st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=3, max_size=3), st.floats(0, 1e9)
    )
    def test_every_float_comes_back(self, com, mass):
        try:
            mech = Mechanism([Link("a", mass=mass, com=com)])
        except CstormError:  # too far away
            return
        assert files.loads(json.dumps(mech.to_dict())) == mech

    def test_to_dict_is_plain_and_fresh(self):
        mech = everything()
        content = mech.to_dict()
        assert json.loads(json.dumps(content, allow_nan=False)) == content
        content["links"].clear()
        assert mech.to_dict() != content

    def test_from_dict_changes_nothing(self):
        content = everything().to_dict()
        before = json.dumps(content)
        Mechanism.from_dict(content)
        assert json.dumps(content) == before

    def test_text_is_readable(self, tmp_path):
        path = tmp_path / "pendulum.json"
        library.pendulum().with_drive(actuated=[]).save(path)
        expected = """{
  "format": "cstormpy mechanism",
  "version": 1,
  "gravity": [0.0, -9.81, 0.0],
  "actuated": [],
  "links": [
    {
      "name": "link1",
      "parent": null,
      "joint": {
        "type": "revolute",
        "axis": [0.0, 0.0, 1.0],
        "name": "joint1"
      },
      "mass": 1.0,
      "com": [0.5, 0.0, 0.0],
      "inertia": [
        [0.0, 0.0, 0.0],
        [0.0, 0.08333333333333333, 0.0],
        [0.0, 0.0, 0.08333333333333333]
      ]
    }
  ]
}
"""
        assert path.read_text(encoding="utf-8") == expected

    def test_what_is_missing_has_its_default(self):
        content = {**HEAD, "links": [{"name": "a"}, {"name": "b", "joint": {"type": "prismatic", "axis": [1, 0, 0]}}]}
        assert Mechanism.from_dict(content) == Mechanism([Link("a"), Link("b", joint=Prismatic((1, 0, 0)))])

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    def test_encodings(self, encoding):
        mech = everything()
        assert files.loads(json.dumps(mech.to_dict(), ensure_ascii=False).encode(encoding)) == mech


class TestSave:
    def test_replaces_and_leaves_nothing_beside(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_text("old")
        library.acrobot().save(path)
        assert Mechanism.load(path) == library.acrobot()
        assert os.listdir(tmp_path) == ["a.json"]

    def test_a_failed_save_keeps_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "a.json"
        library.acrobot().save(path)

        def fail(*_):
            raise OSError("disk full")

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            library.pendulum().save(path)
        assert Mechanism.load(path) == library.acrobot()
        assert os.listdir(tmp_path) == ["a.json"]

    @pytest.mark.parametrize("ending", [".urdf", ".URDF", ".xml", ".mjcf"])
    def test_a_robot_of_another_format_is_not_overwritten(self, ending, tmp_path):
        """JSON took the place of the URDF that the mechanism was read from, and could not be loaded again."""
        path = tmp_path / f"robot{ending}"
        path.write_text("<robot/>")
        with pytest.raises(InvalidValue, match=r"robot\..*: what is saved is JSON, .* mech\.to_urdf\(\) and"):
            library.acrobot().save(path)
        assert path.read_text() == "<robot/>"

    def test_follows_a_link(self, tmp_path):
        target, alias = tmp_path / "real.json", tmp_path / "alias.json"
        target.write_text("old")
        try:
            alias.symlink_to(target)
        except OSError:
            pytest.skip("this system lets not everybody make links")
        library.acrobot().save(alias)
        assert alias.is_symlink()
        assert Mechanism.load(target) == library.acrobot()

    def test_missing_places_are_the_system_s_errors(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            Mechanism.load(tmp_path / "none.json")
        with pytest.raises(OSError, match=r"a\.json: cannot be written: there is no folder"):
            library.acrobot().save(tmp_path / "none" / "a.json")

    @pytest.mark.parametrize("path", [None, 3, ["a.json"]])
    def test_what_is_no_path(self, path):
        with pytest.raises(InvalidType, match=r"^path: expected the path of a file"):
            Mechanism.load(path)
        with pytest.raises(InvalidType, match=r"^path: expected the path of a file"):
            library.acrobot().save(path)


def set_link(key, value, link=1):
    return lambda c: c["links"][link].__setitem__(key, value)


def set_joint(key, value, link=1):
    return lambda c: c["links"][link]["joint"].__setitem__(key, value)


class TestRefusals:
    @pytest.mark.parametrize(
        ("edit", "message"),
        [
            (lambda c: c.update(format="other"), "is not a mechanism: "),
            (lambda c: c.pop("format"), "is not a mechanism: "),
            (lambda c: c.update(version=2), "version: expected 1, got a whole number; another cstormpy"),
            (lambda c: c.update(version=True), "version: expected 1, got true"),
            (lambda c: c.pop("version"), "version: expected 1, got null"),
            (lambda c: c.update(gravitiy=[0, 0, 0]), "key 'gravitiy' does not exist; did you mean 'gravity'?"),
            (lambda c: c.pop("links"), "the key 'links' is missing"),
            (lambda c: c.update(links={}), "links: expected a list, got an object"),
            (lambda c: c.update(links=[]), "links: there are none"),
            (lambda c: c.update(gravity=9.81), "gravity: expected a list, got 9.81"),
            (lambda c: c.update(gravity=[0, 0]), "gravity: expected 3 entries, got 2"),
            (lambda c: c.update(gravity=[0, 0, "1"]), r"gravity\[2\]: expected a number, got '1'"),
            (lambda c: c.update(active="elbow"), "active: expected a list, got 'elbow'"),
            (lambda c: c.update(active=["elbow", 1]), r"active\[1\]: expected text, got a whole number"),
            (lambda c: c.update(active=["elbo"]), "active: joint 'elbo' does not exist; did you mean 'elbow'?"),
            (lambda c: c.update(active=["shoulder"]), "joint 'shoulder': is active but not actuated"),
            (lambda c: c["links"].append(3), r"links\[2\]: expected an object with keys, got a whole number"),
            (lambda c: c["links"].append({}), r"links\[2\]: the key 'name' is missing"),
            (lambda c: c["links"].append({"name": "forearm"}), "link 'forearm': the name occurs twice"),
            (set_link("name", 3), r"links\[1\].name: expected text, got a whole number"),
            (set_link("name", "\ud800"), r"links\[1\]: link name: "),
            (set_link("parent", "uper_arm"), "link 'forearm': parent 'uper_arm' .* did you mean 'upper_arm'?"),
            (set_link("parent", "forearm"), "links form a cycle"),
            (set_link("parent", []), r"links\[1\].parent: expected text, got a list"),
            (set_link("mas", 1), r"links\[1\]: key 'mas' does not exist; did you mean 'mass'?"),
            (set_link("mass", -1), r"links\[1\]: link 'forearm': mass: must not be negative"),
            (set_link("mass", None), r"links\[1\].mass: expected a number, got null"),
            (set_link("mass", True), r"links\[1\].mass: expected a number, got true"),
            (set_link("mass", 10**400), r"links\[1\].mass: expected a finite number that a float can hold"),
            (set_link("mass", math.inf), r"links\[1\].mass: expected a finite number"),
            (set_link("com", {"x": 1}), r"links\[1\].com: expected a list, got an object"),
            (set_link("pose", [[1, 0, 0, 0]] * 3), r"links\[1\].pose: expected 4 entries, got 3"),
            (set_link("pose", [[1, 0, 0]] * 4), r"links\[1\].pose\[0\]: expected 4 entries, got 3"),
            (set_link("pose", [[1, 0, 0, 0]] * 4), r"links\[1\]: link 'forearm': pose: is not a rigid transform"),
            (set_link("inertia", [[1, 0, 0]] * 3), r"links\[1\]: link 'forearm': inertia: is not symmetric"),
            (set_link("allow_impossible", 1), r"links\[1\].allow_impossible: expected true or false"),
            (set_link("joint", "revolute"), r"links\[1\].joint: expected an object with the key 'type'"),
            (set_link("joint", {"axis": [0, 0, 1]}), r"links\[1\].joint: expected an object with the key 'type'"),
            (set_joint("type", "revolut"), r"links\[1\].joint.type: joint type 'revolut' .* did you mean 'revolute'?"),
            (set_joint("type", []), r"links\[1\].joint.type: expected text, got a list"),
            (set_joint("type", "screw"), r"links\[1\].joint: the key 'pitch' is missing"),
            (set_joint("pitch", 1), r"links\[1\].joint: key 'pitch' does not exist"),
            (set_joint("axis", [0, 0, None]), r"links\[1\].joint.axis\[2\]: expected a number, got null"),
            (set_joint("axis", [0, 0]), r"links\[1\].joint.axis: expected 3 entries, got 2"),
            (set_joint("axis", [0, 0, 0]), r"links\[1\].joint: joint 'elbow': axis: is zero"),
            (set_joint("dampin", 1), r"links\[1\].joint: key 'dampin' does not exist; did you mean 'damping'?"),
            (set_joint("damping", -1), r"links\[1\].joint: joint 'elbow': damping: must not be negative"),
            (set_joint("limits", [0, 1]), r"links\[1\].joint.limits: expected an object with keys, got a list"),
            (set_joint("limits", {"torque": 3}), r"links\[1\].joint.limits.torque: expected a list"),
            (set_joint("limits", {"torque": [1]}), r"links\[1\].joint.limits.torque: expected \[low, high\], got 1"),
            (set_joint("limits", {"torque": [1, "2"]}), r"links\[1\].joint.limits.torque\[1\]: expected a number"),
            (set_joint("limits", {"torque": [2, 1]}), r"links\[1\].joint.limits: torque limits: the lower 2 is above"),
            (set_joint("limits", {"torqe": [2, 1]}), r"links\[1\].joint.limits: key 'torqe' .* did you mean 'torque'?"),
        ],
    )
    def test_the_place_is_named(self, edit, message, tmp_path):
        content = edited(library.acrobot(), edit)
        with pytest.raises(FileFormatError, match=f"^{message}"):
            Mechanism.from_dict(content)
        path = tmp_path / "bad.json"
        path.write_text(json.dumps(content).replace("Infinity", "1e999"))
        with pytest.raises(FileFormatError) as caught:
            Mechanism.load(path)
        assert str(caught.value).startswith(f"{path}: ")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (b"", "is not JSON"),
            (b"\xff\xfe\xfd", "is not JSON"),
            (b"\x80", "is not JSON"),
            (b"{", "is not JSON"),
            (b"[]", "is not a mechanism"),
            (b"null", "is not a mechanism"),
            (b'{"version": NaN}', "NaN stands where a finite number"),
            (b'{"version": -Infinity}', "-Infinity stands where a finite number"),
            (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' occurs twice in one object"),
            (b'{"a": [{"b": 1, "b": 1}]}', "the key 'b' occurs twice in one object"),
            (b'{"version": ' + b"1" * 100_000 + b"}", "a number of 100000 digits"),
            (b"[" * 1_000_000, "is nested too deeply|is not JSON"),
            (b'{"a":' * 1_000_000, "is nested too deeply|is not JSON"),
            (b"[" * 1_000_000 + b"]" * 1_000_000, "is nested too deeply"),
        ],
    )
    def test_what_is_no_mechanism(self, text, message):
        with pytest.raises(FileFormatError, match=f"^({message})"):
            files.loads(text)

    @pytest.mark.parametrize("content", [None, [], 3, "x", {}, {1: 2}, {**HEAD, 1: 2}])
    def test_what_is_no_dictionary_of_one(self, content):
        with pytest.raises(FileFormatError):
            Mechanism.from_dict(content)

    def test_a_huge_file_is_not_read(self, tmp_path, monkeypatch):
        path = tmp_path / "huge.json"
        path.write_text(" " * 2000)
        monkeypatch.setattr(json_files, "MAX_BYTES", 1000)
        with pytest.raises(FileFormatError, match="has more than 1000 bytes"):
            Mechanism.load(path)

    @pytest.mark.parametrize(
        "edit",
        [
            lambda c: c.update(gravity=[0.0] * 500_000),
            pytest.param(lambda c: c.update(links=[{"name": "a", "x" * 100_000: 1}] * 1000), marks=pytest.mark.slow),
            lambda c: c.update(links=[{"name": "x" * 100_000, "parent": "y" * 100_000}] * 20),
            lambda c: c.update(links=[{"name": f"n{k}", "parent": f"n{k + 1}"} for k in range(5000)]),
            lambda c: c.update(active=["z" * 150] * 50_000),
            pytest.param(set_link("com", [[[[[1.0]]]]] * 100_000), marks=pytest.mark.slow),
        ],
    )
    def test_large_nonsense_is_refused_soon(self, edit):
        text = json.dumps(edited(library.acrobot(), edit))
        start = time.process_time()
        with pytest.raises(FileFormatError):
            files.loads(text)
        assert time.process_time() - start < 5.0


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.floats(),
        st.integers(),
        st.just(10**400),
        st.text(max_size=4),
        st.sampled_from(["a", "b", "elbow", "revolute", "screw", "fixed"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from([*Link._fields, *Screw._fields, "type", *Limits._fields, "x"]), inner, max_size=4
        ),
    ),
    max_leaves=15,
)


class TestFuzz:
    @given(st.one_of(st.binary(), st.text(), st.text(alphabet='{}[]",:0123456789.eE-+ntf')))
    def test_any_text_is_refused_as_ours(self, text):
        with pytest.raises(FileFormatError):
            files.loads(text)

    @given(json_values)
    def test_any_content_is_refused_as_ours(self, value):
        for content in (value, {**HEAD, "links": value}, {**HEAD, "links": [{"name": "a", "joint": value}]}):
            try:
                Mechanism.from_dict(content)
            except FileFormatError:
                continue

    @given(st.data())
    def test_a_good_file_with_one_place_spoilt(self, data):
        content = everything().to_dict()
        parent, key = data.draw(st.sampled_from(list(places(content))))
        parent[key] = data.draw(json_values)
        try:
            mech = Mechanism.from_dict(content)
        except FileFormatError:
            return
        assert Mechanism.from_dict(mech.to_dict()) == mech

    @given(st.data())
    def test_a_good_text_with_some_characters_spoilt(self, data):
        text = bytearray(json.dumps(library.acrobot().to_dict()).encode())
        for _ in range(data.draw(st.integers(1, 4))):
            text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
        try:
            files.loads(bytes(text))
        except FileFormatError:
            return


def places(content):
    """Yield every (container, key) of nested lists and dictionaries."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield content, key
        if isinstance(value, (dict, list)):
            yield from places(value)
