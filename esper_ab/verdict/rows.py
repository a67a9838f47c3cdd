"""Findings on rows of unknown origin: what stands beside every claim that rests on them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from esper_ab.contracts.wording import counted
from esper_ab.design.design import Contrast
from esper_ab.stats.floats import Floats, Ints
from esper_ab.stats.pair import Samples, outcomes
from esper_ab.verdict.copies import NAMED, copies, equal_groups, near_copies
from esper_ab.verdict.departures import listed_short
from esper_ab.verdict.finding import ROWS, Finding
from esper_ab.verdict.observations import Observations, item_word
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.scale import MEAN

_DIGITS = "0123456789"  # str.isdigit is also true of characters that int() cannot read, such as the superscript 2
_PLAIN = re.compile("[0-9]+")
_LEAST_SORTED = 8  # distinct outcomes of each group; chance sorts both in one file in a billion


def row_findings(
    observations: Observations, pairing: Pairing, contrast: Contrast, replicates: Sequence[str]
) -> Iterator[Finding]:
    """Yield a finding for each thing about the rows of a comparison that a reader of its verdict must know."""
    sentences = [*_partner_sentences(observations, pairing)]
    if observations.items is not None and observations.items.level == "checkpoints":
        return
    sentences += [f"{text}: copies are no further runs." for text, _ in copied(contrast, pairing, NAMED)]
    order = sorted_by_replicate(contrast, pairing, replicates)
    if order:
        sentences.append(f"{order}.")
    sentences += _name_sentences(observations)
    for sentence in sentences:
        yield Finding(kind=ROWS, weight="notes", groups=contrast.groups, sentence=sentence)


def _partner_sentences(observations: Observations, pairing: Pairing) -> Iterator[str]:
    pair_column = observations.pair_column
    column_title = pair_column.capitalize()
    if pairing.absent:
        count = "has no row, so it counts" if len(pairing.absent) == 1 else "have no row, so they count"
        yield (
            f"{column_title} {listed_short(pairing.absent)} {count} as lost; --paired leaves out every "
            f"{pair_column} that was run in one group only."
        )
    if pairing.single:
        partner_words = "no run of the other group and"
        verb_words = f"has {partner_words} is" if len(pairing.single) == 1 else f"have {partner_words} are"
        yield (
            f"{column_title} {listed_short(pairing.single)} {verb_words} not used; if such a "
            "run failed, give it a row with an empty outcome."
        )


def _name_sentences(observations: Observations) -> Iterator[str]:
    """Say that runs are named like items, unless the user confirmed that they are runs."""
    if observations.numbered or observations.rows_are_runs:
        return
    words = {item_word(name) for name in observations.replicates}
    if len(words) == 1 and "" not in words:
        (word,) = words
        yield (
            f"The rows are named {observations.replicates[0]} and so on: {word}s of one checkpoint are not training "
            "runs, and a verdict on them is about that checkpoint only."
        )


def copied(contrast: Contrast, pairing: Pairing, chance: float) -> Iterator[tuple[str, bool]]:
    """Yield a text for each set of copies, and whether they are half of the outcomes of a group or more.

    Equal outcomes are no copies if chance gives as many of them in at least this share of files.
    """
    if contrast.task == MEAN:
        return
    a, b = outcomes(pairing.pairs)
    task_words = f" in {contrast.task}" if contrast.task else ""
    sides = {contrast.a: a, contrast.b: b}
    for group, repeated_counts in copies(sides, chance).items():
        runs = len(sides[group])
        value, rows = repeated_counts.most_common(1)[0]
        total = sum(repeated_counts.values())
        text = f"{total} of {runs} outcomes of {group}{task_words} equal another one, such as {value:g} in {rows} rows"
        yield text, 2 * total >= runs
    if isinstance(pairing.pairs, Samples):
        equal_words = equal_groups(np.sort(a), np.sort(b))
        row_words = "run"
    else:
        equal_words = equal_groups(a, b)
        row_words = "pair"
    if equal_words:
        yield (
            f"{contrast.a} equals {contrast.b}{task_words} to the last digit in every {row_words}, such as {a[0]:g}",
            True,
        )
    if near_copies(a, b):
        text = (
            f"the {counted(len(a), 'outcome')} of {contrast.a} and the {len(b)} of {contrast.b}{task_words} vary by "
            "less "
            "than a ten-thousandth of their difference, as one run under several seeds does"
        )
        yield text, True


def sorted_by_replicate(contrast: Contrast, pairing: Pairing, replicates: Sequence[str]) -> str:
    """Describe outcomes of both groups that rise or fall with the seed in all pairs; "" if they do not.

    Equal neighbours are no evidence: each group needs eight distinct outcomes.
    """
    if isinstance(pairing.pairs, Samples) or contrast.task == MEAN:
        return ""
    pairs = pairing.pairs.taken(_natural_order([replicates[place] for place in pairing.pairs.replicate.tolist()]))
    directions = [_direction(values) for values in outcomes(pairs)]
    if not all(directions):
        return ""
    task_words = f" in {contrast.task}" if contrast.task else ""
    return (
        f"{contrast.a} {directions[0]} and {contrast.b} {directions[1]}{task_words} from seed to seed in all "
        f"{len(pairs)} "
        "pairs, as in columns that were sorted, whose pairs mean nothing"
    )


def _direction(values: Floats) -> str:
    steps = np.diff(values)
    if np.count_nonzero(steps) + 1 < _LEAST_SORTED:  # of values in order, as many distinct ones
        return ""
    if np.all(steps >= 0.0):
        return "rises"
    if np.all(steps <= 0.0):
        return "falls"
    return ""


def _natural_order(names: Sequence[str]) -> Ints:
    """Return the places of `names` in an order that has s2 before s10."""
    places = range(len(names))
    if _PLAIN.fullmatch("".join(names)):  # the same order, found faster
        numbers = [int(name) for name in names]
        return np.array(sorted(places, key=numbers.__getitem__), dtype=np.int64)
    return np.array(sorted(places, key=lambda place: _natural(names[place])), dtype=np.int64)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key that puts s2 before s10."""
    return [_part(part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]


def _part(part: str) -> tuple[bool, int, str]:
    is_number = part[0] in _DIGITS
    return is_number, int(part) if is_number else 0, part
