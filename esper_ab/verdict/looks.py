"""The looks of an experiment, interim and last: which comparisons crossed their boundary, and when. Pure.

Group-sequential with alpha passed on: if a comparison crosses and its difference is shown to be larger than the
margin, its share goes to the comparisons still open, which are tested again at the same look (after Maurer & Bretz
2013). A smaller difference could still be claimed to lie within the margin, so its share is not free. All claims
about the margin (EQUIVALENT, NOT WORSE) are tested at the share that a comparison held first. So the claims of all
comparisons together err with probability alpha. A stop for futility decides nothing: the comparison keeps its share of
alpha and stays INCONCLUSIVE, whatever pairs come later, and no other bound relies on the stop (non-binding). After the
last planned look of an extended plan, and in an open-ended one, every replicate is followed by a look under the
anytime-valid t.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
from msgspec import UNSET

from esper_ab.design.design import Contrast, Design
from esper_ab.stats.adjusted_difference import PriorVariance
from esper_ab.stats.pair import NO_PAIRS, Data, Pairs, Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.guardrail_look import GuardedRuns, claims_for_a, guardrail_look
from esper_ab.verdict.item_pairing import with_items
from esper_ab.verdict.look import Look, take_look
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.pairing import Pairing, leading_complete, pair_explored, pair_up, sampled
from esper_ab.verdict.question import Lost
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.shared_variance import priors_at

LookDecision = Literal["open", "crossed", "not-worse", "equivalent", "futile"]


class ComparisonProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The looks taken so far at one comparison, and their decision. A decision is never reversed."""

    looks: tuple[Look, ...]  # up to the stop if the design stops early, else all
    decision: LookDecision
    decided_at: int | None  # replicates
    direction: int  # +1: a lies above b, -1: below, 0: not crossed
    finished: bool  # every required look was taken; if comparisons stop early, the deciding look is the last
    later: Pairs = NO_PAIRS  # pairs after the decision, which no number uses

    @property
    def last(self) -> Look | None:
        """The newest look taken."""
        return self.looks[-1] if self.looks else None

    @property
    def claimed(self) -> bool:
        """True if a look made a claim, so that the comparison is neither open nor stopped for futility."""
        return self.decision in ("crossed", "not-worse", "equivalent")

    @property
    def standing(self) -> LookDecision:
        """The decision if the last look confirms it, as it always does after an early stop; else "open".

        Reports use the numbers of the last look, so no claim appears next to an estimate that contradicts it.
        """
        if not self.claimed or self.upheld_by(self.looks[-1]):
            return self.decision
        return "open"

    def favours_a(self, sign: float) -> bool:
        """True if the claim is that a is better, or not worse; `sign` is -1.0 if lower outcomes are better."""
        return self.decision == "not-worse" or self.direction * sign > 0.0

    def upheld_by(self, look: Look) -> bool:
        """True if `look`, which is the last look or a retake of it with different runs, supports the claim."""
        if self.decision == "equivalent":
            return look.equivalent
        if self.decision == "not-worse":
            return look.shows_not_worse
        return look.crossed and look.mean is not None and look.mean * self.direction > 0.0


@dataclass(frozen=True, kw_only=True)
class PlanProgress:
    """The looks taken so far at all comparisons of a plan."""

    complete: int  # leading replicates that have all runs that the last look needed
    comparisons: Mapping[Contrast, ComparisonProgress]  # in the order of the design
    pairings: Mapping[Contrast, Pairing]  # for runs done elsewhere, those before a gap and before an early stop


def take_looks(plan: AnalysisPlan, observations: Observations) -> PlanProgress:
    """Take every look whose runs all exist or are lost. Each group has one cell: `tune` chooses it before.

    A look needs the runs of both groups of every comparison that is still open or, if there are no early stops, the
    runs of all groups. Exploratory observations have a single look, at all runs.
    """
    runs = observations.rows
    contrasts = plan.design.comparisons
    if observations.exploratory:
        pairings = dict(pair_explored(plan, observations))
        ready_replicates = dict.fromkeys(contrasts, plan.design.looks[-1])
    else:
        pairings = {contrast: _pair_planned(plan, runs, contrast, plan.replicates) for contrast in contrasts}
        ready_replicates = {
            contrast: leading_complete(runs, contrast, plan.scales, plan.replicates) for contrast in contrasts
        }
    for contrast, pairing in pairings.items():
        pairing = with_items(plan, observations.items, contrast, pairing)
        pairings[contrast] = replace(pairing, guardrails=_pair_guardrails(plan, observations, contrast))
    complete_replicates, comparisons = _look_while_ready(plan, pairings, ready_replicates)
    done_elsewhere = not observations.repeatable and not observations.exploratory
    for contrast, progress in comparisons.items():
        existing_pairs = _pairs_of(pairings[contrast])
        deciding_replicates = progress.decided_at if plan.design.early_stop else None
        if done_elsewhere:
            end = ready_replicates[contrast] if deciding_replicates is None else deciding_replicates
            if plan.evaluation is not None and deciding_replicates is None and progress.last is not None:
                end = progress.last.replicates  # all numbers are those of the last look
            pairing = _pair_planned(plan, runs, contrast, plan.replicates[:end])
            pairings[contrast] = with_items(plan, observations.items, contrast, pairing)
        pairings[contrast] = replace(pairings[contrast], existing=existing_pairs)
        if deciding_replicates is not None:
            later_pairs = existing_pairs.taken(existing_pairs.replicate >= deciding_replicates)
            comparisons[contrast] = msgspec.structs.replace(progress, later=later_pairs)
    return PlanProgress(complete=complete_replicates, comparisons=comparisons, pairings=pairings)


