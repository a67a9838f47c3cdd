"""Settings of a Gymnasium task: its names, defaults and constants, and what it does not read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.asking import asked, group, machine, planned, toml

from esper_ab.contracts.children import TaskFacts, UserReward
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import GymSettings, RewardSettings
from esper_ab.plan.plan import Plan
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kinds import kind_of

GYM = "gym:CartPole-v1"
RETURN = TaskMeasures(outcome=Measure(name="env_return", label="return", better="higher"))


def found(**changes: object) -> TaskFacts:
    facts = {"title": "Gymnasium", "measures": RETURN, "kind": "gymnasium", "step_s": 1e-5, "episode_steps": 500}
    return TaskFacts(name=GYM, **facts | changes)


def plan(experiment: AskedExperiment, **changes: object) -> Plan:
    there = machine(rewards=("env",), controllers=("random",), tasks=(found(**changes),))
    return planned(experiment, there)


def test_groups_train_on_the_environments_own_reward_unless_they_name_another(tmp_path: Path) -> None:
    experiment = asked("env", "random", f"mine={tmp_path}/r.py:reward", task=GYM, margin=5.0)
    modes = {one.name: (one.settings.reward.mode, one.settings.controller.name) for one in experiment.groups}
    mine = f"{tmp_path}/r.py:reward"
    assert modes == {"env": ("env", "ppo"), "random": ("env", "random"), "mine": (mine, "ppo")}
    assert (experiment.n_envs, experiment.episodes, experiment.steps) == (8, 50, 1000)
    assert asked("env", "random", task=GYM, steps=7, n_envs=2).steps == 7


def test_constants_of_ones_own_reward_are_typed_by_what_they_look_like() -> None:
    experiment = asked(
        "a=r.py:reward", "b=r.py:reward", task=GYM, group=("a:reward.params.w=0.5,reward.params.n=2",),
        sets=("reward.params.on=true", "reward.params.kind=soft"),
    )  # fmt: skip
    assert experiment.groups[0].settings.reward.params == {"w": 0.5, "n": 2, "on": True, "kind": "soft"}
    assert experiment.groups[1].settings.reward.params == {"on": True, "kind": "soft"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"slots": ["early"]}, "--slots: slots is a setting of growing networks; task gym:CartPole-v1 does not read"),
        ({"sets": ("growth.host_lr=1",)}, "growth.host_lr is a setting of growing networks"),
        ({"sets": ("reward.rent_weight=1",)}, "reward.rent_weight is a setting of growing"),
        ({"group": ("env:policy.bias_wait=1",)}, "policy.bias_wait is a setting of growing"),
    ],
)  # fmt: skip
def test_what_growth_alone_reads_is_refused_by_name(flags: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        asked("env", "random", task=GYM, **flags)


@pytest.mark.parametrize("text", ["gym.rollout=resets", "reward.params.w=1", "outcome=info:x"])
def test_what_gymnasium_alone_reads_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"is a setting of Gymnasium environments.*; task digits does not read it"):
        asked("shaped", "wait", sets=(text,))


@pytest.mark.parametrize("name", ["wait", "heuristic", "schedule", "shaped"])
def test_controllers_and_rewards_of_growth_are_not_there(name: str) -> None:
    with pytest.raises(UsageError, match=f"no reward mode or controller '{name}'; there is env, random"):
        asked("env", name, task=GYM)


def test_without_groups_it_is_said_what_to_name() -> None:
    with pytest.raises(UsageError, match="env trains on the environment's own reward"):
        asked(task=GYM)


def test_a_reward_is_no_outcome_and_a_function_that_is_none_may_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is the reward of group 'mine'"):
        asked("env", f"mine={tmp_path}/r.py:f", task=GYM, outcome=f"{tmp_path}/r.py:f")
    assert asked("env", f"mine={tmp_path}/r.py:f", task=GYM, outcome=f"{tmp_path}/r.py:g").outcome.endswith("r.py:g")


def test_files_of_a_toml_file_begin_in_its_folder(tmp_path: Path) -> None:
    file = toml(tmp_path, 'task = "env.py:make"\noutcome = "o.py:f"\ngroups = ["env", "random"]\n')
    experiment = asked(toml=file)
    assert (experiment.task, experiment.outcome) == (f"{tmp_path}/env.py:make", f"{tmp_path}/o.py:f")
    questions = kind_of(experiment.task).ask(experiment)
    assert questions.rewards["env"] == RewardSettings(mode="env")


def test_a_plan_says_what_a_worker_needs_and_nothing_of_growth(tmp_path: Path) -> None:
    experiment = asked("env", "random", task=GYM, margin=5.0, outcome="info:x")
    spec = plan(experiment, repeats=False).blocks[0].runs[0]
    assert (spec.outcome, spec.repeats, spec.eval_reward_modes, spec.slots) == ("info:x", False, ("env",), ())
    assert spec.arithmetic.kernel == "torch"
    assert spec.env_devices[0].startswith("cpu:")


def test_notes_say_who_trains_on_the_outcome_and_what_does_not_repeat() -> None:
    mine = UserReward(reference="/r.py:f", sha256="0", problem="")
    there = machine(rewards=("env",), controllers=("random",), tasks=(found(repeats=False),), user_rewards=(mine,))
    both = planned(asked("env", "mine=/r.py:f", task=GYM, margin=5.0), there)
    text = " ".join(both.notes)
    assert "The outcome is also the reward of env" in text
    assert "The environments do not repeat" in text
    own = " ".join(plan(asked("env", "random", task=GYM, margin=5.0)).notes)
    assert "also the reward" not in own
    assert "do not repeat" not in own
    assert "Device and start order cannot matter" in own


def test_notes_say_what_follows_where_environments_carry_state_across_resets() -> None:
    carrying = plan(asked("env", "random", task=GYM, margin=5.0), repeats=False, carries=True)
    text = " ".join(carrying.notes)
    assert "The environments carry state from one reset to the next" in text
    assert "a run that was taken up after a death is another than without it" in text
    assert "an evaluation begins without that state" in text
    assert "groups with equal settings differ" not in text
    assert "do not repeat" not in text
    assert carrying.carries
    assert not plan(asked("env", "random", task=GYM, margin=5.0), repeats=False).carries


def test_a_gpu_that_would_be_idle_is_refused_and_none_is_taken() -> None:
    there = machine(gpus=2, rewards=("env",), controllers=("random",), tasks=(found(),))
    experiment = asked("env", "random", task=GYM, margin=5.0)
    assert planned(experiment, there).experiment.devices == ("cpu:0", "cpu:1")
    with pytest.raises(UsageError, match="cuda:0 would be idle"):
        planned(asked("env", "random", task=GYM, margin=5.0, devices=["cuda:0", "cuda:1"]), there)


def test_a_margin_is_asked_for() -> None:
    with pytest.raises(UsageError, match="margin"):
        plan(asked("env", "random", task=GYM))


def test_an_evaluation_needs_an_end_where_a_rollout_has_none() -> None:
    asking = {"task": GYM, "margin": 5.0, "sets": ("gym.rollout=resets",)}
    assert plan(asked("env", "random", **asking))
    with pytest.raises(UsageError, match=r"gym\.episode_steps=1000"):
        plan(asked("env", "random", **asking), episode_steps=0)
    assert group("a", gym=GymSettings(rollout="resets", episode_steps=3)).settings.gym.episode_steps == 3


@pytest.mark.parametrize("outcome", ["last-tenth", "curve-mean"])
@pytest.mark.parametrize("rollout", ["resets", "continues"])
def test_an_outcome_of_training_needs_rollouts_that_are_episodes(rollout: str, outcome: str) -> None:
    asking = {"task": GYM, "margin": 5.0, "group": (f"random:gym.rollout={rollout}",)}
    assert plan(asked("env", "random", **asking))
    assert plan(asked("env", "random", task=GYM, margin=5.0, outcome_over=outcome))
    with pytest.raises(
        UsageError,
        match=rf"--outcome-over {outcome}: .*'random' "
        rf".*gym\.rollout={rollout}.*--outcome-over ev",
    ):
        plan(asked("env", "random", **asking, outcome_over=outcome))


def test_minibatches_are_of_whole_environments_only_where_memories_are_of_whole_episodes() -> None:
    for text in ("policy.memory=none", "gym.rollout=resets"):
        plan(asked("env", "random", task=GYM, margin=5.0, sets=("ppo.minibatches=32", text)))
    with pytest.raises(UsageError, match="minibatch"):
        plan(asked("env", "random", task=GYM, margin=5.0, sets=("ppo.minibatches=32",)))


def test_a_plans_toml_is_read_back_as_the_same_settings(tmp_path: Path) -> None:
    from esper_ab.plan.experiment_directory import experiment_toml

    mine = UserReward(reference="/r.py:f", sha256="0", problem="")
    there = machine(rewards=("env",), controllers=("random",), tasks=(found(),), user_rewards=(mine,))
    experiment = asked("env", "mine=/r.py:f", task=GYM, margin=5.0, group=("mine:reward.params.w=0.5",))
    first = planned(experiment, there)
    text = experiment_toml(first, there)
    assert "growth" not in text
    assert "bias_" not in text
    again = asked(toml=toml(tmp_path, text))
    expected = {one.name: one.settings for one in first.experiment.groups}
    assert {one.name: one.settings for one in again.groups} == expected
    assert planned(again, there).digest == first.digest
