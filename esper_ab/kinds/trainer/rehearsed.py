"""The results of a trainer's rehearsal in sentences. Pure."""

from __future__ import annotations

from esper_ab.contracts.trainer import Resumption, TrainerFacts, is_command, is_function
from esper_ab.contracts.wording import listed
from esper_ab.plan.estimate import duration

_RESUMPTIONS: dict[Resumption, str] = {
    "exactly": "resumes exactly: from its saved state, another process reached the same bits",
    "resumes": "resumes: another process continued from its saved state, but not to the same bits",
    "untried": "continues by {resume} from what an interrupted run has left, which the rehearsal does not try",
    "anew": "starts over: an interrupted run begins again",
}
_NAMED = 3  # groups in a line
_ALONE = (
    "A process that had not trained evaluated the same state differently: the evaluation uses more than the state, so "
    "a run that is interrupted before its evaluation gets another result."
)


def in_lines(facts: TrainerFacts, label: str, run_s: float) -> tuple[str, ...]:
    """Return the results of the rehearsal in the lines that come before a plan; `label`: of the outcome."""
    repeats = "repeats to the bit" if facts.repeats else "gave different numbers when it was repeated"
    memory = f" and {_memory_words(facts.memory_bytes)} of memory" if facts.memory_bytes else ""
    shortened_words = f", shortened by {facts.shortened}" if facts.shortened else ""
    lines = [
        f"Rehearsed: {label} {facts.found}." if facts.found else "",
        f"One seed {repeats}; a run took {_seconds(run_s)}{memory}{shortened_words}.",
        *_failed_groups(facts),
        _untried_groups(facts),
        f"python: {facts.interpreter}, which is not that of esper-ab" if facts.interpreter else "",
    ]
    return tuple(filter(None, lines))


def _failed_groups(facts: TrainerFacts) -> list[str]:
    """Return a sentence for each group that failed with one of two seeds in the rehearsal."""
    return [
        f"Group {group} failed with one seed in the rehearsal, but not with another: {reason.rstrip('.')}."
        for group, reason in facts.failed_once.items()
    ]


def _untried_groups(facts: TrainerFacts) -> str:
    """Say which groups did not run to their end in the rehearsal; "" if all did."""
    parts = []
    if facts.ended_early:
        parts.append(f"{_names(facts.ended_early)} was started, did not fail and was ended")
    if facts.not_started:
        parts.append(f"{_names(facts.not_started)} was not started")
    return f"Not rehearsed to the end: {'; '.join(parts)}." if parts else ""


def _names(groups: tuple[str, ...]) -> str:
    if len(groups) == 1:
        return f"group {groups[0]}"
    if len(groups) <= _NAMED:
        return f"each of {listed(groups)}"
    return f"each of {', '.join(groups[:_NAMED])} and {len(groups) - _NAMED} more"


def _seconds(run_s: float) -> str:
    if run_s < 10.0:
        return f"{run_s:.1f} s"
    return duration(run_s).removeprefix("about ")


def _memory_words(count: int) -> str:
    if count >= 1 << 30:
        return f"{count / 2**30:.1f} GiB"
    return f"{max(1, round(count / 2**20))} MiB"


def in_sentences(facts: TrainerFacts, reference: str) -> str:
    """Return the results of the rehearsal in one or more sentences."""
    if facts.repeats:
        repeats = "repeats to the bit"
    else:
        repeats = "does not repeat: the same seed gave different numbers"
    shortened_words = f", shortened by {facts.shortened}" if facts.shortened else ""
    trainer_kind = "function" if is_function(reference) else "trainer"
    code_words = ""
    if is_command(reference):
        trainer_kind = "command"
        code_words = " It names no file in its folder, so changes of its code would go unnoticed."
        if facts.states:
            code_words = ""  # the files of every state are sealed
        elif facts.files:
            files = ", ".join(facts.files)
            code_words = f" A run starts only if {files} has not changed since; other files are not checked."
    evaluation_words = "" if facts.evaluates_alike else f" {_ALONE}"
    group_words = "".join(f" {line}" for line in (*_failed_groups(facts), _untried_groups(facts)) if line)
    return (
        f"The {trainer_kind}, as rehearsed{shortened_words}: {repeats}; "
        f"{_RESUMPTIONS[facts.resumption]}.{evaluation_words}{code_words}{group_words}"
    )
