"""Entries of mappings that are compared by machine code: what Python would say of them."""

from __future__ import annotations

import numpy as np
import pytest

from cstormpy.graph import gathering, identity
from cstormpy.graph.gathering import Gathered
from cstormpy.graph.identity import ABSENT, Entries, OfType


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
        (held, "gain", OfType(float)),
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


class Thing:
    def __init__(self):
        self.gain = 1.0


def _another_class(thing, items):
    thing.__class__ = type("Other", (Thing,), {})


def _another_mapping(thing, items):
    thing.__dict__ = {"gain": 1.0}


def _item(thing, items):
    items[1] = "another"


def _longer(thing, items):
    items.append(None)


def _shorter(thing, items):
    del items[2:]


@pytest.mark.parametrize("change", [_another_class, _another_mapping, _item, _longer, _shorter])
def test_objects_and_lists_are_to_stay_as_they_are(made, change):
    thing, items = Thing(), [1.5, "two", [3]]
    entries = made([], [thing], [items, []])
    thing.gain = 2.0
    assert entries.hold()
    change(thing, items)
    assert not entries.hold()


@pytest.fixture(params=[True, False], ids=["by machine code", "in Python"])
def gathered(request, monkeypatch):
    """Return what gathers numbers, by the way of CPython and by that of any other Python."""
    if not request.param:
        monkeypatch.setattr(gathering, "is_cpython", lambda: False)
    return Gathered


def numbers():
    held = {"gain": 2.0, "table": np.arange(6.0).reshape(2, 3), "some": np.array([7.0, 8.0, 9.0])}
    items = [0.5, np.array(4.0)]
    entries = [(held, "gain", None, 1), (held, "table", None, 2), (held, "some", [2, 0], 8), (items, 0, [0], 0)]
    return held, items, [*entries, (items, 1, None, 10)]


def test_numbers_are_gathered_from_where_they_stand(gathered):
    held, items, entries = numbers()
    assert all(gathered.takes(inside, inside[key]) for inside, key, _, _ in entries)
    reading, out = gathered(entries), np.zeros(11)
    held["gain"], held["some"], items[0] = -2.0, np.array([10.0, 11.0, 12.0]), 1e300
    assert reading.fill(out)
    np.testing.assert_array_equal(out, [1e300, -2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 12.0, 10.0, 4.0])
    assert gathered([]).fill(out)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gain", 3),
        ("gain", np.float64(3.0)),
        ("gain", np.ones(1)),
        ("table", np.ones(5)),
        ("table", np.ones((3, 2)).T),
        ("table", np.ones(6, dtype=np.float32)),
        ("some", [7.0, 8.0, 9.0]),
        ("some", None),
    ],
)
def test_what_is_of_another_kind_or_size_is_not_gathered(gathered, key, value):
    held, _, entries = numbers()
    reading = gathered(entries)
    held[key] = value
    assert not reading.fill(np.zeros(11))
    assert np.size(value) != np.size(numbers()[0][key]) or not gathered.takes(held, value) or key == "gain"


@pytest.mark.parametrize("shorter", [True, False])
def test_what_is_gone_is_not_gathered(gathered, shorter):
    held, items, entries = numbers()
    reading = gathered(entries)
    if shorter:
        del items[1]
    else:
        del held["gain"]
    assert not reading.fill(np.zeros(11))
