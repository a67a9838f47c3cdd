"""Which of many groups may be the best: of exploratory observations, with four groups or more. Pure.

Every pair of groups is tested as for its verdict, but at the level of a comparison with the best
(`stats/best_groups.py`). With several tasks, the best is that of the mean over tasks. A group is ruled out only by a
pair whose verdict no finding caps, and whose lost runs, counted against it, would not change that
(`verdict/imputation.py`). Without such a limit, nothing is said about how far a group lies behind. With items below the
runs, the answer has the level of the pairs: these checkpoints, or new training runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import msgspec
import numpy as np

from esper_ab.contracts.wording import listed, named
from esper_ab.design.design import Contrast, Design, boundaries_of
from esper_ab.stats.best_groups import may_be_best
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import outcomes
from esper_ab.stats.text import percent
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.finding import LOST_SCORES
from esper_ab.verdict.imputation import completed, imputed
from esper_ab.verdict.level_words import opened
from esper_ab.verdict.look import Look, take_look
from esper_ab.verdict.looks import ComparisonProgress, PlanProgress, retake_look
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.pairing import Pairing, sampled
from esper_ab.verdict.question import AskedItems
from esper_ab.verdict.sample import LEAST_ITEMS
from esper_ab.verdict.scale import MEAN

LEAST_GROUPS = 4  # among fewer, the verdicts of the pairs say it
MOST_NAMED = 20  # groups in a sentence


class GroupStanding(msgspec.Struct, frozen=True, kw_only=True):
    """One group beside the best one."""

    group: str
    runs: int  # with an outcome; if the answer is about checkpoints, items
    lost: int
    mean: float  # of these runs; over tasks in units of the margins, with higher being better
    may_be_best: bool
    behind: float | None  # at most so much worse than the best, >= 0; None: there is no limit


class BestGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The groups that may be the best of all, with simultaneous confidence."""

    task: str  # "": there are no tasks; with several tasks, the mean over them
    confidence: float
    headline: str
    caveats: tuple[str, ...]
    groups: tuple[GroupStanding, ...]  # the best mean first

    @property
    def among(self) -> tuple[str, ...]:
        """The groups that may be the best, the best mean first."""
        return tuple(group_standing.group for group_standing in self.groups if group_standing.may_be_best)


class _Pair(msgspec.Struct, frozen=True, kw_only=True):
    """What the comparison of two groups shows about the best one."""

    winner: str  # the group that is shown to be better; ""
    most_a: float  # a is at most so much better than b; inf: there is no limit
    most_b: float


def best_groups(
    plan: AnalysisPlan,
    observations: Observations,
    progress: PlanProgress,
    comparisons: Mapping[Contrast, Comparison],
) -> BestGroups | None:
    """Return the groups that may be the best.

    None with a plan or a control, with fewer than four groups, or if no pair of groups has enough runs, or items, for a
    verdict.
    """
    task = MEAN if len(plan.scales) > 1 else plan.scales[0].task
    contrasts = [contrast for contrast in comparisons if contrast.task == task]
    groups = plan.groups
    compares_all = len(contrasts) == len(groups) * (len(groups) - 1) // 2
    if not observations.exploratory or len(groups) < LEAST_GROUPS or not compares_all or not plan.design.boundaries:
        return None
    design = _design(plan, contrasts[0])
    pairs = {}
    for contrast in contrasts:
        pairs[contrast] = _pair(design, contrast, progress.pairings[contrast], comparisons[contrast])
    if all(math.isinf(pair.most_a) and math.isinf(pair.most_b) for pair in pairs.values()):
        return None
    lost_counts = _lost({contrast: progress.pairings[contrast] for contrast in contrasts})
    samples = _samples(plan, observations, {contrast: progress.pairings[contrast] for contrast in contrasts})
    standings = _standings(plan, pairs, samples, lost_counts)
    if standings is None:
        return None
    best_set = BestGroups(
        task=task,
        confidence=1.0 - plan.design.alpha,
        headline="",
        caveats=tuple(_caveats(design, standings, [comparisons[contrast] for contrast in contrasts])),
        groups=standings,
    )
    asked_items = comparisons[contrasts[0]].question.items
    return msgspec.structs.replace(best_set, headline=_headline(best_set, design, asked_items))


