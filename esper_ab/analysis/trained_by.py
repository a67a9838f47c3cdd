"""Provenance of an experiment's records (sitting, worker, code), and one hash of its results. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from esper_ab.journal.events import ExperimentContinued, ExperimentStarted
from esper_ab.journal.fold import History, RunHistory, Taken

# --- trained by ------------------------------------------------------------------------------------------------------
# Provenance of an experiment's records by sitting (one coordinator process), worker and state of the code. Pure.


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
    sources, commit = f"sources {code.get('sources', 'unknown')}", code.get("commit", "")
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


# --- result hash -----------------------------------------------------------------------------------------------------
# One hash of an experiment's results: equal hashes mean bit-identical records. Pure.


def result_hash(history: History) -> str:
    """Return the sha256, in hex, over the runs in plan order: name, digests of episodes, evaluation and policy.

    Times, devices, process ids, deaths and restarts are excluded, so a run that was killed and resumed has the same
    hash as an undisturbed run. A run that was lost, or left out after a decision, counts by name and state alone,
    because no comparison uses its records. A run in progress counts with its records so far.
    """
    digest = hashlib.sha256()
    for run in history.runs.values():
        digest.update(" ".join(_words(run)).encode() + b"\n")
    return digest.hexdigest()


def _words(run: RunHistory) -> list[str]:
    if run.state in ("lost", "left out"):
        return [run.ref.name, run.state.replace(" ", "-")]
    episodes = zip(run.columns.episodes, run.columns.digests, strict=True)
    words = [run.ref.name, *[f"{episode}:{digest}" for episode, digest in episodes]]
    if run.evaluation is not None:
        words += [f"evaluation:{run.evaluation.digest}", f"policy:{run.evaluation.policy_sha256}"]
    return words
