"""Compiler and cache of the kernels: `entry` for what Python calls, made of `steps`.

Steps become machine code within the entries that use them and nowhere else, so that none is compiled twice.
Entries are compiled at their first use and kept on disk, a file for each, in a folder that nobody else can write to,
because what is read there runs. numba's own ``cache=True`` does not notice a change in a function of another file, so
the folder of the files bears a digest of all kernel sources and of the versions that shape machine code: another
source, another folder. Processes that start together wait for the one that compiles.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import pickle
import platform
import re
import shutil
import time
from importlib import import_module
from pathlib import Path
from types import FunctionType

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba.core import caching, cgutils, sigutils, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.serialize import dumps
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype

from cstormpy.cache_folder import root, say_not_kept
from cstormpy.file_writer import write_bytes
from cstormpy.kernels.entries import Entry, all_entries, entry
from cstormpy.private_folder import FILE_MODE, check_private, make_private, read_private
from cstormpy.reporting import notice_once

__all__ = [
    "Entry",
    "address_in_c",
    "address_of",
    "caller_at",
    "can_keep",
    "compiled_entry",
    "entry",
    "is_kept",
    "machine_form",
    "ready",
    "wait_silently",
    "warmup",
]

#: ``contract`` allows fused multiply-add and nothing else: NaN and the order of sums stay meaningful.
_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy", "boundscheck": False}

#: Nothing that changes the rounding: for steps that are to be those of the interpreted engine.
_EXACT = {"error_model": "numpy", "boundscheck": False}

_PIECE_OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def machine_form(function):
    """Return what numba compiles of a step: a copy of it that calls what numba compiles of the others.

    Nothing is compiled before an entry asks for it.
    """
    made = function.__dict__.get("_compiled")
    if made is None:
        import_module("cstormpy.kernels.lanes_compiled")
        options, compiler = {"fused": (_OPTIONS, _StepCompiler), "exact": (_EXACT, _ExactStepCompiler)}[function._step]
        inlined = {"forceinline": True} if function._step == "fused" else {}
        plain = getattr(function, "_numeric", function)
        counted = {"_nrt": getattr(plain, "_returns_arrays", True)}
        piece = numba.njit(**options, **_PIECE_OPTIONS, **counted, **inlined, pipeline_class=compiler)
        made = piece(_among_compiled(plain))
        made.get_call_template = functools.partial(_call_of_any_number, made)
        function._compiled = made
    return made


def _call_of_any_number(step, given, named):
    """Return what numba asks of a step that is called: one code for all numbers, not another for each literal.

    It is inlined, and the entry's optimiser simplifies it for the literals.
    """
    named = {name: types.unliteral(kind) for name, kind in named.items()}
    return type(step).get_call_template(step, [types.unliteral(kind) for kind in given], named)


def ready(found):
    """Return what compiled code may call of an entry, a step, or anything else."""
    if isinstance(found, Entry):
        return found.load()
    return machine_form(found) if hasattr(found, "_step") and not numba.config.DISABLE_JIT else found


_spaces: dict[str, dict[str, object]] = {}


def _among_compiled(function):
    """Return a copy of a function whose module's steps are those that numba compiles."""
    names = function.__globals__
    space = _spaces.get(names["__name__"])
    if space is None:
        space = _spaces[names["__name__"]] = dict(names)
        for name, value in names.items():
            if hasattr(value, "_step"):
                space[name] = machine_form(value)
            elif hasattr(value, "_at_address"):
                space[name] = caller_at(value._at_address)
    copy = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return copy


def caller_at(signature):
    """Return ``call(address, *arguments)``, which calls the function of C that stands where `address_of` says.

    It takes numbers and, of arrays, where their data stand. A function that is handed to a kernel as itself would cost
    60 us a call, whatever the kernel does with it.
    """
    if numba.config.DISABLE_JIT:
        return lambda function, *arguments: function(*arguments)
    arguments, result = sigutils.normalize_signature(signature)

    @intrinsic
    def call(typing_context, address, *given):
        def generate(context, builder, signature, values):
            address, values = values[0], cgutils.unpack_tuple(builder, values[1])
            given = [_as_in_c(context, builder, a, v) for a, v in zip(arguments, values, strict=True)]
            kind = ir.FunctionType(context.get_value_type(result), [v.type for v in given]).as_pointer()
            return builder.call(builder.inttoptr(address, kind), given)

        return result(types.intp, types.Tuple(arguments)), generate

    return call


def _as_in_c(context, builder, kind, value):
    """Return a number as it is, and of an array where its data stand."""
    return context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value


def address_of(function):
    """Return where a function of C begins, as `caller_at` wants it: an integer, which its `address` is."""
    return function if numba.config.DISABLE_JIT else function.address


