"""Entries of mappings that are compared by machine code: what Python would say of them."""

from __future__ import annotations

import numpy as np
import pytest

from cstormpy.graph import identity
from cstormpy.graph.identity import ABSENT, Entries, of_type


@pytest.fixture(params=[True, False], ids=["by machine code", "in Python"])
def made(request, monkeypatch):
    """Return what makes entries, by the way of CPython and by that of any other Python."""
    if not request.param:
        monkeypatch.setattr(identity, "is_cpython", lambda: False)
    return Entries


@pytest.fixture
def held():
    return {"gain": 2.0, "limit": np.ones(2), ("a", 1): None, 7: "seven"}


def entries_of(held):
    return [
        (held, "gain", of_type(float)),
        (held, "limit", held["limit"]),
        (held, ("a", 1), None),
        (held, 7, held[7]),
        (held, "torque", ABSENT),
    ]


def test_entries_hold_as_long_as_they_are_the_same_objects(made, held):
    entries = made(entries_of(held))
    assert entries.hold()
    held["gain"], held["other"] = -1.0, object()
    assert entries.hold() and made([]).hold()


@pytest.mark.parametrize(
    ("key", "value"),
    [("gain", 3), ("gain", np.float64(2.0)), ("limit", np.ones(2)), (("a", 1), False), (7, "eight"), ("torque", None)],
)
def test_each_other_object_is_seen(made, held, key, value):
    entries = made(entries_of(held))
    held[key] = value
    assert not entries.hold()


@pytest.mark.parametrize("key", ["gain", "limit", ("a", 1), 7])
def test_an_entry_that_is_gone_is_seen(made, held, key):
    entries = made(entries_of(held))
    del held[key]
    assert not entries.hold() and not entries.take(lambda found, wanted: True)


def test_objects_that_are_alike_are_taken_from_then_on(made, held):
    entries = made(entries_of(held))
    held["limit"] = np.zeros(2)
    assert not entries.take(lambda found, wanted: False)
    assert entries.take(lambda found, wanted: found.shape == wanted.shape) and entries.hold()
    held["torque"] = 1.0
    assert not entries.take(lambda found, wanted: True)
