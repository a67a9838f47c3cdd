"""The planner: each block has each group once, positions are balanced, no group's orders depend on another group."""

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

LOOSE = AskedArithmetic(deterministic=False)  # with it device and start order could matter on cores, too
shapes = st.tuples(
    st.integers(2, 5),  # groups
    st.integers(1, 12),  # replicates
    st.integers(1, 24),  # GPUs
    st.integers(1, 3),  # devices per run
    st.sampled_from(["spread", "share", "alternate", "sequence"]),
)


@given(shapes)
def test_every_plan_is_whole_and_balanced(shape: tuple[int, int, int, int, str]) -> None:
    n, replicates, gpus, per_run, placement = shape
    names = tuple("abcde"[:n])
    asked = experiment(names, seeds=replicates, devices_per_run=per_run, placement=placement)
    there = machine(gpus=gpus)
    if gpus < per_run * (n if placement == "spread" else 1):
        with pytest.raises(UsageError):
            planned(asked, there)
        return
    plan = planned(asked, there)
    assert [block.replicate for block in plan.blocks] == list(range(replicates))
    lanes = {lane.name: lane for lane in plan.lanes}
    assert len(lanes) == len(plan.lanes)
    if placement == "spread":
        devices = [device for lane in plan.lanes for device in lane.devices]
        assert len(devices) == len(set(devices))
    by_set: dict[frozenset[str], list[tuple[str, ...]]] = {}
    for block in plan.blocks:
        assert sorted(run.ref.group_id for run in block.runs) == sorted(names)
        used = [run.ref.device for run in block.runs]
        assert len(set(used)) == n
        by_lane = sorted(block.runs, key=lambda run: run.ref.device)
        by_set.setdefault(frozenset(used), []).append(tuple(run.ref.group_id for run in by_lane))
        for run in block.runs:
            counts = Counter(run.env_devices)
            assert set(counts) == set(lanes[run.ref.device].devices)
            assert max(counts.values()) - min(counts.values()) <= 1
    assert not any(one & other for one in by_set for other in by_set if one != other)
    for orders in by_set.values():
        for lane in range(n):
            seen = Counter(groups[lane] for groups in orders)
            assert max(seen.values()) - min(seen[name] for name in names) <= 2
        if replicates >= 6:
            assert estimable_orders([tuple(names.index(name) for name in groups) for groups in orders])


