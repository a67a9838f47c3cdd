"""The folder of kept runs under several processes at once, and under processes that are killed."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from support.journals.kept_experiments import finished_experiment, synthetic

from esper_ab.contracts.errors import UsageError
from esper_ab.kept_runs.entry import DamagedRun, decode, encode
from esper_ab.kept_runs.folder import (
    LARGEST_BYTES,
    abandoned_drafts,
    evict,
    find_runs,
    locked,
    make_folder_of_runs,
    read_run,
    stored_files,
    write_run,
)
from esper_ab.kept_runs.keeping import keep_runs
from esper_ab.kept_runs.tidying import check_folder, tidy_folder

KEEP = """
import sys
from pathlib import Path
from esper_ab.kept_runs.keeping import keep_runs

print("ready", flush=True)
sys.stdin.readline()
keep_runs(Path(sys.argv[1]))
"""


@pytest.fixture
def experiment(tmp_path):
    return finished_experiment(tmp_path / "one", tmp_path / "kept", synthetic())


def some_run(folder):
    return read_run(stored_files(folder)[0].path)


@contextmanager
def keeping(experiment, code=KEEP):
    """A process that keeps the runs of an experiment once a line is written to it."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, experiment], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def begin(process):
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_processes_keep_the_same_runs_at_once(experiment, tmp_path):
    with keeping(experiment) as one, keeping(experiment) as other:
        begin(one)
        begin(other)
        assert [one.wait(60), other.wait(60)] == [0, 0]
    contents = check_folder(tmp_path / "kept")
    assert (contents.runs, contents.damaged, contents.experiments) == (12, (), {"synthetic": 12})


STOP = """
import pathlib, time

def stop(*_):
    print("stopped", flush=True)
    time.sleep(600)

replace = pathlib.Path.replace
pathlib.Path.replace = lambda path, target: stop() if target.suffix == ".run" else replace(path, target)
"""


def test_a_writer_that_is_killed_before_the_rename_leaves_the_folder_as_it_was(experiment, tmp_path):
    with keeping(experiment, STOP + KEEP) as process:
        begin(process)
        assert process.stdout.readline() == "stopped\n"
    (draft,) = [path for path in (tmp_path / "kept").glob("*/.*")]
    assert stored_files(tmp_path / "kept") == []
    assert abandoned_drafts(tmp_path / "kept") == []
    assert keep_runs(experiment) == 12
    os.utime(draft, (0, 0))
    assert tidy_folder(tmp_path / "kept", None).removed == (str(draft.relative_to(tmp_path / "kept")),)
    assert check_folder(tmp_path / "kept").runs == 12


def test_runs_that_are_removed_while_they_are_read_are_read_or_passed_over(experiment, tmp_path):
    folder = tmp_path / "kept"
    keep_runs(experiment)
    keys = [some_run(folder)[0].key] + [read_run(file.path)[0].key for file in stored_files(folder)]

    def read_all(_):
        found = [run for key in keys for run in find_runs(folder, key)]
        assert all(run.key in keys for run, _ in found)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read_all, n) for n in range(8)]
        for limit in range(40_000, -1, -4_000):
            evict(folder, limit)
        for reader in readers:
            reader.result()
    assert stored_files(folder) == []


def test_only_one_process_removes_files_at_a_time(experiment, tmp_path):
    keep_runs(experiment)
    with ThreadPoolExecutor(1) as pool:
        with locked(tmp_path / "kept"):
            removal = pool.submit(evict, tmp_path / "kept", 0)
            assert len(stored_files(tmp_path / "kept")) == 12
            assert not removal.done()
        removal.result(60)
    assert stored_files(tmp_path / "kept") == []


def test_reading_a_run_counts_as_its_use(experiment, tmp_path):
    keep_runs(experiment)
    files = stored_files(tmp_path / "kept")
    for file in files:
        os.utime(file.path, (1e9, 1e9))
    run, _ = read_run(files[0].path)
    begin_s = time.time()
    assert [found.key for found, _ in find_runs(tmp_path / "kept", run.key)] == [run.key]
    used = stored_files(tmp_path / "kept")[-1]
    assert used.path == files[0].path
    assert used.used_at >= begin_s - 1.0


def test_a_run_that_is_too_large_is_not_written(experiment, tmp_path):
    keep_runs(experiment)
    run, _ = some_run(tmp_path / "kept")
    assert not write_run(tmp_path / "other", run, bytes(LARGEST_BYTES))
    assert not (tmp_path / "other").exists()


def test_every_changed_byte_is_noticed(experiment, tmp_path):
    keep_runs(experiment)
    data = encode(*some_run(tmp_path / "kept"))
    assert decode(data)[0] == some_run(tmp_path / "kept")[0]
    for place in range(0, len(data), 97):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(DamagedRun):
            decode(bytes(changed))
    with pytest.raises(DamagedRun):
        decode(data[:-1])


@pytest.mark.parametrize("names", [(), ("mine.png",), (".gitignore", "events.jsonl")])
def test_a_folder_without_runs_is_refused_and_not_written_to(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match="there are no kept runs in it"):
        tidy_folder(tmp_path, 0)
    assert {path.name for path in tmp_path.iterdir()} == set(names)


def test_a_folder_whose_runs_were_removed_is_tidy(experiment, tmp_path):
    keep_runs(experiment)
    assert len(tidy_folder(tmp_path / "kept", 0).removed) == 12
    assert (check_folder(tmp_path / "kept").runs, tidy_folder(tmp_path / "kept", 0).removed) == (0, ())


def test_git_ignores_a_folder_that_has_kept_runs_alone(experiment, tmp_path):
    keep_runs(experiment)
    assert (tmp_path / "kept" / ".gitignore").read_text(encoding="utf-8").endswith("\n*\n")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "mine.png").touch()
    make_folder_of_runs(tmp_path / "photos")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["mine.png"]
