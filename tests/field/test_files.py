"""Files that other libraries wrote (scripts/field_files.py, versions in files/versions.txt), as users get them."""

from pathlib import Path

import numpy as np
import pytest

from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import SourceTable, series_of

FILES = Path(__file__).parent / "files"
SAMPLES = "lm_eval/samples_{}_2026-01-01T00-00-00.000000.jsonl"
RESULTS = "lm_eval/results_2026-01-01T00-00-00.000000.json"
EVENTS = "events.out.tfevents.1700000000.host.1.0"
INSPECT = "inspect/2026-01-01T00-00-00-00-00_adding_{0}.{0}"


def table_of(name: str, *, items: bool = False) -> SourceTable:
    (table,) = read_file(FILES / name, items=items)
    return table


# File, its format in words, the outcome, the values of it, the steps.
RUNS = [
    ("sb3/ppo-seed3/evaluations.npz", "an SB3 evaluations.npz", "results", [49.75, 131.5], [512, 1024]),
    ("sb3/ppo-seed3/progress.csv", "an SB3 progress.csv", "eval/mean_reward", [49.75, 131.5], [512, 1024]),
    (
        "rl_zoo3/a2c/CartPole-v1_1/evaluations.npz",
        "an SB3 evaluations.npz",
        "results",
        [102.667, 63.333, 85.0, 71.667],
        [300, 600, 900, 1200],
    ),
    ("wandb/run-large-seed3.wandb", "a W&B run file", "eval/return", [3, 13, 23, 33, 43], [0, 1, 2, 3, 4]),
    ("wandb/run-large-seed4.wandb", "a W&B run file", "loss", [0.5], [5]),  # after a record of two blocks
]


@pytest.mark.parametrize(("name", "words", "outcome", "values", "steps"), RUNS, ids=[run[0] for run in RUNS])
def test_the_values_of_a_run_are_read_with_their_steps(name, words, outcome, values, steps):
    table = table_of(name)
    series = series_of(table, outcome)
    assert table.format == words
    assert outcome in table.outcomes
    assert series.values.tolist() == pytest.approx(values, abs=1e-3)
    assert series.steps.tolist() == steps


def test_an_event_file_has_every_scalar_with_its_steps():
    table = table_of(f"tensorboard/CartPole-v1__large__1/{EVENTS}")
    returns = series_of(table, "charts/episodic_return")
    assert table.format == "a TensorBoard event file"
    assert table.outcomes == ("charts/episodic_return", "losses/value_loss")
    assert returns.steps.tolist() == [0, 50, 100, 150, 200, 200, 250, 300, 350, 400, 450]  # two episodes at once
    assert returns.values[-1] == pytest.approx(80.33, abs=0.01)
    losses = series_of(table, "losses/value_loss")  # a tensor, in the newer style
    assert losses.values.tolist() == pytest.approx([1 / (1 + step) for step in range(0, 500, 50)])


def test_an_sb3_monitor_file_is_averaged_over_100_episodes():
    table = table_of("sb3/ppo-seed3/monitor.csv")
    assert (table.format, table.window, table.better) == ("an SB3 monitor.csv", 100, "higher")
    series = series_of(table, "r")
    assert len(series.values) == 42
    assert series.steps[-1] == 1020
    for number in (0, 1):
        assert len(series_of(table_of(f"rl_zoo3/a2c/CartPole-v1_1/{number}.monitor.csv"), "r").values) > 10


def test_episodes_of_an_sb3_evaluation_are_read_as_repeats():
    table = table_of("sb3/ppo-seed3/evaluations.npz", items=True)
    assert table.roles == {"step": "timesteps", "repeat": "episode"}
    assert np.mean(table.columns["results"][4:]) == 131.5


@pytest.mark.parametrize(("seed", "state"), [(3, "finished"), (4, "crashed")])
def test_a_wandb_run_is_read_with_its_group_seed_and_state(seed, state):
    table = table_of(f"wandb/run-large-seed{seed}.wandb")
    cells = {role: table.column(role)[0] for role in ("run", "group", "seed", "state")}
    assert cells == {"run": f"large-seed{seed}", "group": "large", "seed": seed, "state": state}
    assert {table.columns["lr"][0], table.columns["model.width"][0]} == {0.1, 64}
    assert table.notes == ()


