"""Straight lines of mechanisms: the kernels, called with symbols, write down what they compute for one structure.

The structure of a mechanism is fixed and so are the zeros and ones among its numbers, which fold; all other numbers
stay inputs, so that another mass or length needs no new code.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics import kernel_calls
from cstormpy.errors import InvalidValue
from cstormpy.graph import Graph, Node, require_zero
from cstormpy.graph.arrays import symbols
from cstormpy.graph.routine import Routine
from cstormpy.graph.tiles import LANES, lane, tile
from cstormpy.kernels import layout as at
from cstormpy.kernels.charts import answer_at, given_at
from cstormpy.kernels.closed_forms import closed_forms, form_base, screws
from cstormpy.kernels.factorisation import column_count, columns_place
from cstormpy.kernels.hybrid import NOT_FINITE, hybrid, node, place_base
from cstormpy.kernels.inertial_numbers import find_responses, put_columns
from cstormpy.kernels.lanes import all_greater, noted, tiles_of_symbols
from cstormpy.kernels.samples import bring_loads_one
from cstormpy.kernels.sensitivity import fill_columns
from cstormpy.kernels.vector import add, cross
from cstormpy.linkage.tables import folded, tables_of

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import Samples
    from cstormpy.kernels.compiling import Entry
    from cstormpy.linkage import Linkage
    from cstormpy.linkage.tables import Tables

#: The most joints for which a straight line pays, of one sample and of rows, without and with sensitivities (measured:
#: ``pytest tests/benchmarks/test_lines_speed.py --benchmark-only``); in a diagram, whose first run waits until the line
#: is built, it pays for fewer; and of one that has held joints, most of whose columns nobody asks for, for more. Of
#: rows the largest that were measured, of 80 and 55, took less than 0.7 of the time of the loops.
LARGEST = {
    ("one", False): 40,
    ("one", True): 14,
    ("rows", False): 80,
    ("rows", True): 60,
    ("diagram", False): 14,
    ("diagram", True): 7,
    ("held", True): 20,
}

#: Joints from which the columns of one sample's sensitivities are solved side by side in tiles (measured: 13 joints
#: gain a tenth, and half of the time of building; 7 lose as much, as their columns wait for one another).
TILED = 10

#: Operations of a joint and of a pair of joints on one path, without and with sensitivities: rough.
_OPERATIONS = {False: (400, 8), True: (500, 130)}
#: The most operations of the sensitivities of a tree that is closed by loops for which it is written down in a diagram:
#: of legs side by side there is less to do than of a chain of as many joints, and most of it is not asked for.
_CLOSED = 25_000

#: A place in scratch memory behind all others.
_BEHIND = 10**9

Asked = TypeVar("Asked", bound=Callable[..., Any])

_any_size: ContextVar[bool] = ContextVar("_any_size", default=False)


def operations_of(N: NDArray[np.int64], sensitivities: bool) -> int:
    """Return about how many operations the straight line of a structure has."""
    depths = [0]
    for i in range(1, int(N[at.N_COUNT]) + 1):
        depths.append(depths[N[node(i)[0] + at.N_PARENT]] + 1)
    each, pair = _OPERATIONS[sensitivities]
    n = len(depths) - 1
    return each * n + pair * (2 * sum(depths) - n)


@contextmanager
def of_any_size() -> Iterator[None]:
    """Have mechanisms of any size written down within the ``with`` block, however long that takes."""
    before = _any_size.set(True)
    try:
        yield
    finally:
        _any_size.reset(before)


def branches_enough(mech: Linkage) -> bool:
    """Tell whether the tree of a closed mechanism is written down whatever its number of joints."""
    key = "tree is written down"
    if key not in mech.memo:
        mech.memo[key] = operations_of(tables_of(mech.tree).N, True) <= _CLOSED
    return bool(mech.memo[key])


def with_its_tree(ask: Asked) -> Asked:
    """Have the tree of a closed mechanism, the first argument, written down while it is asked with symbols.

    A tree of more joints than `LARGEST` says is so, too, as long as it branches enough.
    """

    @functools.wraps(ask)
    def asked(mech: Linkage, *arguments: Any, **named: Any) -> Any:
        if not branches_enough(mech) or _any_size.get():
            return ask(mech, *arguments, **named)
        with of_any_size():
            return ask(mech, *arguments, **named)

    return cast("Asked", asked)


class TooLarge(InvalidValue):
    """A mechanism has so many joints that writing down what it computes would take seconds."""

    @classmethod
    def of(cls, tables: Tables, sensitivities: bool = False) -> TooLarge | None:
        """Return the error for a mechanism with more joints than a straight line in a diagram pays for, else None."""
        joints, most = int(tables.N[at.N_COUNT]), LARGEST["diagram", sensitivities]
        if joints <= most or _any_size.get():
            return None
        what = "its sensitivities are" if sensitivities else "it is"
        return cls(f"mechanism: has {joints} joints, and {what} written down for at most {most}")


@dataclass(frozen=True)
class Signature:
    """Signature of an evaluation of the hybrid dynamics: the inputs that it takes, the derivatives that it gives."""

    loads: int = 0
    """Number of numbers of loads for each link, see `kernels.loads`: none, a wrench, or a dead load too."""
    moving_base: bool = False
    sensitivities: bool = False
    to_base: bool = False
    answers: str = "found"
    """Content of y: the "found" answers; "whole", behind them the accelerations and the torques of all joints; or only
    these, the "motion"."""

    @classmethod
    def of_loads(cls, mech: Linkage, loads: Array, **asked: Any) -> Signature:
        """Return the signature with loads that `checked_arguments.read_loads` has read."""
        return cls(loads=loads.size // len(mech.links) if loads.size else 0, **asked)

    @classmethod
    def of_samples(cls, mech: Linkage, samples: Samples, **asked: Any) -> Signature:
        """Return the signature that fits some samples."""
        loads = samples.wrench.shape[1] // len(mech.links) if len(samples.wrench) else 0
        return cls(loads=loads, moving_base=len(samples.base) > 0, **asked)

    @property
    def name(self) -> str:
        """A name for routines that answer it."""
        asked = (self.loads, self.moving_base, self.sensitivities, self.to_base)
        words = (f"loads{self.loads}", "based", "sensitivity", "tobase")
        chosen = [word for word, is_asked in zip(words, asked, strict=True) if is_asked]
        return "_".join(["hybrid", *chosen, self.answers])

    @property
    def parts(self) -> int:
        """Count of numbers of y for each joint."""
        return {"found": 1, "motion": 2, "whole": 3}[self.answers]


class _Scratch(dict[int, Any]):
    """Scratch memory of symbols, zero where nothing was written.

    `rows` is how many numbers the rows of nodes take; `outward` counts the nodes of the graph that there were when the
    first joint was closed, which belong to the recursion's way outwards.
    """

    rows = outward = 0
    graph: Any = None

    def __setitem__(self, key: int, x: Any) -> None:
        if key % at.ROW == at.RES and key < self.rows and not self.outward and isinstance(x, Node):
            self.outward = len(x.graph.nodes)
        super().__setitem__(key, x)

    def __missing__(self, key: int) -> float:
        return 0.0

    def load_tile(self, key: int) -> Any:
        return tile(self.graph, [self[key + k] for k in range(LANES)])

    def store_tile(self, key: int, x: Any) -> None:
        for k in range(LANES):
            self[key + k] = lane(x, k)


@dataclass(frozen=True)
class InertialForm:
    """Form of a list of columns for inertial numbers, see `kernels.inertial_numbers.put_columns`."""

    runs: tuple[tuple[int, int, int, int], ...]
    starts: tuple[int, ...]
    entries: tuple[int, ...]
    known: tuple[float | None, ...]
    """The weights that fold, None for those that are inputs."""

    @property
    def count(self) -> int:
        """The number of columns."""
        return len(self.starts) - 1

    def weights(self, graph: Graph) -> list[Any]:
        """Return the weights, with the inputs of a graph for those that do not fold."""
        inputs = iter(graph.inputs("weights", self.known.count(None)))
        return [next(inputs) if value is None else value for value in self.known]


def hybrid_routine(
    T: Array,
    N: NDArray[np.int64],
    signature: Signature,
    name: str = "",
    inertial: InertialForm | None = None,
    tiles: bool = False,
) -> Routine:
    """Return the routine that evaluates a signature for a mechanism with these tables (`linkage.tables.Tables`).

    With `tiles` the columns of its sensitivities stand side by side, and it is for one sample.

    Its arguments are T, q, qd, u, with ``wrench`` (`loads` a link) and ``base`` (V0, dV0) where they are asked for, and
    what it fills is y, with ``columns`` (3, n, n) and ``of_base`` (n, 12) where these are. For inertial numbers of a
    form it also takes ``weights``, behind T, and fills ``inertial`` (n, count).
    """
    graph, n, links = Graph(), int(N[at.N_COUNT]), int(N[at.N_LINKS])
    numbers = _folded_inputs(graph, T)
    sizes = {"q": n, "qd": n, "u": n}
    if signature.loads:
        sizes["wrench"] = signature.loads * links
    if signature.moving_base:
        sizes["base"] = 12
    given = {name: symbols(graph.inputs(name, size)) for name, size in sizes.items()}
    W = _Scratch()
    W.graph = graph
    shared, columns = {"T": len(numbers)}, None
    if inertial is not None:
        shared["weights"] = inertial.known.count(None)
        columns = inertial, inertial.weights(graph)
    with tiles_of_symbols(LANES if tiles else 1):
        outputs, status = hybrid_values(numbers, N, signature, **given, W=W, columns=columns)
    late = len(graph.nodes) if signature.sensitivities or inertial is not None else W.outward
    return Routine(name or signature.name, shared, sizes, outputs, status, watchful=True, late=late)


def hybrid_values(
    T: list[Any],
    N: NDArray[np.int64],
    signature: Signature,
    q: Any,
    qd: Any,
    u: Any,
    wrench: Any = None,
    base: Any = None,
    W: _Scratch | None = None,
    columns: tuple[InertialForm, list[Any]] | None = None,
) -> tuple[dict[str, list[Any]], Any]:
    """Return the answer for a signature, by the names of the arrays that hold it, and the status; symbols too.

    With `columns`, their form and their weights, there are the derivatives to inertial numbers as well.
    """
    structure = [int(k) for k in N]
    structure[at.N_DEEP] = 0  # all columns side by side
    W = _Scratch() if W is None else W
    W.rows = at.ROW * (structure[at.N_COUNT] + 1)
    coordinates = {i: structure[node(i)[0] + at.N_COORDINATE] for i in range(1, structure[at.N_COUNT] + 1)}
    for i, j in coordinates.items():
        W[i * at.ROW + at.Q], W[i * at.ROW + at.QD], W[i * at.ROW + at.U] = q[j], qd[j], u[j]
    loaded = at.UNLOADED if wrench is None else bring_loads_one(structure, W, wrench, 0.0, wrench)
    omega: Any = (0.0, 0.0, 0.0)
    v = alpha = a = acc = omega
    if base is not None:
        omega, v, alpha, a = (tuple(base[k : k + 3]) for k in (0, 3, 6, 9))
        # the acceleration of a point of the base is the derivative of its velocity in moving axes plus ω × v
        acc = add(a, cross(omega, v))
    place_base(T, W, omega, alpha, acc, 0.0)
    status = hybrid(T, structure, W, loaded, False, 0.0)
    outputs: dict[str, list[Any]] = {"y": _answers(structure, W, coordinates, signature.answers)}
    if signature.sensitivities:
        form_base(T, structure, W, omega, v, alpha, a, 0.0)
        closed_forms(T, structure, W, loaded, 0.0)
        fill_columns(T, structure, W, loaded, signature.to_base, 0.0)
        outputs |= _columns(structure, W, coordinates, signature.to_base)
    if columns is not None:
        form_base(T, structure, W, omega, v, alpha, a, 0.0)
        outputs["inertial"], total = _inertial(T, structure, W, *columns)
        status = noted(status, all_greater(1.0, total), NOT_FINITE)
    return outputs, status


def answer_symbols(tables: Tables, signature: Signature, samples: Samples, outputs: tuple[Any, ...]) -> None:
    """Fill outputs with what one sample of symbols gives; so may the numbers of the mechanism be.

    Where the kernels would report a failure, what is written down does, see `graph.require_zero`. Of a large mechanism
    the kernels with loops are called, see `kernel_calls`.

    Raises
    ------
    TooLarge
        Where they cannot be called.
    """
    refused = TooLarge.of(tables, signature.sensitivities)
    if refused is not None:
        if not kernel_calls.answer(tables, signature, samples, outputs):
            raise refused
        return
    given = {name: row[0] for name, row in zip(("q", "qd", "u"), samples.rows.values(), strict=True)}
    if len(samples.wrench):
        given["wrench"] = samples.wrench[0]
    if len(samples.base):
        given["base"] = samples.base[0]
    found, status = hybrid_values(_numbers(tables), tables.N, signature, **given)
    require_zero(status)
    for out, values in zip(outputs, found.values(), strict=True):
        out[0] = np.array(values, dtype=object).reshape(out.shape[1:])


def run_on_symbols(entry: Entry, tables: Tables, arguments: tuple[Any, ...]) -> None:
    """Run a kernel of rows, whose arrays hold one row of symbols, as plain Python; of a large mechanism call it.

    Raises
    ------
    TooLarge
        Where it cannot be called.
    """
    refused = TooLarge.of(tables)
    if refused is not None:
        if not kernel_calls.run(entry.name, tables, arguments):
            raise refused
        return
    entry.function(_numbers(tables), [int(k) for k in tables.N], _Scratch(), *arguments, 0, 1)


def kernel_routine(T: Array, N: NDArray[np.int64], entry: Entry, form: tuple[Any, ...]) -> Routine:
    """Return the routine of a kernel of rows for mechanisms with these tables.

    Of each argument behind T, N and the scratch memory `form` has the shape of a sample's array, with a zero where none
    is given, or the argument itself, an integer. The arrays are called ``a0``, ``a1`` and so on, as they are counted.
    """
    graph = Graph()
    sizes, outputs, arguments = dict[str, int](), dict[str, Any](), list[Any]()
    for k, shape in enumerate(form):
        if not isinstance(shape, tuple):
            arguments.append(shape)
            continue
        size = math.prod(shape)
        if k < entry.given:
            array = symbols(graph.inputs(f"a{k}", size)).reshape(1, *shape) if size else np.zeros((0, 0))
            sizes |= {f"a{k}": size} if size else {}
        else:
            array = outputs[f"a{k}"] = symbols([0.0] * size).reshape(1, *shape)
        arguments.append(array)
    numbers = _folded_inputs(graph, T)
    entry.function(numbers, [int(k) for k in N], _Scratch(), *arguments, 0, 1)
    filled = {name: array.ravel().tolist() for name, array in outputs.items()}
    return Routine(entry.name, {"T": len(numbers)}, sizes, filled)


def _folded_inputs(graph: Graph, T: Array) -> list[Any]:
    """Return the numbers of a mechanism as inputs, but for those that fold."""
    known = enumerate(folded(T))
    return [graph.input("T", k, ordinary=True) if np.isnan(value) else float(value) for k, value in known]


def _numbers(tables: Tables) -> list[Any]:
    """Return the numbers of a mechanism, each a float or a symbol."""
    return tables.T.tolist()


def _answers(structure: list[int], W: _Scratch, coordinates: Mapping[int, int], answers: str) -> list[Any]:
    """Return y, see `Signature`."""
    nodes = sorted(coordinates, key=coordinates.__getitem__)
    found, given = [W[answer_at(structure, i)] for i in nodes], [W[given_at(structure, i)] for i in nodes]
    if answers == "found":
        return found
    active = [structure[node(i)[0] + at.N_ACTIVE] != 0 for i in nodes]
    accelerations = [b if is_active else a for a, b, is_active in zip(found, given, active, strict=True)]
    torques = [a if is_active else b for a, b, is_active in zip(found, given, active, strict=True)]
    return [*(found if answers == "whole" else []), *accelerations, *torques]


def _inertial(
    T: list[Any], structure: list[int], W: _Scratch, form: InertialForm, weights: list[Any]
) -> tuple[list[Any], Any]:
    """Return the derivatives of y to inertial numbers, row by row, and 0 if they are finite, else NaN."""
    n = structure[at.N_COUNT]
    for i in range(1, n + 1):
        screws(T, structure, W, i, 0.0)
    find_responses(T, structure, W, 0.0)
    out = [0.0] * (n * form.count)
    plan = np.array(form.runs), form.starts, form.entries, weights, form.count
    return out, put_columns(T, structure, W, True, np.zeros((0, 0)), plan, _BEHIND, out, 0, 0, 0.0)


def _columns(structure: list[int], W: _Scratch, coordinates: Mapping[int, int], to_base: bool) -> dict[str, list[Any]]:
    """Return the derivatives of y as `hybrid_sensitivity` lays them out."""
    n = len(coordinates)
    place, pitch = columns_place(structure, 0.0), column_count(structure, to_base, 0.0)
    nodes = sorted(coordinates, key=coordinates.__getitem__)
    begins = [place + (i - 1) * pitch for i in nodes]
    found = {"columns": [W[x + block * n + j] for block in range(3) for x in begins for j in range(n)]}
    if to_base:
        found["of_base"] = [W[x + 3 * n + j] for x in begins for j in range(12)]
    return found
