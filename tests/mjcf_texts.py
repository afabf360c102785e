"""Models of MuJoCo: an acrobot, a humanoid, and random ones with everything in them that is read."""

from __future__ import annotations

import numpy as np
from urdf_texts import numbers

ACROBOT = """<mujoco model="acrobot">
  <default>
    <joint damping=".05"/>
    <geom type="capsule" mass="1"/>
  </default>
  <option timestep="0.01" integrator="RK4"> <flag constraint="disable" energy="enable"/> </option>
  <worldbody>
    <light name="light" pos="0 0 6"/>
    <geom name="floor" size="3 3 .2" type="plane"/>
    <site name="target" type="sphere" pos="0 0 4" size="0.2"/>
    <body name="upper_arm" pos="0 0 2">
      <joint name="shoulder" type="hinge" axis="0 1 0"/>
      <geom name="upper_arm_decoration" type="cylinder" fromto="0 -.06 0 0 .06 0" size="0.051" mass="0"/>
      <geom name="upper_arm" fromto="0 0 0 0 0 1" size="0.05" rgba="1 .5 0 1"/>
      <body name="lower_arm" pos="0 0 1">
        <joint name="elbow" type="hinge" axis="0 1 0"/>
        <geom name="lower_arm" fromto="0 0 0 0 0 1" size="0.049"/>
        <site name="tip" pos="0 0 1" size="0.01"/>
      </body>
    </body>
  </worldbody>
  <actuator> <motor name="elbow" joint="elbow" gear="2" ctrllimited="true" ctrlrange="-1 1"/> </actuator>
</mujoco>
"""


def _leg(side, sign):
    return f"""
        <body name="{side}_thigh" pos="0 {sign * 0.1} -0.04">
          <joint name="{side}_hip_x" axis="{sign} 0 0" range="-25 5" class="stiff"/>
          <joint name="{side}_hip_z" axis="0 0 {sign}" range="-60 35" class="stiff"/>
          <joint name="{side}_hip_y" axis="0 1 0" range="-120 20" stiffness="20" springref="-10"/>
          <geom name="{side}_thigh" fromto="0 0 0 0 {-sign * 0.01} -.34" size=".06"/>
          <body name="{side}_shin" pos="0 {-sign * 0.01} -0.403">
            <joint name="{side}_knee" pos="0 0 .02" axis="0 -1 0" range="-160 -2" armature=".006"/>
            <geom name="{side}_shin" fromto="0 0 0 0 0 -.3" size="0.049"/>
            <body name="{side}_foot" pos="0 0 -0.39" euler="0 0 {sign * 5}">
              <joint name="{side}_ankle_y" pos="0 0 .08" axis="0 1 0" range="-50 50" stiffness="6" damping=".3"/>
              <joint name="{side}_ankle_x" pos="0 0 .08" axis="1 0 .5" range="-50 50" class="stiff"/>
              <geom type="box" pos=".05 0 .02" size=".1 .04 .02" density="900"/>
            </body>
          </body>
        </body>"""


def _arm(side, sign):
    return f"""
      <body name="{side}_upper_arm" pos="0 {sign * 0.17} 0.06">
        <joint name="{side}_shoulder1" axis="2 {-sign} 1" range="-85 60"/>
        <joint name="{side}_shoulder2" axis="0 {sign} 1" range="-85 60"/>
        <geom name="{side}_upper_arm" fromto="0 0 0 .16 {sign * 0.16} -.16" size=".04 .16"/>
        <body name="{side}_lower_arm" pos=".18 {sign * 0.18} -.18">
          <joint name="{side}_elbow" axis="0 -1 {sign}" range="-90 50" stiffness="0" armature=".003"/>
          <geom name="{side}_lower_arm" fromto="0.01 {-sign * 0.01} 0.01 .17 {-sign * 0.17} .17" size=".031"/>
          <geom name="{side}_hand" type="sphere" pos=".18 {-sign * 0.18} .18" size="0.04" rgba=".8 .6 .4 1"/>
        </body>
      </body>"""


