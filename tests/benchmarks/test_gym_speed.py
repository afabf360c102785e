"""4096 acrobots as one environment, on one core, beside Gymnasium's own Acrobot-v1: the same task, the same steps."""

from __future__ import annotations

import numpy as np
import pytest
from interleaved import interleave

import cstormpy as cs

gymnasium = pytest.importorskip("gymnasium")

COUNT, GOAL = 4096, 100
TABLE = f"steps of an acrobot a second, and their ratio to Acrobot-v1's (goal {GOAL})"


def test_many_acrobots(benchmark, record_row):
    many, one = cs.gym.make("acrobot", num_envs=COUNT), cs.gym.make("acrobot")
    theirs = gymnasium.make("Acrobot-v1").unwrapped
    actions = np.random.default_rng(1).integers(3, size=(64, COUNT))
    many.reset(seed=1)
    turn = {"many": 0, "one": 0, "theirs": 0}

    def step_many():
        turn["many"] += 1
        many.step(actions[turn["many"] % 64])

    def step(name, env):
        turn[name] += 1
        if turn[name] % 200 == 1:
            env.reset(seed=1)
        env.step(int(actions[turn[name] % 64, 0]))

    times = interleave(
        {"many": step_many, "one": lambda: step("one", one), "theirs": lambda: step("theirs", theirs)}, rounds=9
    )
    rates = {name: (COUNT if name == "many" else 1) / seconds for name, seconds in times.items()}
    for name in ("many", "one"):
        record_row(TABLE, env=name, ours=rates[name], gymnasium=rates["theirs"], ratio=rates[name] / rates["theirs"])
    benchmark.pedantic(step_many, rounds=20)
