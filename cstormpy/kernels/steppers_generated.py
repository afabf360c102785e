"""Compiles the function of a diagram from its source, or reads it from disk where it was compiled before."""

from __future__ import annotations

import hashlib
import linecache
import os
import re
import uuid
from types import FunctionType

import numba
from numba.core import sigutils, types
from numba.core.errors import NumbaError

from cstormpy.kernels.compiling import _EXACT, _Kept
from cstormpy.kernels.diagram_calls import callee
from cstormpy.kernels.diagram_rate import RATE

__all__ = ["Refused", "compiled", "kept_as"]


class Refused(Exception):
    """What numba does not compile: a function of the user, `name` in the source, or else a line of the source."""

    def __init__(self, name, reason, line=0):
        super().__init__(reason)
        self.name, self.line = name, line


#: Of the user's functions. Python never calls them: what one returns may be a list of unlike parts, which numba does
#: not hand to Python.
_USERS = {"error_model": "python", "boundscheck": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(source, calls, functions, fingerprint, signature=RATE, find=callee):
    """Return the function of a diagram, ``rate``, ready to run and to be handed to `advance`.

    Parameters
    ----------
    source : str
        Of one function ``rate(t, x, z, p, n, w, out, xd)``.
    calls : iterable of str
        What it calls of this file.
    functions : dict of str to (function, str)
        What it calls of the user's, and the types of their arguments.
    fingerprint : str or None
        Of the user's functions; None if they have none that another process could know, and nothing is kept on disk.
    signature, find
        What it takes and returns, and what gives a callee by its name: those of ``rate`` unless given.

    Notes
    -----
    What is compiled bears the digest in its name. Code that is read from disk keeps the symbols of the process that
    compiled it; were two of them alike, a stepper would be handed the function of another diagram.
    """
    digest = _digest(source, fingerprint)
    space = {"__name__": __name__, **{name: find(name) for name in calls}}
    jit = not numba.config.DISABLE_JIT
    for name, (function, _) in functions.items():
        space[name] = numba.njit(**_USERS)(_copy(function, f"{name}_{digest}")) if jit else function
    name = source[len("def ") : source.index("(")]
    try:
        exec(compile(source.replace(f"def {name}(", f"def {name}_{digest}(", 1), "<diagram>", "exec"), space)
    except SyntaxError as error:
        raise Refused("", f"{error.msg}: {(error.text or '').strip()}", error.lineno or 0) from error
    rate = space[f"{name}_{digest}"]
    if not jit:
        return rate
    dispatcher = numba.njit(**_EXACT, nogil=True)(rate)
    try:
        if fingerprint is None:
            _check(space, functions)
            dispatcher.compile(signature)
        else:
            with _Kept(kept_as(source, fingerprint)) as kept:
                dispatcher._cache = _Checking(kept, lambda: _check(space, functions))
                dispatcher.compile(signature)
    except NumbaError as error:
        raise Refused("", _said(error), _line_of(error, "<diagram>")) from error
    dispatcher.disable_compile()
    return dispatcher


def _digest(source, fingerprint):
    return hashlib.sha256((source + (fingerprint or uuid.uuid4().hex)).encode()).hexdigest()[:24]


def kept_as(source, fingerprint):
    """Return the name under which the function of a diagram is kept on disk."""
    return f"diagram.{_digest(source, fingerprint)}"


def _copy(function, name):
    """Return a user's function as one of this module, which any process can import that reads the compiled code."""
    code = function.__code__.replace(co_name=name)
    copy = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__ = __name__, name
    return copy


class _Checking:
    """A cache that has the user's functions looked at where nothing is kept yet, so that errors name one of them."""

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


def _check(space, functions):
    for name, (_, arguments) in functions.items():
        try:
            space[name].compile(_types(space[name].py_func, arguments))
        except NumbaError as error:
            raise Refused(name, _explained(error, space[name].py_func)) from error
        except Exception as error:  # numba's own faults on code it does not know
            said = str(error).partition(". Raised from")[0]
            code = space[name].py_func.__code__
            where = f"in the function at line {code.co_firstlineno} of {os.path.basename(code.co_filename)}"
            raise Refused(name, f"{said}, {where}") from error


def _types(function, arguments):
    """Return the types of the arguments that are given, and the defaults of the others."""
    given = sigutils.normalize_signature(f"({arguments},)")[0] if arguments else ()
    left, defaults = function.__code__.co_argcount - len(given), function.__defaults__ or ()
    return *given, *(types.Omitted(value) for value in defaults[len(defaults) - min(left, len(defaults)) :])


def _explained(error, function):
    """Return what numba says of a function, and the line that it can not take."""
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
