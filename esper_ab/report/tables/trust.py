"""Tables on whether the numbers can be trusted: audit, conduct of the runs, incidents, devices, settings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from esper_ab.analysis.analyse import conditions
from esper_ab.analysis.conduct import FAULTS, Conduct
from esper_ab.design.episodes_text import half_text, next_text, share_text
from esper_ab.journal.outcomes import mean
from esper_ab.report.content import Content
from esper_ab.report.kind import tables_of
from esper_ab.report.tables.table import NONE, Table, number

_MOST_LANES = 12  # columns that fit a page
_WEIGHTS = {
    "blocks": "BLOCKS the verdict",
    "caps": "caps it at INCONCLUSIVE",
    "caps equivalence": "allows no EQUIVALENT",
    "notes": "noted",
}


def audit_table(content: Content) -> Table:
    """Build the table of findings that could explain a difference instead of the groups' settings, severest first."""
    rows = tuple(
        (_WEIGHTS[finding.weight], finding.kind, ", ".join(finding.groups) or "experiment", finding.sentence)
        for finding in content.analysis.findings
    )
    return Table(
        "Audit",
        ("weight", "finding", "concerns", "what was found"),
        rows,
        none="Nothing was found that could explain a difference other than the groups' settings.",
        words=4,
    )


def conduct_table(content: Content) -> Table:
    """Build the table of amounts, times and faults, with one column per group."""
    groups = content.analysis.conduct
    words = tables_of(content).words
    measured_rows: list[tuple[str, Callable[[Conduct], str]]] = [
        ("runs finished, of planned", lambda group: f"{group.finished} of {group.runs}"),
        ("runs left out after a decision", lambda group: _count(group.left_out)),
        ("runs lost", lambda group: _count(group.lost)),
        ("runs cancelled with them", lambda group: _count(group.cancelled)),
        ("training episodes", lambda group: str(group.episodes)),
        ("environment steps in training", lambda group: f"{group.env_steps:,}"),
        ("evaluation episodes", lambda group: str(group.evaluation_episodes)),
        ("wall time of training, s", lambda group: number(group.wall_s, 1)),
        ("s / episode, median", lambda group: number(group.episode_s)),
        ("decisions / s of one run", lambda group: number(group.decisions_per_s, 1)),
        ("warm-up s, median", lambda group: number(group.warm_up_s)),
        ("first episode / others", lambda group: number(group.first_over_rest)),
        ("environments failed", lambda group: _count(group.failed)),
    ]
    rows = [(words.get(label, label), *map(format_cell, groups)) for label, format_cell in measured_rows]
    for key, name in FAULTS.items():
        counts = [_count(group.faults.get(key, 0)) for group in groups]
        rows.append((f"{name}s", *counts))
    names = [group.group for group in groups]
    return Table(
        "How the runs went",
        ("", *names),
        rows=tuple(row for row in rows if _has_values(row)),
        note="Groups are compared at equal episodes, never at equal seconds. Times are of the recorded training "
        "episodes; an environment that failed keeps its outcome.",
    )


def _has_values(row: tuple[str, ...]) -> bool:
    """Return whether a row has a label, and a value for any group."""
    label, *cells = row
    return bool(label) and any(cell not in (NONE, "-") for cell in cells)


def noise_table(content: Content) -> Table:
    """Build the table of the evaluation noise in the differences and of the evaluation's share of a run's time.

    The table is empty if there are too few runs.
    """
    noise = content.analysis.noise
    design = content.design
    if noise is None:
        return Table("Evaluation noise")
    components = noise.components
    facts = {
        "episodes that give an outcome": f"{components.eval_episodes}",
        "share in the variance of the differences": f"{share_text(noise)}, from {components.runs} pairs",
        "share in the time of a run": f"{100 * noise.cost_share:.0f} %",
        "SD of an episode within its run's difference": design.size(math.sqrt(components.episode)),
        "for the next plan": next_text(noise),
    }
    half = content.analysis.half_interval
    if half is not None:
        pairs = max(len(item.pairs) for item in content.comparisons)
        facts["for half the interval"] = half_text(half, components.eval_episodes, pairs)
    return _facts(
        "Evaluation noise",
        facts,
        "Differences vary between policies and between the episodes in which these are evaluated. The number for the "
        "next plan is estimated from these pairs; this experiment's was fixed before its first run.",
    )


