"""Endpoints without a plan -> exploratory comparisons, analysed as by a plan with one look at all of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum

import msgspec

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.design.design import Contrast, Design
from esper_ab.external.endpoints import ITEMS, MEAN, Endpoints
from esper_ab.external.pairing import Cells, Pairing, cells_of, pair_up, sampled
from esper_ab.external.plan import Rule, make_external_design, own_design
from esper_ab.external.result import ExternalComparison, ExternalResult
from esper_ab.external.scales import Scale
from esper_ab.stats.pair import Pair, Samples
from esper_ab.stats.text import n_pairs
from esper_ab.verdict.comparison import compare
from esper_ab.verdict.drifting import drifting
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.looks import follow
from esper_ab.verdict.question import Question

_MOST_GROUPS = 100  # without a control: nearly 5,000 comparisons
_SHOWN = 8  # names in a list
_MOST_TAKEN_FOR_RUNS = 30  # rows per group and task: hardly anybody trains more, and items are seldom fewer
_ONE_IN = 10  # rows may lack a partner
_AGAIN = "Run it again with the groups in alternating order."


def explore(
    endpoints: Endpoints, scales: Sequence[Scale], rule: Rule, *, paired: bool | None = None, rows: str | None = None,
    rng_seed: int | None = None,
) -> ExternalResult:  # fmt: skip
    """Compare all groups, in every task and in the mean over tasks. UsageError where no two groups share a pair.

    `rule` has no looks: there is one, at the end. It is exploratory whatever comes out. `paired`: whether runs with one
    seed form a pair; None: as the seeds show. `rows`: "runs" says that every row is a training run, however many.
    `rng_seed`: of the bootstraps; None: from the endpoints.
    """
    groups, order = endpoints.groups, endpoints.replicates
    if len(groups) < 2:
        raise UsageError(f"{endpoints.source}: column group has one group, {groups[0]}; a comparison needs two")
    if len(groups) > _MOST_GROUPS and not rule.control:
        raise UsageError(
            f"{endpoints.source}: {len(groups)} groups are too many to compare each with each; compare with one of "
            "them: ", Setting("control", "GROUP"),
        )  # fmt: skip
    rule, cells = Rule(control=rule.control, alpha=rule.alpha, looks=(len(order),)), cells_of(endpoints)
    design = make_external_design(groups, len(order), scales, rule)
    unpaired = paired is False  # as the user says
    if paired is None:
        paired = endpoints.pair_column != "" and _forms_pairs(endpoints, cells, design.comparisons)
    most = _most_rows(endpoints, rows, unpaired=unpaired)
    if not paired and any(row.cluster for row in endpoints.rows):
        raise UsageError(
            f"{endpoints.source}: runs that form no pairs cannot share a cluster yet: take the mean of each cluster as "
            "one run, without a column cluster"
        )
    if not paired:
        rule = msgspec.structs.replace(rule, looks=(most,))
        design = msgspec.structs.replace(make_external_design(groups, most, scales, rule), test="welch")
    elif not endpoints.pair_column:
        raise UsageError(
            f"{endpoints.source}: ", Setting("paired"), " needs a column seed, pair or replicate; run pairs "
            "nothing",
        )  # fmt: skip
    form = pair_up if paired else sampled
    own = {contrast: own_design(design, scales, contrast) for contrast in design.comparisons}
    formed = {contrast: form(cells, contrast, scales, order) for contrast in design.comparisons}
    if not any(one.pairs for one in formed.values()):
        both = f"no {endpoints.pair_column} has an endpoint in two groups" if paired else "no two groups have endpoints"
        raise UsageError(f"{endpoints.source}: {both}, so nothing can be compared")
    courses = follow(design, {contrast: one.pairs for contrast, one in formed.items()}, design.looks[-1], own)
    found = []
    for contrast in design.comparisons:
        one = formed[contrast]
        question = Question(
            a=contrast.a, b=contrast.b, design=own[contrast],
            planned=len(one.pairs) + (len(one.lost.replicates) if form is pair_up else 0),
            scope=scope_of(endpoints, contrast.task, scales), recorded=False, declared=False,
            unit="independent unit" if one.clusters else "training run",
            rng_seed=endpoints.rng_seed if rng_seed is None else rng_seed,
        )  # fmt: skip
        found.append(ExternalComparison(
            task=contrast.task,
            comparison=compare(
                question, one.pairs, courses[contrast], same_records=False, lost=one.lost,
                findings=drift_of(endpoints, own[contrast], contrast, one.pairs, order),
            ),
        ))  # fmt: skip
    return ExternalResult(
        endpoints=endpoints, scales=tuple(scales), design=design, plan="", comparisons=tuple(found), departures=(),
        notes=tuple(notes_on(endpoints, formed, cells)), next_step="",
    )  # fmt: skip


def _most_rows(endpoints: Endpoints, rows: str | None, *, unpaired: bool) -> int:
    """Count the rows of that group and task that has the most; UsageError where they may be items of fewer runs.

    Whoever says that a small group and a large one are `unpaired` speaks of runs: of items both would have many.
    """
    counts = Counter((row.group, row.task) for row in endpoints.rows).most_common()
    (group, task), most = counts[0]
    if counts[-1 if unpaired else 0][1] > _MOST_TAKEN_FOR_RUNS and not endpoints.rows[0].run and rows != "runs":
        raise UsageError(
            f"{endpoints.source}: group {group} has {most} rows{f' in {task}' if task else ''} and no column run says "
            "which training run each is of: if each is one, say ", Setting("rows", "runs"), f"; {ITEMS}",
        )  # fmt: skip
    return most


def _forms_pairs(endpoints: Endpoints, cells: Cells, contrasts: Sequence[Contrast]) -> bool:
    """Whether the runs form pairs by their seeds: at most one row in ten has no partner, in every comparison.

    UsageError where some do and more have none.
    """
    names = {
        one: [{name for of, task, name in cells if (of, task) == (group, one.task)} for group in (one.a, one.b)]
        for one in contrasts
    }
    lonely = next((one for one, (a, b) in names.items() if len(a ^ b) * _ONE_IN > len(a) + len(b)), None)
    if lonely is not None and any(a & b for a, b in names.values()):
        a, b = names[lonely]
        raise UsageError(
            f"{endpoints.source}: of {len(a) + len(b)} rows of {lonely.a} and {lonely.b} {len(a ^ b)} have no partner "
            f"with their {endpoints.pair_column}: ", Setting("paired"), " leaves them out, ", Setting("unpaired"),
            " compares all runs, and no two as a pair",
        )  # fmt: skip
    return lonely is None


def scope_of(endpoints: Endpoints, task: str, scales: Sequence[Scale]) -> str:
    """Describe what the answer is conditional on."""
    named = f", task {task}" if task else ""
    if task == MEAN:
        named = f", the tasks {', '.join(scale.task for scale in scales)} and no others"
    return f"the runs in {endpoints.source}{named}"


def drift_of(
    endpoints: Endpoints, design: Design, contrast: Contrast, pairs: Sequence[Pair] | Samples,
    replicates: Sequence[str], *, in_turn: bool = False,
) -> tuple[Finding, ...]:  # fmt: skip
    """Return what caps a comparison whose differences drift, where it is known in which order its pairs were made.

    A column order says so, and so do seeds that are numbers; `in_turn`: the order of `replicates` does.
    """
    if isinstance(pairs, Samples):
        return ()
    told: dict[str, list[int]] = {}
    for row in endpoints.rows:
        if row.order is not None and row.group in (contrast.a, contrast.b) and contrast.task in (row.task, MEAN):
            told.setdefault(row.replicate, []).append(row.order)
    when = {name: fsum(orders) / len(orders) for name, orders in told.items()}
    if any(replicates[pair.replicate] not in when for pair in pairs):
        if not in_turn and not endpoints.numbered:
            return ()
        return tuple(drifting(design, contrast, pairs, _AGAIN))
    ordered = sorted(pairs, key=lambda pair: when[replicates[pair.replicate]])
    made = [msgspec.structs.replace(pair, replicate=place) for place, pair in enumerate(ordered)]
    return tuple(drifting(design, contrast, made, _AGAIN))


def notes_on(endpoints: Endpoints, paired: dict[Contrast, Pairing], cells: Cells) -> Iterator[str]:
    """Yield what must be known of the pairs: runs without a partner, pairs that are not independent."""
    for contrast, one in paired.items():
        where = f" ({contrast.task})" if contrast.task else ""
        if one.single:
            what = f"{endpoints.pair_column} {listed_short(one.single)}"
            yield (
                f"{contrast.a} and {contrast.b}{where}: {what} without a run of the other group, not used; if such "
                "runs failed, give them a row with an empty endpoint."
            )
        if one.clusters:
            runs = len(one.pairs) + sum(len(unit) - 1 for unit in one.clusters)
            yield (
                f"{contrast.a} and {contrast.b}{where}: pairs that share a cluster are not independent; "
                f"{n_pairs(runs)} make {len(one.pairs)} independent ones, the means of their clusters, each of equal "
                "weight."
            )


def listed_short(names: Sequence[str]) -> str:
    """Join names, and of many the first ones with the number of the others."""
    more = len(names) - _SHOWN
    return f"{', '.join(names[:_SHOWN])}, and {more} more" if more > 0 else ", ".join(names)
