"""Rollouts of Gymnasium environments: ends, truncations, restarts, and carried episodes."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from support.worlds.gym_world import Walk

from esper_ab.contracts.rng import RngPath
from workers.environments import Happened, Stopwatch, paths_below
from workers.kinds.gymnasium.environments import GymEnvironments
from workers.kinds.gymnasium.facts import GymEpisode, GymFacts, GymStep
from workers.kinds.gymnasium.place import Env, GymSpec
from workers.kinds.gymnasium.spaces import Codec
from workers.kinds.gymnasium.world import env_return

ENVS = 4
ON = {"resets": True, "continues": True}
ROLLOUTS = [{}, {"resets": True}, ON]
Rollout = list[tuple[np.ndarray, Happened[GymFacts]]]  # what was seen before, and what happened


class Thrifty(Walk):
    """Writes every observation into one array and every info into one dictionary, as fast environments do."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._observed = np.zeros(2, dtype=np.float32)
        self._info = dict[str, Any]()

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        self._info.clear()
        return super().reset(**options)[0], self._info

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, is_terminated, is_truncated, info = super().step(action)
        self._info.update(info)
        return observation, reward, is_terminated, is_truncated, self._info

    def _seen(self) -> np.ndarray:
        self._observed[:] = super()._seen()
        return self._observed


