"""Findings about the conditions and conduct of runs and about policy updates: each journal contains one cause."""

import pytest
from support.journals.audited_journals import (
    episodes,
    finding_sentences,
    only_finding,
    planned,
    replace,
    updates,
    with_entry,
)
from support.journals.ready_journals import failed_run, planted_effect
from support.journals.synthetic import Shape, Synthetic
from support.plans import fake_plans

from esper_ab.analysis.audit_comparisons import hardware
from esper_ab.analysis.code_states import code_states
from esper_ab.analysis.conduct import conduct
from esper_ab.contracts.installed_code import hash_sources
from esper_ab.contracts.machine import Device
from esper_ab.contracts.records import HeadUse
from esper_ab.contracts.settings import PPOSettings
from esper_ab.contracts.worker_order import Lane
from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentContinued,
    ExperimentStarted,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.fold import fold
from esper_ab.plan.blocks import make_plan

SAME = {"versions": {"esper_ab": "0.1.0", "torch": "2.13"}, "machine": {"cpu": "test processor", "cores": "2"}}
CODE = {"sources": "5a5a", "commit": "abc123", "dirty": "no"}
OTHER = {
    "code": CODE | {"sources": "6b6b"},
    "versions": SAME["versions"] | {"numpy": "2.0"},
    "machine": SAME["machine"] | {"cores": "64"},
}


def find_first(events, kind, **fields):
    """Return the index of the first event of a kind whose record, or run, has these fields."""
    return next(
        i
        for i, event in enumerate(events)
        if isinstance(event, kind)
        and all(getattr(_find_record_or_run(event), name) == value for name, value in fields.items())
    )


def _find_record_or_run(event):
    return getattr(event, "record", None) or getattr(event, "run", None)


def make_continued(*, stop_before=3, worker="", **change):
    """Return a journal that stopped before a replicate and continued; `worker`: sources of cpu:0's new worker."""
    first_event, *events = planted_effect()
    index = find_first(events, RunStarted, replicate=stop_before)
    workers = [replace(event, incarnation=1) for event in events if isinstance(event, WorkerStarted)]
    workers[0] = replace(workers[0], sources=worker)
    continuation = ExperimentContinued(**({"code": CODE, **SAME} | change))
    return [replace(first_event, code=CODE), *events[:index], continuation, *workers, *events[index:]]


def change_first(kind, **fields):
    """Return a journal whose first event of this kind has these fields."""
    events = planted_effect()
    index = find_first(events, kind)
    return [*events[:index], replace(events[index], **fields), *events[index + 1 :]]


def change_plan(change):
    return planned(planted_effect(), change)


def change_runs(carried_arms=False, **fields):
    """Return a change that sets these fields in every run of a plan."""

    def change(plan):
        blocks = (replace(block, runs=tuple(replace(run, **fields) for run in block.runs)) for block in plan.blocks)
        return replace(plan, carries=carried_arms, blocks=tuple(blocks))

    return change


def change_one_order(plan):
    block, *other_blocks = plan.blocks
    runs = (replace(block.runs[0], data_dir="elsewhere"), *block.runs[1:])
    return replace(plan, blocks=(replace(block, runs=runs), *other_blocks))


def enlarge_hosts(record):
    envs = (replace(env, measures=env.measures | {"host_params": 99.0}) for env in record.envs)
    return replace(record, envs=tuple(envs))


def use_two_kinds_of_devices(plan):
    titles = {"cpu:0": "NVIDIA H200", "cpu:1": ""}
    return replace(plan, lanes=tuple(replace(lane, titles=(titles[lane.name],)) for lane in plan.lanes))


def slow_down(events, factor, select=lambda record: True):
    def change(record):
        return replace(record, timing=replace(record.timing, total_s=record.timing.total_s * factor))

    return episodes(events, change, select=select)


