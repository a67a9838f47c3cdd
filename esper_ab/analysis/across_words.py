"""Sentences and caveats about groups of several experiment directories. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esper_ab.analysis.across import LEVEL, Across, Disagreement, Exploratory, SourceGroup
from esper_ab.analysis.comparable import Source
from esper_ab.design.design import Design
from esper_ab.stats.descriptive.improvement import in_words
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.text import counted, p_text, percent, signed


def sentence(one: Exploratory, design: Design) -> str:
    """Describe one exploratory comparison, in the unit of `design`; never a verdict."""
    count = len(one.pairs)
    head = f"{one.a} - {one.b}"
    if not one.pairs or one.plain is None:
        return f"{head}: no replicate has an endpoint in both; nothing follows."
    if count == 1:
        return f"{head} = {design.difference(one.plain.mean)} in 1 common replicate; nothing follows from one."
    if all(pair.a == pair.b for pair in one.pairs):
        return f"{head}: every difference is exactly zero over {count} common replicates."
    said = [f"{head} = {design.difference(one.plain.mean)} over {count} common replicates"]
    if one.plain.low is not None and one.plain.high is not None and one.plain.p is not None:
        within = f"{signed(one.plain.low, design.digits)} to {signed(one.plain.high, design.digits)}"
        said.append(f"uncorrected {percent(LEVEL)} interval {within}, paired t p {p_text(one.plain.p)}")
    if one.sign_flip is not None and one.sign_flip.p is not None:
        said.append(f"exact sign flip p {p_text(one.sign_flip.p)}")
    if one.improvement is not None:
        said.append(in_words(one.a, one.b, one.improvement))
    return f"{'; '.join(said)}. Exploratory: no verdict."


def disagreement(one: Disagreement, design: Design) -> str:
    """Describe two groups with equal settings and different records, which is a finding rather than exploratory."""
    where = (_called(member) for member in (one.a, one.b))
    gap = "" if one.largest is None else f"; their endpoints differ by up to {design.size(one.largest)}"
    return (
        f"{' and '.join(where)} have equal settings and equal randomness, so their records must be equal, and they are "
        f"not: in {len(one.replicates)} of {one.common} common replicates, first in {one.first}{gap}. Other devices or "
        "other processors can do that; the two are kept apart below."
    )


def _called(member: SourceGroup) -> str:
    return f"{member.group} ({member.source})"


def caveats(sources: Sequence[Source], found: Across) -> tuple[str, ...]:
    """Return the caveats of all exploratory comparisons, the most important first; empty without comparisons."""
    return tuple(_caveats(sources, found)) if found.exploratory else ()


def _caveats(sources: Sequence[Source], found: Across) -> Iterator[str]:
    count = len(found.exploratory)
    shown = "1 comparison is" if count == 1 else f"{count} comparisons are"
    yield (
        f"Not declared before the runs: {shown} shown because the records happened to be there. Nothing is corrected "
        "for choosing among them, and no verdict follows."
    )
    yield (
        "Pairs share their randomness (equal rng seed and replicate) and nothing else: they were not trained at the "
        "same time or in one block, so that lane, start order and load are not balanced, and are not adjusted for."
    )
    if found.disagreements:
        yield (
            "Groups with equal settings gave different records (above): what made them differ is part of every "
            "difference here."
        )
    yield _machines(sources)
    for source in sources:
        yield from _of(source)
    few = [one for one in found.exploratory if 1 < len(one.pairs) < LEAST_PAIRS]
    if few:
        which = "" if len(few) == count else f" ({', '.join(f'{one.a} - {one.b}' for one in few)})"
        yield f"Fewer than {LEAST_PAIRS} pairs{which}: no exact test could reach p <= 0.05."
    yield (
        "To decide: one experiment that declares both groups, under another --rng-seed; the same one would only repeat "
        "these runs."
    )


def _machines(sources: Sequence[Source]) -> str:
    keys = dict.fromkeys(key for source in sources for key in source.history.started.machine)
    differing = []
    for key in keys:
        values = {source.name: source.history.started.machine.get(key, "unknown") for source in sources}
        if len(set(values.values())) > 1:
            differing.append(f"{key} " + ", ".join(f"{value} in {name}" for name, value in values.items()))
    devices = {source.name: _devices(source) for source in sources}
    if len(set(devices.values())) > 1:
        differing.append("devices " + ", ".join(f"{value} in {name}" for name, value in devices.items()))
    if not differing:
        return "As far as recorded they ran on equal machines; what else ran there at the time is not recorded."
    return f"Machines differ: {'; '.join(differing)}."


def _devices(source: Source) -> str:
    """Return the kinds of devices of a source, without their number."""
    lanes = source.history.plan.lanes
    kinds = {title or device.partition(":")[0] for lane in lanes
             for device, title in zip(lane.devices, lane.titles or ("",) * len(lane.devices), strict=True)}
    return "+".join(sorted(kinds))


def _of(source: Source) -> Iterator[str]:
    """Return the caveats of one experiment directory."""
    history = source.history
    design = history.design
    runs = history.runs.values()
    open_runs = sum(run.expected for run in runs)
    if open_runs:
        yield f"{source.name} has {open_runs} of {len(runs)} runs without an endpoint yet."
    lost = sum(run.lost for run in runs)
    if lost:
        yield f"{source.name} gave up {counted(lost, 'run')} after failures; what it lacks is not missing at random."
    if design.anytime_after is not None or (len(design.looks) > 1 and design.early_stop):
        yield (
            f"{source.name} was looked at on the way and may have stopped, or gone on, because of what was seen: the "
            "number of its replicates can depend on the results."
        )
    for entry in dict.fromkeys(entry.category for entry in history.ledger if entry.category == "inexact_resume"):
        yield f"{source.name} has an entry of {entry} in its ledger: work done again gave another record."
