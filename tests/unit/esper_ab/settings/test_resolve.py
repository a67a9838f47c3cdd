"""Resolution of devices and trainers: the resolved settings can also be requested."""

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


def _questions(request: AskedExperiment) -> Questions:
    return settings_of(request.task).ask(request)


@pytest.mark.parametrize("devices_per_run", [1, 2])
def test_resolving_planned_devices_again_gives_the_same_devices(devices_per_run: int) -> None:
    def resolve_devices(gpus: int, *device_names: str) -> tuple[str, ...]:
        question = experiment(("a", "b", "c"), devices_per_run=devices_per_run, devices=device_names)
        return resolve(question, machine(cores=2, gpus=gpus), "x", 16).devices

    planned_devices = resolve_devices(0)
    assert len(planned_devices) == 3 * devices_per_run
    assert (
        resolve_devices(0, *planned_devices) == resolve_devices(1, *planned_devices) == planned_devices
    )  # a GPU added later changes nothing


@pytest.mark.parametrize("devices", [(), ("cuda",), ("cuda:0",)], ids=str)
def test_too_few_gpus_are_shared_by_default(
    devices: tuple[str, ...],
) -> None:
    plan = planned(experiment(devices=devices), machine(gpus=1))
    assert plan.experiment.placement == "share"
    assert [lane.name for lane in plan.lanes] == ["cuda:0/0", "cuda:0/1"]
    assert any("MPS" in note for note in plan.notes)
    request = experiment(devices=devices, placement="sequence")
    assert planned(request, machine(gpus=1)).experiment.placement == "sequence"
    assert planned(experiment(), machine(gpus=2)).experiment.placement == "spread"


def test_notes_name_unusable_gpus() -> None:
    unusable_note = "GPUs requested: 3, usable: 2; not cuda:2 (CUDA error: uncorrectable ECC error)"
    this_machine = machine(gpus=2, unusable_gpus=unusable_note)
    plan = planned(experiment(), this_machine)
    assert f"{unusable_note}." in plan.notes[: plan.limits]  # on the first screen
    cpu_plan = planned(experiment(devices=("cpu",)), this_machine)
    assert "GPUs stay unused: 2 workers on the CPU, 1 thread each." in cpu_plan.notes


@pytest.mark.parametrize(
    ("device_names", "tried_gpus"),
    [
        ((), ("cuda",)),
        (("cuda",), ("cuda",)),
        (("cpu:0", "cuda:1"), ("cuda:1",)),
        (("cpu",), ()),
    ],
)
def test_the_preflight_tries_only_the_requested_gpus(
    device_names: tuple[str, ...], tried_gpus: tuple[str, ...]
) -> None:
    questions = _questions(experiment(devices=device_names, n_envs=9, devices_per_run=2))
    assert (questions.gpus, questions.hosts) == (tried_gpus, 5)
    assert _questions(experiment(devices=device_names, task="gym:CartPole-v1")).gpus == ()  # environments are on cores


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
def test_rollouts_other_than_episodes_need_an_outcome_or_a_limit(sets: tuple[str, ...], limit: int, words: str) -> None:
    question = asked("env", "random", task=CARTPOLE.name, margin=1.0, sets=sets)
    this_machine = machine(tasks=(msgspec.structs.replace(CARTPOLE, episode_steps=limit),))
    with pytest.raises(UsageError, match=words) if words else nullcontext():
        resolve(question, this_machine, "x", 16)


TRAINER = {"group": ("slow:trainer.lr=1e-4", "fast:trainer.lr=1e-3"), "trainer": "mine.py", "outcome_better": "lower"}


def test_the_preflight_receives_the_trainer_with_the_settings_of_every_group() -> None:
    question = asked(**TRAINER, margin=1.0, outcome="loss", episodes=7, rehearsal=["steps=2"], rng_seed=3)
    trainer = _questions(question).trainer
    assert trainer is not None
    assert (trainer.reference, trainer.outcome, trainer.points, trainer.rng_seed) == (question.trainer, "loss", 7, 3)
    assert trainer.groups == {"slow": {"lr": "1e-4"}, "fast": {"lr": "1e-3"}}
    assert trainer.rehearsal == {"steps": "2"}
    assert trainer.evaluations == 0, "as many as the trainer returns"
    assert _questions(experiment()).trainer is None


def test_a_resolved_trainer_has_the_settings_found_by_the_preflight() -> None:
    question = asked(**TRAINER, margin=1.0)
    typed_settings = {"slow": {"lr": 1e-4}, "fast": {"lr": 1e-3}}
    task = msgspec.structs.replace(TASK, name=question.task, kind="trainer", slots=())
    facts = TrainerFacts(settings=typed_settings, evaluations=5)
    resolution = resolve(question, machine(tasks=(task,), trainer=facts), "x", 16)
    assert {group.name: group.settings.trainer for group in resolution.groups} == typed_settings
    assert (resolution.eval_episodes, resolution.arithmetic.kernel, resolution.slots) == (5, "torch", ())
    with pytest.raises(UsageError, match=r"trainer .*mine\.py: no function train"):
        resolve(question, machine(tasks=(task,), trainer=TrainerFacts(problem="no function train")), "x", 16)
