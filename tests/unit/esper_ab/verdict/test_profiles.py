import pytest
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.answer import with_profiles
from esper_ab.verdict.judge import judge
from esper_ab.verdict.profiles import profiles_of


def test_tasks_have_equal_weights_in_a_performance_profile():
    table = [*rows([0.0, 1.0], [1.0, 1.0], task="few"), *rows([10.0] * 8, [20.0] * 8, task="many")]
    new_profile, old_profile = profiles_of(outcomes(table), ("new", "old"), {"few": (0.0, 2.0), "many": (0.0, 20.0)})
    shares = dict(zip(new_profile.thresholds, new_profile.above, strict=True))
    assert shares[0.0] == pytest.approx((1 / 2 + 1.0) / 2.0)
    assert shares[0.5] == 0.0  # above, not at
    assert (old_profile.optimality_gap.value, new_profile.runs) == (pytest.approx(0.25), 2)
    assert all(
        low <= share <= high
        for low, share, high in zip(new_profile.above_low, new_profile.above, new_profile.above_high, strict=True)
    )
    assert list(new_profile.above) == sorted(new_profile.above, reverse=True)


def test_lost_runs_have_no_score_in_performance_profiles():
    table = rows([10.0, "", 0.0], [20.0, 20.0, 20.0])
    new_profile, old_profile = profiles_of(outcomes(table), ("new", "old"), {"": (20.0, 0.0)})
    assert (new_profile.interquartile_mean.value, old_profile.optimality_gap.value, new_profile.runs) == (0.75, 1.0, 2)


def test_performance_profiles_do_not_depend_on_the_order_of_rows():
    table = [*rows(*drawn(12, 1.0), task="one"), *rows(*drawn(12, 2.0, rng_seed=2), task="two")]
    ranges = {"one": (0.0, 100.0), "two": (0.0, 100.0)}
    orders = [table, table[::-1], sorted(table, key=lambda row: str(row["outcome"]))]
    assert len({repr(profiles_of(outcomes(rows), ("new", "old"), ranges)) for rows in orders}) == 1


def test_there_are_no_profiles_if_a_task_has_no_scores():
    assert profiles_of(outcomes(rows([1.0], [2.0])), ("new", "old"), {"other": (0.0, 1.0)}) == ()


def test_profiles_cover_all_groups_and_runs_of_the_plan():
    plan = make_external_plan(("new", "old"), tuple(map(str, range(8))), scales(), Rule(control="new"))
    planned_rows = rows(*drawn(8, 1.0))
    ranges = {"": (0.0, 100.0)}
    unplanned_rows = [*rows([90.0], [1.0], first_seed=8), {"group": "third", "seed": 0, "outcome": 90.0}]
    result_with_others, planned_result = (
        judge(plan, outcomes(table)) for table in ([*planned_rows, *unplanned_rows], planned_rows)
    )
    profiles = with_profiles(planned_result, ranges).profiles
    assert [(profile.group, profile.runs) for profile in profiles] == [("old", 8), ("new", 8)]
    assert with_profiles(result_with_others, ranges).profiles == profiles
    assert with_profiles(planned_result, {}).profiles == ()
