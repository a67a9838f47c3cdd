"""A name that is taken: the refusal says what is in the directory and how to go on with it."""

from pathlib import Path

from support.journals import ready_journals

from esper_ab.api.spelling import in_python
from esper_ab.campaign.taken_directory import taken
from esper_ab.journal.lock import Lock

ANOTHER = "choose another --name or --output-dir"


def test_a_folder_without_an_experiment_is_only_named(tmp_path: Path) -> None:
    assert str(taken(tmp_path)) == f"{tmp_path} exists already; choose another with --name or --output-dir"


def test_a_finished_experiment_is_read(tmp_path: Path) -> None:
    ready_journals.write(tmp_path, ready_journals.planted_effect())
    begin = f"{tmp_path} exists already, and its experiment is finished: "
    assert str(taken(tmp_path)) == (f"{begin}`esper-ab report {tmp_path}` shows its answer; for a new one, {ANOTHER}")
    assert taken(tmp_path).spelled(in_python()) == (
        f"{begin}load_experiment({str(tmp_path)!r}) has its answer; for a new one, choose another name or output_dir"
    )


def test_an_unfinished_experiment_is_resumed(tmp_path: Path) -> None:
    ready_journals.write(tmp_path, ready_journals.planted_effect()[:-1])
    assert str(taken(tmp_path)) == (
        f"{tmp_path} exists already, and its experiment is not finished: `esper-ab resume {tmp_path}` continues it; "
        f"for a new one, {ANOTHER}"
    )


def test_a_running_experiment_is_watched(tmp_path: Path) -> None:
    ready_journals.write(tmp_path, ready_journals.planted_effect()[:-1])
    lock = Lock(tmp_path)
    refusal = str(taken(tmp_path))
    lock.close()
    assert f"its experiment is running: `esper-ab status {tmp_path}` shows how far it is" in refusal


def test_a_damaged_journal_is_left_to_report(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("damaged\n")
    assert f"`esper-ab report {tmp_path}`" in str(taken(tmp_path))
