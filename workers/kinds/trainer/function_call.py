"""Calls a function of the user's in a process of its own, and reads what it returned. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.contracts.failure_cause import cause_of_text
from esper_ab.contracts.files_below import remove_below, write_below
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.trainer import OutcomeSource
from esper_ab.contracts.worker_order import UsersShell
from workers.kinds.trainer import running
from workers.kinds.trainer.function_messages import ORDER, RETURNED, Call, Called, Numbers
from workers.kinds.trainer.idling import Watch

_PROGRAM = "workers.kinds.trainer.commands.call_function"
_decode = msgspec.json.Decoder(Called).decode


@dataclass(frozen=True, kw_only=True)
class CallPlace:
    """Where a call runs, and what it inherits."""

    root: Path  # of the names below
    folder: str  # of the order and the answer
    log: str
    pins: Mapping[str, str]  # environment variables for devices and threads
    shell: UsersShell

    @property
    def answer(self) -> Path:
        """The file with the answer, if the function has returned or failed."""
        return self.root / self.folder / RETURNED


def called(call: Call, place: CallPlace, watch: Watch) -> Called:
    """Call the function and return the answer.

    Raises ScriptFailed, with one line, if the function fails or returns no number.
    """
    remove_below(place.root, f"{place.folder}/{RETURNED}")
    write_below(place.root, f"{place.folder}/{ORDER}", msgspec.json.encode(call))
    words = child_command(_PROGRAM, str((place.root / place.folder).resolve()), outlives=True)  # its guard ends it
    variables = running.environment(place.shell, OutcomeSource("", "outcome"), place.answer.parent, place.pins)
    try:
        run_end = running.run_script(words, call.directory, variables, (place.root, place.log), watch, place.shell)
    except running.ScriptFailed as error:
        if place.answer.exists():
            problem = _decode(read_regular(place.answer)).error
            raise running.ScriptFailed(problem, cause_of_text(problem)) from None
        process = f"the process of {call.name}"
        raise running.ScriptFailed(str(error).replace(running.shown(words), process), error.cause) from None
    if not place.answer.exists():
        raise running.ScriptFailed(f"{call.name} ended its process before it returned, by os._exit or the like")
    return msgspec.structs.replace(_decode(read_regular(place.answer)), memory_bytes=run_end.peak_bytes)


def thinned(curve: Sequence[Numbers], points: int) -> list[Numbers]:
    """Return `points` items of a curve at equal distances, the last one among them; a shorter curve has repetitions."""
    return [curve[math.ceil((point + 1) * len(curve) / points) - 1] for point in range(points)]
