"""The words, numbers and requirements of generated comparisons are consistent."""

import dataclasses
from collections import Counter

import pytest
from simulation import sentences
from support.outcomes.compared_designs import BETTER_A, BETTER_B, compared, design, pairs_of

from esper_ab.verdict.verdict import Verdict


@pytest.mark.parametrize(
    "pieces", [pytest.param(range(1), id="one"), pytest.param(range(1, 5), id="four", marks=pytest.mark.slow)]
)
def test_the_words_of_generated_comparisons_match_their_numbers(pieces):
    verdict_counts = Counter()
    for number in pieces:
        verdict_counts_of_piece, problems = sentences.check(12, number)
        assert problems == []
        verdict_counts += verdict_counts_of_piece
    assert {*verdict_counts} == {str(verdict) for verdict in Verdict}


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
