"""Layout of the matrices of the sensitivities, and M_pp⁻¹ times the columns by the factors of M_pp.

M_pp = Lᵀ D L keeps the zeros of the tree (Featherstone 2008, section 6.5); M stands in rows of its own, L in
those behind, and then the columns X, a row for each node.
"""

from cstormpy.kernels.closed_forms import forms_place
from cstormpy.kernels.hybrid import node
from cstormpy.kernels.lanes import is_unrolled, load, load_tile, reciprocal, store, store_tile, tile_width, width
from cstormpy.kernels.layout import CF_ROW, N_ABOVE, N_ACTIVE, N_COORDINATE, N_COUNT, N_END, N_PARENT
from cstormpy.kernels.steps import step

#: Numbers that a line of the processor's cache holds: no tile of the rows of one sample lies on two of them.
ALIGNED = 8


@step
def matrix_place(N):
    """Return where M stands: a row for each node, of as many numbers as `row_length` says."""
    return (forms_place(N) + (N[N_COUNT] + 1) * CF_ROW + ALIGNED - 1) // ALIGNED * ALIGNED


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
def by_tiles(like):
    """Tell whether the columns of one sample stand side by side in tiles, in loops."""
    return width(like) < tile_width() and not is_unrolled()


@step
def column_count(N, of_base, like):
    """Return the length of a row of X; of one sample groups of four tiles, and a tile as in `padded`."""
    count = 3 * N[N_COUNT] + (12 if of_base else 0)
    if by_tiles(like):
        group = 4 * tile_width()
        return (count + group - 1) // group * group + tile_width()
    return padded(count, like)


@step
def passive_parent(N, i):
    """Return the nearest passive node between node i and the base, or 0."""
    k, _ = node(i)
    return N[k + N_ABOVE]


@step
def reduce_row(N, W, i, k, a, matrix, length, like):
    """Take a times row k off row i, up to its diagonal."""
    if by_tiles(like):
        # whole tiles, what stands beyond the diagonal is never read
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
                if not by_tiles(like):
                    store(W, matrix + k * length + i, a)
                i = passive_parent(N, i)
            if by_tiles(like):  # at last: a tile that has just been written to in part is slow to read
                for row in range(matrix + k * length, matrix + k * length + k, tile_width()):
                    store_tile(W, row, inverse * load_tile(W, row))
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
    """Solve with Lᵀ for one tile of all columns."""
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
def inward_eight(N, W, place, pitch, c, like):
    """Solve with Lᵀ for eight neighbouring tiles of all columns."""
    factors, length, w = factor_place(N, like), row_length(N, like), width(like)
    half = 4 * tile_width()
    for j in range(N[N_COUNT], 0, -1):
        kj, _ = node(j)
        if not N[kj + N_ACTIVE]:
            x = (place + (j - 1) * pitch) * w + c
            a, b = load_four(W, x), load_four(W, x + half)
            for i in range(j + 1, N[kj + N_END]):
                ki, _ = node(i)
                if not N[ki + N_ACTIVE]:
                    factor, below = load(W, factors + i * length + j, like), (place + (i - 1) * pitch) * w + c
                    a = minus_four(a, factor, load_four(W, below))
                    b = minus_four(b, factor, load_four(W, below + half))
            store_four(W, x, a)
            store_four(W, x + half, b)


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
    """Solve with D L for eight neighbouring tiles, for which each factor is fetched once."""
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
    """Solve with D L for one tile of all columns."""
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
    """Return the numbers of two columns, which stand so far apart, less the same, as `less_rows` does."""
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
def inward_prescribed(N, W, joint, last, factors, length, rows, pitch, like):
    """Solve with Lᵀ for the column of the acceleration of an active joint, whose subtree ends before node `last`."""
    for j in range(last - 1, joint, -1):
        kj, _ = node(j)
        if not N[kj + N_ACTIVE]:
            row = rows + j * pitch
            x = less_rows(N, W, j + 1, N[kj + N_END], factors + j, length, rows, pitch, load(W, row, like), like)
            store(W, row, x)
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
    """Solve with Lᵀ column by column, where the samples stand side by side, leaving out what is zero.

    The columns of the torques of passive joints are left to `invert`.
    """
    n = N[N_COUNT]
    factors, length, rows = factor_place(N, like), row_length(N, like), place - pitch
    for joint in range(1, n + 1):
        k, _ = node(joint)
        column, last = rows + N[k + N_COORDINATE], N[k + N_END]
        inward_two(N, W, joint, last, factors, length, column, pitch, like)
        if N[k + N_ACTIVE]:
            inward_prescribed(N, W, joint, last, factors, length, column + 2 * n, pitch, like)
    if of_base:
        for column in range(rows + 3 * n, rows + 3 * n + 12):
            for j in range(n, 0, -1):
                k, _ = node(j)
                if not N[k + N_ACTIVE]:
                    x = load(W, column + j * pitch, like)
                    x = less_rows(N, W, j + 1, N[k + N_END], factors + j, length, column, pitch, x, like)
                    store(W, column + j * pitch, x)


