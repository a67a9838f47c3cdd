"""What masks permit, head by head, in every state that can be reached."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.growth_world import Episode, make_lifecycle, random_decisions

from workers.growth.rules.masks import DecisionMasks
from workers.vocabulary import HEADS


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_any_head_outside_its_mask_is_refused(rng_seed: int) -> None:
    rng = np.random.default_rng(rng_seed)
    game = Episode(make_lifecycle(6, 12), rng)
    for step in range(1, 13):
        view = game.view(step)
        decisions = random_decisions(view.masks, rng)
        assert view.masks.permits(decisions).all()
        for head, size in enumerate(view.masks.sizes):
            mask = view.masks.mask(head, decisions[:, :head])
            for env in range(6):
                forbidden = [v for v in (-1, *range(size), size) if not 0 <= v < size or not mask[env, v]]
                if not mask[env].any():
                    forbidden.remove(0)
                wrong = decisions.copy()
                wrong[env, head] = rng.choice(forbidden)
                expected = np.ones(6, dtype=bool)
                expected[env] = False
                assert view.masks.permits(wrong).tolist() == expected.tolist()
        game.act(decisions, step)


def permitted_head_by_head(masks: DecisionMasks, decision: list[int]) -> bool:
    """What a decision may say, from the masks' definition: each head given all heads before it."""
    for head, said in enumerate(decision):
        mask = masks.mask(head, np.array([decision[:head]], dtype=np.int64).reshape(1, head))[0]
        if not (0 <= said < len(mask) and mask[said] if mask.any() else said == 0):
            return False
    return True


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_a_decision_is_permitted_where_each_head_is_given_those_before(rng_seed: int) -> None:
    """Anything may be said, sensible or not, in any state that can be reached."""
    rng = np.random.default_rng(rng_seed)
    game = Episode(make_lifecycle(1, 12), rng)
    for step in range(1, 13):
        view = game.view(step)
        for _ in range(20):
            wish = random_decisions(view.masks, rng)
            at = rng.integers(0, len(HEADS), 2)
            wish[0, at] = rng.integers(-1, np.array(view.masks.sizes)[at] + 1)
            assert view.masks.permits(wish)[0] == permitted_head_by_head(view.masks, wish[0].tolist())
        game.act(random_decisions(view.masks, rng), step)
