"""Runs of Gymnasium's environments: what their records depend on; tasks, outcomes and rewards by name."""

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


def digests(tmp_path: Path, changes: dict[str, Any], taken_up_at: int = -1) -> list[str]:
    changes = {"task": f"{own_file(tmp_path)}:make", **changes}
    session = gym_session(**changes)
    found = []
    session.warm_up(quiet)
    for episode in range(session.spec.episodes):
        if episode == taken_up_at and (state := session.state()) is not None:
            kept = state_bytes.to_bytes(state)
            session = gym_session(**changes)
            session.resume(state_bytes.from_bytes(kept))
            session.warm_up(quiet)
        found.append(session.train(episode, quiet, quiet).digest)
    return [*found, session.evaluate(tmp_path, quiet).digest]


@pytest.mark.parametrize("changes", ROLLOUTS, ids=repr)
def test_equal_settings_give_equal_records_also_when_taken_up(tmp_path: Path, changes: dict[str, Any]) -> None:
    expected = digests(tmp_path, changes)
    assert digests(tmp_path, {**changes, "group": "renamed", "telemetry": False}) == expected
    assert digests(tmp_path, changes, taken_up_at=2) == expected
    assert len(set(expected)) == len(expected)


def test_a_policy_remembers_nothing_of_environments_that_begin_anew(tmp_path: Path) -> None:
    """Those that do not repeat cannot be taken up; their old episodes are over."""
    changes = {"task": f"{own_file(tmp_path)}:make", "gym": {"rollout": "continues"}, "steps": 2}
    first = gym_session(**changes)
    found = []
    first.train(0, quiet, quiet)
    state = first.state()
    assert len(state["going_on"]) > 1
    for memory in (state["agent"]["memory"], np.zeros_like(state["agent"]["memory"])):
        session = gym_session(**changes, repeats=False)
        session.resume({**state, "agent": {**state["agent"], "memory": memory}})
        found.append(session.train(1, quiet, quiet).digest)
    assert state["agent"]["memory"].any()
    assert found[0] == found[1]


def test_what_matters_changes_records(tmp_path: Path) -> None:
    changes = ({}, {"rng_seed": 6}, {"ppo": {"lr": 1e-2}}, {"reward": {"mode": f"{own_file(tmp_path)}:reward"}})
    assert len({digests(tmp_path, change)[1] for change in changes}) == len(changes)


def test_an_outcome_of_ones_own_is_what_is_compared_and_the_return_stands_beside_it(tmp_path: Path) -> None:
    own = own_file(tmp_path)
    session = gym_session(f"{own}:make", outcome=f"{own}:outcome", gym={"rollout": "resets"})
    plain = gym_session(f"{own}:make", gym={"rollout": "resets"})
    for mine, theirs in zip(session.train(0, quiet, quiet).envs, plain.train(0, quiet, quiet).envs, strict=True):
        assert mine.measures["env_return"] == theirs.outcome
        assert mine.outcome != theirs.outcome
        assert mine.measures["length"] == theirs.measures["length"]


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
def test_the_warm_up_asks_for_no_outcome(tmp_path: Path, controller: str, gym: dict[str, str]) -> None:
    """Its few steps end no episode, and what an outcome is made of may be there at an end alone."""
    own = own_file(tmp_path, ENDS)
    session = gym_session(f"{own}:Ends", outcome="info:steps", controller=controller, gym=gym, steps=1_000)
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
def test_a_warm_up_makes_its_own_environments_once_and_keeps_none(tmp_path: Path, controller: str) -> None:
    own = own_file(tmp_path, COUNTED)
    session = gym_session(f"{own}:Counted", controller=controller, n_envs=3)
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


def test_a_reward_may_write_into_its_own_array_at_the_next_step(tmp_path: Path) -> None:
    own = own_file(tmp_path, OWN_ARRAY)
    records = []
    for name in ("reuses", "fresh"):
        session = gym_session(f"{own}:make", reward={"mode": f"{own}:{name}"})
        records.append([session.train(episode, quiet, quiet).digest for episode in range(3)])
    assert records[0] == records[1]


