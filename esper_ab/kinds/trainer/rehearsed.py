"""The results of a trainer's rehearsal in sentences. Pure."""

from __future__ import annotations

from esper_ab.contracts.trainer import Resumption, TrainerFacts, is_command, is_function

_RESUMPTIONS: dict[Resumption, str] = {
    "exactly": "resumes exactly: from its saved state, another process reached the same bits",
    "resumes": "resumes: another process continued from its saved state, but not to the same bits",
    "anew": "starts over: an interrupted run begins again",
}
_ALONE = (
    "A process that had not trained evaluated the same state differently: the evaluation uses more than the state, so "
    "a run that is interrupted before its evaluation gets another result."
)


def in_sentences(facts: TrainerFacts, reference: str) -> str:
    """Return the results of the rehearsal in one or more sentences."""
    if facts.repeats:
        repeats = "repeats to the bit"
    else:
        repeats = "does not repeat: the same seed gave different numbers"
    short = f", shortened by {facts.shortened}" if facts.shortened else ""
    what = "function" if is_function(reference) else "trainer"
    where = ""
    watched = ""
    if is_command(reference):
        what = "command"
        if facts.found:
            where = f"The outcome was {facts.found}. "
        watched = " It names no file in its folder, so changes of its code would go unnoticed."
        if facts.files:
            files = ", ".join(facts.files)
            watched = f" A run starts only if {files} has not changed since; other files are not checked."
    alone = "" if facts.evaluates_alike else f" {_ALONE}"
    return f"{where}The {what}, as rehearsed{short}: {repeats}; {_RESUMPTIONS[facts.resumption]}.{alone}{watched}"
