"""Widgets and layouts made with their properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["make"]

Made = TypeVar("Made")


def make(kind: Callable[..., Made], *arguments: Any, **properties: Any) -> Made:
    """Return a widget or layout with these properties and handlers of signals, which PySide's stubs do not know."""
    return kind(*arguments, **properties)
