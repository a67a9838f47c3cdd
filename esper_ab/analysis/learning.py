"""How far the policies of each learning group have come, and what limits them. Pure; descriptive, never a test.

The first episode is played by the untrained policy, so its numbers show what chance gives from the start of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from esper_ab.analysis.conduct import learners
from esper_ab.design.design import Design
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import RunOutcome, mean, mean_known

GAP_MARGINS = 2.5  # difference between greedy and sampled outcome, in margins, from which it is mentioned
_UNDECIDED = 0.8  # share of a uniform choice's entropy; above it, the policy is nearly uniform
_UNUSED = 0.2  # share of the target KL; below it, larger steps would learn faster
_HURRIED = 0.8  # share of the updates that stop at the target KL; above it, a smaller lr would help


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """Learning of one group, as means over its runs; None if nothing is recorded."""

    group: str
    learns: bool  # if False, the learning rate is 0 and the policy stays untrained
    updates: float  # per run
    episodes: float  # training episodes of single environments, per run
    # Mean KL over the minibatches of an update, as a share of ppo.target_kl. Also None if an update is a single step,
    # because the KL is measured before each step.
    trust_region: float | None
    stopped_by_kl: float | None  # share of the updates
    head: str  # the policy's first head, which every decision uses; "" if none is recorded
    head_entropy: float | None  # its entropy in the last tenth of the updates, as a share of a uniform choice
    first: dict[str, float | None]  # declared measures in the first episode
    last: dict[str, float | None]  # the same in the last tenth of the episodes
    sampled: float | None  # outcome of the evaluation
    greedy: float | None
    limit: str  # one sentence


def learning(history: History, outcomes: Mapping[str, RunOutcome]) -> tuple[Learning, ...]:
    """Return one `Learning` per group with recorded updates, in the order of the experiment."""
    return tuple(_group_learning(history.design, group, runs, outcomes) for group, runs in learners(history).items())


def unsettled(design: Design, learnings: Iterable[Learning]) -> list[str]:
    """Return the groups whose policies are near uniform, or do much better with greedy than with sampled actions."""
    groups = []
    for progress in learnings:
        near_uniform = progress.head_entropy is not None and progress.head_entropy > _UNDECIDED
        greedy_is_better = _gain(design, progress.sampled, progress.greedy) > 0.0
        if progress.learns and (near_uniform or greedy_is_better):
            groups.append(progress.group)
    return groups


def greedy_gap(design: Design, sampled_outcome: float | None, greedy_outcome: float | None) -> str:
    """Comment on a large difference between greedy and sampled outcome; "" if it is small or unknown."""
    gain = _gain(design, sampled_outcome, greedy_outcome)
    if sampled_outcome is None or greedy_outcome is None or gain == 0.0:
        return ""
    reach = f"it scores {design.value(greedy_outcome)} acting greedily and {design.value(sampled_outcome)} sampling"
    if gain > 0.0:
        return f"{reach}: it has not converged, and more training would probably help"
    return f"{reach}: its most probable action alone leads nowhere"


def _gain(design: Design, sampled_outcome: float | None, greedy_outcome: float | None) -> float:
    """Return by how much the greedy outcome is better; 0 if the difference is small or unknown."""
    if (
        sampled_outcome is None
        or greedy_outcome is None
        or abs(greedy_outcome - sampled_outcome) < GAP_MARGINS * design.margin
    ):
        return 0.0
    return (greedy_outcome - sampled_outcome) * design.outcome.sign


def _group_learning(
    design: Design, group: str, runs: Sequence[RunHistory], outcomes: Mapping[str, RunOutcome]
) -> Learning:
    settings = runs[0].spec.settings
    ppo = settings.ppo
    trust_region = None
    if ppo.epochs * ppo.minibatches > 1:
        kl = _mean_of_column(runs, "approx_kl")
        if kl is not None:
            trust_region = kl / ppo.target_kl
    head = ""
    if runs[0].columns.heads:
        head = runs[0].columns.heads[0]
    run_outcomes = [outcomes[run.ref.name] for run in runs]
    progress = Learning(
        group=group,
        learns=settings.learns,
        updates=_sum(runs, "learns") / len(runs),
        episodes=_sum(runs, "envs") / len(runs),
        trust_region=trust_region,
        stopped_by_kl=_mean_of_column(runs, "stopped_by_kl"),
        head=head,
        head_entropy=_final_entropy(runs, head),
        first=_measured(runs, _first),
        last=_measured(runs, _last),
        sampled=mean(outcome.evaluated for outcome in run_outcomes),
        greedy=mean(outcome.greedy for outcome in run_outcomes),
        limit="",
    )
    return msgspec.structs.replace(progress, limit=f"{group}: {_limit(design, progress)}.")


def _limit(design: Design, progress: Learning) -> str:
    """Return the first applicable reason why the policies may not be better."""
    if not progress.learns:
        return "the learning rate is 0, so the policy is the untrained one"
    gap = greedy_gap(design, progress.sampled, progress.greedy)
    if progress.head_entropy is not None and progress.head_entropy > _UNDECIDED:
        greedy_note = f"; {gap}" if gap else ""
        return (
            f"the policy is still nearly uniform ({100 * progress.head_entropy:.0f} % of the entropy of a uniform "
            f"choice of {progress.head}); train it longer before comparing rewards{greedy_note}"
        )
    if gap:
        return gap
    if progress.stopped_by_kl is not None and progress.stopped_by_kl > _HURRIED:
        return (
            f"{100 * progress.stopped_by_kl:.0f} % of the updates stop at the target KL: a smaller ppo.lr would use "
            "more of each episode"
        )
    if progress.trust_region is not None and progress.trust_region < _UNUSED:
        return (
            f"an update uses {100 * progress.trust_region:.0f} % of the trust region: larger steps (ppo.lr, "
            "ppo.minibatches) would learn faster"
        )
    return f"no known limit applies; {progress.updates:.0f} updates from {progress.episodes:.0f} episodes per run"


def _sum(runs: Sequence[RunHistory], name: str) -> float:
    """Return the sum of a column over all runs."""
    return math.fsum(sum(run.columns.of(name)) for run in runs)


def _mean_of_column(runs: Sequence[RunHistory], name: str) -> float | None:
    """Return the mean over runs of the mean of a column."""
    return mean(mean_known(run.columns.of(name)) for run in runs)


def _final_entropy(runs: Sequence[RunHistory], head: str) -> float | None:
    """Return the mean over runs of a head's entropy in the last tenth of the updates."""
    entropies = []
    for run in runs:
        if head in run.columns.heads:
            entropy, _ = run.columns.head(head)
            entropies.append(mean_known(_last(entropy)))
    return mean(entropies)


def _measured(
    runs: Sequence[RunHistory], part: Callable[[Sequence[float]], Iterable[float]]
) -> dict[str, float | None]:
    """Return, by declared measure, the mean over runs of the mean of a part of its column."""
    means = {}
    for name in runs[0].columns.measures:
        means[name] = mean(mean_known(part(run.columns.measure(name))) for run in runs)
    return means


def _first(column: Sequence[float]) -> Sequence[float]:
    return column[:1]


def _last(column: Sequence[float]) -> Sequence[float]:
    """Return the last tenth, at least one value."""
    return column[-math.ceil(len(column) / 10) :]
