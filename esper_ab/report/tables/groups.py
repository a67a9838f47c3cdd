"""Tables with the groups side by side: outcomes, cross-evaluation, policy updates, settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from esper_ab.analysis.conduct import learners
from esper_ab.journal.columns import Columns
from esper_ab.journal.fold import RunHistory
from esper_ab.journal.outcomes import RunOutcome, mean_known
from esper_ab.report.content import Content
from esper_ab.report.kind import Row, averaged, tables_of
from esper_ab.report.tables.table import NONE, NOT_COMPARABLE, Table, mean_and_sd, number, percent
from esper_ab.stats.text import digits_for


def _rows(content: Content) -> Iterator[Row]:
    """Yield the rows of the groups' measures; rows of this kind of task come between rows that all kinds share."""
    design = content.design
    outcome = design.outcome
    unit = f", {outcome.unit}" if outcome.unit else ""
    if design.outcome_over != "evaluation":  # else the next row shows it
        yield f"outcome{unit}", lambda run: run.outcome, design.digits
    yield outcome.title, lambda run: run.evaluated, design.digits
    yield f"{outcome.label}{unit}, greedy", lambda run: run.greedy, design.digits
    yield f"{outcome.label}{unit}, mean of training", lambda run: run.training_area, design.digits
    yield from tables_of(content).rows(content)
    yield "environments failed %", lambda run: percent(run.failed), 1
    yield "change of entropy, nats", lambda run: run.entropy_change, 2


def results_table(content: Content) -> Table:
    """Build the table of outcomes, with one row per group: the number of runs with an outcome, mean and SD."""
    design = content.design
    rows = list[tuple[str, ...]]()
    for group in content.groups:
        outcomes = [run.outcome for run in content.of_group(group)]
        known_outcomes = [outcome for outcome in outcomes if outcome is not None]
        rows.append((group, f"{len(known_outcomes)} of {len(outcomes)}", mean_and_sd(known_outcomes, design.digits)))
    title = design.outcome.title
    part = averaged(content)
    if part:
        title += f", mean of {part}"
    if design.outcome.sign < 0.0:
        title += ", lower is better"
    return Table("Outcome by group", ("group", "runs", f"{title}: mean (SD)"), tuple(rows))


def groups_table(content: Content) -> Table:
    """Build the table of measures, with one column per group: mean over its runs, with the SD in brackets.

    Measures that no group has are left out.
    """
    kind = tables_of(content)
    rows = list[tuple[str, ...]]()
    for label, measure, digits in _rows(content):
        by_group = [_values(content.of_group(group), measure) for group in content.groups]
        if digits is None:
            digits = _digits(by_group)
        cells = [mean_and_sd(values, digits) for values in by_group]
        if any(cell != NONE for cell in cells):
            rows.append((kind.words.get(label, label), *cells))
    notes = (f"Measured in the evaluation: {kind.evaluated}.", kind.note, kind.changes)
    return Table(
        "Measures by group",
        ("mean over runs (SD)", *content.groups),
        tuple(rows),
        note=" ".join(filter(None, notes)),
    )


def _reward(mode: str, run: RunOutcome) -> float | None:
    """Return the reward of a run's evaluation under a mode."""
    return run.rewards.get(mode)


def _values(runs: Iterable[RunOutcome], measure: Callable[[RunOutcome], float | None]) -> list[float | None]:
    """Return a measure of the runs that have it, and None for each run that was evaluated without it."""
    values = [(measure(run), run.evaluated is not None) for run in runs]
    return [value for value, is_evaluated in values if value is not None or is_evaluated]


def _digits(by_group: Sequence[Sequence[float | None]]) -> int:
    """Return the number of decimals that fits the largest value."""
    sizes = [abs(value) for values in by_group for value in values if value]
    return digits_for(max(sizes, default=1.0))


def cross_table(content: Content) -> Table:
    """Build the table of every group's policies under every reward: mean over runs, with the SD in brackets."""
    cross = content.analysis.cross
    rows = list[tuple[str, ...]]()
    if cross.modes:
        for row in cross.rows:
            runs = content.of_group(row.group)
            rewards = [mean_and_sd(_values(runs, partial(_reward, mode))) for mode in cross.modes]
            rows.append((row.group, number(row.outcome, content.design.digits), *rewards))
    reward_titles = [f"reward {name}" for name in called(cross.modes)]
    return Table(
        "Cross-evaluation: every policy under every reward",
        ("policies of", content.design.outcome.title, *reward_titles),
        rows=tuple(rows),
        note=f"Rewards are {NOT_COMPARABLE}: read a column from top to bottom, never a row from left to right.",
    )


