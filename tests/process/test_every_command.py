"""Rules for every command of `esper-ab`, including new ones.

Help has examples that work, `--json` prints only JSON, errors are one line (or an object), pipes get plain lines.

Commands run in this process with captured descriptors, so the output of their children counts as well.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from support.commands.command_lines import check_command_line, examples_of, leaves
from support.commands.in_process import esper_ab
from support.outcomes.csv_outcomes import csv_text, rows, scales
from support.processes.waiting import time_limit
from support.streams.made_ledgers import new_ledger, tried

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.readers.external_plan import make_external_plan, save_plan
from esper_ab.verdict.analysis_plan import Rule

pytestmark = pytest.mark.usefixtures("warm_children")
NAMES = sorted(leaves())
NOT_DATA = {"slurm-script", "cite", "figure", "stream try"}  # a script, LaTeX, a picture; always JSON
CODES = re.compile(r"\x1b")
_TINY = (
    "--groups",
    "wait,random",
    "--task",
    "synthetic",
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
)
COLOURFUL = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "60"}
# A cheap call of every command that exits with 0. EXPERIMENT is a finished experiment directory, COPY a copy of it.
CALLS: dict[str, tuple[str, ...]] = {
    "calibrate": ("--mode", "wait", "--runs", "4", "--task", "synthetic", "--dry-run"),
    "cite": ("EXPERIMENT",),
    "compare": ("EXPERIMENT", "COPY"),
    "design": ("--groups", "a,b", "--seeds", "6", "--margin", "1", "--dry-run"),
    "doctor": (),
    "evaluate": ("EXPERIMENT/policies/wait/0.pt",),
    "export": ("EXPERIMENT", "--out", "exported", "--force"),
    "figure": ("EXPERIMENT", "outcomes", "--out", "outcomes.svg"),
    "gate": ("nothing.toml",),
    "growth fetch": ("digits",),
    "growth heuristic": ("--task", "synthetic", "--steps", "3", "--n-envs", "1"),
    "growth rewards": (
        "sparse",
        "--task",
        "synthetic",
        "--schedules",
        "2",
        "--hosts",
        "1",
        "--search",
        "0",
        "--steps",
        "3",
    ),
    "init": ("made.toml", "--force"),
    "judge": ("held.json", "results.csv"),
    "launch": (*_TINY, "--dry-run"),
    "list": ("experiments",),
    "logs": ("EXPERIMENT",),
    "power": ("--sd-run", "3", "--margin", "2", "--rho", "0.3", "--seeds", "6"),
    "query": ("EXPERIMENT", "SELECT count(*) AS n FROM runs"),
    "report": ("EXPERIMENT",),
    "resume": ("EXPERIMENT",),
    "slurm-script": ("--nodes", "2", "--cores", "4", "--name", "lab", "--groups", "shaped,sparse"),
    "status": ("EXPERIMENT",),
    "stop": ("EXPERIMENT",),
    "stream new": ("agent", "nothing.toml"),
    "stream status": ("agent", "--check"),
    "stream try": ("agent", "--code", "."),
    "tidy": ("EXPERIMENT", "--check"),
    "track": ("COPY", "--tensorboard"),
}
# A finished run cannot be resumed, which is an error, and so is a gate or a stream from no file, or of a lost folder.
# The runs here are too few for a verdict.
STATUSES = {"resume": 2, "judge": 3, "compare": 3, "gate": 2, "stream new": 2, "stream try": 2}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with two finished experiments and the files that the calls and examples name."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in COLOURFUL.items():
            patch.setenv(name, value)
        result = esper_ab("launch", *_TINY, "--launcher", "inline", "--name", "one", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    assert not CODES.search(result.stdout + result.stderr)  # the live view, too
    assert "wait/0: done" in result.stderr
    assert json.loads(result.stdout)["comparisons"]
    shutil.copytree(folder / "experiments" / "one", folder / "experiments" / "two")
    for name in ("made.toml", "experiment.py", "experiment.toml"):
        assert invoke(group, ["init", str(folder / name)], "esper-ab") == 0
    save_plan(make_external_plan(("new", "old"), ("0",), scales(), Rule()), folder / "held.json")
    (folder / "results.csv").write_text(csv_text(rows([1.0], [2.0])))
    tried(new_ledger(folder / "agent"), [-1.0, 4.0])
    return folder


@pytest.fixture
def working_folder(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder the working directory and request colours by the environment."""
    monkeypatch.chdir(finished)
    for name, value in COLOURFUL.items():
        monkeypatch.setenv(name, value)
    return finished


