import os
from pathlib import Path

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers import source_files
from esper_ab.readers.source_files import find_files

TABLE = "group,seed,outcome\na,0,1\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "runs/deep").mkdir(parents=True)
    (tmp_path / "runs/b.csv").write_text(TABLE)
    (tmp_path / "runs/deep/a.csv").write_text(TABLE)
    return tmp_path / "runs"


def found(*paths):
    files, notes = find_files(paths)
    return [file.path.name for file in files], notes


def test_a_file_named_twice_is_read_once(folder):
    assert found(folder, folder / "b.csv") == (["b.csv", "a.csv"], ())


def test_unknown_and_hidden_files_and_links_in_folders_are_left_out(folder):
    (folder / "notes.md").write_text("# Runs\n")
    (folder / ".hidden.csv").write_text(TABLE)
    (folder / "link.csv").symlink_to(folder / "b.csv")
    (folder / "up").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")
    names, notes = found(folder)
    assert names == ["b.csv", "a.csv"]
    assert notes == (
        "Not read, because they are logs or descriptions, or their formats are unknown: 1 file, such as "
        f"{folder / 'notes.md'}.",
    )


def test_a_file_that_a_link_names_too_is_read_once(folder):
    """W&B's latest-run is a link to the folder of a run."""
    (folder / "latest").symlink_to(folder / "deep")
    assert found(folder / "deep/a.csv", folder / "latest/a.csv", folder / "latest") == (["a.csv"], ())


def test_logs_with_commas_are_no_tables_unless_the_user_names_them(folder):
    log = folder / "debug.log"
    log.write_text("10:00:00,5 INFO start\n10:00:01,7 INFO end\n")
    names, notes = found(folder)
    assert names == ["b.csv", "a.csv"]
    assert str(log) in notes[0]
    assert found(log)[0] == ["debug.log"]


def test_the_folder_of_wandb_is_known_when_it_is_the_working_directory(folder, monkeypatch):
    wandb = folder / "wandb"
    (wandb / "run-20260101_000000-x1").mkdir(parents=True)
    (wandb / "settings.csv").write_text(TABLE)
    (wandb / "run-20260101_000000-x1/a.csv").write_text(TABLE)
    monkeypatch.chdir(wandb)
    assert found(Path()) == (["a.csv"], ())


def test_the_refusal_of_an_unknown_file_format_shows_an_example(folder):
    (folder / "notes.md").write_text("# Runs\n")
    with pytest.raises(
        UsageError, match=r"has an unknown format; judge reads .* header group,seed,outcome .* new,0,71.25$"
    ):
        found(folder / "notes.md", folder / "b.csv")


def test_settings_beside_the_results_of_a_run_are_no_table(folder):
    (folder / "config.toml").write_text("# seeds = 1,2\nlr = 0.1\n")
    files, notes = found(folder)
    assert files == ["b.csv", "a.csv"]
    assert "1 file, such as" in notes[0]


def test_folders_without_a_known_file_are_refused(tmp_path):
    with pytest.raises(UsageError, match="no files; judge reads"):
        found(tmp_path)
    (tmp_path / "notes.md").write_text("# Runs\n")
    with pytest.raises(
        UsageError, match=r"none of 1 file has a known format .*notes\.md, are read only if you name them"
    ):
        found(tmp_path)


def test_folders_with_too_many_files_or_levels_are_refused(folder, monkeypatch):
    monkeypatch.setattr(source_files, "_MOST_FILES", 2)
    with pytest.raises(UsageError, match="more than 2 files"):
        found(folder)
    monkeypatch.undo()
    (folder / "/".join("x" * 13)).mkdir(parents=True)
    with pytest.raises(UsageError, match="more than 12 folders within each other"):
        found(folder)


def test_judge_refuses_an_experiment_directory(folder):
    (folder / "events.jsonl").write_text("")
    with pytest.raises(UsageError, match="is an experiment directory"):
        found(folder)


def test_the_parent_folder_of_experiments_is_refused_with_the_commands_for_them(folder):
    (folder / "deep/events.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"experiment directories.*name one, as in `esper-ab judge .*deep`") as error:
        found(folder)
    assert f"`esper-ab list {folder}`" in str(error.value)
    assert "`esper-ab compare EXPERIMENT EXPERIMENT`" in str(error.value)
