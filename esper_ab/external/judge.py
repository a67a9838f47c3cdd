"""Endpoints held to the plan made before the runs, in its order: its verdicts, and what was not followed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Contrast
from esper_ab.external.endpoints import MEAN, Endpoint, Endpoints
from esper_ab.external.explore import drift_of, listed_short, scope_of
from esper_ab.external.pairing import Cells, Pairing, cells_of, pair_up, runs_of
from esper_ab.external.plan import ExternalPlan
from esper_ab.external.result import ExternalComparison, ExternalResult
from esper_ab.external.tuning import Tuned, tune
from esper_ab.verdict.comparison import compare
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.looks import Course, follow
from esper_ab.verdict.question import Question

_LOOKED = "Whether somebody looked at these endpoints between the planned looks cannot be seen in them."
_CLUSTERS = "clusters"  # kind of a finding


@dataclass(frozen=True, kw_only=True)
class AuditedTask:
    """What is known of the runs of one task beside their endpoints, where experiments of our own recorded them."""

    findings: tuple[Finding, ...]  # of its audit
    scope: str  # what its answer is conditional on, in words
    same_records: frozenset[tuple[str, str]]  # comparisons whose runs have the same records in every pair
    same_settings: frozenset[tuple[str, str]]  # comparisons in which no setting differs that a group reads


def judge(
    plan: ExternalPlan, endpoints: Endpoints, known: Mapping[str, AuditedTask] | None = None,
    rng_seed: int | None = None,
) -> ExternalResult:  # fmt: skip
    """Judge `endpoints` by `plan`. A look is taken where all runs that it asks for are there, lost ones included.

    `known`: by task, of runs that have records. UsageError where no run is of the plan, unless they are `known`, and
    so may be to come. `rng_seed`: of the bootstraps; None: from the plan's digest.
    """
    seed = int(plan.digest[:32], 16) if rng_seed is None else rng_seed
    if known is not None:
        return _judged(plan, endpoints, seed, known=known)
    if not endpoints.pair_column:
        raise UsageError(f"{endpoints.source}: a plan pairs runs by seed: a column seed, pair or replicate is needed")
    tasks, order = plan.cells or plan.tasks, (*plan.choosing, *plan.replicates)
    if not any(row.group in plan.groups and row.task in tasks and row.replicate in order for row in endpoints.rows):
        named = f", the {'cells' if plan.cells else 'tasks'} {', '.join(tasks)}" if tasks != ("",) else ", no tasks"
        raise UsageError(
            f"{endpoints.source}: no run is of the plan, which has the groups {', '.join(plan.groups)}, the seeds (or "
            f"pairs) {listed_short(order)}{named}"
        )
    if not plan.cells:
        return _judged(plan, endpoints, seed)
    tuned = tune(endpoints, plan.groups, plan.cells, plan.choosing, plan.scales[0])
    at = ", ".join(f"{one.group} at {one.cell}" for one in tuned.choices)
    best = f", each group at its best of {', '.join(plan.cells)} ({at})" if at else ""
    found = _judged(plan, tuned.endpoints, seed, best)
    wait = "" if tuned.choices else "Nothing can be judged: every run on the seeds that choose a cell was lost."
    if tuned.missing:
        wait = f"Before anything is judged, cells are chosen: {_listed(tuned.missing)}."
    return replace(
        found, departures=(*found.departures, *_unused(tuned)), notes=(*_choices(plan, tuned), *found.notes),
        next_step=wait or (f"{found.next_step.removesuffix('.')}; {at}." if found.next_step else ""),
    )  # fmt: skip


def _judged(
    plan: ExternalPlan, endpoints: Endpoints, rng_seed: int, at: str = "",
    known: Mapping[str, AuditedTask] | None = None,
) -> ExternalResult:  # fmt: skip
    """`at`: in which settings, in words."""
    records, planned = known or {}, _planned(plan, endpoints)
    cells, order, contrasts = cells_of(planned), plan.replicates, plan.design.comparisons
    ready = {contrast: _ready(cells, plan, contrast) for contrast in contrasts}
    paired = {one: pair_up(cells, one, plan.scales, order[: ready[one]], join=False) for one in contrasts}
    complete, courses = _follow(plan, paired, ready)
    paired = {one: _up_to_stop(plan, cells, one, courses[one]) or pairing for one, pairing in paired.items()}
    found = []
    for contrast in contrasts:
        question = Question(
            a=contrast.a, b=contrast.b, design=plan.design_of(contrast), planned=len(order),
            scope=_scope(plan, endpoints, contrast.task, records) + at, recorded=False,
            same_settings=_everywhere(plan, contrast, {task: one.same_settings for task, one in records.items()}),
            rng_seed=rng_seed,
        )  # fmt: skip
        one = paired[contrast]
        compared = compare(
            question, one.pairs, courses[contrast], lost=one.lost,
            same_records=_everywhere(plan, contrast, {task: one.same_records for task, one in records.items()}),
            findings=(
                *_dependent(endpoints, contrast, one),
                *(drift_of(planned, question.design, contrast, one.pairs, order, in_turn=True) if known is None
                  else _audited(plan, contrast, records)),
            ),
        )  # fmt: skip
        found.append(ExternalComparison(task=contrast.task, comparison=compared))
    capped = [finding.sentence for one in found for finding in one.comparison.findings if finding.kind == _CLUSTERS]
    return ExternalResult(
        endpoints=planned, scales=plan.scales, design=plan.design, plan=plan.digest, comparisons=tuple(found),
        departures=(*_foreign(plan, endpoints), *_gaps(plan, endpoints, cells), *_after(plan, cells, courses), *capped),
        notes=() if known is not None else (_LOOKED,), next_step=_next_step(plan, courses, complete),
    )  # fmt: skip


def _planned(plan: ExternalPlan, endpoints: Endpoints) -> Endpoints:
    """Return the endpoints of the runs that the plan knows; of the others it is said that they are left out."""
    rows = tuple(
        row for row in endpoints.rows
        if row.group in plan.groups and row.task in plan.tasks and row.replicate in plan.replicates
    )  # fmt: skip
    return msgspec.structs.replace(endpoints, rows=rows)


def _tasks_of(plan: ExternalPlan, contrast: Contrast) -> tuple[str, ...]:
    """Return the tasks that a comparison is about: of the mean all of them."""
    return plan.tasks if contrast.task == MEAN else (contrast.task,)


def _scope(plan: ExternalPlan, endpoints: Endpoints, task: str, known: Mapping[str, AuditedTask]) -> str:
    """Describe what the answer is conditional on; where records are known, as an experiment of its own does."""
    if not known:
        return scope_of(endpoints, task, plan.scales)
    if task != MEAN:
        return known[task].scope if task in known else f"task {task}"
    return f"the named tasks and no others: {', '.join(plan.tasks)}"


def _audited(plan: ExternalPlan, contrast: Contrast, known: Mapping[str, AuditedTask]) -> Iterator[Finding]:
    """Yield what the audits found; what blocks or caps one task does so for the mean that it is part of."""
    for task in _tasks_of(plan, contrast):
        for finding in known[task].findings if task in known else ():
            where = f"{task}: " if contrast.task == MEAN else ""
            yield msgspec.structs.replace(finding, sentence=f"{where}{finding.sentence}")


def _everywhere(plan: ExternalPlan, contrast: Contrast, known: Mapping[str, frozenset[tuple[str, str]]]) -> bool:
    """Return whether the comparison is among those that are `known` of every task that it is about."""
    return all((contrast.a, contrast.b) in known.get(task, ()) for task in _tasks_of(plan, contrast))


def _choices(plan: ExternalPlan, tuned: Tuned) -> Iterator[str]:
    """Say what was chosen, and by which means."""
    value = plan.design.value
    for one in tuned.choices:
        means = ", ".join(f"{cell} {value(mean)}" for cell, mean in one.means.items())
        seeds = listed_short(plan.choosing)
        yield f"{one.group} is judged at {one.cell}, chosen on the seeds {seeds} (means: {means})."


def _unused(tuned: Tuned) -> Iterator[str]:
    if tuned.unused:
        yield f"Not used, because other cells were chosen: {_listed(tuned.unused)}."


def _listed(rows: Sequence[Endpoint]) -> str:
    return listed_short([f"{row.group} at {row.task or '(none)'} with seed {row.replicate}" for row in rows])


def _ready(cells: Cells, plan: ExternalPlan, contrast: Contrast) -> int:
    """Count the leading replicates of which both groups have their runs, with an endpoint or lost."""
    for place, replicate in enumerate(plan.replicates):
        groups = (contrast.a, contrast.b)
        if not all(runs_of(cells, group, contrast.task, plan.scales, replicate) for group in groups):
            return place
    return len(plan.replicates)


def _follow(
    plan: ExternalPlan, paired: Mapping[Contrast, Pairing], ready: Mapping[Contrast, int]
) -> tuple[int, Mapping[Contrast, Course]]:
    """Take every look for which all comparisons that it still asks about are ready; the replicates of the last one."""
    design, complete = plan.design, 0
    own = {contrast: plan.design_of(contrast) for contrast in design.comparisons}
    pairs = {contrast: one.pairs for contrast, one in paired.items()}
    courses = follow(design, pairs, complete, own)
    for look in design.looks:
        asked = [one for one in design.comparisons if not design.early_stop or courses[one].decision == "open"]
        if not asked or any(ready[one] < look for one in asked):
            break
        complete, courses = look, follow(design, pairs, look, own)
    return complete, courses


def _up_to_stop(plan: ExternalPlan, cells: Cells, contrast: Contrast, course: Course) -> Pairing | None:
    """Return the pairs up to the look that ended a comparison early, for later runs are not used; None: none did."""
    if not plan.design.early_stop or course.decided_at is None:
        return None
    return pair_up(cells, contrast, plan.scales, plan.replicates[: course.decided_at], join=False)


def _dependent(endpoints: Endpoints, contrast: Contrast, one: Pairing) -> Iterator[Finding]:
    """Yield what caps a verdict: its plan counts pairs as independent that share a cluster."""
    for unit in one.clusters[:1]:
        more = f", and so do {len(one.clusters) - 1} other sets of them" if one.clusters[1:] else ""
        where = f" in {contrast.task}" if contrast.task else ""
        yield Finding(
            kind=_CLUSTERS, weight="caps", groups=(contrast.a, contrast.b),
            sentence=f"{contrast.a} and {contrast.b}{where}: the plan counts every {endpoints.pair_column} as "
            f"independent, but {listed_short(unit)} share a cluster{more}.",
        )  # fmt: skip


def _foreign(plan: ExternalPlan, endpoints: Endpoints) -> Iterator[str]:
    """Yield what the plan does not know: groups, tasks and replicates, which are left out."""
    for what, column, planned in (
        ("group", [row.group for row in endpoints.rows], plan.groups),
        ("task", [row.task for row in endpoints.rows], plan.tasks),
        (endpoints.pair_column, [row.replicate for row in endpoints.rows], plan.replicates),
    ):
        others = [name for name in dict.fromkeys(column) if name not in planned]
        if others:
            rows = sum(name in others for name in column)
            yield (
                f"Not in the plan, and left out: {what} {listed_short([name or '(none)' for name in others])} "
                f"({rows} {'row' if rows == 1 else 'rows'})."
            )


def _gaps(plan: ExternalPlan, endpoints: Endpoints, cells: Cells) -> Iterator[str]:
    """Yield the runs that are missing although later ones of their group are there."""
    for task in plan.tasks:
        for group in plan.groups:
            there = [place for place, name in enumerate(plan.replicates) if (group, task, name) in cells]
            missing = [name for name in plan.replicates[: max(there, default=0)] if (group, task, name) not in cells]
            if missing:
                where = f" in {task}" if task else ""
                yield (
                    f"Out of order: {group}{where} has no run of {endpoints.pair_column} {listed_short(missing)}, but "
                    f"later ones. Nothing after a gap counts; a run that failed is a row with an empty endpoint."
                )


def _after(plan: ExternalPlan, cells: Cells, courses: Mapping[Contrast, Course]) -> Iterator[str]:
    """Yield the runs that were made although nothing was open any more that they could decide."""
    for task in plan.tasks if plan.design.early_stop else ():
        for group in plan.groups:
            own = [
                course for contrast, course in courses.items()
                if group in (contrast.a, contrast.b) and contrast.task in (task, MEAN)
            ]  # fmt: skip
            if not own or any(course.decided_at is None for course in own):
                continue
            end = max(course.decided_at or 0 for course in own)
            later = [name for name in plan.replicates[end:] if (group, task, name) in cells]
            if later:
                where = f" in {task}" if task else ""
                yield (
                    f"Not used: {group}{where} went on after replicate {end}, at which all its comparisons were "
                    f"decided ({listed_short(later)})."
                )


def _next_step(plan: ExternalPlan, courses: Mapping[Contrast, Course], complete: int) -> str:
    """Say which runs the next look asks for; "" when none is left."""
    needed = [contrast for contrast, course in courses.items() if not course.finished]
    coming = [look for look in plan.design.looks if look > complete]
    if not needed or not coming:
        return ""
    runs: dict[str, list[str]] = {}
    for task in plan.tasks:
        asked = [one for one in needed if one.task in (task, MEAN)]
        groups = [group for group in plan.groups if any(group in (one.a, one.b) for one in asked)]
        if groups:
            runs.setdefault(", ".join(groups), []).append(task)
    told = [f"{groups}{f' in {listed_short(tasks)}' if tasks != [''] else ''}" for groups, tasks in runs.items()]
    return (
        f"The next look is after replicate {coming[0]}: {listed_short(plan.replicates[complete : coming[0]])} of "
        f"{'; '.join(told)}."
    )
