"""Judge observations without a plan: make a plan with one look at all observations. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.contracts.errors import OpenQuestion, SettingName, Unanswered, UsageError
from esper_ab.design.design import Contrast
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule, design_over, make_plan
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.judge import judge
from esper_ab.verdict.observations import POSITION, Observations, is_integer
from esper_ab.verdict.pairing import any_outcomes_to_compare, pair_explored
from esper_ab.verdict.row_questions import RUNS_OR_ITEMS, pairing_questions
from esper_ab.verdict.scale import Scale

_MOST_GROUPS = 100  # without a control: nearly 5,000 comparisons
_NUMBERED_UNITS = ("episode", "rollout")  # items that a program numbers as it makes them
_MOST_TAKEN_FOR_RUNS = 30  # rows per group and task; more are probably items, because few users train more runs


def explore(
    observations: Observations,
    scales: Sequence[Scale],
    rule: Rule,
    *,
    paired: bool | None = None,
    rows: str | None = None,
    rng_seed: int | None = None,
) -> Answer:
    """Compare all groups in every task and in the mean over tasks; the answer is exploratory, whatever the result.

    `rule` has no looks, because there is a single look at the end. `paired`: whether runs with the same seed form a
    pair; if None, the seeds decide this, and a run without a partner means that the partner was lost. `rows`: "runs"
    declares that every row is a training run, however many there are. `rng_seed`: seed of the bootstraps; if None, it
    is derived from the observations. Raises UsageError if no two groups share a pair.
    """
    explored_observations = _explored(observations, paired, rows)
    plan = _plan(explored_observations, scales, rule, paired=paired, rows=rows)
    if not any_outcomes_to_compare(plan, explored_observations):
        if observations.rows.lost.all():
            reason = "no row has an outcome"
        elif plan.paired:
            reason = f"no {observations.pair_column} has an outcome in two groups"
        else:
            reason = "no two groups have outcomes"
        raise UsageError(f"{observations.source}: {reason}, so nothing can be compared")
    if plan.paired and paired is None:
        explored_observations = _say_what_pairs_assume(explored_observations)
    return judge(plan, explored_observations, rng_seed=rng_seed)


def _say_what_pairs_assume(observations: Observations) -> Observations:
    """Add what pairs of episodes of two checkpoints assume, if they have nothing but numbers: a reader has to check."""
    items = observations.items
    if items is None or items.level != "checkpoints" or items.unit not in _NUMBERED_UNITS:
        return observations
    if not all(is_integer(name) for block in items.groups.values() for name in block.names):
        return observations
    units = f"{items.unit.capitalize()}s"
    assumed = f"{units} of the same number form pairs, as if they began alike; if they did not: --unpaired."
    return msgspec.structs.replace(observations, reading=(*observations.reading, assumed))


def questions_on(
    observations: Observations,
    scales: Sequence[Scale],
    rule: Rule,
    *,
    paired: bool | None = None,
    rows: str | None = None,
) -> tuple[OpenQuestion, ...]:
    """Return what only the user can say about these rows before `explore` is called with the same arguments.

    Rows of items raise no such question.
    """
    if observations.items is not None:
        return ()
    explored_observations = _explored(observations, paired, rows)
    plan = _plan(explored_observations, scales, rule, paired=paired, rows=rows)
    pairings = pair_explored(plan, explored_observations)
    pairing_is_declared = paired is not None or observations.paired_by_key
    return tuple(
        pairing_questions(explored_observations, pairings, plan.replicates, pairing_is_declared=pairing_is_declared)
    )


def _explored(observations: Observations, paired: bool | None, rows: str | None) -> Observations:
    return msgspec.structs.replace(
        observations, exploratory=True, partners_left_out=paired is True, rows_are_runs=rows == "runs"
    )


def _plan(
    observations: Observations, scales: Sequence[Scale], rule: Rule, *, paired: bool | None, rows: str | None
) -> AnalysisPlan:
    """Make the plan with one look at all pairs, or at all runs if they are unpaired."""
    groups = observations.groups
    order = observations.replicates
    source = observations.source
    if len(groups) < 2:
        raise UsageError(f"{source}: there is only one group, {groups[0]}; a comparison needs two")
    if len(groups) > _MOST_GROUPS and not rule.control:
        raise UsageError(
            f"{source}: {len(groups)} groups are too many to compare all pairs of them; compare all with one: ",
            SettingName("control", "GROUP"),
        )
    rule = Rule(control=rule.control, alpha=rule.alpha, looks=(len(order),))
    plan = make_plan(groups, order, scales, rule)  # as the user says
    unpaired = paired is False  # as the user says
    if not unpaired:
        _check_positions(observations)
    if paired is None:
        paired = observations.pair_column != "" and _forms_pairs(observations, plan.design.comparisons)
    most_rows = _most_rows(observations, rows, unpaired=unpaired)
    if paired and not observations.pair_column:
        raise UsageError(
            f"{source}: ",
            SettingName("paired"),
            " needs a column 'seed', 'pair' or 'replicate'; the column 'run' does not pair runs",
        )
    if paired:
        return plan
    if any(observations.rows.cluster.names):
        raise UsageError(
            f"{source}: clusters of unpaired runs are not supported yet: use the mean of each cluster as one run, "
            "and drop the column cluster"
        )
    single_look_rule = msgspec.structs.replace(rule, looks=(most_rows,))
    design = msgspec.structs.replace(design_over(groups, most_rows, scales, single_look_rule), test="welch")
    return msgspec.structs.replace(plan, design=design)


def _most_rows(observations: Observations, rows: str | None, *, unpaired: bool) -> int:
    """Return the largest number of rows of any group in any task. Raises UsageError if rows may be items of fewer runs.

    If a user declares a small and a large group `unpaired`, rows are taken as runs, because groups of items would both
    be large.
    """
    counts = Counter(observations.rows.cells.sizes).most_common()
    (group, task), most_rows = counts[0]
    _, least_rows = counts[-1]
    questionable_rows = least_rows if unpaired else most_rows
    if observations.items is None and questionable_rows > _MOST_TAKEN_FOR_RUNS and rows != "runs":
        doubt = _doubt(observations)
        if doubt:
            task_words = f" in {task}" if task else ""
            raise Unanswered(
                observations.source,
                [OpenQuestion(f"group {group} has {most_rows} rows{task_words}, {doubt}", RUNS_OR_ITEMS)],
            )
    return most_rows


def _doubt(observations: Observations) -> str:
    """Say why many rows may be items and not runs; "" if they are runs."""
    possibility = "each row is a training run, or an item of one, such as a question or an episode"
    runs = observations.rows
    if not runs.run[0]:
        return f"but no column 'run'; {possibility}"
    names = [np.unique(runs.run.codes[runs.group.codes == group]) for group in range(len(runs.group.names))]
    if all(np.array_equal(group_names, names[0]) for group_names in names):
        return f"with the same names in the column {observations.run_column} of every group; {possibility}"
    return ""


def _forms_pairs(observations: Observations, contrasts: Sequence[Contrast]) -> bool:
    """True if the runs form pairs by seed, which means that the groups of every comparison share seeds.

    Raises UsageError if the groups of some comparisons share seeds and those of others share none.
    """
    codes = observations.rows.replicate.codes
    some_share = False
    unmatched_counts = []
    for contrast in contrasts:
        a, b = (codes[observations.rows.cells.rows_in(group, contrast.task)] for group in contrast.groups)
        if np.isin(a, b).any():
            some_share = True
        elif a.size and b.size:
            unmatched_counts.append((contrast, a.size + b.size))
    if some_share and unmatched_counts:
        contrast, rows = unmatched_counts[0]
        raise UsageError(
            f"{observations.source}: {rows} of {rows} rows of {contrast.a} and {contrast.b} have no "
            f"partner with the same {observations.pair_column}: ",
            SettingName("paired"),
            " leaves them out, ",
            SettingName("unpaired"),
            " compares all runs without pairing",
        )
    return some_share


def _check_positions(observations: Observations) -> None:
    """Raise UsageError if outcomes that pair by position are lists of unequal length."""
    counts = Counter(observations.rows.cells.sizes)
    if observations.pair_column == POSITION and len({*counts.values()}) > 1:
        (longest_group, _), longest_length = counts.most_common()[0]
        (shortest_group, _), shortest_length = counts.most_common()[-1]
        raise UsageError(
            f"{observations.source}: {longest_group} has {longest_length} outcomes and {shortest_group} "
            f"{shortest_length}, so positions do not tell "
            "which runs belong together: put NaN where a run failed, give a mapping of seeds to outcomes, or use ",
            SettingName("unpaired"),
            " for runs that form no pairs",
        )