def randomly(space: gymnasium.Space, *uniforms: float) -> tuple[np.ndarray, np.ndarray]:
    """What random actions decide for each of some uniform numbers, and what the environment is given."""
    codec = Codec(spaces.Box(-1.0, 1.0, (2,)), space)
    n_envs = len(uniforms)
    observation = np.zeros((n_envs, 2), dtype=np.float32)
    seen = GymSeen(step=1, alive=np.ones(n_envs, dtype=bool), codec=codec, observation=observation)
    decisions = RandomActions().decide(seen, np.repeat(np.array(uniforms)[:, None], codec.width, axis=1))
    return decisions, codec.given(decisions)


@pytest.mark.parametrize(
    ("space", "counts", "last"),
    [
        (spaces.MultiDiscrete([3, 4]), [[200] * 3, [150] * 4], [2, 3]),
        (spaces.Box(-1, 1, (1,), np.int8), [[200] * 3], [1]),
        (spaces.Box(0, 1, (1,), np.bool_), [[300] * 2], [1]),
    ],
)
def test_random_actions_are_uniform_over_every_choice(space: gymnasium.Space, counts: list, last: list[int]) -> None:
    decisions, given = randomly(space, *(np.arange(600) + 0.5) / 600)
    assert [np.unique(column, return_counts=True)[1].tolist() for column in given.T] == counts
    assert decisions.tolist() == given.tolist()
    assert randomly(space, 1.0 - 2.0**-53)[0].tolist() == [last]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_random_actions_of_a_box_without_bounds_are_normal_whatever_its_numbers(dtype: type) -> None:
    decisions, given = randomly(spaces.Box(-np.inf, np.inf, (1,), dtype), 0.001, 0.5, 0.999)
    assert decisions.ravel() == pytest.approx([-3.09, 0.0, 3.09], abs=0.01)
    assert given.ravel() == pytest.approx(decisions.ravel(), abs=0.5)


@pytest.mark.parametrize(("outcome", "controller", "copies"), [("", "ppo", 7), ("width", "ppo", 8), ("", "random", 0)])
def test_a_worker_keeps_so_many_copies_of_what_a_rollout_shows(
    tmp_path: Path, outcome: str, controller: str, copies: int
) -> None:
    """esper_ab/plan/run_cost.py counts with them; beside them there is what belongs to single steps."""
    own = own_file(tmp_path)
    shown = 60 * 2 * 50_000 * 4
    session = gym_session(
        f"{own}:Wide", n_envs=2, steps=60, controller=controller, outcome=outcome and f"{own}:{outcome}"
    )
    session.train(0, quiet, quiet)
    tracemalloc.start()
    try:
        session.train(1, quiet, quiet)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert copies <= most / shown < copies + 0.5


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
def own(tmp_path: Path) -> Path:
    return own_file(tmp_path)


def test_environments_by_id_and_by_file(own: Path) -> None:
    assert maker("gym:CartPole-v1", as_it_is)().spec.id == "CartPole-v1"
    assert maker("gym:gymnasium:CartPole-v1", as_it_is)().spec.id == "CartPole-v1"
    first = maker(f"{own}:make", as_it_is)()
    second = maker(f"{own}:Unrepeatable", as_it_is)()
    assert first.observation_space.shape == second.observation_space.shape == (2,)


@pytest.mark.parametrize(
    ("name", "said"),
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
        ("env", {"weight": 1.0}, "has no constants"),
        ("reward", {"weight": 1.0}, "no parameter for constants"),
        ("weighted", {"wait": 1.0}, "has no constant 'wait'; Params has weight"),
        ("weighted", {"weight": "heavy"}, "Expected `float`"),
        ("untyped", {}, "annotate 'params'"),
    ):
        with pytest.raises(ValueError, match=said):
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


@pytest.mark.parametrize(
    ("old", "new", "said"),
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
def test_names_that_only_a_type_checker_knows_are_no_concern_but_in_the_constants(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert typed_reward(tmp_path / "mine.py") == [1.0, 4.0]
    assert typed_reward(tmp_path / "mine.py", weight=3.0) == [1.5, 6.0]
    with pytest.raises(ValueError, match=rf"reward mode '.*mine.py:typed': .*{said}") as refused:
        typed_reward(tmp_path / "mine.py", TYPED.replace(old, new))
    assert "\n" not in str(refused.value)
