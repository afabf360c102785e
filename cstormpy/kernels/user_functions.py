"""Users' functions compiled by numba, as functions of C, or read from disk where they were compiled before."""

import ctypes
import hashlib
import linecache
import os
import re
import uuid
import weakref
from types import FunctionType

import numba
from numba.core import sigutils, types
from numba.core.errors import NumbaError
from numba.extending import register_jitable

from cstormpy.kernels.compiling import _EXACT, _Kept, address_in_c


class Refused(Exception):
    """A function of the user that numba does not compile, with the reason."""


#: Of the user's functions. Python never calls them: what one returns may be a list of unlike parts, which numba does
#: not hand to Python.
_USERS = {"error_model": "python", "boundscheck": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_CALLED = "i8(CPointer(f8), CPointer(f8))"


def compiled(source, function, arguments, fingerprint):
    """Return what calls a function of the user, compiled, and where that begins: ``int64 f(given, found)`` of C.

    Parameters
    ----------
    source : str
        Of a function ``call(given, found)`` of arrays that calls ``f`` and returns 0, or 1 where that has raised.
    function : function
        What stands behind ``f``.
    arguments : str
        The types of its arguments.
    fingerprint : str or None
        Of the function; None if it has none that another process could know, and nothing is kept on disk.

    Raises
    ------
    Refused

    Notes
    -----
    What is compiled bears the digest in its name. Code that is read from disk keeps the symbols of the process that
    compiled it; two of them must not be alike.
    """
    digest = _digest(source, fingerprint)
    if numba.config.DISABLE_JIT:
        return _uncompiled(source, function)
    user = numba.njit(**_USERS)(_copy(function, f"f_{digest}"))
    space = {"__name__": __name__, "f": user, "carray": numba.carray}
    exec(compile(source.replace("def call(", f"def call_{digest}(", 1), "<call>", "exec"), space)
    dispatcher = numba.njit(**_EXACT, nogil=True)(space[f"call_{digest}"])
    try:
        if fingerprint is None:
            _check(user, function, arguments)
            dispatcher.compile(_CALLED)
        else:
            with _Kept(kept_as(source, fingerprint)) as kept:
                dispatcher._cache = _Checking(kept, lambda: _check(user, function, arguments))
                dispatcher.compile(_CALLED)
    except NumbaError as error:
        raise Refused(_said(error)) from error
    dispatcher.disable_compile()
    return dispatcher, address_in_c(dispatcher, _CALLED)


#: Functions of the user's that compiled ones may call.
_callable = weakref.WeakSet()


def callable_by_numba(function):
    """Return a function of the user as it is, which compiled ones may call from now on."""
    if function not in _callable:
        register_jitable(error_model=_USERS["error_model"], boundscheck=_USERS["boundscheck"])(function)
        _callable.add(function)
    return function


def _uncompiled(source, function):
    space = {"f": function, "carray": numba.carray}
    exec(source, space)
    pointer = ctypes.POINTER(ctypes.c_double)
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, pointer, pointer)(space["call"])
    return callback, ctypes.cast(callback, ctypes.c_void_p).value


def _digest(source, fingerprint):
    return hashlib.sha256((source + (fingerprint or uuid.uuid4().hex)).encode()).hexdigest()[:24]


def kept_as(source, fingerprint):
    """Return the name under which what calls a function is kept on disk."""
    return f"function.{_digest(source, fingerprint)}"


def _copy(function, name):
    """Return a user's function as one of this module, which any process can import that reads the compiled code."""
    code = function.__code__.replace(co_name=name)
    copy = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__ = __name__, name
    return copy


class _Checking:
    """A cache that has the user's function looked at where nothing is kept yet, so that errors name its lines."""

    def __init__(self, kept, check):
        self._kept, self._check = kept, check

    def load_overload(self, sig, target_context):
        try:
            found = self._kept.load_overload(sig, target_context)
        except (ImportError, AttributeError):  # it calls what this process does not know
            found = None
        if found is None:
            self._check()
        return found

    def __getattr__(self, name):
        return getattr(self._kept, name)


def _check(user, function, arguments):
    """Have numba look at a function of the user, so that errors name its lines."""
    given = sigutils.normalize_signature(f"({arguments},)")[0] if arguments else ()
    try:
        _look(user, given)
    except Refused:
        if hasattr(function, "written"):  # it calls a method, of which numba says most by itself
            kind, count, whole = function.held
            first = len(given) - count
            held = types.BaseTuple.from_types([*given[first:], *map(numba.typeof, whole)], kind)
            _look(numba.njit(**_USERS)(function.written), (held, *given[:first]))
        raise


def _look(user, given):
    function = user.py_func
    try:
        user.compile(_with_defaults(function, given))
    except NumbaError as error:
        raise Refused(_explained(error, function)) from error
    except Exception as error:  # numba's own faults on code it does not know
        said = str(error).partition(". Raised from")[0]
        code = function.__code__
        where = f"in the function at line {code.co_firstlineno} of {os.path.basename(code.co_filename)}"
        raise Refused(f"{said}, {where}") from error
    found = user.nopython_signatures[-1].return_type
    # as a function of C, it would leave what stood there before where it returns None
    if any(isinstance(each, (types.Optional, types.NoneType)) for each in (found, *getattr(found, "types", ()))):
        raise Refused("it returns None on some of its ways")


def _with_defaults(function, given):
    """Return the types of the arguments that are given, and the defaults of the others."""
    left, defaults = function.__code__.co_argcount - len(given), function.__defaults__ or ()
    return *given, *(types.Omitted(value) for value in defaults[len(defaults) - min(left, len(defaults)) :])


def _explained(error, function):
    """Return what numba says of a function, and the line that it cannot take."""
    path = function.__code__.co_filename
    name, number = os.path.basename(path), _line_of(error, os.path.basename(path))
    if not number:
        return _said(error)
    code = linecache.getline(path, number).strip()
    return f"{_said(error)}, in line {number} of {name}" + (f": {code}" if code else "")


def _said(error):
    """Return what numba says, on one line, without its advice."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).partition('File "')[0]
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if line and not line.startswith(("-", "During:", "This error", "Failed in"))]
    return " ".join(told[:4])[:300].rstrip(":. ") or type(error).__name__


def _line_of(error, name):
    """Return the number of the last line of a file that numba speaks of, 0 if there is none."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    numbers = re.findall(rf'File "[^"]*{re.escape(name)}", line (\d+)', text)
    if numbers:
        return int(numbers[-1])
    place = getattr(error, "loc", None)
    return place.line if place is not None and os.path.basename(place.filename) == name else 0
