"""A plan as text: the six lines that a launch prints first, and the full content of plan.txt. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.outcome_window import in_window
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.trainer import called
from esper_ab.contracts.visible import visible, visible_line
from esper_ab.contracts.wording import counted, listed
from esper_ab.design.design import Design, rule
from esper_ab.design.moderation import moderation_words
from esper_ab.plan.devices import environments_per_device, runs_at_once, unused_gpus, where
from esper_ab.plan.estimate import Estimate, duration
from esper_ab.plan.kind import NotesKind
from esper_ab.plan.plan import EarlierExperiment, Plan
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_OPEN_ENDED_PAIRS, LEAST_PAIRS

_BLOCKS_SHOWN = 12
_MUCH_LONGER = 2.0  # times as long: only then does the plan recommend the CPU
ALONE = "One group answers no question of which setting is better; `compare` sets it beside another on these seeds."
WIDTH = 100  # longest line of a wrapped sentence, in characters


def question(plan: Plan) -> str:
    """Return the question that an experiment answers, in one sentence."""
    outcome = plan.design.outcome
    experiment = plan.experiment
    if experiment.trainer:
        outcome_words = f"{outcome.label} of {called(experiment.trainer)}"
    else:
        outcome_words = f"the {outcome.label} on {experiment.task}"
    compared_pairs = plan.design.comparisons
    if not compared_pairs:  # the journal has one group
        return f"What is {outcome_words} with {listed([group.name for group in experiment.groups])}?"
    other_groups = {pair.b for pair in compared_pairs}
    if len(other_groups) > 1:
        return f"With which of {listed(plan.design.groups)} is {outcome_words} {outcome.better}?"
    if plan.design.non_inferiority is not None:
        groups = " or ".join(pair.a for pair in compared_pairs)
        margin = plan.design.margin_words
        return f"Is {groups} not worse than {other_groups.pop()} by {margin} or more, in {outcome_words}?"
    return (
        f"Is {outcome_words} {outcome.better} with {listed([pair.a for pair in compared_pairs])} than with "
        f"{other_groups.pop()}?"
    )


def short_text(
    plan: Plan, machine: Machine, estimate: Estimate, experiment_dir: Path, power: str, width: int = WIDTH
) -> str:
    """Summarise a plan in six lines: question, cost, looks, detectable difference, directory and next command.

    Before them come the lines of a trainer's rehearsal, after them notes on limits of the verdicts; `plan_text` has the
    rest. `power` is the line on the detectable difference.
    """
    experiment = plan.experiment
    n_groups = len(experiment.groups)
    runs = (
        f"{counted(n_groups * experiment.seeds, 'run')} ({counted(n_groups, 'group')} x "
        f"{counted(experiment.seeds, 'seed')})"
    )
    if experiment.open_ended:
        runs = f"At first {runs}"
    devices = _devices(plan, machine)
    devices += ";" if ";" in devices else ","
    lines = (
        *of_kind(plan.kind, NotesKind).first_lines(experiment, machine),
        question(plan),
        f"{runs}, {devices} {_cost(plan, estimate)}",
        _decides(plan),
        pooling_words(plan),
        power,
        _window(plan),
        _guardrails(plan),
        str(experiment_dir),
        f"Once it runs, Ctrl-C stops it; {shell_command('resume', experiment_dir)} continues it",
        *(f"note: {note}" for note in plan.notes[: plan.limits]),
    )
    return visible("\n".join(wrapped(line, width) for line in lines if line))


def pooling_words(plan: Plan) -> str:
    """Say in one sentence with which experiments a replication is pooled, and by which rule; "" for other plans."""
    return replication_words(plan.earlier, plan.design)


def replication_words(earlier: Sequence[EarlierExperiment], design: Design) -> str:
    """Say in one sentence that a plan with this design is pooled with `earlier`; "" if there are none."""
    if not earlier:
        return ""
    from esper_ab.stats.pooled_bound import alpha_of_pooling  # needs numpy, and most plans replicate nothing

    names = listed([experiment.name for experiment in earlier])
    number_words = "both" if len(earlier) == 1 else "all"
    start = f"Replicates {names}: when {number_words} have ended, they are also judged together"
    if design.anytime_after is not None:
        return f"{start}, by the anytime-valid t over all pairs."
    share = alpha_of_pooling(design.alpha, len(earlier) + 1)
    return f"{start}, in one look at {100.0 * share:.3g} %."


def _window(plan: Plan) -> str:
    """Return a sentence on an outcome over the end of training, and what it estimates; "" for an evaluation."""
    experiment = plan.experiment
    if experiment.outcome_over == "evaluation":
        return ""
    kind = of_kind(plan.kind, NotesKind)
    count = len(in_window(range(experiment.episodes), experiment.outcome_over))
    part = f"the mean over the last {count} of {experiment.episodes} {kind.episodes}"
    return f"Outcome ({experiment.outcome_over}): {part}; it estimates {kind.in_training}."


def _guardrails(plan: Plan) -> str:
    """Return a sentence on the measures that must not get worse; "" without any."""
    if not plan.experiment.guardrails:
        return ""
    guards = plan.design.guards
    assert guards is not None
    parts = []
    for guardrail in guards.items:
        worse = "higher" if guardrail.measure.better == "lower" else "lower"
        parts.append(f"{guardrail.measure.label} not {worse} by {guardrail.margin_words} or more")
    return f"If that is shown, {counted(len(parts), 'guardrail')} in turn: {'; '.join(parts)}."


def _devices(plan: Plan, machine: Machine) -> str:
    """Return a clause on devices: "2 at a time on 2 CPU cores; 2 GPUs unused (--devices cuda)"."""
    devices = f"{runs_at_once(plan)} at a time {where(plan, machine)}"
    unused_names = unused_gpus(plan, machine)
    if unused_names:
        return f"{devices}; {unused_names}"
    return devices


def _cost(plan: Plan, estimate: Estimate) -> str:
    """Return a clause on the duration and its source, and on the CPU's duration if that is at most half as long."""
    basis = "a rough estimate" if plan.trainer is None else "from the rehearsal"
    cost = f"{_describe_duration(estimate)} ({basis})"
    if estimate.on_cpu_s and estimate.duration_s >= _MUCH_LONGER * estimate.on_cpu_s:
        cost += f"; {duration(estimate.on_cpu_s)} with --devices cpu"
    return cost


