"""Notes for the user on a plan that has not started, of one or two sentences each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.wording import capital, counted, named
from esper_ab.contracts.worker_order import Lane
from esper_ab.design.counterbalance import cycle, draws_positions
from esper_ab.design.guardrails import Guardrail, guardrails_of
from esper_ab.design.outcome_words import of_training
from esper_ab.plan.budget import ENOUGH_EPISODES, enough_episodes
from esper_ab.plan.estimate import duration, estimate
from esper_ab.plan.gpu_memory import too_much
from esper_ab.plan.kind import NotesKind
from esper_ab.settings.differences import pairs_by_axes
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS

_UNPAIRED = "unpaired: groups do not share randomness within a seed; use this for calibration, not for comparison."
_FIXED = (
    "order fixed: every group keeps its device and its place in the start order, so group and device are confounded; "
    "no verdict is possible."
)
_FEW = 4  # devices named in a sentence


def estimand(experiment: ResolvedExperiment, machine: Machine) -> str:
    """State the estimand in one sentence; docs/statistics.md gives the reasons."""
    task = machine.task(experiment.task)
    outcome = task.measures.outcome
    kind = of_kind(task.kind, NotesKind)
    part = of_training(experiment.outcome_over, kind.episodes)
    measured_words = kind.measured(outcome.label)
    if part:
        measured_words = f"{outcome.label}, averaged over {part},"
    unit = f", in {outcome.apart}" if outcome.apart else ""
    split = f", on the task's fixed test split of {task.sizes[2]} samples" if task.sizes[2] else ""
    if len(experiment.groups) == 1:
        return f"Mean {measured_words.removesuffix(',')} over seeds{split}; {outcome.better} is better."
    if experiment.unpaired:
        seeds = "over separate seeds for each group"
    else:
        seeds = "over the same seeds for both groups"
    return f"Mean difference in {measured_words} between two groups{unit}, {seeds}{split}; {outcome.better} is better."


def limits(
    experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane], *, positions_matter: bool
) -> tuple[str, ...]:
    """Return the notes that are shown first: limits of the plan's verdicts, by importance, and of its speed."""
    task = machine.task(experiment.task)
    kind = of_kind(task.kind, NotesKind)
    sentences = list(kind.first_limits(experiment, machine))
    if experiment.unpaired:
        sentences.append(_UNPAIRED)
    if experiment.order == "fixed" and positions_matter:
        sentences.append(_FIXED)
    sentences += _note_quick_look(experiment, machine, lanes)
    sentences += _note_differences(experiment, machine)
    sentences += kind.on_differences(experiment)
    sentences += _note_rewards(machine)
    sentences += kind.on_environments(experiment, machine)
    sentences += _note_repeating(task)
    sentences += _note_max_parallel(experiment, lanes)
    if machine.unusable_gpus and _use_gpus(lanes):
        sentences.append(f"{machine.unusable_gpus}.")
    return tuple(sentences)


def end_of_identical(experiment: ResolvedExperiment, guardrails: Iterable[Guardrail]) -> str:
    """Say when a plan with `identical_after` ends whose groups turn out to be one computation."""
    if all(guardrail.recorded for guardrail in guardrails):
        return f"It ends after {counted(experiment.identical_after, 'seed')} if all records of the groups agree."
    return "It ends at the first look at which all records of the groups agree and the guardrails hold."


def _note_rewards(machine: Machine) -> Iterator[str]:
    """Yield a note on each user's reward that does not repeat."""
    for reward in machine.user_rewards:
        if not reward.repeats:
            yield (
                f"reward={reward.reference} does not repeat: it returned different values for the same facts. So "
                "groups with equal settings will differ, and so will a run that is retried after its worker dies."
            )


def _use_gpus(lanes: Sequence[Lane]) -> bool:
    return any(device.startswith("cuda:") for lane in lanes for device in lane.devices)


def _note_quick_look(experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane]) -> Iterator[str]:
    """Yield a note if too little training to tell rewards apart is planned, with the budget that can and its cost."""
    learners = [group.name for group in experiment.groups if group.settings.learns]
    enough_count = enough_episodes(experiment)
    if len(learners) < 2 or enough_count is None:
        return
    longer_estimate = estimate(msgspec.structs.replace(experiment, episodes=enough_count), lanes, machine)
    episode_words = counted(experiment.episodes * experiment.n_envs, "episode")
    yield (
        f"a quick look: a run trains on {episode_words}, so you compare early learning of {', '.join(learners)}. On "
        f"{experiment.task}, seeds disagree less from about {ENOUGH_EPISODES} on: --episodes {enough_count}, "
        f"{duration(longer_estimate.duration_s)} here."
    )


