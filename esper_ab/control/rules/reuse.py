"""Kept runs of earlier experiments: which of them stand for runs of this plan, and when.

Runs that repeat to the bit are reused once the runs of one seed have been trained again and gave the same records;
until then, their blocks wait. Other runs are offered only if they were trained under the same conditions, and are
reused at once. A run is reused when its block starts, so looks decide about reused runs as about trained ones.
"""

from __future__ import annotations

import msgspec

from esper_ab.contracts.run_files import reused_policy_of
from esper_ab.journal.events import AnyEvent, EpisodeRecorded, ReuseChecked, RunEvaluated, RunOffered, RunReused
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan.plan import Block


def stands(history: History, name: str) -> bool:
    """True if the run of this name is not trained, because a kept one stands for it."""
    run = history.runs[name]
    if run.reused is not None:
        return True
    offer = history.offered.get(name)
    if offer is None or offer.check or run.started or history.mended is not None:
        return False
    if not _needs_check(history, run):
        return True
    return history.reuse_checked is not None and history.reuse_checked.agrees


def is_held(history: History, block: Block) -> bool:
    """True if the block has a run that will be reused, or trained, depending on a check that is not done yet."""
    if history.reuse_checked is not None or not any(offer.check for offer in history.offered.values()):
        return False
    for spec in block.runs:
        offer = history.offered.get(spec.ref.name)
        if offer is not None and not offer.check and _needs_check(history, history.runs[spec.ref.name]):
            return True
    return False


def check_due(history: History) -> ReuseChecked | None:
    """Return the result of the check, if it is known and not recorded yet."""
    if history.reuse_checked is not None or not history.offered:
        return None
    checked_runs = [history.runs[name] for name, offer in history.offered.items() if offer.check]
    if not checked_runs or any(run.expected for run in checked_runs):
        return None
    names = tuple(run.ref.name for run in checked_runs)
    if history.mended is not None:
        return ReuseChecked(agrees=False, runs=names, detail="the trainer's files were changed")
    for run in checked_runs:
        if difference := _difference(run, history.offered[run.ref.name]):
            return ReuseChecked(agrees=False, runs=names, detail=f"{run.ref.name} {difference}")
    return ReuseChecked(agrees=True, runs=names)


def events_due(history: History, block: Block) -> list[AnyEvent]:
    """Return what is still to be recorded of the block's reused runs, also if an earlier coordinator began it."""
    due_events: list[AnyEvent] = []
    for spec in block.runs:
        run = history.runs[spec.ref.name]
        if not run.expected or not stands(history, spec.ref.name):
            continue
        offer = history.offered[spec.ref.name]
        if not run.started:
            due_events.append(RunReused(run=spec.ref))
        records = offer.episodes[len(run.columns) :]
        due_events += [EpisodeRecorded(record=msgspec.structs.replace(record, run=spec.ref)) for record in records]
        evaluation = msgspec.structs.replace(
            offer.evaluation, run=spec.ref, policy_file=reused_policy_of(spec.ref.name)
        )
        due_events.append(RunEvaluated(record=evaluation))
    return due_events


def _needs_check(history: History, run: RunHistory) -> bool:
    """True if runs of the group repeat to the bit, so that training one again says whether the others hold."""
    if history.references is None:
        return False
    group = history.references.groups.get(run.ref.group_id)
    return group is not None and group.repeats


def _difference(run: RunHistory, offer: RunOffered) -> str:
    """Say in what a run that was trained again differs from the one that was kept; "" if in nothing."""
    if run.evaluation is None:
        return "was not finished"
    for episode, digest in zip(offer.episodes, run.columns.digests, strict=False):
        if episode.digest != digest:
            return f"gave other numbers in episode {episode.episode}"
    if len(run.columns) != len(offer.episodes) or run.evaluation.digest != offer.evaluation.digest:
        return "gave another outcome"
    return ""
