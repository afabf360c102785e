"""Runge-Kutta steps of a diagram with directions carried along.

Beside a value stands its tangent, the derivative along one direction, named as the value with a d before it.
"""

from cstormpy.graph.addressed import at_address
from cstormpy.kernels.diagram_rate import RATE
from cstormpy.kernels.entries import entry
from cstormpy.kernels.event_location import crossed
from cstormpy.kernels.rungekutta import FLAG, OUT_FIRST, T_RESULT, T_TIMES, Z_COUNT, Z_FIRST, clamped, lower_flags
from cstormpy.kernels.stepping import CROSSED, LOOK, WENT
from cstormpy.kernels.steps import step

#: What `propagate` returns, beside what `stepping` says, where ticks at the end of the last step are still to be done.
WAITS = CROSSED + 1

#: The function of a diagram with tangents: t, x, z, p, n, w, out, xd, then dt and the tangents of all but n.
TANGENT = f"{RATE[:-1]}, f8, {', '.join(['f8[::1]'] * 6)})"


def evaluate_along(f, t, x, z, p, n, w, out, xd, dt, dx, dz, dp, dw, dout, dxd):
    """Evaluate such a function; f is its address, or in plain Python the function itself."""
    return f(t, x, z, p, n, w, out, xd, dt, dx, dz, dp, dw, dout, dxd)


at_address(evaluate_along, TANGENT)


@step
def evaluate(f, t, z, dz, p, dp, n, w, dw, out, dout, K, dK, s):
    """Fill signals and derivatives s at the point in the last rows of K and dK; return what f returned."""
    at = K.shape[0] - 1
    for j in range(dK.shape[0]):
        status = evaluate_along(
            f, t, K[at], z, p, n, w, out, K[s], 0.0, dK[j, at], dz[j], dp[j], dw[j], dout[j], dK[j, s]
        )
        if status != 0:
            return status
    return 0


@step
def combined(table, row, count, h, x, K, result):
    """Fill x + h Σ table[row, j] K[j]."""
    for i in range(x.size):
        total = 0.0
        for j in range(count):
            if table[row, j] != 0.0:
                total += K[j, i] * table[row, j]
        result[i] = x[i] + total * h


@step
def halted(out, guards, sides):
    """Tell whether a signal is not finite or a guard crosses zero."""
    nothing = 0.0
    for k in range(out.size):
        nothing += 0.0 * out[k]
    if not nothing == 0.0:
        return True
    for g in range(guards.size):
        if crossed(sides[0, g], out[guards[g]], sides[1, g]):
            return True
    return False


@step
def ticked(f, t, due, parts, x, dx, z, dz, p, dp, n, w, dw, out, dout, K, dK, guards, sides, before, dbefore):
    """Have clocks tick at a time, all from the signals there, and evaluate the diagram behind it; tell whether it went.

    The bits of due are the clocks. Where a guard crosses zero by it, or something fails, it is as if nothing had been.
    """
    at = K.shape[0] - 1
    for i in range(x.size):
        K[at, i] = x[i]
        for j in range(dK.shape[0]):
            dK[j, at, i] = dx[j, i]
    for k in range(z.size):
        before[k] = z[k]
        for j in range(dK.shape[0]):
            dbefore[j, k] = dz[j, k]
    for c in range(parts.shape[0]):
        if (due >> c) & 1 and parts[c, FLAG] >= 0:
            z[parts[c, FLAG]] = 1.0
    failed = evaluate(f, t, z, dz, p, dp, n, w, dw, out, dout, K, dK, 0)
    lower_flags(z, parts)
    if failed == 0:
        for c in range(parts.shape[0]):
            if (due >> c) & 1:
                for k in range(parts[c, Z_COUNT]):
                    z[parts[c, Z_FIRST] + k] = out[parts[c, OUT_FIRST] + k]
                    for j in range(dK.shape[0]):
                        dz[j, parts[c, Z_FIRST] + k] = dout[j, parts[c, OUT_FIRST] + k]
        failed = evaluate(f, t, z, dz, p, dp, n, w, dw, out, dout, K, dK, 0)
    if failed == 0 and not halted(out, guards, sides):
        return True
    for k in range(z.size):
        z[k] = before[k]
        for j in range(dK.shape[0]):
            dz[j, k] = dbefore[j, k]
    return False


