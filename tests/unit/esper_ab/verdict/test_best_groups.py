import pytest
from support.outcomes.csv_outcomes import outcomes
from support.outcomes.item_tables import item_columns
from support.outcomes.many_groups import MEANS, table

import esper_ab
from esper_ab.readers.scales import scales_of
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.scale import MEAN


def best_of(rows, rule=None, **options):
    tasks = options.pop("tasks", ("",))
    return explore(outcomes(rows), scales_of(tasks, 2.0, **options), rule or Rule()).best


def lose(rows, group, seed=0):
    return [row | {"outcome": ""} if (row["group"], row["seed"]) == (group, seed) else row for row in rows]


def test_groups_that_may_be_best_are_listed_by_mean():
    best_set = best_of(table())
    assert set(best_set.among) == {"a", "b"}
    assert best_set.headline.startswith("With 95 % confidence the best of these 4 groups is among ")
    assert f"{best_set.groups[0].group}, with the best mean, is at most " in best_set.headline
    assert [group_standing.group for group_standing in best_set.groups][2:] == ["c", "d"]
    assert all(group_standing.behind > 0.0 for group_standing in best_set.groups)


def test_a_single_best_group_has_distance_zero():
    best_set = best_of(table(MEANS | {"a": 9.0}))
    assert best_set.headline == "With 95 % confidence the best of these 4 groups is a."
    assert best_set.groups[0].behind == 0.0


def test_equal_groups_may_all_be_best():
    best_set = best_of(table(dict.fromkeys("abcd", 0.0)))
    assert best_set.headline.startswith("With 95 % confidence none of these 4 groups can be ruled out as the best.")


def test_the_best_groups_have_low_outcomes_if_lower_is_better():
    assert set(best_of(table(sign=-1.0), better="lower").among) == {"a", "b"}


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (table({"a": 3.0, "b": 2.9, "c": 0.0}), Rule()),
        (table(seeds=5), Rule()),
        (table(), Rule(control="a")),
    ],
    ids=["three groups", "five seeds", "a control"],
)
def test_there_is_no_set_of_best_groups_for_few_groups_or_seeds(rows, rule):
    assert best_of(rows, rule) is None


def test_a_group_with_a_lost_run_rules_out_no_other_group():
    best_set = best_of(lose(table(MEANS | {"b": 0.0}), "a"))
    assert set(best_set.among) == {"a", "b", "c"}, "c rules d out"
    assert "Runs of a were lost." in best_set.caveats[0]
    assert best_set.groups[0].lost == 1
    assert best_set.groups[0].behind is None


def test_a_lost_run_saves_a_bad_group_only_if_the_best_outcome_would():
    best_set = best_of(lose(table(seeds=20), "d"))
    assert "d" not in best_set.among
    assert "d" in best_of(lose(table(seeds=6), "d")).among


def test_a_lost_run_counts_as_the_declared_worst_outcome():
    rows = lose(table(MEANS | {"a": 9.0}, seeds=20), "a")
    assert best_of(rows, worst=50.0).among == ("a",)
    assert best_of(rows, worst=-500.0).among != ("a",)


def test_the_best_groups_over_several_tasks_are_those_of_the_mean():
    rows = [*table(task="one"), *table(MEANS | {"b": -3.0}, task="two")]
    best_set = best_of(rows, tasks=("one", "two"))
    assert best_set.task == MEAN
    assert best_set.among == ("a",)
    assert "by the mean over tasks" in best_set.headline


def test_the_best_of_unpaired_groups_can_be_selected():
    rows = [{**row, "run": f"{row['group']}{row['seed']}"} for row in table()]
    for row in rows:
        del row["seed"]
    best_set = best_of(rows)
    assert {"a", "b"} <= set(best_set.among)
    assert "d" not in best_set.among


def test_a_group_with_few_runs_is_never_ruled_out():
    rows = [row for row in table() if row["group"] != "d" or row["seed"] < 4]
    best_set = explore(outcomes(rows), scales_of(("",), 2.0), Rule(), paired=True).best
    assert "d" in best_set.among
    assert any("fewer than 6 runs" in caveat for caveat in best_set.caveats)


GROUPS = ("a", "b", "c", "d")


def best_of_items(columns, **options):
    return esper_ab.compare_outcomes(columns, margin=0.05, **options).best


def test_the_best_checkpoint_is_selected_for_the_given_items():
    best = best_of_items(item_columns(runs=1, items=150, groups=GROUPS, shift=0.3, run_column=""))
    assert best.headline == (
        "On these 150 questions, with 95 % confidence the best of these 4 checkpoints is a. This says nothing about "
        "training again."
    )
    assert {standing.runs for standing in best.groups} == {150}


def test_the_best_group_of_runs_is_selected_for_new_runs_and_items():
    best = best_of_items(item_columns(runs=6, items=150, groups=GROUPS, shift=0.3))
    assert best.headline == (
        "For new training runs and new questions, with 95 % confidence the best of these 4 groups is a."
    )
    assert {standing.runs for standing in best.groups} == {6}


def test_random_items_widen_the_limits_of_the_best_group():
    columns = item_columns(runs=6, items=40, groups=GROUPS, shift=0.3)
    limits = {
        closed: [standing.behind for standing in best_of_items(columns, closed_items=closed).groups[1:]]
        for closed in (False, True)
    }
    assert max(limits[True]) < max(limits[False])


@pytest.mark.parametrize("columns", [{"runs": 1, "items": 19, "run_column": ""}, {"runs": 6, "items": 9}])
def test_too_few_items_have_no_set_of_best_groups(columns):
    assert best_of_items(item_columns(groups=GROUPS, shift=0.3, **columns)) is None


def test_checkpoints_are_ranked_by_the_mean_of_their_tasks():
    columns = item_columns(runs=1, items=150, groups=GROUPS, shift=0.3, run_column="")
    tasks = {name: cells * 2 for name, cells in columns.items()} | {"task": ["x"] * 600 + ["y"] * 600}
    best = best_of_items(tasks)
    assert best.task == MEAN
    assert best.headline.startswith(
        "On these 300 questions, with 95 % confidence the best of these 4 checkpoints by the mean over tasks is a."
    )


def test_a_group_with_lost_scores_rules_out_no_other_group():
    columns = item_columns(runs=6, items=150, groups=GROUPS, shift=0.3)
    columns["outcome"][0] = None
    best = best_of_items(columns, worst=0)
    assert set(best.among) == {*GROUPS}