def _note_max_parallel(experiment: ResolvedExperiment, lanes: Sequence[Lane]) -> Iterator[str]:
    """Yield a note if fewer runs train at the same time than --max-parallel allows, with the reason."""
    n_groups = len(experiment.groups)
    asked_parallel = experiment.max_parallel
    sets = len(lanes) // n_groups
    runs_per_set = 1 if experiment.takes_turns else n_groups  # runs of a block that train at the same time
    if not asked_parallel or sets * runs_per_set >= asked_parallel:
        return
    pool = len(experiment.devices) // experiment.devices_per_run  # sets that the devices allow
    if experiment.placement == "spread":
        pool //= n_groups
    if sets == asked_parallel // runs_per_set:
        reason = f"the {n_groups} runs of a seed train together"
    elif sets == experiment.seeds:
        reason = f"there are {sets * runs_per_set} runs"
    elif sets == pool:
        devices = [*experiment.devices[:_FEW]]
        if len(experiment.devices) > _FEW:
            devices.append("…")
        reason = f"there are {counted(len(experiment.devices), 'device')} ({', '.join(devices)})"
    else:
        reason = "each device needs enough seeds before the first look, so more seeds or later --looks allow more"
    yield f"--max-parallel {asked_parallel}: {sets * runs_per_set} runs train at a time, because {reason}."


def notes(
    experiment: ResolvedExperiment,
    machine: Machine,
    lanes: Sequence[Lane],
    idle_devices: Sequence[str],
    *,
    positions_matter: bool,
) -> tuple[str, ...]:
    """Return the notes on the plan that are not `limits`, the most important first."""
    kind = of_kind(machine.task(experiment.task).kind, NotesKind)
    sentences = list(kind.first_notes(experiment, machine))
    sentences += _note_inference(experiment, machine, len(lanes), positions_matter=positions_matter)
    sentences += kind.on_learning(experiment)
    sentences += _note_devices(experiment, machine, lanes, idle_devices)
    if machine.spawned_because:
        sentences.append(
            f"Each worker imports torch for itself (spawned, not forked), because {machine.spawned_because}."
        )
    return tuple(sentences)


def _note_inference(
    experiment: ResolvedExperiment, machine: Machine, n_lanes: int, *, positions_matter: bool
) -> Iterator[str]:
    """Yield notes on the verdicts that this number of seeds allows, and on the effects of order and placement."""
    measures_spread = experiment.unpaired and _are_equal(experiment)  # as calibrations do: nothing is compared
    if len(experiment.groups) > 1 and not measures_spread:  # else the plan's own lines say that nothing is compared
        yield from _note_seeds(experiment)
    if experiment.identical_after:
        yield end_of_identical(experiment, guardrails_of(experiment.guardrails, machine.task(experiment.task).measures))
    if not positions_matter:
        aliasing_words = "; the fixed order confounds nothing" if experiment.order == "fixed" else ""
        yield f"Runs are bit-reproducible on this machine, so scheduling cannot affect results{aliasing_words}."
    elif not measures_spread:
        yield from _note_order(experiment, n_lanes)
    if experiment.placement == "alternate":
        yield "alternate: the runs of a block take turns, episode by episode."
    if experiment.placement == "sequence":
        yield "sequence: the runs of a block train one after the other."
    if experiment.sync == "independent":
        yield "independent: no barrier between episodes, so groups may be at different episodes at the same time."


def _note_seeds(experiment: ResolvedExperiment) -> Iterator[str]:
    """Yield a note on the verdicts that this number of seeds does not allow."""
    replicates = experiment.seeds
    if replicates == 1:
        yield "1 seed: no verdict on the groups is possible, because one run per group does not show their spread."
    elif replicates < LEAST_PAIRS:
        yield f"{replicates} seeds are too few for a verdict: at least {LEAST_PAIRS} are needed (--seeds)."
    elif replicates < LEAST_EQUIVALENCE_PAIRS and not experiment.open_ended:
        yield (
            f"With {replicates} seeds this plan can find a difference but cannot show that there is none; that "
            f"takes {LEAST_EQUIVALENCE_PAIRS}."
        )


