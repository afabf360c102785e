"""Shapes of links: closed surfaces of the right size, kept by files, and drawn in place of lines."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cstormpy.control import upright
from cstormpy.errors import FileFormatError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.mechanism import Fixed, Free, Link, Mechanism, Revolute, Shape, skeleton
from cstormpy.report.data import skeleton_data

POSE = np.array([[0.0, -1.0, 0.0, 0.3], [1.0, 0.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.1], [0.0, 0.0, 0.0, 1.0]])
EACH = [
    (Shape("box", (1.0, 2.0, 3.0), POSE), 6.0),
    (Shape("sphere", (0.5,), POSE), 4 / 3 * np.pi * 0.125),
    (Shape("cylinder", (0.5, 2.0), POSE), np.pi * 0.5),
    (Shape("capsule", (0.5, 2.0), POSE), np.pi * 0.5 + 4 / 3 * np.pi * 0.125),
    (Shape("ellipsoid", (0.5, 1.0, 2.0), POSE), 4 / 3 * np.pi),
]
VISUALS = """<robot name="r">
  <material name="red"> <color rgba="1 0 0 1"/> </material>
  <link name="world"/>
  <link name="a">
    <visual> <geometry><box size="1 2 3"/></geometry> <material name="red"/> <origin xyz="1 2 3" rpy="0 0 1"/> </visual>
    <visual> <geometry> <sphere radius="0.5"/> </geometry> <material> <color rgba="0 0.5 1 1"/> </material> </visual>
    <visual> <geometry> <cylinder radius="0.5" length="2"/> </geometry> </visual>
    <collision> <geometry> <box size="9 9 9"/> </geometry> </collision>
  </link>
  <joint name="j" type="continuous"> <parent link="world"/> <child link="a"/> </joint>
