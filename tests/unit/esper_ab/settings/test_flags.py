"""--higher and --lower set outcome and direction."""

import pytest

from esper_ab.settings.flags import read_flags


@pytest.mark.parametrize("better_direction", ["higher", "lower"])
def test_the_flags_higher_and_lower_set_outcome_and_direction(better_direction: str) -> None:
    assert read_flags({better_direction: "eval/return"}) == {
        "outcome": "eval/return",
        "outcome_better": better_direction,
    }
    assert not {"outcome", "outcome_better"} & {*read_flags({})}
