"""Training by a user's Python file, by a command and in Gymnasium, from flags to a verdict, with faults."""

import json
import re
import sys
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab, stdout_of
from support.commands.progress_lines import without_progress
from support.workers import trainers

from esper_ab.design.calibration_file import load_calibration
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import outcomes
from esper_ab.report.build import build_report, printed

OWN_WORDS = ("accuracy", "host", "grown", "blueprint", "fossil", "points of", "reward", "greedy", "ppo")


def launch(folder: Path, name: str, *arguments: str, launcher: str = "inline") -> History:
    stdout_of(
        "launch",
        "--output-dir",
        folder / "runs",
        "--name",
        name,
        "--quiet",
        "--launcher",
        launcher,
        "--margin",
        "0.1",
        *arguments,
    )
    return load(folder / "runs" / name).history


def digests(history: History, group: str) -> list[list[str]]:
    """Return the digests of a group's records and evaluation, one list per seed."""
    runs = history.of_group(group)
    return [[*run.columns.digests, run.evaluation.digest if run.evaluation else ""] for run in runs]


@pytest.fixture(scope="module")
def own_experiment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    """Run an experiment with a Python trainer; its groups fast and twin have the same settings."""
    folder = tmp_path_factory.mktemp("own")
    return folder, launch(
        folder,
        "own",
        trainers.python_file(folder),
        "--higher",
        "score",
        "--seeds",
        "6",
        "--group",
        "slow:trainer.lr=0.1",
        "--group",
        "fast:trainer.lr=0.2",
        "--group",
        "twin:trainer.lr=0.2",
        "--control",
        "fast",
        "--episodes",
        "2",
    )


def test_the_report_of_a_python_trainer_uses_no_growth_terms(own_experiment):
    folder, history = own_experiment
    text = printed(build_report(folder / "runs/own"), "whole")
    assert "slow is worse than fast" in text
    assert "repeats to the bit; resumes exactly" in text
    assert [word for word in OWN_WORDS if re.search(rf"\b{word}", text.lower())] == ["host"]  # of the machine's name
    assert history.plan.trainer is not None
    assert [measure.label for measure in history.design.measures.measures] == ["Loss/train"]


def test_equal_settings_give_equal_records_regardless_of_other_groups(own_experiment):
    folder, history = own_experiment
    assert digests(history, "twin") == digests(history, "fast")
    second_history = launch(
        folder,
        "other",
        str(folder / "mine.py"),
        "--higher",
        "score",
        "--seeds",
        "1",
        "--episodes",
        "2",
        "--group",
        "renamed:trainer.lr=0.2",
        "--group",
        "c:trainer.lr=0.9",
        "--placement",
        "share",
    )
    assert digests(second_history, "renamed") == digests(history, "fast")[:1]
    assert digests(second_history, "c") != digests(second_history, "renamed")


def test_a_command_has_an_outcome_and_a_log_per_run(tmp_path, monkeypatch):
    command = trainers.command(tmp_path)
    monkeypatch.chdir(tmp_path)
    history = launch(tmp_path, "command", command, "--higher", "return", "--seeds", "2", "--vary", "lr=1,2")
    by_run = {name: run.outcome for name, run in outcomes(history).items()}
    differences = [by_run[f"lr=2/{replicate}"] - by_run[f"lr=1/{replicate}"] for replicate in range(2)]
    assert differences == pytest.approx([1.0, 1.0])  # the seeds are the only source of randomness
    log = (tmp_path / "runs/command/logs/lr_1-0.log").read_text()
    assert "training with 1" in log
    page = (tmp_path / "runs/command/report.html").read_text() + (tmp_path / "runs/command/summary.txt").read_text()
    for foreign_word in ("trainer:", "Learning curves", "episodes of"):  # terms of other tasks, or of learning curves
        assert foreign_word not in page + log


