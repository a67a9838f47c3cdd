"""What in a record could confound the comparison, as ledger entries. Pure; the record itself keeps every number.

An entry stands for the first time that something happens in a run: the audit counts the rest from the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from esper_ab.analysis.pathologies import pathologies
from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord
from esper_ab.journal.events import Ledger


def findings(record: EpisodeRecord | EvaluationRecord, run_so_far: Iterable[EpisodeRecord] = ()) -> Iterator[Ledger]:
    """Entries for diverged hosts and for what went wrong in the policy's update.

    `run_so_far`: episodes of the same run; what happened in one before this already is not entered again. An
    evaluation has its own entry.
    """
    run = record.run.run
    if isinstance(record, EvaluationRecord):
        yield from _diverged(run, None, [episode.env for episode in record.episodes])
        return
    before = [episode for episode in run_so_far if episode.episode < record.episode]
    if not any(env.diverged for episode in before for env in episode.envs):
        yield from _diverged(run, record.episode, list(record.envs))
    known = {kind for episode in before for kind in pathologies(episode)}
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
