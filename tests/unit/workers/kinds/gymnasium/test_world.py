"""Runs in Gymnasium environments: inputs of their records; tasks, outcomes and rewards by name."""

import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from support.worlds.gym_world import gym_session, own_file
from support.worlds.tensor_world import quiet

from esper_ab.contracts.errors import UserCodeFailed
from esper_ab.contracts.settings import RewardSettings
from workers.kinds.gymnasium.environments import GymSeen
from workers.kinds.gymnasium.facts import GymEpisode, GymFacts, GymStep
from workers.kinds.gymnasium.spaces import Codec
from workers.kinds.gymnasium.world import RandomActions, maker, outcome_of, reward_of
from workers.storage import state_bytes
from workers.user_code.loading import as_it_is

PENDULUM = {"task": "gym:Pendulum-v1", "steps": 6}
ROLLOUTS: list[dict[str, Any]] = [
    {},
    {"policy": {"memory": "none"}},
    {"gym": {"rollout": "resets"}},
    {"gym": {"rollout": "continues"}, "steps": 5},
    {"gym": {"rollout": "continues"}, "steps": 5, "policy": {"memory": "none"}},
    PENDULUM,
    {"controller": "random"},
    {"controller": "random", **PENDULUM},
]


def digests(tmp_path: Path, changes: dict[str, Any], resume_episode: int = -1) -> list[str]:
    changes = {"task": f"{own_file(tmp_path)}:make", **changes}
    session = gym_session(**changes)
    record_digests = []
    session.warm_up(quiet)
    for episode in range(session.spec.episodes):
        if episode == resume_episode and (state := session.state()) is not None:
            checkpoint = state_bytes.to_bytes(state)
            session = gym_session(**changes)
            session.resume(state_bytes.from_bytes(checkpoint))
            session.warm_up(quiet)
        record_digests.append(session.train(episode, quiet, quiet).digest)
    return [*record_digests, session.evaluate(tmp_path, quiet).digest]


@pytest.mark.parametrize("changes", ROLLOUTS, ids=repr)
def test_equal_settings_give_equal_records_even_after_a_resume(tmp_path: Path, changes: dict[str, Any]) -> None:
    expected = digests(tmp_path, changes)
    assert digests(tmp_path, {**changes, "group": "renamed", "telemetry": False}) == expected
    assert digests(tmp_path, changes, resume_episode=2) == expected
    assert len(set(expected)) == len(expected)


def test_a_resumed_policy_forgets_environments_that_cannot_be_restored(tmp_path: Path) -> None:
    """Those that do not repeat cannot be taken up; their old episodes are over."""
    changes = {"task": f"{own_file(tmp_path)}:make", "gym": {"rollout": "continues"}, "steps": 2}
    first_session = gym_session(**changes)
    second_digests = []
    first_session.train(0, quiet, quiet)
    state = first_session.state()
    assert len(state["going_on"]) > 1
    for memory in (state["agent"]["memory"], np.zeros_like(state["agent"]["memory"])):
        session = gym_session(**changes, repeats=False)
        session.resume({**state, "agent": {**state["agent"], "memory": memory}})
        second_digests.append(session.train(1, quiet, quiet).digest)
    assert state["agent"]["memory"].any()
    assert second_digests[0] == second_digests[1]


def test_records_depend_on_seed_settings_and_reward(tmp_path: Path) -> None:
    changes = ({}, {"rng_seed": 6}, {"ppo": {"lr": 1e-2}}, {"reward": {"mode": f"{own_file(tmp_path)}:reward"}})
    assert len({digests(tmp_path, change)[1] for change in changes}) == len(changes)


def test_a_custom_outcome_replaces_the_return(tmp_path: Path) -> None:
    user_file = own_file(tmp_path)
    session = gym_session(f"{user_file}:make", outcome=f"{user_file}:outcome", gym={"rollout": "resets"})
    plain_session = gym_session(f"{user_file}:make", gym={"rollout": "resets"})
    for result, plain_result in zip(
        session.train(0, quiet, quiet).envs, plain_session.train(0, quiet, quiet).envs, strict=True
    ):
        assert result.measures["env_return"] == plain_result.outcome
        assert result.outcome != plain_result.outcome
        assert result.measures["length"] == plain_result.measures["length"]


