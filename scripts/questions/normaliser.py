"""Question 2: separate or shared observation normaliser? Outcome, spread of the difference, distance of normalisers.

Both arms have the same replicates, so that shared and separate are paired, too. Sharing is recommended only if it
narrows the spread of the difference between the groups (the interval of the ratio of standard deviations lies below 1)
and no group loses accuracy (no interval of shared minus separate lies below 0): fixed before the first run.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import outcome_of
from esper_ab.stats.t_tests import PairedDifference, paired_difference
from questions.experiments import ARMS, GROUPS, TRAINING, history_of, run
from questions.sd_ratio import sd_ratio
from workers.ppo.normalise import RunningMoments
from workers.run import policy_file

_LEVEL = 0.95


def measure(folder: Path) -> dict[str, Any]:
    """Both arms, and everything that is told about them."""
    experiment_dirs = {arm: run(folder, arm, (*TRAINING, *flags)) for arm, flags in ARMS.items()}
    scores = {arm: _scores(history_of(experiment_dir)) for arm, experiment_dir in experiment_dirs.items()}
    first, second = GROUPS
    between = {arm: paired_difference(of[first], of[second]) for arm, of in scores.items()}
    d = {arm: np.subtract(of[first], of[second]) for arm, of in scores.items()}
    by_group = {group: paired_difference(scores["shared"][group], scores["separate"][group]) for group in GROUPS}
    return {
        "experiment": TRAINING,
        "code": {arm: history_of(experiment_dir).started.code for arm, experiment_dir in experiment_dirs.items()},
        "accuracy": {arm: {group: _mean(values) for group, values in of.items()} for arm, of in scores.items()},
        "runs": scores,
        "difference": {arm: msgspec.to_builtins(one) for arm, one in between.items()},
        "shared_minus_separate": {group: msgspec.to_builtins(one) for group, one in by_group.items()},
        "change_of_difference": msgspec.to_builtins(paired_difference(d["shared"], d["separate"])),
        "sd_ratio": sd_ratio(d["shared"], d["separate"]),
        "distance": {
            arm: _distances(experiment_dir, history_of(experiment_dir))
            for arm, experiment_dir in experiment_dirs.items()
        },
    }


def _scores(history: History) -> dict[str, list[float]]:
    """Outcomes in percent, by replicate; ValueError for a run without one."""
    found = {group: [outcome_of(one, "evaluation") for one in history.of_group(group)] for group in GROUPS}
    if any(value is None for values in found.values() for value in values):
        raise ValueError("a run has no outcome")
    return {group: [float(value) for value in values if value is not None] for group, values in found.items()}


def _mean(values: list[float]) -> dict[str, float]:
    """Mean and half width of its 95 % t interval, in percent."""
    half = stats.t.ppf((1 + _LEVEL) / 2, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return {"mean": float(np.mean(values)), "half": float(half)}


# --- how far normalisers are apart ---


def _distances(experiment_dir: Path, history: History) -> dict[str, Any]:
    """Medians over pairs of policies: the groups of one replicate, and one group in two replicates."""
    own: dict[tuple[str, int], RunningMoments] = {}
    used: dict[tuple[str, int], RunningMoments] = {}
    for one in history.runs.values():
        agent = policy_file.load(experiment_dir / one.spec.policy_file).agent
        if agent is None:
            raise ValueError(f"{one.ref.name} is no learner")
        own[one.ref.group_id, one.ref.replicate] = agent.observations.moments
        used[one.ref.group_id, one.ref.replicate] = agent.observations.applied
    replicates = range(history.replicates)
    groups = [((GROUPS[0], r), (GROUPS[1], r)) for r in replicates]
    chance = [((group, r), (group, s)) for group in GROUPS for r, s in combinations(replicates, 2)]
    return {
        "used_between_groups": _distance([(used[a], used[b]) for a, b in groups]),
        "own_between_groups": _distance([(own[a], own[b]) for a, b in groups]),
        "own_between_replicates": _distance([(own[a], own[b]) for a, b in chance]),
    }


def _distance(pairs: list[tuple[RunningMoments, RunningMoments]]) -> dict[str, float]:
    """How far two normalisers move the same observation apart, in their standard deviations.

    `shift`: |difference of means| / the mean of both standard deviations; `scale`: |ln of their ratio|; each the root
    mean square over columns, and of that the median over pairs. `worst`: the largest shift of a column, median.
    """
    shifts = [np.abs(a.mean - b.mean) / ((a.std + b.std) / 2) for a, b in pairs]
    scales = [np.abs(np.log(a.std / b.std)) for a, b in pairs]
    return {
        "shift": float(np.median([_rms(shift) for shift in shifts])),
        "scale": float(np.median([_rms(scale) for scale in scales])),
        "worst": float(np.median([shift.max() for shift in shifts])),
    }


def _rms(values: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(values**2)))


# --- in words ---


def table(found: dict[str, Any]) -> str:
    """Markdown, and the recommendation that follows from the numbers."""
    first, second = GROUPS
    lines = [
        f"| normaliser | {first}, % | {second}, % | {first} - {second}, points | its SD | normalisers apart: shift, "
        "scale, worst column |",
        "|---|---|---|---|---|---|",
    ]
    for arm in ARMS:
        accuracy, d = found["accuracy"][arm], _difference(found["difference"][arm])
        each = " | ".join(f"{accuracy[group]['mean']:.1f} ± {accuracy[group]['half']:.1f}" for group in GROUPS)
        apart = _apart(found["distance"][arm]["used_between_groups"])
        lines.append(f"| {arm} | {each} | {_interval(d)} | {d.sd or 0.0:.1f} | {apart} |")
    changes = [_difference(found["shared_minus_separate"][group]) for group in GROUPS]
    change = _difference(found["change_of_difference"])
    lines.append(f"| shared - separate | {' | '.join(map(_interval, changes))} | {_interval(change)} | | |")
    return "\n".join([*lines, "", *_said(found, changes)])


def _difference(told: dict[str, Any]) -> PairedDifference:
    return msgspec.convert(told, PairedDifference)


def _interval(d: PairedDifference) -> str:
    return f"{d.mean:+.1f}" if d.low is None or d.high is None else f"{d.mean:+.1f} [{d.low:+.1f}, {d.high:+.1f}]"


def _apart(distance: dict[str, float]) -> str:
    return f"{distance['shift']:.2f}, {distance['scale']:.2f}, {distance['worst']:.2f}"


def _said(found: dict[str, Any], changes: list[PairedDifference]) -> list[str]:
    ratio, separate, shared = found["sd_ratio"], found["distance"]["separate"], found["distance"]["shared"]
    told = (
        f"The standard deviation of the difference with a shared normaliser is {ratio['ratio']:.2f} times that with "
        f"separate ones (95 % interval {ratio['low']:.2f} to {ratio['high']:.2f}). What the groups of a seed had "
        f"observed was apart by {_apart(separate['own_between_groups'])} (shift, scale, worst column) with separate "
        f"and by {_apart(shared['own_between_groups'])} with shared normalisers; that of one group in two seeds, "
        f"with separate ones, by {_apart(separate['own_between_replicates'])}."
    )
    narrower = ratio["high"] < 1.0
    lost = [group for group, change in zip(GROUPS, changes, strict=True) if change.high is not None and change.high < 0]
    won = [group for group, change in zip(GROUPS, changes, strict=True) if change.low is not None and change.low > 0]
    if narrower and not lost:
        return [told, "", "**Recommendation: shared**, for comparisons that need no independence of the groups."]
    shown = [
        "a narrower difference" if narrower else "",
        f"a loss of accuracy in {', '.join(lost)}" if lost else "",
        f"a gain of accuracy in {', '.join(won)}" if won else "",
    ]
    what = ", ".join(one for one in shown if one) or "neither a narrower difference nor another accuracy"
    return [
        told,
        "",
        f"**Recommendation: separate**, the default. This experiment shows {what}; an interval with room for both is "
        "no evidence of no effect. What decides is the price, which needs no experiment: with sharing, what one group "
        "does changes the other's training, so that a result no longer belongs to its group alone.",
    ]
