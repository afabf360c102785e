"""Nodes: where the numbers and integers of one stand."""

from cstormpy.kernels.layout import N_COUNT, N_LINKS, N_NODE, N_NODES, T_NODE, T_NODES
from cstormpy.kernels.steps import step


@step
def node(i):
    """Return where node i stands in N and in T."""
    return N_NODES + N_NODE * (i - 1), T_NODES + T_NODE * (i - 1)


@step
def node_of(N, coordinate):
    """Return the node of a coordinate."""
    return N[N_NODES + N_NODE * N[N_COUNT] + N[N_LINKS] + coordinate]
