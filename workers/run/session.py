"""One run on one worker: its environments, policy and records. Independent of sockets, task kinds and other runs.

A run's results depend only on its RunSpec. The digests of the results exclude names, devices and telemetry.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import msgspec

from esper_ab.contracts.evaluation import episode_sizes, greedy_episodes
from esper_ab.contracts.records import (
    EnvEpisode,
    EpisodeRecord,
    EvaluatedEpisode,
    EvaluationRecord,
    PPOUpdate,
    finite,
)
from esper_ab.contracts.rng import run_path
from esper_ab.contracts.settings import RewardSettings
from esper_ab.contracts.worker_order import RunSpec
from workers.environments import Controller, Ended, OnStep, Stopwatch, World, kind_of, paths_below
from workers.ppo.agent import AgentSpec, PPOAgent
from workers.run import policy_file
from workers.run.episode import play, step_through
from workers.storage import state_bytes

STATE_FORMAT = 1
WARM_UP_STEPS = 4


class Session:
    """A run in `world`, from the first episode to the evaluation."""

    def __init__(self, spec: RunSpec, world: World) -> None:
        """Create environments and policy; ValueError if a name in `spec` does not exist."""
        self.spec = spec
        self._world = world
        self._path = run_path(spec.rng_seed, spec.ref.replicate, spec.rng_label)
        self._stopwatch = Stopwatch()
        own_reward = spec.settings.reward
        self._rewards = {own_reward.mode: world.reward(own_reward)}
        self._eval_rewards = {mode: world.reward(RewardSettings(mode=mode)) for mode in spec.eval_reward_modes}
        self._env = world.environments(own_reward, spec.steps, spec.n_envs, self._stopwatch, whole_episodes=False)
        self.agent = self._fresh_agent() if spec.settings.has_policy else None

    def warm_up(self, on_step: OnStep) -> float:
        """Play a short throw-away episode with a separate policy, so that episode 0 is not cold; return its seconds.

        The outcome is not computed, because a user's outcome function gets only complete episodes.
        """
        self._stopwatch.lap()  # excludes making the environments, and restoring a checkpoint
        agent = None if self.agent is None else self._fresh_agent()
        stopwatch = Stopwatch()
        steps = min(WARM_UP_STEPS, self.spec.steps)
        own_reward = self.spec.settings.reward
        env = self._world.environments(own_reward, steps, self.spec.n_envs, stopwatch, whole_episodes=True)
        paths = paths_below(self._path / "warm-up", env.n_envs)
        step_through(env, paths, self._decider(agent), self._rewards, stopwatch, on_step)
        if agent is not None:
            agent.finish_episode(0)
        return self._stopwatch.lap().total_s

    def train(self, episode: int, on_step: OnStep, on_update: OnStep) -> EpisodeRecord:
        """Play training episode `episode` and update the policy from it."""
        self._stopwatch.lap()  # keeps the wait for the release out of the episode's time
        paths = paths_below(self._path / "train" / episode, self._env.n_envs)
        result = play(self._env, paths, self._decider(self.agent), self._rewards, self._stopwatch, on_step)
        on_update(self.spec.steps)
        with self._stopwatch.phase("update"):
            ppo = None if self.agent is None else self.agent.finish_episode(episode)
        return EpisodeRecord(
            run=self.spec.ref,
            episode=episode,
            envs=result.envs,
            ppo=ppo,
            seed_events=result.events if self.spec.telemetry else (),
            timing=self._stopwatch.lap(),
            digest=_digest(result.envs, ppo, self._policy_bytes()),
        )

    def state(self) -> dict[str, Any] | None:
        """Return all state that a run carries from one episode to the next, or None if there is none.

        The state consists of the agent's state and the state that the environments carry. Every random number has an
        address instead of a position in a stream. Therefore no generator of Python, numpy, torch or CUDA is used, and
        none is saved.
        """
        parts = self._env.carried()
        if self.agent is not None:
            parts["agent"] = self.agent.state()
        return {"format": STATE_FORMAT, **parts} if parts else None

    def checkpoint(self) -> bytes | None:
        """Return the state as bytes, or None if there is none."""
        state = self.state()
        return None if state is None else state_bytes.to_bytes(state)

    @property
    def stateless(self) -> bool:
        """True if there is nothing to restore: a fixed controller has no state between episodes."""
        return self.state() is None

    def resume(self, state: dict[str, Any]) -> None:
        """Restore `state` before the first episode.

        Raises ValueError if `state` belongs to a different run, and an error of `durable.FOREIGN` if an entry is
        missing or has the wrong shape. After an error, the session begins from the start, as without this call.
        """
        if state["format"] != STATE_FORMAT:
            raise ValueError(f"format {state['format']} where {STATE_FORMAT} is expected")
        own_state = self.state()
        if own_state is None or own_state.keys() != state.keys():
            raise ValueError("it was written for a different run")
        agent = None
        if self.agent is not None:
            agent = PPOAgent.from_state(state["agent"], self.spec.arithmetic)
            if agent.spec != self.agent.spec:
                raise ValueError("it was written for a different run")
        continuing_envs = self._env.take_up(state)
        if agent is not None:
            agent.forget(~continuing_envs)
        self.agent = agent

    def resume_from(self, data: bytes) -> None:
        """Restore the state that `checkpoint` returned; raises what `resume` raises."""
        self.resume(state_bytes.from_bytes(data))

    def evaluate(self, experiment_dir: Path, on_step: OnStep) -> EvaluationRecord:
        """Save the last policy, freeze it with its normaliser, and play episodes on rng paths shared by all groups.

        If the policy cannot be saved, OSError is raised before anything else is done, and the call may be repeated.
        """
        self._stopwatch.lap()
        sha256 = policy_file.save(experiment_dir, self.spec, self.agent)
        eval_episodes = self.evaluate_policy(policy_file.SavedPolicy(self.spec, self.agent), on_step)
        return EvaluationRecord(
            run=self.spec.ref,
            episodes=eval_episodes,
            policy_file=self.spec.policy_file,
            policy_sha256=sha256,
            timing=self._stopwatch.lap(),
            digest=_digest(tuple(episode.result for episode in eval_episodes), None, self._policy_bytes()),
        )

    def evaluate_policy(self, policy: policy_file.SavedPolicy, on_step: OnStep) -> tuple[EvaluatedEpisode, ...]:
        """Play the evaluation's episodes with a frozen policy's sampled actions, and the first also with greedy ones.

        Episodes are scored in every mode with default constants. A policy without probabilities has no greedy actions.
        """
        spec = self.spec
        evaluated_episodes = list[EvaluatedEpisode]()
        kinds: list[tuple[Literal["sampled", "greedy"], tuple[int, ...]]]
        kinds = [("sampled", episode_sizes(spec.eval_episodes, spec.n_envs))]
        if policy.agent:
            kinds.append(("greedy", (greedy_episodes(spec.eval_episodes, spec.n_envs),)))
        for kind, sizes in kinds:
            decider = policy.decider(greedy=kind == "greedy")
            for episode, size in enumerate(sizes):
                result = self.evaluation_episode(episode, size, decider, on_step)
                for i, end in enumerate(result.envs):
                    rewards = {mode: finite(float(values[i])) for mode, values in result.rewards.items()}
                    evaluated_episodes.append(
                        EvaluatedEpisode(episode=episode, actions=kind, result=end, rewards=rewards)
                    )
        return tuple(evaluated_episodes)

    def evaluation_episode(self, episode: int, eval_episodes: int, decider: Controller[Any], on_step: OnStep) -> Ended:
        """Play the first `eval_episodes` environments of an evaluation episode; score them by every mode's defaults."""
        steps = self._world.evaluation_steps
        env = self._world.environments(RewardSettings(), steps, eval_episodes, self._stopwatch, whole_episodes=True)
        paths = paths_below(self._path / "evaluate" / episode, eval_episodes)
        return play(env, paths, decider, self._eval_rewards, self._stopwatch, on_step)

    def _fresh_agent(self) -> PPOAgent:
        """Create the agent, which is small and always runs on the CPU, so that no device affects its bits."""
        spaces = self._world.spaces
        return PPOAgent(
            AgentSpec(
                observation_width=spaces.observation_width,
                head_names=spaces.head_names,
                head_sizes=spaces.head_sizes,
                observation_std_floor=spaces.observation_std_floor,
                policy=self.spec.settings.policy,
                ppo=self.spec.settings.ppo,
                rng=self._path,
                first_bias=spaces.first_bias,
                planned_episodes=self.spec.episodes,
            ),
            self.spec.arithmetic,
        )

    def _decider(self, agent: PPOAgent | None) -> Controller[Any]:
        if agent is None:
            return kind_of(self.spec.task).controller(self.spec)
        return agent

    def _policy_bytes(self) -> bytes:
        if self.agent is None:
            return b""
        return b"".join(weight.tobytes() for weight in self.agent.policy.weights.values())


def _digest(envs: tuple[EnvEpisode, ...], ppo: PPOUpdate | None, policy: bytes) -> str:
    """Return the sha256 of the results without names, devices and telemetry; equal settings give equal ones."""
    facts = [msgspec.structs.replace(env, device="") for env in envs]
    return hashlib.sha256(msgspec.json.encode([facts, ppo]) + policy).hexdigest()
