"""Endpoints without a plan -> exploratory comparisons, analysed as by a plan with one look at all of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Contrast
from esper_ab.external.endpoints import MEAN, Endpoints
from esper_ab.external.pairing import Cells, Pairing, cells_of, pair_up
from esper_ab.external.plan import Rule, make_external_design, own_design
from esper_ab.external.result import ExternalComparison, ExternalResult
from esper_ab.external.scales import Scale
from esper_ab.stats.text import n_pairs
from esper_ab.verdict.comparison import compare
from esper_ab.verdict.looks import follow
from esper_ab.verdict.question import Question

_SHOWN = 8  # names in a list


def explore(endpoints: Endpoints, scales: Sequence[Scale], rule: Rule) -> ExternalResult:
    """Compare all groups, in every task and in the mean over tasks. UsageError where no two groups share a pair.

    `rule` has no looks: there is one, at the end. It is exploratory whatever comes out.
    """
    groups, order = endpoints.groups, endpoints.replicates
    if len(groups) < 2:
        raise UsageError(f"{endpoints.source}: column group has one group, {groups[0]}; a comparison needs two")
    rule = Rule(control=rule.control, alpha=rule.alpha, looks=(len(order),))
    design, cells = make_external_design(groups, len(order), scales, rule), cells_of(endpoints)
    own = {contrast: own_design(design, scales, contrast) for contrast in design.comparisons}
    paired = {contrast: pair_up(cells, contrast, scales, order) for contrast in design.comparisons}
    if not any(one.pairs for one in paired.values()):
        raise UsageError(
            f"{endpoints.source}: no {endpoints.pair_column} has an endpoint in two groups, so nothing forms a pair; "
            "runs that share nothing may be numbered 0, 1, 2, … in every group, in a column pair"
        )
    courses = follow(design, {contrast: one.pairs for contrast, one in paired.items()}, len(order), own)
    found = []
    for contrast in design.comparisons:
        one = paired[contrast]
        question = Question(
            a=contrast.a, b=contrast.b, design=own[contrast], planned=len(one.pairs) + len(one.lost.replicates),
            scope=scope_of(endpoints, contrast.task, scales), recorded=False, declared=False,
            rng_seed=endpoints.rng_seed,
        )  # fmt: skip
        found.append(ExternalComparison(
            task=contrast.task,
            comparison=compare(
                question, one.pairs, courses[contrast], same_records=False, lost=one.lost, findings=()
            ),
        ))  # fmt: skip
    return ExternalResult(
        endpoints=endpoints, scales=tuple(scales), design=design, plan="", comparisons=tuple(found), departures=(),
        notes=tuple(notes_on(endpoints, paired, cells)), next_step="",
    )  # fmt: skip


def scope_of(endpoints: Endpoints, task: str, scales: Sequence[Scale]) -> str:
    """Describe what the answer is conditional on."""
    named = f", task {task}" if task else ""
    if task == MEAN:
        named = f", the tasks {', '.join(scale.task for scale in scales)} and no others"
    return f"the runs in {endpoints.source}{named}"


def notes_on(endpoints: Endpoints, paired: dict[Contrast, Pairing], cells: Cells) -> Iterator[str]:
    """Yield what must be known of the pairs: runs without a partner, pairs that are not independent."""
    told: dict[str, None] = {}
    for contrast, one in paired.items():
        where = f" ({contrast.task})" if contrast.task else ""
        if one.single:
            what = f"{endpoints.pair_column} {listed_short(one.single)}"
            told[
                f"{contrast.a} and {contrast.b}{where}: {what} without a run of the other group, not used; if such "
                "runs failed, give them a row with an empty endpoint."
            ] = None
        if one.clustered:
            runs = len(one.pairs) + sum(len(unit) - 1 for unit in one.clusters)
            told[
                f"{contrast.a} and {contrast.b}{where}: pairs that share a cluster are not independent; "
                f"{n_pairs(runs)} make {len(one.pairs)} independent ones, the means of their clusters, each of equal "
                "weight."
            ] = None
    yield from told


def listed_short(names: Sequence[str]) -> str:
    """Join names, and of many the first ones with the number of the others."""
    more = len(names) - _SHOWN
    return f"{', '.join(names[:_SHOWN])}, and {more} more" if more > 0 else ", ".join(names)
