"""A worker that dies, hangs or sends invalid messages is restarted from its run's last checkpoint.

The handling of deaths that a restart cannot fix is tested in tests/unit/esper_ab/control/rules.
"""

import multiprocessing
import os

from support.coordinators.disturbed import (
    Watcher,
    conclusions,
    counts,
    events_of_kind,
    incidents,
    records,
    resume_points,
    run,
)
from support.plans import fake_plans
from support.workers.fake_worker import FAULT_VARIABLE

from esper_ab.control.rules.limits import Limits
from esper_ab.journal.events import RunStarted, WorkerStarted
from esper_ab.launchers.local import LocalLauncher
from esper_ab.live.on_stderr import Warnings


def test_restarts_at_every_milestone_do_not_change_records(tmp_path, monkeypatch, capsys):
    undisturbed = run(tmp_path / "undisturbed", fake_plans.plan(episodes=3))
    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:0:1,leave:b/0:1:2,garbage:b/0:2:3,nan:b/0:3:4,raise:b/0:4:5")
    events = run(tmp_path / "run", fake_plans.plan(episodes=3), Warnings(incidents=True))
    assert records(events) == records(undisturbed)
    assert conclusions(events) == conclusions(undisturbed)
    deaths = incidents(events, "worker_death")
    assert {death.run_name for death in deaths} == {"b/0"}
    assert [death.episode for death in deaths] == [None, 0, 1, 2, None]
    for number, (death, words) in enumerate(
        zip(
            deaths,
            (
                "reported an error: RuntimeError: the planted error, in warm-up of run b/0",
                "ended with exit status",
                "keeps sending invalid messages",
                "not finite",
                "in evaluation of run b/0 (last sign: evaluate, step 1)",
            ),
            strict=True,
        ),
        1,
    ):
        assert words in death.detail
        assert f"worker w01/{number} on cpu:1" in death.detail
    assert [restart.detail.partition(" was started to ")[2] for restart in incidents(events, "restart")] == [
        "begin b/0 again",
        "begin b/0 again",
        *(f"continue b/0 after episode {episode}" for episode in range(3)),
    ]
    assert resume_points(events) == {"a/0": [0], "b/0": [0, 0, 1, 2, 3]}
    assert [event.worker for event in events_of_kind(WorkerStarted, events)][2:] == ["w01"] * 5
    assert len(events_of_kind(RunStarted, events)) == 2
    output = capsys.readouterr().err
    assert "warning: worker w01/1 on cpu:1 reported an error: RuntimeError: the planted error" in output
    assert f"the end of {tmp_path / 'run' / 'logs' / 'w01.log'}:" in output
    assert "warning: b/0: worker w01/3 on cpu:1 was started to begin b/0 again" in output


def test_a_killed_or_hung_worker_process_is_restarted(tmp_path, monkeypatch):
    undisturbed = run(tmp_path / "undisturbed", fake_plans.plan(seeds=2))
    monkeypatch.setenv(FAULT_VARIABLE, "die:b/0:0:1,hang:a/0:2:1,die:b/0:2:2,die:a/1:0:2,die:b/1:3:3")
    watcher = Watcher()
    launcher = LocalLauncher("support.workers.fake_worker:main")
    limits = Limits(floor_s=1.0, start_up_s=60.0)
    events = run(tmp_path / "run", fake_plans.plan(seeds=2), watcher, launcher=launcher, limits=limits)
    assert records(events) == records(undisturbed)
    assert counts(events) == {"worker_death": 4, "hung_worker": 1, "restart": 5}
    assert all("was killed by SIGKILL" in death.detail for death in incidents(events, "worker_death"))
    (notice,) = [text for text in events_of_kind(str, watcher.events) if "gave no sign of life" in text]
    assert "in _hang" in notice
    assert len({os.getpid(), *(event.pid for event in events_of_kind(WorkerStarted, events))}) == 1 + 2 + 5
    assert multiprocessing.active_children() == []
