"""Repeats every number of a ledger: levels, decisions, who the incumbent is, and the outcomes that journals have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.stats import online_fdr
from esper_ab.stream.cut_off import unrecorded_experiments
from esper_ab.stream.deciding import decide
from esper_ab.stream.entries import Begun, Decided, Entry, IncumbentMeasured
from esper_ab.stream.ledger import Ledger
from esper_ab.stream.outcomes import has_begun, lone_outcomes, pairs_of
from esper_ab.stream.progress import StreamProgress, steps

_TOLERANCE = 1e-9  # relative, of numbers that another machine may round differently
_REPEATED = ("accepted", "rejected", "undecided")  # decisions that follow from the pairs


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What a check has come to."""

    problems: tuple[str, ...]
    entries: int
    journals: int  # experiments whose journals have the outcomes of the ledger
    removed: int  # experiments that are no longer there


def check(ledger: Ledger) -> Check:
    """Repeat every decision of a ledger, whose chain has been checked by reading it."""
    problems = []
    journals = 0
    removed_experiments = 0
    progress: StreamProgress | None = None
    progress_steps = steps(ledger.entries)
    for number, entry in enumerate(ledger.entries, start=1):
        if progress is not None:
            entry_problems = [*_problems(entry, progress)]
            name = _experiment_of(entry, progress)
            if name is not None and has_begun(ledger.folder, name):
                entry_problems += _differing_outcomes(ledger.folder, name, entry)
                journals += 1
            elif name is not None:
                removed_experiments += 1
            problems += [f"line {number}: {problem}" for problem in entry_problems]
        try:
            progress = next(progress_steps)
        except JournalError:  # among the problems, because the entries after it follow from nothing
            break
    else:
        if progress is not None:
            cut_off_words = f"after line {len(ledger.entries)}: lines were cut off"
            problems += [f"{cut_off_words}: {problem}" for problem in unrecorded_experiments(ledger.folder, progress)]
    return Check(problems=tuple(problems), entries=len(ledger.entries), journals=journals, removed=removed_experiments)


def _problems(entry: Entry, progress: StreamProgress) -> Iterator[str]:
    """Yield what is wrong with an entry, given the progress before it."""
    if isinstance(entry, IncumbentMeasured) and entry.incumbent != progress.incumbent.number:
        yield f"the incumbent is {progress.incumbent.number}, not {entry.incumbent}"
    if isinstance(entry, IncumbentMeasured | Begun) and entry.rng_seed in progress.rng_seeds:
        yield f"rng seed {entry.rng_seed} was used before, so its runs are not fresh"
    if isinstance(entry, Begun):
        yield from _begun_problems(entry, progress)
    if isinstance(entry, Decided):
        yield from _decided_problems(entry, progress)


def _begun_problems(entry: Begun, progress: StreamProgress) -> Iterator[str]:
    number = len(progress.candidates) + 1
    if progress.unfinished is not None:
        yield f"candidate {progress.unfinished.number} was not decided before candidate {entry.number} began"
    if entry.number != number:
        yield f"candidate {entry.number} is the {number}th"
    if entry.incumbent != progress.incumbent.number:
        yield f"the incumbent is {progress.incumbent.number}, not {entry.incumbent}"
    level = online_fdr.level(progress.question.alpha, number, progress.wins)
    if not _is_close(entry.level, level):
        yield f"the level of candidate {number} is {level:g}, not {entry.level:g}"


def _decided_problems(entry: Decided, progress: StreamProgress) -> Iterator[str]:
    candidate = progress.unfinished
    if candidate is None or candidate.number != entry.number:
        yield f"candidate {entry.number} is not the one that was compared"
        return
    if entry.decision not in _REPEATED:
        if entry.e_value:
            yield f"a candidate that {entry.decision} has e-value {entry.e_value:g}"
        return
    if entry.look not in progress.question.looks:
        yield f"there is no look after {entry.look} seeds"
        return
    repeated_decision = decide(progress.question, candidate, entry.look, entry.pairs)
    if repeated_decision is None or repeated_decision.decision != entry.decision:
        word = "undecided, and goes on" if repeated_decision is None else repeated_decision.decision
        yield f"by its pairs, candidate {entry.number} is {word}, not {entry.decision}"
        return
    for name in ("effect", "p", "signs_p", "e_value"):
        recorded_number, computed = getattr(entry, name), getattr(repeated_decision, name)
        if (recorded_number is None) != (computed is None) or (
            recorded_number is not None and not _is_close(recorded_number, computed)
        ):
            yield f"{name} is {computed}, not {recorded_number}"


def _is_close(number: float, expected: float) -> bool:
    return abs(number - expected) <= _TOLERANCE * max(abs(number), abs(expected), 1e-300)


def _experiment_of(entry: Entry, progress: StreamProgress) -> str | None:
    """Return the experiment whose outcomes an entry has; None if it has none."""
    if isinstance(entry, IncumbentMeasured):
        return entry.experiment
    if isinstance(entry, Decided) and entry.pairs and progress.unfinished is not None:
        return progress.unfinished.experiment
    return None


def _differing_outcomes(folder: Path, name: str, entry: Entry) -> Iterator[str]:
    """Yield what is wrong with the outcomes of an entry, according to the journal of its experiment."""
    try:
        if isinstance(entry, IncumbentMeasured):
            agrees = lone_outcomes(folder, name)[1] == entry.outcomes
        else:
            assert isinstance(entry, Decided), "no other entry has outcomes"
            agrees = pairs_of(folder, name, entry.look).outcomes == entry.pairs
    except (JournalError, UsageError) as error:
        yield f"{name}: {error}"
        return
    if not agrees:
        yield f"the journal of {name} has other outcomes"
