"""What stands where in the arrays of the kernels.

A mechanism reaches the kernels as two arrays: the numbers ``T`` and the structure ``N``. Its moving parts
are *nodes*, one for each degree of freedom, numbered depth first from 1; node 0 is the base. A link on a
fixed joint belongs to the node that carries it. A node's frame has its origin on the joint's axis and its
z axis along it, so that every joint is a turn about, or a slide along, its own z.

Scratch memory ``W`` counts in numbers (see `lanes`): a row for each node, the base included, first of
`ROW` numbers for the dynamics, then, where sensitivities are wanted, rows of `CF_ROW` numbers for the
closed forms, then the matrices.
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
N_NODES = 2  # where the rows of the nodes begin
N_NODE = 8  # integers of a node, namely:
N_PARENT = 0  # parent node
N_COORDINATE = 1  # index into q
N_TURNS = 2  # 1 if q turns the link (revolute, screw)
N_SLIDES = 3  # 1 if q moves it along the axis (prismatic, screw)
N_ACTIVE = 4  # 1 if the motion is prescribed
N_DEVIATES = 5  # 1 if the node or one between it and the base is passive
N_LOSSES = 6  # 1 if it has damping, friction or a spring
N_END = 7  # one past the last node of its subtree
# after the nodes: for each link, the node that carries it

# W: scratch of the dynamics, numbers of a node -------------------------------------------------------
Q, QD, U, Y = 0, 1, 2, 3
R = 4  # 9, orientation in the world's axes (those of the base)
D = 13  # 3, from the parent's origin to this one, world axes like all that follows
OMEGA = 16  # 3
ALPHA = 19  # 3, angular acceleration without the passive joints' own, later the deviation from it
ACC = 22  # 3, acceleration of the origin likewise, less gravity
IA = 25  # 21, articulated inertia about the origin: I (xx xy xz yy yz zz), H (row by row), M (like I)
PA = 46  # 6, force (moment, force) that the joint must carry
UV = 52  # 6, IA S
DI = 58  # 1 / (Sᵀ IA S + armature)
RES = 59  # what drives the joint: torque that is left for it, or the part of it that is known
ROW = 60

# W: scratch of the closed forms, numbers of a node; spatial vectors at the origin of the base --------
C_POS = 0  # 3
C_S = 3  # 6, joint screw
C_PD = 9  # 6, Ṡ = V × S
C_PDD = 15  # 6, a_P × S + V_P × Ṡ
C_V = 21  # 6
C_A = 27  # 6, acceleration less gravity
C_I = 33  # 10, inertia of the subtree: m, m c, I about the base's origin (xx xy xz yy yz zz)
C_K = 43  # 12, momentum of the subtree (3) and its moment matrix Σ m x ẋᵀ (9, row by row)
C_F = 55  # 6, force on the subtree
C_T = 61  # 6, I S of the subtree
C_B = 67  # 3, what multiplies angular velocities in ∂τ/∂(…)
C_WD = 70  # 6, force per rate of the joint
C_WQ = 76  # 6, force per angle of the joint
C_X = 82  # 9, sums of the directional forms
C_DQ, C_DQD, C_DU = 91, 92, 93  # a direction, or a gradient
C_DID = 94  # the change of ID along it
CF_ROW = 96


def scratch_numbers(n: int, links: int, sensitivities: bool) -> int:
    """Return how many numbers of scratch memory the kernels need."""
    numbers = (n + 1) * ROW + 6 * links
    if sensitivities:
        numbers += (n + 1) * CF_ROW + 2 * (n + 1) * _padded(n + 1) + n * _padded(3 * n + 12) + LANES
    return numbers


def _padded(count: int) -> int:
    return -(-count // LANES) * LANES
