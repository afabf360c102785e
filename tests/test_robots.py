"""Robots as they are published: the URDF files of example-robot-data, as Pinocchio reads the same files.

Pinocchio has quaternions where a mechanism has rotation vectors, and of free bodies the twist in their own axes where
it has the rates of its coordinates: velocities are v = V(q) q̇, accelerations V q̈ + V̇ q̇, torques Vᵀ τ.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re

import numpy as np
import pytest

from cstormpy.errors import FileFormatError, InvalidValue, SingularInertia
from cstormpy.mechanism import Mechanism

pytestmark = pytest.mark.slow
pin = pytest.importorskip("pinocchio")


def robots():
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(file.locate() for file in files if file.suffix == ".urdf")


ROBOTS = robots()
COUNT = 69
EMPTY = ("ur3",)
"""Macros alone, without a link: Pinocchio refuses it, too."""


def test_all_are_there():
    if not ROBOTS:
        pytest.skip("example-robot-data is not installed: pip install 'cstormpy[robots]'")
    assert len(ROBOTS) >= COUNT


def close(got, want, tol=1e-10):
    want = np.asarray(want)
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * (1 + np.abs(want).max(initial=0)))


class Robot:
    """Pinocchio's reading of a file, with its coordinates by the names of the joints."""

    def __init__(self, path, mech, floating):
        root = (pin.JointModelFreeFlyer(),) if floating else ()
        self.model = pin.buildModelFromUrdf(str(path), *root)
        self.model.armature[:] = 0.0
        self.data, self.mech = self.model.createData(), mech
        self.joints, self.order = [], np.zeros(mech.n, dtype=int)
        for link in mech.links:
            at = mech.coordinates(link.joint_name)
            if at.stop > at.start:
                name = link.joint_name if self.model.existJointName(link.joint_name) else "root_joint"
                joint = self.model.joints[self.model.getJointId(name)]
                assert joint.nv == at.stop - at.start
                self.joints.append((link, at, joint))
                self.order[at] = joint.idx_v + np.arange(joint.nv)
        assert sorted(self.order) == list(range(self.model.nv))

    def position(self, q):
        x = pin.neutral(self.model)
        for link, at, joint in self.joints:
            to = slice(joint.idx_q, joint.idx_q + joint.nq)
            if joint.nv == 6:
                X = link.joint.motion(q[at])
                x[to] = pin.SE3ToXYZQUAT(pin.SE3(X))
            elif joint.nq == 2:
                x[to] = np.cos(q[at.start]), np.sin(q[at.start])
            else:
                x[to] = q[at]
        return x

    def rates(self, q, qd=None):
        """Return V(q), or V̇(q, q̇), rows in the order of the mechanism; complex numbers too."""
        V = np.eye(len(q), dtype=np.result_type(q)) if qd is None else np.zeros((len(q),) * 2, np.result_type(q, qd))
        for link, at, joint in self.joints:
            if joint.nv == 6:
                S = link.joint.subspace(q[at]) if qd is None else link.joint.subspace_rate(q[at], qd[at])
                V[at, at] = np.roll(S, 3, axis=0)
        return V

    def by_q(self, function, q):
        """Return the derivative of a function of q along each coordinate, by a complex step."""
        columns = [np.zeros_like(function(q)) for _ in q]
        for _, at, joint in self.joints:
            if joint.nv == 6:
                for k in range(at.start, at.stop):
                    columns[k] = function(q + 1e-30j * np.eye(len(q))[k]).imag * 1e30
        return np.stack(columns, axis=-1)

    def to(self, v):
        x = np.zeros(self.model.nv)
        x[self.order] = v
        return x

    def back(self, x):
        x = np.asarray(x)
        for axis in range(x.ndim):
            x = np.take(x, self.order, axis)
        return x

    def state(self, q, qd, qdd):
        V = self.rates(q)
        return self.position(q), self.to(V @ qd), self.to(V @ qdd + self.rates(q, qd) @ qd)

    def inverse_dynamics(self, q, qd, qdd):
        return self.rates(q).T @ self.back(pin.rnea(self.model, self.data, *self.state(q, qd, qdd)))

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.position(q))
        V = self.rates(q)
        return V.T @ self.back(np.triu(M) + np.triu(M, 1).T) @ V

    def forward_dynamics(self, q, qd, tau):
        x, v, _ = self.state(q, qd, 0.0 * qd)
        V = self.rates(q)
        a = self.back(pin.aba(self.model, self.data, x, v, self.to(np.linalg.solve(V.T, tau))))
        return np.linalg.solve(V, a - self.rates(q, qd) @ qd)

    def inverse_derivatives(self, q, qd, qdd):
        """Return ∂τ/∂q and ∂τ/∂q̇, by the chain rule through V(q)."""
        x, v, a = self.state(q, qd, qdd)
        force = self.back(pin.rnea(self.model, self.data, x, v, a))
        by_x, by_v, by_a = map(self.back, pin.computeRNEADerivatives(self.model, self.data, x, v, a))
        by_a = np.triu(by_a) + np.triu(by_a, 1).T if np.allclose(np.tril(by_a, -1), 0) else by_a
        V, rate = self.rates(q), self.rates(q, qd)
        speed = self.by_q(lambda q: self.rates(q) @ qd, q)
        by_q = by_x @ V + by_v @ speed
        by_q = by_q + by_a @ self.by_q(lambda q: self.rates(q) @ qdd + self.rates(q, qd) @ qd, q)
        # V̇ q̇ is quadratic in q̇: its derivative by q̇ along w is V̇(q, w) q̇ + V̇(q, q̇) w.
        swing = np.stack([self.rates(q, w) @ qd for w in np.eye(len(q))], axis=-1)
        first = V.T @ by_q + self.by_q(lambda q: self.rates(q).T @ force, q)
        return first, V.T @ (by_v @ V + by_a @ (swing + rate))

    def jacobian(self, q, link):
        frame = self.model.getFrameId(link, pin.BODY)
        J = pin.computeFrameJacobian(self.model, self.data, self.position(q), frame, pin.LOCAL)
        return np.roll(J.reshape(6, -1), 3, axis=0)[:, self.order] @ self.rates(q)


