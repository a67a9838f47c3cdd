"""Content -> tables of text: formatted once, laid out twice (terminal and HTML)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from esper_ab.contracts.records import PPOUpdate
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import RunOutcome, mean
from esper_ab.report.content import Content
from esper_ab.stats.comparison import Comparison
from esper_ab.stats.probability_of_improvement import in_words
from esper_ab.stats.wording import interval, p_text, points

NONE = "n/a"
NOT_COMPARABLE = "not comparable between modes"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of finished text. `words`: how many leading columns hold words; the rest are numbers, set to the right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    words: int = 1
    wide: bool = False  # needs the whole width of a page


def number(value: float | None, digits: int = 2) -> str:
    """Plain decimal, "n/a" for what does not exist."""
    return NONE if value is None else f"{value:,.{digits}f}"


def mean_and_sd(values: list[float | None], digits: int = 2) -> str:
    """ "70.12 (1.30)": mean over runs and, from two runs on, their standard deviation."""
    present = [value for value in values if value is not None]
    middle = mean(present)
    if middle is None:
        return NONE
    if len(present) < 2:
        return number(middle, digits)
    sd = math.sqrt(math.fsum((value - middle) ** 2 for value in present) / (len(present) - 1))
    return f"{number(middle, digits)} ({number(sd, digits)})"


def statistics_table(comparison: Comparison) -> Table:
    """Every statistic of one comparison."""
    a, b, rows = comparison.question.a, comparison.question.b, []
    d = comparison.difference
    if d is not None:
        rows.append(("mean difference", f"{points(d.mean)} points, {interval(d)}"))
    if d is not None and d.t is not None and d.p is not None:
        rows.append(("paired t", f"t = {d.t:.2f} with {d.df} degrees of freedom, p {p_text(d.p)}"))
    if comparison.sign_flip is not None and comparison.sign_flip.p is not None:
        flip = comparison.sign_flip
        least = p_text(flip.smallest_p)
        rows.append(("sign flip", f"exact p {p_text(comparison.sign_flip.p)} (smallest reachable: p {least})"))
    if comparison.mann_whitney is not None:
        kind = "exact" if comparison.mann_whitney.exact else "normal approximation, because of ties"
        text = f"U = {comparison.mann_whitney.u:g}, p {p_text(comparison.mann_whitney.p)} ({kind}; pairing unused)"
        rows.append(("Mann-Whitney on runs", text))
    if comparison.improvement is not None:
        words = in_words(a, b, comparison.improvement)
        rows.append(("improvement", f"{words}; A12 = {comparison.improvement.a12:.2f}"))
    if comparison.hedges_g is not None:
        rows.append(("Hedges' g", f"{comparison.hedges_g:+.2f} standard deviations of runs"))
    return Table(title=f"{a} - {b}", columns=("statistic", "value"), rows=tuple(rows), words=2)


def pairs_table(comparison: Comparison) -> Table:
    """The endpoints that everything above comes from."""
    a, b = comparison.question.a, comparison.question.b
    rows = tuple(
        (str(pair.replicate), number(pair.a), number(pair.b), points(pair.a - pair.b)) for pair in comparison.pairs
    )
    return Table(title=f"Pairs: {a} and {b}", columns=("replicate", a, b, "difference"), rows=rows)


_MEASURES: tuple[tuple[str, Callable[[RunOutcome], float | None], int], ...] = (
    ("held-out accuracy % (primary)", lambda run: run.endpoint, 2),
    ("held-out accuracy %, greedy", lambda run: run.greedy_accuracy, 2),
    ("area under training curve %", lambda run: run.training_area, 2),
    ("parameters added", lambda run: run.params_added, 0),
    ("points per 1,000 parameters", lambda run: run.gain_per_kparam, 2),
    ("seeds fossilised", lambda run: run.fossilized, 2),
    ("seeds pruned", lambda run: run.pruned, 2),
    ("hosts diverged %", lambda run: None if run.diverged is None else 100 * run.diverged, 1),
    ("change of entropy, nats", lambda run: run.entropy_change, 2),
)


def groups_table(content: Content) -> Table:
    """One column per group: mean over its runs, standard deviation in brackets. Measures nobody has are left out."""
    evaluated = (sum(run.endpoint is not None for run in content.of_group(group)) for group in content.groups)
    planned = (len(content.of_group(group)) for group in content.groups)
    rows = [("runs with an endpoint", *(f"{n} of {of}" for n, of in zip(evaluated, planned, strict=True)))]
    for label, measure, digits in _MEASURES:
        cells = [mean_and_sd([measure(run) for run in content.of_group(group)], digits) for group in content.groups]
        if any(cell != NONE for cell in cells):
            rows.append((label, *cells))
    return Table(
        title="Measures by group",
        columns=("mean over runs (SD)", *content.groups),
        rows=tuple(rows),
        note="Accuracy, parameters and seeds are of the evaluation: the frozen policy on fresh hosts, sampled actions "
        "unless it says greedy. Points per 1,000 parameters: above the never-grown host of the same replicate (needs a "
        "group wait). Change of entropy: last tenth of the training episodes minus the first.",
        wide=True,
    )


def cross_table(content: Content) -> Table:
    """Every group's policies under every reward."""
    modes = sorted({mode for outcome in content.outcomes.values() for mode in outcome.rewards})
    rows = tuple(
        (
            group,
            mean_and_sd([run.endpoint for run in content.of_group(group)]),
            *(mean_and_sd([run.rewards.get(mode) for run in content.of_group(group)]) for mode in modes),
        )
        for group in content.groups
    )
    return Table(
        title="Cross-evaluation: every policy under every reward",
        columns=("policies of", "held-out %", *(f"reward {mode}" for mode in modes)),
        rows=rows if modes else (),
        note=f"Rewards are {NOT_COMPARABLE}: read a column from top to bottom, never a row from left to right."
        if modes
        else "",
        wide=True,
    )


