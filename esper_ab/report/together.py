"""What experiments of one question say together, before any layout: pooled answers, or a mean over experiments. Pure.

Finished experiments of one plan are pooled. Those of different plans are set side by side and, from three on, have a
random-effects mean. Experiments over several tasks are pooled on all tasks and their mean at once; if their plans are
the same on some tasks only, each of these is pooled as experiments of this task alone are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from esper_ab.analysis.pooling import PooledComparison, pool
from esper_ab.analysis.pooling_over_tasks import pool_over_tasks
from esper_ab.contracts.wording import listed
from esper_ab.design.design import Contrast
from esper_ab.readers.joint import JointResult, judge_parts
from esper_ab.readers.same_question import Relation, SameQuestion
from esper_ab.readers.same_question_over_tasks import SameQuestionOverTasks
from esper_ab.report.content import Content, content
from esper_ab.report.document import State
from esper_ab.report.parts_state import FINISHED, state_over_parts
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.pair import outcomes
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.stats.random_effects import LEAST_EXPERIMENTS, RandomEffects, random_effects
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.verdict import Verdict

_ENDED = ("finished", "incomplete")
_SWAPPED = {"BETTER": "WORSE", "WORSE": "BETTER"}  # a verdict, seen from the other group


@dataclass(frozen=True, kw_only=True)
class ExperimentAlone:
    """One of the experiments, judged by its own plan."""

    name: str
    rng_seed: int
    seeds: int
    state: State
    ended: bool
    groups: tuple[str, ...]
    alpha: float
    comparisons: tuple[Comparison, ...]
    whole: Content | JointResult  # all of its report; the latter over several tasks


@dataclass(frozen=True, kw_only=True)
class ExperimentEffect:
    """One comparison in one experiment, seen from the first group of the common comparison."""

    name: str  # of the experiment
    comparison: Comparison  # by the experiment's own plan
    sign: float  # -1.0 if the experiment names the groups in the other order
    se: float | None  # standard error of the effect; None if nothing varies, or there are too few pairs

    @property
    def estimate(self) -> float | None:
        """The effect."""
        estimate = self.comparison.estimate
        return None if estimate is None else self.sign * estimate

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval behind the experiment's own verdict."""
        comparison = self.comparison
        if comparison.low is None or comparison.high is None:
            return None
        low, high = sorted((self.sign * comparison.low, self.sign * comparison.high))
        return low, high

    @property
    def verdict(self) -> str:
        """The experiment's own verdict, seen from the first group of the common comparison."""
        words = str(self.comparison.verdict)
        if self.sign > 0.0:
            return words
        direction, *small_words = words.split(",")
        return ",".join((_SWAPPED.get(direction, direction), *small_words))


@dataclass(frozen=True, kw_only=True)
class ContrastTogether:
    """One comparison in all experiments."""

    contrast: Contrast
    effects: tuple[ExperimentEffect, ...]  # in the order in which the experiments are named
    pooled: PooledComparison | None  # None unless the experiments are finished and of one plan
    mean: RandomEffects | None  # over ended experiments of different plans; None for fewer than three with an se


