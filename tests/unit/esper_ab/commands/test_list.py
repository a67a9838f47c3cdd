"""list, logs and viewers of journals, for experiment directories in every state."""

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from support.journals.ready_journals import failed_run, planted_effect, write

from esper_ab.commands import logs
from esper_ab.commands.list import _table
from esper_ab.commands.logs import lines, sources
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import NotRegular
from esper_ab.control.experiment_run import extend
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME, Lock
from esper_ab.journal.tail import follow
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.live.viewer import Viewer
from esper_ab.readers.listed import Listed, list_runs
from esper_ab.verdict.verdict import Verdict


def verdict_json(a, b, verdict):
    """The part of a verdict.json that a list shows."""
    return json.dumps({"comparisons": [{"a": a, "b": b, "verdict": verdict, "warnings": []}]})


@pytest.mark.parametrize(
    "text",
    [
        verdict_json("shaped", "simplified", "BETTES"),
        verdict_json("shaped", "simplifi%d", "BETTER"),
        verdict_json("simplified", "shaped", "WORSE"),
        json.dumps({"comparisons": []}),
        json.dumps({"comparisoms": []}),
        "{",
        "[]",
    ],
)
def test_a_list_shows_no_verdict_from_a_damaged_file(tmp_path, text):
    (write(tmp_path / "finished", planted_effect()) / "verdict.json").write_text(text)
    (run,) = list_runs(tmp_path)
    assert (run.state, run.verdicts) == ("finished", ())
    assert "verdict.json is damaged" in run.problem
    assert f"esper-ab report {run.experiment_dir}" in run.problem
    assert run.problem in _table([run])


@pytest.mark.parametrize("time_text", ["0001-01-01T00:00:00.000+14:00", "9999-12-31T23:59:59.999-14:00"])
def test_a_time_outside_the_local_range_is_shown_as_recorded(tmp_path, time_text):
    assert time_text in _table([Listed(experiment_dir="x", state="stale", last_event=time_text)])


def test_a_list_shows_all_runs_newest_first(tmp_path):
    stranger = MilestoneReleased(replicate=0, milestone=0, runs=("nobody/0",))
    for name, events in (
        ("finished", planted_effect()),
        ("points/failed", failed_run()),
        ("stale", planted_effect()[:40]),
        ("damaged", planted_effect()),
        ("foreign", [*planted_effect()[:3], stranger]),
    ):
        write(tmp_path / name, events)
    (tmp_path / "finished" / "verdict.json").write_text(verdict_json("shaped", "simplified", "BETTER"))
    damaged_journal = tmp_path / "damaged" / JOURNAL_NAME
    damaged_journal.write_bytes(damaged_journal.read_bytes().replace(b"plan", b"plam", 1))
    for name in ("begun", "other", "unreadable"):
        (tmp_path / name).mkdir()
    (tmp_path / "begun" / JOURNAL_NAME).touch()
    (tmp_path / "unreadable" / JOURNAL_NAME).symlink_to(JOURNAL_NAME)

    runs = list_runs(tmp_path)
    by_name = {run.experiment_dir.rpartition("/")[2]: run for run in runs}
    assert {name: run.state for name, run in by_name.items()} == {
        "finished": "finished",
        "failed": "failed",
        "stale": "stale",
        "damaged": "damaged",
        "begun": "empty",
        "foreign": "damaged",
        "unreadable": "empty",
    }
    assert [run.last_event for run in runs] == sorted((run.last_event for run in runs), reverse=True)
    assert by_name["finished"].done == 1.0
    assert 0 < by_name["stale"].done < 0.5
    assert by_name["finished"].verdicts == ("shaped - simplified: BETTER",)
    table = _table(runs)
    assert len(table.splitlines()) == 8
    assert "shaped BETTER than simplified" in table
    assert "line 1" in table
    assert "line 4: intact, but run 'nobody/0' is not in the plan" in table


def test_a_list_shows_counts_of_verdicts_if_there_are_many():
    many_verdicts = tuple(f"x - y{i}: {'BETTER' if i < 3 else 'BLOCKED'}" for i in range(8))
    listed_experiment = Listed(experiment_dir="run", state="finished", verdicts=many_verdicts)
    assert _table([listed_experiment]).endswith("8 comparisons: 5 BLOCKED; x BETTER than 3")


@pytest.mark.parametrize(
    ("verdict", "shown_text"),
    [
        (Verdict.BETTER, "x BETTER than y"),
        (Verdict.WORSE, "x WORSE than y"),
        (Verdict.BETTER_BELOW_MARGIN, "x BETTER than y, BELOW MARGIN"),
        (Verdict.EQUIVALENT, "x EQUIVALENT to y"),
        (Verdict.INCONCLUSIVE, "x - y: INCONCLUSIVE"),
        (Verdict.NO_INFERENCE, "x - y: NO INFERENCE"),
    ],
)
def test_a_list_shows_the_groups_of_a_verdict(verdict, shown_text):
    assert _table([Listed(experiment_dir="run", state="finished", verdicts=(f"x - y: {verdict}",))]).endswith(
        shown_text
    )


