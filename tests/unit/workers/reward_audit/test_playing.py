"""Behaviours that are played side by side decide as each would alone, on the same hosts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.tensor_world import device_data, env_path, make_env

from workers.datasets.behaviour import Behaviour, SeedLife, growing
from workers.growth.environment import GrowthEnv
from workers.reward_audit.playing import player
from workers.reward_audit.recorded import Recorded

STEPS, HOSTS = 10, 2
OFFERED = growing(("early", "late"))
SEVERAL = [
    one for one in OFFERED.reference if one.name in ("schedule", "prune everything", "wait", "random operations")
] + [OFFERED.draw(f"random {number}", np.random.default_rng(number)) for number in range(3)]  # fmt: skip


def env() -> GrowthEnv:
    return make_env(1, STEPS)


@pytest.fixture(scope="module")
def together() -> Recorded:
    return player(env().spec, device_data(torch.float64))(SEVERAL, HOSTS, env_path(0))


def done(recorded: Recorded) -> list[tuple[object, ...]]:
    return [tuple(value for name, value in host.measures.items() if not name.endswith(("accuracy", "loss")))
            for host in recorded.hosts]  # fmt: skip


def test_each_decides_as_alone(together: Recorded) -> None:
    play = player(env().spec, device_data(torch.float64))
    for place, behaviour in enumerate(SEVERAL):
        alone = play([behaviour], HOSTS, env_path(0))
        assert done(alone) == done(together)[place * HOSTS : (place + 1) * HOSTS], behaviour.name


def test_chunks_change_nothing(together: Recorded) -> None:
    chunked = player(env().spec, device_data(torch.float64), together=3)(SEVERAL, HOSTS, env_path(0))
    assert done(chunked) == done(together)
    assert [len(facts.op) for facts in chunked.steps] == [HOSTS * len(SEVERAL)] * STEPS


def test_all_behaviours_begin_with_the_same_hosts(together: Recorded) -> None:
    """The first measurement precedes the first decision."""
    first = together.steps[0].val_acc.reshape(-1, HOSTS)
    assert np.allclose(first, first[0])


def test_a_behaviour_that_cannot_be_played_is_named() -> None:
    there = Behaviour(name="elsewhere", lives=(SeedLife(slot="mid", step=1),))
    with pytest.raises(ValueError, match=r"behaviour 'elsewhere': schedule entry .* no slot 'mid'"):
        player(env().spec, device_data(torch.float64))([there], 1, env_path(0))
