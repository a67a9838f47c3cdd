"""The Gymnasium environments of one run, stepped in a plain loop; implements `Environments` of workers/environments.py.

For an environment at path p, reset k takes its seed from p/"reset"/k, and the actions of the rollout take their
uniforms from p/"actions". An environment that depends only on its reset seeds and actions is therefore
bit-reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch

from esper_ab.contracts.errors import SettingName, UserCodeFailed
from esper_ab.contracts.marked_settings import in_every_door
from esper_ab.contracts.measures import LARGEST_OUTCOME, countable
from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.rng import RngPath
from workers.arrays import Bools, Floats, Floats32, all_false, all_true
from workers.environments import Cut, Decisions, Ended, Happened, Stopwatch
from workers.kinds.gymnasium.facts import GymEpisode, GymFacts, GymStep
from workers.kinds.gymnasium.place import GymSpec, Place
from workers.kinds.gymnasium.spaces import Codec

_CHUNK = 256  # steps whose uniforms are drawn at a time
_SEEDS = 2**31


@dataclass(frozen=True, kw_only=True)
class GymSeen:
    """State before decision `step` of a rollout."""

    masks: ClassVar[None] = None  # every choice is valid
    step: int  # 1-based
    alive: Bools  # [E]
    observation: Floats32  # [E, width]
    codec: Codec  # knows the bounds of a box


class GymEnvironments:
    """The Gymnasium environments of one run: call `begin`, then `step` until none is alive."""

    def __init__(self, spec: GymSpec, stopwatch: Stopwatch) -> None:
        self._spec = spec
        self._stopwatch = stopwatch
        self.n_envs = len(spec.devices)
        self._now = np.zeros((self.n_envs, spec.codec.spaces.observation_width), dtype=np.float32)
        self._places = [Place(spec, row) for row in self._now]

    def begin(self, paths: Sequence[RngPath]) -> GymSeen:
        """Start a rollout: reset all environments except those that continue their episode."""
        self._paths = paths
        self._step = 1
        self._resets = [0] * self.n_envs
        self._ended: list[list[GymEpisode]] = [[] for _ in paths]
        self._steps_done = [0] * self.n_envs
        self._alive = all_true(self.n_envs)
        self._living = list(enumerate(self._places))
        for env, place in enumerate(self._places):
            if not place.going_on:
                self._reset(env)
            place.going_on = False
        return self._update_seen(self._now.copy())

    def uniforms(self) -> Floats:
        """Return the random numbers [E, heads or dimensions] of the next decision."""
        chunk, index = divmod(self._step - 1, _CHUNK)
        if index == 0:
            shape = (min(_CHUNK, self._spec.steps - self._step + 1), self._spec.codec.width)
            draws = [(path / "actions" / chunk).generator().random(shape) for path in self._paths]
            self._uniforms: list[Floats] = list(np.stack(draws, axis=1))  # [E, width] for each of these steps
        return self._uniforms[index]

    def step(self, decisions: Decisions) -> tuple[Happened[GymStep], GymSeen]:
        """Step every live environment; if a rollout may contain several episodes, reset environments that ended."""
        spec = self._spec
        observation_before = self._seen
        rewards = np.zeros(self.n_envs)
        actions = spec.codec.actions(decisions)
        any_over = self._step == spec.steps
        rows = decisions.tolist() if spec.continues else None
        with self._stopwatch.phase("train"):
            for env, place in self._living:
                rewards[env] = place.step(actions[env])
                any_over = any_over or place.over
                if rows is not None:
                    place.decisions.append(rows[env])
        last_observation = observation_after = self._now.copy()
        episodes = [place.episode for place in self._places]  # before any reset
        ended_mask = all_false(self.n_envs)
        cut = None
        if any_over:
            ended_mask, cut = self._cut(last_observation)
            self._end(ended_mask, cut)
            observation_after = self._now.copy()
        self._step += 1

        def facts() -> GymFacts:
            terminated_mask = truncated_mask = ended_mask
            if cut is not None:
                terminated_mask = ended_mask & ~cut.truncated
                truncated_mask = cut.truncated & ~cut.goes_on
            return GymFacts(
                observation=observation_before.observation,
                action=spec.codec.given(decisions),
                next_observation=last_observation,
                env_reward=rewards,
                terminated=terminated_mask,
                truncated=truncated_mask,
                step=np.array([len(episode.env_rewards) for episode in episodes], dtype=np.int64),
                info=tuple(MappingProxyType(episode.info) for episode in episodes),
                stepped=observation_before.alive,
            ).of(observation_before.alive)

        step = GymStep(rewards, facts)
        return Happened(facts=step, ended=ended_mask, cut=cut), self._update_seen(observation_after)

    def _cut(self, observation: Floats32) -> tuple[Bools, Cut]:
        """Return a mask [E] of the environments whose episode or rollout ended with this step, and how each ended."""
        spec = self._spec
        alive_mask = self._alive
        is_last_step = self._step == spec.steps
        episodes = [place.episode for place in self._places]
        terminated_mask = alive_mask & np.array([episode.terminated for episode in episodes])
        over_mask = alive_mask & np.array([episode.terminated or episode.truncated for episode in episodes])
        truncated_mask = alive_mask & ~terminated_mask & (over_mask | is_last_step)
        ended_mask = terminated_mask | truncated_mask
        return ended_mask, Cut(
            truncated=truncated_mask,
            last=observation,
            restarted=ended_mask & (spec.resets and not is_last_step),
            goes_on=truncated_mask & ~over_mask & spec.continues,
        )

    def ends(self) -> Ended:
        """Return the results of every environment's rollout: means over the episodes that ended in the rollout.

        If no episode ended in an environment, it has neither outcome nor measures, because users' functions get only
        complete episodes.
        """
        return Ended(tuple(self._end_of(env) for env in range(self.n_envs)), ())

    def carried(self) -> dict[str, Any]:
        """Return the state of every environment that is mid-episode.

        The state consists of the reset seed, the decisions since the reset, and the last observation.
        """
        if not self._spec.continues:
            return {}
        kind = torch.float64 if self._spec.codec.box else torch.int64
        open_episodes = {
            str(env): {
                "seed": place.seed,
                "decisions": torch.tensor(place.decisions, dtype=kind),
                "seen": torch.from_numpy(place.observation.copy()),
            }
            for env, place in enumerate(self._places)
            if place.going_on
        }
        return {"going_on": open_episodes}

    def take_up(self, carried_state: dict[str, Any]) -> Bools:
        """Replay environments that were mid-episode, and compare their observations with the saved ones.

        Raises ValueError if any differ. Environments that are known not to repeat are reset instead of replayed.
        """
        continuing_envs = all_false(self.n_envs)
        replayed_episodes = carried_state["going_on"] if self._spec.continues and self._spec.repeats else {}
        for env, kept_episode in replayed_episodes.items():
            place = self._places[int(env)]
            place.reset(kept_episode["seed"])
            for action in self._spec.codec.actions(kept_episode["decisions"].numpy()):
                place.step(action)
            place.decisions = kept_episode["decisions"].tolist()
            if not np.array_equal(place.observation, kept_episode["seen"].numpy(), equal_nan=True):
                raise ValueError(f"environment {env} does not repeat: after the same actions it shows something else")
            continuing_envs[int(env)] = True
        for place, is_continuing in zip(
            self._places, continuing_envs.tolist(), strict=True
        ):  # only now: a replay may be refused
            place.going_on = is_continuing
        return continuing_envs

    def _reset(self, env: int) -> None:
        seed = int((self._paths[env] / "reset" / self._resets[env]).generator().integers(_SEEDS))
        self._resets[env] += 1
        self._places[env].reset(seed)

    def _end(self, ended_mask: Bools, cut: Cut) -> None:
        for env in np.flatnonzero(ended_mask).tolist():
            self._steps_done[env] = self._step
            place = self._places[env]
            place.going_on = bool(cut.goes_on[env])
            episode = place.episode
            if episode.terminated or episode.truncated or not self._spec.resets:
                episode.truncated = not episode.terminated
                self._ended[env].append(episode)
            if cut.restarted[env]:
                self._reset(env)
        self._alive = (self._alive & ~ended_mask) | cut.restarted
        self._living = [(env, self._places[env]) for env in np.flatnonzero(self._alive).tolist()]

    def _end_of(self, env: int) -> EnvEpisode:
        spec = self._spec
        episodes = self._ended[env]
        measures = [spec.measures(episode) for episode in episodes]  # first: a user's outcome may write into an episode
        outcomes = [float(spec.outcome(episode)) for episode in episodes]
        worst_outcome = spec.worst
        has_failed = not all(map(countable, outcomes))
        if has_failed and worst_outcome is None:
            raise UserCodeFailed(
                f"the outcome of environment {env} is not a number from -{LARGEST_OUTCOME:g} to {LARGEST_OUTCOME:g}: "
                f"{outcomes}; to count such an episode as the worse end of a range, set "
                f"{in_every_door(SettingName('outcome_range', 'LOW..HIGH'))}, or define its worth with an outcome of "
                "your own, path.py:function"
            )
        if has_failed and worst_outcome is not None:
            outcomes = [outcome if countable(outcome) else worst_outcome for outcome in outcomes]
        names = spec.measures(GymEpisode())  # also when no episode ended
        means = {name: _mean([env_measures[name] for env_measures in measures]) for name in names}
        return EnvEpisode(
            env=env,
            device=spec.devices[env],
            steps=self._steps_done[env],
            outcome=float(np.mean(outcomes)) if outcomes else None,
            reward_sum=None,
            failed=has_failed,
            measures=means,
        )

    def _update_seen(self, observation: Floats32) -> GymSeen:
        self._seen = GymSeen(step=self._step, alive=self._alive, observation=observation, codec=self._spec.codec)
        return self._seen


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the usable numbers among `values`; None if there are none."""
    known_values = [value for value in values if value is not None and countable(value)]
    return float(np.mean(known_values)) if known_values else None