_PPO: tuple[tuple[str, str, int], ...] = (
    ("policy_loss", "policy loss", 4),
    ("value_loss", "value loss", 3),
    ("entropy", "entropy, nats", 3),
    ("op_entropy", "entropy of the op head", 3),
    ("approx_kl", "approximate KL", 4),
    ("clip_fraction", "clip fraction", 3),
    ("explained_variance", "explained variance", 3),
    ("grad_norm", "gradient norm before clipping", 3),
    ("ratio_max", "largest ratio", 2),
)


def ppo_table(content: Content) -> Table:
    """Diagnostics of the policy updates, one column per learning group."""
    updates = {
        group: [update for run in content.history.of_group(group) for update in _last_updates(run)]
        for group in content.groups
    }
    updates = {group: found for group, found in updates.items() if found}
    rows = [
        (label, *(number(mean(getattr(update, key) for update in found), digits) for found in updates.values()))
        for key, label, digits in _PPO
    ]
    stopped = (sum(update.stopped_by_kl for update in found) / len(found) for found in updates.values())
    rows.append(("updates stopped by KL %", *(number(100 * share, 0) for share in stopped)))
    return Table(
        title="PPO diagnostics",
        columns=("mean over updates", *updates),
        rows=tuple(rows) if updates else (),
        note="Over the last tenth of the recorded updates of every run. Losses depend on the reward's scale: they are "
        f"{NOT_COMPARABLE}."
        if updates
        else "",
    )


def differences_table(content: Content) -> Table:
    """Settings in which the groups differ."""
    rows = tuple(
        (item.key, *(item.values.get(group, NONE) for group in content.groups))
        for item in content.history.plan.differences
    )
    return Table(
        title="What differs between the groups",
        columns=("setting", *content.groups),
        rows=rows,
        note="" if rows else "Nothing: the groups have the same settings.",
        words=1 + len(content.groups),
        wide=True,
    )


def layout_table(content: Content) -> Table:
    """Which group ran where, and how fast."""
    lanes = [lane.name for lane in content.history.plan.lanes]
    rows = []
    for group in content.groups:
        runs = content.history.of_group(group)
        times = [record.timing.total_s for run in runs for record in run.curve()]
        rows.append((
            group,
            *(str(sum(run.ref.device == lane for run in runs)) for lane in lanes),
            number(mean(times)),
            number(mean(run.warm_up_s for run in runs)),
            str(sum(len(run.episodes) for run in runs)),
        ))  # fmt: skip
    return Table(
        title="Where the runs were, and how long they took",
        columns=("group", *(f"runs on {lane}" for lane in lanes), "s / episode", "warm-up s", "episodes"),
        rows=tuple(rows),
        note="The comparison is not adjusted for devices; the plan moves the groups between lanes.",
        wide=True,
    )


def ledger_table(history: History) -> Table:
    """Everything that could confound the comparison."""
    rows = tuple(
        (entry.category, entry.run or "experiment", NONE if entry.episode is None else str(entry.episode), entry.detail)
        for entry in history.ledger
    )
    return Table(
        title="Ledger of confounders",
        columns=("what", "run", "episode", "detail"),
        rows=rows,
        note="" if rows else "Empty: no restart, no death, no non-finite value, no dropped pair was recorded.",
        words=4,
        wide=True,
    )


def facts_table(history: History) -> Table:
    """The conditions under which the answer holds."""
    plan, experiment = history.plan, history.plan.experiment
    facts = {
        "experiment": experiment.name,
        "task": experiment.task,
        "slots": ", ".join(experiment.slots),
        "replicates": str(experiment.replicates),
        "episodes": f"{experiment.episodes} of {experiment.steps} steps, {experiment.n_envs} environments",
        "evaluation": f"{experiment.eval_episodes} episodes per environment, sampled and greedy actions",
        "randomness": f"rng seed {experiment.rng_seed}, {'unpaired' if experiment.unpaired else 'paired by replicate'}",
        "lanes": ", ".join(lane.name for lane in plan.lanes),
        "left idle": ", ".join(plan.idle_devices) or "nothing",
        "placement": f"{experiment.placement}, {experiment.sync}",
        "plan": plan.digest,
        **{f"version of {name}": text for name, text in sorted(history.started.versions.items())},
        **{f"machine: {name}": text for name, text in sorted(history.started.machine.items())},
        **{f"code: {name}": text for name, text in sorted(history.started.code.items())},
    }
    return Table(title="Conditions", columns=("", ""), rows=tuple(facts.items()), words=2)


def _last_updates(run: RunHistory) -> list[PPOUpdate]:
    updates = [record.ppo for record in run.curve() if record.ppo is not None]
    return updates[-math.ceil(len(updates) / 10) :] if updates else []
