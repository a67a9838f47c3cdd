"""The text of `stream status`."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted, significant
from esper_ab.stream.checking import Check
from esper_ab.stream.entries import Begun, Decided
from esper_ab.stream.progress import Incumbent, StreamProgress

_SHOWN = 10  # candidates
_NOTE_CHARS = 50


def status_lines(progress: StreamProgress, head: str) -> Iterator[str]:
    """Yield a summary, and the last candidates; `head`: digest of the ledger's last line."""
    question = progress.question
    yield _incumbent_words(progress.incumbent, question.outcome or "outcome")
    tried_words = f"{counted(len(progress.candidates), 'candidate')} compared, {progress.wins} accepted"
    refused = sum(not entry.failed for entry in progress.refused)
    failed = len(progress.refused) - refused
    if progress.refused:
        tried_words += f"; {refused} refused and {failed} failed before a comparison, which cost nothing"
    yield f"Candidates: {tried_words}."
    yield (
        f"Error rate: of the accepted, at most {100 * question.alpha:g} % are not better, on average. "
        f"{100 * (1 - progress.spent):.0f} % of that is left; the next candidate has level "
        f"{progress.next_level:.2g}. Expected so far: at most {significant(progress.most_false)} accepted by chance."
    )
    yield _reach_words(progress)
    if progress.unfinished is not None:
        number = progress.unfinished.number
        yield f"Candidate {number} is unfinished: send it again to go on, or give it up with --give-up."
    for candidate in progress.candidates[-_SHOWN:]:
        yield _candidate_words(candidate, progress.decided.get(candidate.number))
    yield f"Ledger: {head[:16]}, the digest of its last line."


def _reach_words(progress: StreamProgress) -> str:
    """Say which improvements the next candidate's seeds can show."""
    question = progress.question
    test = question.test(progress.next_level)
    margin_words = f" beyond the margin of {question.margin:g}" if question.margin else ""
    if test.size is not None:
        return f"Reach: {question.seeds} seeds accept no improvement below {significant(test.reach)}{margin_words}."
    return (
        f"Reach: at the last look, {question.seeds} seeds accept an improvement{margin_words} of "
        f"{significant(test.reach)} SDs of the differences within pairs in 8 of 10 cases."
    )


def _incumbent_words(incumbent: Incumbent, outcome: str) -> str:
    name = f"candidate {incumbent.number}" if incumbent.number else "the first one"
    described_words = [word for word in (incumbent.setup.code_words, _note(incumbent.note)) if word]
    if incumbent.setup.settings:
        described_words.append(", ".join(f"{key}={value}" for key, value in incumbent.setup.settings.items()))
    about_words = f" ({'; '.join(described_words)})" if described_words else ""
    if incumbent.value is None:
        return f"Incumbent: {name}{about_words}; not measured since it won."
    value_words = f"{outcome} {incumbent.value:.6g}"
    if incumbent.interval is not None:
        value_words += f" (95 % interval {incumbent.interval[0]:.6g} to {incumbent.interval[1]:.6g})"
    runs_words = counted(len(incumbent.outcomes), "run")
    aside_words = " that had no part in its win" if incumbent.number else ""
    return f"Incumbent: {name}{about_words}: {value_words}, of {runs_words}{aside_words}."


def _candidate_words(candidate: Begun, decided: Decided | None) -> str:
    note_words = f" ({_note(candidate.note)})" if candidate.note else ""
    if decided is None:
        return f"  {candidate.number}{note_words}: unfinished"
    return f"  {candidate.number}{note_words}: {decided.decision}, {visible_line(decided.reason)}"


def _note(note: str) -> str:
    return visible_line(note, _NOTE_CHARS)


def check_line(check: Check) -> str:
    """Say what a check without problems has found."""
    removed_words = f"; {counted(check.removed, 'experiment')} can no longer be compared" if check.removed else ""
    return (
        f"Checked: the chain of {check.entries} lines, every level and every decision; outcomes agree with "
        f"{counted(check.journals, 'journal')}{removed_words}."
    )
