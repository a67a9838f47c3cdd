"""Every finding of the audit is reached by a journal that has its cause, and a clean experiment has none."""

from __future__ import annotations

import sys

import fake_plans
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audited import episodes, found, only, planned, replace, updates, with_entry
from support.journals import Synthetic, failed_run, one_replicate, planted_effect, same_twice, three_groups

from esper_ab.analysis.audit import Place, audit, hardware, places_estimable
from esper_ab.analysis.conduct import conduct
from esper_ab.analysis.trained_by import code_states
from esper_ab.boundary_cache import calibrate
from esper_ab.contracts.machine import Device
from esper_ab.contracts.messages import Lane
from esper_ab.control import provenance
from esper_ab.counterbalance import order, orders_estimable
from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentContinued,
    ExperimentStarted,
    Ledger,
    RunEvaluated,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.fold import fold
from esper_ab.plan import make_plan

SAME = {"versions": {"esper_ab": "0.1.0", "torch": "2.13"}, "machine": {"cpu": "test processor", "cores": "2"}}
CODE = {"sources": "5a5a", "commit": "abc123", "dirty": "no"}



# --- nothing ---


@pytest.mark.parametrize("events", [planted_effect, same_twice, one_replicate, three_groups])
def test_a_clean_experiment_has_no_finding(events):
    assert found(events()) == {}


def test_a_clean_experiment_of_three_groups_has_at_most_unbalanced_positions_on_its_way():
    events = three_groups()
    for cut in range(1, len(events), 17):
        assert all(kind == "positions" for kind, _, _ in found(events[:cut]))  # balanced at the end of a cycle only


def test_a_clean_experiment_of_two_groups_has_none_at_any_time():
    events = planted_effect()
    for cut in range(1, len(events), 11):
        assert found(events[:cut]) == {}


def test_the_weightiest_finding_comes_first():
    events = updates(with_entry("inexact_resume"), first_ratio_error=0.5)
    weights = [finding.weight for finding in audit(fold([*events, with_entry("restart")[-1]])).findings]
    assert weights == ["blocks", "caps", "notes"]


def test_what_names_two_groups_is_about_their_comparison_only():
    events = three_groups()
    shorter = episodes(events, lambda record: replace(record, envs=record.envs[:-1]), "wait")
    findings = [finding for finding in audit(fold(shorter)).findings if finding.kind == "amounts"]
    assert {finding.groups for finding in findings} == {("shaped", "wait"), ("simplified", "wait")}
    assert not any(finding.touches("shaped", "simplified") for finding in findings)
    assert any(finding.touches("wait", "shaped") for finding in findings)


# --- the design ---


def as_fixed(plan):
    """Every block in the order of the first, lanes included."""
    names = [spec.ref.group_id for spec in plan.blocks[0].runs]
    blocks = []
    for block in plan.blocks:
        specs = {spec.ref.group_id: spec for spec in block.runs}
        runs = tuple(
            replace(specs[name], ref=replace(specs[name].ref, device=f"cpu:{i}")) for i, name in enumerate(names)
        )
        blocks.append(replace(block, runs=runs))
    return replace(plan, blocks=tuple(blocks))


def test_groups_that_keep_their_lane_cannot_be_told_from_it():
    (key, sentence) = only(planned(planted_effect(), as_fixed))
    assert key == ("aliased", "blocks", ("shaped", "simplified"))
    assert "6 analysed replicates" in sentence


def test_without_adjustment_unbalanced_positions_are_noted():
    def unadjusted(plan):
        return replace(plan, design=replace(plan.design, adjusted=False))

    assert found(planned(planted_effect(), unadjusted)) == {}
    lost = Ledger(category="dropped_pair", run="shaped/0", episode=None, detail="given up")
    sentence = found([*planned(planted_effect(), unadjusted), lost])["positions", "notes", ("shaped", "simplified")]
    assert "-1 at 1, +1 at 2" in sentence


def test_the_rank_test_is_never_adjusted_so_its_unbalanced_positions_are_noted():
    def by_ranks(plan):
        return replace(plan, design=replace(plan.design, test="rank"))

    assert planted_effect()[0].plan.design.adjusted
    assert found(planned(planted_effect(), by_ranks)) == {}
    lost = Ledger(category="dropped_pair", run="shaped/0", episode=None, detail="given up")
    assert ("positions", "notes", ("shaped", "simplified")) in found([*planned(planted_effect(), by_ranks), lost])


