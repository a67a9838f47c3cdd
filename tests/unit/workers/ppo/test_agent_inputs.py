"""What an agent sees and learns from under settings of frames, rewards, returns and advantages."""

import numpy as np
import pytest
from support.kernels.ppo_agents import make_agent

from esper_ab.contracts.records import PPOUpdate
from workers.environments import Cut
from workers.ppo.agent import PPOAgent

WIDTH = 2
ENVS = 4
STEPS = 5


def fresh_agent(normalise: bool = True, frames: int = 1, **ppo: float | str) -> PPOAgent:
    policy = {"hidden": 16, "memory": "none", "normalise_observations": normalise, "frame_stack": frames}
    return make_agent(WIDTH, ("op",), (3,), policy=policy, **ppo)


def shows(agent: PPOAgent, *numbers: float) -> None:
    """Show an observation of equal numbers to each environment."""
    observation = np.repeat(np.array(numbers, dtype=np.float32)[:, None], WIDTH, axis=1)
    agent.act(observation, None, np.full((len(numbers), 1), 0.5))


def train(agent: PPOAgent, episodes: int) -> PPOUpdate:
    """Train on random observations and rewards of about 50; return the last update."""
    rng = np.random.default_rng(0)
    for episode in range(episodes):
        agent.begin_episode(ENVS)
        for step in range(STEPS):
            agent.act(rng.standard_normal((ENVS, WIDTH)).astype(np.float32), None, rng.random((ENVS, 1)))
            agent.reward(rng.standard_normal(ENVS) * 20 + 50, np.full(ENVS, step == STEPS - 1))
        update = agent.finish_episode(episode)
    return update


def at_the_limit(goes_on: bool) -> Cut:
    """Both of two environments are cut off, having seen 1."""
    yes, no = np.ones(2, dtype=bool), np.zeros(2, dtype=bool)
    last = np.ones((2, WIDTH), dtype=np.float32)
    return Cut(truncated=yes, last=last, restarted=no, goes_on=yes if goes_on else no)


@pytest.mark.parametrize(("goes_on", "forgets"), [(True, False), (True, True), (False, False)])
def test_frames_are_kept_in_the_next_rollout_where_the_episode_goes_on(goes_on: bool, forgets: bool):
    agent = fresh_agent(normalise=False, frames=2)
    agent.begin_episode(2)
    shows(agent, 2.0, 3.0)
    agent.reward(np.ones(2), np.ones(2, dtype=bool), at_the_limit(goes_on))
    agent.finish_episode(0)
    if forgets:
        agent.forget(np.array([True, False]))
    agent.begin_episode(2)
    shows(agent, 7.0, 8.0)
    agent.reward(np.ones(2), np.ones(2, dtype=bool))
    first_frames = agent._buffer.rollout().raw[0, :, 0].tolist()
    assert first_frames == ([7.0 if forgets else 2.0, 3.0] if goes_on else [7.0, 8.0])


def test_the_value_of_an_episode_that_is_cut_off_sees_its_last_frames():
    """Looking at it adds nothing to the stack."""
    agent = fresh_agent(frames=2)
    assert agent.observations.mean.shape == (2 * WIDTH,)
    values = []
    for start in (4.0, -4.0):
        agent.begin_episode(2)
        shows(agent, start, start)
        values.append(agent._last_values(at_the_limit(goes_on=False)).tolist())
        assert agent._last_values(at_the_limit(goes_on=False)).tolist() == values[-1]
    assert values[0] != values[1]


def test_a_restarted_episode_sees_nothing_of_the_one_before():
    agent = fresh_agent(normalise=False, frames=2)
    agent.begin_episode(1)
    for step, number in enumerate((1.0, 2.0, 3.0)):
        shows(agent, number)
        is_end = np.array([step == 0])
        cut = Cut(
            truncated=~np.ones(1, dtype=bool),
            last=np.ones((1, WIDTH), dtype=np.float32),
            restarted=is_end,
            goes_on=~np.ones(1, dtype=bool),
        )
        agent.reward(np.ones(1), is_end, cut)
    assert agent._buffer.rollout().raw[:, 0, ::WIDTH].tolist() == [[1.0, 1.0], [2.0, 2.0], [2.0, 3.0]]


def test_returns_that_are_not_normalised_are_learnt_in_reward_units():
    """The critic's output is the value: neither the first returns nor later ones change its last layer."""
    agent = fresh_agent(normalise_returns=False, lr=0.0)
    weights_before = {name: weight.copy() for name, weight in agent.policy.weights.items()}
    update = train(agent, 2)
    assert all(np.array_equal(weight, agent.policy.weights[name]) for name, weight in weights_before.items())
    assert agent.returns.moments.count == 0
    assert update.return_mean > 50.0
    assert update.value_loss > 0.5 * 50.0**2  # an untrained critic says about 0


def test_advantages_that_are_not_normalised_keep_the_unit_of_rewards():
    """The policy loss is minus the mean advantage as long as nothing was learnt."""
    losses = {}
    for normalise in ("batch", "none"):
        update = train(fresh_agent(normalise_advantages=normalise, lr=0.0, minibatches=1), 1)
        losses[normalise] = update.policy_loss
        assert update.advantage_std > 10.0
    assert losses["batch"] == pytest.approx(0.0, abs=1e-6)
    assert losses["none"] < -10.0


def test_rewards_are_scaled_and_clipped_before_returns_are_computed():
    """Rewards of about 50 with a limit of 2: at most 5 steps of 2."""
    assert 2.0 < train(fresh_agent(reward_clip=2.0), 1).return_mean <= 10.0
    assert train(fresh_agent(reward_scaling=True), 1).return_mean < train(fresh_agent(), 1).return_mean / 10.0