def _note_order(experiment: ResolvedExperiment, n_lanes: int) -> Iterator[str]:
    """Yield notes on how evenly groups are balanced over devices and start orders."""
    n_groups = len(experiment.groups)
    replicates = experiment.seeds
    cycle_length = cycle(n_groups) * (n_lanes // n_groups)
    if experiment.order == "balanced" and draws_positions(n_groups):
        yield (
            f"{n_groups} groups: device and start order are drawn at random for this experiment, because with so many "
            f"groups {LEAST_PAIRS} pairs cannot separate their effects; they add noise to every comparison."
        )
    elif experiment.order == "balanced" and replicates > 1 and replicates % cycle_length:
        yield (
            f"{replicates} seeds are not a multiple of {cycle_length}: groups will not have every device and start "
            "order "
            "equally often, so differences between devices may not cancel out."
        )
    if experiment.order == "shuffled":
        yield "order shuffled: device and start order are drawn at random for each block and may be unbalanced."


def _are_equal(experiment: ResolvedExperiment) -> bool:
    """Whether the groups differ in no setting that they use."""
    return not any(pairs_by_axes(experiment.groups, experiment.states_of_code).values())


def _note_differences(experiment: ResolvedExperiment, machine: Machine) -> Iterator[str]:
    """Yield notes on pairs of groups that do not differ, or that differ in several settings."""
    by_axes: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for pair, axes in pairs_by_axes(experiment.groups, experiment.states_of_code).items():
        by_axes.setdefault(axes, []).append(pair)
    for axes, pairs in by_axes.items():
        names = capital(named(pairs))
        if not axes:
            equality_words = "their records must be identical"
            if machine.trainer is not None and not machine.trainer.repeats:
                equality_words = "their records differ by chance alone, because the trainer does not repeat"
            elif experiment.unpaired:
                equality_words = "with independent randomness"
            yield f"{names} do not differ in any setting that they use (A/A): {equality_words}."
        elif len(axes) > 1:
            yield f"{names} differ in {len(axes)} settings ({', '.join(axes)}): their effects cannot be told apart."


def _note_repeating(task: TaskFacts) -> Iterator[str]:
    """Yield a note on environments that do not repeat or that carry state."""
    if task.carries:
        yield (
            "The environments carry state from one reset to the next: replaying an episode with the same seed and "
            "actions gave another result than in new environments. So a run that is retried after its worker dies will "
            "differ, and an evaluation starts without that state."
        )
    elif not task.repeats:
        yield (
            "The environments do not repeat: playing an episode twice with the same seed and actions gave different "
            "results. So groups with equal settings will differ, and so will a run that is retried after its worker "
            "dies."
        )


def _note_devices(
    experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane], idle_devices: Sequence[str]
) -> Iterator[str]:
    cpu_lanes = [lane for lane in lanes if lane.devices[0].startswith("cpu:")]
    threads = experiment.arithmetic.threads
    cores = len(machine.names("cpu"))
    if cpu_lanes:
        unused_words = "GPUs stay unused" if machine.names("cuda") or machine.gpu_problem else "No GPU"
        yield f"{unused_words}: {counted(len(cpu_lanes), 'worker')} on the CPU, {counted(threads, 'thread')} each."
    elif experiment.placement == "share":
        yield "Workers share a GPU in time slices; with NVIDIA's MPS they use it at the same time."
    if machine.unusable_gpus and not _use_gpus(lanes):
        yield f"{machine.unusable_gpus}."
    busy_cores = threads * len(cpu_lanes)
    if experiment.trainer:
        busy_cores *= experiment.devices_per_run  # each of its processes has so many threads
    if busy_cores > cores:
        yield f"{busy_cores} threads share {cores} cores: results stay the same, but runs take longer."
    if experiment.devices_per_run > 1:
        if experiment.trainer:
            yield _several_devices_of_command(experiment.devices_per_run, on_cores=bool(cpu_lanes))
        else:
            yield _several_devices(experiment.devices_per_run, on_cores=bool(cpu_lanes))
    if not experiment.arithmetic.deterministic and any(any(lane.uuids) for lane in lanes):
        yield (
            "not deterministic: on a GPU, groups with equal settings may differ in the last digits, and a resumed run "
            "may differ from an uninterrupted one."
        )
    if memory := too_much(experiment, machine, lanes):
        yield memory
    yield from _note_pool(experiment, machine, lanes, idle_devices)


def _several_devices(devices_per_run: int, *, on_cores: bool) -> str:
    """Return a note on runs that use several devices each."""
    speed = (
        "One process launches the kernels of all GPUs in turn, so this saves time only if kernels take longer than "
        "their launch: with large networks or hundreds of environments."
    )
    if on_cores:
        speed = "The CPU devices of a run take turns, so this tests the code path but saves no time."
    return (
        f"{devices_per_run} devices per run: environments are spread over them, but the policy stays on the CPU. "
        f"{speed}"
    )


def _several_devices_of_command(per_run: int, *, on_cores: bool) -> str:
    """Return a note on runs of a command that use several devices each."""
    if on_cores:
        return f"{per_run} devices per run: a run takes the place of {per_run} on the CPU, whatever it uses."
    return f"{per_run} devices per run: a run sees {per_run} GPUs, and the command must use them itself (torchrun)."


def _note_pool(
    experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane], idle_devices: Sequence[str]
) -> Iterator[str]:
    """Yield notes on devices of different kinds, and on devices that stay idle."""
    used_devices = {device for lane in lanes for device in lane.devices}
    titles = {device.title or "CPU" for device in machine.devices if device.name in used_devices}
    if len(titles) > 1:
        yield f"Unequal devices: {', '.join(sorted(titles))}; devices are counterbalanced."
    if idle_devices:
        few_names = ", ".join(idle_devices[:_FEW])
        if len(idle_devices) > _FEW:
            few_names += f", … {idle_devices[-1]}"
        yield f"{len(idle_devices)} of {len(experiment.devices)} devices stay idle: {few_names}."
