"""Recursive hybrid dynamics of branched mechanisms and its exact sensitivities.

The names below are imported when they are first used, so that ``import cstormpy`` is quick and loads
neither numba nor scipy nor anything that draws.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from cstormpy import comparison as comparison
    from cstormpy import control as control
    from cstormpy import dynamics as dynamics
    from cstormpy import errors as errors
    from cstormpy import formulations as formulations
    from cstormpy import gym as gym
    from cstormpy import identification as identification
    from cstormpy import lie as lie
    from cstormpy import measures as measures
    from cstormpy import mechanism as mechanism
    from cstormpy import optimal as optimal
    from cstormpy import sensitivity as sensitivity
    from cstormpy import simulation as simulation
    from cstormpy import trajectory as trajectory
    from cstormpy.comparison import Comparison as Comparison
    from cstormpy.comparison import compare as compare
    from cstormpy.errors import BlockError as BlockError
    from cstormpy.errors import CstormError as CstormError
    from cstormpy.errors import DiagramError as DiagramError
    from cstormpy.errors import FileFormatError as FileFormatError
    from cstormpy.errors import FileReadError as FileReadError
    from cstormpy.errors import FileWriteError as FileWriteError
    from cstormpy.errors import InvalidType as InvalidType
    from cstormpy.errors import InvalidValue as InvalidValue
    from cstormpy.errors import NonFinite as NonFinite
    from cstormpy.errors import ShapeError as ShapeError
    from cstormpy.errors import SingularInertia as SingularInertia
    from cstormpy.errors import UnknownName as UnknownName
    from cstormpy.identification import Identification as Identification
    from cstormpy.identification import identify as identify
    from cstormpy.kernels.compiling import warmup as warmup
    from cstormpy.loading import load as load
    from cstormpy.mechanism import Composite as Composite
    from cstormpy.mechanism import Constraint as Constraint
    from cstormpy.mechanism import Coupling as Coupling
    from cstormpy.mechanism import Fixed as Fixed
    from cstormpy.mechanism import Free as Free
    from cstormpy.mechanism import Joint as Joint
    from cstormpy.mechanism import Limits as Limits
    from cstormpy.mechanism import Link as Link
    from cstormpy.mechanism import Load as Load
    from cstormpy.mechanism import Loop as Loop
    from cstormpy.mechanism import Mechanism as Mechanism
    from cstormpy.mechanism import Planar as Planar
    from cstormpy.mechanism import Prismatic as Prismatic
    from cstormpy.mechanism import Revolute as Revolute
    from cstormpy.mechanism import Screw as Screw
    from cstormpy.mechanism import Shape as Shape
    from cstormpy.mechanism import Spherical as Spherical
    from cstormpy.mechanism import Translational as Translational
    from cstormpy.mechanism import Universal as Universal
    from cstormpy.mechanism import library as library
    from cstormpy.optimal import exciting_motion as exciting_motion
    from cstormpy.report.animation import animate as animate
    from cstormpy.simulation import Simulation as Simulation
    from cstormpy.simulation.sweep import Sweep as Sweep
    from cstormpy.simulation.tableaus import Tableau as Tableau
    from cstormpy.trajectory import BSpline as BSpline
    from cstormpy.trajectory import ControlPointMap as ControlPointMap
    from cstormpy.trajectory import EndConditions as EndConditions
    from cstormpy.trajectory import clamped_knots as clamped_knots
    from cstormpy.trajectory import cubic as cubic
    from cstormpy.trajectory import minimum_jerk as minimum_jerk
    from cstormpy.trajectory import quintic as quintic
    from cstormpy.trajectory import septic as septic
    from cstormpy.trajectory import uniform_knots as uniform_knots

__version__ = "0.1.0"

#: The public names of each module that has some. A new name stands here, and under TYPE_CHECKING.
_NAMES = {
    "comparison": "Comparison compare",
    "errors": (
        "BlockError CstormError DiagramError FileFormatError FileReadError FileWriteError InvalidType InvalidValue "
        "NonFinite ShapeError SingularInertia UnknownName"
    ),
    "identification": "Identification identify",
    "kernels.compiling": "warmup",
    "loading": "load",
    "mechanism": (
        "Composite Constraint Coupling Fixed Free Joint Limits Link Load Loop Mechanism Planar Prismatic Revolute "
        "Screw Shape Spherical Translational Universal library"
    ),
    "optimal": "exciting_motion",
    "report.animation": "animate",
    "simulation": "Simulation",
    "simulation.sweep": "Sweep",
    "simulation.tableaus": "Tableau",
    "trajectory": "BSpline ControlPointMap EndConditions clamped_knots cubic minimum_jerk quintic septic uniform_knots",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

_SUBMODULES = (
    "blocks",
    "comparison",
    "control",
    "diagrams",
    "dynamics",
    "errors",
    "formulations",
    "gym",
    "identification",
    "lie",
    "measures",
    "mechanism",
    "optimal",
    "sensitivity",
    "simulation",
    "trajectory",
)

#: What stands beside this package in a checkout, and inside it once it is installed.
_BESIDE = ("blocks", "diagrams")

__all__ = sorted([*_HOMES, *_SUBMODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        # With the name and the module at hand Python offers the nearest spelling in its traceback.
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _CheckoutFinder:
    """Finds cstormpy.blocks and cstormpy.diagrams beside the package, and nothing else there.

    Extending ``__path__`` instead would make everything in the checkout a part of the package
    (``cstormpy.tests``). Pickles, reloads and new processes need nothing more: importing any
    ``cstormpy.blocks.x`` imports ``cstormpy`` first.
    """

    package = __name__

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if parent != cls.package or name not in _BESIDE:
            return None
        from importlib.util import spec_from_file_location

        for entry in path or ():
            root = os.path.dirname(entry)
            source = os.path.join(root, name, "__init__.py")
            if os.path.isfile(source) and os.path.isfile(os.path.join(root, "pyproject.toml")):
                return spec_from_file_location(fullname, source, submodule_search_locations=[os.path.dirname(source)])
        return None


def _serve_blocks() -> None:
    """Make the blocks importable in a checkout, and known to bdsim where the package is installed.

    bdsim looks for blocks in the packages that BDSIMPATH names, and keeps what the first ``BDSim()`` found.
    """
    if not os.path.isdir(os.path.join(__path__[0], _BESIDE[0])):
        if not any(getattr(finder, "package", None) == __name__ for finder in sys.meta_path):
            sys.meta_path.append(_CheckoutFinder)
        return
    named = [name for name in os.environ.get("BDSIMPATH", "").split(":") if name]
    if __name__ not in named:
        os.environ["BDSIMPATH"] = ":".join([*named, __name__])
        bdsim = sys.modules.get("bdsim.run_sim")
        library = bdsim.BDSim._blocklibrary if bdsim is not None else None
        if library is not None:  # it has looked already, and will not again
            from cstormpy.simulation.palette import our_blocks

            for block, entry in our_blocks().items():
                library.setdefault(block, dict(entry))


_serve_blocks()
