"""gc: what it may take from an experiment directory, and what it may not."""

from __future__ import annotations

import os

import pytest
from support.journals import planted_effect, write

from esper_ab.commands.fsck import examine, repair
from esper_ab.commands.gc import removable, remove
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated
from esper_ab.journal.lock import Lock

KEPT = (
    "events.jsonl", "events.jsonl.torn-3", "experiment.toml", "summary.txt", "verdict.json", "report.html",
    "policies/shaped/0.pt", "logs/shaped-0.log", ".gitignore", ".notes.txt.swp", "checkpoints/thesis.tex",
    "checkpoints/shaped/0/notes.pt", "checkpoints/shaped/0/more/1.pt", "policies/.git.index.1-2",
)  # fmt: skip
GONE = ("checkpoints/shaped/0/7.pt", "checkpoints/shaped/0/.8.pt.11-12", ".report.html.x1y2",
        "policies/shaped/.0.pt.1-2", "tracking/.wandb.json.k3j_x2a1")  # fmt: skip


def fill(experiment_dir, *names):
    for name in names:
        (experiment_dir / name).parent.mkdir(parents=True, exist_ok=True)
        if not (experiment_dir / name).exists():
            (experiment_dir / name).write_text("x" * 10)
            os.utime(experiment_dir / name, (0, 0))  # nobody is at work on it
    return experiment_dir


def files(experiment_dir):
    return {str(path.relative_to(experiment_dir)) for path in experiment_dir.rglob("*") if path.is_file()}


def test_of_a_finished_run_journal_policies_and_reports_stay(tmp_path):
    experiment_dir = fill(write(tmp_path / "run", planted_effect()), *KEPT, *GONE, "console.log")
    journal = (experiment_dir / "events.jsonl").read_bytes()
    found = removable(experiment_dir)
    assert found.size_bytes == 10 * 6
    assert files(experiment_dir) >= {*KEPT, *GONE, "console.log"}, "looking removes nothing"
    remove(found)
    assert files(experiment_dir) == {*KEPT, ".lock"}
    assert (experiment_dir / "events.jsonl").read_bytes() == journal
    assert removable(experiment_dir).files == ()


def test_folders_of_checkpoints_that_are_empty_then_go_too(tmp_path):
    experiment_dir = fill(write(tmp_path / "run", planted_effect()), "checkpoints/shaped/0/7.pt")
    remove(removable(experiment_dir))
    assert not (experiment_dir / "checkpoints").exists()


def test_of_an_unfinished_run_what_resume_needs_stays(tmp_path):
    events = planted_effect()
    at = next(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))
    cut = events[: at + 1]  # one run of the first pair is evaluated, the other one is not
    done = cut[-1].record.run.name
    (open_run,) = {event.record.run.name for event in cut if isinstance(event, EpisodeRecorded)} - {done}
    experiment_dir = write(tmp_path / "run", cut)
    fill(experiment_dir, f"checkpoints/{done}/8.pt", f"checkpoints/{open_run}/8.pt", f"checkpoints/{open_run}/7.pt",
         f"checkpoints/{open_run}/.9.pt.3-4", "console.log")  # fmt: skip
    found = removable(experiment_dir)
    assert "esper-ab resume" in found.kept
    remove(found)
    assert files(experiment_dir) - {".lock", "events.jsonl", "experiment.toml"} == {
        f"checkpoints/{open_run}/8.pt", f"checkpoints/{open_run}/7.pt", "console.log",
    }


def test_a_run_in_progress_is_refused(tmp_path):
    experiment_dir = fill(write(tmp_path / "run", planted_effect()), "checkpoints/a/0/1.pt")
    found = removable(experiment_dir)
    lock = Lock(experiment_dir)
    for act in (lambda: removable(experiment_dir), lambda: remove(found)):
        with pytest.raises(UsageError, match=f"in use by process {os.getpid()} on "):
            act()
    lock.close()
    assert "checkpoints/a/0/1.pt" in files(experiment_dir)


def test_what_is_no_experiment_directory_is_refused(tmp_path):
    fill(tmp_path, ".important.file")
    with pytest.raises(UsageError, match="no journal"):
        removable(tmp_path)


@pytest.mark.parametrize("link", ["checkpoints/link", "checkpoints/shaped", "checkpoints/shaped/0", "policies",
                                  "policies/shaped", "tracking"])  # fmt: skip
def test_links_are_never_followed_out_of_the_experiment_directory(tmp_path, link):
    """Whatever stands behind them, called as our own files are."""
    elsewhere = fill(tmp_path / "elsewhere", "7.pt", "shaped/7.pt", "0/7.pt", "shaped/0/7.pt", ".7.pt.1-2", ".a.json.b")
    before = files(elsewhere)
    experiment_dir = write(tmp_path / "run", planted_effect())
    (experiment_dir / link).parent.mkdir(parents=True, exist_ok=True)
    (experiment_dir / link).symlink_to(elsewhere)
    assert examine(experiment_dir).leftovers == ()
    remove(removable(experiment_dir))
    assert files(elsewhere) == before
    assert (experiment_dir / link).is_symlink()


def test_checkpoints_that_are_kept_elsewhere_are_refused(tmp_path):
    elsewhere = fill(tmp_path / "elsewhere", "shaped/0/7.pt", "shaped/0/.7.pt.1-2", "thesis.tex")
    experiment_dir = write(tmp_path / "run", planted_effect())
    (experiment_dir / "checkpoints").symlink_to(elsewhere)
    with pytest.raises(UsageError, match=r"checkpoints is a symbolic link.*; nothing was removed: clear .*elsewhere"):
        removable(experiment_dir)
    assert repair(experiment_dir).done == ()
    assert files(elsewhere) == {"shaped/0/7.pt", "shaped/0/.7.pt.1-2", "thesis.tex"}
