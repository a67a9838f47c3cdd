"""Journal history -> all conclusions from it. Pure; text, JSON and HTML are renderings of the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from esper_ab.analysis.appraisal import AppraisalFindings, findings_of
from esper_ab.analysis.audit import audit
from esper_ab.analysis.conduct import Conduct, conduct
from esper_ab.analysis.courses import courses
from esper_ab.analysis.cross import CrossEvaluation, cross_evaluation
from esper_ab.analysis.evaluation_noise import noise_of_pairs
from esper_ab.analysis.kinds import kind_of
from esper_ab.analysis.learning import Learning, learning
from esper_ab.analysis.pairs import all_pairs, lost_of, same_records, same_settings
from esper_ab.analysis.remarks import remarks
from esper_ab.analysis.result_hash import result_hash
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome, outcomes
from esper_ab.settings.eval_hosts import EvaluationNoise
from esper_ab.stats.pair import Pair
from esper_ab.verdict.comparison import Comparison, compare
from esper_ab.verdict.finding import Audit
from esper_ab.verdict.looks import Course
from esper_ab.verdict.question import Question

_DIGEST_BYTES = 16  # bytes of the plan's digest that seed the bootstraps


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All conclusions from one history."""

    outcomes: dict[str, RunOutcome]  # by run, in plan order
    comparisons: tuple[Comparison, ...]  # in the order of the design
    audit: Audit
    cross: CrossEvaluation
    exam: Any  # of the kind of task, for an experiment with --exam; else None
    learning: tuple[Learning, ...]  # by group that learns
    conduct: tuple[Conduct, ...]  # by group
    remarks: tuple[str, ...]  # what a reader would ask about, a sentence each
    noise: EvaluationNoise | None  # in the differences of pairs; None where too little tells of it
    appraisal: AppraisalFindings | None  # of the groups' rewards; None for an experiment that includes none
    result_hash: str


def analyse(history: History, rng_seed: int | None = None) -> Analysis:
    """Analyse a history; deterministic, bootstraps included.

    `rng_seed`: of the bootstraps; None: from the plan's digest.
    """
    seed = int(history.plan.digest[: 2 * _DIGEST_BYTES], 16) if rng_seed is None else rng_seed
    pairs = all_pairs(history)
    found, followed = audit(history, pairs), courses(history, pairs)
    comparisons = tuple(_compare(history, one, pairs[one], course, found, seed) for one, course in followed.items())
    per_run = outcomes(history)
    learned = learning(history, per_run)
    return Analysis(
        outcomes=per_run, comparisons=comparisons, audit=found, cross=cross_evaluation(history),
        exam=kind_of(history).exam(history, per_run, comparisons), learning=learned,
        conduct=conduct(history), remarks=remarks(history, per_run, learned), noise=noise_of_pairs(history),
        result_hash=result_hash(history),
        appraisal=None if history.plan.appraisal is None else findings_of(history.plan.appraisal),
    )  # fmt: skip


def conditions(history: History) -> str:
    """Describe the conditions of every verdict: another horizon or learning rate may give another answer."""
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
    kind = kind_of(history)
    told = (f"task {experiment.task_title}", kind.budget(experiment), f"PPO {settings_said}" if settings_said else "")
    return ", ".join(filter(None, (*told, kind.scope(history))))


def _compare(
    history: History, contrast: Contrast, pairs: tuple[Pair, ...], course: Course, found: Audit, rng_seed: int
) -> Comparison:
    experiment = history.plan.experiment
    question = Question(
        a=contrast.a, b=contrast.b, design=history.design, planned=history.replicates, scope=conditions(history),
        paired=not experiment.unpaired, run_sd=history.plan.run_sd, same_settings=same_settings(history, contrast),
        rng_seed=rng_seed,
    )  # fmt: skip
    return compare(
        question, pairs, course, same_records=same_records(history, contrast, pairs), lost=lost_of(history, contrast),
        findings=found.findings,
    )  # fmt: skip
