"""Content -> verdict.json: the answer for programs. Every key is documented in docs/verdict.md."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import msgspec

from esper_ab.analysis.reused_runs import reused_runs
from esper_ab.analysis.reward_audit import RewardAuditFindings, RewardFindings
from esper_ab.contracts.visible import visible_json
from esper_ab.design.design import rule
from esper_ab.design.half_interval import HalfInterval
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome
from esper_ab.report.content import Content
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.pair import Samples
from esper_ab.verdict.comparison import Comparison

VERDICT_SCHEMA = 8


def render_verdict(content: Content) -> bytes:
    """Render indented JSON, keys in a fixed order, ending in a newline."""
    history = content.history
    analysis = content.analysis
    plan = history.plan
    document = {
        "schema": VERDICT_SCHEMA,
        "experiment": plan.experiment.name,
        "task": plan.experiment.task,
        "plan": plan.digest,
        "result": analysis.result_hash,
        "estimand": plan.estimand,
        "rule": rule(history.design),
        "design": history.design,
        "replicates": history.replicates,
        "state": content.state.word,
        "complete": content.state.complete,
        "groups": content.groups,
        "comparisons": [comparison_json(item) for item in content.comparisons],
        "audit": analysis.findings,
        "cross": analysis.cross,
        "learning": analysis.learning,
        "conduct": analysis.conduct,
        "evaluation": _noise(analysis.noise, analysis.half_interval),
        "reward_audit": _reward_audit(analysis.reward_audit),
        "runs": [_run(history.runs[name].state, outcome) for name, outcome in content.outcomes.items()],
        "looks": history.looks,
        "incidents": history.incidents,
        **_references(history),
        "versions": history.started.versions,
        "machine": history.started.machine,
        "code": history.started.code,
    }
    return indented(document) + b"\n"


def indented(document: dict[str, Any]) -> bytes:
    """Return a document as indented JSON for terminals and files, keys in the order in which they are given."""
    data = msgspec.json.format(msgspec.json.encode(msgspec.to_builtins(document)), indent=2)
    return visible_json(data).encode()


def _run(state: str, outcome: RunOutcome) -> dict[str, Any]:
    return {"state": state, **msgspec.to_builtins(outcome)}


def _references(history: History) -> dict[str, Any]:
    """Return the runs that were reused, and what a check of them has given; only if there is a folder of kept runs."""
    opened = history.references
    if opened is None:
        return {}
    facts = {"folder": opened.folder, "opened_at": opened.opened_at, "refused": opened.refused}
    return {"references": {**facts, "check": history.reuse_checked, "reused": reused_runs(history)}}


def _noise(noise: EvaluationNoise | None, half: HalfInterval | None) -> dict[str, Any] | None:
    if noise is None:
        return None
    eval_episodes = noise.next_eval_episodes
    return {
        **msgspec.to_builtins(noise.components),
        "cost_share": noise.cost_share,
        "training_episode_s": noise.training_episode_s,
        "evaluation_episode_s": noise.evaluation_episode_s,
        "next_eval_episodes": eval_episodes,
        "next_variance": noise.variance_times(eval_episodes),
        "next_cost": noise.cost_times(eval_episodes),
        "half_interval": half,
    }


def _reward_audit(audit: RewardAuditFindings | None) -> dict[str, Any] | None:
    if audit is None:
        return None
    return {
        "digest": audit.reward_audit.digest,
        "best_of": {n: float(audit.own_curve[n - 1]) for n in audit.shown_n},
        "rewards": [_audited(reward, audit) for reward in audit.rewards],
    }


def _audited(reward: RewardFindings, audit: RewardAuditFindings) -> dict[str, Any]:
    accuracy = None
    if reward.found is not None:
        accuracy = fmean(reward.found.behaviour.held_out_accuracy)
    return {
        "reward": reward.name,
        "best_of": {n: float(reward.curve[n - 1]) for n in audit.shown_n},
        "regret": reward.regret,
        "rank_correlation": reward.rank_correlation,
        "favourite": audit.behaviours[reward.favourite].name,
        "worst_pair": reward.pairs[0].loss if reward.pairs else 0.0,
        "distance": reward.distance,
        "spread": reward.spread,
        "largest": reward.largest,
        "half_paid": reward.half_paid,
        "on_last_step": reward.on_last_step,
        "found": accuracy,
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the object of one comparison."""
    question = comparison.question
    progress = comparison.progress
    return {
        "a": question.a,
        "b": question.b,
        "verdict": comparison.verdict,
        "headline": comparison.headline,
        "sentence": comparison.sentence,
        "rule": comparison.rule,
        "caveats": comparison.caveats,
        "warnings": comparison.warnings,
        "scope": question.scope,
        "alpha": question.alpha,
        "margin": question.design.margin,
        "planned": question.planned,
        "decision": progress.decision,
        "decided_at": progress.decided_at,
        "finished": progress.finished,
        "used": comparison.used,
        "same_records": comparison.same_records,
        "estimate": comparison.estimate,
        "low": comparison.low,
        "high": comparison.high,
        "level": str(comparison.level),
        "test": comparison.test,
        "effect": comparison.effect,
        "plain": comparison.plain,
        "simultaneous_low": comparison.simultaneous[0],
        "simultaneous_high": comparison.simultaneous[1],
        **comparison.descriptive,
        "equivalence": comparison.equivalence,
        **_one_sided_tests(comparison),
        "pairs_needed": comparison.pairs_needed,
        "pairs_anew": comparison.pairs_anew,
        "most_pairs": comparison.most_pairs,
        "smallest_resolvable": comparison.smallest_resolvable,
        "lost": comparison.lost,
        "imputed": comparison.imputed,
        "limits_with_losses": comparison.limits_with_losses,
        "findings": comparison.findings,
        "capped_by": comparison.capped_by,
        "unseen": comparison.unseen,
        "inconclusive": comparison.inconclusive,
        "unaudited": comparison.unaudited,
        "looks": progress.looks,
        "pairs": tuple(comparison.pairs),
        "samples": None if comparison.samples is None else _samples(comparison.samples),
    }


def _one_sided_tests(comparison: Comparison) -> dict[str, Any]:
    """Return the one-sided test of the outcome at the last look, and the guardrails; only those of the plan."""
    tests: dict[str, Any] = {}
    look = comparison.last_look
    if comparison.design.non_inferiority is not None:
        tests["not_worse"] = None if look is None else look.non_inferiority
    if comparison.design.guards is not None:
        tests["guardrails"] = comparison.guardrails
    return tests


def _samples(samples: Samples) -> dict[str, list[float] | list[int]]:
    """Return the outcomes of unpaired runs and, if looks were planned, the replicates of these."""
    columns = {"a": samples.a.tolist(), "b": samples.b.tolist()}
    for name, places in (("places_a", samples.places_a), ("places_b", samples.places_b)):
        if places is not None and places.size:
            columns[name] = places.tolist()
    return columns
