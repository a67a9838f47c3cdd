"""What the user should know about a plan before it starts: one sentence each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esper_ab.contracts.children import Machine
from esper_ab.contracts.messages import Lane
from esper_ab.contracts.settings import ENV_REWARD, GROWTH, TRAINER, RewardSettings, kind_of_task
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.contracts.wording import capital, counted, named
from esper_ab.design.counterbalance import cycle, draws_positions
from esper_ab.design.design import of_training
from esper_ab.plan import users_code as own
from esper_ab.plan.estimate import too_much
from esper_ab.settings.experiment import UNIFORM, ResolvedExperiment, pairs_by_axes, starts
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS

# --- positions -------------------------------------------------------------------------------------------------------
# Whether the place of a run in its block, device and start order, could change what it records. Pure.


def positions_could_matter_by(experiment: ResolvedExperiment, machine: Machine) -> str:
    """Name what could make a record depend on its lane or start order; "" where it is a function of rng paths alone.

    That takes parts of the catalogues only, whose every random number has an address, in one arithmetic that gives the
    same bits every time, on the cores of one kind of CPU. Of users' code nothing is known.
    """
    cores = {device.name: device.title for device in machine.devices if device.name.startswith("cpu:")}
    others = [name for name in experiment.devices if name not in cores]
    modes = (group.settings.reward.mode for group in experiment.groups)
    foreign = [mode for mode in modes if mode not in machine.rewards]
    if experiment.trainer:
        return "the trainer is your own"
    if experiment.task.rpartition(":")[0].endswith(".py"):
        return f"the environments of {experiment.task} are no part of a package"
    task = next((task for task in machine.tasks if task.name == experiment.task), None)
    if task is not None and not task.repeats:
        return "the environments carry state across resets" if task.carries else "the environments do not repeat"
    if ":" in experiment.outcome.removeprefix("info:"):
        return f"the outcome {experiment.outcome} is a function of a user's own"
    if foreign:
        return f"the reward {foreign[0]} is no entry of the catalogue"
    if others:
        return f"{others[0]} is no CPU core"
    if len({cores[name] for name in experiment.devices}) > 1:
        return "cores are of different kinds"
    if not experiment.arithmetic.deterministic:
        return "the arithmetic is not deterministic"
    return "the groups share a normaliser" if experiment.share_observation_norm else ""


_UNPAIRED = ("unpaired: the groups of a seed do not share randomness; for calibration, not for comparison.",)
_FIXED = (
    "order fixed: every group keeps its device and its place in the start order, so that group and device are aliased; "
    "no verdict can follow.",
)
ENOUGH_EPISODES = 960  # of a run on digits, for rewards to be told apart by few pairs; docs/evidence/learning.md
_WIDEST_ACTIONS = 10.0  # half-width of bounds that actions with a standard deviation of 1 still explore
_FEW = 4  # dimensions of actions, named in a sentence


def estimand(experiment: ResolvedExperiment, machine: Machine) -> str:
    """Say in one sentence what is estimated; docs/statistics.md gives the reasons."""
    task = machine.task(experiment.task)
    outcome, trained = task.measures.outcome, task.kind == TRAINER
    part = of_training(experiment.outcome_over, *(["points"] if trained else []))
    whose = "" if trained else " of the trained policy"
    measured = f"{outcome.label}, averaged over {part}," if part else f"{outcome.label}{whose}"
    unit = f", in {outcome.apart}" if outcome.apart else ""
    split = f", on the task's fixed test split of {task.sizes[2]} samples" if task.sizes[2] else ""
    seeds = "over separate seeds for each group" if experiment.unpaired else "over the same seeds for both groups"
    return f"Mean difference in {measured} between two groups{unit}, {seeds}{split}; {outcome.better} is better."


def limits(experiment: ResolvedExperiment, machine: Machine, *, positions_matter: bool) -> tuple[str, ...]:
    """Write what limits what the answer to a plan may say, the most important first."""
    facts = machine.trainer
    return (
        *((own.found(facts, experiment.trainer),) if facts is not None and not _as_wished(facts) else ()),
        *(_on_sharing(experiment) if experiment.share_observation_norm else ()),
        *(_UNPAIRED if experiment.unpaired else ()),
        *(_FIXED if experiment.order == "fixed" and positions_matter else ()),
        *_on_differences(experiment, machine),
        *(
            f"reward={reward.reference} does not repeat: it gave other values for the same facts. So groups with equal "
            "settings differ, and so does a run that was taken up after a death."
            for reward in machine.user_rewards if not reward.repeats
        ),
        *(_on_environments(experiment, machine) if kind_of_task(experiment.task) != GROWTH else ()),
    )


def _as_wished(facts: TrainerFacts) -> bool:
    return facts.repeats and facts.evaluates_alike


def notes(
    experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane], idle: Sequence[str], *,
    positions_matter: bool,
) -> tuple[str, ...]:  # fmt: skip
    """Write what else is worth knowing about a plan, the most important first."""
    facts = machine.trainer
    return (
        *((own.found(facts, experiment.trainer),) if facts is not None and _as_wished(facts) else ()),
        *_on_inference(experiment, len(lanes), positions_matter=positions_matter),
        *_on_outcome(experiment),
        *(_on_policies(experiment) if experiment.slots else ()),
        *_on_devices(experiment, machine, lanes, idle),
    )


def _on_inference(experiment: ResolvedExperiment, n_lanes: int, *, positions_matter: bool) -> Iterator[str]:
    """Say what may follow from so many seeds, and what order and placement do to it."""
    replicates = experiment.seeds
    if replicates == 1:
        yield "1 seed: nothing will follow about the groups; one run of each says nothing about their spread."
    elif replicates < LEAST_PAIRS:
        yield f"{replicates} seeds cannot carry a verdict: at least {LEAST_PAIRS} are needed (--seeds)."
    elif replicates < LEAST_EQUIVALENCE_PAIRS and not experiment.open_ended:
        yield (
            f"With {replicates} seeds this plan can find a difference but cannot show that there is none: that "
            f"takes {LEAST_EQUIVALENCE_PAIRS}."
        )
    if positions_matter:
        yield from _on_order(experiment, n_lanes)
    else:
        aliased = "; that the order is fixed confounds nothing" if experiment.order == "fixed" else ""
        yield (
            "Device and start order cannot matter here: with parts of the catalogues, a deterministic arithmetic and "
            f"one kind of CPU a record is a function of its rng paths alone. So nothing is adjusted for them{aliased}."
        )
    if experiment.placement == "sequence":
        yield "sequence: the runs of a block train one after the other, not at the same time."
    if experiment.sync == "independent":
        yield "independent: no barrier between episodes; groups may be at different episodes at the same time."


def _on_order(experiment: ResolvedExperiment, n_lanes: int) -> Iterator[str]:
    """Write what the order does to positions, and when the planned one is balanced."""
    n_groups, replicates = len(experiment.groups), experiment.seeds
    full = cycle(n_groups) * (n_lanes // n_groups)
    if experiment.order == "balanced" and draws_positions(n_groups):
        yield (
            f"{n_groups} groups: device and start order are drawn by lot for this experiment, because {LEAST_PAIRS} "
            "pairs can be told from them for fewer groups only; what they do is noise in every comparison."
        )
    elif experiment.order == "balanced" and replicates > 1 and replicates % full:
        yield (
            f"{replicates} seeds are not a multiple of {full}: groups do not take every device and order equally "
            "often; a difference between these would not cancel out."
        )
    if experiment.order == "shuffled":
        yield "order shuffled: device and start order are drawn afresh per block; they need not balance."


def _on_sharing(experiment: ResolvedExperiment) -> Iterator[str]:
    learners = [group.name for group in experiment.groups if group.settings.has_policy]
    yield (
        f"share-observation-norm: {', '.join(learners)} normalise their observations by the moments of all of them, so "
        "they are coupled: what one group does changes the others, and adding or removing a group changes every result."
    )
    if len(learners) > 2 and experiment.early_stop:
        yield (
            "share-observation-norm: a group that is decided early leaves later blocks, and those who stay are then "
            "trained in other company; --no-early-stop keeps the company the same."
        )


def _on_differences(experiment: ResolvedExperiment, machine: Machine) -> Iterator[str]:
    groups = {group.name: group.settings for group in experiment.groups}
    alike: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for pair, axes in pairs_by_axes(experiment.groups).items():
        alike.setdefault(axes, []).append(pair)
    for axes, pairs in alike.items():
        them = capital(named(pairs))
        if not axes:
            equal = "with independent randomness" if experiment.unpaired else "their records must be identical"
            if machine.trainer is not None and not machine.trainer.repeats:
                equal = "they differ by chance alone, for the trainer does not repeat"
            yield f"{them} do not differ in anything that is read (A/A): {equal}."
        elif len(axes) > 1:
            yield f"{them} differ in {len(axes)} settings ({', '.join(axes)}): their effects cannot be told apart."
    for name, settings in groups.items() if experiment.slots else ():
        if settings.learns and _has_potential(settings.reward) and settings.ppo.gamma != settings.reward.gamma:
            yield (
                f"{name}: ppo.gamma={settings.ppo.gamma} is not reward.gamma={settings.reward.gamma}: the potential-"
                "based shaping is then no longer neutral to the optimal policy."
            )


def _has_potential(reward: RewardSettings) -> bool:
    """Whether a mode of the catalogue pays by the potential of workers/reward_terms; the loss family does not."""
    paid = reward.pbrs_weight != 0.0 and not reward.disable_pbrs
    return paid and reward.mode in ("shaped", "simplified") and reward.family == "contribution"


def _on_outcome(experiment: ResolvedExperiment) -> Iterator[str]:
    """Say which groups train on the outcome itself."""
    if kind_of_task(experiment.task) == GROWTH:
        return
    learners = [group for group in experiment.groups if group.settings.has_policy]
    same = [group.name for group in learners if group.settings.reward.mode == ENV_REWARD]
    if same and len(same) < len(learners) and not experiment.outcome:
        yield (
            f"The outcome is also the reward of {', '.join(same)} ({ENV_REWARD}), and not of the other learners: the "
            "question is whether another reward teaches it better than it teaches itself."
        )


def _on_environments(experiment: ResolvedExperiment, machine: Machine) -> Iterator[str]:
    """Say that environments do not repeat or carry state, and which actions are hard to reach."""
    task = machine.task(experiment.task)
    if any(group.settings.has_policy for group in experiment.groups):
        yield from _on_actions(task.action_bounds)
    if task.carries:
        yield (
            "The environments carry state from one reset to the next: one episode, played again in the same ones with "
            "the same seed and actions, was not the same as in new ones. So a run that was taken up after a death is "
            "another than without it, and an evaluation begins without that state."
        )
    elif not task.repeats:
        yield (
            "The environments do not repeat: one episode, played twice with the same seed and actions, was not the "
            "same. So groups with equal settings differ, and so does a run that was taken up after a death."
        )


def _on_actions(bounds: Sequence[tuple[float, float] | None]) -> Iterator[str]:
    """Say which bounds of actions the distribution does not fit with which a policy begins."""
    misfits = [
        f"{dimension} ({both[0]:g} to {both[1]:g})" for dimension, both in enumerate(bounds)
        if both and (both[0] > -1.0 or both[1] < 1.0 or both[1] - both[0] > 2.0 * _WIDEST_ACTIONS)
    ]  # fmt: skip
    if misfits:
        more = f" and {len(misfits) - _FEW} more" if len(misfits) > _FEW else ""
        yield (
            f"Bounds of actions: {', '.join(misfits[:_FEW])}{more} do not fit the start of a policy. Its actions are "
            "normal with mean 0 and standard deviation 1, clipped to the bounds: it may act at a bound always, or try "
            "little of what is allowed, and not learn. Let your own make return gymnasium.wrappers.RescaleAction(env, "
            "-1.0, 1.0)."
        )


def _on_policies(experiment: ResolvedExperiment) -> Iterator[str]:
    """Say for growth that few episodes show who learns sooner, and where a policy leans at its start."""
    learners = [group.name for group in experiment.groups if group.settings.learns]
    trained = experiment.episodes * experiment.n_envs
    if len(learners) > 1 and trained < ENOUGH_EPISODES:
        yield (
            f"budget: a run trains on {counted(trained, 'episode')} (episodes x environments). On digits it takes "
            f"{ENOUGH_EPISODES} until a few pairs tell rewards apart. With fewer a comparison says which of "
            f"{', '.join(learners)} learns sooner, and which is ahead may change with more training."
        )
    for start, names in starts(experiment.groups).items():
        if start != UNIFORM:
            yield (
                f"start: the op head of {', '.join(names)} begins with the bias {start} (policy.bias_…), so that an "
                "untrained policy leans to what is positive and seldom does what is negative."
            )


def _on_devices(
    experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane], idle: Sequence[str]
) -> Iterator[str]:
    cpu_lanes = [lane for lane in lanes if lane.devices[0].startswith("cpu:")]
    threads, cores = experiment.arithmetic.threads, len(machine.names("cpu"))
    if cpu_lanes:
        yield (
            f"{'GPUs stay unused' if machine.names('cuda') else 'No GPU'}: {counted(len(cpu_lanes), 'CPU core')}, "
            f"{counted(threads, 'thread')} each."
        )
    elif experiment.placement == "share":
        yield "Workers share a GPU in time slices; NVIDIA's MPS lets them use it at once (docs/machine.md)."
    if machine.unusable_gpus:
        yield f"{machine.unusable_gpus}."
    busy = threads * len(cpu_lanes)
    if busy > cores:
        yield f"{busy} threads share {cores} cores in turn: results stay the same, time does not."
    if experiment.devices_per_run > 1:
        yield (
            f"{experiment.devices_per_run} devices per run: environments are spread over them; the policy stays on the "
            "CPU, as on every device. " + (
                "The CPU devices of a run take turns: that tries the path out and saves no time." if cpu_lanes else
                "One process launches the kernels of all GPUs, in turn: that saves time only where kernels take longer "
                "than their launch, with large networks or hundreds of environments."
            )
        )  # fmt: skip
    if not experiment.arithmetic.deterministic and any(any(lane.uuids) for lane in lanes):
        yield (
            "not deterministic: on a GPU groups with equal settings may differ in their last digits, and a resumed run "
            "from one that was not interrupted."
        )
    memory = too_much(experiment, machine, lanes)
    if memory:
        yield memory
    kinds = {device.title for device in machine.devices if any(device.name in lane.devices for lane in lanes)}
    if len(kinds) > 1:
        yield f"Unequal devices: {', '.join(sorted(kind or 'CPU' for kind in kinds))}; devices are counterbalanced."
    if idle:
        few = ", ".join(idle[:4]) + (f", … {idle[-1]}" if len(idle) > 4 else "")
        yield f"{len(idle)} of {len(experiment.devices)} devices stay idle: {few}."