</robot>"""


def hinged(*shapes, **options):
    return Mechanism([Link("a", None, Revolute((0, 0, 1), name="j"), mass=1.0, shapes=shapes, **options)])


@pytest.mark.parametrize(("shape", "volume"), EACH, ids=lambda value: getattr(value, "kind", ""))
def test_surfaces_are_closed_convex_and_of_the_right_size(shape, volume):
    """What the faces enclose is the volume, less what is cut off where it is round; all lie behind each face."""
    solid = shape.solid()
    np.testing.assert_allclose(solid.middle, POSE[:3, 3])
    enclosed, area = 0.0, np.zeros(3)
    for face, normal in zip(solid.faces, solid.normals, strict=True):
        corners = solid.corners[list(face)]
        for b, c in pairwise(corners[1:]):
            part = np.cross(b - corners[0], c - corners[0]) / 2
            assert part @ normal > 0
            area += part
            enclosed += corners[0] @ part / 3
        assert ((solid.corners - corners[0]) @ normal).max() < 1e-9
    np.testing.assert_allclose(area, 0.0, atol=1e-12)
    assert 0.8 * volume < enclosed < volume * (1 + 1e-12)
    assert np.linalg.norm(solid.corners - solid.middle, axis=1).max() == pytest.approx(shape.extent, rel=0.05)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Shape("cube", (1, 1, 1)), UnknownName, "shape 'cube' does not exist"),
        (lambda: Shape("box", (1, 1)), ShapeError, "box: size"),
        (lambda: Shape("sphere", (-1,)), InvalidValue, "sphere: size: must not be negative"),
        (lambda: Shape("sphere", (np.nan,)), NonFinite, "sphere: size"),
        (
            lambda: Shape("sphere", (1,), colour=(0, 0, 2)),
            InvalidValue,
            "sphere: colour: expected three numbers",
        ),
        (lambda: Shape("sphere", (1,), 2 * np.eye(4)), InvalidValue, "sphere: pose"),
        (lambda: hinged("ball"), InvalidType, r"link 'a': shapes\[0\]: expected a Shape, got 'ball'"),
        (lambda: Link("a", shapes=EACH[0][0]), InvalidType, "link 'a': shapes: expected a list of Shape"),
    ],
)
def test_what_is_no_shape_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


class TestFiles:
    def test_json(self):
        mech = hinged(*(shape for shape, _ in EACH), Shape("sphere", (1.0,), colour=(0.1, 0.2, 0.3)))
        assert Mechanism.from_dict(mech.to_dict()) == mech
        assert mech != hinged()

    @pytest.mark.parametrize(
        ("entry", "words"),
        [
            ({"kind": "cone", "size": [1]}, r"links\[0\]\.shapes\[0\]\.kind: shape 'cone' does not exist"),
            ({"kind": "box", "size": [1]}, r"links\[0\]\.shapes\[0\]\.size: expected 3 entries, got 1"),
            ({"kind": "box"}, r"links\[0\]\.shapes\[0\]: the key 'size' is missing"),
            ({"kind": "sphere", "size": [-1]}, r"links\[0\]\.shapes\[0\]: sphere: size: must not be negative"),
        ],
    )
    def test_json_that_is_wrong(self, entry, words):
        content = hinged().to_dict()
        content["links"][0]["shapes"] = [entry]
        with pytest.raises(FileFormatError, match=words):
            Mechanism.from_dict(content)

    def test_visuals_of_a_urdf(self):
        """Those of its own colour, of a named one, of none; what things collide with is not drawn."""
        box, sphere, cylinder = Mechanism.from_urdf(VISUALS).link("a").shapes
        assert (box.kind, box.size.tolist(), box.colour.tolist()) == ("box", [1, 2, 3], [1, 0, 0])
        np.testing.assert_allclose(box.pose[:3, 3], [1, 2, 3])
        np.testing.assert_allclose(box.pose[:2, 0], [np.cos(1), np.sin(1)])
        assert sphere == Shape("sphere", (0.5,), colour=(0, 0.5, 1))
        assert cylinder == Shape("cylinder", (0.5, 2.0))

    def test_a_urdf_brings_them_back(self, caplog):
        mech = hinged(*(shape for shape, _ in EACH), Shape("sphere", (1.0,), colour=(0.1, 0.2, 0.3)))
        back = Mechanism.from_urdf(mech.to_urdf(), gravity=mech.gravity)
        assert "a URDF draws no shapes of the kind capsule and ellipsoid; they are left out" in caplog.messages
        kept = [shape for shape in mech.link("a").shapes if shape.kind not in ("capsule", "ellipsoid")]
        for got, want in zip(back.link("a").shapes, kept, strict=True):
            assert (got.kind, got.size.tolist()) == (want.kind, want.size.tolist())
            np.testing.assert_allclose(got.pose, want.pose, atol=1e-15)

    def test_a_visual_without_a_size_is_refused(self):
        with pytest.raises(FileFormatError, match="line 6: link 'a': <sphere>: has no 'radius'"):
            Mechanism.from_urdf(VISUALS.replace('sphere radius="0.5"', "sphere"))

    def test_welded_links_keep_theirs(self):
        links = [Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Fixed(), POSE, shapes=[Shape("sphere", (1.0,))])]
        (shape,) = Mechanism(links).without_fixed().link("a").shapes
        np.testing.assert_allclose(shape.pose, POSE)


class TestDrawn:
    def test_they_count_for_what_a_picture_must_show(self):
        bones = skeleton(hinged(EACH[0][0]))
        low, high = bones.extent([0.0])
        np.testing.assert_allclose(high - low, [2.0, 1.0, 3.0])
        assert bones.reach >= np.linalg.norm([1.3, 0.7, 1.6])
        turned = bones.place(bones.poses([[0.0], [np.pi / 2]])).solids[0][0]
        assert turned.corners.shape == (2, 8, 3)
        np.testing.assert_allclose(turned.middle, [[0.3, 0.2, 0.1], [-0.2, 0.3, 0.1]], atol=1e-15)

    def test_the_page_has_them(self):
        (solid,) = skeleton_data(skeleton(hinged(Shape("box", (1, 1, 1), colour=(1, 0.5, 0)))))["solids"][0]
        assert (solid["colour"], len(solid["corners"]), len(solid["faces"])) == ([255, 128, 0], 8, 6)

    def test_a_figure_shows_them(self):
        from types import SimpleNamespace

        from cstormpy.report.figures import _figure

        for joint, kind in ((Revolute((0, 0, 1)), "Polygon"), (Free(), "Poly3DCollection")):
            mech = Mechanism([Link("a", None, joint, mass=1.0, shapes=[Shape("box", (1, 1, 1))])])
            t = np.array([0.0, 1.0])
            pane = SimpleNamespace(name="view", kind="mechanism", title="", t=t, y=np.zeros((2, mech.n)), labels=[],
                                   options={}, mechanism=mech, unit="")  # fmt: skip
            (axes,) = _figure(pane).axes
            assert kind in {type(artist).__name__ for artist in axes.get_children()}

    def test_nothing_of_the_base_leads_to_what_flies(self):
        far = np.eye(4)
        far[2, 3] = 2.0
        assert not skeleton(Mechanism([Link("a", None, Free(), far, mass=1.0)])).base
        assert len(skeleton(Mechanism([Link("a", None, Revolute((0, 1, 0)), far, mass=1.0)])).base) == 1


@pytest.mark.parametrize("kind, size", [("sphere", 0.0), ("box", (0, 0, 0)), ("capsule", (0, 0)), ("cylinder", (0, 0))])
def test_a_shape_without_extent_is_nothing_to_draw(kind, size):
    """The size of its mechanism was asked of an empty array: "zero-size array to reduction operation maximum".

    That size is asked for by laws, identification and optimal control as well.
    """
    rod = Link("rod", None, Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0))
    dotted = Mechanism([rod.replace(shapes=[Shape(kind, size)])])
    assert not dotted.links[0].shapes[0].solid().faces
    assert skeleton(dotted).reach == skeleton(Mechanism([rod])).reach
    assert dotted._repr_html_()
    q = upright(dotted)
    assert q == pytest.approx([np.pi / 2])
