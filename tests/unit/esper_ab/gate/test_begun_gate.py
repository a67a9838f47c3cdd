"""The state of a gate that has begun: what is done, and what its command would do."""

from pathlib import Path

import pytest
from support.journals.synthetic import Synthetic

from esper_ab.gate.begun_gate import BegunGate
from esper_ab.journal.events import RunEvaluated
from esper_ab.journal.fold import fold


def begun(*, evaluations, minutes=10.0, spent_s=180.0, holder="", passed_s=0.0):
    """Return a gate of 4 pairs that was cut off after some evaluations, which are two per pair."""
    events = Synthetic(replicates=4, episodes=2).events()
    places = [place for place, event in enumerate(events) if isinstance(event, RunEvaluated)]
    kept_events = events if evaluations > len(places) else events[: places[evaluations - 1] + 1]
    return BegunGate(
        directory=Path("experiments/gate-1"),
        history=fold(kept_events),
        holder=holder,
        minutes=minutes,
        spent_s=spent_s,
        passed_s=passed_s,
    )


@pytest.mark.parametrize(
    ("gate", "state", "pairs", "words"),
    [
        (begun(evaluations=5), "interrupted", 2, "Without --dry-run, the command goes on with it"),
        (begun(evaluations=9), "ended", 4, "without --dry-run, the command shows its answer and trains nothing"),
        (begun(evaluations=9, minutes=1.0), "ended", 4, "shows its answer"),
        (begun(evaluations=5, minutes=3.0), "out of time", 2, "with more of them (--minutes), the command goes on"),
        (begun(evaluations=5, minutes=4.0, passed_s=55.0), "out of time", 2, "Its minutes have ended"),
        (
            begun(evaluations=5, holder="process 7 on host"),
            "running",
            2,
            "It is running (process 7 on host); `esper-ab status experiments/gate-1 --follow` shows how far it is.",
        ),
    ],
)
def test_it_says_what_is_done_and_what_is_left(gate, state, pairs, words):
    first_line, done, following = gate.lines
    assert first_line == "This gate has begun already, in experiments/gate-1."
    assert done == f"Done: {pairs} of at most 4 pairs, in 3.0 of {gate.minutes:g} min."
    assert words in following
    assert gate.document == {
        "directory": "experiments/gate-1",
        "state": state,
        "pairs": pairs,
        "most_pairs": 4,
        "seconds": 180.0,
        "minutes": gate.minutes,
    }
