"""Curves in JSON files: exact both ways, and a file that is not a curve refused with its reason."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cstormpy import json_files
from cstormpy.errors import CstormError, FileFormatError
from cstormpy.trajectory import BSpline, bspline

CURVE = BSpline.uniform(np.random.default_rng(0).standard_normal((5, 2)) / 3.0, 1.1, names=["shoulder", "elbow"])


@given(
    points=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=6, max_size=6),
    t0=st.floats(-1e6, 1e6),
    duration=st.floats(1e-3, 1e6),
    degree=st.integers(1, 5),
    outside=st.sampled_from(["hold", "refuse"]),
)
@settings(max_examples=60, deadline=None)
def test_saved_and_loaded_to_the_last_bit(points, t0, duration, degree, outside):
    curve = BSpline.clamped(np.reshape(points, (6, 1)), duration, degree=degree, t0=t0, outside=outside)
    assert BSpline.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve


def test_file(tmp_path):
    path = tmp_path / "curve.json"
    for curve in (CURVE, CURVE.replace(names=None, outside="refuse")):
        curve.save(path)
        loaded = BSpline.load(str(path))
        assert loaded == curve and not loaded.knots.flags.writeable
        assert [p.name for p in tmp_path.iterdir()] == ["curve.json"]
    with pytest.raises(FileNotFoundError):
        BSpline.load(tmp_path / "none.json")


def changed(**changes):
    data = {**CURVE.to_dict(), **changes}
    return {key: value for key, value in data.items() if value is not ...}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object with the keys format, version"),
        (changed(format="cstormpy mechanism"), "format: expected 'cstormpy spline', got 'cstormpy mechanism'"),
        (changed(version=2), "version: expected 1"),
        (changed(version=True), "version: expected 1, got true"),
        (changed(knots=...), "the key 'knots' is missing"),
        (changed(knotz=[]), "key 'knotz' does not exist; did you mean 'knots'"),
        (changed(knots="abc"), "knots: expected a list, got 'abc'"),
        (changed(control_points=3), "control_points: expected a list, got a whole number"),
        (changed(degree=2), "carry 6 control points, got 5"),
        (changed(degree=3.0), "degree: expected a whole number"),
        (changed(outside="wrap"), "outside: expected 'hold'"),
        (changed(names=["a"]), "expected 2 joint names"),
        (changed(names="ab"), "names: expected a list of"),
        (changed(control_points=[[0, None]] * 5), r"control_points\[0\]\[1\]: expected a number, got null"),
        (changed(control_points=[[0, True]] * 5), r"control_points\[0\]\[1\]: expected a number, got true"),
        (changed(control_points=[0.0] * 5), r"control_points\[0\]: expected a list"),
        (changed(knots=[10**400] * 9), "too large"),
    ],
)
def test_what_a_dictionary_must_be(data, message):
    with pytest.raises(FileFormatError, match=message):
        BSpline.from_dict(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (json.dumps(CURVE.to_dict()).replace("0.0,", "NaN,", 1).encode(), "NaN stands where a finite number"),
        (json.dumps(CURVE.to_dict()).replace("0.0,", "-Infinity,", 1).encode(), "-Infinity stands where"),
        (json.dumps(CURVE.to_dict()).replace("0.0,", "1e999,", 1).encode(), "knots: expected finite .* got inf at"),
        (json.dumps(CURVE.to_dict()).replace("0.0,", "9" * 5000 + ",", 1).encode(), "5000 digits is too large"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"knots": ' + b"[" * 500 + b"]" * 500 + b"}", "missing"),
        (b'{"format": 1, "format": 2}', "occurs twice"),
        (b"null", "expected an object"),
    ],
)
def test_what_a_file_must_be(tmp_path, text, message):
    path = tmp_path / "wrong.json"
    path.write_bytes(text)
    with pytest.raises(FileFormatError, match=message) as caught:
        BSpline.load(path)
    assert str(path) in str(caught.value)


def test_a_file_too_large_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "large.json"
    CURVE.save(path)
    monkeypatch.setattr(json_files, "MAX_BYTES", 100)
    with pytest.raises(FileFormatError, match="more than 100 bytes"):
        BSpline.load(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(bspline._KEYS), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.sampled_from(bspline._KEYS), JSON)
@settings(max_examples=300, deadline=None)
def test_only_our_own_errors_come_out(key, value):
    try:
        curve = BSpline.from_dict(changed(**{key: value}))
    except CstormError:
        return
    assert BSpline.from_dict(curve.to_dict()) == curve
