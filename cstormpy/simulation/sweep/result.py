"""The result of a sweep: arrays over its axes, which runs failed and why, a figure, and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError, UnknownName, unknown_name
from cstormpy.file_writer import file_path, write_text
from cstormpy.reporting import called, told_apart
from cstormpy.simulation.run_data import needed
from cstormpy.simulation.sweep.axes import Axes
from cstormpy.simulation.sweep.files import header, line, read_lines
from cstormpy.simulation.sweep.measures import VALUE
from cstormpy.simulation.sweep.workers import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Sweep(Mapping[str, Array]):
    """Results of a sweep; a mapping from the names of what was measured to arrays over the axes.

    A measure that returns a number is called "value". Where a run failed, or was not carried out, the arrays hold NaN.

    Attributes
    ----------
    axes : dict of str to ndarray
        Values of what was varied: of each axis of the grid, or one for each sample.
    grid : bool
        Whether the axes form a grid.
    shape : tuple of int
        Lengths of the axes of the grid, or the number of samples; the arrays begin with these dimensions.
    failed, done : ndarray of bool, `shape`
        Which runs failed, and which were carried out, with or without success.
    reasons : dict of tuple to str
        Why runs failed, by their place in the arrays.
    status, message : str
        "finished" or "interrupted", and what there is to say of it.
    """

    def __init__(self, axes: Axes, records: Mapping[int, Record], about: Mapping[str, Any], message: str = "") -> None:
        self._axes, self._about = axes, dict(about)
        self.grid, self.shape = axes.grid, axes.shape
        self.axes: dict[str, NDArray[Any]] = {name: axes.array(name) for name in axes.names}
        self._records = _alike({k: records[k] for k in sorted(records)})
        self.done, self.failed = np.zeros(len(axes), dtype=bool), np.zeros(len(axes), dtype=bool)
        self.reasons: dict[tuple[int, ...], str] = {}
        self._values: dict[str, Array] = {}
        self._fill()
        self.done, self.failed = self.done.reshape(self.shape), self.failed.reshape(self.shape)
        finished = bool(self.done.all()) and not message
        self.status = "finished" if finished else "interrupted"
        counts = f"{self.done.sum()} of {self.done.size} runs, {self.failed.sum()} failed"
        self.message = f"{message}: {counts}" if message else counts

    def _fill(self) -> None:
        first = next((r.values for r in self._records.values() if r.failed is None), {})
        flat = {name: np.full((self.done.size, *v.shape), np.nan) for name, v in first.items()}
        for k, record in self._records.items():
            self.done[k] = True
            self.failed[k] = record.failed is not None
            if record.failed is not None:
                self.reasons[tuple(int(i) for i in np.unravel_index(k, self.shape))] = record.failed
            for name, value in record.values.items():
                flat[name][k] = value
        self._values = {name: v.reshape(*self.shape, *v.shape[1:]) for name, v in flat.items()}

    @property
    def labels(self) -> Mapping[str, list[str]]:
        """What figures call the numbers of what was measured, by its name, where a mechanism names them."""
        return self._about.get("labels", {})

    @property
    def value(self) -> Array:
        """The values of a measure that returns a number, or one array."""
        return self[VALUE] if VALUE in self._values or len(self._values) != 1 else next(iter(self._values.values()))

    def __getitem__(self, name: str) -> Array:
        """Return what was measured, by name; "plant" is also "plant[0]" where that is all there is of it."""
        if name not in self._values:
            ports = [value for value in self._values if value.startswith((f"{name}[", f"{name}."))]
            if len(ports) == 1:
                return self._values[ports[0]]
            if not self._values and self.reasons:
                raise UnknownName(
                    f"value {name!r}: all runs failed, one of them so: {next(iter(self.reasons.values()))}"
                )
            raise unknown_name("value", name, self._values)
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        lines = [
            f"Sweep, {self.message}"
            if self.message.startswith(self.status)
            else f"Sweep, {self.status}: {self.message}"
        ]
        lines += [f"  {name}: {_counted(v)}{_span(v)}" for name, v in self.axes.items()]
        lines += [f"  -> {name} {v.shape}: {_span(v)}" for name, v in self._values.items()]
        lines += [f"  failed at {at}: {why}" for at, why in list(self.reasons.items())[:3]]
        return "\n".join(lines)

    def plot(
        self,
        name: str | None = None,
        axes: Any = None,
        at: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Figure:
        """Draw what was measured: a line over one axis, an image with contours over two, points for samples.

        Parameters
        ----------
        name : str, optional
            What to draw; the first that was measured unless given. Of an array each number gets its line, or over two
            axes its image.
        axes : str or pair of str, optional
            The axes to draw it over; the first one or two of numbers unless given.
        at : dict of str to value, optional
            Where to cut the other axes of a grid, at the nearest value; the first unless given.
        labels : dict of str to str, optional
            What stands beside axes and colours instead of the names, as in ``{"forearm.mass": "mass [kg]"}``.

        Returns
        -------
        matplotlib.figure.Figure
            One of pyplot's: ``matplotlib.pyplot.show()`` shows it, its ``savefig`` writes it to a file.
        """
        from cstormpy.simulation.sweep.figure import draw

        return draw(self, name, axes, {} if at is None else at, {} if labels is None else labels)

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas: a row for each run, a column for each number that was measured.

        What was varied is the index. ``.describe()`` has means and deviations, ``.hist()`` draws histograms,
        ``.reset_index()`` makes columns of the index.

        Raises
        ------
        InvalidValue
            If pandas is not installed.
        """
        pandas = needed("pandas")
        varied = zip(*map(self._axes.run, range(self.done.size)), strict=True)
        cells = [told_apart(list(map(_cell, values)), values) for values in varied]
        index = pandas.MultiIndex.from_tuples(list(zip(*cells, strict=True)), names=list(self.axes))
        columns: dict[str, Array] = {}
        for name, values in self._values.items():
            flat = values.reshape(self.done.size, -1)
            columns.update(zip(number_names(self, name, flat.shape[1]), flat.T, strict=True))
        return pandas.DataFrame(columns, index=index if len(self.axes) > 1 else index.get_level_values(0))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, which `read` reads, and from which a sweep goes on (``resume=``)."""
        target = file_path(path, "save")
        lines = [line(k, record) for k, record in self._records.items()]
        write_text(target, "\n".join([json.dumps(header(self._axes, self._about)), *lines, ""]))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Sweep:
        """Return the sweep of a file that `save` wrote, or to which one is writing or was until it was interrupted.

        Raises
        ------
        FileFormatError
            Where it is none.
        """
        first, records, _ = read_lines(file_path(path, "read"))
        names, values = tuple(first["axes"]), tuple(first["axes"].values())
        axes = Axes(names, values, first["kind"] == "grid")
        if any(not 0 <= k < len(axes) for k in records) or (not axes.grid and len({len(v) for v in values}) > 1):
            raise FileFormatError(f"{path}: holds runs that are none of its axes'")
        about = {key: value for key, value in first.items() if key not in ("format", "kind", "axes")}
        return cls(axes, records, about)


def number_names(sweep: Sweep, name: str, count: int) -> list[str]:
    """Return what each number of what was measured is called."""
    known = sweep.labels.get(name, [])
    return known if len(known) == count else [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]


def _cell(value: Any) -> Any:
    """Return a value of an axis as a table shows it: a number, or a text."""
    return value if isinstance(value, (bool, int, float, np.number)) else called(value) or str(value)


def _alike(records: dict[int, Record]) -> dict[int, Record]:
    """Let runs fail whose measure is of other names or shapes than that of the first; which that is, is no accident."""
    first = next((r.values for r in records.values() if r.failed is None), None)
    if first is None:
        return records
    wanted = {name: v.shape for name, v in first.items()}
    out = {}
    for k, record in records.items():
        found = {name: v.shape for name, v in record.values.items()}
        if record.failed is None and found != wanted:
            record = Record({}, f"measure: returned {found}, and {wanted} in the first run")
        out[k] = record
    return out


def _span(values: NDArray[Any]) -> str:
    """Return from where to where values go."""
    if values.dtype.kind not in "biuf":
        texts = told_apart([called(v) or str(v) for v in values[:6]], values[:6])
        return ", ".join(texts) + (", …" if len(values) > 6 else "")
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "nothing finite"
    least, most = f"{finite.min():.6g}", f"{finite.max():.6g}"
    return least if least == most else f"{least} to {most}"


def _counted(values: NDArray[Any]) -> str:
    """Return how many numbers, or arrays of numbers, there are; texts are listed."""
    return "" if values.dtype.kind not in "biuf" else "1 value, " if len(values) == 1 else f"{len(values)} values, "
