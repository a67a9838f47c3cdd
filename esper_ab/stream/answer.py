"""What `stream try` and `stream status` say, as plain values for JSON."""

from __future__ import annotations

from typing import Any

from esper_ab.stream.progress import Incumbent, StreamProgress
from esper_ab.stream.trying import TriedCandidate


def answer_tree(tried: TriedCandidate) -> dict[str, Any]:
    """Return the answer on a candidate."""
    question = tried.progress.question
    candidate, decided = tried.candidate, tried.decided
    tree: dict[str, Any] = {
        "decision": "failed",
        "candidate": None,
        "reason": tried.failure,
    }
    if candidate is not None and decided is not None:
        tree = {
            "decision": decided.decision,
            "candidate": candidate.number,
            "reason": decided.reason,
            "outcome": question.outcome or None,
            "better": question.better,
            "margin": question.margin,
            "effect": decided.effect,
            "interval": decided.interval,
            "p": decided.p,
            "level": candidate.level,
            "e_value": decided.e_value,
            "seeds": decided.look,
            "runs": 2 * decided.look,
            "repeated": tried.repeated,
        }
    return {
        **tree,
        "incumbent": incumbent_tree(tried.progress.incumbent),
        "stream": stream_tree(tried.progress),
        "report": None if tried.report is None else str(tried.report),
    }


def incumbent_tree(incumbent: Incumbent) -> dict[str, Any]:
    """Return the best so far, with its value on seeds that had no part in its win."""
    return {
        "candidate": incumbent.number,
        "code": incumbent.setup.code or None,
        "code_words": incumbent.setup.code_words or None,
        "settings": incumbent.setup.settings,
        "note": incumbent.note or None,
        "value": incumbent.value,
        "interval": incumbent.interval,
        "runs": len(incumbent.outcomes),
    }


def stream_tree(progress: StreamProgress) -> dict[str, Any]:
    """Return how far the stream is, and what is left of its error rate."""
    return {
        "candidates": len(progress.candidates),
        "accepted": progress.wins,
        "refused": sum(not refused.failed for refused in progress.refused),
        "alpha": progress.question.alpha,
        "alpha_left": progress.question.alpha * (1.0 - progress.spent),
        "next_level": progress.next_level,
        "expected_false": progress.most_false,
    }
