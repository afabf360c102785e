"""Blocks that show signals while a diagram runs: scopes, XY plots, the moving mechanism.

They only say what is to be seen. A `cstormpy.Simulation` shows it in a live window, keeps it in ``out.panes``, and
draws it in the report; in a plain bdsim these blocks are silent.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from bdsim.components import SinkBlock

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.arrays import as_floats
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.simulation.diagram import idle_step

VIEWS = ("auto", "planar", "3d")
"""Views of a mechanism."""


class LiveScope(bases.Ported, SinkBlock):
    r"""Signals over time.

    - input u0, u1, … (float, ndarray): what to plot; each number of a vector is a trace of its own

    .. math::

        (t, u_{0}(t)), (t, u_{1}(t)), \ldots, \qquad t_0 \le t \le t_0 + T

    The live window has for each scope a legend with the present values, zoom by wheel and mouse, two cursors, a trigger
    that holds the picture around the crossing of a level, and a hold of the picture while the run goes on.

    :seealso: :class:`LiveXY` :class:`MechanismView`
    """

    nin = 1
    inlabels = ("u0",)
    pane_kind: ClassVar[str] = "scope"

    def __init__(
        self,
        nin: int = 1,
        labels: Sequence[str] | None = None,
        units: str = "",
        title: str | None = None,
        ylim: Sequence[float] | None = None,
        stairs: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param nin: number of input ports, defaults to 1
        :type nin: int
        :param labels: a name for each input port, or for each trace; unless given what is wired to it, a mechanism's
            coordinates by their joints, as plant.elbow.q
        :type labels: list of str, optional
        :param units: unit of the traces, of joints theirs unless given, defaults to ''
        :type units: str
        :param title: what stands above the plot; the name of the block unless given
        :type title: str, optional
        :param ylim: lowest and highest value of the axis; as the traces need it unless given
        :type ylim: array_like(2), optional
        :param stairs: draw each value until the next one, as of a sampled signal, defaults to False
        :type stairs: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        count = checks.count(nin, "nin")
        self.labels = _labels(labels, least=count)
        self.unit, self.title = _unit(units, labels), _title(title)
        self.options: dict[str, Any] = {}
        if ylim is not None:
            self.options["scale"] = _limits(ylim, "ylim")
        if ports.flag(stairs, "stairs"):
            self.options["stairs"] = True
        super().__init__(**ports.options(type(self), blockargs, [f"u{k}" for k in range(count)]))

    step = idle_step


class LiveXY(bases.Ported, SinkBlock):
    r"""One signal over another.

    - input horizontal (float): what is plotted to the right
    - input vertical (float): what is plotted upwards

    .. math::

        (u_\mathrm{horizontal}(t), u_\mathrm{vertical}(t)), \qquad t_0 \le t \le t_0 + T

    The path is drawn thin, its last part thick, with a point at the present.

    :seealso: :class:`LiveScope`
    """

    nin = 2
    inlabels = ("horizontal", "vertical")
    pane_kind: ClassVar[str] = "xy"
    _widths = (1, 1), ()

    def __init__(
        self,
        labels: Sequence[str] | None = None,
        units: str = "",
        title: str | None = None,
        xlim: Sequence[float] | None = None,
        ylim: Sequence[float] | None = None,
        equal: bool = False,
        trail: bool | float = True,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param labels: names of the two signals; what is wired to them unless given
        :type labels: list of str, optional
        :param units: unit of both signals, of joints theirs unless given, defaults to ''
        :type units: str
        :param title: what stands above the plot; the name of the block unless given
        :type title: str, optional
        :param xlim: lowest and highest value of the horizontal axis, which needs ylim too
        :type xlim: array_like(2), optional
        :param ylim: lowest and highest value of the vertical axis, which needs xlim too
        :type ylim: array_like(2), optional
        :param equal: the same scale on both axes, defaults to False
        :type equal: bool
        :param trail: length of the last part that stands out [s]; True for some, False for none, defaults to True
        :type trail: bool or float
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self.labels = _labels(labels, 2)
        self.unit, self.title = _unit(units, labels), _title(title)
        self.options: dict[str, Any] = {"trail": _trail(trail)}
        if (xlim is None) != (ylim is None):
            raise InvalidValue("xlim and ylim: give both, or none of them")
        if xlim is not None:
            self.options["scale"] = [*_limits(xlim, "xlim"), *_limits(ylim, "ylim")]
        if ports.flag(equal, "equal"):
            self.options["equal"] = True
        super().__init__(**ports.options(type(self), blockargs))

    step = idle_step


class MechanismView(bases.Ported, SinkBlock):
    r"""The mechanism, moving.

    - input q (ndarray(n)): position of every joint [rad, m]

    .. math::

        T_{0,i}(q) = T_{0,P(i)}(q) \, M_i \exp(S_i q_i)

    The links stand at these poses; P(i) is the link that carries link i. They are drawn with their joints, centres of
    mass, frames and the trails of their ends, as seen on the plane of the mechanism, or in space, where the mouse turns
    the view. In a live window a link of the simulated mechanism can be pushed with the mouse.

    :seealso: :class:`LiveScope`
    """

    nin = 1
    inlabels = ("q",)
    pane_kind: ClassVar[str] = "mechanism"

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        view: str = "auto",
        trail: bool | float = True,
        frames: bool = False,
        title: str | None = None,
        **blockargs: Any,
    ) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param view: how to look at it, one of: 'auto' [default], 'planar', '3d'
        :type view: str
        :param trail: length of the trails of the ends [s]; True for some, False for none, defaults to True
        :type trail: bool or float
        :param frames: whether the frames of the links are drawn, defaults to False
        :type frames: bool
        :param title: what stands above the picture; unless given the name of the block, or where it has none of its own
            that of the mechanism or of the plant
        :type title: str, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        self.mechanism = as_mechanism(mech)
        self.subject = Path(mech).stem if isinstance(mech, (str, os.PathLike)) else ""
        option(view, "view", VIEWS)
        self.labels = list(self.mechanism.names)
        self.unit, self.title = "", _title(title)
        self.options: dict[str, Any] = {
            "view": view,
            "trail": _trail(trail),
            "frames": ports.flag(frames, "frames"),
        }
        super().__init__(**ports.options(type(self), blockargs))
        self._widths = (self.mechanism.n,), ()

    step = idle_step


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidType(f"{name}: expected text, got {shown(value)}")
    return value


def _unit(units: Any, labels: Any) -> str:
    """Return the unit of all traces; several are told where they are written."""
    if not isinstance(units, (list, tuple)) or not units or not all(isinstance(unit, str) for unit in units):
        return _text(units, "units")
    names = ["height", "speed"] if labels is None else labels
    written = [f"{name} [{unit}]" for name, unit in zip(names, units, strict=False)]
    remedy = f"units={units[0]!r}" if len({*units}) == 1 else f"several behind names, as labels={written!r}"
    raise InvalidType(f"units: expected one text for all traces, got {shown(units)}; write {remedy}")


def _title(title: Any) -> str | None:
    return None if title is None else _text(title, "title")


def _labels(labels: Any, count: int | None = None, least: int = 0) -> list[str] | None:
    if labels is None:
        return None
    if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
        raise InvalidType(f"labels: expected a list of names, got {shown(labels)}")
    if count is not None and len(labels) != count:
        raise InvalidValue(f"labels: expected {count} names, got {len(labels)}")
    if len(labels) < least:
        raise InvalidValue(f"labels: expected a name for each of {least} inputs, or for each trace, got {len(labels)}")
    return list(labels)


def _limits(value: Any, name: str) -> list[float]:
    """Return the two ends of an axis."""
    array = as_floats(value, name)
    if array.shape != (2,):
        raise ShapeError(f"{name}: expected two numbers, the lowest and the highest, got shape {array.shape}")
    low, high = array.tolist()
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidValue(f"{name}: expected two finite numbers, the lowest first, got {low:g} and {high:g}")
    return [low, high]


def _trail(value: Any) -> bool | float:
    """Return the length of a trail in seconds; True stands for some length."""
    if isinstance(value, bool):
        return value
    return float(checks.nonnegative(value, "trail"))
