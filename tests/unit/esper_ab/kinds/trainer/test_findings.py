"""The findings of a trainer's rehearsal that stand beside a verdict."""

import msgspec
import pytest
from support.journals.ready_journals import planted_effect
from support.plans.requests import rehearsed

from esper_ab.journal.events import EpisodeRecorded, RunEvaluated, TrainerMended
from esper_ab.journal.fold import fold
from esper_ab.kinds.trainer.findings import KIND
from esper_ab.verdict.finding import MIXED_CODE, SEED


@pytest.mark.parametrize(("repeats", "count"), [(True, 0), (False, 1)])
def test_a_seed_whose_outcome_did_not_repeat_is_a_finding(repeats, count):
    history = fold(planted_effect())
    facts = rehearsed(outcome_repeats=repeats).trainer
    history.started = msgspec.structs.replace(
        history.started, plan=msgspec.structs.replace(history.plan, trainer=facts)
    )
    sentences = [finding.sentence for finding in KIND.findings(history, {}) if finding.kind == SEED]
    assert len(sentences) == count
    assert all("the pairs may share nothing" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("points", "words"), [(1, "one training per run"), (4, "one training per run, which reports 4 points")]
)
def test_the_budget_of_a_run_is_a_training_with_its_points(points, words):
    experiment = fold(planted_effect()).plan.experiment
    assert KIND.budget(msgspec.structs.replace(experiment, trainer="train.py", episodes=points)) == words


def with_digests(events, digest_of):
    """Return the events with records whose digests are those of their runs."""
    for event in events:
        if isinstance(event, EpisodeRecorded | RunEvaluated):
            digest = f"{digest_of(event.record.run):0>64}"
            event = msgspec.structs.replace(event, record=msgspec.structs.replace(event.record, digest=digest))
        yield event


@pytest.mark.parametrize(
    ("digest_of", "is_named"),
    [
        (lambda run: run.group_id.encode().hex()[:8], True),
        (lambda run: run.group_id.encode().hex()[:8] + str(run.replicate == 3), False),
        (lambda _: "1", False),  # all runs of all groups succeeded, as they often do
    ],
)
def test_groups_whose_runs_never_differ_are_a_finding_if_the_groups_do(digest_of, is_named):
    history = fold(with_digests(planted_effect(), digest_of))
    history.started = msgspec.structs.replace(
        history.started, plan=msgspec.structs.replace(history.plan, trainer=rehearsed().trainer)
    )
    sentences = [finding.sentence for finding in KIND.findings(history, {}) if finding.kind == SEED]
    assert [sentence.startswith("All runs of a group gave the same numbers") for sentence in sentences] == (
        [True] if is_named else []
    )


def sentences_on_mixed_code(earlier_runs):
    history = fold(planted_effect())
    history.mended = TrainerMended(sha256="0" * 64, before=earlier_runs)
    return {f.groups: f.sentence for f in KIND.findings(history, {}) if f.kind == MIXED_CODE}


def test_results_from_files_before_a_change_are_a_finding_on_their_group():
    history = fold(planted_effect())
    first, second = history.groups[:2]
    findings = sentences_on_mixed_code((f"{first}/0", f"{first}/1"))
    assert set(findings) == {(first,)}
    assert findings[first,].startswith(f"{first}/0 and {first}/1 were trained, at least in part, with the trainer's")
    assert set(sentences_on_mixed_code((f"{first}/0", f"{second}/0"))) == {(first,), (second,)}


def test_a_change_before_the_first_result_is_not_a_finding_on_results():
    assert sentences_on_mixed_code(()) == {}
