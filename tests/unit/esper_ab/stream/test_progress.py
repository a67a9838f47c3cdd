"""The fold of a ledger: incumbents and their values, levels, and answers that are given again."""

import pytest
from support.streams.made_ledgers import QUESTION, begin, finish, new_ledger, tried

from esper_ab.stats.online_fdr import level
from esper_ab.stream.entries import Decided, Setup
from esper_ab.stream.progress import differences, fold
from esper_ab.stream.status_text import _incumbent_words


@pytest.fixture
def ledger(tmp_path):
    return new_ledger(tmp_path / "stream")


def test_a_candidate_that_loses_adds_runs_to_what_is_known_of_the_incumbent(ledger):
    progress = tried(ledger, [-1.0])
    assert progress.decided[1].decision == "rejected"
    assert progress.incumbent.number == 0
    assert len(progress.incumbent.outcomes) == 3 + 4
    low, high = progress.incumbent.interval
    assert low < progress.incumbent.value < high


def test_the_runs_of_a_win_are_no_part_of_the_new_value(ledger):
    progress = tried(ledger, [4.0])
    assert progress.wins == 1
    assert progress.incumbent.number == 1
    assert progress.incumbent.outcomes == [5.5, 5.6]
    assert progress.incumbent.setup == Setup(settings={"trainer.rate": 0.0})


@pytest.mark.parametrize(("lead", "has_won"), [(-1.0, False), (4.0, True)])
def test_only_an_incumbent_that_has_won_has_runs_without_a_part_in_its_win(ledger, lead, has_won):
    words = _incumbent_words(tried(ledger, [lead]).incumbent, "return")
    assert ("that had no part in its win" in words) == has_won


def test_levels_follow_from_numbers_and_wins(ledger):
    progress = tried(ledger, [-1.0, 4.0, -1.0])
    assert [candidate.level for candidate in progress.candidates] == pytest.approx(
        [level(0.05, 1, 0), level(0.05, 2, 0), level(0.05, 3, 1)]
    )
    assert progress.next_level == pytest.approx(level(0.05, 4, 1))
    assert progress.most_false == pytest.approx(sum(candidate.level for candidate in progress.candidates))


def test_an_answer_is_known_as_long_as_the_incumbent_is_the_same(ledger):
    progress = tried(ledger, [-1.0])
    setup = progress.candidates[0].setup
    assert progress.answered(setup)[1].decision == "rejected"
    assert progress.answered(Setup(settings={"trainer.rate": 5.0})) is None
    winner = begin(ledger, 7.0)
    finish(ledger, winner, 4.0)
    progress = fold(ledger.entries)
    assert progress.answered(setup) is None
    assert progress.answered(winner.setup) is None, "it is the incumbent"


def test_a_candidate_without_an_answer_is_unfinished_and_may_be_tried_again(ledger):
    candidate = begin(ledger, 1.0)
    assert fold(ledger.entries).unfinished == candidate
    ledger.append(Decided(number=1, decision="given up", reason="", look=0, pairs=()))
    progress = fold(ledger.entries)
    assert progress.unfinished is None
    assert progress.answered(candidate.setup) is None


def test_improvements_are_positive_whichever_direction_is_better():
    assert differences([(1.0, 3.0)], 1.0) == [2.0]
    assert differences([(1.0, 3.0)], -1.0) == [-2.0]


def test_an_incumbent_without_runs_has_no_value(ledger):
    progress = tried(ledger, [4.0])
    progress.incumbent.outcomes = []
    assert progress.incumbent.value is None
    assert progress.incumbent.interval is None
    assert QUESTION.looks == (4, 8, 14, 20)
