"""Findings on the conditions of runs: each is reached by a journal that has its cause."""

from __future__ import annotations

import pytest
from support import fake_plans
from support.audited import episodes, found, only, planned, replace, with_entry
from support.journals import Synthetic, failed_run, planted_effect

from esper_ab.analysis.audit import hardware
from esper_ab.analysis.conduct import conduct
from esper_ab.analysis.trained_by import code_states
from esper_ab.contracts.children import Device
from esper_ab.contracts.messages import Lane
from esper_ab.contracts.source_files import hash_sources
from esper_ab.control import provenance
from esper_ab.design.boundary_cache import find_bounds
from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentContinued,
    ExperimentStarted,
    Incident,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.fold import fold
from esper_ab.plan.blocks import make_plan

SAME = {"versions": {"esper_ab": "0.1.0", "torch": "2.13"}, "machine": {"cpu": "test processor", "cores": "2"}}
CODE = {"sources": "5a5a", "commit": "abc123", "dirty": "no"}


def continued(*, after=3, worker="", **change):
    """Stopped when replicate `after` was to begin, and continued; `worker`: the sources of cpu:0's worker from then."""
    started, *events = planted_effect()
    at = next(i for i, event in enumerate(events) if isinstance(event, RunStarted) and event.run.replicate == after)
    workers = [replace(event, incarnation=1) for event in events if isinstance(event, WorkerStarted)]
    workers[0] = replace(workers[0], sources=worker)
    again = ExperimentContinued(**({"code": CODE, **SAME} | change))
    return [replace(started, code=CODE), *events[:at], again, *workers, *events[at:]]


def test_an_experiment_continued_alike_is_clean_whatever_was_committed_since():
    assert found(continued()) == {}
    assert found(continued(code=CODE | {"commit": "fff"})) == {}


def test_the_sources_are_one_number_while_nobody_edits_them():
    code = provenance.code()
    assert code["sources"] == provenance.sources()
    assert len(code["sources"]) == 16


def test_another_source_is_another_number(tmp_path):
    package = tmp_path / "workers"
    package.mkdir()
    (package / "__init__.py").touch()
    seen = [hash_sources([package])]
    for name, text in (
        ("a.py", "x = 1"), ("a.py", "x = 2"), ("data.npz", "0"), ("kernel.cpp", "int x;"), ("kernel.h", "int y;"),
        ("libkernel-avx2.so", "0"), ("notes.txt", "no source"),
    ):  # fmt: skip
        (package / name).write_text(text)
        seen.append(hash_sources([package]))
    assert len(set(seen[:-1])) == len(seen) - 1
    assert seen[-1] == seen[-2]


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"code": CODE | {"sources": "6b6b"}}, ("code", "blocks"),
         "by 2 states of the code: sources 5a5a in 6 runs, shaped/0 first; sources 6b6b in 6 runs, simplified/3"),
        ({"code": {"commit": "fff", "dirty": "no"}}, ("code", "blocks"),
         "by 2 states of the code: commit abc123 in 6 runs, shaped/0 first; commit fff in 6 runs"),
        ({"code": CODE | {"dirty": "yes"}}, ("dirty checkout", "notes"), "in 1 of 2 sittings"),
        ({"versions": SAME["versions"] | {"numpy": "2.0"}}, ("versions", "blocks"), "numpy none, 2.0"),
        ({"machine": SAME["machine"] | {"cores": "64"}}, ("machine", "notes"), "cores 2, 64"),
    ],
)
def test_what_may_change_when_an_experiment_is_continued(change, key, words):
    (where, sentence) = only(continued(**change))
    assert where == (*key, ())
    assert words in sentence


def test_a_worker_that_was_started_again_by_other_code_within_one_sitting_blocks():
    assert found(continued(worker="5a5a")) == {}
    (key, sentence) = only(continued(worker="6b6b"))
    assert key == ("code", "blocks", ())
    assert "by 2 states of the code: sources 5a5a in 9 runs, shaped/0 first; sources 6b6b in 3 runs" in sentence


def test_a_sitting_that_recorded_nothing_changes_nothing():
    started, *events = planted_effect()
    other = {
        "code": CODE | {"sources": "6b6b"}, "versions": SAME["versions"] | {"numpy": "2.0"},
        "machine": SAME["machine"] | {"cores": "64"},
    }
    workers = [replace(event, incarnation=1, torch_version="2.12", sources="6b6b")
               for event in events if isinstance(event, WorkerStarted)]  # fmt: skip
    whole = [replace(started, code=CODE), *events[:-1]]
    assert found([*whole, ExperimentContinued(**other), *workers, events[-1]]) == {}


