"""Facts about a Gymnasium task that the preflight measures."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support.worlds.gym_world import own_file

from esper_ab.contracts.machine import Questions
from esper_ab.contracts.settings import RewardSettings
from workers.environments import AboutTask
from workers.kinds.gymnasium.preflight import probe


def ask(task: str, *modes: str, params: dict[str, Any] | None = None, **questions: Any) -> AboutTask:
    rewards = {f"g{place}": RewardSettings(mode=mode, params=params or {}) for place, mode in enumerate(modes)}
    user_modes = tuple(mode for mode in modes if ":" in mode)
    return probe(Questions(task=task, data_dir="", user_rewards=user_modes, rewards=rewards, **questions), AboutTask())


def test_the_preflight_measures_a_registered_environment() -> None:
    answer = ask("gym:CartPole-v1", "env")
    (task,) = answer.tasks
    assert (answer.task_problem, answer.reward_problems, answer.user_rewards) == ("", {}, ())
    assert (task.kind, task.repeats, task.episode_steps) == ("gymnasium", True, 500)
    assert task.step_s > 0.0
    assert 8 < task.seen_steps < 100
    assert (task.measures.outcome.label, task.measures.margin) == ("return", None)
    assert task.action_bounds == ()
    assert ask("gym:Pendulum-v1", "env").tasks[0].action_bounds == ((-2.0, 2.0),)


def test_the_preflight_measures_no_length_of_an_endless_episode(tmp_path: Path) -> None:
    user_file = own_file(tmp_path, TELLS)
    assert ask(f"{user_file}:Level", "env").tasks[0].seen_steps == 9
    assert ask(f"{user_file}:endless", "env").tasks[0].seen_steps == 0


CARRIES = """

class Normalised(gymnasium.wrappers.NormalizeObservation):
    def __init__(self):
        super().__init__(Walk())

class Curriculum(Walk):
    level = 0

    def reset(self, *, seed=None, options=None):
        self.level += 1
        return super().reset(seed=seed)

    def step(self, action):
        shown, reward, *rest = super().step(action)
        return shown, reward * self.level, *rest

class Counts(Curriculum):
    def step(self, action):
        return *Walk.step(self, action)[:-1], {"level": self.level}

class Looks(Curriculum):
    level = 0

    def step(self, action):
        return Walk.step(self, action)

class Both(Unrepeatable, Curriculum):
    pass
"""


@pytest.mark.parametrize(
    ("name", "outcome", "repeats", "carries"),
    [
        ("Normalised", "", False, True),
        ("Curriculum", "", False, True),
        ("Counts", "", True, False),
        ("Counts", "info:level", False, True),
        ("Looks", "", True, False),
        ("make", "", True, False),
        ("Unrepeatable", "", False, False),
        ("Both", "", False, False),
    ],
)
def test_the_preflight_detects_environments_that_carry_state_or_do_not_repeat(
    tmp_path: Path, name: str, outcome: str, repeats: bool, carries: bool
) -> None:
    user_file = own_file(tmp_path, CARRIES)
    answer = ask(f"{user_file}:{name}", "env", outcome=outcome)
    assert (answer.task_problem, answer.tasks[0].repeats, answer.tasks[0].carries) == ("", repeats, carries)


def test_the_preflight_reports_all_user_code_for_copying(tmp_path: Path) -> None:
    user_file = own_file(tmp_path)
    answer = ask(f"{user_file}:make", f"{user_file}:reward", outcome=f"{user_file}:outcome", outcome_better="lower")
    assert {code.reference for code in answer.user_rewards} == {
        f"{user_file}:{name}" for name in ("make", "reward", "outcome")
    }
    assert all(code.files == ("own.py",) and code.sha256 for code in answer.user_rewards)
    measures = answer.tasks[0].measures
    assert (measures.outcome.label, measures.outcome.better) == ("outcome", "lower")
    assert measures.names == ("env_return", "length")


def test_the_preflight_tries_the_reward_of_every_group_with_its_constants(tmp_path: Path) -> None:
    user_file = own_file(tmp_path)
    answer = ask(f"{user_file}:make", f"{user_file}:reward", f"{user_file}:weighted", f"{user_file}:nobody", "env")
    assert list(answer.reward_problems) == ["g2"]
    problems = ask(f"{user_file}:make", f"{user_file}:weighted", params={"wait": 1.0}).reward_problems
    assert "has no constant 'wait'" in problems["g0"]
    assert problems["g0"].startswith(f"reward={user_file}:weighted")


def test_an_outcome_range_exceeded_by_random_actions_is_refused(tmp_path: Path) -> None:
    outcome = ask("gym:CartPole-v1", "env", outcome_low=0.0, outcome_high=500.0).tasks[0].measures.outcome
    assert (outcome.low, outcome.high) == (0.0, 500.0)
    problem = ask("gym:CartPole-v1", "env", outcome_low=-9.0, outcome_high=0.0).task_problem
    assert "the return of random actions was" in problem
    assert "which ⟦outcome_range⟧ says is impossible" in problem


def test_the_preflight_refuses_outcomes_that_are_not_numbers(
    tmp_path: Path,
) -> None:
    user_file = own_file(tmp_path, "\n\ndef never(episode):\n    return float('nan')\n")
    task = f"{user_file}:make"
    outcome = f"{user_file}:never"
    assert "--outcome-range" in ask(task, "env", outcome=outcome).task_problem
    assert ask(task, "env", outcome=outcome, outcome_low=-1.0, outcome_worst=-1.0).task_problem == ""


BROKEN = """

