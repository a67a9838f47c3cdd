from __future__ import annotations

import pytest
from support.asking import experiment, machine, planned


@pytest.mark.parametrize(("endpoint", "words"), [
    ("evaluation", "the evaluated policy's held-out accuracy in one group minus"),
    ("last-tenth", "the mean held-out accuracy of the last tenth of the training episodes in one group minus"),
    ("curve-mean", "the mean held-out accuracy of all training episodes in one group minus"),
])  # fmt: skip
def test_the_estimand_is_that_of_the_endpoint(endpoint: str, words: str) -> None:
    estimand = planned(experiment(endpoint=endpoint), machine()).estimand
    assert words in estimand
    assert ("evaluated" in estimand) == (endpoint == "evaluation")
