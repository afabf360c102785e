"""Base of the methods of a mechanism: the mechanism itself, and functions for single samples that are made once.

Each method takes one sample, arrays of shape (n,), or a batch, (N, n), and answers in kind. The functions behind the
methods, in `cstormpy.dynamics`, `cstormpy.sensitivity` and `cstormpy.loops`, are imported when they are first asked
for, so that describing a mechanism costs no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidValue

if TYPE_CHECKING:
    from cstormpy.mechanism.mechanism import Mechanism

#: The prepared functions neither count threads nor look for masks: what they are given is checked before.
ONE_THREAD = 1


def is_sample(u: Any) -> bool:
    """Tell whether an argument is one sample, as an array."""
    return type(u) is np.ndarray and u.ndim == 1


def _for_rows(ask: Callable[..., Any], mech: Mechanism, prepare: Callable[[], Any]) -> Callable[..., Any]:
    """Return what asks in the careful way, until there is one sample and what is prepared for those takes its place."""

    def answer(q: Any, qd: Any, u: Any) -> Any:
        return prepare()(q, qd, u) if is_sample(u) else ask(mech, q, qd, u)

    return answer


class Methods:
    """Base of the classes that hold the methods of `Mechanism`, one class for each subject."""

    memo: dict[Any, Any]

    @property
    def _self(self) -> Mechanism:
        return cast("Mechanism", self)

    def _refuse_redundancy(self, redundancy: str | ArrayLike | None) -> None:
        if redundancy is not None:
            raise InvalidValue("redundancy: is of mechanisms with loops; this one has none")

    def _prepared(
        self, what: str, ask: Callable[..., Any], evaluator: Callable[..., Any], for_sample: bool
    ) -> Callable[..., Any]:
        """Return what answers "dynamics" or "sensitivity": for samples the prepared function, for rows the careful one.

        `evaluator` makes the prepared functions, of which the first is kept as "<what> evaluator"; `ask` is the careful
        one. Of loops they are made when their line is built.
        """
        mech = self._self
        if mech.loops:
            from cstormpy.loops.lines import is_built

            if not (for_sample and is_built(mech, "own", what)):
                return partial(ask, mech)
        if for_sample:
            self.memo[f"{what} evaluator"], self.memo[what] = evaluator(mech)
        else:
            self.memo[what] = _for_rows(ask, mech, partial(self._prepared, what, ask, evaluator, True))
        return cast("Callable[..., Any]", self.memo[what])
