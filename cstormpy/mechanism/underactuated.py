"""Ready mechanisms with fewer motors than joints, as students balance them: cart-pole, pendubot, Furuta pendulum.

Each has one motor, in its first joint, and a pendulum behind it whose angle is measured from the horizontal, so that
-pi/2 hangs and +pi/2 is upright; that of the pendubot is relative to its first link, as in the acrobot. Gravity acts
along -y.
"""

from __future__ import annotations

import numpy as np

from cstormpy import checks
from cstormpy.arguments import option
from cstormpy.linkage.joints import Prismatic, Revolute
from cstormpy.linkage.links import Link
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.planar import two_rods, uniform_rod

# (lengths, centres of mass from the joint, masses, inertias about the joints, damping)
_PENDUBOTS = {
    "design_C.1": (
        (0.2, 0.3),
        (0.2, 0.25569305436052964),
        (0.5234602302310271, 0.6255677234174437),
        (0.031887199591513114, 0.05086984812807257),
        0.0,
    ),
    "design_A.0": (
        (0.3, 0.2),
        (0.3, 0.18377686083653508),
        (0.5593806151425046, 0.6043459469186889),
        (0.053470810264216295, 0.02392374528789766),
        0.0,
    ),
    "teaching": ((1.0, 2.0), (0.5, 1.0), (1.0, 1.0), (0.083 + 0.25, 0.33 + 1.0), 0.1),
}

# (lengths, centres of mass from the joint, masses, inertias about the centres of mass, damping)
_FURUTAS = {
    "cazzolato": ((0.278, 0.300), (0.150, 0.148), (0.300, 0.075), (2.48e-2, 3.86e-3), (1.00e-4, 2.80e-4)),
    "qube": (
        (0.085, 0.129),
        (0.0425, 0.0645),
        (0.095, 0.024),
        (0.095 * 0.085**2 / 12.0, 0.024 * 0.129**2 / 12.0),
        (2.7e-4, 5.0e-5),
    ),
}


def cart_pole(
    *, cart_mass: float = 1.0, mass: float = 0.1, length: float = 1.0, friction: float = 0.0, damping: float = 0.0
) -> Mechanism:
    """Return a cart on a level track with a pole, a uniform rod, on a hinge; the motor drives the cart.

    Parameters
    ----------
    cart_mass, mass, length : float
        Of the cart and of the pole [kg, kg, m].
    friction : float
        Damping of the cart on its track [N s/m].
    damping : float
        Of the hinge [N m s/rad].

    Notes
    -----
    Masses and length are those of Barto, Sutton and Anderson (1983), "Neuronlike adaptive elements that can solve
    difficult learning control problems", which the CartPole environment of Gymnasium has too.

    Examples
    --------
    >>> cart_pole().names, cart_pole().actuated
    (('cart', 'pole'), ('cart',))
    """
    size = checks.positive(length, "length")
    track = Prismatic((1, 0, 0), damping=checks.nonnegative(friction, "friction"), name="cart")
    cart = Link("cart", None, track, mass=checks.positive(cart_mass, "cart_mass"))
    return Mechanism([cart, uniform_rod("pole", "cart", "pole", 0.0, size, mass, damping)], actuated=["cart"])


def pendubot(parameters: str = "design_C.1") -> Mechanism:
    """Return the pendubot: two links, a motor in the shoulder only, nothing active.

    Parameters
    ----------
    parameters : {"design_C.1", "design_A.0", "teaching"}
        "design_C.1" and "design_A.0": two double pendulums of DFKI without friction, 0.2 and 0.3 m long, and 0.3 and
        0.2 m. "teaching": the acrobot of that name with its motor in the shoulder.

    Raises
    ------
    UnknownName
        If there is no such parameter set.

    Notes
    -----
    The double pendulums of DFKI: F. Wiebe et al., "Open source dual-purpose acrobot and pendubot platform: benchmarking
    control algorithms for underactuated robotics", IEEE Robotics and Automation Magazine, 2023; the numbers are
    those identified for design C.1, model 1.1, with which its competitions are held, and design A.0, model 2.1. The
    motors of these give at most 6 N m.

    Examples
    --------
    >>> pendubot().actuated, pendubot().active
    (('shoulder',), ())
    """
    given = _PENDUBOTS[option(parameters, "pendubot parameter set", _PENDUBOTS)]
    lengths, coms, masses, inertias, damping = given
    central = [inertia - mass * com**2 for inertia, mass, com in zip(inertias, masses, coms, strict=True)]
    return Mechanism(two_rods(lengths[0], coms, masses, central, damping=damping), actuated=["shoulder"])


def furuta(parameters: str = "cazzolato") -> Mechanism:
    """Return the pendulum of Furuta: an arm that turns about the vertical y axis, and a pendulum at its end.

    The pendulum turns about the arm; at q2 = 0 it is level. The motor drives the arm.

    Parameters
    ----------
    parameters : {"cazzolato", "qube"}
        "cazzolato": an arm of 0.278 m and a pendulum of 0.3 m. "qube": the much smaller Qube Servo 2 of Quanser, whose
        motor gives about 0.05 N m.

    Raises
    ------
    UnknownName
        If there is no such parameter set.

    Notes
    -----
    "cazzolato" is Table 1 of B. S. Cazzolato and Z. Prime, "On the dynamics of the Furuta pendulum", Journal of Control
    Science and Engineering, 2011; as there, links have no inertia about their own axis.

    Examples
    --------
    >>> furuta().names, furuta().actuated
    (('arm', 'pendulum'), ('arm',))
    """
    given = _FURUTAS[option(parameters, "furuta parameter set", _FURUTAS)]
    lengths, coms, masses, inertias, damping = given
    turn = Revolute((0, 1, 0), damping=damping[0], name="arm")
    swing = Revolute((-1, 0, 0), damping=damping[1], name="pendulum")
    end = np.eye(4)
    end[0, 3] = lengths[0]
    about = np.diag([1.0, 1.0, 0.0]) * inertias[1]
    arm = Link("arm", None, turn, mass=masses[0], com=(coms[0], 0, 0), inertia=np.diag([0.0, 1.0, 1.0]) * inertias[0])
    pendulum = Link("pendulum", "arm", swing, end, masses[1], (0, 0, coms[1]), about)
    return Mechanism([arm, pendulum], actuated=["arm"])
