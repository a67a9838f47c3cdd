"""Which records enter the list of incidents, and as what."""

from __future__ import annotations

import msgspec
import pytest
from support.journals import planted_effect

from esper_ab.analysis.pathologies import UNTRAINED_UPDATES
from esper_ab.contracts.messages import EpisodeFinished
from esper_ab.contracts.records import EpisodeRecord, EvaluationRecord
from esper_ab.control.rules.confounders import confounders
from esper_ab.control.rules.incidents import reported
from esper_ab.journal.events import EpisodeRecorded, Incident, RunEvaluated
from esper_ab.journal.fold import fold


@pytest.fixture(scope="module")
def records() -> tuple[EpisodeRecord, EvaluationRecord]:
    events = planted_effect()
    episode = next(e.record for e in events if isinstance(e, EpisodeRecorded) and e.record.ppo is not None)
    return episode, next(e.record for e in events if isinstance(e, RunEvaluated))


def test_a_sound_record_says_nothing(records) -> None:
    assert not list(confounders(records[0]))
    assert not list(confounders(records[1]))


def test_failed_environments_are_counted_and_named(records) -> None:
    episode, evaluation = records
    envs = tuple(msgspec.structs.replace(env, failed=env.env == 1) for env in episode.envs)
    (entry,) = confounders(msgspec.structs.replace(episode, envs=envs))
    assert (entry.category, entry.run_name, entry.episode) == ("non_finite", episode.run.name, episode.episode)
    assert f"1 of {len(envs)} environments failed (environments 1)" in entry.detail
    broken = msgspec.structs.replace(
        evaluation.episodes[0], outcome=msgspec.structs.replace(evaluation.episodes[0].outcome, failed=True)
    )
    (entry,) = confounders(msgspec.structs.replace(evaluation, episodes=(broken, *evaluation.episodes[1:])))
    assert entry.episode is None
    assert "evaluation episodes failed" in entry.detail


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ratio_max": 5.1}, "ratio up to 5.1"),
        ({"first_ratio_error": 0.01}, "off 1 by 1.0e-02"),
        ({"entropy": 1e-6}, "entropy collapsed"),
        ({"grad_norm": None}, "not finite"),
        ({"policy_loss": None}, "not finite"),
        ({"clip_fraction": 0.75}, "75 % of the probability ratios were clipped"),
        ({"explained_variance": -0.5, "value_loss": 0.8}, "explained variance -0.50, value loss 0.80"),
    ],
)
def test_pathologies_of_an_update(records, change, words) -> None:
    broken = later(records[0], **change)
    (entry,) = confounders(broken)
    assert (entry.category, entry.run_name, entry.episode) == ("ppo_pathology", broken.run.name, UNTRAINED_UPDATES)
    assert words in entry.detail


def later(episode: EpisodeRecord, number: int = UNTRAINED_UPDATES, **change) -> EpisodeRecord:
    """Another episode of the same run, with some numbers of its update replaced."""
    return msgspec.structs.replace(episode, episode=number, ppo=msgspec.structs.replace(episode.ppo, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"explained_variance": -0.5, "value_loss": 0.4},  # off by a scale, yet nearer than the mean of all returns
        {"explained_variance": 0.1, "value_loss": 3.0},
        {"explained_variance": None, "value_loss": 3.0},
        {"clip_fraction": 0.4},
        {"ratio_max": 4.9},
        {"first_ratio_error": None, "entropy": None, "ratio_max": None, "clip_fraction": None},
    ],
)
def test_what_is_no_pathology(records, change) -> None:
    assert not list(confounders(later(records[0], **change)))


def test_a_critic_that_has_hardly_learnt_is_not_judged(records) -> None:
    values = {"explained_variance": -0.5, "value_loss": 0.8}
    assert not list(confounders(later(records[0], UNTRAINED_UPDATES - 1, **values)))
    assert len(list(confounders(later(records[0], UNTRAINED_UPDATES, **values)))) == 1


def test_the_incidents_has_one_entry_per_run_and_kind(records) -> None:
    run = [later(records[0], number, ratio_max=6.0, entropy=0.0 if number > 2 else 1.0) for number in range(1, 6)]
    entries = entered(run)
    assert [(entry.episode, entry.confounder) for entry in entries] == [
        (1, "ratio explosion"), (3, "entropy collapse"),
    ]  # fmt: skip
    envs = tuple(msgspec.structs.replace(env, failed=True) for env in records[0].envs)
    run = [msgspec.structs.replace(later(records[0], number), envs=envs) for number in range(4)]
    assert [entry.episode for entry in entered(run)] == [0]


def test_what_was_entered_before_a_resume_is_not_entered_again(records) -> None:
    history = fold([*planted_effect(), *confounders(later(records[0], 1, ratio_max=6.0))], keeps_records=False)
    record = later(records[0], 2, ratio_max=6.0, entropy=0.0)
    report = EpisodeFinished(run=record.run, record=record)
    event, entry = reported(report, history.runs[record.run.name])
    assert event == EpisodeRecorded(record=record)
    assert entry.confounder == "entropy collapse"


def entered(run: list[EpisodeRecord]) -> list[Incident]:
    """Of one episode after the other."""
    entries, known = [], set()
    for record in run:
        for entry in confounders(record, known):
            entries.append(entry)
            known.add(entry.confounder)
    return entries


def test_a_controller_that_does_not_learn_has_no_pathology(records) -> None:
    assert not list(confounders(msgspec.structs.replace(records[0], ppo=None)))
