"""Layout of the arrays of the kernels.

A mechanism reaches the kernels as two arrays: the numbers ``T`` and the structure ``N``. Its moving parts
are *nodes*, one for each degree of freedom, numbered depth first from 1; node 0 is the base. A link on a
fixed joint belongs to the node that carries it. A node's frame has its origin on the joint's axis and its
z axis along it, so that every joint is a turn about, or a slide along, its own z.

Scratch memory ``W`` counts in numbers (see `lanes`): a row for each node, the base included, first of
`ROW` numbers for the dynamics, then, where sensitivities are wanted, rows of `CF_ROW` numbers for the
closed forms, then the matrices. Between the rows of the dynamics and of the closed forms stand the loads on
the links: `WRENCH` numbers for each, then `DEAD` for each where some keep their direction in space; and behind
them `CHART` numbers for each ball joint.
"""

#: Samples side by side in one vector of the machine.
LANES = 8

# T: the numbers of a mechanism ---------------------------------------------------------------------
T_GRAVITY = 0  # 3, in the base frame
T_NODES = 4  # where the rows of the nodes begin
T_NODE = 30  # numbers of a node, namely:
T_E = 0  # 9, orientation of the node's frame in its parent node's at q = 0
T_P = 9  # 3, its origin there
T_PITCH = 12  # metres per radian of a screw; 0 for a revolute, 1 for a prismatic joint
T_ARMATURE = 13
T_DAMPING = 14
T_FRICTION = 15
T_SMOOTH = 16  # 1 / (velocity at which friction is developed)
T_STIFFNESS = 17
T_REST = 18
T_MASS = 19
T_COM = 20  # 3, in the node's frame
T_INERTIA = 23  # 6, about the centre of mass: xx xy xz yy yz zz
T_LINK = 12  # numbers of a link, after the nodes: orientation (9) and origin (3) in its node's frame

# N: the structure ----------------------------------------------------------------------------------
N_COUNT = 0  # n, the number of coordinates and of nodes without the base
N_LINKS = 1  # number of links
N_DEEP = 2  # 1 if the passive joints stand so far from the base that recursion beats factorisation
N_BALLS = 3  # number of ball joints, each of three nodes
N_NODES = 4  # where the rows of the nodes begin
N_NODE = 12  # integers of a node, namely:
N_PARENT = 0  # parent node
N_COORDINATE = 1  # index into q
N_TURNS = 2  # 1 if q turns the link (revolute, screw)
N_SLIDES = 3  # 1 if q moves it along the axis (prismatic, screw)
N_ACTIVE = 4  # 1 if the motion is prescribed
N_DEVIATES = 5  # 1 if the node or one between it and the base is passive
N_LOSSES = 6  # 1 if it has damping, friction or a spring
N_END = 7  # one past the last node of its subtree
N_TILTED = 8  # 1 if its axes at q = 0 are not those of its parent node
N_ABOVE = 9  # the nearest passive node between it and the base, or 0
N_BALL = 10  # 1, 2, 3 for the first, second, third node of a ball joint, else 0
N_CHART = 11  # which of the balls that is, from 0
# after the nodes: for each link, the node that carries it; for each coordinate, its node

# W: scratch of the dynamics, numbers of a node -------------------------------------------------------
Q, QD, U, Y = 0, 1, 2, 3
R = 4  # 9, orientation in the world's axes (those of the base)
DI = 13  # 1 / (Sᵀ IA S + armature)
UV = 14  # 6, IA S
KEPT = 20  # what the matrices need ends here
D = 20  # 3, from the parent's origin to this one, world axes like all that follows
OMEGA = 23  # 3
ALPHA = 26  # 3, angular acceleration without the passive joints' own, later the deviation from it
ACC = 29  # 3, acceleration of the origin likewise, less gravity
IA = 32  # 21, articulated inertia about the origin: I (xx xy xz yy yz zz), H (row by row), M (like I)
PA = 53  # 6, force (moment, force) that the joint must carry
RES = 59  # what drives the joint: torque that is left for it, or the part of it that is known
ROW = 60

# Loads on a link, as rows of the user's array and in W -----------------------------------------------
WRENCH = 6  # (moment, force) in the link's frame, which turns with it
DEAD = 15  # dead load: moment (3) and force f (3) in the base's axes, Σ p fᵀ (9, row by row), p in the link's frame
#: What kind of loads there are: none, wrenches only, or wrenches and dead loads.
UNLOADED, WRENCHES, DEAD_LOADS = 0, 1, 2

# W: scratch of the charts of ball joints, behind the loads, numbers of a ball (see `charts`) ----------
CH_QD, CH_U, CH_Y = 0, 3, 6  # 3 each: rate, given, found in coordinates
CH_C = 9  # 6, Stumpff functions c2 to c7 of |φ|²
CH_P, CH_Q, CH_H = 15, 24, 33  # 9 each, row by row: derivatives to φ of rate, acceleration and torque
CH_DQ, CH_DQD = 42, 45  # 3 each: a direction, or a gradient
CH_K, CH_KD = 48, 57  # 9 each, row by row: of the ball's own torque to θ and θ̇ (see `joint_torques`)
CH_J, CH_JI = 66, 75  # 9 each, row by row: J and its inverse
CHART = 84

# W: scratch of the closed forms, numbers of a node; spatial vectors at the origin of the base --------
C_POS = 0  # 3
C_S = 3  # 6, joint screw
C_PD = 9  # 6, Ṡ = V × S
C_PDD = 15  # 6, a_P × S + V_P × Ṡ
C_T = 21  # 6, I S of the subtree
C_B = 27  # 3, what multiplies angular velocities in ∂τ/∂(…)
C_WD = 30  # 6, force per rate of the joint
C_WQ = 36  # 6, force per angle of the joint
C_V = 42  # 6
C_G = 48  # 3, what multiplies turns of the subtree in ∂τ/∂q; written where there are dead loads
C_KEPT = 51  # what the matrices need ends here
C_A = 51  # 6, acceleration less gravity
C_I = 57  # 10, inertia of the subtree: m, m c, I about the base's origin (xx xy xz yy yz zz)
C_K = 67  # 12, momentum of the subtree (3) and its moment matrix Σ m x ẋᵀ (9, row by row)
C_F = 79  # 6, force on the subtree
C_X = 85  # 12, sums of the directional forms, the last three where there are dead loads
C_DQ, C_DQD, C_DU = 97, 98, 99  # a direction, or a gradient
C_DID = 100  # the change of ID along it
C_L = 101  # 12, dead loads on the subtree: force (3) and the moment matrix L (9, row by row)
CF_ROW = 113

PACKED = 16  # numbers of a node in `recursion`


def dynamics_numbers(n: int, links: int) -> int:
    """Return how many numbers of scratch memory the dynamics need, however many of the joints are balls."""
    return (n + 1) * ROW + (WRENCH + DEAD) * links + CHART * (n // 3)


def forms_numbers(n: int, links: int) -> int:
    """Return how many numbers of scratch memory the dynamics and the closed forms need."""
    return dynamics_numbers(n, links) + (n + 1) * CF_ROW


def matrix_numbers(n: int) -> int:
    """Return how many numbers the matrices need behind them."""
    columns = _padded(3 * n + 12) + 3 * LANES
    return LANES + 2 * (n + 1) * _padded(n + 1) + n * columns + (n + 1) * (PACKED + 6 * LANES)


def _padded(count: int) -> int:
    return (-(-count // LANES) + 1) * LANES
