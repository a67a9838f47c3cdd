"""One line for everything an experiment came to: equal hashes are equal records, to the bit. Pure."""

from __future__ import annotations

import hashlib

from esper_ab.journal.fold import History, RunHistory


def result_hash(history: History) -> str:
    """Sha256, in hex, over the runs in plan order: name, digest of every episode, of the evaluation, of the policy.

    Times, devices, process ids, deaths and restarts are not part of it, so a run that was killed and taken up again has
    the hash of an undisturbed one. A lost run and one left out after a decision count by name and word alone: nothing
    of theirs is in a comparison. A run in progress counts with what it has recorded so far.
    """
    digest = hashlib.sha256()
    for run in history.runs.values():
        digest.update(" ".join(_words(run)).encode() + b"\n")
    return digest.hexdigest()


def _words(run: RunHistory) -> list[str]:
    if run.state in ("lost", "left out"):
        return [run.ref.run, run.state.replace(" ", "-")]
    episodes = zip(run.columns.episodes, run.columns.digests, strict=True)
    words = [run.ref.run, *[f"{episode}:{digest}" for episode, digest in episodes]]
    if run.evaluation is not None:
        words += [f"evaluation:{run.evaluation.digest}", f"policy:{run.evaluation.policy_sha256}"]
    return words
