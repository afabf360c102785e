"""The result of a run: times, states and signals by name, with their units, and how it ended."""

from __future__ import annotations

import html
import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from bdsim.block import Block
from bdsim.connect import Plug

from cstormpy import report
from cstormpy.arrays import Array
from cstormpy.errors import UnknownAttribute, UnknownName, unknown_name
from cstormpy.file_writer import write_bytes, write_text
from cstormpy.simulation.recording import port_suffix, refuse_input
from cstormpy.simulation.result_files import columns_of, owner
from cstormpy.simulation.run_data import Recorded, RunData, read, signal_name


class Deferred:
    """A value that is made when it is read for the first time.

    Parameters
    ----------
    make : callable
        make() -> value, of what is at hand and stays as it is: what it reads may be long after it was made.
    """

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class DeferredValues(dict[str, Any]):
    """A dict of which each `Deferred` value is made, and kept, as it is read.

    Examples
    --------
    >>> values = DeferredValues(t=1.0, units=Deferred(lambda: "s"))
    >>> sorted(values), values["units"], values.get("x"), dict(values)
    (['t', 'units'], 's', None, {'t': 1.0, 'units': 's'})
    """

    def __getitem__(self, key: str) -> Any:
        """Return a value, made where that has not been done."""
        value = super().__getitem__(key)
        if value.__class__ is Deferred:
            value = self[key] = value.make()
        return value

    def __iter__(self) -> Iterator[str]:
        """Return the keys; whoever copies the mapping asks for each value by its key."""
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        return self[key] if key in self else default

    def pop(self, key: str, *default: Any) -> Any:
        """Take a value out."""
        if key in self:
            self[key]
        return super().pop(key, *default)

    def _made(self) -> None:
        for key in self:
            self[key]

    def items(self) -> Any:
        """Return all pairs of key and value."""
        self._made()
        return super().items()

    def values(self) -> Any:
        """Return all values."""
        self._made()
        return super().values()

    def copy(self) -> dict[str, Any]:
        """Return a dict of all values."""
        return dict(self.items())

    def __eq__(self, other: object) -> bool:
        """Compare all values."""
        self._made()
        return super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        """Return it as a dict."""
        self._made()
        return super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a file, another process or a copy gets: a dict of all values."""
        return dict, (self.copy(),)


if TYPE_CHECKING:
    from cstormpy.simulation.bdsim_bases import BDStruct
    from cstormpy.simulation.events import Event
    from cstormpy.simulation.limits import LeftLimits
    from cstormpy.simulation.saved_state import SavedState
    from cstormpy.simulation.settings import Settings
else:
    from bdsim.components import BDStruct

__all__ = ["Recorded", "Result", "read"]


#: A list of names that is longer is cut where a result is printed [characters].
_LONG = 1000


def _shortened(line: str) -> str:
    """Return a line of bdsim's text of a result, with the middle of a long list of names left out."""
    if len(line) <= _LONG or not line.endswith("] (list)"):
        return line
    names = line[: _LONG // 2].rsplit(",", 1)[0]
    return f"{names}, …, {line.rsplit(',', 1)[1].strip()}"


class Result(RunData, BDStruct):
    """The outcome of a run: bdsim's structure with t, x, xnames, y, ynames, and how the run ended.

    Attributes
    ----------
    t : ndarray (N,)
        Times of the samples. Where a state is reset or a source jumps there are two of the same time, before and after.
    x, xnames : ndarray (N, nstates), list of str
        Continuous states.
    y, ynames : ndarray (N, columns), list of str
        Watched signals, if there are any.
    status : str
        "finished", "stopped" (by a block), "interrupted" (Ctrl-C) or "failed".
    message : str
        Why the run ended.
    left_limits : list of LeftLimits
        Joints without a stop that went beyond their position limits: plant, joint, t, limits, farthest.
    state : SavedState
        From which a run goes on: ``sim.run(bd, T=5, start=out.state)``.
    """

    if TYPE_CHECKING:  # what a run says, whose names are known by it alone
        t: Array
        x: Array
        xnames: list[str]
        y: Array
        ynames: list[str]
        ywatch: list[Any]
        outputs: list[str]
        paths: Any
        panes: list[Any]
        status: str
        message: str
        state: SavedState
        events: list[Event]
        left_limits: list[LeftLimits]
        stats: Any
        settings: Settings
        wall_time: float

    _read = True

    def __init__(self, name: str = "results", **parts: Any) -> None:
        super().__init__(name)
        self.data = DeferredValues(parts)

    @property
    def was_read(self) -> bool:
        """True once somebody has looked at it since the run returned it."""
        return self._read

    def unread(self) -> None:
        """Take it for new: nobody has looked at it."""
        self._read = False

    def __str__(self) -> str:
        """Return how the run ended, and its parts line by line."""
        self._read = True
        parts = "\n".join(map(_shortened, str(super().__str__()).split("\n")))
        return f"{self._ending()}\n{parts}" if ".status" in self.data else parts

    def _ending(self) -> str:
        """Return how the run ended, in a line."""
        status, message, t = self.data[".status"], self.data[".message"], self.data["t"]
        said = message if message.startswith(status) else f"{status}: {message}"
        counts = [f"{len(t)} samples"] if len(t) != 1 else ["1 sample"]
        if events := self.data.get(".events"):
            last = repr(events[-1][1]) + (f" ({events[-1].what})" if events[-1].what else "")
            counts.append(f"{len(events)} events, the last of {last}" if len(events) > 1 else f"1 event, of {last}")
        return f"{said} (t = {t[0]:g} to {t[-1]:g} s, {', '.join(counts)})" if len(t) else f"{said} (no samples)"

    def __getitem__(self, key: Any) -> Any:
        """Return a part of the result, as ``out["t"]``, or a signal, as ``out["plant.q"]``."""
        self._read = True
        for part in (key, f".{key}") if isinstance(key, str) else ():
            if part in self.data:
                return super().__getitem__(part)
        return self.signal(key)

    def _part(self, name: str) -> Any:
        """Return a part of the result, or say which there are."""
        if not name.startswith("_"):
            self._read = True
        try:
            return super().__getattr__(name)  # type: ignore[misc]
        except AttributeError:
            if name.startswith("_") or "data" not in self.__dict__:
                raise
        if name in ("y", "ynames") and "t" in self.data:
            raise UnknownAttribute(f"{name}: no signals were watched; name them, as in sim.run(bd, watch=['plant.q'])")
        signals = [output for output in self.data.get("ynames", []) if name in (output, owner(output))]
        if signals:
            raise UnknownAttribute(f"result {name!r} does not exist; signals are read as in out.signal({signals[0]!r})")
        methods = [each for kind in (Result, RunData) for each in vars(kind) if not each.startswith("_")]
        raise unknown_name("result", name, dict.fromkeys([*self._parts(), *methods]), UnknownAttribute)

    def _parts(self) -> list[str]:
        return [key.lstrip(".") for key in self.data if not key.startswith("._")]

    if not TYPE_CHECKING:  # with which no name would be a typo
        __getattr__ = _part

    def __dir__(self) -> list[str]:
        """Return the parts of the result beside its methods."""
        return sorted({*super().__dir__(), *self._parts()})

    def signal(self, name: Any) -> Array:
        """Return the samples (N, ...) of a watched signal or state, as in ``out.signal("plant.q")``.

        Parameters
        ----------
        name : str, or port
            Of a port, one of its numbers as ``"plant.q[0]"``, a state, or a block that has one watched output; or the
            port or the block itself.
        """
        return self._looked_up(name)[1]

    def _looked_up(self, name: str | Block | Plug) -> tuple[str, Any]:
        """Return what a signal is recorded as, or the name of a column, and its values."""
        if isinstance(name, (Block, Plug)):
            name = self._name_of(name)
        name = signal_name(name)
        found = self._recorded()
        if name in found:
            return name, found[name]
        label = name.rpartition("[")[0]
        if label in found and name in (columns := columns_of(label, found[label])):
            return name, columns[name]
        wanted = [key for key in found if owner(key) == name]
        if len(wanted) == 1:
            return wanted[0], found[wanted[0]]
        if wanted:
            raise UnknownName(f"signal {name!r} is one of several: {', '.join(wanted)}")
        outputs = self.data.get(".outputs", [])
        if any(name in (output, owner(output)) for output in outputs):
            raise UnknownName(f"signal {name!r} was not watched; name it, as in sim.run(bd, watch=[{name!r}])")
        path = owner(name) + "."
        ports = [output.removeprefix(path) for output in outputs if output.startswith(path)]
        number = name.removeprefix(owner(name))[1:-1]  # of a port, as `watch` takes it
        if number.isdecimal() and int(number) < len(ports):
            return self._looked_up(path + ports[int(number)])
        if ports:
            raise unknown_name(
                f"output of block {owner(name)!r}", name.removeprefix(path).removeprefix(owner(name)), ports
            )
        raise unknown_name("signal", name, found)

    def _recorded(self) -> dict[str, Any]:
        """Return watched signals (N, ...) by name, and the states (N,) that have other names."""
        self._read = True
        data = self.data
        states = {name: data["x"][:, k] for k, name in enumerate(data["xnames"])}
        watched = dict(zip(data.get("ynames", []), data.get(".ywatch", []), strict=False))
        return watched | {name: values for name, values in states.items() if name not in watched}

    def _name_of(self, given: Block | Plug) -> str:
        """Return how a block or port is called in this run: inside of a subsystem, it stands after its name."""
        refuse_input(given, "signal")
        block = given.block if isinstance(given, Plug) else given
        found = self.data.get(".paths", {}).get(getattr(block, "_identity", None), [str(block.name)])
        if len(found) > 1:
            raise UnknownName(f"signal: block {block.name!r} is there more than once; name one of {', '.join(found)}")
        if isinstance(given, Block):
            return found[0]
        return found[0] + port_suffix(block._outport_names, given.port or 0)

    def recorded(self) -> Recorded:
        """Return what a file of this run would hold."""
        return Recorded(np.asarray(self.data["t"]), self.columns(), self.units, self.held, self.captions())

    def columns(self) -> dict[str, Array]:
        """Return all states and watched signals as named columns (N,)."""
        out: dict[str, Array] = {}
        for name, values in self._recorded().items():
            for key, column in columns_of(name, values).items():
                out.setdefault(key, column)
        return out

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns by name, of those whose unit is known."""
        self._read = True
        return dict(self.data.get(".units", {}))

    @property
    def held(self) -> set[str]:
        """Names of the columns that are held from one sample to the next, as those of sampled blocks."""
        found: set[str] = set()
        for name in self.data.get("._held", []):
            found.update(columns_of(name, self.signal(name)))
        return found

    def layout(self) -> tuple[dict[str, list[str]], str]:
        """Return the columns of each signal that was watched, or else what the states are called."""
        watched = {name: [*self.found_columns(name)[1]] for name in self.data.get("ynames", [])}
        return watched, "" if any(watched.values()) else "states"

    def captions(self) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
        """Return what columns are called beside their plot, and what the values 0, 1, … of some signals stand for."""
        return self.data.get(".coordinates", {}), self.data.get(".values", {})

    def found_columns(self, name: Any) -> tuple[str, dict[str, Array]]:
        """Return what a signal is recorded as, or the name of a column, and its columns (N,) by name."""
        key, values = self._looked_up(name)
        return key, columns_of(key, values)

    def outputs_named(self, names: Sequence[Any]) -> list[Any]:
        """Return names of signals with those of the outputs in the place of a block that has several."""
        return super().outputs_named([self._name_of(n) if isinstance(n, (Block, Plug)) else n for n in names])

    def arrays(self) -> dict[str, Array]:
        """Return watched signals (N, ...) and states (N,) by name, of those that are numbers."""
        return {name: np.asarray(values) for name, values in self._recorded().items() if columns_of(name, values)}

    def dump(self, outfile: str | os.PathLike[str]) -> None:
        """Pickle the result to a file, as bdsim does; `save` writes one that needs no cstormpy to be read."""
        write_bytes(outfile, pickle.dumps(self))

    def dump_json(self, outfile: str | os.PathLike[str]) -> None:
        """Write what bdsim has in its results to a file of JSON: times, states, outputs, the logs of clocks."""
        write_text(outfile, json.dumps(_plain(self), indent=2) + "\n")

    def _repr_html_(self) -> str:
        """Return what a notebook shows of a run: its scopes and its mechanism in motion."""
        if "t" not in self.data or ".panes" not in self.data:
            return f"<pre>{html.escape(str(self))}</pre>"
        return report.inline(self)


def _plain(value: Any) -> Any:
    """Return values as JSON has them, without what is beside the parts of bdsim's results."""
    if isinstance(value, BDStruct):
        return {name: _plain(part) for name, part in value.items() if not name.startswith(".")}
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value
