"""Trackers that are run over a journal and waited for."""

import psutil
import pytest

from esper_ab.trackers.beside import fill


def test_if_one_tracker_cannot_be_started_none_is_left_running(tmp_path):
    (tmp_path / "logs" / "tracker-tensorboard.log").mkdir(parents=True)  # where its log would be
    before = psutil.Process().children()
    with pytest.raises(OSError, match=r"tracker-tensorboard\.log"):
        fill(tmp_path, ("wandb", "tensorboard"), live=True)
    assert psutil.Process().children() == before
