"""State of every comparison of an experiment by its own rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.analysis.pairs import Pairs, complete_replicates
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Pair, alike
from esper_ab.verdict.looks import Course, follow


def courses(history: History, pairs: Pairs) -> dict[Contrast, Course]:
    """Follow the comparisons in the order of the design, from the records alone, so report and coordinator agree."""
    return follow(history.design, pairs, complete_replicates(history))


def settled(pairs: Sequence[Pair], course: Course) -> bool:
    """Return whether a comparison is decided, or never will be because the difference is constant."""
    count = len(pairs)
    constant = count >= LEAST_PAIRS and alike([pair.a for pair in pairs], [pair.b for pair in pairs]) == count
    return course.decision != "open" or constant
