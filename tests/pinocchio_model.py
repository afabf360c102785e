"""The same mechanism in Pinocchio, the oracle: joints depth first, as its derivatives require.

Pinocchio knows nothing of prescribed joints, of damping, friction and springs (here at least), and of a base that is
moved: the first is composed from its mass matrix and its inverse dynamics, the second is added, and the third is a
free-flying root joint whose motion is given. Its spatial vectors are (linear, angular), ours (angular, linear).
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from cstormpy.mechanism import Fixed, Free, Prismatic, Revolute, Universal


def swapped(x):
    """Return (..., 6) vectors with their halves exchanged."""
    return np.roll(x, 3, axis=-1)


class Oracle:
    """Pinocchio's model of a mechanism, with the order of coordinates carried over.

    With ``floating`` the base is a body on a free-flying joint, which stands at the identity: what a moving base needs.
    """

    def __init__(self, mech, floating=False):
        self.mech = mech
        self.model = pin.Model()
        self.model.gravity.linear = np.array(mech.gravity)
        self.frames = {}  # of each link: Pinocchio's joint that carries it, and the link's pose there
        self.lead = 6 if floating else 0  # velocities of the root before those of the joints
        root = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base") if floating else 0
        self.order = np.array(self._add_links(root), dtype=int)  # coordinate of each of Pinocchio's joints
        armature = np.zeros(self.model.nv)
        joints = [link.joint for link in mech.links]
        each = np.concatenate([np.broadcast_to(j.armature, j.dof) for j in joints if j.dof] or [np.zeros(0)])
        armature[self.lead :] = each[self.order]
        self.model.armature = armature
        self.data = self.model.createData()

    def _add_links(self, root):
        mech, order, children = self.mech, [], {}
        coordinate = {int(link): k for k, link in reversed([*enumerate(mech.joint_links)])}  # its first
        for i, parent in enumerate(mech.parents):
            children.setdefault(int(parent), []).append(i)
        stack = [(i, root, pin.SE3.Identity()) for i in reversed(children.get(-1, []))]
        while stack:
            i, joint_id, pose = stack.pop()
            link = mech.links[i]
            local = pose * pin.SE3(np.array(link.pose))
            if not isinstance(link.joint, Fixed):
                at_axis = pin.SE3(np.eye(3), np.array(getattr(link.joint, "point", (0.0, 0.0, 0.0))))
                joint_id = self.model.addJoint(joint_id, joint_model(link.joint), local * at_axis, f"joint{i}")
                order.extend(coordinate[i] + k for k in range(link.joint.dof))
                local = at_axis.inverse()
            inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
            self.model.appendBodyToJoint(joint_id, inertia, local)
            self.frames[i] = (joint_id, local)
            stack.extend((k, joint_id, local) for k in reversed(children.get(i, [])))
        return order

    # Orders ----------------------------------------------------------------------------------------------

    def to(self, x):
        """Return coordinates in Pinocchio's order."""
        return np.ascontiguousarray(np.asarray(x, dtype=float)[self.order])

    def back(self, x, *axes):
        """Return what Pinocchio ordered along the axes (all, unless said) in the mechanism's order."""
        x = np.asarray(x)
        for axis in axes or range(x.ndim):
            x = np.take(x, self.lead + np.argsort(self.order), axis)
        return x

    def position(self, q):
        return np.concatenate([[0.0] * 6 + [1.0], self.to(q)]) if self.lead else self.to(q)

    def rate(self, qd, base=None):
        """Return velocities, or accelerations, led by those of the base, (ω, v)."""
        if not self.lead:
            assert base is None, "a moving base needs floating=True"
            return self.to(qd)
        return np.concatenate([np.zeros(6) if base is None else swapped(base), self.to(qd)])

    def _state(self, q, qd, base):
        return self.position(q), self.rate(qd, None if base is None else base[0])

    # Torques in the joints -------------------------------------------------------------------------------

    def losses(self, q, qd):
        """Return damping, friction and spring torques, which Pinocchio's recursions do not know."""
        joints = [self.mech.joint(name) for name in self.mech.names]
        return np.array(
            [
                j.damping * v + j.friction * np.tanh(v / j.friction_velocity) + j.stiffness * (x - j.rest)
                for j, x, v in zip(joints, q, qd, strict=True)
            ]
        )

    def losses_by_q(self):
        """Return the derivative of the losses to q, as a diagonal."""
        return np.diag([self.mech.joint(name).stiffness for name in self.mech.names])

    def losses_by_qd(self, qd):
        """Return the derivative of the losses to q̇, as a diagonal."""
        joints = [self.mech.joint(name) for name in self.mech.names]
        slopes = [np.cosh(v / j.friction_velocity) ** -2.0 for j, v in zip(joints, qd, strict=True)]
        return np.diag([j.damping + j.friction / j.friction_velocity * s for j, s in zip(joints, slopes, strict=True)])

    def forces(self, wrench):
        """Return wrenches on links as Pinocchio's forces on joints."""
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero()] * self.model.njoints)
        if wrench is not None:
            for i, (joint_id, local) in self.frames.items():
                if joint_id > 0:
                    forces[joint_id] += local.act(pin.Force(swapped(wrench[i])))
        return forces

    # Dynamics --------------------------------------------------------------------------------------------

    def inverse_dynamics(self, q, qd, qdd, wrench=None, base=None):
        acceleration = self.rate(qdd, None if base is None else base[1])
        tau = pin.rnea(self.model, self.data, *self._state(q, qd, base), acceleration, self.forces(wrench))
        return self.back(tau) + self.losses(q, qd)

    def forward_dynamics(self, q, qd, tau, wrench=None):
        """Return accelerations by Pinocchio's articulated body algorithm."""
        tau = self.to(np.asarray(tau) - self.losses(q, qd))
        return self.back(pin.aba(self.model, self.data, *self._state(q, qd, None), tau, self.forces(wrench)))

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.position(q))
        return self.back(symmetric(M))

    def hybrid_dynamics(self, q, qd, u, wrench=None, base=None):
        """Return y: accelerations from the passive block of the mass matrix, then torques from the inverse dynamics."""
        p, M, qdd = ~self.mech.active_mask, self.mass_matrix(q), np.where(self.mech.active_mask, u, 0.0)
        known = self.inverse_dynamics(q, qd, qdd, wrench, base)
        qdd[p] = np.linalg.solve(M[np.ix_(p, p)], (u - known)[p])
        tau = self.inverse_dynamics(q, qd, qdd, wrench, base)
        return np.where(p, qdd, tau)

    def inverse_derivatives(self, q, qd, qdd, wrench=None):
        """Return ∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈."""
        state = self._state(q, qd, None)
        dq, dqd, M = pin.computeRNEADerivatives(self.model, self.data, *state, self.to(qdd), self.forces(wrench))
        return self.back(dq) + self.losses_by_q(), self.back(dqd) + self.losses_by_qd(qd), self.back(symmetric(M))

    def forward_derivatives(self, q, qd, tau, wrench=None):
        """Return ∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ."""
        tau = self.to(np.asarray(tau) - self.losses(q, qd))
        state = self._state(q, qd, None)
        dq, dqd, inverse = pin.computeABADerivatives(self.model, self.data, *state, tau, self.forces(wrench))
        inverse = self.back(symmetric(inverse))
        return (
            self.back(dq) - inverse @ self.losses_by_q(),
            self.back(dqd) - inverse @ self.losses_by_qd(qd),
            inverse,
        )

    def hybrid_derivatives(self, q, qd, u, wrench=None):
        """Return ∂y/∂q, ∂y/∂q̇ and ∂y/∂u, from the derivatives of the inverse dynamics and the passive block."""
        a = self.mech.active_mask
        p = ~a
        y = self.hybrid_dynamics(q, qd, u, wrench)
        *by_state, M = self.inverse_derivatives(q, qd, np.where(a, u, y), wrench)
        given = np.zeros_like(M)
        given[:, a] = M[:, a]
        given[p, p] = -1.0
        answers = []
        for columns in (*by_state, given):
            answer = columns.copy()
            answer[p] = -np.linalg.solve(M[np.ix_(p, p)], columns[p])
            answer[a] += M[np.ix_(a, p)] @ answer[p]
            answers.append(answer)
        return answers

    # Kinematics, energy ----------------------------------------------------------------------------------

    def _forward(self, q, qd, base=None):
        pin.forwardKinematics(self.model, self.data, *self._state(q, qd, base))

    def poses(self, q):
        """Return the poses of all links, (n_links, 4, 4)."""
        self._forward(q, np.zeros(len(q)))
        return np.array([(self.data.oMi[j] * local).homogeneous for _, (j, local) in sorted(self.frames.items())])

    def twists(self, q, qd, base=None):
        """Return the body twists of all links, (n_links, 6), in our order (ω, v)."""
        self._forward(q, qd, base)
        return np.array([swapped(local.actInv(self.data.v[j]).vector) for _, (j, local) in sorted(self.frames.items())])

    def jacobian(self, q, qd, link):
        """Return the body Jacobian of a link and its rate, (6, n) each, in our order (ω, v)."""
        joint_id, local = self.frames[link]
        if joint_id == 0:
            return np.zeros((6, len(q))), np.zeros((6, len(q)))
        pin.computeJointJacobiansTimeVariation(self.model, self.data, *self._state(q, qd, None))
        J = pin.getJointJacobian(self.model, self.data, joint_id, pin.LOCAL)
        dJ = pin.getJointJacobianTimeVariation(self.model, self.data, joint_id, pin.LOCAL)
        X = local.toActionMatrixInverse()
        return tuple(swapped(self.back(X @ matrix.reshape(6, -1), 1).T).T for matrix in (J, dJ))

    def kinetic_energy(self, q, qd, base=None):
        return pin.computeKineticEnergy(self.model, self.data, *self._state(q, qd, base))

    def potential_energy(self, q):
        """Return that of gravity alone."""
        return pin.computePotentialEnergy(self.model, self.data, self.position(q))

    def momentum(self, q, qd, base=None):
        """Return the momentum at and in the base's frame, (angular, linear)."""
        h = pin.computeCentroidalMomentum(self.model, self.data, *self._state(q, qd, base))
        return swapped(pin.SE3(np.eye(3), self.data.com[0]).act(h).vector)

    def center_of_mass(self, q):
        return pin.centerOfMass(self.model, self.data, self.position(q)).copy()


