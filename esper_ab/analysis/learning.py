"""How far the policies of each learning group have come, and what limits them. Pure; descriptive, never a test.

The first episode is played by the untrained policy, so its numbers are what chance comes to from the start of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from esper_ab.journal.columns import OPS
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import RunOutcome, mean, mean_known

GAP_POINTS = 5.0  # between greedy and sampled accuracy, from which on it is commented on
_PRUNE, _FOSSILIZE = OPS[3], OPS[4]
_UNDECIDED = 0.8  # of the entropy of a uniform choice among the valid ops
_UNUSED = 0.2  # of the target KL
_HURRIED = 0.8  # of the updates, stopped by the target KL


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """Learning of one group, means over its runs; None where nothing is recorded."""

    group: str
    updates: float  # per run
    hosts: float  # grown in training, per run
    trust_region: float | None  # KL of an update, mean over its minibatches, as a share of ppo.target_kl
    stopped_by_kl: float | None  # share of the updates
    op_entropy: float | None  # of the last tenth of the updates, as a share of a uniform choice among valid ops
    prunes_first: float | None  # prune decisions per host in the first episode
    prunes_last: float | None  # the same in the last tenth of the episodes
    fossils_first: float | None  # fossilise decisions per host
    fossils_last: float | None
    sampled: float | None  # held-out accuracy of the evaluation, percent
    greedy: float | None
    limit: str  # one sentence


def learning(history: History, outcomes: Mapping[str, RunOutcome]) -> tuple[Learning, ...]:
    """Return one `Learning` per group with recorded updates, in the order of the experiment."""
    groups = {group: [run for run in history.of_group(group) if any(run.columns.of("learns"))]
              for group in history.groups}  # fmt: skip
    return tuple(_of_group(group, runs, outcomes) for group, runs in groups.items() if runs)


def greedy_gap(sampled: float | None, greedy: float | None) -> str:
    """Comment on a large difference of greedy and sampled accuracy, percent both; "" for a small or unknown one."""
    if sampled is None or greedy is None or abs(greedy - sampled) < GAP_POINTS:
        return ""
    if greedy > sampled:
        return (
            f"its greedy actions reach {greedy:.1f} % and its sampled ones {sampled:.1f} %: it prefers better actions "
            "than it often takes, so more updates are likely to help"
        )
    return (
        f"its greedy actions reach {greedy:.1f} % and its sampled ones {sampled:.1f} %: its most probable action alone "
        "leads nowhere, such as WAIT in every step"
    )


def _of_group(group: str, runs: Sequence[RunHistory], outcomes: Mapping[str, RunOutcome]) -> Learning:
    target = runs[0].spec.settings.ppo.target_kl
    kl = _over(runs, "approx_kl", _all)
    ends = [outcomes[run.ref.name] for run in runs]
    found = Learning(
        group=group,
        updates=math.fsum(sum(run.columns.of("learns")) for run in runs) / len(runs),
        hosts=math.fsum(sum(run.columns.of("envs")) for run in runs) / len(runs),
        trust_region=None if kl is None else kl / target,
        stopped_by_kl=_over(runs, "stopped_by_kl", _all),
        op_entropy=mean(mean_known(_last(run.columns.head("op")[0])) for run in runs if "op" in run.columns.heads),
        prunes_first=_over(runs, _PRUNE, _first),
        prunes_last=_over(runs, _PRUNE, _last),
        fossils_first=_over(runs, _FOSSILIZE, _first),
        fossils_last=_over(runs, _FOSSILIZE, _last),
        sampled=mean(end.held_out_accuracy for end in ends),
        greedy=mean(end.greedy_accuracy for end in ends),
        limit="",
    )
    return msgspec.structs.replace(found, limit=f"{group}: {_limit(found, learns=runs[0].spec.settings.ppo.lr > 0)}.")


def _limit(found: Learning, *, learns: bool) -> str:
    """Name the first that applies of what may keep the policies from being better."""
    if not learns:
        return "the learning rate is 0, so the policy is the untrained one"
    gap = greedy_gap(found.sampled, found.greedy)
    if found.op_entropy is not None and found.op_entropy > _UNDECIDED:
        also = f"; {gap}" if gap else ""
        return (
            f"the policy is still close to uniform ({100 * found.op_entropy:.0f} % of the entropy of a random choice "
            f"of op): more updates before comparing rewards{also}"
        )
    if gap:
        return gap
    if found.trust_region is not None and found.trust_region < _UNUSED:
        return (
            f"an update uses {100 * found.trust_region:.0f} % of the trust region: larger steps (ppo.lr, "
            "ppo.minibatches) would learn faster"
        )
    if found.stopped_by_kl is not None and found.stopped_by_kl > _HURRIED:
        return (
            f"{100 * found.stopped_by_kl:.0f} % of the updates stop at the target KL: a smaller ppo.lr would use more "
            "of each episode"
        )
    return f"none of the known limits; {found.updates:.0f} updates on {found.hosts:.0f} hosts per run"


def _over(runs: Sequence[RunHistory], name: str, part: Callable[[Sequence[float]], Iterable[float]]) -> float | None:
    """Return the mean over runs of the mean of a part of a column."""
    return mean(mean_known(part(run.columns.of(name))) for run in runs)


def _all(column: Sequence[float]) -> Sequence[float]:
    return column


def _first(column: Sequence[float]) -> Sequence[float]:
    return column[:1]


def _last(column: Sequence[float]) -> Sequence[float]:
    """Return the last tenth, at least one."""
    return column[-math.ceil(len(column) / 10) :]
