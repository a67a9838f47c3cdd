"""A worker dies, hangs or talks rubbish: it alone is started again, and its run goes on from its last checkpoint."""

from __future__ import annotations

import multiprocessing

import pytest
import zmq
from support import fake_plans
from support.conducted import (
    Watcher,
    conclusions,
    counts,
    events_of,
    incidents,
    of,
    records,
    resume,
    run,
    states,
    taken_up,
)
from support.fake_worker import FAULT_VARIABLE, report_of

from esper_ab.contracts.codec import encode
from esper_ab.contracts.errors import WorkerFailed
from esper_ab.control.hub import Hub
from esper_ab.control.rules.workers import Limits
from esper_ab.journal.events import Incident, MilestoneReleased, RunReady, RunStarted, WorkerStarted
from esper_ab.launchers.local import LocalLauncher
from esper_ab.live.on_stderr import Warnings

EVERY_MODE = (
    {}, {"sync": "independent"}, {"cores": 1, "placement": "alternate"}, {"cores": 1, "placement": "sequence"},
)  # fmt: skip


@pytest.fixture
def undisturbed(tmp_path):
    """The journal of the same plan without a fault."""
    return lambda **settings: run(tmp_path / "undisturbed", fake_plans.plan(**settings))


def disturbed(tmp_path, monkeypatch, faults, **settings):
    """The events of a run with `faults`, and what was told besides."""
    watcher = Watcher()
    limits, launcher = settings.pop("limits", None), settings.pop("launcher", None)
    monkeypatch.setenv(FAULT_VARIABLE, faults)
    more = {"launcher": launcher} if launcher else {}
    return run(tmp_path / "run", fake_plans.plan(**settings), watcher, limits=limits, **more), watcher


@pytest.mark.parametrize(("faults", "episode", "milestone", "said"), [
    ("raise:b/0:2:1", 1, 1, "reported an error: RuntimeError: the planted error, in episode 1 of run b/0"),
    ("raise:b/0:0:1", None, 0, "reported an error: RuntimeError: the planted error, in warm-up of run b/0"),
    ("raise:b/0:4:1", None, 3, "in evaluation of run b/0 (last sign: evaluate, step 1)"),
    ("leave:b/0:1:1", 0, 0, "ended with exit status"),
    ("garbage:b/0:2:1", 1, 1, "keeps sending what is no message"),
    ("nan:b/0:3:1", 2, 2, "not finite"),
])  # fmt: skip
def test_a_worker_that_fails_once_costs_nothing(tmp_path, monkeypatch, undisturbed, faults, episode, milestone, said):
    before = undisturbed(episodes=3)
    events, _ = disturbed(tmp_path, monkeypatch, faults, episodes=3)
    assert records(events) == records(before)
    assert conclusions(events) == conclusions(before)
    (death,) = incidents(events, "worker_death")
    assert (death.run_name, death.episode) == ("b/0", episode)
    assert said in death.detail
    assert "worker w01/1 on cpu:1" in death.detail
    (restart,) = incidents(events, "restart")
    how = f"take up b/0 after episode {milestone - 1}" if milestone else "begin b/0 anew"
    assert (restart.run_name, restart.detail) == ("b/0", f"worker w01/2 on cpu:1 was started to {how}")
    assert taken_up(events)["b/0"] == ([0] if episode is None and milestone == 0 else [0, milestone])
    assert taken_up(events)["a/0"] == [0]
    assert [(event.worker, event.incarnation) for event in of(WorkerStarted, events)][2:] == [("w01", 2)]
    assert len(of(RunStarted, events)) == 2


