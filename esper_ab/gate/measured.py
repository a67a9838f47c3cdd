"""What earlier gates of the same question measured: how long a run takes, and how much pairs differ."""

from __future__ import annotations

from pathlib import Path

import msgspec

from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.unreadable import UNREADABLE

GATE_FILE = "gate.json"  # in the directory of a gate: its answer
SCHEMA = 1


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a gate's answer that plans later gates; other keys of the file are ignored."""

    schema: int
    subject: str  # digest of the question without its states
    directory: str
    pairs: int
    run_seconds: float  # mean of its own runs; 0.0: it has none
    sd_of_base: float | None  # between the runs of base; None: unknown, or they do not vary


_decode = msgspec.json.Decoder(Measured).decode


def measured_before(folder: Path, subject: str) -> tuple[Measured, ...]:
    """Return what the gates in `folder` measured that have this subject, the newest first; damaged files are left out.

    `subject`: digest of the question without its states.
    """
    answers = []
    for path in folder.glob(f"gate-*/{GATE_FILE}"):
        try:
            answers.append((path.stat().st_mtime, _decode(read_regular(path))))
        except (OSError, *UNREADABLE):
            continue  # its directory is being removed, or another version wrote it
    answers.sort(key=lambda entry: entry[0], reverse=True)
    return tuple(answer for _, answer in answers if (answer.schema, answer.subject) == (SCHEMA, subject))
