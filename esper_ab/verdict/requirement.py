"""Requirements on a verdict, for continuous integration: --fail-unless "simplified better-than shaped".

Loads no numpy: `launch` checks requirements before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from esper_ab.contracts.errors import ConditionNotMet, UsageError
from esper_ab.contracts.wording import did_you_mean, n_pairs, named
from esper_ab.design.design import Contrast
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.verdict.vocabulary import SMALL, Verdict

if TYPE_CHECKING:
    from esper_ab.verdict.comparison import Comparison

RELATIONS = ("better-than", "worse-than", "equivalent-to", "not-worse-than")
EXAMPLE = '--fail-unless "simplified better-than shaped"'


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """`left` `relation` `right`, as the user wrote it."""

    left: str
    relation: str
    right: str

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


def parse_requirement(text: str, groups: Sequence[str], comparisons: Iterable[Contrast]) -> Requirement:
    """Parse `text`.

    Raises UsageError if the form is wrong, a relation or group is unknown, or the two groups are not compared.
    """
    words = text.split()
    at = [place for place, word in enumerate(words) if word in RELATIONS]
    if len(at) != 1 or at[0] in (0, len(words) - 1):
        raise UsageError(
            f'--fail-unless "{text}": expected GROUP RELATION GROUP, as in {EXAMPLE}; relations: {", ".join(RELATIONS)}'
        )
    left, right = " ".join(words[: at[0]]), " ".join(words[at[0] + 1 :])
    for name in (left, right):
        if name not in groups:
            raise UsageError(f'--fail-unless "{text}": no group {name!r}; {did_you_mean(name, groups)}')
    compared = [contrast.groups for contrast in comparisons]
    if (left, right) not in compared and (right, left) not in compared:
        raise UsageError(f'--fail-unless "{text}": these two are not compared; the plan compares {named(compared)}')
    return Requirement(left=left, relation=words[at[0]], right=right)


def require(requirements: Iterable[Requirement], comparisons: Sequence[Comparison]) -> None:
    """Raise ConditionNotMet if any requirement does not hold; the error lists all that do not, with their verdicts."""
    failed = []
    for requirement in requirements:
        names = {requirement.left, requirement.right}
        comparison = next(item for item in comparisons if {item.question.a, item.question.b} == names)
        if not holds(requirement, comparison):
            question = comparison.question
            stopped = ", stopped for futility" if comparison.inconclusive == "futile" else ""
            few = _too_few(requirement, comparison)
            said = f"{question.a} against {question.b} is {comparison.verdict}{stopped}{few}"
            failed.append(f'"{requirement}" does not hold: {said}')
    if failed:
        raise ConditionNotMet("; ".join(failed))


def holds(requirement: Requirement, comparison: Comparison) -> bool:
    """True if the verdict supports the requirement.

    False if no look had LEAST_PAIRS pairs or more, or if the audit or lost runs cap the verdict at INCONCLUSIVE.
    Otherwise:

    - better-than, worse-than: the direction was shown, whatever its size.
    - equivalent-to: the difference was shown to be smaller than the margin, or both groups were one computation and
      lost equally many runs.
    - not-worse-than: the same as for equivalent-to, or the group was shown to be better, or the repeated interval
      excludes that it is worse by the margin or more (non-inferiority).

    Results about the margin need as many pairs as an equivalence, and outcomes clearly better than those of a group
    that learns nothing. A stop for futility is not a claim; only the interval of the look counts.
    """
    look = comparison.last_look
    if look is None or look.pairs < LEAST_PAIRS or comparison.capped_by:
        return False
    verdict, forwards = comparison.verdict, comparison.question.a == requirement.left
    if requirement.relation in ("better-than", "worse-than"):
        return verdict.startswith("BETTER" if (requirement.relation == "better-than") == forwards else "WORSE")
    if verdict in SMALL:
        return True
    if verdict == Verdict.IDENTICAL:
        return comparison.lost.a == comparison.lost.b
    if requirement.relation == "equivalent-to":
        return False
    if verdict == Verdict.INCONCLUSIVE:
        return _not_worse(comparison, forwards=forwards)
    return verdict == (Verdict.BETTER if forwards else Verdict.WORSE)


def _too_few(requirement: Requirement, comparison: Comparison) -> str:
    """Say how many pairs a requirement needs if there are too few; else ""."""
    look, counted = comparison.last_look, n_pairs(len(comparison.pairs))
    if look is not None and look.pairs >= LEAST_PAIRS:
        if requirement.relation in RELATIONS[:2] or look.pairs >= LEAST_EQUIVALENCE_PAIRS:
            return ""
        return f" of {counted}; showing a difference below the margin needs {LEAST_EQUIVALENCE_PAIRS}"
    return f" of {counted}; every requirement needs a look with at least {LEAST_PAIRS} pairs"


def _not_worse(comparison: Comparison, *, forwards: bool) -> bool:
    """True if, in an open comparison, the last look's repeated interval excludes the margin on the relevant side."""
    look, (low, high) = comparison.last_look, comparison.limits_with_losses
    near_baseline = any(finding.weight == "caps equivalence" for finding in comparison.findings)
    if look is None or low is None or high is None or look.pairs < LEAST_EQUIVALENCE_PAIRS or near_baseline:
        return False
    margin, sign = comparison.design.margin, comparison.question.sign * (1.0 if forwards else -1.0)
    return (low if sign > 0.0 else -high) > -margin