@pytest.mark.parametrize("settings", EVERY_MODE, ids=str)
def test_the_others_wait_at_the_barrier_and_nothing_is_lost_in_any_mode(tmp_path, monkeypatch, undisturbed, settings):
    settings = {"episodes": 4, "seeds": 2, "groups": ("a", "b", "c"), "cores": 3} | settings
    before = undisturbed(**settings)
    faults = "raise:a/0:1:1,raise:a/0:3:2,leave:b/0:0:1,raise:b/0:5:2,raise:c/0:2:1,raise:c/1:4:2,raise:a/1:0:3"
    events, _ = disturbed(tmp_path, monkeypatch, faults, **settings)
    assert records(events) == records(before)
    assert set(states(events).values()) == {"finished"}
    assert counts(events) == {"worker_death": 7, "restart": 7}
    if settings.get("sync") != "independent" and settings.get("placement") != "sequence":
        seen = {}
        for event in events:
            if isinstance(event, MilestoneReleased):
                for name in event.runs:
                    seen[name] = event.milestone
                assert event.milestone <= 1 + min(seen.get(spec, 0) for spec in event.runs)


def test_a_killed_process_is_started_again_at_every_point_and_none_is_left(tmp_path, monkeypatch, undisturbed):
    before = undisturbed(seeds=2)
    faults = "die:a/0:1:1,die:b/0:0:1,die:b/0:2:2,die:a/0:3:2,die:a/1:0:3,die:b/1:3:3"
    launcher = LocalLauncher("support.fake_worker:main")
    events, _ = disturbed(tmp_path, monkeypatch, faults, seeds=2, launcher=launcher)
    assert records(events) == records(before)
    assert counts(events) == {"worker_death": 6, "restart": 6}
    assert all("was killed by SIGKILL" in death.detail for death in incidents(events, "worker_death"))
    assert multiprocessing.active_children() == []


def test_a_hung_worker_is_ended_and_its_stacks_are_shown(tmp_path, monkeypatch, undisturbed):
    before = undisturbed(episodes=3)
    launcher = LocalLauncher("support.fake_worker:main")
    limits = Limits(floor_s=1.0, start_up_s=60.0)
    events, watcher = disturbed(tmp_path, monkeypatch, "hang:a/0:2:1", episodes=3, limits=limits, launcher=launcher)
    assert records(events) == records(before)
    assert counts(events) == {"hung_worker": 1, "restart": 1}
    (told,) = of(str, watcher.seen)
    assert "gave no sign of life" in told
    assert "in _hang" in told
    assert multiprocessing.active_children() == []


def test_what_an_earlier_incarnation_still_says_is_not_heard(tmp_path, monkeypatch, undisturbed):
    """A worker that was given up for dead speaks again, and with another result."""
    before = undisturbed(episodes=40)
    endpoints, context = [], zmq.Context()
    admit = Hub.admit
    monkeypatch.setattr(Hub, "admit", lambda hub, identity: endpoints.append(hub.endpoint) or admit(hub, identity))
    (spec,) = (spec for spec in fake_plans.plan(episodes=40).blocks[0].runs if spec.ref.name == "b/0")

    def speak(event):
        if isinstance(event, RunReady) and event.milestone == 1:
            late = context.socket(zmq.DEALER)
            late.setsockopt(zmq.IDENTITY, b"w01/1")
            late.connect(endpoints[0])
            for milestone in range(30):
                late.send(encode(report_of(spec, milestone)))
            late.close(2000)

    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:2:1")
    events = run(tmp_path / "run", fake_plans.plan(episodes=40), Watcher(speak))
    context.term()
    assert records(events) == records(before)
    assert counts(events) == {"worker_death": 1, "restart": 1}


def test_deaths_with_progress_between_them_never_add_up(tmp_path, monkeypatch):
    faults = ",".join(f"raise:b/0:{milestone}:{milestone + 1}" for milestone in range(6))
    events, _ = disturbed(tmp_path, monkeypatch, faults, episodes=4)
    assert states(events) == {"a/0": "finished", "b/0": "finished"}
    assert counts(events) == {"worker_death": 6, "restart": 6}


