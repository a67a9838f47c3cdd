"""--higher and --lower: which outcome they ask for."""

import pytest

from esper_ab.settings.flags import read_flags


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_an_outcome_is_named_with_its_direction(better: str) -> None:
    assert read_flags({better: "eval/return"}) == {"outcome": "eval/return", "outcome_better": better}
    assert not {"outcome", "outcome_better"} & {*read_flags({})}
