"""What in a record could confound the comparison, as incidents; the record itself keeps every number.

An entry stands for the first time that something happens in a run: the audit counts the rest from the records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from esper_ab.analysis.pathologies import pathologies
from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord
from esper_ab.journal.events import Incident

FAILED = "failed"


def confounders(record: EpisodeRecord | EvaluationRecord, known: Collection[str] = ()) -> Iterator[Incident]:
    """Yield entries for failed environments and for what went wrong in the policy's update.

    `known`: the confounders of earlier episodes of the run, which are not entered again. An evaluation has its own
    entry.
    """
    run = record.run.name
    if isinstance(record, EvaluationRecord):
        yield from _failed(run, None, [played.outcome for played in record.episodes])
        return
    if FAILED not in known:
        yield from _failed(run, record.episode, list(record.envs))
    for kind, detail in pathologies(record).items():
        if kind not in known:
            text = f"{kind}: {detail}"
            yield Incident(category="ppo_pathology", run_name=run, episode=record.episode, detail=text, confounder=kind)


def _failed(run: str, episode: int | None, envs: list[EnvEpisode]) -> Iterator[Incident]:
    broken = sorted({env.env for env in envs if env.failed})
    if broken:
        where = "evaluation episodes" if episode is None else "environments"
        count = sum(env.failed for env in envs)
        detail = f"{count} of {len(envs)} {where} failed (environments {', '.join(map(str, broken))})"
        confounder = msgspec.UNSET if episode is None else FAILED
        yield Incident(category="non_finite", run_name=run, episode=episode, detail=detail, confounder=confounder)
