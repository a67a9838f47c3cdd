"""Audit of the endpoints: whether each is a number, and whether differences drift over replicates. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis.pairs import Pairs
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import endpoint_of
from esper_ab.stats.drift import drift
from esper_ab.stats.text import p_text
from esper_ab.verdict.finding import Finding

_UNUSUAL = 0.01  # p of a drift that is noted, over all comparisons


def findings(history: History, pairs: Pairs) -> Iterator[Finding]:
    """Block what has an endpoint that is no number, and note differences that depend on the replicate."""
    yield from _no_number(history)
    yield from _drift(history, pairs)


def _no_number(history: History) -> Iterator[Finding]:
    for group in history.groups:
        runs = [
            run.ref.name for run in history.of_group(group)
            if run.evaluation is not None and not run.lost and endpoint_of(run, history.design.endpoint) is None
        ]  # fmt: skip
        if runs:
            sentence = f"The endpoint of {', '.join(runs)} is no finite number: the record is damaged or foreign."
            yield Finding(kind="endpoint", weight="blocks", groups=(group,), sentence=sentence)


def _drift(history: History, pairs: Pairs) -> Iterator[Finding]:
    design = history.design
    positions = design.positions if design.adjusted else 1
    for contrast, found in pairs.items():
        seen, said = drift(found, positions), []
        if seen is None:
            continue
        if seen.slope_p <= _UNUSUAL / len(pairs):
            said.append(f"a trend of {design.difference(seen.slope)} per replicate (p {p_text(seen.slope_p)})")
        if seen.autocorrelation_p <= _UNUSUAL / len(pairs):
            p = p_text(seen.autocorrelation_p)
            said.append(f"an autocorrelation of {seen.autocorrelation:.2f} from one to the next (p {p})")
        if said:
            sentence = (
                f"The differences of {contrast.a} and {contrast.b} depend on the replicate: {' and '.join(said)}. "
                "Intervals take replicates as independent; what follows a group over time looks like an effect."
            )
            yield Finding(kind="drift", weight="notes", groups=(contrast.a, contrast.b), sentence=sentence)
