"""tidy removes only unneeded checkpoints and temporary files, and follows no symbolic link."""

import json
import os
from contextlib import closing

import pytest
from support.commands.in_process import esper_ab
from support.journals.kept_experiments import finished_experiment, synthetic
from support.journals.ready_journals import planted_effect, write

from esper_ab.commands._check import examine
from esper_ab.commands._exit_status import invoke
from esper_ab.commands._removable import removable, remove
from esper_ab.commands.cli import group
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated
from esper_ab.journal.load import load
from esper_ab.journal.lock import Lock
from esper_ab.kept_runs.keeping import keep_runs

KEPT = (
    "events.jsonl",
    "events.jsonl.torn-3",
    "experiment.toml",
    "summary.txt",
    "verdict.json",
    "report.html",
    "policies/shaped/0.pt",
    "logs/shaped-0.log",
    ".gitignore",
    ".notes.txt.swp",
    "checkpoints/thesis.tex",
    "checkpoints/shaped/0/notes.pt",
    "checkpoints/shaped/0/more/1.pt",
    "policies/.git.index.1-2",
)
REMOVED = (
    "checkpoints/shaped/0/7.pt",
    "checkpoints/shaped/0/.8.pt.11-12",
    ".report.html.x1y2",
    "policies/shaped/.0.pt.1-2",
    "tracking/.wandb.json.k3j_x2a1",
)


def fill(folder, *names):
    for path in (folder / name for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("x" * 10)
            os.utime(path, (0, 0))  # nobody is at work on it
    return folder


def finished(folder, *names):
    """An experiment directory with these files."""
    return fill(write(folder, planted_effect()), *names)


def files(experiment_dir):
    return {str(path.relative_to(experiment_dir)) for path in experiment_dir.rglob("*") if path.is_file()}


def removable_in(experiment_dir):
    return removable(experiment_dir, load(experiment_dir).history)


def tidy(*words):
    return invoke(group, ["tidy", *map(str, words)], "esper-ab")


def test_tidy_keeps_journal_policies_and_reports_of_a_finished_run(tmp_path):
    experiment_dir = finished(tmp_path / "run", *KEPT, *REMOVED, "console.log")
    (experiment_dir / ".summary.txt.abcdefgh").write_text("being written by a report now")
    journal = (experiment_dir / "events.jsonl").read_bytes()
    assert removable_in(experiment_dir).size_bytes == 10 * 6
    assert tidy(experiment_dir, "--check") == 5, "its policies and settings are made up"
    assert files(experiment_dir) >= {*KEPT, *REMOVED, "console.log"}, "looking removes nothing"
    assert tidy(experiment_dir) == 0
    assert files(experiment_dir) == {*KEPT, ".lock", ".summary.txt.abcdefgh"}
    assert (experiment_dir / "events.jsonl").read_bytes() == journal
    assert removable_in(experiment_dir).files == ()


def test_tidy_removes_empty_folders_of_checkpoints(tmp_path):
    experiment_dir = finished(tmp_path / "run", "checkpoints/shaped/0/7.pt")
    assert tidy(experiment_dir) == 0
    assert not (experiment_dir / "checkpoints").exists()


def test_tidy_keeps_the_checkpoints_that_resume_needs(tmp_path):
    events = planted_effect()
    index = next(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))
    first_events = events[: index + 1]  # one run of the first pair is evaluated, the other one is not
    finished_run = first_events[-1].record.run.name
    (open_run,) = {event.record.run.name for event in first_events if isinstance(event, EpisodeRecorded)} - {
        finished_run
    }
    experiment_dir = write(tmp_path / "run", first_events)
    fill(
        experiment_dir,
        f"checkpoints/{finished_run}/8.pt",
        f"checkpoints/{open_run}/8.pt",
        f"checkpoints/{open_run}/7.pt",
        f"checkpoints/{open_run}/.9.pt.3-4",
        "console.log",
    )
    assert "esper-ab resume" in removable_in(experiment_dir).kept
    assert tidy(experiment_dir) == 0
    assert files(experiment_dir) - {".lock", "events.jsonl", "experiment.toml"} == {
        f"checkpoints/{open_run}/8.pt",
        f"checkpoints/{open_run}/7.pt",
        "console.log",
    }


def test_tidy_removes_no_file_if_one_of_the_experiments_is_running(tmp_path, capsys):
    other_experiment, experiment_dir = (finished(tmp_path / name, "checkpoints/a/0/1.pt") for name in ("other", "run"))
    removable_files = removable_in(experiment_dir)
    with closing(Lock(experiment_dir)):
        for options in ((), ("--repair",)):
            assert tidy(other_experiment, experiment_dir, *options) == 2
            assert f"in use by process {os.getpid()} on " in capsys.readouterr().err
        with pytest.raises(UsageError, match="in use by process"):
            remove(experiment_dir, removable_files)
    for folder in (other_experiment, experiment_dir):
        assert "checkpoints/a/0/1.pt" in files(folder)


