import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales

from esper_ab.readers.external_plan import make_external_plan
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.judge import judge

SEEDS = tuple(map(str, range(10)))


def _plan(groups=("new", "old"), tasks=("",), seeds=SEEDS, **rule):
    return make_external_plan(groups, seeds, scales(tasks=tasks), Rule(**{"looks": (6, 10)} | rule))


PLAN = _plan()


def _first_comparison(result):
    return result.comparisons[0]


def _judge_rows(table, plan=PLAN):
    return judge(plan, outcomes(table))


def test_a_look_is_taken_as_soon_as_all_its_runs_exist():
    a, b = drawn(10, 1.5)
    look_counts = [len(_first_comparison(_judge_rows(rows(a[:n], b[:n]))).progress.looks) for n in range(1, 11)]
    assert look_counts == [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert _judge_rows(rows(a, b)).departures == ()


@pytest.mark.parametrize(
    ("new_seeds", "old_seeds", "next_step"),
    [
        (range(10), range(10), ""),
        (range(7), range(7), "The next look is after 10 seeds: run 7, 8, 9 of new, old."),
        ((0, 1, 3, 4, 5, 6, 7, 9), (0, 1, 3, 4, 5, 6, 7, 9), "The next look is after 6 seeds: run 2 of new, old."),
        (range(10), range(7), "The next look is after 10 seeds: run 7, 8, 9 of old."),
        (range(5), range(4), "The next look is after 6 seeds: run 5 of new; 4, 5 of old."),
    ],
)
def test_the_next_step_asks_only_for_missing_runs(new_seeds, old_seeds, next_step):
    present_seeds = {"new": new_seeds, "old": old_seeds}
    assert (
        _judge_rows([row for row in rows(*drawn(10, 1.5)) if row["seed"] in present_seeds[row["group"]]]).next_step
        == next_step
    )


@settings(max_examples=40, deadline=None)
@given(st.floats(-6.0, 6.0), st.integers(0, 99), st.sets(st.integers(0, 19), min_size=1), st.booleans())
def test_leaving_out_runs_does_not_change_earlier_looks(effect, rng_seed, dropped_rows, early_stop):
    """A look is not taken if some of its rows are left out; earlier looks stay as they are."""
    plan = _plan(early_stop=early_stop)
    table = rows(*drawn(10, effect, rng_seed=rng_seed))
    kept_rows = [row for index, row in enumerate(table) if index not in dropped_rows]
    if not kept_rows:
        return
    whole = _first_comparison(_judge_rows(table, plan)).progress
    part = _first_comparison(_judge_rows(kept_rows, plan)).progress
    assert part.looks == tuple(look for look in whole.looks if look.replicates <= min(dropped_rows) // 2)


def test_runs_after_a_missing_seed_are_not_used():
    table = [row for row in rows(*drawn(10, 5.0)) if (row["group"], row["seed"]) != ("old", 3)]
    result = _judge_rows(table)
    assert result.departures == (
        "Out of order: old has no run of seed 3 but has later ones. Runs after a gap do not count; enter a failed run "
        "as a row with an empty outcome.",
    )
    assert len(_first_comparison(result).pairs) == 3
    assert str(_first_comparison(result).verdict) == "NO INFERENCE"


def test_rows_outside_the_plan_are_reported_as_departures():
    a, b = drawn(12, 0.0)
    planned_rows = rows(a[:10], b[:10])
    result = _judge_rows([*rows(a, b), {"group": "third", "seed": 0, "outcome": 99.0}])
    assert len(result.departures) == 2
    assert "group third (1 row)" in result.departures[0]
    assert "seed 10, 11 (4 rows)" in result.departures[1]
    assert _first_comparison(result).pairs == _first_comparison(_judge_rows(planned_rows)).pairs
    assert list(result.observations.rows) == list(
        _judge_rows(planned_rows).observations.rows
    )  # no statistic describes them


def test_a_group_continues_until_all_its_comparisons_are_decided():
    plan = _plan(("new", "old", "base"), control="base")
    a, b = drawn(10, 0.2)
    base = [
        {"group": "base", "seed": seed, "outcome": value - (30.0 if seed < 6 else 0.0)} for seed, value in enumerate(b)
    ]
    new_and_old = rows(a[:6], [x - 30.0 for x in b[:6]])
    first_result = _judge_rows([*new_and_old, *base[:6]], plan)
    assert [comparison.progress.decision for comparison in first_result.comparisons] == ["crossed", "open"]
    assert first_result.next_step.endswith("of old, base.")
    later_rows = [{"group": "old", "seed": seed, "outcome": b[seed]} for seed in range(6, 10)]
    last_result = _judge_rows([*new_and_old, *later_rows, *base], plan)
    assert last_result.departures == ()
    assert all(comparison.progress.finished for comparison in last_result.comparisons)


def test_runs_after_the_deciding_look_do_not_change_the_decision():
    """They are not used, even if they share a cluster."""
    a, b = drawn(10, 9.0)
    decided_comparison = _first_comparison(_judge_rows(rows(a[:6], b[:6])))
    assert str(decided_comparison.verdict) == "BETTER"
    table = [row | {"cluster": "x" if int(str(row["seed"])) >= 7 else ""} for row in rows(a[:9], b[:9])]
    result = _judge_rows(table)
    assert str(_first_comparison(result).verdict) == "BETTER"
    assert _first_comparison(result).sentence == decided_comparison.sentence
    assert [departure[:8] for departure in result.departures] == ["Not used", "Not used"]


def test_a_given_bootstrap_seed_replaces_the_seed_from_the_plan():
    table = rows(*drawn(10, 1.5))
    other_plan = _plan(alpha=0.04)
    statistics = [
        _first_comparison(judge(plan, outcomes(table), rng_seed=seed)).descriptive
        for plan, seed in ((PLAN, None), (other_plan, None), (PLAN, 7), (other_plan, 7))
    ]
    assert statistics[0] != statistics[1]
    assert statistics[2] == statistics[3]