class Shows(Walk):
    def _seen(self):
        return np.zeros(3, dtype=np.float32)

class Nothing(Walk):
    def _seen(self):
        return np.full(2, np.nan if self.steps else 0.0, dtype=np.float32)

class OldReset(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]

class OldStep(Walk):
    def step(self, action):
        return super().step(action)[:4]

class Raises(Walk):
    def step(self, action):
        return {}["nothing"]

class NoSpace(Walk):
    observation_space = None

class Opens(Walk):
    def close(self):
        raise RuntimeError("it cannot be closed")

"""


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Shows", "reset of the environment: it shows 3 numbers, and observation_space is Box(-10.0, 10.0, (2,)"),
        ("Nothing", "what it shows before step 2 is not finite"),
        ("OldReset", "reset of the environment: it returned a ndarray, not (observation, info)"),
        ("OldStep", "step of the environment: it returned 4 parts, not (observation, reward, terminated"),
        ("Raises", "step of the environment: KeyError: 'nothing' (own.py, line "),
        ("NoSpace", "it has no observation_space, a gymnasium.Space"),
        ("Opens", ""),
    ],
)
def test_an_environment_that_breaks_its_contract_is_reported(tmp_path: Path, name: str, complaint: str) -> None:
    problem = ask(f"{own_file(tmp_path, BROKEN)}:{name}", "env").task_problem
    assert problem.startswith(complaint)
    assert bool(problem) == bool(complaint)


def test_the_preflight_detects_a_nondeterministic_reward(tmp_path: Path) -> None:
    user_file = own_file(
        tmp_path, "\n\ndef noisy(facts):\n    return np.random.default_rng().normal(size=len(facts.step))\n"
    )
    answer = ask("gym:CartPole-v1", f"{user_file}:noisy", f"{user_file}:reward")
    repeats = {code.reference.rpartition(":")[2]: code.repeats for code in answer.user_rewards}
    assert repeats == {"noisy": False, "reward": True}
    assert (answer.task_problem, answer.reward_problems) == ("", {})


def test_the_memory_of_an_episode_does_not_grow_with_its_steps(tmp_path: Path) -> None:
    """All that 60 steps of two environments show takes 23 MiB, once."""
    user_file = own_file(tmp_path)
    tracemalloc.start()
    try:
        answer = ask(f"{user_file}:Wide", f"{user_file}:late", "env")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (answer.task_problem, answer.tasks[0].repeats, answer.tasks[0].observation_width) == ("", True, 50_000)
    assert list(answer.reward_problems) == ["g0"]
    assert "is not finite at step 40: [nan, nan]" in answer.reward_problems["g0"]
    assert peak < 8 << 20


TELLS = """

class Level(Walk):
    def step(self, action):
        seen, reward, _, *rest = super().step(action)
        return seen, reward, False, *rest

def endless():
    return Level(limit=10**9)

def only_of_ended(facts):
    return np.where(facts.next_observation[:, 1] == 0.0, np.nan, 0.0)

def not_of_ended(facts):
    return 1.0 / facts.next_observation[:, 1].astype(int).tolist()[0] + np.zeros(len(facts.info))
"""


def test_the_preflight_tries_a_reward_with_an_ended_environment(tmp_path: Path) -> None:
    """Episodes of random actions may all end at once, by a limit; those of a policy do not."""
    user_file = own_file(tmp_path, TELLS)
    names = ("place_of_info", "only_of_ended", "not_of_ended")
    problems = ask(f"{user_file}:Level", *(f"{user_file}:{name}" for name in names), "env").reward_problems
    assert list(problems) == ["g2"]
    assert "failed: ZeroDivisionError" in problems["g2"]
