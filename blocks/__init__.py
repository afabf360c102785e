"""Blocks for bdsim diagrams: ports, names and documentation around the mathematics of cstormpy.

In the repository this folder stands beside the package, in an installation inside it; its one name is
``cstormpy.blocks``. Under a second name every class would exist twice, and neither would be an instance
of the other.
"""

if __name__ != "cstormpy.blocks":
    raise ImportError(
        f"the blocks are imported as cstormpy.blocks, not as {__name__!r}: import cstormpy.blocks", name=__name__
    )

import cstormpy.simulation  # noqa: F401  loads bdsim, and silences what its dependencies have Python warn of

url = "https://doi.org/10.1115/1.1376121"
"""Page that bdedit opens for help on a block: Sohl and Bobrow's paper, whose algorithms and letters these are.

bdsim reads it from the source text, so that it has to be a literal.
"""
