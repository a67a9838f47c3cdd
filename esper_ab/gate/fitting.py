"""Fits a planned gate to its minutes: how many seeds, which looks, and what power that has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev

import msgspec

from esper_ab.campaign.campaign import CampaignPlan, PartPlan
from esper_ab.campaign.part_planning import plan_on
from esper_ab.campaign.reuse import with_offers
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import counted, n_pairs, significant
from esper_ab.design.claim_endings import DIFFERENCES, claim_endings
from esper_ab.design.design import Design
from esper_ab.design.pairs_needed import SD_LIMITS, power
from esper_ab.design.plan_simulation import simulation_of
from esper_ab.design.power import sd_of_differences
from esper_ab.gate import budget
from esper_ab.gate.budget import Cost
from esper_ab.gate.measured import Measured
from esper_ab.gate.question import BASE, HEAD, GateQuestion
from esper_ab.journal.outcomes import mean_outcome
from esper_ab.kept_runs.words import in_plan
from esper_ab.plan.estimate import duration
from esper_ab.plan.notes import end_of_identical
from esper_ab.stats.sd_limits import sd_limits

_ENOUGH_POWER = 0.95  # beyond which more seeds are not planned, if the spread of pairs is known
_FEWEST_KNOWN = 6  # runs of base whose spread counts


@dataclass(frozen=True, kw_only=True)
class PairsSpread:
    """The standard deviation of differences between the runs of a pair, and the runs that show it."""

    sd: float
    df: int
    source: str

    @property
    def most_sd(self) -> float:
        """The upper limit of the standard deviation, with which seeds are planned."""
        return sd_limits(self.sd, self.df, SD_LIMITS)[1]


def spread_of(part: PartPlan, earlier_gates: Sequence[Measured]) -> PairsSpread | None:
    """Return the spread of pairs that most runs of base show, those kept or those of a gate; None if they are too few.

    The runs of a pair are taken as uncorrelated: a change may alter every random number that a seed gives.
    """
    spreads = [_spread_of_kept(part)]
    for answer in earlier_gates:
        if answer.sd_of_base and answer.pairs >= _FEWEST_KNOWN:
            source = f"the runs of base in {n_pairs(answer.pairs)} of {Path(answer.directory).name}"
            spreads.append(_uncorrelated(answer.sd_of_base, answer.pairs, source))
    return max((spread for spread in spreads if spread is not None), key=lambda spread: spread.df, default=None)


def _spread_of_kept(part: PartPlan) -> PairsSpread | None:
    if part.offers is None:
        return None
    outcomes = [mean_outcome(run.evaluation) for run in part.offers.reusable(BASE)]
    numbers = [outcome for outcome in outcomes if outcome is not None]
    if len(numbers) < _FEWEST_KNOWN or not stdev(numbers):
        return None
    return _uncorrelated(stdev(numbers), len(numbers), f"{counted(len(numbers), 'kept run')} of base")


def _uncorrelated(sd_of_base: float, runs: int, source: str) -> PairsSpread:
    return PairsSpread(sd=sd_of_differences(sd_of_base, 0.0), df=runs - 1, source=source)


def _seconds_of_kept(part: PartPlan) -> float:
    """Return the mean duration of kept runs of base; 0.0 if there are none."""
    runs = [] if part.offers is None else part.offers.reusable(BASE)
    seconds = [sum(record.timing.total_s for record in run.episodes) + run.evaluation.timing.total_s for run in runs]
    return mean(seconds) if seconds else 0.0


def with_kept_runs(plan: CampaignPlan, unsealed: Sequence[Path]) -> CampaignPlan:
    """Return the plan with the kept runs that fit its seeds. `unsealed`: what is no part of the code."""
    (part,) = plan.parts
    return replace(plan, parts=(with_offers(part, plan.campaign.references, unsealed),))


def cost_of(part: PartPlan, question: GateQuestion, earlier_gates: Sequence[Measured]) -> Cost:
    """Return what pairs cost: by the file or, without a number there, by kept runs or earlier gates, else as rehearsed.

    UsageError if only a shortened rehearsal could tell.
    """
    estimate = part.cost
    experiment = part.plan.experiment
    at_once = max(1, len(part.plan.lanes) // len(experiment.groups))
    waves = -(-experiment.seeds // at_once)
    wave_s = (estimate.duration_s - estimate.start_up_s) / waves
    facts = part.machine.trainer
    assert facts is not None, "a gate trains with a trainer"
    rehearsed_s = facts.point_s * experiment.episodes + facts.evaluate_s
    run_s = question.run_seconds or next((answer.run_seconds for answer in earlier_gates if answer.run_seconds), 0.0)
    run_s = run_s or _seconds_of_kept(part)
    if run_s and rehearsed_s:
        wave_s *= run_s / rehearsed_s
    elif facts.shortened:
        raise UsageError(
            f"the rehearsal is shortened by {facts.shortened}, so it does not show how long a run takes; write "
            "run_seconds = SECONDS"
        )
    kept_runs = () if part.offers is None else tuple(len(part.offers.reusable(group)) for group in (BASE, HEAD))
    return Cost(start_s=estimate.start_up_s, wave_s=wave_s, at_once=at_once, kept_runs=kept_runs)


def fit(
    plan: CampaignPlan, question: GateQuestion, cost: Cost, spread: PairsSpread | None, spent_s: float
) -> CampaignPlan:
    """Return the plan with the seeds and looks that the minutes pay for, of which `spent_s` seconds are spent.

    UsageError, which says how many minutes would do, if they pay for no claim.
    """
    (part,) = plan.parts
    experiment = part.plan.experiment
    guarded = bool(experiment.guardrails)
    least = budget.least_pairs(experiment.claim, guarded=guarded)
    most = budget.affordable(cost, 60.0 * question.minutes - spent_s)
    if most < least:
        enough = budget.minutes_for(cost, least, spent_s)
        raise UsageError(
            f"minutes = {question.minutes:g} pays for {n_pairs(most)}, and this claim needs {least}: {n_pairs(least)} "
            f"take about {enough} min ({duration(cost.wave_s)} for {n_pairs(cost.at_once)}); set minutes = {enough}"
        )
    if spread is None:
        seeds = min(most, budget.MOST_AT_FIRST)
    else:
        fewest = min(most, budget.first_look(experiment.claim, guarded=guarded))
        seeds = _enough(part.plan.design, spread, fewest, most)
    asked_experiment = msgspec.structs.replace(
        part.asked, seeds=seeds, looks=budget.looks(seeds, experiment.claim, guarded=guarded)
    )
    fitted_plan, estimate = plan_on(part.machine, asked_experiment, part.folder.name, part.prior)
    return replace(plan, parts=(replace(part, asked=asked_experiment, plan=fitted_plan, cost=estimate),))


def _enough(design: Design, spread: PairsSpread, fewest: int, most: int) -> int:
    """Return the even number of seeds from which more would add little power, between `fewest` and `most`."""
    alpha = design.alpha if design.non_inferiority is None else 2.0 * design.alpha
    columns = design.positions if design.adjusted else 1
    for seeds in range(fewest + fewest % 2, most, 2):
        if power(spread.most_sd, design.margin, seeds, alpha, columns) >= _ENOUGH_POWER:
            return seeds
    return most


def plan_lines(part: PartPlan, question: GateQuestion, spread: PairsSpread | None) -> Iterator[str]:
    """Yield the lines on a fitted plan: its size, what it can show, and what the end of the minutes means."""
    design = part.plan.design
    experiment = part.plan.experiment
    looks = ", ".join(map(str, design.looks))
    look_words = f"looks after {looks}" if len(design.looks) > 1 else "one look at the end"
    early_words = end_of_identical(experiment, () if design.guards is None else design.guards.items)
    yield f"Plan: at most {n_pairs(experiment.seeds)} in {question.minutes:g} min; {look_words}. {early_words}"
    if part.offers is not None:
        yield from in_plan(part.offers)
    yield f"Power: {power_words(design, spread)}."
    yield "If the minutes end first, the answer is INCONCLUSIVE; the error rates of the looks before stay as planned."


def power_words(design: Design, spread: PairsSpread | None) -> str:
    """Say how often the gate passes a head that deserves it, or for which spreads it would."""
    deserving = f"better by {design.margin_words}" if design.non_inferiority is None else "equal to base"
    if spread is None:
        smallest = simulation_of(design).smallest_effect
        assert smallest is not None, "a plan with enough pairs"
        largest_sd = significant(design.margin / smallest)
        return (
            f"a head that is {deserving} passes with 80 % if the differences of pairs have an SD of {largest_sd}; "
            "it is not known before the first gate"
        )
    return (
        f"a head that is {deserving} passes with {100.0 * pass_rate(design, spread):.0f} % (differences of pairs have "
        f"an SD of {significant(spread.sd)}, by {spread.source})"
    )


def pass_rate(design: Design, spread: PairsSpread) -> float:
    """Return the power: how often a head passes that equals base or, for the claim better, leads by the margin."""
    simulation = simulation_of(design, sd=spread.sd)
    effect = design.margin / spread.sd
    if design.non_inferiority is None:
        return simulation.power(effect)
    ending = claim_endings(simulation, effect)[DIFFERENCES.index(0.0)]
    return ending.better + ending.not_worse
