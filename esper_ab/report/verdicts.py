"""Contents of the VERDICT section for terminal, page and Markdown; many comparisons are grouped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from esper_ab.report.content import Content
from esper_ab.report.tables.comparison import caveats_beside
from esper_ab.settings.differences import capital, named
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.headline import alike, headline_of
from esper_ab.verdict.word import Verdict

_A, _B = "\0a", "\0b"  # placeholders for the names, which hold no such character
_BOTH = f"{_A} and {_B}"
_APART = 3  # up to so many comparisons are printed in full; the numbers of more are left to their table


@dataclass(frozen=True, kw_only=True)
class Said:
    """Verdict text of one comparison, or of several that share it."""

    verdict: Verdict
    headline: str
    details: str = ""  # follows the verdict's word; "" where the numbers are left to a table
    caveats: tuple[str, ...] = ()


def verdicts(content: Content) -> tuple[Said, ...]:
    """Return the verdict texts in the order of the design; many comparisons are grouped by verdict."""
    comparisons = content.comparisons
    if len(comparisons) <= _APART:
        shared = shared_caveats(content)
        return tuple(
            Said(
                verdict=item.verdict, headline=item.headline, details=item.sentence.removeprefix(item.verdict),
                caveats=tuple(text for text in _caveats(item) if text not in shared),
            )
            for item in comparisons
        )  # fmt: skip
    folded: dict[tuple[str, ...], list[Comparison]] = {}
    for item in comparisons:
        folded.setdefault(alike(item) or (str(item.verdict), item.question.a, item.question.b), []).append(item)
    order = list(dict.fromkeys(item.verdict for item in comparisons))
    return tuple(map(_folded, sorted(folded.values(), key=lambda items: order.index(items[0].verdict))))


def shared_caveats(content: Content) -> tuple[str, ...]:
    """Return each caveat shared by several comparisons once; of many comparisons also those of some, with names."""
    comparisons = content.comparisons
    if len(comparisons) < 2:
        return ()
    if len(comparisons) <= _APART:
        first, *others = map(_caveats, comparisons)
        return tuple(text for text in first if all(text in other for other in others))
    conditions = dict.fromkeys(f"Conditional on {item.question.scope}." for item in comparisons)
    alike: dict[str, list[tuple[str, str]]] = {}
    for item in comparisons:
        nameless = replace(item, question=msgspec.structs.replace(item.question, a=_A, b=_B))
        for text in _caveats(nameless):
            alike.setdefault(text, []).append((item.question.a, item.question.b))
    found = (_said_of(text, pairs, len(comparisons)) for text, pairs in alike.items())
    return (*conditions, *(text for texts in found for text in texts))


def _said_of(text: str, pairs: list[tuple[str, str]], comparisons: int) -> list[str]:
    """Return the texts of a caveat with placeholders, for the pairs that it applies to."""
    if _A not in text and _B not in text:
        return [text if len(pairs) == comparisons else f"{capital(named(pairs))}: {text}"]
    rest = text.replace(_BOTH, "")
    if _A in rest or _B in rest:  # the caveat names one of the two
        return [text.replace(_A, a).replace(_B, b) for a, b in pairs]
    return [capital(text.replace(_BOTH, named(pairs)))]


def _caveats(item: Comparison) -> tuple[str, ...]:
    """Return the caveats of the verdict; those of statistics that decide nothing stand beside these."""
    elsewhere = caveats_beside(item)
    return tuple(text for text in item.caveats if text not in elsewhere)


def _folded(items: Sequence[Comparison]) -> Said:
    first = items[0]
    pairs = [(item.question.a, item.question.b) for item in items]
    return Said(verdict=first.verdict, headline=first.headline if len(items) == 1 else headline_of(pairs, first))
