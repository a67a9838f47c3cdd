"""Which trackers have a server, and that nothing of what a user logs in with there is kept or said."""

import pytest

from esper_ab.trackers.settings import Tracking, server_of, without_credentials


@pytest.mark.parametrize(
    ("name", "tracking", "server"),
    [
        ("tensorboard", Tracking(tensorboard=True, wandb="online"), ""),
        ("wandb", Tracking(wandb="offline"), ""),
        ("wandb", Tracking(wandb="online"), "api.wandb.ai"),
    ],
)
def test_a_server_is_named_where_there_is_one(monkeypatch, name, tracking, server):
    monkeypatch.delenv("WANDB_BASE_URL", raising=False)
    assert server_of(name, tracking) == server


def test_a_server_is_named_without_what_the_user_logs_in_with(monkeypatch):
    monkeypatch.setenv("WANDB_BASE_URL", "https://me:s3cret@lab:8080")
    assert server_of("wandb", Tracking(wandb="online")) == "https://lab:8080"


@pytest.mark.parametrize(("text", "left"), [
    ("API request to http://me:s3cret@host:1/api failed", "API request to http://host:1/api failed"),
    ("('postgresql+pg8000://me:s3@cret@host/lab')", "('postgresql+pg8000://host/lab')"),
    ("https://token@host and https://me:s3cret@other?x=a@b", "https://host and https://other?x=a@b"),
    ("file:///home/me@lab/runs, mail me@lab", "file:///home/me@lab/runs, mail me@lab"),
])  # fmt: skip
def test_credentials_are_taken_out_of_a_text_and_nothing_else(text, left):
    assert without_credentials(text) == left
