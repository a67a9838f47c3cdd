"""Questions about rows of unknown origin, and the options that answer them."""

import pandas as pd
import pytest
from support.outcomes.csv_outcomes import drawn

import esper_ab
from esper_ab.contracts.errors import UsageError

A, B = drawn(10, 3.0)


def _expect_question(data, **options):
    with pytest.raises(UsageError) as refusal:
        esper_ab.compare_outcomes(data, margin=2.0, **options)
    return str(refusal.value)


def _join_caveats(data, **options):
    answer = esper_ab.compare_outcomes(data, margin=2.0, **options)
    return " ".join(caveat for comparison in answer.comparisons for caveat in comparison.caveats)


PASTED = {"new": A[:5] * 2, "old": B[:5] * 2}
COPIED = {"a": A, "a_copy": A, "b": B}
ONE_RUN = {
    "new": [57.25 + 1e-6 * (index * 7 % 10) for index in range(10)],
    "old": [55.00 + 1e-6 * (index * 3 % 10) for index in range(10)],
}


@pytest.mark.parametrize(
    ("data", "description"),
    [
        (PASTED, "10 of 10 outcomes of new equal another one, such as "),
        (COPIED, "a equals a_copy to the last digit in every pair, such as "),
        (ONE_RUN, "vary by less than a ten-thousandth of their difference"),
    ],
)
def test_many_copies_raise_a_question(data, description):
    question = _expect_question(data)
    assert description in question
    assert question.endswith("; remove the copies, unless each row is a training run of its own: rows=runs")
    assert description in _join_caveats(data, rows="runs")


def test_few_copies_cause_only_a_caveat():
    assert "2 of 10 outcomes of new equal another one" in _join_caveats({"new": [*A[:9], A[3]], "old": B})


def test_copies_cause_only_a_caveat_under_a_plan():
    plan = esper_ab.design_comparison(["new", "old"], 10, margin=2.0)
    (comparison,) = esper_ab.judge_outcomes(plan, PASTED).comparisons
    assert "10 of 10 outcomes of new equal another one" in " ".join(comparison.caveats)


@pytest.mark.parametrize(
    ("a", "b", "description"),
    [
        (sorted(A), sorted(B), "new rises and old rises from seed to seed in all 10 pairs"),
        (sorted(A)[::-1], sorted(B)[::-1], "new falls and old falls"),
        (sorted(A), sorted(B)[::-1], "new rises and old falls"),
        ([*sorted(A), max(A)], [min(B), *sorted(B)], "in all 11 pairs"),
    ],
)
def test_sorted_columns_of_outcomes_raise_a_question(a, b, description):
    question = _expect_question({"new": a, "old": b})
    assert description in question
    assert question.endswith("whose pairs mean nothing: paired=False or paired=True")
    assert description in _join_caveats({"new": a, "old": b}, paired=True)
    assert description not in _join_caveats({"new": a, "old": b}, paired=False)


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
def test_one_sorted_group_raises_no_question(a, b):
    ties = [value for value in a if a.count(value) > 1]
    assert len(set(a)) < 8 or len(set(b)) < 8 or a != sorted(a) or b != sorted(b)
    assert "sorted" not in _join_caveats({"new": a, "old": b}, rows="runs" if ties else None)


def test_seeds_are_ordered_by_the_numbers_in_their_names():
    names = [f"s{index}" for index in range(10)]
    data = {"new": dict(zip(names, sorted(A), strict=True)), "old": dict(zip(names, sorted(B), strict=True))}
    assert "new rises and old rises from seed to seed" in _join_caveats(data)


def test_seeds_may_have_digits_that_are_not_decimal_numbers():
    names = ["①", "②", "²", "x³", "٣", "½", "7", "a7", "七", "⑩"]
    data = {"new": dict(zip(names, A, strict=True)), "old": dict(zip(names, B, strict=True))}
    assert "sorted" not in _join_caveats(data)


def test_sorted_outcomes_with_seeds_cause_only_a_caveat():
    by_seed = {group: dict(enumerate(sorted(values))) for group, values in (("new", A), ("old", B))}
    assert "new rises and old rises from seed to seed" in _join_caveats(by_seed)
    series = {group: pd.Series(sorted(values)) for group, values in (("new", A), ("old", B))}
    assert "new rises and old rises from seed to seed" in _expect_question(series)


LOWER = ("loss", "val_loss", "Error", "regret", "Perplexity", "wall time", "seconds", "steps_to_threshold", "trainCost")


@pytest.mark.parametrize("name", LOWER)
def test_outcomes_named_like_losses_raise_a_question_about_direction(name):
    rows = {"group": ["new"] * 10 + ["old"] * 10, "seed": [*range(10)] * 2, name: [*A, *B]}
    question = f"is called {name}, so it is unclear whether lower or higher is better: better=lower or better=higher"
    assert _expect_question(rows, columns={"outcome": name}).endswith(question)
    for better_direction, verdict in (("lower", "WORSE"), ("higher", "BETTER")):
        answer = esper_ab.compare_outcomes(rows, margin=1.0, columns={"outcome": name}, better=better_direction)
        assert set(answer.verdicts.values()) == {verdict}
    assert _expect_question({"new": A, "old": B}, label=name).endswith(question)
    with pytest.raises(UsageError, match="unclear whether lower or higher is better"):
        esper_ab.design_comparison(["new", "old"], 10, margin=1.0, label=name)


@pytest.mark.parametrize("name", ["return", "accuracy", "success_rate", "lossless", "timesteps survived", "glossary"])
def test_outcomes_with_other_names_are_better_if_higher(name):
    assert esper_ab.compare_outcomes({"new": A, "old": B}, margin=1.0, label=name).verdicts == {
        ("new", "old", ""): "BETTER"
    }


def test_all_questions_about_rows_are_in_one_message():
    question = _expect_question(
        {"group": ["new"] * 10 + ["old"] * 10, "prompt": [*range(10)] * 2, "loss": sorted(A) + sorted(B)},
        columns={"seed": "prompt", "outcome": "loss"},
    )
    for part in ("the column prompt names items", "rows=runs; the outcome is called loss", "; new rises and old rises"):
        assert part in question
    assert "\n" not in question


def test_rows_named_like_items_get_a_caveat():
    names = [f"prompt{index:02}" for index in range(10)]
    data = {group: dict(zip(names, values, strict=True)) for group, values in (("new", A), ("old", B))}
    caveat = "The rows are named prompt00 and so on: prompts of one checkpoint are not training runs"
    assert caveat in _join_caveats(data)
    assert caveat not in _join_caveats(data, rows="runs")