@pytest.mark.parametrize(
    ("events", "kind", "weight", "words"),
    [
        (
            make_continued(code=OTHER["code"]),
            "code",
            "blocks",
            "used 2 states of the code: sources 5a5a in 6 runs, shaped/0 first; sources 6b6b in 6 runs, simplified/3",
        ),
        (
            make_continued(code={"commit": "fff", "dirty": "no"}),
            "code",
            "blocks",
            "used 2 states of the code: commit abc123 in 6 runs, shaped/0 first; commit fff in 6 runs",
        ),
        (
            make_continued(worker="6b6b"),
            "code",
            "blocks",
            "used 2 states of the code: sources 5a5a in 9 runs, shaped/0 first; sources 6b6b in 3 runs",
        ),
        (make_continued(code=CODE | {"dirty": "yes"}), "dirty checkout", "notes", "in 1 of 2 sittings"),
        (make_continued(versions=OTHER["versions"]), "versions", "blocks", "numpy none, 2.0"),
        (make_continued(machine=OTHER["machine"]), "machine", "notes", "cores 2, 64"),
        (change_first(ExperimentStarted, code=CODE | {"dirty": "yes"}), "dirty checkout", "notes", ""),
        (change_first(WorkerStarted, torch_version="2.12"), "torch", "blocks", "2.12 on cpu:0; 2.13 on cpu:1"),
        (
            change_plan(lambda plan: replace(plan, experiment=replace(plan.experiment, unpaired=True))),
            "unpaired",
            "notes",
            "",
        ),
        (change_plan(change_runs(repeats=False)), "environments", "notes", "The environments are not repeatable"),
        (
            change_plan(change_runs(repeats=False, carried_arms=True)),
            "environments",
            "notes",
            "The environments carry state",
        ),
        (change_plan(change_one_order), "orders", "blocks", "data_dir"),
        (
            change_plan(lambda plan: replace(plan, digest="1" * 64)),
            "orders",
            "blocks",
            "12 runs do not come from this plan, shaped/0 first",
        ),
        (episodes(planted_effect(), enlarge_hosts), "data", "blocks", "99, 1200"),
        (change_plan(use_two_kinds_of_devices), "hardware", "notes", "CPU core, NVIDIA H200"),
        (
            slow_down(planted_effect(), 2.0),
            "throughput",
            "notes",
            "shaped 66.7 (72 s), simplified 33.3 (144 s); fastest over slowest 2.00",
        ),
        (with_entry("unequal_devices", detail="one is hot."), "hardware", "notes", "Devices differed: one is hot."),
    ],
)
def test_each_problem_of_the_whole_experiment_is_a_finding(events, kind, weight, words):
    (key, sentence) = only_finding(events)
    assert key == (kind, weight, ())
    assert words in sentence


def make_uninformed(lr=3e-4, **changes):
    """Return a journal in which a critic never explains anything."""
    groups = {"shaped": Shape(accuracy=80.0), "simplified": Shape(accuracy=66.0, ppo=PPOSettings(lr=lr))}
    return updates(Synthetic(groups=groups, **changes).events(), explained_variance=-0.1, value_loss=0.7)


UNUSED = HeadUse(entropy=None, learnable=0.0)


def remove_choice(head, select=lambda record: True):
    """Return a journal in which one head of `simplified` has no choice."""
    return episodes(
        planted_effect(),
        lambda record: replace(record, ppo=replace(record.ppo, heads={**record.ppo.heads, head: UNUSED})),
        select=select,
    )


@pytest.mark.parametrize(
    ("events", "kind", "weight", "words"),
    [
        (with_entry("worker_death"), "faults", "notes", "simplified: 1 worker death."),
        (with_entry("hung_worker"), "faults", "notes", "simplified: 1 hung worker."),
        (with_entry("restart"), "faults", "notes", "simplified: 1 restart."),
        (with_entry("bad_message"), "faults", "notes", "simplified: 1 unreadable message."),
        (with_entry("cold_start"), "faults", "notes", "simplified: 1 cold start."),
        (with_entry("dropped_pair"), "faults", "notes", "simplified: 1 of 6 runs lost."),
        (failed_run(), "faults", "notes", "simplified: 1 worker death."),
        (
            [*with_entry("inexact_resume"), *with_entry("inexact_resume", "simplified/4")[-1:]],
            "inexact resume",
            "caps",
            "simplified/2, simplified/4.",
        ),
        (
            slow_down(planted_effect(), 2.0, select=lambda record: record.episode == 0),
            "cold start",
            "notes",
            "the first episode took 3 s after a warm-up of 0.4 s, 2.00 times",
        ),
        # Policy updates.
        (
            updates(planted_effect(), select=lambda record: record.episode == 2, first_ratio_error=0.25),
            "ratio mismatch",
            "blocks",
            "differed from 1 by up to 2.5e-01 (6 of 48 updates, 6 of 6 runs)",
        ),
        (
            make_uninformed(episodes=12),
            "value collapse",
            "notes",
            "simplified: value collapse in 12 of 72 updates, 6 of 6 runs.",
        ),
        (
            make_uninformed(episodes=21, replicates=2),
            "value collapse",
            "caps",
            "(22 of 42 updates, 2 of 2 runs): it did not train.",
        ),
        (remove_choice("slot", lambda record: record.run.replicate < 2), "dead heads", "notes", "slot (2 of 6 runs)"),
        (remove_choice("op"), "dead heads", "caps", "it did not train."),
        # In growth, episodes of one step have only WAIT, so the entropy was never above 0.
        (updates(planted_effect(), entropy=0.0, heads={"op": UNUSED, "slot": UNUSED}), "dead heads", "caps", ""),
    ],
)
def test_each_problem_of_one_group_is_a_finding(events, kind, weight, words):
    (key, sentence) = only_finding(events)
    assert key == (kind, weight, ("simplified",))
    assert words in sentence


