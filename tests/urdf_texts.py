"""Texts of URDF: an arm, random robots with everything that such a file may have, and texts that are spoiled."""

from __future__ import annotations

import numpy as np

KINDS = ("revolute", "continuous", "prismatic", "fixed")

BODY = (
    "<inertial><origin xyz='0.5 0 0'/><mass value='2'/>"
    "<inertia ixx='0.1' iyy='0.1' izz='0.1' ixy='0' ixz='0' iyz='0'/></inertial>"
)
ARM = f"""<robot name="arm">
  <link name="world"/>
  <link name="upper">{BODY}</link>
  <link name="fore">{BODY}</link>
  <joint name="shoulder" type="revolute">
    <parent link="world"/> <child link="upper"/> <axis xyz="0 -1 0"/>
    <limit lower="-1" upper="2" effort="30" velocity="4"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/> <child link="fore"/> <origin xyz="1 0 0"/> <axis xyz="0 -2 0"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
</robot>
"""


def numbers(values):
    return " ".join(repr(float(v)) for v in values)


def random_urdf(rng, links=8, kinds=KINDS, root_body=True):
    """Return the text of a random tree; joints stand in any order, names are no help for it."""
    names = [f"link_{k}" for k in rng.permutation(links)]
    texts = [_link(rng, name, body=root_body or k > 0) for k, name in enumerate(names)]
    joints = [_joint(rng, f"joint_{child}", rng.choice(kinds), names[rng.integers(k)], child)
              for k, child in enumerate(names) if k]  # fmt: skip
    texts += joints
    order = rng.permutation(len(texts))
    inner = "\n".join(texts[k] for k in order)
    return f'<?xml version="1.0"?>\n<!-- a robot -->\n<robot name="random">\n{inner}\n</robot>\n'


def _link(rng, name, body):
    if not body:
        return f'<link name="{name}"/>'
    a, b = rng.uniform(0.05, 0.5, 2)
    moments = (a, b, rng.uniform(abs(a - b) + 1e-3, a + b - 1e-3))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    full = turn @ np.diag(moments) @ turn.T
    entries = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), full[np.triu_indices(3)], strict=True)
    inertia = " ".join(f'{key}="{value!r}"' for key, value in ((k, float(v)) for k, v in entries))
    return f"""<link name="{name}">
  <inertial>
    <origin xyz="{numbers(rng.normal(size=3) * 0.3)}" rpy="{numbers(rng.uniform(-3, 3, 3))}"/>
    <mass value="{rng.uniform(0.2, 3.0)!r}"/>
    <inertia {inertia}/>
  </inertial>
  <visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>
</link>"""


def _joint(rng, name, kind, parent, child):
    axis = "" if rng.random() < 0.2 else f'<axis xyz="{numbers(rng.normal(size=3))}"/>'
    limit = '<limit lower="-2" upper="2.5" effort="30" velocity="4"/>' if kind != "fixed" else ""
    return f"""<joint name="{name}" type="{kind}">
  <parent link="{parent}"/>
  <child link="{child}"/>
  <origin xyz="{numbers(rng.normal(size=3) * 0.5)}" rpy="{numbers(rng.uniform(-3, 3, 3))}"/>
  {axis if kind != "fixed" else ""}
  {limit}
</joint>"""


def mutant(rng, text):
    """Return a text with some of it changed: characters, numbers, tags, whole parts."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        k, j = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:k] + rng.choice(["<", ">", '"', "&", "\0", "\ud800", "é", "/", "-", "0", " "]) + text[k + 1 :]
        elif kind == 1:
            text = text[:k] + text[min(j, k + 60) :]
        elif kind == 2:
            text = text[:k] + text[j : j + 80] + text[k:]
        else:
            words = [w for w in text.replace('"', " ").replace("'", " ").split() if w[0] not in "<>/"] or ["x"]
            new = rng.choice(["nan", "inf", "1e308", "-1e308", "1e-320", "0", "-1", "", "x" * 300, *words])
            text = text.replace(rng.choice(words), new, rng.choice([1, 1, -1]))
    return text
