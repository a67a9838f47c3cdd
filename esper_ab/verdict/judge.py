"""Judge observations by a plan: numbers and a verdict per comparison, departures, the next step. Pure.

Every verdict comes from here: on an experiment directory, a joint experiment, and a CSV file with or without a plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import fsum

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import n_pairs
from esper_ab.design.design import Contrast
from esper_ab.stats.pair import Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.comparison import compare
from esper_ab.verdict.departures import departures, listed_runs, listed_short, next_step
from esper_ab.verdict.drift import drifting
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.looks import Courses, take_looks
from esper_ab.verdict.observations import Observations, seed_key
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import Question
from esper_ab.verdict.rows import on_rows
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.task_improvement import task_improvements
from esper_ab.verdict.tuning import Tuned, tune

CLUSTERS = "clusters"  # kind of a finding
_LOOKED = "These outcomes cannot show whether anyone looked at them between the planned looks."
_AGAIN = "Run it again with the groups in alternating order."
_REPEAT = "Find what changed during the experiment (a cache, a leak, another job), and run it again."


def judge(plan: AnalysisPlan, observations: Observations, *, rng_seed: int | None = None) -> Answer:
    """Judge `observations` by `plan`.

    `rng_seed`: seed of the bootstraps; if None, it is derived from the plan's digest or, for an exploratory analysis,
    from the observations. Raises UsageError if the runs were done elsewhere and none of them is in the plan.
    """
    if rng_seed is None:
        rng_seed = observations.rng_seed if observations.exploratory else int(plan.digest[:32], 16)
    if observations.facts is None and not observations.exploratory:
        observations = _named_as_planned(plan, observations)
        _refuse_foreign(plan, observations)
    if not plan.cells:
        return _judged(plan, observations, rng_seed)
    tuned = tune(observations, plan)
    at = ", ".join(f"{one.group} at {one.cell}" for one in tuned.choices)
    within = f", each group at its best of {', '.join(plan.cells)} ({at})" if at else ""
    answer = _judged(plan, tuned.observations, rng_seed, within)
    if tuned.choices:
        wait = ""
    else:
        wait = "Nothing can be judged: every run on the seeds for choosing a cell was lost."
    if tuned.missing:
        wait = f"Cells must be chosen before anything is judged; missing runs: {listed_runs(tuned.missing)}."
    unused = f"Not used, because other cells were chosen: {listed_runs(tuned.unused)}."
    return replace(
        answer,
        departures=(*answer.departures, *((unused,) if tuned.unused else ())),
        notes=(*_choices(plan, tuned), *answer.notes),
        next_step=wait or (f"{answer.next_step.removesuffix('.')}; {at}." if answer.next_step else ""),
    )


def _named_as_planned(plan: AnalysisPlan, observations: Observations) -> Observations:
    """Spell each seed as the plan does, with a note if the source spells it differently: 7, 07, 7.0 are one seed."""
    planned = (*plan.choosing, *plan.replicates)
    by_key = {seed_key(name): name for name in reversed(planned)}
    names = {
        row.replicate: by_key[seed_key(row.replicate)]
        for row in observations.rows
        if row.replicate not in planned and seed_key(row.replicate) in by_key
    }
    if not names:
        return observations
    rows = (
        msgspec.structs.replace(row, replicate=names.get(row.replicate, row.replicate)) for row in observations.rows
    )
    theirs, ours = next(iter(names.items()))
    more = f", and likewise {len(names) - 1} more" if len(names) > 1 else ""
    note = f"{observations.pair_column.capitalize()} {theirs} is the plan's {ours}{more}."
    return msgspec.structs.replace(observations, rows=tuple(rows), notes=(*observations.notes, note))


def _refuse_foreign(plan: AnalysisPlan, observations: Observations) -> None:
    """Raise UsageError if the runs are unpaired, or none of them is in the plan."""
    source = observations.source
    if not observations.pair_column:
        raise UsageError(f"{source}: a plan pairs runs by seed, so a column 'seed', 'pair' or 'replicate' is needed")
    tasks = plan.cells or plan.tasks
    order = (*plan.choosing, *plan.replicates)
    if not any(row.group in plan.groups and row.task in tasks and row.replicate in order for row in observations.rows):
        if tasks != ("",):
            named = f"; {'cells' if plan.cells else 'tasks'}: {', '.join(tasks)}"
        else:
            named = "; no tasks"
        raise UsageError(
            f"{source}: no run is in the plan (groups: {', '.join(plan.groups)}; seeds or pairs: {listed_short(order)}"
            f"{named})"
        )


def _judged(plan: AnalysisPlan, observations: Observations, rng_seed: int, within: str = "") -> Answer:
    """Judge observations in which each group has one cell. `within`: the chosen settings, in words."""
    planned = observations if observations.exploratory else _planned(plan, observations)
    followed = take_looks(plan, planned)
    seen = {one: tuple(_of_data(plan, planned, followed, one)) for one in followed.courses}
    compared = tuple(
        compare(
            _question(plan, planned, contrast, followed.pairings[contrast], rng_seed, within),
            followed.pairings[contrast].pairs,
            course,
            lost=followed.pairings[contrast].lost,
            same_records=_everywhere(plan, planned, contrast, "same_records"),
            findings=(*_of_records(plan, planned, contrast), *seen[contrast]),
        )
        for contrast, course in followed.courses.items()
    )
    elsewhere = not observations.repeatable and not observations.exploratory
    found = tuple(dict.fromkeys(finding for findings in seen.values() for finding in findings))
    clusters = tuple(finding.sentence for finding in found if finding.kind == CLUSTERS)
    return Answer(
        observations=planned,
        scales=plan.scales,
        design=plan.design,
        courses=followed,
        comparisons=compared,
        plan="" if observations.exploratory else plan.digest,
        findings=found,
        departures=(*departures(plan, observations, followed), *clusters) if elsewhere else (),
        improvements=task_improvements(
            planned, plan.scales, [(one.a, one.b) for one in plan.design.comparisons], rng_seed
        ),
        notes=tuple(_notes(planned, followed)),
        next_step=next_step(plan, planned, followed) if elsewhere else "",
    )


def _planned(plan: AnalysisPlan, observations: Observations) -> Observations:
    """Return the runs that are in the plan; the rest are named in the departures."""
    rows = tuple(
        row
        for row in observations.rows
        if row.group in plan.groups and row.task in plan.tasks and row.replicate in plan.replicates
    )
    return msgspec.structs.replace(observations, rows=rows)


def _question(
    plan: AnalysisPlan, observations: Observations, contrast: Contrast, pairing: Pairing, rng_seed: int, within: str
) -> Question:
    explored = observations.exploratory
    facts = (observations.facts or {}).get(contrast.task)
    many = len(pairing.pairs) + (len(pairing.lost.replicates) if pairing.lost.paired else 0)
    return Question(
        a=contrast.a,
        b=contrast.b,
        task=contrast.task,
        design=plan.design_of(contrast),
        planned=many if explored else len(plan.replicates),
        scope=_scope(plan, observations, contrast.task) + within,
        recorded=observations.repeatable,
        same_settings=_everywhere(plan, observations, contrast, "same_settings"),
        declared=not explored,
        unit="" if not explored else "independent unit" if pairing.clusters else "training run",
        rng_seed=rng_seed,
        paired=facts is None or facts.paired,
        run_sd=None if facts is None else facts.run_sd,
    )


def _tasks_of(plan: AnalysisPlan, contrast: Contrast) -> tuple[str, ...]:
    """Return the tasks that a comparison covers; for the mean, these are all tasks."""
    return plan.tasks if contrast.task == MEAN else (contrast.task,)


def _scope(plan: AnalysisPlan, observations: Observations, task: str) -> str:
    """Describe the conditions under which the answer holds."""
    facts = observations.facts
    if facts is None:
        named = f", task {task}" if task else ""
        named = f", the tasks {', '.join(plan.tasks)} and no others" if task == MEAN else named
        return f"the runs in {observations.source}{named}"
    if task == MEAN:
        return f"the named tasks and no others: {', '.join(plan.tasks)}"
    return facts[task].scope if task in facts else f"task {task}"


def _everywhere(plan: AnalysisPlan, observations: Observations, contrast: Contrast, fact: str) -> bool:
    """True if `fact` holds for the comparison in every task that it covers."""
    facts = observations.facts or {}
    tasks = _tasks_of(plan, contrast)
    return all(task in facts and contrast.groups in getattr(facts[task], fact) for task in tasks)


def _of_records(plan: AnalysisPlan, observations: Observations, contrast: Contrast) -> Iterator[Finding]:
    """Yield the audits' findings. A finding that blocks or caps a task also blocks or caps the mean over tasks."""
    for task in _tasks_of(plan, contrast):
        facts = (observations.facts or {}).get(task)
        for finding in facts.findings if facts else ():
            where = f"{task}: " if contrast.task == MEAN else ""
            yield msgspec.structs.replace(finding, sentence=f"{where}{finding.sentence}")


