"""Sections of a report and their order, the VERDICT section, and words that are explained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from markupsafe import Markup, escape

from esper_ab.contracts.wording import capital, named
from esper_ab.report.content import Content
from esper_ab.report.kinds import kind_of
from esper_ab.report.tables import comparison, groups, reward_audit, trust
from esper_ab.report.tables.comparison import caveats_beside
from esper_ab.report.tables.table import Table
from esper_ab.verdict import sentences as wording
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.headline import alike, headline_of
from esper_ab.verdict.vocabulary import Verdict

# --- terms -----------------------------------------------------------------------------------------------------------
# Words of a report that a reader may not know, explained where they stand and again at the end of the page.


TERMS = {
    "device": "A GPU or a CPU core, or several, that one worker has for itself.",
    "look": "A number of seeds, planned beforehand, after which is tested; each look costs part of the error rate.",
    "repeated interval": "An interval that stays valid although the data were looked at several times.",
    "seed": "One repetition: every group is trained once, on the same random numbers.",
    "device and order": "The device of a run and its place in the start order of its seed.",
    "pair": "The two runs of one seed, one of each group.",
    "outcome": "The one number of a run that the verdict rests on, declared before the first run.",
    "margin": "The smallest difference that would matter, named before the first run.",
    "extension": "More seeds than were planned; the rule is stricter then.",
    "futility": "A comparison is stopped because a difference of the margin has become unlikely.",
    "held-out accuracy": "Accuracy on data that neither policies nor rewards can see.",
    "greedy": "The policy takes its most probable decision in place of a sampled one.",
    "sampled": "The policy draws its decisions from its probabilities, as in training.",
    "entropy": "How undecided a policy is: 0 where it always does the same.",
    "trust region": "How far one update may change the policy.",
    "incidents": "What could confound the comparison: deaths of workers, values that are not finite.",
    "digest": "A checksum of records without names and times: equal computations give equal digests.",
    "fossilised": "Of a seed: kept for good as a part of its network.",
    "seed module": "A module grafted into a network.",
    "A12": "The probability that a run of the first group is above one of the second.",
    "Hodges-Lehmann": "The median of all means of two differences: an estimate that single outliers hardly move.",
    "interquartile mean": "The mean of the middle half of the runs.",
    "TOST": "Two one-sided tests: both reject a difference as large as the margin.",
}
_WORD = re.compile(
    r"(?<![\w-])(" + "|".join(sorted(map(re.escape, TERMS), key=len, reverse=True)) + r")(s?)(?![\w-])", re.IGNORECASE
)
_KEY = {term.lower(): term for term in TERMS}


class Explained:
    """Marks the first occurrence of each term in a part of the page, and remembers which were met."""

    def __init__(self) -> None:
        self._here: set[str] = set()
        self.met: dict[str, str] = {}

    def begin(self) -> str:
        """Begin another part of the page; returns "" for templates."""
        self._here.clear()
        return ""

    def __call__(self, text: str) -> Markup:
        """Return `text` as escaped markup with its terms explained."""
        return Markup(_WORD.sub(self._mark, str(escape(text))))

    def _mark(self, found: re.Match[str]) -> str:
        term = _KEY[found.group(1).lower()]
        self.met[term] = TERMS[term]
        if term in self._here:
            return found.group()
        self._here.add(term)
        return str(Markup('<abbr title="{}">{}</abbr>').format(TERMS[term], Markup(found.group())))

    @property
    def footnotes(self) -> list[tuple[str, str]]:
        """The terms met so far, in alphabetical order."""
        return sorted(self.met.items(), key=lambda item: item[0].lower())


# --- verdicts --------------------------------------------------------------------------------------------------------
# Contents of the VERDICT section for terminal, page and Markdown; many comparisons are grouped.


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


# --- sections --------------------------------------------------------------------------------------------------------
# Sections of a report and their order, the same for terminal, page and Markdown.


@dataclass(frozen=True, kw_only=True)
class Section:
    """Tables under one heading; empty ones are left out."""

    key: str
    title: str
    tables: tuple[Table, ...]


def sections(content: Content) -> tuple[Section, ...]:
    """Return the sections of a report in reading order."""
    analysis, compared = content.analysis, content.comparisons
    judgement = kind_of(content).judgement(content)
    deciding = (table for item in compared if (table := comparison.deciding_table(item)).rows)
    return (
        _section(
            "outcome", "Outcome", *judgement[:1], comparison.overview_table(content.design, compared),
            *judgement[1:],
        ),
        _section(
            "statistics", "Statistics", *deciding, comparison.outcomes_table(content),
            comparison.looks_table(compared), *comparison.beside_tables(compared),
        ),
        _section(
            "groups", "Groups", groups.groups_table(content), groups.differences_table(content),
            groups.cross_table(content, analysis.cross), groups.meaning_table(content, analysis.cross),
        ),
        _section(
            "rewards", "What the rewards pay for",
            *(reward_audit.tables(analysis.reward_audit) if analysis.reward_audit else ()),
        ),
        _section(
            "training", "Training", groups.learning_table(content), groups.heads_table(content),
            groups.ppo_table(content),
        ),
        _section(
            "trust", "Can it be trusted?", trust.audit_table(analysis.findings),
            trust.conduct_table(analysis.conduct, kind_of(content).words),
            trust.noise_table(content), trust.layout_table(content), trust.incidents_table(content.history),
            trust.last_words_table(content.history), trust.facts_table(content),
        ),
        _section("again", "The same again", trust.versions_table(content.history)),
    )


def _section(key: str, title: str, *tables: Table) -> Section:
    return Section(key=key, title=title, tables=tuple(filter(None, tables)))


def rule_sentence(content: Content) -> str:
    """Return the rule that was declared before the first run, as a sentence."""
    return f"Rule, declared before the first run: {wording.rule_sentence(content.design)}"
