"""Audit of the endpoints: whether each is a number, and whether differences drift over replicates. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis.pairs import Pairs
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import endpoint_of
from esper_ab.verdict.drifting import drifting
from esper_ab.verdict.finding import Finding

_REPEAT = "Find what changed meanwhile, as a cache, a leak or another job does, and run it again."


def findings(history: History, pairs: Pairs) -> Iterator[Finding]:
    """Block what has an endpoint that is no number, and cap comparisons whose differences drift over replicates."""
    yield from _no_number(history)
    for contrast, found in pairs.items():
        yield from drifting(history.design, contrast, found, _REPEAT)


def _no_number(history: History) -> Iterator[Finding]:
    for group in history.groups:
        runs = [
            run.ref.name for run in history.of_group(group)
            if run.evaluation is not None and not run.lost and endpoint_of(run, history.design.endpoint) is None
        ]  # fmt: skip
        if runs:
            sentence = f"The endpoint of {', '.join(runs)} is no finite number: the record is damaged or foreign."
            yield Finding(kind="endpoint", weight="blocks", groups=(group,), sentence=sentence)
