"""The spread of runs by the part of a run that the outcome summarises, and the seeds that a margin then needs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.wording import significant
from esper_ab.design.claim_words import claim_words
from esper_ab.design.power import PowerTable, replicates_needed, sd_of_differences
from esper_ab.design.scheme import PowerQuestion, generator_of
from esper_ab.design.table_text import aligned
from esper_ab.stats.text import digits_for, with_unit

_ESTIMATES = {
    "evaluation": "the result after training",
    "last-tenth": "training just before its end",
    "last-third": "the last third of training",
    "curve-mean": "training with its beginning",
}
_CAUTION = (
    "A window averages training while it changes: a difference there may be larger or smaller.",
    "Declare the part before the runs (--outcome-over), by the question and not by the seeds alone.",
)


class WindowSpread(msgspec.Struct, frozen=True, kw_only=True):
    """Mean and standard deviation of the runs' outcomes over one part of a run."""

    outcome_over: OutcomeOver
    mean: float
    sd: float  # of runs within a group, n - 1 in the denominator
    sd_pairs: float | None = None  # of the differences of observed pairs; None: there are none


class WindowNeeds(WindowSpread, frozen=True, kw_only=True):
    """The same, with the seeds for 80 % power at the margin by table of power; None means more than 10,000."""

    seeds: tuple[int | None, ...]


def needs_of(windows: Sequence[WindowSpread], tables: Sequence[PowerTable]) -> tuple[WindowNeeds, ...]:
    """Return the seeds that each window needs at the margin and the pair correlations of the power tables.

    If a window has observed pairs, the first table is theirs, and their SD counts. Windows without spread are left out,
    because nothing can be planned with them.
    """
    needs = []
    for window in windows:
        if window.sd > 0.0:
            sds = [sd_of_differences(window.sd, table.rho) for table in tables]
            if window.sd_pairs:
                sds[0] = window.sd_pairs
            seeds = tuple(_seeds(sd, table.question) for sd, table in zip(sds, tables, strict=True))
            needs.append(WindowNeeds(**msgspec.structs.asdict(window), seeds=seeds))
    return tuple(needs)


def _seeds(sd: float, question: PowerQuestion) -> int | None:
    return replicates_needed(sd, None, question, generator_of(question)).replicates


def window_lines(needs: Sequence[WindowNeeds], tables: Sequence[PowerTable], unit: str) -> list[str]:
    """Return a table of the windows and a sentence of caution; [] if there are fewer than two to choose from."""
    if len(needs) < 2:
        return []
    question = tables[0].question
    digits = digits_for(question.margin)
    of_pairs = any(window.sd_pairs for window in needs)
    columns = [f"rho {table.rho:.2g}" for table in tables]
    if of_pairs:
        columns[0] = "these pairs"
        columns.insert(0, "of pairs")
    rows = [["outcome-over", "mean", "SD of runs", *columns]]
    for window in needs:
        cells = ["> 10,000" if count is None else str(count) for count in window.seeds]
        if of_pairs:
            cells.insert(0, significant(window.sd_pairs, 3) if window.sd_pairs else "-")
        rows.append([window.outcome_over, f"{window.mean:.{digits}f}", significant(window.sd, 3), *cells])
    meanings = ["estimates", *(_ESTIMATES[window.outcome_over] for window in needs)]
    lines = [f"{line}  {meaning}" for line, meaning in zip(aligned(rows), meanings, strict=True)]
    margin = with_unit(f"{question.margin:g}", unit)
    size = claim_words(question.claim, margin).size
    return [f"Seeds needed for a {size} of {margin}, by the part of a run that counts:", *lines, *_CAUTION]
