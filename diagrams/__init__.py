"""Ready diagrams: each module offers ``build(sim, **options)``, which returns a wired diagram.

``names()`` lists them, ``load(name)`` returns a module, ``options(name)`` what its ``build`` takes. Where a diagram is
to reach an equilibrium, its attribute ``goal`` says which; where the usual 10 s do not suit it, ``duration`` says how
long a run is to be [s], and ``pace`` how many times real time a live window is to show it.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any

from cstormpy.arguments import option
from cstormpy.diagrams._goal import Goal

__all__ = ["Goal", "load", "names", "options"]


def names() -> tuple[str, ...]:
    """Return the names of the ready diagrams.

    >>> "acrobot" in names()
    True
    """
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")))


def load(name: str) -> ModuleType:
    """Return the module of a ready diagram.

    Raises
    ------
    UnknownName
        With the nearest spelling.

    Examples
    --------
    >>> load("pendulum").build.__name__
    'build'
    """
    return import_module(f"{__name__}.{option(name, 'diagram', names())}")


def options(name: str) -> dict[str, Any]:
    """Return the options of a ready diagram by name, each with its default.

    >>> options("pendulum")["rods"]
    1
    """
    parameters = list(inspect.signature(load(name).build).parameters.values())
    return {parameter.name: parameter.default for parameter in parameters[1:]}
