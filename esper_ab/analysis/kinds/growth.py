"""Growth: baselines that learn nothing, equal bare hosts, the worth of parameters, and the screening. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from esper_ab.analysis.conduct import evaluated_envs
from esper_ab.analysis.kinds import AnalysisKind
from esper_ab.analysis.learning import greedy_gap
from esper_ab.analysis.observe import Pairs
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome, mean, outcome_of
from esper_ab.settings.experiment import starts
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.t_tests import paired_difference
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.vocabulary import Finding, Verdict

# --- baseline --------------------------------------------------------------------------------------------------------
# Do the groups stand clear of what they would come to without learning anything? Pure.
#
# Two groups that learn nothing end alike, and so would any other two: that they do not differ then shows nothing about
# them. In clinical trials this is called assay sensitivity (ICH E10). So nothing is called smaller than the margin
# unless both groups are shown to be farther than the margin from every baseline there is: guessing, and the host that
# never grows.


_UNEVEN = 1.05  # of guessing one class only: the classes of a test split are not equally large


def _baselines(history: History, pairs: Pairs) -> Iterator[Finding]:
    """Yield at most one finding per comparison and baseline, once there are enough pairs for an equivalence."""
    chance = history.plan.chance
    waiting = [group.name for group in history.plan.experiment.groups if group.settings.controller.name == "wait"]
    for contrast in history.design.comparisons:
        used = [pair.replicate for pair in pairs[contrast]]
        if len(used) < LEAST_EQUIVALENCE_PAIRS:
            continue
        if chance is not None:
            guessed = dict.fromkeys(used, chance * _UNEVEN)
            above = f"above guessing ({chance:.3g} %)"
            yield from _near(history, contrast, guessed, -math.inf, above, "that learn nothing")
        # A comparison with the bare host itself asks about nothing else.
        for bare in waiting if not {*contrast.groups} & {*waiting} else ():
            grown = _outcomes(history, bare, used)
            never = f"from {bare}, which never grows"
            yield from _near(history, contrast, grown, -history.design.margin, never, "that grow nothing")


def _near(
    history: History, contrast: Contrast, baseline: Mapping[int, float], least: float, what: str, who: str
) -> Iterator[Finding]:
    """Find groups that are not shown to lie above the baseline by more than the margin, nor below `least`.

    `baseline`: by replicate, percent.
    """
    margin, near = history.design.margin, dict[str, str]()
    for group in contrast.groups:
        ends = _outcomes(history, group, baseline)
        if not ends:
            continue
        far = paired_difference(list(ends.values()), [baseline[replicate] for replicate in ends])
        low, high = (far.mean if end is None else end for end in (far.low, far.high))  # None without a t
        if low <= margin and high >= least:
            near[group] = f"{group} {far.mean:+.2f} points, 95 % interval {low:+.2f} to {high:+.2f}"
    if near:
        yield Finding(
            "baseline", "caps equivalence", contrast.groups,
            f"{' and '.join(near)} {'is' if len(near) == 1 else 'are'} not shown to be more than the margin of "
            f"{margin:g} points {what} ({'; '.join(near.values())}): two groups {who} would be as close, so "
            "EQUIVALENT cannot be claimed.",
        )


def _outcomes(history: History, group: str, replicates: Collection[int]) -> dict[int, float]:
    """Return the outcomes in percent, by replicate, for the replicates that have one."""
    ends = {
        run.ref.replicate: outcome_of(run, history.design.outcome_over)
        for run in history.of_group(group)
        if run.ref.replicate in replicates
    }
    return {replicate: end for replicate, end in ends.items() if end is not None}


# --- worth -----------------------------------------------------------------------------------------------------------
# What grown parameters and seeds are worth: accuracy per parameter, and the share of seeds that is kept. Pure.


def gains_per_kparam(history: History, outcomes: Mapping[str, RunOutcome]) -> dict[str, float | None]:
    """Return by run the points above the never-grown host of its replicate, per 1,000 parameters added to a host.

    None without a group that waits, and where nothing was added.
    """
    baselines = {
        run.ref.replicate: outcomes[name].evaluated
        for name, run in history.runs.items()
        if run.spec.settings.controller.name == "wait" and outcomes[name].evaluated is not None
    }
    return {name: _gain(one, baselines.get(one.run.replicate)) for name, one in outcomes.items()}


def _gain(one: RunOutcome, baseline: float | None) -> float | None:
    added = one.measures["params_added"]
    if one.evaluated is None or baseline is None or not added:
        return None
    return (one.evaluated - baseline) / (added / 1000)


def kept_share(one: RunOutcome) -> float | None:
    """Return the share of fossilised seeds among fossilised and pruned ones; None without any."""
    kept, pruned = one.measures["fossilized"], one.measures["pruned"]
    if kept is None or pruned is None or kept + pruned == 0:
        return None
    return kept / (kept + pruned)


# --- screening -------------------------------------------------------------------------------------------------------
# The reward screening: each learning group against the control, by four criteria. Pure.
#
# The decision says whether a reward is worth continuing with, and why. Only the first criterion, the comparison of the
# plan, is a test with an error rate. The others are described by paired 95 % t intervals that share no error rate;
# they can send a reward back, never pass one.


Decision = Literal["continue", "revise", "stop", "undecided"]
_GAINED = (Verdict.BETTER,)
_NOT_WORTH = (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN, Verdict.BETTER_BELOW_MARGIN, Verdict.EQUIVALENT)


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One question about one group, and its answer; `passed` is None where the data leave it open."""

    name: str
    question: str
    passed: bool | None
    mean: float | None  # of the measure in question
    low: float | None  # 95 % t interval; for the accuracy, the repeated interval of the comparison
    high: float | None
    runs: int  # number of pairs or runs


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """Decision on one group."""

    group: str
    criteria: tuple[Criterion, ...]
    decision: Decision
    reason: str  # one sentence


