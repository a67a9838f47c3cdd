"""Reports as files of an experiment directory: the same journal gives the same bytes."""

import re

import matplotlib as mpl
from support.journals.ready_journals import planted_effect, write

from esper_ab.contracts.answer_files import PAGE, SUMMARY, VERDICT
from esper_ab.journal.lock import JOURNAL_NAME, Lock
from esper_ab.report.build import build_report, printed


def test_the_report_on_an_abandoned_experiment_calls_it_stale(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect()[:40])
    text = " ".join(build_report(experiment_dir).text.split())
    assert "INCOMPLETE (stale). Its coordinator died before the end; " in text
    assert f"`esper-ab resume {experiment_dir}` continues it: " in text
    lock = Lock(experiment_dir)
    try:
        assert "INCOMPLETE (in progress)." in build_report(experiment_dir).text
    finally:
        lock.close()


def test_the_same_journal_gives_the_same_report_bytes(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect())
    first_report = build_report(experiment_dir)
    bytes_before = [(first_report.experiment_dir / name).read_bytes() for name in (SUMMARY, VERDICT, PAGE)]
    with (experiment_dir / JOURNAL_NAME).open("ab") as journal:
        journal.write(b'{"n":999,"prev":"')  # a torn tail is not an event
    with mpl.rc_context({"lines.markeredgewidth": 5, "xtick.direction": "in"}):  # a user's matplotlibrc
        second_report = build_report(experiment_dir)
    assert [(second_report.experiment_dir / name).read_bytes() for name in (SUMMARY, VERDICT, PAGE)] == bytes_before
    assert sorted(path.name for path in experiment_dir.iterdir()) == [
        JOURNAL_NAME,
        "report.html",
        "summary.txt",
        "verdict.json",
    ]
    assert printed(second_report, "text") == second_report.text.rstrip()
    assert printed(second_report, "whole").endswith(printed(second_report, "brief"))
    assert f"{experiment_dir}/experiment.toml" in second_report.text  # a command can be pasted anywhere
    assert second_report.text.endswith(f"The rest: esper-ab report {experiment_dir} --verbose\n")
    assert not re.search(rb"20\d\d-\d\d-\d\d", bytes_before[2])
