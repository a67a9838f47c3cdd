"""Content -> verdict.json: the answer for programs. Keys are documented in docs/statistics.md."""

from __future__ import annotations

import msgspec

from esper_ab.report.content import Content
from esper_ab.stats.comparison import Comparison

VERDICT_SCHEMA = 1


def render_verdict(content: Content) -> bytes:
    """Indented JSON, keys in a fixed order, ending in a newline."""
    plan = content.history.plan
    document = {
        "schema": VERDICT_SCHEMA,
        "experiment": plan.experiment.name,
        "task": plan.experiment.task,
        "plan": plan.digest,
        "estimand": plan.estimand,
        "state": content.state.word,
        "complete": content.state.complete,
        "groups": list(content.groups),
        "comparisons": [_comparison(item) for item in content.comparisons],
        "runs": [msgspec.to_builtins(outcome) for outcome in content.outcomes.values()],
        "ledger": [msgspec.to_builtins(entry) for entry in content.history.ledger],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _comparison(comparison: Comparison) -> dict[str, object]:
    return {
        "a": comparison.question.a,
        "b": comparison.question.b,
        "verdict": comparison.verdict.value,
        "sentence": comparison.sentence,
        "rule": comparison.rule,
        "caveats": list(comparison.caveats),
        "planned_pairs": comparison.question.planned_pairs,
        "alpha": comparison.question.alpha,
        "margin": comparison.question.margin,
        "difference": msgspec.to_builtins(comparison.difference),
        "sign_flip": msgspec.to_builtins(comparison.sign_flip),
        "mann_whitney": msgspec.to_builtins(comparison.mann_whitney),
        "improvement": msgspec.to_builtins(comparison.improvement),
        "hedges_g": comparison.hedges_g,
        "pairs_needed": msgspec.to_builtins(comparison.pairs_needed),
        "pairs": msgspec.to_builtins(comparison.pairs),
    }
