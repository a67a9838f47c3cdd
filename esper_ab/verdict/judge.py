"""Judge observations by a plan: numbers and a verdict per comparison, departures, the next step. Pure.

Every verdict comes from here: on an experiment directory, a joint experiment, and a CSV file with or without a plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import fsum

import msgspec
import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import n_pairs
from esper_ab.design.design import Contrast
from esper_ab.stats.pair import Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.best_groups import best_groups
from esper_ab.verdict.comparison import compare
from esper_ab.verdict.departures import departures, listed_runs, listed_short, next_step
from esper_ab.verdict.drift import drift_findings
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.looks import PlanProgress, take_looks
from esper_ab.verdict.lost_scores import lost_score_findings
from esper_ab.verdict.observations import Facts, Observations, replicate_key
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import AskedItems, Question
from esper_ab.verdict.rows import row_findings
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.shared_variance import refuse_items
from esper_ab.verdict.task_improvement import task_improvements
from esper_ab.verdict.trial_progress import asked_trials
from esper_ab.verdict.tuning import Tuned, tune

CLUSTERS = "clusters"  # kind of a finding
_NO_FACTS = Facts(scope="")
_UNKNOWN_LOOKS = "These outcomes cannot show whether anyone looked at them between the planned looks."
_ALTERNATE = "Run it again with the groups in alternating order."
_REPEAT = "Find what changed during the experiment (a cache, a leak, another job), and run it again."


def judge(plan: AnalysisPlan, observations: Observations, *, rng_seed: int | None = None) -> Answer:
    """Judge `observations` by `plan`.

    `rng_seed`: seed of the bootstraps; if None, it is derived from the plan's digest or, for an exploratory analysis,
    from the observations. Raises UsageError if the runs were done elsewhere and none of them is in the plan.
    """
    if rng_seed is None:
        rng_seed = _rng_seed(plan, observations)
    if observations.facts is None and not observations.exploratory:
        observations = _named_as_planned(plan, observations)
        _refuse_foreign(plan, observations)
    if not plan.cells:
        return _judged(plan, observations, rng_seed)
    return _judge_tuned(plan, tune(observations, plan), rng_seed)


def _rng_seed(plan: AnalysisPlan, observations: Observations) -> int:
    """Return the seed of the bootstraps."""
    if observations.exploratory:
        return observations.rng_seed
    return int(plan.digest[:32], 16)


def _judge_tuned(plan: AnalysisPlan, tuning: Tuned, rng_seed: int) -> Answer:
    """Judge each group at the cell that was chosen for it."""
    choices_words = ", ".join(f"{choice.group} at {choice.cell}" for choice in tuning.choices)
    settings_words = ""
    if choices_words:
        settings_words = f", each group at its best of {', '.join(plan.cells)} ({choices_words})"
    answer = _judged(plan, tuning.observations, rng_seed, settings_words)
    unused_notes = []
    if tuning.unused:
        unused_notes.append(f"Not used, because other cells were chosen: {listed_runs(tuning.unused)}.")
    step = answer.next_step
    if tuning.missing:
        step = f"Cells must be chosen before anything is judged; missing runs: {listed_runs(tuning.missing)}."
    elif not tuning.choices:
        step = "Nothing can be judged: every run on the seeds for choosing a cell was lost."
    elif step:
        step = f"{step.removesuffix('.')}; {choices_words}."
    return replace(
        answer,
        departures=(*answer.departures, *unused_notes),
        notes=(*_choices(plan, tuning), *answer.notes),
        next_step=step,
    )


def _named_as_planned(plan: AnalysisPlan, observations: Observations) -> Observations:
    """Spell each seed as the plan does, with a note if the source spells it differently: 7, 07, 7.0 are one seed."""
    order = (*plan.choosing, *plan.replicates)
    planned_names = frozenset(order)
    by_key = {replicate_key(name): name for name in reversed(order)}
    unplanned_names = [name for name in observations.rows.replicate.names if name not in planned_names]
    keys = {name: replicate_key(name) for name in unplanned_names}
    names = {name: by_key[key] for name, key in keys.items() if key in by_key}  # the source's spelling -> the plan's
    if not names:
        return observations
    replicate = observations.rows.replicate.renamed(lambda name: names.get(name, name))
    their_name, our_name = next(iter(names.items()))
    rest_words = ""
    if len(names) > 1:
        rest_words = f", and likewise {len(names) - 1} more"
    note = f"{observations.pair_column.capitalize()} {their_name} is the plan's {our_name}{rest_words}."
    return msgspec.structs.replace(
        observations, rows=replace(observations.rows, replicate=replicate), notes=(*observations.notes, note)
    )


def _refuse_foreign(plan: AnalysisPlan, observations: Observations) -> None:
    """Raise UsageError if the runs are unpaired or have items that the plan cannot use, or none is in the plan."""
    source = observations.source
    if not observations.pair_column:
        raise UsageError(f"{source}: a plan pairs runs by seed, so a column 'seed', 'pair' or 'replicate' is needed")
    refuse_items(plan.design, observations)
    tasks = plan.cells or plan.tasks
    order = (*plan.choosing, *plan.replicates)
    if observations.rows.among(plan.groups, tasks, order).any():
        return
    if plan.cells:
        named_words = f"cells: {', '.join(plan.cells)}"
    elif plan.tasks != ("",):
        named_words = f"tasks: {', '.join(plan.tasks)}"
    else:
        named_words = "no tasks"
    raise UsageError(
        f"{source}: no run is in the plan (groups: {', '.join(plan.groups)}; seeds or pairs: {listed_short(order)}; "
        f"{named_words})"
    )


def _judged(plan: AnalysisPlan, observations: Observations, rng_seed: int, settings_words: str = "") -> Answer:
    """Judge observations in which each group has one cell. `settings_words`: the chosen settings, in words."""
    planned_observations = observations if observations.exploratory else _planned(plan, observations)
    progress = take_looks(plan, planned_observations)
    answer = judge_looks(plan, planned_observations, progress, rng_seed, settings_words)
    if observations.repeatable or observations.exploratory:
        return answer
    clusters = [finding.sentence for finding in answer.findings if finding.kind == CLUSTERS]
    return replace(
        answer,
        departures=(*departures(plan, observations, progress), *clusters),
        next_step=next_step(plan, planned_observations, progress),
    )


def judge_looks(
    plan: AnalysisPlan, observations: Observations, progress: PlanProgress, rng_seed: int, settings_words: str = ""
) -> Answer:
    """Judge observations of planned runs, at which the looks have been taken. `settings_words`: the chosen settings, in
    words.

    The answer has no departures and no next step.
    """
    comparisons = {}
    findings: dict[Finding, None] = {}  # of the outcomes, each once and in order
    for contrast, pairing in progress.pairings.items():
        outcome_findings = tuple(_findings_of_outcomes(plan, observations, progress, contrast))
        findings.update(dict.fromkeys(outcome_findings))
        comparisons[contrast] = compare(
            _question(plan, observations, contrast, pairing, rng_seed, settings_words),
            pairing,
            progress.comparisons[contrast],
            same_records=_same_records(plan, observations, contrast),
            findings=(*_findings_of_records(plan, observations, contrast), *outcome_findings),
        )
    compared_pairs = [(contrast.a, contrast.b) for contrast in plan.design.comparisons]
    return Answer(
        observations=observations,
        scales=plan.scales,
        design=plan.design,
        progress=progress,
        comparisons=tuple(comparisons.values()),
        plan="" if observations.exploratory else plan.digest,
        findings=tuple(findings),
        departures=(),
        improvements=task_improvements(observations, plan.scales, compared_pairs, rng_seed),
        notes=tuple(_notes(observations, progress)),
        next_step="",
        best=best_groups(plan, observations, progress, comparisons),
    )


def _planned(plan: AnalysisPlan, observations: Observations) -> Observations:
    """Return the runs that are in the plan; the rest are named in the departures."""
    planned_mask = observations.rows.among(plan.groups, plan.tasks, plan.replicates)
    return msgspec.structs.replace(observations, rows=observations.rows.taken(planned_mask))


def _question(
    plan: AnalysisPlan,
    observations: Observations,
    contrast: Contrast,
    pairing: Pairing,
    rng_seed: int,
    settings_words: str,
) -> Question:
    facts_by_task = _facts_by_task(plan, observations, contrast).values()
    own_facts = (observations.facts or {}).get(contrast.task)
    planned_pairs = len(plan.replicates)
    if plan.evaluation is None:
        items_question = _asked_items(observations, contrast)
    else:
        items_question = asked_trials(plan, pairing)
    unit = ""
    if observations.exploratory:
        planned_pairs = len(pairing.pairs)
        if pairing.lost.paired:
            planned_pairs += len(pairing.lost.replicates)
        unit = "independent unit" if pairing.clusters else "training run"
    return Question(
        a=contrast.a,
        b=contrast.b,
        task=contrast.task,
        design=plan.design_of(contrast),
        planned=planned_pairs,
        scope=_scope(plan, observations, contrast.task) + settings_words,
        recorded=observations.repeatable,
        has_records=observations.facts is not None,
        same_settings=all(contrast.groups in facts.same_settings for facts in facts_by_task),
        coarse=any(contrast.groups in facts.coarse for facts in facts_by_task),
        other_code=any(contrast.groups in facts.other_code for facts in facts_by_task),
        declared=not observations.exploratory,
        unit=unit,
        items=items_question,
        rng_seed=rng_seed,
        paired=own_facts is None or own_facts.paired,
        run_sd=None if own_facts is None else own_facts.run_sd,
    )


def _asked_items(observations: Observations, contrast: Contrast) -> AskedItems | None:
    """Return the items that a comparison is about, in all of its tasks; None if there are none."""
    items = observations.items
    if items is None:
        return None
    tasks = items.shared if contrast.task == MEAN else (contrast.task,)
    used_items = [sum(items.items_of(group, task) for task in tasks) for group in contrast.groups]
    return AskedItems(
        level=items.level,
        closed=items.closed,
        unit=items.unit,
        items=min(used_items),
        runs_a=items.most_runs(contrast.a),
        runs_b=items.most_runs(contrast.b),
        shared=all(items.shared[task] for task in tasks),
    )


def _tasks_of(plan: AnalysisPlan, contrast: Contrast) -> tuple[str, ...]:
    """Return the tasks that a comparison covers; for the mean, these are all tasks."""
    if contrast.task == MEAN:
        return plan.tasks
    return (contrast.task,)


def _scope(plan: AnalysisPlan, observations: Observations, task: str) -> str:
    """Describe the conditions under which the answer holds."""
    facts = observations.facts
    if facts is None:
        rows_words = "runs" if plan.evaluation is None else f"{plan.design.unit}s"
        runs = f"the {rows_words} in {observations.source}"
        if task == MEAN:
            return f"{runs}, the tasks {', '.join(plan.tasks)} and no others"
        if task:
            return f"{runs}, task {task}"
        return runs
    if task == MEAN:
        return f"the named tasks and no others: {', '.join(plan.tasks)}"
    if task in facts:
        return facts[task].scope
    return f"task {task}"


def _facts_by_task(plan: AnalysisPlan, observations: Observations, contrast: Contrast) -> dict[str, Facts]:
    """Return the facts of each task that the comparison covers; nothing holds for a task without records."""
    facts = observations.facts or {}
    return {task: facts.get(task, _NO_FACTS) for task in _tasks_of(plan, contrast)}


def _same_records(plan: AnalysisPlan, observations: Observations, contrast: Contrast) -> bool:
    """True if both runs of every pair have equal records, in every task that the comparison covers."""
    by_task = _facts_by_task(plan, observations, contrast)
    return all(contrast.groups in facts.same_records for facts in by_task.values())


def _findings_of_records(plan: AnalysisPlan, observations: Observations, contrast: Contrast) -> Iterator[Finding]:
    """Yield the audits' findings. A finding that blocks or caps a task also blocks or caps the mean over tasks."""
    for task, facts in _facts_by_task(plan, observations, contrast).items():
        for finding in facts.findings:
            if contrast.task == MEAN:
                finding = msgspec.structs.replace(finding, sentence=f"{task}: {finding.sentence}")
            yield finding


