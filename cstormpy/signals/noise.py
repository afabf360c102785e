"""Noise by a counter: the k-th number of a seed and a channel, the same wherever and in whatever order it is asked for.

Ten rounds of a Feistel network mix two words of 24 bits, as counter-based generators do (Salmon, Moraes, Dror and Shaw
2011, "Parallel random numbers: as easy as 1, 2, 3"); what a round adds is the middle of a square (Widynski 2020,
"Squares: a fast counter-based RNG"). Its keys are what the same network makes of the seed, round by round, with Weyl's
sequences as keys: keys that differ by the same number in all rounds only shift the samples in time. Each operation is
one of float64 that rounds nothing, so that interpreted and compiled code give the same numbers. A network is one to
one: two samples of a seed never are the same.

Normal numbers are quantiles of uniform ones by Wichura's algorithm AS 241 (PPND16), right to about 1e-16 of their size.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np

from cstormpy.signals.limits import either

Number = Any  # a float, an array of floats, or symbols

_WORD, _MIDDLE = 2.0**24, 2.0**12
_ROUNDS = 10
#: Of the keys by which a seed is mixed: golden ratio and √3 - 1, of 24 bits.
_WEYL = (10368889.0, 12281845.0)
_CHANNELS = 2.0**12
#: How many seeds there are.
MOST_SEED = 2**48


def seed_of(name: str) -> int:
    """Return the seed that a name stands for.

    >>> seed_of("noise.0") == seed_of("noise.0") != seed_of("noise.1")
    True
    """
    return zlib.crc32(name.encode())


def uniform(seed: Number, k: Number, channel: Number = 0.0) -> Number:
    """Return number k of a seed and a channel, within (0, 1), in steps of 2⁻⁴⁸.

    Parameters
    ----------
    seed : float
        A whole number from 0 to 2⁴⁸.
    k : float
        A whole number from 0 to 2³⁶.
    channel : float
        A whole number from 0 to 4095.

    Examples
    --------
    >>> round(float(uniform(1.0, 0.0)), 9) != round(float(uniform(1.0, 1.0)), 9)
    True
    """
    high = np.floor(k / _WORD)
    left, right = k - high * _WORD, high * _CHANNELS + channel
    second = np.floor(seed / _WORD)
    key, other = seed - second * _WORD, second
    for turn in range(1, _ROUNDS + 1):
        key, other = _round(key, other, turn * _WEYL[turn % 2] % _WORD)
        left, right = _round(left, right, key)
    return (left * _WORD + right + 0.5) / 2.0**48


def _round(left: Number, right: Number, key: Number) -> tuple[Number, Number]:
    """Return both words after a round of the network."""
    word = left + key
    word = word - np.floor(word / _WORD) * _WORD
    mixed = right + np.floor(word * word / _MIDDLE)
    return mixed - np.floor(mixed / _WORD) * _WORD, left


_A = (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
      13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608)  # fmt: skip
_B = (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
      5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0)  # fmt: skip
_C = (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
      3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734)  # fmt: skip
_D = (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
      0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0)  # fmt: skip
_E = (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
      0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772)  # fmt: skip
_F = (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
      0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0)  # fmt: skip


def _polynomial(coefficients: tuple[float, ...], x: Number) -> Number:
    value: Number = coefficients[0]
    for c in coefficients[1:]:
        value = value * x + c
    return value


def normal(p: Number) -> Number:
    """Return the quantile of the normal distribution, of a probability within (0, 1).

    >>> round(float(normal(0.975)), 12)
    1.959963984540
    """
    q = p - 0.5
    near = 0.180625 - q * q
    middle = q * _polynomial(_A, near) / _polynomial(_B, near)
    r = np.sqrt(-np.log(np.minimum(p, 1.0 - p)))
    tail = either(
        r <= 5.0,
        _polynomial(_C, r - 1.6) / _polynomial(_D, r - 1.6),
        _polynomial(_E, r - 5.0) / _polynomial(_F, r - 5.0),
    )
    return either(np.abs(q) <= 0.425, middle, either(q < 0.0, -tail, tail))


def low_pass(bandwidth: float, T: float) -> float:
    """Return by which factor a sampled signal of the first order keeps its last value, of a bandwidth in hertz.

    >>> 0.0 < low_pass(10.0, 0.001) < 1.0
    True
    """
    return math.exp(-2.0 * math.pi * bandwidth * T)
