"""Settings of a Gymnasium task: its names, defaults and constants, and what it does not read."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.asking import asked, machine, planned, toml

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


def there(**facts: object) -> Machine:
    mine = UserReward(reference="/r.py:f", sha256="0", problem="")
    task = msgspec.structs.replace(FACTS, **facts)
    return machine(rewards=("env",), controllers=("random",), tasks=(task,), user_rewards=(mine,))


def plan(*groups: str, facts: dict[str, object] | None = None, **options: Any) -> Plan:
    return planned(asked(*groups or ("env", "random"), task=GYM, margin=5.0, **options), there(**(facts or {})))


def notes(*groups: str, **facts: object) -> str:
    return " ".join(plan(*groups, facts=facts).notes)


def test_groups_train_on_the_environments_own_reward_unless_they_name_another(tmp_path: Path) -> None:
    experiment = asked("env", "random", f"mine={tmp_path}/r.py:reward", task=GYM, margin=5.0)
    modes = {one.name: (one.settings.reward.mode, one.settings.controller.name) for one in experiment.groups}
    mine = f"{tmp_path}/r.py:reward"
    assert modes == {"env": ("env", "ppo"), "random": ("env", "random"), "mine": (mine, "ppo")}
    assert (experiment.n_envs, experiment.episodes, experiment.steps) == (8, 50, 1000)
    assert asked("env", "random", task=GYM, steps=7, n_envs=2).steps == 7


def test_constants_of_ones_own_reward_are_typed_by_what_they_look_like() -> None:
    experiment = asked(
        "a=r.py:reward",
        "b=r.py:reward",
        task=GYM,
        group=("a:reward.params.w=0.5,reward.params.n=2",),
        sets=("reward.params.on=true", "reward.params.kind=soft"),
    )
    assert experiment.groups[0].settings.reward.params == {"w": 0.5, "n": 2, "on": True, "kind": "soft"}
    assert experiment.groups[1].settings.reward.params == {"on": True, "kind": "soft"}


def test_files_of_a_toml_file_begin_in_its_folder(tmp_path: Path) -> None:
    file = toml(tmp_path, 'task = "env.py:make"\noutcome = "o.py:f"\ngroups = ["env", "random"]\n')
    experiment = asked(toml=file)
    assert (experiment.task, experiment.outcome) == (f"{tmp_path}/env.py:make", f"{tmp_path}/o.py:f")
    questions = settings_of(experiment.task).ask(experiment)
    assert questions.rewards["env"] == RewardSettings(mode="env")


def test_a_plan_says_what_a_worker_needs_and_nothing_of_growth(tmp_path: Path) -> None:
    spec = plan(facts={"repeats": False}, outcome="info:x").blocks[0].runs[0]
    assert (spec.outcome, spec.repeats, spec.eval_reward_modes, spec.slots) == ("info:x", False, ("env",), ())
    assert spec.arithmetic.kernel == "torch"
    assert spec.env_devices[0].startswith("cpu:")


def test_notes_say_who_trains_on_the_outcome_and_what_does_not_repeat() -> None:
    text = notes("env", MINE, repeats=False)
    assert "The outcome is also the reward of env" in text
    assert "The environments do not repeat" in text
    own = notes()
    assert "also the reward" not in own
    assert "do not repeat" not in own
    assert "scheduling cannot affect results" in own


def test_notes_say_what_follows_where_environments_carry_state_across_resets() -> None:
    carrying = plan(facts={"repeats": False, "carries": True})
    text = " ".join(carrying.notes)
    assert "The environments carry state from one reset to the next" in text
    assert "a run that is retried after its worker dies will differ" in text
    assert "an evaluation starts without that state" in text
    assert "groups with equal settings will differ" not in text
    assert "do not repeat" not in text
    assert carrying.carries
    assert not plan(facts={"repeats": False}).carries


def test_minibatches_are_of_whole_environments_only_where_memories_are_of_whole_episodes() -> None:
    for text in ("policy.memory=none", "gym.rollout=resets"):
        plan(sets=("ppo.minibatches=32", text))
    with pytest.raises(UsageError, match="minibatch"):
        plan(sets=("ppo.minibatches=32",))


def test_a_plans_toml_is_read_back_as_the_same_settings(tmp_path: Path) -> None:
    first = plan("env", MINE, group=("mine:reward.params.w=0.5",))
    text = experiment_toml(first, there())
    assert "growth" not in text
    assert "bias_" not in text
    again = asked(toml=toml(tmp_path, text))
    expected = {one.name: one.settings for one in first.experiment.groups}
    assert {one.name: one.settings for one in again.groups} == expected
    assert planned(again, there()).digest == first.digest