def arguments(name: str) -> list[str]:
    words = {"EXPERIMENT": "experiments/one", "COPY": "experiments/two"}
    return [re.sub("|".join(words), lambda match: words[match[0]], arg) for arg in CALLS[name]]


@pytest.fixture
def off_path(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`esper-ab` is not on PATH, and this process was started as `my python -m esper_ab`."""
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr("sys.orig_argv", ["my python", "-m", "esper_ab"])
    monkeypatch.setattr("sys.argv", ["esper_ab/__main__.py"])


def test_every_command_has_an_example_call():
    assert set(leaves()) == set(CALLS), "a new command needs a cheap call in CALLS"


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_the_help_use_existing_options(name, capsys):
    assert invoke(group, [*name.split(), "--help"], "esper-ab") == 0
    assert "Examples:" in capsys.readouterr().out
    examples = examples_of(leaves()[name].epilog)
    assert any(re.search(rf"\besper-ab {name}\b", line) for line in examples)
    for line in examples:
        assert check_command_line(line)


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_fits_the_width_of_the_terminal(name):
    command = leaves()[name]
    wide_text, narrow = (
        command.get_help(command.make_context(name, [], resilient_parsing=True, terminal_width=width))
        for width in (80, 40)
    )
    assert not CODES.search(wide_text + narrow)
    assert [line for line in wide_text.splitlines() if len(line) > 80] == []
    assert not re.search(r"^  [A-Z|.\[\]]+$", wide_text, re.MULTILINE)  # a word without an explanation
    options = narrow.partition("Options:")[2].partition("Examples:")[0]
    longest_word = max((len(word) for word in options.split()), default=0)
    assert all(len(line) <= max(40, longest_word + 40) for line in options.splitlines())


def test_examples_of_the_top_level_help_can_be_parsed():
    for line in examples_of(group.epilog):
        assert check_command_line(line)


DRY = sorted(
    line
    for name in NAMES
    for line in examples_of(leaves()[name].epilog)
    if "--dry-run" in line and "experiments/" not in line
)


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("line", DRY)
def test_the_dry_run_examples_of_the_help_can_be_run(line, capfd):
    """The examples' `experiment.py` and `experiment.toml` are what `init` writes."""
    assert invoke(group, shlex.split(line)[1:], "esper-ab") == 0
    assert capfd.readouterr().out


def test_the_help_of_launch_is_short(capsys):
    assert invoke(group, ["launch", "--help"], "esper-ab") == 0
    text = capsys.readouterr().out.partition("Examples:")[0]
    assert len(re.findall(r"^  (?:--[a-z-]+|-h)", text, re.MULTILINE)) == 23
    assert len(re.findall(r"^[A-Z].*:$", text, re.MULTILINE)) == 3


def test_help_all_lists_every_option_of_launch_under_a_heading(capsys):
    """The common options come first; only the help flags may be under "More"."""
    assert invoke(group, ["launch", "--help-all"], "esper-ab") == 0
    text = capsys.readouterr().out
    listed = re.findall(r"^  (?:-v, )?(--[a-z-]+|-h)", text, re.MULTILINE)
    declared = {param.opts[-1] for param in leaves()["launch"].params if isinstance(param, click.Option)}
    assert set(listed) == declared | {"-h"}
    assert len(listed) == len(set(listed))
    first = text.split("What is trained:")[0].split("What most experiments need:")[1]
    assert len(re.findall(r"^  --", first, re.MULTILINE)) == 13
    more = "  --help-all  Show every flag and exit.\n  -h, --help  Show this message and exit.\n"
    assert re.findall(r"^More:\n((?:  .*\n)+)", text, re.MULTILINE) == [more]


@pytest.mark.parametrize("name", NAMES)
def test_an_error_is_printed_as_one_line_or_one_json_object(name, capfd):
    has_json = any("--json" in option.opts for option in leaves()[name].params)
    assert has_json == (name not in NOT_DATA)
    json_flags = ["--json"] if has_json else []
    assert invoke(group, [*name.split(), *json_flags, "--no-such-option"], "esper-ab") == 2
    output, error = capfd.readouterr()
    assert error.count("\n") == 1
    assert error.startswith("error: ")
    assert not CODES.search(output + error)
    if has_json:
        assert json.loads(output)["exit_status"] == 2
    else:
        assert output == ""


@pytest.mark.parametrize("flags", [("--json",), ("--format", "json"), ("--format=json",), ("--format", "md")])
def test_every_spelling_of_the_json_option_prints_errors_as_objects(capsys, flags):
    assert invoke(group, ["report", "nowhere", *flags], "esper-ab") == 2
    output = capsys.readouterr().out
    assert (json.loads(output)["exit_status"] == 2) if "md" not in flags else output == ""


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        *((name, []) for name in NAMES),
        *((name, ["--json"]) for name in NAMES if name not in NOT_DATA),
    ],
)
def test_output_into_a_pipe_is_plain_text_or_pure_json(name, flags, capfd):
    """`--json` prints one value, or one per line where the output is a stream."""
    status = invoke(group, [*name.split(), *arguments(name), *flags], "esper-ab")
    output, error = capfd.readouterr()
    assert status == STATUSES.get(name, 0), error
    assert not CODES.search(output + error)
    assert "\r" not in output + error
    if flags:
        assert all(json.loads(text) for text in (output.splitlines() if name == "logs" else [output]))


