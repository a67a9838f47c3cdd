"""Tables with the groups side by side: outcomes, cross-evaluation, exam, policy updates, settings."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from esper_ab.analysis.cross import CrossEvaluation
from esper_ab.analysis.exam import Exam, kept_share
from esper_ab.journal.columns import Columns
from esper_ab.journal.fold import RunHistory
from esper_ab.journal.outcomes import RunOutcome, mean_known
from esper_ab.report.content import Content
from esper_ab.report.figures.curves import head_names
from esper_ab.report.tables.table import NONE, NOT_COMPARABLE, Table, mean_and_sd, number, yes

ENDPOINTS = {
    "evaluation": "held-out accuracy of the evaluation",
    "last-tenth": "held-out accuracy, mean of the last tenth of the training episodes",
    "curve-mean": "held-out accuracy, mean of all training episodes",
}
_MEASURES: tuple[tuple[str, Callable[[RunOutcome], float | None], int], ...] = (
    ("endpoint %", lambda run: run.endpoint, 2),  # left out when it equals the next row
    ("held-out accuracy %", lambda run: run.held_out_accuracy, 2),
    ("held-out accuracy %, greedy", lambda run: run.greedy_accuracy, 2),
    ("area under training curve %", lambda run: run.training_area, 2),
    ("parameters added", lambda run: run.params_added, 0),
    ("points per 1,000 parameters", lambda run: run.gain_per_kparam, 2),
    ("seeds fossilised", lambda run: run.fossilized, 2),
    ("seeds pruned", lambda run: run.pruned, 2),
    ("fossilised of fossilised and pruned %", lambda run: _percent(kept_share(run)), 1),
    ("hosts diverged %", lambda run: _percent(run.diverged), 1),
    ("change of entropy, nats", lambda run: run.entropy_change, 2),
)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def groups_table(content: Content) -> Table:
    """Build one column per group: mean over its runs, SD in brackets. Measures that no group has are left out."""
    evaluated = (sum(run.endpoint is not None for run in content.of_group(group)) for group in content.groups)
    planned = (len(content.of_group(group)) for group in content.groups)
    rows = [("runs with an endpoint", *(f"{n} of {of}" for n, of in zip(evaluated, planned, strict=True)))]
    measures = _MEASURES[1:] if content.history.design.endpoint == "evaluation" else _MEASURES
    for label, measure, digits in measures:
        cells = [mean_and_sd([measure(run) for run in content.of_group(group)], digits) for group in content.groups]
        if any(cell != NONE for cell in cells):
            rows.append((label, *cells))
    return Table(
        title="Measures by group", columns=("mean over runs (SD)", *content.groups), rows=tuple(rows),
        note=f"Endpoint: {ENDPOINTS[content.history.design.endpoint]}. Accuracy, parameters and seeds are of the "
        "evaluation: the frozen policy on fresh hosts, sampled actions unless it says greedy. Points per 1,000 "
        "parameters: above the never-grown host of the same replicate (needs a group wait). Change of entropy: last "
        "tenth of the training episodes minus the first.",
        wide=True,
    )


def cross_table(content: Content, cross: CrossEvaluation) -> Table:
    """Build the table of every group's policies under every reward; mean over runs, SD in brackets."""
    rows = tuple(
        (
            row.group, number(row.accuracy),
            *(mean_and_sd([run.rewards.get(mode) for run in content.of_group(row.group)]) for mode in cross.modes),
        )
        for row in cross.rows
    )
    note = f"Rewards are {NOT_COMPARABLE}: read a column from top to bottom, never a row from left to right."
    return Table(
        title="Cross-evaluation: every policy under every reward",
        columns=("policies of", "held-out %", *(f"reward {mode}" for mode in cross.modes)),
        rows=rows if cross.modes else (), note=note if cross.modes else "", wide=True,
    )


def meaning_table(cross: CrossEvaluation) -> Table:
    """Build the table of each reward's correlation with held-out accuracy."""
    rows = tuple(
        (
            item.mode, number(item.episodes.pearson), number(item.episodes.spearman), str(item.episodes.n),
            number(item.runs.pearson), number(item.runs.spearman), str(item.runs.n),
        )
        for item in cross.meanings
    )
    note = (
        "Over evaluation episodes of single hosts, and over means of runs; r: Pearson, by rank: Spearman. Descriptive: "
        "episodes of one run are not independent, and the groups are pooled."
    )
    return Table(
        title="Does the reward mean anything? Its correlation with held-out accuracy",
        columns=("reward", "episodes: r", "by rank", "n", "runs: r", "by rank", "n"), rows=rows,
        note=note if rows else "", wide=True,
    )


def exam_outcome_table(exam: Exam | None) -> Table:
    """Build the exam's outcomes (continue, revise or stop) with reasons; empty unless the experiment is an exam."""
    if exam is None:
        return Table(title="Exam", columns=(), rows=())
    return Table(
        title=f"Exam: is the reward worth going on with? Against {exam.control}",
        columns=("group", "outcome", "reason"),
        rows=tuple((item.group, item.outcome.upper(), item.reason) for item in exam.judgements), words=3, wide=True,
    )


