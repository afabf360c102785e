"""Derivatives of the answers of the joints to inertial numbers of the links.

A number of a link asks for another wrench on it, and the joints respond to a wrench on a link as to any other. With
X_i what the answers y change by per torque that joint i asks for, the responses G_i (n, 6) to a wrench on the body
that joint i carries are those to one on its parent's and what joint i itself feels of it: at the origin of the base,
in its axes, with the screws S of the joints,

    G_i = G_P + X_i S_iᵀ        ∂y/∂p = G ∂wrench/∂p

Of M_pp⁻¹, all that is needed are the columns X (`sensitivity.parameters` has their equations). The ten inertial numbers
of a link, mass m, first moment h = m c and inertia I about the origin x of its frame, ask in its axes e_k for

    m       force A, moment x × A                           A the acceleration of x, less gravity
    h_k     force f = α × e_k + ω × (ω × e_k), moment e_k × A + x × f
    I_jk    moment e_j (α · e_k) + ω × e_j (ω · e_k), and the same with j and k exchanged where they differ
"""

from cstormpy.kernels.closed_forms import body_inertia, inertia_times, row_of
from cstormpy.kernels.factorisation import columns_place, factor_place, matrix_place, padded, row_length, solve_torques
from cstormpy.kernels.hybrid import node
from cstormpy.kernels.kinematics import carrier, pose_of_link
from cstormpy.kernels.lanes import (
    TILE,
    lane,
    load,
    load_tile,
    put_tile,
    store,
    store_tile,
    tile_width,
    vanishing,
    width,
    zero_lanes,
)
from cstormpy.kernels.layout import C_A, C_I, C_S, C_T, C_V, N_ACTIVE, N_COORDINATE, N_COUNT, N_PARENT, T_ARMATURE
from cstormpy.kernels.sensitivity import clear, six_dot
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, cross, dot, load3, load6, scale, store3

INERTIAL = 10  # numbers of a link: m, h (3), I (xx xy xz yy yz zz)


# Responses to torques: X, a row for each node, its columns in the order of q ---------------------------------------


@step
def fill_mass(T, N, W, i, like):
    """Write row i of M, and of its passive block, from the inertia of its subtree; add this to the parent's."""
    ki, t = node(i)
    row = row_of(N, i)
    tm, tf = inertia_times(W, row, load3(W, row + C_S, like), load3(W, row + C_S + 3, like), like)
    store3(W, row + C_T, tm)
    store3(W, row + C_T + 3, tf)
    matrix = matrix_place(N) + i * row_length(N, like)
    passive = factor_place(N, like) + i * row_length(N, like)
    mass = six_dot(tm, tf, W, row + C_S, like) + T[t + T_ARMATURE]
    j = i
    while j > 0:
        kj, _ = node(j)
        if j < i:
            mass = six_dot(tm, tf, W, row_of(N, j) + C_S, like)
        store(W, matrix + j, mass)
        if not (N[ki + N_ACTIVE] or N[kj + N_ACTIVE]):
            store(W, passive + j, mass)
        j = N[kj + N_PARENT]
    if N[ki + N_PARENT] > 0:
        p = row_of(N, N[ki + N_PARENT])
        for k in range(10):
            store(W, p + C_I + k, load(W, p + C_I + k, like) + load(W, row + C_I + k, like))


@step
def find_responses(T, N, W, like):
    """Fill X with what y changes by per torque that the joints ask for; places and screws stand in W."""
    n = N[N_COUNT]
    place, pitch = columns_place(N, like), padded(n, like)
    clear(W, place, n * pitch, like)
    clear(W, factor_place(N, like), (n + 1) * row_length(N, like), like)
    for i in range(1, n + 1):
        body_inertia(T, N, W, i, like)
    for i in range(n, 0, -1):
        k, _ = node(i)
        fill_mass(T, N, W, i, like)
        store(W, place + (i - 1) * pitch + N[k + N_COORDINATE], like + (1.0 if N[k + N_ACTIVE] else -1.0))
    solve_torques(N, W, place, pitch, like)


# Wrenches that the numbers ask for -----------------------------------------------------------------------------------


@step
def put_wrench(W, at, moment, force):
    store3(W, at, moment)
    store3(W, at + 3, force)


@step
def ten_wrenches(T, N, W, link, at, like):
    """Write the wrenches that the ten numbers of a link ask for, at the origin of the base."""
    row = row_of(N, carrier(N, link))
    axes, x = pose_of_link(T, N, W, link, like)
    omega, v = load3(W, row + C_V, like), load3(W, row + C_V + 3, like)
    alpha, a = load3(W, row + C_A, like), load3(W, row + C_A + 3, like)
    acc = add(a, add(cross(alpha, x), cross(omega, add(v, cross(omega, x)))))
    put_wrench(W, at, cross(x, acc), acc)
    for k in range(3):
        force = add(cross(alpha, axes[k]), cross(omega, cross(omega, axes[k])))
        put_wrench(W, at + 6 * (k + 1), add(cross(axes[k], acc), cross(x, force)), force)
    nothing = (like, like, like)
    at += 24
    for j in range(3):
        for k in range(j, 3):
            moment = turning(axes[j], axes[k], omega, alpha)
            if j != k:
                moment = add(moment, turning(axes[k], axes[j], omega, alpha))
            put_wrench(W, at, moment, nothing)
            at += 6


