"""What tools write beside outcomes, by the names that they give it."""

import pytest

from esper_ab.readers.not_outcomes import is_log_or_description, may_have_outcomes

WANDB_RUN = "offline-run-20260101_000000-d4k2q9h1"


@pytest.mark.parametrize(
    "name",
    [
        "debug.log",  # W&B, Hydra
        "slurm-17.out",
        "requirements.txt",
        "wandb-metadata.json",
        "hparams.yaml",  # Lightning
        "params.json",  # Ray Tune
        "config.json",  # transformers, Spinning Up
        "command.txt",  # RL Zoo
        "settings",  # W&B
        "README.md",
        "train.py",
    ],
)
def test_logs_and_descriptions_are_known_by_their_names(name):
    assert is_log_or_description(name)


@pytest.mark.parametrize(
    "name",
    ["results.csv", "params.csv", "result.json", "metrics.jsonl", "progress.txt", "events.out.tfevents.1.host", "plan"],
)
def test_files_that_may_be_outcomes_are_not_taken_for_logs(name):
    assert not is_log_or_description(name)


@pytest.mark.parametrize(
    ("folder", "names", "kept"),
    [
        (WANDB_RUN, ["files", "logs", "run-d4k2q9h1.wandb", "run-d4k2q9h1.wandb.synced"], ["run-d4k2q9h1.wandb"]),
        ("wandb", ["debug.log", WANDB_RUN, "settings", "sweep-1"], [WANDB_RUN]),
        ("wandb", ["chart.csv"], ["chart.csv"]),
        ("4c1d", ["artifacts", "meta.yaml", "metrics", "params", "tags"], ["artifacts", "meta.yaml", "metrics"]),
        ("runs", ["params", "tags"], ["params", "tags"]),
    ],
    ids=["a run of W&B", "the folder of W&B", "tables in a folder of this name", "a run of MLflow", "no run of MLflow"],
)
def test_what_a_tool_keeps_for_itself_is_left_out(folder, names, kept):
    assert may_have_outcomes(folder, names) == kept