_LIMBS = ("hip_x", "hip_z", "hip_y", "knee", "ankle_y", "ankle_x", "shoulder1", "shoulder2", "elbow")
_HINGES = [f"{side}_{joint}" for side in ("right", "left") for joint in _LIMBS]
_HINGES += [f"abdomen_{axis}" for axis in "xyz"]
_MOTORS = "".join(f'\n    <motor name="{name}" joint="{name}" gear="{20 + 5 * k}"/>' for k, name in enumerate(_HINGES))

HUMANOID = f"""<mujoco model="humanoid">
  <compiler angle="degree" inertiafromgeom="true"/>
  <default>
    <motor ctrlrange="-1 1" ctrllimited="true"/>
    <geom type="capsule" condim="1" density="1010"/>
    <joint type="hinge" damping=".2" stiffness="1" armature=".01" limited="true" solimplimit="0 .99 .01"/>
    <default class="stiff"> <joint stiffness="10" damping="5"/> </default>
  </default>
  <asset> <material name="skin" rgba=".9 .7 .5 1"/> </asset>
  <worldbody>
    <geom name="floor" type="plane" size="20 20 .125" condim="3"/>
    <body name="torso" pos="0 0 1.5">
      <freejoint name="root"/>
      <geom name="torso" fromto="0 -.07 0 0 .07 0" size=".07" material="skin"/>
      <geom name="head" type="sphere" pos="0 0 .19" size=".09"/>
      <geom name="waist" fromto="-.01 -.06 -.12 -.01 .06 -.12" size=".06"/>
      <body name="lower_waist" pos="-.01 0 -.26" quat="1 0 -.002 0">
        <joint name="abdomen_z" pos="0 0 .065" axis="0 0 1" range="-45 45" class="stiff"/>
        <joint name="abdomen_y" pos="0 0 .065" axis="0 1 0" range="-75 30"/>
        <geom name="lower_waist" fromto="0 -.06 0 0 .06 0" size=".06"/>
        <body name="pelvis" pos="0 0 -.165" quat="1 0 -.002 0">
          <joint name="abdomen_x" pos="0 0 .1" axis="1 0 0" range="-35 35" class="stiff"/>
          <geom name="butt" fromto="-.02 -.07 0 -.02 .07 0" size=".09"/>{_leg("right", -1)}{_leg("left", 1)}
        </body>
      </body>{_arm("right", -1)}{_arm("left", 1)}
    </body>
  </worldbody>
  <tendon>
    <fixed name="hamstring"> <joint joint="right_hip_y" coef=".5"/> <joint joint="right_knee" coef="-.5"/> </fixed>
  </tendon>
  <actuator>{_MOTORS}
  </actuator>
</mujoco>
"""


def random_mjcf(rng, bodies=8):
    """Return the text of a random tree: every kind of joint, geom, orientation and inertia, frames and classes."""
    children, parents = {k: [] for k in range(-1, bodies)}, [-1]
    parents += [int(rng.integers(-1, k)) for k in range(1, bodies)]
    for k, parent in enumerate(parents):
        children[parent].append(k)
    sequence = "".join(rng.choice(list("xyzXYZ"), 3))
    radians = "radian" if rng.random() < 0.5 else "degree"
    inner = "".join(_body(rng, k, children, radians) for k in children[-1])
    return f"""<mujoco>
  <compiler angle="{radians}" eulerseq="{sequence}"/>
  <option gravity="{numbers(rng.normal(size=3))}"/>
  <default>
    <geom type="ellipsoid" size="0.1 0.2 0.3" density="500"/>
    <joint damping="0.3" axis="1 2 3"/>
    <default class="a"> <joint armature="0.2"/> <geom quat="1 2 3 4"/> <default class="b"> <joint ref="0.3"/> </default>
    </default>
    <default class="c"> <joint stiffness="2"/> <general gear="3"/> </default>
  </default>
  <worldbody>{inner}
  </worldbody>
</mujoco>
"""


