"""Lines of `status` about the trackers of a run."""

import json
import os

import pytest
from support.journals.ready_journals import planted_effect, write

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.trackers.now import tracking_now, tracking_text
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.state import TrackerProgress, save_settings, take, write_progress


@pytest.fixture
def experiment_dir(tmp_path):
    experiment_dir = write(tmp_path / "my run", planted_effect())
    save_settings(experiment_dir, Tracking(wandb="offline", tensorboard=True))
    return experiment_dir


def test_status_has_a_line_for_every_tracker(experiment_dir, capsys):
    write_progress(experiment_dir, "wandb", TrackerProgress(state="done", lines=30, where="here"))
    write_progress(experiment_dir, "tensorboard", TrackerProgress(state="following", lines=12))
    lock = take(experiment_dir, "tensorboard")
    assert [state.state for state in tracking_now(experiment_dir)] == ["done", "following"]
    os.close(lock)
    assert [state.state for state in tracking_now(experiment_dir)] == ["done", "gone"]
    wandb, tensorboard = tracking_text(experiment_dir, tracking_now(experiment_dir))
    remedy = f"`esper-ab track '{experiment_dir}'` adds what is missing"
    assert wandb == "  tracker wandb: done, 30 journal lines in here"
    assert tensorboard == f"  tracker tensorboard: gone, 12 journal lines; {remedy}"
    assert invoke(group, ["status", str(experiment_dir)], "esper-ab") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [wandb, tensorboard]
    assert invoke(group, ["status", str(experiment_dir), "--json"], "esper-ab") == 0
    assert [state["tracker"] for state in json.loads(capsys.readouterr().out)["trackers"]] == ["wandb", "tensorboard"]


def test_the_failure_of_a_tracker_is_shown_in_one_line(experiment_dir):
    write_progress(experiment_dir, "wandb", TrackerProgress(state="failed", detail="nobody\nlistens"))
    wandb, _ = tracking_text(experiment_dir, tracking_now(experiment_dir))
    assert wandb.startswith("  tracker wandb: failed, 0 journal lines: nobody")
    assert "\n" not in wandb
    (experiment_dir / "tracking" / "settings.json").write_text("{")
    assert tracking_now(experiment_dir) == ()
