"""The one paragraph on groups of which none has enough runs for a verdict: what is missing, the ranking, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.wording import counted
from esper_ab.design.design import Design
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.mean_intervals import mean_intervals
from esper_ab.stats.text import percent
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.best_groups import LEAST_GROUPS
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.observations import POSITION, Observations

_RANKED = 20  # groups in a list
_MATTER = 3  # groups in the suggested plan
_SEEDS = 20  # of the suggested plan


def describe_too_few_runs(
    result: Answer,
    compared_items: Sequence[Comparison],
    values: Mapping[str, Sequence[float]],
    lost_counts: Mapping[str, int],
) -> str:
    """Return the paragraph on `compared_items`, the comparisons in one task.

    `values`: the outcomes of each group's runs in that task; of the mean over tasks, none. `lost_counts`: how many runs
    each group lost.
    """
    observations = result.observations
    design = compared_items[0].design
    has_pairs = observations.pair_column != POSITION and compared_items[0].samples is None
    unit = observations.pair_column if has_pairs else "run"
    most_runs = max(map(len, values.values()))
    group_words = "No group has" if most_runs < LEAST_PAIRS else "No two of the compared groups share"
    least_words = counted(LEAST_PAIRS, unit)
    sentences = [f"{group_words} {least_words}, so no difference between the {len(values)} groups can be judged."]
    means = {group: fmean(outcomes) for group, outcomes in values.items() if outcomes}
    order = sorted(means, key=lambda group: -design.outcome.sign * means[group])
    about_runs = observations.items is None  # else intervals of runs alone would leave out the choice of items
    if order:
        sentences.append(_ranking(design, order, values, lost_counts, about_runs=about_runs))
    if about_runs and len(order) >= LEAST_GROUPS and len(result.scales) == 1:
        sentences.append(
            f"To decide, plan fresh {unit}s for the few groups that matter, for example the {_MATTER} with the best "
            f"means: `{_command(design, order[:_MATTER], observations)}`; run them, and judge their outcomes by this "
            "plan."
        )
    else:
        sentences.append(
            f"To decide, name the few groups that matter and run each with {LEAST_PAIRS} fresh {unit}s or more."
        )
    return " ".join(sentences)


def _ranking(
    design: Design,
    order: Sequence[str],
    values: Mapping[str, Sequence[float]],
    lost_counts: Mapping[str, int],
    *,
    about_runs: bool,
) -> str:
    """List the means, best first; of four groups or more, with intervals that hold for all groups at once."""
    words = {group: design.value(fmean(values[group])) for group in order}
    intervals = mean_intervals([values[group] for group in order], design.alpha)
    claim = "Their means, best first, which may be luck"
    if about_runs and len(order) >= LEAST_GROUPS and intervals is not None:
        level = percent(1.0 - design.alpha)
        claim = (
            f"Their means, best first, with intervals that hold for all {len(order)} at once with {level} confidence"
        )
        for group, (low, high) in zip(order, intervals, strict=True):
            lost_words = f"; {lost_counts[group]} lost" if lost_counts[group] else ""
            words[group] += f" ({low:.{design.digits}f} to {high:.{design.digits}f}{lost_words})"
        highest_low = max(low for low, _ in intervals)
        if highest_low <= min(high for _, high in intervals):
            claim += ", all of which overlap, so that the order may be luck"
    ranked_words = [f"{group} {words[group]}" for group in order[:_RANKED]]
    if len(order) > _RANKED:
        ranked_words.append(f"and {len(order) - _RANKED} more")
    return f"{claim}: {', '.join(ranked_words)}."


def _command(design: Design, groups: Sequence[str], observations: Observations) -> str:
    """Return the command that plans fresh runs of `groups`."""
    seeds = str(_SEEDS)
    if observations.numbered and observations.pair_column not in ("", POSITION):
        first_seed = max(map(int, observations.replicates)) + 1
        seeds = f"{first_seed}..{first_seed + _SEEDS - 1}"
    arguments = ["--groups", ",".join(groups), "--seeds", seeds, "--margin", f"{design.margin:g}"]
    if design.outcome.sign < 0.0:
        arguments += ["--better", "lower"]
    if design.outcome.unit:
        arguments += ["--unit", design.outcome.unit]
    if design.worst is not None:
        arguments += ["--worst", f"{design.worst:g}"]
    return shell_command("design", *arguments)
