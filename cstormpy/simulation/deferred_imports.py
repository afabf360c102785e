"""Imports that are deferred until somebody touches the module: what bdsim imports for plots, filters and splines.

bdsim, and spatialmath on which it is built, import matplotlib and most of scipy when they are loaded, which takes
longer than a run, and which no run without plots needs. So does scipy, where a law asks it for linear algebra, take all
of numpy into a namespace of its own, with numpy's reader of Fortran and its tools for tests. Within `deferred` an
import of these puts a module in place that is loaded when one of its attributes is looked at, from whatever thread;
from then on it is a module as any other.
A class that is imported by name is stood in for until then: calling it, asking it for anything, or deriving from it
loads it. Afterwards imports are as they were.

Where another version of bdsim imports something else by name, the module is loaded at once, as it would have been.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

#: The modules that are imported and rarely used, and the classes of each that are imported by name.
DEFERRED: Mapping[str, frozenset[str]] = {
    "matplotlib": frozenset(),
    "matplotlib.animation": frozenset(),
    "matplotlib.axes": frozenset({"Axes"}),
    "matplotlib.backend_tools": frozenset({"ToolToggleBase"}),
    "matplotlib.colors": frozenset(),
    "matplotlib.figure": frozenset(),
    "matplotlib.patches": frozenset({"Circle", "PathPatch"}),
    "matplotlib.path": frozenset({"Path"}),
    "matplotlib.pyplot": frozenset(),
    "matplotlib.transforms": frozenset({"Affine2D"}),
    "mpl_toolkits.mplot3d": frozenset({"Axes3D"}),
    "mpl_toolkits.mplot3d.art3d": frozenset({"Line3DCollection", "Poly3DCollection", "pathpatch_2d_to_3d"}),
    "numpy.f2py": frozenset(),
    "numpy.testing": frozenset(),
    "scipy.integrate": frozenset(),
    "scipy.interpolate": frozenset({"BSpline", "CubicSpline", "interp1d"}),
    "scipy.linalg": frozenset(),
    "scipy.signal": frozenset(),
    "scipy.spatial": frozenset(),
    "scipy.spatial.transform": frozenset({"Rotation", "RotationSpline"}),
}

#: The packages that import by name, in whose modules the classes take the place of what stood in for them.
_IMPORTING = ("bdsim", "spatialmath")
#: What is known of a module before it is executed, at which the import system and whoever goes through all look.
_KNOWN_BEFORE = frozenset({"__cached__", "__class__", "__file__", "__loader__", "__name__", "__package__", "__spec__"})
#: What is asked of any module and few have: by the import system, and by PySide6, which reads the source of each module
#: that is imported after it.
_ASKED_OF_ANY = ("__path__", "__wrapped__")
#: Seconds after which a thread goes on with a module that another one is loading, as Python does at a deadlock.
_PATIENCE = 20.0


@contextmanager
def deferred(modules: Mapping[str, frozenset[str]] = DEFERRED) -> Iterator[None]:
    """Defer the first import of some modules within the ``with`` block until they are used."""
    finder = _Finder(modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.is_open = False
        sys.meta_path.remove(finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are deferred, as the finders behind it do, with a loader that waits.

    Attributes
    ----------
    modules : mapping of str to set of str
    is_open : bool
        Whether the ``with`` block still lasts: only then an import by name is stood in for.
    """

    def __init__(self, modules: Mapping[str, frozenset[str]]) -> None:
        self.modules = modules
        self.is_open = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.modules:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Puts a module in place, and leaves it to be executed when it is touched."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._loader, self._finder = loader, finder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self._loader
        spec.loader_state = _Waiting(self._finder)
        module.__class__ = _DeferredModule


class _Waiting:
    """The state of a module that is not executed yet."""

    def __init__(self, finder: _Finder) -> None:
        self.finder = finder
        self.lock = threading.RLock()
        self.is_loading = False
        self.stand_ins: dict[str, _StandIn] = {}


class _DeferredModule(ModuleType):
    """A module that is executed when an attribute of it is looked at, set or removed."""

    def __getattribute__(self, name: str) -> Any:
        if name not in _KNOWN_BEFORE:
            found = _without_loading(self, name)
            if found is not None:
                return found
            _load(self)
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> Any:
        _load(self)
        return dir(self)

    def __setattr__(self, name: str, value: Any) -> None:
        spec = object.__getattribute__(self, "__spec__")
        importing = isinstance(spec.loader_state, _Waiting) and spec.loader_state.finder.is_open
        if not importing and name not in _KNOWN_BEFORE:  # else it is a module within this one, which is found later
            _load(self)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _load(self)
        ModuleType.__delattr__(self, name)


def _without_loading(module: ModuleType, name: str) -> Any:
    """Return what an import that is deferred itself is given of a module; None where it is to be loaded."""
    spec = object.__getattribute__(module, "__spec__")
    state = spec.loader_state
    if not isinstance(state, _Waiting) or state.is_loading or not state.finder.is_open:
        return None
    held = object.__getattribute__(module, "__dict__")
    if name == "__dict__":  # by whoever reads its source
        return held
    if name in held:
        return held[name]
    if name in _ASKED_OF_ANY:
        raise AttributeError(f"module {spec.name!r} has no attribute {name!r}", name=name, obj=module)
    if f"{spec.name}.{name}" in state.finder.modules:
        return importlib.import_module(f"{spec.name}.{name}")
    if name in state.finder.modules[spec.name]:
        return state.stand_ins.setdefault(name, _StandIn(module, name))
    return None


def _load(module: ModuleType) -> None:
    """Execute a deferred module, once; in a thread that does so already it is as far as it has come."""
    spec = object.__getattribute__(module, "__spec__")
    state = spec.loader_state
    if not isinstance(state, _Waiting):
        return
    parent = sys.modules.get(spec.name.rpartition(".")[0])
    if isinstance(parent, _DeferredModule):
        _load(parent)
    held = state.lock.acquire(timeout=_PATIENCE)
    try:
        if state.is_loading or spec.loader_state is not state:
            return
        state.is_loading = True
        try:
            spec.loader.exec_module(module)
        except BaseException:
            state.is_loading = False
            raise
        spec.loader_state = None
        module.__class__ = ModuleType
        _replace(state.stand_ins, module)
    finally:
        if held:
            state.lock.release()


def _replace(stand_ins: Mapping[str, _StandIn], module: ModuleType) -> None:
    """Put the classes of a module that is loaded now where something stands in for them."""
    for importing in list(sys.modules.values()):
        if str(getattr(importing, "__name__", "")).partition(".")[0] in _IMPORTING:
            held = vars(importing)
            for name, stand_in in stand_ins.items():
                for key in [key for key, value in held.items() if value is stand_in]:
                    held[key] = getattr(module, name)


class _StandIn:
    """A class or function of a deferred module, which is loaded when this is used."""

    def __init__(self, module: ModuleType, name: str) -> None:
        object.__setattr__(self, "_home", (module, name))

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _real(self)(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(_real(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_real(self), name, value)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (_real(self),)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, _real(self))

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, _real(self))

    def __or__(self, other: Any) -> Any:
        return _real(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | _real(self)

    def __repr__(self) -> str:
        return repr(_real(self))


def _real(stand_in: _StandIn) -> Any:
    module, name = object.__getattribute__(stand_in, "_home")
    _load(module)
    return getattr(module, name)
