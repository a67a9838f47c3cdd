"""What in a record could confound the comparison, as ledger entries. Pure; the record itself keeps every number.

An entry stands for the first time that something happens in a run: the audit counts the rest from the records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from esper_ab.analysis.pathologies import pathologies
from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord
from esper_ab.journal.events import Ledger

DIVERGED = "diverged"


def kind_of(entry: Ledger) -> str:
    """What an entry for a training episode says has happened; "" for any other entry."""
    if entry.category == "ppo_pathology":
        return entry.detail.partition(":")[0]
    return DIVERGED if entry.category == "non_finite" and entry.episode is not None else ""


def findings(record: EpisodeRecord | EvaluationRecord, known: Collection[str] = ()) -> Iterator[Ledger]:
    """Entries for diverged hosts and for what went wrong in the policy's update.

    `known`: by `kind_of` its entry, what happened earlier in the run and is not entered again. An evaluation has its
    own entry.
    """
    run = record.run.run
    if isinstance(record, EvaluationRecord):
        yield from _diverged(run, None, [episode.env for episode in record.episodes])
        return
    if DIVERGED not in known:
        yield from _diverged(run, record.episode, list(record.envs))
    for kind, detail in pathologies(record).items():
        if kind not in known:
            yield Ledger(category="ppo_pathology", run=run, episode=record.episode, detail=f"{kind}: {detail}")


def _diverged(run: str, episode: int | None, envs: list[EnvEpisode]) -> Iterator[Ledger]:
    broken = sorted({env.env for env in envs if env.diverged})
    if broken:
        where = "evaluation hosts" if episode is None else "hosts"
        count = sum(env.diverged for env in envs)
        detail = f"{count} of {len(envs)} {where} diverged (environments {', '.join(map(str, broken))})"
        yield Ledger(category="non_finite", run=run, episode=episode, detail=detail)
