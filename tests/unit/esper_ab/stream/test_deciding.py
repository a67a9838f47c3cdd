"""Decisions of a candidate's pairs, in both directions, and their words."""

import msgspec
import pytest
from support.streams.made_ledgers import QUESTION, begin, new_ledger, pairs_of

from esper_ab.stream.deciding import decide


@pytest.fixture
def candidate(tmp_path):
    return begin(new_ledger(tmp_path / "stream"), 1.0)


def decided_at(question, candidate, difference, look):
    return decide(question, candidate, look, pairs_of(difference, look, 1))


def test_a_large_improvement_is_accepted_at_the_look_before_the_last(candidate):
    assert decided_at(QUESTION, candidate, 4.0, 8) is None
    decided = decided_at(QUESTION, candidate, 4.0, 14)
    assert decided.decision == "accepted"
    assert decided.e_value == pytest.approx(1.0 / candidate.level)
    assert decided.interval[0] < decided.effect < decided.interval[1]
    assert "after 14 pairs, shown above 0 (p " in decided.reason


def test_no_improvement_ends_early(candidate):
    decided = decided_at(QUESTION, candidate, -1.0, 4)
    assert decided.decision == "rejected"
    assert decided.e_value == 0.0
    assert decided.reason == "not better after 4 pairs, unlikely to be shown above 0 within 20 seeds"


def test_lower_is_better_where_the_question_says_so(candidate):
    question = msgspec.structs.replace(QUESTION, better="lower", margin=0.5)
    decided = decided_at(question, candidate, -4.0, 14)
    assert decided.decision == "accepted"
    assert decided.effect < -3.0
    assert decided.interval[0] < decided.effect < decided.interval[1] < 0.0
    assert "above the margin of 0.5" in decided.reason


def test_the_last_look_leaves_a_promising_candidate_undecided(candidate):
    decided = decided_at(QUESTION, candidate, 0.85, 20)
    assert decided.decision == "undecided"
    assert "not shown above 0 (p " in decided.reason


def test_for_any_shape_the_e_value_is_the_evidence(candidate):
    question = msgspec.structs.replace(QUESTION, shape="any", outcome_range=(-6.0, 6.0), seeds=40)
    decided = decided_at(question, candidate, 4.0, 40)
    assert decided.decision == "accepted"
    assert decided.p is None
    assert decided.e_value > 1.0 / candidate.level
    assert "e-value" in decided.reason


def test_without_pairs_nothing_is_shown(candidate):
    decided = decide(QUESTION, candidate, 20, [])
    assert (decided.decision, decided.effect, decided.interval) == ("rejected", None, None)
    assert decided.reason == "no pair has both outcomes"
