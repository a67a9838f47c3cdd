"""The answer of a gate names settings as its file does."""

from esper_ab.gate.answer import as_in_file


def test_a_flag_that_a_gate_lacks_is_written_as_a_key():
    text = "no worst outcome is declared for them (--outcome-range)."
    assert as_in_file(text) == "no worst outcome is declared for them (outcome_range)."
