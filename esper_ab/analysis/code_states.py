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
    found = [taken for taken, following in pairwise(run.taken) if following.milestone > taken.milestone]
    if run.taken and (run.evaluation is not None or len(run.columns) > run.taken[-1].milestone):
        found.append(run.taken[-1])
    return tuple(found)


def sittings_at_work(history: History) -> tuple[Sitting, ...]:
    """Return the sittings in which something was recorded; the rest do not affect the runs."""
    at_work = {taken.sitting for run in history.runs.values() for taken in recorded_by(run)}
    return tuple(one for index, one in enumerate(_sittings(history)) if index in at_work)


def code_states(history: History) -> tuple[CodeState, ...]:
    """Return the states of the code, in the plan order of their runs; only one unless the code changed."""
    sittings = _sittings(history)
    made = [
        (_code(sittings[taken.sitting].code, taken), name)
        for name, run in history.runs.items()
        for taken in recorded_by(run)
    ]
    key = telling([code for code, _ in made])
    states: dict[str, list[tuple[dict[str, str], str]]] = {}
    for code, name in made:
        states.setdefault(code.get(key, ""), []).append((code, name))
    return tuple(
        CodeState(code=pairs[0][0], runs=tuple(dict.fromkeys(name for _, name in pairs))) for pairs in states.values()
    )


def telling(codes: Sequence[Mapping[str, str]]) -> str:
    """Return the key that tells these states of the code apart: "sources" if every state has it, else "commit".

    "sources" is preferred, because several states can share a commit.
    """
    return "sources" if all("sources" in code for code in codes) else "commit"


def named(code: Mapping[str, str]) -> str:
    """Describe a state: "commit 0123456789ab with changes (sources 5a5a)"; outside a checkout, the sources only."""
    sources = f"sources {code.get('sources', 'unknown')}"
    commit = code.get("commit", "")
    if not commit:
        return sources
    return f"commit {commit[:12]}{' with changes' if code.get('dirty') == 'yes' else ''} ({sources})"


def _sittings(history: History) -> tuple[Sitting, ...]:
    return (history.started, *history.continued)


def _code(sitting: Mapping[str, str], taken: Taken) -> dict[str, str]:
    """Return the code state of a worker, or that of its sitting if the worker reported none or the same."""
    sources = taken.worker.sources if taken.worker is not None else ""
    if not sources or sources == sitting.get("sources"):
        return dict(sitting)
    return {"sources": sources}  # the worker was restarted after an edit; the new code's commit is unknown
