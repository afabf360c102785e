"""How kernels are compiled and kept: `step` for the pieces, `entry` for what Python calls.

Entries are compiled at their first use and kept on disk. numba's own ``cache=True`` does not notice a
change in a function of another file, so the folder of the disk cache bears a digest of all kernel
sources and of the versions that shape machine code: another source, another folder. Processes that
start together wait for the one that compiles instead of compiling the same again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import sys
import time
from pathlib import Path

import llvmlite
import numba
from numba.core import caching, sigutils

from cstormpy.reporting import notice

#: ``contract`` allows fused multiply-add and nothing else: NaN and the order of sums stay meaningful.
_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy", "boundscheck": False}
_FOLDERS_KEPT = 4

_entries: list[Entry] = []


def step(function):
    """Compile a piece of a kernel, always inlined into the entry that uses it."""
    return numba.njit(**_OPTIONS, forceinline=True)(function)


def entry(signature, *, nogil=False):
    """Make a function of one signature that is compiled at first use, from the disk cache if it is there.

    ``nogil`` lets other threads run meanwhile; without it the scratch memory may be shared, because the
    interpreter lock is held throughout the call.
    """

    def decorate(function):
        made = Entry(function, signature, nogil)
        _entries.append(made)
        return made

    return decorate


class Entry:
    """A kernel that Python calls: `load` returns it ready to run."""

    def __init__(self, function, signature, nogil):
        self.name = function.__name__
        self._function = function
        self._signature = signature
        self._nogil = nogil
        self._ready = None

    def load(self):
        """Return the compiled function; compile it, or read it from the disk cache, the first time."""
        if self._ready is None:
            self._ready = self._compile()
        return self._ready

    @property
    def is_cached(self):
        """Whether the disk cache holds this kernel."""
        if numba.config.DISABLE_JIT:
            return True
        cache = _SourceKeyedCache(self._function)
        return cache.load_overload(self._parsed_signature(), numba.njit(self._function).targetctx) is not None

    def _parsed_signature(self):
        args, result = sigutils.normalize_signature(self._signature)
        return result(*args)

    def _compile(self):
        dispatcher = numba.njit(**_OPTIONS, nogil=self._nogil)(self._function)
        if numba.config.DISABLE_JIT:
            return dispatcher
        signature = self._parsed_signature()
        cache = _open_cache(self._function)
        if cache is not None:
            dispatcher._cache = cache
        with _FirstCompile(cache, signature, dispatcher):
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher


def warmup(report=None):
    """Compile every kernel that the disk cache lacks; return how many seconds that took."""
    begin = time.perf_counter()
    for made in _entries:
        made.load()
        if report is not None:
            report(made.name)
    return time.perf_counter() - begin


def cache_folder():
    """Return the folder of the disk cache for these sources and versions."""
    return _cache_root() / _digest()


def _cache_root():
    given = os.environ.get("CSTORMPY_CACHE_DIR")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cstormpy"


_digest_of_sources: list[str] = []


def _digest():
    if not _digest_of_sources:
        digest = hashlib.sha256()
        for version in (numba.__version__, llvmlite.__version__, platform.python_version(), platform.machine()):
            digest.update(version.encode())
        for source in sorted(Path(__file__).parent.glob("*.py")):
            digest.update(source.name.encode() + source.read_bytes())
        _digest_of_sources.append(digest.hexdigest()[:20])
    return _digest_of_sources[0]


class _SourceKeyedLocator(caching._CacheLocator):
    """Tells numba's cache where to write, and leaves staleness to the name of the folder."""

    def __init__(self, function, path):
        self._function = function

    def get_cache_path(self):
        return str(cache_folder())

    def get_source_stamp(self):
        return _digest()

    def get_disambiguator(self):
        return str(self._function.__code__.co_firstlineno)

    @classmethod
    def from_function(cls, function, path):
        return cls(function, path)


class _SourceKeyedImpl(caching.CompileResultCacheImpl):
    _locator_classes = (_SourceKeyedLocator,)

    def __init__(self, function):
        # numba's own constructor reads locators from its configuration, which belongs to the user.
        self._lineno = function.__code__.co_firstlineno
        self._locator = _SourceKeyedLocator(function, "")
        self._filename_base = self.get_filename_base(f"{function.__module__}.{function.__name__}", "")


class _SourceKeyedCache(caching.FunctionCache):
    _impl_class = _SourceKeyedImpl


def _open_cache(function):
    """Return a cache that can be written, or None with a notice."""
    folder = cache_folder()
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_old_folders(folder)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} is not writable")
        os.utime(folder)
        return _SourceKeyedCache(function)
    except OSError as error:
        notice(f"kernels are compiled but not kept: {error}; set CSTORMPY_CACHE_DIR to a folder that can be written")
        return None


def _remove_old_folders(current):
    folders = [f for f in current.parent.iterdir() if f.is_dir() and f != current and len(f.name) == len(current.name)]
    folders.sort(key=lambda f: f.stat().st_mtime, reverse=True)
    for folder in folders[_FOLDERS_KEPT - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)


class _FirstCompile(contextlib.AbstractContextManager):
    """Says what a compile does, and holds the other processes back that would compile the same."""

    _said = False

    def __init__(self, cache, signature, dispatcher):
        self._lock = None
        if cache is None or cache.load_overload(signature, dispatcher.targetctx) is None:
            if cache is not None:
                self._lock = _lock_file(cache_folder() / "compiling.lock")
            if cache is None or cache.load_overload(signature, dispatcher.targetctx) is None:
                self._say()

    @classmethod
    def _say(cls):
        if not cls._said:
            cls._said = True
            notice("compiling kernels for the first time on this machine (some seconds each, then kept on disk)")

    def __exit__(self, *exc):
        if self._lock is not None:
            self._lock.close()


def _lock_file(path):
    """Open a file and wait until no other process holds it; closing it lets go."""
    try:
        handle = path.open("w")
    except OSError:
        return None
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle
