"""Findings on conditions of runs, on their conduct and on policy updates: each by a journal that has its cause."""

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


def first(events, kind, **fields):
    """The index of the first event of a kind whose record, or run, has these fields."""
    return next(
        i
        for i, event in enumerate(events)
        if isinstance(event, kind) and all(getattr(_facts(event), name) == value for name, value in fields.items())
    )


def _facts(event):
    return getattr(event, "record", None) or getattr(event, "run", None)


def continued(*, after=3, worker="", **change):
    """Stopped when replicate `after` was to begin, and continued; `worker`: the sources of cpu:0's worker from then."""
    started, *events = planted_effect()
    at = first(events, RunStarted, replicate=after)
    workers = [replace(event, incarnation=1) for event in events if isinstance(event, WorkerStarted)]
    workers[0] = replace(workers[0], sources=worker)
    again = ExperimentContinued(**({"code": CODE, **SAME} | change))
    return [replace(started, code=CODE), *events[:at], again, *workers, *events[at:]]


def with_first(kind, **fields):
    """The first event of this kind has these fields."""
    events = planted_effect()
    at = first(events, kind)
    return [*events[:at], replace(events[at], **fields), *events[at + 1 :]]


def of_plan(change):
    return planned(planted_effect(), change)


def of_runs(carries=False, **fields):
    """These fields in every run of a plan."""

    def change(plan):
        blocks = (replace(one, runs=tuple(replace(run, **fields) for run in one.runs)) for one in plan.blocks)
        return replace(plan, carries=carries, blocks=tuple(blocks))

    return change


def ordered_otherwise(plan):
    block, *others = plan.blocks
    runs = (replace(block.runs[0], data_dir="elsewhere"), *block.runs[1:])
    return replace(plan, blocks=(replace(block, runs=runs), *others))


def of_larger_hosts(record):
    envs = (replace(env, measures=env.measures | {"host_params": 99.0}) for env in record.envs)
    return replace(record, envs=tuple(envs))


def on_two_kinds(plan):
    titles = {"cpu:0": "NVIDIA H200", "cpu:1": ""}
    return replace(plan, lanes=tuple(replace(lane, titles=(titles[lane.name],)) for lane in plan.lanes))


def slower(events, factor, which=lambda record: True):
    def change(record):
        return replace(record, timing=replace(record.timing, total_s=record.timing.total_s * factor))

    return episodes(events, change, which=which)


@pytest.mark.parametrize(
    ("events", "kind", "weight", "words"),
    [
        (
            continued(code=OTHER["code"]),
            "code",
            "blocks",
            "used 2 states of the code: sources 5a5a in 6 runs, shaped/0 first; sources 6b6b in 6 runs, simplified/3",
        ),
        (
            continued(code={"commit": "fff", "dirty": "no"}),
            "code",
            "blocks",
            "used 2 states of the code: commit abc123 in 6 runs, shaped/0 first; commit fff in 6 runs",
        ),
        (
            continued(worker="6b6b"),
            "code",
            "blocks",
            "used 2 states of the code: sources 5a5a in 9 runs, shaped/0 first; sources 6b6b in 3 runs",
        ),
        (continued(code=CODE | {"dirty": "yes"}), "dirty checkout", "notes", "in 1 of 2 sittings"),
        (continued(versions=OTHER["versions"]), "versions", "blocks", "numpy none, 2.0"),
        (continued(machine=OTHER["machine"]), "machine", "notes", "cores 2, 64"),
        (with_first(ExperimentStarted, code=CODE | {"dirty": "yes"}), "dirty checkout", "notes", ""),
        (with_first(WorkerStarted, torch_version="2.12"), "torch", "blocks", "2.12 on cpu:0; 2.13 on cpu:1"),
        (
            of_plan(lambda plan: replace(plan, experiment=replace(plan.experiment, unpaired=True))),
            "unpaired",
            "notes",
            "",
        ),
        (of_plan(of_runs(repeats=False)), "environments", "notes", "The environments are not repeatable"),
        (of_plan(of_runs(repeats=False, carries=True)), "environments", "notes", "The environments carry state"),
        (of_plan(ordered_otherwise), "orders", "blocks", "data_dir"),
        (
            of_plan(lambda plan: replace(plan, digest="1" * 64)),
            "orders",
            "blocks",
            "12 runs do not come from this plan, shaped/0 first",
        ),
        (episodes(planted_effect(), of_larger_hosts), "data", "blocks", "99, 1200"),
        (of_plan(on_two_kinds), "hardware", "notes", "CPU core, NVIDIA H200"),
        (
            slower(planted_effect(), 2.0),
            "throughput",
            "notes",
            "shaped 66.7 (72 s), simplified 33.3 (144 s); fastest over slowest 2.00",
        ),
        (with_entry("unequal_devices", detail="one is hot."), "hardware", "notes", "Devices differed: one is hot."),
    ],
)
def test_a_condition_of_the_whole_experiment_is_found(events, kind, weight, words):
    (key, sentence) = only_finding(events)
    assert key == (kind, weight, ())
    assert words in sentence


