"""Resolution: what was planned without a word can be asked for by name."""

from contextlib import nullcontext

import msgspec
import pytest
from support.plans.requests import TASK, asked, experiment, machine, planned

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Questions
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import settings_of
from esper_ab.settings.resolve import resolve


def _questions(asked: AskedExperiment) -> Questions:
    return settings_of(asked.task).ask(asked)


@pytest.mark.parametrize("per_run", [1, 2])
def test_the_lanes_of_a_plan_can_be_given_back(per_run: int) -> None:
    def devices(gpus: int, *asked: str) -> tuple[str, ...]:
        question = experiment(("a", "b", "c"), devices_per_run=per_run, devices=asked)
        return resolve(question, machine(cores=2, gpus=gpus), "x", 16).devices

    planned = devices(0)
    assert len(planned) == 3 * per_run
    assert devices(0, *planned) == devices(1, *planned) == planned  # a GPU that came later changes nothing


@pytest.mark.parametrize("devices", [(), ("cuda",), ("cuda:0",)], ids=str)
def test_fewer_gpus_than_a_block_needs_are_shared_unless_another_placement_is_asked_for(
    devices: tuple[str, ...],
) -> None:
    plan = planned(experiment(devices=devices), machine(gpus=1))
    assert plan.experiment.placement == "share"
    assert [lane.name for lane in plan.lanes] == ["cuda:0/0", "cuda:0/1"]
    assert any("MPS" in note for note in plan.notes)
    asked = experiment(devices=devices, placement="sequence")
    assert planned(asked, machine(gpus=1)).experiment.placement == "sequence"
    assert planned(experiment(), machine(gpus=2)).experiment.placement == "spread"


def test_gpus_that_were_tried_in_vain_are_named_and_those_that_stay_unused_are_mentioned() -> None:
    told = "GPUs requested: 3, usable: 2; not cuda:2 (CUDA error: uncorrectable ECC error)"
    there = machine(gpus=2, unusable_gpus=told)
    plan = planned(experiment(), there)
    assert f"{told}." in plan.notes[: plan.limits]  # on the first screen
    on_cpu = planned(experiment(devices=("cpu",)), there)
    assert "GPUs stay unused: 2 workers on the CPU, 1 thread each." in on_cpu.notes


@pytest.mark.parametrize(
    ("asked", "tried"),
    [
        ((), ("cuda",)),
        (("cuda",), ("cuda",)),
        (("cpu:0", "cuda:1"), ("cuda:1",)),
        (("cpu",), ()),
    ],
)
def test_the_preflight_tries_the_gpus_that_are_asked_for_and_no_others(
    asked: tuple[str, ...], tried: tuple[str, ...]
) -> None:
    found = _questions(experiment(devices=asked, n_envs=9, devices_per_run=2))
    assert (found.gpus, found.hosts) == (tried, 5)
    assert _questions(experiment(devices=asked, task="gym:CartPole-v1")).gpus == ()  # environments are on cores


CARTPOLE = msgspec.structs.replace(TASK, name="gym:CartPole-v1", kind="gymnasium", slots=())


@pytest.mark.parametrize(
    ("sets", "limit", "words"),
    [
        ((), 0, ""),
        (("gym.rollout=resets",), 500, ""),
        (("gym.rollout=resets", "gym.episode_steps=9"), 0, ""),
        (("gym.rollout=resets",), 0, "neither the environment nor a rollout limits the length"),
        (("gym.rollout=resets", "outcome_over=last-tenth"), 500, "a rollout in which no episode ends has no outcome"),
        (("outcome_over=last-tenth",), 500, ""),
    ],
)
def test_rollouts_that_are_no_episodes_need_an_outcome_and_a_limit(
    sets: tuple[str, ...], limit: int, words: str
) -> None:
    question = asked("env", "random", task=CARTPOLE.name, margin=1.0, sets=sets)
    there = machine(tasks=(msgspec.structs.replace(CARTPOLE, episode_steps=limit),))
    with pytest.raises(UsageError, match=words) if words else nullcontext():
        resolve(question, there, "x", 16)


TRAINER = {"group": ("slow:trainer.lr=1e-4", "fast:trainer.lr=1e-3"), "trainer": "mine.py", "outcome_better": "lower"}


def test_the_preflight_is_asked_about_a_trainer_with_the_settings_of_every_group() -> None:
    question = asked(**TRAINER, margin=1.0, outcome="loss", episodes=7, rehearsal=["steps=2"], rng_seed=3)
    found = _questions(question).trainer
    assert found is not None
    assert (found.reference, found.outcome, found.points, found.rng_seed) == (question.trainer, "loss", 7, 3)
    assert found.groups == {"slow": {"lr": "1e-4"}, "fast": {"lr": "1e-3"}}
    assert found.rehearsal == {"steps": "2"}
    assert found.evaluations == 0, "as many as the trainer returns"
    assert _questions(experiment()).trainer is None


def test_an_experiment_of_a_trainer_has_the_settings_and_evaluations_that_the_preflight_found() -> None:
    question = asked(**TRAINER, margin=1.0)
    typed = {"slow": {"lr": 1e-4}, "fast": {"lr": 1e-3}}
    task = msgspec.structs.replace(TASK, name=question.task, kind="trainer", slots=())
    facts = TrainerFacts(settings=typed, evaluations=5)
    found = resolve(question, machine(tasks=(task,), trainer=facts), "x", 16)
    assert {group.name: group.settings.trainer for group in found.groups} == typed
    assert (found.eval_episodes, found.arithmetic.kernel, found.slots) == (5, "torch", ())
    with pytest.raises(UsageError, match=r"trainer .*mine\.py: no function train"):
        resolve(question, machine(tasks=(task,), trainer=TrainerFacts(problem="no function train")), "x", 16)
