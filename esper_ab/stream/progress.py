"""The fold of a ledger: who the incumbent is, what is known of it, and which level the next candidate has. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from esper_ab.contracts.errors import JournalError
from esper_ab.stats import online_fdr
from esper_ab.stats.distributions import t_isf
from esper_ab.stream.entries import Begun, Decided, Entry, IncumbentMeasured, Opened, Refused, Setup
from esper_ab.stream.question import StreamQuestion

_ANSWERS = ("accepted", "rejected", "undecided")  # others may be tried again


@dataclass
class Incumbent:
    """The best so far, with its runs on seeds that had no part in its win."""

    number: int  # of the candidate that it was; 0: the first one
    setup: Setup
    note: str = ""
    alone: bool = False  # whether it was trained alone since it won
    outcomes: list[float] = field(default_factory=list)

    @property
    def value(self) -> float | None:
        """The mean outcome."""
        return fmean(self.outcomes) if self.outcomes else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean outcome; None with fewer than two runs."""
        runs = len(self.outcomes)
        if runs < 2:
            return None
        mean = fmean(self.outcomes)
        half_width = float(t_isf(0.025, runs - 1)) * stdev(self.outcomes) / math.sqrt(runs)
        return mean - half_width, mean + half_width


@dataclass
class StreamProgress:
    """What the entries of a ledger have come to."""

    question: StreamQuestion
    unchanged: dict[str, str]
    incumbent: Incumbent
    candidates: list[Begun] = field(default_factory=list)
    decided: dict[int, Decided] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    rng_seeds: set[int] = field(default_factory=set)

    @property
    def unfinished(self) -> Begun | None:
        """The candidate that has begun and is not decided."""
        last_candidate = self.candidates[-1] if self.candidates else None
        return None if last_candidate is None or last_candidate.number in self.decided else last_candidate

    @property
    def wins(self) -> int:
        return sum(decided.decision == "accepted" for decided in self.decided.values())

    @property
    def next_level(self) -> float:
        """The level of the next candidate."""
        return online_fdr.level(self.question.alpha, len(self.candidates) + 1, self.wins)

    @property
    def spent(self) -> float:
        """The share of alpha that the candidates so far have spent."""
        return online_fdr.spent(len(self.candidates))

    @property
    def most_false(self) -> float:
        """The largest expected number of candidates that were accepted and are not better."""
        return sum(candidate.level for candidate in self.candidates)

    def has_accepted(self, number: int) -> bool:
        """True if the candidate of this number was accepted."""
        return number in self.decided and self.decided[number].decision == "accepted"

    def answered(self, setup: Setup) -> tuple[Begun, Decided] | None:
        """Return the last answer on a candidate that was compared with the present incumbent; None if there is none."""
        for candidate in reversed(self.candidates):
            decided = self.decided.get(candidate.number)
            if decided is None or decided.decision not in _ANSWERS or candidate.incumbent != self.incumbent.number:
                continue
            if candidate.setup.identity == setup.identity:
                return candidate, decided
        return None


def fold(entries: Iterable[Entry]) -> StreamProgress:
    """Return the progress after these entries, which begin with `Opened`."""
    *_, progress = steps(entries)
    return progress


def steps(entries: Iterable[Entry]) -> Iterator[StreamProgress]:
    """Yield the progress after each entry; it is the same object. JournalError for a decision out of place."""
    progress: StreamProgress | None = None
    for entry in entries:
        if isinstance(entry, Opened):
            progress = StreamProgress(entry.question, entry.unchanged, Incumbent(0, entry.incumbent))
        else:
            assert progress is not None, "a ledger begins with `Opened`"
            _add(progress, entry)
        yield progress


def _add(progress: StreamProgress, entry: Entry) -> None:
    if isinstance(entry, IncumbentMeasured):
        progress.incumbent.alone = True
        progress.incumbent.outcomes += entry.outcomes
        progress.rng_seeds.add(entry.rng_seed)
    elif isinstance(entry, Begun):
        progress.candidates.append(entry)
        progress.rng_seeds.add(entry.rng_seed)
    elif isinstance(entry, Refused):
        progress.refused.append(entry)
    elif isinstance(entry, Decided):
        _decide(progress, entry)


def _decide(progress: StreamProgress, decided: Decided) -> None:
    candidate = progress.unfinished
    if candidate is None or candidate.number != decided.number:
        raise JournalError(f"the ledger has a decision on candidate {decided.number}, which was not being compared")
    progress.decided[decided.number] = decided
    if decided.decision == "accepted":
        progress.incumbent = Incumbent(candidate.number, candidate.setup, candidate.note)
    else:
        progress.incumbent.outcomes += [outcome for outcome, _ in decided.pairs]


def differences(pairs: Sequence[tuple[float, float]], sign: float) -> list[float]:
    """Return by how much the candidate is better in each pair; `sign` is -1.0 if lower outcomes are better."""
    return [sign * (candidate - incumbent) for incumbent, candidate in pairs]