def _of_data(
    plan: AnalysisPlan, observations: Observations, followed: Courses, contrast: Contrast
) -> Iterator[Finding]:
    """Yield the findings that follow from the outcomes: pairs that are dependent, and differences that drift."""
    pairing = followed.pairings[contrast]
    if observations.facts is None:
        yield from on_rows(observations, pairing, contrast, plan.replicates)
    for unit in pairing.clusters[:1] if not observations.exploratory else ():
        if pairing.clusters[1:]:
            more = f", and so do {len(pairing.clusters) - 1} other sets of them"
        else:
            more = ""
        where = f" in {contrast.task}" if contrast.task else ""
        yield Finding(
            kind=CLUSTERS,
            weight="caps",
            groups=contrast.groups,
            sentence=f"{contrast.a} and {contrast.b}{where}: the plan counts every {observations.pair_column} as "
            f"independent, but {listed_short(unit)} share a cluster{more}.",
        )
    yield from _drift(plan, observations, pairing, contrast)
    for other, of_task in followed.pairings.items() if contrast.task == MEAN else ():
        if other.groups == contrast.groups and other.task != MEAN:
            for finding in _drift(plan, observations, of_task, other):
                yield msgspec.structs.replace(finding, sentence=f"{other.task}: {finding.sentence}")