def symmetric(M):
    """Return the whole of a matrix of which Pinocchio fills the upper half only."""
    return np.triu(M) + np.triu(M, 1).T


def joint_model(joint):
    if isinstance(joint, Free):
        return pin.JointModelFreeFlyer()
    if isinstance(joint, Universal):
        return pin.JointModelUniversal(*map(np.array, joint.axes))
    axis = np.array(joint.axis)
    if isinstance(joint, Revolute):
        return pin.JointModelRevoluteUnaligned(axis)
    if isinstance(joint, Prismatic):
        return pin.JointModelPrismaticUnaligned(axis)
    return pin.JointModelHelicalUnaligned(axis, joint.pitch)


def in_body_axes(mech, q, qd, qdd):
    """Return rates and accelerations as Pinocchio has them, and the map E from q̇ to its rates."""
    E, bias = np.eye(mech.n), np.zeros(mech.n)
    for link in mech.links:
        at = mech.coordinates(link.joint_name)
        if any(link.joint.balls):
            rows = [3, 4, 5, 0, 1, 2][-link.joint.dof :] if link.joint.dof == 6 else [0, 1, 2]
            E[at, at] = link.joint.subspace(q[at])[rows]
            bias[at] = (link.joint.subspace_rate(q[at], qd[at]) @ qd[at])[rows]
    return E @ qd, E @ qdd + bias, E, bias
