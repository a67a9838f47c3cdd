"""Cross-evaluation and correlation: numbers computed by hand and by scipy, and records that are left out."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.journals.audited_journals import played_again, with_entry
from support.journals.ready_journals import planted_effect, three_groups, without_evaluations
from support.journals.synthetic import MODES

from esper_ab.analysis.cross import cross_evaluation
from esper_ab.journal.fold import fold
from esper_ab.stats.correlation import correlation

numbers = st.floats(-1e3, 1e3, allow_nan=False).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=30), st.randoms())
def test_correlations_equal_scipy(pairs, random):
    x, y = zip(*pairs, strict=True)
    result = correlation(x, y)
    assert correlation(y, x) == result
    random.shuffle(pairs)
    assert correlation(*zip(*pairs, strict=True)) == result
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert (result.pearson, result.spearman) == (None, None)
        return
    assert result.pearson == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert result.spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


def test_two_observations_have_no_correlation():
    assert correlation([1.0, 2.0], [3.0, 4.0]).pearson is None
    assert correlation([], []).n == 0


def test_observations_of_unequal_length_or_without_a_number_are_refused():
    with pytest.raises(ValueError, match="equal length"):
        correlation([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        correlation([1.0, 2.0, np.nan], [1.0, 2.0, 3.0])


def test_the_cross_evaluation_contains_means_over_runs():
    history = fold(three_groups())
    matrix = cross_evaluation(history)
    assert matrix.modes == MODES
    assert [row.group for row in matrix.rows] == list(history.groups)
    for row in matrix.rows:
        values_by_run = [
            np.mean([episode.rewards["sparse"] for episode in run.evaluation.episodes if episode.actions == "sampled"])
            for run in history.of_group(row.group)
        ]
        assert row.runs == len(values_by_run) == 6
        assert row.rewards["sparse"] == pytest.approx(np.mean(values_by_run), abs=1e-12)
    assert matrix.rows[0].outcome > matrix.rows[1].outcome > matrix.rows[2].outcome


def test_the_cross_evaluation_ignores_greedy_episodes():
    events = planted_effect()

    def spoil(_, episode):
        return episode if episode.actions == "sampled" else msgspec.structs.replace(episode, rewards={"sparse": 1e9})

    assert cross_evaluation(fold(played_again(events, spoil))) == cross_evaluation(fold(events))


def test_a_reward_proportional_to_the_outcome_correlates_fully():
    def replace_rewards(_, episode):
        accuracy = episode.result.outcome
        return msgspec.structs.replace(episode, rewards={"up": accuracy, "down": -2.0 * accuracy, "flat": 1.0})

    history = fold(played_again(planted_effect(), replace_rewards))
    meanings = {meaning.mode: meaning for meaning in cross_evaluation(history).meanings}
    for mode, sign in (("up", 1.0), ("down", -1.0)):
        for correlations in (meanings[mode].episodes, meanings[mode].runs):
            assert (correlations.pearson, correlations.spearman) == (pytest.approx(sign), pytest.approx(sign))
    assert (meanings["up"].episodes.n, meanings["up"].runs.n) == (2 * 6 * 8, 12)
    assert (meanings["flat"].episodes.pearson, meanings["flat"].runs.spearman) == (None, None)


def test_missing_rewards_leave_gaps_in_the_cross_evaluation():
    def replace_rewards(run, episode):
        own_rewards = {"mine": episode.result.outcome} if run.group_id == "shaped" else {}
        return msgspec.structs.replace(episode, rewards={"broken": None, **own_rewards})

    matrix = cross_evaluation(fold(played_again(planted_effect(), replace_rewards)))
    assert matrix.rows[0].rewards["mine"] == pytest.approx(matrix.rows[0].outcome)
    assert matrix.rows[1].rewards == {"broken": None, "mine": None}
    by_mode = {meaning.mode: meaning for meaning in matrix.meanings}
    assert by_mode["mine"].runs.n == 6
    assert by_mode["broken"].episodes.n == 0


def test_the_cross_evaluation_ignores_lost_runs():
    matrix = cross_evaluation(fold(with_entry("dropped_pair", "shaped/0")))
    assert [row.runs for row in matrix.rows] == [5, 6]


def test_the_cross_evaluation_is_empty_before_any_evaluation():
    for events in (planted_effect()[:1], without_evaluations(planted_effect())):
        matrix = cross_evaluation(fold(events))
        assert (matrix.modes, matrix.meanings) == ((), ())
        assert [(row.runs, row.outcome) for row in matrix.rows] == [(0, None), (0, None)]
