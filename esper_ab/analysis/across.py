"""Groups of several experiment directories side by side: detects equal treatments and compares the others. Pure.

An address of randomness names rng seed and replicate, never a group or an experiment. So equal settings must give equal
records wherever they ran, and different ones may be paired by replicate. Such a comparison was not declared before the
runs, and nothing balanced what else differed between them: its numbers are exploratory and give no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from esper_ab.analysis.analyse import analyse
from esper_ab.analysis.comparable import Source
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import endpoint_of
from esper_ab.settings.differences import axes
from esper_ab.settings.experiment import Group
from esper_ab.stats.descriptive.correlation import PairCorrelation, pair_correlation
from esper_ab.stats.descriptive.improvement import ProbabilityOfImprovement, probability_of_improvement
from esper_ab.stats.descriptive.sign_flip import SignFlip, sign_flip
from esper_ab.stats.paired_difference import PairedDifference, paired_difference
from esper_ab.stats.signed_rank import SignedRank, signed_rank

LEVEL = 0.95  # of intervals, not corrected for multiple comparisons


class SourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One group of one experiment directory."""

    source: str
    group: str


class Treatment(msgspec.Struct, frozen=True, kw_only=True):
    """Groups with equal settings whose records agree wherever there are two."""

    name: str
    members: tuple[SourceGroup, ...]
    endpoints: dict[int, float]  # by replicate
    confirmed: tuple[int, ...]  # replicates recorded by several members, all with equal records


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two groups with equal settings and equal randomness that gave different records."""

    a: SourceGroup
    b: SourceGroup
    replicates: tuple[int, ...]  # those that differ
    common: int  # number of replicates that both recorded
    first: str  # "replicate 2, episode 0" or "replicate 2, evaluation"
    largest: float | None  # difference of endpoints; None while no such replicate has both endpoints


class DeclaredComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison that an experiment directory declared before its first run."""

    source: str
    a: str
    b: str
    verdict: str
    sentence: str


