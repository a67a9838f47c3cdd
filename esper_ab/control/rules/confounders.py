"""Incidents for everything in a record that could confound the comparison; the record itself keeps every number."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from esper_ab.analysis.pathologies import pathologies
from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord
from esper_ab.journal.events import Incident

FAILED = "failed"


def confounders(
    record: EpisodeRecord | EvaluationRecord, known_confounders: Collection[str] = ()
) -> Iterator[Incident]:
    """Yield incidents for failed environments and for pathologies of the policy update.

    `known_confounders`: confounders of the run's earlier episodes, which are not reported again. An evaluation gets its
    own incident.
    """
    run = record.run.name
    if isinstance(record, EvaluationRecord):
        yield from _failed(run, None, [episode.result for episode in record.episodes])
        return
    if FAILED not in known_confounders:
        yield from _failed(run, record.episode, list(record.envs))
    for kind, detail in pathologies(record).items():
        if kind not in known_confounders:
            yield Incident(
                category="ppo_pathology",
                run_name=run,
                episode=record.episode,
                detail=f"{kind}: {detail}",
                confounder=kind,
            )


def _failed(run: str, episode: int | None, envs: list[EnvEpisode]) -> Iterator[Incident]:
    failed_numbers = sorted({env.env for env in envs if env.failed})
    if failed_numbers:
        unit = "evaluation episodes" if episode is None else "environments"
        failed_count = sum(env.failed for env in envs)
        detail = f"{failed_count} of {len(envs)} {unit} failed (environments {', '.join(map(str, failed_numbers))})"
        confounder = msgspec.UNSET if episode is None else FAILED
        yield Incident(category="non_finite", run_name=run, episode=episode, detail=detail, confounder=confounder)
