"""Random functions of three numbers in plain Python and NumPy, as somebody writes laws: with ``if``, loops, arrays."""

from __future__ import annotations

import math
import re

import numpy as np

#: Forms of numbers, vectors of three and conditions; {n}, {v} and {c} stand for others of them, {k} for a constant.
NUMBERS = """
{n} + {n} | {n} - {n} | {n} * {n} | {n} / (1.5 + abs({n})) | max({n}, {n}) | min({n}, {n}, {n}) | abs({n})
({n}) ** 2 | math.sin({n}) | np.cos({n}) | math.exp(-abs({n})) | math.atan2({n}, 1.0 + abs({n}))
math.hypot({n}, 1.0) | math.degrees({n}) | math.floor({n}) | math.copysign(1.0, {n}) | float({n}) | int({n})
round({n}) | bool({c}) | np.float64({n}) | ({n} if {c} else {n}) | np.where({c}, {n}, {n}) | np.sign({n})
np.clip({n}, -1, 1) | {n} % 1.3 | {n} // 0.7 | divmod({n}, 0.7)[1] | np.minimum({n}, {n}) | np.max([{n}, {n}])
sum([{n}, {n}]) | sorted([{n}, {n}])[0] | np.sum({v}) | {v}[1] | {v}[-1] | np.max({v}) | np.dot({v}, {v})
np.linalg.norm({v}) | np.median({v}) | np.argmax({v}) | np.mean({v}) | len({v}) | np.count_nonzero({v} > 0.1)
np.any({v} > {n}) | ({v}).max(initial=0.0) | float({c}) | np.interp({n}, [-1.0, 0.0, 1.0], [2.0, 0.0, 1.0])
sum(p for p in {v}) | np.linalg.norm({v} > 0.1) | np.cbrt({n})
"""
VECTORS = """
{v} + {v} | {n} * {v} | np.sin({v}) | np.array([{n}, {n}, {n}]) | np.array([{n}, 1, {n}], dtype=float) | np.abs({v})
np.clip({v}, -1, 1) | ({v}).clip(-1, 1) | np.where({v} > 0, {v}, {v}) | np.maximum({v}, {n}) | ({v})[::-1]
np.zeros(3) | np.cross({v}, np.array([1.0, 2.0, 3.0])) | np.roll({v}, 1) | np.cumsum({v})
np.asarray({v}, dtype=float) | np.sort({v}) | np.concatenate([({v})[:1], ({v})[1:]]) | np.full(3, {n}) | np.eye(3)[1]
({v}).copy() | np.array({v}) | np.zeros_like({v}) | ({v} > 0) * {v} | np.hstack([{n}, ({v})[:2]])
np.array([{n} for i in range(3)]) | np.array([2.0 * p for p in {v}]) | np.linspace({n}, {n}, 3)
np.outer({v}, {v})[1] | np.eye(3) @ ({v}) | ({v} > {n}).astype(float) | np.reshape({v}, (3,)) | np.deg2rad({v})
np.stack([{n}, {n}, {n}]) | np.append(({v})[:2], {n}) | np.select([{v} > 0.5, {v} > 0], [{v}, {v}], 0.1)
np.tanh({v}) | ({v}).astype(float) | np.log10(1.0 + np.abs({v})) | np.linalg.solve(2.0 * np.eye(3), {v})
"""
CONDITIONS = """
{n} > {n} | {n} <= {n} | {n} < {n} < {n} | ({n} > 0 and {n} > 0.2) | ({n} > 1 or {n} < 0) | not {n} > 0.3 | {n} != {n}
np.any({v} > {k}) | np.all({v} > -1) | ({n} > 0) == ({n} > 0) | np.isfinite({n}) | math.isnan({n})
({n} > 0) ^ ({n} > 1)
"""
#: What is done to an array of one's own; {a}.
WRITING = """
{a}[0] = {n} | {a}[1] += {n} | {a}[0:2] = ({v})[1:] | {a} *= {n} | {a} += {v} | {a}[:] = {n} | {a} -= 1.0
{a}[-1] = {k} | np.copyto({a}, {v}) | np.add({a}, {n}, out={a}) | np.fill_diagonal({a}.reshape(1, 3), {n})
"""
#: New names for such an array: the same one, a part, a view, a copy.
SAME = """
{a} | {a}[:] | {a}.reshape(3) | np.asarray({a}) | np.reshape({a}, 3) | np.ravel({a}) | {a}[::-1] | {a}.T
np.array({a}) | {a}.astype(float) | np.asarray({a}, dtype=float) | np.squeeze({a}) | np.flip({a}) | np.atleast_1d({a})
{a} + 0.0
"""
MADE = (
    "np.zeros(3) | np.ones(3) | np.zeros_like(x) | x.copy() | np.array([1.0, 2.0, 3.0]) | np.array(x) | np.full(3, 0.5)"
)
CONSTANTS = "0.5 | 1.0 | -1.5 | 2.0 | 0.0 | 3 | 1 | -2 | 0.25"
DEEPEST = 3


