"""One experiment over several tasks: launched, resumed, reported, and refused by commands that take one task."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import click
import pytest
from support.commands.in_process import esper_ab, stdout_of

from esper_ab.commands._exit_status import invoke
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands.cli import TABLE, group, load_command
from esper_ab.journal.lock import Lock
from esper_ab.verdict.scale import MEAN

LAUNCH = (
    "launch",
    "--groups",
    "wait,random",
    "--seeds",
    "1",
    "--episodes",
    "1",
    "--steps",
    "4",
    "--n-envs",
    "1",
    "--placement",
    "sequence",
    "--devices",
    "cpu:0",
    "--launcher",
    "inline",
    "--eval-episodes",
    "1",
)
TAKE_ALL = {"compare", "report", "resume", "status"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    answer = stdout_of(*LAUNCH, "--task", "synthetic,digits", "--name", "both", "--json", folder=folder)
    assert json.loads(answer)["complete"]
    return folder


@pytest.fixture
def working_folder(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _result(working_folder: Path, part: str) -> str:
    return str(json.loads((working_folder / "experiments/both" / part / "verdict.json").read_bytes())["result"])


def test_a_joint_report_has_one_answer_to_its_plan_and_a_page_per_part(working_folder, capsys):
    plan = stdout_of(*LAUNCH, "--task", "synthetic,digits", "--name", "again", "--dry-run", "--json")
    planned_digest = json.loads(plan)["digest"]
    assert invoke(group, ["status", "experiments/both", "--json"], "esper-ab") == 0
    assert json.loads(capsys.readouterr().out)["plan"] == planned_digest
    assert invoke(group, ["report", "experiments/both", "--json"], "esper-ab") == 0
    answer = json.loads(capsys.readouterr().out)
    assert [comparison["task"] for comparison in answer["judged"]["comparisons"]] == ["synthetic", "digits", MEAN]
    assert [profile["group"] for profile in answer["judged"]["profiles"]] == ["wait", "random"]
    assert answer["judged"]["departures"] == []
    assert answer["plan"] == planned_digest
    for part in answer["parts"]:
        assert (working_folder / "experiments/both" / part["folder"] / "report.html").is_file()


def test_resume_trains_a_missing_part_to_the_same_records(working_folder, capsys):
    original_result = _result(working_folder, "digits")
    shutil.rmtree(working_folder / "experiments/both/digits")
    assert invoke(group, ["status", "experiments/both"], "esper-ab") == 0
    assert "digits: planned" in capsys.readouterr().out
    assert invoke(group, ["report", "experiments/both"], "esper-ab") == 0
    assert "INCOMPLETE. 2 of 4 runs" in capsys.readouterr().out
    stdout_of("resume", "experiments/both", "--launcher", "inline", "--quiet")
    assert _result(working_folder, "digits") == original_result
    assert invoke(group, ["resume", "experiments/both"], "esper-ab") == 2
    assert "every part of the experiment is finished" in capsys.readouterr().err


@pytest.mark.usefixtures("working_folder")
def test_two_processes_cannot_resume_a_joint_experiment_simultaneously(capsys):
    directory = Path("experiments/both")
    shutil.rmtree(directory / "digits")
    with closing(Lock(directory)):
        assert invoke(group, ["resume", "experiments/both"], "esper-ab") == 2
    assert "experiments/both is in use by process" in capsys.readouterr().err
    assert not (directory / "digits").exists()


def test_a_part_with_changed_settings_is_not_launched(working_folder, capsys):
    shutil.rmtree(working_folder / "experiments/both/digits")
    settings = working_folder / "experiments/both/digits.toml"
    text = settings.read_text().partition("[record]")[0]
    settings.write_text(text.replace("rng_seed = 0", "rng_seed = 1"))
    assert invoke(group, ["resume", "experiments/both", "--launcher", "inline", "--quiet"], "esper-ab") == 2
    assert "would differ from the one that was planned" in capsys.readouterr().err


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_command_for_one_experiment_refuses_a_joint_experiment(name, capsys):
    directories = [param for param in load_command(name).params if isinstance(param.type, ExperimentDirectory)]
    argument = next(iter(directories), None)
    if argument is None or name in TAKE_ALL:
        assert (argument is None) == (name not in TAKE_ALL)
        return
    more_words = {"query": ["SELECT 1"]}.get(name, [])
    flag = argument.opts[:1] if isinstance(argument, click.Option) else []
    assert invoke(group, [name, *flag, "experiments/both", *more_words], "esper-ab") == 2
    error = capsys.readouterr().err
    assert error.endswith(f"{name} takes one at a time: experiments/both/synthetic, experiments/both/digits\n")


@pytest.mark.usefixtures("working_folder")
def test_a_requirement_is_checked_against_the_mean_over_tasks(capsys):
    words = ["report", "experiments/both", "--fail-unless", "wait better-than random"]
    assert invoke(group, words, "esper-ab") == 12
    assert "every requirement needs a look with" in capsys.readouterr().err


@pytest.mark.usefixtures("working_folder")
def test_a_joint_launch_writes_no_file_if_a_part_cannot_be_planned(capsys):
    args = [*LAUNCH, "--task", "digits,gym:CartPole-v1", "--name", "new"]
    args[args.index("wait,random")] = "x=env,random"
    assert invoke(group, args, "esper-ab") == 2
    assert capsys.readouterr().err.startswith("error: digits: ")
    assert not Path("experiments/new").exists()


def test_its_own_settings_on_another_rng_seed_are_a_planned_replication(working_folder):
    again = ("experiments/both/experiment.toml", "--rng-seed", "1", "--name", "again", "--launcher", "inline")
    plan = stdout_of("launch", *again, "--dry-run", folder=working_folder)
    assert "Replicates both: when both have ended, they are also judged together, in one look at 2.5 %." in plan
    text = " ".join(stdout_of("launch", *again, folder=working_folder).split())
    sentence = (
        "Neither both nor again alone decides about wait and random, and neither do they together; pooled as planned"
    )
    assert text.index(f"Mean over tasks: {sentence}") < text.index(f"digits: {sentence}")
    answered = esper_ab("compare", "experiments/again", "experiments/both", "--json", folder=working_folder)
    assert answered.returncode == 3  # one seed answers nothing
    document = json.loads(answered.stdout)
    assert document["planned"]
    assert [item["task"] for item in document["together"]] == [MEAN, "synthetic", "digits"]
    assert [item["experiment"] for item in document["replications"]] == ["both", "again"]
