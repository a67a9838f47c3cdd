"""The level of an answer about items: inferred or declared, with its headline."""

import numpy as np
import pytest
from support.outcomes.item_tables import item_columns, replaced, without

import esper_ab
from esper_ab.contracts.errors import UsageError
from esper_ab.stats.item_difference import item_difference
from esper_ab.stats.item_scores import ItemScores


def judged(columns, margin=0.02, **options):
    return esper_ab.compare_outcomes(columns, margin=margin, **options)


def only(columns, margin=0.02, **options):
    (comparison,) = judged(columns, margin, **options).comparisons
    return comparison


def scores_of(columns, group, runs, items):
    """[runs, items] of one group, in the order of the rows."""
    values = [value for name, value in zip(columns["group"], columns["outcome"], strict=True) if name == group]
    return np.array(values).reshape(runs, items)


def scored(a, b, *, paired):
    return ItemScores(a=a, b=b, shared=True, paired=paired, clusters=np.arange(a.shape[1]))


def test_single_runs_are_compared_as_checkpoints():
    answer = judged(item_columns(runs=1, items=200, shift=0.2, run_column=""))
    (comparison,) = answer.comparisons
    assert answer.observations.reading == ("Read: 2 checkpoints x 200 questions in 2 groups; level: checkpoints.",)
    assert comparison.question.level == "checkpoints"
    assert comparison.headline.startswith("On these 200 questions, checkpoint new is better than checkpoint old by ")
    assert comparison.headline.endswith(". One training run each: this says nothing about training again.")
    assert "of 200 questions" in comparison.headline
    assert comparison.test == "exact McNemar test"


def test_several_runs_per_group_are_compared_as_trainings():
    answer = judged(item_columns(runs=6, items=200, shift=0.2))
    (comparison,) = answer.comparisons
    assert answer.observations.reading == ("Read: 12 runs x 200 questions in 2 groups; level: trainings.",)
    assert comparison.headline.startswith("For new training runs and new questions, new is better than old by ")
    assert comparison.headline.endswith("; 6 runs x 200 questions per group.")


def test_the_interval_of_trainings_covers_runs_and_items():
    columns = item_columns(runs=8, items=50, shift=0.1, run_sd=0.05, graded=True)
    comparison = only(columns)
    expected = item_difference(
        scored(scores_of(columns, "new", 8, 50), scores_of(columns, "old", 8, 50), paired=True), "trainings"
    )
    assert comparison.effect.mean == pytest.approx(expected.mean)
    assert (comparison.low, comparison.high) == pytest.approx(expected.interval(0.05))


def test_the_interval_of_unpaired_trainings_covers_runs_and_items():
    columns = replaced(item_columns(runs=7, items=40, graded=True), "seed", lambda row: f"{row['group']}{row['seed']}")
    comparison = only(columns)
    expected = item_difference(
        scored(scores_of(columns, "new", 7, 40), scores_of(columns, "old", 7, 40), paired=False), "trainings"
    )
    assert (comparison.low, comparison.high) == pytest.approx(expected.interval(0.05))


@pytest.mark.parametrize("runs", [3, 5])
def test_too_few_runs_get_an_interval_without_a_verdict(runs):
    comparison = only(item_columns(runs=runs, items=200, shift=0.3))
    assert str(comparison.verdict) == "NO INFERENCE"
    assert f"({runs} per group; 6 needed)" in comparison.headline
    assert "95 % interval" in comparison.headline
    assert any(text.startswith("These checkpoints do differ on questions like these") for text in comparison.warnings)


def test_two_runs_per_group_get_no_interval():
    assert only(item_columns(runs=2, items=200, shift=0.3)).low is None


def test_trainings_need_ten_independent_items():
    comparison = only(item_columns(runs=8, items=9, shift=0.4))
    assert str(comparison.verdict) == "NO INFERENCE"
    assert "Too few questions to decide for new training runs and new questions (9; 10 needed)" in comparison.headline


