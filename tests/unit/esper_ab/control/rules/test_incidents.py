"""Incidents and warnings about workers and their runs."""

import pytest
from msgspec.structs import replace
from support.journals.ready_journals import planted_effect
from support.journals.synthetic import started
from support.plans import fake_plans
from support.plans.worker_orders import order

from esper_ab.analysis.pathologies import UNTRAINED_UPDATES
from esper_ab.contracts.messages import PROTOCOL, EpisodeFinished, Hello, Ready
from esper_ab.control.rules import incidents
from esper_ab.control.rules.confounders import FAILED, confounders
from esper_ab.control.rules.incidents import reported
from esper_ab.control.rules.liveness import Laggard, Sign
from esper_ab.control.rules.runs import NOWHERE
from esper_ab.control.rules.worker_state import WorkerState
from esper_ab.journal.events import EpisodeRecorded, ExperimentContinued, Incident, RunEvaluated, RunReady
from esper_ab.journal.fold import begin, fold

PLAN = fake_plans.plan(episodes=2)
SPEC = PLAN.blocks[0].runs[0]
ORDER = order()
TRAINS = Sign(phase="train", run_name="a/0", step=7)


def history_of(start_sources="", *continued_sources):
    """Return a history that was started and continued with these sources."""
    history = begin(started(PLAN))
    history.started.code.update(sources=start_sources)
    for sources in continued_sources:
        history.add(ExperimentContinued(versions={}, machine={}, code={"sources": sources}))
    return history


def first_run():
    return history_of().runs[SPEC.ref.name]


def hello(**changes):
    fields = {"worker": "w00", "incarnation": 1, "protocol": PROTOCOL, "pid": 1, "uuids": ("",), "torch_version": ""}
    return Hello(**{**fields, "sources": "", **changes})


@pytest.mark.parametrize(
    ("start_sources", "continued_sources", "worker", "has_warning"),
    [
        ("x", (), "x", False),
        ("x", (), "y", True),
        ("x", ("y",), "y", False),
        ("x", ("y",), "x", True),
        ("x", (), "", False),  # a worker without known sources
        ("", (), "y", False),  # a coordinator without known sources
    ],
)
def test_a_worker_with_different_code_than_the_coordinator_causes_a_warning(
    start_sources, continued_sources, worker, has_warning
):
    warning = incidents.other_code(hello(sources=worker), "cpu:0", history_of(start_sources, *continued_sources))
    assert bool(warning) == has_warning
    last_sources = continued_sources[-1] if continued_sources else start_sources
    expected = f"(sources {worker}) than that with which the experiment began ({last_sources})"
    assert not has_warning or expected in warning


@pytest.mark.parametrize(
    ("is_greeted", "has_run", "stands", "sign", "place"),
    [
        (False, False, NOWHERE, None, "before it was ready for a run"),
        (False, True, NOWHERE, None, "before it was ready for a run"),
        (True, False, NOWHERE, None, "between runs"),
        (True, True, 1, None, "while run a/0 waited at the barrier after episode 0"),
        (True, True, NOWHERE, TRAINS, "in warm-up of run a/0 (last sign: train, step 7)"),
        (True, True, 0, TRAINS, "in episode 0 of run a/0 (last sign: train, step 7)"),
        (True, True, 1, TRAINS, "in episode 1 of run a/0 (last sign: train, step 7)"),
        (True, True, 2, TRAINS, "in evaluation of run a/0 (last sign: train, step 7)"),
    ],
)
def test_the_description_of_a_worker_names_its_phase_and_run(is_greeted, has_run, stands, sign, place):
    worker = WorkerState(order=ORDER, greeted=is_greeted)
    assert incidents.whereabouts(worker, first_run() if has_run else None, stands, sign) == place


@pytest.mark.parametrize(
    ("silence", "text_end"),
    [
        (None, "waited at the barrier after episode 0: Ctrl-C stops at once"),
        (
            Laggard(worker="w00/1", last=TRAINS, silent_s=41.0, limit_s=60.0),
            "(last sign: train, step 7): silent for 41 s, killed after 60 s; Ctrl-C stops at once",
        ),
    ],
)
def test_a_stopping_message_names_the_awaited_worker(silence, text_end):
    text = incidents.stop_waits(WorkerState(order=ORDER, greeted=True), first_run(), 1, silence)
    assert text.startswith(f"stopping; waiting for worker {ORDER.identity} on cpu:0, ")
    assert text.endswith(text_end)


@pytest.mark.parametrize(
    ("records", "text_end"), [(None, ""), (0, " to begin a/0 again"), (1, " to continue a/0 after episode 0")]
)
def test_a_restart_incident_names_the_next_episode_of_the_run(records, text_end):
    history = history_of()
    history.add(RunReady(run=SPEC.ref, warm_up_s=0.0, milestone=0))
    if records:
        history.add(EpisodeRecorded(record=replace(EPISODE, run=SPEC.ref, episode=0)))
    entry = incidents.restart(WorkerState(order=ORDER), None if records is None else history.runs["a/0"])
    assert (entry.category, entry.run_name) == ("restart", "" if records is None else "a/0")
    assert entry.detail == f"worker {ORDER.identity} on cpu:0 was started{text_end}"


def test_every_damaged_checkpoint_is_an_incident():
    ready_report = Ready(run=SPEC.ref, warm_up_s=0.0, damaged=("checkpoint 2 is empty", "checkpoint 1 is empty"))
    event, *entries = incidents.reported(ready_report, first_run())
    assert isinstance(event, RunReady)
    assert entries == [
        Incident(category="damaged_checkpoint", run_name="a/0", detail=damage) for damage in ready_report.damaged
    ]


