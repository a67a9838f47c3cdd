"""Detect and describe pathologies of one PPO update. Pure; the record itself keeps every number.

Each episode is judged alone. The audit finds faults that only a whole run shows, such as a head that never had a
choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from esper_ab.contracts.records import EpisodeRecord
from esper_ab.journal.columns import Columns

# Largest probability ratio of an update: above it one step moved the policy further than clipping can hold. It is that
# of the rarest among hundreds of decisions. In 504 updates with default settings (12 runs of synthetic, 2 of digits)
# its median was 2.5; it was between 5 and 10 in ten updates, and above 10 in one.
RATIO_ALARM = 10.0
FIRST_RATIO_ALARM = 1e-3  # |ratio - 1| before the first step; only rounding if the update sees what the policy saw
# Entropy in nats per decision, over heads that had a choice; below it, the policy no longer explores. The entropy of a
# density has no such threshold: with continuous decisions, a sound policy may settle on a standard deviation below
# 0.24, where the entropy is negative.
COLLAPSED_ENTROPY = 1e-3
# Share of clipped ratios: at one half, as many decisions give no gradient as give one. An update that stops early
# cannot get much above one half, because its mean includes the first minibatch, in which no ratio is clipped.
CLIPPED_SHARE = 0.5
# The value loss of predicting the mean: returns are normalised to variance 1, and the loss is half the mean square. If
# the explained variance is 0 or less as well, the critic was worse than a constant when it acted (the usual reading,
# as in OpenAI Baselines' `explained_variance`), and it still is after the update.
UNINFORMED_VALUE_LOSS = 0.5
UNTRAINED_UPDATES = 10  # a critic that explains nothing after fewer updates is untrained, not collapsed

NO_STEP = "no step"
RATIO_MISMATCH = "ratio mismatch"
RATIO_EXPLOSION = "ratio explosion"
RATIO_COLLAPSE = "ratio collapse"
ENTROPY_COLLAPSE = "entropy collapse"
VALUE_COLLAPSE = "value collapse"


def pathologies(record: EpisodeRecord) -> dict[str, str]:
    """Return the pathologies found, by kind; each is described in one line, with the number that shows it.

    Returns {} if the update is sound, or if there is no learner.
    """
    ppo = record.ppo
    if ppo is None:
        return {}

    def number_of(name: str) -> float:
        value: float | None = getattr(ppo, name)
        return math.nan if value is None else value

    chose = any(use.learnable > 0.0 for use in ppo.heads.values())
    judged_kinds = _judge(number_of, learns=True, has_choice=chose, episodes=record.episode)  # one update per episode
    return {kind: _describe(kind, number_of) for kind, is_found in judged_kinds.items() if is_found}


def _describe(kind: str, number_of: Callable[[str], float]) -> str:
    """Describe a pathology of one update; `number_of` returns a number of the update by name."""
    if kind == NO_STEP:
        return (
            "the update stopped before its first complete step: a loss or gradient was not finite, or no step was valid"
        )
    if kind == RATIO_EXPLOSION:
        return (
            f"one update made a decision {number_of('ratio_max'):.1f} times as likely; lower ppo.lr if the report "
            "counts more "
            "than a few"
        )
    if kind == RATIO_MISMATCH:
        return f"the ratio before the first step differs from 1 by {number_of('first_ratio_error'):.1e}"
    if kind == RATIO_COLLAPSE:
        return f"{100 * number_of('clip_fraction'):.0f} % of the probability ratios were clipped"
    if kind == ENTROPY_COLLAPSE:
        return f"entropy collapsed to {number_of('entropy'):.1e} nats per decision"
    values = f"explained variance {number_of('explained_variance'):.2f}, value loss {number_of('value_loss'):.2f}"
    return f"the critic predicts worse than a constant: {values} of normalised returns"


def count_pathologies(columns: Columns) -> dict[str, int]:
    """Count the episodes of a run by pathology, as `pathologies` finds them; kinds that do not occur are omitted."""
    import numpy as np  # imported here because the coordinator uses `pathologies` without numpy

    has_choice = np.zeros(len(columns), dtype=np.bool_)
    for head in columns.heads:
        _, learnable = columns.head(head)
        has_choice |= np.array(learnable) > 0.0
    judged_kinds = _judge(
        lambda name: np.array(columns.of(name)),
        learns=np.array(columns.of("learns")) == 1.0,
        has_choice=has_choice,
        episodes=np.array(columns.episodes),
    )
    counts = {kind: int(update_mask.sum()) for kind, update_mask in judged_kinds.items()}
    return {kind: count for kind, count in counts.items() if count}


def _judge(number_of: Callable[[str], Any], *, learns: Any, has_choice: Any, episodes: Any) -> dict[str, Any]:
    """Return by kind whether an update has the pathology. Arguments are numbers of one update, or arrays for many.

    `number_of`: returns a number of the update by name; NaN where it is absent, which compares false except with !=.
    """
    loss = number_of("policy_loss")
    norm = number_of("grad_norm")
    no_step = (loss != loss) | (norm != norm)
    uninformed_mask = (number_of("explained_variance") <= 0.0) & (number_of("value_loss") >= UNINFORMED_VALUE_LOSS)
    return {
        NO_STEP: learns & no_step,
        RATIO_EXPLOSION: number_of("ratio_max") >= RATIO_ALARM,
        RATIO_MISMATCH: number_of("first_ratio_error") >= FIRST_RATIO_ALARM,
        RATIO_COLLAPSE: number_of("clip_fraction") >= CLIPPED_SHARE,
        ENTROPY_COLLAPSE: has_choice & (number_of("entropy") < COLLAPSED_ENTROPY),
        VALUE_COLLAPSE: uninformed_mask & (episodes >= UNTRAINED_UPDATES),
    }