@pytest.mark.parametrize("settings", EVERY_MODE, ids=str)
def test_three_deaths_at_one_point_give_the_replicate_up_in_every_group(tmp_path, monkeypatch, undisturbed, settings):
    settings = {"seeds": 3, "groups": ("a", "b", "c"), "cores": 3} | settings
    before = undisturbed(**settings)
    events, _ = disturbed(tmp_path, monkeypatch, "raise:b/1:2", **settings)
    found = states(events)
    assert found["b/1"] == "lost"
    assert set(found.values()) == {"lost", "finished"}
    if settings.get("sync") != "independent" and settings.get("placement") != "sequence":
        assert [found[f"{group}/1"] for group in "abc"] == ["lost"] * 3
    lost = {name for name, state in found.items() if state == "lost"}
    given_up = incidents(events, "dropped_pair", "cancelled")
    assert {entry.run_name for entry in given_up} == lost
    assert (given_up[0].category, given_up[0].run_name) == ("dropped_pair", "b/1")
    assert {entry.category for entry in given_up[1:]} <= {"cancelled"}
    why = "seed 1 was given up: b/1 died 3 times after episode 0: reported an error: RuntimeError: the planted error"
    assert {entry.detail for entry in given_up} == {why}
    assert counts(events)["worker_death"] == counts(events)["restart"] == 3
    kept = {key: event for key, event in records(before).items() if not key[0].endswith("/1")}
    assert {key: event for key, event in records(events).items() if not key[0].endswith("/1")} == kept
    assert events[-1].status == "finished"


def test_a_worker_that_is_cancelled_at_work_does_the_next_replicate(tmp_path, monkeypatch):
    """Of the cancelled runs nothing is recorded any more, however far their workers got."""
    events, _ = disturbed(tmp_path, monkeypatch, "raise:b/0:2", seeds=3, episodes=30, sync="independent")
    first = next(
        n for n, event in enumerate(events) if isinstance(event, Incident) and event.category == "dropped_pair"
    )
    lost = {entry.run_name for entry in incidents(events, "dropped_pair", "cancelled")}
    assert not [key for key in records(events[first:]) if key[0] in lost]
    assert {state for name, state in states(events).items() if not name.endswith("/0")} == {"finished"}
    assert len(of(WorkerStarted, events)) == 5


def test_a_worker_that_never_gets_to_greet_ends_the_experiment(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "protocol:w01:0")
    with pytest.raises(WorkerFailed, match="speaks protocol 99") as caught:
        run(tmp_path, fake_plans.plan(seeds=6))
    assert "that was the third time in a row" in str(caught.value)
    assert str(caught.value).splitlines()[-1] == f"to go on: esper-ab resume {tmp_path}"
    assert counts(events_of(tmp_path)) == {"worker_death": 3, "restart": 2}
    assert events_of(tmp_path)[-1].status == "failed"


def test_one_fault_in_every_replicate_ends_the_experiment_and_what_is_left_can_be_resumed(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, ",".join(f"raise:b/{replicate}:1" for replicate in range(6)))
    with pytest.raises(WorkerFailed, match="the planted error") as caught:
        run(tmp_path, fake_plans.plan(seeds=6))
    assert "no seed was complete before several were given up for the same reason" in str(caught.value)
    assert str(caught.value).splitlines()[-1] == f"to go on: esper-ab resume {tmp_path}"
    found = states(events_of(tmp_path))
    assert [found[f"a/{replicate}"] for replicate in range(6)] == ["lost"] * 3 + ["planned"] * 3
    monkeypatch.setenv(FAULT_VARIABLE, "")
    found = states(resume(tmp_path))
    assert [found[f"a/{replicate}"] for replicate in range(6)] == ["lost"] * 3 + ["finished"] * 3


def test_a_fault_that_comes_after_a_complete_replicate_ends_nothing(tmp_path, monkeypatch):
    faults = ",".join(f"raise:b/{replicate}:1" for replicate in range(1, 5))
    events, _ = disturbed(tmp_path, monkeypatch, faults, seeds=6)
    found = states(events)
    assert [found[f"b/{replicate}"] for replicate in range(6)] == ["finished", *["lost"] * 4, "finished"]


def test_deaths_are_told_on_stderr_with_the_end_of_the_log(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:2:1")
    run(tmp_path, fake_plans.plan(), Warnings(incidents=True))
    told = capsys.readouterr().err
    assert "warning: worker w01/1 on cpu:1 reported an error: RuntimeError: the planted error" in told
    assert f"the end of {tmp_path / 'logs' / 'w01.log'}:" in told
    assert "warning: b/0: worker w01/2 on cpu:1 was started to take up b/0 after episode 0" in told
