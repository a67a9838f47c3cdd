"""Tasks, outcomes and rewards by name: what is found, and what is said about what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.gym_world import own_file

from esper_ab.contracts.settings import RewardSettings
from workers.gymnasium_task.facts import GymEpisode, GymFacts
from workers.gymnasium_task.making import maker, outcome_of, reward_of
from workers.gymnasium_task.world import as_it_is

FACTS = GymFacts(
    observation=np.zeros((2, 2), dtype=np.float32), action=np.zeros(2, dtype=np.int64),
    next_observation=np.array([[1.0, 0.0], [-3.0, 0.0]], dtype=np.float32), env_reward=np.array([0.5, 2.0]),
    terminated=np.array([False, True]), truncated=np.array([False, False]), step=np.array([1, 1]), info=({}, {}),
)  # fmt: skip
EPISODE = GymEpisode(actions=[0, 1], env_rewards=[1.0, 2.5], info={"place": 7, "text": "x"}, terminated=True)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return own_file(tmp_path)


def test_environments_by_id_and_by_file(own: Path) -> None:
    assert maker("gym:CartPole-v1", as_it_is)().spec.id == "CartPole-v1"
    first, second = maker(f"{own}:make", as_it_is)(), maker(f"{own}:Unrepeatable", as_it_is)()
    assert first.observation_space.shape == second.observation_space.shape == (2,)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gym:CartPol-v1", "CartPole"), ("{own}:nobody", "no function 'nobody' there; it has"),
        ("{own}:outcome", r"must take \(\)"), ("{own}x:make", "importing"),
    ],
)  # fmt: skip
def test_what_is_no_environment_is_named(own: Path, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        maker(name.format(own=own), as_it_is)()


def test_outcomes(own: Path) -> None:
    assert outcome_of("", as_it_is)(EPISODE) == 3.5
    assert outcome_of("info:place", as_it_is)(EPISODE) == 7.0
    assert outcome_of(f"{own}:outcome", as_it_is)(EPISODE) == 2.0
    with pytest.raises(ValueError, match=r"outcome 'info:plaice': info .* has no such key; it has place, text"):
        outcome_of("info:plaice", as_it_is)(EPISODE)
    with pytest.raises(ValueError, match="outcome 'info:text': could not convert"):
        outcome_of("info:text", as_it_is)(EPISODE)


def test_rewards_and_their_constants(own: Path) -> None:
    def reward(name: str, **params: object) -> list[float]:
        mode = "env" if name == "env" else f"{own}:{name}"
        return reward_of(RewardSettings(mode=mode, params=params), as_it_is)(FACTS).tolist()

    assert reward("env") == [0.5, 2.0]
    assert reward("reward") == [-1.0, -3.0]
    assert reward("weighted") == [1.0, 4.0]
    assert reward("weighted", weight=3) == [1.5, 6.0]
    for name, params, said in (
        ("env", {"weight": 1.0}, "no constants"), ("reward", {"weight": 1.0}, "takes no constants"),
        ("weighted", {"wait": 1.0}, "has no constant 'wait'; Params has weight"),
        ("weighted", {"weight": "heavy"}, "Expected `float`"), ("untyped", {}, "annotate 'params'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            reward(name, **params)