ENDS = """

class Ends(Walk):
    def __init__(self):
        super().__init__(limit=10_000)

    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, terminated, truncated, {"steps": self.steps} if terminated else {}
"""


@pytest.mark.parametrize("gym", [{}, {"rollout": "resets"}, {"rollout": "continues"}], ids=repr)
@pytest.mark.parametrize("controller", ["ppo", "random"])
def test_the_warm_up_computes_no_outcome(tmp_path: Path, controller: str, gym: dict[str, str]) -> None:
    """Its few steps end no episode, and what an outcome is made of may be there at an end alone."""
    user_file = own_file(tmp_path, ENDS)
    session = gym_session(f"{user_file}:Ends", outcome="info:steps", controller=controller, gym=gym, steps=1_000)
    session.warm_up(quiet)
    assert all(env.outcome == env.measures["length"] > 3.0 for env in session.train(0, quiet, quiet).envs)


COUNTED = """

class Counted(Walk):
    alive = most = 0

    def __init__(self):
        super().__init__()
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)

    def close(self):
        Counted.alive -= 1
"""


@pytest.mark.parametrize("controller", ["ppo", "random"])
def test_a_warm_up_closes_the_environments_that_it_makes(tmp_path: Path, controller: str) -> None:
    user_file = own_file(tmp_path, COUNTED)
    session = gym_session(f"{user_file}:Counted", controller=controller, n_envs=3)
    counted: Any = type(session._env._places[0].env.unwrapped)
    session.warm_up(quiet)
    assert (counted.alive, counted.most) == (3, 6)


OWN_ARRAY = """

KEPT = np.zeros(3)

def reuses(facts):
    KEPT[:] = facts.next_observation[:, 0]
    return KEPT

def fresh(facts):
    return facts.next_observation[:, 0].astype(np.float64)
"""


def test_a_reward_function_may_reuse_its_array(tmp_path: Path) -> None:
    user_file = own_file(tmp_path, OWN_ARRAY)
    records = []
    for name in ("reuses", "fresh"):
        session = gym_session(f"{user_file}:make", reward={"mode": f"{user_file}:{name}"})
        records.append([session.train(episode, quiet, quiet).digest for episode in range(3)])
    assert records[0] == records[1]


def random_actions(space: gymnasium.Space, *uniforms: float) -> tuple[np.ndarray, np.ndarray]:
    """What random actions decide for each of some uniform numbers, and what the environment is given."""
    codec = Codec(spaces.Box(-1.0, 1.0, (2,)), space)
    n_envs = len(uniforms)
    observation = np.zeros((n_envs, 2), dtype=np.float32)
    view = GymSeen(step=1, alive=np.ones(n_envs, dtype=bool), codec=codec, observation=observation)
    decisions = RandomActions().decide(view, np.repeat(np.array(uniforms)[:, None], codec.width, axis=1))
    return decisions, codec.given(decisions)


@pytest.mark.parametrize(
    ("space", "counts", "last_choice"),
    [
        (spaces.MultiDiscrete([3, 4]), [[200] * 3, [150] * 4], [2, 3]),
        (spaces.Box(-1, 1, (1,), np.int8), [[200] * 3], [1]),
        (spaces.Box(0, 1, (1,), np.bool_), [[300] * 2], [1]),
    ],
)
def test_random_actions_are_uniform_over_every_choice(
    space: gymnasium.Space, counts: list, last_choice: list[int]
) -> None:
    decisions, given_actions = random_actions(space, *(np.arange(600) + 0.5) / 600)
    assert [np.unique(column, return_counts=True)[1].tolist() for column in given_actions.T] == counts
    assert decisions.tolist() == given_actions.tolist()
    assert random_actions(space, 1.0 - 2.0**-53)[0].tolist() == [last_choice]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_random_actions_of_an_unbounded_box_are_normal(dtype: type) -> None:
    decisions, given_actions = random_actions(spaces.Box(-np.inf, np.inf, (1,), dtype), 0.001, 0.5, 0.999)
    assert decisions.ravel() == pytest.approx([-3.09, 0.0, 3.09], abs=0.01)
    assert given_actions.ravel() == pytest.approx(decisions.ravel(), abs=0.5)


