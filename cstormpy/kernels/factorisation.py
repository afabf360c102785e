"""Layout of the matrices of the sensitivities, and M_pp⁻¹ times the columns by the factors of M_pp.

M_pp = Lᵀ D L keeps the zeros of the tree (Featherstone 2008, section 6.5); M stands in rows of its own, L in
those behind, and then the columns X, a row for each node.
"""

from __future__ import annotations

from cstormpy.kernels.closed_forms import forms_place
from cstormpy.kernels.hybrid import node
from cstormpy.kernels.lanes import load, load_tile, reciprocal, store, store_tile, tile_width, width
from cstormpy.kernels.layout import CF_ROW, N_ABOVE, N_ACTIVE, N_COORDINATE, N_COUNT, N_END, N_PARENT
from cstormpy.kernels.steps import step


@step
def matrix_place(N):
    """Return where M stands: a row for each node, of as many numbers as `row_length` says."""
    return forms_place(N) + (N[N_COUNT] + 1) * CF_ROW


@step
def padded(count, like):
    """Return a length of at least `count` numbers that an odd count of tiles fills.

    With an even count the rows of a column would meet in few sets of the processor's cache.
    """
    fill = max(1, tile_width() // width(like))
    tiles = (count + fill - 1) // fill
    return (tiles + 1 - tiles % 2) * fill


@step
def row_length(N, like):
    return padded(N[N_COUNT] + 1, like)


@step
def factor_place(N, like):
    """Return where the passive block of M, later L, stands, in rows like those of M."""
    return matrix_place(N) + (N[N_COUNT] + 1) * row_length(N, like)


@step
def columns_place(N, like):
    """Return where X stands."""
    return matrix_place(N) + 2 * (N[N_COUNT] + 1) * row_length(N, like)


@step
def column_count(N, of_base, like):
    return padded(3 * N[N_COUNT] + (12 if of_base else 0), like)


@step
def passive_parent(N, i):
    """Return the nearest passive node between node i and the base, or 0."""
    k, _ = node(i)
    return N[k + N_ABOVE]


@step
def reduce_row(N, W, i, k, a, matrix, length, like):
    """Take a times row k off row i, up to its diagonal."""
    if width(like) < tile_width():
        # one sample: whole tiles, what stands beyond the diagonal is never read
        for c in range(0, i + 1, tile_width()):
            row_k = load_tile(W, matrix + k * length + c)
            store_tile(W, matrix + i * length + c, load_tile(W, matrix + i * length + c) - a * row_k)
    else:
        j = i
        while j > 0:
            x = load(W, matrix + i * length + j, like) - a * load(W, matrix + k * length + j, like)
            store(W, matrix + i * length + j, x)
            j = passive_parent(N, j)


@step
def factorise(N, W, like):
    """Replace the passive block of M by L, and its diagonal by the inverse of D."""
    matrix, length = factor_place(N, like), row_length(N, like)
    for k in range(N[N_COUNT], 0, -1):
        kk, _ = node(k)
        if not N[kk + N_ACTIVE]:
            inverse = reciprocal(load(W, matrix + k * length + k, like))
            i = passive_parent(N, k)
            while i > 0:
                a = load(W, matrix + k * length + i, like) * inverse
                reduce_row(N, W, i, k, a, matrix, length, like)
                store(W, matrix + k * length + i, a)
                i = passive_parent(N, i)
            store(W, matrix + k * length + k, inverse)


@step
def load_four(W, position):
    t = tile_width()
    return (
        load_tile(W, position),
        load_tile(W, position + t),
        load_tile(W, position + 2 * t),
        load_tile(W, position + 3 * t),
    )


@step
def store_four(W, position, a):
    for k in range(4):
        store_tile(W, position + k * tile_width(), a[k])


@step
def minus_four(a, factor, b):
    return a[0] - factor * b[0], a[1] - factor * b[1], a[2] - factor * b[2], a[3] - factor * b[3]


@step
def inward_four(N, W, place, pitch, c, like):
    """Solve with Lᵀ for four neighbouring tiles of all columns."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for j in range(N[N_COUNT], 0, -1):
        kj, _ = node(j)
        if not N[kj + N_ACTIVE]:
            x = (place + (j - 1) * pitch) * w + c
            a = load_four(W, x)
            for i in range(j + 1, N[kj + N_END]):
                ki, _ = node(i)
                if not N[ki + N_ACTIVE]:
                    factor = load(W, factors + i * length + j, like)
                    a = minus_four(a, factor, load_four(W, (place + (i - 1) * pitch) * w + c))
            store_four(W, x, a)


@step
def inward_tile(N, W, place, pitch, c, like):
    """Do the same with one tile."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for j in range(N[N_COUNT], 0, -1):
        kj, _ = node(j)
        if not N[kj + N_ACTIVE]:
            x = (place + (j - 1) * pitch) * w + c
            a = load_tile(W, x)
            for i in range(j + 1, N[kj + N_END]):
                ki, _ = node(i)
                if not N[ki + N_ACTIVE]:
                    factor = load(W, factors + i * length + j, like)
                    a = a - factor * load_tile(W, (place + (i - 1) * pitch) * w + c)
            store_tile(W, x, a)


@step
def outward_four(N, W, place, pitch, c, like):
    """Solve with D L for four neighbouring tiles of all columns."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for i in range(1, N[N_COUNT] + 1):
        ki, _ = node(i)
        if not N[ki + N_ACTIVE]:
            x = (place + (i - 1) * pitch) * w + c
            inverse = load(W, factors + i * length + i, like)
            b = load_four(W, x)
            a = (inverse * b[0], inverse * b[1], inverse * b[2], inverse * b[3])
            j = passive_parent(N, i)
            while j > 0:
                factor = load(W, factors + i * length + j, like)
                a = minus_four(a, factor, load_four(W, (place + (j - 1) * pitch) * w + c))
                j = passive_parent(N, j)
            store_four(W, x, a)


@step
def outward_eight(N, W, place, pitch, c, like):
    """Do the same with eight, for which each factor is fetched once."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    half = 4 * tile_width()
    for i in range(1, N[N_COUNT] + 1):
        ki, _ = node(i)
        if not N[ki + N_ACTIVE]:
            x = (place + (i - 1) * pitch) * w + c
            inverse = load(W, factors + i * length + i, like)
            a, b = load_four(W, x), load_four(W, x + half)
            a = (inverse * a[0], inverse * a[1], inverse * a[2], inverse * a[3])
            b = (inverse * b[0], inverse * b[1], inverse * b[2], inverse * b[3])
            j = passive_parent(N, i)
            while j > 0:
                factor, above = load(W, factors + i * length + j, like), (place + (j - 1) * pitch) * w + c
                a = minus_four(a, factor, load_four(W, above))
                b = minus_four(b, factor, load_four(W, above + half))
                j = passive_parent(N, j)
            store_four(W, x, a)
            store_four(W, x + half, b)


@step
def outward_tile(N, W, place, pitch, c, like):
    """Do the same with one tile."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    for i in range(1, N[N_COUNT] + 1):
        ki, _ = node(i)
        if not N[ki + N_ACTIVE]:
            x = (place + (i - 1) * pitch) * w + c
            a = load(W, factors + i * length + i, like) * load_tile(W, x)
            j = passive_parent(N, i)
            while j > 0:
                factor = load(W, factors + i * length + j, like)
                a = a - factor * load_tile(W, (place + (j - 1) * pitch) * w + c)
                j = passive_parent(N, j)
            store_tile(W, x, a)


@step
def less_rows(N, W, first, last, factors, length, rows, pitch, x, like):
    """Return x less L_ij times the number of row i, of all passive nodes i from first to before last.

    `factors` is where L_0j stands, and `rows` where that number of the row of node 0 would.
    """
    for i in range(first, last):
        k, _ = node(i)
        if not N[k + N_ACTIVE]:
            x = x - load(W, factors + i * length, like) * load(W, rows + i * pitch, like)
    return x


@step
def less_two(N, W, first, last, factors, length, rows, pitch, apart, x, like):
    """Do so in two columns that are so far apart."""
    y, z = x
    for i in range(first, last):
        k, _ = node(i)
        if not N[k + N_ACTIVE]:
            factor, row = load(W, factors + i * length, like), rows + i * pitch
            y = y - factor * load(W, row, like)
            z = z - factor * load(W, row + apart, like)
    return y, z


@step
def inward_two(N, W, joint, last, factors, length, rows, pitch, like):
    """Solve with Lᵀ for the columns of the angle and of the rate of a joint, whose subtree ends before node `last`.

    They are zero but in its subtree and on the way to the base.
    """
    n = N[N_COUNT]
    for j in range(last - 1, joint - 1, -1):
        k, _ = node(j)
        if not N[k + N_ACTIVE]:
            row = rows + j * pitch
            x = (load(W, row, like), load(W, row + n, like))
            y, z = less_two(N, W, j + 1, N[k + N_END], factors + j, length, rows, pitch, n, x, like)
            store(W, row, y)
            store(W, row + n, z)
    j = passive_parent(N, joint)
    while j > 0:
        row = rows + j * pitch
        x = (load(W, row, like), load(W, row + n, like))
        y, z = less_two(N, W, joint, last, factors + j, length, rows, pitch, n, x, like)
        i = passive_parent(N, joint)
        while i > j:
            factor = load(W, factors + i * length + j, like)
            y = y - factor * load(W, rows + i * pitch, like)
            z = z - factor * load(W, rows + i * pitch + n, like)
            i = passive_parent(N, i)
        store(W, row, y)
        store(W, row + n, z)
        j = passive_parent(N, j)


@step
def inward_given(N, W, joint, last, factors, length, rows, pitch, like):
    """Solve with Lᵀ for the column of what is given of a joint: of a passive one it is zero below its node."""
    k, _ = node(joint)
    if N[k + N_ACTIVE]:
        for j in range(last - 1, joint, -1):
            kj, _ = node(j)
            if not N[kj + N_ACTIVE]:
                row = rows + j * pitch
                x = less_rows(N, W, j + 1, N[kj + N_END], factors + j, length, rows, pitch, load(W, row, like), like)
                store(W, row, x)
    else:
        last = joint + 1
    j = passive_parent(N, joint)
    while j > 0:
        row = rows + j * pitch
        x = less_rows(N, W, joint, last, factors + j, length, rows, pitch, load(W, row, like), like)
        i = passive_parent(N, joint)
        while i > j:
            x = x - load(W, factors + i * length + j, like) * load(W, rows + i * pitch, like)
            i = passive_parent(N, i)
        store(W, row, x)
        j = passive_parent(N, j)


@step
def inward_columns(N, W, place, pitch, of_base, like):
    """Solve with Lᵀ column by column, where the samples stand side by side, leaving out what is zero."""
    n = N[N_COUNT]
    factors, length, rows = factor_place(N, like), row_length(N, like), place - pitch
    for joint in range(1, n + 1):
        k, _ = node(joint)
        column, last = rows + N[k + N_COORDINATE], N[k + N_END]
        inward_two(N, W, joint, last, factors, length, column, pitch, like)
        inward_given(N, W, joint, last, factors, length, column + 2 * n, pitch, like)
    if of_base:
        for column in range(rows + 3 * n, rows + 3 * n + 12):
            for j in range(n, 0, -1):
                k, _ = node(j)
                if not N[k + N_ACTIVE]:
                    x = load(W, column + j * pitch, like)
                    x = less_rows(N, W, j + 1, N[k + N_END], factors + j, length, column, pitch, x, like)
                    store(W, column + j * pitch, x)


@step
def add_to_active(N, W, i, place, pitch, count, like):
    """Add M_ap ∂q̈ᵖ to the row of the active node i, or of the active nodes on the way to the passive node i."""
    ki, _ = node(i)
    matrix = matrix_place(N) + i * row_length(N, like)
    active_i = N[ki + N_ACTIVE]
    w = width(like)
    j = N[ki + N_PARENT]
    while j > 0:
        kj, _ = node(j)
        if N[kj + N_ACTIVE] != active_i:
            mass = load(W, matrix + j, like)
            into, out = (i, j) if active_i else (j, i)
            to, of = (place + (into - 1) * pitch) * w, (place + (out - 1) * pitch) * w
            for c in range(0, count * w, tile_width()):
                store_tile(W, to + c, load_tile(W, to + c) + mass * load_tile(W, of + c))
        j = N[kj + N_PARENT]


@step
def hand_to_base(N, W, i, place, pitch, column, like):
    """Take what node i has in a column off the passive nodes on its way to the base."""
    factors = factor_place(N, like) + i * row_length(N, like)
    y = load(W, place + (i - 1) * pitch + column, like)
    j = passive_parent(N, i)
    while j > 0:
        x = place + (j - 1) * pitch + column
        store(W, x, load(W, x, like) - load(W, factors + j, like) * y)
        j = passive_parent(N, j)


@step
def inward_torque(N, W, joint, place, pitch, column, like):
    """Solve with Lᵀ for a column that has the row of one joint only."""
    i = joint
    while i > 0:
        k, _ = node(i)
        if not N[k + N_ACTIVE]:
            hand_to_base(N, W, i, place, pitch, column, like)
        i = passive_parent(N, i)


@step
def solve_torques(N, W, place, pitch, like):
    """Do the same as `solve_by_factors` with columns of which each has its own joint's row only."""
    factorise(N, W, like)
    n, end, t = N[N_COUNT], pitch * width(like), tile_width()
    for j in range(1, n + 1):
        k, _ = node(j)
        inward_torque(N, W, j, place, pitch, N[k + N_COORDINATE], like)
    c = 0
    while c + 4 * t <= end:
        outward_four(N, W, place, pitch, c, like)
        c += 4 * t
    while c < end:
        outward_tile(N, W, place, pitch, c, like)
        c += t
    for i in range(1, n + 1):
        add_to_active(N, W, i, place, pitch, pitch, like)


@step
def solve_by_factors(N, W, place, pitch, of_base, like):
    """Replace the passive rows of X by M_pp⁻¹ times them, and add M_ap times them to the active rows."""
    factorise(N, W, like)
    end, t = pitch * width(like), tile_width()
    one_sample = width(like) < t
    if not one_sample:
        inward_columns(N, W, place, pitch, of_base, like)
    c = 0
    while c + 8 * t <= end:
        if one_sample:
            inward_four(N, W, place, pitch, c, like)
            inward_four(N, W, place, pitch, c + 4 * t, like)
        outward_eight(N, W, place, pitch, c, like)
        c += 8 * t
    while c + 4 * t <= end:
        if one_sample:
            inward_four(N, W, place, pitch, c, like)
        outward_four(N, W, place, pitch, c, like)
        c += 4 * t
    while c < end:
        if one_sample:
            inward_tile(N, W, place, pitch, c, like)
        outward_tile(N, W, place, pitch, c, like)
        c += t
    for i in range(1, N[N_COUNT] + 1):
        add_to_active(N, W, i, place, pitch, pitch, like)
