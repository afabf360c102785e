"""A motion integrated by fixed steps, with its derivatives to whatever drives it, by a mechanism's straight line.

It is what `entries_shooting.shoot` computes; the hybrid dynamics with their sensitivities are a function of C that
stands behind an address. It runs as plain Python and as machine code (`graph.loops`), which wants no numba.

Rows of tables with a column for each number that drives the motion: joints of q, joints of q̇, … one behind the other.
"""

from __future__ import annotations

from typing import Any

from cstormpy.graph.addressed import at_address

#: Kinds of the arguments of `shoot_by_line`, as `graph.loops` takes them.
KINDS = ("i", "F1", "I1", "F1", "F2", "F2", "F2", "F1", "F1", "F2", "F2", "F2", "F2", "F1", "F2", "F2", "F2")


def _plain(f: Any, T: Any, q: Any, qd: Any, u: Any, y: Any, D: Any) -> Any:
    return f(T, q, qd, u, y, D)


def _loaded(f: Any, T: Any, q: Any, qd: Any, u: Any, wrench: Any, y: Any, D: Any) -> Any:
    return f(T, q, qd, u, wrench, y, D)


def _based(f: Any, T: Any, q: Any, qd: Any, u: Any, base: Any, y: Any, D: Any) -> Any:
    return f(T, q, qd, u, base, y, D)


def _loaded_and_based(f: Any, T: Any, q: Any, qd: Any, u: Any, wrench: Any, base: Any, y: Any, D: Any) -> Any:
    return f(T, q, qd, u, wrench, base, y, D)


for _function, _count in ((_plain, 6), (_loaded, 7), (_based, 7), (_loaded_and_based, 8)):
    at_address(_function, f"i8({', '.join(_count * ['f8[::1]'])})")


def answered(f: Any, T: Any, given: Any, wrench: Any, base: Any, half: Any, y: Any, D: Any) -> Any:
    """Fill y and D, the answers to q, q̇, u in the rows of `given` and their derivatives; return the status."""
    row = half if base.shape[0] > 1 else 0
    if wrench.size > 0 and base.shape[0] > 0:
        return _loaded_and_based(f, T, given[0], given[1], given[2], wrench, base[row], y, D)
    if wrench.size > 0:
        return _loaded(f, T, given[0], given[1], given[2], wrench, y, D)
    if base.shape[0] > 0:
        return _based(f, T, given[0], given[1], given[2], base[row], y, D)
    return _plain(f, T, given[0], given[1], given[2], y, D)


def bring(active: Any, signal: Any, half: Any, z: Any, fraction: Any, h: Any, given: Any) -> None:
    """Write q, q̇, u at a stage: the state plus `fraction` h (rates of the stage before), or what is prescribed."""
    n = active.size
    for j in range(n):
        for part in range(2):
            if active[j] != 0:
                given[part, j] = signal[half, part * n + j]
            else:
                given[part, j] = z[0, part * n + j] + fraction * h * z[1, part * n + j]
        given[2, j] = signal[half, 2 * n + j]


def bring_columns(
    active: Any, seeds: Any, half: Any, z: Any, dz: Any, fraction: Any, h: Any, dh: Any, D: Any, X: Any
) -> None:
    """Write the derivatives of q, q̇, u and of the answers to all columns into X."""
    n = active.size
    for row in range(3 * n):
        x, seed = X[row], seeds[half * 3 * n + row]
        if row >= 2 * n or active[row % n] != 0:
            for c in range(dh.size):
                x[c] = seed[c]
        else:
            rate, step, first, second = fraction * z[1, row], fraction * h, dz[row], dz[2 * n + row]
            for c in range(dh.size):
                x[c] = first[c] + step * second[c] + rate * dh[c]
    for i in range(n):
        x = X[3 * n + i]
        for c in range(dh.size):
            x[c] = 0.0
        for row in range(3 * n):
            j = row % n
            factor, seed = D[i + row - j, j], X[row]
            if factor != 0.0:
                for c in range(dh.size):
                    x[c] += factor * seed[c]


def keep_node(k: Any, given: Any, y: Any, X: Any, out: Any, d_out: Any) -> None:
    """Copy q, q̇ and y at a node, and their derivatives, to the answer."""
    n = y.size
    for j in range(n):
        out[k, j], out[k, n + j], out[k, 2 * n + j] = given[0, j], given[1, j], y[j]
    for row in range(3 * n):
        place = row if row < 2 * n else row + n
        x, kept = X[place], d_out[k * 3 * n + row]
        for c in range(X.shape[1]):
            kept[c] = x[c]


def keep_rates(active: Any, given: Any, y: Any, X: Any, weight: Any, z: Any, dz: Any) -> None:
    """Keep the rates (q̇, q̈) of the passive joints at a stage, and add them with a weight to those of the step."""
    n = active.size
    for j in range(n):
        if active[j] == 0:
            z[1, j], z[1, n + j] = given[1, j], y[j]
            for part in range(2):
                row = part * n + j
                z[2, row] += weight * z[1, row]
                x, kept, total = X[n + 2 * part * n + j], dz[2 * n + row], dz[4 * n + row]
                for c in range(X.shape[1]):
                    kept[c] = x[c]
                    total[c] += weight * x[c]


def finish(z: Any, dz: Any, h: Any, dh: Any) -> None:
    """Advance the state by a step, and clear the sums for the next one."""
    rows = z.shape[1]
    for row in range(rows):
        state, total, rate = dz[row], dz[2 * rows + row], z[2, row]
        for c in range(dh.size):
            state[c] += h * total[c] + rate * dh[c]
            total[c] = 0.0
        z[0, row] += h * rate
        z[2, row] = 0.0


def shoot_by_line(
    f: Any, T: Any, active: Any, wrench: Any, base: Any, signal: Any, seeds: Any, h: Any, dh: Any, z: Any, dz: Any,
    given: Any, X: Any, y: Any, D: Any, out: Any, d_out: Any,
) -> Any:  # fmt: skip
    """Integrate the passive joints by steps of the classical Runge-Kutta method; return the status.

    Of n joints, s steps, m columns: `active` (n,) as whole numbers, signal (2 s + 1, 3 n), seeds ((2 s + 1) 3 n, m),
    h (1,), dh (m,), z (3, 2 n), dz (6 n, m), whose first parts hold the state at the start; given (3, n), X (4 n, m),
    y (n,) and D (3 n, n) are scratch; out (s + 1, 3 n) and d_out ((s + 1) 3 n, m) are filled.
    """
    steps = out.shape[0] - 1
    for k in range(steps + 1):
        for stage in range(4):
            half, fraction, weight = 2 * k, 0.0, 1.0 / 6.0
            if stage == 1 or stage == 2:
                half, fraction, weight = 2 * k + 1, 0.5, 2.0 / 6.0
            elif stage == 3:
                half, fraction = 2 * k + 2, 1.0
            bring(active, signal, half, z, fraction, h[0], given)
            status = answered(f, T, given, wrench, base, half, y, D)
            if status != 0:
                return status
            bring_columns(active, seeds, half, z, dz, fraction, h[0], dh, D, X)
            if stage == 0:
                keep_node(k, given, y, X, out, d_out)
                if k == steps:
                    return 0
            keep_rates(active, given, y, X, weight, z, dz)
        finish(z, dz, h[0], dh)
    return 0
