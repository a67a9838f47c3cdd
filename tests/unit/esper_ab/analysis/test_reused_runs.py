"""Reused runs in the audit and in a comparison."""

import pytest
from msgspec.structs import replace
from support.journals.ready_journals import same_twice

from esper_ab.analysis.conduct import conduct
from esper_ab.analysis.observe import pairs_of, same_records
from esper_ab.analysis.reused_runs import reuse_findings, reused_runs
from esper_ab.journal.events import KeptGroup, ReferencesOpened, ReuseChecked, RunOffered, RunReused
from esper_ab.journal.fold import fold
from esper_ab.verdict.finding import OLDER_RUNS

DAY_S = 86_400


def history_with(reused, *, repeats=True, agrees=True, age_days=7.0, others=(), refused=()):
    """Return an A/A experiment in which the runs `reused` of a were kept."""
    first, *events = same_twice()
    full = fold([first, *events])
    group = KeptGroup(identity="0" * 64, conditions={}, repeats=repeats)
    opened = ReferencesOpened(
        folder="/kept", limit_bytes=1, opened_at="2026-11-30T00:00:00+00:00", groups={"a": group}, refused=refused
    )
    offers = [
        RunOffered(
            run_name=f"a/{seed}",
            source="last-week",
            trained_at=f"2026-11-2{seed % 2 + 2}T00:00:00+00:00",
            age_s=age_days * DAY_S,
            other_conditions=others,
            check=repeats and not seed,
            episodes=tuple(full.runs[f"a/{seed}"].episodes.values()),
            evaluation=full.runs[f"a/{seed}"].evaluation,
        )
        for seed in (0, *reused)
    ]
    reuses = [RunReused(run=full.runs[f"a/{seed}"].ref) for seed in reused]
    checks = [ReuseChecked(agrees=agrees, runs=("a/0",), detail="a/0 gave another outcome")] if repeats else []
    return fold([first, opened, *offers, *checks, *reuses, *events])


def test_reused_runs_that_repeat_are_a_note():
    history = history_with((1, 2, 3))
    (finding,) = reuse_findings(history)
    assert (finding.kind, finding.weight, finding.groups) == ("kept runs", "notes", ("a",))
    assert finding.sentence == (
        "3 of 6 runs of a were kept from 2026-11-22 to 2026-11-23 (last-week): a/0, trained again, gave the same "
        "numbers to the bit."
    )
    (reused,) = reused_runs(history)
    assert (reused.runs, reused.finished, reused.days_old) == (("a/1", "a/2", "a/3"), 6, 7.0)


def test_conditions_that_differ_are_named():
    (finding,) = reuse_findings(history_with((1,), others=("processor",)))
    assert finding.sentence.endswith("gave the same numbers to the bit, although processor differed.")


@pytest.mark.parametrize(("days", "words"), [(0.3, "less than a day"), (1.2, "up to 1 day"), (7.0, "up to 7 days")])
def test_the_age_of_runs_that_do_not_repeat_stands_beside_the_verdict(days, words):
    (finding,) = reuse_findings(history_with((1, 2), repeats=False, age_days=days))
    assert finding.kind == OLDER_RUNS
    assert f"(last-week), {words} old when this began: a seed does not repeat to the bit" in finding.sentence


@pytest.mark.parametrize("repeats", [True, False])
def test_runs_that_do_not_repeat_are_never_the_same(repeats):
    history = history_with((1, 2), repeats=repeats)
    (contrast,) = history.design.comparisons
    assert same_records(history, contrast, pairs_of(history, contrast)) == repeats


def test_a_failed_check_and_refusals_are_notes():
    sentences = [finding.sentence for finding in reuse_findings(history_with((), agrees=False, refused=("Not b.",)))]
    assert sentences == [
        "Kept runs that repeat were not reused, because a/0 gave another outcome; all were trained again.",
        "Not b.",
    ]


def test_an_experiment_without_a_folder_has_neither():
    assert list(reuse_findings(fold(same_twice()))) == []
    assert reused_runs(fold(same_twice())) == ()


def test_times_of_reused_runs_are_not_those_of_this_experiment():
    trained = {group.group: group for group in conduct(fold(same_twice()))}
    groups = {group.group: group for group in conduct(history_with((1, 2, 3)))}
    assert groups["a"].wall_s == pytest.approx(trained["a"].wall_s / 2)
    assert replace(groups["a"], wall_s=0.0) == replace(trained["a"], wall_s=0.0)
    assert groups["b"] == trained["b"]
