"""What experiments of one question say together, before any layout: pooled answers, or a mean over experiments. Pure.

Finished experiments of one plan are pooled. Those of different plans are set side by side and, from three on, have a
random-effects mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.analysis.pooling import PooledComparison, pool
from esper_ab.contracts.wording import listed
from esper_ab.design.design import Contrast
from esper_ab.readers.same_question import SameQuestion
from esper_ab.report.content import Content, content
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.pair import outcomes
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.stats.random_effects import LEAST_EXPERIMENTS, RandomEffects, random_effects
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.verdict import Verdict

_ENDED = ("finished", "incomplete")
_SWAPPED = {"BETTER": "WORSE", "WORSE": "BETTER"}  # a verdict, seen from the other group


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

    question: SameQuestion
    experiments: tuple[tuple[str, Content], ...]  # by name, in the order in which they are named
    unfinished: tuple[str, ...]  # names of experiments that have not ended
    contrasts: tuple[ContrastTogether, ...]

    @property
    def pooled(self) -> bool:
        """True if the experiments are pooled."""
        return any(item.pooled is not None for item in self.contrasts)

    @property
    def exploratory(self) -> bool:
        """True if the pooling was not declared in a plan."""
        return not self.question.declared

    @property
    def names(self) -> str:
        """The names of all experiments, as in a sentence."""
        return listed([name for name, _ in self.experiments])


def together(question: SameQuestion) -> Together:
    """Return what the experiments of `question` say, each alone and all together."""
    experiments = tuple((item.name, content(item.history, place=item.name)) for item in question.experiments)
    unfinished = tuple(name for name, own_content in experiments if own_content.state.word not in _ENDED)
    poolable = question.one_plan and not unfinished
    pooled_answers: Sequence[PooledComparison | None] = [None] * len(question.contrasts)
    if poolable:
        pooled_answers = pool(question.experiments, question.contrasts)
    contrasts = []
    for contrast, pooled_answer in zip(question.contrasts, pooled_answers, strict=True):
        effects = _effects(question, experiments, contrast)
        mean = None if question.one_plan or unfinished else _mean(effects)
        contrasts.append(ContrastTogether(contrast=contrast, effects=effects, pooled=pooled_answer, mean=mean))
    return Together(question=question, experiments=experiments, unfinished=unfinished, contrasts=tuple(contrasts))


def _effects(
    question: SameQuestion, experiments: Sequence[tuple[str, Content]], contrast: Contrast
) -> tuple[ExperimentEffect, ...]:
    effects = []
    for item, (name, own_content) in zip(question.experiments, experiments, strict=True):
        for comparison in own_content.comparisons:
            groups = (item.names[comparison.question.a], item.names[comparison.question.b])
            if set(groups) == set(contrast.groups):
                sign = 1.0 if groups == contrast.groups else -1.0
                effects.append(
                    ExperimentEffect(name=name, comparison=comparison, sign=sign, se=_standard_error(comparison))
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