def exam_table(exam: Exam | None) -> Table:
    """Build the criteria of every learning group; empty unless the experiment is an exam."""
    if exam is None or not exam.judgements:
        return Table(title="Exam", columns=(), rows=())
    rows = tuple(
        (
            judgement.group, criterion.name, yes(criterion.passed), _change(criterion.mean),
            NONE if criterion.low is None else f"{_change(criterion.low)} to {_change(criterion.high)}",
            str(criterion.runs),
        )
        for judgement in exam.judgements
        for criterion in judgement.criteria
    )
    asked = "; ".join(f"{item.name}: {item.question.removesuffix('?')}" for item in exam.judgements[0].criteria)
    return Table(
        title="Criteria of the exam", columns=("group", "criterion", "passed", "mean", "interval", "n"), rows=rows,
        note=f"Asked: {asked}. The first is the comparison of the plan, with its error rate. The others are paired "
        "95 % t intervals that share no error rate: they can send a reward back, never pass one.",
        words=3, wide=True,
    )


def _change(value: float | None) -> str:
    return NONE if value is None else f"{value:+,.2f}"


_PPO: tuple[tuple[str, str, int], ...] = (
    ("policy_loss", "policy loss", 4), ("value_loss", "value loss", 3), ("entropy", "entropy, nats", 3),
    ("op_entropy", "entropy of the op head", 3), ("approx_kl", "approximate KL", 4),
    ("clip_fraction", "clip fraction", 3), ("explained_variance", "explained variance", 3),
    ("grad_norm", "gradient norm before clipping", 3), ("ratio_max", "largest ratio", 2),
)


Last = list[tuple[Columns, NDArray[np.intp]]]  # per run, indices of the last tenth of its updates


def _updates(content: Content) -> dict[str, Last]:
    """Return the last updates of every learning group."""
    found = {
        group: [(run.columns, at) for run in content.history.of_group(group) if len(at := _last_updates(run))]
        for group in content.groups
    }
    return {group: updates for group, updates in found.items() if updates}


def _last_updates(run: RunHistory) -> NDArray[np.intp]:
    at = np.flatnonzero(run.columns.of("learns"))
    return at[len(at) - math.ceil(len(at) / 10) :]


def _numbers(last: Last, name: str) -> list[float]:
    """Return a column at the last updates of all runs; NaN where it is absent."""
    return _joined([np.asarray(columns.of(name))[at] for columns, at in last])


def _joined(parts: list[NDArray[np.float64]]) -> list[float]:
    return [number for part in parts for number in part.tolist()]


def ppo_table(content: Content) -> Table:
    """Build the diagnostics of the policy updates, one column per learning group."""
    updates = _updates(content)
    rows = []
    for key, label, digits in _PPO:
        rows.append((label, *(number(mean_known(_numbers(one, key)), digits) for one in updates.values())))
    stopped = [_numbers(found, "stopped_by_kl") for found in updates.values()]
    rows.append(("updates stopped by KL %", *(number(100 * (sum(one) / len(one)), 0) for one in stopped)))
    many = "Over the last tenth of the recorded updates of every run."
    note = f"{many} Losses depend on the reward's scale: they are {NOT_COMPARABLE}." if updates else ""
    return Table(
        title="PPO diagnostics", columns=("mean over updates", *updates), rows=tuple(rows) if updates else (),
        note=note, wide=len(updates) > 3,
    )


def heads_table(content: Content) -> Table:
    """Build entropy and learnable share of each head, one column per learning group."""
    updates, names = _updates(content), head_names(content.history)
    rows = []
    for name in names:
        cells = []
        for found in updates.values():
            uses = [(columns.head(name), at) for columns, at in found if name in columns.heads]
            entropies, shares = (_joined([np.asarray(use[part])[at] for use, at in uses]) for part in (0, 1))
            cells.append(f"{number(mean_known(entropies))} ({number(_percent(mean_known(shares)), 0)} %)")
        rows.append((name.replace("_", " "), *cells))
    note = (
        "Over the last tenth of the updates. Entropy: 1 undecided, 0 always the same choice. Learnable: share of the "
        "decisions in which the head was used and had more than one valid choice."
    )
    return Table(
        title="Heads of the policy", columns=("normalised entropy (learnable)", *updates),
        rows=tuple(rows) if updates else (), note=note if rows and updates else "", wide=len(updates) > 3,
    )


def differences_table(content: Content) -> Table:
    """Build the table of settings in which the groups differ."""
    found = content.history.plan.differences
    rows = tuple((one.key, *(one.values.get(group, NONE) for group in content.groups)) for one in found)
    return Table(
        title="What differs between the groups", columns=("setting", *content.groups), rows=rows,
        note="" if rows else "Nothing: the groups have the same settings.", words=1 + len(content.groups), wide=True,
    )