def address_in_c(dispatcher, signature):
    """Return where the form of a compiled function begins that C calls; it holds as long as the function lives.

    `signature` has numbers and pointers only.
    """
    arguments, result = sigutils.normalize_signature(signature)
    found = dispatcher.get_compile_result(result(*arguments))
    return found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)


def compiled_entry(made):
    """Return the compiled function of an entry, read from disk if it is there; of one of C that is its address."""
    if numba.config.DISABLE_JIT:
        return _callback(made) if made.of_c else _strict(made.function, made.signature)
    import_module("cstormpy.kernels.lanes_compiled")
    options = {**(_EXACT if made.exact else _OPTIONS), "nogil": made.nogil}
    # numba makes arrays of pointers only where it counts references
    dispatcher = numba.njit(**options, _nrt=made.of_c)(_among_compiled(made.function))
    with _Kept(made.kept_as) as kept:
        dispatcher._cache = kept
        dispatcher.compile(made.signature)
    dispatcher.disable_compile()
    return (dispatcher, address_in_c(dispatcher, made.signature)) if made.of_c else dispatcher


def _callback(made):
    """Return a function of C that calls the function of an entry as it is, and where that begins."""
    arguments, _ = sigutils.normalize_signature(made.signature)
    kinds = {types.float64: ctypes.c_double, types.int64: ctypes.c_int64}
    pointers = [ctypes.POINTER(kinds[kind.dtype]) for kind in arguments]
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, *pointers)(made.function)
    return callback, ctypes.cast(callback, ctypes.c_void_p).value


def _strict(function, signature):
    """Return a function that runs uncompiled as if compiled: as choosy about arrays, as silent about overflow."""
    kinds = [
        (k, as_dtype(kind.dtype), kind.ndim)
        for k, kind in enumerate(sigutils.normalize_signature(signature)[0])
        if isinstance(kind, types.Array)
    ]

    def refuse_or_run(*arguments):
        for k, dtype, ndim in kinds:
            array = arguments[k]
            if type(array) is not np.ndarray or array.dtype != dtype or array.ndim != ndim or not array.flags.carray:
                raise TypeError(f"{function.__name__}: argument {k} is not a C array of {dtype} with {ndim} dimensions")
        with np.errstate(all="ignore"):
            return function(*arguments)

    return refuse_or_run


def warmup(report=None):
    """Compile every kernel that is not on disk yet, with all processors; return how many seconds that took.

    ``report`` is called with the name of each kernel once it is ready.
    """
    from cstormpy.kernels.compile_processes import compile_beside, processors

    begin = time.perf_counter()
    entries = all_entries()
    names, others = [made.kept_as for made in entries], min(processors(), 4) - 1
    # each begins elsewhere, and finds on disk what the others have done by the time it comes there
    starts = [len(names) * (k + 1) // (others + 1) for k in range(others)]
    compile_beside(*((*names[first:], *names[:first]) for first in starts))
    for made in entries:
        made.load()
        if report is not None:
            report(made.name)
    return time.perf_counter() - begin


# Steps without machine code of their own ---------------------------------------------------------------


class _StepLibrary(JITCodeLibrary):
    """The intermediate code of a step: optimised, to be linked into others, but never turned into machine code."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Return what Python runs if it calls the step: the closure that numba makes of it, which refuses to be."""
        self._ensure_finalized()
        return ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value

    @property
    def codegen(self):
        return self

    def set_env(self, name, environment):
        """Do nothing: the variable to be set is part of the machine code."""


class _ExactStepLibrary(_StepLibrary):
    """The same, left to the entry to optimise: large steps that call one another are not optimised again and again.

    The steps of `steps.step` are optimised: left to the entry as well, the dynamics of a tree of 36 links become slower
    by a tenth (``pytest tests/benchmarks/test_dynamics_speed.py -k one_call``).
    """

    def _optimize_final_module(self):
        pass


class _StepCompiler(Compiler):
    """numba's compiler, but for the place where it puts its result."""

    library = _StepLibrary

    def define_pipelines(self):
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class _ExactStepCompiler(_StepCompiler):
    library = _ExactStepLibrary


# Where compiled kernels are kept ----------------------------------------------------------------------

_FOLDER = re.compile(r"kernels-[0-9a-f]{20}")
_FOLDERS_KEPT = 4
#: Seconds without use after which a folder may be removed: whoever switches between versions keeps them all.
_OUT_OF_USE = 7 * 24 * 3600.0
#: Seconds to wait for another process before compiling the same kernel beside it.
_PATIENCE = 300.0
#: Settings of numba, from the environment as a rule, that change the machine code of the same source.
_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "USING_SVML")