TWO_PROCESSES = """
import json, os, sys, torch
import torch.distributed as dist
seed, lr, out = sys.argv[1:]
dist.init_process_group("gloo")
torch.manual_seed(int(seed) + dist.get_rank())
total = torch.rand(1) * (1 + float(lr))
dist.all_reduce(total)
if dist.get_rank() == 0:
    values = {"score": total.item(), "processes": dist.get_world_size(), "gpus": os.environ["CUDA_VISIBLE_DEVICES"]}
    json.dump(values, open(os.path.join(out, "result.json"), "w"))
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_the_processes_of_a_run_train_together_on_several_devices(tmp_path, monkeypatch):
    (tmp_path / "ddp.py").write_text(TWO_PROCESSES)
    monkeypatch.chdir(tmp_path)
    history = launch(
        tmp_path,
        "ddp",
        f"{sys.executable} -m torch.distributed.run --nproc-per-node 2 --master-port {{port}} "
        "ddp.py {seed} {lr} {out}",
        *("--vary", "lr=1,2", "--higher", "score", "--seeds", "1"),
        *("--devices", "cpu:0,cpu:1,cpu:2,cpu:3", "--devices-per-run", "2"),
    )
    assert [lane.devices for lane in history.plan.lanes] == [("cpu:0", "cpu:1"), ("cpu:2", "cpu:3")]
    written = [json.loads(path.read_text()) for path in (tmp_path / "runs/ddp/runs").rglob("result.json")]
    assert [(values["processes"], values["gpus"]) for values in written] == [(2, ""), (2, "")]
    assert len({values["score"] for values in written}) == 2


LISTENS = """
import json, pathlib, socket, sys
seed, rate, port, out = sys.argv[1:]
with socket.create_server(("", int(port))):
    pathlib.Path(out, "config.json").write_text(json.dumps({"rate": rate, "port": port}))
    pathlib.Path(out, "result.json").write_text(json.dumps({"return": int(seed) % 7 + float(rate)}))
"""


def test_a_command_can_use_dotted_placeholders_and_a_free_port(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(LISTENS)
    monkeypatch.chdir(tmp_path)
    history = launch(
        tmp_path,
        "ports",
        f"{sys.executable} train.py {{seed}} {{algo.lr}} {{port}} {{out}}",
        "--higher",
        "return",
        "--seeds",
        "2",
        "--vary",
        "algo.lr=1,2",
    )
    by_run = {name: run.outcome for name, run in outcomes(history).items()}
    assert {name for name, value in by_run.items() if value is None} == set()
    configs = [json.loads(path.read_text()) for path in tmp_path.glob("runs/ports/runs/*/out/config.json")]
    assert sorted(config["rate"] for config in configs) == ["1", "1", "2", "2"]
    settings_file = tmp_path / "runs/ports/experiment.toml"
    assert "algo.lr=2" in stdout_of("launch", settings_file, "--rng-seed", "1", "--name", "again", "--dry-run")


WORKS_IN_THE_REHEARSAL_ONLY = """
import json, pathlib, sys
seed, rate, out = sys.argv[1:]
if "runs" in pathlib.Path(out).parts:
    raise RuntimeError(f"no such file: /data/{seed}.npz")
pathlib.Path(out, "result.json").write_text(json.dumps({"return": int(seed) % 7 + float(rate) * (1 + int(seed) % 3)}))
"""
BROKEN = """if "runs" in pathlib.Path(out).parts:
    raise RuntimeError(f"no such file: /data/{seed}.npz")
"""


def test_a_failed_experiment_resumes_after_its_script_is_fixed(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    script.write_text(WORKS_IN_THE_REHEARSAL_ONLY)
    monkeypatch.chdir(tmp_path)
    failed_result = esper_ab(
        "launch",
        f"{sys.executable} train.py {{seed}} {{lr}} {{out}}",
        "--higher",
        "return",
        "--vary",
        "lr=1,2",
        "--margin",
        "0.1",
        "--output-dir",
        "runs",
        "--name",
        "mended",
        "--launcher",
        "inline",
    )
    assert failed_result.returncode == 4
    # The end of one log is printed. A retry, which the other lane may begin first, has its cause in the same line.
    assert len(re.findall("^ +RuntimeError: no such file: /data/", failed_result.stderr, re.MULTILINE)) == 1
    assert "/logs/lr_" in failed_result.stderr
    script.write_text(WORKS_IN_THE_REHEARSAL_ONLY.replace(BROKEN, ""))
    stdout_of("resume", "runs/mended", "--quiet")
    history = load(tmp_path / "runs/mended").history
    by_run = outcomes(history)
    assert len(by_run) == 12
    assert all(run.evaluated for run in by_run.values())
    text = printed(build_report(tmp_path / "runs/mended"), "whole")
    assert "files were changed after the rehearsal" in " ".join(text.split())


KILLED = """
import os, pathlib
import esper_ab


