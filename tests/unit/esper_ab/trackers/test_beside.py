"""Tracker processes beside a run: starting all of them or none."""

import psutil
import pytest

from esper_ab.trackers.beside import fill


def test_no_tracker_keeps_running_if_one_tracker_fails_to_start(tmp_path):
    (tmp_path / "logs" / "tracker-tensorboard.log").mkdir(parents=True)  # where its log would be
    children = psutil.Process().children()
    with pytest.raises(OSError, match=r"tracker-tensorboard\.log"):
        fill(tmp_path, ("wandb", "tensorboard"), live=True)
    assert psutil.Process().children() == children