def _digest():
    """Return a digest of the sources of all kernels and of the versions that shape machine code."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    if not sources:
        return None
    digest = hashlib.sha256()
    for version in (numba.__version__, llvmlite.__version__, platform.python_version(), platform.machine()):
        digest.update(version.encode() + b"\0")
    for source in sources:
        digest.update(source.name.encode() + b"\0" + hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:20]


#: Taken now and not at the first compile, when the sources may have become others than those imported.
_IMPORTED = _digest()


def cache_folder():
    """Return the folder in which these sources' kernels are kept; OSError if this user has no such place."""
    return root() / f"kernels-{_IMPORTED}"


def checked_folder():
    """Return where the folder really is, which need not exist; OSError where others may write to it."""
    check_private(root())
    return check_private(cache_folder())


def can_keep():
    """Tell whether kernels that are compiled now can be kept on disk."""
    try:
        folder = checked_folder()
        _make_folder(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK) and _digest() == _IMPORTED


def is_kept(name):
    """Tell whether code of a name, as that of a diagram, is on disk for these sources: no more than a glance."""
    try:
        return any(checked_folder().glob(f"{name}-*.kernel"))
    except OSError:
        return False


class _Kept(contextlib.AbstractContextManager, caching.NullCache):
    """The file of one kernel: numba asks it before it compiles, and hands it what it has compiled.

    While one process compiles, within the ``with`` block, others that want the same kernel wait.
    """

    def __init__(self, name):
        self._name = name
        self._path = None
        self._lock = None

    def load_overload(self, sig, target_context):
        target_context.refresh()
        found = None
        try:
            self._path = self._place(target_context.codegen().magic_tuple())
            found = self._read(target_context)
            if found is None:
                _make_folder(self._path.parent)
                self._lock = _Lock(self._path.with_suffix(".lock"), self._name not in _expected)
                found = self._read(target_context)
        except OSError as error:
            self._path = None
            say_not_kept(error)
        else:
            if found is None:
                notice_once(f"compiling kernels (some seconds each), to be kept in {self._path.parent.parent}")
        return found

    def save_overload(self, sig, data):
        if self._path is None or data.library.has_dynamic_globals:
            return
        content = dumps(data._reduce())
        try:
            write_bytes(self._path, hashlib.sha256(content).digest() + content, durable=False, mode=FILE_MODE)
        except OSError as error:
            say_not_kept(error)

    def __exit__(self, *exc):
        if self._lock is not None:
            self._lock.release()

    def _place(self, processor):
        """Return where this kernel stands for a processor and numba's present settings."""
        if _IMPORTED is None:
            raise OSError("their source files are not there to tell old from new")
        if _digest() != _IMPORTED:
            raise OSError("their sources have changed since they were imported")
        settings = [getattr(numba.config, name, None) for name in _SETTINGS]
        key = hashlib.sha256(repr((processor, settings)).encode()).hexdigest()[:12]
        return checked_folder() / f"{self._name}-{key}.kernel"

    def _read(self, target_context):
        """Return the kernel from its file; None if there is none, or not as it was written."""
        content = read_private(self._path)
        if content is None or hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        with contextlib.suppress(OSError):
            os.utime(self._path.parent)
        return CompileResult._rebuild(target_context, *pickle.loads(content[32:]))


def _make_folder(folder):
    if make_private(folder):
        _remove_old_folders(folder)


def _remove_old_folders(current):
    """Remove folders of other sources that nobody has used for long, but for the last few."""
    with contextlib.suppress(OSError):  # another process may be doing the same
        others = [f for f in current.parent.iterdir() if _FOLDER.fullmatch(f.name) and f != current]
        last_use = {folder: folder.stat().st_mtime for folder in others}
        for folder in sorted(others, key=last_use.__getitem__, reverse=True)[_FOLDERS_KEPT - 1 :]:
            if last_use[folder] < time.time() - _OUT_OF_USE:
                shutil.rmtree(folder, ignore_errors=True)


#: Kernels that another process compiles for this one, as `Entry.kept_as`: to wait for these is not announced.
_expected: set[str] = set()


def wait_silently(names):
    """Say no longer that another process compiles some kernels: this one has started it."""
    _expected.update(names)


class _Lock:
    """Held by one process at a time, and let go when that process ends, however it ends."""

    def __init__(self, path, announce=True):
        self._announce = announce
        self._file = path.open("a")
        try:
            import fcntl
        except ImportError:  # on Windows two processes may compile the same, which costs time and no more
            return
        self._flock, self._free = fcntl.flock, fcntl.LOCK_UN
        self._wait(fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _wait(self, exclusively):
        end = time.monotonic() + _PATIENCE
        with contextlib.suppress(OSError):  # a file system that knows no locks
            while time.monotonic() < end:
                try:
                    return self._flock(self._file, exclusively)
                except BlockingIOError:
                    if self._announce:
                        notice_once("another process is compiling kernels: waiting for it")
                    time.sleep(0.05)

    def release(self):
        with contextlib.suppress(OSError, AttributeError):
            # not by closing alone: a process that was forked meanwhile holds the file open as well
            self._flock(self._file, self._free)
        self._file.close()