@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "free"])
@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_pinocchio_reads_the_same_robot(path, floating):
    if path.stem in EMPTY:
        with pytest.raises(FileFormatError, match="<robot> has no links"):
            Mechanism.from_urdf(path, floating)
        return
    mech = Mechanism.from_urdf(path, floating)
    robot, rng = Robot(path, mech, floating), np.random.default_rng(3)
    if not mech.n:
        return
    mech = mech.with_parameters({f"{n}.{key}": 0.0 for n, j in zip(mech.names, mech.freedoms, strict=True)
                                 for key in ("damping", "friction") if getattr(j, key)})  # fmt: skip
    q, qd, qdd = rng.uniform(-1, 1, (3, mech.n))
    for link in mech.links[:: max(1, len(mech.links) // 5)]:
        close(mech.jacobian(q, link.name), robot.jacobian(q, link.name))
    tau = robot.inverse_dynamics(q, qd, qdd)
    close(mech.inverse_dynamics(q, qd, qdd), tau)
    M = robot.mass_matrix(q)
    close(mech.mass_matrix(q), M)
    by_q, by_qd = robot.inverse_derivatives(q, qd, qdd)
    d = mech.inverse_sensitivity(q, qd, qdd)
    close(d.dy_dq, by_q)
    close(d.dy_dqd, by_qd)
    condition = np.linalg.cond(M)
    if condition > 1e12:  # a link that moves without a mass
        with pytest.raises(SingularInertia):
            mech.forward_dynamics(q, qd, tau)
        return
    close(mech.forward_dynamics(q, qd, tau), robot.forward_dynamics(q, qd, tau), 1e-13 * max(condition, 1e3))
    compare_hybrid(mech, rng, (q, qd, qdd, tau), (by_q, by_qd, M))


@pytest.mark.parametrize("path", [path for path in ROBOTS if path.stem not in EMPTY], ids=lambda path: path.stem)
def test_mujoco_reads_the_robot_that_is_written(path):
    """Without friction, which it has as a constraint; where links have no mass, with those that the error names."""
    compare = pytest.importorskip("mujoco_model").compare
    mech = Mechanism.from_urdf(path)
    mech = mech.with_parameters({f"{name}.friction": 0.0 for name in mech.names if "[" not in name})
    try:
        text = mech.to_mjcf()
    except InvalidValue as why:
        masses = re.search(r"mech\.with_parameters\((\{.*\})\)$", str(why))
        text = mech.with_parameters(ast.literal_eval(masses[1])).to_mjcf()
    compare(text, np.random.default_rng(1))


def compare_hybrid(mech, rng, state, derivatives):
    """Compare hybrid dynamics and sensitivities with what follows from the inverse dynamics and its derivatives."""
    (q, qd, qdd, tau), (by_q, by_qd, M) = state, derivatives
    joints = [link.joint_name for link in mech.links if link.joint.dof]
    driven = mech.with_drive(actuated=joints, active=rng.choice(joints, size=len(joints) // 2, replace=False).tolist())
    active, passive = driven.active_mask, ~driven.active_mask
    inner = M[np.ix_(passive, passive)]
    tol = 1e-13 * max(np.linalg.cond(inner) if passive.any() else 1.0, 1e3)
    u = np.where(active, qdd, tau)
    r = driven.hybrid_dynamics(q, qd, u)
    close(r.qdd, qdd, tol)
    close(r.tau, tau, tol)
    d = driven.hybrid_sensitivity(q, qd, u)
    given = np.zeros_like(M)
    given[:, active] = M[:, active]
    given[passive, passive] = -1.0
    for got, columns in ((d.dy_dq, by_q), (d.dy_dqd, by_qd), (d.dy_du, given)):
        want = columns.copy()
        want[passive] = -np.linalg.solve(inner, columns[passive])
        want[active] += M[np.ix_(active, passive)] @ want[passive]
        close(got, want, tol)