def test_checkpoints_need_twenty_independent_items():
    answer_of_few = only(item_columns(runs=1, items=19, shift=0.6, run_column=""))
    assert str(answer_of_few.verdict) == "NO INFERENCE"
    assert "Too few questions to decide on these 19 questions (19; 20 needed)" in answer_of_few.headline
    clustered = item_columns(runs=1, items=100, shift=0.6, run_column="")
    clustered["cluster"] = [item // 10 for item in clustered["question"]]
    comparison = only(clustered)
    assert "Too few independent questions to decide on these 100 questions (10; 20 needed)" in comparison.headline
    assert comparison.test == "t over clusters of items"


def test_the_level_of_an_answer_can_be_declared():
    columns = item_columns(runs=3, items=100, shift=0.3)
    comparison = only(columns, level="checkpoints")
    assert comparison.headline.startswith("On these 100 questions, the mean of 3 checkpoints of new is better than ")
    assert comparison.headline.endswith(". These training runs only: this says nothing about training again.")
    columns_of_one_run = item_columns(runs=1, items=100, shift=0.3)
    assert str(only(columns_of_one_run, level="trainings").verdict) == "NO INFERENCE"


def test_a_closed_set_of_items_is_judged_by_the_means_of_runs():
    columns = item_columns(runs=8, items=40, shift=0.1)
    comparison = only(columns, closed_items=True)
    means = {group: dict(enumerate(scores_of(columns, group, 8, 40).mean(axis=1).tolist())) for group in ("new", "old")}
    (comparison_of_means,) = esper_ab.compare_outcomes(means, margin=0.02).comparisons
    assert (comparison.low, comparison.high) == pytest.approx((comparison_of_means.low, comparison_of_means.high))
    assert "for new training runs on these 40 questions" in comparison.headline.lower()


def test_a_closed_set_of_items_is_refused_for_checkpoints():
    columns = item_columns(runs=1, items=40, run_column="")
    with pytest.raises(UsageError, match="closed_items is for an answer about training"):
        judged(columns, closed_items=True)


def test_a_declared_level_is_refused_without_items():
    runs = {"new": [1.0] * 6, "old": [2.0] * 6}
    with pytest.raises(UsageError, match="level=checkpoints needs items below the runs"):
        judged(runs, level="checkpoints")


def test_repeats_of_an_item_are_averaged():
    answer = judged(item_columns(runs=1, items=30, repeats=4, run_column=""))
    assert answer.observations.reading == (
        "Read: 2 checkpoints x 30 questions x 4 repeats in 2 groups; level: checkpoints.",
    )
    assert answer.comparisons[0].test == "paired t"


def test_items_missing_in_some_runs_are_left_out():
    columns = without(
        item_columns(runs=6, items=50), lambda row: row["question"] < 3 and row["seed"] == row["question"]
    )
    answer = judged(columns)
    assert answer.comparisons[0].question.items.items == 47
    assert "3 questions were not scored in all runs and are left out." in answer.notes


def test_a_run_with_few_items_is_refused():
    columns = without(item_columns(runs=6, items=50), lambda row: row["seed"] == 2 and row["question"] > 4)
    with pytest.raises(UsageError, match=r"only 5 questions would be left .* group new, run 2, has 5 questions"):
        judged(columns)


def test_groups_without_a_common_item_form_no_pairs():
    columns = item_columns(runs=1, items=60, shift=0.3, run_column="")
    columns = replaced(columns, "question", lambda row: f"{row['group']} {row['question']}")
    answer = judged(columns)
    assert "The groups share no question, so their questions form no pairs." in answer.notes
    assert answer.comparisons[0].samples is not None
    assert answer.comparisons[0].test == "Boschloo's exact test"


def test_a_missing_score_of_a_checkpoint_caps_the_verdict():
    columns = item_columns(runs=1, items=200, shift=0.3, run_column="")
    columns["outcome"][3] = None
    comparison = only(columns)
    assert str(comparison.verdict) == "INCONCLUSIVE"
    assert "1 question of new and no question of old was lost" in " ".join(comparison.capped_by)
    assert str(only(columns, worst=0.0).verdict) == "BETTER"


def test_a_lost_run_with_some_scores_is_still_lost():
    columns = item_columns(runs=8, items=40, shift=0.3)
    for place, (group, seed) in enumerate(zip(columns["group"], columns["seed"], strict=True)):
        if (group, seed) == ("new", 5):
            columns["outcome"][place] = None
    comparison = only(columns)
    assert comparison.lost.a == 1
    assert str(comparison.verdict) == "INCONCLUSIVE"
    assert comparison.question.items.items == 40


def test_items_of_several_tasks_are_judged_per_task_and_by_the_mean():
    columns = item_columns(runs=6, items=60, shift=0.3)
    columns["task"] = ["math" if item < 40 else "code" for item in columns["question"]]
    answer = judged(columns)
    assert [item.question.items.items for item in answer.comparisons] == [40, 20, 60]
    math, code, mean = answer.comparisons
    assert mean.estimate == pytest.approx((math.estimate + code.estimate) / 2.0 / 0.02)
    checkpoints = judged(columns, level="checkpoints").comparisons
    assert checkpoints[2].estimate == pytest.approx(mean.estimate)


def test_runs_in_one_cluster_are_merged():
    columns = item_columns(runs=8, items=40)
    columns["cluster"] = [f"start {seed // 2}" for seed in columns["seed"]]
    answer = judged(columns)
    assert len(answer.comparisons[0].pairs) == 4


def test_a_cluster_across_runs_and_items_is_refused():
    columns = item_columns(runs=8, items=40)
    columns["cluster"] = [(seed + item) % 2 for seed, item in zip(columns["seed"], columns["question"], strict=True)]
    with pytest.raises(UsageError, match="must be the same in all rows with the same question, or"):
        judged(columns)


def test_the_document_contains_the_level_of_an_answer():
    document = judged(item_columns(runs=6, items=40)).as_dict()
    assert document["level"] == "trainings"
    assert document["items"]["unit"] == "question"
    (comparison,) = document["comparisons"]
    assert comparison["items"]["runs_a"] == 6
    assert {"v_items", "v_runs", "v_residual"} <= comparison["effect"].keys()
    outcomes = {"new": [1.0, 2.0] * 4, "old": [2.0, 4.0] * 4}
    document_of_runs = esper_ab.compare_outcomes(outcomes, margin=2.0, rows="runs").as_dict()
    assert "level" not in document_of_runs
    assert "items" not in document_of_runs["comparisons"][0]


def test_the_advice_names_numbers_of_runs_and_items():
    comparison = only(item_columns(runs=8, items=100, run_sd=0.02))
    (advice,) = (text for text in comparison.warnings if text.startswith("An interval of half the width"))
    assert "runs per group on these questions" in advice


def test_looks_of_a_plan_are_counted_in_runs_if_there_are_items():
    plan = esper_ab.design_comparison(["new", "old"], 20, margin=0.02)
    columns = item_columns(runs=20, items=60, shift=0.25, run_sd=0.01)
    answer = esper_ab.judge_outcomes(plan, columns)
    (comparison,) = answer.comparisons
    assert [look.pairs for look in comparison.progress.looks] == [14]
    assert comparison.progress.decided_at == 14
    a, b = (scores_of(columns, group, 20, 60)[:14] for group in ("new", "old"))
    expected = item_difference(scored(a, b, paired=True), "trainings")
    assert comparison.effect.se == pytest.approx(expected.se)
    assert comparison.headline.endswith("; 14 runs x 60 questions per group.")


def test_a_plan_of_several_runs_cannot_be_decided_by_one_run():
    plan = esper_ab.design_comparison(["new", "old"], 6, margin=0.02)
    (comparison,) = esper_ab.judge_outcomes(plan, item_columns(runs=1, items=60, shift=0.3)).comparisons
    assert str(comparison.verdict) == "NO INFERENCE"


def test_a_plan_that_chooses_cells_refuses_items():
    plan = esper_ab.design_comparison(["new", "old"], 6, margin=0.02, cells=["x", "y"], choose=2)
    columns = item_columns(runs=8, items=20)
    columns["cell"] = ["x"] * len(columns["outcome"])
    with pytest.raises(UsageError, match="give each run one row"):
        esper_ab.judge_outcomes(plan, columns)


def test_rows_of_items_without_any_outcome_are_refused():
    columns = item_columns(runs=2, items=20)
    with pytest.raises(UsageError, match="no row has an outcome, so nothing can be compared"):
        judged(columns | {"outcome": [None] * len(columns["outcome"])})
