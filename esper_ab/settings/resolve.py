"""What was asked + the machine -> what will be run: slots, modes, blueprints, devices, precision, kernel, hosts.

Pure. Nothing is replaced in silence: what is not there is refused, naming what was asked and what exists.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.kinds import GROWTH, GYMNASIUM, TRAINER, kind_of_task
from esper_ab.contracts.machine import ControllerQuestion, Machine, Questions, TaskFacts
from esper_ab.contracts.settings import Arithmetic, ControllerSettings, GroupSettings
from esper_ab.contracts.trainer import TrainerQuestion
from esper_ab.settings.assignments import did_you_mean
from esper_ab.settings.eval_episodes import EvaluationNoise, choose_eval_episodes
from esper_ab.settings.experiment import AskedExperiment, ExperimentSettings, Group, ResolvedExperiment
from esper_ab.settings.kernel import resolve_kernel
from esper_ab.settings.outcome_range import read_range, worst_outcome
from esper_ab.settings.parse import is_user_reward
from esper_ab.settings.precision import resolve_precision
from esper_ab.settings.trainer import DEFAULT_OUTCOME, outcome_measure, read_rehearsal


def collect_questions(experiment: AskedExperiment) -> Questions:
    """Collect what only the preflight child can tell about an experiment."""
    modes = {group.settings.reward.mode for group in experiment.groups}
    gymnasium = kind_of_task(experiment.task) == GYMNASIUM
    low, high = read_range(experiment.outcome_range)
    gpus = tuple(name for name in experiment.devices or ("cuda",) if not name.startswith("cpu"))
    return Questions(
        outcome=experiment.outcome,
        outcome_better=experiment.outcome_better or "higher",
        outcome_low=low,
        outcome_high=high,
        outcome_worst=worst_outcome(experiment),
        rewards={group.name: group.settings.reward for group in experiment.groups} if gymnasium else {},
        task=experiment.task,
        data_dir=experiment.data_dir,
        slots=experiment.slots,
        user_rewards=tuple(sorted(mode for mode in modes if is_user_reward(mode))),
        gpus=() if gymnasium else gpus,
        hosts=-(-experiment.n_envs // experiment.devices_per_run) if kind_of_task(experiment.task) == GROWTH else 0,
        batch_size=min(group.settings.growth.batch_size for group in experiment.groups),
        trainer=_ask_of_trainer(experiment, gpus) if experiment.trainer else None,
        trainer_outcome=outcome_measure(experiment) if experiment.trainer else None,
        controllers=() if experiment.trainer else tuple(
            ControllerQuestion(
                group=group.name, settings=group.settings.controller, blueprints=group.settings.growth.blueprints
            )
            for group in experiment.groups
        ),
    )


def _ask_of_trainer(experiment: AskedExperiment, gpus: tuple[str, ...]) -> TrainerQuestion:
    return TrainerQuestion(
        reference=experiment.trainer, directory=experiment.trainer_folder,
        outcome=experiment.outcome or DEFAULT_OUTCOME,
        groups={group.name: group.settings.trainer for group in experiment.groups},
        rehearsal=read_rehearsal(experiment.rehearsal), points=experiment.episodes,
        evaluations=0 if experiment.eval_episodes == "auto" else experiment.eval_episodes, rng_seed=experiment.rng_seed,
        threads=experiment.arithmetic.threads, deterministic=experiment.arithmetic.deterministic,
        gpu=next(iter(gpus), ""),
    )  # fmt: skip


def _refuse_unknown(what: str, name: str, known: Iterable[str]) -> None:
    known = tuple(known)
    if name not in known:
        raise UsageError(f"no {what} {name!r}; {did_you_mean(name, known)}")


def _find_task(experiment: ExperimentSettings, machine: Machine) -> TaskFacts:
    if machine.trainer is not None and machine.trainer.problem:
        raise UsageError(f"trainer {experiment.trainer}: {machine.trainer.problem}")
    if machine.task_problem:
        raise UsageError(f"task {experiment.task}: {machine.task_problem}")
    _refuse_unknown("task", experiment.task, (task.name for task in machine.tasks))
    return machine.task(experiment.task)


def _resolve_slots(experiment: AskedExperiment, task: TaskFacts) -> tuple[str, ...]:
    asked = experiment.slots or task.slots
    for slot in asked:
        _refuse_unknown(f"slot in task {task.name}:", slot, task.slots)
    if asked != tuple(slot for slot in task.slots if slot in asked):
        right = tuple(slot for slot in task.slots if slot in asked)
        raise UsageError(Setting("slots", asked), ": each once, in network order, as in ", Setting("slots", right))
    return asked


def _resolve_margin(experiment: AskedExperiment, task: TaskFacts) -> float:
    """Return the margin asked for, or that of the task; UsageError where neither names one."""
    margin, outcome = experiment.margin or task.measures.margin, task.measures.outcome
    if margin is None:
        unit = f", in {outcome.apart}" if outcome.apart else ""
        raise UsageError(
            Setting("margin"), f" is missing: task {task.name} declares none; say which difference in {outcome.label} "
            f"is worth acting on{unit}. `esper-ab calibrate` shows how much runs of one group differ",
        )  # fmt: skip
    return margin


def _check_group(group: Group, experiment: ExperimentSettings, machine: Machine) -> None:
    settings = group.settings
    mode = settings.reward.mode
    if group.name in machine.reward_problems:
        raise UsageError(f"group {group.name!r}: {machine.reward_problems[group.name]}")
    if is_user_reward(mode):
        problem = next(reward.problem for reward in machine.user_rewards if reward.reference == mode)
        if problem:
            raise UsageError(f"group {group.name!r}: reward={mode}: {problem}")
    for blueprint in settings.growth.blueprints:
        _refuse_unknown("blueprint", blueprint, machine.blueprints)
    if group.name in machine.controller_problems:
        raise UsageError(f"group {group.name!r}: {machine.controller_problems[group.name]}")
    whole = settings.policy.memory == "lstm" and settings.gym.rollout == "episodes"
    if settings.has_policy and whole and settings.ppo.minibatches > experiment.n_envs:
        raise UsageError(
            f"group {group.name!r}: ppo.minibatches={settings.ppo.minibatches} with ",
            Setting("n_envs", experiment.n_envs), "; a minibatch is made of whole environments: at most ",
            Setting("ppo.minibatches", experiment.n_envs, assigned=True),
        )  # fmt: skip


def _check_rollouts(group: Group, experiment: ExperimentSettings, task: TaskFacts) -> None:
    gym = group.settings.gym
    if gym.rollout == "episodes":
        return
    if experiment.outcome_over != "evaluation":
        raise UsageError(
            Setting("outcome_over", experiment.outcome_over), f": group {group.name!r} has gym.rollout={gym.rollout}, "
                                                              f"and a "
            "rollout in which no episode ends has no outcome; say ", Setting("outcome_over", "evaluation"), " or ",
            Setting("gym.rollout", "episodes", assigned=True),
        )  # fmt: skip
    if not (gym.episode_steps or task.episode_steps):
        raise UsageError(
            f"group {group.name!r}: gym.rollout={gym.rollout}: the environment has no limit of its own, and a "
            "rollout's steps are none; say how long an episode of the evaluation may be, as in ",
            Setting("gym.episode_steps", 1000, assigned=True),
        )  # fmt: skip


def _check_sharing(experiment: ExperimentSettings) -> None:
    """UsageError unless moments can be merged: a barrier after every episode, several learners, the same columns."""
    sharing = Setting("share_observation_norm")
    if experiment.sync == "independent" or experiment.placement == "sequence":
        key = "sync" if experiment.sync == "independent" else "placement"
        without = Setting(key, getattr(experiment, key))
        raise UsageError(sharing, " merges at the barrier after every episode; ", without, " has none: choose one")
    if experiment.unpaired:
        raise UsageError(
            sharing, " couples the groups of a seed; ", Setting("unpaired"), " is to keep them apart: choose one"
        )
    learners = [group for group in experiment.groups if group.settings.has_policy]
    if len(learners) < 2:
        who = f"only {learners[0].name!r} learns" if learners else "no group learns"
        raise UsageError(sharing, f": {who}, and controllers that do not learn normalise nothing; leave it out")
    for learner in learners:
        if not learner.settings.policy.normalise_observations:
            raise UsageError(
                sharing, f": {learner.name!r} does not normalise its observations; make "
                "policy.normalise_observations true for all learners, or leave it out",
            )  # fmt: skip
    first = learners[0]
    for other in learners[1:]:
        if other.settings.growth.blueprints != first.settings.growth.blueprints:
            raise UsageError(
                sharing, f": {first.name!r} and {other.name!r} have different growth.blueprints, so their observations "
                "have different columns; give all learners the same list, or leave it out",
            )  # fmt: skip


def _cpu_lanes(experiment: AskedExperiment, machine: Machine) -> tuple[str, ...]:
    """Return the names of the lanes on the CPU: one per core, or as many as a block needs."""
    needed = len(experiment.groups) * experiment.devices_per_run
    return tuple(f"cpu:{index}" for index in range(max(needed, len(machine.names("cpu")))))


def _resolve_devices(experiment: AskedExperiment, machine: Machine) -> tuple[str, ...]:
    """Return the pool: what was asked, or every GPU, or, without one, CPU lanes: one per core, or as a block needs."""
    on_cores = kind_of_task(experiment.task) == GYMNASIUM  # environments and policy are there, and a GPU would be idle
    if not experiment.devices:
        if machine.gpu_problem and not on_cores:
            raise UsageError(
                f"{machine.gpu_problem}; to use the CPU all the same, say ", Setting("devices", ("cpu",))
            )
        gpus = () if on_cores else machine.names("cuda")
        return gpus or _cpu_lanes(experiment, machine)
    for name in experiment.devices if on_cores else ():
        if name.startswith("cuda"):
            raise UsageError(
                Setting("devices"), f": environments and policies of {experiment.task} are on the CPU, and {name} "
                "would be idle; name cores, or leave it out",
            )  # fmt: skip
    there = tuple(device.name for device in machine.devices)
    if all(name.startswith("cpu") for name in experiment.devices):
        there = _cpu_lanes(experiment, machine)  # what is planned without a word on devices can be asked for by name
    pool: list[str] = []
    for name in experiment.devices:
        named = machine.names(name) if name in ("cpu", "cuda") else (name,)
        missing = [one for one in named if one not in there] or ([] if named else [name])
        if missing:
            because = (
                machine.unusable_gpus or machine.gpu_problem
                or (not machine.names("cuda") and "no GPU is visible: `esper-ab doctor` looks for the reason")
            )
            because = f" ({because})" if name.startswith("cuda") and because else ""
            raise UsageError(
                Setting("devices"), f": no {missing[0]!r} here; there is {', '.join(there)}{because}"
            )
        pool.extend(named)
    for name in pool:
        if pool.count(name) > 1:
            raise UsageError(
                Setting("devices"), f": {name} is there twice; several runs share a device with ",
                Setting("placement", "share"),
            )  # fmt: skip
    return tuple(pool)


def _with_trainer(
    experiment: AskedExperiment, machine: Machine, task: TaskFacts, name: str
) -> ResolvedExperiment:
    """Resolve an experiment whose training is the user's own: its settings are those that the preflight has typed."""
    facts = machine.trainer
    assert facts is not None, "it was asked about"
    groups = tuple(
        msgspec.structs.replace(group, settings=GroupSettings(
            controller=ControllerSettings(name=TRAINER), trainer=facts.settings[group.name],
        ))
        for group in experiment.groups
    )  # fmt: skip
    arithmetic = Arithmetic(**msgspec.structs.asdict(experiment.arithmetic) | {"kernel": "torch"})
    return _resolved(
        experiment, task, name=name, groups=groups, slots=(), devices=_resolve_devices(experiment, machine),
        arithmetic=arithmetic, eval_episodes=facts.evaluations,
    )  # fmt: skip


