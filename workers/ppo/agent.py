"""The PPO agent: begin_episode, act, reward, …, finish_episode. Knows no growth: observations, masks, rewards come in.

    agent.begin_episode(n_envs)
    while not all done:
        actions = agent.act(observation, masks, uniforms)
        agent.reward(rewards, done)
    diagnostics = agent.finish_episode(episode)
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from esper_ab.contracts.records import PPOUpdate, finite
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import PolicySettings, PPOSettings, Settings
from workers.arrays import Floats
from workers.environments import Masks
from workers.ppo.adam import Adam
from workers.ppo.buffer import Rollout, RolloutBuffer
from workers.ppo.decide import decide
from workers.ppo.gae import gae
from workers.ppo.normalise import ObservationNormaliser, ReturnNormaliser, normalise_advantages
from workers.ppo.policy import RecurrentPolicy
from workers.ppo.update import Batch, entropy_coefficient, ppo_update

_ADAM_EPS = 1e-5


class AgentSpec(Settings, frozen=True, kw_only=True):
    """Everything a fresh agent is a pure function of (besides the device's arithmetic)."""

    observation_width: int
    head_names: tuple[str, ...]
    head_sizes: tuple[int, ...]
    policy: PolicySettings
    ppo: PPOSettings
    rng: RngPath  # of the replicate
    first_bias: tuple[float, ...] = ()  # where the logits of head 0 start; empty: at 0
    planned_episodes: int  # over which the entropy coefficient is annealed
    share_observations: bool = False  # whether what normalises observations comes from outside


class PPOAgent:
    """A recurrent policy, its normalisers, its optimiser, and the rollout in progress.

    With `frozen = True` (evaluation) nothing is recorded and nothing learns; `reward` then only says who is done.
    """

    def __init__(self, spec: AgentSpec, device: str = "cpu") -> None:
        self.spec = spec
        self.frozen = False
        initial = spec.rng / "policy-init"
        self.policy = RecurrentPolicy(
            spec.observation_width, spec.head_sizes, spec.policy.hidden, initial, spec.first_bias
        ).to(device)
        self.observations = ObservationNormaliser(spec.observation_width, shared=spec.share_observations)
        self.returns = ReturnNormaliser()
        self._device = device
        self._optimiser = Adam(self.policy.parameters(), lr=spec.ppo.lr, eps=_ADAM_EPS)
        self._buffer = RolloutBuffer()

    def begin_episode(self, n_envs: int) -> None:
        """Empty the memory and drop whatever was recorded since the last `finish_episode`."""
        self._state = self.policy.initial_state(n_envs)
        self._alive: NDArray[np.bool_] = np.ones(n_envs, dtype=np.bool_)
        self._buffer = RolloutBuffer()

    def act(
        self, observation: NDArray[np.float32], masks: Masks, uniforms: NDArray[np.float64], greedy: bool = False
    ) -> NDArray[np.int64]:
        """Actions [E, heads] for observation [E, width]; `uniforms` [E, heads] in [0, 1) are used unless greedy.

        ValueError when an environment that is not done observes something non-finite.
        """
        raw = self._known(observation)
        seen = self._seen(raw)
        decision = decide(self.policy, seen, self._state, masks, None if greedy else uniforms)
        self._state = decision.state
        if not self.frozen:
            self._buffer.decided(raw, seen, decision)
        return decision.actions

    def exclude(self, envs: NDArray[np.bool_]) -> None:
        """Environments [E] that ended before their first decision: no step of theirs is ever valid."""
        self._alive = self._alive & ~envs

    def reward(self, rewards: NDArray[np.float64], done: NDArray[np.bool_]) -> None:
        """Complete the step: rewards [E], and which environments [E] ended with it. The done stay done."""
        if not self.frozen:
            self._buffer.rewarded(rewards, done, self._alive)
        self._alive = self._alive & ~done

    def finish_episode(self, episode: int, last_observation: NDArray[np.float32] | None = None) -> PPOUpdate:
        """Learn from the rollout: GAE, update, and only then the observation normaliser.

        `last_observation` [E, width] is what environments that are not done (an artificial time limit) see after their
        last step; ValueError when it is needed and missing. Without a single valid step there is nothing to learn.
        """
        if self.frozen:
            raise RuntimeError("a frozen agent does not learn")
        rollout = self._buffer.rollout()
        self._buffer = RolloutBuffer()
        if rollout is None:
            return PPOUpdate()  # every host diverged before the first decision
        settings = self.spec.ppo
        values = self.returns.denormalise(rollout.values)
        last = self._last_value(last_observation)
        advantages, returns = gae(rollout.rewards, values, rollout.dones, last, settings.gamma, settings.gae_lambda)
        self._move_return_normaliser(returns[rollout.valid])
        normalised, advantage_std = normalise_advantages(advantages, returns, rollout.valid)
        update = ppo_update(
            self.policy, self._optimiser, self._batch(rollout, values, normalised, returns), settings,
            entropy_coefficient(settings, episode, self.spec.planned_episodes),
            self.spec.rng / "minibatch-order" / episode,
        )
        self.observations.moments.merge(rollout.raw[rollout.valid])
        heads = dict(zip(self.spec.head_names, update.heads.values(), strict=True))
        mean = finite(float(returns[rollout.valid].mean()))
        return msgspec.structs.replace(update, advantage_std=finite(advantage_std), return_mean=mean, heads=heads)

    def state(self) -> dict[str, Any]:
        """Everything between two episodes, as plain containers of tensors and builtins (`weights_only` can load it)."""
        if len(self._buffer):
            raise RuntimeError("the state of an agent is taken between episodes")
        return {
            "spec": msgspec.to_builtins(self.spec),
            "policy": {name: tensor.detach().clone() for name, tensor in self.policy.state_dict().items()},
            "optimiser": self._optimiser.state(), "observations": self.observations.state(),
            "returns": self.returns.moments.state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], device: str = "cpu") -> PPOAgent:
        """The agent that `state` came from; it goes on as that one would."""
        agent = cls(msgspec.convert(state["spec"], AgentSpec), device)
        agent.policy.load_state_dict(state["policy"])
        agent._optimiser.load(state["optimiser"])
        agent.observations.load(state["observations"])
        agent.returns.moments.load(state["returns"])
        return agent

    def _known(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Zeros where the environment is done: what a diverged host shows must not reach the network."""
        raw = np.where(self._alive[:, None], observation, np.float32(0.0)).astype(np.float32, copy=False)
        if not np.isfinite(raw).all():
            env, column = np.argwhere(~np.isfinite(raw))[0]
            raise ValueError(f"environment {env} observes {raw[env, column]} in column {column}")
        return raw

    def _seen(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the network sees of raw observations [E, width]."""
        return self.observations.normalise(raw) if self.spec.policy.normalise_observations else raw

    def _last_value(self, last_observation: NDArray[np.float32] | None) -> Floats:
        """[E] in reward units; zeros when every environment is done."""
        if not self._alive.any():
            return np.zeros(len(self._alive))
        if last_observation is None:
            raise ValueError(f"environments {np.flatnonzero(self._alive).tolist()} are not done: last_observation?")
        seen = torch.from_numpy(self._seen(self._known(last_observation))).to(self._device)
        with torch.inference_mode():
            features, _ = self.policy.step(seen, self._state)
            return self.returns.denormalise(self.policy.values(features).double().cpu().numpy())

    def _move_return_normaliser(self, returns: Floats) -> None:
        """Take in `returns`; values keep what they mean in reward units, unless they had no meaning there before.

        Without that exception the noise of an untrained critic would be preserved, times the unit of the reward.
        """
        mean, std = self.returns.mean, self.returns.std
        self.returns.moments.merge(returns[:, None])
        if std != 0.0 and self.returns.std != 0.0:
            self.policy.rescale_values(std / self.returns.std, (mean - self.returns.mean) / self.returns.std)

    def _batch(self, rollout: Rollout, values: Floats, advantages: Floats, returns: Floats) -> Batch:
        arrays = {
            "observations": rollout.observations, "actions": rollout.actions, "masks": rollout.masks,
            "log_probs": rollout.log_probs, "values": self.returns.normalise(values), "advantages": advantages,
            "returns": self.returns.normalise(returns), "valid": rollout.valid,
        }
        return Batch(**{name: torch.from_numpy(array).to(self._device) for name, array in arrays.items()})