def _findings_of_outcomes(
    plan: AnalysisPlan, observations: Observations, progress: PlanProgress, contrast: Contrast
) -> Iterator[Finding]:
    """Yield the findings that follow from the outcomes: pairs that are dependent, and differences that drift."""
    pairing = progress.pairings[contrast]
    if observations.facts is None and plan.evaluation is None:
        yield from row_findings(observations, pairing, contrast, plan.replicates)
    if pairing.clusters and not observations.exploratory:
        yield _cluster_finding(observations, pairing, contrast)
    yield from lost_score_findings(plan, observations.items, contrast, pairing, progress.comparisons[contrast])
    yield from _drift_findings(plan, observations, pairing, contrast)
    if contrast.task != MEAN:
        return
    for other_contrast, task_pairing in progress.pairings.items():
        if other_contrast.groups == contrast.groups and other_contrast.task != MEAN:
            for finding in _drift_findings(plan, observations, task_pairing, other_contrast):
                yield msgspec.structs.replace(finding, sentence=f"{other_contrast.task}: {finding.sentence}")


def _cluster_finding(observations: Observations, pairing: Pairing, contrast: Contrast) -> Finding:
    """Return a finding that caps the verdict, because runs that the plan counts as independent share a cluster."""
    task_words = f" in {contrast.task}" if contrast.task else ""
    sharing_words = f"{listed_short(pairing.clusters[0])} share a cluster"
    other_sets = len(pairing.clusters) - 1
    if other_sets:
        sharing_words += f", and so do {other_sets} other sets of them"
    return Finding(
        kind=CLUSTERS,
        weight="caps",
        groups=contrast.groups,
        sentence=f"{contrast.a} and {contrast.b}{task_words}: the plan counts every {observations.pair_column} as "
        f"independent, but {sharing_words}.",
    )


