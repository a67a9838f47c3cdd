"""Margins in a different unit than the outcome."""

import pytest

import esper_ab
from esper_ab.contracts.errors import UsageError

FRACTIONS = {"new": [0.95, 0.97, 0.94, 0.95, 0.96, 0.93], "old": [0.10, 0.08, 0.11, 0.10, 0.09, 0.12]}
WINS = {"new": [1, 1, 1, 1, 0, 1], "old": [0, 0, 1, 0, 0, 0]}


def _expect_refusal(call):
    with pytest.raises(UsageError) as refusal:
        call()
    return str(refusal.value)


@pytest.mark.parametrize("runs", [FRACTIONS, WINS])
@pytest.mark.parametrize("margin", [1, 2, 50.0])
def test_a_margin_of_1_or_more_is_refused_for_outcomes_between_0_and_1(runs, margin):
    message = _expect_refusal(lambda: esper_ab.compare_outcomes(runs, margin=margin))
    reason = "all 12 outcomes seen are 0 or 1, so no difference is larger than 1; give a margin below 1, "
    if runs is FRACTIONS:
        reason = (
            "the 12 outcomes seen lie between 0.08 and 0.97; if they are fractions, no difference is larger than 1: "
        )
    assert message.startswith(f"margin {margin:g}: {reason}")
    assert message.endswith("or declare a wider range with scores=WORST..TARGET")
    plan = esper_ab.design_comparison(["new", "old"], 6, margin=margin)
    assert _expect_refusal(lambda: esper_ab.judge_outcomes(plan, runs)) == message
    assert esper_ab.judge_outcomes(plan, runs, scores=f"0..{margin + 1}").verdicts
    assert esper_ab.compare_outcomes(runs, margin=margin, scores=f"0..{margin + 1}").verdicts


@pytest.mark.parametrize(
    "runs",
    [
        {"new": [1.0] * 6, "old": [1.0] * 6},
        {"new": [0.5, 0.6, 1.01], "old": [0.5, 0.6, 0.7]},
        {"new": [-0.01, 0.6, 0.7], "old": [0.5, 0.6, 0.7]},
    ],
)
def test_any_margin_is_accepted_for_outcomes_beyond_1(runs):
    assert esper_ab.compare_outcomes(runs, margin=2).verdicts
    assert esper_ab.compare_outcomes(FRACTIONS, margin=0.99).verdicts


def test_a_margin_as_large_as_the_declared_range_is_refused():
    runs = {group: [100 * value for value in values] for group, values in FRACTIONS.items()}
    message = "margin 100: outcomes range from 0 to 100, so no difference is larger; give the margin in the unit"
    assert _expect_refusal(lambda: esper_ab.compare_outcomes(runs, margin=100, unit="%")).startswith(message)
    assert _expect_refusal(lambda: esper_ab.compare_outcomes(runs, margin=100, scores="100..0")).startswith(message)
    assert _expect_refusal(lambda: esper_ab.design_comparison(["a", "b"], 6, margin=100, unit="%")).startswith(message)
    assert esper_ab.compare_outcomes(runs, margin=99, unit="%").verdicts


def test_each_task_can_have_its_own_unit():
    rows = {
        "group": ["new", "old"] * 12,
        "seed": [index // 2 % 6 for index in range(24)],
        "task": ["small"] * 12 + ["large"] * 12,
        "outcome": [value for pair in zip(*FRACTIONS.values(), strict=True) for value in pair] * 2,
    }
    rows["outcome"][12:] = [100 * value for value in rows["outcome"][12:]]
    assert esper_ab.compare_outcomes(rows, margin={"small": 0.1, "large": 10}).verdicts
    message = _expect_refusal(lambda: esper_ab.compare_outcomes(rows, margin=10))
    assert message.startswith("margin 10 in small: the 12 outcomes seen lie between 0.08 and 0.97")


@pytest.mark.parametrize(("margin", "expected"), [(3.0, True), (0.5, False)])
def test_a_margin_as_large_as_the_spread_of_outcomes_gets_a_caveat(margin, expected):
    runs = {
        "new": [60.0 + 0.05 * (index * 7 % 16) for index in range(16)],
        "old": [60.0 + 0.05 * (index * 5 % 16) for index in range(16)],
    }
    answer = esper_ab.compare_outcomes(runs, margin=margin)
    (comparison,) = answer.comparisons
    assert comparison.verdict == "EQUIVALENT"
    sentence = "The margin of 3 is at least as large as the spread of all outcomes (60.00 to 60.75)"
    assert (sentence in " ".join(comparison.caveats)) == expected
    assert ("at least as large as the spread" in " ".join(str(answer).split())) == expected
