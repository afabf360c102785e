"""What a law of one's own says of its phases, looked at where it is given and where it begins or changes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cstormpy.arrays import Array, is_single
from cstormpy.control.law import Law
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, shown

_EXAMPLE = "as modes = ('push', 'let go')"


def refuse_phases(name: str, law: Law) -> None:
    """Refuse phases that have no names, or the same, and a law that would change phases and has none.

    >>> from cstormpy.control.law import Off
    >>> law = Off("acrobot")
    >>> law.modes = "push"
    >>> refuse_phases("mine", law)
    Traceback (most recent call last):
    cstormpy.errors.InvalidType: law 'mine': modes: expected names of phases, as modes = ('push', 'let go'), got 'push'
    """
    modes: Any = law.modes
    if isinstance(modes, str) or not isinstance(modes, Sequence) or not all(isinstance(m, str) for m in modes):
        raise InvalidType(f"law {name!r}: modes: expected names of phases, {_EXAMPLE}, got {shown(modes)}")
    if not modes or len(set(modes)) < len(modes):
        raise InvalidValue(f"law {name!r}: modes: expected different names of phases, {_EXAMPLE}, got {shown(modes)}")
    kind = type(law)
    changes = [each for each in ("margin", "switch") if getattr(kind, each) is not getattr(Law, each)]
    if changes and len(modes) == 1:
        raise InvalidValue(
            f"law {name!r}: {kind.__name__} has {' and '.join(changes)}, which are of a law with phases; name those, "
            f"{_EXAMPLE}"
        )
    if len(changes) == 1:
        raise InvalidValue(
            f"law {name!r}: {kind.__name__} has {changes[0]} alone, and never changes its phase; where "
            "margin(self, t, q, qd) falls below zero, switch(self, t, q, qd) sets self.mode"
        )
    refuse_mode(name, law, law.mode)


def refuse_mode(name: str, law: Law, before: int) -> None:
    """Refuse a mode that is the number of no phase of a law, which is left in the one before.

    One as a float, or a bool, of NumPy too, becomes a whole number.
    """
    mode: Any = law.mode
    value = np.asarray(mode) if is_single(mode) else np.empty(0)
    number = int(value) if value.dtype.kind in "biuf" and value.ndim == 0 and abs(value) < len(law.modes) else -1
    if number < 0 or number != value:
        law.mode = before
        known = " or ".join(f"{k} ({phase})" if phase else f"{k}" for k, phase in enumerate(law.modes))
        raise InvalidValue(f"law {name!r}: mode: expected the number of its phase, {known}, got {shown(mode)}")
    law.mode = number


def refuse_margin(name: str, law: Law, t: float, q: Array, qd: Array) -> None:
    """Refuse a margin that is not one number."""
    margin: Any = law.left(t, q, qd)
    what = f"law {name!r}: margin"
    if not is_single(margin):
        raise InvalidType(f"{what}: expected one number, got {shown(margin)}; take one of them, as their least")
    if isinstance(margin, (str, bytes)) or np.iscomplexobj(margin):
        raise InvalidType(f"{what}: expected a number, got {shown(margin)}")
    if np.isnan(margin):
        raise NonFinite(f"{what}: is not a number at t = {t:.9g}")
