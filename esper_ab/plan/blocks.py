"""Turn an experiment and a machine into blocks of RunSpec. Pure: no clock, no device, no file."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.machine import Device, Machine, TaskFacts
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.reward_audit import RewardAudit
from esper_ab.contracts.rng import RngPath, run_path, shuffled
from esper_ab.contracts.run_files import log_of, out_of, policy_of
from esper_ab.contracts.worker_order import Lane, RunSpec
from esper_ab.design.check import check_design
from esper_ab.design.counterbalance import blocks_needed, draws_positions, identified, order, order_drawn
from esper_ab.design.design import Design, comparisons, extended, looks_of
from esper_ab.design.make_design import make_design
from esper_ab.design.possible_outcomes import check_possible
from esper_ab.plan.estimate import Estimate, estimate
from esper_ab.plan.notes import estimand, limits, notes
from esper_ab.plan.plan import Block, Extension, Plan
from esper_ab.plan.positions import positions_could_matter_by
from esper_ab.plan.reward_code import code_of
from esper_ab.plan.trainer_code import order_of
from esper_ab.settings.differences import differences
from esper_ab.settings.experiment import Group, ResolvedExperiment
from esper_ab.settings.outcome_range import worst_outcome
from esper_ab.settings.schema import EXPERIMENT_FIELDS, GROUP_FIELDS, leave_out_later
from esper_ab.stats.least_pairs import LEAST_PAIRS

LaneSet = tuple[Lane, ...]  # the lanes of one block, by position


def make_plan(
    experiment: ResolvedExperiment,
    machine: Machine,
    *,
    remarks: Sequence[str] = (),
    run_sd: float | None = None,
    reward_audit: RewardAudit | None = None,
) -> tuple[Plan, Estimate]:
    """Return the plan and its cost estimate; UsageError if the devices are too few for one block.

    `remarks` has notes from resolving and calibration, to be put after the plan's own notes. `run_sd` comes from a
    calibration. `reward_audit` covers only the rewards of `experiment`.
    """
    check_design(experiment)  # first, because the number of lane sets depends on the comparisons and looks
    task = machine.task(experiment.task)
    digest = digest_of(experiment, machine)
    matter = bool(positions_could_matter_by(experiment, machine))
    sets = _lane_sets(experiment, machine, positions_matter=matter)
    templates = {group.name: _run_spec(experiment, machine, digest, group) for group in experiment.groups}
    blocks = _blocks(experiment, templates, sets, range(experiment.seeds))
    lanes = tuple(itertools.chain.from_iterable(sets))
    used_devices = {device for lane in lanes for device in lane.devices}
    idle_devices = tuple(device for device in experiment.devices if device not in used_devices)
    cost = estimate(experiment, lanes, machine)
    chance = 100.0 / task.classes if task.classes else None
    limiting_notes = limits(experiment, machine, lanes, positions_matter=matter)
    other_notes = notes(experiment, machine, lanes, idle_devices, positions_matter=matter)
    plan = Plan(
        experiment=experiment,
        digest=digest,
        lanes=lanes,
        idle_devices=idle_devices,
        blocks=blocks,
        differences=differences(experiment.groups, experiment.states_of_code),
        design=_design(experiment, task, blocks, chance, positions_matter=matter),
        kind=task.kind,
        estimand=estimand(experiment, machine),
        notes=(*limiting_notes, *other_notes, *remarks),
        limits=len(limiting_notes),
        step_s=cost.step_s,
        chance=chance,
        run_sd=run_sd,
        trainer=machine.trainer,
        reward_audit=reward_audit,
        carries=task.carries,
    )
    return plan, cost


def _design(
    experiment: ResolvedExperiment,
    task: TaskFacts,
    blocks: Sequence[Block],
    chance: float | None,
    *,
    positions_matter: bool,
) -> Design:
    """Return the design; a lost run counts as `chance` or, without it, as the worst possible outcome.

    Raises UsageError if claims must hold for any shape, and the range of possible outcomes is open.
    """
    worst = worst_outcome(experiment) if chance is None else chance
    if experiment.shape == "any":
        check_possible(task.measures.outcome, worst, (SettingName("outcome_range", "LOW..HIGH"),))
    return make_design(
        experiment,
        [tuple(spec.ref.group_id for spec in block.runs) for block in blocks],
        measures=task.measures,
        positions_matter=positions_matter,
        worst=worst,
    )


def extend(plan: Plan, design: Design, planned_seeds: int, added_seeds: int) -> Extension:
    """Return an extension with `added_seeds` seeds after the `planned_seeds` ones, on the same lanes, in
    counterbalanced order.
    """
    n_groups = len(plan.experiment.groups)
    sets = [plan.lanes[i : i + n_groups] for i in range(0, len(plan.lanes), n_groups)]
    templates = {spec.ref.group_id: spec for spec in plan.blocks[0].runs}
    blocks = _blocks(plan.experiment, templates, sets, range(planned_seeds, planned_seeds + added_seeds))
    return Extension(design=extended(design, planned_seeds), blocks=blocks)


def _blocks(
    experiment: ResolvedExperiment, templates: Mapping[str, RunSpec], sets: Sequence[LaneSet], replicates: range
) -> tuple[Block, ...]:
    """Return a block for each of `replicates`, using the lane sets in turn; `templates` has one RunSpec per group."""
    blocks = []
    for replicate in replicates:
        groups = positions(experiment, replicate, len(sets))
        lanes = sets[replicate % len(sets)]
        specs = [templates[experiment.groups[group].name] for group in groups]
        runs = tuple(_placed(spec, replicate, lane) for spec, lane in zip(specs, lanes, strict=True))
        blocks.append(Block(replicate=replicate, runs=runs))
    return tuple(blocks)


def _placed(template: RunSpec, replicate: int, lane: Lane) -> RunSpec:
    """Return `template` with a seed and a lane filled in."""
    name = f"{template.ref.group_id}/{replicate}"
    ref = msgspec.structs.replace(template.ref, name=name, replicate=replicate, device=lane.name)
    trainer = template.trainer
    if trainer is not None:
        trainer = msgspec.structs.replace(trainer, out=out_of(ref))
    return msgspec.structs.replace(
        template,
        ref=ref,
        policy_file=policy_of(ref),
        log_file=log_of(ref),
        env_devices=tuple(lane.devices[env % len(lane.devices)] for env in range(template.n_envs)),
        trainer=trainer,
    )


def positions(experiment: ResolvedExperiment, replicate: int, n_sets: int) -> tuple[int, ...]:
    """Return each position's group in the block of `replicate`, given that blocks use `n_sets` lane sets in turn."""
    n_groups = len(experiment.groups)
    (turn, lane_set) = divmod(replicate, n_sets)
    if experiment.order == "fixed":
        return tuple(range(n_groups))
    if experiment.order == "shuffled":
        return shuffled(n_groups, run_path(experiment.rng_seed, replicate) / "order")
    if draws_positions(n_groups):
        drawn_permutation = shuffled(n_groups, RngPath(experiment.rng_seed) / "positions" / lane_set)
        return order_drawn(n_groups, turn, drawn_permutation)
    return order(n_groups, turn)