@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=7)))
def test_all_groups_are_estimable_exactly_when_every_pair_is(orders):
    """Against the exact rank over all groups, where lane and order are one."""
    n = len(orders[0])

    def places(a, b):
        return [
            Place(replicate=r, lane=f"cpu:{i}", order=i, sign=1 if group == a else -1)
            for r, groups in enumerate(orders)
            for i, group in enumerate(groups)
            if group in (a, b)
        ]

    pairs = [(a, b) for a in range(n) for b in range(a)]
    if n == 2:
        assert places_estimable(places(1, 0)) == orders_estimable([tuple(groups) for groups in orders])
    elif all(places_estimable(places(a, b)) for a, b in pairs):
        assert orders_estimable([tuple(groups) for groups in orders])


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_planned_order_is_estimable_on_two_sets_of_lanes_too(n):
    places = [
        Place(replicate=r, lane=f"cpu:{r % 2 * n + i}", order=i, sign=1 if group else -1)
        for r in range(24)
        for i, group in enumerate(order(n, r // 2))
        if group < 2
    ]
    assert places_estimable(places)
    assert not places_estimable([place for place in places if place.replicate < 2])
    assert not places_estimable([])


@pytest.mark.parametrize("aliased", ["lane", "order", "neither"])
def test_lane_and_order_are_told_apart(aliased):
    """The first group always on one lane, or always first, while the other of the two alternates."""
    places = []
    for r in range(8):
        for group in range(2):
            lane = group if aliased == "lane" else (group + r) % 2
            start = group if aliased == "order" else (group + r // 2) % 2
            places.append(Place(replicate=r, lane=f"cpu:{lane}", order=start, sign=1 - 2 * group))
    assert places_estimable(places) == (aliased == "neither")


# --- amounts ---


def test_unequal_work_blocks_and_a_diverged_host_does_not():
    def short(diverged):
        def change(record):
            first = replace(record.envs[0], steps=20, diverged=diverged)
            return replace(record, envs=(first, *record.envs[1:]))

        return episodes(planted_effect(), change, which=lambda record: record.run.replicate == 1)

    (key, sentence) = only(short(diverged=False))
    assert key == ("amounts", "blocks", ("shaped", "simplified"))
    assert "4800 against 4760 environment steps" in sentence
    (key, sentence) = only(short(diverged=True))
    assert key == ("diverged hosts", "notes", ("simplified",))
    assert "8 hosts diverged" in sentence


def test_unequal_evaluation_blocks():
    events = [
        RunEvaluated(record=replace(event.record, episodes=event.record.episodes[1:]))
        if isinstance(event, RunEvaluated) and event.record.run.run == "shaped/3"
        else event
        for event in planted_effect()
    ]
    assert "47 against 48 evaluation hosts" in only(events)[1]


# --- conditions ---


def continued(*, after=3, worker="", **change):
    """Stopped when replicate `after` was to begin, and continued; `worker`: the sources of cpu:0's worker from then."""
    started, *events = planted_effect()
    at = next(i for i, event in enumerate(events) if isinstance(event, RunStarted) and event.block == after)
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


def test_another_source_is_another_number(tmp_path, monkeypatch):
    package = tmp_path / "workers"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "workers", raising=False)
    seen = [provenance.sources()]
    for name, text in (("a.py", "x = 1"), ("a.py", "x = 2"), ("data.npz", "0"), ("notes.txt", "no source")):
        (package / name).write_text(text)
        seen.append(provenance.sources())
    assert len(set(seen[:4])) == 4
    assert seen[4] == seen[3]


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
    run = next(event.run for event in events if isinstance(event, RunStarted) and event.block == 4)
    at = next(i for i, event in enumerate(events)
              if isinstance(event, EpisodeRecorded) and event.record.run == run and event.record.episode == 3)
    again = [ExperimentContinued(**SAME, code=CODE | {"sources": "7c7c"}),
             RunReady(run=run, warm_up_s=0.1, point=3)]  # fmt: skip
    states = code_states(fold([*events[:at], *again, *events[at:]]))
    by = {state.code["sources"]: state.runs for state in states}
    assert run.run in by["5a5a"]
    assert run.run in by["7c7c"]


def test_who_took_a_run_up_and_got_nowhere_made_nothing_of_it():
    events = continued(after=5)
    run = next(event.run for event in events if isinstance(event, RunStarted) and event.block == 4)
    at = next(i for i, event in enumerate(events)
              if isinstance(event, EpisodeRecorded) and event.record.run == run and event.record.episode == 3)
    again = []
    for sources in ("7c7c", "5a5a"):
        again += [ExperimentContinued(**SAME, code=CODE | {"sources": sources}),
                  RunReady(run=run, warm_up_s=0.1, point=3)]  # fmt: skip
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
        return replace(record, envs=tuple(replace(env, host_params=99) for env in record.envs))

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
    lost = Ledger(category="dropped_pair", run="simplified/0", episode=None, detail="given up")
    sentence = found([*events, lost])["hardware", "caps", ("shaped", "simplified")]
    assert "+1 on CPU core, -1 on NVIDIA H200" in sentence


def test_the_planner_says_what_the_devices_are():
    there = fake_plans.machine(2)
    gpus = tuple(
        Device(name=f"cuda:{i}", title=title, uuid=f"GPU-{i}", memory_bytes=1) for i, title in enumerate("AB")
    )
    pool = ("cuda:0", "cuda:1", "cpu:0", "cpu:1")
    experiment = replace(fake_plans.plan().experiment, devices=pool, devices_per_run=2, n_envs=2)
    plan = make_plan(experiment, replace(there, devices=(*gpus, *there.devices)), calibrate)
    assert [hardware(lane) for lane in plan.lanes] == ["A + B", "CPU core"]
    assert hardware(Lane(name="cuda:3", devices=("cuda:3",), uuids=("GPU-3",))) == "GPU"


# --- conduct ---


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


def test_a_rehearsal_of_faults_is_said():
    once, twice = with_entry("chaos"), [*with_entry("chaos"), with_entry("chaos")[-1]]
    assert only(once)[0] == ("chaos", "notes", ())
    assert only(once)[1].startswith("1 worker was killed or stopped on purpose")
    assert only(twice)[1].startswith("2 times a worker was")


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
    assert (shaped.episodes, shaped.env_steps, shaped.evaluation_hosts) == (26, 26 * 4 * 25, 3 * 16)
    assert shaped.wall_s == pytest.approx(26 * 1.5)
    assert (shaped.episode_s, shaped.warm_up_s, shaped.first_over_rest) == (1.5, 0.4, 1.0)
    (nothing, _) = conduct(fold(planted_effect()[:1]))
    assert (nothing.episodes, nothing.episode_s, nothing.decisions_per_s) == (0, None, None)
