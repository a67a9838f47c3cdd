"""Draw all conclusions from a journal history. Pure; text, JSON and HTML are renderings of the result."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.analysis.audit import audit
from esper_ab.analysis.conduct import Conduct, conduct
from esper_ab.analysis.cross import CrossEvaluation, cross_evaluation
from esper_ab.analysis.evaluation_noise import noise_of_pairs
from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.learning import Learning, learning
from esper_ab.analysis.observe import axes_of, observe, pairs_in, plan_of, progress_of, same_records, tells_seeds_apart
from esper_ab.analysis.remarks import remarks
from esper_ab.analysis.result_hash import result_hash
from esper_ab.analysis.reward_audit import RewardAuditFindings, findings_of
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.design.half_interval import HalfInterval, half_interval
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome, outcomes
from esper_ab.settings.differences import OF_CODE
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.finding import Finding, by_weight
from esper_ab.verdict.judge import judge_looks
from esper_ab.verdict.looks import PlanProgress
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
    half_interval: HalfInterval | None  # what would halve the intervals; None like `noise`
    reward_audit: RewardAuditFindings | None  # None if the experiment includes no audit of its groups' rewards
    result_hash: str


def analyse(history: History, rng_seed: int | None = None) -> Analysis:
    """Analyse a history. The result is deterministic, including the bootstraps.

    `rng_seed`: seed of the bootstraps; if None, it is derived from the plan's digest.
    """
    plan = history.plan
    if rng_seed is None:
        rng_seed = int(plan.digest[:32], 16)
    progress = progress_of(history)
    facts = facts_of(history, progress)
    answer = judge_looks(plan_of(history), observe(history, facts=facts), progress, rng_seed)
    outcomes_by_run = outcomes(history)
    group_learnings = learning(history, outcomes_by_run)
    reward_audit = None
    if plan.reward_audit is not None:
        reward_audit = findings_of(plan.reward_audit)
    noise = noise_of_pairs(history)
    comparisons = history.design.comparisons
    pairs = max((len(comparison.pairs) for comparison in answer.comparisons), default=0)
    return Analysis(
        outcomes=outcomes_by_run,
        comparisons=answer.comparisons,
        cross=cross_evaluation(history),
        findings=by_weight((*facts.findings, *answer.findings)),
        learning=group_learnings,
        conduct=conduct(history),
        remarks=remarks(history, outcomes_by_run, group_learnings, answer.comparisons),
        noise=noise,
        half_interval=None if noise is None else half_interval(noise, pairs, answer.design.alpha / len(comparisons)),
        result_hash=result_hash(history),
        reward_audit=reward_audit,
    )


def task_and_budget(history: History) -> str:
    """Describe in one line the task on which the groups were trained, and the training budget."""
    experiment = history.plan.experiment
    return f"task {experiment.task_title}, {of_kind(history.plan.kind, FindingsKind).budget(experiment)}"


def conditions(history: History) -> str:
    """Describe the conditions of every verdict; a different horizon or learning rate may give a different answer."""
    parts = [task_and_budget(history)]
    ppo = _ppo_in_words(history)
    if ppo:
        parts.append(f"PPO {ppo}")
    scope = of_kind(history.plan.kind, FindingsKind).scope(history)
    if scope:
        parts.append(scope)
    return ", ".join(parts)


def _ppo_in_words(history: History) -> str:
    """Return "learning rate 0.003, epochs 4, entropy by group"; "" if no group has a policy."""
    groups = history.plan.experiment.groups
    settings = [group.settings.ppo for group in groups if group.settings.has_policy]
    if not settings:
        return ""
    by_name: dict[str, set[float]] = {
        "learning rate": {ppo.lr for ppo in settings},
        "epochs": {ppo.epochs for ppo in settings},
        "entropy": {ppo.entropy_coef for ppo in settings},
    }
    words = []
    for name, values in by_name.items():
        if len(values) == 1:
            words.append(f"{name} {values.pop():g}")
        else:
            words.append(f"{name} by group")
    return ", ".join(words)


def facts_of(history: History, progress: PlanProgress) -> Facts:
    """Return what the records say besides outcomes: audit findings, and which groups are the same computation.

    `progress`: the looks of `history`, as `progress_of` takes them.
    """
    pairs_by_contrast = pairs_in(progress)
    same_settings = []
    other_code = []
    same_results = []
    coarse = []
    for contrast, pairs in pairs_by_contrast.items():
        keys = set(axes_of(history, contrast))
        if keys <= OF_CODE:
            same_settings.append(contrast.groups)
        if keys & OF_CODE:
            other_code.append(contrast.groups)
        if same_records(history, contrast, pairs):
            same_results.append(contrast.groups)
            if keys and not tells_seeds_apart(history, contrast.a, pairs):
                coarse.append(contrast.groups)
    plan = history.plan
    return Facts(
        scope=conditions(history),
        findings=tuple(audit(history, pairs_by_contrast)),
        paired=not plan.experiment.unpaired,
        run_sd=plan.run_sd,
        same_settings=frozenset(same_settings),
        other_code=frozenset(other_code),
        same_records=frozenset(same_results),
        coarse=frozenset(coarse),
    )