def digest_of(experiment: ResolvedExperiment, machine: Machine) -> str:
    """Return the sha256 of an experiment, whatever its name and the order of its groups.

    The hash covers the source code of users' rewards and trainer. Settings marked as `later` are left out while they
    have their defaults.
    """
    groups = tuple(sorted(experiment.groups, key=lambda group: group.name))
    nameless_experiment = msgspec.to_builtins(msgspec.structs.replace(experiment, name="", groups=groups))
    leave_out_later(nameless_experiment, EXPERIMENT_FIELDS)
    for group in nameless_experiment["groups"]:
        leave_out_later(group["settings"], GROUP_FIELDS)
    sources = {reward.reference: reward.sha256 for reward in machine.user_rewards}
    if machine.trainer is not None:
        sources[experiment.trainer] = machine.trainer.sha256
    return hashlib.sha256(msgspec.json.encode([nameless_experiment, sources], order="sorted")).hexdigest()


def _lane_sets(experiment: ResolvedExperiment, machine: Machine, *, positions_matter: bool) -> tuple[LaneSet, ...]:
    """Return a lane set for each block that may run at the same time.

    The number of sets is limited so that each gets enough blocks to separate group effects from lane effects.
    """
    n_groups = len(experiment.groups)
    devices = {device.name: device for device in machine.devices}
    devices_per_run = experiment.devices_per_run
    pool = experiment.devices
    units = [
        pool[i : i + devices_per_run] for i in range(0, len(pool) - devices_per_run + 1, devices_per_run)
    ]  # the devices of a run
    parallel_runs = 1 if experiment.takes_turns else n_groups  # runs of a block that train at the same time
    _refuse_too_few(experiment, len(units), parallel_runs)
    n_sets = len(units)
    if experiment.placement == "spread":
        n_sets //= n_groups
    n_sets = min(n_sets, experiment.max_parallel // parallel_runs or experiment.seeds)
    if positions_matter and n_groups > 1:  # one group has no effect to separate from its lane's
        n_sets = _count_sets(experiment, n_sets)
    else:
        n_sets = min(n_sets, experiment.seeds)
    if experiment.placement == "spread":
        lanes = [_lane(unit, devices) for unit in units]
        return tuple(tuple(lanes[i : i + n_groups]) for i in range(0, n_sets * n_groups, n_groups))
    return tuple(tuple(_lane(unit, devices, f"/{i}") for i in range(n_groups)) for unit in units[:n_sets])


def _count_sets(experiment: ResolvedExperiment, most_sets: int) -> int:
    """Return the number of lane sets to use, at most `most_sets`; UsageError if no comparison could ever be decided.

    Each set must have enough blocks by the first look. Unless positions are drawn at random or fixed on purpose, each
    comparison must be separable from lane effects at every look.
    """
    n_groups = len(experiment.groups)
    replicates = experiment.seeds
    planned_looks = looks_of(experiment) or range(LEAST_PAIRS, replicates + 1)
    looks = [look for look in planned_looks if look >= LEAST_PAIRS]
    first_look = looks[0] if looks else replicates
    most_sets = min(most_sets, max(1, first_look // blocks_needed(n_groups)))
    if experiment.order == "fixed" or (experiment.order == "balanced" and draws_positions(n_groups)):
        return most_sets
    for count in range(most_sets, 0, -1):
        if not any(_find_confounded(experiment, look, count) for look in looks):
            return count
    a, b = next(filter(None, (_find_confounded(experiment, look, 1) for look in looks)))
    least_replicates = next(
        count for count in itertools.count(first_look) if not _find_confounded(experiment, count, 1)
    )
    remedy = (
        SettingName("looks", (least_replicates, replicates))
        if least_replicates < replicates
        else SettingName("seeds", least_replicates)
    )
    raise UsageError(
        SettingName("order", experiment.order),
        f": after {first_look} seeds of this random order, the effects of {a} and {b} "
        f"cannot be separated from those of device and start order; plan the first look after {least_replicates} "
        "seeds, with ",
        remedy,
        ", or choose ",
        SettingName("order", "balanced"),
    )


def _find_confounded(experiment: ResolvedExperiment, replicates: int, n_sets: int) -> tuple[str, str] | None:
    """Return two compared groups whose effects are confounded with lanes after `replicates`; None if no two are."""
    names = [group.name for group in experiment.groups]
    lanes = []  # by group, per block
    for replicate in range(replicates):
        group_order = positions(experiment, replicate, n_sets)
        lanes.append({names[group]: (replicate % n_sets, place) for place, group in enumerate(group_order)})
    for pair in comparisons(experiment):
        if not identified([{pair.a: (block[pair.a],), pair.b: (block[pair.b],)} for block in lanes]):
            return pair.a, pair.b
    return None


def _lane(devices: Sequence[str], known_devices: Mapping[str, Device], suffix: str = "") -> Lane:
    """Return a lane; a device that is not in `known_devices` is one of the lanes that outnumber the cores."""
    facts = [known_devices.get(device) for device in devices]
    return Lane(
        name="+".join(devices) + suffix,
        devices=tuple(devices),
        uuids=tuple(device.uuid if device else "" for device in facts),
        titles=tuple(device.title if device else "" for device in facts),
    )


def _refuse_too_few(experiment: ResolvedExperiment, n_units: int, parallel_runs: int) -> None:
    """Raise UsageError if `n_units` sets of devices are too few for a block, or `max_parallel` is less than
    `parallel_runs`.

    `parallel_runs` is the number of runs of a block that train at the same time.
    """
    n_groups = len(experiment.groups)
    devices_per_run = experiment.devices_per_run
    pool = f"the pool has {len(experiment.devices)} ({', '.join(experiment.devices)})"
    if devices_per_run > experiment.n_envs and not experiment.trainer:
        raise UsageError(
            SettingName("devices_per_run", devices_per_run),
            " with ",
            SettingName("n_envs", experiment.n_envs),
            f": a device would have no environment; use at most {experiment.n_envs} devices",
        )
    if n_units == 0:
        raise UsageError(
            SettingName("devices_per_run", devices_per_run),
            f", but {pool}; at most {len(experiment.devices)}",
        )
    if experiment.placement == "spread" and n_units < n_groups:
        raise UsageError(
            f"{n_groups} groups need {n_groups * devices_per_run} devices ({devices_per_run} per run) with ",
            SettingName("placement", "spread"),
            f", but {pool}; ",
            SettingName("placement", "share"),
            f" trains them at the same time on {devices_per_run}, and ",
            SettingName("placement", "sequence"),
            " one after the other",
        )
    if 0 < experiment.max_parallel < parallel_runs:
        raise UsageError(
            SettingName("max_parallel", experiment.max_parallel),
            f", but the {n_groups} runs of a block train at the same time; use ",
            SettingName("placement", "sequence"),
            f" to train one after the other, or allow {n_groups} runs",
        )


def _run_spec(experiment: ResolvedExperiment, machine: Machine, digest: str, group: Group) -> RunSpec:
    """Return the RunSpec of a group, which does not depend on other groups; seed and lane are filled in later."""
    mode = ""
    eval_modes: tuple[str, ...] = ()
    worst_value = None
    if not experiment.trainer:
        mode = group.settings.reward.mode
        eval_modes = tuple(dict.fromkeys((*machine.rewards, mode)))
        worst_value = worst_outcome(experiment)
    own_references = (mode, experiment.task, experiment.outcome)
    trainer = None
    if machine.trainer is not None:
        trainer = order_of(experiment, machine.trainer, group.name)
    ref = RunRef(
        name=group.name,
        group_id=group.name,
        replicate=0,
        reward_mode=mode,
        controller=group.settings.controller.name,
        device="",
    )
    return RunSpec(
        ref=ref,
        experiment_digest=digest,
        rng_seed=experiment.rng_seed,
        rng_label=group.name if experiment.unpaired else "",
        task=experiment.task,
        data_dir=experiment.data_dir,
        slots=experiment.slots,
        n_envs=experiment.n_envs,
        episodes=experiment.episodes,
        steps=experiment.steps,
        eval_episodes=experiment.eval_episodes,
        eval_reward_modes=eval_modes,
        settings=group.settings,
        arithmetic=experiment.arithmetic,
        telemetry=experiment.telemetry,
        reward_code=tuple(code_of(reward) for reward in machine.user_rewards if reward.reference in own_references),
        outcome=experiment.outcome,
        outcome_worst=worst_value,
        repeats=machine.task(experiment.task).repeats,
        trainer=trainer,
        env_devices=(),
        policy_file="",
        log_file="",
    )