def _design(plan: AnalysisPlan, contrast: Contrast) -> Design:
    """Return the design of comparisons with the best: each group in turn is a control, with one-sided tests."""
    alpha = 2.0 * plan.design.alpha  # both sides
    looks = plan.design.looks
    other_count = len(plan.groups) - 1
    return msgspec.structs.replace(
        plan.design_of(contrast),
        alpha=alpha,
        comparisons=plan.design.comparisons[:other_count],
        boundaries=boundaries_of(alpha, other_count, ((0, 1),) * looks[-1], 1, looks),
        evidence=1.0 / alpha,
    )


def _pair(design: Design, contrast: Contrast, pairing: Pairing, comparison: Comparison) -> _Pair:
    """Test one pair of groups, without and with its lost runs."""
    empty_pair = _Pair(winner="", most_a=math.inf, most_b=math.inf)
    look = take_look(design, design.looks[-1], pairing.pairs, len(design.comparisons), pairing.items)
    if look.low is None or look.high is None or not comparison.sample.suffices or _capped(comparison):
        return empty_pair
    most_a = max(_most(look, design)[0], _limits_with_losses(design, look, pairing, against_a=False)[0])
    most_b = max(_most(look, design)[1], _limits_with_losses(design, look, pairing, against_a=True)[1])
    return _Pair(winner=_winner(design, contrast, look, pairing), most_a=most_a, most_b=most_b)


def _capped(comparison: Comparison) -> bool:
    """True if a check allows no verdict, or if runs lost single scores, which are not counted against a pair here."""
    return any(finding.weight in ("blocks", "caps") or finding.kind == LOST_SCORES for finding in comparison.findings)


def _winner(design: Design, contrast: Contrast, look: Look, pairing: Pairing) -> str:
    """Return the group that is better, even with the lost runs counted against it; "" if none is."""
    if not look.crossed or not look.mean:
        return ""
    direction = 1 if look.mean > 0.0 else -1
    progress = ComparisonProgress(
        looks=(look,), decision="crossed", decided_at=look.replicates, direction=direction, finished=True
    )
    retest = imputed(design, pairing.pairs, progress, pairing.lost, pairing.items)
    if retest is not None and not retest.survives:
        return ""
    return contrast.a if direction * design.outcome.sign > 0.0 else contrast.b


def _most(look: Look, design: Design) -> tuple[float, float]:
    """Return how much better a is than b at most, and b than a."""
    if look.low is None or look.high is None:
        return math.inf, math.inf
    limits = (look.high, -look.low)
    return limits if design.outcome.sign > 0.0 else limits[::-1]


def _limits_with_losses(design: Design, look: Look, pairing: Pairing, *, against_a: bool) -> tuple[float, float]:
    """Return the limits with lost runs counted against one group; infinite if no worst outcome stands for them."""
    losses = pairing.lost
    if not losses.a and not losses.b:
        return _most(look, design)
    if design.worst is None and (losses.a if against_a else losses.b):
        return math.inf, math.inf
    completed_data, _, _ = completed(design, pairing.pairs, losses.replicates, against_a=against_a)
    return _most(retake_look(design, look, completed_data, pairing.items), design)


def _standings(
    plan: AnalysisPlan,
    pairs: Mapping[Contrast, _Pair],
    samples: Mapping[str, Floats],
    lost_counts: Mapping[str, int],
) -> tuple[GroupStanding, ...] | None:
    """Return all groups, the best mean first; None if no group is left that may be the best."""
    sign = plan.design_of(next(iter(pairs))).outcome.sign
    place = {group: number for number, group in enumerate(plan.groups)}
    better_mask = np.zeros((len(place), len(place)), dtype=np.bool_)
    upper_limits = np.full((len(place), len(place)), np.inf)
    for contrast, pair in pairs.items():
        a = place[contrast.a]
        b = place[contrast.b]
        better_mask[a, b] = pair.winner == contrast.a
        better_mask[b, a] = pair.winner == contrast.b
        upper_limits[a, b] = pair.most_a
        upper_limits[b, a] = pair.most_b
    candidates = may_be_best(better_mask, upper_limits)
    if candidates is None:
        return None
    best_mask, distances = candidates
    standings = []
    for group, number in place.items():
        if not samples[group].size:
            return None
        limit = float(distances[number])
        group_standing = GroupStanding(
            group=group,
            runs=len(samples[group]),
            lost=lost_counts[group],
            mean=fmean(samples[group].tolist()),
            may_be_best=bool(best_mask[number]),
            behind=None if math.isinf(limit) else limit,
        )
        standings.append(group_standing)
    return tuple(sorted(standings, key=lambda group_standing: -sign * group_standing.mean))