@pytest.mark.parametrize(
    "events",
    [
        make_continued(),
        make_continued(code=CODE | {"commit": "fff"}),
        make_continued(worker="5a5a"),
        slow_down(planted_effect(), 1.2),
        # The entropy of continuous decisions is that of a density: below 0 for every narrow one.
        updates(planted_effect(), entropy=0.0, heads={}),
        updates(planted_effect(), entropy=-3.0, heads={}),
        # A critic is judged after its first updates only, and not if the learning rate is 0.
        make_uninformed(episodes=10),
        make_uninformed(lr=0.0, episodes=21),
        # A head that has one choice by its settings is not dead, nor one without a choice in a part of a run.
        planned(remove_choice("slot"), change_runs(slots=("early",))),
        remove_choice("slot")[:17],
        remove_choice("slot", lambda record: record.episode > 0),
    ],
)
def test_harmless_conditions_are_not_findings(events):
    assert finding_sentences(events) == {}


def test_every_change_of_the_source_changes_its_hash(tmp_path):
    package = tmp_path / "workers"
    package.mkdir()
    (package / "__init__.py").touch()
    hashes = [hash_sources([package])]
    for name, text in (
        ("a.py", "x = 1"),
        ("a.py", "x = 2"),
        ("data.npz", "0"),
        ("kernel.cpp", "int x;"),
        ("kernel.h", "int y;"),
    ):
        (package / name).write_text(text)
        hashes.append(hash_sources([package]))
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize("name", ["notes.txt", "libkernel-avx2.so", "libkernel-avx2.json"])
def test_files_that_are_no_sources_do_not_change_the_hash_of_the_code(tmp_path, name):
    """A kernel that one installation has and another lacks is no change of the code: plans name kernels themselves."""
    (tmp_path / "__init__.py").touch()
    before = hash_sources([tmp_path])
    (tmp_path / name).write_text("0")
    assert hash_sources([tmp_path]) == before


def test_a_continuation_without_records_causes_no_finding():
    first_event, *events = planted_effect()
    workers = [
        replace(event, incarnation=1, torch_version="2.12", sources="6b6b")
        for event in events
        if isinstance(event, WorkerStarted)
    ]
    whole = [replace(first_event, code=CODE), *events[:-1]]
    assert finding_sentences([*whole, ExperimentContinued(**OTHER), *workers, events[-1]]) == {}


@pytest.mark.parametrize(("sources", "expected"), [(("7c7c",), ("5a5a", "7c7c")), (("7c7c", "5a5a"), ("5a5a",))])
def test_a_run_resumed_by_other_code_is_listed_under_both_states_of_the_code(sources, expected):
    events = make_continued(stop_before=5)
    run = events[find_first(events, RunStarted, replicate=4)].run
    index = find_first(events, EpisodeRecorded, run=run, episode=3)
    continuations = []
    for code in sources:
        continuations += [
            ExperimentContinued(**SAME, code=CODE | {"sources": code}),
            RunReady(run=run, warm_up_s=0.1, milestone=3),
        ]
    states = code_states(fold([*events[:index], *continuations, *events[index:]]))
    assert sorted(state.code["sources"] for state in states if run.name in state.runs) == list(expected)


