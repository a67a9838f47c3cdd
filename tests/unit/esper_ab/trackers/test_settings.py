"""Servers of trackers; credentials are neither stored nor printed."""

import pytest

from esper_ab.trackers.process import _Work
from esper_ab.trackers.settings import Tracking, server_of, without_credentials
from esper_ab.trackers.state import FOLDER, read_progress


@pytest.mark.parametrize(
    ("name", "tracking", "base", "server"),
    [
        ("tensorboard", Tracking(tensorboard=True, wandb="online"), "", ""),
        ("wandb", Tracking(wandb="offline"), "", ""),
        ("wandb", Tracking(wandb="online"), "", "api.wandb.ai"),
        ("wandb", Tracking(wandb="online"), "https://me:s3cret@lab:8080", "https://lab:8080"),
    ],
)
def test_only_an_online_tracker_has_a_server(monkeypatch, name, tracking, base, server):
    monkeypatch.setenv("WANDB_BASE_URL", base)
    assert server_of(name, tracking) == server


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("API request to http://me:s3cret@host:1/api failed", "API request to http://host:1/api failed"),
        ("('postgresql+pg8000://me:s3@cret@host/lab')", "('postgresql+pg8000://host/lab')"),
        ("https://token@host and https://me:s3cret@other?x=a@b", "https://host and https://other?x=a@b"),
        ("file:///home/me@lab/runs, mail me@lab", "file:///home/me@lab/runs, mail me@lab"),
    ],
)
def test_only_credentials_are_removed_from_an_error_text(text, expected):
    assert without_credentials(text) == expected


@pytest.mark.parametrize("padding_size", [0, 480, 600])
def test_an_error_of_a_tracker_library_is_reported_without_the_password(tmp_path, capfd, padding_size):
    (tmp_path / FOLDER).mkdir()
    reason = f"CommError: {'x' * padding_size} API request to http://me:s3cret@127.0.0.1:9/api failed"
    assert _Work(tmp_path, "wandb", "now").fail(reason) == 1
    printed_text = capfd.readouterr().err
    assert printed_text.startswith("error: wandb: CommError: ")
    assert read_progress(tmp_path, "wandb").detail == printed_text.removeprefix("error: wandb: ").rstrip("\n")
    written_bytes = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"s3cret" not in written_bytes + printed_text.encode()
    assert b"me:" not in written_bytes
