"""What masks permit, head by head, in every state that can be reached."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.growth_world import Episode, make_lifecycle, random_decisions

from workers.growth.rules.masks import DecisionMasks
from workers.vocabulary import HEADS


def permitted_head_by_head(masks: DecisionMasks, decision: list[int]) -> bool:
    """What a decision may say, from the masks' definition: each head given all heads before it."""
    for head, said in enumerate(decision):
        mask = masks.mask(head, np.array([decision[:head]] * 2, dtype=np.int64).reshape(2, head))[0]
        if not (0 <= said < len(mask) and mask[said] if mask.any() else said == 0):
            return False
    return True


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_a_decision_is_permitted_where_each_head_is_given_those_before(rng_seed: int) -> None:
    """Anything may be said, sensible or not, in any state that can be reached."""
    rng = np.random.default_rng(rng_seed)
    game = Episode(make_lifecycle(2, 12), rng)
    for step in range(1, 13):
        view = game.view(step)
        for _ in range(20):
            wish = random_decisions(view.masks, rng)
            at = rng.integers(0, len(HEADS), 2)
            wish[0, at] = rng.integers(-1, np.array(view.masks.sizes)[at] + 1)
            assert view.masks.permits(wish).tolist() == [permitted_head_by_head(view.masks, wish[0].tolist()), True]
        game.act(random_decisions(view.masks, rng), step)