def _describe_duration(estimate: Estimate) -> str:
    """Return how long the plan takes, "about 2 min to 5 min", or one duration if both limits read the same."""
    shortest_text = duration(estimate.duration_s)
    longest_text = duration(max(estimate.longest_s, estimate.duration_s))
    if longest_text == shortest_text:
        return shortest_text
    return f"{shortest_text} to {longest_text.removeprefix('about ')}"


def _decides(plan: Plan) -> str:
    """Return a sentence on the looks at which a plan decides, and on the plan's error rate."""
    design = plan.design
    replicates = plan.experiment.seeds
    if not design.comparisons:
        return ALONE
    if plan.is_confounded:
        return "Decides nothing; the note explains why."
    margin = f"margin {design.margin_words}"
    alpha = f"{100.0 * design.alpha:g} %"
    if design.anytime_after is not None:
        first_words = f"Can decide after any seed from the {LEAST_PAIRS}th on, at {alpha} in all; {margin}."
        if design.non_inferiority is None:
            return first_words
        return f"{first_words} NOT WORSE needs {LEAST_OPEN_ENDED_PAIRS} seeds."
    if replicates < LEAST_PAIRS:
        return f"Decides nothing: a verdict needs {LEAST_PAIRS} seeds; {margin}."
    decision_words = f"Decides once, after {replicates} seeds, at {alpha}; {margin}."
    if len(design.looks) > 1:
        *looks, last_look = map(str, design.looks)
        decision_words = f"Decides after {', '.join(looks)} or {last_look} seeds, at {alpha} in all; {margin}."
    if replicates < LEAST_EQUIVALENCE_PAIRS:
        decision_words += f" EQUIVALENT would need {LEAST_EQUIVALENCE_PAIRS} seeds."
    if design.prior_df:
        words = moderation_words(design.prior_df)
        decision_words += f" {words[0].upper()}{words[1:]}."
    return decision_words


