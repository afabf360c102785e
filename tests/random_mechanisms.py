"""Random mechanisms and states: every joint type, any tree, any drive."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from cstormpy.mechanism import (
    Composite,
    Fixed,
    Free,
    Link,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Translational,
    Universal,
)

KINDS = ("revolute", "prismatic", "screw", "fixed")
CHAINS = ("universal", "planar", "translational", "composite")
BALLS = ("spherical", "free")
COMPOUND = (*CHAINS, *BALLS)
MOVING = ("revolute", "prismatic", "screw")
COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def any_tree(examples=20, links=48):
    """Decorate a test of (seed, links): hypothesis' choice, and one small tree, which is all where the JIT is off."""

    def decorate(test):
        chosen = given(seed=st.integers(0, 2**32 - 1), links=st.integers(1, links))(example(seed=1, links=6)(test))
        phases = tuple(Phase) if COMPILED else (Phase.explicit,)
        return pytest.mark.nojit(settings(max_examples=examples, phases=phases)(chosen))

    return decorate


def random_rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def random_pose(rng, reach=0.7):
    pose = np.eye(4)
    pose[:3, :3] = random_rotation(rng)
    pose[:3, 3] = rng.normal(size=3) * reach
    return pose


def random_inertia(rng):
    points = rng.normal(size=(5, 3)) * 0.3
    return sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points)


def random_options(rng, terms, size=None):
    options = {"point": rng.normal(size=3) * 0.2}
    if terms:
        options |= {
            "damping": rng.uniform(0, 0.5, size),
            "friction": rng.uniform(0, 0.5, size),
            "friction_velocity": rng.uniform(0.2, 1.0, size),
            "armature": rng.uniform(0, 0.3, size),
            "stiffness": rng.uniform(0, 2.0, size),
            "rest": rng.normal(size=size),
        }
    return options


def random_joint(rng, kind, terms=True):
    if kind == "fixed":
        return Fixed()
    if kind == "universal":
        return Universal(rng.normal(size=(2, 3)), **random_options(rng, terms, 2))
    if kind == "planar":
        return Planar(random_rotation(rng)[:2], **random_options(rng, terms, 3))
    if kind == "translational":
        return Translational(random_rotation(rng) + 0.2 * rng.normal(size=(3, 3)), **random_options(rng, terms, 3))
    if kind == "spherical":
        return Spherical(**random_options(rng, terms, 3))
    if kind == "free":
        return Free(**random_options(rng, terms, 6))
    if kind == "composite":
        kinds = rng.choice(("revolute", "prismatic", "screw"), size=rng.integers(1, 4))
        return Composite([random_joint(rng, str(one), terms) for one in kinds])
    options = random_options(rng, terms)
    axis = rng.normal(size=3)
    if kind == "revolute":
        return Revolute(axis, **options)
    if kind == "prismatic":
        return Prismatic(axis, **options)
    return Screw(axis, rng.uniform(-0.4, 0.4), **options)


def random_mechanism(rng, links=6, kinds=KINDS, branching=0.5, terms=True, shuffled=True, gravity=True):
    """Return a random tree whose links come in random order and whose drive is random, one joint at least moving."""
    made = []
    for i in range(links):
        parent = None
        if i > 0 and not (i > 1 and rng.random() < 0.1):  # now and then one more link on the base
            parent = f"link{i - 1}" if rng.random() > branching else f"link{rng.integers(i)}"
        kind = "revolute" if i == 0 and "revolute" in kinds else str(rng.choice(kinds))
        com = rng.normal(size=3) * 0.3
        mass = rng.uniform(0.3, 2.0)
        made.append(
            Link(f"link{i}", parent, random_joint(rng, kind, terms), random_pose(rng), mass, com, random_inertia(rng))
        )
    if shuffled:
        made = [made[k] for k in rng.permutation(links)]
    names = [link.name for link in made if link.joint.dof]
    active = [name for name in names if rng.random() < 0.5]
    field = rng.normal(size=3) * 5 if gravity else np.zeros(3)
    return Mechanism(made, gravity=field, active=active)


def skew_arm(joints):
    """Return an arm of revolute joints no axis of which is parallel to another; the same one every time."""
    return random_mechanism(np.random.default_rng(joints), joints, kinds=("revolute",), branching=0.0, terms=False)


def random_state(rng, mech, samples=None):
    """Return q, qd, u of one sample, or of a batch."""
    shape = (mech.n,) if samples is None else (samples, mech.n)
    return rng.uniform(-2, 2, size=shape), rng.normal(size=shape), rng.normal(size=shape)


def random_loads(rng, mech, samples=None, wrench=True, base=True):
    """Return wrenches on all links and the motion of the base, as arguments by name; what is not wanted is left out."""
    lead = () if samples is None else (samples,)
    loads = {}
    if wrench:
        loads["wrench"] = rng.uniform(-5, 5, (*lead, len(mech.links), 6))
    if base:
        loads["base"] = tuple(rng.uniform(-2, 2, (2, *lead, 6)))
    return loads


def sample_of(loads, k):
    """Return the loads of sample k of a batch."""
    one = {}
    if "wrench" in loads:
        one["wrench"] = loads["wrench"][k]
    if "base" in loads:
        one["base"] = tuple(part[k] for part in loads["base"])
    return one


def partitions(rng, mech):
    """Return the mechanism under drives of every sort: none active, all, one, all but one, every other, some."""
    names, one = mech.names, mech.names[rng.integers(mech.n)]
    some = [name for name in names if rng.random() < 0.5]
    sets = {
        "none": [],
        "all": names,
        "one": [one],
        "all but one": [name for name in names if name != one],
        "every other": names[::2],
        "some": some,
    }
    return {sort: mech.with_drive(active=active) for sort, active in sets.items()}


def changed_links(mech, change):
    """Return the links with what `change(link)`, a mapping of fields, says otherwise of each."""
    links = []
    for link in mech.links:
        fields = ("name", "parent", "joint", "pose", "mass", "com", "inertia")
        kept = {field: getattr(link, field) for field in fields}
        links.append(Link(**{**kept, **change(link)}))
    return links


def in_a_row(mech):
    """Return the mechanism with its links, in the order in which they are listed, one upon the other."""
    names = [None, *(link.name for link in mech.links)]
    below = {link.name: parent for link, parent in zip(mech.links, names[:-1], strict=True)}
    return rebuilt(mech, lambda link: {"parent": below[link.name]})


def rebuilt(mech, change):
    """Return the mechanism with its links changed as in `changed_links`."""
    return Mechanism(changed_links(mech, change), gravity=mech.gravity, active=mech.active)
