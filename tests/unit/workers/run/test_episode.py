"""A user's own reward in a run: what it may not return is said with its name, whoever decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tensor_world import make_session

from esper_ab.contracts.errors import UserCodeFailed

BODY = """
import numpy as np


def reward(facts, settings):
    return np.where(np.arange(len(facts.op)) == 1, {value}, 0.0)
"""


@pytest.mark.parametrize("controller", ["ppo", "random"])
@pytest.mark.parametrize(
    ("value", "said"), [("np.nan", "is not finite"), ("np.inf", "is not finite"), ("-1e200", r"is beyond 1e\+40")]
)
def test_a_reward_that_nobody_can_compute_with_ends_the_run_and_is_named(
    tmp_path: Path, controller: str, value: str, said: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(BODY.format(value=value))
    session = make_session(controller=controller, mode=f"{path}:reward")
    with pytest.raises(UserCodeFailed, match=rf"reward mode '{path}:reward' {said} at step 1: \[0.0, "):
        session.warm_up(lambda _step: None)
