"""The texts of three whole reports, stored in tests/golden/report_*.txt.

    PYTHONPATH=tests .venv/bin/python -m support.goldens.report_texts

stores the texts again; read the difference before you commit it.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from esper_ab.journal.fold import fold
from esper_ab.readers.same_question_over_tasks import read_over_tasks, same_question_over_tasks
from esper_ab.report.content import content
from esper_ab.report.document import Document
from esper_ab.report.experiment import experiment_report
from esper_ab.report.replications import replications_report
from esper_ab.report.text import render_text
from esper_ab.report.together import together_over_tasks
from support.journals.over_tasks import parts_of, write_over_tasks
from support.journals.ready_journals import failed_run, planted_effect
from support.journals.replications import ALIKE, APART

_FOLDER = Path(__file__).parents[2] / "golden"


def _replicated_over_tasks() -> Document:
    """An experiment over two tasks, on one of which the groups differ, and its replication."""
    groups = {"digits": APART, "mixture": ALIKE}
    with tempfile.TemporaryDirectory() as folder:
        first = write_over_tasks(Path(folder) / "first", parts_of(1, groups))
        again = write_over_tasks(Path(folder) / "again", parts_of(2, groups), earlier=[first])
        return replications_report(together_over_tasks(same_question_over_tasks(read_over_tasks([first, again]))))


REPORTS: dict[str, Callable[[], Document]] = {
    "planted_effect": lambda: experiment_report(content(fold(planted_effect()))),
    "failed_run": lambda: experiment_report(content(fold(failed_run()))),
    "replicated_over_tasks": _replicated_over_tasks,
}


def report_text(name: str) -> str:
    """Return a whole report of REPORTS as text."""
    return render_text(REPORTS[name](), in_full=True)


def stored_file(name: str) -> Path:
    """Return the file with the stored text of a report."""
    return _FOLDER / f"report_{name}.txt"


if __name__ == "__main__":
    for stored in REPORTS:
        stored_file(stored).write_text(report_text(stored), encoding="utf-8")
