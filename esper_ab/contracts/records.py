"""Records of finished work, which workers report and the journal keeps.

Outcomes and measures may be compared between groups. Rewards may not, because each mode has its own scale.
Floats are finite or None: a worker replaces a non-finite number with None and reports this (`failed`, incidents).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# Path parts that decoding accepts: never absolute, no "..", no hidden files.
GROUP_NAME = "[A-Za-z0-9][A-Za-z0-9_.=+-]{0,63}"  # it names files, too
_PART = "[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,254}"
GroupName = Annotated[str, Meta(pattern=rf"\A{GROUP_NAME}\Z")]
FileBelow = Annotated[str, Meta(max_length=1024, pattern=rf"\A{_PART}(/{_PART})*\Z")]
# A relative path without "." and ".."; users may name their files freely.
_USERS_PART = r"(?!\.{1,2}(?:/|\Z))[^/\0]+"
CopyBelow = Annotated[  # "": there is none
    str, Meta(max_length=1024, pattern=rf"\A(?:{_USERS_PART}(?:/{_USERS_PART})*)?\Z")
]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
MOST_KEYS = 512  # largest map in any message
# Ranges of numbers, so that no reader has to expect others: sums and squares of numbers do not overflow, counts are
# exact as floats, and an index fits a column of 32 bits.
LARGEST_NUMBER = 1e100
LARGEST_COUNT = 2**53
Number = Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Seconds = Annotated[float, Meta(ge=-1e12, le=1e12)]  # a difference of clocks may be slightly negative
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Index = Annotated[int, Meta(ge=0, lt=2**31)]  # of a replicate, an episode, an environment or a step


def finite(number: float) -> float | None:
    """Return `number`, or None if it is not finite or not in the range of a record."""
    return number if abs(number) <= LARGEST_NUMBER else None


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Base of all records: immutable and keyword-only; decoding refuses unknown keys.

    gc=False because immutable structs cannot form cycles, and the garbage collector's scans would dominate decoding.
    """


class RunRef(Record, frozen=True, kw_only=True):
    """The identity of the run that a message or record belongs to."""

    name: Annotated[str, Meta(pattern=rf"\A{GROUP_NAME}/[0-9]+\Z")]  # "<group_id>/<replicate>"
    group_id: GroupName
    replicate: Index
    reward_mode: str
    controller: str
    device: str  # or devices: "cpu:0", "cuda:1", "cuda:0+cuda:1"


class EnvEpisode(Record, frozen=True, kw_only=True):
    """One episode in one environment."""

    env: Index
    device: str
    steps: Count  # done; fewer than planned only if the episode ended early
    # The number that decides comparisons, as the plan declares it; independent of policy and reward. None: no episode
    # ended in this training rollout; an evaluation always has one.
    outcome: Number | None
    reward_sum: Number | None
    failed: bool  # the environment broke down; the outcome is then the task's value for a breakdown
    # By the names that the plan declares, in their order; None if not measured.
    measures: Annotated[dict[str, Number | None], Meta(max_length=MOST_KEYS)]


class HeadUse(Record, frozen=True, kw_only=True):
    """Use of one action head in the decisions of a rollout, under the policy that made these decisions."""

    entropy: Number | None  # mean of entropy / ln(valid choices), 0 … 1, over decisions with a choice; None without any
    learnable: Number  # share of the valid decisions that used the head with more than one valid choice


class PPOUpdate(Record, frozen=True, kw_only=True):
    """Diagnostics of one policy update, averaged over its minibatches unless stated otherwise.

    The default values stand for an episode without a valid decision.
    """

    policy_loss: Number | None = None
    value_loss: Number | None = None
    entropy: Number | None = None  # joint entropy per decision over valid actions, nats, before the update
    op_entropy: Number | None = None  # of the op head only
    approx_kl: Number | None = None
    clip_fraction: Number | None = None
    explained_variance: Number | None = None
    grad_norm: Number | None = None  # before clipping
    first_ratio_error: Number | None = None  # max |ratio - 1| before the first optimiser step
    ratio_max: Number | None = None
    epochs_done: Count = 0
    stopped_by_kl: bool = False
    advantage_std: Number | None = None
    return_mean: Number | None = None
    # By head, in the order of the decision; empty without a valid decision.
    heads: Annotated[dict[str, HeadUse], Meta(max_length=MOST_KEYS)] = {}


class SeedEvent(Record, frozen=True, kw_only=True, array_like=True):
    """A change in a seed module's stage. `contribution` is the last measured contribution, in points."""

    env: Index
    step: Index
    slot: str
    event: Literal["germinated", "advanced", "retargeted", "prune_scheduled", "pruned", "fossilized", "emptied"]
    seed_id: str
    blueprint: str
    stage: str  # after the event
    alpha: Number
    contribution: Number | None
    params: Count


class Timing(Record, frozen=True, kw_only=True):
    """Wall times of one episode in seconds. They are never part of a digest."""

    total_s: Seconds
    train_s: Seconds
    validate_s: Seconds
    decide_s: Seconds
    update_s: Seconds


class EpisodeRecord(Record, frozen=True, kw_only=True):
    """One finished training episode of one run."""

    run: RunRef
    episode: Index  # 0 … E-1
    envs: tuple[EnvEpisode, ...]
    ppo: PPOUpdate | None  # None: the policy was not updated, as for a controller that does not learn
    seed_events: tuple[SeedEvent, ...]  # empty with telemetry off
    timing: Timing
    digest: str  # sha256 of everything that must not depend on group name, device, telemetry or time


class Checkpoint(Record, frozen=True, kw_only=True):
    """A reference to a run's full state at `milestone`; the file was on disk before the milestone's record was sent."""

    milestone: Index  # 1 … E: after training episode milestone - 1
    file: FileBelow  # relative to the experiment directory
    sha256: str
    size_bytes: Count


class EvaluatedEpisode(Record, frozen=True, kw_only=True):
    """One evaluation episode of the frozen policy in one environment."""

    episode: Index
    actions: Literal["sampled", "greedy"]
    result: EnvEpisode = msgspec.field(name="outcome")
    # The episode's reward under every mode, including those with which its policy was not trained.
    rewards: Annotated[dict[str, Number | None], Meta(max_length=MOST_KEYS)]


class EvaluationRecord(Record, frozen=True, kw_only=True):
    """The evaluation of a run's final policy with a frozen normaliser, on rng paths that all groups share."""

    run: RunRef
    episodes: tuple[EvaluatedEpisode, ...]
    policy_file: FileBelow  # relative to the experiment directory
    policy_sha256: str
    timing: Timing
    digest: str
