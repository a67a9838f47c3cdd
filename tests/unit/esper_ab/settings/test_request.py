"""Flags override files."""

from support.plans.requests import toml

from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_request


def test_a_flag_overrides_the_outcome_of_a_file(tmp_path) -> None:
    file = toml(tmp_path, 'trainer = "mine.py"\noutcome = "loss"\noutcome_better = "lower"\nmargin = 1.0')
    request = parse(read_request({"vary": "lr=1,2", "higher": "score"}, file))
    assert (request.outcome, request.outcome_better) == ("score", "higher")
