"""Choice between the two ways of computing dynamics: a mechanism's own straight line, or the kernels with loops.

A straight line is several times as fast, and has to be built for each structure; the loops serve all mechanisms, but
their compiler takes a second to load, and where they are not on disk some twenty to compile them. So a line is taken
where it is on disk or in memory already, where it has paid or will pay for its building, and as long as building lines
has taken less than having the loops would. For large mechanisms the loops are the way, as the code of a line no longer
fits the processor's caches; but where the loops are not there, and the line is built sooner, it answers until they are.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import part_of, run_parts
from cstormpy.dynamics.tracing import LARGEST, TILED, Signature, hybrid_routine, operations_of
from cstormpy.graph.calls import batch_caller, caller
from cstormpy.graph.code_cache import is_kept, machine_for
from cstormpy.graph.emission import LANES
from cstormpy.graph.machine import Machine
from cstormpy.graph.module import text_for_one, text_for_rows
from cstormpy.graph.routine import Routine
from cstormpy.kernels import layout
from cstormpy.linkage.tables import Tables, folded, tables_of

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import Samples
    from cstormpy.linkage import Linkage

Key = TypeVar("Key")
Shared = TypeVar("Shared")

_NONE = np.zeros(0)

#: Seconds that building takes for each operation, of one sample and of rows: rough, as they only decide when to begin.
BUILDING = 6e-5
#: Seconds by which a line is faster than the loops, for each of its operations and each sample (measured; of rows of
#: large mechanisms it is half of that and less, but who has asked for that many will ask for more).
_GAIN = {("one", False): 5e-11, ("one", True): 1.5e-10, ("rows", False): 1e-10, ("rows", True): 1.2e-10}
#: Building that takes no longer [s] is not thought about twice where many samples are to come.
_SHORT = {"one": 0.1, "rows": 0.7}
#: Whoever asks for so many rows at once will ask for more.
BATCH = 256
#: Whoever has a function prepared is asked after so many samples whether the line pays by now.
_LOOK = 4096
#: Samples that a diagram asks for: as many as make any line pay.
_MANY = 10**9
#: Joints beyond which a line of one sample is not built in the place of loops that would have to be compiled.
_MODEST = 14
#: Seconds that loading the loops and their compiler takes, and compiling those of one signature.
_LOADING, _COMPILING = 1.2, 20.0
#: The most operations of a line that stands in for loops that are not there: from here on building takes longer than by
#: the operation (measured: 2 s for 24 000, 17 s for 62 000).
_STANDING_IN = 40_000
#: The most operations of a line for rows, whose building then takes some ten seconds.
MOST = 140_000


class Line:
    """The straight line of one structure and one signature: how often it was asked for, and its code once built."""

    def __init__(self, tables: Tables, signature: Signature) -> None:
        self._T, self._N, self._question = tables.T, tables.N, signature
        self._n = int(tables.N[layout.N_COUNT])
        self._operations = operations_of(tables.N, signature.sensitivities)
        self.name = signature.name
        self._key = key_of(tables, signature.name.encode())
        self._machines: dict[str, Machine] = {}
        self._asked = {"one": 0, "rows": 0}
        self._looked = {"one": 0, "rows": 0}
        self._yielded: set[str] = set()
        self._routine: Routine | None = None
        self._building = threading.Lock()

    def machine(self, kind: str, samples: int, eager: bool = False) -> Machine | None:
        """Return the code for one sample ("one") or for rows, if that is the way to take for so many samples more.

        With `eager` there will be many, unless building takes long.
        """
        found = self._machines.get(kind)
        if found is not None:
            return found
        if self._n == 0 or (self._is_large(kind) and self._yields(kind)):
            return None
        self._asked[kind] += samples
        if not self._pays(kind, eager):
            return None
        with self._building:
            if kind not in self._machines:
                self._machines[kind] = self._build(kind)
        return self._machines[kind]

    def _is_large(self, kind: str) -> bool:
        return self._n > LARGEST[kind, self._question.sensitivities] or self._operations > MOST

    def _yields(self, kind: str) -> bool:
        """Tell whether the loops are the way for a large mechanism: they are there, or are so sooner than its line."""
        if kind not in self._yielded and (self._operations > _STANDING_IN or self._has_loops(kind)):
            self._yielded.add(kind)
        return kind in self._yielded

    def _pays(self, kind: str, eager: bool) -> bool:
        operations = self._operations
        cost, gain = BUILDING * operations, _GAIN[kind, self._question.sensitivities]
        if (eager and cost < _SHORT[kind]) or self._asked[kind] * operations * gain > cost:
            return True
        if self._asked[kind] >= 2 * self._looked[kind]:  # looking costs more than a few samples
            self._looked[kind] = self._asked[kind]
            if is_kept(self._file(kind), self._key):
                return True
        if kind == "one" and self._n > _MODEST and self._yields(kind):
            return False
        spent = _Spent.seconds + cost
        if spent <= _LOADING and "cstormpy.kernels.compiling" not in sys.modules:
            return True
        return spent <= _COMPILING and not self._has_loops(kind)

    def _has_loops(self, kind: str) -> bool:
        """Tell whether the loops that would answer need no compiling."""
        from cstormpy.kernels import entries_hybrid, entries_sensitivity

        asked = self._question
        name = "sensitivity" if asked.sensitivities else "hybrid"
        entries = entries_sensitivity if asked.sensitivities else entries_hybrid
        if kind == "one" and not (asked.moving_base or asked.to_base):
            name = f"loaded_{name}_one" if asked.loads else f"{name}_one"
            return bool(getattr(entries, name).is_ready())
        return bool(getattr(entries, f"{name}_lanes").is_ready())

    def _file(self, kind: str) -> str:
        return f"{self.name}_{kind}"

    def _build(self, kind: str) -> Machine:
        begin = time.thread_time()  # on a busy machine too
        made = machine_for(self._file(kind), self._key, lambda: self._text(kind))
        _Spent.seconds += time.thread_time() - begin
        return made

    def _text(self, kind: str) -> str:
        routine = self._traced(kind)
        return text_for_rows(routine, self.shapes) if kind == "rows" else text_for_one(routine, self.shapes)

    def _traced(self, kind: str) -> Routine:
        if kind == "one" and self._question.sensitivities and self._n >= TILED:
            return hybrid_routine(self._T, self._N, self._question, tiles=True)
        if self._routine is None:
            self._routine = hybrid_routine(self._T, self._N, self._question)
        return self._routine

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of one sample, those given and those filled."""
        n, links = self._n, int(self._N[layout.N_LINKS])
        given: dict[str, tuple[int, ...]] = {"q": (n,), "qd": (n,), "u": (n,)}
        if self._question.loads:
            given["wrench"] = (self._question.loads * links,)
        if self._question.moving_base:
            given["base"] = (12,)
        given["y"] = (self._question.parts * n,)
        if self._question.sensitivities:
            given["columns"] = (3, n, n)
        if self._question.to_base:
            given["of_base"] = (n, 12)
        return given

    def caller(self, T: Array, eager: bool, samples: int = 1) -> Callable[..., int] | None:
        """Return the built-in function that answers for one sample of a mechanism with these numbers.

        It is asked for by so many samples more.
        """
        machine = self.machine("one", samples, eager)
        return None if machine is None else caller(machine, self.name, [T], list(self.shapes.values()))

    def batch_caller(self, T: Array, count: int) -> Callable[..., int] | None:
        """Return the built-in function that answers for rows, as many as that and probably more."""
        machine = self.machine("rows", count, eager=count >= BATCH)
        return None if machine is None else batch_caller(machine, self.name, [T], list(self.shapes.values()))


