"""B-spline curves for a set of joints: Xiang et al. 2008, (39), (40), for any degree and any knots."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import one_of, whole_number
from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue, shown, unknown_name
from cstormpy.json_files import brief, equals, list_of, read, write
from cstormpy.trajectory.checks import control_point_array, end_points
from cstormpy.trajectory.curve import Curve
from cstormpy.trajectory.ends import EndConditions
from cstormpy.trajectory.fitting import curve_values, fit_points, gauss_sites, interpolate, samples
from cstormpy.trajectory.knots import clamped_knots, interval_of, knots_of_kind, uniform_knots


class BSpline(Curve):
    """A curve q(t) = Σ_i B_i(t) P_i through joint space, on the interval [t0, t1].

    Immutable. A spline of degree p with s segments has m = s + p control points (22 control points make 19 cubic
    segments) and m + p + 1 knots; it lives from ``knots[p]`` to ``knots[m]``. `uniform` and `clamped` make the knots.
    At a knot a derivative that jumps there has its value from the right, at the end of the interval from the left.

    Parameters
    ----------
    knots : (m + p + 1,) array
        Times [s] that do not decrease; inside of the interval none stands more than p times.
    control_points : (m, n) array
        P, one row per control point, one column per joint [rad or m].
    degree : int
        p >= 1; 3 is cubic, 5 is quintic.
    names : sequence of n strings, optional
        Names of the joints.
    outside : {"hold", "refuse"}
        What holds at times outside of [t0, t1]: the value of the nearest end with all derivatives zero, or an error.

    Attributes
    ----------
    knots, control_points, degree, names, outside
        As given; the arrays are read-only.
    t0, t1 : float
        Start and end of the interval [s].

    Examples
    --------
    >>> curve = BSpline.clamped([[0.0], [0.0], [1.0], [1.0]], duration=2.0)
    >>> q, qd, qdd = curve.evaluate(1.0)
    >>> q.tolist(), qd.tolist(), qdd.tolist(), curve(5.0).tolist()
    ([0.5], [0.75], [0.0], [1.0])
    """

    # ---------------------------------------------------------------- made from control points

    @classmethod
    def uniform(
        cls,
        control_points: ArrayLike,
        duration: float,
        *,
        degree: int = 3,
        t0: float = 0.0,
        names: Iterable[str] | None = None,
        outside: str = "hold",
    ) -> BSpline:
        """Return the curve on evenly spaced knots, Xiang et al. 2008, (40); it starts near P_0, not at it.

        >>> BSpline.uniform(np.zeros((22, 2)), duration=0.39).segments
        19
        """
        points = control_point_array(control_points)
        knots = uniform_knots(len(points), degree, interval_of(t0, duration))
        return cls(knots, points, degree=degree, names=names, outside=outside)

    @classmethod
    def clamped(
        cls,
        control_points: ArrayLike,
        duration: float,
        *,
        degree: int = 3,
        t0: float = 0.0,
        names: Iterable[str] | None = None,
        outside: str = "hold",
    ) -> BSpline:
        """Return the curve from P_0 to P_{m−1}, on evenly spaced knots of which the ends stand degree + 1 times.

        >>> curve = BSpline.clamped([[0.0], [2.0], [1.0], [3.0]], duration=2.0)
        >>> curve(curve.t0).tolist(), curve(curve.t1).tolist()
        ([0.0], [3.0])
        """
        points = control_point_array(control_points)
        knots = clamped_knots(len(points), degree, interval_of(t0, duration))
        return cls(knots, points, degree=degree, names=names, outside=outside)

    # ---------------------------------------------------------------- made from data

    @classmethod
    def interpolate(
        cls,
        times: ArrayLike,
        values: ArrayLike,
        *,
        degree: int = 3,
        ends: EndConditions | None = None,
        names: Iterable[str] | None = None,
        outside: str = "hold",
    ) -> BSpline:
        """Return the curve through `values` (N, n) at rising `times` (N,), with the rates and such given in `ends`.

        Without end conditions the knots next to the ends are left out ("not-a-knot"). Data and conditions together must
        be at least degree + 1.

        >>> t = np.linspace(0.0, 1.0, 5)
        >>> curve = BSpline.interpolate(t, (t**3)[:, None])
        >>> round(float(curve(0.3)[0]), 12)
        0.027
        """
        t, q = samples(times, values, rising=True)
        knots, points = interpolate(t, q, degree, _conditions(ends))
        return cls(knots, points, degree=degree, names=names, outside=outside)

    @classmethod
    def fit(
        cls,
        times: ArrayLike,
        values: ArrayLike,
        control_points: int | None = None,
        *,
        degree: int = 3,
        knots: str | ArrayLike = "clamped",
        interval: tuple[float, float] | None = None,
        weights: ArrayLike | None = None,
        ends: EndConditions | None = None,
        names: Iterable[str] | None = None,
        outside: str = "hold",
    ) -> BSpline:
        """Return the curve of least squares through data: least Σ_k w_k ‖q(t_k) − values_k‖².

        Parameters
        ----------
        times, values : (N,) and (N, n) arrays
            The data, in any order.
        control_points : int
            How many; not given where `knots` are.
        degree : int
            Degree of the curve.
        knots : {"clamped", "uniform"} or (m + degree + 1,) array
            The kind of knots, or the knots.
        interval : (t0, t1), optional
            Where the curve lives, for knots given by kind; else from the first to the last time.
        weights : (N,) array, optional
            Weights w_k >= 0.
        ends : EndConditions, optional
            Conditions that the curve meets exactly.
        names, outside
            As for `BSpline`.

        Examples
        --------
        >>> t = np.linspace(0.0, 2.0, 50)
        >>> curve = BSpline.fit(t, np.sin(t)[:, None], 8, ends=EndConditions(qd0=1.0))
        >>> bool(abs(curve(1.0) - np.sin(1.0)) < 1e-4), round(float(curve.rate(0.0)[0]), 12)
        (True, 1.0)
        """
        t, q = samples(times, values, rising=False)
        interval = (float(t.min()), float(t.max())) if interval is None else interval
        knots = knots_of_kind(knots, control_points, degree, interval)
        points = fit_points(knots, degree, t, q, weights, _conditions(ends))
        return cls(knots, points, degree=degree, names=names, outside=outside)

    @classmethod
    def from_curve(
        cls,
        curve: Callable[[Any], Any],
        control_points: int | None = None,
        *,
        degree: int = 3,
        knots: str | ArrayLike = "clamped",
        interval: tuple[float, float] | None = None,
        ends: EndConditions | None = None,
        names: Iterable[str] | None = None,
        outside: str = "hold",
    ) -> BSpline:
        """Return the curve nearest to another one: least ∫ ‖q(t) − curve(t)‖² dt, exact where it can be.

        `curve` is a BSpline or any function that takes times (N,) and gives values (N, n); a function needs its
        `interval`. The rest is as for `fit`. ``ends=EndConditions.of(curve)`` keeps position and rate at the ends.

        >>> coarse = BSpline.uniform([[0.0], [1.0], [0.0], [2.0], [1.0]], duration=1.0)
        >>> same = BSpline.from_curve(coarse, 5, knots="clamped")
        >>> bool(abs(same(0.3) - coarse(0.3)) < 1e-14)
        True
        """
        known = curve if isinstance(curve, Curve) else None
        if interval is None:
            if known is None:
                raise InvalidValue("interval: a function needs the interval (t0, t1) on which to follow it")
            interval = (known.t0, known.t1)
        knots = knots_of_kind(knots, control_points, degree, interval)
        breaks = np.unique(knots[degree : knots.size - degree])
        highest = degree
        if known is not None:
            names = known.names if names is None else names
            inner = known.breaks[(known.breaks > breaks[0]) & (known.breaks < breaks[-1])]
            breaks, highest = np.union1d(breaks, inner), max(degree, known.degree)
        times, weights = gauss_sites(breaks, highest + 1)
        points = fit_points(knots, degree, times, curve_values(curve, times), weights, _conditions(ends))
        return cls(knots, points, degree=degree, names=names, outside=outside)

    @classmethod
    def rest_to_rest(
        cls,
        q0: ArrayLike,
        q1: ArrayLike,
        duration: float,
        control_points: int,
        *,
        degree: int = 3,
        knots: str = "clamped",
        order: int = 1,
        t0: float = 0.0,
        names: Iterable[str] | None = None,
        outside: str = "hold",
    ) -> BSpline:
        """Return a motion from rest at `q0` (n,) to rest at `q1` (n,), nearest to the one of least jerk.

        The derivatives up to `order` are zero at both ends. A start guess for an optimiser: with ``q0 == q1`` the joint
        stays where it is.

        >>> curve = BSpline.rest_to_rest([0.0, 1.0], [1.0, 1.0], 2.0, control_points=10)
        >>> curve(curve.t1).tolist(), bool(abs(curve.rate(curve.t0)).max() < 1e-13)
        ([1.0, 1.0], True)
        """
        whole_number(control_points, "control points", 1)
        interval = interval_of(t0, duration)
        start, stop = end_points(q0, q1)
        still = EndConditions(qd0=0.0, qdd0=0.0, qd1=0.0, qdd1=0.0)
        least_jerk = cls.interpolate(interval, [start, stop], degree=5, ends=still)
        return cls.from_curve(
            least_jerk,
            control_points,
            degree=degree,
            knots=one_of(knots, "knots", ("clamped", "uniform")),
            interval=interval,
            ends=EndConditions.at_rest(start, stop, order),
            names=names,
            outside=outside,
        )

    # ---------------------------------------------------------------- made from files

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain lists, numbers and strings, fit for JSON."""
        names = None if self.names is None else list(self.names)
        content = (self.degree, self.outside, names, self.knots.tolist(), self.control_points.tolist())
        return dict(zip(_KEYS, (FORMAT, VERSION, *content), strict=True))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BSpline:
        """Return the curve that `to_dict` gave; FileFormatError if the data are not such."""
        return _of_dict(cls, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the curve to a JSON file; `load` gives back an equal one, to the last bit."""
        write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BSpline:
        """Read a curve from a JSON file; FileFormatError if it does not hold one, OSError if it cannot be opened."""
        return read(path, cls.from_dict)


def _conditions(ends: EndConditions | None) -> EndConditions:
    if ends is None:
        return EndConditions()
    if not isinstance(ends, EndConditions):
        raise InvalidType(f"ends: expected EndConditions, got {shown(ends)}")
    return ends


FORMAT = "cstormpy spline"
VERSION = 1
_KEYS = ("format", "version", "degree", "outside", "names", "knots", "control_points")


def _of_dict(cls: type[BSpline], content: Any) -> BSpline:
    """Return the curve of a dictionary as `BSpline.to_dict` returns it."""
    if not isinstance(content, dict):
        raise FileFormatError(f"expected an object with the keys {', '.join(_KEYS)}")
    for key in content:
        if key not in _KEYS:
            raise FileFormatError(str(unknown_name("key", str(key)[:60], _KEYS)))
    for key in _KEYS:
        if key not in content:
            raise FileFormatError(f"the key {key!r} is missing")
    if not equals(content["format"], FORMAT):
        raise FileFormatError(f"format: expected {FORMAT!r}, got {brief(content['format'])}")
    version = content["version"]
    if not equals(version, VERSION):
        raise FileFormatError(f"version: expected {VERSION}, got {brief(version)}; a newer cstormpy may read it")
    try:
        fields = {key: content[key] for key in _KEYS[2:]}
        knots = _numbers(fields.pop("knots"), "knots")
        rows = list_of(fields.pop("control_points"), "control_points")
        points = [_numbers(row, f"control_points[{k}]") for k, row in enumerate(rows)]
        return cls(knots, points, **fields)
    except FileFormatError:
        raise
    except CstormError as error:
        raise FileFormatError(str(error)) from None


def _numbers(value: Any, place: str) -> list[Any]:
    """Return a list of numbers; true and "1" are not numbers."""
    for k, entry in enumerate(list_of(value, place)):
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise FileFormatError(f"{place}[{k}]: expected a number, got {brief(entry)}")
    return list(value)
