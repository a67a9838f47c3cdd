"""What is asked about rows of unknown origin, and what answers it."""

import pandas as pd
import pytest
from support.outcomes.csv_outcomes import drawn

import esper_ab
from esper_ab.contracts.errors import UsageError

A, B = drawn(10, 3.0)


def _asked(data, **options):
    with pytest.raises(UsageError) as asked:
        esper_ab.compare_outcomes(data, margin=2.0, **options)
    return str(asked.value)


def _caveats(data, **options):
    found = esper_ab.compare_outcomes(data, margin=2.0, **options)
    return " ".join(caveat for one in found.comparisons for caveat in one.caveats)


PASTED = {"new": A[:5] * 2, "old": B[:5] * 2}
COPIED = {"a": A, "a_copy": A, "b": B}
ONE_RUN = {
    "new": [57.25 + 1e-6 * (place * 7 % 10) for place in range(10)],
    "old": [55.00 + 1e-6 * (place * 3 % 10) for place in range(10)],
}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (PASTED, "10 of 10 outcomes of new equal another one, such as "),
        (COPIED, "a equals a_copy to the last digit in every pair, such as "),
        (ONE_RUN, "vary by less than a ten-thousandth of their difference"),
    ],
)
def test_copies_are_asked_about_and_stay_named(data, said):
    told = _asked(data)
    assert said in told
    assert told.endswith("; remove the copies, unless each row is a training run of its own: rows=runs")
    assert said in _caveats(data, rows="runs")


def test_copies_that_are_few_are_named_and_not_asked_about():
    assert "2 of 10 outcomes of new equal another one" in _caveats({"new": [*A[:9], A[3]], "old": B})


def test_a_plan_names_copies_and_asks_nothing():
    plan = esper_ab.design_comparison(["new", "old"], 10, margin=2.0)
    (one,) = esper_ab.judge_outcomes(plan, PASTED).comparisons
    assert "10 of 10 outcomes of new equal another one" in " ".join(one.caveats)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (sorted(A), sorted(B), "new rises and old rises from seed to seed in all 10 pairs"),
        (sorted(A)[::-1], sorted(B)[::-1], "new falls and old falls"),
        (sorted(A), sorted(B)[::-1], "new rises and old falls"),
        ([*sorted(A), max(A)], [min(B), *sorted(B)], "in all 11 pairs"),
    ],
)
def test_sorted_columns_are_asked_about(a, b, said):
    told = _asked({"new": a, "old": b})
    assert said in told
    assert told.endswith("whose pairs mean nothing: paired=False or paired=True")
    assert said in _caveats({"new": a, "old": b}, paired=True)
    assert said not in _caveats({"new": a, "old": b}, paired=False)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (sorted(A), B),
        (A, sorted(B)),
        (sorted(A)[:7], sorted(B)[:7]),
        ([1.0] * 4 + [2.0] * 6, sorted(B)),
        ([*sorted(A)[:6], *[max(A)] * 4], sorted(B)[:6] + [max(B)] * 4),
    ],
)
def test_a_sorted_group_and_ties_are_no_sorted_columns(a, b):
    ties = [value for value in a if a.count(value) > 1]
    assert len(set(a)) < 8 or len(set(b)) < 8 or a != sorted(a) or b != sorted(b)
    assert "sorted" not in _caveats({"new": a, "old": b}, rows="runs" if ties else None)


def test_seeds_are_sorted_by_number_also_inside_names():
    names = [f"s{place}" for place in range(10)]
    data = {"new": dict(zip(names, sorted(A), strict=True)), "old": dict(zip(names, sorted(B), strict=True))}
    assert "new rises and old rises from seed to seed" in _caveats(data)


def test_seeds_may_have_digits_that_are_no_decimal_numbers():
    names = ["①", "②", "²", "x³", "٣", "½", "7", "a7", "七", "⑩"]
    data = {"new": dict(zip(names, A, strict=True)), "old": dict(zip(names, B, strict=True))}
    assert "sorted" not in _caveats(data)


def test_sorted_outcomes_that_the_user_gave_by_seed_are_named_and_not_asked_about():
    by_seed = {group: dict(enumerate(sorted(values))) for group, values in (("new", A), ("old", B))}
    assert "new rises and old rises from seed to seed" in _caveats(by_seed)
    series = {group: pd.Series(sorted(values)) for group, values in (("new", A), ("old", B))}
    assert "new rises and old rises from seed to seed" in _asked(series)


LOWER = ("loss", "val_loss", "Error", "regret", "Perplexity", "wall time", "seconds", "steps_to_threshold", "trainCost")


@pytest.mark.parametrize("name", LOWER)
def test_the_direction_of_what_should_be_low_is_asked_about(name):
    rows = {"group": ["new"] * 10 + ["old"] * 10, "seed": [*range(10)] * 2, name: [*A, *B]}
    asked = f"is called {name}, so it is unclear whether lower or higher is better: better=lower or better=higher"
    assert _asked(rows, columns={"outcome": name}).endswith(asked)
    for better, verdict in (("lower", "WORSE"), ("higher", "BETTER")):
        found = esper_ab.compare_outcomes(rows, margin=1.0, columns={"outcome": name}, better=better)
        assert set(found.verdicts.values()) == {verdict}
    assert _asked({"new": A, "old": B}, label=name).endswith(asked)
    with pytest.raises(UsageError, match="unclear whether lower or higher is better"):
        esper_ab.design_comparison(["new", "old"], 10, margin=1.0, label=name)


@pytest.mark.parametrize("name", ["return", "accuracy", "success_rate", "lossless", "timesteps survived", "glossary"])
def test_the_direction_of_other_outcomes_is_up(name):
    assert esper_ab.compare_outcomes({"new": A, "old": B}, margin=1.0, label=name).verdicts == {
        ("new", "old", ""): "BETTER"
    }


def test_all_questions_are_in_one_message():
    told = _asked(
        {"group": ["new"] * 10 + ["old"] * 10, "prompt": [*range(10)] * 2, "loss": sorted(A) + sorted(B)},
        columns={"seed": "prompt", "outcome": "loss"},
    )
    for part in ("the column prompt names items", "rows=runs; the outcome is called loss", "; new rises and old rises"):
        assert part in told
    assert "\n" not in told


def test_rows_that_are_named_like_items_are_named_beside_the_verdict():
    names = [f"prompt{place:02}" for place in range(10)]
    data = {group: dict(zip(names, values, strict=True)) for group, values in (("new", A), ("old", B))}
    said = "The rows are named prompt00 and so on: prompts of one checkpoint are not training runs"
    assert said in _caveats(data)
    assert said not in _caveats(data, rows="runs")
