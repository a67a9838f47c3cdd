"""The script for sbatch: its output file, its flags, and the command that resumes."""

import shlex
import subprocess

import pytest
from click.testing import CliRunner

from esper_ab.commands import launch, resume
from esper_ab.commands.slurm_script import command
from esper_ab.contracts.errors import UsageError

ALLOTTED = ("--nodes", "1", "--cores", "1", "--name", "lab")
ONE = ("--groups", "shaped,sparse")
GRID = (*ONE, "--grid", "ppo.gamma=0.9,0.99")
TASKS = (*ONE, "--task", "synthetic,digits")

VERDICT = "shaped better-than sparse"
# Of every flag that `launch` and `resume` share: a value that `launch` takes under Slurm; None: it refuses the flag.
SHARED = {
    "--fail-unless": (VERDICT, "sparse not-worse-than shaped"),
    "--launcher": None,
    "--transport": None,
    "--quiet": None,
    "--json": None,
    "--ray-address": None,
    "--ray-label": None,
    "--ray-wait": None,
}
REFUSED = {"--ray-address": "auto", "--ray-label": "kind=box", "--ray-wait": "3"}  # by the launcher, with a value


def invoked(*flags):
    return CliRunner().invoke(command, [*ALLOTTED, *flags])


def printed(*flags):
    result = invoked(*flags)
    assert result.exit_code == 0, result.output
    return result.output


def refusal(*flags):
    result = invoked(*flags)
    assert isinstance(result.exception, UsageError), result.output
    return str(result.exception)


def words_of(script, name):
    """The words of the line of `script` that carries out the command `name`."""
    lines = [shlex.split(line) for line in script.splitlines() if line.strip().startswith("exec ")]
    return next(words for words in lines if name in words)


def begins_with(script, folder):
    """The command that the script becomes: launch or resume, shown in the place of being carried out."""
    echo_script = script.replace("exec ", "exec echo ")
    process = subprocess.run(["bash", "-c", echo_script], cwd=folder, capture_output=True, text=True, check=True)
    assert process.stderr == ""
    return next(word for word in process.stdout.split() if word in ("launch", "resume"))


@pytest.mark.parametrize("flags", [ONE, GRID, TASKS])
@pytest.mark.parametrize(
    ("files", "command_name"),
    [
        ({}, "launch"),
        ({"events.jsonl": ""}, "launch"),
        ({"events.jsonl": '{"n":0,'}, "launch"),
        ({"events.jsonl": '{"n":0}\n'}, "resume"),
        ({"joint.json": "{}\n"}, "resume"),
    ],
)
def test_the_slurm_script_resumes_a_recorded_experiment(tmp_path, monkeypatch, flags, files, command_name):
    monkeypatch.chdir(tmp_path)
    script = printed(*flags)
    for name, text in files.items():
        path = tmp_path / "experiments" / "lab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert begins_with(script, tmp_path) == command_name


def test_a_slurm_job_writes_its_output_into_an_existing_folder(tmp_path, monkeypatch):
    folder = tmp_path / "100 % of it"
    folder.mkdir()
    monkeypatch.chdir(folder)
    output = next(line for line in printed(*ONE).splitlines() if "--output=" in line)
    path = shlex.split(output.partition("--output=")[2])[0].replace("%%", "%")
    assert path == f"{folder}/lab.slurm.txt"
    assert not list(folder.iterdir()), "printing a script makes nothing"


def test_the_list_of_flags_shared_by_launch_and_resume_is_complete():
    launch_flags, resume_flags = (
        {flag for param in module.command.params for flag in param.opts} for module in (launch, resume)
    )
    assert launch_flags & resume_flags - {"--seeds", "--dry-run"} == set(
        SHARED
    )  # those two are of `resume` alone in this sense


@pytest.mark.parametrize("asked_flags", [ONE, GRID, TASKS])
@pytest.mark.parametrize(("flag", "values"), SHARED.items())
def test_a_resumed_job_has_every_shared_flag_of_its_launch(flag, values, asked_flags):
    if values is None:
        assert flag.removeprefix("--") in refusal(*asked_flags, flag, *([REFUSED[flag]] if flag in REFUSED else []))
        return
    script = printed(*asked_flags, *(word for value in values for word in (flag, value)))
    for name in ("launch", "resume"):
        words = words_of(script, name)
        assert [words[place + 1] for place, word in enumerate(words) if word == flag] == list(values), name


def test_the_resume_command_of_the_script_omits_flags_stored_in_the_plan():
    assert not {"--seeds", "--groups"} & set(words_of(printed(*ONE, "--seeds", "8"), "resume"))


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--fail-unless", "shaped better-than nope"), "no group 'nope'"),
        (
            ("--control", "shaped", "--group", "fast:ppo.lr=1e-3", "--fail-unless", "sparse worse-than fast"),
            "not compared",
        ),
        (("--track", "paper"), "no such tracker"),
        (("--calibration", "nope.json"), "nope.json"),
        ((*GRID[2:], "--fail-unless", "shaped better-than nope"), "no group 'nope'"),
    ],
)
def test_a_slurm_script_with_flags_refused_by_launch_is_refused(flags, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complaint in refusal(*ONE, *flags)


def test_a_file_with_settings_of_another_launcher_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.toml").write_text('[launcher]\nname = "ray"\nray_address = "auto"\n')
    assert "launcher slurm does not support" in refusal("lab.toml")