class Screening(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions on all learning groups, against one control."""

    control: str
    judgements: tuple[Judgement, ...]


def screening(
    history: History, outcomes: Mapping[str, RunOutcome], comparisons: Sequence[Comparison]
) -> Screening | None:
    """Judge every learning group; None unless the experiment is a screening."""
    experiment = history.plan.experiment
    if not experiment.screening:
        return None
    gains = gains_per_kparam(history, outcomes)
    trained = {group.name for group in experiment.groups if group.settings.learns}
    judgements = tuple(
        _judge(
            comparison, comparison.question.a in trained, gains,
            _by_replicate(history, outcomes, comparison.question.a),
            _by_replicate(history, outcomes, comparison.question.b),
        )
        for comparison in comparisons
    )
    return Screening(control=experiment.control, judgements=judgements)


def _by_replicate(history: History, outcomes: Mapping[str, RunOutcome], group: str) -> dict[int, RunOutcome]:
    return {run.ref.replicate: outcomes[run.ref.name] for run in history.of_group(group)}


def _judge(
    comparison: Comparison, trained: bool, gains: Mapping[str, float | None], a: Mapping[int, RunOutcome],
    b: Mapping[int, RunOutcome],
) -> Judgement:
    group, control = comparison.question.a, comparison.question.b
    criteria = (
        _accuracy(comparison),
        _against(
            a, b, lambda one: gains[one.run.name], "efficiency",
            f"more points above the never-grown host per 1,000 added parameters than {control}?",
        ),
        _against(
            a, b, kept_share, "keeps what it grows",
            f"a larger share of fossilised seed modules, among fossilised and pruned ones, than {control}?",
        ),
        _decisive(a),
    )  # fmt: skip
    decision, reason = _decide(comparison, criteria)
    sampled, greedy = mean(run.evaluated for run in a.values()), mean(run.greedy for run in a.values())
    gap = greedy_gap(comparison.design, sampled, greedy)
    if gap and trained:
        reason = f"{reason} Note: {gap}."
    return Judgement(group=group, criteria=criteria, decision=decision, reason=reason)


def _accuracy(comparison: Comparison) -> Criterion:
    verdict = comparison.verdict
    passed = True if verdict in _GAINED else False if verdict in _NOT_WORTH else None
    margin = comparison.design.margin_words
    return Criterion(
        name="held-out accuracy",
        question=f"better than {comparison.question.b}, by an amount that may exceed the margin of {margin}?",
        passed=passed, mean=comparison.estimate, low=comparison.low, high=comparison.high, runs=comparison.used,
    )  # fmt: skip


def _against(
    a: Mapping[int, RunOutcome],
    b: Mapping[int, RunOutcome],
    measure: Callable[[RunOutcome], float | None],
    name: str,
    question: str,
) -> Criterion:
    """Judge a paired difference: passed if the interval of a - b is above 0, failed if it is below."""
    return _criterion(name, question, [(measure(a[r]), measure(b[r])) for r in sorted(a.keys() & b.keys())])


def _decisive(a: Mapping[int, RunOutcome]) -> Criterion:
    question = "does the entropy of its decisions fall during training (nats, last tenth minus first)?"
    evaluated = [a[r] for r in sorted(a) if a[r].evaluated is not None]  # excludes lost and unfinished runs
    return _criterion("decisiveness", question, [(run.entropy_change, 0.0) for run in evaluated], sign=-1.0)


def _criterion(
    name: str, question: str, both: Sequence[tuple[float | None, float | None]], *, sign: float = 1.0
) -> Criterion:
    """Judge by the paired differences of the known values in `both`; `sign`: the sign of a favourable difference."""
    known = [(x, y) for x, y in both if x is not None and y is not None]
    difference = paired_difference([x for x, _ in known], [y for _, y in known]) if known else None
    low, high = (difference.low, difference.high) if difference else (None, None)
    passed = None
    if low is not None and high is not None:
        nearer, farther = sorted((sign * low, sign * high))
        passed = True if nearer > 0 else False if farther < 0 else None
    return Criterion(
        name=name, question=question, passed=passed, mean=difference.mean if difference else None, low=low, high=high,
        runs=difference.pairs if difference else 0,
    )  # fmt: skip


def _decide(comparison: Comparison, criteria: Sequence[Criterion]) -> tuple[Decision, str]:
    group, control, verdict = comparison.question.a, comparison.question.b, comparison.verdict
    failed = [criterion.name for criterion in criteria[1:] if criterion.passed is False]
    if verdict in (Verdict.BLOCKED, Verdict.NO_INFERENCE):
        return "undecided", f"the comparison with {control} is {verdict}, so nothing follows about {group}."
    if verdict in _NOT_WORTH or verdict is Verdict.IDENTICAL:
        return "stop", f"{group} is {verdict} relative to {control}: training with it brings no useful gain."
    if verdict is Verdict.INCONCLUSIVE:
        also = f"; it also fails in {' and '.join(failed)}" if failed else ""
        shown = f"{group} is not shown to be better than {control} by its sampled actions"
        if comparison.inconclusive == "futile":
            return "revise", f"{shown}, and a difference of the margin has become unlikely: try another reward{also}."
        return "revise", f"{shown}: run more seeds, or try another reward{also}."
    if failed:
        return "revise", f"{group} is better than {control}, but fails in {' and '.join(failed)}."
    unclear = [criterion.name for criterion in criteria[1:] if criterion.passed is None]
    rest = f" (open: {', '.join(unclear)})" if unclear else ""
    return "continue", f"{group} is better than {control} and fails no other criterion{rest}."


# --- kind ------------------------------------------------------------------------------------------------------------


_SIZE = "host_params"


def _findings(history: History, pairs: Pairs) -> Iterator[Finding]:
    yield from _baselines(history, pairs)
    runs = history.runs.values()
    trained = {size for run in runs for size in run.columns.measure(_SIZE) if size == size}  # false for NaN
    sizes = trained | {env.measures[_SIZE] for run in runs for env in evaluated_envs(run)}
    if len(sizes) > 1:
        numbers = ", ".join(f"{size:g}" for size in sorted(size for size in sizes if size is not None))
        yield Finding(
            "data", "blocks", (), f"The bare hosts had different numbers of parameters ({numbers}): not one task.",
        )


def _scope(history: History) -> str:
    """Say where the op head starts, which decides what an untrained policy prefers."""
    groups = history.plan.experiment.groups
    if not any(group.settings.has_policy for group in groups):
        return ""
    begin = starts(groups)
    return f"start {'by group' if len(begin) > 1 else next(iter(begin), '')}"


KIND = AnalysisKind(findings=_findings, scope=_scope, screening=screening)
