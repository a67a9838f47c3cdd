"""Findings about designs and amounts of work: each journal contains one cause; a clean experiment has none."""

import math

import msgspec
import pytest
from support.journals.audited_journals import (
    episodes,
    evaluations,
    finding_sentences,
    findings,
    only_finding,
    planned,
    played_again,
    replace,
    with_entry,
)
from support.journals.ready_journals import one_replicate, planted_effect, same_twice, three_groups
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.analyse import analyse
from esper_ab.journal.events import Incident, RunStarted
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.verdict_json import render_verdict
from esper_ab.verdict.verdict import Verdict

# --- no findings ---


@pytest.mark.parametrize("events", [planted_effect, same_twice, one_replicate, three_groups])
def test_a_clean_experiment_has_no_finding_at_its_end(events):
    events = events()
    assert finding_sentences(events) == {}
    for event_count in range(1, len(events), 29):
        # Positions are balanced at the end of a cycle only.
        assert {kind for kind, _, _ in finding_sentences(events[:event_count])} <= {"order"}


def test_the_most_serious_finding_comes_first():
    events = [*planned(with_entry("restart"), fix_order), with_entry("inexact_resume")[-1]]
    weights = [finding.weight for finding in findings(events)]
    assert weights == ["blocks", "caps", "notes"]


def test_a_finding_about_two_groups_affects_only_their_comparison():
    events = three_groups()
    damaged_events = episodes(events, lambda record: replace(record, envs=record.envs[:-1]), "wait")
    amounts = [finding for finding in findings(damaged_events) if finding.kind == "amounts"]
    assert {finding.groups for finding in amounts} == {("shaped", "wait"), ("simplified", "wait")}
    assert not any(finding.touches("shaped", "simplified") for finding in amounts)
    assert any(finding.touches("wait", "shaped") for finding in amounts)


# --- the design ---


def change_design(**change):
    return lambda plan: replace(plan, design=replace(plan.design, **change))


def make_dropped_pair(run):
    return Incident(category="dropped_pair", run_name=run, episode=None, detail="given up")


def fix_order(plan):
    """Return the plan with every block in the order and on the lanes of the first."""
    lanes = {spec.ref.group_id: spec.ref.device for spec in plan.blocks[0].runs}

    def fix_block(block):
        runs = sorted(block.runs, key=lambda spec: list(lanes).index(spec.ref.group_id))
        return replace(block, runs=tuple(replace(r, ref=replace(r.ref, device=lanes[r.ref.group_id])) for r in runs))

    return replace(plan, blocks=tuple(map(fix_block, plan.blocks)))


FREE = change_design(adjusted=False, positions_matter=False)


@pytest.mark.parametrize(
    ("change", "weight", "words"),
    [
        (lambda plan: plan, "blocks", "6 analysed seeds"),
        (
            lambda plan: replace(plan, experiment=replace(plan.experiment, order="fixed")),
            "blocks",
            "An experiment with `--order balanced` would separate them; more seeds would not.",
        ),
        (FREE, "notes", "nothing is confounded, because no record can depend on them"),
    ],
)
def test_groups_on_fixed_lanes_are_reported_as_aliased(change, weight, words):
    (key, sentence) = only_finding(planned(planted_effect(), lambda plan: fix_order(change(plan))))
    assert key == ("aliased", weight, ("shaped", "simplified"))
    assert words in sentence


@pytest.mark.parametrize("replicates", [2, 5])
def test_too_few_pairs_for_a_test_are_not_reported_as_aliased(replicates: int):
    events = Synthetic(replicates=replicates, episodes=1, n_envs=1).events()
    assert not any(kind == "aliased" for kind, _, _ in finding_sentences(planned(events, fix_order)))


def test_randomly_drawn_positions_of_seven_groups_do_not_block_the_verdict():
    """The positions of all 21 pairs are aliased, which blocks only if the square was not drawn."""
    events = Synthetic(groups={name: Shape() for name in "abcdefg"}, replicates=6, episodes=1, n_envs=1).events()
    assert not any(weight == "blocks" for _, weight, _ in finding_sentences(events))
    events_of_fixed_order = planned(events, change_design(positions_drawn=False))
    assert sum(kind == "aliased" for kind, _, _ in finding_sentences(events_of_fixed_order)) == 21


