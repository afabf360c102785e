"""The compiled kernels: contiguous float64 arrays in, arrays out, no objects.

Read them in this order: `layout` (what stands where in the tables and in the scratch), `lanes` (the
number type that lets one source serve one sample or several side by side), `vector`, the sweeps
(`hybrid`, `closed_forms`, `sensitivity` with `factorisation` and `recursion`, `directional`,
`kinematics`), `samples` (in and out of the scratch), and the `entries_…`, which Python calls.
`compiling` keeps what was compiled.
"""
