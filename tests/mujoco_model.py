"""The same model in MuJoCo, the oracle of what is read from its files.

MuJoCo has quaternions where a mechanism has rotation vectors, and the angular velocity in the body's axes where it has
their rate; of a free joint the place in the world where it has the way from the body's place in the file. So velocities
are q̇' = V(q) q̇, accelerations V q̈ + V̇ q̇, and generalized forces Vᵀτ'.
"""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close

from cstormpy.mechanism.mjcf import from_mjcf

mujoco = pytest.importorskip("mujoco", reason="MuJoCo has no wheels for this Python")


class Oracle:
    """MuJoCo's reading of a model, without constraints, and the coordinates of a mechanism carried over to it."""

    def __init__(self, text, mech):
        self.model = mujoco.MjModel.from_xml_string(text)
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data, self.mech = mujoco.MjData(self.model), mech
        assert self.model.nv == mech.n

    def _joints(self):
        """Go through the moving links with their coordinates, in the order of both."""
        at = 0
        for link in self.mech.links:
            if link.joint.dof:
                yield link, slice(at, at + link.joint.dof)
                at += link.joint.dof

    def position(self, q):
        x = []
        for link, at in self._joints():
            balls = link.joint.dof in (3, 6)
            if link.joint.dof == 6:
                x += (link.pose[:3, 3] + link.pose[:3, :3] @ q[at][:3]).tolist()
            if balls:
                # A ball's quaternion is of its own turn, a free body's of its attitude in the world.
                R = link.joint.motion(q[at])[:3, :3]
                quaternion = np.zeros(4)
                mujoco.mju_mat2Quat(quaternion, (link.pose[:3, :3] @ R if link.joint.dof == 6 else R).reshape(-1))
                x += quaternion.tolist()
            else:
                x += q[at].tolist()
        return np.array(x)

    def rates(self, q, qd=None):
        """Return V(q), or V̇."""
        V = np.eye(self.mech.n) if qd is None else np.zeros((self.mech.n, self.mech.n))
        for link, at in self._joints():
            joint = link.joint
            if joint.dof == 1:
                continue
            turn = (joint.subspace(q[at]) if qd is None else joint.subspace_rate(q[at], qd[at]))[:3]
            V[at, at] = 0.0
            if joint.dof == 6:
                V[at.start : at.start + 3, at.start : at.start + 3] = link.pose[:3, :3] if qd is None else 0.0
            V[at.stop - 3 : at.stop, at] = turn
        return V

    def inverse_dynamics(self, q, qd, qdd):
        V = self.rates(q)
        self.data.qpos, self.data.qvel = self.position(q), V @ qd
        self.data.qacc = V @ qdd + self.rates(q, qd) @ qd
        mujoco.mj_inverse(self.model, self.data)
        return V.T @ self.data.qfrc_inverse

    def mass_matrix(self, q):
        self.data.qpos = self.position(q)
        mujoco.mj_forward(self.model, self.data)
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        V = self.rates(q)
        return V.T @ M @ V

    def pose(self, q, link):
        """Return the pose of a body in the world."""
        self.data.qpos = self.position(q)
        mujoco.mj_kinematics(self.model, self.data)
        k = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, link)
        X = np.eye(4)
        X[:3, :3], X[:3, 3] = self.data.xmat[k].reshape(3, 3), self.data.xpos[k]
        return X

    def twist(self, q, qd, link):
        """Return the body twist (ω, v) of a body."""
        self.data.qpos, self.data.qvel = self.position(q), self.rates(q) @ qd
        mujoco.mj_forward(self.model, self.data)
        velocity = np.zeros(6)
        k = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, link)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_XBODY, k, velocity, 1)
        return velocity


def compare(text, rng):
    """Compare inverse dynamics, mass matrix, poses and twists with those that MuJoCo finds in the same text."""
    mech = from_mjcf(text)
    oracle = Oracle(text, mech)
    if not mech.n:
        return
    q, qd, qdd = rng.uniform(-1, 1, (3, mech.n))
    assert_close(mech.gravity, oracle.model.opt.gravity, 1e-9)
    assert_close(mech.inverse_dynamics(q, qd, qdd), oracle.inverse_dynamics(q, qd, qdd), 1e-9)
    assert_close(mech.mass_matrix(q), oracle.mass_matrix(q), 1e-9)
    X, named = mech.forward_kinematics(q), [oracle.model.body(k).name for k in range(1, oracle.model.nbody)]
    for name in named:
        assert_close(X[mech.link_index(name)], oracle.pose(q, name), 1e-9)
    assert_close(mech.jacobian(q, named[-1]) @ qd, oracle.twist(q, qd, named[-1]), 1e-9)
