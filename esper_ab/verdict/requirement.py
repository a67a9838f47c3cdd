"""Requirements on a verdict, for continuous integration: --fail-unless "simplified better-than shaped".

Loads no numpy: `launch` checks requirements before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from esper_ab.contracts.errors import ConditionNotMet, UsageError
from esper_ab.contracts.wording import did_you_mean, n_pairs, named
from esper_ab.design.design import Contrast
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS, unseen_rate
from esper_ab.verdict.inconclusive import Inconclusive
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import SMALL, Verdict

if TYPE_CHECKING:
    from esper_ab.verdict.comparison import Comparison

RELATIONS = ("better-than", "worse-than", "equivalent-to", "not-worse-than")
_GUARDABLE = ("better-than", "not-worse-than")
_ABOUT_SIZE = RELATIONS[2:]  # which say that a difference is small, or no loss: on every task
_GUARDED = " with guardrails"
GUARDRAIL = "lower wall_s margin 10%"  # an example
EXAMPLE = '--fail-unless "simplified better-than shaped"'


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """`left` `relation` `right`, as the user wrote it."""

    left: str
    relation: str
    right: str
    guarded: bool = False  # and all guardrails of the plan hold for `left`

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}{_GUARDED if self.guarded else ''}"


def parse_requirement(
    text: str,
    groups: Sequence[str],
    comparisons: Iterable[Contrast],
    *,
    has_guardrails: bool = True,
    origin: str = "--fail-unless",
) -> Requirement:
    """Parse `text`, which was written at `origin`; `has_guardrails`: whether the plan has any, or that is not known.

    Raises UsageError if the form is wrong, a relation or group is unknown, the two groups are not compared, or the
    requirement is about guardrails and the plan has none.
    """
    guarded = text.rstrip().endswith(_GUARDED)
    words = text.rstrip().removesuffix(_GUARDED).split()
    relation_places = [place for place, word in enumerate(words) if word in RELATIONS]
    if len(relation_places) != 1 or relation_places[0] in (0, len(words) - 1):
        raise UsageError(
            f'{origin} "{text}": expected GROUP RELATION GROUP, as in {EXAMPLE}; relations: {", ".join(RELATIONS)}'
        )
    (place,) = relation_places
    left_group = " ".join(words[:place])
    right_group = " ".join(words[place + 1 :])
    for name in (left_group, right_group):
        if name not in groups:
            raise UsageError(f'{origin} "{text}": no group {name!r}; {did_you_mean(name, groups)}')
    compared_groups = [contrast.groups for contrast in comparisons]
    if (left_group, right_group) not in compared_groups and (right_group, left_group) not in compared_groups:
        raise UsageError(f'{origin} "{text}": these two are not compared; the plan compares {named(compared_groups)}')
    relation = words[place]
    if guarded and (relation not in _GUARDABLE or (left_group, right_group) not in compared_groups):
        first_group, second_group = compared_groups[0]
        raise UsageError(
            f'{origin} "{text}": guardrails are those of a group that is compared with another one, as in '
            f'"{first_group} better-than {second_group}{_GUARDED}" or "… not-worse-than …{_GUARDED}"'
        )
    if guarded and not has_guardrails:
        raise UsageError(
            f'{origin} "{text}": this plan has no guardrails; declare one, as in --guardrail "{GUARDRAIL}"'
        )
    return Requirement(left=left_group, relation=relation, right=right_group, guarded=guarded)


def require(requirements: Iterable[Requirement], comparisons: Sequence[Comparison]) -> list[str]:
    """Raise ConditionNotMet if any requirement does not hold; the error lists all that do not, with their verdicts.

    `comparisons`: those of one task, or of all tasks and of their mean. Returns what the requirements leave open
    although they hold, in a sentence each.

    - equivalent-to, not-worse-than: hold on every task, whatever the mean.
    - better-than, worse-than: hold on the mean, and no task has the opposite verdict beyond the margin.
    """
    failures = list[str]()
    notes = list[str]()
    for requirement in requirements:
        names = {requirement.left, requirement.right}
        items_between = [item for item in comparisons if {item.question.a, item.question.b} == names]
        tasks = [item for item in items_between if item.question.task != MEAN]
        if requirement.relation in _ABOUT_SIZE:
            items_against = [item for item in tasks if not holds(requirement, item)]
        else:
            items_against = [
                item for item in items_between[-1:] if not holds(requirement, item)
            ]  # the mean is the last one
            if len(tasks) > 1:
                items_against += [item for item in tasks if _opposite(requirement, item)]
        if items_against:
            reasons = [_failing(requirement, item) for item in items_against]
            failures.append(f'"{requirement}" does not hold: {"; ".join(reasons)}')
        elif requirement.relation in _ABOUT_SIZE:
            notes += [_unseen(requirement, item) for item in tasks]
    notes = [note for note in notes if note]
    if failures:
        raise ConditionNotMet("; ".join(failures))
    return notes


def _failing(requirement: Requirement, comparison: Comparison) -> str:
    """Say which verdict does not support a requirement, and on which of several tasks."""
    question = comparison.question
    text = f"{question.a} against {question.b} is {comparison.verdict}"
    if question.task == MEAN:
        text = f"{text} on the mean over tasks"
    elif question.task:
        text = f"on {question.task}, {text}"
    if requirement.guarded and holds(replace(requirement, guarded=False), comparison):
        return f"{text}{_failing_guardrail(comparison)}"
    if comparison.inconclusive is Inconclusive.FUTILE:
        text = f"{text}, stopped for futility"
    if not _opposite(requirement, comparison):
        text += _count_missing_pairs(requirement, comparison)
    return text


def _guardrails_hold(comparison: Comparison) -> bool:
    """True if the plan has guardrails, and all were shown to hold."""
    results = comparison.guardrails
    return bool(results) and all(result.result == "holds" for result in results)


def _failing_guardrail(comparison: Comparison) -> str:
    """Say which guardrail does not hold."""
    for result in comparison.guardrails:
        if result.result != "holds":
            measure = result.guardrail.measure.label
            return f", but the guardrail {measure} ({result.guardrail.margin_words}) is {result.result}"
    guards = comparison.design.guards
    if guards is not None and not comparison.guardrails:  # identical pairs, before the first look
        first_guardrail = guards.items[0]
        return f", but the guardrail {first_guardrail.measure.label} ({first_guardrail.margin_words}) is not tested"
    return ", but the plan has no guardrails (--guardrail)"


def _opposite(requirement: Requirement, comparison: Comparison) -> bool:
    """True if the verdict is BETTER or WORSE, not below the margin, and against the group that should be ahead."""
    left_ahead = requirement.relation != "worse-than"
    left_first = comparison.question.a == requirement.left
    if left_ahead == left_first:
        return comparison.verdict == Verdict.WORSE
    return comparison.verdict == Verdict.BETTER


def _unseen(requirement: Requirement, comparison: Comparison) -> str:
    """Say what failures that struck no run could cost, although a requirement holds; "" if less than the margin."""
    look = comparison.last_look
    design = comparison.design
    question = comparison.question
    if look is None or comparison.verdict == Verdict.IDENTICAL or look.for_any_shape:
        return ""
    task_words = f" on {question.task}" if question.task else ""
    rate = unseen_rate(look.pairs)
    missed_words = (
        f"failures in up to {round(100.0 * rate)} % of a group's runs may be unseen with {n_pairs(look.pairs)}"
    )
    text = f'"{requirement}" holds{task_words}, but {missed_words}'
    if comparison.worst is None:
        return (
            f"{text}, and no worst outcome is declared ({question.worst_flag}); if a group is worse by the margin only "
            "because of rare failures, such a condition still holds in 9 to 63 % of experiments with 15 pairs, and "
            "more often with fewer"
        )
    cost_a, cost_b = comparison.unseen_costs or (0.0, 0.0)
    costs = {question.a: cost_a, question.b: cost_b}
    if requirement.relation == "not-worse-than":
        group = requirement.left
    else:
        group = max(costs, key=lambda name: (costs[name], name))
    cost = costs[group]
    if cost < design.margin:
        return ""
    worst_words = f"at the worst outcome declared or seen ({design.value(comparison.worst)})"
    return f"{text}: {worst_words}, they worsen the mean of {group} by {design.size(cost)}"


def holds(requirement: Requirement, comparison: Comparison) -> bool:
    """True if the verdict supports the requirement.

    False if no look had LEAST_PAIRS pairs or more, unless that many were identical, or if the audit or lost runs cap
    the verdict at INCONCLUSIVE; of a requirement with guardrails, also unless all of them were shown to hold.
    Otherwise:

    - better-than, worse-than: the direction was shown, whatever its size.
    - equivalent-to: the difference was shown to be smaller than the margin, or both groups were one computation and
      lost equally many runs.
    - not-worse-than: the same as for equivalent-to, or the group was shown to be better or NOT WORSE, or the repeated
      interval excludes that it is worse by the margin or more (non-inferiority).

    Results about the margin need as many pairs as an equivalence, and outcomes clearly better than those of a group
    that learns nothing. A stop for futility is not a claim; only the interval of the look counts.
    """
    verdict = comparison.verdict
    unguarded = requirement.guarded and not _guardrails_hold(comparison)
    if _judged_pairs(comparison) < LEAST_PAIRS or comparison.capped_by or unguarded:
        return False
    left_first = comparison.question.a == requirement.left
    if requirement.relation not in _ABOUT_SIZE:
        left_ahead = requirement.relation == "better-than"
        if left_ahead == left_first:
            return verdict in (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)
        return verdict in (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)
    if verdict in SMALL:
        return True
    if verdict == Verdict.IDENTICAL:
        return comparison.lost.a == comparison.lost.b
    if requirement.relation == "equivalent-to":
        return False
    if verdict == Verdict.NOT_WORSE and left_first:
        return True
    if verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_WORSE):
        return _is_not_worse(comparison, left_first=left_first)
    if left_first:
        return verdict == Verdict.BETTER
    return verdict == Verdict.WORSE


def _judged_pairs(comparison: Comparison) -> int:
    """Return the pairs of the last look; all of them if they are identical, for which no look is needed."""
    if comparison.verdict == Verdict.IDENTICAL:
        return len(comparison.pairs)
    return 0 if comparison.last_look is None else comparison.last_look.pairs


def _count_missing_pairs(requirement: Requirement, comparison: Comparison) -> str:
    """Say how many pairs a requirement needs if there are too few; else ""."""
    look = comparison.last_look
    count_words = n_pairs(len(comparison.pairs))
    if look is not None and look.pairs >= LEAST_PAIRS:
        if requirement.relation not in _ABOUT_SIZE or look.pairs >= LEAST_EQUIVALENCE_PAIRS:
            return ""
        return f" of {count_words}; showing a difference below the margin needs {LEAST_EQUIVALENCE_PAIRS}"
    return f" of {count_words}; every requirement needs a look with at least {LEAST_PAIRS} pairs"


def _is_not_worse(comparison: Comparison, *, left_first: bool) -> bool:
    """True if, in an open comparison, the last look's repeated interval excludes the margin on the relevant side."""
    look = comparison.last_look
    low, high = comparison.limits_with_losses
    if look is None or low is None or high is None or look.pairs < LEAST_EQUIVALENCE_PAIRS:
        return False
    near_baseline = any(finding.weight == "caps equivalence" for finding in comparison.findings)
    if near_baseline:
        return False
    margin = comparison.design.margin
    higher_is_better = comparison.question.sign > 0.0
    if higher_is_better == left_first:
        return low > -margin
    return high < margin