@pytest.mark.parametrize(("n", "replicates"), [(7, 6), (7, 10), (12, 10), (50, 6)])
@pytest.mark.parametrize("sets", [1, 2])
def test_more_groups_than_a_look_has_pairs_stand_where_the_lot_puts_them(n: int, replicates: int, sets: int) -> None:
    names = tuple(f"g{i}" for i in range(n))
    asked = experiment(names, seeds=replicates, control="g0")
    plan, other = (planned(replace(asked, rng_seed=seed), machine(gpus=sets * n)) for seed in (1, 2))
    assert plan.design.positions_drawn
    assert any("are drawn at random" in note for note in plan.notes)
    by_lane: dict[str, Counter[str]] = {}
    for block in plan.blocks:
        for run in block.runs:
            by_lane.setdefault(run.ref.device, Counter())[run.ref.group_id] += 1
    assert max(max(counts.values()) for counts in by_lane.values()) <= -(-replicates // n)
    first, second = ([run.ref.group_id for run in one.blocks[0].runs] for one in (plan, other))
    assert first != second


@settings(max_examples=20)
@given(st.integers(2, 6), st.sampled_from([6, 10, 20]), st.integers(1, 24), st.sampled_from(["spread", "share"]))
def test_every_comparison_is_told_from_lanes_at_every_look(n: int, replicates: int, gpus: int, placement: str) -> None:
    """On several sets of lanes, too: with six groups on twelve devices two sets had three blocks each."""
    assume(placement == "share" or gpus >= n)
    plan = planned(experiment(tuple("abcdef"[:n]), seeds=replicates, placement=placement), machine(gpus=gpus))
    for look in plan.design.looks:
        for one in plan.design.comparisons:
            places = [
                tuple(next(run.ref.device for run in block.runs if run.ref.group_id == name) for name in (one.a, one.b))
                for block in plan.blocks[:look]
            ]
            assert identified([{"a": (first,), "b": (second,)} for first, second in places])


def test_start_order_turns_with_the_lanes() -> None:
    plan = planned(experiment(seeds=2), machine())
    assert [[(run.ref.group_id, run.ref.device) for run in block.runs] for block in plan.blocks] == [
        [("a", "cpu:0"), ("b", "cpu:1")],
        [("b", "cpu:0"), ("a", "cpu:1")],
    ]


def test_fixed_order_aliases_group_and_lane_and_is_not_adjusted_for() -> None:
    plan = planned(experiment(seeds=6, order="fixed", arithmetic=LOOSE), machine())
    assert {tuple(run.ref.group_id for run in block.runs) for block in plan.blocks} == {("a", "b")}
    assert not plan.design.adjusted
    assert plan.design.positions_matter
    assert any("confounded" in note for note in plan.notes)


def test_shuffled_order_is_drawn_from_the_rng_seed_and_has_no_favourite() -> None:
    def firsts(rng_seed: int) -> str:
        plan = planned(experiment(seeds=200, order="shuffled", rng_seed=rng_seed, looks=(200,)), machine())
        return "".join(block.runs[0].ref.group_id for block in plan.blocks)

    assert firsts(1).startswith("ababbabbabbaabaababa")
    assert firsts(1) != firsts(2)
    assert 70 <= firsts(1).count("a") <= 130  # outside with a chance of 2e-5
    assert firsts(1)[::2] != firsts(1)[0] * 100


def test_several_blocks_at_once_and_the_rest_idle() -> None:
    plan = planned(experiment(seeds=6), machine(gpus=7))
    assert [{run.ref.device for run in block.runs} for block in plan.blocks[:3]] == [
        {"cuda:0", "cuda:1"},
        {"cuda:2", "cuda:3"},
        {"cuda:4", "cuda:5"},
    ]
    assert plan.idle_devices == ("cuda:6",)
    assert any("1 of 7 devices stay idle: cuda:6" in note for note in plan.notes)
    assert plan.lanes[1].uuids == ("GPU-1",)


def test_environments_go_round_the_devices_of_a_run() -> None:
    plan = planned(experiment(devices_per_run=2, n_envs=4), machine(gpus=4))
    assert plan.blocks[0].runs[0].env_devices == ("cuda:0", "cuda:1", "cuda:0", "cuda:1")
    assert plan.blocks[0].runs[0].ref.device == "cuda:0+cuda:1"


@pytest.mark.parametrize(
    ("most", "placement", "lanes"),
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
def test_no_more_runs_train_at_the_same_time_than_allowed(most: int, placement: str, lanes: int) -> None:
    """If runs take turns, only one of a block's lanes is at work."""
    plan = planned(experiment(seeds=40, max_parallel=most, placement=placement), machine(0, gpus=8))
    assert len(plan.lanes) == lanes
    busy = len(plan.lanes) // (2 if placement in ("alternate", "sequence") else 1)
    assert not most or busy <= most


TRAINED = {"task": "trainer:mine", "trainer": "mine.py", "margin": 1.0, "outcome_better": "lower"}


@pytest.mark.parametrize(
    ("seeds", "most", "changes", "lanes", "why"),
    [
        (64, 32, {}, 32, ""),
        (64, 0, {}, 2, ""),
        (6, 6, {}, 6, ""),
        (6, 32, {}, 6, "more seeds or later --looks allow more"),
        (6, 3, {}, 2, "the 2 runs of a seed train together"),
        (64, 32, {"devices": ("cpu",)}, 2, r"there are 2 devices \(cpu:0, cpu:1\)"),
    ],
)
def test_as_many_runs_of_a_users_trainer_train_on_the_cpu_as_are_allowed_or_the_plan_says_why_not(
    seeds: int, most: int, changes: dict[str, object], lanes: int, why: str
) -> None:
    """It may wait for something else than a core."""
    asked = replace(experiment(("slow", "fast"), seeds=seeds, max_parallel=most), **TRAINED, **changes)
    plan = planned(asked, rehearsed())
    assert len(plan.lanes) == lanes
    shown = [note for note in plan.notes[: plan.limits] if note.startswith("--max-parallel")]
    assert len(shown) == bool(why)
    assert not why or re.search(f"{most}: {lanes} runs train at a time, because .*{why}", shown[0])


def test_a_task_that_computes_gets_no_more_lanes_than_cores_and_the_plan_says_so() -> None:
    plan = planned(experiment(seeds=40, max_parallel=32), machine(4))
    assert len(plan.lanes) == 4
    assert any("32: 4 runs train at a time, because there are 4 devices" in note for note in plan.notes[: plan.limits])
    few = planned(experiment(seeds=1, max_parallel=32), machine(4))
    assert any("2 runs train at a time, because there are 2 runs" in note for note in few.notes)


def test_runs_that_may_not_fit_their_gpu_are_named() -> None:
    """Those who share it count together; of several devices of a run each has its part; a CPU's is not meant."""
    large = replace(TASK, host_values=16_384)

    def warned(gpu_gib: float, **changes: object) -> bool:
        gpus = [Device(name=f"cuda:{i}", title="", uuid=f"GPU-{i}", memory_bytes=int(gpu_gib * 2**30)) for i in (0, 1)]
        cores = [Device(name="cpu:0", title="", uuid="", memory_bytes=1)]
        there = machine(gpus=2, devices=(*gpus, *cores), tasks=(large,))
        notes = planned(experiment(n_envs=64, **changes), there).notes
        return any("may need about" in note and note.startswith("cuda:0 has ") for note in notes)

    assert warned(4)
    assert not warned(8)
    assert warned(8, devices=("cuda:0",), placement="share")
    assert not warned(8, devices=("cuda:0", "cuda:1"), placement="share", devices_per_run=2)
    assert not warned(4, devices=("cpu:0",), placement="share")


def test_more_cpu_lanes_than_cores_are_time_sliced_aloud() -> None:
    plan = planned(experiment(("a", "b", "c")), machine(cores=2))
    assert [lane.name for lane in plan.lanes] == ["cpu:0", "cpu:1", "cpu:2"]
    assert any("3 threads share 2 cores" in note for note in plan.notes)
    assert any(note.startswith("No GPU: 3 workers on the CPU, 1 thread each") for note in plan.notes)


def test_a_gpu_that_torch_cannot_use_does_not_hinder_an_asked_cpu_run() -> None:
    there = machine(gpu_problem="torch is a build without CUDA")
    assert planned(experiment(devices=("cpu",)), there).experiment.devices == ("cpu:0", "cpu:1")


def test_a_plan_has_all_that_was_known_when_it_was_made() -> None:
    there = machine()
    plain = planned(experiment(), there)
    plan = make_plan(plain.experiment, there, remarks=("first.", "second."), run_sd=3.5)[0]
    assert plan.notes == (*plain.notes, "first.", "second.")
    assert (plan.run_sd, plain.run_sd) == (3.5, None)
    assert plan.step_s == plain.step_s == estimate(plan.experiment, plan.lanes, there).step_s > 0.0
    assert replace(plan, notes=plain.notes, run_sd=None) == plain


# --- no group's orders depend on another group ----------------------------------------------------------------------


def orders(plan: Plan, name: str, called: str = "") -> list[RunSpec]:
    """The group's RunSpecs without what may differ: lane and digest; renamed back when it is `called` otherwise."""
    found = [run for block in plan.blocks for run in block.runs if run.ref.group_id == (called or name)]
    return [
        replace(
            run,
            experiment_digest="",
            env_devices=(),
            ref=replace(run.ref, device="", group_id=name, name=f"{name}/{run.ref.replicate}"),
            policy_file=run.policy_file.replace(f"/{called or name}/", f"/{name}/"),
            log_file=run.log_file.replace(f"/{called or name}-", f"/{name}-"),
        )
        for run in found
    ]


@given(st.permutations(["a", "b", "c"]), st.integers(1, 7))
def test_reordering_or_adding_groups_changes_nothing_of_the_others(names: list[str], replicates: int) -> None:
    there = machine(cores=3)

    def plan_of(*chosen: str) -> Plan:
        return planned(experiment(chosen, seeds=replicates, devices=("cpu:0", "cpu:1", "cpu:2")), there)

    plain = plan_of("a", "b")
    reordered = plan_of(*names)
    added = plan_of("a", "b", "d")
    for name in ("a", "b"):
        assert orders(plain, name) == orders(reordered, name) == orders(added, name)
    assert plan_of(*names).digest == plan_of("a", "b", "c").digest


def test_renaming_a_group_changes_only_its_name() -> None:
    a, b = experiment().groups
    before, renamed = (planned(experiment(groups=(a, one)), machine()) for one in (b, replace(b, name="z")))
    assert orders(before, "a") == orders(renamed, "a")
    assert orders(before, "b") == orders(renamed, "b", called="z")


def test_digest_is_of_the_settings_not_of_the_name() -> None:
    there = machine()
    digest = planned(experiment(), there).digest
    assert planned(experiment(name="other"), there).digest == digest
    assert planned(experiment(rng_seed=1), there).digest != digest
    edited = machine(user_rewards=(UserReward(reference="f.py:r", sha256="1", problem=""),))
    assert make_plan(resolve(experiment(), there, "x", 16), edited)[0].digest != digest


def test_unpaired_labels_the_randomness() -> None:
    runs = planned(experiment(unpaired=True), machine()).blocks[0].runs
    assert [run.rng_label for run in runs] == ["a", "b"]
    assert {run.rng_label for run in planned(experiment(), machine()).blocks[0].runs} == {""}


# --- what is said about it ------------------------------------------------------------------------------------------


def test_differences_and_notes() -> None:
    groups = (
        group("shaped"),
        group("same"),
        group("two", reward=RewardSettings(mode="sparse"), ppo=PPOSettings(lr=0.5)),
        group("wait", controller=ControllerSettings(name="wait"), reward=RewardSettings(mode="sparse")),
    )
    plan = planned(experiment(groups=groups, seeds=3, arithmetic=LOOSE), machine(cores=4))
    assert plan.chance == 10.0
    assert {one.key: one.values["two"] for one in plan.differences} == {
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


ZEROS = {name: 0.0 for name in PolicySettings.__struct_fields__ if name.startswith("bias_")}


def test_the_start_of_the_policies_is_said_and_can_be_the_treatment() -> None:
    fixed = group("wait", controller=ControllerSettings(name="wait"))
    groups = (group("a"), group("b", policy=PolicySettings(**ZEROS)), fixed)
    plan = planned(experiment(groups=groups), machine(cores=3))
    text = "\n".join(plan.notes)
    assert "the op head of a starts with the bias germinate +1, set_alpha_target -3, prune -3, advance +1" in text
    assert "wait starts" not in text
    assert "b starts" not in text
    assert {one.key for one in plan.differences} >= {"policy.bias_prune", "policy.bias_set_alpha_target"}
    assert "their effects cannot be told apart" in text


def test_one_group_has_a_plan_where_device_and_order_could_matter():
    """As on GPUs, or with a trainer: there is no other group whose effect could be mixed up with a lane's."""
    there = machine(gpus=2)
    plan = planned(experiment(groups=(group("a"),), margin=2.0), there)
    assert plan.design.positions_matter
    assert [lane.devices for lane in plan.lanes] == [("cuda:0",), ("cuda:1",)]
    assert (plan.design.comparisons, plan.design.looks) == ((), ())