_ROWS, _CUBE = "f8[:,::1]", "f8[:,:,::1]"


@entry(
    f"UniTuple(i8, 2)(i8, {_ROWS}, f8[::1], f8[::1], f8[::1], {_ROWS}, f8[::1], {_ROWS}, f8[::1], "
    f"{_ROWS}, i8[::1], f8[::1], {_ROWS}, f8[::1], {_ROWS}, {_ROWS}, {_CUBE}, i8[::1], {_ROWS}, i8[::1], {_ROWS}, "
    f"{_CUBE}, {_ROWS}, {_CUBE}, i8[::1], i8[:,::1], f8[::1], {_ROWS})",
    nogil=True,
)
def propagate(
    f, table, at, times, x, dx, z, dz, p, dp, n, w, dw, out, dout, K, dK, guards, sides, columns, states, dstates,
    signals, dsignals, due, parts, before, dbefore,
):  # fmt: skip
    """Take steps to given times, and carry the tangents of the states along; return how that ended, and how many.

    times holds the present one and those at which the steps end. K and dK hold the derivatives of the stages and, in
    their last rows, scratch; K[0] and dK[:, 0] those at (t, x). A step within which a guard changes its side, or after
    which something is not finite, is not taken: x, dx, K[0], dK[:, 0] and the sides stand before it. The sides are
    those before the step, the directions that count, and whether a stage of a step counts too (else 0).

    The bits of due say which clocks tick at each of the times but the first, parts where what these sample stands, as
    in `rungekutta`; `before` and `dbefore` have the room of z and dz. What is kept at such a time is what is behind the
    ticks. Those by which a guard crosses zero, or something fails, are left to Python: `WAITS`.
    """
    stages, directions = table.shape[1] - 1, dx.shape[0]
    for taken in range(times.size - 1):
        t, h = times[taken], times[taken + 1] - times[taken]
        stage = K[stages + 1]
        for s in range(1, stages + 1):
            row, count, when = stages + T_RESULT, stages, t + h
            if s < stages:
                row, count, when = s, s, t + table[stages + T_TIMES, s] * h
            combined(table, row, count, h, x, K, stage)
            for j in range(directions):
                combined(table, row, count, h, dx[j], dK[j], dK[j, stages + 1])
            if evaluate(f, clamped(when, at), z, dz, p, dp, n, w, dw, out, dout, K, dK, s) != 0:
                return LOOK, taken
            for g in range(guards.size):
                if sides[2, g] != 0.0 and crossed(sides[0, g], out[guards[g]], sides[1, g]):
                    return LOOK, taken
        if halted(out, guards, sides):
            return LOOK, taken
        for i in range(x.size):
            x[i], K[0, i], states[taken, i] = stage[i], K[stages, i], stage[i]
        for j in range(directions):
            for i in range(x.size):
                dx[j, i], dK[j, 0, i], dstates[taken, j, i] = (
                    dK[j, stages + 1, i],
                    dK[j, stages, i],
                    dK[j, stages + 1, i],
                )
        for g in range(guards.size):
            sides[0, g] = out[guards[g]]
        if due[taken + 1] != 0:
            now, ticking = clamped(times[taken + 1], at), due[taken + 1]
            if not ticked(
                f, now, ticking, parts, x, dx, z, dz, p, dp, n, w, dw, out, dout, K, dK, guards, sides, before, dbefore
            ):
                return WAITS, taken + 1
            for g in range(guards.size):
                sides[0, g] = out[guards[g]]
        for k in range(columns.size):
            signals[taken, k] = out[columns[k]]
            for j in range(directions):
                dsignals[taken, j, k] = dout[j, columns[k]]
    return WENT, times.size - 1