def test_an_lm_eval_samples_file_has_a_row_per_document():
    table = table_of(SAMPLES.format("choosing"))
    assert table.format == "a samples file of lm-evaluation-harness"
    assert table.roles == {"task": "task", "item": "doc_id"}
    assert (table.outcomes, table.better) == (("acc", "acc_norm"), "higher")
    assert (list(table.columns["acc"]), set(table.columns["task"])) == ([1.0, 0.0, 0.0, 0.0], {"choosing"})


def test_an_lm_eval_metric_has_a_column_per_filter():
    table = table_of(SAMPLES.format("adding"))
    assert table.outcomes == ("exact_match,strict-match", "exact_match,flexible-extract")
    assert list(table.columns["doc_id"]) == [0, 1, 2, 3]
    (note,) = table.notes
    assert note == "Each document was scored after several filters; exact_match,strict-match is the first."


def test_an_lm_eval_results_file_has_a_row_per_task():
    table = table_of(RESULTS)
    assert table.format == "a results file of lm-evaluation-harness"
    assert list(table.columns["task"]) == ["adding", "choosing"]
    assert list(table.columns["acc,none"]) == [None, 0.25]


@pytest.mark.parametrize(("version", "tasks"), [("0.3.2", None), ("0.6.1", ["toy/0"] * 4 + ["toy/1"] * 4)])
def test_lerobot_episodes_are_read_as_items_of_tasks(version, tasks):
    table = table_of(f"lerobot/eval_info_{version}.json")
    assert table.format == "an eval_info.json of LeRobot"
    assert table.column("task") == tasks
    assert list(table.column("item"))[:4] == [0, 1, 2, 3]
    assert list(table.columns["success"])[:4] == [True, False, True, False]
    assert table.outcomes == ("success", "sum_reward", "max_reward")


@pytest.mark.parametrize(("kind", "samples", "grades"), [("eval", 3, [1, 1, 1, 0, 0, 0]), ("json", 1, [1, 0])])
def test_an_inspect_log_is_read_with_its_samples_and_epochs(kind, samples, grades):
    table = table_of(INSPECT.format(kind))
    assert table.format == "an Inspect log"
    assert table.roles == {"group": "model", "task": "task", "item": "id", "repeat": "epoch"}
    assert (table.outcomes, table.better) == (("match", "includes"), "higher")
    assert [len({*table.columns["id"]}), len({*table.columns["epoch"]})] == [samples, 2]
    assert len(table.columns["match"]) == len(grades)
    assert set(table.columns["model"]) == {"mockllm/model"}


def test_every_data_frame_format_gives_the_same_rows():
    names = (
        "pandas.parquet",
        "polars.parquet",
        "records.json",
        "columns.json",
        "split.json",
        "table.json",
        "lines.jsonl",
    )
    for name in names:
        table = table_of(f"frames/{name}")
        assert list(table.columns["group"]) == ["small"] * 6 + ["large"] * 6
        assert list(table.columns["seed"]) == [*range(6)] * 2
        outcomes = series_of(table, "outcome")
        assert len(outcomes.values) == 11  # one run has none
        assert outcomes.values[-1] == pytest.approx(outcomes.values.max())


@pytest.mark.parametrize("name", ["rliable.npz", "rliable.json"])
def test_arrays_by_group_are_read_as_runs_and_tasks(name):
    table = table_of(f"frames/{name}")
    assert table.roles == {"group": "group", "run": "run", "task": "task"}
    assert [len({*table.columns[role]}) for role in ("group", "run", "task")] == [2, 6, 3]
    assert len(table.columns["score"]) == 36
    (note,) = table.notes
    assert note.startswith("Runs are not paired")


def test_a_single_array_is_read_as_the_runs_of_one_group():
    table = table_of("frames/large.npy")
    assert table.roles == {"run": "run", "task": "task"}
    scores_table = table_of("frames/rliable.npz")
    assert list(table.columns["score"]) == [
        score
        for group, score in zip(scores_table.columns["group"], scores_table.columns["score"], strict=True)
        if group == "large"
    ]


def test_every_sample_folder_has_a_recorded_version():
    versions = (FILES / "versions.txt").read_text(encoding="utf-8").splitlines()
    assert {line.partition(":")[0] for line in versions} == {path.name for path in FILES.iterdir() if path.is_dir()}
