"""Sentences about lost runs and future looks; tests/statistics/test_sentences.py has the general rules."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from simulation.sentences import contradictions
from support.outcomes.compared_designs import BETTER_A, BETTER_B, SMALL, compared, design, lost, open_ended, pairs_of

from esper_ab.design.pairs_needed import MOST_NAMED
from esper_ab.verdict.verdict import Verdict

PAIRS = pairs_of(BETTER_A, BETTER_B)
EQUAL = pairs_of(70.0 + SMALL, np.full(16, 70.0))


@pytest.mark.parametrize(
    ("looks", "sentence"),
    [
        ((6,), "It can be decided after 6 seeds (look 1 of 1), not before."),
        ((6, 10), "It can be decided after 6 seeds (look 1 of 2), not before."),
        ((5, 8), "It can be decided after 5 seeds (look 1 of 2), not before."),
        ((5,), ""),  # no look can decide
    ],
)
def test_a_comparison_in_progress_names_its_next_look(looks, sentence):
    text = compared(msgspec.structs.replace(design(6), looks=looks), PAIRS[:3]).sentence
    assert sentence in text
    assert bool(sentence) == ("It can be decided" in text)


@pytest.mark.parametrize(
    ("pairs", "high", "phrase"),
    [
        (100, MOST_NAMED, "takes about 94 more pairs (80 % range 2 to 9994)"),
        (100, MOST_NAMED + 1, "takes about 94 more pairs (80 % range 2 to more than 10000)"),
        (MOST_NAMED, MOST_NAMED + 1, "takes about 9994 more pairs (80 % range 2 to more than 10000)"),
        (MOST_NAMED + 1, MOST_NAMED + 1, "takes more than 10000 more pairs."),
    ],
)
def test_needed_pairs_beyond_ten_thousand_are_not_counted(pairs, high, phrase):
    wide_result = compared(design(6), pairs_of((71.0, 90.0, 70.5, 70.1, 71.8, 95.0), BETTER_B))
    pairs_needed = msgspec.structs.replace(wide_result.pairs_needed, pairs=pairs, low=8, high=high)
    assert phrase in replace(wide_result, pairs_needed=pairs_needed, pairs_anew=None).sentence


def test_there_is_no_adjusted_test_with_as_many_positions_as_pairs():
    rotated_pairs = [
        msgspec.structs.replace(pair, position_a=n, position_b=(n + 1) % 6) for n, pair in enumerate(PAIRS)
    ]
    result = compared(design(6, adjusted=True, positions=6), rotated_pairs)
    sentence = "shaped - simplified = +4.48 points, no adjusted paired t; at this bound 6 pairs give no interval."
    assert sentence in result.sentence
    assert result.verdict is Verdict.INCONCLUSIVE


ALL_B = tuple((r, 70.0, None) for r in range(8))
# tests/golden/experiments has the claims that a lost run forbids, and why.
LOSSES = [  # rule, pairs, lost, verdict, imputed outcomes, phrases
    (
        design(8),
        (),
        ALL_B,
        "NO INFERENCE",
        None,
        ("NO INFERENCE (no complete pair). ", "No run of shaped and 8 runs of simplified were lost."),
    ),
    (design(8), (), ALL_B[:1], "NO INFERENCE", None, ("(no complete pair yet)",)),
    (
        design(8, worst=70.0),
        PAIRS,
        ((6, None, 70.0), (7, None, 71.0)),
        "BETTER",
        (70.0, None),
        (
            "2 runs of shaped and no run of simplified were lost.",
            "without a partner. Losses recur in",
            "leaves the decision standing",
        ),
    ),
    (design(8), PAIRS, ((6, 76.0, None),), "BETTER", (None, 76.2), ()),
    # The better group may have lost its worst run, the other its best.
    (
        design(8, worst=70.0),
        PAIRS,
        ((6, None, 76.0), (7, 70.0, None)),
        "INCONCLUSIVE",
        (70.0, 76.2),
        ("1 run of shaped and 1 run of simplified were lost.",),
    ),
    # The largest runs of a worse group may have died of memory: the worst outcome would favour the claim.
    (design(8), PAIRS, ((6, 70.2, None), (7, 70.4, None)), "INCONCLUSIVE", (None, 76.2), ()),
    (
        design(8),
        PAIRS,
        ((6, None, 70.0), (7, None, 71.0)),
        "INCONCLUSIVE",
        (None, None),
        ("2 runs of shaped and no run of simplified were lost. As a result, 2 of simplified were cancelled or left",),
    ),
    (design(20, worst=68.0), EQUAL, ((16, None, None),), "EQUIVALENT", (68.0, 70.4), ()),
    (design(20, worst=20.0), EQUAL, ((16, None, None),), "INCONCLUSIVE", (20.0, 70.4), ()),
    (
        design(20, worst=68.0),
        EQUAL,
        ((16, None, 70.0),),
        "INCONCLUSIVE",
        (None, None),
        ("a small difference is claimed only if both groups lost equally many runs, at most one each.",),
    ),
    (open_ended(worst=70.0), PAIRS, ((6, None, 70.0),), "BETTER", None, ()),
]


@pytest.mark.parametrize(("rule", "pairs", "losses", "verdict", "imputed_outcomes", "phrases"), LOSSES)
def test_lost_runs_count_against_the_claim(rule, pairs, losses, verdict, imputed_outcomes, phrases):
    result = compared(rule, pairs, lost=lost(*losses), complete=max(rule.looks, default=7))
    assert str(result.verdict) == verdict
    assert (result.imputed and (result.imputed.given_a, result.imputed.given_b)) == imputed_outcomes
    text = " ".join((result.sentence, *result.caveats))
    assert [phrase for phrase in phrases if phrase not in text] == []
    assert list(contradictions(result)) == []


def test_the_anytime_rule_tests_the_evidence_with_imputed_runs():
    pairs = pairs_of(BETTER_A, BETTER_B, replicates=range(1, 7))
    calm, result_of_other = (compared(open_ended(worst=70.0), pairs, lost=lost((0, None, b))) for b in (70.0, 76.0))
    assert (calm.verdict, result_of_other.verdict) == (Verdict.BETTER, Verdict.INCONCLUSIVE)
    assert result_of_other.imputed.e < 20.0 <= calm.imputed.e


@pytest.mark.parametrize("unknown_limits", [{"low": None}, {"high": None}, {"low": None, "high": None}])
def test_excluded_differences_are_stated_only_with_a_two_sided_interval(unknown_limits):
    wide_result = compared(design(6), pairs_of((71.0, 90.0, 70.5, 70.1, 71.8, 95.0), BETTER_B))
    reach = "Uninformative: this plan could not have shown a difference of 2 points"
    assert f"{reach}; the interval excludes differences beyond" in wide_result.sentence
    assert f"{reach}." in replace(wide_result, **unknown_limits).sentence
