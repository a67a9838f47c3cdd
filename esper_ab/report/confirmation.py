"""One sentence about an experiment and its replications: confirmed or not, and the pooled effect. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.wording import counted, listed, n_pairs
from esper_ab.report.together import ContrastTogether, ExperimentEffect, Together
from esper_ab.stats.text import percent
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.sentences import span
from esper_ab.verdict.verdict import Verdict

_BETTER = (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)
_WORSE = (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)
_OPPOSITE = {"better": "worse", "worse": "better", "not worse": "worse"}
_FROM_THE_OTHER_GROUP = {"better": "worse", "worse": "better", "not worse": ""}
_CLAIM_WORDS = {
    "better": "{a} is better than {b}",
    "worse": "{a} is worse than {b}",
    "not worse": "{a} is not worse than {b} by the margin",
    "equivalent": "{a} and {b} are equivalent",
}


def confirmations(answer: Together) -> tuple[str, ...]:
    """Return a sentence per comparison; none before all experiments have ended."""
    if answer.unfinished:
        return ()
    return tuple(_sentence(answer, item) for item in answer.contrasts)


def with_other_code(answer: Together) -> tuple[str, ...]:
    """Return these sentences and, if there are some, one on code that differs, or may differ, between experiments."""
    sentences = confirmations(answer)
    code = answer.question.command_code
    return sentences if code.same or not sentences else (*sentences, code.sentence)


def _sentence(answer: Together, item: ContrastTogether) -> str:
    first_effect, *later_effects = item.effects
    claimed = _claim(first_effect)
    if claimed:
        relation = _confirmed(answer, item, claimed, later_effects)
    else:
        relation = _undecided_at_first(answer, item, later_effects)
    return f"{_task_words(item)}{relation}; {_numbers(answer, item)}."


def _task_words(item: ContrastTogether) -> str:
    """Name the task, or the mean over tasks, if there are several."""
    task = item.contrast.task
    if not task:
        return ""
    return f"{MEAN.capitalize() if task == MEAN else task}: "


def _confirmed(
    answer: Together, item: ContrastTogether, claimed: str, later_effects: Sequence[ExperimentEffect]
) -> str:
    """Say whether the later experiments confirm what the first one claims."""
    first_name = item.effects[0].name
    words = _words(item, claimed)
    agreeing = [effect.name for effect in later_effects if _supports(_claim(effect), claimed)]
    if len(agreeing) == len(later_effects):
        return f"Confirmed: {listed([first_name, *agreeing])} each show that {words}"
    opposed = [effect.name for effect in later_effects if _claim(effect) == _OPPOSITE.get(claimed)]
    if opposed:
        verb = "shows" if len(opposed) == 1 else "show"
        return f"Contradicted: {first_name} shows that {words}, {listed(opposed)} {verb} the opposite"
    others = listed([effect.name for effect in later_effects if effect.name not in agreeing])
    if agreeing:
        relation = f"Confirmed by {listed(agreeing)}, not by {others} alone: {first_name} shows that {words}"
    else:
        relation = f"Not confirmed by {others} alone: {first_name} shows that {words}"
    if item.pooled is None:
        return relation
    all_words = "both together" if len(item.effects) == 2 else "all together"
    if _supports(_claim_of(item.pooled.comparison), claimed):
        return f"{relation}, and {all_words} still {_show(answer)} it"
    return f"{relation}, but {all_words} do not"


def _undecided_at_first(answer: Together, item: ContrastTogether, later_effects: Sequence[ExperimentEffect]) -> str:
    """Say what experiments show of which the first one claims nothing."""
    groups = f"{item.contrast.a} and {item.contrast.b}"
    claiming = [
        f"{effect.name} shows that {_words(item, _claim(effect))}" for effect in later_effects if _claim(effect)
    ]
    if claiming:
        relation = f"{item.effects[0].name} decides nothing about {groups}, {', '.join(claiming)}"
    else:
        relation = f"{_none_of([effect.name for effect in item.effects])} alone decides about {groups}"
    if item.pooled is None:
        return relation
    pooled_claim = _claim_of(item.pooled.comparison)
    if pooled_claim:
        return f"{relation}; together they {_show(answer)} that {_words(item, pooled_claim)}"
    if claiming:
        return f"{relation}; together they decide nothing"
    return f"{relation}, and neither do they together"


def _none_of(names: Sequence[str]) -> str:
    if len(names) == 2:
        return f"Neither {names[0]} nor {names[1]}"
    return f"None of {listed(names)}"


def _show(answer: Together) -> str:
    """Return the verb for a pooled claim."""
    return "suggest" if answer.exploratory else "show"


def _numbers(answer: Together, item: ContrastTogether) -> str:
    """Give the effect over all experiments with its interval, or say why there is none."""
    names = f"{item.contrast.a} - {item.contrast.b}"
    if item.pooled is not None:
        return _pooled_numbers(answer, item.pooled.comparison, names)
    if item.mean is not None:
        design = item.effects[0].comparison.design
        limits = f"{percent(item.mean.level)} interval {span(item.mean.low, item.mean.high, design)}"
        kind = f"mean over {counted(item.mean.experiments, 'experiment')} of different plans"
        return f"{kind}: {names} = {design.difference(item.mean.mean)}, {limits}"
    if answer.question.one_plan:
        return "there is no effect over all of them"
    return "their plans differ, so they are not pooled"


def _pooled_numbers(answer: Together, comparison: Comparison, names: str) -> str:
    pairs = n_pairs(len(comparison.pairs))
    pooled_words = "pooled as planned"
    if answer.exploratory:
        pooled_words = "pooled without a plan, so exploratory"
    if comparison.verdict is Verdict.BLOCKED or comparison.estimate is None:
        return f"{pooled_words} ({pairs}): no answer"
    difference = comparison.design.difference(comparison.estimate)
    if comparison.low is None or comparison.high is None:
        return f"{pooled_words} ({pairs}): {names} = {difference}, without an interval"
    limits = f"{comparison.level} {span(comparison.low, comparison.high, comparison.design)}"
    return f"{pooled_words} ({pairs}): {names} = {difference}, {limits}"


def _claim(effect: ExperimentEffect) -> str:
    """Return what an experiment claims about the common comparison."""
    claim = _claim_of(effect.comparison)
    if effect.sign > 0.0:
        return claim
    return _FROM_THE_OTHER_GROUP.get(claim, claim)


def _claim_of(comparison: Comparison) -> str:
    """Return what a verdict claims about the first group: a key of `_CLAIM_WORDS`, or "" if it claims nothing."""
    if comparison.verdict in _BETTER:
        return "better"
    if comparison.verdict in _WORSE:
        return "worse"
    if comparison.verdict is Verdict.NOT_WORSE:
        return "not worse"
    if comparison.verdict is Verdict.EQUIVALENT:
        return "equivalent"
    return ""


def _supports(claim: str, claimed: str) -> bool:
    """True if an experiment that makes `claim` shows what was `claimed`; a better group is also not worse."""
    return claim == claimed or (claimed == "not worse" and claim == "better")


def _words(item: ContrastTogether, claim: str) -> str:
    """Write a claim: "shaped is better than simplified"."""
    return _CLAIM_WORDS[claim].format(a=item.contrast.a, b=item.contrast.b)
