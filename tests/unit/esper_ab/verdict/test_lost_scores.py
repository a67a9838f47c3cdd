"""Scores of single items that runs lost, in answers about training: with a declared worst outcome, and without one."""

import numpy as np
import pytest
from support.outcomes.item_tables import item_columns

import esper_ab
from esper_ab.verdict.requirement import Requirement, holds

LEFT_OUT = "were lost, so their questions are left out"
COUNTING = "counting each as the worst outcome or as the best one seen, whichever speaks more against the decision,"


def only(columns, margin=0.02, **options):
    (comparison,) = esper_ab.compare_outcomes(columns, margin=margin, **options).comparisons
    return comparison


def with_lost(columns, group, count, runs=1):
    """The columns without the scores of the first `count` questions of the first `runs` runs of `group`."""
    rows = zip(columns["group"], columns["seed"], columns["question"], columns["outcome"], strict=True)
    outcomes = [
        None if name == group and run < runs and question < count else outcome for name, run, question, outcome in rows
    ]
    return columns | {"outcome": outcomes}


def without_last_run(columns):
    rows = zip(columns["group"], columns["seed"], columns["outcome"], strict=True)
    return columns | {"outcome": [None if (group, seed) == ("new", 9) else outcome for group, seed, outcome in rows]}


def clear_lead(**changes):
    return item_columns(runs=8, items=60, shift=0.4, **changes)


def narrow_lead():
    return item_columns(runs=8, items=60, shift=0.15)


def test_lost_scores_without_a_worst_outcome_prevent_a_verdict():
    comparison = only(with_lost(clear_lead(), "new", 1))
    assert str(comparison.verdict) == "INCONCLUSIVE"
    assert comparison.question.items.items == 59
    assert comparison.capped_by == (
        f"1 score of new and 0 of old {LEFT_OUT}; for a verdict, give a failed question its worst outcome (--worst), "
        "or remove it from all runs.",
    )
    assert "the lost scores could change the answer" in comparison.headline
    assert not any("do not show that training does" in warning for warning in comparison.warnings)


def test_a_claim_that_survives_the_worst_outcomes_is_made():
    comparison = only(with_lost(clear_lead(), "new", 1), worst=0)
    assert str(comparison.verdict) == "BETTER"
    assert f"1 score of new and 0 of old {LEFT_OUT}; {COUNTING} leaves it standing." in comparison.warnings


def test_a_claim_that_the_worst_outcomes_would_overturn_is_not_made():
    few, many = (only(with_lost(narrow_lead(), "new", count, runs=8), worst=0) for count in (5, 12))
    assert str(few.verdict) == "BETTER"
    assert str(many.verdict) == "INCONCLUSIVE"
    assert many.capped_by == (f"96 scores of new and 0 of old {LEFT_OUT}; {COUNTING} overturns it.",)
    assert "the lost scores could change the answer" in many.headline


def test_lost_scores_of_the_worse_group_count_as_the_best_observed_outcome():
    few, many = (only(with_lost(narrow_lead(), "old", count, runs=8), worst=0) for count in (5, 12))
    assert [str(few.verdict), str(many.verdict)] == ["BETTER", "INCONCLUSIVE"]


def test_questions_with_a_lost_score_are_left_out_of_the_estimate():
    columns = clear_lead()
    comparison = only(with_lost(columns, "new", 3), worst=0)
    kept = np.array(columns["outcome"]).reshape(2, 8, 60)[:, :, 3:].mean(axis=(1, 2))
    assert comparison.question.items.items == 57
    assert comparison.estimate == pytest.approx(kept[0] - kept[1])


def test_lost_scores_count_as_high_outcomes_if_lower_is_better():
    columns = item_columns(runs=8, items=60, shift=-0.15)
    few, many = (only(with_lost(columns, "new", count, runs=8), worst=1, better="lower") for count in (2, 16))
    assert [str(few.verdict), str(many.verdict)] == ["BETTER", "INCONCLUSIVE"]


def test_lost_scores_count_against_claims_about_a_closed_benchmark():
    few, many = (only(with_lost(narrow_lead(), "new", count, runs=8), worst=0, closed_items=True) for count in (5, 16))
    assert [str(few.verdict), str(many.verdict)] == ["BETTER", "INCONCLUSIVE"]


def test_an_equivalence_must_survive_the_worst_outcomes():
    equal = item_columns(runs=16, items=300, graded=True)
    equal["outcome"] = [value / 10.0 for value in equal["outcome"]]
    few, many = (only(with_lost(equal, "new", count), margin=0.05, worst=-1) for count in (1, 250))
    assert str(few.verdict) == "EQUIVALENT"
    assert str(many.verdict) == "INCONCLUSIVE"


def test_lost_scores_are_counted_even_without_a_claim():
    comparison = only(with_lost(item_columns(runs=8, items=60), "new", 2), worst=0)
    assert str(comparison.verdict) == "INCONCLUSIVE"
    assert f"2 scores of new and 0 of old {LEFT_OUT}." in comparison.warnings
    assert comparison.capped_by == ()


def test_a_requirement_not_worse_than_fails_if_lost_scores_could_change_it():
    columns = item_columns(runs=16, items=60, shift=0.03, seed=2)
    plan = esper_ab.design_comparison(["new", "old"], 16, margin=0.04, worst=0)
    gate = Requirement(left="new", relation="not-worse-than", right="old")
    for table, passes in ((columns, True), (with_lost(columns, "new", 2), False)):
        (comparison,) = esper_ab.judge_outcomes(plan, table).comparisons
        assert str(comparison.verdict) == "INCONCLUSIVE"
        assert holds(gate, comparison) is passes


def test_lost_runs_and_lost_scores_are_imputed_together():
    """Neither alone overturns the claim."""
    columns = item_columns(runs=10, items=60, shift=0.4)
    scores = with_lost(columns, "new", 5, runs=10)
    run, everything = (without_last_run(table) for table in (columns, scores))
    verdicts = [str(only(table, worst=0).verdict) for table in (scores, run, everything)]
    assert verdicts == ["BETTER", "BETTER", "INCONCLUSIVE"]


def test_lost_scores_of_other_tasks_do_not_affect_a_comparison():
    columns = clear_lead()
    tasks = {
        name: cells * 2 if name != "question" else cells + [f"other {cell}" for cell in cells]
        for name, cells in columns.items()
    }
    rows = len(columns["outcome"])
    tasks["task"] = ["one"] * rows + ["two"] * rows
    tasks["outcome"] = [None, *tasks["outcome"][1:]]
    found = esper_ab.compare_outcomes(tasks, margin=0.02)
    verdicts = {task: verdict for (_, _, task), verdict in found.verdicts.items()}
    assert verdicts == {"one": "INCONCLUSIVE", "two": "BETTER", "mean over tasks": "INCONCLUSIVE"}
