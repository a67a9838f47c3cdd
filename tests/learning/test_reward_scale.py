"""Learning does not depend on the scale or the offset of rewards."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels.ppo_agents import make_agent

from esper_ab.contracts.records import PPOUpdate
from workers.environments import Cut
from workers.ppo.agent import PPOAgent

CHOICES = 3
EPISODES = 6
Pay = Callable[["Toy", np.ndarray, int, int], np.ndarray]


@dataclass(frozen=True)
class Toy:
    """Observe three numbers and the time, choose the largest number; `pay` maps correct choices to rewards."""

    pay: Pay
    scale: float = 1.0
    offset: float = 0.0
    steps: int = 25
    envs: int = 8
    cut_short: bool = False  # the last step truncates the episode

    def play(self, agent: PPOAgent, episode: int) -> list[list[int]]:
        """Play one rollout; return the actions of every step."""
        rng = np.random.default_rng(episode)
        agent.begin_episode(self.envs)
        actions = []
        for step in range(self.steps):
            observations = self._observe(rng, step)
            chosen_actions = agent.act(observations, self, rng.random((self.envs, 1)))
            is_right = (chosen_actions[:, 0] == observations[:, :CHOICES].argmax(axis=1)).astype(np.float64)
            is_last = step == self.steps - 1
            cut_episodes = self._cut(episode) if is_last and self.cut_short else None
            rewards = self.scale * (self.pay(self, is_right, step, episode) + self.offset)
            agent.reward(rewards, np.full(self.envs, is_last), cut_episodes)
            actions.append(chosen_actions[:, 0].tolist())
        return actions

    def learn(self, agent: PPOAgent, episodes: range) -> tuple[list[list[list[int]]], list[PPOUpdate]]:
        """Train for these episodes; return their actions and updates."""
        actions = []
        updates = []
        for episode in episodes:
            actions.append(self.play(agent, episode))
            updates.append(agent.finish_episode(episode))
        return actions, updates

    def mask(self, head: int, choices: np.ndarray) -> np.ndarray:
        return np.ones((len(choices), CHOICES), dtype=bool)

    def _cut(self, episode: int) -> Cut:
        no_flags = np.zeros(self.envs, dtype=bool)
        observations = self._observe(np.random.default_rng(1000 + episode), self.steps)
        return Cut(truncated=~no_flags, last=observations, restarted=no_flags, goes_on=no_flags)

    def _observe(self, rng: np.random.Generator, step: int) -> np.ndarray:
        time = np.full((self.envs, 1), step / self.steps)
        return np.concatenate([rng.standard_normal((self.envs, CHOICES)), time], axis=1).astype(np.float32)


def every_step(toy: Toy, is_right: np.ndarray, step: int, episode: int) -> np.ndarray:
    return is_right


def at_the_end(toy: Toy, is_right: np.ndarray, step: int, episode: int) -> np.ndarray:
    return 0.3 * is_right + 0.1 if step == toy.steps - 1 else np.zeros(toy.envs)


def nothing_at_first(toy: Toy, is_right: np.ndarray, step: int, episode: int) -> np.ndarray:
    return is_right - 0.7 if episode >= 2 else np.zeros(toy.envs)


def the_same_at_first(toy: Toy, is_right: np.ndarray, step: int, episode: int) -> np.ndarray:
    is_last = float(step == toy.steps - 1)
    return np.full(toy.envs, 0.1 * is_last) if episode < 2 else is_right


def an_occasional_penalty(toy: Toy, is_right: np.ndarray, step: int, episode: int) -> np.ndarray:
    return np.where((is_right == 0) & (step % 4 == 3), -10.0, 0.1)


PAYS = (every_step, at_the_end, nothing_at_first, the_same_at_first, an_occasional_penalty)


def fresh_agent(rng_seed: int = 0, hidden: int = 64, **ppo: float) -> PPOAgent:
    policy = {"hidden": hidden}
    return make_agent(CHOICES + 1, ("name",), (CHOICES,), rng_seed=rng_seed, episodes=EPISODES, policy=policy, **ppo)


def weights(agent: PPOAgent, part: str = "") -> dict[str, list[float]]:
    return {name: weight.ravel().tolist() for name, weight in agent.policy.weights.items() if name.startswith(part)}


def in_units_of(update: PPOUpdate, unit: float) -> PPOUpdate:
    """Convert an update to rewards in this unit."""
    mean = update.return_mean / unit
    std = update.advantage_std / unit
    return msgspec.structs.replace(update, return_mean=mean, advantage_std=std)


@settings(max_examples=15)
@given(
    st.sampled_from(PAYS),
    st.integers(-60, 60),
    st.integers(0, 99),
    st.sampled_from([0.0, 5.0, -0.1]),
    st.booleans(),
    st.integers(1, 6),
    st.integers(1, 5),
)
def test_scaling_rewards_by_a_power_of_two_gives_bit_identical_learning(
    pay: Pay, power: int, rng_seed: int, offset: float, cut_short: bool, steps: int, envs: int
):
    toy = Toy(pay, offset=offset, steps=steps, envs=envs, cut_short=cut_short)
    plain_agent = fresh_agent(rng_seed, hidden=8, epochs=2)
    scaled_agent = fresh_agent(rng_seed, hidden=8, epochs=2)
    actions, updates = toy.learn(plain_agent, range(4))
    rescaled_actions, scaled_updates = replace(toy, scale=2.0**power).learn(scaled_agent, range(4))
    assert rescaled_actions == actions
    assert [in_units_of(update, 2.0**power) for update in scaled_updates] == updates
    assert weights(scaled_agent) == weights(plain_agent)


@pytest.mark.parametrize("offset", [5.0, -20.0])
@pytest.mark.parametrize("rng_seed", [0, *(pytest.param(rng_seed, marks=pytest.mark.slow) for rng_seed in (1, 2))])
def test_a_reward_offset_does_not_reduce_explained_variance(offset: float, rng_seed: int):
    toys = Toy(every_step), Toy(every_step, offset=offset)
    plain_variance, shifted_variance = (
        toy.learn(fresh_agent(rng_seed), range(6))[1][5].explained_variance for toy in toys
    )
    assert plain_variance > 0.5
    assert shifted_variance > plain_variance - 0.05


@settings(max_examples=15)
@given(
    st.floats(-1e6, 1e6).filter(lambda reward: abs(reward) > 1e-6),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_equal_returns_leave_the_actor_unchanged(reward: float, steps: int, envs: int, rng_seed: int):
    """Every return sums to `reward` up to rounding; without an entropy bonus the actor must not change."""

    def pay(toy: Toy, is_right: np.ndarray, step: int, episode: int) -> np.ndarray:
        shares = np.random.default_rng(episode).dirichlet(
            np.ones(3), toy.envs
        )  # different rewards in every environment
        return (reward * shares).sum(axis=1) if step == toy.steps - 1 else np.zeros(toy.envs)

    agent = fresh_agent(rng_seed, hidden=8, epochs=2, gamma=1.0, gae_lambda=1.0, entropy_coef=0.0, entropy_coef_end=0.0)
    weights_before = weights(agent, "actor")
    _, updates = Toy(pay, steps=steps, envs=envs).learn(agent, range(4))
    assert weights(agent, "actor") == weights_before
    assert [update.advantage_std for update in updates] == [0.0] * 4
    assert agent.returns.denormalise(np.array([-1.0, 1.0])) == pytest.approx([reward, reward], rel=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_updates_of_the_return_normaliser_preserve_predicted_values(scale: float):
    agent = fresh_agent(lr=1e-12)
    toy = Toy(every_step, scale=scale, offset=-3.0)
    weights_before = weights(agent, "value_out.weight")
    toy.learn(agent, range(1))
    assert weights(agent, "value_out.weight") == weights_before
    assert agent.policy.weights["value_out.bias"].item() == pytest.approx(0.0, abs=1e-9)
    observation = np.zeros((1, CHOICES + 1), dtype=np.float32)

    def value() -> float:
        return float(agent.returns.denormalise(agent.policy.values(observation, agent.policy.initial_memory(1)))[0])

    expected = value()
    std = agent.returns.std
    replace(toy, offset=2.0).learn(agent, range(1, 2))
    assert agent.returns.std > 1.5 * std
    assert value() == pytest.approx(expected, abs=1e-5 * std)
