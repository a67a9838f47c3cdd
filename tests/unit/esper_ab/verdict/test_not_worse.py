"""NOT WORSE: when a look shows it, which verdicts go before it, and what the answer says and fulfils."""

import json

import msgspec
import numpy as np
import pytest
from support.outcomes.compared_designs import SMALL, A, B, compared, design, lost, pairs_with_differences

from esper_ab.api.external import design_comparison, judge_outcomes
from esper_ab.design.design import Boundary, Contrast, extended
from esper_ab.design.non_inferiority import NonInferiority
from esper_ab.readers.external_plan import read_plan, save_plan
from esper_ab.report.verdict_json import comparison_json
from esper_ab.stats.equivalence import equivalence
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.not_worse import NotWorse, one_sided_p
from esper_ab.verdict.requirement import RELATIONS, Requirement, holds
from esper_ab.verdict.verdict import Verdict

WIDE = np.tile([3.0, -3.0, 2.0, -2.0, 1.0, -1.0], 5)  # differences with a mean of 0 and an SD of about 2.2


def rule(*looks, comparisons=1, bounds=(0.03, 0.04), **changes):
    """Return a plan that claims NOT WORSE, with bounds near those of looks at 16 and 20."""
    count = len(looks)
    two_sided = (0.025, 0.04)[-count:] if count > 1 else (0.05,)
    one_sided = bounds[-count:] if count > 1 else (0.05,)
    boundaries = tuple(
        Boundary(open=n, alpha=0.05 / n, nominal_p=tuple(p / n for p in two_sided)) for n in range(comparisons, 0, -1)
    )
    claim = NonInferiority(nominal_p=tuple(p / comparisons for p in one_sided))
    return design(
        20, looks=looks, boundaries=boundaries, not_worse=claim, adjusted=False, comparisons=comparisons, **changes
    )


def lower_is_better(plan):
    outcome = msgspec.structs.replace(plan.measures.outcome, better="lower")
    return msgspec.structs.replace(plan, measures=msgspec.structs.replace(plan.measures, outcome=outcome))


def supported(comparison, left=A, right=B):
    requirements = [Requirement(left=left, relation=relation, right=right) for relation in RELATIONS]
    return {requirement.relation for requirement in requirements if holds(requirement, comparison)}


@pytest.mark.parametrize(
    ("mean", "spread", "verdict", "relations"),
    [
        (0.0, 0.4, Verdict.NOT_WORSE, {"not-worse-than"}),
        (-0.6, 0.8, Verdict.NOT_WORSE, {"not-worse-than"}),
        (-1.2, 1.6, Verdict.INCONCLUSIVE, set()),
        (0.0, 4.0, Verdict.INCONCLUSIVE, set()),
        (3.0, 1.0, Verdict.BETTER, {"better-than", "not-worse-than"}),
        (-4.0, 1.0, Verdict.WORSE, {"worse-than"}),
        (-0.9, 0.2, Verdict.WORSE_BELOW_MARGIN, {"worse-than", "not-worse-than", "equivalent-to"}),
    ],
)
def test_the_verdict_follows_both_tests_and_fulfils_its_conditions(mean, spread, verdict, relations):
    result = compared(rule(16), pairs_with_differences(mean + spread * WIDE[:16]))
    assert (result.verdict, supported(result)) == (verdict, relations)
    mirrored = compared(lower_is_better(rule(16)), pairs_with_differences(-mean - spread * WIDE[:16]))
    assert (mirrored.verdict, supported(mirrored)) == (verdict, relations)


def test_not_worse_says_nothing_about_the_other_group():
    result = compared(rule(16), pairs_with_differences(1.0 + 1.4 * WIDE[:16]))
    assert result.verdict is Verdict.NOT_WORSE
    assert supported(result, B, A) == set()


def test_the_p_of_the_claim_is_one_of_the_two_tests_of_equivalence():
    result = compared(rule(16), pairs_with_differences(0.5 * WIDE[:16]))
    both = equivalence(result.effect, 2.0, 0.05)
    assert result.last_look.non_inferiority.p == both.p_lower
    assert one_sided_p(result.effect, -1.0, 2.0) == both.p_upper
    assert result.equivalence is None


