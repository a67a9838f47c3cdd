"""The agent as a whole: first ratio, ended environments, bootstrap, freezing and restored state."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
import numpy as np
import pytest
from support.kernels.ppo_agents import ARITHMETICS, TORCH, make_agent

from esper_ab.contracts.records import PPOUpdate
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic, PPOSettings
from workers.actor_critic import Shape
from workers.environments import Cut
from workers.native.build import Unusable
from workers.native.policy import NativePolicy
from workers.ppo.agent import PPOAgent
from workers.ppo.making import policy_of, possible
from workers.ppo.torch_policy import TorchPolicy
from workers.storage import state_bytes

SIZES = (3, 2, 4)
NAMES = ("op", "slot", "blueprint")
WIDTH = 6
ENVS = 4
STEPS = 5


class HalfMasks:
    """Op 0 uses no other head; every third choice of the last head is invalid."""

    def mask(self, head: int, choices: np.ndarray) -> np.ndarray:
        mask = np.ones((len(choices), SIZES[head]), dtype=bool)
        if head > 0:
            mask[choices[:, 0] == 0] = False
        if head == 2:
            mask[:, 2] = False
        return mask


def fresh_agent(
    rng_seed: int = 0,
    normalise: bool = True,
    memory: str = "lstm",
    arithmetic: Arithmetic = TORCH,
    policy: Mapping[str, object] = MappingProxyType({}),
    **ppo: float | str,
) -> PPOAgent:
    settings = {"hidden": 16, "normalise_observations": normalise, "memory": memory, **policy}
    return make_agent(WIDTH, NAMES, SIZES, rng_seed=rng_seed, arithmetic=arithmetic, policy=settings, **ppo)


# Another network, more inputs and other units, all at once.
OTHER_POLICY = {"trunk": "separate", "activation": "relu", "layer_norm": False, "frame_stack": 3, "init": "pytorch"}
OTHER_UPDATE = {
    "value_clip": 0.2,
    "normalise_advantages": "minibatch",
    "normalise_returns": False,
    "reward_scaling": True,
    "reward_clip": 5.0,
}


def collect(agent: PPOAgent, key: int, ended: int | None = None, garbage: float = 0.0) -> list[list[list[int]]]:
    """One rollout on random numbers; environment 1 ends with step `ended`, and shows `garbage` from then on."""
    rng = np.random.default_rng(key)
    agent.begin_episode(ENVS)
    actions = []
    for step in range(STEPS):
        observation = (rng.standard_normal((ENVS, WIDTH)) * 5 + 3).astype(np.float32)
        uniforms = rng.random((ENVS, len(SIZES)))
        rewards = rng.standard_normal(ENVS) * 20 + 50
        done_mask = np.full(ENVS, step == STEPS - 1)
        if ended is not None and step > ended:
            observation[1], rewards[1], uniforms[1] = garbage, garbage, 0.5
        if step == ended:
            done_mask[1] = True
        actions.append(agent.act(observation, HalfMasks(), uniforms).tolist())
        agent.reward(rewards, done_mask)
    return actions


def weights(agent: PPOAgent) -> list[list[float]]:
    return [weight.ravel().tolist() for weight in agent.policy.weights.values()]


def train(agent: PPOAgent, episodes: range, **changes: float) -> list[PPOUpdate]:
    updates = []
    for episode in episodes:
        collect(agent, episode, **changes)
        updates.append(agent.finish_episode(episode))
    return updates


@pytest.mark.parametrize("normalise", [True, False])
def test_earlier_episodes_affect_the_inputs_of_a_policy_only_by_normalisation(normalise: bool):
    """With a learning rate of 0 the network is the same, so a decision can change only with its inputs."""
    agent = fresh_agent(normalise=normalise, lr=0.0)
    inputs = []
    for _ in range(2):
        collect(agent, 0)
        inputs.append(agent._seen(agent._buffer.rollout().raw))
        agent.finish_episode(0)
    assert np.array_equal(*inputs) is not normalise


def test_diagnostics_of_an_update_describe_the_current_rollout():
    """Of a policy that is nearly uniform: ln 3 for the op, ln 2 + ln 3 more where the op uses slot and blueprint."""
    (update,) = train(fresh_agent(), range(1))
    used_share = (np.array(collect(fresh_agent(), 0))[..., 0] != 0).mean()
    assert update.entropy == pytest.approx(math.log(3) + used_share * (math.log(2) + math.log(3)), abs=0.02)
    assert update.op_entropy == pytest.approx(math.log(3), abs=0.01)
    assert 50 < update.return_mean < 300  # rewards of 50 over up to 5 steps
    assert update.epochs_done == PPOSettings().epochs
    assert tuple(update.heads) == NAMES
    assert update.ratio_max > 1.0001  # it does not stay at the first one, which is 1


@pytest.mark.parametrize("garbage", [1e6, math.nan, math.inf])
def test_observations_of_an_ended_environment_do_not_affect_learning(garbage: float):
    clean_agent = fresh_agent()
    dirty_agent = fresh_agent()
    expected = train(clean_agent, range(3), ended=2, garbage=0.0)
    assert train(dirty_agent, range(3), ended=2, garbage=garbage) == expected
    assert weights(dirty_agent) == weights(clean_agent)
    assert dirty_agent.observations.mean.tolist() == clean_agent.observations.mean.tolist()
    assert clean_agent.observations.count == 3 * (ENVS * STEPS - 2)  # two steps are not valid


def test_an_episode_without_a_valid_step_changes_no_weight():
    agent = fresh_agent()
    weights_before = weights(agent)
    agent.begin_episode(ENVS)
    agent.exclude(np.ones(ENVS, dtype=bool))
    last_update = agent.finish_episode(0)
    assert (last_update.epochs_done, last_update.policy_loss, last_update.heads) == (0, None, {})
    assert weights(agent) == weights_before


def test_observations_of_an_excluded_environment_do_not_affect_learning():
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


def test_agents_with_equal_rng_paths_learn_the_same():
    agents = [fresh_agent(rng_seed) for rng_seed in (0, 0, 1)]
    result, same_seed, other_seed = [(train(agent, range(2)), weights(agent)) for agent in agents]
    assert result == same_seed
    assert result[1] != other_seed[1]


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda arithmetic: arithmetic.kernel)
@pytest.mark.parametrize("memory", ["lstm", "none"])
@pytest.mark.parametrize("episodes", [0, 3])
@pytest.mark.parametrize(("policy", "ppo"), [({}, {}), (OTHER_POLICY, OTHER_UPDATE)], ids=["default", "other"])
def test_a_restored_agent_continues_like_the_original(
    episodes: int, memory: str, arithmetic: Arithmetic, policy: dict[str, object], ppo: dict[str, object]
):
    """Also from a state that was not written anywhere: it does not move when the agent learns on."""
    agent = fresh_agent(arithmetic=arithmetic, memory=memory, policy=policy, **ppo)
    train(agent, range(episodes))
    state = agent.state()
    weights_before = weights(agent)
    state_data = state_bytes.to_bytes(state)
    expected = train(agent, range(3, 5))
    for saved_state in (state, state_bytes.from_bytes(state_data)):
        loaded_agent = PPOAgent.from_state(saved_state, arithmetic)
        assert (loaded_agent.spec, weights(loaded_agent)) == (agent.spec, weights_before)
        assert train(loaded_agent, range(3, 5)) == expected
        assert weights(loaded_agent) == weights(agent)


@pytest.mark.parametrize("memory", ["lstm", "none"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS[1:], ids=lambda arithmetic: arithmetic.kernel)
@pytest.mark.parametrize(
    ("policy", "ppo"), [({}, {}), (OTHER_POLICY | {"activation": "tanh"}, OTHER_UPDATE)], ids=["default", "other"]
)
def test_the_kernel_and_torch_can_continue_from_the_same_state(
    arithmetic: Arithmetic, memory: str, policy: dict[str, object], ppo: dict[str, object]
):
    """The same decisions, and after an update weights that differ by rounding alone."""
    agent = fresh_agent(memory=memory, policy=policy, **ppo)
    train(agent, range(2), ended=2)
    loaded_agent = PPOAgent.from_state(state_bytes.from_bytes(state_bytes.to_bytes(agent.state())), arithmetic)
    assert weights(loaded_agent) == weights(agent)
    assert collect(loaded_agent, 7) == collect(agent, 7)
    agent.finish_episode(2)
    loaded_agent.finish_episode(2)
    for loaded_weight, saved_weight in zip(weights(loaded_agent), weights(agent), strict=True):
        assert loaded_weight == pytest.approx(saved_weight, rel=1e-4, abs=1e-5)
    assert loaded_agent.state().keys() == agent.state().keys()
    assert loaded_agent.state()["optimiser"]["state"].keys() == agent.state()["optimiser"]["state"].keys()


def test_a_frozen_agent_learns_nothing():
    agent = fresh_agent()
    train(agent, range(2))
    free_actions = collect(agent, 7)
    agent.begin_episode(ENVS)
    state_before = agent.state()
    agent.frozen = True
    assert collect(agent, 7) == free_actions
    with pytest.raises(RuntimeError, match="frozen"):
        agent.finish_episode(2)
    state_after = agent.state()
    assert weights(PPOAgent.from_state(state_before, TORCH)) == weights(PPOAgent.from_state(state_after, TORCH))
    assert np.array_equal(state_before["observations"]["mean"], state_after["observations"]["mean"])


def cut_off(last_observation: float, **which: bool) -> Cut:
    """Of two environments; every keyword is about both."""
    flags = {name: np.full(2, which.get(name, False)) for name in ("truncated", "restarted", "goes_on")}
    return Cut(last=np.full((2, WIDTH), last_observation, dtype=np.float32), **flags)


def play_two(agent: PPOAgent, steps: int, cuts: dict[int, Cut], start: float = 1.0, observed: float = 1.0) -> None:
    """`steps` of two environments that see `start` first and `observed` after, and what cuts them off by step."""
    agent.begin_episode(2)
    for step in range(steps):
        agent.act(np.full((2, WIDTH), observed if step else start, dtype=np.float32), HalfMasks(), np.full((2, 3), 0.5))
        done_mask = np.full(2, step == steps - 1 or step in cuts)
        agent.reward(np.full(2, 1.0 + step), done_mask, cuts.get(step))


def test_a_rollout_with_an_unfinished_environment_is_refused():
    agent = fresh_agent()
    agent.begin_episode(2)
    agent.act(np.ones((2, WIDTH), dtype=np.float32), HalfMasks(), np.full((2, 3), 0.5))
    agent.reward(np.ones(2), np.array([True, False]))
    with pytest.raises(ValueError, match=r"environments \[1\] have not ended"):
        agent.finish_episode(1)


@pytest.mark.parametrize("memory", ["lstm", "none"])
@pytest.mark.parametrize("step", [1, 2])
def test_the_last_observation_affects_returns_only_at_a_time_limit(step: int, memory: str):
    def run(last_observation: float, truncated: bool) -> PPOUpdate:
        agent = fresh_agent(memory=memory)
        train(agent, range(1))
        play_two(agent, 3, {step: cut_off(last_observation, truncated=truncated, restarted=step == 1)})
        return agent.finish_episode(1)

    low, high = (run(last_observation, True) for last_observation in (-5.0, 5.0))
    assert low.return_mean != high.return_mean
    assert run(-5.0, False) == run(5.0, False)


def test_a_truncated_episode_adds_the_discounted_value_of_the_critic():
    """Of an untrained critic, whose every value means the mean of the returns so far: known without the network."""
    agent = fresh_agent(gamma=0.5, gae_lambda=1.0)
    agent.returns.moments.merge(np.full((4, 1), 8.0))  # no spread: the critic says 8
    play_two(agent, 2, {1: cut_off(3.0, truncated=True)})
    returns = [1.0 + 0.5 * (2.0 + 0.5 * 8.0), 2.0 + 0.5 * 8.0]
    assert agent.finish_episode(0).return_mean == pytest.approx(np.mean(returns))


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda arithmetic: arithmetic.kernel)
@pytest.mark.parametrize("memory", ["lstm", "none"])
@pytest.mark.parametrize("policy", [{}, OTHER_POLICY], ids=["default", "other"])
def test_the_update_reproduces_the_memory_of_the_policy(memory: str, arithmetic: Arithmetic, policy: dict[str, object]):
    """Memories are emptied at resets and go on from rollout to rollout: the first ratio is 1 in every rollout."""
    agent = fresh_agent(memory=memory, arithmetic=arithmetic, policy=policy)
    for episode in range(3):
        cuts = {2: cut_off(1.0, restarted=True), 6: cut_off(2.0, truncated=True, goes_on=True)}
        play_two(agent, 7, cuts, start=3.0 - episode, observed=0.5)
        assert agent.finish_episode(episode).first_ratio_error < 1e-6


def test_a_reset_clears_the_memory_of_the_policy():
    for cuts in ({1: cut_off(0.0, restarted=True)}, {}):
        agents = [fresh_agent(), fresh_agent()]
        for agent, start in zip(agents, (4.0, -4.0), strict=True):
            play_two(agent, 3, cuts, start=start)
        assert np.array_equal(*(agent._memory[0] for agent in agents)) == bool(cuts)


@pytest.mark.parametrize(
    ("memory", "policy", "ppo"), [("lstm", {}, {}), ("none", {"frame_stack": 2}, {}), ("none", {}, OTHER_UPDATE)]
)
def test_an_agent_resumed_within_an_episode_keeps_what_it_remembers(
    memory: str, policy: dict[str, object], ppo: dict[str, object]
):
    """Its memory, the frames that it has seen, or the sum of its rewards."""

    def second_half(continues: bool, through_a_state: bool) -> list[list[float]]:
        agent = fresh_agent(memory=memory, policy=policy, **ppo)
        play_two(agent, 4, {3: cut_off(2.0, truncated=True, goes_on=continues)}, observed=2.0)
        agent.finish_episode(0)
        if through_a_state:
            agent = PPOAgent.from_state(state_bytes.from_bytes(state_bytes.to_bytes(agent.state())), TORCH)
        play_two(agent, 4, {3: cut_off(2.0, truncated=True, goes_on=continues)})
        agent.finish_episode(1)
        return weights(agent)

    assert second_half(continues=True, through_a_state=True) == second_half(continues=True, through_a_state=False)
    assert second_half(continues=True, through_a_state=True) != second_half(continues=False, through_a_state=True)


def test_the_learning_rate_reaches_its_final_value_in_the_last_episode():
    agent = fresh_agent(lr_end=0.0)  # over ten episodes
    train(agent, range(9))
    actor_weights = {name: weight.copy() for name, weight in agent.policy.weights.items() if name.startswith("actor")}
    train(agent, range(9, 10))
    assert all(np.array_equal(weight, agent.policy.weights[name]) for name, weight in actor_weights.items())


def test_misuse_of_an_agent_is_refused():
    agent = fresh_agent()
    agent.begin_episode(2)
    with pytest.raises(RuntimeError, match="without act"):
        agent.reward(np.zeros(2), np.zeros(2, dtype=bool))
    bad_observations = np.zeros((2, WIDTH), dtype=np.float32)
    bad_observations[1, 3] = np.nan
    with pytest.raises(ValueError, match="environment 1 observes nan in column 3"):
        agent.act(bad_observations, HalfMasks(), np.zeros((2, 3)))
    agent.act(np.zeros((2, WIDTH), dtype=np.float32), HalfMasks(), np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="complete step"):
        agent.finish_episode(0)
    agent.reward(np.array([0.0, np.nan]), np.ones(2, dtype=bool))
    with pytest.raises(RuntimeError, match="between episodes"):
        agent.state()
    with pytest.raises(ValueError, match="non-finite reward at step 0: nan of environment 1"):
        agent.finish_episode(0)


SHAPE = Shape(observation_width=3, head_sizes=(2,), hidden=4)


@pytest.mark.parametrize("hosts", ["kernel", "torch"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda arithmetic: arithmetic.kernel)
def test_the_kernel_computes_policies_with_any_host_trainer(arithmetic: Arithmetic, hosts: str) -> None:
    policy = policy_of(SHAPE, RngPath(0), msgspec.structs.replace(arithmetic, hosts=hosts))
    assert type(policy) is (TorchPolicy if arithmetic == TORCH else NativePolicy)
    expected = policy_of(SHAPE, RngPath(0), TORCH).weights
    assert policy.weights.keys() == expected.keys()
    assert all(np.array_equal(policy.weights[name], weight) for name, weight in expected.items())


@pytest.mark.parametrize("arithmetic", ARITHMETICS[1:], ids=lambda arithmetic: arithmetic.kernel)
def test_another_build_of_the_kernel_is_replaced_by_torch_in_an_evaluation(
    arithmetic: Arithmetic,
) -> None:
    other_build = msgspec.structs.replace(arithmetic, kernel_build="of somebody else")
    with pytest.raises(Unusable, match="another arithmetic"):
        policy_of(SHAPE, RngPath(0), other_build)
    assert possible(arithmetic) == (arithmetic, "")
    replacement, reason = possible(other_build)
    assert replacement == TORCH
    assert "another arithmetic" in reason


def test_values_in_reward_units_do_not_depend_on_the_scale_of_returns():
    """Without learning, another rollout changes the running returns alone."""
    agent = fresh_agent(lr=0.0)
    train(agent, range(1))
    observations = np.random.default_rng(3).standard_normal((ENVS, WIDTH)).astype(np.float32)
    expected = []
    for episode in (1, 2):
        values = agent.policy.values(observations, agent.policy.initial_memory(ENVS))
        expected.append(agent.returns.denormalise(values))
        weights_before = weights(agent)
        train(agent, range(episode, episode + 1))
        assert weights(agent) != weights_before  # the critic's last layer, which now has another unit
    assert expected[1] == pytest.approx(expected[0], rel=1e-5)
