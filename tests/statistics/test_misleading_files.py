"""Regression tests: tables that once led to claims which are false in far more than 5 % of cases."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from esper_ab.contracts.errors import ConditionNotMet
from esper_ab.readers.csv_file import read_csv
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.readers.external_table import observations_of
from esper_ab.readers.scales import scales_of
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.judge import judge
from esper_ab.verdict.requirement import parse_requirement, require
from esper_ab.verdict.runs import Runs

FILES = Path(__file__).parent / "files"


def judge_file(name, worst_outcome=""):
    groups = ("A", "B")
    scales = scales_of(("",), 2.0, unit="%", worst=worst_outcome)
    plan = make_external_plan(groups, tuple(map(str, range(20))), scales, Rule(looks=(20,)))
    return judge(plan, read_csv(FILES / name)).comparisons[0]


@pytest.mark.parametrize("name", ["gate.csv", "gate2.csv"])
def test_the_requirement_not_worse_than_fails_if_rare_collapses_exceed_the_margin(name):
    """B is worse by more than the margin, but only through rare collapses that most pairs do not show."""
    comparison = judge_file(name)
    assert str(comparison.verdict) == "INCONCLUSIVE"
    gate = parse_requirement("B not-worse-than A", ("A", "B"), comparison.question.design.comparisons)
    with pytest.raises(ConditionNotMet):
        require([gate], [comparison])


@pytest.mark.parametrize("worst_outcome", ["", 0.0])
def test_lost_runs_that_may_be_collapses_prevent_equivalence(worst_outcome):
    """B lost 3 of 20 runs, which would have collapsed; the remaining runs are alike."""
    comparison = judge_file("lost.csv", worst_outcome=worst_outcome)
    assert (str(comparison.verdict), str(comparison.unaudited)) == ("INCONCLUSIVE", "EQUIVALENT")
    for text in ("A equivalent-to B", "A not-worse-than B", "B not-worse-than A"):
        with pytest.raises(ConditionNotMet):
            require([parse_requirement(text, ("A", "B"), comparison.question.design.comparisons)], [comparison])


def test_differences_that_drift_in_clock_order_prevent_a_claim():
    """Each group is autocorrelated in clock order, which only the column `order` gives, not the seed numbers."""
    runs = read_csv(FILES / "drift.csv")
    replace = msgspec.structs.replace
    ordered_rows = Runs.of(replace(row, order=int(row.replicate)) for row in runs.rows)
    unordered_result, drifts = (
        explore(replace(runs, rows=rows), scales_of(("",), 2.0), Rule()).comparisons[0]
        for rows in (runs.rows, ordered_rows)
    )
    assert [str(comparison.verdict) for comparison in (unordered_result, drifts)] == ["BETTER", "INCONCLUSIVE"]
    assert "drift" in drifts.headline
    assert "alternating order" in drifts.sentence


def test_integer_seeds_are_not_taken_for_the_clock_order():
    """20 of 20 successes against 9 of 20 in rows sorted by outcome: the order of seeds is not a drift."""
    rows = [("a", seed, 100.0) for seed in range(20)] + [("b", seed, 100.0 * (seed >= 11)) for seed in range(20)]
    columns = dict(zip(("group", "seed", "outcome"), map(list, zip(*rows, strict=True)), strict=True))
    comparison = explore(observations_of("sorted", columns, range(2, 42)), scales_of(("",), 2.0), Rule()).comparisons[0]
    assert str(comparison.verdict) == "BETTER"


WAVE = np.random.default_rng(7).normal(0.0, 1.0, 20).round(2)


def judge_ten_and_ten(later_mean):
    """Judge 20 planned pairs with a look after 10: the first ten have a mean of +3, the others of `later_mean`."""
    wave = np.tile([0.3, -0.3, 0.1, -0.1, 0.2, -0.2, 0.4, -0.4, 0.0, 0.1], 2)
    d = wave + np.repeat([3.0, later_mean], 10)
    plan = make_external_plan(("a", "b"), tuple(map(str, range(20))), scales_of(("",), 1.0), Rule(looks=(10, 14, 20)))
    columns = {"group": ["a"] * 20 + ["b"] * 20, "seed": [*range(20)] * 2, "outcome": [*(60.0 + d), *[60.0] * 20]}
    return judge(plan, observations_of("runs", columns, range(2, 42))).comparisons[0]


@pytest.mark.parametrize(
    ("later_mean", "verdict", "caveat"),
    [
        (
            3.0,
            "BETTER",
            "The 10 pairs after the decision are not used: their mean is +3.01, that of all 20 pairs +3.01.",
        ),
        (
            -3.0,
            "INCONCLUSIVE",
            "The 10 pairs after the decision contradict it: their mean is -2.99, that of all 20 pairs +0.01.",
        ),
    ],
)
def test_pairs_after_the_deciding_look_are_checked_for_drift(later_mean, verdict, caveat):
    comparison = judge_ten_and_ten(later_mean)
    assert (comparison.progress.decided_at, str(comparison.verdict)) == (10, verdict)
    assert caveat in comparison.caveats
    drifts = "the differences drift over all 20 pairs, 10 of them after that look" in comparison.headline
    assert drifts == (verdict == "INCONCLUSIVE")


def test_equivalence_states_a_condition_if_rare_pairs_exceed_the_margin():
    """+1 in 19 pairs and -19 in one: the headline and the caveat state the condition."""
    d = np.array([1.0 + 0.1 * (index % 3 - 1) for index in range(19)] + [-19.0])
    for differences, verdict in ((d, "EQUIVALENT"), (-d, "EQUIVALENT")):
        columns = {
            "group": ["a"] * 20 + ["b"] * 20,
            "seed": [*range(20)] * 2,
            "outcome": [*(60.0 + differences + WAVE), *(60.0 + WAVE)],
        }
        (comparison,) = explore(
            observations_of("runs", columns, range(2, 42)), scales_of(("",), 2.0), Rule()
        ).comparisons
        assert str(comparison.verdict) == verdict
        assert "within the margin, if pairs like 1 of these 20 are no more frequent than here)" in comparison.headline
        assert "Such pairs may be 0.13 to 25 % of all" in " ".join(comparison.caveats)


def test_one_pair_after_the_deciding_look_is_worded_in_the_singular():
    d = np.array([3.3, 2.7, 3.1, 2.9, 3.2, 2.8, 3.4, 2.6, 3.0, 3.1, 3.0])
    plan = make_external_plan(("a", "b"), tuple(map(str, range(20))), scales_of(("",), 1.0), Rule(looks=(10, 14, 20)))
    columns = {"group": ["a"] * 11 + ["b"] * 11, "seed": [*range(11)] * 2, "outcome": [*(60.0 + d), *[60.0] * 11]}
    (comparison,) = judge(plan, observations_of("runs", columns, range(2, 24))).comparisons
    assert (
        "The pair after the decision is not used: its difference is +3.00, the mean of all 11 pairs +3.01."
    ) in comparison.caveats


@pytest.mark.parametrize(("name", "amount"), [("exact", "2.00"), ("float32", "2.10"), ("rounding", "4.00")])
def test_a_constant_difference_is_inconclusive_despite_rounding(name, amount):
    """An interval such as "3.9999997 to 4.0000001" would reflect rounding only; seeds do change the outcomes."""
    comparison = explore(read_csv(FILES / f"shift_{name}.csv"), scales_of(("",), 1.0), Rule()).comparisons[0]
    runs = len(comparison.pairs)
    assert str(comparison.verdict) == "INCONCLUSIVE"
    assert comparison.headline == (
        f"Not decided: a is {amount} below b in every pair, so no test of a mean applies; this is the answer for these "
        f"seeds; {runs} training runs per group."
    )
    assert not any("seed" in caveat for caveat in comparison.caveats)
