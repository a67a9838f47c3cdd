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


def _one(result):
    return result.comparisons[0]


def _judged(found, plan=PLAN):
    return judge(plan, outcomes(found))


def test_a_look_is_taken_as_soon_as_its_runs_are_there():
    a, b = drawn(10, 1.5)
    taken = [len(_one(_judged(rows(a[:n], b[:n]))).progress.looks) for n in range(1, 11)]
    assert taken == [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert _judged(rows(a, b)).departures == ()


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (range(10), range(10), ""),
        (range(7), range(7), "The next look is after 10 seeds: run 7, 8, 9 of new, old."),
        ((0, 1, 3, 4, 5, 6, 7, 9), (0, 1, 3, 4, 5, 6, 7, 9), "The next look is after 6 seeds: run 2 of new, old."),
        (range(10), range(7), "The next look is after 10 seeds: run 7, 8, 9 of old."),
        (range(5), range(4), "The next look is after 6 seeds: run 5 of new; 4, 5 of old."),
    ],
)
def test_the_next_step_asks_for_no_run_that_is_there(new, old, said):
    there = {"new": new, "old": old}
    assert _judged([row for row in rows(*drawn(10, 1.5)) if row["seed"] in there[row["group"]]]).next_step == said


@settings(max_examples=40, deadline=None)
@given(st.floats(-6.0, 6.0), st.integers(0, 99), st.sets(st.integers(0, 19), min_size=1), st.booleans())
def test_leaving_runs_out_gains_nothing(effect, rng_seed, dropped, early_stop):
    """Whichever rows are left out, no look is taken that they are part of; those before it say what they said."""
    plan = _plan(early_stop=early_stop)
    found = rows(*drawn(10, effect, rng_seed=rng_seed))
    kept = [row for place, row in enumerate(found) if place not in dropped]
    if not kept:
        return
    whole = _one(_judged(found, plan)).progress
    part = _one(_judged(kept, plan)).progress
    assert part.looks == tuple(look for look in whole.looks if look.replicates <= min(dropped) // 2)


def test_what_lies_behind_a_gap_is_told_and_does_not_count():
    found = [row for row in rows(*drawn(10, 5.0)) if (row["group"], row["seed"]) != ("old", 3)]
    result = _judged(found)
    assert result.departures == (
        "Out of order: old has no run of seed 3 but has later ones. Runs after a gap do not count; enter a failed run "
        "as a row with an empty outcome.",
    )
    assert len(_one(result).pairs) == 3
    assert str(_one(result).verdict) == "NO INFERENCE"


def test_rows_that_the_plan_does_not_know_are_left_out_and_told():
    a, b = drawn(12, 0.0)
    known = rows(a[:10], b[:10])
    result = _judged([*rows(a, b), {"group": "third", "seed": 0, "outcome": 99.0}])
    assert len(result.departures) == 2
    assert "group third (1 row)" in result.departures[0]
    assert "seed 10, 11 (4 rows)" in result.departures[1]
    assert _one(result).pairs == _one(_judged(known)).pairs
    assert result.observations == _judged(known).observations  # they are described nowhere


def test_a_group_goes_on_while_another_comparison_needs_it():
    plan = _plan(("new", "old", "base"), control="base")
    a, b = drawn(10, 0.2)
    base = [
        {"group": "base", "seed": seed, "outcome": value - (30.0 if seed < 6 else 0.0)} for seed, value in enumerate(b)
    ]
    both = rows(a[:6], [x - 30.0 for x in b[:6]])
    first = _judged([*both, *base[:6]], plan)
    assert [one.progress.decision for one in first.comparisons] == ["crossed", "open"]
    assert first.next_step.endswith("of old, base.")
    later = [{"group": "old", "seed": seed, "outcome": b[seed]} for seed in range(6, 10)]
    last = _judged([*both, *later, *base], plan)
    assert last.departures == ()
    assert all(one.progress.finished for one in last.comparisons)


def test_runs_after_the_deciding_look_take_nothing_back():
    """They are not used, whatever they share: a decision is never taken back."""
    a, b = drawn(10, 9.0)
    until = _one(_judged(rows(a[:6], b[:6])))
    assert str(until.verdict) == "BETTER"
    found = [row | {"cluster": "x" if int(str(row["seed"])) >= 7 else ""} for row in rows(a[:9], b[:9])]
    result = _judged(found)
    assert str(_one(result).verdict) == "BETTER"
    assert _one(result).sentence == until.sentence
    assert [departure[:8] for departure in result.departures] == ["Not used", "Not used"]


def test_who_gives_the_seed_of_the_bootstraps_need_not_have_the_plans_digest():
    found = rows(*drawn(10, 1.5))
    other = _plan(alpha=0.04)
    told = [
        _one(judge(plan, outcomes(found), rng_seed=seed)).descriptive
        for plan, seed in ((PLAN, None), (other, None), (PLAN, 7), (other, 7))
    ]
    assert told[0] != told[1]
    assert told[2] == told[3]
