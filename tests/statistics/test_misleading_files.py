"""Files whose outcomes once led to a claim that their law makes false in far more than one case of twenty."""

from pathlib import Path

import msgspec
import pytest

from esper_ab.contracts.errors import ConditionNotMet, UsageError
from esper_ab.readers.external_plan import make_external_plan, scales_of
from esper_ab.readers.external_table import read_csv
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.judge import judge
from esper_ab.verdict.requirement import parse_requirement, require

FILES = Path(__file__).parent / "files"


def judged(name, worst=""):
    groups = ("A", "B")
    scales = scales_of(("",), 2.0, unit="%", worst=worst)
    plan = make_external_plan(groups, tuple(map(str, range(20))), scales, Rule(looks=(20,)))
    return judge(plan, read_csv(FILES / name)).comparisons[0]


@pytest.mark.parametrize("name", ["gate.csv", "gate2.csv"])
def test_a_gate_does_not_hold_where_the_mean_may_be_worse_by_the_margin(name):
    """B is worse by more than the margin, all of it in rare collapses that most pairs do not show."""
    found = judged(name)
    assert str(found.verdict) == "INCONCLUSIVE"
    gate = parse_requirement("B not-worse-than A", ("A", "B"), found.question.design.comparisons)
    with pytest.raises(ConditionNotMet):
        require([gate], [found])


@pytest.mark.parametrize("worst", ["", 0.0])
def test_no_difference_is_called_small_where_crashes_may_have_replaced_collapses(worst):
    """B lost 3 of 20 runs, which would have collapsed; what is left is alike."""
    found = judged("lost.csv", worst=worst)
    assert (str(found.verdict), str(found.unaudited)) == ("INCONCLUSIVE", "EQUIVALENT")
    for text in ("A equivalent-to B", "A not-worse-than B", "B not-worse-than A"):
        with pytest.raises(ConditionNotMet):
            require([parse_requirement(text, ("A", "B"), found.question.design.comparisons)], [found])


def test_no_group_is_better_whose_differences_drift():
    """Runs in clock order, each group autocorrelated; seeds that are no numbers say nothing about the order."""
    runs = read_csv(FILES / "drift.csv")
    (found,) = explore(runs, scales_of(("",), 2.0), Rule()).comparisons
    assert (str(found.verdict), str(found.unaudited)) == ("INCONCLUSIVE", "BETTER")
    assert "drift" in found.headline
    assert "alternating order" in found.sentence
    named = msgspec.structs.replace(
        runs, rows=tuple(msgspec.structs.replace(row, replicate=f"seed {row.replicate}") for row in runs.rows)
    )
    (unknown,) = explore(named, scales_of(("",), 2.0), Rule()).comparisons
    assert str(unknown.verdict) == "BETTER"
    ordered = msgspec.structs.replace(
        named, rows=tuple(msgspec.structs.replace(row, order=int(row.replicate[5:])) for row in named.rows)
    )
    (again,) = explore(ordered, scales_of(("",), 2.0), Rule()).comparisons
    assert str(again.verdict) == "INCONCLUSIVE"


def compared(name, **asked):
    (found,) = explore(read_csv(FILES / name), scales_of(("",), 2.0, unit="%"), Rule(), **asked).comparisons
    return found


def test_runs_of_which_one_group_has_few_and_no_seed_is_shared():
    """Forty rows may be items; as runs they form no pairs with five others, which are too few for any claim."""
    with pytest.raises(UsageError, match="--rows runs"):
        compared("unequal.csv")
    found = compared("unequal.csv", rows="runs")
    assert (str(found.verdict), found.used) == ("NO INFERENCE", 5)
    assert "5 and 40 runs" in found.sentence
    assert f"interval {found.low:+.2f} to {found.high:+.2f}" in found.sentence


def test_seeds_of_which_most_have_no_partner_leave_a_question():
    for asked in ({}, {"rows": "runs"}):
        with pytest.raises(UsageError, match=r"34 of 46 rows .* have no partner.*--paired.*--unpaired"):
            compared("unequal2.csv", **asked)
    unpaired = compared("unequal2.csv", rows="runs", paired=False)
    assert unpaired.headline.endswith("; 6 training runs of new and 40 of old.")
    assert "6 pairs" in compared("unequal2.csv", rows="runs", paired=True).sentence
