"""Compiles the function of a diagram from its source, or reads it from disk where it was compiled before."""

from __future__ import annotations

import hashlib
import math
import types
import uuid

import numba
import numpy as np
from numba.core.errors import NumbaError

from cstormpy.kernels.compiling import _OPTIONS, _Kept, step
from cstormpy.kernels.entries_mechanisms import energies, motion
from cstormpy.kernels.entries_stepping import RATE

__all__ = ["Refused", "compiled"]


class Refused(Exception):
    """A function of the user that numba does not compile; `name` is that in the source."""

    def __init__(self, name, reason):
        super().__init__(reason)
        self.name = name


# What the source of a diagram may call ---------------------------------------------------------------


@step
def wrapped(angle):
    """Return an angle within [-π, π), as spatialmath's wrap_mpi_pi."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


@step
def wrapped_positive(angle):
    """Return an angle within [0, 2π), as spatialmath's wrap_0_2pi."""
    return angle - 2.0 * math.pi * np.floor(angle / 2.0 / math.pi)


@step
def wrapped_colatitude(angle):
    """Return an angle folded into [0, π], as spatialmath's wrap_0_pi."""
    angle = abs(angle)
    n = math.floor(angle / math.pi)
    return angle - n * math.pi if n % 2 == 0 else (n + 1) * math.pi - angle


@step
def nearest(x):
    """Return the whole number next to x, the even one of two, as NumPy's rint."""
    return np.rint(x)


@step
def clipped(value, least, most):
    """Return what Python's min(most, max(value, least)) gives."""
    above = least if least > value else value
    return above if above < most else most


@step
def interval(table, count, x):
    """Return the index i in [0, count - 2] of the interval table[i] <= x <= table[i + 1]; they increase."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[middle] < x:
            low = middle
        else:
            high = middle
    return low


@step
def spline(time, table, sizes, row, out):
    """Fill position, rate and acceleration (3 n) of a B-spline curve at a time within its interval.

    sizes: degree, number of control points m, of joints n, how many derivatives there are (0 to 2), and the least and
    the greatest span. table: the knots, the control points (m, n), then those of its derivatives (m − r, n). `row` has
    room for degree + 1 numbers. The basis functions are those of `cstormpy.trajectory.basis`.
    """
    degree, m, n = sizes[0], sizes[1], sizes[2]
    low, high = sizes[4], sizes[5] + 1
    while high - low > 1:
        middle = (low + high) // 2
        if table[middle] <= time:
            low = middle
        else:
            high = middle
    first = low - degree
    for k in range(3 * n):
        out[k] = 0.0
    row[0] = 1.0
    for d in range(degree + 1):
        if d > 0:
            carried = 0.0
            for r in range(d):
                left, right = table[low + 1 + r - d], table[low + 1 + r]
                share = row[r] / (right - left)
                row[r] = carried + (right - time) * share
                carried = (time - left) * share
            row[d] = carried
        order = degree - d
        if order <= sizes[3]:
            points = m + degree + 1 + order * m * n - (order * (order - 1) // 2) * n
            for k in range(d + 1):
                for j in range(n):
                    out[order * n + j] += row[k] * table[points + (first + k) * n + j]


def _callable(name):
    entries = {"motion": motion, "energies": energies}
    if name in entries:
        return entries[name].load()
    return {
        "wrapped": wrapped,
        "wrapped_positive": wrapped_positive,
        "wrapped_colatitude": wrapped_colatitude,
        "clipped": clipped,
        "nearest": nearest,
        "interval": interval,
        "spline": spline,
        "math": math,
    }[name]


# The function ----------------------------------------------------------------------------------------


def compiled(source, calls, functions, fingerprint):
    """Return the function of a diagram, ``rate``, ready to run and to be handed to `advance`.

    Parameters
    ----------
    source : str
        Of one function ``rate(t, x, z, p, n, w, out, xd)``.
    calls : iterable of str
        What it calls of this file.
    functions : dict of str to (function, str)
        What it calls of the user's, and the types of their arguments.
    fingerprint : str or None
        Of the user's functions; None if they have none that another process could know, and nothing is kept on disk.

    Notes
    -----
    What is compiled bears the digest in its name. Code that is read from disk keeps the symbols of the process that
    compiled it; were two of them alike, a stepper would be handed the function of another diagram.
    """
    digest = hashlib.sha256((source + (fingerprint or uuid.uuid4().hex)).encode()).hexdigest()[:24]
    space = {"__name__": __name__, **{name: _callable(name) for name in calls}}
    jit = not numba.config.DISABLE_JIT
    for name, (function, _) in functions.items():
        space[name] = (
            numba.njit(error_model="python", boundscheck=True)(_copy(function, f"{name}_{digest}")) if jit else function
        )
    exec(compile(source.replace("def rate(", f"def rate_{digest}(", 1), "<diagram>", "exec"), space)
    rate = space[f"rate_{digest}"]
    if not jit:
        return rate
    dispatcher = numba.njit(**_OPTIONS, nogil=True)(rate)
    if fingerprint is None:
        _check(space, functions)
        dispatcher.compile(RATE)
    else:
        with _Kept(f"diagram.{digest}") as kept:
            dispatcher._cache = _Checking(kept, lambda: _check(space, functions))
            dispatcher.compile(RATE)
    dispatcher.disable_compile()
    return dispatcher


def _copy(function, name):
    """Return a user's function as one of this module, which any process can import that reads the compiled code."""
    code = function.__code__.replace(co_name=name)
    copy = types.FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__ = __name__, name
    return copy


class _Checking:
    """A cache that has the user's functions looked at where nothing is kept yet, so that errors name one of them."""

    def __init__(self, kept, check):
        self._kept, self._check = kept, check

    def load_overload(self, sig, target_context):
        try:
            found = self._kept.load_overload(sig, target_context)
        except (ImportError, AttributeError):  # it calls what this process does not know
            found = None
        if found is None:
            self._check()
        return found

    def __getattr__(self, name):
        return getattr(self._kept, name)


def _check(space, functions):
    for name, (_, arguments) in functions.items():
        try:
            space[name].compile(f"({arguments},)")
        except NumbaError as error:
            raise Refused(name, _first_lines(error)) from error
        except Exception as error:  # numba's own faults on code it does not know
            raise Refused(name, f"{type(error).__name__}: {error}") from error


def _first_lines(error):
    """Return what numba says, on one line, without its advice."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("-", "During:", "This error", "Failed in", "^"))]
    return " ".join(told[:4])[:300]
