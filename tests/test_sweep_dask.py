"""A sweep on a cluster of Dask's in this machine; builder and measure may be lambdas there."""

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.diagrams import pendulum


@pytest.mark.slow
def test_dask_gives_the_same_as_threads():
    distributed = pytest.importorskip("distributed", reason="the extra 'distributed' is not installed")
    sim = cs.Simulation(engine="interpreted", live=False)
    grid = {"plant.joint1.q": [0.1, 0.5, 1.0, 2.0], "rods": [1, 2], "plant:qd0[0]": [0.0, 3.0]}
    here = sim.sweep(pendulum, grid, lambda out: out.x[-1, :2], T=0.1, workers=1)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = sim.sweep(pendulum, grid, lambda out: out.x[-1, :2], T=0.1, executor=client.get_executor())
        with pytest.raises(cs.InvalidType, match=r"client\.get_executor\(\)"):
            sim.sweep(pendulum, grid, ["plant.q"], T=0.1, executor=client)
    assert there.status == "finished" and not there.failed.any()
    np.testing.assert_array_equal(there.value, here.value)