def progress_after(
    design: Design,
    data: Mapping[Contrast, Data],
    complete: int,
    own_designs: Mapping[Contrast, Design] | None = None,
) -> dict[Contrast, ComparisonProgress]:
    """Take the looks at the first `complete` replicates, at every comparison of the design.

    `complete`: number of leading replicates whose runs are all finished or lost. `data`: pairs in any order (those of
    later replicates are ignored), or unpaired runs, which have a single look. Replicates are numbered from 0.
    `own_designs`: by comparison, the design with its own margin and outcome, if these differ between comparisons.
    """
    states = {}
    for contrast in design.comparisons:
        contrast_design = own_designs[contrast] if own_designs else design
        states[contrast] = _State(task=contrast.task, design=contrast_design, data=data.get(contrast, NO_PAIRS))
    for replicates in _looks_between(design, 0, complete):
        _take_look_at_each(design, replicates, list(states.values()))
    return _progress(design, states, complete)


def retake_look(design: Design, look: Look, data: Data, items: ComparedItems | None) -> Look:
    """Take `look` again with different runs, at the same bounds and with the same prior."""
    return take_look(design, look.replicates, data, round(design.alpha / look.alpha), items, look.prior)


@dataclass
class _State:
    """State of one comparison between two looks."""

    task: str
    design: Design  # of the experiment, with the margin and the outcome of this comparison
    data: Data
    items: ComparedItems | None = None
    guardrails: tuple[GuardedRuns, ...] = ()
    lost: Lost = field(default_factory=Lost)
    looks: list[Look] = field(default_factory=list)
    decision: LookDecision = "open"
    decided_at: int | None = None
    direction: int = 0
    shares_at_decision: int = 0  # number of comparisons that shared alpha then, which fixes this one's share
    passed_on: bool = False  # whether its share was passed on: it crossed, and is larger than the margin


def _look_while_ready(
    plan: AnalysisPlan, pairings: Mapping[Contrast, Pairing], ready_replicates: Mapping[Contrast, int]
) -> tuple[int, dict[Contrast, ComparisonProgress]]:
    """Take one look after another; return the number of replicates at the last look, and the progress."""
    design = plan.design
    states = {}
    for contrast, pairing in pairings.items():
        states[contrast] = _State(
            task=contrast.task,
            design=plan.design_of(contrast),
            data=pairing.pairs,
            items=pairing.items,
            guardrails=pairing.guardrails,
            lost=pairing.lost,
        )
    complete_replicates = 0
    while True:
        open_contrasts = [
            contrast for contrast in states if not design.early_stop or states[contrast].decision == "open"
        ]
        reach = min((ready_replicates[contrast] for contrast in open_contrasts), default=0)
        upcoming_look = _next_look(design, complete_replicates, reach)
        if upcoming_look is None:
            return complete_replicates, _progress(design, states, complete_replicates)
        for replicates in _looks_between(design, complete_replicates, upcoming_look):
            _take_look_at_each(design, replicates, list(states.values()))
        complete_replicates = upcoming_look


def _next_look(design: Design, complete_replicates: int, reach: int) -> int | None:
    """Return the next planned look or, after these, the newest one; None if its runs are not the first `reach`."""
    planned_looks = [look for look in design.looks if look > complete_replicates]
    if planned_looks:
        upcoming_look = planned_looks[0]
    elif design.anytime_after is not None:
        upcoming_look = reach
    else:
        return None
    if complete_replicates < upcoming_look <= reach:
        return upcoming_look
    return None


def _looks_between(design: Design, complete_replicates: int, last_replicates: int) -> Iterator[int]:
    """Yield the looks after more than `complete_replicates` and at most `last_replicates` replicates."""
    yield from (look for look in design.looks if complete_replicates < look <= last_replicates)
    if design.anytime_after is not None:
        yield from range(max(design.anytime_after, complete_replicates) + 1, last_replicates + 1)


