"""Names of ports and states that users give, as bdsim writes them."""

from __future__ import annotations

import warnings
from typing import Any

from bdsim.components import _fixname

from cstormpy.errors import InvalidType, InvalidValue, shown


def given_names(value: Any, key: str, count: int) -> list[str]:
    """Return names of ports or states that a user gave, so many, as bdsim writes them."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name for name in value):
        raise InvalidType(f"{key}: expected a list of names, got {shown(value)}")
    if len(value) != count:
        raise InvalidValue(f"{key}: expected {count} name{'s'[: count != 1]}, got {len(value)}")
    names = [as_bdsim_writes(name) for name in value]
    if len(set(names)) < len(names) or not all(names):
        raise InvalidValue(f"{key}: a name is empty or occurs twice in {', '.join(names)}")
    return names


def as_bdsim_writes(name: str) -> str:
    r"""Return a name without the characters that bdsim takes out of it, $ \ { } ^, and normalised as Python does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(_fixname(name))
