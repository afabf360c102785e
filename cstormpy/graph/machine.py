"""Machine code by LLVM: compiled from a module's text, or taken as it was kept on disk."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from typing import Any

#: Of the optimisation passes: level 2 brings straight lines nothing and costs building time (measured).
_LEVEL = 1

#: A module whose text begins so is compiled without LLVM's passes: what it loads and when is part of its plan.
AS_IT_IS = "; as it is\n"

_lock = threading.Lock()  # LLVM's parser and passes share a context


@functools.cache
def _llvm() -> Any:
    """Return llvmlite's binding, ready to make code for this processor, and knowing the C library's functions."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in _library_functions():
        llvm.add_symbol(name, address)
    return llvm


def _library_functions() -> list[tuple[str, int]]:
    """Return name and address of each function, of the C library and of Python's, that a module may call."""
    import sys
    from ctypes.util import find_library

    from cstormpy.graph.primitives import TABLE

    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else find_library("m") or None)
    found = []
    for name in (*TABLE, "pow", "nextafter"):
        function = getattr(library, name, None)
        if function is not None and name not in ("abs", "div"):
            found.append((name, ctypes.cast(function, ctypes.c_void_p).value or 0))
    for name in (
        "PyDict_GetItem",
        "PyList_GetItem",
        "PyList_Size",
        "PyObject_GenericGetDict",
        "Py_DecRef",
        "PyLong_FromLongLong",
        "PyLong_AsLongLong",
        "PyEval_SaveThread",
        "PyEval_RestoreThread",
    ):
        found.append((name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0))
    return found


@functools.cache
def fingerprint() -> str:
    """Return what code depends on beside its text: the processor and the version of LLVM."""
    import llvmlite

    llvm = _llvm()
    target = llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return hashlib.sha256(repr((llvmlite.__version__, llvm.llvm_version_info, target, _LEVEL)).encode()).hexdigest()[
        :16
    ]


@functools.cache
def _target() -> tuple[Any, dict[str, str]]:
    """Return the target of this machine, and the name and the features of its processor."""
    llvm = _llvm()
    processor = {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}
    return llvm.Target.from_default_triple(), processor


@functools.cache
def _target_machine() -> Any:
    target, processor = _target()
    return target.create_target_machine(**processor, opt=_LEVEL)


@functools.cache
def has_vectors_of_eight() -> bool:
    """Tell whether the registers of this processor hold eight float64."""
    return bool(_llvm().get_host_cpu_features().get("avx512f", False))


class Machine:
    """The machine code of one module, alive as long as this object.

    Parameters
    ----------
    text : str, optional
        The module's functions, to be compiled.
    code : bytes, optional
        The object code of a module compiled before, by a process with the same `fingerprint`; in place of the text.
    quick : bool
        Whether registers are chosen quickly and not well. Choosing them well takes time that grows with the square of
        how many values wait for one another: in a diagram of long vectors, all (measured: 8 s for five of 700).
    unrolled : bool
        Whether loops do several rounds in one: more code, which pays where they have many rounds (measured: half of
        the time in which the steps of a run are compiled, and nothing won by it).

    Attributes
    ----------
    code : bytes
        The object code: machine instructions and numbers, in the format of the system's own object files.
    """

    def __init__(self, text: str = "", code: bytes = b"", quick: bool = False, unrolled: bool = True) -> None:
        llvm = _llvm()
        with _lock:
            # the name tells one module from another where both are in memory
            module = llvm.parse_assembly(text or "; kept")
            module.name = hashlib.sha256(text.encode() or code).hexdigest()[:16]
            given: list[bytes] = []
            made: list[bytes] = []

            def give(_: Any) -> bytes | None:
                given.append(code)
                return code or None

            if text and not text.startswith(AS_IT_IS):
                self._optimise(module, unrolled)
            self._engine = llvm.create_mcjit_compiler(module, _own_machine(0 if quick else _LEVEL))
            self._engine.set_object_cache(lambda _, buffer: made.append(bytes(buffer)), give)
            self._engine.finalize_object()
        if not given or bool(code) == bool(made):  # what is raised in a callback is lost on the way through C
            raise KeyboardInterrupt
        self.code = code or made[0]

    @staticmethod
    def _optimise(module: Any, unrolled: bool) -> None:
        llvm = _llvm()
        options = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
        options.loop_unrolling = unrolled
        passes = llvm.create_pass_builder(_target_machine(), options)
        passes.getModulePassManager().run(module, passes)

    def address(self, name: str) -> int:
        """Return where a function begins."""
        place = int(self._engine.get_function_address(name))
        if place == 0:
            raise LookupError(name)
        return place


def _own_machine(level: int) -> Any:
    """Return a target machine for an engine, which takes it over."""
    target, processor = _target()
    return target.create_target_machine(**processor, opt=level, jit=True)
