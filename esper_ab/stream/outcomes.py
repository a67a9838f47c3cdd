"""What the journals of a stream's experiments say: the outcomes of candidates and incumbents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from esper_ab.journal.begun import begun
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import outcome_of
from esper_ab.stream.question import CANDIDATE, INCUMBENT

EXPERIMENTS = "experiments"  # folder in a stream's


@dataclass(frozen=True)
class OutcomePairs:
    """The outcomes of an experiment's complete pairs, by seed, and the candidate's runs that were lost."""

    outcomes: tuple[tuple[float, float], ...]  # of incumbent and candidate
    lost: int


def has_begun(folder: Path, name: str) -> bool:
    """Whether an experiment of a stream has a journal with events."""
    return begun(directory_of(folder, name))


def directory_of(folder: Path, name: str) -> Path:
    """Return the directory of an experiment."""
    return folder / EXPERIMENTS / name


def pairs_of(folder: Path, name: str, seeds: int) -> OutcomePairs:
    """Return the outcomes of the first `seeds` seeds of an experiment that compares a candidate."""
    history = load(directory_of(folder, name)).history
    outcomes = {}
    for run_history in history.runs.values():
        ref = run_history.ref
        if ref.replicate < seeds:
            outcomes[ref.group_id, ref.replicate] = outcome_of(run_history, history.design.outcome_over)
    pairs = []
    lost_runs = 0
    for replicate in range(seeds):
        incumbent_outcome = outcomes.get((INCUMBENT, replicate))
        candidate_outcome = outcomes.get((CANDIDATE, replicate))
        lost_runs += candidate_outcome is None
        if incumbent_outcome is not None and candidate_outcome is not None:
            pairs.append((incumbent_outcome, candidate_outcome))
    return OutcomePairs(tuple(pairs), lost_runs)


def lone_outcomes(folder: Path, name: str) -> tuple[int, tuple[float, ...]]:
    """Return the rng seed of an incumbent that was trained alone, and its outcomes, without lost runs."""
    history = load(directory_of(folder, name)).history
    outcomes = (outcome_of(run_history, history.design.outcome_over) for run_history in history.runs.values())
    return history.plan.experiment.rng_seed, tuple(outcome for outcome in outcomes if outcome is not None)
