"""The words, numbers and requirements of generated comparisons are consistent."""

import dataclasses

import pytest
from simulation import sentences
from support.outcomes.compared_designs import BETTER_A, BETTER_B, compared, design, pairs_of

from esper_ab.verdict.verdict import Verdict


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 5))])
def test_the_words_of_generated_comparisons_match_their_numbers(number):
    verdict_counts, problems = sentences.check(12, number)
    assert problems == []
    assert {str(verdict) for verdict in Verdict} - set(verdict_counts) <= {"WORSE, BELOW MARGIN"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": -0.1}, "BETTER beside"),
        ({"verdict": Verdict.WORSE}, "WORSE beside"),
        ({"verdict": Verdict.EQUIVALENT}, "EQUIVALENT within"),
        ({"verdict": Verdict.NO_INFERENCE}, "NO INFERENCE with 6 pairs"),
        ({"estimate": 9.0}, "outside of its interval"),
    ],
)
def test_a_planted_contradiction_in_a_report_is_detected(change, message):
    comparison = compared(design(6), pairs_of(BETTER_A, BETTER_B))
    assert any(
        message in contradiction
        for contradiction in sentences.contradictions(dataclasses.replace(comparison, **change))
    )
