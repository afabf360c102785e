"""Mechanisms of symbols: a mechanism whose numbers are not known yet, for methods that are written down as a graph.

A method that is called with such a mechanism writes down how what it computes depends on masses, lengths and gravity
too. The structure is that of the mechanism it is made of, and so are the numbers that fold
(`linkage.tables.folded`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidType
from cstormpy.graph.arrays import symbols
from cstormpy.kernels import layout
from cstormpy.linkage.constraints import Constraint
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.tables import NUMBERS, Tables, folded, loops_with, numbers_of, tables_of
from cstormpy.mechanism.mechanism import Mechanism

#: Where gravity stands in T.
GRAVITY = range(layout.T_GRAVITY, layout.T_GRAVITY + 3)


class SymbolicMechanism(Mechanism):
    """A mechanism whose numbers are symbols of an expression graph; it lives as long as one method is written down.

    Parameters
    ----------
    of : Mechanism
        Whose structure it has.
    number : function of (str, int)
        Gives the symbol of an ordinary number (never 0, 1 or -1) of its tables, "T" or "base_inertia", or of the frames
        of its "loops", and the place.
    links : function without arguments
        Gives its links, of symbols.
    unfolded : collection of int
        Places of T that are symbols whatever stands there.
    """

    symbolic = True
    _of: Mechanism
    _tables: Tables
    _make_links: Callable[[], tuple[Link, ...]]

    def __init__(
        self,
        of: Mechanism,
        number: Callable[[str, int], Any],
        links: Callable[[], tuple[Link, ...]],
        unfolded: Collection[int] = (),
    ) -> None:
        made = dict[str, Any]()
        for name in NUMBERS:
            array = folded(numbers_of(of, name))
            known = unfolded if name == "T" else ()
            values = [number(name, k) if np.isnan(x) or k in known else float(x) for k, x in enumerate(array.ravel())]
            made[name] = symbols(values).reshape(array.shape)
        loops = loops_with(of, made.pop("loops"))
        self._become(of, replace(tables_of(of.tree), **made), links, loops)

    def _become(
        self, of: Mechanism, tables: Tables, links: Callable[[], tuple[Link, ...]], loops: tuple[Loop | Constraint, ...]
    ) -> None:
        content = {name: value for name, value in vars(of).items() if name != "links"} | {"loops": loops}
        gravity = tables.T[layout.T_GRAVITY : layout.T_GRAVITY + 3]
        own = {"memo": {("tables", "own"): tables}, "_of": of, "_tables": tables, "_make_links": links}
        self._set(**{**content, "gravity": gravity, **own})

    @property
    def links(self) -> tuple[Link, ...]:  # type: ignore[override]
        """The links, whose numbers are symbols."""
        if "links" not in self.memo:
            self.memo["links"] = self._make_links()
        return self.memo["links"]

    @property
    def tree(self) -> SymbolicMechanism:
        """The mechanism with all loops open."""
        if self.loops and "tree" not in self.memo:
            self.memo["tree"] = self._of_tables(self._of.tree, self._tables)
        return cast("SymbolicMechanism", self.memo["tree"]) if self.loops else self

    @property
    def numeric(self) -> Mechanism:
        """The mechanism whose structure it has."""
        return self._of

    def _of_tables(self, of: Mechanism, tables: Tables) -> SymbolicMechanism:
        made: SymbolicMechanism = object.__new__(type(self))
        made._become(of, tables, self._make_links, self.loops if of.loops else ())
        return made

    def with_drive(
        self, *, active: Iterable[str] | None = None, actuated: Iterable[str] | None = None
    ) -> SymbolicMechanism:
        """Return the mechanism with other joints active or actuated."""
        of = self._of.with_drive(active=active, actuated=actuated)
        return self._of_tables(of, replace(self._tables, N=tables_of(of.tree).N))

    def with_gravity(self, gravity: ArrayLike) -> SymbolicMechanism:
        """Return the mechanism under another gravity, which may be of symbols."""
        T = self._tables.T.copy()
        T[layout.T_GRAVITY : layout.T_GRAVITY + 3] = gravity
        return self._of_tables(self._of, replace(self._tables, T=T))

    def with_parameters(self, values: Mapping[str, Any]) -> NoReturn:
        """Refuse: tables are not made of symbols."""
        raise InvalidType("mechanism: no other one can be derived by with_parameters while a method is written down")
