"""Provenance of an experiment's records by sitting (one coordinator process), worker and state of the code. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from esper_ab.journal.events import ExperimentContinued, ExperimentStarted
from esper_ab.journal.fold import History, RunHistory, Taken

Sitting = ExperimentStarted | ExperimentContinued


class CodeState(msgspec.Struct, frozen=True, kw_only=True):
    """One state of the code, and the runs that have records made by this state."""

    code: dict[str, str]  # sources, commit, dirty, as far as known
    runs: tuple[str, ...]


def recorded_by(run: RunHistory) -> tuple[Taken, ...]:
    """Return the entries of `run.taken` whose worker added at least one record to the run.

    Work repeated after a damaged checkpoint counts for the last worker that did it, because that worker had to
    reproduce the digests.
    """
    recording_starts = [start for start, next_start in pairwise(run.taken) if next_start.milestone > start.milestone]
    if run.taken:
        last_start = run.taken[-1]
        if run.evaluation is not None or len(run.columns) > last_start.milestone:
            recording_starts.append(last_start)
    return tuple(recording_starts)


def sittings_at_work(history: History) -> tuple[Sitting, ...]:
    """Return the sittings in which something was recorded; the others do not affect the runs."""
    working_sittings: set[int] = set()
    for run in history.runs.values():
        working_sittings.update(start.sitting for start in recorded_by(run))
    sittings = _sittings(history)
    return tuple(sittings[index] for index in sorted(working_sittings))


def code_states(history: History) -> tuple[CodeState, ...]:
    """Return the states of the code, in the plan order of their runs; only one unless the code changed."""
    sittings = _sittings(history)
    recorded_codes: list[
        tuple[dict[str, str], str]
    ] = []  # the code of each worker that recorded something, and its run
    for name, run in history.runs.items():
        recorded_codes += [(_code(sittings[start.sitting].code, start), name) for start in recorded_by(run)]
    key = telling([code for code, _ in recorded_codes])
    codes: dict[str, dict[str, str]] = {}
    runs: dict[str, list[str]] = {}
    for code, name in recorded_codes:
        value = code.get(key, "")
        codes.setdefault(value, code)
        runs_of_state = runs.setdefault(value, [])
        if name not in runs_of_state:
            runs_of_state.append(name)
    return tuple(CodeState(code=code, runs=tuple(runs[value])) for value, code in codes.items())


def telling(codes: Sequence[Mapping[str, str]]) -> str:
    """Return the key that tells these states of the code apart: "sources" if every state has it, else "commit".

    "sources" is preferred, because several states can share a commit.
    """
    if all("sources" in code for code in codes):
        return "sources"
    return "commit"


def named(code: Mapping[str, str]) -> str:
    """Describe a state: "commit 0123456789ab with changes (sources 5a5a)"; outside a checkout, the sources only."""
    sources = f"sources {code.get('sources', 'unknown')}"
    commit = code.get("commit", "")
    if not commit:
        return sources
    changes = ""
    if code.get("dirty") == "yes":
        changes = " with changes"
    return f"commit {commit[:12]}{changes} ({sources})"


def _sittings(history: History) -> tuple[Sitting, ...]:
    return (history.started, *history.continued)


def _code(sitting: Mapping[str, str], start: Taken) -> dict[str, str]:
    """Return the code state of a worker, or that of its sitting if the worker reported none or the same."""
    if start.worker is None or start.worker.sources in ("", sitting.get("sources")):
        return dict(sitting)
    return {"sources": start.worker.sources}  # restarted after an edit; the new code's commit is unknown
