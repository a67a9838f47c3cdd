"""Wins, A12 and Cliff's delta against their definitions and the U of Mann and Whitney."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.paired import columns, paired

from esper_ab.stats.descriptive.improvement import in_words, probability_of_improvement
from esper_ab.stats.descriptive.mann_whitney import mann_whitney


@given(paired, st.randoms(use_true_random=False))
def test_swapping_groups_turns_wins_into_losses_and_order_is_irrelevant(rows, random):
    a, b = columns(rows)
    wins, losses = probability_of_improvement(a, b), probability_of_improvement(b, a)
    assert (wins.wins, wins.ties, wins.losses) == (losses.losses, losses.ties, losses.wins)
    assert wins.a12 + losses.a12 == pytest.approx(1.0, abs=1e-12)
    random.shuffle(rows)
    assert probability_of_improvement(*columns(rows)) == wins


@given(paired)
def test_a12_is_u_over_all_combinations(rows):
    a, b = columns(rows)
    assert probability_of_improvement(a, b).a12 == pytest.approx(mann_whitney(a, b).u / len(rows) ** 2, abs=1e-12)


def test_improvement_in_words():
    result = probability_of_improvement([3.0, 1.0, 2.0], [1.0, 2.0, 2.0])
    assert in_words("x", "y", result) == "x beats y in 1 of 3 pairs, 1 tied"


@given(paired)
def test_cliffs_delta_by_its_definition(rows):
    a, b = columns(rows)
    above, below = (np.mean(op(np.subtract.outer(a, b), 0.0)) for op in (np.greater, np.less))
    delta = probability_of_improvement(a, b).cliffs_delta
    assert delta == pytest.approx(above - below, abs=1e-12)
    assert delta == pytest.approx(2.0 * mann_whitney(a, b).u / len(rows) ** 2 - 1.0, abs=1e-12)
