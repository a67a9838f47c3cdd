"""Build summary.txt, verdict.json and report.html from an experiment's journal alone, with the same bytes every time.

If the journal has no end, these files also state whether a process still works on the experiment.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from esper_ab.contracts.answer_files import PAGE, SUMMARY, VERDICT
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.visible import visible_line
from esper_ab.journal.load import load

if TYPE_CHECKING:
    from esper_ab.report.content import Content
    from esper_ab.report.document import Document


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report, which is in the files of its experiment directory."""

    experiment_dir: Path
    content: Content
    document: Document
    text: str  # of one screen


def build_report(experiment_dir: Path) -> Report:
    """Write the report of `experiment_dir`, finished or not.

    Raises UsageError if there is no journal, and JournalError if the journal is damaged.
    """
    with _uncollected():
        with ThreadPoolExecutor(1) as import_pool:  # imports numpy, scipy, matplotlib while `load` reads
            import_pool.map(import_module, ("esper_ab.report.experiment", "esper_ab.report.page"))
            loaded_journal = load(experiment_dir)

        # Imported here, because commands that report must not load these modules for --help.
        from esper_ab.report.content import content
        from esper_ab.report.experiment import experiment_report
        from esper_ab.report.page import render_page
        from esper_ab.report.text import render_text
        from esper_ab.report.verdict_json import render_verdict

        report_content = content(loaded_journal.history, held=loaded_journal.held, place=str(experiment_dir.resolve()))
        document = experiment_report(report_content)
        text = render_text(document)
        write_below(experiment_dir, SUMMARY, text.encode())
        write_below(experiment_dir, VERDICT, render_verdict(report_content))
        write_below(experiment_dir, PAGE, render_page(document).encode())
        return Report(experiment_dir=experiment_dir, content=report_content, document=document, text=text)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the garbage collector, which would find almost nothing here but take a tenth of the time."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()


def printed(report: Report, form: str, closing: Sequence[str] = ()) -> str:
    """Return the command's output as "brief", "text" (one screen), "whole", "md" (Markdown, in no file) or "json".

    `closing`: sentences that end an answer on the screen. They are in no file, because they rest on other journals.
    """
    if form == "text":
        return ended_by(report.text.rstrip(), closing)
    if form == "json":
        return read_regular(report.experiment_dir / VERDICT).decode().strip()
    from esper_ab.report.experiment import render_brief  # with the rest of the report, as above
    from esper_ab.report.markdown import render_markdown  # likewise
    from esper_ab.report.text import render_text

    if form == "md":
        return render_markdown(report.document).rstrip()
    folder = report.experiment_dir
    brief_text = render_brief(replace(report.content, place=str(folder)), str(folder / PAGE), closing)
    if form == "brief":
        return brief_text
    return f"{render_text(report.document, in_full=True)}\n{brief_text}"


def ended_by(text: str, closing: Sequence[str]) -> str:
    """Return a text with further sentences, each as a paragraph, at its end."""
    from esper_ab.report.text import paragraph  # with the rest of the report, as above

    return "\n\n".join([text, *(paragraph(visible_line(sentence), "", hanging_indent="  ") for sentence in closing)])