@step
def turning(e, f, omega, alpha):
    """Return e (α · f) + ω × e (ω · f)."""
    return add(scale(dot(alpha, f), e), scale(dot(omega, f), cross(omega, e)))


@step
def weigh(W, ten, begin, end, starts, columns, values, at, like):
    """Write the wrenches that numbers ask for, each a sum over those of the ten, by sparse rows."""
    for c in range(begin, end):
        moment, force = (like, like, like), (like, like, like)
        for e in range(starts[c], starts[c + 1]):
            w = ten + 6 * columns[e]
            moment = add(moment, scale(values[e], load3(W, w, like)))
            force = add(force, scale(values[e], load3(W, w + 3, like)))
        put_wrench(W, at + 6 * (c - begin), moment, force)


# Columns, of one sample after the other: its neighbouring columns stand side by side in a tile ------------------------
#
# Of each sample stand, in floats: the screws of the nodes, `BLOCK` floats each of which six count, room for a tile, X
# row by row, and the wrenches of the numbers, all their first components and so on. G of a sample stands behind them.

BLOCK = TILE


@step
def blocks(count):
    """Return a length of at least `count` floats that is a multiple of `BLOCK`."""
    return BLOCK * ((count + BLOCK - 1) // BLOCK)


@step
def spare_place(n):
    return BLOCK * (n + 1)


@step
def x_place(n):
    return BLOCK * (n + 2)


@step
def wrenches_place(n):
    return x_place(n) + blocks(n * n)


@step
def sample_length(n, pitch):
    """Return how many floats there are of each sample."""
    return wrenches_place(n) + 6 * blocks(pitch) + BLOCK


@step
def put_lanes(W, of, apart, count, to, stride, samples, like):
    """Copy the lanes of so many numbers, which stand apart, to neighbours, those of each sample a stride behind."""
    if count < TILE:
        for c in range(count):
            x = load(W, of + apart * c, like)
            for s in range(samples):
                W[to + s * stride + c] = lane(x, s)
    else:
        for begin in range(0, count, TILE):
            c = min(begin, count - TILE)  # the last ones over some that have been written
            at = of + apart * c
            a, b, c_, d = load_apart(W, at, apart, like)
            e, f, g, h = load_apart(W, at + 4 * apart, apart, like)
            put_tile(W, to + c, stride, samples, (a, b, c_, d, e, f, g, h))


@step
def load_apart(W, at, apart, like):
    return (
        load(W, at, like),
        load(W, at + apart, like),
        load(W, at + 2 * apart, like),
        load(W, at + 3 * apart, like),
    )


@step
def put_screws(N, W, own, stride, samples, like):
    nothing = (like, like, like, like, like, like, like, like)
    put_tile(W, own, stride, samples, nothing)
    for i in range(1, N[N_COUNT] + 1):
        s, l = load3(W, row_of(N, i) + C_S, like), load3(W, row_of(N, i) + C_S + 3, like)
        put_tile(W, own + BLOCK * i, stride, samples, (s[0], s[1], s[2], l[0], l[1], l[2], like, like))


@step
def put_responses(N, W, own, stride, samples, like):
    """Write X, row by row in the order of q, from where `find_responses` has left it."""
    n = N[N_COUNT]
    for i in range(1, n + 1):
        of = columns_place(N, like) + (i - 1) * padded(n, like)
        to = own + x_place(n) + n * N[node(i)[0] + N_COORDINATE]
        put_lanes(W, of, 1, n, to, stride, samples, like)


@step
def bring_responses(N, W, response, first, own, stride, samples):
    """Write X from rows of n n numbers that are given."""
    n = N[N_COUNT]
    for s in range(samples):
        for k in range(n * n):
            W[own + x_place(n) + s * stride + k] = response[first + s, k]


@step
def put_wrenches(T, N, W, plan, own, stride, samples, like):
    """Write the wrenches that all numbers ask for."""
    runs, starts, columns, values, pitch = plan
    n = N[N_COUNT]
    ten = columns_place(N, like) + n * padded(n, like)
    at = ten + 6 * INERTIAL
    for run in range(runs.shape[0]):
        begin, end = runs[run, 1], runs[run, 2]
        ten_wrenches(T, N, W, runs[run, 0], ten, like)
        weigh(W, ten, begin, end, starts, columns, values, at, like)
        for k in range(6):
            to = own + wrenches_place(n) + k * blocks(pitch) + begin
            put_lanes(W, at + k, 6, end - begin, to, stride, samples, like)


@step
def respond_to_wrenches(N, W, own, G):
    """Write the responses of all joints to wrenches on the bodies of all nodes, `BLOCK` floats of a joint."""
    n = N[N_COUNT]
    for row in range(n):
        for c in range(0, BLOCK, tile_width()):
            store_tile(W, G + BLOCK * row + c, load_tile(W, own + c))
    for i in range(1, n + 1):
        k, _ = node(i)
        x, g, parent = own + x_place(n) + N[k + N_COORDINATE], G + BLOCK * n * i, G + BLOCK * n * N[k + N_PARENT]
        for c in range(0, BLOCK, tile_width()):
            screw = load_tile(W, own + BLOCK * i + c)
            for row in range(n):
                at = BLOCK * row + c
                store_tile(W, g + at, load_tile(W, parent + at) + load(W, x + n * row, 0.0) * screw)


@step
def put_products(W, six, forces, v, out, to, count, spare, like):
    """Write six floats times the wrenches of a tile of numbers, of which the first count, and return them.

    Without `forces` the last three of the six meet nothing.
    """
    g = load6(W, six, 0.0)
    x = (g[0] * v[0] + g[1] * v[1]) + g[2] * v[2]
    if forces:
        x = x + ((g[3] * v[3] + g[4] * v[4]) + g[5] * v[5])
    if count >= tile_width():
        store_tile(out, to, x)
        return x
    written = like
    store_tile(W, spare, x)
    for k in range(count):
        y = load(W, spare + k, 0.0)
        store(out, to + k, y)
        written = written + y
    return written


@step
def put_tile_of_columns(N, W, answering, forces, run, first, pitch, out, to, own, G, like):
    """Write a tile of the columns of a run, the first of them `first`, in all rows; return 0 if finite, else NaN."""
    n, i = N[N_COUNT], carrier(N, run[0])
    apart, at = blocks(pitch), own + wrenches_place(n) + first
    v = (
        load_tile(W, at),
        load_tile(W, at + apart),
        load_tile(W, at + 2 * apart),
        load_tile(W, at + 3 * apart),
        load_tile(W, at + 4 * apart),
        load_tile(W, at + 5 * apart),
    )
    total, j, row = like, (n if answering else i), 0
    while j > 0:
        six = G + BLOCK * (n * i + row) if answering else own + BLOCK * j
        if not answering:
            row = N[node(j)[0] + N_COORDINATE]
        place, count = to + first + row * pitch, run[2] - first
        total = total + put_products(W, six, forces, v, out, place, count, own + spare_place(n), like)
        j = j - 1 if answering else N[node(j)[0] + N_PARENT]
        row += 1
    return vanishing(total)


@step
def put_run(N, W, answering, run, pitch, out, to, own, G, like):
    """Write the columns of a run (link, begin, end, moments); return 0 if they are finite, else NaN.

    They are rows of all joints, or not `answering` of those on the way to the link. The last tile is whole too, and
    written first: of what the others write over again, it has no use for the forces.
    """
    tile, begin, end = tile_width(), run[1], run[2]
    last = begin + (end - begin - 1) // tile * tile
    first = max(begin, end - tile)
    total = put_tile_of_columns(N, W, answering, last < run[3], run, first, pitch, out, to, own, G, like)
    for at in range(begin, last, tile):
        total = total + put_tile_of_columns(N, W, answering, at < run[3], run, at, pitch, out, to, own, G, like)
    return total


@step
def put_columns(T, N, W, answering, response, plan, own, out, first, last, like):
    """Write the columns of all numbers; places and screws stand in W. Return 0 if all is finite, else NaN.

    The plan is runs, starts, columns, values and pitch: a row of runs, (link, begin, end, moments), has numbers of one
    link that stand side by side, those from `moments` on without a force in their wrench; to starts, columns and
    values, see `weigh`; the pitch is how many numbers there are. If
    `answering` X are the responses that are given, or, without, those that stand in W; else only what is not zero is
    written. From `own` on there is room for as many samples as stand side by side.
    """
    n, runs, pitch = N[N_COUNT], plan[0], plan[4]
    stride, samples = sample_length(n, pitch), min(width(like), last + 1 - first)
    put_screws(N, W, own, stride, samples, like)
    if response.shape[0] > 0:
        bring_responses(N, W, response, first, own, stride, samples)
    elif answering:
        put_responses(N, W, own, stride, samples, like)
    put_wrenches(T, N, W, plan, own, stride, samples, like)
    bad, G = zero_lanes(), own + width(like) * stride
    for s in range(samples):
        here = own + s * stride
        if answering:
            respond_to_wrenches(N, W, here, G)
        for run in range(runs.shape[0]):
            of = runs[run, 0], runs[run, 1], runs[run, 2], runs[run, 3]
            bad = bad + put_run(N, W, answering, of, pitch, out, (first + s) * n * pitch, here, G, zero_lanes())
    return bad
