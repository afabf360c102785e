"""A mechanism told in other units of length, mass and time."""

import numpy as np

import cstormpy as cs


def in_units(mech, L, M, T):
    """Return the mechanism told in such units, as parts of these, and its scales of q."""
    content = mech.to_dict()
    content["gravity"] = [x * L / T**2 for x in content["gravity"]]
    content.setdefault("actuated", list(mech.actuated))
    poses = [(link, "pose") for link in content["links"]]
    poses += [(loop, end) for loop in content.get("loops", ()) for end in ("pose_a", "pose_b")]
    for owner, key in poses:
        if key in owner:
            owner[key] = [[*row[:3], row[3] * (L if k < 3 else 1.0)] for k, row in enumerate(owner[key])]
    for link, made in zip(content["links"], mech.links, strict=True):
        link["mass"] = M * link.get("mass", 0.0)
        link["com"] = [L * x for x in link.get("com", (0.0, 0.0, 0.0))]
        link["inertia"] = (M * L**2 * np.array(link.get("inertia", np.zeros((3, 3))))).tolist()
        units = np.array([1.0 if joint.turns else L for joint in mech.freedoms[mech.coordinates(made.joint_name)]])
        _tell(link["joint"], units, L, M * L**2, T)
    return cs.Mechanism.from_dict(content), np.array([1.0 if joint.turns else L for joint in mech.freedoms])


def _tell(joint, units, length, work, T):
    """Tell the numbers of a joint in such units, of work (M L²) and so on, given those of its coordinates."""
    factors = {
        "rest": units,
        "friction_velocity": units / T,
        "friction": work / T**2 / units,
        "damping": work / T / units**2,
        "armature": work / units**2,
        "stiffness": work / T**2 / units**2,
    }
    of_limits = {"position": units, "velocity": units / T, "torque": factors["friction"]}
    for key in factors.keys() & joint.keys():
        told = np.multiply(joint[key], factors[key])
        joint[key] = told.tolist() if np.ndim(joint[key]) else float(told[0])
    if "limits" in joint:
        each = joint["limits"] if isinstance(joint["limits"], list) else [joint["limits"]]
        for k, limits in enumerate(each):
            for key in (limits or {}).keys() & of_limits.keys():
                low_high = np.atleast_1d(limits[key])  # None where there is no limit
                told = [None if end is None else float(end * of_limits[key][k]) for end in low_high]
                limits[key] = told if np.ndim(limits[key]) else told[0]
    for key in {"point", "pitch"} & joint.keys():
        joint[key] = np.multiply(joint[key], length).tolist()
