"""Which trackers have a server, and that nothing of what a user logs in with there is kept or said."""

from __future__ import annotations

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.trackers.settings import Tracking, check_tracking, server_of, without_credentials

FILES = ("", "sqlite:///here.db", "file:///home/me/mlruns", "/home/me/mlruns")


@pytest.mark.parametrize(
    ("name", "tracking", "server"),
    [
        ("tensorboard", Tracking(tensorboard=True, wandb="online", mlflow_uri="http://one:1"), ""),
        ("wandb", Tracking(wandb="offline"), ""),
        ("wandb", Tracking(wandb="online"), "api.wandb.ai"),
        ("mlflow", Tracking(mlflow=True, mlflow_uri="http://user@one:5000/path"), "http://one:5000"),
        ("mlflow", Tracking(mlflow=True, mlflow_uri="https://one"), "https://one"),
        ("mlflow", Tracking(mlflow=True, mlflow_uri="databricks://profile"), "Databricks"),
        *(("mlflow", Tracking(mlflow=True, mlflow_uri=uri), "") for uri in FILES),
    ],
)
def test_a_server_is_named_where_there_is_one(monkeypatch, name, tracking, server):
    for variable in ("MLFLOW_TRACKING_URI", "WANDB_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert server_of(name, tracking) == server


def test_a_server_is_named_without_what_the_user_logs_in_with(monkeypatch):
    monkeypatch.setenv("WANDB_BASE_URL", "https://me:s3cret@lab:8080")
    assert server_of("wandb", Tracking(wandb="online")) == "https://lab:8080"


@pytest.mark.parametrize(("uri", "says"), [
    ("http://me:s3cret@host", "MLFLOW_TRACKING_URI holds a password, .* use MLFLOW_TRACKING_USERNAME and "
     "MLFLOW_TRACKING_PASSWORD"),
    ("postgresql://me:s3cret@host/lab", "MLFLOW_TRACKING_URI holds a password, .* the database's client"),
    ("http://me:s3/cret@host", "MLFLOW_TRACKING_URI is no URI"),
    ("http://[me:s3cret@host", "MLFLOW_TRACKING_URI is no URI"),
])  # fmt: skip
def test_a_password_in_the_environment_is_refused_as_one_in_the_setting_is(monkeypatch, uri, says):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(UsageError, match=says) as refused:
        check_tracking(Tracking(mlflow=True))
    assert "cret" not in str(refused.value)
    check_tracking(Tracking(tensorboard=True))  # nothing is sent there
    check_tracking(Tracking(mlflow=True, mlflow_uri="http://host:5000"))  # nor here


@pytest.mark.parametrize(("text", "left"), [
    ("API request to http://me:s3cret@host:1/api failed", "API request to http://host:1/api failed"),
    ("('postgresql+pg8000://me:s3@cret@host/lab')", "('postgresql+pg8000://host/lab')"),
    ("https://token@host and https://me:s3cret@other?x=a@b", "https://host and https://other?x=a@b"),
    ("file:///home/me@lab/runs, mail me@lab", "file:///home/me@lab/runs, mail me@lab"),
])  # fmt: skip
def test_credentials_are_taken_out_of_a_text_and_nothing_else(text, left):
    assert without_credentials(text) == left
