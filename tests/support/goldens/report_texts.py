"""The texts of two whole reports, stored in tests/golden/report_*.txt.

    PYTHONPATH=tests .venv/bin/python -m support.goldens.report_texts

stores the texts again; read the difference before you commit it.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from esper_ab.journal.events import AnyEvent
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.text import render_text
from support.journals.ready_journals import failed_run, planted_effect

_FOLDER = Path(__file__).parents[2] / "golden"
JOURNALS: dict[str, Callable[[], Iterable[AnyEvent]]] = {"planted_effect": planted_effect, "failed_run": failed_run}


def report_text(name: str) -> str:
    """Return the whole report of a journal of JOURNALS as text."""
    return render_text(experiment_report(content(fold(JOURNALS[name]()))), in_full=True)


def stored_file(name: str) -> Path:
    """Return the file with the stored text of a report."""
    return _FOLDER / f"report_{name}.txt"


if __name__ == "__main__":
    for stored in JOURNALS:
        stored_file(stored).write_text(report_text(stored), encoding="utf-8")