def uninformed(lr=3e-4, **changes):
    """A critic that explains nothing, all along."""
    groups = {"shaped": Shape(accuracy=80.0), "simplified": Shape(accuracy=66.0, ppo=PPOSettings(lr=lr))}
    return updates(Synthetic(groups=groups, **changes).events(), explained_variance=-0.1, value_loss=0.7)


UNUSED = HeadUse(entropy=None, learnable=0.0)


def without_choice(head, which=lambda record: True):
    """No choice for one head of `simplified`."""
    return episodes(
        planted_effect(),
        lambda record: replace(record, ppo=replace(record.ppo, heads={**record.ppo.heads, head: UNUSED})),
        which=which,
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
            slower(planted_effect(), 2.0, which=lambda record: record.episode == 0),
            "cold start",
            "notes",
            "the first episode took 3 s after a warm-up of 0.4 s, 2.00 times",
        ),
        # Policy updates.
        (
            updates(planted_effect(), which=lambda record: record.episode == 2, first_ratio_error=0.25),
            "ratio mismatch",
            "blocks",
            "differed from 1 by up to 2.5e-01 (6 of 48 updates, 6 of 6 runs)",
        ),
        (
            uninformed(episodes=12),
            "value collapse",
            "notes",
            "simplified: value collapse in 12 of 72 updates, 6 of 6 runs.",
        ),
        (
            uninformed(episodes=21, replicates=2),
            "value collapse",
            "caps",
            "(22 of 42 updates, 2 of 2 runs): it did not train.",
        ),
        (without_choice("slot", lambda record: record.run.replicate < 2), "dead heads", "notes", "slot (2 of 6 runs)"),
        (without_choice("op"), "dead heads", "caps", "it did not train."),
        # As in growth by episodes of one step, where there is only WAIT, so that entropy has collapsed from nothing.
        (updates(planted_effect(), entropy=0.0, heads={"op": UNUSED, "slot": UNUSED}), "dead heads", "caps", ""),
    ],
)
def test_a_condition_of_one_group_is_found(events, kind, weight, words):
    (key, sentence) = only_finding(events)
    assert key == (kind, weight, ("simplified",))
    assert words in sentence


@pytest.mark.parametrize(
    "events",
    [
        continued(),
        continued(code=CODE | {"commit": "fff"}),
        continued(worker="5a5a"),
        slower(planted_effect(), 1.2),
        # The entropy of continuous decisions is that of a density: below 0 for every narrow one.
        updates(planted_effect(), entropy=0.0, heads={}),
        updates(planted_effect(), entropy=-3.0, heads={}),
        # A critic is judged after its first updates only, and not if the learning rate is 0.
        uninformed(episodes=10),
        uninformed(lr=0.0, episodes=21),
        # A head that has one choice by its settings is not dead, nor one without a choice in a part of a run.
        planned(without_choice("slot"), of_runs(slots=("early",))),
        without_choice("slot")[:17],
        without_choice("slot", lambda record: record.episode > 0),
    ],
)
def test_what_changes_nothing_is_no_finding(events):
    assert finding_sentences(events) == {}


def test_another_source_is_another_number(tmp_path):
    package = tmp_path / "workers"
    package.mkdir()
    (package / "__init__.py").touch()
    seen = [hash_sources([package])]
    for name, text in (
        ("a.py", "x = 1"),
        ("a.py", "x = 2"),
        ("data.npz", "0"),
        ("kernel.cpp", "int x;"),
        ("kernel.h", "int y;"),
        ("libkernel-avx2.so", "0"),
        ("notes.txt", "no source"),
    ):
        (package / name).write_text(text)
        seen.append(hash_sources([package]))
    assert len(set(seen[:-1])) == len(seen) - 1
    assert seen[-1] == seen[-2]


def test_a_sitting_that_recorded_nothing_changes_nothing():
    started, *events = planted_effect()
    workers = [
        replace(event, incarnation=1, torch_version="2.12", sources="6b6b")
        for event in events
        if isinstance(event, WorkerStarted)
    ]
    whole = [replace(started, code=CODE), *events[:-1]]
    assert finding_sentences([*whole, ExperimentContinued(**OTHER), *workers, events[-1]]) == {}