@dataclass(frozen=True, kw_only=True)
class Together:
    """The answer of several experiments of one question."""

    question: Relation
    experiments: tuple[ExperimentAlone, ...]  # in the order in which they are named
    contrasts: tuple[ContrastTogether, ...]

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Names of experiments that have not ended."""
        return tuple(item.name for item in self.experiments if not item.ended)

    @property
    def pooled(self) -> bool:
        """True if the experiments are pooled."""
        return any(item.pooled is not None for item in self.contrasts)

    @property
    def over_tasks(self) -> bool:
        """True if the experiments are over several tasks."""
        return any(item.contrast.task for item in self.contrasts)

    @property
    def exploratory(self) -> bool:
        """True if the pooling was not declared in a plan."""
        return not self.question.declared

    @property
    def names(self) -> str:
        """The names of all experiments, as in a sentence."""
        return listed([item.name for item in self.experiments])


def together(question: SameQuestion) -> Together:
    """Return what the experiments of `question` say, each alone and all together."""
    experiments = tuple(
        _experiment_on_task(item.name, content(item.history, place=item.name)) for item in question.experiments
    )
    names = [item.names for item in question.experiments]
    pooled_answers: Mapping[Contrast, PooledComparison] = {}
    if question.one_plan and all(item.ended for item in experiments):
        pooled_answers = _pool_task(question, "")
    return _together(question, question.contrasts, experiments, names, pooled_answers)


def together_over_tasks(question: SameQuestionOverTasks) -> Together:
    """Return what the experiments over several tasks say, each alone and all together, on the mean and on each task."""
    experiments = tuple(
        _experiment_over_tasks(joined.name, judge_parts(loaded_parts))
        for joined, loaded_parts in zip(question.experiments, question.loaded, strict=True)
    )
    names = [next(iter(item.parts.values())).names for item in question.experiments]
    pooled_answers: dict[Contrast, PooledComparison] = {}
    if all(item.ended for item in experiments):
        if question.one_plan:
            pooled = pool_over_tasks(question.experiments)
            pooled_answers = {_contrast_of(item.comparison): item for item in pooled}
        else:
            for task, task_question in question.tasks.items():
                if task_question.one_plan:
                    pooled_answers |= _pool_task(task_question, task)
    return _together(question, question.contrasts, experiments, names, pooled_answers)


def _pool_task(question: SameQuestion, task: str) -> dict[Contrast, PooledComparison]:
    """Pool experiments of one task; `task`: its name among others."""
    pooled = pool(question.experiments, question.contrasts)
    contrasts = [msgspec.structs.replace(contrast, task=task) for contrast in question.contrasts]
    return dict(zip(contrasts, pooled, strict=True))


def _together(
    question: Relation,
    common_contrasts: Sequence[Contrast],
    experiments: tuple[ExperimentAlone, ...],
    names: Sequence[Mapping[str, str]],
    pooled_answers: Mapping[Contrast, PooledComparison],
) -> Together:
    """Set the experiments side by side. `names`: by experiment, its own name of a group -> the common one."""
    has_mean = not question.one_plan and all(item.ended for item in experiments)
    contrasts = []
    for contrast in common_contrasts:
        effects = _effects(experiments, names, contrast)
        pooled = pooled_answers.get(contrast)
        mean = _mean(effects) if has_mean and pooled is None else None
        contrasts.append(ContrastTogether(contrast=contrast, effects=effects, pooled=pooled, mean=mean))
    return Together(question=question, experiments=experiments, contrasts=tuple(contrasts))


def _experiment_on_task(name: str, own_content: Content) -> ExperimentAlone:
    return ExperimentAlone(
        name=name,
        rng_seed=own_content.experiment.rng_seed,
        seeds=own_content.history.replicates,
        state=own_content.state,
        ended=own_content.state.word in _ENDED,
        groups=own_content.groups,
        alpha=own_content.design.alpha,
        comparisons=own_content.comparisons,
        whole=own_content,
    )


def _experiment_over_tasks(name: str, result: JointResult) -> ExperimentAlone:
    loaded_parts = result.loaded_parts
    plan = loaded_parts.plan
    return ExperimentAlone(
        name=name,
        rng_seed=loaded_parts.rng_seed,
        seeds=len(plan.replicates),
        state=state_over_parts(loaded_parts) or FINISHED,
        ended=loaded_parts.ended,
        groups=plan.groups,
        alpha=plan.design.alpha,
        comparisons=result.judged.comparisons,
        whole=result,
    )


def _contrast_of(comparison: Comparison) -> Contrast:
    question = comparison.question
    return Contrast(a=question.a, b=question.b, task=question.task)


def _effects(
    experiments: Sequence[ExperimentAlone], names: Sequence[Mapping[str, str]], contrast: Contrast
) -> tuple[ExperimentEffect, ...]:
    effects = []
    for item, common_names in zip(experiments, names, strict=True):
        for comparison in item.comparisons:
            own_contrast = _contrast_of(comparison)
            groups = (common_names[own_contrast.a], common_names[own_contrast.b])
            if own_contrast.task == contrast.task and set(groups) == set(contrast.groups):
                sign = 1.0 if groups == contrast.groups else -1.0
                effects.append(
                    ExperimentEffect(name=item.name, comparison=comparison, sign=sign, se=_standard_error(comparison))
                )
    return tuple(effects)


def _standard_error(comparison: Comparison) -> float | None:
    """Return the standard error of the effect: that of the deciding t or, for outcomes of 0 or 1, of the mean."""
    effect = comparison.effect
    if isinstance(effect, AdjustedDifference):
        return effect.se
    used_pairs = comparison.pairs[: comparison.used]
    if len(used_pairs) < 2:
        return None
    return paired_difference(*outcomes(used_pairs)).se


def _mean(effects: Sequence[ExperimentEffect]) -> RandomEffects | None:
    """Return the random-effects mean over the experiments whose effect has a standard error; None for fewer than three.

    An experiment whose own audit blocks its verdict is left out. The interval has the level of the first experiment's
    plan.
    """
    sound = [effect for effect in effects if effect.comparison.verdict is not Verdict.BLOCKED]
    numbers = [(effect.estimate, effect.se) for effect in sound]
    usable = [(estimate, se) for estimate, se in numbers if estimate is not None and se is not None and se > 0.0]
    if len(usable) < LEAST_EXPERIMENTS:
        return None
    alpha = effects[0].comparison.question.design.alpha
    estimates = [estimate for estimate, _ in usable]
    variances = [math.pow(se, 2) for _, se in usable]
    return random_effects(estimates, variances, 1.0 - alpha)