def test_a_run_that_was_taken_up_by_other_code_is_of_both():
    events = continued(after=5, code=CODE | {"sources": "6b6b"})
    run = next(event.run for event in events if isinstance(event, RunStarted) and event.run.replicate == 4)
    at = next(i for i, event in enumerate(events)
              if isinstance(event, EpisodeRecorded) and event.record.run == run and event.record.episode == 3)
    again = [ExperimentContinued(**SAME, code=CODE | {"sources": "7c7c"}),
             RunReady(run=run, warm_up_s=0.1, milestone=3)]  # fmt: skip
    states = code_states(fold([*events[:at], *again, *events[at:]]))
    by = {state.code["sources"]: state.runs for state in states}
    assert run.name in by["5a5a"]
    assert run.name in by["7c7c"]


def test_who_took_a_run_up_and_got_nowhere_made_nothing_of_it():
    events = continued(after=5)
    run = next(event.run for event in events if isinstance(event, RunStarted) and event.run.replicate == 4)
    at = next(i for i, event in enumerate(events)
              if isinstance(event, EpisodeRecorded) and event.record.run == run and event.record.episode == 3)
    again = []
    for sources in ("7c7c", "5a5a"):
        again += [ExperimentContinued(**SAME, code=CODE | {"sources": sources}),
                  RunReady(run=run, warm_up_s=0.1, milestone=3)]  # fmt: skip
    assert [state.code["sources"] for state in code_states(fold([*events[:at], *again, *events[at:]]))] == ["5a5a"]


def test_workers_with_another_torch_block():
    events = planted_effect()
    at = next(i for i, event in enumerate(events) if isinstance(event, WorkerStarted))
    events[at] = replace(events[at], torch_version="2.12")
    (key, sentence) = only(events)
    assert key == ("torch", "blocks", ())
    assert "2.12 on cpu:0; 2.13 on cpu:1" in sentence


def test_a_dirty_checkout_and_unpaired_groups_are_noted():
    events = planted_effect()
    assert isinstance(events[0], ExperimentStarted)
    events[0] = replace(events[0], code=CODE | {"dirty": "yes"})
    assert only(events)[0] == ("dirty checkout", "notes", ())
    unpaired = planned(planted_effect(), lambda plan: replace(plan, experiment=replace(plan.experiment, unpaired=True)))
    assert only(unpaired)[0] == ("unpaired", "notes", ())


@pytest.mark.parametrize(("carries", "begins", "not_there"), [
    (False, "The environments do not repeat", "carry"), (True, "The environments carry state", "equal records"),
])  # fmt: skip
def test_environments_that_do_not_repeat_and_those_that_carry_state_are_noted(carries, begins, not_there):
    def altered(plan):
        def unrepeatable(block):
            return replace(block, runs=tuple(replace(run, repeats=False) for run in block.runs))

        return replace(plan, carries=carries, blocks=tuple(map(unrepeatable, plan.blocks)))

    (key, sentence) = only(planned(planted_effect(), altered))
    assert key == ("environments", "notes", ())
    assert sentence.startswith(begins)
    assert not_there not in sentence


def test_runs_that_were_ordered_otherwise_block():
    def altered(plan, **change):
        block = replace(plan.blocks[0], runs=(replace(plan.blocks[0].runs[0], **change), *plan.blocks[0].runs[1:]))
        return replace(plan, blocks=(block, *plan.blocks[1:]))

    (key, sentence) = only(planned(planted_effect(), lambda plan: altered(plan, data_dir="elsewhere")))
    assert key == ("orders", "blocks", ())
    assert "data_dir" in sentence
    (key, sentence) = only(planned(planted_effect(), lambda plan: replace(plan, digest="1" * 64)))
    assert key == ("orders", "blocks", ())
    assert "12 runs were not ordered by this plan, shaped/0 first" in sentence


def test_hosts_of_another_size_are_another_task():
    def other(record):
        eval_episodes = (replace(env, measures=env.measures | {"host_params": 99.0}) for env in record.envs)
        return replace(record, envs=tuple(eval_episodes))

    (key, sentence) = only(episodes(planted_effect(), other))
    assert key == ("data", "blocks", ())
    assert "99, 1200" in sentence


def on_two_kinds(plan):
    titles = {"cpu:0": "NVIDIA H200", "cpu:1": ""}
    return replace(plan, lanes=tuple(replace(lane, titles=(titles[lane.name],)) for lane in plan.lanes))


def test_different_hardware_is_noted_when_balanced_and_caps_when_not():
    events = planned(planted_effect(), on_two_kinds)
    (key, sentence) = only(events)
    assert key == ("hardware", "notes", ())
    assert "CPU core, NVIDIA H200" in sentence
    lost = Incident(category="dropped_pair", run_name="simplified/0", episode=None, detail="given up")
    sentence = found([*events, lost])["hardware", "caps", ("shaped", "simplified")]
    assert "+1 on CPU core, -1 on NVIDIA H200" in sentence