@pytest.mark.parametrize(("outcome", "controller", "copies"), [("", "ppo", 7), ("width", "ppo", 8), ("", "random", 0)])
def test_a_worker_keeps_the_planned_number_of_copies_of_observations(
    tmp_path: Path, outcome: str, controller: str, copies: int
) -> None:
    """esper_ab/plan/run_cost.py counts with them; beside them there is what belongs to single steps."""
    user_file = own_file(tmp_path)
    shown_bytes = 60 * 2 * 50_000 * 4
    session = gym_session(
        f"{user_file}:Wide", n_envs=2, steps=60, controller=controller, outcome=outcome and f"{user_file}:{outcome}"
    )
    session.train(0, quiet, quiet)
    tracemalloc.start()
    try:
        session.train(1, quiet, quiet)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert copies <= peak / shown_bytes < copies + 0.5


FACTS = GymFacts(
    observation=np.zeros((2, 2), dtype=np.float32),
    action=np.zeros(2, dtype=np.int64),
    next_observation=np.array([[1.0, 0.0], [-3.0, 0.0]], dtype=np.float32),
    env_reward=np.array([0.5, 2.0]),
    terminated=np.array([False, True]),
    truncated=np.array([False, False]),
    step=np.array([1, 1]),
    info=({}, {}),
    stepped=np.array([True, True]),
)
STEP = GymStep(FACTS.env_reward, lambda: FACTS)
EPISODE = GymEpisode(actions=[0, 1], env_rewards=[1.0, 2.5], info={"place": 7, "text": "x"}, terminated=True)


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    return own_file(tmp_path)


def test_environments_are_found_by_id_or_file(user_file: Path) -> None:
    assert maker("gym:CartPole-v1", as_it_is)().spec.id == "CartPole-v1"
    assert maker("gym:gymnasium:CartPole-v1", as_it_is)().spec.id == "CartPole-v1"
    made_env = maker(f"{user_file}:make", as_it_is)()
    env_of_class = maker(f"{user_file}:Unrepeatable", as_it_is)()
    assert made_env.observation_space.shape == env_of_class.observation_space.shape == (2,)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("OWN:nobody", "no function 'nobody'; available:"),
        ("OWN:outcome", "must accept the arguments ()"),
        ("OWNx:make", "importing"),
        ("gym:CartPol-v1", "CartPole"),
        ("gym:gymnasium:CartPol-v1", "CartPole"),
        ("gym:no_such_lab:Walk-v0", "task 'gym:no_such_lab:Walk-v0': importing 'no_such_lab' failed: ModuleNotFound"),
        ("gym::CartPole-v1", "'gym::CartPole-v1': expected gym:ID or gym:module:ID"),
        ("gym:.lab:CartPole-v1", "'gym:.lab:CartPole-v1': expected gym:ID or gym:module:ID"),
        ("gym:a:b:CartPole-v1", "expected gym:ID or gym:module:ID"),
        (
            "gym:CartPole",
            "'gym:CartPole' names no version, and means another environment when a newer one is "
            "installed; gym:CartPole-v1 is the newest here",
        ),
        ("gym:gymnasium:CartPole", "; gym:gymnasium:CartPole-v1 is the newest here"),
    ],
)
def test_an_invalid_or_ambiguous_environment_is_refused_in_one_line(user_file: Path, name: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)) as refusal:
        maker(name.replace("OWN", str(user_file)), as_it_is)
    assert "\n" not in str(refusal.value)


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


def test_an_outcome_is_the_return_an_info_entry_or_a_function(user_file: Path) -> None:
    assert outcome_of("", as_it_is)(EPISODE) == 3.5
    assert outcome_of("info:place", as_it_is)(EPISODE) == 7.0
    assert outcome_of(f"{user_file}:outcome", as_it_is)(EPISODE) == 2.0
    with pytest.raises(ValueError, match=r"outcome 'info:plaice': info .* has no such key; it has place, text"):
        outcome_of("info:plaice", as_it_is)(EPISODE)
    with pytest.raises(ValueError, match=r"outcome 'place': expected info:place, or path/to/file\.py:function"):
        outcome_of("place", as_it_is)
    with pytest.raises(UserCodeFailed, match="outcome 'info:text': could not convert"):
        outcome_of("info:text", as_it_is)(EPISODE)


