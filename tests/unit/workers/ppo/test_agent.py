"""The agent as a whole: ratio 1, ended environments, bootstrap, freezing, state round trip."""

import io
import math

import numpy as np
import pytest
import torch

from esper_ab.contracts.records import PPOUpdate
from esper_ab.contracts.rng import run_path
from esper_ab.contracts.settings import PolicySettings, PPOSettings
from workers.ppo.agent import AgentSpec, PPOAgent

SIZES = (3, 2, 4)
NAMES = ("op", "slot", "blueprint")
WIDTH, ENVS, STEPS = 6, 4, 5


class HalfMasks:
    """Op 0 uses no other head; every third choice of the last head is invalid."""

    def mask(self, head: int, chosen: np.ndarray) -> np.ndarray:
        mask = np.ones((len(chosen), SIZES[head]), dtype=bool)
        if head > 0:
            mask[chosen[:, 0] == 0] = False
        if head == 2:
            mask[:, 2] = False
        return mask


def fresh_agent(rng_seed: int = 0, normalise: bool = True, **ppo: float) -> PPOAgent:
    spec = AgentSpec(
        observation_width=WIDTH,
        head_names=NAMES,
        head_sizes=SIZES,
        policy=PolicySettings(hidden=16, normalise_observations=normalise),
        ppo=PPOSettings(**ppo),
        rng=run_path(rng_seed, 0),
        planned_episodes=10,
    )
    return PPOAgent(spec)


def collect(agent: PPOAgent, key: int, ended: int | None = None, garbage: float = 0.0) -> list[list[list[int]]]:
    """One rollout on random numbers; environment 1 ends with step `ended`, and shows `garbage` from then on."""
    rng = np.random.default_rng(key)
    agent.begin_episode(ENVS)
    actions = []
    for step in range(STEPS):
        observation = (rng.standard_normal((ENVS, WIDTH)) * 5 + 3).astype(np.float32)
        uniforms, rewards = rng.random((ENVS, len(SIZES))), rng.standard_normal(ENVS) * 20 + 50
        done = np.full(ENVS, step == STEPS - 1)
        if ended is not None and step > ended:
            observation[1], rewards[1], uniforms[1] = garbage, garbage, 0.5
        if step == ended:
            done[1] = True
        actions.append(agent.act(observation, HalfMasks(), uniforms).tolist())
        agent.reward(rewards, done)
    return actions


def weights(agent: PPOAgent) -> list[list[float]]:
    return [tensor.flatten().tolist() for tensor in agent.policy.state_dict().values()]


def train(agent: PPOAgent, episodes: range, **how: float) -> list[PPOUpdate]:
    updates = []
    for episode in episodes:
        collect(agent, episode, **how)
        updates.append(agent.finish_episode(episode))
    return updates


def test_the_first_ratio_is_1_also_with_normalised_observations():
    for update in train(fresh_agent(lr=3e-3), range(4)):
        assert update.first_ratio_error is not None
        assert update.first_ratio_error < 1e-6
        assert update.ratio_max is not None
        assert update.ratio_max > 1.001  # and it did not stay there


@pytest.mark.parametrize("normalise", [True, False])
def test_only_a_normaliser_lets_earlier_episodes_change_what_a_policy_sees(normalise: bool):
    """With a learning rate of 0 the network is the same, so a decision can change only with its inputs."""
    agent = fresh_agent(normalise=normalise, lr=0.0)
    seen = []
    for _ in range(2):
        collect(agent, 0)
        rollout = agent._buffer.rollout()
        assert rollout is not None
        seen.append(rollout.observations)
        agent.finish_episode(0)
    assert np.array_equal(*seen) is not normalise


def test_diagnostics_are_numbers_of_this_rollout():
    agent = fresh_agent()
    update = train(agent, range(1))[0]
    assert update.entropy == pytest.approx(entropy_if_uniform(collect(fresh_agent(), 0)), abs=0.02)
    assert update.op_entropy == pytest.approx(math.log(3), abs=0.01)
    assert update.return_mean is not None
    assert 50 < update.return_mean < 300  # rewards of 50 over up to 5 steps
    assert update.epochs_done == PPOSettings().epochs


def test_heads_are_reported_by_name_with_how_often_they_had_a_choice():
    used = (np.array(collect(fresh_agent(), 0))[..., 0] != 0).mean()
    heads = train(fresh_agent(), range(1))[0].heads
    assert {name: use.learnable for name, use in heads.items()} == pytest.approx(
        {"op": 1.0, "slot": used, "blueprint": used}
    )
    for use in heads.values():
        assert use.entropy == pytest.approx(1.0, abs=0.02)  # a fresh policy is close to uniform


def entropy_if_uniform(actions: list[list[list[int]]]) -> float:
    """Per decision: ln 3 for the op, ln 2 + ln 3 more where the op uses slot and blueprint."""
    used = np.array(actions)[..., 0] != 0
    return math.log(3) + used.mean() * (math.log(2) + math.log(3))


@pytest.mark.parametrize("garbage", [1e6, math.nan, math.inf])
def test_what_an_ended_environment_shows_changes_nothing(garbage: float):
    clean, dirty = fresh_agent(), fresh_agent()
    expected = train(clean, range(3), ended=2, garbage=0.0)
    assert train(dirty, range(3), ended=2, garbage=garbage) == expected
    assert weights(dirty) == weights(clean)
    assert dirty.observations.moments.mean.tolist() == clean.observations.moments.mean.tolist()
    assert float(clean.observations.moments.state()["count"]) == 3 * (ENVS * STEPS - 2)  # two steps are not valid


