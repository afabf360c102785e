"""Tunable numbers of a diagram by name, and how its function's numbers and initial states follow them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, UnknownName, unknown_name
from cstormpy.simulation.analysis.starting import state_places
from cstormpy.simulation.palette import quiet

__all__ = ["Parameters"]

Array = NDArray[np.float64]
_INDEXED = re.compile(r"(?P<name>.*)\[(?P<index>\d+(\s*,\s*\d+)*)\]$")
#: A number is moved by this part of it for a difference, and by half of that; extrapolated, rounding is what is left.
_MOVED = 2.0**-9
#: Numbers of a block that say how it is wired.
_BOOKKEEPING = ("nin", "nout")


@dataclass
class _Entry:
    """One number: an attribute of a block, an entry of it, or an initial state."""

    name: str
    block: Any
    attribute: str
    index: tuple[int, ...] | None
    state: int | None = None


class Parameters:
    """Numbers of a diagram that can be tuned, one behind the other.

    Parameters
    ----------
    bd : BlockDiagram
        Compiled.
    names : str or list of str
        "block.parameter" (or "block:parameter") of a number, of a whole array, or of an entry of it, as in
        ``"controller.pd.kp"``, ``"gain.K[0, 1]"``; the name of a state stands for its value at the start.
    """

    def __init__(self, bd: Any, names: Any) -> None:
        self.bd = bd
        names = [names] if isinstance(names, str) else list(names)
        if not names:
            raise InvalidValue("parameters: name one or more, as in ['gain.K', 'controller.pd.kp']")
        self.entries = [entry for name in names for entry in self._find(name)]
        repeated = {e.name for e in self.entries if [f.name for f in self.entries].count(e.name) > 1}
        if repeated:
            raise InvalidValue(f"parameters: {', '.join(sorted(repeated))} is named twice")
        self._states = {e.state: np.nan for e in self.entries if e.state is not None}
        for e in self.entries:
            if e.state is not None:
                self._states[e.state] = float(np.asarray(bd.getstate0(), dtype=float)[e.state])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return tuple(e.name for e in self.entries)

    # finding them

    def _find(self, name: Any) -> list[_Entry]:
        if not isinstance(name, str):
            raise InvalidType(f"parameters: expected names such as 'gain.K', got {name!r}")
        states = list(self.bd.statenames)
        if name in states:
            return [_Entry(name, None, name, None, states.index(name))]
        if name in self.bd.blocknames:
            return self._states_of(self.bd.blocknames[name])
        block, attribute = self._block(name)
        index = None
        match = _INDEXED.match(attribute)
        if match and attribute not in getattr(block, "_parameters", {}):
            attribute, index = match["name"], tuple(int(k) for k in match["index"].split(","))
        value = self._read(block, attribute, name)
        label = f"{block.name}.{attribute}"
        if value.ndim == 0 and index is None:
            return [_Entry(label, block, attribute, None)]
        if index is not None:
            if len(index) != value.ndim or any(k >= size for k, size in zip(index, value.shape, strict=True)):
                raise UnknownName(f"parameters: {label} has the shape {value.shape}, there is no entry {list(index)}")
            return [_Entry(name, block, attribute, index)]
        form = label + "[{}]"
        return [_Entry(form.format(", ".join(map(str, i))), block, attribute, i) for i in np.ndindex(value.shape)]

    def _states_of(self, block: Any) -> list[_Entry]:
        """Return the states of the block that a name alone stands for."""
        if block.blockclass == "continuous":
            states = self.bd.statenames
            return [_Entry(states[k], None, states[k], None, k) for k in state_places(self.bd, block, "parameters")]
        known = [f"{block.name}.{attribute}" for attribute in _tunables(block)]
        hint = f"name a parameter of it: {', '.join(known)}" if known else "it has no number to be tuned"
        raise UnknownName(f"parameters: {block.name!r} is a block without continuous states; {hint}")

    def _block(self, name: str) -> tuple[Any, str]:
        """Return the block whose name begins a name, the longest of them, and the rest."""
        found = [b for b in self.bd.blocknames if name.startswith(b) and name[len(b) : len(b) + 1] in (".", ":")]
        if not found:
            first = re.split("[.:]", name)[0]
            raise unknown_name("parameters: block or state", first, [*self.bd.blocknames, *self.bd.statenames])
        longest = max(found, key=len)
        return self.bd.blocknames[longest], name[len(longest) + 1 :]

    def _read(self, block: Any, attribute: str, name: str) -> Array:
        value = None
        with contextlib.suppress(AttributeError, ValueError, LookupError):
            value = getattr(block, self._attribute(block, attribute))
        if attribute in _BOOKKEEPING or value is None or callable(value) or np.asarray(value).dtype.kind not in "iuf":
            what = f"parameters: {name!r}; tunable number of block {block.name!r}"
            raise unknown_name(what, attribute, _tunables(block))
        return np.array(value, dtype=float)

    @staticmethod
    def _attribute(block: Any, name: str) -> str:
        """Return where a block keeps what it was given by a name: bdsim has x0 as _x0."""
        kept = vars(block)
        return (
            f"_{name}" if name not in kept and f"_{name}" in kept and name not in kept.get("_parameters", {}) else name
        )

    # reading and setting

    def get(self) -> Array:
        """Return the present values."""
        out = []
        for e in self.entries:
            if e.state is not None:
                out.append(self._states[e.state])
                continue
            value = self._read(e.block, e.attribute, e.name)
            out.append(float(value if e.index is None else value[e.index]))
        return np.array(out)

    def set(self, values: Array) -> None:
        """Set the numbers of the blocks; a block refuses what it can not take."""
        values = np.asarray(values, dtype=float)
        if not np.isfinite(values).all():
            bad = [name for name, value in zip(self.names, values, strict=True) if not np.isfinite(value)]
            raise NonFinite(f"parameters: {', '.join(bad)} must be finite")
        arrays: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        for e, value in zip(self.entries, values.tolist(), strict=True):
            if e.state is not None:
                self._states[e.state] = value
            elif e.index is None:
                self._write(e.block, e.attribute, value)
            else:
                key = id(e.block), e.attribute
                if key not in arrays:
                    arrays[key] = (e.block, e.attribute, self._read(e.block, e.attribute, e.name))
                arrays[key][2][e.index] = value
        for block, attribute, array in arrays.values():
            self._write(block, attribute, array)

    def _write(self, block: Any, attribute: str, value: Any) -> None:
        try:
            with quiet():  # bdsim's blocks print what is set
                if attribute in getattr(block, "_parameters", {}):
                    block.set_param(attribute, value)
                else:
                    setattr(block, self._attribute(block, attribute), value)
        except CstormError:
            raise
        except Exception as error:
            text = f"parameters: block {block.name!r} refuses {attribute} = {value}: {type(error).__name__}: {error}"
            raise InvalidValue(text) from error

    @contextlib.contextmanager
    def kept(self) -> Iterator[Array]:
        """Give the present values, and set them again at the end."""
        before = self.get()
        try:
            yield before
        finally:
            self.set(before)

    def start(self, x: Array) -> Array:
        """Return a state with the initial states among the parameters put in."""
        out = x.copy()
        for k, value in self._states.items():
            out[k] = value
        return out

    def slopes(self, read: Callable[[], Array]) -> Array:
        """Return the derivatives (k, size) of what is read to the parameters, which are as before afterwards.

        Differences of the second order, extrapolated to the fourth: exact but for rounding where a number goes into the
        function as it is, or linearly.
        """
        with self.kept() as values:
            rows = []
            for k, value in enumerate(values):
                step = _MOVED * 2.0 ** np.ceil(np.log2(max(abs(value), 1e-3)))
                wide, narrow = (self._slope(read, values, k, h) for h in (step, 0.5 * step))
                rows.append(np.where(wide == narrow, wide, (4.0 * narrow - wide) / 3.0))
        return np.array(rows)

    def _slope(self, read: Callable[[], Array], values: Array, k: int, h: float) -> Array:
        sides = []
        for side in (h, -h):
            moved = values.copy()
            moved[k] += side
            self.set(moved)
            sides.append(read())
        if sides[0].shape != sides[1].shape:
            raise InvalidValue(f"parameters: {self.names[k]} changes the form of the diagram and has no derivative")
        slope: Array = (sides[0] - sides[1]) / (2.0 * h)
        return slope


def _tunables(block: Any) -> list[str]:
    """Return what can be tuned of a block, by the names under which it was given."""
    kept = vars(block)
    found = {*getattr(block, "_parameters", {}), *(key for key, value in kept.items() if _tunable(key, value))}
    return sorted(found | ({"x0"} if np.size(kept.get("_x0", ())) else set()))


def _tunable(key: str, value: Any) -> bool:
    if key.startswith("_") or key in _BOOKKEEPING:
        return False
    return not isinstance(value, bool) and isinstance(value, (int, float, np.ndarray))
