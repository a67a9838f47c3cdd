"""Keep the runs of an experiment, once it has ended or was interrupted, in the folder that its journal names."""

from __future__ import annotations

import hashlib
from pathlib import Path

from esper_ab.analysis.code_states import recorded_by
from esper_ab.contracts.records import EvaluationRecord
from esper_ab.contracts.regular_file import read_regular
from esper_ab.journal.begun import begun
from esper_ab.journal.events import KeptGroup, RunEvaluated
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.kept_runs.entry import KeptRun
from esper_ab.kept_runs.folder import LARGEST_BYTES, evict, make_folder_of_runs, path_of, read_run, write_run
from esper_ab.kept_runs.identity import key_of


def keep_runs(experiment_dir: Path) -> int:
    """Keep the finished runs that this experiment has trained, and return how many are new in the folder.

    Runs used longest ago are removed if the folder is larger than its limit. Raises OSError if the folder cannot be
    written.
    """
    if not begun(experiment_dir):
        return 0
    history = load(experiment_dir).history
    opened = history.references
    if opened is None or history.mended is not None:  # a mended trainer is not the one that was planned
        return 0
    folder = Path(opened.folder)
    times = _evaluated_at(experiment_dir)
    number_kept = 0
    make_folder_of_runs(folder)
    for name, group in opened.groups.items():
        runs = _keepable(history, name, group)
        if not runs:
            continue
        witness = _digest(runs[0])
        for run in runs:
            policy = _policy_of(run, experiment_dir)
            if policy is None:
                continue
            kept_run = KeptRun(
                key=key_of(group.identity, run.ref.replicate),
                conditions=group.conditions,
                repeats=group.repeats,
                witness=witness,
                source=history.plan.experiment.name,
                trained_at=times[run.ref.name],
                episodes=tuple(run.episodes[episode] for episode in sorted(run.episodes)),
                evaluation=_evaluation_of(run),
                policy_bytes=len(policy),
            )
            if _is_new(folder, kept_run, group):
                number_kept += write_run(folder, kept_run, policy)
    evict(folder, opened.limit_bytes)
    return number_kept


def _evaluated_at(experiment_dir: Path) -> dict[str, str]:
    """Return when the evaluation of each run was recorded, by run."""
    journal_reading = read(experiment_dir / JOURNAL_NAME)
    times = {}
    for event in journal_reading:
        if isinstance(event, RunEvaluated):
            times[event.record.run.name] = journal_reading.wall_time
    return times


def _keepable(history: History, name: str, group: KeptGroup) -> list[RunHistory]:
    """Return the runs of a group that were trained as planned, in one go, by seed.

    If a seed does not repeat, and a run of the group was lost, none is kept: those that remain are survivors.
    """
    runs = history.of_group(name)
    if not group.repeats and any(run.lost and run.failed for run in runs):
        return []
    inexact = {entry.run_name for entry in history.incidents if entry.category == "inexact_resume"}
    return [run for run in runs if run.ref.name not in inexact and _is_trained_as_planned(history, run)]


def _is_trained_as_planned(history: History, run: RunHistory) -> bool:
    if run.evaluation is None or run.lost or run.reused is not None:
        return False
    starts = recorded_by(run)
    if len(starts) != 1:
        return False
    if starts[0].sitting == 0:
        return True
    sitting = history.continued[starts[0].sitting - 1]
    begin = history.started
    return (sitting.versions, sitting.machine, sitting.code) == (begin.versions, begin.machine, begin.code)


def _evaluation_of(run: RunHistory) -> EvaluationRecord:
    """Return the evaluation of a finished run."""
    assert run.evaluation is not None
    return run.evaluation


def _policy_of(run: RunHistory, experiment_dir: Path) -> bytes | None:
    """Return the policy of a run; None if it was removed, has changed or is too large."""
    evaluation = _evaluation_of(run)
    try:
        policy = read_regular(experiment_dir / evaluation.policy_file, LARGEST_BYTES)
    except OSError:
        return None
    return policy if hashlib.sha256(policy).hexdigest() == evaluation.policy_sha256 else None


def _is_new(folder: Path, run: KeptRun, group: KeptGroup) -> bool:
    """Return whether the folder lacks the run; one that repeats also replaces one of other files of the user's."""
    stored_run = read_run(path_of(folder, run.key, run.conditions))
    if stored_run is None or stored_run[0].repeats != group.repeats:
        return True
    return group.repeats and stored_run[0].witness != run.witness


def _digest(run: RunHistory) -> str:
    digests = [*run.columns.digests, _evaluation_of(run).digest]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()