def key_of(tables: Tables, more: bytes) -> bytes:
    """Return what the straight lines of a structure depend on, and what else one does."""
    return b"".join([tables.N.tobytes(), folded(tables.T).tobytes(), more])


class _Spent:
    """Seconds of a processor that building straight lines has taken in this process."""

    seconds = 0.0


_lines: dict[tuple[bytes, bytes, Signature], Line] = {}
_LINES_KEPT = 256


def shared(lines: dict[Key, Shared], key: Key, make: Callable[[], Shared]) -> Shared:
    """Return the line of a key, made where there is none yet; the oldest of many are given up."""
    found = lines.get(key)
    if found is None:
        while len(lines) >= _LINES_KEPT:
            lines.pop(next(iter(lines)))
        found = lines.setdefault(key, make())  # another thread may have made it meanwhile
    return found


def line_for(tables: Tables, signature: Signature) -> Line:
    """Return the straight line of a structure and a signature, shared by all mechanisms that have it."""
    key = tables.N.tobytes(), folded(tables.T).tobytes(), signature
    return shared(_lines, key, lambda: Line(tables, signature))


def filled(
    mech: Linkage,
    drive: str,
    signature: Signature,
    samples: Samples,
    outputs: tuple[Array, ...],
    threads: int | None,
    often: bool = False,
) -> bool:
    """Fill the outputs, a row for each sample, by the straight line; False where that is not the way, or a sample bad.

    What is wrong with a sample the loops find out. The same may be asked for `often`, as by an optimiser.
    """
    if mech.n > LARGEST["one" if samples.count == 1 else "rows", signature.sensitivities]:
        return False  # without a look at its numbers
    given = samples.given
    if samples.count == 1:
        call = prepared(mech, drive, signature)
        return call is not None and call(*(a[0] for a in given), *(a[0] for a in outputs)) == 0
    if not _has_rows(mech, drive, signature, max(samples.count, BATCH) if often else samples.count):
        return False
    if samples.count < LANES:
        return filled_few(mech.memo["rows", drive, signature], given, outputs)
    return rows_filled(mech, drive, signature, (*map(np.ascontiguousarray, given), *outputs), threads)


