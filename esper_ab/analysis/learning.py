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
    return tuple(_of_group(history.design, group, runs, outcomes) for group, runs in learners(history).items())


def unsettled(design: Design, learned: Iterable[Learning]) -> list[str]:
    """Return the groups whose policies are near uniform, or do much better with greedy than with sampled actions."""
    return [
        one.group
        for one in learned
        if one.learns and ((one.head_entropy or 0.0) > _UNDECIDED or _gain(design, one.sampled, one.greedy) > 0.0)
    ]


def greedy_gap(design: Design, sampled: float | None, greedy: float | None) -> str:
    """Comment on a large difference between greedy and sampled outcome; "" if it is small or unknown."""
    gain = _gain(design, sampled, greedy)
    if sampled is None or greedy is None or gain == 0.0:
        return ""
    reach = f"it scores {design.value(greedy)} acting greedily and {design.value(sampled)} sampling"
    if gain > 0.0:
        return f"{reach}: it has not converged, and more training would probably help"
    return f"{reach}: its most probable action alone leads nowhere"


def _gain(design: Design, sampled: float | None, greedy: float | None) -> float:
    """Return by how much the greedy outcome is better; 0 if the difference is small or unknown."""
    if sampled is None or greedy is None or abs(greedy - sampled) < GAP_MARGINS * design.margin:
        return 0.0
    return (greedy - sampled) * design.outcome.sign


def _of_group(design: Design, group: str, runs: Sequence[RunHistory], outcomes: Mapping[str, RunOutcome]) -> Learning:
    ppo = runs[0].spec.settings.ppo
    kl = _over(runs, "approx_kl") if ppo.epochs * ppo.minibatches > 1 else None
    ends = [outcomes[run.ref.name] for run in runs]
    head = runs[0].columns.heads[0] if runs[0].columns.heads else ""
    found = Learning(
        group=group,
        learns=runs[0].spec.settings.learns,
        updates=math.fsum(sum(run.columns.of("learns")) for run in runs) / len(runs),
        episodes=math.fsum(sum(run.columns.of("envs")) for run in runs) / len(runs),
        trust_region=None if kl is None else kl / ppo.target_kl,
        stopped_by_kl=_over(runs, "stopped_by_kl"),
        head=head,
        head_entropy=mean(mean_known(_last(run.columns.head(head)[0])) for run in runs if head in run.columns.heads),
        first=_measured(runs, lambda column: column[:1]),
        last=_measured(runs, _last),
        sampled=mean(end.evaluated for end in ends),
        greedy=mean(end.greedy for end in ends),
        limit="",
    )
    return msgspec.structs.replace(found, limit=f"{group}: {_limit(design, found)}.")


def _limit(design: Design, found: Learning) -> str:
    """Return the first applicable reason why the policies may not be better."""
    if not found.learns:
        return "the learning rate is 0, so the policy is the untrained one"
    gap = greedy_gap(design, found.sampled, found.greedy)
    if found.head_entropy is not None and found.head_entropy > _UNDECIDED:
        also = f"; {gap}" if gap else ""
        return (
            f"the policy is still nearly uniform ({100 * found.head_entropy:.0f} % of the entropy of a uniform choice "
            f"of {found.head}); train it longer before comparing rewards{also}"
        )
    if gap:
        return gap
    if found.stopped_by_kl is not None and found.stopped_by_kl > _HURRIED:
        return (
            f"{100 * found.stopped_by_kl:.0f} % of the updates stop at the target KL: a smaller ppo.lr would use more "
            "of each episode"
        )
    if found.trust_region is not None and found.trust_region < _UNUSED:
        return (
            f"an update uses {100 * found.trust_region:.0f} % of the trust region: larger steps (ppo.lr, "
            "ppo.minibatches) would learn faster"
        )
    return f"no known limit applies; {found.updates:.0f} updates from {found.episodes:.0f} episodes per run"


def _over(runs: Sequence[RunHistory], name: str) -> float | None:
    """Return the mean over runs of the mean of a column."""
    return mean(mean_known(run.columns.of(name)) for run in runs)


def _measured(
    runs: Sequence[RunHistory], part: Callable[[Sequence[float]], Iterable[float]]
) -> dict[str, float | None]:
    """Return, by declared measure, the mean over runs of the mean of a part of its column."""
    names = runs[0].columns.measures
    return {name: mean(mean_known(part(run.columns.measure(name))) for run in runs) for name in names}


def _last(column: Sequence[float]) -> Sequence[float]:
    """Return the last tenth, at least one value."""
    return column[-math.ceil(len(column) / 10) :]
