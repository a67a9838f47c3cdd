"""The PPO agent, which is independent of the kind of task: it gets observations, masks and rewards, and decides.

agent.begin_episode(n_envs)
while not all done:
    actions = agent.act(observation, masks, uniforms)
    agent.reward(rewards, done)
diagnostics = agent.finish_episode(episode)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from esper_ab.contracts.records import PPOUpdate, finite
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic, PolicySettings, PPOSettings, Settings
from workers.actor_critic import Batch, Shape
from workers.arrays import Bools, Floats, Floats32, all_finite, all_true
from workers.environments import Controller, Cut, Decisions, Masks, Seen
from workers.ppo.frames import FrameStack
from workers.ppo.making import policy_of
from workers.ppo.normalise import ObservationNormaliser, ReturnNormaliser, normalise_advantages
from workers.ppo.rewards import RewardScale
from workers.ppo.rollout import Rollout, RolloutBuffer, cut_sequences, gae, of_steps
from workers.ppo.update import ppo_update, rule_of


class AgentSpec(Settings, frozen=True, kw_only=True):
    """Specification of an agent; a fresh agent depends only on this and on its arithmetic."""

    observation_width: int
    head_names: tuple[str, ...]
    head_sizes: tuple[int, ...]  # empty: continuous decisions, of as many dimensions as there are names
    observation_std_floor: float
    policy: PolicySettings
    ppo: PPOSettings
    rng: RngPath  # of the replicate
    first_bias: tuple[float, ...] = ()  # where the logits of head 0 start; empty: at 0
    planned_episodes: int  # over which the entropy coefficient and the learning rate are annealed


msgspec.json.Decoder(AgentSpec)  # built now, in one thread: tests/house/test_decoders.py


def shape_of(spec: AgentSpec) -> Shape:
    """Return the network of an agent."""
    policy = spec.policy
    return Shape(
        observation_width=spec.observation_width * policy.frame_stack,
        head_sizes=spec.head_sizes,
        dimensions=0 if spec.head_sizes else len(spec.head_names),
        hidden=policy.hidden,
        memory=policy.memory,
        activation=policy.activation,
        layer_norm=policy.layer_norm,
        trunk=policy.trunk,
        init=policy.init,
        actor_gain=policy.actor_gain,
        critic_gain=policy.critic_gain,
        log_std=policy.log_std,
        first_bias=spec.first_bias,
    )


@dataclass
class _Kept:
    """What environments that continue take into the next rollout."""

    envs: Bools  # [E] that continue
    memory: Floats32  # [2, E, memory_width], 0 for the others
    frames: Floats32 | None  # [E, stacked width]; None without frame stacking


class PPOAgent(Controller[Seen]):
    """A policy, its normalisers, its optimiser, and the rollout in progress.

    If `frozen` (for evaluation), it neither records nor learns, and `reward` only marks environments as done. If
    `greedy`, it chooses the most probable action instead of sampling.
    """

    def __init__(self, spec: AgentSpec, arithmetic: Arithmetic) -> None:
        """Create a fresh agent; Unusable if the kernel of `arithmetic` is not available here."""
        self.spec = spec
        self.frozen = False
        self.greedy = False
        shape = shape_of(spec)
        self.policy = policy_of(shape, spec.rng / "policy-init", arithmetic)
        self.observations = ObservationNormaliser(
            shape.observation_width, std_floor=spec.observation_std_floor, clip=spec.policy.observation_clip
        )
        self.returns = ReturnNormaliser("running" if spec.ppo.normalise_returns else "reward")
        self.rewards = RewardScale(spec.ppo)
        self._frames = FrameStack(spec.policy.frame_stack)
        self._buffer = RolloutBuffer()
        self._kept: _Kept | None = None

    def begin_episode(self, n_envs: int) -> None:
        """Clear the memory, except for environments that continue, and drop steps that were not learnt from."""
        if self.frozen or self._kept is None:
            self._memory = self.policy.initial_memory(n_envs)
            self._frames.begin(n_envs)
        else:
            self._memory = self._kept.memory
            self._frames.begin(n_envs, self._kept.frames, self._kept.envs)
            self._kept = None
        self._first = self._memory.copy()
        self._alive = all_true(n_envs)
        self._all_alive = True
        self._buffer = RolloutBuffer()

    def forget(self, envs: Bools) -> None:
        """Clear what is kept for the next rollout in the environments `envs` [E], whose episodes do not continue."""
        if self._kept is not None:
            self._kept.memory[:, envs] = 0.0
            self._kept.envs = self._kept.envs & ~envs
        self.rewards.forget(envs)

    def decide(self, view: Seen, uniforms: Floats) -> Decisions:
        """Return the result of `act` for the observation and masks of `view`."""
        return self.act(view.observation, view.masks, uniforms, self.greedy)

    def act(self, observation: Floats32, masks: Masks | None, uniforms: Floats, greedy: bool = False) -> Decisions:
        """Return actions [E, heads] for observation [E, width]; `uniforms` [E, heads] in [0, 1) are ignored if greedy.

        Raises ValueError if an observation of a live environment is not finite.
        """
        raw = self._frames.push(self._known(observation))
        sampling_uniforms = None if greedy else uniforms
        decision = self.policy.decide(self._seen(raw), self._memory, masks, sampling_uniforms)
        if not self.frozen:
            self._buffer.decided(raw, decision)
        return decision.actions

    def exclude(self, envs: Bools) -> None:
        """Mark environments [E] that ended before their first decision: none of their steps is valid."""
        self._live(self._alive & ~envs)

    def reward(self, rewards: Floats, done_mask: Bools, cut: Cut | None = None) -> None:
        """Complete the step with rewards [E] and a mask `done_mask` [E] of the environments that ended with it.

        `cut` marks environments that were truncated, and those that begin another episode at once; others that ended
        take no more steps. Before `finish_episode`, every environment must have ended, by itself or by truncation with
        the rollout. Raises ValueError if a reward is not finite, and RuntimeError if `act` was not called before.
        """
        if not self.frozen:
            self._buffer.rewarded(rewards, done_mask, self._alive)
            if cut is not None:
                self._buffer.cut_off(cut, self._last_values(cut))
        if np.count_nonzero(done_mask):
            alive_mask = self._alive & ~done_mask
            self._live(alive_mask if cut is None else alive_mask | cut.restarted)
        if cut is not None:
            self._memory[:, cut.restarted] = 0.0
            self._frames.restart(cut.restarted)
            if cut.goes_on.any() and not self.frozen:
                memory = np.where(cut.goes_on[:, None], self._memory, np.float32(0.0))
                self._kept = _Kept(cut.goes_on, memory, self._frames.rows)

    def finish_episode(self, episode: int) -> PPOUpdate:
        """Learn from the rollout: compute advantages (GAE), update the policy, then update the observation normaliser.

        Raises ValueError if an environment has not ended. If no step is valid, nothing is learnt.
        """
        if self.frozen:
            raise RuntimeError("a frozen agent does not learn")
        rollout = self._buffer.rollout()
        self._buffer = RolloutBuffer()
        if rollout is None:
            return PPOUpdate()  # every host diverged before the first decision
        if self._alive.any():
            raise ValueError(f"environments {np.flatnonzero(self._alive).tolist()} have not ended")
        settings = self.spec.ppo
        values = self.returns.denormalise(rollout.values)
        rewards = self._changed_rewards(rollout)
        if rollout.truncated.any():
            bootstrap_values = self.returns.denormalise(rollout.bootstrap)
            rewards = rewards + np.where(rollout.truncated, settings.gamma * bootstrap_values, 0.0)
        advantages, returns = gae(rewards, values, rollout.dones, settings.gamma, settings.gae_lambda)
        self._move_return_normaliser(returns[rollout.valid])
        normalised_advantages, advantage_std = normalise_advantages(advantages, returns, rollout.valid)
        if settings.normalise_advantages == "none":
            normalised_advantages = advantages
        update = ppo_update(
            self.policy,
            self._batch(rollout, values, normalised_advantages, returns),
            settings,
            rule_of(settings, episode, self.spec.planned_episodes),
            self.spec.rng / "minibatch-order" / episode,
        )
        self.observations.merge(rollout.raw[rollout.valid])
        if update.heads:
            heads = dict(zip(self.spec.head_names, update.heads.values(), strict=True))
        else:
            heads = {}
        mean = finite(float(returns[rollout.valid].mean()))
        return msgspec.structs.replace(update, advantage_std=finite(advantage_std), return_mean=mean, heads=heads)

    def state(self) -> dict[str, Any]:
        """Return the agent's state between two episodes, as plain containers of arrays and builtins."""
        if len(self._buffer):
            raise RuntimeError("the state of an agent is taken between episodes")
        state = {
            "spec": msgspec.to_builtins(self.spec),
            **self.policy.state(),
            "observations": self.observations.state(),
            "returns": self.returns.moments.state(),
            **self.rewards.state(),
        }
        if self._kept is not None:
            state["memory"] = self._kept.memory.copy()
            if self._kept.frames is not None:
                state |= {"frames": self._kept.frames.copy(), "going_on": self._kept.envs.copy()}
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any], arithmetic: Arithmetic) -> PPOAgent:
        """Return the agent that `state` was taken from; with the same arithmetic it continues like the original."""
        agent = cls(msgspec.convert(state["spec"], AgentSpec), arithmetic)
        agent.policy.load(state)
        agent.observations.load(state["observations"])
        agent.returns.moments.load(state["returns"])
        agent.rewards.load(state)
        if "memory" in state:
            memory = np.asarray(state["memory"]).copy()
            agent._kept = _Kept(all_true(memory.shape[1]), memory, None)
        if "frames" in state:
            agent._kept = _Kept(np.asarray(state["going_on"]).copy(), memory, np.asarray(state["frames"]).copy())
        return agent

    def _live(self, alive_mask: Bools) -> None:
        self._alive = alive_mask
        self._all_alive = bool(alive_mask.all())

    def _changed_rewards(self, rollout: Rollout) -> Floats:
        """Return the rewards [T, E] that the policy learns from."""
        ended_mask = rollout.dones.copy()
        if self._kept is not None:
            ended_mask[-1] = ~self._kept.envs
        return self.rewards.changed(rollout.rewards, ended_mask, rollout.valid)

    def _known(self, observation: Floats32) -> Floats32:
        """Return the observation, with zeros for environments that are done: a diverged host's values are arbitrary."""
        if self._all_alive:
            raw = observation
        else:
            raw = np.where(self._alive[:, None], observation, np.float32(0.0))
        if not all_finite(raw):
            env, column = np.argwhere(~np.isfinite(raw))[0]
            raise ValueError(f"environment {env} observes {raw[env, column]} in column {column}")
        return raw

    def _seen(self, raw: Floats32) -> Floats32:
        """Return the network's input for raw observations [E, width]."""
        if self.spec.policy.normalise_observations:
            return self.observations.normalise(raw)
        return raw

    def _last_values(self, cut: Cut) -> Floats:
        """Return values [E], in the critic's units, of the last observations of truncated episodes; 0 for others."""
        if not cut.truncated.any():
            return np.zeros(len(self._alive))
        known_observation = self._known(np.where(cut.truncated[:, None], cut.last, np.float32(0.0)))
        return self.policy.values(self._seen(self._frames.after(known_observation)), self._memory)

    def _move_return_normaliser(self, returns: Floats) -> None:
        """Merge `returns` [N] into the normaliser; rescale the critic so that its values in reward units do not change.

        As long as all returns have been equal (std 0), the critic's output has no unit and is not rescaled. Otherwise
        the noise of an untrained critic would persist, multiplied by the unit of the reward.
        """
        if self.returns.units == "reward":
            return
        mean = self.returns.mean
        std = self.returns.std
        self.returns.moments.merge(returns[:, None])
        new_mean = self.returns.mean
        new_std = self.returns.std
        if std != 0.0 and new_std != 0.0:
            self.policy.rescale_values(std / new_std, (mean - new_mean) / new_std)

    def _batch(self, rollout: Rollout, values: Floats, advantages: Floats, returns: Floats) -> Batch:
        arrays = {
            "observations": self._seen(rollout.raw),
            "actions": rollout.actions,
            "log_probs": rollout.log_probs,
            "values": self.returns.normalise(values),
            "advantages": advantages,
            "returns": self.returns.normalise(returns),
            "valid": rollout.valid,
        }
        if rollout.masks is not None:
            arrays["masks"] = rollout.masks
        memory = self._first if self._first.any() else None
        if self.spec.policy.memory == "none":
            arrays = of_steps(arrays, rollout.valid)
            memory = None
        elif rollout.starts.any():
            arrays, column, first_mask = cut_sequences(arrays, rollout.starts)
            if memory is not None:
                memory = memory.take(column, 1) * first_mask[:, None]
        return Batch(**arrays, memory=memory)
