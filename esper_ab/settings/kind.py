"""The rules of each kind of task for an experiment's settings: one object per kind, all with the same four methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.kinds_of_task import Concern, kind_of_task, kinds, of_kind
from esper_ab.contracts.machine import ControllerQuestion, Machine, Questions, TaskFacts
from esper_ab.contracts.settings import EVERY_KIND, POLICIES, GroupSettings, PolicySettings
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.devices import resolve_devices
from esper_ab.settings.experiment import AskedExperiment, Group, ResolvedExperiment
from esper_ab.settings.kernel import kernel_notes, resolve_kernel
from esper_ab.settings.outcome_range import read_range
from esper_ab.settings.resolution import Resolution
from esper_ab.settings.schema import DECLARED, FIELDS, GROUP_FIELDS, Field, refuse_unknown
from esper_ab.settings.trainer_settings import check_outcome_name


def settings_of(task: str) -> SettingsKind:
    """Return the rules for the settings of a task, from its name in plans."""
    return of_kind(kind_of_task(task), SettingsKind)


def is_user_reward(mode: str) -> bool:
    """Whether a reward mode names a user's function."""
    return ":" in mode


class SettingsKind(Concern):
    """Base of all kinds of task; the defaults are for kinds whose policies esper_ab trains."""

    file = "settings"
    name: str  # of its folder
    words: str  # describes such tasks: "growing networks"
    rewards: tuple[str, ...]  # rewards that a group may be named after
    controllers: tuple[str, ...] = ()  # likewise, controllers that do not learn
    trains_policies = True  # whether esper_ab trains policies, so that their settings are read
    also_reads: tuple[str, ...] = ()  # keys of settings that other kinds declare, as "outcome" or "reward.params"
    defaults: ClassVar[Mapping[str, object]] = {}  # by key, where they differ from the settings' own
    default_groups: tuple[str, ...] = ()
    no_groups: str = ""  # why there are no default groups
    free_names = False  # whether a group may have any name
    on_cores = False  # whether everything runs on cores, so that a GPU would be idle
    times_on_cpu = False  # whether a plan for GPUs also says how long the CPU would take
    declares_margins = False  # whether its tasks have a margin of their own

    @property
    def default_mode(self) -> str:
        """The group of a calibration that names none."""
        return (*self.default_groups, *self.rewards)[0]

    @property
    def baselines(self) -> tuple[str, ...]:
        """Groups, cheap ones first, of which one is put beside a run that is trained again."""
        return (*self.controllers, *self.rewards)

    def reads(self, field: Field) -> bool:
        """Whether this kind reads a setting."""
        readers = {EVERY_KIND, self.name}
        if self.trains_policies:
            readers.add(POLICIES)
        return field.key in self.also_reads or not readers.isdisjoint(field.kinds)

    def read(self, asked_experiment: AskedExperiment, assignments: Sequence[Assignment]) -> AskedExperiment:
        """Return the experiment with the changes that this kind makes; UsageError for contradictory settings.

        The parameter `assignments` has every assignment by the user.
        """
        for assignment in assignments:
            self._check_is_read(assignment, asked_experiment.task)
        for group in asked_experiment.groups:
            self._check_group(group.name, group.settings)
            _refuse_reward_as_outcome(asked_experiment.outcome, group)
        read_range(asked_experiment.outcome_range)
        check_outcome_name(asked_experiment)
        return asked_experiment

    def _check_is_read(self, assignment: Assignment, task: str) -> None:
        """Raise UsageError for a setting that this kind does not read, unless it has its default."""
        field = _field(assignment.key)
        if assignment.value == field.default or self.reads(field):
            return
        other_kinds = (of_kind(name, SettingsKind) for name in kinds())
        readers = " and ".join(kind.words for kind in other_kinds if kind.reads(field))
        raise UsageError(
            f"{assignment.origin}: {assignment.key} is a setting for {readers}, which task {task} does not read; "
            "omit it"
        )

    def ask(self, asked_experiment: AskedExperiment) -> Questions:
        """Return the questions about an experiment that only the preflight child can answer."""
        modes = {group.settings.reward.mode for group in asked_experiment.groups}
        controllers = [
            ControllerQuestion(
                group=group.name, settings=group.settings.controller, blueprints=group.settings.growth.blueprints
            )
            for group in asked_experiment.groups
        ]
        return Questions(
            task=asked_experiment.task,
            data_dir=asked_experiment.data_dir,
            slots=asked_experiment.slots,
            user_rewards=tuple(sorted(mode for mode in modes if is_user_reward(mode))),
            batch_size=min(group.settings.growth.batch_size for group in asked_experiment.groups),
            controllers=tuple(controllers),
        )

    def resolve(
        self, asked_experiment: AskedExperiment, machine: Machine, task: TaskFacts, eval_episodes: int
    ) -> Resolution:
        """Return the settings that depend on the machine, after checking all others against the machine.

        Raises UsageError if something is missing on the machine. `eval_episodes` is the requested or chosen number.
        """
        self.check_preflight(asked_experiment, machine)
        devices = resolve_devices(asked_experiment, machine, on_cores=self.on_cores)
        self.check_task(asked_experiment, task)
        return Resolution(
            groups=asked_experiment.groups,
            slots=asked_experiment.slots,
            devices=devices,
            arithmetic=resolve_kernel(asked_experiment.arithmetic, machine),
            eval_episodes=eval_episodes,
        )

    def check_preflight(self, asked_experiment: AskedExperiment, machine: Machine) -> None:
        """Raise UsageError if the runs cannot take turns, or if the preflight found a problem with a group."""
        if asked_experiment.takes_turns and asked_experiment.sync == "independent":
            raise UsageError(
                SettingName("placement", asked_experiment.placement),
                " takes turns at the barrier, but ",
                SettingName("sync", "independent"),
                " has none: choose one",
            )
        for group in asked_experiment.groups:
            _check_group_preflight(group, asked_experiment, machine)

    def check_task(self, asked_experiment: AskedExperiment, task: TaskFacts) -> None:
        """Raise UsageError if the settings do not fit the task."""

    def remarks(
        self, asked_experiment: AskedExperiment, resolved_experiment: ResolvedExperiment, machine: Machine
    ) -> tuple[str, ...]:
        """Return notes of one sentence each on settings that were chosen for this machine: by default on the kernel."""
        return kernel_notes(asked_experiment, resolved_experiment, machine)

    def _check_group(self, name: str, settings: GroupSettings) -> None:
        reward = settings.reward
        controller = settings.controller
        subject = f"group {name!r}"
        if not is_user_reward(reward.mode):
            refuse_unknown("reward mode", reward.mode, self.rewards, f"{subject}: ")
        refuse_unknown("controller", controller.name, ("ppo", *self.controllers), f"{subject}: ")
        if name in self.rewards and reward.mode != name:
            raise UsageError(f"{subject} has a reward's name but uses {reward.mode!r}; rename the group")
        if name in self.controllers and controller.name != name:
            raise UsageError(f"{subject} has a controller's name but uses {controller.name!r}; rename the group")
        if reward.family == "loss" and reward.mode != "shaped":
            raise UsageError(f"{subject}: reward.family=loss needs reward.mode=shaped, not {reward.mode!r}")
        if reward.mode == "shaped" and reward.gamma != 0.995:
            raise UsageError(f"{subject}: mode shaped needs reward.gamma=0.995, not {reward.gamma}")
        if controller.schedule and controller.name != "schedule":
            raise UsageError(
                f"{subject}: controller.schedule needs controller=schedule; {controller.name!r} does not read it"
            )
        policy = settings.policy
        if not policy.normalise_observations and policy.observation_clip != PolicySettings().observation_clip:
            raise UsageError(
                f"{subject}: policy.observation_clip={policy.observation_clip:g} limits normalised observations, but "
                "policy.normalise_observations=false; omit one of them"
            )
        blueprints = settings.growth.blueprints
        if not blueprints or len(set(blueprints)) != len(blueprints):
            raise UsageError(f"{subject}: growth.blueprints must be a list of different names, not {list(blueprints)}")