class Settings(esper_ab.TrainerSettings):
    died: str = ""


def train(run):
    x, died = run.state["x"] if run.state else 0, pathlib.Path(run.settings.died)
    for point in range(run.point, run.points):
        x += run.seed("train", point)
        if point == 1 and run.folder.parent.name == "a-0" and not died.exists():
            died.touch()
            os.kill(os.getpid(), 9)
        yield run.Point({"outcome": x}, state={"x": x})


def evaluate(run, state):
    return state["x"]
"""


def test_killing_the_worker_of_a_trainer_changes_no_record(tmp_path):
    """One run's trainer kills its own process once, but not in the rehearsal, which has another folder."""
    path = tmp_path / "killed.py"
    death_file = tmp_path / "died"
    path.write_text(KILLED)
    arguments = (
        str(path),
        "--higher",
        "outcome",
        "--groups",
        "a,b",
        "--seeds",
        "1",
        "--set",
        f"trainer.died={death_file}",
    )
    killed_history = launch(tmp_path, "killed", *arguments, launcher="local")
    assert death_file.exists()
    calm = launch(tmp_path, "calm", *arguments)
    categories = [entry.category for entry in killed_history.incidents]
    assert "restart" in categories
    assert "inexact_resume" not in categories
    assert [digests(killed_history, group) for group in "ab"] == [digests(calm, group) for group in "ab"]


@pytest.mark.slow
def test_calibrate_records_the_settings_of_a_trainer(tmp_path):
    trainer = trainers.python_file(tmp_path)
    common_arguments = (
        "calibrate",
        trainer,
        "--higher",
        "score",
        "--output-dir",
        tmp_path / "runs",
        "--name",
        "x",
        "--quiet",
        "--launcher",
        "inline",
        "--runs",
        "4",
    )
    stdout_of(*common_arguments, "--episodes", "2", "--set", "trainer.lr=0.2")
    calibration = load_calibration(tmp_path / "runs" / "x")
    assert (calibration.margin_named, calibration.spread.runs, calibration.deterministic) == (False, 4, True)
    assert calibration.settings["trainer.lr"] == "0.2"


# --- Gymnasium ---

CARTPOLE = (
    "--task",
    "gym:CartPole-v1",
    "--n-envs",
    "2",
    "--steps",
    "30",
    "--eval-episodes",
    "2",
    "--devices",
    "cpu:0",
    "--placement",
    "share",
)


def test_equal_gymnasium_groups_have_equal_records_under_any_names(tmp_path):
    flags = (*CARTPOLE, "--seeds", "1", "--episodes", "2")
    whole = launch(tmp_path, "whole", *flags, "--groups", "a=env,b=env")
    assert digests(whole, "a") == digests(whole, "b")
    assert digests(launch(tmp_path, "renamed", *flags, "--groups", "random,c=env"), "c") == digests(whole, "a")
    verdict = json.loads((tmp_path / "runs" / "whole" / "verdict.json").read_text())
    assert verdict["task"] == "gym:CartPole-v1"
    assert "%" not in verdict["comparisons"][0]["sentence"]


def test_a_missing_gymnasium_package_is_reported_in_one_line(tmp_path, monkeypatch):
    (tmp_path / "gymnasium.py").write_text("raise ModuleNotFoundError('none', name='gymnasium')\n")
    monkeypatch.setenv("PYTHONPATH", ":".join([str(tmp_path), *sys.path]))
    flags = ("--groups", "env,random", "--margin", "1", "--dry-run", "--output-dir", tmp_path)
    result = esper_ab("launch", "--task", "gym:CartPole-v1", *flags)
    assert result.returncode == 2
    assert "pip install 'esper-ab[gymnasium]'" in result.stderr
    assert len(without_progress(result.stderr)) == 1


@pytest.mark.slow
def test_calibrate_suggests_a_margin_if_none_is_named(tmp_path):
    stdout_of(
        "calibrate", *CARTPOLE, "--runs", "4", "--episodes", "1", "--output-dir", tmp_path, "--name", "x", "--quiet"
    )
    calibration = load_calibration(tmp_path / "x")
    assert (calibration.mode, calibration.margin_named, calibration.spread.runs) == ("env", False, 4)
    assert calibration.deterministic
    assert calibration.margin > calibration.spread.sd / 10.0
