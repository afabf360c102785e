"""The arm of two links of Xiang, Arora and Abdel-Malek (2008): torques and their derivatives in closed form."""

import numpy as np


def xiang_torque(t1, t2, w1, w2, a1, a2, f):
    """Xiang, Arora and Abdel-Malek (2008), (69) and (70), with the numbers of their Table 1."""
    L1, L2, l1, l2, m1, m2, I1, I2, g = 0.4, 0.4, 0.2, 0.2, 0.5, 0.5, 0.1, 0.1, 9.8062
    s2, c1, c2, c12 = np.sin(t2), np.cos(t1), np.cos(t2), np.cos(t1 + t2)
    M22 = I2 + m2 * l2**2
    M12 = M22 + m2 * L1 * l2 * c2
    M11 = I1 + I2 + m1 * l1**2 + m2 * (L1**2 + l2**2 + 2 * L1 * l2 * c2)
    far = (m2 * g * l2 + f * L2) * c12
    near = (m1 * g * l1 + m2 * g * L1 + f * L1) * c1
    tau1 = M11 * a1 + M12 * a2 - m2 * L1 * l2 * s2 * (2 * w1 * w2 + w2**2) + far + near  # (69)
    tau2 = M12 * a1 + M22 * a2 + m2 * L1 * l2 * s2 * w1**2 + far  # (70)
    return np.array([tau1, tau2])


def xiang_sensitivity(t1, t2, w1, w2, a1, a2, f):
    """Xiang, Arora and Abdel-Malek (2008), (71)-(82): ∂τ/∂θ with the load fixed in space, ∂τ/∂θ̇, ∂τ/∂θ̈."""
    L1, L2, l1, l2, m1, m2, I1, I2, g = 0.4, 0.4, 0.2, 0.2, 0.5, 0.5, 0.1, 0.1, 9.8062
    s1, s2, c2, s12, k = np.sin(t1), np.sin(t2), np.cos(t2), np.sin(t1 + t2), m2 * L1 * l2
    tip = -m2 * g * l2 * s12 - f * L2 * s12
    to_q = [
        [
            tip - m1 * g * l1 * s1 - m2 * g * L1 * s1 - f * L1 * s1,  # (71)
            -2 * k * s2 * a1 - k * s2 * a2 - 2 * k * w1 * w2 * c2 - k * w2**2 * c2 + tip,  # (72)
        ],
        [tip, -k * s2 * a1 + k * w1**2 * c2 + tip],  # (77), (78)
    ]
    to_qd = [
        [-2 * k * w2 * s2, -2 * k * w1 * s2 - 2 * k * w2 * s2],  # (73), (74)
        [2 * k * w1 * s2, 0.0],  # (79), (80)
    ]
    coupling = I2 + m2 * l2**2 + k * c2
    to_qdd = [
        [I1 + I2 + m1 * l1**2 + m2 * (L1**2 + l2**2 + 2 * L1 * l2 * c2), coupling],  # (75), (76)
        [coupling, I2 + m2 * l2**2],  # (81), (82)
    ]
    return np.array(to_q), np.array(to_qd), np.array(to_qdd)
