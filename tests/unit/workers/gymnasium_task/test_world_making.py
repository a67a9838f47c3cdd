"""Tasks, outcomes and rewards by name: what is found, and what is said about what is not."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from support.gym_world import own_file

from esper_ab.contracts.errors import UserCodeFailed
from esper_ab.contracts.settings import RewardSettings
from workers.gymnasium_task.environments import GymEpisode, GymFacts, GymStep
from workers.gymnasium_task.world import maker, outcome_of, reward_of
from workers.user_rewards.user_code import as_it_is

FACTS = GymFacts(
    observation=np.zeros((2, 2), dtype=np.float32), action=np.zeros(2, dtype=np.int64),
    next_observation=np.array([[1.0, 0.0], [-3.0, 0.0]], dtype=np.float32), env_reward=np.array([0.5, 2.0]),
    terminated=np.array([False, True]), truncated=np.array([False, False]), step=np.array([1, 1]), info=({}, {}),
    stepped=np.array([True, True]),
)  # fmt: skip
STEP = GymStep(FACTS.env_reward, lambda: FACTS)
EPISODE = GymEpisode(actions=[0, 1], env_rewards=[1.0, 2.5], info={"place": 7, "text": "x"}, terminated=True)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return own_file(tmp_path)


def test_environments_by_id_and_by_file(own: Path) -> None:
    assert maker("gym:CartPole-v1", as_it_is)().spec.id == "CartPole-v1"
    assert maker("gym:gymnasium:CartPole-v1", as_it_is)().spec.id == "CartPole-v1"
    first, second = maker(f"{own}:make", as_it_is)(), maker(f"{own}:Unrepeatable", as_it_is)()
    assert first.observation_space.shape == second.observation_space.shape == (2,)


@pytest.mark.parametrize(("name", "said"), [
    ("OWN:nobody", "no function 'nobody'; available:"), ("OWN:outcome", "must accept the arguments ()"),
    ("OWNx:make", "importing"), ("gym:CartPol-v1", "CartPole"), ("gym:gymnasium:CartPol-v1", "CartPole"),
    ("gym:no_such_lab:Walk-v0", "task 'gym:no_such_lab:Walk-v0': importing 'no_such_lab' failed: ModuleNotFound"),
    ("gym::CartPole-v1", "'gym::CartPole-v1': expected gym:ID or gym:module:ID"),
    ("gym:.lab:CartPole-v1", "'gym:.lab:CartPole-v1': expected gym:ID or gym:module:ID"),
    ("gym:a:b:CartPole-v1", "expected gym:ID or gym:module:ID"),
    ("gym:CartPole", "'gym:CartPole' names no version, and means another environment when a newer one is "
                     "installed; gym:CartPole-v1 is the newest here"),
    ("gym:gymnasium:CartPole", "; gym:gymnasium:CartPole-v1 is the newest here"),
])  # fmt: skip
def test_what_is_no_environment_or_may_be_another_one_is_refused_in_a_line(own: Path, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        maker(name.replace("OWN", str(own)), as_it_is)
    assert "\n" not in str(refused.value)


def test_a_module_registers_its_environments_when_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_lab.py").write_text(
        "import gymnasium\n"
        "entry = 'gymnasium.envs.classic_control:CartPoleEnv'\n"
        "gymnasium.register(id='a_lab/Pole-v3', entry_point=entry)\n"
        "gymnasium.register(id='a_lab/Only', entry_point=entry)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert maker("gym:a_lab:a_lab/Pole-v3", as_it_is)().spec.id == "a_lab/Pole-v3"
    assert maker("gym:a_lab/Only", as_it_is)().spec.id == "a_lab/Only"  # it has no versions


def test_outcomes(own: Path) -> None:
    assert outcome_of("", as_it_is)(EPISODE) == 3.5
    assert outcome_of("info:place", as_it_is)(EPISODE) == 7.0
    assert outcome_of(f"{own}:outcome", as_it_is)(EPISODE) == 2.0
    with pytest.raises(ValueError, match=r"outcome 'info:plaice': info .* has no such key; it has place, text"):
        outcome_of("info:plaice", as_it_is)(EPISODE)
    with pytest.raises(ValueError, match=r"outcome 'place': expected info:place, or path/to/file\.py:function"):
        outcome_of("place", as_it_is)
    with pytest.raises(UserCodeFailed, match="outcome 'info:text': could not convert"):
        outcome_of("info:text", as_it_is)(EPISODE)


def test_rewards_and_their_constants(own: Path) -> None:
    def reward(name: str, **params: object) -> list[float]:
        mode = "env" if name == "env" else f"{own}:{name}"
        return reward_of(RewardSettings(mode=mode, params=params), as_it_is)(STEP).tolist()

    assert reward("env") == [0.5, 2.0]
    unread = GymStep(FACTS.env_reward, lambda: pytest.fail("nobody reads facts"))
    assert reward_of(RewardSettings(mode="env"), as_it_is)(unread) is FACTS.env_reward
    assert reward("reward") == [-1.0, -3.0]
    assert reward("weighted") == [1.0, 4.0]
    assert reward("weighted", weight=3) == [1.5, 6.0]
    with pytest.raises(UserCodeFailed, match=r"failed: KeyError: 'place' \(own.py, line"):
        reward("told")
    for name, params, said in (
        ("env", {"weight": 1.0}, "has no constants"), ("reward", {"weight": 1.0}, "no parameter for constants"),
        ("weighted", {"wait": 1.0}, "has no constant 'wait'; Params has weight"),
        ("weighted", {"weight": "heavy"}, "Expected `float`"), ("untyped", {}, "annotate 'params'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            reward(name, **params)


TYPED = """
from __future__ import annotations
from typing import TYPE_CHECKING
import msgspec
if TYPE_CHECKING:
    from workers.gymnasium_task.environments import GymFacts