@pytest.mark.parametrize(("sources", "taken_up"), [(("7c7c",), ("5a5a", "7c7c")), (("7c7c", "5a5a"), ("5a5a",))])
def test_a_run_that_other_code_took_up_is_of_both_if_that_got_anywhere(sources, taken_up):
    events = continued(after=5)
    run = events[first(events, RunStarted, replicate=4)].run
    at = first(events, EpisodeRecorded, run=run, episode=3)
    again = []
    for code in sources:
        again += [
            ExperimentContinued(**SAME, code=CODE | {"sources": code}),
            RunReady(run=run, warm_up_s=0.1, milestone=3),
        ]
    states = code_states(fold([*events[:at], *again, *events[at:]]))
    assert sorted(state.code["sources"] for state in states if run.name in state.runs) == list(taken_up)


def test_different_hardware_caps_when_it_is_not_balanced():
    events = [*of_plan(on_two_kinds), *with_entry("dropped_pair", "simplified/0")[-1:]]
    assert (
        "+1 on CPU core, -1 on NVIDIA H200" in finding_sentences(events)["hardware", "caps", ("shaped", "simplified")]
    )


def test_the_planner_says_what_the_devices_are():
    there = fake_plans.machine(2)
    gpus = tuple(Device(name=f"cuda:{i}", title=title, uuid=f"GPU-{i}", memory_bytes=1) for i, title in enumerate("AB"))
    pool = ("cuda:0", "cuda:1", "cpu:0", "cpu:1")
    experiment = replace(fake_plans.plan().experiment, devices=pool, devices_per_run=2, n_envs=2)
    plan = make_plan(experiment, replace(there, devices=(*gpus, *there.devices)))[0]
    assert [hardware(lane) for lane in plan.lanes] == ["A + B", "CPU core"]
    assert hardware(Lane(name="cuda:3", devices=("cuda:3",), uuids=("GPU-3",))) == "GPU"


def test_faults_outside_of_any_run_and_signals_are_noted():
    deaths = [with_entry("worker_death", "")[-1]] * 2
    events = [*planted_effect(), *deaths, with_entry("interrupted", "")[-1]]
    assert finding_sentences(events) == {
        ("faults", "notes", ()): "Outside any run: 2 worker deaths.",
        ("interrupted", "notes", ()): "The experiment was stopped by a signal once.",
    }


def test_conduct_in_numbers():
    shaped, simplified = conduct(fold([*failed_run(), with_entry("dropped_pair")[-1]]))
    assert (shaped.runs, shaped.finished, shaped.lost, shaped.faults) == (6, 3, 0, {})
    assert (simplified.lost, simplified.faults) == (1, {"worker_death": 1})
    assert (shaped.episodes, shaped.env_steps, shaped.evaluation_episodes) == (26, 26 * 4 * 25, 3 * 12)
    assert shaped.wall_s == pytest.approx(26 * 1.5)
    assert (shaped.episode_s, shaped.warm_up_s, shaped.first_over_rest) == (1.5, 0.4, 1.0)
    (nothing, _) = conduct(fold(planted_effect()[:1]))
    assert (nothing.episodes, nothing.episode_s, nothing.decisions_per_s) == (0, None, None)
    # The first episode is not among the others that it is compared with.
    cold = slower(Synthetic(episodes=2).events(), 2.0, which=lambda record: record.episode == 0)
    (_, simplified) = conduct(fold(cold))
    assert (simplified.episode_s, simplified.first_episode_s, simplified.first_over_rest) == (1.5, 3.0, 2.0)


PATHOLOGIES = {
    "no step": {"grad_norm": None},
    "ratio explosion": {"ratio_max": 12.0},
    "ratio collapse": {"clip_fraction": 0.6},
    "entropy collapse": {"entropy": 1e-6},
}


@pytest.mark.parametrize(("kind", "change"), PATHOLOGIES.items())
def test_pathologies_are_noted_and_cap_when_a_group_never_trained(kind, change):
    some = updates(planted_effect(), which=lambda record: record.episode == 3, **change)
    assert only_finding(some) == (
        (kind, "notes", ("simplified",)),
        f"simplified: {kind} in 6 of 48 updates, 6 of 6 runs.",
    )
    most = updates(planted_effect(), which=lambda record: record.episode >= 3, **change)
    (key, sentence) = only_finding(most)
    assert key == (kind, "caps", ("simplified",))
    assert "(30 of 48 updates, 6 of 6 runs): it did not train." in sentence
    all_but_one_run = updates(planted_effect(), which=lambda record: record.run.replicate > 0, **change)
    assert only_finding(all_but_one_run)[0] == (kind, "notes", ("simplified",))
