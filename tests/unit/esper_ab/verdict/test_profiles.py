import pytest
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.answer import with_profiles
from esper_ab.verdict.judge import judge
from esper_ab.verdict.profiles import profiles_of


def test_a_profile_is_the_share_of_runs_above_and_tasks_weigh_alike():
    found = [*rows([0.0, 1.0], [1.0, 1.0], task="few"), *rows([10.0] * 8, [20.0] * 8, task="many")]
    new, old = profiles_of(outcomes(found), ("new", "old"), {"few": (0.0, 2.0), "many": (0.0, 20.0)})
    shares = dict(zip(new.thresholds, new.above, strict=True))
    assert shares[0.0] == pytest.approx((1 / 2 + 1.0) / 2.0)
    assert shares[0.5] == 0.0  # above, not at
    assert (old.optimality_gap.value, new.runs) == (pytest.approx(0.25), 2)
    assert all(low <= share <= high for low, share, high in zip(new.above_low, new.above, new.above_high, strict=True))
    assert list(new.above) == sorted(new.above, reverse=True)


def test_lower_may_be_better_and_lost_runs_have_no_score():
    found = rows([10.0, "", 0.0], [20.0, 20.0, 20.0])
    new, old = profiles_of(outcomes(found), ("new", "old"), {"": (20.0, 0.0)})
    assert (new.interquartile_mean.value, old.optimality_gap.value, new.runs) == (0.75, 1.0, 2)


def test_no_number_depends_on_the_order_of_rows():
    found = [*rows(*drawn(12, 1.0), task="one"), *rows(*drawn(12, 2.0, rng_seed=2), task="two")]
    ranges = {"one": (0.0, 100.0), "two": (0.0, 100.0)}
    orders = [found, found[::-1], sorted(found, key=lambda row: str(row["outcome"]))]
    assert len({repr(profiles_of(outcomes(rows), ("new", "old"), ranges)) for rows in orders}) == 1


def test_while_a_task_has_no_score_there_is_no_profile():
    assert profiles_of(outcomes(rows([1.0], [2.0])), ("new", "old"), {"other": (0.0, 1.0)}) == ()


def test_profiles_are_of_the_groups_and_runs_of_the_plan_and_of_nothing_without_ranges():
    plan = make_external_plan(("new", "old"), tuple(map(str, range(8))), scales(), Rule(control="new"))
    found = rows(*drawn(8, 1.0))
    ranges = {"": (0.0, 100.0)}
    unknown = [*rows([90.0], [1.0], first_seed=8), {"group": "third", "seed": 0, "outcome": 90.0}]
    with_others, alone = (judge(plan, outcomes(these)) for these in ([*found, *unknown], found))
    profiles = with_profiles(alone, ranges).profiles
    assert [(one.group, one.runs) for one in profiles] == [("old", 8), ("new", 8)]
    assert with_profiles(with_others, ranges).profiles == profiles
    assert with_profiles(alone, {}).profiles == ()
