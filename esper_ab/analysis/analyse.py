"""Draw all conclusions from a journal history. Pure; text, JSON and HTML are renderings of the result."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.analysis.audit import audit
from esper_ab.analysis.conduct import Conduct, conduct
from esper_ab.analysis.cross import CrossEvaluation, cross_evaluation
from esper_ab.analysis.evaluation_noise import noise_of_pairs
from esper_ab.analysis.kinds import kind_of
from esper_ab.analysis.learning import Learning, learning
from esper_ab.analysis.observe import followed, observe, pairs_in, plan_of, same_records, same_settings
from esper_ab.analysis.remarks import remarks
from esper_ab.analysis.result_hash import result_hash
from esper_ab.analysis.reward_audit import RewardAuditFindings, findings_of
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome, outcomes
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.finding import Finding, by_weight
from esper_ab.verdict.judge import judge
from esper_ab.verdict.observations import Facts


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All conclusions from one history."""

    outcomes: dict[str, RunOutcome]  # by run, in plan order
    comparisons: tuple[Comparison, ...]  # in the order of the design
    findings: tuple[Finding, ...]  # of the audit of records and outcomes, most serious first
    cross: CrossEvaluation
    learning: tuple[Learning, ...]  # by group that learns
    conduct: tuple[Conduct, ...]  # by group
    remarks: tuple[str, ...]  # answers to questions that a reader would ask, one sentence each
    noise: EvaluationNoise | None  # in the differences of pairs; None if there is too little data to estimate it
    reward_audit: RewardAuditFindings | None  # None if the experiment includes no audit of its groups' rewards
    result_hash: str


def analyse(history: History, rng_seed: int | None = None) -> Analysis:
    """Analyse a history. The result is deterministic, including the bootstraps.

    `rng_seed`: seed of the bootstraps; if None, it is derived from the plan's digest.
    """
    seed = int(history.plan.digest[:32], 16) if rng_seed is None else rng_seed
    facts = facts_of(history)
    answer = judge(plan_of(history), observe(history, facts=facts), rng_seed=seed)
    per_run = outcomes(history)
    learned = learning(history, per_run)
    return Analysis(
        outcomes=per_run,
        comparisons=answer.comparisons,
        cross=cross_evaluation(history),
        findings=by_weight((*facts.findings, *answer.findings)),
        learning=learned,
        conduct=conduct(history),
        remarks=remarks(history, per_run, learned, answer.comparisons),
        noise=noise_of_pairs(history),
        result_hash=result_hash(history),
        reward_audit=None if history.plan.reward_audit is None else findings_of(history.plan.reward_audit),
    )


def task_and_budget(history: History) -> str:
    """Describe in one line the task on which the groups were trained, and the training budget."""
    experiment = history.plan.experiment
    return f"task {experiment.task_title}, {kind_of(history).budget(experiment)}"


def conditions(history: History) -> str:
    """Describe the conditions of every verdict; a different horizon or learning rate may give a different answer."""
    experiment = history.plan.experiment
    ppo = {group.settings.ppo for group in experiment.groups if group.settings.has_policy}
    settings_said = ", ".join(
        f"{key} {values[0]:g}" if len(values) == 1 else f"{key} by group"
        for key, values in (
            (key, sorted({getattr(settings, name) for settings in ppo}))
            for key, name in (("learning rate", "lr"), ("epochs", "epochs"), ("entropy", "entropy_coef"))
        )
        if values
    )
    told = (task_and_budget(history), f"PPO {settings_said}" if settings_said else "", kind_of(history).scope(history))
    return ", ".join(filter(None, told))


def facts_of(history: History) -> Facts:
    """Return what the records say besides outcomes: audit findings, and which groups are the same computation."""
    pairs = pairs_in(followed(history))
    plan = history.plan
    return Facts(
        scope=conditions(history),
        findings=tuple(audit(history, pairs)),
        paired=not plan.experiment.unpaired,
        run_sd=plan.run_sd,
        same_settings=frozenset(one.groups for one in pairs if same_settings(history, one)),
        same_records=frozenset(one.groups for one in pairs if same_records(history, one, pairs[one])),
    )