def test_an_interim_look_ends_the_comparison_as_soon_as_the_claim_holds():
    result = compared(rule(16, 20), pairs_with_differences(0.4 * WIDE[:20]), complete=16)
    assert (result.progress.decision, result.progress.decided_at) == ("not-worse", 16)
    assert result.progress.finished
    narrow = rule(16, 20, bounds=(1e-9, 0.04))
    result = compared(narrow, pairs_with_differences(0.8 * WIDE[:20]))
    assert (result.progress.decision, result.progress.decided_at) == ("not-worse", 20)


def test_fewer_than_fifteen_pairs_are_never_enough():
    plan = rule(14, 20)
    differences = [*(0.4 * WIDE[:14]), *[9.0, -9.0] * 3]
    result = compared(plan, pairs_with_differences(differences), complete=14)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "calling it not worse takes 15 pairs" in result.headline


def test_without_early_stop_a_later_look_may_show_that_the_group_is_even_better():
    plan = rule(16, 20, early_stop=False)
    differences = [*(0.25 + 0.4 * WIDE[:16]), 2.0, 2.2, 1.9, 2.1]
    result = compared(plan, pairs_with_differences(differences))
    assert [look.shows_not_worse for look in result.progress.looks] == [True, True]
    assert (result.verdict, result.progress.decided_at) == (Verdict.BETTER_BELOW_MARGIN, 20)
    same = compared(plan, pairs_with_differences(0.4 * WIDE[:20]))
    assert (same.verdict, same.progress.decided_at, len(same.progress.looks)) == (Verdict.NOT_WORSE, 16, 2)


def test_a_claim_that_the_last_look_takes_back_is_no_claim():
    plan = rule(16, 20, early_stop=False)
    differences = [*(0.3 * WIDE[:16]), -30.0, 25.0, -20.0, 10.0]
    result = compared(plan, pairs_with_differences(differences))
    assert (result.progress.decision, result.verdict) == ("not-worse", Verdict.INCONCLUSIVE)
    assert "shaped was shown to be not worse after 16 seeds (look 1 of 2), but the last look no longer" in (
        result.sentence
    )


def test_several_comparisons_share_alpha_and_the_claim_hands_nothing_on():
    pairs = pairs_with_differences(1.6 * WIDE[:16])
    assert compared(rule(16), pairs).verdict is Verdict.NOT_WORSE
    assert compared(rule(16, comparisons=6), pairs).verdict is Verdict.INCONCLUSIVE


def test_after_every_pair_the_claim_needs_twenty_five_pairs():
    plan = msgspec.structs.replace(rule(16), looks=(), boundaries=(), anytime_after=0)
    plan = msgspec.structs.replace(plan, not_worse=NonInferiority(nominal_p=()))
    result = compared(plan, pairs_with_differences(0.3 * WIDE[:30]))
    assert (result.verdict, result.progress.decided_at) == (Verdict.NOT_WORSE, 25)
    longer = extended(rule(16), 16)
    differences = [*(2.5 * WIDE[:16]), *(0.1 * WIDE), *(0.1 * WIDE), *(0.1 * WIDE)]
    result = compared(longer, pairs_with_differences(differences))
    assert result.progress.decision == "not-worse"
    assert result.progress.decided_at > 25


def test_outcomes_no_better_than_those_of_an_untrained_group_are_not_called_not_worse():
    baseline = Finding(kind="baseline", weight="caps equivalence", groups=(), sentence="Both are at chance.")
    result = compared(rule(16), pairs_with_differences(0.3 * WIDE[:16]), findings=(baseline,))
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.NOT_WORSE)


@pytest.mark.parametrize(
    ("halves", "worst", "verdict"),
    [
        (((16, None, 70.0),), None, Verdict.INCONCLUSIVE),  # a lost run of the group, without a worst outcome
        (((16, None, 70.0),), 0.0, Verdict.INCONCLUSIVE),
        (((16, None, 70.0),), 69.0, Verdict.NOT_WORSE),
        (((16, 70.0, None),), None, Verdict.NOT_WORSE),  # of the other group: it counts as the best outcome seen
    ],
)
def test_a_lost_run_counts_against_the_claim(halves, worst, verdict):
    plan = rule(17, worst=worst)
    result = compared(plan, pairs_with_differences(0.4 * WIDE[:16]), lost=lost(*halves))
    assert result.verdict is verdict


