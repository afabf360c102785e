"""Expression graph: numbers as symbols, their derivatives, and machine code for one sample or for lanes of samples.

A function of numbers that is called with the symbols of a `Graph` instead of floats writes down what it computes: a
straight line of operations, in which constants are folded and nothing stands twice. `derivatives` differentiates it,
`printing` shows it, and `routine` turns it into machine code by LLVM, without numba and without a C compiler.

>>> from cstormpy.graph import Graph
>>> graph = Graph()
>>> x, y = graph.inputs("x", 2)
>>> x * y + y * x - 0.0
2.0*x[0]*x[1]
"""

from cstormpy.graph.nodes import Graph, Node, SymbolicBranch, require_zero

__all__ = ["Graph", "Node", "SymbolicBranch", "require_zero"]
