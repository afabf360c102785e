"""Random robots as texts of URDF, with everything in them that a file of a robot may have."""

from __future__ import annotations

import numpy as np

KINDS = ("revolute", "continuous", "prismatic", "fixed")


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
