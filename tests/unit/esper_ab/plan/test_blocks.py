"""The planner: blocks have each group once, positions are balanced, and runs do not depend on other groups."""

import re
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.plans.requests import TASK, experiment, group, machine, planned, rehearsed

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Device, UserReward
from esper_ab.contracts.settings import ControllerSettings, PolicySettings, PPOSettings, RewardSettings
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.design.counterbalance import estimable_orders, identified
from esper_ab.plan.blocks import make_plan
from esper_ab.plan.estimate import estimate
from esper_ab.plan.plan import Plan
from esper_ab.settings.experiment import AskedArithmetic
from esper_ab.settings.resolve import resolve

LOOSE = AskedArithmetic(deterministic=False)  # device and start order could then matter on cores, too
shapes = st.tuples(
    st.integers(2, 5),  # groups
    st.integers(1, 12),  # replicates
    st.integers(1, 24),  # GPUs
    st.integers(1, 3),  # devices per run
    st.sampled_from(["spread", "share", "alternate", "sequence"]),
)


@given(shapes)
def test_every_block_has_each_group_once(shape: tuple[int, int, int, int, str]) -> None:
    n, replicates, gpus, devices_per_run, placement = shape
    names = tuple("abcde"[:n])
    request = experiment(names, seeds=replicates, devices_per_run=devices_per_run, placement=placement)
    this_machine = machine(gpus=gpus)
    if gpus < devices_per_run * (n if placement == "spread" else 1):
        with pytest.raises(UsageError):
            planned(request, this_machine)
        return
    plan = planned(request, this_machine)
    assert [block.replicate for block in plan.blocks] == list(range(replicates))
    lanes = {lane.name: lane for lane in plan.lanes}
    assert len(lanes) == len(plan.lanes)
    if placement == "spread":
        devices = [device for lane in plan.lanes for device in lane.devices]
        assert len(devices) == len(set(devices))
    by_set: dict[frozenset[str], list[tuple[str, ...]]] = {}
    for block in plan.blocks:
        assert sorted(run.ref.group_id for run in block.runs) == sorted(names)
        used_devices = [run.ref.device for run in block.runs]
        assert len(set(used_devices)) == n
        by_lane = sorted(block.runs, key=lambda run: run.ref.device)
        by_set.setdefault(frozenset(used_devices), []).append(tuple(run.ref.group_id for run in by_lane))
        for run in block.runs:
            counts = Counter(run.env_devices)
            assert set(counts) == set(lanes[run.ref.device].devices)
            assert max(counts.values()) - min(counts.values()) <= 1
    assert not any(
        first_devices & second_devices
        for first_devices in by_set
        for second_devices in by_set
        if first_devices != second_devices
    )
    for orders in by_set.values():
        for lane in range(n):
            counts = Counter(groups[lane] for groups in orders)
            assert max(counts.values()) - min(counts[name] for name in names) <= 2
        if replicates >= 6:
            assert estimable_orders([tuple(names.index(name) for name in groups) for groups in orders])