@pytest.mark.parametrize("replaced_files", ["journal", "all but the journal"])
@pytest.mark.parametrize("name", [*(name for name in NAMES if "EXPERIMENT" in " ".join(CALLS[name])), "list", "launch"])
def test_no_command_hangs_on_a_named_pipe_in_an_experiment_directory(
    working_folder, tmp_path, monkeypatch, capfd, name, replaced_files
):
    """Each command ends, with an answer or with an error that names the file."""
    shutil.copytree(working_folder / "experiments", tmp_path / "experiments", ignore=shutil.ignore_patterns(".lock"))
    (tmp_path / "experiments" / "one" / "console.log").touch()
    for path in [path for path in (tmp_path / "experiments" / "one").rglob("*") if path.is_file()]:
        if (path.name == "events.jsonl") == (replaced_files == "journal"):
            path.unlink()
            os.mkfifo(path)
    monkeypatch.chdir(tmp_path)
    settings = ("experiments/one/experiment.toml", "--dry-run", "--name", "x")
    with time_limit(60):
        status = invoke(group, [*name.split(), *(settings if name == "launch" else arguments(name))], "esper-ab")
    output = "".join(capfd.readouterr())
    assert (status in (0, 2, 3, 5), output.count("error: ") <= 1) == (True, True), output
    assert status in (0, 3) or re.search(r"experiments/one|is not a regular file", output), output


@pytest.mark.usefixtures("working_folder")
def test_status_follow_with_json_prints_one_object_per_line(capfd):
    assert invoke(group, ["status", "-f", "experiments/one", "--json"], "esper-ab") == 0
    assert [json.loads(line)["state"] for line in capfd.readouterr().out.splitlines()] == ["finished"]


UNTYPEABLE = re.compile(r"(?<![\w./-])esper-ab (?=[a-z\[-])")


@pytest.mark.usefixtures("off_path")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["help", "call", "error"])
def test_printed_commands_work_if_esper_ab_is_not_on_the_path(name, kind, capfd):
    """Help, errors and output spell the full command; stored files have the short name."""
    more_words = {"help": ["--help"], "call": arguments(name), "error": ["--no-such-option"]}[kind]
    status = {"help": 0, "error": 2}.get(kind, STATUSES.get(name, 0))
    assert invoke(group, [*name.split(), *more_words], "esper-ab") == status
    output, error = capfd.readouterr()
    assert not UNTYPEABLE.search(output + error)
    if kind != "call" or name in ("init", "resume", "report"):
        assert "'my python' -m esper_ab " in output + error
    stored = Path("experiments/one/summary.txt").read_text() + Path("experiments/one/report.html").read_text()
    assert "my python" not in stored
    assert UNTYPEABLE.search(stored)