class Open(Walk):
    """Tells its state itself and keeps its last action; the drift of its walk goes on from episode to episode."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.drift = np.zeros(1)
        self.acted = np.zeros((), dtype=np.int64)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.drift += 0.01 + 0.001 * self.acted
        self.acted = np.asarray(action)
        observation, reward, is_terminated, is_truncated, info = super().step(action)
        self.place += float(self.drift[0])
        return (
            observation,
            reward,
            is_terminated,
            is_truncated,
            {**info, "drift": self.drift, "deep": {"parts": [self.drift]}},
        )


def environments(steps: int = 20, limit: int = 9, kind: type[Walk] = Walk, **changes: Any) -> GymEnvironments:
    """`how` changes their spec."""
    defaults = {
        "make": lambda: kind(limit),
        "codec": Codec(Walk.observation_space, Walk.action_space),
        "outcome": env_return,
        "measures": lambda episode: {"length": float(len(episode.actions))},
        "steps": steps,
        "devices": ("cpu:0",) * ENVS,
        "keeps": True,
    }
    return GymEnvironments(GymSpec(**defaults | changes), Stopwatch())


def play(env: GymEnvironments, episode: int = 0) -> Rollout:
    """Actions by the uniforms alone."""
    view = env.begin(paths_below(RngPath(1) / episode, ENVS))
    rollout: Rollout = []
    while view.alive.any():
        step, next_view = env.step((env.uniforms() < 0.5).astype(np.int64))
        rollout.append((view.observation, replace(step, facts=step.facts.facts)))
        view = next_view
    return rollout


def digest(rollout: Rollout) -> list[Any]:
    return [
        (observation.tolist(), step.facts.env_reward.tolist(), step.ended.tolist()) for observation, step in rollout
    ]


def test_an_ended_environment_is_observed_as_zeros() -> None:
    env = environments()
    rollout = play(env)
    ended = np.array([step.ended for _, step in rollout])  # [T, E]
    assert ended.sum(axis=0).tolist() == [1] * ENVS
    steps = 1 + ended.argmax(axis=0)
    for end in env.ends().envs:
        step_facts = [step.facts for _, step in rollout]
        assert end.steps == end.measures["length"] == steps[end.env]
        assert end.outcome == pytest.approx(sum(facts.env_reward[end.env] for facts in step_facts))
        assert [bool(facts.stepped[end.env]) for facts in step_facts] == [n < end.steps for n in range(len(step_facts))]
        for facts in step_facts[end.steps :]:
            assert facts.observation[end.env].tolist() == [0.0, 0.0]
            assert facts.env_reward[end.env] == 0.0
            assert facts.info[end.env] == step_facts[end.steps - 1].info[end.env] != {}
            assert facts.step[end.env] == 0


def test_a_step_limit_truncates_an_episode_without_terminating_it() -> None:
    for env, length in ((environments(limit=2), 2), (environments(steps=3), 3)):
        rollout = play(env)
        *_, (_, last_step) = rollout
        assert len(rollout) == length
        assert last_step.cut is not None
        assert (last_step.facts.terminated | last_step.facts.truncated).tolist() == last_step.ended.tolist()
        assert last_step.cut.truncated.any()
        assert not (last_step.cut.truncated & last_step.facts.terminated).any()


def test_facts_describe_the_states_before_and_after_the_step() -> None:
    for observation, step in play(environments(steps=40, resets=True)):
        facts = step.facts
        assert facts.observation.tolist() == observation.tolist()
        assert facts.env_reward == pytest.approx(facts.next_observation[:, 0], abs=1e-6)  # before any reset
        assert facts.step.tolist() == facts.next_observation[:, 1].tolist()
        movement = facts.next_observation[:, 0] - facts.observation[:, 0]
        assert (facts.action == (movement > 0)).all()


def test_every_environment_restarts_after_its_end_if_resets_are_on() -> None:
    env = environments(steps=40, resets=True)
    rollout = play(env)
    assert len(rollout) == 40
    starts = [tuple(observation[i]) for observation, _ in rollout for i in range(ENVS) if observation[i, 1] == 0]
    assert len(starts) == len(set(starts)) > ENVS
    for (_, step), (next_observation, _) in pairwise(rollout):
        restart_mask = step.cut.restarted if step.cut is not None else np.zeros(ENVS, dtype=bool)
        assert restart_mask.tolist() == step.ended.tolist() == (next_observation[:, 1] == 0).tolist()
    assert all(end.steps == 40 for end in env.ends().envs)


@pytest.mark.parametrize("changes", ROLLOUTS[1:])
def test_a_rollout_has_only_outcomes_of_its_finished_episodes(changes: dict[str, bool]) -> None:
    lengths = list[int]()

    def outcome(episode: GymEpisode) -> float:
        assert episode.terminated or episode.truncated
        lengths.append(len(episode.actions))
        return float(lengths[-1])

    env = environments(steps=4, outcome=outcome, **changes)
    open_episodes = 0
    for number in range(12):
        lengths.clear()
        ended = np.array(
            [step.ended & (step.facts.terminated | (step.facts.step == 9)) for _, step in play(env, number)]
        )
        ends = env.ends().envs
        assert len(lengths) == ended.sum()
        assert [end.outcome is not None for end in ends] == ended.any(axis=0).tolist()
        assert [end.measures for end in ends] == [{"length": end.outcome} for end in ends]
        assert not any(end.failed for end in ends)
        open_episodes += sum(end.outcome is None for end in ends)
    assert open_episodes


def test_continuing_rollouts_equal_a_single_long_rollout() -> None:
    """Piece by piece nobody is reset but at ends."""
    env = environments(steps=5, **ON)
    pieces = [play(env, episode) for episode in range(6)]
    for earlier_piece, later_piece in pairwise(pieces):
        (_, last_step) = earlier_piece[-1]
        (first_observation, _) = later_piece[0]
        continuing_envs = last_step.cut.goes_on
        assert continuing_envs.any()
        assert first_observation[continuing_envs].tolist() == last_step.cut.last[continuing_envs].tolist()
        assert (first_observation[~continuing_envs, 1] == 0).all()
        assert not last_step.facts.truncated[continuing_envs].any()  # to a reward nothing ends there


@pytest.mark.parametrize("resume_episode", [1, 2, 5])
def test_episodes_carried_over_a_resume_are_replayed_to_the_same_state(resume_episode: int) -> None:
    whole, first_env, resumed_env = (environments(steps=4, **ON) for _ in range(3))
    expected = [digest(play(whole, episode)) for episode in range(7)]
    for episode in range(resume_episode):
        play(first_env, episode)
    resumed_env.take_up(first_env.carried())
    assert [digest(play(resumed_env, episode)) for episode in range(resume_episode, 7)] == expected[resume_episode:]
    assert [end.outcome for end in resumed_env.ends().envs] == [end.outcome for end in whole.ends().envs]


def test_a_different_replay_of_a_repeatable_environment_is_refused() -> None:
    """Also those that came before the one that did not repeat."""
    first_env, resumed_env, untouched_env = (environments(steps=2, **ON) for _ in range(3))
    play(first_env)
    carried_state = first_env.carried()
    *earlier_numbers, last_number = carried_state["going_on"]
    assert earlier_numbers
    carried_state["going_on"][last_number]["seen"][0] += 1.0
    with pytest.raises(ValueError, match=f"environment {last_number} does not repeat"):
        resumed_env.take_up(carried_state)
    assert digest(play(resumed_env)) == digest(play(untouched_env))
    single_pass_env = environments(steps=2, repeats=False, **ON)
    single_pass_env.take_up(carried_state)
    assert (play(single_pass_env, 1)[0][0][:, 1] == 0).all()


def test_random_draws_do_not_depend_on_the_length_of_a_rollout() -> None:
    long_rollout = play(environments(steps=40, resets=True))
    short_rollout = play(environments(steps=7, resets=True))
    assert digest(long_rollout)[:6] == digest(short_rollout)[:6]


@pytest.mark.parametrize("broken_outcome", [float("nan"), float("inf"), -float("inf"), 1e200])
def test_an_outcome_without_a_number_is_refused_or_replaced(
    broken_outcome: float,
) -> None:
    def judged_env(**changes: Any) -> GymEnvironments:
        outcomes = iter([5.0, broken_outcome, 5.0, 5.0])
        return environments(
            outcome=lambda episode: next(outcomes), measures=lambda episode: {"odd": broken_outcome}, **changes
        )

    refusing_env = judged_env()
    counted = judged_env(worst=-7.0)
    play(refusing_env)
    with pytest.raises(ValueError, match=r"environment 1 is not a number.*--outcome-range.*an outcome of your own"):
        refusing_env.ends()
    play(counted)
    outcomes_of_ends = [(end.failed, end.outcome, end.measures["odd"]) for end in counted.ends().envs]
    assert outcomes_of_ends == [(False, 5.0, None), (True, -7.0, None), (False, 5.0, None), (False, 5.0, None)]


@pytest.mark.parametrize("changes", ROLLOUTS)
def test_an_environment_that_overwrites_its_observations_changes_no_record(changes: dict[str, bool]) -> None:
    def outcome(episode: GymEpisode) -> float:
        return float(np.sum(episode.observations)) + episode.info["place"]

    results = []
    for kind in (Walk, Thrifty):
        env = environments(kind=kind, steps=15, outcome=outcome, **changes)
        rollouts = [play(env, episode) for episode in range(3)]
        infos = [[dict(info) for info in step.facts.info] for rollout in rollouts for _, step in rollout]
        results.append(([digest(rollout) for rollout in rollouts], infos, env.ends()))
    assert results[0] == results[1]


@pytest.mark.parametrize("changes", ROLLOUTS)
def test_an_outcome_function_that_overwrites_its_episode_changes_no_record(changes: dict[str, bool]) -> None:
    def read_outcome(episode: GymEpisode) -> float:
        return float(np.sum(episode.observations)) + float(episode.info["drift"][0])

    def scribble(episode: GymEpisode) -> float:
        value = read_outcome(episode)
        for array in (*episode.observations, episode.info["drift"], episode.info["deep"]["parts"][0]):
            array += 100.0
        episode.info.clear()  # type: ignore[attr-defined]
        for part in (episode.observations, episode.actions, episode.env_rewards):
            part.clear()
        return value

    results = []
    for outcome in (read_outcome, scribble):
        env = environments(kind=Open, steps=15, outcome=outcome, **changes)
        results.append([(digest(play(env, episode)), env.ends()) for episode in range(4)])
    assert results[0] == results[1]


def test_facts_are_built_once_on_first_use() -> None:
    built = list[int]()
    step = GymStep(np.zeros(2), lambda: built.append(1) or play(environments())[0][1].facts)
    assert not built
    assert step.facts is step.facts
    assert built == [1]


@pytest.mark.parametrize("keeps", [True, False])
def test_actions_and_observations_are_kept_only_if_the_outcome_reads_them(keeps: bool) -> None:
    episodes = list[GymEpisode]()
    env = environments(
        keeps=keeps, outcome=lambda episode: episodes.append(episode) or 0.0, measures=lambda episode: {}
    )
    play(env)
    steps = [end.steps for end in env.ends().envs]
    lengths = [
        (len(kept_episode.actions), len(kept_episode.observations), len(kept_episode.env_rewards))
        for kept_episode in episodes
    ]
    assert lengths == [(n, n + 1, n) if keeps else (0, 0, n) for n in steps]


def test_facts_are_read_only() -> None:
    (_, step), *_ = play(environments())
    for name, value in vars(step.facts).items():
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[0] = 0
        else:
            assert name == "info"
            with pytest.raises(TypeError, match="does not support item assignment"):
                value[0]["place"] = 0.0


def test_an_environment_that_is_already_in_use_is_refused() -> None:
    """Not within a rollout, nor for an evaluation beside it; once nobody has it any more it may come back."""
    pool: list[Env] = [Walk(), Walk(), Walk()]

    def environments_of_pool(n_envs: int) -> GymEnvironments:
        environments_left = iter(pool)
        return environments(make=lambda: next(environments_left), devices=("cpu:0",) * n_envs)

    for n_envs in (1, 3):
        environments_in_use = environments_of_pool(n_envs)
        with pytest.raises(ValueError, match="one that is in use; it has to make another at every call"):
            environments_of_pool(1)
        del environments_in_use
    assert environments_of_pool(2).n_envs == 2
    pool[2] = TimeLimit(pool[0], 5)
    with pytest.raises(ValueError, match="one that is in use"):
        environments_of_pool(3)
