"""What in a record could confound the comparison, as ledger entries. Pure; the record itself keeps every number."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord, PPOUpdate
from esper_ab.journal.events import Ledger

RATIO_ALARM = 5.0  # a probability ratio beyond it: one step moved the policy further than clipping can hold
FIRST_RATIO_ALARM = 1e-3  # before the first step the ratio is 1 up to rounding: the update sees what the policy saw
COLLAPSED_ENTROPY = 1e-3  # nats per decision: the policy no longer explores


def findings(record: EpisodeRecord | EvaluationRecord) -> Iterator[Ledger]:
    """Entries for diverged hosts and for what went wrong in the policy's update."""
    run = record.run.run
    if isinstance(record, EvaluationRecord):
        yield from _diverged(run, None, [episode.env for episode in record.episodes])
        return
    yield from _diverged(run, record.episode, list(record.envs))
    if record.ppo is not None:
        for detail in _pathologies(record.ppo):
            yield Ledger(category="ppo_pathology", run=run, episode=record.episode, detail=detail)


def _diverged(run: str, episode: int | None, envs: list[EnvEpisode]) -> Iterator[Ledger]:
    broken = [env.env for env in envs if env.diverged]
    if broken:
        where = "evaluation hosts" if episode is None else "hosts"
        detail = f"{len(broken)} of {len(envs)} {where} diverged (environments {', '.join(map(str, broken))})"
        yield Ledger(category="non_finite", run=run, episode=episode, detail=detail)


def _pathologies(ppo: PPOUpdate) -> Iterator[str]:
    if ppo.policy_loss is None or ppo.grad_norm is None:
        yield "the update stopped before its first complete step: a loss or a gradient was not finite, or no step valid"
    if ppo.ratio_max is not None and ppo.ratio_max > RATIO_ALARM:
        yield f"probability ratio up to {ppo.ratio_max:.1f}"
    if ppo.first_ratio_error is not None and ppo.first_ratio_error > FIRST_RATIO_ALARM:
        yield f"the ratio before the first step is off 1 by {ppo.first_ratio_error:.1e}"
    if ppo.entropy is not None and ppo.entropy < COLLAPSED_ENTROPY:
        yield f"entropy collapsed to {ppo.entropy:.1e} nats per decision"