def _drift_findings(
    plan: AnalysisPlan, observations: Observations, pairing: Pairing, contrast: Contrast
) -> Iterator[Finding]:
    """Yield a finding that caps the verdict if the comparison's differences drift and the order of its pairs is known.

    The order is known from the rows' `order` or from a plan; the numbers of seeds do not tell when runs were made. All
    pairs that exist count, including those after a decision.
    """
    if isinstance(pairing.pairs, Samples):
        return
    used_replicates = pairing.pairs
    unused_runs = pairing.existing.taken(~np.isin(pairing.existing.replicate, used_replicates.replicate))
    pairs = used_replicates.followed_by(unused_runs)
    order = _order_of_runs(observations, contrast)
    names = plan.replicates
    if all(names[replicate] in order for replicate in pairs.replicate.tolist()):
        order_numbers = np.array([order[names[replicate]] for replicate in pairs.replicate.tolist()])
        pairs = replace(pairs.taken(np.argsort(order_numbers, kind="stable")), replicate=np.arange(len(pairs)))
    elif observations.exploratory:
        return
    remedy = _ALTERNATE if observations.facts is None else _REPEAT
    yield from drift_findings(plan.design_of(contrast), contrast, pairs, remedy)


def _order_of_runs(observations: Observations, contrast: Contrast) -> dict[str, float]:
    """Return when the runs of each replicate were done, as the mean of their places in the order of all runs.

    Replicates of unknown order are left out.
    """
    orders: dict[str, list[int]] = {}
    if not observations.rows.order:
        return {}
    for row in observations.rows:
        if row.order is not None and row.group in contrast.groups and contrast.task in (row.task, MEAN):
            orders.setdefault(row.replicate, []).append(row.order)
    return {name: fsum(run_orders) / len(run_orders) for name, run_orders in orders.items()}


def _notes(observations: Observations, progress: PlanProgress) -> Iterator[str]:
    """Yield notes on the runs: those without a partner, and pairs that are not independent."""
    yield from observations.notes
    if not observations.exploratory:
        if observations.facts is None:
            yield _UNKNOWN_LOOKS
        return
    for contrast, pairing in progress.pairings.items():
        if pairing.clusters:
            task_words = f" ({contrast.task})" if contrast.task else ""
            independent_pairs = len(pairing.pairs)
            runs = independent_pairs + sum(len(unit) - 1 for unit in pairing.clusters)
            yield (
                f"{contrast.a} and {contrast.b}{task_words}: pairs that share a cluster are not independent; "
                f"{n_pairs(runs)} give {independent_pairs} independent ones, the means of their clusters, with equal "
                "weights."
            )


def _choices(plan: AnalysisPlan, tuning: Tuned) -> Iterator[str]:
    """Say which cell was chosen for each group, and give the means of all its cells."""
    choosing = listed_short(plan.choosing)
    for choice in tuning.choices:
        means = ", ".join(f"{cell} {plan.design.value(mean)}" for cell, mean in choice.means.items())
        yield f"{choice.group} is judged at {choice.cell}, chosen on the seeds {choosing} (means: {means})."
