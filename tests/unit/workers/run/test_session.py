"""One run: the inputs on which its records depend, and refused rewards."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from support.commands.evaluation_child import question
from support.worlds.tensor_world import make_session, quiet

from esper_ab.contracts.errors import UserCodeFailed
from esper_ab.contracts.records import EpisodeRecord, EvaluatedEpisode, EvaluationRecord
from esper_ab.contracts.settings import Arithmetic, GroupSettings
from workers.commands.evaluate import evaluate_file
from workers.environments import paths_below
from workers.kinds.growth.vocabulary import Op
from workers.native.build import Unusable
from workers.run import policy_file
from workers.run.episode import play
from workers.run.session import Session


def run(session: Session, tmp_path) -> tuple[list[EpisodeRecord], EvaluationRecord]:
    session.warm_up(quiet)
    records = [session.train(episode, quiet, quiet) for episode in range(session.spec.episodes)]
    return records, session.evaluate(tmp_path, quiet)


def outcomes(episodes: Sequence[EvaluatedEpisode]) -> list[float]:
    return [episode.result.outcome for episode in episodes]


def digests(session: Session, tmp_path) -> list[str]:
    records, evaluation = run(session, tmp_path)
    return [*(record.digest for record in records), evaluation.digest]


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> list[str]:
    torch.set_num_threads(1)  # as every test has it, but not yet what is set up before the first one
    return digests(make_session(), tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize(
    "change",
    [
        {"group": "another"},
        {"telemetry": False},
        {"log_file": "logs/x.log", "experiment_digest": "ff"},
        {"eval_reward_modes": ("sparse",)},
    ],
)
def test_records_do_not_depend_on_names_or_telemetry(change, reference, tmp_path) -> None:
    digests_after = digests(make_session(**change), tmp_path)
    assert digests_after[:2] == reference[:2]
    assert digests_after[2] == reference[2] or "eval_reward_modes" in change


@pytest.mark.parametrize(
    "change", [{"replicate": 1}, {"rng_seed": 6}, {"rng_label": "a"}, {"mode": "simplified"}, {"ppo": {"lr": 1e-3}}]
)
def test_records_depend_on_seed_reward_and_settings(change, reference, tmp_path) -> None:
    assert digests(make_session(**change), tmp_path)[1] != reference[1]


def test_the_kind_of_task_sets_the_smallest_divisor_of_observations() -> None:
    """Of growth, an entry that was constant so far and then moves by 1 just reaches the clip."""
    agent = make_session().agent
    assert agent is not None
    agent.observations.merge(np.zeros((5, agent.spec.observation_width)))
    for value, expected_value in ((1.0, 10.0), (0.5, 5.0), (2.0, 10.0)):
        row = np.full((1, agent.spec.observation_width), value, dtype=np.float32)
        assert agent.observations.normalise(row) == pytest.approx(expected_value)


@pytest.mark.parametrize("op", Op)
def test_the_bias_setting_of_an_op_changes_only_its_initial_bias(op: Op) -> None:
    changes = ({}, {f"bias_{op.name.lower()}": -20.0})
    plain_bias, changed_bias = (
        make_session(policy=change).agent.policy.weights["actor.0.logits.bias"] for change in changes
    )
    assert np.flatnonzero(changed_bias != plain_bias).tolist() == [op]


def test_a_worker_keeps_no_state_between_runs(reference, tmp_path) -> None:
    run(make_session(mode="sparse", replicate=4), tmp_path)
    assert digests(make_session(), tmp_path) == reference


def test_groups_are_evaluated_on_the_same_hosts(tmp_path) -> None:
    """A controller that never grows sees the same episodes whatever the group is called: pairing is by address."""
    _, first_evaluation = run(make_session(controller="wait", group="x"), tmp_path)
    _, second_evaluation = run(make_session(controller="wait", group="y", mode="sparse"), tmp_path)
    assert outcomes(first_evaluation.episodes) == outcomes(second_evaluation.episodes)


def test_an_evaluation_plays_the_planned_hosts(tmp_path) -> None:
    """Five episodes in episodes of two: addresses go on where they would with six, and only a learner is greedy.

    More hosts change no training, and none of the first hosts.
    """
    (two_trained, evaluation_of_two), (five_trained, evaluation_of_five) = (
        run(make_session(eval_episodes=n), tmp_path) for n in (2, 5)
    )
    sampled_positions = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    greedy_positions = [(0, 0), (0, 1)]
    hosts = {
        (episode.actions, episode.episode, episode.result.env): episode.result
        for episode in evaluation_of_five.episodes
    }
    assert list(hosts) == [
        *(("sampled", *position) for position in sampled_positions),
        *(("greedy", *position) for position in greedy_positions),
    ]
    assert all(
        hosts[episode.actions, episode.episode, episode.result.env] == episode.result
        for episode in evaluation_of_two.episodes
    )
    assert [record.digest for record in two_trained] == [record.digest for record in five_trained]
    _, wait_evaluation = run(make_session(controller="wait", eval_episodes=1), tmp_path)
    assert [episode.actions for episode in wait_evaluation.episodes] == ["sampled"]


def test_a_saved_policy_repeats_its_evaluation(tmp_path) -> None:
    _, evaluation = run(make_session(), tmp_path)
    path = tmp_path / evaluation.policy_file
    _, repeated_episodes, _ = evaluate_file(path, question(path))
    assert outcomes(repeated_episodes) == outcomes(evaluation.episodes)
    assert [episode.rewards for episode in repeated_episodes] == [episode.rewards for episode in evaluation.episodes]
    _, reseeded_episodes, _ = evaluate_file(path, msgspec.structs.replace(question(path), rng_seed=99))
    assert outcomes(reseeded_episodes) != outcomes(evaluation.episodes)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("x.pt", "is no policy file"),
        (".", r"is a folder; name the \.pt files in it"),
        ("absent.pt", "no policy file"),
    ],
)
def test_a_file_that_is_not_a_policy_is_refused(tmp_path, name, complaint) -> None:
    (tmp_path / "x.pt").write_bytes(b"not a policy")
    with pytest.raises(ValueError, match=complaint):
        policy_file.load(tmp_path / name)


def test_a_diverged_host_ends_only_its_own_episode(tmp_path) -> None:
    """A learning rate that explodes: chance accuracy, said so, and the policy learns from the transitions it has."""
    session = make_session(growth={"host_lr": 1e30, "max_grad_norm": 1e30}, n_envs=3)
    record = session.train(0, quiet, quiet)
    assert [(env.failed, env.outcome) for env in record.envs] == [(True, 25.0)] * 3
    assert record.ppo is not None
    session.evaluate(tmp_path, quiet)


def test_the_last_executed_decision_gets_the_penalty_for_divergence(monkeypatch) -> None:
    """An episode breaks before step 4: its transition 3 carries the penalty and is terminal; the other one plays on."""
    session = make_session()
    env = session._env
    decider = session._decider(session.agent)
    rewards_heard: list[tuple[np.ndarray, np.ndarray]] = []
    decide = decider.decide
    reward = decider.reward

    def breaks(view, uniforms):
        if view.step == 3:
            env._banks[0][0].host.values[0] = float("nan")
        return decide(view, uniforms)

    def listens(rewards, done_mask, cut_episodes) -> None:
        rewards_heard.append((rewards.copy(), done_mask.copy()))
        reward(rewards, done_mask, cut_episodes)

    monkeypatch.setattr(decider, "decide", breaks)
    monkeypatch.setattr(decider, "reward", listens)
    paths = paths_below(session._path / "train" / 0, env.n_envs)
    result = play(env, paths, decider, session._rewards, session._stopwatch, quiet)
    none_done = [False, False]
    first_done = [True, False]
    both_done = [True, True]
    assert [done_flags.tolist() for _, done_flags in rewards_heard] == [none_done] * 2 + [first_done] + [
        none_done
    ] * 4 + [both_done]
    assert rewards_heard[2][0][0] < -9.0
    assert [(env_result.steps, env_result.failed) for env_result in result.envs] == [(3, True), (8, False)]
    session.agent.finish_episode(0)


def test_the_time_of_an_episode_excludes_the_wait_for_its_release(tmp_path) -> None:
    session = make_session()
    session._stopwatch._start -= 1e6  # as if it had waited for days
    assert session.train(0, quiet, quiet).timing.total_s < 1e5
    session._stopwatch._start -= 1e6
    assert session.evaluate(tmp_path, quiet).timing.total_s < 1e5


def settings_at_their_bounds() -> Iterator[tuple[str, str, float]]:
    """(part, key, value): closed ends; 2^63 - 1 is only the largest number of a message."""
    for part in msgspec.inspect.type_info(GroupSettings).fields:  # type: ignore[attr-defined]
        for field in getattr(part.type, "fields", ()):  # a trainer's own settings have none of ours
            for end in (getattr(field.type, "ge", None), getattr(field.type, "le", None)):
                if end is not None and end < 2**63 - 1:
                    yield part.encode_name, field.encode_name, end


@pytest.mark.parametrize(("part", "key", "value"), list(settings_at_their_bounds()))
def test_an_episode_can_be_trained_at_the_bounds_of_every_setting(part: str, key: str, value: float) -> None:
    settings = make_session().spec.settings
    changed_part: Any = msgspec.structs.replace(getattr(settings, part), **{key: value})
    session = make_session(steps=3, episodes=1, settings=msgspec.structs.replace(settings, **{part: changed_part}))
    record = session.train(0, quiet, quiet)
    assert record.ppo is not None
    assert all(env.steps > 0 for env in record.envs)


def test_a_run_with_another_build_of_the_kernel_is_refused() -> None:
    """Another build has other bits: the worker refuses the run, and trains nothing by what it happens to have."""
    other_build = Arithmetic(kernel="native-generic", kernel_build="a compiler that nobody has")
    with pytest.raises(Unusable, match="native-generic"):
        make_session(arithmetic=other_build)


BODY = """
import numpy as np


def reward(facts, settings):
    return np.where(np.arange(len(facts.op)) == 1, {value}, 0.0)
"""


@pytest.mark.parametrize("controller", ["ppo", "random"])
@pytest.mark.parametrize(
    ("value", "complaint"), [("np.nan", "is not finite"), ("np.inf", "is not finite"), ("-1e200", r"is beyond 1e\+40")]
)
def test_an_invalid_reward_value_ends_the_run(tmp_path: Path, controller: str, value: str, complaint: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(BODY.format(value=value))
    session = make_session(controller=controller, mode=f"{path}:reward")
    with pytest.raises(UserCodeFailed, match=rf"reward mode '{path}:reward' {complaint} at step 1: \[0.0, "):
        session.warm_up(lambda _step: None)
