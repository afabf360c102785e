"""What may be given to the package instead of what serves: other types, numbers, shapes, damaged texts."""

from __future__ import annotations

import copy
import datetime
import decimal
import fractions
import functools
import random
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cstormpy as cs
from cstormpy import library


class Odd:
    """An object that is equal to nothing in particular, and prints itself with an error."""

    def __repr__(self) -> str:
        return "<an odd object>"


ODD: list[Callable[[], Any]] = [
    *(functools.partial(lambda v: v, value) for value in (
        None, True, False, 0, 1, 2, -1, 7, 10**6, 10**400, -(10**400), 10**5000, 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308,
        float("nan"), float("inf"), -float("inf"), 1j, "", "x", "plant", "x\0y", "\ud800", "é" * 300, "1.5", b"x", (),
        [], {}, set(), [1], [1, 2], [1.0, 2.0], (0.0, 1.0, 0.0), [0, 0], ["x"], [None], [[1, 2], [3]], [[]], [1, "x"],
        {"x": 1}, {1: 2}, [1e308, 1e308], [float("nan"), 0.0], [True, False], range(3), slice(0, 2), Ellipsis,
        fractions.Fraction(1, 3), decimal.Decimal("0.1"), datetime.date(2001, 9, 1), int, len, np.sin,
        Path("no") / "such" / "file", Path("/"), np.float32(0.5), np.int8(1), np.bool_(True), np.str_("x"),
    )),
    Odd,
    lambda: np.array(5.0),
    lambda: np.array(1),
    lambda: np.array("x"),
    lambda: np.array(["abc", "de"]),
    lambda: np.array([1, None], dtype=object),
    lambda: np.array([]),
    lambda: np.zeros(2),
    lambda: np.zeros(3),
    lambda: np.ones((2, 2)),
    lambda: np.ones((1, 3)),
    lambda: np.eye(4),
    lambda: np.eye(4) * 1e308,
    lambda: np.zeros((0, 3)),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.ones(2, dtype=complex),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    lambda: np.array(["2001-01-01"], dtype="M8[D]"),
    lambda: np.zeros(2, dtype=[("a", float)]),
    lambda: iter([1.0, 2.0]),
    lambda: (k for k in "ab"),
    lambda: types.SimpleNamespace(shape=(2,), dtype=float),
    lambda: library.pendulum(),
    lambda: cs.Revolute([0, 0, 1]),
    lambda: (lambda *arguments: None),
    lambda: (lambda: 1 / 0),
]  # fmt: skip


def odd(rng: random.Random) -> Any:
    """Return something that nobody expects."""
    return rng.choice(ODD)()


def altered(rng: random.Random, value: Any) -> Any:
    """Return something near a value that serves: an entry less, more, of another kind, or out of bounds."""
    if rng.random() < 0.5:
        return odd(rng)
    if isinstance(value, dict) and value:
        out = dict(value)
        key = rng.choice(list(out))
        action = rng.random()
        if action < 0.2:
            del out[key]
        elif action < 0.3:
            out[rng.choice(["x", "", "mass ", 3])] = odd(rng)
        else:
            out[key] = altered(rng, out[key])
        return out
    if isinstance(value, (list, tuple)) and value:
        out = list(value)
        k = rng.randrange(len(out))
        action = rng.random()
        if action < 0.2:
            del out[k]
        elif action < 0.3:
            out.insert(k, copy.copy(out[k]))
        else:
            out[k] = altered(rng, out[k])
        return type(value)(out) if type(value) in (list, tuple) else out
    if isinstance(value, np.ndarray) and value.size:
        out = np.array(value, dtype=float)
        out.flat[rng.randrange(out.size)] = rng.choice([float("nan"), float("inf"), 1e308, -1.0, 0.0, 1e-320])
        return rng.choice([out, out.T, out[:-1], out.tolist(), out[None]])
    if isinstance(value, bool) or value is None:
        return odd(rng)
    if isinstance(value, (int, float)):
        return rng.choice([-value, 0, value * 1e300 if isinstance(value, float) else value * 3, str(value), [value]])
    if isinstance(value, str):
        return rng.choice([value.upper(), value[:-1], value + "\0", value * 2, f" {value}", [value], value.encode()])
    return odd(rng)


def corrupted(rng: random.Random, text: str) -> bytes:
    """Return a text as bytes, some of which are others."""
    raw = bytearray(text.encode())
    for _ in range(rng.choice([1, 1, 2, 5])):
        if not raw:
            break
        k = rng.randrange(len(raw))
        action = rng.random()
        if action < 0.3:
            raw[k] = rng.randrange(256)
        elif action < 0.5:
            del raw[k : k + rng.choice([1, 3, 40])]
        elif action < 0.7:
            raw[k:k] = rng.choice([b"{", b"]", b'"', b"null", b"1e999", b"NaN", b"\\u0000", b"\xff", b"[" * 3000, b"-"])
        elif action < 0.8:
            del raw[k:]
        else:
            raw[k : k + 1] = rng.choice([b"0", b"9", b",", b":", b" ", b"true", b"<", b">"])
    return bytes(raw)