def _field(key: str) -> Field:
    """Return the field of a setting, which is a mapping if users' code declares the setting."""
    if key in FIELDS:
        return FIELDS[key]
    return GROUP_FIELDS[next(prefix for prefix in DECLARED if key.startswith(prefix)).removesuffix(".")]


def _refuse_reward_as_outcome(outcome: str, group: Group) -> None:
    """Raise UsageError if the outcome is the reward that a group trains on."""
    if outcome and outcome == group.settings.reward.mode:
        raise UsageError(
            SettingName("outcome", outcome),
            f" is the reward of group {group.name!r}, and a reward cannot decide which "
            "group is better; name an outcome that the task is about, or omit it for the environment's own return",
        )


def _check_group_preflight(group: Group, asked_experiment: AskedExperiment, machine: Machine) -> None:
    """Raise UsageError if the machine's preflight found a problem with a group."""
    settings = group.settings
    mode = settings.reward.mode
    if group.name in machine.reward_problems:
        raise UsageError(f"group {group.name!r}: {machine.reward_problems[group.name]}")
    if is_user_reward(mode):
        problem = next(reward.problem for reward in machine.user_rewards if reward.reference == mode)
        if problem:
            raise UsageError(f"group {group.name!r}: reward={mode}: {problem}")
    if machine.blueprints:  # only growth has any
        for blueprint in settings.growth.blueprints:
            refuse_unknown("blueprint", blueprint, machine.blueprints)
    if group.name in machine.controller_problems:
        raise UsageError(f"group {group.name!r}: {machine.controller_problems[group.name]}")
    trains_whole_environments = settings.policy.memory == "lstm" and settings.gym.rollout == "episodes"
    if settings.has_policy and trains_whole_environments and settings.ppo.minibatches > asked_experiment.n_envs:
        raise UsageError(
            f"group {group.name!r}: ppo.minibatches={settings.ppo.minibatches} with ",
            SettingName("n_envs", asked_experiment.n_envs),
            "; a minibatch consists of whole environments: at most ",
            SettingName("ppo.minibatches", asked_experiment.n_envs, assigned=True),
        )