def _resolved(
    experiment: AskedExperiment, task: TaskFacts, *, devices: tuple[str, ...], **found: object
) -> ResolvedExperiment:
    """Fill in what was `found`, with the margin, and the placement with which a block fits its devices."""
    fits = len(devices) >= len(experiment.groups) * experiment.devices_per_run
    return ResolvedExperiment(**msgspec.structs.asdict(experiment) | found | {
        "devices": devices, "margin": _resolve_margin(experiment, task),
        "placement": experiment.placement.replace("auto", "spread" if fits else "share"),
    })


def resolve(
    experiment: AskedExperiment, machine: Machine, name: str, noise: EvaluationNoise | None = None
) -> ResolvedExperiment:
    """Name slots, devices, precisions, kernel and hosts, and check everything else against the machine; UsageError.

    `noise`: of a user's own calibration.
    """
    task = _find_task(experiment, machine)
    if experiment.trainer:
        return _with_trainer(experiment, machine, task, name)
    slots = _resolve_slots(experiment, task)
    if experiment.placement in ("alternate", "sequence") and experiment.sync == "independent":
        raise UsageError(
            Setting("placement", experiment.placement), " takes turns at the barrier; ", Setting("sync", "independent"),
            " has none: choose one",
        )  # fmt: skip
    if experiment.share_observation_norm:
        _check_sharing(experiment)
    for group in experiment.groups:
        _check_group(group, experiment, machine)
        _check_rollouts(group, experiment, task)
    devices = _resolve_devices(experiment, machine)
    groups = resolve_precision(experiment.groups, devices, machine)
    asked = experiment.arithmetic
    if task.kind != GROWTH:  # there are no hosts that a kernel could train
        asked = msgspec.structs.replace(asked, kernel="torch")
    arithmetic = resolve_kernel(asked, groups, devices, machine)
    return _resolved(
        experiment, task, name=name, groups=groups, slots=slots, devices=devices, arithmetic=arithmetic,
        eval_episodes=choose_eval_episodes(experiment, noise).eval_episodes,
    )  # fmt: skip
