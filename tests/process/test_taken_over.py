"""A launch that was killed before anything was recorded is given again, and trains."""

from support.in_process import done, esper_ab

from esper_ab.journal.file import JOURNAL_NAME, Journal
from esper_ab.journal.load import load

FLAGS = ("--task", "synthetic", "--groups", "wait,random", "--episodes", "1", "--steps", "2",
         "--seeds", "1", "--eval-episodes", "1", "--devices", "cpu:0,cpu:1", "--launcher", "inline", "--quiet",
         "--name", "lab")  # fmt: skip


def test_the_same_launch_takes_the_directory_and_trains(tmp_path):
    left = tmp_path / "experiments" / "lab"
    left.mkdir(parents=True)
    Journal(left).close()
    (left / JOURNAL_NAME).write_bytes(b'{"n":0,')
    (left / "experiment.toml").write_text("of the one that was killed")
    assert esper_ab("resume", left).returncode == 2
    done("launch", *FLAGS, folder=tmp_path)
    assert load(left).history.finished
    again = esper_ab("launch", *FLAGS, folder=tmp_path)
    assert again.returncode == 2
    assert "exists already" in again.stderr