@pytest.mark.parametrize(("n", "replicates"), [(7, 6), (7, 10), (12, 10), (50, 6)])
@pytest.mark.parametrize("sets", [1, 2])
def test_positions_are_drawn_at_random_if_there_are_too_many_groups(n: int, replicates: int, sets: int) -> None:
    names = tuple(f"g{i}" for i in range(n))
    request = experiment(names, seeds=replicates, control="g0")
    plan, other_plan = (planned(replace(request, rng_seed=seed), machine(gpus=sets * n)) for seed in (1, 2))
    assert plan.design.positions_drawn
    assert any("are drawn at random" in note for note in plan.notes)
    by_lane: dict[str, Counter[str]] = {}
    for block in plan.blocks:
        for run in block.runs:
            by_lane.setdefault(run.ref.device, Counter())[run.ref.group_id] += 1
    assert max(max(counts.values()) for counts in by_lane.values()) <= -(-replicates // n)
    first_order, second_order = (
        [run.ref.group_id for run in drawn_plan.blocks[0].runs] for drawn_plan in (plan, other_plan)
    )
    assert first_order != second_order


@settings(max_examples=20)
@given(st.integers(2, 6), st.sampled_from([6, 10, 20]), st.integers(1, 24), st.sampled_from(["spread", "share"]))
def test_at_every_look_comparisons_can_be_separated_from_lanes(
    n: int, replicates: int, gpus: int, placement: str
) -> None:
    """Six groups on twelve devices once had two sets of lanes with three blocks each, which was too few."""
    assume(placement == "share" or gpus >= n)
    plan = planned(experiment(tuple("abcdef"[:n]), seeds=replicates, placement=placement), machine(gpus=gpus))
    for look in plan.design.looks:
        for contrast in plan.design.comparisons:
            place_pairs = [
                tuple(
                    next(run.ref.device for run in block.runs if run.ref.group_id == name)
                    for name in (contrast.a, contrast.b)
                )
                for block in plan.blocks[:look]
            ]
            assert identified(
                [{"a": (first_place,), "b": (second_place,)} for first_place, second_place in place_pairs]
            )


def test_start_order_and_lanes_of_groups_alternate_between_blocks() -> None:
    plan = planned(experiment(seeds=2), machine())
    assert [[(run.ref.group_id, run.ref.device) for run in block.runs] for block in plan.blocks] == [
        [("a", "cpu:0"), ("b", "cpu:1")],
        [("b", "cpu:0"), ("a", "cpu:1")],
    ]


def test_a_plan_with_a_fixed_order_notes_that_lanes_are_confounded() -> None:
    plan = planned(experiment(seeds=6, order="fixed", arithmetic=LOOSE), machine())
    assert {tuple(run.ref.group_id for run in block.runs) for block in plan.blocks} == {("a", "b")}
    assert not plan.design.adjusted
    assert plan.design.positions_matter
    assert any("confounded" in note for note in plan.notes)


def test_a_shuffled_order_is_determined_by_the_rng_seed() -> None:
    def first_groups(rng_seed: int) -> str:
        plan = planned(experiment(seeds=200, order="shuffled", rng_seed=rng_seed, looks=(200,)), machine())
        return "".join(block.runs[0].ref.group_id for block in plan.blocks)

    assert first_groups(1).startswith("ababbabbabbaabaababa")
    assert first_groups(1) != first_groups(2)
    assert 70 <= first_groups(1).count("a") <= 130  # outside with a chance of 2e-5
    assert first_groups(1)[::2] != first_groups(1)[0] * 100


def test_surplus_devices_run_several_blocks_at_once() -> None:
    plan = planned(experiment(seeds=6), machine(gpus=7))
    assert [{run.ref.device for run in block.runs} for block in plan.blocks[:3]] == [
        {"cuda:0", "cuda:1"},
        {"cuda:2", "cuda:3"},
        {"cuda:4", "cuda:5"},
    ]
    assert plan.idle_devices == ("cuda:6",)
    assert any("1 of 7 devices stay idle: cuda:6" in note for note in plan.notes)
    assert plan.lanes[1].uuids == ("GPU-1",)


def test_environments_are_distributed_over_the_devices_of_a_run() -> None:
    plan = planned(experiment(devices_per_run=2, n_envs=4), machine(gpus=4))
    assert plan.blocks[0].runs[0].env_devices == ("cuda:0", "cuda:1", "cuda:0", "cuda:1")
    assert plan.blocks[0].runs[0].ref.device == "cuda:0+cuda:1"


@pytest.mark.parametrize(
    ("parallel_limit", "placement", "lanes"),
    [
        (0, "spread", 8),
        (8, "spread", 8),
        (7, "spread", 6),
        (2, "spread", 2),
        (3, "share", 2),
        (1, "sequence", 2),
        (2, "sequence", 4),
        (1, "alternate", 2),
    ],
)
def test_max_parallel_limits_the_number_of_concurrent_runs(parallel_limit: int, placement: str, lanes: int) -> None:
    """If runs take turns, only one lane of a block works at a time."""
    plan = planned(experiment(seeds=40, max_parallel=parallel_limit, placement=placement), machine(0, gpus=8))
    assert len(plan.lanes) == lanes
    parallel_runs = len(plan.lanes) // (2 if placement in ("alternate", "sequence") else 1)
    assert not parallel_limit or parallel_runs <= parallel_limit


TRAINED = {"task": "trainer:mine", "trainer": "mine.py", "margin": 1.0, "outcome_better": "lower"}


@pytest.mark.parametrize(
    ("seeds", "parallel_limit", "changes", "lanes", "reason"),
    [
        (64, 32, {}, 32, ""),
        (64, 0, {}, 2, ""),
        (6, 6, {}, 6, ""),
        (6, 32, {}, 6, "more seeds or later --looks allow more"),
        (6, 3, {}, 2, "the 2 runs of a seed train together"),
        (64, 32, {"devices": ("cpu",)}, 2, r"there are 2 devices \(cpu:0, cpu:1\)"),
    ],
)
def test_a_note_explains_if_trainer_runs_use_fewer_lanes_than_allowed(
    seeds: int, parallel_limit: int, changes: dict[str, object], lanes: int, reason: str
) -> None:
    """More lanes than cores are useful because a trainer may wait for something else than a core."""
    request = replace(experiment(("slow", "fast"), seeds=seeds, max_parallel=parallel_limit), **TRAINED, **changes)
    plan = planned(request, rehearsed())
    assert len(plan.lanes) == lanes
    limiting_notes = [note for note in plan.notes[: plan.limits] if note.startswith("--max-parallel")]
    assert len(limiting_notes) == bool(reason)
    assert not reason or re.search(
        f"{parallel_limit}: {lanes} runs train at a time, because .*{reason}", limiting_notes[0]
    )


def test_growth_runs_have_at_most_one_lane_per_core() -> None:
    plan = planned(experiment(seeds=40, max_parallel=32), machine(4))
    assert len(plan.lanes) == 4
    assert any("32: 4 runs train at a time, because there are 4 devices" in note for note in plan.notes[: plan.limits])
    small_plan = planned(experiment(seeds=1, max_parallel=32), machine(4))
    assert any("2 runs train at a time, because there are 2 runs" in note for note in small_plan.notes)


def test_a_note_warns_of_runs_that_may_exceed_gpu_memory() -> None:
    """Runs that share a GPU are summed up; the environments of a run are split over its devices; CPUs do not count."""
    large_task = replace(TASK, host_values=16_384)

    def has_warning(gpu_gib: float, **changes: object) -> bool:
        gpus = [Device(name=f"cuda:{i}", title="", uuid=f"GPU-{i}", memory_bytes=int(gpu_gib * 2**30)) for i in (0, 1)]
        cores = [Device(name="cpu:0", title="", uuid="", memory_bytes=1)]
        this_machine = machine(gpus=2, devices=(*gpus, *cores), tasks=(large_task,))
        notes = planned(experiment(n_envs=64, **changes), this_machine).notes
        return any("may need about" in note and note.startswith("cuda:0 has ") for note in notes)

    assert has_warning(4)
    assert not has_warning(8)
    assert has_warning(8, devices=("cuda:0",), placement="share")
    assert not has_warning(8, devices=("cuda:0", "cuda:1"), placement="share", devices_per_run=2)
    assert not has_warning(4, devices=("cpu:0",), placement="share")


def test_a_note_says_that_surplus_cpu_lanes_share_cores() -> None:
    plan = planned(experiment(("a", "b", "c")), machine(cores=2))
    assert [lane.name for lane in plan.lanes] == ["cpu:0", "cpu:1", "cpu:2"]
    assert any("3 threads share 2 cores" in note for note in plan.notes)
    assert any(note.startswith("No GPU: 3 workers on the CPU, 1 thread each") for note in plan.notes)


def test_a_cpu_run_is_planned_despite_an_unusable_gpu() -> None:
    this_machine = machine(gpu_problem="torch is a build without CUDA")
    assert planned(experiment(devices=("cpu",)), this_machine).experiment.devices == ("cpu:0", "cpu:1")


def test_a_plan_contains_given_remarks_and_the_run_sd() -> None:
    this_machine = machine()
    plain_plan = planned(experiment(), this_machine)
    plan = make_plan(plain_plan.experiment, this_machine, remarks=("first.", "second."), run_sd=3.5)[0]
    assert plan.notes == (*plain_plan.notes, "first.", "second.")
    assert (plan.run_sd, plain_plan.run_sd) == (3.5, None)
    assert plan.step_s == plain_plan.step_s == estimate(plan.experiment, plan.lanes, this_machine).step_s > 0.0
    assert replace(plan, notes=plain_plan.notes, run_sd=None) == plain_plan


# --- no run depends on another group -------------------------------------------------------------------------------


def comparable_specs(plan: Plan, name: str, other_name: str = "") -> list[RunSpec]:
    """Return the group's RunSpecs without lane and digest; `other_name` is its name in the plan if it has another."""
    specs = [run for block in plan.blocks for run in block.runs if run.ref.group_id == (other_name or name)]
    return [
        replace(
            run,
            experiment_digest="",
            env_devices=(),
            ref=replace(run.ref, device="", group_id=name, name=f"{name}/{run.ref.replicate}"),
            policy_file=run.policy_file.replace(f"/{other_name or name}/", f"/{name}/"),
            log_file=run.log_file.replace(f"/{other_name or name}-", f"/{name}-"),
        )
        for run in specs
    ]


@given(st.permutations(["a", "b", "c"]), st.integers(1, 7))
def test_adding_or_reordering_groups_does_not_change_other_runs(names: list[str], replicates: int) -> None:
    this_machine = machine(cores=3)

    def plan_of(*group_names: str) -> Plan:
        return planned(experiment(group_names, seeds=replicates, devices=("cpu:0", "cpu:1", "cpu:2")), this_machine)

    plain_plan = plan_of("a", "b")
    reordered_plan = plan_of(*names)
    longer_plan = plan_of("a", "b", "d")
    for name in ("a", "b"):
        assert (
            comparable_specs(plain_plan, name)
            == comparable_specs(reordered_plan, name)
            == comparable_specs(longer_plan, name)
        )
    assert plan_of(*names).digest == plan_of("a", "b", "c").digest


def test_renaming_a_group_changes_only_its_name() -> None:
    a, b = experiment().groups
    original_plan, renamed_plan = (
        planned(experiment(groups=(a, second_group)), machine()) for second_group in (b, replace(b, name="z"))
    )
    assert comparable_specs(original_plan, "a") == comparable_specs(renamed_plan, "a")
    assert comparable_specs(original_plan, "b") == comparable_specs(renamed_plan, "b", other_name="z")


def test_the_digest_depends_on_the_settings_but_not_on_the_name() -> None:
    this_machine = machine()
    digest = planned(experiment(), this_machine).digest
    assert planned(experiment(name="other"), this_machine).digest == digest
    assert planned(experiment(rng_seed=1), this_machine).digest != digest
    edited_machine = machine(user_rewards=(UserReward(reference="f.py:r", sha256="1", problem=""),))
    assert make_plan(resolve(experiment(), this_machine, "x", 16), edited_machine)[0].digest != digest


def test_unpaired_runs_have_the_group_in_their_rng_path() -> None:
    runs = planned(experiment(unpaired=True), machine()).blocks[0].runs
    assert [run.rng_label for run in runs] == ["a", "b"]
    assert {run.rng_label for run in planned(experiment(), machine()).blocks[0].runs} == {""}


# --- notes ----------------------------------------------------------------------------------------------------------


def test_a_plan_lists_differences_and_notes() -> None:
    groups = (
        group("shaped"),
        group("same"),
        group("two", reward=RewardSettings(mode="sparse"), ppo=PPOSettings(lr=0.5)),
        group("wait", controller=ControllerSettings(name="wait"), reward=RewardSettings(mode="sparse")),
    )
    plan = planned(experiment(groups=groups, seeds=3, arithmetic=LOOSE), machine(cores=4))
    assert plan.chance == 10.0
    assert {difference.key: difference.values["two"] for difference in plan.differences} == {
        "controller.name": "ppo",
        "ppo.lr": "0.5",
        "reward.mode": "sparse",
    }
    text = "\n".join(plan.notes)
    assert "3 seeds are too few for a verdict: at least 6" in text
    assert "shaped and same do not differ in any setting" in text
    assert "two and each of shaped, same differ in 2 settings (ppo.lr, reward.mode)" in text
    assert "shaped and wait" not in text
    assert "not a multiple of 4" in text
    assert "test split of 389 samples" in plan.estimand


def test_a_plan_that_compares_nothing_has_no_notes_on_verdicts() -> None:
    """A calibration measures how far runs of one group differ."""
    equal = (group("a"), group("b"))
    notes = planned(experiment(groups=equal, seeds=3, arithmetic=LOOSE, unpaired=True), machine(cores=4)).notes
    assert not [note for note in notes if "too few for a verdict" in note or "not a multiple" in note]
    paired = planned(experiment(groups=equal, seeds=3, arithmetic=LOOSE), machine(cores=4)).notes
    assert [note for note in paired if "too few for a verdict" in note]


ZEROS = {name: 0.0 for name in PolicySettings.__struct_fields__ if name.startswith("bias_")}


def test_notes_describe_the_initial_biases_of_policies() -> None:
    fixed_group = group("wait", controller=ControllerSettings(name="wait"))
    groups = (group("a"), group("b", policy=PolicySettings(**ZEROS)), fixed_group)
    plan = planned(experiment(groups=groups), machine(cores=3))
    text = "\n".join(plan.notes)
    assert "the op head of a starts with the bias germinate +1, set_alpha_target -3, prune -3, advance +1" in text
    assert "wait starts" not in text
    assert "b starts" not in text
    assert {difference.key for difference in plan.differences} >= {"policy.bias_prune", "policy.bias_set_alpha_target"}
    assert "their effects cannot be told apart" in text


def test_a_single_group_can_be_planned_on_gpus():
    """No other group exists whose effect could be confounded with a lane's on GPUs or with a trainer."""
    this_machine = machine(gpus=2)
    plan = planned(experiment(groups=(group("a"),), margin=2.0), this_machine)
    assert plan.design.positions_matter
    assert [lane.devices for lane in plan.lanes] == [("cuda:0",), ("cuda:1",)]
    assert (plan.design.comparisons, plan.design.looks) == ((), ())
