"""Settings of a Gymnasium task: names, defaults, reward constants, notes and TOML."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.plans.requests import asked, machine, planned, toml

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Machine, TaskFacts, UserReward
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import RewardSettings
from esper_ab.plan.plan import Plan
from esper_ab.plan.settings_toml import experiment_toml
from esper_ab.settings.kind import settings_of

GYM = "gym:CartPole-v1"
RETURN = TaskMeasures(outcome=Measure(name="env_return", label="return", better="higher"))
FACTS = TaskFacts(
    name=GYM,
    title="Gymnasium",
    measures=RETURN,
    kind="gymnasium",
    step_s=1e-5,
    episode_steps=500,
)
MINE = "mine=/r.py:f"


def machine_with(**facts: object) -> Machine:
    user_reward = UserReward(reference="/r.py:f", sha256="0", problem="")
    task = msgspec.structs.replace(FACTS, **facts)
    return machine(rewards=("env",), controllers=("random",), tasks=(task,), user_rewards=(user_reward,))


def plan(*groups: str, facts: dict[str, object] | None = None, **options: Any) -> Plan:
    return planned(asked(*groups or ("env", "random"), task=GYM, margin=5.0, **options), machine_with(**(facts or {})))


def notes(*groups: str, **facts: object) -> str:
    return " ".join(plan(*groups, facts=facts).notes)


def test_a_group_without_a_reward_uses_the_reward_of_the_environment(tmp_path: Path) -> None:
    experiment = asked("env", "random", f"mine={tmp_path}/r.py:reward", task=GYM, margin=5.0)
    modes = {group.name: (group.settings.reward.mode, group.settings.controller.name) for group in experiment.groups}
    user_reward = f"{tmp_path}/r.py:reward"
    assert modes == {"env": ("env", "ppo"), "random": ("env", "random"), "mine": (user_reward, "ppo")}
    assert (experiment.n_envs, experiment.episodes, experiment.steps) == (8, 50, 1000)
    assert asked("env", "random", task=GYM, steps=7, n_envs=2).steps == 7


def test_the_spelling_of_a_reward_constant_determines_its_type() -> None:
    experiment = asked(
        "a=r.py:reward",
        "b=r.py:reward",
        task=GYM,
        group=("a:reward.params.w=0.5,reward.params.n=2",),
        sets=("reward.params.on=true", "reward.params.kind=soft"),
    )
    assert experiment.groups[0].settings.reward.params == {"w": 0.5, "n": 2, "on": True, "kind": "soft"}
    assert experiment.groups[1].settings.reward.params == {"on": True, "kind": "soft"}


def test_paths_in_a_toml_file_are_relative_to_its_folder(tmp_path: Path) -> None:
    file = toml(tmp_path, 'task = "env.py:make"\noutcome = "o.py:f"\ngroups = ["env", "random"]\n')
    experiment = asked(toml=file)
    assert (experiment.task, experiment.outcome) == (f"{tmp_path}/env.py:make", f"{tmp_path}/o.py:f")
    questions = settings_of(experiment.task).ask(experiment)
    assert questions.rewards["env"] == RewardSettings(mode="env")


def test_a_gymnasium_plan_has_no_growth_settings(tmp_path: Path) -> None:
    spec = plan(facts={"repeats": False}, outcome="info:x").blocks[0].runs[0]
    assert (spec.outcome, spec.repeats, spec.eval_reward_modes, spec.slots) == ("info:x", False, ("env",), ())
    assert spec.arithmetic.kernel == "torch"
    assert spec.env_devices[0].startswith("cpu:")


def test_a_note_names_the_groups_whose_reward_is_the_outcome() -> None:
    assert "The outcome is also the reward of env" in notes("env", MINE)
    assert "also the reward" not in notes()


def test_a_note_says_whether_environments_repeat() -> None:
    assert "The environments do not repeat" in notes("env", MINE, repeats=False)
    plain_text = notes()
    assert "do not repeat" not in plain_text
    assert "scheduling cannot affect results" in plain_text


def test_notes_explain_environments_that_carry_state_across_resets() -> None:
    carrying_plan = plan(facts={"repeats": False, "carries": True})
    text = " ".join(carrying_plan.notes)
    assert "The environments carry state from one reset to the next" in text
    assert "a run that is retried after its worker dies will differ" in text
    assert "an evaluation starts without that state" in text
    assert "groups with equal settings will differ" not in text
    assert "do not repeat" not in text
    assert carrying_plan.carries
    assert not plan(facts={"repeats": False}).carries


def test_a_policy_memory_over_episodes_limits_the_number_of_minibatches() -> None:
    for text in ("policy.memory=none", "gym.rollout=resets"):
        plan(sets=("ppo.minibatches=32", text))
    with pytest.raises(UsageError, match="minibatch"):
        plan(sets=("ppo.minibatches=32",))


def test_settings_written_as_toml_are_read_back_unchanged(tmp_path: Path) -> None:
    first_plan = plan("env", MINE, group=("mine:reward.params.w=0.5",))
    text = experiment_toml(first_plan, machine_with())
    assert "growth" not in text
    assert "bias_" not in text
    request = asked(toml=toml(tmp_path, text))
    expected = {group.name: group.settings for group in first_plan.experiment.groups}
    assert {group.name: group.settings for group in request.groups} == expected
    assert planned(request, machine_with()).digest == first_plan.digest