def _take_look_at_each(design: Design, replicates: int, states: Sequence[_State]) -> None:
    """Take one look at every comparison that still takes part."""
    priors = priors_at(design, replicates, states)
    n_open = sum(not state.passed_on for state in states)
    undecided_states = [state for state in states if _may_cross(design, state)]
    if not design.early_stop:
        for state in states:
            if not _may_cross(design, state):
                state.looks.append(_take_look(state, replicates, state.shares_at_decision, priors))
    while True:
        taken_looks = [(state, _take_look(state, replicates, n_open, priors)) for state in undecided_states]
        crossing = [(state, look) for state, look in taken_looks if look.crossed and not _waits(state, look)]
        if not crossing:
            break
        for state, look in crossing:
            _decide(state, look, "crossed", n_open)
            state.passed_on = _exceeds_margin(look, state.design.margin)
        n_open -= sum(state.passed_on for state, _ in crossing)
        undecided_states = [state for state, _ in taken_looks if state.decided_at != replicates]
    for state, look in taken_looks:
        decision = "open" if _waits(state, look) else _decision_of(look)
        if decision == "open" or state.decision == "not-worse":
            state.looks.append(look)
        else:
            _decide(state, look, decision, n_open)


def _decision_of(look: Look) -> LookDecision:
    """Return the decision of a look that shows no difference."""
    if look.shows_not_worse:
        return "not-worse"
    if look.equivalent:
        return "equivalent"
    return "futile" if look.futile else "open"


def _waits(state: _State, look: Look) -> bool:
    """True if a claim in favour of a waits for a later planned look, because a guardrail is not shown to hold yet."""
    design = state.design
    if design.guards is None or not state.guardrails or not design.early_stop:
        return False
    if look.replicates not in design.looks[:-1]:
        return False
    return claims_for_a(look, design.outcome.sign) and not all(
        guardrail_look(design, guardrail, look.replicates, guarded_runs, state.lost).holds
        for guardrail, guarded_runs in zip(design.guards.items, state.guardrails, strict=True)
    )


def _may_cross(design: Design, state: _State) -> bool:
    """True if a further look may show a difference: of an open comparison, or of a group that is not worse so far."""
    return state.decision == "open" or (state.decision == "not-worse" and not design.early_stop)


def _take_look(state: _State, replicates: int, n_open: int, priors: Mapping[str, PriorVariance]) -> Look:
    """Take one look at one comparison. `priors`: by task."""
    return take_look(state.design, replicates, state.data, n_open, state.items, priors.get(state.task, UNSET))


def _decide(state: _State, look: Look, decision: LookDecision, n_open: int) -> None:
    state.looks.append(look)
    state.decision = decision
    state.decided_at = look.replicates
    state.shares_at_decision = n_open
    if decision != "crossed" or not look.mean:
        return
    if look.mean > 0.0:
        state.direction = 1
    else:
        state.direction = -1


def _exceeds_margin(look: Look, margin: float) -> bool:
    """True if the repeated interval lies outside +-margin."""
    is_above = look.low is not None and look.low >= margin
    is_below = look.high is not None and look.high <= -margin
    return is_above or is_below


def _progress(
    design: Design, states: Mapping[Contrast, _State], complete_replicates: int
) -> dict[Contrast, ComparisonProgress]:
    """Return the progress of each comparison after the looks at the first `complete_replicates` replicates."""
    all_planned = complete_replicates >= max(design.looks, default=0)  # whether every planned look was taken
    is_all_taken = all_planned and design.anytime_after is None
    progress = {}
    for contrast, state in states.items():
        is_decided = state.decision != "open" and (design.early_stop or all_planned)
        progress[contrast] = ComparisonProgress(
            looks=tuple(state.looks),
            decision=state.decision,
            decided_at=state.decided_at,
            direction=state.direction,
            finished=is_decided or is_all_taken,
        )
    return progress


def _pair_planned(plan: AnalysisPlan, runs: Runs, contrast: Contrast, order: Sequence[str]) -> Pairing:
    if not plan.paired:
        return sampled(runs, contrast, plan.scales, order, is_planned=True)
    return pair_up(runs, contrast, plan.scales, order, is_planned=True)


def _pair_guardrails(plan: AnalysisPlan, observations: Observations, contrast: Contrast) -> tuple[GuardedRuns, ...]:
    """Return the measure of each guardrail, over all replicates of the plan."""
    pairings = [_pair_planned(plan, runs, contrast, plan.replicates) for runs in observations.guardrails]
    return tuple(GuardedRuns(data=pairing.pairs, lost=pairing.lost) for pairing in pairings)


def _pairs_of(pairing: Pairing) -> Pairs:
    """Return the pairs; none if the runs form none."""
    if isinstance(pairing.pairs, Samples):
        return NO_PAIRS
    return pairing.pairs
