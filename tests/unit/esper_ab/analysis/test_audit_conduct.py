"""Findings on how an experiment was conducted: each is reached by a journal that has its cause."""

from __future__ import annotations

import pytest
from support.audited import episodes, found, only, replace, with_entry
from support.journals import Synthetic, failed_run, planted_effect

from esper_ab.analysis.conduct import conduct
from esper_ab.journal.fold import fold


@pytest.mark.parametrize(
    ("category", "words"),
    [
        ("worker_death", "simplified: 1 worker death."),
        ("hung_worker", "simplified: 1 hung worker."),
        ("restart", "simplified: 1 restart."),
        ("bad_message", "simplified: 1 unreadable message."),
        ("cold_start", "simplified: 1 cold start."),
        ("dropped_pair", "simplified: 1 of 6 runs lost."),
    ],
)
def test_faults_are_counted_by_group(category, words):
    assert only(with_entry(category)) == (("faults", "notes", ("simplified",)), words)


def test_faults_outside_of_any_run_and_signals_are_noted():
    deaths = [with_entry("worker_death", "")[-1]] * 2
    events = [*planted_effect(), *deaths, with_entry("interrupted", "")[-1]]
    assert found(events) == {
        ("faults", "notes", ()): "Outside of any run: 2 worker deaths.",
        ("interrupted", "notes", ()): "The experiment was stopped by a signal once.",
    }
    assert only(with_entry("unequal_devices", detail="one is hot."))[1] == "Devices were not equal: one is hot."


def test_a_failed_experiment_says_who_died():
    assert only(failed_run())[1] == "simplified: 1 worker death."


def test_inexact_resumes_cap_and_name_the_runs():
    events = [*with_entry("inexact_resume"), *with_entry("inexact_resume", "simplified/4")[-1:]]
    (key, sentence) = only(events)
    assert key == ("inexact resume", "caps", ("simplified",))
    assert sentence.endswith("simplified/2, simplified/4.")


def slower(events, factor, which=lambda record: True):
    def change(record):
        return replace(record, timing=replace(record.timing, total_s=record.timing.total_s * factor))

    return episodes(events, change, which=which)


def test_unequal_speed_is_noted_with_its_numbers():
    assert found(slower(planted_effect(), 1.2)) == {}
    (key, sentence) = only(slower(planted_effect(), 2.0))
    assert key == ("throughput", "notes", ())
    assert "shaped 66.7 (72 s), simplified 33.3 (144 s); fastest over slowest 2.00" in sentence


def test_a_cold_first_episode_is_noted():
    (key, sentence) = only(slower(planted_effect(), 2.0, which=lambda record: record.episode == 0))
    assert key == ("cold start", "notes", ("simplified",))
    assert "the first episode took 3 s after a warm-up of 0.4 s, 2.00 times" in sentence


def test_the_first_episode_is_not_among_the_others_it_is_compared_with():
    events = slower(Synthetic(episodes=2).events(), 2.0, which=lambda record: record.episode == 0)
    (_, simplified) = conduct(fold(events))
    assert (simplified.episode_s, simplified.first_episode_s, simplified.first_over_rest) == (1.5, 3.0, 2.0)


def test_conduct_in_numbers():
    shaped, simplified = conduct(fold([*failed_run(), with_entry("dropped_pair")[-1]]))
    assert (shaped.runs, shaped.finished, shaped.lost, shaped.faults) == (6, 3, 0, {})
    assert (simplified.lost, simplified.faults) == (1, {"worker_death": 1})
    assert (shaped.episodes, shaped.env_steps, shaped.evaluation_episodes) == (26, 26 * 4 * 25, 3 * 12)
    assert shaped.wall_s == pytest.approx(26 * 1.5)
    assert (shaped.episode_s, shaped.warm_up_s, shaped.first_over_rest) == (1.5, 0.4, 1.0)
    (nothing, _) = conduct(fold(planted_effect()[:1]))
    assert (nothing.episodes, nothing.episode_s, nothing.decisions_per_s) == (0, None, None)