def test_unbalanced_hardware_caps_the_verdict():
    events = [*change_plan(use_two_kinds_of_devices), *with_entry("dropped_pair", "simplified/0")[-1:]]
    assert (
        "+1 on CPU core, -1 on NVIDIA H200" in finding_sentences(events)["hardware", "caps", ("shaped", "simplified")]
    )


def test_the_hardware_of_a_lane_is_named_by_its_devices():
    machine = fake_plans.machine(2)
    gpus = tuple(Device(name=f"cuda:{i}", title=title, uuid=f"GPU-{i}", memory_bytes=1) for i, title in enumerate("AB"))
    pool = ("cuda:0", "cuda:1", "cpu:0", "cpu:1")
    experiment = replace(fake_plans.plan().experiment, devices=pool, devices_per_run=2, n_envs=2)
    plan = make_plan(experiment, replace(machine, devices=(*gpus, *machine.devices)))[0]
    assert [hardware(lane) for lane in plan.lanes] == ["A + B", "CPU core"]
    assert hardware(Lane(name="cuda:3", devices=("cuda:3",), uuids=("GPU-3",))) == "GPU"


def test_faults_outside_any_run_are_noted():
    deaths = [with_entry("worker_death", "")[-1]] * 2
    events = [*planted_effect(), *deaths, with_entry("interrupted", "")[-1]]
    assert finding_sentences(events) == {
        ("faults", "notes", ()): "Outside any run: 2 worker deaths.",
        ("interrupted", "notes", ()): "The experiment was stopped by a signal once.",
    }


def test_the_conduct_of_a_group_sums_up_its_runs_faults_and_time():
    shaped_conduct, simplified_conduct = conduct(fold([*failed_run(), with_entry("dropped_pair")[-1]]))
    assert (shaped_conduct.runs, shaped_conduct.finished, shaped_conduct.lost, shaped_conduct.faults) == (6, 3, 0, {})
    assert (simplified_conduct.lost, simplified_conduct.faults) == (1, {"worker_death": 1})
    assert (shaped_conduct.episodes, shaped_conduct.env_steps, shaped_conduct.evaluation_episodes) == (
        26,
        26 * 4 * 25,
        3 * 12,
    )
    assert shaped_conduct.wall_s == pytest.approx(26 * 1.5)
    assert (shaped_conduct.episode_s, shaped_conduct.warm_up_s, shaped_conduct.first_over_rest) == (1.5, 0.4, 1.0)
    (empty_conduct, _) = conduct(fold(planted_effect()[:1]))
    assert (empty_conduct.episodes, empty_conduct.episode_s, empty_conduct.decisions_per_s) == (0, None, None)
    # The first episode is compared with the other episodes only.
    slow_events = slow_down(Synthetic(episodes=2).events(), 2.0, select=lambda record: record.episode == 0)
    (_, simplified_conduct) = conduct(fold(slow_events))
    assert (simplified_conduct.episode_s, simplified_conduct.first_episode_s, simplified_conduct.first_over_rest) == (
        1.5,
        3.0,
        2.0,
    )


PATHOLOGIES = {
    "no step": {"grad_norm": None},
    "ratio explosion": {"ratio_max": 12.0},
    "ratio collapse": {"clip_fraction": 0.6},
    "entropy collapse": {"entropy": 1e-6},
}


@pytest.mark.parametrize(("kind", "change"), PATHOLOGIES.items())
def test_pathologies_in_most_updates_of_a_group_cap_the_verdict(kind, change):
    few_updates = updates(planted_effect(), select=lambda record: record.episode == 3, **change)
    assert only_finding(few_updates) == (
        (kind, "notes", ("simplified",)),
        f"simplified: {kind} in 6 of 48 updates, 6 of 6 runs.",
    )
    most_updates = updates(planted_effect(), select=lambda record: record.episode >= 3, **change)
    (key, sentence) = only_finding(most_updates)
    assert key == (kind, "caps", ("simplified",))
    assert "(30 of 48 updates, 6 of 6 runs): it did not train." in sentence
    partial_events = updates(planted_effect(), select=lambda record: record.run.replicate > 0, **change)
    assert only_finding(partial_events)[0] == (kind, "notes", ("simplified",))
