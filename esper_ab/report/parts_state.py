"""The state of an experiment over several parts, as every report on it states it."""

from __future__ import annotations

from esper_ab.readers.joint import LoadedParts
from esper_ab.report.document import State

FINISHED = State("finished", "Finished: all runs of all parts are evaluated.")


def state_over_parts(loaded_parts: LoadedParts) -> State | None:
    """Return the warning about incomplete parts; None if they are complete."""
    if loaded_parts.complete:
        return None
    done_runs = sum(part_state.runs for part_state in loaded_parts.parts)
    planned_runs = sum(part_state.of_runs for part_state in loaded_parts.parts)
    if loaded_parts.ended:
        rest_words = "the seeds of the others were given up"
    else:
        rest_words = "a look is taken when all parts are done"
    return State("incomplete", f"{done_runs} of {planned_runs} runs are evaluated; {rest_words}.")
