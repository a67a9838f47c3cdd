"""Judging, planning and reporting work without Linux-only system calls, as on macOS."""

import json
import os

import pytest
from support.journals.ready_journals import write
from support.journals.synthetic import Synthetic
from support.outcomes.csv_outcomes import csv_text, drawn, rows, scales
from support.processes.children import python

from esper_ab.contracts.errors import UsageError
from esper_ab.control.preflight import check_launcher
from esper_ab.launchers.local import LocalLauncher
from esper_ab.readers.external_plan import make_external_plan, save_plan
from esper_ab.verdict.analysis_plan import Rule

SCRIPT = (
    "import fcntl, json, os, select, signal, sys\n"
    "for module, names in ((os, ('sched_getaffinity', 'pidfd_open', 'fdatasync', 'eventfd')), (select, ('epoll',)),\n"
    "                      (signal, ('pidfd_send_signal',)),\n"
    "                      (fcntl, [name for name in vars(fcntl) if 'OFD' in name])):\n"
    "    for name in names:\n"
    "        delattr(module, name)\n"
    "from esper_ab.commands._exit_status import invoke\n"
    "from esper_ab.commands.cli import group\n"
    "print(json.dumps([invoke(group, words, 'esper-ab') for words in json.loads(sys.argv[1])]))\n"
)


def test_judging_and_reading_work_without_linux_system_calls(tmp_path):
    write(tmp_path / "done", Synthetic().events())
    save_plan(make_external_plan(("new", "old"), tuple(map(str, range(6))), scales(), Rule()), tmp_path / "plan.json")
    (tmp_path / "results.csv").write_text(csv_text(rows(*drawn(6, 5.0))))
    calls = (
        ("judge", "results.csv", "--margin", "1"),
        ("judge", "plan.json", "results.csv"),
        ("design", "--groups", "a,b", "--seeds", "6", "--margin", "1", "--out", "made.json"),
        ("power", "--experiment", "done"),
        ("report", "done"),
        ("status", "done"),
        ("list", "."),
        ("tidy", "done"),
        ("stop", "done"),
    )
    result = python("-c", SCRIPT, json.dumps(calls), folder=tmp_path)
    assert not result.returncode, result.stderr
    statuses = dict(zip(calls, json.loads(result.stdout.splitlines()[-1]), strict=True))
    assert {words for words, status in statuses.items() if status} <= {("stop", "done")}, result.stderr
    assert "Traceback" not in result.stderr


def test_training_without_linux_is_refused_in_one_line(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    with pytest.raises(UsageError, match="training needs Linux"):
        check_launcher(LocalLauncher(), ())
