"""Steps of fixed length of a compiled diagram whose inputs are held from outside, all in one call."""

from cstormpy.kernels.dense import K_RESULT, STAGES
from cstormpy.kernels.diagram_rate import evaluate
from cstormpy.kernels.rungekutta import CLOSED, LENGTH, TIME, attempt
from cstormpy.kernels.stepping import close_loops
from cstormpy.kernels.steps import exact_step

#: What is returned where a state is not finite at the end, and where a step opens a loop that cannot be closed here.
NOT_FINITE, OPENED = -1, -2


@exact_step
def held_steps(f, close, table, how, at, x, z, p, n, w, out, K, count, u, places, end, columns, y):
    """Hold inputs u over some steps, `LENGTH` together, from x at `TIME`; fill the state at their end, and outputs y.

    The inputs stand in p at some places, the outputs are columns of the diagram's. Returns 0, or what the diagram
    returned where it failed, in the step from `TIME`, or `NOT_FINITE`, or `OPENED`.
    """
    stages, begin, h = how[STAGES], at[TIME], at[LENGTH] / float(count)
    for k in range(places.size):
        p[places[k]] = u[k]
    for i in range(x.size):
        end[i] = x[i]
    status = evaluate(f, begin, end, z, p, n, w, out, K[0])
    if status != 0:
        return status
    for k in range(count):
        at[TIME] = begin + float(k) * h
        status = attempt(f, table, how, at, h, end, z, p, n, w, out, K)
        if status != 0:
            return status
        if how[CLOSED] != 0 and not close_loops(f, close, how, at, begin + float(k + 1) * h, z, p, n, w, out, K):
            return OPENED
        for i in range(x.size):
            end[i], K[0, i] = K[stages + K_RESULT, i], K[stages, i]
    nothing = 0.0
    for i in range(x.size):
        nothing += 0.0 * end[i]
    for k in range(columns.size):
        y[k] = out[columns[k]]
    return 0 if nothing == 0.0 else NOT_FINITE