def _lost(pairings: Mapping[Contrast, Pairing]) -> dict[str, int]:
    """Return the number of lost runs of each group, those without a row included."""
    lost_counts: dict[str, int] = {}
    for contrast, pairing in pairings.items():
        lost_counts[contrast.a] = max(lost_counts.get(contrast.a, 0), pairing.lost.a)
        lost_counts[contrast.b] = max(lost_counts.get(contrast.b, 0), pairing.lost.b)
    return lost_counts


def _samples(plan: AnalysisPlan, observations: Observations, pairings: Mapping[Contrast, Pairing]) -> dict[str, Floats]:
    """Return the outcomes of each group's runs or, for checkpoints, of its items."""
    items_of_tasks = observations.items is not None and observations.items.level == "checkpoints"
    samples = {}
    for contrast, pairing in pairings.items():
        if contrast.a not in samples or contrast.b not in samples:
            if not (items_of_tasks and contrast.task == MEAN):  # in which each task has items of its own
                pairing = sampled(observations.rows, contrast, plan.scales, plan.replicates)
            samples[contrast.a], samples[contrast.b] = outcomes(pairing.pairs)
    return samples


def _headline(best_set: BestGroups, design: Design, asked_items: AskedItems | None) -> str:
    """Say which groups may be the best, how far the leader is behind at most, and what this says nothing about."""
    about_checkpoints = asked_items is not None and asked_items.level == "checkpoints"
    best_names = best_set.among
    with_confidence = (
        f"{opened(asked_items)}{'with' if asked_items else 'With'} {percent(best_set.confidence)} confidence"
    )
    everything = f"these {len(best_set.groups)} {'checkpoints' if about_checkpoints else 'groups'}"
    by_mean = " by the mean over tasks" if best_set.task == MEAN else ""
    if len(best_names) == 1:
        sentences = [f"{with_confidence} the best of {everything}{by_mean} is {best_names[0]}."]
    elif len(best_names) < len(best_set.groups):
        sentences = [f"{with_confidence} the best of {everything}{by_mean} is among {_listed(best_names)}."]
    else:
        sentences = [f"{with_confidence} none of {everything} can be ruled out as the best{by_mean}."]
    leader = best_set.groups[0]
    if len(best_names) > 1 and leader.behind is not None and leader.may_be_best:
        behind = design.size(leader.behind)
        sentences.append(f"{leader.group}, with the best mean, is at most {behind} worse than the best.")
    if about_checkpoints:
        sentences.append("This says nothing about training again.")
    return " ".join(sentences)


def _listed(groups: Sequence[str]) -> str:
    if len(groups) <= MOST_NAMED:
        return listed(groups)
    return f"{', '.join(groups[:MOST_NAMED])} and {len(groups) - MOST_NAMED} more"


def _caveats(design: Design, standings: Sequence[GroupStanding], comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield why groups are not ruled out, apart from their outcomes."""
    row = comparisons[0].question.row
    groups_with_losses = [group_standing.group for group_standing in standings if group_standing.lost]
    if groups_with_losses and design.worst is None:
        yield (
            f"{row.capitalize()}s of {_listed(groups_with_losses)} were lost. Without a worst outcome "
            f"({comparisons[0].question.worst_flag}), a group that lost {row}s rules out no other, and how far it "
            "is behind is not known."
        )
    elif groups_with_losses:
        yield (
            f"Lost {row}s ({_listed(groups_with_losses)}) count against every group that they would help to rule out "
            "another."
        )
    least_number = LEAST_ITEMS if comparisons[0].about_checkpoints else LEAST_PAIRS
    small_groups = [group_standing.group for group_standing in standings if group_standing.runs < least_number]
    if small_groups:
        groups_words = _listed(small_groups)
        yield f"With fewer than {least_number} {row}s, no group is ruled out, nor rules out another: {groups_words}."
    capped_pairs = [(item.question.a, item.question.b) for item in comparisons if _capped(item)]
    if capped_pairs:
        yield f"Checks allow no verdict on {named(capped_pairs)}, so there neither rules out the other."