def test_without_a_single_valid_step_nothing_is_learnt():
    agent = fresh_agent()
    before = weights(agent)
    agent.begin_episode(ENVS)
    agent.exclude(np.ones(ENVS, dtype=bool))
    collected = agent.finish_episode(0)
    assert (collected.epochs_done, collected.policy_loss, collected.heads) == (0, None, {})
    assert weights(agent) == before


def test_an_environment_excluded_before_its_first_decision_shows_nothing():
    updates = []
    for garbage in (0.0, np.nan):
        agent = fresh_agent()
        agent.begin_episode(2)
        agent.exclude(np.array([False, True]))
        for step in range(3):
            agent.act(np.array([[0.5] * WIDTH, [garbage] * WIDTH], dtype=np.float32), HalfMasks(), np.full((2, 3), 0.6))
            agent.reward(np.array([step, garbage]), np.full(2, step == 2))
        updates.append(agent.finish_episode(0))
    assert updates[0] == updates[1]
    assert updates[0].epochs_done == PPOSettings().epochs


def test_an_early_end_does_change_the_update():
    assert train(fresh_agent(), range(1), ended=2) != train(fresh_agent(), range(1))


def test_same_path_same_learning_other_path_other_learning():
    first, again, other = fresh_agent(0), fresh_agent(0), fresh_agent(1)
    assert train(first, range(2)) == train(again, range(2))
    assert weights(first) == weights(again)
    train(other, range(2))
    assert weights(first) != weights(other)


def test_a_saved_agent_goes_on_as_the_original_would():
    agent = fresh_agent()
    train(agent, range(3))
    file = io.BytesIO()
    torch.save(agent.state(), file)
    file.seek(0)
    loaded = PPOAgent.from_state(torch.load(file, weights_only=True))
    assert loaded.spec == agent.spec
    assert weights(loaded) == weights(agent)
    assert train(loaded, range(3, 5)) == train(agent, range(3, 5))
    assert weights(loaded) == weights(agent)


def test_a_state_does_not_move_when_the_agent_learns_on():
    agent = fresh_agent()
    train(agent, range(1))
    state, before = agent.state(), weights(agent)
    train(agent, range(1, 3))
    assert weights(PPOAgent.from_state(state)) == before


def test_a_frozen_agent_acts_alike_and_learns_nothing():
    agent = fresh_agent()
    train(agent, range(2))
    free = collect(agent, 7)
    agent.begin_episode(ENVS)
    before = agent.state()
    agent.frozen = True
    assert collect(agent, 7) == free
    with pytest.raises(RuntimeError, match="frozen"):
        agent.finish_episode(2)
    after = agent.state()
    assert weights(PPOAgent.from_state(before)) == weights(PPOAgent.from_state(after))
    assert torch.equal(before["observations"]["mean"], after["observations"]["mean"])


def test_greedy_ignores_the_uniforms():
    agent = fresh_agent()
    observation = np.ones((ENVS, WIDTH), dtype=np.float32)
    actions = []
    for uniform in (0.0, 0.99):
        agent.begin_episode(ENVS)
        actions.append(agent.act(observation, HalfMasks(), np.full((ENVS, 3), uniform), greedy=True).tolist())
    assert actions[0] == actions[1]


def test_memory_starts_empty_in_every_episode():
    agent = fresh_agent()
    train(agent, range(1))
    first = collect(agent, 5)
    assert collect(agent, 5) == first


def test_a_time_limit_needs_the_last_observation_and_uses_it():
    def run(last: np.ndarray | None) -> PPOUpdate:
        agent = fresh_agent()
        train(agent, range(1))
        agent.begin_episode(2)
        for _ in range(3):
            agent.act(np.ones((2, WIDTH), dtype=np.float32), HalfMasks(), np.full((2, 3), 0.5))
            agent.reward(np.ones(2), np.zeros(2, dtype=bool))
        return agent.finish_episode(1, last)

    with pytest.raises(ValueError, match="last_observation"):
        run(None)
    low, high = (run(np.full((2, WIDTH), x, dtype=np.float32)) for x in (-5.0, 5.0))
    assert low.return_mean != high.return_mean


def test_misuse_is_refused():
    agent = fresh_agent()
    agent.begin_episode(2)
    with pytest.raises(RuntimeError, match="without act"):
        agent.reward(np.zeros(2), np.zeros(2, dtype=bool))
    bad = np.zeros((2, WIDTH), dtype=np.float32)
    bad[1, 3] = np.nan
    with pytest.raises(ValueError, match="environment 1 observes nan in column 3"):
        agent.act(bad, HalfMasks(), np.zeros((2, 3)))
    agent.act(np.zeros((2, WIDTH), dtype=np.float32), HalfMasks(), np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="complete step"):
        agent.finish_episode(0)
    with pytest.raises(ValueError, match="non-finite reward at step 0"):
        agent.reward(np.array([0.0, np.nan]), np.zeros(2, dtype=bool))
    agent.reward(np.zeros(2), np.ones(2, dtype=bool))
    with pytest.raises(RuntimeError, match="between episodes"):
        agent.state()