def forms(text):
    return [form.strip() for form in re.split(r" \| |\n", text.strip())]


KINDS = {"n": forms(NUMBERS), "v": forms(VECTORS), "c": forms(CONDITIONS), "k": forms(CONSTANTS)}


class Writer:
    """Writes one function; `names` has of each kind of value what stands for it."""

    def __init__(self, rng):
        self.rng, self.lines, self.count = rng, [], 0
        self.names = {"n": ["x[0]", "x[1]", "x[2]"], "v": ["x"], "a": []}

    def one(self, items):
        return items[self.rng.integers(len(items))]

    def grown(self, kind, depth=0):
        if kind in ("a", "k"):
            return self.one(self.names.get(kind) or KINDS[kind])
        if kind != "c" and (depth >= DEEPEST or self.rng.random() < 0.35):
            return self.one([*self.names[kind], *(KINDS["k"] if kind == "n" else ())])
        return "(" + self.filled(self.one(KINDS[kind]), depth + 1) + ")"

    def filled(self, form, depth=0):
        return re.sub(r"\{([nvcka])\}", lambda found: self.grown(found[1], depth), form)

    def named(self, *kinds):
        self.count += 1
        name = f"{kinds[0]}{self.count}"
        for kind in kinds:
            self.names[kind].append(name)
        return name

    def block(self, indent, depth):
        before = {kind: list(names) for kind, names in self.names.items()}
        for _ in range(self.rng.integers(1, 3)):
            self.statement(indent, depth)
        self.names = before

    def statement(self, indent, depth=0):
        kinds = ["n", "v", "made", "writing", "writing", "same", "if", "for", "each", "def"]
        kind, start = self.one(kinds), "    " * indent
        if kind in ("writing", "same") and not self.names["a"]:
            kind = "made"
        if kind in ("if", "for", "each") and depth == 2:
            kind = "n"
        if kind in ("n", "v"):
            value = self.grown(kind)
            self.lines.append(f"{start}{self.named(kind)} = {value}")
        elif kind == "made":
            value = self.one(forms(MADE))
            self.lines.append(f"{start}{self.named('a', 'v')} = {value}")
        elif kind == "same":
            value = self.filled(self.one(forms(SAME)))
            self.lines.append(f"{start}{self.named('a', 'v')} = {value}")
        elif kind == "writing":
            self.lines.append(start + self.filled(self.one(forms(WRITING))))
        elif kind == "if":
            self.lines.append(f"{start}if {self.grown('c')}:")
            self.block(indent + 1, depth + 1)
            if self.rng.random() < 0.6:
                self.lines.append(f"{start}else:")
                self.block(indent + 1, depth + 1)
            if self.rng.random() < 0.2:
                self.lines.append(f"{start}if {self.grown('c')}:\n{start}    return np.array([{self.grown('n')}, 1.0])")
        elif kind == "for":
            self.lines.append(f"{start}for i in range({self.rng.integers(1, 4)}):")
            self.block(indent + 1, depth + 1)
            self.lines.append(f"{start}    if i > {self.one(['i', self.grown('n', 2)])}:\n{start}        break")
        elif kind == "each":
            values, name = self.grown("v"), self.named("n")
            self.lines.append(
                f"{start}{name} = 0.0\n{start}for i, e in enumerate({values}):\n{start}    {name} += i * e"
            )
        else:
            inner = f"lambda a, b=1.0: a * b if a > b else {self.grown('n')}"
            argument = self.grown("n")
            self.lines.append(f"{start}{self.named('n')} = ({inner})({argument})")

    def written(self):
        for _ in range(self.rng.integers(3, 9)):
            self.statement(1)
        self.lines.append(f"    return np.array([{self.grown('n')}, np.sum({self.grown('v')})])")
        return "def f(x):\n" + "\n".join(self.lines)


def random_function(seed):
    """Return a function, and its text."""
    text = Writer(np.random.default_rng(seed)).written()
    space = {"np": np, "math": math, "__name__": "random_function"}
    exec(compile(text, f"<function {seed}>", "exec"), space)
    return space["f"], text
