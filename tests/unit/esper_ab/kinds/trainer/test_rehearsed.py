"""The lines about a rehearsal say which groups did not run to their end."""

import pytest

from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.kinds.trainer.rehearsed import in_lines, in_sentences


@pytest.mark.parametrize(
    ("ended_early", "not_started", "line"),
    [
        (("b",), (), "Not rehearsed to the end: group b was started, did not fail and was ended."),
        (("b", "c"), (), "Not rehearsed to the end: each of b and c was started, did not fail and was ended."),
        (
            ("b", "c", "d", "e", "f"),
            ("g",),
            "Not rehearsed to the end: each of b, c, d and 2 more was started, did not fail and was ended; group g was "
            "not started.",
        ),
    ],
)
def test_groups_that_did_not_run_to_their_end_are_named(ended_early, not_started, line):
    facts = TrainerFacts(ended_early=ended_early, not_started=not_started)
    assert line in in_lines(facts, "score", 1.0)
    assert in_sentences(facts, "train.py").endswith(line)


def test_a_group_that_failed_with_one_seed_is_named_with_the_reason():
    facts = TrainerFacts(failed_once={"b": "ValueError: diverged"})
    line = "Group b failed with one seed in the rehearsal, but not with another: ValueError: diverged."
    assert line in in_lines(facts, "score", 1.0)
    assert in_sentences(facts, "train.py").endswith(line)


def test_no_line_speaks_of_groups_that_ran_to_their_end():
    facts = TrainerFacts()
    assert not [line for line in in_lines(facts, "score", 1.0) if "group" in line]
    assert "Not rehearsed" not in in_sentences(facts, "train.py")
