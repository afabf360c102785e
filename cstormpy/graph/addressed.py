"""Functions that stand for another at an address: marked here, and called by what `loops` writes down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def at_address(function: Callable[..., Any], signature: str) -> None:
    """Have a function stand for the one at the address that is its first argument; of numba's signature."""
    function._at_address = signature  # type: ignore[attr-defined]