def test_a_reward_receives_its_constants(user_file: Path) -> None:
    def reward(name: str, **params: object) -> list[float]:
        mode = "env" if name == "env" else f"{user_file}:{name}"
        return reward_of(RewardSettings(mode=mode, params=params), as_it_is)(STEP).tolist()

    assert reward("env") == [0.5, 2.0]
    step_without_facts = GymStep(FACTS.env_reward, lambda: pytest.fail("nobody reads facts"))
    assert reward_of(RewardSettings(mode="env"), as_it_is)(step_without_facts) is FACTS.env_reward
    assert reward("reward") == [-1.0, -3.0]
    assert reward("weighted") == [1.0, 4.0]
    assert reward("weighted", weight=3) == [1.5, 6.0]
    with pytest.raises(UserCodeFailed, match=r"failed: KeyError: 'place' \(own.py, line"):
        reward("place_of_info")
    for name, params, complaint in (
        ("env", {"weight": 1.0}, "has no constants"),
        ("reward", {"weight": 1.0}, "no parameter for constants"),
        ("weighted", {"wait": 1.0}, "has no constant 'wait'; Params has weight"),
        ("weighted", {"weight": "heavy"}, "Expected `float`"),
        ("untyped", {}, "annotate 'params'"),
    ):
        with pytest.raises(ValueError, match=complaint):
            reward(name, **params)


TYPED = """
from __future__ import annotations
from typing import TYPE_CHECKING
import msgspec
if TYPE_CHECKING:
    from workers.kinds.gymnasium.facts import GymFacts

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


@pytest.mark.parametrize("in_own_module", [False, True])
def test_constants_of_a_module_in_a_package_may_be_annotated(tmp_path: Path, in_own_module: bool) -> None:
    package = tmp_path / "lab_typed"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "constants.py").write_text(IN_PACKAGE)
    total = "(params.weight + params.inner.more) * facts.env_reward"
    reward = f"\n\ndef typed(facts, params: Params):\n    return {total}\n"
    user_file = "from __future__ import annotations\nfrom .constants import Params" if in_own_module else IN_PACKAGE
    modules_before = dict(sys.modules)
    assert typed_reward(package / "mine.py", user_file + reward) == [1.0, 4.0]
    assert typed_reward(package / "mine.py", user_file + reward, weight=3, inner={"more": 1}) == [2.0, 8.0]
    with pytest.raises(ValueError, match=r"Expected `float` > 0.0"):
        typed_reward(package / "mine.py", user_file + reward, weight=-1.0)
    assert [name for name in sys.modules if name.startswith("lab_typed")] == []
    assert sys.modules.items() >= modules_before.items()


@pytest.mark.parametrize(
    ("old_text", "new_text", "complaint"),
    [
        ("params: Params)", "params: Param)", r"of 'params' cannot be resolved: NameError: .*'Param' is not defined"),
        ("weight: float", "weight: GymFacts", r"of Params cannot be resolved: NameError: .*'GymFacts' is not defined"),
        ("weight: float", "weight: GymFacts", r"import the names that they use outside of `if TYPE_CHECKING:`"),
        ("weight: float", "weight: Params | dict | Sized", r"of Params cannot be resolved: NameError"),
        ("weight: float", "weight: Params | object()", r"of Params cannot be resolved: TypeError"),
        ("weight: float", "weight: complex | range", r"of Params cannot be resolved: TypeError: Type unions"),
        (
            "\ndef typed",
            "    def __post_init__(self):\n        raise KeyError(self.weight)\n\ndef typed",
            r"Params failed: KeyError: 2.0 \(mine.py, line 11\)",
        ),  # a check of its own
    ],
)
def test_type_checking_imports_are_refused_only_in_constants(
    tmp_path: Path, old_text: str, new_text: str, complaint: str
) -> None:
    assert typed_reward(tmp_path / "mine.py") == [1.0, 4.0]
    assert typed_reward(tmp_path / "mine.py", weight=3.0) == [1.5, 6.0]
    with pytest.raises(ValueError, match=rf"reward mode '.*mine.py:typed': .*{complaint}") as refusal:
        typed_reward(tmp_path / "mine.py", TYPED.replace(old_text, new_text))
    assert "\n" not in str(refusal.value)