def plan_text(
    plan: Plan, machine: Machine, estimate: Estimate, experiment_dir: Path, width: int = WIDTH, memory_words: str = ""
) -> str:
    """Return the whole plan as text: groups, differences, blocks, devices, cost and notes.

    Sentences are wrapped at `width` characters; columns and paths are not broken. `memory_words` describes the memory
    that is available under a limit.
    """
    experiment = plan.experiment
    n_groups = len(experiment.groups)
    runs = (
        f"{counted(n_groups, 'group')} x {counted(experiment.seeds, 'seed')} = "
        f"{counted(n_groups * experiment.seeds, 'run')}"
    )
    if experiment.open_ended:
        runs += " at first, more until every comparison is decided"
    time = f"{duration(estimate.duration_s)} including the start of the workers"
    memory = f"{estimate.memory_bytes / 2**30:.1f} GiB of memory"
    if memory_words:
        memory += f", of {memory_words}"
    kind = of_kind(plan.kind, NotesKind)
    lines = [
        *(wrapped(line, width) for line in kind.first_lines(experiment, machine)),
        wrapped(f"{experiment.name}: {runs}, task {experiment.task_title}", width),
        wrapped(f"  each: {kind.size(experiment)}", width),
        f"  into {experiment_dir}",
        "",
        *_differences(plan),
        "",
        f"blocks ({experiment.placement}, {experiment.sync}; runs in start order)",
    ]
    for block in plan.blocks[:_BLOCKS_SHOWN]:
        placed_runs = [f"{run.ref.group_id} on {run.ref.device}" for run in block.runs]
        lines.append(f"  {block.replicate}: {', '.join(placed_runs)}")
    if len(plan.blocks) > _BLOCKS_SHOWN:
        lines.append(f"  … and {len(plan.blocks) - _BLOCKS_SHOWN} more, on the same devices in turn")
    lines += [
        "",
        *(wrapped(line, width) for line in _places(plan, machine, estimate)),
        "",
        wrapped(f"estimate: {time}, {memory} ({estimate.basis})", width),
        wrapped(f"estimates: {plan.estimand}", width),
        *(wrapped(line, width) for line in _design(plan)),
        f"digest: {plan.digest[:16]}",
        *(wrapped(f"note: {note}", width) for note in plan.notes),
    ]
    return visible("\n".join(lines))


def _design(plan: Plan) -> Iterator[str]:
    """Yield lines on comparisons, rule and lost runs."""
    design = plan.design
    pairs = ", ".join(f"{pair.a} - {pair.b}" for pair in design.comparisons) or "none"
    direction_words = f"{design.outcome.label}, {design.outcome.better} is better"
    outcome = f"outcome {design.outcome_over} ({direction_words})"
    yield f"comparisons: {pairs}; {outcome}, margin {design.margin_words}"
    if plan.experiment.outcome_over != "evaluation":
        yield _window(plan)
    yield f"rule: {rule(design)}"
    if design.guards is not None:
        yield _guardrails(plan)
    if plan.earlier:
        yield pooling_words(plan)
    if design.worst is not None:
        yield f"lost runs of the group that looks better count as {design.value(design.worst)}"


def wrapped(text: str, width: int) -> str:
    """Wrap a sentence at `width` characters; the lines after the first are indented."""
    indent = "    " if text.startswith(" ") else "  "
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _differences(plan: Plan) -> Iterator[str]:
    names = [group.name for group in plan.experiment.groups]
    if not plan.differences:
        yield f"no differences between {', '.join(names)}"
        return
    yield "differences between groups (all else is equal)"
    rows = [["", *names]]
    for difference in plan.differences:
        values = [visible_line(difference.values[name]) for name in names]
        rows.append([difference.key, *values])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _places(plan: Plan, machine: Machine, estimate: Estimate) -> Iterator[str]:
    """Yield a line on devices and, unless the trainer is the user's own, one with the environments per device."""
    devices = f"devices: {_devices(plan, machine)}"
    if estimate.on_cpu_s:
        devices += f"; {duration(estimate.on_cpu_s)} with --devices cpu"
    yield devices
    if counts := environments_per_device(plan):
        yield f"environments per device: {counts}"