def test_the_claim_is_made_again_with_one_more_collapse_of_the_group_itself():
    declared = compared(rule(16, worst=0.0), pairs_with_differences(0.3 * WIDE[:16]))
    assert (declared.unseen.worst, declared.unseen.survives) == (0.0, False)
    mild = compared(rule(16, worst=68.0), pairs_with_differences(0.3 * WIDE[:16]))
    assert mild.unseen.survives
    undeclared = compared(rule(16), pairs_with_differences(0.3 * WIDE[:16]))
    assert undeclared.unseen.worst is None
    assert "If shaped is worse only through such failures, this verdict is likely, too." in undeclared.warnings[0]


def test_the_headline_names_the_limit_on_the_worse_side():
    result = compared(rule(16), pairs_with_differences(-0.3 + 0.4 * WIDE[:16]))
    assert result.headline.startswith("shaped is not worse than simplified by 2 points or more: shaped is 0.")
    assert "points worse (95 % one-sided limit)." in result.headline
    assert result.sentence.startswith("NOT WORSE by 2 points or more (16 pairs). shaped - simplified = -0.")
    assert "90 % interval" in result.sentence
    assert "one-sided p" in result.sentence


def test_an_open_comparison_says_how_much_worse_the_group_may_be():
    result = compared(rule(16), pairs_with_differences(-0.5 + 2.5 * WIDE[:16]))
    assert "but it may be up to 3.06 points worse (95 % one-sided limit), which does not exclude" in result.headline
    assert "would show that shaped is not worse by 2 points or more" in result.headline
    assert "Showing that shaped is not worse by 2 points or more, if the groups do not differ" in result.sentence


def test_a_plan_without_the_claim_has_no_trace_of_it():
    result = compared(design(16), pairs_with_differences(SMALL))
    assert "not_worse" not in comparison_json(result)
    assert b"not_worse" not in msgspec.json.encode(result.progress.looks)
    assert b"not_worse" not in msgspec.json.encode(result.design)
    claimed = comparison_json(compared(rule(16), pairs_with_differences(SMALL)))
    assert claimed["not_worse"].shown


def test_a_limit_is_seen_from_the_group_whatever_direction_is_better():
    limits = NotWorse(p=None, bound_p=0.05, low=-1.0, high=3.0, shown=False)
    assert (limits.worse_limit(1.0), limits.worse_limit(-1.0)) == (-1.0, -3.0)
    assert limits.excludes_margin(1.0, 2.0)
    assert not limits.excludes_margin(-1.0, 2.0)
    assert NotWorse(p=None, bound_p=0.05, low=None, high=None, shown=False).worse_limit(1.0) is None


def _rows(shift):
    noise = np.random.default_rng(3).standard_normal((2, 20))
    groups = {"new": 70.0 + shift + noise[0], "old": 70.0 + noise[1], "third": 70.0 + noise[0][::-1]}
    return {
        "group": [name for name in groups for _ in range(20)],
        "seed": [seed for _ in groups for seed in range(20)],
        "outcome": np.concatenate(list(groups.values())),
    }


def test_a_plan_file_keeps_the_claim_and_judges_several_groups_against_the_control(tmp_path):
    plan = design_comparison(["new", "old", "third"], 20, margin=2.0, claim="not-worse", control="old", better="higher")
    assert plan.design.looks == (20,)
    save_plan(plan, tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())["plan"]["design"]["not_worse"]["nominal_p"]
    assert [round(p, 4) for p in written] == [round(p, 4) for p in plan.design.non_inferiority.nominal_p]
    answer = judge_outcomes(read_plan(tmp_path / "plan.json"), _rows(-2.5))
    assert answer.verdicts[("third", "old", "")] == "NOT WORSE"
    assert answer.verdicts[("new", "old", "")] == "WORSE"
    assert Contrast(a="new", b="old") in plan.design.comparisons
