"""Which trackers have a server: only of those it is asked whether it can be reached."""

from __future__ import annotations

import pytest

from esper_ab.trackers.settings import Tracking, server_of

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