@step
def invert(N, W, sign, factors, length, rows, pitch, like):
    """Write M_pp⁻¹, or its negative, into the passive rows of the columns that begin at `rows`, that of node 0.

    Of a column c the numbers behind its own node follow from those of the nodes on the way to the base, and the others
    are the same by symmetry: x_ic = δ_ic / D_i − Σ_j L_ij x_jc.
    """
    for i in range(1, N[N_COUNT] + 1):
        ki, _ = node(i)
        if not N[ki + N_ACTIVE]:
            column = rows + N[ki + N_COORDINATE]
            for c in range(1, i + 1):
                kc, _ = node(c)
                if not N[kc + N_ACTIVE]:
                    place = rows + N[kc + N_COORDINATE]
                    x = like
                    if c == i:
                        x = sign * load(W, factors + i * length + i, like)
                    j = passive_parent(N, i)
                    while j > 0:
                        x = x - load(W, factors + i * length + j, like) * load(W, place + j * pitch, like)
                        j = passive_parent(N, j)
                    store(W, place + i * pitch, x)
                    store(W, column + c * pitch, x)


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
def solve_torques(N, W, place, pitch, like):
    """Do the same as `solve_by_factors` with columns of which each has its joint's row only, −1 if that is passive."""
    factorise(N, W, like)
    invert(N, W, -1.0, factor_place(N, like), row_length(N, like), place - pitch, pitch, like)
    for i in range(1, N[N_COUNT] + 1):
        add_to_active(N, W, i, place, pitch, pitch, like)


@step
def outward_columns(N, W, place, pitch, first, last, like):
    """Solve with D L for columns side by side."""
    c, end, t = first * width(like), last * width(like), tile_width()
    while c + 8 * t <= end and not is_unrolled():
        outward_eight(N, W, place, pitch, c, like)
        c += 8 * t
    while c + 4 * t <= end and not is_unrolled():
        outward_four(N, W, place, pitch, c, like)
        c += 4 * t
    while c < end:
        outward_tile(N, W, place, pitch, c, like)
        c += t


@step
def solve_by_factors(N, W, place, pitch, of_base, like):
    """Replace the passive rows of X by M_pp⁻¹ times them, and add M_ap times them to the active rows."""
    factorise(N, W, like)
    n, end, t = N[N_COUNT], pitch * width(like), tile_width()
    if by_tiles(like):
        c = 0
        while c + 8 * t <= end:
            inward_eight(N, W, place, pitch, c, like)
            outward_eight(N, W, place, pitch, c, like)
            c += 8 * t
        if c + 4 * t <= end:
            inward_four(N, W, place, pitch, c, like)
            outward_four(N, W, place, pitch, c, like)
    elif width(like) < t:
        for c in range(0, end, t):
            inward_tile(N, W, place, pitch, c, like)
            outward_tile(N, W, place, pitch, c, like)
    else:
        inward_columns(N, W, place, pitch, of_base, like)
        outward_columns(N, W, place, pitch, 0, 2 * n, like)
        for i in range(1, n + 1):
            k, _ = node(i)
            if N[k + N_ACTIVE]:
                column = 2 * n + N[k + N_COORDINATE]
                outward_columns(N, W, place, pitch, column, column + 1, like)
        invert(N, W, 1.0, factor_place(N, like), row_length(N, like), place - pitch + 2 * n, pitch, like)
        if of_base:
            outward_columns(N, W, place, pitch, 3 * n, 3 * n + 12, like)
    for i in range(1, n + 1):
        add_to_active(N, W, i, place, pitch, pitch, like)