class CommonReplicate(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints of two treatments."""

    replicate: int
    a: float
    b: float


class Exploratory(msgspec.Struct, frozen=True, kw_only=True):
    """a - b over the replicates that both have. A statistic is None where the data do not allow it."""

    a: str
    b: str
    settings: tuple[str, ...]  # keys of the settings in use that differ
    pairs: tuple[CommonReplicate, ...]
    plain: PairedDifference | None  # Student's paired t, not adjusted for positions
    sign_flip: SignFlip | None
    rank: SignedRank | None
    improvement: ProbabilityOfImprovement | None
    correlation: PairCorrelation | None  # effect of the common randomness


class Across(msgspec.Struct, frozen=True, kw_only=True):
    """Result of analysing several comparable experiment directories together."""

    treatments: tuple[Treatment, ...]
    disagreements: tuple[Disagreement, ...]
    declared: tuple[DeclaredComparison, ...]
    exploratory: tuple[Exploratory, ...]


def across(sources: Sequence[Source]) -> Across:
    """Analyse several experiment directories together; `incomparable` must have found no objection to them."""
    drafts: list[_Draft] = []
    disagreements: list[Disagreement] = []
    for source in sources:
        for group in source.history.plan.experiment.groups:
            disagreements += _place(drafts, source, group)
    treatments = _named(drafts)
    declared = tuple(_declared(sources))
    decided = {frozenset(SourceGroup(source=one.source, group=name) for name in (one.a, one.b)) for one in declared}
    exploratory = tuple(
        _explore((x, drafts[i].group), (y, drafts[j].group), sources[0].history.outcome.sign)
        for (i, x), (j, y) in combinations(enumerate(treatments), 2)
        if drafts[i].group.settings != drafts[j].group.settings  # equal settings are a disagreement instead
        and not any(frozenset((m, n)) in decided for m in x.members for n in y.members)
    )
    return Across(
        treatments=treatments, disagreements=tuple(disagreements), declared=declared, exploratory=exploratory
    )


class _Draft:
    """A treatment that may still gain members."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.members: list[tuple[SourceGroup, History]] = []

    def runs(self, index: int) -> dict[int, RunHistory]:
        """Return the runs of one member, by replicate."""
        member, history = self.members[index]
        return {run.ref.replicate: run for run in history.of_group(member.group)}


def _place(drafts: list[_Draft], source: Source, group: Group) -> Iterator[Disagreement]:
    """Add a group to its treatment or begin a new one; yield a disagreement if equal settings have other records."""
    member = SourceGroup(source=source.name, group=group.name)
    alike = [draft for draft in drafts if draft.group.settings == group.settings]
    fitting = None
    for draft in alike:
        found = list(_disagreements(draft, member, source.history))
        if not found:
            fitting = fitting or draft
        yield from found[:1]
    if fitting is None:
        fitting = _Draft(group)
        drafts.append(fitting)
    fitting.members.append((member, source.history))


def _disagreements(draft: _Draft, member: SourceGroup, history: History) -> Iterator[Disagreement]:
    runs = {run.ref.replicate: run for run in history.of_group(member.group)}
    for index, (other, other_history) in enumerate(draft.members):
        there = draft.runs(index)
        both = [replicate for replicate in sorted(runs) if _common(there.get(replicate), runs[replicate])]
        places = {replicate: place for replicate in both if (place := _parting(there[replicate], runs[replicate]))}
        if not places:
            continue
        gaps = (
            _gap(endpoint_of(there[r], other_history.design.endpoint), endpoint_of(runs[r], history.design.endpoint))
            for r in places
        )
        replicate, place = next(iter(places.items()))
        yield Disagreement(
            a=other, b=member, replicates=tuple(places), common=len(both), first=f"replicate {replicate}, {place}",
            largest=max((gap for gap in gaps if gap is not None), default=None),
        )  # fmt: skip


def _digests(run: RunHistory) -> dict[str, str]:
    """Return the digests of all records of a run, in order."""
    columns = run.columns
    found = {f"episode {index}": digest for index, digest in zip(columns.episodes, columns.digests, strict=True)}
    return found | ({"evaluation": run.evaluation.digest} if run.evaluation else {})


def _common(a: RunHistory | None, b: RunHistory) -> bool:
    return a is not None and bool(_digests(a).keys() & _digests(b).keys())


def _parting(a: RunHistory, b: RunHistory) -> str | None:
    """Return the first record that both runs have and that differs, or None."""
    first, second = _digests(a), _digests(b)
    return next((place for place in first if place in second and first[place] != second[place]), None)


def _gap(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else abs(a - b)


def _named(drafts: Sequence[_Draft]) -> tuple[Treatment, ...]:
    """Name each treatment after its first member, with its experiment directory where the name is ambiguous."""
    firsts = [draft.members[0][0] for draft in drafts]
    names = [first.group for first in firsts]
    return tuple(
        Treatment(
            name=first.group if names.count(first.group) == 1 else f"{first.group} ({first.source})",
            members=tuple(member for member, _ in draft.members),
            endpoints=_endpoints(draft),
            confirmed=_confirmed(draft),
        )
        for draft, first in zip(drafts, firsts, strict=True)
    )


def _endpoints(draft: _Draft) -> dict[int, float]:
    """Return the endpoints by replicate from any member that has them, since all members' records are equal."""
    found: dict[int, float] = {}
    for index, (_, history) in enumerate(draft.members):
        for replicate, run in draft.runs(index).items():
            value = endpoint_of(run, history.design.endpoint)
            if value is not None:
                found.setdefault(replicate, value)
    return dict(sorted(found.items()))


def _confirmed(draft: _Draft) -> tuple[int, ...]:
    runs = [draft.runs(index) for index in range(len(draft.members))]
    return tuple(sorted({
        replicate for one, other in combinations(runs, 2) for replicate in one.keys() & other.keys()
        if _common(one[replicate], other[replicate])
    }))  # fmt: skip


def _declared(sources: Sequence[Source]) -> Iterator[DeclaredComparison]:
    for source in sources:
        for one in analyse(source.history).comparisons:
            yield DeclaredComparison(
                source=source.name, a=one.question.a, b=one.question.b, verdict=str(one.verdict),
                sentence=f"{one.headline} {one.sentence}",
            )


def _explore(one: tuple[Treatment, Group], other: tuple[Treatment, Group], sign: float) -> Exploratory:
    (x, group_x), (y, group_y) = one, other
    pairs = tuple(
        CommonReplicate(replicate=replicate, a=x.endpoints[replicate], b=y.endpoints[replicate])
        for replicate in sorted(x.endpoints.keys() & y.endpoints.keys())
    )
    a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    several = len(pairs) > 1 and a != b
    return Exploratory(
        a=x.name, b=y.name, settings=axes(group_x, group_y), pairs=pairs,
        plain=paired_difference(a, b, LEVEL) if pairs else None, sign_flip=sign_flip(a, b) if several else None,
        rank=signed_rank(a, b) if several else None,
        improvement=probability_of_improvement([sign * x for x in a], [sign * x for x in b]) if several else None,
        correlation=pair_correlation(a, b) if several else None,
    )  # fmt: skip
