"""Terms of a report, explained at their first occurrence and in a list at the end of the page."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

TERMS = {
    "device": "A GPU or a CPU core, or several, that one worker has for itself.",
    "look": "A planned number of seeds after which a comparison is tested; each look costs part of the error rate.",
    "repeated interval": "An interval that stays valid when the data are looked at several times.",
    "seed": "One repetition: every group is trained once, on the same random numbers.",
    "device and order": "The device of a run and its place in the start order of its seed.",
    "pair": "The two runs of one seed, one of each group.",
    "outcome": "The one number of a run that the verdict rests on, declared before the first run.",
    "margin": "The smallest difference that would matter, named before the first run.",
    "extension": "More seeds than were planned; the rule is stricter then.",
    "moderated": "The variance of a comparison is shrunk to the mean of those of all comparisons.",
    "futility": "A comparison stops early because a difference of the margin has become unlikely.",
    "held-out accuracy": "Accuracy on data that neither policies nor rewards can see.",
    "greedy": "The policy takes its most probable decision.",
    "sampled": "The policy draws its decisions from its probabilities, as in training.",
    "entropy": "How undecided a policy is: 0 where it always does the same.",
    "trust region": "How far one update may change the policy.",
    "incidents": "Events that could confound the comparison, such as a worker that died.",
    "digest": "A hash of records without names and times: equal computations have equal digests.",
    "fossilised": "Of a seed module: kept for good as part of its network.",
    "seed module": "A module grafted into a network.",
    "A12": "The probability that a run of the first group is above one of the second.",
    "interquartile mean": "The mean of the middle half of the runs.",
    "TOST": "Two one-sided tests: both reject a difference as large as the margin.",
}
_LONGEST_FIRST = "|".join(sorted(map(re.escape, TERMS), key=len, reverse=True))
_WORD = re.compile(rf"(?<![\w-])({_LONGEST_FIRST})(s?)(?![\w-])", re.IGNORECASE)
_KEY = {term.lower(): term for term in TERMS}


class Explained:
    """Marks the first occurrence of each term in a part of the page, and remembers the terms that occurred."""

    def __init__(self) -> None:
        self._here: set[str] = set()
        self.met: dict[str, str] = {}  # the terms that have occurred so far

    def begin(self) -> str:
        """Begin another part of the page. Returns "", so that a template can call it inline."""
        self._here.clear()
        return ""

    def __call__(self, text: str) -> Markup:
        """Return `text` as escaped markup with its terms explained."""
        return Markup(_WORD.sub(self._mark, str(escape(text))))

    def _mark(self, match: re.Match[str]) -> str:
        term = _KEY[match.group(1).lower()]
        self.met[term] = TERMS[term]
        if term in self._here:
            return match.group()
        self._here.add(term)
        return str(Markup('<abbr title="{}">{}</abbr>').format(TERMS[term], Markup(match.group())))
