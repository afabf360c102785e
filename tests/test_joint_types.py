"""A joint's type is known in its class alone: nobody else asks for it, in Python or in the report's script."""

import ast
import re
from pathlib import Path

import pytest

import cstormpy as cs
from cstormpy.linkage.joints import JOINT_TYPES, OneDofJoint

ROOT = Path(cs.__file__).parent
HOME = ROOT / "linkage" / "joints"
FILES = sorted(
    path
    for folder in (ROOT, ROOT.parent / "blocks", ROOT.parent / "diagrams")
    for path in folder.rglob("*.py")
    if HOME not in path.parents
)
CLASSES = {joint.__name__ for joint in (OneDofJoint, *JOINT_TYPES.values())}
KINDS = set(JOINT_TYPES)


def names_in(tree):
    return {
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(tree) if isinstance(n, (ast.Name, ast.Attribute))
    }


def texts_in(tree):
    return {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def type_tests(tree):
    """Return the lines that ask a joint for its type: by its class, or by comparing or looking up what it is called.

    A bare name `kind` may hold the word of a foreign file; the attribute is the joint's own.
    """
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = bool(names_in(node.args[1]) & CLASSES)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            compared = {n.attr for side in sides for n in ast.walk(side) if isinstance(n, ast.Attribute)}
            kinds = texts_in(node) & KINDS and compared & {"kind", "kinds"}
            named = set().union(*map(names_in, sides))
            asked = bool(kinds) or ("type" in named and bool(named & CLASSES))
        elif isinstance(node, ast.Match):
            asked = any(names_in(case.pattern) & CLASSES for case in node.cases)
        elif isinstance(node, ast.Dict):
            asked = len(KINDS & set().union(*(texts_in(key) for key in node.keys if key is not None), set())) > 1
        else:
            asked = False
        if asked:
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(link.joint, (Revolute, Screw))",
        "link.joint.kind != 'prismatic'",
        "tree.kinds[i] in ('revolute', 'screw')",
        "type(joint) is Fixed",
        "{'revolute': f, 'prismatic': g}[kind]",
        "isinstance(joint, joints.OneDofJoint)",
    ],
)
def test_a_test_on_a_type_is_found(line):
    assert type_tests(ast.parse(line)) == [1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_no_file_asks_a_joint_for_its_type(path):
    assert type_tests(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.js")), ids=lambda path: path.name)
def test_the_reports_script_knows_no_types(path):
    """The page once turned and slid the links by itself; it is given where they are."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(rf"""["'`]({"|".join(KINDS)})["'`]""", text) == []