def _body(rng, k, children, angles):
    free = k in children[-1] and rng.random() < 0.3
    joints = "<freejoint/>" if free else "".join(_joints(rng, k))
    mass = _inertial(rng, angles) if rng.random() < 0.4 else ""
    geoms = "".join(_geom(rng, angles) for _ in range(rng.integers(1, 4)))
    inner = "".join(_body(rng, child, children, angles) for child in children[k])
    if rng.random() < 0.4:
        geoms = f'<frame {_place(rng, angles)}><frame pos="0 .1 0"/>{geoms}</frame>'
        inner = f'<frame {_place(rng, angles)} childclass="c">{inner}</frame>'
    child = f'childclass="{rng.choice(["a", "b", "c"])}"' if rng.random() < 0.4 else ""
    return f'\n<body name="b{k}" {child} {_place(rng, angles)}>{joints}{mass}{geoms}{inner}</body>'


def _joints(rng, k):
    """Return up to three joints of a body: MuJoCo has no hinge after a ball joint."""
    kinds = rng.choice(["hinge", "hinge", "slide", "ball"], rng.integers(0, 4))
    balls = np.flatnonzero(kinds == "ball")
    if len(balls):
        kinds[balls[0] + 1 :] = "slide"
    return [_joint(rng, str(kind), k, j) for j, kind in enumerate(kinds)]


def _joint(rng, kind, k, j):
    own = f'type="{kind}" name="j{k}_{j}" pos="{numbers(rng.normal(size=3) * 0.2)}"'
    if kind == "ball":
        return f'<joint {own} damping="{rng.uniform(0, 1)}" armature="{rng.uniform(0, 1)}" stiffness="0" ref="0"/>'
    if rng.random() < 0.6:
        own += f' axis="{numbers(rng.normal(size=3))}" stiffness="{rng.uniform(0, 3)}" springref="{rng.normal()}"'
    more = rng.choice(["", 'class="a"', 'class="b"', 'ref="-0.2"'])
    return f"<joint {own} {more}/>"


def _place(rng, angles):
    scale = 1.0 if angles == "radian" else 57.0
    turn = rng.choice(["", "quat", "axisangle", "euler", "xyaxes", "zaxis"])
    values = {
        "": [], "quat": rng.normal(size=4), "axisangle": [*rng.normal(size=3), scale * rng.normal()],
        "euler": scale * rng.normal(size=3), "xyaxes": rng.normal(size=6), "zaxis": rng.normal(size=3),
    }[str(turn)]  # fmt: skip
    return f'pos="{numbers(rng.normal(size=3) * 0.4)}"' + (f' {turn}="{numbers(values)}"' if turn else "")


def _inertial(rng, angles):
    a, b = rng.uniform(0.05, 0.5, 2)
    moments = (a, b, rng.uniform(abs(a - b) + 1e-3, a + b - 1e-3))
    own = f'mass="{rng.uniform(0.2, 3)}"'
    if rng.random() < 0.5:
        return f'<inertial {own} {_place(rng, angles)} diaginertia="{numbers(moments)}"/>'
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    full = (turn @ np.diag(moments) @ turn.T)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return f'<inertial {own} pos="{numbers(rng.normal(size=3))}" fullinertia="{numbers(full)}"/>'


def _geom(rng, angles):
    kind = str(rng.choice(["sphere", "capsule", "cylinder", "box", "ellipsoid"]))
    own = f'type="{kind}" group="{rng.integers(0, 5)}"'
    if rng.random() < 0.5:
        own += f' mass="{rng.uniform(0, 2)}"'
    if kind != "sphere" and rng.random() < 0.4:
        return f'<geom {own} size="{rng.uniform(0.05, 0.2)}" fromto="{numbers(rng.normal(size=6) * 0.3)}"/>'
    count = rng.integers({"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3), 4)
    return f'<geom {own} size="{numbers(rng.uniform(0.05, 0.3, count))}" {_place(rng, angles)}/>'