def test_a_locked_experiment_is_listed_as_running(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect()[:40])
    with closing(Lock(experiment_dir)):
        assert list_runs(tmp_path)[0].state == Viewer(experiment_dir).state == "running"
    assert list_runs(tmp_path)[0].state == "stale"


def test_neither_viewers_nor_coordinators_keep_records_in_memory(tmp_path):
    """Neither a viewer nor a coordinator that takes it up: they would come to hold all of it."""
    experiment_dir = write(tmp_path / "run", planted_effect())
    histories = []

    def nothing_more(history):
        histories.append(history)
        raise UsageError("it is complete")

    with pytest.raises(UsageError, match="it is complete"):
        extend(experiment_dir, nothing_more, None, ())
    for history in (Viewer(experiment_dir).history, *histories):
        assert {len(run.columns) for run in history.runs.values()} == {8}
        assert {len(run.episodes) for run in history.runs.values()} == {0}


def test_a_viewer_follows_a_continued_experiment(tmp_path):
    """Interrupted, continued by another process, extended: nothing of it is an end as long as somebody is at work."""
    experiment_dir = write(tmp_path / "run", failed_run())
    assert Viewer(experiment_dir).state == "failed"
    journal, _ = Journal.take_up(experiment_dir, list, wall_clock=lambda: datetime.now(UTC) + timedelta(days=1))
    viewer = Viewer(experiment_dir)
    journal.append(next(event for event in planted_effect() if type(event).__name__ == "WorkerStarted"))
    journal.write()
    viewer.catch_up()
    assert viewer.state == "running"
    batches = viewer.batches(poll_s=0.0)
    journal.append(planted_effect()[-1])
    journal.write()
    for event in next(batches):
        viewer.history.add(event)
    assert viewer.state == "finished"
    assert next(batches, None) is None
    journal.close()


def test_the_logs_command_shows_one_log_or_all_logs(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect())
    viewer = Viewer(experiment_dir)
    (experiment_dir / "logs").mkdir(exist_ok=True)
    sources(experiment_dir, viewer.history)["shaped/1"].write_bytes(b"one\ntwo \xff\nunfinished")
    (experiment_dir / "logs" / "w00.log").write_text("between runs\n")
    (experiment_dir / CONSOLE_NAME).write_text("on the console\n")
    lines_of_run = [("shaped/1", line) for line in ("one", "two \N{REPLACEMENT CHARACTER}", "unfinished")]
    assert list(lines(experiment_dir, viewer, "shaped/1")) == lines_of_run
    assert list(lines(experiment_dir, viewer)) == [
        *lines_of_run,
        ("w00", "between runs"),
        ("console", "on the console"),
    ]


def test_the_logs_command_shows_the_end_of_a_long_log(tmp_path, monkeypatch, capsys):
    """It may be sparse, and longer than the memory."""
    monkeypatch.setattr(logs, "_END_BYTES", 1 << 20)
    experiment_dir = write(tmp_path / "run", planted_effect())
    viewer = Viewer(experiment_dir)
    with (experiment_dir / CONSOLE_NAME).open("wb") as file:
        file.write(b"the start\n")
        file.truncate(64 << 30)
        file.seek(64 << 30)
        file.write(b"\nthe end\n")
    (_, long_line), last_entry = lines(experiment_dir, viewer, "console")
    assert long_line == "\0" * 65536 + "…"
    assert last_entry == ("console", "the end")
    assert capsys.readouterr().err == f"{experiment_dir / CONSOLE_NAME}: only the last 1 of 65536 MiB are shown\n"


@pytest.mark.parametrize("linked_path", ["console.log", "logs/w00.log", "logs"])
def test_the_logs_command_refuses_symbolic_links(tmp_path, linked_path):
    """An experiment directory may come from somebody else."""
    experiment_dir = write(tmp_path / "run", planted_effect())
    (tmp_path / "outside").mkdir()
    secret = tmp_path / "outside" / "w00.log"
    secret.write_text("secret\n")
    link = experiment_dir / linked_path
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(secret if link.suffix else secret.parent)
    with pytest.raises(NotRegular):
        list(lines(experiment_dir, Viewer(experiment_dir)))


def test_the_list_of_a_folder_without_experiments_is_empty(tmp_path):
    assert list_runs(tmp_path) == []
    with pytest.raises(UsageError, match="no journal"):
        follow(tmp_path / JOURNAL_NAME)