def test_unbalanced_positions_are_noted_if_the_test_is_unadjusted():
    unadjusted_events, events_of_free_order = (
        planned(planted_effect(), change) for change in (change_design(adjusted=False), FREE)
    )
    assert finding_sentences(unadjusted_events) == {}
    sentence = finding_sentences([*unadjusted_events, make_dropped_pair("shaped/0")])[
        "order", "notes", ("shaped", "simplified")
    ]
    assert "-1 at 1, +1 at 2" in sentence
    assert not any(
        kind == "order" for kind, _, _ in finding_sentences([*events_of_free_order, make_dropped_pair("shaped/0")])
    )


# --- amounts ---


def shorter(is_failed):
    def change(record):
        first_env = replace(record.envs[0], steps=20, failed=is_failed)
        return replace(record, envs=(first_env, *record.envs[1:]))

    return episodes(planted_effect(), change, select=lambda record: record.run.replicate == 1)


def fewer(record):
    return replace(record, episodes=record.episodes[record.run.name == "shaped/3" :])


@pytest.mark.parametrize(
    ("events", "expected_key", "words"),
    [
        (
            shorter(is_failed=False),
            ("amounts", "blocks", ("shaped", "simplified")),
            "4800 against 4760 environment steps",
        ),
        (shorter(is_failed=True), ("failed environments", "notes", ("simplified",)), "8 environments failed"),
        (
            evaluations(planted_effect(), fewer),
            ("amounts", "blocks", ("shaped", "simplified")),
            "47 against 48 evaluation episodes",
        ),
    ],
)
def test_unequal_work_of_the_groups_is_a_finding(events, expected_key, words):
    (key, sentence) = only_finding(events)
    assert key == expected_key
    assert words in sentence


def give_up_odd_replicates(replicates, *, end):
    """Return a journal that ends before replicate `end`, with its odd replicates given up."""
    events = Synthetic(replicates=replicates, episodes=1, n_envs=1).events()
    incidents = [make_dropped_pair(f"shaped/{r}") for r in range(1, end, 2)]
    later_starts = (
        index for index, event in enumerate(events) if isinstance(event, RunStarted) and event.run.replicate == end
    )
    return [*events[: next(later_starts, -1)], *incidents]


@pytest.mark.parametrize(
    ("replicates", "weight", "words"),
    [
        (20, "notes", "No look decides before further seeds separate them."),
        (14, "blocks", "16 seeds would separate them: `esper-ab resume --seeds` adds the missing ones."),
    ],
)
def test_lost_seeds_that_alias_positions_block_only_the_final_verdict(replicates, weight, words):
    sentence = finding_sentences(give_up_odd_replicates(replicates, end=14))[
        "aliased", weight, ("shaped", "simplified")
    ]
    assert "In the 7 analysed seeds" in sentence
    assert words in sentence


def change_outcomes(events, change):
    """Return the journal with every evaluation accuracy replaced by `change(run, accuracy)`."""
    return played_again(
        events,
        lambda run, episode: replace(
            episode, result=replace(episode.result, outcome=change(run, episode.result.outcome))
        ),
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_non_finite_outcome_is_a_finding(value):
    events = change_outcomes(planted_effect(), lambda run, accuracy: value if run.name == "shaped/3" else accuracy)
    sentence = finding_sentences(events)["outcome", "blocks", ("shaped",)]
    assert sentence == "The outcome of shaped/3 is not a finite number: the record is damaged or foreign."
    history = fold(events)
    (result,) = analyse(history).comparisons
    assert (result.verdict, len(result.pairs)) == (Verdict.BLOCKED, 5)
    verdict = msgspec.json.decode(render_verdict(content(history)))
    assert [run["run"]["name"] for run in verdict["runs"] if run["outcome"] is None] == ["shaped/3"]


def test_a_group_that_improves_with_every_seed_is_not_called_better():
    def add_trend(run, accuracy):
        return accuracy + 9.0 * run.replicate * (run.group_id == "shaped")

    (finding,) = (item for item in findings(change_outcomes(planted_effect(), add_trend)) if item.kind == "drift")
    assert (finding.weight, finding.groups) == ("caps", ("shaped", "simplified"))
    assert "drift: a trend of +8.61 points per pair" in finding.sentence
    (result,) = analyse(fold(change_outcomes(planted_effect(), add_trend))).comparisons
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.headline.endswith("but the differences drift from pair to pair.")
