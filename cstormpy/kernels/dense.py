"""The state within a step of an explicit Runge-Kutta method, as `cstormpy.simulation.steppers` gives it.

A step stands in a table K: the derivatives of its stages, that at its end, then rows for other uses.
"""

from cstormpy.kernels.diagram_rate import evaluate
from cstormpy.kernels.steps import exact_step

#: Where a row of integers says how many stages there are, and what the dense output is.
STAGES, DENSE = 0, 1
#: The cubic through both ends, a polynomial given by P, or the interpolant of DOP853.
CUBIC, POLYNOMIAL, SEVENTH = 0, 1, 2
#: Rows of the table of a method behind those of its stages.
T_RESULT, T_TIMES, T_ERROR, T_SECOND, T_ROWS = range(5)
#: Rows of K behind the stages: the derivative at the end, three more, a stage's state, the result, room for sums, a
#: point of the grid and the derivative there, the parts of the dense output, and the end of a step that is looked into.
K_MORE, K_STAGE, K_RESULT, K_SCRATCH, K_POINT, K_RATE, K_PARTS, K_END, K_ROWS = 1, 4, 5, 6, 7, 8, 9, 16, 17
#: Rows of what a method says of its dense output: of DOP853 the stages' weights and times, then those of the parts.
D_STAGES, D_TIMES, D_PARTS, D_ROWS = 0, 3, 4, 8


@exact_step
def weigh(K, count, weights, out):
    """Fill the sum of the first rows of K times weights, added one after the other; four side by side wait less."""
    i = 0
    while i + 4 <= out.size:
        weight = weights[0]
        first, second, third, fourth = (
            K[0, i] * weight,
            K[0, i + 1] * weight,
            K[0, i + 2] * weight,
            K[0, i + 3] * weight,
        )
        for j in range(1, count):
            weight = weights[j]
            first += K[j, i] * weight
            second += K[j, i + 1] * weight
            third += K[j, i + 2] * weight
            fourth += K[j, i + 3] * weight
        out[i], out[i + 1], out[i + 2], out[i + 3] = first, second, third, fourth
        i += 4
    while i < out.size:
        total = K[0, i] * weights[0]
        for j in range(1, count):
            total += K[j, i] * weights[j]
        out[i] = total
        i += 1


@exact_step
def prepare_dense(f, stages, kind, dense, t, h, earliest, latest, x, z, p, n, w, out, K):
    """Fill the parts of the dense output of the step from (t, x) that stands in K; return whether f went well.

    Shorter steps from (t, x) may then be tried in K.
    """
    if kind == CUBIC:
        for i in range(x.size):
            K[stages + K_PARTS, i], K[stages + K_PARTS + 1, i] = K[stages + K_RESULT, i], K[stages, i]
    if kind == POLYNOMIAL:
        for j in range(dense.shape[1]):
            for i in range(x.size):
                total = 0.0
                for s in range(stages + 1):
                    total += K[s, i] * dense[s, j]
                K[stages + K_PARTS + j, i] = total
    if kind != SEVENTH:
        return True
    point = K[stages + K_POINT]
    for e in range(3):
        row = stages + K_MORE + e
        for i in range(x.size):
            total = 0.0
            for s in range(row):
                total += dense[D_STAGES + e, s] * K[s, i]
            point[i] = x[i] + total * h
        moment = min(max(t + dense[D_TIMES, e] * h, earliest), latest)
        if evaluate(f, moment, point, z, p, n, w, out, K[row]) != 0:
            return False
    for i in range(x.size):
        change = K[stages + K_RESULT, i] - x[i]
        K[stages + K_PARTS, i] = change
        K[stages + K_PARTS + 1, i] = h * K[0, i] - change
        K[stages + K_PARTS + 2, i] = 2.0 * change - h * (K[stages, i] + K[0, i])
        for e in range(4):
            total = 0.0
            for s in range(stages + K_MORE + 3):
                total += dense[D_PARTS + e, s] * K[s, i]
            K[stages + K_PARTS + 3 + e, i] = h * total
    return True


@exact_step
def interpolate(stages, kind, theta, h, dense, x, K, out):
    """Fill the state at a part of the step that begins at x, once `prepare_dense` has been called."""
    rest = 1.0 - theta
    for i in range(x.size):
        if kind == POLYNOMIAL:
            total, power = 0.0, 1.0
            for j in range(dense.shape[1]):
                power *= theta
                total += K[stages + K_PARTS + j, i] * power
            out[i] = x[i] + h * total
        elif kind == SEVENTH:
            total = 0.0
            for k in range(7):
                total = (total + K[stages + K_PARTS + 6 - k, i]) * (theta if k % 2 == 0 else rest)
            out[i] = x[i] + total
        else:
            left = (1.0 + 2.0 * theta) * x[i] + theta * h * K[0, i]
            right = (1.0 + 2.0 * rest) * K[stages + K_PARTS, i] - rest * h * K[stages + K_PARTS + 1, i]
            out[i] = rest * rest * left + theta * theta * right
