"""Which records enter the ledger of confounders, and as what."""

from __future__ import annotations

import msgspec
import pytest
from support.journals import planted_effect

from esper_ab.contracts.records import EpisodeRecord, EvaluationRecord
from esper_ab.control.findings import findings
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated


@pytest.fixture(scope="module")
def records() -> tuple[EpisodeRecord, EvaluationRecord]:
    events = planted_effect()
    episode = next(e.record for e in events if isinstance(e, EpisodeRecorded) and e.record.ppo is not None)
    return episode, next(e.record for e in events if isinstance(e, RunEvaluated))


def test_a_sound_record_says_nothing(records) -> None:
    assert not list(findings(records[0]))
    assert not list(findings(records[1]))


def test_diverged_hosts_are_counted_and_named(records) -> None:
    episode, evaluation = records
    envs = tuple(msgspec.structs.replace(env, diverged=env.env == 1) for env in episode.envs)
    (entry,) = findings(msgspec.structs.replace(episode, envs=envs))
    assert (entry.category, entry.run, entry.episode) == ("non_finite", episode.run.run, episode.episode)
    assert f"1 of {len(envs)} hosts diverged (environments 1)" in entry.detail
    broken = msgspec.structs.replace(
        evaluation.episodes[0], env=msgspec.structs.replace(evaluation.episodes[0].env, diverged=True)
    )
    (entry,) = findings(msgspec.structs.replace(evaluation, episodes=(broken, *evaluation.episodes[1:])))
    assert entry.episode is None
    assert "evaluation hosts diverged" in entry.detail


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ratio_max": 5.1}, "ratio up to 5.1"),
        ({"first_ratio_error": 0.01}, "off 1 by 1.0e-02"),
        ({"entropy": 1e-6}, "entropy collapsed"),
        ({"grad_norm": None}, "not finite"),
        ({"policy_loss": None}, "not finite"),
    ],
)
def test_pathologies_of_an_update(records, change, words) -> None:
    episode, _ = records
    (entry,) = findings(msgspec.structs.replace(episode, ppo=msgspec.structs.replace(episode.ppo, **change)))
    assert entry.category == "ppo_pathology"
    assert words in entry.detail
