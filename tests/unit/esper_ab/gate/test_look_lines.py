"""One line per look, and none for other events."""

from esper_ab.design.design import Contrast
from esper_ab.gate.look_lines import LookLines
from esper_ab.journal.events import ExperimentEnded, LookTaken


def test_each_look_is_a_line():
    lines = []
    observer = LookLines(say=lines.append, most_pairs=40, minutes=5.0, spent_s=lambda: 66.0)
    contrast = Contrast(a="head", b="base")
    observer.observe(LookTaken(replicates=20, decided=(), leaving=()))
    observer.observe(LookTaken(replicates=24, decided=(contrast,), leaving=("head", "base")))
    observer.observe(ExperimentEnded(status="finished", detail=""))
    observer.observe("a warning")
    assert lines == [
        "look after 20 of at most 40 pairs, 1.1 of 5 min: not decided yet",
        "look after 24 of at most 40 pairs, 1.1 of 5 min: decided head - base",
    ]
