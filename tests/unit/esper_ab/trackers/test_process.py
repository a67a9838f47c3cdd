"""What a tracker's process leaves of a failure: a line, and nothing of what the user logs in with."""

import pytest

from esper_ab.trackers.process import _Work
from esper_ab.trackers.state import FOLDER, read_progress


def written(experiment_dir):
    """All that is in files of the directory."""
    return b"".join(path.read_bytes() for path in experiment_dir.rglob("*") if path.is_file())


@pytest.mark.parametrize("long", [0, 480, 600])
def test_a_library_that_says_the_address_says_no_password(tmp_path, capfd, long):
    (tmp_path / FOLDER).mkdir()
    why = f"CommError: {'x' * long} API request to http://me:s3cret@127.0.0.1:9/api failed"
    assert _Work(tmp_path, "wandb", "now").fail(why) == 1
    said = capfd.readouterr().err
    assert said.startswith("error: wandb: CommError: ")
    assert read_progress(tmp_path, "wandb").detail == said.removeprefix("error: wandb: ").rstrip("\n")
    assert b"s3cret" not in written(tmp_path) + said.encode()
    assert b"me:" not in written(tmp_path)