@pytest.mark.parametrize(
    ("old_device", "new_device", "detail"),
    [
        (None, ("n1", "GPU-1"), ""),
        (("n1", "GPU-1"), ("n1", "GPU-1"), ""),
        (("n1", "GPU-1"), ("n2", "GPU-2"), "cpu:0 has moved from n1 GPU-1 to n2 GPU-2, of the same kind"),
        (("n1", "GPU-1"), ("n1", "GPU-2"), "cpu:0 has moved from n1 GPU-1 to n1 GPU-2, of the same kind"),
        (("n1", ""), ("n2", ""), "cpu:0 has moved from n1 to n2, of the same kind"),
        (("", "GPU-1"), ("n2", "GPU-2"), ""),  # recorded before hosts were
    ],
)
@pytest.mark.parametrize("spec", [None, SPEC])
def test_a_lane_that_moved_to_another_device_is_an_incident(old_device, new_device, detail, spec):
    history = history_of()
    if old_device:
        history.add(incidents.worker_started(hello(host=old_device[0], uuids=old_device[1:]), ORDER))
    entry = incidents.moved(
        hello(host=new_device[0], uuids=new_device[1:]), WorkerState(order=ORDER, run=spec), history
    )
    assert (entry.detail if entry else "") == detail
    assert entry is None or (entry.category, entry.run_name) == ("moved", "a/0" if spec else "")


# Incidents that follow from records.


EPISODE = next(e.record for e in planted_effect() if isinstance(e, EpisodeRecorded) and e.record.ppo is not None)
EVALUATION = next(event.record for event in planted_effect() if isinstance(event, RunEvaluated))


def test_an_incident_names_the_failed_environments():
    envs = tuple(replace(env, failed=env.env == 1) for env in EPISODE.envs)
    (entry,) = confounders(replace(EPISODE, envs=envs))
    assert (entry.category, entry.run_name, entry.episode) == ("non_finite", EPISODE.run.name, EPISODE.episode)
    assert f"1 of {len(envs)} environments failed (environments 1)" in entry.detail
    first_episode, *later_episodes = EVALUATION.episodes
    failed_episode = replace(first_episode, result=replace(first_episode.result, failed=True))
    (entry,) = confounders(replace(EVALUATION, episodes=(failed_episode, *later_episodes)))
    assert entry.episode is None
    assert "evaluation episodes failed" in entry.detail


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ratio_max": 10.1}, "10.1 times as likely; lower ppo.lr"),
        ({"ratio_max": 9.9}, ""),
        ({"first_ratio_error": 0.01}, "differs from 1 by 1.0e-02"),
        ({"entropy": 1e-6}, "entropy collapsed"),
        ({"grad_norm": None}, "not finite"),
        ({"policy_loss": None}, "not finite"),
        ({"clip_fraction": 0.75}, "75 % of the probability ratios were clipped"),
        ({"clip_fraction": 0.4}, ""),
        ({"explained_variance": -0.5, "value_loss": 0.8}, "explained variance -0.50, value loss 0.80"),
        (
            {"explained_variance": -0.5, "value_loss": 0.4},
            "",
        ),  # off by a scale, yet nearer than the mean of all returns
        ({"explained_variance": 0.1, "value_loss": 3.0}, ""),
        ({"explained_variance": None, "value_loss": 3.0}, ""),
        ({"first_ratio_error": None, "entropy": None, "ratio_max": None, "clip_fraction": None}, ""),
        ({}, ""),
    ],
)
def test_a_pathological_update_is_an_incident_with_the_reason(change, words):
    entries = list(confounders(with_update(**change)))
    assert len(entries) == bool(words)
    for entry in entries:
        assert (entry.category, entry.run_name, entry.episode) == ("ppo_pathology", EPISODE.run.name, UNTRAINED_UPDATES)
        assert words in entry.detail


def with_update(number=UNTRAINED_UPDATES, **change):
    """Return another episode of the same run with changed numbers of its update."""
    return replace(EPISODE, episode=number, ppo=replace(EPISODE.ppo, **change))


def test_the_critic_is_not_judged_during_the_first_updates():
    assert not list(confounders(with_update(UNTRAINED_UPDATES - 1, explained_variance=-0.5, value_loss=0.8)))


def test_a_run_has_one_incident_per_confounder():
    run = [with_update(number, ratio_max=12.0, entropy=0.0 if number > 2 else 1.0) for number in range(1, 6)]
    assert confounders_in_turn(run) == [(1, "ratio explosion"), (3, "entropy collapse")]
    envs = tuple(replace(env, failed=True) for env in EPISODE.envs)
    assert confounders_in_turn([replace(with_update(number), envs=envs) for number in range(4)]) == [(0, FAILED)]


def confounders_in_turn(run):
    """Return episode and confounder of each incident of these episodes in turn."""
    entries = []
    known_confounders = set()
    for record in run:
        for entry in confounders(record, known_confounders):
            entries.append((entry.episode, entry.confounder))
            known_confounders.add(entry.confounder)
    return entries


def test_a_resumed_run_repeats_no_incident():
    history = fold([*planted_effect(), *confounders(with_update(1, ratio_max=12.0))], keeps_records=False)
    record = with_update(2, ratio_max=12.0, entropy=0.0)
    event, entry = reported(EpisodeFinished(run=record.run, record=record), history.runs[record.run.name])
    assert event == EpisodeRecorded(record=record)
    assert entry.confounder == "entropy collapse"