def _count(count: int) -> str:
    return str(count) if count else "-"


def layout_table(content: Content) -> Table:
    """Build the table of runs per group and device; for many devices, the table gives only their number."""
    lanes = [lane.name for lane in content.history.plan.lanes]
    if len(lanes) > _MOST_LANES:
        return Table("Where the runs were", none=f"On {len(lanes)} devices.")
    rows = []
    for group in content.groups:
        runs = Counter(run.ref.device for run in content.history.of_group(group))
        rows.append((group, *(str(runs[lane]) for lane in lanes)))
    if not content.design.positions_matter:
        note = "No record can depend on device and start order here; the deciding analysis does not adjust for them."
    elif content.design.adjusted:
        note = "The deciding analysis estimates and removes the effects of device and start order."
    else:
        note = (
            "The deciding analysis is not adjusted for device and start order; the plan moves the groups between them."
        )
    columns = ("group", *(f"runs on {lane}" for lane in lanes))
    return Table("Where the runs were", columns, tuple(rows), note=note, wide=False)


def incidents_table(content: Content) -> Table:
    """Build the table of everything that could confound the comparison."""
    rows = []
    for incident in content.history.incidents:
        episode = NONE if incident.episode is None else str(incident.episode)
        rows.append((incident.category, incident.run_name or "experiment", episode, incident.detail))
    return Table(
        "List of incidents",
        ("what", "run", "episode", "detail"),
        tuple(rows),
        none="Empty: no restart, no death, no non-finite value, no dropped pair was recorded.",
        words=4,
    )


def last_words_table(content: Content) -> Table:
    """Build the table of the last log lines of workers that died or hung, with the stack of a hung worker."""
    rows = []
    for incident in content.history.incidents:
        run = incident.run_name
        for line in incident.last_words:
            rows.append((run, line.rstrip()))
            run = ""  # only the first line names the run
    return Table("Last words of workers that died or hung", ("run", "end of its log"), tuple(rows), words=2)


def facts_table(content: Content) -> Table:
    """Build the table of conditions under which the answer holds."""
    history = content.history
    plan = history.plan
    experiment = history.plan.experiment
    outcome = history.outcome
    replicates = f"{history.replicates}"
    if experiment.open_ended:
        replicates += " so far, no maximum"
    pairing = "unpaired" if experiment.unpaired else "paired by seed"
    warm_up = mean(run.warm_up_s for run in history.runs.values())
    facts = {"experiment": experiment.name, "scope": conditions(history)}
    if experiment.slots:
        facts["slots"] = ", ".join(experiment.slots)
    facts["seeds"] = replicates
    facts |= tables_of(content).conditions(experiment)
    facts |= {
        "outcome": f"{outcome.title}; {outcome.better} is better",
        "randomness": f"rng seed {experiment.rng_seed}, {pairing}",
        "devices": ", ".join(lane.name for lane in plan.lanes),
        "left idle": ", ".join(plan.idle_devices) or "nothing",
        "placement": f"{experiment.placement}, order {experiment.order}, {experiment.sync}",
        "warm-up": "none recorded" if warm_up is None else f"{number(warm_up)} s per run, mean",
        "plan": plan.digest,
        "result": content.analysis.result_hash,
    }
    return _facts("Conditions", facts)


def versions_table(content: Content) -> Table:
    """Build the table of code, packages and machine, as recorded in the journal's first line."""
    first_event = content.history.started
    facts = {f"code: {name}": text for name, text in sorted(first_event.code.items())}
    facts |= {f"version of {name}": text for name, text in sorted(first_event.versions.items())}
    facts |= {f"machine: {name}": text for name, text in sorted(first_event.machine.items())}
    return _facts("Versions and machine", facts)


def _facts(title: str, facts: Mapping[str, str], note: str = "") -> Table:
    return Table(title, ("", ""), tuple(facts.items()), words=2, note=note)
