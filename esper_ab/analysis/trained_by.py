"""By which sittings, workers and states of the code the records of an experiment were made. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from esper_ab.journal.events import ExperimentContinued, ExperimentStarted
from esper_ab.journal.fold import History, RunHistory, Taken

Sitting = ExperimentStarted | ExperimentContinued


class CodeState(msgspec.Struct, frozen=True, kw_only=True):
    """One state of the code, and the runs of which it made records."""

    code: dict[str, str]  # sources, commit, dirty: as far as they are known
    runs: tuple[str, ...]


def recorded_by(run: RunHistory) -> tuple[Taken, ...]:
    """Whoever took the run up and got at least one record further.

    What was made again after a damaged checkpoint counts for whoever made it last: it had to give the same digests.
    """
    found = [taken for taken, following in pairwise(run.taken) if following.point > taken.point]
    if run.taken and (run.evaluation is not None or len(run.columns) > run.taken[-1].point):
        found.append(run.taken[-1])
    return tuple(found)


def sittings_at_work(history: History) -> tuple[Sitting, ...]:
    """Those in which something was recorded: the others say nothing about the runs."""
    at_work = {taken.sitting for run in history.runs.values() for taken in recorded_by(run)}
    return tuple(one for index, one in enumerate(_sittings(history)) if index in at_work)


def code_states(history: History) -> tuple[CodeState, ...]:
    """In the order in which they come in the plan's runs; one, unless code was changed while the experiment lasted."""
    sittings = _sittings(history)
    made = [
        (_code(sittings[taken.sitting].code, taken), name)
        for name, run in history.runs.items()
        for taken in recorded_by(run)
    ]
    key = telling([code for code, _ in made])
    states: dict[str, CodeState] = {}
    for code, name in made:
        there = states.get(code.get(key, ""))
        runs = (name,) if there is None else tuple(dict.fromkeys((*there.runs, name)))
        states[code.get(key, "")] = CodeState(code=code if there is None else there.code, runs=runs)
    return tuple(states.values())


def telling(codes: Sequence[Mapping[str, str]]) -> str:
    """What tells these states apart: "sources" where all have them (equal ones may be of two commits), or "commit"."""
    return "sources" if all("sources" in code for code in codes) else "commit"


def named(code: Mapping[str, str]) -> str:
    """A state in words: "commit 0123456789ab with changes (sources 5a5a)"; outside of a checkout there is no commit."""
    sources, commit = f"sources {code.get('sources', 'unknown')}", code.get("commit", "")
    if not commit:
        return sources
    return f"commit {commit[:12]}{' with changes' if code.get('dirty') == 'yes' else ''} ({sources})"


def _sittings(history: History) -> tuple[Sitting, ...]:
    return (history.started, *history.continued)


def _code(sitting: Mapping[str, str], taken: Taken) -> dict[str, str]:
    """That of the worker; its sitting's where it did not say, and where it is the same."""
    sources = taken.worker.sources if taken.worker is not None else ""
    if not sources or sources == sitting.get("sources"):
        return dict(sitting)
    return {"sources": sources}  # of a worker that was started again after an edit: no commit is known
