"""Docstrings of public names: each has one, and documents the parameters that there are."""

import inspect
import pydoc
import re

import pytest

import cstormpy as cs


def public_names():
    """Return each public function, class and method once, by the first name that leads to it."""
    found, seen = {}, set()

    def walk(name, value):
        if id(value) in seen or not getattr(value, "__module__", "cstormpy").startswith("cstormpy"):
            return
        seen.add(id(value))
        if inspect.ismodule(value):
            for inner in getattr(value, "__all__", ()):
                walk(f"{name}.{inner}", getattr(value, inner))
        elif inspect.isclass(value):
            found[name] = value
            for inner in dir(value):
                if not inner.startswith("_"):
                    method = inspect.getattr_static(value, inner)
                    walk(f"{name}.{inner}", getattr(method, "__func__", method))
        elif inspect.isfunction(value):
            found[name] = value

    for name in cs.__all__:
        walk(name, getattr(cs, name))
    return found


NAMES = public_names()


def documented(doc):
    """Return the names in the section of parameters, None where there is none."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-{3,}\n|\Z)", inspect.cleandoc(doc), re.S | re.M)
    if section is None:
        return None
    lines = [line for line in section[1].splitlines() if line and not line[0].isspace()]
    return [name.strip() for line in lines for name in line.split(" : ")[0].split(",")]


def test_what_is_public_is_said():
    assert len(NAMES) > 400
    assert [name for name, value in NAMES.items() if not inspect.getdoc(value)] == []


def wrong_parameters(value):
    """Return which parameters are documented and do not exist, or exist and are not documented."""
    said = documented(value.__doc__ or "")
    if said is None or (inspect.isclass(value) and "__init__" not in vars(value) and "__new__" not in vars(value)):
        return set()
    parameters = {n: p for n, p in inspect.signature(value).parameters.items() if n not in ("self", "cls")}
    passed_on = {name for name, p in parameters.items() if p.kind is p.VAR_KEYWORD}
    named = {name for name in said if not name.startswith("**")}
    missing = set() if len(named) < len(said) else set(parameters) - named - passed_on
    return missing | (set() if passed_on else {name.lstrip("*") for name in named} - set(parameters))


def test_help_shows_no_pages_of_others():
    """That on joints held NumPy's page on arrays once or twice, for an array that they have as an attribute."""
    kinds = [kind for kind in NAMES.values() if inspect.isclass(kind)]
    assert cs.Planar in kinds and len(kinds) > 40
    long = [kind for kind in kinds if "An ndarray alias" in (t := pydoc.render_doc(kind)) or "C-style" in t]
    assert not long


def test_parameters_are_documented_by_the_names_that_they_have():
    """A parameter that was renamed, added or removed keeps no false line in the help."""
    wrong = {name: wrong_parameters(value) for name, value in NAMES.items()}
    assert {name: names for name, names in wrong.items() if names} == {}


@pytest.mark.parametrize(
    ("doc", "wrong"),
    [
        ("", set()),
        ("Parameters\n----------\na : int\nc\n", {"b", "c"}),
        ("Parameters\n----------\na, b : int\n", set()),
    ],
)
def test_a_false_line_is_found(doc, wrong):
    def function(a, b):
        pass

    function.__doc__ = doc
    assert wrong_parameters(function) == wrong
