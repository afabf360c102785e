"""What stands for a port, or for several: indices, slices, names, and what is told of the rest."""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs


@pytest.fixture
def sim():
    return cs.Simulation()


@pytest.mark.parametrize("at", [0, 1, slice(0, 2), "elbow"])
def test_numbers_are_taken_out_of_a_port_by_a_block(sim, at):
    """plant.q[0] was all of plant.q without a word, and plant.q[1] "list index out of range"."""
    bd = sim.blockdiagram()
    plant, gain = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.GAIN(1.0, name="gain")
    with pytest.raises(cs.InvalidType, match=r"^plant\.q: an output is wired as a whole; bd\.INDEX\(\[.*\) takes"):
        bd.connect(plant.q[at], gain)
    with pytest.raises(cs.InvalidType, match=r"plant\.tau: an input is wired as a whole; bd\.MUX\(n\) puts n"):
        bd.connect(gain, plant.tau[at])
    with pytest.raises(cs.InvalidType, match=r"plant\.q: an output is wired as a whole"):
        tuple(plant.q)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (1.0, r"bd\.CONSTANT\(1\.0\)"),
        ([1.0, 2], r"bd\.CONSTANT\(\[1\.0, 2\]\)"),  # which was told to be wired one by one
        (np.ones(3), r"bd\.CONSTANT\(\.\.\.\)"),
        ("plant.q", r"by its variable, as in plant\.q, or as bd\['plant'\]"),
    ],
)
def test_what_is_no_block_is_told_what_would_be(sim, given, says):
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("planar_2r", name="plant")
    with pytest.raises(cs.InvalidType, match=f"expected a block or one of its ports, got .*{says}$"):
        plant.tau = given


@pytest.mark.parametrize(("places", "value"), [([0], 1.0), (1, [1.0, 2.0]), ([2], [1.0, 2.0])])
def test_an_index_that_cannot_be_taken_is_told_what_it_takes(sim, places, value):
    """It was "'float' object is not subscriptable", or "object of type 'int' has no len()", and no more."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(value), index := bd.INDEX(places, name="index"))
    bd.connect(index, bd.NULL())
    with pytest.raises(
        cs.BlockError, match=r"block 'index'.*by a list of places counted from 0, as bd\.INDEX\(\[0\]\)"
    ):
        sim.run(bd, T=0.1)


def test_a_gain_that_is_transposed_is_told_by_its_shape(sim):
    """It was NumPy's sentence about core dimensions, without a word on K."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT([1.0, 2.0]), gain := bd.GAIN(np.ones((2, 1)), premul=True, name="gain"))
    bd.connect(gain, bd.NULL())
    with pytest.raises(cs.BlockError, match=r"as many numbers as K has columns, and K has the shape \(2, 1\)"):
        sim.run(bd, T=0.1)


def test_slices_of_ports_are_those_of_lists(sim):
    """plant[1:] of a watched block ended at the number of its inputs; plant[-2:] stood for each port twice."""
    bd = sim.blockdiagram()
    plant, scope = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.LIVESCOPE(2)
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    bd.connect(plant[-2:], scope)
    assert [(wire.start.port, wire.end.port) for wire in bd.wirelist[1:]] == [(0, 0), (1, 1)]
    both = ["plant.q", "plant.qd"]
    last, back = both[1:], both[::-1]
    for ports, names in (
        (plant[0:], both), (plant[1:], last), (plant[:-1], both[:1]), (plant[-1], last), (plant[::-1], back)
    ):  # fmt: skip
        assert sim.run(bd, T=0.1, watch=[ports]).ynames == names
    for ports, number in ((plant[0:3], 2), (plant[-3], -3)):
        with pytest.raises(cs.UnknownName, match=f"block 'plant' has 2 outputs, there is no output {number}"):
            sim.run(bd, T=0.1, watch=[ports])


def test_an_input_is_no_signal_to_watch(sim):
    """watch=[plant.tau] recorded the first output, plant.q, without a word, and out.signal(plant.tau) returned it."""
    bd = sim.blockdiagram()
    plant, motor = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.CONSTANT(0.0, name="motor")
    bd.connect(motor, plant.tau)
    with pytest.raises(
        cs.UnknownName, match=r"^watch: plant\.tau is an input; name the output that is wired to it, 'mot"
    ):
        sim.run(bd, T=0.1, watch=[plant.tau])
    out = sim.run(bd, T=0.1, watch=[plant.q, "motor"])
    with pytest.raises(cs.UnknownName, match=r"^signal: plant\.tau is an input; name the output that is wired to it"):
        out.signal(plant.tau)
    assert out.signal(plant.q).shape[1] == 2
