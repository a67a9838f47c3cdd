"""Pathologies of one PPO update, with a description of each. Pure; the record itself keeps every number.

Each episode is judged alone. What only a whole run shows (a head that never had a choice) is left to the audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from esper_ab.contracts.records import EpisodeRecord, PPOUpdate
from esper_ab.journal.columns import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATIO_ALARM = 5.0  # probability ratio; above it one step moved the policy further than clipping can hold
FIRST_RATIO_ALARM = 1e-3  # |ratio - 1| before the first step, which is rounding if the update sees what the policy saw
# Nats per decision by heads that had a choice, below which the policy no longer explores. A density has no such place:
# that of continuous decisions is negative for every standard deviation below 0.24, on which a sound policy may settle.
COLLAPSED_ENTROPY = 1e-3
# Share of clipped ratios at which as many decisions give no gradient as give one. The mean over minibatches includes
# the first one, in which no ratio is clipped, so that an update that stops early cannot come much nearer to 1.
CLIPPED_SHARE = 0.5
# Returns are normalised to a variance of 1 and the loss is half the mean square: this is the loss of predicting their
# mean. With an explained variance of 0 or less as well, the critic that acted was worse than a constant (the usual
# reading of that diagnostic, as in OpenAI Baselines' `explained_variance`), and so is the updated one.
UNINFORMED_VALUE_LOSS = 0.5
UNTRAINED_UPDATES = 10  # a critic that explains nothing after fewer updates is untrained, not collapsed

NO_STEP, RATIO_MISMATCH, RATIO_EXPLOSION = "no step", "ratio mismatch", "ratio explosion"
RATIO_COLLAPSE, ENTROPY_COLLAPSE, VALUE_COLLAPSE = "ratio collapse", "entropy collapse", "value collapse"


def pathologies(record: EpisodeRecord) -> dict[str, str]:
    """Return kind -> one line with its number; empty for a sound update and for a controller that does not learn."""
    if record.ppo is None:
        return {}
    return dict(_found(record.ppo, judge_values=record.episode >= UNTRAINED_UPDATES))  # one update per episode


def count_pathologies(columns: Columns) -> dict[str, int]:
    """Count the episodes of a run by pathology, only kinds that occur; equals `pathologies` of every record."""
    import numpy as np  # imported here because the coordinator uses `pathologies` without numpy

    def of(name: str) -> NDArray[np.float64]:
        return np.array(columns.of(name))  # comparisons with NaN, which is None here, are false

    learns = of("learns") == 1.0
    chose = np.zeros(len(columns), dtype=np.bool_)
    for head in columns.heads:
        chose |= np.array(columns.head(head)[1]) > 0.0
    found = {
        NO_STEP: learns & (np.isnan(of("policy_loss")) | np.isnan(of("grad_norm"))),
        RATIO_EXPLOSION: of("ratio_max") >= RATIO_ALARM,
        RATIO_MISMATCH: of("first_ratio_error") >= FIRST_RATIO_ALARM,
        RATIO_COLLAPSE: of("clip_fraction") >= CLIPPED_SHARE,
        ENTROPY_COLLAPSE: chose & (of("entropy") < COLLAPSED_ENTROPY),
        VALUE_COLLAPSE: (of("explained_variance") <= 0.0) & (of("value_loss") >= UNINFORMED_VALUE_LOSS)
        & (np.array(columns.episodes) >= UNTRAINED_UPDATES),
    }
    return {kind: int(where.sum()) for kind, where in found.items() if where.any()}


def _found(ppo: PPOUpdate, *, judge_values: bool) -> Iterator[tuple[str, str]]:
    if ppo.policy_loss is None or ppo.grad_norm is None:
        why = "a loss or a gradient was not finite, or no step valid"
        yield NO_STEP, f"the update stopped before its first complete step: {why}"
    if _at_least(ppo.ratio_max, RATIO_ALARM):
        yield RATIO_EXPLOSION, f"probability ratio up to {ppo.ratio_max:.1f}"
    if _at_least(ppo.first_ratio_error, FIRST_RATIO_ALARM):
        yield RATIO_MISMATCH, f"the ratio before the first step is off 1 by {ppo.first_ratio_error:.1e}"
    if _at_least(ppo.clip_fraction, CLIPPED_SHARE):
        yield RATIO_COLLAPSE, f"{100 * (ppo.clip_fraction or 0.0):.0f} % of the probability ratios were clipped"
    chose = any(use.learnable > 0.0 for use in ppo.heads.values())
    if chose and ppo.entropy is not None and ppo.entropy < COLLAPSED_ENTROPY:
        yield ENTROPY_COLLAPSE, f"entropy collapsed to {ppo.entropy:.1e} nats per decision"
    if judge_values and _uninformed(ppo):
        said = f"explained variance {ppo.explained_variance:.2f}, value loss {ppo.value_loss:.2f} of normalised returns"
        yield VALUE_COLLAPSE, f"the critic knows less than a constant: {said}"


def _at_least(number: float | None, alarm: float) -> bool:
    return number is not None and number >= alarm


def _uninformed(ppo: PPOUpdate) -> bool:
    variance = ppo.explained_variance
    return variance is not None and variance <= 0.0 and _at_least(ppo.value_loss, UNINFORMED_VALUE_LOSS)
