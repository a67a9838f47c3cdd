"""One hash of an experiment's results: equal hashes mean bit-identical records. Pure."""

from __future__ import annotations

import hashlib

from esper_ab.journal.fold import History, RunHistory


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