def _has_rows(mech: Linkage, drive: str, signature: Signature, count: int) -> bool:
    """Prepare the line for `rows_filled` if that is the way to take for so many samples; tell whether it is there."""
    key = "rows", drive, signature
    if not has_rows(mech, drive, signature):
        tables = tables_of(mech, drive)
        call = line_for(tables, signature).batch_caller(tables.T, count)
        if call is None:
            return False
        mech.memo[key] = call
    return True


def has_rows(mech: Linkage, drive: str, signature: Signature) -> bool:
    """Tell whether `rows_filled` has its line."""
    return ("rows", drive, signature) in mech.memo


def rows_filled(
    mech: Linkage, drive: str, signature: Signature, arrays: tuple[Array, ...], threads: int | None = 1
) -> bool:
    """Fill arrays of rows by the straight line, from those given; False if it is not built or one is not as it must be.

    They are float64, contiguous, of equal lengths; what is not finite counts as a bad sample.
    """
    call: Callable[..., int] | None = mech.memo.get(("rows", drive, signature))
    if call is None:
        return False
    count = len(arrays[0])
    if threads == 1:
        return call(*arrays, 0, count) == -1
    return run_parts(part_of(call, arrays), (signature.name, mech.n, len(mech.links)), count, threads)[1] == 0


def filled_few(call: Callable[..., int], given: Sequence[Array], outputs: Sequence[Array]) -> bool:
    """Fill fewer rows than lanes, the last of which is repeated, by the built-in function of a straight line."""
    rows = np.minimum(np.arange(LANES), len(outputs[0]) - 1)
    room = [np.empty((LANES, *a.shape[1:])) for a in outputs]
    if call(*(a[rows] for a in given), *room, 0, LANES) != -1:
        return False
    for a, found in zip(outputs, room, strict=True):
        a[:] = found[: len(a)]
    return True


def prepared(
    mech: Linkage, drive: str, signature: Signature, loads: Array = _NONE, eager: bool = False, samples: int = 1
) -> Callable[..., int] | None:
    """Return the built-in function that answers for one sample, or None where the loops are the way.

    With `loads` it takes all but these; with `eager` it is for many samples. So many have asked since it was last
    looked for.
    """
    key = "line", drive, signature
    found: Callable[..., int] | None = mech.memo.get(key)
    if found is None:
        tables = tables_of(mech, drive)
        found = line_for(tables, signature).caller(tables.T, eager, samples)
        if found is None:
            return None
        mech.memo[key] = found
    if not loads.size:
        return found
    call = found
    return lambda q, qd, u, *filled: call(q, qd, u, loads, *filled)


def ready(
    mech: Linkage, signature: Signature, loads: Array, by_loops: Callable[[], Callable[..., int]]
) -> Callable[..., int]:
    """Return what answers for one sample at a time: the line, or else what `by_loops` gives, until the line pays."""
    found = prepared(mech, "own", signature, loads, eager=True)
    if found is not None:
        return found
    loops = by_loops()
    if mech.n > LARGEST["one", signature.sensitivities]:  # they are there now
        return loops
    line: Callable[..., int] | None = None
    asked = 0

    def call(*arrays: Array) -> int:
        nonlocal line, asked
        if line is not None:
            return line(*arrays)
        asked += 1
        if asked == _LOOK:
            asked, line = 0, prepared(mech, "own", signature, loads, samples=_LOOK)
        return loops(*arrays)

    return call


def address_of(mech: Linkage, drive: str, signature: Signature) -> int:
    """Return where the straight line for one sample begins, or 0 for a mechanism that is too large for one.

    The code stays as long as the mechanism does.
    """
    key = "address", drive, signature
    found: tuple[int, Line] | None = mech.memo.get(key)
    if found is None:
        line = line_for(tables_of(mech, drive), signature)
        machine = line.machine("one", _MANY)
        address = 0 if machine is None else machine.address(f"{signature.name}_one")
        found = mech.memo.setdefault(key, (address, line))
    return found[0]
