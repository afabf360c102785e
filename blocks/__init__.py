"""Blocks for bdsim diagrams: ports, names and documentation around the mathematics of cstormpy.

In the repository this folder stands beside the package, in an installation inside it; its one name is
``cstormpy.blocks``. Under a second name every class would exist twice, and neither would be an instance
of the other.
"""

if __name__ != "cstormpy.blocks":
    raise ImportError(
        f"the blocks are imported as cstormpy.blocks, not as {__name__!r}: import cstormpy.blocks", name=__name__
    )
