"""An agent whose decisions are continuous."""

import numpy as np
import pytest
from support.kernels.ppo_agents import ARITHMETICS, make_agent

from esper_ab.contracts.settings import Arithmetic
from workers.ppo.agent import PPOAgent


def continuous_agent(arithmetic: Arithmetic, **ppo: float) -> PPOAgent:
    return make_agent(2, ("x", "y"), (), arithmetic=arithmetic, policy={"hidden": 16, "memory": "none"}, **ppo)


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda arithmetic: arithmetic.kernel)
def test_continuous_decisions_approach_the_rewarded_action(arithmetic: Arithmetic):
    """The reward is the distance from (1, -1): from 2 on average, by 64 environments' single decisions."""
    agent = continuous_agent(arithmetic, lr=0.02, minibatches=4)
    rng = np.random.default_rng(0)
    means = []
    for episode in range(30):
        agent.begin_episode(64)
        actions = agent.act(np.ones((64, 2), dtype=np.float32), None, rng.random((64, 2)))
        agent.reward(-np.abs(actions - [1.0, -1.0]).sum(-1), np.ones(64, dtype=bool))
        update = agent.finish_episode(episode)
        means.append(actions.mean(axis=0))
        assert update.first_ratio_error < 1e-6
        assert update.heads == {}
    assert np.abs(means[0]).max() < 0.5
    assert means[-1] == pytest.approx([1.0, -1.0], abs=0.35)


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda arithmetic: arithmetic.kernel)
def test_greedy_continuous_decisions_are_the_means_of_sampled_decisions(arithmetic: Arithmetic):
    agent = continuous_agent(arithmetic)
    agent.frozen = True
    agent.begin_episode(1001)
    observations = np.ones((1001, 2), dtype=np.float32)
    quantiles = np.repeat((np.arange(1001) / 1000.0)[:, None], 2, axis=1)
    quantiles[-1] = 1.0 - 2.0**-53
    sampled_actions = agent.act(observations, None, quantiles)
    greedy_actions = agent.act(observations, None, quantiles, greedy=True)
    assert np.isfinite(sampled_actions).all()
    assert sampled_actions[500] == pytest.approx(greedy_actions[0])
    assert (np.diff(sampled_actions, axis=0) > 0).all()
