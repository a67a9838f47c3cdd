"""Files whose outcomes once led to a claim that their law makes false in far more than one case of twenty."""

from pathlib import Path

import msgspec
import pytest

from esper_ab.contracts.errors import ConditionNotMet
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
    runs, replace = read_csv(FILES / "drift.csv"), msgspec.structs.replace
    named = [replace(row, replicate=f"seed {row.replicate}") for row in runs.rows]
    ordered = [replace(row, order=int(row.replicate[5:])) for row in named]
    drifts, unknown, again = (
        explore(replace(runs, rows=tuple(rows)), scales_of(("",), 2.0), Rule()).comparisons[0]
        for rows in (runs.rows, named, ordered)
    )
    assert [str(one.verdict) for one in (drifts, unknown, again)] == ["INCONCLUSIVE", "BETTER", "INCONCLUSIVE"]
    assert "drift" in drifts.headline
    assert "alternating order" in drifts.sentence


@pytest.mark.parametrize(("name", "amount"), [("exact", "-2.00"), ("float32", "-2.10"), ("rounding", "-4.00")])
def test_a_constant_difference_has_one_answer_however_its_outcomes_were_rounded(name, amount):
    """A claim of "4.0 (3.9999997 to 4.0000001)" would hang on the last bits; the seed visibly changes the outcomes."""
    found = explore(read_csv(FILES / f"shift_{name}.csv"), scales_of(("",), 1.0), Rule()).comparisons[0]
    runs = len(found.pairs)
    assert str(found.verdict) == "INCONCLUSIVE"
    assert found.headline == (
        f"Not decided: every pair differs by {amount}, so no test of a mean applies; this is the answer for these "
        f"seeds; {runs} training runs per group."
    )
    assert not any("seed" in caveat for caveat in found.caveats)