def test_the_planner_says_what_the_devices_are():
    there = fake_plans.machine(2)
    gpus = tuple(
        Device(name=f"cuda:{i}", title=title, uuid=f"GPU-{i}", memory_bytes=1) for i, title in enumerate("AB")
    )
    pool = ("cuda:0", "cuda:1", "cpu:0", "cpu:1")
    experiment = replace(fake_plans.plan().experiment, devices=pool, devices_per_run=2, n_envs=2)
    plan = make_plan(experiment, replace(there, devices=(*gpus, *there.devices)), find_bounds)[0]
    assert [hardware(lane) for lane in plan.lanes] == ["A + B", "CPU core"]
    assert hardware(Lane(name="cuda:3", devices=("cuda:3",), uuids=("GPU-3",))) == "GPU"


# Findings on how an experiment was conducted: each is reached by a journal that has its cause.


@pytest.mark.parametrize(
    ("category", "words"),
    [
        ("worker_death", "simplified: 1 worker death."),
        ("hung_worker", "simplified: 1 hung worker."),
        ("restart", "simplified: 1 restart."),
        ("bad_message", "simplified: 1 unreadable message."),
        ("cold_start", "simplified: 1 cold start."),
        ("dropped_pair", "simplified: 1 of 6 runs lost."),
    ],
)
def test_faults_are_counted_by_group(category, words):
    assert only(with_entry(category)) == (("faults", "notes", ("simplified",)), words)


def test_faults_outside_of_any_run_and_signals_are_noted():
    deaths = [with_entry("worker_death", "")[-1]] * 2
    events = [*planted_effect(), *deaths, with_entry("interrupted", "")[-1]]
    assert found(events) == {
        ("faults", "notes", ()): "Outside of any run: 2 worker deaths.",
        ("interrupted", "notes", ()): "The experiment was stopped by a signal once.",
    }
    assert only(with_entry("unequal_devices", detail="one is hot."))[1] == "Devices were not equal: one is hot."


def test_a_failed_experiment_says_who_died():
    assert only(failed_run())[1] == "simplified: 1 worker death."


def test_inexact_resumes_cap_and_name_the_runs():
    events = [*with_entry("inexact_resume"), *with_entry("inexact_resume", "simplified/4")[-1:]]
    (key, sentence) = only(events)
    assert key == ("inexact resume", "caps", ("simplified",))
    assert sentence.endswith("simplified/2, simplified/4.")


def slower(events, factor, which=lambda record: True):
    def change(record):
        return replace(record, timing=replace(record.timing, total_s=record.timing.total_s * factor))

    return episodes(events, change, which=which)


def test_unequal_speed_is_noted_with_its_numbers():
    assert found(slower(planted_effect(), 1.2)) == {}
    (key, sentence) = only(slower(planted_effect(), 2.0))
    assert key == ("throughput", "notes", ())
    assert "shaped 66.7 (72 s), simplified 33.3 (144 s); fastest over slowest 2.00" in sentence


def test_a_cold_first_episode_is_noted():
    (key, sentence) = only(slower(planted_effect(), 2.0, which=lambda record: record.episode == 0))
    assert key == ("cold start", "notes", ("simplified",))
    assert "the first episode took 3 s after a warm-up of 0.4 s, 2.00 times" in sentence


def test_the_first_episode_is_not_among_the_others_it_is_compared_with():
    events = slower(Synthetic(episodes=2).events(), 2.0, which=lambda record: record.episode == 0)
    (_, simplified) = conduct(fold(events))
    assert (simplified.episode_s, simplified.first_episode_s, simplified.first_over_rest) == (1.5, 3.0, 2.0)


def test_conduct_in_numbers():
    shaped, simplified = conduct(fold([*failed_run(), with_entry("dropped_pair")[-1]]))
    assert (shaped.runs, shaped.finished, shaped.lost, shaped.faults) == (6, 3, 0, {})
    assert (simplified.lost, simplified.faults) == (1, {"worker_death": 1})
    assert (shaped.episodes, shaped.env_steps, shaped.evaluation_episodes) == (26, 26 * 4 * 25, 3 * 12)
    assert shaped.wall_s == pytest.approx(26 * 1.5)
    assert (shaped.episode_s, shaped.warm_up_s, shaped.first_over_rest) == (1.5, 0.4, 1.0)
    (nothing, _) = conduct(fold(planted_effect()[:1]))
    assert (nothing.episodes, nothing.episode_s, nothing.decisions_per_s) == (0, None, None)