def test_tidy_refuses_a_folder_without_a_journal(tmp_path, capsys):
    fill(tmp_path, ".important.file")
    for options in ((), ("--check",), ("--repair",)):
        assert tidy(tmp_path, *options) == 2
        assert "no journal" in capsys.readouterr().err
    assert files(tmp_path) == {".important.file"}


def test_a_repair_truncates_a_damaged_journal_before_removing_files(tmp_path, capsys):
    experiment_dir = finished(tmp_path / "run", *REMOVED, "console.log")
    journal = experiment_dir / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join((*lines[:-1], lines[-1].replace(b"finished", b"finishes"))))
    assert tidy(experiment_dir) == 5
    assert f"`esper-ab tidy {experiment_dir} --check` shows what can be recovered" in capsys.readouterr().err
    assert files(experiment_dir) >= set(REMOVED)
    assert tidy(experiment_dir, "--repair", "--json") == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert document["cut"].startswith(f"cut {len(lines[-1])} bytes off the journal after line {len(lines) - 1}; ")
    assert set(document["removed"]) == set(REMOVED)
    assert files(experiment_dir) >= {f"events.jsonl.torn-{len(lines) - 1}", "console.log"}


def test_a_check_of_several_directories_exits_with_the_worst_status(tmp_path, capsys):
    sound_experiment, damaged_experiment = (finished(tmp_path / name) for name in ("well", "ill"))
    (damaged_experiment / "events.jsonl").write_bytes(
        (damaged_experiment / "events.jsonl").read_bytes().replace(b"finished", b"finishes", 1)
    )
    assert tidy(sound_experiment, damaged_experiment, "--check") == 5
    parts = capsys.readouterr().out.split("\n\n")
    assert [part.partition(": ")[0] for part in parts] == [str(sound_experiment), str(damaged_experiment)]
    assert tidy(sound_experiment, "--check", "--repair") == 2


@pytest.mark.parametrize(
    "link",
    ["checkpoints/link", "checkpoints/shaped", "checkpoints/shaped/0", "policies", "policies/shaped", "tracking"],
)
def test_tidy_does_not_follow_links_out_of_the_experiment_directory(tmp_path, link):
    """Whatever stands behind them, called as our own files are."""
    outside_folder = fill(
        tmp_path / "elsewhere", "7.pt", "shaped/7.pt", "0/7.pt", "shaped/0/7.pt", ".7.pt.1-2", ".a.json.b"
    )
    files_before = files(outside_folder)
    experiment_dir = finished(tmp_path / "run")
    (experiment_dir / link).parent.mkdir(parents=True, exist_ok=True)
    (experiment_dir / link).symlink_to(outside_folder)
    assert examine(experiment_dir).removable == ()
    assert tidy(experiment_dir) == 0
    assert files(outside_folder) == files_before
    assert (experiment_dir / link).is_symlink()


def test_tidy_keeps_checkpoints_behind_a_symbolic_link(tmp_path, capsys):
    outside_folder = fill(tmp_path / "elsewhere", "shaped/0/7.pt", "shaped/0/.7.pt.1-2", "thesis.tex")
    experiment_dir = finished(tmp_path / "run", "console.log")
    (experiment_dir / "checkpoints").symlink_to(outside_folder)
    assert tidy(experiment_dir) == 0
    output = capsys.readouterr().out
    assert output.endswith(
        f": 1 file, 0.0 MB removed; {experiment_dir}/checkpoints is a symbolic link and was skipped; "
        f"clear {outside_folder} yourself, or remove the link\n"
    )
    assert files(outside_folder) == {"shaped/0/7.pt", "shaped/0/.7.pt.1-2", "thesis.tex"}


def test_policies_of_kept_runs_that_were_not_reused_are_removed(tmp_path):
    write(tmp_path / "done", planted_effect())
    unused = tmp_path / "done" / "reused" / "shaped" / "1.pt"
    unused.parent.mkdir(parents=True)
    unused.write_bytes(b"weights")
    assert esper_ab("tidy", str(tmp_path / "done")).returncode == 0
    assert not unused.exists()


def test_a_folder_of_kept_runs_is_checked_and_trimmed(tmp_path):
    keep_runs(finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic()))
    damaged = next((tmp_path / "kept").glob("*/*.run"))
    damaged.write_bytes(b"")
    checked = esper_ab("tidy", "--check", "--references", str(tmp_path / "kept"))
    assert checked.returncode == 5
    assert f"damaged: {damaged.relative_to(tmp_path / 'kept')}" in checked.stdout
    assert damaged.exists()
    tidied = esper_ab("tidy", "--references", str(tmp_path / "kept"), "--references-limit", "1kB", "--json")
    (contents,) = json.loads(tidied.stdout)
    assert (contents["runs"], len(contents["removed"])) == (0, 12)
    assert list((tmp_path / "kept").glob("*/*.run")) == []