def called(modes: Sequence[str]) -> list[str]:
    """Return short names of reward modes: without the folders of a user's file, unless names would then be equal."""
    short_names = {mode: mode.rpartition("/")[2] for mode in modes}
    names = list(short_names.values())
    called_modes = []
    for mode in modes:
        if names.count(short_names[mode]) == 1:
            called_modes.append(short_names[mode])
        else:
            called_modes.append(mode)
    return called_modes


def meaning_table(content: Content) -> Table:
    """Build the table of each reward's correlation with the outcome."""
    cross = content.analysis.cross
    rows = tuple(
        (
            name,
            number(item.episodes.pearson),
            number(item.episodes.spearman),
            str(item.episodes.n),
            number(item.runs.pearson),
            number(item.runs.spearman),
            str(item.runs.n),
        )
        for item, name in zip(cross.meanings, called(cross.modes), strict=True)
    )
    direction_words = " (lower is better)" if content.design.outcome.sign < 0.0 else ""
    return Table(
        f"Does the reward mean anything? Its correlation with {content.design.outcome.label}{direction_words}",
        ("reward", "episodes: r", "by rank", "n", "runs: r", "by rank", "n"),
        rows,
        note="Over evaluation episodes of single environments, and over means of runs; r: Pearson, by rank: Spearman. "
        "Descriptive: episodes of one run are not independent, and the groups are pooled.",
    )


_PPO: tuple[tuple[str, str, int], ...] = (  # (column, label, decimals)
    ("policy_loss", "policy loss", 4),
    ("value_loss", "value loss", 3),
    ("entropy", "entropy, nats", 3),
    ("op_entropy", "entropy of the first head", 3),
    ("approx_kl", "approximate KL", 4),
    ("clip_fraction", "clip fraction", 3),
    ("explained_variance", "explained variance", 3),
    ("grad_norm", "gradient norm before clipping", 3),
    ("ratio_max", "largest ratio", 2),
)


def _last(runs: Iterable[tuple[Columns, Sequence[float]]]) -> list[float]:
    """Return the values of a column at the last tenth of every run's updates; NaN where a value is missing."""
    values: list[float] = []
    for columns, column in runs:
        updates = np.flatnonzero(columns.of("learns"))
        last_updates = updates[-math.ceil(len(updates) / 10) :]
        values += np.asarray(column)[last_updates].tolist()
    return values


def ppo_table(content: Content) -> Table:
    """Build the table of diagnostics of the policy updates, with one column per learning group."""
    updates = learners(content.history)

    def means(name: str) -> list[float | None]:
        return [mean_known(_last((run.columns, run.columns.of(name)) for run in runs)) for runs in updates.values()]

    rows = list[tuple[str, ...]]()
    if updates:
        for name, label, digits in _PPO:
            rows.append((label, *(number(mean, digits) for mean in means(name))))
        stopped_shares = [number(percent(mean), 0) for mean in means("stopped_by_kl")]
        rows.append(("updates stopped by KL %", *stopped_shares))
    return Table(
        "PPO diagnostics",
        ("mean over updates", *updates),
        tuple(rows),
        note="Over the last tenth of the recorded updates of every run. Losses depend on the reward's scale: they are "
        f"{NOT_COMPARABLE}.",
        wide=len(updates) > 3,
    )


def heads_table(content: Content) -> Table:
    """Build the table of each head's entropy and learnable share, with one column per learning group."""
    updates = learners(content.history)
    names = content.history.heads if updates else ()
    rows = []
    for name in names:
        cells = [_head(runs, name) for runs in updates.values()]
        rows.append((name.replace("_", " "), *cells))
    note = (
        "Over the last tenth of the updates. Entropy: 1 undecided, 0 always the same choice. Learnable: share of the "
        "decisions in which the head was used and had more than one valid choice."
    )
    return Table(
        "Heads of the policy",
        ("normalised entropy (learnable)", *updates),
        tuple(rows),
        note=note,
        wide=len(updates) > 3,
    )


def _head(runs: Sequence[RunHistory], name: str) -> str:
    columns_with_head = [run.columns for run in runs if name in run.columns.heads]
    entropy = mean_known(_last((columns, columns.head(name)[0]) for columns in columns_with_head))
    learnable = mean_known(_last((columns, columns.head(name)[1]) for columns in columns_with_head))
    return f"{number(entropy)} ({number(percent(learnable), 0)} %)"


def differences_table(content: Content) -> Table:
    """Build the table of settings in which the groups differ."""
    rows = []
    for difference in content.history.plan.differences:
        values = [difference.values.get(group, NONE) for group in content.groups]
        if difference.key == "reward.mode":
            values = called(values)
        rows.append((difference.key, *values))
    return Table(
        "What differs between the groups",
        ("setting", *content.groups),
        tuple(rows),
        none="Nothing: the groups have the same settings.",
        words=1 + len(content.groups),
    )
