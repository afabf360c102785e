"""Arrays of inputs that are one node of the graph: looked up and searched by numbers that are not known yet.

A table is a run of numbers of one of the arrays that a graph is a function of; the machine code reads them where they
stand, however many there are (`look_ups`). Of a table's numbers those looked up have derivatives, the index has none:
it is the share between two rows that moves, which is written down beside it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.graph.arrays import Symbols, symbols
from cstormpy.graph.look_ups import LOOKUP, SEARCH, SEARCH_BELOW
from cstormpy.graph.nodes import INPUT, TABLE, Node, SymbolicBranch
from cstormpy.graph.primitives import apply
from cstormpy.graph.products import LARGE, product


class Table:
    """An array of numbers of which each is a symbol once it is asked for, looked up by an index that is one.

    It can be indexed and computed with as an array of all the symbols.

    Parameters
    ----------
    symbol : function of int
        Gives the symbol of a number by its place, counted row by row. They follow one another in one array of inputs.
    shape : tuple of int

    Examples
    --------
    >>> from cstormpy.graph import Graph
    >>> graph = Graph()
    >>> table = Table(lambda k: graph.input("p", k), (100, 2))
    >>> table[3]
    Symbols([p[6], p[7]], dtype=object)
    >>> table[graph.input("x")][1]
    p[0:200][2.0*x[0] + 1.0]
    """

    __array_priority__ = 101.0

    def __init__(self, symbol: Callable[[int], Node], shape: tuple[int, ...]) -> None:
        self._symbol, self.shape = symbol, shape
        self._node: Node | None = None

    @classmethod
    def of(cls, array: Symbols) -> Table:
        """Return an array of inputs that follow one another as a table."""
        items = list(np.asarray(array).ravel())
        first = items[0]
        if not (isinstance(first, Node) and first.primitive is INPUT):
            raise SymbolicBranch("only numbers that are parameters can be looked up by a number that is not known yet")
        name, begin, ordinary = first.data
        for k, item in enumerate(items):
            if not isinstance(item, Node) or item.data != (name, begin + k, ordinary) or item.primitive is not INPUT:
                raise SymbolicBranch("only numbers that stand in one array can be looked up by a number not known yet")
        return cls(items.__getitem__, array.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of numbers."""
        return math.prod(self.shape)

    @property
    def node(self) -> Node:
        """The table in its graph."""
        if self._node is None:
            first = self._symbol(0)
            self._node = first.graph.make(TABLE, (), (first.data[0], first.data[1], self.size))
        return self._node

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        row, rest = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        if not isinstance(row, Node):
            return self.symbols_at(np.arange(self.size).reshape(self.shape)[key])
        width = math.prod(self.shape[1:])
        places = np.arange(width).reshape(self.shape[1:])[rest]
        found = [apply(LOOKUP, self.node, width * row + float(k), float(self.size - 1)) for k in np.ravel(places)]
        return symbols(found).reshape(np.shape(places)) if np.ndim(places) else found[0]

    def symbols_at(self, places: Any) -> Any:
        """Return the symbols of some places, an array or a number."""
        if np.ndim(places) == 0:
            return self._symbol(int(places))
        return symbols([self._symbol(int(k)) for k in places.ravel()]).reshape(places.shape)

    def searchsorted(self, x: Any, side: str = "left") -> Any:
        """Return how many numbers are less than x or, from the right, at most as large."""
        if side not in ("left", "right") or self.ndim != 1:
            raise SymbolicBranch("a table is searched in one row only")
        if np.ndim(x):
            return symbols([self.searchsorted(one, side) for one in np.ravel(symbols(x))]).reshape(np.shape(x))
        x = x.item() if isinstance(x, np.ndarray) else x
        return apply(SEARCH if side == "right" else SEARCH_BELOW, self.node, x, float(self.size))

    def __array__(self, *args: Any, **options: Any) -> Any:
        return np.asarray(self._whole())

    def __matmul__(self, x: Any) -> Any:
        return _multiplied(self, x, of_rows=False)

    def __rmatmul__(self, x: Any) -> Any:
        return _multiplied(self, x, of_rows=True)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not options:
            a, b = inputs
            return a @ b if isinstance(a, Table) else b.__rmatmul__(a)
        return getattr(ufunc, method)(*map(_as_symbols, inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.searchsorted and isinstance(args[0], Table):
            return args[0].searchsorted(*args[1:], **kwargs)
        if function is np.shape:
            return self.shape
        if function is np.dot and len(args) == 2 and not kwargs:
            return np.matmul(*args)
        return function(*map(_as_symbols, args), **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._whole(), name)

    def _whole(self) -> Symbols:
        return self.symbols_at(np.arange(self.size).reshape(self.shape))


def _operator(name: str) -> Any:
    return lambda self, *others: getattr(self._whole(), name)(*map(_as_symbols, others))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    for _side in ("", "r"):
        setattr(Table, f"__{_side}{_name}__", _operator(f"__{_side}{_name}__"))
for _name in ("__neg__", "__abs__"):
    setattr(Table, _name, _operator(_name))


def _multiplied(table: Table, other: Any, of_rows: bool) -> Any:
    """Return the product of a table and a vector, or a matrix, or the other way round."""
    other = _as_symbols(other)
    shape, given = table.shape, np.shape(other)
    if len(shape) != 2 or len(given) not in (1, 2) or given[-1 if of_rows else 0] != shape[0 if of_rows else 1]:
        whole: Any = table._whole()
        return np.matmul(other, whole) if of_rows else np.matmul(whole, other)
    if table.size <= LARGE or _is_sparse(other, shape[1 if of_rows else 0]):
        whole = np.asarray(table._whole())
        return symbols(np.matmul(np.asarray(other), whole) if of_rows else np.matmul(whole, np.asarray(other)))
    many = np.atleast_2d(other if of_rows else np.transpose(np.asarray(symbols(other))))
    rows = [_numbers(product(table.node, (shape[0], shape[1]), _numbers(row), of_rows)) for row in many]
    if len(given) == 1:
        return symbols(rows[0])
    return symbols(rows) if of_rows else symbols(rows).T


def _is_sparse(other: Any, each: int) -> bool:
    """Tell whether so many numbers are known, and 0, that what is left of a product is short."""
    known = not any(isinstance(x, Node) for x in np.asarray(other).flat)
    return known and bool(np.count_nonzero(other) * each <= LARGE)


def _numbers(row: Any) -> list[Any]:
    return [x.number() if isinstance(x, Node) else float(x) for x in row]


def _as_symbols(x: Any) -> Any:
    return x._whole() if isinstance(x, Table) else x


def rows_from(array: Any, first: Any, count: int) -> Any:
    """Return `count` rows of an array or a table from the row `first` on, which may be a symbol.

    >>> rows_from(np.arange(10.0), 3, 2)
    array([3., 4.])
    """
    if not isinstance(first, Node):
        return array[first : first + count]
    if isinstance(array, Symbols):
        with contextlib.suppress(SymbolicBranch):  # what is no run of parameters is looked up as it is
            array = Table.of(array)
    elif not isinstance(array, Table):
        raise SymbolicBranch("only numbers that are parameters can be looked up by a number that is not known yet")
    return symbols([np.asarray(symbols(array[first + float(k)])) for k in range(count)])
