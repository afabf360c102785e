"""The steps of `stepping` for diagrams that are compiled by numba."""

from __future__ import annotations

from cstormpy.kernels import stepping
from cstormpy.kernels.entries import entry

__all__ = ["advance", "trial"]

trial = entry(
    "i8(i8, f8[:, ::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[:, ::1])",
    nogil=True,
    exact=True,
)(stepping.trial)
advance = entry(
    "UniTuple(i8, 2)(i8, f8[:, ::1], f8[:, ::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], "
    "f8[::1], f8[::1], f8[:, ::1], i8[::1], f8[:, ::1], i8[::1], f8[:, ::1], i8[:, ::1], f8[::1], f8[:, ::1], f8[::1], "
    "f8[:, ::1], f8[:, ::1])",
    nogil=True,
    exact=True,
)(stepping.advance)
