"""Runs of Gymnasium's environments: what their records depend on, and what they must not depend on."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from support.gym_world import gym_session, own_file
from support.tensor_world import quiet

from workers.gymnasium_task.environments import GymSeen
from workers.gymnasium_task.spaces import Codec
from workers.gymnasium_task.world import RandomActions
from workers.storage import state_bytes

PENDULUM = {"task": "gym:Pendulum-v1", "steps": 6}
ROLLOUTS: list[dict[str, Any]] = [
    {}, {"policy": {"memory": "none"}}, {"gym": {"rollout": "resets"}}, {"gym": {"rollout": "continues"}, "steps": 5},
    {"gym": {"rollout": "continues"}, "steps": 5, "policy": {"memory": "none"}}, PENDULUM,
    {"controller": "random"}, {"controller": "random", **PENDULUM},
]  # fmt: skip


def digests(tmp_path: Path, changes: dict[str, Any], taken_up_at: int = -1) -> list[str]:
    changes = {"task": f"{own_file(tmp_path)}:make", **changes}
    session, found = gym_session(**changes), []
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
    first, found = gym_session(**changes), []
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
    own, records = own_file(tmp_path, OWN_ARRAY), []
    for name in ("reuses", "fresh"):
        session = gym_session(f"{own}:make", reward={"mode": f"{own}:{name}"})
        records.append([session.train(episode, quiet, quiet).digest for episode in range(3)])
    assert records[0] == records[1]


def randomly(space: gymnasium.Space, *uniforms: float) -> tuple[np.ndarray, np.ndarray]:
    """What random actions decide for each of some uniform numbers, and what the environment is given."""
    codec, n_envs = Codec(spaces.Box(-1.0, 1.0, (2,)), space), len(uniforms)
    observation = np.zeros((n_envs, 2), dtype=np.float32)
    seen = GymSeen(step=1, alive=np.ones(n_envs, dtype=bool), codec=codec, observation=observation)
    decisions = RandomActions().decide(seen, np.repeat(np.array(uniforms)[:, None], codec.width, axis=1))
    return decisions, codec.given(decisions)


@pytest.mark.parametrize(("space", "counts", "last"), [
    (spaces.MultiDiscrete([3, 4]), [[200] * 3, [150] * 4], [2, 3]),
    (spaces.Box(-1, 1, (1,), np.int8), [[200] * 3], [1]), (spaces.Box(0, 1, (1,), np.bool_), [[300] * 2], [1]),
])  # fmt: skip
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
    """esper_ab/plan/estimate.py counts with them; beside them there is what belongs to single steps."""
    own, shown = own_file(tmp_path), 60 * 2 * 50_000 * 4
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
