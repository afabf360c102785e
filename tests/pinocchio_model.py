"""The same mechanism in Pinocchio, the oracle: joints depth first, as its derivatives require."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from cstormpy.mechanism import Fixed, Prismatic, Revolute


class Oracle:
    """Pinocchio's model of a mechanism, with the order of coordinates carried over."""

    def __init__(self, mech):
        self.mech = mech
        self.model = pin.Model()
        self.model.gravity.linear = np.array(mech.gravity)
        self.order = []  # coordinate of each of Pinocchio's joints
        self.frames = {}
        coordinate = {int(link): k for k, link in enumerate(mech.joint_links)}
        children = {}
        for i, parent in enumerate(mech.parents):
            children.setdefault(int(parent), []).append(i)
        stack = [(i, 0, pin.SE3.Identity()) for i in reversed(children.get(-1, []))]
        while stack:
            i, joint_id, pose = stack.pop()
            link = mech.links[i]
            placement = pose * pin.SE3(np.array(link.pose))
            local = pin.SE3.Identity()
            if not isinstance(link.joint, Fixed):
                at_axis = pin.SE3(np.eye(3), np.array(link.joint.point))
                joint_id = self.model.addJoint(joint_id, _joint(link.joint), placement * at_axis, f"joint{i}")
                self.order.append(coordinate[i])
                local = at_axis.inverse()
            else:
                local = placement
            inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
            self.model.appendBodyToJoint(joint_id, inertia, local)
            self.frames[i] = (joint_id, local)
            stack.extend((k, joint_id, local) for k in reversed(children.get(i, [])))
        for k, c in enumerate(self.order):
            self.model.armature[k] = mech.links[mech.joint_links[c]].joint.armature
        self.data = self.model.createData()
        self.order = np.array(self.order, dtype=int)

    def to(self, x):
        """Return coordinates in Pinocchio's order."""
        return np.ascontiguousarray(np.asarray(x)[self.order])

    def back(self, x):
        """Return what Pinocchio ordered (rows, and columns of a matrix) in the mechanism's order."""
        x = np.asarray(x)
        out = np.empty_like(x)
        if x.ndim == 1:
            out[self.order] = x
        else:
            out[np.ix_(self.order, self.order)] = x
        return out

    def losses(self, q, qd):
        """Return damping, friction and spring torques, which Pinocchio's recursions do not know."""
        joints = [self.mech.links[i].joint for i in self.mech.joint_links]
        return np.array(
            [
                j.damping * v + j.friction * np.tanh(v / j.friction_velocity) + j.stiffness * (x - j.rest)
                for j, x, v in zip(joints, q, qd, strict=True)
            ]
        )

    def forces(self, wrench):
        """Return wrenches on links as Pinocchio's forces on joints."""
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero()] * self.model.njoints)
        for i, (joint_id, local) in self.frames.items():
            if joint_id > 0:
                forces[joint_id] += local.act(pin.Force(np.r_[wrench[i, 3:], wrench[i, :3]]))
        return forces

    def inverse_dynamics(self, q, qd, qdd, wrench=None):
        args = [self.model, self.data, self.to(q), self.to(qd), self.to(qdd)]
        tau = pin.rnea(*args) if wrench is None else pin.rnea(*args, self.forces(wrench))
        return self.back(tau) + self.losses(q, qd)

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.to(q))
        return self.back(np.triu(M) + np.triu(M, 1).T)


def _joint(joint):
    axis = np.array(joint.axis)
    if isinstance(joint, Revolute):
        return pin.JointModelRevoluteUnaligned(axis)
    if isinstance(joint, Prismatic):
        return pin.JointModelPrismaticUnaligned(axis)
    return pin.JointModelHelicalUnaligned(axis, joint.pitch)