def _drift(plan: AnalysisPlan, observations: Observations, pairing: Pairing, contrast: Contrast) -> Iterator[Finding]:
    """Yield a finding that caps the verdict if the comparison's differences drift and the order of its pairs is known.

    The order is known from the rows' `order` or from a plan; the numbers of seeds do not tell when runs were made. All
    pairs that exist count, including those after a decision.
    """
    replicates = plan.replicates
    if isinstance(pairing.pairs, Samples):
        return
    used = {pair.replicate for pair in pairing.pairs}
    pairs = (*pairing.pairs, *(pair for pair in pairing.existing if pair.replicate not in used))
    told: dict[str, list[int]] = {}
    for row in observations.rows:
        if row.order is not None and row.group in contrast.groups and contrast.task in (row.task, MEAN):
            told.setdefault(row.replicate, []).append(row.order)
    when = {name: fsum(orders) / len(orders) for name, orders in told.items()}
    if all(replicates[pair.replicate] in when for pair in pairs):
        ordered = sorted(pairs, key=lambda pair: when[replicates[pair.replicate]])
        pairs = tuple(msgspec.structs.replace(pair, replicate=place) for place, pair in enumerate(ordered))
    elif observations.exploratory:
        return
    remedy = _AGAIN if observations.facts is None else _REPEAT
    yield from drifting(plan.design_of(contrast), contrast, pairs, remedy)


def _notes(observations: Observations, followed: Courses) -> Iterator[str]:
    """Yield notes on the runs: those without a partner, and pairs that are not independent."""
    yield from observations.notes
    if observations.facts is None and not observations.exploratory:
        yield _LOOKED
    for contrast, one in followed.pairings.items() if observations.exploratory else ():
        where = f" ({contrast.task})" if contrast.task else ""
        if one.clusters:
            runs = len(one.pairs) + sum(len(unit) - 1 for unit in one.clusters)
            yield (
                f"{contrast.a} and {contrast.b}{where}: pairs that share a cluster are not independent; "
                f"{n_pairs(runs)} give {len(one.pairs)} independent ones, the means of their clusters, with equal "
                "weights."
            )


def _choices(plan: AnalysisPlan, tuned: Tuned) -> Iterator[str]:
    """Say which cell was chosen for each group, and give the means of all its cells."""
    seeds = listed_short(plan.choosing)
    for one in tuned.choices:
        means = ", ".join(f"{cell} {plan.design.value(mean)}" for cell, mean in one.means.items())
        yield f"{one.group} is judged at {one.cell}, chosen on the seeds {seeds} (means: {means})."