class Params(msgspec.Struct):
    weight: float = 2.0

def typed(facts: GymFacts, params: Params) -> NDArray:
    return params.weight * facts.env_reward
"""
IN_PACKAGE = """
from __future__ import annotations
from typing import Annotated
import msgspec

class Inner(msgspec.Struct):
    more: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0

class Params(msgspec.Struct):
    weight: Annotated[float, msgspec.Meta(gt=0.0)] = 2.0
    inner: Inner = msgspec.field(default_factory=Inner)
"""


def typed_reward(path: Path, code: str = TYPED, **params: object) -> list[float]:
    path.write_text(code)
    return reward_of(RewardSettings(mode=f"{path}:typed", params=params), as_it_is)(STEP).tolist()


@pytest.mark.parametrize("beside", [False, True])
def test_constants_of_a_module_in_a_package_may_be_annotated(tmp_path: Path, beside: bool) -> None:
    package = tmp_path / "lab_typed"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "constants.py").write_text(IN_PACKAGE)
    total = "(params.weight + params.inner.more) * facts.env_reward"
    reward = f"\n\ndef typed(facts, params: Params):\n    return {total}\n"
    own = "from __future__ import annotations\nfrom .constants import Params" if beside else IN_PACKAGE
    before = dict(sys.modules)
    assert typed_reward(package / "mine.py", own + reward) == [1.0, 4.0]
    assert typed_reward(package / "mine.py", own + reward, weight=3, inner={"more": 1}) == [2.0, 8.0]
    with pytest.raises(ValueError, match=r"Expected `float` > 0.0"):
        typed_reward(package / "mine.py", own + reward, weight=-1.0)
    assert [name for name in sys.modules if name.startswith("lab_typed")] == []
    assert sys.modules.items() >= before.items()


@pytest.mark.parametrize(("old", "new", "said"), [
    ("params: Params)", "params: Param)", r"of 'params' cannot be resolved: NameError: .*'Param' is not defined"),
    ("weight: float", "weight: GymFacts", r"of Params cannot be resolved: NameError: .*'GymFacts' is not defined"),
    ("weight: float", "weight: GymFacts", r"import the names that they use outside of `if TYPE_CHECKING:`"),
    ("weight: float", "weight: Params | dict | Sized", r"of Params cannot be resolved: NameError"),
    ("weight: float", "weight: Params | object()", r"of Params cannot be resolved: TypeError"),
    ("weight: float", "weight: complex | range", r"of Params cannot be resolved: TypeError: Type unions"),
    ("\ndef typed", "    def __post_init__(self):\n        raise KeyError(self.weight)\n\ndef typed",
     r"Params failed: KeyError: 2.0 \(mine.py, line 11\)"),  # a check of its own
])  # fmt: skip
def test_names_that_only_a_type_checker_knows_are_no_concern_but_in_the_constants(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert typed_reward(tmp_path / "mine.py") == [1.0, 4.0]
    assert typed_reward(tmp_path / "mine.py", weight=3.0) == [1.5, 6.0]
    with pytest.raises(ValueError, match=rf"reward mode '.*mine.py:typed': .*{said}") as refused:
        typed_reward(tmp_path / "mine.py", TYPED.replace(old, new))
    assert "\n" not in str(refused.value)
