"""The headline of a comparison never claims more than the verdict; equal headlines are merged."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from support.journals.synthetic import Shape, Synthetic
from support.outcomes.compared_designs import compared, design, exploded, lost, pairs_of

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.text import render_text
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.verdict import Verdict

LOW = (70.1, 72.0, 70.3, 70.0, 71.7, 70.4)
HIGH = (75.0, 76.2, 74.1, 75.7, 76.0, 74.4)
WIDE = (71.0, 90.0, 70.5, 70.1, 71.8, 95.0)
LEVEL = (70.2, 71.9, 70.4, 69.8, 71.9, 70.3)
TWENTY = np.full(20, 70.0)
ALIASED = Finding(kind="aliased", weight="blocks", groups=(), sentence="Device and group are aliased.")
SIX = design(6)
SIXTEEN = design(16, margin=6.0)
EIGHT = design(8)


NEAR = TWENTY + 1.9967 + np.linspace(-0.01, 0.01, 20)
TINY = TWENTY + 0.0005 + 5e-5 * np.linspace(-1.0, 1.0, 20)
SMALLER = "shaped is better than simplified, but by less than the margin of "
SAME = "all records agree, so "
HEADLINES = [
    *(
        (
            design(6, margin=margin),
            HIGH,
            LOW,
            {},
            f"shaped is better than simplified by 4.5 points (95 % interval 3.7 to 5.2, {where} the margin "
            f"of {margin:g} "
            "points), in 6 of 6 pairs.",
        )
        for margin, where in ((2.0, "beyond"), (5.0, "partly within"), (6.0, "within"))
    ),
    (
        SIX,
        LOW,
        HIGH,
        {},
        "shaped is worse than simplified by 4.5 points (95 % interval 3.7 to 5.2, beyond the margin of 2 points), in 6 "
        "of 6 pairs.",
    ),
    (
        SIX,
        WIDE,
        LOW,
        {},
        "Not decided: shaped looks 7.3 points better than simplified, in 6 of 6 pairs, but the 95 % interval, 4.3 "
        "worse to 18.9 better, includes 0; about 241 pairs in a new plan would show a difference of 2 points.",
    ),
    (
        SIX,
        HIGH[:3],
        LOW[:3],
        {},
        "Too few pairs to decide (3; 6 needed): shaped is 4.3 points above simplified, in 3 of 3 pairs.",
    ),
    (SIX, HIGH[:1], LOW[:1], {}, "Too few pairs to decide (1; 6 needed): shaped is 4.9 points above simplified."),
    (SIX, (), (), {}, "Nothing can be said about shaped and simplified: no pair is complete."),
    (
        SIX,
        LOW,
        LOW,
        {"same_records": True, "same_settings": True},
        f"shaped and simplified are the same computation: {SAME}there is nothing to compare.",
    ),
    (
        SIX,
        LOW,
        LOW,
        {"same_records": True},
        f"shaped and simplified did the same in all 6 pairs: {SAME}the differing settings had no effect.",
    ),
    (
        SIX,
        LOW[:1],
        LOW[:1],
        {"same_records": True},
        f"shaped and simplified did the same in the one pair: {SAME}the differing settings had no effect.",
    ),
    (
        SIX,
        LOW,
        LOW,
        {"same_records": True, "same_settings": True, "other_code": True},
        f"shaped and simplified did the same in all 6 pairs: {SAME}the change of code had no effect on these runs.",
    ),
    (
        SIX,
        LOW,
        LOW,
        {"same_records": True, "other_code": True},
        f"shaped and simplified did the same in all 6 pairs: {SAME}the differing code and settings had no effect on "
        "these runs.",
    ),
    (
        SIX,
        LOW,
        LOW,
        {},
        "Not decided: shaped and simplified look level, but too little varies between the pairs for any test.",
    ),
    (
        SIX,
        (100.0,) * 6,
        (*(100.0,) * 5, 98.0),
        {},
        "Not decided: shaped looks 0.33 points better than simplified, in 1 of 6 pairs (5 tied), but 11 of 12 runs "
        "have the outcome 100.00 %, which leaves too little spread for any test.",
    ),
    (
        SIX,
        HIGH,
        LOW,
        {"findings": (exploded(),)},
        "Not decided: shaped looks 4.5 points better than simplified, in 6 of 6 pairs, but the audit allows "
        "no verdict.",
    ),
    (SIX, HIGH, LOW, {"findings": (ALIASED,)}, "No answer for shaped and simplified: the audit blocks the comparison."),
    (
        EIGHT,
        HIGH,
        LOW,
        {"lost": lost((6, None, 76.0), (7, None, 75.0)), "complete": 8},
        "Not decided: shaped looks 4.5 points better than simplified, in 6 of 6 pairs, but the lost runs could change "
        "the answer; no worst outcome is declared for them (--outcome-range).",
    ),
    (
        SIXTEEN,
        (HIGH * 3)[:16],
        (LOW * 3)[:16],
        {"complete": 16},
        f"{SMALLER}6 points: by 4.5 points (95 % interval 4.2 to 4.9), in 16 of 16 pairs.",
    ),
    (
        design(20),
        (LEVEL * 4)[:20],
        (LOW * 4)[:20],
        {"complete": 20},
        "shaped and simplified are equivalent within 2 points: shaped and simplified are level (90 % interval 0.05 "
        "worse to 0.05 better, within the margin).",
    ),
    # Failures in up to 14 % of the runs may be unseen. They cost 1.5 points at an outcome of 60, and 2.9 at 50.
    *(
        (
            design(20, worst=worst),
            (LEVEL * 4)[:20],
            (LOW * 4)[:20],
            {"complete": 20},
            "shaped and simplified are equivalent within 2 points: shaped and simplified are level (90 % interval 0.05 "
            f"worse to 0.05 better{ending}.",
        )
        for worst, ending in (
            (60.0, "), and a difference of 2 points or more is ruled out"),
            (50.0, ", within the margin)"),
        )
    ),
    # A number has the digits that keep it on its side of 0 and of the margin.
    (
        design(20),
        TWENTY + np.linspace(0.011, 0.014, 20),
        TWENTY,
        {"complete": 20},
        f"{SMALLER}2 points: by 0.013 points (95 % interval 0.012 to 0.013), in 20 of 20 pairs.",
    ),
    (
        design(20),
        TWENTY + np.linspace(0.001, 7.99, 20),
        TWENTY,
        {"complete": 20},
        "shaped is better than simplified by 4.0 points (95 % interval 2.8 to 5.2, beyond the margin of 2 points), in "
        "20 of 20 pairs.",
    ),
    (
        design(20),
        NEAR,
        TWENTY,
        {"complete": 20},
        f"{SMALLER}2 points: by 1.9967 points (95 % interval 1.9938 to 1.9996), in 20 of 20 pairs.",
    ),
    # The estimate is not on the margin either, though both limits are far from it.
    (
        design(20),
        TWENTY + np.linspace(0.5, 3.508, 20),
        TWENTY,
        {"complete": 20},
        "shaped is better than simplified by 2.004 points (95 % interval 1.566 to 2.442, partly within the margin of 2 "
        "points), in 20 of 20 pairs.",
    ),
    # Three decimals would keep the limits apart, four would keep them off 0; both hold from five on.
    (
        design(20),
        TINY,
        TWENTY,
        {"complete": 20},
        f"{SMALLER}2 points: by 0.00050 points (95 % interval 0.00049 to 0.00051).",
    ),
]


@pytest.mark.parametrize(("rule", "a", "b", "changes", "headline"), HEADLINES)
def test_each_comparison_has_the_expected_headline(rule, a, b, changes, headline):
    assert compared(rule, pairs_of(a, b), **({"complete": 6} | changes)).headline == headline


def test_an_undeclared_exact_test_does_not_decide():
    result, mixed_result = (compared(SIX, pairs_of(WIDE, b)) for b in (LOW, (71.5, *LOW[1:])))
    assert result.verdict is mixed_result.verdict is Verdict.INCONCLUSIVE
    mentions = [
        any("not the declared test" in caveat for caveat in comparison.caveats) for comparison in (result, mixed_result)
    ]
    assert mentions == [True, False]


def test_many_comparisons_with_equal_headlines_share_one_sentence():
    events = Synthetic(groups={name: Shape() for name in "abcdef"}, replicates=6, episodes=2, n_envs=1).events()
    report_content = content(fold(events))
    text = " ".join(render_text(experiment_report(report_content)).split())
    first_screen = text[: text.index("Scope: ")]
    assert len(report_content.comparisons) == 15
    assert "Not decided for any two of a, b, c, d, e, f: the intervals include 0." in first_screen
    assert first_screen.count("INCONCLUSIVE") == 1


@pytest.mark.parametrize(("a", "b"), [(HIGH, LOW), (LOW, HIGH), (WIDE, LOW), (LOW, WIDE)])
def test_mirrored_outcomes_have_the_same_headline_if_lower_is_better(a, b):
    outcome = msgspec.structs.replace(SIX.outcome, better="lower")
    design_for_lower = msgspec.structs.replace(SIX, measures=msgspec.structs.replace(SIX.measures, outcome=outcome))
    mirrored_result = compared(design_for_lower, pairs_of(*(160.0 - np.array(side) for side in (a, b))))
    assert mirrored_result.headline == compared(SIX, pairs_of(a, b)).headline


@pytest.mark.parametrize("unknown_limits", [{"low": None}, {"high": None}, {"low": None, "high": None}])
def test_a_headline_shows_an_interval_only_if_both_ends_exist(unknown_limits):
    result = replace(compared(SIX, pairs_of(HIGH, LOW)), **unknown_limits)
    assert result.headline == "shaped is better than simplified by 4.5 points, in 6 of 6 pairs."
