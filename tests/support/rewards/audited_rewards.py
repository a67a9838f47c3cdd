"""Reward audits with given outcomes and returns, and plausible numbers elsewhere."""

from collections.abc import Mapping, Sequence

from esper_ab.contracts.reward_audit import (
    SCHEMA,
    AuditedReward,
    FoundBehaviour,
    Played,
    RewardAudit,
    RewardAuditAnswer,
    RewardAuditQuestion,
    Scored,
    Varied,
)
from esper_ab.contracts.settings import Arithmetic, GrowthSettings, RewardSettings

REFERENCES = 2  # the first behaviours of `make_reward_audit`
STEPS = 4


def make_played(place: int, outcome: float) -> Played:
    reference = place < REFERENCES
    return Played(
        name=f"reference {place}" if reference else f"random {place}",
        words=f"words of {place}",
        kind="reference" if reference else "random",
        schedule=("1:germinate:early",),
        controller="schedule",
        held_out_accuracy=(outcome - 1, outcome + 1),
        val_accuracy=outcome,
        best_val_accuracy=outcome,
        params_added=10.0,
        fossilized=1.0,
        contributing=0.0,
        pruned=0.0,
        diverged=0,
    )


def make_scored(
    name: str,
    returns: Sequence[float],
    *,
    varied_constants: Sequence[Varied] = (),
    by_step: Sequence[float] = (0, 0, 0, 1.0),
    found_behaviour: FoundBehaviour | None = None,
    sha256: str = "",
    **constants: object,
) -> Scored:
    return Scored(
        reward=AuditedReward(name=name, settings=RewardSettings(mode=name, **constants)),
        sha256=sha256,
        returns=tuple((value - 0.5, value + 0.5) for value in returns),
        by_step=tuple(by_step),
        largest=3.0,
        varied=tuple(varied_constants),
        found=found_behaviour,
    )


def make_reward_audit(
    outcomes: Sequence[float],
    rewards: Mapping[str, Sequence[float]] | Sequence[Scored],
    slots: tuple[str, ...] = ("early", "mid", "late"),
) -> RewardAudit:
    """Return a reward audit.

    `outcomes`: those of two reference behaviours, then those of random schedules. `rewards`: by reward mode, the
    returns of the same behaviours and schedules.
    """
    scored_rewards = [make_scored(*item) for item in rewards.items()] if isinstance(rewards, Mapping) else rewards
    question = RewardAuditQuestion(
        task="synthetic",
        data_dir="",
        slots=(),
        rewards=tuple(scored_reward.reward for scored_reward in scored_rewards),
        steps=STEPS,
        schedules=len(outcomes) - REFERENCES,
        hosts=2,
        searched=0,
        growth=GrowthSettings(),
        rng_seed=0,
        device="cpu",
        arithmetic=None,
    )
    answer = RewardAuditAnswer(
        arithmetic=Arithmetic(),
        torch_version="2",
        slots=slots,
        scored=tuple(scored_rewards),
        found_by_accuracy=None,
        behaviours=tuple(make_played(place, outcome) for place, outcome in enumerate(outcomes)),
    )
    return RewardAudit(schema=SCHEMA, digest="d" * 64, question=question, sources="s", answer=answer)
