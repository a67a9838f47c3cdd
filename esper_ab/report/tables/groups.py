"""Tables with the groups side by side: outcomes, cross-evaluation, policy updates, settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from esper_ab.analysis.conduct import learners
from esper_ab.journal.columns import Columns
from esper_ab.journal.fold import RunHistory
from esper_ab.journal.outcomes import mean_known
from esper_ab.report.content import Content
from esper_ab.report.kinds import Row, averaged, kind_of
from esper_ab.report.tables.table import NONE, NOT_COMPARABLE, Table, mean_and_sd, number, percent
from esper_ab.stats.text import digits_for


def _rows(content: Content) -> Iterator[Row]:
    """Yield the rows of the groups' measures; rows of this kind of task come between rows that all kinds share."""
    design = content.design
    outcome = design.outcome
    unit = f", {design.outcome.unit}" if design.outcome.unit else ""
    if design.outcome_over != "evaluation":  # else the next row shows it
        yield f"outcome{unit}", lambda run: run.outcome, design.digits
    yield outcome.title, lambda run: run.evaluated, design.digits
    yield f"{outcome.label}{unit}, greedy", lambda run: run.greedy, design.digits
    yield f"{outcome.label}{unit}, mean of training", lambda run: run.training_area, design.digits
    yield from kind_of(content).rows(content)
    yield "environments failed %", lambda run: percent(run.failed), 1
    yield "change of entropy, nats", lambda run: run.entropy_change, 2


def results_table(content: Content) -> Table:
    """Build the table of outcomes, with one row per group: the number of runs with an outcome, mean and SD."""
    design = content.design
    rows = list[tuple[str, ...]]()
    for group in content.groups:
        outcomes = [run.outcome for run in content.of_group(group)]
        known = len(outcomes) - outcomes.count(None)
        rows.append((group, f"{known} of {len(outcomes)}", mean_and_sd(outcomes, design.digits)))
    part = averaged(content)
    lower = ", lower is better" if design.outcome.sign < 0.0 else ""
    title = f"{design.outcome.title}{f', mean of {part}' if part else ''}{lower}"
    return Table("Outcome by group", ("group", "runs", f"{title}: mean (SD)"), tuple(rows))


def groups_table(content: Content) -> Table:
    """Build the table of measures, with one column per group: mean over its runs, with the SD in brackets.

    Measures that no group has are left out.
    """
    kind = kind_of(content)
    rows = list[tuple[str, ...]]()
    for label, measure, digits in _rows(content):
        found = [[measure(run) for run in content.of_group(group)] for group in content.groups]
        sizes = [abs(value) for values in found for value in values if value]
        decimals = digits_for(max(sizes, default=1.0)) if digits is None else digits
        cells = [mean_and_sd(values, decimals) for values in found]
        if any(cell != NONE for cell in cells):
            rows.append((kind.words.get(label, label), *cells))
    return Table(
        "Measures by group",
        ("mean over runs (SD)", *content.groups),
        tuple(rows),
        note=" ".join(filter(None, (f"Measured in the evaluation: {kind.evaluated}.", kind.note, kind.changes))),
    )


def cross_table(content: Content) -> Table:
    """Build the table of every group's policies under every reward: mean over runs, with the SD in brackets."""
    cross = content.analysis.cross
    rows = tuple(
        (
            row.group,
            number(row.outcome, content.design.digits),
            *(mean_and_sd([run.rewards.get(mode) for run in content.of_group(row.group)]) for mode in cross.modes),
        )
        for row in cross.rows
    )
    return Table(
        "Cross-evaluation: every policy under every reward",
        ("policies of", content.design.outcome.title, *(f"reward {name}" for name in called(cross.modes))),
        rows=rows if cross.modes else (),
        note=f"Rewards are {NOT_COMPARABLE}: read a column from top to bottom, never a row from left to right.",
    )


def called(modes: Sequence[str]) -> list[str]:
    """Return short names of reward modes: without the folders of a user's file, unless names would then be equal."""
    short = {mode: mode.rpartition("/")[2] for mode in modes}
    names = list(short.values())
    return [short[mode] if names.count(short[mode]) == 1 else mode for mode in modes]


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
    lower = " (lower is better)" if content.design.outcome.sign < 0.0 else ""
    return Table(
        f"Does the reward mean anything? Its correlation with {content.design.outcome.label}{lower}",
        ("reward", "episodes: r", "by rank", "n", "runs: r", "by rank", "n"),
        rows,
        note="Over evaluation episodes of single environments, and over means of runs; r: Pearson, by rank: Spearman. "
        "Descriptive: episodes of one run are not independent, and the groups are pooled.",
    )


_PPO: tuple[tuple[str, str, int], ...] = (
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
    found: list[float] = []
    for columns, column in runs:
        updates = np.flatnonzero(columns.of("learns"))
        found += np.asarray(column)[updates[-math.ceil(len(updates) / 10) :]].tolist()
    return found


def ppo_table(content: Content) -> Table:
    """Build the table of diagnostics of the policy updates, with one column per learning group."""
    updates = learners(content.history)

    def means(name: str) -> list[float | None]:
        return [mean_known(_last((run.columns, run.columns.of(name)) for run in runs)) for runs in updates.values()]

    rows = [(label, *(number(mean, digits) for mean in means(name))) for name, label, digits in _PPO]
    rows.append(("updates stopped by KL %", *(number(percent(mean), 0) for mean in means("stopped_by_kl"))))
    many = "Over the last tenth of the recorded updates of every run."
    return Table(
        "PPO diagnostics",
        ("mean over updates", *updates),
        tuple(rows) if updates else (),
        note=f"{many} Losses depend on the reward's scale: they are {NOT_COMPARABLE}.",
        wide=len(updates) > 3,
    )


def heads_table(content: Content) -> Table:
    """Build the table of each head's entropy and learnable share, with one column per learning group."""
    updates = learners(content.history)
    names = content.history.heads if updates else ()
    rows = tuple((name.replace("_", " "), *(_head(runs, name) for runs in updates.values())) for name in names)
    note = (
        "Over the last tenth of the updates. Entropy: 1 undecided, 0 always the same choice. Learnable: share of the "
        "decisions in which the head was used and had more than one valid choice."
    )
    return Table(
        "Heads of the policy",
        ("normalised entropy (learnable)", *updates),
        rows,
        note=note,
        wide=len(updates) > 3,
    )


def _head(runs: Sequence[RunHistory], name: str) -> str:
    having = [run.columns for run in runs if name in run.columns.heads]
    entropy, learnable = (mean_known(_last((one, one.head(name)[part]) for one in having)) for part in (0, 1))
    return f"{number(entropy)} ({number(percent(learnable), 0)} %)"


def differences_table(content: Content) -> Table:
    """Build the table of settings in which the groups differ."""
    found = content.history.plan.differences
    told = ([one.values.get(group, NONE) for group in content.groups] for one in found)
    rows = tuple(
        (one.key, *(called(values) if one.key == "reward.mode" else values))
        for one, values in zip(found, told, strict=True)
    )
    return Table(
        "What differs between the groups",
        ("setting", *content.groups),
        rows,
        none="Nothing: the groups have the same settings.",
        words=1 + len(content.groups),
    )
